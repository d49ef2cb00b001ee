/* Every combination of some options' values: a study whose rows are the combinations. */
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/studies.h"
#include "util/memory.h"

enum { MAX_AXES = CT_STUDY_HEADS, MAX_VALUES = 64 };

const ct_help ct_cli_sweep_help = {
    .usage = "sweep --option A,B,C [--option A,B ...] [--option value ...]",
    .text =
        "Trains every combination of the options that have a list of values and prints a "
        "table, best first. Combinations that differ in the lambdas alone train at once, "
        "with the same results.\n\n"
        "Options whose value is a list anyway (--seeds, --lr-milestones, --fault, paths) "
        "keep it; --grid sweeps any option, with | between values that have commas. "
        "Finished runs are kept, interrupted ones resumed. Runs in one process (no mpirun).\n\n"
        "--pick chooses by samples that are held out of training; the test set plays no part in "
        "the choice. Of several methods it picks the best values of each.",
    .takes = "dataset, data-dir, agents, topology, algorithm, alpha, epochs, seeds, out, "
             "force, quiet",
    .files = CT_HELP_PAIRS({"table.md, .csv, .tex", "the table"},
                           {"report.html", "a page with all curves"},
                           {"OPTION_VALUE/", "a run directory for every combination"}),
    .examples = CT_HELP_PAIRS(
        {"Three learning rates: 0.02 is best here, with 97.6 %.",
         "crosstalk sweep --lr 0.05,0.02,0.01 --dataset shapes --agents 4 --epochs 10"},
        {"The best rate by held-out training samples, and the command that trains with it.",
         "crosstalk sweep --pick --lr 0.05,0.02,0.01 --dataset shapes --agents 4 --epochs 10"},
        {"A list of lists.",
         "crosstalk sweep --grid 'lr-milestones=0.5,0.75|none' --dataset shapes --agents 4 "
         "--epochs 10"},
        {"Both weights of the CCL loss: 16 combinations in one launch.",
         "crosstalk sweep --algorithm ccl --lambda-m 1,.1,.01,.001 --lambda-d 1,.1,.01,.001"}),
    .also = "compare, show, report"};

typedef struct axis {
    char name[64];
    char values[MAX_VALUES][CT_STUDY_LABEL];
    int n;
} axis;

typedef struct sweep {
    axis axes[MAX_AXES];
    int n_axes;
} sweep;

/* ---- axes ---- */

/* 0.1 and .1 are one value. */
static bool are_same(const char *a, const char *b) {
    double x, y;
    if (ct_parse_double(a, &x) && ct_parse_double(b, &y)) return x == y;
    return strcmp(a, b) == 0;
}

static ct_status add_value(void *context, const char *value) {
    axis *a = context;
    if (a->n == MAX_VALUES)
        return ct_fail(CT_INVAL, "--%s: at most %d values", a->name, MAX_VALUES);
    if (strlen(value) >= CT_STUDY_LABEL || strchr(value, '|') != NULL)
        return ct_fail(CT_INVAL, "--%s: '%s' cannot be swept over", a->name, value);
    for (int k = 0; k < a->n; k++)
        if (are_same(a->values[k], value))
            return ct_fail(CT_INVAL, "--%s: %s is there twice", a->name, value);
    snprintf(a->values[a->n++], CT_STUDY_LABEL, "%s", value);
    return CT_OK;
}

static ct_status add_axis(sweep *s, const char *given, const char *list) {
    const ct_option *option;
    CT_TRY(ct_schema_look_up(given, &option));
    const char *name = option->name;
    if (ct_config_is_single(name))
        return ct_fail(CT_INVAL, "--grid: '%s' cannot be swept over", name);
    for (int k = 0; k < s->n_axes; k++)
        if (strcmp(s->axes[k].name, name) == 0)
            return ct_fail(CT_INVAL, "--%s has two lists of values", name);
    if (s->n_axes == MAX_AXES) return ct_fail(CT_INVAL, "at most %d options at once", MAX_AXES);
    axis *a = &s->axes[s->n_axes++];
    snprintf(a->name, sizeof a->name, "%s", name);
    if (strchr(list, '|') == NULL) return ct_split(list, add_value, a);
    for (const char *at = list, *bar; at != NULL; at = bar != NULL ? bar + 1 : NULL) {
        char value[CT_CONFIG_TEXT];
        bar = strchr(at, '|');
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "|"), at);
        CT_TRY(add_value(a, value));
    }
    return CT_OK;
}

/* "a=1,2;b=x|y" */
static ct_status add_grid(sweep *s, const char *grid) {
    for (size_t n; *grid != '\0'; grid += n + (grid[n] == ';')) {
        char part[CT_CONFIG_TEXT];
        n = strcspn(grid, ";");
        snprintf(part, sizeof part, "%.*s", (int)n, grid + strspn(grid, " "));
        char *equals = strchr(part, '=');
        if (equals == NULL || n >= sizeof part)
            return ct_fail(CT_INVAL, "--grid: '%s' is not of the form option=value,value", part);
        *equals = '\0';
        CT_TRY(add_axis(s, part, equals + 1));
    }
    return CT_OK;
}

