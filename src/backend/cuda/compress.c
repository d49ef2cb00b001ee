/* Rows in fewer bytes, as calls of a step. */
#include <string.h>

#include "backend/cuda/cuda_internal.h"

_Static_assert(sizeof(ct_adaptive_steps) == 4 * sizeof(float), "kernels read them as four floats");

#define COMPRESSOR(id) extern const ct_compressor_kind ct_compressor_##id;
#include "compress/compressor_list.h"
#undef COMPRESSOR

static const struct {
    const ct_compressor_kind *kind;
    ct_status (*move)(const cuda_parcel *parcel);
} kinds[] = {
#define COMPRESSOR(id) {&ct_compressor_##id, ct_cuda_move_##id},
#include "compress/compressor_list.h"
#undef COMPRESSOR
};

ct_status ct_cuda_launch_parcel(const cuda_backend *backend, const cuda_call *call) {
    cuda_parcel parcel = call->parcel;
    parcel.stream = ct_cuda_stream_of(backend, call);
    parcel.scratch_dev = backend->scratch_dev;
    parcel.keys_dev = (const ct_compress_key *)(backend->stage.dev + call->keys);
    parcel.matrices_dev = (const cuda_matrix *)(backend->stage.dev + call->matrices);
    size_t k = 0;
    while (kinds[k].kind != parcel.how.kind) k++;
    return kinds[k].move(&parcel);
}

static size_t scratch_words(const ct_compressor *how) {
    if (how->n_scratch == 0) return 0;
    return how->kind == &ct_compressor_low_rank ? ct_cuda_low_rank_words(how)
                                                : ct_cuda_top_k_words(how);
}

static ct_status stage_keys(cuda_backend *backend, const ct_packing *p, cuda_call *call) {
    const size_t n_bytes = (size_t)p->n_rows * sizeof *p->keys;
    void *host = NULL;
    CT_TRY(ct_cuda_stage_reserve(backend, n_bytes, &call->keys, &host));
    memcpy(host, p->keys + p->first, n_bytes);
    return CT_OK;
}

static ct_status stage_matrices(cuda_backend *backend, const ct_compressor *how, cuda_call *call) {
    void *host = NULL;
    if (how->kind != &ct_compressor_low_rank) return CT_OK;
    const size_t n = (size_t)ct_low_rank_count(how);
    CT_TRY(ct_cuda_stage_reserve(backend, (n + 1) * sizeof(cuda_matrix), &call->matrices, &host));
    cuda_matrix *matrices = host;
    ct_cuda_list_matrices(how, matrices);
    call->parcel.n_matrices = (unsigned)n;
    memcpy(call->parcel.tiles, matrices[n].tiles, sizeof call->parcel.tiles);
    return CT_OK;
}

/* x: NULL where packed rows are read. */
static ct_status move(const ct_packing *p, const ct_bank *x, ct_bank *known,
                      const ct_bank *packed) {
    cuda_backend *backend = (cuda_backend *)known->backend;
    const size_t first = (size_t)p->first;
    cuda_call call;
    if (p->n_rows == 0) return CT_OK;
    memset(&call, 0, sizeof call);
    call.kind = CUDA_CALL_PARCEL;
    CT_TRY(ct_cuda_call_begin(backend));
    if (x != NULL) call.parcel.scratch_stride = scratch_words(p->how);
    CT_TRY(ct_cuda_reserve_scratch(backend, call.parcel.scratch_stride * (size_t)p->n_rows,
                                   "packed rows"));
    call.parcel.how = *p->how;
    call.parcel.n_rows = p->n_rows;
    call.parcel.x_dev = x != NULL ? x->data + first * x->stride : NULL;
    call.parcel.x_stride = x != NULL ? x->stride : 0;
    call.parcel.known_dev = known->data + first * known->stride;
    call.parcel.known_stride = known->stride;
    call.parcel.packed_dev = packed->data + first * packed->stride;
    call.parcel.packed_stride = packed->stride;
    if (backend->tape.packed_data == known->data) backend->tape.packed_data = NULL;
    CT_TRY(stage_keys(backend, p, &call));
    CT_TRY(stage_matrices(backend, p->how, &call));
    return ct_cuda_call_commit(backend, &call);
}

ct_status ct_cuda_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                           ct_bank *packed) {
    return move(packing, x, known, packed);
}

ct_status ct_cuda_decompress(const ct_packing *packing, const ct_bank *packed, ct_bank *known) {
    return move(packing, NULL, known, packed);
}

ct_status ct_cuda_scale_steps(const ct_adaptive_steps *steps, ct_bank *v, ct_bank *r) {
    cuda_backend *backend = (cuda_backend *)r->backend;
    cuda_call call;
    void *host = NULL;
    memset(&call, 0, sizeof call);
    call.kind = CUDA_CALL_STEPS;
    CT_TRY(ct_cuda_call_begin(backend));
    call.n_columns = r->n;
    call.n_rows = r->n_own;
    call.v.data = v->data;
    call.v.stride = v->stride;
    call.r.data = r->data;
    call.r.stride = r->stride;
    CT_TRY(ct_cuda_stage_reserve(backend, sizeof *steps, &call.steps, &host));
    memcpy(host, steps, sizeof *steps);
    return ct_cuda_call_commit(backend, &call);
}
