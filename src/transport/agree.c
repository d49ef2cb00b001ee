/* What all ranks must have alike is an object of texts, {"": "rank 0", "@lr": "0.1", "commit": "..."},
 * whose first member says whose it is. Two of them merge into the first if they agree. A name that
 * one of them does not have is not compared: a part of the data has no fingerprint of the whole. */
#include <string.h>

#include "transport/transport_internal.h"
#include "util/memory.h"

#define WHO "" /* no option and no fact is called so */

/* An empty text is worth saying so. */
static const char *shown(const ct_json *value) {
    return value->string[0] != '\0' ? value->string : "none";
}

static const char *who_said(const ct_json *object) {
    const ct_json *who = ct_json_get(object, WHO);
    return who != NULL && who->kind == CT_JSON_STRING ? who->string : "another rank";
}

static ct_status compare(const ct_json *ours, const ct_json *theirs, const char *all) {
    for (const ct_json *o = ours->child; o != NULL; o = o->next) {
        const ct_json *t = ct_json_get(theirs, o->key);
        if (t == NULL || strcmp(o->key, WHO) == 0) continue;
        if (t->kind != CT_JSON_STRING) return ct_fail(CT_IO, "%s sent no text", who_said(theirs));
        if (strcmp(o->string, t->string) == 0) continue;
        return ct_fail(CT_INVAL, "%s has %s %s, %s has %s: all %s must have the same",
                       who_said(theirs), o->key, shown(t), who_said(ours), shown(o), all);
    }
    return CT_OK;
}

static ct_status parse(const char *text, size_t n, const char *what, ct_json **out) {
    CT_TRY(ct_json_parse(text, n, what, out));
    return (*out)->kind == CT_JSON_OBJECT ? CT_OK : ct_fail(CT_IO, "%s is no object", what);
}

ct_status ct_agreement_merge(void *all, const char *theirs, size_t n, ct_text *mine) {
    CT_SCOPED_HANDLE(ct_json) ours = NULL;
    CT_SCOPED_HANDLE(ct_json) others = NULL;
    CT_TRY(parse(mine->chars, mine->n, "what this rank says of itself", &ours));
    CT_TRY(parse(theirs, n, "what another rank says of itself", &others));
    return compare(ours, others, all);
}

ct_status ct_transport_agree(ct_transport *t, const ct_text *mine) {
    CT_SCOPED(ct_text) text = {0};
    char ranks[] = "ranks of a job";
    /* sites have compared program and federation when they met; machines and data are their own */
    if (t->ops == NULL || t->site != NULL) return CT_OK;
    ct_text_add(&text, "{\"" WHO "\": \"rank %d\"%s%s}", t->rank, mine->n > 0 ? ", " : "",
                mine->n > 0 ? mine->chars : "");
    CT_TRY(ct_text_status(&text));
    return t->ops->merge(t, ct_agreement_merge, ranks, &text);
}
