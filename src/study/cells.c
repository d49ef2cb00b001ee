/* The runs of a study: every row with every column. */
#include <ctype.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "run/run.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/memory.h"

#define QUICK_PART 20 /* --quick takes this part of the epochs */

/* ---- values with an entry for every column ---- */

/* A value without | is every column's. */
static ct_status entry_of(const ct_study *study, const ct_setting *s, int column,
                          char out[CT_CONFIG_TEXT]) {
    int n = ct_parts_count(s->value);
    if (n > 1 && n != study->n_columns)
        return ct_fail(CT_IO, "%d entries for %d column%s", n, study->n_columns,
                       study->n_columns == 1 ? "" : "s");
    ct_parts_get(s->value, n > 1 ? column : 0, n, out, CT_CONFIG_TEXT);
    return CT_OK;
}

static ct_status apply_one(const ct_study *study, const ct_setting *s, int column,
                           ct_config *config) {
    char value[CT_CONFIG_TEXT];
    CT_TRY(entry_of(study, s, column, value));
    return ct_config_set(config, s->name, value);
}

static ct_status apply(const ct_study *study, const ct_settings *settings, int column,
                       ct_config *config) {
    for (int k = 0; k < settings->n; k++) {
        const ct_setting *s = &settings->items[k];
        CT_TRY_AT(study, s->line, apply_one(study, s, column, config));
    }
    return CT_OK;
}

/* "86.63 +- 0.52", "0.351" or "-" */
static ct_status read_paper(const ct_study *study, const ct_setting *paper, int column,
                            ct_estimate *out) {
    char text[CT_CONFIG_TEXT];
    *out = (ct_estimate){.mean = NAN, .deviation = NAN};
    CT_TRY(entry_of(study, paper, column, text));
    if (text[0] == '\0' || strcmp(text, "-") == 0) return CT_OK;
    char mean[64], deviation[64] = "";
    const char *sign = strstr(text, "+-");
    snprintf(mean, sizeof mean, "%.*s", (int)(sign != NULL ? sign - text : 60), text);
    if (sign != NULL) snprintf(deviation, sizeof deviation, "%.60s", sign + 2);
    bool ok = ct_parse_double(mean, &out->mean) &&
              (sign == NULL || ct_parse_double(deviation, &out->deviation));
    if (!ok) return ct_fail(CT_IO, "paper: '%s' is neither 86.63 +- 0.52, nor 0.351, nor -", text);
    const char *point = strchr(mean, '.');
    out->digits = point != NULL ? (int)strspn(point + 1, "0123456789") : 0;
    return CT_OK;
}

/* ---- one cell ---- */

/* Letters, digits and a few signs stay; what is between them becomes one dash. */
static void add_slug(char *out, size_t size, const char *label) {
    size_t n = strlen(out);
    for (; *label != '\0' && n + 2 < size; label++) {
        bool is_plain = isalnum((unsigned char)*label) || strchr("+._", *label) != NULL;
        if (is_plain)
            out[n++] = (char)tolower((unsigned char)*label);
        else if (n > 0 && out[n - 1] != '-')
            out[n++] = '-';
    }
    while (n > 0 && out[n - 1] == '-') n--;
    out[n] = '\0';
}

static void name_cell(const ct_study *study, bool is_row, ct_cell *cell) {
    cell->name[0] = '\0';
    const ct_study_line *row = &study->rows[cell->row];
    add_slug(cell->name, sizeof cell->name, row->name[0] != '\0' ? row->name : row->label);
    if (is_row || study->columns[cell->column].line == 0) return;
    size_t n = strlen(cell->name);
    if (n + 2 < sizeof cell->name) memcpy(cell->name + n, "-", 2);
    add_slug(cell->name, sizeof cell->name, study->columns[cell->column].label);
}

/* A list of one seed is that seed. */
static ct_status simplify_seeds(ct_config *config) {
    if (config->seeds[0] == '\0' || strchr(config->seeds, ',') != NULL) return CT_OK;
    CT_TRY(ct_config_set(config, "seed", config->seeds));
    config->seeds[0] = '\0';
    config->given[CT_OPT_seeds] = false;
    return CT_OK;
}

