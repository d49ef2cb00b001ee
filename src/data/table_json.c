/* Columns as JSON, for agents that agree on them and for model files:
 *   {"label": "ill", "columns": [
 *     {"name": "age", "kind": "number", "values": 90, "missing": 2, "mean": 51.2, "deviation": 9.5},
 *     {"name": "city", "kind": "category", "values": 92, "missing": 0, "categories": ["a", "b"]}]}
 * To be merged, a number has "sum", "squares" (exact.h) and "categories" (null: too many) in place of
 * mean and deviation. Others wrote it: nothing is believed. */
#include "data/table.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "util/budget.h"
#include "util/memory.h"

/* ---- writing ---- */

static void add_words(ct_text *out, const ct_words *w) {
    ct_text_add(out, ", \"categories\": [");
    for (size_t k = 0; k < w->n; k++) {
        if (k > 0) ct_text_add(out, ", ");
        ct_json_add_string(out, w->words[k]);
    }
    ct_text_add(out, "]");
}

static void add_sums(ct_text *out, const ct_column *c) {
    static const char *const names[] = {"sum", "squares"};
    for (int k = 0; k < 2; k++) {
        ct_text_add(out, ", \"%s\": \"", names[k]);
        ct_exact_print(&c->sums[k], out);
        ct_text_add(out, "\"");
    }
    if (c->has_many)
        ct_text_add(out, ", \"categories\": null");
    else
        add_words(out, &c->categories);
}

static void add_column(ct_text *out, const ct_column *c, bool with_sums) {
    ct_text_add(out, "{\"name\": ");
    ct_json_add_string(out, c->name);
    ct_text_add(out, ", \"kind\": \"%s\", \"values\": %llu, \"missing\": %llu",
                c->is_number ? "number" : "category", (unsigned long long)c->n,
                (unsigned long long)c->n_missing);
    if (!c->is_number) {
        add_words(out, &c->categories);
    } else if (with_sums && c->sums != NULL) {
        add_sums(out, c);
    } else {
        ct_text_add(out, ", \"mean\": ");
        ct_json_add_number(out, c->mean);
        ct_text_add(out, ", \"deviation\": ");
        ct_json_add_number(out, c->deviation);
    }
    ct_text_add(out, "}");
}

void ct_columns_print(const ct_columns *c, bool with_sums, ct_text *out) {
    ct_text_add(out, "{\"label\": ");
    ct_json_add_string(out, c->label);
    ct_text_add(out, ", \"columns\": [");
    for (size_t k = 0; k < c->n; k++) {
        if (k > 0) ct_text_add(out, ", ");
        add_column(out, &c->columns[k], with_sums);
    }
    ct_text_add(out, "]}");
}

/* ---- reading ---- */

typedef struct reader {
    const char *what;
    const char *name; /* of the column at hand */
} reader;

static ct_status wrong(const reader *r, const char *member) {
    return ct_fail(CT_IO, "%s: column '%.80s' has a wrong or no '%s'", r->what, r->name, member);
}

/* A text that a cell may be. */
static const char *text_of(const ct_json *object, const char *key) {
    const ct_json *member = ct_json_get(object, key);
    bool is_text = member != NULL && member->kind == CT_JSON_STRING;
    return is_text && strlen(member->string) <= CT_MAX_CELL_BYTES ? member->string : NULL;
}

static ct_status read_number(const reader *r, const ct_json *object, const char *key, double lowest,
                             double highest, double *out) {
    const ct_json *member = ct_json_get(object, key);
    if (member == NULL || member->kind != CT_JSON_NUMBER ||
        !(member->number >= lowest && member->number <= highest))
        return wrong(r, key);
    *out = member->number;
    return CT_OK;
}

static ct_status read_count(const reader *r, const ct_json *object, const char *key,
                            uint64_t *out) {
    double value = 0;
    CT_TRY(read_number(r, object, key, 0, (double)CT_EXACT_COUNT, &value));
    *out = (uint64_t)value;
    return (double)*out == value ? CT_OK : wrong(r, key);
}

