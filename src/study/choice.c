/* What was tried and chosen, as a file and in memory; and halving itself. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/metric.h"
#include "study/study_internal.h"
#include "study/tune.h"

#define VERSION 1

/* ---- halving ---- */

static bool is_ahead(const double *scores, int a, int b) {
    bool has_a = !isnan(scores[a]), has_b = !isnan(scores[b]);
    if (has_a != has_b) return has_a;
    if (has_a && scores[a] != scores[b]) return scores[a] > scores[b];
    return a < b;
}

int ct_halving_size(int n) {
    return (n + 1) / 2;
}

void ct_halving_rank(const double *scores, int *trials, int n) {
    for (int k = 1; k < n; k++) {
        int trial = trials[k], at = k;
        for (; at > 0 && is_ahead(scores, trial, trials[at - 1]); at--) trials[at] = trials[at - 1];
        trials[at] = trial;
    }
}

/* The trials of a rung, in order. */
static int list_tried(const ct_choice *c, int rung, int *trials) {
    int n = 0;
    for (int k = 0; k < c->n_trials; k++)
        if (c->is_tried[rung * c->n_trials + k]) trials[n++] = k;
    return n;
}

int ct_choice_rank(const ct_choice *c, int rung, int *trials) {
    int n = list_tried(c, rung, trials);
    ct_halving_rank(&c->scores[rung * c->n_trials], trials, n);
    return n;
}

/* It diverged in this rung or a later one. */
static bool is_dead(const ct_choice *c, int rung, int trial) {
    for (int r = rung; r < c->n_rungs; r++)
        if (c->is_tried[r * c->n_trials + trial] && isnan(c->scores[r * c->n_trials + trial]))
            return true;
    return false;
}

/* The rung has the best `n_wanted` of the rung before (trials [n_before], ranked), and further ones
 * only where of all but one nothing came. */
static bool is_rung(const ct_choice *c, int rung, const int *trials, int n_before, int n_wanted,
                    char *why, size_t size) {
    const bool *is_tried = &c->is_tried[rung * c->n_trials];
    int n = 0, n_alive = 0;
    for (int k = 0; k < n_before; k++) n += is_tried[trials[k]];
    for (int k = 0; k < n && n >= n_wanted; k++) {
        n_alive += !is_dead(c, rung, trials[k]);
        if (is_tried[trials[k]]) continue;
        snprintf(why, size, "combination %d of rung %d should have gone on", trials[k] + 1, rung);
        return false;
    }
    if (n == n_wanted || (n > n_wanted && n_alive <= 1)) return true;
    snprintf(why, size, "rung %d has %d combinations, not %d", rung + 1, n, n_wanted);
    return false;
}

bool ct_choice_holds(const ct_choice *c, char *why, size_t size) {
    int trials[CT_STUDY_CELLS];
    int n = c->n_trials, n_wanted = c->n_trials;
    if (c->is_open) {
        snprintf(why, size, "it was interrupted, and nothing was chosen");
        return false;
    }
    for (int k = 0; k < n; k++) trials[k] = k;
    for (int r = 0; r < c->n_rungs; r++) {
        if (!is_rung(c, r, trials, n, n_wanted, why, size)) return false;
        n = ct_choice_rank(c, r, trials);
        n_wanted = ct_halving_size(n_wanted);
    }
    int best = isnan(c->scores[(c->n_rungs - 1) * c->n_trials + trials[0]]) ? -1 : trials[0];
    if (best == c->chosen) return true;
    snprintf(why, size, "the best of the last rung is combination %d, and %d was chosen", best + 1,
             c->chosen + 1);
    return false;
}

/* ---- as a file ---- */

static void add_rung(const ct_choice *c, int rung, ct_text *out) {
    const char *before = "";
    ct_text_add(out, "    {\"epochs\": %lld, \"trials\": [\n", (long long)c->epochs[rung]);
    for (int k = 0; k < c->n_trials; k++) {
        CT_SCOPED(ct_text) options = {0};
        if (!c->is_done[rung * c->n_trials + k]) continue;
        ct_axes_print(&c->axes, k, &options);
        ct_text_add(out, "%s        {\"trial\": %d, \"options\": ", before, k + 1);
        ct_json_add_string(out, options.n > 0 ? options.chars + 1 : "");
        ct_text_add(out, ", \"validation_accuracy\": ");
        ct_json_add_number(out, c->scores[rung * c->n_trials + k]);
        ct_text_add(out, "}");
        before = ",\n";
        if (options.failed) out->failed = true;
    }
    ct_text_add(out, "]}%s\n", rung + 1 < c->n_rungs ? "," : "");
}

