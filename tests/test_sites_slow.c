/* Sites that are killed, stopped and started again, at random moments: whatever happens, the others go
 * on, everyone ends, and all have one consensus model. A few moments; with CT_TEST_LONG=1, twenty of
 * each graph. */
#include "sites.h"

#include "run/checkpoint.h"

typedef struct story {
    const char *name;
    federation f;
} story;

static uint64_t story_seed = 1;

/* Between 0 and 1, of the kth moment of a test. */
static double chance(ct_rng *rng) {
    return ct_rng_below(rng, 1 << 20) / (double)(1 << 20);
}

static int n_moments(int few) {
    return getenv("CT_TEST_LONG") != NULL ? 20 : few;
}

/* Every checkpoint that is there can be opened. */
static bool checkpoints_open(int n, const char *out) {
    bool all = true;
    for (int k = 0; k < n; k++) {
        ct_checkpoint *checkpoint = NULL;
        char dir[128];
        snprintf(dir, sizeof dir, "%s/%s", out, site_names[k]);
        ct_clear_message();
        bool opens = ct_checkpoint_open_site(dir, k, &checkpoint) == CT_OK;
        if (!opens) printf("    %s: %s\n", dir, ct_message());
        ct_checkpoint_free(&checkpoint);
        all = all && opens;
    }
    return all;
}

static bool end_well(int n, const char *out) {
    bool ends = all_end(n, out);
    bool same = ends && same_consensus(n, out);
    return ends && same && checkpoints_open(n, out);
}

/* All were killed when some had their consensus model on disk and others had none: nobody is left who
 * could give it to them, and they take the mean of those who come back (docs/SITES.md). */
static bool are_torn(int n, int mask, const char *out) {
    int n_finished = 0;
    for (int k = 0; k < n; k++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s/summary.json", out, site_names[k]);
        n_finished += ct_file_exists(path);
    }
    bool is_torn = mask == (1 << n) - 1 && n_finished > 0 && n_finished < n;
    if (is_torn) printf("    %d of %d had finished when all were killed\n", n_finished, n);
    return is_torn;
}

static double run_s; /* of a federation that nobody disturbs, from start to end */

/* Kills the sites of the mask at a moment, and brings them back after another. */
static void kill_once(const story *s, int mask, double at_s, double away_s) {
    char out[64];
    bool was_running = false;
    snprintf(out, sizeof out, "%s", s->name);
    remove_tree(out);
    start_sites(s->f.n, "f.conf", out);
    nap(at_s);
    for (int k = 0; k < s->f.n; k++) {
        if ((mask >> k & 1) == 0) continue;
        was_running = is_running(k) || was_running;
        kill_site(k);
    }
    nap(away_s);
    bool has_left = are_torn(s->f.n, mask, out);
    for (int k = 0; k < s->f.n; k++)
        if ((mask >> k & 1) != 0) start_site(k, "f.conf", out);
    bool well = has_left ? all_end(s->f.n, out) : end_well(s->f.n, out);
    if (!well)
        printf("    %s: sites %x were killed after %.3f s, for %.3f s%s\n", s->name, (unsigned)mask,
               at_s, away_s, was_running ? "" : "; they had ended");
    for (int k = 0; k < s->f.n && !well; k++) show_log(out, k);
    CHECK(well);
}

static void measure(const story *s) {
    double began = ct_seconds();
    remove_tree("plain");
    put_federation(&s->f, "f.conf");
    start_sites(s->f.n, "f.conf", "plain");
    CHECK(end_well(s->f.n, "plain"));
    run_s = ct_seconds() - began;
}

static void kill_at_random(const story *s, int few, int n_at_once) {
    ct_rng rng;
    ct_rng_init(&rng, story_seed, CT_RNG_TEST, 7, 0, 0);
    measure(s);
    printf("    %s: seed %llu, a run takes %.2f s\n", s->name, (unsigned long long)story_seed,
           run_s);
    for (int m = 0; m < n_moments(few) && !test_failed; m++) {
        int mask = 0;
        while (__builtin_popcount((unsigned)mask) < n_at_once)
            mask |= 1 << ct_rng_below(&rng, (uint32_t)s->f.n);
        double at_s = chance(&rng) * run_s, away_s = chance(&rng);
        kill_once(s, mask, at_s, away_s);
    }
}

#define FED(n_, edges_)                                                                            \
    { .n = n_, .edges = edges_, .dialers = 2, .heartbeat_s = 0.2, .epochs = 60 }

static void a_killed_site_comes_back_in_a_triangle(void) {
    NEEDS_ZMQ();
    kill_at_random(&(story){"triangle", FED(3, TRIANGLE)}, 3, 1);
}

static void a_killed_site_comes_back_in_a_chain(void) {
    NEEDS_ZMQ();
    kill_at_random(&(story){"chain", FED(4, CHAIN)}, 2, 1);
}

static void a_killed_site_comes_back_in_a_ring(void) {
    NEEDS_ZMQ();
    kill_at_random(&(story){"ring", FED(4, RING)}, 2, 1);
}

static void two_killed_at_once_come_back(void) {
    NEEDS_ZMQ();
    kill_at_random(&(story){"two", FED(4, RING)}, 1, 2);
}

static void all_that_were_killed_go_on_where_they_were(void) {
    NEEDS_ZMQ();
    kill_at_random(&(story){"all", FED(3, TRIANGLE)}, 2, 3);
}

/* ---- stopped, not dead ---- */

