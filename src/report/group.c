/* Which runs are the same but for the seed, and what each such group is called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_internal.h"
#include "schema/schema.h"
#include "util/memory.h"

/* ---- what options are, as the schema says ---- */

static bool has_role(const char *name, unsigned roles) {
    const ct_option *o = ct_schema_find(name);
    return o != NULL && (o->roles & roles) != 0;
}

/* The seed itself, what makes several runs of one, and what does not change the numbers. */
static bool never_counts(const char *name) {
    return has_role(name, CT_ROLE_LOCAL | CT_ROLE_SINGLE | CT_ROLE_UNSAVED | CT_ROLE_WORLDS |
                              CT_ROLE_SEED);
}

/* What is learnt, by whom and for how long: told wherever groups differ in it. */
static bool is_of_setting(const char *name) {
    return has_role(name, CT_ROLE_SETTING);
}

/* What a method's name stands for. */
static bool is_of_method(const char *name) {
    return has_role(name, CT_ROLE_METHOD);
}

/* ---- groups ---- */

static bool has_value(const ct_record *run, const char *name, const char *value) {
    const char *own = ct_record_option_of(run, name);
    return own != NULL && strcmp(own, value) == 0;
}

/* Every option that counts is the same in both. */
static bool same_options(const ct_record *a, const ct_record *b) {
    int n_more = 0; /* that b has */
    for (int k = 0; k < b->n_options; k++) n_more += !never_counts(b->options[k].name);
    for (int k = 0; k < a->n_options; k++) {
        const ct_record_option *o = &a->options[k];
        if (never_counts(o->name)) continue;
        if (!has_value(b, o->name, o->value)) return false;
        n_more--;
    }
    return n_more == 0;
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

static bool belongs(const ct_report *r, const ct_report_group *g, const ct_record *run) {
    const ct_record *first = &r->runs[g->runs[0]];
    for (int k = 0; k < g->n_runs; k++)
        if (r->runs[g->runs[k]].seed == run->seed) return false;
    if (run->n_options == 0 || first->n_options == 0)
        return run->n_options == first->n_options && same_bare_name(run, first);
    return same_options(run, first);
}

static ct_status add_to_group(ct_report *r, int run) {
    ct_report_group *g = NULL;
    for (int k = 0; k < r->n_groups && g == NULL; k++)
        if (belongs(r, &r->groups[k], &r->runs[run])) g = &r->groups[k];
    if (g == NULL) {
        g = &r->groups[r->n_groups];
        r->n_groups++;
        CT_TRY(ct_make(&g->runs, (size_t)r->n_runs, "a group of runs"));
    }
    int at = g->n_runs++;
    for (; at > 0 && r->runs[g->runs[at - 1]].seed > r->runs[run].seed; at--)
        g->runs[at] = g->runs[at - 1];
    g->runs[at] = run;
    return CT_OK;
}

/* ---- labels ---- */

/* The same value of each of these options, which some of either may lack. */
static bool same_values(const ct_record *a, const ct_record *b, bool (*is_one)(const char *name)) {
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < a->n_options; k++) {
            const ct_record_option *o = &a->options[k];
            if (is_one(o->name) && !has_value(b, o->name, o->value)) return false;
        }
        const ct_record *other = a;
        a = b;
        b = other;
    }
    return true;
}

bool ct_report_same_method(const ct_record *a, const ct_record *b) {
    return same_values(a, b, is_of_method);
}

/* Some other group has another value of this option, and that should be told: settings always,
 * others where method and setting are the same (published lambdas differ from alpha to alpha). So
 * is the device: whoever trained the same seed on two has two groups, as a seed is there once. */
static bool is_telling(const ct_report *r, int group, const ct_record_option *o) {
    const ct_record *own = ct_report_first(r, group);
    if (is_of_method(o->name) || (never_counts(o->name) && strcmp(o->name, "device") != 0))
        return false;
    for (int k = 0; k < r->n_groups; k++) {
        const ct_record *other = ct_report_first(r, k);
        if (k == group || has_value(other, o->name, o->value)) continue;
        if (is_of_setting(o->name)) return true;
        if (ct_report_same_method(own, other) && same_values(own, other, is_of_setting))
            return true;
    }
    return false;
}

