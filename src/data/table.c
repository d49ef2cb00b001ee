/* CSV to cells, in place: a cell's separator becomes its 0, quotes are taken out where they stand. */
#include "data/table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/budget.h"
#include "util/memory.h"

typedef struct parser {
    const char *path;
    char *begin, *at, *end; /* *end is a 0 */
    char separator;
    unsigned line; /* of `at` */
    ct_table *table;
    size_t n_cells, max_cells, max_rows;
} parser;

/* ---- before the first cell ---- */

static unsigned line_of(const char *begin, const char *at) {
    unsigned line = 1;
    for (const char *c = begin; c < at; c++) line += *c == '\n';
    return line;
}

/* UTF-8 without a 0. Eight bytes at a time where they are ASCII. */
static ct_status check_text(const char *path, const char *text, size_t n) {
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    for (size_t i = 0; i < n;) {
        uint64_t word = 0;
        if (n - i >= sizeof word) memcpy(&word, text + i, sizeof word);
        bool is_plain = word != 0 && ((word | (word - ones)) & tops) == 0;
        size_t length = is_plain ? sizeof word : text[i] == '\0' ? 0 : ct_utf8_length(text + i);
        if (length == 0)
            return ct_fail(CT_IO, "%s:%u: byte 0x%02x is not UTF-8; save the table as UTF-8", path,
                           line_of(text, text + i), (unsigned char)text[i]);
        i += length;
    }
    return CT_OK;
}

/* The header's most frequent one outside of quotes; of equals the first of these. */
static char find_separator(const char *text) {
    static const char known[] = ",;\t";
    size_t count[3] = {0}, best = 0;
    bool is_quoted = false;
    for (; *text != '\0' && (is_quoted || *text != '\n'); text++) {
        is_quoted = is_quoted != (*text == '"');
        for (size_t k = 0; k < 3 && !is_quoted; k++) count[k] += *text == known[k];
    }
    for (size_t k = 1; k < 3; k++)
        if (count[k] > count[best]) best = k;
    return known[best];
}

/* Every cell ends with a separator or a line. */
static ct_status count_cells(parser *p) {
    size_t n_separators = 0, n_lines = 1;
    for (const char *c = p->begin; c < p->end; c++) {
        n_separators += *c == p->separator;
        n_lines += *c == '\n';
    }
    p->max_rows = n_lines;
    p->max_cells = n_separators + n_lines;
    if (p->max_cells <= CT_MAX_TABLE_CELLS) return CT_OK;
    return ct_fail(CT_IO, "%s: %zu cells; a table may have %zu", p->path, p->max_cells,
                   CT_MAX_TABLE_CELLS);
}

/* ---- cells ---- */

static bool is_blank(const parser *p, char c) {
    return c == ' ' || c == '\r' || (c == '\t' && p->separator != '\t');
}

/* Behind the opening quote: without quotes to the front of itself. Stands behind the closing one. */
static ct_status take_quoted(parser *p, char **out) {
    char *begin = p->at, *to = begin, *from = begin;
    unsigned first = p->line;
    for (;; from++) {
        if (from >= p->end || from - begin > CT_MAX_CELL_BYTES)
            return ct_fail(CT_IO, "%s:%u: a quote that is not closed within %d bytes", p->path,
                           first, CT_MAX_CELL_BYTES);
        if (*from == '"' && *++from != '"') break;
        p->line += *from == '\n';
        *to++ = *from;
    }
    p->at = from;
    while (is_blank(p, *p->at)) p->at++;
    if (p->at < p->end && *p->at != p->separator && *p->at != '\n')
        return ct_fail(CT_IO,
                       "%s:%u: '%c' behind a closing quote; a quote within a text is doubled",
                       p->path, p->line, *p->at);
    *out = to;
    return CT_OK;
}

