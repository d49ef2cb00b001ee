/* Data sets: every format read back from files written here, and refused when they are damaged. */
#include "test.h"

#include "data/dataset.h"
#include "util/file.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* A directory of its own for each test, and a path in it. */
static char scratch[64];
static char path_in_scratch[512];

static void scratch_open(void) {
    snprintf(scratch, sizeof scratch, "/tmp/crosstalk-data-XXXXXX");
    if (mkdtemp(scratch) == NULL) perror(scratch);
}

/* Removes the files in a directory, and the directory itself. */
static void remove_dir(const char *path) {
    DIR *dir = opendir(path);
    if (dir == NULL) return;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char name[1024];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.') unlink(name);
    }
    closedir(dir);
    rmdir(path);
}

static const char *in_scratch(const char *name) {
    snprintf(path_in_scratch, sizeof path_in_scratch, "%s/%s", scratch, name);
    return path_in_scratch;
}

static void write_plain(const char *name, const uint8_t *bytes, size_t n) {
    FILE *f = fopen(in_scratch(name), "wb");
    if (f == NULL || fwrite(bytes, 1, n, f) != n) perror(name);
    if (f != NULL) fclose(f);
}

static void write_gz(const char *name, const uint8_t *bytes, size_t n) {
    gzFile f = gzopen(in_scratch(name), "wb");
    if (f == NULL || gzwrite(f, bytes, (unsigned)n) != (int)n) perror(name);
    if (f != NULL) gzclose(f);
}

typedef void (*write_file)(const char *name, const uint8_t *bytes, size_t n);

static ct_status open_set(const char *name, ct_dataset *out) {
    ct_dataset_options options = {.dir = scratch};
    return ct_dataset_open(name, &options, out);
}

/* IDX: 12 training and 5 test images of 3x4 pixels */

enum { N_TRAIN = 12, N_TEST = 5, HEIGHT = 3, WIDTH = 4, N_IMAGE = HEIGHT * WIDTH };

typedef struct idx_file {
    uint8_t bytes[16 + N_TRAIN * N_IMAGE];
    size_t n;
} idx_file;

static void put_u32(idx_file *f, uint32_t value) {
    for (int k = 3; k >= 0; k--) f->bytes[f->n++] = (uint8_t)(value >> 8 * k);
}

static idx_file idx_images(uint32_t n) {
    idx_file f = {.n = 0};
    put_u32(&f, 0x803);
    put_u32(&f, n);
    put_u32(&f, HEIGHT);
    put_u32(&f, WIDTH);
    for (uint32_t k = 0; k < n * N_IMAGE; k++) f.bytes[f.n++] = (uint8_t)(7 * k + n);
    return f;
}

static idx_file idx_labels(uint32_t n) {
    idx_file f = {.n = 0};
    put_u32(&f, 0x801);
    put_u32(&f, n);
    for (uint32_t k = 0; k < n; k++) f.bytes[f.n++] = (uint8_t)(k % 10);
    return f;
}

static void write_idx_set(write_file write, const char *ending) {
    idx_file files[] = {idx_images(N_TRAIN), idx_labels(N_TRAIN), idx_images(N_TEST),
                        idx_labels(N_TEST)};
    const char *names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    for (int k = 0; k < 4; k++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", names[k], ending);
        write(name, files[k].bytes, files[k].n);
    }
}

static void check_idx_set(const ct_dataset *d) {
    idx_file images = idx_images(N_TRAIN);
    REQUIRE(d->train.n == N_TRAIN && d->test.n == N_TEST);
    CHECK(d->train.channels == 1 && d->train.height == HEIGHT && d->train.width == WIDTH);
    CHECK(memcmp(d->train.pixels, images.bytes + 16, N_TRAIN * N_IMAGE) == 0);
    for (int i = 0; i < N_TRAIN; i++) CHECK(d->train.labels[i] == i % 10);
    CHECK(d->n_classes == 10 && d->mean[0] == 0.5f && d->std[0] == 0.5f);
    CHECK(d->crop_padding == 0 && !d->flip);
    CHECK(strcmp(d->source, scratch) == 0);
}

