#include "run/restart.h"

#include <string.h>

#include "record/file.h"
#include "util/log.h"
#include "util/memory.h"

/* ---- the record ---- */

/* The run's options against those in config.txt, both with everything filled in. */
static ct_status check_options(const ct_config *config, const char *dir, ct_config *saved) {
    CT_SCOPED(ct_text) ours = {0}, theirs = {0};
    CT_SCOPED_HANDLE(ct_json) options = NULL;
    ct_path path = ct_record_path(dir, CT_FILE_CONFIG);
    ct_config resolved = *config;
    char name[64];
    ct_config_init(saved);
    CT_TRY(ct_config_load(saved, path.text));
    CT_TRY(ct_config_to_json(saved, &options));
    CT_TRY(ct_config_resolve(&resolved));
    CT_TRY(ct_config_find_difference(&resolved, options, ct_difference_may_resume, name,
                                     sizeof name, &ours, &theirs));
    if (name[0] == '\0') return CT_OK;
    return ct_fail(CT_DIFFERS, "@%s %s contradicts %s, which has %s", name,
                   ours.n > 0 ? ours.chars : "''", path.text, theirs.n > 0 ? theirs.chars : "none");
}

/* Its options where nothing else was asked for; they must be this run's. */
static ct_status take_options(ct_config *config, ct_config *saved) {
    const ct_option_id every = CT_OPT_checkpoint_every;
    bool was_given = config->given[every];
    CT_TRY(ct_config_load(config, ct_record_path(config->resume, CT_FILE_CONFIG).text));
    /* naming it asks for a last checkpoint: so must the record */
    bool is_default = strcmp(config->checkpoint_every, ct_run_options[every].value) == 0;
    config->given[every] = was_given || !is_default;
    return check_options(config, config->resume, saved);
}

/* ---- --resume ---- */

/* With the run in config->resume: from its checkpoint, or from its options alone. */
static ct_status go_on(ct_config *config, ct_checkpoint **checkpoint) {
    const char *dir = config->resume;
    bool is_finished = true; /* or no run at all */
    ct_config saved;
    if (ct_record_has(dir, CT_FILE_CONFIG)) CT_TRY(ct_record_is_finished(dir, &is_finished));
    if (is_finished || ct_checkpoint_any_whole(dir)) {
        CT_TRY(ct_checkpoint_open(dir, checkpoint));
        return ct_checkpoint_options(*checkpoint, config);
    }
    CT_TRY(take_options(config, &saved));
    ct_note("%s has no checkpoint yet and begins again", dir);
    return CT_OK;
}

/* The same, if all its options are the config's: what was not named has its default. */
static ct_status find_own(ct_config *config, ct_checkpoint **checkpoint, bool *is_done) {
    const char *dir = config->resume;
    ct_config saved;
    ct_config_fix(config);
    if (!ct_record_has(dir, CT_FILE_CONFIG)) return go_on(config, checkpoint);
    CT_TRY(check_options(config, dir, &saved));
    CT_TRY(ct_record_is_finished(dir, is_done));
    *is_done = *is_done && saved.iterations == config->iterations;
    return *is_done ? CT_OK : go_on(config, checkpoint);
}

/* What is in --out, if it is this run. */
static ct_status find_auto(ct_config *config, ct_checkpoint **checkpoint, bool *is_done) {
    const char *dir = config->resume;
    ct_config asked = *config;
    ct_error error;
    ct_status status = CT_OK;
    bool is_there = ct_record_has(dir, CT_FILE_CONFIG) || ct_checkpoint_any_whole(dir);
    if (is_there) status = CT_CATCH(&error, find_own(config, checkpoint, is_done));
    if (is_there && status == CT_OK) return CT_OK;
    if (status == CT_DIFFERS && !config->force)
        return ct_fail(status, "%s; name another @out or replace the run with @force", error.text);
    if (is_there && !config->force) return ct_fail_again(&error);
    if (is_there) ct_note("%s is replaced: %s", dir, error.text);
    ct_checkpoint_free(checkpoint);
    *config = asked;
    config->resume[0] = '\0';
    return CT_OK;
}

/* --out where none was named: as the run itself would name it. */
static ct_status name_out(ct_config *config) {
    ct_config resolved = *config;
    if (config->out[0] != '\0') return CT_OK;
    CT_TRY(ct_config_resolve(&resolved));
    memcpy(config->out, resolved.out, sizeof config->out);
    return CT_OK;
}

ct_status ct_restart_find(ct_config *config, ct_checkpoint **checkpoint, bool *is_done) {
    bool is_alone = strcmp(config->resume, "on") == 0;
    bool is_auto = strcmp(config->resume, "auto") == 0;
    if (is_alone && config->out[0] == '\0')
        return ct_refuse("resume", "@resume needs a run directory: @resume DIR, or @out DIR");
    if (is_auto) CT_TRY(name_out(config));
    if (is_alone || is_auto) memcpy(config->resume, config->out, sizeof config->resume);
    if (config->out[0] == '\0') memcpy(config->out, config->resume, sizeof config->out);
    config->given[CT_OPT_out] = true; /* the record may have been moved */
    return is_auto ? find_auto(config, checkpoint, is_done) : go_on(config, checkpoint);
}

/* ---- a new run ---- */

ct_status ct_restart_offer(const ct_config *config) {
    const char *dir = config->out;
    bool is_finished = false;
    ct_config saved;
    if (!ct_record_has(dir, CT_FILE_CONFIG)) return CT_OK;
    if (CT_CATCH(NULL, ct_record_is_finished(dir, &is_finished)) != CT_OK || is_finished ||
        CT_CATCH(NULL, check_options(config, dir, &saved)) != CT_OK)
        return CT_OK;
    return ct_fail(CT_IO,
                   "%s has an unfinished run with these options; go on with @resume %s, name "
                   "another @out or replace it with @force",
                   dir, dir);
}
