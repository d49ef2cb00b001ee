/* Who may connect: ZAP (ZeroMQ RFC 27). libzmq asks for each connection whether its key is known; we
 * answer with the name of the peer, which then comes with every message of the connection. */
#include "site/mesh_internal.h"

#if CT_WITH_ZMQ
#include <stdio.h>

enum { VERSION, REQUEST, DOMAIN_NAME, ADDRESS, IDENTITY, MECHANISM, KEY, N_PARTS };
#define MOST_BYTES 256 /* of a part */

typedef struct question {
    uint8_t bytes[N_PARTS][MOST_BYTES];
    int n[N_PARTS];
} question;

/* Every part of it; more than there should be are left out. */
static bool ask(void *socket, question *q) {
    int more = 1;
    size_t size = sizeof more;
    *q = (question){.n = {0}};
    for (int k = 0; more; k++) {
        uint8_t rest[MOST_BYTES];
        int n = zmq_recv(socket, k < N_PARTS ? q->bytes[k] : rest, MOST_BYTES, ZMQ_DONTWAIT);
        if (n < 0) return false;
        if (k < N_PARTS) q->n[k] = n < MOST_BYTES ? n : MOST_BYTES - 1;
        zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
    }
    return true;
}

static void answer(void *socket, const question *q, const char *name) {
    const char *code = name != NULL ? "200" : "400", *text = name != NULL ? "OK" : "unknown key";
    if (name == NULL) name = "";
    zmq_send(socket, "1.0", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(socket, q->bytes[REQUEST], (size_t)q->n[REQUEST], ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(socket, code, 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(socket, text, strlen(text), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(socket, name, strlen(name), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(socket, "", 0, ZMQ_DONTWAIT);
}

static const char *find(const ct_mesh *m, const question *q) {
    const char *found = NULL;
    if (q->n[KEY] != CT_KEY_BYTES || q->n[MECHANISM] != 5 ||
        memcmp(q->bytes[MECHANISM], "CURVE", 5) != 0)
        return NULL;
    for (int k = 0; k < m->n_links; k++)
        if (ct_keys_equal(q->bytes[KEY], m->links[k].peer.key)) found = m->links[k].peer.name;
    return found;
}

bool ct_zap_serve(ct_mesh *m) {
    question q;
    int n = 0;
    for (; n < 64 && ask(m->zap, &q); n++) {
        const char *name = find(m, &q);
        answer(m->zap, &q, name);
        if (name != NULL) continue;
        char key[CT_KEY_TEXT], line[CT_LINE];
        ct_key_print(q.bytes[KEY], key);
        snprintf(line, sizeof line, "a stranger at %s was refused: no site has its key %.16s..",
                 (const char *)q.bytes[ADDRESS], key);
        ct_mesh_tell_refused(m, &m->strangers, -1, line);
    }
    return n > 0;
}
#endif
