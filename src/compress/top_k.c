/* Top-k: the k values of d that are largest by magnitude, the first of equal ones.
 * Packed: the k values in the order of their places i_0 < i_1 < ..., and the places in Elias and Fano's
 * code, at most k (2 + log2(n / k)) bits: the l = floor(log2(n / k)) low bits of every place one after
 * the other, then a row of bits in which bit (i_j >> l) + j is set for every j. Each of the three
 * begins at a multiple of 4 bytes.
 * Values are floats, or (top-k8) what quantize:8 makes of a row of k values: 256 of them share a scale.
 * What is rounded off stays in x - known, as everything else that is left out.
 * Deviation: the programs of CHOCO-SGD and AdaGossip take the k largest of every tensor, one at least;
 * this takes those of the whole model. */
#include <math.h>
#include <string.h>

#include "compress/compress.h"

#define RADIX      2048 /* keys are looked at in parts of 11, 11 and 10 bits */
#define FLOAT_BITS 32

static size_t words_of(size_t n_bits) {
    return (n_bits + 31) / 32;
}

static size_t n_high(const ct_compressor *c) {
    return words_of(c->k + (c->n >> c->low_bits) + 1);
}

static size_t n_low(const ct_compressor *c) {
    return words_of(c->k * (size_t)c->low_bits);
}

/* What is not sent waits about 1 / F rounds: the fewer travel, the slower agents must pull (QG-DSGDm-N on
 * CIFAR-10, ring of 16: 0.01 diverged with 3 F, and trained with F). */
static double gamma_of(double part, ct_gossip_ways ways) {
    (void)ways;
    double some = 3 * part, few = 100 * part * part;
    return some < 1 ? (few < some ? few : some) : 1;
}

/* How the k values are packed, as a row by themselves; not for floats. */
static ct_compressor values_of(const ct_compressor *c) {
    ct_compressor values = {.kind = &ct_compressor_quantize, .argument = c->bits, .n = c->k};
    values.kind->fit(&values);
    return values;
}

static size_t value_bytes(const ct_compressor *c) {
    return c->bits == FLOAT_BITS ? c->k * sizeof(float) : values_of(c).n_bytes;
}

static void fit_bits(ct_compressor *c, int bits) {
    c->bits = bits;
    c->k = ct_count_part(c->argument, c->n);
    while (c->n / c->k >> (c->low_bits + 1) > 0) c->low_bits++;
    if (bits != FLOAT_BITS) c->width = values_of(c).width;
    c->n_bytes = value_bytes(c) + (n_low(c) + n_high(c)) * sizeof(uint32_t);
    c->n_scratch = c->n;
}

static void fit(ct_compressor *c) {
    fit_bits(c, FLOAT_BITS);
}

static void fit_8(ct_compressor *c) {
    fit_bits(c, 8);
}

/* Magnitudes of floats are in the order of their bits without the sign. */
static uint32_t key_of(float d) {
    uint32_t key;
    memcpy(&key, &d, sizeof key);
    return key & 0x7fffffffu;
}

static void make_keys(size_t n, const float *x, const float *known, uint32_t *keys) {
    for (size_t i = 0; i < n; i++) keys[i] = key_of(ct_difference(x, known, i));
}

/* The part (`bits` bits from `shift` on) of the k-th largest key; *k: its number among the keys with
 * this part. Every other key has a histogram of its own: equal neighbours do not wait for each other. */
static uint32_t find_part(const uint32_t *keys, size_t n, int shift, int bits, size_t *k) {
    uint32_t counts[2][RADIX] = {{0}}, mask = (1u << bits) - 1, part = mask;
    for (size_t i = 0; i < n; i++) counts[i % 2][keys[i] >> shift & mask]++;
    while (counts[0][part] + counts[1][part] < *k) {
        *k -= counts[0][part] + counts[1][part];
        part--;
    }
    return part;
}

/* Leaves the keys whose upper bits are `prefix`; how many. */
static size_t keep(uint32_t *keys, size_t n, int shift, uint32_t prefix) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t key = keys[i];
        keys[n_kept] = key;
        n_kept += key >> shift == prefix;
    }
    return n_kept;
}

/* The k-th largest key, of which few are left; *n_equal: how many of the keys equal to it are among
 * the k largest. */
static uint32_t find_least(uint32_t *keys, size_t n, size_t k, size_t *n_equal) {
    uint32_t key = find_part(keys, n, 21, 11, &k);
    n = keep(keys, n, 21, key);
    key = key << 11 | find_part(keys, n, 10, 11, &k);
    n = keep(keys, n, 10, key);
    key = key << 10 | find_part(keys, n, 0, 10, &k);
    *n_equal = k;
    return key;
}

static void or_word(uint8_t *words, size_t at, uint32_t bits) {
    uint32_t word;
    memcpy(&word, words + 4 * at, 4);
    word |= bits;
    memcpy(words + 4 * at, &word, 4);
}

