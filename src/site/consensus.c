/* The mean of all models, of the sites that are there when training has ended.
 *
 * Sites know from each other's states (states.c) who is there and who hears whom. All that hear each
 * other, directly or through others, are a component; its breadth-first tree from the first site is
 * the same at all of them. A site adds its own model to the sums of its children and sends the sum,
 * marked with the tree, to its parent; the root divides, and the mean floods back. If anyone goes or
 * comes meanwhile the tree is another, and sums of the old one count for nothing. */
#include "site/site_internal.h"

#include <math.h>
#include <string.h>

#include "util/hash.h"
#include "util/log.h"
#include "util/memory.h"

/* Before the sums in a letter. */
typedef struct head {
    uint64_t tree;
    uint64_t n_sites;
} head;
_Static_assert(sizeof(head) == CT_SUM_HEAD, "the head of a sum");

/* The sites that are there, as seen from here. */
typedef struct component {
    int n;             /* sites in it */
    int *order;        /* [n] breadth first */
    int *parent;       /* [n_sites] -1: the first, or not in it */
    bool is_all_ended; /* none of them trains any more */
    uint64_t tree;
} component;

static bool hears(const ct_site_record *record, int other) {
    for (int e = 0; e < record->n_links; e++)
        if (record->links[e] == other) return true;
    return false;
}

static bool are_joined(const ct_site *site, int i, int j) {
    return hears(&site->records[i], j) && hears(&site->records[j], i);
}

/* Breadth first from a site, neighbours ascending. */
static void search(const ct_site *site, int first, component *out) {
    const ct_topology *graph = &site->federation->graph;
    for (int i = 0; i < graph->n; i++) out->parent[i] = -1;
    out->order[0] = first;
    out->n = 1;
    for (int at = 0; at < out->n; at++) {
        int i = out->order[at];
        for (int e = graph->begin[i]; e < graph->begin[i + 1]; e++) {
            int j = graph->neighbour[e];
            if (j == first || out->parent[j] >= 0 || !are_joined(site, i, j)) continue;
            out->parent[j] = i;
            out->order[out->n++] = j;
        }
    }
}

static void find_component(const ct_site *site, component *out) {
    search(site, site->options.me, out);
    int first = site->options.me;
    for (int k = 0; k < out->n; k++)
        if (out->order[k] < first) first = out->order[k];
    search(site, first, out);
    out->is_all_ended = true;
    out->tree = CT_HASH_START;
    for (int k = 0; k < out->n; k++) {
        int i = out->order[k];
        out->is_all_ended = out->is_all_ended && site->records[i].phase >= CT_SITE_ENDED;
        out->tree =
            ct_hash_number(ct_hash_number(out->tree, (uint64_t)i), (uint64_t)(out->parent[i] + 1));
    }
}

/* ---- letters ---- */

ct_status ct_site_hear_sum(ct_site *site, int k, const ct_letter *letter) {
    size_t n = site->training.n_mean;
    head said;
    if (!site->is_training_known) return CT_OK; /* it is sent again when we have come in */
    if (letter->n != sizeof said + n * sizeof(ct_fixed)) {
        ct_site_cut(site, k, "sent a sum of %zu bytes", letter->n);
        return CT_OK;
    }
    memcpy(&said, letter->bytes, sizeof said);
    if (said.n_sites < 1 || said.n_sites >= (uint64_t)site->federation->n_sites) {
        ct_site_cut(site, k, "sent a sum over %llu sites", (unsigned long long)said.n_sites);
        return CT_OK;
    }
    for (size_t i = 0; i < n; i++) {
        ct_fixed sum;
        memcpy(&sum, (const char *)letter->bytes + sizeof said + i * sizeof sum, sizeof sum);
        if (ct_fixed_is_sum(sum, (int)said.n_sites)) continue;
        ct_site_cut(site, k, "sent a sum that models cannot have");
        return CT_OK;
    }
    return ct_kept_set(&site->neighbours[k].sum, letter->bytes, letter->n);
}

static ct_status spread_result(ct_site *site, const void *bytes, size_t n, int from) {
    CT_TRY(ct_kept_set(&site->result, bytes, n));
    for (int k = 0; k < site->n; k++)
        if (k != from && site->neighbours[k].is_up)
            CT_TRY(ct_site_post(site, k, CT_LETTER_RESULT, 0, site->iteration, "consensus model",
                                bytes, n));
    return CT_OK;
}

/* head: tree and number of sites, then the mean. The first one counts. */
ct_status ct_site_hear_result(ct_site *site, int k, const ct_letter *letter) {
    size_t n = site->training.n_mean;
    head said = {0};
    /* who does not know its own model yet asks for this one later */
    if (site->result.n > 0 || !site->is_training_known) return CT_OK;
    bool fits = letter->n == sizeof said + n * sizeof(float);
    if (fits) memcpy(&said, letter->bytes, sizeof said);
    fits = fits && said.n_sites >= 1 && said.n_sites <= (uint64_t)site->federation->n_sites;
    const float *mean = (const float *)(const void *)((const char *)letter->bytes + sizeof said);
    for (size_t i = 0; fits && i < n; i++) fits = isfinite(mean[i]);
    if (!fits) {
        ct_site_cut(site, k, "sent a consensus model that is none");
        return CT_OK;
    }
    return spread_result(site, letter->bytes, letter->n, k);
}

/* ---- the tree ---- */

/* Sites of the tree at or below one. */
static uint64_t count_below(const component *c, int site) {
    uint64_t n = 0;
    for (int k = 0; k < c->n; k++) {
        int at = c->order[k];
        while (at >= 0 && at != site) at = c->parent[at];
        n += at == site;
    }
    return n;
}

