#include "data/decode.h"

#include "data/decode_internal.h"
#include "util/file.h"
#include "util/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ct_status ct_decoder_create(ct_decoder **out) {
    return ct_make(out, 1, "a decoder");
}

void ct_decoder_free(ct_decoder **decoder) {
    ct_decoder *d = *decoder;
    if (d == NULL) return;
    ct_jpeg_free(d);
    ct_resizer_free(&d->resizer);
    ct_free(d->file.bytes);
    ct_free(d->row.bytes);
    ct_free(d->whole.bytes);
    ct_free(d->out.bytes);
    ct_free(d);
    *decoder = NULL;
}

const char *ct_decoder_reason(const ct_decoder *decoder) {
    return decoder->reason;
}

uint8_t *ct_decoder_buffer(ct_decoder *d, ct_buffer *buffer, size_t n) {
    ct_status status = ct_reserve(&buffer->bytes, &buffer->capacity, n, "a picture");
    if (status != CT_OK) d->status = status;
    return buffer->bytes;
}

bool ct_decoder_refuse(ct_decoder *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(d->reason, sizeof d->reason, format, args);
    va_end(args);
    if (d->status != CT_NOMEM) d->status = CT_IO; /* then the picture is not to blame */
    return false;
}

const char *ct_picture_kind(const uint8_t *bytes, size_t n) {
    if (n >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0) return "JPEG";
    if (n >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0) return "PNG";
    return NULL;
}

/* Before any memory is taken for it. */
static bool check_pixels(ct_decoder *d, int width, int height) {
    int shorter = width < height ? width : height, longer = width < height ? height : width;
    size_t n = (size_t)width * (size_t)height;
    if (shorter < 1) return ct_decoder_refuse(d, "empty picture");
    if (longer > CT_MAX_PICTURE_SIDE)
        return ct_decoder_refuse(d, "%dx%d pixels; a side has at most %d", width, height,
                                 CT_MAX_PICTURE_SIDE);
    if (longer / shorter > CT_MAX_PICTURE_ASPECT)
        return ct_decoder_refuse(d, "%dx%d pixels is too narrow", width, height);
    if (n > CT_MAX_PICTURE_PIXELS)
        return ct_decoder_refuse(d, "%dx%d pixels; a picture has at most %zu", width, height,
                                 CT_MAX_PICTURE_PIXELS);
    if (n > CT_FREE_PIXELS && n / CT_MAX_PIXELS_A_BYTE > d->n_bytes)
        return ct_decoder_refuse(d, "%dx%d pixels in %zu bytes; a picture has at most %d a byte",
                                 width, height, d->n_bytes, CT_MAX_PIXELS_A_BYTE);
    return true;
}

bool ct_decoder_holds(ct_decoder *d, const char *kind, int width, int height) {
    if ((size_t)width * (size_t)height <= CT_MAX_WHOLE_PIXELS) return true;
    return ct_decoder_refuse(d, "%s of %dx%d pixels; such a one has at most %zu", kind, width,
                             height, CT_MAX_WHOLE_PIXELS);
}

bool ct_decoder_begin(ct_decoder *d, int width, int height, int stored_width, int stored_height,
                      double scale) {
    int shorter = width < height ? width : height, longer = width < height ? height : width;
    if (!check_pixels(d, width, height)) return false;
    /* the shorter side is made `side` pixels, unless that is 0 */
    int side = d->side == 0 ? shorter : d->side;
    int other = d->side == 0 ? longer : (int)((double)side * longer / shorter);
    int out_width = width < height ? side : other, out_height = width < height ? other : side;
    d->status = ct_resizer_begin(&d->resizer, stored_width, stored_height, width / scale,
                                 height / scale, out_width, out_height);
    if (d->status != CT_OK) return false;
    uint8_t *out = ct_decoder_buffer(d, &d->out, (size_t)out_width * (size_t)out_height * CT_PIXEL);
    d->picture = (ct_picture){.width = out_width, .height = out_height, .pixels = out};
    return out != NULL;
}

ct_status ct_decode(ct_decoder *d, const uint8_t *bytes, size_t n, int side, bool fast,
                    ct_picture *out) {
    const char *kind = ct_picture_kind(bytes, n);
    d->side = side;
    d->fast = fast;
    d->n_bytes = n;
    d->status = CT_OK;
    d->reason[0] = '\0';
    bool ok = false;
    if (n == 0)
        ct_decoder_refuse(d, "empty file");
    else if (kind == NULL)
        ct_decoder_refuse(d, "neither JPEG nor PNG");
    else
        ok = strcmp(kind, "JPEG") == 0 ? ct_jpeg_decode(d, bytes, n) : ct_png_decode(d, bytes, n);
    if (!ok) return d->status;
    ct_resizer_end(&d->resizer, d->out.bytes);
    *out = d->picture;
    return CT_OK;
}

/* The file into d->file; false with a reason. */
static bool read_file(ct_decoder *d, const char *path, size_t *n) {
    struct stat info;
    CT_SCOPED_BY(ct_fd_close, int) fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return ct_decoder_refuse(d, "%s", strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return ct_decoder_refuse(d, "not a plain file");
    if ((uintmax_t)info.st_size > CT_MAX_PICTURE_BYTES)
        return ct_decoder_refuse(d, "%jd bytes; a picture has at most %zu", (intmax_t)info.st_size,
                                 CT_MAX_PICTURE_BYTES);
    size_t size = (size_t)info.st_size;
    uint8_t *bytes = ct_decoder_buffer(d, &d->file, size + 1);
    if (bytes == NULL) return false;
    ssize_t got = ct_fd_read(fd, bytes, size); /* fewer if it became shorter */
    if (got < 0) return ct_decoder_refuse(d, "%s", strerror(errno));
    *n = (size_t)got;
    return true;
}

ct_status ct_decode_file(ct_decoder *d, const char *path, int side, bool fast, ct_picture *out) {
    size_t n = 0;
    d->status = CT_OK;
    return read_file(d, path, &n) ? ct_decode(d, d->file.bytes, n, side, fast, out) : d->status;
}
