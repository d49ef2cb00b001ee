/* What stays of a finished run: its options, its summary, and some forty lines of its metrics. So
 * the results of all studies together are small enough to be kept beside the program, and say
 * nothing of the machine that made them. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "run/checkpoint.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/memory.h"

#define KEPT_LINES 40          /* of metrics.jsonl, besides those of evaluations */
#define MAX_SIDE   (20 * 1024) /* bytes that setting.json and evaluation.json may have */
#define MAX_FILE   ((size_t)1 << 30)

static const char model_file[] = "consensus.safetensors";

static ct_status no_memory(void) {
    return ct_fail(CT_NOMEM, "no memory for what stays of a run");
}

/* ---- metrics.jsonl ---- */

/* Members that are null are left out: to all readers they are the same. */
static void add_rounded(const ct_json *object, ct_text *out) {
    bool is_first = true;
    ct_text_add(out, "{");
    for (const ct_json *m = object->child; m != NULL; m = m->next) {
        if (m->kind != CT_JSON_NUMBER) continue;
        bool is_count = strcmp(m->key, "epoch") == 0 || strcmp(m->key, "iteration") == 0;
        ct_text_add(out, is_first ? "\"%s\":" : ",\"%s\":", m->key);
        ct_text_add(out, is_count ? "%.0f" : "%.6g", m->number);
        is_first = false;
    }
    ct_text_add(out, "}\n");
}

/* Every `step` epochs, whatever was evaluated, the first line and the last. */
static bool is_kept(const ct_json *object, long step, bool is_end) {
    bool is_evaluated = !isnan(ct_json_number(object, "consensus_accuracy"));
    double epoch = ct_json_number(object, "epoch");
    return is_end || is_evaluated || isnan(epoch) || (long)epoch % step == 0;
}

static ct_status thin_lines(const char *path, const char *text, long step, ct_text *out) {
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, "\n");
        const char *next = at + n + (at[n] == '\n');
        ct_json *object = NULL;
        if (n > 0) {
            CT_TRY(ct_json_parse(at, n, path, &object));
            if (is_kept(object, step, at == text || *next == '\0')) add_rounded(object, out);
            ct_json_free(&object);
        }
        at = next;
    }
    return ct_text_status(out);
}

/* The epoch of the last line: the step depends on it alone, so that what is thinned already is left
 * as it is. */
static ct_status last_epoch(const char *path, const char *text, size_t n, double *out) {
    ct_json *object = NULL;
    while (n > 0 && text[n - 1] == '\n') n--;
    size_t begin = n;
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    if (n == begin) return CT_OK;
    CT_TRY(ct_json_parse(text + begin, n - begin, path, &object));
    *out = ct_json_number(object, "epoch");
    ct_json_free(&object);
    return CT_OK;
}

static ct_status thin_metrics(const char *path, const char *text, size_t n, const char *name,
                              ct_text *out) {
    double epochs = 0;
    (void)name;
    CT_TRY(last_epoch(path, text, n, &epochs));
    long step = epochs > KEPT_LINES && epochs < 1e9 ? (long)ceil(epochs / KEPT_LINES) : 1;
    return thin_lines(path, text, step, out);
}

/* ---- paths ---- */

/* The line begins with these words. */
static bool begins(const char *line, const char *words) {
    return strncmp(line, words, strlen(words)) == 0;
}

/* A folder of this machine in config.txt, or among the options of summary.json. */
static bool is_absolute_option(const char *line) {
    static const char *const starts[] = {"data-dir = /", "cache = /", "    \"data-dir\": \"/",
                                         "    \"cache\": \"/"};
    for (size_t k = 0; k < sizeof starts / sizeof *starts; k++)
        if (begins(line, starts[k])) return true;
    return false;
}

/* Of the folder that the samples came from, its name alone. */
static void add_without_source(const char *line, size_t n, ct_text *out) {
    static const char key[] = "\"data_source\": \"";
    const char *found = strstr(line, key), *end = line + n;
    if (found != NULL && found + sizeof key - 1 < end && found[sizeof key - 1] == '/') {
        const char *from = found + sizeof key - 1;
        size_t length = strcspn(from, "\"");
        while (length > 0 && from[length - 1] == '/') length--;
        size_t begin = length;
        while (begin > 0 && from[begin - 1] != '/') begin--;
        ct_text_add(out, "%.*s%.*s", (int)(from - line), line, (int)(length - begin), from + begin);
        line = from + strcspn(from, "\"");
    }
    ct_text_add(out, "%.*s\n", (int)(end - line), line);
}

