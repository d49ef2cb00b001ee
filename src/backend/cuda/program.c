/* Updates as data: the program and its matrices go into the stage. Updates that follow each other
 * in a step, over banks of the same width, become one program. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "backend/cuda/cuda_internal.h"

_Static_assert(offsetof(cuda_program, script) == CUDA_PROGRAM_BYTES, "blocks copy so much of it");
_Static_assert(sizeof(cuda_script) % 16 == 0 && offsetof(cuda_script, orders) % 16 == 0,
               "or all of it, 16 bytes at a time, and orders in one access");

/* Columns of an update: those of any bank with memory. */
static size_t n_columns(const ct_update *update) {
    for (int a = 0; a < update->n_assigns; a++)
        if (update->assigns[a].target->temp == 0) return update->assigns[a].target->n;
    return 0;
}

static cuda_program *program_at(const cuda_backend *backend, size_t offset) {
    return (cuda_program *)(backend->stage.host[backend->stage.now] + offset);
}

/* Room for n ints: in the program's tail, or else in the stage; *offset counts from the program. */
static ct_status reserve_ints(cuda_backend *backend, size_t program, size_t n, int *offset,
                              int **out) {
    cuda_program *p = program_at(backend, program);
    if ((size_t)p->n_tail + n <= sizeof p->tail / sizeof *p->tail) {
        *out = p->tail + p->n_tail;
        *offset = (int)((char *)*out - (char *)p);
        p->n_tail += (int)n;
        return CT_OK;
    }
    size_t at = 0;
    void *host = NULL;
    CT_TRY(ct_cuda_stage_reserve(backend, n * sizeof(int), &at, &host));
    *out = host;
    *offset = (int)(at - program);
    return CT_OK;
}

static ct_status put_matrix(cuda_backend *backend, const ct_sparse *matrix, size_t program,
                            int *offset) {
    size_t n_entries = (size_t)matrix->begin[matrix->n_rows];
    size_t n_begin = (size_t)matrix->n_rows + 1;
    int *ints = NULL;
    CT_TRY(reserve_ints(backend, program,
                        sizeof(cuda_sparse) / sizeof(int) + n_begin + 2 * n_entries, offset,
                        &ints));
    cuda_sparse *out = (cuda_sparse *)ints;
    out->n_rows = matrix->n_rows;
    out->n_entries = (int)n_entries;
    int *begin = (int *)(out + 1), *column = begin + n_begin;
    float *value = (float *)(column + n_entries);
    memcpy(begin, matrix->begin, n_begin * sizeof *begin);
    memcpy(column, matrix->column, n_entries * sizeof *column);
    for (size_t e = 0; e < n_entries; e++) value[e] = (float)matrix->value[e];
    return CT_OK;
}

/* The slot of a bank, a new one if it has none yet; NULL: there are too many. A temporary's number
 * stands in its stride. */
static cuda_slot *slot_of(cuda_program *p, const ct_bank *bank, int n_rows) {
    bool is_temp = bank->temp > 0;
    float *data = is_temp ? NULL : bank->data;
    size_t stride = is_temp ? (size_t)bank->temp : bank->stride;
    for (int k = 0; k < p->n_slots; k++)
        if (p->slots[k].data == data && p->slots[k].stride == stride) return &p->slots[k];
    if (p->n_slots == CUDA_MAX_SLOTS) return NULL;
    int *n_before = is_temp ? &p->n_temp_rows : &p->n_bank_rows;
    cuda_slot *slot = &p->slots[p->n_slots++];
    *slot = (cuda_slot){.data = data,
                        .stride = stride,
                        .first = *n_before,
                        .n_rows = is_temp ? n_rows : bank->n_rows};
    *n_before += slot->n_rows;
    return slot;
}

/* Slots for everything the update touches; false: there are too many. */
static bool add_slots(cuda_program *p, const ct_update *update) {
    for (int a = 0; a < update->n_assigns; a++) {
        const ct_assign *assign = &update->assigns[a];
        if (slot_of(p, assign->target, update->n_rows) == NULL) return false;
        for (int t = 0; t < assign->n_terms; t++)
            if (slot_of(p, assign->terms[t].bank, update->n_rows) == NULL) return false;
    }
    return true;
}

/* Rows of a bank that a term reads. */
static int rows_read(const ct_term *term, int n_rows) {
    if (term->matrix == NULL) return n_rows;
    int n = 0;
    for (int e = 0; e < term->matrix->begin[term->matrix->n_rows]; e++)
        if (term->matrix->column[e] >= n) n = term->matrix->column[e] + 1;
    return n;
}

