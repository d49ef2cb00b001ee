#include "model/weights.h"

#include <stdio.h>
#include <string.h>

#include "util/memory.h"

bool ct_weights_are_per_agent(const ct_tensors *tensors) {
    return tensors->n > 0 && strncmp(tensors->items[0].name, "agent.", 6) == 0;
}

ct_weights_prefix ct_weights_prefix_of(int agent) {
    ct_weights_prefix prefix;
    snprintf(prefix.text, sizeof prefix.text, "agent.%d.", agent);
    return prefix;
}

static bool same_shape(const ct_param *p, const ct_tensor *t) {
    if (p->n_dims != t->n_dims) return false;
    for (int d = 0; d < p->n_dims; d++)
        if (p->dims[d] != t->dims[d]) return false;
    return true;
}

/* Copies one table (parameters or buffers) from tensors named prefix + name. */
static ct_status load_table(const char *path, const ct_tensors *tensors, const char *prefix,
                            const ct_param *params, int n, float *row) {
    for (int p = 0; p < n; p++) {
        char name[CT_PARAM_NAME + 32];
        snprintf(name, sizeof name, "%s%s", prefix, params[p].name);
        const ct_tensor *t = ct_tensors_find(tensors, name);
        if (t == NULL)
            return ct_fail(CT_IO, "%s: no tensor '%s', which the model needs", path, name);
        if (!same_shape(&params[p], t))
            return ct_fail(CT_IO,
                           "%s: tensor '%s' has %zu values in a shape that the model does "
                           "not have (it needs %zu)",
                           path, name, t->count, params[p].count);
        if (row != NULL) memcpy(row + params[p].offset, t->values, t->count * sizeof *row);
    }
    return CT_OK;
}

static bool is_known(const ct_graph *g, const char *name) {
    for (int p = 0; p < g->n_params; p++)
        if (strcmp(g->params[p].name, name) == 0) return true;
    for (int b = 0; b < g->n_buffers; b++)
        if (strcmp(g->buffers[b].name, name) == 0) return true;
    return false;
}

ct_status ct_weights_check(const char *path, const ct_tensors *tensors, const ct_graph *g,
                           int n_agents) {
    for (size_t t = 0; t < tensors->n; t++) {
        const char *name = tensors->items[t].name;
        int agent = 0, used = 0;
        if (n_agents > 0 && (sscanf(name, "agent.%d.%n", &agent, &used) != 1 || used == 0 ||
                             agent < 0 || agent >= n_agents))
            return ct_fail(CT_IO, "%s: tensor '%s' belongs to none of %d agents", path, name,
                           n_agents);
        if (!is_known(g, name + used))
            return ct_fail(CT_IO, "%s: tensor '%s' is not one of the model's", path, name);
    }
    return CT_OK;
}

ct_status ct_weights_load(const char *path, const ct_tensors *tensors, const char *prefix,
                          const ct_graph *g, float *row, float *running) {
    CT_TRY(load_table(path, tensors, prefix, g->params, g->n_params, row));
    return load_table(path, tensors, prefix, g->buffers, g->n_buffers, running);
}

static ct_status describe(const ct_param *params, int n, const char *prefix, float *values,
                          ct_tensor *out) {
    for (int p = 0; p < n; p++) {
        size_t room = strlen(prefix) + strlen(params[p].name) + 1;
        out[p] = (ct_tensor){.name = ct_alloc(room, 1),
                             .n_dims = params[p].n_dims,
                             .count = params[p].count,
                             .values = values + params[p].offset};
        if (out[p].name == NULL) return ct_fail(CT_NOMEM, "no memory for tensor names");
        snprintf(out[p].name, room, "%s%s", prefix, params[p].name);
        for (int d = 0; d < params[p].n_dims; d++) out[p].dims[d] = params[p].dims[d];
    }
    return CT_OK;
}

ct_status ct_weights_describe(const ct_graph *g, const char *prefix, float *row, float *running,
                              ct_tensor *out) {
    CT_TRY(describe(g->params, g->n_params, prefix, row, out));
    return describe(g->buffers, g->n_buffers, prefix, running, out + g->n_params);
}
