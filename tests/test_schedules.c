/* Graphs that change: every step conserves what agents hold, a period reaches everyone, and the
 * finite-time ones end in the exact average. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "mixing.h"
#include "topology/schedule.h"
#include "util/file.h"

static const uint64_t seeds[] = {5, 9};

static ct_status create(const char *spec, int n, ct_schedule *out) {
    return ct_schedule_create(spec, n, seeds, 1, out);
}

static int max_degree(const ct_phase *p) {
    int most = 0;
    for (int i = 0; i < p->sources.n; i++)
        if (ct_topology_degree(&p->sources, i) > most) most = ct_topology_degree(&p->sources, i);
    return most;
}

/* Sources and weights tell the same; every step passes its check. */
static void check_steps(ct_schedule *s) {
    for (long t = 0; t < (s->period > 0 ? s->period : 40); t++) {
        const ct_phase *p = ct_schedule_at(s, t);
        bool is_balanced = false;
        CHECK_OK(ct_phase_check(p, &is_balanced));
        CHECK(is_balanced || !s->is_balanced);
        CHECK(p->w.begin[s->n] == p->sources.begin[s->n] + s->n);
        for (int i = 0; i < s->n; i++)
            for (int e = p->sources.begin[i]; e < p->sources.begin[i + 1]; e++) {
                int j = p->sources.neighbour[e];
                CHECK(j != i && ct_sparse_get(&p->w, i, j) > 0);
                CHECK(e == p->sources.begin[i] || p->sources.neighbour[e - 1] < j);
                CHECK(i / s->n_agents == j / s->n_agents);
            }
    }
}

static void every_step_of_every_schedule_is_doubly_stochastic(void) {
    static const char *const specs[] = {
        "one-peer-exponential", "matchings", "base", "base:3", "base:4", "epidemic"};
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        for (int n = 1; n <= 33; n++) {
            ct_schedule s = {0};
            REQUIRE_OK(create(specs[k], n, &s));
            CHECK(s.is_balanced && s.n == n);
            check_steps(&s);
            ct_schedule_free(&s);
        }
    }
}

/* 1, 1, 0, 1, ...: which of the first iterations gossip */
static void check_rounds(const char *text, long n_iterations, const char *expected) {
    ct_local_steps s = {0};
    long n_rounds = 0;
    REQUIRE_OK(ct_local_steps_parse(text, &s));
    s.n_iterations = n_iterations;
    for (long k = 0; expected[k] != '\0'; k++) {
        bool gossips = expected[k] == '1';
        CHECK(ct_local_steps_is_local(&s, k) == !gossips);
        CHECK(ct_local_steps_rounds(&s, k) == n_rounds);
        n_rounds += gossips;
    }
}

static void every_hth_iteration_gossips_and_h_may_grow(void) {
    check_rounds("1", 6, "11111111");
    check_rounds("3", 7, "001001001");
    check_rounds("1:4", 12, "1111010100010001"); /* 4 iterations a stage; the last one stays */
    check_rounds("2:3", 10, "0101000100100");
    static const char *const bad[] = {"0", "", "x", "4:2", "1:", ":2", "1:2:4", "2000000"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ct_local_steps s;
        CHECK(ct_local_steps_parse(bad[k], &s) == CT_INVAL);
    }
}

/* A fixed graph's rounds, and a schedule's, which go through all of its steps. */
static void iterations_between_rounds_have_no_edges(void) {
    ct_schedule s = {0};
    ct_local_steps steps = {2, 2, 100};
    REQUIRE_OK(create("one-peer-exponential", 8, &s));
    REQUIRE_OK(ct_schedule_set_local_steps(&s, &steps));
    for (long k = 0; k < 12; k++) {
        const ct_phase *p = ct_schedule_at(&s, k);
        CHECK(k % 2 == 1 ? p == &s.phases[k / 2 % 3] : p == &s.quiet);
    }
    CHECK(s.quiet.sources.begin[8] == 0 && s.quiet.w.begin[8] == 8);
    for (int i = 0; i < 8; i++) CHECK(ct_sparse_get(&s.quiet.w, i, i) == 1);
    ct_schedule_free(&s);
}

