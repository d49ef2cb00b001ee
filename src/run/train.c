/* The training loop: iterations, what an epoch's losses were, evaluation, progress, files. */
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run/output.h"
#include "run/run.h"
#include "util/memory.h"

typedef struct progress {
    bool is_quiet, is_terminal;
    double started, shown;
    long n_iterations; /* of the whole run */
} progress;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One world's sums over an epoch, weighted by samples, and the means of its last iteration. */
typedef struct tally {
    double sums[CT_LOSS_FIELDS];
    double samples;
    double last[CT_LOSS_FIELDS]; /* means over the agents of the last iteration read */
} tally;

typedef struct training {
    ct_run *run;
    progress progress;
    tally *tallies;   /* [n_worlds] */
    ct_epoch *epochs; /* [n_worlds] the last one finished */
    ct_evaluation *evaluations;
    long next; /* first iteration whose losses are not read yet */
} training;

static ct_status diverged(const ct_run *run, int row, long iteration, const float *fields,
                          const double *last_good) {
    char seed[40] = "";
    int n = run->agents.n_agents;
    if (run->n_worlds > 1)
        snprintf(seed, sizeof seed, " of seed %llu", (unsigned long long)run->seeds[row / n]);
    return ct_fail(
        CT_DIVERGED,
        "agent %d%s diverged at iteration %ld (ce %g, mv %g, dv %g); the last good means "
        "over all agents were ce %.4g, mv %.4g, dv %.4g: lower --lr (%g)",
        row % n, seed, iteration + 1, (double)fields[CT_LOSS_CE], (double)fields[CT_LOSS_MV],
        (double)fields[CT_LOSS_DV], last_good[CT_LOSS_CE], last_good[CT_LOSS_MV],
        last_good[CT_LOSS_DV], run->agents.lr);
}

/* Reads one world's losses of one iteration; NaN or Inf in an agent's ends the run. */
static ct_status read_world(const ct_run *run, int world, long iteration, tally *t) {
    size_t column = (size_t)(iteration % run->epoch_iterations) * CT_LOSS_FIELDS;
    double mean[CT_LOSS_FIELDS] = {0};
    int n_agents = run->agents.n_agents;
    for (int row = world * n_agents; row < (world + 1) * n_agents; row++) {
        float fields[CT_LOSS_FIELDS];
        double n = ct_order_batch_size(run->order, row, iteration);
        CT_TRY(ct_bank_read(&run->losses, row, column, CT_LOSS_FIELDS, fields));
        if (!isfinite(fields[CT_LOSS_CE] + fields[CT_LOSS_MV] + fields[CT_LOSS_DV]))
            return diverged(run, row, iteration, fields, t->last);
        for (int f = 0; f < CT_LOSS_FIELDS; f++) {
            t->sums[f] += (f == CT_LOSS_CORRECT ? 1 : n) * (double)fields[f];
            mean[f] += (double)fields[f] / n_agents;
        }
        t->samples += n;
    }
    memcpy(t->last, mean, sizeof mean);
    return CT_OK;
}

static ct_status read_until(training *t, long iteration) {
    for (; t->next <= iteration; t->next++)
        for (int k = 0; k < t->run->n_worlds; k++)
            CT_TRY(read_world(t->run, k, t->next, &t->tallies[k]));
    return CT_OK;
}

static void show(progress *p, const ct_run *run, long iteration, const double *mean) {
    double t = now();
    if (p->is_quiet || !p->is_terminal || t - p->shown < 0.25) return;
    double rate = (double)(iteration + 1) / (t - p->started);
    double left = (double)(p->n_iterations - iteration - 1) / rate;
    fprintf(stderr, "\repoch %ld/%lld  iteration %ld/%ld  %.1f it/s  %dm%02ds left  ce %.4f",
            iteration / run->epoch_iterations + 1, (long long)run->config.epochs, iteration + 1,
            p->n_iterations, rate, (int)(left / 60), (int)left % 60, mean[CT_LOSS_CE]);
    if (run->agents.loss.ccl) fprintf(stderr, "  mv %.4g  dv %.4g", mean[1], mean[2]);
    fputs("  ", stderr);
    p->shown = t;
}

static void show_epoch(const progress *p, const ct_run *run, uint64_t seed, const ct_epoch *e) {
    if (p->is_quiet) return;
    if (p->is_terminal) fputs("\r\033[K", stderr);
    if (run->n_worlds > 1) fprintf(stderr, "seed %llu  ", (unsigned long long)seed);
    fprintf(stderr, "epoch %ld/%lld  iteration %ld  %.1f s  ce %.4f", e->epoch,
            (long long)run->config.epochs, e->iteration, e->seconds, e->losses.ce);
    if (run->agents.loss.ccl) fprintf(stderr, "  mv %.4g  dv %.4g", e->losses.mv, e->losses.dv);
    if (e->is_evaluated)
        fprintf(stderr, "  consensus %.2f %%  local %.2f %% (%.2f-%.2f)",
                100 * e->evaluation.consensus_accuracy, 100 * e->evaluation.local_accuracy_mean,
                100 * e->evaluation.local_accuracy_min, 100 * e->evaluation.local_accuracy_max);
    fputc('\n', stderr);
}

static double bytes_sent(const ct_run *run, int world) {
    double sum = 0;
    int n = run->agents.n_agents;
    for (int row = world * n; row < (world + 1) * n; row++)
        for (int kind = 0; kind < CT_N_TRAFFIC; kind++)
            sum += (double)ct_transport_sent(run->transport, row, (ct_traffic)kind);
    return sum / n;
}

