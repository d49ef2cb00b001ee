/* Tables of a paper have runs in common. A finished run with the same options in another study
 * beside this one (a directory with a table.csv) is copied instead of being run again. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/run.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

/* ---- directories ---- */

void ct_study_remove_dir(const char *dir, int depth) {
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        ct_path path = ct_path_in(dir, e->d_name);
        if (unlink(path.text) != 0 && depth > 0) ct_study_remove_dir(path.text, depth - 1);
    }
    if (d != NULL) closedir(d);
    rmdir(dir);
}

/* The first name in `dir` that begins so and comes after `name`, which becomes it: entries come and
 * go while we walk over them. */
static bool next_name(const char *dir, const char *start, char name[256]) {
    char best[256] = "";
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        bool is_one = e->d_name[0] != '.' && strncmp(e->d_name, start, strlen(start)) == 0;
        if (!is_one || strcmp(e->d_name, name) <= 0) continue;
        if (best[0] == '\0' || strcmp(e->d_name, best) < 0)
            snprintf(best, sizeof best, "%s", e->d_name);
    }
    if (d != NULL) closedir(d);
    memcpy(name, best, sizeof best);
    return best[0] != '\0';
}

ct_status ct_study_each_dir(const char *dir, const char *start,
                            ct_status (*each)(void *context, const char *path, const char *name),
                            void *context) {
    char name[256] = "";
    while (next_name(dir, start, name)) {
        ct_path path = ct_path_in(dir, name);
        if (ct_dir_exists(path.text)) CT_TRY(each(context, path.text, name));
    }
    return CT_OK;
}

/* ---- what there is ---- */

/* A run becomes that of the cells which have none and are like it; the first one by name, so that
 * the choice is always the same. */
static ct_status offer_run(void *context, const char *dir, const char *name) {
    ct_study *study = context;
    ct_json *summary = NULL;
    ct_status status = CT_OK;
    (void)name;
    if (!ct_record_has(dir, CT_FILE_SUMMARY)) return CT_OK;
    if (CT_CATCH(NULL, ct_summary_read(dir, &summary)) != CT_OK) return CT_OK; /* not ours */
    for (int k = 0; k < study->n_cells && status == CT_OK; k++) {
        ct_cell *cell = &study->cells[k];
        bool is_missing = cell->is_selected && cell->state == CT_CELL_MISSING;
        if (!is_missing || cell->config.force || cell->elsewhere != NULL) continue;
        ct_text difference = {0};
        status =
            ct_cell_find_difference(cell, ct_json_get(summary, "options"), summary, &difference);
        if (status == CT_OK && difference.n == 0) {
            cell->elsewhere = ct_strdup(dir);
            if (cell->elsewhere == NULL) status = ct_no_memory("the name of a run");
        }
        ct_text_free(&difference);
    }
    ct_json_free(&summary);
    return status;
}

static ct_status offer_study(void *context, const char *dir, const char *name) {
    const ct_study *study = context;
    (void)name;
    bool is_own = ct_dir_is_same(dir, study->out); /* its own cells are known already */
    if (is_own || !ct_dir_has(dir, "table.csv")) return CT_OK;
    return ct_study_each_dir(dir, "", offer_run, context);
}

ct_status ct_study_find_elsewhere(ct_study *study) {
    char beside[sizeof study->out];
    size_t n = strlen(study->out);
    memcpy(beside, study->out, n + 1);
    while (n > 1 && beside[n - 1] == '/') beside[--n] = '\0';
    char *slash = strrchr(beside, '/');
    if (slash != NULL) slash[slash == beside] = '\0';
    return ct_study_each_dir(slash != NULL ? beside : ".", "", offer_study, study);
}

/* ---- copying ---- */

/* What a light run has. */
static ct_status copy_files(const char *from, const char *to) {
    static const ct_record_file files[] = {CT_FILE_CONFIG, CT_FILE_METRICS, CT_FILE_SETTING,
                                           CT_FILE_EVALUATION, CT_FILE_SUMMARY};
    CT_TRY(ct_dir_create(to));
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        ct_blob blob = {0};
        if (!ct_record_has(from, files[k])) continue;
        CT_TRY(ct_file_read(ct_record_path(from, files[k]).text, (size_t)1 << 30, &blob));
        ct_status status = ct_file_write(ct_record_path(to, files[k]).text, blob.bytes, blob.n);
        ct_blob_free(&blob);
        CT_TRY(status);
    }
    return CT_OK;
}

static ct_status copy_seed(void *to, const char *path, const char *name) {
    return copy_files(path, ct_path_in(to, name).text);
}

/* Into a directory of its own, which then takes the cell's name: there is all of it, or nothing. */
static ct_status copy_run(const ct_study *study, const ct_cell *cell) {
    ct_path part = ct_path_in(study->out, "reused-part");
    ct_study_remove_dir(part.text, CT_RUN_DEPTH);
    ct_status status = ct_study_each_dir(cell->elsewhere, "seed-", copy_seed, part.text);
    if (status == CT_OK) status = copy_files(cell->elsewhere, part.text);
    if (status == CT_OK) status = ct_record_lighten(part.text, cell->name);
    if (status == CT_OK && rename(part.text, cell->config.out) != 0)
        status = ct_fail(CT_IO, "%s: cannot become %s", part.text, cell->config.out);
    if (status != CT_OK) ct_study_remove_dir(part.text, CT_RUN_DEPTH);
    return status;
}

ct_status ct_study_reuse(ct_study *study) {
    CT_TRY(ct_dir_create(study->out));
    for (int k = 0; k < study->n_cells; k++) {
        ct_cell *cell = &study->cells[k];
        if (cell->elsewhere == NULL || cell->state != CT_CELL_MISSING) continue;
        CT_TRY(copy_run(study, cell));
        CT_TRY(ct_cell_read_summary(cell));
        cell->state = CT_CELL_DONE;
        ct_note("%s: taken from %s", cell->name, cell->elsewhere);
    }
    return CT_OK;
}
