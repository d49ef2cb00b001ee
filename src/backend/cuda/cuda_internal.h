/* What the C files of the cuda backend share: the device, the block of values that travels to it
 * with every call, the calls of an iteration, and the compiled network.
 *
 * A call (update, features, gradient) is a short record. Whatever may differ from one iteration to
 * the next (jobs, batches, coefficients, the loss column) is put into the stage, a pinned block of
 * host memory that is copied to the device in one go. Between step_begin and step_end calls are
 * only noted; step_end finds the recorded CUDA graph of the same sequence of calls, or records it,
 * and launches it. Outside of steps calls are launched at once. */
#ifndef CT_BACKEND_CUDA_INTERNAL_H
#define CT_BACKEND_CUDA_INTERNAL_H

#include "backend/backend.h"
#include "backend/cuda/update.h"

#define CUDA_RING      4   /* iterations whose stage may be on its way to the device */
#define CUDA_MAX_CALLS 128 /* of one iteration */
#define CUDA_GRAPHS    8   /* sequences of calls kept: full and short batches */
#define CUDA_LAG       3   /* units of a backward pass by which weight gradients may be late */

typedef struct cuda_stage {
    char *host[CUDA_RING];
    cudaEvent_t copied[CUDA_RING];
    char *dev;
    int now;
    size_t size, used;
} cuda_stage;

typedef struct cuda_plan cuda_plan;

typedef struct cuda_source {
    ct_source base;
    cuda_images images;
    void *block_dev;
} cuda_source;

typedef enum cuda_call_kind {
    CUDA_CALL_UPDATE,
    CUDA_CALL_FEATURES,
    CUDA_CALL_SOFTEN,
    CUDA_CALL_GRADIENT,
    CUDA_CALL_PARCEL,
    CUDA_CALL_STEPS
} cuda_call_kind;

/* A bank as a call sees it. */
typedef struct cuda_rows {
    float *data;
    size_t stride;
} cuda_rows;

/* One call; compared byte by byte, so it is zeroed before it is filled. */
typedef struct cuda_call {
    cuda_call_kind kind;
    /* offsets in the stage */
    size_t jobs, samples, program, column, cross_begin;
    /* update */
    size_t n_quads;
    int n_rows; /* of a temporary */
    int n_temp_rows, n_bank_rows;
    int n_rounds, n_shared, n_places;
    /* parcel; the stage has the keys, and the matrices of low-rank */
    size_t keys, matrices;
    cuda_parcel parcel;
    /* steps; the stage has them */
    size_t steps, n_columns;
    cuda_rows v, r;
    /* features, gradient */
    cuda_plan *plan;
    const cuda_source *source;
    int n_jobs, n_max;
    int n_models;
    bool is_packed; /* the call before has packed the same weights */
    bool
        is_beside; /* features, and what becomes of them: beside the next gradient's forward pass */
    bool packs_beside; /* features that, if they are beside it, do not share its packed weights */
    bool joins;        /* gradient: calls before are beside it */
    cuda_rows params, buffers, features, sums, gradient, losses, cross, received, lambdas;
    ct_loss_spec loss;
    /* soft targets: of a gradient their rows, by job in the stage; or how they are made */
    cuda_rows soft;
    size_t soft_row;
    double temperature;
    ct_softening how;
} cuda_call;

typedef struct cuda_recording {
    cuda_call calls[CUDA_MAX_CALLS];
    int n_calls;
    cudaGraphExec_t graph;
} cuda_recording;

typedef struct cuda_tape {
    bool in_step;
    bool no_graphs;  /* CROSSTALK_CUDA_GRAPHS=off: launch one by one */
    bool no_scripts; /* CROSSTALK_CUDA_SCRIPTS=off: updates by the kernels that take any program */
    cuda_call calls[CUDA_MAX_CALLS];
    int n_calls;
    /* whose weights the last call of a plan has packed; NULL once they have changed */
    const float *packed_data;
    const cuda_plan *packed_plan;
    int n_packed;
    cuda_recording *recordings; /* [CUDA_GRAPHS] */
    int n_recordings, oldest;
} cuda_tape;

/* Columns of a bank read lately: of the losses, say, which are read row by row. */
typedef struct cuda_cache {
    float *host; /* [rows][n] */
    size_t capacity;
    const float *bank_data;
    size_t first, n;
} cuda_cache;

