/* Reading a study's file. */
#include <stdio.h>
#include <string.h>

#include "study/study_internal.h"
#include "util/memory.h"

ct_status ct_study_fail_at(const ct_study *study, int line, ct_error *error) {
    if (error->status == CT_NOMEM || line == 0) return ct_fail_again(error);
    error->status = CT_IO;
    return ct_fail_in(error, "%s:%d", study->path, line);
}

int ct_parts_count(const char *text) {
    int n = 1;
    for (; *text != '\0'; text++) n += *text == '|';
    return n;
}

void ct_parts_get(const char *text, int k, int n, char *out, size_t size) {
    out[0] = '\0';
    for (; k > 0 && text != NULL; k--, n--) {
        text = strchr(text, '|');
        if (text != NULL) text++;
    }
    if (text == NULL) return;
    text += strspn(text, " \t");
    size_t length = n > 1 ? strcspn(text, "|") : strlen(text);
    while (length > 0 && strchr(" \t", text[length - 1]) != NULL) length--;
    snprintf(out, size, "%.*s", (int)length, text);
}

/* ---- lists that grow ---- */

static void set(ct_setting *s, const char *name, const char *value, int line) {
    s->line = line;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->value, sizeof s->value, "%s", value);
}

ct_status ct_settings_add(ct_settings *settings, const char *name, const char *value, int line) {
    ct_setting *more = ct_grow(settings->items, (size_t)settings->n, (size_t)settings->n + 1,
                               sizeof *settings->items);
    if (more == NULL) return ct_no_memory("an option");
    settings->items = more;
    set(&more[settings->n++], name, value, line);
    return CT_OK;
}

ct_status ct_study_add_line(ct_study_line **lines, int *n, const char *label, int line) {
    ct_study_line *more = ct_grow(*lines, (size_t)*n, (size_t)*n + 1, sizeof **lines);
    if (more == NULL) return ct_no_memory("a row");
    *lines = more;
    ct_study_line *l = &more[(*n)++];
    snprintf(l->label, sizeof l->label, "%s", label);
    l->line = line;
    return CT_OK;
}

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

ct_status ct_study_add_metrics(const char *names, const ct_metric **list, int *n) {
    metric_list m = {list, n};
    return ct_split(names, add_metric, &m);
}

/* ---- above the sections ---- */

typedef struct reader {
    ct_study *study;
    int line;
    ct_settings *options; /* of the section; NULL above them */
    ct_study_line *row;   /* the section, if it is one */
} reader;

static ct_status set_heads(ct_study *study, const char *value) {
    int n = ct_parts_count(value);
    if (n > CT_STUDY_HEADS) return ct_fail(CT_INVAL, "at most %d headings", CT_STUDY_HEADS);
    for (int k = 0; k < n; k++) ct_parts_get(value, k, n, study->heads[k], CT_STUDY_LABEL);
    study->n_heads = n;
    return CT_OK;
}

/* Several lines of notes become one. */
static ct_status add_note(ct_study *s, const char *value) {
    size_t n = strlen(s->note);
    if (n + 1 + strlen(value) >= sizeof s->note)
        return ct_fail(CT_IO, "notes have at most %zu characters together", sizeof s->note - 2);
    snprintf(s->note + n, sizeof s->note - n, "%s%s", n > 0 ? " " : "", value);
    return CT_OK;
}

static ct_status set_property(reader *r, const char *name, const char *value) {
    ct_study *s = r->study;
    if (strcmp(name, "title") == 0) {
        snprintf(s->title, sizeof s->title, "%s", value);
        return CT_OK;
    }
    if (strcmp(name, "note") == 0) return add_note(s, value);
    if (strcmp(name, "rows") == 0) return set_heads(s, value);
    if (strcmp(name, "show") == 0) return ct_study_add_metrics(value, s->shown, &s->n_shown);
    if (strcmp(name, "curves") == 0) return ct_study_add_metrics(value, s->curves, &s->n_curves);
    if (strcmp(name, "figure") == 0) {
        s->figure.line = r->line;
        return ct_figure_parse(value, &s->figure);
    }
    return ct_fail(CT_IO,
                   "'%s' is none of title, note, rows, show, curves, figure; options stand below "
                   "[options]",
                   name);
}

/* ---- sections ---- */

static ct_status add_section(reader *r, ct_study_line **lines, int *n, const char *label) {
    if (label[0] == '\0') return ct_fail(CT_IO, "a row or column needs a label: [row CCL]");
    if (strlen(label) >= CT_STUDY_LABEL)
        return ct_fail(CT_IO, "a label has at most %d characters", CT_STUDY_LABEL - 1);
    for (int k = 0; k < *n; k++)
        if (strcmp((*lines)[k].label, label) == 0)
            return ct_fail(CT_IO, "'%s' is there twice; the first is in line %d", label,
                           (*lines)[k].line);
    CT_TRY(ct_study_add_line(lines, n, label, r->line));
    r->options = &(*lines)[*n - 1].options;
    return CT_OK;
}

