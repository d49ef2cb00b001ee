/* Running what is missing: finished runs are kept, interrupted ones resumed, others begin. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run/checkpoint.h"
#include "run/run.h"
#include "run/signals.h"
#include "study/study_internal.h"
#include "study/tune.h"
#include "util/file.h"
#include "util/log.h"
#include "util/show.h"

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

/* What the run must have: the cell's options, with the run's seeds if they only go on. */
static void find_wanted(const ct_cell *cell, const ct_json *options, ct_config *out) {
    const ct_json *seeds = ct_json_get(options, "seeds");
    *out = cell->resolved;
    size_t n = strlen(out->seeds);
    bool goes_on = cell->takes_more_seeds && n > 0 && seeds != NULL &&
                   seeds->kind == CT_JSON_STRING && strlen(seeds->string) < sizeof out->seeds &&
                   strncmp(seeds->string, out->seeds, n) == 0 && seeds->string[n] == ',';
    if (goes_on) snprintf(out->seeds, sizeof out->seeds, "%s", seeds->string);
}

/* CT_INVAL: it is not the cell's run. */
static ct_status check_run(const ct_cell *cell, const ct_json *options, const ct_json *summary) {
    static const char what_to_do[] = "name another @out, or run it again with @force";
    CT_SCOPED(ct_text) ours = {0};
    CT_SCOPED(ct_text) theirs = {0};
    const char *dir = cell->config.out, *source = NULL;
    char name[64] = "";
    ct_config wanted;
    find_wanted(cell, options, &wanted);
    CT_TRY(ct_config_find_difference(&wanted, options,
                                     summary != NULL ? does_not_matter : does_not_matter_yet, name,
                                     sizeof name, &ours, &theirs));
    CT_TRY(ct_text_status(&ours));
    if (name[0] != '\0')
        return ct_fail(CT_INVAL, "%s was run with @%s %s, and here it is %s; give the same, %s",
                       dir, name, theirs.n > 0 ? theirs.chars : "''",
                       ours.n > 0 ? ours.chars : "''", what_to_do);
    if (summary != NULL) CT_TRY(ct_cell_find_other_data(cell, summary, &source));
    if (source != NULL)
        return ct_fail(CT_INVAL,
                       "%s was run with @data-dir %s, and here it is %s, which may be other data; "
                       "%s",
                       dir, source, cell->config.data_dir, what_to_do);
    return CT_OK;
}

ct_status ct_cell_is_run(const ct_cell *cell, const ct_json *options, const ct_json *summary,
                         bool *is_run) {
    ct_error error;
    ct_status status = CT_CATCH(&error, check_run(cell, options, summary));
    *is_run = status == CT_OK && !cell->is_waiting;
    return status == CT_NOMEM ? ct_fail_again(&error) : CT_OK;
}

/* A run that has begun begins again if there is no checkpoint: it must be this one. */
static ct_status check_begun(const ct_cell *cell) {
    CT_SCOPED_HANDLE(ct_json) options = NULL;
    ct_config saved;
    ct_config_init(&saved);
    CT_TRY(ct_config_load(&saved, ct_record_path(cell->config.out, CT_FILE_CONFIG).text));
    CT_TRY(ct_config_to_json(&saved, &options));
    return check_run(cell, options, NULL);
}

/* It is finished. */
static ct_status read_summary(ct_cell *cell) {
    CT_TRY(ct_summary_read(cell->config.out, &cell->summary));
    CT_TRY(ct_summary_add_late(cell->config.out, cell->summary));
    cell->state = CT_CELL_DONE;
    return CT_OK;
}

/* Its state, and the summary of a finished one. */
static ct_status inspect(ct_cell *cell) {
    CT_SCOPED_HANDLE(ct_json) diverged = NULL;
    const char *dir = cell->config.out;
    ct_json_free(&cell->summary);
    cell->state = CT_CELL_MISSING;
    if (cell->choice != NULL && cell->choice->chosen < 0) cell->state = CT_CELL_DIVERGED;
    if (cell->choice != NULL && cell->choice->chosen < 0) return CT_OK;
    if ((cell->config.force && cell->is_selected) || cell->is_waiting) return CT_OK;
    bool is_done, has_diverged;
    CT_TRY(ct_record_holds(dir, CT_FILE_SUMMARY, &is_done));
    CT_TRY(ct_record_holds(dir, CT_FILE_DIVERGED, &has_diverged));
    if (is_done) {
        CT_TRY(read_summary(cell));
        return check_run(cell, ct_json_get(cell->summary, "options"), cell->summary);
    }
    if (has_diverged) {
        cell->state = CT_CELL_DIVERGED;
        CT_TRY(ct_record_read_file(dir, CT_FILE_DIVERGED, &diverged));
        return check_run(cell, ct_json_get(diverged, "options"), diverged);
    }
    bool has_checkpoint = ct_checkpoint_exists(dir); /* whose options resuming compares */
    if (!has_checkpoint && !ct_record_has(dir, CT_FILE_CONFIG)) return CT_OK;
    cell->state = CT_CELL_BEGUN;
    return has_checkpoint ? CT_OK : check_begun(cell);
}

