#include "compress/compress.h"

#include <math.h>
#include <string.h>

#include "nn/graph.h"
#include "util/rng.h"
#include "util/text.h"
#include "util/vectors.h"

#define COMPRESSOR(id) extern const ct_compressor_kind ct_compressor_##id;
#include "compress/compressor_list.h"
#undef COMPRESSOR

static const ct_compressor_kind *const kinds[] = {
#define COMPRESSOR(id) &ct_compressor_##id,
#include "compress/compressor_list.h"
#undef COMPRESSOR
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

void ct_compressor_each(ct_name_visit each, void *context) {
    for (int i = 0; i < N_KINDS; i++) each(context, kinds[i]->name, kinds[i]->text);
}

static const ct_compressor_kind *find(const char *text) {
    for (int i = 0; i < N_KINDS; i++)
        if (ct_spec_is(text, kinds[i]->name)) return kinds[i];
    return NULL;
}

/* NaN: there is no argument. */
static ct_status parse_argument(const char *text, double *out) {
    const char *argument = strchr(text, ':');
    *out = NAN;
    if (argument == NULL || ct_parse_double(argument + 1, out)) return CT_OK;
    return ct_refuse("compress", "@compress %s: '%s' is no number", text, argument + 1);
}

static ct_status parse(const char *text, size_t n, const ct_graph *graph, ct_compressor *out) {
    const ct_compressor_kind *kind = find(text);
    double argument;
    if (kind == NULL) return ct_unknown_name("compress", text, "none", ct_compressor_each);
    CT_TRY(parse_argument(text, &argument));
    CT_TRY(kind->check(argument));
    *out = (ct_compressor){.kind = kind, .argument = argument, .n = n, .graph = graph};
    kind->fit(out);
    return CT_OK;
}

ct_status ct_compressor_parse(const char *text, size_t n, ct_compressor *out) {
    return parse(text, n, NULL, out);
}

ct_status ct_compressor_parse_model(const char *text, const ct_graph *graph, ct_compressor *out) {
    return parse(text, graph->n_weights, graph, out);
}

double ct_compressor_gamma(const char *text, ct_gossip_ways ways) {
    ct_compressor how;
    if (CT_CATCH(NULL, ct_compressor_parse(text, 1, &how)) != CT_OK) return 1;
    return how.kind->gamma(how.argument, ways);
}

void ct_compress_words(const ct_compress_key *key, uint32_t block, uint32_t out[4]) {
    const uint32_t counter[4] = {block, key->index, key->iteration, key->agent};
    ct_philox(counter, key->key, out);
}

/* Philox4x32-10 as in util/rng.c, round by round for all blocks: a processor's vectors take it. */
CT_TWICE static void draw(const ct_compress_key *key, uint32_t first,
                          uint32_t words[4][CT_DRAW_BLOCKS]) {
    uint32_t *x0 = words[0], *x1 = words[1], *x2 = words[2], *x3 = words[3];
    uint32_t k0 = key->key[0], k1 = key->key[1];
    for (uint32_t b = 0; b < CT_DRAW_BLOCKS; b++) {
        x0[b] = first + b;
        x1[b] = key->index;
        x2[b] = key->iteration;
        x3[b] = key->agent;
    }
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        for (int b = 0; b < CT_DRAW_BLOCKS; b++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * x0[b], p1 = (uint64_t)0xCD9E8D57u * x2[b];
            x0[b] = (uint32_t)(p1 >> 32) ^ x1[b] ^ k0;
            x1[b] = (uint32_t)p1;
            x2[b] = (uint32_t)(p0 >> 32) ^ x3[b] ^ k1;
            x3[b] = (uint32_t)p0;
        }
    }
}

void ct_compress_draw(const ct_compress_key *key, uint32_t first,
                      uint32_t words[4][CT_DRAW_BLOCKS]) {
    draw(key, first, words);
}

ct_status ct_check_part(double part) {
    if (part > 0 && part <= 1) return CT_OK;
    return ct_refuse("compress",
                     "@compress top-k and random-k take a part of the parameters, above "
                     "0 and up to 1, as in top-k:0.1");
}

size_t ct_count_part(double part, size_t n) {
    size_t k = (size_t)(part * (double)n);
    return k < 1 ? 1 : k > n ? n : k;
}
