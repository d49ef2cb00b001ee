/* The training loop: iterations, what an epoch's losses were, evaluation, progress, files. */
#include <math.h>
#include <string.h>

#include "run/checkpoint.h"
#include "schema/interval.h"
#include "run/output.h"
#include "run/restart.h"
#include "run/run.h"
#include "run/signals.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

#define RANK_POLL 16 /* iterations between the ranks' talks about anything but rows */

typedef struct progress {
    double started, shown;
    double before;     /* seconds of the parts of this run that came before */
    long first;        /* iteration that this part began with */
    long n_iterations; /* of the whole run */
} progress;

typedef struct training {
    ct_run *run;
    progress progress;
    ct_position at;
    ct_epoch *epochs; /* [n_worlds] the last one finished */
    ct_evaluation *evaluations;
    long next;       /* first iteration whose losses are not read yet */
    long poll_every; /* iterations between looks at the losses, and at what other ranks wish */
    float *own_losses, *all_losses; /* [own rows], [rows][poll_every * CT_LOSS_FIELDS + 1] */
    int wish;                       /* what anyone wanted at the last look; see wish_of */
    ct_interval schedule;
    double saved_s; /* when the last checkpoint was written */
    int stopped_by; /* the signal that ended the loop; 0 = none */
    int lock;       /* of the run directory; -1 = none */
    bool has_begun; /* the run directory is ours */
    long ended_at;  /* the iteration, from 1, and the row that diverged; 0, -1 = none */
    int ended_row;
} training;

/* Which of several worlds: "seed 1", "lambdas 0.1:0.01", both, or "" for a run of one. */
static void name_world(const ct_run *run, int world, const char *before, char *out, size_t size) {
    const ct_world *w = &run->worlds[world];
    char seed[40] = "", lambdas[80] = "";
    if (run->n_seeds > 1) snprintf(seed, sizeof seed, "seed %llu", (unsigned long long)w->seed);
    if (run->lambdas != NULL)
        snprintf(lambdas, sizeof lambdas, "%slambdas %.9g:%.9g", run->n_seeds > 1 ? " " : "",
                 w->lambda_m, w->lambda_d);
    bool is_one = seed[0] == '\0' && lambdas[0] == '\0';
    snprintf(out, size, "%s%s%s", is_one ? "" : before, seed, lambdas);
}

/* "ce 0.4, mv 0.01, dv 0.002", or the terms from `first` on with other words before each. */
static void name_terms(const double *terms, int first, const char *before, char *out, size_t size) {
    size_t n = 0;
    out[0] = '\0';
    for (int k = first; k < CT_N_TERMS && n < size; k++)
        n += (size_t)snprintf(out + n, size - n, "%s%s %.4g", k == 0 ? "" : before,
                              ct_loss_terms[k].name, terms[k]);
}

static ct_status diverged(const ct_run *run, int row, long iteration, const double *terms,
                          const double *last_good) {
    char world[128], now_text[128], good_text[128];
    int n = run->agents.n_agents;
    name_world(run, row / n, " of ", world, sizeof world);
    name_terms(terms, 0, ", ", now_text, sizeof now_text);
    name_terms(last_good, 0, ", ", good_text, sizeof good_text);
    return ct_fail(CT_DIVERGED,
                   "agent %d%s diverged at iteration %ld (%s); the last good means over all agents "
                   "were %s: lower @lr (%g)",
                   row % n, world, iteration + 1, now_text, good_text, run->agents.lr);
}

/* False: a term is NaN or Inf. */
static bool widen(const float *fields, double *terms) {
    bool is_finite = true;
    for (int k = 0; k < CT_N_TERMS; k++) {
        terms[k] = (double)fields[k];
        is_finite = is_finite && isfinite(fields[k]);
    }
    return is_finite;
}

/* Adds one world's losses of one iteration; NaN or Inf in an agent's ends the run.
 * losses: [rows][stride], from this iteration's on */
