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

ct_status ct_study_next_name(const char *dir, const char *start, const char *ending,
                             char name[256]) {
    char best[256] = "";
    DIR *d = opendir(dir);
    if (d == NULL && errno == ENOMEM) return ct_no_memory(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name), n_end = strlen(ending);
        bool fits = n > n_end && strcmp(e->d_name + n - n_end, ending) == 0 &&
                    strncmp(e->d_name, start, strlen(start)) == 0;
        if (!fits || e->d_name[0] == '.') continue;
        e->d_name[n - n_end] = '\0';
        if (strcmp(e->d_name, name) > 0 && (best[0] == '\0' || strcmp(e->d_name, best) < 0))
            snprintf(best, sizeof best, "%s", e->d_name);
    }
    if (d != NULL) closedir(d);
    memcpy(name, best, sizeof best);
    return CT_OK;
}

const char *ct_study_dir_name(const ct_path *path) {
    const char *slash = strrchr(path->text, '/');
    return slash != NULL ? slash + 1 : path->text;
}

ct_status ct_study_next_dir(const char *dir, const char *start, ct_path *path) {
    char name[256];
    snprintf(name, sizeof name, "%.255s", ct_study_dir_name(path));
    do {
        CT_TRY(ct_study_next_name(dir, start, "", name));
        *path = name[0] != '\0' ? ct_path_in(dir, name) : (ct_path){""};
    } while (name[0] != '\0' && !ct_dir_exists(path->text));
    return CT_OK;
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

ct_status ct_study_open(const char *name, ct_study *out) {
    char dir[2 * CT_CONFIG_TEXT], path[3 * CT_CONFIG_TEXT];
    size_t n = strlen(name);
    bool is_path = strchr(name, '/') != NULL || (n > 5 && strcmp(name + n - 5, ".conf") == 0);
    if (is_path) return read_study(name, out);
    for (int k = 0; k < N_PLACES; k++) {
        place(k, dir, sizeof dir);
        snprintf(path, sizeof path, "%s/%s.conf", dir, name);
        if (dir[0] != '\0' && ct_file_exists(path)) return read_study(path, out);
    }
    return ct_fail(CT_INVAL,
                   "no experiment '%s'; crosstalk reproduce list names them, or give the "
                   "path of a .conf file",
                   name);
}

/* The one after `name`, wherever it lies; "": there is none. */
static ct_status next_study(char name[256]) {
    char dir[2 * CT_CONFIG_TEXT], best[256] = "";
    for (int k = 0; k < N_PLACES; k++) {
        char next[256];
        memcpy(next, name, sizeof next);
        place(k, dir, sizeof dir);
        CT_TRY(ct_study_next_name(dir, "", ".conf", next));
        bool is_first = best[0] == '\0' || strcmp(next, best) < 0;
        if (next[0] != '\0' && is_first) memcpy(best, next, sizeof best);
    }
    memcpy(name, best, sizeof best);
    return CT_OK;
}

ct_status ct_study_list(FILE *out) {
    char name[256] = "";
    int n = 0;
    for (;; n++) {
        CT_TRY(next_study(name));
        if (name[0] == '\0') break;
        CT_SCOPED(ct_study) study = {0};
        CT_TRY(ct_study_open(name, &study));
        ct_show(out, "%-20s %s\n", study.name, study.title);
    }
    if (n > 0) return CT_OK;
    return ct_fail(CT_IO, "no experiments found: neither experiments/ here nor where the program "
                          "lies; CROSSTALK_EXPERIMENTS names another directory");
}
