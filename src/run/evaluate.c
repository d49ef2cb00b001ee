#include "run/run.h"

#include "util/memory.h"

/* The test part in batches of the plan's size, in order. */
typedef struct test_set {
    uint32_t *index;
    ct_batch *batches;
    int n_batches;
} test_set;

static void test_set_free(test_set *t) {
    ct_free(t->index);
    ct_free(t->batches);
    *t = (test_set){0};
}

static ct_status test_set_create(const ct_run *run, test_set *out) {
    size_t n = run->dataset.test.n, size = (size_t)run->plan->max_batch;
    size_t n_batches = (n + size - 1) / size;
    test_set t = {.index = ct_new(uint32_t, n),
                  .batches = ct_new(ct_batch, n_batches),
                  .n_batches = (int)n_batches};
    if (t.index == NULL || t.batches == NULL) {
        test_set_free(&t);
        return ct_fail(CT_NOMEM, "no memory for the test batches");
    }
    for (size_t i = 0; i < n; i++) t.index[i] = (uint32_t)i;
    for (size_t b = 0; b < n_batches; b++) {
        size_t first = b * size, left = n - first;
        t.batches[b] = (ct_batch){.n = (int)(left < size ? left : size), .index = t.index + first};
    }
    *out = t;
    return CT_OK;
}

/* Accuracy and mean loss of rows first .. first+n_rows-1, all jobs in one call. */
static ct_status score_rows(ct_run *run, const test_set *t, const ct_bank *params, ct_bank *running,
                            int first, int n_rows, double *accuracy, double *loss) {
    size_t n_jobs = (size_t)n_rows * (size_t)t->n_batches;
    ct_job *jobs = ct_new(ct_job, n_jobs);
    ct_score *scores = ct_new(ct_score, n_jobs);
    ct_status status =
        jobs != NULL && scores != NULL ? CT_OK : ct_fail(CT_NOMEM, "no memory for scores");
    if (status == CT_OK) {
        for (size_t k = 0; k < n_jobs; k++)
            jobs[k] = (ct_job){.model = first + (int)(k / (size_t)t->n_batches),
                               .batch = (int)(k % (size_t)t->n_batches)};
        ct_work work = {.params = params,
                        .buffers = running->n > 0 ? running : NULL,
                        .source = run->test,
                        .batches = t->batches,
                        .jobs = jobs,
                        .n_jobs = (int)n_jobs};
        status = ct_evaluate(run->plan, &work, scores, NULL);
    }
    for (int i = 0; i < n_rows && status == CT_OK; i++) {
        double n = 0, correct = 0, sum = 0;
        for (int b = 0; b < t->n_batches; b++) {
            const ct_score *s = &scores[i * t->n_batches + b];
            n += s->n;
            correct += s->n_correct;
            sum += s->loss_sum;
        }
        accuracy[i] = correct / n;
        loss[i] = sum / n;
    }
    ct_free(jobs);
    ct_free(scores);
    return status;
}

ct_status ct_run_score(ct_run *run, const ct_bank *params, ct_bank *running, int row,
                       double *accuracy, double *loss) {
    test_set t = {0};
    CT_TRY(test_set_create(run, &t));
    ct_status status = score_rows(run, &t, params, running, row, 1, accuracy, loss);
    test_set_free(&t);
    return status;
}

static ct_status update_consensus(ct_run *run) {
    ct_update u = {.n_rows = run->n_worlds};
    SET(&u, &run->consensus, {1, &run->agents.x, &run->mean});
    CT_TRY(ct_update_run(run->backend, &u));
    if (run->graph.n_buffer_values == 0) return CT_OK;
    ct_update v = {.n_rows = run->n_worlds};
    SET(&v, &run->consensus_running, {1, &run->agents.running, &run->mean});
    return ct_update_run(run->backend, &v);
}

/* (1/n) sum_i |x_i - mean|^2 of one world */
static ct_status measure_distance(ct_run *run, int world, float *mean, float *row, double *out) {
    size_t n = run->graph.n_weights;
    int n_agents = run->agents.n_agents;
    double sum = 0;
    CT_TRY(ct_bank_read(&run->consensus, world, 0, n, mean));
    for (int i = 0; i < n_agents; i++) {
        CT_TRY(ct_bank_read(&run->agents.x, world * n_agents + i, 0, n, row));
        for (size_t k = 0; k < n; k++) {
            double d = (double)row[k] - (double)mean[k];
            sum += d * d;
        }
    }
    *out = sum / n_agents;
    return CT_OK;
}

static ct_status measure_distances(ct_run *run, ct_evaluation *out) {
    float *mean = ct_new(float, run->graph.n_weights), *row = ct_new(float, run->graph.n_weights);
    ct_status status = mean != NULL && row != NULL ? CT_OK : ct_fail(CT_NOMEM, "no memory");
    for (int k = 0; k < run->n_worlds && status == CT_OK; k++)
        status = measure_distance(run, k, mean, row, &out[k].consensus_distance);
    ct_free(mean);
    ct_free(row);
    return status;
}

static void summarise(const double *accuracy, int n, ct_evaluation *e) {
    e->local_accuracy_mean = 0;
    e->local_accuracy_min = e->local_accuracy_max = accuracy[0];
    for (int i = 0; i < n; i++) {
        e->local_accuracy_mean += accuracy[i] / n;
        if (accuracy[i] < e->local_accuracy_min) e->local_accuracy_min = accuracy[i];
        if (accuracy[i] > e->local_accuracy_max) e->local_accuracy_max = accuracy[i];
    }
}

/* accuracy and loss have room for every row. */
static ct_status evaluate_all(ct_run *run, const test_set *t, double *accuracy, double *loss,
                              ct_evaluation *out) {
    int n = run->agents.n_agents;
    CT_TRY(update_consensus(run));
    CT_TRY(measure_distances(run, out));
    CT_TRY(score_rows(run, t, &run->consensus, &run->consensus_running, 0, run->n_worlds, accuracy,
                      loss));
    for (int k = 0; k < run->n_worlds; k++) {
        out[k].consensus_accuracy = accuracy[k];
        out[k].consensus_loss = loss[k];
    }
    CT_TRY(
        score_rows(run, t, &run->agents.x, &run->agents.running, 0, run->agents.n, accuracy, loss));
    for (int k = 0; k < run->n_worlds; k++) summarise(accuracy + k * n, n, &out[k]);
    return CT_OK;
}

ct_status ct_run_evaluate(ct_run *run, ct_evaluation *out) {
    test_set t = {0};
    double *accuracy = ct_new(double, (size_t)run->agents.n);
    double *loss = ct_new(double, (size_t)run->agents.n);
    ct_status status = accuracy != NULL && loss != NULL ? CT_OK : ct_fail(CT_NOMEM, "no memory");
    if (status == CT_OK) status = test_set_create(run, &t);
    if (status == CT_OK) status = evaluate_all(run, &t, accuracy, loss, out);
    test_set_free(&t);
    ct_free(accuracy);
    ct_free(loss);
    return status;
}
