/* The runs of a study: every row with every column. */
#include <ctype.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "data/dataset.h"
#include "data/partition.h"
#include "nn/graph.h"
#include "run/fault.h"
#include "run/run.h"
#include "run/schedule.h"
#include "schema/interval.h"
#include "study/axes.h"
#include "study/study_internal.h"
#include "topology/schedule.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/registry.h"

#define QUICK_PART 20 /* --quick takes this part of the epochs */

/* ---- values with an entry for every column ---- */

/* A value without | is every column's. */
static ct_status entry_of(const ct_study *study, const ct_setting *s, int column,
                          char out[CT_CONFIG_TEXT]) {
    int n = ct_count_parts(s->value, '|');
    if (n > 1 && n != study->n_columns)
        return ct_fail(CT_IO, "%d entries for %d column%s", n, study->n_columns,
                       study->n_columns == 1 ? "" : "s");
    ct_parts_get(s->value, n > 1 ? column : 0, n, out, CT_CONFIG_TEXT);
    return CT_OK;
}

/* "86.63 +- 0.52", "0.351" or "-" */
static ct_status read_paper(const ct_study *study, const ct_setting *paper, int column,
                            ct_estimate *out) {
    char text[CT_CONFIG_TEXT];
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
    CT_TRY(ct_config_put(config, "seed", config->seeds));
    ct_config_unset(config, CT_OPT_seeds);
    return CT_OK;
}

/* The directory inside that is named after the data set, as imagenette-160 is after imagenette. */
static ct_status find_data(const char *dir, const char *dataset, ct_path *out) {
    CT_SCOPED(ct_name_list) names = {0};
    CT_TRY(ct_study_list_names(dir, dataset, "", &names));
    for (int k = 0; k < names.n; k++) {
        *out = ct_path_in(dir, names.name[k]);
        bool is_it = !isalnum((unsigned char)names.name[k][strlen(dataset)]);
        if (is_it && ct_dir_exists(out->text)) return CT_OK;
    }
    *out = (ct_path){""};
    return CT_OK;
}

/* A study may need several data sets: --data-dir may be the folder that holds them all. Those that
 * the system has a place for (Fashion-MNIST) are taken from there if they are not in it. */
static ct_status choose_data_dir(ct_config *config) {
    ct_path found;
    const char *name = NULL;
    if (config->data_dir[0] == '\0') return CT_OK;
    const ct_dataset_facts *facts = ct_dataset_facts_of(config->dataset);
    CT_TRY(find_data(config->data_dir, config->dataset, &found));
    if (found.text[0] != '\0' && strlen(found.text) < sizeof config->data_dir) {
        memcpy(config->data_dir, found.text, sizeof config->data_dir);
    } else if (facts != NULL && facts->place != NULL) {
        ct_dataset_options options = ct_run_data_options(config);
        ct_status status = CT_CATCH(NULL, ct_dataset_recognise(&options, &name));
        if (status == CT_NOMEM) return ct_no_memory(config->data_dir);
        bool is_it =
            status == CT_OK && (strcmp(name, config->dataset) == 0 || strcmp(name, "idx") == 0);
        if (!is_it) config->data_dir[0] = '\0';
    }
    return CT_OK;
}

static ct_status set_dir(const ct_study *study, ct_cell *cell) {
    ct_config *c = &cell->config;
    int n = snprintf(c->out, sizeof c->out, "%s/%s", study->out, cell->name);
    c->given[CT_OPT_out] = true;
    if (n > 0 && (size_t)n < sizeof c->out) return CT_OK;
    return ct_refuse("out", "the name is too long: %s", study->out);
}

/* ---- its options ---- */

/* What a cell's options are made of: the command line's, and the line of the file that each was
 * written in; the row's where none has it, 0 for the command line. */
typedef struct sources {
    const ct_config *given;
    int lines[CT_N_OPTIONS];
} sources;

/* With the place where the option was written that the error is about, or else this one. */
static ct_status fail_about(const ct_study *study, const ct_cell *cell, const sources *from,
                            const char *option, ct_error *error) {
    const ct_option *o = ct_schema_find(error->about[0] != '\0' ? error->about : option);
    int line = o != NULL ? from->lines[o - ct_run_options] : study->rows[cell->row].line;
    return ct_study_fail_at(study, line, error);
}

