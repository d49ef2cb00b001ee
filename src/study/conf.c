/* Reading a study's file. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "study/study_internal.h"
#include "util/memory.h"

typedef struct reader {
    ct_study *study;
    const char *path;
    int line;
    ct_study_line *row, *column; /* the section, if it is one */
    bool in_options;
} reader;

static ct_status bad(const reader *r, const char *format, ...) CT_PRINTF(2, 3);
static ct_status bad(const reader *r, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ct_fail(CT_IO, "%s:%d: %s", r->path, r->line, text);
}

/* What failed below is said with the place in front. */
static ct_status placed(const reader *r, ct_error *error) {
    if (error->status == CT_OK) return CT_OK;
    if (error->status != CT_NOMEM) error->status = CT_IO;
    return ct_fail_in(error, "%s:%d", r->path, r->line);
}

ct_status ct_settings_add(ct_settings *settings, const char *name, const char *value, int line) {
    ct_setting *more = ct_grow(settings->items, (size_t)settings->n, (size_t)settings->n + 1,
                               sizeof *settings->items);
    if (more == NULL) return ct_fail(CT_NOMEM, "no memory for an option");
    settings->items = more;
    ct_setting *s = &more[settings->n++];
    s->line = line;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->value, sizeof s->value, "%s", value);
    return CT_OK;
}

ct_status ct_study_add_line(ct_study_line **lines, int *n, const char *label, int line) {
    ct_study_line *more = ct_grow(*lines, (size_t)*n, (size_t)*n + 1, sizeof **lines);
    if (more == NULL) return ct_fail(CT_NOMEM, "no memory for a row");
    *lines = more;
    ct_study_line *l = &more[(*n)++];
    snprintf(l->label, sizeof l->label, "%s", label);
    l->line = line;
    return CT_OK;
}

static char *trimmed(char *text) {
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL) text[--n] = '\0';
    return text;
}

/* ---- what stands above the sections ---- */

typedef struct metric_list {
    const ct_metric **list;
    int *n;
} metric_list;

static ct_status add_metric(void *context, const char *field) {
    metric_list *m = context;
    if (*m->n == CT_STUDY_SHOWN) return ct_fail(CT_INVAL, "at most %d metrics", CT_STUDY_SHOWN);
    CT_TRY(ct_metric_find(field, &m->list[*m->n]));
    (*m->n)++;
    return CT_OK;
}

static ct_status set_heads(ct_study *study, char *value) {
    while (value != NULL) {
        char *bar = strchr(value, '|');
        if (bar != NULL) *bar = '\0';
        if (study->n_heads == CT_STUDY_HEADS)
            return ct_fail(CT_INVAL, "at most %d headings", CT_STUDY_HEADS);
        snprintf(study->heads[study->n_heads++], CT_STUDY_LABEL, "%s", trimmed(value));
        value = bar != NULL ? bar + 1 : NULL;
    }
    return CT_OK;
}

static ct_status set_property(reader *r, const char *name, char *value) {
    ct_study *s = r->study;
    ct_error error;
    if (strcmp(name, "title") == 0) {
        if (strlen(value) >= sizeof s->title)
            return bad(r, "a title has at most %zu characters", sizeof s->title - 1);
        snprintf(s->title, sizeof s->title, "%s", value);
        return CT_OK;
    }
    if (strcmp(name, "note") == 0) {
        size_t n = strlen(s->note); /* several lines become one */
        if (n + 1 + strlen(value) >= sizeof s->note)
            return bad(r, "notes have at most %zu characters together", sizeof s->note - 2);
        snprintf(s->note + n, sizeof s->note - n, "%s%s", n > 0 ? " " : "", value);
        return CT_OK;
    }
    if (strcmp(name, "rows") == 0)
        return (void)CT_CATCH(&error, set_heads(s, value)), placed(r, &error);
    metric_list shown = {s->shown, &s->n_shown}, curves = {s->curves, &s->n_curves};
    if (strcmp(name, "show") == 0)
        return (void)CT_CATCH(&error, ct_split(value, add_metric, &shown)), placed(r, &error);
    if (strcmp(name, "curves") == 0)
        return (void)CT_CATCH(&error, ct_split(value, add_metric, &curves)), placed(r, &error);
    if (strcmp(name, "figure") == 0) {
        s->figure.line = r->line;
        return (void)CT_CATCH(&error, ct_figure_parse(value, &s->figure)), placed(r, &error);
    }
    return bad(r,
               "'%s' is none of title, note, rows, show, curves, figure; options stand below "
               "[options]",
               name);
}

/* ---- sections ---- */

static ct_status add_section(reader *r, ct_study_line **lines, int *n, const char *label) {
    if (label[0] == '\0') return bad(r, "a row or column needs a label: [row CCL]");
    if (strlen(label) >= CT_STUDY_LABEL)
        return bad(r, "a label has at most %d characters", CT_STUDY_LABEL - 1);
    for (int k = 0; k < *n; k++)
        if (strcmp((*lines)[k].label, label) == 0)
            return bad(r, "'%s' is there twice; the first is in line %d", label, (*lines)[k].line);
    return ct_study_add_line(lines, n, label, r->line);
}

