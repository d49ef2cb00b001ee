/* Files that may be packed. The end of a packed one has a checksum and a length. */
#include <zlib.h>

#include "util/file.h"

#include "fuzz.h"

enum { MAX_BYTES = 1 << 16, HEAD = 10, END = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_blob blob = {0};
    if (ct_file_read(fuzz_file("x.gz", data, n), MAX_BYTES, &blob) == CT_OK) {
        if (blob.n > MAX_BYTES || blob.bytes[blob.n] != 0) abort();
        fuzz_n_accepted++;
    }
    ct_blob_free(&blob);
    return 0;
}

void fuzz_repair(uint8_t *data, size_t n) {
    static uint8_t out[MAX_BYTES];
    z_stream z = {
        .next_in = data + HEAD, .avail_in = (uInt)n, .next_out = out, .avail_out = MAX_BYTES};
    if (n < HEAD + END) return;
    z.avail_in = (uInt)(n - HEAD);
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return;
    if (inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_in >= END) {
        uint32_t end[2] = {(uint32_t)crc32(0, out, (uInt)z.total_out), (uint32_t)z.total_out};
        memcpy(data + (n - z.avail_in), end, sizeof end);
    }
    inflateEnd(&z);
}
