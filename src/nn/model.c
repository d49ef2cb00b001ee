#include "nn/model.h"

#include <stdio.h>
#include <string.h>

#include "util/memory.h"
#include "util/registry.h"

typedef struct model_entry {
    const char *name, *text;
    void (*describe)(ct_graph *g, const ct_model_context *m);
    ct_shape usual;
} model_entry;

static const model_entry models[] = {
#define MODEL(id, name, channels, side, text) {name, text, ct_model_##id, {channels, side, side}},
#include "nn/model_list.h"
#undef MODEL
};
enum { N_MODELS = sizeof models / sizeof *models };

static const struct {
    const char *name;
    ct_op op;
} norms[] = {{"evonorm", CT_OP_EVONORM},
             {"evonorm-s0", CT_OP_EVONORM_S0},
             {"groupnorm", CT_OP_GROUPNORM},
             {"batchnorm", CT_OP_BATCHNORM},
             {"none", CT_OP_INPUT}};

void ct_model_each(ct_name_visit each, void *context) {
    for (int i = 0; i < N_MODELS; i++) each(context, models[i].name, models[i].text);
}

static ct_status find_model(const char *name, size_t n, const model_entry **out) {
    for (int i = 0; i < N_MODELS; i++) {
        if (strlen(models[i].name) != n || memcmp(models[i].name, name, n) != 0) continue;
        *out = &models[i];
        return CT_OK;
    }
    return ct_unknown_name("model", name, NULL, ct_model_each);
}

ct_status ct_model_usual_input(const char *name, ct_shape *out) {
    const model_entry *entry = NULL;
    CT_TRY(find_model(name, strlen(name), &entry));
    *out = entry->usual;
    return CT_OK;
}

static ct_status find_norm(const char *name, ct_op *out) {
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        if (name != NULL && strcmp(name, norms[i].name) != 0) continue;
        *out = norms[i].op;
        return CT_OK;
    }
    return ct_fail(CT_INVAL, "no norm '%s'; known: evonorm, evonorm-s0, groupnorm, batchnorm, none",
                   name);
}

const char *ct_model_argument(ct_graph *g, const ct_model_context *m) {
    g->took_argument = true;
    return m->argument;
}

ct_status ct_graph_create(const ct_model_spec *spec, ct_graph *out) {
    const char *colon = strchr(spec->name, ':');
    size_t n = colon != NULL ? (size_t)(colon - spec->name) : strlen(spec->name);
    const model_entry *entry = NULL;
    ct_model_context m = {.input = spec->input,
                          .n_classes = spec->n_classes,
                          .argument = colon != NULL ? colon + 1 : NULL};
    CT_TRY(find_model(spec->name, n, &entry));
    CT_TRY(find_norm(spec->norm, &m.norm));
    CT_SCOPED(ct_graph) g = {.n_classes = spec->n_classes, .features = -1};
    snprintf(g.model, sizeof g.model, "%s", spec->name);
    entry->describe(&g, &m);
    CT_TRY(g.status);
    if (m.argument != NULL && !g.took_argument)
        return ct_fail(CT_INVAL, "model %.*s takes no argument; leave ':%s' out", (int)n,
                       spec->name, m.argument);
    if (g.features < 0) return ct_fail(CT_INVAL, "model %s names no features node", spec->name);
    ct_move(out, &g);
    return CT_OK;
}
