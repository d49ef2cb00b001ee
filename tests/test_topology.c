/* Graphs, mixing weights, spectra and spanning trees. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "mixing.h"
#include "topology/topology.h"
#include "topology/topology_internal.h"
#include "util/file.h"
#include "util/memory.h"

/* The edge file that stands for "file" where a test loops over every graph: a triangle and a tail.
 */
static char edge_path[] = "/tmp/crosstalk-edges-XXXXXX";

static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 16, 20, 24, 31, 32, 64, 100};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static bool is_connected(const ct_topology *t) {
    int unreached = 0;
    return ct_topology_walk(t, NULL, &unreached) == CT_OK && unreached == -1;
}

/* Ascending neighbours, no loops, both directions there. */
static bool is_well_formed(const ct_topology *t) {
    if (t->begin[0] != 0) return false;
    for (int i = 0; i < t->n; i++) {
        for (int k = t->begin[i]; k < t->begin[i + 1]; k++) {
            int j = t->neighbour[k];
            if (j < 0 || j >= t->n || j == i || !ct_topology_has_edge(t, j, i)) return false;
            if (k > t->begin[i] && t->neighbour[k - 1] >= j) return false;
        }
    }
    return true;
}

/* Independent of mixing_check: every entry against its mirror and the graph, exact sums. */
static void check_doubly_stochastic(const ct_sparse *w, const ct_topology *t) {
    for (int i = 0; i < t->n; i++) {
        double row = 0, column = 0;
        for (int j = 0; j < t->n; j++) {
            double value = ct_sparse_get(w, i, j);
            CHECK(value >= 0 && value == ct_sparse_get(w, j, i));
            CHECK(value == 0 || i == j || ct_topology_has_edge(t, i, j));
            row += value;
            column += ct_sparse_get(w, j, i);
        }
        CHECK_NEAR(row, 1, 1e-14);
        CHECK_NEAR(column, 1, 1e-14);
    }
}

static void check_one(const char *spec, int n, int *n_accepted) {
    ct_topology t = {0};
    ct_clear_message();
    ct_status status = ct_topology_create(spec, n, 1, &t);
    if (status != CT_OK) {
        CHECK(status == (strncmp(spec, "file:", 5) == 0 ? CT_IO : CT_INVAL));
        CHECK(ct_message()[0] != '\0' && t.begin == NULL);
        return;
    }
    (*n_accepted)++;
    CHECK(t.n == n && strcmp(t.name, spec) == 0 && is_well_formed(&t) && is_connected(&t));
    static const char *const weights[] = {"auto", "metropolis"};
    for (int k = 0; k < 2; k++) {
        ct_sparse w = {0};
        REQUIRE_OK(ct_mixing_create(&t, weights[k], &w));
        check_doubly_stochastic(&w, &t);
        CHECK_OK(mixing_check(&w, &t));
        ct_topology_facts facts = {0};
        REQUIRE_OK(ct_topology_measure(&t, &w, &facts));
        CHECK(facts.lambda_2 < 1 && facts.lambda_min > -1 && facts.spectral_gap > 0);
        CHECK(facts.lambda_min <= facts.lambda_2 || n == 1);
        CHECK(facts.diameter <= n - 1 && facts.n_edges >= n - 1);
        ct_sparse_free(&w);
    }
    ct_topology_free(&t);
}

static void check_every_size(void *context, const char *name, const char *text) {
    int n_accepted = 0, *n_graphs = context;
    char spec[256];
    snprintf(spec, sizeof spec, "%s%s%s", name, strcmp(name, "file") == 0 ? ":" : "",
             strcmp(name, "file") == 0 ? edge_path : "");
    for (int k = 0; k < N_SIZES; k++) check_one(spec, sizes[k], &n_accepted);
    if (n_accepted == 0) printf("    %s accepts no size\n", name);
    CHECK(n_accepted > 0);
    CHECK(text[0] != '\0');
    (*n_graphs)++;
}

static void every_graph_is_connected_and_mixes_doubly_stochastically(void) {
    int n_graphs = 0;
    ct_topology_each(check_every_size, &n_graphs);
    CHECK(n_graphs >= 14);
    ct_clear_message();
}

