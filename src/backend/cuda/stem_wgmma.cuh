/* What the kernels for a picture's convolution on Hopper share: 3x3 to 7x7 with stride 2 and a
 * border of half of it, 1 to 4 to 64 channels, in bf16.
 *
 * Pictures are pairs of pixels (cuda_pairs), so that a pair is eight k of a product in line, and the
 * eight columns of a kernel row are four pairs. Positions of a sample are its output pixels row by
 * row, `border` positions without a pixel between rows. Kernel row u of position p reads pairs p +
 * const .. + 3 of the rows of one parity: neighbours' pairs overlap, in shared memory too, where
 * a product's matrices begin at any pair and are read without swizzle. */
#ifndef CT_BACKEND_CUDA_STEM_WGMMA_CUH
#define CT_BACKEND_CUDA_STEM_WGMMA_CUH

#include "backend/cuda/wgmma.cuh"

enum { MOST_ROWS = 7, PAIR = 16 /* bytes */, ACROSS = 4 /* pairs of a kernel row */ };
enum { SAMPLE_UNIT = 512 /* positions that a sample's pairs are rounded up to */ };

/* Which pairs kernel row u reads: of rows of a parity, `down` below the first one that is stored. */
typedef struct stem_row {
    int parity, down;
} stem_row;

static inline int stem_border(const cuda_conv *v) {
    return (v->pad + 1) / 2;
}

static inline stem_row stem_row_of(const cuda_conv *v, int u) {
    int at = u - v->pad, parity = at & 1;
    return {parity, (at - parity) / 2 + stem_border(v)};
}

static inline int stem_pitch(const cuda_conv *v) {
    return v->wo + stem_border(v);
}

/* From a sample's first pixel to its last. */
static inline int stem_positions(const cuda_conv *v) {
    return v->ho * stem_pitch(v) - stem_border(v);
}

static inline cuda_pairs stem_pairs(const cuda_conv *v) {
    int n = (stem_positions(v) + SAMPLE_UNIT - 1) / SAMPLE_UNIT * SAMPLE_UNIT;
    int n_rows = stem_row_of(v, v->kh - 1).down; /* above the last one */
    return {v->ho, v->wo, stem_border(v), (n + n_rows * stem_pitch(v) + ACROSS + 3) / 4 * 4};
}

/* What a run of positions reads, in shared memory: rows of even parity, then of odd. */
typedef struct stem_run {
    int from[2], n[2];  /* pairs of a parity: the first one of position 0, and how many */
    int row[MOST_ROWS]; /* where the first position's pairs of a kernel row are */
} stem_run;

static inline stem_run stem_run_of(const cuda_conv *v, int n_positions) {
    stem_run run = {};
    int pitch = stem_pitch(v);
    for (int parity = 0; parity < 2; parity++) {
        int first = -1, last = 0;
        for (int u = 0; u < v->kh; u++) {
            stem_row row = stem_row_of(v, u);
            if (row.parity != parity) continue;
            if (first < 0) first = row.down;
            last = row.down;
            run.row[u] = parity * run.n[0] + (row.down - first) * pitch;
        }
        run.from[parity] = first * pitch;
        run.n[parity] = n_positions + (last - first) * pitch + ACROSS - 1;
    }
    return run;
}

static inline int stem_run_bytes(const stem_run *run) {
    return (run->n[0] + run->n[1]) * PAIR;
}

static inline bool stem_shape_fits(const cuda_conv *v) {
    return v->groups == 1 && v->kh == v->kw && v->kh % 2 == 1 && v->kh > 1 && v->kh <= MOST_ROWS &&
           v->pad == v->kh / 2 && v->stride == 2 && v->ci <= 4 && v->co == CHUNK &&
           v->ho == (v->hi + 1) / 2 && v->wo == (v->wi + 1) / 2;
}

/* A kernel row's column that is value k (2 x 4 channels of a pair) of pair `at`; those outside have
 * no weight. */
static __device__ __forceinline__ int column_of(int pad, int at, int k) {
    return 2 * at + k / 4 - (pad & 1);
}

/* Begins the copy of a sample's run from position `at` on. */
static __device__ __forceinline__ void copy_pairs(uint32_t to, const stem_run &run,
                                                  const char *sample, int size, int at,
                                                  uint64_t *barrier) {
    for (int parity = 0; parity < 2; parity++)
        copy_bulk(to + parity * run.n[0] * PAIR,
                  sample + (size_t)(parity * size + run.from[parity] + at) * PAIR,
                  run.n[parity] * PAIR, barrier);
}

#endif
