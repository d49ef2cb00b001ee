/* The page: what was run, how it ended, every figure, every option, how to do it again. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/axis.h"
#include "report/report_internal.h"
#include "report/svg.h"
#include "util/memory.h"
#include "util/version.h"

#define MAX_OPEN   7  /* figures of a section; more of them are folded away */
#define MAX_CARDS  12 /* of groups */
#define MAX_CURVES 8  /* of a study's chart; of more the section is folded away */
#define MAX_ROWS   24 /* of the table of runs; a longer one is folded away */
#define DASH       "\xE2\x80\x93"

/* The option's value if all groups have the same; NULL otherwise. */
static const char *shared_option(const ct_report *r, const char *name) {
    bool is_shared = ct_report_is_shared(r, name);
    return is_shared ? ct_record_option_of(ct_report_first(r, 0), name) : NULL;
}

/* ---- heading ---- */

static void add_setting(const ct_report *r, ct_text *out) {
    static const char *const words[][3] = {{"dataset", "", ""},
                                           {"model", ", ", ""},
                                           {"agents", ", ", " agents"},
                                           {"topology", " on ", ""},
                                           {"partition", ", ", " split"},
                                           {"alpha", ", \xCE\xB1 = ", ""},
                                           {"batch-size", ", batches of ", ""}};
    bool is_first = true;
    const char *partition = shared_option(r, "partition");
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        const char *value = shared_option(r, words[k][0]);
        bool is_alpha = strcmp(words[k][0], "alpha") == 0;
        if (value == NULL || value[0] == '\0') continue;
        if (is_alpha && (partition == NULL || strcmp(partition, "dirichlet") != 0)) continue;
        const char *before = words[k][1];
        if (is_first && before[0] != '\0') before += strspn(before, ", ");
        ct_text_add(out, "%s%s%s", before, value, words[k][2]);
        is_first = false;
    }
}

static int count_methods(const ct_report *r) {
    int n = 0;
    for (int g = 0; g < r->n_groups; g++) {
        bool is_new = true;
        for (int k = 0; k < g && is_new; k++)
            is_new = !ct_report_same_method(ct_report_first(r, g), ct_report_first(r, k));
        n += is_new;
    }
    return n;
}

/* "4 methods", or "4 methods, 12 groups of runs" where one method is there several times. */
static void add_counts(const ct_report *r, const char *dataset, ct_text *out) {
    int n = count_methods(r);
    ct_text_add(out, "%d method%s on %s", n, n == 1 ? "" : "s", dataset);
    if (n < r->n_groups) ct_text_add(out, ", %d groups of runs", r->n_groups);
}

/* What is run, in a few words. */
static void add_title(const ct_report *r, const ct_report_options *o, ct_text *out) {
    const char *dataset = shared_option(r, "dataset");
    const ct_record_site *site = &ct_report_first(r, 0)->site;
    if (o->title == NULL && r->n_runs == 1 && site->name != NULL)
        ct_text_add(out, "%s of %s: ", site->name, site->federation);
    if (o->title != NULL)
        ct_text_add(out, "%s", o->title);
    else if (r->n_groups == 1 && dataset != NULL)
        ct_text_add(out, "%s on %s", r->groups[0].label, dataset);
    else if (dataset != NULL)
        add_counts(r, dataset, out);
    else if (r->n_groups == 1)
        ct_text_add(out, "%s", r->groups[0].label);
    else
        ct_text_add(out, "%d groups of runs", r->n_groups);
}

/* A card's number: mean and, over seeds, deviation. */
static void add_value(const ct_report *r, const ct_report_group *g, ct_metric_id metric,
                      ct_unit unit, ct_text *out) {
    char text[48];
    double deviation, value = ct_report_mean(r, g, metric, &deviation);
    if (!isfinite(value)) {
        ct_text_add(out, DASH);
        return;
    }
    if (unit != CT_UNIT_SHARE) {
        ct_unit_print(unit, value, text, sizeof text);
        ct_markup_add(out, "%s", text);
        return;
    }
    ct_text_add(out, "%.2f", 100 * value);
    if (isfinite(deviation)) ct_text_add(out, "<small> \xC2\xB1 %.2f</small>", 100 * deviation);
    ct_text_add(out, "<small> %%</small>");
}

/* ---- cards ---- */

