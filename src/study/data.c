/* Whether a finished run saw the data that its cell is about. Where data lie does not matter, so
 * that results can be moved and kept beside the program; which they are does. Sets with a name of
 * their own (CIFAR-10) are the same everywhere. Of the others (any IDX files, a folder of pictures)
 * a run has written down the fingerprint, which decides where the cell's can be read in no time.
 * Else the last part of the path they came from does: a folder with another name may be other data
 * (the same pictures, blurred), and a refusal costs less than a table of something else. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run.h"
#include "study/study_internal.h"
#include "util/file.h"

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

/* Of the cell's data, as it was opened for a cell before or is now; 0: it cannot be. */
static ct_status find_fingerprint(const ct_cell *cell, uint64_t *out) {
    const ct_config *c = &cell->resolved;
    ct_study_data *data = cell->data;
    char key[sizeof data->key];
    snprintf(key, sizeof key, "%s %lld %lld %g %s", c->dataset, (long long)c->train_samples,
             (long long)c->test_samples, c->test_fraction, c->data_dir);
    if (strcmp(key, data->key) != 0) {
        CT_SCOPED(ct_dataset) set = {0};
        ct_error error;
        ct_status status = CT_CATCH(&error, ct_run_open_data(c, 0, &set));
        if (status == CT_NOMEM) return ct_fail_again(&error);
        memcpy(data->key, key, sizeof key);
        data->fingerprint = status == CT_OK ? ct_dataset_fingerprint(&set) : 0;
    }
    *out = data->fingerprint;
    return CT_OK;
}

/* What the run has written down; 0: nothing. */
static uint64_t saved_fingerprint(const ct_json *summary) {
    const ct_json *identity = ct_json_get(summary, "identity");
    const ct_json *saved = identity != NULL ? ct_json_get(identity, "data") : NULL;
    return saved != NULL && saved->kind == CT_JSON_STRING ? strtoull(saved->string, NULL, 16) : 0;
}

ct_status ct_cell_find_other_data(const ct_cell *cell, const ct_json *summary,
                                  const char **source) {
    const ct_config *c = &cell->resolved;
    const ct_dataset_facts *facts = ct_dataset_facts_of(c->dataset);
    const ct_json *saved = ct_json_get(summary, "data_source");
    char then[256], now[256];
    *source = NULL;
    if (saved == NULL || saved->kind != CT_JSON_STRING || c->data_dir[0] == '\0') return CT_OK;
    if (facts == NULL || facts->kind < CT_DATA_OWN_ARRAYS) return CT_OK;
    if (strstr(c->data_dir, "%r") != NULL) return CT_OK; /* a part for every rank */
    uint64_t theirs = facts->kind == CT_DATA_OWN_ARRAYS ? saved_fingerprint(summary) : 0, ours = 0;
    if (theirs != 0) CT_TRY(find_fingerprint(cell, &ours));
    last_part(saved->string, then, sizeof then);
    last_part(c->data_dir, now, sizeof now);
    bool is_other = ours != 0 ? ours != theirs
                              : !ct_dir_is_same(saved->string, c->data_dir) && then[0] != '\0' &&
                                    now[0] != '\0' && !are_alike(then, now);
    if (is_other) *source = saved->string;
    return CT_OK;
}
