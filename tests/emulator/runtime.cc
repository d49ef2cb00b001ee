/* The part of CUDA's runtime that src/backend/cuda calls, for the emulated GPU. What is not captured
 * runs at once. A graph's launches run in an order of their own that their streams and events allow:
 * what runs beside the first stream comes as late as it may, or as early, so that an event that
 * nobody waits for is noticed. */
#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <mutex>
#include <set>

#include "emulated.h"

#define TOTAL_BYTES ((size_t)16 << 30)
#define BLOCK_BYTES 232448 /* of shared memory that a block may ask for */
#define ANY_BYTES   49152  /* without asking */

namespace {

struct operation {
    int stream; /* in order of their joining the capture */
    std::vector<size_t> after;
    std::function<void()> run;
    bool is_done;
};

} // namespace

struct CUgraph_st {
    std::vector<operation> operations;
};

struct CUgraphExec_st {
    CUgraph_st graph;
};

struct CUevent_st {
    bool is_captured;
    size_t after; /* its place among the operations */
};

struct CUstream_st {
    int number;                /* in the capture, or -1 */
    std::vector<size_t> after; /* what its next operation waits for */
};

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local CUgraph_st *capture; /* of this thread */
thread_local std::vector<CUstream_st *> captured;
std::mutex guard;
std::map<void *, size_t> blocks;     /* of memory */
std::map<const void *, int> allowed; /* bytes of shared memory */
size_t n_used;

cudaError_t fail(cudaError_t error) {
    return last_error = error;
}

bool is_captured(const CUstream_st *s) {
    return capture != NULL && s != NULL && s->number >= 0;
}

void join_capture(CUstream_st *s) {
    s->number = (int)captured.size();
    captured.push_back(s);
}

/* Notes an operation of a captured stream; runs any other. */
void add(CUstream_st *s, std::function<void()> run) {
    if (!is_captured(s)) {
        run();
        return;
    }
    capture->operations.push_back({s->number, s->after, std::move(run), false});
    s->after = {capture->operations.size() - 1};
}

bool is_ready(const CUgraph_st *g, const operation &o) {
    for (size_t k : o.after)
        if (!g->operations[k].is_done) return false;
    return true;
}

/* The ready operation of the first stream, or of the last one. */
operation *next_operation(CUgraph_st *g, bool is_early) {
    operation *best = NULL;
    for (operation &o : g->operations) {
        if (o.is_done || !is_ready(g, o)) continue;
        bool is_better =
            best != NULL && (is_early ? o.stream > best->stream : o.stream < best->stream);
        if (best == NULL || is_better) best = &o;
    }
    return best;
}

/* Everything that `k` waited for, directly or not. */
void reach(const CUgraph_st *g, size_t k, std::set<size_t> *seen) {
    if (!seen->insert(k).second) return;
    for (size_t before : g->operations[k].after) reach(g, before, seen);
}

void take(void **p, size_t n) {
    *p = malloc(n > 0 ? n : 1);
    if (*p == NULL) return;
    memset(*p, 0xff, n);
    blocks[*p] = n;
    n_used += n;
}

} // namespace

void emulated_launch(const void *kernel, dim3 grid, dim3 threads, size_t bytes, cudaStream_t stream,
                     const char *name, std::function<void()> body) {
    size_t n_threads = (size_t)threads.x * threads.y * threads.z;
    std::unique_lock<std::mutex> lock(guard);
    size_t n_allowed = allowed.count(kernel) > 0 ? (size_t)allowed[kernel] : ANY_BYTES;
    lock.unlock();
    if (n_threads == 0 || n_threads > 1024 || threads.z > 64 || grid.x == 0 || grid.y == 0 ||
        grid.z == 0 || grid.y > 65535 || grid.z > 65535 || grid.x > 0x7fffffffu ||
        (bytes > ANY_BYTES && bytes > n_allowed)) {
        fprintf(stderr, "emulated GPU: %s: %u %u %u blocks of %u %u %u threads, %zu bytes\n", name,
                grid.x, grid.y, grid.z, threads.x, threads.y, threads.z, bytes);
        fail(cudaErrorInvalidConfiguration);
        return;
    }
    emulated_kernel k = {grid, threads, bytes, name, std::move(body)};
    add(stream, [k] { emulated_run(k); });
}

