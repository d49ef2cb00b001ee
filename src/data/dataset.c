#include "data/dataset.h"

#include "data/dataset_internal.h"
#include "data/part.h"
#include "data/pictures.h"
#include "data/table.h"
#include "util/memory.h"
#include "util/registry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LARGE_IMAGE 96 /* pixels: larger pictures are for ResNet-18 */

/* What the paper trains with: model, epochs, lr, (lambda_m, lambda_d) at alpha = 0.1, at alpha =
 * 0.01, and on large graphs (-1: the same). */
static const ct_dataset_defaults
    lenet5 = {"lenet5", 50, 0.01, {{0.001, 0.001}, {0.01, 0.01}}, {-1, -1}},
    cifar10 = {"resnet20", 200, 0.1, {{0.01, 0.0}, {0.01, 0.01}}, {0.1, 0.1}},
    cifar100 = {"resnet20", 100, 0.1, {{0.1, 0.1}, {0.1, 0.1}}, {-1, -1}},
    imagenette = {"mobilenetv2", 100, 0.01, {{0.001, 0.001}, {1, 1}}, {-1, -1}},
    /* The paper says nothing more of ImageNet than its accuracies; pictures of one's own are taken
     * as if they were CIFAR-100, large ones as if they were ImageNet. */
    imagenet = {"resnet18", 90, 0.1, {{0.1, 0.1}, {0.1, 0.1}}, {-1, -1}},
    table = {"mlp", 50, 0.01, {{0.01, 0.01}, {0.01, 0.01}}, {-1, -1}},
    other = {"lenet5", 50, 0.01, {{0.01, 0.01}, {0.01, 0.01}}, {-1, -1}};

typedef struct set {
    ct_dataset_facts facts;
    ct_status (*open)(const ct_dataset_options *options, ct_dataset *out);
    bool (*probe)(const char *dir);
} set;

