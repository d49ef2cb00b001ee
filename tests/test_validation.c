/* Evaluations: what they compute, and samples that are held out of training to choose rates by: nobody trains on them, they are not the
 * test set, and what is picked does not depend on the latter. */
#include "runs.h"

#include <stdlib.h>
#include <unistd.h>

#define HELD "--agents 5 --validation-fraction 0.2 --shuffle on "

enum { MOST = 256 };

/* How often every training sample is in the lists of a world's agents. */
static void count(const ct_partition *p, int first, int n, int *counts) {
    for (int row = first; row < first + n; row++)
        for (size_t k = p->begin[row]; k < p->begin[row + 1]; k++) counts[p->index[k]]++;
}

static void nobody_trains_on_what_is_held_out(void) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, HELD "--seeds 1,2", &run));
    REQUIRE(run.dataset.train.n <= MOST);
    for (int world = 0; world < 2; world++) {
        int held[MOST] = {0}, trained[MOST] = {0}, visited[MOST] = {0};
        count(&run.held, 5 * world, 5, held);
        count(&run.trained, 5 * world, 5, trained);
        for (long t = 0; t < 3 * run.epoch_iterations; t++)
            for (int row = 5 * world; row < 5 * world + 5; row++) {
                ct_batch batch = ct_order_batch(run.order, row, t);
                for (int k = 0; k < batch.n; k++) visited[batch.index[k]]++;
            }
        int n_held = 0;
        for (size_t i = 0; i < run.dataset.train.n; i++) {
            CHECK(held[i] + trained[i] == 1); /* all are the one or the other */
            CHECK((visited[i] > 0) == (trained[i] > 0));
            n_held += held[i];
        }
        CHECK(n_held == 5 * 6); /* a fifth of 30 each */
    }
    ct_run_clear(&run);
}

/* Not where a sample stands in its agent's list. */
static void the_choice_depends_on_seed_and_samples_alone(void) {
    static ct_run one, same, other;
    int a[MOST] = {0}, b[MOST] = {0}, c[MOST] = {0};
    char path[] = P_tmpdir "/crosstalk-XXXXXX", backwards[256], seeded[288];
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, HELD, &one));
    dprintf(file, "index,agent\n");
    for (int row = 0; row < 5; row++)
        for (size_t k = one.partition.begin[row + 1]; k-- > one.partition.begin[row];)
            dprintf(file, "%u,%d\n", one.partition.index[k], row);
    close(file);
    snprintf(backwards, sizeof backwards, HELD "--partition-file %s", path);
    snprintf(seeded, sizeof seeded, "%s --seed 2", backwards);
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, backwards, &same));
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, seeded, &other));
    unlink(path);
    count(&one.held, 0, 5, a);
    count(&same.held, 0, 5, b);
    count(&other.held, 0, 5, c);
    CHECK(memcmp(a, b, sizeof a) == 0);
    CHECK(memcmp(a, c, sizeof a) != 0);
    ct_run_clear(&one);
    ct_run_clear(&same);
    ct_run_clear(&other);
}

/* Sample by sample, the mean of the agents' models taken here. */
static void the_score_is_that_of_the_consensus_model_on_them(void) {
    static ct_run run;
    static float row[RUN_MAX_COLUMNS];
    static double mean[RUN_MAX_COLUMNS];
    ct_evaluation e[1];
    double n_correct = 0, loss = 0, n = 0;
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, HELD "--lr 0.05", &run));
    run_steps(&run, 0, 12);
    CHECK_OK(ct_run_score_all(&run, true, e));
    ct_bank model = {0};
    CHECK_OK(ct_bank_create(run.backend, 1, 0, run.graph.n_weights, &model));
    memset(mean, 0, sizeof mean);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, run.graph.n_weights, row));
        for (size_t k = 0; k < run.graph.n_weights; k++) mean[k] += (double)row[k] / 5;
    }
    for (size_t k = 0; k < run.graph.n_weights; k++) row[k] = (float)mean[k];
    CHECK_OK(ct_bank_write(&model, 0, 0, run.graph.n_weights, row));
    for (size_t k = 0; k < run.held.begin[5]; k++) {
        ct_batch batch = {.n = 1, .index = &run.held.index[k]};
        ct_job job = {0};
        ct_score score;
        ct_work work = {
            .params = &model, .source = run.train, .batches = &batch, .jobs = &job, .n_jobs = 1};
        CHECK_OK(ct_evaluate(run.plan, &work, &score, NULL));
        n += score.n;
        n_correct += score.n_correct;
        loss += score.loss_sum;
    }
    CHECK_NEAR(e[0].validation_accuracy, n_correct / n, 1e-12);
    CHECK_NEAR(e[0].validation_loss, loss / n, 1e-5);
    ct_bank_free(&model);
    ct_run_clear(&run);
}

