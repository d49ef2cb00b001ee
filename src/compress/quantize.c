/* Quantization in b = 8, 4, 3 or 2 bits, in buckets of values with a scale of their own. Of a bucket d of
 * n values with L = 2^(b-1) - 1 levels on either side of 0:
 *   m   = max |d_i|,  rms = sqrt(<d, d> / n)
 *   t   = min(m / L, c_b rms)                  the width of a level; c_b: width_of()
 *   q_i = floor(d_i / t + 1/2), from -L to L   the nearest level: error feedback needs no chance
 *   s   = <d, q> / <q, q>                      fitted: Q(d) = s q is the point of its line nearest to d,
 *                                              and never farther from d than 0 is
 * and of class sums, which have no error feedback, as in QSGD (Alistarh et al., NeurIPS 2017, with the
 * largest magnitude as the norm):
 *   q_i = floor(d_i L / m + u_i)               u_i in [0, 1), 16 random bits
 *   s   = m / L                                E Q(d) = d
 *   Q(d)_i = s q_i
 * Packed: for every bucket s and its exact values, as floats; then q_i + L in b bits each, from the
 * lowest bits of a byte on.
 * Deviation: the programs of CHOCO-SGD and AdaGossip have QSGD for models, without bias or divided by
 * 1 + min(n / s^2, sqrt(n) / s): a norm for every tensor, s = 2^b - 1 levels and the sign beside the b
 * bits. */
#include <math.h>
#include <string.h>

#include "compress/bits.h"
#include "compress/compress.h"
#include "util/vectors.h"

#define TINY 1e-30f /* d L / m would overflow below */

static size_t n_buckets(const ct_compressor *c) {
    return (c->n + c->bucket - 1) / c->bucket;
}

static size_t header_bytes(const ct_compressor *c) {
    return n_buckets(c) * (1 + c->exact) * sizeof(float);
}

/* Values of bucket k that are coded. */
static size_t n_coded(const ct_compressor *c, size_t k) {
    size_t left = c->n - k * c->bucket;
    return (left < c->bucket ? left : c->bucket) - c->exact;
}

static int levels(const ct_compressor *c) {
    return (1 << (c->bits - 1)) - 1;
}

static void measure(ct_compressor *c) {
    size_t n_values = c->n - n_buckets(c) * c->exact;
    c->n_bytes = header_bytes(c) + (n_values * (size_t)c->bits + 31) / 32 * 4;
}

/* In parts of a bucket's rms. Narrow levels cut off the largest values, wide ones lose the small
 * ones. Of normal, Laplace, t_3 and sparse values these keep |Q(d)|^2 / |d|^2 of .64 to .81 (2 bits),
 * .85 to .94 (3) and .94 to .98 (4), within .04 of what is best for each. 8 bits have room for all. */
static float width_of(double bits) {
    return bits == 2 ? 1.4f : bits == 3 ? 0.9f : 1.0f;
}

/* QG-DSGDm-N on Fashion-MNIST (ring of 16): with gossip in every 4th iteration 2 bits and 0.9 let agents
 * drift apart; 2 bits and 0.5 do much less, 3 bits and 1 not at all. */
static double gamma_of(double bits, ct_gossip_ways ways) {
    if (bits == 2) return ways.are_carried && ways.are_rare ? 0.5 : 0.9;
    return 1;
}

static void fit(ct_compressor *c) {
    c->bits = (int)c->argument;
    c->width = width_of(c->argument);
    c->bucket = CT_BUCKET;
    c->fits = true;
    measure(c);
}

static ct_status check(double bits) {
    if (bits == 8 || bits == 4 || bits == 3 || bits == 2) return CT_OK;
    return ct_refuse("compress", "@compress quantize takes 8, 4, 3 or 2 bits, as in quantize:4");
}

/* The 16 random bits of CT_BUCKET values from row value `first` on, as parts of 1; in `room`. */
static const float *draw_parts(const ct_compress_key *key, size_t first,
                               float room[8 * CT_DRAW_BLOCKS]) {
    uint32_t words[4][CT_DRAW_BLOCKS]; /* of 8 values each */
    ct_compress_draw(key, (uint32_t)(first / 8), words);
    for (int b = 0; b < CT_DRAW_BLOCKS; b++) {
        for (int w = 0; w < 4; w++) {
            room[8 * b + 2 * w] = (float)(int)(words[w][b] & 0xffff) * 0x1p-16f;
            room[8 * b + 2 * w + 1] = (float)(int)(words[w][b] >> 16) * 0x1p-16f;
        }
    }
    return room + first % 8;
}

