#include "data/sheet.h"

#include "data/pictures.h"
#include "data/png_write.h"
#include "util/memory.h"

#include <string.h>

#define N_COLUMNS 10
#define MAX_ROWS  40
#define GAP       2

typedef struct sheet {
    const ct_dataset *dataset;
    int width, height; /* of the sheet */
    uint8_t *pixels;   /* [height][width][3] */
    ct_decoder *decoder;
    ct_cutter cutter;
    uint8_t *image; /* [channels][h][w] of one sample that is not in memory */
} sheet;

/* Sample i, planar. */
static ct_status image_of(sheet *s, size_t i, const uint8_t **out) {
    const ct_images *images = &s->dataset->train;
    if (images->pixels != NULL) {
        *out = images->pixels + i * ct_image_bytes(images);
        return CT_OK;
    }
    ct_picture p;
    CT_TRY(ct_pictures_get(s->dataset->train_pictures, i, s->decoder, &p));
    ct_cut cut = ct_cut_center(p.width, p.height, images->width);
    *out = s->image;
    return ct_cut_out(&s->cutter, &p, &cut, images->width, s->image);
}

static void draw(sheet *s, const uint8_t *image, int row, int column) {
    const ct_images *images = &s->dataset->train;
    int h = images->height, w = images->width;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int to_y = GAP + row * (h + GAP) + y, to_x = GAP + column * (w + GAP) + x;
            uint8_t *to = s->pixels + ((size_t)to_y * (size_t)s->width + (size_t)to_x) * 3;
            for (int c = 0; c < 3; c++) /* grey ones, and two channels, show their first */
                to[c] = image[((images->channels >= 3 ? c : 0) * h + y) * w + x];
        }
}

static ct_status fill(sheet *s, int n_rows) {
    const ct_images *images = &s->dataset->train;
    int n_drawn[MAX_ROWS] = {0};
    for (size_t i = 0; i < images->n; i++) {
        int row = images->labels[i];
        const uint8_t *image = NULL;
        if (row >= n_rows || n_drawn[row] == N_COLUMNS) continue;
        CT_TRY(image_of(s, i, &image));
        draw(s, image, row, n_drawn[row]++);
    }
    return CT_OK;
}

static void sheet_free(sheet *s) {
    ct_free(s->image);
    ct_free(s->pixels);
    ct_cutter_free(&s->cutter);
    ct_decoder_free(&s->decoder);
}

ct_status ct_sheet_write(const ct_dataset *d, const char *path) {
    int n_rows = d->n_classes < MAX_ROWS ? d->n_classes : MAX_ROWS;
    if (d->train.values != NULL)
        return ct_refuse("sheet", "%s: a table has no pictures to draw", d->source);
    CT_SCOPED(sheet)
    s = {.dataset = d,
         .width = GAP + N_COLUMNS * (d->train.width + GAP),
         .height = GAP + n_rows * (d->train.height + GAP)};
    size_t n = (size_t)s.width * (size_t)s.height * 3;
    CT_TRY(ct_decoder_create(&s.decoder));
    CT_TRY(ct_make(&s.pixels, n, "a contact sheet"));
    CT_TRY(ct_make(&s.image, ct_image_bytes(&d->train), "a contact sheet"));
    memset(s.pixels, 255, n);
    CT_TRY(fill(&s, n_rows));
    return ct_png_write(path, s.width, s.height, s.pixels);
}
