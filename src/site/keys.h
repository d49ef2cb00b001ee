/* A site's key pair (Curve25519, as libzmq's CURVE uses it), shown and stored as 64 hexadecimal digits. The
 * secret half never leaves its file. */
#ifndef CT_SITE_KEYS_H
#define CT_SITE_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "util/status.h"

#define CT_KEY_BYTES 32
#define CT_KEY_TEXT  65 /* with the 0 at the end */

typedef struct ct_key_pair {
    uint8_t public_key[CT_KEY_BYTES];
    uint8_t secret_key[CT_KEY_BYTES];
} ct_key_pair;

/* CT_NOTBUILT without libzmq, or where it has no CURVE. */
ct_status ct_keys_make(ct_key_pair *out);
/* Writes a new file that its owner alone can read; refused where there is one. */
ct_status ct_keys_write(const ct_key_pair *pair, const char *path);
/* CT_IO: damaged; a public half that is not the secret one's; a file that others can read. */
ct_status ct_keys_read(const char *path, ct_key_pair *out);

void ct_key_print(const uint8_t key[CT_KEY_BYTES], char text[CT_KEY_TEXT]);
/* 64 hexadecimal digits and nothing else. */
bool ct_key_parse(const char *text, uint8_t key[CT_KEY_BYTES]);
/* In the same time whatever they hold. */
bool ct_keys_equal(const uint8_t a[CT_KEY_BYTES], const uint8_t b[CT_KEY_BYTES]);

#endif