static void idx_files_read_back_what_was_written(void) {
    ct_dataset d = {0};
    scratch_open();
    write_idx_set(write_plain, "");
    CHECK_OK(open_set("idx", &d));
    check_idx_set(&d);
    CHECK(strcmp(d.name, "idx") == 0);
    ct_dataset_free(&d);
    CHECK(d.train.pixels == NULL);
    ct_dataset_free(&d);
    CHECK_OK(open_set("mnist", &d));
    CHECK(strcmp(d.name, "mnist") == 0);
    ct_dataset_free(&d);
    remove_dir(scratch);
}

static void packed_idx_files_read_the_same(void) {
    ct_dataset d = {0};
    scratch_open();
    write_idx_set(write_gz, ".gz");
    CHECK_OK(open_set("fashion-mnist", &d));
    check_idx_set(&d);
    ct_dataset_free(&d);
    remove_dir(scratch);
}

/* The set is fine but for one file, which must be refused with these words and its name. */
static void refuse(const char *set, const char *name, const uint8_t *bytes, size_t n,
                   const char *words) {
    ct_dataset d = {0};
    write_plain(name, bytes, n);
    CHECK_FAILS(open_set(set, &d), CT_IO, words);
    CHECK(d.train.pixels == NULL);
    open_set(set, &d);
    CHECK(strstr(ct_message(), name) != NULL);
    ct_clear_message();
}

static void an_idx_file_cut_anywhere_is_refused(void) {
    idx_file images = idx_images(N_TEST), labels = idx_labels(N_TRAIN);
    scratch_open();
    write_idx_set(write_plain, "");
    for (size_t n = 0; n < images.n; n++)
        refuse("idx", "t10k-images-idx3-ubyte", images.bytes, n, n < 16 ? "cut short" : "promises");
    write_plain("t10k-images-idx3-ubyte", images.bytes, images.n);
    for (size_t n = 0; n < labels.n; n++)
        refuse("idx", "train-labels-idx1-ubyte", labels.bytes, n, n < 8 ? "cut short" : "promises");
    remove_dir(scratch);
}

static void a_cut_gzip_file_is_refused(void) {
    ct_dataset d = {0};
    scratch_open();
    write_idx_set(write_gz, ".gz");
    struct stat info;
    const char *path = in_scratch("train-images-idx3-ubyte.gz");
    REQUIRE(stat(path, &info) == 0);
    for (off_t n = info.st_size - 1; n >= 2; n--) {
        REQUIRE(truncate(path, n) == 0);
        CHECK_FAILS(open_set("idx", &d), CT_IO, "train-images-idx3-ubyte.gz");
    }
    remove_dir(scratch);
}

static void a_wrong_idx_header_is_refused(void) {
    const char *name = "train-images-idx3-ubyte";
    scratch_open();
    write_idx_set(write_plain, "");
    for (int k = 0; k < 4; k++) {
        idx_file f = idx_images(N_TRAIN);
        f.bytes[k] ^= 0x10;
        refuse("idx", name, f.bytes, f.n, "not 0x00000803");
    }
    for (int k = 1; k < 4; k++) {
        idx_file f = idx_images(N_TRAIN);
        memset(f.bytes + 4 * k, 0, 4);
        refuse("idx", name, f.bytes, f.n, "empty");
        memset(f.bytes + 4 * k, 0xff, 4);
        refuse("idx", name, f.bytes, f.n, k == 1 ? "promises" : "at most 65535");
    }
    idx_file longer = idx_images(N_TRAIN);
    longer.bytes[7]--;
    refuse("idx", name, longer.bytes, longer.n, "promises");
    remove_dir(scratch);
}

