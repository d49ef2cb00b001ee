/* The related work's methods against an independent float64 computation (tests/oracle/related.py),
 * and what each promises: its invariant, its bytes, no memory taken in a step. */
#include "oracle.h"

#include <unistd.h>

#include "algo/dual.h"
#include "algo/sgp.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/rng.h"

/* What test_algorithms, test_recent and test_async check already. */
static bool is_elsewhere(const char *name) {
    static const char *const names[] = {"dsgd",  "dsgdm",  "qg-dsgdm", "relaysgd", "edm",
                                        "motef", "adpsgd", "swift",    "def-kt"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(name, names[k]) == 0) return true;
    return false;
}

static void find_cases(void *context, const char *name, const char *text) {
    (void)context, (void)text;
    bool with_ce = is_elsewhere(name), with_ccl = with_ce;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "--algorithm %s ", name);
    for (int i = 0; i < n_fixtures; i++) {
        if (strstr(fixtures[i].options, wanted) == NULL) continue;
        if (strstr(fixtures[i].options, "--loss ccl") != NULL)
            with_ccl = true;
        else
            with_ce = true;
    }
    if (!with_ce || !with_ccl) printf("    %s is not computed with both losses\n", name);
    CHECK(with_ce && with_ccl);
}

/* Another form of a method has a case as well. */
static void find_variants(void *context, const char *name, const char *text) {
    const ct_algo *algo;
    (void)context, (void)text;
    REQUIRE_OK(ct_algo_find(name, &algo));
    for (int k = 0; k < CT_MAX_VARIANTS && algo->variants[k] != NULL; k++) {
        bool found = is_elsewhere(name);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "--algorithm %s --variant %s ", name, algo->variants[k]);
        for (int i = 0; i < n_fixtures; i++)
            found = found || strstr(fixtures[i].options, wanted) != NULL;
        if (!found) printf("    no case has %s\n", wanted);
        CHECK(found);
    }
}

static void every_algorithm_has_an_independent_computation_with_ce_and_ccl(void) {
    read_fixtures("related");
    REQUIRE(n_fixtures > 0);
    ct_algo_each(find_cases, NULL);
    ct_algo_each(find_variants, NULL);
}

static void five_steps_of_every_case_agree_with_the_oracle_on_ref(void) {
    /* parameters are rounded to float after every step, trackers too: measured 2e-6 */
    for (int i = 0; i < n_fixtures; i++) check_case("ref", &fixtures[i], 2e-5);
}

static void five_steps_of_every_case_agree_with_the_oracle_on_cpu(void) {
    for (int i = 0; i < n_fixtures; i++) check_case("cpu", &fixtures[i], 2e-4);
}

/* A GPU's own kernels for smoothing, adaptive weights and parts of a batch. */
static void five_steps_of_every_case_agree_with_the_oracle_on_cuda(void) {
    ct_backend *backend = NULL;
    ct_backend_options options = {.n_threads = 1};
    if (ct_backend_create("cuda", &options, &backend) != CT_OK) {
        ct_clear_message();
        SKIP("no GPU works here");
    }
    ct_backend_free(&backend);
    for (int i = 0; i < n_fixtures; i++) check_case("cuda", &fixtures[i], 2e-4);
}

/* ---- invariants ---- */

#define APART "--init init-agents.safetensors --weight-decay 0.01 --lr 0.1 --loss ce --batch-size 9"

/* After every step the mean of a buffer over the agents is that of the gradients (times `factor`),
 * to the rounding of float sums. */
static void check_mean(const char *options, const char *buffer, double factor) {
    static ct_run run;
    REQUIRE_OK(run_create("ref", RUN_ORACLE " " APART, options, &run));
    const ct_bank *y = run_buffer(&run, buffer);
    REQUIRE(y != NULL);
    for (long t = 0; t < 6; t++) {
        run_steps(&run, t, 1);
        for (size_t k = 0; k < run.graph.n_weights; k += 13)
            CHECK_NEAR(column_mean(y, k), factor * column_mean(&run.agents.g, k), 1e-6);
    }
    ct_run_clear(&run);
}

static void gradient_trackers_have_the_mean_of_the_gradients(void) {
    check_mean("--algorithm gt --topology ring", "tracker", 1);
    check_mean("--algorithm gt --topology star --gamma 0.7", "tracker", 1);
    check_mean("--algorithm gt --variant atc --topology star --gamma 0.7", "tracker", 1);
}

