#include "study/submission.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "record/bundle.h"
#include "record/folder.h"
#include "run/run.h"
#include "study/submission_internal.h"
#include "study/tune.h"
#include "util/version.h"
#include "util/file.h"

enum { MOST_DIFFERENCES = 12 };

void ct_find(ct_candidate *c, ct_verdict verdict, const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->submission->n_wrong += verdict == CT_FINDING_WRONG;
    c->submission->say(verdict, c->name, text);
}

typedef struct visitor {
    ct_candidate *candidate;
    ct_status (*visit)(ct_candidate *c, const ct_record *run);
} visitor;

static ct_status visit_seed(void *context, const char *dir) {
    const visitor *v = context;
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    CT_TRY(ct_record_load(dir, CT_READ_ALL, &run));
    return v->visit(v->candidate, &run);
}

ct_status ct_candidate_each_seed(ct_candidate *c,
                                 ct_status (*visit)(ct_candidate *c, const ct_record *run)) {
    visitor v = {c, visit};
    return ct_record_each_world(c->dir, visit_seed, &v);
}

/* ---- options ---- */

/* Names with commas that need not agree: the study's free ones, and those told already. */
static _Thread_local const char *free_names;
static _Thread_local char told_names[CT_CONFIG_TEXT];

static bool is_in_list(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0';) {
        at += strspn(at, ", ");
        size_t length = strcspn(at, ", ");
        if (length == n && strncmp(at, name, n) == 0) return true;
        at += length;
    }
    return false;
}

/* Machines and files differ; how far a run went does not, nor on what it was trained. */
static bool is_free(const ct_json *ours, const ct_json *theirs) {
    const char *name = ours->key;
    bool is_seed = strcmp(name, "seed") == 0 || strcmp(name, "seeds") == 0; /* looked at apart */
    bool is_auto = ours->kind == CT_JSON_STRING && strcmp(ours->string, "auto") == 0;
    if (is_in_list(free_names, name) || is_in_list(told_names, name) || is_seed) return true;
    if (strcmp(name, "iterations") == 0) return false;
    if (is_auto && strcmp(name, "precision") == 0)
        return theirs == NULL || theirs->kind != CT_JSON_STRING ||
               strcmp(theirs->string, "bf16") != 0;
    return is_auto || ct_config_is_local(name);
}

/* What tells columns apart. */
static bool is_setting(const ct_json *ours, const ct_json *theirs) {
    static const char settings[] = "dataset,agents,topology,partition,alpha";
    (void)theirs;
    return !is_in_list(settings, ours->key);
}

static ct_status find_column(ct_candidate *c) {
    const ct_study *study = c->submission->study;
    for (int k = 0; k < study->n_cells && c->cell == NULL; k++) {
        CT_SCOPED(ct_text) ours = {0}, theirs = {0};
        char name[64];
        CT_TRY(ct_config_find_difference(&study->cells[k].resolved, c->options, is_setting, name,
                                         sizeof name, &ours, &theirs));
        if (name[0] == '\0') c->cell = &study->cells[k];
    }
    if (c->cell == NULL)
        ct_find(c, CT_FINDING_WRONG,
                "options: no column has its dataset, agents, topology and alpha together");
    return CT_OK;
}

static ct_status check_options(ct_candidate *c) {
    const ct_study *study = c->submission->study;
    int n = 0;
    free_names = study->free;
    told_names[0] = '\0';
    for (; n < MOST_DIFFERENCES; n++) {
        CT_SCOPED(ct_text) ours = {0}, theirs = {0};
        char name[64];
        size_t length = strlen(told_names);
        CT_TRY(ct_config_find_difference(&c->cell->resolved, c->options, is_free, name, sizeof name,
                                         &ours, &theirs));
        CT_TRY(ct_text_status(&ours));
        if (name[0] == '\0') break;
        ct_find(c, CT_FINDING_WRONG, "options: @%s is %s, and the leaderboard has %s", name,
                theirs.n > 0 ? theirs.chars : "not known", ours.n > 0 ? ours.chars : "''");
        snprintf(told_names + length, sizeof told_names - length, ",%s", name);
    }
    if (n == 0)
        ct_find(c, CT_FINDING_OK, "options: those of \"%s\"",
                study->columns[c->cell->column].label);
    return CT_OK;
}

/* ---- seeds and splits ---- */

static ct_status check_seeds(ct_candidate *c) {
    const ct_json *seeds = ct_json_get(c->options, "seeds");
    const char *theirs = seeds != NULL && seeds->kind == CT_JSON_STRING ? seeds->string : "";
    const char *ours = c->cell->resolved.seeds;
    /* some more at the end are welcome */
    size_t n = strlen(ours);
    bool has_all = strncmp(theirs, ours, n) == 0 && (theirs[n] == '\0' || theirs[n] == ',');
    if (ours[0] == '\0')
        has_all = ct_json_number(c->options, "seed") == (double)c->cell->resolved.seed;
    ct_find(c, has_all ? CT_FINDING_OK : CT_FINDING_WRONG, "seeds: %s%s%s",
            theirs[0] != '\0' ? theirs : "one", has_all ? "" : ", and the leaderboard has ",
            has_all ? "" : ours);
    return CT_OK;
}

