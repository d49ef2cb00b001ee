/* Depthwise 3x3 convolution in lanes, pad 1, stride 1 or 2: every channel by itself.
 *   y[c][i][j] = b[c] + sum_{u,v} w[c][u][v] x[c][i s + u - 1][j s + v - 1]
 *   18 flops per output and sample, 1 to 4 loads: bound by memory for large pictures.
 * A tile of PX outputs of a row shares its input pixels; taps outside the picture are left out. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

/* Kernel rows u0 .. u1-1 and columns v0 .. v1-1 that meet the picture. */
typedef struct taps {
    int u0, u1, v0, v1;
} taps;

static taps taps_at(const ct_depthwise_geometry *g, int i, int j) {
    const int y = i * g->stride - 1, x = j * g->stride - 1;
    taps t = {y < 0, g->h - y < 3 ? g->h - y : 3, x < 0, g->w - x < 3 ? g->w - x : 3};
    return t;
}

/* Outputs j = 1 .. n_inner of a row meet all three columns. */
static int n_inner(const ct_depthwise_geometry *g) {
    const int last = (g->w - 2) / g->stride;
    return g->w < 3 ? 0 : last < g->w_out - 1 ? last : g->w_out - 1;
}

INLINE vf finish(vf sum, int flags) {
    return flags & CT_RELU ? vmax(sum, vzero()) : sum;
}

/* PX outputs in the inner part of a row; x is at column 0 of the first one's taps, row 0. */
INLINE void forward_tile(const float *x, size_t row, int u0, int u1, const vf *w, vf bias,
                         int flags, float *y, const int PX, const int S) {
    vf acc[4];
#pragma GCC unroll 4
    for (int p = 0; p < PX; p++) acc[p] = flags & CT_ACCUMULATE ? vload(y + p * CT_LANES) : bias;
    for (int u = u0; u < u1; u++) {
        vf in[9];
#pragma GCC unroll 9
        for (int k = 0; k < (PX - 1) * S + 3; k++)
            in[k] = vload(x + (size_t)u * row + (size_t)(k * CT_LANES));
#pragma GCC unroll 3
        for (int v = 0; v < 3; v++) {
            const vf weight = w[3 * u + v];
#pragma GCC unroll 4
            for (int p = 0; p < PX; p++) acc[p] += weight * in[p * S + v];
        }
    }
#pragma GCC unroll 4
    for (int p = 0; p < PX; p++) vstore(y + p * CT_LANES, finish(acc[p], flags));
}

static void forward_edge(const ct_depthwise_geometry *g, const float *x, int i, int j, const vf *w,
                         vf bias, int flags, float *y) {
    const taps t = taps_at(g, i, j);
    vf acc = flags & CT_ACCUMULATE ? vload(y) : bias;
    for (int u = t.u0; u < t.u1; u++)
        for (int v = t.v0; v < t.v1; v++) {
            const ptrdiff_t at = (ptrdiff_t)(i * g->stride + u - 1) * g->w + j * g->stride + v - 1;
            acc += w[3 * u + v] * vload(x + at * CT_LANES);
        }
    vstore(y, finish(acc, flags));
}

INLINE void forward_plane(const ct_depthwise_geometry *g, const float *x, const vf *w, vf bias,
                          int flags, float *y, const int S) {
    const size_t row = (size_t)g->w * CT_LANES;
    const int inner = n_inner(g);
    for (int i = 0; i < g->h_out; i++, y += g->w_out * CT_LANES) {
        const taps t = taps_at(g, i, 1);
        const float *top = x + ((ptrdiff_t)(i * S - 1) * g->w - 1) * CT_LANES;
        int j = 1;
        forward_edge(g, x, i, 0, w, bias, flags, y);
        for (; j + 4 <= inner + 1; j += 4)
            forward_tile(top + j * S * CT_LANES, row, t.u0, t.u1, w, bias, flags, y + j * CT_LANES,
                         4, S);
        for (; j <= inner; j++)
            forward_tile(top + j * S * CT_LANES, row, t.u0, t.u1, w, bias, flags, y + j * CT_LANES,
                         1, S);
        for (; j < g->w_out; j++) forward_edge(g, x, i, j, w, bias, flags, y + j * CT_LANES);
    }
}

void KERNEL(depthwise)(const ct_depthwise_geometry *g, const float *x, const float *w, bool flip,
                       const float *bias, int flags, float *y) {
    for (int c = 0; c < g->c; c++, w += 9) {
        const size_t from = (size_t)c * (size_t)(g->h * g->w) * CT_LANES;
        const size_t to = (size_t)c * (size_t)(g->h_out * g->w_out) * CT_LANES;
        vf taps9[9];
        for (int k = 0; k < 9; k++) taps9[k] = vset(flip ? w[8 - k] : w[k]);
        const vf b = bias != NULL ? vset(bias[c]) : vzero();
        for (int part = 0; part < CT_LANES; part += VL) {
            if (g->stride == 1)
                forward_plane(g, x + from + part, taps9, b, flags, y + to + part, 1);
            else
                forward_plane(g, x + from + part, taps9, b, flags, y + to + part, 2);
        }
    }
}

/* dx of one pixel (i, j) of stride 2: the outputs (i + 1 - u) / 2 of taps u of the same parity. */
INLINE vf gather(const ct_depthwise_geometry *g, const float *dy, int i, int j, const vf *w) {
    vf sum = vzero();
    for (int u = (i + 1) % 2; u < 3; u += 2) {
        const int oi = (i + 1 - u) / 2;
        if (i + 1 < u || oi >= g->h_out) continue;
        for (int v = (j + 1) % 2; v < 3; v += 2) {
            const int oj = (j + 1 - v) / 2;
            if (j + 1 < v || oj >= g->w_out) continue;
            sum += w[3 * u + v] * vload(dy + (oi * g->w_out + oj) * CT_LANES);
        }
    }
    return sum;
}

