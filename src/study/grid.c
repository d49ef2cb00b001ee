#include "study/grid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/markup.h"
#include "util/memory.h"

/* ---- filling ---- */

ct_status ct_grid_make(int n_lines, int n_columns, int n_heads, ct_grid *out) {
    *out = (ct_grid){.n_lines = n_lines, .n_columns = n_columns, .n_heads = n_heads};
    return ct_make(&out->entries, (size_t)n_lines * (size_t)n_columns, "a table");
}

void ct_grid_free(ct_grid *g) {
    ct_free(g->entries);
    *g = (ct_grid){0};
}

ct_entry *ct_grid_text(ct_grid *g, const char *text) {
    ct_entry *e = &g->entries[g->n++];
    snprintf(e->text, sizeof e->text, "%s", text);
    return e;
}

ct_entry *ct_grid_number(ct_grid *g, const char *format, double value, double deviation,
                         int digits) {
    ct_entry *e = ct_grid_text(g, "");
    e->is_number = true;
    snprintf(e->text, sizeof e->text, format, digits, value);
    if (isnan(deviation)) return e;
    snprintf(e->deviation, sizeof e->deviation, "%.*f", digits, deviation);
    g->has_deviation = true;
    return e;
}

/* ---- forms ---- */

/* What is NULL is nothing. */
typedef struct form {
    const char *plus_minus, *mark, *dollar;         /* of numbers */
    void (*escape)(ct_text *out, const char *text); /* of words */
    bool is_padded;                                 /* a column is as wide as its widest entry */
    const char *begin, *between, *end;              /* of a line */
    const char *open[3], *close[3];                 /* of an entry: words, a heading, a number */
    const char *rule[2];                            /* a line below the headings: words, numbers */
    const char *after_head;
    const char *title;   /* the sign before it; NULL: it is not there */
    const char *closing; /* of the whole table */
    bool is_labelled;    /* an entry names its column: a phone shows no headings */
    const char *note[2]; /* around each of what a reader must know; NULL: it is not said */
    void (*escape_note)(ct_text *out, const char *text);
} form;

static void add_plain(ct_text *out, const char *text) {
    if (text != NULL) ct_text_add(out, "%s", text);
}

