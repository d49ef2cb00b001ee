/* Kernels made for MobileNet-V2 at 32 x 32 pixels, in bf16: a block (1x1 convolution to many
 * channels, 3x3 of each of them, 1x1 back to few, an EvoNorm behind each, the input or a shortcut added) runs
 * forward in one launch, in which the many channels stay on the chip (block.cu). Backward the
 * projection's data gradient, the norm before it, the 3x3 convolution and the first norm are one
 * launch (middle.cu). The rest of the backend calls what is declared last. */
#ifndef CT_BACKEND_CUDA_MOBILENETV2_H
#define CT_BACKEND_CUDA_MOBILENETV2_H

#ifdef __cplusplus
#include "backend/cuda/kernels.h"
extern "C" {
#else
#include "backend/cuda/cuda_internal.h"
#endif

/* Pixels across, of the 3x3 convolution; channels of the input, between, of the output. */
typedef struct cuda_block_shape {
    int size, stride;
    int ci, wide, co;
} cuda_block_shape;

typedef struct cuda_block_norm {
    size_t weight, bias; /* offsets of parameters */
    void *pre;           /* its input in bf16, and mean and 1/sigma: written in training, or NULL */
    float *stats;
    float *scale; /* likewise, what a gate needs; of the last ones NULL */
} cuda_block_norm;

typedef struct cuda_block {
    cuda_block_shape shape;
    /* 1x1 weights as rows (cuda_fragments), offsets in a packed row */
    size_t expand, project, shortcut;
    size_t depthwise;         /* offset of the parameter */
    cuda_block_norm norms[4]; /* the shortcut's last */
    const void *x;            /* in bf16 */
    void *y;
    bool adds;         /* y = block(x) + x */
    bool has_shortcut; /* y = block(x) + norm(shortcut x): stride 1, other channels than x */
} cuda_block;

/* Channels between that are computed together, and their room in a row of the projection's
 * weights; 0: there is no kernel for this shape. */
typedef struct cuda_block_part {
    int channels, room;
    bool trains; /* also in training */
} cuda_block_part;
cuda_block_part ct_cuda_block_part(const cuda_block_shape *shape, size_t shared_limit);
ct_status ct_cuda_block_forward(const cuda_run *run, const cuda_block *block);

/* ---- middle.cu: the projection's data gradient, both norms and the 3x3 convolution between them,
 * backward ---- */
typedef struct cuda_middle {
    cuda_block_shape shape; /* ci does not matter */
    size_t depthwise, project;
    cuda_block_norm norms[2]; /* the first one's bias too */
    float *sums[2];           /* per-sample sums of their parameters' gradients */
    const void *dy;           /* of the projection's output, in bf16 */
    void *dx;                 /* of the first one's input */
} cuda_middle;
bool ct_cuda_middle_fits(const cuda_block_shape *shape, size_t shared_limit);
/* Floats of run->partial_dev that a job needs. */
size_t ct_cuda_middle_partial(const cuda_block_shape *shape, int n_max);
ct_status ct_cuda_middle_backward(const cuda_run *run, const cuda_middle *middle,
                                  const cuda_conv *depthwise, size_t weight);

#ifdef __cplusplus
}
#else
/* Once elements are chosen: which steps are a block's. */
void ct_cuda_find_blocks(cuda_plan *plan);
ct_status ct_cuda_run_block(const cuda_pass *pass, const cuda_step *steps);
/* Backward, the steps up to the one that has n_behind. */
ct_status ct_cuda_run_middle(const cuda_pass *pass, const cuda_step *last);
size_t ct_cuda_step_partial(const cuda_step *last, int n_max, int n_most);
#endif
#endif