/* Everyone sends to s others, of which the receivers take the plain mean. */
static void epidemics_reach_as_many_as_they_say(void) {
    static const char *const specs[] = {"epidemic:3", "epidemic-local:3"};
    for (int k = 0; k < 2; k++) {
        ct_schedule s = {0};
        double shrunk = 0;
        int n_uneven = 0;
        REQUIRE_OK(ct_schedule_create(specs[k], 12, seeds, 2, &s));
        CHECK(s.is_balanced == (k == 0));
        for (long t = 0; t < 500; t++) {
            const ct_phase *p = ct_schedule_at(&s, t);
            int n_sent[24] = {0};
            double square = 0, mean = 0;
            for (int i = 0; i < 24; i++) {
                int n = ct_topology_degree(&p->sources, i);
                n_uneven += n != 3;
                for (int e = p->w.begin[i]; e < p->w.begin[i + 1]; e++) {
                    int j = p->w.column[e];
                    CHECK(i / 12 == j / 12 && p->w.value[e] == 1.0 / (1 + n));
                    CHECK(e == p->w.begin[i] || p->w.column[e - 1] < j);
                    n_sent[j] += i != j;
                }
                CHECK(p->w.begin[i + 1] - p->w.begin[i] == n + 1);
            }
            for (int j = 0; j < 24; j++) CHECK(n_sent[j] == 3);
            for (int i = 0; i < 12; i++) mean += ct_sparse_get(&p->w, i, 0) / 12;
            for (int i = 0; i < 12; i++) square += pow(ct_sparse_get(&p->w, i, 0) - mean, 2);
            shrunk +=
                square / (1 - 1.0 / 12) / 500; /* of what agent 0 has and the others have not */
        }
        CHECK((n_uneven == 0) == (k == 0));
        if (k == 0) CHECK_NEAR(shrunk, (12.0 / 4 - 1) / 11, 1e-9); /* the paper's, s = 3 of 12 */
        if (k == 1) CHECK_NEAR(shrunk, (12.0 / 4 - 1) / 11, 0.06);
        ct_schedule_free(&s);
    }
    ct_schedule s = {0};
    CHECK(create("epidemic:12", 12, &s) == CT_INVAL && create("epidemic:0", 12, &s) == CT_INVAL);
}

static void a_base_graph_of_thousands_averages_exactly_too(void) {
    static const struct {
        const char *spec;
        int n, period;
    } graphs[] = {{"base", 4096, 12}, {"base:4", 4096, 6}, {"base", 1000, 0}, {"base:3", 2187, 7}};
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        double left = 1;
        ct_schedule s = {0};
        REQUIRE_OK(create(graphs[k].spec, graphs[k].n, &s));
        CHECK(graphs[k].period == 0 || s.period == graphs[k].period);
        CHECK_OK(ct_schedule_contraction(&s, &left));
        CHECK_NEAR(left, 0, 1e-12);
        ct_schedule_free(&s);
    }
}

static void a_base_graph_averages_exactly_with_few_neighbours(void) {
    for (int base = 2; base <= 5; base++) {
        for (int n = 1; n <= 70; n++) {
            char spec[16];
            double left = 1;
            ct_schedule s = {0};
            snprintf(spec, sizeof spec, "base:%d", base);
            REQUIRE_OK(create(spec, n, &s));
            CHECK_OK(ct_schedule_contraction(&s, &left));
            CHECK_NEAR(left, 0, 1e-12);
            for (int t = 0; t < s.period; t++) CHECK(max_degree(&s.phases[t]) <= base - 1);
            /* the paper's bound: 2 log_(k+1)(n) + 2 steps */
            CHECK(s.period <= 2 * log(n) / log(base) + 2);
            ct_schedule_free(&s);
        }
    }
}

static void one_peer_exponential_averages_powers_of_two_exactly(void) {
    for (int n = 2; n <= 64; n++) {
        double left = 0;
        ct_schedule s = {0};
        REQUIRE_OK(create("one-peer-exponential", n, &s));
        CHECK_OK(ct_schedule_contraction(&s, &left));
        if ((n & (n - 1)) == 0)
            CHECK_NEAR(left, 0, 1e-12);
        else
            CHECK(left > 1e-6 && left < 1);
        for (int t = 0; t < s.period; t++) CHECK(max_degree(&s.phases[t]) == 1);
        ct_schedule_free(&s);
    }
}

static void one_peer_exponential_sends_one_way(void) {
    ct_schedule s = {0};
    REQUIRE_OK(create("one-peer-exponential", 6, &s));
    CHECK(s.period == 3);
    const ct_phase *p = ct_schedule_at(&s, 4); /* the second step again: hop 2 */
    CHECK_NEAR(ct_sparse_get(&p->w, 5, 3), 0.5, 0);
    CHECK_NEAR(ct_sparse_get(&p->w, 3, 5), 0, 0);
    CHECK_NEAR(ct_sparse_get(&p->w, 1, 5), 0.5, 0);
    ct_schedule_free(&s);
}

