/* What was tried and chosen for the tuned cells of a study, as tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "study/grid.h"
#include "study/study_internal.h"
#include "study/tune.h"
#include "util/show.h"

static int count_tuned(const ct_study *study, bool is_chosen) {
    int n = 0;
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        bool is_own = cell->tune[0] != '\0' && cell->tuned_in == NULL;
        n += is_own && (!is_chosen || cell->choice != NULL);
    }
    return n;
}

/* "0.1", "0.1 1": the values of a combination. */
static void say_values(const ct_choice *c, int trial, char *out, size_t size) {
    size_t n = 0;
    for (int a = 0; a < c->axes.n && n < size; a++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", a > 0 ? " " : "",
                              ct_axes_value(&c->axes, trial, a));
}

/* The largest or smallest number of several was chosen: a better one may lie beyond. */
static bool is_at_end(const ct_choice *c) {
    for (int a = 0; a < c->axes.n; a++) {
        const ct_axis_values *axis = &c->axes.axes[a];
        double chosen, value, low = INFINITY, high = -INFINITY;
        bool is_number = ct_parse_double(ct_axes_value(&c->axes, c->chosen, a), &chosen);
        for (int k = 0; k < axis->n && is_number; k++) {
            is_number = ct_parse_double(axis->values[k], &value);
            low = fmin(low, value);
            high = fmax(high, value);
        }
        if (is_number && axis->n > 2 && (chosen == low || chosen == high)) return true;
    }
    return false;
}

/* "0.1: 81.20 84.10; 0.01: 70.00": every combination with its score in each rung that it was in. */
static void say_tried(const ct_choice *c, char *out, size_t size) {
    size_t n = 0;
    for (int k = 0; k < c->n_trials && n < size; k++) {
        char values[CT_STUDY_LABEL];
        say_values(c, k, values, sizeof values);
        n += (size_t)snprintf(out + n, size - n, "%s%s:", k > 0 ? "; " : "", values);
        for (int r = 0; r < c->n_rungs && n < size; r++) {
            double score = c->scores[r * c->n_trials + k];
            if (!c->is_tried[r * c->n_trials + k]) continue;
            n += isnan(score) ? (size_t)snprintf(out + n, size - n, " diverged")
                              : (size_t)snprintf(out + n, size - n, " %.2f", 100 * score);
        }
    }
}

static void add_line(const ct_study *study, const ct_cell *cell, ct_grid *g) {
    const ct_choice *c = cell->choice;
    char words[2 * CT_CONFIG_TEXT] = "diverged";
    for (int k = 0; k < study->n_heads; k++) {
        ct_entry *e = ct_grid_text(g, "");
        ct_parts_get(study->rows[cell->row].label, k, study->n_heads, e->text, sizeof e->text);
    }
    const ct_study_line *column = &study->columns[cell->column];
    ct_grid_text(g, column->line > 0 ? column->label : "-");
    size_t n = 0;
    for (int a = 0; a < c->axes.n; a++)
        n += (size_t)snprintf(words + n, sizeof words - n, "%s%s", a > 0 ? ", " : "",
                              c->axes.axes[a].name);
    ct_grid_text(g, words);
    snprintf(words, sizeof words, "diverged");
    if (c->chosen >= 0) say_values(c, c->chosen, words, sizeof words);
    size_t end = strlen(words);
    if (c->chosen >= 0 && is_at_end(c)) snprintf(words + end, sizeof words - end, " (end)");
    ct_grid_text(g, words);
    if (c->chosen >= 0)
        ct_grid_number(g, "%.*f", 100 * c->scores[(c->n_rungs - 1) * c->n_trials + c->chosen], NAN,
                       2);
    else
        ct_grid_text(g, "-");
    say_tried(c, words, sizeof words);
    ct_grid_text(g, words);
}

static void add_notes(const ct_study *study, ct_text *out) {
    ct_text_add(out,
                "tried: the accuracy (%%) of the consensus model on held-out training samples, "
                "after each rung that the values were in; the test set plays no part\n");
    ct_text_add(out,
                "(end): the largest or smallest that was tried; a better one may lie beyond\n");
    ct_text_add(out, "rungs:");
    for (int r = 0; r < study->tune.n_rungs; r++)
        ct_text_add(out, "%s %g", r > 0 ? "," : "", study->tune.parts[r]);
    ct_text_add(out,
                " of the epochs; the better half goes on, with a run of its own; %g of every "
                "agent's samples are held out\n",
                study->tune.fraction);
    for (int k = 0; k < study->n_columns; k++) {
        const ct_setting *in = ct_study_setting(study, CT_ANY, k, "tuned-in");
        if (in != NULL)
            ct_text_add(out, "%s: the choices of %s\n", study->columns[k].label, in->value);
    }
    int n_missing = count_tuned(study, false) - count_tuned(study, true);
    if (n_missing > 0) ct_text_add(out, "%d choices are not there yet\n", n_missing);
}