static ct_status read_world(training *t, int world, long iteration, const float *losses,
                            size_t stride) {
    const ct_run *run = t->run;
    ct_tally *tally = &t->at.tallies[world];
    double mean[CT_LOSS_FIELDS] = {0};
    int n_agents = run->agents.n_agents, n_alive = 0;
    for (int row = world * n_agents; row < (world + 1) * n_agents; row++)
        n_alive += ct_run_is_alive(run, row, iteration);
    for (int row = world * n_agents; row < (world + 1) * n_agents; row++) {
        if (!ct_run_is_alive(run, row, iteration)) continue;
        const float *fields = losses + (size_t)row * stride;
        double n = ct_order_batch_size(run->order, row, iteration);
        double terms[CT_N_TERMS];
        if (!widen(fields, terms)) {
            t->ended_at = iteration + 1;
            t->ended_row = row;
            return diverged(run, row, iteration, terms, tally->last);
        }
        for (int f = 0; f < CT_LOSS_FIELDS; f++) {
            tally->sums[f] += (f == CT_LOSS_CORRECT ? 1 : n) * (double)fields[f];
            mean[f] += (double)fields[f] / n_alive;
        }
        tally->samples += n;
    }
    memcpy(tally->last, mean, sizeof mean);
    return CT_OK;
}

static bool is_due(const training *t, long done, bool ends_epoch) {
    const ct_interval *s = &t->schedule;
    if (s->every_s > 0) return ct_run_leads(t->run) && ct_seconds() - t->saved_s >= s->every_s;
    return s->epochs > 0 && ends_epoch && done / t->run->epoch_iterations % s->epochs == 0;
}

/* After `done` iterations: 0 = to go on, 1 = a checkpoint, 1 + signal = the end. */
static int wish_of(const training *t, long done) {
    int number = ct_signals_seen();
    return number != 0 ? 1 + number : is_due(t, done, done % t->run->epoch_iterations == 0);
}

/* Everyone's losses up to an iteration, at most poll_every of them, and what everyone wishes then:
 * one talk among the ranks for both. */
static ct_status read_until(training *t, long iteration) {
    ct_run *run = t->run;
    if (t->next > iteration) return CT_OK;
    size_t n = (size_t)(iteration + 1 - t->next) * CT_LOSS_FIELDS;
    size_t column = (size_t)(t->next % run->epoch_iterations) * CT_LOSS_FIELDS;
    float wish = (float)wish_of(t, iteration + 1);
    for (int i = 0; i < run->agents.n; i++) {
        float *row = t->own_losses + (size_t)i * (n + 1);
        CT_TRY(ct_bank_read(&run->losses, i, column, n, row));
        row[n] = wish;
    }
    CT_TRY(
        ct_transport_gather(run->transport, t->own_losses, (n + 1) * sizeof(float), t->all_losses));
    t->wish = 0;
    for (int row = 0; row < run->agents.n_rows; row++) {
        int theirs = (int)t->all_losses[(size_t)row * (n + 1) + n];
        if (theirs > t->wish) t->wish = theirs;
    }
    for (const float *at = t->all_losses; t->next <= iteration; t->next++, at += CT_LOSS_FIELDS)
        for (int k = 0; k < run->n_worlds; k++) CT_TRY(read_world(t, k, t->next, at, n + 1));
    return CT_OK;
}

/* "ce 0.4123", and the other terms of a run that has some. */
static void name_losses(const ct_run *run, const double *terms, char *out, size_t size) {
    char more[96] = "";
    if (run->agents.loss.ccl) name_terms(terms, 1, "  ", more, sizeof more);
    snprintf(out, size, "%s %.4f%s", ct_loss_terms[0].name, terms[0], more);
}

static void show(progress *p, const ct_run *run, long iteration, const double *mean) {
    char losses[128];
    double t = ct_seconds();
    if (t - p->shown < 0.25) return;
    double rate = (double)(iteration + 1 - p->first) / (t - p->started);
    double left = (double)(p->n_iterations - iteration - 1) / rate;
    name_losses(run, mean, losses, sizeof losses);
    ct_log(CT_LOG_PASSING, "epoch %ld/%lld  iteration %ld/%ld  %.1f it/s  %dm%02ds left  %s",
           iteration / run->epoch_iterations + 1, (long long)run->config.epochs, iteration + 1,
           p->n_iterations, rate, (int)(left / 60), (int)left % 60, losses);
    p->shown = t;
}

