/* Running what is missing: finished runs are kept, interrupted ones resumed, others begin. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "run/checkpoint.h"
#include "run/run.h"
#include "run/signals.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

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

/* Of a run that is not finished: how far it got, and what resuming compares itself (the split of a
 * file). */
static bool does_not_matter_yet(const ct_json *ours, const ct_json *theirs) {
    return does_not_matter(ours, theirs) || strcmp(ours->key, "iterations") == 0 ||
           strcmp(ours->key, "partition-file") == 0;
}

ct_status ct_cell_find_difference(const ct_cell *cell, const ct_json *options,
                                  const ct_json *summary, ct_text *out) {
    ct_text ours = {0}, theirs = {0};
    char name[64] = "";
    const char *source = "";
    ct_status status = ct_config_find_difference(
        &cell->resolved, options, summary != NULL ? does_not_matter : does_not_matter_yet, name,
        sizeof name, &ours, &theirs);
    if (status == CT_OK && name[0] != '\0')
        ct_text_add(out, "@%s %s, and here it is %s", name, theirs.n > 0 ? theirs.chars : "''",
                    ours.n > 0 ? ours.chars : "''");
    else if (status == CT_OK && summary != NULL && ct_cell_has_other_data(cell, summary, &source))
        ct_text_add(out, "@data-dir %s, and here it is %s, which may be other data", source,
                    cell->config.data_dir);
    if (status == CT_OK) status = ct_text_status(ours.failed ? &ours : out);
    ct_text_free(&ours);
    ct_text_free(&theirs);
    return status;
}

static ct_status check_options(const ct_cell *cell, const ct_json *options,
                               const ct_json *summary) {
    ct_text difference = {0};
    ct_status status = ct_cell_find_difference(cell, options, summary, &difference);
    if (status == CT_OK && difference.n > 0)
        status = ct_fail(CT_INVAL,
                         "%s was run with %s; name another @out, or run it again with "
                         "@force",
                         cell->config.out, difference.chars);
    ct_text_free(&difference);
    return status;
}

static ct_status check_diverged(const ct_cell *cell) {
    ct_json *saved = NULL;
    CT_TRY(ct_record_read_file(cell->config.out, CT_FILE_DIVERGED, &saved));
    ct_status status = check_options(cell, ct_json_get(saved, "options"), saved);
    ct_json_free(&saved);
    return status;
}

/* A run that has begun begins again if there is no checkpoint: it must be this one. */
static ct_status check_begun(const ct_cell *cell) {
    ct_config saved;
    ct_json *options = NULL;
    ct_config_init(&saved);
    CT_TRY(ct_config_read(&saved, ct_record_path(cell->config.out, CT_FILE_CONFIG).text));
    CT_TRY(ct_config_to_json(&saved, &options));
    ct_status status = check_options(cell, options, NULL);
    ct_json_free(&options);
    return status;
}

ct_status ct_cell_inspect(ct_cell *cell) {
    const char *dir = cell->config.out;
    ct_json_free(&cell->summary);
    cell->state = CT_CELL_MISSING;
    if (cell->config.force && cell->is_selected) return CT_OK;
    if (ct_record_has(dir, CT_FILE_SUMMARY)) {
        CT_TRY(ct_cell_read_summary(cell));
        CT_TRY(check_options(cell, ct_json_get(cell->summary, "options"), cell->summary));
        cell->state = CT_CELL_DONE;
        return CT_OK;
    }
    if (ct_record_has(dir, CT_FILE_DIVERGED)) {
        CT_TRY(check_diverged(cell));
        cell->state = CT_CELL_DIVERGED;
        return CT_OK;
    }
    bool has_checkpoint = ct_checkpoint_exists(dir); /* whose options resuming compares */
    if (!has_checkpoint && !ct_record_has(dir, CT_FILE_CONFIG)) return CT_OK;
    cell->state = CT_CELL_BEGUN;
    return has_checkpoint ? CT_OK : check_begun(cell);
}

bool ct_cell_is_free(const ct_cell *cell) {
    bool is_forced = cell->config.force && cell->is_selected;
    return cell->state == CT_CELL_MISSING && !is_forced && !ct_dir_exists(cell->config.out);
}

ct_status ct_study_inspect(ct_study *study) {
    for (int k = 0; k < study->n_cells; k++) CT_TRY(ct_cell_inspect(&study->cells[k]));
    return CT_OK;
}

