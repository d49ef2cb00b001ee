/* What setting.json and evaluation.json say of single agents and classes, read back. */
#include <math.h>

#include "record/record_internal.h"
#include "util/memory.h"

static ct_status wrong(const char *path, const char *key) {
    return ct_fail(CT_IO, "%s: \"%s\" is not what a run writes", path, key);
}

static bool is_count(double value) {
    return value >= 0 && value <= UINT32_MAX && value == floor(value);
}

/* [[...], ...] of n_rows rows of n_columns counts; null and nothing at all are left out. */
static ct_status read_table(const char *path, const ct_json *object, const char *key, int n_rows,
                            int n_columns, uint32_t **out) {
    const ct_json *table = ct_json_get(object, key);
    if (table == NULL || table->kind == CT_JSON_NULL) return CT_OK;
    if (table->kind != CT_JSON_ARRAY || table->n_children != (size_t)n_rows)
        return wrong(path, key);
    CT_TRY(ct_make(out, (size_t)n_rows * (size_t)n_columns, path));
    uint32_t *at = *out;
    for (const ct_json *row = table->child; row != NULL; row = row->next) {
        if (row->kind != CT_JSON_ARRAY || row->n_children != (size_t)n_columns)
            return wrong(path, key);
        for (const ct_json *cell = row->child; cell != NULL; cell = cell->next) {
            if (cell->kind != CT_JSON_NUMBER || !is_count(cell->number)) return wrong(path, key);
            *at++ = (uint32_t)cell->number;
        }
    }
    return CT_OK;
}

/* n texts; null and nothing at all are left out. */
static ct_status read_names(const char *path, const ct_json *object, const char *key, int n,
                            char ***out) {
    const ct_json *names = ct_json_get(object, key);
    if (names == NULL || names->kind == CT_JSON_NULL) return CT_OK;
    if (names->kind != CT_JSON_ARRAY || names->n_children != (size_t)n) return wrong(path, key);
    CT_TRY(ct_make(out, (size_t)n, path));
    char **at = *out;
    for (const ct_json *name = names->child; name != NULL; name = name->next) {
        if (name->kind != CT_JSON_STRING) return wrong(path, key);
        CT_TRY(ct_make_text(at++, name->string));
    }
    return CT_OK;
}

static bool is_agent(const ct_json *value, int n_agents) {
    return value != NULL && value->kind == CT_JSON_NUMBER && is_count(value->number) &&
           value->number < n_agents;
}

static ct_status read_edges(const char *path, const ct_json *object, ct_record *run) {
    const ct_json *edges = ct_json_get(object, "edges");
    if (edges == NULL || edges->kind == CT_JSON_NULL) return CT_OK;
    if (edges->kind != CT_JSON_ARRAY || edges->n_children > INT32_MAX) return wrong(path, "edges");
    CT_TRY(ct_make(&run->edges, edges->n_children, path));
    for (const ct_json *edge = edges->child; edge != NULL; edge = edge->next) {
        if (edge->kind != CT_JSON_ARRAY || edge->n_children != 2 ||
            !is_agent(edge->child, run->n_agents) || !is_agent(edge->child->next, run->n_agents))
            return wrong(path, "edges");
        run->edges[run->n_edges][0] = (int)edge->child->number;
        run->edges[run->n_edges++][1] = (int)edge->child->next->number;
    }
    return CT_OK;
}

static ct_status parse(const char *path, const ct_blob *blob, ct_json **out) {
    return ct_json_parse((const char *)blob->bytes, blob->n, path, out);
}

ct_status ct_record_read_setting(const char *path, const ct_blob *blob, ct_record *run) {
    CT_SCOPED_HANDLE(ct_json) object = NULL;
    CT_TRY(parse(path, blob, &object));
    double n_agents = ct_json_number(object, "agents"),
           n_classes = ct_json_number(object, "classes");
    if (!(n_agents >= 1 && n_agents <= 65536)) return wrong(path, "agents");
    if (!(n_classes >= 1 && n_classes <= 65536)) return wrong(path, "classes");
    run->n_agents = (int)n_agents;
    run->n_classes = (int)n_classes;
    CT_TRY(read_names(path, object, "class_names", run->n_classes, &run->class_names));
    CT_TRY(read_names(path, object, "agent_names", run->n_agents, &run->agent_names));
    CT_TRY(read_edges(path, object, run));
    return read_table(path, object, "class_counts", run->n_agents, run->n_classes,
                      &run->class_counts);
}

ct_status ct_record_read_evaluation(const char *path, const ct_blob *blob, ct_record *run) {
    CT_SCOPED_HANDLE(ct_json) object = NULL;
    CT_TRY(parse(path, blob, &object));
    const ct_json *local = ct_json_get(object, "local_accuracy");
    double epoch = ct_json_number(object, "epoch");
    if (run->n_agents == 0) return CT_OK; /* without its setting nothing can be drawn */
    if (!(epoch >= 0 && epoch < 1e15)) return wrong(path, "epoch");
    run->evaluated_epoch = (long)epoch;
    if (local == NULL || local->kind != CT_JSON_ARRAY || local->n_children != (size_t)run->n_agents)
        return wrong(path, "local_accuracy");
    CT_TRY(ct_make(&run->local_accuracy, (size_t)run->n_agents, path));
    double *at = run->local_accuracy;
    for (const ct_json *value = local->child; value != NULL; value = value->next)
        *at++ = value->kind == CT_JSON_NUMBER ? value->number : NAN;
    return read_table(path, object, "confusion", run->n_classes, run->n_classes, &run->confusion);
}
