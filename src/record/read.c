/* Reads what a run has left in its directory. */
#include "record/record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "record/record_internal.h"
#include "schema/schema.h"
#include "util/hash.h"
#include "util/memory.h"

/* ---- metrics.jsonl ---- */

static ct_status read_row(const char *line, const char *where, ct_record_row *out) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_TRY(ct_json_parse(line, strlen(line), where, &json));
    for (int m = 0; m < CT_N_METRICS; m++) out->value[m] = ct_json_number(json, ct_metrics[m].key);
    if (isfinite(out->value[CT_METRIC_EPOCH])) return CT_OK;
    return ct_fail(CT_IO, "%s: no epoch in this line", where);
}

static ct_status add_row(ct_record *run, const ct_record_row *row, const char *where) {
    double epoch = row->value[CT_METRIC_EPOCH];
    double before = run->n_epochs > 0 ? run->epochs[run->n_epochs - 1].value[CT_METRIC_EPOCH] : 0;
    if (run->n_epochs > 0 && before > epoch)
        return ct_fail(CT_IO, "%s: epoch %g comes after epoch %g", where, epoch, before);
    if (run->n_epochs == CT_MAX_RECORD_ROWS)
        return ct_fail(CT_IO, "%s: more than %d epochs", where, CT_MAX_RECORD_ROWS);
    CT_TRY(ct_extend(&run->epochs, (size_t)run->n_epochs, where));
    run->epochs[run->n_epochs++] = *row;
    return CT_OK;
}

/* The last line may be on its way: without its end it counts only if it is whole. */
static ct_status read_metrics(const char *path, const ct_blob *blob, ct_record *run) {
    if (strlen((char *)blob->bytes) != blob->n) return ct_fail(CT_IO, "%s: this is not text", path);
    ct_lines lines = ct_blob_lines(blob);
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        char where[640];
        ct_record_row row;
        ct_error error;
        if (line[0] == '\0') continue;
        snprintf(where, sizeof where, "%.600s:%u", path, lines.number);
        ct_status status = CT_CATCH(&error, read_row(line, where, &row));
        if (status == CT_IO && lines.rest == NULL) return CT_OK;
        if (status != CT_OK) return ct_fail_again(&error);
        CT_TRY(add_row(run, &row, where));
    }
    return CT_OK;
}

ct_status ct_metrics_last(const char *path, const ct_blob *blob, ct_json **out) {
    const char *text = (const char *)blob->bytes;
    size_t n = blob->n;
    while (n > 0 && text[n - 1] == '\n') n--;
    size_t begin = n;
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    return n > 0 ? ct_json_parse(text + begin, n - begin, path, out) : CT_OK;
}

double ct_record_last(const ct_record *run, ct_metric_id metric) {
    for (int e = run->n_epochs - 1; e >= 0; e--)
        if (isfinite(run->epochs[e].value[metric])) return run->epochs[e].value[metric];
    return NAN;
}

/* ---- config.txt ---- */

static ct_status add_option(ct_record *run, const char *path, char *line) {
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return ct_fail(CT_IO, "%s: '%.80s' is not of the form name = value", path, line);
    *equals = '\0';
    if (run->n_options == CT_MAX_RECORD_LINES)
        return ct_fail(CT_IO, "%s: more than %d options", path, CT_MAX_RECORD_LINES);
    CT_TRY(ct_extend(&run->options, (size_t)run->n_options, path));
    ct_record_option *o = &run->options[run->n_options++];
    *o = (ct_record_option){0};
    CT_TRY(ct_make_text(&o->name, ct_trim(line)));
    const ct_option *known = ct_schema_find(o->name);
    o->roles = known != NULL ? known->roles : 0;
    return ct_make_text(&o->value, ct_trim(equals + 1));
}

static ct_status read_options(const char *path, const ct_blob *blob, ct_record *run) {
    ct_lines lines = ct_blob_lines(blob);
    for (char *at; (at = ct_lines_next(&lines)) != NULL;) {
        char *line = ct_trim(at);
        if (*line != '\0' && *line != '#') CT_TRY(add_option(run, path, line));
    }
    return CT_OK;
}