ct_status ct_cell_take(ct_cell *cell, const char *from, bool keep) {
    const char *to = cell->config.out;
    if (!keep) CT_TRY(ct_record_lighten(from, cell->name));
    int reason = rename(from, to) == 0 ? 0 : errno;
    if (reason != 0 && !(reason == ENOENT && ct_dir_exists(to)))
        return ct_fail(CT_IO, "%s: cannot become %s: %s", from, to, strerror(reason));
    return inspect(cell); /* ENOENT: the same study, begun twice, was faster */
}

bool ct_cell_is_free(const ct_cell *cell) {
    bool is_forced = cell->config.force && cell->is_selected;
    return cell->state == CT_CELL_MISSING && !is_forced && !cell->is_waiting &&
           !ct_dir_exists(cell->config.out);
}

ct_status ct_study_inspect(ct_study *study) {
    for (int k = 0; k < study->n_cells; k++) {
        CT_TRY(ct_tune_recall(study, &study->cells[k]));
        CT_TRY(inspect(&study->cells[k]));
    }
    return CT_OK;
}

ct_status ct_study_move(ct_study *study, const char *out) {
    snprintf(study->out, sizeof study->out, "%s", out);
    for (int k = 0; k < study->n_cells; k++) {
        ct_cell *cell = &study->cells[k];
        ct_config *const configs[] = {&cell->config, &cell->resolved};
        for (int c = 0; c < 2; c++) {
            int n = snprintf(configs[c]->out, sizeof configs[c]->out, "%s/%s", out, cell->name);
            if (n < 0 || (size_t)n >= sizeof configs[c]->out)
                return ct_refuse("out", "the name is too long: %s", out);
        }
        ct_tune_forget(cell);
        CT_TRY(ct_tune_recall(study, cell));
        CT_TRY(inspect(cell));
        bool has_config = ct_record_has(cell->config.out, CT_FILE_CONFIG);
        if (cell->state == CT_CELL_BEGUN && has_config) CT_TRY(check_begun(cell));
    }
    return CT_OK;
}

/* ---- one run ---- */

ct_status ct_study_can_resume(const char *dir, const char *name, bool *can) {
    CT_SCOPED_HANDLE(ct_checkpoint) checkpoint = NULL;
    ct_error error;
    *can = false;
    if (!ct_checkpoint_exists(dir)) return CT_OK;
    ct_status status = CT_CATCH(&error, ct_checkpoint_open(dir, &checkpoint));
    if (status == CT_NOMEM) return ct_fail_again(&error);
    *can = status == CT_OK;
    if (!*can) ct_note("%s begins again: %s", name, error.text);
    return CT_OK;
}

static ct_status train_cell(const ct_cell *cell, bool keep) {
    ct_config config = cell->resolved;
    bool can_resume = false;
    ct_config_fix(&config); /* nothing comes from the checkpoint: it must agree */
    config.may_grow = keep; /* the last checkpoint is one of its files */
    if (cell->state == CT_CELL_BEGUN)
        CT_TRY(ct_study_can_resume(config.out, cell->name, &can_resume));
    if (can_resume)
        memcpy(config.resume, config.out, sizeof config.resume);
    else
        config.force = true; /* what an interrupted or forced run has left */
    return ct_train(&config);
}

/* Trains one that is missing or was interrupted and leaves it in the state that it then has. */
static ct_status run_cell(ct_study *study, ct_cell *cell) {
    ct_error ended;
    ct_status status = CT_CATCH(&ended, train_cell(cell, study->request.keep));
    if (status == CT_DIFFERS)
        return ct_fail(status, "%s: %s; name another @out, or begin again with @force", cell->name,
                       ended.text);
    if (status == CT_STOPPED) return ct_fail_again(&ended);
    if (status == CT_DIVERGED) {
        ct_note("%s: %s", cell->name, ended.text);
        cell->state = CT_CELL_DIVERGED;
    } else if (status != CT_OK) {
        return ct_fail_in(&ended, "%s", cell->name);
    } else {
        CT_TRY(read_summary(cell));
    }
    return study->request.keep ? CT_OK : ct_record_lighten(cell->config.out, cell->name);
}

/* ---- all of them ---- */

ct_status ct_study_heed_signal(void) {
    return ct_signals_seen() != 0 ? ct_fail(CT_STOPPED, "stopped") : CT_OK;
}