static const struct fact {
    const char *name, *column;           /* of a card, and of the table */
    const char *site_name, *site_column; /* where all runs are sites'; NULL: not told there */
    ct_metric_id metric;
    ct_unit unit;
} facts[] = {
    {"consensus accuracy", "consensus %", "consensus accuracy", "consensus %",
     CT_METRIC_CONSENSUS_ACCURACY, CT_UNIT_SHARE},
    {"averaged over time", "averaged %", NULL, NULL, CT_METRIC_AVERAGED_ACCURACY, CT_UNIT_SHARE},
    {"mean of the agents", "agents' mean %", "own model", "own model %", CT_METRIC_LOCAL_MEAN,
     CT_UNIT_SHARE},
    {"worst agent", "worst %", NULL, NULL, CT_METRIC_LOCAL_MIN, CT_UNIT_SHARE},
    {"consensus distance", "distance", "consensus distance", "distance", CT_METRIC_DISTANCE,
     CT_UNIT_NUMBER},
    {"sent by an agent", "sent by an agent", "sent", "sent", CT_METRIC_BYTES, CT_UNIT_BYTES},
    {"training time", "time", "training time", "time", CT_METRIC_SECONDS, CT_UNIT_SECONDS},
};
enum { N_FACTS = sizeof facts / sizeof *facts };

/* Any of the runs has the number. */
static bool is_known(const ct_report *r, ct_metric_id metric) {
    double deviation;
    for (int g = 0; g < r->n_groups; g++)
        if (!isnan(ct_report_mean(r, &r->groups[g], metric, &deviation))) return true;
    return false;
}

/* Of a card, or of the table. NULL: not told of these runs. */
static const char *fact_name(const ct_report *r, int k, bool is_column) {
    bool is_averaged = facts[k].metric == CT_METRIC_AVERAGED_ACCURACY;
    if (is_averaged && !is_known(r, facts[k].metric)) return NULL;
    if (ct_report_is_of_sites(r)) return is_column ? facts[k].site_column : facts[k].site_name;
    return is_column ? facts[k].column : facts[k].name;
}

void ct_report_add_swatch(ct_text *out, int style) {
    ct_markup_add(out, "<svg class='swatch' width='28' height='16' viewBox='0 0 28 16' "
                       "aria-hidden='true'>");
    ct_style_sample(out, style, 0, 8);
    ct_text_add(out, "</svg>");
}

/* The first number of a group; of one that diverged or failed, when. */
static void add_main_value(const ct_report *r, const ct_report_group *g, ct_text *out) {
    const ct_record_end *end = ct_report_end(r, g);
    double deviation;
    bool is_known = isfinite(ct_report_mean(r, g, facts[0].metric, &deviation));
    bool has_ended_early = ct_report_has_alarm(end);
    char words[64];
    if (is_known || !has_ended_early) add_value(r, g, facts[0].metric, facts[0].unit, out);
    if (!has_ended_early) return;
    ct_record_print_end(end, words, sizeof words);
    ct_markup_add(out, is_known ? "<small> %s</small>" : "<small>%s</small>", words);
}

/* The first one of a group that diverged or failed says when. */
static void add_fact(const ct_report *r, const ct_report_group *g, int k, ct_text *out) {
    if (k == 0)
        add_main_value(r, g, out);
    else
        add_value(r, g, facts[k].metric, facts[k].unit, out);
}

/* One group: a card for each number. */
static void add_fact_cards(const ct_report *r, ct_text *out) {
    ct_markup_add(out, "<div class='cards' id='cards'>\n");
    for (int k = 0; k < N_FACTS; k++) {
        const char *name = fact_name(r, k, false);
        if (name == NULL) continue;
        ct_markup_add(out, "<div class='card'><div class='name'>%s</div><div class='value'>", name);
        add_fact(r, &r->groups[0], k, out);
        ct_text_add(out, "</div></div>\n");
    }
    ct_text_add(out, "</div>\n");
}

static void add_group_card(const ct_report *r, int group, ct_text *out) {
    const ct_report_group *g = &r->groups[group];
    ct_markup_add(out, "<div class='card entry' data-group='%d'><div class='name'>", g->key);
    ct_report_add_swatch(out, g->style);
    ct_markup_add(out, "%s</div>\n<div class='value'>", g->label);
    add_fact(r, g, 0, out);
    ct_text_add(out, "</div>\n<dl>");
    for (int k = 1; k < N_FACTS; k++) {
        const char *name = fact_name(r, k, false);
        if (name == NULL) continue;
        ct_markup_add(out, "<dt>%s</dt><dd>", name);
        add_fact(r, g, k, out);
        ct_text_add(out, "</dd>\n");
    }
    ct_text_add(out, "</dl></div>\n");
}

