/* Random matchings: in every round the agents pair up at random and average, weight 1/2; one
 * stays alone if their number is odd. Drawn from (seed, round): nothing to keep. */
#include "topology/schedule_internal.h"

#include "util/rng.h"

/* Row i with its partner j; j == i: alone. */
static void fill_row(ct_phase *phase, int i, int j) {
    static const double half = 0.5;
    ct_topology *t = &phase->sources;
    int n = i != j;
    if (n > 0) t->neighbour[t->begin[i]] = j;
    t->begin[i + 1] = t->begin[i] + n;
    ct_mixing_fill_row(&phase->w, i, &j, &half, n, n > 0 ? half : 1);
}

static void draw(const ct_schedule *s, long round, ct_phase *out) {
    uint32_t n = (uint32_t)s->n_agents;
    /* out->w.column of a row is overwritten in order, so the partners are kept beside it. */
    for (int seed = 0; seed < s->n / s->n_agents; seed++) {
        uint32_t *order = s->order, *partner = s->order + n;
        ct_rng rng;
        ct_rng_init(&rng, s->seeds[seed], CT_RNG_TOPOLOGY, 1, (uint32_t)round, 0);
        for (uint32_t i = 0; i < n; i++) order[i] = partner[i] = i;
        ct_rng_shuffle(&rng, order, n);
        for (uint32_t k = 0; k + 1 < n; k += 2) {
            partner[order[k]] = order[k + 1];
            partner[order[k + 1]] = order[k];
        }
        int first = seed * s->n_agents;
        for (uint32_t i = 0; i < n; i++) fill_row(out, first + (int)i, first + (int)partner[i]);
    }
}

ct_status ct_schedule_make_matchings(const ct_topology_request *request, ct_arrows *out) {
    out->drawing = (ct_drawing){.draw = draw, .n_sent = 1, .most_received = 1};
    return ct_request_no_argument(request);
}
