/* Labelled images as stored (uint8), with what it takes to turn them into tensors. Small sets lie
 * in memory; pictures that are too many, or are cut out anew at every visit, are served by a
 * loader. A data set is one file (or a few lines in that of its format) and one line in
 * dataset_list.h. */
#ifndef CT_DATA_DATASET_H
#define CT_DATA_DATASET_H

#include "util/registry.h"

#define CT_MAX_CHANNELS 16
#define CT_MAX_CLASSES  65536

typedef struct ct_pictures ct_pictures; /* data/pictures.h */
struct ct_columns;                      /* data/table.h */

/* One part (train or test) of a data set. */
typedef struct ct_images {
    size_t n;
    int channels, height, width;
    uint8_t *pixels; /* [n][channels][height][width]; NULL: a loader makes them (loader.h), or: */
    float *values;   /* the same of any numbers: a program's (memory.c), or a table's (csv.c) */
    int32_t *labels; /* [n] 0 .. n_classes-1 */
    bool is_lent;    /* the arrays are someone else's: read only, and not freed */
} ct_images;

/* Pixels or values of one image; and its bytes, where it lies in memory. */
static inline size_t ct_image_values(const ct_images *images) {
    return (size_t)images->channels * (size_t)images->height * (size_t)images->width;
}
static inline size_t ct_image_bytes(const ct_images *images) {
    return ct_image_values(images) * (images->values != NULL ? sizeof(float) : 1);
}
/* Images from the i-th on, as bytes; NULL: a loader makes them. */
static inline const uint8_t *ct_image_at(const ct_images *images, size_t i) {
    const uint8_t *bytes =
        images->values != NULL ? (const uint8_t *)images->values : images->pixels;
    return bytes != NULL ? bytes + i * ct_image_bytes(images) : NULL;
}

/* Zeroed pixels and labels. */
ct_status ct_images_create(size_t n, int channels, int height, int width, ct_images *out);
void ct_images_free(ct_images *images);

/* Whole sums over the pixels of every channel: those of several sets add up exactly. */
typedef struct ct_pixel_sums {
    uint64_t n; /* pixels of a channel */
    uint64_t sum[CT_MAX_CHANNELS], squares[CT_MAX_CHANNELS];
} ct_pixel_sums;

typedef struct ct_dataset {
    char name[64];
    int n_classes;
    ct_images train, test;
    /* a tensor's value is (pixel / 255 - mean) / std per channel, or (value - mean) / std */
    float mean[CT_MAX_CHANNELS], std[CT_MAX_CHANNELS];
    bool is_measured; /* these are the training pixels' own, not the set's constants */
    int resize; /* pictures from files: their shorter side is made so many pixels, then the middle is
                 * cut out; 0: images are as they were stored */
    /* training-time augmentation of this set; 0 = none */
    int crop_padding; /* black border before a random crop back to height x width */
    bool flip;        /* random horizontal flip */
    char source[512]; /* where it came from, for the log: a directory or "built in" */
    /* what a loader makes the pixels of a part from; NULL: they are in memory already */
    ct_pictures *train_pictures, *test_pictures;
    size_t n_left_out; /* pictures that could not be read */
    char *class_names; /* n_classes strings one after the other, each with its 0; NULL: unknown */
    /* of a part (part.h): the numbers of its training samples among the n_whole of the whole set,
     * ascending; NULL: this is all of it */
    uint32_t *train_numbers;
    size_t n_whole;
    struct ct_columns *columns; /* of a table, whose rows are 1 x 1 x inputs; NULL: it is none */
    uint64_t content; /* of the files that pictures are decoded from; 0: the pixels are the data */
} ct_dataset;

