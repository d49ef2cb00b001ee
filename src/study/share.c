/* Runs that differ in the lambdas alone as worlds of one launch: the same results, and a device has
 * more to do at a time. A launch lies in a directory of its own, --out/shared-<first cell>, with a
 * run directory m<lambda-m>-d<lambda-d> for every pair; its config.txt names the pairs, so that it
 * tells itself which cells it serves, whatever became of the process that began it. Finished runs
 * are filed: moved to where each would lie if it had been run alone. */
#include <stdio.h>
#include <string.h>

#include "record/folder.h"
#include "run/run.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/log.h"

enum {
    MAX_NAMES = 1000,              /* of launches that begin with the same cell */
    MAX_PAIRS = CT_CONFIG_TEXT / 4 /* "1:1," is the shortest */
};

typedef struct pair {
    double lambdas[2]; /* m, d */
    char name[64];     /* of its directory */
    bool is_finished;
    ct_cell *cell; /* that it is the run of, one that waits for it if there is one; or NULL */
} pair;

typedef struct launch {
    ct_study *study;
    char dir[CT_CONFIG_TEXT];
    ct_config config; /* of its config.txt */
    pair pairs[MAX_PAIRS];
    int n;
    int n_finished, n_waiting; /* pairs; those whose cell waits */
    bool is_whole;             /* all directories are there: none has been filed */
    bool is_known;             /* all pairs are of cells of this study */
    bool is_wanted;            /* one of the cells that wait is selected */
} launch;

/* ---- what is there of a launch ---- */

/* The cell whose run the pair is, by the options that are saved of it. */
static ct_status find_cell(launch *l, pair *p, const ct_json *options, const ct_json *summary) {
    for (int k = 0; k < l->study->n_cells; k++) {
        ct_cell *cell = &l->study->cells[k];
        const ct_config *c = &cell->resolved;
        bool is_run;
        if (c->lambda_m != p->lambdas[0] || c->lambda_d != p->lambdas[1]) continue;
        CT_TRY(ct_cell_is_run(cell, options, summary, &is_run));
        if (!is_run) continue;
        bool is_free = ct_cell_is_free(cell);
        l->is_wanted = l->is_wanted || (is_free && cell->is_selected);
        if (p->cell == NULL || (is_free && !ct_cell_is_free(p->cell))) p->cell = cell;
    }
    return CT_OK;
}

/* The options of a pair that is not finished: it is a run of its own with the launch's. */
static ct_status options_of(const launch *l, const pair *p, ct_json **out) {
    ct_config alone = l->config;
    alone.lambdas[0] = '\0';
    alone.lambda_m = p->lambdas[0];
    alone.lambda_d = p->lambdas[1];
    return ct_config_to_json(&alone, out);
}

/* One "m:d" of the launch's lambdas. */
static ct_status look_at_pair(void *context, const char *field) {
    launch *l = context;
    pair *p = &l->pairs[l->n];
    CT_SCOPED_HANDLE(ct_json) summary = NULL;
    CT_SCOPED_HANDLE(ct_json) options = NULL;
    *p = (pair){.cell = NULL};
    if (!ct_record_parse_pair(field, p->lambdas))
        return ct_fail(CT_IO, "%s: '%s' is no pair of lambdas", l->dir, field);
    ct_record_name_pair(p->lambdas[0], p->lambdas[1], p->name, sizeof p->name);
    ct_path path = ct_path_in(l->dir, p->name);
    p->is_finished = ct_record_has(path.text, CT_FILE_SUMMARY);
    CT_TRY(p->is_finished ? ct_summary_read(path.text, &summary) : options_of(l, p, &options));
    CT_TRY(find_cell(l, p, p->is_finished ? ct_json_get(summary, "options") : options, summary));
    l->n++;
    l->n_finished += p->is_finished;
    l->n_waiting += p->cell != NULL && ct_cell_is_free(p->cell);
    l->is_whole = l->is_whole && ct_dir_exists(path.text);
    l->is_known = l->is_known && p->cell != NULL;
    return CT_OK;
}

