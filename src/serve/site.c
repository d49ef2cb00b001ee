#include "serve/site.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/markup.h"
#include "report/report.h"
#include "serve/http.h"
#include "util/memory.h"

extern const char ct_serve_script[]; /* live.js */

struct ct_site {
    ct_http *http;
    char *dir;
    char real[PATH_MAX]; /* where it is, links resolved */
};

/* ---- the runs there are ---- */

/* A run below the directory, not behind a link that leaves it. */
static bool is_inside(const ct_site *site, const char *path) {
    char real[PATH_MAX];
    size_t n = strlen(site->real);
    return realpath(path, real) != NULL && strncmp(real, site->real, n) == 0 &&
           (real[n] == '/' || real[n] == '\0' || strcmp(site->real, "/") == 0);
}

static ct_status find_runs(const ct_site *site, ct_name_list *out) {
    CT_SCOPED(ct_name_list) all = {0};
    CT_TRY(ct_record_find(site->dir, &all));
    for (int k = 0; k < all.n; k++)
        if (is_inside(site, all.name[k])) CT_TRY(ct_name_list_add(out, all.name[k]));
    return CT_OK;
}

/* What a run is called here: its path below the directory. */
static const char *name_of(const ct_site *site, const char *path) {
    size_t n = strlen(site->dir);
    if (strncmp(path, site->dir, n) != 0) return path;
    path += n;
    while (*path == '/') path++;
    return *path != '\0' ? path : ".";
}

/* `name` is a line of `lines`. */
static bool has_line(const char *lines, const char *name) {
    size_t n = strlen(name);
    for (const char *at = lines; at != NULL; at = strchr(at, '\n')) {
        if (*at == '\n') at++;
        if (strncmp(at, name, n) == 0 && (at[n] == '\n' || at[n] == '\0')) return true;
        if (*at == '\0') return false;
    }
    return false;
}

/* Without a field `run`, every run is asked for. A field has one name a line. */
static bool is_asked_for(const ct_http_request *request, const char *name) {
    bool is_named = false;
    for (int k = 0; k < request->n_fields; k++) {
        if (strcmp(request->fields[k].name, "run") != 0) continue;
        if (has_line(request->fields[k].value, name)) return true;
        is_named = true;
    }
    return !is_named;
}

static ct_status load_asked(const ct_site *site, const ct_http_request *request, ct_report *out) {
    CT_SCOPED(ct_name_list) runs = {0}, asked = {0};
    CT_TRY(find_runs(site, &runs));
    for (int k = 0; k < runs.n; k++)
        if (is_asked_for(request, name_of(site, runs.name[k])))
            CT_TRY(ct_name_list_add(&asked, runs.name[k]));
    if (asked.n == 0) return ct_fail(CT_IO, "there are no such runs");
    return ct_report_load((const char *const *)asked.name, asked.n, out);
}

/* ---- pages ---- */

static void add_encoded(ct_text *out, const char *value) {
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                        (c >= 'a' && c <= 'z') || strchr("-_.~/", c) != NULL;
        ct_text_add(out, is_plain ? "%c" : "%%%02X", c);
    }
}

static void add_query(const ct_http_request *request, ct_text *out) {
    const char *before = "?";
    for (int k = 0; k < request->n_fields; k++) {
        if (strcmp(request->fields[k].name, "run") != 0) continue;
        ct_text_add(out, "%srun=", before);
        add_encoded(out, request->fields[k].value);
        before = "&amp;";
    }
}

/* The script that follows the page at `from`, whose main element is now `body`. */
static void add_script(const char *from, const ct_http_request *request, const ct_text *body,
                       ct_text *out) {
    char tag[32];
    ct_http_tag(body, tag, sizeof tag);
    ct_text_add(out, "<script data-from=\"%s", from);
    add_query(request, out);
    ct_text_add(out, "\" data-tag=\"");
    ct_markup_text(out, tag);
    ct_text_add(out, "\">\n%s</script>\n<link rel=\"icon\" href=\"data:,\"/>\n", ct_serve_script);
}

