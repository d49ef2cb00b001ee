/* What the readers of data sets share. */
#ifndef CT_DATA_DATASET_INTERNAL_H
#define CT_DATA_DATASET_INTERNAL_H

#include "data/dataset.h"
#include "util/file.h"
#include "util/rng.h"

/* One opener and one probe for each line of dataset_list.h. `out` is zeroed and has its name; what
 * an opener leaves in it when it fails is freed by the caller. A probe never fails: it looks. */
#define DATASET(id, name, probe, kind, defaults, place, text)                                      \
    ct_status ct_dataset_open_##id(const ct_dataset_options *options, ct_dataset *out);            \
    bool ct_dataset_probe_##probe(const char *dir);
#include "data/dataset_list.h"
#undef DATASET

/* A set that is made up (made_up.c). */
typedef struct ct_made_up {
    uint32_t stream; /* of CT_RNG_SYNTHETIC: one for each set */
    int channels, side, n_classes;
    size_t n_train, n_test; /* unless one says otherwise */
    void (*draw)(ct_rng *rng, int label, uint8_t *pixels);
} ct_made_up;
ct_status ct_made_up_open(const ct_made_up *set, const ct_dataset_options *options,
                          ct_dataset *out);

/* dir/name or dir/name.gz, whichever is there. If neither is, the message ends with `hint`: how to
 * get it. */
ct_status ct_data_find(const char *dir, const char *name, const char *hint, ct_path *out);
/* Finds it and reads it whole. */
ct_status ct_data_read(const char *dir, const char *name, const char *hint, ct_path *path,
                       ct_blob *out);
/* Is dir/name or dir/name.gz there? */
bool ct_data_exists(const char *dir, const char *name);

/* Is dir/name there, a plain file or a folder? */
bool ct_data_has(const char *dir, const char *name);
/* dir/subdir where `name` (or name.gz) lies there but not in dir itself; otherwise dir. */
ct_path ct_data_inner(const char *dir, const char *subdir, const char *name);
/* The last part of a path contains `word`. */
bool ct_path_suggests(const char *path, const char *word);

/* How files of images and files of labels are parsed (which may change the file's bytes). Images
 * make room for their labels. */
typedef struct ct_pair_format {
    ct_status (*images)(const char *path, ct_blob *file, ct_images *out);
    ct_status (*labels)(const char *path, ct_blob *file, ct_images *images);
} ct_pair_format;
/* NumPy's arrays (npy.c). */
ct_status ct_npy_images(const char *path, ct_blob *file, ct_images *out);
ct_status ct_npy_labels(const char *path, ct_blob *file, ct_images *images);
/* One part from names[0], the images, and names[1], the labels, which lie among the n_classes of
 * `dataset` unless that is 0. */
ct_status ct_pair_read(const char *dir, const char *const *names, const char *hint,
                       const ct_pair_format *format, const ct_dataset *dataset, ct_images *out);
/* Both parts are there: their shapes agree. Sets n_classes, if it is 0, and source. */
ct_status ct_pairs_check(const char *dir, ct_dataset *dataset);
/* The largest label + 1. */
int ct_images_classes(const ct_images *images);

/* Mean and standard deviation of every channel of images in memory. */
void ct_images_measure(const ct_images *images, float *mean, float *std);
/* Sums over their pixels, each counted `weight` times. */
void ct_images_sum(const ct_images *images, uint64_t weight, ct_pixel_sums *out);
/* A copy of the samples whose flag is `wanted`. */
ct_status ct_images_pick(const ct_images *all, const bool *flag, bool wanted, ct_images *out);
/* Moves a random share of every class (at least one sample of each that has two) of `all` to *test
 * and leaves the rest in *train. Takes `all`. */
ct_status ct_images_split(ct_images *all, int n_classes, double test_fraction, uint64_t seed,
                          ct_images *train, ct_images *test);
/* is_test[i] of samples with these labels, as ct_images_split draws them. */
ct_status ct_split_draw(const int32_t *labels, size_t n, int n_classes, double test_fraction,
                        uint64_t seed, bool *is_test);

/* A part made of pictures, which are taken: plain images if they are cut from the middle and fit
 * into memory, otherwise the pictures themselves for a loader. */
ct_status ct_part_of_pictures(ct_pictures *taken, ct_images *images, ct_pictures **pictures,
                              size_t *n_left_out);

/* Mean and deviation of the three channels of pictures. */
void ct_dataset_scale(ct_dataset *dataset, const float mean[3], const float std[3]);

/* Names of classes one after the other, each with its 0: their bytes; and whether so many bytes are
 * the names of n classes, or none at all. */
size_t ct_names_bytes(const char *names, int n_classes);
bool ct_names_are_right(const char *names, size_t n_bytes, uint32_t n_classes);
/* Numbers of samples of a part: ascending, below n_whole. */
bool ct_numbers_are_right(const uint32_t *numbers, size_t n, size_t n_whole);

/* A field of a file's header, and where it must lie; NaN lies nowhere. */
typedef struct ct_field {
    const char *name;
    double value, lowest, highest;
} ct_field;
/* CT_IO: the first one that does not, with file, value and range. A checksum tells damage, not an
 * adversary: what is not in range is refused whatever the sums say. */
ct_status ct_fields_check(const char *path, const ct_field *fields, size_t n);

/* Every label lies in 0 .. n_classes-1; `path` is where they came from. */
ct_status ct_labels_check(const char *path, const int32_t *labels, size_t n, int n_classes);

/* The directory asked for, or the set's usual one; if it has none, the user must say. */
ct_status ct_data_dir(const ct_dataset *dataset, const ct_dataset_options *options,
                      const char *hint, const char **out);

#endif
