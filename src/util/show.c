#include "util/show.h"

#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
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

/* Goes out in one piece if there is room, as lines of several ranks must not mix; takes no memory,
 * which is what the line may be about. */
typedef struct line {
    FILE *out;
    size_t n;
    char chars[8192];
} line;

static void send(line *l) {
    if (l->n > 0) fwrite(l->chars, 1, l->n, l->out); /* main asks the stream */
    l->n = 0;
}

static void add(line *l, const char *bytes, size_t n) {
    while (n > 0) {
        size_t room = sizeof l->chars - l->n, some = n < room ? n : room;
        memcpy(l->chars + l->n, bytes, some);
        l->n += some;
        bytes += some;
        n -= some;
        if (l->n == sizeof l->chars) send(l);
    }
}

/* Adds n bytes of text, which may have 0 bytes in it only behind them. */
static void add_shown(line *out, const char *text, size_t n) {
    for (size_t k = 0; k < n;) {
        size_t n_odd, plain = plain_length(text + k, &n_odd);
        char code[16];
        if (plain > n - k) plain = n - k;
        add(out, text + k, plain);
        k += plain;
        if (k == n) return;
        bool is_byte = n_odd < 2;
        snprintf(code, sizeof code, is_byte ? "\\x%02x" : "\\u%04x",
                 is_byte ? (unsigned char)text[k] : code_of(text + k, n_odd));
        add(out, code, strlen(code));
        k += is_byte ? 1 : n_odd;
    }
}

static atomic_bool has_failed;

bool ct_show_has_failed(void) {
    return atomic_load(&has_failed);
}

/* A text of any length; one that is not very long takes no memory either. */
typedef struct printed {
    char room[4096];
    char *longer; /* or NULL */
    const char *chars;
} printed;

/* The text with every new line of the format as `mark`. */
static void print_marked(const char *format, char mark, va_list args, printed *out) {
    char marked[1024];
    va_list again;
    assert(strlen(format) < sizeof marked);
    snprintf(marked, sizeof marked, "%s", format);
    for (char *c = marked; (c = strchr(c, '\n')) != NULL;) *c = mark;
    va_copy(again, args);
    int n = vsnprintf(out->room, sizeof out->room, marked, args);
    out->longer = n >= (int)sizeof out->room ? ct_new(char, (size_t)n + 1) : NULL;
    if (out->longer != NULL) vsnprintf(out->longer, (size_t)n + 1, marked, again);
    va_end(again);
    out->chars = out->longer != NULL ? out->longer : out->room;
    if (n < 0 || (n >= (int)sizeof out->room && out->longer == NULL))
        atomic_store(&has_failed, true);
}

/* Printed twice with two marks, the format's own ends of lines are where the texts differ. */
void ct_show(FILE *out, const char *format, ...) {
    printed text, other;
    line shown = {.out = out};
    va_list args;
    va_start(args, format);
    print_marked(format, '\1', args, &text);
    va_end(args);
    va_start(args, format);
    print_marked(format, '\2', args, &other);
    va_end(args);
    const char *at = text.chars, *beside = other.chars;
    while (*at != '\0' && *beside != '\0') {
        size_t n = 0;
        while (at[n] != '\0' && at[n] == beside[n]) n++;
        add_shown(&shown, at, n);
        if (at[n] != '\0') add(&shown, "\n", 1);
        at += n + (at[n] != '\0');
        beside += n + (beside[n] != '\0');
    }
    send(&shown);
    ct_free(text.longer);
    ct_free(other.longer);
}

void ct_show_lines(FILE *out, const char *text) {
    line shown = {.out = out};
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        add_shown(&shown, text, n);
        if (text[n] != '\0') add(&shown, "\n", 1);
        text += n + (text[n] != '\0');
    }
    send(&shown);
}
