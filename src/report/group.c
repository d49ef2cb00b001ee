/* Which runs are the same but for the seed, and what each such group is called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/method.h"
#include "report/report_internal.h"
#include "schema/schema.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/text.h"

/* ---- what options are, as the schema says ---- */

/* Not the seed itself, nor what makes several runs of one, nor what does not change the numbers. */
static bool counts(const ct_record_option *o) {
    return (o->roles & (CT_ROLE_LOCAL | CT_ROLE_SINGLE | CT_ROLE_UNSAVED | CT_ROLE_WORLDS |
                        CT_ROLE_SEED)) == 0;
}

/* What is learnt, by whom and for how long: told wherever groups differ in it. */
static bool is_of_setting(const ct_record_option *o) {
    return (o->roles & CT_ROLE_SETTING) != 0;
}

/* What a method's name stands for. */
static bool is_of_method(const ct_record_option *o) {
    return (o->roles & CT_ROLE_METHOD) != 0;
}

static bool is_of_kin(const ct_record_option *o) {
    return is_of_setting(o) || is_of_method(o);
}

/* ---- groups ---- */

/* The run has the other's k-th option, with the same value. Both were written in the same order:
 * mostly it has the same place. */
static bool has_same(const ct_record *run, const ct_record *other, int k) {
    const ct_record_option *o = &other->options[k];
    bool is_there = k < run->n_options && strcmp(run->options[k].name, o->name) == 0;
    const char *own = is_there ? run->options[k].value : ct_record_option_of(run, o->name);
    return own != NULL && strcmp(own, o->value) == 0;
}

/* The same value of each of these options, which some of either may lack. */
static bool same_values(const ct_record *a, const ct_record *b,
                        bool (*is_one)(const ct_record_option *o)) {
    for (int k = 0; k < a->n_options; k++)
        if (is_one(&a->options[k]) && !has_same(b, a, k)) return false;
    for (int k = 0; k < b->n_options; k++)
        if (is_one(&b->options[k]) && !has_same(a, b, k)) return false;
    return true;
}

bool ct_report_same_method(const ct_record *a, const ct_record *b) {
    return same_values(a, b, is_of_method);
}

/* The same for the same values, whatever their order: most runs that differ are told apart by it. */
static uint64_t key_of(const ct_record *run, bool (*is_one)(const ct_record_option *o)) {
    uint64_t key = 0;
    for (int k = 0; k < run->n_options; k++) {
        const ct_record_option *o = &run->options[k];
        if (!is_one(o)) continue;
        uint64_t name = ct_hash(CT_HASH_START, o->name, strlen(o->name) + 1);
        key += ct_hash(name, o->value, strlen(o->value));
    }
    return key;
}

/* A run's name without its seed: "runs/ccl/seed-3" is "runs/ccl", "ccl-seed3.jsonl" is "ccl". */
static void bare_name(const char *path, char *out, size_t size) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    if (n > 6 && strncmp(path + n - 6, ".jsonl", 6) == 0) n -= 6;
    size_t end = n;
    while (end > 0 && path[end - 1] >= '0' && path[end - 1] <= '9') end--;
    if (end < n && end > 0 && (path[end - 1] == '-' || path[end - 1] == '_')) end--;
    if (end < n && end >= 4 && strncmp(path + end - 4, "seed", 4) == 0) n = end - 4;
    while (n > 1 && strchr("/-_.", path[n - 1]) != NULL) n--;
    snprintf(out, size, "%.*s", (int)n, path);
}

static bool same_bare_name(const ct_record *a, const ct_record *b) {
    char x[1024], y[1024];
    bare_name(a->path, x, sizeof x);
    bare_name(b->path, y, sizeof y);
    return strcmp(x, y) == 0;
}

