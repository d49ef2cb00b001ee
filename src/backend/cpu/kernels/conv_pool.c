/* Convolution, bias, relu and 2x2 max pooling in one: the convolution's output is never stored.
 *   y[o][i][j] = max(0, max over a, b in {0, 1} of conv(x)[o][2i + a][2j + b])
 *   index      = which of the four (2a + b) is the first largest; 4 where none is positive
 * 2 c_in kh kw flops per output of the convolution and sample. A tile is OC channels x one window
 * in registers. The input is padded on all sides; g's output is the convolution's, even in both
 * directions; y_channel, y_row, y_pixel are those of the pooled output. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"
#include "backend/cpu/kernels/window.h"

/* Channels in registers at a time, of a packed tile of TILE: four accumulators each. */
enum { MAX_TILE = VL == 4 ? 4 : 6, MAX_SUB = VL == 16 ? 6 : VL == 8 ? 3 : 2 };

INLINE void window_tile(const ct_conv_geometry *g, const float *x, const float *w,
                        const float *bias, float *y, uint8_t *index, const int OC, const int TILE,
                        const int KW) {
    vf acc[MAX_SUB][4];
    const size_t kw = KW > 0 ? (size_t)KW : (size_t)g->kw, row = g->x_row;
#pragma GCC unroll 8
    for (int o = 0; o < OC; o++)
        for (int q = 0; q < 4; q++) acc[o][q] = bias != NULL ? vset(bias[o]) : vzero();
    for (int c = 0; c < g->c_in; c++, x += g->x_channel) {
        const float *xu = x;
        for (int u = 0; u < g->kh; u++, xu += row) {
            const float *xv = xu;
#pragma GCC unroll 5
            for (size_t v = 0; v < kw; v++, xv += CT_LANES, w += TILE) {
                vf in[4] = {vload(xv), vload(xv + CT_LANES), vload(xv + row),
                            vload(xv + row + CT_LANES)};
#pragma GCC unroll 8
                for (int o = 0; o < OC; o++) {
                    vf weight = vset(w[o]);
#pragma GCC unroll 4
                    for (int q = 0; q < 4; q++) acc[o][q] += weight * in[q];
                }
            }
        }
    }
#pragma GCC unroll 8
    for (int o = 0; o < OC; o++)
        store_window(acc[o], y + (size_t)o * g->y_channel,
                     index != NULL ? index + (size_t)o * g->y_channel : NULL);
}

/* One row of windows for OC channels. */
INLINE void window_row(const ct_conv_geometry *g, const float *x, const float *w, const float *bias,
                       float *y, uint8_t *index, const int OC, const int TILE) {
    for (int j = 0; j < g->w_out / 2; j++, x += 2 * CT_LANES, y += g->y_pixel) {
        if (g->kw == 5)
            window_tile(g, x, w, bias, y, index, OC, TILE, 5);
        else if (g->kw == 3)
            window_tile(g, x, w, bias, y, index, OC, TILE, 3);
        else
            window_tile(g, x, w, bias, y, index, OC, TILE, 0);
        if (index != NULL) index += g->y_pixel;
    }
}

/* A packed tile of n channels, a few of them at a time. */
static void row_of_tile(const ct_conv_geometry *g, const float *x, const float *w,
                        const float *bias, float *y, uint8_t *index, int n) {
    int o = 0;
#define ROW_OF(oc, tile)                                                                           \
    window_row(g, x, w + o, bias != NULL ? bias + o : NULL, y + (size_t)o * g->y_channel,          \
               index != NULL ? index + (size_t)o * g->y_channel : NULL, oc, tile)
    if (n == MAX_TILE)
        for (; o + MAX_SUB <= n; o += MAX_SUB) ROW_OF(MAX_SUB, MAX_TILE);
    else if (n == 4)
        for (; o + (VL == 16 ? 4 : 2) <= n; o += VL == 16 ? 4 : 2) ROW_OF((VL == 16 ? 4 : 2), 4);
    else
        for (; o < n; o++) ROW_OF(1, n);
#undef ROW_OF
}

void KERNEL(conv_pool)(const ct_conv_geometry *g, const float *x, const float *packed,
                       const float *bias, float *y, uint8_t *index) {
    const int tile = ct_conv_tile(g->c_out, VL);
    const size_t per_channel = (size_t)g->c_in * (size_t)(g->kh * g->kw);
    for (int i = 0; i < g->h_out / 2; i++)
        for (int first = 0; first < g->c_out; first += tile) {
            int n = g->c_out - first < tile ? g->c_out - first : tile;
            size_t at = (size_t)i * g->y_row + (size_t)first * g->y_channel;
            for (int part = 0; part < CT_LANES; part += VL)
                row_of_tile(g, x + (size_t)(2 * i) * g->x_row + part,
                            packed + (size_t)first * per_channel,
                            bias != NULL ? bias + first : NULL, y + at + part,
                            index != NULL ? index + at + part : NULL, n);
        }
}

/* dx of the convolution's output from dy of the pooled one, all four pixels of every window. */
void KERNEL(conv_unpool)(const float *dy, const uint8_t *index, int c, int h_out, int w_out,
                         float *dx) {
    const size_t row = (size_t)w_out * CT_LANES;
    for (int i = 0; i < c * h_out / 2; i++, dx += 2 * row)
        for (size_t k = 0; k < row / 2; k += VL, dy += VL, index += VL) {
            const size_t at = k / CT_LANES * 2 * CT_LANES + k % CT_LANES;
            const vf d = vload(dy);
            vstore(dx + at, share_of(index, 0, d));
            vstore(dx + at + CT_LANES, share_of(index, 1, d));
            vstore(dx + at + row, share_of(index, 2, d));
            vstore(dx + at + row + CT_LANES, share_of(index, 3, d));
        }
}