static ct_status add_report(const ct_http_request *request, const ct_report *report, bool is_whole,
                            ct_text *out) {
    ct_report_options options = {0};
    if (!is_whole) return ct_report_body(report, &options, out);
    CT_SCOPED(ct_text) body = {0}, head = {0};
    CT_TRY(ct_report_body(report, &options, &body));
    add_script("/body", request, &body, &head);
    CT_TRY(ct_text_status(&head));
    options.head = head.chars;
    return ct_report_page(report, &options, out);
}

static ct_status show_report(const ct_site *site, const ct_http_request *request, bool is_whole,
                             ct_text *out) {
    CT_SCOPED(ct_report) report = {0};
    CT_TRY(load_asked(site, request, &report));
    return add_report(request, &report, is_whole, out);
}

/* ---- the list ---- */

static void add_names(const ct_site *site, const ct_report *r, const ct_report_group *g,
                      ct_text *out) {
    for (int k = 0; k < g->n_runs; k++)
        ct_text_add(out, "%s%s", k == 0 ? "" : "\n", name_of(site, r->runs[g->runs[k]].path));
}

/* A box to tick and a link, both for all runs of the group. */
static void add_link(const ct_text *names, const char *label, ct_text *out) {
    const char *all = names->chars != NULL ? names->chars : "";
    ct_markup_wrap(out, "<th><input type=\"checkbox\" name=\"run\" aria-label=\"compare\" value=\"",
                   all, "\"/> <a href=\"/report?run=");
    add_encoded(out, all);
    ct_markup_wrap(out, "\">", label, "</a></th>");
    if (names->failed) out->failed = true;
}

static void add_accuracy(const ct_report *r, const ct_report_group *g, ct_text *out) {
    double deviation, accuracy = ct_report_mean(r, g, CT_METRIC_CONSENSUS_ACCURACY, &deviation);
    ct_text_add(out, "<td>");
    if (isfinite(accuracy)) ct_text_add(out, "%.2f", 100 * accuracy);
    if (isfinite(deviation)) ct_text_add(out, " \xC2\xB1 %.2f", 100 * deviation);
    ct_text_add(out, "</td>");
}

static void add_group(const ct_site *site, const ct_report *r, const ct_report_group *g,
                      ct_text *out) {
    const ct_record *first = &r->runs[g->runs[0]];
    ct_text names = {0};
    char state[64];
    ct_record_print_end(ct_report_end(r, g), state, sizeof state);
    add_names(site, r, g, &names);
    ct_text_add(out, "<tr>");
    add_link(&names, g->label, out);
    ct_text_add(out, "<td class=\"word\">");
    ct_markup_text(out, name_of(site, first->path));
    ct_text_add(out, "</td><td>%d</td><td>%.0f</td>", g->n_runs,
                fmax(0, ct_record_last(first, CT_METRIC_EPOCH)));
    add_accuracy(r, g, out);
    ct_text_add(out, "<td class=\"word\">%s</td></tr>\n", state);
    ct_text_free(&names);
}

/* Runs that cannot be read are named with the reason; the others are listed all the same. */
static ct_status load_readable(const ct_name_list *runs, ct_report *out, ct_text *complaints) {
    CT_SCOPED(ct_name_list) good = {0};
    for (int k = 0; k < runs->n; k++) {
        CT_SCOPED(ct_report) one = {0};
        const char *name = runs->name[k];
        ct_error error;
        if (CT_CATCH(&error, ct_report_load(&name, 1, &one)) == CT_OK) {
            CT_TRY(ct_name_list_add(&good, name));
        } else {
            ct_markup_wrap(complaints, "<p class=\"note\">", error.text, "</p>\n");
        }
    }
    return good.n > 0 ? ct_report_load((const char *const *)good.name, good.n, out) : CT_OK;
}

