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

#include "compress/low_rank.h"
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
    float *partial_dev;     /* sums of one operation before the second pass */
    float *sums_dev;        /* per-sample sums of all operations, reduced at the end */
    size_t shared_limit;    /* bytes of shared memory a block may have */
    bool is_hopper, rounds; /* rounds: factors of products; they run on the tensor cores */
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
    CUDA_PACK_NONE,      /* read as they are */
    CUDA_PACK_FRAGMENTS, /* cuda_fragments */
    CUDA_PACK_BLOCKS,    /* likewise, bf16 */
    CUDA_PACK_CORES,     /* likewise, bf16, 3x3 */
    CUDA_PACK_FORWARD,   /* by the table: [tap][ci][co] */
    CUDA_PACK_BACKWARD,  /* [tap][co][ci] */
    CUDA_PACK_LINEAR,    /* [co][tap][ci] */
} cuda_packing;

/* A layer that is packed by the table. */
typedef struct cuda_pack {
    size_t from; /* offset of the weight in a parameter row */
    size_t to;   /* offset in a packed row */
    int co, ci, taps;
    cuda_packing kind;
} cuda_pack;

/* A 1x1 layer's weights in bf16 as they are, [co][ci], but in parts of some input channels that
 * have room for more: zeros. */
typedef struct cuda_weight_rows {
    size_t at;      /* offset in a packed row, in floats */
    int part, room; /* 0: there are none */
} cuda_weight_rows;

/* A layer packed as fragments: of mma m16n8k8, rounded to tf32, or of m16n8k16 in bf16. Forward k =
 * (tap, ci) and n = co, backward k = (tap, co) and n = ci; k of a tap is rounded up to that of a
 * product, n to 16. Or as blocks of 64 x 64: [tap][k / 64][n / 64], each 64 rows n of 128 bytes,
 * swizzled by 128 bytes: unit u of row r is unit u ^ r % 8 there. Or as cores (pack.cu). */
typedef struct cuda_fragments {
    size_t from;
    size_t forward, backward; /* offsets in a packed row, in floats, or CUDA_NO_PARAM */
    int co, ci, taps;
    cuda_element element;
    cuda_packing packing[2]; /* forward, backward */
    cuda_weight_rows rows;
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
    const void *stored_dev; /* [n][c][h][w] pixels, uint8_t, or any numbers, float */
    bool is_pixels;
    const int32_t *labels_dev;
    const float *table_dev; /* [c][256] pixels' values; of any numbers [c][2] mean, deviation */
    int c, h, w;
} cuda_images;
/* Pictures as pairs of neighbouring pixels of a row, 4 channels each in bf16: 16 bytes. A sample is
 * [parity of the row][size] pairs: from `border` rows of zeros on, rows of `border` zeros and `width`
 * pairs; zeros behind the last of `height` rows. */
typedef struct cuda_pairs {
    int height, width, border;
    int size; /* 0: pictures are floats */
} cuda_pairs;

/* out: the pictures, [h][w][c], or as pairs; labels [n_jobs][n_max] */
ct_status ct_cuda_gather(const cuda_run *run, const cuda_images *images,
                         const cuda_sample *samples_dev, const cuda_pairs *pairs, void *out_dev,
                         int32_t *labels_dev);

/* ---- convolutions: families of kernels, in the order of preference in kernel_list.h ---- */

typedef enum cuda_direction {
    CUDA_FORWARD,
    CUDA_DGRAD, /* the input's gradient */
    CUDA_WGRAD, /* the weights' */
    CUDA_N_DIRECTIONS
} cuda_direction;

/* What a family is asked to compute. */
typedef struct cuda_problem {
    cuda_conv conv;
    bool is_linear, has_bias;
    bool rounds;          /* as in cuda_run */
    bool is_hopper;       /* compute capability 9.0 */
    bool is_first;        /* nothing else reads the picture */
    cuda_element element; /* of its tensors, where bf16 is for certain */
    size_t shared_limit;  /* as in cuda_run */
} cuda_problem;

/* Segments of a sample that a convolution measures, of equal numbers of pixels (size 0), or runs of
 * `size` positions: those of a job's samples one behind the other, `positions` each, of which the
 * last `lead` have no pixel, nor has what follows the first `width` of each `pitch`. A sample's
 * first segment is that of its first position. */
typedef struct cuda_segments {
    int n, size;
    int positions, pitch, width, lead;
} cuda_segments;

/* An EvoNorm (hard sigmoid) that the reader of its input applies: y = x s(x) scale + bias. */
typedef struct cuda_gate {
    const float *scale_dev; /* [sample][channel] weight / sigma; NULL: the input is read as it is */
    size_t bias;            /* offset of the parameter */
} cuda_gate;

