/* What other papers do between the last iteration and the number they report: some rounds of gossip
 * without gradients, or one model for all. */
#include <math.h>

#include "run/run.h"
#include "util/memory.h"

/* The k-th round after the last iteration. */
static ct_status gossip(ct_run *run, long n_iterations, long k) {
    ct_agents *a = &run->agents;
    ct_bank mixed = ct_temp(1);
    run->has_consensus = false;
    if (run->schedule.n > 0) {
        long round = ct_local_steps_rounds(&run->schedule.local, n_iterations) + k;
        const ct_phase *phase = ct_schedule_round(&run->schedule, round);
        CT_TRY(ct_agents_connect(a, &phase->sources, &phase->w));
    }
    CT_TRY(ct_agents_exchange(a, &a->x));
    ct_update u = ct_agents_update(a);
    SET(&u, &mixed, {1, &a->x, a->w});
    SET(&u, &a->x, {1, &mixed});
    return ct_agents_apply(a, &u);
}

/* Every agent takes the mean of its world, which costs an all-reduce. */
static ct_status merge(ct_run *run) {
    ct_agents *a = &run->agents;
    CT_SCOPED(ct_sparse) spread = {0};
    CT_TRY(ct_agents_seeds(a, &spread));
    CT_TRY(ct_run_average(run, &a->x, &run->consensus));
    run->has_consensus = true;
    ct_update u = ct_agents_update(a);
    SET(&u, &a->x, {1, &run->consensus, &spread});
    CT_TRY(ct_agents_apply(a, &u));
    uint64_t n = (uint64_t)a->n_agents, bytes = 2 * (n - 1) * a->x.n * sizeof(float) / n;
    for (int row = 0; row < a->n_rows; row++)
        ct_transport_count(run->transport, row, CT_TRAFFIC_PARAMETERS, bytes);
    return CT_OK;
}

ct_status ct_run_finish(ct_run *run, long n_iterations, ct_finish *out) {
    const ct_config *c = &run->config;
    for (int k = 0; k < run->n_worlds; k++) out[k] = (ct_finish){NAN, NAN, NAN};
    for (int64_t k = 0; k < c->gossip_rounds; k++) CT_TRY(gossip(run, n_iterations, (long)k));
    if (c->gossip_rounds > 0) {
        ct_evaluation *e = ct_new(ct_evaluation, (size_t)run->n_worlds);
        if (e == NULL) return ct_fail(CT_NOMEM, "no memory for %d evaluations", run->n_worlds);
        ct_status status = ct_run_score_all(run, true, e);
        for (int k = 0; k < run->n_worlds && status == CT_OK; k++)
            out[k] = (ct_finish){e[k].local_accuracy_mean, e[k].local_accuracy_min,
                                 e[k].local_accuracy_max};
        ct_free(e);
        CT_TRY(status);
    }
    return c->final_merge ? merge(run) : CT_OK;
}
