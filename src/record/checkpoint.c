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

bool ct_checkpoint_any_whole(const char *dir) {
    CT_SCOPED_BLOCK(long) found = NULL;
    int n = 0;
    bool is_there = false;
    (void)CT_CATCH(NULL, ct_checkpoint_list(dir, &found, &n));
    for (int k = 0; k < n && !is_there; k++) is_there = ct_checkpoint_is_whole(dir, found[k]);
    return is_there;
}

/* An agent's file or the manifest; or one of them that was still to be renamed. */
static void remove_files(const char *folder, bool parts_alone) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        bool is_part = strstr(e->d_name, ".part-") != NULL;
        bool is_ours = strncmp(e->d_name, "agent-", 6) == 0 ||
                       strncmp(e->d_name, CT_MANIFEST, sizeof CT_MANIFEST - 1) == 0;
        if (is_ours && (is_part || !parts_alone)) remove(ct_path_in(folder, e->d_name).text);
    }
    if (d != NULL) closedir(d);
}

void ct_checkpoint_remove(const char *dir, long iteration) {
    ct_path folder = ct_checkpoint_folder(dir, iteration);
    remove(ct_path_in(folder.text, CT_MANIFEST).text);
    remove_files(folder.text, false);
    rmdir(folder.text);
}

void ct_checkpoint_clean(const char *dir) {
    CT_SCOPED_BLOCK(long) found = NULL;
    int n = 0;
    (void)CT_CATCH(NULL, ct_checkpoint_list(dir, &found, &n));
    for (int k = 0; k < n; k++)
        if (ct_checkpoint_is_whole(dir, found[k]))
            remove_files(ct_checkpoint_folder(dir, found[k]).text, true);
        else
            ct_checkpoint_remove(dir, found[k]);
    rmdir(ct_checkpoint_folder(dir, -1).text); /* if nothing is left */
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
