/* What the iterations' losses were: read from all ranks, added up by epoch, watched for divergence. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/training_internal.h"

static ct_status diverged(const ct_run *run, int row, long iteration, const double *terms,
                          const double *last_good) {
    char world[128], now_text[128], good_text[128];
    int n = run->agents.n_agents;
    ct_name_world(run, row / n, " of ", world, sizeof world);
    ct_name_terms(terms, 0, ", ", now_text, sizeof now_text);
    ct_name_terms(last_good, 0, ", ", good_text, sizeof good_text);
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
static ct_status read_world(ct_training *t, int world, long iteration, const float *losses,
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

/* Everyone's losses up to an iteration, at most poll_every of them, and what everyone wishes then:
 * one talk among the ranks for both. */
ct_status ct_training_read_until(ct_training *t, long iteration) {
    ct_run *run = t->run;
    if (t->next > iteration) return CT_OK;
    size_t n = (size_t)(iteration + 1 - t->next) * CT_LOSS_FIELDS;
    size_t column = (size_t)(t->next % run->epoch_iterations) * CT_LOSS_FIELDS;
    float wish = (float)ct_training_wish(t, iteration + 1);
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
