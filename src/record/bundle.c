#include "record/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/folder.h"
#include "record/record_internal.h"
#include "util/memory.h"

#define VERSION 1
#define LEVELS  3 /* as deep as runs are looked for (find.c) */

/* ---- its lines ---- */

/* What a page may need; ledgers, events and what is heavy stay behind. */
static bool is_kept(ct_record_file file) {
    return ct_record_is(file, CT_FILE_IS_KEPT);
}

static bool is_kept_name(const char *name) {
    for (int k = 0; k < CT_N_FILES; k++)
        if (is_kept(k) && strcmp(name, ct_record_name(k)) == 0) return true;
    return false;
}

/* It stays below the folder, and is written in one way only. */
static bool is_run_name(const char *name) {
    int level = 0;
    for (const char *at = name;; at++, level++) {
        size_t n = strcspn(at, "/");
        if (n == 0 || at[0] == '.' || level == LEVELS) return false;
        at += n;
        if (*at == '\0') return true;
    }
}

static ct_status check_header(const char *where, const char *line, double *n) {
    CT_SCOPED_HANDLE(ct_json) header = NULL;
    if (CT_CATCH(NULL, ct_json_parse(line, strlen(line), where, &header)) == CT_NOMEM)
        return ct_no_memory(where);
    const ct_json *kind = header != NULL ? ct_json_get(header, "crosstalk") : NULL;
    bool is_bundle =
        kind != NULL && kind->kind == CT_JSON_STRING && strcmp(kind->string, "runs") == 0;
    if (!is_bundle) return ct_fail(CT_IO, "%s: this is no bundle of runs", where);
    double version = ct_json_number(header, "version");
    if (version != VERSION)
        return ct_fail(CT_IO, "%s: a bundle of version %g; this program reads version %d", where,
                       version, VERSION);
    *n = ct_json_number(header, "n");
    if (*n >= 0 && *n <= CT_MAX_BUNDLE_RUNS) return CT_OK;
    return ct_fail(CT_IO, "%s: %g runs, where 0 to %d are allowed", where, *n, CT_MAX_BUNDLE_RUNS);
}

/* A line's run: its name comes first, the texts of its files follow. */
static ct_status parse_line(const char *where, const char *line, ct_json **out) {
    CT_SCOPED_HANDLE(ct_json) run = NULL;
    CT_TRY(ct_json_parse(line, strlen(line), where, &run));
    const ct_json *name = run->kind == CT_JSON_OBJECT ? run->child : NULL;
    if (name == NULL || name->kind != CT_JSON_STRING || strcmp(name->key, "run") != 0)
        return ct_fail(CT_IO, "%s: a run's name should come first", where);
    if (!is_run_name(name->string))
        return ct_fail(CT_IO, "%s: '%.80s' cannot be a run's name", where, name->string);
    for (const ct_json *file = name->next; file != NULL; file = file->next)
        if (file->kind != CT_JSON_STRING || !is_kept_name(file->key))
            return ct_fail(CT_IO, "%s: '%.80s' is no text of a run", where, file->key);
    ct_move(out, &run);
    return CT_OK;
}

typedef ct_status take_line(void *context, const char *where, const char *line);

/* A cut file is refused wherever it was cut, by zlib or because runs are missing. */
static ct_status each_line(const char *path, const ct_blob *blob, take_line *take, void *context) {
    bool ends_whole = blob->n > 0 && blob->bytes[blob->n - 1] == '\n';
    ct_lines lines = ct_blob_lines(blob);
    double n_runs = 0, n_wanted = 0;
    char where[640];
    char *line = ct_lines_next(&lines);
    CT_TRY(check_header(path, line != NULL ? line : "", &n_wanted));
    if (!ends_whole) return ct_fail(CT_IO, "%s: its last line has no end; was it cut?", path);
    while ((line = ct_lines_next(&lines)) != NULL) {
        if (*line == '\0') continue;
        snprintf(where, sizeof where, "%.600s:%u", path, lines.number);
        if (++n_runs > n_wanted)
            return ct_fail(CT_IO, "%s: more than the %g runs of the first line", where, n_wanted);
        CT_TRY(take(context, where, line));
    }
    if (n_runs == n_wanted) return CT_OK;
    return ct_fail(CT_IO, "%s: %g of its %g runs are missing; was it cut?", path, n_wanted - n_runs,
                   n_wanted);
}

