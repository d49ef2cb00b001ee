#include <math.h>
#include <string.h>

#include "cli/models.h"
#include "cli/predictions.h"
#include "data/listing.h"
#include "util/log.h"
#include "util/memory.h"

enum { SLICE = 16384, N_NAMED = 20 /* pictures that cannot be read, by name */ };

const ct_help ct_cli_predict_help = {
    .usage = "predict MODEL PICTURE|DIR ... [--option value ...]\n"
             "predict MODEL TABLE.csv [--option value ...]",
    .text = "Prints the class and probability of picture files (JPEG, PNG), or of all files "
            "below a directory. MODEL is a run directory or a .safetensors file. Pictures are "
            "resized, cropped and normalised as in training. Files that cannot be read are "
            "named and left out. Pictures that lie in folders named after classes also give an "
            "accuracy.\n\n"
            "A model that was trained on a table takes another table: columns are matched by "
            "name, in any order, and encoded as in training. Labels, where there are any, give "
            "an accuracy.",
    .exits = CT_HELP_PAIRS({"0", "at least one picture was read"},
                           {"1", "none was read, or with --strict not all"}),
    .examples = CT_HELP_PAIRS(
        {"Every picture below a folder.", "crosstalk predict runs/ccl photos/"},
        {"The three most probable classes of each, as JSON.",
         "crosstalk predict runs/ccl photos/ --top 3 --format json --out photos.json"},
        {"The rows of a table.", "crosstalk predict runs/patients new-patients.csv"}),
    .also = "eval, export, docs/MODELS.md, docs/DATA.md"};

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
    ct_predictions *rows;
    size_t first; /* of the slice at hand */
    size_t n_broken;
    char broken[1024]; /* the first that cannot be read, and why */
} predictor;

static void name_broken(void *context, size_t picture, const char *reason) {
    predictor *p = context;
    const char *path = p->pictures->paths[p->first + picture];
    if (p->n_broken == 0) snprintf(p->broken, sizeof p->broken, "%.800s: %.150s", path, reason);
    if (p->n_broken++ < N_NAMED) ct_note("%s: %s", path, reason);
}

static void add_row(predictor *p, size_t i, const float *row) {
    const char *folder = p->pictures->folders[i];
    if (isnan(row[0])) return;
    int label = folder[0] != '\0' ? ct_model_find_class(p->rows->model, folder) : -1;
    ct_predictions_add(p->rows, p->pictures->paths[i], label, row);
}

/* ---- all of them ---- */

static bool show_progress(void *context, long now, long total) {
    const predictor *p = context;
    (void)total;
    ct_log(CT_LOG_PASSING, "%zu of %zu pictures", p->first + (size_t)now, p->pictures->n);
    return true;
}

static ct_status predict_slices(predictor *p, const ct_own *own, float *rows) {
    size_t n_classes = (size_t)ct_model_facts_of(p->rows->model)->n_classes, n_all = p->pictures->n;
    for (; p->first < n_all; p->first += SLICE) {
        size_t n = n_all - p->first < SLICE ? n_all - p->first : SLICE;
        CT_TRY(ct_model_run_files(p->rows->model,
                                  (const char *const *)(p->pictures->paths + p->first), n, rows,
                                  name_broken, p));
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
    CT_TRY(ct_make_block(&rows, n,
                         (size_t)ct_model_facts_of(p->rows->model)->n_classes * sizeof *rows,
                         "the probabilities"));
    hooks.log = before != NULL ? before->log : NULL;
    ct_hooks_use(&hooks);
    ct_status status = predict_slices(p, own, rows);
    ct_hooks_use(before);
    ct_cli_clear_line(); /* results follow, on standard output */
    return status;
}

static ct_status predict_pictures(predictor *p, const ct_own *own) {
    size_t n = p->pictures->n;
    CT_TRY(ct_predictions_begin(p->rows, own, "file"));
    CT_TRY(predict_all(p, own));
    if (p->n_broken == n)
        return ct_fail(CT_IO, "none of %zu files can be read as a picture; %s", n, p->broken);
    if (p->n_broken > 0)
        ct_note("%zu of %zu files cannot be read and are left out", p->n_broken, n);
    return ct_predictions_end(p->rows, own, "pictures in folders named after a class");
}

/* ---- tables ---- */

static ct_status predict_table(ct_predictions *rows, const char *path, const ct_own *own) {
    CT_SCOPED_BLOCK(float) probabilities = NULL;
    CT_SCOPED_BLOCK(int32_t) labels = NULL;
    size_t n = 0, n_classes = (size_t)ct_model_facts_of(rows->model)->n_classes;
    rows->is_numbered = true;
    CT_TRY(ct_predictions_begin(rows, own, "row"));
    CT_TRY(ct_model_run_table(rows->model, path, &probabilities, &labels, &n));
    for (size_t i = 0; i < n; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i + 1);
        ct_predictions_add(rows, number, labels[i], probabilities + i * n_classes);
    }
    return ct_predictions_end(rows, own, "rows with a label");
}

static ct_status predict(int n_words, char **words, const ct_own *own, ct_predictions *rows) {
    if (ct_model_facts_of(rows->model)->columns != NULL) {
        if (n_words == 1) return predict_table(rows, words[0], own);
        return ct_fail(CT_INVAL, "%s takes one table at a time, not %d", words[-1], n_words);
    }
    CT_SCOPED(pictures) found = {0};
    CT_TRY(find_pictures(n_words, words, &found));
    predictor p = {.pictures = &found, .rows = rows};
    return predict_pictures(&p, own);
}

ct_status ct_cli_predict(int n_args, char **args) {
    CT_SCOPED(ct_predictions) rows = {.model = NULL};
    ct_own own, about;
    CT_TRY(ct_own_take("predict", &n_args, args, &own));
    CT_TRY(ct_own_take("model", &n_args, args, &about));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    ct_cli_quiet(ct_own_is_given(&own, "quiet"));
    if (n_args < 2)
        return ct_fail(CT_INVAL,
                       "name a model (a run directory or .safetensors file), and pictures, "
                       "directories of pictures or a table");
    CT_TRY(ct_cli_may_write(ct_own_text(&own, "out"), ct_own_is_given(&own, "force")));
    CT_TRY(ct_cli_open_model(args[0], &about, &rows.model));
    return predict(n_args - 1, args + 1, &own, &rows);
}
