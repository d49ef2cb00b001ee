/* Where a job's time goes: processor time of every step of a network, forward and backward, best of
 * many jobs on one core, beside the multiply-adds of direct convolutions. Processor time, so that
 * what else the machine does counts as little as it can.
 *   bench_layers [model, default resnet20] [jobs, default 20] */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/cpu_internal.h"
#include "util/memory.h"
#include "util/rng.h"
#include "util/text.h"

enum { BATCH = 32 };

typedef struct times {
    double features, forward, backward; /* ms */
} times;

static double cpu_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void keep_least(double *least, double taken) {
    if (taken < *least) *least = taken;
}

static void fill(float *x, size_t n, double scale) {
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_TEST, 0, 0, 0);
    for (size_t k = 0; k < n; k++) x[k] = (float)(scale * ct_rng_normal(&rng));
}

static cpu_call pass_of(cpu_call c, cpu_mode mode, int pass) {
    const cpu_plan *plan = c.plan;
    c.mode = mode;
    c.layout = mode == CPU_TRAIN ? &plan->train : &plan->forward;
    c.value_at = c.layout->value;
    c.n = plan->pass_samples;
    c.n_blocks = c.n / CT_LANES;
    c.arena = c.worker->arena + (mode == CPU_TRAIN ? (size_t)pass * c.layout->n_floats : 0);
    return c;
}

static void forward_pass(const cpu_call *c, const float *pictures, times *taken) {
    const size_t n_pixels = (size_t)c->n_blocks * cpu_tensor_floats(c->plan->steps[0].from);
    memcpy(cpu_value(c, 0), pictures, n_pixels * sizeof *pictures);
    const int n = c->mode == CPU_TRAIN ? c->plan->n_steps : c->plan->n_feature_steps;
    for (int s = 0; s < n; s++) {
        double start = cpu_ms();
        ct_cpu_step_forward(c, &c->plan->steps[s]);
        *(c->mode == CPU_TRAIN ? &taken[s].forward : &taken[s].features) += cpu_ms() - start;
    }
}

static void backward_pass(cpu_call c, times *taken) {
    const ct_graph *g = c.plan->base.graph;
    memset(c.worker->has_grad, 0, (size_t)g->n_nodes * sizeof *c.worker->has_grad);
    fill(cpu_grad(&c, g->logits), (size_t)(g->n_classes * c.n), 1e-3);
    c.worker->has_grad[c.plan->root[g->logits]] = true;
    c.value_at = c.layout->again;
    for (int s = c.plan->n_steps - 1; s >= 0; s--) {
        double start = cpu_ms();
        ct_cpu_step_backward(&c, &c.plan->steps[s]);
        taken[s].backward += cpu_ms() - start;
    }
}

/* A job forward only, and one for a gradient, with nothing but their steps. */
static void run_jobs(cpu_call call, const float *pictures, times *taken, times *least) {
    const int n_steps = call.plan->n_steps, n_passes = BATCH / call.plan->pass_samples;
    memset(taken, 0, (size_t)n_steps * sizeof *taken);
    for (int pass = 0; pass < n_passes; pass++) {
        cpu_call c = pass_of(call, CPU_FEATURES, pass);
        forward_pass(&c, pictures, taken);
    }
    for (int pass = 0; pass < n_passes; pass++) {
        cpu_call c = pass_of(call, CPU_TRAIN, pass);
        forward_pass(&c, pictures, taken);
    }
    for (int pass = n_passes - 1; pass >= 0; pass--)
        backward_pass(pass_of(call, CPU_TRAIN, pass), taken);
    for (int s = 0; s < n_steps; s++) {
        keep_least(&least[s].features, taken[s].features);
        keep_least(&least[s].forward, taken[s].forward);
        keep_least(&least[s].backward, taken[s].backward);
    }
}

static double macs_of(const cpu_step *step) {
    const ct_node *node = step->node;
    const double from = (double)ct_shape_size(step->from), to = (double)ct_shape_size(step->to);
    if (step->op == CT_OP_LINEAR) return from * to;
    if (step->op != CT_OP_CONV) return 0;
    return to * step->from.c / node->groups * node->kernel * node->kernel;
}

