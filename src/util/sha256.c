#include "util/sha256.h"

#include "util/file.h"
#include "util/memory.h"

#define CHUNK ((size_t)1 << 18)

static const uint32_t sha_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* floor(2^32 |sin(k + 1)|) */
static const uint32_t md5_constants[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

static const uint8_t md5_turns[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t turn_right(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static uint32_t word_at(const uint8_t *b, ct_digest_kind kind) {
    if (kind == CT_MD5)
        return (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void sha_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], s[8];
    for (int k = 0; k < 16; k++) w[k] = word_at(block + 4 * k, CT_SHA256);
    for (int k = 16; k < 64; k++) {
        uint32_t a = w[k - 15], b = w[k - 2];
        w[k] = w[k - 16] + (turn_right(a, 7) ^ turn_right(a, 18) ^ a >> 3) + w[k - 7] +
               (turn_right(b, 17) ^ turn_right(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (int k = 0; k < 64; k++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t = s[7] + (turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25)) +
                     ((e & s[5]) ^ (~e & s[6])) + sha_constants[k] + w[k];
        uint32_t u = (turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22)) +
                     ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t;
        s[0] = t + u;
    }
    for (int k = 0; k < 8; k++) state[k] += s[k];
}

/* The function of round r and the word it takes at step k. */
static uint32_t md5_mix(int r, int k, const uint32_t *s, int *word) {
    switch (r) {
    case 0: *word = k; return (s[1] & s[2]) | (~s[1] & s[3]);
    case 1: *word = (5 * k + 1) % 16; return (s[3] & s[1]) | (~s[3] & s[2]);
    case 2: *word = (3 * k + 5) % 16; return s[1] ^ s[2] ^ s[3];
    default: *word = 7 * k % 16; return s[2] ^ (s[1] | ~s[3]);
    }
}

static void md5_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[16], s[4];
    for (int k = 0; k < 16; k++) w[k] = word_at(block + 4 * k, CT_MD5);
    memcpy(s, state, sizeof s);
    for (int k = 0; k < 64; k++) {
        int word = 0, r = k / 16;
        uint32_t f = md5_mix(r, k, s, &word) + s[0] + md5_constants[k] + w[word];
        s[0] = s[3];
        s[3] = s[2];
        s[2] = s[1];
        s[1] += turn_right(f, 32 - md5_turns[r][k % 4]);
    }
    for (int k = 0; k < 4; k++) state[k] += s[k];
}

void ct_digest_init(ct_digest *d, ct_digest_kind kind) {
    static const uint32_t sha_start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    static const uint32_t md5_start[8] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    *d = (ct_digest){.kind = kind};
    memcpy(d->state, kind == CT_MD5 ? md5_start : sha_start, sizeof d->state);
}

void ct_digest_add(ct_digest *d, const void *bytes, size_t n) {
    const uint8_t *from = bytes;
    while (n > 0) {
        size_t held = (size_t)(d->n_bytes % 64), piece = 64 - held < n ? 64 - held : n;
        memcpy(d->block + held, from, piece);
        d->n_bytes += piece;
        from += piece;
        n -= piece;
        if (d->n_bytes % 64 != 0) continue;
        if (d->kind == CT_MD5)
            md5_block(d->state, d->block);
        else
            sha_block(d->state, d->block);
    }
}

/* A 1 bit, zeros, and the number of bits fill the last block. */
static void add_end(ct_digest *d) {
    static const uint8_t filler[64] = {0x80};
    uint64_t n_bits = d->n_bytes * 8;
    uint8_t length[8];
    for (int k = 0; k < 8; k++)
        length[k] = (uint8_t)(n_bits >> 8 * (d->kind == CT_MD5 ? k : 7 - k));
    ct_digest_add(d, filler, 1 + (119 - (size_t)(d->n_bytes % 64)) % 64);
    ct_digest_add(d, length, sizeof length);
}

void ct_digest_text(ct_digest *d, char out[CT_DIGEST_TEXT]) {
    add_end(d);
    int n_words = d->kind == CT_MD5 ? 4 : 8;
    for (int k = 0; k < n_words; k++) {
        uint8_t b[4];
        for (int i = 0; i < 4; i++)
            b[i] = (uint8_t)(d->state[k] >> 8 * (d->kind == CT_MD5 ? i : 3 - i));
        snprintf(out + 8 * k, 9, "%02x%02x%02x%02x", b[0], b[1], b[2], b[3]);
    }
}

ct_status ct_digest_file(const char *path, ct_digest_kind kind, char out[CT_DIGEST_TEXT]) {
    CT_SCOPED_BY(ct_fd_close, int) fd = -1;
    uint64_t size;
    CT_TRY(ct_file_open(path, &fd, &size));
    CT_SCOPED_BLOCK(uint8_t) chunk = NULL;
    CT_TRY(ct_make(&chunk, CHUNK, path));
    ct_digest d;
    ct_digest_init(&d, kind);
    ssize_t n;
    while ((n = ct_fd_read(fd, chunk, CHUNK)) > 0) ct_digest_add(&d, chunk, (size_t)n);
    if (n < 0) return ct_file_failed(path);
    ct_digest_text(&d, out);
    return CT_OK;
}