bool ct_report_is_shared(const ct_report *r, const char *name) {
    const char *value = ct_record_option_of(ct_report_first(r, 0), name);
    for (int g = 1; g < r->n_groups; g++) {
        const char *other = ct_record_option_of(ct_report_first(r, g), name);
        if ((value == NULL) != (other == NULL)) return false;
        if (value != NULL && strcmp(value, other) != 0) return false;
    }
    return true;
}

static void add_method(const ct_record *run, ct_text *out) {
    const char *algorithm = ct_record_option_of(run, "algorithm");
    const char *loss = ct_record_option_of(run, "loss");
    char name[1024];
    if (algorithm == NULL) {
        bare_name(run->path, name, sizeof name);
        const char *slash = strrchr(name, '/');
        ct_text_add(out, "%s", slash != NULL && slash[1] != '\0' ? slash + 1 : name);
        return;
    }
    ct_text_add(out, "%s%s", algorithm, loss != NULL && strcmp(loss, "ccl") == 0 ? " + CCL" : "");
}

/* Most splits are skewed by alpha, which is told where it differs: what needs a word is every other
 * split, and there alpha means nothing. */
static bool is_worth_telling(const ct_record *run, const ct_record_option *o) {
    const char *split = ct_record_option_of(run, "partition");
    bool is_usual = split == NULL || strcmp(split, "dirichlet") == 0;
    if (strcmp(o->name, "partition") == 0) return !is_usual;
    return is_usual || strcmp(o->name, "alpha") != 0;
}

ct_status ct_report_name(const ct_report *r, int group, ct_naming what, char **out) {
    const ct_record *run = ct_report_first(r, group);
    CT_SCOPED(ct_text) name = {0};
    ct_text_add(&name, "%s", "");
    if (what & CT_NAME_METHOD) add_method(run, &name);
    for (int k = 0; k < run->n_options; k++) {
        const ct_record_option *o = &run->options[k];
        bool is_setting = is_of_setting(o->name);
        if (!(what & (is_setting ? CT_NAME_SETTING : CT_NAME_METHOD))) continue;
        if (!is_telling(r, group, o) || !is_worth_telling(run, o)) continue;
        ct_text_add(&name, "%s%s %s", name.n > 0 ? ", " : "", o->name,
                    o->value[0] != '\0' ? o->value : "none");
    }
    CT_TRY(ct_text_status(&name));
    return ct_make_text(out, name.chars);
}

static bool is_double(const ct_report *r, int group) {
    for (int k = 0; k < r->n_groups; k++)
        if (k != group && strcmp(r->groups[k].label, r->groups[group].label) == 0) return true;
    return false;
}

/* Labels that are there more than once get the paths of their runs. */
static ct_status part_labels(ct_report *r) {
    CT_SCOPED_BLOCK(char *) parted = NULL;
    ct_status status = ct_make(&parted, (size_t)r->n_groups, "the labels");
    for (int k = 0; k < r->n_groups && status == CT_OK; k++) {
        char name[1024];
        CT_SCOPED(ct_text) label = {0};
        if (!is_double(r, k)) continue;
        bare_name(ct_report_first(r, k)->path, name, sizeof name);
        ct_text_add(&label, "%s (%s)", r->groups[k].label, name);
        status = ct_text_status(&label);
        if (status == CT_OK) status = ct_make_text(&parted[k], label.chars);
    }
    for (int k = 0; parted != NULL && k < r->n_groups; k++) {
        if (parted[k] == NULL) continue;
        ct_free(r->groups[k].label);
        r->groups[k].label = parted[k];
    }
    return status;
}

ct_status ct_report_group_runs(ct_report *r) {
    CT_TRY(ct_make(&r->groups, (size_t)r->n_runs, "the groups"));
    for (int k = 0; k < r->n_runs; k++) CT_TRY(add_to_group(r, k));
    for (int k = 0; k < r->n_groups; k++)
        CT_TRY(ct_report_name(r, k, CT_NAME_ALL, &r->groups[k].label));
    return part_labels(r);
}
