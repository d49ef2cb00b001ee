/* Direct convolution in lanes.
 *   y[o][i][j] = bias[o] + sum_{c,u,v} w[o][c][u][v] x[c][i * stride + u][j * stride + v]
 *   x [c_in][..][..][16] padded, y [c_out][h_out][w_out][16], each symbol a vector of samples
 *   2 c_in kh kw flops per output and sample.
 * A tile of OC channels x PX pixels stays in registers over the whole sum; a step of the sum loads
 * PX pixels and broadcasts OC weights for OC * PX multiply-adds. Rows are the outer loop, so that
 * the kh input rows of all channels stay in the second-level cache for every tile of channels. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

/* Accumulators, pixels and weights must fit the registers. Short vectors in many of them: a tile's
 * PX vectors are those of one pixel, side by side. */
enum {
    WHOLE_PIXEL = VL == 4 && REGISTERS == 32,
    MAX_OC = VL == 4 && !WHOLE_PIXEL ? 4 : 6,
    MAX_PX = WHOLE_PIXEL || VL == 16 ? 4
             : VL == 8               ? 3
                                     : 2
};

size_t KERNEL(conv_pack_size)(const ct_conv_geometry *g) {
    return (size_t)g->c_out * (size_t)g->c_in * (size_t)(g->kh * g->kw);
}

void KERNEL(conv_pack)(const ct_conv_geometry *g, const float *w, const ptrdiff_t step[4],
                       float *packed) {
    const int tile = ct_conv_tile(g->c_out, MAX_OC);
    for (int first = 0; first < g->c_out; first += tile) {
        int n = g->c_out - first < tile ? g->c_out - first : tile;
        for (int c = 0; c < g->c_in; c++)
            for (int u = 0; u < g->kh; u++)
                for (int v = 0; v < g->kw; v++)
                    for (int o = 0; o < n; o++)
                        *packed++ =
                            w[(first + o) * step[0] + c * step[1] + u * step[2] + v * step[3]];
    }
}

/* Rows and columns of the kernel that meet the picture. */
typedef struct taps {
    int u0, u1, v0, v1;
} taps;

/* Floats from vector to vector of a tile's outputs. */
INLINE size_t y_step(const ct_conv_geometry *g) {
    return WHOLE_PIXEL ? VL : g->y_pixel;
}

INLINE void conv_tile(const ct_conv_geometry *g, const taps *t, const float *x, const float *w,
                      const float *bias, int flags, float *y, const int OC, const int PX,
                      const int KW) {
    vf acc[MAX_OC][MAX_PX];
    const size_t pixel = WHOLE_PIXEL ? VL : (size_t)g->stride * CT_LANES, row = g->x_row;
    const size_t n_columns = KW > 0 ? (size_t)KW : (size_t)(t->v1 - t->v0),
                 w_row = (size_t)g->kw * (size_t)OC;
    const int n_rows = t->u1 - t->u0;
    w += (size_t)t->u0 * w_row + (size_t)(t->v0 * OC);
    x += (size_t)t->v0 * CT_LANES;
    for (int o = 0; o < OC; o++)
        for (int p = 0; p < (WHOLE_PIXEL ? 1 : PX); p++) /* while the sum runs: stores would wait */
            __builtin_prefetch(y + (size_t)o * g->y_channel + (size_t)p * y_step(g), 1);
    for (int o = 0; o < OC; o++)
        for (int p = 0; p < PX; p++) {
            acc[o][p] = bias != NULL ? vset(bias[o]) : vzero();
            if (flags & CT_ACCUMULATE)
                acc[o][p] += vload(y + (size_t)o * g->y_channel + (size_t)p * y_step(g));
        }
    for (int c = 0; c < g->c_in; c++, x += g->x_channel, w += (size_t)g->kh * w_row) {
        const float *xu = x, *wu = w;
        for (int u = 0; u < n_rows; u++, xu += row, wu += w_row) {
            const float *xv = xu, *wv = wu;
#pragma GCC unroll 5
            for (size_t v = 0; v < n_columns; v++, xv += CT_LANES, wv += OC) {
                vf in[MAX_PX];
#pragma GCC unroll 8
                for (int p = 0; p < PX; p++) in[p] = vload(xv + (size_t)p * pixel);
#pragma GCC unroll 8
                for (int o = 0; o < OC; o++) {
                    const vweight w_o = weight_of(wv, o, OC);
#pragma GCC unroll 8
                    for (int p = 0; p < PX; p++) acc[o][p] = add_product(acc[o][p], w_o, in[p]);
                }
            }
        }
    }
    for (int o = 0; o < OC; o++)
        for (int p = 0; p < PX; p++) {
            vf out = flags & CT_RELU ? vmax(acc[o][p], vzero()) : acc[o][p];
            vstore(y + (size_t)o * g->y_channel + (size_t)p * y_step(g), out);
        }
}

