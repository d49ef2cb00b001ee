/* Signs, one bit a value, in buckets d of n values with the mean magnitude as their scale (Karimireddy
 * et al., "Error feedback fixes SignSGD", ICML 2019):
 *   Q(d)_i = (sum |d_j| / n) sign(d_i)         sign(0) = 1
 * Packed: for every bucket its scale, as a float; then a bit a value, 1: negative.
 * Deviation: CHOCO-SGD's program has a scale for every tensor. */
#include <math.h>
#include <string.h>

#include "compress/compress.h"

static size_t n_buckets(const ct_compressor *c) {
    return (c->n + CT_BUCKET - 1) / CT_BUCKET;
}

static size_t n_values(const ct_compressor *c, size_t k) {
    size_t left = c->n - k * CT_BUCKET;
    return left < CT_BUCKET ? left : CT_BUCKET;
}

/* QG-DSGDm-N on Fashion-MNIST (ring of 16, rate 0.01): from 0.1 on agents drift apart; DSGDm-N trains with
 * 0.4, about what CHOCO-SGD's authors take (0.45). */
static double gamma_of(double argument, ct_gossip_ways ways) {
    (void)argument;
    return ways.are_carried ? 0.05 : 0.4;
}

static void fit(ct_compressor *c) {
    c->n_bytes = 4 * (n_buckets(c) + (c->n + 31) / 32);
}

static ct_status check(double argument) {
    if (isnan(argument)) return CT_OK;
    return ct_refuse("compress", "@compress sign takes no number");
}

/* The sum of magnitudes of a bucket, and a bit for each of its values. */
static float take_signs(const float *d, size_t n, uint8_t *bits) {
    float lanes[CT_COMPRESS_LANES] = {0};
    for (size_t from = 0; from < n; from += CT_COMPRESS_LANES) {
        size_t end = n - from < CT_COMPRESS_LANES ? n - from : CT_COMPRESS_LANES;
        for (size_t j = 0; j < end; j++) lanes[j] += fabsf(d[from + j]);
    }
    for (size_t i = 0; i < n; i++) bits[i / 8] = (uint8_t)(bits[i / 8] | (d[i] < 0) << i % 8);
    return ct_lanes_sum(lanes);
}

static void encode(const ct_compressor *c, const ct_compress_key *key, const float *x,
                   const float *known, uint32_t *scratch, uint8_t *packed) {
    uint8_t *bits = packed + 4 * n_buckets(c);
    float d[CT_BUCKET];
    (void)key, (void)scratch;
    memset(bits, 0, c->n_bytes - 4 * n_buckets(c));
    for (size_t k = 0; k < n_buckets(c); k++) {
        size_t n = ct_take_differences(x, known, k * CT_BUCKET, 0, n_values(c, k), d);
        float scale = take_signs(d, n, bits + k * CT_BUCKET / 8) / (float)n;
        memcpy(packed + 4 * k, &scale, sizeof scale);
    }
}

static bool decode(const ct_compressor *c, const ct_compress_key *key, const uint8_t *packed,
                   float *known) {
    const uint8_t *bits = packed + 4 * n_buckets(c);
    (void)key;
    for (size_t k = 0; k < n_buckets(c); k++) {
        float scale;
        memcpy(&scale, packed + 4 * k, sizeof scale);
        if (!isfinite(scale)) return false;
        const float either[] = {scale, -scale};
        for (size_t i = k * CT_BUCKET; i < k * CT_BUCKET + n_values(c, k); i++)
            known[i] += either[bits[i / 8] >> i % 8 & 1];
    }
    return true;
}

const ct_compressor_kind ct_compressor_sign = {
    .name = "sign",
    .argument = "",
    .text = "sign: one bit a parameter, whether it has grown or shrunk",
    .check = check,
    .gamma = gamma_of,
    .fit = fit,
    .encode = encode,
    .decode = decode,
};
