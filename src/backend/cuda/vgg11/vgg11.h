/* Kernels made for VGG-11 at 32 x 32 pixels, in bf16: eight levels of convolution 3x3 with bias,
 * EvoNorm and, behind some, maxima of 2 x 2 pixels, from the picture to 128 features. All of them
 * are one unit (cuda_unit_kernels), a stack: one launch forward and one backward (stack.cu,
 * stack_back.cu), then the weight gradients. The rest of the backend calls ct_cuda_stacks_begin
 * alone. */
#ifndef CT_BACKEND_CUDA_VGG11_H
#define CT_BACKEND_CUDA_VGG11_H

#ifdef __cplusplus
#include "backend/cuda/kernels.h"
extern "C" {
#else
#include "backend/cuda/cuda_internal.h"
#endif

#define CUDA_LEVELS      8
#define CUDA_STACK_BYTES (120 * 1024) /* of shared memory that a block may take */

typedef struct cuda_level {
    size_t weight, bias;           /* of the convolution; backward: of the norm */
    size_t packed;                 /* weights: forward, or for the data gradient */
    size_t norm_weight, norm_bias; /* parameters' offsets, as the two above */
    void *pre;                     /* the convolution's value in bf16; NULL: nothing is kept */
    float *stats;                  /* mean and 1/sigma, likewise */
    void *y;                       /* what the next level reads, likewise; the last one's: floats */
    void *d;                       /* backward: gradient of pre */
    float *norm_sums, *bias_sums;  /* backward: per-sample sums of parameters' gradients */
} cuda_level;

typedef struct cuda_stack {
    int n_colours;
    const float *x;         /* pictures */
    const float *dfeatures; /* backward */
    cuda_level levels[CUDA_LEVELS];
} cuda_stack;

ct_status ct_cuda_stack_forward(const cuda_run *run, const cuda_stack *stack, bool train);
ct_status ct_cuda_stack_backward(const cuda_run *run, const cuda_stack *stack);

#ifdef __cplusplus
}
#else
/* Before elements are chosen: a plan that begins with such levels has a stack. */
void ct_cuda_stacks_begin(cuda_plan *plan);
#endif
#endif
