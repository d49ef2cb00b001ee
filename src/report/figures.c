/* Every figure of a report, from the runs to SVG. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/curves.h"
#include "report/dots.h"
#include "report/network.h"
#include "report/raster.h"
#include "report/report_internal.h"
#include "report/table_chart.h"
#include "util/file.h"
#include "util/memory.h"

#define PNG_SCALE 3.0 /* 460 units are 1380 pixels: a paper's column at 400 dots an inch */

static ct_status add_figure(ct_figures *all, const char *id, const char *title, bool is_wide,
                            const ct_text *caption, ct_figure **out) {
    CT_TRY(ct_text_status(caption));
    CT_TRY(ct_extend(&all->figure, (size_t)all->n, "a figure"));
    ct_figure *f = &all->figure[all->n];
    *f = (ct_figure){.is_wide = is_wide, .facet = -1};
    CT_TRY(ct_make_text(&f->caption, caption->chars));
    snprintf(f->id, sizeof f->id, "%s", id);
    snprintf(f->title, sizeof f->title, "%s", title);
    all->n++;
    *out = f;
    return CT_OK;
}

void ct_figures_free(ct_figures *figures) {
    for (int k = 0; k < figures->n; k++) {
        ct_free(figures->figure[k].caption);
        ct_text_free(&figures->figure[k].svg);
    }
    ct_free(figures->figure);
    *figures = (ct_figures){0};
}

/* ---- curves ---- */

static const struct curve_figure {
    const char *id, *title, *caption;
    ct_curve_spec spec;
} curve_figures[] = {
    {"fig-accuracy",
     "Accuracy of the consensus model",
     "The mean of all agents' models, tested.",
     {CT_METRIC_EPOCH, CT_METRIC_CONSENSUS_ACCURACY}},
    {"fig-local",
     "Accuracy of the agents' own models",
     "Mean over the agents, each tested on the whole test set.",
     {CT_METRIC_EPOCH, CT_METRIC_LOCAL_MEAN}},
    {"fig-worst",
     "Accuracy of the worst agent",
     "The lowest of the agents' own accuracies.",
     {CT_METRIC_EPOCH, CT_METRIC_LOCAL_MIN}},
    {"fig-ce",
     "Cross-entropy",
     "Training loss, mean over samples and agents.",
     {CT_METRIC_EPOCH, CT_METRIC_CE}},
    {"fig-mv",
     "Model-variant contrastive loss",
     "How far features under the neighbours' models are from the agent's own.",
     {CT_METRIC_EPOCH, CT_METRIC_MV, true}},
    {"fig-dv",
     "Data-variant contrastive loss",
     "How far features are from the mean of their class in the neighbourhood.",
     {CT_METRIC_EPOCH, CT_METRIC_DV, true}},
    {"fig-distance",
     "Consensus distance",
     "How far the agents' parameters are from their mean, mean over the agents.",
     {CT_METRIC_EPOCH, CT_METRIC_DISTANCE}},
    {"fig-bytes",
     "Accuracy against communication",
     "The consensus model's, over what an agent has sent so far.",
     {CT_METRIC_BYTES, CT_METRIC_CONSENSUS_ACCURACY}},
    {"fig-time",
     "Accuracy against time",
     "The consensus model's, over wall-clock time; seeds that were trained at once share it.",
     {CT_METRIC_SECONDS, CT_METRIC_CONSENSUS_ACCURACY}},
    {"fig-link",
     "Accuracy against time on the simulated links",
     "The consensus model's, over what the simulated links make of the messages.",
     {CT_METRIC_LINK_SECONDS, CT_METRIC_CONSENSUS_ACCURACY}},
};

/* What stands at an axis with its own unit; of all others the metric's own name. */
static void name_axis(ct_metric_id metric, const char **name, ct_unit *unit) {
    *unit = CT_UNIT_NUMBER;
    *name = ct_metrics[metric].axis;
    if (ct_metric_rises(&ct_metrics[metric])) {
        *unit = CT_UNIT_SHARE;
        *name = "test accuracy";
    }
    switch (metric) {
    case CT_METRIC_EPOCH: *unit = CT_UNIT_WHOLE; break;
    case CT_METRIC_BYTES: *unit = CT_UNIT_BYTES, *name = "sent by an agent"; break;
    case CT_METRIC_SECONDS: *unit = CT_UNIT_SECONDS, *name = "training time"; break;
    case CT_METRIC_LINK_SECONDS: *unit = CT_UNIT_SECONDS, *name = "time that messages take"; break;
    default: break;
    }
}

