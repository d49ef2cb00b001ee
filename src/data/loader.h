/* Batches of pictures made ready ahead of their use. Worker threads take (iteration, agent) in
 * order, cut the pictures of that batch out of ct_pictures and put them into a ring of images that
 * holds the batches of a few iterations; memory does not grow with the data set. Which sample is
 * visited when, and how it is cut, follows from (seed, agent, pass, sample) alone: the number of
 * workers changes nothing but the time. */
#ifndef CT_DATA_LOADER_H
#define CT_DATA_LOADER_H

#include "data/batch.h"
#include "data/dataset.h"
#include "data/order.h"

typedef struct ct_loader_spec {
    ct_pictures *pictures;
    ct_order *order; /* of whose batches; only the loader may ask it for batches from now on */
    int first_agent; /* of the order's agents, first_agent .. first_agent + n_agents - 1 */
    int n_agents;
    int batch_size;
    int n_workers;     /* 0 = one per processor */
    size_t ring_bytes; /* 0 = 256 MiB; at least two iterations are held in any case */
} ct_loader_spec;

typedef struct ct_loader ct_loader;

/* Starts making the batches of iteration 0. */
ct_status ct_loader_create(const ct_loader_spec *spec, ct_loader **out);
void ct_loader_free(ct_loader **loader);

/* The ring: what batches point into. Its pixels change while it is used. */
const ct_images *ct_loader_images(const ct_loader *loader);

/* The batches of an iteration, out[n_agents]; waits until they are ready. They hold until the next
 * call. Iterations are best asked for one after the other; any other starts the ring anew. *first
 * (may be NULL): the images of this iteration are ring images *first .. *first + *n - 1. */
ct_status ct_loader_batches(ct_loader *loader, long iteration, ct_batch *out, size_t *first,
                            size_t *n);

/* Seconds spent waiting in ct_loader_batches. */
double ct_loader_waited(const ct_loader *loader);

#endif