static void labels_must_match_the_images(void) {
    scratch_open();
    write_idx_set(write_plain, "");
    idx_file fewer = idx_labels(N_TRAIN - 1);
    refuse("idx", "train-labels-idx1-ubyte", fewer.bytes, fewer.n, "11 labels for 12 images");
    idx_file odd = idx_labels(N_TRAIN);
    odd.bytes[8 + 5] = 10;
    refuse("fashion-mnist", "train-labels-idx1-ubyte", odd.bytes, odd.n,
           "label 10 of sample 5 is not one of 0..9");
    ct_dataset d = {0};
    CHECK_OK(open_set("idx", &d)); /* which takes the classes from the labels */
    CHECK(d.n_classes == 11);
    ct_dataset_free(&d);
    remove_dir(scratch);
}

static void training_and_test_images_have_one_size(void) {
    scratch_open();
    write_idx_set(write_plain, "");
    idx_file f = idx_images(N_TEST);
    f.bytes[11] = WIDTH;
    f.bytes[15] = HEIGHT;
    write_plain("t10k-images-idx3-ubyte", f.bytes, f.n);
    ct_dataset d = {0};
    CHECK_FAILS(open_set("idx", &d), CT_IO, "training images are 1x3x4 but test images 1x4x3");
    remove_dir(scratch);
}

static void a_set_of_one_label_has_two_classes(void) {
    scratch_open();
    write_idx_set(write_plain, "");
    idx_file train = idx_labels(N_TRAIN), test = idx_labels(N_TEST);
    memset(train.bytes + 8, 0, N_TRAIN);
    memset(test.bytes + 8, 0, N_TEST);
    write_plain("train-labels-idx1-ubyte", train.bytes, train.n);
    write_plain("t10k-labels-idx1-ubyte", test.bytes, test.n);
    ct_dataset d = {0};
    CHECK_OK(open_set("idx", &d));
    CHECK(d.n_classes == 2);
    ct_dataset_free(&d);
    remove_dir(scratch);
}

static void an_unknown_name_is_refused_with_the_known_ones(void) {
    ct_dataset d = {0};
    CHECK_FAILS(open_set("fashion", &d), CT_INVAL, "no --dataset 'fashion'");
    CHECK_FAILS(open_set("fashion", &d), CT_INVAL,
                "shapes, noise, noise100, fashion-mnist, mnist, idx, cifar10");
}

static void missing_files_say_how_to_get_them(void) {
    ct_dataset d = {0};
    ct_dataset_options nowhere = {.dir = "/nonexistent"}, unsaid = {0};
    CHECK_FAILS(ct_dataset_open("fashion-mnist", &nowhere, &d), CT_IO,
                "/nonexistent: no such directory; apt install dataset-fashion-mnist or --data-dir");
    CHECK_FAILS(ct_dataset_open("idx", &unsaid, &d), CT_INVAL, "--data-dir DIR");
    CHECK_FAILS(ct_dataset_open("cifar10", &unsaid, &d), CT_INVAL, "--data-dir DIR");
    scratch_open();
    CHECK_FAILS(open_set("fashion-mnist", &d), CT_IO, "neither train-images-idx3-ubyte nor");
    CHECK_FAILS(open_set("cifar10", &d), CT_IO, "neither data_batch_1.bin nor");
    CHECK_FAILS(open_set("cifar100", &d), CT_IO, "neither train.bin nor");
    remove_dir(scratch);
}

static void count_name(void *context, const char *name, const char *text) {
    CHECK(name[0] != '\0' && text[0] != '\0');
    ++*(int *)context;
}

static void every_set_has_a_name_and_a_line_of_help(void) {
    int n = 0;
    ct_dataset_each(count_name, &n);
    CHECK(n > 0);
}

static void count_classes(const ct_images *images, size_t *count) {
    for (int c = 0; c < 10; c++) count[c] = 0;
    for (size_t i = 0; i < images->n; i++) count[images->labels[i]]++;
}

static uint32_t crc_of(const ct_images *images) {
    size_t image = (size_t)images->channels * (size_t)images->height * (size_t)images->width;
    return ct_crc32(0, images->pixels, images->n * image);
}

