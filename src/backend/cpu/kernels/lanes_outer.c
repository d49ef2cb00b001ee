/* The weight gradient of narrow 1x1 convolutions, from tensors in lanes as they are.
 *   c[i][j] = sum_k a[i][k] b[j][k], k over pixels and samples; 2 flops per (i, j, k)
 * 4 x N_TILE accumulators hold vectors of samples; their lanes are added up once per call. No
 * operand is transposed (matrix.c: outer), which pays where few channels share the cost of it. */
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/reduce.h"

enum { M_TILE = 4, N_TILE = REGISTERS == 32 ? 6 : 2 };

typedef struct lanes_args {
    int n_floats;
    const float *a, *b;
    size_t row;
    bool accumulate;
    float *c;
    size_t c_row, c_column;
} lanes_args;

/* Rows i .. i+M-1, columns j .. j+N-1. */
INLINE void lanes_tile(const lanes_args *t, int i, int j, const int M, const int N) {
    vf sum[M_TILE * N_TILE] = {0};
    float total[M_TILE * N_TILE] = {0};
    const float *a = t->a + (size_t)i * t->row, *b = t->b + (size_t)j * t->row;
    for (int k = 0; k < t->n_floats; k += VL, a += VL, b += VL) {
        vf y[N_TILE];
#pragma GCC unroll 6
        for (int q = 0; q < N; q++) y[q] = in_register(vload(b + (size_t)q * t->row));
#pragma GCC unroll 4
        for (int p = 0; p < M; p++) {
            vf x = in_register(vload(a + (size_t)p * t->row));
#pragma GCC unroll 6
            for (int q = 0; q < N; q++) sum[p * N + q] += x * y[q];
        }
    }
    int k = 0;
    for (; k + 8 <= M * N; k += 8) reduce(sum + k, total + k);
    for (; k < M * N; k++) total[k] = vsum(sum[k]);
    float *c = t->c + (size_t)i * t->c_row + (size_t)j * t->c_column;
    for (int p = 0; p < M; p++)
        for (int q = 0; q < N; q++) {
            float *at = c + (size_t)p * t->c_row + (size_t)q * t->c_column;
            *at = t->accumulate ? *at + total[p * N + q] : total[p * N + q];
        }
}

/* All rows of N columns, which stay in the first-level cache. */
INLINE void lanes_columns(const lanes_args *t, int m, int j, const int N) {
    int i = 0;
    for (; i + M_TILE <= m; i += M_TILE) lanes_tile(t, i, j, M_TILE, N);
    for (; i < m; i++) lanes_tile(t, i, j, 1, N);
}

void KERNEL(lanes_outer)(int m, int n, int n_pixels, const float *a, const float *b, size_t row,
                         bool accumulate, float *c, size_t c_row, size_t c_column) {
    const lanes_args t = {n_pixels * CT_LANES, a, b, row, accumulate, c, c_row, c_column};
    int j = 0;
#if REGISTERS == 32
    for (; n - j == 6 || n - j >= 10; j += 6) lanes_columns(&t, m, j, 6);
    for (; n - j >= 4; j += 4) lanes_columns(&t, m, j, 4);
#else
    for (; n - j >= 2; j += 2) lanes_columns(&t, m, j, 2);
#endif
    for (; j < n; j++) lanes_columns(&t, m, j, 1);
}
