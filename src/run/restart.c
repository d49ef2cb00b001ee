#include "run/restart.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "record/file.h"
#include "run/output.h"
#include "run/together.h"
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
static ct_status take_options(ct_config *config, const char *dir, ct_config *saved) {
    const ct_option_id every = CT_OPT_checkpoint_every;
    bool was_given = config->given[every];
    CT_TRY(ct_config_load(config, ct_record_path(dir, CT_FILE_CONFIG).text));
    /* naming it asks for a last checkpoint: so must the record */
    bool is_default = strcmp(config->checkpoint_every, ct_run_options[every].value) == 0;
    config->given[every] = was_given || !is_default;
    return check_options(config, dir, saved);
}

/* ---- --resume ---- */

/* What a rank finds. With a file system in common all find the same; otherwise they may have been
 * stopped at different places, and decide together. */
typedef struct search {
    ct_transport *ranks;
    bool is_auto;
    char dir[CT_CONFIG_TEXT]; /* --resume, as this rank has it */
    bool has_record;
    ct_config saved;  /* the options in it */
    bool is_finished; /* as rank 0 sees it, whose record is the last to be finished */
} search;

static ct_status read_record(search *s, const ct_config *config) {
    if (!s->has_record) return CT_OK;
    if (s->is_auto) CT_TRY(check_options(config, s->dir, &s->saved));
    return ct_record_is_finished(s->dir, &s->is_finished);
}

static ct_status look(search *s, const ct_config *config) {
    ct_error error;
    int is_finished;
    (void)CT_CATCH(&error, read_record(s, config));
    CT_TRY(ct_together(s->ranks, &error));
    CT_TRY(ct_together_hear(s->ranks, 0, s->is_finished, &is_finished));
    s->is_finished = is_finished != 0;
    return CT_OK;
}

/* Of the checkpoint, or of the record alone. */
static ct_status take_up(search *s, ct_config *config, const ct_checkpoint *checkpoint) {
    if (checkpoint != NULL) return ct_checkpoint_options(checkpoint, config);
    if (s->has_record) CT_TRY(take_options(config, s->dir, &s->saved));
    ct_note("%s has no checkpoint yet and begins again", s->dir);
    return CT_OK;
}

/* With the run that is there. */
static ct_status go_on(search *s, ct_config *config, ct_checkpoint **checkpoint) {
    ct_error error;
    bool is_missing = !s->has_record && !s->is_auto;
    int has_some = s->is_finished || is_missing || ct_checkpoint_any_whole(s->dir);
    CT_TRY(ct_transport_vote(s->ranks, has_some, &has_some));
    if (has_some != 0)
        CT_TRY(ct_checkpoint_open_common(s->dir, s->has_record, s->ranks, checkpoint));
    (void)CT_CATCH(&error, take_up(s, config, *checkpoint));
    return ct_together(s->ranks, &error);
}

static ct_status find_named(search *s, ct_config *config, ct_checkpoint **checkpoint) {
    CT_TRY(look(s, config));
    return go_on(s, config, checkpoint);
}

/* The same, if all its options are the config's: what was not named has its default. */
static ct_status find_own(search *s, ct_config *config, ct_checkpoint **checkpoint, bool *is_done) {
    int all_done;
    ct_config_fix(config);
    CT_TRY(look(s, config));
    bool has_done = s->is_finished && s->has_record && s->saved.iterations == config->iterations;
    CT_TRY(ct_together_hear(s->ranks, 0, has_done, &all_done));
    *is_done = all_done != 0;
    return *is_done ? CT_OK : go_on(s, config, checkpoint);
}

/* What is in --out, if it is this run. */
static ct_status find_auto(search *s, ct_config *config, ct_checkpoint **checkpoint,
                           bool *is_done) {
    ct_config asked = *config;
    ct_error error;
    ct_status status = CT_OK;
    int is_there = s->has_record || ct_checkpoint_any_whole(s->dir);
    CT_TRY(ct_transport_vote(s->ranks, is_there, &is_there));
    if (is_there != 0) status = CT_CATCH(&error, find_own(s, config, checkpoint, is_done));
    if (is_there != 0 && status == CT_OK) return CT_OK;
    if (status == CT_DIFFERS && !config->force)
        return ct_fail(status, "%s; name another @out or replace the run with @force", error.text);
    if (is_there != 0 && !config->force) return ct_fail_again(&error);
    if (is_there != 0) ct_note("%s is replaced: %s", s->dir, error.text);
    ct_checkpoint_free(checkpoint);
    *config = asked;
    config->resume[0] = '\0';
    return CT_OK;
}

