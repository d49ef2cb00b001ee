/* What the columns of a table hold, counted once and merged over agents. A column's sums are exact,
 * its texts sorted: the order of rows, columns and agents leaves no trace. */
#include "data/table.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"
#include "util/memory.h"

/* Numbers are also kept one by one where they are few, in case they are texts to another agent: codes
 * are, quantities are not, and those would tell others every value there is. */
#define FEW_NUMBERS 32

static const char no_memory[] = "the columns of a table";

/* ---- which columns ---- */

typedef struct chooser {
    const ct_table *table;
    bool *is_ignored; /* [n_columns] */
} chooser;

static ct_status ignore(void *context, const char *name) {
    const chooser *c = context;
    size_t k = ct_table_find(c->table, name);
    if (k == CT_NO_COLUMN || name[0] == '\0')
        return ct_refuse("ignore-columns", "@ignore-columns: %s has no column '%s'", c->table->path,
                         name);
    c->is_ignored[k] = true;
    return CT_OK;
}

static ct_status add_column(const ct_table *t, size_t k, ct_columns *out) {
    CT_TRY(ct_extend(&out->columns, out->n, no_memory));
    ct_column *c = &out->columns[out->n++];
    *c = (ct_column){.is_number = true};
    return ct_make_text(&c->name, ct_table_name(t, k));
}

/* Sorted by name, as the table's own order of them is. */
static ct_status choose(const ct_table *t, size_t label, const char *ignored, ct_columns *out) {
    CT_SCOPED_BLOCK(bool) is_ignored = NULL;
    size_t n_nameless = 0;
    CT_TRY(ct_make(&is_ignored, t->n_columns, no_memory));
    chooser c = {t, is_ignored};
    CT_TRY(ct_split(ignored, ignore, &c));
    for (size_t i = 0; i < t->n_columns; i++) {
        size_t k = t->order[i];
        bool is_nameless = ct_table_name(t, k)[0] == '\0';
        n_nameless += is_nameless;
        if (k != label && !is_ignored[k] && !is_nameless) CT_TRY(add_column(t, k, out));
    }
    if (n_nameless > 0)
        ct_note("%s: %zu column%s without a name left out", t->path, n_nameless,
                n_nameless > 1 ? "s" : "");
    if (out->n > 0) return CT_OK;
    return ct_fail(CT_INVAL, "%s: no column is left beside the label '%s'", t->path,
                   ct_table_name(t, label));
}

/* ---- counting ---- */

static ct_status too_many(const char *path, const char *name) {
    return ct_refuse("ignore-columns",
                     "%s: column '%s' has more than %d different texts; leave it out with "
                     "@ignore-columns %s",
                     path, name, CT_MAX_CATEGORIES, name);
}

static ct_status count_number(ct_column *c, const char *cell) {
    double x = 0;
    (void)ct_cell_number(cell, &x);
    ct_exact_add(&c->sums[0], x);
    ct_exact_add_square(&c->sums[1], x);
    c->n++;
    if (c->has_many) return CT_OK;
    CT_TRY(ct_words_add(&c->categories, cell));
    if (c->categories.n <= FEW_NUMBERS) return CT_OK;
    c->has_many = true;
    ct_words_free(&c->categories);
    return CT_OK;
}

static ct_status count_cell(const ct_table *t, ct_column *c, const char *cell) {
    if (ct_cell_is_missing(cell)) {
        c->n_missing++;
        return CT_OK;
    }
    if (c->is_number) return count_number(c, cell);
    c->n++;
    CT_TRY(ct_words_add(&c->categories, cell));
    return c->categories.n <= CT_MAX_CATEGORIES ? CT_OK : too_many(t->path, c->name);
}

/* Among numbers, one text makes a column categories: it may be a slip. */
static void note_text(const ct_table *t, size_t row, const char *cell, const ct_column *c) {
    ct_note("%s:%u: '%.80s' is no number: column '%s' is taken as categories", t->path,
            (unsigned)t->lines[row], cell, c->name);
}

