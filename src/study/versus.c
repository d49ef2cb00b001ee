/* Every row of a study against its baseline, seed by seed; and which rows the ranks tell apart. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/charts.h"
#include "study/grid.h"
#include "study/statistics.h"
#include "study/study_internal.h"

#define SHARE 0.95

static int baseline_row(const ct_study *study) {
    return (int)(ct_study_find_line(study->rows, study->n_rows, study->baseline) - study->rows);
}

/* ---- paired differences ---- */

/* Of the seeds that both have. */
typedef struct pairs {
    double difference[CT_STUDY_CELLS];
    int n, n_ahead;
    double mean, low, high;
} pairs;

static bool compare(const ct_cell *ours, const ct_cell *theirs, pairs *p) {
    double sum = 0;
    *p = (pairs){.n = 0};
    for (int i = 0; i < ours->n_seeds; i++)
        for (int k = 0; k < theirs->n_seeds && p->n < CT_STUDY_CELLS; k++) {
            double d = ours->seeds[i].value - theirs->seeds[k].value;
            if (ours->seeds[i].seed != theirs->seeds[k].seed || isnan(d)) continue;
            p->difference[p->n++] = d;
            p->n_ahead += d > 0;
            sum += d;
        }
    if (p->n == 0) return false;
    p->mean = sum / p->n;
    ct_bootstrap(p->difference, p->n, SHARE, &p->low, &p->high);
    return true;
}

typedef ct_status take_pairs(void *context, const ct_cell *cell, const pairs *p);

/* Every finished cell whose column has a finished baseline, in the order of the table. */
static ct_status each_pair(const ct_study *study, take_pairs *take, void *context) {
    CT_SCOPED_BLOCK(pairs) p = NULL;
    CT_TRY(ct_make(&p, 1, "differences"));
    for (int column = 0; column < study->n_columns; column++) {
        const ct_cell *base = ct_study_cell_at(study, baseline_row(study), column);
        for (int line = 0; line < study->n_rows && base != NULL; line++) {
            const ct_cell *cell = ct_study_cell_of(study, study->order[line], column);
            if (cell != NULL && cell != base && compare(cell, base, p))
                CT_TRY(take(context, cell, p));
        }
    }
    return CT_OK;
}

static ct_status count_pair(void *context, const ct_cell *cell, const pairs *p) {
    (void)cell;
    (void)p;
    ++*(int *)context;
    return CT_OK;
}

typedef struct table {
    const ct_study *study;
    ct_grid grid;
    ct_text csv;
} table;

static void table_free(table *t) {
    ct_grid_free(&t->grid);
    ct_text_free(&t->csv);
}

static void add_label(table *t, int row) {
    for (int k = 0; k < t->study->n_heads; k++) {
        ct_entry *e = ct_grid_text(&t->grid, "");
        ct_parts_get(t->study->rows[row].label, k, t->study->n_heads, e->text, sizeof e->text);
    }
}

static ct_status add_pair(void *context, const ct_cell *cell, const pairs *p) {
    table *t = context;
    const ct_study *study = t->study;
    int digits = study->shown[0]->digits;
    char ahead[32];
    add_label(t, cell->row);
    ct_grid_text(&t->grid, study->columns[cell->column].label);
    ct_entry *e = ct_grid_number(&t->grid, "%+.*f", p->mean, NAN, digits);
    e->is_marked = p->low > 0 || p->high < 0;
    ct_grid_number(&t->grid, "%+.*f", p->low, NAN, digits);
    ct_grid_number(&t->grid, "%+.*f", p->high, NAN, digits);
    snprintf(ahead, sizeof ahead, "%d of %d", p->n_ahead, p->n);
    ct_grid_text(&t->grid, ahead);
    ct_csv_add(&t->csv, study->rows[cell->row].label);
    ct_text_add(&t->csv, ",");
    ct_csv_add(&t->csv, study->columns[cell->column].label);
    ct_text_add(&t->csv, ",%s,%d,%.9g,%.9g,%.9g,%d\n", study->shown[0]->name, p->n, p->mean, p->low,
                p->high, p->n_ahead);
    return CT_OK;
}

static void note_pairs(const ct_study *study, ct_text *out) {
    ct_text_add(out,
                "difference: %s minus that of %s on the same seed (the same split, start and "
                "order), mean over the seeds\n",
                study->shown[0]->title, study->baseline);
    ct_text_add(out,
                "from, to: %g %% bootstrap interval (percentiles of %d resampled means); * "
                "where it leaves out 0. Of three seeds it is hardly more than their range\n",
                100 * SHARE, CT_RESAMPLES);
}

static ct_status fill_pairs(table *t) {
    static const char *const heads[] = {"run", "difference", "from", "to", "ahead"};
    const ct_study *study = t->study;
    int n = 0;
    CT_TRY(each_pair(study, count_pair, &n));
    CT_TRY(ct_grid_make(1 + n, study->n_heads + 5, study->n_heads + 1, &t->grid));
    for (int k = 0; k < study->n_heads; k++) ct_grid_text(&t->grid, study->heads[k]);
    for (int k = 0; k < 5; k++) ct_grid_text(&t->grid, heads[k]);
    ct_text_add(&t->csv, "row,column,metric,seeds,difference,low,high,ahead\n");
    return each_pair(study, add_pair, t);
}

