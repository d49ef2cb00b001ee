/* `csv`: a table with a header, a label column, and numbers and texts beside it (table.h). */
#include "data/dataset_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/table.h"
#include "util/folder.h"
#include "util/log.h"
#include "util/memory.h"

/* ---- which files ---- */

typedef struct files {
    ct_path train, test; /* "": there is none */
} files;

static bool is_table(const char *name) {
    static const char *const ends[] = {".csv", ".csv.gz", ".tsv", ".tsv.gz"};
    size_t n = strlen(name);
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        size_t length = strlen(ends[k]);
        if (n > length && strcasecmp(name + n - length, ends[k]) == 0) return true;
    }
    return false;
}

typedef struct only {
    ct_path name;
    size_t n;
} only;

static ct_status count_table(void *context, const char *name) {
    only *o = context;
    if (!is_table(name)) return CT_OK;
    if (o->n++ == 0) o->name = ct_path_in("", name);
    return CT_OK;
}

/* The tables of a folder that are not called train and test. */
static ct_status look_around(const char *dir, only *out) {
    CT_SCOPED_BY(ct_folder_close, ct_folder) folder = CT_NO_FOLDER;
    *out = (only){.n = 0};
    CT_TRY(ct_folder_open(NULL, dir, &folder));
    return ct_folder_list(&folder, count_table, out);
}

static ct_status find_files(const char *dir, files *out) {
    *out = (files){.train = {""}, .test = {""}};
    if (!ct_dir_exists(dir)) {
        out->train = ct_path_in("", dir);
        return CT_OK;
    }
    bool has_train = ct_data_exists(dir, "train.csv"), has_test = ct_data_exists(dir, "test.csv");
    if (has_train) CT_TRY(ct_data_find(dir, "train.csv", "", &out->train));
    if (has_test) CT_TRY(ct_data_find(dir, "test.csv", "", &out->test));
    if (has_train || has_test) return CT_OK;
    only found;
    CT_TRY(look_around(dir, &found));
    if (found.n != 1)
        return ct_fail(CT_IO,
                       "%s: %zu tables and no train.csv; name one with @data-dir FILE.csv, or call "
                       "two of them train.csv and test.csv",
                       dir, found.n);
    out->train = ct_path_in(dir, found.name.text);
    return CT_OK;
}

bool ct_dataset_probe_csv(const char *dir) {
    only found;
    if (!ct_dir_exists(dir)) return is_table(dir) && ct_file_exists(dir);
    return ct_data_exists(dir, "train.csv") ||
           (CT_CATCH(NULL, look_around(dir, &found)) == CT_OK && found.n == 1);
}

/* ---- labels ---- */

/* A file, its rows with a label, and these. */
typedef struct part {
    ct_table table;
    size_t label;    /* the column */
    int32_t *labels; /* [table.n_rows] */
} part;

static void part_free(part *p) {
    ct_table_free(&p->table);
    ct_free(p->labels);
}

static ct_status find_label(const ct_table *t, const char *wanted, size_t *out) {
    static const char *const usual[] = {"label", "class", "target", "y"};
    *out = wanted != NULL ? ct_table_find(t, wanted) : CT_NO_COLUMN;
    if (*out != CT_NO_COLUMN) return CT_OK;
    if (wanted != NULL)
        return ct_refuse("label", "%s: there is no column '%s' to learn; name one with @label",
                         t->path, wanted);
    for (size_t w = 0; w < sizeof usual / sizeof *usual; w++)
        for (size_t k = 0; k < t->n_columns && *out == CT_NO_COLUMN; k++)
            if (strcasecmp(ct_table_name(t, k), usual[w]) == 0) *out = k;
    if (*out == CT_NO_COLUMN) *out = t->n_columns - 1;
    ct_note("%s: the label is column '%s'", t->path, ct_table_name(t, *out));
    return CT_OK;
}

/* Rows without a label teach and test nothing. */
static ct_status drop_unlabelled(ct_table *t, size_t label, bool is_known) {
    CT_SCOPED_BLOCK(bool) keep = NULL;
    size_t n = t->n_rows;
    CT_TRY(ct_make(&keep, n, t->path));
    for (size_t i = 0; i < n; i++) keep[i] = !ct_cell_is_missing(ct_table_cell(t, i, label));
    ct_table_keep(t, keep);
    if (t->n_rows == 0)
        return ct_fail(CT_IO, "%s: no row has a label in column '%s'", t->path,
                       ct_table_name(t, label));
    if (t->n_rows < n && !is_known)
        ct_note("%s: rows without a label are left out: %zu", t->path, n - t->n_rows);
    return CT_OK;
}