static uint32_t word_at(const uint8_t *words, size_t at) {
    uint32_t word;
    memcpy(&word, words + 4 * at, 4);
    return word;
}

static void put_low(uint8_t *low, size_t j, int n_bits, uint32_t value) {
    size_t bit = j * (size_t)n_bits;
    uint64_t bits = (uint64_t)value << bit % 32;
    if (n_bits == 0) return;
    or_word(low, bit / 32, (uint32_t)bits);
    if (bits >> 32 != 0) or_word(low, bit / 32 + 1, (uint32_t)(bits >> 32));
}

static size_t get_low(const uint8_t *low, size_t j, int n_bits) {
    size_t bit = j * (size_t)n_bits;
    if (n_bits == 0) return 0;
    uint64_t bits = word_at(low, bit / 32);
    if (bit % 32 + (size_t)n_bits > 32) bits |= (uint64_t)word_at(low, bit / 32 + 1) << 32;
    return (size_t)(bits >> bit % 32 & (((uint64_t)1 << n_bits) - 1));
}

/* The places, and the values to values[k]: over the keys (scratch), which are read no more. */
static void choose(const ct_compressor *c, const float *x, const float *known, uint32_t *keys,
                   uint8_t *values, uint8_t *low) {
    uint8_t *high = low + 4 * n_low(c);
    size_t n_equal = 0, j = 0;
    make_keys(c->n, x, known, keys);
    uint32_t least = find_least(keys, c->n, c->k, &n_equal);
    memset(low, 0, 4 * (n_low(c) + n_high(c)));
    for (size_t i = 0; i < c->n && j < c->k; i++) {
        float d = ct_difference(x, known, i);
        uint32_t own = key_of(d);
        if (own < least || (own == least && n_equal == 0)) continue;
        n_equal -= own == least;
        size_t bit = (i >> c->low_bits) + j;
        memcpy(values + 4 * j, &d, sizeof d);
        put_low(low, j, c->low_bits, (uint32_t)(i & (((size_t)1 << c->low_bits) - 1)));
        or_word(high, bit / 32, 1u << bit % 32);
        j++;
    }
}

static void encode(const ct_compressor *c, const ct_compress_key *key, const float *x,
                   const float *known, uint32_t *keys, uint8_t *packed) {
    (void)key;
    choose(c, x, known, keys, packed, packed + value_bytes(c));
}

static void encode_8(const ct_compressor *c, const ct_compress_key *key, const float *x,
                     const float *known, uint32_t *keys, uint8_t *packed) {
    const ct_compressor values = values_of(c);
    choose(c, x, known, keys, (uint8_t *)keys, packed + values.n_bytes);
    values.kind->encode(&values, key, (const float *)keys, NULL, NULL, packed);
}

/* What the j-th packed value says. */
static float value_at(const ct_compressor *c, const uint8_t *packed, size_t j) {
    float value;
    if (c->bits == FLOAT_BITS) {
        memcpy(&value, packed + 4 * j, sizeof value);
        return value;
    }
    memcpy(&value, packed + 4 * (j / CT_BUCKET), sizeof value); /* the scale */
    const uint8_t *codes = packed + 4 * ((c->k + CT_BUCKET - 1) / CT_BUCKET);
    return (float)(codes[j] - 127) * value;
}

static bool decode(const ct_compressor *c, const ct_compress_key *key, const uint8_t *packed,
                   float *known) {
    const uint8_t *low = packed + value_bytes(c), *high = low + 4 * n_low(c);
    size_t j = 0, end = 0; /* places from `end` on may come */
    (void)key;
    for (size_t w = 0; w < n_high(c); w++) {
        for (uint32_t left = word_at(high, w); left != 0; left &= left - 1) {
            size_t bit = 32 * w + (size_t)__builtin_ctz(left);
            if (j == c->k) return false;
            size_t i = (bit - j) << c->low_bits | get_low(low, j, c->low_bits);
            float value = value_at(c, packed, j);
            if (i < end || i >= c->n || !isfinite(value)) return false;
            known[i] += value;
            end = i + 1;
            j++;
        }
    }
    return j == c->k;
}

const ct_compressor_kind ct_compressor_top_k = {
    .name = "top-k",
    .argument = "F",
    .text = "top-k:F: the part F of the parameters that has changed most",
    .check = ct_check_part,
    .gamma = gamma_of,
    .fit = fit,
    .encode = encode,
    .decode = decode,
};

const ct_compressor_kind ct_compressor_top_k8 = {
    .name = "top-k8",
    .argument = "F",
    .text = "top-k8:F: the same with values in 8 bits; 2.4 times fewer bytes at F = 0.01",
    .check = ct_check_part,
    .gamma = gamma_of,
    .fit = fit_8,
    .encode = encode_8,
    .decode = decode,
};