extern "C" {

/* ---- device ---- */

static int chip(void) {
    const char *text = getenv("CT_EMULATED_CHIP");
    return text != NULL ? (int)strtol(text, NULL, 10) : 90;
}

cudaError_t cudaGetDeviceCount(int *n) {
    *n = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : fail(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device) {
    (void)device;
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "Emulated GPU");
    p->major = chip() / 10;
    p->minor = chip() % 10;
    p->sharedMemPerBlockOptin = BLOCK_BYTES;
    p->totalGlobalMem = TOTAL_BYTES;
    p->multiProcessorCount = 3;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int device) {
    (void)device;
    if (what != cudaDevAttrMultiProcessorCount) return fail(cudaErrorInvalidValue);
    *value = 3; /* few, so that they take turns */
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    return cudaRuntimeGetVersion(version);
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "out of memory" : "the emulated GPU refuses it";
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *kernel) {
    (void)kernel;
    memset(out, 0, sizeof *out);
    out->binaryVersion = chip();
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute what, int value) {
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize || value > BLOCK_BYTES)
        return fail(cudaErrorInvalidValue);
    std::lock_guard<std::mutex> lock(guard);
    allowed[kernel] = value;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *kernel, int n_threads,
                                                          size_t bytes) {
    (void)kernel, (void)n_threads;
    *n = bytes > BLOCK_BYTES / 2 ? 1 : 2;
    return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaMemGetInfo(size_t *n_free, size_t *total) {
    std::lock_guard<std::mutex> lock(guard);
    *total = TOTAL_BYTES;
    *n_free = n_used < TOTAL_BYTES ? TOTAL_BYTES - n_used : 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t n) {
    std::lock_guard<std::mutex> lock(guard);
    if (n > TOTAL_BYTES - n_used) return fail(cudaErrorMemoryAllocation);
    take(p, n);
    return *p != NULL ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}

cudaError_t cudaMallocHost(void **p, size_t n) {
    return cudaMalloc(p, n);
}

cudaError_t cudaFree(void *p) {
    std::lock_guard<std::mutex> lock(guard);
    if (p == NULL) return cudaSuccess;
    if (blocks.count(p) == 0) return fail(cudaErrorInvalidValue);
    n_used -= blocks[p];
    blocks.erase(p);
    free(p);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p) {
    return cudaFree(p);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    (void)kind;
    add(stream, [=] { memcpy(to, from, n); });
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, n, kind, NULL);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
    (void)kind;
    if (width > to_pitch || width > from_pitch) return fail(cudaErrorInvalidPitchValue);
    add(stream, [=] {
        for (size_t y = 0; y < height; y++)
            memcpy((char *)to + y * to_pitch, (const char *)from + y * from_pitch, width);
    });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t stream) {
    add(stream, [=] { memset(p, value, n); });
    return cudaSuccess;
}

cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
    if (width > pitch) return fail(cudaErrorInvalidPitchValue);
    add(stream, [=] {
        for (size_t y = 0; y < height; y++) memset((char *)p + y * pitch, value, width);
    });
    return cudaSuccess;
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    (void)flags;
    *out = new CUstream_st{-1, {}};
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s) {
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    return is_captured(s) ? fail(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    (void)flags;
    *out = new CUevent_st{false, 0};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e) {
    delete e;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    return capture != NULL && e->is_captured ? fail(cudaErrorCapturedEvent) : cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    e->is_captured = is_captured(s);
    if (!e->is_captured) return cudaSuccess;
    add(s, [] {});
    e->after = capture->operations.size() - 1;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    (void)flags;
    if (capture == NULL || !e->is_captured) return cudaSuccess;
    if (!is_captured(s)) join_capture(s);
    s->after.push_back(e->after);
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
    (void)mode;
    if (capture != NULL) return fail(cudaErrorIllegalState);
    capture = new CUgraph_st;
    join_capture(s);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    if (!is_captured(s)) return fail(cudaErrorIllegalState);
    std::set<size_t> seen;
    for (size_t k : s->after) reach(capture, k, &seen);
    bool is_joined = seen.size() == capture->operations.size();
    for (CUstream_st *c : captured) c->number = -1, c->after.clear();
    captured.clear();
    *out = capture;
    capture = NULL;
    if (is_joined) return cudaSuccess;
    delete *out;
    *out = NULL;
    return fail(cudaErrorStreamCaptureUnjoined);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                 unsigned long long flags) {
    (void)flags;
    *out = new CUgraphExec_st{*graph};
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
    if (is_captured(s)) return fail(cudaErrorStreamCaptureUnsupported);
    for (operation &o : exec->graph.operations) o.is_done = false;
    emulated_choose();
    bool is_early = emulated_early(); /* its kernels choose for themselves */
    operation *o;
    while ((o = next_operation(&exec->graph, is_early)) != NULL) {
        o->run();
        o->is_done = true;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult *found) {
    (void)version, (void)flags;
    bool is_there = strcmp(name, "cuTensorMapEncodeIm2col") == 0;
    *entry = is_there ? emulated_encode() : NULL;
    *found = is_there ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

} // extern "C"
