/* The update program, one column at a time for all rows, in doubles. */
#include "backend/ref/ref.h"

#include "backend/host.h"

typedef struct column {
    const ct_update *update;
    double *temps; /* [CT_MAX_TEMPS][n_rows] */
    size_t k;
} column;

static double value(const column *c, const ct_bank *bank, int row) {
    if (bank->temp > 0) return c->temps[(bank->temp - 1) * c->update->n_rows + row];
    return (double)ct_host_row(bank, row)[c->k];
}

static double term(const column *c, const ct_term *t, int row) {
    if (t->matrix == NULL) return t->coef * value(c, t->bank, row);
    double sum = 0;
    for (int e = t->matrix->begin[row]; e < t->matrix->begin[row + 1]; e++)
        sum += t->matrix->value[e] * value(c, t->bank, t->matrix->column[e]);
    return t->coef * sum;
}

static void assign(const column *c, const ct_assign *a) {
    ct_bank *target = a->target;
    int n_rows = target->temp > 0 ? c->update->n_rows : target->n_own;
    for (int row = 0; row < n_rows; row++) {
        double sum = 0;
        for (int t = 0; t < a->n_terms; t++) sum += term(c, &a->terms[t], row);
        if (target->temp > 0)
            c->temps[(target->temp - 1) * c->update->n_rows + row] = sum;
        else
            ct_host_row(target, row)[c->k] = (float)sum;
    }
}

void ct_ref_update(const ct_update *update, double *temps) {
    column c = {.update = update, .temps = temps};
    for (size_t n = ct_host_columns(update); c.k < n; c.k++)
        for (int a = 0; a < update->n_assigns; a++) assign(&c, &update->assigns[a]);
}