/* From 0 to 2 L + 1/2: what is behind the point is to fall off. A part of 1 is added to each. */
static inline void scale_values(const float *d, const float *parts, float inverse, float top,
                                float *v) {
    const float most = 2 * top + 0.5f;
    for (int i = 0; i < CT_BUCKET; i++) {
        float value = d[i] * inverse + top + parts[i];
        value = value > 0 ? value : 0; /* NaN becomes 0 */
        v[i] = value < most ? value : most;
    }
}

/* q_i + L */
static inline void round_values(const float *v, uint8_t *codes) {
    for (int i = 0; i < CT_BUCKET; i++) codes[i] = (uint8_t)(int)v[i];
}

/* <d, q> / <q, q> */
static inline float fitted(const float *d, const float *v, float top) {
    float lanes[CT_COMPRESS_LANES] = {0}, squares[CT_COMPRESS_LANES] = {0};
    for (int from = 0; from < CT_BUCKET; from += CT_COMPRESS_LANES)
        for (int j = 0; j < CT_COMPRESS_LANES; j++) {
            float q = (float)(int)v[from + j] - top;
            lanes[j] += d[from + j] * q;
            squares[j] += q * q; /* whole numbers below 2^24: in any order the same */
        }
    float square = ct_lanes_sum(squares);
    return square > 0 ? ct_lanes_sum(lanes) / square : 0;
}

