/* The cuda backend: all agents of a call in one launch per fused operation, whole iterations as
 * CUDA graphs, data sets as bytes on the device. fp32 sums everywhere; with tf32 (the default) the
 * factors of convolutions are rounded to tf32, as PyTorch's are; with bf16, tensors that only
 * kernels with a bf16 form touch are stored and multiplied in bf16, the others as with tf32.
 * Results repeat to the bit. The
 * environment variable CROSSTALK_CUDA_GRAPHS=off launches every operation by itself. */
#ifndef CT_BACKEND_CUDA_CUDA_H
#define CT_BACKEND_CUDA_CUDA_H

#include "backend/backend.h"

ct_status ct_backend_cuda_create(const ct_backend_options *options, ct_backend **out);

#endif