static void add_markdown(ct_text *out, const char *text) {
    for (; *text != '\0'; text++) ct_text_add(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void add_latex(ct_text *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (strchr("&%$#_{}", *text) != NULL)
            ct_text_add(out, "\\%c", *text);
        else if (*text == '\\' || *text == '^' || *text == '~')
            ct_text_add(out, "\\char%d{}", (int)*text);
        else
            ct_text_add(out, "%c", *text);
    }
}

static void open_latex(ct_text *out, const ct_grid *g, const ct_frame *frame) {
    ct_text_add(out, "%% needs nothing but LaTeX\n\\begin{table}[ht]\n\\caption{");
    add_latex(out, frame->title);
    if (frame->said[0] != '\0') {
        ct_text_add(out, " (");
        add_latex(out, frame->said);
        ct_text_add(out, ")");
    }
    ct_text_add(out, "}\n\\label{tab:%s}\n\\begin{center}\n\\begin{tabular}{", frame->label);
    for (int k = 0; k < g->n_columns; k++) ct_text_add(out, k < g->n_heads ? "l" : "r");
    ct_text_add(out, "}\n\\hline\n");
}

static const form plain = {.plus_minus = "\xc2\xb1",
                           .mark = " *",
                           .escape = add_plain,
                           .is_padded = true,
                           .between = "  ",
                           .end = "\n",
                           .title = "",
                           .closing = "\n",
                           .note = {"", "\n"},
                           .escape_note = add_plain};
static const form markdown = {.plus_minus = "\xc2\xb1",
                              .mark = " \\*",
                              .escape = add_markdown,
                              .begin = "|",
                              .end = "\n",
                              .open = {" ", " ", " "},
                              .close = {" |", " |", " |"},
                              .rule = {"---|", "---:|"},
                              .title = "# ",
                              .closing = "\n",
                              .note = {"- ", "\n"},
                              .escape_note = add_plain};
static const form latex = {.plus_minus = "\\pm",
                           .mark = "^{*}",
                           .dollar = "$",
                           .escape = add_latex,
                           .between = " & ",
                           .end = " \\\\\n",
                           .after_head = "\\hline\n",
                           .closing = "\\hline\n\\end{tabular}\n\\end{center}\n\\end{table}\n"};
static const form html = {.plus_minus = "\xc2\xb1",
                          .mark = " *",
                          .escape = ct_markup_text,
                          .begin = "<tr>",
                          .end = "</tr>\n",
                          .open = {"<th class=\"word\">", "<th>", "<td>"},
                          .close = {"</th>", "</th>", "</td>"},
                          .after_head = "</thead>\n<tbody>\n",
                          .is_labelled = true,
                          .closing = "</tbody></table></div>\n",
                          .note = {"<p class=\"note\">", "</p>\n"},
                          .escape_note = ct_markup_text};

static void add_entry(ct_text *out, const ct_entry *e, const form *f) {
    if (!e->is_number) {
        f->escape(out, e->text);
        return;
    }
    add_plain(out, f->dollar);
    add_plain(out, e->text);
    if (e->deviation[0] != '\0') ct_text_add(out, " %s %s", f->plus_minus, e->deviation);
    if (e->is_marked) add_plain(out, f->mark);
    add_plain(out, f->dollar);
}

/* Characters, of which some are several bytes. */
static int count_characters(const ct_text *text) {
    int n = 0;
    for (size_t k = 0; k < text->n; k++) n += ((unsigned char)text->chars[k] & 0xC0) != 0x80;
    return n;
}

int ct_grid_width(const ct_grid *g, int column) {
    int widest = 1;
    for (int line = 0; line < g->n_lines; line++) {
        CT_SCOPED(ct_text) text = {0};
        add_entry(&text, &g->entries[line * g->n_columns + column], &plain);
        if (count_characters(&text) > widest) widest = count_characters(&text);
    }
    return widest;
}

static void add_padded(ct_text *out, const ct_grid *g, const ct_entry *e, int column) {
    CT_SCOPED(ct_text) text = {0};
    add_entry(&text, e, &plain);
    if (text.failed) out->failed = true;
    int width = ct_grid_width(g, column) + (int)text.n - count_characters(&text);
    ct_text_add(out, "%*s", column < g->n_heads ? -width : width, text.n > 0 ? text.chars : "");
}

static void add_grid(ct_text *out, const ct_grid *g, const form *f) {
    const ct_entry *e = g->entries;
    for (int line = 0; line < g->n_lines; line++) {
        add_plain(out, f->begin);
        for (int column = 0; column < g->n_columns; column++, e++) {
            int kind = column < g->n_heads ? 0 : line == 0 ? 1 : 2;
            if (column > 0) add_plain(out, f->between);
            bool needs_head = kind == 0 && line > 0 && strchr("0123456789.", e->text[0]) != NULL;
            if (f->is_labelled && kind == 2)
                ct_markup_add(out, "<td data-th='%s'>", g->entries[column].text);
            else if (f->is_labelled && needs_head)
                ct_markup_add(out, "<th class='word' data-th='%s'>", g->entries[column].text);
            else
                add_plain(out, f->open[kind]);
            if (f->is_padded)
                add_padded(out, g, e, column);
            else
                add_entry(out, e, f);
            add_plain(out, f->close[kind]);
        }
        add_plain(out, f->end);
        if (line == 0 && f->rule[0] != NULL) {
            add_plain(out, f->begin);
            for (int k = 0; k < g->n_columns; k++) add_plain(out, f->rule[k >= g->n_heads]);
            add_plain(out, f->end);
        }
        if (line == 0) add_plain(out, f->after_head);
    }
}

static void add_notes(const char *notes, const form *f, ct_text *out) {
    for (const char *at = notes; at != NULL && *at != '\0' && f->note[0] != NULL;) {
        CT_SCOPED(ct_text) line = {0};
        size_t n = strcspn(at, "\n");
        ct_text_add(&line, "%.*s", (int)n, at);
        add_plain(out, f->note[0]);
        f->escape_note(out, line.n > 0 ? line.chars : "");
        add_plain(out, f->note[1]);
        if (line.failed) out->failed = true;
        at += n + (at[n] == '\n');
    }
}

ct_status ct_grid_write(const ct_grid *g, ct_form which, const ct_frame *frame, ct_text *out) {
    static const form *const forms[] = {&plain, &markdown, &latex, &html};
    const form *f = forms[which];
    if (f == &latex) open_latex(out, g, frame);
    if (f == &html)
        ct_markup_add(out, "<div class='wide-table'><table id='%s' class='rows'>\n<thead>\n",
                      frame->label);
    if (f->title != NULL) ct_text_add(out, "%s%s\n\n", f->title, frame->title);
    add_grid(out, g, f);
    add_plain(out, f->closing);
    add_notes(frame->notes, f, out);
    return ct_text_status(out);
}
