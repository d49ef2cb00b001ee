#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "record/record.h"
#include "util/log.h"
#include "util/memory.h"

void ct_cli_show_help(FILE *out) {
    fputs("usage: crosstalk show RUN...\n\n"
          "A table of finished runs: accuracy of the consensus model, mean and worst of the\n"
          "agents' own, consensus distance, what each agent sent, time. Of one that diverged or\n"
          "failed, when that was. What is no finished run is named and left out.\n",
          out);
}

/* An option's value, of config.txt or of a summary that was kept alone; "?": unknown. */
static const char *word(const ct_record *run, const char *name) {
    const char *value = ct_record_option_of(run, name);
    if (value != NULL) return value;
    const ct_json *options = run->summary != NULL ? ct_json_get(run->summary, "options") : NULL;
    const ct_json *member = options != NULL ? ct_json_get(options, name) : NULL;
    return member != NULL && member->kind == CT_JSON_STRING ? member->string : "?";
}

static double number(const ct_record *run, const char *name) {
    double value = NAN;
    const ct_json *options = run->summary != NULL ? ct_json_get(run->summary, "options") : NULL;
    if (ct_parse_double(word(run, name), &value)) return value;
    return ct_json_number(options, name);
}

/* Only one of the splits has an alpha. */
static void name_alpha(const ct_record *run, char *out, size_t size) {
    if (strcmp(word(run, "partition"), "dirichlet") == 0)
        snprintf(out, size, "%g", number(run, "alpha"));
    else
        snprintf(out, size, "-");
}

static const struct {
    ct_metric_id metric;
    const char *title;
    int width;
    const char *format;
} columns[] = {{CT_METRIC_CONSENSUS_ACCURACY, "consensus%", 10, "%.2f"},
               {CT_METRIC_LOCAL_MEAN, "mean%", 6, "%.2f"},
               {CT_METRIC_LOCAL_MIN, "worst%", 6, "%.2f"},
               {CT_METRIC_DISTANCE, "distance", 10, "%.3g"},
               {CT_METRIC_BYTES, "MiB/agent", 9, "%.1f"},
               {CT_METRIC_SECONDS, "seconds", 8, "%.1f"}};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static void print_heading(int width) {
    ct_show(stdout, "%-*s %-16s %-12s %6s %6s", width, "run", "method", "graph", "alpha", "epochs");
    for (int k = 0; k < N_COLUMNS; k++) ct_show(stdout, " %*s", columns[k].width, columns[k].title);
    ct_show(stdout, "\n");
}

static void print_row(const char *dir, int width, const ct_record *run) {
    char method[64], where[64], alpha[32], text[64];
    const ct_json *s = run->summary;
    double epochs = s != NULL ? ct_json_number(s, "epoch") : ct_record_last(run, CT_METRIC_EPOCH);
    snprintf(method, sizeof method, "%.30s%s", word(run, "algorithm"),
             strcmp(word(run, "loss"), "ccl") == 0 ? " + ccl" : "");
    snprintf(where, sizeof where, "%.30s %.0f", word(run, "topology"), number(run, "agents"));
    name_alpha(run, alpha, sizeof alpha);
    ct_show(stdout, "%-*s %-16.16s %-12.12s %6s %6.0f", width, dir, method, where, alpha,
            isnan(epochs) ? 0 : epochs);
    for (int k = 0; k < N_COLUMNS && s != NULL; k++) {
        snprintf(text, sizeof text, columns[k].format,
                 ct_metric_value(&ct_metrics[columns[k].metric], s));
        ct_show(stdout, " %*s", columns[k].width, text);
    }
    ct_record_print_end(&run->end, text, sizeof text);
    ct_show(stdout, "%s%s\n", s == NULL ? " " : "", s == NULL ? text : "");
}

/* A run that has come to an end; of all else, what its summary lacks. */
static ct_status open_run(const char *dir, ct_record *out) {
    const unsigned what = CT_READ_OPTIONS | CT_READ_METRICS | CT_READ_SUMMARY | CT_READ_END;
    CT_SCOPED_HANDLE(ct_json) none = NULL;
    if (!ct_dir_exists(dir)) return ct_summary_read(dir, &none);
    CT_TRY(ct_record_load(dir, what, out));
    if (out->end.state >= CT_RECORD_DONE) return CT_OK;
    ct_record_unload(out);
    return ct_summary_read(dir, &none);
}

static ct_status check_names(int n_args, char **args, int *width) {
    *width = (int)strlen("run");
    for (int i = 0; i < n_args; i++) {
        if (strncmp(args[i], "--", 2) == 0)
            return ct_fail(CT_INVAL, "crosstalk show has no option %s; it takes run directories",
                           args[i]);
        int n = (int)strlen(args[i]);
        if (n > *width) *width = n;
    }
    return n_args > 0 ? CT_OK : ct_fail(CT_INVAL, "name one run directory or more");
}

ct_status ct_cli_show(int n_args, char **args) {
    int width, n_shown = 0;
    CT_TRY(check_names(n_args, args, &width));
    for (int i = 0; i < n_args; i++) {
        CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
        ct_error error;
        if (CT_CATCH(&error, open_run(args[i], &run)) != CT_OK) {
            if (n_args == 1 || error.status == CT_NOMEM) return ct_fail_again(&error);
            ct_note("left out: %s", error.text);
            continue;
        }
        if (n_shown++ == 0) print_heading(width);
        print_row(args[i], width, &run);
    }
    return n_shown > 0 ? CT_OK : ct_fail(CT_IO, "none of these is a finished run");
}
