/* Runs that differ in the lambdas alone as worlds of one: the same results from one launch, in
 * which a device has more to do at a time. They are made in a directory of their own and then moved
 * to where each would lie if it had been run alone. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run/checkpoint.h"
#include "run/output.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

enum { MAX_DEPTH = 4 }; /* shared/pair/seed/checkpoint... */

static int count_seeds(const ct_config *config) {
    int n = 1;
    for (const char *at = config->seeds; *at != '\0'; at++) n += *at == ',';
    return n;
}

/* Everything that must be the same, as text. */
static ct_status common_text(const ct_cell *cell, ct_text *out) {
    ct_config config = cell->config;
    CT_TRY(ct_config_resolve(&config));
    config.lambda_m = config.lambda_d = 0;
    config.out[0] = '\0';
    ct_config_print(&config, out);
    return ct_text_status(out);
}

static bool may_share(const ct_cell *cell) {
    ct_config config = cell->config;
    if (!cell->is_selected || cell->is_alone || cell->state != CT_CELL_MISSING) return false;
    if (ct_dir_exists(config.out) || config.force) return false;
    if (ct_config_resolve(&config) != CT_OK) ct_clear_message();
    return strcmp(config.loss, "ccl") == 0 && config.ccl_adaptive == 0 && config.lambdas[0] == '\0';
}

static ct_status is_like(const ct_cell *cell, const ct_text *wanted, bool *out) {
    ct_text text = {0};
    ct_status status = common_text(cell, &text);
    *out = status == CT_OK && strcmp(text.chars, wanted->chars) == 0;
    ct_text_free(&text);
    return status;
}

static ct_status add_lambdas(const ct_cell *cell, ct_text *lambdas) {
    ct_config config = cell->config;
    CT_TRY(ct_config_resolve(&config));
    ct_text_add(lambdas, "%s", lambdas->n > 0 ? "," : "");
    ct_json_add_number(lambdas, config.lambda_m);
    ct_text_add(lambdas, ":");
    ct_json_add_number(lambdas, config.lambda_d);
    return CT_OK;
}

/* The cells from `first` on that can be run with it, and their lambdas. */
static ct_status collect(ct_study *study, int first, int most, ct_share *share) {
    ct_text wanted = {0};
    ct_status status = common_text(&study->cells[first], &wanted);
    for (int k = first; k < study->n_cells && share->n < most && status == CT_OK; k++) {
        bool is_one = false;
        if (!may_share(&study->cells[k])) continue;
        status = is_like(&study->cells[k], &wanted, &is_one);
        if (!is_one || share->lambdas.n + 64 > CT_CONFIG_TEXT) continue;
        status = add_lambdas(&study->cells[k], &share->lambdas);
        share->cells[share->n++] = &study->cells[k];
    }
    ct_text_free(&wanted);
    return status == CT_OK ? ct_text_status(&share->lambdas) : status;
}

ct_status ct_share_collect(ct_study *study, int first, int at_once, ct_share *out) {
    *out = (ct_share){.n = 0};
    const ct_cell *cell = &study->cells[first];
    int most = at_once / count_seeds(&cell->config);
    if (most > CT_SHARE_MAX) most = CT_SHARE_MAX;
    if (most < 2 || !may_share(cell)) return CT_OK;
    ct_status status = collect(study, first, most, out);
    if (status != CT_OK || out->n < 2) {
        ct_text_free(&out->lambdas);
        *out = (ct_share){.n = 0};
    }
    ct_text dir = {0};
    ct_text_add(&dir, "%s/shared-%s", study->out, cell->name);
    if (status == CT_OK) status = ct_text_status(&dir);
    if (status == CT_OK && dir.n + 64 > sizeof out->dir)
        status = ct_fail(CT_INVAL, "--out: the name is too long: %s", study->out);
    if (status == CT_OK) memcpy(out->dir, dir.chars, dir.n + 1);
    ct_text_free(&dir);
    return status;
}

static ct_status share_config(const ct_share *share, ct_config *out) {
    *out = share->cells[0]->config;
    CT_TRY(ct_config_resolve(out));
    out->lambda_m = out->lambda_d = 0;
    snprintf(out->lambdas, sizeof out->lambdas, "%s", share->lambdas.chars);
    memcpy(out->out, share->dir, sizeof out->out);
    ct_config_fix(out);
    return CT_OK;
}

/* Goes on from a checkpoint of the same runs; whatever else is there is in the way. */
static ct_status train(const ct_share *share) {
    ct_config config;
    CT_TRY(share_config(share, &config));
    if (ct_checkpoint_exists(share->dir)) {
        ct_config resumed = config;
        memcpy(resumed.resume, share->dir, sizeof resumed.resume);
        ct_status status = ct_train(&resumed);
        if (status == CT_OK || status == CT_STOPPED || status == CT_DIVERGED) return status;
        ct_note("%s begins again: %s", share->dir, ct_message());
        ct_clear_message();
    }
    ct_study_remove_dir(share->dir, MAX_DEPTH);
    return ct_train(&config);
}

/* Where a cell's run is until it is moved; ct_free() it. NULL without memory. */
static char *made_at(const ct_share *share, const ct_cell *cell) {
    char pair[64];
    ct_config config = cell->config;
    if (ct_config_resolve(&config) != CT_OK) return NULL;
    ct_output_pair_name(config.lambda_m, config.lambda_d, pair, sizeof pair);
    return ct_path_join(share->dir, pair);
}

static ct_status move_run(const char *from, ct_cell *cell, bool keep) {
    const char *to = cell->config.out;
    if (!keep) CT_TRY(ct_study_lighten(from, cell->name));
    if (rename(from, to) != 0)
        return ct_fail(CT_IO, "%s: cannot become %s: %s", from, to, strerror(errno));
    CT_TRY(ct_summary_read(to, &cell->summary));
    cell->state = CT_CELL_DONE;
    return CT_OK;
}

/* Finished runs to their places. */
static ct_status move_runs(const ct_share *share, bool keep, int *n_moved) {
    ct_status status = CT_OK;
    *n_moved = 0;
    for (int k = 0; k < share->n && status == CT_OK; k++) {
        char *from = made_at(share, share->cells[k]);
        char *summary = from != NULL ? ct_path_join(from, "summary.json") : NULL;
        if (summary == NULL) status = ct_fail(CT_NOMEM, "no memory for a path");
        if (status == CT_OK && ct_file_exists(summary)) {
            status = move_run(from, share->cells[k], keep);
            ++*n_moved;
        }
        ct_free(summary);
        ct_free(from);
    }
    return status;
}

static ct_status train_and_move(ct_share *share, bool keep, bool *is_stopped) {
    int n_moved = 0;
    CT_TRY(move_runs(share, keep, &n_moved)); /* of an earlier time, ended before it came to it */
    ct_status status = n_moved == 0 ? train(share) : CT_OK;
    if (status == CT_DIVERGED) {
        ct_note("%s; each is run alone", ct_message());
        ct_clear_message();
        for (int k = 0; k < share->n; k++) share->cells[k]->is_alone = true;
    } else {
        CT_TRY(status);
        if (n_moved == 0) CT_TRY(move_runs(share, keep, &n_moved));
        *is_stopped = n_moved == 0; /* its checkpoint stays */
    }
    if (!*is_stopped) ct_study_remove_dir(share->dir, MAX_DEPTH);
    return CT_OK;
}

ct_status ct_share_run(ct_share *share, bool keep, bool *is_stopped) {
    ct_status status = train_and_move(share, keep, is_stopped);
    ct_text_free(&share->lambdas);
    return status;
}
