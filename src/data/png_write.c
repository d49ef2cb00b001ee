/* Signature, then chunks: length, kind, body, CRC of kind and body. IHDR says 8-bit RGB; IDAT is
 * the rows, each behind a filter byte (2: the difference to the row above), deflated; IEND is
 * empty. */
#include "data/png_write.h"

#include <string.h>
#include <zlib.h>

#include "util/file.h"
#include "util/memory.h"

static void put_u32(uint8_t *at, uint32_t value) {
    for (int k = 0; k < 4; k++) at[k] = (uint8_t)(value >> (24 - 8 * k));
}

static ct_status add_chunk(ct_writer *writer, const char *kind, const uint8_t *body, size_t n) {
    uint8_t head[8], tail[4];
    put_u32(head, (uint32_t)n);
    memcpy(head + 4, kind, 4);
    put_u32(tail, ct_crc32(ct_crc32(0, kind, 4), body, n));
    CT_TRY(ct_writer_add(writer, head, sizeof head));
    CT_TRY(ct_writer_add(writer, body, n));
    return ct_writer_add(writer, tail, sizeof tail);
}

static void filter_rows(int width, int height, const uint8_t *pixels, uint8_t *out) {
    size_t stride = (size_t)width * 3;
    for (int y = 0; y < height; y++) {
        const uint8_t *row = pixels + (size_t)y * stride;
        *out++ = y == 0 ? 0 : 2;
        for (size_t k = 0; k < stride; k++)
            *out++ = (uint8_t)(y == 0 ? row[k] : row[k] - row[k - stride]);
    }
}

static ct_status write_chunks(ct_writer *writer, int width, int height, const uint8_t *data,
                              size_t n) {
    uint8_t header[13] = {[8] = 8, [9] = 2};
    put_u32(header, (uint32_t)width);
    put_u32(header + 4, (uint32_t)height);
    CT_TRY(ct_writer_add(writer, "\x89PNG\r\n\x1a\n", 8));
    CT_TRY(add_chunk(writer, "IHDR", header, sizeof header));
    CT_TRY(add_chunk(writer, "IDAT", data, n));
    return add_chunk(writer, "IEND", (const uint8_t *)"", 0);
}

ct_status ct_png_write(const char *path, int width, int height, const uint8_t *pixels) {
    size_t n_raw = ((size_t)width * 3 + 1) * (size_t)height;
    uLongf n = compressBound((uLong)n_raw);
    uint8_t *raw = ct_alloc(n_raw, 1), *packed = ct_alloc(n, 1);
    ct_writer *writer = NULL;
    ct_status status = CT_OK;
    if (raw == NULL || packed == NULL) {
        status = ct_fail(CT_NOMEM, "%s: no memory", path);
        goto done;
    }
    filter_rows(width, height, pixels, raw);
    if (compress2(packed, &n, raw, (uLong)n_raw, 6) != Z_OK) {
        status = ct_fail(CT_NOMEM, "%s: no memory", path);
        goto done;
    }
    CT_TRY_GOTO(ct_writer_open(path, &writer), status, done);
    CT_TRY_GOTO(write_chunks(writer, width, height, packed, n), status, done);
    status = ct_writer_commit(&writer);
done:
    ct_writer_abandon(&writer);
    ct_free(packed);
    ct_free(raw);
    return status;
}
