#include "serve/shelf.h"

#include <string.h>

#include "util/memory.h"

#define MAX_BYTES ((size_t)1 << 30) /* of all runs together; what comes beyond is not shown */

static void free_run(ct_shelf_run *run) {
    ct_record_unload(&run->record);
    ct_free(run->complaint);
    ct_free(run->path);
    *run = (ct_shelf_run){0};
}

/* Near enough: what can be large, and of JSON and options some bytes for each of the file. */
static size_t bytes_of(const ct_record *r) {
    size_t n_agents = (size_t)r->n_agents, n_classes = (size_t)r->n_classes;
    size_t n_text = r->stamp.file[CT_FILE_CONFIG].n_bytes + r->stamp.file[CT_FILE_SUMMARY].n_bytes +
                    r->stamp.file[CT_FILE_SITE].n_bytes;
    return sizeof(ct_shelf_run) + (size_t)r->n_epochs * sizeof *r->epochs + 32 * n_text +
           (size_t)r->n_edges * sizeof *r->edges + (size_t)r->site.n_sent * 256 +
           (n_agents + n_classes) * (n_classes * sizeof *r->confusion + 64);
}

/* What it says of a run that cannot be read is kept like a run. */
static ct_status read_run(const ct_folder *root, ct_shelf *shelf, ct_shelf_run *run) {
    ct_error error;
    ct_status status =
        CT_CATCH(&error, ct_record_load_in(root, run->path, CT_READ_ALL, &run->record));
    if (status != CT_OK && status != CT_IO) return ct_fail_again(&error);
    if (status != CT_OK) return ct_make_text(&run->complaint, error.text);
    run->n_bytes = bytes_of(&run->record);
    if (shelf->n_bytes + run->n_bytes <= MAX_BYTES) return CT_OK;
    run->n_bytes = 0;
    ct_record_unload(&run->record);
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "%s: not shown: the runs here take more than %zu MiB of memory", run->path,
                MAX_BYTES >> 20);
    CT_TRY(ct_text_status(&text));
    return ct_make_text(&run->complaint, text.chars);
}

/* The run of this name, which leaves the shelf, if it has not changed. */
static bool take_old(ct_shelf *old, const char *path, const ct_record_stamp *stamp,
                     ct_shelf_run *out) {
    for (int k = 0; k < old->n; k++) {
        ct_shelf_run *run = &old->runs[(old->at + k) % old->n];
        if (run->path == NULL || strcmp(run->path, path) != 0) continue;
        old->at = (int)(run - old->runs) + 1;
        if (memcmp(&run->stamp, stamp, sizeof *stamp) != 0) return false;
        ct_move(out, run);
        return true;
    }
    return false;
}

static ct_status add_run(const ct_folder *root, ct_shelf *old, const char *path, ct_shelf *out) {
    ct_record_stamp stamp = {0};
    ct_shelf_run *run = &out->runs[out->n];
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_record_look_at(root, path, &stamp));
    if (status == CT_NOMEM) return ct_fail_again(&error);
    out->n++;
    if (!take_old(old, path, &stamp, run)) {
        CT_TRY(ct_make_text(&run->path, path));
        run->stamp = stamp;
        if (status != CT_OK) return ct_make_text(&run->complaint, error.text);
        CT_TRY(read_run(root, out, run));
    }
    out->n_bytes += run->n_bytes;
    return CT_OK;
}

static ct_status fill(ct_shelf *old, ct_shelf *out) {
    CT_SCOPED_BY(ct_folder_close, ct_folder) root = CT_NO_FOLDER;
    CT_SCOPED(ct_name_list) names = {0};
    CT_TRY(ct_folder_open(NULL, out->dir, &root));
    root.is_sealed = true;
    CT_TRY(ct_record_find_in(&root, &names, &out->complaints));
    CT_TRY(ct_make(&out->runs, (size_t)names.n, "the runs"));
    for (int k = 0; k < names.n; k++) CT_TRY(add_run(&root, old, names.name[k], out));
    return CT_OK;
}

ct_status ct_shelf_refresh(ct_shelf *shelf) {
    CT_SCOPED(ct_shelf) fresh = {.dir = ct_strdup(shelf->dir)};
    if (fresh.dir == NULL) return ct_no_memory(shelf->dir);
    CT_TRY(fill(shelf, &fresh));
    ct_shelf_free(shelf);
    ct_move(shelf, &fresh);
    return CT_OK;
}

ct_status ct_shelf_open(const char *dir, ct_shelf *out) {
    *out = (ct_shelf){0};
    if (!ct_dir_exists(dir)) return ct_fail(CT_IO, "%s: there is no such directory", dir);
    CT_TRY(ct_make_text(&out->dir, dir));
    return ct_shelf_refresh(out);
}

void ct_shelf_free(ct_shelf *shelf) {
    for (int k = 0; k < shelf->n; k++) free_run(&shelf->runs[k]);
    ct_name_list_free(&shelf->complaints);
    ct_free(shelf->runs);
    ct_free(shelf->dir);
    *shelf = (ct_shelf){0};
}
