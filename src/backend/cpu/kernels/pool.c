/* Pooling in lanes.
 *   maxpool: y[i][j] = max over the window's pixels inside the picture; its gradient goes to the
 *   first largest pixel, row by row. avgpool: the mean over height and width. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

#include <string.h>

typedef struct window {
    int y0, y1, x0, x1; /* pixels y0 .. y1-1, x0 .. x1-1 */
} window;

static window window_at(const ct_pool_geometry *g, int i, int j) {
    window s = {i * g->stride - g->pad, 0, j * g->stride - g->pad, 0};
    s.y1 = s.y0 + g->kernel < g->h ? s.y0 + g->kernel : g->h;
    s.x1 = s.x0 + g->kernel < g->w ? s.x0 + g->kernel : g->w;
    if (s.y0 < 0) s.y0 = 0;
    if (s.x0 < 0) s.x0 = 0;
    return s;
}

static void maxpool_any(const float *x, const ct_pool_geometry *g, float *y) {
    const size_t row = (size_t)g->w * CT_LANES;
    for (int i = 0; i < g->h_out; i++)
        for (int j = 0; j < g->w_out; j++, y += CT_LANES) {
            window s = window_at(g, i, j);
            for (int part = 0; part < CT_LANES; part += VL) {
                vf most = vload(x + (size_t)s.y0 * row + (size_t)(s.x0 * CT_LANES + part));
                for (int u = s.y0; u < s.y1; u++)
                    for (int v = s.x0; v < s.x1; v++)
                        most =
                            vmax(vload(x + (size_t)u * row + (size_t)(v * CT_LANES + part)), most);
                vstore(y + part, most);
            }
        }
}

/* 2x2 windows side by side. */
static void maxpool_2(const float *x, const ct_pool_geometry *g, float *y) {
    const size_t row = (size_t)g->w * CT_LANES;
    for (int i = 0; i < g->h_out; i++, x += 2 * row) {
        const float *p = x;
        for (int j = 0; j < g->w_out; j++, p += 2 * CT_LANES)
            for (int part = 0; part < CT_LANES; part += VL, y += VL) {
                const float *q = p + part;
                vf top = vmax(vload(q), vload(q + CT_LANES));
                vf bottom = vmax(vload(q + row), vload(q + row + CT_LANES));
                vstore(y, vmax(top, bottom));
            }
    }
}

static bool is_plain_2(const ct_pool_geometry *g) {
    return g->kernel == 2 && g->stride == 2 && g->pad == 0;
}

void KERNEL(maxpool)(const float *x, const ct_pool_geometry *g, float *y) {
    const size_t from = (size_t)g->h * (size_t)g->w * CT_LANES;
    const size_t to = (size_t)g->h_out * (size_t)g->w_out * CT_LANES;
    for (int c = 0; c < g->c; c++, x += from, y += to) {
        if (is_plain_2(g))
            maxpool_2(x, g, y);
        else
            maxpool_any(x, g, y);
    }
}

static void backward_any(const float *x, const float *y, const float *dy, const ct_pool_geometry *g,
                         float *dx) {
    const size_t row = (size_t)g->w * CT_LANES;
    for (int i = 0; i < g->h_out; i++)
        for (int j = 0; j < g->w_out; j++, y += CT_LANES, dy += CT_LANES) {
            window s = window_at(g, i, j);
            for (int part = 0; part < CT_LANES; part += VL) {
                vf most = vload(y + part), d = vload(dy + part);
                for (int u = s.y0; u < s.y1; u++)
                    for (int v = s.x0; v < s.x1; v++) {
                        size_t at = (size_t)u * row + (size_t)(v * CT_LANES + part);
                        vi hit = vload(x + at) == most;
                        vstore(dx + at, vload(dx + at) + vkeep(hit, d));
                        d = vkeep(~hit, d); /* later equals get nothing */
                    }
            }
        }
}

INLINE vf take(vi hit, vf *left) {
    vf got = vkeep(hit, *left);
    *left = vkeep(~hit, *left);
    return got;
}

static void backward_2(const float *x, const float *y, const float *dy, const ct_pool_geometry *g,
                       float *dx) {
    const size_t row = (size_t)g->w * CT_LANES;
    for (int i = 0; i < g->h_out; i++)
        for (int j = 0; j < g->w_out; j++)
            for (int part = 0; part < CT_LANES; part += VL, y += VL, dy += VL) {
                size_t at = (size_t)(2 * i) * row + (size_t)(2 * j * CT_LANES + part);
                const float *q = x + at;
                float *to = dx + at;
                vf most = vload(y), d = vload(dy);
                vstore(to, take(vload(q) == most, &d));
                vstore(to + CT_LANES, take(vload(q + CT_LANES) == most, &d));
                vstore(to + row, take(vload(q + row) == most, &d));
                vstore(to + row + CT_LANES, take(vload(q + row + CT_LANES) == most, &d));
            }
}

void KERNEL(maxpool_backward)(const float *x, const float *y, const float *dy,
                              const ct_pool_geometry *g, float *dx) {
    const size_t from = (size_t)g->h * (size_t)g->w * CT_LANES;
    const size_t to = (size_t)g->h_out * (size_t)g->w_out * CT_LANES;
    const bool covers = is_plain_2(g) && g->h == 2 * g->h_out && g->w == 2 * g->w_out;
    if (!covers) memset(dx, 0, (size_t)g->c * from * sizeof *dx);
    for (int c = 0; c < g->c; c++, x += from, dx += from, y += to, dy += to) {
        if (is_plain_2(g))
            backward_2(x, y, dy, g, dx);
        else
            backward_any(x, y, dy, g, dx);
    }
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
