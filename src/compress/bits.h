/* Codes of 1, 2, 3, 4 or 8 bits, one a byte or side by side, from the lowest bits of a byte on. Eight
 * codes are a word of 64 bits in which neighbours move together three times, to pairs, fours and eight:
 * loops over words are what a processor's vectors take. */
#ifndef CT_COMPRESS_BITS_H
#define CT_COMPRESS_BITS_H

#include <stdint.h>
#include <string.h>

#include "compress/compress.h"

#define CT_BUCKET_WORDS (CT_BUCKET / 8)

/* Groups of so many bits, `apart` bits from one to the next. */
static inline uint64_t ct_groups(int n_bits, int apart) {
    uint64_t group = n_bits < 64 ? ((uint64_t)1 << n_bits) - 1 : UINT64_MAX;
    for (; apart < 64; apart *= 2) group |= group << apart;
    return group;
}

/* Which loops have a number of bits that the compiler knows. */
#define CT_KNOWN_BITS(bits, call)                                                                  \
    switch (bits) {                                                                                \
    case 1: call(1); break;                                                                        \
    case 2: call(2); break;                                                                        \
    case 3: call(3); break;                                                                        \
    case 4: call(4); break;                                                                        \
    default: call(8);                                                                              \
    }

static inline void ct_squeeze(const uint8_t *codes, int bits, uint8_t *packed) {
    const uint64_t pairs = ct_groups(2 * bits, 16), fours = ct_groups(4 * bits, 32);
    uint64_t words[CT_BUCKET_WORDS];
    memcpy(words, codes, sizeof words);
    for (int w = 0; w < CT_BUCKET_WORDS; w++) {
        uint64_t word = words[w];
        word = (word | word >> (8 - bits)) & pairs;
        word = (word | word >> (16 - 2 * bits)) & fours;
        words[w] = word | word >> (32 - 4 * bits);
    }
#pragma GCC unroll 32
    for (int w = 0; w < CT_BUCKET_WORDS; w++) memcpy(packed + w * bits, &words[w], 8);
}

static inline void ct_spread(const uint8_t *packed, int bits, uint8_t *codes) {
    const uint64_t eight = ct_groups(8 * bits, 64), fours = ct_groups(4 * bits, 32),
                   pairs = ct_groups(2 * bits, 16), each = ct_groups(bits, 8);
    uint64_t words[CT_BUCKET_WORDS];
#pragma GCC unroll 32
    for (int w = 0; w < CT_BUCKET_WORDS; w++) memcpy(&words[w], packed + w * bits, 8);
    for (int w = 0; w < CT_BUCKET_WORDS; w++) {
        uint64_t word = words[w] & eight;
        word = (word | word << (32 - 4 * bits)) & fours;
        word = (word | word << (16 - 2 * bits)) & pairs;
        words[w] = (word | word << (8 - bits)) & each;
    }
    memcpy(codes, words, sizeof words);
}

/* Of CT_BUCKET codes those of n values; bytes from the last one on are left alone. */
static inline void ct_put_codes(const uint8_t codes[CT_BUCKET], size_t n, int bits, uint8_t *to) {
    uint8_t packed[CT_BUCKET + 8];
#define SQUEEZE(known) ct_squeeze(codes, known, packed)
    CT_KNOWN_BITS(bits, SQUEEZE)
#undef SQUEEZE
    memcpy(to, packed, (n * (size_t)bits + 7) / 8);
}

/* The opposite: CT_BUCKET codes, of which n are those that were put. */
static inline void ct_get_codes(const uint8_t *from, size_t n, int bits, uint8_t codes[CT_BUCKET]) {
    uint8_t packed[CT_BUCKET + 8];
    memcpy(packed, from, (n * (size_t)bits + 7) / 8);
#define SPREAD(known) ct_spread(packed, known, codes)
    CT_KNOWN_BITS(bits, SPREAD)
#undef SPREAD
}

#endif
