#include "serve/list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/markup.h"
#include "util/folder.h"
#include "util/memory.h"

void ct_list_add_encoded(ct_text *out, const char *word) {
    for (; *word != '\0'; word++) {
        unsigned char c = (unsigned char)*word;
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                        (c >= 'a' && c <= 'z') || strchr("-_.~/", c) != NULL;
        ct_text_add(out, is_plain ? "%c" : "%%%02X", c);
    }
}

/* What a run is called here: its path below the directory. */
static const char *name_of(const char *dir, const ct_record *run) {
    return ct_folder_name(&(ct_folder){.path = dir}, run->path);
}

/* ---- the order ---- */

typedef struct line {
    const ct_report_group *group;
    int64_t changed; /* seconds since 1970; 0: unknown */
    int place;
} line;

/* When a file of one of its runs changed last. */
static int64_t time_of(const ct_report *r, const ct_report_group *g) {
    int64_t last = 0;
    for (int k = 0; k < g->n_runs; k++) {
        const ct_record_stamp *stamp = &r->runs[g->runs[k]].stamp;
        for (int file = 0; file < CT_N_FILES; file++)
            if (stamp->file[file].seconds > last) last = stamp->file[file].seconds;
    }
    return last;
}

static int compare_lines(const void *a, const void *b) {
    const line *x = a, *y = b;
    if (x->changed != y->changed) return x->changed < y->changed ? 1 : -1;
    return x->place - y->place;
}

/* ---- a line ---- */

/* A box to tick, with all runs of the group as its value. */
static void add_box(const char *names, ct_text *out) {
    ct_markup_add(out,
                  "<td class='tick'><input type='checkbox' name='run' aria-label='compare' "
                  "value='%s'/></td>",
                  names);
}

static void add_accuracy(const ct_report *r, const ct_report_group *g, ct_text *out) {
    double deviation, accuracy = ct_report_mean(r, g, CT_METRIC_CONSENSUS_ACCURACY, &deviation);
    /* A site knows the consensus model at the end alone. */
    if (!isfinite(accuracy)) accuracy = ct_report_mean(r, g, CT_METRIC_LOCAL_MEAN, &deviation);
    ct_markup_add(out, "<td class='main' data-th='accuracy %%' data-value='%e'>", accuracy);
    if (isfinite(accuracy))
        ct_text_add(out, "%.2f", 100 * accuracy);
    else
        ct_text_add(out, "\xE2\x80\x93");
    if (isfinite(deviation)) ct_text_add(out, "<small> \xC2\xB1 %.2f</small>", 100 * deviation);
    ct_text_add(out, "</td>");
}

/* With the message of one that diverged or failed. */
static void add_state(const ct_report *r, const ct_report_group *g, ct_text *out) {
    const ct_record_end *end = ct_report_end(r, g);
    char words[64];
    ct_record_print_end(end, words, sizeof words);
    ct_markup_add(out, "<td class='word state' data-th='state' data-value='%s'>", words);
    ct_markup_add(out, ct_report_has_alarm(end) ? "<b class='bad'>%s</b>" : "%s", words);
    if (ct_report_has_alarm(end)) {
        ct_markup_add(out, "<small class='reason'>");
        ct_report_add_reason(end, out);
        ct_text_add(out, "</small>");
    }
    ct_text_add(out, "</td>");
}

static void add_method(const ct_report_group *g, const char *names, ct_text *out) {
    ct_markup_add(out, "<th class='word' data-value='%s'>", g->label);
    ct_report_add_swatch(out, g->method);
    ct_text_add(out, "<a href=\"/report?run=");
    ct_list_add_encoded(out, names);
    ct_markup_add(out, "'>%s</a></th>", g->label);
}

/* "3 of 8", or "8" of a run that is done. */
static void add_epochs(const ct_record *run, ct_text *out) {
    double epoch = fmax(0, ct_record_last(run, CT_METRIC_EPOCH));
    const char *wanted = ct_record_option_of(run, "epochs");
    ct_markup_add(out, "<td data-th='epochs' data-value='%e'>%.0f", epoch, epoch);
    if (run->summary == NULL && wanted != NULL) ct_markup_add(out, " of %s", wanted);
    ct_text_add(out, "</td>");
}