/* Facts of a graph with its automatic weights; zeros after a failure, which is counted. */
static ct_topology_facts facts_of(const char *spec, int n) {
    ct_topology t = {0};
    ct_sparse w = {0};
    ct_topology_facts facts = {0};
    CHECK_OK(ct_topology_create(spec, n, 1, &t));
    if (t.begin != NULL) CHECK_OK(ct_mixing_create(&t, "auto", &w));
    if (w.begin != NULL) CHECK_OK(ct_topology_measure(&t, &w, &facts));
    ct_sparse_free(&w);
    ct_topology_free(&t);
    return facts;
}

static void check_facts(const char *spec, int n, int degree, int diameter, double lambda_2) {
    ct_topology_facts facts = facts_of(spec, n);
    CHECK(facts.min_degree == degree && facts.max_degree == degree);
    CHECK(facts.n_edges == n * degree / 2);
    CHECK(facts.diameter == diameter);
    CHECK_NEAR(facts.lambda_2, lambda_2, 5e-5); /* the paper's page gives four digits */
}

static void the_papers_graphs_have_the_papers_numbers(void) {
    check_facts("dyck", 32, 3, 5, 0.8090);
    check_facts("dyck-wacv24", 32, 3, 6, 0.8536);
    check_facts("torus", 32, 4, 6, 0.8828);
    check_facts("torus:4x8", 32, 4, 6, 0.8828);
    check_facts("torus-wacv24", 32, 4, 5, 0.8752);
    check_facts("petersen", 10, 3, 2, 0.5);
}

static const double pi = 3.14159265358979323846;

static void rings_have_the_eigenvalues_of_a_ring(void) {
    for (int n = 3; n <= 40; n++) {
        ct_topology_facts facts = facts_of("ring", n);
        CHECK_NEAR(facts.lambda_2, 1.0 / 3 + 2.0 / 3 * cos(2 * pi / n), 1e-14);
        CHECK_NEAR(facts.lambda_min, 1.0 / 3 + 2.0 / 3 * cos(2 * pi * (n / 2) / n), 1e-14);
        CHECK(facts.diameter == n / 2 && facts.n_edges == n);
    }
}

static void other_graphs_have_their_textbook_eigenvalues(void) {
    ct_topology_facts full = facts_of("full", 20), cube = facts_of("hypercube", 16);
    CHECK(full.diameter == 1 && full.n_edges == 190);
    CHECK_NEAR(full.lambda_2, 0, 1e-14);
    CHECK_NEAR(full.spectral_gap, 1, 1e-14);
    CHECK(cube.diameter == 4 && cube.n_edges == 32);
    CHECK_NEAR(cube.lambda_2, 3.0 / 5, 1e-14); /* (1 + 4 - 2k)/5 */
    CHECK_NEAR(cube.lambda_min, -3.0 / 5, 1e-14);
    CHECK_NEAR(cube.spectral_gap, 2.0 / 5, 1e-14);
    ct_topology_facts chain = facts_of("chain", 11);
    CHECK(chain.diameter == 10 && chain.min_degree == 1 && chain.max_degree == 2);
    CHECK_NEAR(chain.lambda_2, 1.0 / 3 + 2.0 / 3 * cos(pi / 11), 1e-14);
    ct_topology_facts grid = facts_of("grid:3x5", 15);
    CHECK(grid.diameter == 6 && grid.n_edges == 22 && grid.min_degree == 2 && grid.max_degree == 4);
}

static void one_agent_mixes_with_itself(void) {
    ct_topology t = {0};
    ct_sparse w = {0};
    REQUIRE_OK(ct_topology_create("ring", 1, 0, &t));
    REQUIRE_OK(ct_mixing_create(&t, "auto", &w));
    CHECK(t.begin[1] == 0 && w.begin[1] == 1 && w.value[0] == 1.0);
    ct_topology_facts facts = {0};
    REQUIRE_OK(ct_topology_measure(&t, &w, &facts));
    CHECK(facts.n_edges == 0 && facts.diameter == 0 && facts.lambda_2 == 0);
    CHECK(facts.lambda_min == 1 && facts.spectral_gap == 1);
    ct_sparse_free(&w);
    ct_topology_free(&t);
}

