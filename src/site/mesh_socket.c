/* The sockets: one that listens (ROUTER) for all peers that dial us, one (DEALER) for each that we
 * dial. A dialled socket is used for one connection and never reconnects by itself: what libzmq still
 * holds for a connection that has ended must not begin the next one. */
#include "site/mesh_internal.h"

#if CT_WITH_ZMQ
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "util/text.h"

#define QUEUED_OUT   8  /* pieces that libzmq holds for a connection: what a heartbeat waits for */
#define QUEUED_IN    16 /* likewise of those that come */
#define BACKLOG      512
#define LEAST_WAIT_S 1.0 /* for a handshake: computing keys takes its time on a busy machine */

static void set(void *socket, int option, int value) {
    zmq_setsockopt(socket, option, &value, sizeof value);
}

static int wait_ms(const ct_mesh *m) {
    return (int)(1000 * (3 * m->beat_s > LEAST_WAIT_S ? 3 * m->beat_s : LEAST_WAIT_S));
}

/* A socket with what both kinds have in common. Names may mean addresses of IPv6, numbers say so. */
static void *make_socket(const ct_mesh *m, int type, const char *address) {
    void *socket = zmq_socket(m->context, type);
    if (socket == NULL) return NULL;
    int64_t longest = CT_WIRE_HEADER + CT_WIRE_PIECE + 64; /* and what CURVE adds */
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &longest, sizeof longest);
    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, m->key.secret_key, CT_KEY_BYTES);
    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, m->key.public_key, CT_KEY_BYTES);
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_SNDHWM, QUEUED_OUT);
    set(socket, ZMQ_RCVHWM, QUEUED_IN);
    set(socket, ZMQ_HANDSHAKE_IVL, wait_ms(m));
    set(socket, ZMQ_IPV6, address[strspn(address, "0123456789.:*")] != '\0');
    /* Dead hosts: the system finds out, and libzmq closes the connection. */
    set(socket, ZMQ_TCP_KEEPALIVE, 1);
    set(socket, ZMQ_TCP_KEEPALIVE_IDLE, 30);
    set(socket, ZMQ_TCP_KEEPALIVE_INTVL, 10);
    set(socket, ZMQ_TCP_KEEPALIVE_CNT, 3);
    set(socket, ZMQ_TCP_MAXRT, 60000);
    return socket;
}

static ct_status listen_at(ct_mesh *m, const char *address) {
    char endpoint[CT_MESH_ADDRESS + 16];
    size_t size = sizeof endpoint;
    m->router = make_socket(m, ZMQ_ROUTER, address);
    if (m->router == NULL)
        return ct_fail(CT_IO, "no socket for the sites: %s", zmq_strerror(errno));
    set(m->router, ZMQ_CURVE_SERVER, 1);
    zmq_setsockopt(m->router, ZMQ_ZAP_DOMAIN, "sites", 5);
    set(m->router, ZMQ_ROUTER_MANDATORY, 1);
    set(m->router, ZMQ_BACKLOG, BACKLOG);
    snprintf(endpoint, sizeof endpoint, "tcp://%s", address);
    if (zmq_bind(m->router, endpoint) != 0)
        return ct_fail(CT_IO, "cannot listen at %s: %s", address, zmq_strerror(errno));
    zmq_getsockopt(m->router, ZMQ_LAST_ENDPOINT, endpoint, &size);
    const char *colon = strrchr(endpoint, ':');
    int64_t port = 0;
    if (colon != NULL) ct_parse_i64(colon + 1, &port);
    m->port = (int)port;
    return CT_OK;
}

ct_status ct_sockets_open(ct_mesh *m, const char *listen) {
    m->context = zmq_ctx_new();
    if (m->context == NULL || !zmq_has("curve"))
        return ct_fail(CT_NOTBUILT, "this libzmq has no CURVE: install one built with libsodium");
    zmq_ctx_set(m->context, ZMQ_BLOCKY, 0);
    m->zap = zmq_socket(m->context, ZMQ_REP);
    /* Before anybody can connect: without a handler libzmq would admit everyone. */
    if (m->zap == NULL || zmq_bind(m->zap, "inproc://zeromq.zap.01") != 0)
        return ct_fail(CT_IO, "no socket for the sites' keys: %s", zmq_strerror(errno));
    set(m->zap, ZMQ_LINGER, 0);
    return listen != NULL && listen[0] != '\0' ? listen_at(m, listen) : CT_OK;
}

void ct_sockets_close(ct_mesh *m) {
    if (m->router != NULL) zmq_close(m->router);
    if (m->zap != NULL) zmq_close(m->zap);
    while (m->context != NULL && zmq_ctx_term(m->context) != 0 && errno == EINTR) continue;
    m->router = m->zap = m->context = NULL;
}

/* ---- dialling ---- */

static void *make_monitor(const ct_mesh *m, const ct_link *l, void *socket) {
    char place[64];
    int events = ZMQ_EVENT_CLOSED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                 ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                 ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
    snprintf(place, sizeof place, "inproc://monitor-%d", l->index);
    if (zmq_socket_monitor(socket, place, events) != 0) return NULL;
    void *monitor = zmq_socket(m->context, ZMQ_PAIR);
    if (monitor == NULL) return NULL;
    set(monitor, ZMQ_LINGER, 0);
    if (zmq_connect(monitor, place) == 0) return monitor;
    zmq_close(monitor);
    return NULL;
}

