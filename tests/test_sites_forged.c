/* A member of the federation that lies, beside two that train: it has a right key, and sends what no
 * site would send. It is named with the reason, and the others go on. */
#include "sites.h"

#include <math.h>

#include "compress/compress.h"
#include "site/site_internal.h"
#include "util/version.h"

#define MINUTE_S 20.0

typedef struct liar {
    ct_federation federation;
    ct_key_pair key;
    ct_mesh_peer *peers;
    int n;
    ct_mesh *mesh;
    char refusal[2][256]; /* [peer] its last one; "": none yet */
} liar;

/* In the place of site `me`, whose key it has. */
static bool liar_open(liar *l, int me) {
    char program[128];
    snprintf(program, sizeof program, "%.60s (%.60s)", CT_VERSION, ct_commit);
    *l = (liar){0};
    CHECK_OK(ct_federation_read("f.conf", &l->federation));
    CHECK_OK(ct_keys_read("east.key", &l->key));
    CHECK_OK(ct_federation_peers(&l->federation, me, &l->peers, &l->n));
    ct_mesh_options options = {.name = "east",
                               .key = &l->key,
                               .peers = l->peers,
                               .n_peers = l->n,
                               .program = program,
                               .heartbeat_s = l->federation.heartbeat_s,
                               .max_letter_bytes = (size_t)1 << 32};
    memcpy(options.federation, l->federation.hash, sizeof options.federation);
    CHECK_OK(ct_mesh_open(&options, &l->mesh));
    return !test_failed;
}

static void liar_close(liar *l) {
    ct_mesh_close(&l->mesh);
    ct_free(l->peers);
    ct_federation_free(&l->federation);
}

static void take_events(liar *l) {
    ct_mesh_event event;
    while (ct_mesh_next_event(l->mesh, &event))
        if (event.kind == CT_MESH_REFUSED && event.peer >= 0)
            snprintf(l->refusal[event.peer], sizeof l->refusal[0], "%s", event.text);
}

/* What it refused before is forgotten. */
static bool is_up(liar *l, int peer) {
    for (double began = ct_seconds();
         !ct_mesh_is_up(l->mesh, peer) && ct_seconds() - began < MINUTE_S;)
        ct_mesh_wait(l->mesh, 0.1);
    take_events(l);
    l->refusal[peer][0] = '\0';
    return ct_mesh_is_up(l->mesh, peer);
}

/* The peer refuses us, in words that have these. *is_cold: it has not heard us, for the connection
 * was the one on which it had refused us before. */
static bool is_refused(liar *l, int peer, const char *words, bool *is_cold) {
    const char *reason = l->refusal[peer];
    bool is_gone = false;
    for (double began = ct_seconds();
         reason[0] == '\0' && !is_gone && ct_seconds() - began < MINUTE_S;) {
        is_gone = !ct_mesh_is_up(l->mesh, peer);
        if (!is_gone) ct_mesh_wait(l->mesh, 0.1);
        take_events(l);
    }
    *is_cold = reason[0] == '\0' ? is_gone : strstr(reason, "cut off for a while") != NULL;
    if (!*is_cold && strstr(reason, words) == NULL) printf("    %s\n", reason);
    return !*is_cold && strstr(reason, words) != NULL;
}

/* False: the connection is gone. */
static bool tell(liar *l, int peer, int kind, uint64_t iteration, const void *bytes, size_t n) {
    ct_letter letter = {(uint16_t)kind, 0, iteration, bytes, n};
    return CT_CATCH(NULL, ct_mesh_send(l->mesh, peer, &letter)) == CT_OK;
}

/* The next letter of that kind; its length, or -1. */
static long hear(liar *l, int peer, int kind, uint64_t *iteration) {
    double began = ct_seconds();
    ct_letter letter;
    while (ct_seconds() - began < MINUTE_S && ct_mesh_is_up(l->mesh, peer)) {
        bool has_one = ct_mesh_peek(l->mesh, peer, &letter);
        if (has_one && letter.kind == kind) {
            *iteration = letter.iteration;
            long n = (long)letter.n;
            ct_mesh_drop(l->mesh, peer);
            return n;
        }
        if (has_one)
            ct_mesh_drop(l->mesh, peer);
        else
            ct_mesh_wait(l->mesh, 0.1);
    }
    return -1;
}

/* Joins the training of a peer as a site would, and then sends a row with so many numbers more than a
 * model has. False: the connection went away meanwhile. */
