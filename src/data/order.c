#include "data/order.h"

#include <string.h>

#include "util/memory.h"
#include "util/rng.h"

typedef struct agent_order {
    long pass;         /* whose order `samples` holds; -1 = none yet */
    uint32_t *samples; /* [size] */
    ct_crop *crops;    /* [batch_size] */
} agent_order;

struct ct_order {
    ct_order_spec spec;
    const ct_partition *partition;
    agent_order *agents;
};

ct_status ct_order_create(const ct_order_spec *spec, const ct_partition *partition,
                          ct_order **out) {
    static const char what[] = "the data order";
    CT_SCOPED_HANDLE(ct_order) order = NULL;
    CT_TRY(ct_make(&order, 1, what));
    *order = (ct_order){.spec = *spec, .partition = partition};
    CT_TRY(ct_make(&order->agents, (size_t)partition->n_agents, what));
    for (int a = 0; a < partition->n_agents; a++) {
        agent_order *mine = &order->agents[a];
        mine->pass = -1;
        CT_TRY(ct_make(&mine->samples, ct_partition_size(partition, a), what));
        CT_TRY(ct_make(&mine->crops, (size_t)spec->batch_size, what));
    }
    ct_move(out, &order);
    return CT_OK;
}

void ct_order_free(ct_order **order) {
    ct_order *o = *order;
    if (o == NULL) return;
    for (int a = 0; o->agents != NULL && a < o->partition->n_agents; a++) {
        ct_free(o->agents[a].samples);
        ct_free(o->agents[a].crops);
    }
    ct_free(o->agents);
    ct_free(o);
    *order = NULL;
}

static long batches_for(const ct_order *order, size_t n) {
    size_t b = (size_t)order->spec.batch_size;
    return (long)((n + b - 1) / b);
}

static long batches_of(const ct_order *order, int agent) {
    return batches_for(order, ct_partition_size(order->partition, agent));
}

long ct_order_epoch(const ct_order *order) {
    long most = batches_for(order, order->spec.most_samples);
    for (int a = 0; a < order->partition->n_agents; a++)
        if (batches_of(order, a) > most) most = batches_of(order, a);
    return most;
}

/* A row's key in every draw: its seed, and its number among that seed's agents. */
static uint64_t seed_of(const ct_order *order, int row) {
    return order->spec.seeds[row / (order->partition->n_agents / order->spec.n_seeds)];
}
static uint32_t agent_of(const ct_order *order, int row) {
    return (uint32_t)(row % (order->partition->n_agents / order->spec.n_seeds));
}

static void begin_pass(ct_order *order, int agent, long pass) {
    agent_order *mine = &order->agents[agent];
    size_t n = ct_partition_size(order->partition, agent);
    memcpy(mine->samples, order->partition->index + order->partition->begin[agent],
           n * sizeof *mine->samples);
    mine->pass = pass;
    if (!order->spec.shuffle) return;
    ct_rng rng;
    ct_rng_init(&rng, seed_of(order, agent), CT_RNG_SHUFFLE, agent_of(order, agent), (uint32_t)pass,
                0);
    ct_rng_shuffle(&rng, mine->samples, n);
}

void ct_order_rng(const ct_order *order, int agent, long iteration, uint32_t sample, ct_rng *out) {
    long pass = iteration / batches_of(order, agent);
    const uint32_t *numbers = order->spec.numbers;
    ct_rng_init(out, seed_of(order, agent), CT_RNG_AUGMENT, agent_of(order, agent), (uint32_t)pass,
                numbers != NULL ? numbers[sample] : sample);
}

static ct_crop draw_crop(const ct_order *order, int agent, long iteration, uint32_t sample) {
    const ct_order_spec *spec = &order->spec;
    ct_rng rng;
    ct_order_rng(order, agent, iteration, sample, &rng);
    uint32_t side = 2 * (uint32_t)spec->crop_padding + 1;
    ct_crop crop = {.dy = (int8_t)((int)ct_rng_below(&rng, side) - spec->crop_padding),
                    .dx = (int8_t)((int)ct_rng_below(&rng, side) - spec->crop_padding)};
    crop.flip = spec->flip && (ct_rng_u32(&rng) & 1) != 0;
    return crop;
}

/* Place of the batch's first sample in the agent's pass. */
static size_t batch_start(const ct_order *order, int agent, long iteration) {
    return (size_t)(iteration % batches_of(order, agent)) * (size_t)order->spec.batch_size;
}

int ct_order_batch_size(const ct_order *order, int agent, long iteration) {
    size_t left = ct_partition_size(order->partition, agent) - batch_start(order, agent, iteration);
    size_t batch = (size_t)order->spec.batch_size;
    return (int)(left < batch ? left : batch);
}

ct_batch ct_order_batch(ct_order *order, int agent, long iteration) {
    agent_order *mine = &order->agents[agent];
    long pass = iteration / batches_of(order, agent);
    if (mine->pass != pass) begin_pass(order, agent, pass);
    ct_batch out = {.n = ct_order_batch_size(order, agent, iteration),
                    .index = mine->samples + batch_start(order, agent, iteration)};
    if (order->spec.crop_padding == 0 && !order->spec.flip) return out;
    for (int b = 0; b < out.n; b++)
        mine->crops[b] = draw_crop(order, agent, iteration, out.index[b]);
    out.crop = mine->crops;
    return out;
}
