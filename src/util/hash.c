#include "util/hash.h"

#include <string.h>

enum { N_LANES = 4 };

uint64_t ct_hash(uint64_t hash, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    for (size_t k = 0; k < n; k++) hash = ct_hash_step(hash, at[k]);
    return hash;
}

uint64_t ct_hash_number(uint64_t hash, uint64_t number) {
    for (int k = 0; k < 8; k++) hash = ct_hash_step(hash, number >> 8 * k & 255u);
    return hash;
}

static uint64_t add_word(uint64_t sum, const unsigned char *at, size_t n) {
    uint64_t word = 0;
    memcpy(&word, at, n);
    sum = ct_hash_step(sum, word);
    return sum ^ sum >> 29; /* upper bits to the lower ones, which a product never reaches */
}

uint64_t ct_checksum(uint64_t sum, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    for (; n >= 8; at += 8, n -= 8) sum = add_word(sum, at, 8);
    return n > 0 ? add_word(sum, at, n) : sum;
}

uint64_t ct_checksum_wide(uint64_t sum, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    uint64_t lane[N_LANES];
    for (unsigned k = 0; k < N_LANES; k++) lane[k] = sum + k;
    for (; n >= sizeof lane; at += sizeof lane, n -= sizeof lane)
        for (int k = 0; k < N_LANES; k++) lane[k] = add_word(lane[k], at + 8 * k, 8);
    return ct_checksum(ct_checksum(sum, lane, sizeof lane), at, n);
}