/* One convolution of a call; pointers are to device memory. A direction looks at what it needs. */
typedef struct cuda_conv_call {
    const cuda_conv *conv;
    size_t weight, bias;  /* offsets of parameters; bias may be CUDA_NO_PARAM */
    size_t packed;        /* of the weights as the family packs them for this direction */
    cuda_element element; /* of x, y, d and dx */
    const void *x, *d;    /* the input, and the output's gradient */
    void *y, *dx;         /* forward: y may be NULL where `pooled` is not */
    cuda_gate gate;       /* applied to x */
    bool relu;            /* forward: y = max(y, 0) */
    bool accumulate;      /* dgrad: dx += */
    float *pooled;        /* forward: maxima of 2 x 2 pixels of y, or NULL */
    /* backward: d is the gradient of these values' maxima over 2 x 2 pixels, where those are above
       zero (a ReLU's); or NULL */
    const float *unpooled;
    const float *mask; /* dgrad: dx is zero where this is not above zero (a ReLU before); or NULL */
    /* forward: [sample][segment][2][co] means and squared deviations of y; dgrad, of the EvoNorm
       whose output's gradient dx is: sums of dx times its numerator, and of dx; or NULL */
    float *measures;
    const void *norm_in; /* dgrad: that norm's input */
    cuda_element norm_element;
} cuda_conv_call;

typedef ct_status cuda_conv_launch(const cuda_run *run, const cuda_conv_call *call);

/* Extents of a convolution or of its data gradient, which is one with the sides exchanged. */
typedef struct cuda_tile_conv {
    int ci, depth; /* channels of the input, and rounded up to 8 */
    int hi, wi, co, ho, wo;
    int kernel;
    /* output (y, x), tap (u, v) reads input ((y * scale + sign * u + shift) / step, ...) where that
     * is whole: forward scale = stride, sign 1, shift -pad, step 1; data gradient scale 1, sign -1,
     * shift pad, step = stride */
    int scale, sign, shift, step;
} cuda_tile_conv;

cuda_tile_conv ct_cuda_tile_of(const cuda_conv *conv, cuda_direction direction);
bool ct_cuda_is_pointwise(const cuda_conv *conv); /* 1x1, stride 1 */
/* Floats of partial sums where each of n_splits has all weights. */
size_t ct_cuda_split_floats(const cuda_conv *conv, int n_splits);

typedef struct cuda_norm {
    int channels, groups, pixels;
    size_t weight, bias, slope; /* offsets of parameters */
} cuda_norm;

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

/* A family: one file, or one a direction. Members that are not there say: it cannot do that. */
typedef struct cuda_family {
    const char *name;
    bool (*fits)(const cuda_problem *problem, cuda_direction direction);
    cuda_packing packing[2]; /* of the weights: forward, dgrad */
    cuda_conv_launch *launch[CUDA_N_DIRECTIONS];
    /* floats of run->partial_dev that a job's wgrad needs */
    size_t (*partial)(const cuda_conv *conv, int n_max, int n_most);
    bool has_bf16;  /* all of its tensors may be bf16, with channels in multiples of 8 */
    bool ends_bf16; /* x is a picture in floats or pairs, y and d may be bf16 */
    /* x is a picture as these pairs, forward and in wgrad */
    cuda_pairs (*pairs)(const cuda_conv *conv);
    bool sums_bias; /* wgrad has the bias's gradient too */
    bool is_joint;  /* wgrad computes dx too, and runs on the main stream */
    bool masks;     /* dgrad knows `mask` */
    /* knows `pooled` (forward), `unpooled` (backward) */
    bool (*pools)(const cuda_conv *conv, cuda_direction direction);
    /* knows `gate`, forward and in wgrad */
    bool (*gates)(const cuda_conv *conv);
    /* segments of a sample that `measures` has, forward and in dgrad; n = 0: not for this shape */
    cuda_segments (*segments)(const cuda_conv *conv);
    int (*parts)(const cuda_conv *conv, bool is_gated, bool accumulate);
    /* has EvoNorm and an addition behind it: one convolution, or two of the same input and output
       shape */
    bool (*fuses_norm)(const cuda_problem *problem);
    ct_status (*launch_norm)(const cuda_run *run, const float *x_dev, const cuda_tile_out *outs,
                             int n_outs);
} cuda_family;

#define KERNELS(id) extern const cuda_family ct_cuda_##id;
#include "backend/cuda/kernel_list.h"
#undef KERNELS

/* ---- conv_mma.cu, wgrad_wgmma.cu, stem_wgrad_wgmma.cu, depthwise_back.cu, wgrad_tile.cu: parts of
 * families described elsewhere ---- */
