/* The algorithms against an independent float64 computation (tests/oracle), and what they promise:
 * mixing keeps the average, relays arrive, a step takes no memory, every byte is counted. */
#include "oracle.h"

#include <stdlib.h>
#include <unistd.h>

#include "util/log.h"
#include "util/memory.h"
#include "util/rng.h"

#define MAX_AGENTS 32
/* The fixtures' images without their partition file. */
#define PLAIN "--model mlp:8 --partition iid"

static void the_fixtures_cover_every_algorithm_variant_distance_and_reduction(void) {
    static const char *const wanted[] = {
        "--algorithm dsgd ",
        "--algorithm dsgdm",
        "--algorithm relaysgd",
        "--variant paper",
        "--variant atc",
        "--variant wacv24",
        "--relay-fill init",
        "--relay-fill self",
        "--loss ce",
        "--loss ccl",
        "--nesterov off",
        "--nesterov on",
        "--gamma 0.9",
        "--ccl-distance l1",
        "--ccl-distance cosine",
        "--ccl-distance mse",
        "--lr-decay",
        "--ccl-reduction sum",
        "--ccl-reduction mean",
        "--lambda-m 0 ",
        "--lambda-d 0 ",
        "init-agents",
        "--topology star",
        "--topology full",
        "--topology chain",
        "--algorithm qg-dsgdm ",
    };
    read_fixtures(".");
    CHECK(n_fixtures >= 40);
    check_cover(wanted, sizeof wanted / sizeof *wanted);
}

static void five_steps_of_every_case_agree_with_the_oracle_on_ref(void) {
    REQUIRE(n_fixtures > 0);
    /* parameters are rounded to float after every step: measured 2e-6 */
    for (int i = 0; i < n_fixtures; i++) check_case("ref", &fixtures[i], 2e-5);
}

static void five_steps_of_every_case_agree_with_the_oracle_on_cpu(void) {
    REQUIRE(n_fixtures > 0);
    for (int i = 0; i < n_fixtures; i++) check_case("cpu", &fixtures[i], 2e-4);
}

static void a_single_agent_trains_like_plain_sgd(void) {
    static ct_run run;
    float x[1024], g[1024], after[1024];
    REQUIRE_OK(run_create("ref", PLAIN,
                          "--agents 1 --topology chain --algorithm dsgd --loss ce --lr 0.5 "
                          "--weight-decay 0",
                          &run));
    size_t n = run.graph.n_weights;
    REQUIRE(n <= 1024);
    CHECK_OK(ct_bank_read(&run.agents.x, 0, 0, n, x));
    CHECK_OK(ct_run_iterate(&run, 0));
    CHECK_OK(ct_bank_read(&run.agents.g, 0, 0, n, g));
    CHECK_OK(ct_bank_read(&run.agents.x, 0, 0, n, after));
    double moved = 0;
    for (size_t k = 0; k < n; k++) {
        CHECK_NEAR(after[k], x[k] - 0.5f * g[k], 1e-6);
        moved += fabs((double)g[k]);
    }
    CHECK(moved > 0);
    CHECK(ct_transport_sent(run.transport, 0, CT_TRAFFIC_PARAMETERS) == 0);
    ct_run_clear(&run);
}

static void all_agents_start_from_the_same_values_of_the_seed(void) {
    static ct_run run;
    static float first[1024], other[1024];
    REQUIRE_OK(run_create("cpu", PLAIN, "--agents 5 --batch-size 8 --seed 4", &run));
    size_t n = run.graph.n_weights;
    CHECK_OK(ct_bank_read(&run.agents.x, 0, 0, n, first));
    for (int i = 1; i < 5; i++) {
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, other));
        CHECK(memcmp(first, other, n * sizeof *first) == 0);
    }
    ct_run_clear(&run);
    REQUIRE_OK(run_create("cpu", PLAIN, "--agents 5 --batch-size 8 --seed 5", &run));
    CHECK_OK(ct_bank_read(&run.agents.x, 0, 0, n, other));
    CHECK(memcmp(first, other, n * sizeof *first) != 0);
    ct_run_clear(&run);
}

/* ---- relaysgd ---- */

/* Steps without gradients in which every agent's own model stays its start value: what an agent
 * holds afterwards is the sum of what was relayed to it. The largest distance to the average of
 * the starts is returned. */
