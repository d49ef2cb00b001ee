/* Multiply-adds with no memory traffic: what the processor can do at most. 24 independent chains
 * cover the latency of the multiply-add on two ports and on four. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

#define N_CHAINS (REGISTERS == 32 ? 24 : 12)

double KERNEL(multiply_adds)(long n_rounds, float *out) {
    vf chain[N_CHAINS];
    const vf a = vset(0.999f), b = vset(0.001f);
    for (int i = 0; i < N_CHAINS; i++) chain[i] = vset((float)i);
    for (long k = 0; k < n_rounds; k++)
#pragma GCC unroll 24
        for (int i = 0; i < N_CHAINS; i++) chain[i] = chain[i] * a + b;
    vf sum = vzero();
    for (int i = 0; i < N_CHAINS; i++) sum += chain[i];
    *out = vsum(sum);
    return 2.0 * VL * N_CHAINS * (double)n_rounds;
}
