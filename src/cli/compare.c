/* Several methods on the same data, graph and seeds: a study whose rows are the methods. */
#include <ctype.h>
#include <string.h>

#include "algo/algo.h"
#include "cli/cli.h"
#include "cli/studies.h"
#include "run/run.h"
#include "util/file.h"
#include "util/memory.h"

#define METRICS "consensus,mean,worst,mib-iteration,mib,gmac,overhead,seconds"

const ct_help ct_cli_compare_help = {
    .usage = "compare --algorithms A,B,C [--option value ...]",
    .text = "Trains several methods with the same data, graph and seeds, and prints one table. "
            "A method is NAME[+ccl][:option=value]...; all stands for every algorithm.\n\n"
            "A method that diverges gets a row that says so; the others are trained. After an "
            "interruption the same command resumes: finished runs are kept. Methods may be "
            "added to a table later. Leaving out a method that is already in the table "
            "requires --force. Runs in one process (no mpirun).",
    .takes = "dataset, data-dir, agents, topology, alpha, epochs, seeds, lr, out, force, quiet",
    .files = CT_HELP_PAIRS({"compare.md, .csv, .tex", "the table"},
                           {"report.html", "a page with all curves"},
                           {"METHOD/", "a run directory for every method"}),
    .examples = CT_HELP_PAIRS(
        {"Three methods on drawn shapes, in about ten seconds: 96 % each.",
         "crosstalk compare --algorithms dsgdm,qg-dsgdm,ccl --dataset shapes --agents 4 "
         "--epochs 10"},
        {"The same table as JSON, without training again.",
         "crosstalk compare --algorithms dsgdm,qg-dsgdm,ccl --dataset shapes --agents 4 "
         "--epochs 10 --table-only --json"},
        {"Options of one method alone: gradient tracking with another rate, beside CCL.",
         "crosstalk compare --algorithms ccl,gt:lr=0.05:momentum=0 --seeds 1,2,3"}),
    .also = "sweep, show, report, docs/ALGORITHMS.md"};

/* "option=value" of a row. */
static ct_status add_option(ct_study *study, int row, char *text) {
    char *value = strchr(text, '=');
    if (value == NULL)
        return ct_fail(CT_INVAL, "--algorithms: '%s' is not of the form option=value", text);
    *value++ = '\0';
    const ct_option *o = ct_schema_find(text);
    if (o != NULL && (o->roles & (CT_ROLE_WORLDS | CT_ROLE_SINGLE)) != 0)
        return ct_fail(CT_INVAL, "--algorithms: '%s' has no place in a method", o->name);
    return ct_study_set(study, row, text, value);
}

/* "name+ccl:option=value" as options of a row; the text is taken apart. */
static ct_status add_method(ct_study *study, int row, char *text) {
    char *name = strsep(&text, ":"), *loss = strchr(name, '+');
    if (loss != NULL && strcmp(loss, "+ccl") != 0)
        return ct_fail(CT_INVAL, "--algorithms: '%s': only +ccl may follow a name", name);
    if (loss != NULL) *loss = '\0';
    CT_TRY(ct_study_set(study, row, "algorithm", name));
    if (loss != NULL) CT_TRY(ct_study_set(study, row, "loss", "ccl"));
    while (text != NULL) CT_TRY(add_option(study, row, strsep(&text, ":")));
    return CT_OK;
}

static ct_status add_row(void *context, const char *field) {
    ct_study *study = context;
    char text[CT_STUDY_LABEL];
    size_t n = strlen(field);
    if (n >= sizeof text)
        return ct_fail(CT_INVAL, "--algorithms: %s is longer than %d characters", field,
                       CT_STUDY_LABEL - 1);
    if (ct_study_find_line(study->rows, study->n_rows, field) != NULL)
        return ct_fail(CT_INVAL, "--algorithms: %s is there twice", field);
    CT_TRY(ct_study_add_line(&study->rows, &study->n_rows, field, 0));
    char *name = study->rows[study->n_rows - 1].name; /* nothing that a path would mind */
    for (size_t k = 0; k < n; k++)
        name[k] = isalnum((unsigned char)field[k]) || strchr("+-.", field[k]) ? field[k] : '_';
    memcpy(text, field, n + 1);
    return add_method(study, study->n_rows - 1, text);
}

static void add_name(void *context, const char *name, const char *text) {
    (void)text;
    ct_text_add(context, "%s,", name);
}

/* "all": every name of an algorithm. */
static ct_status add_rows(ct_study *study, const char *list) {
    CT_SCOPED(ct_text) all = {0};
    if (strcmp(list, "all") != 0) return ct_split(list, add_row, study);
    ct_algo_each_name(add_name, &all);
    CT_TRY(ct_text_status(&all));
    all.chars[--all.n] = '\0';
    return ct_split(all.chars, add_row, study);
}

/* Every method of a table that is there stays in it. */
static ct_status check_table(const ct_study *study, const char *out) {
    CT_SCOPED(ct_blob) csv = {0};
    ct_path path = ct_path_in(out, "compare.csv");
    if (!ct_file_exists(path.text)) return CT_OK;
    CT_TRY(ct_file_read(path.text, CT_MAX_TEXT_BYTES, &csv));
    ct_lines lines = {.rest = (char *)csv.bytes, .end = (char *)csv.bytes + csv.n};
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        line[strcspn(line, ",")] = '\0';
        if (lines.number > 1 && ct_study_find_line(study->rows, study->n_rows, line) == NULL)
            return ct_fail(CT_IO,
                           "%s has %s, which --algorithms does not name; name another --out, or "
                           "replace it with --force",
                           path.text, line);
    }
    return CT_OK;
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
    return CT_OK;
}

ct_status ct_cli_compare(int n_args, char **args) {
    CT_SCOPED(ct_study) study = {0};
    ct_study_request request = {0};
    ct_config given;
    ct_own own;
    ct_config_init(&given);
    CT_TRY(ct_cli_study_options(&n_args, args, &request));
    CT_TRY(ct_own_take("compare", &n_args, args, &own));
    CT_TRY(ct_cli_options(n_args, args, &given, NULL, 0));
    request.keep = true;
    const char *list = ct_own_text(&own, "algorithms");
    if (list == NULL)
        return ct_fail(CT_INVAL, "--algorithms names the methods, as in --algorithms dsgdm,gt,ccl");
    CT_TRY(ct_run_name_data(&given));
    if (given.lambdas[0] != '\0')
        return ct_fail(CT_INVAL, "--lambdas makes several runs of one; crosstalk sweep --lambda-m "
                                 "... compares them");
    CT_TRY(build(&study, list, &given));
    return ct_cli_study(&study, &given, &request, check_table);
}