static void two_agents_share_one_edge(void) {
    static const char *const specs[] = {"ring", "torus", "torus-wacv24", "random-regular"};
    for (int k = 0; k < 4; k++) {
        ct_topology t = {0};
        ct_sparse w = {0};
        REQUIRE_OK(ct_topology_create(specs[k], 2, 0, &t));
        REQUIRE_OK(ct_mixing_create(&t, "uniform", &w));
        CHECK(t.begin[2] == 2);
        for (int i = 0; i < 4; i++) CHECK(ct_sparse_get(&w, i / 2, i % 2) == 0.5);
        ct_sparse_free(&w);
        ct_topology_free(&t);
    }
}

static void narrow_tori_have_no_double_edges(void) {
    static const struct {
        const char *spec;
        int n, degree;
    } cases[] = {{"torus:1x7", 7, 2},  {"torus:7x1", 7, 2}, {"torus:2x5", 10, 3},
                 {"torus:5x2", 10, 3}, {"torus:2x2", 4, 2}, {"torus:3x3", 9, 4},
                 {"torus", 7, 2},      {"torus", 12, 4},    {"torus", 10, 3}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ct_topology_facts facts = facts_of(cases[k].spec, cases[k].n);
        CHECK(facts.min_degree == cases[k].degree && facts.max_degree == cases[k].degree);
    }
}

static void check_neighbours(const char *spec, int n, int agent, const int *expected,
                             int n_expected) {
    ct_topology t = {0};
    REQUIRE_OK(ct_topology_create(spec, n, 0, &t));
    CHECK(ct_topology_degree(&t, agent) == n_expected);
    for (int k = 0; k < n_expected; k++) CHECK(t.neighbour[t.begin[agent] + k] == expected[k]);
    CHECK(!ct_topology_has_edge(&t, agent, agent));
    ct_topology_free(&t);
}

static void neighbours_are_who_they_should_be(void) {
    check_neighbours("ring", 8, 0, (const int[]){1, 7}, 2);
    check_neighbours("dyck", 32, 0, (const int[]){1, 19, 31}, 3);
    check_neighbours("dyck", 32, 1, (const int[]){0, 2, 6}, 3);
    check_neighbours("dyck-wacv24", 32, 9, (const int[]){8, 10, 25}, 3);
    check_neighbours("dyck-wacv24", 32, 17, (const int[]){1, 16, 18}, 3);
    check_neighbours("torus", 32, 0, (const int[]){1, 7, 8, 24}, 4);
    check_neighbours("torus-wacv24", 32, 0, (const int[]){1, 4, 28, 31}, 4);
    check_neighbours("grid:2x3", 6, 4, (const int[]){1, 3, 5}, 3);
    check_neighbours("star", 4, 0, (const int[]){1, 2, 3}, 3);
    check_neighbours("hypercube", 8, 5, (const int[]){1, 4, 7}, 3);
    check_neighbours("exponential", 16, 0, (const int[]){1, 2, 4, 8, 12, 14, 15}, 7);
}

static void metropolis_weights_follow_the_larger_degree(void) {
    ct_topology t = {0};
    ct_sparse w = {0};
    REQUIRE_OK(ct_topology_create("star", 5, 0, &t));
    CHECK_FAILS(ct_mixing_create(&t, "uniform", &w), CT_INVAL, "metropolis");
    CHECK_FAILS(ct_mixing_create(&t, "equal", &w), CT_INVAL, "auto, uniform, metropolis");
    REQUIRE_OK(ct_mixing_create(&t, "auto", &w));
    CHECK_NEAR(ct_sparse_get(&w, 0, 0), 0.2, 1e-15);
    for (int i = 1; i < 5; i++) {
        CHECK_NEAR(ct_sparse_get(&w, 0, i), 0.2, 1e-15);
        CHECK_NEAR(ct_sparse_get(&w, i, 0), 0.2, 1e-15);
        CHECK_NEAR(ct_sparse_get(&w, i, i), 0.8, 1e-15);
    }
    ct_sparse_free(&w);
    ct_topology_free(&t);
}

