#include "run/run.h"

#include <math.h>
#include <string.h>

#include "util/memory.h"

/* Rows of a bank that are to be scored, and what they have reached so far. */
typedef struct group {
    const ct_bank *params;
    ct_bank *running;
    int first, n_rows;
    ct_score *sums;      /* [n_rows] */
    uint32_t *confusion; /* [n_rows][n_classes][n_classes] true and predicted class; or NULL */
} group;

/* Enters the predictions of one job's batch into its row's confusion matrix. */
static void count_pairs(const ct_run *run, const ct_batch *batch, const int *predictions,
                        uint32_t *confusion) {
    const ct_images *images =
        run->test_loader != NULL ? ct_loader_images(run->test_loader) : &run->dataset.test;
    size_t n_classes = (size_t)run->dataset.n_classes;
    for (int s = 0; s < batch->n; s++)
        confusion[(size_t)images->labels[batch->index[s]] * n_classes + (size_t)predictions[s]]++;
}

/* Adds up scores of `n_batches` batches of run->test, all jobs in one call. */
static ct_status score_batches(ct_run *run, const ct_batch *batches, int n_batches, group *g) {
    size_t n_jobs = (size_t)g->n_rows * (size_t)n_batches, size = (size_t)run->plan->max_batch;
    size_t n_pairs = (size_t)run->dataset.n_classes * (size_t)run->dataset.n_classes;
    ct_job *jobs = ct_new(ct_job, n_jobs);
    ct_score *scores = ct_new(ct_score, n_jobs);
    int *predictions = g->confusion != NULL ? ct_new(int, n_jobs *size) : NULL;
    bool has_memory =
        jobs != NULL && scores != NULL && (predictions != NULL || g->confusion == NULL);
    ct_status status = has_memory ? CT_OK : ct_fail(CT_NOMEM, "no memory for scores");
    if (status == CT_OK) {
        for (size_t k = 0; k < n_jobs; k++)
            jobs[k] = (ct_job){.model = g->first + (int)(k / (size_t)n_batches),
                               .batch = (int)(k % (size_t)n_batches)};
        ct_work work = {.params = g->params,
                        .buffers = g->running->n > 0 ? g->running : NULL,
                        .source = run->test,
                        .batches = batches,
                        .jobs = jobs,
                        .n_jobs = (int)n_jobs};
        status = ct_evaluate(run->plan, &work, scores, predictions);
    }
    for (size_t k = 0; k < n_jobs && status == CT_OK; k++) {
        ct_score *sum = &g->sums[k / (size_t)n_batches];
        sum->n += scores[k].n;
        sum->n_correct += scores[k].n_correct;
        sum->loss_sum += scores[k].loss_sum;
        if (predictions != NULL)
            count_pairs(run, &batches[k % (size_t)n_batches], predictions + k * size,
                        g->confusion + k / (size_t)n_batches * n_pairs);
    }
    ct_free(predictions);
    ct_free(jobs);
    ct_free(scores);
    return status;
}

/* A test part in memory: batches of the plan's size, in order, all at once. */
static ct_status score_in_memory(ct_run *run, group *groups, int n_groups) {
    size_t n = run->dataset.test.n, size = (size_t)run->plan->max_batch;
    size_t n_batches = (n + size - 1) / size;
    uint32_t *index = ct_new(uint32_t, n);
    ct_batch *batches = ct_new(ct_batch, n_batches);
    ct_status status = index != NULL && batches != NULL
                           ? CT_OK
                           : ct_fail(CT_NOMEM, "no memory for the test batches");
    for (size_t i = 0; i < n && status == CT_OK; i++) index[i] = (uint32_t)i;
    for (size_t b = 0; b < n_batches && status == CT_OK; b++) {
        size_t first = b * size, left = n - first;
        batches[b] = (ct_batch){.n = (int)(left < size ? left : size), .index = index + first};
    }
    for (int k = 0; k < n_groups && status == CT_OK; k++)
        status = score_batches(run, batches, (int)n_batches, &groups[k]);
    ct_free(batches);
    ct_free(index);
    return status;
}