/* *is_one: it is a launch; somebody else's files are nothing to us. */
static ct_status look(launch *l, bool *is_one) {
    ct_path path = ct_record_path(l->dir, CT_FILE_CONFIG);
    ct_config_init(&l->config);
    ct_status status =
        ct_file_exists(path.text) ? CT_CATCH(NULL, ct_config_load(&l->config, path.text)) : CT_IO;
    if (status == CT_NOMEM) return ct_no_memory(path.text);
    *is_one = status == CT_OK && l->config.lambdas[0] != '\0';
    l->n = l->n_finished = l->n_waiting = 0;
    l->is_whole = l->is_known = true;
    l->is_wanted = false;
    return *is_one ? ct_split(l->config.lambdas, look_at_pair, l) : CT_OK;
}

/* ---- filing ---- */

/* Finished runs to their cells; the directory goes, unless it has some that are of none. */
static ct_status file_runs(launch *l) {
    bool is_left = false;
    for (int k = 0; k < l->n; k++) {
        const pair *p = &l->pairs[k];
        if (p->is_finished && p->cell == NULL) is_left = true;
        if (p->is_finished && p->cell != NULL && ct_cell_is_free(p->cell))
            CT_TRY(ct_cell_take(p->cell, ct_path_in(l->dir, p->name).text, l->study->request.keep));
    }
    if (is_left)
        ct_note("%s has finished runs with other options and is left alone; remove it if nobody "
                "needs them",
                l->dir);
    else
        ct_study_remove_dir(l->dir);
    return CT_OK;
}

/* Trains with the options and files what is then finished; a launch that was stopped stays. */
static ct_status train(launch *l, const ct_config *config) {
    ct_error ended;
    bool is_one;
    ct_status status = CT_CATCH(&ended, ct_train(config));
    if (status != CT_OK && status != CT_DIVERGED) return ct_fail_again(&ended);
    CT_TRY(look(l, &is_one));
    if (status == CT_DIVERGED) {
        ct_note("%s; each is run alone", ended.text);
        for (int k = 0; k < l->n; k++)
            if (l->pairs[k].cell != NULL) l->pairs[k].cell->is_alone = true;
        ct_study_remove_dir(l->dir);
        return CT_OK;
    }
    return file_runs(l);
}

/* The options of a launch of these lambdas, all others as the cell has them. */
static ct_config launch_options(const ct_cell *cell, const char *lambdas, const char *dir) {
    ct_config config = cell->resolved;
    config.lambda_m = config.lambda_d = 0;
    snprintf(config.lambdas, sizeof config.lambdas, "%s", lambdas);
    snprintf(config.out, sizeof config.out, "%s", dir);
    ct_config_fix(&config);
    return config;
}

/* ---- what launches have left ---- */

static ct_status resume(launch *l) {
    const ct_cell *cell = NULL;
    for (int k = 0; k < l->n && cell == NULL; k++)
        if (ct_cell_is_free(l->pairs[k].cell)) cell = l->pairs[k].cell;
    ct_config config = launch_options(cell, l->config.lambdas, l->dir);
    memcpy(config.resume, l->dir, sizeof config.resume);
    ct_note("--- resuming %s (interrupted before)", l->dir);
    CT_TRY(train(l, &config));
    return ct_study_heed_signal();
}

/* Somebody trains in it now. Training itself locks it again. */
static bool is_busy(const char *dir) {
    int lock = -1;
    bool is_free = ct_dir_lock(dir, &lock);
    ct_dir_unlock(&lock);
    return !is_free;
}

/* A launch that was interrupted at any moment: in training, before its runs were filed, or between
 * two of them. */
static ct_status clean_up(launch *l) {
    bool is_one, is_theirs = is_busy(l->dir);
    CT_TRY(look(l, &is_one));
    if (!is_one) return CT_OK;
    if (is_theirs) /* another process may have cells of its own; ours must not be among them */
        return l->is_wanted ? ct_fail(CT_BUSY, "%s is being trained by another process", l->dir)
                            : CT_OK;
    bool can_resume = false;
    if (l->is_whole && l->n_finished < l->n)
        CT_TRY(ct_study_can_resume(l->dir, l->dir, &can_resume));
    if (!can_resume) return file_runs(l);
    if (!l->is_known)
        ct_note("%s was begun with other options and is left alone; remove it if nobody needs it",
                l->dir);
    else if (l->n_waiting == 0) /* all its cells have been run since, or are to be run again */
        ct_study_remove_dir(l->dir);
    else if (l->is_wanted)
        return resume(l);
    return CT_OK;
}

