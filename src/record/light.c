/* What stays of a finished run: its options, its summary, and some forty lines of its metrics. So
 * the results of all studies together are small enough to be kept beside the program, and say
 * nothing of the machine that made them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "record/checkpoint.h"
#include "record/folder.h"
#include "record/record_internal.h"
#include "util/memory.h"

#define KEPT_LINES 40          /* of metrics.jsonl, besides those of evaluations */
#define MAX_SIDE   (20 * 1024) /* bytes that setting.json and evaluation.json may have */

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

/* The step depends on the last epoch alone, so that what is thinned already is left as it is. */
static ct_status thin_metrics(const char *path, const ct_blob *blob, ct_text *out) {
    CT_SCOPED_HANDLE(ct_json) last = NULL;
    CT_TRY(ct_metrics_last(path, blob, &last));
    double epochs = ct_json_number(last, "epoch");
    long step = epochs > KEPT_LINES && epochs < 1e9 ? (long)ceil(epochs / KEPT_LINES) : 1;
    ct_lines lines = ct_blob_lines(blob);
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        CT_SCOPED_HANDLE(ct_json) object = NULL;
        bool is_last = lines.rest == NULL || lines.rest == lines.end;
        if (line[0] == '\0') continue;
        CT_TRY(ct_json_parse(line, strlen(line), path, &object));
        if (is_kept(object, step, lines.number == 1 || is_last)) add_rounded(object, out);
    }
    return ct_text_status(out);
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
static void add_without_source(const char *line, ct_text *out) {
    static const char key[] = "\"data_source\": \"";
    const char *found = strstr(line, key), *from = found != NULL ? found + sizeof key - 1 : "";
    if (from[0] == '/') {
        size_t length = strcspn(from, "\"");
        while (length > 0 && from[length - 1] == '/') length--;
        size_t begin = length;
        while (begin > 0 && from[begin - 1] != '/') begin--;
        ct_text_add(out, "%.*s%.*s", (int)(from - line), line, (int)(length - begin), from + begin);
        line = from + strcspn(from, "\"");
    }
    ct_text_add(out, "%s\n", line);
}

static ct_status take_paths(const char *name, const ct_blob *blob, ct_text *out) {
    ct_lines lines = ct_blob_lines(blob);
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        bool has_comma = line[0] != '\0' && line[strlen(line) - 1] == ',';
        if (begins(line, "out = "))
            ct_text_add(out, "out = %s\n", name);
        else if (begins(line, "    \"out\": \""))
            ct_text_add(out, "    \"out\": \"%s\"%s\n", name, has_comma ? "," : "");
        else if (!is_absolute_option(line))
            add_without_source(line, out);
    }
    return ct_text_status(out);
}

/* ---- a directory ---- */

/* The metrics are thinned, paths taken out of all others; a file that is not there, or stays the
 * same, is left. */
static ct_status rewrite_file(const char *dir, ct_record_file file, const char *name) {
    CT_SCOPED(ct_blob) before = {0}, lines = {0};
    CT_SCOPED(ct_text) text = {0};
    ct_path path = ct_record_path(dir, file);
    if (!ct_file_exists(path.text)) return CT_OK;
    CT_TRY(ct_file_read(path.text, CT_MAX_RECORD_BYTES, &before));
    CT_TRY(ct_make_copy(&lines.bytes, before.bytes, before.n + 1, path.text));
    lines.n = before.n;
    CT_TRY(file == CT_FILE_METRICS ? thin_metrics(path.text, &lines, &text)
                                   : take_paths(name, &lines, &text));
    bool is_same =
        text.n == before.n && (text.n == 0 || memcmp(text.chars, before.bytes, text.n) == 0);
    return is_same ? CT_OK : ct_file_write(path.text, text.chars, text.n);
}

static bool is_large(const char *dir, ct_record_file file) {
    struct stat facts;
    return stat(ct_record_path(dir, file).text, &facts) == 0 && facts.st_size > MAX_SIDE;
}

/* The summary comes last: where it is light, everything is. */
static ct_status lighten_dir(const char *dir, const char *name) {
    for (int k = 0; k < CT_N_FILES; k++)
        if (ct_record_is(k, CT_FILE_IS_HEAVY) ||
            (ct_record_is(k, CT_FILE_IS_SIDE) && is_large(dir, k)))
            CT_TRY(ct_record_remove(dir, k));
    if (ct_checkpoint_exists(dir)) CT_TRY(ct_checkpoint_remove_all(dir));
    CT_TRY(rewrite_file(dir, CT_FILE_METRICS, name));
    for (int k = 0; k < CT_N_FILES; k++)
        if (ct_record_is(k, CT_FILE_IS_TEXT)) CT_TRY(rewrite_file(dir, k, name));
    return CT_OK;
}

/* What the files of a directory below the run's call it: <name>/seed-3. */
typedef struct light {
    const char *dir, *name;
    bool has_model; /* some directory of the run */
} light;

static ct_status lighten_inside(void *context, const char *dir) {
    const light *l = context;
    if (strcmp(dir, l->dir) == 0) return CT_OK;
    ct_path name = ct_path_in(l->name, strrchr(dir, '/') + 1);
    return lighten_dir(dir, name.text);
}

ct_status ct_record_lighten(const char *dir, const char *name) {
    light l = {.dir = dir, .name = name};
    CT_TRY(ct_record_each_world(dir, lighten_inside, &l));
    return lighten_dir(dir, name);
}

static ct_status look_for_model(void *context, const char *dir) {
    light *l = context;
    l->has_model = l->has_model || ct_record_has(dir, CT_FILE_CONSENSUS);
    return CT_OK;
}

ct_status ct_record_lighten_again(const char *dir, const char *name) {
    light l = {.dir = dir, .name = name};
    CT_TRY(ct_record_each_world(dir, look_for_model, &l));
    /* --keep left it: it is somebody's */
    return l.has_model ? CT_OK : ct_record_lighten(dir, name);
}
