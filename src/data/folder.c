/* Folders of pictures: train/<class>/..., and val/<class>/... or test/<class>/...; or <class>/...
 * alone, of which a test part is held out. Imagenette and ImageNet are such folders. */
#include "data/dataset_internal.h"

#include "data/pictures_internal.h"
#include "util/hash.h"
#include "util/memory.h"

#include <stdio.h>
#include <string.h>

typedef struct folder_kind {
    const char *name; /* of the set */
    int size;         /* pixels a side of the tensors */
    double margin;    /* the shorter side is made margin * size pixels first */
    bool is_known;    /* has ImageNet's mean and deviation; others are measured */
} folder_kind;

static const folder_kind kinds[] = {
    {"folder", 32, 1, false},
    {"imagenette", 32, 1, true}, /* as the authors' code has it */
    {"imagenet", 224, 256.0 / 224.0, true},
};

static const float imagenet_mean[3] = {0.485f, 0.456f, 0.406f};
static const float imagenet_std[3] = {0.229f, 0.224f, 0.225f};

/* The test part's folder in DIR; NULL: none. */
static const char *test_name(const char *dir) {
    return ct_data_has(dir, "val") ? "val" : ct_data_has(dir, "test") ? "test" : NULL;
}

static ct_status list_part(const char *dir, const char *part, const ct_listing *classes,
                           ct_listing *out) {
    ct_path path = ct_path_in(dir, part);
    return ct_listing_read(path.text, classes, out);
}

/* Holds a share of every class out of `train`. */
static ct_status hold_out(const ct_dataset_options *options, ct_listing *train, ct_listing *test) {
    CT_SCOPED_BLOCK(bool) is_test = NULL;
    CT_TRY(ct_make(&is_test, train->n, "samples to be held out"));
    CT_TRY(ct_split_draw(train->labels, train->n, train->n_classes, options->test_fraction,
                         options->seed, is_test));
    CT_TRY(ct_listing_copy(train, test));
    ct_listing_keep(test, is_test);
    for (size_t i = 0; i < train->n; i++) is_test[i] = !is_test[i];
    ct_listing_keep(train, is_test);
    if (test->n > 0 || options->is_agents) return CT_OK;
    return ct_fail(CT_IO, "%s: no class has two pictures: nothing can be held out", train->root);
}

/* The part to test on alone: val/ or test/; without these all that is there, or what training holds
 * out of it. */
static ct_status list_test(const char *dir, const ct_dataset_options *options, ct_listing *test) {
    CT_SCOPED(ct_listing) train = {0};
    if (!ct_dir_exists(dir)) return ct_fail(CT_IO, "%s: no such directory", dir);
    const char *name = test_name(dir);
    bool has_train = ct_data_has(dir, "train");
    bool is_part =
        name != NULL && (has_train || ct_listing_looks_right(ct_path_in(dir, name).text));
    if (is_part || (!has_train && options->test_fraction == 0)) {
        CT_TRY(list_part(dir, is_part ? name : ".", NULL, test));
    } else {
        CT_TRY(list_part(dir, has_train ? "train" : ".", NULL, &train));
        CT_TRY(hold_out(options, &train, test));
    }
    return ct_listing_shorten(test, options->n_test);
}

static ct_status list_parts(const char *dir, const ct_dataset_options *options, ct_listing *train,
                            ct_listing *test) {
    if (!ct_dir_exists(dir)) return ct_fail(CT_IO, "%s: no such directory", dir);
    bool has_train = ct_data_has(dir, "train");
    const char *name = has_train ? test_name(dir) : NULL;
    CT_TRY(list_part(dir, has_train ? "train" : ".", NULL, train));
    if (train->n_classes < 2 && !options->is_agents)
        return ct_fail(CT_IO,
                       "%s: one class alone (%s); there must be a folder for each of two or "
                       "more",
                       train->root, train->class_names);
    bool may_lack_test = options->is_agents && options->test_fraction == 0;
    if (name != NULL)
        CT_TRY(list_part(dir, name, train, test));
    else if (!may_lack_test)
        CT_TRY(hold_out(options, train, test));
    CT_TRY(ct_listing_shorten(train, options->n_train));
    return ct_listing_shorten(test, options->n_test);
}

