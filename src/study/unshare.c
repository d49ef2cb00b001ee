/* Directories of launches that several cells share (share.c), after they ended or were interrupted
 * at any moment: in training, before the runs were put away, or between two of them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run/checkpoint.h"
#include "run/output.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

enum { MAX_DEPTH = 4 }; /* shared/pair/seed/checkpoint... */

static ct_status no_memory(void) {
    return ct_fail(CT_NOMEM, "no memory for a path");
}

bool ct_cell_is_free(const ct_cell *cell) {
    bool is_forced = cell->config.force && cell->is_selected;
    return cell->state == CT_CELL_MISSING && !is_forced && !ct_dir_exists(cell->config.out);
}

/* The first name in `dir` that begins so and comes after `name`, which becomes it: entries come and
 * go while we walk over them. */
static bool next_name(const char *dir, const char *start, char name[256]) {
    char best[256] = "";
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        bool is_one = strncmp(e->d_name, start, strlen(start)) == 0;
        if (!is_one || strcmp(e->d_name, name) <= 0) continue;
        if (best[0] == '\0' || strcmp(e->d_name, best) < 0)
            snprintf(best, sizeof best, "%s", e->d_name);
    }
    if (d != NULL) closedir(d);
    memcpy(name, best, sizeof best);
    return best[0] != '\0';
}

/* ---- finished runs ---- */

#define PAIR "m" /* m<lambda-m>-d<lambda-d>; a launch has no other directory that begins so */

static ct_status is_of_pair(const ct_cell *cell, const char *pair, bool *out) {
    char own[64];
    ct_config config = cell->config;
    CT_TRY(ct_config_choose(&config));
    ct_output_pair_name(config.lambda_m, config.lambda_d, own, sizeof own);
    *out = strcmp(config.loss, "ccl") == 0 && strcmp(own, pair) == 0;
    return CT_OK;
}

static ct_status move_run(const char *from, ct_cell *cell, bool keep) {
    const char *to = cell->config.out;
    if (!keep) CT_TRY(ct_study_lighten(from, cell->name));
    int reason = rename(from, to) == 0 ? 0 : errno;
    if (reason == ENOENT && ct_dir_exists(to))
        return ct_cell_inspect(cell); /* the same sweep, begun twice, was faster */
    if (reason != 0) return ct_fail(CT_IO, "%s: cannot become %s: %s", from, to, strerror(reason));
    CT_TRY(ct_cell_read_summary(cell));
    cell->state = CT_CELL_DONE;
    return CT_OK;
}

/* The cell whose run lies in dir/pair, rather one that has none yet; NULL if there is none. */
static ct_status find_cell(ct_study *study, const char *pair, const ct_json *summary,
                           ct_cell **out) {
    *out = NULL;
    for (int k = 0; k < study->n_cells; k++) {
        ct_cell *cell = &study->cells[k];
        bool is_it = false;
        CT_TRY(is_of_pair(cell, pair, &is_it));
        if (is_it) CT_TRY(ct_cell_is_like(cell, summary, &is_it));
        if (is_it && (*out == NULL || (!ct_cell_is_free(*out) && ct_cell_is_free(cell))))
            *out = cell;
    }
    return CT_OK;
}

/* *is_left: it is finished, and no cell of this study has its options. */
static ct_status put_away(ct_study *study, const char *path, const char *pair, bool keep,
                          bool *is_left) {
    ct_json *summary = NULL;
    ct_cell *cell = NULL;
    if (!ct_dir_has(path, "summary.json")) return CT_OK;
    CT_TRY(ct_summary_read(path, &summary));
    ct_status status = find_cell(study, pair, summary, &cell);
    ct_json_free(&summary);
    if (status == CT_OK && cell == NULL) *is_left = true;
    if (status == CT_OK && cell != NULL && ct_cell_is_free(cell))
        status = move_run(path, cell, keep);
    return status;
}