static ct_status add_table(const ct_study *study, ct_form form, ct_text *out) {
    CT_SCOPED(ct_grid) g = {0};
    CT_SCOPED(ct_text) notes = {0};
    char title[CT_CONFIG_TEXT + 32];
    static const char *const heads[] = {"run", "tuned", "chosen", "validation %", "tried"};
    CT_TRY(ct_grid_make(1 + count_tuned(study, true), study->n_heads + 5, study->n_heads + 3, &g));
    for (int k = 0; k < study->n_heads; k++) ct_grid_text(&g, study->heads[k]);
    for (int k = 0; k < 5; k++) ct_grid_text(&g, heads[k]);
    for (int k = 0; k < study->n_cells; k++)
        if (study->cells[k].choice != NULL && study->cells[k].tuned_in == NULL)
            add_line(study, &study->cells[k], &g);
    add_notes(study, &notes);
    CT_TRY(ct_text_status(&notes));
    snprintf(title, sizeof title, "%s: what was tuned", study->title);
    ct_frame frame = {.title = title, .label = "tuned", .said = study->said, .notes = notes.chars};
    return ct_grid_write(&g, form, &frame, out);
}

/* ---- CSV ---- */

static void add_trial(const ct_study *study, const ct_cell *cell, int rung, int trial,
                      ct_text *out) {
    const ct_choice *c = cell->choice;
    char values[CT_STUDY_LABEL * 2];
    double score = c->scores[rung * c->n_trials + trial];
    say_values(c, trial, values, sizeof values);
    ct_csv_add(out, study->rows[cell->row].label);
    ct_text_add(out, ",");
    ct_csv_add(out, study->columns[cell->column].label);
    ct_text_add(out, ",%s,%d,", cell->name, trial + 1);
    ct_csv_add(out, values);
    ct_text_add(out, ",%lld,", (long long)c->epochs[rung]);
    if (!isnan(score)) ct_text_add(out, "%.9g", 100 * score);
    ct_text_add(out, ",%s\n", trial == c->chosen ? "chosen" : "");
}

static void add_csv(const ct_study *study, ct_text *out) {
    ct_text_add(out, "row,column,run,trial,values,epochs,validation,choice\n");
    for (int k = 0; k < study->n_cells; k++) {
        const ct_choice *c = study->cells[k].tuned_in == NULL ? study->cells[k].choice : NULL;
        for (int r = 0; c != NULL && r < c->n_rungs; r++)
            for (int t = 0; t < c->n_trials; t++)
                if (c->is_tried[r * c->n_trials + t]) add_trial(study, &study->cells[k], r, t, out);
    }
}

/* ---- files ---- */

ct_status ct_study_add_tuned(const ct_study *study, ct_text *out) {
    if (count_tuned(study, true) == 0) return CT_OK;
    ct_text_add(out, "<h2>What was tuned</h2>\n");
    return add_table(study, CT_FORM_HTML, out);
}

ct_status ct_study_print_tuned(const ct_study *study, FILE *out) {
    CT_SCOPED(ct_text) text = {0};
    CT_TRY(add_table(study, CT_FORM_PLAIN, &text));
    ct_show_lines(out, text.chars);
    return CT_OK;
}

ct_status ct_study_write_tuned(const ct_study *study) {
    CT_SCOPED(ct_text) md = {0}, tex = {0}, csv = {0};
    if (count_tuned(study, true) == 0) return CT_OK;
    CT_TRY(add_table(study, CT_FORM_MARKDOWN, &md));
    CT_TRY(add_table(study, CT_FORM_LATEX, &tex));
    add_csv(study, &csv);
    CT_TRY(ct_study_write_file(study, "tuned.md", &md));
    CT_TRY(ct_study_write_file(study, "tuned.tex", &tex));
    return ct_study_write_file(study, "tuned.csv", &csv);
}