/* Adds the children's sums of this tree; false: not all are here yet. Whoever sends a sum that is no
 * sum of models is cut off. */
static bool add_children(ct_site *site, const component *c, ct_fixed *sums, size_t n,
                         uint64_t *n_sites) {
    for (int k = 0; k < site->n; k++) {
        const ct_kept *sum = &site->neighbours[k].sum;
        head said = {0};
        if (c->parent[site->neighbours[k].agent] != site->options.me) continue;
        if (sum->n > 0) memcpy(&said, sum->bytes, sizeof said);
        if (sum->n == 0 || said.tree != c->tree) return false;
        uint64_t n_below = count_below(c, site->neighbours[k].agent);
        if (said.n_sites == n_below) continue;
        ct_site_cut(site, k, "sent a sum over %llu sites for %llu",
                    (unsigned long long)said.n_sites, (unsigned long long)n_below);
        ct_kept_free(&site->neighbours[k].sum);
        return false;
    }
    for (int k = 0; k < site->n; k++) {
        const ct_kept *sum = &site->neighbours[k].sum;
        head said;
        if (c->parent[site->neighbours[k].agent] != site->options.me) continue;
        memcpy(&said, sum->bytes, sizeof said);
        *n_sites += said.n_sites;
        for (size_t i = 0; i < n; i++) {
            ct_fixed term;
            memcpy(&term, sum->bytes + sizeof said + i * sizeof term, sizeof term);
            sums[i] += term;
        }
    }
    return true;
}

static ct_status conclude(ct_site *site, const component *c, const ct_fixed *sums, size_t n,
                          uint64_t n_sites) {
    CT_SCOPED_BLOCK(uint8_t) letter = NULL;
    head said = {.tree = c->tree, .n_sites = n_sites};
    int up = c->parent[site->options.me];
    size_t width = up >= 0 ? sizeof *sums : sizeof(float);
    CT_TRY(ct_make(&letter, sizeof said + n * width, "the mean of models"));
    memcpy(letter, &said, sizeof said);
    if (up < 0) {
        ct_fixed_mean(sums, n, (int)n_sites, (float *)(void *)(letter + sizeof said));
        return spread_result(site, letter, sizeof said + n * width, -1);
    }
    memcpy(letter + sizeof said, sums, n * width);
    return ct_site_post(site, ct_site_neighbour(site, up), CT_LETTER_SUM, 0, site->iteration,
                        "sum of a subtree", letter, sizeof said + n * width);
}

/* Everyone is there, or has been waited for long enough. */
static bool is_ready(const ct_site *site, const component *c) {
    bool is_complete = c->n == site->federation->n_sites;
    bool is_over = ct_seconds() - site->ended_s > site->options.patience_s;
    return c->is_all_ended && (is_complete || is_over);
}

static ct_status seek(ct_site *site, component *c, const ct_fixed *own, ct_fixed *sums, size_t n) {
    uint64_t done = 0, n_meetings = 0;
    double noted = ct_seconds();
    bool has_sent = false;
    while (site->result.n == 0) {
        CT_TRY(ct_site_ask_finished(site));
        find_component(site, c);
        /* to a parent that was away for a moment it is sent again */
        bool is_new = !has_sent || done != c->tree || n_meetings != site->n_meetings;
        uint64_t n_sites = 1;
        memcpy(sums, own, n * sizeof *sums);
        if (is_new && is_ready(site, c) && add_children(site, c, sums, n, &n_sites)) {
            CT_TRY(conclude(site, c, sums, n, n_sites));
            done = c->tree;
            n_meetings = site->n_meetings;
            has_sent = true;
        }
        if (site->result.n > 0) break;
        CT_TRY(ct_site_wait(site));
        ct_site_note_missing(site, &noted);
    }
    return CT_OK;
}

ct_status ct_site_mean(ct_site *site, ct_fixed *own, float *mean, int *n_sites) {
    size_t n_all = (size_t)site->federation->n_sites, n = site->training.n_mean;
    CT_SCOPED_BLOCK(int) order = NULL;
    CT_SCOPED_BLOCK(int) parent = NULL;
    CT_SCOPED_BLOCK(ct_fixed) sums = NULL;
    CT_TRY(ct_make(&order, n_all, "the tree"));
    CT_TRY(ct_make(&parent, n_all, "the tree"));
    CT_TRY(ct_make(&sums, n, "the mean of models"));
    component c = {.order = order, .parent = parent};
    site->phase = CT_SITE_ENDED;
    site->iteration = site->training.n_iterations;
    site->ended_s = ct_seconds();
    CT_TRY(ct_site_attend(site));
    CT_TRY(seek(site, &c, own, sums, n));
    head said;
    memcpy(&said, site->result.bytes, sizeof said);
    memcpy(mean, site->result.bytes + sizeof said, n * sizeof *mean);
    *n_sites = (int)said.n_sites;
    return ct_site_attend(site);
}

void ct_site_linger(ct_site *site) {
    double began = ct_seconds();
    site->phase = CT_SITE_FINISHED; /* it is on disk: nobody need keep it for us */
    if (CT_CATCH(NULL, ct_site_attend(site)) != CT_OK) return;
    for (bool is_over = false; !is_over;) {
        is_over = true;
        for (int k = 0; k < site->n; k++) {
            ct_phase_of_site phase = site->records[site->neighbours[k].agent].phase;
            bool is_there = site->neighbours[k].is_up || phase == CT_SITE_ENDED; /* or comes back */
            is_over = is_over && (!is_there || phase == CT_SITE_FINISHED);
        }
        is_over = is_over || ct_seconds() - began > site->options.patience_s;
        if (!is_over && CT_CATCH(NULL, ct_site_wait(site)) != CT_OK) return;
    }
}
