/* What comes from a peer. Nothing is done with a frame before ct_wire_parse and ct_wire_accept have
 * let it through. */
#include "site/mesh_internal.h"

#if CT_WITH_ZMQ
#include <stdio.h>

/* ---- frames of the session ---- */

static ct_status check(const ct_arrival *a, ct_wire_session *session, ct_frame *out) {
    if (a->is_several) return ct_fail(CT_IO, "a message of several parts");
    CT_TRY(ct_wire_parse(zmq_msg_data((zmq_msg_t *)&a->message), zmq_msg_size(&a->message), out));
    return ct_wire_accept(session, out);
}

static void take_heartbeat(ct_mesh *m, ct_link *l, const ct_frame *f, double now) {
    double us = now * 1e6 - (double)f->total - (double)f->offset;
    l->clock = f->iteration;
    l->clock_at = now;
    pthread_mutex_lock(&m->lock);
    if (f->total != 0 && us >= 0) l->traffic.rtt_s = us / 1e6;
    if (f->flags == CT_WIRE_HAS_STATUS) {
        memcpy(l->status, f->bytes, f->n);
        l->n_status = f->n;
        l->n_statuses++;
        ct_mesh_ring(m->bell);
    }
    pthread_mutex_unlock(&m->lock);
}

static ct_status take_piece(ct_mesh *m, ct_link *l, const ct_frame *f) {
    if (f->offset == 0) {
        ct_letter letter = {
            .kind = f->kind, .tag = f->tag, .iteration = f->iteration, .n = (size_t)f->total};
        CT_TRY(ct_parcel_create(&letter, &l->arriving));
    }
    l->owes_sight = true;
    if (f->n > 0) memcpy(l->arriving->bytes + f->offset, f->bytes, f->n);
    if (l->wire.is_in_letter) return CT_OK;
    pthread_mutex_lock(&m->lock);
    l->traffic.letters_received++;
    l->traffic.bytes_received += f->total;
    l->arriving->letter.connection = l->n_connections;
    ct_parcels_push(&l->inbox, ct_take(&l->arriving));
    ct_mesh_ring(m->bell);
    pthread_mutex_unlock(&m->lock);
    return CT_OK;
}

static void take_greeting(ct_mesh *m, ct_link *l, const ct_frame *f, double now) {
    ct_greeting theirs;
    ct_error error;
    ct_wire_read_greeting(f, &theirs);
    ct_status status = CT_CATCH(&error, ct_greeting_check(&m->greeting, &theirs, l->peer.name));
    if (status == CT_OK) {
        ct_link_up(m, l, &theirs, now);
        return;
    }
    /* With our greeting the other side can say itself, in its own words, in what we differ. */
    if (status == CT_DIFFERS && !l->has_greeted) ct_link_send_greeting(m, l);
    ct_link_disagree(m, l, now, error.text);
}

static void take_refusal(ct_mesh *m, ct_link *l, const ct_frame *f, double now) {
    char reason[CT_WIRE_REASON + 1], line[CT_LINE];
    ct_wire_read_reason(f, reason);
    snprintf(line, sizeof line, "%s refuses us: %s", l->peer.name, reason);
    ct_mesh_tell_refused(m, &l->refusals, l->index, line);
    ct_link_end(m, l, now, "refused us");
    l->dial_at = now + 3 * m->beat_s;
}

static void take(ct_mesh *m, ct_link *l, const ct_frame *f, double now) {
    switch ((ct_wire_type)f->type) {
    case CT_WIRE_GREETING: take_greeting(m, l, f, now); break;
    case CT_WIRE_REFUSAL: take_refusal(m, l, f, now); break;
    case CT_WIRE_HEARTBEAT: take_heartbeat(m, l, f, now); break;
    case CT_WIRE_GOODBYE: ct_link_leave(m, l, now); break;
    case CT_WIRE_PIECE_OF:
        if (take_piece(m, l, f) != CT_OK) ct_link_end(m, l, now, "no memory for its letter");
        break;
    }
}

