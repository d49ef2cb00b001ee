/* Kernels made for LeNet-5 on pictures of 28 x 28: both convolutions 5x5 with ReLU and maxima, and
 * both hidden linear layers, are one unit (cuda_unit_kernels): one launch forward and one backward
 * (lenet.cu, lenet_back.cu), which has the convolutions' weight gradients too. Products of the
 * forward convolutions run on the tensor cores in tf32, all others in fp32. The rest of the backend
 * calls ct_cuda_find_lenet alone. */
#ifndef CT_BACKEND_CUDA_LENET5_H
#define CT_BACKEND_CUDA_LENET5_H

#ifdef __cplusplus
#include "backend/cuda/kernels.h"
extern "C" {
#else
#include "backend/cuda/cuda_internal.h"
#endif

#define CUDA_LENET_BYTES (162 * 1024) /* of shared memory that a block may take */

enum { CUDA_LENET_CONV_1, CUDA_LENET_CONV_2, CUDA_LENET_FC_1, CUDA_LENET_FC_2, CUDA_LENET_LAYERS };

/* Tensors are floats [sample][...], maps last. */
typedef struct cuda_lenet {
    size_t weight[CUDA_LENET_LAYERS], bias[CUDA_LENET_LAYERS]; /* offsets of parameters */
    size_t packed[CUDA_LENET_LAYERS]; /* linear layers forward: [input][output] */
    const float *x;                   /* [28][28] */
    /* What training keeps: maxima [14][14][6] and [5][5][16], which of its window's four pixels each
       one is, or 4 where that is not above zero; values behind the first linear layer */
    float *maxima[2];
    uint8_t *places[2];
    float *hidden;
    float *features;
    const float *dfeatures; /* backward: where the ReLU was open */
    float *dhidden;         /* likewise, to be written */
} cuda_lenet;

ct_status ct_cuda_lenet_forward(const cuda_run *run, const cuda_lenet *lenet, bool train);
/* Data gradients, and the gradients of the convolutions' parameters. */
ct_status ct_cuda_lenet_backward(const cuda_run *run, const cuda_lenet *lenet);
/* Floats of run->partial_dev a job. */
size_t ct_cuda_lenet_partial(int n_most);

#ifdef __cplusplus
}
#else
/* A plan that begins with such layers has them as one unit. */
void ct_cuda_find_lenet(cuda_plan *plan);
#endif
#endif
