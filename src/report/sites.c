/* Runs of sites: how each stands with its neighbours, and what has left it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "report/axis.h"
#include "report/markup.h"
#include "report/report_internal.h"

#define LATE_HEARTBEATS 10 /* silent for so long, a site that is not done may have stopped */
#define MAX_KINDS       16 /* columns; what is beyond is in the sum alone */
#define DASH            "\xE2\x80\x93"

bool ct_report_is_of_sites(const ct_report *r) {
    for (int k = 0; k < r->n_runs; k++)
        if (r->runs[k].site.name == NULL) return false;
    return r->n_runs > 0;
}

/* Seconds since 1970 as a date; a dash of what is none. */
static void print_time(double seconds, char *out, size_t size) {
    struct tm parts;
    bool is_time = seconds >= 0 && seconds < 1e11;
    time_t whole = is_time ? (time_t)seconds : 0;
    if (!is_time || gmtime_r(&whole, &parts) == NULL ||
        strftime(out, size, "%Y-%m-%d %H:%M:%S", &parts) == 0)
        snprintf(out, size, DASH);
}

/* `column` is what a phone calls it, which shows no headings. */
static void add_number(const char *column, ct_unit unit, double value, ct_text *out) {
    char text[48];
    ct_unit_print(unit, value, text, sizeof text);
    ct_markup_add(out, "<td data-th='%s'>%s</td>", column, text);
}

/* ---- neighbours ---- */

/* When it was told; page.js adds how long ago that is. */
static void add_standing(const ct_record_site *s, ct_text *out) {
    char iteration[48], all[48], told[32];
    bool is_over = strcmp(s->phase, "finished") == 0;
    ct_unit_print(CT_UNIT_WHOLE, s->iteration, iteration, sizeof iteration);
    ct_unit_print(CT_UNIT_WHOLE, s->n_iterations, all, sizeof all);
    print_time(s->time_s, told, sizeof told);
    ct_markup_add(out, "<p>%s of %s: %s, iteration %s of %s, as of %s UTC", s->name, s->federation,
                  s->phase, iteration, all, told);
    if (isfinite(s->time_s))
        ct_markup_add(out, "<span data-told='%.0f' data-late='%.0f'></span>", s->time_s,
                      is_over || !isfinite(s->heartbeat_s) ? 0 : LATE_HEARTBEATS * s->heartbeat_s);
    ct_text_add(out, ".");
    if (s->n_strangers > 0)
        ct_markup_add(out, " Strangers were refused: %.0f times.", s->n_strangers);
    ct_text_add(out, "</p>\n");
}

static void add_neighbour(const ct_record_site *s, const ct_record_neighbour *n, ct_text *out) {
    char since[32], round_trip[48] = DASH;
    print_time(s->time_s - n->for_s, since, sizeof since);
    if (n->rtt_ms > 0) snprintf(round_trip, sizeof round_trip, "%.4g ms", n->rtt_ms);
    ct_markup_add(out, "<tr><th>%s</th><td class='word' data-th='state'>%s</td>", n->name,
                  n->phase);
    add_number("iteration", CT_UNIT_WHOLE, n->iteration, out);
    ct_markup_add(out, "<td data-th='since (UTC)'>%s</td>", since);
    add_number("sent", CT_UNIT_BYTES, n->bytes_sent, out);
    add_number("received", CT_UNIT_BYTES, n->bytes_received, out);
    ct_markup_add(out, "<td data-th='round trip'>%s</td>", round_trip);
    add_number("times lost", CT_UNIT_WHOLE, n->n_lost, out);
    ct_markup_add(out, "<td class='word long' data-th='last note'>%s</td></tr>\n", n->note);
}

