/* JPEG and PNG files. */
#include "data/decode.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static ct_decoder *decoder; /* used again and again, as a worker does */
    ct_picture p;
    if (decoder == NULL && ct_decoder_create(&decoder) != CT_OK) return 0;
    ct_status status = ct_decode(decoder, data, n, 16, n % 2 == 0, &p);
    if (status == CT_OK && (p.width < 16 || p.height < 16 || p.pixels == NULL)) abort();
    if (status == CT_IO && ct_decoder_reason(decoder)[0] == '\0') abort();
    return 0;
}
