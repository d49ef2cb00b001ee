/* Names of hosts become addresses in a thread of their own: libzmq would look them up in the one that
 * moves all bytes, and a name server that does not answer would silence every connection. */
#include "site/mesh_internal.h"

#if CT_WITH_ZMQ
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Owned by the one who asks and by the thread that looks, and freed by the last of them: nobody waits
 * for a name server. */
struct ct_lookup {
    atomic_int n_owners;
    atomic_bool is_done;
    int alarm; /* rung when it is done; of its own */
    unsigned attempt;
    char host[CT_MESH_ADDRESS], port[CT_MESH_ADDRESS];
    char found[CT_MESH_ADDRESS]; /* "": nothing */
    char why[128];
};

static void let_go(ct_lookup *l) {
    if (atomic_fetch_sub(&l->n_owners, 1) > 1) return;
    if (l->alarm >= 0) close(l->alarm);
    ct_free(l);
}

void ct_lookup_free(ct_lookup **lookup) {
    if (*lookup != NULL) let_go(*lookup);
    *lookup = NULL;
}

/* Each attempt takes the next address: a name may have one of IPv6 where nobody listens. */
static void pick(ct_lookup *l, const struct addrinfo *all) {
    unsigned n = 0;
    char host[CT_MESH_ADDRESS / 2], port[16];
    for (const struct addrinfo *a = all; a != NULL; a = a->ai_next) n++;
    if (n == 0) return;
    const struct addrinfo *a = all;
    for (unsigned k = l->attempt % n; k > 0; k--) a = a->ai_next;
    int error = getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, port, sizeof port,
                            NI_NUMERICHOST | NI_NUMERICSERV);
    if (error != 0) return;
    bool is_v6 = a->ai_family == AF_INET6;
    snprintf(l->found, sizeof l->found, is_v6 ? "[%s]:%s" : "%s:%s", host, port);
}

static void *look(void *lookup) {
    ct_lookup *l = lookup;
    struct addrinfo *all = NULL, wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int error = getaddrinfo(l->host, l->port, &wanted, &all);
    if (error == 0) pick(l, all);
    if (l->found[0] == '\0') snprintf(l->why, sizeof l->why, "%s", gai_strerror(error));
    if (all != NULL) freeaddrinfo(all);
    atomic_store(&l->is_done, true);
    ct_mesh_ring(l->alarm);
    let_go(l);
    return NULL;
}

bool ct_lookup_is_needed(const char *address) {
    return address[0] != '[' && address[strspn(address, "0123456789.:")] != '\0';
}

ct_status ct_lookup_start(const ct_mesh *m, const char *address, unsigned attempt,
                          ct_lookup **out) {
    const char *colon = strrchr(address, ':');
    pthread_t thread;
    ct_lookup *l = NULL;
    if (colon == NULL || colon == address || colon[1] == '\0')
        return ct_fail(CT_INVAL, "%s is not host:port", address);
    CT_TRY(ct_make(&l, 1, "a name"));
    l->attempt = attempt;
    l->alarm = dup(m->alarm);
    snprintf(l->host, sizeof l->host, "%.*s", (int)(colon - address), address);
    snprintf(l->port, sizeof l->port, "%s", colon + 1);
    atomic_store(&l->n_owners, 2);
    if (l->alarm >= 0 && pthread_create(&thread, NULL, look, l) == 0) {
        pthread_detach(thread);
        *out = l;
        return CT_OK;
    }
    atomic_store(&l->n_owners, 1);
    let_go(l);
    return ct_fail(CT_IO, "no thread to look %s up", address);
}

bool ct_lookup_is_done(const ct_lookup *l) {
    return atomic_load(&l->is_done);
}

ct_status ct_lookup_result(const ct_lookup *l, char address[CT_MESH_ADDRESS]) {
    if (l->found[0] == '\0') return ct_fail(CT_IO, "%s: %s", l->host, l->why);
    memcpy(address, l->found, sizeof l->found);
    return CT_OK;
}
#endif
