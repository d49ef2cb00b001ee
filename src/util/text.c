#include "util/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/memory.h"

#define BLANKS " \t\r\n\v\f"

/* Room for n more characters and the terminator. */
static bool reserve(ct_text *text, size_t n) {
    if (n >= SIZE_MAX / 2 - text->n) return false;
    size_t needed = text->n + n + 1;
    if (needed <= text->capacity) return true;
    size_t capacity = needed < 128 ? 128 : needed * 2;
    char *chars = ct_grow(text->chars, text->n, capacity, 1);
    if (chars == NULL) return false;
    text->chars = chars;
    text->capacity = capacity;
    return true;
}

void ct_text_add(ct_text *text, const char *format, ...) {
    va_list args, again;
    if (text->failed) return;
    va_start(args, format);
    va_copy(again, args);
    size_t room = text->capacity - text->n; /* mostly it fits, and is done */
    int n = vsnprintf(room > 0 ? text->chars + text->n : NULL, room, format, args);
    bool has_room = n >= 0 && ((size_t)n < room || reserve(text, (size_t)n));
    if (has_room && (size_t)n >= room)
        vsnprintf(text->chars + text->n, (size_t)n + 1, format, again);
    if (has_room) text->n += (size_t)n;
    if (!has_room && room > 0) text->chars[text->n] = '\0';
    text->failed = !has_room;
    va_end(again);
    va_end(args);
}

ct_status ct_text_status(const ct_text *text) {
    if (!text->failed) return CT_OK;
    return ct_fail(CT_NOMEM, "no memory for a text of more than %zu characters", text->n);
}

void ct_text_free(ct_text *text) {
    ct_free(text->chars);
    *text = (ct_text){0};
}

void ct_csv_add(ct_text *out, const char *field) {
    if (strpbrk(field, ",\"\r\n") == NULL) {
        ct_text_add(out, "%s", field);
        return;
    }
    ct_text_add(out, "\"");
    for (; *field != '\0'; field++) ct_text_add(out, *field == '"' ? "\"\"" : "%c", *field);
    ct_text_add(out, "\"");
}

static const char *skip_blanks(const char *at) {
    while (isspace((unsigned char)*at)) at++;
    return at;
}

bool ct_parse_i64(const char *text, int64_t *out) {
    const char *begin = skip_blanks(text);
    char *end;
    errno = 0;
    long long value = strtoll(begin, &end, 10);
    if (end == begin || *skip_blanks(end) != '\0' || errno == ERANGE) return false;
    *out = value;
    return true;
}

bool ct_parse_double(const char *text, double *out) {
    const char *begin = skip_blanks(text);
    char *end;
    double value = strtod(begin, &end);
    bool is_plain = end != begin && strspn(begin, "+-.0123456789eE") == (size_t)(end - begin);
    if (!is_plain || *skip_blanks(end) != '\0' || !isfinite(value)) return false;
    *out = value;
    return true;
}

bool ct_parse_bool(const char *text, bool *out) {
    static const char *const yes[] = {"on", "true", "yes", "1"};
    static const char *const no[] = {"off", "false", "no", "0"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        bool is_yes = strcasecmp(text, yes[i]) == 0;
        if (!is_yes && strcasecmp(text, no[i]) != 0) continue;
        *out = is_yes;
        return true;
    }
    return false;
}

/* A blank list has no fields; "a,,b" has an empty one in the middle, for `each` to judge. */
ct_status ct_split(const char *list, ct_status (*each)(void *context, const char *field),
                   void *context) {
    if (*skip_blanks(list) == '\0') return CT_OK;
    CT_SCOPED_BLOCK(char) copy = NULL;
    CT_TRY(ct_make_text(&copy, list));
    for (char *field = copy; field != NULL;) {
        char *comma = strchr(field, ',');
        if (comma != NULL) *comma = '\0';
        CT_TRY(each(context, ct_trim(field)));
        field = comma == NULL ? NULL : comma + 1;
    }
    return CT_OK;
}

int ct_count_parts(const char *list, char between) {
    int n = 1;
    for (; *list != '\0'; list++) n += *list == between;
    return n;
}

char *ct_lines_next(ct_lines *lines) {
    char *line = lines->rest, *end = lines->end;
    if (line == NULL || line == end) return NULL;
    char *stop = memchr(line, '\n', (size_t)(end - line));
    lines->rest = stop != NULL ? stop + 1 : NULL;
    if (stop == NULL) stop = end;
    if (stop > line && stop[-1] == '\r') stop--;
    *stop = '\0';
    for (char *c = line; c < stop; c++)
        if (*c == '\0') *c = '?';
    lines->number++;
    return line;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Levenshtein's recurrence, one row of the table at a time. */
size_t ct_edit_distance(const char *a, const char *b) {
    size_t n_a = strlen(a), n_b = strlen(b);
    CT_SCOPED_BLOCK(size_t) row = ct_new(size_t, n_b + 1);
    if (row == NULL) return n_a > n_b ? n_a : n_b; /* as if nothing matched */
    for (size_t j = 0; j <= n_b; j++) row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t above = row[j];
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            row[j] = smaller(replaced, smaller(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[n_b];
}

void ct_guess_try(ct_guess *guess, const char *known) {
    size_t n = strlen(known), limit = strlen(guess->word) / 3 + 2;
    size_t best = guess->nearest[0] != '\0' ? guess->distance : limit;
    size_t distance = n < sizeof guess->nearest ? ct_edit_distance(guess->word, known) : limit;
    if (distance >= best || distance >= n) return;
    memcpy(guess->nearest, known, n + 1);
    guess->distance = distance;
}

size_t ct_utf8_length(const char *c) {
    const unsigned char *u = (const unsigned char *)c;
    if (u[0] < 0x80) return 1;
    if (u[0] < 0xC2 || u[0] > 0xF4) return 0;
    size_t n = u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3 : 4;
    unsigned low = u[0] == 0xE0 ? 0xA0 : u[0] == 0xF0 ? 0x90 : 0x80;
    unsigned high = u[0] == 0xED ? 0x9F : u[0] == 0xF4 ? 0x8F : 0xBF;
    if (u[1] < low || u[1] > high) return 0;
    for (size_t i = 2; i < n; i++)
        if (u[i] < 0x80 || u[i] > 0xBF) return 0;
    return n;
}

char *ct_trim(char *text) {
    text += strspn(text, BLANKS);
    size_t n = strlen(text);
    while (n > 0 && strchr(BLANKS, text[n - 1]) != NULL) text[--n] = '\0';
    return text;
}
