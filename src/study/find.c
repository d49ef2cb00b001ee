/* Where the studies that came with the program lie: experiments/ in the working directory, beside
 * the program's build directory, or in the share directory it was installed with. And the
 * directories of runs. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study/study_internal.h"
#include "util/file.h"
#include "util/show.h"

enum { N_PLACES = 4, RUN_DEPTH = 4 /* shared/pair/seed/checkpoint/iteration */ };

/* ---- directories ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

ct_status ct_study_list_names(const char *dir, const char *start, const char *ending,
                              ct_name_list *out) {
    ct_status status = CT_OK;
    DIR *d = opendir(dir);
    if (d == NULL && errno == ENOMEM) return ct_no_memory(dir);
    for (struct dirent *e; d != NULL && status == CT_OK && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name), n_end = strlen(ending);
        bool fits = e->d_name[0] != '.' && n > n_end &&
                    strcmp(e->d_name + n - n_end, ending) == 0 &&
                    strncmp(e->d_name, start, strlen(start)) == 0;
        if (!fits) continue;
        e->d_name[n - n_end] = '\0';
        status = ct_name_list_add(out, e->d_name);
    }
    if (d != NULL) closedir(d);
    if (out->n > 0) qsort(out->name, (size_t)out->n, sizeof *out->name, by_name);
    return status;
}

static void remove_dir(const char *dir, int depth) {
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        ct_path path = ct_path_in(dir, e->d_name);
        if (unlink(path.text) != 0 && depth > 0) remove_dir(path.text, depth - 1);
    }
    if (d != NULL) closedir(d);
    rmdir(dir);
}

void ct_study_remove_dir(const char *dir) {
    remove_dir(dir, RUN_DEPTH);
}

/* ---- studies ---- */

/* The k-th place to look in; "": the system does not tell. */
static void place(int k, char *out, size_t size) {
    char program[CT_CONFIG_TEXT];
    const char *chosen = getenv("CROSSTALK_EXPERIMENTS");
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash != NULL) *slash = '\0';
    switch (k) {
    case 0: snprintf(out, size, "%s", chosen != NULL ? chosen : ""); break;
    case 1: snprintf(out, size, "experiments"); break;
    case 2: snprintf(out, size, "%s/../experiments", program); break;
    default: snprintf(out, size, "%s/../share/crosstalk/experiments", program); break;
    }
}

static ct_status read_study(const char *path, ct_study *out) {
    CT_SCOPED(ct_blob) blob = {0};
    CT_TRY(ct_file_read(path, CT_MAX_TEXT_BYTES, &blob));
    if (strlen((const char *)blob.bytes) != blob.n)
        return ct_fail(CT_IO, "%s: not a text file", path);
    return ct_study_parse(path, (const char *)blob.bytes, out);
}

/* Looks in every place; false: there is none of this name. */
static ct_status open_named(const char *name, ct_study *out, bool *is_there) {
    char dir[2 * CT_CONFIG_TEXT], path[3 * CT_CONFIG_TEXT];
    *is_there = false;
    for (int k = 0; k < N_PLACES && !*is_there; k++) {
        place(k, dir, sizeof dir);
        snprintf(path, sizeof path, "%s/%s.conf", dir, name);
        *is_there = dir[0] != '\0' && ct_file_exists(path);
    }
    return *is_there ? read_study(path, out) : CT_OK;
}

/* All that there are, in order; some perhaps twice. */
static ct_status list_studies(ct_name_list *names) {
    char dir[2 * CT_CONFIG_TEXT];
    for (int k = 0; k < N_PLACES; k++) {
        place(k, dir, sizeof dir);
        CT_TRY(ct_study_list_names(dir, "", ".conf", names));
    }
    return CT_OK;
}

static ct_status refuse_name(const char *name) {
    CT_SCOPED(ct_name_list) names = {0};
    ct_guess guess = {.word = name};
    CT_TRY(list_studies(&names));
    for (int k = 0; k < names.n; k++) ct_guess_try(&guess, names.name[k]);
    bool is_near = guess.nearest[0] != '\0';
    return ct_fail(CT_INVAL,
                   "no experiment '%s'; %s%s%scrosstalk reproduce list names them, or give the "
                   "path of a .conf file",
                   name, is_near ? "did you mean " : "", guess.nearest, is_near ? "? " : "");
}

ct_status ct_study_open(const char *name, ct_study *out) {
    char dashed[128];
    bool is_there;
    size_t n = strlen(name);
    bool is_path = strchr(name, '/') != NULL || (n > 5 && strcmp(name + n - 5, ".conf") == 0);
    if (is_path) return read_study(name, out);
    CT_TRY(open_named(name, out, &is_there));
    if (is_there) return CT_OK;
    snprintf(dashed, sizeof dashed, "%s", name); /* figure_ring is what figure-ring was called */
    for (char *c = dashed; (c = strchr(c, '_')) != NULL;) *c = '-';
    CT_TRY(open_named(dashed, out, &is_there));
    if (is_there) return CT_OK;
    return refuse_name(name);
}

ct_status ct_study_list(FILE *out) {
    CT_SCOPED(ct_name_list) names = {0};
    CT_TRY(list_studies(&names));
    for (int k = 0; k < names.n; k++) {
        CT_SCOPED(ct_study) study = {0};
        if (k > 0 && strcmp(names.name[k], names.name[k - 1]) == 0) continue;
        CT_TRY(ct_study_open(names.name[k], &study));
        ct_show(out, "%-20s %s\n", study.name, study.title);
    }
    if (names.n > 0) return CT_OK;
    return ct_fail(CT_IO, "no experiments found: neither experiments/ here nor where the program "
                          "lies; CROSSTALK_EXPERIMENTS names another directory");
}
