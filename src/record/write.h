/* What a run writes into its directory. It hands over what it knows as plain structs; how files are
 * called and what they look like is known here alone. */
#ifndef CT_RECORD_WRITE_H
#define CT_RECORD_WRITE_H

#include "data/dataset.h"
#include "data/partition.h"
#include "record/epoch.h"
#include "record/identity.h"
#include "record/record.h"
#include "schema/config.h"
#include "topology/topology.h"

/* ---- the beginning ---- */
/* config.txt */
ct_status ct_record_write_options(const char *dir, const ct_config *config);
ct_status ct_record_write_partition(const char *dir, const ct_partition *partition);
/* setting.json: what the run is made of, the graph's edges, the names of the classes and of the agents
 * (a list with commas; "": they have none), how many
 * samples of each class every agent holds ([n][n_classes], or NULL). What would be very long is
 * null. */
ct_status ct_record_write_setting(const char *dir, const ct_identity *identity,
                                  const ct_dataset *dataset, const ct_topology *graph,
                                  const char *agent_names, const uint32_t *class_counts);

/* ---- while it lasts ---- */
/* An epoch as a line of metrics.jsonl. */
void ct_record_add_epoch(ct_text *lines, const ct_config *config, const ct_epoch *epoch);
/* A number of an epoch by its key there; NaN: there is none, or it is not known. */
double ct_epoch_number(const ct_epoch *epoch, const char *key);
/* Appends such lines to metrics.jsonl, and with --tensorboard to the event file; what is written is
 * no longer in `lines`. */
ct_status ct_record_write_epochs(const char *dir, const ct_config *config, ct_text *lines);
/* Replaces evaluation.json. local_accuracy: [n_agents]; confusion: [n_classes]^2 or NULL. */
ct_status ct_record_write_evaluation(const char *dir, const ct_epoch *epoch, size_t n_tested,
                                     int n_classes, const double *local_accuracy, int n_agents,
                                     const uint32_t *confusion);
/* How long metrics.jsonl is; on disk from then on. 0: there is none. */
size_t ct_record_sync_metrics(const char *dir);
/* CT_IO: metrics.jsonl has become shorter than a checkpoint says it was. */
ct_status ct_record_check_metrics(const char *dir, size_t n);
/* For a run that goes on: the first n bytes of the metrics.jsonl of `from`, and the event file. */
ct_status ct_record_resume_metrics(const char *from, const char *to, size_t n,
                                   const ct_config *config);

/* ---- the end ---- */
/* What an agent's work took, per iteration where the name says nothing else. */
typedef struct ct_costs {
    double own_macs, cross_macs;
    double parameter_bytes, class_sum_bytes;
    double waited_s, data_wait_s; /* in the whole run: for other ranks, for pictures */
    size_t peak_memory_bytes;
} ct_costs;

typedef struct ct_summary {
    const ct_config *config; /* the options; out: the directory */
    const ct_epoch *last;    /* [n_seeds] */
    const uint64_t *seeds;   /* [n_seeds]; of several, means and deviations are written */
    int n_seeds;
    size_t n_parameters, n_features;
    ct_costs costs;
    const ct_topology_facts *topology;
    const ct_partition_facts *partition;
    const ct_identity *identity;
    const char *data_source;
    int n_threads, n_ranks;
} ct_summary;

ct_status ct_record_write_summary(const ct_summary *summary);

/* ledger.csv: a line for every edge, agents numbered from 0; then all of them. */
void ct_record_add_edge(ct_text *lines, int from, int to, uint64_t parameter_bytes,
                        uint64_t class_sum_bytes);
ct_status ct_record_write_ledger(const char *dir, const ct_text *lines);

/* Why the run ended before its time: diverged.json or failed.json, with its options. A run that is
 * resumed, replaced or finished has none. */
ct_status ct_record_fail(const char *dir, const ct_record_end *end, const ct_config *config);

#endif
