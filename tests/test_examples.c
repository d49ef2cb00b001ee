/* The worked examples of docs/ADDING.md: they are compiled here as they stand, and do what they
 * say. What a line in a list would declare is declared by hand. */
#include "runs.h"

#include <unistd.h>

#include "data/dataset_internal.h"
#include "mixing.h"
#include "topology/topology_internal.h"
#include "util/log.h"

extern const ct_algo ct_algo_my_algorithm;
ct_status ct_topology_make_wheel(const ct_topology_request *request, ct_edge_list *out);
void ct_model_tiny(ct_graph *g, const ct_model_context *m);
ct_status ct_dataset_open_stripes(const ct_dataset_options *options, ct_dataset *out);

#include "../examples/my_algorithm.c"
#include "../examples/my_dataset.c"
#include "../examples/my_model.c"
#include "../examples/my_topology.c"

static ct_run run;

/* A run of the example: dsgd has no state, so that it can take its place. */
static ct_status create_example(const char *device, const char *options) {
    CT_TRY(run_create(device,
                      RUN_ORACLE " --init init-agents.safetensors --batch-size 9 --algorithm dsgd",
                      options, &run));
    run.algo = &ct_algo_my_algorithm;
    return ct_agents_start(&run.agents, run.algo);
}

/* Without gradients, x+ = W W x. */
static void the_example_algorithm_mixes_twice(void) {
    static float before[5][RUN_MAX_COLUMNS];
    REQUIRE_OK(create_example("cpu", "--lr 1e-12 --weight-decay 0"));
    size_t n = run.graph.n_weights;
    for (int i = 0; i < 5; i++) CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, before[i]));
    run_steps(&run, 0, 1);
    for (int i = 0; i < 5; i++) {
        for (size_t k = 0; k < n; k += 17) {
            double expected = 0;
            float got = 0;
            for (int j = 0; j < 5; j++)
                for (int l = 0; l < 5; l++)
                    expected += ct_sparse_get(&run.w, i, j) * ct_sparse_get(&run.w, j, l) *
                                (double)before[l][k];
            CHECK_OK(ct_bank_read(&run.agents.x, i, k, 1, &got));
            CHECK_NEAR(got, expected, 1e-6);
        }
    }
    ct_run_clear(&run);
}

static void the_example_algorithm_trains_and_counts_its_traffic(void) {
    ct_evaluation before, after;
    REQUIRE_OK(create_example("cpu", "--lr 0.1 --loss ccl --lambda-m 0.1 --lambda-d 0.1"));
    CHECK_OK(ct_run_score_all(&run, true, &before));
    run_steps(&run, 0, 30);
    CHECK_OK(ct_run_score_all(&run, true, &after));
    CHECK(after.consensus_loss < 0.9 * before.consensus_loss);
    CHECK(after.consensus_distance < before.consensus_distance);
    /* CCL's exchange before the step, then two rounds; a ring's agents have two neighbours */
    CHECK(ct_transport_sent(run.transport, 0, CT_TRAFFIC_PARAMETERS) ==
          30 * 3 * 2 * 4 * run.graph.n_weights);
    ct_run_clear(&run);
}

static void the_example_topology_is_a_wheel(void) {
    ct_topology t = {0};
    ct_sparse w = {0};
    ct_topology_facts facts;
    ct_topology_request request = {.name = "wheel", .n = 9};
    ct_edge_list edges = {.n = request.n};
    REQUIRE_OK(ct_topology_make_wheel(&request, &edges));
    REQUIRE_OK(ct_edge_list_finish(&edges, &t));
    CHECK_OK(ct_mixing_create(&t, "auto", &w));
    CHECK_OK(mixing_check(&w, &t));
    CHECK_OK(ct_topology_measure(&t, &w, &facts));
    CHECK(facts.n_edges == 16 && facts.diameter == 2);
    CHECK(facts.min_degree == 3 && facts.max_degree == 8);
    ct_topology_free(&t);
    ct_sparse_free(&w);
    request.n = 3;
    CHECK_FAILS(ct_topology_make_wheel(&request, &edges), CT_INVAL, "at least 4");
}

static void the_example_model_has_its_parameters(void) {
    ct_graph g = {.n_classes = 10, .features = -1};
    ct_model_context m = {.input = {1, 28, 28}, .n_classes = 10};
    ct_model_tiny(&g, &m);
    CHECK(g.status == CT_OK);
    CHECK(g.n_weights == 8 * 9 + 8 + 8 * 14 * 14 * 32 + 32 + 32 * 10 + 10);
    CHECK(ct_graph_n_features(&g) == 32);
    ct_graph_free(&g);
}

static void the_example_data_set_has_its_classes(void) {
    ct_dataset d = {0};
    ct_dataset_options options = {.seed = 1};
    REQUIRE_OK(ct_dataset_open_stripes(&options, &d));
    CHECK(d.train.n == 400 && d.test.n == 100 && d.n_classes == 2);
    double across = 0, along = 0; /* a vertical stripe: columns differ, rows do not */
    for (int p = 0; p < 64; p++) {
        double value = d.train.pixels[p];
        across += p % 8 % 2 == 0 ? -value : value;
        along += p / 8 % 2 == 0 ? -value : value;
    }
    CHECK(d.train.labels[0] == 0 && fabs(across) > fabs(along));
    ct_dataset_free(&d);
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(the_example_algorithm_mixes_twice);
    TEST(the_example_algorithm_trains_and_counts_its_traffic);
    TEST(the_example_topology_is_a_wheel);
    TEST(the_example_model_has_its_parameters);
    TEST(the_example_data_set_has_its_classes);
    return test_report();
}
