#include "model/facts.h"

#include <stdio.h>
#include <string.h>

#include "util/budget.h"
#include "util/json.h"
#include "util/memory.h"
#include "util/version.h"

/* Images are pictures, or whatever rows of numbers a program trained on. */
#define MAX_SIDE   (1 << 24)
#define MAX_VALUES (1 << 28)

static const char *const fact_names[] = {
#define FACT(field, name) name,
#include "model/fact_list.h"
#undef FACT
};

/* ---- texts to facts ---- */

typedef struct reader {
    const char *path;
    const char *value; /* of the fact at hand */
    ct_fact_id id;
} reader;

static ct_status wrong(const reader *r, const char *wanted) {
    return ct_fail(CT_IO, "%s: its metadata says %s '%.80s'; it must be %s", r->path,
                   fact_names[r->id], r->value, wanted);
}

static ct_status read_word(const reader *r, char *out, size_t size) {
    if (strlen(r->value) >= size) return wrong(r, "a name");
    snprintf(out, size, "%s", r->value);
    return CT_OK;
}

typedef struct number_list {
    double values[CT_MAX_CHANNELS];
    int n;
} number_list;

static ct_status add_number(void *context, const char *field) {
    number_list *list = context;
    if (list->n == CT_MAX_CHANNELS || !ct_parse_double(field, &list->values[list->n]))
        return CT_INVAL;
    list->n++;
    return CT_OK;
}

/* n numbers from lowest to highest with commas between them; n = 0: any number of them. */
static ct_status read_numbers(const reader *r, int n, double lowest, double highest,
                              number_list *out) {
    char wanted[96];
    snprintf(wanted, sizeof wanted, "%s from %.6g to %.6g, with commas",
             n == 1 ? "a number" : "numbers", lowest, highest);
    *out = (number_list){.n = 0};
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_split(r->value, add_number, out));
    if (status == CT_NOMEM) return ct_fail_again(&error);
    if (status != CT_OK) return wrong(r, wanted);
    bool is_right = out->n > 0 && (n == 0 || out->n == n);
    for (int k = 0; k < out->n; k++)
        is_right = is_right && out->values[k] >= lowest && out->values[k] <= highest;
    return is_right ? CT_OK : wrong(r, wanted);
}

static ct_status read_whole(const reader *r, int lowest, int highest, int *out) {
    number_list list;
    CT_TRY(read_numbers(r, 1, lowest, highest, &list));
    *out = (int)list.values[0];
    return *out == list.values[0] ? CT_OK : wrong(r, "a whole number");
}

static ct_status read_image(const reader *r, ct_facts *out) {
    number_list list;
    CT_TRY(read_numbers(r, 3, 1, MAX_SIDE, &list));
    out->channels = (int)list.values[0];
    out->height = (int)list.values[1];
    out->width = (int)list.values[2];
    double n = list.values[0] * list.values[1] * list.values[2];
    if (out->channels <= CT_MAX_CHANNELS && n <= MAX_VALUES) return CT_OK;
    return wrong(r, "at most 16 channels, height and width, not too large");
}

/* One value a channel; the image stands before it in the file's list and in ours. */
static ct_status read_scale(const reader *r, const ct_facts *facts, double lowest, double highest,
                            float *out) {
    number_list list;
    CT_TRY(read_numbers(r, facts->channels, lowest, highest, &list));
    for (int c = 0; c < list.n; c++) out[c] = (float)list.values[c];
    return CT_OK;
}

/* The strings of a JSON array, one after the other, each with its 0. */
static ct_status pack_names(const reader *r, const ct_json *array, ct_text *out) {
    for (const ct_json *c = array->child; c != NULL; c = c->next) {
        if (c->kind != CT_JSON_STRING) return wrong(r, "a JSON array of strings");
        ct_text_add(out, "%s%c", c->string, '\0');
    }
    return ct_text_status(out);
}

