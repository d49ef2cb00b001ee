/* What a build without CUDA answers. */
#include "backend/cuda/cuda.h"

ct_status ct_backend_cuda_create(const ct_backend_options *options, ct_backend **out) {
    (void)options, (void)out;
    return ct_fail(CT_NOTBUILT, "this build has no CUDA: install nvcc (CUDA 12 or newer) and build "
                                "again with -DCT_WITH_CUDA=ON");
}
