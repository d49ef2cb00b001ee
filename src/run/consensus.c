/* The mean of the agents' models. Where all agents share one data set, W's sparse means are taken by
 * the backend; where each has its own, sums are exact (util/fixed.h), so that they may be added up
 * along any tree. */
#include "run/run.h"

#include "run/own.h"
#include "site/site.h"
#include "util/fixed.h"
#include "util/log.h"
#include "util/memory.h"

/* The consensus is that of the living. */
void ct_run_weigh_living(ct_run *run) {
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

ct_status ct_run_update_consensus(ct_run *run) {
    ct_run_weigh_living(run);
    run->has_consensus = true;
    ct_update u = {.n_rows = run->n_worlds};
    SET(&u, &run->consensus, {1, run->all_x, &run->mean});
    CT_TRY(ct_update_run(run->backend, &u));
    if (run->graph.n_buffer_values == 0) return CT_OK;
    ct_update v = {.n_rows = run->n_worlds};
    SET(&v, &run->consensus_running, {1, run->all_running, &run->mean});
    return ct_update_run(run->backend, &v);
}

/* One world's mean of its living agents' rows. */
static ct_status average_world(const ct_run *run, const ct_bank *all, int world, ct_fixed *sums,
                               float *row) {
    int n = run->agents.n_agents, n_alive = 0;
    memset(sums, 0, all->n * sizeof *sums);
    for (int i = 0; i < n; i++) {
        if (!ct_run_is_alive(run, world * n + i, run->agents.iteration)) continue;
        ct_error error;
        n_alive++;
        CT_TRY(ct_bank_read(all, world * n + i, 0, all->n, row));
        ct_status status = CT_CATCH(&error, ct_fixed_add(row, all->n, sums));
        if (status != CT_OK)
            return ct_fail(status, "agent %s has diverged (%s): lower @lr (%g)",
                           ct_config_agent(&run->config, i).name, error.text, run->agents.lr);
    }
    ct_fixed_mean(sums, all->n, n_alive > 0 ? n_alive : 1, row);
    return CT_OK;
}

static ct_status average_exactly(const ct_run *run, const ct_bank *all, ct_bank *out) {
    CT_SCOPED_BLOCK(ct_fixed) sums = NULL;
    CT_SCOPED_BLOCK(float) row = NULL;
    CT_TRY(ct_make(&sums, all->n, "the mean model"));
    CT_TRY(ct_make(&row, all->n, "the mean model"));
    for (int k = 0; k < run->n_worlds; k++) {
        CT_TRY(average_world(run, all, k, sums, row));
        CT_TRY(ct_bank_write(out, k, 0, all->n, row));
    }
    return CT_OK;
}

ct_status ct_run_average(ct_run *run, const ct_bank *bank, ct_bank *out) {
    CT_SCOPED(ct_bank) everyone = {0};
    const ct_bank *all = bank;
    if (ct_transport_n_ranks(run->transport) > 1) {
        CT_TRY(ct_bank_create(run->backend, run->agents.n_rows, 0, bank->n, &everyone));
        CT_TRY(ct_transport_spread(run->transport, bank, &everyone));
        all = &everyone;
    }
    if (run->is_own) return average_exactly(run, all, out);
    ct_update u = {.n_rows = run->n_worlds};
    SET(&u, out, {1, all, &run->mean});
    return ct_update_run(run->backend, &u);
}

/* A model, its running statistics behind its parameters, from or to a row. */
static ct_status read_model(const ct_bank *x, const ct_bank *running, float *row) {
    CT_TRY(ct_bank_read(x, 0, 0, x->n, row));
    return running->n > 0 ? ct_bank_read(running, 0, 0, running->n, row + x->n) : CT_OK;
}

static ct_status write_model(const float *row, ct_bank *x, ct_bank *running) {
    CT_TRY(ct_bank_write(x, 0, 0, x->n, row));
    return running->n > 0 ? ct_bank_write(running, 0, 0, running->n, row + x->n) : CT_OK;
}

/* Along a tree of the sites that are there: models, and their averages over time, as one row. */
static ct_status average_sites(ct_run *run) {
    ct_average *a = &run->average;
    size_t n = run->graph.n_weights + run->graph.n_buffer_values;
    bool is_averaged = ct_run_has_average(run);
    int n_sites = 0;
    CT_SCOPED_BLOCK(ct_fixed) sums = NULL;
    CT_SCOPED_BLOCK(float) row = NULL;
    CT_TRY(ct_make(&sums, 2 * n, "the mean model"));
    CT_TRY(ct_make(&row, 2 * n, "the mean model"));
    CT_TRY(read_model(&run->agents.x, &run->agents.running, row));
    if (is_averaged) CT_TRY(read_model(&a->x, &a->running, row + n));
    CT_TRY(ct_fixed_add(row, is_averaged ? 2 * n : n, sums));
    CT_TRY(ct_site_mean(run->config.site, sums, row, &n_sites));
    ct_note("the consensus model is the mean of %d of %d sites", n_sites, run->agents.n_agents);
    CT_TRY(write_model(row, &run->consensus, &run->consensus_running));
    return is_averaged ? write_model(row + n, &a->consensus, &a->consensus_running) : CT_OK;
}

ct_status ct_run_find_consensus(ct_run *run) {
    if (run->config.site != NULL) {
        if (!run->has_consensus) CT_TRY(average_sites(run));
        run->has_consensus = true;
        return CT_OK;
    }
    bool is_alone = ct_transport_n_ranks(run->transport) == 1;
    if (is_alone && run->has_consensus) return CT_OK;
    ct_run_weigh_living(run);
    CT_TRY(ct_run_average(run, &run->agents.x, &run->consensus));
    if (run->graph.n_buffer_values > 0)
        CT_TRY(ct_run_average(run, &run->agents.running, &run->consensus_running));
    run->has_consensus = true;
    return CT_OK;
}