/* from[k]: the table's column of columns[k]. */
static void find_kinds(const ct_table *t, const size_t *from, ct_columns *out) {
    double unused;
    for (size_t i = 0; i < t->n_rows; i++)
        for (size_t k = 0; k < out->n; k++) {
            const char *cell = ct_table_cell(t, i, from[k]);
            ct_column *c = &out->columns[k];
            if (!c->is_number || ct_cell_is_missing(cell)) continue;
            c->is_number = ct_cell_number(cell, &unused);
            if (!c->is_number && c->n > 0) note_text(t, i, cell, c);
            c->n += c->is_number;
        }
    for (size_t k = 0; k < out->n; k++) out->columns[k].n = 0;
}

static ct_status count(const ct_table *t, const size_t *from, ct_rows train, ct_columns *out) {
    for (size_t k = 0; k < out->n; k++)
        if (out->columns[k].is_number) CT_TRY(ct_make(&out->columns[k].sums, 2, no_memory));
    for (size_t i = 0; i < t->n_rows; i++) {
        if (train.flags != NULL && train.flags[i] != train.wanted) continue;
        for (size_t k = 0; k < out->n; k++)
            CT_TRY(count_cell(t, &out->columns[k], ct_table_cell(t, i, from[k])));
    }
    return CT_OK;
}

void ct_column_measure(ct_column *c) {
    if (c->is_number && c->sums == NULL) return;
    c->mean = 0;
    c->deviation = 1;
    if (!c->is_number || c->n == 0) return;
    c->mean = ct_exact_value(&c->sums[0]) / (double)c->n;
    double deviation = ct_exact_deviation(&c->sums[0], &c->sums[1], c->n);
    if (deviation >= DBL_MIN) c->deviation = deviation;
}

static ct_status check_inputs(const char *what, const ct_columns *c) {
    size_t n = ct_columns_inputs(c);
    if (n <= CT_MAX_TABLE_INPUTS) return CT_OK;
    return ct_fail(CT_INVAL, "%s: %zu inputs, once every category is one; at most %d", what, n,
                   CT_MAX_TABLE_INPUTS);
}

ct_status ct_columns_of(const ct_table *t, size_t label, const char *ignored, ct_rows train,
                        ct_columns *out) {
    CT_SCOPED(ct_columns) all = {0};
    CT_SCOPED_BLOCK(size_t) from = NULL;
    CT_TRY(ct_make_text(&all.label, ct_table_name(t, label)));
    CT_TRY(choose(t, label, ignored, &all));
    CT_TRY(ct_make(&from, all.n, no_memory));
    for (size_t k = 0; k < all.n; k++) from[k] = ct_table_find(t, all.columns[k].name);
    find_kinds(t, from, &all);
    CT_TRY(count(t, from, train, &all));
    for (size_t k = 0; k < all.n; k++) ct_column_measure(&all.columns[k]);
    CT_TRY(check_inputs(t->path, &all));
    ct_move(out, &all);
    return CT_OK;
}

static int compare_name(const void *name, const void *column) {
    return strcmp(name, ((const ct_column *)column)->name);
}

const ct_column *ct_columns_find(const ct_columns *c, const char *name) {
    return bsearch(name, c->columns, c->n, sizeof *c->columns, compare_name);
}

size_t ct_columns_inputs(const ct_columns *c) {
    size_t n = 0;
    for (size_t k = 0; k < c->n; k++)
        n += (c->columns[k].is_number ? 1 : c->columns[k].categories.n) +
             (c->columns[k].n_missing > 0);
    return n;
}

static void column_free(ct_column *c) {
    ct_free(c->name);
    ct_free(c->sums);
    ct_words_free(&c->categories);
    *c = (ct_column){0};
}

void ct_columns_free(ct_columns *c) {
    for (size_t k = 0; k < c->n; k++) column_free(&c->columns[k]);
    ct_free(c->columns);
    ct_free(c->label);
    *c = (ct_columns){0};
}

static ct_status copy_column(const ct_column *from, ct_column *to) {
    *to = *from;
    to->name = NULL;
    to->sums = NULL;
    to->categories = (ct_words){0};
    CT_TRY(ct_make_text(&to->name, from->name));
    if (from->sums != NULL) CT_TRY(ct_make_copy(&to->sums, from->sums, 2, no_memory));
    for (size_t k = 0; k < from->categories.n; k++)
        CT_TRY(ct_words_add(&to->categories, from->categories.words[k]));
    return CT_OK;
}