/* The next cell's place; *is_last: its row ends with it. */
static ct_status take_cell(parser *p, uint32_t *place, bool *is_last) {
    while (is_blank(p, *p->at)) p->at++;
    bool is_quoted = *p->at == '"';
    p->at += is_quoted;
    char *begin = p->at, *stop = begin;
    if (is_quoted) {
        CT_TRY(take_quoted(p, &stop));
    } else {
        while (*p->at != p->separator && *p->at != '\n' && *p->at != '\0') p->at++;
        for (stop = p->at; stop > begin && is_blank(p, stop[-1]);) stop--;
        if (stop - begin > CT_MAX_CELL_BYTES)
            return ct_fail(CT_IO, "%s:%u: a cell of %zu bytes; it may have %d", p->path, p->line,
                           (size_t)(stop - begin), CT_MAX_CELL_BYTES);
    }
    *is_last = p->at == p->end || *p->at == '\n';
    p->line += *p->at == '\n';
    p->at += p->at < p->end;
    *stop = '\0';
    *place = (uint32_t)(begin - p->begin);
    return CT_OK;
}

/* Empty lines are no rows. */
static void skip_empty_lines(parser *p) {
    for (char *c = p->at;; c++) {
        while (is_blank(p, *c)) c++;
        if (c == p->end) p->at = c;
        if (*c != '\n') return;
        p->at = c + 1;
        p->line++;
    }
}

typedef struct named {
    const char *name;
    uint32_t column;
} named;

static int compare_names(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* Columns without a name may be several: nobody asks for them. */
static ct_status sort_names(const char *path, ct_table *t) {
    CT_SCOPED_BLOCK(named) list = NULL;
    CT_TRY(ct_make(&list, t->n_columns, path));
    CT_TRY(ct_make(&t->order, t->n_columns, path));
    for (size_t k = 0; k < t->n_columns; k++) list[k] = (named){ct_table_name(t, k), (uint32_t)k};
    qsort(list, t->n_columns, sizeof *list, compare_names);
    for (size_t k = 0; k < t->n_columns; k++) {
        t->order[k] = list[k].column;
        if (k > 0 && list[k].name[0] != '\0' && strcmp(list[k - 1].name, list[k].name) == 0)
            return ct_fail(CT_IO, "%s: two columns are called '%s'", path, list[k].name);
    }
    return CT_OK;
}

static ct_status take_header(parser *p) {
    ct_table *t = p->table;
    bool is_last = false;
    skip_empty_lines(p);
    if (p->at == p->end) return ct_fail(CT_IO, "%s: no header: there is nothing in it", p->path);
    while (!is_last) {
        CT_TRY(ct_extend(&t->names, t->n_columns, p->path));
        CT_TRY(take_cell(p, &t->names[t->n_columns++], &is_last));
    }
    return sort_names(p->path, t);
}

static ct_status take_row(parser *p) {
    ct_table *t = p->table;
    size_t n = 0;
    bool is_last = false;
    unsigned line = p->line;
    while (!is_last) {
        uint32_t place;
        CT_TRY(take_cell(p, &place, &is_last));
        if (n++ < t->n_columns) t->cells[p->n_cells + n - 1] = place;
    }
    if (n != t->n_columns)
        return ct_fail(CT_IO, "%s:%u: %zu cells in this row, %zu in the header", p->path, line, n,
                       t->n_columns);
    p->n_cells += n;
    t->lines[t->n_rows++] = line;
    return CT_OK;
}

static ct_status parse(parser *p) {
    ct_table *t = p->table;
    CT_TRY(check_text(p->path, p->begin, (size_t)(p->end - p->begin)));
    if (strncmp(p->begin, "\xef\xbb\xbf", 3) == 0) p->at += 3;
    p->separator = find_separator(p->at);
    CT_TRY(count_cells(p));
    CT_TRY(take_header(p));
    CT_TRY(ct_make(&t->cells, p->max_cells + t->n_columns, p->path));
    CT_TRY(ct_make(&t->lines, p->max_rows, p->path));
    for (skip_empty_lines(p); p->at < p->end; skip_empty_lines(p)) CT_TRY(take_row(p));
    if (t->n_rows > 0) return CT_OK;
    return ct_fail(CT_IO, "%s: a header, and no rows below it", p->path);
}

ct_status ct_table_parse(const char *path, ct_blob *taken, ct_table *out) {
    CT_SCOPED(ct_table) t = {0};
    ct_move(&t.text, taken);
    CT_TRY(ct_make_text(&t.path, path));
    parser p = {.path = path, .line = 1, .table = &t};
    p.begin = p.at = (char *)t.text.bytes;
    p.end = p.begin + t.text.n;
    CT_TRY(parse(&p));
    ct_move(out, &t);
    return CT_OK;
}

ct_status ct_table_read(const char *path, ct_table *out) {
    CT_SCOPED(ct_blob) text = {0};
    CT_TRY(ct_file_read(path, CT_MAX_DATA_BYTES, &text));
    return ct_table_parse(path, &text, out);
}

void ct_table_free(ct_table *t) {
    ct_free(t->path);
    ct_blob_free(&t->text);
    ct_free(t->names);
    ct_free(t->order);
    ct_free(t->cells);
    ct_free(t->lines);
    *t = (ct_table){0};
}

void ct_table_keep(ct_table *t, const bool *keep) {
    size_t n = 0, width = t->n_columns;
    for (size_t i = 0; i < t->n_rows; i++) {
        if (!keep[i]) continue;
        memmove(t->cells + n * width, t->cells + i * width, width * sizeof *t->cells);
        t->lines[n++] = t->lines[i];
    }
    t->n_rows = n;
}

size_t ct_table_find(const ct_table *t, const char *name) {
    size_t low = 0, high = t->n_columns;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, ct_table_name(t, t->order[middle]));
        if (order == 0) return t->order[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return CT_NO_COLUMN;
}

/* ---- what a cell says ---- */

bool ct_cell_is_missing(const char *cell) {
    static const char *const words[] = {"", "?", "na", "nan", "null"};
    const char c = cell[0];
    if (c != '\0' && c != '?' && c != 'n' && c != 'N') return false;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcasecmp(cell, words[k]) == 0) return true;
    return false;
}

