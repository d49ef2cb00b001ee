/* What goes to a peer: heartbeats first, then one letter after the other in pieces, as many as the
 * connection and the peer have room for. */
#include "site/mesh_internal.h"

#if CT_WITH_ZMQ
#include <inttypes.h>
#include <unistd.h>

#define FRAMES_A_TURN 32 /* before other peers have theirs */

static uint64_t in_us(double seconds) {
    return (uint64_t)(seconds * 1e6);
}

/* The session's next frame. False: not now, or never. The lock is held. */
static bool put(ct_link *l, ct_frame *f) {
    f->sequence = l->wire.n_sent;
    f->n_seen = l->wire.n_received;
    f->n_taken = l->n_taken;
    ct_sent sent = ct_route_send(&l->route, f);
    l->is_blocked = sent == CT_SENT_LATER;
    l->is_lost = l->is_lost || sent == CT_SENT_NEVER;
    if (sent != CT_SENT) return false;
    l->wire.n_sent++;
    l->owes_sight = false;
    l->n_taken_told = l->n_taken;
    l->n_taken_bytes_told = l->n_taken_bytes;
    l->traffic.framed_sent += CT_WIRE_HEADER + f->n;
    return true;
}

static bool put_greeting(ct_mesh *m, ct_link *l) {
    uint8_t bytes[CT_WIRE_GREETING_BYTES];
    ct_greeting greeting = m->greeting;
    if (getentropy(&greeting.session, sizeof greeting.session) != 0)
        greeting.session = in_us(ct_seconds());
    ct_wire_write_greeting(&greeting, bytes);
    ct_frame f = {.type = CT_WIRE_GREETING, .bytes = bytes, .n = sizeof bytes};
    l->has_greeted = put(l, &f);
    return l->has_greeted;
}

static bool put_heartbeat(ct_mesh *m, ct_link *l, double now) {
    ct_frame f = {.type = CT_WIRE_HEARTBEAT, .iteration = in_us(now), .total = l->clock};
    f.offset = l->clock != 0 ? in_us(now - l->clock_at) : 0;
    if (l->status_told != m->status_version) {
        f.flags = CT_WIRE_HAS_STATUS;
        f.bytes = m->status;
        f.n = m->n_status;
    }
    if (!put(l, &f)) return false;
    l->status_told = m->status_version;
    l->beat_at = now + m->beat_s;
    return true;
}

/* The next letter, if the peer has room for it. */
static bool begin_letter(ct_mesh *m, ct_link *l) {
    ct_parcel *first = l->outbox.first;
    uint64_t n_flying = l->wire.n_begun - l->wire.n_taken;
    if (first == NULL || n_flying >= CT_WIRE_LETTERS ||
        l->n_flying_bytes + first->letter.n > l->n_window)
        return false;
    if (ct_outbox_is_full(m, l)) ct_mesh_ring(m->bell); /* no longer */
    l->leaving = ct_parcels_pop(&l->outbox);
    l->n_left = 0;
    l->flying[l->wire.n_begun % CT_WIRE_LETTERS] = first->letter.n;
    l->n_flying_bytes += first->letter.n;
    l->wire.n_begun++;
    return true;
}

void ct_flight_land(ct_flight *f, uint64_t n_seen, double beat_s, double now) {
    unsigned n = 0;
    double sent_at = 0;
    for (; f->n_seen < f->n_sent && f->pieces[f->n_seen % CT_FLIGHT].sequence < n_seen; n++)
        sent_at = f->pieces[f->n_seen++ % CT_FLIGHT].at;
    if (n == 0) return;
    if (now - sent_at < beat_s / 2) {
        f->n_allowed = f->n_allowed + n < CT_FLIGHT ? f->n_allowed + n : CT_FLIGHT;
    } else if (now - sent_at > beat_s && sent_at > f->slowed_at) {
        f->n_allowed = f->n_allowed > 1 ? f->n_allowed / 2 : 1;
        f->slowed_at = now;
    }
}

static void take_off(ct_flight *f, uint64_t sequence, double now) {
    f->pieces[f->n_sent % CT_FLIGHT].sequence = sequence;
    f->pieces[f->n_sent++ % CT_FLIGHT].at = now;
}

static bool put_piece(ct_mesh *m, ct_link *l, double now) {
    if (l->flight.n_sent - l->flight.n_seen >= l->flight.n_allowed) return false;
    if (l->leaving == NULL && !begin_letter(m, l)) return false;
    const ct_letter *letter = &l->leaving->letter;
    size_t rest = letter->n - l->n_left;
    ct_frame f = {.type = CT_WIRE_PIECE_OF,
                  .kind = letter->kind,
                  .tag = letter->tag,
                  .iteration = letter->iteration,
                  .total = letter->n,
                  .offset = l->n_left,
                  .bytes = l->leaving->bytes + l->n_left,
                  .n = rest < CT_WIRE_PIECE ? rest : CT_WIRE_PIECE};
    if (!put(l, &f)) return false;
    take_off(&l->flight, f.sequence, now);
    l->n_left += f.n;
    l->n_needed = l->wire.n_sent;
    if (l->n_left < letter->n) return true;
    l->traffic.letters_sent++;
    l->traffic.bytes_sent += letter->n;
    ct_free(ct_take(&l->leaving));
    return true;
}

static bool put_next(ct_mesh *m, ct_link *l, double now) {
    if (!l->has_greeted) return put_greeting(m, l);
    if (!l->is_up) return false;
    if (now >= l->beat_at || l->owes_sight || l->status_told != m->status_version ||
        ct_link_owes_credit(m, l))
        return put_heartbeat(m, l, now);
    return put_piece(m, l, now);
}

bool ct_link_send(ct_mesh *m, ct_link *l, double now) {
    int n = 0;
    l->is_blocked = false;
    if (l->route.socket == NULL || l->is_lost || (l->peer.dials && !l->is_connected)) return false;
    pthread_mutex_lock(&m->lock);
    while (n < FRAMES_A_TURN && put_next(m, l, now)) n++;
    bool is_lost = l->is_lost;
    pthread_mutex_unlock(&m->lock);
    return n > 0 || is_lost;
}

void ct_link_send_greeting(ct_mesh *m, ct_link *l) {
    pthread_mutex_lock(&m->lock);
    put_greeting(m, l);
    pthread_mutex_unlock(&m->lock);
}

void ct_link_send_refusal(ct_mesh *m, ct_link *l, const char *reason) {
    ct_frame f = {.type = CT_WIRE_REFUSAL, .bytes = (const uint8_t *)reason, .n = strlen(reason)};
    pthread_mutex_lock(&m->lock);
    put(l, &f);
    pthread_mutex_unlock(&m->lock);
}

void ct_link_send_goodbye(ct_mesh *m, ct_link *l) {
    ct_frame f = {.type = CT_WIRE_GOODBYE};
    pthread_mutex_lock(&m->lock);
    put(l, &f);
    pthread_mutex_unlock(&m->lock);
}
#endif