static ct_status apply_one(const ct_study *study, const ct_setting *s, ct_cell *cell) {
    char value[CT_CONFIG_TEXT];
    CT_TRY(entry_of(study, s, cell->column, value));
    return ct_config_put(&cell->config, s->name, value);
}

/* The settings of a section. */
static ct_status apply(const ct_study *study, int row, int column, ct_cell *cell, sources *from) {
    for (int k = 0; k < study->n_settings; k++) {
        const ct_setting *s = &study->settings[k];
        bool is_of_cells = strcmp(s->name, "paper") == 0 || strcmp(s->name, "cells") == 0;
        if (s->row != row || s->column != column || (row != CT_ANY && is_of_cells)) continue;
        bool is_of_column = strcmp(s->name, "splits") == 0 || strcmp(s->name, "tuned-in") == 0;
        if (row == CT_ANY && column != CT_ANY && is_of_column) continue;
        if (strcmp(s->name, "tune") == 0) {
            CT_TRY_AT(study, s->line, entry_of(study, s, cell->column, cell->tune));
            continue;
        }
        CT_TRY_AT(study, s->line, apply_one(study, s, cell));
        from->lines[ct_schema_find(s->name) - ct_run_options] = s->line;
    }
    return CT_OK;
}

static ct_status apply_all(const ct_study *study, ct_cell *cell, sources *from) {
    ct_config_init(&cell->config);
    for (int id = 0; id < CT_N_OPTIONS; id++) from->lines[id] = study->rows[cell->row].line;
    if (study->is_comparison) ct_config_override(&cell->config, from->given);
    CT_TRY(apply(study, CT_ANY, CT_ANY, cell, from));
    CT_TRY(apply(study, CT_ANY, cell->column, cell, from));
    CT_TRY(apply(study, cell->row, CT_ANY, cell, from));
    if (study->is_comparison) return CT_OK;
    ct_config_override(&cell->config, from->given);
    for (int id = 0; id < CT_N_OPTIONS; id++)
        if (from->given->given[id]) from->lines[id] = 0;
    return CT_OK;
}

/* ---- words that a run would refuse as soon as it begins ---- */

typedef struct search {
    const char *name;
    bool is_there;
} search;

static void look(void *context, const char *name, const char *text) {
    search *s = context;
    (void)text;
    s->is_there = s->is_there || strcmp(s->name, name) == 0;
}

static ct_status check_listed(const char *option, const char *name, ct_registry_each list) {
    search s = {name, false};
    list(look, &s);
    return s.is_there ? CT_OK : ct_unknown_name(option, name, NULL, list);
}

/* Names and lists that a run would refuse before it reads its data. */
static ct_status check_names(const ct_config *c) {
    static const uint64_t seed;
    char model[CT_CONFIG_TEXT];
    const ct_algo *algo;
    ct_shape usual;
    ct_lr_schedule lr;
    ct_faults faults;
    ct_interval interval = {0};
    CT_TRY(ct_algo_find(c->algorithm, &algo));
    /* what is behind the colon depends on the data */
    snprintf(model, sizeof model, "%.*s", (int)strcspn(c->model, ":"), c->model);
    CT_TRY(ct_model_usual_input(model, &usual));
    CT_TRY(check_listed("dataset", c->dataset, ct_dataset_each));
    if (c->partition_file[0] == '\0')
        CT_TRY(check_listed("partition", c->partition, ct_partition_each));
    CT_TRY(ct_lr_schedule_create(c, &lr));
    if (c->fault[0] != '\0') CT_TRY(ct_fault_parse(c, &seed, &faults));
    return ct_interval_parse(c->checkpoint_every, &interval);
}

static ct_status check_graph(const ct_config *config) {
    uint64_t seed = (uint64_t)config->seed;
    int n = (int)config->agents;
    CT_SCOPED(ct_schedule) schedule = {0};
    CT_SCOPED(ct_topology) graph = {0};
    if (ct_schedule_is_known(config->topology))
        return ct_schedule_create(config->topology, n, &seed, 1, &schedule);
    return ct_topology_create(config->topology, n, seed, &graph);
}

