/* Every combination of some options' values: a study whose rows are the combinations. */
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/studies.h"
#include "util/memory.h"

enum { MAX_AXES = CT_STUDY_HEADS, MAX_VALUES = 64 };

void ct_cli_sweep_help(FILE *out) {
    fputs("usage: crosstalk sweep --option A,B,C [--option A,B ...] [--option value ...]\n\n"
          "Trains every combination of the options that have a list of values and prints a table,\n"
          "best first. --out gets table.md, table.csv, table.tex, report.html and a run directory "
          "for\n"
          "each:\n"
          "  crosstalk sweep --algorithm ccl --lambda-m 1,.1,.01,.001 --lambda-d 1,.1,.01,.001\n"
          "Combinations that differ in the lambdas alone are rows of one run, with the same "
          "results.\n"
          "Options whose own value is a list (--seeds, --lr-milestones, --fault, paths) keep it;\n"
          "--grid sweeps any option, with | between values that have commas.\n"
          "Options of crosstalk train apply to every run. Finished runs are kept, interrupted\n"
          "ones resumed. For one process.\n",
          out);
    ct_own_help("sweep", out);
    ct_own_help("study", out);
}

typedef struct axis {
    char name[64];
    char values[MAX_VALUES][CT_STUDY_LABEL];
    int n;
} axis;

typedef struct sweep {
    axis axes[MAX_AXES];
    int n_axes;
    ct_study study;
} sweep;

/* ---- axes ---- */

/* 0.1 and .1 are one value. */
static bool are_same(const char *a, const char *b) {
    double x, y;
    if (ct_parse_double(a, &x) && ct_parse_double(b, &y)) return x == y;
    return strcmp(a, b) == 0;
}

static ct_status add_value(axis *a, const char *value) {
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

static ct_status add_field(void *context, const char *field) {
    return add_value(context, field);
}

static ct_status add_axis(sweep *s, const char *given, const char *list) {
    const char *name = ct_config_name(given);
    if (name == NULL) {
        ct_config any;
        ct_config_init(&any);
        return ct_config_set(&any, given, "");
    }
    if (ct_config_is_single(name))
        return ct_fail(CT_INVAL, "--grid: '%s' cannot be swept over", name);
    for (int k = 0; k < s->n_axes; k++)
        if (strcmp(s->axes[k].name, name) == 0)
            return ct_fail(CT_INVAL, "--%s has two lists of values", name);
    if (s->n_axes == MAX_AXES) return ct_fail(CT_INVAL, "at most %d options at once", MAX_AXES);
    axis *a = &s->axes[s->n_axes++];
    snprintf(a->name, sizeof a->name, "%s", name);
    if (strchr(list, '|') == NULL) return ct_split(list, add_field, a);
    for (const char *at = list; at != NULL;) {
        char value[CT_CONFIG_TEXT];
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "|"), at);
        CT_TRY(add_value(a, value));
        at = strchr(at, '|');
        if (at != NULL) at++;
    }
    return CT_OK;
}

/* "a=1,2;b=x|y" */
static ct_status add_grid(sweep *s, const char *grid) {
    while (*grid != '\0') {
        char part[CT_CONFIG_TEXT];
        size_t n = strcspn(grid, ";");
        snprintf(part, sizeof part, "%.*s", (int)n, grid + strspn(grid, " "));
        char *equals = strchr(part, '=');
        if (equals == NULL || n >= sizeof part)
            return ct_fail(CT_INVAL, "--grid: '%s' is not of the form option=value,value", part);
        *equals = '\0';
        CT_TRY(add_axis(s, part, equals + 1));
        grid += n + (grid[n] == ';');
    }
    return CT_OK;
}

