#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "record/bundle.h"
#include "record/find.h"
#include "record/record.h"
#include "report/method.h"
#include "util/log.h"
#include "util/memory.h"

const ct_help ct_cli_show_help = {
    .usage = "show [RUN...] [--json] [--quiet]",
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

/* ---- the table ---- */

/* What a row says, and how soon it is left out where the terminal is too narrow: 1 first, 0 never.
 * What a run's name says already goes first. */
static const struct {
    const char *title;
    int width, goes;
    bool is_word;        /* begins at the left */
    ct_metric_id metric; /* of numbers */
    const char *format;  /* NULL: no metric */
} columns[] = {{"method", 23, 1, true, 0, NULL},
               {"graph", 12, 2, true, 0, NULL},
               {"alpha", 6, 3, false, 0, NULL},
               {"epochs", 6, 5, false, 0, NULL},
               {"consensus%", 11, 0, false, CT_METRIC_CONSENSUS_ACCURACY, "%.2f"},
               {"mean%", 6, 8, false, CT_METRIC_LOCAL_MEAN, "%.2f"},
               {"worst%", 6, 7, false, CT_METRIC_LOCAL_MIN, "%.2f"},
               {"distance", 10, 4, false, CT_METRIC_DISTANCE, "%.3g"},
               {"MiB/agent", 9, 6, false, CT_METRIC_BYTES, "%.1f"},
               {"seconds", 8, 7, false, CT_METRIC_SECONDS, "%.1f"}};
enum { N_COLUMNS = sizeof columns / sizeof *columns, N_WORDS = 4, MAX_GOES = 8 };

typedef struct table {
    int width; /* of the names */
    int goes;  /* columns are left out up to this one */
} table;

static bool has_column(const table *t, int k) {
    return columns[k].goes == 0 || columns[k].goes > t->goes;
}

/* As many columns as the terminal has room for; a file has room for all. */
static void fit(table *t) {
    int room = isatty(STDOUT_FILENO) == 1 ? ct_cli_width(STDOUT_FILENO) : INT_MAX;
    for (t->goes = 0; t->goes < MAX_GOES; t->goes++) {
        int n = t->width;
        for (int k = 0; k < N_COLUMNS; k++) n += has_column(t, k) ? 1 + columns[k].width : 0;
        if (n <= room) return;
    }
}

static void print_cell(const table *t, int k, const char *text) {
    int extra = 0; /* bytes of a character that take no column */
    for (const char *c = text; *c != '\0'; c++) extra += ((unsigned char)*c & 0xC0) == 0x80;
    int width = columns[k].width;
    if (!has_column(t, k)) return;
    if (columns[k].is_word)
        ct_show(stdout, " %-*.*s", width, width, text);
    else
        ct_show(stdout, " %*s", width + extra, text);
}

static void print_heading(const table *t) {
    ct_show(stdout, "%-*s", t->width, "run");
    for (int k = 0; k < N_COLUMNS; k++) print_cell(t, k, columns[k].title);
    ct_show(stdout, "\n");
}

/* "94.45", of several seeds "94.58±0.51" */
static void print_metric(const table *t, int k, const ct_json *summary) {
    char text[64], deviation[64] = "";
    const ct_metric *metric = &ct_metrics[columns[k].metric];
    double value = ct_metric_value(metric, summary);
    double spread = metric->deviation != NULL ? ct_json_number(summary, metric->deviation) : NAN;
    snprintf(text, sizeof text, isnan(value) ? "-" : columns[k].format, value);
    if (columns[k].metric == CT_METRIC_CONSENSUS_ACCURACY && !isnan(spread))
        snprintf(deviation, sizeof deviation, "%.20s±%.2f", text, metric->factor * spread);
    print_cell(t, k, deviation[0] != '\0' ? deviation : text);
}

static void print_row(const char *dir, const table *t, const ct_record *run) {
    char words[N_WORDS][64], text[64];
    const ct_json *s = run->summary;
    double epochs = s != NULL ? ct_json_number(s, "epoch") : ct_record_last(run, CT_METRIC_EPOCH);
    ct_method_name(word(run, "algorithm"), word(run, "loss"), words[0], sizeof words[0]);
    snprintf(words[1], sizeof words[1], "%.30s %.0f", word(run, "topology"), number(run, "agents"));
    name_alpha(run, words[2], sizeof words[2]);
    snprintf(words[3], sizeof words[3], "%.0f", isnan(epochs) ? 0 : epochs);
    ct_show(stdout, "%-*s", t->width, dir);
    for (int k = 0; k < N_WORDS; k++) print_cell(t, k, words[k]);
    for (int k = N_WORDS; k < N_COLUMNS && s != NULL; k++) print_metric(t, k, s);
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

/* Adds what lies in a folder. A run of several seeds is one run there as well: its own directory
 * has their means. */
static ct_status add_found(const ct_name_list *found, ct_name_list *out) {
    for (int i = 0; i < found->n; i++) {
        char *name = found->name[i], *slash = strrchr(name, '/');
        bool is_seed = false;
        if (slash != NULL) *slash = '\0';
        if (slash != NULL) CT_TRY(ct_record_holds(name, CT_FILE_SUMMARY, &is_seed));
        bool is_known = is_seed && out->n > 0 && strcmp(out->name[out->n - 1], name) == 0;
        if (slash != NULL && !is_seed) *slash = '/';
        if (!is_known) CT_TRY(ct_name_list_add(out, name));
    }
    return CT_OK;
}

/* A run of several seeds is one; any other folder stands for the runs in it. */
static ct_status find_runs(const char *name, ct_name_list *out) {
    CT_SCOPED_BY(ct_name_list_free, ct_name_list) found = {0};
    bool is_run = ct_record_has(name, CT_FILE_CONFIG) || ct_record_has(name, CT_FILE_SUMMARY);
    bool is_bundle = ct_dir_has(name, CT_BUNDLE_NAME);
    ct_error error;
    if (ct_file_exists(name)) CT_TRY(ct_bundle_is(name, &is_bundle));
    bool is_alone = strchr(name, '/') == NULL; /* not below what may be a bundle */
    if (is_alone && !ct_file_exists(name) && !ct_dir_exists(name))
        return ct_fail(CT_IO, "%s: there is no such run or folder", name);
    if (!is_bundle && (is_run || !ct_dir_exists(name))) return ct_name_list_add(out, name);
    ct_status status = CT_CATCH(&error, ct_record_find(name, &found));
    if (status == CT_NOMEM || (status != CT_OK && is_bundle)) return ct_fail_again(&error);
    return status == CT_OK ? add_found(&found, out)
                           : ct_name_list_add(out, name); /* opening it says what is wrong */
}

/* A line of several of the above, or what is wrong with it. */
static ct_status show_run(const char *dir, const table *t, ct_text *json, int *n_shown) {
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    CT_TRY(open_run(dir, &run));
    if (json != NULL)
        add_object(json, dir, &run);
    else if (*n_shown == 0)
        print_heading(t);
    if (json == NULL) print_row(dir, t, &run);
    *n_shown += 1;
    return CT_OK;
}

static ct_status show_all(const ct_name_list *runs, ct_text *json) {
    table t = {.width = (int)strlen("run")};
    int n_shown = 0;
    for (int i = 0; i < runs->n; i++)
        if ((int)strlen(runs->name[i]) > t.width) t.width = (int)strlen(runs->name[i]);
    fit(&t);
    for (int i = 0; i < runs->n; i++) {
        ct_error error;
        if (CT_CATCH(&error, show_run(runs->name[i], &t, json, &n_shown)) == CT_OK) continue;
        if (runs->n == 1 || error.status == CT_NOMEM) return ct_fail_again(&error);
        ct_note("left out: %s", error.text);
    }
    if (n_shown > 0 && t.goes > 0 && json == NULL)
        ct_note("columns are left out to fit the terminal; a file and --json have all");
    return n_shown > 0 ? CT_OK : ct_fail(CT_IO, "none of these is a finished run");
}

ct_status ct_cli_show(int n_args, char **args) {
    CT_SCOPED_BY(ct_name_list_free, ct_name_list) runs = {0};
    CT_SCOPED(ct_text) json = {0};
    ct_own own;
    CT_TRY(ct_own_take("show", &n_args, args, &own));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    ct_cli_quiet(ct_own_is_given(&own, "quiet"));
    CT_TRY(ct_cli_default_runs(&n_args, &args));
    for (int i = 0; i < n_args; i++) CT_TRY(find_runs(args[i], &runs));
    if (!ct_own_is_given(&own, "json")) {
        CT_SCOPED(ct_text) place = {0};
        ct_shell_add(&place, args[0]);
        CT_TRY(ct_text_status(&place));
        CT_TRY(show_all(&runs, NULL));
        ct_cli_next("report %s", n_args == 1 ? place.chars : "RUN...");
        return CT_OK;
    }
    CT_TRY(show_all(&runs, &json));
    CT_TRY(ct_text_status(&json));
    ct_show(stdout, "[\n");
    ct_show_lines(stdout, json.chars);
    ct_show(stdout, "\n]\n");
    return CT_OK;
}
