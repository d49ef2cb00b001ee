/* A network compiled for the device: steps, packed weights, sums, workspace. */
#include <stdio.h>

#include "backend/cuda/cuda_internal.h"
#include "backend/cuda/mobilenetv2/mobilenetv2.h"
#include "util/memory.h"

#define ALIGN 256 /* bytes */
#define MIB   (1024.0 * 1024.0)
/* Workspace of one launch: beyond it more jobs at once gain little. 64 agents of ResNet-20 with 32
 * samples each, which take 10 GiB, have 97 % of the speed of 256 on an H200. */
#define LAUNCH_BYTES ((size_t)8 << 30)

/* How a step's weights are packed for a direction, which a picture's convolution needs one of. */
static cuda_packing packing_of(const cuda_plan *plan, const cuda_step *step,
                               cuda_direction direction) {
    const cuda_unit_kernels *unit = plan->steps[step->unit].together;
    bool is_plain = step->in == 0 || (unit != NULL && unit->is_plain);
    if (step->op != CT_OP_CONV || (direction == CUDA_DGRAD && is_plain)) return CUDA_PACK_NONE;
    if (direction == CUDA_FORWARD && step->rows.part > 0 && step->trains_ahead)
        return CUDA_PACK_NONE;
    if (direction == CUDA_DGRAD && step->n_behind > 0) return CUDA_PACK_NONE; /* reads the rows */
    if (unit != NULL && unit->packing != NULL) return unit->packing(plan, step);
    return step->family[direction]->packing[direction];
}

/* Room for n floats of a packed row. */
static size_t reserve_packed(cuda_plan *plan, size_t n) {
    size_t at = plan->packed_floats;
    plan->packed_floats += (n + 31) / 32 * 32;
    return at;
}

/* What is packed by the table: the first floats of a packed row. */
static int add_packs(cuda_plan *plan, cuda_pack *packs) {
    int n_packs = 0;
    for (int s = 0; s < plan->n_steps; s++)
        for (int d = CUDA_FORWARD; d <= CUDA_DGRAD; d++) {
            cuda_step *step = &plan->steps[s];
            const cuda_conv *c = &step->conv;
            cuda_packing kind = packing_of(plan, step, (cuda_direction)d);
            if (kind <= CUDA_PACK_CORES) continue;
            step->packed[d] = reserve_packed(plan, ct_cuda_split_floats(c, 1));
            packs[n_packs++] = (cuda_pack){.from = cuda_param(plan, step->node->weight),
                                           .to = step->packed[d],
                                           .co = c->co,
                                           .ci = c->weight_ci,
                                           .taps = c->weight_taps,
                                           .kind = kind};
        }
    plan->packs.n_plain = plan->packed_floats;
    return n_packs;
}

/* Room for one direction of a layer's fragments. */
static size_t reserve_fragments(cuda_plan *plan, const cuda_fragments *f, int deep, int wide) {
    int by = f->element == CUDA_BF16 ? 16 : 8; /* k of one product */
    size_t n =
        (size_t)f->taps * (size_t)((deep + by - 1) / by * by) * (size_t)((wide + 15) / 16 * 16);
    return reserve_packed(plan, cuda_floats(n, f->element));
}

/* Room for a layer's rows, which a step in bf16 may have beside its fragments. */
static void reserve_rows(cuda_plan *plan, cuda_step *step, cuda_fragments *f) {
    size_t n = (size_t)f->co * (size_t)(f->ci / step->rows.part * step->rows.room);
    step->rows.at = reserve_packed(plan, cuda_floats(n, CUDA_BF16));
    f->rows = step->rows;
}

static bool has_fragments(const cuda_plan *plan, const cuda_step *step, cuda_direction direction) {
    cuda_packing kind = packing_of(plan, step, direction);
    return kind >= CUDA_PACK_FRAGMENTS && kind <= CUDA_PACK_CORES;
}

