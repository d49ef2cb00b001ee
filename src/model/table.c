/* Probabilities of the rows of a table, encoded with the columns that the model was trained with. */
#include "data/table.h"

#include <string.h>

#include "model/model_internal.h"
#include "util/log.h"
#include "util/memory.h"

static void note_others(const ct_table *t, const ct_columns *columns) {
    size_t n = 0, first = 0;
    for (size_t k = t->n_columns; k-- > 0;) {
        const char *name = ct_table_name(t, k);
        if (ct_columns_find(columns, name) != NULL || strcmp(name, columns->label) == 0) continue;
        first = k;
        n++;
    }
    if (n == 1) ct_note("%s: column '%s' is no input", t->path, ct_table_name(t, first));
    if (n > 1)
        ct_note("%s: %zu columns are no inputs; the first is '%s'", t->path, n,
                ct_table_name(t, first));
}

/* What the rows are, as far as the table says. */
static void read_labels(const ct_model *m, const ct_table *t, int32_t *labels) {
    size_t column = ct_table_find(t, m->facts.columns.label);
    for (size_t i = 0; i < t->n_rows; i++)
        labels[i] =
            column != CT_NO_COLUMN ? ct_model_find_class(m, ct_table_cell(t, i, column)) : -1;
}

ct_status ct_model_run_table(ct_model *m, const char *path, float **probabilities, int32_t **labels,
                             size_t *n) {
    CT_SCOPED(ct_table) t = {0};
    CT_SCOPED(ct_images) rows = {0};
    CT_SCOPED_BLOCK(float) out = NULL;
    const ct_columns *columns = &m->facts.columns;
    if (columns->n == 0) return ct_fail(CT_INVAL, "%s was not trained on a table", m->path);
    CT_TRY(ct_table_read(path, &t));
    note_others(&t, columns);
    CT_TRY(ct_table_encode(&t, columns, (ct_rows){.flags = NULL}, &rows));
    CT_TRY(
        ct_make_block(&out, rows.n, (size_t)m->facts.n_classes * sizeof *out, "the probabilities"));
    CT_TRY(ct_model_run_floats(m, rows.values, CT_PIXELS_PLANES, rows.n, out));
    read_labels(m, &t, rows.labels);
    *n = rows.n;
    *probabilities = ct_take(&out);
    *labels = ct_take(&rows.labels);
    return CT_OK;
}