/* The words of a run. A graph is made once for all cells that have it. */
static ct_status check_options(const ct_study *study, const ct_config *c) {
    CT_TRY(check_names(c));
    for (int k = 0; k < study->n_cells; k++) {
        const ct_config *before = &study->cells[k].config;
        if (!study->cells[k].is_selected) continue;
        if (before->agents == c->agents && strcmp(before->topology, c->topology) == 0) return CT_OK;
    }
    return check_graph(c);
}

/* A typing error costs no time: it is found before the first run begins. Tables of what is there
 * need none of it. */
static ct_status check_words(const ct_study *study, const ct_cell *cell, const sources *from) {
    const ct_config *c = &cell->resolved;
    ct_error error;
    bool is_done = false;
    if (study->request.table_only || !cell->is_selected) return CT_OK;
    if (!c->force) CT_TRY(ct_record_holds(c->out, CT_FILE_SUMMARY, &is_done));
    if (is_done) return CT_OK;
    if (CT_CATCH(&error, check_options(study, c)) == CT_OK) return CT_OK;
    return fail_about(study, cell, from, "topology", &error);
}

/* The only place where a cell's options are resolved. --quick takes fewer epochs than they say. */
static ct_status resolve(const ct_study *study, ct_cell *cell, const sources *from) {
    const ct_study_request *r = &study->request;
    char text[32];
    ct_error error;
    cell->resolved = cell->config;
    if (CT_CATCH(&error, ct_config_choose(&cell->resolved)) != CT_OK)
        return fail_about(study, cell, from, "", &error);
    int64_t all = cell->resolved.epochs;
    int64_t n = r->quick_epochs > 0 ? r->quick_epochs : all / QUICK_PART;
    if (!r->is_quick || n >= all) return CT_OK;
    snprintf(text, sizeof text, "%lld", (long long)(n > 1 ? n : 1));
    CT_TRY(ct_config_put(&cell->config, "epochs", text));
    return ct_config_put(&cell->resolved, "epochs", text);
}

ct_status ct_cell_resolve(const ct_study *study, ct_cell *cell) {
    sources from = {.given = &cell->config};
    for (int id = 0; id < CT_N_OPTIONS; id++) from.lines[id] = study->rows[cell->row].line;
    return resolve(study, cell, &from);
}

/* The words of its tuning; an option is tuned or has a value. */
static ct_status check_tuning(const ct_study *study, ct_cell *cell) {
    CT_SCOPED_BLOCK(ct_axes) axes = NULL;
    char option[64];
    if (strcmp(cell->tune, "none") == 0 || study->tune.n_rungs == 0) cell->tune[0] = '\0';
    cell->is_waiting = cell->tune[0] != '\0';
    if (!cell->is_waiting) return CT_OK;
    CT_TRY(ct_make(&axes, 1, "what is tuned"));
    CT_TRY(ct_axes_add_grid(axes, "tune", cell->tune));
    for (int a = 0; a < axes->n; a++)
        for (int i = 0; ct_axis_option(axes->axes[a].name, i, option, sizeof option), option[0];
             i++)
            if (ct_config_is_given(&cell->config, option))
                return ct_refuse(option, "@%s is tuned; it cannot have a value as well", option);
    return CT_OK;
}

static ct_status configure(const ct_study *study, const ct_config *given, ct_cell *cell) {
    sources from = {.given = given};
    const ct_setting *paper = ct_study_setting(study, cell->row, CT_ANY, "paper");
    CT_TRY(apply_all(study, cell, &from));
    CT_TRY(simplify_seeds(&cell->config));
    cell->takes_more_seeds = study->baseline[0] != '\0';
    cell->config.hides_test = study->request.hides_test;
    CT_TRY_AT(study, study->rows[cell->row].line, check_tuning(study, cell));
    CT_TRY(choose_data_dir(&cell->config));
    CT_TRY(ct_run_name_data(&cell->config));
    CT_TRY(set_dir(study, cell));
    CT_TRY(resolve(study, cell, &from));
    CT_TRY(check_words(study, cell, &from));
    if (paper != NULL)
        CT_TRY_AT(study, paper->line, read_paper(study, paper, cell->column, &cell->paper));
    return CT_OK;
}

/* ---- all of them ---- */

static ct_status try_pattern(void *context, const char *pattern) {
    ct_cell *cell = context;
    bool fits = strstr(cell->name, pattern) != NULL || fnmatch(pattern, cell->name, 0) == 0;
    cell->is_selected = cell->is_selected || fits;
    return CT_OK;
}