const char *ct_record_option_of(const ct_record *run, const char *name) {
    for (int k = 0; k < run->n_options; k++)
        if (strcmp(run->options[k].name, name) == 0) return run->options[k].value;
    return NULL;
}

/* ---- JSON ---- */

static ct_status parse_object(const char *path, const ct_blob *blob, ct_json **out) {
    CT_TRY(ct_json_parse((const char *)blob->bytes, blob->n, path, out));
    if ((*out)->kind == CT_JSON_OBJECT) return CT_OK;
    ct_json_free(out);
    return ct_fail(CT_IO, "%s: this is no object", path);
}

static ct_status read_summary(const char *path, const ct_blob *blob, ct_record *run) {
    return parse_object(path, blob, &run->summary);
}

/* ---- which files there are ---- */

/* The directory of a run, and the one above it; or where in a bundle it is. */
typedef struct run_folders {
    ct_folder dir, above;
    ct_path above_path;
    ct_bundled bundled;
} run_folders;
#define NO_FOLDERS ((run_folders){.dir.fd = -1, .above.fd = -1, .bundled.folder.fd = -1})

static void run_folders_close(run_folders *in) {
    ct_folder_close(&in->dir);
    ct_folder_close(&in->above);
    ct_bundled_close(&in->bundled);
}

/* What is sealed has nothing above; and there a path has one spelling, its folder's and names. */
static ct_status open_folders(const ct_folder *root, const char *path, run_folders *out) {
    CT_TRY(ct_folder_open(root, path, &out->dir));
    if (out->dir.fd < 0) return ct_bundle_locate(root, path, &out->bundled);
    out->above_path = ct_path_in(root == NULL ? path : "", root == NULL ? ".." : path);
    char *slash = strrchr(out->above_path.text, '/');
    if (root != NULL && slash != NULL) *slash = '\0';
    (void)CT_CATCH(NULL, ct_folder_open(root, out->above_path.text, &out->above));
    return CT_OK;
}

static ct_file_stamp stamp_of(const struct stat *what, bool is_dir) {
    ct_file_stamp stamp = {.device = what->st_dev, .inode = what->st_ino};
    if (is_dir) return stamp; /* what is in it has stamps of its own */
    stamp.n_bytes = (uint64_t)what->st_size;
    stamp.seconds = what->st_ctim.tv_sec;
    stamp.nanoseconds = what->st_ctim.tv_nsec;
    return stamp;
}

static ct_file_stamp stamp_in(const ct_folder *dir, const char *name, bool is_dir) {
    struct stat what;
    if (!ct_folder_stat(dir, name, &what)) return (ct_file_stamp){0};
    bool is_right = is_dir ? S_ISDIR(what.st_mode) : ct_folder_is_file(&what);
    return is_right ? stamp_of(&what, is_dir) : (ct_file_stamp){0};
}

static ct_record_stamp look_at(const run_folders *in) {
    static const ct_record_file read[] = {
        CT_FILE_CONFIG, CT_FILE_SETTING, CT_FILE_METRICS,    CT_FILE_EVALUATION, CT_FILE_DIVERGED,
        CT_FILE_FAILED, CT_FILE_SUMMARY, CT_FILE_CHECKPOINT, CT_FILE_SITE,       CT_FILE_SENT};
    ct_record_stamp stamp = {.dir = stamp_in(&in->dir, ".", true),
                             .above =
                                 stamp_in(&in->above, ct_record_name(CT_FILE_DIVERGED), false)};
    for (size_t k = 0; k < sizeof read / sizeof *read; k++)
        stamp.file[read[k]] =
            stamp_in(&in->dir, ct_record_name(read[k]), ct_record_is(read[k], CT_FILE_IS_FOLDER));
    return stamp;
}

