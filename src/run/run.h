/* A training run from options to files. */
#ifndef CT_RUN_RUN_H
#define CT_RUN_RUN_H

#include <crosstalk/run.h> /* ct_inputs */

#include "algo/algo.h"
#include "backend/external.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/order.h"
#include "data/partition.h"
#include "model/model.h"
#include "record/epoch.h"
#include "record/folder.h"
#include "record/identity.h"
#include "run/average.h"
#include "run/public.h"
#include "run/resolve.h"
#include "run/schedule.h"
#include "util/file.h"

/* What belongs to one seed and one pair of lambdas. The worlds of several are trained at once as
 * rows of the same banks, world by world (all seeds of a pair, then the next pair); each gives the
 * same bits as it would alone. */
typedef struct ct_world {
    uint64_t seed;
    double lambda_m, lambda_d;
    ct_topology graph;
    ct_sparse w;
    ct_topology_facts topology_facts;
    ct_partition partition;
    ct_partition_facts partition_facts;
    char dir[CT_CONFIG_TEXT]; /* its run directory */
    ct_text unwritten;        /* lines of metrics.jsonl that there was no room for yet */
} ct_world;

typedef struct ct_training ct_training; /* run/training.h */

/* Where samples of an agent lie in run->dataset, if it has data of its own (own.h). All other runs have
 * one part for all agents. */
typedef struct ct_agent_part {
    int agent;
    size_t first_train, n_train, first_test, n_test;
    uint64_t sum; /* of what its files hold (ct_dataset_fingerprint) */
} ct_agent_part;

/* What a program gave beside the options; never NULL here, its parts may be. */
static inline const ct_inputs *ct_config_inputs(const ct_config *config) {
    static const ct_inputs nothing = CT_INPUTS_INIT;
    return config->inputs != NULL ? config->inputs : &nothing;
}

/* Everything a run is made of; built in this order, freed in reverse. */
struct ct_run {
    ct_config config;
    ct_lr_schedule lr;
    ct_world *worlds; /* [n_worlds] */
    int n_worlds;
    int n_seeds;         /* of --seeds; n_worlds / n_seeds pairs of --lambdas */
    double *lambdas;     /* [n_worlds][2] of --lambdas; NULL without */
    uint64_t *seeds;     /* [n_worlds] */
    ct_topology *graphs; /* [n_worlds] the worlds' own, lent */
    ct_dataset dataset;
    ct_topology topology;       /* all worlds side by side */
    ct_sparse w;                /* likewise */
    ct_schedule schedule;       /* of a graph that changes; n = 0: it stays */
    ct_partition partition;     /* likewise: agents are rows, samples places in dataset.train */
    ct_partition trained, held; /* with --validation-fraction: both parts of it */
    bool is_own;                /* every agent has data of its own; then: */
    size_t *own_sizes;          /* [agents] training samples, */
    size_t most_samples;        /* and those of the agent with most; else 0 */
    ct_agent_part *parts;       /* [n_parts] of this process, by agent */
    int n_parts;
    size_t n_tested; /* test samples of all processes; 0: nothing is tested */
    ct_identity identity;
    uint64_t *agent_sums;        /* [own rows] of what an agent trains on */
    const ct_external *external; /* the caller's model, lent; NULL: --model */
    ct_graph graph;
    ct_backend *backend;
    ct_transport *transport;
    ct_source *train, *test;
    ct_plan *plan;
    ct_order *order;
    ct_loader *train_loader, *test_loader; /* of parts that are not in memory; else NULL */
    ct_order *test_order;                  /* with test_loader: one agent that visits all, */
    ct_partition test_partition;           /* a batch the samples of one part */
    long test_iteration;                   /* next one of test_loader */
    long epoch_iterations;
    long resumed_at;  /* checkpoint in --out that was read, until the next is written; -1 = none */
    ct_faults faults; /* of --fault */
    const ct_algo *algo;
    ct_agents agents;
    ct_batch *batches;    /* [own rows] */
    ct_bank losses;       /* [own rows][epoch_iterations * CT_LOSS_FIELDS] */
    ct_bank *all_x;       /* every row's parameters, on the rank that leads: the agents' bank, */
    ct_bank *all_running; /* or among several ranks the collected one; statistics likewise */
    ct_bank collected_x, collected_running;
    char named_out[CT_CONFIG_TEXT]; /* --out with its %r; config.out is this rank's */
    int *homes; /* [rows] the rank that looks after the folder with the row's files; NULL: rank 0 */
    bool has_consensus;        /* what follows is the mean of the models as they are now */
    ct_bank consensus;         /* [n_worlds] mean of all agents' parameters */
    ct_bank consensus_running; /* [n_worlds] mean of their running statistics (batchnorm) */
    ct_sparse mean;            /* [n_worlds x rows] 1/n where a row belongs to the world */
    uint32_t *class_counts;    /* [rows][n_classes] samples, on the rank that leads */
    float *read_rows;          /* a stage for models that an evaluation reads; NULL: none has */
    double *local_accuracy;    /* [rows] of the last evaluation; NaN: the agent is dead */
    uint32_t *confusion;       /* [n_worlds][n_classes][n_classes] the consensus models' of the last
                                * evaluation: test samples of a class (row) that were taken for another
                                * (column); NULL: more classes than CT_MAX_CONFUSION */
    ct_average average;        /* of --average */
    ct_public public;          /* of --public-data */
    ct_speeds speeds;          /* of --speed */
    ct_training *training;     /* NULL: it has not begun */
    void *given;               /* the block that config.inputs lies in, or NULL */
};

