#include "cli/studies.h"

#include <string.h>

#include "cli/cli.h"
#include "record/bundle.h"
#include "schema/interval.h"
#include "transport/transport.h"
#include "util/memory.h"

typedef struct wishes {
    bool json, quiet, force;
} wishes;

static ct_status read_time(const char *text, double *seconds) {
    ct_interval interval = {0};
    if (text == NULL) return CT_OK;
    if (CT_CATCH(NULL, ct_interval_parse(text, &interval)) != CT_OK || interval.every_s <= 0)
        return ct_fail(CT_INVAL, "--time-limit: '%s' is no time such as 90s, 9m or 2h", text);
    *seconds = interval.every_s;
    return CT_OK;
}

ct_status ct_cli_study_options(int *n_args, char **args, ct_study_request *request) {
    ct_own own;
    request->started_s = ct_seconds();
    CT_TRY(ct_own_take("study", n_args, args, &own));
    request->only = ct_own_text(&own, "only");
    request->dry_run = ct_own_is_given(&own, "dry-run");
    request->table_only = ct_own_is_given(&own, "table-only");
    request->reuse = ct_own_is_given(&own, "reuse");
    request->keep = ct_own_is_given(&own, "keep");
    request->json = ct_own_is_given(&own, "json");
    request->is_quick = ct_own_is_given(&own, "quick");
    request->quick_epochs = ct_own_whole(&own, "quick");
    return read_time(ct_own_text(&own, "time-limit"), &request->time_limit_s);
}

/* What was stopped is not lost; the message says how to resume. */
static ct_status say_left(int n_left, bool is_forced) {
    if (n_left == 0) return CT_OK; /* a signal may have come while the last one was ending */
    return ct_fail(CT_STOPPED, "stopped; %d run%s left: the same command%s resumes", n_left,
                   n_left == 1 ? " is" : "s are", is_forced ? " without --force" : "");
}

/* ---- the table ---- */

/* The parts of a row's label by the headings above them: of a sweep, options and their values. */
static void add_options(ct_text *out, const ct_study *study, const char *label) {
    ct_text_add(out, ", \"options\": {");
    for (int k = 0; k < study->n_heads && label != NULL; k++) {
        const char *bar = strstr(label, " | ");
        char part[CT_STUDY_LABEL];
        snprintf(part, sizeof part, "%.*s", bar != NULL ? (int)(bar - label) : (int)strlen(label),
                 label);
        ct_text_add(out, "%s", k > 0 ? ", " : "");
        ct_json_add_string(out, study->heads[k]);
        ct_text_add(out, ": ");
        ct_json_add_string(out, part);
        label = bar != NULL ? bar + 3 : NULL;
    }
    ct_text_add(out, "}");
}

static void add_cell(ct_text *out, const ct_study *study, const ct_cell *cell) {
    ct_text_add(out, "  {\"row\": ");
    ct_json_add_string(out, study->rows[cell->row].label);
    add_options(out, study, study->rows[cell->row].label);
    ct_text_add(out, ", \"column\": ");
    ct_json_add_string(out, study->columns[cell->column].label);
    ct_text_add(out, ", \"run\": ");
    ct_json_add_string(out, ct_path_in(study->out, cell->name).text);
    ct_text_add(out, ", \"state\": \"%s\"", ct_cell_state_name(cell->state));
    for (int m = 0; m < study->n_shown; m++) ct_cli_add_metric(out, study->shown[m], cell->summary);
    ct_text_add(out, "}");
}

/* In the order of the printed table. */
static ct_status print_json(const ct_study *study) {
    CT_SCOPED(ct_text) text = {0};
    const char *before = "";
    ct_text_add(&text, "[\n");
    for (int r = 0; r < study->n_rows; r++)
        for (int c = 0; c < study->n_columns; c++) {
            int at = study->at[study->order[r] * study->n_columns + c];
            if (at < 0) continue;
            ct_text_add(&text, "%s", before);
            add_cell(&text, study, &study->cells[at]);
            before = ",\n";
        }
    ct_text_add(&text, "\n]\n");
    CT_TRY(ct_text_status(&text));
    ct_show_lines(stdout, text.chars);
    return CT_OK;
}