static void matchings_are_pairs_of_the_seed_and_iteration(void) {
    ct_schedule s = {0}, again = {0};
    REQUIRE_OK(ct_schedule_create("matchings", 8, seeds, 2, &s));
    REQUIRE_OK(ct_schedule_create("matchings", 8, seeds + 1, 1, &again));
    CHECK(s.period == 0 && s.n == 16);
    int n_moved = 0, n_differ = 0, last = -1;
    for (long t = 0; t < 20; t++) {
        const ct_phase *p = ct_schedule_at(&s, t), *q = ct_schedule_at(&again, t);
        for (int i = 0; i < 16; i++) {
            CHECK(ct_topology_degree(&p->sources, i) == 1);
            int partner = p->sources.neighbour[i];
            CHECK(p->sources.neighbour[partner] == i);
            /* the second seed's agents do what they would do alone */
            if (i >= 8) CHECK(q->sources.neighbour[i - 8] == partner - 8);
            if (i < 8) n_differ += p->sources.neighbour[i + 8] - 8 != partner;
        }
        n_moved += p->sources.neighbour[0] != last;
        last = p->sources.neighbour[0];
    }
    CHECK(n_moved > 10 && n_differ > 40);
    ct_schedule_free(&s);
    ct_schedule_free(&again);
}

static void seeds_side_by_side_do_not_meet(void) {
    static const char *const specs[] = {"one-peer-exponential", "matchings", "base:3"};
    for (int k = 0; k < 3; k++) {
        ct_schedule s = {0};
        REQUIRE_OK(ct_schedule_create(specs[k], 7, seeds, 2, &s));
        check_steps(&s);
        ct_schedule_free(&s);
    }
}

/* ---- files ---- */

static char path[] = "/tmp/crosstalk-schedule-XXXXXX";
static char spec[64];

static void write_file(const char *text) {
    CHECK_OK(ct_file_write(path, text, strlen(text)));
}

static void a_file_gives_two_way_edges_metropolis_weights(void) {
    ct_schedule s = {0};
    write_file("# two steps\nstep\n0 1\n1,2\nstep\n2 3 # again\n");
    REQUIRE_OK(create(spec, 4, &s));
    CHECK(s.period == 2 && s.is_balanced);
    CHECK_NEAR(ct_sparse_get(&s.phases[0].w, 0, 1), 1.0 / 3, 1e-15);
    CHECK_NEAR(ct_sparse_get(&s.phases[0].w, 1, 1), 1.0 / 3, 1e-15);
    CHECK_NEAR(ct_sparse_get(&s.phases[1].w, 3, 2), 0.5, 0);
    CHECK_NEAR(ct_sparse_get(&s.phases[1].w, 0, 0), 1, 0);
    ct_schedule_free(&s);
}

static void a_file_gives_one_way_edges_equal_parts_of_the_sender(void) {
    ct_schedule s = {0};
    write_file("step\n0 > 1\n0 > 2\n1 > 0\n2 > 1\n");
    REQUIRE_OK(create(spec, 3, &s));
    CHECK(s.period == 1 && !s.is_balanced);
    CHECK_NEAR(ct_sparse_get(&s.phases[0].w, 1, 0), 1.0 / 3, 1e-15);
    CHECK_NEAR(ct_sparse_get(&s.phases[0].w, 0, 0), 1.0 / 3, 1e-15);
    CHECK_NEAR(ct_sparse_get(&s.phases[0].w, 1, 2), 0.5, 0);
    check_steps(&s);
    ct_schedule_free(&s);
}

static void a_file_may_give_the_weights(void) {
    ct_schedule s = {0};
    write_file("step\n0 > 1 0.25\n1 > 2 0.25\n2 > 0 0.25\n");
    REQUIRE_OK(create(spec, 3, &s));
    CHECK(s.is_balanced);
    CHECK_NEAR(ct_sparse_get(&s.phases[0].w, 1, 0), 0.25, 0);
    CHECK_NEAR(ct_sparse_get(&s.phases[0].w, 1, 1), 0.75, 0);
    ct_schedule_free(&s);
}

static void check_refused(const char *text, ct_status status, const char *words) {
    ct_schedule s = {0};
    write_file(text);
    CHECK_FAILS(create(spec, 4, &s), status, words);
}