static void wrong_mixing_matrices_are_refused(void) {
    ct_topology t = {0}, chain = {0};
    ct_sparse w = {0};
    REQUIRE_OK(ct_topology_create("ring", 4, 0, &t));
    REQUIRE_OK(ct_topology_create("chain", 4, 0, &chain));
    REQUIRE_OK(ct_mixing_create(&t, "uniform", &w));
    CHECK_FAILS(mixing_check(&w, &chain), CT_INVAL, "no such edge");
    double kept = w.value[0];
    w.value[0] = kept + 1e-5;
    CHECK_FAILS(mixing_check(&w, &t), CT_INVAL, "row 0 sums to");
    w.value[0] = kept + 1e-8;
    CHECK_OK(mixing_check(&w, &t));
    w.value[0] = -kept;
    CHECK_FAILS(mixing_check(&w, &t), CT_INVAL, "negative");
    w.value[0] = NAN;
    CHECK_FAILS(mixing_check(&w, &t), CT_INVAL, "w(0,0)");
    w.value[0] = kept - 0.1;
    w.value[1] += 0.1;
    CHECK_FAILS(mixing_check(&w, &t), CT_INVAL, "w(0,1)");
    w.value[0] = kept;
    w.n_rows = 3;
    CHECK_FAILS(mixing_check(&w, &t), CT_INVAL, "3 x 4");
    ct_sparse_free(&w);
    ct_topology_free(&chain);
    ct_topology_free(&t);
}

static void both_ways_to_the_spectrum_agree(void) {
    static const struct {
        const char *spec;
        int n;
    } cases[] = {{"ring", 2},
                 {"ring", 3},
                 {"ring", 64},
                 {"ring", 199},
                 {"chain", 150},
                 {"full", 50},
                 {"star", 100},
                 {"torus:4x8", 32},
                 {"grid", 144},
                 {"dyck", 32},
                 {"petersen", 10},
                 {"hypercube", 128},
                 {"exponential", 100},
                 {"random-regular", 200},
                 {"random-regular:7", 90}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ct_topology t = {0};
        ct_sparse w = {0};
        double dense_2 = 0, dense_min = 0, lanczos_2 = 0, lanczos_min = 0;
        REQUIRE_OK(ct_topology_create(cases[k].spec, cases[k].n, 3, &t));
        REQUIRE_OK(ct_mixing_create(&t, "auto", &w));
        REQUIRE_OK(ct_spectrum_dense(&w, &dense_2, &dense_min));
        REQUIRE_OK(ct_spectrum_lanczos(&w, &lanczos_2, &lanczos_min));
        CHECK_NEAR(lanczos_2, dense_2, 1e-10);
        CHECK_NEAR(lanczos_min, dense_min, 1e-10);
        ct_sparse_free(&w);
        ct_topology_free(&t);
    }
}

/* Rings with the same chord at every agent, and with one that is missing. */
static void the_diameter_of_round_graphs_is_that_of_any(void) {
    enum { N = 700 };
    CHECK(facts_of("star", 9).diameter == 2 && facts_of("star", 700).diameter == 2);
    static int edges[2 * N][2];
    for (int k = 0; k < N; k++) {
        edges[k][0] = edges[N + k][0] = k;
        edges[k][1] = (k + 1) % N;
        edges[N + k][1] = (k + 25) % N;
    }
    for (int missing = 0; missing < 2; missing++) {
        ct_topology t = {0};
        ct_sparse w = {0};
        ct_topology_facts facts;
        REQUIRE_OK(ct_topology_of_edges(N, (const int(*)[2])edges, 2 * N - missing, &t));
        REQUIRE_OK(ct_mixing_create(&t, "auto", &w));
        CHECK_OK(ct_topology_measure(&t, &w, &facts));
        int furthest = 0;
        for (int i = 0; i < N; i += missing ? 1 : N) { /* of agents 0 alone, or of all */
            int distance[N], queue[N], n = 1;
            for (int k = 0; k < N; k++) distance[k] = k == i ? 0 : -1;
            queue[0] = i;
            for (int k = 0; k < n; k++)
                for (int e = t.begin[queue[k]]; e < t.begin[queue[k] + 1]; e++)
                    if (distance[t.neighbour[e]] < 0) {
                        distance[t.neighbour[e]] = distance[queue[k]] + 1;
                        queue[n++] = t.neighbour[e];
                    }
            if (distance[queue[N - 1]] > furthest) furthest = distance[queue[N - 1]];
        }
        CHECK(facts.diameter == furthest);
        ct_sparse_free(&w);
        ct_topology_free(&t);
    }
}

