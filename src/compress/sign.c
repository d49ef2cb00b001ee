/* Signs, one bit a value, in buckets d of n values with the mean magnitude as their scale (Karimireddy
 * et al., "Error feedback fixes SignSGD", ICML 2019):
 *   Q(d)_i = (sum |d_j| / n) sign(d_i)         sign(0) = 1
 * Packed: for every bucket its scale, as a float; then a bit a value, 1: negative.
 * Deviation: CHOCO-SGD's program has a scale for every tensor. */
#include <math.h>
#include <string.h>

#include "compress/bits.h"
#include "compress/compress.h"
#include "util/vectors.h"

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

/* Sum of magnitudes. */
static inline float magnitude(const float *d) {
    float lanes[CT_COMPRESS_LANES] = {0};
    for (int from = 0; from < CT_BUCKET; from += CT_COMPRESS_LANES)
        for (int j = 0; j < CT_COMPRESS_LANES; j++) lanes[j] += fabsf(d[from + j]);
    return ct_lanes_sum(lanes);
}

/* True: it has been added. */
CT_TWICE static bool encode_bucket(const ct_compressor *c, size_t k, const float *x, float *known,
                                   bool adds, uint8_t *packed) {
    float d[CT_BUCKET];
    uint8_t codes[CT_BUCKET];
    size_t first = k * CT_BUCKET, n = ct_take_differences(x, known, first, 0, n_values(c, k), d);
    const float scale = magnitude(d) / (float)n;
    for (int i = 0; i < CT_BUCKET; i++) codes[i] = d[i] < 0;
    ct_put_codes(codes, n, 1, packed + 4 * n_buckets(c) + k * CT_BUCKET_WORDS);
    memcpy(packed + 4 * k, &scale, sizeof scale);
    if (!adds || !isfinite(scale)) return false;
    for (size_t i = 0; i < n; i++) known[first + i] += d[i] < 0 ? -scale : scale;
    return true;
}

static void encode(const ct_compressor *c, const ct_compress_key *key, const float *x, float *known,
                   uint32_t *scratch, uint8_t *packed) {
    bool adds = known != NULL;
    (void)key, (void)scratch;
    memset(packed + 4 * n_buckets(c), 0, c->n_bytes - 4 * n_buckets(c));
    for (size_t k = 0; k < n_buckets(c); k++) adds = encode_bucket(c, k, x, known, adds, packed);
}

CT_TWICE static bool decode_bucket(const ct_compressor *c, size_t k, const uint8_t *packed,
                                   float *known) {
    size_t n = n_values(c, k);
    uint8_t codes[CT_BUCKET];
    float scale;
    memcpy(&scale, packed + 4 * k, sizeof scale);
    if (!isfinite(scale)) return false;
    ct_get_codes(packed + 4 * n_buckets(c) + k * CT_BUCKET_WORDS, n, 1, codes);
    known += k * CT_BUCKET;
    for (size_t i = 0; i < n; i++) known[i] += (float)(1 - 2 * codes[i]) * scale;
    return true;
}

static bool decode(const ct_compressor *c, const ct_compress_key *key, const uint8_t *packed,
                   float *known) {
    (void)key;
    for (size_t k = 0; k < n_buckets(c); k++)
        if (!decode_bucket(c, k, packed, known)) return false;
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
