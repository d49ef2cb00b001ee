/* The pictures of a batch, cut out, flipped and normalised, in lanes: row by row for 16 samples, so
 * that the row being written stays in the first-level cache. */
#include "backend/cpu/cpu_internal.h"

/* One row of one sample: out[x * 16] for x = 0 .. width-1. */
static void load_row(const uint8_t *row, int width, const ct_crop *crop, const float *table,
                     float *out) {
    /* the stored pixel of x is x + dx, or with flip (width - 1 - x) + dx */
    const int step = crop->flip ? -1 : 1, at = crop->flip ? width - 1 + crop->dx : crop->dx;
    int begin = crop->flip ? at - width + 1 : -at, end = crop->flip ? at + 1 : width - at;
    if (begin < 0) begin = 0;
    if (end > width) end = width;
    if (row == NULL || begin > end) begin = end = 0;
    const float black = table[0];
    for (int x = 0; x < begin; x++) out[x * CT_LANES] = black;
    for (int x = end; x < width; x++) out[x * CT_LANES] = black;
    if (begin == end) return;
    const uint8_t *from = row + at + step * begin;
    if (crop->flip) {
        for (int x = begin; x < end; x++, from--) out[x * CT_LANES] = table[*from];
        return;
    }
#pragma GCC unroll 8
    for (int x = begin; x < end; x++, from++) out[x * CT_LANES] = table[*from];
}

/* The samples of a batch lie anywhere: asks for all of a block's before the first is waited for. */
static void fetch_block(const ct_images *images, const ct_batch *batch, int first, size_t size) {
    for (int lane = 0; lane < CT_LANES && first + lane < batch->n; lane++) {
        const uint8_t *pixels = images->pixels + batch->index[first + lane] * size;
        for (size_t k = 0; k < size; k += 64) __builtin_prefetch(pixels + k);
    }
}

/* Of images that are values; lanes without a sample are zeros. */
static void load_values(const ct_host_source *source, const ct_batch *batch, int first, float *x) {
    const size_t size = ct_image_values(source->images);
    for (int lane = 0; lane < CT_LANES; lane++) {
        if (first + lane < batch->n)
            ct_host_values(source, batch, first + lane, CT_LANES, x + lane);
        else
            for (size_t k = 0; k < size; k++) x[k * CT_LANES + (size_t)lane] = 0;
    }
}

static void load_block(const ct_host_source *source, const ct_batch *batch, int first, float *x) {
    const ct_images *images = source->images;
    const int height = images->height, width = images->width;
    const size_t plane = (size_t)height * (size_t)width;
    const size_t size = plane * (size_t)images->channels;
    const ct_crop none = {0};
    fetch_block(images, batch, first, size);
    for (int c = 0; c < images->channels; c++)
        for (int y = 0; y < height; y++, x += width * CT_LANES)
            for (int lane = 0; lane < CT_LANES; lane++) {
                if (first + lane >= batch->n) { /* no sample: zeros, which no gradient sees */
                    for (int k = 0; k < width; k++) x[k * CT_LANES + lane] = 0;
                    continue;
                }
                const ct_crop *crop = batch->crop != NULL ? &batch->crop[first + lane] : &none;
                const uint8_t *pixels = images->pixels + batch->index[first + lane] * size;
                const int row = y + crop->dy;
                const ptrdiff_t at = (ptrdiff_t)c * (ptrdiff_t)plane + (ptrdiff_t)row * width;
                load_row(row >= 0 && row < height ? pixels + at : NULL, width, crop,
                         source->table[c], x + lane);
            }
}

void ct_cpu_load_pictures(const ct_source *source, const ct_batch *batch, float *x) {
    const ct_host_source *host = (const ct_host_source *)source;
    const ct_images *images = host->images;
    const size_t size = (size_t)images->channels * (size_t)images->height * (size_t)images->width;
    for (int first = 0; first < batch->n; first += CT_LANES, x += size * CT_LANES) {
        if (images->values != NULL)
            load_values(host, batch, first, x);
        else
            load_block(host, batch, first, x);
    }
}
