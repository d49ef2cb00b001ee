/* Every figure of a report, from the runs to SVG. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/raster.h"
#include "report/report_internal.h"
#include "util/file.h"
#include "util/memory.h"

#define PNG_SCALE 3.5 /* 400 units are 1400 pixels: a paper's column at 400 dots an inch */

/* One more, without caption and drawing; with a number where it is one of several (number > 0). */
static ct_status add_figure(ct_figures *all, const char *id, int number, const char *title,
                            ct_figure **out) {
    CT_TRY(ct_extend(&all->figure, (size_t)all->n, "a figure"));
    ct_figure *f = *out = &all->figure[all->n++];
    *f = (ct_figure){.facet = -1};
    snprintf(f->id, sizeof f->id, number > 0 ? "%s-%d" : "%s", id, number);
    snprintf(f->title, sizeof f->title, "%s", title);
    return CT_OK;
}

/* "title: label"; "": no label */
static void name_with(char out[160], const char *title, const char *label) {
    snprintf(out, 160, label[0] != '\0' ? "%s: %.110s" : "%s", title, label);
}

/* One of those that every group has one of. */
static ct_status add_group_figure(ct_figures *all, const char *id, int group, const char *title,
                                  const char *label, ct_figure **out) {
    CT_TRY(add_figure(all, id, group + 1, title, out));
    name_with((*out)->title, title, label);
    return CT_OK;
}

void ct_figures_free(ct_figures *figures) {
    for (int k = 0; k < figures->n; k++) {
        ct_text_free(&figures->figure[k].caption);
        ct_text_free(&figures->figure[k].svg);
    }
    ct_free(figures->figure);
    *figures = (ct_figures){0};
}

/* ---- curves ---- */

/* A site knows its own model alone, and the consensus model at the end. */
typedef enum whose { EVERYONES, NOT_OF_SITES, OF_SITES } whose;

static const struct curve_figure {
    const char *id, *title, *caption;
    ct_curve_spec spec;
    whose whose;
} curve_figures[] = {
    {"fig-accuracy",
     "Accuracy of the consensus model",
     "The mean of all agents' models, tested.",
     {CT_METRIC_EPOCH, CT_METRIC_CONSENSUS_ACCURACY},
     NOT_OF_SITES},
    {"fig-local",
     "Accuracy of the agents' own models",
     "Mean over the agents, each tested on the whole test set, or on its own where it has one.",
     {CT_METRIC_EPOCH, CT_METRIC_LOCAL_MEAN},
     NOT_OF_SITES},
    {"fig-local",
     "Accuracy of the site's own model",
     "Tested on the site's own test data. The consensus model is there at the end alone.",
     {CT_METRIC_EPOCH, CT_METRIC_LOCAL_MEAN},
     OF_SITES},
    {"fig-worst",
     "Accuracy of the worst agent",
     "The lowest of the agents' own accuracies.",
     {CT_METRIC_EPOCH, CT_METRIC_LOCAL_MIN},
     NOT_OF_SITES},
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
     {CT_METRIC_EPOCH, CT_METRIC_DISTANCE},
     NOT_OF_SITES},
    {"fig-bytes",
     "Accuracy against communication",
     "The consensus model's, over what an agent has sent so far.",
     {CT_METRIC_BYTES, CT_METRIC_CONSENSUS_ACCURACY},
     NOT_OF_SITES},
    {"fig-bytes",
     "Accuracy against communication",
     "The own model's, over what the site has sent so far.",
     {CT_METRIC_BYTES, CT_METRIC_LOCAL_MEAN},
     OF_SITES},
    {"fig-time",
     "Accuracy against time",
     "The consensus model's, over wall-clock time; seeds that were trained at once share it.",
     {CT_METRIC_SECONDS, CT_METRIC_CONSENSUS_ACCURACY},
     NOT_OF_SITES},
    {"fig-time",
     "Accuracy against time",
     "The own model's, over the time that this site has trained.",
     {CT_METRIC_SECONDS, CT_METRIC_LOCAL_MEAN},
     OF_SITES},
    {"fig-link",
     "Accuracy against time on the simulated links",
     "The consensus model's, over what the simulated links make of the messages.",
     {CT_METRIC_LINK_SECONDS, CT_METRIC_CONSENSUS_ACCURACY},
     NOT_OF_SITES},
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
static ct_status add_curves(const ct_report *r, int facet, const struct curve_figure *c,
                            ct_figures *all) {
    const ct_report_facet *f = &r->facets[facet];
    bool is_one_of_several = r->n_facets > 1;
    char title[160];
    CT_SCOPED(ct_curve_set) set = {0};
    ct_figure *figure = NULL;
    CT_TRY(ct_curve_set_create(r, f, &c->spec, &set));
    if (set.n_curves == 0) return CT_OK;
    name_with(title, c->title, f->label);
    CT_TRY(add_figure(all, c->id, is_one_of_several ? facet + 1 : 0, c->title, &figure));
    figure->facet = is_one_of_several ? facet : -1;
    ct_plot plot = {.id = figure->id,
                    .title = title,
                    .starts_at_0 = true,
                    .curves = set.curves,
                    .n_curves = set.n_curves};
    name_axis(c->spec.x, &plot.x_name, &plot.x_unit);
    name_axis(c->spec.y, &plot.y_name, &plot.y_unit);
    plot.may_be_log = plot.y_unit == CT_UNIT_NUMBER;
    ct_text_add(&figure->caption, "%s%s", c->caption,
                has_band(&set) ? " Line: mean over seeds; band: lowest to highest." : "");
    ct_plot_draw(&plot, &figure->svg);
    return CT_OK;
}

