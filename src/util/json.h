/* A small JSON reader (RFC 8259) over text in memory, and the escaping a writer needs.
 * By hand, because the machines that only train should need nothing but zlib. */
#ifndef CT_UTIL_JSON_H
#define CT_UTIL_JSON_H

#include "util/status.h"
#include "util/text.h"

typedef enum ct_json_kind {
    CT_JSON_NULL,
    CT_JSON_BOOL,
    CT_JSON_NUMBER,
    CT_JSON_STRING,
    CT_JSON_ARRAY,
    CT_JSON_OBJECT,
} ct_json_kind;

typedef struct ct_json {
    ct_json_kind kind;
    double number;         /* CT_JSON_NUMBER; 0 or 1 for CT_JSON_BOOL */
    char *string;          /* CT_JSON_STRING: UTF-8, escapes resolved; lent by the root */
    char *key;             /* its name, if it is a member of an object; lent likewise */
    struct ct_json *child; /* first element or member */
    struct ct_json *next;  /* next sibling */
    size_t n_children;
} ct_json;

/* Parses `n` characters; nesting deeper than 64, trailing characters, invalid UTF-8 escapes,
 * duplicate keys and more values than allowed (budget.h) are refused. `what` names the text in the
 * message. What it gives is the root of all its values, and the only one to be freed. */
ct_status ct_json_parse(const char *text, size_t n, const char *what, ct_json **out);
ct_status ct_json_parse_most(const char *text, size_t n, const char *what, size_t max_values,
                             ct_json **out);
void ct_json_free(ct_json **json);
/* Member `key` of an object; NULL if there is none. */
const ct_json *ct_json_get(const ct_json *object, const char *key);

/* One member more for a root that is an object without `key`; null where the number is NaN or infinite. */
ct_status ct_json_insert(ct_json *object, const char *key, double number);

/* Adds "text" with quotes and escapes. */
void ct_json_add_string(ct_text *out, const char *text);
/* Adds a number that reads back to the same double; NaN and Inf become null (JSON has none). */
void ct_json_add_number(ct_text *out, double number);

#endif
