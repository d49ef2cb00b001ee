/* PNG by libpng, read and written. */
#include "data/decode_internal.h"

#include "ct_config.h"
#include "data/png_write.h"
#include "util/budget.h"

#if CT_WITH_PNG

#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "util/file.h"
#include "util/memory.h"

typedef struct reader {
    png_structp png;
    png_infop info;
    ct_decoder *decoder;
    const uint8_t *bytes;
    size_t n, at;
} reader;

static void fail(png_structp png, png_const_charp words) {
    reader *r = png_get_error_ptr(png);
    ct_decoder_refuse(r->decoder, "%.140s", words);
    png_longjmp(png, 1);
}

/* libpng says whatever it was about to do; this way the reason is known. */
static void *take_memory(png_structp png, png_alloc_size_t n) {
    reader *r = png_get_mem_ptr(png);
    void *block = ct_alloc(n, 1);
    if (block == NULL) r->decoder->status = ct_no_memory("a PNG");
    return block;
}

static void give_memory(png_structp png, void *block) {
    (void)png;
    ct_free(block);
}

static void stay_silent(png_structp png, png_const_charp words) {
    (void)png, (void)words;
}

static void read_bytes(png_structp png, png_bytep out, size_t n) {
    reader *r = png_get_io_ptr(png);
    if (n > r->n - r->at) png_error(png, "the file ends too early");
    memcpy(out, r->bytes + r->at, n);
    r->at += n;
}

/* Everything to 8-bit R, G, B and a filler. */
static void choose_output(const reader *r) {
    png_set_expand(r->png);   /* palettes, 1, 2 and 4 bits */
    png_set_strip_16(r->png); /* the upper byte */
    png_set_strip_alpha(r->png);
    png_set_gray_to_rgb(r->png);
    png_set_filler(r->png, 0, PNG_FILLER_AFTER);
}

/* Interlaced pictures come in several passes over the whole of it. */
static bool read_interlaced(const reader *r, int width, int height, int n_passes) {
    ct_decoder *d = r->decoder;
    size_t stride = (size_t)width * 4;
    if (!ct_decoder_holds(d, "an interlaced PNG", width, height)) return false;
    uint8_t *whole = ct_decoder_buffer(d, &d->whole, stride * (size_t)height);
    if (whole == NULL) return false;
    for (int pass = 0; pass < n_passes; pass++)
        for (int y = 0; y < height; y++) png_read_row(r->png, whole + (size_t)y * stride, NULL);
    for (int y = 0; y < height; y++) ct_resizer_row(&d->resizer, y, whole + (size_t)y * stride);
    return true;
}

static bool read_rows(const reader *r, int width, int height) {
    ct_decoder *d = r->decoder;
    uint8_t *row = ct_decoder_buffer(d, &d->row, (size_t)width * 4);
    if (row == NULL) return false;
    for (int y = 0; y < height; y++) {
        png_read_row(r->png, row, NULL);
        ct_resizer_row(&d->resizer, y, row);
    }
    return true;
}

static bool read_picture(const reader *r) {
    png_set_user_limits(r->png, CT_MAX_PICTURE_SIDE, CT_MAX_PICTURE_SIDE);
    png_set_chunk_malloc_max(r->png, 1 << 24);
    png_set_chunk_cache_max(r->png, 1); /* no texts, of which there may be any number */
    png_read_info(r->png, r->info);
    int width = (int)png_get_image_width(r->png, r->info);
    int height = (int)png_get_image_height(r->png, r->info);
    choose_output(r);
    int n_passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) != (size_t)width * 4)
        return ct_decoder_refuse(r->decoder, "a kind of PNG that is not known");
    if (!ct_decoder_begin(r->decoder, width, height, width, height, 1)) return false;
    return n_passes > 1 ? read_interlaced(r, width, height, n_passes) : read_rows(r, width, height);
}

bool ct_png_decode(ct_decoder *d, const uint8_t *bytes, size_t n) {
    reader r = {.decoder = d, .bytes = bytes, .n = n};
    r.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r, fail, stay_silent, &r, take_memory,
                                     give_memory);
    if (r.png != NULL) r.info = png_create_info_struct(r.png);
    if (r.info == NULL) {
        png_destroy_read_struct(&r.png, &r.info, NULL);
        d->status = ct_fail(CT_NOMEM, "no memory for a PNG decoder");
        return false;
    }
    reader *kept = &r; /* r itself lives across the jump: it is not changed after this point */
    if (setjmp(png_jmpbuf(r.png)) != 0) {
        png_destroy_read_struct(&kept->png, &kept->info, NULL);
        return false;
    }
    png_set_read_fn(r.png, &r, read_bytes);
    bool ok = read_picture(&r);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return ok;
}

ct_status ct_png_write(const char *path, int width, int height, const uint8_t *pixels) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB};
    png_alloc_size_t n = PNG_IMAGE_PNG_SIZE_MAX(image);
    CT_SCOPED_BLOCK(uint8_t) bytes = NULL;
    CT_TRY(ct_make(&bytes, n, path));
    if (png_image_write_to_memory(&image, bytes, &n, 0, pixels, 0, NULL) == 0)
        return ct_fail(CT_IO, "%s: %.64s", path, image.message);
    return ct_file_write(path, bytes, n);
}

#else

bool ct_png_decode(ct_decoder *d, const uint8_t *bytes, size_t n) {
    (void)bytes, (void)n;
    d->status = ct_fail(CT_NOTBUILT, "PNG pictures cannot be read: built without libpng; install "
                                     "libpng-dev and configure again");
    return false;
}

ct_status ct_png_write(const char *path, int width, int height, const uint8_t *pixels) {
    (void)width, (void)height, (void)pixels;
    return ct_fail(CT_NOTBUILT,
                   "%s cannot be written: built without libpng; install libpng-dev and configure "
                   "again",
                   path);
}

#endif