ct_status ct_cuda_mma_forward(const cuda_run *run, const cuda_conv_call *call);
ct_status ct_cuda_mma_dgrad(const cuda_run *run, const cuda_conv_call *call);
/* Pixels of a segment whose measures are taken; 0: the extents do not allow it. */
int ct_cuda_mma_segment(const cuda_tile_conv *conv);
bool ct_cuda_wgmma_wgrad_fits(const cuda_conv *conv, size_t shared_limit);
size_t ct_cuda_wgmma_partial(const cuda_conv *conv, int n_max, int n_most);
ct_status ct_cuda_wgmma_wgrad(const cuda_run *run, const cuda_conv_call *call);
bool ct_cuda_stem_wgrad_fits(const cuda_conv *conv, size_t shared_limit);
size_t ct_cuda_stem_partial(const cuda_conv *conv, int n_max, int n_most);
ct_status ct_cuda_stem_wgrad(const cuda_run *run, const cuda_conv_call *call);
bool ct_cuda_depthwise_back_fits(const cuda_conv *conv);
size_t ct_cuda_depthwise_partial(const cuda_conv *conv, int n_max, int n_most);
ct_status ct_cuda_depthwise_backward(const cuda_run *run, const cuda_conv_call *call);

/* Weight gradients of layers of one shape in one launch. */
#define CUDA_MAX_LAYERS 12
typedef struct cuda_wgrad {
    const float *x, *d; /* in bf16 where a kernel says so, but a picture */
    size_t weight;      /* where it goes, in a gradient row */
} cuda_wgrad;
bool ct_cuda_tile_wgrad_fits(const cuda_conv *conv, size_t shared_limit);
int ct_cuda_tile_wgrad_splits(const cuda_conv *conv, int n_layers, int n_most);
ct_status ct_cuda_tile_wgrad(const cuda_run *run, const cuda_conv *conv, const cuda_wgrad *layers,
                             int n_layers);
/* Splits of a job's n_items for blocks of which a multiprocessor runs some at once. */
int ct_cuda_even_splits(int n_layers, int n_items, int blocks_at_once);

/* ---- sums.cu: second passes, in a fixed order ---- */
/* grads[job][weight + (o * ci + i) * taps + t] = sum over splits of partial[job][split][...] with
 * element (t, i, o) where `by_tap`, else (o, t, i) */
ct_status ct_cuda_sum_wgrad(const cuda_run *run, int n_splits, const cuda_conv *conv, bool by_tap,
                            size_t weight);
/* The same of partial[layer][job][split] with (t, i, o), for layers of one shape with up to 9 taps.
 */
ct_status ct_cuda_sum_layers(const cuda_run *run, int n_splits, const cuda_conv *conv,
                             const cuda_wgrad *layers, int n_layers);

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

/* ---- norms: kernels in the order of preference in norm_list.h ---- */

typedef enum cuda_mode {
    CUDA_TRAIN,    /* batch statistics; the running ones move */
    CUDA_FEATURES, /* batch statistics; nothing moves */
    CUDA_EVALUATE, /* running statistics */
} cuda_mode;

typedef enum cuda_norm_kind {
    CUDA_EVONORM,
    CUDA_EVONORM_S0,
    CUDA_GROUPNORM,
    CUDA_BATCHNORM
} cuda_norm_kind;

/* One norm of a call; pointers are to device memory. */
typedef struct cuda_norm_call {
    cuda_norm_kind kind;
    cuda_norm norm;
    cuda_elements elements;
    bool is_inner;     /* backward: of a norm fused behind a convolution, whose output's gradient dx
                          becomes; all floats */
    cuda_mode mode;    /* batchnorm */
    size_t buffer;     /* batchnorm: offset of the running means in a buffer row */
    const void *x;     /* its input */
    const void *added; /* forward: y = norm(x) + added; or NULL */
    /* mean and 1/sigma [sample][group][2], batchnorm's [job][2][channel]; forward: NULL where they
       are not kept */
    float *stats;
    void *y;        /* forward: the output; NULL where its reader applies the norm (cuda_gate) */
    const void *dy; /* backward, with dx, which may be the same */
    void *dx;
    /* where per-sample sums go: [weight: channels][bias: channels][slope: channels if any] */
    size_t sums;
    /* What the kernel before has measured, [sample][segment][2][channel]: forward, means and
       squared deviations of x; backward, sums of dy times the numerator, and of dy. 0 segments:
       nothing */
    const float *measures;
    int n_segments;
    cuda_segments segments; /* forward */
    float *scale;           /* forward, of a norm whose input was measured: what a gate needs */
} cuda_norm_call;

/* Kernels of norms. `fits` also says which direction they have. */
typedef struct cuda_norm_kernels {
    bool (*fits)(const cuda_norm_call *call, bool backward);
    ct_status (*forward)(const cuda_run *run, const cuda_norm_call *call);
    ct_status (*backward)(const cuda_run *run, const cuda_norm_call *call);
} cuda_norm_kernels;