/* ---- ranks ---- */

/* Rows that have ended in every column that counts; blocks are seeds of columns. */
typedef struct ranking {
    const ct_study *study;
    int rows[CT_MOST_METHODS];
    int n_rows, n_blocks;
    double *values; /* [n_blocks][n_rows] */
    double ranks[CT_MOST_METHODS];
    ct_friedman test;
} ranking;

static void ranking_free(ranking *r) {
    ct_free(r->values);
}

/* The finished run of a column in which the baseline has ended that has fewest seeds, which all have; NULL: the column
 * does not count. */
static const ct_cell *blocks_of(const ct_study *study, int column) {
    const ct_cell *fewest = NULL;
    if (!ct_cell_has_ended(ct_study_cell_at(study, baseline_row(study), column))) return NULL;
    for (int row = 0; row < study->n_rows; row++) {
        const ct_cell *cell = ct_study_cell_at(study, row, column);
        if (cell != NULL && cell->state == CT_CELL_DONE && cell->n_seeds > 0 &&
            (fewest == NULL || cell->n_seeds < fewest->n_seeds))
            fewest = cell;
    }
    return fewest;
}

static bool is_whole(const ct_study *study, int row) {
    for (int column = 0; column < study->n_columns; column++)
        if (blocks_of(study, column) != NULL &&
            !ct_cell_has_ended(ct_study_cell_at(study, row, column)))
            return false;
    return true;
}

/* NaN: the run diverged, or has no such seed. */
static double value_of(const ct_cell *cell, uint64_t seed) {
    for (int s = 0; s < cell->n_seeds; s++)
        if (cell->seeds[s].seed == seed) return cell->seeds[s].value;
    return NAN;
}

static void add_block(ranking *r, int column, uint64_t seed) {
    double *values = r->values + (size_t)r->n_blocks++ * (size_t)r->n_rows;
    for (int k = 0; k < r->n_rows; k++) {
        double value = value_of(ct_study_cell_at(r->study, r->rows[k], column), seed);
        values[k] = ct_metric_rises(r->study->shown[0]) ? value : -value;
    }
}

/* Best first. */
static void sort_ranks(ranking *r) {
    for (int k = 1; k < r->n_rows; k++) {
        int row = r->rows[k], at = k;
        double rank = r->ranks[k];
        for (; at > 0 && r->ranks[at - 1] > rank; at--) {
            r->ranks[at] = r->ranks[at - 1];
            r->rows[at] = r->rows[at - 1];
        }
        r->ranks[at] = rank;
        r->rows[at] = row;
    }
}

/* *is_there: at least two rows and two blocks. */
static ct_status rank_rows(const ct_study *study, ranking *r, bool *is_there) {
    int most = 0;
    r->study = study;
    for (int row = 0; row < study->n_rows && r->n_rows < CT_MOST_METHODS; row++)
        if (is_whole(study, row)) r->rows[r->n_rows++] = row;
    for (int column = 0; column < study->n_columns; column++)
        if (blocks_of(study, column) != NULL) most += blocks_of(study, column)->n_seeds;
    *is_there = r->n_rows > 1 && most > 1;
    if (!*is_there) return CT_OK;
    CT_TRY(ct_make(&r->values, (size_t)most * (size_t)r->n_rows, "ranks"));
    for (int column = 0; column < study->n_columns; column++) {
        const ct_cell *blocks = blocks_of(study, column);
        for (int s = 0; blocks != NULL && s < blocks->n_seeds; s++)
            add_block(r, column, blocks->seeds[s].seed);
    }
    ct_friedman_test(r->values, r->n_blocks, r->n_rows, r->ranks, &r->test);
    sort_ranks(r);
    return CT_OK;
}

static void note_ranks(const ranking *r, ct_text *out) {
    const ct_study *study = r->study;
    const char *before = "not ranked, because runs are missing: ";
    bool has_left = false;
    ct_text_add(out,
                "mean rank over %d blocks, a block being a column's seed (its split, start and "
                "order); 1 is best\n",
                r->n_blocks);
    ct_text_add(out,
                "Friedman: chi2 %.2f, F %.2f, p %.2g; Nemenyi: mean ranks that differ by less "
                "than %.2f are not told apart (0.05)\n",
                r->test.chi2, r->test.f, r->test.p, r->test.difference);
    for (int row = 0; row < study->n_rows; row++) {
        if (is_whole(study, row)) continue;
        ct_text_add(out, "%s%s", before, study->rows[row].label);
        before = "; ";
        has_left = true;
    }
    if (has_left) ct_text_add(out, "\n");
}

