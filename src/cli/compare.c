/* Several methods on the same data, graph and seeds, one after the other, and a table of how they
 * did and what they cost. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "algo/algo.h"
#include "cli/cli.h"
#include "run/run.h"
#include "study/study.h"
#include "transport/transport.h"
#include "util/file.h"
#include "util/json.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/text.h"

#define MAX_ROWS 64

void ct_cli_compare_help(FILE *out) {
    fputs(
        "usage: crosstalk compare --algorithms A,B,C [--option value ...]\n\n"
        "Trains every method with the same data, graph and seeds (options are those of crosstalk\n"
        "train) and prints a table; --out gets a run directory for each, compare.md and\n"
        "compare.csv. A method is NAME[+ccl][:option=value]..., all stands for every algorithm:\n"
        "  crosstalk compare --algorithms dsgdm,ccl,gt+ccl,gt:lr=0.05:momentum=0 --seeds 1,2,3\n"
        "One that diverges gets a row that says so, and the others go on. After an interruption\n"
        "the same command goes on: what is finished is kept. Methods may be added to a table;\n"
        "one that lacks a method of the table in --out replaces it only with --force. For one\n"
        "process.\n",
        out);
}

typedef struct row {
    char label[CT_CONFIG_TEXT]; /* as given */
    ct_cell cell;               /* a run like those of studies */
} row;

typedef struct comparison {
    ct_config base;
    row *rows; /* [MAX_ROWS] */
    int n_rows;
    ct_study_data data;
} comparison;

/* ---- rows ---- */

/* An option that a method may have: not what makes a run several, or another one's. */
static ct_status set_own(ct_config *config, const char *option, const char *value) {
    const char *name = ct_config_name(option);
    bool is_several = name != NULL && (strcmp(name, "seeds") == 0 || strcmp(name, "lambdas") == 0);
    if (is_several || ct_config_is_single(option))
        return ct_fail(CT_INVAL, "--algorithms: '%s' has no place in a method", name);
    return ct_config_set(config, option, value);
}

/* "name+ccl:option=value" into a config; the text is taken apart. */
static ct_status set_method(ct_config *config, char *text) {
    char *next = strchr(text, ':');
    if (next != NULL) *next++ = '\0';
    char *plus = strchr(text, '+');
    if (plus != NULL && strcmp(plus, "+ccl") != 0)
        return ct_fail(CT_INVAL, "--algorithms: '%s': only +ccl may follow a name", text);
    if (plus != NULL) *plus = '\0';
    CT_TRY(ct_config_set(config, "algorithm", text));
    if (plus != NULL) CT_TRY(ct_config_set(config, "loss", "ccl"));
    while (next != NULL) {
        char *option = next, *equals = strchr(option, '=');
        next = strchr(option, ':');
        if (next != NULL) *next++ = '\0';
        if (equals == NULL || (next != NULL && equals > next))
            return ct_fail(CT_INVAL, "--algorithms: '%s' is not of the form option=value", option);
        *equals = '\0';
        CT_TRY(set_own(config, option, equals + 1));
    }
    return CT_OK;
}

/* The run's directory: the label, with nothing in it that a path would mind. */
static ct_status name_dir(const comparison *c, row *r) {
    char name[CT_CONFIG_TEXT];
    size_t n = strlen(r->label);
    memcpy(name, r->label, n + 1);
    for (size_t k = 0; k < n; k++)
        if (!isalnum((unsigned char)name[k]) && strchr("+-.", name[k]) == NULL) name[k] = '_';
    ct_cell *cell = &r->cell;
    char *out = cell->config.out;
    snprintf(cell->name, sizeof cell->name, "%.*s", (int)sizeof cell->name - 1, r->label);
    int length = snprintf(out, sizeof cell->config.out, "%s/%s", c->base.out, name);
    if (length < 0 || (size_t)length >= sizeof cell->config.out)
        return ct_fail(CT_INVAL, "--out: the name is too long: %s", c->base.out);
    for (int k = 0; k < c->n_rows; k++)
        if (strcmp(c->rows[k].cell.config.out, out) == 0)
            return ct_fail(CT_INVAL, "--algorithms: %s and %s would both lie in %s",
                           c->rows[k].label, r->label, out);
    return CT_OK;
}

