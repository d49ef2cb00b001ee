/* Sets that come in one piece, or without figures of their own. */
#include "data/dataset_internal.h"

#include "util/memory.h"
#include "util/rng.h"

#include <math.h>
#include <string.h>

static size_t plane_of(const ct_images *images) {
    return (size_t)images->height * (size_t)images->width;
}

/* How many pixels of a channel have each level. */
static void count_levels(const ct_images *images, int channel, uint64_t count[256]) {
    size_t plane = plane_of(images), n_channels = (size_t)images->channels;
    memset(count, 0, 256 * sizeof *count);
    for (size_t i = 0; i < images->n; i++) {
        const uint8_t *from = images->pixels + (i * n_channels + (size_t)channel) * plane;
        for (size_t k = 0; k < plane; k++) count[from[k]]++;
    }
}

void ct_images_sum(const ct_images *images, uint64_t weight, ct_pixel_sums *out) {
    *out = (ct_pixel_sums){.n = weight * images->n * plane_of(images)};
    for (int c = 0; c < images->channels; c++) {
        uint64_t count[256];
        count_levels(images, c, count);
        for (uint64_t p = 0; p < 256; p++) {
            out->sum[c] += weight * count[p] * p;
            out->squares[c] += weight * count[p] * p * p;
        }
    }
}

void ct_images_measure(const ct_images *images, float *mean, float *std) {
    size_t plane = plane_of(images);
    for (int c = 0; c < images->channels; c++) {
        uint64_t count[256];
        count_levels(images, c, count);
        double n = (double)images->n * (double)plane, sum = 0, squares = 0;
        for (int p = 0; p < 256; p++) sum += (double)count[p] * (p / 255.0);
        for (int p = 0; p < 256; p++) {
            double d = p / 255.0 - sum / n;
            squares += (double)count[p] * d * d;
        }
        mean[c] = (float)(sum / n);
        std[c] = squares > 0 ? (float)sqrt(squares / n) : 1.0f;
    }
}

/* Held out of a class of n: at least one if there are two, never all. */
static size_t n_held_out(size_t n, double fraction) {
    size_t n_test = (size_t)((double)n * fraction + 0.5);
    if (n_test < 1) n_test = 1;
    return n < 2 ? 0 : n_test > n - 1 ? n - 1 : n_test;
}

ct_status ct_split_draw(const int32_t *labels, size_t n, int n_classes, double test_fraction,
                        uint64_t seed, bool *is_test) {
    if (!(test_fraction > 0 && test_fraction < 1))
        return ct_fail(CT_INVAL, "there is no test part; hold one out with @test-fraction 0.1");
    CT_SCOPED_BLOCK(size_t) left = NULL;
    CT_SCOPED_BLOCK(uint32_t) order = NULL;
    if (n > UINT32_MAX) return ct_no_memory("samples to be held out");
    CT_TRY(ct_make(&left, (size_t)n_classes, "samples to be held out"));
    CT_TRY(ct_make(&order, n, "samples to be held out"));
    for (size_t i = 0; i < n; i++) left[labels[i]]++;
    for (int c = 0; c < n_classes; c++) left[c] = n_held_out(left[c], test_fraction);
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    ct_rng rng;
    ct_rng_init(&rng, seed, CT_RNG_SPLIT, 0, 0, 0);
    ct_rng_shuffle(&rng, order, n);
    for (size_t k = 0; k < n; k++) {
        size_t *room = &left[labels[order[k]]];
        is_test[order[k]] = *room > 0;
        if (*room > 0) --*room;
    }
    return CT_OK;
}

ct_status ct_images_pick(const ct_images *all, const bool *flag, bool wanted, ct_images *out) {
    CT_SCOPED(ct_images) picked = *all;
    size_t image = ct_image_bytes(all), at = 0;
    picked.n = 0;
    picked.pixels = NULL;
    picked.values = NULL;
    picked.labels = NULL;
    for (size_t i = 0; i < all->n; i++) picked.n += flag[i] == wanted;
    CT_TRY(ct_make(&picked.labels, picked.n, "a part of the samples"));
    if (all->values != NULL)
        CT_TRY(ct_make_block(&picked.values, picked.n, image, "a part of the samples"));
    else if (all->pixels != NULL)
        CT_TRY(ct_make_block(&picked.pixels, picked.n, image, "a part of the samples"));
    uint8_t *to = all->values != NULL ? (uint8_t *)picked.values : picked.pixels;
    for (size_t i = 0; i < all->n; i++) {
        if (flag[i] != wanted) continue;
        if (to != NULL) memcpy(to + at * image, ct_image_at(all, i), image);
        picked.labels[at++] = all->labels[i];
    }
    ct_move(out, &picked);
    return CT_OK;
}

ct_status ct_images_split(ct_images *all, int n_classes, double test_fraction, uint64_t seed,
                          ct_images *train, ct_images *test) {
    CT_SCOPED_BLOCK(bool) is_test = NULL;
    CT_SCOPED(ct_images) taken = {0};
    ct_move(&taken, all);
    CT_TRY(ct_make(&is_test, taken.n, "samples to be held out"));
    CT_TRY(ct_split_draw(taken.labels, taken.n, n_classes, test_fraction, seed, is_test));
    CT_TRY(ct_images_pick(&taken, is_test, false, train));
    CT_TRY(ct_images_pick(&taken, is_test, true, test));
    if (test->n > 0) return CT_OK;
    return ct_fail(CT_IO, "no class has two samples: nothing can be held out for testing");
}
