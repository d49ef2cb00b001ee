/* Profiles as JSON. Whole numbers that a double does not hold are texts.
 *   {"agents": 2, "first": [0, "north"], "shape": [3, 32, 32], "values": 0, "cut": [32, 0, 0],
 *    "classes": ["cat", "dog"] or 10, "mean": [0.5, ...] or null, "std": the same,
 *    "pixels": [["1024", "130560", "17"], ...] or null: number, sum and sum of squares per channel,
 *    "most": [2000, 1, "south"], "least": [100, 0, "north"], "test": 50}
 * or {"agents": 0} of nobody. Of tables also "columns" (table_json.c). */
#include "data/profile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/dataset_internal.h"
#include "util/json.h"
#include "util/memory.h"

/* ---- printing ---- */

static void add_floats(ct_text *out, const char *name, const float *values, int n) {
    ct_text_add(out, ", \"%s\": ", name);
    for (int c = 0; c < n; c++) {
        ct_text_add(out, c == 0 ? "[" : ", ");
        ct_json_add_number(out, (double)values[c]);
    }
    ct_text_add(out, n > 0 ? "]" : "null");
}

static void add_sums(ct_text *out, const ct_profile *p) {
    const ct_pixel_sums *s = &p->sums;
    ct_text_add(out, ", \"pixels\": ");
    for (int c = 0; c < p->channels && p->has_sums; c++)
        ct_text_add(out, "%s[\"%" PRIu64 "\", \"%" PRIu64 "\", \"%" PRIu64 "\"]",
                    c == 0 ? "[" : ", ", s->n, s->sum[c], s->squares[c]);
    ct_text_add(out, p->has_sums ? "]" : "null");
}

static void add_classes(ct_text *out, const ct_profile *p) {
    const char *name = p->class_names;
    ct_text_add(out, ", \"classes\": ");
    if (name == NULL) {
        ct_text_add(out, "%d", p->n_classes);
        return;
    }
    for (int k = 0; k < p->n_classes; k++, name += strlen(name) + 1) {
        ct_text_add(out, k == 0 ? "[" : ", ");
        ct_json_add_string(out, name);
    }
    ct_text_add(out, "]");
}

static void add_size(ct_text *out, const char *name, const ct_agent_size *size) {
    ct_text_add(out, ", \"%s\": [%zu, %d, \"%s\"]", name, size->n, size->who.agent, size->who.name);
}

void ct_profile_print(const ct_profile *p, ct_text *out) {
    int n_scale = p->has_scale ? p->channels : 0;
    if (p->n_agents == 0) {
        ct_text_add(out, "{\"agents\": 0}");
        return;
    }
    ct_text_add(out, "{\"agents\": %d, \"first\": [%d, \"%s\"], \"shape\": [%d, %d, %d]",
                p->n_agents, p->first.agent, p->first.name, p->channels, p->height, p->width);
    ct_text_add(out, ", \"values\": %d, \"cut\": [%d, %d, %d]", p->has_values, p->resize,
                p->crop_padding, p->flip);
    add_classes(out, p);
    add_floats(out, "mean", p->mean, n_scale);
    add_floats(out, "std", p->std, n_scale);
    add_sums(out, p);
    add_size(out, "most", &p->most);
    add_size(out, "least", &p->least);
    if (p->columns.n > 0) {
        ct_text_add(out, ", \"columns\": ");
        ct_columns_print(&p->columns, true, out);
    }
    ct_text_add(out, ", \"test\": %" PRIu64 "}", p->n_test);
}

/* ---- reading ---- */

static ct_status wrong(const char *what) {
    return ct_fail(CT_IO, "what another process says of its data has no valid '%s'", what);
}

/* A whole number in its range; what lies nowhere is refused. */
static ct_status take_whole(const ct_json *value, const char *what, double lowest, double highest,
                            double *out) {
    if (value == NULL || value->kind != CT_JSON_NUMBER || !(value->number >= lowest) ||
        !(value->number <= highest) || value->number != floor(value->number))
        return wrong(what);
    *out = value->number;
    return CT_OK;
}

/* A list of n values, or CT_IO. */
static ct_status take_list(const ct_json *object, const char *key, size_t n, const ct_json **out) {
    const ct_json *list = ct_json_get(object, key);
    if (list == NULL || list->kind != CT_JSON_ARRAY || list->n_children != n) return wrong(key);
    *out = list->child;
    return CT_OK;
}

