/* Updates: every task runs the whole program on one block of columns over all rows, so that banks
 * are read and written once and temporaries never leave the cache. Within it, assignments that do
 * not look at other rows of each other's targets run row by row: what one leaves is still in the
 * first-level cache when the next one reads it. */
#include "backend/cpu/cpu_internal.h"

#include "util/memory.h"

typedef struct update_run {
    cpu_backend *backend;
    const ct_update *update;
    size_t n_columns;
} update_run;

/* A block of columns on its worker. */
typedef struct columns {
    const update_run *run;
    float *temps;
    const float **terms;
    float *coefs;
    size_t first, n; /* n rounded up to whole vectors: rows are padded */
} columns;

static float *row_of(const columns *c, const ct_bank *bank, int row) {
    if (bank->temp == 0) return ct_host_row(bank, row) + c->first;
    size_t at = (size_t)(bank->temp - 1) * (size_t)c->run->backend->n_temp_rows + (size_t)row;
    return c->temps + at * c->run->backend->n_columns;
}

/* A product with a matrix is as many terms as the matrix has entries in this row. */
static int list_terms(const columns *c, const ct_assign *assign, int row) {
    int n = 0;
    for (int t = 0; t < assign->n_terms; t++) {
        const ct_term *term = &assign->terms[t];
        if (term->matrix == NULL) {
            c->coefs[n] = (float)term->coef;
            c->terms[n++] = row_of(c, term->bank, row);
            continue;
        }
        for (int e = term->matrix->begin[row]; e < term->matrix->begin[row + 1]; e++) {
            c->coefs[n] = (float)(term->coef * term->matrix->value[e]);
            c->terms[n++] = row_of(c, term->bank, term->matrix->column[e]);
        }
    }
    return n;
}

static bool mixes(const ct_assign *assign, const ct_bank *bank) {
    for (int t = 0; t < assign->n_terms; t++) {
        const ct_bank *read = assign->terms[t].bank;
        bool is_same = bank->temp > 0 ? read->temp == bank->temp : read->data == bank->data;
        if (assign->terms[t].matrix != NULL && is_same) return true;
    }
    return false;
}

static int n_rows_of(const ct_update *update, const ct_assign *assign) {
    return assign->target->temp > 0 ? update->n_rows : assign->target->n_own;
}

/* The end of the assignments from `first` on that can run row by row. */
static int end_of_run(const ct_update *update, int first) {
    const ct_assign *all = update->assigns;
    for (int end = first + 1; end < update->n_assigns; end++) {
        if (n_rows_of(update, &all[end]) != n_rows_of(update, &all[first])) return end;
        for (int a = first; a < end; a++)
            if (mixes(&all[a], all[end].target) || mixes(&all[end], all[a].target)) return end;
    }
    return update->n_assigns;
}

static void run_assign(const columns *c, const ct_assign *assign, int row) {
    int n_terms = list_terms(c, assign, row);
    c->run->backend->kernels->lincomb(c->n, n_terms, c->coefs, c->terms,
                                      row_of(c, assign->target, row));
}

static void update_task(void *context, int task, int worker) {
    const update_run *run = context;
    cpu_backend *b = run->backend;
    columns c = {.run = run,
                 .temps = b->temps +
                          (size_t)worker * CT_MAX_TEMPS * (size_t)b->n_temp_rows * b->n_columns,
                 .terms = b->terms + (size_t)worker * b->n_terms,
                 .coefs = b->coefs + (size_t)worker * b->n_terms,
                 .first = (size_t)task * b->n_columns};
    size_t left = run->n_columns - c.first;
    c.n = cpu_round(left < b->n_columns ? left : b->n_columns);
    const ct_update *u = run->update;
    for (int first = 0, end; first < u->n_assigns; first = end) {
        end = end_of_run(u, first);
        for (int row = 0; row < n_rows_of(u, &u->assigns[first]); row++)
            for (int a = first; a < end; a++) run_assign(&c, &u->assigns[a], row);
    }
}

static size_t longest_sum(const ct_update *update) {
    size_t longest = 0;
    for (int a = 0; a < update->n_assigns; a++) {
        size_t n = 0;
        for (int t = 0; t < update->assigns[a].n_terms; t++) {
            const ct_sparse *m = update->assigns[a].terms[t].matrix;
            size_t widest = 1;
            for (int i = 0; m != NULL && i < m->n_rows; i++)
                if ((size_t)(m->begin[i + 1] - m->begin[i]) > widest)
                    widest = (size_t)(m->begin[i + 1] - m->begin[i]);
            n += widest;
        }
        if (n > longest) longest = n;
    }
    return longest;
}

static size_t columns_for(int n_rows) {
    size_t n = CPU_UPDATE_COLUMNS;
    for (int rows = CPU_WIDE_UPDATE_ROWS; rows < n_rows && n > CPU_LEAST_UPDATE_COLUMNS; rows *= 2)
        n /= 2;
    return n;
}

/* Room for temporaries of n_rows rows and sums of n_terms terms. Matrices have no more columns
 * than banks have rows, so what is taken here with the banks serves every later update. */
ct_status ct_cpu_reserve_update(cpu_backend *b, int n_rows, size_t n_terms) {
    const size_t n_threads = (size_t)ct_pool_size(b->pool);
    const size_t most = (size_t)CT_MAX_TERMS * (size_t)(n_rows > 0 ? n_rows : 1);
    if (n_rows > b->n_temp_rows) b->n_temp_rows = n_rows;
    b->n_columns = columns_for(b->n_temp_rows);
    if (n_terms < most) n_terms = most;
    if (n_terms > b->n_terms) b->n_terms = n_terms;
    CT_TRY(ct_reserve(&b->temps, &b->temps_room,
                      n_threads * CT_MAX_TEMPS * (size_t)b->n_temp_rows * b->n_columns,
                      "temporaries of an update"));
    CT_TRY(ct_reserve(&b->terms, &b->terms_room, n_threads * b->n_terms, "the terms of an update"));
    return ct_reserve(&b->coefs, &b->coefs_room, n_threads * b->n_terms, "the terms of an update");
}

ct_status ct_cpu_update(ct_backend *base, const ct_update *update) {
    cpu_backend *backend = (cpu_backend *)base;
    CT_TRY(ct_cpu_reserve_update(backend, update->n_rows, longest_sum(update)));
    update_run run = {.backend = backend, .update = update, .n_columns = ct_host_columns(update)};
    size_t n_tasks = (run.n_columns + backend->n_columns - 1) / backend->n_columns;
    ct_pool_run(backend->pool, (int)n_tasks, update_task, &run);
    return CT_OK;
}