/* Names are checked here: a typing error costs no time. */
static ct_status add_row(void *context, const char *field) {
    comparison *c = context;
    const char *option;
    char text[CT_CONFIG_TEXT];
    if (c->n_rows == MAX_ROWS)
        return ct_fail(CT_INVAL, "--algorithms: at most %d methods", MAX_ROWS);
    row *r = &c->rows[c->n_rows];
    r->cell = (ct_cell){.config = c->base, .is_selected = true, .data = &c->data};
    snprintf(r->label, sizeof r->label, "%.*s", (int)sizeof r->label - 1, field);
    for (int k = 0; k < c->n_rows; k++)
        if (strcmp(c->rows[k].label, r->label) == 0)
            return ct_fail(CT_INVAL, "--algorithms: %s is there twice", field);
    snprintf(text, sizeof text, "%s", r->label);
    CT_TRY(set_method(&r->cell.config, text));
    CT_TRY(name_dir(c, r));
    CT_TRY(ct_config_check(&r->cell.config, &option));
    CT_TRY(ct_config_check_graph(&r->cell.config));
    c->n_rows++;
    return CT_OK;
}

static void add_name(void *context, const char *name, const char *text) {
    (void)text;
    ct_text *all = context;
    ct_text_add(all, "%s%s", all->n > 0 ? "," : "", name);
}

static ct_status add_rows(comparison *c, const char *list) {
    ct_text all = {0};
    if (strcmp(list, "all") != 0) return ct_split(list, add_row, c);
    ct_algo_each(add_name, &all);
    ct_text_add(&all, ",ccl");
    ct_status status = ct_text_status(&all);
    if (status == CT_OK) status = ct_split(all.chars, add_row, c);
    ct_text_free(&all);
    return status;
}

/* ---- results ---- */

static double number(const row *r, const char *key) {
    return ct_json_number(r->cell.summary, key);
}

/* The table's columns; those with a deviation show it where there were several seeds. */
static const struct {
    const char *title, *key, *deviation;
    double factor;
    int digits;
} columns[] = {
    {"consensus %", "consensus_accuracy", "consensus_accuracy_std", 100, 2},
    {"mean %", "local_accuracy_mean", "local_accuracy_mean_std", 100, 2},
    {"worst %", "local_accuracy_min", "local_accuracy_min_std", 100, 2},
    {"MiB/iteration", "mib_per_agent_per_iteration", NULL, 1, 3},
    {"MiB", "bytes_sent_per_agent", NULL, 1.0 / (1 << 20), 1},
    {"GMAC/iteration", "gmacs_per_agent_per_iteration", NULL, 1, 4},
    {"overhead", "compute_overhead", NULL, 1, 3},
    {"seconds", "seconds", NULL, 1, 1},
};
enum { N_COLUMNS = sizeof columns / sizeof *columns, WIDTH = 15 };

static void format_cell(const row *r, int column, char *out, size_t size) {
    double value = number(r, columns[column].key) * columns[column].factor;
    double spread = columns[column].deviation != NULL
                        ? number(r, columns[column].deviation) * columns[column].factor
                        : NAN;
    int digits = columns[column].digits;
    if (isnan(value))
        snprintf(out, size, "%s", column == 0 && r->cell.summary == NULL ? "diverged" : "-");
    else if (isnan(spread))
        snprintf(out, size, "%.*f", digits, value);
    else
        snprintf(out, size, "%.*f +- %.*f", digits, value, digits, spread);
}

static void add_header(ct_text *text, ct_text *markdown, ct_text *csv) {
    ct_text_add(text, "%-36s", "method");
    ct_text_add(markdown, "| method |");
    ct_text_add(csv, "method");
    for (int k = 0; k < N_COLUMNS; k++) {
        ct_text_add(text, " %*s", WIDTH, columns[k].title);
        ct_text_add(markdown, " %s |", columns[k].title);
        ct_text_add(csv, ",%s%s%s", columns[k].key, columns[k].deviation != NULL ? "," : "",
                    columns[k].deviation != NULL ? columns[k].deviation : "");
    }
    ct_text_add(text, "\n");
    ct_text_add(markdown, "\n|---|");
    for (int k = 0; k < N_COLUMNS; k++) ct_text_add(markdown, "---:|");
    ct_text_add(markdown, "\n");
    ct_text_add(csv, "\n");
}