static bool has_band(const ct_curve_set *set) {
    for (int k = 0; k < set->n_curves; k++)
        if (set->curves[k].low != NULL) return true;
    return false;
}

/* With a facet's number and label where there are several. */
static void name_curves(const ct_report *r, int facet, const struct curve_figure *c,
                        char *out_title, char *out_id) {
    if (r->n_facets == 1) {
        snprintf(out_id, 64, "%s", c->id);
        snprintf(out_title, 160, "%s", c->title);
        return;
    }
    snprintf(out_id, 64, "%s-%d", c->id, facet + 1);
    snprintf(out_title, 160, "%s: %.110s", c->title, r->facets[facet].label);
}

static ct_status add_curves(const ct_report *r, int facet, const struct curve_figure *c,
                            bool has_legend, ct_figures *all) {
    const ct_report_facet *f = &r->facets[facet];
    char id[64], title[160];
    CT_SCOPED(ct_curve_set) set = {0};
    CT_SCOPED(ct_text) caption = {0};
    ct_figure *figure = NULL;
    CT_TRY(ct_curve_set_create(r, f, &c->spec, &set));
    if (set.n_curves == 0) return CT_OK;
    name_curves(r, facet, c, title, id);
    ct_plot plot = {.id = id,
                    .title = title,
                    .starts_at_0 = true,
                    .has_no_legend = !has_legend && f->n_groups > CT_MAX_IN_LEGEND,
                    .curves = set.curves,
                    .n_curves = set.n_curves};
    name_axis(c->spec.x, &plot.x_name, &plot.x_unit);
    name_axis(c->spec.y, &plot.y_name, &plot.y_unit);
    plot.may_be_log = plot.y_unit == CT_UNIT_NUMBER;
    ct_text_add(&caption, "%s%s", c->caption,
                has_band(&set) ? " Line: mean over seeds; band: lowest to highest." : "");
    CT_TRY(add_figure(all, id, c->title, false, &caption, &figure));
    figure->facet = r->n_facets > 1 ? facet : -1;
    ct_plot_draw(&plot, &figure->svg);
    return CT_OK;
}

/* ---- how the groups ended ---- */

#define MANY_GROUPS 4 /* from so many on, their last accuracies are worth a chart */

static ct_status draw_final(const ct_report *r, ct_dot_row *rows, ct_dot_place *places,
                            ct_figures *all) {
    static const char title[] = "Accuracy at the end", *const no_heading[] = {""};
    ct_figure *figure = NULL;
    CT_SCOPED(ct_text) caption = {0};
    int n_rows = 0;
    for (int k = 0; k < r->n_facets; k++)
        for (int i = 0; i < r->facets[k].n_groups; i++, n_rows++) {
            const ct_report_group *g = &r->groups[r->facets[k].groups[i]];
            double deviation, mean = ct_report_mean(r, g, CT_METRIC_CONSENSUS_ACCURACY, &deviation);
            snprintf(rows[n_rows].group, sizeof rows->group, "%s", r->facets[k].label);
            snprintf(rows[n_rows].label, sizeof rows->label, "%s", g->name);
            places[n_rows] = (ct_dot_place){{100 * mean, 100 * deviation}, {NAN, NAN}, NULL};
        }
    ct_dots dots = {.id = "fig-final",
                    .title = title,
                    .axis_name = "test accuracy (%)",
                    .ours = "mean \xC2\xB1 deviation over seeds",
                    .note = "",
                    .panels = no_heading,
                    .rows = rows,
                    .places = places,
                    .n_panels = 1,
                    .n_rows = n_rows};
    ct_text_add(&caption, "The consensus model's, at the last evaluation.");
    CT_TRY(add_figure(all, dots.id, title, true, &caption, &figure));
    ct_dots_draw(&dots, &figure->svg);
    return CT_OK;
}

static ct_status add_final(const ct_report *r, ct_figures *all) {
    double deviation;
    bool is_any = false;
    for (int g = 0; g < r->n_groups && !is_any; g++)
        is_any =
            isfinite(ct_report_mean(r, &r->groups[g], CT_METRIC_CONSENSUS_ACCURACY, &deviation));
    if (!is_any || r->n_groups < MANY_GROUPS) return CT_OK;
    CT_SCOPED_BLOCK(ct_dot_row) rows = NULL;
    CT_SCOPED_BLOCK(ct_dot_place) places = NULL;
    CT_TRY(ct_make(&rows, (size_t)r->n_groups, "a figure"));
    CT_TRY(ct_make(&places, (size_t)r->n_groups, "a figure"));
    return draw_final(r, rows, places, all);
}

