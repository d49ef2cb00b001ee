#include "util/show.h"

#include <stdarg.h>
#include <string.h>

#include "util/memory.h"
#include "util/text.h"

/* The character of n bytes at `c`, n not 0. */
static unsigned code_of(const char *c, size_t n) {
    unsigned code = (unsigned char)c[0] & (n == 1 ? 0x7Fu : 0xFFu >> (n + 1));
    for (size_t k = 1; k < n; k++) code = code << 6 | ((unsigned char)c[k] & 0x3Fu);
    return code;
}

/* Ends a line or turns the direction: marks, embeddings, overrides, isolates, separators. */
static bool turns(unsigned code) {
    return code == 0x061C || code == 0x200E || code == 0x200F ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

/* What can be shown as it is, from `c` on; *n: bytes of the character behind it, 0 if it is none. */
static size_t plain_length(const char *c, size_t *n) {
    size_t length = 0;
    while ((*n = ct_utf8_length(c + length)) > 0) {
        unsigned code = code_of(c + length, *n);
        if ((code < 0x20 && code != '\t') || (code >= 0x7F && code < 0xA0) || turns(code)) break;
        length += *n;
    }
    return length;
}

/* Adds n bytes of text, which may have 0 bytes in it only behind them. */
static void add_shown(ct_text *out, const char *text, size_t n) {
    for (size_t k = 0; k < n;) {
        size_t n_odd, plain = plain_length(text + k, &n_odd);
        if (plain > n - k) plain = n - k;
        ct_text_add(out, "%.*s", (int)plain, text + k);
        k += plain;
        if (k == n) return;
        bool is_byte = n_odd < 2;
        ct_text_add(out, is_byte ? "\\x%02x" : "\\u%04x",
                    is_byte ? (unsigned char)text[k] : code_of(text + k, n_odd));
        k += is_byte ? 1 : n_odd;
    }
}

/* The text with every new line of the format as `mark`. */
static void print_marked(const char *format, char mark, va_list args, ct_text *out) {
    CT_SCOPED_BLOCK(char) marked = ct_strdup(format);
    out->failed = marked == NULL;
    for (char *c = marked; c != NULL && (c = strchr(c, '\n')) != NULL;) *c = mark;
    if (marked != NULL) ct_text_add_list(out, marked, args);
}

static void put(FILE *out, const ct_text *text) {
    fputs(!text->failed ? text->chars : "(no memory to print a line)\n", out);
}

/* Printed twice with two marks, the format's own ends of lines are where the texts differ. */
void ct_show(FILE *out, const char *format, ...) {
    CT_SCOPED(ct_text) text = {0};
    CT_SCOPED(ct_text) other = {0};
    CT_SCOPED(ct_text) shown = {0};
    va_list args;
    va_start(args, format);
    print_marked(format, '\1', args, &text);
    va_end(args);
    va_start(args, format);
    print_marked(format, '\2', args, &other);
    va_end(args);
    shown.failed = text.failed || other.failed;
    ct_text_add(&shown, "%s", "");
    for (size_t k = 0; k < text.n && !shown.failed;) {
        size_t n = 0;
        while (k + n < text.n && text.chars[k + n] == other.chars[k + n]) n++;
        add_shown(&shown, text.chars + k, n);
        if (k + n < text.n) ct_text_add(&shown, "\n");
        k += n + 1;
    }
    put(out, &shown);
}

void ct_show_lines(FILE *out, const char *text) {
    CT_SCOPED(ct_text) shown = {0};
    ct_text_add(&shown, "%s", "");
    while (*text != '\0' && !shown.failed) {
        size_t n = strcspn(text, "\n");
        add_shown(&shown, text, n);
        if (text[n] != '\0') ct_text_add(&shown, "\n");
        text += n + (text[n] != '\0');
    }
    put(out, &shown);
}