static void add_cards(const ct_report *r, ct_text *out) {
    if (r->n_groups == 1) {
        add_fact_cards(r, out);
        return;
    }
    if (r->n_groups > MAX_CARDS) return; /* the chart of ends and the table have it all */
    ct_markup_add(out, "<div class='cards groups' id='cards'>\n");
    for (int g = 0; g < r->n_groups; g++) add_group_card(r, g, out);
    ct_markup_add(out,
                  "</div>\n<p class='note'>Large: test accuracy of the consensus model%s.</p>\n",
                  r->n_runs > r->n_groups ? ", mean \xC2\xB1 standard deviation over seeds" : "");
}

/* ---- what went wrong ---- */

bool ct_report_has_alarm(const ct_record_end *end) {
    return end->state == CT_RECORD_DIVERGED || end->state == CT_RECORD_FAILED;
}

void ct_report_add_reason(const ct_record_end *end, ct_text *out) {
    char reason[sizeof end->reason + 64];
    ct_spell(end->reason, "--", reason, sizeof reason);
    ct_markup_add(out, "%s", reason);
}

/* How many of the group's first n runs ended as the run did. */
static int count_alike(const ct_report *r, const ct_report_group *g, int n, const ct_record *run) {
    int n_alike = 0;
    for (int k = 0; k < n; k++) {
        const ct_record_end *end = &r->runs[g->runs[k]].end;
        n_alike += end->state == run->end.state && strcmp(end->reason, run->end.reason) == 0;
    }
    return n_alike;
}

/* Of runs that diverged or failed, each with its message; seeds that were trained at once share one. */
static void add_alarm(const ct_report *r, const ct_report_group *g, int k, ct_text *out) {
    const ct_record *run = &r->runs[g->runs[k]];
    char words[64];
    if (!ct_report_has_alarm(&run->end) || count_alike(r, g, k, run) > 0) return;
    ct_record_print_end(&run->end, words, sizeof words);
    ct_markup_add(out, "<p class='alarm'><b>%s", r->n_groups > 1 ? g->label : "This run");
    if (count_alike(r, g, g->n_runs, run) < g->n_runs)
        ct_markup_add(out, ", seed %" PRIu64 ",", run->seed);
    ct_markup_add(out, " %s.</b> ", words);
    ct_report_add_reason(&run->end, out);
    ct_text_add(out, "</p>\n");
}

static void add_alarms(const ct_report *r, ct_text *out) {
    for (const ct_report_group *g = r->groups; g < r->groups + r->n_groups; g++)
        for (int k = 0; k < g->n_runs; k++) add_alarm(r, g, k, out);
}

/* ---- table ---- */

/* "3 of 8", or "8" of a run that is done. */
static void add_progress(const ct_record *run, ct_text *out) {
    double epoch = ct_record_last(run, CT_METRIC_EPOCH);
    const char *wanted = ct_record_option_of(run, "epochs");
    ct_text_add(out, "%.0f", isfinite(epoch) ? epoch : 0);
    if (run->summary == NULL && wanted != NULL) ct_markup_add(out, " of %s", wanted);
}

/* A metrics file alone does not tell. */
static void add_state(const ct_record *run, ct_text *out) {
    char words[64] = DASH;
    if (run->summary != NULL || run->n_options > 0)
        ct_record_print_end(&run->end, words, sizeof words);
    ct_markup_add(out, "<td class='word' data-th='state'>%s</td></tr>\n", words);
}

static void add_run_row(const ct_report *r, int group, const ct_record *run, ct_text *out) {
    const ct_report_group *g = &r->groups[group];
    ct_markup_add(out, "<tr data-group='%d'><th>", g->key);
    if (r->n_groups > 1) ct_report_add_swatch(out, g->style);
    ct_markup_add(out,
                  "%s</th><td data-name='seed' data-th='seed'>%" PRIu64
                  "</td><td data-name='epoch' data-th='epochs'>",
                  g->label, run->seed);
    add_progress(run, out);
    ct_text_add(out, "</td>");
    for (int k = 0; k < N_FACTS; k++) {
        const char *name = fact_name(r, k, true);
        char text[48];
        if (name == NULL) continue;
        double value = ct_record_last(run, facts[k].metric);
        ct_unit_print(facts[k].unit, value, text, sizeof text);
        if (facts[k].unit == CT_UNIT_SHARE && isfinite(value))
            snprintf(text, sizeof text, "%.2f", 100 * value);
        ct_markup_add(out, "<td data-th='%s' data-value='%e'>%s</td>", name, value, text);
    }
    add_state(run, out);
}

