#include "record/folder.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/checkpoint.h"
#include "record/file.h"
#include "record/record.h"
#include "util/memory.h"

/* ---- names ---- */

bool ct_record_parse_pair(const char *field, double pair[2]) {
    char m[64];
    size_t n = strcspn(field, ":");
    snprintf(m, sizeof m, "%.*s", n < sizeof m ? (int)n : 0, field);
    return field[n] == ':' && ct_parse_double(m, &pair[0]) &&
           ct_parse_double(field + n + 1, &pair[1]) && pair[0] >= 0 && pair[1] >= 0;
}

void ct_record_name_pair(double lambda_m, double lambda_d, char *out, size_t size) {
    snprintf(out, size, "m%.9g-d%.9g", lambda_m, lambda_d);
}

void ct_record_name_seed(uint64_t seed, char *out, size_t size) {
    snprintf(out, size, "seed-%" PRIu64, seed);
}

/* ---- which ones there are ---- */

typedef struct walk {
    const char *dir, *seeds;
    bool also_pairs;
    ct_record_visit *visit;
    void *context;
} walk;

static ct_status visit_seed(void *context, const char *field) {
    const walk *w = context;
    char name[32];
    int64_t seed;
    if (!ct_parse_i64(field, &seed)) return CT_OK;
    ct_record_name_seed((uint64_t)seed, name, sizeof name);
    return w->visit(w->context, ct_path_in(w->dir, name).text);
}

static bool are_several(const char *list) {
    return strchr(list, ',') != NULL;
}

static ct_status visit_pair(void *context, const char *field) {
    walk inside = *(const walk *)context;
    char name[64];
    double pair[2];
    if (!ct_record_parse_pair(field, pair)) return CT_OK;
    ct_record_name_pair(pair[0], pair[1], name, sizeof name);
    ct_path dir = ct_path_in(inside.dir, name);
    inside.dir = dir.text;
    if (!are_several(inside.seeds)) return inside.visit(inside.context, dir.text);
    CT_TRY(ct_split(inside.seeds, visit_seed, &inside));
    return inside.also_pairs ? inside.visit(inside.context, dir.text) : CT_OK;
}

/* The directories of a run with these lists: those of the seeds, after them (also_pairs) their
 * pair's. Nothing for a run without. */
static ct_status each_inside(const char *dir, const char *seeds, const char *lambdas,
                             bool also_pairs, ct_record_visit *visit, void *context) {
    walk w = {dir, seeds, also_pairs, visit, context};
    if (lambdas[0] != '\0') return ct_split(lambdas, visit_pair, &w);
    return are_several(seeds) ? ct_split(seeds, visit_seed, &w) : CT_OK;
}

static const char *list_of(const ct_record *record, const char *name) {
    const char *value = ct_record_option_of(record, name);
    return value != NULL ? value : "";
}

ct_status ct_record_each_world(const char *dir, ct_record_visit *visit, void *context) {
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    CT_TRY(ct_record_load(dir, CT_READ_OPTIONS, &run));
    const char *seeds = list_of(&run, "seeds"), *lambdas = list_of(&run, "lambdas");
    if (lambdas[0] == '\0' && !are_several(seeds)) return visit(context, dir);
    return each_inside(dir, seeds, lambdas, false, visit, context);
}

static ct_status look_for_summary(void *all_have, const char *dir) {
    if (!ct_record_has(dir, CT_FILE_SUMMARY)) *(bool *)all_have = false;
    return CT_OK;
}

ct_status ct_record_is_finished(const char *dir, bool *out) {
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    CT_TRY(ct_record_load(dir, CT_READ_OPTIONS, &run));
    const char *lambdas = list_of(&run, "lambdas");
    *out = lambdas[0] != '\0' || ct_record_has(dir, CT_FILE_SUMMARY);
    return each_inside(dir, list_of(&run, "seeds"), lambdas, true, look_for_summary, out);
}