ct_status ct_link_dial(ct_mesh *m, ct_link *l, const char *address) {
    char endpoint[CT_MESH_ADDRESS + 16];
    void *socket = make_socket(m, ZMQ_DEALER, address);
    if (socket == NULL) return ct_fail(CT_IO, "no socket: %s", zmq_strerror(errno));
    l->route = (ct_route){.socket = socket, .fd = -1};
    l->monitor = make_monitor(m, l, socket);
    if (l->monitor == NULL) return ct_fail(CT_IO, "no socket: %s", zmq_strerror(errno));
    zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, l->peer.key, CT_KEY_BYTES);
    set(socket, ZMQ_IMMEDIATE, 1);
    set(socket, ZMQ_RECONNECT_IVL, -1);
    set(socket, ZMQ_CONNECT_TIMEOUT, wait_ms(m));
    snprintf(endpoint, sizeof endpoint, "tcp://%s", address);
    if (zmq_connect(socket, endpoint) != 0)
        return ct_fail(CT_IO, "%s makes no sense: %s", address, zmq_strerror(errno));
    return CT_OK;
}

void ct_link_hang_up(ct_link *l, double linger_s) {
    if (!l->peer.dials || l->route.socket == NULL) return;
    zmq_socket_monitor(l->route.socket, NULL, 0);
    set(l->route.socket, ZMQ_LINGER, (int)(1000 * linger_s));
    zmq_close(l->route.socket);
    if (l->monitor != NULL) zmq_close(l->monitor);
    l->monitor = NULL;
    l->route = (ct_route){.fd = -1};
}

/* An event is two parts: its number and a value, and an address. */
static bool next_event(void *monitor, int *event) {
    uint8_t head[16], address[CT_MESH_ADDRESS];
    uint16_t number;
    if (zmq_recv(monitor, head, sizeof head, ZMQ_DONTWAIT) < 6) return false;
    zmq_recv(monitor, address, sizeof address, ZMQ_DONTWAIT);
    memcpy(&number, head, sizeof number);
    *event = number;
    return true;
}

int ct_link_watch(ct_link *l, char why[CT_LINE]) {
    int event;
    why[0] = '\0';
    while (l->monitor != NULL && next_event(l->monitor, &event)) {
        if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) return 1;
        if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
            snprintf(why, CT_LINE, "%s at %s does not know our key", l->peer.name, l->peer.address);
        else if (event != ZMQ_EVENT_CLOSED && !l->is_connected)
            snprintf(why, CT_LINE, "%s hangs, is no site, or has another key than that of %s",
                     l->peer.address, l->peer.name);
        return -1;
    }
    return 0;
}

/* ---- frames ---- */

ct_sent ct_route_send(const ct_route *r, const ct_frame *frame) {
    zmq_msg_t message;
    int flags = ZMQ_DONTWAIT;
    if (zmq_msg_init_size(&message, CT_WIRE_HEADER + frame->n) != 0) return CT_SENT_LATER;
    /* Once the socket has taken where it goes, it takes what goes there. */
    bool is_addressed =
        r->n_id == 0 || zmq_send(r->socket, r->id, r->n_id, flags | ZMQ_SNDMORE) >= 0;
    if (is_addressed) {
        uint8_t *bytes = zmq_msg_data(&message);
        ct_wire_write(frame, bytes);
        if (frame->n > 0) memcpy(bytes + CT_WIRE_HEADER, frame->bytes, frame->n);
        if (zmq_msg_send(&message, r->socket, flags) >= 0) return CT_SENT;
    }
    bool is_full = errno == EAGAIN || errno == EINTR;
    zmq_msg_close(&message);
    return is_full ? CT_SENT_LATER : CT_SENT_NEVER;
}

bool ct_route_is(const ct_route *a, const ct_route *b) {
    return a->socket != NULL && a->socket == b->socket && a->n_id == b->n_id &&
           memcmp(a->id, b->id, a->n_id) == 0;
}

static ino_t inode_of(int fd) {
    struct stat info;
    return fd >= 0 && fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

/* libzmq sees the end of the connection, and closes it. */
void ct_route_cut(ct_route *r) {
    if (r->n_id > 0 && r->inode != 0 && inode_of(r->fd) == r->inode) shutdown(r->fd, SHUT_RDWR);
    *r = (ct_route){.fd = -1};
}

bool ct_route_receive(void *socket, bool is_router, ct_arrival *out) {
    *out = (ct_arrival){.route = {.socket = socket, .fd = -1}};
    if (is_router) {
        int n = zmq_recv(socket, out->route.id, sizeof out->route.id, ZMQ_DONTWAIT);
        if (n < 0) return false;
        out->route.n_id = (size_t)n < sizeof out->route.id ? (size_t)n : sizeof out->route.id;
    }
    zmq_msg_init(&out->message);
    int got = zmq_msg_recv(&out->message, socket, ZMQ_DONTWAIT);
    while (got >= 0 && zmq_msg_more(&out->message)) { /* the last part is there when the first is */
        out->is_several = true;
        got = zmq_msg_recv(&out->message, socket, ZMQ_DONTWAIT);
    }
    if (got < 0) zmq_msg_close(&out->message);
    if (got < 0 || !is_router) return got >= 0;
    out->name = zmq_msg_gets(&out->message, "User-Id");
    out->route.fd = zmq_msg_get(&out->message, ZMQ_SRCFD);
    out->route.inode = inode_of(out->route.fd);
    return true;
}

bool ct_socket_has_input(void *socket) {
    int events = 0;
    size_t size = sizeof events;
    return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0;
}

int ct_socket_fd(void *socket) {
    int fd = -1;
    size_t size = sizeof fd;
    return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0 ? fd : -1;
}
#endif
