/* Sites among others who do not keep the rules: what they send is refused, they are named and cut off,
 * and letters between the rest go on. Those with a key of the federation talk libzmq directly. */
#include "mesh.h"

#include "ct_config.h"

#if CT_WITH_ZMQ
#include <errno.h>
#include <sys/resource.h>
#include <time.h>
#include <zmq.h>

#include "site/mesh_internal.h"
#include "sockets.h"
#include "util/rng.h"

/* ---- a client with a key that sends what it likes ---- */

typedef struct raw {
    void *context, *socket;
    uint64_t n_sent;
} raw;

static bool raw_open(raw *r, const ct_key_pair *key, const site *north) {
    char endpoint[64];
    int zero = 0;
    *r = (raw){.context = zmq_ctx_new()};
    r->socket = zmq_socket(r->context, ZMQ_DEALER);
    zmq_setsockopt(r->socket, ZMQ_CURVE_SERVERKEY, keys[NORTH].public_key, CT_KEY_BYTES);
    zmq_setsockopt(r->socket, ZMQ_CURVE_PUBLICKEY, key->public_key, CT_KEY_BYTES);
    zmq_setsockopt(r->socket, ZMQ_CURVE_SECRETKEY, key->secret_key, CT_KEY_BYTES);
    zmq_setsockopt(r->socket, ZMQ_LINGER, &zero, sizeof zero);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", ct_mesh_port(north->mesh));
    return zmq_connect(r->socket, endpoint) == 0;
}

static void raw_close(raw *r) {
    if (r->socket != NULL) zmq_close(r->socket);
    if (r->context != NULL) zmq_ctx_term(r->context);
    *r = (raw){0};
}

static void raw_send_bytes(raw *r, const void *bytes, size_t n, int flags) {
    zmq_send(r->socket, bytes, n, flags | ZMQ_DONTWAIT);
}

/* The frame as bytes, with the next number. */
static size_t raw_write(raw *r, ct_frame f, uint8_t *out) {
    f.sequence += r->n_sent++;
    ct_wire_write(&f, out);
    if (f.n > 0) memcpy(out + CT_WIRE_HEADER, f.bytes, f.n);
    return CT_WIRE_HEADER + f.n;
}

static void raw_send(raw *r, ct_frame f) {
    static uint8_t bytes[CT_WIRE_HEADER + 2 * CT_WIRE_PIECE];
    raw_send_bytes(r, bytes, raw_write(r, f, bytes), 0);
}

static void raw_greet(raw *r, const char *name) {
    uint8_t bytes[CT_WIRE_GREETING_BYTES];
    ct_greeting g = {.session = 1, .max_letter_bytes = LONGEST, .program = "crosstalk 1"};
    snprintf(g.name, sizeof g.name, "%s", name);
    ct_wire_write_greeting(&g, bytes);
    raw_send(r, (ct_frame){.type = CT_WIRE_GREETING, .bytes = bytes, .n = sizeof bytes});
}

/* South greets until it is let in; it may be cut off still. */
static bool raw_come_in(raw *r, site *north) {
    for (double until = ct_seconds() + MINUTE_S; ct_seconds() < until; raw_close(r)) {
        if (!raw_open(r, &keys[SOUTH], north)) return false;
        raw_greet(r, "south");
        for (int k = 0; k < 50 && !ct_mesh_is_up(north->mesh, 0); k++)
            ct_mesh_wait(north->mesh, 0.005);
        if (ct_mesh_is_up(north->mesh, 0)) return true;
    }
    return false;
}

/* North listens for south (0) and east (1), who is there. */
static bool open_north_and_east(site *north, site *east, double beat) {
    describe(north, NORTH)->options.heartbeat_s = beat;
    add_peer(north, SOUTH, NULL);
    add_peer(north, EAST, NULL);
    CHECK_OK(open_site(north));
    if (test_failed) return false;
    describe(east, EAST)->options.heartbeat_s = beat;
    add_peer(east, NORTH, north);
    CHECK_OK(open_site(east));
    CHECK(next_is(north, CT_MESH_UP, 1, ""));
    EVENTUALLY(east, ct_mesh_is_up(east->mesh, 0));
    return !test_failed;
}

static bool letters_flow(site *north, site *east, unsigned salt) {
    return send_filled(east, 0, 300000, salt) == CT_OK && has_letter(north, 1, 300000, salt) &&
           send_filled(north, 1, 300000, salt) == CT_OK && has_letter(east, 0, 300000, salt);
}