static void add_csv_number(ct_text *csv, double value) {
    if (isnan(value))
        ct_text_add(csv, ",");
    else
        ct_text_add(csv, ",%.9g", value);
}

static void add_result(const row *r, ct_text *text, ct_text *markdown, ct_text *csv) {
    char cell[64];
    ct_text_add(text, "%-36.36s", r->label);
    ct_text_add(markdown, "| %s |", r->label);
    ct_text_add(csv, "%s", r->label);
    for (int k = 0; k < N_COLUMNS; k++) {
        format_cell(r, k, cell, sizeof cell);
        ct_text_add(text, " %*s", WIDTH, cell);
        ct_text_add(markdown, " %s |", cell);
        add_csv_number(csv, number(r, columns[k].key));
        if (columns[k].deviation != NULL) add_csv_number(csv, number(r, columns[k].deviation));
    }
    ct_text_add(text, "\n");
    ct_text_add(markdown, "\n");
    ct_text_add(csv, "\n");
}

static ct_status write_file(const char *dir, const char *name, const ct_text *text) {
    CT_TRY(ct_text_status(text));
    char *path = ct_path_join(dir, name);
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_write(path, text->chars, text->n);
    ct_free(path);
    return status;
}

static bool is_over(const row *r) {
    return r->cell.state == CT_CELL_DONE || r->cell.state == CT_CELL_DIVERGED;
}

/* The tables of the rows so far, so that a long comparison can be looked at while it runs. */
static ct_status write_tables(const comparison *c, bool is_last) {
    ct_text text = {0}, markdown = {0}, csv = {0};
    add_header(&text, &markdown, &csv);
    for (int k = 0; k < c->n_rows; k++)
        if (is_over(&c->rows[k])) add_result(&c->rows[k], &text, &markdown, &csv);
    ct_status status = ct_text_status(&text);
    if (status == CT_OK) status = write_file(c->base.out, "compare.md", &markdown);
    if (status == CT_OK) status = write_file(c->base.out, "compare.csv", &csv);
    if (status == CT_OK && is_last) fputs(text.chars, stdout);
    ct_text_free(&text);
    ct_text_free(&markdown);
    ct_text_free(&csv);
    return status;
}

/* ---- what is there ---- */

static bool has_row(const comparison *c, const char *label, size_t n) {
    for (int k = 0; k < c->n_rows; k++)
        if (strlen(c->rows[k].label) == n && memcmp(c->rows[k].label, label, n) == 0) return true;
    return false;
}

/* Every method of a table that is there stays in it. */
static ct_status check_methods(const comparison *c, const char *path, const char *csv) {
    const char *line = csv + strcspn(csv, "\n");
    for (line += *line == '\n'; *line != '\0'; line += *line == '\n') {
        size_t n = strcspn(line, ",\n");
        if (!has_row(c, line, n))
            return ct_fail(CT_IO,
                           "%s has %.*s, which --algorithms does not name; name another --out, or "
                           "replace it with --force",
                           path, (int)n, line);
        line += strcspn(line, "\n");
    }
    return CT_OK;
}

static ct_status check_table(const comparison *c) {
    ct_blob csv = {0};
    if (c->base.force || !ct_dir_has(c->base.out, "compare.csv")) return CT_OK;
    char *path = ct_path_join(c->base.out, "compare.csv");
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_read(path, (size_t)1 << 20, &csv);
    if (status == CT_OK) status = check_methods(c, path, (const char *)csv.bytes);
    ct_blob_free(&csv);
    ct_free(path);
    return status;
}

/* ---- running ---- */

static ct_status train_row(row *r, bool *is_stopped) {
    ct_note("--- %s%s", r->label, r->cell.state == CT_CELL_BEGUN ? " (interrupted before)" : "");
    CT_TRY(ct_cell_run(&r->cell, true, is_stopped));
    return ct_study_heed_signal(is_stopped);
}