static double relay(const char *topology, const char *fill, int n_steps) {
    static ct_run run;
    static float start[5][1024], got[1024];
    static double mean[1024];
    char options[256];
    double worst = 0;
    snprintf(options, sizeof options,
             "--algorithm relaysgd --topology %s --relay-fill %s --lr 1e-12 --momentum 0 "
             "--weight-decay 0 --loss ce --batch-size 8 --init init-agents.safetensors",
             topology, fill);
    if (run_create("ref", RUN_ORACLE, options, &run) != CT_OK) return NAN;
    size_t n = run.graph.n_weights;
    memset(mean, 0, sizeof mean);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, start[i]));
        for (size_t k = 0; k < n; k++) mean[k] += (double)start[i][k] / 5;
    }
    for (long t = 0; t < n_steps; t++) {
        for (int i = 0; i < 5; i++) CHECK_OK(ct_bank_write(&run.agents.x, i, 0, n, start[i]));
        CHECK_OK(ct_run_iterate(&run, t));
    }
    for (int i = 0; i < 5; i++) {
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, got));
        for (size_t k = 0; k < n; k++) {
            double distance = fabs((double)got[k] - mean[k]);
            if (!(distance <= worst)) worst = distance; /* fmax: gcc 12 for ARM breaks down here */
        }
    }
    ct_run_clear(&run);
    return worst;
}

static void relayed_models_are_all_there_after_as_many_steps_as_the_tree_is_wide(void) {
    static const struct {
        const char *name;
        int diameter; /* of the tree: a ring's is the chain */
    } graphs[] = {{"chain", 4}, {"star", 2}, {"ring", 4}};
    static const char *const fills[] = {"init", "self"};
    for (int g = 0; g < 3; g++) {
        for (int f = 0; f < 2; f++) {
            CHECK(relay(graphs[g].name, fills[f], 1) > 1e-2);
            CHECK(relay(graphs[g].name, fills[f], graphs[g].diameter - 1) > 1e-2);
            CHECK(relay(graphs[g].name, fills[f], graphs[g].diameter) < 1e-6);
            CHECK(relay(graphs[g].name, fills[f], graphs[g].diameter + 3) < 1e-6);
        }
    }
}

/* ---- mixing ---- */

typedef struct mixing_test {
    const char *device;
    int n_sizes; /* of the current graph that could be built */
    int n_graphs;
} mixing_test;

static void fill_bank(ct_bank *bank, uint32_t index) {
    ct_rng rng;
    float row[128];
    ct_rng_init(&rng, 7, CT_RNG_TEST, 0, 0, index);
    for (int i = 0; i < bank->n_rows; i++) {
        for (size_t k = 0; k < bank->n; k++) row[k] = (float)ct_rng_normal(&rng);
        CHECK_OK(ct_bank_write(bank, i, 0, bank->n, row));
    }
}

/* y = W x and z = x + 0.9 (W x - x) over random rows have the columns' means of x. */
static void check_mixing(ct_backend *backend, const ct_sparse *w, int n) {
    ct_bank x = {0}, y = {0}, z = {0}, r = ct_temp(1);
    CHECK_OK(ct_bank_create(backend, n, 0, 101, &x));
    CHECK_OK(ct_bank_create(backend, n, 0, 101, &y));
    CHECK_OK(ct_bank_create(backend, n, 0, 101, &z));
    fill_bank(&x, (uint32_t)n);
    ct_update u = {.n_rows = n};
    SET(&u, &y, {1, &x, w});
    SET(&u, &r, {1, &x, w}, {-1, &x});
    SET(&u, &z, {1, &x}, {0.9, &r});
    CHECK_OK(ct_update_run(backend, &u));
    double change = 0;
    for (size_t k = 0; k < x.n; k++) {
        float before = 0, after = 0;
        CHECK_NEAR(column_mean(&y, k), column_mean(&x, k), 1e-6);
        CHECK_NEAR(column_mean(&z, k), column_mean(&x, k), 1e-6);
        CHECK_OK(ct_bank_read(&x, n - 1, k, 1, &before));
        CHECK_OK(ct_bank_read(&y, n - 1, k, 1, &after));
        change = fmax(change, fabs((double)before - (double)after));
    }
    CHECK(change > 0.1); /* it did mix */
    ct_bank_free(&x);
    ct_bank_free(&y);
    ct_bank_free(&z);
}