/* The paper's tables, and what src/study asks of a set. */
static void sets_know_what_they_are_trained_with(void) {
    const ct_dataset_defaults *cifar = ct_dataset_defaults_of("cifar10");
    CHECK(strcmp(cifar->model, "resnet20") == 0 && cifar->epochs == 200 && cifar->lr == 0.1);
    CHECK(ct_dataset_lambdas(cifar, 0.1, false)[1] == 0.0);
    CHECK(ct_dataset_lambdas(cifar, 0.04, false)[1] == 0.0);
    CHECK(ct_dataset_lambdas(cifar, 0.03, false)[1] == 0.01);
    CHECK(ct_dataset_lambdas(cifar, 0.1, true)[0] == 0.1);
    CHECK(ct_dataset_lambdas(ct_dataset_defaults_of("imagenette"), 0.01, true)[0] == 1);
    CHECK(strcmp(ct_dataset_model(cifar, 0), "resnet20") == 0);
    CHECK(strcmp(ct_dataset_model(cifar, 96), "resnet20") == 0);
    CHECK(strcmp(ct_dataset_model(cifar, 97), "resnet18") == 0);
    CHECK(ct_dataset_defaults_of("npy") == ct_dataset_defaults_of("no such set"));
    CHECK(ct_dataset_facts_of("no such set") == NULL);
    CHECK(ct_dataset_facts_of("fashion-mnist")->place != NULL);
    CHECK(ct_dataset_facts_of("mnist")->place == NULL);
    CHECK(ct_dataset_facts_of("idx")->kind == CT_DATA_OWN_ARRAYS);
    CHECK(ct_dataset_facts_of("pack")->kind == CT_DATA_OWN_PICTURES);
    CHECK(ct_dataset_facts_of("cifar10")->kind == CT_DATA_PUBLISHED);
}

static void swap_samples(ct_images *images, size_t i, size_t j) {
    size_t n = ct_image_bytes(images);
    for (size_t k = 0; k < n; k++) {
        uint8_t pixel = images->pixels[i * n + k];
        images->pixels[i * n + k] = images->pixels[j * n + k];
        images->pixels[j * n + k] = pixel;
    }
    int32_t label = images->labels[i];
    images->labels[i] = images->labels[j];
    images->labels[j] = label;
}

static void a_fingerprint_changes_with_every_pixel_label_and_order(void) {
    ct_dataset d = {0}, again = {0};
    ct_dataset_options options = {.seed = 1, .n_train = 40, .n_test = 20};
    REQUIRE_OK(ct_dataset_open("shapes", &options, &d));
    REQUIRE_OK(ct_dataset_open("shapes", &options, &again));
    uint64_t whole = ct_dataset_fingerprint(&d);
    CHECK(whole == ct_dataset_fingerprint(&again));
    for (int part = 0; part < 2; part++) {
        ct_images *images = part == 0 ? &d.train : &d.test;
        for (size_t k = 0; k < images->n * ct_image_bytes(images); k += 7) {
            images->pixels[k] ^= 1;
            CHECK(ct_dataset_fingerprint(&d) != whole);
            images->pixels[k] ^= 1;
        }
        for (size_t i = 0; i < images->n; i++) {
            images->labels[i]++;
            CHECK(ct_dataset_fingerprint(&d) != whole);
            images->labels[i]--;
        }
        for (size_t i = 1; i < images->n; i++) { /* whole samples, even of one class */
            swap_samples(images, 0, i);
            CHECK(ct_dataset_fingerprint(&d) != whole);
            swap_samples(images, 0, i);
        }
    }
    d.train.height = 14, d.train.width = 56; /* the same bytes in another shape */
    CHECK(ct_dataset_fingerprint(&d) != whole);
    d.train.height = d.train.width = 28;
    CHECK(ct_dataset_fingerprint(&d) == whole);
    ct_dataset_free(&again);
    ct_dataset_free(&d);
}

