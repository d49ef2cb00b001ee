/* Reads what a run has left in its directory. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_internal.h"
#include "util/file.h"
#include "util/memory.h"

#define MAX_FILE ((size_t)1 << 30)

static const char *const metric_names[CT_N_METRICS] = {
#define METRIC(id, name) [CT_METRIC_##id] = name,
#include "report/metric_list.h"
#undef METRIC
};

static double number_of(const ct_json *object, const char *key) {
    const ct_json *member = ct_json_get(object, key);
    return member != NULL && member->kind == CT_JSON_NUMBER ? member->number : NAN;
}

static ct_status no_memory(const char *path) {
    return ct_fail(CT_NOMEM, "%s: no memory", path);
}

/* ---- metrics.jsonl ---- */

static ct_status read_row(const char *line, size_t n, const char *where, ct_epoch_row *out) {
    ct_json *json = NULL;
    CT_TRY(ct_json_parse(line, n, where, &json));
    for (int m = 0; m < CT_N_METRICS; m++) out->value[m] = number_of(json, metric_names[m]);
    ct_json_free(&json);
    if (isfinite(out->value[CT_METRIC_EPOCH])) return CT_OK;
    return ct_fail(CT_IO, "%s: no epoch in this line", where);
}

/* There is room for as many rows as the file has lines. */
static ct_status add_row(ct_report_run *run, const ct_epoch_row *row, const char *where) {
    if (run->n_epochs > 0 &&
        run->epochs[run->n_epochs - 1].value[CT_METRIC_EPOCH] > row->value[CT_METRIC_EPOCH])
        return ct_fail(CT_IO, "%s: epoch %g comes after epoch %g", where,
                       row->value[CT_METRIC_EPOCH],
                       run->epochs[run->n_epochs - 1].value[CT_METRIC_EPOCH]);
    run->epochs[run->n_epochs++] = *row;
    return CT_OK;
}

/* The last line may be on its way: without its end it counts only if it is whole. */
static ct_status read_rows(const char *path, const char *text, ct_report_run *run) {
    int number = 1;
    for (const char *at = text; *at != '\0'; number++) {
        char where[640];
        size_t n = strcspn(at, "\n");
        bool is_ended = at[n] == '\n';
        snprintf(where, sizeof where, "%.600s:%d", path, number);
        ct_epoch_row row;
        ct_error error;
        ct_status status = n == 0 ? CT_OK : CT_CATCH(&error, read_row(at, n, where, &row));
        if (status == CT_IO && !is_ended) return CT_OK;
        if (status != CT_OK) return ct_fail_again(&error);
        if (n > 0) CT_TRY(add_row(run, &row, where));
        at += n + is_ended;
    }
    return CT_OK;
}

static ct_status read_metrics(const char *path, ct_report_run *run) {
    ct_blob blob = {0};
    CT_TRY(ct_file_read(path, MAX_FILE, &blob));
    ct_status status = CT_OK;
    if (strlen((char *)blob.bytes) != blob.n) status = ct_fail(CT_IO, "%s: this is not text", path);
    size_t n_lines = 1;
    for (size_t k = 0; k < blob.n; k++) n_lines += blob.bytes[k] == '\n';
    run->epochs = ct_new(ct_epoch_row, n_lines);
    if (run->epochs == NULL) status = no_memory(path);
    if (status == CT_OK) status = read_rows(path, (char *)blob.bytes, run);
    ct_blob_free(&blob);
    return status;
}

/* ---- config.txt ---- */

static char *trim(char *text) {
    while (*text == ' ' || *text == '\t') text++;
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL) text[--n] = '\0';
    return text;
}

static ct_status add_option(ct_report_run *run, const char *path, char *line) {
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return ct_fail(CT_IO, "%s: '%.80s' is not of the form name = value", path, line);
    *equals = '\0';
    ct_report_option *grown =
        ct_grow(run->options, (size_t)run->n_options, (size_t)run->n_options + 1, sizeof *grown);
    if (grown == NULL) return no_memory(path);
    run->options = grown;
    ct_report_option *o = &run->options[run->n_options++];
    *o = (ct_report_option){ct_strdup(trim(line)), ct_strdup(trim(equals + 1))};
    return o->name != NULL && o->value != NULL ? CT_OK : no_memory(path);
}

