/* Where the files of a data set lie. */
#include "data/dataset_internal.h"

#include <stdio.h>
#include <string.h>

/* dir/name or, if that is not there, dir/name.gz; false if neither is. */
static bool look_for(const char *dir, const char *name, ct_path *out) {
    *out = ct_path_in(dir, name);
    if (ct_file_exists(out->text)) return true;
    char packed[128];
    snprintf(packed, sizeof packed, "%s.gz", name);
    *out = ct_path_in(dir, packed);
    return ct_file_exists(out->text);
}

bool ct_data_exists(const char *dir, const char *name) {
    ct_path unused;
    return look_for(dir, name, &unused);
}

ct_status ct_data_find(const char *dir, const char *name, const char *hint, ct_path *out) {
    if (!ct_dir_exists(dir)) return ct_fail(CT_IO, "%s: no such directory; %s", dir, hint);
    if (look_for(dir, name, out)) return CT_OK;
    return ct_fail(CT_IO, "%s: neither %s nor %s.gz is there; %s", dir, name, name, hint);
}

ct_status ct_data_read(const char *dir, const char *name, const char *hint, ct_path *path,
                       ct_blob *out) {
    CT_TRY(ct_data_find(dir, name, hint, path));
    return ct_file_read(path->text, CT_MAX_DATA_BYTES, out);
}

ct_status ct_data_dir(const ct_dataset *dataset, const ct_dataset_options *options,
                      const char *hint, const char **out) {
    const char *dir = options->dir;
    const ct_dataset_facts *facts = ct_dataset_facts_of(dataset->name);
    if (dir == NULL) dir = facts->place;
    if (dir == NULL && facts->kind == CT_DATA_PUBLISHED)
        return ct_fail(CT_INVAL,
                       "data set %s has no usual place; %s ('crosstalk data get %s' downloads "
                       "it to data/%s)",
                       dataset->name, hint, dataset->name, dataset->name);
    if (dir == NULL)
        return ct_fail(CT_INVAL, "data set %s has no usual place; %s", dataset->name, hint);
    *out = dir;
    return CT_OK;
}

bool ct_data_has(const char *dir, const char *name) {
    ct_path path = ct_path_in(dir, name);
    return ct_file_exists(path.text) || ct_dir_exists(path.text);
}

ct_path ct_data_inner(const char *dir, const char *subdir, const char *name) {
    ct_path inner = ct_path_in(dir, subdir);
    if (!ct_data_exists(dir, name) && ct_data_exists(inner.text, name)) return inner;
    snprintf(inner.text, sizeof inner.text, "%s", dir);
    return inner;
}

bool ct_path_suggests(const char *path, const char *word) {
    size_t n = strlen(path), length = strlen(word);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    for (size_t k = begin; k + length <= n; k++)
        if (strncmp(path + k, word, length) == 0) return true;
    return false;
}