static void add_list(const ct_site *site, const ct_report *r, const ct_text *complaints,
                     ct_text *out) {
    ct_markup_wrap(out, "<main id=\"list\">\n<header><h1>Runs</h1>\n<p class=\"setting\">",
                   site->dir, "</p></header>\n");
    if (r->n_groups == 0) {
        ct_text_add(out, "<p>None yet: crosstalk train --out here/name begins one.</p>\n");
    } else {
        ct_text_add(out,
                    "<form action=\"/report\"><div class=\"wide-table\"><table>\n<thead><tr>"
                    "<th>method</th><th class=\"word\">run</th><th>seeds</th><th>epochs</th>"
                    "<th>consensus %%</th><th class=\"word\">state</th></tr></thead>\n<tbody>\n");
        for (int g = 0; g < r->n_groups; g++) add_group(site, r, &r->groups[g], out);
        ct_text_add(out, "</tbody></table></div>\n<p><button>Compare</button> <span class=\"note\">"
                         "those ticked, or all</span></p></form>\n");
    }
    ct_text_add(out, "%s</main>\n", complaints->chars != NULL ? complaints->chars : "");
}

static ct_status make_list(const ct_site *site, ct_text *out) {
    CT_SCOPED(ct_name_list) runs = {0};
    CT_SCOPED(ct_report) report = {0};
    CT_SCOPED(ct_text) complaints = {0};
    /* A directory without a run is not wrong: one may begin any time. */
    (void)CT_CATCH(NULL, find_runs(site, &runs));
    CT_TRY(load_readable(&runs, &report, &complaints));
    add_list(site, &report, &complaints, out);
    return ct_text_status(&complaints);
}

static ct_status show_list(const ct_site *site, const ct_http_request *request, bool is_whole,
                           ct_text *out) {
    if (!is_whole) return make_list(site, out);
    ct_text list = {0};
    ct_status status = make_list(site, &list);
    ct_text_add(out,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n<meta "
                "name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>"
                "crosstalk</title>\n<style>\n%s</style>\n",
                ct_report_css);
    add_script("/list", request, &list, out);
    ct_text_add(out, "</head>\n<body>\n%s</body></html>\n", list.chars != NULL ? list.chars : "");
    ct_text_free(&list);
    return status;
}

/* ---- answers ---- */

static const struct {
    const char *path;
    ct_status (*show)(const ct_site *site, const ct_http_request *request, bool is_whole,
                      ct_text *out);
    bool is_whole;
} pages[] = {
    {"/", show_list, true},
    {"/list", show_list, false},
    {"/report", show_report, true},
    {"/body", show_report, false},
};

static void answer_failed(ct_http_answer *answer, const char *words) {
    ct_text_free(&answer->body);
    answer->code = 404;
    answer->type = "text/plain; charset=utf-8";
    ct_text_add(&answer->body, "%s\n", words);
}

static void handle(void *context, const ct_http_request *request, ct_http_answer *answer) {
    for (size_t k = 0; k < sizeof pages / sizeof *pages; k++) {
        if (strcmp(pages[k].path, request->path) != 0) continue;
        ct_error error;
        if (CT_CATCH(&error, pages[k].show(context, request, pages[k].is_whole, &answer->body)))
            answer_failed(answer, error.text);
        return;
    }
    answer_failed(answer, "there is no such page");
}

ct_status ct_site_open(const char *dir, const char *address, int port, ct_site **out) {
    ct_site *site = ct_new(ct_site, 1);
    if (site == NULL) return ct_fail(CT_NOMEM, "no memory for the server");
    site->dir = ct_strdup(dir);
    ct_status status = site->dir != NULL && realpath(dir, site->real) != NULL
                           ? ct_http_open(address, port, handle, site, &site->http)
                           : ct_fail(CT_IO, "%s: cannot be opened", dir);
    *out = site;
    if (status != CT_OK) ct_site_close(out);
    return status;
}

int ct_site_port(const ct_site *site) {
    return ct_http_port(site->http);
}

void ct_site_close(ct_site **site) {
    if (*site == NULL) return;
    ct_http_close(&(*site)->http);
    ct_free((*site)->dir);
    ct_free(*site);
    *site = NULL;
}
