/* Whether the numbers of a run that was sent in agree with each other. Whoever forges one must forge
 * the others alike; training again is what shows the rest. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "study/submission_internal.h"

#define ROUNDED 1e-5  /* relative: metrics of light runs have six digits */
#define CLOSE   1e-12 /* sums in another order */

static bool is_near(double a, double b, double tolerance) {
    return (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * fmax(1, fmax(fabs(a), fabs(b)));
}

/* ---- one seed ---- */

typedef struct look {
    ct_candidate *candidate;
    uint64_t seed;
    int n_wrong;
} look;

static void compare(look *l, const char *what, double is, const char *where, double wanted,
                    double tolerance) {
    if (is_near(is, wanted, tolerance)) return;
    l->n_wrong++;
    ct_find(l->candidate, CT_FINDING_WRONG,
            "numbers of seed %" PRIu64 ": %s is %.9g in the summary, and %.9g in %s", l->seed, what,
            is, wanted, where);
}

/* The last line of the metrics. */
static void check_metrics(look *l, const ct_record *run) {
    if (run->n_epochs == 0) {
        l->n_wrong++;
        ct_find(l->candidate, CT_FINDING_WRONG, "numbers of seed %" PRIu64 ": no metrics", l->seed);
        return;
    }
    for (int k = 0; k < CT_N_METRICS; k++) {
        double last = run->epochs[run->n_epochs - 1].value[k];
        if (!isnan(last))
            compare(l, ct_metrics[k].key, ct_json_number(run->summary, ct_metrics[k].key),
                    "the metrics", last, ROUNDED);
    }
}

/* Every agent's accuracy. */
static void check_agents(look *l, const ct_record *run) {
    double sum = 0, low = INFINITY, high = -INFINITY;
    if (run->local_accuracy == NULL) return;
    for (int i = 0; i < run->n_agents; i++) {
        double value = run->local_accuracy[i];
        sum += value;
        low = fmin(low, value);
        high = fmax(high, value);
    }
    const char *where = "the agents' accuracies";
    const ct_json *s = run->summary;
    compare(l, "local_accuracy_mean", ct_json_number(s, "local_accuracy_mean"), where,
            sum / run->n_agents, CLOSE);
    compare(l, "local_accuracy_min", ct_json_number(s, "local_accuracy_min"), where, low, CLOSE);
    compare(l, "local_accuracy_max", ct_json_number(s, "local_accuracy_max"), where, high, CLOSE);
}

static void check_confusion(look *l, const ct_record *run) {
    double right = 0, all = 0;
    if (run->confusion == NULL) return;
    for (int a = 0; a < run->n_classes; a++)
        for (int b = 0; b < run->n_classes; b++) {
            double n = run->confusion[a * run->n_classes + b];
            all += n;
            right += a == b ? n : 0;
        }
    compare(l, "consensus_accuracy", ct_json_number(run->summary, "consensus_accuracy"),
            "the confusion matrix", right / all, CLOSE);
}

static void check_bytes(look *l, const ct_record *run) {
    double n = ct_json_number(run->summary, "iteration");
    compare(l, "bytes_sent_per_agent", ct_json_number(run->summary, "bytes_sent_per_agent"),
            "iterations times bytes of an iteration",
            n * ct_json_number(run->summary, "bytes_per_agent_per_iteration"), 1e-9);
}

static ct_status check_seed(ct_candidate *c, const ct_record *run) {
    look l = {.candidate = c, .seed = run->seed};
    if (run->summary == NULL) {
        ct_find(c, CT_FINDING_WRONG, "numbers of seed %" PRIu64 ": no summary", run->seed);
        return CT_OK;
    }
    check_metrics(&l, run);
    check_agents(&l, run);
    check_confusion(&l, run);
    check_bytes(&l, run);
    if (l.n_wrong == 0)
        ct_find(c, CT_FINDING_OK,
                "numbers of seed %" PRIu64 ": consensus %.2f %%, as its metrics and its test say",
                run->seed, 100 * ct_json_number(run->summary, "consensus_accuracy"));
    return CT_OK;
}

/* ---- means over the seeds ---- */

static _Thread_local ct_epoch_sum sums[CT_N_METRICS];
static _Thread_local int n_seeds;

static ct_status add_seed(ct_candidate *c, const ct_record *run) {
    (void)c;
    n_seeds++;
    for (int k = 0; k < CT_N_METRICS; k++) {
        double value = ct_json_number(run->summary, ct_metrics[k].key);
        if (!isnan(value)) ct_epoch_add(&sums[k], value);
    }
    return CT_OK;
}

static ct_status check_means(ct_candidate *c) {
    int n_wrong = 0;
    memset(sums, 0, sizeof sums);
    n_seeds = 0;
    CT_TRY(ct_candidate_each_seed(c, add_seed));
    if (n_seeds < 2) return CT_OK;
    for (int k = 0; k < CT_N_METRICS; k++) {
        const ct_metric *m = &ct_metrics[k];
        if (m->deviation == NULL || sums[k].n != n_seeds) continue;
        double mean = ct_json_number(c->summary, m->key),
               deviation = ct_json_number(c->summary, m->deviation);
        bool is_it = is_near(mean, ct_epoch_mean(&sums[k]), 1e-9) &&
                     is_near(deviation, ct_epoch_deviation(&sums[k]), 1e-6);
        if (is_it) continue;
        n_wrong++;
        ct_find(c, CT_FINDING_WRONG, "means: %s is %.9g +- %.3g, and its seeds give %.9g +- %.3g",
                m->key, mean, deviation, ct_epoch_mean(&sums[k]), ct_epoch_deviation(&sums[k]));
    }
    if (n_wrong == 0) ct_find(c, CT_FINDING_OK, "means: those of its %d seeds", n_seeds);
    return CT_OK;
}

ct_status ct_check_numbers(ct_candidate *c) {
    CT_TRY(ct_candidate_each_seed(c, check_seed));
    return check_means(c);
}
