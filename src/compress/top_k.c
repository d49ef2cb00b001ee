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

#include "compress/bits.h"
#include "compress/compress.h"
#include "util/vectors.h"

#define RADIX      2048 /* keys are looked at in parts of 11, 11 and 9 bits */
#define KEY_BITS   0x7fffffffu
#define N_SAMPLES  1024
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
    c->n_scratch = 3 * c->n;
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
    return key & KEY_BITS;
}

/* Two histograms of keys' parts: equal neighbours do not wait for each other. */
typedef uint32_t histograms[2][RADIX];

static inline size_t count(histograms counts, uint32_t first, uint32_t n) {
    uint32_t sum = 0;
    for (uint32_t part = first; part < first + n; part++) sum += counts[0][part] + counts[1][part];
    return sum;
}

/* The part (`bits` bits from `shift` on) of the k-th largest key; *k: its number among the keys with
 * this part. */
static uint32_t find_part(const uint32_t *keys, size_t n, int shift, int bits, size_t *k) {
    histograms counts = {{0}};
    uint32_t mask = (1u << bits) - 1, end = mask + 1;
    for (size_t i = 0; i < n; i++) counts[i % 2][keys[i] >> shift & mask]++;
    for (size_t more; (more = count(counts, end - 16, 16)) < *k; end -= 16) *k -= more;
    for (size_t more; (more = count(counts, end - 1, 1)) < *k; end--) *k -= more;
    return end - 1;
}

/* The keys whose upper bits are `prefix`; how many. `kept` may be the keys. */
static size_t keep(const uint32_t *keys, size_t n, int shift, uint32_t prefix, uint32_t *kept) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t key = keys[i] & KEY_BITS;
        kept[n_kept] = key;
        n_kept += key >> shift == prefix;
    }
    return n_kept;
}

/* The k-th largest key of n floats; *n_equal: how many of the keys equal to it are among the k
 * largest. */
static uint32_t find_least(const uint32_t *floats, size_t n, size_t k, uint32_t *room,
                           size_t *n_equal) {
    uint32_t key = find_part(floats, n, 20, 11, &k);
    n = keep(floats, n, 20, key, room);
    key = key << 11 | find_part(room, n, 9, 11, &k);
    n = keep(room, n, 9, key, room);
    key = key << 9 | find_part(room, n, 0, 9, &k);
    *n_equal = k;
    return key;
}

static uint32_t word_at(const uint8_t *words, size_t at) {
    uint32_t word;
    memcpy(&word, words + 4 * at, 4);
    return word;
}

static size_t get_low(const uint8_t *low, size_t j, int n_bits) {
    size_t bit = j * (size_t)n_bits;
    if (n_bits == 0) return 0;
    uint64_t bits = word_at(low, bit / 32);
    if (bit % 32 + (size_t)n_bits > 32) bits |= (uint64_t)word_at(low, bit / 32 + 1) << 32;
    return (size_t)(bits >> bit % 32 & (((uint64_t)1 << n_bits) - 1));
}

/* A bound that somewhat more than the k largest keys reach, judged by every n / N_SAMPLES-th of them;
 * 0: too few values to say so. */
static uint32_t guess_bound(const ct_compressor *c, const float *x, const float *known) {
    uint32_t keys[N_SAMPLES];
    const size_t step = c->n / N_SAMPLES;
    const double expected = (double)c->k / (double)c->n * N_SAMPLES;
    size_t k = (size_t)(expected + 2 * sqrt(expected)) + 1;
    if (step < 4 || k > N_SAMPLES / 2) return 0;
    for (size_t s = 0; s < N_SAMPLES; s++) keys[s] = key_of(ct_difference(x, known, s * step));
    return find_part(keys, N_SAMPLES, 20, 11, &k) << 20;
}

/* Values from `from` on, CT_BUCKET at most, and a bit for each whose key reaches the bound. */
CT_TWICE static void compare(const ct_compressor *c, const float *x, const float *known,
                             size_t from, uint32_t bound, float d[CT_BUCKET],
                             uint8_t bits[CT_BUCKET / 8]) {
    uint8_t codes[CT_BUCKET];
    size_t n = ct_take_differences(x, known, 0, from, c->n, d);
    for (int i = 0; i < CT_BUCKET; i++) codes[i] = (int32_t)key_of(d[i]) >= (int32_t)bound;
    memset(codes + n, 0, CT_BUCKET - n);
    ct_put_codes(codes, CT_BUCKET, 1, bits);
}