/* Finished runs to their places; the directory goes, unless there are some that have none. */
static ct_status empty_dir(ct_study *study, const char *dir, bool keep) {
    char pair[256] = "";
    bool is_left = false;
    while (next_name(dir, PAIR, pair)) {
        char *path = ct_path_join(dir, pair);
        ct_status status = path != NULL ? put_away(study, path, pair, keep, &is_left) : no_memory();
        ct_free(path);
        CT_TRY(status);
    }
    if (is_left)
        ct_note("%s has finished runs with other options and is left alone; remove it if nobody "
                "needs them",
                dir);
    else
        ct_study_remove_dir(dir, MAX_DEPTH);
    return CT_OK;
}

/* ---- interrupted ones ---- */

/* What a checkpoint in a shared directory is of. */
typedef struct launch {
    ct_study *study;
    ct_config saved;
    ct_json *options; /* the same as JSON */
    ct_share share;   /* the cells that wait for it */
    bool is_selected; /* one of them */
    bool is_whole;    /* the directories of all its runs are there */
    bool is_open;     /* one of them is not finished */
    bool is_other;    /* one of them is of no cell of the study */
} launch;

static bool does_not_matter(const ct_json *ours, const ct_json *theirs) {
    bool is_auto = ours->kind == CT_JSON_STRING && strcmp(ours->string, "auto") == 0;
    return theirs == NULL || is_auto || ct_config_is_local(ours->key) ||
           strcmp(ours->key, "partition-file") == 0; /* resuming compares the split itself */
}

/* The cell would be one run of the launch. */
static ct_status fits(const launch *l, const ct_cell *cell, bool *out) {
    ct_config config;
    char name[64];
    ct_text ours = {0}, theirs = {0};
    CT_TRY(ct_share_config(cell, l->saved.lambdas, l->share.dir, &config));
    ct_status status = ct_config_find_difference(&config, l->options, does_not_matter, name,
                                                 sizeof name, &ours, &theirs);
    *out = status == CT_OK && name[0] == '\0';
    ct_text_free(&ours);
    ct_text_free(&theirs);
    return status;
}

static ct_status find_waiting(launch *l, const char *pair) {
    bool is_known = false;
    for (int k = 0; k < l->study->n_cells; k++) {
        ct_cell *cell = &l->study->cells[k];
        bool is_it = false;
        CT_TRY(is_of_pair(cell, pair, &is_it));
        if (is_it) CT_TRY(fits(l, cell, &is_it));
        if (!is_it) continue;
        is_known = true;
        if (!ct_cell_is_free(cell) || l->share.n == CT_SHARE_MAX) continue;
        l->share.cells[l->share.n++] = cell;
        l->is_selected = l->is_selected || cell->is_selected;
    }
    if (!is_known) l->is_other = true;
    return CT_OK;
}

/* One "m:d" of the checkpoint's lambdas. */
static ct_status look_at_pair(void *context, const char *field) {
    launch *l = context;
    char pair[64];
    double lambdas[2];
    if (!ct_run_parse_pair(field, lambdas))
        return ct_fail(CT_IO, "%s: '%s' are no lambdas", l->share.dir, field);
    ct_output_pair_name(lambdas[0], lambdas[1], pair, sizeof pair);
    char *path = ct_path_join(l->share.dir, pair);
    if (path == NULL) return no_memory();
    if (!ct_dir_exists(path))
        l->is_whole = false;
    else if (!ct_dir_has(path, "summary.json"))
        l->is_open = true;
    ct_free(path);
    return find_waiting(l, pair);
}

/* The cells of a launch, whose options are l->saved. */
static ct_status find_cells(launch *l) {
    CT_TRY(ct_config_to_json(&l->saved, &l->options));
    l->is_whole = true;
    return ct_split(l->saved.lambdas, look_at_pair, l);
}

/* A damaged checkpoint is no reason to stop: what is not finished begins again. */
static ct_status look(launch *l) {
    ct_checkpoint *checkpoint = NULL;
    if (!ct_checkpoint_exists(l->share.dir)) return CT_OK;
    ct_error error;
    if (CT_CATCH(&error, ct_checkpoint_open(l->share.dir, &checkpoint)) != CT_OK) {
        ct_note("%s begins again: %s", l->share.dir, error.text);
        return CT_OK;
    }
    ct_status status = ct_checkpoint_options(checkpoint, &l->saved);
    ct_checkpoint_free(&checkpoint);
    return status == CT_OK ? find_cells(l) : status;
}