/* Its connection is ended by the other side. */
static bool is_hung_up(raw *r) {
    uint8_t event[16];
    int patience_ms = 60000;
    void *monitor = zmq_socket(r->context, ZMQ_PAIR);
    zmq_setsockopt(monitor, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_connect(monitor, "inproc://end");
    bool is = zmq_recv(monitor, event, sizeof event, 0) >= 0;
    zmq_close(monitor);
    return is;
}

/* ---- broken rules ---- */

typedef enum misdeed {
    SPEAKS_BEFORE_GREETING,
    SENDS_NOISE,
    SENDS_HALF_A_HEADER,
    SENDS_TOO_LITTLE,
    SENDS_TOO_MUCH,
    ANNOUNCES_TOO_LONG_A_LETTER,
    LOSES_FRAMES,
    REPLAYS,
    BEGINS_IN_THE_MIDDLE,
    MIXES_LETTERS,
    GREETS_TWICE,
    INVENTS_A_TYPE,
    SENDS_SEVERAL_PARTS,
    SAW_WHAT_WAS_NOT_SENT,
    FLOODS,
    N_MISDEEDS
} misdeed;

static const char *const misdeed_lines[] = {
    [SPEAKS_BEFORE_GREETING] = "south broke the rules: a heartbeat before a greeting",
    [SENDS_NOISE] = "south broke the rules: 100 bytes that are no frame",
    [SENDS_HALF_A_HEADER] = "a frame of 40 bytes whose length is wrong",
    [SENDS_TOO_LITTLE] = "a piece of 10 bytes at 0 of a letter of 20 bytes",
    [SENDS_TOO_MUCH] = "whose length is wrong",
    [ANNOUNCES_TOO_LONG_A_LETTER] = "a letter of 1000000000000 bytes; at most 50331648 are taken",
    [LOSES_FRAMES] = "frame 6 where 1 was due: some are lost",
    [REPLAYS] = "frame 0 where 1 was due: it is replayed",
    [BEGINS_IN_THE_MIDDLE] = "a piece at 65536 of a letter that has not begun",
    [MIXES_LETTERS] = "a piece at 65536 of another letter",
    [GREETS_TWICE] = "a second greeting",
    [INVENTS_A_TYPE] = "a frame of unknown type 9",
    [SENDS_SEVERAL_PARTS] = "a message of several parts",
    [SAW_WHAT_WAS_NOT_SENT] = "a heartbeat that has seen what was not sent",
    [FLOODS] = "a letter of 1 bytes while 128 with 128 bytes are waiting",
};

static void misbehave(raw *r, misdeed how) {
    static uint8_t noise[CT_WIRE_PIECE + 100];
    ct_frame beat = {.type = CT_WIRE_HEARTBEAT, .bytes = noise};
    ct_frame piece = {.type = CT_WIRE_PIECE_OF, .bytes = noise, .n = 10, .total = 10};
    uint8_t bytes[2 * CT_WIRE_HEADER];
    memset(noise, 0x55, sizeof noise);
    switch (how) {
    case SPEAKS_BEFORE_GREETING: break;
    case SENDS_NOISE: raw_send_bytes(r, noise, 100, 0); return;
    case SENDS_HALF_A_HEADER:
        raw_write(r, beat, bytes);
        raw_send_bytes(r, bytes, 40, 0);
        return;
    case SENDS_TOO_LITTLE: piece.total = 20; break;
    case SENDS_TOO_MUCH: piece.n = piece.total = CT_WIRE_PIECE + 10; break;
    case ANNOUNCES_TOO_LONG_A_LETTER:
        piece.total = UINT64_C(1000000000000);
        piece.n = CT_WIRE_PIECE;
        break;
    case LOSES_FRAMES: beat.sequence = 5; break;
    case REPLAYS: r->n_sent = 0; break;
    case BEGINS_IN_THE_MIDDLE:
        piece.offset = CT_WIRE_PIECE;
        piece.total = CT_WIRE_PIECE + 10;
        break;
    case MIXES_LETTERS:
        piece.n = CT_WIRE_PIECE;
        piece.total = CT_WIRE_PIECE + 10;
        raw_send(r, piece);
        piece = (ct_frame){.type = CT_WIRE_PIECE_OF, .bytes = noise, .n = 10, .iteration = 1};
        piece.offset = CT_WIRE_PIECE;
        piece.total = CT_WIRE_PIECE + 10;
        break;
    case GREETS_TWICE: raw_greet(r, "south"); return;
    case INVENTS_A_TYPE: beat.type = 9; break;
    case SENDS_SEVERAL_PARTS: raw_send_bytes(r, noise, 3, ZMQ_SNDMORE); break;
    case SAW_WHAT_WAS_NOT_SENT: beat.n_seen = 1000; break;
    case FLOODS:
        piece.n = piece.total = 1;
        for (int k = 0; k < CT_WIRE_LETTERS; k++) raw_send(r, piece);
        break;
    case N_MISDEEDS: return;
    }
    bool is_letter = how == SENDS_TOO_LITTLE || how == SENDS_TOO_MUCH ||
                     how == ANNOUNCES_TOO_LONG_A_LETTER || how == BEGINS_IN_THE_MIDDLE ||
                     how == MIXES_LETTERS || how == FLOODS;
    raw_send(r, is_letter ? piece : beat);
}

static void who_breaks_a_rule_is_named_and_cut_off_while_others_go_on(void) {
    site north, east;
    raw r = {0};
    REQUIRE(open_north_and_east(&north, &east, BEAT_S));
    for (int how = 0; how < N_MISDEEDS; how++) {
        if (how == SPEAKS_BEFORE_GREETING)
            REQUIRE(raw_open(&r, &keys[SOUTH], &north));
        else
            REQUIRE(raw_come_in(&r, &north) && next_is(&north, CT_MESH_UP, 0, ""));
        misbehave(&r, (misdeed)how);
        CHECK(letters_flow(&north, &east, (unsigned)how));
        CHECK(next_is(&north, CT_MESH_REFUSED, 0, misdeed_lines[how]));
        if (how != SPEAKS_BEFORE_GREETING) CHECK(next_is(&north, CT_MESH_DOWN, 0, "refused"));
        ct_letter l;
        CHECK(!ct_mesh_peek(north.mesh, 0, &l)); /* what it had sent is gone with it */
        raw_close(&r);
    }
    CHECK(ct_mesh_is_up(north.mesh, 1) && ct_mesh_is_up(east.mesh, 0));
    close_pair(&north, &east);
}

/* libzmq itself ends a connection with a message longer than any frame. */
static void a_message_longer_than_any_frame_ends_its_connection(void) {
    site north, east;
    raw r = {0};
    REQUIRE(open_north_and_east(&north, &east, BEAT_S));
    REQUIRE(raw_come_in(&r, &north) && next_is(&north, CT_MESH_UP, 0, ""));
    uint8_t *much = ct_alloc(64 << 20, 1);
    raw_send_bytes(&r, much, 64 << 20, 0);
    CHECK(next_is(&north, CT_MESH_DOWN, 0, ""));
    CHECK(letters_flow(&north, &east, 1));
    raw_close(&r);
    ct_free(much);
    close_pair(&north, &east);
}

static void a_newer_connection_takes_the_place_of_the_older(void) {
    site north, east;
    raw first = {0}, second = {0};
    REQUIRE(open_north_and_east(&north, &east, BEAT_S));
    REQUIRE(raw_come_in(&first, &north) && next_is(&north, CT_MESH_UP, 0, ""));
    for (double until = ct_seconds() + 2 * BEAT_S; ct_seconds() < until;) /* not at once */
        ct_mesh_wait(north.mesh, BEAT_S / 2);
    zmq_socket_monitor(first.socket, "inproc://end", ZMQ_EVENT_DISCONNECTED);
    REQUIRE(raw_open(&second, &keys[SOUTH], &north));
    raw_greet(&second, "south");
    CHECK(next_is(&north, CT_MESH_DOWN, 0, "connected anew"));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    CHECK(is_hung_up(&first));
    zmq_socket_monitor(first.socket, NULL, 0);
    raw_close(&first);
    raw_close(&second);
    close_pair(&north, &east);
}

static void who_does_not_read_is_cut_off(void) {
    site north, east;
    raw r = {0};
    ct_mesh_event e = {0};
    bool is_told = false;
    CT_SCOPED_BLOCK(uint8_t) bytes = ct_alloc(40000000, 1);
    ct_letter letter = {.bytes = bytes, .n = 40000000};
    REQUIRE(bytes != NULL && open_north_and_east(&north, &east, BEAT_S));
    REQUIRE(raw_come_in(&r, &north) && next_is(&north, CT_MESH_UP, 0, ""));
    CHECK_OK(ct_mesh_send(north.mesh, 0, &letter));
    for (double until = ct_seconds() + MINUTE_S; !is_told && ct_seconds() < until;) {
        raw_send(&r, (ct_frame){.type = CT_WIRE_HEARTBEAT}); /* it is alive and well */
        ct_mesh_wait(north.mesh, BEAT_S / 4);
        is_told = ct_mesh_next_event(north.mesh, &e);
    }
    CHECK(is_told && e.kind == CT_MESH_DOWN && e.peer == 0);
    CHECK(strcmp(e.text, "does not read") == 0);
    CHECK(letters_flow(&north, &east, 1));
    raw_close(&r);
    close_pair(&north, &east);
}

/* ---- noise ---- */

/* A frame as it should be, or with some bytes changed. */
static void send_mutated(raw *r, ct_rng *rng) {
    uint8_t bytes[CT_WIRE_HEADER + 300], content[300];
    ct_frame f = {.type = CT_WIRE_HEARTBEAT, .bytes = content};
    for (size_t k = 0; k < sizeof content; k++) content[k] = (uint8_t)ct_rng_u32(rng);
    if (ct_rng_below(rng, 2) == 0) {
        f.type = CT_WIRE_PIECE_OF;
        f.n = f.total = ct_rng_below(rng, 300);
        f.kind = (uint16_t)ct_rng_below(rng, 9);
    } else if (ct_rng_below(rng, 2) == 0) {
        f.flags = CT_WIRE_HAS_STATUS;
        f.n = ct_rng_below(rng, 300);
    }
    size_t n = raw_write(r, f, bytes);
    /* Mostly behind the header: what is wrong there gets through, to the next one. */
    uint32_t first = ct_rng_below(rng, 16) == 0 ? 0 : CT_WIRE_HEADER;
    for (uint32_t k = 1 + ct_rng_below(rng, 3); k > 0 && n > first; k--)
        bytes[first + ct_rng_below(rng, (uint32_t)n - first)] = (uint8_t)ct_rng_u32(rng);
    if (ct_rng_below(rng, 50) == 0) n = ct_rng_below(rng, (uint32_t)n);
    raw_send_bytes(r, bytes, n, 0);
}

static void thousands_of_damaged_frames_are_survived(void) {
    enum { N_FRAMES = 2400, N_A_TIME = 120 };
    site north, east, south;
    raw r = {0};
    ct_rng rng;
    ct_letter l;
    ct_mesh_event e;
    ct_rng_init(&rng, 1, CT_RNG_TEST, 0, 0, 0);
    REQUIRE(open_north_and_east(&north, &east, BEAT_S));
    uint64_t n_before = ct_mesh_traffic_of(north.mesh, 0).framed_received;
    for (int k = 0; k < N_FRAMES;) {
        raw_close(&r);
        REQUIRE(raw_come_in(&r, &north));
        for (int j = 0; j < N_A_TIME; j++, k++) send_mutated(&r, &rng);
        CHECK(letters_flow(&north, &east, (unsigned)k));
        while (ct_mesh_peek(north.mesh, 0, &l)) ct_mesh_drop(north.mesh, 0);
        EVENTUALLY(&north, !ct_mesh_is_up(north.mesh, 0));
        REQUIRE(!test_failed);
    }
    raw_close(&r);
    while (ct_mesh_next_event(north.mesh, &e)) CHECK(e.peer == 0); /* nothing befell east */
    printf("    %llu bytes of frames from south\n",
           (unsigned long long)(ct_mesh_traffic_of(north.mesh, 0).framed_received - n_before));
    add_peer(describe(&south, SOUTH), NORTH, &north);
    REQUIRE_OK(open_site(&south));
    EVENTUALLY(&south, ct_mesh_is_up(south.mesh, 0));
    CHECK_OK(send_filled(&south, 0, 100000, 7));
    CHECK(has_letter(&north, 0, 100000, 7));
    close_pair(&north, &east);
    ct_mesh_close(&south.mesh);
}

/* ---- strangers ---- */

enum { N_EACH = 125, N_PLAIN = 3 * N_EACH };

/* The beginning of libzmq's own greeting, as one who speaks it would send. */
static const char half_handshake[] = "\xff\1\1\1\1\1\1\1\1\x7f\3";

static void raise_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static size_t resident_bytes(void) {
    long n_pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*d %ld", &n_pages) != 1) n_pages = 0;
    if (f != NULL) fclose(f);
    return (size_t)n_pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Four kinds: silent, noisy, in the middle of a handshake, and with a key that nobody knows. */
static void add_strangers(int *plain, raw *unknown, const site *north) {
    static char garbage[2000];
    char endpoint[64];
    memset(garbage, 'x', sizeof garbage - 1);
    plain[0] = send_to(ct_mesh_port(north->mesh), "");
    plain[1] = send_to(ct_mesh_port(north->mesh), garbage);
    plain[2] = send_to(ct_mesh_port(north->mesh), half_handshake);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", ct_mesh_port(north->mesh));
    CHECK(zmq_connect(unknown->socket, endpoint) == 0); /* one more with the same key */
}

static void hundreds_of_strangers_disturb_nobody(void) {
    static int plain[N_PLAIN];
    site north, east;
    raw unknown;
    ct_key_pair key;
    ct_mesh_event e;
    double slowest_s = 0;
    raise_limit();
    REQUIRE_OK(ct_keys_make(&key));
    REQUIRE(open_north_and_east(&north, &east, 0.5) && letters_flow(&north, &east, 0));
    size_t before = resident_bytes();
    double began = ct_seconds();
    CHECK(letters_flow(&north, &east, 1));
    double alone_s = ct_seconds() - began;
    REQUIRE(raw_open(&unknown, &key, &north));
    for (unsigned k = 0; k < N_EACH; k++) {
        add_strangers(&plain[3 * k], &unknown, &north);
        began = ct_seconds();
        if (k % 10 == 0) CHECK(letters_flow(&north, &east, k));
        if (ct_seconds() - began > slowest_s) slowest_s = ct_seconds() - began;
    }
    CHECK(next_is(&north, CT_MESH_REFUSED, -1, "a stranger at 127.0.0.1 was refused"));
    CHECK(letters_flow(&north, &east, 5));
    size_t more = resident_bytes() > before ? resident_bytes() - before : 0;
    CHECK(!ct_mesh_next_event(north.mesh, &e)); /* told once, and east never went */
    CHECK(ct_mesh_is_up(north.mesh, 1));
    CHECK(CT_SANITIZED || more < (size_t)100 << 20);
    printf("    two letters: %.1f ms alone, at most %.1f ms among 500 strangers; %.1f MB more\n",
           1e3 * alone_s, 1e3 * slowest_s, 1e-6 * (double)more);
    for (int k = 0; k < N_PLAIN; k++)
        if (plain[k] >= 0) close(plain[k]);
    raw_close(&unknown);
    close_pair(&north, &east);
}

/* The clock is the test's own: 0.1 s before three heartbeats it is there, 0.1 s after it is gone. */
static void a_silent_peer_is_gone_after_three_heartbeats(void) {
    static ct_link lost;
    ct_mesh_event event;
    ct_mesh mesh = {.beat_s = 2, .links = &lost, .n_links = 1, .bell = -1, .alarm = -1};
    pthread_mutex_init(&mesh.lock, NULL);
    lost = (ct_link){.is_up = true, .heard_at = 100, .moved_at = 100, .route.fd = -1};
    ct_link_tick(&mesh, &lost, true, 105.9);
    CHECK(lost.is_up && !ct_mesh_next_event(&mesh, &event));
    ct_link_tick(&mesh, &lost, true, 106.1);
    CHECK(!lost.is_up && ct_mesh_next_event(&mesh, &event));
    CHECK(event.kind == CT_MESH_DOWN && strcmp(event.text, "silent for 6 s") == 0);
    pthread_mutex_destroy(&mesh.lock);
    ct_free(mesh.events);
}

static void run_tests(void) {
    TEST(a_silent_peer_is_gone_after_three_heartbeats);
    TEST(who_breaks_a_rule_is_named_and_cut_off_while_others_go_on);
    TEST(a_message_longer_than_any_frame_ends_its_connection);
    TEST(a_newer_connection_takes_the_place_of_the_older);
    TEST(who_does_not_read_is_cut_off);
    TEST(thousands_of_damaged_frames_are_survived);
    TEST(hundreds_of_strangers_disturb_nobody);
}
#else
static void all_of_it(void) {
    SKIP("built without libzmq");
}

static void run_tests(void) {
    TEST(all_of_it);
}
#endif

int main(void) {
    if (!CT_WITH_ZMQ || make_keys()) run_tests();
    return test_report();
}