static void momentum_corrections_cancel_over_the_agents(void) {
    check_mean("--algorithm mt --topology ring", "correction", 0);
    check_mean("--algorithm mt --topology chain --gamma 0.7", "correction", 0);
    check_mean("--algorithm mt --variant tmlr23 --topology star --gamma 0.7", "correction", 0);
}

/* From one start, all agents of tmlr23 take the same first step. */
static void the_first_step_of_tmlr23_is_along_the_mean_gradient(void) {
    static ct_run run;
    static float start[RUN_MAX_COLUMNS], got[RUN_MAX_COLUMNS];
    REQUIRE_OK(run_create("ref", RUN_ORACLE " --weight-decay 0.01 --lr 0.1 --batch-size 9",
                          "--algorithm mt --variant tmlr23 --topology chain", &run));
    size_t n = run.graph.n_weights;
    CHECK_OK(ct_bank_read(&run.agents.x, 0, 0, n, start));
    run_steps(&run, 0, 1);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, got));
        for (size_t k = 0; k < n; k += 13)
            CHECK_NEAR(got[k], (double)start[k] - 0.1 * column_mean(&run.agents.g, k), 1e-6);
    }
    ct_run_clear(&run);
    CHECK_FAILS(run_create("ref", RUN_ORACLE " " APART,
                           "--algorithm mt --variant tmlr23 --fault drop=0.1", &run),
                CT_INVAL, "none of them may be missing");
}

/* Without momentum an agent moves by -eta y, and the mean of y is the mean of g. */
static void global_updates_move_the_mean_model_by_the_mean_gradient(void) {
    static ct_run run;
    static double before[RUN_MAX_COLUMNS];
    REQUIRE_OK(run_create("ref", RUN_ORACLE " " APART,
                          "--algorithm gut --gut-mu 0.6 --momentum 0 --topology star", &run));
    for (long t = 0; t < 6; t++) {
        size_t n = run.graph.n_weights;
        for (size_t k = 0; k < n; k += 13) before[k] = column_mean(&run.agents.x, k);
        run_steps(&run, t, 1);
        for (size_t k = 0; k < n; k += 13)
            CHECK_NEAR(column_mean(&run.agents.x, k) - before[k],
                       -0.1 * column_mean(&run.agents.g, k), 1e-6);
    }
    ct_run_clear(&run);
}

/* 0.3 diverges with neurips23 and momentum. */
static void the_authors_form_has_the_authors_weight_of_updates(void) {
    static const struct {
        const char *options;
        double mu;
    } known[] = {{"--algorithm gut", 0.3},
                 {"--algorithm gut --variant neurips23", 0.01},
                 {"--algorithm gut --variant neurips23 --momentum 0", 0.9},
                 {"--algorithm gut --variant neurips23 --gut-mu 0.3", 0.3}};
    static ct_run run;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        REQUIRE_OK(run_create("cpu", RUN_PLAIN, known[k].options, &run));
        CHECK_NEAR(run.config.gut_mu, known[k].mu, 0);
        ct_run_clear(&run);
    }
}

static void all_reduced_agents_hold_one_model(void) {
    static ct_run run;
    static float first[RUN_MAX_COLUMNS], other[RUN_MAX_COLUMNS];
    REQUIRE_OK(run_create("cpu", RUN_ORACLE " " APART, "--algorithm allreduce", &run));
    run_steps(&run, 0, 4);
    size_t n = run.graph.n_weights;
    CHECK_OK(ct_bank_read(&run.agents.x, 0, 0, n, first));
    for (int i = 1; i < 5; i++) {
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, other));
        CHECK(memcmp(first, other, n * sizeof *first) == 0);
    }
    ct_run_clear(&run);
}

static void d2_mixes_with_half_of_w_where_the_spectrum_asks_for_it(void) {
    static ct_run run;
    float before[4], after[4];
    /* a ring of 4 with weights 1/3: its smallest eigenvalue is -1/3 */
    REQUIRE_OK(run_create("ref", RUN_PLAIN " --agents 4 --topology ring --weight-decay 0",
                          "--algorithm d2 --lr 1e-12", &run));
    for (int i = 0; i < 4; i++) {
        float value = i == 0 ? 1.0f : 0.0f;
        CHECK_OK(ct_bank_write(&run.agents.x, i, 0, 1, &value));
        before[i] = value;
    }
    run_steps(&run, 0, 1);
    for (int i = 0; i < 4; i++) CHECK_OK(ct_bank_read(&run.agents.x, i, 0, 1, &after[i]));
    CHECK_NEAR(after[0], before[0] / 2 + before[0] / 6, 1e-6);
    CHECK_NEAR(after[1], before[0] / 6, 1e-6);
    CHECK_NEAR(after[2], 0, 1e-6);
    CHECK_NEAR(after[3], before[0] / 6, 1e-6);
    ct_run_clear(&run);
}