static ct_status read_names(const reader *r, ct_facts *out) {
    CT_SCOPED_HANDLE(ct_json) array = NULL;
    CT_SCOPED(ct_text) names = {0};
    size_t n = strlen(r->value);
    if (n > CT_MAX_NAMES_BYTES) return wrong(r, "shorter");
    CT_TRY(ct_json_parse_most(r->value, n, r->path, CT_MAX_CLASSES + 1, &array));
    if (array->kind != CT_JSON_ARRAY || array->n_children != (size_t)out->n_classes)
        return wrong(r, "a JSON array with the name of every class");
    CT_TRY(pack_names(r, array, &names));
    return ct_facts_name_classes(out, ct_take(&names.chars), out->n_classes);
}

/* As many inputs as the image has values. */
static ct_status read_columns(const reader *r, ct_facts *out) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_TRY(ct_json_parse(r->value, strlen(r->value), r->path, &json));
    CT_TRY(ct_columns_parse(json, r->path, &out->columns));
    size_t n = ct_columns_inputs(&out->columns);
    if (out->channels == 1 && out->height == 1 && n == (size_t)out->width) return CT_OK;
    return wrong(r, "columns of as many inputs as the image has");
}

static ct_status read_fact(const reader *r, ct_facts *out) {
    switch (r->id) {
    case CT_FACT_version: return read_word(r, out->version, sizeof out->version);
    case CT_FACT_network: return read_word(r, out->network, sizeof out->network);
    case CT_FACT_norm: return read_word(r, out->norm, sizeof out->norm);
    case CT_FACT_algorithm: return read_word(r, out->algorithm, sizeof out->algorithm);
    case CT_FACT_loss: return read_word(r, out->loss, sizeof out->loss);
    case CT_FACT_dataset: return read_word(r, out->dataset, sizeof out->dataset);
    case CT_FACT_data: return read_word(r, out->data, sizeof out->data);
    case CT_FACT_image: return read_image(r, out);
    case CT_FACT_resize: return read_whole(r, 0, CT_MAX_PACK_SIDE, &out->resize);
    case CT_FACT_classes: return read_whole(r, 1, CT_MAX_CLASSES, &out->n_classes);
    case CT_FACT_class_names: return read_names(r, out);
    case CT_FACT_columns: return read_columns(r, out);
    case CT_FACT_mean: return read_scale(r, out, -1e9, 1e9, out->mean);
    case CT_FACT_deviation:
        CT_TRY(read_scale(r, out, 1e-9, 1e9, out->deviation));
        out->has_scale = true;
        return CT_OK;
    case CT_N_FACTS: break;
    }
    return CT_OK;
}

/* Facts that others are read by: without these, those mean nothing. */
static ct_status check_needs(const char *path, const ct_tensors *tensors) {
    static const struct {
        ct_fact_id fact, needs;
    } rules[] = {{CT_FACT_mean, CT_FACT_image},
                 {CT_FACT_deviation, CT_FACT_mean},
                 {CT_FACT_mean, CT_FACT_deviation},
                 {CT_FACT_class_names, CT_FACT_classes},
                 {CT_FACT_columns, CT_FACT_image}};
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        const char *fact = fact_names[rules[k].fact], *needs = fact_names[rules[k].needs];
        if (ct_tensors_note_of(tensors, fact) != NULL && ct_tensors_note_of(tensors, needs) == NULL)
            return ct_fail(CT_IO, "%s: its metadata has %s without %s", path, fact, needs);
    }
    return CT_OK;
}

ct_status ct_facts_read(const char *path, const ct_tensors *tensors, ct_facts *out) {
    if (ct_tensors_note_of(tensors, fact_names[CT_FACT_version]) == NULL) return CT_OK;
    CT_TRY(check_needs(path, tensors));
    for (int id = 0; id < CT_N_FACTS; id++) {
        reader r = {path, ct_tensors_note_of(tensors, fact_names[id]), (ct_fact_id)id};
        if (r.value != NULL) CT_TRY(read_fact(&r, out));
    }
    return CT_OK;
}

ct_status ct_facts_name_classes(ct_facts *facts, char *taken_names, int n) {
    ct_free(facts->names);
    facts->names = taken_names;
    ct_free(facts->class_names);
    CT_TRY(ct_make(&facts->class_names, (size_t)n, "the names of classes"));
    facts->n_classes = n;
    for (int c = 0; c < n; c++) {
        facts->class_names[c] = taken_names;
        taken_names += strlen(taken_names) + 1;
    }
    return CT_OK;
}