static ct_status check_split(ct_candidate *c, const ct_record *run) {
    char wanted[24] = "";
    const ct_json *split = run->summary != NULL ? ct_json_get(run->summary, "partition") : NULL;
    const ct_json *hash = split != NULL ? ct_json_get(split, "hash") : NULL;
    const char *is = hash != NULL && hash->kind == CT_JSON_STRING ? hash->string : "unknown";
    bool is_known = ct_study_find_split(c->submission->study, c->cell->column, run->seed, wanted,
                                        sizeof wanted);
    if (!is_known)
        ct_find(c, CT_FINDING_NOTE, "split of seed %" PRIu64 ": %s; the leaderboard does not say",
                run->seed, is);
    else if (strcmp(wanted, is) != 0)
        ct_find(c, CT_FINDING_WRONG,
                "split of seed %" PRIu64 ": %s, and that of the leaderboard is %s", run->seed, is,
                wanted);
    else
        ct_find(c, CT_FINDING_OK, "split of seed %" PRIu64 ": %s", run->seed, is);
    return CT_OK;
}

/* ---- version ---- */

static const char *identity_of(const ct_candidate *c, const char *key) {
    const ct_json *identity = ct_json_get(c->summary, "identity");
    const ct_json *value = identity != NULL ? ct_json_get(identity, key) : NULL;
    return value != NULL && value->kind == CT_JSON_STRING ? value->string : "unknown";
}

static ct_status check_version(ct_candidate *c) {
    const char *version = identity_of(c, "version");
    bool is_same = strcmp(version, CT_VERSION) == 0;
    ct_find(c, is_same ? CT_FINDING_OK : CT_FINDING_NOTE,
            "version: %s, commit %s, on %s with %s in %s%s", version, identity_of(c, "commit"),
            identity_of(c, "device"), identity_of(c, "instructions"), identity_of(c, "precision"),
            is_same ? "" : "; this is " CT_VERSION);
    return CT_OK;
}

/* ---- tuning ---- */

/* The values that were chosen are the run's. */
static ct_status check_values(ct_candidate *c, const ct_choice *choice) {
    char option[64];
    for (int a = 0; a < choice->axes.n && choice->chosen >= 0; a++)
        for (int i = 0;
             ct_axis_option(choice->axes.axes[a].name, i, option, sizeof option), option[0]; i++) {
            CT_SCOPED(ct_text) is = {0};
            double x, y;
            const char *chosen = ct_axes_value(&choice->axes, choice->chosen, a);
            const ct_json *value = ct_json_get(c->options, option);
            if (value != NULL) ct_option_text(value, &is);
            CT_TRY(ct_text_status(&is));
            const char *text = is.n > 0 ? is.chars : "";
            bool is_it = strcmp(text, chosen) == 0 ||
                         (ct_parse_double(text, &x) && ct_parse_double(chosen, &y) && x == y);
            if (!is_it)
                ct_find(c, CT_FINDING_WRONG, "tuning: chose %s for @%s, and the run has '%s'",
                        chosen, option, text);
            if (!is_in_list(c->submission->study->free, option))
                ct_find(c, CT_FINDING_WRONG, "tuning: @%s is not free", option);
        }
    return CT_OK;
}

static ct_status check_budget(ct_candidate *c, const ct_choice *choice) {
    const ct_study *study = c->submission->study;
    const ct_cell *cell = c->cell;
    CT_SCOPED_BLOCK(ct_axes) axes = NULL;
    char seeds[CT_CONFIG_TEXT], why[160] = "";
    ct_tune_name_seeds(study, cell, seeds, sizeof seeds);
    CT_TRY(ct_make(&axes, 1, "what is tuned"));
    CT_TRY(ct_axes_add_grid(axes, "tune", cell->tune));
    if (choice->n_trials != ct_axes_count(axes))
        snprintf(why, sizeof why, "%d combinations were tried, and all others had %d",
                 choice->n_trials, ct_axes_count(axes));
    else if (choice->n_rungs != study->tune.n_rungs)
        snprintf(why, sizeof why, "%d rungs, and all others had %d", choice->n_rungs,
                 study->tune.n_rungs);
    else if (strcmp(choice->seeds, seeds) != 0 || choice->fraction != study->tune.fraction)
        snprintf(why, sizeof why, "seeds %.40s with %g held out, and all others had %.40s with %g",
                 choice->seeds, choice->fraction, seeds, study->tune.fraction);
    for (int r = 0; r < choice->n_rungs && why[0] == '\0'; r++)
        if (choice->epochs[r] != ct_tune_epochs(study, cell, r))
            snprintf(why, sizeof why, "rung %d has %lld epochs, and all others had %lld", r + 1,
                     (long long)choice->epochs[r], (long long)ct_tune_epochs(study, cell, r));
    if (why[0] == '\0') (void)ct_choice_holds(choice, why, sizeof why);
    if (why[0] != '\0')
        ct_find(c, CT_FINDING_WRONG, "tuning: %s", why);
    else
        ct_find(c, CT_FINDING_OK, "tuning: %d combinations, the best on held-out samples",
                choice->n_trials);
    return CT_OK;
}