static void thousands_of_agents_are_measured_too(void) {
    ct_topology_facts ring = facts_of("ring", 2000);
    CHECK_NEAR(ring.lambda_2, 1.0 / 3 + 2.0 / 3 * cos(2 * pi / 2000), 1e-11);
    CHECK_NEAR(ring.lambda_min, -1.0 / 3, 1e-11);
    CHECK(ring.diameter == 1000);
    ct_topology_facts cube = facts_of("hypercube", 4096);
    CHECK(cube.diameter == 12);
    CHECK_NEAR(cube.lambda_2, 11.0 / 13, 1e-12);
    CHECK_NEAR(cube.lambda_min, -11.0 / 13, 1e-12);
}

static void check_tree(const char *spec, int n, bool expect_tree) {
    ct_topology t = {0}, tree = {0};
    bool was_tree = !expect_tree;
    REQUIRE_OK(ct_topology_create(spec, n, 1, &t));
    REQUIRE_OK(ct_topology_spanning_tree(&t, &tree, &was_tree));
    CHECK(was_tree == expect_tree);
    CHECK(tree.n == n && tree.begin[n] == 2 * (n - 1));
    CHECK(is_well_formed(&tree) && is_connected(&tree));
    for (int i = 0; i < n; i++)
        for (int k = tree.begin[i]; k < tree.begin[i + 1]; k++)
            CHECK(ct_topology_has_edge(&t, i, tree.neighbour[k]));
    if (was_tree) {
        CHECK(memcmp(t.neighbour, tree.neighbour, (size_t)t.begin[n] * sizeof(int)) == 0);
        CHECK(strcmp(t.name, tree.name) == 0);
    }
    ct_topology_free(&tree);
    ct_topology_free(&t);
}

static void spanning_trees_span(void) {
    check_tree("chain", 6, true);
    check_tree("star", 6, true);
    check_tree("ring", 1, true);
    check_tree("ring", 2, true);
    check_tree("ring", 3, false);
    check_tree("ring", 16, false);
    check_tree("full", 9, false);
    check_tree("torus", 32, false);
    check_tree("dyck", 32, false);
    check_tree("random-regular", 50, false);
}

static void a_rings_tree_is_the_chain(void) {
    ct_topology ring = {0}, tree = {0};
    bool was_tree = true;
    REQUIRE_OK(ct_topology_create("ring", 6, 0, &ring));
    REQUIRE_OK(ct_topology_spanning_tree(&ring, &tree, &was_tree));
    CHECK(!was_tree && strcmp(tree.name, "tree of ring") == 0);
    for (int i = 0; i + 1 < 6; i++) CHECK(ct_topology_has_edge(&tree, i, i + 1));
    CHECK(!ct_topology_has_edge(&tree, 0, 5));
    ct_topology_free(&tree);
    ct_topology_free(&ring);
}

static void other_trees_are_breadth_first(void) {
    ct_topology full = {0}, tree = {0};
    bool was_tree = true;
    REQUIRE_OK(ct_topology_create("full", 7, 0, &full));
    REQUIRE_OK(ct_topology_spanning_tree(&full, &tree, &was_tree));
    for (int i = 1; i < 7; i++) CHECK(ct_topology_degree(&tree, i) == 1);
    CHECK(ct_topology_degree(&tree, 0) == 6);
    ct_topology_free(&tree);
    ct_topology_free(&full);
}

static void random_graphs_follow_their_seed(void) {
    ct_topology a = {0}, b = {0}, c = {0};
    REQUIRE_OK(ct_topology_create("random-regular", 40, 7, &a));
    REQUIRE_OK(ct_topology_create("random-regular", 40, 7, &b));
    REQUIRE_OK(ct_topology_create("random-regular", 40, 8, &c));
    CHECK(memcmp(a.neighbour, b.neighbour, 120 * sizeof(int)) == 0);
    CHECK(memcmp(a.neighbour, c.neighbour, 120 * sizeof(int)) != 0);
    ct_topology_free(&a);
    ct_topology_free(&b);
    ct_topology_free(&c);
}