static const char *kind_of(const cpu_step *step) {
    static const char *names[CT_N_OPS] = {
        [CT_OP_CONV] = "conv",           [CT_OP_LINEAR] = "linear",
        [CT_OP_RELU] = "relu",           [CT_OP_MAXPOOL] = "maxpool",
        [CT_OP_AVGPOOL] = "avgpool",     [CT_OP_ADD] = "add",
        [CT_OP_EVONORM] = "evonorm",     [CT_OP_EVONORM_S0] = "evonorm-s0",
        [CT_OP_GROUPNORM] = "groupnorm", [CT_OP_BATCHNORM] = "batchnorm"};
    if (step->op != CT_OP_CONV) return names[step->op];
    return step->winograd || step->winograd5  ? "winograd"
           : step->node->groups == step->to.c ? "depthwise"
                                              : "conv";
}

static double rate(double flops, double ms) {
    return ms > 0 ? 1e-6 * flops / ms : 0;
}

static void print_steps(const cpu_plan *plan, const times *steps) {
    times all = {0};
    printf("%-10s %14s %14s k/s | %8s %8s %8s ms | %6s %6s GFLOP/s\n", "step", "from", "to",
           "features", "forward", "backward", "fwd", "back");
    for (int s = 0; s < plan->n_steps; s++) {
        const cpu_step *step = &plan->steps[s];
        const times *t = &steps[s];
        const double flops = 2 * BATCH * macs_of(step);
        printf(
            "%-10s %4d x %2d x %2d  %4d x %2d x %2d  %d/%d | %8.3f %8.3f %8.3f    | %6.0f %6.0f\n",
            kind_of(step), step->from.c, step->from.h, step->from.w, step->to.c, step->to.h,
            step->to.w, step->node->kernel, step->node->stride, t->features, t->forward,
            t->backward, rate(flops, t->forward),
            rate((step->in == 0 ? 1 : 2) * flops, t->backward));
        all.features += t->features;
        all.forward += t->forward;
        all.backward += t->backward;
    }
    printf("%-44s | %8.3f %8.3f %8.3f\n", "sum", all.features, all.forward, all.backward);
}

static ct_status bench(const char *model, int64_t n_jobs) {
    ct_graph graph;
    ct_backend *backend;
    ct_plan *base;
    ct_model_spec spec = {.name = model, .n_classes = 10};
    CT_TRY(ct_model_usual_input(model, &spec.input));
    CT_TRY(ct_graph_create(&spec, &graph));
    CT_TRY(ct_backend_create("cpu", &(ct_backend_options){.n_threads = 1}, &backend));
    CT_TRY(ct_plan_create(backend, &graph, BATCH, &base));
    const cpu_plan *plan = (const cpu_plan *)base;
    const size_t n_pixels = BATCH * ct_shape_size(spec.input);
    float *params = ct_new(float, graph.n_weights), *dparams = ct_new(float, graph.n_weights);
    float *pictures = ct_new(float, n_pixels);
    times *steps = ct_new(times, 2 * (size_t)plan->n_steps);
    if (params == NULL || dparams == NULL || pictures == NULL || steps == NULL)
        return ct_fail(CT_NOMEM, "no memory for %s", model);
    for (int s = 0; s < plan->n_steps; s++) steps[s] = (times){INFINITY, INFINITY, INFINITY};
    ct_init_params(&graph, 1, params);
    fill(pictures, n_pixels, 1);
    const cpu_call call = {.plan = plan,
                           .k = ((const cpu_backend *)backend)->kernels,
                           .worker = plan->workers,
                           .params = params,
                           .dparams = dparams};
    for (int64_t i = 0; i < n_jobs; i++) run_jobs(call, pictures, steps + plan->n_steps, steps);
    print_steps(plan, steps);
    return CT_OK;
}

int main(int n_args, char **args) {
    int64_t n_jobs = 20;
    if (n_args > 2 && (!ct_parse_i64(args[2], &n_jobs) || n_jobs < 1)) {
        fprintf(stderr, "usage: bench_layers [model] [jobs]\n");
        return 2;
    }
    return bench(n_args > 1 ? args[1] : "resnet20", n_jobs) == CT_OK ? 0 : 1;
}
