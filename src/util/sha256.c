#include "util/sha256.h"

#include "util/file.h"
#include "util/memory.h"

#define CHUNK ((size_t)1 << 18)

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn_right(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static uint32_t word_at(const uint8_t *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void add_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], s[8];
    for (int k = 0; k < 16; k++) w[k] = word_at(block + 4 * k);
    for (int k = 16; k < 64; k++) {
        uint32_t a = w[k - 15], b = w[k - 2];
        w[k] = w[k - 16] + (turn_right(a, 7) ^ turn_right(a, 18) ^ a >> 3) + w[k - 7] +
               (turn_right(b, 17) ^ turn_right(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (int k = 0; k < 64; k++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t = s[7] + (turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25)) +
                     ((e & s[5]) ^ (~e & s[6])) + constants[k] + w[k];
        uint32_t u = (turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22)) +
                     ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t;
        s[0] = t + u;
    }
    for (int k = 0; k < 8; k++) state[k] += s[k];
}

void ct_digest_init(ct_digest *d) {
    *d = (ct_digest){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                               0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void ct_digest_add(ct_digest *d, const void *bytes, size_t n) {
    const uint8_t *from = bytes;
    while (n > 0) {
        size_t held = (size_t)(d->n_bytes % 64), piece = 64 - held < n ? 64 - held : n;
        memcpy(d->block + held, from, piece);
        d->n_bytes += piece;
        from += piece;
        n -= piece;
        if (d->n_bytes % 64 == 0) add_block(d->state, d->block);
    }
}

/* A 1 bit, zeros, and the number of bits fill the last block. */
static void add_end(ct_digest *d) {
    static const uint8_t filler[64] = {0x80};
    uint64_t n_bits = d->n_bytes * 8;
    uint8_t length[8];
    for (int k = 0; k < 8; k++) length[k] = (uint8_t)(n_bits >> 8 * (7 - k));
    ct_digest_add(d, filler, 1 + (119 - (size_t)(d->n_bytes % 64)) % 64);
    ct_digest_add(d, length, sizeof length);
}

void ct_digest_text(ct_digest *d, char out[CT_DIGEST_TEXT]) {
    add_end(d);
    for (int k = 0; k < 8; k++) snprintf(out + 8 * k, 9, "%08x", (unsigned)d->state[k]);
}

ct_status ct_digest_file(const char *path, char out[CT_DIGEST_TEXT]) {
    CT_SCOPED_BY(ct_fd_close, int) fd = -1;
    uint64_t size;
    CT_TRY(ct_file_open(path, &fd, &size));
    CT_SCOPED_BLOCK(uint8_t) chunk = NULL;
    CT_TRY(ct_make(&chunk, CHUNK, path));
    ct_digest d;
    ct_digest_init(&d);
    ssize_t n;
    while ((n = ct_fd_read(fd, chunk, CHUNK)) > 0) ct_digest_add(&d, chunk, (size_t)n);
    if (n < 0) return ct_file_failed(path);
    ct_digest_text(&d, out);
    return CT_OK;
}