/* ---- how the groups ended ---- */

#define MANY_GROUPS 4 /* from so many on, their last accuracies are worth a chart */

/* What stands in the place of a number. */
static const char *word_of(const ct_report *r, const ct_report_group *g) {
    ct_record_state state = ct_report_end(r, g)->state;
    return state == CT_RECORD_DIVERGED ? "diverged" : state == CT_RECORD_FAILED ? "failed" : NULL;
}

/* The ranking of a facet's groups. */
static ct_status add_final(const ct_report *r, int facet, ct_figures *all) {
    static const char *const no_heading[] = {""};
    const ct_report_facet *f = &r->facets[facet];
    size_t n = (size_t)f->n_groups;
    CT_SCOPED_BLOCK(ct_dot_row) rows = NULL;
    CT_SCOPED_BLOCK(ct_dot_place) places = NULL;
    ct_figure *figure = NULL;
    bool is_any = false, has_deviation = false;
    if (r->n_groups < MANY_GROUPS || n < 2) return CT_OK;
    CT_TRY(ct_make(&rows, n, "a figure"));
    CT_TRY(ct_make(&places, n, "a figure"));
    for (size_t i = 0; i < n; i++) {
        const ct_report_group *g = &r->groups[f->groups[i]];
        double deviation, mean = ct_report_mean(r, g, CT_METRIC_CONSENSUS_ACCURACY, &deviation);
        is_any = is_any || isfinite(mean);
        has_deviation = has_deviation || isfinite(deviation);
        snprintf(rows[i].label, sizeof rows->label, "%s", g->name);
        rows[i].style = g->method;
        const char *word = isfinite(mean) ? NULL : word_of(r, g);
        places[i] = (ct_dot_place){{100 * mean, 100 * deviation}, {NAN, NAN}, word};
    }
    if (!is_any) return CT_OK;
    CT_TRY(add_figure(all, "fig-final", r->n_facets > 1 ? facet + 1 : 0, "Accuracy at the end",
                      &figure));
    figure->facet = r->n_facets > 1 ? facet : -1;
    ct_text_add(&figure->caption, "The consensus model's, at the last evaluation; the best first.");
    ct_dots dots = {.id = figure->id,
                    .title = figure->title,
                    .axis_name = "test accuracy (%)",
                    .ours = has_deviation ? "mean \xC2\xB1 deviation over seeds" : "one seed",
                    .theirs = "",
                    .note = "",
                    .panels = no_heading,
                    .rows = rows,
                    .places = places,
                    .n_panels = 1,
                    .n_rows = (int)n,
                    .marks_best = true,
                    .is_ranked = true};
    return ct_dots_draw(&dots, &figure->svg);
}

/* ---- one figure a group ---- */

static const char *label_of(const ct_report *r, int group) {
    return r->n_groups > 1 ? r->groups[group].label : "";
}

