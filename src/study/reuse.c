/* Tables of a paper have runs in common. A finished run with the same options in another study
 * beside this one (a directory with a table.csv) is copied instead of being run again. */
#include <stdio.h>
#include <string.h>

#include "record/bundle.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/log.h"

/* ---- what there is ---- */

/* A run becomes that of the cells which have none and are like it; the first one by name, so that
 * the choice is always the same. */
static ct_status offer_run(ct_study *study, const char *dir) {
    CT_SCOPED_HANDLE(ct_json) summary = NULL;
    ct_status status = CT_CATCH(NULL, ct_summary_read(dir, &summary));
    if (status != CT_OK) return status == CT_NOMEM ? ct_no_memory(dir) : CT_OK; /* not ours */
    for (int k = 0; k < study->n_cells; k++) {
        ct_cell *cell = &study->cells[k];
        bool is_missing = cell->is_selected && cell->state == CT_CELL_MISSING, is_run;
        if (!is_missing || cell->config.force || cell->elsewhere != NULL) continue;
        CT_TRY(ct_cell_is_run(cell, ct_json_get(summary, "options"), summary, &is_run));
        if (is_run) CT_TRY(ct_make_text(&cell->elsewhere, dir));
    }
    return CT_OK;
}

/* Those of another study. */
static ct_status offer_runs(ct_study *study, const char *dir) {
    CT_SCOPED(ct_name_list) runs = {0};
    CT_SCOPED_BY(ct_folder_close, ct_folder) folder = CT_NO_FOLDER;
    CT_TRY(ct_study_list_names(dir, "", "", &runs));
    CT_TRY(ct_folder_open(NULL, dir, &folder));
    CT_TRY(ct_bundle_list(&folder, CT_BUNDLE_NAME, &runs));
    for (int k = 0; k < runs.n; k++)
        if (strchr(runs.name[k], '/') == NULL)
            CT_TRY(offer_run(study, ct_path_in(dir, runs.name[k]).text));
    return CT_OK;
}

ct_status ct_study_find_elsewhere(ct_study *study) {
    char out[sizeof study->out];
    CT_SCOPED(ct_name_list) others = {0};
    size_t n = strlen(study->out);
    memcpy(out, study->out, n + 1);
    while (n > 1 && out[n - 1] == '/') out[--n] = '\0';
    char *slash = strrchr(out, '/');
    if (slash != NULL) slash[slash == out] = '\0';
    const char *beside = slash != NULL ? out : ".";
    CT_TRY(ct_study_list_names(beside, "", "", &others));
    for (int k = 0; k < others.n; k++) {
        ct_path other = ct_path_in(beside, others.name[k]);
        bool is_own = ct_dir_is_same(other.text, study->out); /* its cells are known already */
        if (!is_own && ct_dir_has(other.text, "table.csv")) CT_TRY(offer_runs(study, other.text));
    }
    return CT_OK;
}

/* ---- copying ---- */

/* What a light run has. */
static ct_status copy_files(const char *from, const char *to) {
    static const ct_record_file files[] = {CT_FILE_CONFIG,     CT_FILE_METRICS, CT_FILE_SETTING,
                                           CT_FILE_EVALUATION, CT_FILE_TUNED,   CT_FILE_SUMMARY};
    CT_TRY(ct_dir_create(to));
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        CT_SCOPED(ct_blob) blob = {0};
        if (!ct_record_has(from, files[k])) continue;
        CT_TRY(ct_file_read(ct_record_path(from, files[k]).text, CT_MAX_RECORD_BYTES, &blob));
        CT_TRY(ct_file_write(ct_record_path(to, files[k]).text, blob.bytes, blob.n));
    }
    return CT_OK;
}

/* Into a directory of its own, which then takes the cell's name: there is all of it, or nothing. */
static ct_status copy_run(ct_cell *cell, const char *part) {
    CT_SCOPED(ct_name_list) seeds = {0};
    if (!ct_dir_exists(cell->elsewhere)) {
        CT_TRY(ct_bundle_unpack(cell->elsewhere, part));
        return ct_cell_take(cell, part, false);
    }
    CT_TRY(ct_study_list_names(cell->elsewhere, "seed-", "", &seeds));
    for (int k = 0; k < seeds.n; k++) {
        ct_path from = ct_path_in(cell->elsewhere, seeds.name[k]);
        if (ct_dir_exists(from.text))
            CT_TRY(copy_files(from.text, ct_path_in(part, seeds.name[k]).text));
    }
    CT_TRY(copy_files(cell->elsewhere, part));
    return ct_cell_take(cell, part, false);
}

ct_status ct_study_reuse(ct_study *study) {
    ct_path part = ct_path_in(study->out, "reused-part");
    CT_TRY(ct_dir_create(study->out));
    for (int k = 0; k < study->n_cells; k++) {
        ct_cell *cell = &study->cells[k];
        if (cell->elsewhere == NULL || cell->state != CT_CELL_MISSING) continue;
        ct_study_remove_dir(part.text);
        ct_status status = copy_run(cell, part.text);
        if (status != CT_OK) ct_study_remove_dir(part.text);
        CT_TRY(status);
        ct_note("%s: taken from %s", cell->name, cell->elsewhere);
    }
    return CT_OK;
}
