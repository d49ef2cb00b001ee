/* Rows in fewer bytes: what is sent instead of a row x is Q(x - known), where `known` is what the
 * receivers have of it; sender and receivers then add the same numbers to their copies of `known`.
 * What Q leaves out is still in x - known next time (error feedback).
 *
 * Q is a contraction, |Q(d) - d| < |d| for every d but 0 (random-k: in expectation), as error
 * feedback needs (Koloskova, Stich and Jaggi, ICML 2019). A packed row has a size that follows from
 * the row's alone. All arithmetic is in float and in an order that is part of the definition, so that
 * every backend packs the same bytes. */
#ifndef CT_COMPRESS_COMPRESS_H
#define CT_COMPRESS_COMPRESS_H

#include "util/registry.h"

#define CT_BUCKET         256 /* values with a scale of their own */
#define CT_COMPRESS_LANES 32  /* partial sums of a bucket */

typedef struct ct_compressor ct_compressor;
struct ct_graph;

/* The random numbers of one row: word w is philox({w / 4, index, iteration, agent}, key)[w % 4]. */
typedef struct ct_compress_key {
    uint32_t key[2], index, iteration, agent;
} ct_compress_key;

/* What makes agents swing sooner. */
typedef struct ct_gossip_ways {
    bool are_carried; /* momentum takes up what gossip does (ct_algo.carries_gossip) */
    bool are_rare;    /* not every iteration gossips (--local-steps) */
} ct_gossip_ways;

typedef struct ct_compressor_kind {
    const char *name, *argument, *text; /* "top-k", "F", one line of help */
    /* CT_INVAL: no such argument (NaN: none was given). */
    ct_status (*check)(double argument);
    /* The averaging rate with which it is stable on the usual graphs. */
    double (*gamma)(double argument, ct_gossip_ways ways);
    /* Everything of c that follows from kind, argument, n and graph. */
    void (*fit)(ct_compressor *c);
    /* packed = Q(x - known), and known += what packed says, to the bits of decode(): it stops where
     * that would. known may be NULL: zeros, which stay. scratch: [n_scratch]. */
    void (*encode)(const ct_compressor *c, const ct_compress_key *key, const float *x, float *known,
                   uint32_t *scratch, uint8_t *packed);
    /* known += what packed says; false, and nothing or a part was added: it is no such row. */
    bool (*decode)(const ct_compressor *c, const ct_compress_key *key, const uint8_t *packed,
                   float *known);
} ct_compressor_kind;

struct ct_compressor {
    const ct_compressor_kind *kind;
    double argument;
    size_t n;                     /* values of a row */
    const struct ct_graph *graph; /* whose parameters they are; NULL: values without a shape */
    size_t n_bytes;               /* of a packed row, a multiple of 4 */
    size_t n_scratch;             /* words that encoding needs */
    size_t k;                     /* values that are sent: top-k, random-k; the rank: low-rank */
    int low_bits;                 /* of a place: top-k */
    int bits;                     /* of a value: quantize, top-k */
    float width;                  /* of a level, in parts of a bucket's rms: quantize, top-k8 */
    size_t bucket,
        exact;     /* values of a bucket, and how many of its last ones are sent as they are */
    bool fits;     /* scales are fitted: quantize, see there */
    bool is_whole; /* what is known before is zero */
};

/* "top-k:0.1" and so on, for rows of n values. CT_INVAL: there is none such, with the known ones. */
ct_status ct_compressor_parse(const char *text, size_t n, ct_compressor *out);
/* The same for rows that are models; the graph must outlive it. */
ct_status ct_compressor_parse_model(const char *text, const struct ct_graph *graph,
                                    ct_compressor *out);
/* Its averaging rate unless one is given; 1: "none", or no compressor. */
double ct_compressor_gamma(const char *text, ct_gossip_ways ways);
/* Rows of n_groups * width values, in every group all but the last in 8 bits without bias. */
void ct_compressor_sums(size_t n_groups, size_t width, ct_compressor *out);

void ct_compressor_each(ct_name_visit each, void *context);

/* ---- what compressors share ---- */

static inline float ct_difference(const float *x, const float *known, size_t i) {
    return known != NULL ? x[i] - known[i] : x[i];
}
/* d of values first + from .. of the n from `first` on, CT_BUCKET at most, then zeros; how many. */
static inline size_t ct_take_differences(const float *x, const float *known, size_t first,
                                         size_t from, size_t n, float d[CT_BUCKET]) {
    size_t n_here = n - from < CT_BUCKET ? n - from : CT_BUCKET;
    for (size_t i = n_here; i < CT_BUCKET; i++) d[i] = 0;
    x += first + from;
    if (known == NULL)
        for (size_t i = 0; i < n_here; i++) d[i] = x[i];
    else
        for (size_t i = 0; i < n_here; i++) d[i] = x[i] - known[first + from + i];
    return n_here;
}
/* Values in few bits, in buckets: what other compressors send may be such a row. */
extern const ct_compressor_kind ct_compressor_quantize;
/* Random words 4 block .. 4 block + 3. */
void ct_compress_words(const ct_compress_key *key, uint32_t block, uint32_t out[4]);
/* The same of many blocks from the first one on, side by side. */
#define CT_DRAW_BLOCKS 40 /* enough for CT_BUCKET values of 16 bits, wherever they begin */
void ct_compress_draw(const ct_compress_key *key, uint32_t first,
                      uint32_t words[4][CT_DRAW_BLOCKS]);
/* The sum of the lanes, as a tree. */
static inline float ct_lanes_sum(float lanes[CT_COMPRESS_LANES]) {
#pragma GCC unroll 5
    for (int width = CT_COMPRESS_LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++) lanes[j] += lanes[j + width];
    return lanes[0];
}
/* "F is a part of the values" of top-k and random-k, and how many that is. */
ct_status ct_check_part(double part);
size_t ct_count_part(double part, size_t n);

#endif