static ct_status take_wholes(const ct_json *object, const char *key, size_t n, double lowest,
                             double highest, double *out) {
    const ct_json *item = NULL;
    CT_TRY(take_list(object, key, n, &item));
    for (; item != NULL; item = item->next) CT_TRY(take_whole(item, key, lowest, highest, out++));
    return CT_OK;
}

/* An agent's number and name. */
static ct_status take_voice(const ct_json *number, const char *what, ct_voice *out) {
    double agent = 0;
    CT_TRY(take_whole(number, what, 0, 65535, &agent));
    const ct_json *name = number->next;
    if (name->kind != CT_JSON_STRING || !ct_agent_name_is_right(name->string)) return wrong(what);
    out->agent = (int)agent;
    snprintf(out->name, sizeof out->name, "%s", name->string);
    return CT_OK;
}

static ct_status take_size(const ct_json *object, const char *key, ct_agent_size *out) {
    const ct_json *item = NULL;
    double n = 0;
    CT_TRY(take_list(object, key, 3, &item));
    CT_TRY(take_whole(item, key, 1, UINT32_MAX, &n));
    out->n = (size_t)n;
    return take_voice(item->next, key, &out->who);
}

/* Names that are sorted, each once, as one block. */
static ct_status take_names(const ct_json *list, ct_profile *p) {
    CT_SCOPED(ct_text) names = {0};
    const char *before = NULL;
    for (const ct_json *item = list->child; item != NULL; item = item->next) {
        if (item->kind != CT_JSON_STRING || (before != NULL && strcmp(before, item->string) >= 0))
            return wrong("classes");
        before = item->string;
        ct_text_add(&names, "%s%c", item->string, '\0');
    }
    CT_TRY(ct_text_status(&names));
    if (names.n > CT_MAX_NAMES_BYTES) return wrong("classes");
    p->class_names = ct_take(&names.chars);
    return CT_OK;
}

static ct_status take_classes(const ct_json *object, ct_profile *p) {
    const ct_json *classes = ct_json_get(object, "classes");
    double n = 0;
    if (classes != NULL && classes->kind == CT_JSON_ARRAY) {
        if (classes->n_children < 1 || classes->n_children > CT_MAX_CLASSES)
            return wrong("classes");
        p->n_classes = (int)classes->n_children;
        return take_names(classes, p);
    }
    CT_TRY(take_whole(classes, "classes", 1, CT_MAX_CLASSES, &n));
    p->n_classes = (int)n;
    return CT_OK;
}

static bool is_null(const ct_json *object, const char *key) {
    const ct_json *value = ct_json_get(object, key);
    return value != NULL && value->kind == CT_JSON_NULL;
}

static ct_status take_floats(const ct_json *object, const char *key, int n, double lowest,
                             float *out) {
    const ct_json *item = NULL;
    CT_TRY(take_list(object, key, (size_t)n, &item));
    for (; item != NULL; item = item->next, out++) {
        if (item->kind != CT_JSON_NUMBER) return wrong(key);
        *out = (float)item->number;
        if (!isfinite(*out) || !((double)*out >= lowest)) return wrong(key);
    }
    return CT_OK;
}

static ct_status take_scale(const ct_json *object, ct_profile *p) {
    if (is_null(object, "mean") && is_null(object, "std")) return CT_OK;
    CT_TRY(take_floats(object, "mean", p->channels, -1e30, p->mean));
    CT_TRY(take_floats(object, "std", p->channels, 1e-30, p->std));
    p->has_scale = true;
    return CT_OK;
}

/* The digits of a number of up to 63 bits. */
static ct_status take_digits(const ct_json *value, uint64_t highest, uint64_t *out) {
    int64_t number = 0;
    if (value->kind != CT_JSON_STRING || strspn(value->string, "0123456789") == 0 ||
        !ct_parse_i64(value->string, &number) || number < 0 || (uint64_t)number > highest)
        return wrong("pixels");
    *out = (uint64_t)number;
    return CT_OK;
}

static ct_status take_channel(const ct_json *list, int c, ct_pixel_sums *s) {
    __extension__ typedef unsigned __int128 whole;
    uint64_t n = 0;
    if (list->kind != CT_JSON_ARRAY || list->n_children != 3) return wrong("pixels");
    CT_TRY(take_digits(list->child, CT_MAX_PIXELS, &n));
    CT_TRY(take_digits(list->child->next, 255 * n, &s->sum[c]));
    CT_TRY(take_digits(list->child->next->next, 255 * s->sum[c], &s->squares[c]));
    if (n == 0 || (c > 0 && n != s->n)) return wrong("pixels");
    s->n = n;
    /* no numbers have a mean of squares below the square of their mean */
    return (whole)n * s->squares[c] >= (whole)s->sum[c] * s->sum[c] ? CT_OK : wrong("pixels");
}