static void a_bad_file_is_refused_with_its_line(void) {
    check_refused("", CT_IO, "no step");
    check_refused("0 1\n", CT_IO, "line 1");
    check_refused("step\n0 1\n0 x\n", CT_IO, "line 3");
    check_refused("step\n0 4\n", CT_IO, "agent 4");
    check_refused("step\n0 4294967297\n", CT_IO, "line 2"); /* 1, where an int goes round */
    check_refused("step\n4294967297 > 0\n", CT_IO, "line 2");
    check_refused("step\n2 2\n", CT_IO, "itself");
    check_refused("step\n0 1 1.5\n", CT_IO, "weight");
    check_refused("step\n0 1 0.5\n1 2\n", CT_IO, "some of its weights");
    check_refused("step\n0 1\n1 0\n2 3\n1 2\n", CT_INVAL, "twice");
    check_refused("step\n0 1\nstep\n2 3\n", CT_INVAL, "never reaches");
    check_refused("step\n0 > 1\n1 > 2\n2 > 3\n", CT_INVAL, "never reaches agent 0");
    check_refused("step\n0 > 1 0.6\n0 > 2 0.6\n1 > 0 0.5\n2 > 3 0.5\n3 > 0 0.5\n", CT_INVAL,
                  "more than it has");
}

/* Each step keeps a row for every agent: a short file must not become a hundred gigabytes. */
static void steps_times_agents_are_limited(void) {
    char text[1025 * 5 + 1] = "";
    ct_schedule s = {0};
    for (int k = 0; k < 1025; k++) memcpy(text + 5 * k, "step\n", 6);
    write_file(text);
    CHECK_FAILS(create(spec, 65536, &s), CT_IO, "line 1025: more than the 1024 steps");
}

static void unknown_schedules_and_arguments_are_refused(void) {
    ct_schedule s = {0};
    CHECK(!ct_schedule_is_known("ring"));
    CHECK(ct_schedule_is_known("base:3") && ct_schedule_is_known("matchings"));
    CHECK_FAILS(create("base:1", 4, &s), CT_INVAL, "k+1");
    CHECK_FAILS(create("base:x", 4, &s), CT_INVAL, "k+1");
    CHECK_FAILS(create("matchings:2", 4, &s), CT_INVAL, "no argument");
    CHECK_FAILS(create("schedule", 4, &s), CT_INVAL, "path");
    CHECK_FAILS(create("schedule:/nowhere/at/all", 4, &s), CT_IO, "nowhere");
}

static void the_union_of_a_schedule_has_a_doubly_stochastic_mean(void) {
    static const char *const specs[] = {"one-peer-exponential", "matchings", "base:3"};
    for (int k = 0; k < 3; k++) {
        ct_schedule s = {0};
        ct_topology graph = {0};
        ct_sparse w = {0};
        REQUIRE_OK(ct_schedule_create(specs[k], 10, seeds, 2, &s));
        CHECK_OK(ct_schedule_union(&s, 1, &graph, &w));
        CHECK(graph.n == 10);
        CHECK_OK(mixing_check(&w, &graph));
        ct_topology_free(&graph);
        ct_sparse_free(&w);
        ct_schedule_free(&s);
    }
}

int main(void) {
    int file = mkstemp(path);
    if (file < 0) return 1;
    close(file);
    snprintf(spec, sizeof spec, "schedule:%s", path);
    TEST(every_step_of_every_schedule_is_doubly_stochastic);
    TEST(every_hth_iteration_gossips_and_h_may_grow);
    TEST(iterations_between_rounds_have_no_edges);
    TEST(epidemics_reach_as_many_as_they_say);
    TEST(a_base_graph_averages_exactly_with_few_neighbours);
    TEST(one_peer_exponential_averages_powers_of_two_exactly);
    TEST(one_peer_exponential_sends_one_way);
    TEST(a_base_graph_of_thousands_averages_exactly_too);
    TEST(matchings_are_pairs_of_the_seed_and_iteration);
    TEST(seeds_side_by_side_do_not_meet);
    TEST(a_file_gives_two_way_edges_metropolis_weights);
    TEST(a_file_gives_one_way_edges_equal_parts_of_the_sender);
    TEST(a_file_may_give_the_weights);
    TEST(a_bad_file_is_refused_with_its_line);
    TEST(steps_times_agents_are_limited);
    TEST(unknown_schedules_and_arguments_are_refused);
    TEST(the_union_of_a_schedule_has_a_doubly_stochastic_mean);
    remove(path);
    return test_report();
}