/* Options are kept as words: a run of another version has some that this one does not know. */
static ct_status read_config(const char *path, ct_report_run *run) {
    ct_blob blob = {0};
    CT_TRY(ct_file_read(path, 1 << 20, &blob));
    ct_status status = CT_OK;
    for (char *at = (char *)blob.bytes; at != NULL && status == CT_OK;) {
        char *end = strchr(at, '\n');
        if (end != NULL) *end = '\0';
        char *line = trim(at);
        if (*line != '\0' && *line != '#') status = add_option(run, path, line);
        at = end != NULL ? end + 1 : NULL;
    }
    ct_blob_free(&blob);
    return status;
}

const char *ct_report_option_of(const ct_report_run *run, const char *name) {
    for (int k = 0; k < run->n_options; k++)
        if (strcmp(run->options[k].name, name) == 0) return run->options[k].value;
    return NULL;
}

/* ---- JSON ---- */

static ct_status read_json(const char *path, ct_json **out) {
    ct_blob blob = {0};
    CT_TRY(ct_file_read(path, MAX_FILE, &blob));
    ct_status status = ct_json_parse((const char *)blob.bytes, blob.n, path, out);
    ct_blob_free(&blob);
    return status;
}

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
    *out = ct_new(uint32_t, (size_t)n_rows * (size_t)n_columns);
    if (*out == NULL) return no_memory(path);
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

static ct_status read_names(const char *path, const ct_json *object, ct_report_run *run) {
    const ct_json *names = ct_json_get(object, "class_names");
    if (names == NULL || names->kind == CT_JSON_NULL) return CT_OK;
    if (names->kind != CT_JSON_ARRAY || names->n_children != (size_t)run->n_classes)
        return wrong(path, "class_names");
    run->class_names = ct_new(char *, (size_t)run->n_classes);
    if (run->class_names == NULL) return no_memory(path);
    char **at = run->class_names;
    for (const ct_json *name = names->child; name != NULL; name = name->next) {
        if (name->kind != CT_JSON_STRING) return wrong(path, "class_names");
        *at = ct_strdup(name->string);
        if (*at++ == NULL) return no_memory(path);
    }
    return CT_OK;
}

static bool is_agent(const ct_json *value, int n_agents) {
    return value != NULL && value->kind == CT_JSON_NUMBER && is_count(value->number) &&
           value->number < n_agents;
}

static ct_status read_edges(const char *path, const ct_json *object, ct_report_run *run) {
    const ct_json *edges = ct_json_get(object, "edges");
    if (edges == NULL || edges->kind == CT_JSON_NULL) return CT_OK;
    if (edges->kind != CT_JSON_ARRAY || edges->n_children > INT32_MAX) return wrong(path, "edges");
    run->edges = ct_alloc(edges->n_children, sizeof *run->edges);
    if (run->edges == NULL) return no_memory(path);
    for (const ct_json *edge = edges->child; edge != NULL; edge = edge->next) {
        if (edge->kind != CT_JSON_ARRAY || edge->n_children != 2 ||
            !is_agent(edge->child, run->n_agents) || !is_agent(edge->child->next, run->n_agents))
            return wrong(path, "edges");
        run->edges[run->n_edges][0] = (int)edge->child->number;
        run->edges[run->n_edges++][1] = (int)edge->child->next->number;
    }
    return CT_OK;
}

static ct_status read_setting(const char *path, ct_json **json, ct_report_run *run) {
    const ct_json *object = *json;
    double n_agents = number_of(object, "agents"), n_classes = number_of(object, "classes");
    if (!(n_agents >= 1 && n_agents <= 65536)) return wrong(path, "agents");
    if (!(n_classes >= 1 && n_classes <= 65536)) return wrong(path, "classes");
    run->n_agents = (int)n_agents;
    run->n_classes = (int)n_classes;
    CT_TRY(read_names(path, object, run));
    CT_TRY(read_edges(path, object, run));
    return read_table(path, object, "class_counts", run->n_agents, run->n_classes,
                      &run->class_counts);
}