/* ---- one figure a group ---- */

/* "title: label" where there are several groups */
static void name_figure(const ct_report *r, int group, const char *title, const char *id,
                        char *out_title, char *out_id) {
    snprintf(out_id, 64, "%s-%d", id, group + 1);
    if (r->n_groups > 1)
        snprintf(out_title, 160, "%s: %.110s", title, r->groups[group].label);
    else
        snprintf(out_title, 160, "%s", title);
}

static bool same_split(const ct_record *a, const ct_record *b) {
    return a->class_counts != NULL && b->class_counts != NULL && a->n_agents == b->n_agents &&
           a->n_classes == b->n_classes &&
           memcmp(a->class_counts, b->class_counts,
                  (size_t)a->n_agents * (size_t)a->n_classes * sizeof *a->class_counts) == 0;
}

/* Groups with the same split share one chart, the first one's. */
static bool is_split_drawn(const ct_report *r, int group) {
    for (int k = 0; k < group; k++)
        if (same_split(ct_report_first(r, k), ct_report_first(r, group))) return true;
    return false;
}

static ct_status add_split(const ct_report *r, int group, ct_figures *all) {
    const ct_record *run = ct_report_first(r, group);
    char id[64], title[160];
    ct_figure *figure = NULL;
    CT_SCOPED(ct_text) caption = {0};
    if (run->class_counts == NULL || is_split_drawn(r, group)) return CT_OK;
    int n_same = 0;
    for (int k = 0; k < r->n_groups; k++) n_same += same_split(run, ct_report_first(r, k));
    name_figure(r, group, "Who holds which classes", "fig-classes", title, id);
    if (n_same == r->n_groups) snprintf(title, sizeof title, "Who holds which classes");
    ct_text_add(&caption, "A bubble's area is the number of samples of a class at an agent");
    if (r->groups[group].n_runs > 1)
        ct_text_add(&caption, "; seed %llu", (unsigned long long)run->seed);
    ct_text_add(&caption, ".%s",
                n_same > 1 && n_same < r->n_groups ? " Others share this split." : "");
    CT_TRY(add_figure(all, id, title, run->n_agents > 20, &caption, &figure));
    ct_bubbles b = {.id = id,
                    .title = title,
                    .heading = "",
                    .table = run->class_counts,
                    .n_agents = run->n_agents,
                    .n_classes = run->n_classes,
                    .names = run->class_names};
    ct_bubbles_draw(&b, &figure->svg);
    return CT_OK;
}

/* All graphs of a report have the same scale, so that shades can be compared. */
static void measure_local(const ct_report *r, double *low, double *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (int k = 0; k < r->n_groups; k++) {
        const ct_record *run = ct_report_first(r, k);
        for (int i = 0; run->local_accuracy != NULL && i < run->n_agents; i++) {
            if (!isfinite(run->local_accuracy[i])) continue;
            *low = fmin(*low, run->local_accuracy[i]);
            *high = fmax(*high, run->local_accuracy[i]);
        }
    }
}

static ct_status add_network(const ct_report *r, int group, ct_figures *all) {
    const ct_record *run = ct_report_first(r, group);
    char id[64], title[160];
    ct_figure *figure = NULL;
    CT_SCOPED(ct_text) caption = {0};
    if (run->edges == NULL || run->n_agents > CT_MAX_DRAWN_AGENTS) return CT_OK;
    name_figure(r, group, "The agents and their graph", "fig-graph", title, id);
    ct_network g = {.id = id,
                    .title = title,
                    .n_agents = run->n_agents,
                    .edges = (const int(*)[2])run->edges,
                    .n_edges = run->n_edges,
                    .value = run->local_accuracy};
    measure_local(r, &g.low, &g.high);
    const char *topology = ct_record_option_of(run, "topology");
    ct_text_add(&caption, "%s, %d agents, %d edges%s", topology != NULL ? topology : "graph",
                run->n_agents, run->n_edges,
                run->n_edges > CT_MAX_DRAWN_EDGES ? " (too many to draw)" : "");
    if (run->local_accuracy != NULL)
        ct_text_add(&caption,
                    "; the stronger the shade, the better the agent's own model, in percent "
                    "of the test set below its number where there is room (epoch %ld)",
                    run->evaluated_epoch);
    if (r->groups[group].n_runs > 1)
        ct_text_add(&caption, "; seed %llu", (unsigned long long)run->seed);
    ct_text_add(&caption, ".");
    CT_TRY(add_figure(all, id, title, false, &caption, &figure));
    return ct_network_draw(&g, &figure->svg);
}