#define DIRECTED "--topology schedule:related/directed.txt"

static void pushed_weights_sum_to_the_number_of_agents(void) {
    static ct_run run;
    REQUIRE_OK(run_create("ref", RUN_ORACLE " " APART, "--algorithm sgp " DIRECTED, &run));
    bool some_differ = false;
    for (long t = 0; t < 12; t++) {
        run_steps(&run, t, 1);
        const double *w = ct_sgp_weights(run.agents.state);
        double sum = 0;
        for (int i = 0; i < 5; i++) {
            CHECK(w[i] > 0);
            sum += w[i];
            some_differ = some_differ || fabs(w[i] - 1) > 0.05;
        }
        CHECK_NEAR(sum, 5, 1e-12);
    }
    CHECK(some_differ);
    ct_run_clear(&run);
}

/* Without gradients everyone ends at the mean of the starts, on a graph that is not balanced. */
static void pushed_models_end_at_the_exact_average(void) {
    static ct_run run;
    static double mean[RUN_MAX_COLUMNS];
    REQUIRE_OK(run_create("ref", RUN_ORACLE " " APART,
                          "--algorithm sgp --lr 1e-12 --weight-decay 0 " DIRECTED, &run));
    size_t n = run.graph.n_weights;
    for (size_t k = 0; k < n; k++) mean[k] = column_mean(&run.agents.x, k);
    run_steps(&run, 0, 150);
    for (int i = 0; i < 5; i++)
        for (size_t k = 0; k < n; k += 13) {
            float value = 0;
            CHECK_OK(ct_bank_read(&run.agents.x, i, k, 1, &value));
            CHECK_NEAR(value, mean[k], 1e-5);
        }
    ct_run_clear(&run);
}

/* A run that begins in the middle has the weights of one that was there all the time. */
static void pushed_weights_follow_from_the_iteration(void) {
    static ct_run run;
    double weights[5];
    REQUIRE_OK(run_create("ref", RUN_ORACLE " " APART, "--algorithm sgp " DIRECTED, &run));
    run_steps(&run, 0, 8);
    memcpy(weights, ct_sgp_weights(run.agents.state), sizeof weights);
    ct_run_clear(&run);
    REQUIRE_OK(run_create("ref", RUN_ORACLE " " APART, "--algorithm sgp " DIRECTED, &run));
    run_steps(&run, 7, 1);
    for (int i = 0; i < 5; i++) CHECK_NEAR(ct_sgp_weights(run.agents.state)[i], weights[i], 0);
    ct_run_clear(&run);
}

static void methods_refuse_graphs_they_are_wrong_on(void) {
    static ct_run run;
    CHECK_FAILS(run_create("ref", RUN_ORACLE " " APART, "--algorithm dsgdm " DIRECTED, &run),
                CT_INVAL, "sgp takes any");
    CHECK_FAILS(
        run_create("ref", RUN_ORACLE " " APART, "--algorithm relaysgd --topology base", &run),
        CT_INVAL, "a graph that stays");
    CHECK_FAILS(run_create("ref", RUN_ORACLE " " APART,
                           "--algorithm dsgdm --topology base --weights uniform", &run),
                CT_INVAL, "its own weights");
}

/* ---- relays along two trees ---- */

enum { N_RELAYS = 8 };

/* Steps without gradients from starts that every agent keeps: the largest distance of what was
 * relayed from the mean of the starts. */
static double relay_along_two_trees(long n_steps) {
    static ct_run run;
    static float start[N_RELAYS][RUN_MAX_COLUMNS], got[RUN_MAX_COLUMNS];
    static double mean[RUN_MAX_COLUMNS];
    double worst = 0;
    if (run_create("ref", RUN_PLAIN " --agents 8 --topology double-binary-tree --lr 1e-12",
                   "--algorithm relaysgd --momentum 0 --weight-decay 0", &run) != CT_OK)
        return NAN;
    size_t n = run.graph.n_weights;
    for (int i = 0; i < N_RELAYS; i++)
        for (size_t k = 0; k < n; k++) start[i][k] = (float)((i * 7 + (int)k * 3) % 11);
    for (size_t k = 0; k < n; k++) {
        mean[k] = 0;
        for (int i = 0; i < N_RELAYS; i++) mean[k] += (double)start[i][k] / N_RELAYS;
    }
    for (long t = 0; t < n_steps; t++) {
        for (int i = 0; i < N_RELAYS; i++)
            CHECK_OK(ct_bank_write(&run.agents.x, i, 0, n, start[i]));
        run_steps(&run, t, 1);
    }
    for (int i = 0; i < N_RELAYS; i++) {
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, got));
        for (size_t k = 0; k < n; k++) worst = fmax(worst, fabs((double)got[k] - mean[k]));
    }
    ct_run_clear(&run);
    return worst;
}

