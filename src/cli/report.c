#include "report/report.h"

#include <string.h>

#include "cli/cli.h"
#include "ct_config.h"
#include "record/bundle.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

const ct_help ct_cli_report_help = {
    .usage = "report [RUN...] [--out FILE.html] [--title TEXT]\n"
             "report [RUN...] --figures DIR [--format LIST]\n"
             "report DIR --bundle DIR/" CT_BUNDLE_NAME,
    .text = "Writes one HTML page about runs: curves, costs, graph, options. The page needs no "
            "network, no server and no JavaScript library. RUN is a run directory, a folder of "
            "runs (one or two levels deep), or a bundle of them (crosstalk report --bundle). "
            "The default is runs. Runs that are still training are fine. Runs that differ in "
            "nothing but the seed become one curve: their mean, with a band from the lowest to "
            "the highest.\n\n"
            "--bundle keeps what pages need of all runs below DIR in one file. DIR/RUN and DIR "
            "can then be read as before, without the runs' directories.",
    .files = CT_HELP_PAIRS(
        {"report.html",
         "the page (--out names another); a page of crosstalk report is replaced without "
         "--force"},
        {"DIR/*", "with --figures: one file per figure and format"}),
    .examples = CT_HELP_PAIRS(
        {"One page about all runs below runs.", "crosstalk report"},
        {"Figures for a paper, from two runs.", "crosstalk report runs/a runs/b --figures figures"},
        {"Keep the curves of a study in one file.",
         "crosstalk report results/study --bundle results/study/" CT_BUNDLE_NAME}),
    .also = "show, serve, docs/REPORTS.md"};

/* Adds to a set of ct_figure_formats. */
static ct_status want_format(void *context, const char *field) {
    static const char *const names[] = {"svg", "png", "pdf"};
    static const ct_figure_formats formats[] = {CT_FIGURES_SVG, CT_FIGURES_PNG, CT_FIGURES_PDF};
    unsigned *wanted = context;
    for (int k = 0; k < 3; k++) {
        if (strcmp(field, names[k]) != 0) continue;
        *wanted |= formats[k];
        return CT_OK;
    }
    return ct_fail(CT_INVAL, "--format: '%s' is none of svg, png, pdf", field);
}

static ct_status choose_formats(const ct_own *own, unsigned *out) {
    const char *list = ct_own_text(own, "format");
    bool has_figures = ct_own_is_given(own, "figures");
    if (list != NULL && !has_figures)
        return ct_fail(CT_INVAL, "--format is of the files of --figures DIR");
    if (list != NULL) return ct_split(list, want_format, out);
    *out = CT_FIGURES_SVG | (CT_WITH_RSVG ? CT_FIGURES_PNG | CT_FIGURES_PDF : 0);
    if (has_figures && !CT_WITH_RSVG)
        ct_note("SVG files only: this build is without librsvg (crosstalk help report)");
    return CT_OK;
}

static ct_status write_page(const ct_report *report, const char *title, const char *path) {
    CT_SCOPED(ct_text) html = {0};
    CT_TRY(ct_report_page(report, &(ct_report_options){.title = title}, &html));
    CT_TRY(ct_file_write(path, html.chars, html.n));
    ct_show(stdout, "%s: %d run%s in %d group%s, %zu kB\n", path, report->n_runs,
            report->n_runs == 1 ? "" : "s", report->n_groups, report->n_groups == 1 ? "" : "s",
            (html.n + 999) / 1000);
    ct_log(CT_LOG_LINE, "next: open %s in a browser", path);
    return CT_OK;
}

static ct_status write_figures(const ct_report *report, const char *dir, unsigned wanted,
                               bool force) {
    CT_SCOPED(ct_figures) figures = {0};
    CT_TRY(ct_figures_draw(report, (ct_figure_wishes){0}, &figures));
    CT_TRY(ct_figures_write(&figures, dir, wanted, force));
    ct_show(stdout, "%s: %d figures\n", dir, figures.n);
    return CT_OK;
}

static ct_status write_bundle(int n_args, char **args, const char *path) {
    int n_runs;
    if (n_args > 1)
        return ct_fail(CT_INVAL, "--bundle is of one folder, not of %s as well", args[1]);
    CT_TRY(ct_bundle_write(args[0], path, &n_runs));
    ct_show(stdout, "%s: %d directories of runs\n", path, n_runs);
    return CT_OK;
}

/* A page that this command has written: its head says so. */
static bool is_ours(const char *path) {
    char head[8192];
    size_t n = ct_file_head(path, head, sizeof head - 1);
    head[n] = '\0';
    return strstr(head, "<meta name=\"generator\" content=\"crosstalk ") != NULL;
}

ct_status ct_cli_report(int n_args, char **args) {
    CT_SCOPED(ct_report) report = {0};
    CT_SCOPED_BY(ct_bundle_memory_close, ct_bundle_memory) memory;
    unsigned wanted = 0;
    ct_own own;
    ct_bundle_memory_open(&memory);
    CT_TRY(ct_own_take("report", &n_args, args, &own));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    ct_cli_quiet(ct_own_is_given(&own, "quiet"));
    CT_TRY(ct_cli_default_runs(&n_args, &args));
    CT_TRY(choose_formats(&own, &wanted));
    const char *page = ct_own_text(&own, "out"), *figures = ct_own_text(&own, "figures");
    const char *bundle = ct_own_text(&own, "bundle");
    bool force = ct_own_is_given(&own, "force");
    if (page == NULL && figures == NULL && bundle == NULL) page = "report.html";
    CT_TRY(ct_cli_may_write(bundle, force));
    if (bundle != NULL) CT_TRY(write_bundle(n_args, args, bundle));
    if (page == NULL && figures == NULL) return CT_OK;
    CT_TRY(ct_report_load((const char *const *)args, n_args, &report));
    if (page != NULL) CT_TRY(ct_cli_may_write(page, force || is_ours(page)));
    if (figures != NULL) CT_TRY(write_figures(&report, figures, wanted, force));
    return page != NULL ? write_page(&report, ct_own_text(&own, "title"), page) : CT_OK;
}
