/* Every kernel of the cpu backend: KERNEL_FN(result, name, (arguments)). No include guard: the
 * struct of function pointers, the prototypes and the tables are made from this list.
 *
 * Lanes layout: a block holds 16 samples, [channels][height][width][16]; a vector is one pixel of
 * 16 samples. Pointers to such tensors are aligned to 64 bytes; pointers into parameter rows
 * (weights, gradients of weights) are not. Kernels take one block unless they say n_blocks; then
 * the argument after a tensor is the distance between its blocks, in floats. */

/* --- Winograd, 3x3, pad 1: stride 1 by tiles of 4x4 or 8x8 output pixels, stride 2 of 4x4 --- */
KERNEL_FN(const ct_winograd *, winograd, (int stride, int tile))

/* --- Winograd for 5x5, forward F(4x4,5x5), gradients F(2x2,5x5); stride 1, no border, even output,
 * with bias, relu and 2x2 max pooling: blocks of x [c_in][h][w][16], y of the pooled output ---
 */
KERNEL_FN(size_t, winograd5_pool_scratch, (const ct_conv5_geometry *g)) /* floats */
/* index (may be NULL), laid out as y, says which of a window's pixels is the first largest, 0 to 3 row
 * by row, 4 where none is positive. */
KERNEL_FN(void, winograd5_pool,
          (const ct_conv5_geometry *g, const float *x, const float *w, const float *bias,
           int n_blocks, float *y, uint8_t *index, float *scratch))
/* By that index, the gradient dx [c][h_out][w_out][16] at the convolution's output. */
KERNEL_FN(void, conv_unpool,
          (const float *dy, const uint8_t *index, int c, int h_out, int w_out, float *dx))
KERNEL_FN(size_t, winograd5_backward_scratch, (const ct_conv5_geometry *g)) /* floats */
/* dw, and unless dx is NULL dx (accumulate: added to it), from dy [c_out][h-4][w-4][16]. */
KERNEL_FN(void, winograd5_backward,
          (const ct_conv5_geometry *g, const float *x, const float *w, const float *dy,
           int n_blocks, bool accumulate, float *dx, float *dw, float *scratch))

/* --- F(4,5) along rows, for few input channels, with a border of g->pad zeros; else as above ---
 */
KERNEL_FN(size_t, rows5_scratch, (const ct_conv5_geometry *g)) /* floats */
KERNEL_FN(void, rows5_pool,
          (const ct_conv5_geometry *g, const float *x, const float *w, const float *bias,
           int n_blocks, float *y, uint8_t *index, float *scratch))
/* dw and db (may be NULL) from dy and index of the pooled output. */
KERNEL_FN(void, rows5_backward,
          (const ct_conv5_geometry *g, const float *x, const float *dy, const uint8_t *index,
           int n_blocks, float *dw, float *db, float *scratch))

/* --- direct convolution of one group, any rectangular kernel and stride --- */
KERNEL_FN(size_t, conv_pack_size, (const ct_conv_geometry *g)) /* floats */
/* Weights in the order the tiles read them; the weight of output o, input c, tap (u, v) is
 * w[o * step[0] + c * step[1] + u * step[2] + v * step[3]]. */
KERNEL_FN(void, conv_pack,
          (const ct_conv_geometry *g, const float *w, const ptrdiff_t step[4], float *packed))
/* bias may be NULL; flags: CT_RELU, CT_ACCUMULATE (y += instead of y =). */
KERNEL_FN(void, conv,
          (const ct_conv_geometry *g, const float *x, const float *packed, const float *bias,
           int flags, float *y))
/* dw [c_out][c_in][kh][kw] = the sum over the blocks; dy is dense, [c_out][h_out][w_out][16]. */
KERNEL_FN(void, conv_wgrad,
          (const ct_conv_geometry *g, const float *x, size_t x_block, const float *dy,
           size_t dy_block, int n_blocks, float *dw))

/* --- depthwise 3x3 convolution; w [c][3][3]; an EvoNorm (may be NULL) with its stats is
 * applied to x as it is read ---
 */
KERNEL_FN(size_t, depthwise_scratch, (const ct_depthwise_geometry *g)) /* floats */
KERNEL_FN(void, depthwise,
          (const ct_depthwise_geometry *g, const float *x, const ct_norm_args *norm,
           const float *stats, const float *w, const float *bias, int flags, float *y,
           float *scratch))
/* dw (add_weights: added to it), and unless dx is NULL dx; flags: CT_ACCUMULATE, of dx. */
KERNEL_FN(void, depthwise_backward,
          (const ct_depthwise_geometry *g, const float *x, const ct_norm_args *norm,
           const float *stats, const float *dy, const float *w, int flags, bool add_weights,
           float *dx, float *dw, float *scratch))

