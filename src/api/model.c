#include <crosstalk/model.h>

#include <stdio.h>
#include <string.h>

#include "api/api_internal.h"
#include "model/model.h"
#include "util/memory.h"

ct_status ct_model_open(const char *path, const char *device, ct_model **out, ct_error *error) {
    ct_model_options options = CT_MODEL_OPTIONS;
    options.device = device;
    return CT_CATCH(error, ct_model_load(path, &options, out));
}

int ct_model_n_classes(const ct_model *model) {
    return ct_model_facts_of(model)->n_classes;
}

void ct_model_shape(const ct_model *model, int *channels, int *height, int *width) {
    const ct_model_facts *f = ct_model_facts_of(model);
    *channels = f->channels;
    *height = f->height;
    *width = f->width;
}

void ct_model_normalisation(const ct_model *model, int channel, double *mean, double *std) {
    const ct_model_facts *f = ct_model_facts_of(model);
    bool is_there = channel >= 0 && channel < f->channels;
    *mean = is_there ? (double)f->mean[channel] : 0;
    *std = is_there ? (double)f->deviation[channel] : 1;
}

const char *ct_model_fact(const ct_model *model, const char *key) {
    const ct_model_facts *f = ct_model_facts_of(model);
    const struct {
        const char *key, *value;
    } facts[] = {{"network", f->network}, {"norm", f->norm},       {"algorithm", f->algorithm},
                 {"loss", f->loss},       {"dataset", f->dataset}, {"data-fingerprint", f->data},
                 {"version", f->version}};
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++)
        if (strcmp(facts[k].key, key) == 0)
            return facts[k].value != NULL && facts[k].value[0] != '\0' ? facts[k].value : NULL;
    return NULL;
}

ct_status ct_model_predict(ct_model *model, const uint8_t *pixels, size_t n, float *probabilities,
                           ct_error *error) {
    return CT_CATCH(error, ct_model_classify(model, pixels, CT_PIXELS_PLANES, n, probabilities));
}

ct_status ct_model_predict_floats(ct_model *model, const float *values, size_t n,
                                  float *probabilities, ct_error *error) {
    return CT_CATCH(error,
                    ct_model_classify_floats(model, values, CT_PIXELS_PLANES, n, probabilities));
}

/* The pictures that could not be read: marked, or the first of them with its reason. */
typedef struct unreadable {
    bool *readable;
    size_t n, first;
    char reason[256];
} unreadable;

static void hear(void *context, size_t picture, const char *reason) {
    unreadable *u = context;
    if (u->readable != NULL) u->readable[picture] = false;
    if (u->n++ > 0) return;
    u->first = picture;
    snprintf(u->reason, sizeof u->reason, "%s", reason);
}

static ct_status predict_files(ct_model *model, const char *const *paths, size_t n,
                               float *probabilities, bool *readable) {
    unreadable u = {.readable = readable};
    for (size_t k = 0; k < n && readable != NULL; k++) readable[k] = true;
    CT_TRY(ct_model_classify_files(model, paths, n, probabilities, hear, &u));
    if (u.n == 0 || readable != NULL) return CT_OK;
    return ct_fail(CT_IO, "%s: %s", paths[u.first], u.reason);
}

ct_status ct_model_predict_files(ct_model *model, const char *const *paths, size_t n,
                                 float *probabilities, bool *readable, ct_error *error) {
    return CT_CATCH(error, predict_files(model, paths, n, probabilities, readable));
}

ct_status ct_model_export(const ct_model *model, const char *path, bool with_preprocessing,
                          ct_error *error) {
    ct_onnx_options options = CT_ONNX_OPTIONS;
    options.preprocess = with_preprocessing;
    return CT_CATCH(error, ct_model_export_onnx(model, path, &options));
}
