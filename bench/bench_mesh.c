/* bench_mesh [MEGABYTES]: letters of 1 MB between two processes over the loopback device: how many a
 * second one way, how long one takes there and back, and the processors' time for each, over
 *   tcp     a plain connection, blocking
 *   zmq     libzmq in messages of 64 KiB, without encryption
 *   curve   the same encrypted
 *   mesh    src/site/mesh.h
 * All in turn, three times; the best of each counts, and the ratios are within this run. */
#include <stdio.h>

#include "ct_config.h"

#if CT_WITH_ZMQ
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "site/mesh.h"
#include "util/memory.h"
#include "util/text.h"

enum { LETTER = 1 << 20, PIECE = 1 << 16, N_ROUNDS = 3, N_TRIPS = 50 };

/* One end of a connection, of any kind. */
typedef struct end {
    int fd, port;
    void *context, *socket;
    ct_mesh *mesh;
} end;

typedef struct kind {
    const char *name;
    void (*listen)(end *e);
    void (*dial)(end *e);
    void (*send)(end *e, const uint8_t *bytes);
    void (*receive)(end *e, uint8_t *bytes);
    void (*close)(end *e);
} kind;

static ct_key_pair keys[2];

/* ---- tcp ---- */

static void tcp_listen(end *e) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    e->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(e->fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(e->fd, 1) != 0) perror("tcp");
    getsockname(e->fd, (struct sockaddr *)&at, &size);
    e->port = ntohs(at.sin_port);
}

static void tcp_dial(end *e) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    at.sin_port = htons((uint16_t)e->port);
    e->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(e->fd, (struct sockaddr *)&at, sizeof at) != 0) perror("tcp");
}

static void tcp_send(end *e, const uint8_t *bytes) {
    for (size_t n = 0; n < LETTER;) {
        ssize_t sent = write(e->fd, bytes + n, LETTER - n);
        if (sent <= 0) return;
        n += (size_t)sent;
    }
}

static void tcp_receive(end *e, uint8_t *bytes) {
    for (size_t n = 0; n < LETTER;) {
        ssize_t got = read(e->fd, bytes + n, LETTER - n);
        if (got <= 0) return;
        n += (size_t)got;
    }
}

static void tcp_close(end *e) {
    close(e->fd);
}

/* ---- libzmq ---- */

static void zmq_make(end *e) {
    int n = 8;
    e->context = zmq_ctx_new();
    e->socket = zmq_socket(e->context, ZMQ_PAIR);
    zmq_setsockopt(e->socket, ZMQ_SNDHWM, &n, sizeof n);
    zmq_setsockopt(e->socket, ZMQ_RCVHWM, &n, sizeof n);
}

static void zmq_listen_plain(end *e) {
    char endpoint[64];
    size_t size = sizeof endpoint;
    int64_t port = 0;
    if (e->socket == NULL) zmq_make(e);
    zmq_bind(e->socket, "tcp://127.0.0.1:0");
    zmq_getsockopt(e->socket, ZMQ_LAST_ENDPOINT, endpoint, &size);
    ct_parse_i64(strrchr(endpoint, ':') + 1, &port);
    e->port = (int)port;
}

static void zmq_dial_plain(end *e) {
    char endpoint[64];
    if (e->socket == NULL) zmq_make(e);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", e->port);
    zmq_connect(e->socket, endpoint);
}

static void zmq_listen_curve(end *e) {
    int one = 1;
    zmq_make(e);
    zmq_setsockopt(e->socket, ZMQ_CURVE_SERVER, &one, sizeof one);
    zmq_setsockopt(e->socket, ZMQ_CURVE_SECRETKEY, keys[0].secret_key, CT_KEY_BYTES);
    zmq_listen_plain(e);
}

static void zmq_dial_curve(end *e) {
    zmq_make(e);
    zmq_setsockopt(e->socket, ZMQ_CURVE_SERVERKEY, keys[0].public_key, CT_KEY_BYTES);
    zmq_setsockopt(e->socket, ZMQ_CURVE_PUBLICKEY, keys[1].public_key, CT_KEY_BYTES);
    zmq_setsockopt(e->socket, ZMQ_CURVE_SECRETKEY, keys[1].secret_key, CT_KEY_BYTES);
    zmq_dial_plain(e);
}

static void zmq_send_letter(end *e, const uint8_t *bytes) {
    for (size_t n = 0; n < LETTER; n += PIECE) zmq_send(e->socket, bytes + n, PIECE, 0);
}

static void zmq_receive_letter(end *e, uint8_t *bytes) {
    for (size_t n = 0; n < LETTER; n += PIECE) zmq_recv(e->socket, bytes + n, PIECE, 0);
}

static void zmq_end(end *e) {
    zmq_close(e->socket);
    zmq_ctx_term(e->context);
}

/* ---- the mesh ---- */

static void mesh_open(end *e, int who) {
    ct_mesh_peer peer = {.dials = who == 1};
    ct_mesh_options options = {.name = who == 0 ? "north" : "south", .key = &keys[who]};
    options.program = "bench";
    options.max_letter_bytes = 8 * LETTER;
    options.peers = &peer;
    options.n_peers = 1;
    options.listen = who == 0 ? "127.0.0.1:0" : NULL;
    snprintf(peer.name, sizeof peer.name, "%s", who == 0 ? "south" : "north");
    snprintf(peer.address, sizeof peer.address, "127.0.0.1:%d", e->port);
    memcpy(peer.key, keys[1 - who].public_key, CT_KEY_BYTES);
    if (ct_mesh_open(&options, &e->mesh) != CT_OK) perror("mesh");
    e->port = ct_mesh_port(e->mesh);
}

