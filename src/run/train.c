/* `crosstalk train`: a run from its options to its end, with signals that stop it. */
#include "run/output.h"
#include "run/restart.h"
#include "run/signals.h"
#include "run/training.h"
#include "util/log.h"
#include "util/memory.h"

static ct_status train_from(const ct_config *config, const ct_checkpoint *checkpoint,
                            ct_path *dir) {
    CT_SCOPED_BY(ct_run_clear, ct_run) run = {0};
    CT_TRY(ct_run_build(config, &run));
    ct_signals_catch();
    ct_status status = ct_training_begin(&run, checkpoint, ct_signals_seen);
    if (status == CT_OK) status = ct_training_advance(&run, 0);
    ct_signals_restore();
    *dir = ct_path_in("", run.config.out);
    return status;
}

ct_status ct_train_in(const ct_config *config, ct_path *dir) {
    ct_config effective = *config;
    CT_SCOPED_HANDLE(ct_checkpoint) checkpoint = NULL;
    bool is_done = false;
    if (config->resume[0] != '\0') CT_TRY(ct_restart_find(&effective, &checkpoint, &is_done));
    if (!is_done) return train_from(&effective, checkpoint, dir);
    ct_note("%s is finished already", effective.out);
    return ct_output_place(effective.out, ct_transport_launch_rank(), dir->text, sizeof dir->text);
}

ct_status ct_train(const ct_config *config) {
    ct_path dir;
    return ct_train_in(config, &dir);
}
