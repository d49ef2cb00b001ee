#include "util/json.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/budget.h"
#include "util/memory.h"

#define MAX_DEPTH   64
#define BLOCK_NODES 32 /* as many as a line of metrics has */

/* Nodes are taken from blocks: half the memory of one block each, and a list to free. */
typedef struct block {
    struct block *before;
    size_t n; /* of the nodes that are used */
    ct_json nodes[];
} block;

/* What the root of a text is a part of. The text is a terminated copy behind it, so that looking one
 * character ahead is always allowed; strings are resolved in place (an escape is never shorter than
 * what it stands for) and live as long as the root. */
typedef struct document {
    ct_json root;
    block *last;
    char text[];
} document;

typedef struct reader {
    document *document;
    size_t n_values, max_values; /* so far, and allowed */
    char *at;
    char *begin;
    char *end;
    const char *text; /* as it was given */
    const char *what;
} reader;

static ct_status refuse(const reader *r, const char *reason) {
    size_t line = 1;
    for (ptrdiff_t k = 0; k < r->at - r->begin; k++) line += r->text[k] == '\n';
    return ct_fail(CT_IO, "%s: line %zu: %s", r->what, line, reason);
}

static void skip_blanks(reader *r) {
    r->at += strspn(r->at, " \t\n\r");
}

/* True if there are any. */
static bool skip_digits(reader *r) {
    size_t n = strspn(r->at, "0123456789");
    r->at += n;
    return n > 0;
}

static ct_status read_number(reader *r, double *out) {
    char *end = NULL, *begin = r->at;
    if (*r->at == '-') r->at++;
    if (*r->at == '0')
        r->at++; /* a leading zero stands alone */
    else if (!skip_digits(r))
        return refuse(r, "a number needs digits");
    if (*r->at == '.') {
        r->at++;
        if (!skip_digits(r)) return refuse(r, "a number needs digits after its point");
    }
    if (*r->at == 'e' || *r->at == 'E') {
        r->at++;
        if (*r->at == '+' || *r->at == '-') r->at++;
        if (!skip_digits(r)) return refuse(r, "a number needs digits in its exponent");
    }
    double value = strtod(begin, &end);
    if (end != r->at) return refuse(r, "not a number"); /* 0x10: no hexadecimal in JSON */
    if (!isfinite(value)) return refuse(r, "a number too large for a double");
    *out = value;
    return CT_OK;
}

static char *put_utf8(char *to, unsigned code) {
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int n_more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned lead[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = (char)(lead[n_more] | code >> (6 * n_more));
    for (int i = n_more - 1; i >= 0; i--) *to++ = (char)(0x80 | (code >> (6 * i) & 0x3F));
    return to;
}

static ct_status read_hex4(reader *r, unsigned *out) {
    char digits[5] = {0};
    for (int i = 0; i < 4; i++, r->at++) {
        if (!isxdigit((unsigned char)*r->at)) return refuse(r, "\\u needs four hexadecimal digits");
        digits[i] = *r->at;
    }
    *out = (unsigned)strtoul(digits, NULL, 16);
    return CT_OK;
}

/* What follows \u; characters beyond U+FFFF are written as a pair of surrogates. */
static ct_status read_unicode(reader *r, char **to) {
    unsigned code = 0, low = 0;
    CT_TRY(read_hex4(r, &code));
    if (code == 0) return refuse(r, "\\u0000 is not allowed here");
    if (code >= 0xDC00 && code <= 0xDFFF) return refuse(r, "half a surrogate pair");
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (r->at[0] != '\\' || r->at[1] != 'u') return refuse(r, "half a surrogate pair");
        r->at += 2;
        CT_TRY(read_hex4(r, &low));
        if (low < 0xDC00 || low > 0xDFFF) return refuse(r, "half a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    *to = put_utf8(*to, code);
    return CT_OK;
}

static ct_status read_escape(reader *r, char **to) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    r->at++;
    char c = *r->at;
    const char *name = c == '\0' ? NULL : strchr(names, c);
    if (name == NULL && c != 'u') return refuse(r, "an unknown escape in a string");
    r->at++;
    if (name == NULL) return read_unicode(r, to);
    *(*to)++ = values[name - names];
    return CT_OK;
}

static ct_status read_string(reader *r, char **out) {
    if (*r->at != '"') return refuse(r, "expected a string");
    char *begin = ++r->at, *to = begin;
    while (*r->at != '"') {
        if (*r->at == '\\') {
            CT_TRY(read_escape(r, &to));
            continue;
        }
        if ((unsigned char)*r->at < 0x20)
            return refuse(r, r->at == r->end ? "a string does not end"
                                             : "a control character in a string");
        size_t n = ct_utf8_length(r->at);
        if (n == 0) return refuse(r, "a string is not UTF-8");
        memmove(to, r->at, n);
        to += n;
        r->at += n;
    }
    r->at++;
    *to = '\0';
    *out = begin;
    return CT_OK;
}

static ct_status read_word(reader *r, ct_json *value) {
    static const char *const words[] = {"null", "true", "false"};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if (strncmp(r->at, words[i], n) != 0) continue;
        r->at += n;
        value->kind = i == 0 ? CT_JSON_NULL : CT_JSON_BOOL;
        value->number = i == 1;
        return CT_OK;
    }
    return refuse(r, r->at == r->end ? "the text ends too early" : "expected a value");
}

