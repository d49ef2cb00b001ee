/* Compiling a network: steps, places of tensors, one workspace per worker. */
#include "backend/cpu/cpu_internal.h"

#include <assert.h>

#include "util/memory.h"

/* Bytes of a tensor of 16 samples and of a pass: the second-level cache, and what stays in a core's
 * share of the third-level one from step to step. */
enum { LARGE_TENSOR = 1 << 20, PASS_TENSOR = 2 << 20 };

/* Last step in which a node is read: the first one backward that writes its gradient. */
static int last_reader(const cpu_plan *plan, int node) {
    for (int s = plan->n_steps - 1; s >= 0; s--)
        if (plan->steps[s].in == node || plan->steps[s].residual == node) return s;
    return -1;
}

/* EvoNorm's backward pass may leave the input's gradient where the output's was. */
static bool works_in_place(const cpu_plan *plan, const cpu_step *step) {
    return cpu_is_evonorm(step) && step->residual < 0 && step->in != 0 &&
           step->in != plan->base.graph->features && ct_cpu_n_readers(plan, step->in) == 1;
}

/* The gradient of what an addition reads starts as the gradient of its output: where nobody wrote
 * one before, both use the same place instead of copying. */
static void share_gradients(cpu_plan *plan) {
    const ct_graph *g = plan->base.graph;
    for (int i = 0; i < g->n_nodes; i++) plan->root[i] = i;
    for (int s = plan->n_steps - 1; s >= 0; s--) {
        const cpu_step *step = &plan->steps[s];
        if (works_in_place(plan, step)) plan->root[step->in] = plan->root[step->out];
        if (step->residual < 0) continue;
        /* of a plain addition the input can share if nobody else writes there later */
        int node = step->op == CT_OP_ADD ? step->in : step->residual;
        bool is_first = last_reader(plan, node) == s && node != step->out;
        bool is_alone = step->op != CT_OP_ADD || ct_cpu_n_readers(plan, node) == 1;
        if (is_first && is_alone && node != g->features && node != 0 && step->in != step->residual)
            plan->root[node] = plan->root[step->out];
    }
}

void ct_cpu_plan_free(ct_plan *base) {
    cpu_plan *plan = (cpu_plan *)base;
    ct_cpu_layout_free(&plan->train);
    ct_cpu_layout_free(&plan->forward);
    ct_free(plan->steps);
    ct_free(plan->root);
    ct_free(plan->workers);
    ct_free(plan->block);
    ct_free(plan->flags);
    ct_free(plan);
}

/* Tensors of a batch in training must leave the second-level cache for passes over a part of it to
 * pay: what a step leaves is still near when the next one reads it. Passes are not smaller than
 * that asks for, since each prepares the weights once more. Batchnorm needs the whole batch at
 * every step. */
static int choose_pass(const ct_graph *g, int max_batch) {
    size_t largest = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].op == CT_OP_BATCHNORM) return max_batch;
        size_t bytes = cpu_tensor_floats(g->nodes[i].shape) * sizeof(float);
        if (bytes > largest) largest = bytes;
    }
    if (largest < LARGE_TENSOR) return max_batch;
    const int n_blocks = (int)(PASS_TENSOR / largest), n = CT_LANES * (n_blocks > 0 ? n_blocks : 1);
    return n < max_batch ? n : max_batch;
}

typedef struct sizes {
    size_t arena, scratch, spare, dparams, outputs, total;
} sizes;

static sizes workspace_sizes(const cpu_plan *plan) {
    const ct_graph *g = plan->base.graph;
    const size_t n_passes = (size_t)cpu_n_passes(plan, plan->base.max_batch);
    const bool trains = !((const cpu_backend *)plan->base.backend)->only_forward;
    const size_t train = trains ? n_passes * plan->train.n_floats : 0;
    sizes s = {.arena = cpu_round(train > plan->forward.n_floats ? train : plan->forward.n_floats),
               .scratch = cpu_round(plan->scratch_floats),
               .spare = trains ? cpu_round(plan->spare_floats) : 0,
               .dparams = trains && n_passes > 1 ? cpu_round(g->n_weights) : 0,
               .outputs = ct_host_outputs_floats(&plan->base)};
    s.total = s.arena + s.scratch + s.spare + s.dparams + s.outputs;
    return s;
}