/* Streams beside the main one, and events to order them. */
typedef struct cuda_branches {
    cudaStream_t features; /* cross-features beside the forward pass */
    cudaStream_t wgrad;    /* weight gradients beside data gradients */
    cudaEvent_t fork, join;
    cudaEvent_t packed;             /* weights are in the order of the kernels */
    cudaEvent_t late[CUDA_LAG + 1]; /* ends of the last units' weight gradients */
} cuda_branches;

typedef struct cuda_backend {
    ct_backend base;
    char generation[16]; /* sm_90 */
    cudaStream_t stream;
    cuda_branches branches;
    size_t shared_limit; /* bytes of shared memory a block may have */
    bool is_hopper;      /* compute capability 9.0; CROSSTALK_CUDA_HOPPER=off: not */
    cuda_stage stage;
    cuda_tape tape;
    cuda_cache cache;
    uint32_t *scratch_dev; /* [n_scratch] of rows that are packed, and of very large updates */
    size_t n_scratch;
} cuda_backend;

typedef struct cuda_unit_kernels cuda_unit_kernels;

/* One or several nodes run as one: conv + relu, norm + add, conv + EvoNorm + add. */
typedef struct cuda_step {
    ct_op op;            /* CONV also for linear; a norm; RELU, MAXPOOL, AVGPOOL, ADD */
    const ct_node *node; /* whose parameters it uses */
    const ct_node *norm; /* EvoNorm fused behind a convolution, or NULL */
    int in, residual;    /* nodes read: the input, and what is added to the output (-1: nothing) */
    int inner;           /* the convolution's own node where a norm is fused, else -1 */
    int out;
    bool relu;
    const cuda_family *family[CUDA_N_DIRECTIONS]; /* of a convolution */
    cuda_conv conv;
    cuda_norm norm_shape;
    size_t packed[2]; /* weights: forward, dgrad */
    cuda_element forward_element, backward_element;
    int n_segments; /* convolution: measures its output for the norm behind it; norm: its input was
                       measured. 0: not */
    cuda_segments segments; /* of a norm's input that was measured */
    bool is_gate;           /* norm: its reader applies it, its value does not exist */
    int gate;               /* convolution: the step of the norm it applies to its input, or -1 */
    int n_parts; /* norm: segments whose sums of its output's gradient the next step leaves when it
                    has written that; that step: the same. 0: none */
    size_t sums; /* of per-sample sums, in floats a sample */
    /* backward */
    bool add_in;        /* the input's gradient is there already: add to it */
    bool copy_residual; /* the residual's gradient has a place of its own */
    bool add_residual;
    int pooled;   /* a convolution computes the next step's pooling too: that one's node, else -1 */
    bool unpools; /* its gradients undo that pooling on their way in: its step has none (a pooling:
                     that is it) */
    bool has_twin; /* the next step convolves the same input to the same shape: one launch */
    bool masks_in; /* linear: its input's gradient becomes that of the ReLU's input */
    bool masked;   /* the step behind it has applied the ReLU's gradient, or (a pooling) does so */
    int unit;      /* the first of the steps that run together with it, or itself */
    int n_unit;    /* how many they are, of their first one; 1: it runs by itself */
    const cuda_unit_kernels *together; /* of the first one: what runs them; NULL: by itself */
    int n_ahead; /* of a block's first: so many run forward in one launch (mobilenetv2/); or 0 */
    bool trains_ahead;     /* of all of them: in training too */
    cuda_weight_rows rows; /* of a block's 1x1 convolutions: part 0 elsewhere */
    int n_behind; /* of a block's projection: so many steps up to it run backward in one launch */
} cuda_step;

/* How many steps from this one on run forward in one launch; 0: it runs by itself, or in a unit. */
static inline int cuda_n_ahead(const cuda_step *step, bool train) {
    return train && !step->trains_ahead ? 0 : step->n_ahead;
}

/* What a tensor is to a step. */
typedef enum cuda_role {
    CUDA_ROLE_IN,
    CUDA_ROLE_RESIDUAL,
    CUDA_ROLE_INNER,
    CUDA_ROLE_OUT,
    CUDA_N_ROLES
} cuda_role;

/* Where tensors lie, in floats a sample from the start of the workspace. */
typedef struct cuda_layout {
    size_t *value, *grad, *stats; /* [n_nodes] */
    size_t spare;
    size_t measures; /* of the last convolution */
    size_t n_floats;
} cuda_layout;

/* Pieces of the workspace of one call. */
typedef struct cuda_workspace {
    float *tensors, *partial, *sums, *own, *packed;
    int32_t *labels;
    int *predictions;
    double *samples, *scores;
} cuda_workspace;

