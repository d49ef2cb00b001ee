/* Tar archives, plain or gzip: read to the end, nothing written. */
#include "data/tar.h"

#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_tar *tar = NULL;
    bool more = true;
    if (ct_tar_open(fuzz_file("x.tar", data, n), 1 << 20, &tar) != CT_OK) return 0;
    for (ct_tar_entry e; ct_tar_next(tar, &e, &more) == CT_OK && more;) {
        uint8_t byte;
        if (e.name[0] == '/' || strstr(e.name, "../") == e.name) abort();
        if (e.size > 0 && ct_tar_read(tar, &byte, 1) != CT_OK) break;
    }
    ct_tar_close(&tar);
    return 0;
}