static float *cut(float **at, size_t n) {
    float *piece = *at;
    *at += n;
    return piece;
}

static ct_status take_workspaces(cpu_plan *plan, int n_workers) {
    const ct_graph *g = plan->base.graph;
    const sizes s = workspace_sizes(plan);
    const size_t n = (size_t)n_workers;
    plan->workers = ct_new(cpu_worker, n);
    plan->flags = ct_new(bool, n *(size_t)g->n_nodes);
    if (s.total <= SIZE_MAX / sizeof(float) / n) plan->block = ct_new(float, n *s.total);
    if (plan->workers == NULL || plan->flags == NULL || plan->block == NULL)
        return ct_fail(CT_NOMEM, "no memory for %d workspaces of %zu MB for %s with batches of %d",
                       n_workers, s.total * sizeof(float) >> 20, g->model, plan->base.max_batch);
    float *at = plan->block;
    for (size_t i = 0; i < n; i++) {
        cpu_worker *w = &plan->workers[i];
        w->arena = cut(&at, s.arena);
        w->scratch = cut(&at, s.scratch);
        w->spare = cut(&at, s.spare);
        w->dparams = cut(&at, s.dparams);
        w->outputs = ct_host_outputs_cut(&plan->base, cut(&at, s.outputs));
        w->has_grad = plan->flags + i * (size_t)g->n_nodes;
    }
    plan->base.workspace_bytes = n * s.total * sizeof(float);
    return CT_OK;
}

/* A gradient that is added to another one comes from some step's input. */
static void find_spare(cpu_plan *plan) {
    const size_t n_blocks = cpu_pass_blocks(plan);
    for (int s = 0; s < plan->n_steps; s++) {
        const cpu_step *step = &plan->steps[s];
        bool adds_itself = step->op == CT_OP_CONV || step->op == CT_OP_LINEAR;
        if (adds_itself) continue;
        bool is_shared = ct_cpu_n_readers(plan, step->in) > 1 ||
                         step->in == plan->base.graph->features || step->in == 0;
        size_t size = n_blocks * cpu_tensor_floats(step->from);
        if (is_shared && size > plan->spare_floats) plan->spare_floats = size;
    }
}

static ct_status fill_plan(cpu_plan *plan) {
    const cpu_backend *backend = (const cpu_backend *)plan->base.backend;
    const ct_graph *graph = plan->base.graph;
    CT_TRY(ct_make(&plan->root, (size_t)graph->n_nodes, graph->model));
    CT_TRY(ct_cpu_compile(plan, backend->exact_conv));
    share_gradients(plan);
    find_spare(plan);
    for (int s = 0; s < plan->n_steps; s++) {
        size_t n = ct_cpu_step_scratch(plan, backend->kernels, &plan->steps[s]);
        if (n > plan->scratch_floats) plan->scratch_floats = n;
    }
    CT_TRY(ct_cpu_layout(plan, true, &plan->train));
    CT_TRY(ct_cpu_layout(plan, false, &plan->forward));
    return take_workspaces(plan, backend->base.n_threads);
}

ct_status ct_cpu_plan_create(ct_backend *base, const ct_graph *graph, int max_batch,
                             ct_plan **out) {
    cpu_plan *plan;
    CT_TRY(ct_make(&plan, 1, graph->model));
    plan->base = (ct_plan){.backend = base, .graph = graph, .max_batch = max_batch};
    plan->pass_samples = choose_pass(graph, max_batch);
    ct_status status = fill_plan(plan);
    if (status == CT_OK)
        *out = &plan->base;
    else
        ct_cpu_plan_free(&plan->base);
    return status;
}
