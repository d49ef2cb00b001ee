#include "util/registry.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"

bool ct_spec_is(const char *spec, const char *name) {
    size_t n = strcspn(spec, ":");
    return strlen(name) == n && strncmp(name, spec, n) == 0;
}

typedef struct names {
    ct_text known;
    ct_guess guess;
} names;

static void add_name(void *context, const char *name, const char *text) {
    (void)text;
    names *list = context;
    ct_text_add(&list->known, "%s%s", list->known.n == 0 ? "" : ", ", name);
    ct_guess_try(&list->guess, name);
}

static ct_status refuse_name(const char *option, const char *name, const names *list) {
    const char *nearest = list->guess.nearest;
    CT_TRY(ct_text_status(&list->known));
    if (nearest[0] != '\0')
        return ct_refuse(option, "no @%s '%.100s'; did you mean %s? known: %s", option, name,
                         nearest, list->known.chars);
    return ct_refuse(option, "no @%s '%.100s'; known: %s", option, name, list->known.chars);
}

ct_status ct_unknown_name(const char *option, const char *name, const char *more,
                          ct_registry_each list) {
    char word[64];
    names found = {.guess.word = word};
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, ":"), name);
    if (more != NULL) ct_text_add(&found.known, "%s", more);
    list(add_name, &found);
    ct_status status = refuse_name(option, name, &found);
    ct_text_free(&found.known);
    return status;
}