/* ---- both ---- */

ct_status ct_share_finish(ct_study *study, const ct_share *share, const ct_error *ended, bool keep,
                          bool *is_stopped) {
    if (ended->status == CT_DIVERGED) {
        ct_note("%s; each is run alone", ended->text);
        for (int k = 0; k < share->n; k++) share->cells[k]->is_alone = true;
        ct_study_remove_dir(share->dir, MAX_DEPTH);
        return CT_OK;
    }
    if (ended->status != CT_OK) return ct_fail_again(ended);
    bool is_finished = false;
    char pair[256] = "";
    while (!is_finished && next_name(share->dir, PAIR, pair)) {
        char *path = ct_path_join(share->dir, pair);
        if (path == NULL) return no_memory();
        is_finished = ct_dir_has(path, "summary.json");
        ct_free(path);
    }
    if (!is_finished) *is_stopped = true; /* its checkpoint stays */
    return is_finished ? empty_dir(study, share->dir, keep) : CT_OK;
}

static ct_status go_on(launch *l, bool keep, bool *is_stopped) {
    ct_config config;
    CT_TRY(ct_share_config(l->share.cells[0], l->saved.lambdas, l->share.dir, &config));
    memcpy(config.resume, l->share.dir, sizeof config.resume);
    ct_note("--- %s goes on (interrupted before)", l->share.dir);
    ct_error ended;
    (void)CT_CATCH(&ended, ct_train(&config));
    CT_TRY(ct_share_finish(l->study, &l->share, &ended, keep, is_stopped));
    return ct_study_heed_signal(is_stopped);
}

/* Somebody trains in it now. Training itself locks it again. */
static bool is_busy(const char *dir) {
    int lock = -1;
    bool is_free = ct_dir_lock(dir, &lock);
    ct_dir_unlock(&lock);
    return !is_free;
}

/* Of another process, which may have cells of its own; ours must not be among them. */
static ct_status leave_busy(launch *l, const ct_config *begun) {
    l->saved = *begun;
    CT_TRY(find_cells(l));
    if (l->is_selected)
        return ct_fail(CT_BUSY, "%s is being trained by another process", l->share.dir);
    return CT_OK;
}

static ct_status look_after(launch *l, bool keep, bool *is_stopped) {
    CT_TRY(look(l));
    if (!l->is_whole || !l->is_open) return empty_dir(l->study, l->share.dir, keep);
    if (l->is_other) {
        ct_note("%s was begun with other options and is left alone; remove it if nobody needs it",
                l->share.dir);
        return CT_OK;
    }
    if (l->share.n == 0) { /* all its cells have been run since, or are to be run again */
        ct_study_remove_dir(l->share.dir, MAX_DEPTH);
        return CT_OK;
    }
    return l->is_selected ? go_on(l, keep, is_stopped) : CT_OK;
}

/* It is a launch of several pairs of lambdas: somebody else's files are nothing to us. */
static bool is_launch(const char *dir, ct_config *config) {
    ct_config_init(config);
    if (!ct_dir_has(dir, "config.txt")) return false;
    char *path = ct_path_join(dir, "config.txt");
    bool is_one = path != NULL && CT_CATCH(NULL, ct_config_read(config, path)) == CT_OK &&
                  config->lambdas[0] != '\0';
    ct_free(path);
    return is_one;
}

ct_status ct_study_unshare(ct_study *study, bool keep, bool *is_stopped) {
    char name[256] = "";
    while (!*is_stopped && next_name(study->out, CT_SHARED, name)) {
        launch l = {.study = study};
        ct_config begun;
        int n = snprintf(l.share.dir, sizeof l.share.dir, "%s/%s", study->out, name);
        if (n < 0 || (size_t)n + 64 > sizeof l.share.dir) continue;
        if (!is_launch(l.share.dir, &begun)) continue;
        ct_config_init(&l.saved);
        ct_status status =
            is_busy(l.share.dir) ? leave_busy(&l, &begun) : look_after(&l, keep, is_stopped);
        ct_json_free(&l.options);
        CT_TRY(status);
    }
    return CT_OK;
}