/* A step's fragments of one element; false: it has none. */
static bool put_fragments(cuda_plan *plan, cuda_step *step, cuda_element element,
                          cuda_fragments *f) {
    const cuda_conv *c = &step->conv;
    bool forward = has_fragments(plan, step, CUDA_FORWARD) && step->forward_element == element;
    bool backward = has_fragments(plan, step, CUDA_DGRAD) && step->backward_element == element;
    bool has_rows = step->rows.part > 0 && element == CUDA_BF16;
    if (!forward && !backward && !has_rows) return false;
    *f = (cuda_fragments){
        .from = cuda_param(plan, step->node->weight),
        .forward = CUDA_NO_PARAM,
        .backward = CUDA_NO_PARAM,
        .co = c->co,
        .ci = c->weight_ci,
        .taps = c->weight_taps,
        .element = element,
        .packing = {packing_of(plan, step, CUDA_FORWARD), packing_of(plan, step, CUDA_DGRAD)}};
    if (forward) step->packed[CUDA_FORWARD] = f->forward = reserve_fragments(plan, f, f->ci, f->co);
    if (backward) step->packed[CUDA_DGRAD] = f->backward = reserve_fragments(plan, f, f->co, f->ci);
    if (has_rows) reserve_rows(plan, step, f);
    return true;
}

static int add_fragments(cuda_plan *plan, cuda_fragments *fragments) {
    int n = 0;
    for (int s = 0; s < plan->n_steps; s++)
        for (int element = CUDA_FP32; element <= CUDA_BF16; element++)
            if (put_fragments(plan, &plan->steps[s], (cuda_element)element, &fragments[n])) n++;
    return n;
}

static ct_status upload(const void *host, size_t n_bytes, void **dev) {
    CT_TRY(ct_cuda_alloc(n_bytes, "a plan", dev));
    CT_CUDA_TRY(cudaMemcpy(*dev, host, n_bytes, cudaMemcpyHostToDevice));
    return CT_OK;
}

static ct_status fill_table(cuda_plan *plan, const cuda_pack *packs, int n_packs) {
    cuda_backend *backend = (cuda_backend *)plan->base.backend;
    void *dev = NULL, *packs_dev = NULL;
    if (n_packs == 0) return CT_OK;
    CT_TRY(ct_cuda_alloc(plan->packs.n_plain * sizeof(int), "a plan", &dev));
    plan->packs.table_dev = dev;
    ct_status status = upload(packs, (size_t)n_packs * sizeof *packs, &packs_dev);
    if (status == CT_OK)
        status = ct_cuda_pack_table(backend->stream, packs_dev, n_packs, plan->packs.n_plain,
                                    plan->packs.table_dev);
    cudaStreamSynchronize(backend->stream);
    cudaFree(packs_dev);
    return status;
}

static ct_status plan_tiles(cuda_plan *plan, const cuda_fragments *fragments, int n_fragments) {
    cuda_packs *packs = &plan->packs;
    void *dev = NULL;
    for (int k = 0; k < n_fragments; k++) packs->n_tiles += ct_cuda_pack_tiles(&fragments[k]);
    if (packs->n_tiles == 0) return CT_OK;
    CT_TRY(upload(fragments, (size_t)n_fragments * sizeof *fragments, &dev));
    packs->fragments_dev = dev;
    CT_SCOPED_BLOCK(cuda_pack_tile) tiles = NULL;
    CT_TRY(ct_make(&tiles, (size_t)packs->n_tiles, "a plan"));
    for (int k = 0, n = 0; k < n_fragments; k++)
        for (int at = 0; at < ct_cuda_pack_tiles(&fragments[k]); at++)
            tiles[n++] = (cuda_pack_tile){k, at};
    dev = NULL;
    ct_status status = upload(tiles, (size_t)packs->n_tiles * sizeof *tiles, &dev);
    packs->tiles_dev = dev;
    return status;
}