static ct_status begin_section(reader *r, char *text) {
    ct_study *s = r->study;
    size_t n = strlen(text);
    if (text[n - 1] != ']') return bad(r, "'%s' has no ]", text);
    text[n - 1] = '\0';
    char *kind = trimmed(text + 1);
    size_t length = strcspn(kind, " \t");
    char *label = trimmed(kind + length);
    kind[length] = '\0';
    r->row = r->column = NULL;
    r->in_options = strcmp(kind, "options") == 0;
    if (r->in_options) return label[0] == '\0' ? CT_OK : bad(r, "[options] has no label");
    if (strcmp(kind, "row") == 0) {
        CT_TRY(add_section(r, &s->rows, &s->n_rows, label));
        r->row = &s->rows[s->n_rows - 1];
        return CT_OK;
    }
    if (strcmp(kind, "column") == 0) {
        CT_TRY(add_section(r, &s->columns, &s->n_columns, label));
        r->column = &s->columns[s->n_columns - 1];
        return CT_OK;
    }
    return bad(r, "'[%s]' is none of [options], [column LABEL], [row LABEL]", kind);
}

static ct_status set_row_property(reader *r, char *field, int *line, const char *value) {
    if (*line != 0) return bad(r, "the row has this already, in line %d", *line);
    snprintf(field, CT_CONFIG_TEXT, "%s", value);
    *line = r->line;
    return CT_OK;
}

static ct_status set_line(reader *r, const char *name, char *value) {
    ct_study_line *row = r->row;
    if (row != NULL && strcmp(name, "paper") == 0)
        return set_row_property(r, row->paper, &row->paper_line, value);
    if (row != NULL && strcmp(name, "cells") == 0)
        return set_row_property(r, row->cells, &row->cells_line, value);
    ct_settings *list = row != NULL         ? &row->options
                        : r->column != NULL ? &r->column->options
                                            : &r->study->options;
    if (ct_config_is_single(name)) return bad(r, "'%s' has no place here", name);
    for (int k = 0; k < list->n; k++)
        if (strcmp(list->items[k].name, name) == 0)
            return bad(r, "'%s' is set twice; first in line %d", name, list->items[k].line);
    return ct_settings_add(list, name, value, r->line);
}

/* A # with blanks around it begins a comment; "#1" and "a#b" are values. */
static void cut_comment(char *line) {
    for (char *at = line; *at != '\0'; at++) {
        bool is_alone =
            (at == line || strchr(" \t", at[-1]) != NULL) && strchr(" \t\r", at[1]) != NULL;
        if (*at != '#' || !is_alone) continue;
        *at = '\0';
        return;
    }
}

static ct_status read_line(reader *r, char *line) {
    cut_comment(line);
    char *text = trimmed(line);
    if (text[0] == '\0' || text[0] == '#') return CT_OK;
    if (text[0] == '[') return begin_section(r, text);
    char *equals = strchr(text, '=');
    if (equals == NULL) return bad(r, "'%s' is not of the form name = value", text);
    *equals = '\0';
    char *name = trimmed(text), *value = trimmed(equals + 1);
    if (name[0] == '\0' || strlen(name) >= sizeof((ct_setting *)0)->name)
        return bad(r, "'%s' is no name of an option", name);
    if (strlen(value) >= CT_CONFIG_TEXT)
        return bad(r, "a value has at most %d characters", CT_CONFIG_TEXT - 1);
    if (r->row == NULL && r->column == NULL && !r->in_options) return set_property(r, name, value);
    return set_line(r, name, value);
}

/* NAME of a path .../NAME.conf */
static void name_study(const char *path, char *name, size_t size) {
    const char *slash = strrchr(path, '/');
    snprintf(name, size, "%s", slash != NULL ? slash + 1 : path);
    char *ending = strrchr(name, '.');
    if (ending != NULL && ending != name) *ending = '\0';
}

static ct_status complete(reader *r) {
    ct_study *s = r->study;
    if (s->n_rows == 0) return bad(r, "the study has no [row]");
    if (s->figure.line == 0) s->figure.kind = CT_FIGURE_DOTS;
    if (s->figure.kind == CT_FIGURE_CURVES && s->n_curves == 0) {
        r->line = s->figure.line;
        return bad(r, "figure = curves draws what a line 'curves = ce, mv' names; there is none");
    }
    if (s->n_shown == 0) CT_TRY(ct_metric_find("consensus", &s->shown[s->n_shown++]));
    if (s->n_columns == 0)
        CT_TRY(ct_study_add_line(&s->columns, &s->n_columns, s->shown[0]->title, 0));
    if (s->n_heads == 0) s->n_heads = 1;
    if (s->title[0] == '\0') snprintf(s->title, sizeof s->title, "%s", s->name);
    return CT_OK;
}

ct_status ct_study_parse(const char *path, const char *text, ct_study *out) {
    memset(out, 0, sizeof *out);
    reader r = {.study = out, .path = path};
    char *copy = ct_strdup(text), *line = copy;
    ct_status status = copy != NULL ? CT_OK : ct_fail(CT_NOMEM, "no memory for %s", path);
    snprintf(out->path, sizeof out->path, "%s", path);
    name_study(path, out->name, sizeof out->name);
    while (line != NULL && status == CT_OK) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        r.line++;
        status = read_line(&r, line);
        line = end != NULL ? end + 1 : NULL;
    }
    if (status == CT_OK) status = complete(&r);
    ct_free(copy);
    if (status != CT_OK) ct_study_free(out);
    return status;
}

static void free_lines(ct_study_line *lines, int n) {
    for (int k = 0; k < n; k++) ct_free(lines[k].options.items);
    ct_free(lines);
}

void ct_study_free(ct_study *study) {
    for (int k = 0; k < study->n_cells; k++) {
        ct_json_free(&study->cells[k].summary);
        ct_free(study->cells[k].elsewhere);
    }
    ct_free(study->cells);
    ct_free(study->at);
    ct_free(study->order);
    free_lines(study->rows, study->n_rows);
    free_lines(study->columns, study->n_columns);
    ct_free(study->options.items);
    ct_study_data_free(&study->data);
    memset(study, 0, sizeof *study);
}