/* label: the column's name; NULL: the usual one, or that of columns that are given. */
static ct_status read_part(const ct_dataset_options *options, const char *path, const char *label,
                           part *out) {
    bool is_again = options->is_agents && options->columns != NULL; /* and all was said before */
    if (label == NULL && options->columns != NULL) label = options->columns->label;
    CT_TRY(ct_table_read(path, &out->table));
    CT_TRY(find_label(&out->table, label, &out->label));
    return drop_unlabelled(&out->table, out->label, is_again);
}

static ct_status add_classes(const part *p, ct_words *classes, bool *are_numbers) {
    const ct_table *t = &p->table;
    double unused;
    for (size_t i = 0; i < t->n_rows; i++) {
        const char *label = ct_table_cell(t, i, p->label);
        *are_numbers = *are_numbers && ct_cell_number(label, &unused);
        CT_TRY(ct_words_add(classes, label));
        if (*are_numbers && classes->n > CT_MAX_CATEGORIES)
            return ct_refuse("label",
                             "%s: column '%s' has more than %d different numbers: it looks like a "
                             "quantity, and crosstalk classifies; choose another with @label",
                             t->path, ct_table_name(t, p->label), CT_MAX_CATEGORIES);
        if (classes->n > CT_MAX_CLASSES)
            return ct_refuse("label", "%s: column '%s' has more than %d classes", t->path,
                             ct_table_name(t, p->label), CT_MAX_CLASSES);
    }
    return CT_OK;
}

typedef struct class_place {
    double value; /* 0 where labels are texts */
    size_t place; /* among the sorted texts */
} class_place;