/* Sorted and each once, so that there is one way to write them. */
static ct_status read_words(const reader *r, const ct_json *list, ct_words *out) {
    const char *last = NULL;
    if (list == NULL || list->kind != CT_JSON_ARRAY || list->n_children > CT_MAX_CATEGORIES)
        return wrong(r, "categories");
    for (const ct_json *word = list->child; word != NULL; word = word->next) {
        bool is_right = word->kind == CT_JSON_STRING && strlen(word->string) <= CT_MAX_CELL_BYTES &&
                        !ct_cell_is_missing(word->string) &&
                        (last == NULL || strcmp(last, word->string) < 0);
        if (!is_right) return wrong(r, "categories");
        last = word->string;
        CT_TRY(ct_words_add(out, last));
    }
    return CT_OK;
}

static ct_status read_sums(const reader *r, const ct_json *object, ct_column *c) {
    static const char *const names[] = {"sum", "squares"};
    const ct_json *words = ct_json_get(object, "categories");
    CT_TRY(ct_make(&c->sums, 2, "the columns of a table"));
    for (int k = 0; k < 2; k++) {
        const char *text = text_of(object, names[k]);
        if (text == NULL || !ct_exact_parse(text, &c->sums[k])) return wrong(r, names[k]);
        if (c->n == 0 && strcmp(text, "0@0") != 0) return wrong(r, names[k]);
    }
    if (c->n > 0 && !ct_exact_is_possible(&c->sums[0], &c->sums[1], c->n)) return wrong(r, "sum");
    c->has_many = words != NULL && words->kind == CT_JSON_NULL;
    return c->has_many ? CT_OK : read_words(r, words, &c->categories);
}

static ct_status read_column(reader *r, const ct_json *object, ct_column *c) {
    const char *name = text_of(object, "name"), *kind = text_of(object, "kind");
    if (object->kind != CT_JSON_OBJECT || name == NULL || name[0] == '\0') return wrong(r, "name");
    r->name = name;
    CT_TRY(ct_make_text(&c->name, name));
    if (kind == NULL || (strcmp(kind, "number") != 0 && strcmp(kind, "category") != 0))
        return wrong(r, "kind");
    c->is_number = strcmp(kind, "number") == 0;
    c->deviation = 1;
    CT_TRY(read_count(r, object, "values", &c->n));
    CT_TRY(read_count(r, object, "missing", &c->n_missing));
    if (c->n + c->n_missing == 0) return wrong(r, "values");
    if (!c->is_number) {
        CT_TRY(read_words(r, ct_json_get(object, "categories"), &c->categories));
        return (c->categories.n > 0) == (c->n > 0) ? CT_OK : wrong(r, "categories");
    }
    if (ct_json_get(object, "sum") != NULL) return read_sums(r, object, c);
    CT_TRY(read_number(r, object, "mean", -DBL_MAX, DBL_MAX, &c->mean));
    return read_number(r, object, "deviation", DBL_MIN, DBL_MAX, &c->deviation);
}

ct_status ct_columns_parse(const ct_json *json, const char *what, ct_columns *out) {
    CT_SCOPED(ct_columns) all = {0};
    const char *label = text_of(json, "label");
    const ct_json *list = ct_json_get(json, "columns");
    if (label == NULL || list == NULL || list->kind != CT_JSON_ARRAY || list->n_children < 1 ||
        list->n_children > CT_MAX_TABLE_INPUTS)
        return ct_fail(CT_IO, "%s: no columns of a table and their label", what);
    CT_TRY(ct_make_text(&all.label, label));
    CT_TRY(ct_make(&all.columns, list->n_children, "the columns of a table"));
    reader r = {what, ""};
    for (const ct_json *object = list->child; object != NULL; object = object->next) {
        ct_column *c = &all.columns[all.n++];
        CT_TRY(read_column(&r, object, c));
        if (all.n > 1 && strcmp(c[-1].name, c->name) >= 0)
            return ct_fail(CT_IO, "%s: column '%.80s' is out of order", what, c->name);
        ct_column_measure(c);
    }
    if (ct_columns_inputs(&all) > CT_MAX_TABLE_INPUTS)
        return ct_fail(CT_IO, "%s: more than %d inputs", what, CT_MAX_TABLE_INPUTS);
    ct_move(out, &all);
    return CT_OK;
}
