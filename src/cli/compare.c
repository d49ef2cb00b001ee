/* Several methods on the same data, graph and seeds: a study whose rows are the methods. */
#include <ctype.h>
#include <string.h>

#include "algo/algo.h"
#include "cli/cli.h"
#include "cli/studies.h"
#include "run/run.h"
#include "util/file.h"

#define METRICS "consensus,mean,worst,mib-iteration,mib,gmac,overhead,seconds"

void ct_cli_compare_help(FILE *out) {
    fputs(
        "usage: crosstalk compare --algorithms A,B,C [--option value ...]\n\n"
        "Trains every method with the same data, graph and seeds (options are those of crosstalk\n"
        "train) and prints a table; --out gets a run directory for each, compare.md, compare.csv,\n"
        "compare.tex and report.html. A method is NAME[+ccl][:option=value]..., all stands for\n"
        "every algorithm:\n"
        "  crosstalk compare --algorithms dsgdm,ccl,gt+ccl,gt:lr=0.05:momentum=0 --seeds 1,2,3\n"
        "One that diverges gets a row that says so, and the others are trained. After an\n"
        "interruption the same command resumes: what is finished is kept. Methods may be added to\n"
        "a table; leaving out a method that is already in it requires --force. For one process.\n",
        out);
    ct_own_help("compare", out);
    ct_own_help("study", out);
}

static ct_status add_option(ct_settings *options, char *text) {
    char *equals = strchr(text, '=');
    if (equals == NULL)
        return ct_fail(CT_INVAL, "--algorithms: '%s' is not of the form option=value", text);
    *equals = '\0';
    const char *name = ct_config_name(text) != NULL ? ct_config_name(text) : text;
    bool is_several = strcmp(name, "seeds") == 0 || strcmp(name, "lambdas") == 0;
    if (is_several || ct_config_is_single(name))
        return ct_fail(CT_INVAL, "--algorithms: '%s' has no place in a method", name);
    return ct_settings_add(options, name, equals + 1, 0);
}

/* "name+ccl:option=value" as options of its row; the text is taken apart. */
static ct_status add_method(ct_settings *options, char *text) {
    char *next = strchr(text, ':');
    if (next != NULL) *next++ = '\0';
    char *plus = strchr(text, '+');
    if (plus != NULL && strcmp(plus, "+ccl") != 0)
        return ct_fail(CT_INVAL, "--algorithms: '%s': only +ccl may follow a name", text);
    if (plus != NULL) *plus = '\0';
    CT_TRY(ct_settings_add(options, "algorithm", text, 0));
    if (plus != NULL) CT_TRY(ct_settings_add(options, "loss", "ccl", 0));
    while (next != NULL) {
        char *option = next;
        next = strchr(option, ':');
        if (next != NULL) *next++ = '\0';
        CT_TRY(add_option(options, option));
    }
    return CT_OK;
}

static bool has_method(const ct_study *study, const char *label) {
    for (int k = 0; k < study->n_rows; k++)
        if (strcmp(study->rows[k].label, label) == 0) return true;
    return false;
}

static ct_status add_row(void *context, const char *field) {
    ct_study *study = context;
    char text[CT_STUDY_LABEL];
    size_t n = strlen(field);
    if (n >= sizeof text)
        return ct_fail(CT_INVAL, "--algorithms: %s is longer than %d characters", field,
                       CT_STUDY_LABEL - 1);
    if (has_method(study, field))
        return ct_fail(CT_INVAL, "--algorithms: %s is there twice", field);
    CT_TRY(ct_study_add_line(&study->rows, &study->n_rows, field, 0));
    ct_study_line *row = &study->rows[study->n_rows - 1];
    for (size_t k = 0; k <= n; k++) { /* the run's directory: nothing that a path would mind */
        bool is_plain = field[k] == '\0' || isalnum((unsigned char)field[k]);
        row->name[k] = is_plain || strchr("+-.", field[k]) != NULL ? field[k] : '_';
    }
    memcpy(text, field, n + 1);
    return add_method(&row->options, text);
}

