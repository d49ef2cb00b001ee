/* The options of the runs, and the commands that do them again. */
#include <inttypes.h>
#include <string.h>

#include "algo/algo.h"
#include "report/markup.h"
#include "report/report_internal.h"
#include "schema/config.h"
#include "util/memory.h"

/* ---- options ---- */

/* What is the run's own anyway. */
static bool is_own(const char *name) {
    return strcmp(name, "seed") == 0 || strcmp(name, "seeds") == 0 || strcmp(name, "out") == 0;
}

static void add_cell(const char *name, const char *value, ct_text *out) {
    if (value == NULL) value = "\xE2\x80\x93";
    ct_markup_add(out, "<td class='word long' data-th='%s'>%s</td>", name,
                  value[0] != '\0' ? value : "(none)");
}

static bool is_told(const ct_report *r, const char *name) {
    return !ct_report_is_shared(r, name) && !is_own(name);
}

/* A line for every group, with the options in which they differ. */
static void add_differing(const ct_report *r, ct_text *out) {
    ct_markup_add(out,
                  "<div class='wide-table'><table id='options-differing' class='rows'>\n<thead>"
                  "<tr><th>differ in</th>");
    for (int k = 0; k < r->differing.n; k++)
        if (is_told(r, r->differing.name[k]))
            ct_markup_add(out, "<th class='word'>%s</th>", r->differing.name[k]);
    ct_text_add(out, "</tr></thead>\n<tbody>\n");
    for (int g = 0; g < r->n_groups; g++) {
        ct_markup_add(out, "<tr><th>%s</th>", r->groups[g].label);
        for (int k = 0; k < r->differing.n; k++) {
            const char *name = r->differing.name[k];
            if (is_told(r, name))
                add_cell(name, ct_record_option_of(ct_report_first(r, g), name), out);
        }
        ct_text_add(out, "</tr>\n");
    }
    ct_text_add(out, "</tbody></table></div>\n");
}

void ct_report_add_options(const ct_report *r, ct_text *out) {
    const ct_record *first = ct_report_first(r, 0);
    if (first->n_options == 0) return;
    ct_markup_add(out, "<section id='options'><h2>Options</h2>\n");
    if (r->n_groups > 1) add_differing(r, out);
    ct_markup_add(out,
                  "<details><summary>%s</summary>\n<div class='wide-table'>"
                  "<table id='options-shared'><tbody>\n",
                  r->n_groups > 1 ? "The same for all" : "Every option");
    for (int k = 0; k < first->n_options; k++) {
        const ct_record_option *o = &first->options[k];
        if (!ct_report_is_shared(r, o->name) || is_own(o->name)) continue;
        ct_markup_add(out, "<tr><th>%s</th>", o->name);
        add_cell("value", o->value, out);
        ct_text_add(out, "</tr>\n");
    }
    ct_text_add(out, "</tbody></table></div></details></section>\n");
}

/* ---- commands ---- */

#define LINE 84 /* characters after which a command goes on in the next line */

/* "name = value" is a line of the text, which begins with an empty one. */
static bool has_line(const ct_text *lines, const ct_record_option *o) {
    size_t n_name = strlen(o->name), n_value = strlen(o->value);
    for (const char *at = lines->chars; at != NULL; at = strchr(at + 1, '\n')) {
        bool is_it = strncmp(at + 1, o->name, n_name) == 0 &&
                     strncmp(at + 1 + n_name, " = ", 3) == 0 &&
                     strncmp(at + 4 + n_name, o->value, n_value) == 0;
        if (is_it && at[4 + n_name + n_value] == '\n') return true;
    }
    return false;
}

/* Chosen by the run for an algorithm that it does not train with. */
static bool is_of_another(const ct_record *run, const ct_record_option *o) {
    const char *name = ct_record_option_of(run, "algorithm");
    const ct_algo *algo;
    if (name == NULL || CT_CATCH(NULL, ct_algo_find(name, &algo)) != CT_OK) return false;
    return CT_CATCH(NULL, ct_algo_check_option(algo, o->name)) != CT_OK;
}

