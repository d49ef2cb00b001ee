#include "record/find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "record/file.h"
#include "util/memory.h"

#define LEVELS 3 /* below the name: a folder of folders of runs with a folder for each seed */

ct_status ct_name_list_add(ct_name_list *list, const char *name) {
    CT_TRY(ct_extend(&list->name, (size_t)list->n, "a name"));
    CT_TRY(ct_make_text(&list->name[list->n], name));
    list->n++;
    return CT_OK;
}

void ct_name_list_free(ct_name_list *list) {
    for (int k = 0; k < list->n; k++) ct_free(list->name[k]);
    ct_free(list->name);
    *list = (ct_name_list){0};
}

/* Numbers inside names count as numbers: seed-2 comes before seed-10; what follows a point is a
 * fraction: alpha-0.01 comes before alpha-0.1. */
static int compare_names(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    bool in_fraction = false;
    while (*x != '\0' && *y != '\0') {
        bool are_digits = isdigit((unsigned char)*x) && isdigit((unsigned char)*y);
        if (are_digits && !in_fraction) {
            char *x_end, *y_end;
            unsigned long long m = strtoull(x, &x_end, 10), n = strtoull(y, &y_end, 10);
            if (m != n) return m < n ? -1 : 1;
            x = x_end;
            y = y_end;
        } else {
            if (*x != *y) return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
            in_fraction = are_digits || *x == '.';
            x++;
            y++;
        }
    }
    if (*x == *y) return strcmp(*(char *const *)a, *(char *const *)b); /* 7 and 07 */
    return *x == '\0' ? -1 : 1;
}

/* Directories inside `dir`, sorted, behind what the list has. */
static ct_status add_inside(const char *dir, ct_name_list *out) {
    int n_before = out->n;
    ct_status status = CT_OK;
    DIR *d = opendir(dir);
    if (d == NULL) return ct_fail(CT_IO, "%s: %s", dir, strerror(errno));
    for (struct dirent *e; status == CT_OK && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, ct_record_name(CT_FILE_CHECKPOINT)) == 0)
            continue;
        ct_path path = ct_path_in(dir, e->d_name);
        if (ct_dir_exists(path.text)) status = ct_name_list_add(out, path.text);
    }
    closedir(d);
    if (out->n > n_before)
        qsort(out->name + n_before, (size_t)(out->n - n_before), sizeof *out->name, compare_names);
    return status;
}

/* Level by level: what has metrics is a run, other folders are looked into. One that has options
 * but neither metrics nor runs inside is a run that has just begun. */
static ct_status search(const char *dir, ct_name_list *out) {
    ct_name_list level = {0}, next = {0};
    ct_status status = ct_name_list_add(&level, dir);
    for (int depth = 0; depth <= LEVELS && status == CT_OK && level.n > 0; depth++) {
        for (int k = 0; k < level.n && status == CT_OK; k++) {
            int n_before = next.n;
            bool is_run = ct_record_has(level.name[k], CT_FILE_METRICS);
            if (!is_run && depth < LEVELS) status = add_inside(level.name[k], &next);
            if (next.n == n_before && ct_record_has(level.name[k], CT_FILE_CONFIG)) is_run = true;
            if (is_run && status == CT_OK) status = ct_name_list_add(out, level.name[k]);
        }
        ct_name_list_free(&level);
        level = next;
        next = (ct_name_list){0};
    }
    ct_name_list_free(&level);
    return status;
}

ct_status ct_record_find(const char *name, ct_name_list *out) {
    struct stat what;
    if (stat(name, &what) != 0) return ct_fail(CT_IO, "%s: %s", name, strerror(errno));
    if (S_ISREG(what.st_mode)) return ct_name_list_add(out, name);
    if (!S_ISDIR(what.st_mode)) return ct_fail(CT_IO, "%s: not a plain file", name);
    int n_before = out->n;
    CT_TRY(search(name, out));
    if (out->n == n_before)
        return ct_fail(CT_IO,
                       "%s: no run here, nor up to two levels below (a run has a %s and a %s)",
                       name, ct_record_name(CT_FILE_CONFIG), ct_record_name(CT_FILE_METRICS));
    qsort(out->name + n_before, (size_t)(out->n - n_before), sizeof *out->name, compare_names);
    return CT_OK;
}
