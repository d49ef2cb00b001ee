/* The launchers of the cuda backend, one fused operation a file, seen from C and from CUDA.
 * A tensor of a call is float [n_jobs][n_max][h][w][c]: job j's sample b at (j * n_max + b) * size,
 * samples beyond the job's own n are never read. The job is a grid axis of every launch. */
#ifndef CT_BACKEND_CUDA_KERNELS_H
#define CT_BACKEND_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "util/status.h"

/* Turns a CUDA error into CT_IO with its name; `what` is the call. */
ct_status ct_cuda_fail(cudaError_t error, const char *what);

#define CT_CUDA_TRY(call)                                                                          \
    do {                                                                                           \
        cudaError_t cuda_error_ = (call);                                                          \
        if (cuda_error_ != cudaSuccess) return ct_cuda_fail(cuda_error_, #call);                   \
    } while (0)
/* After every launch. */
#define CT_CUDA_LAUNCHED() CT_CUDA_TRY(cudaGetLastError())

#define CUDA_NO_PARAM SIZE_MAX /* offset of a parameter that is not there */

typedef struct cuda_job {
    int model, batch, out;
    int n; /* samples of its batch */
} cuda_job;

/* A sample of a batch. */
typedef struct cuda_sample {
    uint32_t index;
    int8_t dy, dx;
    uint8_t flip, reserved;
} cuda_sample;

/* One call of a plan, as every launch needs it. */
typedef struct cuda_run {
    cudaStream_t stream;
    const cuda_job *jobs_dev; /* [n_jobs] */
    int n_jobs, n_max;        /* samples of the largest batch of this call */
    int n_most;               /* of the largest that the plan may get: what sums are split by */
    const float *params_dev;  /* by job.model */
    size_t params_stride;
    const float *packed_dev; /* packed weights, by job.model */
    size_t packed_stride;
    float *grads_dev; /* by job.out */
    size_t grads_stride;
    float *buffers_dev; /* batchnorm's running statistics, by job.model */
    size_t buffers_stride;
    float *partial_dev;  /* sums of one operation before the second pass */
    float *sums_dev;     /* per-sample sums of all operations, reduced at the end */
    size_t shared_limit; /* bytes of shared memory a block may have */
    bool rounds;         /* factors of products may be rounded: they run on the tensor cores */
} cuda_run;

/* How a tensor is stored. Kernels for bf16 read and write through element.cuh. */
typedef enum cuda_element { CUDA_FP32, CUDA_BF16 } cuda_element;

/* Of a norm's input and the gradient there; of its output, what is added to it, and its gradient.
 */
typedef struct cuda_elements {
    cuda_element in, out;
} cuda_elements;

/* A convolution; a linear layer is one of 1x1 over a picture of one pixel that has all of the
 * input's values as channels. The weight is stored as [co][weight_ci][weight_taps]. */
typedef struct cuda_conv {
    int ci, hi, wi;
    int co, ho, wo;
    int kh, kw, stride, pad, groups;
    int weight_ci, weight_taps;
} cuda_conv;

/* ---- pack.cu: weights in the order the convolutions read them ---- */

typedef enum cuda_packing {
    CUDA_PACK_FORWARD,  /* [tap][ci][co] */
    CUDA_PACK_BACKWARD, /* [tap][co][ci] */
    CUDA_PACK_LINEAR,   /* [co][tap][ci] */
} cuda_packing;

/* A layer that is packed by the table. */
typedef struct cuda_pack {
    size_t from; /* offset of the weight in a parameter row */
    size_t to;   /* offset in a packed row */
    int co, ci, taps;
    cuda_packing kind;
} cuda_pack;

/* A layer packed as fragments: of mma m16n8k8, rounded to tf32, or of m16n8k16 in bf16. Forward k =
 * (tap, ci) and n = co, backward k = (tap, co) and n = ci; k of a tap is rounded up to that of a
 * product, n to 16. */
typedef struct cuda_fragments {
    size_t from;
    size_t forward, backward; /* offsets in a packed row, in floats, or CUDA_NO_PARAM */
    int co, ci, taps;
    cuda_element element;
} cuda_fragments;

/* A block's part of it: one of its ct_cuda_pack_tiles. */
typedef struct cuda_pack_tile {
    int layer, at;
} cuda_pack_tile;

typedef struct cuda_packs {
    int *table_dev; /* for each of the first n_plain floats of a packed row, a multiple of 4 */
    size_t n_plain;
    cuda_fragments *fragments_dev;
    cuda_pack_tile *tiles_dev;
    int n_tiles;
} cuda_packs;

int ct_cuda_pack_tiles(const cuda_fragments *fragments);
/* Where each of the first n_floats of a packed row comes from. */
ct_status ct_cuda_pack_table(cudaStream_t stream, const cuda_pack *packs_dev, int n_packs,
                             size_t n_floats, int *table_dev);
ct_status ct_cuda_pack(const cuda_run *run, const cuda_packs *packs, int n_rows, float *packed_dev);

/* ---- gather.cu ---- */
typedef struct cuda_images {
    const uint8_t *pixels_dev; /* [n][c][h][w] */
    const int32_t *labels_dev;
    const float *table_dev; /* [c][256] */
    int c, h, w;
} cuda_images;
/* out: the pictures, [h][w][c]; labels [n_jobs][n_max] */
ct_status ct_cuda_gather(const cuda_run *run, const cuda_images *images,
                         const cuda_sample *samples_dev, float *out_dev, int32_t *labels_dev);

/* ---- conv.cu: any shape, groups = 1, as an implicit matrix product ---- */
ct_status ct_cuda_conv_forward(const cuda_run *run, const cuda_conv *conv, const float *x_dev,
                               size_t packed, size_t bias, bool relu, float *y_dev);
ct_status ct_cuda_conv_dgrad(const cuda_run *run, const cuda_conv *conv, const float *d_dev,
                             size_t packed, bool accumulate, float *dx_dev);
ct_status ct_cuda_conv_wgrad(const cuda_run *run, const cuda_conv *conv, const float *x_dev,
                             const float *d_dev, size_t weight);
/* Blocks of pixels whose sums conv_wgrad keeps apart, and the floats of partial_dev it needs. */
int ct_cuda_wgrad_splits(const cuda_conv *conv, int n_max);

/* ---- stem.cu: pictures of few channels, tf32 ---- */
bool ct_cuda_stem_fits(const cuda_conv *conv, size_t shared_limit);
int ct_cuda_stem_splits(int n_most);
ct_status ct_cuda_stem_forward(const cuda_run *run, const cuda_conv *conv, const float *x_dev,
                               size_t weight, size_t bias, bool relu, float *y_dev);
ct_status ct_cuda_stem_wgrad(const cuda_run *run, const cuda_conv *conv, const float *x_dev,
                             const float *d_dev, size_t weight);

/* ---- linear.cu ---- */
ct_status ct_cuda_linear_forward(const cuda_run *run, int n_in, int n_out, const float *x_dev,
                                 size_t packed, size_t bias, bool relu, float *y_dev);
/* With `mask`, dx is zero where that is not above zero: the gradient of a ReLU before it. */
ct_status ct_cuda_linear_dgrad(const cuda_run *run, int n_in, int n_out, const float *d_dev,
                               size_t packed, bool accumulate, const float *mask_dev,
                               float *dx_dev);
ct_status ct_cuda_linear_wgrad(const cuda_run *run, const cuda_conv *conv, const float *x_dev,
                               const float *d_dev, size_t weight, size_t bias);

/* ---- grouped.cu: grouped and depthwise convolutions ---- */
ct_status ct_cuda_grouped_forward(const cuda_run *run, const cuda_conv *conv, const float *x_dev,
                                  size_t weight, size_t bias, bool relu, float *y_dev);
ct_status ct_cuda_grouped_dgrad(const cuda_run *run, const cuda_conv *conv, const float *d_dev,
                                size_t weight, bool accumulate, float *dx_dev);
ct_status ct_cuda_grouped_wgrad(const cuda_run *run, const cuda_conv *conv, const float *x_dev,
                                const float *d_dev, size_t weight);

/* ---- conv_tile.cu: whole samples in shared memory, EvoNorm and addition behind the product ----
 */
typedef struct cuda_tile_conv {
    int ci, depth; /* channels of the input, and rounded up to 8 */
    int hi, wi, co, ho, wo;
    int kernel;
    /* output (y, x), tap (u, v) reads input ((y * scale + sign * u + shift) / step, ...) where that
     * is whole: forward scale = stride, sign 1, shift -pad, step 1; data gradient scale 1, sign -1,
     * shift pad, step = stride */
    int scale, sign, shift, step;
} cuda_tile_conv;

typedef struct cuda_norm {
    int channels, groups, pixels;
    size_t weight, bias, slope; /* offsets of parameters */
} cuda_norm;

/* Whether there is a kernel for this shape on this device, with EvoNorm behind it or without. */
bool ct_cuda_tile_fits(const cuda_tile_conv *conv, bool norm, size_t shared_limit);
/* y = evonorm(conv(x)) + residual; the convolution's own value goes to `pre`, mean and 1/sigma to
 * `stats` [sample][group][2], unless they are NULL. */
typedef struct cuda_tile_out {
    cuda_tile_conv v;
    size_t packed;
    cuda_norm norm;
    const float *residual;
    float *pre, *stats, *y;
    cuda_element y_element;
} cuda_tile_out;
/* One or two of the same input and output shape. */
ct_status ct_cuda_tile_evonorm(const cuda_run *run, const float *x_dev, const cuda_tile_out *outs,
                               int n_outs);
/* y = conv(x), or y += conv(x) */
ct_status ct_cuda_tile_conv(const cuda_run *run, const cuda_tile_conv *conv, const float *x_dev,
                            size_t packed, bool accumulate, float *y_dev);

/* ---- chain.cu, chain_back.cu: residual blocks, one after the other, in one launch ---- */
#define CUDA_MAX_CHAIN   12           /* layers of a launch */
#define CUDA_CHAIN_BYTES (200 * 1024) /* of shared memory that its blocks may take */

/* A layer of it: convolution 3x3, EvoNorm, and the addition that ends a residual block. */
typedef struct cuda_link {
    size_t packed;       /* weights: forward, or for the data gradient */
    size_t weight, bias; /* of the norm */
    void *pre;           /* the convolution's own value, or NULL where nothing is kept */
    float *stats;        /* mean and 1/sigma, likewise */
    void *y;             /* the layer's output, or NULL where nobody reads it; backward: the
                            gradient of `pre` */
    float *sums;         /* backward: per-sample sums of the norm's gradients */
    bool add;
} cuda_link;

/* The first layer reads x, a picture of n_colours where that is not 0 (then its output is the first
 * residual); the first addition adds `residual`, later ones what the one before has
 * given. Backward: from d, the gradient of the last output, to dx, and to dresidual where the first
 * layer adds (else the residual is x, and dx has both). What void points to are `element`s, but a
 * picture is floats, and the last output y_element; d, dx and dresidual have elements of their own.
 */
typedef struct cuda_chain {
    int n_links, n_colours;
    cuda_element element, y_element;
    cuda_element d_element, dx_element, dresidual_element;
    const void *x, *residual;
    const void *d;
    void *dx, *dresidual;
    cuda_link links[CUDA_MAX_CHAIN];
} cuda_chain;

bool ct_cuda_chain_fits(const cuda_conv *conv, size_t shared_limit);
/* Whether a chain can begin with this one, on a picture. */
bool ct_cuda_chain_begins(const cuda_conv *conv, size_t shared_limit);
ct_status ct_cuda_chain_forward(const cuda_run *run, int channels, const cuda_chain *chain,
                                bool train);
ct_status ct_cuda_chain_backward(const cuda_run *run, int channels, const cuda_chain *chain);

/* ---- strided.cu, strided_back.cu, strided_wgrad.cu: a residual block's first convolution, 3x3 and
 * two pixels apart, and its shortcut, 1x1, with EvoNorm, in bf16 ---- */
#define CUDA_STRIDED_BYTES (112 * 1024) /* of shared memory that its blocks may take */

/* links: the convolution and the shortcut, from `channels` to twice as many. Backward: from the
 * gradients dy of their outputs to the input's dx. */
typedef struct cuda_strided {
    const void *x, *dy[2];
    void *dx;
    cuda_link links[2];
} cuda_strided;

bool ct_cuda_strided_fits(const cuda_conv *conv, const cuda_conv *shortcut, size_t shared_limit);
ct_status ct_cuda_strided_forward(const cuda_run *run, int channels, const cuda_strided *strided);
ct_status ct_cuda_strided_backward(const cuda_run *run, int channels, const cuda_strided *strided);

/* ---- conv_mma.cu, wgrad_mma.cu: any extent on the tensor cores; all tensors of one element ----
 */

/* An EvoNorm (hard sigmoid) that the reader of its input applies: y = x s(x) scale + bias. */
typedef struct cuda_gate {
    const float *scale_dev; /* [sample][channel] weight / sigma; NULL: the input is read as it is */
    size_t bias;            /* offset of the parameter */
} cuda_gate;

/* What becomes of a convolution's sums. */
typedef struct cuda_finish {
    size_t bias; /* offset, or CUDA_NO_PARAM */
    bool relu, accumulate;
    float *measures_dev; /* [sample][segment][2][co] means and squared deviations, or NULL */
    /* of a gradient: the input of the EvoNorm whose output's gradient it is; the measures are then
       sums of gradient times numerator, and of the gradient */
    const void *norm_in_dev;
    cuda_element norm_element;
} cuda_finish;

bool ct_cuda_mma_fits(const cuda_tile_conv *conv);
/* Pixels of a segment whose measures are taken; 0: the extents do not allow it. */
int ct_cuda_mma_segment(const cuda_tile_conv *conv);
ct_status ct_cuda_mma_conv(const cuda_run *run, cuda_element element, const cuda_tile_conv *conv,
                           const cuda_gate *gate, const void *x_dev, size_t packed,
                           const cuda_finish *finish, void *y_dev);
bool ct_cuda_mma_wgrad_fits(const cuda_conv *conv);
int ct_cuda_mma_wgrad_splits(const cuda_conv *conv, int n_max);
ct_status ct_cuda_mma_wgrad(const cuda_run *run, cuda_element element, const cuda_conv *conv,
                            const cuda_gate *gate, const void *x_dev, const void *d_dev,
                            size_t weight);

/* ---- depthwise.cu, depthwise_back.cu: 3x3, fp32 sums; all tensors of one element ---- */
bool ct_cuda_depthwise_fits(const cuda_conv *conv);
bool ct_cuda_depthwise_back_fits(const cuda_conv *conv);
int ct_cuda_depthwise_segments(const cuda_conv *conv);
int ct_cuda_depthwise_splits(const cuda_conv *conv, int n_max);
ct_status ct_cuda_depthwise_forward(const cuda_run *run, cuda_element element,
                                    const cuda_conv *conv, const cuda_gate *gate, const void *x_dev,
                                    size_t weight, float *measures_dev, void *y_dev);
/* The weights' gradient, and the input's unless dx is NULL. `sums`, unless NULL: [sample][2][ci] of
 * dx times the numerator of the gate's norm, and of dx. */
ct_status ct_cuda_depthwise_backward(const cuda_run *run, cuda_element element,
                                     const cuda_conv *conv, const cuda_gate *gate,
                                     const void *x_dev, const void *d_dev, size_t weight,
                                     bool accumulate, float *sums_dev, void *dx_dev);

/* ---- narrow.cu: few output channels, fp32 ---- */
bool ct_cuda_narrow_fits(const cuda_tile_conv *conv, int taps);
/* Whether it can pool its output, 2 x 2, as well. */
bool ct_cuda_narrow_pools(const cuda_tile_conv *conv, int kh, int kw);
/* `pooled`: maxima of 2 x 2 pixels of y, or NULL; with it y may be NULL. `values`: x is the
 * gradient of their maxima, where those are above zero (a ReLU's), and becomes theirs; or NULL. */
ct_status ct_cuda_narrow_conv(const cuda_run *run, const cuda_tile_conv *conv, int kh, int kw,
                              const float *x_dev, const float *values_dev, size_t packed,
                              size_t bias, bool relu, bool accumulate, float *y_dev,
                              float *pooled_dev);
bool ct_cuda_narrow_wgrad_fits(const cuda_conv *conv);
/* Floats of partial_dev a job. */
size_t ct_cuda_narrow_wgrad_floats(const cuda_conv *conv, int n_max);
ct_status ct_cuda_narrow_wgrad(const cuda_run *run, const cuda_conv *conv, const float *x_dev,
                               const float *d_dev, const float *values_dev, size_t weight,
                               size_t bias);

/* ---- wgrad_tile.cu: layers of one shape in one launch ---- */
typedef struct cuda_wgrad {
    const float *x, *d; /* wgrad_bf16.cu, strided_wgrad.cu: bf16, but a picture */
    size_t weight;      /* where it goes, in a gradient row */
} cuda_wgrad;
bool ct_cuda_tile_wgrad_fits(const cuda_conv *conv, size_t shared_limit);
int ct_cuda_tile_wgrad_splits(const cuda_conv *conv, int n_layers, int n_most);
ct_status ct_cuda_tile_wgrad(const cuda_run *run, const cuda_conv *conv, const cuda_wgrad *layers,
                             int n_layers);
/* Splits of a job's n_items for blocks of which a multiprocessor runs some at once. */
int ct_cuda_even_splits(int n_layers, int n_items, int blocks_at_once);

/* ---- wgrad_bf16.cu: the same for layers of a chain in bf16 ---- */
int ct_cuda_bf16_wgrad_splits(const cuda_conv *conv, int n_layers, int n_most);
ct_status ct_cuda_bf16_wgrad(const cuda_run *run, const cuda_conv *conv, const cuda_wgrad *layers,
                             int n_layers);

/* ---- strided_wgrad.cu: of the convolution and the shortcut, which have the same x ---- */
int ct_cuda_strided_wgrad_splits(int channels, int n_most);
ct_status ct_cuda_strided_wgrad(const cuda_run *run, int channels, const cuda_wgrad layers[2]);

/* ---- sums.cu: second passes, in a fixed order ---- */
/* grads[job][weight + (o * ci + i) * taps + t] = sum over splits of partial[job][split][...] with
 * element (t, i, o) where `by_tap`, else (o, t, i) */
ct_status ct_cuda_sum_wgrad(const cuda_run *run, int n_splits, int co, int ci, int taps,
                            bool by_tap, size_t weight);
/* The same of partial[layer][job][split] with (t, i, o), for layers of one shape with up to 9 taps.
 */
ct_status ct_cuda_sum_layers(const cuda_run *run, int n_splits, const cuda_conv *conv,
                             const cuda_wgrad *layers, int n_layers);

/* The same of partial[job][split][10][ci][2 ci]: nine taps, then a shortcut's one. */
ct_status ct_cuda_sum_strided(const cuda_run *run, int n_splits, int ci, size_t weight,
                              size_t shortcut);

/* Per-sample sums [n_jobs][n_max][count] at sums_dev + from (times n_jobs * n_max), to be added up
 * over a job's samples into its gradient row at `to`. */
typedef struct cuda_sum {
    size_t from, to;
    int count;
    int width; /* floats of a sample's entry; this sum begins at `first` of it */
    int first;
    int first_block; /* of the launch */
} cuda_sum;
#define CUDA_SUM_BLOCK 128
ct_status ct_cuda_sum_samples(const cuda_run *run, const cuda_sum *sums_dev, int n_sums,
                              int n_blocks);
/* sums_dev[from * n_jobs * n_max + (job * n_max + b) * channels + c] = sum over pixels of d */
ct_status ct_cuda_bias_sums(const cuda_run *run, int channels, int pixels, const float *d_dev,
                            size_t from);

/* ---- evonorm.cu, norm.cu ---- */
ct_status ct_cuda_evonorm_forward(const cuda_run *run, const cuda_norm *norm, const float *x_dev,
                                  const float *residual_dev, float *stats_dev, float *y_dev);
/* `from`: where its per-sample sums go: [weight: channels][bias: channels][slope: channels if any].
 * dx may be dy. */
ct_status ct_cuda_evonorm_backward(const cuda_run *run, const cuda_norm *norm, const float *x_dev,
                                   const float *stats_dev, const float *dy_dev, size_t from,
                                   float *dx_dev);
/* evonorm_back.cu: the same for ResNet-20's shapes in tf32 */
bool ct_cuda_evonorm_back_fits(const cuda_norm *norm);
ct_status ct_cuda_evonorm_back(const cuda_run *run, const cuda_norm *norm, const float *x_dev,
                               const float *stats_dev, const float *dy_dev, size_t from,
                               float *dx_dev);
/* evonorm_group.cu: a sample shared out to blocks, groups of channels each */
bool ct_cuda_evonorm_group_fits(const cuda_norm *norm);
ct_status ct_cuda_evonorm_group_forward(const cuda_run *run, cuda_elements elements,
                                        const cuda_norm *norm, const void *x_dev,
                                        const void *residual_dev, float *stats_dev, void *y_dev);
ct_status ct_cuda_evonorm_group_backward(const cuda_run *run, cuda_elements elements,
                                         const cuda_norm *norm, const void *x_dev,
                                         const float *stats_dev, const void *dy_dev, size_t from,
                                         void *dx_dev);
/* evonorm_apply.cu: from a convolution's measures to statistics (unless NULL) and a gate's scale */
ct_status ct_cuda_evonorm_join(const cuda_run *run, const cuda_norm *norm,
                               const float *measures_dev, int n_segments, float *stats_dev,
                               float *scale_dev);
/* y = gate(x) + residual */
ct_status ct_cuda_evonorm_apply(const cuda_run *run, cuda_elements elements, const cuda_norm *norm,
                                const void *x_dev, const float *scale_dev, const void *residual_dev,
                                void *y_dev);
/* evonorm_group_backward where the kernel that wrote dy has left parts
 * [sample][segment][2][channel] of its sums: of dy times the numerator, and of dy. */
bool ct_cuda_evonorm_finish_fits(const cuda_norm *norm);
ct_status ct_cuda_evonorm_finish(const cuda_run *run, cuda_elements elements, const cuda_norm *norm,
                                 const void *x_dev, const float *stats_dev, const void *dy_dev,
                                 const float *parts_dev, int n_segments, size_t from, void *dx_dev);
ct_status ct_cuda_groupnorm_forward(const cuda_run *run, const cuda_norm *norm, const float *x_dev,
                                    const float *residual_dev, float *stats_dev, float *y_dev);
ct_status ct_cuda_groupnorm_backward(const cuda_run *run, const cuda_norm *norm, const float *x_dev,
                                     const float *stats_dev, const float *dy_dev, size_t from,
                                     float *dx_dev);

typedef enum cuda_mode {
    CUDA_TRAIN,    /* batch statistics; the running ones move */
    CUDA_FEATURES, /* batch statistics; nothing moves */
    CUDA_EVALUATE, /* running statistics */
} cuda_mode;

/* stats [n_jobs][2][channels]; buffer: offset of the running means in a buffer row */
ct_status ct_cuda_batchnorm_forward(const cuda_run *run, const cuda_norm *norm, cuda_mode mode,
                                    size_t buffer, const float *x_dev, const float *residual_dev,
                                    float *stats_dev, float *y_dev);
ct_status ct_cuda_batchnorm_backward(const cuda_run *run, const cuda_norm *norm, const float *x_dev,
                                     const float *stats_dev, const float *dy_dev, float *dx_dev);

/* ---- simple.cu ---- */
typedef struct cuda_window {
    int c, hi, wi, ho, wo, kernel, stride, pad;
} cuda_window;
/* Whether this build has code for the device that is current. */
bool ct_cuda_has_kernels(void);
ct_status ct_cuda_relu(const cuda_run *run, size_t size, const float *x_dev, float *y_dev);
/* dx = or += dy where y > 0 */
ct_status ct_cuda_relu_backward(const cuda_run *run, size_t size, const float *y_dev,
                                const float *dy_dev, bool accumulate, float *dx_dev);
/* y = a + b; with a NULL, y = b */
ct_status ct_cuda_add(const cuda_run *run, size_t size, const float *a_dev, const float *b_dev,
                      float *y_dev);
/* `element`: of all tensors; bf16 backward only with windows of 3 x 3, two apart, a border of one
 */
ct_status ct_cuda_maxpool(const cuda_run *run, cuda_element element, const cuda_window *w,
                          const void *x_dev, void *y_dev);
/* `masked`: only where the largest value is above zero, as a ReLU before it would have it */
ct_status ct_cuda_maxpool_backward(const cuda_run *run, cuda_element element, const cuda_window *w,
                                   const void *x_dev, const void *dy_dev, bool accumulate,
                                   bool masked, void *dx_dev);
/* `element`: of x, dx */
ct_status ct_cuda_avgpool(const cuda_run *run, cuda_element element, int channels, int pixels,
                          const void *x_dev, float *y_dev);
ct_status ct_cuda_avgpool_backward(const cuda_run *run, cuda_element element, int channels,
                                   int pixels, const float *dy_dev, bool accumulate, void *dx_dev);

/* ---- loss.cu ---- */
typedef struct cuda_loss {
    int n_classes;
    int channels, pixels; /* of the features: r = channels * pixels */
    int distance;         /* ct_distance */
    bool sum_features;    /* CT_REDUCE_SUM */
    double lambda_m, lambda_d;
    bool ccl;
    double cross_fraction;    /* ct_cross_samples */
    double smoothing;         /* of the labels */
    const float *lambdas_dev; /* [job.out][2] instead of lambda_m and lambda_d; NULL: those */
    size_t lambdas_stride;
    const int32_t *labels_dev; /* [n_jobs][n_max] */
} cuda_loss;

/* Per sample: [n_jobs][n_max][4] cross-entropy, L_mv, L_dv, correct. dlogits may be NULL;
 * predictions [n_jobs][n_max] may be NULL. */
ct_status ct_cuda_cross_entropy(const cuda_run *run, const cuda_loss *loss, const float *logits_dev,
                                float *dlogits_dev, double *samples_dev, int *predictions_dev);
/* features row [n][r] of job.out from the node's tensor, and class sums [C][r + 1] of job.out */
ct_status ct_cuda_take_features(const cuda_run *run, const cuda_loss *loss, const float *z_dev,
                                float *features_dev, size_t features_stride, float *sums_dev,
                                size_t sums_stride);
typedef struct cuda_contrast {
    const float *cross_dev; /* rows cross_begin[k] .. of job k */
    size_t cross_stride;
    const int *cross_begin_dev; /* [n_jobs + 1] */
    const float *received_dev;  /* by job.out */
    size_t received_stride;
    float *own_dev; /* [n_jobs][C * (r + 1)] class sums of the own features */
} cuda_contrast;
/* Fills own_dev. */
ct_status ct_cuda_own_sums(const cuda_run *run, const cuda_loss *loss,
                           const cuda_contrast *contrast, const float *z_dev);
/* dz = gradient of the contrastive terms at the features; adds L_mv and L_dv to samples_dev */
ct_status ct_cuda_contrast(const cuda_run *run, const cuda_loss *loss,
                           const cuda_contrast *contrast, const float *z_dev, double *samples_dev,
                           float *dz_dev);
/* losses[job.out][*column_dev ...] = means and the count; scores[job] = {sum of ce, correct} unless
 * NULL. Either may be NULL. */
ct_status ct_cuda_loss_sums(const cuda_run *run, const double *samples_dev, float *losses_dev,
                            size_t losses_stride, const size_t *column_dev, double *scores_dev);

/* ---- update.cu ---- */
#define CUDA_MAX_ASSIGNS   24
#define CUDA_MAX_TERMS     6
#define CUDA_MAX_SLOTS     20
#define CUDA_PROGRAM_BYTES 4096 /* with small matrices; a block copies it in one go */

/* A bank or a temporary of a program. Its rows have numbers in shared memory from `first` on,
 * banks' and temporaries' counted apart. */
typedef struct cuda_slot {
    float *data; /* NULL: a temporary */
    size_t stride;
    int first, n_rows;
    int n_load;    /* rows that are read before they are written */
    int n_written; /* so far, while the program is put together */
} cuda_slot;

typedef struct cuda_term {
    int slot;
    int matrix; /* byte offset of a cuda_sparse from the program, or -1 */
    float coef;
} cuda_term;

typedef struct cuda_assign {
    int slot, n_rows, n_terms;
    cuda_term terms[CUDA_MAX_TERMS];
} cuda_assign;

typedef struct cuda_program {
    size_t n_quads; /* columns / 4, rounded up */
    int n_assigns, n_slots, n_temp_rows, n_bank_rows;
    int n_tail; /* ints of the tail in use */
    int reserved;
    cuda_slot slots[CUDA_MAX_SLOTS];
    cuda_assign assigns[CUDA_MAX_ASSIGNS];
    int tail[352]; /* matrices */
} cuda_program;

/* begin [n_rows + 1], column [entries], value [entries] (floats) follow. */
typedef struct cuda_sparse {
    int n_rows, n_entries;
} cuda_sparse;

ct_status ct_cuda_update(cudaStream_t stream, const cuda_program *program_dev, size_t n_quads,
                         int n_rows, int n_temp_rows, int n_bank_rows, size_t shared_limit);

#ifdef __cplusplus
}
#endif
#endif
