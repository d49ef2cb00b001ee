/* SHA-256 (FIPS 180-4). */
#ifndef CT_UTIL_SHA256_H
#define CT_UTIL_SHA256_H

#include "util/status.h"

#define CT_DIGEST_TEXT 65 /* its hexadecimal digits, and a 0 */

typedef struct ct_digest {
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[64];
} ct_digest;

void ct_digest_init(ct_digest *digest);
void ct_digest_add(ct_digest *digest, const void *bytes, size_t n);
/* The digest as lower-case hexadecimal digits; it is used up. */
void ct_digest_text(ct_digest *digest, char out[CT_DIGEST_TEXT]);

/* Of a whole file. */
ct_status ct_digest_file(const char *path, char out[CT_DIGEST_TEXT]);

#endif
