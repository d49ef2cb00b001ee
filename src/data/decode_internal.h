/* What the readers of picture formats need. */
#ifndef CT_DATA_DECODE_INTERNAL_H
#define CT_DATA_DECODE_INTERNAL_H

#include "data/decode.h"
#include "data/resize.h"

typedef struct ct_buffer {
    uint8_t *bytes;
    size_t capacity;
} ct_buffer;

struct ct_decoder {
    int side;
    bool fast;
    size_t n_bytes; /* of the file */
    ct_resizer resizer;
    ct_buffer file, row, whole, out;
    ct_picture picture;
    char reason[160];
    ct_status status; /* CT_NOMEM, or CT_IO with a reason */
    void *jpeg;       /* libjpeg's state, made when first needed */
};

/* A buffer of at least n bytes; NULL and status CT_NOMEM without memory. */
uint8_t *ct_decoder_buffer(ct_decoder *d, ct_buffer *buffer, size_t n);
/* Keeps the reason; always false. */
bool ct_decoder_refuse(ct_decoder *d, const char *format, ...) CT_PRINTF(2, 3);

/* A reader calls this once the size is known: the picture is width x height, but rows of
 * stored_width pixels and stored_height of them will be given, which show scale times as many. */
bool ct_decoder_begin(ct_decoder *d, int width, int height, int stored_width, int stored_height,
                      double scale);

/* Whether a picture that must be held whole (an interlaced PNG, a progressive JPEG: the kind) is not
 * too large for that. */
bool ct_decoder_holds(ct_decoder *d, const char *kind, int width, int height);

/* False with a reason, or the status set. */
bool ct_jpeg_decode(ct_decoder *d, const uint8_t *bytes, size_t n);
void ct_jpeg_free(ct_decoder *d);
bool ct_png_decode(ct_decoder *d, const uint8_t *bytes, size_t n);

#endif
