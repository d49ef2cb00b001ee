#include "record/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"
#include "util/memory.h"

enum { SAME, BITS, ONCE };

static const struct {
    const char *name;
    int rule;
} fields[] = {
#define IDENTITY(name, rule) {#name, rule},
#include "record/identity_list.h"
#undef IDENTITY
};

void ct_identity_set(ct_identity *identity, ct_identity_id id, const char *value) {
    snprintf(identity->value[id], sizeof identity->value[id], "%s", value);
}

void ct_identity_set_sum(ct_identity *identity, ct_identity_id id, uint64_t sum) {
    char text[24] = "";
    if (sum != 0) snprintf(text, sizeof text, "%016" PRIx64, sum);
    ct_identity_set(identity, id, text);
}

void ct_identity_print(const ct_identity *identity, ct_text *out) {
    const char *before = "";
    for (int k = 0; k < CT_N_IDENTITY; k++) {
        if (identity->value[k][0] == '\0') continue;
        ct_text_add(out, "%s\"%s\": ", before, fields[k].name);
        ct_json_add_string(out, identity->value[k]);
        before = ", ";
    }
}

/* What was saved, where both are known and not the same; else NULL. */
static const char *other_value(const ct_identity *now, const ct_json *saved, int k) {
    const ct_json *then = ct_json_get(saved, fields[k].name);
    if (then == NULL || then->kind != CT_JSON_STRING || now->value[k][0] == '\0') return NULL;
    return strcmp(then->string, now->value[k]) != 0 ? then->string : NULL;
}

ct_status ct_identity_check(const ct_identity *now, const ct_json *saved) {
    CT_SCOPED(ct_text) changes = {0};
    if (saved == NULL || saved->kind != CT_JSON_OBJECT) {
        ct_note("the checkpoint is of an earlier version, which wrote down nothing about its data "
                "and its machine: whether they are the same is not checked");
        return CT_OK;
    }
    for (int k = 0; k < CT_N_IDENTITY; k++) {
        const char *then = other_value(now, saved, k);
        if (then == NULL || fields[k].rule == ONCE) continue;
        if (fields[k].rule == SAME)
            return ct_fail(
                CT_DIFFERS,
                "this would be another run than the checkpoint's: the %s has the checksum "
                "%s here, %s there",
                fields[k].name, now->value[k], then);
        ct_text_add(&changes, "%s%s %s (was %s)", changes.n > 0 ? ", " : "", fields[k].name,
                    now->value[k], then);
    }
    CT_TRY(ct_text_status(&changes));
    if (changes.n > 0)
        ct_note("the last bits may differ from those of a run that was never stopped: %s",
                changes.chars);
    return CT_OK;
}