/* What the line of this run begins with. */
static void add_start(const char *name, ct_text *out) {
    ct_text_add(out, "{\"run\":");
    ct_json_add_string(out, name);
}

static bool is_line_of(const char *line, const ct_text *start) {
    return strncmp(line, start->chars, start->n) == 0;
}

/* The order of the lines: a run, what is below it, the next one. */
static int compare_names(const char *a, const char *b) {
    while (*a == *b && *a != '\0') a++, b++;
    int x = *a == '/' ? 1 : (unsigned char)*a, y = *b == '/' ? 1 : (unsigned char)*b;
    return (x > y) - (x < y);
}

/* ---- looking into one ---- */

ct_status ct_bundle_is(const char *path, bool *out) {
    static const char start[] = "{\"crosstalk\":";
    CT_SCOPED(ct_blob) blob = {0};
    ct_status status = CT_CATCH(NULL, ct_file_read(path, CT_MAX_RECORD_BYTES, &blob));
    *out = status == CT_OK && strncmp((char *)blob.bytes, start, sizeof start - 1) == 0;
    return status == CT_NOMEM ? ct_no_memory(path) : CT_OK;
}

static ct_status read_bundle(const ct_folder *folder, const char *file, ct_blob *out) {
    return ct_folder_read(folder, file, CT_MAX_RECORD_BYTES, out);
}

typedef struct listing {
    ct_name_list *names;
    bool of_tuning;
    ct_path before; /* the name of the line before; "": none */
} listing;

/* What was tried for a run that is still to come is nothing to show. */
static bool is_tuning(const ct_json *run) {
    const ct_json *file = run->child->next;
    return file != NULL && file->next == NULL &&
           strcmp(file->key, ct_record_name(CT_FILE_TUNED)) == 0;
}

/* Every line is read, so that nothing that cannot be read is found out later. */
static ct_status list_line(void *context, const char *where, const char *line) {
    listing *l = context;
    CT_SCOPED_HANDLE(ct_json) run = NULL;
    CT_SCOPED(ct_text) start = {0};
    CT_TRY(parse_line(where, line, &run));
    const char *name = run->child->string;
    add_start(name, &start);
    CT_TRY(ct_text_status(&start));
    if (!is_line_of(line, &start))
        return ct_fail(CT_IO, "%s: this line should begin with %s", where, start.chars);
    if (compare_names(l->before.text, name) >= 0)
        return ct_fail(CT_IO, "%s: '%.80s' comes after '%.80s'", where, name, l->before.text);
    l->before = ct_path_in("", name);
    return is_tuning(run) == l->of_tuning ? ct_name_list_add(l->names, name) : CT_OK;
}

static ct_status list_lines(const ct_folder *folder, const char *file, listing *l) {
    CT_SCOPED(ct_blob) blob = {0};
    struct stat what;
    if (!ct_folder_stat(folder, file, &what)) return CT_OK;
    CT_TRY(read_bundle(folder, file, &blob));
    return each_line(ct_path_in(folder->path, file).text, &blob, list_line, l);
}

ct_status ct_bundle_list(const ct_folder *folder, const char *file, ct_name_list *names) {
    return list_lines(folder, file, &(listing){.names = names});
}

ct_status ct_bundle_list_tuning(const ct_folder *folder, const char *file, ct_name_list *names) {
    return list_lines(folder, file, &(listing){.names = names, .of_tuning = true});
}

/* A folder may have what was tried since beside a bundle of what was tried before. */
static bool is_tuning_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, CT_TUNING) == 0;
}

/* The bundle is `path` itself, or lies in it. *is_end: there is no use in looking further up. */
static ct_status look_in(const ct_folder *root, const char *path, ct_bundled *out, bool *is_end) {
    const char *slash = strrchr(path, '/');
    bool is_file = root == NULL && ct_file_exists(path);
    out->dir = is_file ? ct_path_dir(path) : ct_path_in("", path);
    out->file = is_file && slash != NULL ? ct_path_in("", slash + 1)
                                         : ct_path_in("", is_file ? path : CT_BUNDLE_NAME);
    CT_TRY(ct_folder_open(root, out->dir.text, &out->folder));
    *is_end = out->folder.fd >= 0 && !is_tuning_folder(path);
    out->is_there =
        ct_folder_stat(&out->folder, out->file.text, &out->what) && ct_folder_is_file(&out->what);
    return CT_OK;
}