static ct_status plan_packs(cuda_plan *plan) {
    const ct_graph *g = plan->base.graph;
    if (g->n_weights > (size_t)1 << 30)
        return ct_fail(CT_INVAL, "%s has %zu weights, the cuda backend takes 2^30", g->model,
                       g->n_weights);
    CT_SCOPED_BLOCK(cuda_pack) packs = NULL;
    CT_SCOPED_BLOCK(cuda_fragments) fragments = NULL;
    CT_TRY(ct_make(&packs, 2 * (size_t)plan->n_steps, "a plan"));
    CT_TRY(ct_make(&fragments, 2 * (size_t)plan->n_steps, "a plan"));
    int n_packs = add_packs(plan, packs);
    CT_TRY(fill_table(plan, packs, n_packs));
    return plan_tiles(plan, fragments, add_fragments(plan, fragments));
}

static void add_sum(cuda_plan *plan, cuda_sum *sums, size_t from, int width, int first, int count,
                    size_t to) {
    sums[plan->n_sums++] = (cuda_sum){.from = from,
                                      .to = to,
                                      .count = count,
                                      .width = width,
                                      .first = first,
                                      .first_block = plan->n_sum_blocks};
    plan->n_sum_blocks += (count + CUDA_SUM_BLOCK - 1) / CUDA_SUM_BLOCK;
}

/* The sums over samples of a step's parameters: a norm's, or a convolution's bias. */
static void add_sums(cuda_plan *plan, cuda_sum *sums, cuda_step *step) {
    step->sums = plan->sum_floats;
    bool is_norm = ct_op_is_norm(step->op) && step->op != CT_OP_BATCHNORM; /* which sums itself */
    if (step->norm != NULL || is_norm) {
        const cuda_norm *n = &step->norm_shape;
        int width = n->channels * (n->slope == CUDA_NO_PARAM ? 2 : 3);
        add_sum(plan, sums, step->sums, width, 0, n->channels, n->weight);
        add_sum(plan, sums, step->sums, width, n->channels, n->channels, n->bias);
        if (n->slope != CUDA_NO_PARAM)
            add_sum(plan, sums, step->sums, width, 2 * n->channels, n->channels, n->slope);
        plan->sum_floats += (size_t)width;
    } else if (cuda_sums_bias(step)) {
        int co = step->conv.co;
        add_sum(plan, sums, step->sums, co, 0, co, cuda_param(plan, step->node->bias));
        plan->sum_floats += (size_t)co;
    }
}

static ct_status plan_sums(cuda_plan *plan) {
    CT_SCOPED_BLOCK(cuda_sum) sums = NULL;
    CT_TRY(ct_make(&sums, 3 * (size_t)plan->n_steps, "a plan"));
    for (int s = 0; s < plan->n_steps; s++) add_sums(plan, sums, &plan->steps[s]);
    void *dev = NULL;
    ct_status status = upload(sums, (size_t)plan->n_sums * sizeof *sums, &dev);
    plan->sums_dev = dev;
    return status;
}

/* Floats of partial sums of the weight gradients, at most, of one unit at a time. */
static size_t partial_floats(const cuda_plan *plan, int n_jobs, int n_max) {
    size_t most = 0;
    int n_most = plan->base.max_batch; /* see cuda_run */
    for (int s = 0; s < plan->n_steps; s += plan->steps[s].n_unit) {
        const cuda_step *step = &plan->steps[s];
        const cuda_family *family = step->family[CUDA_WGRAD];
        size_t n = 0;
        if (step->together != NULL)
            n = step->together->partial(step, n_most);
        else if (step->n_behind > 0)
            n = ct_cuda_step_partial(step, n_max, n_most);
        else if (step->op == CT_OP_CONV && family->partial != NULL)
            n = family->partial(&step->conv, n_max, n_most);
        if (n > most) most = n;
    }
    return most * (size_t)n_jobs;
}

