/* Whether a finished run saw the data that its cell is about. Where data lie does not matter, so
 * that results can be moved and kept beside the program; which they are does. Sets with a name of
 * their own (CIFAR-10) are the same everywhere. The others (any IDX files, a folder of pictures)
 * are told by what a run has written down: the last part of the path they came from, and the hash
 * of their split, which follows from the labels. A folder with another name may be other data even
 * if its labels are alike (the same pictures, blurred): a refusal costs less than a table of
 * something else. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run.h"
#include "study/study_internal.h"
#include "util/file.h"

static bool is_one_of(const char *name, const char *const *list) {
    while (*list != NULL && strcmp(*list, name) != 0) list++;
    return *list != NULL;
}

/* The last part of a path; "" where it has no name (".", "/"). */
static void last_part(const char *path, char *out, size_t size) {
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] == '/') n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    snprintf(out, size, "%.*s", (int)(n - begin), path + begin);
    if (strcmp(out, ".") == 0 || strcmp(out, "..") == 0) out[0] = '\0';
}

/* One is the other, or that with something behind it: imagenette, imagenette-160. */
static bool are_alike(const char *a, const char *b) {
    size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    const char *more = strlen(a) > n ? a + n : b + n;
    return strncmp(a, b, n) == 0 && !isalnum((unsigned char)*more);
}

/* The cell's data, as it was opened for a cell before or is now; false: it cannot be. */
static bool open_data(const ct_cell *cell, ct_study_data *data) {
    const ct_config *c = &cell->config;
    char key[sizeof data->key];
    snprintf(key, sizeof key, "%s %lld %g %s", c->dataset, (long long)c->train_samples,
             c->test_fraction, c->data_dir);
    if (strcmp(key, data->key) == 0) return data->is_open;
    ct_study_data_free(data);
    memcpy(data->key, key, sizeof key);
    data->is_open = CT_CATCH(NULL, ct_run_open_data(c, 0, &data->set)) == CT_OK;
    return data->is_open;
}

void ct_study_data_free(ct_study_data *data) {
    if (data->is_open) ct_dataset_free(&data->set);
    *data = (ct_study_data){.is_open = false};
}

/* The split of the first seed is not the one that was saved. */
static bool is_split_otherwise(const ct_cell *cell, const ct_json *summary) {
    const ct_json *partition = ct_json_get(summary, "partition");
    const ct_json *saved = partition != NULL ? ct_json_get(partition, "hash") : NULL;
    const ct_config *c = &cell->config;
    ct_partition split = {0};
    ct_partition_facts facts = {0};
    if (saved == NULL || saved->kind != CT_JSON_STRING || cell->data == NULL) return false;
    if (!open_data(cell, cell->data)) return false;
    const ct_dataset *set = &cell->data->set;
    uint64_t seed = c->seeds[0] != '\0' ? strtoull(c->seeds, NULL, 10) : (uint64_t)c->seed;
    if (CT_CATCH(NULL, ct_run_partition(c, set, seed, &split)) != CT_OK) return false;
    ct_partition_measure(&split, set->train.labels, set->n_classes, NULL, &facts);
    ct_partition_free(&split);
    return strtoull(saved->string, NULL, 16) != facts.hash;
}

bool ct_cell_has_other_data(const ct_cell *cell, const ct_json *summary, const char **source) {
    static const char *const unnamed[] = {"idx", "npy", "folder", "pack", NULL};
    static const char *const quick[] = {"idx", "npy", NULL}; /* to open */
    const ct_config *c = &cell->config;
    const ct_json *saved = ct_json_get(summary, "data_source");
    char then[256], now[256];
    if (saved == NULL || saved->kind != CT_JSON_STRING || c->data_dir[0] == '\0') return false;
    *source = saved->string;
    if (!is_one_of(c->dataset, unnamed) || strstr(c->data_dir, "%r") != NULL) return false;
    if (strcmp(saved->string, c->data_dir) == 0 || ct_dir_is_same(saved->string, c->data_dir))
        return false;
    last_part(saved->string, then, sizeof then);
    last_part(c->data_dir, now, sizeof now);
    if (then[0] != '\0' && now[0] != '\0' && !are_alike(then, now)) return true;
    return is_one_of(c->dataset, quick) && is_split_otherwise(cell, summary);
}
