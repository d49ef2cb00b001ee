/* In which order an agent visits its samples, and how each is cut out: all draws keyed by (seed,
 * agent, pass, sample), so that they do not depend on threads, backend or placement. */
#ifndef CT_DATA_ORDER_H
#define CT_DATA_ORDER_H

#include "data/batch.h"
#include "data/partition.h"
#include "util/rng.h"
#include "util/status.h"

typedef struct ct_order_spec {
    const uint64_t *seeds; /* [n_seeds] the partition's agents are rows, seed by seed */
    int n_seeds;
    int batch_size;
    bool shuffle;            /* a new order every pass; otherwise the partition's */
    int crop_padding;        /* 0: no random crop */
    bool flip;               /* random horizontal flips */
    const uint32_t *numbers; /* of a part: numbers of its samples in the whole set, by which all is
                                drawn; they outlive the order. NULL: their places */
    size_t most_samples; /* of any agent, also of those that the partition knows nothing of; 0: it
                            knows them all */
} ct_order_spec;

typedef struct ct_order ct_order;

/* Refers to `partition`, which must outlive it. */
ct_status ct_order_create(const ct_order_spec *spec, const ct_partition *partition, ct_order **out);
void ct_order_free(ct_order **order);

/* Iterations of an epoch: until the agent with the most samples has seen them all. An agent with
 * fewer begins its next pass meanwhile; the last batch of a pass may be short. */
long ct_order_epoch(const ct_order *order);

/* Batch `iteration` (0, 1, ...) of an agent. The arrays inside belong to the order and hold until
 * the next call for that agent; iterations may be asked for in any sequence. */
ct_batch ct_order_batch(ct_order *order, int agent, long iteration);

/* The random numbers by which a sample of that iteration is cut out. */
void ct_order_rng(const ct_order *order, int agent, long iteration, uint32_t sample, ct_rng *out);

/* How many samples that batch has. */
int ct_order_batch_size(const ct_order *order, int agent, long iteration);

#endif
