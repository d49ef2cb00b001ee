/* Every combination of some options' values: a study whose rows are the combinations. */
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/studies.h"
#include "study/axes.h"
#include "study/tune.h"
#include "util/memory.h"

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
        "the choice. Of several methods it picks the best values of each. With --halving all "
        "combinations are trained for a quarter of the epochs, the better half for half of them, "
        "and so on; what was tried is in tuned.md.",
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
        {"The same among more rates for two methods, in fewer epochs.",
         "crosstalk sweep --pick --halving --algorithm dsgdm,qg-dsgdm --lr 0.1,0.05,0.02,0.01 "
         "--dataset shapes --agents 4 --epochs 10"},
        {"A list of lists.",
         "crosstalk sweep --grid 'lr-milestones=0.5,0.75|none' --dataset shapes --agents 4 "
         "--epochs 10"},
        {"Both weights of the CCL loss: 16 combinations in one launch.",
         "crosstalk sweep --algorithm ccl --lambda-m 1,.1,.01,.001 --lambda-d 1,.1,.01,.001"}),
    .also = "compare, show, report"};

/* ---- axes ---- */

/* Takes the options that have lists of values out of the arguments: --name A,B or --name=A,B of one
 * that has single values. */
static ct_status take_axes(ct_axes *s, int *n_args, char **args) {
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
        CT_TRY(ct_axes_add(s, name, value));
    }
    *n_args = n_left;
    if (s->n > 0) return CT_OK;
    return ct_fail(CT_INVAL, "give an option several values, as in --lambda-m 1,.1,.01");
}

/* ---- combinations ---- */

static ct_status check_given(const ct_axes *s, int axis, const ct_config *given) {
    char option[64];
    for (int i = 0; ct_axis_option(s->axes[axis].name, i, option, sizeof option), option[0]; i++)
        if (ct_config_is_given(given, option))
            return ct_fail(CT_INVAL, "--%s has both a list and a single value", option);
    return CT_OK;
}

static ct_status name_study(const ct_axes *s, const ct_config *given, ct_study *study) {
    int n = ct_axes_count(s);
    char names[CT_STUDY_LABEL] = "";
    for (int a = 0; a < s->n; a++) {
        size_t m = strlen(names);
        snprintf(names + m, sizeof names - m, "%s%.40s", a > 0 ? "-" : "", s->axes[a].name);
        CT_TRY(check_given(s, a, given));
    }
    if (n > CT_STUDY_CELLS) return ct_fail(CT_INVAL, "more than %d combinations", CT_STUDY_CELLS);
    snprintf(study->name, sizeof study->name, "sweep");
    snprintf(study->title, sizeof study->title, "Sweep on %.40s, %d combinations", given->dataset,
             n);
    snprintf(study->out, sizeof study->out, "runs/sweep-%.60s-%s", given->dataset, names);
    return CT_OK;
}

static ct_status build(const ct_axes *s, const ct_config *given, ct_study *study) {
    CT_TRY(name_study(s, given, study));
    ct_axes_add_heads(s, study);
    for (int k = 0; k < ct_axes_count(s); k++) CT_TRY(ct_axes_add_row(s, k, study));
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
static int method_axis(const ct_axes *s) {
    int at = s->n - 1;
    while (at >= 0 && strcmp(s->axes[at].name, "algorithm") != 0) at--;
    return at;
}

/* Of these methods' cells (NULL: all), the one with the highest validation accuracy; NULL: none is
 * finished. */
static const ct_cell *best_cell(const ct_axes *s, const ct_study *study, const char *method,
                                double *accuracy) {
    const ct_metric *metric = &ct_metrics[CT_METRIC_VALIDATION_ACCURACY];
    const ct_cell *best = NULL;
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        bool is_its =
            method == NULL || strcmp(ct_axes_value(s, cell->row, method_axis(s)), method) == 0;
        double value = cell->summary != NULL ? ct_metric_value(metric, cell->summary) : NAN;
        if (!is_its || isnan(value) || (best != NULL && !(value > *accuracy))) continue;
        best = cell;
        *accuracy = value;
    }
    return best;
}

/* ":lr=0.05:lambda-m=0.1", as compare takes them behind a method. */
static void add_values(const ct_axes *s, int row, int method, ct_text *out) {
    char option[64];
    for (int a = 0; a < s->n; a++)
        for (int i = 0; ct_axis_option(s->axes[a].name, i, option, sizeof option),
                 option[0] != '\0' && a != method;
             i++)
            ct_text_add(out, ":%s=%s", option, ct_axes_value(s, row, a));
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

static void add_method(const ct_axes *s, int row, int method, ct_text *out) {
    ct_text_add(out, "%s", ct_axes_value(s, row, method));
    add_values(s, row, method, out);
}

/* The best of every method, and the command that trains with them. */
static ct_status show_picked(const ct_axes *s, const ct_study *study, int n_args, char **args) {
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
        ct_axes_print(s, row, &lines);
        ct_text_add(&lines, " (validation %.2f %%)\n", accuracy);
        if (methods.n > 0) ct_text_add(&methods, ",");
        if (method >= 0) add_method(s, row, method, &methods);
    }
    if (row < 0) return CT_OK;
    ct_text_add(&lines, "with all training samples: crosstalk %s",
                method < 0 ? "train" : "compare");
    if (method >= 0) ct_text_add(&lines, " --algorithms %s", methods.chars);
    add_words(n_args, args, &lines);
    if (method < 0) ct_axes_print(s, row, &lines);
    ct_text_add(&lines, "\n");
    CT_TRY(ct_text_status(&methods));
    CT_TRY(ct_text_status(&lines));
    ct_show_lines(stdout, lines.chars);
    return CT_OK;
}

