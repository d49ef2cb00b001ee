/* Sets that come in one piece, or without figures of their own. */
#include "data/dataset_internal.h"

#include "util/memory.h"
#include "util/rng.h"

#include <math.h>
#include <string.h>

void ct_images_measure(const ct_images *images, float *mean, float *std) {
    size_t plane = (size_t)images->height * (size_t)images->width;
    for (int c = 0; c < images->channels; c++) {
        uint64_t count[256] = {0};
        for (size_t i = 0; i < images->n; i++) {
            const uint8_t *from =
                images->pixels + (i * (size_t)images->channels + (size_t)c) * plane;
            for (size_t k = 0; k < plane; k++) count[from[k]]++;
        }
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
    size_t *left = NULL;
    uint32_t *order = NULL;
    ct_status status = n <= UINT32_MAX ? CT_OK : ct_no_memory("samples to be held out");
    if (status != CT_OK) return status;
    CT_TRY_GOTO(ct_make(&left, (size_t)n_classes, "samples to be held out"), status, done);
    CT_TRY_GOTO(ct_make(&order, n, "samples to be held out"), status, done);
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
done:
    ct_free(order);
    ct_free(left);
    return status;
}

/* Copies the samples whose flag is `wanted`. */
static ct_status pick(const ct_images *all, const bool *flag, bool wanted, ct_images *out) {
    size_t n = 0, at = 0;
    size_t image = ct_image_bytes(all);
    for (size_t i = 0; i < all->n; i++) n += flag[i] == wanted;
    CT_TRY(ct_images_create(n, all->channels, all->height, all->width, out));
    for (size_t i = 0; i < all->n; i++) {
        if (flag[i] != wanted) continue;
        memcpy(out->pixels + at * image, all->pixels + i * image, image);
        out->labels[at++] = all->labels[i];
    }
    return CT_OK;
}

ct_status ct_images_split(ct_images *all, int n_classes, double test_fraction, uint64_t seed,
                          ct_images *train, ct_images *test) {
    bool *is_test = NULL;
    ct_status status = ct_make(&is_test, all->n, "samples to be held out");
    if (status == CT_OK)
        status = ct_split_draw(all->labels, all->n, n_classes, test_fraction, seed, is_test);
    if (status == CT_OK) status = pick(all, is_test, false, train);
    if (status == CT_OK) status = pick(all, is_test, true, test);
    if (status == CT_OK && test->n == 0)
        status = ct_fail(CT_IO, "no class has two samples: nothing can be held out for testing");
    ct_free(is_test);
    ct_images_free(all);
    return status;
}
