/* Running what is missing: finished runs are kept, interrupted ones go on, others begin. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "run/checkpoint.h"
#include "run/run.h"
#include "run/signals.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

#define DIVERGED                                                                                   \
    "diverged.json" /* beside config.txt: why, and the options, like summary.json's                \
                     */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what is there ---- */

/* Options that have come since the run are at what they then were; "auto" is whatever it became
 * (never bf16); another machine and other files do not matter, but a run cut short does. */
static bool does_not_matter(const ct_json *ours, const ct_json *theirs) {
    if (theirs == NULL) return true;
    if (strcmp(ours->key, "iterations") == 0) return false;
    bool is_bf16 = theirs->kind == CT_JSON_STRING && strcmp(theirs->string, "bf16") == 0;
    if (ours->kind == CT_JSON_STRING && strcmp(ours->string, "auto") == 0) return !is_bf16;
    return ct_config_is_local(ours->key);
}

/* The first option that differs, in name[64]; "" = none. */
static ct_status find_difference(const ct_cell *cell, const ct_json *saved, char *name,
                                 ct_text *ours, ct_text *theirs) {
    const char *source = "";
    ct_config resolved = cell->config;
    CT_TRY(ct_config_choose(&resolved));
    CT_TRY(ct_config_find_difference(&resolved, ct_json_get(saved, "options"), does_not_matter,
                                     name, 64, ours, theirs));
    if (name[0] != '\0' || !ct_cell_has_other_data(cell, saved, &source)) return CT_OK;
    snprintf(name, 64, "data-dir");
    ct_text_add(ours, "%s, which may be other data", cell->config.data_dir);
    ct_text_add(theirs, "%s", source);
    return CT_OK;
}

ct_status ct_cell_is_like(const ct_cell *cell, const ct_json *summary, bool *out) {
    ct_text ours = {0}, theirs = {0};
    char name[64] = "";
    ct_status status = find_difference(cell, summary, name, &ours, &theirs);
    *out = status == CT_OK && name[0] == '\0';
    ct_text_free(&ours);
    ct_text_free(&theirs);
    return status;
}

static ct_status check_options(const ct_cell *cell, const ct_json *saved) {
    ct_text ours = {0}, theirs = {0};
    char name[64] = "";
    ct_status status = find_difference(cell, saved, name, &ours, &theirs);
    if (status == CT_OK && name[0] != '\0')
        status = ct_fail(CT_INVAL,
                         "%s was run with @%s %s, and here it is %s; name another @out, or run it "
                         "again with @force",
                         cell->config.out, name, theirs.n > 0 ? theirs.chars : "''",
                         ours.n > 0 ? ours.chars : "''");
    ct_text_free(&ours);
    ct_text_free(&theirs);
    return status;
}

static ct_status check_diverged(ct_cell *cell) {
    ct_blob blob = {0};
    ct_json *saved = NULL;
    char *path = ct_path_join(cell->config.out, DIVERGED);
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_read(path, 1 << 20, &blob);
    if (status == CT_OK) status = ct_json_parse((const char *)blob.bytes, blob.n, path, &saved);
    if (status == CT_OK) status = check_options(cell, saved);
    if (status == CT_OK) cell->state = CT_CELL_DIVERGED;
    ct_json_free(&saved);
    ct_blob_free(&blob);
    ct_free(path);
    return status;
}

/* A run that has begun begins again if there is no checkpoint: it must be this one. */
static ct_status check_begun(const ct_cell *cell) {
    ct_config saved;
    ct_text text = {0};
    ct_json *options = NULL;
    ct_config_init(&saved);
    char *path = ct_path_join(cell->config.out, "config.txt");
    ct_status status = path != NULL ? ct_config_read(&saved, path) : ct_fail(CT_NOMEM, "no memory");
    ct_text_add(&text, "{\"options\": {");
    ct_config_print_json(&saved, &text);
    ct_text_add(&text, "}}");
    if (status == CT_OK) status = ct_text_status(&text);
    if (status == CT_OK) status = ct_json_parse(text.chars, text.n, path, &options);
    if (status == CT_OK) status = check_options(cell, options);
    ct_json_free(&options);
    ct_text_free(&text);
    ct_free(path);
    return status;
}