/* ---- choosing by halving: a row for every method, tuned and not trained ---- */

/* "lr=0.1,0.05;momentum=0,0.9": all axes but the methods. */
static ct_status say_tuned(const ct_axes *s, int method, char *out, size_t size) {
    size_t n = 0;
    for (int a = 0; a < s->n; a++) {
        if (a == method) continue;
        n += (size_t)snprintf(out + n, n < size ? size - n : 0, "%s%s=", n > 0 ? ";" : "",
                              s->axes[a].name);
        for (int k = 0; k < s->axes[a].n && n < size; k++) {
            if (strpbrk(s->axes[a].values[k], ",;") != NULL)
                return ct_fail(CT_INVAL, "--halving takes no values with commas, as of --%s",
                               s->axes[a].name);
            n +=
                (size_t)snprintf(out + n, size - n, "%s%s", k > 0 ? "," : "", s->axes[a].values[k]);
        }
        if (n >= size) return ct_fail(CT_INVAL, "--halving: too many values");
    }
    return n > 0 ? CT_OK : ct_fail(CT_INVAL, "--halving needs an option with several values");
}

static ct_status build_halving(const ct_axes *s, const ct_own *own, ct_config *given,
                               ct_study *study) {
    char tuned[CT_CONFIG_TEXT];
    const char *parts = ct_own_text(own, "halving");
    int method = method_axis(s);
    CT_TRY(name_study(s, given, study));
    CT_TRY(say_tuned(s, method, tuned, sizeof tuned));
    CT_TRY(ct_rungs_parse(parts[0] != '\0' ? parts : "0.25,0.5,1", &study->tune));
    snprintf(study->tune.seeds, sizeof study->tune.seeds, "%s", given->seeds);
    if (ct_config_is_given(given, "validation-fraction"))
        study->tune.fraction = given->validation_fraction;
    ct_config_unset(given, CT_OPT_validation_fraction); /* of what is tuned, not of what follows */
    snprintf(study->heads[study->n_heads++], CT_STUDY_LABEL, "algorithm");
    for (int k = 0; k < (method < 0 ? 1 : s->axes[method].n); k++) {
        const char *name = method < 0 ? given->algorithm : s->axes[method].values[k];
        if (method >= 0) CT_TRY(ct_study_set(study, k, "algorithm", name));
        CT_TRY(ct_study_set(study, k, "tune", tuned));
        CT_TRY(ct_study_add_line(&study->rows, &study->n_rows, name, 0));
    }
    return CT_OK;
}

static ct_status show_chosen(const ct_axes *s, const ct_study *study, int n_args, char **args) {
    CT_SCOPED(ct_text) lines = {0}, values = {0}, methods = {0};
    bool is_one = method_axis(s) < 0, has_any = false;
    for (int k = 0; k < study->n_cells; k++) {
        const ct_choice *c = study->cells[k].choice;
        if (c == NULL || c->chosen < 0) continue;
        const char *name = study->rows[study->cells[k].row].label;
        double score = c->scores[(c->n_rungs - 1) * c->n_trials + c->chosen];
        ct_text_add(&lines, "picked:%s%s", is_one ? "" : " --algorithm ", is_one ? "" : name);
        ct_axes_print(&c->axes, c->chosen, &lines);
        ct_text_add(&lines, " (validation %.2f %%)\n", 100 * score);
        if (is_one) ct_axes_print(&c->axes, c->chosen, &values);
        if (!is_one) ct_text_add(&methods, "%s%s", has_any ? "," : "", name);
        if (!is_one) add_values(&c->axes, c->chosen, -1, &methods);
        has_any = true;
    }
    if (!has_any) return CT_OK;
    ct_text_add(&lines, "with all training samples: crosstalk %s%s", is_one ? "train" : "compare",
                is_one ? "" : " --algorithms ");
    if (!is_one) ct_text_add(&lines, "%s", methods.n > 0 ? methods.chars : "");
    add_words(n_args, args, &lines);
    ct_text_add(&lines, "%s\n", values.n > 0 ? values.chars : "");
    CT_TRY(ct_text_status(&values));
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
    static ct_axes s;
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
    if (grid != NULL) CT_TRY(ct_axes_add_grid(&s, "--grid", grid));
    CT_TRY(take_axes(&s, &n_args, args));
    CT_TRY(ct_cli_options(n_args, args, &given, NULL, 0));
    bool picks = ct_own_is_given(&own, "pick"), halves = ct_own_is_given(&own, "halving");
    if (halves && !picks) return ct_fail(CT_INVAL, "--halving goes with --pick");
    if (halves && request.json)
        return ct_fail(CT_INVAL, "--halving has no --json; tuned.csv has all numbers");
    request.hides_test = picks;
    request.tune_only = halves;
    if (picks && !halves) CT_TRY(choose_by_validation(&own, &given, &study));
    CT_TRY(halves ? build_halving(&s, &own, &given, &study) : build(&s, &given, &study));
    CT_TRY(ct_cli_study(&study, &given, &request, fits_anywhere));
    if (halves) return show_chosen(&s, &study, n_args, args);
    return picks && !request.json ? show_picked(&s, &study, n_args, args) : CT_OK;
}
