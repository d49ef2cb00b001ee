#include "cli/studies.h"

#include <string.h>

#include "cli/cli.h"
#include "schema/interval.h"
#include "transport/transport.h"
#include "util/memory.h"

void ct_cli_study_help(FILE *out) {
    fputs(
        "  --only PATTERN,...   runs whose names contain or match (*, ?) one of these\n"
        "  --dry-run            lists the runs, their commands and which are done\n"
        "  --table-only         runs nothing: tables of what is there\n"
        "  --time-limit TIME    90s, 9m, 2h: then the run in progress is saved and the rest left\n"
        "  --reuse              copies finished runs with the same options from studies beside "
        "--out\n"
        "  --keep               keeps all of finished runs: models, splits, checkpoints, every "
        "epoch\n"
        "  --force              runs the selected ones again\n",
        out);
}

static ct_status set_quick(const char *value, ct_study_request *request) {
    request->is_quick = true;
    if (value == NULL) return CT_OK;
    if (ct_parse_i64(value, &request->quick_epochs) && request->quick_epochs > 0) return CT_OK;
    return ct_fail(CT_INVAL, "--quick=%s: that is no number of epochs", value);
}

static ct_status set_time_limit(const char *value, ct_study_request *request) {
    ct_interval interval = {0};
    ct_status status = CT_CATCH(NULL, ct_interval_parse(value, &interval));
    if (status == CT_OK && interval.every_s > 0) {
        request->time_limit_s = interval.every_s;
        return CT_OK;
    }
    return ct_fail(CT_INVAL, "--time-limit: '%s' is no time such as 90s, 9m or 2h", value);
}

/* One argument, if it is an option of studies. */
static ct_status take(int n_args, char **args, int *at, ct_study_request *request, bool *is_ours) {
    const char *only = NULL, *limit = NULL, *arg = args[*at];
    *is_ours = true;
    if (strcmp(arg, "--quick") == 0) return set_quick(NULL, request);
    if (strncmp(arg, "--quick=", 8) == 0) return set_quick(arg + 8, request);
    if (strcmp(arg, "--dry-run") == 0) {
        request->dry_run = true;
    } else if (strcmp(arg, "--table-only") == 0) {
        request->table_only = true;
    } else if (strcmp(arg, "--keep") == 0) {
        request->keep = true;
    } else if (strcmp(arg, "--reuse") == 0) {
        request->reuse = true;
    } else {
        CT_TRY(ct_cli_own_option(n_args, args, at, "only", &only));
        if (only == NULL) CT_TRY(ct_cli_own_option(n_args, args, at, "time-limit", &limit));
        if (only != NULL) request->only = only;
        if (limit != NULL) CT_TRY(set_time_limit(limit, request));
        *is_ours = only != NULL || limit != NULL;
    }
    return CT_OK;
}

ct_status ct_cli_study_options(int *n_args, char **args, ct_study_request *request) {
    int n_left = 0;
    request->started_s = ct_seconds();
    for (int at = 0; at < *n_args; at++) {
        bool is_ours;
        CT_TRY(take(*n_args, args, &at, request, &is_ours));
        if (!is_ours) args[n_left++] = args[at];
    }
    *n_args = n_left;
    return CT_OK;
}

/* What was stopped is not lost; the message says how to resume. */
static ct_status say_left(ct_status status, int n_left, bool is_forced) {
    char left[128];
    if (n_left == 0) return CT_OK; /* a signal may have come while the last one was ending */
    snprintf(left, sizeof left, "%d run%s left: the same command%s resumes", n_left,
             n_left == 1 ? " is" : "s are", is_forced ? " without --force" : "");
    if (status == CT_STOPPED) return ct_fail(CT_STOPPED, "stopped; %s", left);
    fprintf(stderr, "crosstalk: %s\n", left);
    return CT_OK;
}

static ct_status show(ct_study *study) {
    CT_TRY(ct_study_write(study));
    CT_TRY(ct_study_write_page(study));
    return ct_study_print(study, stdout);
}

static ct_status run(ct_study *study, const ct_study_request *request, bool is_forced) {
    int n_left = 0;
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_study_run(study, request, &n_left));
    if (status != CT_OK && status != CT_STOPPED) return ct_fail_again(&error);
    CT_TRY(show(study));
    return say_left(status, n_left, is_forced);
}

ct_status ct_cli_study(ct_study *study, const ct_config *given, const ct_study_request *request) {
    if (given->resume[0] != '\0')
        return ct_fail(CT_INVAL,
                       "--resume: interrupted runs are resumed by the same command, without it");
    if (ct_transport_n_launched() > 1)
        return ct_fail(CT_INVAL, "this command is for one process; start it without mpirun, or "
                                 "each of its runs (--dry-run) with it");
    if (request->reuse && request->keep)
        return ct_fail(CT_INVAL, "--reuse copies what tables need, not all of a run as --keep "
                                 "(and compare) wants it");
    ct_cli_quiet(given->quiet);
    if (given->out[0] != '\0') memcpy(study->out, given->out, sizeof study->out);
    CT_TRY(ct_study_build(study, given, request));
    CT_TRY(ct_study_inspect(study));
    if (request->reuse) CT_TRY(ct_study_find_elsewhere(study));
    if (request->dry_run) return ct_study_print_plan(study, stdout);
    if (request->reuse) CT_TRY(ct_study_reuse(study));
    return request->table_only ? show(study) : run(study, request, given->force);
}
