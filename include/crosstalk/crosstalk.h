/* libcrosstalk: decentralized deep learning.
 *
 * n agents on a graph, each with its own data and its own copy of a model, talk only to their
 * neighbours and end with one good model. All agents of a run are trained at once by this process,
 * or spread over the ranks of an MPI job.
 *
 *     ct_error error;
 *     ct_config *config = NULL;
 *     ct_run *run = NULL;
 *     ct_config_create(&config, &error);
 *     ct_config_set(config, "algorithm", "ccl", &error);
 *     ct_run_create(config, NULL, &run, &error);
 *     while (!ct_run_is_done(run) && ct_run_step(run, 100, &error) == CT_OK) { ... }
 *     ct_run_free(&run);
 *     ct_config_free(&config);
 *
 * Conventions
 * - Handles are opaque. What `create` or `open` gives, `free` takes; free accepts a NULL handle and
 *   sets it to NULL.
 * - A call that can fail returns ct_status and, unless `error` is NULL, says why in *error. Outputs
 *   are written on success only.
 * - The library never prints, never exits, installs no signal handlers and keeps no message of its
 *   own: two threads may use two runs at once. One handle is used by one thread at a time.
 * - Numbers in texts are written as in the C locale: LC_NUMERIC must be that of C (it is, unless the
 *   program calls setlocale).
 * - Under mpirun a program calls MPI_Init before the first run and MPI_Finalize after the last; all
 *   ranks make the same calls. Without a launcher MPI is never started.
 * - Structs that the caller fills begin with their size and are initialised by a macro. They only
 *   grow at the end, so that a program built against an older header keeps working. */
#ifndef CROSSTALK_CROSSTALK_H
#define CROSSTALK_CROSSTALK_H

#include <crosstalk/base.h>
#include <crosstalk/config.h>
#include <crosstalk/external.h>
#include <crosstalk/model.h>
#include <crosstalk/record.h>
#include <crosstalk/run.h>
#include <crosstalk/version.h>

#endif
