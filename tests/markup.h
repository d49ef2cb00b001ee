/* Is it well-formed? A strict reader of tags for pages and drawings, of which our own have neither
 * comments nor CDATA. */
#ifndef CT_TESTS_MARKUP_H
#define CT_TESTS_MARKUP_H

#include "test.h"

/* One tag at `at` (which is '<'): its name, whether it opens, closes or both. */
typedef struct tag {
    char name[64];
    bool opens, closes;
} tag;

static inline const char *read_attributes(const char *at, tag *t) {
    while (*at != '\0' && *at != '>' && *at != '<') {
        if (*at == '"') {
            const char *end = at + 1 + strcspn(at + 1, "\"<");
            if (*end != '"') return NULL;
            at = end;
        }
        if (at[0] == '/' && at[1] == '>') t->closes = true;
        at++;
    }
    return *at == '>' ? at + 1 : NULL;
}

static inline const char *read_tag(const char *at, tag *t) {
    *t = (tag){.opens = at[1] != '/', .closes = at[1] == '/'};
    at += 1 + !t->opens;
    size_t n = strcspn(at, " \n/>");
    if (n == 0 || n >= sizeof t->name) return NULL;
    memcpy(t->name, at, n);
    return read_attributes(at + n, t);
}

/* A & begins one of the five entities that every XML reader knows. */
static inline bool is_entity(const char *at) {
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strncmp(at, known[k], strlen(known[k])) == 0) return true;
    return false;
}

/* Every tag is closed, in order; every & and < is one that should be there; ids are unique. */
static inline const char *find_flaw(const char *text) {
    static char open[256][64];
    int depth = 0;
    const char *at = strncmp(text, "<!DOCTYPE html>", 15) == 0 ? text + 15 : text;
    while (*at != '\0') {
        tag t;
        const char *begin = at;
        if (*at == '&' && !is_entity(at)) return at;
        if (*at != '<') {
            at++;
            continue;
        }
        at = read_tag(at, &t);
        if (at == NULL || (t.opens && !t.closes && depth == 256)) return begin;
        if (t.opens && !t.closes) snprintf(open[depth++], sizeof open[0], "%s", t.name);
        if (!t.opens && (depth == 0 || strcmp(open[--depth], t.name) != 0)) return begin;
    }
    return depth == 0 ? NULL : at;
}

static inline bool has_unique_ids(const char *text) {
    for (const char *at = text; (at = strstr(at, " id=\"")) != NULL; at++) {
        char id[128];
        size_t n = strcspn(at + 5, "\"");
        if (n + 8 >= sizeof id) return false;
        snprintf(id, sizeof id, " id=\"%.*s\"", (int)n, at + 5);
        if (strstr(at + 1, id) != NULL) {
            printf("    twice:%s\n", id);
            return false;
        }
    }
    return true;
}

#endif
