/* Where the algorithms end up. Every agent i minimises a quadratic with a minimum of its own,
 *   f_i(x) = 1/2 sum_k A_ik (x_k - b_ik)^2,   gradient A_i (x - b_i),
 * so that the optimum of the sum, x* = sum_i A_i b_i / sum_i A_i, and the points where a biased
 * method stops are known. The gradients are a backend's: its operation is replaced, the algorithms
 * do not know. */
#include "runs.h"

#include <unistd.h>

#include "backend/host.h"
#include "util/log.h"
#include "util/rng.h"

enum { MAX_N = 16 };

static double curvature[MAX_N][RUN_MAX_COLUMNS], minimum[MAX_N][RUN_MAX_COLUMNS];

static void draw_problem(void) {
    ct_rng rng;
    ct_rng_init(&rng, 3, CT_RNG_TEST, 0, 0, 77);
    for (int i = 0; i < MAX_N; i++)
        for (int k = 0; k < RUN_MAX_COLUMNS; k++) {
            curvature[i][k] = 0.5 + ct_rng_uniform(&rng);
            minimum[i][k] = ct_rng_normal(&rng);
        }
}

/* A job is model row m on agent d's samples: here, on f_d. */
static ct_status quadratic_gradient(ct_plan *plan, const ct_work *work,
                                    const ct_objective *objective, ct_bank *gradient,
                                    ct_bank *losses, size_t column) {
    (void)plan, (void)objective, (void)losses, (void)column;
    for (int j = 0; j < work->n_jobs; j++) {
        const ct_job *job = &work->jobs[j];
        const float *x = ct_host_row(work->params, job->model);
        float *g = ct_host_row(gradient, job->out);
        for (size_t k = 0; k < gradient->n; k++)
            g[k] = (float)(curvature[job->batch][k] * ((double)x[k] - minimum[job->batch][k]));
    }
    return CT_OK;
}

static ct_backend_ops quadratic_ops;
static ct_run run;

/* A run whose gradients are the quadratics', all agents at zero. */
static ct_status create(const char *options) {
    static const float zeros[RUN_MAX_COLUMNS];
    CT_TRY(run_create("ref",
                      "--partition iid --model mlp:1 --loss ce --batch-size 4 --momentum 0 "
                      "--weight-decay 0 --lr-schedule constant --epochs 100000",
                      options, &run));
    quadratic_ops = *run.backend->ops;
    quadratic_ops.gradient = quadratic_gradient;
    run.plan->ops = &quadratic_ops;
    for (int i = 0; i < run.agents.n; i++)
        CT_TRY(ct_bank_write(&run.agents.x, i, 0, run.graph.n_weights, zeros));
    return CT_OK;
}

static double optimum(size_t k) {
    double above = 0, below = 0;
    for (int i = 0; i < run.agents.n; i++) {
        above += curvature[i][k] * minimum[i][k];
        below += curvature[i][k];
    }
    return above / below;
}

static double model(int i, size_t k) {
    float value = NAN;
    CHECK_OK(ct_bank_read(&run.agents.x, i, k, 1, &value));
    return (double)value;
}

/* The largest distance of any agent from the optimum, in any column. */
static double distance_to_optimum(void) {
    double worst = 0;
    for (size_t k = 0; k < run.graph.n_weights; k++)
        for (int i = 0; i < run.agents.n; i++) worst = fmax(worst, fabs(model(i, k) - optimum(k)));
    return worst;
}

static void check_reaches_optimum(const char *options, long n_steps, double tolerance) {
    REQUIRE_OK(create(options));
    CHECK(distance_to_optimum() > 0.5);
    run_steps(&run, 0, n_steps);
    double distance = distance_to_optimum();
    if (!(distance <= tolerance)) printf("    with %s\n", options);
    CHECK_NEAR(distance, 0, tolerance);
    ct_run_clear(&run);
}