ct_status ct_bundle_locate(const ct_folder *root, const char *path, ct_bundled *out) {
    ct_path at = ct_path_in("", path);
    size_t n = strlen(at.text);
    bool is_end = false;
    while (n > 1 && at.text[n - 1] == '/') at.text[--n] = '\0';
    ct_path whole = at;
    for (int level = 0; level < LEVELS && !is_end; level++) {
        char *slash = strrchr(at.text, '/');
        size_t begin = slash != NULL ? (size_t)(slash - at.text) + 1 : 0;
        at.text[begin > 1 ? begin - 1 : begin] = '\0';
        ct_folder_close(&out->folder);
        CT_TRY(look_in(root, begin > 0 ? at.text : ".", out, &is_end));
        out->name = ct_path_in("", whole.text + begin);
        is_end = is_end || slash == NULL || slash == at.text;
    }
    return CT_OK;
}

/* ---- the one read last ---- */

static _Thread_local ct_bundle_memory *memory;

static void forget(ct_bundle_memory *m) {
    ct_blob_free(&m->blob);
    ct_free(m->lines);
    m->lines = NULL;
    m->n = 0;
}

void ct_bundle_memory_open(ct_bundle_memory *m) {
    *m = (ct_bundle_memory){.before = memory};
    memory = m;
}

void ct_bundle_memory_close(ct_bundle_memory *m) {
    memory = m->before;
    forget(m);
}

static ct_status keep_line(void *context, const char *where, const char *line) {
    ct_bundle_memory *m = context;
    (void)where;
    CT_TRY(ct_extend(&m->lines, (size_t)m->n, "a bundle's lines"));
    m->lines[m->n++] = (char *)line;
    return CT_OK;
}

static bool is_remembered(const struct stat *what) {
    const struct stat *m = &memory->what;
    return memory->n > 0 && m->st_dev == what->st_dev && m->st_ino == what->st_ino &&
           m->st_size == what->st_size && m->st_mtim.tv_sec == what->st_mtim.tv_sec &&
           m->st_mtim.tv_nsec == what->st_mtim.tv_nsec;
}

static ct_status remember(const ct_bundled *b) {
    if (is_remembered(&b->what)) return CT_OK;
    forget(memory);
    memory->what = b->what;
    CT_TRY(read_bundle(&b->folder, b->file.text, &memory->blob));
    ct_error error;
    ct_path path = ct_path_in(b->dir.text, b->file.text);
    if (CT_CATCH(&error, each_line(path.text, &memory->blob, keep_line, memory)) == CT_OK)
        return CT_OK;
    forget(memory);
    return ct_fail_again(&error);
}

/* ---- a run of one ---- */

typedef struct pick {
    ct_text run, above; /* what their lines begin with */
    ct_bundled *out;
} pick;

static ct_status pick_line(void *context, const char *where, const char *line) {
    const pick *p = context;
    bool is_run = is_line_of(line, &p->run), is_above = p->above.n > 0;
    if (!is_run && !(is_above && is_line_of(line, &p->above))) return CT_OK;
    ct_json **out = is_run ? &p->out->run : &p->out->above;
    ct_json_free(out); /* the last one counts, should there be several */
    return parse_line(where, line, out);
}

static ct_status pick_lines(const pick *p, ct_bundled *b) {
    CT_SCOPED(ct_blob) blob = {0};
    ct_path path = ct_path_in(b->dir.text, b->file.text);
    CT_TRY(ct_text_status(&p->run));
    CT_TRY(ct_text_status(&p->above));
    if (memory != NULL) {
        CT_TRY(remember(b));
        for (int k = 0; k < memory->n; k++)
            CT_TRY(pick_line((void *)p, path.text, memory->lines[k]));
        return CT_OK;
    }
    CT_TRY(read_bundle(&b->folder, b->file.text, &blob));
    return each_line(path.text, &blob, pick_line, (void *)p);
}

ct_status ct_bundle_read(ct_bundled *b) {
    pick p = {.out = b};
    ct_path above = b->name;
    char *slash = strrchr(above.text, '/');
    if (!b->is_there) return CT_OK;
    add_start(b->name.text, &p.run);
    if (slash != NULL) *slash = '\0';
    if (slash != NULL) add_start(above.text, &p.above);
    ct_status status = pick_lines(&p, b);
    ct_text_free(&p.run);
    ct_text_free(&p.above);
    return status;
}