static void add_table(const ct_report *r, ct_text *out) {
    bool is_folded = r->n_runs > MAX_ROWS;
    ct_text_add(out, "<h2 id=\"runs\">Runs</h2>\n");
    if (is_folded)
        ct_markup_add(out, "<details id='all-runs'><summary>%d runs</summary>\n", r->n_runs);
    ct_text_add(out, "<div class=\"wide-table\"><table id=\"run-table\" class=\"rows\">\n"
                     "<thead><tr><th>method</th><th>seed</th><th>epochs</th>");
    for (int k = 0; k < N_FACTS; k++) {
        const char *column = fact_name(r, k, true);
        if (column != NULL) ct_markup_add(out, "<th>%s</th>", column);
    }
    ct_text_add(out, "<th class=\"word\">state</th></tr></thead>\n<tbody>\n");
    for (int g = 0; g < r->n_groups; g++)
        for (int k = 0; k < r->groups[g].n_runs; k++)
            add_run_row(r, g, &r->runs[r->groups[g].runs[k]], out);
    ct_text_add(out, "</tbody></table></div>%s\n", is_folded ? "</details>" : "");
}

/* ---- figures ---- */

typedef struct section {
    const char *title, *id;
    const char *figures; /* ids without their number, each followed by a blank */
    bool has_curves;
    bool is_open; /* however many figures */
} section;

static const section sections[] = {
    {"Accuracy", "accuracy", "fig-final fig-accuracy fig-local fig-worst ", true},
    {"Loss terms", "losses", "fig-ce fig-mv fig-dv ", true},
    {"Agreement and cost", "cost", "fig-distance fig-bytes fig-time fig-link ", true},
    {"Data", "data", "fig-classes "},
    {"Agents", "agents", "fig-graph "},
    {"Mistakes", "mistakes", "fig-confusion "},
    {0},
};
/* Several facets: this, then the rest of each, then the last three of those above. */
static const section ends_of_facets = {"Accuracy", "accuracy", "fig-final fig-accuracy ", true,
                                       true};
static const char rest_of_a_facet[] = "fig-local fig-worst fig-ce fig-mv fig-dv fig-distance "
                                      "fig-bytes fig-time fig-link ";
/* One group has one of each. */
static const section sections_of_one[] = {
    {"Accuracy", "accuracy", "fig-accuracy fig-local fig-worst "},
    {"Loss, agreement and cost", "cost",
     "fig-ce fig-mv fig-dv fig-distance fig-bytes fig-time fig-link "},
    {"Data, agents and mistakes", "agents", "fig-classes fig-graph fig-confusion "},
    {0},
};

/* The figure's id without a number at its end is a word of the list. */
static bool is_listed(const char *id, const char *list) {
    char word[80];
    size_t n = strlen(id);
    while (n > 0 && id[n - 1] >= '0' && id[n - 1] <= '9') n--;
    if (n > 0 && id[n - 1] == '-') n--;
    snprintf(word, sizeof word, "%.*s ", (int)n, id);
    return strstr(list, word) != NULL;
}

/* `facet`: what to add to the title, "" for nothing. */
static void add_figure(const ct_figure *f, const char *facet, ct_text *out) {
    ct_markup_add(out, "<figure id='%s-box'>", f->id);
    ct_markup_add(out, "<h3>%s%s%s</h3>\n", f->title, facet[0] != '\0' ? ": " : "", facet);
    ct_text_add(out, "<div class=\"drawing\">%s</div>\n", f->svg.chars);
    ct_markup_add(out, "<figcaption>%s</figcaption></figure>\n", f->caption.chars);
}

/* Charts of many curves: those of a study, whose figures stand above, are folded away. */
static bool is_crowded(const ct_report *r, const ct_report_options *o) {
    for (int k = 0; k < r->n_facets && o->intro != NULL; k++)
        if (r->facets[k].n_groups > MAX_CURVES) return true;
    return false;
}

static void add_section(const ct_report *r, const ct_report_options *o, const ct_figures *all,
                        const section *s, ct_text *out) {
    int n = 0;
    for (int k = 0; k < all->n; k++) n += is_listed(all->figure[k].id, s->figures);
    if (n == 0) return;
    bool is_folded = (n > MAX_OPEN && !s->is_open) || (s->has_curves && is_crowded(r, o));
    ct_markup_add(out, "<section id='%s'><h2>%s</h2>\n", s->id, s->title);
    if (is_folded)
        ct_markup_add(out, "<details id='all-%s'><summary>%d figures</summary>\n", s->id, n);
    ct_markup_add(out, "<div class='figures'>\n");
    for (int k = 0; k < all->n; k++) {
        const ct_figure *f = &all->figure[k];
        if (is_listed(f->id, s->figures))
            add_figure(f, f->facet >= 0 ? r->facets[f->facet].label : "", out);
    }
    ct_text_add(out, "</div>%s</section>\n", is_folded ? "</details>" : "");
}

