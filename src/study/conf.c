/* Reading a study's file. */
#include <stdio.h>
#include <string.h>

#include "study/study_internal.h"
#include "study/tune.h"
#include "util/budget.h"
#include "util/memory.h"

ct_status ct_study_fail_at(const ct_study *study, int line, ct_error *error) {
    if (error->status == CT_NOMEM || line == 0) return ct_fail_again(error);
    error->status = CT_IO;
    return ct_fail_in(error, "%s:%d", study->path, line);
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

static ct_status add_setting(ct_study *study, const ct_setting *setting) {
    CT_TRY(ct_extend(&study->settings, (size_t)study->n_settings, "an option"));
    study->settings[study->n_settings++] = *setting;
    return CT_OK;
}

ct_status ct_study_set(ct_study *study, int row, const char *name, const char *value) {
    ct_setting setting = {.row = row, .column = CT_ANY};
    snprintf(setting.name, sizeof setting.name, "%s", name);
    snprintf(setting.value, sizeof setting.value, "%s", value);
    return add_setting(study, &setting);
}

ct_status ct_study_add_line(ct_study_line **lines, int *n, const char *label, int line) {
    CT_TRY(ct_extend(lines, (size_t)*n, "a row"));
    ct_study_line *l = &(*lines)[(*n)++];
    *l = (ct_study_line){.line = line};
    snprintf(l->label, sizeof l->label, "%s", label);
    return CT_OK;
}

const ct_study_line *ct_study_find_line(const ct_study_line *lines, int n, const char *label) {
    for (int k = 0; k < n; k++)
        if (strcmp(lines[k].label, label) == 0) return &lines[k];
    return NULL;
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

static ct_status set_heads(ct_study *study, const char *value) {
    int n = ct_count_parts(value, '|');
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
    if (n > 0) s->note[n++] = ' ';
    memcpy(s->note + n, value, strlen(value) + 1);
    return CT_OK;
}

static ct_status check_option(void *context, const char *name) {
    const ct_option *option;
    (void)context;
    return ct_schema_look_up(name, &option);
}

static ct_status set_property(ct_study *s, const ct_setting *line) {
    const char *name = line->name, *value = line->value;
    if (strcmp(name, "title") == 0) {
        memcpy(s->title, value, sizeof s->title);
        return CT_OK;
    }
    if (strcmp(name, "note") == 0) return add_note(s, value);
    if (strcmp(name, "rows") == 0) return set_heads(s, value);
    if (strcmp(name, "show") == 0) return ct_study_add_metrics(value, s->shown, &s->n_shown);
    if (strcmp(name, "curves") == 0) return ct_study_add_metrics(value, s->curves, &s->n_curves);
    if (strcmp(name, "baseline") == 0) {
        snprintf(s->baseline, sizeof s->baseline, "%.*s", CT_STUDY_LABEL - 1, value);
        s->baseline_line = line->line;
        return CT_OK;
    }
    if (strcmp(name, "order") == 0) {
        s->is_ranked = true;
        return strcmp(value, "best") == 0 ? CT_OK : ct_fail(CT_IO, "order: only 'best' is known");
    }
    if (strcmp(name, "free") == 0) {
        memcpy(s->free, value, sizeof s->free);
        return ct_split(value, check_option, NULL);
    }
    if (strcmp(name, "figure") == 0) {
        s->figure.line = line->line;
        return ct_figure_parse(value, &s->figure);
    }
    return ct_fail(
        CT_IO,
        "'%s' is none of title, note, rows, show, curves, figure, order, baseline, free; options "
        "stand below [options]",
        name);
}

/* ---- sections ---- */

typedef struct reader {
    ct_study *study;
    int line;
    bool is_inside;  /* a section */
    int row, column; /* which it is; CT_ANY: [options] */
} reader;

static ct_status add_section(reader *r, ct_study_line **lines, int *n, const char *label,
                             int *place) {
    if (label[0] == '\0') return ct_fail(CT_IO, "a row or column needs a label: [row CCL]");
    if (*n == CT_STUDY_CELLS)
        return ct_fail(CT_IO, "a study has at most %d rows, and as many columns", CT_STUDY_CELLS);
    if (strlen(label) >= CT_STUDY_LABEL)
        return ct_fail(CT_IO, "a label has at most %d characters", CT_STUDY_LABEL - 1);
    const ct_study_line *before = ct_study_find_line(*lines, *n, label);
    if (before != NULL)
        return ct_fail(CT_IO, "'%s' is there twice; the first is in line %d", label, before->line);
    *place = *n;
    return ct_study_add_line(lines, n, label, r->line);
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
    r->is_inside = true;
    r->row = r->column = CT_ANY;
    if (strcmp(kind, "tune") == 0) r->row = r->column = CT_TUNE;
    if (strcmp(kind, "options") == 0 || strcmp(kind, "tune") == 0)
        return label[0] == '\0' ? CT_OK : ct_fail(CT_IO, "[%s] has no label", kind);
    if (strcmp(kind, "column") == 0)
        return add_section(r, &s->columns, &s->n_columns, label, &r->column);
    if (strcmp(kind, "row") == 0) return add_section(r, &s->rows, &s->n_rows, label, &r->row);
    return ct_fail(CT_IO, "'[%s]' is none of [tune], [options], [column LABEL], [row LABEL]", kind);
}

static ct_status set_option(ct_study *study, const ct_setting *setting) {
    if (study->n_settings == CT_MAX_STUDY_SETTINGS)
        return ct_fail(CT_IO, "a study sets at most %d options", CT_MAX_STUDY_SETTINGS);
    const ct_setting *before =
        ct_study_setting(study, setting->row, setting->column, setting->name);
    if (before != NULL)
        return ct_fail(CT_IO, "'%s' is set twice; first in line %d", setting->name, before->line);
    if (ct_config_is_single(setting->name) && setting->row != CT_TUNE)
        return ct_fail(CT_IO, "'%s' has no place here", setting->name);
    return add_setting(study, setting);
}

const ct_setting *ct_study_setting(const ct_study *study, int row, int column, const char *name) {
    for (int k = 0; k < study->n_settings; k++) {
        const ct_setting *s = &study->settings[k];
        if (s->row == row && s->column == column && strcmp(s->name, name) == 0) return s;
    }
    return NULL;
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
    ct_setting setting = {.row = r->row, .column = r->column, .line = r->line};
    cut_comment(line);
    char *text = ct_trim(line);
    if (text[0] == '\0' || text[0] == '#') return CT_OK;
    if (text[0] == '[') return begin_section(r, text);
    char *equals = strchr(text, '=');
    if (equals == NULL) return ct_fail(CT_IO, "'%s' is not of the form name = value", text);
    *equals = '\0';
    char *name = ct_trim(text), *value = ct_trim(equals + 1);
    if (name[0] == '\0' || strlen(name) >= sizeof setting.name)
        return ct_fail(CT_IO, "'%s' is no name of an option", name);
    if (strlen(value) >= sizeof setting.value)
        return ct_fail(CT_IO, "a value has at most %d characters", CT_CONFIG_TEXT - 1);
    snprintf(setting.name, sizeof setting.name, "%s", name);
    snprintf(setting.value, sizeof setting.value, "%s", value);
    return r->is_inside ? set_option(r->study, &setting) : set_property(r->study, &setting);
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
    CT_TRY(ct_tune_read_rule(s, &r->line));
    r->line++;
    if (s->n_rows == 0) return ct_fail(CT_IO, "the study has no [row]");
    if (s->title[0] == '\0') snprintf(s->title, sizeof s->title, "%s", s->name);
    if (s->baseline[0] != '\0' && ct_study_find_line(s->rows, s->n_rows, s->baseline) == NULL) {
        r->line = s->baseline_line;
        return ct_fail(CT_IO, "baseline: there is no row '%s'", s->baseline);
    }
    if (s->figure.line == 0) s->figure.kind = CT_FIGURE_DOTS;
    if (s->figure.kind != CT_FIGURE_CURVES || s->n_curves > 0) return CT_OK;
    r->line = s->figure.line;
    return ct_fail(CT_IO,
                   "figure = curves draws what a line 'curves = ce, mv' names; there is none");
}

static ct_status read_lines(reader *r, char *text) {
    ct_lines lines = {.rest = text, .end = text + strlen(text)};
    for (char *line; (line = ct_lines_next(&lines)) != NULL;) {
        r->line = (int)lines.number;
        CT_TRY(read_line(r, line));
    }
    return complete(r);
}

ct_status ct_study_parse(const char *path, const char *text, ct_study *out) {
    CT_SCOPED_BLOCK(char) copy = NULL;
    reader r = {.study = out};
    ct_error error;
    memset(out, 0, sizeof *out);
    CT_TRY(ct_make_text(&copy, text));
    snprintf(out->path, sizeof out->path, "%s", path);
    name_study(path, out->name, sizeof out->name);
    if (CT_CATCH(&error, read_lines(&r, copy)) == CT_OK) return CT_OK;
    ct_status status = ct_study_fail_at(out, r.line, &error);
    ct_study_free(out);
    return status;
}

void ct_study_free(ct_study *study) {
    for (int k = 0; k < study->n_cells; k++) {
        ct_json_free(&study->cells[k].summary);
        ct_choice_free(&study->cells[k].choice);
        ct_free(study->cells[k].seeds);
        ct_free(study->cells[k].elsewhere);
    }
    ct_free(study->cells);
    ct_free(study->at);
    ct_free(study->order);
    ct_free(study->rows);
    ct_free(study->columns);
    ct_free(study->settings);
    memset(study, 0, sizeof *study);
}