/* Solves M y = v, n x n, in place by Gauss' method with pivots; the answer is left in v. */
static void solve(double m[MAX_N][MAX_N], double *v, int n) {
    for (int c = 0; c < n; c++) {
        int pivot = c;
        for (int i = c; i < n; i++)
            if (fabs(m[i][c]) > fabs(m[pivot][c])) pivot = i;
        for (int j = 0; j < n; j++) {
            double t = m[c][j];
            m[c][j] = m[pivot][j];
            m[pivot][j] = t;
        }
        double t = v[c];
        v[c] = v[pivot];
        v[pivot] = t;
        for (int i = 0; i < n; i++) {
            double f = i == c ? 0 : m[i][c] / m[c][c];
            for (int j = 0; j < n; j++) m[i][j] -= f * m[c][j];
            v[i] -= f * v[c];
        }
    }
    for (int c = 0; c < n; c++) v[c] /= m[c][c];
}

/* Where (I - W) x + eta L A (x - b) = 0, with L = W (adapt, then combine) or I (the other way
 * round): decentralized SGD stands still there, not in the optimum. */
static void biased_point(size_t k, double eta, bool adapts_first, double *x) {
    double m[MAX_N][MAX_N];
    int n = run.agents.n;
    for (int i = 0; i < n; i++) {
        x[i] = 0;
        for (int j = 0; j < n; j++) {
            double w = ct_sparse_get(&run.w, i, j), l = adapts_first ? w : i == j;
            m[i][j] = (i == j) - w + eta * l * curvature[j][k];
            x[i] += eta * l * curvature[j][k] * minimum[j][k];
        }
    }
    solve(m, x, n);
}

static void check_stops_at(const char *options, double eta, bool adapts_first) {
    double expected[MAX_N];
    REQUIRE_OK(create(options));
    run_steps(&run, 0, 1500);
    for (size_t k = 0; k < run.graph.n_weights; k += 7) {
        biased_point(k, eta, adapts_first, expected);
        for (int i = 0; i < run.agents.n; i++) CHECK_NEAR(model(i, k), expected[i], 1e-5);
    }
    CHECK(distance_to_optimum() > 0.02);
    ct_run_clear(&run);
}

static void decentralized_sgd_stops_at_its_biased_point(void) {
    check_stops_at("--algorithm dsgd --agents 6 --topology ring --lr 0.1", 0.1, true);
    check_stops_at("--algorithm dsgd --agents 7 --topology star --lr 0.2", 0.2, true);
    check_stops_at("--algorithm dsgdm --momentum 0.5 --agents 6 --topology ring --lr 0.05", 0.1,
                   true);
}

/* The distance that is left after a whole run. */
static double distance_after(const char *options) {
    double distance = NAN;
    if (create(options) != CT_OK) return NAN;
    run_steps(&run, 0, (long)run.config.epochs * run.epoch_iterations);
    distance = distance_to_optimum();
    ct_run_clear(&run);
    return distance;
}

static void decentralized_sgd_nears_the_optimum_as_the_rate_goes_to_zero(void) {
    double constant = distance_after("--algorithm dsgd --agents 6 --lr 0.2 --epochs 400");
    double falling = distance_after("--algorithm dsgd --agents 6 --lr 0.2 --epochs 400 "
                                    "--lr-schedule poly --lr-power 2");
    CHECK(constant > 0.1);
    CHECK(falling < 0.1 * constant);
}

/* Corrected for the others' data, at a constant rate. */
static void tracking_methods_reach_the_optimum(void) {
    check_reaches_optimum("--algorithm gt --agents 6 --topology ring --lr 0.1", 1500, 1e-5);
    check_reaches_optimum("--algorithm gt --agents 7 --topology star --lr 0.1 --gamma 0.8", 2500,
                          1e-5);
    check_reaches_optimum("--algorithm gt --agents 6 --topology ring --lr 0.02 --momentum 0.9",
                          2500, 1e-5);
    check_reaches_optimum("--algorithm mt --agents 6 --topology ring --lr 0.1", 1500, 1e-5);
    check_reaches_optimum("--algorithm mt --agents 6 --topology chain --lr 0.02 --momentum 0.9",
                          2500, 1e-5);
    check_reaches_optimum("--algorithm gt --variant atc --agents 6 --lr 0.1", 1500, 1e-5);
    check_reaches_optimum("--algorithm mt --variant tmlr23 --agents 6 --topology chain --lr 0.02 "
                          "--momentum 0.9",
                          2500, 1e-5);
    check_reaches_optimum("--algorithm d2 --agents 6 --topology ring --lr 0.1", 1500, 1e-5);
    check_reaches_optimum("--algorithm d2 --agents 7 --topology chain --lr 0.1", 2500, 1e-5);
    check_reaches_optimum("--algorithm edm --agents 6 --topology ring --lr 0.1 --momentum 0.9",
                          2500, 1e-5);
    check_reaches_optimum("--algorithm edm --agents 7 --topology chain --lr 0.1 --momentum 0.5",
                          2500, 1e-5);
    check_reaches_optimum("--algorithm motef --agents 6 --topology ring --lr 0.1 --momentum 0.9",
                          2500, 1e-5);
    check_reaches_optimum("--algorithm motef --agents 7 --topology star --lr 0.1 --gamma 0.8", 2500,
                          1e-5);
}