static void mesh_listen(end *e) {
    mesh_open(e, 0);
}

static void mesh_dial(end *e) {
    mesh_open(e, 1);
}

static void mesh_send(end *e, const uint8_t *bytes) {
    ct_letter letter = {.bytes = bytes, .n = LETTER};
    while (CT_CATCH(NULL, ct_mesh_send(e->mesh, 0, &letter)) != CT_OK) ct_mesh_wait(e->mesh, 1);
}

static void mesh_receive(end *e, uint8_t *bytes) {
    ct_letter letter;
    while (!ct_mesh_peek(e->mesh, 0, &letter)) ct_mesh_wait(e->mesh, 1);
    memcpy(bytes, letter.bytes, LETTER);
    ct_mesh_drop(e->mesh, 0);
}

static void mesh_close(end *e) {
    ct_mesh_close(&e->mesh);
}

/* ---- measuring ---- */

static const kind kinds[] = {
    {"tcp", tcp_listen, tcp_dial, tcp_send, tcp_receive, tcp_close},
    {"zmq", zmq_listen_plain, zmq_dial_plain, zmq_send_letter, zmq_receive_letter, zmq_end},
    {"curve", zmq_listen_curve, zmq_dial_curve, zmq_send_letter, zmq_receive_letter, zmq_end},
    {"mesh", mesh_listen, mesh_dial, mesh_send, mesh_receive, mesh_close},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

typedef struct result {
    double stream_s, trip_s, cpu_s; /* for a letter; cpu: of both processes while streaming */
} result;

/* The other end: takes n letters and answers with one, then echoes. */
static void answer(const kind *k, int ports, int n, uint8_t *bytes) {
    end e = {.fd = -1};
    if (read(ports, &e.port, sizeof e.port) != sizeof e.port) _exit(1);
    k->dial(&e);
    k->send(&e, bytes); /* it is there */
    for (int i = 0; i < n; i++) k->receive(&e, bytes);
    k->send(&e, bytes);
    for (int i = 0; i < N_TRIPS; i++) {
        k->receive(&e, bytes);
        k->send(&e, bytes);
    }
    k->close(&e);
    _exit(0);
}

static double cpu_of(int who) {
    struct rusage u;
    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static result measure(const kind *k, int n, uint8_t *bytes) {
    int ports[2];
    result r = {0};
    end e = {.fd = -1};
    if (pipe(ports) != 0) return r;
    double cpu = cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN);
    pid_t other = fork(); /* before there are threads */
    if (other == 0) answer(k, ports[0], n, bytes);
    k->listen(&e);
    if (write(ports[1], &e.port, sizeof e.port) != sizeof e.port) perror("pipe");
    if (e.fd >= 0) {
        int fd = accept(e.fd, NULL, NULL);
        close(e.fd);
        e.fd = fd;
    }
    k->receive(&e, bytes);
    double began = ct_seconds();
    for (int i = 0; i < n; i++) k->send(&e, bytes);
    k->receive(&e, bytes);
    r.stream_s = (ct_seconds() - began) / (n + 1);
    began = ct_seconds();
    for (int i = 0; i < N_TRIPS; i++) {
        k->send(&e, bytes);
        k->receive(&e, bytes);
    }
    r.trip_s = (ct_seconds() - began) / N_TRIPS;
    k->close(&e);
    waitpid(other, NULL, 0);
    close(ports[0]);
    close(ports[1]);
    r.cpu_s = (cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN) - cpu) / (n + 2 * N_TRIPS + 2);
    return r;
}

static void keep_best(double *best, double value) {
    if (*best == 0 || value < *best) *best = value;
}

int main(int argc, char **argv) {
    int64_t n = 500;
    result best[N_KINDS] = {{0}};
    uint8_t *bytes = ct_alloc(LETTER, 1);
    if (argc > 1 && (!ct_parse_i64(argv[1], &n) || n < 1)) {
        fprintf(stderr, "usage: bench_mesh [MEGABYTES]\n");
        return 2;
    }
    if (bytes == NULL || ct_keys_make(&keys[0]) != CT_OK || ct_keys_make(&keys[1]) != CT_OK)
        return 1;
    for (int round = 0; round < N_ROUNDS; round++)
        for (int k = 0; k < N_KINDS; k++) {
            result r = measure(&kinds[k], (int)n, bytes);
            keep_best(&best[k].stream_s, r.stream_s);
            keep_best(&best[k].trip_s, r.trip_s);
            keep_best(&best[k].cpu_s, r.cpu_s);
        }
    printf("%-6s %10s %8s %14s %8s %12s %8s\n", "", "MB/s", "ratio", "there+back ms", "ratio",
           "cpu ms/MB", "ratio");
    for (int k = 0; k < N_KINDS; k++)
        printf("%-6s %10.0f %8.2f %14.3f %8.2f %12.3f %8.2f\n", kinds[k].name,
               LETTER / 1e6 / best[k].stream_s, best[k].stream_s / best[0].stream_s,
               1e3 * best[k].trip_s, best[k].trip_s / best[0].trip_s, 1e3 * best[k].cpu_s,
               best[k].cpu_s / best[0].cpu_s);
    ct_free(bytes);
    return 0;
}

#else

int main(void) {
    printf("built without libzmq\n");
    return 1;
}
#endif