static void mix_graph(void *context, const char *name, const char *text) {
    static const int sizes[] = {2, 3, 5, 8, 10, 16, 32};
    mixing_test *test = context;
    ct_backend *backend = NULL;
    ct_backend_options options = {.n_threads = 2};
    char spec[96];
    (void)text;
    bool is_file = strcmp(name, "file") == 0;
    snprintf(spec, sizeof spec, "%s%s", name, is_file ? ":graph-of-five.txt" : "");
    CHECK_OK(ct_backend_create(test->device, &options, &backend));
    test->n_sizes = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes && backend != NULL; s++) {
        ct_topology t = {0};
        ct_sparse w = {0};
        if (ct_topology_create(spec, sizes[s], 1, &t) != CT_OK) continue; /* a size it has not */
        CHECK_OK(ct_mixing_create(&t, "auto", &w));
        if (w.value != NULL) check_mixing(backend, &w, sizes[s]);
        test->n_sizes++;
        ct_sparse_free(&w);
        ct_topology_free(&t);
    }
    ct_clear_message();
    if (test->n_sizes == 0) printf("    %s: no size tried fits\n", name);
    CHECK(test->n_sizes > 0);
    test->n_graphs++;
    ct_backend_free(&backend);
}

static void mixing_keeps_the_average_on_every_graph(void) {
    mixing_test ref = {.device = "ref"}, cpu = {.device = "cpu"};
    char folder[] = "/tmp/crosstalk-test-XXXXXX", here[1024];
    static const char edges[] = "0 1\n1 2\n2 0\n2 3\n3 4\n";
    REQUIRE(getcwd(here, sizeof here) != NULL && mkdtemp(folder) != NULL && chdir(folder) == 0);
    CHECK_OK(ct_file_write("graph-of-five.txt", edges, strlen(edges)));
    ct_topology_each(mix_graph, &ref);
    ct_topology_each(mix_graph, &cpu);
    CHECK(ref.n_graphs >= 12 && cpu.n_graphs == ref.n_graphs);
    remove("graph-of-five.txt");
    REQUIRE(chdir(here) == 0);
    rmdir(folder);
}

/* ---- memory ---- */

static void check_allocations(const char *device, const char *model, const char *norm,
                              const char *algorithm, const char *loss) {
    static ct_run run;
    char options[512];
    snprintf(
        options, sizeof options,
        "--model %s --norm %s --algorithm %s --loss %s --threads 2 --batch-size 8 --shuffle on",
        model, norm, algorithm, loss);
    REQUIRE_OK(run_create(device, RUN_ORACLE, options, &run));
    CHECK_OK(ct_run_iterate(&run, 0));
    uint64_t before = ct_alloc_count();
    for (long k = 1; k < 6; k++) CHECK_OK(ct_run_iterate(&run, k)); /* into the second epoch */
    if (ct_alloc_count() != before) printf("    with %s on %s\n", options, device);
    CHECK(ct_alloc_count() == before);
    ct_run_clear(&run);
}

static void check_algorithm(void *context, const char *name, const char *text) {
    static const char *const losses[] = {"ce", "ccl"};
    (void)text;
    for (int l = 0; l < 2; l++) {
        check_allocations("cpu", "mlp:8", "none", name, losses[l]);
        check_allocations("ref", "mlp:8", "none", name, losses[l]);
    }
    ++*(int *)context;
}

static void a_step_takes_no_memory(void) {
    int n_algorithms = 0;
    ct_algo_each(check_algorithm, &n_algorithms);
    CHECK(n_algorithms >= 4);
    check_algorithm(&n_algorithms, "dsgdm --variant cta", NULL);
    check_algorithm(&n_algorithms, "qg-dsgdm --variant atc", NULL);
    check_algorithm(&n_algorithms, "qg-dsgdm --variant wacv24", NULL);
    check_algorithm(&n_algorithms, "relaysgd --relay-fill self", NULL);
    check_allocations("cpu", "resnet20", "evonorm", "qg-dsgdm", "ccl");
    check_allocations("cpu", "resnet20", "batchnorm", "qg-dsgdm", "ccl");
    check_allocations("cpu", "mobilenetv2", "groupnorm", "dsgdm", "ce");
}

/* ---- the ledger ---- */

enum { LENET5_PARAMETERS = 61706, LENET5_FEATURES = 84 };

/* LeNet-5 on a ring of 4: after 3 iterations, bytes an agent sent in each. */
static void count_bytes(const char *options, int agent, double *parameters, double *class_sums) {
    static ct_run run;
    ct_config config;
    ct_config_init(&config);
    *parameters = *class_sums = NAN;
    REQUIRE_OK(run_options(&config,
                           "--dataset shapes --train-samples 40 --test-samples 10 --agents "
                           "4 --partition iid --batch-size 2 --model lenet5 --device cpu "
                           "--topology ring"));
    REQUIRE_OK(run_options(&config, options));
    REQUIRE_OK(ct_run_build(&config, &run));
    CHECK(run.graph.n_weights == LENET5_PARAMETERS);
    CHECK(ct_graph_n_features(&run.graph) == LENET5_FEATURES);
    for (long k = 0; k < 3; k++) CHECK_OK(ct_run_iterate(&run, k));
    *parameters = (double)ct_transport_sent(run.transport, agent, CT_TRAFFIC_PARAMETERS) / 3;
    *class_sums = (double)ct_transport_sent(run.transport, agent, CT_TRAFFIC_CLASS_SUMS) / 3;
    ct_run_clear(&run);
}

