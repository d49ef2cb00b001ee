#include "record/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/file.h"
#include "util/memory.h"
#include "util/text.h"

ct_path ct_checkpoint_folder(const char *dir, long iteration) {
    ct_path all = ct_record_path(dir, CT_FILE_CHECKPOINT);
    char name[32];
    if (iteration < 0) return all;
    snprintf(name, sizeof name, "%ld", iteration);
    return ct_path_in(all.text, name);
}

bool ct_checkpoint_exists(const char *dir) {
    return ct_dir_exists(ct_checkpoint_folder(dir, -1).text);
}

bool ct_checkpoint_is_whole(const char *dir, long iteration) {
    return ct_dir_has(ct_checkpoint_folder(dir, iteration).text, CT_MANIFEST);
}

static int newest_first(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x < y) - (x > y);
}

ct_status ct_checkpoint_list(const char *dir, long **out, int *n_out) {
    DIR *d = opendir(ct_checkpoint_folder(dir, -1).text);
    int n = 0;
    long *found = NULL;
    ct_status status = d != NULL || errno == ENOENT ? CT_OK : ct_file_failed(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        int64_t iteration;
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || !ct_parse_i64(e->d_name, &iteration))
            continue;
        status = ct_extend(&found, (size_t)n, "the list of checkpoints");
        if (status != CT_OK) break;
        found[n++] = (long)iteration;
    }
    if (d != NULL) closedir(d);
    if (n > 0) qsort(found, (size_t)n, sizeof *found, newest_first);
    *out = found;
    *n_out = n;
    return status;
}

void ct_checkpoint_remove(const char *dir, long iteration) {
    ct_path folder = ct_checkpoint_folder(dir, iteration);
    remove(ct_path_in(folder.text, CT_MANIFEST).text);
    DIR *d = opendir(folder.text);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "agent-", 6) == 0 ||
            strncmp(e->d_name, CT_MANIFEST ".part-", sizeof CT_MANIFEST + 5) == 0)
            remove(ct_path_in(folder.text, e->d_name).text);
    if (d != NULL) closedir(d);
    rmdir(folder.text);
}

ct_status ct_checkpoint_remove_all(const char *dir) {
    long *found = NULL;
    int n = 0;
    ct_status status = ct_checkpoint_list(dir, &found, &n);
    for (int k = 0; k < n && status == CT_OK; k++) ct_checkpoint_remove(dir, found[k]);
    ct_free(found);
    rmdir(ct_checkpoint_folder(dir, -1).text);
    return status;
}
