/* Trained models through the public header. */
#include "api/api_internal.h"

#include <stdio.h>
#include <string.h>

#include "model/model.h"

static ct_status open_model(const char *path, const char *device, ct_model **out) {
    CT_NEED(path);
    CT_NEED(out);
    ct_model_options options = CT_MODEL_OPTIONS;
    options.device = device;
    return ct_model_load(path, &options, out);
}

ct_status ct_model_open(const char *path, const char *device, ct_model **out, ct_error *error) {
    return CT_CATCH(error, open_model(path, device, out));
}

int ct_model_n_classes(const ct_model *model) {
    return model != NULL ? ct_model_facts_of(model)->n_classes : 0;
}

const char *ct_model_class_name(const ct_model *model, int k) {
    const ct_model_facts *facts = model != NULL ? ct_model_facts_of(model) : NULL;
    bool has_name = facts != NULL && facts->class_names != NULL && k >= 0 && k < facts->n_classes;
    return has_name ? facts->class_names[k] : "";
}

void ct_model_shape(const ct_model *model, int *channels, int *height, int *width) {
    *channels = *height = *width = 0;
    if (model == NULL) return;
    const ct_model_facts *facts = ct_model_facts_of(model);
    *channels = facts->channels;
    *height = facts->height;
    *width = facts->width;
}

void ct_model_normalisation(const ct_model *model, int channel, double *mean, double *std) {
    *mean = 0;
    *std = 1;
    const ct_model_facts *facts = model != NULL ? ct_model_facts_of(model) : NULL;
    if (facts == NULL || channel < 0 || channel >= facts->channels) return;
    *mean = (double)facts->mean[channel];
    *std = (double)facts->deviation[channel];
}

const char *ct_model_fact(const ct_model *model, const char *key) {
    if (model == NULL || key == NULL) return NULL;
    const ct_model_facts *f = ct_model_facts_of(model);
    const struct {
        const char *key, *value;
    } facts[] = {{"network", f->network}, {"norm", f->norm},       {"algorithm", f->algorithm},
                 {"loss", f->loss},       {"dataset", f->dataset}, {"data-fingerprint", f->data},
                 {"version", f->version}};
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++)
        if (strcmp(facts[k].key, key) == 0)
            return facts[k].value[0] != '\0' ? facts[k].value : NULL;
    return NULL;
}

/* ---- predictions ---- */

static ct_status predict_bytes(ct_model *model, const uint8_t *pixels, size_t n,
                               float *probabilities) {
    CT_NEED(model);
    CT_NEED(pixels);
    CT_NEED(probabilities);
    return ct_model_run_bytes(model, pixels, CT_PIXELS_PLANES, n, probabilities);
}

ct_status ct_model_predict(ct_model *model, const uint8_t *pixels, size_t n, float *probabilities,
                           ct_error *error) {
    return CT_CATCH(error, predict_bytes(model, pixels, n, probabilities));
}

static ct_status predict_floats(ct_model *model, const float *values, size_t n,
                                float *probabilities) {
    CT_NEED(model);
    CT_NEED(values);
    CT_NEED(probabilities);
    return ct_model_run_floats(model, values, CT_PIXELS_PLANES, n, probabilities);
}

ct_status ct_model_predict_floats(ct_model *model, const float *values, size_t n,
                                  float *probabilities, ct_error *error) {
    return CT_CATCH(error, predict_floats(model, values, n, probabilities));
}

typedef struct unread {
    bool *readable;   /* the caller's; may be NULL */
    size_t first;     /* the first that could not be read */
    char reason[160]; /* why; "": all could */
} unread;

static void note_unread(void *context, size_t picture, const char *reason) {
    unread *u = context;
    if (u->readable != NULL) u->readable[picture] = false;
    if (u->reason[0] != '\0') return;
    u->first = picture;
    snprintf(u->reason, sizeof u->reason, "%s", reason);
}

static ct_status predict_files(ct_model *model, const char *const *paths, size_t n,
                               float *probabilities, bool *readable) {
    unread u = {.readable = readable};
    CT_NEED(model);
    CT_NEED(paths);
    CT_NEED(probabilities);
    for (size_t k = 0; k < n && readable != NULL; k++) readable[k] = true;
    CT_TRY(ct_model_run_files(model, paths, n, probabilities, note_unread, &u));
    if (readable != NULL || u.reason[0] == '\0') return CT_OK;
    return ct_fail(CT_IO, "%s: %s", paths[u.first], u.reason);
}

ct_status ct_model_predict_files(ct_model *model, const char *const *paths, size_t n,
                                 float *probabilities, bool *readable, ct_error *error) {
    return CT_CATCH(error, predict_files(model, paths, n, probabilities, readable));
}

/* ---- ONNX ---- */

static ct_status export_model(const ct_model *model, const char *path, bool with_preprocessing) {
    CT_NEED(model);
    CT_NEED(path);
    ct_onnx_options options = CT_ONNX_OPTIONS;
    options.preprocess = with_preprocessing;
    return ct_model_export_onnx(model, path, &options);
}

ct_status ct_model_export(const ct_model *model, const char *path, bool with_preprocessing,
                          ct_error *error) {
    return CT_CATCH(error, export_model(model, path, with_preprocessing));
}