static void check_bytes(const char *options, double n_models, double n_sums) {
    double parameters, sums;
    count_bytes(options, 1, &parameters, &sums);
    CHECK_NEAR(parameters, n_models * 4 * LENET5_PARAMETERS, 0);
    CHECK_NEAR(sums, n_sums * 4 * 10 * (LENET5_FEATURES + 1), 0);
}

static void the_ledger_shows_the_papers_bytes_for_lenet5_on_a_ring(void) {
    double parameters, sums;
    char mib[16];
    count_bytes("--algorithm qg-dsgdm --loss ce", 0, &parameters, &sums);
    snprintf(mib, sizeof mib, "%.3f", (parameters + sums) / (1 << 20));
    CHECK(strcmp(mib, "0.471") == 0);
    count_bytes("--algorithm ccl", 0, &parameters, &sums);
    snprintf(mib, sizeof mib, "%.3f", (parameters + sums) / (1 << 20));
    CHECK(strcmp(mib, "0.477") == 0);
    check_bytes("--algorithm qg-dsgdm --loss ce", 2, 0);
    check_bytes("--algorithm ccl", 2, 2);
}

/* Algorithms that adapt before they combine share their models twice: for the cross-features
 * before the step, for mixing after it. */
static void the_ledger_counts_a_second_exchange_where_there_is_one(void) {
    check_bytes("--algorithm dsgd --loss ce", 2, 0);
    check_bytes("--algorithm dsgd --loss ccl", 4, 2);
    check_bytes("--algorithm dsgdm --loss ce", 2, 0);
    check_bytes("--algorithm dsgdm --loss ccl", 4, 2);
    check_bytes("--algorithm dsgd --variant cta --loss ccl", 2, 2);
    check_bytes("--algorithm dsgdm --variant cta --loss ce", 2, 0);
    check_bytes("--algorithm dsgdm --variant cta --loss ccl", 2, 2);
    check_bytes("--algorithm qg-dsgdm --variant atc --loss ccl", 4, 2);
    check_bytes("--algorithm qg-dsgdm --variant wacv24 --loss ce", 2, 0);
    check_bytes("--algorithm qg-dsgdm --variant wacv24 --loss ccl", 2, 2);
    check_bytes("--algorithm ccl --topology full", 3, 3);
}

/* Relays go along the chain 0-1-2-3, cross-features along the ring. */
static void relays_cost_one_message_for_each_edge_of_the_tree(void) {
    double parameters, sums;
    check_bytes("--algorithm relaysgd --loss ce", 2, 0);
    check_bytes("--algorithm relaysgd --loss ccl", 4, 2);
    count_bytes("--algorithm relaysgd --loss ce", 0, &parameters, &sums);
    CHECK_NEAR(parameters, 4 * LENET5_PARAMETERS, 0);
    count_bytes("--algorithm relaysgd --loss ccl", 3, &parameters, &sums);
    CHECK_NEAR(parameters, 3 * 4 * LENET5_PARAMETERS, 0);
}

/* ---- what algorithms say about themselves ---- */

typedef struct owner {
    const ct_algo *algo;
    const char *option;
} owner;

static void check_owner(void *context, const char *name, const char *text) {
    const owner *own = context;
    const ct_algo *other;
    (void)text;
    REQUIRE_OK(ct_algo_find(name, &other));
    CHECK(ct_algo_has_option(other, own->option) == (other == own->algo)); /* nobody else's */
}

/* The schema knows every form, the list of algorithms shows it. */
static void check_variants(const ct_algo *algo) {
    char shown[128] = "@variant paper";
    CHECK(ct_algo_has_option(algo, "variant") == (algo->variants[0] != NULL));
    if (algo->variants[0] == NULL) return;
    for (int k = 0; k < CT_MAX_VARIANTS && algo->variants[k] != NULL; k++) {
        size_t n = strlen(shown);
        snprintf(shown + n, sizeof shown - n, "|%s", algo->variants[k]);
        CHECK(strstr(ct_schema_find("variant")->choices, algo->variants[k]) != NULL);
        CHECK(ct_algo_variant(algo, algo->variants[k]) == k + 1);
    }
    if (strstr(algo->text, shown) == NULL) printf("    %s does not show %s\n", algo->name, shown);
    CHECK(strstr(algo->text, shown) != NULL);
}

