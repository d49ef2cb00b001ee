/* Low rank: the change of every weight tensor as a product of two thin matrices (Vogels, Karimireddy
 * and Jaggi: PowerSGD, NeurIPS 2019; between neighbours PowerGossip, NeurIPS 2020). A tensor
 * [a][...] of a model is a matrix D [a x b], b the product of its other dimensions; r: the rank.
 *   V    [b x r] drawn anew every time, uniform in (-1, 1)
 *   P    = D V  [a x r], its columns made orthonormal
 *   Q    = D^T P  [b x r]
 *   Q(D) = P Q^T = P P^T D        a projection of D, never farther from it than 0 is
 * Tensors of one dimension, and those that two factors would not make smaller, are sent as they are.
 * Deviation: PowerSGD begins with the Q of the time before. With error feedback D has just lost that
 * part, so that V is drawn; and PowerGossip's two agents compress the difference of their models,
 * where this is what an agent sends of its own.
 * Packed, tensor by tensor as in the model: P column by column, Q column by column; or the values. */
#include "compress/low_rank.h"

#include <math.h>
#include <string.h>

#include "nn/graph.h"
#include "util/vectors.h"

#define MAX_RANK 256
#define LOST     1e-5 /* a column of which so little is left beside the others is noise */

/* Tensor t of the model; without a model the row is one tensor of one dimension. */
ct_matrix ct_low_rank_matrix(const ct_compressor *c, int t) {
    if (c->graph == NULL) return (ct_matrix){0, 1, c->n, true};
    const ct_param *p = &c->graph->params[t];
    size_t a = p->dims[0], b = a > 0 ? p->count / a : 0;
    return (ct_matrix){p->offset, a, b, c->k * (a + b) >= a * b};
}

int ct_low_rank_count(const ct_compressor *c) {
    return c->graph == NULL ? 1 : c->graph->n_params;
}

size_t ct_low_rank_floats(const ct_compressor *c, const ct_matrix *m) {
    return m->is_whole ? m->a * m->b : c->k * (m->a + m->b);
}

/* On a ring of 16, 2 R / a is best for changes without structure, and 3 R / a the limit, a being the
 * smaller side of the widest matrix. Quasi-global momentum bears half: LeNet-5 (a = 120) with R = 4
 * drifts apart at 1/16 and does not at 1/32. */
static double gamma_of(double rank, ct_gossip_ways ways) {
    (void)ways;
    return rank < 128 ? rank / 128 : 1;
}

static void fit(ct_compressor *c) {
    c->k = (size_t)c->argument;
    c->n_bytes = c->n_scratch = 0;
    for (int t = 0; t < ct_low_rank_count(c); t++) {
        ct_matrix m = ct_low_rank_matrix(c, t);
        size_t room = m.is_whole ? 0 : m.a * m.b + c->k * (m.a + m.b);
        c->n_bytes += ct_low_rank_floats(c, &m) * sizeof(float);
        if (room > c->n_scratch) c->n_scratch = room;
    }
}

static ct_status check(double rank) {
    if (rank >= 1 && rank <= MAX_RANK && rank == floor(rank)) return CT_OK;
    return ct_refuse("compress",
                     "@compress low-rank takes a rank, a whole number from 1 to %d, as in "
                     "low-rank:4",
                     MAX_RANK);
}

/* Uniform in (-1, 1), from 16 bits each: n values, the draws from number `from` on. */
static void draw(const ct_compress_key *key, size_t from, size_t n, float *v) {
    uint32_t words[4][CT_DRAW_BLOCKS];
    for (size_t i = 0; i < n;) {
        const size_t first = (from + i) / 8 * 8, end = first + 8 * CT_DRAW_BLOCKS;
        ct_compress_draw(key, (uint32_t)(first / 8), words);
        for (; i < n && from + i < end; i++) {
            const size_t at = from + i - first;
            uint32_t bits = words[at % 8 / 2][at / 8] >> 16 * (at % 2) & 0xffff;
            v[i] = ((float)(int)bits + 0.5f) * 0x1p-15f - 1;
        }
    }
}

static float float_at(const uint8_t *packed, size_t i) {
    float value;
    memcpy(&value, packed + i * sizeof value, sizeof value);
    return value;
}

static inline float dot(const float *x, const float *y, size_t n) {
    float lanes[CT_COMPRESS_LANES] = {0};
    size_t from = 0;
    for (; from + CT_COMPRESS_LANES <= n; from += CT_COMPRESS_LANES)
        for (size_t j = 0; j < CT_COMPRESS_LANES; j++) lanes[j] += x[from + j] * y[from + j];
    for (size_t j = 0; from + j < n; j++) lanes[j] += x[from + j] * y[from + j];
    return ct_lanes_sum(lanes);
}

/* P = D V, column by column. */
CT_TWICE static void times(const ct_matrix *m, size_t rank, const float *d, const float *v,
                           float *p) {
    for (size_t i = 0; i < m->a; i++)
        for (size_t r = 0; r < rank; r++) p[r * m->a + i] = dot(d + i * m->b, v + r * m->b, m->b);
}

/* to += the sum of rows with factors, in their order; both are floats. */
static inline void add_rows(size_t n, size_t n_rows, const uint8_t *factors, size_t factor_stride,
                            const uint8_t *rows, float *restrict to) {
    size_t i = 0;
    for (; i + 4 <= n_rows; i += 4) {
        const float f0 = float_at(factors, i * factor_stride),
                    f1 = float_at(factors, (i + 1) * factor_stride),
                    f2 = float_at(factors, (i + 2) * factor_stride),
                    f3 = float_at(factors, (i + 3) * factor_stride);
        const uint8_t *row = rows + i * n * sizeof(float);
        for (size_t j = 0; j < n; j++)
            to[j] = to[j] + f0 * float_at(row, j) + f1 * float_at(row, n + j) +
                    f2 * float_at(row, 2 * n + j) + f3 * float_at(row, 3 * n + j);
    }
    for (; i < n_rows; i++) {
        const float factor = float_at(factors, i * factor_stride);
        for (size_t j = 0; j < n; j++) to[j] += factor * float_at(rows, i * n + j);
    }
}