static inline float largest(const float *d) {
    float lanes[CT_COMPRESS_LANES] = {0};
    for (int from = 0; from < CT_BUCKET; from += CT_COMPRESS_LANES)
        for (int j = 0; j < CT_COMPRESS_LANES; j++) {
            float size = fabsf(d[from + j]);
            lanes[j] = size > lanes[j] ? size : lanes[j];
        }
#pragma GCC unroll 5
    for (int width = CT_COMPRESS_LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            lanes[j] = lanes[j + width] > lanes[j] ? lanes[j + width] : lanes[j];
    return lanes[0];
}

/* 1/t of a bucket of n values. */
static inline float inverse_width(const ct_compressor *c, const float *d, size_t n) {
    float lanes[CT_COMPRESS_LANES] = {0}, most = largest(d), widest = most / (float)levels(c);
    for (int from = 0; from < CT_BUCKET; from += CT_COMPRESS_LANES)
        for (int j = 0; j < CT_COMPRESS_LANES; j++) lanes[j] += d[from + j] * d[from + j];
    float width = c->width * sqrtf(ct_lanes_sum(lanes) / (float)n);
    if (!(width < widest)) width = widest;
    return most > TINY && width > TINY ? 1 / width : 0;
}

/* Whether decode() takes a bucket with this scale. */
static bool is_sound(float scale, int top) {
    return isfinite(scale * (float)(top + 1));
}

/* Of models: to the nearest level. Zeros behind the n values change no sum. True: it has been added. */
CT_TWICE static bool encode_fitted(const ct_compressor *c, size_t k, const float *x, float *known,
                                   bool adds, uint8_t *header, uint8_t *out) {
    float d[CT_BUCKET], v[CT_BUCKET];
    uint8_t codes[CT_BUCKET];
    const float top = (float)levels(c);
    size_t first = k * CT_BUCKET, n = ct_take_differences(x, known, first, 0, n_coded(c, k), d);
    for (size_t i = 0; i < CT_BUCKET; i++) v[i] = 0.5f;
    scale_values(d, v, inverse_width(c, d, n), top, v);
    const float scale = fitted(d, v, top);
    round_values(v, codes);
    memset(codes + n, 0, CT_BUCKET - n);
    ct_put_codes(codes, n, c->bits, out + first / 8 * (size_t)c->bits);
    memcpy(header, &scale, sizeof scale);
    if (!adds || !is_sound(scale, levels(c))) return false;
    for (size_t i = 0; i < n; i++) known[first + i] += ((float)(int)v[i] - top) * scale;
    return true;
}

/* Of class sums: at random, in pieces of CT_BUCKET values; exact values stand behind the scale. */
CT_TWICE static void encode_unbiased(const ct_compressor *c, const ct_compress_key *key, size_t k,
                                     const float *x, const float *known, uint8_t *header,
                                     uint8_t *out) {
    float d[CT_BUCKET], v[CT_BUCKET], room[8 * CT_DRAW_BLOCKS], most = 0;
    uint8_t codes[CT_BUCKET];
    const int top = levels(c);
    size_t first = k * c->bucket, n = n_coded(c, k);
    for (size_t from = 0; from < n; from += CT_BUCKET) {
        ct_take_differences(x, known, first, from, n, d);
        float here = largest(d);
        most = here > most ? here : most;
    }
    float scale = most / (float)top, inverse = most > TINY ? (float)top / most : 0;
    for (size_t from = 0; from < n; from += CT_BUCKET) {
        size_t n_here = ct_take_differences(x, known, first, from, n, d);
        scale_values(d, draw_parts(key, first + from, room), inverse, (float)top, v);
        round_values(v, codes);
        ct_put_codes(codes, n_here, c->bits, out + k * (c->bucket - c->exact) + from);
    }
    memcpy(header, &scale, sizeof scale);
    memcpy(header + sizeof scale, x + first + n, c->exact * sizeof(float));
}

CT_TWICE static bool decode_bucket(const ct_compressor *c, size_t k, const uint8_t *packed,
                                   float *known) {
    const uint8_t *header = packed + k * (1 + c->exact) * sizeof(float);
    const int top = levels(c);
    size_t n = n_coded(c, k);
    uint8_t codes[CT_BUCKET];
    float scale, value;
    known += k * c->bucket;
    memcpy(&scale, header, sizeof scale);
    if (!is_sound(scale, top)) return false;
    for (size_t from = 0; from < n; from += CT_BUCKET) {
        size_t n_here = n - from < CT_BUCKET ? n - from : CT_BUCKET;
        size_t place = (k * (c->bucket - c->exact) + from) * (size_t)c->bits / 8;
        ct_get_codes(packed + header_bytes(c) + place, n_here, c->bits, codes);
        for (size_t i = 0; i < n_here; i++) known[from + i] += (float)(codes[i] - top) * scale;
    }
    for (size_t i = 0; i < c->exact; i++) {
        memcpy(&value, header + (1 + i) * sizeof value, sizeof value);
        if (!isfinite(value)) return false;
        known[n + i] += value;
    }
    return true;
}

static bool decode(const ct_compressor *c, const ct_compress_key *key, const uint8_t *packed,
                   float *known) {
    (void)key;
    for (size_t k = 0; k < n_buckets(c); k++)
        if (!decode_bucket(c, k, packed, known)) return false;
    return true;
}

static void encode(const ct_compressor *c, const ct_compress_key *key, const float *x, float *known,
                   uint32_t *scratch, uint8_t *packed) {
    uint8_t *out = packed + header_bytes(c);
    bool adds = known != NULL;
    (void)scratch;
    memset(out, 0, c->n_bytes - header_bytes(c));
    for (size_t k = 0; k < n_buckets(c); k++) {
        uint8_t *header = packed + k * (1 + c->exact) * sizeof(float);
        if (c->fits)
            adds = encode_fitted(c, k, x, known, adds, header, out);
        else
            encode_unbiased(c, key, k, x, known, header, out);
    }
    if (!c->fits && known != NULL) (void)decode(c, key, packed, known);
}

const ct_compressor_kind ct_compressor_quantize = {
    .name = "quantize",
    .argument = "8|4|3|2",
    .text = "quantize:8|4|3|2: every change in so many bits",
    .check = check,
    .gamma = gamma_of,
    .fit = fit,
    .encode = encode,
    .decode = decode,
};

void ct_compressor_sums(size_t n_groups, size_t width, ct_compressor *out) {
    *out = (ct_compressor){.kind = &ct_compressor_quantize,
                           .argument = 8,
                           .n = n_groups * width,
                           .bits = 8,
                           .bucket = width,
                           .exact = 1,
                           .is_whole = true};
    measure(out);
}