static ct_status take_paths(const char *path, const char *text, size_t size, const char *name,
                            ct_text *out) {
    (void)path;
    (void)size;
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, "\n");
        if (begins(at, "out = "))
            ct_text_add(out, "out = %s\n", name);
        else if (begins(at, "    \"out\": \""))
            ct_text_add(out, "    \"out\": \"%s\"%s\n", name, at[n - 1] == ',' ? "," : "");
        else if (!is_absolute_option(at))
            add_without_source(at, n, out);
        at += n + (at[n] == '\n');
    }
    return ct_text_status(out);
}

/* ---- a directory ---- */

typedef ct_status rewriter(const char *path, const char *text, size_t n, const char *name,
                           ct_text *out);

/* The file becomes what `rewrite` makes of it; one that is not there, or stays the same, is left.
 */
static ct_status rewrite_file(const char *dir, const char *file, const char *name,
                              rewriter *rewrite) {
    ct_blob blob = {0};
    ct_text text = {0};
    char *path = ct_path_join(dir, file);
    if (path == NULL) return no_memory();
    ct_status status = CT_OK;
    if (ct_file_exists(path)) {
        status = ct_file_read(path, MAX_FILE, &blob);
        if (status == CT_OK) status = rewrite(path, (char *)blob.bytes, blob.n, name, &text);
        bool is_same =
            text.n == blob.n && (text.n == 0 || memcmp(text.chars, blob.bytes, text.n) == 0);
        if (status == CT_OK && !is_same) status = ct_file_write(path, text.chars, text.n);
    }
    ct_text_free(&text);
    ct_blob_free(&blob);
    ct_free(path);
    return status;
}

/* Removes a file of more than `limit` bytes. */
static ct_status remove_above(const char *dir, const char *file, long limit) {
    struct stat facts;
    char *path = ct_path_join(dir, file);
    if (path == NULL) return no_memory();
    if (stat(path, &facts) == 0 && (long)facts.st_size > limit) remove(path);
    ct_free(path);
    return CT_OK;
}

/* The summary comes last: where it is light, everything is. */
static ct_status lighten_dir(const char *dir, const char *name) {
    static const char *const heavy[] = {model_file, "agents.safetensors", "partition.csv"};
    static const char *const side[] = {"setting.json", "evaluation.json"};
    static const char *const texts[] = {"config.txt", "diverged.json", "summary.json"};
    for (size_t k = 0; k < sizeof heavy / sizeof *heavy; k++)
        CT_TRY(remove_above(dir, heavy[k], -1));
    for (size_t k = 0; k < sizeof side / sizeof *side; k++)
        CT_TRY(remove_above(dir, side[k], MAX_SIDE));
    if (ct_checkpoint_exists(dir)) CT_TRY(ct_checkpoint_remove_all(dir));
    CT_TRY(rewrite_file(dir, "metrics.jsonl", name, thin_metrics));
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        CT_TRY(rewrite_file(dir, texts[k], name, take_paths));
    return CT_OK;
}

/* Calls act(dir, name) for the directories of the run's seeds, then for its own, until it fails. */
static ct_status each_dir(const char *dir, const char *name,
                          ct_status (*act)(const char *dir, const char *name)) {
    ct_status status = CT_OK;
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && status == CT_OK && (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, "seed-", 5) != 0) continue;
        char *inner = ct_path_join(dir, e->d_name), *inner_name = ct_path_join(name, e->d_name);
        status = inner != NULL && inner_name != NULL ? act(inner, inner_name) : no_memory();
        ct_free(inner);
        ct_free(inner_name);
    }
    if (d != NULL) closedir(d);
    return status == CT_OK ? act(dir, name) : status;
}

ct_status ct_study_lighten(const char *dir, const char *name) {
    return each_dir(dir, name, lighten_dir);
}

/* CT_OK without a model; CT_STOPPED with one. */
static ct_status look_for_model(const char *dir, const char *name) {
    (void)name;
    char *path = ct_path_join(dir, model_file);
    if (path == NULL) return no_memory();
    ct_status status = ct_file_exists(path) ? CT_STOPPED : CT_OK;
    ct_free(path);
    return status;
}

ct_status ct_study_lighten_again(const char *dir, const char *name) {
    ct_status status = each_dir(dir, name, look_for_model);
    if (status == CT_STOPPED) return CT_OK; /* --keep left it: it is somebody's */
    CT_TRY(status);
    return ct_study_lighten(dir, name);
}