/* Of a run in a bundle: the file's, and which run it is. */
static ct_record_stamp look_at_bundle(const ct_bundled *b) {
    ct_record_stamp stamp = {0};
    if (!b->is_there) return stamp;
    stamp.dir = stamp_of(&b->what, false);
    stamp.dir.n_bytes = ct_hash(CT_HASH_START, b->name.text, strlen(b->name.text));
    return stamp;
}

/* Which of its files are there, in the stamps: each is in the bundle. */
static ct_record_stamp look_at_line(const ct_bundled *b) {
    ct_record_stamp stamp = look_at_bundle(b);
    for (int k = 0; b->run != NULL && k < CT_N_FILES; k++) {
        const ct_json *text = ct_json_get(b->run, ct_record_name(k));
        if (text == NULL) continue;
        stamp.file[k] = stamp_of(&b->what, true);
        stamp.file[k].n_bytes = strlen(text->string);
    }
    if (b->above != NULL && ct_json_get(b->above, ct_record_name(CT_FILE_DIVERGED)) != NULL)
        stamp.above = stamp_of(&b->what, true);
    return stamp;
}

ct_status ct_record_look_at(const ct_folder *root, const char *path, ct_record_stamp *out) {
    CT_SCOPED_BY(run_folders_close, run_folders) in = NO_FOLDERS;
    CT_TRY(open_folders(root, path, &in));
    *out = in.dir.fd >= 0 ? look_at(&in) : look_at_bundle(&in.bundled);
    return CT_OK;
}

static bool has(const ct_record *run, ct_record_file file) {
    return run->stamp.file[file].inode != 0;
}

/* ---- their content ---- */

/* Of a line of a bundle (NULL: there is none). */
static ct_status read_member(const ct_json *run, const char *path, ct_record_file file,
                             ct_blob *out) {
    const ct_json *text = run != NULL ? ct_json_get(run, ct_record_name(file)) : NULL;
    errno = ENOENT;
    if (text == NULL) return ct_file_failed(ct_record_path(path, file).text);
    size_t n = strlen(text->string);
    CT_TRY(ct_make_copy(&out->bytes, (const uint8_t *)text->string, n + 1, path));
    out->n = n;
    return CT_OK;
}

/* From the run's directory or its line; `is_above`: that of the run above it. */
static ct_status read_in(const run_folders *in, bool is_above, ct_record_file file, ct_blob *out) {
    size_t max_bytes = file == CT_FILE_CONFIG ? CT_MAX_TEXT_BYTES : CT_MAX_RECORD_BYTES;
    const ct_bundled *b = &in->bundled;
    if (b->is_there) return read_member(is_above ? b->above : b->run, in->dir.path, file, out);
    return ct_folder_read(is_above ? &in->above : &in->dir, ct_record_name(file), max_bytes, out);
}

static ct_status read_object(const run_folders *in, bool is_above, ct_record_file file,
                             ct_json **out) {
    CT_SCOPED(ct_blob) blob = {0};
    CT_TRY(read_in(in, is_above, file, &blob));
    return parse_object(ct_record_path(in->dir.path, file).text, &blob, out);
}

/* The same, ready to be read. */
static ct_status open_run(const ct_folder *root, const char *path, run_folders *out) {
    CT_TRY(open_folders(root, path, out));
    return ct_bundle_read(&out->bundled);
}

ct_status ct_record_read_file(const char *dir, ct_record_file file, ct_json **out) {
    CT_SCOPED_BY(run_folders_close, run_folders) in = NO_FOLDERS;
    CT_TRY(open_run(NULL, dir, &in));
    return read_object(&in, false, file, out);
}

ct_status ct_record_read_text(const char *path, ct_record_file file, ct_blob *out) {
    CT_SCOPED_BY(run_folders_close, run_folders) in = NO_FOLDERS;
    CT_TRY(open_run(NULL, path, &in));
    return read_in(&in, false, file, out);
}

