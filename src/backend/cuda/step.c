/* Steps: calls are noted, then launched as one recorded graph. */
#include <string.h>

#include "backend/cuda/cuda_internal.h"

static void forget(cuda_recording *r) {
    if (r->graph != NULL) cudaGraphExecDestroy(r->graph);
    r->graph = NULL;
    r->n_calls = 0;
}

void ct_cuda_forget_graphs(cuda_backend *backend) {
    cuda_tape *tape = &backend->tape;
    for (int k = 0; k < tape->n_recordings; k++) forget(&tape->recordings[k]);
    tape->n_recordings = tape->oldest = 0;
}

static ct_status launch_all(cuda_backend *backend) {
    const cuda_call *calls = backend->tape.calls;
    for (int k = 0; k < backend->tape.n_calls; k++) {
        bool forks = calls[k].is_beside && (k == 0 || !calls[k - 1].is_beside);
        if (forks) CT_TRY(ct_cuda_fork(backend, &calls[k]));
        CT_TRY(ct_cuda_launch(backend, &calls[k]));
    }
    return CT_OK;
}

ct_status ct_cuda_step_begin(ct_backend *base) {
    cuda_backend *backend = (cuda_backend *)base;
    backend->tape.in_step = true;
    backend->tape.n_calls = 0;
    backend->tape.packed_data = NULL;
    return ct_cuda_stage_begin(backend);
}

/* What was noted so far is launched call by call; the step goes on. */
ct_status ct_cuda_flush(cuda_backend *backend) {
    cuda_tape *tape = &backend->tape;
    if (!tape->in_step || tape->n_calls == 0) return CT_OK;
    CT_TRY(ct_cuda_stage_send(backend));
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream)); /* the stage is written to further */
    ct_status status = launch_all(backend);
    tape->n_calls = 0;
    tape->packed_data = NULL;
    return status;
}

ct_status ct_cuda_call_begin(cuda_backend *backend) {
    backend->cache.bank_data = NULL;
    return backend->tape.in_step ? CT_OK : ct_cuda_stage_begin(backend);
}

/* Whether features run beside a gradient on weights of their own, as those of public copies do. */
static bool has_own_weights(const cuda_call *features, const cuda_call *gradient) {
    return features->params.data != gradient->params.data ||
           features->n_models != gradient->n_models;
}

/* Whether a call between features and a gradient may run beside the gradient's forward pass, which
 * reads weights and nothing else that these calls write. */
static bool may_be_beside(const cuda_backend *backend, const cuda_call *call,
                          const cuda_call *gradient) {
    if (call->kind == CUDA_CALL_UPDATE)
        return !ct_cuda_writes(backend, call, gradient->params.data);
    return call->kind == CUDA_CALL_PARCEL;
}

/* The features of a gradient's cross-features, and what becomes of them (class sums are packed and
 * gathered), run beside its forward pass: from the features' first call on. They share its packed
 * weights, or have weights of their own and pack them. */
static ct_status find_beside(cuda_backend *backend, cuda_call *gradient) {
    cuda_tape *tape = &backend->tape;
    const int end = tape->n_calls - 1;
    int first = end;
    bool is_there = false;
    if (gradient->buffers.data != NULL || !gradient->loss.ccl) return CT_OK;
    for (int k = end - 1; k >= 0; k--) {
        cuda_call *call = &tape->calls[k];
        if (may_be_beside(backend, call, gradient)) continue;
        if (call->kind != CUDA_CALL_FEATURES || call->plan != gradient->plan) break;
        call->packs_beside = has_own_weights(call, gradient);
        if (!call->packs_beside && !gradient->is_packed) break;
        CT_TRY(ct_cuda_reserve_beside(call, &is_there));
        if (!is_there) return CT_OK;
        first = k;
        if (!call->is_packed) break;
    }
    if (first < end && tape->calls[first].packs_beside && tape->calls[first].is_packed)
        return CT_OK; /* by a call that is not beside */
    for (int k = first; k < end; k++) tape->calls[k].is_beside = true;
    gradient->joins = first < end;
    return CT_OK;
}

ct_status ct_cuda_call_commit(cuda_backend *backend, const cuda_call *call) {
    cuda_tape *tape = &backend->tape;
    if (!tape->in_step) {
        CT_TRY(ct_cuda_stage_send(backend));
        return ct_cuda_launch(backend, call);
    }
    if (tape->n_calls == CUDA_MAX_CALLS) CT_TRY(ct_cuda_flush(backend));
    cuda_call *noted = &tape->calls[tape->n_calls++];
    *noted = *call;
    if (call->plan == NULL) return CT_OK;
    noted->is_packed = tape->packed_plan == call->plan && tape->packed_data == call->params.data &&
                       tape->n_packed == call->n_models;
    tape->packed_plan = call->plan;
    tape->packed_data = call->params.data;
    tape->n_packed = call->n_models;
    return call->kind == CUDA_CALL_GRADIENT ? find_beside(backend, noted) : CT_OK;
}

static cuda_recording *find(cuda_tape *tape) {
    for (int k = 0; k < tape->n_recordings; k++) {
        cuda_recording *r = &tape->recordings[k];
        if (r->n_calls == tape->n_calls &&
            memcmp(r->calls, tape->calls, (size_t)r->n_calls * sizeof *r->calls) == 0)
            return r;
    }
    return NULL;
}

/* A place for a new recording; the oldest makes room. */
static cuda_recording *new_recording(cuda_tape *tape) {
    if (tape->n_recordings < CUDA_GRAPHS) return &tape->recordings[tape->n_recordings++];
    cuda_recording *r = &tape->recordings[tape->oldest];
    tape->oldest = (tape->oldest + 1) % CUDA_GRAPHS;
    forget(r);
    return r;
}

static ct_status record(cuda_backend *backend, cuda_recording **out) {
    cuda_tape *tape = &backend->tape;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    CT_CUDA_TRY(cudaStreamBeginCapture(backend->stream, cudaStreamCaptureModeThreadLocal));
    ct_status status = launch_all(backend);
    cudaError_t error = cudaStreamEndCapture(backend->stream, &graph);
    if (status == CT_OK && error == cudaSuccess) error = cudaGraphInstantiate(&exec, graph, 0);
    if (graph != NULL) cudaGraphDestroy(graph);
    CT_TRY(status);
    if (error != cudaSuccess) return ct_cuda_fail(error, "recording a graph");
    cuda_recording *r = new_recording(tape);
    memcpy(r->calls, tape->calls, (size_t)tape->n_calls * sizeof *r->calls);
    r->n_calls = tape->n_calls;
    r->graph = exec;
    *out = r;
    return CT_OK;
}

ct_status ct_cuda_step_end(ct_backend *base) {
    cuda_backend *backend = (cuda_backend *)base;
    cuda_tape *tape = &backend->tape;
    tape->in_step = false;
    if (tape->n_calls == 0) return CT_OK;
    CT_TRY(ct_cuda_stage_send(backend));
    if (tape->no_graphs) return launch_all(backend);
    cuda_recording *r = find(tape);
    if (r == NULL) CT_TRY(record(backend, &r));
    CT_CUDA_TRY(cudaGraphLaunch(r->graph, backend->stream));
    return CT_OK;
}
