/* What the site's own thread calls: it leaves and takes letters, and never touches a socket. */
#include "site/mesh.h"

#include "ct_config.h"

#if CT_WITH_ZMQ
#include "site/mesh_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/file.h"

#define BEAT_S      2.0
#define MOST_LETTER ((size_t)1 << 40)
#define MINUTE_S    60.0

/* ---- opening and closing ---- */

static void ct_mesh_free(ct_mesh **mesh) {
    ct_mesh *m = *mesh;
    if (m == NULL) return;
    ct_sockets_close(m);
    for (int k = 0; m->links != NULL && k < m->n_links; k++) {
        ct_link *l = &m->links[k];
        ct_parcels_free(&l->outbox);
        ct_parcels_free(&l->inbox);
        ct_parcels_free(&l->stale);
        ct_lookup_free(&l->lookup);
        ct_free(l->arriving);
        ct_free(l->leaving);
        ct_free(l->status);
    }
    ct_fd_close(&m->bell);
    ct_fd_close(&m->alarm);
    pthread_mutex_destroy(&m->lock);
    explicit_bzero(&m->key, sizeof m->key);
    ct_free(m->links);
    ct_free(m->events);
    ct_free(m->status);
    ct_free(m->polled);
    ct_free(m);
    *mesh = NULL;
}

static ct_status check(const ct_mesh_options *o) {
    if (o->name[0] == '\0' || strlen(o->name) >= CT_MESH_NAME)
        return ct_fail(CT_INVAL, "a site's name has 1 to %d characters: '%s'", CT_MESH_NAME - 1,
                       o->name);
    if (o->program[0] == '\0' || strlen(o->program) >= CT_WIRE_PROGRAM)
        return ct_fail(CT_INVAL, "the program's version has 1 to %d characters: '%s'",
                       CT_WIRE_PROGRAM - 1, o->program);
    if (o->max_letter_bytes == 0 || o->max_letter_bytes > MOST_LETTER)
        return ct_fail(CT_INVAL, "letters of at most %zu bytes make no sense", o->max_letter_bytes);
    for (int k = 0; k < o->n_peers; k++)
        if (o->peers[k].dials && o->peers[k].address[0] == '\0')
            return ct_fail(CT_INVAL, "%s is to be dialled, but has no address", o->peers[k].name);
    return CT_OK;
}

static ct_status fill(ct_mesh *m, const ct_mesh_options *o) {
    m->n_links = o->n_peers;
    m->key = *o->key;
    m->beat_s = o->heartbeat_s > 0 ? o->heartbeat_s : BEAT_S;
    m->max_letter_bytes = m->limit_bytes = o->max_letter_bytes;
    m->greeting.max_letter_bytes = o->max_letter_bytes;
    memcpy(m->greeting.federation, o->federation, sizeof o->federation);
    snprintf(m->greeting.name, sizeof m->greeting.name, "%s", o->name);
    snprintf(m->greeting.program, sizeof m->greeting.program, "%s", o->program);
    CT_TRY(ct_make(&m->links, (size_t)o->n_peers, "the peers"));
    CT_TRY(ct_make(&m->status, CT_MESH_STATUS, "the status"));
    CT_TRY(ct_make(&m->polled, 3 + 2 * (size_t)o->n_peers, "the sockets"));
    for (int k = 0; k < o->n_peers; k++) {
        ct_link *l = &m->links[k];
        l->peer = o->peers[k];
        l->index = k;
        l->route.fd = l->old.fd = l->cut.fd = -1;
        l->wire.max_letter_bytes = o->max_letter_bytes;
        l->flight.n_allowed = 1;
        CT_TRY(ct_make(&l->status, CT_MESH_STATUS, "the status of a peer"));
    }
    m->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    m->alarm = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (m->bell < 0 || m->alarm < 0)
        return ct_fail(CT_IO, "no descriptor for the sites: %s", strerror(errno));
    return CT_OK;
}

/* Signals are for the caller's threads. */
static ct_status start(ct_mesh *m) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&m->thread, NULL, ct_mesh_thread, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) return ct_fail(CT_IO, "no thread for the sites: %s", strerror(error));
    return CT_OK;
}