/* --- products of matrices --- */
/* y[o] = bias[o] + sum_i w(o, i) x[i] for every column: a linear layer, a 1x1 convolution or, with
 * the steps of w exchanged, their data gradient. */
KERNEL_FN(void, linear,
          (const ct_linear_geometry *g, const float *w, const float *x, const float *bias,
           int flags, float *y))
/* c[i][j] (+)= sum_k a(i, k) b[k][j], i < m, j < n: the weight gradient of linear layers and 1x1
 * convolutions. k runs through n_segments segments of `segment`; a(i, .) of one segment is
 * contiguous, a_row from i to i, a_segment from segment to segment. b is aligned, b_row a multiple
 * of 16 and its columns n .. b_row-1 readable. */
KERNEL_FN(void, outer,
          (int m, int n, int n_segments, int segment, const float *a, size_t a_row,
           size_t a_segment, const float *b, size_t b_row, bool accumulate, float *c, size_t c_row))
/* c[i c_row + j c_column] (+)= sum_k a[i row + k] b[j row + k], i < m, j < n, over the samples of
 * n_pixels pixels: the same from tensors in lanes. Best where 4 divides m and 6 divides n. */
KERNEL_FN(void, lanes_outer,
          (int m, int n, int n_pixels, const float *a, const float *b, size_t row, bool accumulate,
           float *c, size_t c_row, size_t c_column))
/* out[(p * 16 + lane) * row + c] = x[c * channel + p * 16 + lane] for n_pixels pixels; columns up
 * to the next multiple of 16 become 0. */
KERNEL_FN(void, transpose,
          (const float *x, size_t channel, int n_channels, int n_pixels, float *out, size_t row))

/* --- planes --- */
/* Copies c planes into the middle of wider ones, with zero columns before and after, taking every
 * step-th pixel. */
KERNEL_FN(void, pad,
          (const float *x, int c, int h, int w, int step, const ct_padding *padding, float *out))
KERNEL_FN(void, bias_relu, (float *y, int c, size_t n_pixels, const float *bias, bool relu))
/* sums[c] = the sum of channel c over pixels, samples and blocks */
KERNEL_FN(void, channel_sums,
          (const float *x, size_t x_block, int n_blocks, int c, size_t n_pixels, float *sums))
KERNEL_FN(void, maxpool, (const float *x, const ct_pool_geometry *g, float *y))
KERNEL_FN(void, maxpool_backward,
          (const float *x, const float *y, const float *dy, const ct_pool_geometry *g, float *dx))
KERNEL_FN(void, avgpool, (const float *x, int c, size_t n_pixels, float *y))
KERNEL_FN(void, avgpool_backward, (const float *dy, int c, size_t n_pixels, float *dx))

/* --- n floats, n a multiple of 16; outputs may be inputs --- */
KERNEL_FN(void, relu, (const float *x, size_t n, float *y))
KERNEL_FN(void, relu_backward, (const float *y, const float *dy, size_t n, float *dx))
KERNEL_FN(void, add, (const float *a, const float *b, size_t n, float *y))
/* y = sum_k coef[k] * x[k], n_terms >= 0 */
KERNEL_FN(void, lincomb,
          (size_t n, int n_terms, const float *coef, const float *const *x, float *y))

/* --- EvoNorm and GroupNorm, all blocks; stats [blocks][groups][2][16]: mean and 1 / sigma per
 * sample --- */
/* The statistics of one group. */
KERNEL_FN(void, norm_stats, (const ct_norm_args *norm, const float *x, int group, float *stats))
/* y; residual (may be NULL) is added to it. The statistics are made, unless they are there. */
KERNEL_FN(void, norm,
          (const ct_norm_args *norm, const float *x, const float *residual, bool has_stats,
           float *stats, float *y))
KERNEL_FN(void, norm_backward,
          (const ct_norm_args *norm, const float *x, const float *dy, const float *stats,
           float *dx))
/* y of pixels first .. first+n-1 of one block, channels of y `row` floats apart. */
KERNEL_FN(void, norm_pixels,
          (const ct_norm_args *norm, const float *x, int first, int n, const float *stats, float *y,
           size_t row))

/* --- BatchNorm, all blocks; stats [2][c]: mean and biased variance of the batch --- */
KERNEL_FN(void, batch_moments, (const ct_norm_args *norm, const float *x, float *stats))
KERNEL_FN(void, batchnorm,
          (const ct_norm_args *norm, const float *x, const float *stats, const float *residual,
           float *y))
KERNEL_FN(void, batchnorm_backward,
          (const ct_norm_args *norm, const float *x, const float *dy, const float *stats,
           float *dx))

/* --- measuring --- */
/* n_rounds of independent multiply-adds in registers; returns the floating-point operations done */
KERNEL_FN(double, multiply_adds, (long n_rounds, float *out))