ct_status ct_record_holds(const char *path, ct_record_file file, bool *out) {
    CT_SCOPED_BY(run_folders_close, run_folders) in = NO_FOLDERS;
    CT_TRY(open_run(NULL, path, &in));
    *out = in.dir.fd >= 0 ? ct_record_has(path, file)
                          : in.bundled.run != NULL &&
                                ct_json_get(in.bundled.run, ct_record_name(file)) != NULL;
    return CT_OK;
}

typedef ct_status take_file(const char *path, const ct_blob *blob, ct_record *run);

static ct_status read_part(const run_folders *in, ct_record_file file, take_file *take,
                           ct_record *run) {
    CT_SCOPED(ct_blob) blob = {0};
    CT_TRY(read_in(in, false, file, &blob));
    return take(ct_record_path(in->dir.path, file).text, &blob, run);
}

/* ---- how it ended ---- */

/* Files of older versions have no numbers beside the message. */
static long iteration_in(const char *message) {
    static const char word[] = " iteration ";
    const char *found = strstr(message, word);
    return found != NULL ? strtol(found + sizeof word - 1, NULL, 10) : 0;
}

static ct_status read_end(const run_folders *in, bool is_above, ct_record_file file,
                          ct_record_end *out) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_TRY(read_object(in, is_above, file, &json));
    const ct_json *message = ct_json_get(json, "message");
    double iteration = ct_json_number(json, "iteration"), agent = ct_json_number(json, "agent");
    if (message != NULL && message->kind == CT_JSON_STRING)
        snprintf(out->reason, sizeof out->reason, "%s", message->string);
    out->state = file == CT_FILE_DIVERGED ? CT_RECORD_DIVERGED : CT_RECORD_FAILED;
    out->iteration =
        iteration >= 0 && iteration < 1e15 ? (long)iteration : iteration_in(out->reason);
    out->agent = agent >= 0 && agent < 1e9 ? (int)agent : -1;
    return CT_OK;
}

/* Older versions left nothing of a run that diverged but its last line. */
static void look_at_losses(const ct_record *run, ct_record_end *out) {
    if (run->n_epochs == 0) return;
    const ct_record_row *last = &run->epochs[run->n_epochs - 1];
    if (isfinite(last->value[CT_METRIC_CE])) return;
    double iteration = last->value[CT_METRIC_ITERATION];
    out->state = CT_RECORD_DIVERGED;
    out->iteration = isfinite(iteration) ? (long)iteration : 0;
}

static ct_status find_end(const run_folders *in, ct_record *run, ct_record_end *out) {
    bool has_metrics = has(run, CT_FILE_METRICS);
    *out = (ct_record_end){.state = CT_RECORD_DONE, .agent = -1};
    if (has(run, CT_FILE_SUMMARY)) return CT_OK;
    if (has(run, CT_FILE_DIVERGED)) return read_end(in, false, CT_FILE_DIVERGED, out);
    if (has(run, CT_FILE_FAILED)) return read_end(in, false, CT_FILE_FAILED, out);
    bool is_there = has_metrics || has(run, CT_FILE_CONFIG) || has(run, CT_FILE_CHECKPOINT);
    out->state = is_there ? CT_RECORD_BEGUN : CT_RECORD_NONE;
    if (!is_there) return CT_OK;
    if (run->stamp.above.inode != 0) return read_end(in, true, CT_FILE_DIVERGED, out);
    if (has_metrics && run->epochs == NULL)
        CT_TRY(read_part(in, CT_FILE_METRICS, read_metrics, run));
    if (has_metrics) look_at_losses(run, out);
    return CT_OK;
}

void ct_record_print_end(const ct_record_end *end, char *out, size_t size) {
    static const char *const words[] = {"no run", "not finished", "finished", "diverged", "failed"};
    bool has_iteration = end->state >= CT_RECORD_DIVERGED && end->iteration > 0;
    int n = snprintf(out, size, "%s", words[end->state]);
    if (has_iteration && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, " at iteration %ld", end->iteration);
}