static ct_epoch summarise(const training *t, int world, long iteration) {
    const ct_run *run = t->run;
    const tally *sums = &t->tallies[world];
    return (ct_epoch){.epoch = iteration / run->epoch_iterations + 1,
                      .iteration = iteration + 1,
                      .lr = run->agents.lr,
                      .losses = {sums->sums[CT_LOSS_CE] / sums->samples,
                                 sums->sums[CT_LOSS_MV] / sums->samples,
                                 sums->sums[CT_LOSS_DV] / sums->samples,
                                 sums->sums[CT_LOSS_CORRECT] / sums->samples},
                      .bytes_sent_per_agent = bytes_sent(run, world)};
}

static ct_status end_world_epoch(training *t, int world, ct_epoch *e) {
    CT_TRY(ct_output_epoch(t->run, world, e));
    show_epoch(&t->progress, t->run, t->run->seeds[world], e);
    memset(t->tallies[world].sums, 0, sizeof t->tallies[world].sums);
    t->tallies[world].samples = 0;
    double sum = e->evaluation.consensus_loss + e->evaluation.consensus_distance;
    if (!e->is_evaluated || (isfinite(sum) && e->evaluation.diverged < 0)) return CT_OK;
    if (e->evaluation.diverged >= 0)
        return ct_fail(CT_DIVERGED,
                       "agent %d diverged by iteration %ld (the epoch's mean losses were ce %.4g, "
                       "mv %.4g, dv %.4g): lower --lr (%g)",
                       e->evaluation.diverged, e->iteration, e->losses.ce, e->losses.mv,
                       e->losses.dv, t->run->agents.lr);
    return ct_fail(CT_DIVERGED,
                   "the consensus model of seed %llu diverged by iteration %ld (last training ce "
                   "%.4g): lower --lr (%g)",
                   (unsigned long long)t->run->seeds[world], e->iteration, e->losses.ce,
                   t->run->agents.lr);
}

static ct_status end_epoch(training *t, long iteration, bool is_last) {
    ct_run *run = t->run;
    long epoch = iteration / run->epoch_iterations + 1;
    bool is_evaluated = is_last || epoch % run->config.eval_every == 0;
    if (is_evaluated) CT_TRY(ct_run_evaluate(run, t->evaluations));
    double seconds = now() - t->progress.started;
    for (int k = 0; k < run->n_worlds; k++) {
        ct_epoch *e = &t->epochs[k];
        *e = summarise(t, k, iteration);
        e->is_evaluated = is_evaluated;
        if (is_evaluated) e->evaluation = t->evaluations[k];
        e->seconds = seconds;
        CT_TRY(end_world_epoch(t, k, e));
    }
    return CT_OK;
}

static ct_status iterate(training *t) {
    ct_run *run = t->run;
    for (long k = 0; k < t->progress.n_iterations; k++) {
        bool is_last = k + 1 == t->progress.n_iterations;
        bool ends_epoch = is_last || (k + 1) % run->epoch_iterations == 0;
        CT_TRY(ct_run_step(run, k));
        if (ends_epoch || (k + 1) % run->backend->poll_every == 0) CT_TRY(read_until(t, k));
        show(&t->progress, run, k, t->tallies[0].last);
        if (ends_epoch) CT_TRY(end_epoch(t, k, is_last));
    }
    return CT_OK;
}

static void introduce(const progress *p, const ct_run *run) {
    const ct_config *c = &run->config;
    const ct_world *w = &run->worlds[0];
    if (p->is_quiet) return;
    fprintf(stderr,
            "%s on %s: %d agents on %s (diameter %d, spectral gap %.4f), %s loss, %s weights\n"
            "%s, %zu parameters, %.1f classes an agent, batches of %lld, %s on %d thread%s -> %s\n",
            c->algorithm, c->dataset, run->agents.n_agents, run->topology.name,
            w->topology_facts.diameter, w->topology_facts.spectral_gap, c->loss, c->weights,
            c->model, run->graph.n_weights, w->partition_facts.classes_per_agent,
            (long long)c->batch_size, c->device, run->backend->n_threads,
            run->backend->n_threads == 1 ? "" : "s", c->out);
    if (run->n_worlds > 1) fprintf(stderr, "%d seeds at once: %s\n", run->n_worlds, c->seeds);
}

static ct_status train(training *t) {
    ct_run *run = t->run;
    size_t n = (size_t)run->n_worlds;
    t->tallies = ct_new(tally, n);
    t->epochs = ct_new(ct_epoch, n);
    t->evaluations = ct_new(ct_evaluation, n);
    if (t->tallies == NULL || t->epochs == NULL || t->evaluations == NULL)
        return ct_fail(CT_NOMEM, "no memory for the metrics of %zu seeds", n);
    CT_TRY(ct_output_begin(run));
    introduce(&t->progress, run);
    CT_TRY(iterate(t));
    return ct_output_end(run, t->epochs);
}

ct_status ct_train(const ct_config *config) {
    ct_run run;
    CT_TRY(ct_run_create(config, &run));
    training t = {.run = &run,
                  .progress = {.is_quiet = run.config.quiet,
                               .is_terminal = isatty(STDERR_FILENO) == 1,
                               .started = now(),
                               .n_iterations = (long)run.config.epochs * run.epoch_iterations}};
    if (run.config.iterations > 0 && run.config.iterations < t.progress.n_iterations)
        t.progress.n_iterations = (long)run.config.iterations;
    ct_status status = train(&t);
    ct_free(t.tallies);
    ct_free(t.epochs);
    ct_free(t.evaluations);
    ct_run_free(&run);
    return status;
}
