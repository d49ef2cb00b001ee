/* Updates as data: the program and its matrices go into the stage. Updates that follow each other
 * in a step, over banks of the same width, become one program. */
#include <string.h>

#include "backend/cuda/cuda_internal.h"

/* Columns of an update: those of any bank with memory. */
static size_t n_columns(const ct_update *update) {
    for (int a = 0; a < update->n_assigns; a++)
        if (update->assigns[a].target->temp == 0) return update->assigns[a].target->n;
    return 0;
}

/* A matrix into the stage; *offset counts from the program. */
static ct_status put_matrix(cuda_backend *backend, const ct_sparse *matrix, size_t program,
                            int *offset) {
    size_t n_entries = (size_t)matrix->begin[matrix->n_rows], at = 0;
    size_t n_begin = (size_t)matrix->n_rows + 1;
    void *host = NULL;
    CT_TRY(ct_cuda_stage_reserve(
        backend, sizeof(cuda_sparse) + (n_begin + 2 * n_entries) * sizeof(int), &at, &host));
    cuda_sparse *out = host;
    out->n_rows = matrix->n_rows;
    out->n_entries = (int)n_entries;
    int *begin = (int *)(out + 1), *column = begin + n_begin;
    float *value = (float *)(column + n_entries);
    memcpy(begin, matrix->begin, n_begin * sizeof *begin);
    memcpy(column, matrix->column, n_entries * sizeof *column);
    for (size_t e = 0; e < n_entries; e++) value[e] = (float)matrix->value[e];
    *offset = (int)(at - program);
    return CT_OK;
}

static cuda_program *program_at(const cuda_backend *backend, size_t offset) {
    return (cuda_program *)(backend->stage.host[backend->stage.now] + offset);
}

static ct_status put_assign(cuda_backend *backend, const ct_assign *from, int n_temp_rows,
                            size_t program) {
    const ct_bank *target = from->target;
    cuda_assign to = {.data = target->temp > 0 ? NULL : target->data,
                      .stride = target->stride,
                      .temp = target->temp - 1,
                      .n_rows = target->temp > 0 ? n_temp_rows : target->n_own,
                      .n_terms = from->n_terms};
    for (int t = 0; t < from->n_terms; t++) {
        const ct_term *term = &from->terms[t];
        to.terms[t] = (cuda_term){.data = term->bank->temp > 0 ? NULL : term->bank->data,
                                  .stride = term->bank->stride,
                                  .temp = term->bank->temp - 1,
                                  .matrix = -1,
                                  .coef = (float)term->coef};
        if (term->matrix != NULL)
            CT_TRY(put_matrix(backend, term->matrix, program, &to.terms[t].matrix));
    }
    cuda_program *p = program_at(backend, program);
    p->assigns[p->n_assigns++] = to;
    return CT_OK;
}

static int n_temps(const ct_update *update) {
    int n = 0;
    for (int a = 0; a < update->n_assigns; a++)
        if (update->assigns[a].target->temp > n) n = update->assigns[a].target->temp;
    return n;
}

/* The update noted last, if this one can go on in its program. */
static cuda_call *open_program(cuda_backend *backend, const ct_update *update, size_t n_quads) {
    cuda_tape *tape = &backend->tape;
    if (!tape->in_step || tape->n_calls == 0) return NULL;
    cuda_call *last = &tape->calls[tape->n_calls - 1];
    if (last->kind != CUDA_CALL_UPDATE || last->n_quads != n_quads) return NULL;
    int n_assigns = program_at(backend, last->program)->n_assigns + update->n_assigns;
    return last->n_temp_rows == update->n_rows && n_assigns <= CUDA_MAX_ASSIGNS ? last : NULL;
}

/* Packed weights of a bank that is written to are stale. */
static void note_targets(cuda_tape *tape, const ct_update *update) {
    for (int a = 0; a < update->n_assigns; a++)
        if (update->assigns[a].target->data == tape->packed_data) tape->packed_data = NULL;
}

static ct_status put_assigns(cuda_backend *backend, const ct_update *update, size_t program) {
    for (int a = 0; a < update->n_assigns; a++)
        CT_TRY(put_assign(backend, &update->assigns[a], update->n_rows, program));
    return CT_OK;
}

ct_status ct_cuda_run_update(ct_backend *base, const ct_update *update) {
    cuda_backend *backend = (cuda_backend *)base;
    size_t n_quads = (n_columns(update) + 3) / 4;
    if (n_quads == 0) return CT_OK;
    CT_TRY(ct_cuda_call_begin(backend));
    note_targets(&backend->tape, update);
    cuda_call *open = open_program(backend, update, n_quads);
    if (open != NULL) {
        if (n_temps(update) > open->n_temps) open->n_temps = n_temps(update);
        return put_assigns(backend, update, open->program);
    }
    cuda_call call;
    void *host = NULL;
    memset(&call, 0, sizeof call);
    call.kind = CUDA_CALL_UPDATE;
    call.n_quads = n_quads;
    call.n_temps = n_temps(update);
    call.n_temp_rows = update->n_rows;
    CT_TRY(ct_cuda_stage_reserve(backend, sizeof(cuda_program), &call.program, &host));
    *(cuda_program *)host = (cuda_program){.n_temp_rows = update->n_rows, .n_quads = n_quads};
    CT_TRY(put_assigns(backend, update, call.program));
    return ct_cuda_call_commit(backend, &call);
}
