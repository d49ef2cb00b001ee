/* Sites on 127.0.0.1 that talk to each other (src/site/mesh.h). Nothing depends on how long something
 * takes: waiting ends when it has happened, or after a minute, which is a failure. */
#ifndef CT_TEST_MESH_H
#define CT_TEST_MESH_H

#include "test.h"

#include "site/mesh.h"
#include "util/memory.h"

#define BEAT_S   0.2 /* less, and a busy machine is silent for too long */
#define MINUTE_S 60.0
#define LONGEST  ((size_t)48 << 20)

enum { NORTH, SOUTH, EAST, WEST, N_SITES };
static const char *const names[] = {"north", "south", "east", "west"};
static ct_key_pair keys[N_SITES];
static double beat_s = BEAT_S; /* of sites that are described from now on */

static inline bool make_keys(void) {
    for (int k = 0; k < N_SITES; k++) CHECK_OK(ct_keys_make(&keys[k]));
    return !test_failed;
}

/* A site whose peers are those that it dials and those that dial it. */
typedef struct site {
    ct_mesh *mesh;
    ct_mesh_peer peers[N_SITES];
    ct_mesh_options options;
    char listen[32];
} site;

static inline site *describe(site *s, int who) {
    *s = (site){.options = {.name = names[who],
                            .key = &keys[who],
                            .program = "crosstalk 1",
                            .heartbeat_s = beat_s,
                            .max_letter_bytes = LONGEST,
                            .peers = s->peers}};
    return s;
}

static inline void add_peer(site *s, int who, const site *dialled) {
    ct_mesh_peer *p = &s->peers[s->options.n_peers++];
    snprintf(p->name, sizeof p->name, "%s", names[who]);
    memcpy(p->key, keys[who].public_key, CT_KEY_BYTES);
    p->dials = dialled != NULL;
    if (dialled != NULL)
        snprintf(p->address, sizeof p->address, "127.0.0.1:%d", ct_mesh_port(dialled->mesh));
}

static inline ct_status open_site(site *s) {
    bool listens = false;
    for (int k = 0; k < s->options.n_peers; k++) listens = listens || !s->peers[k].dials;
    if (s->listen[0] == '\0') snprintf(s->listen, sizeof s->listen, "127.0.0.1:0");
    s->options.listen = listens ? s->listen : NULL;
    return ct_mesh_open(&s->options, &s->mesh);
}

/* north listens, south dials it; each is the other's peer 0. */
static inline bool open_pair(site *north, site *south) {
    describe(north, NORTH);
    describe(south, SOUTH);
    add_peer(north, SOUTH, NULL);
    CHECK_OK(open_site(north));
    if (test_failed) return false;
    add_peer(south, NORTH, north);
    CHECK_OK(open_site(south));
    return !test_failed;
}

static inline void close_pair(site *a, site *b) {
    ct_mesh_close(&a->mesh);
    ct_mesh_close(&b->mesh);
}

/* True as soon as it is. */
#define EVENTUALLY(site, claim)                                                                    \
    do {                                                                                           \
        double until_ = ct_seconds() + MINUTE_S;                                                   \
        while (!(claim) && ct_seconds() < until_) ct_mesh_wait((site)->mesh, 0.02);                \
        CHECK(claim);                                                                              \
    } while (0)

/* The next event is of this kind, and says this. */
static inline bool next_is(site *s, ct_mesh_event_kind kind, int peer, const char *words) {
    ct_mesh_event e;
    double until = ct_seconds() + MINUTE_S;
    while (!ct_mesh_next_event(s->mesh, &e)) {
        if (ct_seconds() > until) {
            printf("    no event for a minute, where %d '%s' was due\n", (int)kind, words);
            return false;
        }
        ct_mesh_wait(s->mesh, 0.1);
    }
    bool is = e.kind == kind && e.peer == peer && strstr(e.text, words) != NULL;
    if (!is) printf("    event %d of %d: %s\n", (int)e.kind, e.peer, e.text);
    return is;
}

/* ---- letters ---- */

static inline uint8_t byte_at(size_t k, unsigned salt) {
    return (uint8_t)((k * 2654435761u) >> 13 ^ salt);
}

/* To peer number `to`. */
static inline ct_status send_filled(site *s, int to, size_t n, unsigned salt) {
    uint8_t *bytes = ct_alloc(n, 1);
    for (size_t k = 0; k < n; k++) bytes[k] = byte_at(k, salt);
    ct_letter letter = {.kind = 3,
                        .tag = (uint16_t)salt,
                        .iteration = UINT64_C(1) << 40 | salt,
                        .bytes = bytes,
                        .n = n};
    ct_status status = ct_mesh_send(s->mesh, to, &letter);
    ct_free(bytes);
    return status;
}

static inline bool has_letter(site *s, int from, size_t n, unsigned salt) {
    ct_letter l = {0};
    double until = ct_seconds() + MINUTE_S;
    while (!ct_mesh_peek(s->mesh, from, &l) && ct_seconds() < until) ct_mesh_wait(s->mesh, 0.1);
    bool is = ct_seconds() < until && l.n == n && l.kind == 3 && l.tag == salt &&
              l.iteration == (UINT64_C(1) << 40 | salt);
    for (size_t k = 0; is && k < n; k++) is = ((const uint8_t *)l.bytes)[k] == byte_at(k, salt);
    if (!is) printf("    letter %u: %zu bytes, tag %d\n", salt, l.n, l.tag);
    ct_mesh_drop(s->mesh, from);
    return is;
}

#endif