static ct_status read_evaluation(const char *path, ct_json **json, ct_report_run *run) {
    const ct_json *object = *json;
    const ct_json *local = ct_json_get(object, "local_accuracy");
    double epoch = number_of(object, "epoch");
    if (run->n_agents == 0) return CT_OK; /* without its setting nothing can be drawn */
    if (!(epoch >= 0 && epoch < 1e15)) return wrong(path, "epoch");
    run->evaluated_epoch = (long)epoch;
    if (local == NULL || local->kind != CT_JSON_ARRAY || local->n_children != (size_t)run->n_agents)
        return wrong(path, "local_accuracy");
    run->local_accuracy = ct_new(double, (size_t)run->n_agents);
    if (run->local_accuracy == NULL) return no_memory(path);
    double *at = run->local_accuracy;
    for (const ct_json *value = local->child; value != NULL; value = value->next)
        *at++ = value->kind == CT_JSON_NUMBER ? value->number : NAN;
    return read_table(path, object, "confusion", run->n_classes, run->n_classes, &run->confusion);
}

static ct_status take_summary(const char *path, ct_json **object, ct_report_run *run) {
    if ((*object)->kind != CT_JSON_OBJECT) return ct_fail(CT_IO, "%s: this is no object", path);
    run->summary = *object;
    *object = NULL;
    return CT_OK;
}

/* ---- a directory ---- */

/* A file of the directory, if it is there. */
static ct_status read_part(const char *dir, const char *name, ct_report_run *run,
                           ct_status (*read)(const char *path, ct_report_run *run)) {
    char *path = ct_path_join(dir, name);
    if (path == NULL) return no_memory(dir);
    ct_status status = ct_file_exists(path) ? read(path, run) : CT_OK;
    ct_free(path);
    return status;
}

static ct_status read_object(const char *dir, const char *name, ct_report_run *run,
                             ct_status (*take)(const char *path, ct_json **object,
                                               ct_report_run *run)) {
    ct_json *json = NULL;
    char *path = ct_path_join(dir, name);
    if (path == NULL) return no_memory(dir);
    ct_status status = CT_OK;
    if (ct_file_exists(path)) {
        status = read_json(path, &json);
        if (status == CT_OK) status = take(path, &json, run);
    }
    ct_json_free(&json);
    ct_free(path);
    return status;
}

static ct_status note_divergence(const char *path, ct_report_run *run) {
    (void)path;
    run->has_diverged = true;
    return CT_OK;
}

/* The number behind the last "seed" of a name: seed-3, ccl-seed3. */
static uint64_t seed_of_name(const char *path) {
    const char *found = NULL;
    for (const char *at = path; (at = strstr(at, "seed")) != NULL; at += 4) found = at + 4;
    if (found == NULL) return 0;
    if (*found == '-' || *found == '_') found++;
    return strtoull(found, NULL, 10);
}

static ct_status read_dir(const char *dir, ct_report_run *run) {
    CT_TRY(read_part(dir, "config.txt", run, read_config));
    CT_TRY(read_part(dir, "metrics.jsonl", run, read_metrics));
    CT_TRY(read_part(dir, "diverged.json", run, note_divergence));
    CT_TRY(read_part(dir, "../diverged.json", run, note_divergence));
    if (run->n_epochs > 0 && !isfinite(run->epochs[run->n_epochs - 1].value[CT_METRIC_CE]))
        run->has_diverged = true;
    CT_TRY(read_object(dir, "summary.json", run, take_summary));
    CT_TRY(read_object(dir, "setting.json", run, read_setting));
    return read_object(dir, "evaluation.json", run, read_evaluation);
}

ct_status ct_report_read_run(const char *path, ct_report_run *out) {
    int64_t seed = 0;
    *out = (ct_report_run){.path = ct_strdup(path), .seed = seed_of_name(path)};
    ct_status status = out->path != NULL ? CT_OK : no_memory(path);
    if (status == CT_OK)
        status = ct_dir_exists(path) ? read_dir(path, out) : read_metrics(path, out);
    const char *given = ct_report_option_of(out, "seed");
    if (given != NULL && ct_parse_i64(given, &seed) && seed >= 0) out->seed = (uint64_t)seed;
    if (status != CT_OK) ct_report_free_run(out);
    return status;
}

void ct_report_free_run(ct_report_run *run) {
    for (int k = 0; k < run->n_options; k++) {
        ct_free(run->options[k].name);
        ct_free(run->options[k].value);
    }
    for (int c = 0; run->class_names != NULL && c < run->n_classes; c++)
        ct_free(run->class_names[c]);
    ct_free(run->class_names);
    ct_free(run->options);
    ct_free(run->epochs);
    ct_json_free(&run->summary);
    ct_free(run->class_counts);
    ct_free(run->edges);
    ct_free(run->local_accuracy);
    ct_free(run->confusion);
    ct_free(run->path);
    *run = (ct_report_run){0};
}