ct_status ct_cell_inspect(ct_cell *cell) {
    const char *dir = cell->config.out;
    ct_json_free(&cell->summary);
    cell->state = CT_CELL_MISSING;
    if (cell->config.force && cell->is_selected) return CT_OK;
    if (ct_dir_has(dir, "summary.json")) {
        CT_TRY(ct_cell_read_summary(cell));
        CT_TRY(check_options(cell, cell->summary));
        cell->state = CT_CELL_DONE;
        return CT_OK;
    }
    if (ct_dir_has(dir, DIVERGED)) return check_diverged(cell);
    bool has_checkpoint = ct_checkpoint_exists(dir); /* whose options resuming compares */
    if (!has_checkpoint && !ct_dir_has(dir, "config.txt")) return CT_OK;
    cell->state = CT_CELL_BEGUN;
    return has_checkpoint ? CT_OK : check_begun(cell);
}

ct_status ct_study_inspect(ct_study *study) {
    for (int k = 0; k < study->n_cells; k++) CT_TRY(ct_cell_inspect(&study->cells[k]));
    return CT_OK;
}

/* ---- one run ---- */

static void remove_file(const char *dir, const char *name) {
    char *path = ct_path_join(dir, name);
    if (path != NULL) remove(path);
    ct_free(path);
}

static ct_status write_diverged(const ct_cell *cell, const char *message) {
    ct_text text = {0};
    ct_config resolved = cell->config;
    CT_TRY(ct_config_choose(&resolved));
    ct_text_add(&text, "{\"message\": ");
    ct_json_add_string(&text, message);
    ct_text_add(&text, ", \"options\": {");
    ct_config_print_json(&resolved, &text);
    ct_text_add(&text, "\n}}\n");
    char *path = ct_path_join(cell->config.out, DIVERGED);
    ct_status status = path != NULL ? ct_text_status(&text) : ct_fail(CT_NOMEM, "no memory");
    if (status == CT_OK) status = ct_file_write(path, text.chars, text.n);
    ct_free(path);
    ct_text_free(&text);
    return status;
}

/* A checkpoint that can be gone on from; a damaged one is no reason to stop. */
static bool can_resume(const ct_cell *cell) {
    ct_checkpoint *checkpoint = NULL;
    if (!ct_checkpoint_exists(cell->config.out)) return false;
    ct_error error;
    bool can = CT_CATCH(&error, ct_checkpoint_open(cell->config.out, &checkpoint)) == CT_OK;
    if (!can) ct_note("%s begins again: %s", cell->name, error.text);
    ct_checkpoint_free(&checkpoint);
    return can;
}

static ct_status train_cell(const ct_cell *cell) {
    ct_config config = cell->config;
    CT_TRY(ct_config_choose(&config));
    ct_config_fix(&config); /* nothing comes from the checkpoint: it must agree */
    if (cell->state == CT_CELL_BEGUN && can_resume(cell))
        memcpy(config.resume, config.out, sizeof config.resume);
    else
        config.force = true; /* what an interrupted or forced run has left */
    if (config.force) remove_file(config.out, DIVERGED);
    return ct_train(&config);
}

ct_status ct_cell_run(ct_cell *cell, bool keep, bool *is_stopped) {
    ct_error ended;
    ct_status status = CT_CATCH(&ended, train_cell(cell));
    bool was_stopped = ct_signals_seen() != 0;
    if (status == CT_DIVERGED) {
        ct_note("%s: %s", cell->name, ended.text);
        CT_TRY(write_diverged(cell, ended.text));
        cell->state = CT_CELL_DIVERGED;
        return keep ? CT_OK : ct_study_lighten(cell->config.out, cell->name);
    }
    if (status == CT_DIFFERS)
        return ct_fail(status, "%s: %s; name another @out, or begin again with @force", cell->name,
                       ended.text);
    if (status == CT_STOPPED) return ct_fail_again(&ended);
    if (status != CT_OK) return ct_fail_in(&ended, "%s", cell->name);
    *is_stopped = was_stopped && !ct_dir_has(cell->config.out, "summary.json");
    if (*is_stopped) {
        cell->state = CT_CELL_BEGUN;
        return CT_OK;
    }
    CT_TRY(ct_cell_read_summary(cell));
    cell->state = CT_CELL_DONE;
    return keep ? CT_OK : ct_study_lighten(cell->config.out, cell->name);
}

