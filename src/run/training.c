/* The training loop: iterations, what an epoch's losses were, evaluation, files. */
#include "run/training.h"

#include <math.h>
#include <string.h>

#include "run/output.h"
#include "run/together.h"
#include "run/training_internal.h"
#include "site/site.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

#define RANK_POLL 16 /* iterations between the ranks' talks about anything but rows */

static bool is_due(const ct_training *t, long done, bool ends_epoch) {
    const ct_interval *s = &t->schedule;
    if (s->every_s > 0) return ct_run_leads(t->run) && ct_seconds() - t->saved_s >= s->every_s;
    return s->epochs > 0 && ends_epoch && done / t->run->epoch_iterations % s->epochs == 0;
}

int ct_training_wish(const ct_training *t, long done) {
    int number = t->signal != NULL ? t->signal() : 0;
    if (number == 0 && t->is_unwanted) number = CT_STOPPED_BY_HOOK;
    return number != 0 ? 1 + number : is_due(t, done, done % t->run->epoch_iterations == 0);
}

/* ---- epochs ---- */

static double bytes_sent(const ct_run *run, int world) {
    double sum = 0;
    for (int kind = 0; kind < CT_N_TRAFFIC; kind++)
        sum += ct_run_mean_sent(run, world, (ct_traffic)kind);
    return sum;
}

static ct_epoch summarise(const ct_training *t, int world, long iteration) {
    const ct_run *run = t->run;
    const ct_tally *sums = &t->at.tallies[world];
    ct_epoch e = {.epoch = iteration / run->epoch_iterations + 1,
                  .iteration = iteration + 1,
                  .lr = run->agents.lr,
                  .bytes_sent_per_agent = bytes_sent(run, world),
                  .link_seconds = ct_ledger_link_seconds(run->transport)[world],
                  .evaluation = {.is_averaged = run->average.kind != CT_AVERAGE_NONE,
                                 .is_validated = run->config.validation_fraction > 0},
                  .finish = {NAN, NAN, NAN}};
    for (int k = 0; k < CT_N_TERMS; k++) e.losses.terms[k] = sums->sums[k] / sums->samples;
    e.losses.train_accuracy = sums->sums[CT_LOSS_CORRECT] / sums->samples;
    return e;
}

/* On a full disk training goes on, as it does without a checkpoint; the last epoch must be there. */
static ct_status record_epoch(ct_training *t, int world, const ct_epoch *e) {
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_output_epoch(t->run, world, e));
    if (status == CT_OK) return CT_OK;
    bool is_last = e->iteration == t->progress.n_iterations;
    if (status != CT_IO || is_last || t->run->config.checkpoint_strict)
        return ct_fail_again(&error);
    ct_note("epoch %ld is not recorded yet, training goes on: %s", e->epoch, error.text);
    return CT_OK;
}

static ct_status end_world_epoch(ct_training *t, int world, ct_epoch *e) {
    CT_TRY(record_epoch(t, world, e));
    ct_training_show_epoch(t->run, world, e);
    ct_tally *tally = &t->at.tallies[world];
    memset(tally->sums, 0, sizeof tally->sums);
    tally->samples = 0;
    double sum = 0;
    if (t->run->has_consensus) sum = e->evaluation.consensus_distance;
    if (t->run->has_consensus && ct_run_is_tested(t->run)) sum += e->evaluation.consensus_loss;
    if (!e->is_evaluated || (isfinite(sum) && e->evaluation.diverged < 0)) return CT_OK;
    char who[64], losses[128];
    t->ended_at = e->iteration;
    if (e->evaluation.diverged >= 0)
        t->ended_row = world * t->run->agents.n_agents + e->evaluation.diverged;
    ct_name_terms(e->losses.terms, 0, ", ", losses, sizeof losses);
    if (e->evaluation.diverged >= 0)
        snprintf(who, sizeof who, "agent %d", e->evaluation.diverged);
    else
        snprintf(who, sizeof who, "the consensus model of seed %llu",
                 (unsigned long long)t->run->seeds[world]);
    return ct_fail(CT_DIVERGED,
                   "%s diverged by iteration %ld (the epoch's mean losses were %s): lower @lr (%g)",
                   who, e->iteration, losses, t->run->agents.lr);
}