void ct_facts_free(ct_facts *facts) {
    ct_free(facts->class_names);
    ct_free(facts->names);
    ct_columns_free(&facts->columns);
    *facts = (ct_facts){0};
}

/* ---- two sources ---- */

static ct_status contradicts(const char *path, const char *option, const char *theirs,
                             const char *ours) {
    return ct_fail_about(CT_DIFFERS, option, "@%s %s: %s says %s", option, theirs, path, ours);
}

static ct_status complete_word(const char *path, const char *option, const char *known, char *word,
                               size_t size) {
    if (known == NULL || known[0] == '\0') return CT_OK;
    if (word[0] != '\0' && strcmp(word, known) != 0) return contradicts(path, option, known, word);
    snprintf(word, size, "%s", known);
    return CT_OK;
}

static ct_status complete_number(const char *path, const char *option, int known, int *number) {
    if (known == 0 || *number == known) return CT_OK;
    if (*number == 0) {
        *number = known;
        return CT_OK;
    }
    char theirs[16], ours[16];
    snprintf(theirs, sizeof theirs, "%d", known);
    snprintf(ours, sizeof ours, "%d", *number);
    return contradicts(path, option, theirs, ours);
}

/* Decimal digits that are shown are enough to say the same. */
static bool is_same_scale(const float *a, const float *b, int n) {
    for (int c = 0; c < n; c++)
        if (!(a[c] - b[c] < 1e-4f && b[c] - a[c] < 1e-4f)) return false;
    return true;
}

static ct_status complete_scale(const char *path, ct_facts *facts, const ct_model_facts *known) {
    if (known->mean == NULL || known->deviation == NULL || facts->channels == 0) return CT_OK;
    size_t n = (size_t)facts->channels * sizeof(float);
    if (facts->has_scale) {
        bool same = is_same_scale(facts->mean, known->mean, facts->channels) &&
                    is_same_scale(facts->deviation, known->deviation, facts->channels);
        return same ? CT_OK
                    : ct_fail_about(CT_DIFFERS, "mean",
                                    "@mean and @deviation are others than those in %s", path);
    }
    memcpy(facts->mean, known->mean, n);
    memcpy(facts->deviation, known->deviation, n);
    facts->has_scale = true;
    return CT_OK;
}

static ct_status complete_names(ct_facts *facts, const ct_model_facts *known) {
    CT_SCOPED(ct_text) names = {0};
    if (facts->names != NULL || known->class_names == NULL) return CT_OK;
    for (int c = 0; c < known->n_classes; c++)
        ct_text_add(&names, "%s%c", known->class_names[c], '\0');
    CT_TRY(ct_text_status(&names));
    return ct_facts_name_classes(facts, ct_take(&names.chars), known->n_classes);
}

ct_status ct_facts_complete(const char *path, ct_facts *facts, const ct_model_facts *known) {
    if (known == NULL) return CT_OK;
    CT_TRY(complete_word(path, "model", known->network, facts->network, sizeof facts->network));
    CT_TRY(complete_word(path, "norm", known->norm, facts->norm, sizeof facts->norm));
    CT_TRY(complete_number(path, "channels", known->channels, &facts->channels));
    CT_TRY(complete_number(path, "image-size", known->height, &facts->height));
    CT_TRY(complete_number(path, "image-size", known->width, &facts->width));
    CT_TRY(complete_number(path, "classes", known->n_classes, &facts->n_classes));
    if (facts->resize == 0) facts->resize = known->resize;
    CT_TRY(complete_scale(path, facts, known));
    return complete_names(facts, known);
}