void ct_choice_print(const ct_choice *c, ct_text *out) {
    ct_text_add(out, "{\"crosstalk\": \"tuned\", \"version\": %d,\n \"tried\": ", VERSION);
    ct_json_add_string(out, c->grid);
    ct_text_add(out, ",\n \"seeds\": ");
    ct_json_add_string(out, c->seeds);
    ct_text_add(out, ",\n \"validation_fraction\": ");
    ct_json_add_number(out, c->fraction);
    ct_text_add(out, ",\n \"rungs\": [\n");
    for (int r = 0; r < c->n_rungs; r++) add_rung(c, r, out);
    if (c->is_open)
        ct_text_add(out, " ],\n \"chosen\": null}\n");
    else
        ct_text_add(out, " ],\n \"chosen\": %d}\n", c->chosen + 1);
}

void ct_choice_free(ct_choice **choice) {
    if (*choice == NULL) return;
    ct_free((*choice)->scores);
    ct_free((*choice)->is_tried);
    ct_free((*choice)->is_done);
    ct_free(*choice);
    *choice = NULL;
}

static ct_status take_text(const ct_json *json, const char *key, char *out, const char *what) {
    const ct_json *text = ct_json_get(json, key);
    if (text == NULL || text->kind != CT_JSON_STRING || strlen(text->string) >= CT_CONFIG_TEXT)
        return ct_fail(CT_IO, "%s: \"%s\" is no short text", what, key);
    snprintf(out, CT_CONFIG_TEXT, "%s", text->string);
    return CT_OK;
}

static ct_status take_rung(const ct_json *json, ct_choice *c, int rung, const char *what) {
    const ct_json *trials = ct_json_get(json, "trials");
    double epochs = ct_json_number(json, "epochs");
    bool ok = trials != NULL && trials->kind == CT_JSON_ARRAY && epochs >= 1 && epochs <= 1e6;
    if (!ok) return ct_fail(CT_IO, "%s: rung %d has no epochs or trials", what, rung + 1);
    c->epochs[rung] = (int64_t)epochs;
    for (const ct_json *t = trials->child; t != NULL; t = t->next) {
        double k = t->kind == CT_JSON_OBJECT ? ct_json_number(t, "trial") : NAN;
        if (!(k >= 1 && k <= c->n_trials) || k != floor(k))
            return ct_fail(CT_IO, "%s: rung %d has a trial that is none", what, rung + 1);
        int at = rung * c->n_trials + (int)k - 1;
        c->is_tried[at] = c->is_done[at] = true;
        c->scores[at] = ct_json_number(t, "validation_accuracy");
    }
    return CT_OK;
}

static ct_status take(const ct_json *json, const char *what, ct_choice *c) {
    const ct_json *rungs = ct_json_get(json, "rungs");
    const ct_json *choice = ct_json_get(json, "chosen");
    c->is_open = choice != NULL && choice->kind == CT_JSON_NULL;
    double chosen = c->is_open ? 0 : ct_json_number(json, "chosen");
    CT_TRY(take_text(json, "tried", c->grid, what));
    CT_TRY(take_text(json, "seeds", c->seeds, what));
    c->fraction = ct_json_number(json, "validation_fraction");
    CT_TRY(ct_axes_add_grid(&c->axes, what, c->grid));
    c->n_trials = ct_axes_count(&c->axes);
    bool ok = rungs != NULL && rungs->kind == CT_JSON_ARRAY && rungs->n_children >= 1 &&
              rungs->n_children <= CT_MAX_RUNGS && c->n_trials <= CT_STUDY_CELLS && chosen >= 0 &&
              chosen <= c->n_trials && chosen == floor(chosen);
    if (!ok) return ct_fail(CT_IO, "%s: no rungs, or no choice", what);
    c->chosen = (int)chosen - 1;
    size_t n = rungs->n_children * (size_t)c->n_trials;
    CT_TRY(ct_make(&c->scores, n, "what was tried"));
    CT_TRY(ct_make(&c->is_tried, n, "what was tried"));
    CT_TRY(ct_make(&c->is_done, n, "what was tried"));
    for (size_t k = 0; k < n; k++) c->scores[k] = NAN;
    for (const ct_json *r = rungs->child; r != NULL; r = r->next)
        CT_TRY(take_rung(r, c, c->n_rungs++, what));
    return CT_OK;
}

ct_status ct_choice_take(const ct_json *json, const char *what, ct_choice **out) {
    CT_SCOPED_HANDLE(ct_choice) choice = NULL;
    const ct_json *kind = json->kind == CT_JSON_OBJECT ? ct_json_get(json, "crosstalk") : NULL;
    if (kind == NULL || kind->kind != CT_JSON_STRING || strcmp(kind->string, "tuned") != 0 ||
        ct_json_number(json, "version") != VERSION)
        return ct_fail(CT_IO, "%s: it does not say what was tried", what);
    CT_TRY(ct_make(&choice, 1, "what was tried"));
    CT_TRY(take(json, what, choice));
    ct_move(out, &choice);
    return CT_OK;
}
