#include "run/together.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "topology/topology.h"
#include "util/memory.h"

ct_status ct_together_meet(const char *transport, double timeout_s, ct_transport **out) {
    ct_transport_options options = {.kind = transport, .timeout_s = timeout_s};
    return ct_transport_create(&options, CT_MAX_AGENTS, out); /* as many ranks as there may be */
}

ct_status ct_together_hear(ct_transport *t, int rank, int mine, int *out) {
    return ct_transport_vote(t, ct_transport_rank(t) == rank ? mine : INT_MIN, out);
}

ct_status ct_together_least(ct_transport *t, int mine, int *out) {
    CT_TRY(ct_transport_vote(t, -mine, out));
    *out = -*out;
    return CT_OK;
}

/* ---- failures: "<rank> <status> <words>", "" of a rank that has none ---- */

static ct_status keep_first(void *unused, const char *theirs, size_t n, ct_text *mine) {
    (void)unused;
    bool is_first = mine->n == 0 || strtol(theirs, NULL, 10) < strtol(mine->chars, NULL, 10);
    if (n == 0 || !is_first) return CT_OK;
    ct_text_free(mine);
    ct_text_add(mine, "%.*s", (int)n, theirs);
    return ct_text_status(mine);
}

static ct_status fail_as(const char *said) {
    char *rest = NULL;
    long rank = strtol(said, &rest, 10);
    long status = strtol(rest, &rest, 10);
    bool is_known = status > CT_OK && status <= CT_DIFFERS;
    return ct_fail(is_known ? (ct_status)status : CT_IO, "rank %ld:%s", rank, rest);
}

ct_status ct_together(ct_transport *t, const ct_error *mine) {
    CT_SCOPED(ct_text) words = {0};
    bool has_failed = mine->status != CT_OK;
    int failed = 0;
    if (ct_transport_n_ranks(t) > 1) CT_TRY(ct_transport_vote(t, has_failed, &failed));
    if (failed != 0) {
        if (has_failed)
            ct_text_add(&words, "%d %d %s", ct_transport_rank(t), (int)mine->status, mine->text);
        else
            ct_text_add(&words, "%s", "");
        CT_TRY(ct_text_status(&words));
        CT_TRY(ct_transport_merge(t, keep_first, NULL, &words));
    }
    if (has_failed) return ct_fail_again(mine);
    return failed != 0 ? fail_as(words.chars) : CT_OK;
}
