/* What the files of the record share. */
#ifndef CT_RECORD_RECORD_INTERNAL_H
#define CT_RECORD_RECORD_INTERNAL_H

#include "record/record.h"
#include "util/file.h"

/* The last line of metrics.jsonl that is not empty; NULL: there is none. */
ct_status ct_metrics_last(const char *path, const ct_blob *blob, ct_json **out);

/* The bytes of a file of the run at `path`, which may be in a bundle. */
ct_status ct_record_read_text(const char *path, ct_record_file file, ct_blob *out);

/* ---- bundle.c ---- */
/* Where a run that has no directory may be: line `name` of dir/file. */
typedef struct ct_bundled {
    bool is_there; /* the bundle; whether the run is in it says ct_bundle_read */
    ct_folder folder;
    ct_path dir, file, name;
    struct stat what;
    ct_json *run, *above; /* its line, and that of the run above it; NULL: not there */
} ct_bundled;
#define CT_NOT_BUNDLED ((ct_bundled){.folder.fd = -1})
/* Looks for the bundle that may have `path`: the first file or folder above it. */
ct_status ct_bundle_locate(const ct_folder *root, const char *path, ct_bundled *out);
ct_status ct_bundle_read(ct_bundled *bundled);
void ct_bundled_close(ct_bundled *bundled);

/* ---- details.c ---- */
ct_status ct_record_read_setting(const char *path, const ct_blob *blob, ct_record *run);
ct_status ct_record_read_evaluation(const char *path, const ct_blob *blob, ct_record *run);

/* ---- site.c ---- */
ct_status ct_record_read_site(const char *path, const ct_blob *blob, ct_record *run);
ct_status ct_record_read_sent(const char *path, const ct_blob *blob, ct_record *run);
void ct_record_free_site(ct_record_site *site);

/* ---- tensorboard.c: the metrics once more as TensorBoard's event file ---- */
/* Appends one line of metrics.jsonl, measured now; a file that is not there begins. */
ct_status ct_tensorboard_add(const char *dir, const char *text, size_t n);
/* The event file afresh from metrics.jsonl (none: no event file), for a run that goes on. */
ct_status ct_tensorboard_rewrite(const char *dir);

#endif
