/* A study as a page: its table and figures, and below them the report of all its runs. */
#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/memory.h"

#define MAX_DRAWING  ((size_t)16 << 20)
#define MAX_DETAILED 6 /* groups of runs with figures of their own: a page stays small */

/* A figure as it lies in --out; nothing where there was nothing to draw. */
static ct_status add_figure(const ct_study *study, const char *name, ct_text *out) {
    ct_blob svg = {0};
    char file[CT_STUDY_LABEL];
    snprintf(file, sizeof file, "%s.svg", name);
    if (!ct_dir_has(study->out, file)) return CT_OK;
    CT_TRY(ct_file_read(ct_path_in(study->out, file).text, MAX_DRAWING, &svg));
    ct_text_add(out, "<figure id=\"%s-box\"%s><div class=\"drawing\">%s</div></figure>\n", name,
                study->figure.kind == CT_FIGURE_DOTS ? " class=\"wide\"" : "",
                (const char *)svg.bytes);
    ct_blob_free(&svg);
    return CT_OK;
}

static ct_status add_figures(const ct_study *study, ct_text *out) {
    char name[CT_STUDY_LABEL];
    ct_text_add(out, "<div class=\"figures\">\n");
    if (study->figure.kind != CT_FIGURE_CURVES) {
        CT_TRY(add_figure(study, "figure", out));
    } else {
        for (int k = 0; k < study->n_curves; k++) {
            snprintf(name, sizeof name, "figure-%s", study->curves[k]->name);
            CT_TRY(add_figure(study, name, out));
        }
    }
    ct_text_add(out, "</div>\n");
    return CT_OK;
}

/* Directories of the finished runs, in the table's order. */
static int find_runs(const ct_study *study, const char **out) {
    int n = 0;
    for (int k = 0; k < study->n_rows; k++)
        for (int column = 0; column < study->n_columns; column++) {
            const ct_cell *cell = ct_study_cell_of(study, study->order[k], column);
            if (cell != NULL && cell->state == CT_CELL_DONE) out[n++] = cell->config.out;
        }
    return n;
}

/* Runs are named as seen from the page, so that it does not tell where on a machine they lay. */
static void shorten_paths(const ct_study *study, ct_report *report) {
    size_t n = strlen(study->out);
    while (n > 1 && study->out[n - 1] == '/') n--;
    for (int k = 0; k < report->n_runs; k++) {
        char *path = report->runs[k].path;
        if (strncmp(path, study->out, n) != 0 || path[n] != '/') continue;
        const char *inside = path + n + strspn(path + n, "/");
        memmove(path, inside, strlen(inside) + 1);
    }
}

static ct_status write_page(const ct_study *study, const char *const *runs, int n_runs) {
    ct_report report = {0};
    ct_text intro = {0}, page = {0};
    ct_status status = ct_report_load(runs, n_runs, &report);
    if (status == CT_OK) shorten_paths(study, &report);
    ct_text_add(&intro, "<section id=\"study\">\n");
    if (status == CT_OK) status = ct_study_add_html(study, &intro);
    if (status == CT_OK) status = add_figures(study, &intro);
    if (report.n_groups > MAX_DETAILED)
        ct_text_add(&intro, "<p class=\"note\">Splits, graphs and mistakes of every group of runs: "
                            "<code>crosstalk report</code> with this folder.</p>\n");
    ct_text_add(&intro, "</section>\n");
    if (status == CT_OK) status = ct_text_status(&intro);
    if (status == CT_OK) {
        ct_report_options options = {.title = study->title,
                                     .intro = intro.chars,
                                     .figures = {.no_ends = study->figure.kind == CT_FIGURE_DOTS,
                                                 .no_details = report.n_groups > MAX_DETAILED}};
        status = ct_report_page(&report, &options, &page);
    }
    if (status == CT_OK) status = ct_study_write_file(study, "report.html", &page);
    ct_text_free(&intro);
    ct_text_free(&page);
    ct_report_free(&report);
    return status;
}

ct_status ct_study_write_page(const ct_study *study) {
    const char **runs = ct_new(const char *, (size_t)study->n_cells + 1);
    if (runs == NULL) return ct_no_memory("a page");
    int n_runs = find_runs(study, runs);
    ct_status status = n_runs > 0 ? write_page(study, runs, n_runs) : CT_OK;
    ct_free(runs);
    return status;
}