/* One pass over a plan's steps. */
typedef struct cuda_pass {
    const cuda_plan *plan;
    const cuda_run *run;  /* the main stream's */
    const cuda_run *late; /* backward: the weight gradients', or the same */
    const cuda_branches *branches;
    const cuda_layout *layout;
    const cuda_workspace *w;
    cuda_mode mode;
} cuda_pass;

/* Kernels for several steps of a plan that run together, as one unit (resnet20/). */
struct cuda_unit_kernels {
    ct_status (*forward)(const cuda_pass *pass, const cuda_step *steps);
    ct_status (*backward)(const cuda_pass *pass, const cuda_step *steps);
    /* floats of run->partial_dev a job */
    size_t (*partial)(const cuda_step *steps, int n_most);
    /* of a convolution's weights; NULL: as its family has it */
    cuda_packing (*packing)(const cuda_plan *plan, const cuda_step *step);
    bool is_closed; /* in a pass that keeps nothing, values between its steps do not exist */
    bool is_plain;  /* backward it reads weights as they are: they are not packed for that */
};

struct cuda_plan {
    ct_plan base;
    cuda_step *steps;
    int n_steps, n_feature_steps;
    int *root; /* [n_nodes] node whose gradient's place is used */
    /* [n_nodes] how values and gradients (by root) are stored */
    cuda_element *value_element, *grad_element;
    cuda_pairs pairs; /* how pictures are stored */
    cuda_layout train, forward;
    size_t packed_floats; /* of one parameter row */
    cuda_packs packs;
    cuda_sum *sums_dev;
    int n_sums, n_sum_blocks;
    size_t sum_floats; /* a sample */
    bool is_single;    /* a kernel of the main stream needs what weight gradients use: no branch */
    /* grown to the largest call so far */
    char *workspace_dev;
    size_t workspace_size;
    char *beside_dev; /* of features beside a gradient */
    size_t beside_size;
};

/* cuda.c: n bytes on the device, or CT_NOMEM with what is needed and what is free */
ct_status ct_cuda_alloc(size_t n_bytes, const char *what, void **out);
ct_status ct_cuda_memory(size_t *n_free, size_t *total);
/* At least so many words of scratch, which calls take in turn. */
ct_status ct_cuda_reserve_scratch(cuda_backend *backend, size_t n_words, const char *what);
/* stage.c */
ct_status ct_cuda_stage_create(cuda_backend *backend);
void ct_cuda_stage_free(cuda_backend *backend);
ct_status ct_cuda_stage_begin(cuda_backend *backend);
/* Room for n bytes, and their offset. The pointer holds until the next reservation. */
ct_status ct_cuda_stage_reserve(cuda_backend *backend, size_t n, size_t *offset, void **host);
ct_status ct_cuda_stage_send(cuda_backend *backend);
/* step.c */
ct_status ct_cuda_step_begin(ct_backend *backend);
ct_status ct_cuda_step_end(ct_backend *backend);
/* Around the staging of a call: outside of a step it is launched by commit. */
ct_status ct_cuda_call_begin(cuda_backend *backend);
ct_status ct_cuda_call_commit(cuda_backend *backend, const cuda_call *call);
/* Launches what a step has noted so far; before anything that looks at results. */
ct_status ct_cuda_flush(cuda_backend *backend);
void ct_cuda_forget_graphs(cuda_backend *backend);
/* bank.c */
ct_status ct_cuda_bank_alloc(ct_bank *bank);
void ct_cuda_bank_free(ct_bank *bank);
ct_status ct_cuda_bank_write(ct_bank *bank, int row, size_t first, size_t n, const float *values);
ct_status ct_cuda_stage_rows_create(ct_backend *base, size_t n, bool on_device, float **out);
void ct_cuda_stage_rows_free(ct_backend *base, bool on_device, float *stage);
ct_status ct_cuda_bank_pack(const ct_bank *bank, const int *rows, int n_rows, float *stage);
ct_status ct_cuda_bank_unpack(ct_bank *bank, int first, int n_rows, const float *stage);
ct_status ct_cuda_bank_read(const ct_bank *bank, int row, size_t first, size_t n, float *values);
/* source.c */
ct_status ct_cuda_source_create(ct_backend *backend, const ct_images *images, const float *mean,
                                const float *std, ct_source **out);
void ct_cuda_source_free(ct_source *source);
ct_status ct_cuda_source_refresh(ct_source *source, const ct_images *images, size_t first,
                                 size_t n);