static void fashion_mnist_is_what_its_authors_published(void) {
    ct_dataset d = {0};
    ct_dataset_options options = {0};
    if (!ct_dir_exists("/usr/share/datasets/fashion-mnist"))
        SKIP("package dataset-fashion-mnist is not installed");
    REQUIRE_OK(ct_dataset_open("fashion-mnist", &options, &d));
    CHECK(d.train.n == 60000 && d.test.n == 10000 && d.n_classes == 10);
    CHECK(d.train.channels == 1 && d.train.height == 28 && d.train.width == 28);
    size_t train[10], test[10];
    count_classes(&d.train, train);
    count_classes(&d.test, test);
    for (int c = 0; c < 10; c++) CHECK(train[c] == 6000 && test[c] == 1000);
    CHECK(crc_of(&d.train) == 0xae65dccdu); /* of the unpacked files without their headers */
    CHECK(crc_of(&d.test) == 0x12728439u);
    CHECK(d.train.labels[0] == 9 && d.test.labels[0] == 9);
    ct_dataset_free(&d);
}

static void shapes_are_the_same_for_the_same_seed_everywhere(void) {
    ct_dataset a = {0}, b = {0};
    ct_dataset_options options = {.seed = 1, .n_train = 300, .n_test = 100};
    REQUIRE_OK(ct_dataset_open("shapes", &options, &a));
    REQUIRE_OK(ct_dataset_open("shapes", &options, &b));
    CHECK(a.train.n == 300 && a.test.n == 100);
    CHECK(crc_of(&a.train) == crc_of(&b.train) && crc_of(&a.test) == crc_of(&b.test));
    CHECK(crc_of(&a.train) == 0xf71ac408u); /* gcc 12 and clang 14, x86-64, -O0 to -O3 */
    CHECK(crc_of(&a.test) == 0x2e751438u);
    CHECK(memcmp(a.train.pixels, a.test.pixels, (size_t)28 * 28) != 0);
    ct_dataset_free(&b);
    options.seed = 2;
    REQUIRE_OK(ct_dataset_open("shapes", &options, &b));
    CHECK(crc_of(&a.train) != crc_of(&b.train));
    ct_dataset_free(&b);
    ct_dataset_free(&a);
}

static void shapes_are_ten_balanced_classes(void) {
    ct_dataset d = {0};
    ct_dataset_options options = {.seed = 3};
    REQUIRE_OK(ct_dataset_open("shapes", &options, &d));
    CHECK(d.train.n == 12000 && d.test.n == 2000 && d.n_classes == 10);
    CHECK(d.train.channels == 1 && d.train.height == 28 && d.train.width == 28);
    CHECK(d.mean[0] == 0.5f && d.std[0] == 0.5f && strcmp(d.source, "built in") == 0);
    size_t train[10], test[10];
    count_classes(&d.train, train);
    count_classes(&d.test, test);
    for (int c = 0; c < 10; c++) CHECK(train[c] == 1200 && test[c] == 200);
    ct_dataset_free(&d);
}

static void fewer_shapes_are_the_first_of_more(void) {
    ct_dataset few = {0}, more = {0};
    ct_dataset_options options = {.seed = 5, .n_train = 7, .n_test = 1};
    REQUIRE_OK(ct_dataset_open("shapes", &options, &few));
    options.n_train = 40;
    REQUIRE_OK(ct_dataset_open("shapes", &options, &more));
    CHECK(memcmp(few.train.pixels, more.train.pixels, (size_t)7 * 28 * 28) == 0);
    ct_dataset_free(&more);
    ct_dataset_free(&few);
}

/* The mean picture of each class, from which the nearest one is guessed: far better than chance,
 * far from right. */
