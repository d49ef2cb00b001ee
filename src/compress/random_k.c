/* Random-k: k of n values, one from each of k stretches of the row, so that places need not be sent:
 *   i_j = b_j + floor(u_j (b_{j+1} - b_j) / 2^32)    b_j = floor(j n / k), u_j the j-th random word
 * Values are as they are: E |Q(d) - d|^2 <= (1 - 1 / ceil(n / k)) |d|^2.
 * Deviation: Koloskova et al. choose k of n places freely, and their program those of every tensor.
 * Packed: k floats. */
#include <math.h>
#include <string.h>

#include "compress/compress.h"

/* An agent moves 1 / part times on average before the others hear of it. */
static double gamma_of(double part, ct_gossip_ways ways) {
    (void)ways;
    return part / (2 - part);
}

static void fit(ct_compressor *c) {
    c->k = ct_count_part(c->argument, c->n);
    c->n_bytes = c->k * sizeof(float);
}

static size_t place(const ct_compressor *c, size_t j, uint32_t word) {
    size_t begin = (size_t)((uint64_t)j * c->n / c->k),
           end = (size_t)((uint64_t)(j + 1) * c->n / c->k);
    return begin + (size_t)((uint64_t)word * (end - begin) >> 32);
}

static void encode(const ct_compressor *c, const ct_compress_key *key, const float *x,
                   const float *known, uint32_t *scratch, uint8_t *packed) {
    uint32_t words[4] = {0};
    (void)scratch;
    for (size_t j = 0; j < c->k; j++) {
        if (j % 4 == 0) ct_compress_words(key, (uint32_t)(j / 4), words);
        float d = ct_difference(x, known, place(c, j, words[j % 4]));
        memcpy(packed + j * sizeof d, &d, sizeof d);
    }
}

static bool decode(const ct_compressor *c, const ct_compress_key *key, const uint8_t *packed,
                   float *known) {
    uint32_t words[4] = {0};
    float value;
    for (size_t j = 0; j < c->k; j++) {
        if (j % 4 == 0) ct_compress_words(key, (uint32_t)(j / 4), words);
        memcpy(&value, packed + j * sizeof value, sizeof value);
        if (!isfinite(value)) return false;
        known[place(c, j, words[j % 4])] += value;
    }
    return true;
}

const ct_compressor_kind ct_compressor_random_k = {
    .name = "random-k",
    .argument = "F",
    .text = "random-k:F: the part F of the parameters, chosen at random; places need not be sent",
    .check = ct_check_part,
    .gamma = gamma_of,
    .fit = fit,
    .encode = encode,
    .decode = decode,
};