static int tree_diameter(int n, bool is_second) {
    ct_topology tree = {0};
    ct_sparse w = {0};
    ct_topology_facts facts = {0};
    CHECK_OK(ct_topology_binary_tree(n, is_second, &tree));
    CHECK_OK(ct_mixing_create(&tree, "auto", &w));
    CHECK_OK(ct_topology_measure(&tree, &w, &facts));
    CHECK(facts.n_edges == n - 1 && facts.max_degree <= 3);
    ct_topology_free(&tree);
    ct_sparse_free(&w);
    return facts.diameter;
}

static void both_trees_relay_their_half_in_as_many_steps_as_they_are_wide(void) {
    int first = tree_diameter(N_RELAYS, false), second = tree_diameter(N_RELAYS, true);
    CHECK(first == second && first <= 5);
    CHECK(relay_along_two_trees(first - 1) > 1e-2);
    CHECK(relay_along_two_trees(first) < 1e-5);
    CHECK(relay_along_two_trees(first + 3) < 1e-5);
}

static void who_relays_in_one_tree_is_a_leaf_of_the_other(void) {
    for (int n = 2; n <= 64; n++) {
        ct_topology one = {0}, two = {0};
        REQUIRE_OK(ct_topology_binary_tree(n, false, &one));
        REQUIRE_OK(ct_topology_binary_tree(n, true, &two));
        int n_busy_twice = 0;
        for (int i = 0; i < n; i++)
            n_busy_twice += ct_topology_degree(&one, i) > 1 && ct_topology_degree(&two, i) > 1;
        CHECK(n_busy_twice <= 1);
        ct_topology_free(&one);
        ct_topology_free(&two);
    }
}

/* Each tree edge carries half a model both ways: in all, as much as one tree. */
static void two_trees_send_as_much_as_one(void) {
    static ct_run run;
    double sent = 0;
    REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 8 --topology double-binary-tree",
                          "--algorithm relaysgd", &run));
    run_steps(&run, 0, 1);
    for (int i = 0; i < N_RELAYS; i++)
        sent += (double)ct_transport_sent(run.transport, i, CT_TRAFFIC_PARAMETERS);
    CHECK_NEAR(sent, 2.0 * (N_RELAYS - 1) * 4 * (double)run.graph.n_weights, 0);
    ct_run_clear(&run);
}

/* ---- cga's quadratic program ---- */

static void a_gradient_that_hurts_nobody_is_left_alone(void) {
    /* three vectors with non-negative products */
    const double gram[9] = {2, 1, 0.5, 1, 3, 0, 0.5, 0, 1};
    double v[3];
    ct_dual_solve(gram, gram, 3, 0, v);
    for (int r = 0; r < 3; r++) CHECK_NEAR(v[r], 0, 0);
}

static void a_gradient_that_hurts_one_is_moved_to_its_plane(void) {
    /* g = (1, 0), h = (-1, 1): z = g + v h is orthogonal to h, so v = 1/2 */
    const double gram[4] = {1, -1, -1, 2};
    double v[2];
    ct_dual_solve(gram, gram, 2, 0, v);
    CHECK_NEAR(v[0], 0, 1e-12);
    CHECK_NEAR(v[1], 0.5, 1e-12);
    ct_dual_solve(gram, gram, 2, 0.7, v); /* at least the margin of everyone */
    CHECK_NEAR(v[0], 0.7, 1e-12);
    CHECK_NEAR(v[1], 0.85, 1e-12);
}