void ct_bundled_close(ct_bundled *b) {
    ct_folder_close(&b->folder);
    ct_json_free(&b->run);
    ct_json_free(&b->above);
}

/* ---- writing one ---- */

static int by_name(const void *a, const void *b) {
    return compare_names(*(char *const *)a, *(char *const *)b);
}

/* A run's name and those of the directories above it, which may have a summary of their own. */
static ct_status add_names(const char *name, ct_name_list *out) {
    ct_path at = ct_path_in("", name);
    for (char *slash; (slash = strrchr(at.text, '/')) != NULL;) {
        CT_TRY(ct_name_list_add(out, at.text));
        *slash = '\0';
    }
    return ct_name_list_add(out, at.text);
}

/* The text of a file, escaped; what a JSON string cannot have would not come back. */
static ct_status add_file(const char *path, ct_record_file file, ct_text *out) {
    CT_SCOPED(ct_blob) blob = {0};
    CT_TRY(ct_record_read_text(path, file, &blob));
    const char *text = (const char *)blob.bytes;
    size_t n, length = 0;
    for (size_t k = 0; k < blob.n; k += n, length += n)
        if ((n = ct_utf8_length(text + k)) == 0 || text[k] == '\0') break;
    if (length != blob.n)
        return ct_fail(CT_IO, "%s: this is not text", ct_record_path(path, file).text);
    ct_text_add(out, ",\"%s\":", ct_record_name(file));
    ct_json_add_string(out, text);
    return CT_OK;
}

/* A directory without any file of a run has no line. */
static ct_status add_run(const char *folder, const char *name, ct_text *out, int *n_runs) {
    CT_SCOPED(ct_text) line = {0};
    ct_path path = ct_path_in(folder, name);
    bool is_run = false;
    if (!is_run_name(name))
        return ct_fail(CT_INVAL, "%s: no name for a run in a bundle; name its folder from outside",
                       path.text);
    add_start(name, &line);
    for (int k = 0; k < CT_N_FILES; k++) {
        bool is_there = false;
        if (is_kept(k)) CT_TRY(ct_record_holds(path.text, k, &is_there));
        if (is_there) CT_TRY(add_file(path.text, k, &line));
        is_run = is_run || is_there;
    }
    CT_TRY(ct_text_status(&line));
    if (is_run) ct_text_add(out, "%s}\n", line.chars);
    *n_runs += is_run;
    return ct_text_status(out);
}

/* Where the names of the runs begin: a run itself has that of its directory. */
static ct_path choose_folder(const char *dir, bool *is_run) {
    ct_path out = ct_path_in("", dir);
    size_t n = strlen(out.text);
    while (n > 1 && out.text[n - 1] == '/') out.text[--n] = '\0';
    *is_run = ct_record_has(dir, CT_FILE_CONFIG) || ct_record_has(dir, CT_FILE_METRICS);
    return *is_run ? ct_path_dir(out.text) : out;
}

static ct_status add_tuning_inside(void *context, const char *name) {
    ct_path run = ct_path_in(CT_TUNING, name);
    return ct_name_list_add(context, run.text);
}

/* What was tried for runs that are still to come; the others have it themselves. */
static ct_status find_tuning(const char *dir, ct_name_list *out) {
    CT_SCOPED_BY(ct_folder_close, ct_folder) folder = CT_NO_FOLDER, inside = CT_NO_FOLDER;
    CT_SCOPED(ct_name_list) names = {0};
    CT_TRY(ct_folder_open(NULL, dir, &folder));
    CT_TRY(ct_folder_open(NULL, ct_path_in(dir, CT_TUNING).text, &inside));
    CT_TRY(ct_bundle_list_tuning(&folder, CT_BUNDLE_NAME, &names));
    if (inside.fd >= 0) CT_TRY(ct_folder_list(&inside, add_tuning_inside, &names));
    for (int k = 0; k < names.n; k++) {
        bool is_there, is_with_run;
        const char *run = strrchr(names.name[k], '/');
        ct_path of_run = ct_path_in(dir, run != NULL ? run + 1 : names.name[k]);
        CT_TRY(ct_record_holds(ct_path_in(dir, names.name[k]).text, CT_FILE_TUNED, &is_there));
        CT_TRY(ct_record_holds(of_run.text, CT_FILE_TUNED, &is_with_run));
        if (is_there && !is_with_run) CT_TRY(ct_name_list_add(out, names.name[k]));
    }
    return CT_OK;
}