static double seconds_so_far(const ct_training *t) {
    return t->progress.before + ct_seconds() - t->progress.started;
}

/* Whether the models are tested after this epoch, and the agents' own ones too. */
static ct_status plan_tests(const ct_run *run, long epoch, bool is_last, bool *all,
                            bool *is_evaluated) {
    long every = 0;
    CT_TRY(ct_eval_agents_parse(run->config.eval_agents, &every));
    *all = every >= 0 && (is_last || (every > 0 && epoch % every == 0));
    *is_evaluated = *all || is_last || epoch % run->config.eval_every == 0;
    return CT_OK;
}

static ct_status end_epoch(ct_training *t, long iteration, bool is_last) {
    ct_run *run = t->run;
    long epoch = iteration / run->epoch_iterations + 1;
    bool all = false, is_evaluated = false;
    CT_TRY(plan_tests(run, epoch, is_last, &all, &is_evaluated));
    if (is_evaluated) CT_TRY(ct_run_score_all(run, all, t->evaluations));
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
static ct_status save(ct_training *t, long done, bool must) {
    ct_run *run = t->run;
    CT_TRY(ct_training_read_until(t, done - 1));
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
static ct_status attend(ct_training *t, long done, bool ends_epoch) {
    ct_run *run = t->run;
    bool is_alone = ct_transport_n_ranks(run->transport) == 1 || run->config.site != NULL;
    bool has_talked = ends_epoch || done % t->poll_every == 0;
    int wish = is_alone ? ct_training_wish(t, done) : has_talked ? t->wish : 0;
    if (wish == 0) return CT_OK;
    t->stopped_by = wish - 1;
    if (ct_run_writes_nothing(run)) return CT_OK;
    return save(t, done, t->stopped_by != 0);
}

/* ---- the loop ---- */

/* The progress hook may want the end. */
static void ask(ct_training *t, long done) {
    const ct_hooks *hooks = ct_hooks_now();
    if (hooks == NULL || hooks->progress == NULL) return;
    if (!hooks->progress(hooks->context, done, t->progress.n_iterations)) t->is_unwanted = true;
}

static ct_status iterate(ct_training *t) {
    ct_run *run = t->run;
    if (run->config.site != NULL && ct_site_is_behind(run->config.site))
        return ct_training_join(t, true);
    long k = t->at.iteration, last = t->progress.n_iterations - 1;
    bool ends_epoch = (k + 1) % run->epoch_iterations == 0;
    CT_TRY(ct_run_iterate(run, k));
    t->at.iteration = k + 1;
    ask(t, k + 1);
    if (k == last || ends_epoch || (k + 1) % t->poll_every == 0)
        CT_TRY(ct_training_read_until(t, k));
    ct_training_show(&t->progress, run, k, t->at.tallies[0].last);
    if (k == last) return CT_OK;
    if (ends_epoch) CT_TRY(end_epoch(t, k, false));
    return attend(t, k + 1, ends_epoch);
}

static ct_status finish(ct_training *t) {
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

/* After the last iteration. */
static ct_status conclude(ct_training *t) {
    ct_run *run = t->run;
    long n = t->progress.n_iterations;
    /* Before the last evaluation: whoever resumes here does it again and loses nothing. */
    bool wants_end = run->config.given[CT_OPT_checkpoint_every] || run->config.may_grow ||
                     t->schedule.has_written;
    if ((wants_end && !t->schedule.is_off) || run->config.site != NULL) CT_TRY(save(t, n, false));
    if (run->config.site != NULL) CT_TRY(ct_run_find_consensus(run));
    CT_TRY(end_epoch(t, n - 1, true));
    CT_TRY(finish(t));
    CT_TRY(ct_output_end(run, t->epochs));
    ct_dir_unlock(&t->lock);
    t->is_done = true;
    return CT_OK;
}

static ct_status stopped(const ct_training *t) {
    const char *dir = t->run->named_out;
    if (t->stopped_by == CT_STOPPED_BY_HOOK)
        return ct_fail(CT_STOPPED, "stopped after iteration %ld by the caller", t->at.iteration);
    if (t->run->config.site != NULL)
        return ct_fail(CT_STOPPED, "stopped after iteration %ld; the same command goes on with it",
                       t->at.iteration);
    return ct_fail(CT_STOPPED,
                   "stopped after iteration %ld; go on with: crosstalk train @resume %s",
                   t->at.iteration, dir);
}

static ct_status advance(ct_training *t, long n) {
    long done = t->at.iteration, total = t->progress.n_iterations;
    long end = n > 0 && n < total - done ? done + n : total;
    t->stopped_by = 0;
    t->is_unwanted = false;
    while (t->at.iteration < end && t->stopped_by == 0) CT_TRY(iterate(t));
    if (t->stopped_by != 0) return stopped(t);
    return t->at.iteration == total ? conclude(t) : CT_OK;
}

/* ---- the clock: seconds are those of the calls ---- */

static void start_clock(ct_training *t) {
    t->progress.started = ct_seconds();
    t->progress.first = t->at.iteration;
}

static void stop_clock(ct_training *t) {
    t->progress.before = seconds_so_far(t);
    t->progress.started = ct_seconds();
}

/* ---- beginning ---- */

static ct_status take_memory(ct_training *t) {
    const ct_run *run = t->run;
    size_t n = (size_t)run->n_worlds;
    t->poll_every = run->backend->poll_every;
    if (ct_transport_n_ranks(run->transport) > 1 && run->config.site == NULL &&
        t->poll_every < RANK_POLL)
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
static ct_status restore(ct_training *t, const ct_checkpoint *checkpoint) {
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
static ct_status resume(ct_training *t, const ct_checkpoint *checkpoint) {
    long done = t->at.iteration;
    if (checkpoint == NULL) return CT_OK;
    CT_TRY(ct_output_resume(t->run, checkpoint));
    if (t->at.tallies[0].samples > 0 && done < t->progress.n_iterations &&
        done % t->run->epoch_iterations == 0)
        return end_epoch(t, done - 1, false);
    return CT_OK;
}

static ct_status lock_out(ct_training *t) {
    ct_error error;
    (void)CT_CATCH(&error, ct_output_lock(t->run, &t->lock));
    return ct_together(t->run->transport, &error);
}

/* Whether a run of so many epochs has had the same learning rates, and gossip, so far. */
static bool had_same_rates(const ct_training *t, double epochs) {
    ct_lr_schedule then = t->run->lr;
    const ct_local_steps *now_local = &t->run->schedule.local;
    ct_local_steps then_local = *now_local;
    long n = t->run->epoch_iterations;
    then.epochs = epochs;
    then_local.n_iterations = (long)epochs * n;
    for (long k = 0; k < t->at.iteration; k++)
        if (ct_lr_at(&then, k, n) != ct_lr_at(&t->run->lr, k, n) ||
            ct_local_steps_rounds(&then_local, k + 1) != ct_local_steps_rounds(now_local, k + 1))
            return false;
    return true;
}

/* What more epochs than before do to the learning rate. */
static void note_extension(const ct_training *t, const ct_checkpoint *checkpoint) {
    const ct_run *run = t->run;
    double before = ct_checkpoint_epochs(checkpoint);
    if (!((double)run->config.epochs > before)) return;
    if (had_same_rates(t, before))
        ct_note("@epochs %lld instead of %g: the run is the one that %lld would have given",
                (long long)run->config.epochs, before, (long long)run->config.epochs);
    else
        ct_note("@epochs %lld instead of %g: from here on the learning rate is that of %lld epochs "
                "(next: %.3g); asked for at the beginning, they would have had another before",
                (long long)run->config.epochs, before, (long long)run->config.epochs,
                ct_lr_at(&run->lr, t->at.iteration, run->epoch_iterations));
}

static ct_status begin(ct_training *t, const ct_checkpoint *checkpoint) {
    ct_run *run = t->run;
    CT_TRY(take_memory(t));
    CT_TRY(ct_interval_parse(run->config.checkpoint_every, &t->schedule));
    if (ct_run_writes_nothing(run)) t->schedule = (ct_interval){.is_off = true};
    CT_TRY(ct_output_name(run));
    CT_TRY(ct_output_find_homes(run));
    CT_TRY(lock_out(t)); /* nobody replaces what is read now */
    CT_TRY(agree_on_start(run, checkpoint));
    CT_TRY(restore(t, checkpoint));
    CT_TRY(ct_output_begin(run, checkpoint, &t->lock));
    CT_TRY(resume(t, checkpoint));
    t->has_begun = true;
    ct_training_introduce(run);
    if (checkpoint != NULL) ct_note("going on after iteration %ld", t->at.iteration);
    if (checkpoint != NULL) note_extension(t, checkpoint);
    return run->config.site != NULL ? ct_training_join(t, checkpoint != NULL) : CT_OK;
}

ct_status ct_training_begin(ct_run *run, const ct_checkpoint *checkpoint,
                            ct_training_signal *signal) {
    ct_training *t = NULL;
    CT_TRY(ct_make(&t, 1, "the training"));
    run->training = t;
    *t = (ct_training){.run = run,
                       .signal = signal,
                       .saved_s = ct_seconds(),
                       .lock = -1,
                       .ended_row = -1,
                       .progress.n_iterations = (long)run->config.epochs * run->epoch_iterations};
    if (run->config.iterations > 0 && run->config.iterations < t->progress.n_iterations)
        t->progress.n_iterations = (long)run->config.iterations;
    ct_transport_reset_wait(run->transport); /* the clock of the training starts now */
    start_clock(t);
    ct_status status = begin(t, checkpoint);
    stop_clock(t);
    if (status != CT_OK) ct_training_free(&run->training);
    return status;
}

/* ---- one call ---- */

/* What is on its way to the disk gets there; a disk that is full has no room for the reason either. */
static void give_up(ct_training *t, const ct_error *error) {
    t->ended = *error;
    (void)CT_CATCH(NULL, ct_output_settle(t->run));
    (void)CT_CATCH(
        NULL, ct_output_fail(t->run, error, t->ended_at > 0 ? t->ended_at : t->next, t->ended_row));
    ct_dir_unlock(&t->lock);
}

static ct_status check_alive(const ct_training *t) {
    if (t->is_running) return ct_fail(CT_INVAL, "this run is being stepped: a hook cannot do it");
    if (t->ended.status == CT_OK) return CT_OK;
    return ct_fail(CT_INVAL, "this run has ended and cannot go on: %s", t->ended.text);
}

ct_status ct_training_advance(ct_run *run, long n) {
    ct_training *t = run->training;
    ct_error error;
    CT_TRY(check_alive(t));
    if (t->is_done) return CT_OK;
    t->is_running = true;
    start_clock(t);
    ct_status status = CT_CATCH(&error, advance(t, n));
    stop_clock(t);
    t->is_running = false;
    if (status == CT_OK) return CT_OK;
    if (status != CT_STOPPED) give_up(t, &error);
    return ct_fail_again(&error);
}

ct_status ct_training_save(ct_run *run) {
    ct_training *t = run->training;
    CT_TRY(check_alive(t));
    if (ct_run_writes_nothing(run))
        return ct_fail(CT_INVAL, "this run writes nothing: it has no checkpoints");
    if (t->is_done) return ct_fail(CT_INVAL, "this run is done: it has no more checkpoints");
    start_clock(t);
    ct_status status = save(t, t->at.iteration, true);
    stop_clock(t);
    return status;
}

ct_status ct_training_evaluate(ct_run *run) {
    ct_training *t = run->training;
    CT_TRY(ct_run_score_all(run, true, t->evaluations));
    for (int k = 0; k < run->n_worlds; k++) {
        t->epochs[k].evaluation = t->evaluations[k];
        t->epochs[k].is_evaluated = ct_run_leads(run);
    }
    return CT_OK;
}

bool ct_training_is_done(const ct_run *run) {
    return run->training->is_done;
}

long ct_training_iteration(const ct_run *run) {
    return run->training->at.iteration;
}

long ct_training_n_iterations(const ct_run *run) {
    return run->training->progress.n_iterations;
}

const ct_epoch *ct_training_epoch(const ct_run *run, int world) {
    return &run->training->epochs[world];
}

void ct_training_free(ct_training **training) {
    ct_training *t = *training;
    if (t == NULL) return;
    bool is_open = t->has_begun && !t->is_done && t->ended.status == CT_OK;
    if (is_open) (void)CT_CATCH(NULL, ct_output_settle(t->run));
    ct_dir_unlock(&t->lock);
    ct_free(t->at.tallies);
    ct_free(t->epochs);
    ct_free(t->evaluations);
    ct_free(t->own_losses);
    ct_free(t->all_losses);
    ct_free(t);
    *training = NULL;
}