/* A value; of an array or an object only the opening bracket. */
static ct_status read_value(reader *r, ct_json *value) {
    char c = *r->at;
    if (c == '{' || c == '[') {
        value->kind = c == '{' ? CT_JSON_OBJECT : CT_JSON_ARRAY;
        r->at++;
        return CT_OK;
    }
    if (c == '"') {
        value->kind = CT_JSON_STRING;
        return read_string(r, &value->string);
    }
    if (c != '-' && !isdigit((unsigned char)c)) return read_word(r, value);
    value->kind = CT_JSON_NUMBER;
    return read_number(r, &value->number);
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static ct_status check_keys(const reader *r, const ct_json *object) {
    CT_SCOPED_BLOCK(const char *) keys = NULL;
    size_t n = 0;
    CT_TRY(ct_make(&keys, object->n_children, r->what));
    for (const ct_json *c = object->child; c != NULL; c = c->next) keys[n++] = c->key;
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 1; i < n; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            return ct_fail(CT_IO, "%s: the key \"%.100s\" appears twice", r->what, keys[i]);
    return CT_OK;
}

/* The arrays and objects that are open, outermost first, and the last child of each. */
typedef struct open_list {
    ct_json *open[MAX_DEPTH];
    ct_json *last[MAX_DEPTH];
    int depth;
} open_list;

/* A block with room for n nodes and so many bytes behind them, at the end of the document's. */
static block *add_block(document *d, size_t n, size_t n_bytes) {
    block *b = ct_alloc(sizeof(block) + n * sizeof(ct_json) + n_bytes, 1);
    if (b == NULL) return NULL;
    b->before = d->last;
    d->last = b;
    return b;
}

static ct_status new_node(reader *r, ct_json **out) {
    if (r->n_values++ == r->max_values)
        return ct_fail(CT_IO, "%s: more than the %zu values allowed in this JSON text", r->what,
                       r->max_values);
    block *b = r->document->last;
    if (b == NULL || b->n == BLOCK_NODES) b = add_block(r->document, BLOCK_NODES, 0);
    if (b == NULL) return ct_no_memory(r->what);
    *out = &b->nodes[b->n++];
    return CT_OK;
}

/* Reads the next child of the innermost open container, with its key, and hangs it in. */
static ct_status read_child(reader *r, open_list *list) {
    ct_json *parent = list->open[list->depth - 1];
    ct_json **last = &list->last[list->depth - 1];
    ct_json *child = NULL;
    CT_TRY(new_node(r, &child));
    if (*last == NULL)
        parent->child = child;
    else
        (*last)->next = child;
    *last = child;
    parent->n_children++;
    if (parent->kind == CT_JSON_OBJECT) {
        CT_TRY(read_string(r, &child->key));
        skip_blanks(r);
        if (*r->at != ':') return refuse(r, "expected ':' after a key");
        r->at++;
        skip_blanks(r);
    }
    return read_value(r, child);
}

static ct_status open_container(const reader *r, open_list *list, ct_json *value) {
    if (value->kind != CT_JSON_ARRAY && value->kind != CT_JSON_OBJECT) return CT_OK;
    if (list->depth == MAX_DEPTH) return refuse(r, "nested deeper than 64");
    list->open[list->depth] = value;
    list->last[list->depth] = NULL;
    list->depth++;
    return CT_OK;
}

/* One step inside the innermost container: its end, or one more child. */
static ct_status advance(reader *r, open_list *list) {
    ct_json *parent = list->open[list->depth - 1];
    bool is_object = parent->kind == CT_JSON_OBJECT;
    skip_blanks(r);
    if (*r->at == (is_object ? '}' : ']')) {
        r->at++;
        list->depth--;
        return is_object ? check_keys(r, parent) : CT_OK;
    }
    if (parent->n_children > 0) {
        if (*r->at != ',')
            return refuse(r, is_object ? "expected ',' or '}'" : "expected ',' or ']'");
        r->at++;
        skip_blanks(r);
    }
    CT_TRY(read_child(r, list));
    return open_container(r, list, list->last[list->depth - 1]);
}

static ct_status read_document(reader *r, ct_json *root) {
    open_list list = {.depth = 0};
    skip_blanks(r);
    CT_TRY(read_value(r, root));
    CT_TRY(open_container(r, &list, root));
    while (list.depth > 0) CT_TRY(advance(r, &list));
    skip_blanks(r);
    return r->at == r->end ? CT_OK : refuse(r, "characters after the end");
}

ct_status ct_json_parse(const char *text, size_t n, const char *what, ct_json **out) {
    return ct_json_parse_most(text, n, what, CT_MAX_JSON_VALUES, out);
}

ct_status ct_json_parse_most(const char *text, size_t n, const char *what, size_t max_values,
                             ct_json **out) {
    document *d = n < SIZE_MAX - sizeof *d ? ct_alloc(sizeof *d + n + 1, 1) : NULL;
    if (d == NULL) return ct_no_memory(what);
    CT_SCOPED_HANDLE(ct_json) root = &d->root;
    if (n > 0) memcpy(d->text, text, n);
    reader r = {.document = d,
                .max_values = max_values,
                .at = d->text,
                .begin = d->text,
                .end = d->text + n,
                .text = text,
                .what = what};
    CT_TRY(read_document(&r, root));
    ct_move(out, &root);
    return CT_OK;
}

void ct_json_free(ct_json **json) {
    document *d = (document *)*json;
    *json = NULL;
    if (d == NULL) return;
    for (block *b = d->last; b != NULL;) {
        block *before = b->before;
        ct_free(b);
        b = before;
    }
    ct_free(d);
}

const ct_json *ct_json_get(const ct_json *object, const char *key) {
    if (object == NULL || object->kind != CT_JSON_OBJECT) return NULL;
    for (const ct_json *c = object->child; c != NULL; c = c->next)
        if (strcmp(c->key, key) == 0) return c;
    return NULL;
}

ct_status ct_json_insert(ct_json *object, const char *key, double number) {
    size_t n = strlen(key) + 1;
    block *b = add_block((document *)object, 1, n);
    if (b == NULL) return ct_no_memory(key);
    b->n = BLOCK_NODES; /* it has no room for others */
    ct_json *member = &b->nodes[0];
    member->kind = isfinite(number) ? CT_JSON_NUMBER : CT_JSON_NULL;
    member->number = number;
    member->key = memcpy(member + 1, key, n);
    member->next = object->child;
    object->child = member;
    object->n_children++;
    return CT_OK;
}

/* The bytes at `c` that need no escape. */
static size_t plain_length(const char *c) {
    size_t n = 0;
    while ((unsigned char)c[n] >= 0x20 && c[n] != '"' && c[n] != '\\') {
        size_t n_char = ct_utf8_length(c + n);
        if (n_char == 0) break;
        n += n_char;
    }
    return n;
}

void ct_json_add_string(ct_text *out, const char *text) {
    ct_text_add(out, "\"");
    while (*text != '\0') {
        size_t n = plain_length(text);
        if (n > INT_MAX) n = INT_MAX; /* a precision is an int */
        ct_text_add(out, "%.*s", (int)n, text);
        text += n;
        if (n > 0) continue;
        unsigned char c = (unsigned char)*text++;
        if (c == '"' || c == '\\')
            ct_text_add(out, "\\%c", c);
        else if (c == '\n')
            ct_text_add(out, "\\n");
        else /* not UTF-8: the replacement character */
            ct_text_add(out, "\\u%04x", c < 0x20 ? c : 0xfffdu);
    }
    ct_text_add(out, "\"");
}

void ct_json_add_number(ct_text *out, double number) {
    if (!isfinite(number)) {
        ct_text_add(out, "null");
        return;
    }
    char digits[32];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number) break;
    }
    ct_text_add(out, "%s", digits);
}
