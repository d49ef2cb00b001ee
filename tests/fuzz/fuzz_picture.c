/* JPEG and PNG files. Every chunk of a PNG has a checksum. */
#include "data/decode.h"

#include "util/file.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static ct_decoder *decoder; /* used again and again, as a worker does */
    ct_picture p;
    if (decoder == NULL && ct_decoder_create(&decoder) != CT_OK) return 0;
    ct_status status = ct_decode(decoder, data, n, 16, n % 2 == 0, &p);
    if (status == CT_OK && (p.width < 16 || p.height < 16 || p.pixels == NULL)) abort();
    fuzz_n_accepted += status == CT_OK;
    if (status == CT_IO && ct_decoder_reason(decoder)[0] == '\0') abort();
    return 0;
}

void fuzz_repair(uint8_t *data, size_t n) {
    if (n < 8 || memcmp(data, "\x89PNG", 4) != 0) return;
    for (size_t at = 8; n - at >= 12;) {
        size_t length = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 |
                        (size_t)data[at + 2] << 8 | data[at + 3];
        if (length > n - at - 12) return;
        uint32_t crc = ct_crc32(0, data + at + 4, length + 4);
        for (int k = 0; k < 4; k++)
            data[at + 8 + length + (size_t)k] = (uint8_t)(crc >> (24 - 8 * k));
        at += 12 + length;
    }
}
