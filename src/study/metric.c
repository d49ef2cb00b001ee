#include "study/metric.h"

#include <math.h>
#include <string.h>

#include "util/file.h"
#include "util/memory.h"
#include "util/text.h"

const ct_metric ct_metrics[] = {
    {"consensus", "consensus %", "accuracy of the consensus model (%)", "consensus_accuracy",
     "consensus_accuracy_std", 100, 2},
    {"late", "late %", "accuracy of the consensus model, mean over the end of the run (%)",
     "consensus_accuracy_late", "consensus_accuracy_late_std", 100, 2},
    {"mean", "mean %", "mean accuracy of the agents' models (%)", "local_accuracy_mean",
     "local_accuracy_mean_std", 100, 2},
    {"worst", "worst %", "accuracy of the worst agent (%)", "local_accuracy_min",
     "local_accuracy_min_std", 100, 2},
    {"best", "best %", "accuracy of the best agent (%)", "local_accuracy_max",
     "local_accuracy_max_std", 100, 2},
    {"train", "train %", "training accuracy (%)", "train_accuracy", "train_accuracy_std", 100, 2},
    {"loss", "test loss", "test loss of the consensus model", "consensus_loss",
     "consensus_loss_std", 1, 4},
    {"distance", "distance", "squared distance to the mean model", "consensus_distance",
     "consensus_distance_std", 1, 4},
#define TERM(id, name, axis, digits) {name, name, axis, name, name "_std", 1, digits},
#include "loss/term_list.h"
#undef TERM
    {"mib-iteration", "MiB/iteration", "MiB sent by an agent in an iteration",
     "mib_per_agent_per_iteration", NULL, 1, 3},
    {"mib", "MiB", "MiB sent by an agent", "bytes_sent_per_agent", NULL, 1.0 / (1 << 20), 1},
    {"gmac", "GMAC/iteration", "GMAC of an agent in an iteration", "gmacs_per_agent_per_iteration",
     NULL, 1, 4},
    {"overhead", "overhead", "part of the arithmetic for cross-features", "compute_overhead", NULL,
     1, 3},
    {"seconds", "seconds", "seconds", "seconds", NULL, 1, 1},
    {NULL, NULL, NULL, NULL, NULL, 0, 0},
};

ct_status ct_metric_find(const char *name, const ct_metric **out) {
    ct_text known = {0};
    for (const ct_metric *m = ct_metrics; m->name != NULL; m++) {
        ct_text_add(&known, "%s%s", m == ct_metrics ? "" : ", ", m->name);
        if (strcmp(m->name, name) != 0) continue;
        *out = m;
        ct_text_free(&known);
        return CT_OK;
    }
    ct_status status =
        ct_fail(CT_INVAL, "no metric '%s'; known: %s", name, known.failed ? "?" : known.chars);
    ct_text_free(&known);
    return status;
}

bool ct_metric_rises(const ct_metric *metric) {
    return strstr(metric->key, "accuracy") != NULL;
}

ct_status ct_summary_read(const char *dir, ct_json **out) {
    ct_blob blob = {0};
    char *path = ct_path_join(dir, "summary.json");
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_read(path, 1 << 24, &blob);
    if (status == CT_OK) status = ct_json_parse((const char *)blob.bytes, blob.n, path, out);
    ct_blob_free(&blob);
    ct_free(path);
    return status;
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