ct_status ct_mesh_open(const ct_mesh_options *options, ct_mesh **out) {
    CT_SCOPED_HANDLE(ct_mesh) m = NULL;
    CT_TRY(check(options));
    CT_TRY(ct_make(&m, 1, "the mesh"));
    m->bell = m->alarm = -1;
    pthread_mutex_init(&m->lock, NULL);
    CT_TRY(fill(m, options));
    CT_TRY(ct_sockets_open(m, options->listen));
    CT_TRY(start(m));
    ct_move(out, &m);
    return CT_OK;
}

void ct_mesh_close(ct_mesh **mesh) {
    ct_mesh *m = *mesh;
    if (m == NULL) return;
    pthread_mutex_lock(&m->lock);
    m->is_closing = true;
    pthread_mutex_unlock(&m->lock);
    ct_mesh_ring(m->alarm);
    pthread_join(m->thread, NULL);
    ct_mesh_free(mesh);
}

int ct_mesh_port(const ct_mesh *m) {
    return m->port;
}

/* ---- letters ---- */

static ct_status check_letter(const ct_mesh *m, const ct_link *l, const ct_letter *letter) {
    if (!l->is_up) return ct_fail(CT_IO, "%s is not connected", l->peer.name);
    if (letter->n > l->longest)
        return ct_fail(CT_INVAL, "a letter of %zu bytes; %s takes %zu at most", letter->n,
                       l->peer.name, l->longest);
    if (ct_outbox_is_full(m, l))
        return ct_fail(CT_BUSY, "%zu letters with %zu bytes are waiting for %s already",
                       l->outbox.n, l->outbox.n_bytes, l->peer.name);
    return CT_OK;
}

ct_status ct_mesh_send(ct_mesh *m, int peer, const ct_letter *letter) {
    ct_link *l = &m->links[peer];
    ct_parcel *parcel;
    pthread_mutex_lock(&m->lock);
    ct_status status = check_letter(m, l, letter);
    pthread_mutex_unlock(&m->lock);
    CT_TRY(status);
    CT_TRY(ct_parcel_create(letter, &parcel)); /* not under the lock: it may be large */
    pthread_mutex_lock(&m->lock);
    status = check_letter(m, l, letter);
    if (status == CT_OK) ct_parcels_push(&l->outbox, parcel);
    pthread_mutex_unlock(&m->lock);
    if (status == CT_OK)
        ct_mesh_ring(m->alarm);
    else
        ct_free(parcel);
    return status;
}

bool ct_mesh_peek(ct_mesh *m, int peer, ct_letter *out) {
    ct_link *l = &m->links[peer];
    pthread_mutex_lock(&m->lock);
    ct_parcel *first = l->refused[0] == '\0' ? l->inbox.first : NULL;
    if (first != NULL) {
        l->lent = first;
        *out = first->letter;
    }
    pthread_mutex_unlock(&m->lock);
    return first != NULL;
}

void ct_mesh_drop(ct_mesh *m, int peer) {
    ct_link *l = &m->links[peer];
    ct_parcel *gone = NULL;
    pthread_mutex_lock(&m->lock);
    if (l->lent == l->inbox.first && l->lent != NULL) {
        gone = ct_parcels_pop(&l->inbox);
        l->n_taken += l->is_up; /* not of a peer that has left */
        l->n_taken_bytes += l->is_up ? gone->letter.n : 0;
    }
    l->lent = NULL;
    ct_parcels_free(&l->stale);
    bool tells = l->is_up && ct_link_owes_credit(m, l);
    pthread_mutex_unlock(&m->lock);
    ct_free(gone);
    if (tells) ct_mesh_ring(m->alarm);
}

void ct_mesh_refuse(ct_mesh *m, int peer, const char *reason) {
    ct_link *l = &m->links[peer];
    pthread_mutex_lock(&m->lock);
    if (l->refused[0] == '\0') /* the first reason is the true one */
        snprintf(l->refused, sizeof l->refused, "%s",
                 reason[0] != '\0' ? reason : "an unacceptable letter");
    pthread_mutex_unlock(&m->lock);
    ct_mesh_ring(m->alarm);
}

/* ---- events ---- */

