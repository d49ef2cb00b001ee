/* Rows to and from neighbours.
 *
 * Packed rows may be *changes*, added to what the receiver has of the row. Both ends of an edge must
 * begin with the same: the first row that an edge carries since it started is whole, and marked as
 * such. An edge that starts with the run needs none: everyone has the start values. Who goes misses
 * changes, but has to start the edge anew to be sent any more. */
#include <math.h>
#include <string.h>

#include "site/site_internal.h"
#include "util/memory.h"

#define WHOLE 0x8000u /* in a letter's tag, beside the exchange */

/* In which iteration the edge started, as both ends have said. */
static long start_of(const ct_neighbour *neighbour) {
    return neighbour->my_start > neighbour->their_start ? neighbour->my_start
                                                        : neighbour->their_start;
}

/* Changes can be added: to start values, or to the whole row of this start (`since`). */
static bool has_begun(const ct_neighbour *neighbour, long since) {
    return start_of(neighbour) == 0 || since == start_of(neighbour);
}

bool ct_site_takes_changes(const ct_site *site, int agent) {
    const ct_neighbour *neighbour = &site->neighbours[ct_site_neighbour(site, agent)];
    return has_begun(neighbour, neighbour->told);
}

ct_status ct_site_send(ct_site *site, int agent, int exchange, const ct_site_parcel *parcel,
                       bool *is_sent) {
    int k = ct_site_neighbour(site, agent);
    ct_neighbour *neighbour = &site->neighbours[k];
    int tag = exchange | (parcel->is_first ? (int)WHOLE : 0);
    *is_sent = false;
    if (!ct_site_is_with_in(neighbour, site->iteration)) return CT_OK;
    if (parcel->is_first) neighbour->told = start_of(neighbour);
    return ct_site_try_post(site, k, CT_LETTER_ROW, tag, site->iteration, parcel->what,
                            parcel->bytes, parcel->n, is_sent);
}

/* From a neighbour that trains already, and now waits for ours: there is one at a time. */
ct_status ct_site_keep_early(ct_site *site, int k, const ct_letter *letter) {
    ct_early *early = &site->neighbours[k].early;
    CT_TRY(ct_kept_set(&early->row, letter->bytes, letter->n));
    early->iteration = letter->iteration;
    early->exchange = letter->tag;
    return CT_OK;
}

/* ---- what came is input ---- */

static bool are_finite(const float *row, size_t n) {
    bool all = true;
    for (size_t i = 0; i < n; i++) all = all && isfinite(row[i]);
    return all;
}

static bool cut_infinite(ct_site *site, int k, const ct_letter *letter) {
    ct_site_cut(site, k, "sent numbers that are not finite, in iteration %llu",
                (unsigned long long)letter->iteration);
    return false;
}

bool ct_site_is_row(ct_site *site, int k, const ct_letter *letter, size_t n) {
    if (letter->n != n * sizeof(float)) {
        ct_site_cut(site, k, "sent %zu bytes for a row of %zu numbers", letter->n, n);
        return false;
    }
    return are_finite(letter->bytes, n) || cut_infinite(site, k, letter);
}

static bool unpack(ct_site *site, int k, const ct_letter *letter, const ct_site_row *row) {
    const ct_neighbour *neighbour = &site->neighbours[k];
    if (letter->n != row->n_packed) {
        ct_site_cut(site, k, "sent %zu bytes for a packed row of %zu", letter->n, row->n_packed);
        return false;
    }
    if (row->are_changes && !has_begun(neighbour, neighbour->heard)) {
        ct_site_cut(site, k, "sent a change to a row that it has not sent");
        return false;
    }
    if (!row->unpack(row->context, letter->bytes, row->values)) {
        ct_site_cut(site, k, "sent a packed row that is none, in iteration %llu",
                    (unsigned long long)letter->iteration);
        return false;
    }
    return are_finite(row->values, row->n) || cut_infinite(site, k, letter);
}

/* The row that is waited for lies at the head of the neighbour's letters. */
static bool take(ct_site *site, int k, const ct_letter *letter, int exchange,
                 const ct_site_row *row) {
    bool is_first = row->are_changes && (letter->tag & WHOLE) != 0;
    unsigned tag = is_first ? letter->tag & ~WHOLE : letter->tag;
    if (letter->iteration != (uint64_t)site->iteration || tag != (unsigned)exchange) {
        ct_site_cut(site, k, "sent row %u of iteration %llu; row %d of iteration %ld was expected",
                    tag, (unsigned long long)letter->iteration, exchange, site->iteration);
        return false;
    }
    bool is_whole = is_first || row->n_packed == 0;
    bool is_good =
        is_whole ? ct_site_is_row(site, k, letter, row->n) : unpack(site, k, letter, row);
    if (is_good && is_whole) memcpy(row->values, letter->bytes, letter->n);
    if (row->are_changes)
        site->neighbours[k].heard = is_good ? start_of(&site->neighbours[k]) : CT_NEVER;
    return is_good;
}

/* It had come while we entered. */
static bool take_early(ct_site *site, int k, int exchange, const ct_site_row *row) {
    ct_neighbour *neighbour = &site->neighbours[k];
    ct_early *early = &neighbour->early;
    ct_letter letter = {.kind = CT_LETTER_ROW,
                        .tag = early->exchange,
                        .iteration = early->iteration,
                        .bytes = early->row.bytes,
                        .n = early->row.n};
    bool is_due = early->row.n > 0 && early->iteration >= (uint64_t)site->iteration;
    bool is_good = is_due && ct_site_is_with_in(neighbour, site->iteration) &&
                   take(site, k, &letter, exchange, row);
    if (is_good || !is_due) ct_kept_free(&early->row);
    return is_good;
}

ct_status ct_site_receive(ct_site *site, int agent, int exchange, const ct_site_row *row,
                          bool *has_arrived) {
    int k = ct_site_neighbour(site, agent);
    double began = ct_seconds();
    ct_letter letter;
    *has_arrived = false;
    CT_TRY(ct_site_attend(site));
    if (take_early(site, k, exchange, row)) {
        *has_arrived = true;
        return CT_OK;
    }
    while (ct_site_is_with_in(&site->neighbours[k], site->iteration)) {
        if (ct_site_peek(site, k, &letter) && letter.kind == CT_LETTER_ROW) {
            *has_arrived = take(site, k, &letter, exchange, row);
            if (*has_arrived) ct_mesh_drop(site->mesh, k);
            return ct_site_attend(site);
        }
        if (ct_seconds() - began > site->options.timeout_s)
            ct_site_cut(site, k, "is there, but has sent nothing for %g s",
                        site->options.timeout_s);
        CT_TRY(ct_site_pause(site));
    }
    return CT_OK;
}

bool ct_site_has(ct_site *site, int agent) {
    int k = ct_site_neighbour(site, agent);
    const ct_neighbour *neighbour = &site->neighbours[k];
    ct_letter letter;
    return !ct_site_is_with_in(neighbour, site->iteration) || neighbour->early.row.n > 0 ||
           (ct_site_peek(site, k, &letter) && letter.kind == CT_LETTER_ROW);
}

ct_status ct_site_await(ct_site *site) {
    return ct_site_pause(site);
}
