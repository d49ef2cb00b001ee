#include "cli/predictions.h"

#include <string.h>

#include "util/log.h"
#include "util/memory.h"

/* The n_top most probable classes, the first of equals first, to the front of p->order. */
static void choose_top(const ct_predictions *p, const float *row, int n_classes) {
    int *order = p->order;
    for (int c = 0; c < n_classes; c++) order[c] = c;
    for (int k = 0; k < p->n_top; k++) {
        int best = k;
        for (int j = k + 1; j < n_classes; j++) {
            float gain = row[order[j]] - row[order[best]];
            if (gain > 0 || (gain == 0 && order[j] < order[best])) best = j;
        }
        int chosen = order[best];
        order[best] = order[k];
        order[k] = chosen;
    }
}

static void add_csv_header(ct_predictions *p) {
    ct_text_add(&p->out, "%s", p->unit);
    for (int k = 1; k <= p->n_top; k++) {
        if (k == 1)
            ct_text_add(&p->out, ",class,probability");
        else
            ct_text_add(&p->out, ",class_%d,probability_%d", k, k);
    }
    ct_text_add(&p->out, "\n");
}

static void add_csv(ct_predictions *p, const char *name, const float *row) {
    ct_csv_add(&p->out, name);
    for (int k = 0; k < p->n_top; k++) {
        ct_text_add(&p->out, ",");
        ct_csv_add(&p->out, ct_model_class(p->model, p->order[k]));
        ct_text_add(&p->out, ",%.7g", (double)row[p->order[k]]);
    }
    ct_text_add(&p->out, "\n");
}

static void add_json_class(ct_predictions *p, int label, const float *row) {
    ct_text_add(&p->out, "{\"class\": ");
    ct_json_add_string(&p->out, ct_model_class(p->model, label));
    ct_text_add(&p->out, ", \"label\": %d, \"probability\": %.7g}", label, (double)row[label]);
}

static void add_json(ct_predictions *p, const char *name, const float *row) {
    ct_text_add(&p->out, "%s\n  {\"%s\": ", p->out.n > 1 ? "," : "", p->unit);
    if (p->is_numbered)
        ct_text_add(&p->out, "%s", name);
    else
        ct_json_add_string(&p->out, name);
    ct_text_add(&p->out, ", \"top\": [");
    for (int k = 0; k < p->n_top; k++) {
        if (k > 0) ct_text_add(&p->out, ", ");
        add_json_class(p, p->order[k], row);
    }
    ct_text_add(&p->out, "]}");
}

ct_status ct_predictions_begin(ct_predictions *p, const ct_own *own, const char *unit) {
    int n_classes = ct_model_facts_of(p->model)->n_classes;
    int64_t n_top = ct_own_whole(own, "top");
    p->unit = unit;
    p->is_json = strcmp(ct_own_text(own, "format"), "json") == 0;
    p->n_top = n_top < n_classes ? (int)n_top : n_classes;
    CT_TRY(ct_make(&p->order, (size_t)n_classes, "the classes"));
    if (p->is_json)
        ct_text_add(&p->out, "[");
    else
        add_csv_header(p);
    return CT_OK;
}

void ct_predictions_add(ct_predictions *p, const char *name, int label, const float *row) {
    choose_top(p, row, ct_model_facts_of(p->model)->n_classes);
    p->n_labelled += label >= 0;
    p->n_correct += label >= 0 && label == p->order[0];
    (p->is_json ? add_json : add_csv)(p, name, row);
}

ct_status ct_predictions_end(ct_predictions *p, const ct_own *own, const char *what) {
    const char *path = ct_own_text(own, "out");
    if (p->is_json) ct_text_add(&p->out, "\n]\n");
    CT_TRY(ct_text_status(&p->out));
    if (p->n_labelled > 0)
        ct_log(CT_LOG_LINE, "accuracy %.2f %%: %zu of %zu %s",
               100 * (double)p->n_correct / (double)p->n_labelled, p->n_correct, p->n_labelled,
               what);
    if (path == NULL) {
        ct_show_lines(stdout, p->out.chars);
        return CT_OK;
    }
    CT_TRY(ct_own_is_given(own, "force") ? ct_file_replace(path, p->out.chars, p->out.n)
                                         : ct_file_write(path, p->out.chars, p->out.n));
    ct_log(CT_LOG_LINE, "predictions: %s", path);
    return CT_OK;
}

void ct_predictions_free(ct_predictions *p) {
    ct_text_free(&p->out);
    ct_free(p->order);
    ct_model_free(&p->model);
    *p = (ct_predictions){.model = NULL};
}
