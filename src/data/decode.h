/* JPEG and PNG files to small RGB pictures. Whatever the file holds (grey, palette, CMYK, 16 bits,
 * alpha) becomes 8-bit RGB as Pillow's convert("RGB") makes it; alpha is dropped. */
#ifndef CT_DATA_DECODE_H
#define CT_DATA_DECODE_H

#include "util/status.h"

/* [height][width] pixels of 4 bytes: R, G, B and one that means nothing. */
typedef struct ct_picture {
    int width, height;
    const uint8_t *pixels;
} ct_picture;

/* The workspace of one thread. */
typedef struct ct_decoder ct_decoder;
ct_status ct_decoder_create(ct_decoder **out);
void ct_decoder_free(ct_decoder **decoder);

/* The picture in `bytes` with its shorter side `side` pixels (0: as it is), bit for bit as Pillow
 * decodes and resizes it. `fast`: of a JPEG with 8 times the pixels needed (a side), only the
 * coarser half is decoded; that changes pixels by 0.3 levels of 255 on average and a few by up to
 * 8, which is nothing against random crops but too much for a comparison. It is lent until the next
 * call. CT_IO: it cannot be read, ct_decoder_reason() says why in a few words; no message is kept,
 * as a broken picture is no failure here. CT_NOTBUILT and CT_NOMEM come with a message. */
ct_status ct_decode(ct_decoder *decoder, const uint8_t *bytes, size_t n, int side, bool fast,
                    ct_picture *out);
/* The same of a file. */
ct_status ct_decode_file(ct_decoder *decoder, const char *path, int side, bool fast,
                         ct_picture *out);
const char *ct_decoder_reason(const ct_decoder *decoder);

/* What the first bytes say: "JPEG", "PNG", or NULL for neither. */
const char *ct_picture_kind(const uint8_t *bytes, size_t n);

#endif
