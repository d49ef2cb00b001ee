/* What the tests of the cuda backend share: whether a GPU works, devices, tolerances. */
#ifndef CT_TEST_CUDA_TEST_H
#define CT_TEST_CUDA_TEST_H

#include "plans.h"
#include "util/log.h"

/* Single precision, sums of at most some thousand terms. */
#define FP32_ERROR 1e-4
/* Factors with 11 bits; EvoNorm's clamps and chains of 20 layers add up. */
#define TF32_ERROR 2e-2
/* Factors and what is kept between layers with 8 bits. */
#define BF16_ERROR 5e-2
/* Tensors of a gradient that cancel are compared against the whole row: this much of its norm. */
#define FLOOR 1e-3

static inline bool has_gpu(void) {
    static int known = -1;
    if (known < 0) {
        ct_backend *backend = NULL;
        ct_backend_options options = {.n_threads = 1};
        known = ct_backend_create("cuda", &options, &backend) == CT_OK;
        if (!known) printf("    %s\n", ct_message());
        ct_clear_message();
        ct_backend_free(&backend);
    }
    return known;
}

#define NEED_GPU()                                                                                 \
    if (!has_gpu()) SKIP("no GPU works here")

typedef struct device {
    const char *name;
    ct_precision precision;
} device;

static const device REF = {"ref", CT_PRECISION_FP32}, CPU = {"cpu", CT_PRECISION_FP32};
static const device CUDA32 = {"cuda", CT_PRECISION_FP32}, CUDA = {"cuda", CT_PRECISION_TF32};
static const device CUDA16 = {"cuda", CT_PRECISION_BF16};

#endif