/* ---- a directory ---- */

/* The number behind the last "seed" of a name: seed-3, ccl-seed3. */
static uint64_t seed_of_name(const char *path) {
    const char *found = NULL;
    for (const char *at = path; (at = strstr(at, "seed")) != NULL; at += 4) found = at + 4;
    if (found == NULL) return 0;
    if (*found == '-' || *found == '_') found++;
    return strtoull(found, NULL, 10);
}

static ct_status read_dir(const run_folders *in, unsigned what, ct_record *run) {
    static const struct {
        unsigned what;
        ct_record_file file;
        take_file *take;
    } parts[] = {{CT_READ_OPTIONS, CT_FILE_CONFIG, read_options},
                 {CT_READ_METRICS, CT_FILE_METRICS, read_metrics},
                 {CT_READ_SUMMARY, CT_FILE_SUMMARY, read_summary},
                 {CT_READ_SETTING, CT_FILE_SETTING, ct_record_read_setting},
                 {CT_READ_EVALUATION, CT_FILE_EVALUATION, ct_record_read_evaluation},
                 {CT_READ_SITE, CT_FILE_SITE, ct_record_read_site},
                 {CT_READ_SITE, CT_FILE_SENT, ct_record_read_sent}};
    run->stamp = in->dir.fd >= 0 ? look_at(in) : look_at_line(&in->bundled);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if ((what & parts[k].what) != 0 && has(run, parts[k].file))
            CT_TRY(read_part(in, parts[k].file, parts[k].take, run));
    return (what & CT_READ_END) != 0 ? find_end(in, run, &run->end) : CT_OK;
}

/* A metrics file alone. */
static ct_status read_file(const char *path, ct_record *run) {
    struct stat what;
    CT_SCOPED(ct_blob) blob = {0};
    if (stat(path, &what) == 0) run->stamp.dir = stamp_of(&what, true);
    CT_TRY(ct_file_read(path, CT_MAX_RECORD_BYTES, &blob));
    return read_metrics(path, &blob, run);
}

static ct_status read_run(const ct_folder *root, const char *path, unsigned what, ct_record *run) {
    int64_t seed = 0;
    CT_SCOPED_BY(run_folders_close, run_folders) in = NO_FOLDERS;
    CT_TRY(ct_make_text(&run->path, path));
    run->seed = seed_of_name(path);
    if (root == NULL && ct_file_exists(path)) return read_file(path, run);
    CT_TRY(open_run(root, path, &in));
    CT_TRY(read_dir(&in, what, run));
    const char *given = ct_record_option_of(run, "seed");
    if (given != NULL && ct_parse_i64(given, &seed) && seed >= 0) run->seed = (uint64_t)seed;
    return CT_OK;
}

ct_status ct_record_load_in(const ct_folder *root, const char *path, unsigned what,
                            ct_record *out) {
    *out = (ct_record){0};
    ct_status status = read_run(root, path, what, out);
    if (status != CT_OK) ct_record_unload(out);
    return status;
}

ct_status ct_record_load(const char *path, unsigned what, ct_record *out) {
    return ct_record_load_in(NULL, path, what, out);
}

void ct_record_unload(ct_record *run) {
    for (int k = 0; k < run->n_options; k++) {
        ct_free(run->options[k].name);
        ct_free(run->options[k].value);
    }
    for (int c = 0; run->class_names != NULL && c < run->n_classes; c++)
        ct_free(run->class_names[c]);
    ct_free(run->class_names);
    for (int i = 0; run->agent_names != NULL && i < run->n_agents; i++)
        ct_free(run->agent_names[i]);
    ct_free(run->agent_names);
    ct_free(run->options);
    ct_free(run->epochs);
    ct_json_free(&run->summary);
    ct_free(run->class_counts);
    ct_free(run->edges);
    ct_free(run->local_accuracy);
    ct_free(run->confusion);
    ct_record_free_site(&run->site);
    ct_free(run->path);
    *run = (ct_record){0};
}