/* Which of a group's runs it is, where there are several; and the end of the sentence. */
static void end_caption(const ct_report *r, int group, ct_text *caption) {
    if (r->groups[group].n_runs > 1)
        ct_text_add(caption, "; seed %" PRIu64, ct_report_first(r, group)->seed);
    ct_text_add(caption, ".");
}

static bool same_split(const ct_record *a, const ct_record *b) {
    return a->class_counts != NULL && b->class_counts != NULL && a->n_agents == b->n_agents &&
           a->n_classes == b->n_classes &&
           memcmp(a->class_counts, b->class_counts,
                  (size_t)a->n_agents * (size_t)a->n_classes * sizeof *a->class_counts) == 0;
}

/* Groups with the same split share one chart, the first one's. */
static ct_status add_split(const ct_report *r, int group, ct_figures *all) {
    const ct_record *run = ct_report_first(r, group);
    ct_figure *figure = NULL;
    int n_same = 0;
    if (run->class_counts == NULL) return CT_OK;
    for (int k = 0; k < r->n_groups; k++) {
        bool is_same = same_split(run, ct_report_first(r, k));
        if (is_same && k < group) return CT_OK;
        n_same += is_same;
    }
    CT_TRY(add_group_figure(all, "fig-classes", group, "Who holds which classes",
                            n_same < r->n_groups ? label_of(r, group) : "", &figure));
    ct_text_add(&figure->caption,
                "A bubble's area is the number of samples of a class at an agent%s",
                run->site.name != NULL ? "; a site knows its own alone" : "");
    end_caption(r, group, &figure->caption);
    if (n_same > 1 && n_same < r->n_groups)
        ct_text_add(&figure->caption, " Others share this split.");
    ct_bubbles b = {.id = figure->id,
                    .title = figure->title,
                    .heading = "",
                    .table = run->class_counts,
                    .n_agents = run->n_agents,
                    .n_classes = run->n_classes,
                    .names = run->class_names,
                    .agent_names = run->agent_names};
    ct_bubbles_draw(&b, &figure->svg);
    return CT_OK;
}

/* All graphs of a report have the same scale, so that shades can be compared. */
static ct_range measure_local(const ct_report *r) {
    ct_range range = CT_NO_RANGE;
    for (int k = 0; k < r->n_groups; k++) {
        const ct_record *run = ct_report_first(r, k);
        for (int i = 0; run->local_accuracy != NULL && i < run->n_agents; i++)
            ct_range_add(&range, run->local_accuracy[i]);
    }
    return range;
}

static ct_status add_network(const ct_report *r, int group, ct_figures *all) {
    const ct_record *run = ct_report_first(r, group);
    const char *topology = ct_record_option_of(run, "topology");
    ct_figure *figure = NULL;
    if (run->edges == NULL || run->n_agents > CT_MAX_DRAWN_AGENTS) return CT_OK;
    CT_TRY(add_group_figure(all, "fig-graph", group, "The agents and their graph",
                            label_of(r, group), &figure));
    ct_text_add(&figure->caption, "%s, %d agents, %d edges%s",
                topology != NULL ? topology : "graph", run->n_agents, run->n_edges,
                run->n_edges > CT_MAX_DRAWN_EDGES ? " (too many to draw)" : "");
    if (run->local_accuracy != NULL)
        ct_text_add(&figure->caption,
                    "; the stronger the shade, the better the agent's own model, in percent "
                    "of the test set below its number where there is room (epoch %ld)",
                    run->evaluated_epoch);
    end_caption(r, group, &figure->caption);
    ct_network g = {.id = figure->id,
                    .title = figure->title,
                    .n_agents = run->n_agents,
                    .edges = (const int(*)[2])run->edges,
                    .n_edges = run->n_edges,
                    .names = run->agent_names,
                    .value = run->local_accuracy,
                    .scale = measure_local(r)};
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
    ct_figure *figure = NULL;
    int n_summed;
    CT_SCOPED_BLOCK(uint32_t) sum = NULL;
    CT_TRY(sum_confusion(r, &r->groups[group], &sum, &n_summed));
    if (sum == NULL) return CT_OK;
    CT_TRY(add_group_figure(all, "fig-confusion", group, "What the consensus model mistakes",
                            label_of(r, group), &figure));
    ct_text_add(&figure->caption,
                "Percent of a true class (row) taken for each class (column), epoch %ld",
                run->evaluated_epoch);
    if (n_summed > 1) ct_text_add(&figure->caption, "; %d seeds together", n_summed);
    ct_text_add(&figure->caption, ".");
    ct_confusion c = {.id = figure->id,
                      .title = figure->title,
                      .table = sum,
                      .n_classes = run->n_classes,
                      .names = run->class_names};
    ct_confusion_draw(&c, &figure->svg);
    return CT_OK;
}