static void add_time(int64_t seconds, ct_text *out) {
    char text[32] = "\xE2\x80\x93";
    time_t whole = (time_t)seconds;
    struct tm parts;
    if (seconds > 0 && gmtime_r(&whole, &parts) != NULL)
        (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
    ct_markup_add(out, "<td data-th='changed (UTC)' data-value='%.0f'>%s</td>", (double)seconds,
                  text);
}

static void add_line(const char *dir, const ct_report *r, const line *l, ct_text *out) {
    const ct_report_group *g = l->group;
    const ct_record *first = &r->runs[g->runs[0]];
    CT_SCOPED(ct_text) names = {0};
    for (int k = 0; k < g->n_runs; k++)
        ct_text_add(&names, k == 0 ? "%s" : "\n%s", name_of(dir, &r->runs[g->runs[k]]));
    if (names.failed) out->failed = true;
    if (out->failed) return;
    ct_text_add(out, "<tr>");
    add_box(names.chars, out);
    add_accuracy(r, g, out);
    add_state(r, g, out);
    add_method(g, names.chars, out);
    ct_markup_add(out, "<td class='word' data-th='run' data-value='%s'>%s</td>",
                  name_of(dir, first), name_of(dir, first));
    ct_markup_add(out, "<td data-th='seeds' data-value='%d'>%d</td>", g->n_runs, g->n_runs);
    add_epochs(first, out);
    add_time(l->changed, out);
    ct_text_add(out, "</tr>\n");
}

/* ---- all ---- */

static void add_heading(const char *name, bool is_word, ct_text *out) {
    ct_markup_add(out, is_word ? "<th class='word'>" : "<th>");
    ct_markup_add(out, "<button type='button' class='sort'>%s</button></th>", name);
}

/* What to do where there is nothing. */
static void add_nothing(const char *dir, ct_text *out) {
    ct_markup_add(out, "<section id='nothing'><h2>No runs yet</h2>\n<p>Start one in another "
                       "terminal; it appears here as soon as it trains:</p>\n");
    ct_report_add_first_command(dir, out);
    ct_markup_add(out, "<p>Runs that lie elsewhere: <code>crosstalk serve FOLDER</code>, where "
                       "FOLDER holds run directories.</p></section>\n");
}

static void add_table(const char *dir, const ct_report *r, ct_text *out) {
    static const char *const words[] = {"state", "method", "run"};
    static const char *const numbers[] = {"seeds", "epochs", "changed (UTC)"};
    CT_SCOPED_BLOCK(line) lines = NULL;
    if (CT_CATCH(NULL, ct_make(&lines, (size_t)r->n_groups, "the list")) != CT_OK) {
        out->failed = true;
        return;
    }
    for (int g = 0; g < r->n_groups; g++)
        lines[g] = (line){&r->groups[g], time_of(r, &r->groups[g]), g};
    qsort(lines, (size_t)r->n_groups, sizeof *lines, compare_lines);
    ct_markup_add(out, "<form action='/report'><div class='wide-table'><table class='rows'>\n"
                       "<thead><tr><th></th>");
    add_heading("accuracy %", false, out);
    for (int k = 0; k < 3; k++) add_heading(words[k], true, out);
    for (int k = 0; k < 3; k++) add_heading(numbers[k], false, out);
    ct_text_add(out, "</tr></thead>\n<tbody>\n");
    for (int g = 0; g < r->n_groups; g++) add_line(dir, r, &lines[g], out);
    ct_markup_add(out, "</tbody></table></div>\n<p><button>Compare</button> "
                       "<span class='note'>those ticked, or all</span></p></form>\n");
}

void ct_list_add(const char *dir, const ct_report *r, const ct_text *complaints, ct_text *out) {
    ct_markup_add(
        out, "<main id='list'>\n<header><h1>Runs</h1>\n<p class='setting'>%s</p></header>\n", dir);
    if (r->n_groups > 0)
        add_table(dir, r, out);
    else
        add_nothing(dir, out);
    ct_text_add(out, "%s</main>\n", complaints->chars != NULL ? complaints->chars : "");
}
