/* Text that grows, and numbers parsed whole ("8x" is an error). */
#ifndef CT_UTIL_TEXT_H
#define CT_UTIL_TEXT_H

#include "util/status.h"

typedef struct ct_text {
    char *chars; /* always terminated once anything was added; NULL before */
    size_t n;
    size_t capacity;
    bool failed; /* memory ran out: the text is incomplete; ct_text_status() says so */
} ct_text;

void ct_text_add(ct_text *text, const char *format, ...) CT_PRINTF(2, 3);
/* CT_OK, or CT_NOMEM if some ct_text_add could not be done. */
ct_status ct_text_status(const ct_text *text);
void ct_text_free(ct_text *text);
/* Adds a field of a CSV line, quoted where it must be. */
void ct_csv_add(ct_text *out, const char *field);

/* The whole string is one number of that kind; otherwise false and *out is left alone.
 * Numbers may have blanks around them; nan, inf and hexadecimal are refused. */
bool ct_parse_i64(const char *text, int64_t *out);
bool ct_parse_double(const char *text, double *out);
/* "on|off", "true|false", "yes|no", "1|0" */
bool ct_parse_bool(const char *text, bool *out);

/* The fields of a comma-separated list, blanks trimmed: calls `each` for every field until it
 * fails. */
ct_status ct_split(const char *list, ct_status (*each)(void *context, const char *field),
                   void *context);

/* Parts of a list with this sign between them: "a,b" has 2, "" (what there is without a list) 1. */
int ct_count_parts(const char *list, char between);

/* The lines of a text in memory, which is changed: their ends (LF or CRLF) become 0, and a 0 within
 * one becomes '?', so that it does not seem to end there. The text has a byte more than its length
 * (as a ct_blob does). */
typedef struct ct_lines {
    char *rest, *end; /* what was not read yet, and where it ends */
    unsigned number;  /* of the last line read, from 1 on */
} ct_lines;
/* The next line, or NULL. */
char *ct_lines_next(ct_lines *lines);

/* Bytes of the UTF-8 character at `c`, 0 if there is none (RFC 3629: no surrogates, no overlong
 * forms, nothing above U+10FFFF). Reads no further than the first wrong byte. */
size_t ct_utf8_length(const char *c);

/* The text without blanks around it; its end is cut off in place. */
char *ct_trim(char *text);

/* The distance of two words in single-character edits. */
size_t ct_edit_distance(const char *a, const char *b);

/* For "did you mean": the nearest of the words that are known, if one is near enough.
 *     ct_guess guess = {.word = given};
 *     ct_guess_try(&guess, known); ...
 *     guess.nearest[0] != '\0' */
typedef struct ct_guess {
    const char *word;
    char nearest[64]; /* "": none */
    size_t distance;  /* of it */
} ct_guess;
void ct_guess_try(ct_guess *guess, const char *known);

#endif