static ct_status begin_section(reader *r, char *text) {
    ct_study *s = r->study;
    size_t n = strlen(text);
    if (text[n - 1] != ']') return ct_fail(CT_IO, "'%s' has no ]", text);
    text[n - 1] = '\0';
    char *kind = ct_trim(text + 1);
    size_t length = strcspn(kind, " \t");
    char *label = ct_trim(kind + length);
    kind[length] = '\0';
    r->row = NULL;
    r->options = &s->options;
    if (strcmp(kind, "options") == 0)
        return label[0] == '\0' ? CT_OK : ct_fail(CT_IO, "[options] has no label");
    if (strcmp(kind, "column") == 0) return add_section(r, &s->columns, &s->n_columns, label);
    if (strcmp(kind, "row") != 0)
        return ct_fail(CT_IO, "'[%s]' is none of [options], [column LABEL], [row LABEL]", kind);
    CT_TRY(add_section(r, &s->rows, &s->n_rows, label));
    r->row = &s->rows[s->n_rows - 1];
    return CT_OK;
}

static ct_status set_option(reader *r, const char *name, const char *value) {
    ct_setting *of_row = NULL;
    if (r->row != NULL && strcmp(name, "paper") == 0) of_row = &r->row->paper;
    if (r->row != NULL && strcmp(name, "cells") == 0) of_row = &r->row->cells;
    const ct_setting *before = of_row != NULL && of_row->line > 0 ? of_row : NULL;
    for (int k = 0; k < r->options->n; k++)
        if (strcmp(r->options->items[k].name, name) == 0) before = &r->options->items[k];
    if (before != NULL)
        return ct_fail(CT_IO, "'%s' is set twice; first in line %d", name, before->line);
    if (of_row != NULL) {
        set(of_row, name, value, r->line);
        return CT_OK;
    }
    if (ct_config_is_single(name)) return ct_fail(CT_IO, "'%s' has no place here", name);
    return ct_settings_add(r->options, name, value, r->line);
}

/* ---- lines ---- */

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
    char *text = ct_trim(line);
    if (text[0] == '\0' || text[0] == '#') return CT_OK;
    if (text[0] == '[') return begin_section(r, text);
    char *equals = strchr(text, '=');
    if (equals == NULL) return ct_fail(CT_IO, "'%s' is not of the form name = value", text);
    *equals = '\0';
    char *name = ct_trim(text), *value = ct_trim(equals + 1);
    if (name[0] == '\0' || strlen(name) >= sizeof((ct_setting *)0)->name)
        return ct_fail(CT_IO, "'%s' is no name of an option", name);
    if (strlen(value) >= CT_CONFIG_TEXT)
        return ct_fail(CT_IO, "a value has at most %d characters", CT_CONFIG_TEXT - 1);
    return r->options == NULL ? set_property(r, name, value) : set_option(r, name, value);
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
    if (s->n_rows == 0) return ct_fail(CT_IO, "the study has no [row]");
    if (s->title[0] == '\0') snprintf(s->title, sizeof s->title, "%s", s->name);
    if (s->figure.line == 0) s->figure.kind = CT_FIGURE_DOTS;
    if (s->figure.kind == CT_FIGURE_CURVES && s->n_curves == 0) {
        r->line = s->figure.line;
        return ct_fail(CT_IO, "figure = curves draws what a line 'curves = ce, mv' names; there is "
                              "none");
    }
    return CT_OK;
}

ct_status ct_study_parse(const char *path, const char *text, ct_study *out) {
    memset(out, 0, sizeof *out);
    reader r = {.study = out};
    ct_error error = {.status = CT_OK};
    char *copy = ct_strdup(text), *line = copy;
    if (copy == NULL) return ct_no_memory(path);
    snprintf(out->path, sizeof out->path, "%s", path);
    name_study(path, out->name, sizeof out->name);
    while (line != NULL && error.status == CT_OK) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        r.line++;
        (void)CT_CATCH(&error, read_line(&r, line));
        line = end != NULL ? end + 1 : NULL;
    }
    if (error.status == CT_OK) (void)CT_CATCH(&error, complete(&r));
    ct_free(copy);
    if (error.status == CT_OK) return CT_OK;
    ct_status status = ct_study_fail_at(out, r.line, &error);
    ct_study_free(out);
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
    memset(study, 0, sizeof *study);
}
