/* A training run: from options, or with the caller's own data, graph and model; in steps. */
#ifndef CROSSTALK_RUN_H
#define CROSSTALK_RUN_H

#include <crosstalk/config.h>
#include <crosstalk/external.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ct_run ct_run;

/* ---- what a run may be given beside options ---- */

typedef enum ct_type {
    CT_UINT8,   /* pixels; a tensor's value is (v / 255 - mean) / std per channel */
    CT_FLOAT32, /* any numbers; a tensor's value is (v - mean) / std per channel */
} ct_type;

/* One part of a data set: training or test samples. */
typedef struct ct_samples {
    size_t n;
    const void *values;    /* [n][channels][height][width]; NULL with an external model that has its
                            * own samples */
    const int32_t *labels; /* [n] 0 .. n_classes-1 */
} ct_samples;

/* Samples in the caller's memory. The arrays are not copied: they stay as they are until the run is
 * freed. Rows of numbers are pictures of one channel and one row; their default model is mlp. There
 * are no random crops and flips. Under MPI every rank gives all samples. */
typedef struct ct_data {
    size_t size;
    const char *name; /* the record's option dataset; NULL: "memory" */
    ct_type type;
    int channels, height, width;
    int n_classes;
    const char *const *class_names; /* [n_classes]; NULL: none */
    ct_samples train;
    ct_samples test;         /* n = 0: nothing is tested, accuracies are NaN */
    const float *mean, *std; /* [channels]; NULL: of the training samples */
    const int32_t *agent_of; /* [train.n] who holds a sample, -1: nobody; the record's option
                              * partition is "own" then. NULL: option partition */
} ct_data;
#define CT_DATA_INIT                                                                               \
    { sizeof(ct_data), 0, CT_UINT8, 1, 1, 1, 0, 0, {0, 0, 0}, {0, 0, 0}, 0, 0, 0 }

/* A graph of the caller's: undirected edges between agents 0 .. n-1, connected, none twice. The
 * mixing weights follow from the option `weights`; the record's option topology is "own". */
typedef struct ct_edges {
    size_t size;
    int n_edges;
    const int (*edges)[2];
} ct_edges;
#define CT_EDGES_INIT                                                                              \
    { sizeof(ct_edges), 0, 0 }

typedef struct ct_inputs {
    size_t size;
    const ct_data *data;         /* NULL: the options dataset and data-dir */
    const ct_edges *graph;       /* NULL: the option topology */
    const ct_external *external; /* NULL: the option model */
    const ct_hooks *hooks;       /* NULL: none */
    bool writes_nothing;         /* no run directory: no record, no checkpoints */
} ct_inputs;
#define CT_INPUTS_INIT                                                                             \
    { sizeof(ct_inputs), 0, 0, 0, 0, false }

/* ---- its life ---- */

/* Reads the data, builds everything and begins the run directory. The config is copied. inputs:
 * NULL, or what differs from the options; the structs are copied, the arrays, texts and functions
 * that they point to are lent until the run is freed. An option that says otherwise is refused. With
 * the option `resume`, the run is where its checkpoint was; one that is finished is refused. */
CT_API ct_status ct_run_create(const ct_config *config, const ct_inputs *inputs, ct_run **out,
                               ct_error *error);
CT_API void ct_run_free(ct_run **run);

/* Trains n iterations, fewer if the run ends before; on the way it evaluates, writes metrics and
 * checkpoints as the options say. After the last iteration the results are written and the run is
 * done; from then on nothing happens. n = 0 trains to the end. The numbers are the same in any
 * steps. CT_STOPPED: a hook said so, and the run may be stepped further. Any other failure is final:
 * the run can only be looked at and freed. Not to be called by a hook of the same run. */
CT_API ct_status ct_run_step(ct_run *run, long n, ct_error *error);
CT_API bool ct_run_is_done(const ct_run *run);
CT_API long ct_run_iteration(const ct_run *run);
CT_API long ct_run_n_iterations(const ct_run *run);
/* Iterations of an epoch. */
CT_API long ct_run_epoch_length(const ct_run *run);

/* Writes a checkpoint now; option `resume` continues from it. CT_INVAL: the run writes nothing, or is
 * done. */
CT_API ct_status ct_run_checkpoint(ct_run *run, ct_error *error);

/* ---- what it knows ---- */

/* An option as it was resolved: nothing is "auto" any more. */
CT_API ct_status ct_run_option(const ct_run *run, const char *name, char *out, size_t size,
                               ct_error *error);
/* Its run directory; "": it has none. */
CT_API const char *ct_run_directory(const ct_run *run);

/* Several seeds or lambdas in one run are its worlds, each with all agents; a plain run has one. */
CT_API int ct_run_n_worlds(const ct_run *run);
CT_API int ct_run_n_agents(const ct_run *run);

/* Numbers that a run reports, by the keys of metrics.jsonl ("ce", "consensus_accuracy", ...);
 * ct_metric_key walks them, NULL after the last. */
CT_API const char *ct_metric_key(int k);
/* Of the last epoch that is over; NaN: unknown, or not evaluated then. Under MPI rank 0 alone has
 * accuracies. */
CT_API double ct_run_metric(const ct_run *run, int world, const char *key);
/* Evaluates the consensus model and every agent now; ct_run_metric has the result. The record of
 * the run does not change. */
CT_API ct_status ct_run_evaluate(ct_run *run, ct_error *error);

/* ---- parameters ---- */

#define CT_CONSENSUS (-1) /* as an agent: the mean of all agents' models, computed when asked for */

typedef struct ct_tensor_info {
    size_t size;
    const char *name; /* as in PyTorch's state dict: "layer1.0.conv1.weight" */
    int n_dims;
    size_t dims[CT_MAX_DIMS];
    size_t offset, count; /* floats within a row of all parameters */
} ct_tensor_info;
#define CT_TENSOR_INFO_INIT                                                                        \
    { sizeof(ct_tensor_info), 0, 0, {0}, 0, 0 }

CT_API size_t ct_run_n_parameters(const ct_run *run);
CT_API int ct_run_n_tensors(const ct_run *run);
CT_API bool ct_run_tensor(const ct_run *run, int k, ct_tensor_info *out);
/* A model's parameters [n_parameters] to host memory, and back; what is written for CT_CONSENSUS
 * every agent gets. Under MPI an agent's own rank alone can read them (CT_INVAL elsewhere), all ranks
 * read the consensus model together, and all ranks write together, whoever's model it is. */
CT_API ct_status ct_run_read(ct_run *run, int world, int agent, float *out, ct_error *error);
CT_API ct_status ct_run_write(ct_run *run, int world, int agent, const float *values,
                              ct_error *error);
/* An agent's parameters where they lie, to be read, valid until the next call with this run.
 * on_device: a CUDA pointer. NULL: the agent lives on another rank, or does not exist. */
CT_API float *ct_run_view(ct_run *run, int world, int agent, bool *on_device);
/* The same as a DLPack tensor (DLManagedTensorVersioned, dlpack.h 1.x) of n_parameters floats; its
 * deleter frees the description, not the parameters. CT_INVAL: the agent lives on another rank. */
struct DLManagedTensorVersioned;
CT_API ct_status ct_run_dlpack(ct_run *run, int world, int agent,
                               struct DLManagedTensorVersioned **out, ct_error *error);

/* Saves the consensus model, or an agent's, as a .safetensors file that ct_model_open reads. Under
 * MPI as ct_run_read; rank 0 writes the consensus model. */
CT_API ct_status ct_run_save(ct_run *run, int world, int agent, const char *path, ct_error *error);

#ifdef __cplusplus
}
#endif

#endif