static void *piece(char *base, size_t n_bytes, size_t *end) {
    char *at = base + *end;
    *end += (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

/* Everything but the weights, from *end of base on. */
static cuda_workspace pieces(const cuda_plan *plan, int n_jobs, int n_max, bool train, char *base,
                             size_t *end) {
    const ct_graph *g = plan->base.graph;
    const cuda_layout *layout = train ? &plan->train : &plan->forward;
    size_t n = (size_t)n_jobs * (size_t)n_max;
    size_t columns = (size_t)g->n_classes * (ct_graph_n_features(g) + 1);
    cuda_workspace w = {0};
    w.labels = piece(base, n * sizeof(int32_t), end);
    w.predictions = piece(base, n * sizeof(int), end);
    w.samples = piece(base, n * CT_LOSS_FIELDS * sizeof(double), end);
    w.scores = piece(base, (size_t)n_jobs * 2 * sizeof(double), end);
    if (train) {
        w.own = piece(base, (size_t)n_jobs * columns * sizeof(float), end);
        w.sums = piece(base, n * plan->sum_floats * sizeof(float), end);
        w.partial = piece(base, partial_floats(plan, n_jobs, n_max) * sizeof(float), end);
    }
    w.tensors = piece(base, n * layout->n_floats * sizeof(float), end);
    return w;
}

static size_t packed_bytes(const cuda_plan *plan, int n_models) {
    return (size_t)n_models * plan->packed_floats * sizeof(float);
}

cuda_workspace ct_cuda_workspace(const cuda_plan *plan, int n_jobs, int n_max, int n_models,
                                 bool train, size_t *n_bytes) {
    size_t end = 0;
    /* First, so that calls of any size find the same weights there. */
    float *packed = piece(plan->workspace_dev, packed_bytes(plan, n_models), &end);
    cuda_workspace w = pieces(plan, n_jobs, n_max, train, plan->workspace_dev, &end);
    w.packed = packed;
    if (n_bytes != NULL) *n_bytes = end;
    return w;
}

cuda_workspace ct_cuda_workspace_beside(const cuda_call *call, size_t *n_bytes) {
    const cuda_plan *plan = call->plan;
    size_t end = 0, shared = 0;
    char *weights = call->packs_beside ? plan->beside_dev : plan->workspace_dev;
    float *packed =
        piece(weights, packed_bytes(plan, call->n_models), call->packs_beside ? &end : &shared);
    cuda_workspace w = pieces(plan, call->n_jobs, call->n_max, false, plan->beside_dev, &end);
    w.packed = packed;
    if (n_bytes != NULL) *n_bytes = end;
    return w;
}

/* Device memory of n bytes instead of what was there. */
static ct_status retake(cuda_plan *plan, size_t n_bytes, const char *what, char **dev,
                        size_t *size) {
    cuda_backend *backend = (cuda_backend *)plan->base.backend;
    void *taken = NULL;
    CT_CUDA_TRY(cudaStreamSynchronize(backend->stream));
    ct_cuda_forget_graphs(backend);
    cudaFree(*dev);
    *dev = NULL;
    *size = 0;
    CT_TRY(ct_cuda_alloc(n_bytes, what, &taken));
    *dev = taken;
    *size = n_bytes;
    plan->base.workspace_bytes = plan->workspace_size + plan->beside_size;
    return CT_OK;
}

ct_status ct_cuda_reserve_beside(const cuda_call *call, bool *is_there) {
    cuda_plan *plan = call->plan;
    size_t n_bytes = 0, n_free = 0, total = 0;
    ct_cuda_workspace_beside(call, &n_bytes);
    *is_there = n_bytes <= plan->beside_size;
    if (*is_there) return CT_OK;
    CT_TRY(ct_cuda_memory(&n_free, &total));
    if (n_bytes > n_free / 4) return CT_OK; /* nobody shall miss it */
    CT_TRY(retake(plan, n_bytes, "a forward pass", &plan->beside_dev, &plan->beside_size));
    *is_there = true;
    return CT_OK;
}

static size_t bytes_of(const cuda_plan *plan, int n_jobs, int n_max, int n_models, bool train) {
    size_t n_bytes = 0;
    ct_cuda_workspace(plan, n_jobs, n_max, n_models, train, &n_bytes);
    return n_bytes;
}

/* What a call may take: the workspace makes room for its successor. */
static ct_status room_of(const cuda_plan *plan, size_t *room, size_t *total) {
    CT_TRY(ct_cuda_memory(room, total));
    *room += plan->workspace_size;
    return CT_OK;
}

/* Says what a call needs, what there is, and which batch would fit. */
static ct_status too_large(const cuda_plan *plan, int n_jobs, int n_max, int n_models, bool train,
                           size_t room, size_t total) {
    int fits = 0, above = n_max; /* of one job: bytes grow with it */
    while (above - fits > 1) {
        int middle = fits + (above - fits) / 2;
        if (bytes_of(plan, n_jobs, middle, n_models, train) <= room)
            fits = middle;
        else
            above = middle;
    }
    char advice[96] = "not even a batch size of 1 would fit: take fewer agents";
    if (fits > 0)
        snprintf(advice, sizeof advice, "take fewer agents or a batch size of %d or less", fits);
    return ct_fail(CT_NOMEM,
                   "%s of %s (%d jobs with up to %d samples) needs %.0f MiB of GPU memory and %.0f "
                   "of %.0f MiB are free: %s",
                   train ? "a training step" : "a forward pass", plan->base.graph->model, n_jobs,
                   n_max, (double)bytes_of(plan, n_jobs, n_max, n_models, train) / MIB,
                   (double)room / MIB, (double)total / MIB, advice);
}

ct_status ct_cuda_jobs_that_fit(const cuda_plan *plan, int n_max, int n_models, bool train,
                                int *n_jobs) {
    size_t most = LAUNCH_BYTES + packed_bytes(plan, n_models), room = 0, total = 0;
    while (*n_jobs > 1 && bytes_of(plan, *n_jobs, n_max, n_models, train) > most)
        *n_jobs = (*n_jobs + 1) / 2;
    if (bytes_of(plan, *n_jobs, n_max, n_models, train) <= plan->workspace_size) return CT_OK;
    CT_TRY(room_of(plan, &room, &total));
    while (*n_jobs > 1 && bytes_of(plan, *n_jobs, n_max, n_models, train) > room)
        *n_jobs = (*n_jobs + 1) / 2;
    return CT_OK;
}

ct_status ct_cuda_reserve(cuda_plan *plan, int n_jobs, int n_max, int n_models, bool train) {
    size_t n_bytes = bytes_of(plan, n_jobs, n_max, n_models, train), room = 0, total = 0;
    if (n_bytes <= plan->workspace_size) return CT_OK;
    CT_TRY(room_of(plan, &room, &total));
    if (n_bytes > room) return too_large(plan, n_jobs, n_max, n_models, train, room, total);
    return retake(plan, n_bytes, train ? "a training step" : "a forward pass", &plan->workspace_dev,
                  &plan->workspace_size);
}

static ct_status build(cuda_plan *plan) {
    CT_TRY(ct_cuda_compile(plan));
    CT_TRY(plan_packs(plan));
    CT_TRY(plan_sums(plan));
    CT_TRY(ct_cuda_layout(plan, true, &plan->train));
    return ct_cuda_layout(plan, false, &plan->forward);
}

ct_status ct_cuda_plan_create(ct_backend *backend, const ct_graph *graph, int max_batch,
                              ct_plan **out) {
    cuda_plan *plan = NULL;
    CT_TRY(ct_make(&plan, 1, graph->model));
    plan->base = (ct_plan){.backend = backend, .graph = graph, .max_batch = max_batch};
    ct_status status = build(plan);
    if (status == CT_OK)
        *out = &plan->base;
    else
        ct_cuda_plan_free(&plan->base);
    return status;
}

void ct_cuda_plan_free(ct_plan *base) {
    cuda_plan *plan = (cuda_plan *)base;
    cuda_backend *backend = (cuda_backend *)base->backend;
    cudaStreamSynchronize(backend->stream);
    ct_cuda_forget_graphs(backend);
    cudaFree(plan->workspace_dev);
    cudaFree(plan->beside_dev);
    cudaFree(plan->packs.table_dev);
    cudaFree(plan->packs.fragments_dev);
    cudaFree(plan->packs.tiles_dev);
    cudaFree(plan->sums_dev);
    ct_cuda_layout_free(&plan->train);
    ct_cuda_layout_free(&plan->forward);
    ct_free(plan->steps);
    ct_free(plan->root);
    ct_free(plan->value_element);
    ct_free(plan);
}