/* ---- data (data.c) ---- */
#define CT_DIR_RANK  "%r" /* in --data-dir: the rank's number */
#define CT_DIR_AGENT "%a" /* the agent's number or name */
/* With --dataset auto, the config gets the name of what lies in --data-dir. */
ct_status ct_run_name_data(ct_config *config);
/* What the options say about data. */
ct_dataset_options ct_run_data_options(const ct_config *config);
/* The data set that the options name, cut to --train-samples and --test-samples; %r in --data-dir
 * stands for the rank. */
ct_status ct_run_open_data(const ct_config *config, int rank, ct_dataset *out);
/* One agent's own data set; a table is encoded with `columns`, or with NULL only counted. */
ct_status ct_run_open_agent(const ct_config *config, int rank, int agent,
                            const struct ct_columns *columns, ct_dataset *out);
/* The same for a model that is only tested: pictures of its size, tables with its columns, and no
 * training part where there need be none. */
ct_status ct_run_open_test(const ct_config *config, const ct_model_facts *model, ct_dataset *out);
/* The same with other options than the config's about how it is read. */
ct_status ct_run_open_data_as(const ct_config *config, const ct_dataset_options *options,
                              ct_dataset *out);
/* The backend's views of both parts, and the loaders of those that are not in memory. */
ct_status ct_run_create_sources(ct_run *run);
void ct_run_free_sources(ct_run *run);
/* run->batches of an iteration. */
ct_status ct_run_batches(ct_run *run, long iteration);
/* The next batch of a streamed test part: those of one run->parts after the other, then from the first
 * on again. A part's last one is filled up with samples that do not count. */
ct_status ct_run_test_batch(ct_run *run, ct_batch *out);
/* Seconds that iterations and evaluations waited for pictures. */
double ct_run_data_wait(const ct_run *run);

/* ---- who computes, and on what (identity.c) ---- */
/* What ranks must have alike before they read anything: the program, the options, the graph. */
ct_status ct_run_meet(ct_run *run, ct_text *out);
/* What the data is made of, once it is read; refused if ranks that should have the same differ. */
ct_status ct_run_agree_data(ct_run *run);
/* All of run->identity, once data, splits and backend are there; refused if ranks differ. */
ct_status ct_run_agree(ct_run *run);
/* run->agent_sums, once every rank has its own agents' samples. */
ct_status ct_run_sum_agents(ct_run *run);

/* Reads the data and builds everything; nothing is written yet. */
ct_status ct_run_build(const ct_config *config, ct_run *out);
void ct_run_clear(ct_run *run);

/* The rank that evaluates the consensus, writes files and talks to the user. */
static inline bool ct_run_leads(const ct_run *run) {
    return ct_transport_rank(run->transport) == 0 || ct_transport_is_apart(run->transport);
}

/* The rank that looks after the folder --out in which a row's files are: of all ranks that have this
 * folder before them, the first one. Files of rows with another home are somewhere else. */
static inline int ct_run_home(const ct_run *run, int row) {
    if (ct_transport_is_apart(run->transport)) return row; /* a site is an agent and a rank */
    return run->homes != NULL ? run->homes[row] : 0;
}

/* This rank looks after the folder --out that it has before it. */
static inline bool ct_run_keeps(const ct_run *run) {
    int home = ct_run_home(run, ct_transport_own(run->transport).first);
    return home == ct_transport_rank(run->transport);
}

/* It has no run directory: no record, no checkpoints. */
static inline bool ct_run_writes_nothing(const ct_run *run) {
    return ct_config_inputs(&run->config)->writes_nothing;
}

/* There is something to test on; otherwise accuracies are NaN. */
static inline bool ct_run_is_tested(const ct_run *run) {
    bool is_able = run->external == NULL || run->external->evaluate != NULL;
    return is_able && run->n_tested > 0;
}

/* The part that a row's agent has, among run->parts; -1: it is elsewhere. */
static inline int ct_run_part_of(const ct_run *run, int row) {
    int agent = row % (int)run->config.agents;
    if (!run->is_own) return 0;
    if (agent < run->n_parts && run->parts[agent].agent == agent) return agent; /* all are here */
    for (int k = 0; k < run->n_parts; k++)
        if (run->parts[k].agent == agent) return k;
    return -1;
}