static bool is_to_do(const ct_study *study, const ct_cell *cell) {
    if (study->request.tune_only && !cell->is_waiting) return false;
    return cell->is_selected && (cell->state == CT_CELL_MISSING || cell->state == CT_CELL_BEGUN);
}

int ct_study_count_to_do(const ct_study *study) {
    int n = 0;
    for (int k = 0; k < study->n_cells; k++)
        n += is_to_do(study, &study->cells[k]) && study->cells[k].elsewhere == NULL;
    return n;
}

/* The last twentieth of the time is for the one in progress. */
static bool is_time_up(const ct_study_request *r) {
    return r->time_limit_s > 0 && ct_seconds() - r->started_s > 0.95 * r->time_limit_s;
}

/* The cell, and with it those that can share its launch. */
static ct_status run_from(ct_study *study, int k) {
    ct_cell *cell = &study->cells[k];
    int n_shared = 0;
    if (cell->is_waiting) {
        ct_note("%d to do: %s: choosing its options", ct_study_count_to_do(study), cell->name);
        CT_TRY(ct_tune_cell(study, cell));
        return inspect(cell);
    }
    CT_TRY(ct_tune_keep(cell));
    CT_TRY(ct_share_run(study, k, &n_shared));
    if (n_shared > 0 && !cell->is_alone) return CT_OK;
    ct_note("%d to do: %s%s", ct_study_count_to_do(study), cell->name,
            cell->state == CT_CELL_BEGUN ? " (interrupted before)" : "");
    return run_cell(study, cell);
}

/* The choices of tuned cells go with their runs. */
static ct_status attach_choices(const ct_study *study) {
    for (int k = 0; k < study->n_cells; k++)
        if (ct_cell_has_ended(&study->cells[k])) CT_TRY(ct_tune_attach(&study->cells[k]));
    return CT_OK;
}

/* Tables of many runs take their time: at most a twentieth of all, the last ones at the end. */
static ct_status write_tables(ct_study *study, double *due_s) {
    double began = ct_seconds();
    if (began < *due_s) return CT_OK;
    CT_TRY(ct_study_write(study));
    *due_s = ct_seconds() + 20 * (ct_seconds() - began);
    return CT_OK;
}

static ct_status run_all(ct_study *study, bool has_tables) {
    double due_s = 0;
    CT_TRY(ct_share_resume_all(study));
    CT_TRY(attach_choices(study));
    for (int k = 0; k < study->n_cells;) {
        if (!is_to_do(study, &study->cells[k])) {
            k++;
            continue;
        }
        if (is_time_up(&study->request)) break;
        CT_TRY(run_from(study, k));
        CT_TRY(attach_choices(study));
        if (has_tables) CT_TRY(write_tables(study, &due_s));
        CT_TRY(ct_study_heed_signal());
    }
    return CT_OK;
}

ct_status ct_study_run_cells(ct_study *study, int *n_left) {
    CT_TRY(ct_dir_create(study->out));
    CT_TRY(run_all(study, false));
    *n_left = ct_study_count_to_do(study);
    return CT_OK;
}

ct_status ct_study_run(ct_study *study, int *n_left) {
    const ct_study_request *r = &study->request;
    CT_TRY(ct_dir_create(study->out));
    for (int k = 0; k < study->n_cells && !r->keep; k++) { /* what older versions kept of them */
        const ct_cell *cell = &study->cells[k];
        if (cell->state == CT_CELL_DONE)
            CT_TRY(ct_record_lighten_again(cell->config.out, cell->name));
    }
    if (r->time_limit_s > 0) ct_signals_stop_at(r->started_s + r->time_limit_s);
    ct_status status = run_all(study, true);
    ct_signals_stop_at(0);
    *n_left = ct_study_count_to_do(study);
    return status;
}

ct_status ct_study_print_plan(const ct_study *study, FILE *out) {
    static const char *const states[] = {"to run", "begun", "done", "diverged"};
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        CT_SCOPED(ct_text) command = {0};
        if (!cell->is_selected) continue;
        ct_config_print_command(&cell->config, &command);
        CT_TRY(ct_text_status(&command));
        const char *state = cell->is_waiting ? "to tune" : states[cell->state];
        ct_show(out, "%-8s  %s\n          crosstalk train%s\n",
                cell->elsewhere != NULL ? "reused" : state, cell->name, command.chars);
        if (cell->is_waiting) ct_show(out, "          tuned: %s\n", cell->tune);
        if (cell->elsewhere != NULL) ct_show(out, "          is %s\n", cell->elsewhere);
    }
    ct_show(out, "%d of %d runs to do\n", ct_study_count_to_do(study), study->n_cells);
    return CT_OK;
}
