#include "serve/web.h"

#include <stdlib.h>
#include <string.h>

#include "report/markup.h"
#include "report/report.h"
#include "serve/http.h"
#include "serve/list.h"
#include "serve/shelf.h"
#include "util/hash.h"
#include "util/memory.h"

extern const char ct_serve_script[]; /* live.js */

/* A page as it was made last; its key is made of all that it shows. */
typedef struct kept_page {
    uint64_t key;
    ct_text body;
} kept_page;
#define N_KEPT   8
#define MAX_KEPT ((size_t)32 << 20) /* bytes; a longer page is made every time */

struct ct_web {
    ct_http *http;
    ct_shelf shelf;
    kept_page kept[N_KEPT];
    int next_kept; /* to be replaced */
};

/* ---- the runs there are ---- */

/* What a run is called here: its path below the directory. */
static const char *name_of(const ct_web *site, const char *path) {
    return ct_folder_name(&(ct_folder){.path = site->shelf.dir}, path);
}

static int compare_words(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names that are asked for, sorted: a field has one a line. */
static ct_status list_asked(const ct_http_request *request, bool *is_named, ct_name_list *out) {
    for (int k = 0; k < request->n_fields; k++) {
        if (strcmp(request->fields[k].name, "run") != 0) continue;
        *is_named = true;
        CT_SCOPED(ct_blob) lines = {.n = strlen(request->fields[k].value)};
        CT_TRY(ct_make_copy(&lines.bytes, (const uint8_t *)request->fields[k].value, lines.n + 1,
                            "the names"));
        ct_lines each = ct_blob_lines(&lines);
        for (char *name; (name = ct_lines_next(&each)) != NULL;)
            CT_TRY(ct_name_list_add(out, name));
    }
    if (out->n > 0) qsort(out->name, (size_t)out->n, sizeof *out->name, compare_words);
    return CT_OK;
}

/* Runs that a page is about. */
typedef struct selection {
    const ct_record **runs; /* [n] */
    int n;
    uint64_t key;       /* of them, of what is complained about, and of what was asked */
    ct_text complaints; /* about those among them that cannot be shown, as paragraphs */
} selection;

static void selection_free(selection *s) {
    ct_free(s->runs);
    ct_text_free(&s->complaints);
}

static void add_key(selection *s, const void *bytes, size_t n) {
    s->key = ct_hash(ct_hash_number(s->key, n), bytes, n);
}

static void complain(selection *s, const char *sentence) {
    ct_markup_add(&s->complaints, "<p class='note'>%s</p>\n", sentence);
    add_key(s, sentence, strlen(sentence));
}

/* Without a field `run`, every run is asked for. */
static ct_status select_runs(ct_web *site, const ct_http_request *request, selection *out) {
    CT_SCOPED(ct_name_list) asked = {0};
    bool is_named = false;
    out->key = ct_hash(CT_HASH_START, request->path, strlen(request->path));
    CT_TRY(list_asked(request, &is_named, &asked));
    CT_TRY(ct_shelf_refresh(&site->shelf));
    const ct_shelf *shelf = &site->shelf;
    CT_TRY(ct_make(&out->runs, (size_t)shelf->n, "the runs"));
    for (int k = 0; k < shelf->n; k++) {
        const ct_shelf_run *run = &shelf->runs[k];
        const char *name = name_of(site, run->path);
        if (is_named && (asked.n == 0 || bsearch(&name, asked.name, (size_t)asked.n,
                                                 sizeof *asked.name, compare_words) == NULL))
            continue;
        add_key(out, run->path, strlen(run->path));
        add_key(out, &run->stamp, sizeof run->stamp);
        if (run->complaint != NULL)
            complain(out, run->complaint);
        else
            out->runs[out->n++] = &run->record;
    }
    for (int k = 0; k < shelf->complaints.n && !is_named; k++)
        complain(out, shelf->complaints.name[k]);
    for (int k = 0; k < request->n_fields; k++)
        add_key(out, request->fields[k].value, strlen(request->fields[k].value));
    return ct_text_status(&out->complaints);
}

/* ---- pages ---- */

static void add_query(const ct_http_request *request, ct_text *out) {
    const char *before = "?";
    for (int k = 0; k < request->n_fields; k++) {
        if (strcmp(request->fields[k].name, "run") != 0) continue;
        ct_text_add(out, "%srun=", before);
        ct_list_add_encoded(out, request->fields[k].value);
        before = "&amp;";
    }
}

/* The script that follows the page at `from`, whose main element is now `body`. */
static void add_script(const char *from, const ct_http_request *request, const ct_text *body,
                       ct_text *out) {
    char tag[32];
    ct_http_tag(body, tag, sizeof tag);
    ct_markup_add(out, "<script data-from='%s", from);
    add_query(request, out);
    ct_markup_add(out, "' data-tag='%s'>\n", tag);
    ct_text_add(out, "%s</script>\n<link rel=\"icon\" href=\"data:,\"/>\n", ct_serve_script);
}

static ct_status show_report(const ct_web *site, const ct_http_request *request,
                             const selection *runs, bool is_whole, ct_text *out) {
    CT_SCOPED(ct_report) report = {0};
    ct_report_options options = {.notes = runs->complaints.chars};
    (void)site;
    if (runs->n == 0 && runs->complaints.n > 0)
        return ct_fail(CT_IO, "these runs cannot be shown; the list says why");
    if (runs->n == 0) return ct_fail(CT_IO, "there are no such runs");
    CT_TRY(ct_report_lend(runs->runs, runs->n, &report));
    if (!is_whole) return ct_report_body(&report, &options, out);
    CT_SCOPED(ct_text) body = {0}, head = {0};
    CT_TRY(ct_report_body(&report, &options, &body));
    add_script("/body", request, &body, &head);
    CT_TRY(ct_text_status(&head));
    options.head = head.chars;
    options.body = body.chars;
    return ct_report_page(&report, &options, out);
}

/* ---- the list ---- */

/* A directory without a run is not wrong: one may begin any time. */
static ct_status show_list(const ct_web *site, const ct_http_request *request,
                           const selection *runs, bool is_whole, ct_text *out) {
    CT_SCOPED(ct_report) report = {0};
    CT_SCOPED(ct_text) list = {0};
    if (runs->n > 0) CT_TRY(ct_report_lend(runs->runs, runs->n, &report));
    ct_list_add(site->shelf.dir, &report, &runs->complaints, is_whole ? &list : out);
    if (!is_whole) return CT_OK;
    CT_TRY(ct_text_status(&list));
    ct_text_add(out,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n<meta "
                "name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>"
                "crosstalk</title>\n<style>\n%s</style>\n",
                ct_report_css);
    add_script("/list", request, &list, out);
    ct_text_add(out, "</head>\n<body>\n%s</body></html>\n", list.chars);
    return CT_OK;
}

/* ---- answers ---- */

typedef struct page {
    const char *path;
    ct_status (*show)(const ct_web *site, const ct_http_request *request, const selection *runs,
                      bool is_whole, ct_text *out);
    bool is_whole, is_of_all; /* with its head; about all runs, whatever was asked */
} page;

static const page pages[] = {
    {"/", show_list, true, true},
    {"/list", show_list, false, true},
    {"/report", show_report, true, false},
    {"/body", show_report, false, false},
};

static void keep(ct_web *site, uint64_t key, const ct_text *body) {
    kept_page *kept = &site->kept[site->next_kept];
    if (body->n > MAX_KEPT || body->failed) return;
    ct_text_free(&kept->body);
    kept->key = key;
    ct_text_add(&kept->body, "%s", body->chars);
    if (kept->body.failed) ct_text_free(&kept->body);
    site->next_kept = (site->next_kept + 1) % N_KEPT;
}

/* A page is made anew when something in it has changed. */
static ct_status show(ct_web *site, const page *p, const ct_http_request *request, ct_text *out) {
    CT_SCOPED(selection) runs = {0};
    const ct_http_request of_all = {.path = p->path};
    if (p->is_of_all) request = &of_all;
    CT_TRY(select_runs(site, request, &runs));
    for (int k = 0; k < N_KEPT; k++) {
        const kept_page *kept = &site->kept[k];
        if (kept->body.chars == NULL || kept->key != runs.key) continue;
        ct_text_add(out, "%s", kept->body.chars);
        return CT_OK;
    }
    CT_TRY(p->show(site, request, &runs, p->is_whole, out));
    CT_TRY(ct_text_status(out));
    keep(site, runs.key, out);
    return CT_OK;
}

static void answer_failed(ct_http_answer *answer, ct_status status, const char *words) {
    ct_text_free(&answer->body);
    answer->code = status == CT_NOMEM ? 500 : 404;
    answer->type = "text/plain; charset=utf-8";
    ct_text_add(&answer->body, "%s\n", words);
}

static void handle(void *context, const ct_http_request *request, ct_http_answer *answer) {
    for (size_t k = 0; k < sizeof pages / sizeof *pages; k++) {
        if (strcmp(pages[k].path, request->path) != 0) continue;
        ct_error error;
        if (CT_CATCH(&error, show(context, &pages[k], request, &answer->body)))
            answer_failed(answer, error.status, error.text);
        return;
    }
    answer_failed(answer, CT_IO, "there is no such page");
}

ct_status ct_web_open(const char *dir, const char *address, int port, ct_web **out) {
    CT_SCOPED_BY(ct_web_close, ct_web *) site = NULL;
    CT_SCOPED(ct_text) policy = {0};
    CT_TRY(ct_make(&site, 1, "the server"));
    ct_report_policy(ct_serve_script,
                     "; img-src data:; connect-src 'self'; form-action 'self'; "
                     "frame-ancestors 'none'",
                     &policy);
    CT_TRY(ct_text_status(&policy));
    CT_TRY(ct_shelf_open(dir, &site->shelf));
    ct_http_options options = {.address = address,
                               .port = port,
                               .handler = handle,
                               .context = site,
                               .policy = policy.chars};
    CT_TRY(ct_http_open(&options, &site->http));
    ct_move(out, &site);
    return CT_OK;
}

int ct_web_port(const ct_web *site) {
    return ct_http_port(site->http);
}

void ct_web_close(ct_web **site) {
    if (*site == NULL) return;
    ct_http_close(&(*site)->http);
    ct_shelf_free(&(*site)->shelf);
    for (int k = 0; k < N_KEPT; k++) ct_text_free(&(*site)->kept[k].body);
    ct_free(*site);
    *site = NULL;
}