ct_pictures_spec ct_pictures_spec_for(const ct_dataset_options *options, int side, int size) {
    return (ct_pictures_spec){.side = side,
                              .size = size,
                              .random = options->augment,
                              .strict = options->strict,
                              .list_all = options->list_all,
                              .n_workers = options->n_workers,
                              .memory_bytes = options->memory_bytes > 0 ? options->memory_bytes
                                                                        : (size_t)1 << 30};
}

ct_status ct_part_of_pictures(ct_pictures *p, ct_images *images, ct_pictures **pictures,
                              size_t *n_left_out) {
    CT_SCOPED_HANDLE(ct_pictures) taken = p;
    const ct_pictures_spec *spec = &p->spec;
    size_t n = p->files.n;
    bool fits = 3.0 * spec->size * spec->size * (double)n <= (double)spec->memory_bytes;
    *n_left_out += p->n_listed - n;
    if (!spec->random && fits) return ct_pictures_images(p, images);
    /* a loader will serve them: labels alone */
    ct_move(pictures, &taken);
    *images = (ct_images){.n = n, .channels = 3, .height = spec->size, .width = spec->size};
    return ct_make_copy(&images->labels, p->files.labels, n, "the labels");
}

static ct_status open_part(const ct_pictures_spec *spec, ct_listing *files, ct_images *images,
                           ct_pictures **pictures, size_t *n_left_out) {
    ct_pictures *p = NULL;
    CT_TRY(ct_pictures_create(spec, files, &p));
    return ct_part_of_pictures(p, images, pictures, n_left_out);
}

/* "mean and deviation of <hash> at <size>: m m m s s s", kept beside the data or in the cache. */
/* The figures that were kept, if they begin with `head`. */
static bool read_figures(const char *path, const char *head, float *f) {
    CT_SCOPED(ct_blob) file = {0};
    size_t n = strlen(head);
    return CT_CATCH(NULL, ct_file_read(path, 4096, &file)) == CT_OK &&
           strncmp((char *)file.bytes, head, n) == 0 &&
           sscanf((char *)file.bytes + n, "%f %f %f %f %f %f", &f[0], &f[1], &f[2], &f[3], &f[4],
                  &f[5]) == 6;
}

static ct_status measure(const ct_dataset_options *options, const char *dir, uint64_t hash,
                         ct_dataset *out) {
    ct_path path =
        ct_path_in(options->cache != NULL ? options->cache : dir, ".crosstalk-mean-deviation");
    char head[96];
    float f[6];
    snprintf(head, sizeof head, "mean and deviation of %016llx at %d: ", (unsigned long long)hash,
             out->train.width);
    if (!read_figures(path.text, head, f)) {
        if (out->train_pictures != NULL)
            CT_TRY(ct_pictures_measure(out->train_pictures, f, f + 3));
        else
            ct_images_measure(&out->train, f, f + 3);
        CT_SCOPED(ct_text) text = {0};
        ct_text_add(&text, "%s%.9g %.9g %.9g %.9g %.9g %.9g\n", head, (double)f[0], (double)f[1],
                    (double)f[2], (double)f[3], (double)f[4], (double)f[5]);
        CT_TRY(ct_text_status(&text));
        /* a place that cannot be written to is fine */
        (void)CT_CATCH(NULL, ct_file_replace(path.text, text.chars, text.n));
    }
    for (int c = 3; c < 6; c++)
        if (!(f[c] > 0)) f[c] = 1;
    ct_dataset_scale(out, f, f + 3);
    out->is_measured = true;
    return CT_OK;
}

