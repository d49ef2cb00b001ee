#ifndef CT_ALGO_AGENTS_INTERNAL_H
#define CT_ALGO_AGENTS_INTERNAL_H

#include "algo/agents.h"

/* The messages of a graph, senders and receivers among all rows (links.c). */
void ct_agents_route(ct_agents *a, const ct_topology *sources);
/* The cross-features that an exchange along these edges (those of a->neighbours now) needs. */
void ct_agents_list_cross(ct_agents *a, const ct_topology *sources);

/* Rows of a travelling bank behind the own ones: halo rows and, where things fail, mailboxes. */
static inline int ct_agents_far_rows(const ct_agents *a, const ct_routes *routes) {
    return routes->most_halo + (a->faults != NULL ? routes->n_mail : 0);
}
/* The row in which a message's receiver finds what was sent to it. */
static inline int ct_agents_arrival(const ct_agents *a, const ct_routes *r, int message) {
    if (a->faults != NULL) return r->mail[message];
    return ct_routes_row(r, r->by_edge ? message : r->from[message]);
}
static inline bool ct_agents_is_alive(const ct_agents *a, int row) {
    return a->faults == NULL || ct_faults_alive(a->faults, row, a->iteration);
}

/* Jobs on this iteration's batches. */
ct_work ct_agents_work(ct_agents *a, const ct_bank *params, const ct_job *jobs, int n_jobs);

/* ---- CCL (cross_features.c) ---- */
ct_status ct_agents_create_economy(ct_agents *a);

/* This iteration contrasts: with CCL, in every economy.every-th. */
bool ct_agents_contrasts(const ct_agents *a);

/* Steps 1-3 of the paper's Algorithm 2: every agent runs its neighbours' models (rows of `shared`)
 * on its own batch, sends each neighbour the class sums of what came out, and adds up what it is
 * sent itself. Fills what the objective says about all this. */
ct_status ct_agents_exchange_features(ct_agents *a, ct_bank *shared, ct_objective *objective);

/* After a gradient whose lambdas adapt: with --ccl-adaptive s, the next ones will make a weighted
 * term the part s of the cross-entropy,
 *   lambda_m = min(1, s L_ce / L_mv),   lambda_d = min(1, s L_ce / L_dv),
 * over every agent's means L <- 0.9 L + 0.1 (this iteration's L), started by the first; 0 before.
 */
ct_status ct_agents_update_means(ct_agents *a);

#endif
