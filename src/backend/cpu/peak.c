/* The multiply-add peak of all threads together, measured. */
#include <time.h>

#include "backend/cpu/cpu_internal.h"

#define N_ROUNDS 200000
#define N_TRIES  15

static void burst(void *context, int task, int worker) {
    (void)task, (void)worker;
    const cpu_backend *backend = context;
    volatile float sink;
    float out;
    backend->kernels->multiply_adds(N_ROUNDS, &out);
    sink = out; /* keeps the sums from being optimised away */
    (void)sink;
}

double ct_cpu_peak_gflops(ct_backend *base) {
    cpu_backend *backend = (cpu_backend *)base;
    float out;
    double flops = backend->kernels->multiply_adds(1, &out) * N_ROUNDS * base->n_threads, best = 0;
    for (int k = 0; k < N_TRIES; k++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        ct_pool_run(backend->pool, base->n_threads, burst, backend);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double ns = 1e9 * (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec);
        if (flops / ns > best) best = flops / ns;
    }
    return best;
}
