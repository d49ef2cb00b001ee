/* Runs that differ in the lambdas alone as worlds of one: the same results from one launch, in
 * which a device has more to do at a time. They are made in a directory of their own and then moved
 * to where each would lie if it had been run alone (unshare.c, also for what was interrupted). */
#include <stdio.h>
#include <string.h>

#include "run/run.h"
#include "study/study_internal.h"
#include "util/file.h"

enum { MAX_NAMES = 1000 }; /* of launches that begin with the same cell */

static int count_seeds(const ct_config *config) {
    int n = 1;
    for (const char *at = config->seeds; *at != '\0'; at++) n += *at == ',';
    return n;
}

/* Everything that must be the same, as text. */
static ct_status common_text(const ct_cell *cell, ct_text *out) {
    ct_config config = cell->config;
    CT_TRY(ct_config_choose(&config));
    config.lambda_m = config.lambda_d = 0;
    config.out[0] = '\0';
    ct_config_print(&config, out);
    return ct_text_status(out);
}

static bool may_share(const ct_cell *cell) {
    ct_config config = cell->config;
    if (!cell->is_selected || cell->is_alone || !ct_cell_is_free(cell)) return false;
    (void)CT_CATCH(NULL, ct_config_choose(&config));
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
    CT_TRY(ct_config_choose(&config));
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

/* A launch that is left alone there (unshare.c says why) keeps its directory. */
static ct_status name_dir(const ct_study *study, const ct_cell *cell, ct_share *out) {
    for (int k = 1; k < MAX_NAMES; k++) {
        char ending[16] = "";
        if (k > 1) snprintf(ending, sizeof ending, "-%d", k);
        int n = snprintf(out->dir, sizeof out->dir, "%s/" CT_SHARED "%s%s", study->out, cell->name,
                         ending);
        if (n < 0 || (size_t)n + 64 > sizeof out->dir)
            return ct_refuse("out", "the name is too long: %s", study->out);
        if (!ct_dir_exists(out->dir)) return CT_OK;
    }
    return ct_fail(CT_IO, "%s has %d directories " CT_SHARED "%s...; remove them", study->out,
                   MAX_NAMES, cell->name);
}

ct_status ct_share_collect(ct_study *study, int first, int at_once, ct_share *out) {
    *out = (ct_share){.n = 0};
    const ct_cell *cell = &study->cells[first];
    int most = at_once / count_seeds(&cell->config);
    if (most > CT_SHARE_MAX) most = CT_SHARE_MAX;
    if (most < 2 || !may_share(cell)) return CT_OK;
    ct_status status = collect(study, first, most, out);
    if (status == CT_OK && out->n > 1) status = name_dir(study, cell, out);
    if (status == CT_OK && out->n > 1) return CT_OK;
    ct_text_free(&out->lambdas);
    *out = (ct_share){.n = 0};
    return status;
}

ct_status ct_share_config(const ct_cell *cell, const char *lambdas, const char *dir,
                          ct_config *out) {
    *out = cell->config;
    CT_TRY(ct_config_choose(out));
    out->lambda_m = out->lambda_d = 0;
    snprintf(out->lambdas, sizeof out->lambdas, "%s", lambdas);
    snprintf(out->out, sizeof out->out, "%s", dir);
    ct_config_fix(out);
    return CT_OK;
}

ct_status ct_share_run(ct_study *study, ct_share *share, bool keep, bool *is_stopped) {
    ct_config config;
    ct_status status = ct_share_config(share->cells[0], share->lambdas.chars, share->dir, &config);
    ct_text_free(&share->lambdas);
    CT_TRY(status);
    ct_error ended;
    (void)CT_CATCH(&ended, ct_train(&config));
    return ct_share_finish(study, share, &ended, keep, is_stopped);
}
