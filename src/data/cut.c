#include "data/cut.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"

#define MIN_AREA  0.08
#define MIN_RATIO (3.0 / 4.0)
#define MAX_RATIO (4.0 / 3.0)
#define N_TRIES   10

/* Python's round(): halves to the even neighbour, which is the default rounding of rint(). */
static int round_even(double x) {
    return (int)rint(x);
}

ct_cut ct_cut_center(int width, int height, int size) {
    return (ct_cut){.x = round_even((width - size) / 2.0),
                    .y = round_even((height - size) / 2.0),
                    .width = size,
                    .height = size};
}

/* The largest rectangle in the middle whose ratio is allowed. */
static ct_cut fallback(int width, int height) {
    double ratio = (double)width / height;
    ct_cut cut = {.width = width, .height = height};
    if (ratio < MIN_RATIO) cut.height = round_even(width / MIN_RATIO);
    if (ratio > MAX_RATIO) cut.width = round_even(height * MAX_RATIO);
    cut.x = (width - cut.width) / 2;
    cut.y = (height - cut.height) / 2;
    return cut;
}

ct_cut ct_cut_random(ct_rng *rng, int width, int height) {
    double area = (double)width * height;
    ct_cut cut = fallback(width, height);
    for (int k = 0; k < N_TRIES; k++) {
        double wanted = area * (MIN_AREA + (1 - MIN_AREA) * ct_rng_uniform(rng));
        double ratio =
            exp(log(MIN_RATIO) + (log(MAX_RATIO) - log(MIN_RATIO)) * ct_rng_uniform(rng));
        int w = round_even(sqrt(wanted * ratio)), h = round_even(sqrt(wanted / ratio));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        cut = (ct_cut){.width = w, .height = h};
        cut.y = (int)ct_rng_below(rng, (uint32_t)(height - h + 1));
        cut.x = (int)ct_rng_below(rng, (uint32_t)(width - w + 1));
        break;
    }
    cut.flip = (ct_rng_u32(rng) & 1) != 0;
    return cut;
}

/* Row y of the cut, black where it leaves the picture. */
static const uint8_t *row_of(const ct_cutter *cutter, const ct_picture *p, const ct_cut *cut,
                             int y) {
    int from_y = cut->y + y;
    bool inside = from_y >= 0 && from_y < p->height;
    if (inside && cut->x >= 0 && cut->x + cut->width <= p->width)
        return p->pixels + ((size_t)from_y * (size_t)p->width + (size_t)cut->x) * CT_PIXEL;
    memset(cutter->row, 0, (size_t)cut->width * CT_PIXEL);
    if (!inside) return cutter->row;
    int begin = cut->x < 0 ? -cut->x : 0;
    int end = p->width - cut->x < cut->width ? p->width - cut->x : cut->width;
    if (end > begin)
        memcpy(cutter->row + (size_t)begin * CT_PIXEL,
               p->pixels +
                   ((size_t)from_y * (size_t)p->width + (size_t)(cut->x + begin)) * CT_PIXEL,
               (size_t)(end - begin) * CT_PIXEL);
    return cutter->row;
}

static void to_planes(const uint8_t *square, int size, bool flip, uint8_t *out) {
    size_t plane = (size_t)size * (size_t)size, width = (size_t)size;
    for (size_t y = 0; y < width; y++) {
        const uint8_t *from = square + y * width * CT_PIXEL;
        uint8_t *to = out + y * width;
        for (size_t x = 0; x < width; x++) {
            const uint8_t *p = from + (flip ? width - 1 - x : x) * CT_PIXEL;
            to[x] = p[0];
            to[plane + x] = p[1];
            to[2 * plane + x] = p[2];
        }
    }
}

ct_status ct_cut_out(ct_cutter *cutter, const ct_picture *picture, const ct_cut *cut, int size,
                     uint8_t *out) {
    CT_TRY(ct_reserve(&cutter->square, &cutter->capacity, (size_t)size * (size_t)size * CT_PIXEL,
                      "a cut of a picture"));
    CT_TRY(ct_reserve(&cutter->row, &cutter->capacity_row, (size_t)cut->width * CT_PIXEL,
                      "a cut of a picture"));
    CT_TRY(ct_resizer_begin(&cutter->resizer, cut->width, cut->height, cut->width, cut->height,
                            size, size));
    for (int y = 0; y < cut->height; y++)
        ct_resizer_row(&cutter->resizer, y, row_of(cutter, picture, cut, y));
    ct_resizer_end(&cutter->resizer, cutter->square);
    to_planes(cutter->square, size, cut->flip, out);
    return CT_OK;
}

void ct_cutter_free(ct_cutter *cutter) {
    ct_resizer_free(&cutter->resizer);
    ct_free(cutter->row);
    ct_free(cutter->square);
    *cutter = (ct_cutter){0};
}
