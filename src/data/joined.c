/* Pictures of several data sets as one: the agents' of a process, each with files of its own. */
#include "data/pictures.h"

#include "data/pictures_internal.h"
#include "data/resize.h"
#include "util/memory.h"

#include <string.h>

ct_pictures *ct_pictures_part(const ct_pictures *joined, size_t *i) {
    int low = 0, high = joined->n_parts;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (joined->part_begin[middle] <= *i)
            low = middle;
        else
            high = middle;
    }
    *i -= joined->part_begin[low];
    return joined->parts[low];
}

void ct_pictures_relabel(ct_pictures *p, const int32_t *relabel) {
    for (size_t i = 0; i < p->files.n; i++) p->files.labels[i] = relabel[p->files.labels[i]];
}

/* Planes to pixels. */
static ct_status keep_image(const ct_images *images, size_t i, ct_picture *out) {
    size_t plane = (size_t)images->height * (size_t)images->width;
    const uint8_t *from = ct_image_at(images, i);
    uint8_t *pixels = NULL;
    CT_TRY(ct_make(&pixels, plane * CT_PIXEL, "a picture"));
    for (size_t k = 0; k < plane; k++)
        for (size_t c = 0; c < 3; c++) pixels[k * CT_PIXEL + c] = from[c * plane + k];
    *out = (ct_picture){.width = images->width, .height = images->height, .pixels = pixels};
    return CT_OK;
}

ct_status ct_pictures_of_images(const ct_images *images, ct_pictures **out) {
    CT_SCOPED_HANDLE(ct_pictures) p = NULL;
    CT_TRY(ct_make(&p, 1, "pictures"));
    pthread_mutex_init(&p->lock, NULL);
    p->spec = (ct_pictures_spec){.side = images->width, .size = images->width};
    p->files.n = p->n_listed = images->n;
    CT_TRY(ct_make_copy(&p->files.labels, images->labels, images->n, "pictures"));
    CT_TRY(ct_make(&p->kept, images->n, "pictures"));
    for (; p->n_kept < images->n; p->n_kept++)
        CT_TRY(keep_image(images, p->n_kept, &p->kept[p->n_kept]));
    ct_move(out, &p);
    return CT_OK;
}

static ct_status take_parts(ct_pictures **parts, const size_t *sizes, int n, ct_pictures *out) {
    CT_TRY(ct_make(&out->parts, (size_t)n, "the agents' pictures"));
    CT_TRY(ct_make(&out->part_begin, (size_t)n + 1, "the agents' pictures"));
    for (int k = 0; k < n; k++) out->part_begin[k + 1] = out->part_begin[k] + sizes[k];
    out->files.n = out->part_begin[n];
    CT_TRY(ct_make(&out->files.labels, out->files.n, "the agents' pictures"));
    for (int k = 0; k < n; k++)
        memcpy(out->files.labels + out->part_begin[k], parts[k]->files.labels,
               sizes[k] * sizeof *out->files.labels);
    out->n_parts = n;
    for (int k = 0; k < n; k++) out->parts[k] = ct_take(&parts[k]);
    return CT_OK;
}

ct_status ct_pictures_join(ct_pictures **parts, const size_t *sizes, int n, ct_pictures **out) {
    CT_SCOPED_HANDLE(ct_pictures) joined = NULL;
    CT_TRY(ct_make(&joined, 1, "the agents' pictures"));
    pthread_mutex_init(&joined->lock, NULL);
    joined->spec = parts[0]->spec;
    CT_TRY(take_parts(parts, sizes, n, joined));
    ct_move(out, &joined);
    return CT_OK;
}