/* ---- one run ---- */

bool ct_study_can_resume(const char *dir, const char *name) {
    ct_checkpoint *checkpoint = NULL;
    if (!ct_checkpoint_exists(dir)) return false;
    ct_error error;
    bool can = CT_CATCH(&error, ct_checkpoint_open(dir, &checkpoint)) == CT_OK;
    if (!can) ct_note("%s begins again: %s", name, error.text);
    ct_checkpoint_free(&checkpoint);
    return can;
}

static ct_status train_cell(const ct_cell *cell) {
    ct_config config = cell->resolved;
    ct_config_fix(&config); /* nothing comes from the checkpoint: it must agree */
    if (cell->state == CT_CELL_BEGUN && ct_study_can_resume(config.out, cell->name))
        memcpy(config.resume, config.out, sizeof config.resume);
    else
        config.force = true; /* what an interrupted or forced run has left */
    return ct_train(&config);
}

/* Trains one that is missing or was interrupted and leaves it in the state that it then has.
 * *is_stopped: by a signal or the time. */
static ct_status run_cell(ct_cell *cell, bool keep, bool *is_stopped) {
    ct_error ended;
    ct_status status = CT_CATCH(&ended, train_cell(cell));
    bool was_stopped = ct_signals_seen() != 0;
    if (status == CT_DIVERGED) {
        ct_note("%s: %s", cell->name, ended.text);
        cell->state = CT_CELL_DIVERGED;
        return keep ? CT_OK : ct_record_lighten(cell->config.out, cell->name);
    }
    if (status == CT_DIFFERS)
        return ct_fail(status, "%s: %s; name another @out, or begin again with @force", cell->name,
                       ended.text);
    if (status == CT_STOPPED) return ct_fail_again(&ended);
    if (status != CT_OK) return ct_fail_in(&ended, "%s", cell->name);
    *is_stopped = was_stopped && !ct_record_has(cell->config.out, CT_FILE_SUMMARY);
    if (*is_stopped) {
        cell->state = CT_CELL_BEGUN;
        return CT_OK;
    }
    CT_TRY(ct_cell_read_summary(cell));
    cell->state = CT_CELL_DONE;
    return keep ? CT_OK : ct_record_lighten(cell->config.out, cell->name);
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

int ct_study_count_to_do(const ct_study *study) {
    int n = 0;
    for (int k = 0; k < study->n_cells; k++)
        n += is_to_do(&study->cells[k]) && study->cells[k].elsewhere == NULL;
    return n;
}

/* The last twentieth of the time is for the one in progress. */
static bool is_time_up(const ct_study_request *r) {
    return r->time_limit_s > 0 && ct_seconds() - r->started_s > 0.95 * r->time_limit_s;
}

/* The cell, and with it those that can share its launch. */
static ct_status run_from(ct_study *study, int k, const ct_study_request *request,
                          bool *is_stopped) {
    ct_cell *cell = &study->cells[k];
    int n_shared = 0;
    CT_TRY(ct_share_run(study, k, request->at_once, request->keep, &n_shared, is_stopped));
    if (n_shared > 0 && !cell->is_alone) return CT_OK;
    ct_note("--- %d left: %s%s", ct_study_count_to_do(study), cell->name,
            cell->state == CT_CELL_BEGUN ? " (interrupted before)" : "");
    return run_cell(cell, request->keep, is_stopped);
}

/* Whatever older versions kept of finished runs. */
static ct_status lighten_done(const ct_study *study) {
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        if (cell->state == CT_CELL_DONE)
            CT_TRY(ct_record_lighten_again(cell->config.out, cell->name));
    }
    return CT_OK;
}

ct_status ct_study_run(ct_study *study, const ct_study_request *request, int *n_left) {
    bool is_stopped = false;
    CT_TRY(ct_dir_create(study->out));
    if (!request->keep) CT_TRY(lighten_done(study));
    if (request->time_limit_s > 0) ct_signals_stop_at(request->started_s + request->time_limit_s);
    ct_status status = ct_share_resume_all(study, request->keep, &is_stopped);
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
    *n_left = ct_study_count_to_do(study);
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
    fprintf(out, "%d of %d runs to do\n", ct_study_count_to_do(study), study->n_cells);
    return CT_OK;
}