/* What a facet has beside the accuracy of its consensus models, folded. */
static void add_facet(const ct_report *r, const ct_figures *all, int facet, ct_text *out) {
    const ct_report_facet *f = &r->facets[facet];
    ct_markup_add(out, "<details id='setting-%d'><summary>%s</summary>\n", facet + 1, f->label);
    ct_markup_add(out, "<div class='figures'>\n");
    for (int k = 0; k < all->n; k++)
        if (all->figure[k].facet == facet && is_listed(all->figure[k].id, rest_of_a_facet))
            add_figure(&all->figure[k], "", out);
    ct_text_add(out, "</div></details>\n");
}

static void add_facets(const ct_report *r, const ct_report_options *o, const ct_figures *all,
                       ct_text *out) {
    add_section(r, o, all, &ends_of_facets, out);
    ct_text_add(out, "<section id=\"settings\"><h2>The agents' own models, loss terms, agreement "
                     "and cost</h2>\n");
    for (int k = 0; k < r->n_facets; k++) add_facet(r, all, k, out);
    ct_text_add(out, "</section>\n");
}

static void add_sections(const ct_report *r, const ct_report_options *o, const ct_figures *all,
                         ct_text *out) {
    const section *s = r->n_groups > 1 ? sections : sections_of_one;
    if (r->n_facets > 1) {
        add_facets(r, o, all, out);
        while (s->has_curves) s++;
    }
    for (; s->id != NULL; s++) add_section(r, o, all, s, out);
}

/* ---- all ---- */

static void add_footer(const ct_report *r, ct_text *out) {
    ct_text_add(out, "<footer>Written by crosstalk " CT_VERSION " from ");
    for (int k = 0; k < r->n_runs; k++)
        ct_markup_add(out, k == 0 ? "<code>%s</code>" : ", <code>%s</code>", r->runs[k].path);
    ct_text_add(out, ".</footer>\n");
}

static void add_main(const ct_report *r, const ct_report_options *o, const ct_figures *figures,
                     ct_text *out) {
    CT_SCOPED(ct_text) title = {0}, setting = {0};
    add_title(r, o, &title);
    add_setting(r, &setting);
    ct_text_add(&setting, "%s", ""); /* perhaps nothing is the same for all */
    if (title.failed || setting.failed) out->failed = true;
    if (out->failed) return;
    ct_markup_add(out,
                  "<main id='report'>\n<header><h1>%s</h1>\n<p class='setting'>%s</p></header>\n",
                  title.chars, setting.chars);
    ct_text_add(out, "%s", o->notes != NULL ? o->notes : "");
    add_alarms(r, out);
    if (o->intro != NULL)
        ct_text_add(out, "%s", o->intro);
    else
        add_cards(r, out);
    if (figures->n == 0) ct_text_add(out, "<p>No epoch is finished yet.</p>\n");
    ct_report_add_sites(r, out);
    add_sections(r, o, figures, out);
    add_table(r, out);
    ct_report_add_options(r, out);
    ct_report_add_commands(r, out);
    add_footer(r, out);
    ct_text_add(out, "</main>\n");
}

ct_status ct_report_body(const ct_report *report, const ct_report_options *options, ct_text *out) {
    CT_SCOPED(ct_figures) figures = {0};
    CT_TRY(ct_figures_draw(report, options->figures, &figures));
    add_main(report, options, &figures, out);
    return ct_text_status(out);
}

ct_status ct_report_page(const ct_report *report, const ct_report_options *options, ct_text *out) {
    CT_SCOPED(ct_text) title = {0};
    add_title(report, options, &title);
    CT_TRY(ct_text_status(&title));
    ct_markup_add(out, "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/>\n");
    if (options->head == NULL) { /* as a server says it in a header */
        ct_markup_add(out, "<meta http-equiv='Content-Security-Policy' content='");
        ct_report_policy(NULL, "", out);
        ct_markup_add(out, "'/>\n");
    }
    ct_markup_add(out,
                  "<meta name='viewport' content='width=device-width, initial-scale=1'/>\n"
                  "<meta name='generator' content='crosstalk " CT_VERSION "'/>\n"
                  "<title>%s</title>\n",
                  title.chars);
    ct_text_add(out, "<style>\n%s</style>\n%s</head>\n<body>\n", ct_report_css,
                options->head != NULL ? options->head : "");
    if (options->body != NULL)
        ct_text_add(out, "%s", options->body);
    else
        CT_TRY(ct_report_body(report, options, out));
    ct_text_add(out, "<script>\n%s</script>\n</body></html>\n", ct_report_script);
    return ct_text_status(out);
}