/* The agent of a row has not been killed (--fault) before this iteration, or is back. Of a site's
 * agents, its own alone is in sight. */
static inline bool ct_run_is_alive(const ct_run *run, int row, long iteration) {
    if (ct_transport_is_apart(run->transport)) return row == run->agents.first;
    return run->agents.faults == NULL || ct_faults_alive(run->agents.faults, row, iteration);
}

/* One iteration: batches, schedule, the algorithm's step. Iterations count from 0. */
ct_status ct_run_iterate(ct_run *run, long iteration);

/* Multiply-adds of an agent in an iteration, on average over this process (cost.c): on its own
 * batch under its own model, and under its neighbours' models (cross-features, cross-gradients). */
typedef struct ct_cost {
    double own_macs, cross_macs;
} ct_cost;
ct_cost ct_run_cost(const ct_run *run);
/* Bytes that an agent of a world has sent so far, on average; of a site, that its own has. */
double ct_run_mean_sent(const ct_run *run, int world, ct_traffic kind);

/* Trains as the options say and writes the run directory. */
ct_status ct_train(const ct_config *config);
/* The same; dir is the directory, as this rank has it. */
ct_status ct_train_in(const ct_config *config, ct_path *dir);

/* ---- evaluation (evaluate.c) ---- */
#define CT_MAX_CONFUSION 100 /* classes of which a confusion matrix is kept */

/* --eval-agents: *every is its number of epochs; 0: after the last one alone; -1: never. */
ct_status ct_eval_agents_parse(const char *text, long *every);
/* Updates run->consensus and evaluates it on the test part, for every world; with_agents: and every
 * agent's own model, whose scores are NaN otherwise (where every agent has test samples of its own,
 * they are always tested). out: [n_worlds], filled on the rank that leads, as are local_accuracy and
 * confusion of the run. */
ct_status ct_run_score_all(ct_run *run, bool with_agents, ct_evaluation *out);
/* After the last iteration (finish.c): what ct_finish says, per world; then --final-merge. */
ct_status ct_run_finish(ct_run *run, long n_iterations, ct_finish *out);
/* ---- the mean model (consensus.c) ---- */
/* Updates run->consensus on the rank that leads, from run->all_x. */
ct_status ct_run_update_consensus(ct_run *run);
/* Updates run->consensus on all ranks, which all call it, and nothing else. */
ct_status ct_run_find_consensus(ct_run *run);
/* From now on the mean of a bank is that of the living. */
void ct_run_weigh_living(ct_run *run);
/* out [n_worlds] = the mean of each world's rows of a bank, on all ranks. */
ct_status ct_run_average(ct_run *run, const ct_bank *bank, ct_bank *out);

/* ---- models and files (model_file.c) ---- */
/* Start values into run->agents.x: of the seed, or of --init. */
ct_status ct_run_init_params(ct_run *run);
/* With what it takes to use them (model/facts.h). */
ct_status ct_run_save_consensus(ct_run *run, int world, const char *path);
ct_status ct_run_save_averaged(ct_run *run, int world, const char *path);
/* All agents' on the rank that leads; else those whose files are in this rank's folder. */
ct_status ct_run_save_agents(ct_run *run, int world, const char *path);
/* One own row's model. */
ct_status ct_run_save_agent(ct_run *run, int own_row, const char *path);

/* ---- seeds (worlds.c) ---- */
#define CT_MAX_WORLDS 1024
/* The seeds of --seeds, or the one of --seed: at most CT_MAX_WORLDS. */
ct_status ct_config_seeds(const ct_config *config, uint64_t *seeds, int *n);
/* The graph of a seed: the options', or a program's own. */
ct_status ct_config_graph(const ct_config *config, uint64_t seed, ct_topology *out);
/* The worlds of --seeds (or --seed) and --lambdas with their graphs; then, once the data is read,
 * their splits, and once these are right, what is slow to find out about graphs of many agents.
 */
ct_status ct_run_create_worlds(ct_run *run);
ct_status ct_run_split_data(ct_run *run);
ct_status ct_run_measure_worlds(ct_run *run);
/* The split of the options, of the file or drawn by the seed; samples go by their numbers. */
ct_status ct_run_partition(const ct_config *config, const ct_dataset *dataset, uint64_t seed,
                           ct_partition *out);
/* Once the worlds are split (share.c): no samples but this rank's agents'. A
 * sample that is needed and not there is CT_IO. */
ct_status ct_run_share_data(ct_run *run);
/* How uneven the split is, and class_counts: every rank counts its own agents' classes. */
ct_status ct_run_measure_split(ct_run *run);
void ct_run_free_worlds(ct_run *run);

#endif