typedef struct search {
    const char *dataset;
    ct_path found; /* "": nothing yet */
} search;

/* imagenette-160 is named after imagenette. */
static ct_status look_for_data(void *context, const char *path, const char *name) {
    search *s = context;
    size_t n = strlen(s->dataset);
    bool fits = !isalnum((unsigned char)name[n]);
    if (fits && s->found.text[0] == '\0') snprintf(s->found.text, sizeof s->found.text, "%s", path);
    return CT_OK;
}

/* A study may need several data sets: --data-dir may be the folder that holds them all. Those that
 * the system has a place for (Fashion-MNIST) are taken from there if they are not in it. */
static void choose_data_dir(ct_config *config) {
    search s = {.dataset = config->dataset};
    const char *name = NULL;
    if (config->data_dir[0] == '\0') return;
    (void)CT_CATCH(NULL, ct_study_each_dir(config->data_dir, s.dataset, look_for_data, &s));
    size_t n = strlen(s.found.text);
    const ct_dataset_facts *facts = ct_dataset_facts_of(config->dataset);
    bool has_place = facts != NULL && facts->place != NULL;
    if (n > 0 && n < sizeof config->data_dir) {
        memcpy(config->data_dir, s.found.text, n + 1);
    } else if (has_place) {
        ct_dataset_options options = ct_run_data_options(config);
        bool is_known = CT_CATCH(NULL, ct_dataset_recognise(&options, &name)) == CT_OK;
        bool is_it = is_known && (strcmp(name, config->dataset) == 0 || strcmp(name, "idx") == 0);
        if (!is_it) config->data_dir[0] = '\0';
    }
}

static ct_status set_dir(const ct_study *study, ct_cell *cell) {
    ct_config *c = &cell->config;
    int n = snprintf(c->out, sizeof c->out, "%s/%s", study->out, cell->name);
    c->given[CT_OPT_out] = true;
    if (n > 0 && (size_t)n < sizeof c->out) return CT_OK;
    return ct_refuse("out", "the name is too long: %s", study->out);
}

/* Where the option's value of a cell was written; 0: on the command line, or nowhere. */
static int line_of(const ct_study *study, const ct_config *given, const ct_cell *cell,
                   const char *option) {
    const ct_study_line *row = &study->rows[cell->row];
    const ct_settings *places[] = {&row->options, &study->columns[cell->column].options,
                                   &study->options};
    if (option[0] == '\0') return row->line;
    if (ct_config_is_given(given, option)) return 0;
    for (int p = 0; p < 3; p++)
        for (int k = 0; k < places[p]->n; k++) {
            const char *name = ct_config_name(places[p]->items[k].name);
            if (name != NULL && strcmp(name, option) == 0) return places[p]->items[k].line;
        }
    return row->line;
}

/* A graph is made once for all cells that have it. */
static ct_status check_graph(const ct_study *study, const ct_config *c) {
    for (int k = 0; k < study->n_cells; k++) {
        const ct_config *before = &study->cells[k].config;
        if (!study->cells[k].is_selected) continue;
        if (before->agents == c->agents && strcmp(before->topology, c->topology) == 0) return CT_OK;
    }
    return ct_config_check_graph(c);
}

static ct_status check_options(const ct_study *study, const ct_config *c, const char **option) {
    CT_TRY(ct_config_check(c, option));
    *option = "topology";
    return check_graph(study, c);
}

/* A typing error costs no time: it is found before the first run begins. Tables of what is there
 * need none of it. */
static ct_status check_words(const ct_study *study, const ct_config *given,
                             const ct_study_request *request, const ct_cell *cell) {
    const ct_config *c = &cell->resolved;
    const char *option = "";
    bool is_done = !c->force && ct_record_has(c->out, CT_FILE_SUMMARY);
    if (request->table_only || !cell->is_selected || is_done) return CT_OK;
    ct_error error;
    if (CT_CATCH(&error, check_options(study, c, &option)) == CT_OK) return CT_OK;
    if (error.about[0] != '\0') option = error.about;
    return ct_study_fail_at(study, line_of(study, given, cell, option), &error);
}

