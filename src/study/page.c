/* A study as a page: its table and figures, and below them the report of all its runs. */
#include <stdio.h>
#include <string.h>

#include "report/markup.h"
#include "report/report.h"
#include "study/study_internal.h"
#include "util/file.h"

#define MAX_DRAWING  ((size_t)16 << 20)
#define MAX_DETAILED 6 /* groups of runs with figures of their own: a page stays small */

static void add_drawing(const char *name, const char *heading, const char *svg, ct_text *out) {
    ct_markup_add(out, "<figure id='%s-box'>", name);
    if (heading[0] != '\0') ct_markup_add(out, "<h3>%s</h3>\n", heading);
    ct_text_add(out, "<div class=\"drawing\">%s</div></figure>\n", svg);
}

/* A figure as it lies in --out; nothing where there was nothing to draw. */
static ct_status add_figure(const ct_study *study, const char *name, ct_text *out) {
    CT_SCOPED(ct_blob) svg = {0};
    char file[CT_STUDY_LABEL];
    snprintf(file, sizeof file, "%s.svg", name);
    if (!ct_dir_has(study->out, file)) return CT_OK;
    CT_TRY(ct_file_read(ct_path_in(study->out, file).text, MAX_DRAWING, &svg));
    add_drawing(name, "", (const char *)svg.bytes, out);
    return CT_OK;
}

/* A page has each panel as a drawing of its own: side by side on a desk, below each other on a
 * phone. */
static ct_status add_panels(const ct_study *study, ct_text *out) {
    for (int k = 0;; k++) {
        CT_SCOPED(ct_text) svg = {0};
        char heading[CT_STUDY_LABEL], name[32];
        CT_TRY(ct_study_draw_panel(study, k, heading, sizeof heading, &svg));
        if (svg.n == 0) return CT_OK;
        snprintf(name, sizeof name, "figure-%d", k + 1);
        add_drawing(name, heading, svg.chars, out);
    }
}

static ct_status add_figures(const ct_study *study, ct_text *out) {
    ct_figure_kind kind = ct_study_figure_kind(study);
    ct_text_add(out, "<div class=\"figures\">\n");
    if (kind == CT_FIGURE_DOTS)
        CT_TRY(add_panels(study, out));
    else if (kind != CT_FIGURE_CURVES)
        CT_TRY(add_figure(study, "figure", out));
    for (int k = 0; kind == CT_FIGURE_CURVES && k < study->n_curves; k++) {
        char name[CT_STUDY_LABEL];
        snprintf(name, sizeof name, "figure-%s", study->curves[k]->name);
        CT_TRY(add_figure(study, name, out));
    }
    ct_text_add(out, "</div>\n");
    return CT_OK;
}

/* Directories of the runs that ended, be it before their time, in the table's order. */
static int find_runs(const ct_study *study, const char **out) {
    int n = 0;
    for (int k = 0; k < study->n_rows; k++)
        for (int column = 0; column < study->n_columns; column++) {
            const ct_cell *cell = ct_study_cell_of(study, study->order[k], column);
            if (ct_cell_has_ended(cell)) out[n++] = cell->config.out;
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

ct_status ct_study_write_page(const ct_study *study) {
    CT_SCOPED_BLOCK(const char *) runs = NULL;
    CT_SCOPED(ct_report) report = {0};
    CT_SCOPED(ct_text) intro = {0};
    CT_SCOPED(ct_text) page = {0};
    CT_TRY(ct_make(&runs, (size_t)study->n_cells, "a page"));
    int n_runs = find_runs(study, runs);
    if (n_runs == 0) return CT_OK;
    CT_TRY(ct_report_load(runs, n_runs, &report));
    shorten_paths(study, &report);
    bool is_large = report.n_groups > MAX_DETAILED;
    ct_text_add(&intro, "<section id=\"study\">\n");
    CT_TRY(add_figures(study, &intro));
    CT_TRY(ct_study_add_html(study, &intro));
    CT_TRY(ct_study_add_versus(study, &intro));
    CT_TRY(ct_study_add_tuned(study, &intro));
    if (is_large)
        ct_text_add(&intro, "<p class=\"note\">Splits, graphs and mistakes of every group of runs: "
                            "<code>crosstalk report</code> with this folder.</p>\n");
    ct_text_add(&intro, "</section>\n");
    CT_TRY(ct_text_status(&intro));
    ct_report_options options = {.title = study->title,
                                 .intro = intro.chars,
                                 .figures = {.no_ends = true, .no_details = is_large}};
    CT_TRY(ct_report_page(&report, &options, &page));
    return ct_study_write_file(study, "report.html", &page);
}
