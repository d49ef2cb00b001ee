/* What all sites agree on before they train, round by round: up a spanning tree, merged on the way,
 * and back to everyone. A text begins with '+', a refusal with '-'. */
#include "site/site_internal.h"

#include <string.h>

#include "util/json.h"
#include "util/log.h"
#include "util/memory.h"

#define WAIT_NOTE_S 10.0 /* between two notes about who is missing */

/* The breadth-first tree from site 0. */
ct_status ct_site_init_tree(ct_site *site) {
    CT_SCOPED(ct_topology) tree = {0};
    bool was_tree;
    int me = site->options.me;
    CT_TRY(ct_topology_spanning_tree(&site->federation->graph, &tree, &was_tree));
    CT_SCOPED_BLOCK(int) parent = NULL;
    CT_SCOPED_BLOCK(int) queue = NULL;
    CT_TRY(ct_make(&parent, (size_t)tree.n, "the tree"));
    CT_TRY(ct_make(&queue, (size_t)tree.n, "the tree"));
    for (int i = 1; i < tree.n; i++) parent[i] = -1;
    for (int at = 0, n = 1; at < n; at++) {
        int i = queue[at];
        for (int e = tree.begin[i]; e < tree.begin[i + 1]; e++) {
            int j = tree.neighbour[e];
            if (j == 0 || parent[j] >= 0) continue;
            parent[j] = i;
            queue[n++] = j;
        }
    }
    site->parent = me == 0 ? -1 : ct_site_neighbour(site, parent[me]);
    for (int k = 0; k < site->n; k++)
        site->is_child[k] =
            site->neighbours[k].agent != 0 && parent[site->neighbours[k].agent] == me;
    return CT_OK;
}

static ct_status post_text(ct_site *site, int k, ct_letter_kind kind, int round,
                           const ct_kept *text) {
    return ct_site_post(site, k, kind, round, 0, "agreement", text->bytes, text->n);
}

/* Who comes gets all that was agreed, and the parent what this side of the tree says. */
ct_status ct_site_meet(ct_site *site, int k) {
    for (int r = 0; r < CT_MAX_ROUNDS; r++) {
        if (site->agreed[r].n > 0)
            CT_TRY(post_text(site, k, CT_LETTER_AGREED, r, &site->agreed[r]));
        else if (k == site->parent && site->mine[r].n > 0)
            CT_TRY(post_text(site, k, CT_LETTER_SAYS, r, &site->mine[r]));
    }
    return CT_OK;
}

static bool is_text(ct_site *site, int k, const ct_letter *letter) {
    const char *bytes = letter->bytes;
    bool fits = letter->tag < CT_MAX_ROUNDS && letter->n > 0 &&
                (bytes[0] == '+' || bytes[0] == '-') && memchr(bytes, '\0', letter->n) == NULL;
    if (!fits) ct_site_cut(site, k, "sent an agreement that is none");
    return fits;
}

ct_status ct_site_hear_says(ct_site *site, int k, const ct_letter *letter) {
    if (!is_text(site, k, letter)) return CT_OK;
    if (!site->is_child[k]) {
        ct_site_cut(site, k, "sent an agreement that is for another site");
        return CT_OK;
    }
    return ct_kept_set(&site->neighbours[k].says[letter->tag], letter->bytes, letter->n);
}

static ct_status settle(ct_site *site, int round, const void *bytes, size_t n, int from) {
    CT_TRY(ct_kept_set(&site->agreed[round], bytes, n));
    for (int k = 0; k < site->n; k++)
        if (k != from && site->neighbours[k].is_up)
            CT_TRY(post_text(site, k, CT_LETTER_AGREED, round, &site->agreed[round]));
    return CT_OK;
}

ct_status ct_site_hear_agreed(ct_site *site, int k, const ct_letter *letter) {
    if (!is_text(site, k, letter) || site->agreed[letter->tag].n > 0) return CT_OK;
    return settle(site, letter->tag, letter->bytes, letter->n, k);
}

/* ---- one round ---- */

static bool has_all_children(const ct_site *site, int round) {
    for (int k = 0; k < site->n; k++)
        if (site->is_child[k] && site->neighbours[k].says[round].n == 0) return false;
    return true;
}

static ct_status merge_children(ct_site *site, int round, ct_site_merge *merge, void *context,
                                ct_text *text) {
    for (int k = 0; k < site->n; k++) {
        const ct_kept *said = &site->neighbours[k].says[round];
        if (!site->is_child[k]) continue;
        if (said->bytes[0] == '-')
            return ct_fail(CT_INVAL, "%.*s", (int)said->n - 1, (const char *)said->bytes + 1);
        CT_TRY(merge(context, (const char *)said->bytes + 1, said->n - 1, text));
    }
    return CT_OK;
}