/* program.c */
ct_status ct_cuda_run_update(ct_backend *backend, const ct_update *update);
/* Whether an update that was noted assigns to the bank with this data. */
bool ct_cuda_writes(const cuda_backend *backend, const cuda_call *update, const float *data);
/* rounds.c: writes the program's script; its n = 0: there is none */
void ct_cuda_find_rounds(cuda_program *p);
/* compress.c */
ct_status ct_cuda_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                           ct_bank *packed);
ct_status ct_cuda_decompress(const ct_packing *packing, const ct_bank *packed, ct_bank *known);
ct_status ct_cuda_scale_steps(const ct_adaptive_steps *steps, ct_bank *v, ct_bank *r);
ct_status ct_cuda_launch_parcel(const cuda_backend *backend, const cuda_call *call);
/* compile.c, layout.c, plan.c */
ct_status ct_cuda_compile(cuda_plan *plan);
ct_status ct_cuda_layout(const cuda_plan *plan, bool train, cuda_layout *out);
/* elements.c: what is stored in bf16, and which steps compute so */
void ct_cuda_choose_elements(cuda_plan *plan);
void ct_cuda_layout_free(cuda_layout *layout);
ct_status ct_cuda_plan_create(ct_backend *backend, const ct_graph *graph, int max_batch,
                              ct_plan **out);
void ct_cuda_plan_free(ct_plan *plan);
/* Takes the memory of a call of this size; what was there before is lost. */
ct_status ct_cuda_reserve(cuda_plan *plan, int n_jobs, int n_max, int n_models, bool train);
/* How many of n_jobs one launch takes: as many as fill the device, and fit into its memory; at
 * least 1. */
ct_status ct_cuda_jobs_that_fit(const cuda_plan *plan, int n_max, int n_models, bool train,
                                int *n_jobs);
cuda_workspace ct_cuda_workspace(const cuda_plan *plan, int n_jobs, int n_max, int n_models,
                                 bool train, size_t *n_bytes);
/* The same for features beside a gradient, which have memory of their own; weights only where they
 * pack them. False where there is too little. */
ct_status ct_cuda_reserve_beside(const cuda_call *call, bool *is_there);
cuda_workspace ct_cuda_workspace_beside(const cuda_call *call, size_t *n_bytes);
/* run.c */
ct_status ct_cuda_features(ct_plan *plan, const ct_work *work, ct_bank *features,
                           ct_bank *class_sums);
ct_status ct_cuda_soften(ct_plan *plan, const ct_work *work, const ct_softening *how,
                         ct_bank *rows);
ct_status ct_cuda_gradient(ct_plan *plan, const ct_work *work, const ct_objective *objective,
                           ct_bank *gradient, ct_bank *losses, size_t column);
ct_status ct_cuda_evaluate(ct_plan *plan, const ct_work *work, ct_score *scores, int *predictions);
ct_status ct_cuda_logits(ct_plan *plan, const ct_work *work, float *logits);
ct_status ct_cuda_launch(cuda_backend *backend, const cuda_call *call);
cudaStream_t ct_cuda_stream_of(const cuda_backend *backend, const cuda_call *call);
/* Packs the weights of calls beside a gradient and lets them begin. */
ct_status ct_cuda_fork(cuda_backend *backend, const cuda_call *call);
/* branch.c */
ct_status ct_cuda_branches_create(cuda_branches *branches);
void ct_cuda_branches_free(cuda_branches *branches);
/* `to` waits for everything `from` has been given so far. */
ct_status ct_cuda_follow(cudaEvent_t event, cudaStream_t from, cudaStream_t to);
/* forward.c, backward.c: a plan's steps */
ct_status ct_cuda_forward(const cuda_plan *plan, const cuda_run *run, const cuda_layout *layout,
                          const cuda_workspace *w, cuda_mode mode, int n_steps);
cuda_norm_kind ct_cuda_norm_kind(ct_op op);
/* The first kernels that fit. */
const cuda_norm_kernels *ct_cuda_norm_for(const cuda_norm_call *call, bool backward);
/* The weight gradients' stream may use what the main one has computed so far. */
ct_status ct_cuda_late_follows(const cuda_pass *pass);
/* Gradients of a convolution's weights and bias; d is that of its output. */
ct_status ct_cuda_weights_backward(const cuda_pass *p, const cuda_step *step, const float *d);
ct_status ct_cuda_backward(const cuda_plan *plan, const cuda_run *run,
                           const cuda_branches *branches, const cuda_workspace *w);

