/* What a page may do, as its Content-Security-Policy: run our scripts and use our style, which are
 * known by their hashes, and nothing else. */
#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "util/sha256.h"

/* Three bytes become four letters. */
static void add_base64(const uint8_t *bytes, size_t n, ct_text *out) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t k = 0; k < n; k += 3) {
        size_t n_here = n - k < 3 ? n - k : 3;
        uint32_t bits = 0;
        for (size_t i = 0; i < 3; i++) bits = bits << 8 | (i < n_here ? bytes[k + i] : 0);
        for (size_t i = 0; i < 4; i++)
            ct_text_add(out, "%c", i <= n_here ? letters[bits >> (18 - 6 * i) & 63] : '=');
    }
}

/* The element's text is a line's end and then ours. */
static void add_hash(const char *text, ct_text *out) {
    ct_digest digest;
    char digits[CT_DIGEST_TEXT];
    uint8_t bytes[32];
    ct_digest_init(&digest);
    ct_digest_add(&digest, "\n", 1);
    ct_digest_add(&digest, text, strlen(text));
    ct_digest_text(&digest, digits);
    for (size_t k = 0; k < sizeof bytes; k++) {
        unsigned value = 0;
        sscanf(digits + 2 * k, "%2x", &value);
        bytes[k] = (uint8_t)value;
    }
    ct_text_add(out, " 'sha256-");
    add_base64(bytes, sizeof bytes, out);
    ct_text_add(out, "'");
}

void ct_report_policy(const char *script, const char *more, ct_text *out) {
    ct_text_add(out, "default-src 'none'; base-uri 'none'; style-src");
    add_hash(ct_report_css, out);
    ct_text_add(out, "; script-src");
    add_hash(ct_report_script, out);
    if (script != NULL) add_hash(script, out);
    ct_text_add(out, "%s", more);
}
