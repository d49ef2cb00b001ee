/* A run that trains, in as many steps as one likes; the numbers do not depend on them.
 *
 *     CT_TRY(ct_run_build(&config, &run));
 *     CT_TRY(ct_training_begin(&run, NULL, NULL));
 *     while (!ct_training_is_done(&run)) CT_TRY(ct_training_advance(&run, 100));
 *     ct_run_clear(&run); */
#ifndef CT_RUN_TRAINING_H
#define CT_RUN_TRAINING_H

#include "run/checkpoint.h"

/* The signal that asks the training to stop; 0: none does. */
typedef int ct_training_signal(void);

/* Goes on from a checkpoint (NULL: begins), and claims the run directory. On failure nothing has
 * begun: a resume that is refused leaves no trace. signal: asked between iterations; NULL: nobody
 * asks, and only the progress hook stops it. */
ct_status ct_training_begin(ct_run *run, const ct_checkpoint *checkpoint,
                            ct_training_signal *signal);

/* n iterations, or all that are left (n = 0, or fewer are left); after the last one the results are
 * written and the training is done. CT_STOPPED: by the signal or the progress hook; a checkpoint is
 * written, and it can be advanced further. After any other failure it has ended: the record says
 * why, and what it says is said again to whoever tries to go on. */
ct_status ct_training_advance(ct_run *run, long n);
bool ct_training_is_done(const ct_run *run);
long ct_training_iteration(const ct_run *run);
long ct_training_n_iterations(const ct_run *run);

/* Writes a checkpoint now, between two calls. */
ct_status ct_training_save(ct_run *run);

/* A passing line, now and then, of an evaluation: that much of it is done. */
void ct_training_show_scoring(const ct_run *run, int n_models, double part);

/* The last epoch that is over, of a world; its `epoch` is 0 if none is. */
const ct_epoch *ct_training_epoch(const ct_run *run, int world);
/* Evaluates now, into those epochs; the record does not change. */
ct_status ct_training_evaluate(ct_run *run);

/* The run directory is no longer ours; accepts NULL inside. */
void ct_training_free(ct_training **training);

#endif