static void shapes_can_be_learnt_but_not_by_averages(void) {
    static double mean[10][28 * 28];
    ct_dataset d = {0};
    ct_dataset_options options = {.seed = 1, .n_train = 2000, .n_test = 500};
    REQUIRE_OK(ct_dataset_open("shapes", &options, &d));
    for (size_t i = 0; i < d.train.n; i++)
        for (int k = 0; k < 28 * 28; k++)
            mean[d.train.labels[i]][k] += d.train.pixels[i * 28 * 28 + (size_t)k] / 200.0;
    int n_right = 0;
    for (size_t i = 0; i < d.test.n; i++) {
        double nearest = INFINITY;
        int guess = 0;
        for (int c = 0; c < 10; c++) {
            double distance = 0;
            for (int k = 0; k < 28 * 28; k++) {
                double x = d.test.pixels[i * 28 * 28 + (size_t)k] - mean[c][k];
                distance += x * x;
            }
            if (distance < nearest) guess = c;
            if (distance < nearest) nearest = distance;
        }
        n_right += guess == d.test.labels[i];
    }
    CHECK(n_right > 150 && n_right < 400);
    ct_dataset_free(&d);
}

/* CIFAR: files of a few records in the exact layout */

enum { CIFAR_PIXELS = 3 * 32 * 32, CIFAR_RECORDS = 4 };

typedef struct cifar_file {
    uint8_t bytes[CIFAR_RECORDS * (2 + CIFAR_PIXELS)];
    size_t n;
} cifar_file;

static uint8_t cifar_pixel(int file, int record, int k) {
    return (uint8_t)(31 * file + 101 * record + k);
}

/* Labels count up over the files; with two label bytes the first one is a coarse label. */
static void fill_cifar(int file, int n_label_bytes, int n_classes, cifar_file *out) {
    out->n = 0;
    for (int r = 0; r < CIFAR_RECORDS; r++) {
        if (n_label_bytes == 2) out->bytes[out->n++] = 19;
        out->bytes[out->n++] = (uint8_t)((file * CIFAR_RECORDS + r) % n_classes);
        for (int k = 0; k < CIFAR_PIXELS; k++) out->bytes[out->n++] = cifar_pixel(file, r, k);
    }
}

static void write_cifar10(const char *prefix) {
    static cifar_file f;
    for (int k = 0; k < 6; k++) {
        char name[64];
        if (k < 5)
            snprintf(name, sizeof name, "%sdata_batch_%d.bin", prefix, k + 1);
        else
            snprintf(name, sizeof name, "%stest_batch.bin", prefix);
        fill_cifar(k, 1, 10, &f);
        write_plain(name, f.bytes, f.n);
    }
}

static void check_cifar_pixels(const ct_images *images, int first_file) {
    for (size_t i = 0; i < images->n; i++)
        for (int k = 0; k < CIFAR_PIXELS; k++) {
            int file = first_file + (int)i / CIFAR_RECORDS, r = (int)i % CIFAR_RECORDS;
            REQUIRE(images->pixels[i * CIFAR_PIXELS + (size_t)k] == cifar_pixel(file, r, k));
        }
}

static void check_cifar10(const ct_dataset *d) {
    REQUIRE(d->train.n == 5 * CIFAR_RECORDS && d->test.n == CIFAR_RECORDS);
    CHECK(d->train.channels == 3 && d->train.height == 32 && d->train.width == 32);
    for (int i = 0; i < 5 * CIFAR_RECORDS; i++) CHECK(d->train.labels[i] == i % 10);
    check_cifar_pixels(&d->train, 0);
    check_cifar_pixels(&d->test, 5);
    CHECK(d->n_classes == 10 && d->crop_padding == 4 && d->flip);
    CHECK(d->mean[0] == 0.4914f && d->mean[2] == 0.4465f && d->std[1] == 0.1994f);
}

static void cifar10_reads_back_what_was_written(void) {
    ct_dataset d = {0};
    scratch_open();
    write_cifar10("");
    CHECK_OK(open_set("cifar10", &d));
    check_cifar10(&d);
    ct_dataset_free(&d);
    remove_dir(scratch);
}

static void cifar10_is_found_where_its_archive_unpacks(void) {
    char inner[128];
    ct_dataset d = {0};
    scratch_open();
    snprintf(inner, sizeof inner, "%s/cifar-10-batches-bin", scratch);
    REQUIRE(mkdir(inner, 0700) == 0);
    write_cifar10("cifar-10-batches-bin/");
    CHECK_OK(open_set("cifar10", &d));
    check_cifar10(&d);
    CHECK(strcmp(d.source, inner) == 0);
    ct_dataset_free(&d);
    remove_dir(inner);
    remove_dir(scratch);
}