static bool join_and_send(liar *l, int peer, int more, float value) {
    uint64_t wants_model = 1, gives_model = 0, start = 0, at;
    if (!tell(l, peer, CT_LETTER_KNOCK, 0, &wants_model, sizeof wants_model) ||
        hear(l, peer, CT_LETTER_START, &start) != 8)
        return false;
    long n = hear(l, peer, CT_LETTER_MODEL, &at) / (long)sizeof(float) + more;
    CT_SCOPED_BLOCK(float) row = NULL;
    if (n <= more || ct_make(&row, (size_t)n, "a row") != CT_OK) return false;
    for (long k = 0; k < n; k++) row[k] = 0.01F;
    row[n / 2] = value;
    return tell(l, peer, CT_LETTER_START, start, &gives_model, sizeof gives_model) &&
           tell(l, peer, CT_LETTER_ROW, start, row, (size_t)n * sizeof *row);
}

/* Joins the training of a peer and sends all that a site would, iteration by iteration, but takes
 * nothing, until it is refused. At first as fast as the peer's own rows come; those that are not
 * taken hold up the others, and from then on one every so many seconds. False: the connection went
 * away meanwhile. */
static bool join_and_never_read(liar *l, int peer, double every_s) {
    enum { CLASS_SUMS = 3 * (8 + 1) };
    uint64_t wants_model = 1, gives_model = 0, start = 0, at, k = 0;
    if (!tell(l, peer, CT_LETTER_KNOCK, 0, &wants_model, sizeof wants_model) ||
        hear(l, peer, CT_LETTER_START, &start) != 8)
        return false;
    long n = hear(l, peer, CT_LETTER_MODEL, &at);
    CT_SCOPED_BLOCK(float) zeros = NULL;
    if (n <= 0 || ct_make(&zeros, (size_t)n / sizeof *zeros + CLASS_SUMS, "a row") != CT_OK ||
        !tell(l, peer, CT_LETTER_START, start, &gives_model, sizeof gives_model))
        return false;
    uint64_t before = ct_mesh_traffic_of(l->mesh, peer).letters_received;
    double sent_at = ct_seconds();
    while (l->refusal[peer][0] == '\0' && ct_mesh_is_up(l->mesh, peer)) {
        ct_letter letter = {CT_LETTER_ROW, (uint16_t)(k % 2), start + k / 2, zeros, (size_t)n};
        if (k % 2 == 1) letter.n = CLASS_SUMS * sizeof *zeros;
        bool is_due = ct_mesh_traffic_of(l->mesh, peer).letters_received > before + k ||
                      ct_seconds() - sent_at > every_s;
        if (is_due && CT_CATCH(NULL, ct_mesh_send(l->mesh, peer, &letter)) == CT_OK) {
            k++;
            sent_at = ct_seconds();
        }
        if (!is_due) nap(0.001);
        take_events(l);
    }
    return true;
}

/* East is killed, and a liar takes its place. A refusal's words are those of the site that it lied
 * to. */
static void lie(void) {
    static const struct {
        int kind;
        size_t n;
        const char *words;
    } lies[] = {{99, 5, "unknown kind"},
                {CT_LETTER_KNOCK, 3, "a knock of 3 bytes"},
                {CT_LETTER_START, 1, "a start that is none"},
                {CT_LETTER_MODEL, 40, "nobody asked for"},
                {CT_LETTER_SUM, 40, "sum"},
                {CT_LETTER_RESULT, 40, "consensus model"},
                {CT_LETTER_SAYS, 40, "agreement"}};
    liar l;
    char bytes[64] = {0};
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 4, .heartbeat_s = 0.2, .epochs = 100000};
    put_federation(&f, "f.conf");
    start_sites(3, "f.conf", "lies");
    REQUIRE(says("lies", 0, "epoch 2/"));
    kill_site(2);
    REQUIRE(says("lies", 0, "east is gone") && says("lies", 1, "east is gone"));
    REQUIRE(liar_open(&l, 2));
    for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
        bool is_done = false, is_cold = true;
        while (is_cold) {
            REQUIRE(is_up(&l, 0));
            (void)tell(&l, 0, lies[k].kind, 0, bytes, lies[k].n);
            is_done = is_refused(&l, 0, lies[k].words, &is_cold);
        }
        CHECK(is_done);
    }
    for (int peer = 0; peer < 2; peer++) {
        bool is_done = false, is_cold = true;
        while (is_cold) {
            REQUIRE(is_up(&l, peer));
            is_cold = !join_and_send(&l, peer, 7 * peer, peer == 0 ? NAN : 0);
            if (!is_cold)
                is_done = is_refused(&l, peer, peer == 0 ? "not finite" : "for a row of", &is_cold);
        }
        CHECK(is_done);
    }
    bool is_done = false;
    for (double every_s = 0.004; !is_done && every_s < 1; every_s *= 2) { /* not too fast for it */
        bool is_cold;
        REQUIRE(is_up(&l, 1));
        if (join_and_never_read(&l, 1, every_s))
            is_done = is_refused(&l, 1, "stopped reading", &is_cold);
    }
    CHECK(is_done);
    liar_close(&l);
    for (int k = 0; k < 2; k++) {
        CHECK(is_running(k));
        signal_site(k, SIGTERM);
    }
    CHECK(await_site(0) == 143 && await_site(1) == 143);
}