static ct_status show(ct_study *study, const wishes *w) {
    CT_SCOPED(ct_text) place = {0};
    CT_TRY(ct_study_write(study));
    if (study->request.tune_only) return w->quiet ? CT_OK : ct_study_print_tuned(study, stdout);
    CT_TRY(ct_study_write_page(study));
    if (w->json) return print_json(study);
    CT_TRY(ct_study_print(study, stdout));
    if (w->quiet) return CT_OK;
    ct_shell_add(&place, study->out);
    CT_TRY(ct_text_status(&place));
    ct_show(stdout, "\nfolder: %s (tables as .md, .csv and .tex; report.html)\n", study->out);
    ct_show(stdout, "next: crosstalk serve %s\n", place.chars);
    return CT_OK;
}

static ct_status run(ct_study *study, const wishes *w) {
    int n_left = 0;
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_study_run(study, &n_left));
    if (status != CT_OK && status != CT_STOPPED) return ct_fail_again(&error);
    if (status == CT_STOPPED || n_left > 0) CT_TRY(ct_study_inspect(study));
    CT_TRY(show(study, w));
    return say_left(n_left, w->force);
}

/* The first of study->out, study->out-2, ... that is free, or this study's. */
static ct_status choose_folder(ct_study *study, ct_study_check check) {
    char base[sizeof study->out - 8], out[sizeof study->out];
    snprintf(base, sizeof base, "%.*s", (int)sizeof base - 1, study->out);
    for (int k = 1;; k++) {
        ct_error error;
        snprintf(out, sizeof out, k > 1 ? "%s-%d" : "%s", base, k);
        ct_status status = CT_CATCH(&error, check(study, out));
        if (status == CT_OK) status = CT_CATCH(&error, ct_study_move(study, out));
        if (status == CT_OK) return CT_OK;
        if (status == CT_NOMEM || k == 999) return ct_fail_again(&error);
    }
}

/* Whose folder it is, and what lies there. */
static ct_status look_around(ct_study *study, const ct_config *given, ct_study_check check) {
    if (check == NULL || given->force) return ct_study_inspect(study);
    if (given->out[0] == '\0') return choose_folder(study, check);
    CT_TRY(check(study, study->out));
    return ct_study_inspect(study);
}

ct_status ct_cli_study(ct_study *study, const ct_config *given, const ct_study_request *request,
                       ct_study_check check) {
    if (given->resume[0] != '\0')
        return ct_fail(CT_INVAL,
                       "--resume: interrupted runs are resumed by the same command, without it");
    if (ct_transport_n_launched() > 1)
        return ct_fail(CT_INVAL, "this command is for one process; start it without mpirun, or "
                                 "each of its runs (--dry-run) with it");
    if (request->reuse && request->keep)
        return ct_fail(CT_INVAL, "--reuse copies what tables need, not all of a run as --keep "
                                 "(and compare) wants it");
    CT_SCOPED_BY(ct_bundle_memory_close, ct_bundle_memory) memory;
    ct_bundle_memory_open(&memory);
    ct_cli_quiet(given->quiet);
    ct_cli_outlive_readers();
    if (given->out[0] != '\0') memcpy(study->out, given->out, sizeof study->out);
    CT_TRY(ct_study_build(study, given, request));
    CT_TRY(look_around(study, given, check));
    if (request->reuse) CT_TRY(ct_study_find_elsewhere(study));
    if (request->dry_run) return ct_study_print_plan(study, stdout);
    if (request->reuse) CT_TRY(ct_study_reuse(study));
    wishes w = {.json = request->json, .quiet = given->quiet, .force = given->force};
    return request->table_only ? show(study, &w) : run(study, &w);
}
