/* A run's state on disk, so that a killed run goes on where it was and ends with the same bits.
 *
 *   <run>/checkpoint/<iteration>/agent-<row>.ckpt   one agent's rows of every bank
 *   <run>/checkpoint/<iteration>/manifest.json      everything else; written last
 *
 * A checkpoint is there once its manifest is: files are written under temporary names, synced and
 * renamed, the manifest after all others, and the one before is removed only after that. The last
 * two are kept. Files carry 64-bit checksums, which the manifest repeats. As files belong to
 * agents, a run may resume on another number of ranks or another backend.
 *
 * Ranks without a common file system have a folder each, with their own agents' files and a manifest
 * that says of the others that they are elsewhere. Nobody looks for those. A crash may leave one rank
 * with a checkpoint that another does not have yet; both have the one before. */
#ifndef CT_RUN_CHECKPOINT_H
#define CT_RUN_CHECKPOINT_H

#include "record/checkpoint.h"
#include "run/run.h"

/* One world's sums over an epoch, weighted by samples, and the means of its last iteration. */
typedef struct ct_tally {
    double sums[CT_LOSS_FIELDS];
    double samples;
    double last[CT_LOSS_FIELDS]; /* means over the agents of the last iteration read */
} ct_tally;

/* Where the training loop stands, beside what the run's banks hold. */
typedef struct ct_position {
    long iteration;    /* steps done */
    double seconds;    /* so far */
    ct_tally *tallies; /* [n_worlds] of the epoch that is not over */
} ct_position;

/* Writes the checkpoint of run->config.out. On failure the one before is untouched. All ranks call
 * it, and all get the same answer. */
ct_status ct_checkpoint_write(ct_run *run, const ct_position *position);

typedef struct ct_checkpoint ct_checkpoint;

/* The newest whole checkpoint below a run directory, all files checked. A damaged one is passed
 * over with a note; CT_IO with the reason if no good one is left. */
ct_status ct_checkpoint_open(const char *dir, ct_checkpoint **out);
/* The newest one of a site, whose agent this is; NULL: there is none. */
ct_status ct_checkpoint_open_site(const char *dir, int agent, ct_checkpoint **out);
/* The newest one that all ranks have, each with the files of its own agents; every rank calls it with
 * its directory. *out is NULL if some have none yet and the others only their first. has_begun: this
 * rank's directory has the run, if perhaps no checkpoint; where others have one and this has not even
 * that, or has lost its files, it is CT_IO for all and says which. */
ct_status ct_checkpoint_open_common(const char *dir, bool has_begun, ct_transport *ranks,
                                    ct_checkpoint **out);
void ct_checkpoint_free(ct_checkpoint **checkpoint);
long ct_checkpoint_iteration(const ct_checkpoint *checkpoint);
/* --epochs of the run that wrote it. */
double ct_checkpoint_epochs(const ct_checkpoint *checkpoint);

/* Its options into the config, where nothing else was asked for. */
ct_status ct_checkpoint_options(const ct_checkpoint *checkpoint, ct_config *config);
/* The run's state. CT_INVAL names an option that would make it another run; what may differ is
 * where data and results lie, the machine (device, threads, transport, timeout, workers, memory,
 * cache), what is written (eval-every, save-agents, ledger, tensorboard,
 * checkpoint-*) and iterations. */
ct_status ct_checkpoint_read(const ct_checkpoint *checkpoint, ct_run *run, ct_position *position);
/* How long a world's metrics.jsonl was. */
size_t ct_checkpoint_metrics_bytes(const ct_checkpoint *checkpoint, int world);

#endif
