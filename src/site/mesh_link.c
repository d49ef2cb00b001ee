/* A peer's connection from its beginning to its end, and what the clock says about it. */
#include "site/mesh_internal.h"

#if CT_WITH_ZMQ
#include <stdarg.h>
#include <stdio.h>

#define SILENT_BEATS 3 /* without a frame: gone; without reading: likewise */
#define RETRY_BEATS  3
#define COLD_BEATS   5 /* ignored after a broken rule */

static void discard_inbox(ct_link *l) {
    while (l->inbox.first != NULL) {
        ct_parcel *parcel = ct_parcels_pop(&l->inbox);
        if (parcel == l->lent)
            ct_parcels_push(&l->stale, parcel);
        else
            ct_free(parcel);
    }
}

void ct_link_up(ct_mesh *m, ct_link *l, const ct_greeting *theirs, double now) {
    pthread_mutex_lock(&m->lock);
    discard_inbox(l); /* of a peer that had left */
    l->is_up = true;
    l->n_connections++;
    l->longest = theirs->max_letter_bytes < m->max_letter_bytes ? (size_t)theirs->max_letter_bytes
                                                                : m->max_letter_bytes;
    l->n_window = 2 * (size_t)(theirs->max_letter_bytes < SIZE_MAX / 4 ? theirs->max_letter_bytes
                                                                       : SIZE_MAX / 4);
    l->n_status = 0;
    pthread_mutex_unlock(&m->lock);
    l->up_at = l->heard_at = l->moved_at = l->beat_at = now;
    ct_mesh_tell(m, CT_MESH_UP, l->index, "%s", "");
}

/* keeps: letters that have arrived whole may still be taken, and its last status. */
static void end(ct_mesh *m, ct_link *l, double now, bool keeps, const char *why) {
    pthread_mutex_lock(&m->lock);
    bool was_up = l->is_up;
    l->is_up = false;
    ct_parcels_free(&l->outbox);
    if (!keeps) {
        discard_inbox(l);
        l->n_status = 0;
    }
    l->n_taken = l->n_taken_told = l->n_taken_bytes = l->n_taken_bytes_told = 0;
    l->refused[0] = '\0';
    l->traffic.rtt_s = 0;
    pthread_mutex_unlock(&m->lock);
    ct_free(ct_take(&l->arriving));
    ct_free(ct_take(&l->leaving));
    if (l->peer.dials)
        ct_link_hang_up(l, m->beat_s / 2);
    else if (l->route.socket != NULL)
        ct_link_cut_later(m, l, &l->route, now);
    l->old = l->route;
    l->route = (ct_route){.fd = -1};
    l->wire = (ct_wire_session){.max_letter_bytes = m->max_letter_bytes};
    l->is_connected = l->has_greeted = l->is_blocked = l->is_lost = l->owes_sight = false;
    l->flight = (ct_flight){.n_allowed = 1};
    l->n_left = l->n_flying_bytes = 0;
    l->status_told = l->clock = l->n_needed = 0;
    l->dial_at = now + (was_up ? 0.5 : RETRY_BEATS) * m->beat_s;
    if (was_up) ct_mesh_tell(m, CT_MESH_DOWN, l->index, "%s", why);
}

void ct_link_end(ct_mesh *m, ct_link *l, double now, const char *why) {
    end(m, l, now, false, why);
}

void ct_link_leave(ct_mesh *m, ct_link *l, double now) {
    end(m, l, now, true, "left");
    l->dial_at = now + RETRY_BEATS * m->beat_s;
}

/* After the time that a last frame may need. */
void ct_link_cut_later(ct_mesh *m, ct_link *l, const ct_route *route, double now) {
    if (l->cut.socket != NULL) ct_route_cut(&l->cut);
    l->cut = *route;
    l->cut_at = now + m->beat_s / 2;
}

