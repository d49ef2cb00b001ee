/* Where the studies that came with the program lie: experiments/ in the working directory, beside
 * the program's build directory, or in the share directory it was installed with. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study/study.h"
#include "util/file.h"
#include "util/memory.h"

#define MAX_FILE ((size_t)1 << 20)

enum { N_PLACES = 4, MAX_NAMES = 512 };

/* The directory of the running program; "" where the system does not tell. */
static void program_dir(char *out, size_t size) {
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash != NULL) *slash = '\0';
}

/* The k-th place to look in. */
static void place(int k, char *out, size_t size) {
    char program[CT_CONFIG_TEXT];
    const char *chosen = getenv("CROSSTALK_EXPERIMENTS");
    program_dir(program, sizeof program);
    switch (k) {
    case 0: snprintf(out, size, "%s", chosen != NULL ? chosen : ""); break;
    case 1: snprintf(out, size, "experiments"); break;
    case 2: snprintf(out, size, "%s/../experiments", program); break;
    default: snprintf(out, size, "%s/../share/crosstalk/experiments", program); break;
    }
}

static ct_status read_study(const char *path, ct_study *out) {
    ct_blob blob = {0};
    CT_TRY(ct_file_read(path, MAX_FILE, &blob));
    ct_status status = strlen((const char *)blob.bytes) == blob.n
                           ? ct_study_parse(path, (const char *)blob.bytes, out)
                           : ct_fail(CT_IO, "%s: not a text file", path);
    ct_blob_free(&blob);
    return status;
}

ct_status ct_study_open(const char *name, ct_study *out) {
    char dir[2 * CT_CONFIG_TEXT], path[3 * CT_CONFIG_TEXT];
    size_t n = strlen(name);
    bool is_path = strchr(name, '/') != NULL || (n > 5 && strcmp(name + n - 5, ".conf") == 0);
    if (is_path) return read_study(name, out);
    for (int k = 0; k < N_PLACES; k++) {
        place(k, dir, sizeof dir);
        if (dir[0] == '\0') continue;
        snprintf(path, sizeof path, "%s/%s.conf", dir, name);
        if (ct_file_exists(path)) return read_study(path, out);
    }
    return ct_fail(CT_INVAL,
                   "no experiment '%s'; crosstalk reproduce list names them, or give the "
                   "path of a .conf file",
                   name);
}

typedef struct names {
    char list[MAX_NAMES][CT_STUDY_LABEL];
    int n;
} names;

static void add_name(names *all, const char *file) {
    size_t n = strlen(file);
    if (n < 6 || n - 5 >= CT_STUDY_LABEL || strcmp(file + n - 5, ".conf") != 0) return;
    char name[CT_STUDY_LABEL] = "";
    memcpy(name, file, n - 5);
    name[n - 5] = '\0';
    for (int k = 0; k < all->n; k++)
        if (strcmp(all->list[k], name) == 0) return;
    if (all->n < MAX_NAMES) memcpy(all->list[all->n++], name, sizeof name);
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

ct_status ct_study_list(FILE *out) {
    char dir[2 * CT_CONFIG_TEXT];
    names *all = ct_new(names, 1);
    if (all == NULL) return ct_fail(CT_NOMEM, "no memory for names");
    for (int k = 0; k < N_PLACES; k++) {
        place(k, dir, sizeof dir);
        DIR *d = dir[0] != '\0' ? opendir(dir) : NULL;
        for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) add_name(all, e->d_name);
        if (d != NULL) closedir(d);
    }
    qsort(all->list, (size_t)all->n, sizeof *all->list, by_name);
    ct_status status = CT_OK;
    for (int k = 0; k < all->n && status == CT_OK; k++) {
        ct_study study;
        status = ct_study_open(all->list[k], &study);
        if (status != CT_OK) break;
        fprintf(out, "%-20s %s\n", study.name, study.title);
        ct_study_free(&study);
    }
    if (status == CT_OK && all->n == 0)
        status = ct_fail(CT_IO, "no experiments found: neither experiments/ here nor where the "
                                "program lies; CROSSTALK_EXPERIMENTS names another directory");
    ct_free(all);
    return status;
}
