/* Which groups stand in the same charts: all of them, or, where there are too many for one legend,
 * those with the same setting. Settings that one group alone has share charts, the last ones. */
#include <string.h>

#include "report/report_internal.h"
#include "util/memory.h"

#define OTHERS "other settings"

typedef struct parting {
    const ct_report *report;
    char **setting; /* [n_groups] */
    bool is_parted;
    int n_alone; /* groups whose setting no other has */
} parting;

static int count_alike(const parting *p, int group) {
    int n = 0;
    for (int k = 0; k < p->report->n_groups; k++)
        n += strcmp(p->setting[k], p->setting[group]) == 0;
    return n;
}

static ct_status name_settings(parting *p) {
    const ct_report *r = p->report;
    CT_TRY(ct_make(&p->setting, (size_t)r->n_groups, "the settings"));
    for (int g = 0; g < r->n_groups; g++)
        CT_TRY(ct_report_name(r, g, CT_NAME_SETTING, &p->setting[g]));
    for (int g = 0; g < r->n_groups; g++) p->n_alone += count_alike(p, g) == 1;
    p->is_parted = r->n_groups > CT_MAX_IN_LEGEND && p->n_alone < r->n_groups &&
                   count_alike(p, 0) < r->n_groups;
    return CT_OK;
}

static const char *facet_of(const parting *p, int group) {
    if (!p->is_parted) return "";
    return count_alike(p, group) == 1 && p->n_alone > 1 ? OTHERS : p->setting[group];
}

/* ---- facets ---- */

static ct_status add_to_facet(ct_report *r, const char *label, int group) {
    ct_report_facet *f = NULL;
    for (int k = 0; k < r->n_facets && f == NULL; k++)
        if (strcmp(r->facets[k].label, label) == 0) f = &r->facets[k];
    if (f == NULL) {
        f = &r->facets[r->n_facets++];
        CT_TRY(ct_make_text(&f->label, label));
        CT_TRY(ct_make(&f->groups, (size_t)r->n_groups, "charts"));
    }
    f->groups[f->n_groups++] = group;
    return CT_OK;
}

static ct_status fill_facets(const parting *p, ct_report *r) {
    CT_TRY(ct_make(&r->facets, (size_t)r->n_groups, "charts"));
    for (int is_last = 0; is_last <= 1; is_last++)
        for (int g = 0; g < r->n_groups; g++) {
            const char *label = facet_of(p, g);
            if ((strcmp(label, OTHERS) == 0) == is_last) CT_TRY(add_to_facet(r, label, g));
        }
    return CT_OK;
}

/* ---- names and styles inside ---- */

static bool is_double(const ct_report *r, const ct_report_facet *f, int group) {
    for (int k = 0; k < f->n_groups; k++)
        if (f->groups[k] != group &&
            strcmp(r->groups[f->groups[k]].name, r->groups[group].name) == 0)
            return true;
    return false;
}

static ct_status use_label(ct_report_group *g) {
    ct_free(g->name);
    return ct_make_text(&g->name, g->label);
}

/* The method's name where the chart's tells the setting; the whole label where it does not, or
 * where two would be called the same. */
static ct_status name_groups(const parting *p, ct_report *r) {
    for (int k = 0; k < r->n_facets; k++) {
        const ct_report_facet *f = &r->facets[k];
        bool needs_labels = !p->is_parted || strcmp(f->label, OTHERS) == 0;
        for (int i = 0; i < f->n_groups && !needs_labels; i++)
            CT_TRY(ct_report_name(r, f->groups[i], CT_NAME_METHOD, &r->groups[f->groups[i]].name));
        for (int i = 0; i < f->n_groups && !needs_labels; i++)
            needs_labels = is_double(r, f, f->groups[i]);
        for (int i = 0; i < f->n_groups && needs_labels; i++)
            CT_TRY(use_label(&r->groups[f->groups[i]]));
    }
    return CT_OK;
}

/* The same name has the same style in every chart. */
static void choose_styles(ct_report *r) {
    int n = 0;
    for (int g = 0; g < r->n_groups; g++) {
        r->groups[g].style = -1;
        for (int k = 0; k < g && r->groups[g].style < 0; k++)
            if (strcmp(r->groups[k].name, r->groups[g].name) == 0)
                r->groups[g].style = r->groups[k].style;
        if (r->groups[g].style < 0) r->groups[g].style = n++;
    }
}

ct_status ct_report_part(ct_report *r) {
    parting p = {.report = r};
    ct_status status = name_settings(&p);
    if (status == CT_OK) status = fill_facets(&p, r);
    if (status == CT_OK) status = name_groups(&p, r);
    if (status == CT_OK) choose_styles(r);
    for (int g = 0; p.setting != NULL && g < r->n_groups; g++) ct_free(p.setting[g]);
    ct_free(p.setting);
    return status;
}
