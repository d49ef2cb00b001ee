/* A trained model that can be used: what a run has left (weights), and all that it takes to use
 * them (network, norm, size and normalisation of its images, names of the classes).
 *
 * include/crosstalk/model.h has the same for other programs; here are options and facts besides.
 *
 *     ct_model *model = NULL;
 *     CT_TRY(ct_model_load("runs/ccl", NULL, &model));
 *     const ct_model_facts *facts = ct_model_facts_of(model);
 *     ... ct_model_run_bytes(model, pixels, CT_PIXELS_INTERLEAVED, n, probabilities) ...
 *     ct_model_free(&model);
 *
 * A handle is for one thread at a time; two threads take two handles. The same images give the same
 * bits whatever the number of threads and whichever images stand beside them. */
#ifndef CT_MODEL_MODEL_H
#define CT_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <crosstalk/model.h> /* ct_model and ct_model_free, the calls of programs */

/* What a model says about itself. Texts that are not known are "". What is here stays as it is:
 * later versions only add members at the end. */
typedef struct ct_model_facts {
    const char *network; /* resnet20, mlp:64, ... */
    const char *norm;    /* evonorm, evonorm-s0, groupnorm, batchnorm, none */
    int channels, height, width;
    int resize; /* picture files: their shorter side is made so many pixels, then the middle
                 * height x width pixels are cut out; 0: as many as the shorter of these */
    const float *mean,
        *deviation; /* [channels] the network sees (v - mean) / deviation, v = 0 .. 1 */
    int n_classes;
    const char *const *class_names; /* [n_classes]; NULL: they have none */
    /* how it was trained */
    const char *algorithm, *loss;
    const char *dataset;
    const char *data;    /* fingerprint of the data, 16 hexadecimal digits */
    const char *version; /* of the program that wrote it */
    size_t n_parameters;
    const struct ct_columns *columns; /* of a model of tables (data/table.h); NULL: it is none */
} ct_model_facts;

/* Begin with CT_MODEL_OPTIONS: ct_model_options options = CT_MODEL_OPTIONS; */
typedef struct ct_model_options {
    size_t size;        /* of this struct, as the caller knows it */
    const char *device; /* auto (a GPU if one works, else cpu), cpu, cuda, ref */
    int n_threads;      /* 0 = one for each core the process may use */
    int agent;          /* of a file that holds every agent's model; -1: none, it holds one model */
    /* Of files that do not say (older versions', other programs'): facts to go by, in which zero and
     * NULL are unknown. What the file says and this contradicts is refused. NULL: none. */
    const ct_model_facts *known;
    const char
        *precision;  /* fp32 (also NULL), tf32, bf16 (of cuda alone), auto: the device's usual */
    bool exact_conv; /* direct convolutions instead of Winograd's */
} ct_model_options;
#define CT_MODEL_OPTIONS ((ct_model_options){.size = sizeof(ct_model_options), .agent = -1})

/* Opens a .safetensors file, or a run directory, whose consensus model it is (with `agent`, that
 * agent's). options may be NULL. A file that does not describe itself is completed by the options and
 * by the run directory that it lies in.
 * CT_IO: it cannot be read, or is no model. CT_INVAL: something is not known, and which option says
 * it. CT_DIFFERS: the options contradict the file. *out is written on success alone. */
ct_status ct_model_load(const char *path, const ct_model_options *options, ct_model **out);
/* Lent, as long as the model lives. */
const ct_model_facts *ct_model_facts_of(const ct_model *model);
/* The name of a class, or its number where classes have no names. Lent likewise. */
const char *ct_model_class(const ct_model *model, int label);
/* The class of this name; -1: there is none. */
int ct_model_find_class(const ct_model *model, const char *name);

/* How the values of an image lie in memory. */
typedef enum ct_pixels {
    CT_PIXELS_PLANES,      /* [channels][height][width] */
    CT_PIXELS_INTERLEAVED, /* [height][width][channels] */
} ct_pixels;

/* images [n] of the model's channels, height and width, one after the other, 0 .. 255;
 * probabilities [n][n_classes]. The hooks' `progress` counts images; if it stops: CT_STOPPED. */
ct_status ct_model_run_bytes(ct_model *model, const uint8_t *images, ct_pixels order, size_t n,
                             float *probabilities);
/* The same of tensors that are normalised already: (v - mean) / deviation. */
ct_status ct_model_run_floats(ct_model *model, const float *images, ct_pixels order, size_t n,
                              float *probabilities);

/* A picture that cannot be read, and why in a few words. */
typedef void ct_unreadable(void *context, size_t picture, const char *reason);
/* The same of picture files (JPEG, PNG): resized, cut and normalised as those were that the model
 * was tested on. The row of one that cannot be read is NaN, and `unreadable` (may be NULL) hears of
 * it: in order, on the caller's thread. */
ct_status ct_model_run_files(ct_model *model, const char *const *paths, size_t n,
                             float *probabilities, ct_unreadable *unreadable, void *context);

/* The same of the rows of a CSV file, whose columns go by their names and are encoded as in training.
 * *probabilities [n][n_classes] is the caller's to free, *labels [n] what column is learnt says (-1:
 * no class of the model, or no such column). CT_INVAL: not a model of tables. */
ct_status ct_model_run_table(ct_model *model, const char *path, float **probabilities,
                             int32_t **labels, size_t *n);

/* What is written into an ONNX file. Begin with CT_ONNX_OPTIONS. */
typedef struct ct_onnx_options {
    size_t size;
    bool logits;     /* the output is logits, not probabilities */
    bool preprocess; /* the input is uint8 [n][height][width][channels], not normalised floats
                      * [n][channels][height][width] */
} ct_onnx_options;
#define CT_ONNX_OPTIONS ((ct_onnx_options){.size = sizeof(ct_onnx_options)})

/* Writes the model as ONNX (IR 7, opset 13), whole or not at all. Input "input", output
 * "probabilities" or "logits"; the number of images is free. options may be NULL. */
ct_status ct_model_export_onnx(const ct_model *model, const char *path,
                               const ct_onnx_options *options);

#endif
