/* Pooling in lanes.
 *   maxpool: y[i][j] = max over the window's pixels inside the picture; its gradient goes to the
 *   first largest pixel, row by row. avgpool: the mean over height and width. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

#include <string.h>

typedef struct window {
    int y0, y1, x0, x1; /* pixels y0 .. y1-1, x0 .. x1-1 */
} window;

/* SIDE: of windows side by side without a border, whose bounds are known when this is compiled; 0: of
 * any other. */
INLINE window window_at(const ct_pool_geometry *g, int i, int j, const int SIDE) {
    if (SIDE > 0) return (window){i * SIDE, (i + 1) * SIDE, j * SIDE, (j + 1) * SIDE};
    window s = {i * g->stride - g->pad, 0, j * g->stride - g->pad, 0};
    s.y1 = s.y0 + g->kernel < g->h ? s.y0 + g->kernel : g->h;
    s.x1 = s.x0 + g->kernel < g->w ? s.x0 + g->kernel : g->w;
    if (s.y0 < 0) s.y0 = 0;
    if (s.x0 < 0) s.x0 = 0;
    return s;
}

INLINE void forward(const float *x, const ct_pool_geometry *g, float *y, const int SIDE) {
    const size_t row = (size_t)g->w * CT_LANES;
    for (int c = 0; c < g->c; c++, x += (size_t)g->h * row)
        for (int i = 0; i < g->h_out; i++)
            for (int j = 0; j < g->w_out; j++, y += CT_LANES) {
                const window s = window_at(g, i, j, SIDE);
                for (int part = 0; part < CT_LANES; part += VL) {
                    const float *from = x + part;
                    vf most = vload(from + (size_t)s.y0 * row + (size_t)(s.x0 * CT_LANES));
                    for (int u = s.y0; u < s.y1; u++)
                        for (int v = s.x0; v < s.x1; v++)
                            most =
                                vmax(vload(from + (size_t)u * row + (size_t)(v * CT_LANES)), most);
                    vstore(y + part, most);
                }
            }
}

static bool is_plain_2(const ct_pool_geometry *g) {
    return g->kernel == 2 && g->stride == 2 && g->pad == 0;
}

void KERNEL(maxpool)(const float *x, const ct_pool_geometry *g, float *y) {
    if (is_plain_2(g))
        forward(x, g, y, 2);
    else
        forward(x, g, y, 0);
}

/* Windows that are known do not overlap: their pixels are written, others' added to. */
INLINE void backward(const float *x, const float *y, const float *dy, const ct_pool_geometry *g,
                     float *dx, const int SIDE) {
    const size_t row = (size_t)g->w * CT_LANES, plane = (size_t)g->h * row;
    for (int c = 0; c < g->c; c++, x += plane, dx += plane)
        for (int i = 0; i < g->h_out; i++)
            for (int j = 0; j < g->w_out; j++, y += CT_LANES, dy += CT_LANES) {
                const window s = window_at(g, i, j, SIDE);
                for (int part = 0; part < CT_LANES; part += VL) {
                    vf most = vload(y + part), d = vload(dy + part);
                    for (int u = s.y0; u < s.y1; u++)
                        for (int v = s.x0; v < s.x1; v++) {
                            size_t at = (size_t)u * row + (size_t)(v * CT_LANES + part);
                            vi hit = vload(x + at) == most;
                            vf share = vkeep(hit, d);
                            vstore(dx + at, SIDE > 0 ? share : vload(dx + at) + share);
                            d = vkeep(~hit, d); /* later equals get nothing */
                        }
                }
            }
}

void KERNEL(maxpool_backward)(const float *x, const float *y, const float *dy,
                              const ct_pool_geometry *g, float *dx) {
    const bool covers = is_plain_2(g) && g->h == 2 * g->h_out && g->w == 2 * g->w_out;
    const size_t n = (size_t)(g->c * g->h * g->w) * CT_LANES;
    if (!covers) memset(dx, 0, n * sizeof *dx);
    if (is_plain_2(g))
        backward(x, y, dy, g, dx, 2);
    else
        backward(x, y, dy, g, dx, 0);
}

void KERNEL(avgpool)(const float *x, int c, size_t n_pixels, float *y) {
    const float scale = 1.0f / (float)n_pixels;
    for (int k = 0; k < c; k++, x += n_pixels * CT_LANES, y += CT_LANES)
        for (int part = 0; part < CT_LANES; part += VL) {
            vf sum = vzero();
            for (size_t p = 0; p < n_pixels; p++) sum += vload(x + p * CT_LANES + part);
            vstore(y + part, sum * scale);
        }
}

void KERNEL(avgpool_backward)(const float *dy, int c, size_t n_pixels, float *dx) {
    const float scale = 1.0f / (float)n_pixels;
    for (int k = 0; k < c; k++, dy += CT_LANES, dx += n_pixels * CT_LANES)
        for (int part = 0; part < CT_LANES; part += VL) {
            vf d = vload(dy + part) * scale;
            for (size_t p = 0; p < n_pixels; p++) vstore(dx + p * CT_LANES + part, d);
        }
}