/* ---- all of them ---- */

ct_status ct_study_heed_signal(bool *is_stopped) {
    int number = ct_signals_seen();
    if (number != 0) *is_stopped = true;
    return number == SIGINT ? ct_fail(CT_STOPPED, "stopped") : CT_OK;
}

static bool is_to_do(const ct_cell *cell) {
    return cell->is_selected && (cell->state == CT_CELL_MISSING || cell->state == CT_CELL_BEGUN);
}

static int count_to_do(const ct_study *study) {
    int n = 0;
    for (int k = 0; k < study->n_cells; k++)
        n += is_to_do(&study->cells[k]) && study->cells[k].elsewhere == NULL;
    return n;
}

/* The last twentieth of the time is for the one in progress. */
static bool is_time_up(const ct_study_request *r) {
    return r->time_limit_s > 0 && now() - r->started_s > 0.95 * r->time_limit_s;
}

/* The cell, and with it those that can share its launch. */
static ct_status run_from(ct_study *study, int k, const ct_study_request *request,
                          bool *is_stopped) {
    ct_cell *cell = &study->cells[k];
    ct_share share;
    int n_left = count_to_do(study);
    CT_TRY(ct_share_collect(study, k, request->at_once, &share));
    if (share.n > 0) {
        ct_note("--- %d left: %s and %d other%s at once", n_left, cell->name, share.n - 1,
                share.n == 2 ? "" : "s");
        CT_TRY(ct_share_run(study, &share, request->keep, is_stopped));
        if (!cell->is_alone) return CT_OK;
    }
    ct_note("--- %d left: %s%s", n_left, cell->name,
            cell->state == CT_CELL_BEGUN ? " (interrupted before)" : "");
    return ct_cell_run(cell, request->keep, is_stopped);
}

/* Whatever older versions kept of finished runs. */
static ct_status lighten_done(const ct_study *study) {
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        if (cell->state == CT_CELL_DONE)
            CT_TRY(ct_study_lighten_again(cell->config.out, cell->name));
    }
    return CT_OK;
}

ct_status ct_study_run(ct_study *study, const ct_study_request *request, int *n_left) {
    bool is_stopped = false;
    CT_TRY(ct_dir_create(study->out));
    if (!request->keep) CT_TRY(lighten_done(study));
    if (request->time_limit_s > 0) ct_signals_stop_at(request->started_s + request->time_limit_s);
    ct_status status = ct_study_unshare(study, request->keep, &is_stopped);
    for (int k = 0; k < study->n_cells && status == CT_OK && !is_stopped;) {
        if (!is_to_do(&study->cells[k])) {
            k++;
            continue;
        }
        if (is_time_up(request)) break;
        status = run_from(study, k, request, &is_stopped);
        if (status == CT_OK) status = ct_study_write(study);
        if (status == CT_OK) status = ct_study_heed_signal(&is_stopped);
    }
    ct_signals_stop_at(0);
    *n_left = count_to_do(study);
    return status;
}

ct_status ct_study_print_plan(const ct_study *study, FILE *out) {
    static const char *const states[] = {"to run", "begun", "done", "diverged"};
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        ct_text command = {0};
        if (!cell->is_selected) continue;
        ct_config_print_command(&cell->config, &command);
        CT_TRY(ct_text_status(&command));
        fprintf(out, "%-8s  %s\n          crosstalk train%s\n",
                cell->elsewhere != NULL ? "reused" : states[cell->state], cell->name,
                command.chars);
        if (cell->elsewhere != NULL) fprintf(out, "          is %s\n", cell->elsewhere);
        ct_text_free(&command);
    }
    fprintf(out, "%d of %d runs to do\n", count_to_do(study), study->n_cells);
    return CT_OK;
}
