/* crosstalk/record.h, beside ct_record_option_of (record/read.c). */
#include "record/record.h"

#include <math.h>
#include <stdio.h>

#include "api/api_internal.h"
#include "util/memory.h"

static ct_status load(const char *directory, ct_record *out) {
    CT_TRY(ct_record_load(directory, CT_READ_ALL, out));
    if (out->end.state == CT_RECORD_NONE) return ct_fail(CT_IO, "%s: no run here", directory);
    return out->summary != NULL ? ct_summary_add_late(directory, out->summary) : CT_OK;
}

static ct_status open_record(const char *directory, ct_record **out) {
    CT_SCOPED_HANDLE(ct_record) record = NULL;
    CT_NEED(directory);
    CT_NEED(out);
    CT_TRY(ct_make(&record, 1, directory));
    CT_TRY(load(directory, record));
    ct_move(out, &record);
    return CT_OK;
}

ct_status ct_record_open(const char *directory, ct_record **out, ct_error *error) {
    return CT_CATCH(error, open_record(directory, out));
}

void ct_record_free(ct_record **record) {
    if (record == NULL || *record == NULL) return;
    ct_record_unload(*record);
    ct_free(*record);
    *record = NULL;
}

ct_record_state ct_record_state_of(const ct_record *record, long *iteration, char *reason,
                                   size_t size) {
    if (iteration != NULL) *iteration = record->end.iteration;
    if (reason != NULL && size > 0) snprintf(reason, size, "%s", record->end.reason);
    return record->end.state;
}

int ct_record_n_options(const ct_record *record) {
    return record->n_options;
}

bool ct_record_option_at(const ct_record *record, int k, const char **name, const char **value) {
    if (k < 0 || k >= record->n_options) return false;
    if (name != NULL) *name = record->options[k].name;
    if (value != NULL) *value = record->options[k].value;
    return true;
}

int ct_record_n_epochs(const ct_record *record) {
    return record->n_epochs;
}

double ct_record_metric(const ct_record *record, int row, const char *key) {
    ct_metric_id id;
    if (row < 0 || row >= record->n_epochs || !ct_metric_by_key(key, &id)) return NAN;
    return record->epochs[row].value[id];
}

double ct_record_summary(const ct_record *record, const char *key) {
    return ct_json_number(record->summary, key);
}

int ct_record_n_agents(const ct_record *record) {
    return record->n_agents;
}

int ct_record_n_classes(const ct_record *record) {
    return record->n_classes;
}

static bool is_class(const ct_record *record, int k) {
    return k >= 0 && k < record->n_classes;
}

static bool is_agent(const ct_record *record, int agent) {
    return agent >= 0 && agent < record->n_agents;
}

const char *ct_record_class_name(const ct_record *record, int k) {
    return record->class_names != NULL && is_class(record, k) ? record->class_names[k] : NULL;
}

int ct_record_n_edges(const ct_record *record) {
    return record->n_edges;
}

bool ct_record_edge(const ct_record *record, int k, int *a, int *b) {
    if (k < 0 || k >= record->n_edges) return false;
    *a = record->edges[k][0];
    *b = record->edges[k][1];
    return true;
}

/* One of a table of counts with a column for every class. */
static long count_in(const ct_record *record, const uint32_t *table, int row, int column) {
    if (table == NULL || !is_class(record, column)) return -1;
    return (long)table[(size_t)row * (size_t)record->n_classes + (size_t)column];
}

long ct_record_class_count(const ct_record *record, int agent, int k) {
    return is_agent(record, agent) ? count_in(record, record->class_counts, agent, k) : -1;
}

double ct_record_agent_accuracy(const ct_record *record, int agent) {
    bool is_known = record->local_accuracy != NULL && is_agent(record, agent);
    return is_known ? record->local_accuracy[agent] : NAN;
}

long ct_record_confusion(const ct_record *record, int truth, int taken) {
    return is_class(record, truth) ? count_in(record, record->confusion, truth, taken) : -1;
}
