/* SWIFT, wait-free decentralized learning (Bornstein, Rabbani, Wang, Bedi and Huang, ICLR 2023).
 * Every agent sends its model to its neighbours when it begins a step, and keeps the last it got from
 * each. In agent i's event (async.h)
 *   m_i <- beta m_i + g(x_i)
 *   x_i <- x_i + gamma (sum_j w_ij x_j - x_i) - eta d_i          d = g + beta m (Nesterov) or m
 * with the models x_j that the neighbours began their current steps with, which are those that they
 * still hold: nobody changes another's. Only row i of W is used, so that the mean of all models is
 * kept on average only.
 * Its authors' program has momentum too (none unless asked for, 0.9 in their experiments), and gradients
 * at the model before averaging as here.
 * Deviation: w is --weights. The authors' weights are these on regular graphs; on others agents of the
 * highest degree choose theirs first, and those after them share what is left. In their program an agent
 * sends its model when its gradient is ready, before it averages: one of its own steps later than here
 * and in the paper. They may leave averaging out in some of an agent's steps. */
#include "algo/algo.h"
#include "algo/async.h"

enum { MOMENTUM }; /* m */

static double mix(const ct_agents *a, ct_async_world *w, int i, long step) {
    const ct_topology *t = a->links.topology;
    double sending_s = 0;
    (void)step;
    ct_async_combine(a, w, i);
    for (int e = t->begin[w->first + i]; e < t->begin[w->first + i + 1]; e++)
        sending_s += ct_async_send(a, w, i, t->neighbour[e] - w->first);
    return sending_s;
}

static ct_status step(ct_agents *a) {
    const ct_async *events = a->state;
    ct_bank *x = &a->x, x_next = ct_temp(1);
    CT_TRY(ct_agents_gradient(a, x, x));
    ct_async_run(a, mix);
    CT_TRY(ct_async_direct(a, ct_own_buffer(a, MOMENTUM)));

    ct_update u = ct_agents_update(a);
    SET(&u, &x_next, {1, events->all_x, &events->mix}, {-a->lr, events->all_d, &events->step});
    SET(&u, x, {1, &x_next});
    return ct_agents_apply(a, &u);
}

const ct_algo ct_algo_swift = {
    .name = "swift",
    .text = "SWIFT: nobody waits, an agent mixes with the last models it got (@speed)",
    .graphs = CT_GRAPHS_FIXED,
    .may_lose = CT_MAY_LOSE_NOTHING,
    .is_simulation = true,
    .buffers = {"momentum"},
    .state_size = sizeof(ct_async),
    .create = ct_async_create,
    .step = step,
    .free = ct_async_free,
    .host_state = ct_async_host_state,
};
