/* What the files of the cpu backend share: the compiled network, where its tensors lie, and a job.
 */
#ifndef CT_BACKEND_CPU_INTERNAL_H
#define CT_BACKEND_CPU_INTERNAL_H

#include "backend/backend.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/host.h"
#include "util/threads.h"

/* Columns of an update that one task runs through the whole program; halved for more rows than
 * this, down to the least: temporaries, of which every thread has its own, would otherwise need more
 * memory than small models. */
#define CPU_UPDATE_COLUMNS       1024
#define CPU_LEAST_UPDATE_COLUMNS 128
#define CPU_WIDE_UPDATE_ROWS     1024

typedef struct cpu_backend {
    ct_backend base;
    const ct_kernels *kernels;
    ct_pool *pool;
    bool exact_conv, only_forward;
    float *temps;        /* [n_threads][CT_MAX_TEMPS][n_temp_rows][n_columns] */
    int n_temp_rows;     /* as many as the tallest bank has */
    size_t n_columns;    /* of a block of an update */
    const float **terms; /* [n_threads][n_terms] what one row of an assignment sums */
    float *coefs;
    size_t n_terms;
    uint32_t *scratch; /* [n_threads] rows that are packed */
    size_t temps_room, terms_room, coefs_room, scratch_room;
} cpu_backend;

/* One or several nodes run as one: conv or linear + relu, 5x5 conv + relu + pooling, norm + add. */
typedef struct cpu_step {
    ct_op op;
    const ct_node *node; /* whose parameters it uses */
    int in, residual;    /* nodes read: the input, and what is added to the output (-1: nothing) */
    int out;             /* node whose value it leaves */
    bool relu;           /* of the sum, before it is stored */
    bool pool;           /* 2x2 max pooling after the relu; `to` is the convolution's output */
    int inner;           /* with pool: the convolution's node, whose gradient needs a place */
    int winograd;        /* 3x3, its gradients by tiles of so many pixels; 0: not */
    bool winograd5;      /* with pool: 5x5 in both directions */
    bool rows5;          /* with pool: F(4,5) along rows, of the pictures */
    int remake;   /* step whose output the backward pass computes again before this one; -1: none */
    int norm;     /* step whose output this one makes of that step's input as it reads; -1: none */
    bool is_lazy; /* the output is made by the step that reads it */
    bool is_idle; /* and so are the statistics */
    ct_shape from, to;
} cpu_step;

/* Where tensors lie in a workspace, in floats; tensors that do not live at the same time share. */
typedef struct cpu_layout {
    size_t *value; /* [n_nodes], where the memory of all begins */
    size_t *again; /* [n_nodes] the same in the backward pass: elsewhere if it is computed again */
    size_t *grad;  /* [n_nodes] nodes with the same root have the same place */
    size_t *stats; /* [n_nodes] statistics of the step that leaves this node */
    size_t n_floats;
} cpu_layout;

typedef struct cpu_worker {
    float *arena;   /* the layout's tensors, those of every pass */
    float *scratch; /* of one kernel call */
    float *spare;   /* a gradient before it is added to what is there */
    float *dparams; /* [n_weights] gradients of a pass before they are added to the others' */
    bool *has_grad; /* [n_nodes] by root */
    ct_host_outputs outputs;
} cpu_worker;

typedef struct cpu_plan {
    ct_plan base;
    cpu_step *steps;
    int n_steps, n_feature_steps; /* steps that lead to the features */
    int *root;                    /* [n_nodes] node whose gradient's place is used */
    cpu_layout train, forward;
    int pass_samples; /* a job runs so many samples at a time from the first step to the last */
    size_t scratch_floats, spare_floats;
    cpu_worker *workers; /* [n_threads] */
    float *block;        /* what the workers' floats point into */
    bool *flags;
} cpu_plan;

typedef enum cpu_mode { CPU_TRAIN, CPU_FEATURES, CPU_EVALUATE } cpu_mode;

/* A job's pass on its worker. */
typedef struct cpu_call {
    const cpu_plan *plan;
    const ct_kernels *k;
    const cpu_layout *layout;
    const size_t *value_at; /* the layout's value; in the backward pass again */
    cpu_worker *worker;
    float *arena; /* the pass' tensors */
    cpu_mode mode;
    int first, n, n_blocks; /* samples first .. first+n-1 of the batch */
    const float *params;
    float *dparams, *buffers;
} cpu_call;

static inline size_t cpu_tensor_floats(ct_shape s) {
    return ct_shape_size(s) * CT_LANES;
}
static inline size_t cpu_round(size_t n) {
    return (n + 15) / 16 * 16;
}
static inline float *cpu_value(const cpu_call *c, int node) {
    return c->arena + c->value_at[node];
}
static inline float *cpu_grad(const cpu_call *c, int node) {
    return c->arena + c->layout->grad[node];
}
static inline float *cpu_stats(const cpu_call *c, int node) {
    return c->arena + c->layout->stats[node];
}
static inline bool cpu_is_evonorm(const cpu_step *step) {
    return step->op == CT_OP_EVONORM || step->op == CT_OP_EVONORM_S0;
}
/* Blocks of a pass, passes of a batch. */
static inline size_t cpu_pass_blocks(const cpu_plan *plan) {
    return (size_t)(plan->pass_samples + CT_LANES - 1) / CT_LANES;
}
static inline int cpu_n_passes(const cpu_plan *plan, int n) {
    return (n + plan->pass_samples - 1) / plan->pass_samples;
}
static inline const float *cpu_param(const cpu_call *c, int param) {
    return param == CT_NO_PARAM ? NULL : c->params + c->plan->base.graph->params[param].offset;
}
static inline float *cpu_dparam(const cpu_call *c, int param) {
    return param == CT_NO_PARAM ? NULL : c->dparams + c->plan->base.graph->params[param].offset;
}

