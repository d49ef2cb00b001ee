/* Files about single agents and classes, for those who draw: setting.json, evaluation.json. */
#include "run/output_internal.h"
#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"

#define MAX_ENTRIES (1 << 20) /* of a table or of the edges; longer ones are left out */

static void add_names(ct_text *text, const ct_dataset *d) {
    ct_text_add(text, ", \"class_names\": ");
    if (d->class_names == NULL) {
        ct_text_add(text, "null");
        return;
    }
    for (int c = 0; c < d->n_classes; c++) {
        ct_text_add(text, c == 0 ? "[" : ", ");
        ct_json_add_string(text, ct_dataset_class_name(d, c));
    }
    ct_text_add(text, "]");
}

/* "name": [[...], ...], one line a row */
static void add_table(ct_text *text, const char *name, const uint32_t *table, int n_rows,
                      int n_columns) {
    ct_text_add(text, ",\n\"%s\": ", name);
    if (table == NULL) {
        ct_text_add(text, "null");
        return;
    }
    for (int i = 0; i < n_rows; i++) {
        ct_text_add(text, i == 0 ? "[" : ",\n");
        for (int k = 0; k < n_columns; k++)
            ct_text_add(text, "%s%u", k == 0 ? "[" : ",", table[(size_t)i * (size_t)n_columns + k]);
        ct_text_add(text, "]");
    }
    ct_text_add(text, "]");
}

static void add_edges(ct_text *text, const ct_topology *t) {
    bool is_first = true;
    ct_text_add(text, ",\n\"edges\": ");
    if (t->begin[t->n] / 2 > MAX_ENTRIES) {
        ct_text_add(text, "null");
        return;
    }
    ct_text_add(text, "[");
    for (int i = 0; i < t->n; i++)
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++) {
            if (t->neighbour[e] < i) continue;
            ct_text_add(text, "%s[%d,%d]", is_first ? "" : ",", i, t->neighbour[e]);
            is_first = false;
        }
    ct_text_add(text, "]");
}

ct_status ct_output_setting(const ct_run *run, int world) {
    const ct_world *w = &run->worlds[world];
    const ct_dataset *d = &run->dataset;
    int n = w->partition.n_agents;
    size_t n_counts = (size_t)n * (size_t)d->n_classes;
    const uint32_t *counts = run->class_counts != NULL && n_counts <= MAX_ENTRIES
                                 ? run->class_counts + (size_t)world * n_counts
                                 : NULL;
    ct_text text = {0};
    ct_text_add(&text, "{\"agents\": %d, \"classes\": %d", n, d->n_classes);
    add_names(&text, d);
    add_edges(&text, &w->graph);
    add_table(&text, "class_counts", counts, n, d->n_classes);
    ct_text_add(&text, "}\n");
    ct_status status = ct_output_write(w->dir, "setting.json", &text);
    ct_text_free(&text);
    return status;
}

ct_status ct_output_evaluation(const ct_run *run, int world, const ct_epoch *e) {
    ct_text text = {0};
    int n = run->agents.n_agents, n_classes = run->dataset.n_classes;
    size_t n_pairs = (size_t)n_classes * (size_t)n_classes;
    const uint32_t *confusion =
        run->confusion != NULL ? run->confusion + (size_t)world * n_pairs : NULL;
    ct_text_add(&text, "{\"epoch\": %ld, \"iteration\": %ld, \"test_samples\": %zu", e->epoch,
                e->iteration, run->dataset.test.n);
    ct_text_add(&text, ", \"consensus_accuracy\": ");
    ct_json_add_number(&text, e->evaluation.consensus_accuracy);
    ct_text_add(&text, ",\n\"local_accuracy\": [");
    for (int i = 0; i < n; i++) {
        if (i > 0) ct_text_add(&text, ",");
        ct_json_add_number(&text, run->local_accuracy[world * n + i]);
    }
    ct_text_add(&text, "]");
    add_table(&text, "confusion", confusion, n_classes, n_classes);
    ct_text_add(&text, "}\n");
    ct_status status = ct_text_status(&text);
    char *path = ct_path_join(run->worlds[world].dir, "evaluation.json");
    if (status == CT_OK && path == NULL) status = ct_fail(CT_NOMEM, "no memory for a path");
    if (status == CT_OK) status = ct_file_replace(path, text.chars, text.n);
    ct_free(path);
    ct_text_free(&text);
    return status;
}