/* ---- claiming them ---- */

/* In an order that may be cut short anywhere: at first the run is no longer finished, then it has
 * no checkpoint that could miss its metrics, and whose run it was is known to the last. */
static ct_status remove_files(const char *dir, bool also_options) {
    CT_TRY(ct_record_remove(dir, CT_FILE_SUMMARY));
    if (ct_checkpoint_exists(dir)) CT_TRY(ct_checkpoint_remove_all(dir));
    for (int k = CT_N_FILES - 1; k >= 0; k--)
        if (!ct_record_is(k, CT_FILE_IS_FOLDER) && k != CT_FILE_CONFIG)
            CT_TRY(ct_record_remove(dir, k));
    ct_record_clean(dir);
    return also_options ? ct_record_remove(dir, CT_FILE_CONFIG) : CT_OK;
}

/* What ct_file_write would have renamed, or a rank removed. */
static bool is_part(const char *name) {
    if (strncmp(name, CT_RANK_MARK, strlen(CT_RANK_MARK)) == 0) return true;
    for (int k = 0; k < CT_N_FILES; k++) {
        const char *whole = ct_record_name(k);
        size_t n = strlen(whole);
        if (strncmp(name, whole, n) == 0 && strncmp(name + n, ".part-", 6) == 0) return true;
    }
    return false;
}

void ct_record_clean(const char *dir) {
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (is_part(e->d_name)) remove(ct_path_in(dir, e->d_name).text);
    if (d != NULL) closedir(d);
    ct_checkpoint_clean(dir);
}

ct_status ct_record_claim(const char *dir, bool force) {
    CT_TRY(ct_dir_create(dir));
    if (force) return remove_files(dir, true);
    for (int k = 0; k < CT_N_FILES; k++)
        if (!ct_record_is(k, CT_FILE_IS_FOLDER) && ct_record_has(dir, k))
            return ct_fail(CT_IO,
                           "%s is there already; name another @out or replace it with @force",
                           ct_record_path(dir, k).text);
    if (ct_checkpoint_exists(dir))
        return ct_fail(CT_IO,
                       "%s has checkpoints already; go on with @resume %s, name another @out or "
                       "replace it with @force",
                       dir, dir);
    ct_record_clean(dir);
    return CT_OK;
}

ct_status ct_record_begin_again(const char *dir) {
    CT_TRY(ct_dir_create(dir));
    return remove_files(dir, false);
}

ct_status ct_record_remove_all(const char *dir) {
    CT_TRY(remove_files(dir, true));
    rmdir(dir);
    return CT_OK;
}

static ct_status clear_folder(void *keep, const char *dir) {
    int lock = -1;
    if (!ct_dir_exists(dir) || ct_dir_is_same(dir, keep)) return CT_OK;
    if (!ct_dir_lock(dir, &lock)) return CT_OK;
    ct_status status = ct_record_remove_all(dir);
    ct_dir_unlock(&lock);
    return status;
}

ct_status ct_record_clear_inside(const char *dir, const char *keep) {
    CT_SCOPED_BY(ct_record_unload, ct_record) old = {0};
    ct_status status = CT_CATCH(NULL, ct_record_load(dir, CT_READ_OPTIONS, &old));
    if (status != CT_OK) return status == CT_NOMEM ? ct_no_memory(dir) : CT_OK;
    return each_inside(dir, list_of(&old, "seeds"), list_of(&old, "lambdas"), true, clear_folder,
                       (void *)keep);
}

ct_status ct_record_forget(const char *dir) {
    CT_TRY(ct_record_remove(dir, CT_FILE_SUMMARY)); /* first: it says that the run is finished */
    for (int k = 0; k < CT_N_FILES; k++)
        if (ct_record_is(k, CT_FILE_IS_RESULT)) CT_TRY(ct_record_remove(dir, k));
    return CT_OK;
}