/* ---- all ---- */

static ct_status draw_all(const ct_report *r, ct_figure_wishes wishes, ct_figures *all) {
    for (int f = 0; f < r->n_facets && !wishes.no_ends; f++) CT_TRY(add_final(r, f, all));
    whose not_here = ct_report_is_of_sites(r) ? NOT_OF_SITES : OF_SITES;
    for (size_t k = 0; k < sizeof curve_figures / sizeof *curve_figures; k++)
        for (int f = 0; f < r->n_facets && curve_figures[k].whose != not_here; f++)
            CT_TRY(add_curves(r, f, &curve_figures[k], all));
    int n_detailed = wishes.no_details ? 0 : r->n_groups;
    for (int g = 0; g < n_detailed; g++) CT_TRY(add_split(r, g, all));
    for (int g = 0; g < n_detailed; g++) CT_TRY(add_network(r, g, all));
    for (int g = 0; g < n_detailed; g++) CT_TRY(add_confusion(r, g, all));
    for (int k = 0; k < all->n; k++) {
        CT_TRY(ct_text_status(&all->figure[k].svg));
        CT_TRY(ct_text_status(&all->figure[k].caption));
    }
    return CT_OK;
}

ct_status ct_figures_draw(const ct_report *report, ct_figure_wishes wishes, ct_figures *out) {
    *out = (ct_figures){0};
    ct_status status = draw_all(report, wishes, out);
    if (status != CT_OK) ct_figures_free(out);
    return status;
}

typedef enum pass { LOOK, WRITE, TAKE_BACK } pass;

static const struct format {
    ct_figure_formats format;
    const char *suffix;
} formats[] = {{CT_FIGURES_SVG, "svg"}, {CT_FIGURES_PNG, "png"}, {CT_FIGURES_PDF, "pdf"}};
enum { N_FORMATS = sizeof formats / sizeof *formats };

/* For DIR/<id>.<suffix>: refuses to replace what is there, writes it, or removes it. */
static ct_status handle_one(const ct_figure *figure, const char *dir, const struct format *f,
                            pass p) {
    char name[80];
    snprintf(name, sizeof name, "%s.%s", figure->id, f->suffix);
    ct_path path = ct_path_in(dir, name);
    if (p == LOOK && ct_file_exists(path.text))
        return ct_fail(CT_IO, "%s is there already; replace it with @force", path.text);
    if (p == TAKE_BACK) remove(path.text);
    if (p != WRITE) return CT_OK;
    switch (f->format) {
    case CT_FIGURES_PNG: return ct_raster_write(path.text, &figure->svg, PNG_SCALE);
    case CT_FIGURES_PDF: return ct_raster_write_pdf(path.text, &figure->svg);
    default: return ct_file_write(path.text, figure->svg.chars, figure->svg.n);
    }
}

static ct_status handle_all(const ct_figures *figures, const char *dir, unsigned wanted, pass p) {
    for (int k = 0; k < figures->n; k++)
        for (int i = 0; i < N_FORMATS; i++)
            if (wanted & formats[i].format)
                CT_TRY(handle_one(&figures->figure[k], dir, &formats[i], p));
    return CT_OK;
}

/* All of them or, unless they replace others, none: what is left would keep the same command from
 * writing the rest. */
ct_status ct_figures_write(const ct_figures *figures, const char *dir, unsigned wanted,
                           bool force) {
    if (wanted & (CT_FIGURES_PNG | CT_FIGURES_PDF)) CT_TRY(ct_raster_check());
    CT_TRY(ct_dir_create(dir));
    if (!force) CT_TRY(handle_all(figures, dir, wanted, LOOK));
    ct_status status = handle_all(figures, dir, wanted, WRITE);
    if (status != CT_OK && !force) (void)handle_all(figures, dir, wanted, TAKE_BACK);
    return status;
}