void KERNEL(depthwise_data)(const ct_depthwise_geometry *g, const float *dy, const float *w,
                            int flags, float *dx) {
    if (g->stride == 1) {
        const ct_depthwise_geometry back = {g->c, g->h_out, g->w_out, g->h, g->w, 1};
        KERNEL(depthwise)(&back, dy, w, true, NULL, flags, dx);
        return;
    }
    for (int c = 0; c < g->c; c++, w += 9, dy += g->h_out * g->w_out * CT_LANES) {
        vf taps9[9];
        for (int k = 0; k < 9; k++) taps9[k] = vset(w[k]);
        for (int i = 0; i < g->h; i++)
            for (int j = 0; j < g->w; j++, dx += CT_LANES)
                for (int part = 0; part < CT_LANES; part += VL) {
                    vf d = gather(g, dy + part, i, j, taps9);
                    if (flags & CT_ACCUMULATE) d += vload(dx + part);
                    vstore(dx + part, d);
                }
    }
}

/* Adds PX outputs' share to the nine sums; kernel rows U0 .. U1-1 meet the picture. */
INLINE void weights_tile(const float *x, size_t row, const float *dy, vf *sums, const int PX,
                         const int S, const int U0, const int U1) {
    vf d[4];
#pragma GCC unroll 4
    for (int p = 0; p < PX; p++) d[p] = vload(dy + p * CT_LANES);
#pragma GCC unroll 3
    for (int u = U0; u < U1; u++) {
        vf in[9];
#pragma GCC unroll 9
        for (int k = 0; k < (PX - 1) * S + 3; k++)
            in[k] = vload(x + (size_t)u * row + (size_t)(k * CT_LANES));
#pragma GCC unroll 3
        for (int v = 0; v < 3; v++)
#pragma GCC unroll 4
            for (int p = 0; p < PX; p++) sums[3 * u + v] += d[p] * in[p * S + v];
    }
}

INLINE void weights_inner(const float *x, size_t row, const float *dy, int inner, vf *out,
                          const int S, const int U0, const int U1) {
    vf sums[9];
#pragma GCC unroll 9
    for (int k = 0; k < 9; k++) sums[k] = out[k];
    int j = 1;
    for (; j + 4 <= inner + 1; j += 4)
        weights_tile(x + j * S * CT_LANES, row, dy + j * CT_LANES, sums, 4, S, U0, U1);
    for (; j <= inner; j++)
        weights_tile(x + j * S * CT_LANES, row, dy + j * CT_LANES, sums, 1, S, U0, U1);
#pragma GCC unroll 9
    for (int k = 0; k < 9; k++) out[k] = sums[k];
}

static void weights_edge(const ct_depthwise_geometry *g, const float *x, const float *dy, int i,
                         int j, vf *sums) {
    const taps t = taps_at(g, i, j);
    const vf d = vload(dy + (i * g->w_out + j) * CT_LANES);
    for (int u = t.u0; u < t.u1; u++)
        for (int v = t.v0; v < t.v1; v++) {
            const ptrdiff_t at = (ptrdiff_t)(i * g->stride + u - 1) * g->w + j * g->stride + v - 1;
            sums[3 * u + v] += d * vload(x + at * CT_LANES);
        }
}

INLINE void weights_plane(const ct_depthwise_geometry *g, const float *x, const float *dy, vf *sums,
                          const int S) {
    const size_t row = (size_t)g->w * CT_LANES;
    const int inner = n_inner(g);
    for (int i = 0; i < g->h_out; i++) {
        const taps t = taps_at(g, i, 1);
        const float *top = x + ((ptrdiff_t)(i * S - 1) * g->w - 1) * CT_LANES;
        const float *di = dy + i * g->w_out * CT_LANES;
        weights_edge(g, x, dy, i, 0, sums);
        if (t.u0 == 0 && t.u1 == 3)
            weights_inner(top, row, di, inner, sums, S, 0, 3);
        else if (t.u0 == 0)
            weights_inner(top, row, di, inner, sums, S, 0, 2);
        else if (t.u1 == 3)
            weights_inner(top, row, di, inner, sums, S, 1, 3);
        else
            weights_inner(top, row, di, inner, sums, S, 1, 2);
        for (int j = inner + 1 > 1 ? inner + 1 : 1; j < g->w_out; j++)
            weights_edge(g, x, dy, i, j, sums);
    }
}

void KERNEL(depthwise_weights)(const ct_depthwise_geometry *g, const float *x, size_t x_block,
                               const float *dy, size_t dy_block, int n_blocks, float *dw) {
    for (int c = 0; c < g->c; c++, dw += 9) {
        for (int k = 0; k < 9; k++) dw[k] = 0;
        for (int part = 0; part < CT_LANES; part += VL) {
            vf sums[9];
            for (int k = 0; k < 9; k++) sums[k] = vzero();
            for (int b = 0; b < n_blocks; b++) {
                const float *xb =
                    x + (size_t)b * x_block + (size_t)(c * g->h * g->w) * CT_LANES + part;
                const float *db =
                    dy + (size_t)b * dy_block + (size_t)(c * g->h_out * g->w_out) * CT_LANES + part;
                if (g->stride == 1)
                    weights_plane(g, xb, db, sums, 1);
                else
                    weights_plane(g, xb, db, sums, 2);
            }
            for (int k = 0; k < 9; k++) dw[k] += vsum(sums[k]);
        }
    }
}