/* A streamed one: the same batches, each for all groups before the next. */
static ct_status score_streamed(ct_run *run, group *groups, int n_groups) {
    long n_batches = ct_run_test_batches(run);
    for (long b = 0; b < n_batches; b++) {
        ct_batch batch;
        CT_TRY(ct_run_test_batch(run, &batch));
        for (int k = 0; k < n_groups; k++) CT_TRY(score_batches(run, &batch, 1, &groups[k]));
    }
    return CT_OK;
}

static ct_status score_groups(ct_run *run, group *groups, int n_groups) {
    if (!ct_run_is_tested(run)) return CT_OK;
    return run->test_loader != NULL ? score_streamed(run, groups, n_groups)
                                    : score_in_memory(run, groups, n_groups);
}

/* NaN: nothing was tested. */
static double accuracy_of(const ct_score *sum) {
    return sum->n > 0 ? (double)sum->n_correct / sum->n : NAN;
}

static double loss_of(const ct_score *sum) {
    return sum->n > 0 ? sum->loss_sum / sum->n : NAN;
}

ct_status ct_run_score(ct_run *run, const ct_bank *params, ct_bank *running, int row,
                       double *accuracy, double *loss) {
    ct_score sum = {0};
    group one = {.params = params, .running = running, .first = row, .n_rows = 1, .sums = &sum};
    CT_TRY(score_groups(run, &one, 1));
    *accuracy = accuracy_of(&sum);
    *loss = loss_of(&sum);
    return CT_OK;
}

/* The consensus is that of the living. */
static void weigh_living(ct_run *run) {
    int n = run->agents.n_agents;
    for (int k = 0; k < run->n_worlds && run->agents.faults != NULL; k++) {
        int n_alive = 0;
        for (int row = k * n; row < (k + 1) * n; row++)
            n_alive += ct_run_is_alive(run, row, run->agents.iteration);
        for (int row = k * n; row < (k + 1) * n; row++)
            run->mean.value[row] =
                ct_run_is_alive(run, row, run->agents.iteration) ? 1.0 / n_alive : 0;
    }
}

static ct_status update_consensus(ct_run *run) {
    weigh_living(run);
    run->has_consensus = true;
    ct_update u = {.n_rows = run->n_worlds};
    SET(&u, &run->consensus, {1, run->all_x, &run->mean});
    CT_TRY(ct_update_run(run->backend, &u));
    if (run->graph.n_buffer_values == 0) return CT_OK;
    ct_update v = {.n_rows = run->n_worlds};
    SET(&v, &run->consensus_running, {1, run->all_running, &run->mean});
    return ct_update_run(run->backend, &v);
}

ct_status ct_run_average(ct_run *run, const ct_bank *bank, ct_bank *out) {
    CT_SCOPED(ct_bank) everyone = {0};
    const ct_bank *all = bank;
    if (ct_transport_n_ranks(run->transport) > 1) {
        CT_TRY(ct_bank_create(run->backend, run->agents.n_rows, 0, bank->n, &everyone));
        CT_TRY(ct_transport_spread(run->transport, bank, &everyone));
        all = &everyone;
    }
    ct_update u = {.n_rows = run->n_worlds};
    SET(&u, out, {1, all, &run->mean});
    return ct_update_run(run->backend, &u);
}

ct_status ct_run_find_consensus(ct_run *run) {
    bool is_alone = ct_transport_n_ranks(run->transport) == 1;
    if (is_alone && run->has_consensus) return CT_OK;
    weigh_living(run);
    CT_TRY(ct_run_average(run, &run->agents.x, &run->consensus));
    if (run->graph.n_buffer_values > 0)
        CT_TRY(ct_run_average(run, &run->agents.running, &run->consensus_running));
    run->has_consensus = true;
    return CT_OK;
}

