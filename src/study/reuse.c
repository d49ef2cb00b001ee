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

enum { MAX_DEPTH = 3 };

static ct_status no_memory(void) {
    return ct_fail(CT_NOMEM, "no memory to look for runs");
}

void ct_study_remove_dir(const char *dir, int depth) {
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        char *path = ct_path_join(dir, e->d_name);
        if (path != NULL && unlink(path) != 0 && depth > 0) ct_study_remove_dir(path, depth - 1);
        ct_free(path);
    }
    if (d != NULL) closedir(d);
    rmdir(dir);
}

/* ---- what there is ---- */

/* Calls act(path, what) for the directories in `dir` until one fails. */
static ct_status each_inside(const char *dir, ct_status (*act)(const char *path, void *what),
                             void *what) {
    ct_status status = CT_OK;
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && status == CT_OK && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        char *path = ct_path_join(dir, e->d_name);
        if (path == NULL) status = no_memory();
        if (status == CT_OK && ct_dir_exists(path)) status = act(path, what);
        ct_free(path);
    }
    if (d != NULL) closedir(d);
    return status;
}

/* A directory's run becomes that of the cells which have none and are like it. */
static ct_status offer_run(const char *dir, void *what) {
    ct_study *study = what;
    ct_json *summary = NULL;
    if (!ct_dir_has(dir, "summary.json")) return CT_OK;
    if (CT_CATCH(NULL, ct_summary_read(dir, &summary)) != CT_OK) return CT_OK; /* not ours */
    ct_status status = CT_OK;
    for (int k = 0; k < study->n_cells && status == CT_OK; k++) {
        ct_cell *cell = &study->cells[k];
        bool is_like = false;
        if (!cell->is_selected || cell->state != CT_CELL_MISSING || cell->config.force) continue;
        status = ct_cell_is_like(cell, summary, &is_like);
        /* Directories come in any order: the first name of all, so that the choice is always the
         * same. */
        if (!is_like || (cell->elsewhere != NULL && strcmp(cell->elsewhere, dir) <= 0)) continue;
        ct_free(cell->elsewhere);
        cell->elsewhere = ct_strdup(dir);
        if (cell->elsewhere == NULL) status = no_memory();
    }
    ct_json_free(&summary);
    return status;
}

static ct_status offer_study(const char *dir, void *what) {
    const ct_study *study = what;
    bool is_own = strcmp(dir, study->out) == 0; /* its own cells are known already */
    if (is_own || !ct_dir_has(dir, "table.csv")) return CT_OK;
    return each_inside(dir, offer_run, what);
}

ct_status ct_study_find_elsewhere(ct_study *study) {
    char beside[sizeof study->out];
    size_t n = strlen(study->out);
    memcpy(beside, study->out, n + 1);
    while (n > 1 && beside[n - 1] == '/') beside[--n] = '\0';
    char *slash = strrchr(beside, '/');
    if (slash == NULL) return each_inside(".", offer_study, study);
    slash[slash == beside] = '\0';
    return each_inside(beside, offer_study, study);
}

/* ---- copying ---- */

static ct_status copy_file(const char *from_dir, const char *to_dir, const char *name) {
    ct_blob blob = {0};
    char *from = ct_path_join(from_dir, name), *to = ct_path_join(to_dir, name);
    ct_status status = from != NULL && to != NULL ? CT_OK : no_memory();
    if (status == CT_OK && ct_file_exists(from)) {
        status = ct_file_read(from, (size_t)1 << 30, &blob);
        if (status == CT_OK) status = ct_file_write(to, blob.bytes, blob.n);
    }
    ct_blob_free(&blob);
    ct_free(from);
    ct_free(to);
    return status;
}

/* What a light run has. */
static ct_status copy_files(const char *from, const char *to) {
    static const char *const names[] = {"config.txt", "metrics.jsonl", "setting.json",
                                        "evaluation.json", "summary.json"};
    CT_TRY(ct_dir_create(to));
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) CT_TRY(copy_file(from, to, names[k]));
    return CT_OK;
}

static ct_status copy_seed(const char *path, void *to) {
    const char *name = strrchr(path, '/') + 1;
    if (strncmp(name, "seed-", 5) != 0) return CT_OK;
    char *inner = ct_path_join(to, name);
    ct_status status = inner != NULL ? copy_files(path, inner) : no_memory();
    ct_free(inner);
    return status;
}

/* Into a directory of its own, which then takes the cell's name: there is all of it, or nothing. */
static ct_status copy_run(const ct_study *study, ct_cell *cell) {
    char *part = ct_path_join(study->out, "reused-part");
    if (part == NULL) return no_memory();
    ct_study_remove_dir(part, MAX_DEPTH);
    ct_status status = each_inside(cell->elsewhere, copy_seed, part);
    if (status == CT_OK) status = copy_files(cell->elsewhere, part);
    if (status == CT_OK) status = ct_study_lighten(part, cell->name);
    if (status == CT_OK && rename(part, cell->config.out) != 0)
        status = ct_fail(CT_IO, "%s: cannot become %s", part, cell->config.out);
    if (status != CT_OK) ct_study_remove_dir(part, MAX_DEPTH);
    ct_free(part);
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
