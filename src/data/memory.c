/* Samples in a program's own memory (crosstalk/run.h), used where they lie. */
#include <crosstalk/run.h>

#include <math.h>
#include <stdio.h>

#include "data/dataset_internal.h"
#include "util/memory.h"

#define MAX_SIDE 65535

static ct_status check_shape(const ct_data *data) {
    if (data->type != CT_UINT8 && data->type != CT_FLOAT32)
        return ct_fail(CT_INVAL, "data of type %d; known: CT_UINT8, CT_FLOAT32", (int)data->type);
    if (data->channels < 1 || data->channels > CT_MAX_CHANNELS || data->height < 1 ||
        data->height > MAX_SIDE || data->width < 1 || data->width > MAX_SIDE)
        return ct_fail(
            CT_INVAL,
            "samples of %d x %d x %d are no channels x height x width: 1 .. %d, 1 .. %d, "
            "1 .. %d",
            data->channels, data->height, data->width, CT_MAX_CHANNELS, MAX_SIDE, MAX_SIDE);
    if (data->n_classes < 1 || data->n_classes > CT_MAX_CLASSES)
        return ct_fail(CT_INVAL, "%d classes; there may be 1 .. %d", data->n_classes,
                       CT_MAX_CLASSES);
    return CT_OK;
}

static ct_status check_labels(const char *part, const ct_samples *samples, int n_classes) {
    for (size_t i = 0; i < samples->n; i++)
        if (samples->labels[i] < 0 || samples->labels[i] >= n_classes)
            return ct_fail(CT_INVAL, "label %d of %s sample %zu is not one of 0..%d",
                           (int)samples->labels[i], part, i, n_classes - 1);
    return CT_OK;
}

static ct_status check_values(const char *part, const ct_images *images) {
    size_t size = ct_image_values(images);
    for (size_t k = 0; images->values != NULL && k < images->n * size; k++)
        if (!isfinite(images->values[k]))
            return ct_fail(CT_INVAL, "value %zu of %s sample %zu is %g", k % size, part, k / size,
                           (double)images->values[k]);
    return CT_OK;
}

/* The arrays as images; nothing of them is written. */
static ct_status lend_part(const ct_data *data, const char *part, const ct_samples *samples,
                           bool may_lack_values, ct_images *out) {
    *out = (ct_images){.n = samples->n,
                       .channels = data->channels,
                       .height = data->height,
                       .width = data->width,
                       .labels = (int32_t *)samples->labels,
                       .is_lent = true};
    if (data->type == CT_UINT8)
        out->pixels = (uint8_t *)samples->values;
    else
        out->values = (float *)samples->values;
    if (samples->n > UINT32_MAX || samples->n > SIZE_MAX / sizeof(float) / ct_image_values(out))
        return ct_fail(CT_INVAL, "%zu %s samples are too many", samples->n, part);
    if (samples->n > 0 && samples->labels == NULL)
        return ct_fail(CT_INVAL, "the %s samples have no labels", part);
    if (samples->n > 0 && samples->values == NULL && !may_lack_values)
        return ct_fail(CT_INVAL, "the %s samples have no values", part);
    CT_TRY(check_labels(part, samples, data->n_classes));
    return check_values(part, out);
}

/* As ct_images_measure, of any numbers. */
static void measure_values(const ct_images *images, float *mean, float *std) {
    size_t plane = (size_t)images->height * (size_t)images->width, size = ct_image_values(images);
    double n = (double)images->n * (double)plane;
    for (int c = 0; c < images->channels; c++) {
        double sum = 0, squares = 0;
        const float *first = images->values + (size_t)c * plane;
        for (size_t i = 0; i < images->n; i++)
            for (size_t k = 0; k < plane; k++) sum += (double)first[i * size + k];
        for (size_t i = 0; i < images->n; i++)
            for (size_t k = 0; k < plane; k++) {
                double d = (double)first[i * size + k] - sum / n;
                squares += d * d;
            }
        mean[c] = (float)(sum / n);
        std[c] = (float)sqrt(squares / n) > 0 ? (float)sqrt(squares / n) : 1.0f;
    }
}

static ct_status choose_scale(const ct_data *data, ct_dataset *out) {
    float mean[CT_MAX_CHANNELS] = {0}, std[CT_MAX_CHANNELS] = {0};
    for (int c = 0; c < data->channels; c++) std[c] = 1;
    if ((data->mean == NULL || data->std == NULL) && out->train.values != NULL)
        measure_values(&out->train, mean, std);
    else if ((data->mean == NULL || data->std == NULL) && out->train.pixels != NULL)
        ct_images_measure(&out->train, mean, std);
    for (int c = 0; c < data->channels; c++) {
        out->mean[c] = data->mean != NULL ? data->mean[c] : mean[c];
        out->std[c] = data->std != NULL ? data->std[c] : std[c];
        if (!isfinite(out->mean[c]) || !isfinite(out->std[c]) || out->std[c] <= 0)
            return ct_fail(CT_INVAL,
                           "mean %g and deviation %g of channel %d; both must be finite, "
                           "the deviation above 0",
                           (double)out->mean[c], (double)out->std[c], c);
    }
    return CT_OK;
}

static ct_status copy_names(const ct_data *data, ct_dataset *out) {
    size_t n = 0;
    if (data->class_names == NULL) return CT_OK;
    for (int k = 0; k < data->n_classes; k++) {
        if (data->class_names[k] == NULL) return ct_fail(CT_INVAL, "class %d has no name", k);
        n += strlen(data->class_names[k]) + 1;
    }
    CT_TRY(ct_make(&out->class_names, n, "the names of the classes"));
    char *at = out->class_names;
    for (int k = 0; k < data->n_classes; k++) {
        size_t length = strlen(data->class_names[k]) + 1;
        memcpy(at, data->class_names[k], length);
        at += length;
    }
    return CT_OK;
}

ct_status ct_dataset_lend(const ct_data *data, bool may_lack_values, ct_dataset *out) {
    CT_SCOPED(ct_dataset) dataset = {.n_classes = data->n_classes, .source = "memory"};
    snprintf(dataset.name, sizeof dataset.name, "%s", data->name != NULL ? data->name : "memory");
    CT_TRY(check_shape(data));
    if (data->train.n == 0) return ct_fail(CT_INVAL, "there are no training samples");
    CT_TRY(lend_part(data, "training", &data->train, may_lack_values, &dataset.train));
    CT_TRY(lend_part(data, "test", &data->test, may_lack_values, &dataset.test));
    CT_TRY(choose_scale(data, &dataset));
    CT_TRY(copy_names(data, &dataset));
    ct_move(out, &dataset);
    return CT_OK;
}