ct_status ct_facts_check(const char *path, const ct_facts *facts) {
    CT_SCOPED(ct_text) missing = {0};
    const struct {
        bool is_known;
        const char *option;
    } needs[] = {{facts->network[0] != '\0', "model"},
                 {facts->norm[0] != '\0', "norm"},
                 {facts->channels > 0, "channels"},
                 {facts->height > 0 && facts->width > 0, "image-size"},
                 {facts->has_scale, "mean, @deviation"}};
    if (strcmp(facts->network, CT_NETWORK_EXTERNAL) == 0)
        return ct_fail(CT_INVAL, "%s: its network is known to the program alone that trained it",
                       path);
    for (size_t k = 0; k < sizeof needs / sizeof *needs; k++)
        if (!needs[k].is_known)
            ct_text_add(&missing, "%s@%s", missing.n > 0 ? ", " : "", needs[k].option);
    CT_TRY(ct_text_status(&missing));
    if (missing.n == 0) return CT_OK;
    return ct_fail(CT_INVAL,
                   "%s does not describe itself (models written before 0.2.0 do not); say what it "
                   "is with %s",
                   path, missing.chars);
}

ct_model_facts ct_facts_view(const ct_facts *f) {
    return (ct_model_facts){.network = f->network,
                            .norm = f->norm,
                            .channels = f->channels,
                            .height = f->height,
                            .width = f->width,
                            .resize = f->resize,
                            .mean = f->has_scale ? f->mean : NULL,
                            .deviation = f->has_scale ? f->deviation : NULL,
                            .n_classes = f->n_classes,
                            .class_names = f->class_names,
                            .algorithm = f->algorithm,
                            .loss = f->loss,
                            .dataset = f->dataset,
                            .data = f->data,
                            .version = f->version,
                            .columns = f->columns.n > 0 ? &f->columns : NULL};
}

/* ---- facts to texts ---- */

static void add_floats(ct_text *out, const float *values, int n) {
    for (int k = 0; k < n; k++) ct_text_add(out, "%s%.9g", k > 0 ? "," : "", (double)values[k]);
}

static void add_names(ct_text *out, const ct_model_facts *f) {
    ct_text_add(out, "[");
    for (int c = 0; c < f->n_classes; c++) {
        if (c > 0) ct_text_add(out, ", ");
        ct_json_add_string(out, f->class_names[c]);
    }
    ct_text_add(out, "]");
}

/* Nothing where it is not known. */
static void add_fact(const ct_model_facts *f, ct_fact_id id, ct_text *out) {
    const char *words[CT_N_FACTS] = {
        [CT_FACT_version] = CT_VERSION, [CT_FACT_network] = f->network,
        [CT_FACT_norm] = f->norm,       [CT_FACT_algorithm] = f->algorithm,
        [CT_FACT_loss] = f->loss,       [CT_FACT_dataset] = f->dataset,
        [CT_FACT_data] = f->data,
    };
    if (words[id] != NULL) ct_text_add(out, "%s", words[id]);
    if (id == CT_FACT_image) ct_text_add(out, "%d,%d,%d", f->channels, f->height, f->width);
    if (id == CT_FACT_resize && f->resize > 0) ct_text_add(out, "%d", f->resize);
    if (id == CT_FACT_mean) add_floats(out, f->mean, f->channels);
    if (id == CT_FACT_deviation) add_floats(out, f->deviation, f->channels);
    if (id == CT_FACT_columns && f->columns != NULL) ct_columns_print(f->columns, false, out);
    if (id == CT_FACT_classes) ct_text_add(out, "%d", f->n_classes);
    if (id == CT_FACT_class_names && f->class_names != NULL) add_names(out, f);
}

ct_status ct_facts_write(const ct_model_facts *facts, ct_fact_notes *out) {
    for (int id = 0; id < CT_N_FACTS; id++) {
        ct_text *value = &out->values[id];
        add_fact(facts, (ct_fact_id)id, value);
        CT_TRY(ct_text_status(value));
        if (value->n == 0) continue;
        out->notes[out->n++] = (ct_tensors_note){(char *)fact_names[id], value->chars};
    }
    return CT_OK;
}

void ct_fact_notes_free(ct_fact_notes *notes) {
    for (int id = 0; id < CT_N_FACTS; id++) ct_text_free(&notes->values[id]);
    *notes = (ct_fact_notes){.n = 0};
}
