/* What all ranks must have alike is an object of texts, {"@lr": "0.1", "commit": "..."}: rank 0 reads
 * everyone's and compares them with its own. A name that one of them does not have is not compared:
 * a part of the data has no fingerprint of the whole. */
#include <string.h>

#include "transport/transport_internal.h"
#include "util/memory.h"

/* An empty text is worth saying so. */
static const char *shown(const ct_json *value) {
    return value->string[0] != '\0' ? value->string : "none";
}

static ct_status compare(const ct_json *ours, const ct_json *theirs, int rank) {
    for (const ct_json *o = ours->child; o != NULL; o = o->next) {
        const ct_json *t = ct_json_get(theirs, o->key);
        if (t == NULL || (t->kind == CT_JSON_STRING && strcmp(o->string, t->string) == 0)) continue;
        if (t->kind != CT_JSON_STRING) return ct_fail(CT_IO, "rank %d sent no text", rank);
        return ct_fail(CT_INVAL,
                       "rank %d has %s %s, rank 0 has %s: all ranks of a job must have the same",
                       rank, o->key, shown(t), shown(o));
    }
    return CT_OK;
}

ct_status ct_agreement_check(const ct_json *ours, int rank, const char *text, size_t n) {
    CT_SCOPED_HANDLE(ct_json) theirs = NULL;
    CT_TRY(ct_json_parse(text, n, "what another rank says of itself", &theirs));
    if (theirs->kind != CT_JSON_OBJECT) return ct_fail(CT_IO, "rank %d sent no object", rank);
    return compare(ours, theirs, rank);
}

static ct_status judge(void *context, int rank, const char *text, size_t n) {
    return ct_agreement_check(context, rank, text, n);
}

ct_status ct_transport_agree(ct_transport *t, const ct_text *mine) {
    CT_SCOPED(ct_text) text = {0};
    CT_SCOPED_HANDLE(ct_json) ours = NULL;
    if (t->n_ranks == 1) return CT_OK;
    ct_text_add(&text, "{%s}", mine->chars);
    CT_TRY(ct_text_status(&text));
    CT_TRY(ct_json_parse(text.chars, text.n, "what this rank says of itself", &ours));
    return ct_mpi->compare(t, text.chars, text.n, judge, ours);
}