static void a_site_that_was_stopped_joins_again(void) {
    NEEDS_ZMQ();
    story s = {"stopped", FED(3, TRIANGLE)};
    ct_rng rng;
    ct_rng_init(&rng, story_seed, CT_RNG_TEST, 8, 0, 0);
    measure(&s);
    for (int m = 0; m < n_moments(2) && !test_failed; m++) {
        int k = (int)ct_rng_below(&rng, 3);
        double at_s = chance(&rng) * run_s;
        remove_tree("stopped");
        start_sites(3, "f.conf", "stopped");
        nap(at_s);
        signal_site(k, SIGSTOP);
        nap(4 * s.f.heartbeat_s + chance(&rng));
        signal_site(k, SIGCONT);
        bool well = end_well(3, "stopped");
        /* what was on its way while it slept is nobody's fault */
        for (int i = 0; i < 3; i++) well = well && !log_has("stopped", i, "broke the rules");
        if (!well) printf("    %s was stopped after %.3f s\n", site_names[k], at_s);
        for (int i = 0; i < 3 && !well; i++) show_log("stopped", i);
        CHECK(well);
    }
}

/* ---- the end ---- */

/* Killed between its last iteration and its consensus model, for which the others wait. */
static void a_site_killed_at_the_end_has_the_same_consensus_model(void) {
    NEEDS_ZMQ();
    story s = {"end", FED(4, CHAIN)};
    ct_rng rng;
    ct_rng_init(&rng, story_seed, CT_RNG_TEST, 9, 0, 0);
    put_federation(&s.f, "f.conf");
    for (int m = 0; m < n_moments(2) && !test_failed; m++) {
        int k = (int)ct_rng_below(&rng, 4);
        remove_tree("end");
        start_sites(4, "f.conf", "end");
        CHECK(says("end", k, "epoch 59/60"));
        nap(0.1 * chance(&rng));
        kill_site(k);
        nap(chance(&rng));
        start_site(k, "f.conf", "end");
        bool well = end_well(4, "end");
        if (!well) printf("    %s was killed at the end, moment %d\n", site_names[k], m);
        for (int i = 0; i < 4 && !well; i++) show_log("end", i);
        CHECK(well);
    }
}

static void a_site_that_never_comes_back_is_waited_for_and_left_out(void) {
    NEEDS_ZMQ();
    federation f = FED(3, TRIANGLE);
    put_federation(&f, "f.conf");
    for (int k = 0; k < 3; k++)
        start_site_with(k, "f.conf", "without", "--patience 1 --checkpoint-every 1");
    CHECK(says("without", 0, "epoch 20/60"));
    kill_site(2);
    CHECK(all_end(2, "without") && same_consensus(2, "without"));
    CHECK(log_has("without", 0, "the mean of 2 of 3 sites"));
    CHECK(log_has("without", 0, "east is gone"));
}

static void a_finished_site_is_not_trained_again(void) {
    NEEDS_ZMQ();
    federation f = {.n = 2, .edges = "0-1", .heartbeat_s = 0.2, .epochs = 2};
    put_federation(&f, "f.conf");
    start_sites(2, "f.conf", "done");
    REQUIRE(all_end(2, "done"));
    start_site(0, "f.conf", "done");
    CHECK(await_site(0) == 0 && log_has("done", 0, "is finished already"));
    CHECK(same_consensus(2, "done"));
    f.options = "option compress quantize:4\n"; /* another run, which is not there */
    put_federation(&f, "f.conf");
    start_site(0, "f.conf", "done");
    CHECK(await_site(0) == 2 && log_has("done", 0, "is finished, with another federation file"));
}

/* ---- one more ---- */

static void a_fifth_site_joins_when_the_file_has_it(void) {
    NEEDS_ZMQ();
    federation f = {.n = 4, .edges = RING, .dialers = 2, .heartbeat_s = 0.2, .epochs = 120};
    put_federation(&f, "f.conf");
    start_sites(4, "f.conf", "five");
    for (int k = 0; k < 4; k++) CHECK(says("five", k, "epoch 10/120"));
    f.n = 5;
    f.edges = RING " 0-4 2-4";
    put_federation(&f, "f.conf");
    for (int k = 0; k < 4; k++) signal_site(k, SIGHUP);
    start_site(4, "f.conf", "five");
    bool well = end_well(5, "five");
    for (int k = 0; k < 5 && !well; k++) show_log("five", k);
    CHECK(well);
    CHECK(log_has("five", 1, "the mean of 5 of 5 sites"));
}

/* A file that is wrong when it is read again ends nobody. */
static void a_wrong_file_is_left_alone(void) {
    NEEDS_ZMQ();
    federation f = FED(3, TRIANGLE);
    put_federation(&f, "f.conf");
    start_sites(3, "f.conf", "wrong");
    CHECK(says("wrong", 0, "epoch 10/60"));
    put("f.conf", "federation\n");
    signal_site(0, SIGHUP);
    CHECK(end_well(3, "wrong"));
    CHECK(log_has("wrong", 0, "going on with the file as it was"));
}

int main(int argc, char **argv) {
    if (argc > 1) story_seed = (uint64_t)strtoull(argv[1], NULL, 10);
    if (!enter_folder() || !prepare_sites()) return 1;
    TEST(a_killed_site_comes_back_in_a_triangle);
    TEST(a_killed_site_comes_back_in_a_chain);
    TEST(a_killed_site_comes_back_in_a_ring);
    TEST(two_killed_at_once_come_back);
    TEST(all_that_were_killed_go_on_where_they_were);
    TEST(a_site_that_was_stopped_joins_again);
    TEST(a_site_killed_at_the_end_has_the_same_consensus_model);
    TEST(a_site_that_never_comes_back_is_waited_for_and_left_out);
    TEST(a_finished_site_is_not_trained_again);
    TEST(a_fifth_site_joins_when_the_file_has_it);
    TEST(a_wrong_file_is_left_alone);
    remove_tree(".");
    leave_folder();
    return test_report();
}
