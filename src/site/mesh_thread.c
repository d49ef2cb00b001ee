/* The thread that owns the sockets. It looks at everything until nothing moves, then sleeps until a
 * socket, the caller or the clock has something. */
#include "site/mesh_internal.h"

#if CT_WITH_ZMQ
#include <errno.h>
#include <unistd.h>

#define MESSAGES_A_TURN 64
/* libzmq says that there is room again by the same descriptor as everything else, and may have said
 * so while something else was asked: whoever waits for room looks again after this time. */
#define BLOCKED_S 0.005

void ct_mesh_ring(int eventfd) {
    uint64_t one = 1;
    ssize_t n = write(eventfd, &one, sizeof one); /* full: it rings already */
    (void)n;
}

static ct_link *find(ct_mesh *m, const char *name) {
    for (int k = 0; name != NULL && k < m->n_links; k++)
        if (strcmp(m->links[k].peer.name, name) == 0) return &m->links[k];
    return NULL;
}

/* True: everything that has come was looked at. */
static bool receive(ct_mesh *m, void *socket, ct_link *dialled, bool *any) {
    ct_arrival a;
    for (int k = 0; k < MESSAGES_A_TURN; k++) {
        if (dialled != NULL && dialled->route.socket != socket) return true; /* it was closed */
        if (!ct_route_receive(socket, dialled == NULL, &a)) return true;
        ct_link *l = dialled != NULL ? dialled : find(m, a.name);
        if (l != NULL) ct_link_heard(m, l, &a, ct_seconds());
        zmq_msg_close(&a.message);
        *any = true;
    }
    return false;
}

/* Who was busy or stopped for a while (a suspended machine) has not listened: nobody was silent. */
static void forgive(ct_mesh *m) {
    double now = ct_seconds(), late = m->looked_at > 0 ? now - m->looked_at - m->beat_s : 0;
    m->looked_at = now;
    for (int k = 0; late > m->beat_s / 2 && k < m->n_links; k++) {
        m->links[k].heard_at += late;
        m->links[k].moved_at += late;
    }
}

/* One look at everything; true: something moved. */
static bool turn(ct_mesh *m) {
    forgive(m);
    bool any = ct_zap_serve(m), is_drained = true;
    if (m->router != NULL) is_drained = receive(m, m->router, NULL, &any);
    for (int k = 0; k < m->n_links; k++) {
        ct_link *l = &m->links[k];
        bool own = l->peer.dials && l->route.socket != NULL;
        bool drained = own ? receive(m, l->route.socket, l, &any) : is_drained;
        any = ct_link_tick(m, l, drained, ct_seconds()) || any;
        any = ct_link_send(m, l, ct_seconds()) || any;
        if (l->peer.dials && l->route.socket != NULL)
            any = ct_socket_has_input(l->route.socket) || any;
    }
    return (m->router != NULL && ct_socket_has_input(m->router)) || any;
}

static void listen_to(ct_mesh *m, int *n, int fd) {
    if (fd >= 0) m->polled[(*n)++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* When a peer wants to be looked at again. */
static double next_look(const ct_mesh *m, const ct_link *l, double now) {
    double at = now + m->beat_s;
    if (l->is_up && l->beat_at < at) at = l->beat_at;
    bool dials = l->peer.dials && l->route.socket == NULL && l->lookup == NULL;
    if (dials && l->dial_at < at) at = l->dial_at;
    if (l->cut.socket != NULL && l->cut_at < at) at = l->cut_at;
    if (l->is_blocked && now + BLOCKED_S < at) at = now + BLOCKED_S;
    return at;
}

static void rest(ct_mesh *m) {
    int n = 0;
    double now = ct_seconds(), until = now + m->beat_s;
    listen_to(m, &n, m->alarm);
    listen_to(m, &n, ct_socket_fd(m->zap));
    if (m->router != NULL) listen_to(m, &n, ct_socket_fd(m->router));
    for (int k = 0; k < m->n_links; k++) {
        const ct_link *l = &m->links[k];
        double at = next_look(m, l, now);
        if (at < until) until = at;
        if (!l->peer.dials || l->route.socket == NULL) continue;
        listen_to(m, &n, ct_socket_fd(l->route.socket));
        listen_to(m, &n, ct_socket_fd(l->monitor));
    }
    double ms = (until - now) * 1000;
    if (poll(m->polled, (nfds_t)n, ms > 0 ? (int)ms + 1 : 0) > 0 && m->polled[0].revents != 0) {
        uint64_t rung;
        ssize_t got = read(m->alarm, &rung, sizeof rung);
        (void)got;
    }
}

/* ---- the end ---- */

/* Letters, or a status, that a peer does not have yet. */
static bool is_waiting(ct_mesh *m) {
    bool is = false;
    pthread_mutex_lock(&m->lock);
    for (int k = 0; k < m->n_links; k++) {
        const ct_link *l = &m->links[k];
        is = is ||
             (l->is_up && (l->outbox.n > 0 || l->leaving != NULL || l->wire.n_seen < l->n_needed ||
                           l->status_told != m->status_version));
    }
    pthread_mutex_unlock(&m->lock);
    return is;
}

static bool is_connected(const ct_mesh *m) {
    for (int k = 0; k < m->n_links; k++)
        if (m->links[k].is_up) return true;
    return false;
}

static void work_while(ct_mesh *m, bool (*is_needed)(ct_mesh *m), double seconds) {
    for (double until = ct_seconds() + seconds; is_needed(m) && ct_seconds() < until;)
        if (!turn(m)) rest(m);
}

static bool has_company(ct_mesh *m) {
    return is_connected(m);
}

static bool is_wanted(ct_mesh *m) {
    pthread_mutex_lock(&m->lock);
    bool is_closing = m->is_closing;
    pthread_mutex_unlock(&m->lock);
    return !is_closing;
}

/* Peers hang up when they are told that we go; then nothing of ours is on its way any more. */
static void leave(ct_mesh *m) {
    work_while(m, is_waiting, 1.5 * m->beat_s);
    for (int k = 0; k < m->n_links; k++)
        if (m->links[k].has_greeted) ct_link_send_goodbye(m, &m->links[k]);
    work_while(m, has_company, 0.5 * m->beat_s);
    int linger_ms = (int)(500 * m->beat_s);
    if (m->router != NULL) zmq_setsockopt(m->router, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    for (int k = 0; k < m->n_links; k++) ct_link_hang_up(&m->links[k], 0.5 * m->beat_s);
}

void *ct_mesh_thread(void *mesh) {
    ct_mesh *m = mesh;
    while (is_wanted(m))
        if (!turn(m)) rest(m);
    leave(m);
    return NULL;
}
#endif
