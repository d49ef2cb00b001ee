/* Reports: what one run or several have left, as a page that stands alone.
 *
 *     ct_report report;
 *     CT_TRY(ct_report_load(names, n_names, &report));
 *     CT_TRY(ct_report_page(&report, &options, &html));     the whole page
 *     CT_TRY(ct_report_body(&report, &options, &main));     <main> alone, to be put into a page
 * that ct_report_free(&report);                              is open already
 *
 * Loading reads files and nothing else: a server may load again whenever they have grown. */
#ifndef CT_REPORT_REPORT_H
#define CT_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/json.h"
#include "util/status.h"
#include "util/text.h"

/* Columns of metrics.jsonl. */
typedef enum ct_report_metric {
#define METRIC(id, name) CT_METRIC_##id,
#include "report/metric_list.h"
#undef METRIC
    CT_N_METRICS,
} ct_report_metric;

typedef struct ct_epoch_row {
    double value[CT_N_METRICS]; /* NaN: null, or not there */
} ct_epoch_row;

typedef struct ct_report_option {
    char *name, *value; /* as in config.txt */
} ct_report_option;

/* One run directory, or one metrics file alone. */
typedef struct ct_report_run {
    char *path;                /* as it was found */
    uint64_t seed;             /* of the options, else of the name; 0 = unknown */
    ct_report_option *options; /* [n_options] of config.txt */
    int n_options;
    ct_epoch_row *epochs; /* [n_epochs] */
    int n_epochs;
    ct_json *summary;  /* of summary.json; NULL: not finished */
    bool has_diverged; /* a diverged.json lies there (crosstalk reproduce), or a loss is NaN */
    /* of setting.json; 0 and NULL where it is missing */
    int n_agents, n_classes;
    char **class_names;     /* [n_classes] or NULL */
    uint32_t *class_counts; /* [n_agents][n_classes] or NULL */
    int (*edges)[2];        /* [n_edges] or NULL */
    int n_edges;
    /* of evaluation.json, likewise */
    long evaluated_epoch;
    double *local_accuracy; /* [n_agents] NaN: a dead agent */
    uint32_t *confusion;    /* [n_classes][n_classes] true class, what it was taken for */
} ct_report_run;

/* Runs that differ in nothing but the seed (and in what cannot change results). */
typedef struct ct_report_group {
    char *label; /* the method, and what sets it apart from the other groups */
    char *name;  /* the same inside its facet, whose label tells the setting */
    int style;   /* of its curve; the same name has the same one in every facet */
    int *runs;   /* [n_runs] places in ct_report.runs, seeds ascending */
    int n_runs;
} ct_report_group;

/* Groups whose curves stand in the same charts: all, or of many groups those of one setting. */
typedef struct ct_report_facet {
    char *label; /* "alpha 0.01, agents 16"; "" where there is one facet */
    int *groups; /* [n_groups] places in ct_report.groups */
    int n_groups;
} ct_report_facet;

typedef struct ct_report {
    ct_report_run *runs;
    int n_runs;
    ct_report_group *groups;
    int n_groups;
    ct_report_facet *facets;
    int n_facets;
} ct_report;

/* Names that grow; every one is owned by the list. */
typedef struct ct_name_list {
    char **name;
    int n;
} ct_name_list;

ct_status ct_name_list_add(ct_name_list *list, const char *name);
void ct_name_list_free(ct_name_list *list);

/* Paths of the runs that `name` stands for, in order. */
ct_status ct_report_find(const char *name, ct_name_list *out);

/* `names`: run directories, directories that hold runs (one or two levels below; those of --seeds
 * hold one for each seed), or metrics files (*.jsonl). A last line of metrics.jsonl that is still
 * being written is left out; anything else that cannot be read is CT_IO and names the file and the
 * line. Nothing there at all: CT_IO. */
ct_status ct_report_load(const char *const *names, int n_names, ct_report *out);
void ct_report_free(ct_report *report);

/* The value of an option; NULL if the run has none. */
const char *ct_report_option_of(const ct_report_run *run, const char *name);
/* The last value of a metric that is not NaN; NaN if there is none. */
double ct_report_last(const ct_report_run *run, ct_report_metric metric);
/* Mean and sample deviation over a group's runs of that; deviation NaN for less than two. */
double ct_report_mean(const ct_report *report, const ct_report_group *group,
                      ct_report_metric metric, double *deviation);

/* Which figures are drawn, and how. */
typedef struct ct_figure_wishes {
    bool all_legends; /* also of charts with many curves: a page has one in front of those */
    bool no_ends;     /* no chart of the groups' last accuracies */
    bool no_details; /* none of the figures that every group has one of: splits, graphs, mistakes */
} ct_figure_wishes;

typedef struct ct_report_options {
    const char *title; /* NULL: made of what is run */
    const char *head;  /* HTML to put at the end of <head>, as it is (a server's script); or NULL */
    const char *intro; /* HTML to put in the place of cards, as it is (a study's table); or NULL */
    ct_figure_wishes figures;
} ct_report_options;

ct_status ct_report_page(const ct_report *report, const ct_report_options *options, ct_text *out);
ct_status ct_report_body(const ct_report *report, const ct_report_options *options, ct_text *out);

/* page.css, for other pages that should look the same. */
extern const char ct_report_css[];

/* Figures, as the page has them: ids are stable, see docs/REPORTS.md. */
typedef struct ct_figure {
    char id[64];
    char title[160];
    char *caption; /* a sentence or two; plain text */
    bool is_wide;  /* wants the width of the page */
    int facet;     /* place in ct_report.facets; -1: a figure of no facet, or of the only one */
    ct_text svg;
} ct_figure;

typedef struct ct_figures {
    ct_figure *figure; /* [n] */
    int n;
} ct_figures;

ct_status ct_figures_draw(const ct_report *report, ct_figure_wishes wishes, ct_figures *out);
void ct_figures_free(ct_figures *figures);
/* Every figure as DIR/<id>.svg and DIR/<id>.png, or one of the two; an existing file is refused
 * unless `force`. */
ct_status ct_figures_write(const ct_figures *figures, const char *dir, bool svg, bool png,
                           bool force);

#endif