/* A lambda of 0 that no one named: of another loss, or where it is chosen by the run. */
static bool is_idle(const ct_record *run, const ct_record_option *o) {
    const char *loss = ct_record_option_of(run, "loss");
    const char *adaptive = ct_record_option_of(run, "ccl-adaptive");
    bool is_lambda = strcmp(o->name, "lambda-m") == 0 || strcmp(o->name, "lambda-d") == 0;
    if (!is_lambda || strcmp(o->value, "0") != 0) return false;
    return loss == NULL || strcmp(loss, "ccl") != 0 ||
           (adaptive != NULL && strcmp(adaptive, "0") != 0);
}

/* The federation's file is not in a run's directory. */
static void add_site_command(const ct_record *run, ct_text *out) {
    const char *data = ct_record_option_of(run, "data-dir");
    ct_text_add(out, "crosstalk site run FEDERATION --key KEY --site %s", run->site.name);
    if (data == NULL || data[0] == '\0') return;
    ct_text_add(out, " --data-dir ");
    ct_shell_add(out, data);
}

/* Options of other versions and machines are told as well: whoever repeats a run decides. */
static void add_command(const ct_report *r, const ct_report_group *g, const ct_text *defaults,
                        ct_text *out) {
    const ct_record *run = &r->runs[g->runs[0]];
    size_t line = 0; /* where the last line begins */
    ct_text_add(out, "crosstalk train");
    for (int k = 0; k < run->n_options; k++) {
        const ct_record_option *o = &run->options[k];
        if (is_own(o->name) || has_line(defaults, o) || is_idle(run, o)) continue;
        if (is_of_another(run, o)) continue;
        bool is_switch = ct_config_is_switch(o->name);
        if (is_switch && strcmp(o->value, "on") != 0) continue;
        bool is_full = out->n - line + strlen(o->name) + strlen(o->value) > LINE;
        if (is_full) line = out->n;
        ct_text_add(out, "%s --%s", is_full ? " \\\n   " : "", o->name);
        if (is_switch) continue;
        ct_text_add(out, " ");
        ct_shell_add(out, o->value);
    }
    ct_text_add(out, g->n_runs > 1 ? " --seeds " : " --seed ");
    for (int k = 0; k < g->n_runs; k++)
        ct_text_add(out, "%s%" PRIu64, k == 0 ? "" : ",", r->runs[g->runs[k]].seed);
}

void ct_report_add_commands(const ct_report *r, ct_text *out) {
    CT_SCOPED(ct_text) defaults = {0}; /* "name = value" of every option that nobody has set */
    bool is_open = false;
    ct_config config;
    ct_config_init(&config);
    ct_text_add(&defaults, "\n");
    ct_config_print(&config, &defaults);
    if (defaults.failed) out->failed = true;
    for (int g = 0; g < r->n_groups && !out->failed; g++) {
        CT_SCOPED(ct_text) command = {0};
        if (ct_report_first(r, g)->n_options == 0) continue;
        if (!is_open)
            ct_markup_add(out,
                          "<section id='repeat'><h2>How to repeat this</h2>\n"
                          "<p class='note'>The same numbers, to the bit, on the same kind of "
                          "device, %s.</p>\n",
                          ct_report_is_of_sites(r) ? "if no site is away meanwhile"
                                                   : "for any number of threads and ranks");
        is_open = true;
        if (r->n_groups > 1) ct_markup_add(out, "<h3>%s</h3>\n", r->groups[g].label);
        if (ct_report_first(r, g)->site.name != NULL)
            add_site_command(ct_report_first(r, g), &command);
        else
            add_command(r, &r->groups[g], &defaults, &command);
        if (!command.failed) ct_markup_add(out, "<pre>%s</pre>\n", command.chars);
        out->failed = out->failed || command.failed;
    }
    if (is_open) ct_text_add(out, "</section>\n");
}

void ct_report_add_first_command(const char *dir, ct_text *out) {
    CT_SCOPED(ct_text) place = {0};
    ct_shell_add(&place, dir);
    if (place.failed) out->failed = true;
    if (out->failed) return;
    ct_markup_add(out,
                  "<pre>crosstalk train --dataset shapes --algorithm ccl --epochs 20 --out "
                  "%s/first</pre>\n",
                  place.chars);
}
