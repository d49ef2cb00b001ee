/* A run that was sent in, trained again and compared: every number of its metrics, and of its summary if
 * all epochs are trained. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run.h"
#include "study/submission_internal.h"
#include "util/file.h"

#define CLOSE 0.01 /* relative: the cross-entropy of the first epoch */

static bool is_of_clock(ct_metric_id id) {
    return id == CT_METRIC_SECONDS || id == CT_METRIC_LINK_SECONDS;
}

/* ---- options ---- */

/* Those that were saved, but for what this machine has its own of. */
static ct_status configure(const ct_candidate *c, const ct_record *run, const char *dir,
                           ct_config *out) {
    const ct_config *given = c->submission->given;
    char text[32];
    ct_config_init(out);
    for (const ct_json *o = c->options->child; o != NULL; o = o->next) {
        CT_SCOPED(ct_text) value = {0};
        bool is_left = ct_config_is_local(o->key) || ct_schema_find(o->key) == NULL ||
                       strcmp(o->key, "seeds") == 0 || strcmp(o->key, "lambdas") == 0;
        ct_option_text(o, &value);
        CT_TRY(ct_text_status(&value));
        if (!is_left && value.n > 0) CT_TRY(ct_config_put(out, o->key, value.chars));
    }
    snprintf(text, sizeof text, "%" PRIu64, run->seed);
    CT_TRY(ct_config_put(out, "seed", text));
    ct_config_override(out, given);
    CT_TRY(ct_config_put(out, "out", dir));
    CT_TRY(ct_config_put(out, "force", "on"));
    double per_epoch =
        ct_json_number(run->summary, "iteration") / ct_json_number(run->summary, "epoch");
    if (c->submission->epochs == 0 || !(per_epoch >= 1)) return CT_OK;
    snprintf(text, sizeof text, "%.0f", (double)c->submission->epochs * floor(per_epoch + 0.5));
    return ct_config_put(out, "iterations", text);
}

/* ---- comparing ---- */

static const ct_record_row *row_of(const ct_record *run, double epoch) {
    for (int k = 0; k < run->n_epochs; k++)
        if (run->epochs[k].value[CT_METRIC_EPOCH] == epoch) return &run->epochs[k];
    return NULL;
}

/* Six digits are what a light run keeps. */
static bool is_same(double a, double b) {
    char x[32], y[32];
    snprintf(x, sizeof x, "%.6g", a);
    snprintf(y, sizeof y, "%.6g", b);
    return strcmp(x, y) == 0;
}

typedef struct comparison {
    int n_same, n_different;
    char first[160]; /* of the different ones */
} comparison;

static void compare_number(comparison *x, const char *key, double epoch, double then, double now,
                           bool is_same_now) {
    if (is_same_now) {
        x->n_same++;
        return;
    }
    if (x->n_different++ == 0)
        snprintf(x->first, sizeof x->first, "%s of epoch %.0f was %.9g and is %.9g", key, epoch,
                 then, now);
}

static void compare_metrics(const ct_record *then, const ct_record *now, comparison *x) {
    for (int e = 0; e < now->n_epochs; e++) {
        const ct_record_row *ours = &now->epochs[e];
        double epoch = ours->value[CT_METRIC_EPOCH];
        const ct_record_row *theirs = row_of(then, epoch);
        for (int k = 0; k < CT_N_METRICS && theirs != NULL; k++)
            if (!is_of_clock(k) && !isnan(theirs->value[k]) && !isnan(ours->value[k]))
                compare_number(x, ct_metrics[k].key, epoch, theirs->value[k], ours->value[k],
                               is_same(theirs->value[k], ours->value[k]));
    }
}

/* To the last bit. */
static void compare_summaries(const ct_record *then, const ct_record *now, comparison *x) {
    for (int k = 0; k < CT_N_METRICS; k++) {
        double theirs = ct_json_number(then->summary, ct_metrics[k].key);
        double ours = ct_json_number(now->summary, ct_metrics[k].key);
        if (!is_of_clock(k) && !isnan(theirs))
            compare_number(x, ct_metrics[k].key, ct_json_number(now->summary, "epoch"), theirs,
                           ours, theirs == ours);
    }
}