static bool belongs(const ct_report *r, const ct_report_group *g, const uint64_t *keys, int run) {
    const ct_record *own = &r->runs[run], *first = &r->runs[g->runs[0]];
    if (keys[run] != keys[g->runs[0]]) return false;
    for (int k = 0; k < g->n_runs; k++)
        if (r->runs[g->runs[k]].seed == own->seed) return false;
    if (own->n_options == 0 || first->n_options == 0)
        return own->n_options == first->n_options && same_bare_name(own, first);
    return same_values(own, first, counts);
}

static ct_status add_to_group(ct_report *r, const uint64_t *keys, int run) {
    ct_report_group *g = NULL;
    for (int k = 0; k < r->n_groups && g == NULL; k++)
        if (belongs(r, &r->groups[k], keys, run)) g = &r->groups[k];
    if (g == NULL) {
        g = &r->groups[r->n_groups];
        r->n_groups++;
    }
    CT_TRY(ct_extend(&g->runs, (size_t)g->n_runs, "a group of runs"));
    int at = g->n_runs++;
    for (; at > 0 && r->runs[g->runs[at - 1]].seed > r->runs[run].seed; at--)
        g->runs[at] = g->runs[at - 1];
    g->runs[at] = run;
    return CT_OK;
}

/* ---- how groups differ ---- */

bool ct_report_is_shared(const ct_report *r, const char *name) {
    for (int k = 0; k < r->differing.n; k++)
        if (strcmp(r->differing.name[k], name) == 0) return false;
    return true;
}

static ct_status note_differences(ct_report *r, const ct_record *a, const ct_record *b) {
    for (int k = 0; k < a->n_options; k++)
        if (!has_same(b, a, k) && ct_report_is_shared(r, a->options[k].name))
            CT_TRY(ct_name_list_add(&r->differing, a->options[k].name));
    return CT_OK;
}

static ct_status compare_groups(ct_report *r, uint64_t *keys) {
    const ct_record *first = ct_report_first(r, 0);
    for (int g = 0; g < r->n_groups; g++) {
        const ct_record *own = ct_report_first(r, g);
        CT_TRY(note_differences(r, first, own));
        CT_TRY(note_differences(r, own, first));
        keys[g] = key_of(own, is_of_kin);
        int k = 0;
        while (k < g && !(keys[k] == keys[g] && same_values(ct_report_first(r, k), own, is_of_kin)))
            k++;
        r->groups[g].kin = k;
    }
    return CT_OK;
}

/* ---- labels ---- */

/* Some other group has another value of the k-th option, and that should be told: settings always,
 * others where method and setting are the same (published lambdas differ from alpha to alpha). So
 * is the device: whoever trained the same seed on two has two groups, as a seed is there once. */
static bool is_telling(const ct_report *r, int group, int k) {
    const ct_record *own = ct_report_first(r, group);
    const ct_record_option *o = &own->options[k];
    if (is_of_method(o) || (!counts(o) && strcmp(o->name, "device") != 0)) return false;
    if (ct_report_is_shared(r, o->name)) return false;
    if (is_of_setting(o)) return true;
    for (int g = 0; g < r->n_groups; g++)
        if (r->groups[g].kin == r->groups[group].kin && !has_same(ct_report_first(r, g), own, k))
            return true;
    return false;
}

static void add_method(const ct_record *run, ct_text *out) {
    const char *algorithm = ct_record_option_of(run, "algorithm");
    char name[1024];
    if (algorithm == NULL) {
        bare_name(run->path, name, sizeof name);
        const char *slash = strrchr(name, '/');
        ct_text_add(out, "%s", slash != NULL && slash[1] != '\0' ? slash + 1 : name);
        return;
    }
    ct_method_name(algorithm, ct_record_option_of(run, "loss"), name, sizeof name);
    ct_text_add(out, "%s", name);
}

/* Most splits are skewed by alpha, which is told where it differs: what needs a word is every other
 * split, and there alpha means nothing. */