static void add_name(void *context, const char *name, const char *text) {
    (void)text;
    ct_text_add(context, "%s,", name);
}

static ct_status add_rows(ct_study *study, const char *list) {
    ct_text all = {0};
    if (strcmp(list, "all") != 0) return ct_split(list, add_row, study);
    ct_algo_each(add_name, &all);
    ct_text_add(&all, "ccl");
    ct_status status = ct_text_status(&all);
    if (status == CT_OK) status = ct_split(all.chars, add_row, study);
    ct_text_free(&all);
    return status;
}

/* Every method of a table that is there stays in it. */
static ct_status check_table(const ct_study *study, const char *out) {
    ct_blob csv = {0};
    ct_status status = CT_OK;
    ct_path path = ct_path_in(out, "compare.csv");
    if (!ct_file_exists(path.text)) return CT_OK;
    CT_TRY(ct_file_read(path.text, (size_t)1 << 20, &csv));
    char *save, *line = strtok_r((char *)csv.bytes, "\n", &save); /* the headings */
    while (line != NULL && (line = strtok_r(NULL, "\n", &save)) != NULL && status == CT_OK) {
        line[strcspn(line, ",")] = '\0';
        if (!has_method(study, line))
            status = ct_fail(CT_IO,
                             "%s has %s, which --algorithms does not name; name another --out, or "
                             "replace it with --force",
                             path.text, line);
    }
    ct_blob_free(&csv);
    return status;
}

/* Its default of --out is made of what is compared. */
static ct_status build(ct_study *study, const char *list, const ct_config *given) {
    study->is_comparison = true;
    CT_TRY(add_rows(study, list));
    if (study->n_rows == 0) return ct_fail(CT_INVAL, "--algorithms names no method");
    CT_TRY(ct_study_add_metrics(METRICS, study->shown, &study->n_shown));
    snprintf(study->heads[study->n_heads++], CT_STUDY_LABEL, "method");
    snprintf(study->name, sizeof study->name, "compare");
    snprintf(study->title, sizeof study->title, "Methods on %.60s, %.30s of %d agents",
             given->dataset, given->topology, (int)given->agents);
    snprintf(study->out, sizeof study->out, "runs/compare-%.60s-%.30s%d", given->dataset,
             given->topology, (int)given->agents);
    for (char *at = study->out + strlen("runs/"); *at != '\0'; at++)
        if (*at == '/' || *at == ':') *at = '_';
    if (given->force) return CT_OK;
    return check_table(study, given->out[0] != '\0' ? given->out : study->out);
}

static ct_status run(ct_study *study, int n_args, char **args) {
    ct_study_request request = {0};
    ct_config given;
    ct_own own;
    int n_words;
    ct_config_init(&given);
    CT_TRY(ct_cli_study_options(&n_args, args, &request));
    CT_TRY(ct_own_take("compare", &n_args, args, &own));
    CT_TRY(ct_cli_options(n_args, args, &given, NULL, 0, &n_words));
    request.keep = true;
    const char *list = ct_own_text(&own, "algorithms");
    if (list == NULL)
        return ct_fail(CT_INVAL, "--algorithms names the methods, as in --algorithms dsgdm,gt,ccl");
    CT_TRY(ct_run_name_data(&given));
    if (given.lambdas[0] != '\0')
        return ct_fail(CT_INVAL, "--lambdas makes several runs of one; crosstalk sweep --lambda-m "
                                 "... compares them");
    CT_TRY(build(study, list, &given));
    return ct_cli_study(study, &given, &request);
}

ct_status ct_cli_compare(int n_args, char **args) {
    ct_study study = {0};
    ct_status status = run(&study, n_args, args);
    ct_study_free(&study);
    return status;
}