/* A study may have come to nothing but trials yet. */
static ct_status find_runs(const char *dir, bool may_be_none, ct_name_list *out) {
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_record_find(dir, out));
    if (status == CT_OK || (status == CT_IO && may_be_none)) return CT_OK;
    return ct_fail_again(&error);
}

static ct_status find_names(const char *dir, ct_path *folder, ct_name_list *out) {
    CT_SCOPED(ct_name_list) runs = {0};
    bool is_run;
    *folder = choose_folder(dir, &is_run);
    if (!is_run) CT_TRY(find_tuning(folder->text, out));
    CT_TRY(find_runs(dir, out->n > 0, &runs));
    for (int k = 0; k < runs.n; k++) {
        bool is_bare = strcmp(folder->text, ".") == 0 && runs.name[k][0] != '.';
        const char *name = is_bare
                               ? runs.name[k]
                               : ct_folder_name(&(ct_folder){.path = folder->text}, runs.name[k]);
        CT_TRY(add_names(name != NULL ? name : runs.name[k], out));
    }
    qsort(out->name, (size_t)out->n, sizeof *out->name, by_name);
    return CT_OK;
}

ct_status ct_bundle_write(const char *dir, const char *path, int *n_runs) {
    CT_SCOPED(ct_name_list) names = {0};
    CT_SCOPED(ct_text) lines = {0}, all = {0};
    ct_path folder;
    *n_runs = 0;
    CT_TRY(find_names(dir, &folder, &names));
    for (int k = 0; k < names.n; k++)
        if (k == 0 || strcmp(names.name[k], names.name[k - 1]) != 0)
            CT_TRY(add_run(folder.text, names.name[k], &lines, n_runs));
    if (*n_runs > CT_MAX_BUNDLE_RUNS || lines.n > CT_MAX_RECORD_BYTES)
        return ct_fail(CT_INVAL, "%s: %d runs of %zu bytes are more than a bundle may have", dir,
                       *n_runs, lines.n);
    ct_text_add(&all, "{\"crosstalk\":\"runs\",\"version\":%d,\"n\":%d}\n%s", VERSION, *n_runs,
                lines.n > 0 ? lines.chars : "");
    CT_TRY(ct_text_status(&all));
    return ct_file_write_packed(path, all.chars, all.n);
}

/* ---- as directories again ---- */

typedef struct unpacking {
    const char *name, *to;
    int n_runs;
} unpacking;

static ct_status unpack_line(void *context, const char *where, const char *line) {
    unpacking *u = context;
    CT_SCOPED_HANDLE(ct_json) run = NULL;
    CT_TRY(parse_line(where, line, &run));
    const char *inside = ct_folder_name(&(ct_folder){.path = u->name}, run->child->string);
    if (inside == NULL) return CT_OK;
    ct_path dir = strcmp(inside, ".") == 0 ? ct_path_in("", u->to) : ct_path_in(u->to, inside);
    CT_TRY(ct_dir_create(dir.text));
    for (const ct_json *file = run->child->next; file != NULL; file = file->next)
        CT_TRY(ct_file_write(ct_path_in(dir.text, file->key).text, file->string,
                             strlen(file->string)));
    u->n_runs++;
    return CT_OK;
}

ct_status ct_bundle_unpack(const char *path, const char *to) {
    CT_SCOPED(ct_blob) blob = {0};
    CT_SCOPED_BY(ct_bundled_close, ct_bundled) b = CT_NOT_BUNDLED;
    CT_TRY(ct_bundle_locate(NULL, path, &b));
    unpacking u = {.name = b.name.text, .to = to};
    if (b.is_there) CT_TRY(read_bundle(&b.folder, b.file.text, &blob));
    if (b.is_there)
        CT_TRY(each_line(ct_path_in(b.dir.text, b.file.text).text, &blob, unpack_line, &u));
    return u.n_runs > 0 ? CT_OK : ct_fail(CT_IO, "%s: there is no such run", path);
}