static ct_status check_tuning(ct_candidate *c) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_SCOPED_HANDLE(ct_choice) choice = NULL;
    bool is_there;
    ct_error error;
    if (c->cell->tune[0] == '\0') return CT_OK;
    CT_TRY(ct_record_holds(c->dir, CT_FILE_TUNED, &is_there));
    if (!is_there) {
        ct_find(c, CT_FINDING_WRONG, "tuning: no %s says what was tried",
                ct_record_name(CT_FILE_TUNED));
        return CT_OK;
    }
    CT_TRY(ct_record_read_file(c->dir, CT_FILE_TUNED, &json));
    ct_status status = CT_CATCH(&error, ct_choice_take(json, c->dir, &choice));
    if (status == CT_NOMEM) return ct_fail_again(&error);
    if (status != CT_OK) {
        ct_find(c, CT_FINDING_WRONG, "tuning: %s", error.text);
        return CT_OK;
    }
    CT_TRY(check_budget(c, choice));
    return check_values(c, choice);
}

/* ---- a run, and all of them ---- */

static ct_status check_run(ct_candidate *c) {
    CT_TRY(find_column(c));
    if (c->cell == NULL) return CT_OK;
    CT_TRY(check_options(c));
    CT_TRY(check_seeds(c));
    if (c->has_diverged) {
        ct_find(c, CT_FINDING_NOTE, "numbers: it diverged, and has none");
        return check_tuning(c);
    }
    CT_TRY(ct_candidate_each_seed(c, check_split));
    CT_TRY(check_version(c));
    CT_TRY(ct_check_numbers(c));
    CT_TRY(check_tuning(c));
    return c->submission->trains ? ct_check_bits(c) : CT_OK;
}

static ct_status check_dir(ct_submission *s, const char *dir, const char *name) {
    ct_candidate c = {.submission = s, .dir = dir};
    ct_error error;
    snprintf(c.name, sizeof c.name, "%.*s", CT_STUDY_LABEL - 1, name);
    ct_status read = CT_CATCH(&error, ct_summary_read(dir, &c.summary));
    c.has_diverged = read != CT_OK && read != CT_NOMEM;
    if (c.has_diverged)
        read = CT_CATCH(&error, ct_record_read_file(dir, CT_FILE_DIVERGED, &c.summary));
    if (read == CT_NOMEM) return ct_fail_again(&error);
    c.options = c.summary != NULL ? ct_json_get(c.summary, "options") : NULL;
    s->n_runs++;
    ct_status status = CT_OK;
    if (c.options == NULL || c.options->kind != CT_JSON_OBJECT)
        ct_find(&c, CT_FINDING_WRONG, "no finished run with its options");
    else if ((status = CT_CATCH(&error, check_run(&c))) == CT_IO || status == CT_INVAL) {
        ct_find(&c, CT_FINDING_WRONG, "%s", error.text); /* a file that is none */
        status = CT_OK;
    }
    ct_json_free(&c.summary);
    return status == CT_OK ? CT_OK : ct_fail_again(&error);
}

/* Names of the runs below it, not of their seeds. */
static ct_status list_runs(const char *path, ct_name_list *out) {
    CT_SCOPED_BY(ct_folder_close, ct_folder) folder = CT_NO_FOLDER;
    char dir[CT_CONFIG_TEXT];
    bool is_dir = ct_dir_exists(path);
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    const char *file = is_dir ? CT_BUNDLE_NAME : slash != NULL ? slash + 1 : path;
    if (!is_dir && slash != NULL) *slash = '\0';
    CT_TRY(ct_folder_open(NULL, is_dir || slash != NULL ? dir : ".", &folder));
    CT_TRY(ct_bundle_list(&folder, file, out));
    if (!is_dir) return CT_OK;
    CT_SCOPED(ct_name_list) names = {0};
    CT_TRY(ct_study_list_names(path, "", "", &names));
    for (int k = 0; k < names.n; k++)
        if (ct_record_has(ct_path_in(path, names.name[k]).text, CT_FILE_CONFIG))
            CT_TRY(ct_name_list_add(out, names.name[k]));
    return CT_OK;
}

ct_status ct_submission_check(ct_submission *s, const char *path) {
    CT_SCOPED(ct_name_list) names = {0};
    CT_SCOPED_BY(ct_bundle_memory_close, ct_bundle_memory) memory;
    bool is_run = false;
    const char *slash = strrchr(path, '/');
    ct_bundle_memory_open(&memory);
    CT_TRY(ct_record_holds(path, CT_FILE_CONFIG, &is_run));
    if (is_run) return check_dir(s, path, slash != NULL && slash[1] != '\0' ? slash + 1 : path);
    CT_TRY(list_runs(path, &names));
    for (int k = 0; k < names.n; k++) {
        if (strchr(names.name[k], '/') == NULL)
            CT_TRY(check_dir(s, ct_path_in(path, names.name[k]).text, names.name[k]));
    }
    if (s->n_runs > 0) return CT_OK;
    return ct_fail(CT_IO, "%s: no finished runs are there", path);
}
