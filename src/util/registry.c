#include "util/registry.h"

#include <string.h>

#include "util/memory.h"
#include "util/text.h"

bool ct_spec_is(const char *spec, const char *name) {
    size_t n = strcspn(spec, ":");
    return strlen(name) == n && strncmp(name, spec, n) == 0;
}

static void add_name(void *context, const char *name, const char *text) {
    (void)text;
    ct_text *known = context;
    ct_text_add(known, "%s%s", known->n == 0 ? "" : ", ", name);
}

ct_status ct_unknown_name(const char *option, const char *name, const char *more,
                          ct_registry_each list) {
    CT_SCOPED(ct_text) known = {0};
    if (more != NULL) ct_text_add(&known, "%s", more);
    list(add_name, &known);
    CT_TRY(ct_text_status(&known));
    return ct_refuse(option, "no @%s '%.100s'; known: %s", option, name, known.chars);
}
