/* Rows of a table as inputs of a network. */
#include "data/table.h"

#include <math.h>

#include "util/budget.h"
#include "util/log.h"
#include "util/memory.h"

/* Further away is as far: a typing error in a number must not drown all others. */
#define FARTHEST 1e6

typedef struct encoder {
    const ct_table *table;
    const ct_columns *columns;
    size_t *from;     /* [columns->n] the table's column */
    size_t n_unknown; /* texts that are no category, or missing where none was */
    size_t unknown_row, unknown_column;
} encoder;

static ct_status find_columns(encoder *e) {
    const ct_table *t = e->table;
    size_t n = e->columns->n;
    CT_TRY(ct_make(&e->from, n, "the columns of a table"));
    for (size_t k = 0; k < n; k++) {
        e->from[k] = ct_table_find(t, e->columns->columns[k].name);
        if (e->from[k] == CT_NO_COLUMN)
            return ct_fail(CT_DIFFERS, "%s: there is no column '%s'", t->path,
                           e->columns->columns[k].name);
    }
    return CT_OK;
}

static float scaled(const ct_column *c, double x) {
    double z = (x / 2 - c->mean / 2) / (c->deviation / 2); /* halves: no difference overflows */
    return (float)fmin(fmax(z, -FARTHEST), FARTHEST);
}

static ct_status encode_number(const encoder *e, size_t row, const ct_column *c, const char *cell,
                               float *out) {
    double x = 0;
    if (!ct_cell_number(cell, &x))
        return ct_fail(CT_DIFFERS, "%s:%u: '%.80s' in column '%s', which has numbers alone",
                       e->table->path, (unsigned)e->table->lines[row], cell, c->name);
    *out = scaled(c, x);
    return CT_OK;
}

static ct_status encode_cell(encoder *e, size_t row, size_t k, float *out) {
    const ct_column *c = &e->columns->columns[k];
    const char *cell = ct_table_cell(e->table, row, e->from[k]);
    bool is_missing = ct_cell_is_missing(cell), is_known = is_missing && c->n_missing > 0;
    if (is_known) out[c->is_number ? 1 : c->categories.n] = 1;
    if (!is_missing && c->is_number) return encode_number(e, row, c, cell, out);
    size_t place = is_missing ? 0 : ct_words_place(&c->categories, cell, &is_known);
    if (!is_missing && is_known) out[place] = 1;
    if (is_known) return CT_OK;
    if (e->n_unknown++ > 0) return CT_OK;
    e->unknown_row = row;
    e->unknown_column = k;
    return CT_OK;
}

static ct_status encode_rows(encoder *e, ct_rows rows, float *to) {
    for (size_t i = 0; i < e->table->n_rows; i++) {
        if (rows.flags != NULL && rows.flags[i] != rows.wanted) continue;
        for (size_t k = 0; k < e->columns->n; k++) {
            const ct_column *c = &e->columns->columns[k];
            CT_TRY(encode_cell(e, i, k, to));
            to += (c->is_number ? 1 : c->categories.n) + (c->n_missing > 0);
        }
    }
    return CT_OK;
}

static void note_unknown(const encoder *e) {
    const ct_table *t = e->table;
    size_t row = e->unknown_row, k = e->unknown_column;
    if (e->n_unknown == 0) return;
    ct_note(
        "%s: %zu cells have values that no training row has, and count as 0; the first: '%.80s' "
        "in column '%s', line %u",
        t->path, e->n_unknown, ct_table_cell(t, row, e->from[k]), e->columns->columns[k].name,
        (unsigned)t->lines[row]);
}

static size_t count_rows(const ct_table *t, ct_rows rows) {
    size_t n = 0;
    for (size_t i = 0; i < t->n_rows; i++) n += rows.flags == NULL || rows.flags[i] == rows.wanted;
    return n;
}

static void encoder_free(encoder *e) {
    ct_free(e->from);
}

ct_status ct_table_encode(const ct_table *t, const ct_columns *columns, ct_rows rows,
                          ct_images *out) {
    CT_SCOPED(encoder) e = {.table = t, .columns = columns};
    CT_SCOPED(ct_images) images = {.n = count_rows(t, rows), .channels = 1, .height = 1};
    size_t width = ct_columns_inputs(columns);
    CT_TRY(find_columns(&e));
    if (images.n > CT_MAX_TABLE_VALUES / width)
        return ct_fail(CT_IO, "%s: %zu rows of %zu inputs; at most %zu in all", t->path, images.n,
                       width, CT_MAX_TABLE_VALUES);
    images.width = (int)width;
    CT_TRY(ct_make(&images.values, images.n * width, t->path));
    CT_TRY(ct_make(&images.labels, images.n, t->path));
    CT_TRY(encode_rows(&e, rows, images.values));
    note_unknown(&e);
    ct_move(out, &images);
    return CT_OK;
}