static void a_damaged_cifar10_file_is_refused(void) {
    static cifar_file f;
    scratch_open();
    write_cifar10("");
    fill_cifar(2, 1, 10, &f);
    refuse("cifar10", "data_batch_3.bin", f.bytes, 0, "empty");
    refuse("cifar10", "data_batch_3.bin", f.bytes, 1, "not a whole number of records of 3073");
    refuse("cifar10", "data_batch_3.bin", f.bytes, f.n - 1, "not a whole number of records");
    f.bytes[3073] = 10;
    refuse("cifar10", "data_batch_3.bin", f.bytes, f.n, "label 10 of sample 1 is not one of 0..9");
    CHECK(unlink(in_scratch("data_batch_3.bin")) == 0);
    ct_dataset d = {0};
    CHECK_FAILS(open_set("cifar10", &d), CT_IO, "neither data_batch_3.bin nor data_batch_3.bin.gz");
    remove_dir(scratch);
}

/* Two label bytes, of which the second counts. */
static void check_fine_labels(const char *name) {
    static cifar_file f;
    ct_dataset d = {0};
    scratch_open();
    fill_cifar(24, 2, 100, &f); /* labels 96 .. 99 */
    write_plain("train.bin", f.bytes, f.n);
    write_plain("test.bin", f.bytes, f.n);
    REQUIRE_OK(open_set(name, &d));
    CHECK(d.train.n == CIFAR_RECORDS && d.test.n == CIFAR_RECORDS && d.n_classes == 100);
    for (int i = 0; i < CIFAR_RECORDS; i++) CHECK(d.train.labels[i] == 96 + i);
    check_cifar_pixels(&d.train, 24);
    CHECK(d.mean[0] == 0.5071f && d.std[2] == 0.2761f && d.crop_padding == 4 && d.flip);
    CHECK(strcmp(d.name, name) == 0);
    ct_dataset_free(&d);
    f.bytes[1] = 100;
    refuse(name, "test.bin", f.bytes, f.n, "label 100 of sample 0 is not one of 0..99");
    refuse(name, "test.bin", f.bytes, f.n - 3074 + 3073, "not a whole number of records of 3074");
    remove_dir(scratch);
}

static void cifar100_reads_the_fine_labels(void) {
    check_fine_labels("cifar100");
}

static void miniimagenet_reads_like_cifar100(void) {
    check_fine_labels("miniimagenet");
}

int main(void) {
    TEST(idx_files_read_back_what_was_written);
    TEST(packed_idx_files_read_the_same);
    TEST(an_idx_file_cut_anywhere_is_refused);
    TEST(a_cut_gzip_file_is_refused);
    TEST(a_wrong_idx_header_is_refused);
    TEST(labels_must_match_the_images);
    TEST(training_and_test_images_have_one_size);
    TEST(a_set_of_one_label_has_two_classes);
    TEST(an_unknown_name_is_refused_with_the_known_ones);
    TEST(missing_files_say_how_to_get_them);
    TEST(every_set_has_a_name_and_a_line_of_help);
    TEST(sets_know_what_they_are_trained_with);
    TEST(a_fingerprint_changes_with_every_pixel_label_and_order);
    TEST(fashion_mnist_is_what_its_authors_published);
    TEST(shapes_are_the_same_for_the_same_seed_everywhere);
    TEST(shapes_are_ten_balanced_classes);
    TEST(fewer_shapes_are_the_first_of_more);
    TEST(shapes_can_be_learnt_but_not_by_averages);
    TEST(cifar10_reads_back_what_was_written);
    TEST(cifar10_is_found_where_its_archive_unpacks);
    TEST(a_damaged_cifar10_file_is_refused);
    TEST(cifar100_reads_the_fine_labels);
    TEST(miniimagenet_reads_like_cifar100);
    return test_report();
}
