/* Reports: what one run or several have left, as a page that stands alone.
 *
 *     ct_report report;
 *     CT_TRY(ct_report_load(names, n_names, &report));
 *     CT_TRY(ct_report_page(&report, &options, &html));     the whole page
 *     CT_TRY(ct_report_body(&report, &options, &main));     <main> alone, to be put into a page that
 *                                                           is open already
 *     ct_report_free(&report);
 *
 * Loading reads files and nothing else: a server may load again whenever they have grown. */
#ifndef CT_REPORT_REPORT_H
#define CT_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/find.h"
#include "record/record.h"
#include "util/status.h"
#include "util/text.h"

/* Runs that differ in nothing but the seed (and in what cannot change results). */
typedef struct ct_report_group {
    char *label;   /* the method, and what sets it apart from the other groups */
    char *setting; /* what is learnt and where: the label of its facet */
    char *name;    /* the label inside its facet, which tells the setting */
    int method;    /* the style of its method (method.h) */
    int style;     /* of its curve; the same name has the same one in every facet */
    int key;       /* the first group of this name: what a legend switches off */
    int *runs;     /* [n_runs] places in ct_report.runs, seeds ascending */
    int n_runs;
    int kin; /* the first group with the same method and setting */
} ct_report_group;

/* Groups whose curves stand in the same charts: all, or of many groups those of one setting. */
typedef struct ct_report_facet {
    const char *label; /* its groups' setting: "alpha 0.01, agents 16"; "" where there is one */
    int *groups;       /* [n_groups] places in ct_report.groups */
    int n_groups;
} ct_report_facet;

typedef struct ct_report {
    ct_record *runs;
    int n_runs;
    bool is_lent;           /* what the runs point to is someone else's */
    ct_name_list differing; /* options that are not the same in all groups */
    ct_report_group *groups;
    int n_groups;
    ct_report_facet *facets;
    int n_facets;
} ct_report;

/* `names`: run directories, directories that hold runs (one or two levels below; those of --seeds
 * hold one for each seed), or metrics files (*.jsonl). A last line of metrics.jsonl that is still
 * being written is left out; anything else that cannot be read is CT_IO and names the file and the
 * line. Nothing there at all: CT_IO. */
ct_status ct_report_load(const char *const *names, int n_names, ct_report *out);
/* Of records that someone has read and keeps longer than the report. */
ct_status ct_report_lend(const ct_record *const *runs, int n_runs, ct_report *out);
void ct_report_free(ct_report *report);

/* Mean and sample deviation over a group's runs of that; deviation NaN for less than two. */
double ct_report_mean(const ct_report *report, const ct_report_group *group, ct_metric_id metric,
                      double *deviation);

/* How the group's runs ended: done if all are, else the worst that happened to one. */
const ct_record_end *ct_report_end(const ct_report *report, const ct_report_group *group);

/* A piece of line with its marker, for a legend in the text. */
void ct_report_add_swatch(ct_text *out, int style);
/* A command that begins a first run below the directory. */
void ct_report_add_first_command(const char *dir, ct_text *out);
/* It diverged or failed. */
bool ct_report_has_alarm(const ct_record_end *end);
/* The message that it ended with, as text of a page. */
void ct_report_add_reason(const ct_record_end *end, ct_text *out);

/* Which figures are drawn, and how. */
typedef struct ct_figure_wishes {
    bool no_ends;    /* no chart of the groups' last accuracies */
    bool no_details; /* none of the figures that every group has one of: splits, graphs, mistakes */
} ct_figure_wishes;

typedef struct ct_report_options {
    const char *title; /* NULL: made of what is run */
    const char *head;  /* HTML to put at the end of <head>, as it is (a server's script); or NULL:
                          the page stands alone, and its policy is in it */
    const char *notes; /* HTML to put below the heading, as it is; or NULL */
    const char *body;  /* what ct_report_body has made of all this already; or NULL */
    const char *intro; /* HTML to put in the place of cards, as it is (a study's table); or NULL */
    ct_figure_wishes figures;
} ct_report_options;

ct_status ct_report_page(const ct_report *report, const ct_report_options *options, ct_text *out);
ct_status ct_report_body(const ct_report *report, const ct_report_options *options, ct_text *out);

/* page.css, for other pages that should look the same, and page.js. */
extern const char ct_report_css[], ct_report_script[];
/* The Content-Security-Policy of pages whose inline style is page.css and whose scripts are page.js
 * and perhaps another, each after a line's end; more: "; name value" and so on. */
void ct_report_policy(const char *script, const char *more, ct_text *out);

/* Figures, as the page has them: ids are stable, see docs/REPORTS.md. */
typedef struct ct_figure {
    char id[64];
    char title[160];
    ct_text caption; /* a sentence or two; plain text */
    int facet;       /* place in ct_report.facets; -1: a figure of no facet, or of the only one */
    ct_text svg;
} ct_figure;

typedef struct ct_figures {
    ct_figure *figure; /* [n] */
    int n;
} ct_figures;

ct_status ct_figures_draw(const ct_report *report, ct_figure_wishes wishes, ct_figures *out);
void ct_figures_free(ct_figures *figures);
typedef enum ct_figure_formats {
    CT_FIGURES_SVG = 1,
    CT_FIGURES_PNG = 2, /* these two need librsvg */
    CT_FIGURES_PDF = 4,
} ct_figure_formats;
/* Every figure as DIR/<id>.svg, .png and .pdf, as far as they are `wanted`; an existing file is
 * refused unless `force`. */
ct_status ct_figures_write(const ct_figures *figures, const char *dir, unsigned wanted, bool force);

#endif