/* The only place where a cell's options are resolved. --quick takes fewer epochs than they say. */
static ct_status resolve(const ct_study *study, const ct_config *given,
                         const ct_study_request *request, ct_cell *cell) {
    char text[32];
    ct_error error;
    cell->resolved = cell->config;
    if (CT_CATCH(&error, ct_config_choose(&cell->resolved)) != CT_OK)
        return ct_study_fail_at(study, line_of(study, given, cell, error.about), &error);
    int64_t all = cell->resolved.epochs;
    int64_t n = request->quick_epochs > 0 ? request->quick_epochs : all / QUICK_PART;
    if (!request->is_quick || n >= all) return CT_OK;
    snprintf(text, sizeof text, "%lld", (long long)(n > 1 ? n : 1));
    CT_TRY(ct_config_set(&cell->config, "epochs", text));
    return ct_config_set(&cell->resolved, "epochs", text);
}

static ct_status configure(const ct_study *study, const ct_config *given,
                           const ct_study_request *request, ct_cell *cell) {
    const ct_study_line *row = &study->rows[cell->row];
    ct_config *c = &cell->config;
    ct_config_init(c);
    if (study->is_comparison) ct_config_override(c, given);
    CT_TRY(apply(study, &study->options, cell->column, c));
    CT_TRY(apply(study, &study->columns[cell->column].options, cell->column, c));
    CT_TRY(apply(study, &row->options, cell->column, c));
    if (!study->is_comparison) ct_config_override(c, given);
    CT_TRY(simplify_seeds(c));
    choose_data_dir(c);
    CT_TRY(ct_run_name_data(c));
    CT_TRY(set_dir(study, cell));
    CT_TRY(resolve(study, given, request, cell));
    CT_TRY(check_words(study, given, request, cell));
    CT_TRY_AT(study, row->paper.line, read_paper(study, &row->paper, cell->column, &cell->paper));
    return CT_OK;
}

/* ---- all of them ---- */

typedef struct selection {
    const ct_cell *cell;
    bool fits;
} selection;

static ct_status try_pattern(void *context, const char *pattern) {
    selection *s = context;
    s->fits = s->fits || strstr(s->cell->name, pattern) != NULL ||
              fnmatch(pattern, s->cell->name, 0) == 0;
    return CT_OK;
}

static ct_status select_cell(ct_cell *cell, const char *only) {
    selection s = {cell, only == NULL};
    if (only != NULL) CT_TRY(ct_split(only, try_pattern, &s));
    cell->is_selected = s.fits;
    return CT_OK;
}

/* A directory in --out that is neither --out itself nor one of ours for other things. */
static bool is_usable(const char *name) {
    static const char *const ours[] = {"reused",      "reused-part", "table.md",
                                       "table.csv",   "table.tex",   "curves.csv",
                                       "report.html", "figure.svg",  "figure.png"};
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
        if (strcmp(name, ours[k]) == 0) return false;
    return name[strspn(name, ".")] != '\0' && strncmp(name, CT_SHARED, strlen(CT_SHARED)) != 0;
}

static ct_status check_name(const ct_study *study, const ct_cell *cell) {
    if (!is_usable(cell->name))
        return ct_fail(CT_IO, "a run cannot lie in '%s'; give the row another label", cell->name);
    for (int k = 0; k < study->n_cells; k++)
        if (strcmp(study->cells[k].name, cell->name) == 0)
            return ct_fail(CT_IO, "the runs of two rows would both be called '%s'", cell->name);
    return CT_OK;
}

/* +, - or < of a place */
static ct_status kind_of(const ct_study *study, const ct_setting *cells, int column, int *out) {
    char text[CT_CONFIG_TEXT];
    CT_TRY(entry_of(study, cells, column, text));
    bool ok = strlen(text) == 1 && strchr("+-<", text[0]) != NULL && (column > 0 || *text != '<');
    if (!ok)
        return ct_fail(CT_IO,
                       "cells: '%s' is none of + (a run), - (none), < (the run of the cell before)",
                       text);
    *out = text[0];
    return CT_OK;
}

