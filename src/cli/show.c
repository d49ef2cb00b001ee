#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "record/bundle.h"
#include "record/find.h"
#include "record/record.h"
#include "util/log.h"
#include "util/memory.h"

const ct_help ct_cli_show_help = {
    .usage = "show [RUN...] [--json]",
    .text = "Prints a table of finished runs: the accuracy of the consensus model, the mean "
            "and the worst of the agents' own models, consensus distance, MiB that each agent "
            "sent, and seconds. A run that diverged or failed says when. RUN is a run "
            "directory, a folder of runs (one or two levels deep), or a bundle of them "
            "(crosstalk report --bundle). The default is runs. What is not a finished run is "
            "named and left out.",
    .examples =
        CT_HELP_PAIRS({"All runs below runs.", "crosstalk show"},
                      {"The best accuracy, by script.",
                       "crosstalk show runs --json | jq 'max_by(.consensus_accuracy) | .run'"}),
    .also = "report, serve, compare"};

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
        double value = ct_metric_value(&ct_metrics[columns[k].metric], s);
        snprintf(text, sizeof text, isnan(value) ? "-" : columns[k].format, value);
        ct_show(stdout, " %*s", columns[k].width, text);
    }
    double averaged = ct_metric_value(&ct_metrics[CT_METRIC_AVERAGED_ACCURACY], s);
    if (!isnan(averaged)) ct_show(stdout, "  averaged %.2f%%", averaged);
    ct_record_print_end(&run->end, text, sizeof text);
    ct_show(stdout, "%s%s\n", s == NULL ? " " : "", s == NULL ? text : "");
}

/* A run that has come to an end; of all else, what its summary lacks. */
static ct_status open_run(const char *dir, ct_record *out) {
    const unsigned what = CT_READ_OPTIONS | CT_READ_METRICS | CT_READ_SUMMARY | CT_READ_END;
    CT_SCOPED_HANDLE(ct_json) none = NULL;
    if (ct_file_exists(dir)) return ct_summary_read(dir, &none);
    CT_TRY(ct_record_load(dir, what, out));
    if (out->end.state >= CT_RECORD_DONE) return CT_OK;
    ct_record_unload(out);
    return ct_summary_read(dir, &none);
}

/* ---- JSON ---- */

void ct_cli_add_metric(ct_text *out, const ct_metric *metric, const ct_json *summary) {
    const char *const keys[] = {metric->key, metric->deviation};
    for (int k = 0; k < 2; k++) {
        double value = keys[k] != NULL ? ct_json_number(summary, keys[k]) : NAN;
        if (k > 0 && isnan(value)) continue; /* of one seed */
        ct_text_add(out, ", ");
        ct_json_add_string(out, keys[k]);
        ct_text_add(out, ": ");
        ct_json_add_number(out, value);
    }
}

static void add_object(ct_text *out, const char *dir, const ct_record *run) {
    char end[64];
    ct_record_print_end(&run->end, end, sizeof end);
    ct_text_add(out, "%s  {\"run\": ", out->n > 0 ? ",\n" : "");
    ct_json_add_string(out, dir);
    ct_text_add(out, ", \"state\": ");
    ct_json_add_string(out, end);
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const ct_option *o = &ct_run_options[id];
        if ((o->roles & (CT_ROLE_SETTING | CT_ROLE_METHOD)) == 0) continue;
        ct_text_add(out, ", \"%s\": ", o->name);
        if (o->kind == CT_KIND_TEXT)
            ct_json_add_string(out, word(run, o->name));
        else
            ct_json_add_number(out, number(run, o->name));
    }
    for (int m = 0; m < CT_N_METRICS && run->summary != NULL; m++)
        ct_cli_add_metric(out, &ct_metrics[m], run->summary);
    ct_text_add(out, "}");
}

/* ---- which ones ---- */

/* A run of several seeds is one; any other folder stands for the runs in it. */
static ct_status find_runs(const char *name, ct_name_list *out) {
    bool is_run = ct_record_has(name, CT_FILE_CONFIG) || ct_record_has(name, CT_FILE_SUMMARY);
    bool is_bundle = ct_dir_has(name, CT_BUNDLE_NAME);
    ct_error error;
    if (ct_file_exists(name)) CT_TRY(ct_bundle_is(name, &is_bundle));
    if (is_bundle) return ct_record_find(name, out);
    if (is_run || !ct_dir_exists(name)) return ct_name_list_add(out, name);
    ct_status status = CT_CATCH(&error, ct_record_find(name, out));
    if (status == CT_NOMEM) return ct_fail_again(&error);
    return status == CT_OK ? CT_OK
                           : ct_name_list_add(out, name); /* opening it says what is wrong */
}

/* A line of several of the above, or what is wrong with it. */
static ct_status show_run(const char *dir, int width, ct_text *json, int *n_shown) {
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    CT_TRY(open_run(dir, &run));
    if (json != NULL)
        add_object(json, dir, &run);
    else if (*n_shown == 0)
        print_heading(width);
    if (json == NULL) print_row(dir, width, &run);
    *n_shown += 1;
    return CT_OK;
}

static ct_status show_all(const ct_name_list *runs, ct_text *json) {
    int width = (int)strlen("run"), n_shown = 0;
    for (int i = 0; i < runs->n; i++)
        if ((int)strlen(runs->name[i]) > width) width = (int)strlen(runs->name[i]);
    for (int i = 0; i < runs->n; i++) {
        ct_error error;
        if (CT_CATCH(&error, show_run(runs->name[i], width, json, &n_shown)) == CT_OK) continue;
        if (runs->n == 1 || error.status == CT_NOMEM) return ct_fail_again(&error);
        ct_note("left out: %s", error.text);
    }
    return n_shown > 0 ? CT_OK : ct_fail(CT_IO, "none of these is a finished run");
}

ct_status ct_cli_show(int n_args, char **args) {
    CT_SCOPED_BY(ct_name_list_free, ct_name_list) runs = {0};
    CT_SCOPED(ct_text) json = {0};
    ct_own own;
    CT_TRY(ct_own_take("show", &n_args, args, &own));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    if (n_args == 0) return ct_fail(CT_INVAL, "name one run directory or more");
    for (int i = 0; i < n_args; i++) CT_TRY(find_runs(args[i], &runs));
    if (!ct_own_is_given(&own, "json")) return show_all(&runs, NULL);
    CT_TRY(show_all(&runs, &json));
    CT_TRY(ct_text_status(&json));
    ct_show(stdout, "[\n");
    ct_show_lines(stdout, json.chars);
    ct_show(stdout, "\n]\n");
    return CT_OK;
}
