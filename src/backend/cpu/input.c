/* The pictures of a batch, cut out, flipped and normalised, in lanes: row by row for 16 samples, so
 * that the row being written stays in the first-level cache. */
#include "backend/cpu/cpu_internal.h"

/* The samples of a batch lie anywhere: asks for all of a block's before the first is waited for. */
static void fetch_block(const ct_images *images, const ct_batch *batch, int first, size_t size) {
    for (int lane = 0; lane < CT_LANES && first + lane < batch->n; lane++) {
        const uint8_t *pixels = images->pixels + batch->index[first + lane] * size;
        for (size_t k = 0; k < size; k += 64) __builtin_prefetch(pixels + k);
    }
}

static void load_block(const ct_host_source *source, const ct_batch *batch, int first, float *x) {
    const ct_images *images = source->images;
    const int width = images->width;
    if (images->values == NULL) fetch_block(images, batch, first, ct_image_values(images));
    for (int c = 0; c < images->channels; c++)
        for (int y = 0; y < images->height; y++, x += width * CT_LANES)
            for (int lane = 0; lane < CT_LANES; lane++) {
                if (first + lane < batch->n)
                    ct_host_sample_row(source, batch, first + lane, c, y, CT_LANES, x + lane);
                else /* no sample: zeros, which no gradient sees */
                    for (int k = 0; k < width; k++) x[k * CT_LANES + lane] = 0;
            }
}

void ct_cpu_load_pictures(const ct_source *source, const ct_batch *batch, float *x) {
    const ct_host_source *host = (const ct_host_source *)source;
    const size_t size = ct_image_values(host->images);
    for (int first = 0; first < batch->n; first += CT_LANES, x += size * CT_LANES)
        load_block(host, batch, first, x);
}
