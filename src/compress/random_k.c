/* Random-k: k of n values, one from each of k stretches of the row, so that places need not be sent:
 *   i_j = b_j + floor(u_j (b_{j+1} - b_j) / 2^32)    b_j = floor(j n / k), u_j the j-th random word
 * Values are as they are: E |Q(d) - d|^2 <= (1 - 1 / ceil(n / k)) |d|^2.
 * Deviation: Koloskova et al. choose k of n places freely, and their program those of every tensor.
 * Packed: k floats. */
#include <math.h>
#include <string.h>

#include "compress/compress.h"

#define N_DRAWN (4 * CT_DRAW_BLOCKS) /* places that are drawn at once */

/* An agent moves 1 / part times on average before the others hear of it. */
static double gamma_of(double part, ct_gossip_ways ways) {
    (void)ways;
    return part / (2 - part);
}

static void fit(ct_compressor *c) {
    c->k = ct_count_part(c->argument, c->n);
    c->n_bytes = c->k * sizeof(float);
}

/* Places `first` .. of the k, N_DRAWN at most; how many. */
static size_t draw_places(const ct_compressor *c, const ct_compress_key *key, size_t first,
                          uint32_t places[N_DRAWN]) {
    const size_t n = c->k - first < N_DRAWN ? c->k - first : N_DRAWN;
    const size_t width = c->n / c->k, more = c->n % c->k;
    size_t begin = (size_t)((uint64_t)first * c->n / c->k),
           rest = (size_t)((uint64_t)first * c->n % c->k); /* b_j is begin + rest / k */
    uint32_t words[4][CT_DRAW_BLOCKS];
    ct_compress_draw(key, (uint32_t)(first / 4), words);
    for (size_t j = 0; j < n; j++) {
        const size_t is_wider = rest + more >= c->k;
        places[j] =
            (uint32_t)(begin + (size_t)((uint64_t)words[j % 4][j / 4] * (width + is_wider) >> 32));
        begin += width + is_wider;
        rest += more - is_wider * c->k;
    }
    return n;
}

static void encode(const ct_compressor *c, const ct_compress_key *key, const float *x, float *known,
                   uint32_t *scratch, uint8_t *packed) {
    uint32_t places[N_DRAWN];
    bool adds = known != NULL;
    (void)scratch;
    for (size_t first = 0; first < c->k; first += N_DRAWN) {
        size_t n = draw_places(c, key, first, places);
        for (size_t j = 0; j < n; j++) {
            float d = ct_difference(x, known, places[j]);
            memcpy(packed + (first + j) * sizeof d, &d, sizeof d);
            adds = adds && isfinite(d);
            if (adds) known[places[j]] += d;
        }
    }
}

static bool decode(const ct_compressor *c, const ct_compress_key *key, const uint8_t *packed,
                   float *known) {
    uint32_t places[N_DRAWN];
    float value;
    for (size_t first = 0; first < c->k; first += N_DRAWN) {
        size_t n = draw_places(c, key, first, places);
        for (size_t j = 0; j < n; j++) {
            memcpy(&value, packed + (first + j) * sizeof value, sizeof value);
            if (!isfinite(value)) return false;
            known[places[j]] += value;
        }
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