/* The node whose value a step reads: the norm's input where it applies the norm itself. */
static inline int cuda_value_in(const cuda_plan *plan, const cuda_step *step) {
    return step->gate >= 0 ? plan->steps[step->gate].in : step->in;
}

/* A norm's scale [sample][channel] lies behind its statistics: where, in floats a sample. */
static inline size_t cuda_scale_at(const cuda_norm *norm) {
    return (2 * (size_t)norm->groups + 31) / 32 * 32;
}

/* Floats that take the room of n elements. */
static inline size_t cuda_floats(size_t n, cuda_element element) {
    return element == CUDA_BF16 ? (n + 1) / 2 : n;
}

/* tf32 and bf16: products run on the tensor cores, their factors rounded. */
static inline bool cuda_rounds(const cuda_backend *backend) {
    return backend->base.precision != CT_PRECISION_FP32;
}

/* Where a tensor begins; its elements may be bf16. */
static inline float *cuda_tensor(const cuda_run *run, const cuda_workspace *w, size_t offset) {
    return w->tensors + offset * (size_t)run->n_jobs * (size_t)run->n_max;
}

/* Whether the gradient of a convolution's bias is summed up apart from the weights'. */
static inline bool cuda_sums_bias(const cuda_step *step) {
    return step->op == CT_OP_CONV && step->node->bias != CT_NO_PARAM &&
           !step->family[CUDA_WGRAD]->sums_bias;
}

/* A node's value and its gradient in a pass; no node, no value. */
static inline float *cuda_value(const cuda_pass *p, int node) {
    return node < 0 ? NULL : cuda_tensor(p->run, p->w, p->layout->value[node]);
}

static inline float *cuda_grad(const cuda_pass *p, int node) {
    return cuda_tensor(p->run, p->w, p->layout->grad[p->plan->root[node]]);
}

/* A norm's statistics, which only training keeps. */
static inline float *cuda_stats(const cuda_pass *p, const cuda_step *step) {
    return p->mode == CUDA_TRAIN ? cuda_tensor(p->run, p->w, p->layout->stats[step->out]) : NULL;
}

/* What a convolution that says so (n) has measured. */
static inline float *cuda_measures(const cuda_pass *p, int n) {
    return n > 0 ? cuda_tensor(p->run, p->w, p->layout->measures) : NULL;
}

static inline float *cuda_scale(const cuda_pass *p, const cuda_step *norm) {
    return cuda_tensor(p->run, p->w,
                       p->layout->stats[norm->out] + cuda_scale_at(&norm->norm_shape));
}

static inline size_t cuda_param(const cuda_plan *plan, int param) {
    return param == CT_NO_PARAM ? CUDA_NO_PARAM : plan->base.graph->params[param].offset;
}

/* The norm that a step applies to its input, if any. */
static inline cuda_gate cuda_gate_of(const cuda_pass *p, const cuda_step *step) {
    if (step->gate < 0) return (cuda_gate){0};
    const cuda_step *norm = &p->plan->steps[step->gate];
    return (cuda_gate){.scale_dev = cuda_scale(p, norm), .bias = norm->norm_shape.bias};
}

/* What the forward and backward pass of a convolution have in common. */
static inline cuda_conv_call cuda_call_of(const cuda_pass *p, const cuda_step *step) {
    return (cuda_conv_call){.conv = &step->conv,
                            .weight = cuda_param(p->plan, step->node->weight),
                            .bias = cuda_param(p->plan, step->node->bias),
                            .element = step->forward_element,
                            .x = cuda_value(p, cuda_value_in(p->plan, step)),
                            .gate = cuda_gate_of(p, step)};
}

static inline cuda_window cuda_window_of(const ct_graph *g, const cuda_step *step) {
    ct_shape from = g->nodes[step->in].shape, to = step->node->shape;
    return (cuda_window){.c = from.c,
                         .hi = from.h,
                         .wi = from.w,
                         .ho = to.h,
                         .wo = to.w,
                         .kernel = step->node->kernel,
                         .stride = step->node->stride,
                         .pad = step->node->pad};
}

/* The same of a pooling that applies a norm. */
static inline cuda_pool_call cuda_pool_call_of(const cuda_pass *p, const cuda_step *step) {
    return (cuda_pool_call){.window = cuda_window_of(p->plan->base.graph, step),
                            .element = step->forward_element,
                            .gate = cuda_gate_of(p, step),
                            .x = cuda_value(p, cuda_value_in(p->plan, step)),
                            .places = (uint8_t *)cuda_stats(p, step)};
}

#endif
