#include "report/report.h"

#include <string.h>

#include "cli/cli.h"
#include "ct_config.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

void ct_cli_report_help(FILE *out) {
    fputs(
        "usage: crosstalk report RUN... [--out FILE.html] [--title TEXT]\n"
        "                        [--figures DIR] [--format svg,png] [--force]\n\n"
        "Writes one HTML page about one run or several: it needs no network, no server and no\n"
        "JavaScript library. RUN is a run directory, a directory that holds runs (one or two\n"
        "levels below), or a metrics file (*.jsonl); runs that are still training are fine. Runs\n"
        "that differ in nothing but the seed become one curve, their mean, with a band from the\n"
        "lowest to the highest.\n\n"
        "  --out FILE.html   where the page goes; default report.html\n"
        "  --title TEXT      its heading; default: what was run\n"
        "  --figures DIR     also write every figure as a file, for papers; without --out, no "
        "page\n"
        "  --format LIST     of the figures: svg, png or svg,png (default; png needs librsvg)\n"
        "  --force           replace files that are there already\n",
        out);
}

typedef struct wishes {
    const char *out, *figures, *format;
    ct_report_options page;
    bool force, svg, png;
    const char **names; /* [n_names] */
    int n_names;
} wishes;

static ct_status want_format(void *context, const char *field) {
    wishes *w = context;
    if (strcmp(field, "svg") == 0)
        w->svg = true;
    else if (strcmp(field, "png") == 0)
        w->png = true;
    else
        return ct_fail(CT_INVAL, "--format: '%s' is neither svg nor png", field);
    return CT_OK;
}

/* One argument; *at moves on where its value is the next. */
static ct_status take(int n_args, char **args, int *at, wishes *w) {
    const struct {
        const char *name, **value;
    } own[] = {{"out", &w->out},
               {"title", &w->page.title},
               {"figures", &w->figures},
               {"format", &w->format}};
    if (strcmp(args[*at], "--force") == 0) {
        w->force = true;
        return CT_OK;
    }
    for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
        const char *value = NULL;
        CT_TRY(ct_cli_own_option(n_args, args, at, own[k].name, &value));
        if (value == NULL) continue;
        *own[k].value = value;
        return CT_OK;
    }
    if (strncmp(args[*at], "--", 2) == 0)
        return ct_fail(CT_INVAL, "unknown option %s; crosstalk help report lists the known ones",
                       args[*at]);
    w->names[w->n_names++] = args[*at];
    return CT_OK;
}

static ct_status parse(int n_args, char **args, wishes *w) {
    for (int at = 0; at < n_args; at++) CT_TRY(take(n_args, args, &at, w));
    if (w->n_names == 0) return ct_fail(CT_INVAL, "name one run directory or more");
    if (w->format != NULL && w->figures == NULL)
        return ct_fail(CT_INVAL, "--format is of the files of --figures DIR");
    if (w->format != NULL) return ct_split(w->format, want_format, w);
    w->svg = true;
    w->png = CT_WITH_RSVG;
    if (w->figures != NULL && !w->png)
        ct_note("no PNG files: this build is without librsvg (crosstalk help report)");
    return CT_OK;
}

/* The page's file; NULL: figures alone are asked for. */
static const char *page_of(const wishes *w) {
    if (w->out != NULL) return w->out;
    return w->figures == NULL ? "report.html" : NULL;
}

static ct_status write_page(const ct_report *report, const wishes *w) {
    CT_SCOPED(ct_text) html = {0};
    const char *path = page_of(w);
    CT_TRY(ct_report_page(report, &w->page, &html));
    CT_TRY(ct_file_write(path, html.chars, html.n));
    printf("%s: %d run%s in %d group%s, %zu kB\n", path, report->n_runs,
           report->n_runs == 1 ? "" : "s", report->n_groups, report->n_groups == 1 ? "" : "s",
           (html.n + 999) / 1000);
    return CT_OK;
}

static ct_status write_figures(const ct_report *report, const wishes *w) {
    CT_SCOPED(ct_figures) figures = {0};
    CT_TRY(ct_figures_draw(report, (ct_figure_wishes){.all_legends = true}, &figures));
    CT_TRY(ct_figures_write(&figures, w->figures, w->svg, w->png, w->force));
    printf("%s: %d figures\n", w->figures, figures.n);
    return CT_OK;
}

ct_status ct_cli_report(int n_args, char **args) {
    wishes w = {.names = ct_new(const char *, (size_t)n_args + 1)};
    ct_report report = {0};
    if (w.names == NULL) return ct_fail(CT_NOMEM, "no memory for the names");
    ct_status status = parse(n_args, args, &w);
    if (status == CT_OK) status = ct_cli_may_write(page_of(&w), w.force);
    if (status == CT_OK) status = ct_report_load(w.names, w.n_names, &report);
    if (status == CT_OK && w.figures != NULL) status = write_figures(&report, &w);
    if (status == CT_OK && page_of(&w) != NULL) status = write_page(&report, &w);
    ct_report_free(&report);
    ct_free(w.names);
    return status;
}