/* v >= 0, K v + c >= 0, v^T (K v + c) = 0, on random rows, also more rows than columns. */
static void the_dual_satisfies_its_conditions(void) {
    enum { N = 5 };
    for (uint32_t trial = 0; trial < 200; trial++) {
        int n_columns = 2 + (int)(trial % 7);
        double m[N][8], gram[N * N], v[N];
        ct_rng rng;
        ct_rng_init(&rng, 11, CT_RNG_TEST, 0, 0, trial);
        for (int r = 0; r < N; r++)
            for (int k = 0; k < n_columns; k++) m[r][k] = ct_rng_normal(&rng);
        for (int r = 0; r < N * N; r++) {
            gram[r] = 0;
            for (int k = 0; k < n_columns; k++) gram[r] += m[r / N][k] * m[r % N][k];
        }
        ct_dual_solve(gram, gram, N, 0, v);
        for (int r = 0; r < N; r++) {
            double slope = gram[r * N];
            for (int s = 0; s < N; s++) slope += gram[r * N + s] * v[s];
            CHECK(v[r] >= 0 && slope > -1e-6);
            CHECK_NEAR(v[r] * slope, 0, 1e-6);
        }
    }
}

/* ---- several seeds ---- */

/* Seed 5's agents in a run of seeds 3 and 5 have the bits of a run of seed 5. */
static void check_seeds(const char *options) {
    static ct_run run;
    static float together[4][RUN_MAX_COLUMNS], alone[RUN_MAX_COLUMNS];
    bool is_same = true;
    REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 4 --seeds 3,5", options, &run));
    size_t n = run.graph.n_weights;
    run_steps(&run, 0, 4);
    for (int i = 0; i < 4; i++) CHECK_OK(ct_bank_read(&run.agents.x, 4 + i, 0, n, together[i]));
    ct_run_clear(&run);
    REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 4 --seed 5", options, &run));
    run_steps(&run, 0, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, alone));
        is_same = is_same && memcmp(alone, together[i], n * sizeof *alone) == 0;
    }
    if (!is_same) printf("    with %s\n", options);
    CHECK(is_same);
    ct_run_clear(&run);
}

static void seeds_side_by_side_train_as_they_would_alone(void) {
    static const char *const options[] = {
        "--algorithm gt",
        "--algorithm gt --variant atc",
        "--algorithm mt --loss ccl",
        "--algorithm mt --variant tmlr23",
        "--algorithm d2",
        "--algorithm gut",
        "--algorithm gut --variant neurips23 --gut-mu 0.08",
        "--algorithm allreduce",
        "--algorithm cga",
        "--algorithm cga --variant icml21 --cga-margin 0.5 --topology star",
        "--algorithm ngc --loss ccl",
        "--algorithm ngc --variant weighted --topology star",
        "--algorithm sgp --topology matchings",
        "--algorithm sgp --variant icml19 --topology matchings",
        "--algorithm qg-dsgdm --topology matchings",
        "--algorithm dsgdm --topology base:3 --loss ccl",
        "--algorithm dsgdm --loss ccl --ccl-adaptive 0.05",
        "--algorithm dsgdm --loss ccl --ccl-neighbours 1 --clip-norm 0.5",
        "--algorithm relaysgd --topology double-binary-tree"};
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) check_seeds(options[k]);
}

/* ---- the ledger ---- */

/* Rows and class sums that agent 1 of a ring of 4 sends in an iteration. */
static void check_bytes(const char *options, double n_models, double n_sums) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 4 --topology ring", options, &run));
    run_steps(&run, 0, 3);
    double row = 4.0 * (double)run.graph.n_weights;
    double sums = 4.0 * run.graph.n_classes * (double)(ct_graph_n_features(&run.graph) + 1);
    double sent = (double)ct_transport_sent(run.transport, 1, CT_TRAFFIC_PARAMETERS) / 3;
    CHECK_NEAR(sent / row, n_models, 1e-2); /* sgp's weights are 4 bytes more */
    sent = (double)ct_transport_sent(run.transport, 1, CT_TRAFFIC_CLASS_SUMS) / 3;
    CHECK_NEAR(sent / sums, n_sums, 0);
    ct_run_clear(&run);
}

