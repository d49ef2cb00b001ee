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

/* Sums over an epoch, weighted by samples, and the means of its last iteration. */
typedef struct tally {
    double sums[CT_LOSS_FIELDS];
    double samples;
    double last[CT_LOSS_FIELDS]; /* means over the agents of the last iteration read */
    long next;                   /* first iteration not read yet */
} tally;

static ct_status diverged(const ct_run *run, int agent, long iteration, const float *fields,
                          const double *last_good) {
    return ct_fail(CT_DIVERGED,
                   "agent %d diverged at iteration %ld (ce %g, mv %g, dv %g); the last good means "
                   "over all agents were ce %.4g, mv %.4g, dv %.4g: lower --lr (%g)",
                   agent, iteration + 1, (double)fields[CT_LOSS_CE], (double)fields[CT_LOSS_MV],
                   (double)fields[CT_LOSS_DV], last_good[CT_LOSS_CE], last_good[CT_LOSS_MV],
                   last_good[CT_LOSS_DV], run->agents.lr);
}

/* Reads one iteration's losses; NaN or Inf in an agent's ends the run. */
static ct_status read_iteration(const ct_run *run, long iteration, tally *t) {
    size_t column = (size_t)(iteration % run->epoch_iterations) * CT_LOSS_FIELDS;
    double mean[CT_LOSS_FIELDS] = {0};
    for (int i = 0; i < run->agents.n; i++) {
        float fields[CT_LOSS_FIELDS];
        double n = ct_order_batch_size(run->order, i, iteration);
        CT_TRY(ct_bank_read(&run->losses, i, column, CT_LOSS_FIELDS, fields));
        if (!isfinite(fields[CT_LOSS_CE] + fields[CT_LOSS_MV] + fields[CT_LOSS_DV]))
            return diverged(run, i, iteration, fields, t->last);
        for (int f = 0; f < CT_LOSS_FIELDS; f++) {
            t->sums[f] += (f == CT_LOSS_CORRECT ? 1 : n) * (double)fields[f];
            mean[f] += (double)fields[f] / run->agents.n;
        }
        t->samples += n;
    }
    memcpy(t->last, mean, sizeof mean);
    return CT_OK;
}

static ct_status read_until(const ct_run *run, long iteration, tally *t) {
    for (; t->next <= iteration; t->next++) CT_TRY(read_iteration(run, t->next, t));
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

static void show_epoch(const progress *p, const ct_run *run, const ct_epoch *e) {
    if (p->is_quiet) return;
    if (p->is_terminal) fputs("\r\033[K", stderr);
    fprintf(stderr, "epoch %ld/%lld  iteration %ld  %.1f s  ce %.4f", e->epoch,
            (long long)run->config.epochs, e->iteration, e->seconds, e->losses.ce);
    if (run->agents.loss.ccl) fprintf(stderr, "  mv %.4g  dv %.4g", e->losses.mv, e->losses.dv);
    if (e->is_evaluated)
        fprintf(stderr, "  consensus %.2f %%  local %.2f %% (%.2f-%.2f)",
                100 * e->evaluation.consensus_accuracy, 100 * e->evaluation.local_accuracy_mean,
                100 * e->evaluation.local_accuracy_min, 100 * e->evaluation.local_accuracy_max);
    fputc('\n', stderr);
}

static double bytes_sent(const ct_run *run) {
    double sum = 0;
    for (int i = 0; i < run->agents.n; i++)
        for (int kind = 0; kind < CT_N_TRAFFIC; kind++)
            sum += (double)ct_transport_sent(run->transport, i, (ct_traffic)kind);
    return sum / run->agents.n;
}

static ct_status end_epoch(ct_run *run, const progress *p, const tally *t, long iteration,
                           bool is_last, ct_epoch *e) {
    *e = (ct_epoch){.epoch = iteration / run->epoch_iterations + 1,
                    .iteration = iteration + 1,
                    .lr = run->agents.lr,
                    .losses = {t->sums[CT_LOSS_CE] / t->samples, t->sums[CT_LOSS_MV] / t->samples,
                               t->sums[CT_LOSS_DV] / t->samples,
                               t->sums[CT_LOSS_CORRECT] / t->samples},
                    .bytes_sent_per_agent = bytes_sent(run)};
    e->is_evaluated = is_last || e->epoch % run->config.eval_every == 0;
    if (e->is_evaluated) CT_TRY(ct_run_evaluate(run, &e->evaluation));
    e->seconds = now() - p->started;
    CT_TRY(ct_output_epoch(run, e));
    show_epoch(p, run, e);
    if (e->is_evaluated &&
        !isfinite(e->evaluation.consensus_loss + e->evaluation.consensus_distance))
        return ct_fail(CT_DIVERGED,
                       "the consensus model diverged by iteration %ld (last training ce %.4g): "
                       "lower --lr (%g)",
                       e->iteration, e->losses.ce, run->agents.lr);
    return CT_OK;
}

static ct_status iterate(ct_run *run, progress *p, ct_epoch *last) {
    tally t = {0};
    for (long k = 0; k < p->n_iterations; k++) {
        bool is_last = k + 1 == p->n_iterations;
        bool ends_epoch = is_last || (k + 1) % run->epoch_iterations == 0;
        CT_TRY(ct_run_step(run, k));
        if (ends_epoch || (k + 1) % run->backend->poll_every == 0) CT_TRY(read_until(run, k, &t));
        show(p, run, k, t.last);
        if (!ends_epoch) continue;
        CT_TRY(end_epoch(run, p, &t, k, is_last, last));
        memset(t.sums, 0, sizeof t.sums);
        t.samples = 0;
    }
    return CT_OK;
}

static void introduce(const progress *p, const ct_run *run) {
    const ct_config *c = &run->config;
    if (p->is_quiet) return;
    fprintf(stderr,
            "%s on %s: %d agents on %s (diameter %d, spectral gap %.4f), %s with %s\n"
            "%s, %zu parameters, %.1f classes an agent, batches of %lld, %s on %d thread%s -> %s\n",
            c->algorithm, c->dataset, run->agents.n, run->topology.name,
            run->topology_facts.diameter, run->topology_facts.spectral_gap, c->loss, c->weights,
            c->model, run->graph.n_weights, run->partition_facts.classes_per_agent,
            (long long)c->batch_size, c->device, run->backend->n_threads,
            run->backend->n_threads == 1 ? "" : "s", c->out);
}

ct_status ct_train(const ct_config *config) {
    ct_run run;
    ct_epoch last = {0};
    CT_TRY(ct_run_create(config, &run));
    char dir[CT_CONFIG_TEXT];
    ct_output_dir(&run.config, dir, sizeof dir);
    memcpy(run.config.out, dir, sizeof dir);
    ct_status status = ct_output_begin(&run);
    progress p = {.is_quiet = run.config.quiet,
                  .is_terminal = isatty(STDERR_FILENO) == 1,
                  .started = now(),
                  .n_iterations = (long)run.config.epochs * run.epoch_iterations};
    if (run.config.iterations > 0 && run.config.iterations < p.n_iterations)
        p.n_iterations = (long)run.config.iterations;
    if (status == CT_OK) {
        introduce(&p, &run);
        status = iterate(&run, &p, &last);
    }
    if (status == CT_OK) status = ct_output_end(&run, &last);
    ct_run_free(&run);
    return status;
}