/* Printable, as a refusal's text must be, and not too long. */
static void tidy(char *text, size_t size, const char *from) {
    snprintf(text, size, "%s", from[0] != '\0' ? from : "no reason");
    for (char *c = text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~') *c = '?';
}

void ct_link_disagree(ct_mesh *m, ct_link *l, double now, const char *line) {
    char reason[CT_WIRE_REASON + 1];
    tidy(reason, sizeof reason, line);
    if (l->route.socket != NULL && (!l->peer.dials || l->is_connected))
        ct_link_send_refusal(m, l, reason);
    ct_mesh_tell_refused(m, &l->refusals, l->index, line);
    end(m, l, now, false, "refused");
    l->dial_at = now + RETRY_BEATS * m->beat_s;
}

void ct_link_refuse(ct_mesh *m, ct_link *l, double now, const char *reason) {
    char line[CT_LINE];
    tidy(l->reason, sizeof l->reason, reason);
    snprintf(line, sizeof line, "%s broke the rules: %s", l->peer.name, l->reason);
    ct_link_disagree(m, l, now, line);
    l->cold_until = now + COLD_BEATS * m->beat_s;
    l->dial_at = l->cold_until;
}

/* ---- the clock ---- */

/* The socket is there, or its host's name is being looked up. */
static ct_status try_to_dial(ct_mesh *m, ct_link *l) {
    char address[CT_MESH_ADDRESS];
    if (!ct_lookup_is_needed(l->peer.address)) return ct_link_dial(m, l, l->peer.address);
    if (l->lookup == NULL) return ct_lookup_start(m, l->peer.address, l->n_dialled++, &l->lookup);
    ct_status status = ct_lookup_result(l->lookup, address);
    ct_lookup_free(&l->lookup);
    return status == CT_OK ? ct_link_dial(m, l, address) : status;
}

static void dial(ct_mesh *m, ct_link *l, double now) {
    ct_error error;
    double wait_s = SILENT_BEATS * m->beat_s;
    if (l->lookup != NULL && !ct_lookup_is_done(l->lookup)) return;
    if (CT_CATCH(&error, try_to_dial(m, l)) != CT_OK) {
        char line[CT_LINE];
        snprintf(line, sizeof line, "%s cannot be dialled: %s", l->peer.name, error.text);
        ct_mesh_tell_refused(m, &l->refusals, l->index, line);
        end(m, l, now, false, "");
        return;
    }
    l->until = now + (wait_s > 1 ? wait_s : 1);
}

/* What becomes of a connection that we dialled. */
static void watch(ct_mesh *m, ct_link *l) {
    char why[CT_LINE];
    int state = ct_link_watch(l, why);
    if (state > 0) l->is_connected = true;
    if (state < 0) l->is_lost = true; /* what came before is looked at first */
    if (why[0] != '\0') ct_mesh_tell_refused(m, &l->refusals, l->index, why);
}

static void look_at_clock(ct_mesh *m, ct_link *l, bool is_drained, double now) {
    char why[64];
    double limit = (is_drained ? SILENT_BEATS : SILENT_BEATS + 1) * m->beat_s;
    if (l->wire.n_seen == l->wire.n_sent && !l->is_blocked) l->moved_at = now;
    if (now - l->heard_at > limit) {
        snprintf(why, sizeof why, "silent for %.3g s", SILENT_BEATS * m->beat_s);
        ct_link_end(m, l, now, why);
    } else if (now - l->moved_at > limit) {
        ct_link_end(m, l, now, "does not read");
    }
}

bool ct_link_tick(ct_mesh *m, ct_link *l, bool is_drained, double now) {
    char refused[CT_WIRE_REASON];
    bool was_lost = l->is_lost;
    if (l->cut.socket != NULL && now >= l->cut_at) ct_route_cut(&l->cut);
    pthread_mutex_lock(&m->lock);
    memcpy(refused, l->refused, sizeof refused);
    bool is_closing = m->is_closing;
    pthread_mutex_unlock(&m->lock);
    if (refused[0] != '\0') ct_link_refuse(m, l, now, refused);
    if (l->peer.dials && l->route.socket == NULL && now >= l->dial_at && !is_closing)
        dial(m, l, now);
    if (l->peer.dials && !l->is_lost) watch(m, l);
    if (was_lost && is_drained)
        ct_link_end(m, l, now, "connection lost");
    else if (l->is_up)
        look_at_clock(m, l, is_drained, now);
    else if (l->route.socket != NULL && now > l->until)
        end(m, l, now, false, "");
    return l->is_lost && !was_lost;
}
#endif