static ct_status train_rows(comparison *c) {
    bool is_stopped = false;
    ct_status status = CT_OK;
    for (int k = 0; k < c->n_rows && status == CT_OK && !is_stopped; k++) {
        if (is_over(&c->rows[k])) continue;
        status = train_row(&c->rows[k], &is_stopped);
        if (status == CT_OK) status = write_tables(c, false);
    }
    return status;
}

/* What was stopped is not lost; the message says how to go on. */
static ct_status say_left(const comparison *c, ct_status status) {
    int n_left = 0;
    for (int k = 0; k < c->n_rows; k++) n_left += !is_over(&c->rows[k]);
    if (n_left == 0) return CT_OK;
    const char *are = n_left == 1 ? " is" : "s are";
    const char *how = c->base.force ? " without --force" : "";
    if (status == CT_STOPPED)
        return ct_fail(status, "stopped; %d method%s left: the same command%s goes on", n_left, are,
                       how);
    fprintf(stderr, "crosstalk: %d method%s left: the same command%s goes on\n", n_left, are, how);
    return CT_OK;
}

/* Takes --algorithms out of the arguments; the rest are the runs'. */
static ct_status own_options(int *n_args, char **args, const char **list) {
    int n_left = 0;
    for (int at = 0; at < *n_args; at++) {
        const char *value;
        CT_TRY(ct_cli_own_option(*n_args, args, &at, "algorithms", &value));
        if (value != NULL)
            *list = value;
        else
            args[n_left++] = args[at];
    }
    *n_args = n_left;
    if (*list == NULL)
        return ct_fail(CT_INVAL, "--algorithms names the methods, as in --algorithms dsgdm,gt,ccl");
    return CT_OK;
}

/* --out, or a name made of what is compared. */
static void name_out(ct_config *base) {
    if (base->out[0] != '\0') return;
    snprintf(base->out, sizeof base->out, "runs/compare-%.60s-%.30s%d", base->dataset,
             base->topology, (int)base->agents);
    for (char *at = base->out + strlen("runs/"); *at != '\0'; at++)
        if (*at == '/' || *at == ':') *at = '_';
}

static ct_status check_base(const ct_config *base) {
    if (base->lambdas[0] != '\0')
        return ct_fail(CT_INVAL, "--lambdas makes several runs of one; crosstalk sweep --lambda-m "
                                 "... compares them");
    if (ct_transport_n_launched() > 1)
        return ct_fail(CT_INVAL, "compare is for one process; start it without mpirun");
    if (base->resume[0] != '\0')
        return ct_fail(CT_INVAL, "--resume: an interrupted comparison goes on by itself");
    return CT_OK;
}

static ct_status compare(comparison *c, const char *list) {
    CT_TRY(check_base(&c->base));
    name_out(&c->base);
    CT_TRY(add_rows(c, list));
    if (c->n_rows == 0) return ct_fail(CT_INVAL, "--algorithms names no method");
    CT_TRY(check_table(c));
    for (int k = 0; k < c->n_rows; k++) CT_TRY(ct_cell_inspect(&c->rows[k].cell));
    CT_TRY(ct_dir_create(c->base.out));
    ct_error error;
    ct_status status = CT_CATCH(&error, train_rows(c));
    if (status != CT_OK && status != CT_STOPPED) return ct_fail_again(&error);
    CT_TRY(write_tables(c, true));
    return say_left(c, status);
}

ct_status ct_cli_compare(int n_args, char **args) {
    comparison c = {0};
    const char *list = NULL;
    int n_words;
    ct_config_init(&c.base);
    CT_TRY(own_options(&n_args, args, &list));
    CT_TRY(ct_cli_options(n_args, args, &c.base, NULL, 0, &n_words));
    CT_TRY(ct_run_name_data(&c.base));
    ct_cli_quiet(c.base.quiet);
    c.rows = ct_new(row, MAX_ROWS);
    if (c.rows == NULL) return ct_fail(CT_NOMEM, "no memory for %d methods", MAX_ROWS);
    ct_status status = compare(&c, list);
    for (int k = 0; k < c.n_rows; k++) ct_json_free(&c.rows[k].cell.summary);
    ct_study_data_free(&c.data);
    ct_free(c.rows);
    return status;
}
