/* The options of a run against those that an earlier one has saved. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schema/config.h"
#include "util/json.h"

void ct_option_text(const ct_json *value, ct_text *out) {
    switch (value->kind) {
    case CT_JSON_STRING: ct_text_add(out, "%s", value->string); break;
    case CT_JSON_BOOL: ct_text_add(out, "%s", value->number != 0 ? "on" : "off"); break;
    default:
        if (value->number == floor(value->number) && fabs(value->number) < 1e16)
            ct_text_add(out, "%.0f", value->number);
        else
            ct_json_add_number(out, value->number);
        break;
    }
}

static bool is_same(const ct_json *a, const ct_json *b) {
    if (b == NULL || a->kind != b->kind) return false;
    return a->kind == CT_JSON_STRING ? strcmp(a->string, b->string) == 0 : a->number == b->number;
}

ct_status ct_config_to_json(const ct_config *config, ct_json **out) {
    ct_text text = {0};
    ct_text_add(&text, "{");
    ct_config_print_json(config, &text);
    ct_text_add(&text, "}");
    ct_status status = ct_text_status(&text);
    if (status == CT_OK) status = ct_json_parse(text.chars, text.n, "options", out);
    ct_text_free(&text);
    return status;
}

ct_status ct_config_find_difference(const ct_config *config, const ct_json *saved,
                                    ct_difference_skip *skip, char *name, size_t size,
                                    ct_text *ours, ct_text *theirs) {
    ct_json *now = NULL;
    name[0] = '\0';
    CT_TRY(ct_config_to_json(config, &now));
    for (const ct_json *o = now->child; o != NULL && name[0] == '\0'; o = o->next) {
        const ct_json *then = saved != NULL ? ct_json_get(saved, o->key) : NULL;
        if (is_same(o, then)) continue;
        if (skip != NULL ? skip(o, then) : ct_config_is_local(o->key)) continue;
        snprintf(name, size, "%s", o->key);
        ct_option_text(o, ours);
        if (then != NULL) ct_option_text(then, theirs);
    }
    ct_json_free(&now);
    return CT_OK;
}

/* An option that an earlier version did not know had its default there. */
static bool is_default(const ct_option *o, const ct_json *ours) {
    ct_text text = {0};
    ct_option_text(ours, &text);
    bool is = o->value != NULL && strcmp(text.n > 0 ? text.chars : "", o->value) == 0;
    ct_text_free(&text);
    return is;
}

bool ct_difference_may_resume(const ct_json *ours, const ct_json *theirs) {
    const ct_option *o = ct_schema_find(ours->key);
    if (o != NULL && theirs == NULL && is_default(o, ours)) return true;
    return o != NULL && (o->roles & (CT_ROLE_LOCAL | CT_ROLE_LENGTH | CT_ROLE_CONTENT)) != 0;
}