/* What compression leaves out is sent in the end. */
static void compressed_tracking_reaches_the_optimum(void) {
    check_reaches_optimum("--algorithm motef --agents 6 --topology ring --lr 0.05 --momentum 0.9 "
                          "--compress top-k:0.2 --gamma 0.3",
                          6000, 1e-4);
    check_reaches_optimum("--algorithm motef --agents 6 --topology star --lr 0.05 --momentum 0.5 "
                          "--compress quantize:4",
                          6000, 1e-4);
}

static void relayed_and_centralized_methods_reach_the_optimum(void) {
    check_reaches_optimum("--algorithm relaysgd --topology chain --agents 6 --lr 0.1", 1500, 1e-5);
    check_reaches_optimum("--algorithm relaysgd --topology star --agents 7 --lr 0.05 "
                          "--relay-fill self --momentum 0.5",
                          1500, 1e-5);
    check_reaches_optimum("--algorithm relaysgd --topology double-binary-tree --agents 7 --lr 0.1",
                          1500, 1e-5);
    check_reaches_optimum("--algorithm allreduce --agents 6 --lr 0.1", 500, 1e-5);
    check_reaches_optimum("--algorithm allreduce --agents 6 --lr 0.02 --momentum 0.9", 1000, 1e-5);
}

/* Push-sum corrects for a graph that favours some agents; the bias of decentralized SGD goes with
 * the rate. */
static void gradient_push_nears_the_optimum_on_a_directed_graph(void) {
    double constant = distance_after("--algorithm sgp --agents 5 --lr 0.2 --epochs 300 "
                                     "--topology schedule:related/directed.txt");
    double falling = distance_after("--algorithm sgp --agents 5 --lr 0.2 --epochs 300 "
                                    "--lr-schedule poly --lr-power 2 "
                                    "--topology schedule:related/directed.txt");
    CHECK(constant > 0.1);
    CHECK(falling < 0.1 * constant);
}

/* A period of Base-(k+1) is an exact average, and tracking still sums up over changing graphs. */
static void gradient_tracking_reaches_the_optimum_on_changing_graphs(void) {
    check_reaches_optimum("--algorithm gt --agents 6 --topology base --lr 0.05", 2500, 1e-5);
    check_reaches_optimum("--algorithm gt --agents 8 --topology one-peer-exponential --lr 0.05",
                          2500, 1e-5);
    check_reaches_optimum("--algorithm gt --agents 7 --topology matchings --lr 0.05", 4000, 1e-4);
}

/* The fixed point of global update tracking is that of decentralized SGD at the rate
 * (1 - mu) eta. */
static void global_update_tracking_shrinks_the_bias_by_one_minus_mu(void) {
    check_stops_at("--algorithm gut --gut-mu 0.6 --agents 6 --topology ring --lr 0.1", 0.04, false);
    check_stops_at("--algorithm gut --gut-mu 0 --agents 7 --topology star --lr 0.1", 0.1, false);
    check_stops_at("--algorithm gut --gut-mu 0.5 --momentum 0.5 --agents 6 --topology chain "
                   "--lr 0.05",
                   0.025, false);
}

/* A torus' smallest eigenvalue is -0.6; gossip in the momentum overshoots where gamma 1.6 is above
 * 1.402 (Nesterov) or 1.357. The paper's own update has no such limit. */