static void check_facts(void *context, const char *name, const char *text) {
    const ct_algo *algo;
    (void)context, (void)text;
    REQUIRE_OK(ct_algo_find(name, &algo));
    CHECK(strcmp(algo->name, name) == 0 && algo->step != NULL);
    for (int k = 0; k < CT_MAX_OWN_OPTIONS && algo->options[k] != NULL; k++) {
        const char *known = ct_config_name(algo->options[k]);
        CHECK(known != NULL && strcmp(known, algo->options[k]) == 0);
        ct_algo_each(check_owner, &(owner){algo, algo->options[k]});
    }
    check_variants(algo);
    for (int k = 0; k < CT_MAX_BUFFERS && algo->buffers[k] != NULL; k++)
        for (int j = 0; j < k; j++) CHECK(strcmp(algo->buffers[k], algo->buffers[j]) != 0);
    CHECK(algo->may_lose != CT_MAY_LOSE_MESSAGES || algo->why_not != NULL);
}

static void every_own_option_of_an_algorithm_is_in_the_schema(void) {
    ct_algo_each(check_facts, NULL);
}

/* Configs of old runs say "paper" whatever the algorithm, and may hold another one's form. */
static void a_form_that_an_algorithm_has_not_is_refused_where_it_is_named(void) {
    const ct_algo *gt, *d2;
    REQUIRE_OK(ct_algo_find("gt", &gt));
    REQUIRE_OK(ct_algo_find("d2", &d2));
    CHECK_OK(ct_algo_check_option(d2, "momentum"));
    CHECK_FAILS(ct_algo_check_option(d2, "variant"), CT_INVAL, "an option of dsgd, dsgdm");
    CHECK_OK(ct_algo_check_variant(gt, "atc"));
    CHECK_OK(ct_algo_check_variant(gt, "paper"));
    CHECK_FAILS(ct_algo_check_variant(gt, "wacv24"), CT_INVAL, "known: paper, atc");
    CHECK(ct_algo_variant(gt, "wacv24") == 0 && ct_algo_variant(d2, "atc") == 0);
}

static void ccl_is_a_name_for_qg_dsgdm_with_its_loss(void) {
    const ct_algo *algo, *ccl;
    const ct_algo_alias *alias = ct_algo_alias_find("ccl");
    REQUIRE(alias != NULL && strcmp(alias->loss, "ccl") == 0);
    REQUIRE_OK(ct_algo_find("ccl", &ccl));
    REQUIRE_OK(ct_algo_find(alias->algorithm, &algo));
    CHECK(ccl == algo && strcmp(algo->name, "qg-dsgdm") == 0);
    CHECK(ct_algo_alias_find("qg-dsgdm") == NULL);
}

static void gamma_is_the_papers_on_its_denser_graphs(void) {
    const ct_algo *qgm, *dsgdm;
    REQUIRE_OK(ct_algo_find("qg-dsgdm", &qgm));
    REQUIRE_OK(ct_algo_find("dsgdm", &dsgdm));
    CHECK(ct_algo_gamma(qgm, "dyck-wacv24") == 0.9 && ct_algo_gamma(qgm, "torus:4x8") == 0.9);
    CHECK(ct_algo_gamma(qgm, "ring") == 1 && ct_algo_gamma(dsgdm, "dyck") == 1);
    CHECK(!ct_topology_is_denser("no such graph"));
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(the_fixtures_cover_every_algorithm_variant_distance_and_reduction);
    TEST(five_steps_of_every_case_agree_with_the_oracle_on_ref);
    TEST(five_steps_of_every_case_agree_with_the_oracle_on_cpu);
    TEST(a_single_agent_trains_like_plain_sgd);
    TEST(all_agents_start_from_the_same_values_of_the_seed);
    TEST(relayed_models_are_all_there_after_as_many_steps_as_the_tree_is_wide);
    TEST(mixing_keeps_the_average_on_every_graph);
    TEST(a_step_takes_no_memory);
    TEST(the_ledger_shows_the_papers_bytes_for_lenet5_on_a_ring);
    TEST(the_ledger_counts_a_second_exchange_where_there_is_one);
    TEST(relays_cost_one_message_for_each_edge_of_the_tree);
    TEST(every_own_option_of_an_algorithm_is_in_the_schema);
    TEST(a_form_that_an_algorithm_has_not_is_refused_where_it_is_named);
    TEST(ccl_is_a_name_for_qg_dsgdm_with_its_loss);
    TEST(gamma_is_the_papers_on_its_denser_graphs);
    return test_report();
}