#define NORM(id) extern const cuda_norm_kernels ct_cuda_norm_##id;
#include "backend/cuda/norm_list.h"
#undef NORM

/* evonorm_group.cu, evonorm_apply.cu: whether a norm could take measured sums, or bf16 */
bool ct_cuda_evonorm_group_fits(const cuda_norm *norm);
bool ct_cuda_evonorm_finish_fits(const cuda_norm *norm);

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
/* ---- pool_gate.cu: maxima of 3 x 3, two apart, a border of one, of an EvoNorm applied on the way;
 * channels in multiples of 8 ---- */
typedef struct cuda_pool_call {
    cuda_window window;
    cuda_element element;
    cuda_gate gate;
    const void *x; /* the norm's input */
    void *y;
    uint8_t *places; /* which of its 9 pixels a maximum is; forward: NULL where it is not kept */
    const void *dy;
    void *dx; /* gradient of the norm's output */
    /* backward, [sample][ct_cuda_pool_parts][2][channel]: sums of dx times the norm's numerator, and
       of dx; or NULL */
    float *measures;
} cuda_pool_call;
bool ct_cuda_pool_gates(const cuda_window *w);
int ct_cuda_pool_parts(const cuda_window *w);
ct_status ct_cuda_pool_gate(const cuda_run *run, const cuda_pool_call *call);
ct_status ct_cuda_pool_gate_backward(const cuda_run *run, const cuda_pool_call *call);

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
    const float *soft_dev;     /* [...][n_max * ct_soft_width] soft targets; NULL: none */
    size_t soft_stride;
    const int *soft_row_dev; /* [n_jobs] -1: none */
    double temperature;      /* of these */
} cuda_loss;

/* Per sample: [n_jobs][n_max][4] cross-entropy, L_mv, L_dv, correct. dlogits may be NULL;
 * predictions [n_jobs][n_max] may be NULL. */
ct_status ct_cuda_cross_entropy(const cuda_run *run, const cuda_loss *loss, const float *logits_dev,
                                float *dlogits_dev, double *samples_dev, int *predictions_dev);
/* rows [n][ct_soft_width] of job.out: softmax(logits / temperature), hard, soft */
ct_status ct_cuda_soften_logits(const cuda_run *run, int n_classes, double temperature, double hard,
                                double soft, const float *logits_dev, float *rows_dev,
                                size_t rows_stride);
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

/* ---- pack.cu and the like: rows in fewer bytes ---- */
/* How matrices of low-rank rows are spread over blocks. */
typedef enum cuda_tiling {
    CUDA_TILES_OF_DRAWS,
    CUDA_TILES_OF_ROWS,
    CUDA_TILES_OF_COLUMNS,
    CUDA_TILES_OF_VALUES,
    CUDA_TILINGS
} cuda_tiling;

/* A weight tensor D [a x b] of a model; at the end of a list of them: the sums. */
typedef struct cuda_matrix {
    size_t first, packed;         /* value of the row, word of the packed one: P, then Q; or D */
    size_t drawn;                 /* word of the scratch: V */
    unsigned a, b, rank;          /* rank 0: sent as it is */
    unsigned tiles[CUDA_TILINGS]; /* blocks for matrices before */
} cuda_matrix;

/* Rows that are packed, or unpacked where x_dev is NULL: pointers to the first of them. */
typedef struct cuda_parcel {
    ct_compressor how;
    int n_rows;
    const float *x_dev;
    float *known_dev, *packed_dev;
    size_t x_stride, known_stride, packed_stride;
    const ct_compress_key *keys_dev; /* [n_rows] */
    uint32_t *scratch_dev;           /* top-k, top-k8, low-rank: [n_rows][scratch_stride] */
    size_t scratch_stride;
    const cuda_matrix *matrices_dev; /* low-rank: [n_matrices + 1] */
    unsigned n_matrices, tiles[CUDA_TILINGS];
    cudaStream_t stream;
} cuda_parcel;

#define COMPRESSOR(id) ct_status ct_cuda_move_##id(const cuda_parcel *parcel);
#include "compress/compressor_list.h"
#undef COMPRESSOR
/* Scratch of a row. */
size_t ct_cuda_top_k_words(const ct_compressor *how);
size_t ct_cuda_low_rank_words(const ct_compressor *how);
/* matrices: [ct_low_rank_count() + 1] */
void ct_cuda_list_matrices(const ct_compressor *how, cuda_matrix *matrices);

/* ct_bank_scale_steps; steps_dev: gamma, beta, correction, epsilon */
ct_status ct_cuda_launch_steps(cudaStream_t stream, const float *steps_dev, size_t n, int n_rows,
                               float *v_dev, size_t v_stride, float *r_dev, size_t r_stride);

#ifdef __cplusplus
}
#endif
#endif
