#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/models.h"
#include "data/listing.h"
#include "util/log.h"
#include "util/memory.h"

enum { SLICE = 16384, N_NAMED = 20 /* pictures that cannot be read, by name */ };

void ct_cli_predict_help(FILE *out) {
    fputs("usage: crosstalk predict MODEL PICTURE|DIR ... [--option value ...]\n\n"
          "Classes and probabilities of picture files (JPEG, PNG), or of all files below a\n"
          "directory. MODEL is a run directory or a .safetensors file. Pictures are resized, cut\n"
          "and normalised as in training. Files that cannot be read are named and left out.\n"
          "Pictures that lie in folders named after classes also give an accuracy.\n"
          "Exit 0: at least one picture was read; 1: none, or with --strict not all.\n\n",
          out);
    ct_own_help("predict", out);
    ct_own_help("model", out);
}

/* Pictures, each with the folder below DIR that it was found in ("": named itself). */
typedef struct pictures {
    char **paths;   /* [n] */
    char **folders; /* [n] */
    size_t n;
} pictures;

static void pictures_free(pictures *p) {
    for (size_t i = 0; i < p->n; i++) {
        ct_free(p->paths[i]);
        ct_free(p->folders[i]);
    }
    ct_free(p->paths);
    ct_free(p->folders);
}

static ct_status add_picture(pictures *p, const char *path, const char *name) {
    static const char what[] = "a list of pictures";
    CT_TRY(ct_extend(&p->paths, p->n, what));
    CT_TRY(ct_extend(&p->folders, p->n, what));
    p->paths[p->n] = p->folders[p->n] = NULL;
    size_t at = p->n++; /* counted first: what there is of it is freed */
    CT_TRY(ct_make_text(&p->paths[at], path));
    CT_TRY(ct_make_text(&p->folders[at], name));
    char *slash = strchr(p->folders[at], '/');
    if (slash != NULL)
        *slash = '\0';
    else
        p->folders[at][0] = '\0';
    return CT_OK;
}

static ct_status find_pictures(int n_words, char **words, pictures *out) {
    for (int k = 0; k < n_words; k++) {
        CT_SCOPED(ct_listing) files = {0};
        if (!ct_dir_exists(words[k])) {
            CT_TRY(add_picture(out, words[k], ""));
            continue;
        }
        CT_TRY(ct_listing_read_all(words[k], &files));
        for (size_t i = 0; i < files.n; i++)
            CT_TRY(add_picture(out, ct_listing_path(&files, i).text, files.names + files.at[i]));
    }
    return CT_OK;
}

typedef struct predictor {
    const pictures *pictures;
    ct_model *model;
    int n_top;
    bool is_json;
    ct_text out;
    size_t first; /* of the slice at hand */
    size_t n_broken;
    char broken[1024]; /* the first that cannot be read, and why */
    size_t n_labelled, n_correct;
    int *order; /* [n_classes] */
} predictor;

static void name_broken(void *context, size_t picture, const char *reason) {
    predictor *p = context;
    const char *path = p->pictures->paths[p->first + picture];
    if (p->n_broken == 0) snprintf(p->broken, sizeof p->broken, "%.800s: %.150s", path, reason);
    if (p->n_broken++ < N_NAMED) ct_note("%s: %s", path, reason);
}

/* ---- a line for each picture ---- */

/* The n_top most probable classes, the first of equals first, to the front of p->order. */
static void choose_top(const predictor *p, const float *row, int n_classes) {
    int *order = p->order;
    for (int c = 0; c < n_classes; c++) order[c] = c;
    for (int k = 0; k < p->n_top; k++) {
        int best = k;
        for (int j = k + 1; j < n_classes; j++) {
            float gain = row[order[j]] - row[order[best]];
            if (gain > 0 || (gain == 0 && order[j] < order[best])) best = j;
        }
        int chosen = order[best];
        order[best] = order[k];
        order[k] = chosen;
    }
}

static void add_csv_header(predictor *p) {
    ct_text_add(&p->out, "file");
    for (int k = 1; k <= p->n_top; k++) {
        if (k == 1)
            ct_text_add(&p->out, ",class,probability");
        else
            ct_text_add(&p->out, ",class_%d,probability_%d", k, k);
    }
    ct_text_add(&p->out, "\n");
}

static void add_csv(predictor *p, const char *path, const float *row) {
    ct_csv_add(&p->out, path);
    for (int k = 0; k < p->n_top; k++) {
        ct_text_add(&p->out, ",");
        ct_csv_add(&p->out, ct_model_class(p->model, p->order[k]));
        ct_text_add(&p->out, ",%.7g", (double)row[p->order[k]]);
    }
    ct_text_add(&p->out, "\n");
}

static void add_json_class(predictor *p, int label, const float *row) {
    ct_text_add(&p->out, "{\"class\": ");
    ct_json_add_string(&p->out, ct_model_class(p->model, label));
    ct_text_add(&p->out, ", \"label\": %d, \"probability\": %.7g}", label, (double)row[label]);
}

static void add_json(predictor *p, const char *path, const float *row) {
    ct_text_add(&p->out, "%s\n  {\"file\": ", p->out.n > 1 ? "," : "");
    ct_json_add_string(&p->out, path);
    ct_text_add(&p->out, ", \"top\": [");
    for (int k = 0; k < p->n_top; k++) {
        if (k > 0) ct_text_add(&p->out, ", ");
        add_json_class(p, p->order[k], row);
    }
    ct_text_add(&p->out, "]}");
}