/* Values whose key reaches the bound, and their places; how many. */
static size_t gather(const ct_compressor *c, const float *x, const float *known, uint32_t bound,
                     uint32_t *places, uint32_t *floats) {
    size_t n = 0;
    for (size_t from = 0; from < c->n; from += CT_BUCKET) {
        uint64_t words[CT_BUCKET / 64];
        float d[CT_BUCKET];
        compare(c, x, known, from, bound, d, (uint8_t *)words);
        for (size_t w = 0; w < CT_BUCKET / 64; w++)
            for (uint64_t left = words[w]; left != 0; left &= left - 1) {
                size_t i = 64 * w + (size_t)__builtin_ctzll(left);
                places[n] = (uint32_t)(from + i);
                memcpy(&floats[n++], &d[i], sizeof *floats);
            }
    }
    return n;
}

/* Leaves the k of n places whose values are largest; these are put to values[k]. What is written for
 * another place is written over: a jump for these would be one that nobody can foresee. */
static void keep_chosen(size_t k, const uint32_t *floats, uint32_t least, size_t n_equal,
                        uint32_t *places, uint8_t *values) {
    uint32_t bound = least; /* equal ones are chosen until there are enough of them */
    for (size_t m = 0, j = 0; j < k; m++) {
        const uint32_t key = floats[m] & KEY_BITS;
        memcpy(values + 4 * j, &floats[m], sizeof *floats);
        places[j] = places[m];
        j += key >= bound;
        if (key == least && --n_equal == 0) bound = least + 1;
    }
}

static void put_places(size_t k, const uint32_t *places, int n_low_bits, uint8_t *low,
                       uint8_t *high) {
    const uint32_t mask = (1u << n_low_bits) - 1;
    uint64_t bits = 0; /* low bits that have not filled a word */
    uint32_t word = 0;
    size_t at = 0;
    int n_bits = 0;
    for (size_t j = 0; j < k; j++) {
        const size_t bit = (places[j] >> n_low_bits) + j;
        word = (bit / 32 == at ? word : 0) | 1u << bit % 32;
        at = bit / 32;
        memcpy(high + 4 * at, &word, sizeof word);
        bits |= (uint64_t)(places[j] & mask) << n_bits;
        n_bits += n_low_bits;
        if (n_low_bits > 0) memcpy(low, &bits, 4);
        bits >>= n_bits & 32;
        low += (n_bits & 32) / 8;
        n_bits %= 32;
    }
    if (n_bits > 0) memcpy(low, &bits, 4);
}

/* The places, left at the front of the scratch as well, and the values to values[k], which may be the
 * last third of it. */
static void choose(const ct_compressor *c, const float *x, const float *known, uint32_t *scratch,
                   uint8_t *values, uint8_t *low) {
    uint32_t *places = scratch, *floats = places + c->n, *room = floats + c->n;
    size_t n = gather(c, x, known, guess_bound(c, x, known), places, floats), n_equal = 0;
    if (n < c->k) n = gather(c, x, known, 0, places, floats);
    uint32_t least = find_least(floats, n, c->k, room, &n_equal);
    keep_chosen(c->k, floats, least, n_equal, places, values);
    memset(low, 0, 4 * (n_low(c) + n_high(c)));
    put_places(c->k, places, c->low_bits, low, low + 4 * n_low(c));
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

static void add_chosen(const ct_compressor *c, const uint32_t *places, const uint8_t *packed,
                       float *known) {
    for (size_t j = 0; known != NULL && j < c->k; j++) {
        float value = value_at(c, packed, j);
        if (!isfinite(value)) return;
        known[places[j]] += value;
    }
}

static void encode(const ct_compressor *c, const ct_compress_key *key, const float *x, float *known,
                   uint32_t *scratch, uint8_t *packed) {
    (void)key;
    choose(c, x, known, scratch, packed, packed + value_bytes(c));
    add_chosen(c, scratch, packed, known);
}

static void encode_8(const ct_compressor *c, const ct_compress_key *key, const float *x,
                     float *known, uint32_t *scratch, uint8_t *packed) {
    const ct_compressor values = values_of(c);
    uint32_t *chosen = scratch + 2 * c->n;
    choose(c, x, known, scratch, (uint8_t *)chosen, packed + values.n_bytes);
    values.kind->encode(&values, key, (const float *)(void *)chosen, NULL, NULL, packed);
    add_chosen(c, scratch, packed, known);
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