/* What the peer has read and taken of ours. */
static void note_progress(ct_link *l, uint64_t n_seen, uint64_t n_taken, double beat_s,
                          double now) {
    l->heard_at = now;
    if (l->wire.n_seen > n_seen) l->moved_at = now;
    ct_flight_land(&l->flight, l->wire.n_seen, beat_s, now);
    for (uint64_t k = n_taken; k < l->wire.n_taken; k++)
        l->n_flying_bytes -= l->flying[k % CT_WIRE_LETTERS];
}

static void go_on(ct_mesh *m, ct_link *l, const ct_arrival *a, double now) {
    ct_error error;
    ct_frame f;
    uint64_t n_seen = l->wire.n_seen, n_taken = l->wire.n_taken;
    pthread_mutex_lock(&m->lock);
    l->wire.n_waiting = l->inbox.n;
    l->wire.n_bytes = l->inbox.n_bytes;
    l->wire.max_letter_bytes = m->limit_bytes;
    pthread_mutex_unlock(&m->lock);
    ct_status status = CT_CATCH(&error, check(a, &l->wire, &f));
    if (status == CT_DIFFERS) {
        char line[CT_LINE];
        snprintf(line, sizeof line, "%s speaks %s", l->peer.name, error.text);
        ct_link_disagree(m, l, now, line);
        return;
    }
    if (status != CT_OK) {
        ct_link_refuse(m, l, now, error.text);
        return;
    }
    note_progress(l, n_seen, n_taken, m->beat_s, now);
    take(m, l, &f, now);
}

/* ---- new connections of those who dial us ---- */

static void cut(const ct_arrival *a) {
    ct_route route = a->route;
    ct_route_cut(&route);
}

/* A connection that is not the session's: it begins one, or ends. */
static void begin(ct_mesh *m, ct_link *l, const ct_arrival *a, double now) {
    ct_wire_session session = {.max_letter_bytes = m->max_letter_bytes};
    ct_error error;
    ct_frame f;
    char line[CT_LINE];
    if (ct_route_is(&a->route, &l->old) || ct_route_is(&a->route, &l->cut) ||
        (l->is_up && now - l->up_at < m->beat_s)) {
        if (!ct_route_is(&a->route, &l->cut)) cut(a);
        return;
    }
    ct_status status = CT_CATCH(&error, check(a, &session, &f));
    if (status == CT_IO && l->is_up) { /* the session goes on */
        snprintf(line, sizeof line, "%s broke the rules over another connection: %s", l->peer.name,
                 error.text);
        ct_mesh_tell_refused(m, &l->refusals, l->index, line);
        cut(a);
        return;
    }
    if (l->route.socket != NULL) ct_link_end(m, l, now, "connected anew");
    l->route = a->route;
    l->wire = session;
    l->until = now + 3 * m->beat_s;
    if (now < l->cold_until) {
        snprintf(line, sizeof line, "cut off for a while: %s", l->reason);
        ct_link_send_refusal(m, l, line);
        ct_link_end(m, l, now, "");
    } else if (status == CT_DIFFERS) {
        snprintf(line, sizeof line, "%s speaks %s", l->peer.name, error.text);
        ct_link_disagree(m, l, now, line);
    } else if (status != CT_OK) {
        ct_link_refuse(m, l, now, error.text);
    } else {
        take(m, l, &f, now);
    }
}

void ct_link_heard(ct_mesh *m, ct_link *l, const ct_arrival *a, double now) {
    pthread_mutex_lock(&m->lock);
    l->traffic.framed_received += zmq_msg_size(&a->message);
    pthread_mutex_unlock(&m->lock);
    if (a->name == NULL || ct_route_is(&a->route, &l->route))
        go_on(m, l, a, now);
    else if (!l->peer.dials)
        begin(m, l, a, now);
    else {
        char line[CT_LINE];
        snprintf(line, sizeof line, "%s dials us, but we dial it: the federation files differ",
                 l->peer.name);
        ct_mesh_tell_refused(m, &l->refusals, l->index, line);
        cut(a);
    }
}
#endif
