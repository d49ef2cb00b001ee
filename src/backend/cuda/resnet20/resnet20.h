/* Kernels made for the shapes of ResNet-20 and its like: 16, 32 and 64 channels of 32, 16 and 8
 * squared pixels with EvoNorm behind every convolution. What runs together is a unit
 * (cuda_unit_kernels): chains of residual blocks (chains.c, with chain*.cu and wgrad_bf16.cu), and
 * in bf16 the first convolution of a block that halves the picture with its shortcut (pairs.c, with
 * strided*.cu). The rest of the backend calls
 * ct_cuda_find_chains, ct_cuda_units_begin and ct_cuda_units_settle alone. */
#ifndef CT_BACKEND_CUDA_RESNET20_H
#define CT_BACKEND_CUDA_RESNET20_H

#ifdef __cplusplus
#include "backend/cuda/kernels.h"
extern "C" {
#else
#include "backend/cuda/cuda_internal.h"
#endif

#define CUDA_CHAIN_BYTES   (200 * 1024) /* of shared memory that a chain's blocks may take */
#define CUDA_STRIDED_BYTES (112 * 1024) /* and a pair's */

/* ---- chain.cu, chain_back.cu: residual blocks, one after the other, in one launch ---- */

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
    cuda_link links[CUDA_MAX_LAYERS];
} cuda_chain;

bool ct_cuda_chain_fits(const cuda_conv *conv, size_t shared_limit);
/* Whether a chain can begin with this one, on a picture. */
bool ct_cuda_chain_begins(const cuda_conv *conv, size_t shared_limit);
ct_status ct_cuda_chain_forward(const cuda_run *run, int channels, const cuda_chain *chain,
                                bool train);
ct_status ct_cuda_chain_backward(const cuda_run *run, int channels, const cuda_chain *chain);

/* ---- chain_wgmma.cu, chain_back_wgmma.cu: the same on Hopper in bf16, weights packed as cores ----
 */
ct_status ct_cuda_chain_forward_groups(const cuda_run *run, int channels, const cuda_chain *chain,
                                       bool train);
ct_status ct_cuda_chain_backward_groups(const cuda_run *run, int channels, const cuda_chain *chain);

/* ---- wgrad_bf16.cu, chain_wgrad_wgmma.cu: weight gradients of a chain in bf16, as
 * ct_cuda_tile_wgrad's in tf32 ---- */
int ct_cuda_bf16_wgrad_splits(const cuda_conv *conv, int n_layers, int n_most);
ct_status ct_cuda_bf16_wgrad(const cuda_run *run, const cuda_conv *conv, const cuda_wgrad *layers,
                             int n_layers);

/* ---- strided.cu, strided_back.cu, strided_wgrad.cu: a residual block's first convolution, 3x3 and
 * two pixels apart, and its shortcut, 1x1, with EvoNorm, in bf16 ---- */

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
/* Weight gradients of both, which have the same x; floats of partial sums a job. */
size_t ct_cuda_strided_partial(int channels, int n_most);
ct_status ct_cuda_strided_wgrad(const cuda_run *run, int channels, const cuda_wgrad layers[2]);

#ifdef __cplusplus
}
#else

/* ---- chains.c, pairs.c: where they are in a plan ---- */

/* Every step gets its unit: chains, or itself. */
void ct_cuda_find_chains(cuda_plan *plan);
/* Before elements are chosen: units that could be bf16 are; after each round: those whose tensors
 * are not stored so are given up. Whether one was. */
void ct_cuda_units_begin(cuda_plan *plan);
bool ct_cuda_units_settle(cuda_plan *plan);
/* Steps s .. s + n - 1 run together; kernels NULL: by themselves. */
void ct_cuda_set_unit(cuda_plan *plan, int s, int n, const cuda_unit_kernels *kernels);

/* pairs.c */
void ct_cuda_pairs_begin(cuda_plan *plan);
bool ct_cuda_pairs_settle(cuda_plan *plan);
/* What backward passes and weight gradients of both kinds need of a step. */
cuda_link ct_cuda_back_link(const cuda_pass *pass, const cuda_step *step);
cuda_wgrad ct_cuda_wgrad_of(const cuda_pass *pass, const cuda_step *step);
#endif
#endif