static ct_status fill_ranks(const ranking *r, table *t) {
    const ct_study *study = t->study;
    CT_TRY(ct_grid_make(1 + r->n_rows, study->n_heads + 2, study->n_heads, &t->grid));
    for (int k = 0; k < study->n_heads; k++) ct_grid_text(&t->grid, study->heads[k]);
    ct_grid_text(&t->grid, "mean rank");
    ct_grid_text(&t->grid, "told apart from the best");
    ct_text_add(&t->csv, "row,mean_rank,blocks,critical_difference\n");
    for (int k = 0; k < r->n_rows; k++) {
        add_label(t, r->rows[k]);
        ct_grid_number(&t->grid, "%.*f", r->ranks[k], NAN, 2);
        ct_grid_text(&t->grid, r->ranks[k] - r->ranks[0] >= r->test.difference ? "yes" : "no");
        ct_csv_add(&t->csv, study->rows[r->rows[k]].label);
        ct_text_add(&t->csv, ",%.9g,%d,%.9g\n", r->ranks[k], r->n_blocks, r->test.difference);
    }
    return CT_OK;
}

static ct_status draw_ranks(const ranking *r) {
    CT_SCOPED_BLOCK(ct_rank) ranks = NULL;
    CT_SCOPED(ct_text) note = {0}, svg = {0};
    CT_TRY(ct_make(&ranks, (size_t)r->n_rows, "ranks"));
    for (int k = 0; k < r->n_rows; k++) {
        ct_study_say_row(r->study, r->rows[k], 0, r->study->n_heads, ranks[k].label,
                         sizeof ranks[k].label);
        ranks[k].rank = r->ranks[k];
        ranks[k].style = ct_study_row_style(r->study, r->rows[k]);
    }
    note_ranks(r, &note);
    CT_TRY(ct_text_status(&note));
    ct_rank_chart chart = {.id = "figure-ranks",
                           .title = r->study->title,
                           .note = note.chars,
                           .ranks = ranks,
                           .n = r->n_rows,
                           .difference = r->test.difference};
    ct_ranks_draw(&chart, &svg);
    return ct_study_write_drawing(r->study, "figure-ranks", &svg);
}

/* ---- files ---- */

static ct_status add_forms(const table *t, const char *name, const char *what, const ct_text *notes,
                           ct_text *page) {
    static const char *const endings[] = {"md", "tex"};
    char title[CT_CONFIG_TEXT + 64], file[64];
    snprintf(title, sizeof title, "%s: %s", t->study->title, what);
    ct_frame frame = {.title = title, .label = name, .said = t->study->said, .notes = notes->chars};
    if (page != NULL) {
        ct_text_add(page, "<h2>%s</h2>\n", what);
        return ct_grid_write(&t->grid, CT_FORM_HTML, &frame, page);
    }
    for (int k = 0; k < 2; k++) {
        CT_SCOPED(ct_text) text = {0};
        CT_TRY(ct_grid_write(&t->grid, k == 0 ? CT_FORM_MARKDOWN : CT_FORM_LATEX, &frame, &text));
        snprintf(file, sizeof file, "%s.%s", name, endings[k]);
        CT_TRY(ct_study_write_file(t->study, file, &text));
    }
    snprintf(file, sizeof file, "%s.csv", name);
    return ct_study_write_file(t->study, file, &t->csv);
}

static ct_status add_pairs(const ct_study *study, ct_text *page) {
    CT_SCOPED(table) t = {.study = study};
    CT_SCOPED(ct_text) notes = {0};
    CT_TRY(fill_pairs(&t));
    if (t.grid.n_lines == 1) return CT_OK;
    note_pairs(study, &notes);
    CT_TRY(ct_text_status(&notes));
    return add_forms(&t, "versus", "against the baseline", &notes, page);
}

static ct_status add_ranks(const ct_study *study, ct_text *page) {
    CT_SCOPED_BLOCK(ranking) r = NULL;
    CT_SCOPED(table) t = {.study = study};
    CT_SCOPED(ct_text) notes = {0};
    bool is_there = false;
    CT_TRY(ct_make(&r, 1, "ranks"));
    ct_status status = rank_rows(study, r, &is_there);
    if (status == CT_OK && is_there) status = fill_ranks(r, &t);
    if (status == CT_OK && is_there) note_ranks(r, &notes);
    if (status == CT_OK && is_there) status = add_forms(&t, "ranks", "mean ranks", &notes, page);
    if (status == CT_OK && is_there && page == NULL) status = draw_ranks(r);
    ranking_free(r);
    return status;
}

ct_status ct_study_write_versus(const ct_study *study) {
    if (study->baseline[0] == '\0') return CT_OK;
    CT_TRY(add_pairs(study, NULL));
    CT_TRY(add_ranks(study, NULL));
    return ct_study_write_pareto(study);
}

ct_status ct_study_add_versus(const ct_study *study, ct_text *out) {
    if (study->baseline[0] == '\0') return CT_OK;
    CT_TRY(add_pairs(study, out));
    return add_ranks(study, out);
}