static ct_status add_cell(ct_study *study, const ct_config *given, const ct_study_request *request,
                          int row, int column, bool is_row) {
    ct_cell *cell = &study->cells[study->n_cells];
    *cell = (ct_cell){.row = row, .column = column, .data = &study->data};
    name_cell(study, is_row, cell);
    CT_TRY_AT(study, study->rows[row].line, check_name(study, cell));
    CT_TRY(select_cell(cell, request->only));
    CT_TRY(configure(study, given, request, cell));
    study->n_cells++;
    return CT_OK;
}

static ct_status add_row(ct_study *study, const ct_config *given, const ct_study_request *request,
                         int row) {
    const ct_setting *cells = &study->rows[row].cells;
    int *at = &study->at[row * study->n_columns]; /* the kinds first, then the cells */
    bool is_row = true;                           /* one cell is all of it */
    for (int k = 0; k < study->n_columns; k++) {
        at[k] = '+';
        if (cells->line > 0) CT_TRY_AT(study, cells->line, kind_of(study, cells, k, &at[k]));
        is_row = is_row && at[k] == (k == 0 ? '+' : '<');
    }
    for (int k = 0; k < study->n_columns; k++) {
        int kind = at[k];
        at[k] = kind == '<' ? at[k - 1] : -1;
        if (kind != '+') continue;
        at[k] = study->n_cells;
        CT_TRY(add_cell(study, given, request, row, k, is_row));
    }
    return CT_OK;
}

static ct_status take_memory(ct_study *study) {
    size_t n = (size_t)study->n_rows * (size_t)study->n_columns;
    if (n > CT_STUDY_CELLS)
        return ct_fail(CT_INVAL, "%zu runs; a study has at most %d", n, CT_STUDY_CELLS);
    study->cells = ct_new(ct_cell, n);
    study->at = ct_new(int, n);
    study->order = ct_new(int, (size_t)study->n_rows);
    if (study->cells == NULL || study->at == NULL || study->order == NULL)
        return ct_no_memory("the runs of a study");
    for (int k = 0; k < study->n_rows; k++) study->order[k] = k;
    return CT_OK;
}

static void say_quick(ct_study *study) {
    int64_t least = INT64_MAX, most = 0;
    for (int k = 0; k < study->n_cells; k++) {
        int64_t n = study->cells[k].resolved.epochs;
        if (n < least) least = n;
        if (n > most) most = n;
    }
    char range[32] = "";
    if (least < most) snprintf(range, sizeof range, "%lld to ", (long long)least);
    snprintf(study->said, sizeof study->said, "quick: %s%lld epoch%s only, not what the paper ran",
             range, (long long)most, most == 1 ? "" : "s");
}

static ct_status say_options(ct_study *study, const ct_config *given) {
    ct_text text = {0};
    ct_config numbers = *given;
    ct_config_forget_local(&numbers);
    ct_config_print_command(&numbers, &text);
    ct_status status = ct_text_status(&text);
    if (status == CT_OK && text.n > 0) snprintf(study->with, sizeof study->with, "%s", text.chars);
    ct_text_free(&text);
    return status;
}

/* What nobody has said of the table. */
static ct_status complete(ct_study *s) {
    if (s->n_shown == 0) CT_TRY(ct_study_add_metrics("consensus", s->shown, &s->n_shown));
    if (s->n_columns == 0)
        CT_TRY(ct_study_add_line(&s->columns, &s->n_columns, s->shown[0]->title, 0));
    if (s->n_heads == 0) s->n_heads = 1;
    return CT_OK;
}

ct_status ct_study_build(ct_study *study, const ct_config *given, const ct_study_request *request) {
    bool is_any = false;
    CT_TRY(complete(study));
    CT_TRY(take_memory(study));
    for (int row = 0; row < study->n_rows; row++) CT_TRY(add_row(study, given, request, row));
    if (request->is_quick) say_quick(study);
    CT_TRY(say_options(study, given));
    CT_TRY(ct_figure_place_cells(study));
    for (int k = 0; k < study->n_cells; k++) is_any = is_any || study->cells[k].is_selected;
    if (is_any) return CT_OK;
    return ct_refuse("only", "@only '%s' fits none of the runs; @dry-run names them",
                     request->only != NULL ? request->only : "");
}