static const set sets[] = {
#define DATASET(id, name, probe, kind, defaults, place, text)                                      \
    {{name, text, CT_DATA_##kind, place, &defaults},                                               \
     ct_dataset_open_##id,                                                                         \
     ct_dataset_probe_##probe},
#include "data/dataset_list.h"
#undef DATASET
};
static const size_t n_sets = sizeof sets / sizeof sets[0];

void ct_dataset_each(ct_name_visit each, void *context) {
    for (size_t k = 0; k < n_sets; k++) each(context, sets[k].facts.name, sets[k].facts.text);
}

static const set *find(const char *name) {
    for (size_t k = 0; k < n_sets; k++)
        if (strcmp(sets[k].facts.name, name) == 0) return &sets[k];
    return NULL;
}

const ct_dataset_facts *ct_dataset_facts_of(const char *name) {
    const set *found = find(name);
    return found != NULL ? &found->facts : NULL;
}

const ct_dataset_defaults *ct_dataset_defaults_of(const char *name) {
    const set *found = find(name);
    return found != NULL ? found->facts.defaults : &other;
}

const char *ct_dataset_model(const ct_dataset_defaults *d, int image_size) {
    return image_size > LARGE_IMAGE ? imagenet.model : d->model;
}

const double *ct_dataset_lambdas(const ct_dataset_defaults *d, double alpha, bool is_large_graph) {
    if (is_large_graph && d->lambda_large[0] >= 0) return d->lambda_large;
    return d->lambda[alpha < sqrt(0.1 * 0.01)];
}

bool ct_dataset_probe_never(const char *dir) {
    (void)dir;
    return false;
}

ct_status ct_dataset_recognise(const ct_dataset_options *options, const char **name) {
    if (options->dir == NULL)
        return ct_fail(CT_INVAL, "say which directory holds the data with @data-dir DIR");
    char whole[64] = "";
    if (ct_part_looks_right(options->dir)) CT_TRY(ct_part_name(options->dir, whole));
    for (size_t k = 0; k < n_sets; k++) {
        const char *this = sets[k].facts.name;
        bool found = whole[0] != '\0' ? strcmp(whole, this) == 0 : sets[k].probe(options->dir);
        if (!found) continue;
        *name = this;
        return CT_OK;
    }
    return ct_fail(CT_IO,
                   "%s: no data that is known here: neither IDX, CIFAR, .npy or .csv files nor "
                   "folders of pictures; crosstalk list datasets",
                   options->dir);
}

ct_status ct_dataset_open(const char *name, const ct_dataset_options *options, ct_dataset *out) {
    if (strcmp(name, "auto") == 0) CT_TRY(ct_dataset_recognise(options, &name));
    const set *found = find(name);
    if (found == NULL) return ct_unknown_name("dataset", name, NULL, ct_dataset_each);
    if (options->dir != NULL && ct_part_looks_right(options->dir))
        return ct_part_open(options->dir, found->facts.name, options, out);
    CT_SCOPED(ct_dataset) dataset = {0};
    snprintf(dataset.name, sizeof dataset.name, "%s", found->facts.name);
    CT_TRY(found->open(options, &dataset));
    ct_move(out, &dataset);
    return CT_OK;
}

void ct_dataset_free(ct_dataset *dataset) {
    ct_pictures_free(&dataset->test_pictures);
    ct_pictures_free(&dataset->train_pictures);
    ct_images_free(&dataset->test);
    ct_images_free(&dataset->train);
    ct_free(dataset->class_names);
    ct_free(dataset->train_numbers);
    if (dataset->columns != NULL) ct_columns_free(dataset->columns);
    ct_free(dataset->columns);
    *dataset = (ct_dataset){0};
}

ct_status ct_images_create(size_t n, int channels, int height, int width, ct_images *out) {
    CT_SCOPED(ct_images)
    images = {.n = n, .channels = channels, .height = height, .width = width};
    CT_TRY(ct_make_block(&images.pixels, n, ct_image_bytes(&images), "the images"));
    CT_TRY(ct_make(&images.labels, n, "the labels"));
    ct_move(out, &images);
    return CT_OK;
}

void ct_images_free(ct_images *images) {
    if (!images->is_lent) {
        ct_free(images->labels);
        ct_free(images->pixels);
        ct_free(images->values);
    }
    *images = (ct_images){0};
}

ct_status ct_labels_check(const char *path, const int32_t *labels, size_t n, int n_classes) {
    for (size_t i = 0; i < n; i++)
        if (labels[i] < 0 || labels[i] >= n_classes)
            return ct_fail(CT_IO, "%s: label %d of sample %zu is not one of 0..%d", path,
                           (int)labels[i], i, n_classes - 1);
    return CT_OK;
}

ct_status ct_fields_check(const char *path, const ct_field *fields, size_t n) {
    for (const ct_field *f = fields; f < fields + n; f++)
        if (!(f->value >= f->lowest && f->value <= f->highest))
            return ct_fail(CT_IO, "%s: its header says that %s is %.10g; it must be %.10g to %.10g",
                           path, f->name, f->value, f->lowest, f->highest);
    return CT_OK;
}

const char *ct_dataset_class_name(const ct_dataset *dataset, int label) {
    if (dataset->class_names == NULL || label < 0 || label >= dataset->n_classes) return "";
    return dataset->class_names + ct_names_bytes(dataset->class_names, label);
}

void ct_dataset_scale(ct_dataset *dataset, const float mean[3], const float std[3]) {
    memcpy(dataset->mean, mean, 3 * sizeof *mean);
    memcpy(dataset->std, std, 3 * sizeof *std);
}

size_t ct_names_bytes(const char *names, int n_classes) {
    size_t n = 0;
    for (int k = 0; k < n_classes && names != NULL; k++) n += strlen(names + n) + 1;
    return n;
}

bool ct_names_are_right(const char *names, size_t n_bytes, uint32_t n_classes) {
    uint32_t n = 0;
    for (size_t k = 0; k < n_bytes; k++) n += names[k] == '\0';
    return n_bytes == 0 || (n == n_classes && names[n_bytes - 1] == '\0');
}

bool ct_numbers_are_right(const uint32_t *numbers, size_t n, size_t n_whole) {
    for (size_t i = 0; i < n; i++)
        if (numbers[i] >= n_whole || (i > 0 && numbers[i] <= numbers[i - 1])) return false;
    return true;
}