static void add_row(predictor *p, size_t i, const float *row) {
    const char *folder = p->pictures->folders[i];
    if (isnan(row[0])) return;
    choose_top(p, row, ct_model_facts_of(p->model)->n_classes);
    int label = folder[0] != '\0' ? ct_model_find_class(p->model, folder) : -1;
    p->n_labelled += label >= 0;
    p->n_correct += label >= 0 && label == p->order[0];
    (p->is_json ? add_json : add_csv)(p, p->pictures->paths[i], row);
}

/* ---- all of them ---- */

static bool show_progress(void *context, long now, long total) {
    const predictor *p = context;
    (void)total;
    ct_log(CT_LOG_PASSING, "%zu of %zu pictures", p->first + (size_t)now, p->pictures->n);
    return true;
}

static ct_status predict_slices(predictor *p, const ct_own *own, float *rows) {
    size_t n_classes = (size_t)ct_model_facts_of(p->model)->n_classes, n_all = p->pictures->n;
    for (; p->first < n_all; p->first += SLICE) {
        size_t n = n_all - p->first < SLICE ? n_all - p->first : SLICE;
        CT_TRY(ct_model_run_files(p->model, (const char *const *)(p->pictures->paths + p->first), n,
                                  rows, name_broken, p));
        if (p->n_broken > 0 && ct_own_is_given(own, "strict"))
            return ct_fail(CT_IO, "%s (without --strict it is left out)", p->broken);
        for (size_t i = 0; i < n; i++) add_row(p, p->first + i, rows + i * n_classes);
    }
    return CT_OK;
}

/* The hooks of this thread, and progress. */
static ct_status predict_all(predictor *p, const ct_own *own) {
    CT_SCOPED_BLOCK(float) rows = NULL;
    const ct_hooks *before = ct_hooks_now();
    ct_hooks hooks = {.context = p, .progress = show_progress};
    size_t n = p->pictures->n < SLICE ? p->pictures->n : SLICE;
    CT_TRY(ct_make_block(&rows, n, (size_t)ct_model_facts_of(p->model)->n_classes * sizeof *rows,
                         "the probabilities"));
    hooks.log = before != NULL ? before->log : NULL;
    ct_hooks_use(&hooks);
    ct_status status = predict_slices(p, own, rows);
    ct_hooks_use(before);
    return status;
}

static ct_status finish(predictor *p, const char *path, bool force) {
    size_t n = p->pictures->n;
    if (p->is_json) ct_text_add(&p->out, "\n]\n");
    CT_TRY(ct_text_status(&p->out));
    if (p->n_broken == n)
        return ct_fail(CT_IO, "none of %zu files can be read as a picture; %s", n, p->broken);
    if (p->n_broken > 0)
        ct_note("%zu of %zu files cannot be read and are left out", p->n_broken, n);
    if (p->n_labelled > 0)
        ct_log(CT_LOG_LINE, "accuracy %.4f: %zu of %zu pictures in folders named after a class",
               (double)p->n_correct / (double)p->n_labelled, p->n_correct, p->n_labelled);
    if (path == NULL) {
        ct_show_lines(stdout, p->out.chars);
        return CT_OK;
    }
    return force ? ct_file_replace(path, p->out.chars, p->out.n)
                 : ct_file_write(path, p->out.chars, p->out.n);
}

static void predictor_free(predictor *p) {
    ct_text_free(&p->out);
    ct_free(p->order);
    ct_model_free(&p->model);
}

static ct_status predict(const char *model, const pictures *found, const ct_own *own,
                         const ct_own *about) {
    CT_SCOPED(predictor)
    p = {.pictures = found, .is_json = strcmp(ct_own_text(own, "format"), "json") == 0};
    const char *out = ct_own_text(own, "out");
    bool force = ct_own_is_given(own, "force");
    CT_TRY(ct_cli_may_write(out, force));
    CT_TRY(ct_cli_open_model(model, about, &p.model));
    int n_classes = ct_model_facts_of(p.model)->n_classes;
    int64_t n_top = ct_own_whole(own, "top");
    p.n_top = n_top < n_classes ? (int)n_top : n_classes;
    CT_TRY(ct_make(&p.order, (size_t)n_classes, "the classes"));
    if (p.is_json)
        ct_text_add(&p.out, "[");
    else
        add_csv_header(&p);
    CT_TRY(predict_all(&p, own));
    return finish(&p, out, force);
}

ct_status ct_cli_predict(int n_args, char **args) {
    CT_SCOPED(pictures) found = {0};
    ct_own own, about;
    CT_TRY(ct_own_take("predict", &n_args, args, &own));
    CT_TRY(ct_own_take("model", &n_args, args, &about));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    ct_cli_quiet(ct_own_is_given(&own, "quiet"));
    if (n_args < 2)
        return ct_fail(CT_INVAL,
                       "name a model (a run directory or .safetensors file), and pictures "
                       "or directories of pictures");
    CT_TRY(find_pictures(n_args - 1, args + 1, &found));
    return predict(args[0], &found, &own, &about);
}
