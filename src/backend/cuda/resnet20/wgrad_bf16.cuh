/* Weight gradients of a chain in bf16: what wgrad_bf16.cu and chain_wgrad_wgmma.cu are called with.
 */
#ifndef CT_BACKEND_CUDA_RESNET20_WGRAD_BF16_CUH
#define CT_BACKEND_CUDA_RESNET20_WGRAD_BF16_CUH

#include "backend/cuda/resnet20/planes.cuh"
#include "backend/cuda/resnet20/resnet20.h"

typedef struct wgrad_call {
    const cuda_job *jobs;
    int n_max, n_splits, n_colours;
    cuda_wgrad layers[CUDA_MAX_LAYERS];
    float *partial; /* [layer][job][split][tap][i][o] */
} wgrad_call;

/* 64 channels to 64 on Hopper. */
ct_status ct_cuda_wgrad_groups(const cuda_run *run, const wgrad_call *c, int n_layers);

#endif
