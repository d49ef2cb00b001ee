/* What tests of the cuda backend share: devices, tolerances. */
#ifndef CT_TEST_CUDA_TEST_H
#define CT_TEST_CUDA_TEST_H

#include "gpu.h"
#include "plans.h"

/* Single precision, sums of at most some thousand terms. */
#define FP32_ERROR 1e-4
/* Factors with 11 bits; EvoNorm's clamps and chains of 20 layers add up. */
#define TF32_ERROR 2e-2
/* Factors and what is kept between layers with 8 bits. */
#define BF16_ERROR 5e-2
/* Tensors of a gradient that cancel are compared against the whole row: this much of its norm. */
#define FLOOR 1e-3

typedef struct device {
    const char *name;
    ct_precision precision;
} device;

static const device REF = {"ref", CT_PRECISION_FP32}, CPU = {"cpu", CT_PRECISION_FP32};
static const device CUDA32 = {"cuda", CT_PRECISION_FP32}, CUDA = {"cuda", CT_PRECISION_TF32};
static const device CUDA16 = {"cuda", CT_PRECISION_BF16};

#endif
