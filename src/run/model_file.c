/* Models to and from .safetensors files, under PyTorch's parameter names. */
#include "run/run.h"

#include <string.h>

#include "util/file.h"
#include "util/memory.h"
#include "util/safetensors.h"

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
        char name[128];
        snprintf(name, sizeof name, "%s%s", prefix, params[p].name);
        const ct_tensor *t = ct_tensors_find(tensors, name);
        if (t == NULL)
            return ct_fail(CT_IO, "%s: no tensor '%s', which the model needs", path, name);
        if (!same_shape(&params[p], t))
            return ct_fail(CT_IO,
                           "%s: tensor '%s' has %zu values in a shape that the model does "
                           "not have (it needs %zu)",
                           path, name, t->count, params[p].count);
        memcpy(row + params[p].offset, t->values, t->count * sizeof *row);
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

/* Names in the file that are no parameter: after `agent.<i>.` with i < n_agents if n_agents > 0. */
static ct_status check_extra(const char *path, const ct_tensors *tensors, const ct_graph *g,
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

static ct_status load_row(const char *path, const ct_tensors *tensors, const char *prefix,
                          const ct_graph *g, float *row, float *running) {
    CT_TRY(load_table(path, tensors, prefix, g->params, g->n_params, row));
    return load_table(path, tensors, prefix, g->buffers, g->n_buffers, running);
}

ct_status ct_load_model(const ct_graph *graph, const char *path, float *row, float *running) {
    ct_tensors tensors = {0};
    CT_TRY(ct_tensors_read(path, &tensors));
    ct_status status = check_extra(path, &tensors, graph, 0);
    if (status == CT_OK) status = load_row(path, &tensors, "", graph, row, running);
    ct_tensors_free(&tensors);
    return status;
}

static ct_status put_row(ct_run *run, int agent, const float *row, const float *running) {
    CT_TRY(ct_bank_write(&run->agents.x, agent, 0, run->graph.n_weights, row));
    if (run->graph.n_buffer_values == 0) return CT_OK;
    return ct_bank_write(&run->agents.running, agent, 0, run->graph.n_buffer_values, running);
}

static ct_status load_agents(ct_run *run, const char *path, float *row, float *running) {
    ct_tensors tensors = {0};
    CT_TRY(ct_tensors_read(path, &tensors));
    bool per_agent = tensors.n > 0 && strncmp(tensors.items[0].name, "agent.", 6) == 0;
    int n_agents = run->agents.n_agents;
    ct_status status = check_extra(path, &tensors, &run->graph, per_agent ? n_agents : 0);
    for (int i = 0; i < run->agents.n && status == CT_OK; i++) {
        char prefix[32] = "";
        if (per_agent)
            snprintf(prefix, sizeof prefix, "agent.%d.", (run->agents.first + i) % n_agents);
        if (i == 0 || per_agent)
            status = load_row(path, &tensors, prefix, &run->graph, row, running);
        if (status == CT_OK) status = put_row(run, i, row, running);
    }
    ct_tensors_free(&tensors);
    return status;
}

ct_status ct_run_init_params(ct_run *run) {
    CT_SCOPED_BLOCK(float) row = NULL;
    CT_SCOPED_BLOCK(float) running = NULL;
    CT_TRY(ct_make(&row, run->graph.n_weights, "the start values"));
    CT_TRY(ct_make(&running, run->graph.n_buffer_values, "the start values"));
    if (run->config.init[0] != '\0') return load_agents(run, run->config.init, row, running);
    ct_init_buffers(&run->graph, running);
    const float *given = run->external != NULL ? run->external->start : NULL;
    for (int i = 0; i < run->agents.n; i++) {
        /* all agents of a world start from the same values */
        int at = run->agents.first + i;
        if (i == 0 || at % run->agents.n_agents == 0)
            ct_init_params(&run->graph, run->seeds[at / run->agents.n_agents], row);
        CT_TRY(put_row(run, i, given != NULL ? given : row, running));
    }
    return CT_OK;
}

/* Tensors of one model row, described from `values` on; names are prefix + parameter name. */
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

/* Writes rows of a parameter bank (and of the running statistics) as one file. */
static ct_status save(const ct_graph *g, const ct_bank *x, const ct_bank *running, int first,
                      int n_rows, bool with_prefix, const char *path) {
    size_t per_row = (size_t)(g->n_params + g->n_buffers),
           width = g->n_weights + g->n_buffer_values;
    ct_tensor *tensors = ct_new(ct_tensor, per_row * (size_t)n_rows);
    float *values = ct_new(float, width *(size_t)n_rows);
    ct_status status = tensors != NULL && values != NULL
                           ? CT_OK
                           : ct_fail(CT_NOMEM, "no memory to save %d models", n_rows);
    for (int i = 0; i < n_rows && status == CT_OK; i++) {
        char prefix[32] = "";
        float *row = values + width * (size_t)i;
        ct_tensor *mine = tensors + per_row * (size_t)i;
        if (with_prefix) snprintf(prefix, sizeof prefix, "agent.%d.", i);
        status = ct_bank_read(x, first + i, 0, g->n_weights, row);
        if (status == CT_OK && g->n_buffer_values > 0)
            status = ct_bank_read(running, first + i, 0, g->n_buffer_values, row + g->n_weights);
        if (status == CT_OK) status = describe(g->params, g->n_params, prefix, row, mine);
        if (status == CT_OK)
            status =
                describe(g->buffers, g->n_buffers, prefix, row + g->n_weights, mine + g->n_params);
    }
    if (status == CT_OK) status = ct_tensors_write(path, tensors, per_row * (size_t)n_rows);
    for (size_t t = 0; tensors != NULL && t < per_row * (size_t)n_rows; t++)
        ct_free(tensors[t].name);
    ct_free(tensors);
    ct_free(values);
    return status;
}

ct_status ct_run_save_consensus(ct_run *run, int world, const char *path) {
    return save(&run->graph, &run->consensus, &run->consensus_running, world, 1, false, path);
}

ct_status ct_run_save_agents(ct_run *run, int world, const char *path) {
    int n = run->agents.n_agents;
    return save(&run->graph, run->all_x, run->all_running, world * n, n, true, path);
}