/* The confusion matrices of all seeds, added up; NULL without any. */
static ct_status sum_confusion(const ct_report *r, const ct_report_group *g, uint32_t **out,
                               int *n_summed) {
    const ct_record *first = &r->runs[g->runs[0]];
    size_t n = (size_t)first->n_classes * (size_t)first->n_classes;
    *n_summed = 0;
    for (int k = 0; k < g->n_runs; k++) {
        const ct_record *run = &r->runs[g->runs[k]];
        if (run->confusion == NULL || run->n_classes != first->n_classes) continue;
        if (*out == NULL) CT_TRY(ct_make(out, n, "a figure"));
        for (size_t c = 0; c < n; c++) (*out)[c] += run->confusion[c];
        ++*n_summed;
    }
    return CT_OK;
}

static ct_status add_confusion(const ct_report *r, int group, ct_figures *all) {
    const ct_record *run = ct_report_first(r, group);
    char id[64], title[160];
    ct_figure *figure = NULL;
    CT_SCOPED(ct_text) caption = {0};
    int n_summed;
    CT_SCOPED_BLOCK(uint32_t) sum = NULL;
    CT_TRY(sum_confusion(r, &r->groups[group], &sum, &n_summed));
    if (sum == NULL) return CT_OK;
    name_figure(r, group, "What the consensus model mistakes", "fig-confusion", title, id);
    ct_text_add(&caption, "Percent of a true class (row) taken for each class (column), epoch %ld",
                run->evaluated_epoch);
    if (n_summed > 1) ct_text_add(&caption, "; %d seeds together", n_summed);
    ct_text_add(&caption, ".");
    CT_TRY(add_figure(all, id, title, run->n_classes > 40, &caption, &figure));
    ct_confusion c = {.id = id,
                      .title = title,
                      .table = sum,
                      .n_classes = run->n_classes,
                      .names = run->class_names};
    ct_confusion_draw(&c, &figure->svg);
    return CT_OK;
}

/* ---- all ---- */

static ct_status draw_all(const ct_report *r, ct_figure_wishes wishes, ct_figures *all) {
    if (!wishes.no_ends) CT_TRY(add_final(r, all));
    for (size_t k = 0; k < sizeof curve_figures / sizeof *curve_figures; k++)
        for (int f = 0; f < r->n_facets; f++)
            CT_TRY(add_curves(r, f, &curve_figures[k], wishes.all_legends, all));
    int n_detailed = wishes.no_details ? 0 : r->n_groups;
    for (int g = 0; g < n_detailed; g++) CT_TRY(add_split(r, g, all));
    for (int g = 0; g < n_detailed; g++) CT_TRY(add_network(r, g, all));
    for (int g = 0; g < n_detailed; g++) CT_TRY(add_confusion(r, g, all));
    for (int k = 0; k < all->n; k++) CT_TRY(ct_text_status(&all->figure[k].svg));
    return CT_OK;
}

ct_status ct_figures_draw(const ct_report *report, ct_figure_wishes wishes, ct_figures *out) {
    *out = (ct_figures){0};
    ct_status status = draw_all(report, wishes, out);
    if (status != CT_OK) ct_figures_free(out);
    return status;
}

/* Calls write(path, svg) for DIR/<id>.<suffix>, or refuses to replace what is there. */
static ct_status write_one(const ct_figure *figure, const char *dir, const char *suffix, bool force,
                           bool only_look) {
    char name[80];
    snprintf(name, sizeof name, "%s.%s", figure->id, suffix);
    ct_path path = ct_path_in(dir, name);
    if (only_look && !force && ct_file_exists(path.text))
        return ct_fail(CT_IO, "%s is there already; replace it with @force", path.text);
    if (only_look) return CT_OK;
    if (strcmp(suffix, "svg") == 0)
        return ct_file_write(path.text, figure->svg.chars, figure->svg.n);
    return ct_raster_write(path.text, &figure->svg, PNG_SCALE);
}

ct_status ct_figures_write(const ct_figures *figures, const char *dir, bool svg, bool png,
                           bool force) {
    if (png) CT_TRY(ct_raster_check());
    CT_TRY(ct_dir_create(dir));
    for (int only_look = 1; only_look >= 0; only_look--)
        for (int k = 0; k < figures->n; k++) {
            if (svg) CT_TRY(write_one(&figures->figure[k], dir, "svg", force, only_look));
            if (png) CT_TRY(write_one(&figures->figure[k], dir, "png", force, only_look));
        }
    return CT_OK;
}