/* ---- names that no other run has ---- */

ct_status ct_restart_name(const char *dir, int number, char *out, size_t size) {
    char name[CT_CONFIG_TEXT + 16];
    int n = number > 1 ? snprintf(name, sizeof name, "%s-%d", dir, number)
                       : snprintf(name, sizeof name, "%s", dir);
    if (n < 0 || (size_t)n >= size) return ct_refuse("out", "the name is too long: %s", dir);
    memcpy(out, name, (size_t)n + 1);
    return CT_OK;
}

/* The run in `dir` has these options. */
static bool is_same_run(const ct_config *config, const char *dir) {
    ct_config saved;
    return ct_record_has(dir, CT_FILE_CONFIG) &&
           CT_CATCH(NULL, check_options(config, dir, &saved)) == CT_OK;
}

/* It can be resumed as a run with these options; one that is being trained cannot. */
static bool is_unfinished(const ct_config *config, const char *dir) {
    bool is_finished = false;
    int lock = -1;
    if (!is_same_run(config, dir) ||
        CT_CATCH(NULL, ct_record_is_finished(dir, &is_finished)) != CT_OK || is_finished)
        return false;
    bool is_free = ct_dir_lock(dir, &lock);
    if (is_free) ct_dir_unlock(&lock);
    return is_free;
}

ct_status ct_restart_number(const ct_config *config, const char *dir, int *number) {
    CT_TRY(ct_dir_create(ct_path_dir(dir).text));
    for (*number = 1;; *number += 1) {
        char name[CT_CONFIG_TEXT];
        CT_TRY(ct_restart_name(dir, *number, name, sizeof name));
        if (mkdir(name, 0777) == 0) return CT_OK;
        if (errno != EEXIST) return ct_file_failed(name);
        if (is_unfinished(config, name)) return CT_OK;
    }
}

/* The last of these directories that has this run, else the first that is not there. */
static ct_status find_number(const ct_config *config, const char *dir, int *number) {
    int found = 0;
    for (*number = 1;; *number += 1) {
        char name[CT_CONFIG_TEXT];
        CT_TRY(ct_restart_name(dir, *number, name, sizeof name));
        if (!ct_dir_exists(name)) break;
        if (is_same_run(config, name)) found = *number;
    }
    if (found > 0) *number = found;
    return CT_OK;
}

/* --out of --resume auto where none was named, as rank 0 finds it. */
static ct_status name_out(ct_transport *ranks, ct_config *config) {
    ct_config resolved = *config;
    ct_error error;
    int number = 1;
    if (config->out[0] != '\0') return CT_OK;
    CT_TRY(ct_config_resolve(&resolved));
    (void)CT_CATCH(&error, find_number(config, resolved.out, &number));
    CT_TRY(ct_together(ranks, &error));
    CT_TRY(ct_together_hear(ranks, 0, number, &number));
    return ct_restart_name(resolved.out, number, config->out, sizeof config->out);
}

static ct_status find(ct_transport *ranks, bool is_auto, ct_config *config,
                      ct_checkpoint **checkpoint, bool *is_done) {
    search s = {.ranks = ranks, .is_auto = is_auto};
    CT_TRY(ct_output_place(config->resume, ct_transport_rank(ranks), s.dir, sizeof s.dir));
    s.has_record = ct_record_has(s.dir, CT_FILE_CONFIG);
    return is_auto ? find_auto(&s, config, checkpoint, is_done)
                   : find_named(&s, config, checkpoint);
}

ct_status ct_restart_find(ct_config *config, ct_checkpoint **checkpoint, bool *is_done) {
    CT_SCOPED_HANDLE(ct_transport) ranks = NULL;
    bool is_alone = strcmp(config->resume, "on") == 0;
    bool is_auto = strcmp(config->resume, "auto") == 0;
    if (is_alone && config->out[0] == '\0')
        return ct_refuse("resume", "@resume needs a run directory: @resume DIR, or @out DIR");
    CT_TRY(ct_together_meet(config->transport, config->timeout, &ranks));
    if (is_auto) CT_TRY(name_out(ranks, config));
    if (is_alone || is_auto) memcpy(config->resume, config->out, sizeof config->resume);
    if (config->out[0] == '\0') memcpy(config->out, config->resume, sizeof config->out);
    config->given[CT_OPT_out] = true; /* the record may have been moved */
    return find(ranks, is_auto, config, checkpoint, is_done);
}

/* ---- a new run ---- */

ct_status ct_restart_offer(const ct_config *config, const char *named) {
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
                   dir, named);
}
