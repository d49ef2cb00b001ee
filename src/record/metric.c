#include "record/metric.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"
#include "util/text.h"

#define STD(key) key "_std"
#define ONE(key) NULL
const ct_metric ct_metrics[CT_N_METRICS] = {
#define METRIC(id, key, name, title, axis, deviation, factor, digits)                              \
    [CT_METRIC_##id] = {name, title, axis, key, deviation(key), factor, digits},
#include "record/metric_list.h"
#undef METRIC
};

ct_status ct_metric_find(const char *name, const ct_metric **out) {
    CT_SCOPED(ct_text) known = {0};
    ct_guess guess = {.word = name};
    for (const ct_metric *m = ct_metrics; m < ct_metrics + CT_N_METRICS; m++) {
        if (m->name == NULL) continue;
        ct_guess_try(&guess, m->name);
        ct_text_add(&known, "%s%s", m == ct_metrics ? "" : ", ", m->name);
        if (strcmp(m->name, name) != 0) continue;
        *out = m;
        return CT_OK;
    }
    bool is_near = guess.nearest[0] != '\0';
    return ct_fail(CT_INVAL, "no metric '%s'; %s%s%sknown: %s", name,
                   is_near ? "did you mean " : "", guess.nearest, is_near ? "? " : "",
                   known.failed ? "?" : known.chars);
}

bool ct_metric_by_key(const char *key, ct_metric_id *out) {
    for (int m = 0; m < CT_N_METRICS; m++) {
        if (key == NULL || strcmp(ct_metrics[m].key, key) != 0) continue;
        *out = (ct_metric_id)m;
        return true;
    }
    return false;
}

bool ct_metric_rises(const ct_metric *metric) {
    return strstr(metric->key, "accuracy") != NULL;
}

double ct_json_number(const ct_json *object, const char *key) {
    const ct_json *member = object != NULL && key != NULL ? ct_json_get(object, key) : NULL;
    return member != NULL && member->kind == CT_JSON_NUMBER ? member->number : NAN;
}

double ct_metric_value(const ct_metric *metric, const ct_json *summary) {
    return ct_json_number(summary, metric->key) * metric->factor;
}

double ct_metric_deviation(const ct_metric *metric, const ct_json *summary) {
    return ct_json_number(summary, metric->deviation) * metric->factor;
}

void ct_epoch_add(ct_epoch_sum *s, double value) {
    s->sum += value;
    s->squares += value * value;
    s->n++;
}

double ct_epoch_mean(const ct_epoch_sum *s) {
    return s->n > 0 ? s->sum / s->n : NAN;
}

double ct_epoch_deviation(const ct_epoch_sum *s) {
    if (s->n < 2) return NAN;
    double mean = s->sum / s->n, variance = (s->squares - s->n * mean * mean) / (s->n - 1);
    return variance > 0 ? sqrt(variance) : 0;
}