/* Q = D^T P, column by column. */
CT_TWICE static void times_back(const ct_matrix *m, size_t rank, const float *d, const float *p,
                                float *q) {
    memset(q, 0, rank * m->b * sizeof *q);
    for (size_t i = 0; i < m->a; i += 4)
        for (size_t r = 0; r < rank; r++)
            add_rows(m->b, m->a - i < 4 ? m->a - i : 4, (const uint8_t *)(p + r * m->a + i), 1,
                     (const uint8_t *)(d + i * m->b), q + r * m->b);
}

/* As dot(), in double. */
static double product(const float *x, const float *y, size_t n) {
    double lanes[CT_COMPRESS_LANES] = {0};
    for (size_t from = 0; from < n; from += CT_COMPRESS_LANES) {
        size_t end = n - from < CT_COMPRESS_LANES ? n - from : CT_COMPRESS_LANES;
        for (size_t j = 0; j < end; j++) lanes[j] += (double)x[from + j] * (double)y[from + j];
    }
    for (int width = CT_COMPRESS_LANES / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++) lanes[j] += lanes[j + width];
    return lanes[0];
}

/* Gram and Schmidt, twice for what rounding left; a column that depends on the others becomes 0. */
static void orthonormalize(float *p, size_t n, size_t rank) {
    for (size_t r = 0; r < rank; r++) {
        float *column = p + r * n;
        const double before = sqrt(product(column, column, n));
        for (size_t s = 0; s < 2 * r; s++) {
            const float *other = p + s % r * n;
            const double part = product(column, other, n);
            for (size_t i = 0; i < n; i++) column[i] -= (float)(part * (double)other[i]);
        }
        const double left = sqrt(product(column, column, n));
        const double scale = left > LOST * before ? 1 / left : 0;
        for (size_t i = 0; i < n; i++) column[i] = (float)(scale * (double)column[i]);
    }
}

/* D, P and Q lie one after the other in `room`; P and Q are then what is sent. */
static const float *factorize(const ct_compressor *c, const ct_compress_key *key,
                              const ct_matrix *m, const float *x, const float *known, float *room) {
    float *d = room, *p = d + m->a * m->b, *q = p + c->k * m->a;
    for (size_t i = 0; i < m->a * m->b; i++) d[i] = ct_difference(x, known, m->first + i);
    draw(key, c->k * m->first, c->k * m->b, q);
    times(m, c->k, d, q, p);
    orthonormalize(p, m->a, c->k);
    times_back(m, c->k, d, p, q);
    return p;
}

/* Products of all sums that there may be are finite. */
static bool is_sound(const ct_compressor *c, const ct_matrix *m, const uint8_t *packed) {
    size_t n_p = m->is_whole ? 0 : c->k * m->a, n = ct_low_rank_floats(c, m);
    for (size_t i = 0; i < n_p; i++)
        if (!(fabsf(float_at(packed, i)) < 2)) return false;
    for (size_t i = n_p; i < n; i++)
        if (!isfinite(float_at(packed, i) * (4 * MAX_RANK))) return false;
    return true;
}

CT_TWICE static void add_product(const ct_matrix *m, size_t rank, const uint8_t *packed,
                                 float *known) {
    const uint8_t *q = packed + rank * m->a * sizeof(float);
    for (size_t i = 0; i < m->a; i++)
        add_rows(m->b, rank, packed + i * sizeof(float), m->a, q, known + i * m->b);
}

static bool decode(const ct_compressor *c, const ct_compress_key *key, const uint8_t *packed,
                   float *known) {
    (void)key;
    for (int t = 0; t < ct_low_rank_count(c); t++) {
        ct_matrix m = ct_low_rank_matrix(c, t);
        size_t n = ct_low_rank_floats(c, &m);
        if (!is_sound(c, &m, packed)) return false;
        if (m.is_whole)
            for (size_t i = 0; i < n; i++) known[m.first + i] += float_at(packed, i);
        else
            add_product(&m, c->k, packed, known + m.first);
        packed += n * sizeof(float);
    }
    return true;
}

static void encode(const ct_compressor *c, const ct_compress_key *key, const float *x, float *known,
                   uint32_t *scratch, uint8_t *packed) {
    uint8_t *to = packed;
    for (int t = 0; t < ct_low_rank_count(c); t++) {
        ct_matrix m = ct_low_rank_matrix(c, t);
        size_t n = ct_low_rank_floats(c, &m);
        if (m.is_whole)
            for (size_t i = 0; i < n; i++) {
                float d = ct_difference(x, known, m.first + i);
                memcpy(to + i * sizeof d, &d, sizeof d);
            }
        else
            memcpy(to, factorize(c, key, &m, x, known, (float *)(void *)scratch),
                   n * sizeof(float));
        to += n * sizeof(float);
    }
    if (known != NULL) (void)decode(c, key, packed, known);
}

const ct_compressor_kind ct_compressor_low_rank = {
    .name = "low-rank",
    .argument = "R",
    .text = "low-rank:R: the change of every weight tensor as a matrix of rank R",
    .check = check,
    .gamma = gamma_of,
    .fit = fit,
    .encode = encode,
    .decode = decode,
};