static ct_status keep_content(const ct_listing *train, const ct_listing *test, int n_workers,
                              uint64_t *out) {
    uint64_t content[2];
    CT_TRY(ct_listing_content(train, n_workers, &content[0]));
    CT_TRY(ct_listing_content(test, n_workers, &content[1]));
    *out = ct_checksum(CT_HASH_START, content, sizeof content);
    return CT_OK;
}

/* No training part: classes are those of the pictures, and nothing is measured. */
static ct_status open_test(const char *dir, const ct_dataset_options *options,
                           const ct_pictures_spec *spec, ct_dataset *out) {
    CT_SCOPED(ct_listing) test = {0};
    CT_TRY(list_test(dir, options, &test));
    CT_TRY(ct_listing_content(&test, options->n_workers, &out->content));
    out->n_classes = test.n_classes;
    out->class_names = ct_take(&test.class_names);
    CT_TRY(open_part(spec, &test, &out->test, &out->test_pictures, &out->n_left_out));
    out->train = (ct_images){.channels = 3, .height = spec->size, .width = spec->size};
    return CT_OK;
}

ct_status ct_dataset_open_folder(const ct_dataset_options *options, ct_dataset *out) {
    const folder_kind *kind = kinds;
    const char *dir;
    CT_SCOPED(ct_listing) train = {0};
    CT_SCOPED(ct_listing) test = {0};
    while (strcmp(kind->name, out->name) != 0) kind++;
    CT_TRY(ct_data_dir(out, options,
                       "give the directory with train/<class>/ and val/<class>/ with @data-dir DIR",
                       &dir));
    int size = options->image_size > 0 ? options->image_size : kind->size;
    int side = options->resize > 0 ? options->resize : (int)(kind->margin * size + 0.5);
    ct_pictures_spec spec = ct_pictures_spec_for(options, side, size);
    spec.cache = options->cache;
    out->resize = spec.side;
    snprintf(out->source, sizeof out->source, "%s", dir);
    if (options->only_test) {
        spec.random = false;
        return open_test(dir, options, &spec, out);
    }
    CT_TRY(list_parts(dir, options, &train, &test));
    uint64_t hash = ct_listing_hash(&train);
    CT_TRY(keep_content(&train, &test, options->n_workers, &out->content));
    out->n_classes = train.n_classes;
    out->class_names = ct_take(&train.class_names);
    CT_TRY(open_part(&spec, &train, &out->train, &out->train_pictures, &out->n_left_out));
    spec.random = false;
    out->test = (ct_images){.channels = 3, .height = size, .width = size};
    if (test.n > 0)
        CT_TRY(open_part(&spec, &test, &out->test, &out->test_pictures, &out->n_left_out));
    if (!kind->is_known) return measure(options, dir, hash, out);
    ct_dataset_scale(out, imagenet_mean, imagenet_std);
    return CT_OK;
}

bool ct_dataset_probe_folder(const char *dir) {
    ct_path train = ct_path_in(dir, "train");
    return ct_listing_looks_right(train.text) || ct_listing_looks_right(dir);
}

/* Its ten classes: tench, English springer, cassette player, ... */
bool ct_dataset_probe_imagenette(const char *dir) {
    static const char *const names[] = {"n01440764", "n02102040", "n02979186", "n03000684",
                                        "n03028079", "n03394916", "n03417042", "n03425413",
                                        "n03445777", "n03888257"};
    ct_path train = ct_path_in(dir, "train");
    bool found = ct_dataset_probe_folder(dir);
    for (size_t k = 0; k < sizeof names / sizeof *names && found; k++)
        found = ct_data_has(train.text, names[k]);
    /* ImageNet has these and 990 others, of which this is the first. */
    return found && !ct_data_has(train.text, "n01443537");
}

bool ct_dataset_probe_imagenet(const char *dir) {
    ct_path train = ct_path_in(dir, "train");
    return ct_dataset_probe_folder(dir) && ct_data_has(train.text, "n01440764") &&
           ct_data_has(train.text, "n01443537") && ct_data_has(train.text, "n15075141");
}