/* What may move the last bits; "": nothing does. */
static void say_other_machine(const ct_record *then, const ct_record *now, char *out, size_t size) {
    static const char *const keys[] = {"version", "commit", "device", "instructions", "precision"};
    const ct_json *a = ct_json_get(then->summary, "identity"),
                  *b = ct_json_get(now->summary, "identity");
    size_t n = 0;
    out[0] = '\0';
    for (size_t k = 0; k < sizeof keys / sizeof *keys && n < size; k++) {
        const ct_json *x = a != NULL ? ct_json_get(a, keys[k]) : NULL,
                      *y = b != NULL ? ct_json_get(b, keys[k]) : NULL;
        bool is_known = x != NULL && y != NULL && x->kind == CT_JSON_STRING;
        if (is_known && strcmp(x->string, y->string) == 0) continue;
        n += (size_t)snprintf(out + n, size - n, "%s%s", n > 0 ? ", " : "", keys[k]);
    }
}

/* Another machine's last bits grow while it trains, and have not yet after the first epoch. */
static bool is_close(const ct_record *then, const ct_record *now) {
    for (int e = 0; e < now->n_epochs; e++) {
        const ct_record_row *ours = &now->epochs[e];
        const ct_record_row *theirs = row_of(then, ours->value[CT_METRIC_EPOCH]);
        double a = theirs != NULL ? theirs->value[CT_METRIC_CE] : NAN;
        if (!isnan(a)) return fabs(a - ours->value[CT_METRIC_CE]) <= CLOSE * fabs(a);
    }
    return false;
}

static void tell(ct_candidate *c, const ct_record *then, const ct_record *now) {
    comparison x = {.n_same = 0};
    char other[128];
    bool is_whole = c->submission->epochs == 0;
    compare_metrics(then, now, &x);
    if (is_whole) compare_summaries(then, now, &x);
    say_other_machine(then, now, other, sizeof other);
    if (x.n_different == 0 && x.n_same > 0)
        ct_find(c, CT_FINDING_OK,
                "bits of seed %" PRIu64 ": %d numbers of %s trained again are the same", then->seed,
                x.n_same, is_whole ? "all epochs" : "the first epochs");
    else if (x.n_same == 0 && x.n_different == 0)
        ct_find(c, CT_FINDING_NOTE, "bits of seed %" PRIu64 ": there is nothing to compare",
                then->seed);
    else
        ct_find(c, other[0] != '\0' && is_close(then, now) ? CT_FINDING_NOTE : CT_FINDING_WRONG,
                "bits of seed %" PRIu64 ": %d of %d numbers differ: %s%s%s%s", then->seed,
                x.n_different, x.n_different + x.n_same, x.first,
                other[0] != '\0' ? "; it was made with another " : "", other,
                other[0] != '\0' ? ", which may move last digits" : "");
}

static ct_status retrain(ct_candidate *c, const ct_record *then, const char *dir) {
    CT_SCOPED_BY(ct_record_unload, ct_record) now = {0};
    ct_config config;
    ct_error error;
    CT_TRY(configure(c, then, dir, &config));
    ct_status status = CT_CATCH(&error, ct_train(&config));
    if (status == CT_NOMEM || status == CT_STOPPED) return ct_fail_again(&error);
    if (status != CT_OK) {
        ct_find(c, CT_FINDING_WRONG, "bits of seed %" PRIu64 ": it cannot be trained: %s",
                then->seed, error.text);
        return CT_OK;
    }
    CT_TRY(ct_record_load(dir, CT_READ_ALL, &now));
    tell(c, then, &now);
    return CT_OK;
}

static _Thread_local bool is_first;

static ct_status check_first(ct_candidate *c, const ct_record *run) {
    const char *scratch = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    char dir[256];
    if (!is_first || run->summary == NULL) return CT_OK;
    is_first = false;
    int n = snprintf(dir, sizeof dir, "%s/crosstalk-again-XXXXXX", scratch);
    if (n < 0 || (size_t)n >= sizeof dir || mkdtemp(dir) == NULL)
        return ct_fail(CT_IO, "cannot make a directory in %s (TMPDIR)", scratch);
    ct_status status = retrain(c, run, dir);
    ct_study_remove_dir(dir);
    return status;
}

ct_status ct_check_bits(ct_candidate *c) {
    is_first = true;
    return ct_candidate_each_seed(c, check_first);
}