/* A directory in --out that is neither --out itself nor one of ours for other things. */
static bool is_usable(const char *name) {
    static const char *const ours[] = {"reused",     "reused-part", "table.md",    "table.csv",
                                       "table.tex",  "curves.csv",  "report.html", "figure.svg",
                                       "figure.png", "tune",        "tuned.md",    "tuned.csv",
                                       "tuned.tex",  "versus.md",   "versus.csv",  "versus.tex",
                                       "ranks.md",   "ranks.csv",   "ranks.tex"};
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

static ct_status add_cell(ct_study *study, const ct_config *given, int row, int column,
                          bool is_row) {
    ct_cell *cell = &study->cells[study->n_cells];
    *cell = (ct_cell){.row = row, .column = column, .data = &study->data, .paper = {NAN, NAN, 0}};
    name_cell(study, is_row, cell);
    CT_TRY_AT(study, study->rows[row].line, check_name(study, cell));
    cell->is_selected = study->request.only == NULL;
    if (!cell->is_selected) CT_TRY(ct_split(study->request.only, try_pattern, cell));
    CT_TRY(configure(study, given, cell));
    study->n_cells++;
    return CT_OK;
}

static ct_status add_row(ct_study *study, const ct_config *given, int row) {
    const ct_setting *cells = ct_study_setting(study, row, CT_ANY, "cells");
    int *at = &study->at[row * study->n_columns]; /* the kinds first, then the cells */
    bool is_row = true;                           /* one cell is all of it */
    for (int k = 0; k < study->n_columns; k++) {
        at[k] = '+';
        if (cells != NULL) CT_TRY_AT(study, cells->line, kind_of(study, cells, k, &at[k]));
        is_row = is_row && at[k] == (k == 0 ? '+' : '<');
    }
    for (int k = 0; k < study->n_columns; k++) {
        int kind = at[k];
        at[k] = kind == '<' ? at[k - 1] : -1;
        if (kind != '+') continue;
        at[k] = study->n_cells;
        CT_TRY(add_cell(study, given, row, k, is_row));
    }
    return CT_OK;
}

/* What nobody has said of the table, and room for its cells. */
static ct_status complete(ct_study *s) {
    if (s->n_shown == 0) CT_TRY(ct_study_add_metrics("consensus", s->shown, &s->n_shown));
    if (s->n_columns == 0)
        CT_TRY(ct_study_add_line(&s->columns, &s->n_columns, s->shown[0]->title, 0));
    if (s->n_heads == 0) s->n_heads = 1;
    size_t n = (size_t)s->n_rows * (size_t)s->n_columns;
    if (n > CT_STUDY_CELLS)
        return ct_fail(CT_INVAL, "%zu runs; a study has at most %d", n, CT_STUDY_CELLS);
    CT_TRY(ct_make(&s->cells, n, "the runs of a study"));
    CT_TRY(ct_make(&s->at, n, "the runs of a study"));
    CT_TRY(ct_make(&s->order, (size_t)s->n_rows, "the rows of a study"));
    for (int k = 0; k < s->n_rows; k++) s->order[k] = k;
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
    CT_SCOPED(ct_text) text = {0};
    ct_config numbers = *given;
    ct_config_forget_local(&numbers);
    ct_config_print_command(&numbers, &text);
    if (text.n > 0) snprintf(study->with, sizeof study->with, "%s", text.chars);
    return ct_text_status(&text);
}

ct_status ct_study_build(ct_study *study, const ct_config *given, const ct_study_request *request) {
    study->request = *request;
    CT_TRY(complete(study));
    for (int row = 0; row < study->n_rows; row++) CT_TRY(add_row(study, given, row));
    CT_TRY(ct_tune_link(study));
    CT_TRY(ct_tune_check(study));
    if (request->is_quick) say_quick(study);
    CT_TRY(say_options(study, given));
    CT_TRY(ct_figure_place_cells(study));
    for (int k = 0; k < study->n_cells; k++)
        if (study->cells[k].is_selected) return CT_OK;
    return ct_refuse("only", "@only '%s' fits none of the runs; @dry-run names them",
                     request->only != NULL ? request->only : "");
}