/* compile.c: the steps of a graph */
ct_status ct_cpu_compile(cpu_plan *plan, bool exact_conv);
/* How often steps read a node. */
int ct_cpu_n_readers(const cpu_plan *plan, int node);
/* Whether the backward pass of a step reads the value of its input. */
bool ct_cpu_reads_input(const cpu_step *step);
/* The node whose value a step reads: its input, or that of the norm it applies to it. */
int ct_cpu_source(const cpu_plan *plan, const cpu_step *step);
/* layout.c */
ct_status ct_cpu_layout(const cpu_plan *plan, bool train, cpu_layout *out);
void ct_cpu_layout_free(cpu_layout *layout);
/* plan.c */
ct_status ct_cpu_plan_create(ct_backend *backend, const ct_graph *graph, int max_batch,
                             ct_plan **out);
void ct_cpu_plan_free(ct_plan *plan);
/* steps.c, conv.c: one step of a job */
size_t ct_cpu_step_scratch(const cpu_plan *plan, const ct_kernels *k, const cpu_step *step);
void ct_cpu_step_forward(const cpu_call *call, const cpu_step *step);
void ct_cpu_step_backward(const cpu_call *call, const cpu_step *step);
size_t ct_cpu_conv_scratch(const cpu_plan *plan, const ct_kernels *k, const cpu_step *step);
void ct_cpu_conv_forward(const cpu_call *call, const cpu_step *step);
void ct_cpu_conv_backward(const cpu_call *call, const cpu_step *step);
/* separable.c: 1x1 convolutions of stride 1 (the weight gradient: of any) and depthwise 3x3 ones.
 * Backward they leave both gradients, or that of the weights alone. */
static inline bool ct_cpu_is_pointwise(const cpu_step *step) {
    const ct_node *node = step->node;
    return step->op == CT_OP_CONV && node->kernel == 1 && node->stride == 1 && node->pad == 0 &&
           node->groups == 1;
}
static inline bool ct_cpu_is_depthwise(const cpu_step *step) {
    const ct_node *node = step->node;
    return step->op == CT_OP_CONV && node->kernel == 3 && node->pad == 1 && node->stride <= 2 &&
           node->groups > 1 && node->groups == step->from.c && node->groups == step->to.c;
}
size_t ct_cpu_depthwise_scratch(const ct_kernels *k, const cpu_step *step);
size_t ct_cpu_pointwise_scratch(const cpu_step *step);
void ct_cpu_pointwise_forward(const cpu_call *call, const cpu_step *step);
void ct_cpu_pointwise_backward(const cpu_call *call, const cpu_step *step, bool accumulate);
void ct_cpu_depthwise_forward(const cpu_call *call, const cpu_step *step);
void ct_cpu_depthwise_backward(const cpu_call *call, const cpu_step *step, bool accumulate);
/* norm.c */
ct_norm_args ct_cpu_norm(const cpu_call *call, const cpu_step *step);
void ct_cpu_norm_forward(const cpu_call *call, const cpu_step *step);
void ct_cpu_norm_again(const cpu_call *call, const cpu_step *step);
/* Statistics of one group of an idle norm. */
void ct_cpu_norm_stats(const cpu_call *call, const cpu_step *step, int group);
void ct_cpu_norm_backward(const cpu_call *call, const cpu_step *step);
/* input.c: the pictures of a batch in lanes */
void ct_cpu_load_pictures(const ct_source *source, const ct_batch *batch, float *x);
/* run.c */
ct_status ct_cpu_features(ct_plan *plan, const ct_work *work, ct_bank *features,
                          ct_bank *class_sums);
ct_status ct_cpu_soften(ct_plan *plan, const ct_work *work, const ct_softening *how, ct_bank *rows);
ct_status ct_cpu_gradient(ct_plan *plan, const ct_work *work, const ct_objective *objective,
                          ct_bank *gradient, ct_bank *losses, size_t column);
ct_status ct_cpu_evaluate(ct_plan *plan, const ct_work *work, ct_score *scores, int *predictions);
ct_status ct_cpu_logits(ct_plan *plan, const ct_work *work, float *logits);
/* update.c */
ct_status ct_cpu_reserve_update(cpu_backend *backend, int n_rows, size_t n_terms);
ct_status ct_cpu_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                          ct_bank *packed);
ct_status ct_cpu_decompress(const ct_packing *packing, const ct_bank *packed, ct_bank *known);
ct_status ct_cpu_scale_steps(const ct_adaptive_steps *steps, ct_bank *v, ct_bank *r);
ct_status ct_cpu_update(ct_backend *backend, const ct_update *update);

/* Where a step puts the gradient of its input: in place, or in a spare tensor that
 * cpu_end_grad adds to what is there already. NULL for the pictures. */
float *ct_cpu_begin_grad(const cpu_call *call, int node);
void ct_cpu_end_grad(const cpu_call *call, int node);

double ct_cpu_peak_gflops(ct_backend *backend);

#endif