/* ---- what an evaluation computes ---- */

static ct_status (*real_evaluate)(ct_plan *, const ct_work *, ct_score *, int *);
static int n_jobs;

static ct_status count_jobs(ct_plan *plan, const ct_work *work, ct_score *scores, int *classes) {
    n_jobs += work->n_jobs;
    return real_evaluate(plan, work, scores, classes);
}

/* A job a batch of 32 and model; the consensus is the same with and without. */
static void own_models_are_tested_only_where_they_are_wanted(void) {
    static ct_run run;
    static ct_backend_ops ops;
    ct_evaluation all[1], one[1];
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, "--agents 5 --lr 0.05", &run));
    run_steps(&run, 0, 3);
    const int n_batches = (int)(run.dataset.test.n + 31) / 32;
    ops = *run.plan->ops;
    real_evaluate = ops.evaluate;
    ops.evaluate = count_jobs;
    run.plan->ops = &ops;
    n_jobs = 0;
    CHECK_OK(ct_run_score_all(&run, false, one));
    CHECK(n_jobs == n_batches);
    CHECK(isnan(one->local_accuracy_mean) && isnan(one->local_accuracy_min));
    CHECK(isnan(run.local_accuracy[4]));
    n_jobs = 0;
    CHECK_OK(ct_run_score_all(&run, true, all));
    CHECK(n_jobs == 6 * n_batches);
    CHECK(all->local_accuracy_min <= all->local_accuracy_mean && isfinite(run.local_accuracy[4]));
    CHECK(one->consensus_accuracy == all->consensus_accuracy);
    CHECK(one->consensus_loss == all->consensus_loss);
    CHECK(one->consensus_distance == all->consensus_distance && one->diverged == -1);
    ct_run_clear(&run);
}

/* Without scores of its own, its parameters tell. */
static void an_agent_that_diverged_is_named_without_a_test_of_its_own(void) {
    static ct_run run;
    ct_evaluation e[1];
    const float wild = INFINITY;
    REQUIRE_OK(run_create("cpu", RUN_PLAIN, "--agents 5", &run));
    CHECK_OK(ct_bank_write(&run.agents.x, 3, 7, 1, &wild));
    CHECK_OK(ct_run_score_all(&run, false, e));
    CHECK(e->diverged == 3);
    ct_run_clear(&run);
}

static void what_cannot_be_held_out_is_refused(void) {
    static ct_run run;
    CHECK_FAILS(run_create("cpu", RUN_PLAIN, "--agents 5 --validation-fraction 1", &run), CT_INVAL,
                "validation-fraction");
    CHECK_FAILS(run_create("cpu", RUN_PLAIN, HELD "--batch-size 25", &run), CT_INVAL,
                "more than the 24 samples");
    CHECK_FAILS(run_create("cpu", RUN_PLAIN, HELD "--partition own", &run), CT_INVAL, "own");
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(nobody_trains_on_what_is_held_out);
    TEST(the_choice_depends_on_seed_and_samples_alone);
    TEST(the_score_is_that_of_the_consensus_model_on_them);
    TEST(own_models_are_tested_only_where_they_are_wanted);
    TEST(an_agent_that_diverged_is_named_without_a_test_of_its_own);
    TEST(what_cannot_be_held_out_is_refused);
    return test_report();
}