/* What this side of the tree says, once all of it has: to the parent, or, at its root, to all. */
static ct_status speak(ct_site *site, int round, ct_site_merge *merge, void *context,
                       const ct_text *mine) {
    CT_SCOPED(ct_text) text = {0}, marked = {0};
    ct_error error;
    ct_text_add(&text, "%s", mine->chars);
    ct_status status = CT_CATCH(&error, merge_children(site, round, merge, context, &text));
    if (status != CT_OK && status != CT_INVAL && status != CT_IO) return ct_fail_again(&error);
    if (status == CT_OK)
        ct_text_add(&marked, "+%s", text.chars);
    else
        ct_text_add(&marked, "-%s", error.text);
    CT_TRY(ct_text_status(&marked));
    CT_TRY(ct_kept_set(&site->mine[round], marked.chars, marked.n));
    if (site->parent < 0) return settle(site, round, marked.chars, marked.n, -1);
    if (!site->neighbours[site->parent].is_up) return CT_OK; /* it is sent when the parent comes */
    return post_text(site, site->parent, CT_LETTER_SAYS, round, &site->mine[round]);
}

void ct_site_note_missing(const ct_site *site, double *noted) {
    CT_SCOPED(ct_text) names = {0};
    double now = ct_seconds();
    if (now - *noted < WAIT_NOTE_S) return;
    *noted = now;
    for (int k = 0; k < site->n; k++)
        if (!site->neighbours[k].is_up)
            ct_text_add(&names, "%s%s", names.n > 0 ? ", " : "", ct_site_name(site, k));
    if (names.n > 0)
        ct_note("waiting for %s", names.chars);
    else
        ct_note("waiting for sites further away");
}

/* What others agreed on without us must suit us too. */
static ct_status check_agreed(const ct_kept *agreed, ct_site_merge *merge, void *context,
                              const ct_text *mine) {
    CT_SCOPED(ct_text) theirs = {0};
    ct_text_add(&theirs, "%s", (const char *)agreed->bytes + 1);
    CT_TRY(ct_text_status(&theirs));
    return merge(context, mine->chars, mine->n, &theirs);
}

ct_status ct_site_agree(ct_site *site, ct_site_merge *merge, void *context, ct_text *text) {
    int round = site->round++;
    double noted = ct_seconds();
    if (round >= CT_MAX_ROUNDS) return ct_fail(CT_INVAL, "too many rounds of agreement");
    const ct_kept *agreed = &site->agreed[round];
    CT_TRY(ct_site_attend(site));
    while (agreed->n == 0) {
        if (site->mine[round].n == 0 && has_all_children(site, round))
            CT_TRY(speak(site, round, merge, context, text));
        if (agreed->n > 0) break;
        CT_TRY(ct_site_wait(site));
        ct_site_note_missing(site, &noted);
    }
    if (agreed->bytes[0] == '-') return ct_fail(CT_INVAL, "%s", (const char *)agreed->bytes + 1);
    if (site->mine[round].n == 0) CT_TRY(check_agreed(agreed, merge, context, text));
    ct_text_free(text);
    ct_text_add(text, "%s", (const char *)agreed->bytes + 1);
    return ct_text_status(text);
}

bool ct_site_is_late(const ct_site *site) {
    return site->agreed[0].n > 0 && site->mine[0].n == 0;
}

/* ---- kept for next time ---- */

void ct_site_print_agreed(const ct_site *site, ct_text *out) {
    ct_text_add(out, "{\"agreed\": [");
    for (int r = 0; r < CT_MAX_ROUNDS && site->agreed[r].n > 0; r++) {
        ct_text_add(out, "%s\n", r > 0 ? "," : "");
        ct_json_add_string(out, (const char *)site->agreed[r].bytes);
    }
    ct_text_add(out, "\n]}\n");
}

ct_status ct_site_take_agreed(ct_site *site, const char *text, size_t n, const char *what) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    int round = 0;
    CT_TRY(ct_json_parse(text, n, what, &json));
    const ct_json *list = ct_json_get(json, "agreed");
    if (list == NULL || list->kind != CT_JSON_ARRAY || list->n_children > CT_MAX_ROUNDS)
        return ct_fail(CT_IO, "%s: not what sites agree on", what);
    for (const ct_json *at = list->child; at != NULL; at = at->next, round++) {
        if (at->kind != CT_JSON_STRING || at->string[0] != '+')
            return ct_fail(CT_IO, "%s: not what sites agree on", what);
        CT_TRY(ct_kept_set(&site->agreed[round], at->string, strlen(at->string)));
    }
    return CT_OK;
}
