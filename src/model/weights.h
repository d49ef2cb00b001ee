/* A model's tensors, under PyTorch's parameter names, to and from rows of parameters. */
#ifndef CT_MODEL_WEIGHTS_H
#define CT_MODEL_WEIGHTS_H

#include "nn/graph.h"
#include "util/safetensors.h"

/* Whether a file holds a model for each agent: tensors named agent.<i>.<name>. */
bool ct_weights_are_per_agent(const ct_tensors *tensors);

/* "agent.<i>." */
typedef struct ct_weights_prefix {
    char text[32];
} ct_weights_prefix;
ct_weights_prefix ct_weights_prefix_of(int agent);

/* CT_IO: a tensor that belongs to no parameter; after `agent.<i>.` with i < n_agents if
 * n_agents > 0. */
ct_status ct_weights_check(const char *path, const ct_tensors *tensors, const ct_graph *graph,
                           int n_agents);
/* Tensors named prefix + name into a row of parameters and one of running statistics. CT_IO: one is
 * missing, or has another shape. */
ct_status ct_weights_load(const char *path, const ct_tensors *tensors, const char *prefix,
                          const ct_graph *graph, float *row, float *running);

/* Tensors of one model, named prefix + name, that point into its rows; out: [n_params + n_buffers].
 * Their names are the caller's to free, also those made before there was no memory. */
ct_status ct_weights_describe(const ct_graph *graph, const char *prefix, float *row, float *running,
                              ct_tensor *out);

#endif