/* Digits of a whole number below 2^53 and a power of ten up to 22 are both doubles: one rounding, the
 * right one. */
bool ct_cell_number(const char *cell, double *out) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *c = cell + (*cell == '-' || *cell == '+');
    uint64_t digits = 0;
    int n = 0, n_behind = 0;
    for (; *c >= '0' && *c <= '9' && n < 15; c++, n++) digits = 10 * digits + (uint64_t)(*c - '0');
    if (*c == '.')
        for (c++; *c >= '0' && *c <= '9' && n < 15; c++, n++, n_behind++)
            digits = 10 * digits + (uint64_t)(*c - '0');
    if (*c != '\0' || n == 0) return ct_parse_double(cell, out);
    double value = (double)digits / powers[n_behind];
    *out = *cell == '-' ? -value : value;
    return true;
}

/* ---- different texts ---- */

size_t ct_words_place(const ct_words *w, const char *word, bool *is_there) {
    size_t low = 0, high = w->n;
    *is_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(word, w->words[middle]);
        if (order == 0) *is_there = true;
        if (order == 0) return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

ct_status ct_words_add(ct_words *w, const char *word) {
    bool is_there;
    CT_SCOPED_BLOCK(char) copy = NULL;
    size_t at = ct_words_place(w, word, &is_there);
    if (is_there) return CT_OK;
    CT_TRY(ct_make_text(&copy, word));
    CT_TRY(ct_extend(&w->words, w->n, "the categories"));
    memmove(w->words + at + 1, w->words + at, (w->n - at) * sizeof *w->words);
    w->words[at] = ct_take(&copy);
    w->n++;
    return CT_OK;
}

void ct_words_free(ct_words *w) {
    for (size_t k = 0; k < w->n; k++) ct_free(w->words[k]);
    ct_free(w->words);
    *w = (ct_words){0};
}
