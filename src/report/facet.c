/* Which groups stand in the same charts: all of them, or, where there are too many for one legend,
 * those with the same setting. Settings that one group alone has share charts, the last ones. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "report/method.h"
#include "report/report_internal.h"
#include "report/svg.h"
#include "util/memory.h"

#define OTHERS "other settings"

static int count_alike(const ct_report *r, int group) {
    int n = 0;
    for (int k = 0; k < r->n_groups; k++)
        n += strcmp(r->groups[k].setting, r->groups[group].setting) == 0;
    return n;
}

/* Every group's setting, or what stands for it: nothing where groups are not parted, and one name
 * for all that no other group shares. */
static ct_status name_settings(ct_report *r) {
    CT_SCOPED_BLOCK(int) n_alike = NULL;
    int n_alone = 0;
    CT_TRY(ct_make(&n_alike, (size_t)r->n_groups, "the settings"));
    for (int g = 0; g < r->n_groups; g++)
        CT_TRY(ct_report_name(r, g, CT_NAME_SETTING, &r->groups[g].setting));
    for (int g = 0; g < r->n_groups; g++) n_alone += (n_alike[g] = count_alike(r, g)) == 1;
    bool is_parted =
        r->n_groups > CT_MAX_IN_CHART && n_alone < r->n_groups && n_alike[0] < r->n_groups;
    for (int g = 0; g < r->n_groups; g++) {
        if (is_parted && (n_alike[g] > 1 || n_alone == 1)) continue;
        ct_free(r->groups[g].setting);
        CT_TRY(ct_make_text(&r->groups[g].setting, is_parted ? OTHERS : ""));
    }
    return CT_OK;
}

/* ---- facets ---- */

static ct_status add_to_facet(ct_report *r, int group) {
    const char *label = r->groups[group].setting;
    int k = 0;
    while (k < r->n_facets && strcmp(r->facets[k].label, label) != 0) k++;
    ct_report_facet *f = &r->facets[k];
    if (k == r->n_facets) {
        r->n_facets++;
        f->label = label;
        CT_TRY(ct_make(&f->groups, (size_t)r->n_groups, "charts"));
    }
    f->groups[f->n_groups++] = group;
    return CT_OK;
}

static bool is_other(const char *label) {
    return strcmp(label, OTHERS) == 0;
}

static ct_status fill_facets(ct_report *r) {
    CT_TRY(ct_make(&r->facets, (size_t)r->n_groups, "charts"));
    for (int is_last = 0; is_last <= 1; is_last++)
        for (int g = 0; g < r->n_groups; g++)
            if (is_other(r->groups[g].setting) == is_last) CT_TRY(add_to_facet(r, g));
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

/* The method's name where the chart's tells the setting; the whole label where it does not, or
 * where two would be called the same. */
static ct_status name_groups(ct_report *r) {
    for (const ct_report_facet *f = r->facets; f < r->facets + r->n_facets; f++) {
        bool needs_labels = f->label[0] == '\0' || is_other(f->label);
        for (int i = 0; i < f->n_groups && !needs_labels; i++)
            CT_TRY(ct_report_name(r, f->groups[i], CT_NAME_METHOD, &r->groups[f->groups[i]].name));
        for (int i = 0; i < f->n_groups && !needs_labels; i++)
            needs_labels = is_double(r, f, f->groups[i]);
        for (int i = 0; i < f->n_groups && needs_labels; i++) {
            ct_report_group *g = &r->groups[f->groups[i]];
            ct_free(g->name);
            CT_TRY(ct_make_text(&g->name, g->label));
        }
    }
    return CT_OK;
}

/* Numbers inside names by their size: "lr 0.5" comes before "lr 10". */
static int compare_names(const char *a, const char *b) {
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        bool has_numbers = isdigit((unsigned char)*a) && isdigit((unsigned char)*b);
        char *a_end = NULL, *b_end = NULL;
        double x = has_numbers ? strtod(a, &a_end) : 0, y = has_numbers ? strtod(b, &b_end) : 0;
        if (x != y) return x < y ? -1 : 1;
        if (!has_numbers && *a != *b) break;
        if (has_numbers) a = a_end - 1, b = b_end - 1;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static int compare_groups(const void *a, const void *b) {
    const ct_report_group *x = *(const ct_report_group *const *)a;
    const ct_report_group *y = *(const ct_report_group *const *)b;
    if (x->method != y->method) return x->method < y->method ? -1 : 1;
    int order = compare_names(x->name, y->name);
    return order != 0 ? order : x->key - y->key;
}

/* The same name has the same style in every chart: the method's, and of further names of the same
 * method a variant of it, by their order. */
static ct_status choose_styles(ct_report *r) {
    CT_SCOPED_BLOCK(ct_report_group *) sorted = NULL;
    CT_TRY(ct_make(&sorted, (size_t)r->n_groups, "the styles"));
    for (int g = 0; g < r->n_groups; g++) {
        int k = 0;
        while (strcmp(r->groups[k].name, r->groups[g].name) != 0) k++;
        r->groups[g].key = k;
        r->groups[g].method = ct_method_style_of(ct_report_first(r, g));
        sorted[g] = &r->groups[g];
    }
    qsort(sorted, (size_t)r->n_groups, sizeof *sorted, compare_groups);
    int variant = 0;
    for (int g = 0; g < r->n_groups; g++) {
        if (g > 0 && sorted[g]->method != sorted[g - 1]->method)
            variant = 0;
        else if (g > 0 && sorted[g]->key != sorted[g - 1]->key)
            variant++;
        sorted[g]->style = ct_style_variant(sorted[g]->method, variant);
    }
    return CT_OK;
}

ct_status ct_report_part(ct_report *r) {
    CT_TRY(name_settings(r));
    CT_TRY(fill_facets(r));
    CT_TRY(name_groups(r));
    return choose_styles(r);
}