static bool is_worth_telling(const ct_record *run, const ct_record_option *o) {
    const char *split = ct_record_option_of(run, "partition");
    bool is_usual = split == NULL || strcmp(split, "dirichlet") == 0;
    if (strcmp(o->name, "partition") == 0) return !is_usual;
    return is_usual || strcmp(o->name, "alpha") != 0;
}

/* What nobody has set is not told of a method: it is what the others differ from. */
static bool is_default(const ct_record_option *o) {
    const ct_option *option = ct_schema_find(o->name);
    double own, usual;
    if (option == NULL || option->value == NULL) return false;
    if (ct_parse_double(o->value, &own) && ct_parse_double(option->value, &usual))
        return own == usual;
    return strcmp(o->value, option->value) == 0;
}

ct_status ct_report_name(const ct_report *r, int group, ct_naming what, char **out) {
    const ct_record *run = ct_report_first(r, group);
    CT_SCOPED(ct_text) name = {0};
    ct_text_add(&name, "%s", "");
    if (what & CT_NAME_METHOD) add_method(run, &name);
    for (int k = 0; k < run->n_options; k++) {
        const ct_record_option *o = &run->options[k];
        bool is_setting = is_of_setting(o);
        if (!(what & (is_setting ? CT_NAME_SETTING : CT_NAME_METHOD))) continue;
        if (!is_telling(r, group, k) || !is_worth_telling(run, o)) continue;
        if (!is_setting && is_default(o)) continue;
        ct_text_add(&name, "%s%s %s", name.n > 0 ? ", " : "", o->name,
                    o->value[0] != '\0' ? o->value : "none");
    }
    CT_TRY(ct_text_status(&name));
    *out = ct_take(&name.chars);
    return CT_OK;
}

static bool is_double(const ct_report *r, int group) {
    for (int k = 0; k < r->n_groups; k++)
        if (k != group && strcmp(r->groups[k].label, r->groups[group].label) == 0) return true;
    return false;
}

/* What tells a run from others of the same label: of a site its name, otherwise the path. */
static void add_place(const ct_report *r, const ct_record *run, ct_text *out) {
    char name[1024];
    int n_same = 0;
    for (int k = 0; k < r->n_runs && run->site.name != NULL; k++)
        n_same += r->runs[k].site.name != NULL && strcmp(r->runs[k].site.name, run->site.name) == 0;
    bare_name(run->path, name, sizeof name);
    ct_text_add(out, " (%s)", n_same == 1 ? run->site.name : name);
}

/* Labels that are there more than once get the names or paths of their runs. */
static ct_status part_labels(ct_report *r) {
    CT_SCOPED_BLOCK(bool) doubles = NULL;
    CT_TRY(ct_make(&doubles, (size_t)r->n_groups, "the labels"));
    for (int k = 0; k < r->n_groups; k++) doubles[k] = is_double(r, k);
    for (int k = 0; k < r->n_groups; k++) {
        CT_SCOPED(ct_text) label = {0};
        if (!doubles[k]) continue;
        ct_text_add(&label, "%s", r->groups[k].label);
        add_place(r, ct_report_first(r, k), &label);
        CT_TRY(ct_text_status(&label));
        ct_free(r->groups[k].label);
        r->groups[k].label = ct_take(&label.chars);
    }
    return CT_OK;
}

ct_status ct_report_group_runs(ct_report *r) {
    CT_TRY(ct_make(&r->groups, (size_t)r->n_runs, "the groups"));
    CT_SCOPED_BLOCK(uint64_t) keys = NULL;
    CT_TRY(ct_make(&keys, (size_t)r->n_runs, "the groups"));
    for (int k = 0; k < r->n_runs; k++) keys[k] = key_of(&r->runs[k], counts);
    for (int k = 0; k < r->n_runs; k++) CT_TRY(add_to_group(r, keys, k));
    CT_TRY(compare_groups(r, keys));
    for (int k = 0; k < r->n_groups; k++)
        CT_TRY(ct_report_name(r, k, CT_NAME_ALL, &r->groups[k].label));
    return part_labels(r);
}
