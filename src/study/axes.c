#include "study/axes.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"

/* 0.1 and .1 are one value. */
static bool are_same(const char *a, const char *b) {
    double x, y;
    if (ct_parse_double(a, &x) && ct_parse_double(b, &y)) return x == y;
    return strcmp(a, b) == 0;
}

static ct_status add_value(void *context, const char *value) {
    ct_axis_values *a = context;
    if (a->n == CT_AXIS_VALUES)
        return ct_fail(CT_INVAL, "@%s: at most %d values", a->name, CT_AXIS_VALUES);
    if (strlen(value) >= CT_STUDY_LABEL || strchr(value, '|') != NULL)
        return ct_fail(CT_INVAL, "@%s: '%s' cannot be swept over", a->name, value);
    for (int k = 0; k < a->n; k++)
        if (are_same(a->values[k], value))
            return ct_fail(CT_INVAL, "@%s: %s is there twice", a->name, value);
    snprintf(a->values[a->n++], CT_STUDY_LABEL, "%s", value);
    return CT_OK;
}

void ct_axis_option(const char *name, int k, char *out, size_t size) {
    for (; k > 0 && name != NULL; k--) {
        name = strchr(name, '+');
        if (name != NULL) name++;
    }
    snprintf(out, size, "%.*s", name != NULL ? (int)strcspn(name, "+") : 0,
             name != NULL ? name : "");
}

/* "lambda_m+lambda-d" with the options' own names. */
static ct_status name_axis(const ct_axes *axes, const char *given, char *out, size_t size) {
    char part[64];
    size_t n = 0;
    out[0] = '\0';
    for (int k = 0; ct_axis_option(given, k, part, sizeof part), part[0] != '\0' || k == 0; k++) {
        const ct_option *option;
        CT_TRY(ct_schema_look_up(part, &option));
        if (ct_config_is_single(option->name))
            return ct_fail(CT_INVAL, "@grid: '%s' cannot be swept over", option->name);
        for (int a = 0; a < axes->n; a++)
            if (strcmp(axes->axes[a].name, option->name) == 0)
                return ct_fail(CT_INVAL, "@%s has two lists of values", option->name);
        n += (size_t)snprintf(out + n, size - n, "%s%s", k > 0 ? "+" : "", option->name);
        if (n >= size) return ct_fail(CT_INVAL, "@grid: '%s' has too many options", given);
    }
    return CT_OK;
}

ct_status ct_axes_add(ct_axes *axes, const char *name, const char *list) {
    if (axes->n == CT_MAX_AXES) return ct_fail(CT_INVAL, "at most %d options at once", CT_MAX_AXES);
    ct_axis_values *a = &axes->axes[axes->n];
    *a = (ct_axis_values){.n = 0};
    CT_TRY(name_axis(axes, name, a->name, sizeof a->name));
    axes->n++;
    if (strchr(list, '|') == NULL) return ct_split(list, add_value, a);
    for (const char *at = list, *bar; at != NULL; at = bar != NULL ? bar + 1 : NULL) {
        char value[CT_CONFIG_TEXT];
        bar = strchr(at, '|');
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "|"), at);
        CT_TRY(add_value(a, value));
    }
    return CT_OK;
}

ct_status ct_axes_add_grid(ct_axes *axes, const char *what, const char *grid) {
    for (size_t n; *grid != '\0'; grid += n + (grid[n] == ';')) {
        char part[CT_CONFIG_TEXT];
        n = strcspn(grid, ";");
        snprintf(part, sizeof part, "%.*s", (int)n, grid);
        char *equals = strchr(part, '=');
        if (equals == NULL || n >= sizeof part)
            return ct_fail(CT_INVAL, "%s: '%s' is not of the form option=value,value", what, part);
        *equals = '\0';
        CT_TRY(ct_axes_add(axes, ct_trim(part), equals + 1));
    }
    return CT_OK;
}

int ct_axes_count(const ct_axes *axes) {
    int64_t n = 1;
    for (int a = 0; a < axes->n && n <= CT_STUDY_CELLS; a++) n *= axes->axes[a].n;
    return n <= CT_STUDY_CELLS ? (int)n : CT_STUDY_CELLS + 1;
}

const char *ct_axes_value(const ct_axes *axes, int k, int axis) {
    for (int a = axes->n - 1; a > axis; a--) k /= axes->axes[a].n;
    return axes->axes[axis].values[k % axes->axes[axis].n];
}

void ct_axes_add_heads(const ct_axes *axes, ct_study *study) {
    for (int a = 0; a < axes->n; a++)
        memcpy(study->heads[study->n_heads++], axes->axes[a].name, sizeof axes->axes[a].name);
}

static ct_status set_options(const ct_axes *axes, int k, int axis, ct_study *study) {
    char option[64];
    for (int i = 0; ct_axis_option(axes->axes[axis].name, i, option, sizeof option), option[0]; i++)
        CT_TRY(ct_study_set(study, study->n_rows, option, ct_axes_value(axes, k, axis)));
    return CT_OK;
}

ct_status ct_axes_add_row(const ct_axes *axes, int k, ct_study *study) {
    char label[CT_STUDY_LABEL * CT_MAX_AXES] = "", name[CT_STUDY_LABEL * CT_MAX_AXES] = "";
    for (int a = 0; a < axes->n; a++) {
        const char *value = ct_axes_value(axes, k, a);
        size_t n = strlen(label), m = strlen(name);
        snprintf(label + n, sizeof label - n, "%s%s", a > 0 ? " | " : "", value);
        snprintf(name + m, sizeof name - m, "%s%s_%s", a > 0 ? " " : "", axes->axes[a].name, value);
        CT_TRY(set_options(axes, k, a, study));
    }
    if (strlen(label) >= CT_STUDY_LABEL || strlen(name) >= CT_STUDY_LABEL)
        return ct_fail(CT_INVAL, "the values of a combination are too long: %s", label);
    CT_TRY(ct_study_add_line(&study->rows, &study->n_rows, label, 0));
    memcpy(study->rows[study->n_rows - 1].name, name, CT_STUDY_LABEL);
    return CT_OK;
}

void ct_axes_print(const ct_axes *axes, int k, ct_text *out) {
    char option[64];
    for (int a = 0; a < axes->n; a++)
        for (int i = 0; ct_axis_option(axes->axes[a].name, i, option, sizeof option), option[0];
             i++) {
            ct_text_add(out, " --%s ", option);
            ct_shell_add(out, ct_axes_value(axes, k, a));
        }
}