static void show_epoch(const ct_run *run, int world, const ct_epoch *e) {
    char name[128], losses[128], scores[96] = "";
    name_world(run, world, "", name, sizeof name);
    name_losses(run, e->losses.terms, losses, sizeof losses);
    if (e->is_evaluated)
        snprintf(scores, sizeof scores, "  consensus %.2f %%  local %.2f %% (%.2f-%.2f)",
                 100 * e->evaluation.consensus_accuracy, 100 * e->evaluation.local_accuracy_mean,
                 100 * e->evaluation.local_accuracy_min, 100 * e->evaluation.local_accuracy_max);
    ct_log(CT_LOG_LINE, "%s%sepoch %ld/%lld  iteration %ld  %.1f s  %s%s", name,
           name[0] != '\0' ? "  " : "", e->epoch, (long long)run->config.epochs, e->iteration,
           e->seconds, losses, scores);
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
    const ct_tally *sums = &t->at.tallies[world];
    ct_epoch e = {.epoch = iteration / run->epoch_iterations + 1,
                  .iteration = iteration + 1,
                  .lr = run->agents.lr,
                  .bytes_sent_per_agent = bytes_sent(run, world),
                  .link_seconds = ct_ledger_link_seconds(run->transport)[world]};
    for (int k = 0; k < CT_N_TERMS; k++) e.losses.terms[k] = sums->sums[k] / sums->samples;
    e.losses.train_accuracy = sums->sums[CT_LOSS_CORRECT] / sums->samples;
    return e;
}

/* On a full disk training goes on, as it does without a checkpoint; the last epoch must be there. */
static ct_status record_epoch(training *t, int world, const ct_epoch *e) {
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_output_epoch(t->run, world, e));
    if (status == CT_OK) return CT_OK;
    bool is_last = e->iteration == t->progress.n_iterations;
    if (status != CT_IO || is_last || t->run->config.checkpoint_strict)
        return ct_fail_again(&error);
    ct_note("epoch %ld is not recorded yet, training goes on: %s", e->epoch, error.text);
    return CT_OK;
}

static ct_status end_world_epoch(training *t, int world, ct_epoch *e) {
    CT_TRY(record_epoch(t, world, e));
    show_epoch(t->run, world, e);
    ct_tally *tally = &t->at.tallies[world];
    memset(tally->sums, 0, sizeof tally->sums);
    tally->samples = 0;
    double sum = e->evaluation.consensus_loss + e->evaluation.consensus_distance;
    if (!e->is_evaluated || (isfinite(sum) && e->evaluation.diverged < 0)) return CT_OK;
    char who[64], losses[128];
    t->ended_at = e->iteration;
    if (e->evaluation.diverged >= 0)
        t->ended_row = world * t->run->agents.n_agents + e->evaluation.diverged;
    name_terms(e->losses.terms, 0, ", ", losses, sizeof losses);
    if (e->evaluation.diverged >= 0)
        snprintf(who, sizeof who, "agent %d", e->evaluation.diverged);
    else
        snprintf(who, sizeof who, "the consensus model of seed %llu",
                 (unsigned long long)t->run->seeds[world]);
    return ct_fail(CT_DIVERGED,
                   "%s diverged by iteration %ld (the epoch's mean losses were %s): lower @lr (%g)",
                   who, e->iteration, losses, t->run->agents.lr);
}

static double seconds_so_far(const training *t) {
    return t->progress.before + ct_seconds() - t->progress.started;
}

static ct_status end_epoch(training *t, long iteration, bool is_last) {
    ct_run *run = t->run;
    long epoch = iteration / run->epoch_iterations + 1;
    bool is_evaluated = is_last || epoch % run->config.eval_every == 0;
    if (is_evaluated) CT_TRY(ct_run_score_all(run, t->evaluations));
    double seconds = seconds_so_far(t);
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

/* ---- checkpoints ---- */

/* Whoever could not write says so; training goes on unless that is what the user is after. */
static ct_status save(training *t, long done, bool must) {
    ct_run *run = t->run;
    CT_TRY(read_until(t, done - 1));
    t->at.iteration = done;
    t->at.seconds = seconds_so_far(t);
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_checkpoint_write(run, &t->at));
    t->saved_s = ct_seconds();
    if (status == CT_OK) t->schedule.has_written = true;
    if (status == CT_OK) return CT_OK;
    if (must || run->config.checkpoint_strict) return ct_fail_again(&error);
    ct_log(CT_LOG_WARNING, "no checkpoint at iteration %ld, training goes on: %s", done,
           error.text);
    return CT_OK;
}

/* Between iterations: does anyone want a checkpoint, or the end? Ranks know of each other's wishes
 * only now and then, and do the same thing at the same place. */
static ct_status attend(training *t, long done, bool ends_epoch) {
    ct_run *run = t->run;
    bool is_alone = ct_transport_n_ranks(run->transport) == 1;
    bool has_talked = ends_epoch || done % t->poll_every == 0;
    int wish = is_alone ? wish_of(t, done) : has_talked ? t->wish : 0;
    if (wish == 0) return CT_OK;
    t->stopped_by = wish - 1;
    return save(t, done, t->stopped_by != 0);
}