static int compare_places(const void *a, const void *b) {
    const class_place *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

/* rank[place]: the number of the class with that place among the sorted texts. Numbers go by value. */
static ct_status rank_classes(const ct_words *classes, bool are_numbers, int32_t *rank,
                              ct_dataset *out) {
    CT_SCOPED_BLOCK(class_place) order = NULL;
    CT_SCOPED(ct_text) names = {0};
    CT_TRY(ct_make(&order, classes->n, "the classes"));
    for (size_t k = 0; k < classes->n; k++) {
        order[k].place = k;
        if (are_numbers) (void)ct_cell_number(classes->words[k], &order[k].value);
    }
    qsort(order, classes->n, sizeof *order, compare_places);
    for (size_t k = 0; k < classes->n; k++) {
        rank[order[k].place] = (int32_t)k;
        ct_text_add(&names, "%s%c", classes->words[order[k].place], '\0');
    }
    CT_TRY(ct_text_status(&names));
    out->n_classes = (int)classes->n;
    out->class_names = ct_take(&names.chars);
    return CT_OK;
}

static ct_status number_labels(const ct_words *classes, const int32_t *rank, part *p) {
    bool is_there;
    CT_TRY(ct_make(&p->labels, p->table.n_rows, p->table.path));
    for (size_t i = 0; i < p->table.n_rows; i++)
        p->labels[i] =
            rank[ct_words_place(classes, ct_table_cell(&p->table, i, p->label), &is_there)];
    return CT_OK;
}

/* Classes of all n parts together. */
static ct_status find_classes(part *parts, int n, ct_dataset *out) {
    CT_SCOPED(ct_words) classes = {0};
    CT_SCOPED_BLOCK(int32_t) rank = NULL;
    bool are_numbers = true;
    for (int k = 0; k < n; k++) CT_TRY(add_classes(&parts[k], &classes, &are_numbers));
    CT_TRY(ct_make(&rank, classes.n, "the classes"));
    CT_TRY(rank_classes(&classes, are_numbers, rank, out));
    for (int k = 0; k < n; k++) CT_TRY(number_labels(&classes, rank, &parts[k]));
    return CT_OK;
}

/* ---- the set ---- */

static bool is_among(ct_rows rows, size_t i) {
    return rows.flags == NULL || rows.flags[i] == rows.wanted;
}

/* Labels and inputs; an agent's own table has none of these before all have agreed on them. */
static ct_status encode(const ct_dataset_options *options, const part *p, const ct_columns *columns,
                        ct_rows rows, ct_images *out) {
    size_t at = 0, n = 0;
    for (size_t i = 0; i < p->table.n_rows; i++) n += is_among(rows, i);
    if (options->is_agents && options->columns == NULL) {
        int width = (int)ct_columns_inputs(columns);
        *out = (ct_images){.n = n, .channels = 1, .height = 1, .width = width};
        CT_TRY(ct_make(&out->labels, n, p->table.path));
    } else {
        CT_TRY(ct_table_encode(&p->table, columns, rows, out));
    }
    for (size_t i = 0; i < p->table.n_rows; i++)
        if (is_among(rows, i)) out->labels[at++] = p->labels[i];
    return CT_OK;
}

/* The rows of a single file that are held out. */
static ct_status hold_out(const ct_dataset_options *options, const part *p, int n_classes,
                          bool **is_test) {
    CT_TRY(ct_make(is_test, p->table.n_rows, p->table.path));
    return ct_split_draw(p->labels, p->table.n_rows, n_classes, options->test_fraction,
                         options->seed, *is_test);
}

/* The columns that rows are encoded with: given ones, or those of the training rows. */
static ct_status choose_columns(const ct_dataset_options *options, const part *p, ct_rows train,
                                ct_dataset *out) {
    const char *ignored = options->ignored_columns != NULL ? options->ignored_columns : "";
    CT_TRY(ct_make(&out->columns, 1, "the columns of a table"));
    if (options->columns != NULL) return ct_columns_copy(options->columns, out->columns);
    return ct_columns_of(&p->table, p->label, ignored, train, out->columns);
}

/* A class alone can be learnt where other agents have others. */
static ct_status check_classes(const ct_dataset_options *options, const char *path,
                               const ct_dataset *d) {
    if (d->n_classes > 1 || options->is_agents) return CT_OK;
    return ct_fail(CT_IO, "%s: every row has the label '%s'; there must be two classes", path,
                   d->class_names);
}

/* Both parts: train.csv and test.csv, or one file of which some rows are held out. An agent may have
 * nothing to test on. */
static ct_status open_both(const ct_dataset_options *options, const files *f, part *parts,
                           ct_dataset *out) {
    bool has_test = f->test.text[0] != '\0', may_lack = options->is_agents;
    CT_SCOPED_BLOCK(bool) is_test = NULL;
    if (f->train.text[0] == '\0')
        return ct_fail(CT_IO, "%s: there is no train.csv beside test.csv", out->source);
    CT_TRY(read_part(options, f->train.text, options->label, &parts[0]));
    const char *label = ct_table_name(&parts[0].table, parts[0].label);
    if (has_test) CT_TRY(read_part(options, f->test.text, label, &parts[1]));
    CT_TRY(find_classes(parts, has_test ? 2 : 1, out));
    CT_TRY(check_classes(options, f->train.text, out));
    if (!has_test && may_lack && options->test_fraction == 0)
        CT_TRY(ct_make(&is_test, parts[0].table.n_rows, f->train.text)); /* none */
    else if (!has_test)
        CT_TRY(hold_out(options, &parts[0], out->n_classes, &is_test));
    CT_TRY(choose_columns(options, &parts[0], (ct_rows){is_test, false}, out));
    CT_TRY(encode(options, &parts[0], out->columns, (ct_rows){is_test, false}, &out->train));
    CT_TRY(encode(options, &parts[has_test], out->columns, (ct_rows){is_test, true}, &out->test));
    if (out->test.n > 0 || may_lack) return CT_OK;
    return ct_fail(CT_IO, "%s: no class has two rows: nothing can be held out for testing",
                   f->train.text);
}

/* The test part alone, for a model with columns of its own: test.csv, else all rows, or those that
 * training holds out. */
static ct_status open_test(const ct_dataset_options *options, const files *f, part *p,
                           ct_dataset *out) {
    bool has_test = f->test.text[0] != '\0';
    CT_SCOPED_BLOCK(bool) is_test = NULL;
    CT_TRY(read_part(options, has_test ? f->test.text : f->train.text, options->label, p));
    CT_TRY(find_classes(p, 1, out));
    if (!has_test && options->test_fraction > 0)
        CT_TRY(hold_out(options, p, out->n_classes, &is_test));
    CT_TRY(choose_columns(options, p, (ct_rows){NULL, false}, out));
    CT_TRY(encode(options, p, out->columns, (ct_rows){is_test, true}, &out->test));
    out->train = (ct_images){.channels = 1, .height = 1, .width = out->test.width};
    return CT_OK;
}

ct_status ct_dataset_open_csv(const ct_dataset_options *options, ct_dataset *out) {
    const char *dir;
    files f;
    CT_TRY(ct_data_dir(out, options, "give the table with @data-dir FILE.csv", &dir));
    CT_TRY(find_files(dir, &f));
    snprintf(out->source, sizeof out->source, "%s", dir);
    out->std[0] = 1; /* the encoding has normalised them */
    part parts[2] = {{.labels = NULL}};
    bool only_test = options->only_test && options->columns != NULL;
    ct_status status =
        only_test ? open_test(options, &f, parts, out) : open_both(options, &f, parts, out);
    for (int k = 0; k < 2; k++) part_free(&parts[k]);
    return status;
}