/* (1/n) sum_i |x_i - mean|^2 of one world's living agents */
static ct_status measure_distance(ct_run *run, int world, float *mean, float *row, double *out) {
    size_t n = run->graph.n_weights;
    int n_agents = run->agents.n_agents, n_alive = 0;
    double sum = 0;
    CT_TRY(ct_bank_read(&run->consensus, world, 0, n, mean));
    for (int i = 0; i < n_agents; i++) {
        if (!ct_run_is_alive(run, world * n_agents + i, run->agents.iteration)) continue;
        n_alive++;
        CT_TRY(ct_bank_read(run->all_x, world * n_agents + i, 0, n, row));
        for (size_t k = 0; k < n; k++) {
            double d = (double)row[k] - (double)mean[k];
            sum += d * d;
        }
    }
    *out = sum / n_alive;
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

/* Of one world's living agents; sums: [n_agents] */
static void summarise(ct_run *run, int world, const ct_score *sums, ct_evaluation *e) {
    int n = run->agents.n_agents, n_alive = 0;
    for (int i = 0; i < n; i++) {
        bool is_alive = ct_run_is_alive(run, world * n + i, run->agents.iteration);
        run->local_accuracy[world * n + i] = is_alive ? accuracy_of(&sums[i]) : NAN;
        n_alive += is_alive;
    }
    e->diverged = -1;
    e->local_accuracy_mean = 0;
    e->local_accuracy_min = ct_run_is_tested(run) ? 1 : NAN;
    e->local_accuracy_max = ct_run_is_tested(run) ? 0 : NAN;
    for (int i = 0; i < n; i++) {
        if (!ct_run_is_alive(run, world * n + i, run->agents.iteration)) continue;
        double accuracy = run->local_accuracy[world * n + i];
        if (e->diverged < 0 && !isfinite(sums[i].loss_sum)) e->diverged = i;
        e->local_accuracy_mean += accuracy / n_alive;
        if (accuracy < e->local_accuracy_min) e->local_accuracy_min = accuracy;
        if (accuracy > e->local_accuracy_max) e->local_accuracy_max = accuracy;
    }
}

/* Every rank scores its own agents; the one that leads, the consensus too. */
static ct_status score_all(ct_run *run, ct_score *consensus, ct_score *own, ct_evaluation *out) {
    ct_agents *a = &run->agents;
    size_t n_pairs = (size_t)run->dataset.n_classes * (size_t)run->dataset.n_classes;
    group groups[] = {
        {&a->x, &a->running, 0, a->n, own, NULL},
        {&run->consensus, &run->consensus_running, 0, run->n_worlds, consensus, run->confusion}};
    if (run->confusion != NULL)
        memset(run->confusion, 0, (size_t)run->n_worlds * n_pairs * sizeof *run->confusion);
    CT_TRY(ct_transport_collect(run->transport, &a->x, run->all_x));
    if (a->running.n > 0)
        CT_TRY(ct_transport_collect(run->transport, &a->running, run->all_running));
    if (!ct_run_leads(run)) return score_groups(run, groups, 1);
    CT_TRY(update_consensus(run));
    CT_TRY(measure_distances(run, out));
    CT_TRY(score_groups(run, groups, 2));
    for (int k = 0; k < run->n_worlds; k++) {
        out[k].consensus_accuracy = accuracy_of(&consensus[k]);
        out[k].consensus_loss = loss_of(&consensus[k]);
    }
    return CT_OK;
}

ct_status ct_run_score_all(ct_run *run, ct_evaluation *out) {
    int n = run->agents.n_agents, n_rows = run->agents.n_rows;
    ct_score *sums = ct_new(ct_score, (size_t)(run->n_worlds + run->agents.n + n_rows));
    if (sums == NULL) return ct_fail(CT_NOMEM, "no memory for scores");
    ct_score *own = sums + run->n_worlds, *all = own + run->agents.n;
    ct_status status = score_all(run, sums, own, out);
    if (status == CT_OK) status = ct_transport_gather(run->transport, own, sizeof *own, all);
    for (int k = 0; k < run->n_worlds && status == CT_OK; k++)
        summarise(run, k, all + k * n, &out[k]);
    ct_free(sums);
    return status;
}
