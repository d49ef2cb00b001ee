/* Parts of data sets. Header and body have checksums. */
#include "data/dataset.h"
#include "util/file.h"

#include "fuzz.h"

/* As in data/part.c. */
enum { BODY_CRC = 8 + 64 + 4 * 8 + 7 * 4, HEADER_CRC = BODY_CRC + 4 + 8 * CT_MAX_CHANNELS + 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_dataset d = {0};
    ct_dataset_options options = {.dir = fuzz_file("x.ctpart", data, n)};
    if (ct_dataset_open("auto", &options, &d) != CT_OK) return 0;
    for (size_t i = 0; i < d.train.n; i++)
        if (d.train.labels[i] < 0 || d.train.labels[i] >= d.n_classes) abort();
    fuzz_n_accepted++;
    ct_dataset_free(&d);
    return 0;
}

void fuzz_repair(uint8_t *data, size_t n) {
    if (n < HEADER_CRC + 4) return;
    uint32_t crc = ct_crc32(0, data + HEADER_CRC + 4, n - HEADER_CRC - 4);
    memcpy(data + BODY_CRC, &crc, sizeof crc);
    crc = ct_crc32(0, data, HEADER_CRC);
    memcpy(data + HEADER_CRC, &crc, sizeof crc);
}
