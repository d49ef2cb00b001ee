/* A trained model and all that is needed to use it. */
#ifndef CROSSTALK_MODEL_H
#define CROSSTALK_MODEL_H

#include <crosstalk/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ct_model ct_model;

/* What a run left: a run directory (its consensus model) or a .safetensors file. device: "auto",
 * "cpu", "cuda". */
CT_API ct_status ct_model_open(const char *path, const char *device, ct_model **out,
                               ct_error *error);
CT_API void ct_model_free(ct_model **model);

CT_API int ct_model_n_classes(const ct_model *model);
CT_API const char *ct_model_class_name(const ct_model *model, int k); /* "": it has none */
CT_API void ct_model_shape(const ct_model *model, int *channels, int *height, int *width);
/* Mean and deviation of a channel: a tensor's value is (pixel / 255 - mean) / std. */
CT_API void ct_model_normalisation(const ct_model *model, int channel, double *mean, double *std);
/* What else the file says of it, by key: "network", "norm", "algorithm", "data-fingerprint",
 * "version"; NULL: it does not say. */
CT_API const char *ct_model_fact(const ct_model *model, const char *key);

/* Probabilities [n][n_classes] of n pictures in memory: [n][channels][height][width] as they were
 * stored for training, 0 .. 255. */
CT_API ct_status ct_model_predict(ct_model *model, const uint8_t *pixels, size_t n,
                                  float *probabilities, ct_error *error);
/* The same of tensors that are normalised already. */
CT_API ct_status ct_model_predict_floats(ct_model *model, const float *values, size_t n,
                                         float *probabilities, ct_error *error);
/* Of picture files (JPEG, PNG, ...), prepared as in training. readable[k] (may be NULL): false where
 * file k could not be read; its probabilities are NaN. Without `readable` such a file is an error. */
CT_API ct_status ct_model_predict_files(ct_model *model, const char *const *paths, size_t n,
                                        float *probabilities, bool *readable, ct_error *error);

/* Writes it as ONNX; the output is probabilities. with_preprocessing: the input is uint8
 * [n][height][width][channels], which the graph normalises itself; otherwise normalised floats
 * [n][channels][height][width]. */
CT_API ct_status ct_model_export(const ct_model *model, const char *path, bool with_preprocessing,
                                 ct_error *error);

#ifdef __cplusplus
}
#endif

#endif
