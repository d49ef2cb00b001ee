/* A network that the caller computes (crosstalk/external.h): a graph without layers, and a plan and
 * sources that hand jobs over to him. Banks and updates are those of any backend, so that every
 * algorithm, graph, transport and checkpoint works as with a network of ours. */
#ifndef CT_BACKEND_EXTERNAL_H
#define CT_BACKEND_EXTERNAL_H

#include <crosstalk/external.h>

#include "backend/backend.h"

/* His parameters, all zero at first, and features; CT_INVAL where his description is off. */
ct_status ct_external_graph(const ct_external *external, int n_classes, ct_graph *out);

/* The plan of such a graph. `external` is lent until it is freed. CT_INVAL: he wants device memory
 * and the backend has none. */
ct_status ct_external_plan_create(ct_backend *backend, const ct_graph *graph, int max_batch,
                                  const ct_external *external, ct_plan **out);
/* Labels and numbers of the samples; numbers as in ct_dataset.train_numbers. Both outlive it. */
ct_status ct_external_source_create(ct_backend *backend, const ct_images *images,
                                    const uint32_t *numbers, ct_source **out);

/* The iteration of the jobs to come, and which row of all rows an own agent's batch 0 belongs to;
 * n_agents: of one world. */
void ct_external_begin(ct_plan *plan, long iteration, int first_row, int n_agents);

#endif
