#include "nn/graph.h"

#include "util/rng.h"

static void fill(const ct_param *p, ct_rng *rng, float *values) {
    for (size_t k = 0; k < p->count; k++) {
        switch (p->init) {
        case CT_INIT_ZERO: values[k] = 0.0f; break;
        case CT_INIT_ONE: values[k] = 1.0f; break;
        case CT_INIT_NORMAL: values[k] = (float)(p->scale * ct_rng_normal(rng)); break;
        case CT_INIT_UNIFORM:
            values[k] = (float)(p->scale * (2.0 * ct_rng_uniform(rng) - 1.0));
            break;
        }
    }
}

void ct_init_params(const ct_graph *g, unsigned long long seed, float *row) {
    for (int p = 0; p < g->n_params; p++) {
        ct_rng rng;
        ct_rng_init(&rng, seed, CT_RNG_INIT, 0, 0, (uint32_t)p);
        fill(&g->params[p], &rng, row + g->params[p].offset);
    }
}

void ct_init_buffers(const ct_graph *g, float *row) {
    for (int b = 0; b < g->n_buffers; b++) fill(&g->buffers[b], NULL, row + g->buffers[b].offset);
}