static void gossip_in_the_momentum_diverges_above_its_limit(void) {
    static const struct {
        const char *options;
        bool diverges;
    } cases[] = {
        {"--variant wacv24 --gamma 0.89", true},
        {"--variant wacv24 --gamma 0.865", false},
        {"--variant wacv24 --gamma 0.865 --nesterov off", true},
        {"--variant wacv24 --gamma 0.835 --nesterov off", false},
        {"--variant paper --gamma 1", false},
        {"--variant atc --gamma 1", false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char options[256];
        snprintf(options, sizeof options,
                 "--algorithm qg-dsgdm --momentum 0.9 --agents 16 --topology torus:4x4 --lr 0.001 "
                 "--epochs 100 %s",
                 cases[k].options);
        double distance = distance_after(options);
        if ((distance > 10) != cases[k].diverges) printf("    %s: %g\n", options, distance);
        CHECK((distance > 10) == cases[k].diverges);
    }
}

/* On a full graph the mean of my model's gradients over all data is the gradient of the sum. */
static void averaged_cross_gradients_reach_the_optimum_on_a_full_graph(void) {
    check_reaches_optimum("--algorithm ngc --agents 6 --topology full --lr 0.1", 500, 1e-5);
}

/* On a ring an agent hears of three agents' data: nearer to the optimum than decentralized SGD that
 * combines, then adapts (gut without tracking). */
static void cross_gradients_shrink_the_bias_on_a_ring(void) {
    double plain = distance_after("--algorithm gut --gut-mu 0 --agents 6 --lr 0.1 --epochs 100");
    double ngc = distance_after("--algorithm ngc --agents 6 --lr 0.1 --epochs 100");
    CHECK(ngc > 1e-3);
    CHECK(ngc < 0.7 * plain);
}

/* Agents that agree in the optimum: there every gradient's multiplier may hold it still. */
static void cross_gradient_aggregation_lowers_every_neighbours_loss(void) {
    REQUIRE_OK(create("--algorithm cga --agents 5 --topology full --lr 0.05"));
    double before = distance_to_optimum();
    run_steps(&run, 0, 300);
    CHECK(distance_to_optimum() < before);
    for (size_t k = 0; k < run.graph.n_weights; k += 7)
        for (int i = 1; i < 5; i++) CHECK_NEAR(model(i, k), model(0, k), 1e-2);
    ct_run_clear(&run);
}

static void agents_alone_reach_their_own_minima(void) {
    REQUIRE_OK(create("--algorithm local --agents 5 --lr 0.1"));
    run_steps(&run, 0, 400);
    for (size_t k = 0; k < run.graph.n_weights; k++)
        for (int i = 0; i < 5; i++) CHECK_NEAR(model(i, k), minimum[i][k], 1e-5);
    ct_run_clear(&run);
}

/* At the optimum with the corrections of a converged run, nothing moves when the rate changes. */
static void d2_stays_at_the_optimum_when_the_rate_changes(void) {
    REQUIRE_OK(create("--algorithm d2 --agents 6 --topology ring --lr 0.1 --epochs 100 "
                      "--lr-schedule step --lr-milestones 0.5 --lr-decay 0.3"));
    long half = 50 * run.epoch_iterations;
    CHECK(half > 200);
    run_steps(&run, 0, half);
    double before = distance_to_optimum();
    CHECK(before < 1e-3);
    run_steps(&run, half, 20);
    CHECK_NEAR(run.agents.lr, 0.03, 1e-12);
    CHECK(distance_to_optimum() <= before * 1.5 + 1e-6);
    ct_run_clear(&run);
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    draw_problem();
    TEST(decentralized_sgd_stops_at_its_biased_point);
    TEST(decentralized_sgd_nears_the_optimum_as_the_rate_goes_to_zero);
    TEST(tracking_methods_reach_the_optimum);
    TEST(compressed_tracking_reaches_the_optimum);
    TEST(relayed_and_centralized_methods_reach_the_optimum);
    TEST(gradient_push_nears_the_optimum_on_a_directed_graph);
    TEST(gradient_tracking_reaches_the_optimum_on_changing_graphs);
    TEST(global_update_tracking_shrinks_the_bias_by_one_minus_mu);
    TEST(gossip_in_the_momentum_diverges_above_its_limit);
    TEST(averaged_cross_gradients_reach_the_optimum_on_a_full_graph);
    TEST(cross_gradients_shrink_the_bias_on_a_ring);
    TEST(cross_gradient_aggregation_lowers_every_neighbours_loss);
    TEST(agents_alone_reach_their_own_minima);
    TEST(d2_stays_at_the_optimum_when_the_rate_changes);
    return test_report();
}