static void random_graphs_have_every_possible_degree(void) {
    for (int n = 1; n <= 24; n++) {
        for (int degree = 0; degree < n; degree++) {
            char spec[32];
            snprintf(spec, sizeof spec, "random-regular:%d", degree);
            ct_topology t = {0};
            bool possible = n * degree % 2 == 0 && (degree >= 2 || degree == n - 1);
            if (!possible) {
                CHECK_FAILS(ct_topology_create(spec, n, 5, &t), CT_INVAL, spec);
                continue;
            }
            REQUIRE_OK(ct_topology_create(spec, n, 5, &t));
            CHECK(is_well_formed(&t) && is_connected(&t));
            for (int i = 0; i < n; i++) CHECK(ct_topology_degree(&t, i) == degree);
            ct_topology_free(&t);
        }
    }
    static const int defaults[][2] = {{1, 0}, {2, 1}, {3, 2}, {4, 3}, {5, 4}, {6, 3}, {7, 4}};
    for (int k = 0; k < 7; k++)
        CHECK(facts_of("random-regular", defaults[k][0]).min_degree == defaults[k][1]);
}

static void impossible_requests_are_refused(void) {
    static const struct {
        const char *spec;
        int n;
        const char *words;
    } cases[] = {
        {"moebius", 8, "no --topology 'moebius'; known: ring, chain, full"},
        {"", 8, "no --topology ''"},
        {"Ring", 8, "no --topology 'Ring'"},
        {"rin", 8, "no --topology 'rin'"},
        {"ring", 0, "0 agents: must be 1 .. 65536"},
        {"ring", -3, "-3 agents"},
        {"ring", CT_MAX_AGENTS + 1, "65537 agents"},
        {"ring:4", 4, "ring takes no argument"},
        {"ring:", 4, "ring takes no argument"},
        {"dyck", 16, "'dyck' has 32 agents, not 16"},
        {"dyck:32", 32, "takes no argument"},
        {"dyck-wacv24", 31, "has 32 agents, not 31"},
        {"petersen", 11, "has 10 agents, not 11"},
        {"hypercube", 12, "12 agents: must be a power of two"},
        {"torus:4x8", 30, "must be the number of agents, 30"},
        {"torus:4", 4, "expected rows x columns"},
        {"torus:", 4, "expected rows x columns"},
        {"torus:4x8x1", 32, "expected rows x columns"},
        {"torus:-4x-8", 32, "must be the number of agents, 32"},
        {"torus:0x0", 1, "must be the number of agents, 1"},
        {"torus:4294967296x4294967297", 1, "must be the number of agents, 1"},
        {"grid:ax8", 32, "expected rows x columns"},
        {"random-regular:3", 7, "agents times degree must be even"},
        {"random-regular:7", 7, "less than the number of agents"},
        {"random-regular:-1", 7, "less than the number of agents"},
        {"random-regular:3x", 8, "must be a number"},
        {"random-regular:1", 8, "must be at least 2"},
        {"random-regular:60000", 65536, "more than 67108864 edges"},
        {"full", 65536, "2147450880 edges"},
        {"file", 4, "needs a path"},
        {"file:", 4, "needs a path"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ct_topology t = {0};
        CHECK_FAILS(ct_topology_create(cases[k].spec, cases[k].n, 0, &t), CT_INVAL, cases[k].words);
        CHECK(t.begin == NULL);
    }
}

/* Writes `text` as an edge file and reads it as a graph of n agents. */
static ct_status read_edges(const char *text, size_t n_text, int n, ct_topology *out) {
    char spec[256], path[200];
    snprintf(path, sizeof path, "%s-case", edge_path);
    snprintf(spec, sizeof spec, "file:%s", path);
    CT_TRY(ct_file_write(path, text, n_text));
    ct_status status = ct_topology_create(spec, n, 0, out);
    remove(path);
    return status;
}

static void edge_files_are_read(void) {
    static const char *const texts[] = {"0 1\n1 2\n2 3\n", "0,1\n1, 2\n2 ,3",
                                        "# a comment\n\n  3\t2 # the last one\r\n2 1\r\n1 0\r\n"};
    for (int k = 0; k < 3; k++) {
        ct_topology t = {0};
        REQUIRE_OK(read_edges(texts[k], strlen(texts[k]), 4, &t));
        CHECK(t.begin[4] == 6 && ct_topology_has_edge(&t, 0, 1) && ct_topology_has_edge(&t, 2, 1) &&
              ct_topology_has_edge(&t, 2, 3));
        ct_topology_free(&t);
    }
}

static void bad_edge_files_are_refused_with_their_line(void) {
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "no edges"},
        {"# nothing\n\n", "no edges"},
        {"0 1\n2 2\n", "line 2: agent 2 is joined to itself"},
        {"0 1\n1 4\n", "line 2: agent 4 is not one of 0 .. 3"},
        {"0 1\n-1 2\n", "line 2: agent -1"},
        {"0 1\n1 99999999999\n", "line 2: agent 99999999999"},
        {"0 1\n1 2\n1 0\n2 3\n", "line 3: the edge 0 1 is on line 1 already"},
        {"0 1\n\none two\n", "line 3: expected two agents"},
        {"0\n", "line 1: expected two agents"},
        {"0 1 2\n", "line 1: expected two agents"},
        {"0 1x\n", "line 1: expected two agents"},
        {"0;1\n", "line 1: expected two agents"},
        {"0,,1\n", "line 1: expected two agents"},
        {"0 1.0\n", "line 1: expected two agents"},
        {"0 1\n2 3\n", "not connected: agent 2 cannot reach agent 0"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ct_topology t = {0};
        CHECK_FAILS(read_edges(cases[k].text, strlen(cases[k].text), 4, &t), CT_IO, cases[k].words);
        CHECK(t.begin == NULL);
    }
    ct_topology t = {0};
    CHECK_FAILS(read_edges("0 1\n1\0 2\n", 9, 3, &t), CT_IO, "line 2: a zero byte");
    CHECK_FAILS(ct_topology_create("file:/no/such/file", 4, 0, &t), CT_IO, "/no/such/file");
}