typedef struct ct_dataset_options {
    const char *dir; /* NULL: where the system keeps this set, if it does */
    uint64_t seed;   /* for made-up sets */
    size_t n_train;  /* of made-up sets and folders of pictures; 0 = all there are */
    size_t n_test;
    bool coarse_labels;   /* cifar100: the 20 coarse classes */
    double test_fraction; /* of sets without a test part: this share of every class is held out */
    int image_size;       /* pixels a side of pictures; 0 = the set's own */
    int resize;          /* the pictures' shorter side before they are cut out; 0 = the set's own */
    bool only_test;      /* of folders of pictures: no training part, which need not be there */
    bool is_agents;      /* one agent's own: it may have a single class, and nothing to test on */
    bool augment;        /* pictures are cut out at random in training */
    bool strict;         /* a picture that cannot be read is an error, not left out */
    bool list_all;       /* name every picture that cannot be read, not only the first ones */
    int n_workers;       /* threads that decode; 0 = one per processor */
    size_t memory_bytes; /* pictures that need more are streamed; 0 = 1 GiB */
    const char *cache;   /* directory for decoded pictures; NULL: none */
    const char *label;   /* of tables: the column that is learnt; NULL: the usual ones */
    const char *ignored_columns; /* and those that are left out, with commas; NULL: none */
    /* those to encode with, e.g. a model's; NULL: the table's own, and with is_agents it is counted
     * but not encoded, because all must agree first */
    const struct ct_columns *columns;
} ct_dataset_options;

/* Lying in `options->dir`, as far as names and the first bytes tell; CT_IO if nothing known does.
 */
ct_status ct_dataset_recognise(const ct_dataset_options *options, const char **name);

/* "auto": what ct_dataset_recognise says. Unknown name: CT_INVAL with the known ones. Missing,
 * truncated, empty or corrupt files, labels out of range: CT_IO naming the file and what is wrong.
 */
ct_status ct_dataset_open(const char *name, const ct_dataset_options *options, ct_dataset *out);
void ct_dataset_free(ct_dataset *dataset);

struct ct_data; /* crosstalk/run.h */
/* A data set of arrays that stay where they are and must outlive it. CT_INVAL: shapes, labels or
 * values that cannot be. may_lack_values: labels alone will do. */
ct_status ct_dataset_lend(const struct ct_data *data, bool may_lack_values, ct_dataset *out);

/* 64 bits over what it holds: classes, shape, and labels and pixels of both parts in order; of
 * pictures, names, labels and content of their files (or their checksums in a pack), so that it is
 * the same wherever and however they are decoded. Ask before samples are left out (part.h): it is
 * that of what is there. */
uint64_t ct_dataset_fingerprint(const ct_dataset *dataset);
/* The same of the test part alone; 0: it is decoded from files. */
uint64_t ct_dataset_test_sum(const ct_dataset *dataset);

/* Name of a class, or "" if it has none. */
const char *ct_dataset_class_name(const ct_dataset *dataset, int label);

/* What a data set is trained with unless one says otherwise. */
typedef struct ct_dataset_defaults {
    const char *model; /* of pictures of the usual size: see ct_dataset_model */
    int epochs;
    double lr;
    double lambda[2][2];    /* (lambda_m, lambda_d) at alpha = 0.1, at alpha = 0.01 */
    double lambda_large[2]; /* on large graphs, whatever alpha is; negative: as above */
} ct_dataset_defaults;

typedef enum ct_dataset_kind {
    CT_DATA_MADE_UP,
    CT_DATA_PUBLISHED,
    CT_DATA_OWN_ARRAYS,   /* one's own, from here on: whatever lies in the folder */
    CT_DATA_OWN_PICTURES, /* which take time to decode */
} ct_dataset_kind;

/* What is known about a set before it is opened. */
typedef struct ct_dataset_facts {
    const char *name, *text;
    ct_dataset_kind kind;
    const char *place; /* where the system keeps it; NULL: one must say */
    const ct_dataset_defaults *defaults;
} ct_dataset_facts;

/* NULL: no such set. */
const ct_dataset_facts *ct_dataset_facts_of(const char *name);
/* Of a set without defaults of its own (and of an unknown name), those of all others. */
const ct_dataset_defaults *ct_dataset_defaults_of(const char *name);
/* The default model for pictures of image_size pixels a side; 0: the set's own size. */
const char *ct_dataset_model(const ct_dataset_defaults *defaults, int image_size);
/* The default (lambda_m, lambda_d); between the paper's two skews those of the nearer one, in orders
 * of magnitude. */
const double *ct_dataset_lambdas(const ct_dataset_defaults *defaults, double alpha,
                                 bool is_large_graph);

void ct_dataset_each(ct_name_visit each, void *context);

#endif
