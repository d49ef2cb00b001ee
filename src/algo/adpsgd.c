/* AD-PSGD, asynchronous decentralized parallel SGD (Lian, Zhang, Zhang and Liu, ICML 2018). Nobody
 * waits: in agent i's event (async.h), with a neighbour j drawn at random,
 *   x_i, x_j <- (x_i + x_j) / 2                      both at once
 *   m_i      <- beta m_i + g(s_i)
 *   x_i      <- x_i - eta d_i                        d = g + beta m (Nesterov) or m
 *   s_i      <- x_i                                  where its next gradient is taken
 * g(s_i) is the gradient at the model with which i began its step: averages with others since then
 * have changed x_i, but not s_i. The mean of all models moves by -eta d_i / n in every event.
 * Deviation: the authors have no momentum; --momentum 0 is theirs. To avoid deadlocks they let one half
 * of a bipartite graph alone choose partners; nothing can lock here, and everyone chooses. No program of
 * theirs was found; that of SGP's authors has momentum (0.9), and takes the step before it averages. */
#include "algo/algo.h"
#include "algo/async.h"
#include "util/rng.h"

enum { MOMENTUM, START }; /* m, s */

static double meet(const ct_agents *a, ct_async_world *w, int i, long step) {
    const ct_topology *t = a->links.topology;
    int row = w->first + i, begin = t->begin[row];
    uint32_t degree = (uint32_t)(t->begin[row + 1] - begin);
    ct_rng rng;
    if (degree == 0) return 0;
    ct_rng_init(&rng, a->speeds->seeds[row / w->n], CT_RNG_SPEED, (uint32_t)i, (uint32_t)step, 1);
    int j = t->neighbour[begin + (int)ct_rng_below(&rng, degree)] - w->first;
    ct_async_average(w, i, j);
    (void)ct_async_send(a, w, j, i); /* both send at the same time */
    return ct_async_send(a, w, i, j);
}

static ct_status start(ct_agents *a) {
    if (a->iteration > 0) return CT_OK;
    ct_update u = ct_agents_update(a);
    SET(&u, ct_own_buffer(a, START), {1, &a->x});
    return ct_agents_apply(a, &u);
}

static ct_status step(ct_agents *a) {
    const ct_async *events = a->state;
    ct_bank *x = &a->x, *s = ct_own_buffer(a, START), x_next = ct_temp(1), s_next = ct_temp(2);
    CT_TRY(start(a));
    CT_TRY(ct_agents_gradient(a, s, s));
    ct_async_run(a, meet);
    CT_TRY(ct_async_direct(a, ct_own_buffer(a, MOMENTUM)));

    ct_update u = ct_agents_update(a);
    SET(&u, &x_next, {1, events->all_x, &events->mix}, {-a->lr, events->all_d, &events->step});
    SET(&u, &s_next, {1, events->all_x, &events->start_mix},
        {-a->lr, events->all_d, &events->start_step}, {1, s, &events->idle});
    SET(&u, x, {1, &x_next});
    SET(&u, s, {1, &s_next});
    return ct_agents_apply(a, &u);
}

const ct_algo ct_algo_adpsgd = {
    .name = "adpsgd",
    .text = "AD-PSGD: nobody waits, pairs of agents average whenever one is done (@speed)",
    .graphs = CT_GRAPHS_FIXED,
    .may_lose = CT_MAY_LOSE_NOTHING,
    .is_simulation = true,
    .buffers = {"momentum", "start"},
    .state_size = sizeof(ct_async),
    .create = ct_async_create,
    .step = step,
    .free = ct_async_free,
    .host_state = ct_async_host_state,
};