static void a_long_path_is_only_cut_in_the_name(void) {
    char spec[512];
    snprintf(spec, sizeof spec, "file:%s%s",
             "/./././././././././././././././././././././././././././././.", edge_path);
    ct_topology t = {0};
    REQUIRE_OK(ct_topology_create(spec, 4, 0, &t));
    CHECK(strlen(t.name) == sizeof t.name - 1 && strncmp(t.name, spec, sizeof t.name - 1) == 0);
    ct_topology_free(&t);
    ct_topology_free(&t);
}

int main(void) {
    static const char edges[] = "0 1\n1 2\n2 0\n2 3\n";
    int fd = mkstemp(edge_path);
    if (fd < 0 || write(fd, edges, strlen(edges)) != (ssize_t)strlen(edges)) return 1;
    close(fd);
    TEST(every_graph_is_connected_and_mixes_doubly_stochastically);
    TEST(the_papers_graphs_have_the_papers_numbers);
    TEST(rings_have_the_eigenvalues_of_a_ring);
    TEST(other_graphs_have_their_textbook_eigenvalues);
    TEST(one_agent_mixes_with_itself);
    TEST(two_agents_share_one_edge);
    TEST(narrow_tori_have_no_double_edges);
    TEST(neighbours_are_who_they_should_be);
    TEST(metropolis_weights_follow_the_larger_degree);
    TEST(wrong_mixing_matrices_are_refused);
    TEST(both_ways_to_the_spectrum_agree);
    TEST(the_diameter_of_round_graphs_is_that_of_any);
    TEST(thousands_of_agents_are_measured_too);
    TEST(spanning_trees_span);
    TEST(a_rings_tree_is_the_chain);
    TEST(other_trees_are_breadth_first);
    TEST(random_graphs_follow_their_seed);
    TEST(random_graphs_have_every_possible_degree);
    TEST(impossible_requests_are_refused);
    TEST(edge_files_are_read);
    TEST(bad_edge_files_are_refused_with_their_line);
    TEST(a_long_path_is_only_cut_in_the_name);
    remove(edge_path);
    return test_report();
}
