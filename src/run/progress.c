/* What a training tells of itself while it lasts. */
#include <math.h>
#include <stdio.h>

#include "run/training_internal.h"
#include "site/site.h"
#include "util/log.h"
#include "util/memory.h"

void ct_name_world(const ct_run *run, int world, const char *before, char *out, size_t size) {
    const ct_world *w = &run->worlds[world];
    char seed[40] = "", lambdas[80] = "";
    if (run->n_seeds > 1) snprintf(seed, sizeof seed, "seed %llu", (unsigned long long)w->seed);
    if (run->lambdas != NULL)
        snprintf(lambdas, sizeof lambdas, "%slambdas %.9g:%.9g", run->n_seeds > 1 ? " " : "",
                 w->lambda_m, w->lambda_d);
    bool is_one = seed[0] == '\0' && lambdas[0] == '\0';
    snprintf(out, size, "%s%s%s", is_one ? "" : before, seed, lambdas);
}

void ct_name_terms(const double *terms, int first, const char *before, char *out, size_t size) {
    size_t n = 0;
    out[0] = '\0';
    for (int k = first; k < CT_N_TERMS && n < size; k++)
        n += (size_t)snprintf(out + n, size - n, "%s%s %.4g", k == 0 ? "" : before,
                              ct_loss_terms[k].name, terms[k]);
}

/* "ce 0.4123", and the other terms of a run that has some. */
static void name_losses(const ct_run *run, const double *terms, char *out, size_t size) {
    char more[96] = "";
    if (run->agents.loss.ccl) ct_name_terms(terms, 1, "  ", more, sizeof more);
    snprintf(out, size, "%s %.4f%s", ct_loss_terms[0].name, terms[0], more);
}

void ct_training_show(ct_progress *p, const ct_run *run, long iteration, const double *mean) {
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

void ct_training_show_scoring(const ct_run *run, int n_models, double part) {
    ct_training *training = run->training;
    double t = ct_seconds();
    if (training == NULL || !ct_run_leads(run) || t - training->progress.shown < 0.25) return;
    ct_log(CT_LOG_PASSING, "epoch %ld/%lld  evaluating %d models on %zu samples  %.0f %%",
           (training->at.iteration - 1) / run->epoch_iterations + 1, (long long)run->config.epochs,
           n_models, run->n_tested, 100 * part);
    training->progress.shown = t;
}

void ct_training_show_epoch(const ct_run *run, int world, const ct_epoch *e) {
    const ct_evaluation *v = &e->evaluation;
    char name[128], losses[128], consensus[40] = "", scores[136] = "";
    ct_name_world(run, world, "", name, sizeof name);
    name_losses(run, e->losses.terms, losses, sizeof losses);
    if (run->config.hides_test && e->is_evaluated && v->is_validated)
        snprintf(scores, sizeof scores, "  validation %.2f %%", 100 * v->validation_accuracy);
    if (!isnan(v->consensus_accuracy)) /* sites know none before the end */
        snprintf(consensus, sizeof consensus, "  consensus %.2f %%", 100 * v->consensus_accuracy);
    bool is_shown = e->is_evaluated && ct_run_is_tested(run) && !run->config.hides_test;
    if (is_shown && run->config.site != NULL)
        snprintf(scores, sizeof scores, "%s  own model %.2f %%", consensus,
                 100 * v->local_accuracy_mean);
    else if (is_shown && isnan(v->local_accuracy_mean))
        snprintf(scores, sizeof scores, "%s", consensus);
    else if (is_shown)
        snprintf(scores, sizeof scores, "%s  local %.2f %% (%.2f-%.2f)", consensus,
                 100 * v->local_accuracy_mean, 100 * v->local_accuracy_min,
                 100 * v->local_accuracy_max);
    ct_log(CT_LOG_LINE, "%s%sepoch %ld/%lld  iteration %ld  %.1f s  %s%s", name,
           name[0] != '\0' ? "  " : "", e->epoch, (long long)run->config.epochs, e->iteration,
           e->seconds, losses, scores);
}

void ct_training_introduce(const ct_run *run) {
    const ct_config *c = &run->config;
    const ct_world *w = &run->worlds[0];
    char ranks[96] = "";
    if (c->site != NULL)
        snprintf(ranks, sizeof ranks, "site %s, ", ct_site_own_name(c->site));
    else if (ct_transport_n_ranks(run->transport) > 1)
        snprintf(ranks, sizeof ranks, "%d ranks, ", ct_transport_n_ranks(run->transport));
    ct_log(CT_LOG_LINE,
           "%s%s on %s: %d agents on %s (diameter %d, spectral gap %.4f), %s loss, %s weights",
           ranks, c->algorithm, c->dataset, run->agents.n_agents, run->topology.name,
           w->topology_facts.diameter, w->topology_facts.spectral_gap, c->loss, c->weights);
    ct_log(CT_LOG_LINE,
           "%s, %zu parameters, %.1f classes an agent, batches of %lld, rate %g, %s in %s on %d "
           "thread%s%s%s",
           c->model, run->graph.n_weights, w->partition_facts.classes_per_agent,
           (long long)c->batch_size, c->lr, c->device, ct_precision_name(run->backend->precision),
           run->backend->n_threads, run->backend->n_threads == 1 ? "" : "s",
           c->out[0] != '\0' ? " -> " : "", c->out);
    if (run->n_seeds > 1) ct_log(CT_LOG_LINE, "%d seeds at once: %s", run->n_seeds, c->seeds);
    if (run->lambdas != NULL) ct_log(CT_LOG_LINE, "lambdas at once: %s", c->lambdas);
}