ct_status ct_columns_copy(const ct_columns *from, ct_columns *out) {
    CT_SCOPED(ct_columns) copy = {0};
    CT_TRY(ct_make_text(&copy.label, from->label));
    CT_TRY(ct_make(&copy.columns, from->n, no_memory));
    for (; copy.n < from->n; copy.n++)
        CT_TRY(copy_column(&from->columns[copy.n], &copy.columns[copy.n]));
    ct_move(out, &copy);
    return CT_OK;
}

/* ---- merging ---- */

/* The first column, by name, that only one of them has. */
static ct_status compare(const ct_columns *a, const ct_columns *b) {
    if (strcmp(a->label, b->label) != 0)
        return ct_fail_about(CT_DIFFERS, "label",
                             "the label is column '%s' at one agent and '%s' at another; name it "
                             "with @label",
                             a->label, b->label);
    size_t n = a->n > b->n ? a->n : b->n;
    for (size_t k = 0; k < n; k++) {
        const char *x = k < a->n ? a->columns[k].name : NULL;
        const char *y = k < b->n ? b->columns[k].name : NULL;
        if (x != NULL && y != NULL && strcmp(x, y) == 0) continue;
        const char *first = x == NULL ? y : y == NULL || strcmp(x, y) < 0 ? x : y;
        return ct_fail(CT_DIFFERS,
                       "column '%s' is not in every agent's table; add it, or leave it out with "
                       "@ignore-columns",
                       first);
    }
    return CT_OK;
}

/* Texts here, and there numbers that are a quantity; or texts, too many of them together. */
static ct_status refuse_many(const char *name, bool are_numbers) {
    if (are_numbers)
        return ct_fail(
            CT_DIFFERS,
            "column '%s' has texts at one agent, and at another numbers that are too many "
            "to be categories; leave it out with @ignore-columns %s",
            name, name);
    return ct_fail(CT_DIFFERS,
                   "column '%s' has more than %d different texts together; leave it out with "
                   "@ignore-columns %s",
                   name, CT_MAX_CATEGORIES, name);
}

static ct_status merge_words(ct_column *a, const ct_column *b) {
    bool are_numbers = a->has_many || b->has_many;
    a->has_many = are_numbers;
    for (size_t k = 0; k < b->categories.n && !a->has_many; k++) {
        CT_TRY(ct_words_add(&a->categories, b->categories.words[k]));
        a->has_many = a->categories.n > CT_MAX_CATEGORIES;
    }
    if (a->has_many) ct_words_free(&a->categories);
    return a->has_many && !a->is_number ? refuse_many(a->name, are_numbers) : CT_OK;
}

static ct_status merge_column(ct_column *a, const ct_column *b) {
    bool is_number = a->is_number && b->is_number;
    if (is_number && (a->sums == NULL || b->sums == NULL))
        return ct_fail(CT_DIFFERS, "column '%s' has a mean alone, and no sums that can be added",
                       a->name);
    a->n += b->n;
    a->n_missing += b->n_missing;
    if (a->n > CT_EXACT_COUNT || a->n_missing > CT_EXACT_COUNT)
        return ct_fail(CT_DIFFERS, "column '%s' has more than %.0f rows", a->name,
                       (double)CT_EXACT_COUNT);
    if (is_number)
        for (int k = 0; k < 2; k++) ct_exact_merge(&a->sums[k], &b->sums[k]);
    if (is_number && a->n > 0 && !ct_exact_is_possible(&a->sums[0], &a->sums[1], a->n))
        return ct_fail(CT_DIFFERS, "column '%s': the agents' sums are impossible", a->name);
    if (!is_number) ct_free(ct_take(&a->sums));
    a->is_number = is_number;
    CT_TRY(merge_words(a, b));
    ct_column_measure(a);
    return CT_OK;
}

ct_status ct_columns_merge(ct_columns *into, const ct_columns *other) {
    CT_TRY(compare(into, other));
    for (size_t k = 0; k < into->n; k++)
        CT_TRY(merge_column(&into->columns[k], &other->columns[k]));
    return check_inputs("the agents' tables", into);
}