/* Columns of the kernel that any of the outputs j .. j+n-1 meets; none: one column of zeros. */
INLINE void clip_columns(const ct_conv_geometry *g, int j, int n, taps *t) {
    t->v0 = g->pad_x - (j + n - 1) * g->stride;
    t->v1 = g->w_in + g->pad_x - j * g->stride;
    if (t->v0 < 0) t->v0 = 0;
    if (t->v1 > g->kw) t->v1 = g->kw;
    if (t->v1 < t->v0) t->v1 = t->v0;
}

/* The usual kernel widths have a loop of their own, unrolled. */
INLINE void full_tile(const ct_conv_geometry *g, const taps *t, const float *x, const float *w,
                      const float *bias, int flags, float *y, const int OC, const int PX) {
    switch (t->v1 - t->v0) {
    case 5: conv_tile(g, t, x, w, bias, flags, y, OC, PX, 5); break;
    case 3: conv_tile(g, t, x, w, bias, flags, y, OC, PX, 3); break;
    default: conv_tile(g, t, x, w, bias, flags, y, OC, PX, 0); break;
    }
}

/* One row of output, OC channels of a tile. */
INLINE void conv_row(const ct_conv_geometry *g, taps t, const float *x, const float *w,
                     const float *bias, int flags, float *y, const int OC) {
    const int PX = VL == 8 && OC > 4 ? 2 : MAX_PX;
    const size_t pixel = (size_t)g->stride * CT_LANES;
    int j = 0;
#if defined(CT_NEON)
    for (; j < g->w_out; j++) {
        clip_columns(g, j, 1, &t);
        full_tile(g, &t, x + (size_t)j * pixel, w, bias, flags, y + (size_t)j * g->y_pixel, OC, PX);
    }
#else
    for (; j + PX <= g->w_out; j += PX) {
        clip_columns(g, j, PX, &t);
        full_tile(g, &t, x + (size_t)j * pixel, w, bias, flags, y + (size_t)j * g->y_pixel, OC, PX);
    }
    x += (size_t)j * pixel;
    y += (size_t)j * g->y_pixel;
    clip_columns(g, j, g->w_out - j, &t);
    switch (g->w_out - j) {
    case 3: conv_tile(g, &t, x, w, bias, flags, y, OC, MAX_PX < 3 ? MAX_PX : 3, 0); break;
    case 2: conv_tile(g, &t, x, w, bias, flags, y, OC, 2, 0); break;
    case 1: conv_tile(g, &t, x, w, bias, flags, y, OC, 1, 0); break;
    default: break;
    }
#endif
}

static void row_of_tile(const ct_conv_geometry *g, const taps *t, const float *x, const float *w,
                        const float *bias, int flags, float *y, int n_channels) {
    switch (n_channels) {
#if VL > 4 || REGISTERS == 32
    case 6: conv_row(g, *t, x, w, bias, flags, y, 6); break;
    case 5: conv_row(g, *t, x, w, bias, flags, y, 5); break;
#endif
    case 4: conv_row(g, *t, x, w, bias, flags, y, 4); break;
    case 3: conv_row(g, *t, x, w, bias, flags, y, 3); break;
    case 2: conv_row(g, *t, x, w, bias, flags, y, 2); break;
    default: conv_row(g, *t, x, w, bias, flags, y, 1); break;
    }
}

void KERNEL(conv)(const ct_conv_geometry *g, const float *x, const float *packed, const float *bias,
                  int flags, float *y) {
    const int tile = ct_conv_tile(g->c_out, MAX_OC);
    const size_t per_channel = (size_t)g->c_in * (size_t)(g->kh * g->kw);
    for (int i = 0; i < g->h_out; i++) {
        const int top = i * g->stride - g->pad_y; /* input row of the kernel's first */
        taps t = {.u0 = top < 0 ? -top : 0, .u1 = g->h_in - top < g->kh ? g->h_in - top : g->kh};
        if (t.u1 < t.u0) t.u1 = t.u0;
        const float *xi = x + (ptrdiff_t)(top + t.u0) * (ptrdiff_t)g->x_row;
        float *yi = y + (size_t)i * g->y_row;
        for (int first = 0; first < g->c_out; first += tile) {
            int n = g->c_out - first < tile ? g->c_out - first : tile;
            for (int part = 0; part < CT_LANES; part += WHOLE_PIXEL ? CT_LANES : VL)
                row_of_tile(g, &t, xi + part, packed + (size_t)first * per_channel,
                            bias != NULL ? bias + first : NULL, flags,
                            yi + (size_t)first * g->y_channel + part, n);
        }
    }
}