static ct_status take_sums(const ct_json *object, ct_profile *p) {
    const ct_json *item = NULL;
    if (is_null(object, "pixels")) return p->has_scale ? CT_OK : wrong("mean");
    CT_TRY(take_list(object, "pixels", (size_t)p->channels, &item));
    for (int c = 0; item != NULL; item = item->next, c++) CT_TRY(take_channel(item, c, &p->sums));
    p->has_sums = true;
    return CT_OK;
}

static ct_status take_shape(const ct_json *object, ct_profile *p) {
    double shape[3], cut[3], has_values = 0;
    CT_TRY(take_wholes(object, "shape", 3, 1, 65535, shape));
    if (shape[0] > CT_MAX_CHANNELS) return wrong("shape");
    CT_TRY(take_wholes(object, "cut", 3, 0, CT_MAX_PACK_SIDE, cut));
    CT_TRY(take_whole(ct_json_get(object, "values"), "values", 0, 1, &has_values));
    if (cut[1] > 127 || cut[2] > 1) return wrong("cut");
    p->channels = (int)shape[0];
    p->height = (int)shape[1];
    p->width = (int)shape[2];
    p->has_values = has_values != 0;
    p->resize = (int)cut[0];
    p->crop_padding = (int)cut[1];
    p->flip = cut[2] != 0;
    return CT_OK;
}

/* As many inputs as the shape says. */
static ct_status take_columns(const ct_json *object, ct_profile *p) {
    const ct_json *columns = ct_json_get(object, "columns");
    if (columns == NULL) return CT_OK;
    CT_TRY(ct_columns_parse(columns, "what another process says of its data", &p->columns));
    bool is_right = p->channels == 1 && p->height == 1 && p->has_values &&
                    ct_columns_inputs(&p->columns) == (size_t)p->width;
    return is_right ? CT_OK : wrong("columns");
}

static ct_status read_all(const ct_json *object, ct_profile *p) {
    const ct_json *first = NULL;
    double n_agents = 0, n_test = 0;
    if (object->kind != CT_JSON_OBJECT) return wrong("profile");
    CT_TRY(take_whole(ct_json_get(object, "agents"), "agents", 0, 65536, &n_agents));
    if (n_agents == 0) return CT_OK; /* of a process that has nothing to say */
    CT_TRY(take_whole(ct_json_get(object, "test"), "test", 0, 0x1p52, &n_test));
    CT_TRY(take_list(object, "first", 2, &first));
    CT_TRY(take_voice(first, "first", &p->first));
    p->n_agents = (int)n_agents;
    p->n_test = (uint64_t)n_test;
    CT_TRY(take_shape(object, p));
    CT_TRY(take_classes(object, p));
    CT_TRY(take_scale(object, p));
    CT_TRY(take_sums(object, p));
    CT_TRY(take_columns(object, p));
    CT_TRY(take_size(object, "most", &p->most));
    return take_size(object, "least", &p->least);
}

ct_status ct_profile_parse(const char *text, size_t n, ct_profile *out) {
    CT_SCOPED_HANDLE(ct_json) object = NULL;
    CT_SCOPED(ct_profile) p = {0};
    if (n > CT_MAX_PROFILE_BYTES)
        return ct_fail(CT_IO, "what another process says of its data has %zu bytes; at most %zu", n,
                       CT_MAX_PROFILE_BYTES);
    CT_TRY(ct_json_parse(text, n, "what another process says of its data", &object));
    CT_TRY(read_all(object, &p));
    ct_move(out, &p);
    return CT_OK;
}

ct_status ct_profile_merge_text(void *unused, const char *theirs, size_t n, ct_text *mine) {
    (void)unused;
    CT_SCOPED(ct_profile) other = {0};
    CT_SCOPED(ct_profile) own = {0};
    CT_TRY(ct_profile_parse(theirs, n, &other));
    CT_TRY(ct_profile_parse(mine->chars, mine->n, &own));
    CT_TRY(ct_profile_merge(&other, &own));
    ct_text_free(mine);
    ct_profile_print(&own, mine);
    return ct_text_status(mine);
}
