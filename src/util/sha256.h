/* SHA-256 (FIPS 180-4) and, for archives that publish nothing better, MD5 (RFC 1321). */
#ifndef CT_UTIL_SHA256_H
#define CT_UTIL_SHA256_H

#include "util/status.h"

typedef enum ct_digest_kind { CT_MD5, CT_SHA256 } ct_digest_kind;

#define CT_DIGEST_TEXT 65 /* hexadecimal digits of the longer one, and a 0 */

typedef struct ct_digest {
    ct_digest_kind kind;
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[64];
} ct_digest;

void ct_digest_init(ct_digest *digest, ct_digest_kind kind);
void ct_digest_add(ct_digest *digest, const void *bytes, size_t n);
/* The digest as lower-case hexadecimal digits; it is used up. */
void ct_digest_text(ct_digest *digest, char out[CT_DIGEST_TEXT]);

/* Of a whole file. */
ct_status ct_digest_file(const char *path, ct_digest_kind kind, char out[CT_DIGEST_TEXT]);

#endif
