/* Moving and combining tensors in lanes: memory-bound loops, one pass each. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/turn.h"
#include "backend/cpu/kernels/vector.h"

#include <string.h>

#if VL == 16
/* A 16 x 16 transpose: rows from `x` (step apart), rows to `out` (row apart). 64 shuffles. */
static void transpose_16(const float *x, size_t step, float *out, size_t row) {
    __m512 r[16], t[16];
    for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_ps(x + (size_t)i * step);
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int k = 0; k < 2; k++) {
            __m512d a = _mm512_castps_pd(t[i + k]), b = _mm512_castps_pd(t[i + 2 + k]);
            r[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            r[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    for (int i = 0; i < 16; i += 8)
        for (int k = 0; k < 4; k++) {
            t[i + k] = _mm512_shuffle_f32x4(r[i + k], r[i + 4 + k], 0x88);
            t[i + 4 + k] = _mm512_shuffle_f32x4(r[i + k], r[i + 4 + k], 0xdd);
        }
    for (int k = 0; k < 8; k++) {
        _mm512_storeu_ps(out + (size_t)k * row, _mm512_shuffle_f32x4(t[k], t[8 + k], 0x88));
        _mm512_storeu_ps(out + (size_t)(k + 8) * row, _mm512_shuffle_f32x4(t[k], t[8 + k], 0xdd));
    }
}
#elif defined(CT_NEON)
static void transpose_16(const float *x, size_t step, float *out, size_t row) {
    for (size_t lane = 0; lane < CT_LANES; lane += 4)
        for (size_t i = 0; i < CT_LANES; i += 4) {
            const float *from = x + i * step + lane;
            float *to = out + lane * row + i;
            turn_4x4((const float *[]){from, from + step, from + 2 * step, from + 3 * step},
                     (float *[]){to, to + row, to + 2 * row, to + 3 * row});
        }
}
#else
static void transpose_16(const float *x, size_t step, float *out, size_t row) {
    for (int lane = 0; lane < CT_LANES; lane++)
        for (int i = 0; i < CT_LANES; i++)
            out[(size_t)lane * row + (size_t)i] = x[(size_t)i * step + (size_t)lane];
}
#endif

void KERNEL(transpose)(const float *x, size_t channel, int n_channels, int n_pixels, float *out,
                       size_t row) {
    for (int p = 0; p < n_pixels; p++) {
        const float *xp = x + (size_t)p * CT_LANES;
        float *to = out + (size_t)p * CT_LANES * row;
        int c = 0;
        for (; c + CT_LANES <= n_channels; c += CT_LANES)
            transpose_16(xp + (size_t)c * channel, channel, to + c, row);
        if (c == n_channels) continue;
        float rest[CT_LANES * CT_LANES] = {0};
        for (int i = c; i < n_channels; i++)
            memcpy(rest + (i - c) * CT_LANES, xp + (size_t)i * channel, CT_LANES * sizeof *rest);
        transpose_16(rest, CT_LANES, to + c, row);
    }
}

void KERNEL(pad)(const float *x, int c, int h, int w, int step, const ct_padding *padding,
                 float *out) {
    const int h_in = (h + step - 1) / step, w_in = (w + step - 1) / step;
    const size_t pixel = CT_LANES * sizeof *out;
    for (int k = 0; k < c; k++)
        for (int i = 0; i < h_in; i++) {
            const float *row =
                x + ((size_t)k * (size_t)h + (size_t)(i * step)) * (size_t)w * CT_LANES;
            memset(out, 0, (size_t)padding->before_x * pixel);
            out += padding->before_x * CT_LANES;
            if (step == 1)
                memcpy(out, row, (size_t)w_in * pixel);
            else
                for (int j = 0; j < w_in; j++)
                    memcpy(out + j * CT_LANES, row + j * step * CT_LANES, pixel);
            out += w_in * CT_LANES;
            memset(out, 0, (size_t)padding->after_x * pixel);
            out += padding->after_x * CT_LANES;
        }
}

void KERNEL(bias_relu)(float *y, int c, size_t n_pixels, const float *bias, bool relu) {
    const size_t n = n_pixels * CT_LANES;
    for (int k = 0; k < c; k++, y += n) {
        vf b = bias != NULL ? vset(bias[k]) : vzero();
        for (size_t i = 0; i < n; i += VL) {
            vf v = vload(y + i) + b;
            vstore(y + i, relu ? vmax(v, vzero()) : v);
        }
    }
}

void KERNEL(channel_sums)(const float *x, size_t x_block, int n_blocks, int c, size_t n_pixels,
                          float *sums) {
    const size_t n = n_pixels * CT_LANES;
    for (int k = 0; k < c; k++) {
        vf a = vzero(), b = vzero();
        for (int block = 0; block < n_blocks; block++) {
            const float *plane = x + (size_t)block * x_block + (size_t)k * n;
            size_t i = 0;
            for (; i + 2 * VL <= n; i += 2 * VL) {
                a += vload(plane + i);
                b += vload(plane + i + VL);
            }
            if (i < n) a += vload(plane + i);
        }
        sums[k] = vsum(a + b);
    }
}

void KERNEL(relu)(const float *x, size_t n, float *y) {
    for (size_t i = 0; i < n; i += VL) vstore(y + i, vmax(vload(x + i), vzero()));
}

void KERNEL(relu_backward)(const float *y, const float *dy, size_t n, float *dx) {
    for (size_t i = 0; i < n; i += VL) vstore(dx + i, vkeep(vload(y + i) > vzero(), vload(dy + i)));
}

void KERNEL(add)(const float *a, const float *b, size_t n, float *y) {
    for (size_t i = 0; i < n; i += VL) vstore(y + i, vload(a + i) + vload(b + i));
}

/* N vectors of the sum; they stay in registers, so a target that is one of its terms is read before
 * it is written. */
INLINE void lincomb_at(size_t i, int n_terms, const float *coef, const float *const *x, float *y,
                       const int N) {
    vf sum[8];
#pragma GCC unroll 8
    for (int p = 0; p < N; p++) sum[p] = vzero();
    for (int k = 0; k < n_terms; k++) {
        const vf weight = vset(coef[k]);
        const float *term = x[k] + i;
#pragma GCC unroll 8
        for (int p = 0; p < N; p++) sum[p] += weight * vload(term + p * VL);
    }
#pragma GCC unroll 8
    for (int p = 0; p < N; p++) vstore(y + i + p * VL, sum[p]);
}

void KERNEL(lincomb)(size_t n, int n_terms, const float *coef, const float *const *x, float *y) {
    size_t i = 0;
    for (; i + 8 * VL <= n; i += 8 * VL) lincomb_at(i, n_terms, coef, x, y, 8);
    for (; i < n; i += VL) lincomb_at(i, n_terms, coef, x, y, 1);
}
