#include "util/rng.h"

#include <math.h>

static void philox_round(uint32_t x[4], const uint32_t key[2]) {
    uint64_t p0 = (uint64_t)0xD2511F53u * x[0];
    uint64_t p1 = (uint64_t)0xCD9E8D57u * x[2];
    uint32_t y0 = (uint32_t)(p1 >> 32) ^ x[1] ^ key[0];
    uint32_t y2 = (uint32_t)(p0 >> 32) ^ x[3] ^ key[1];
    x[0] = y0;
    x[1] = (uint32_t)p1;
    x[2] = y2;
    x[3] = (uint32_t)p0;
}

void ct_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t k[2] = {key[0], key[1]};
    for (int i = 0; i < 4; i++) out[i] = counter[i];
    for (int round = 0; round < 10; round++) {
        philox_round(out, k);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
}

void ct_rng_init(ct_rng *rng, uint64_t seed, ct_rng_use use, uint32_t agent, uint32_t epoch,
                 uint32_t index) {
    rng->key[0] = (uint32_t)seed;
    /* Uses differ in the high bits, where small seeds leave the key empty. */
    rng->key[1] = (uint32_t)(seed >> 32) ^ ((uint32_t)use * 0x9E3779B1u);
    rng->counter[0] = 0;
    rng->counter[1] = index;
    rng->counter[2] = epoch;
    rng->counter[3] = agent;
    rng->n_left = 0;
}

uint32_t ct_rng_u32(ct_rng *rng) {
    if (rng->n_left == 0) {
        ct_philox(rng->counter, rng->key, rng->block);
        rng->counter[0]++;
        rng->n_left = 4;
    }
    return rng->block[4 - rng->n_left--];
}

double ct_rng_uniform(ct_rng *rng) {
    uint64_t high = ct_rng_u32(rng) >> 5; /* 27 bits */
    uint64_t low = ct_rng_u32(rng) >> 6;  /* 26 bits */
    return (double)(high << 26 | low) * 0x1p-53;
}

uint32_t ct_rng_below(ct_rng *rng, uint32_t n) {
    /* Lemire's method: the fraction x/2^32 times n, redrawn where n does not divide evenly. */
    uint64_t product = (uint64_t)ct_rng_u32(rng) * n;
    uint32_t threshold = (uint32_t)-n % n;
    while ((uint32_t)product < threshold) product = (uint64_t)ct_rng_u32(rng) * n;
    return (uint32_t)(product >> 32);
}

double ct_rng_normal(ct_rng *rng) {
    double u = 1.0 - ct_rng_uniform(rng); /* (0, 1]: the logarithm stays finite */
    double v = ct_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* Marsaglia and Tsang (2000) for shape >= 1. */
static double gamma_at_least_one(ct_rng *rng, double shape) {
    double d = shape - 1.0 / 3.0;
    double c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = ct_rng_normal(rng);
        double t = 1.0 + c * x;
        if (t <= 0.0) continue;
        double v = t * t * t;
        double u = 1.0 - ct_rng_uniform(rng);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
}

double ct_rng_log_gamma(ct_rng *rng, double shape) {
    if (shape >= 1.0) return log(gamma_at_least_one(rng, shape));
    /* Gamma(a) = Gamma(a + 1) * U^(1/a); in logarithms, as a = 0.01 underflows otherwise. */
    double g = gamma_at_least_one(rng, shape + 1.0);
    double u = 1.0 - ct_rng_uniform(rng);
    return log(g) + log(u) / shape;
}

void ct_rng_shuffle(ct_rng *rng, uint32_t *items, size_t n) {
    for (size_t i = n; i > 1; i--) {
        size_t j = ct_rng_below(rng, (uint32_t)i);
        uint32_t item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}