ct_status ct_share_resume_all(ct_study *study) {
    launch l = {.study = study};
    CT_SCOPED(ct_name_list) names = {0};
    CT_TRY(ct_study_list_names(study->out, CT_SHARED, "", &names));
    for (int k = 0; k < names.n; k++) {
        ct_path dir = ct_path_in(study->out, names.name[k]);
        if (!ct_dir_exists(dir.text) || strlen(dir.text) + 64 > sizeof l.dir) continue;
        memcpy(l.dir, dir.text, sizeof l.dir);
        CT_TRY(clean_up(&l));
    }
    return CT_OK;
}

/* ---- a new launch ---- */

static bool may_share(const ct_cell *cell) {
    const ct_config *c = &cell->resolved;
    if (!cell->is_selected || cell->is_alone || !ct_cell_is_free(cell)) return false;
    return strcmp(c->loss, "ccl") == 0 && c->ccl_adaptive == 0 && c->lambdas[0] == '\0';
}

/* Everything that must be the same, as text. */
static void add_common(const ct_cell *cell, ct_text *out) {
    ct_config config = launch_options(cell, "", "");
    ct_config_print(&config, out);
}

/* The lambdas of the cells from `first` on that can be run with it, at most so many. */
static ct_status collect(const ct_study *study, int first, int most, ct_text *lambdas, int *n) {
    CT_SCOPED(ct_text) wanted = {0};
    add_common(&study->cells[first], &wanted);
    CT_TRY(ct_text_status(&wanted));
    for (int k = first; k < study->n_cells && *n < most; k++) {
        const ct_cell *cell = &study->cells[k];
        CT_SCOPED(ct_text) text = {0};
        if (!may_share(cell) || lambdas->n + 64 > CT_CONFIG_TEXT) continue;
        add_common(cell, &text);
        CT_TRY(ct_text_status(&text));
        if (strcmp(text.chars, wanted.chars) != 0) continue;
        ct_text_add(lambdas, "%s", (*n)++ > 0 ? "," : "");
        ct_json_add_number(lambdas, cell->resolved.lambda_m);
        ct_text_add(lambdas, ":");
        ct_json_add_number(lambdas, cell->resolved.lambda_d);
    }
    return ct_text_status(lambdas);
}

/* A launch that is left alone keeps its directory. */
static ct_status name_dir(const ct_study *study, const ct_cell *cell, launch *l) {
    for (int k = 1; k < MAX_NAMES; k++) {
        char ending[16] = "";
        if (k > 1) snprintf(ending, sizeof ending, "-%d", k);
        int n =
            snprintf(l->dir, sizeof l->dir, "%s/" CT_SHARED "%s%s", study->out, cell->name, ending);
        if (n < 0 || (size_t)n + 64 > sizeof l->dir)
            return ct_refuse("out", "the name is too long: %s", study->out);
        if (!ct_dir_exists(l->dir)) return CT_OK;
    }
    return ct_fail(CT_IO, "%s has %d directories " CT_SHARED "%s...; remove them", study->out,
                   MAX_NAMES, cell->name);
}

ct_status ct_share_run(ct_study *study, int first, int *n) {
    ct_cell *cell = &study->cells[first];
    launch l = {.study = study};
    CT_SCOPED(ct_text) lambdas = {0};
    int most = study->request.at_once / ct_count_parts(cell->resolved.seeds, ',');
    *n = 0;
    if (most < 2 || !may_share(cell)) return CT_OK;
    CT_TRY(collect(study, first, most, &lambdas, n));
    if (*n < 2) *n = 0;
    if (*n == 0) return CT_OK;
    CT_TRY(name_dir(study, cell, &l));
    ct_note("%d to do: %s and %d other%s at once", ct_study_count_to_do(study), cell->name, *n - 1,
            *n == 2 ? "" : "s");
    ct_config config = launch_options(cell, lambdas.chars, l.dir);
    CT_TRY(train(&l, &config));
    if (ct_cell_is_free(cell)) cell->is_alone = true; /* it got no run */
    return CT_OK;
}
