/* The runs of a folder in one file, small enough to be kept: what a page needs of them, as it was.
 *
 *     {"crosstalk":"runs","version":1,"n":2}
 *     {"run":"ccl","config.txt":"...","summary.json":"..."}
 *     {"run":"ccl/seed-1","config.txt":"...","metrics.jsonl":"...","summary.json":"..."}
 *
 * JSON lines, packed by gzip. A line has a run's directory, relative to the folder, and the text of
 * its files (file_list.h; heavy ones are left out). A folder's bundle is called runs.jsonl.gz, and
 * its runs are read as if their directories lay beside it: <folder>/ccl/seed-1. Those of a file
 * with another name are <file>/ccl/seed-1. Where both are, the directory counts.
 *     {"run":"tune/ccl","tuned.json":"..."}
 * is no run, but what a study has tried for one that is still to come (study/tune.h). */
#ifndef CT_RECORD_BUNDLE_H
#define CT_RECORD_BUNDLE_H

#include <sys/stat.h>

#include "record/find.h"
#include "util/file.h"

#define CT_BUNDLE_NAME "runs.jsonl.gz"

/* The file is one, plain or packed; what cannot be read is none. */
ct_status ct_bundle_is(const char *path, bool *out);
/* All runs that `dir` is or holds (record/find.h), those of its bundle as well. */
ct_status ct_bundle_write(const char *dir, const char *path, int *n_runs);
/* Names of all runs in the bundle `file` of a folder, in order; none where there is no such file. */
ct_status ct_bundle_list(const ct_folder *folder, const char *file, ct_name_list *names);
/* The same of what was tried for runs that are still to come: tune/<run>. */
ct_status ct_bundle_list_tuning(const ct_folder *folder, const char *file, ct_name_list *names);
/* A run that is in a bundle, and the runs below it, as directories: `to`, `to`/seed-1, ... */
ct_status ct_bundle_unpack(const char *path, const char *to);

/* While one is open, its thread keeps the bundle that it read last unpacked, because whoever reads a
 * folder's runs one by one would unpack all of it for each. A file that has changed is read again. */
typedef struct ct_bundle_memory {
    struct ct_bundle_memory *before; /* which was open */
    struct stat what;                /* of the file */
    ct_blob blob;
    char **lines; /* [n] in the blob */
    int n;
} ct_bundle_memory;
void ct_bundle_memory_open(ct_bundle_memory *memory);
void ct_bundle_memory_close(ct_bundle_memory *memory);

#endif