static void one_that_lies_is_named_and_the_others_go_on(void) {
    NEEDS_ZMQ();
    lie();
    for (int k = 0; k < 3; k++)
        if (is_running(k)) kill_site(k);
}

/* ---- packed rows ---- */

#define HOW "top-k:0.1"

typedef enum forgery { NO_FIRST_ROW, SHORT, WRONG_PLACES, NOT_A_NUMBER } forgery;

/* Joins as a site would, sends the whole row that changes are added to, and a change that is none.
 * False: the connection went away meanwhile. */
static bool join_and_forge(liar *l, int peer, forgery what) {
    uint64_t wants_model = 1, gives_model = 0, start = 0, at;
    ct_compress_key key = {0};
    ct_compressor how;
    static float row[4096];
    static uint32_t scratch[4096];
    static uint8_t packed[sizeof row];
    if (!tell(l, peer, CT_LETTER_KNOCK, 0, &wants_model, sizeof wants_model) ||
        hear(l, peer, CT_LETTER_START, &start) != 8)
        return false;
    long n = hear(l, peer, CT_LETTER_MODEL, &at) / (long)sizeof *row;
    if (n <= 0 || n > 4096 || ct_compressor_parse(HOW, (size_t)n, &how) != CT_OK) return false;
    for (long k = 0; k < n; k++) row[k] = 1e-4F * (float)(k % 7);
    how.kind->encode(&how, &key, row, NULL, scratch, packed);
    if (what == WRONG_PLACES) memset(packed + how.k * sizeof *row, 0xff, 8);
    if (what == NOT_A_NUMBER) memset(packed, 0xff, sizeof *row);
    ct_letter first = {CT_LETTER_ROW, 0x8000, start, row, (size_t)n * sizeof *row};
    bool is_told = tell(l, peer, CT_LETTER_START, start, &gives_model, sizeof gives_model);
    if (what != NO_FIRST_ROW)
        is_told = is_told && CT_CATCH(NULL, ct_mesh_send(l->mesh, peer, &first)) == CT_OK;
    return is_told && tell(l, peer, CT_LETTER_ROW, start + (what != NO_FIRST_ROW), packed,
                           how.n_bytes - (what == SHORT ? 4 : 0));
}

/* A site tells its own people who it was, and why, when it next looks. */
static bool is_named(int k, const char *words) {
    char command[256];
    snprintf(command, sizeof command, "grep -q 'east broke the rules: .*%s' forged/%s.log", words,
             site_names[k]);
    bool is_there = system(command) == 0;
    for (int n = 0; !is_there && n < 300; n++) {
        nap(0.1);
        is_there = system(command) == 0;
    }
    return is_there;
}

static void forge(void) {
    static const char *const words[] = {"a row that it has not sent", "for a packed row of",
                                        "a packed row that is none", "a packed row that is none"};
    liar l;
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 4, .heartbeat_s = 0.2, .epochs = 100000};
    f.options = "option compress " HOW "\n";
    put_federation(&f, "f.conf");
    CHECK(system("sed -i 's/algorithm ccl/algorithm dsgd/' f.conf") == 0);
    start_sites(3, "f.conf", "forged");
    REQUIRE(says("forged", 0, "epoch 2/"));
    kill_site(2);
    REQUIRE(says("forged", 0, "east is gone") && says("forged", 1, "east is gone"));
    REQUIRE(liar_open(&l, 2));
    for (int k = 0; k < 4; k++) {
        bool is_done = false, is_cold = true;
        while (is_cold) {
            REQUIRE(is_up(&l, k % 2));
            is_cold = !join_and_forge(&l, k % 2, (forgery)k);
            if (!is_cold) is_done = is_refused(&l, k % 2, words[k], &is_cold);
        }
        CHECK(is_done);
    }
    for (int k = 0; k < 4; k++) CHECK(is_named(k % 2, words[k]));
    liar_close(&l);
    for (int k = 0; k < 2; k++) {
        CHECK(is_running(k));
        signal_site(k, SIGTERM);
    }
    CHECK(await_site(0) == 143 && await_site(1) == 143);
}

static void forged_packed_rows_are_refused_and_their_sender_named(void) {
    NEEDS_ZMQ();
    forge();
    for (int k = 0; k < 3; k++)
        if (is_running(k)) kill_site(k);
}

int main(void) {
    if (!enter_folder() || !prepare_sites()) return 1;
    TEST(one_that_lies_is_named_and_the_others_go_on);
    TEST(forged_packed_rows_are_refused_and_their_sender_named);
    remove_tree(".");
    leave_folder();
    return test_report();
}