static void add_neighbours(const ct_record_site *s, ct_text *out) {
    ct_markup_add(out, "<div class='wide-table'><table class='neighbours rows'>\n<thead><tr>"
                       "<th>neighbour</th><th class='word'>state</th><th>iteration</th>"
                       "<th>connected or gone since (UTC)</th><th>sent</th><th>received</th>"
                       "<th>round trip</th><th>times lost</th><th class='word'>last note</th>"
                       "</tr></thead>\n<tbody>\n");
    for (int k = 0; k < s->n_neighbours; k++) add_neighbour(s, &s->neighbours[k], out);
    ct_text_add(out, "</tbody></table></div>\n");
}

/* ---- what has left ---- */

/* The kinds there are, as they began. */
static int list_kinds(const ct_record_site *s, const char *kinds[MAX_KINDS]) {
    int n = 0;
    for (int k = 0; k < s->n_sent && n < MAX_KINDS; k++) {
        bool is_new = true;
        for (int i = 0; i < n && is_new; i++) is_new = strcmp(kinds[i], s->sent[k].kind) != 0;
        if (is_new) kinds[n++] = s->sent[k].kind;
    }
    return n;
}

/* Of one kind (NULL: all) to one neighbour (NULL: all). */
static double sum_sent(const ct_record_site *s, const char *to, const char *kind) {
    double sum = 0;
    for (int k = 0; k < s->n_sent; k++) {
        bool is_his = to == NULL || strcmp(s->sent[k].to, to) == 0;
        if (is_his && (kind == NULL || strcmp(s->sent[k].kind, kind) == 0))
            sum += s->sent[k].n_bytes;
    }
    return sum;
}

static void add_sent_row(const ct_record_site *s, const char *to, const char *const *kinds,
                         int n_kinds, ct_text *out) {
    ct_markup_add(out, "<tr><th>%s</th>", to != NULL ? to : "all");
    for (int i = 0; i < n_kinds; i++) {
        double sum = sum_sent(s, to, kinds[i]);
        add_number(kinds[i], CT_UNIT_BYTES, sum > 0 ? sum : NAN, out);
    }
    add_number("all", CT_UNIT_BYTES, sum_sent(s, to, NULL), out);
    ct_text_add(out, "</tr>\n");
}

static bool is_first_to(const ct_record_site *s, int k) {
    for (int i = 0; i < k; i++)
        if (strcmp(s->sent[i].to, s->sent[k].to) == 0) return false;
    return true;
}

static void add_sent(const ct_record_site *s, ct_text *out) {
    const char *kinds[MAX_KINDS];
    int n_kinds = list_kinds(s, kinds);
    if (s->n_sent == 0) return;
    ct_markup_add(out, "<h3 class='sent'>What left this site</h3>\n<div class='wide-table'>"
                       "<table class='sent rows'>\n<thead><tr><th>to</th>");
    for (int i = 0; i < n_kinds; i++) ct_markup_add(out, "<th>%s</th>", kinds[i]);
    ct_text_add(out, "<th>all</th></tr></thead>\n<tbody>\n");
    for (int k = 0; k < s->n_sent; k++)
        if (is_first_to(s, k)) add_sent_row(s, s->sent[k].to, kinds, n_kinds, out);
    add_sent_row(s, NULL, kinds, n_kinds, out);
    ct_text_add(out, "</tbody></table></div>\n");
}

void ct_report_add_sites(const ct_report *r, ct_text *out) {
    bool is_open = false;
    for (int k = 0; k < r->n_runs; k++) {
        const ct_record_site *s = &r->runs[k].site;
        if (s->name == NULL) continue;
        if (!is_open) ct_markup_add(out, "<section id='neighbours'><h2>Neighbours</h2>\n");
        is_open = true;
        add_standing(s, out);
        add_neighbours(s, out);
        add_sent(s, out);
    }
    if (is_open)
        ct_text_add(out, "<p class=\"note\">What left a site is counted over the whole run, before "
                         "encryption; what it sent and received, since it was started last. "
                         "Samples and labels are never sent.</p>\n</section>\n");
}