static ct_status iterate(training *t) {
    ct_run *run = t->run;
    long last = t->progress.n_iterations - 1;
    for (long k = t->at.iteration; k <= last && t->stopped_by == 0; k++) {
        bool ends_epoch = (k + 1) % run->epoch_iterations == 0;
        CT_TRY(ct_run_iterate(run, k));
        if (k == last || ends_epoch || (k + 1) % t->poll_every == 0) CT_TRY(read_until(t, k));
        show(&t->progress, run, k, t->at.tallies[0].last);
        if (k == last) break;
        if (ends_epoch) CT_TRY(end_epoch(t, k, false));
        CT_TRY(attend(t, k + 1, ends_epoch));
    }
    if (t->stopped_by != 0) return CT_OK;
    /* Before the last evaluation: whoever resumes here does it again and loses nothing. */
    bool wants_end = run->config.given[CT_OPT_checkpoint_every] || t->schedule.has_written;
    if (wants_end && !t->schedule.is_off) CT_TRY(save(t, last + 1, false));
    return end_epoch(t, last, true);
}

static void introduce(const ct_run *run) {
    const ct_config *c = &run->config;
    const ct_world *w = &run->worlds[0];
    char ranks[32] = "";
    if (ct_transport_n_ranks(run->transport) > 1)
        snprintf(ranks, sizeof ranks, "%d ranks, ", ct_transport_n_ranks(run->transport));
    ct_log(CT_LOG_LINE,
           "%s%s on %s: %d agents on %s (diameter %d, spectral gap %.4f), %s loss, %s weights",
           ranks, c->algorithm, c->dataset, run->agents.n_agents, run->topology.name,
           w->topology_facts.diameter, w->topology_facts.spectral_gap, c->loss, c->weights);
    ct_log(CT_LOG_LINE,
           "%s, %zu parameters, %.1f classes an agent, batches of %lld, %s in %s on %d thread%s "
           "-> %s",
           c->model, run->graph.n_weights, w->partition_facts.classes_per_agent,
           (long long)c->batch_size, c->device, ct_precision_name(run->backend->precision),
           run->backend->n_threads, run->backend->n_threads == 1 ? "" : "s", c->out);
    if (run->n_seeds > 1) ct_log(CT_LOG_LINE, "%d seeds at once: %s", run->n_seeds, c->seeds);
    if (run->lambdas != NULL) ct_log(CT_LOG_LINE, "lambdas at once: %s", c->lambdas);
}

static ct_status take_memory(training *t) {
    const ct_run *run = t->run;
    size_t n = (size_t)run->n_worlds;
    t->poll_every = run->backend->poll_every;
    if (ct_transport_n_ranks(run->transport) > 1 && t->poll_every < RANK_POLL)
        t->poll_every = RANK_POLL;
    if (t->poll_every > run->epoch_iterations) t->poll_every = run->epoch_iterations;
    size_t width = (size_t)t->poll_every * CT_LOSS_FIELDS + 1;
    t->at.tallies = ct_new(ct_tally, n);
    t->epochs = ct_new(ct_epoch, n);
    t->evaluations = ct_new(ct_evaluation, n);
    t->own_losses = ct_new(float, width *(size_t)run->agents.n);
    t->all_losses = ct_new(float, width *(size_t)run->agents.n_rows);
    if (t->at.tallies == NULL || t->epochs == NULL || t->evaluations == NULL ||
        t->own_losses == NULL || t->all_losses == NULL)
        return ct_fail(CT_NOMEM, "no memory for the metrics of %zu seeds", n);
    return CT_OK;
}

static void free_memory(training *t) {
    ct_free(t->at.tallies);
    ct_free(t->epochs);
    ct_free(t->evaluations);
    ct_free(t->own_losses);
    ct_free(t->all_losses);
}

/* Every rank has looked for itself, perhaps on a file system that was late. From here on all have,
 * and the one that leads may write. */
static ct_status agree_on_start(const ct_run *run, const ct_checkpoint *checkpoint) {
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "\"the checkpoint of iteration\": \"");
    if (checkpoint != NULL) ct_text_add(&text, "%ld", ct_checkpoint_iteration(checkpoint));
    ct_text_add(&text, "\"");
    CT_TRY(ct_text_status(&text));
    return ct_transport_agree(run->transport, &text);
}