/* Takes the options that have lists of values out of the arguments: --name A,B or --name=A,B of one
 * that has single values. */
static ct_status take_axes(sweep *s, int *n_args, char **args) {
    int n_left = 0;
    for (int at = 0; at < *n_args; at++) {
        char name[64] = "";
        const char *equals = strchr(args[at], '=');
        const char *value = equals != NULL ? equals + 1 : at + 1 < *n_args ? args[at + 1] : "";
        if (strncmp(args[at], "--", 2) == 0)
            snprintf(name, sizeof name, "%.*s", (int)strcspn(args[at] + 2, "="), args[at] + 2);
        if (!ct_config_may_be_listed(name) || strchr(value, ',') == NULL) {
            args[n_left++] = args[at];
            continue;
        }
        at += equals == NULL;
        CT_TRY(add_axis(s, name, value));
    }
    *n_args = n_left;
    if (s->n_axes > 0) return CT_OK;
    return ct_fail(CT_INVAL, "give an option several values, as in --lambda-m 1,.1,.01");
}

/* ---- combinations ---- */

/* The value of an axis in a row; rows count with the last axis fastest. */
static const char *value_of(const sweep *s, int row, int at) {
    for (int a = s->n_axes - 1; a > at; a--) row /= s->axes[a].n;
    return s->axes[at].values[row % s->axes[at].n];
}

/* The k-th one; the last axis varies fastest. */
static ct_status add_row(const sweep *s, int k, ct_study *study) {
    char label[CT_STUDY_LABEL * MAX_AXES] = "", name[CT_STUDY_LABEL * MAX_AXES] = "";
    for (int a = 0; a < s->n_axes; a++) {
        size_t n = strlen(label), m = strlen(name);
        snprintf(label + n, sizeof label - n, "%s%s", a > 0 ? " | " : "", value_of(s, k, a));
        snprintf(name + m, sizeof name - m, "%s%s_%s", a > 0 ? " " : "", s->axes[a].name,
                 value_of(s, k, a));
        CT_TRY(ct_study_set(study, study->n_rows, s->axes[a].name, value_of(s, k, a)));
    }
    if (strlen(label) >= CT_STUDY_LABEL || strlen(name) >= CT_STUDY_LABEL)
        return ct_fail(CT_INVAL, "the values of a combination are too long: %s", label);
    CT_TRY(ct_study_add_line(&study->rows, &study->n_rows, label, 0));
    memcpy(study->rows[study->n_rows - 1].name, name, CT_STUDY_LABEL);
    return CT_OK;
}

static ct_status build(const sweep *s, const ct_config *given, ct_study *study) {
    int64_t n = 1;
    char names[CT_STUDY_LABEL] = "";
    for (int a = 0; a < s->n_axes; a++) {
        size_t m = strlen(names);
        snprintf(names + m, sizeof names - m, "%s%.40s", a > 0 ? "-" : "", s->axes[a].name);
        memcpy(study->heads[study->n_heads++], s->axes[a].name, sizeof s->axes[a].name);
        if (ct_config_is_given(given, s->axes[a].name))
            return ct_fail(CT_INVAL, "--%s has both a list and a single value", s->axes[a].name);
        n *= s->axes[a].n;
        if (n > CT_STUDY_CELLS)
            return ct_fail(CT_INVAL, "more than %d combinations", CT_STUDY_CELLS);
    }
    snprintf(study->name, sizeof study->name, "sweep");
    snprintf(study->title, sizeof study->title, "Sweep on %.40s, %lld combinations", given->dataset,
             (long long)n);
    snprintf(study->out, sizeof study->out, "runs/sweep-%.60s-%s", given->dataset, names);
    for (int k = 0; k < (int)n; k++) CT_TRY(add_row(s, k, study));
    return CT_OK;
}

/* ---- choosing ---- */

/* Rates and lambdas are chosen by what nobody has trained on, and the test set stays out of it. */
static ct_status choose_by_validation(const ct_own *own, ct_config *given, ct_study *study) {
    if (ct_own_is_given(own, "sort-by"))
        return ct_fail(CT_INVAL, "--pick goes by the validation accuracy, without --sort-by");
    if (!ct_config_is_given(given, "validation-fraction"))
        CT_TRY(ct_config_put(given, "validation-fraction", "0.1"));
    study->sort_by = &ct_metrics[CT_METRIC_VALIDATION_ACCURACY];
    if (ct_own_is_given(own, "show")) return CT_OK;
    study->n_shown = 0;
    return ct_study_add_metrics("validation,validation-loss,seconds", study->shown,
                                &study->n_shown);
}

/* -1: one method is swept. */
static int method_axis(const sweep *s) {
    int at = s->n_axes - 1;
    while (at >= 0 && strcmp(s->axes[at].name, "algorithm") != 0) at--;
    return at;
}