static ct_status put_assign(cuda_backend *backend, const ct_assign *from, int n_temp_rows,
                            size_t program) {
    cuda_program *p = program_at(backend, program);
    int n_rows = from->target->temp > 0 ? n_temp_rows : from->target->n_own;
    cuda_assign to = {.n_rows = n_rows, .n_terms = from->n_terms};
    for (int t = 0; t < from->n_terms; t++) {
        const ct_term *term = &from->terms[t];
        cuda_slot *slot = slot_of(p, term->bank, n_temp_rows);
        int n_read = rows_read(term, n_rows);
        assert(slot != NULL && n_read <= slot->n_rows);
        if (slot->data != NULL && n_read > slot->n_written && n_read > slot->n_load)
            slot->n_load = n_read;
        to.terms[t] =
            (cuda_term){.slot = (int)(slot - p->slots), .matrix = -1, .coef = (float)term->coef};
        if (term->matrix == NULL) continue;
        CT_TRY(put_matrix(backend, term->matrix, program, &to.terms[t].matrix));
        p = program_at(backend, program); /* the stage may have moved */
    }
    cuda_slot *target = slot_of(p, from->target, n_temp_rows);
    if (n_rows > target->n_written) target->n_written = n_rows;
    to.slot = (int)(target - p->slots);
    p->assigns[p->n_assigns++] = to;
    return CT_OK;
}

/* The update noted last, if this one can go on in its program. */
static cuda_call *open_program(cuda_backend *backend, const ct_update *update, size_t n_quads) {
    cuda_tape *tape = &backend->tape;
    if (!tape->in_step || tape->n_calls == 0) return NULL;
    cuda_call *last = &tape->calls[tape->n_calls - 1];
    if (last->kind != CUDA_CALL_UPDATE || last->n_quads != n_quads) return NULL;
    cuda_program with = *program_at(backend, last->program);
    if (last->n_rows != update->n_rows || with.n_assigns + update->n_assigns > CUDA_MAX_ASSIGNS)
        return NULL;
    return add_slots(&with, update) ? last : NULL;
}

/* Packed weights of a bank that is written to are stale. */
static void note_targets(cuda_tape *tape, const ct_update *update) {
    for (int a = 0; a < update->n_assigns; a++)
        if (update->assigns[a].target->data == tape->packed_data) tape->packed_data = NULL;
}

bool ct_cuda_writes(const cuda_backend *backend, const cuda_call *update, const float *data) {
    const cuda_program *p = program_at(backend, update->program);
    for (int a = 0; a < p->n_assigns; a++)
        if (p->slots[p->assigns[a].slot].data == data) return true;
    return false;
}

static ct_status put_update(cuda_backend *backend, const ct_update *update, cuda_call *call) {
    if (!add_slots(program_at(backend, call->program), update))
        return ct_fail(CT_INVAL, "an update of more than %d banks and temporaries", CUDA_MAX_SLOTS);
    for (int a = 0; a < update->n_assigns; a++)
        CT_TRY(put_assign(backend, &update->assigns[a], update->n_rows, call->program));
    cuda_program *p = program_at(backend, call->program);
    cuda_script *script = &p->script;
    ct_cuda_find_rounds(p);
    if (backend->tape.no_scripts || !ct_cuda_rounds_fit(script, backend->shared_limit))
        script->n = 0;
    call->n_temp_rows = p->n_temp_rows;
    call->n_bank_rows = p->n_bank_rows;
    call->n_rounds = script->n;
    call->n_shared = script->n_shared;
    call->n_places = script->n_places;
    if (script->n > 0) return CT_OK;
    return ct_cuda_reserve_scratch(backend,
                                   ct_cuda_update_words(call->n_temp_rows, backend->shared_limit),
                                   "temporaries of an update");
}

ct_status ct_cuda_run_update(ct_backend *base, const ct_update *update) {
    cuda_backend *backend = (cuda_backend *)base;
    size_t n_quads = (n_columns(update) + 3) / 4;
    if (n_quads == 0) return CT_OK;
    CT_TRY(ct_cuda_call_begin(backend));
    note_targets(&backend->tape, update);
    cuda_call *open = open_program(backend, update, n_quads);
    if (open != NULL) return put_update(backend, update, open);
    cuda_call call;
    void *host = NULL;
    memset(&call, 0, sizeof call);
    call.kind = CUDA_CALL_UPDATE;
    call.n_quads = n_quads;
    call.n_rows = update->n_rows;
    CT_TRY(ct_cuda_stage_reserve(backend, sizeof(cuda_program), &call.program, &host));
    memset(host, 0, sizeof(cuda_program));
    ((cuda_program *)host)->n_quads = n_quads;
    ((cuda_program *)host)->n_rows = update->n_rows;
    CT_TRY(put_update(backend, update, &call));
    return ct_cuda_call_commit(backend, &call);
}