/* The state of a checkpoint. Nothing is written yet: a resume that is refused leaves no trace. */
static ct_status restore(training *t, const ct_checkpoint *checkpoint) {
    if (checkpoint == NULL) return CT_OK;
    CT_TRY(ct_checkpoint_read(checkpoint, t->run, &t->at));
    long done = t->at.iteration, wanted = t->progress.n_iterations;
    bool is_open = t->at.tallies[0].samples > 0;
    if (done > wanted || (done == wanted && !is_open))
        return ct_fail(CT_INVAL, "the checkpoint is at iteration %ld already; @iterations %ld",
                       done, wanted);
    t->next = t->progress.first = done;
    t->progress.before = t->at.seconds;
    t->schedule.has_written = true;
    return CT_OK;
}

/* The files as they were at the checkpoint; an epoch that was over but not yet entered is entered
 * now. */
static ct_status resume(training *t, const ct_checkpoint *checkpoint) {
    long done = t->at.iteration;
    if (checkpoint == NULL) return CT_OK;
    CT_TRY(ct_output_resume(t->run, checkpoint));
    if (t->at.tallies[0].samples > 0 && done < t->progress.n_iterations &&
        done % t->run->epoch_iterations == 0)
        return end_epoch(t, done - 1, false);
    return CT_OK;
}

static ct_status finish(training *t) {
    ct_run *run = t->run;
    ct_finish *out = ct_new(ct_finish, (size_t)run->n_worlds);
    if (out == NULL) return ct_fail(CT_NOMEM, "no memory for %d seeds", run->n_worlds);
    ct_status status = ct_run_finish(run, t->progress.n_iterations, out);
    for (int k = 0; k < run->n_worlds && status == CT_OK; k++) {
        t->epochs[k].finish = out[k];
        t->epochs[k].bytes_sent_per_agent = bytes_sent(run, k);
    }
    ct_free(out);
    return status;
}

static ct_status train(training *t, const ct_checkpoint *checkpoint) {
    ct_run *run = t->run;
    CT_TRY(take_memory(t));
    CT_TRY(ct_interval_parse(run->config.checkpoint_every, &t->schedule));
    CT_TRY(ct_output_name(run));
    CT_TRY(ct_output_lock(run, &t->lock)); /* nobody replaces what is read now */
    CT_TRY(agree_on_start(run, checkpoint));
    CT_TRY(restore(t, checkpoint));
    CT_TRY(ct_output_begin(run, checkpoint, &t->lock));
    CT_TRY(resume(t, checkpoint));
    t->has_begun = true;
    introduce(run);
    if (checkpoint != NULL) ct_note("going on after iteration %ld", t->at.iteration);
    CT_TRY(iterate(t));
    if (t->stopped_by == 0) {
        CT_TRY(finish(t));
        return ct_output_end(run, t->epochs);
    }
    return ct_fail(CT_STOPPED,
                   "stopped after iteration %ld; go on with: crosstalk train @resume %s",
                   t->at.iteration, run->config.out);
}

static ct_status train_from(const ct_config *config, const ct_checkpoint *checkpoint) {
    ct_run run;
    CT_TRY(ct_run_build(config, &run));
    ct_transport_reset_wait(run.transport); /* the clock of the training starts now */
    training t = {.run = &run,
                  .saved_s = ct_seconds(),
                  .lock = -1,
                  .ended_row = -1,
                  .progress = {.started = ct_seconds(),
                               .n_iterations = (long)run.config.epochs * run.epoch_iterations}};
    if (run.config.iterations > 0 && run.config.iterations < t.progress.n_iterations)
        t.progress.n_iterations = (long)run.config.iterations;
    ct_signals_catch();
    ct_error error;
    ct_status status = CT_CATCH(&error, train(&t, checkpoint));
    if (t.has_begun && status != CT_OK) (void)CT_CATCH(NULL, ct_output_settle(&run));
    if (t.has_begun) /* a disk that is full has no room for the reason either */
        (void)CT_CATCH(
            NULL, ct_output_fail(&run, &error, t.ended_at > 0 ? t.ended_at : t.next, t.ended_row));
    ct_dir_unlock(&t.lock);
    ct_signals_restore();
    if (status != CT_OK) ct_fail_again(&error);
    free_memory(&t);
    ct_run_clear(&run);
    return status;
}

ct_status ct_train(const ct_config *config) {
    ct_config effective = *config;
    CT_SCOPED_HANDLE(ct_checkpoint) checkpoint = NULL;
    bool is_done = false;
    if (config->resume[0] != '\0') CT_TRY(ct_restart_find(&effective, &checkpoint, &is_done));
    if (!is_done) return train_from(&effective, checkpoint);
    ct_note("%s is finished already", effective.out);
    return CT_OK;
}