/* Of these methods' cells (NULL: all), the one with the highest validation accuracy; NULL: none is
 * finished. */
static const ct_cell *best_cell(const sweep *s, const ct_study *study, const char *method,
                                double *accuracy) {
    const ct_metric *metric = &ct_metrics[CT_METRIC_VALIDATION_ACCURACY];
    const ct_cell *best = NULL;
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        bool is_its = method == NULL || strcmp(value_of(s, cell->row, method_axis(s)), method) == 0;
        double value = cell->summary != NULL ? ct_metric_value(metric, cell->summary) : NAN;
        if (!is_its || isnan(value) || (best != NULL && !(value > *accuracy))) continue;
        best = cell;
        *accuracy = value;
    }
    return best;
}

/* The values of a row, as options. */
static void add_values(const sweep *s, int row, ct_text *out) {
    for (int a = 0; a < s->n_axes; a++) {
        ct_text_add(out, " --%s ", s->axes[a].name);
        ct_shell_add(out, value_of(s, row, a));
    }
}

/* "ccl:lr=0.05:lambda-m=0.1", as compare takes it. */
static void add_method(const sweep *s, int row, int method, ct_text *out) {
    ct_text_add(out, "%s", value_of(s, row, method));
    for (int a = 0; a < s->n_axes; a++)
        if (a != method) ct_text_add(out, ":%s=%s", s->axes[a].name, value_of(s, row, a));
}

/* What else was asked for, but for what is the sweep's own. */
static void add_words(int n_args, char **args, ct_text *out) {
    for (int i = 0; i < n_args; i++) {
        bool is_place = strcmp(args[i], "--out") == 0;
        if (is_place) i++;
        if (is_place || strncmp(args[i], "--out=", 6) == 0 || strcmp(args[i], "--quiet") == 0)
            continue;
        ct_text_add(out, " ");
        ct_shell_add(out, args[i]);
    }
}

/* The best of every method, and the command that trains with them. */
static ct_status show_picked(const sweep *s, const ct_study *study, int n_args, char **args) {
    CT_SCOPED(ct_text) lines = {0};
    CT_SCOPED(ct_text) methods = {0};
    int method = method_axis(s), n = method < 0 ? 1 : s->axes[method].n, row = -1;
    for (int k = 0; k < n; k++) {
        double accuracy = NAN;
        const ct_cell *best =
            best_cell(s, study, method < 0 ? NULL : s->axes[method].values[k], &accuracy);
        if (best == NULL) continue;
        row = best->row;
        ct_text_add(&lines, "picked:");
        add_values(s, row, &lines);
        ct_text_add(&lines, " (validation %.2f %%)\n", accuracy);
        if (methods.n > 0) ct_text_add(&methods, ",");
        if (method >= 0) add_method(s, row, method, &methods);
    }
    if (row < 0) return CT_OK;
    ct_text_add(&lines, "with all training samples: crosstalk %s",
                method < 0 ? "train" : "compare");
    if (method >= 0) ct_text_add(&lines, " --algorithms %s", methods.chars);
    add_words(n_args, args, &lines);
    if (method < 0) add_values(s, row, &lines);
    ct_text_add(&lines, "\n");
    CT_TRY(ct_text_status(&methods));
    CT_TRY(ct_text_status(&lines));
    ct_show_lines(stdout, lines.chars);
    return CT_OK;
}

/* Its table is made anew of the runs that are there. */
static ct_status fits_anywhere(const ct_study *study, const char *out) {
    (void)study;
    (void)out;
    return CT_OK;
}

ct_status ct_cli_sweep(int n_args, char **args) {
    CT_SCOPED(ct_study) study = {0};
    sweep s = {.n_axes = 0};
    ct_study_request request = {0};
    ct_config given;
    ct_own own;
    ct_config_init(&given);
    CT_TRY(ct_cli_study_options(&n_args, args, &request));
    CT_TRY(ct_own_take("sweep", &n_args, args, &own));
    request.at_once = (int)ct_own_whole(&own, "at-once");
    CT_TRY(ct_study_add_metrics(ct_own_text(&own, "show"), study.shown, &study.n_shown));
    study.sort_by = study.shown[0];
    const char *grid = ct_own_text(&own, "grid"), *sort_by = ct_own_text(&own, "sort-by");
    if (sort_by != NULL) CT_TRY(ct_metric_find(sort_by, &study.sort_by));
    if (grid != NULL) CT_TRY(add_grid(&s, grid));
    CT_TRY(take_axes(&s, &n_args, args));
    CT_TRY(ct_cli_options(n_args, args, &given, NULL, 0));
    bool picks = ct_own_is_given(&own, "pick");
    if (picks) CT_TRY(choose_by_validation(&own, &given, &study));
    CT_TRY(build(&s, &given, &study));
    CT_TRY(ct_cli_study(&study, &given, &request, fits_anywhere));
    return picks && !request.json ? show_picked(&s, &study, n_args, args) : CT_OK;
}
