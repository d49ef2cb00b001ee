/* 64-bit hashes that are written to files: they must never change. None of them is a secret-keeper:
 * they tell damage and other data, not an adversary. Begin with CT_HASH_START. */
#ifndef CT_UTIL_HASH_H
#define CT_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define CT_HASH_START UINT64_C(0xcbf29ce484222325)
#define CT_HASH_PRIME UINT64_C(0x100000001b3)

/* One step of FNV-1a, with a byte or (not FNV any more, but as good here) a larger word. */
static inline uint64_t ct_hash_step(uint64_t hash, uint64_t word) {
    return (hash ^ word) * CT_HASH_PRIME;
}

/* FNV-1a over bytes, and over the eight bytes of a number, lowest first: for names and lists. */
uint64_t ct_hash(uint64_t hash, const void *bytes, size_t n);
uint64_t ct_hash_number(uint64_t hash, uint64_t number);

/* Eight bytes a step, for files and pixels. Each step is one to one, so that a change within eight
 * bytes is never missed. In pieces: all but the last one a multiple of 8 bytes. */
uint64_t ct_checksum(uint64_t sum, const void *bytes, size_t n);
/* Another sum with the same promise: four of the above side by side, then over their results and
 * the rest. For hundreds of megabytes: as fast as memory. */
uint64_t ct_checksum_wide(uint64_t sum, const void *bytes, size_t n);

#endif
