/* Where the files of a data set lie. */
#include "data/dataset_internal.h"

#include "util/file.h"
#include "util/memory.h"

#include <stdio.h>
#include <string.h>

/* dir/name or, if that is not there, dir/name.gz; NULL in *out if neither is. */
static ct_status look_for(const char *dir, const char *name, char **out) {
    static const char *const endings[] = {"", ".gz"};
    *out = NULL;
    for (int k = 0; k < 2; k++) {
        char file[128];
        snprintf(file, sizeof file, "%s%s", name, endings[k]);
        char *path = ct_path_join(dir, file);
        if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a file name");
        if (ct_file_exists(path)) {
            *out = path;
            return CT_OK;
        }
        ct_free(path);
    }
    return CT_OK;
}

bool ct_data_exists(const char *dir, const char *name) {
    char *path = NULL;
    bool there = look_for(dir, name, &path) == CT_OK && path != NULL;
    ct_free(path);
    return there;
}

ct_status ct_data_find(const char *dir, const char *name, const char *hint, char **out) {
    if (!ct_dir_exists(dir)) return ct_fail(CT_IO, "%s: no such directory; %s", dir, hint);
    char *path = NULL;
    CT_TRY(look_for(dir, name, &path));
    if (path == NULL)
        return ct_fail(CT_IO, "%s: neither %s nor %s.gz is there; %s", dir, name, name, hint);
    *out = path;
    return CT_OK;
}

ct_status ct_data_dir(const ct_dataset *dataset, const ct_dataset_options *options,
                      const char *usual, const char *hint, const char **out) {
    const char *dir = options->dir != NULL ? options->dir : usual;
    if (dir == NULL)
        return ct_fail(CT_INVAL, "data set %s has no usual place; %s", dataset->name, hint);
    *out = dir;
    return CT_OK;
}

bool ct_data_has(const char *dir, const char *name) {
    char *path = ct_path_join(dir, name);
    bool there = path != NULL && (ct_file_exists(path) || ct_dir_exists(path));
    ct_free(path);
    return there;
}

ct_status ct_data_inner(const char *dir, const char *subdir, const char *name, char **out) {
    char *inner = ct_path_join(dir, subdir);
    if (inner != NULL && (ct_data_exists(dir, name) || !ct_data_exists(inner, name))) {
        ct_free(inner);
        inner = ct_strdup(dir);
    }
    if (inner == NULL) return ct_fail(CT_NOMEM, "no memory for a file name");
    *out = inner;
    return CT_OK;
}

bool ct_path_suggests(const char *path, const char *word) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    size_t length = strlen(word);
    for (size_t k = begin; k + length <= n; k++)
        if (strncmp(path + k, word, length) == 0) return true;
    return false;
}