static void the_ledger_shows_what_each_method_sends(void) {
    check_bytes("--algorithm gt", 4, 0);
    check_bytes("--algorithm gt --loss ccl", 4, 2);
    check_bytes("--algorithm gt --variant atc", 4, 0);
    check_bytes("--algorithm gt --variant atc --loss ccl", 6, 2);
    check_bytes("--algorithm mt", 4, 0);
    check_bytes("--algorithm mt --loss ccl", 4, 2);
    check_bytes("--algorithm mt --variant tmlr23", 4 + 1.5 / 3, 0); /* one all-reduce in three */
    check_bytes("--algorithm d2", 2, 0);
    check_bytes("--algorithm d2 --loss ccl", 4, 2);
    check_bytes("--algorithm gut", 2, 0);
    check_bytes("--algorithm gut --loss ccl", 2, 2);
    check_bytes("--algorithm gut --variant neurips23 --loss ccl", 2, 2);
    check_bytes("--algorithm allreduce", 1.5, 0);
    check_bytes("--algorithm sgp", 2, 0);
    check_bytes("--algorithm sgp --topology one-peer-exponential", 1, 0);
    check_bytes("--algorithm dsgdm --topology one-peer-exponential --loss ccl", 2, 1);
    check_bytes("--algorithm qg-dsgdm --topology matchings --loss ccl", 1, 1);
    check_bytes("--algorithm cga", 4, 0);
    check_bytes("--algorithm cga --loss ccl", 4, 2);
    check_bytes("--algorithm cga --variant icml21", 4, 0);
    check_bytes("--algorithm ngc", 4, 0);
    check_bytes("--algorithm ngc --ngc-alpha 0", 2, 0);
    check_bytes("--algorithm ngc --topology one-peer-exponential", 2, 0);
    check_bytes("--algorithm local", 0, 0);
    check_bytes("--algorithm local --loss ccl", 2, 2);
}

/* ---- memory ---- */

static void count_allocations(void *context, const char *name, const char *text) {
    (void)text;
    static ct_run run;
    char options[256];
    snprintf(options, sizeof options, "--algorithm %s --agents 6 --loss %s --lambda-m 0.1", name,
             (const char *)context);
    if (strcmp(context, "ce") == 0)
        snprintf(options, sizeof options, "--algorithm %s --agents 6", name);
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, options, &run));
    run_steps(&run, 0, 2);
    uint64_t before = ct_alloc_count();
    run_steps(&run, 2, 4);
    if (ct_alloc_count() != before) printf("    with %s\n", options);
    CHECK(ct_alloc_count() == before);
    ct_run_clear(&run);
}

static void a_step_takes_no_memory(void) {
    ct_algo_each(count_allocations, "ce");
    ct_algo_each(count_allocations, "ccl");
    count_allocations("ccl", "sgp --topology one-peer-exponential", "");
    count_allocations("ccl", "qg-dsgdm --topology matchings", "");
    count_allocations("ccl", "dsgdm --topology base:3", "");
    count_allocations("ce", "cga --topology matchings", "");
    count_allocations("ccl", "gt --variant atc", "");
    count_allocations("ce", "ngc --variant weighted --topology matchings", "");
    count_allocations("ccl", "gut --variant neurips23", "");
    count_allocations("ce", "ngc --topology base:3", "");
    count_allocations("ccl", "mt --variant tmlr23", "");
    count_allocations("ce", "cga --variant icml21 --topology matchings", "");
    count_allocations("ccl", "sgp --variant icml19 --topology one-peer-exponential", "");
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(every_algorithm_has_an_independent_computation_with_ce_and_ccl);
    TEST(five_steps_of_every_case_agree_with_the_oracle_on_ref);
    TEST(five_steps_of_every_case_agree_with_the_oracle_on_cpu);
    TEST(five_steps_of_every_case_agree_with_the_oracle_on_cuda);
    TEST(gradient_trackers_have_the_mean_of_the_gradients);
    TEST(momentum_corrections_cancel_over_the_agents);
    TEST(the_first_step_of_tmlr23_is_along_the_mean_gradient);
    TEST(global_updates_move_the_mean_model_by_the_mean_gradient);
    TEST(the_authors_form_has_the_authors_weight_of_updates);
    TEST(all_reduced_agents_hold_one_model);
    TEST(pushed_weights_sum_to_the_number_of_agents);
    TEST(pushed_models_end_at_the_exact_average);
    TEST(pushed_weights_follow_from_the_iteration);
    TEST(methods_refuse_graphs_they_are_wrong_on);
    TEST(both_trees_relay_their_half_in_as_many_steps_as_they_are_wide);
    TEST(who_relays_in_one_tree_is_a_leaf_of_the_other);
    TEST(two_trees_send_as_much_as_one);
    TEST(a_gradient_that_hurts_nobody_is_left_alone);
    TEST(a_gradient_that_hurts_one_is_moved_to_its_plane);
    TEST(the_dual_satisfies_its_conditions);
    TEST(d2_mixes_with_half_of_w_where_the_spectrum_asks_for_it);
    TEST(seeds_side_by_side_train_as_they_would_alone);
    TEST(the_ledger_shows_what_each_method_sends);
    TEST(a_step_takes_no_memory);
    return test_report();
}
