/* Tar archives, plain or gzip: read to the end, nothing written. */
#include "data/tar.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_tar *tar = NULL;
    bool more = true;
    if (ct_tar_open(fuzz_file("x.tar", data, n), 1 << 20, &tar) != CT_OK) return 0;
    fuzz_n_accepted++;
    for (ct_tar_entry e; ct_tar_next(tar, &e, &more) == CT_OK && more;) {
        uint8_t byte;
        if (e.name[0] == '/' || strstr(e.name, "../") == e.name) abort();
        if (e.size > 0 && ct_tar_read(tar, &byte, 1) != CT_OK) break;
    }
    ct_tar_close(&tar);
    return 0;
}

/* Every header's checksum: the sum of its bytes, its own eight as blanks. */
void fuzz_repair(uint8_t *data, size_t n) {
    for (size_t at = 0; at + 512 <= n; at += 512) {
        unsigned sum = 8 * ' ';
        if (memcmp(data + at + 257, "ustar", 5) != 0) continue;
        for (int k = 0; k < 512; k++) sum += k < 148 || k >= 156 ? data[at + (size_t)k] : 0;
        snprintf((char *)data + at + 148, 8, "%06o", sum & 0777777);
        data[at + 155] = ' ';
    }
}