void ct_mesh_tell(ct_mesh *m, ct_mesh_event_kind kind, int peer, const char *format, ...) {
    ct_mesh_event event = {.kind = kind, .peer = peer};
    va_list args;
    va_start(args, format);
    vsnprintf(event.text, sizeof event.text, format, args);
    va_end(args);
    pthread_mutex_lock(&m->lock);
    if (peer >= 0) event.connection = m->links[peer].n_connections;
    if (m->n_told == m->n_events) m->n_told = m->n_events = 0; /* the list begins anew */
    if (CT_CATCH(NULL, ct_extend(&m->events, m->n_events, "an event")) == CT_OK)
        m->events[m->n_events++] = event;
    pthread_mutex_unlock(&m->lock);
    ct_mesh_ring(m->bell);
}

void ct_mesh_tell_refused(ct_mesh *m, ct_teller *t, int peer, const char *line) {
    double now = ct_seconds();
    bool is_same = peer < 0 || strcmp(t->last, line) == 0;
    if (is_same && t->last[0] != '\0' && now - t->told_at < MINUTE_S) {
        t->n_more++;
        return;
    }
    if (is_same && t->n_more > 0)
        ct_mesh_tell(m, CT_MESH_REFUSED, peer, "%.220s (and %u more before)", line, t->n_more);
    else
        ct_mesh_tell(m, CT_MESH_REFUSED, peer, "%s", line);
    snprintf(t->last, sizeof t->last, "%s", line);
    t->told_at = now;
    t->n_more = 0;
}

bool ct_mesh_next_event(ct_mesh *m, ct_mesh_event *out) {
    pthread_mutex_lock(&m->lock);
    bool is_there = m->n_told < m->n_events;
    if (is_there) *out = m->events[m->n_told++];
    pthread_mutex_unlock(&m->lock);
    return is_there;
}

bool ct_mesh_is_up(ct_mesh *m, int peer) {
    pthread_mutex_lock(&m->lock);
    bool is_up = m->links[peer].is_up;
    pthread_mutex_unlock(&m->lock);
    return is_up;
}

void ct_mesh_wait(ct_mesh *m, double seconds) {
    struct pollfd bell = {.fd = m->bell, .events = POLLIN};
    uint64_t rung;
    double ms = seconds > 0 ? seconds * 1000 : 0;
    poll(&bell, 1, ms < 1e9 ? (int)(ms + 0.999) : 1000000000); /* a signal ends it too */
    ssize_t n = read(m->bell, &rung, sizeof rung);
    (void)n;
}

void ct_mesh_wake(ct_mesh *m) {
    int before = errno; /* of whom the signal interrupts */
    ct_mesh_ring(m->bell);
    errno = before;
}

/* ---- status and traffic ---- */

ct_status ct_mesh_set_status(ct_mesh *m, const void *bytes, size_t n) {
    if (n > CT_MESH_STATUS)
        return ct_fail(CT_INVAL, "a status of %zu bytes; %d at most", n, CT_MESH_STATUS);
    pthread_mutex_lock(&m->lock);
    bool is_same =
        m->status_version > 0 && n == m->n_status && (n == 0 || memcmp(m->status, bytes, n) == 0);
    if (!is_same && n > 0) memcpy(m->status, bytes, n);
    m->n_status = n;
    m->status_version += !is_same;
    pthread_mutex_unlock(&m->lock);
    if (!is_same) ct_mesh_ring(m->alarm);
    return CT_OK;
}

void ct_mesh_status_of(ct_mesh *m, int peer, void *bytes, size_t *n) {
    ct_link *l = &m->links[peer];
    pthread_mutex_lock(&m->lock);
    *n = l->n_status;
    if (*n > 0) memcpy(bytes, l->status, *n);
    pthread_mutex_unlock(&m->lock);
}

uint64_t ct_mesh_status_number(ct_mesh *m, int peer) {
    pthread_mutex_lock(&m->lock);
    uint64_t number = m->links[peer].n_statuses;
    pthread_mutex_unlock(&m->lock);
    return number;
}

void ct_mesh_limit(ct_mesh *m, size_t bytes) {
    pthread_mutex_lock(&m->lock);
    m->limit_bytes = bytes < m->max_letter_bytes ? bytes : m->max_letter_bytes;
    pthread_mutex_unlock(&m->lock);
}

ct_mesh_traffic ct_mesh_traffic_of(ct_mesh *m, int peer) {
    pthread_mutex_lock(&m->lock);
    ct_mesh_traffic traffic = m->links[peer].traffic;
    pthread_mutex_unlock(&m->lock);
    return traffic;
}

#endif