/* --name A,B or --name=A,B of an option that has single values. */
static ct_status take_axis(sweep *s, int n_args, char **args, int *at, bool *is_ours) {
    char name[64];
    const char *value = NULL, *arg = args[*at];
    *is_ours = false;
    if (strncmp(arg, "--", 2) != 0) return CT_OK;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
    if (!ct_config_may_be_listed(name)) return CT_OK;
    const char *equals = strchr(arg, '=');
    if (equals != NULL) value = equals + 1;
    if (equals == NULL && *at + 1 < n_args) value = args[*at + 1];
    if (value == NULL || strchr(value, ',') == NULL) return CT_OK;
    *is_ours = true;
    if (equals == NULL) ++*at;
    return add_axis(s, name, value);
}

/* Takes the options that have lists of values out of the arguments. */
static ct_status take_axes(sweep *s, int *n_args, char **args) {
    int n_left = 0;
    for (int at = 0; at < *n_args; at++) {
        bool is_axis;
        CT_TRY(take_axis(s, *n_args, args, &at, &is_axis));
        if (!is_axis) args[n_left++] = args[at];
    }
    *n_args = n_left;
    if (s->n_axes > 0) return CT_OK;
    return ct_fail(CT_INVAL, "give an option several values, as in --lambda-m 1,.1,.01");
}

/* ---- the study ---- */

/* The k-th combination; the last axis runs fastest. */
static ct_status add_row(sweep *s, int k) {
    char label[2 * CT_STUDY_LABEL] = "", name[2 * CT_STUDY_LABEL] = "";
    int index[MAX_AXES];
    for (int a = s->n_axes - 1; a >= 0; k /= s->axes[a].n, a--) index[a] = k % s->axes[a].n;
    for (int a = 0; a < s->n_axes; a++) {
        const char *value = s->axes[a].values[index[a]];
        size_t n = strlen(label), m = strlen(name);
        snprintf(label + n, sizeof label - n, "%s%s", a > 0 ? " | " : "", value);
        snprintf(name + m, sizeof name - m, "%s%s_%s", a > 0 ? " " : "", s->axes[a].name, value);
    }
    if (strlen(label) >= CT_STUDY_LABEL || strlen(name) >= CT_STUDY_LABEL)
        return ct_fail(CT_INVAL, "the values of a combination are too long: %s", label);
    ct_study *study = &s->study;
    CT_TRY(ct_study_add_line(&study->rows, &study->n_rows, label, 0));
    ct_study_line *row = &study->rows[study->n_rows - 1];
    memcpy(row->name, name, sizeof row->name);
    for (int a = 0; a < s->n_axes; a++)
        CT_TRY(ct_settings_add(&row->options, s->axes[a].name, s->axes[a].values[index[a]], 0));
    return CT_OK;
}

static ct_status build(sweep *s, const ct_config *given) {
    ct_study *study = &s->study;
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
    for (int k = 0; k < (int)n; k++) CT_TRY(add_row(s, k));
    return CT_OK;
}

static ct_status run(sweep *s, int n_args, char **args) {
    ct_study_request request = {0};
    ct_study *study = &s->study;
    ct_config given;
    ct_own own;
    int n_words;
    ct_config_init(&given);
    CT_TRY(ct_cli_study_options(&n_args, args, &request));
    CT_TRY(ct_own_take("sweep", &n_args, args, &own));
    request.at_once = (int)ct_own_whole(&own, "at-once");
    CT_TRY(ct_study_add_metrics(ct_own_text(&own, "show"), study->shown, &study->n_shown));
    study->sort_by = study->shown[0];
    const char *grid = ct_own_text(&own, "grid"), *sort_by = ct_own_text(&own, "sort-by");
    if (sort_by != NULL) CT_TRY(ct_metric_find(sort_by, &study->sort_by));
    if (grid != NULL) CT_TRY(add_grid(s, grid));
    CT_TRY(take_axes(s, &n_args, args));
    CT_TRY(ct_cli_options(n_args, args, &given, NULL, 0, &n_words));
    CT_TRY(build(s, &given));
    return ct_cli_study(&s->study, &given, &request);
}

ct_status ct_cli_sweep(int n_args, char **args) {
    sweep *s = ct_new(sweep, 1);
    if (s == NULL) return ct_no_memory("a sweep");
    ct_status status = run(s, n_args, args);
    ct_study_free(&s->study);
    ct_free(s);
    return status;
}
