#include "record/find.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "record/bundle.h"
#include "record/record_internal.h"
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

typedef struct search {
    const ct_folder *root;
    ct_name_list *runs, *complaints; /* without complaints, the first one ends it */
    const ct_folder *dir;            /* which is looked into */
    ct_name_list next;               /* directories to look into after this level's */
} search;

static ct_status complain(const search *s, ct_status status, const ct_error *error) {
    if (status != CT_IO || s->complaints == NULL) return ct_fail_again(error);
    return ct_name_list_add(s->complaints, error->text);
}

static ct_status add_inside(void *context, const char *name) {
    search *s = context;
    struct stat what;
    if (strcmp(name, ct_record_name(CT_FILE_CHECKPOINT)) == 0) return CT_OK;
    if (!ct_folder_stat(s->dir, name, &what)) return CT_OK; /* gone meanwhile */
    ct_path path = ct_path_in(s->dir->path, name);
    if (S_ISDIR(what.st_mode)) return ct_name_list_add(&s->next, path.text);
    if (!S_ISLNK(what.st_mode)) return CT_OK; /* it never is where links are followed */
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "%s: " CT_LINK_REFUSED, path.text);
    CT_TRY(ct_text_status(&text));
    return ct_name_list_add(s->complaints, text.chars);
}

static bool has(const ct_folder *dir, ct_record_file file) {
    struct stat what;
    return ct_folder_stat(dir, ct_record_name(file), &what) && ct_folder_is_file(&what);
}

static void sort(ct_name_list *list, int from) {
    if (list->n > from)
        qsort(list->name + from, (size_t)(list->n - from), sizeof *list->name, compare_names);
}

/* Is it this name, or below it? */
static bool is_below(const char *name, const char *above) {
    return ct_folder_name(&(ct_folder){.path = above}, name) != NULL;
}

/* Runs of the bundle `file` in a folder, all or those below one: whatever has none below it, and
 * no directory of its own. `path` comes before their names. */
static ct_status add_bundled(search *s, const ct_folder *dir, const char *file, const char *below,
                             const char *path) {
    CT_SCOPED(ct_name_list) names = {0};
    CT_TRY(ct_bundle_list(dir, file, &names));
    for (int k = 0; k < names.n; k++) {
        CT_SCOPED_BY(ct_folder_close, ct_folder) own = CT_NO_FOLDER;
        ct_path run = ct_path_in(path, names.name[k]);
        bool is_leaf = k + 1 == names.n || !is_below(names.name[k + 1], names.name[k]);
        if (!is_leaf || (below != NULL && !is_below(names.name[k], below))) continue;
        CT_TRY(ct_folder_open(s->root, run.text, &own));
        if (own.fd < 0) CT_TRY(ct_name_list_add(s->runs, run.text));
    }
    return CT_OK;
}

/* What has metrics is a run, other folders are looked into. One that has options but neither
 * metrics nor runs inside is a run that has just begun. */
static ct_status look_into(search *s, const char *path, bool is_deepest) {
    CT_SCOPED_BY(ct_folder_close, ct_folder) dir = CT_NO_FOLDER;
    int n_before = s->next.n;
    CT_TRY(ct_folder_open(s->root, path, &dir));
    if (dir.fd < 0) return CT_OK;
    bool is_run = has(&dir, CT_FILE_METRICS);
    s->dir = &dir;
    if (!is_run) CT_TRY(add_bundled(s, &dir, CT_BUNDLE_NAME, NULL, path));
    if (!is_run && !is_deepest) CT_TRY(ct_folder_list(&dir, add_inside, s));
    sort(&s->next, n_before);
    if (s->next.n == n_before && has(&dir, CT_FILE_CONFIG)) is_run = true;
    return is_run ? ct_name_list_add(s->runs, path) : CT_OK;
}

/* Level by level. */
static ct_status look_below(search *s, const char *dir) {
    CT_SCOPED(ct_name_list) level = {0};
    CT_TRY(ct_name_list_add(&level, dir));
    for (int depth = 0; depth <= LEVELS && level.n > 0; depth++) {
        for (int k = 0; k < level.n; k++) {
            ct_error error;
            ct_status status = CT_CATCH(&error, look_into(s, level.name[k], depth == LEVELS));
            if (status != CT_OK) CT_TRY(complain(s, status, &error));
        }
        ct_name_list_free(&level);
        ct_move(&level, &s->next);
    }
    return CT_OK;
}

static ct_status find_all(search s, const char *dir) {
    int n_before = s.runs->n;
    ct_status status = look_below(&s, dir);
    ct_name_list_free(&s.next);
    sort(s.runs, n_before);
    return status;
}

/* A bundle or a metrics file. */
static ct_status find_in_file(const char *name, ct_name_list *out) {
    CT_SCOPED_BY(ct_folder_close, ct_folder) dir = CT_NO_FOLDER;
    bool is_bundle;
    CT_TRY(ct_bundle_is(name, &is_bundle));
    if (!is_bundle) return ct_name_list_add(out, name);
    ct_path folder = ct_path_dir(name);
    const char *slash = strrchr(name, '/'), *file = slash != NULL ? slash + 1 : name;
    CT_TRY(ct_folder_open(NULL, folder.text, &dir));
    return add_bundled(&(search){.runs = out}, &dir, file, NULL, name);
}

/* A run that is in a bundle, or what is below it there. */
static ct_status find_bundled(const char *name, ct_name_list *out) {
    CT_SCOPED_BY(ct_bundled_close, ct_bundled) b = CT_NOT_BUNDLED;
    CT_TRY(ct_bundle_locate(NULL, name, &b));
    ct_path path = ct_path_in("", name); /* as far as the bundle's names begin */
    size_t n = strlen(name), n_name = strlen(b.name.text);
    while (n > 1 && name[n - 1] == '/') n--;
    path.text[n > n_name ? n - n_name - 1 : 0] = '\0';
    if (!b.is_there) return CT_OK;
    return add_bundled(&(search){.runs = out}, &b.folder, b.file.text, b.name.text, path.text);
}

ct_status ct_record_find(const char *name, ct_name_list *out) {
    struct stat what;
    int n_before = out->n;
    if (stat(name, &what) != 0) {
        int reason = errno;
        CT_TRY(find_bundled(name, out));
        sort(out, n_before);
        return out->n > n_before ? CT_OK : ct_fail(CT_IO, "%s: %s", name, strerror(reason));
    }
    if (S_ISREG(what.st_mode)) {
        CT_TRY(find_in_file(name, out));
        sort(out, n_before);
        return CT_OK;
    }
    if (!S_ISDIR(what.st_mode)) return ct_fail(CT_IO, "%s: not a plain file", name);
    CT_TRY(find_all((search){.runs = out}, name));
    if (out->n > n_before) return CT_OK;
    return ct_fail(CT_IO, "%s: no run here, nor up to two levels below (a run has a %s and a %s)",
                   name, ct_record_name(CT_FILE_CONFIG), ct_record_name(CT_FILE_METRICS));
}

ct_status ct_record_find_in(const ct_folder *root, ct_name_list *out, ct_name_list *complaints) {
    return find_all((search){.root = root, .runs = out, .complaints = complaints}, root->path);
}
