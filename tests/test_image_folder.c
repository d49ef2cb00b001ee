/* Folders of pictures: what is found, what is left out, and what is refused. */
#include "test.h"

#include "ct_config.h"
#include "data/dataset.h"
#include "data/pictures.h"
#include "data_files.h"
#include "util/file.h"
#include "util/log.h"

enum { SIZE = 24, N_IMAGE = 3 * SIZE * SIZE };

/* Three classes with 4, 3 and 2 pictures to train on and 1 each to test. */
static void make_set(void) {
    static const char *const names[] = {
        "train/cat/1.jpg", "train/cat/2.png", "train/cat/3.png", "train/cat/deep/4.jpg",
        "train/dog/a.png", "train/dog/b.jpg", "train/dog/c.png", "train/emu/x.JPEG",
        "train/emu/y.PNG", "val/cat/1.png",   "val/dog/1.png",   "val/emu/1.png"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        bool is_jpeg = strstr(names[k], ".j") != NULL || strstr(names[k], ".J") != NULL;
        put_picture(is_jpeg ? "rgb.jpg" : k % 2 ? "rgba.png" : "rgb.png", names[k], SIZE_MAX);
    }
    write_file("train/cat/.hidden", "x", 1);
}

static ct_dataset_options folder_options(void) {
    return (ct_dataset_options){.dir = scratch, .image_size = SIZE, .n_workers = 2, .seed = 1};
}

static void a_folder_gives_sorted_classes_and_torchvisions_pixels(void) {
    ct_dataset d = {0};
    ct_dataset_options options = folder_options();
    ct_blob expected = {0};
    scratch_open();
    make_set();
    REQUIRE_OK(ct_dataset_open("folder", &options, &d));
    CHECK(d.n_classes == 3 && strcmp(ct_dataset_class_name(&d, 2), "emu") == 0);
    REQUIRE(d.train.n == 9 && d.test.n == 3 && d.train.width == SIZE && d.train.height == SIZE);
    static const int labels[] = {0, 0, 0, 0, 1, 1, 1, 2, 2};
    for (int i = 0; i < 9; i++) CHECK(d.train.labels[i] == labels[i]);
    CHECK(d.train.pixels != NULL && d.train_pictures == NULL);
    REQUIRE_OK(ct_file_read(CT_SOURCE_DIR "/tests/fixtures/images/rgb.png.24", N_IMAGE, &expected));
    CHECK(memcmp(d.train.pixels + 2 * N_IMAGE, expected.bytes, N_IMAGE) == 0); /* cat/3.png */
    CHECK(memcmp(d.test.pixels, expected.bytes, N_IMAGE) == 0); /* alpha is dropped */
    ct_blob_free(&expected);
    ct_dataset_free(&d);
    scratch_close();
}

static void figures_of_an_unknown_folder_are_measured_once_and_kept(void) {
    ct_dataset d = {0}, again = {0};
    ct_dataset_options options = folder_options();
    scratch_open();
    make_set();
    REQUIRE_OK(ct_dataset_open("folder", &options, &d));
    double sum = 0;
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < SIZE * SIZE; k++) sum += d.train.pixels[i * N_IMAGE + k] / 255.0;
    CHECK_NEAR(d.mean[0], sum / (9 * SIZE * SIZE), 1e-6);
    REQUIRE(ct_file_exists(in_scratch(".crosstalk-mean-deviation")));
    REQUIRE_OK(ct_dataset_open("folder", &options, &again));
    CHECK(memcmp(d.mean, again.mean, sizeof d.mean) == 0 && memcmp(d.std, again.std, 12) == 0);
    ct_dataset_free(&again);
    write_file(".crosstalk-mean-deviation", "mean and", 8); /* cut short: measured again */
    REQUIRE_OK(ct_dataset_open("folder", &options, &again));
    CHECK(memcmp(d.mean, again.mean, sizeof d.mean) == 0);
    ct_dataset_free(&again);
    ct_dataset_free(&d);
    options.augment = true; /* served by a loader: the same figures */
    remove(in_scratch(".crosstalk-mean-deviation"));
    REQUIRE_OK(ct_dataset_open("folder", &options, &again));
    CHECK_NEAR(again.mean[0], sum / (9 * SIZE * SIZE), 1e-6);
    ct_dataset_free(&again);
    scratch_close();
}

static void named_sets_have_imagenets_figures(void) {
    ct_dataset d = {0};
    ct_dataset_options options = folder_options();
    scratch_open();
    make_set();
    REQUIRE_OK(ct_dataset_open("imagenette", &options, &d));
    CHECK(d.mean[0] == 0.485f && d.std[2] == 0.225f);
    CHECK(!ct_file_exists(in_scratch(".crosstalk-mean-deviation")));
    ct_dataset_free(&d);
    options.image_size = 0;
    REQUIRE_OK(ct_dataset_open("imagenette", &options, &d));
    CHECK(d.train.width == 32);
    ct_dataset_free(&d);
    options.augment = true;
    REQUIRE_OK(ct_dataset_open("imagenet", &options, &d));
    CHECK(d.train.width == 224 && ct_pictures_spec_of(d.train_pictures)->side == 256);
    ct_dataset_free(&d);
    scratch_close();
}

static void broken_pictures_are_left_out_or_refused_if_strict(void) {
    ct_dataset d = {0};
    ct_dataset_options options = folder_options();
    scratch_open();
    make_set();
    put_picture("rgb.jpg", "train/cat/broken.jpg", 900);
    put_picture("rgb.png", "train/dog/broken.png", 900);
    write_file("train/dog/zero.jpg", "", 0);
    write_file("train/emu/notes.txt", "no picture", 10);
    CHECK(symlink("/nonexistent", in_scratch("train/emu/gone.png")) == 0);
    for (int augment = 0; augment < 2; augment++) {
        options.augment = augment;
        REQUIRE_OK(ct_dataset_open("folder", &options, &d));
        CHECK(d.train.n == 9 && d.test.n == 3);
        CHECK(d.train.labels[3] == 0 && d.train.labels[4] == 1 && d.train.labels[7] == 2);
        ct_dataset_free(&d);
    }
    options.strict = true;
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_IO, "broken.jpg");
    remove(in_scratch("train/cat/broken.jpg"));
    remove(in_scratch("train/dog/broken.png"));
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_IO, "dog/zero.jpg: empty file");
    remove(in_scratch("train/dog/zero.jpg"));
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_IO, "emu/gone.png: No such file");
    remove(in_scratch("train/emu/gone.png"));
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_IO,
                "emu/notes.txt: neither JPEG nor PNG");
    scratch_close();
}

static void folders_that_cannot_be_a_set_are_refused(void) {
    ct_dataset d = {0};
    ct_dataset_options options = folder_options();
    scratch_open();
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_IO, "one for each class");
    put_picture("rgb.png", "train/only/1.png", SIZE_MAX);
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_IO, "one class alone (only)");
    put_picture("rgb.png", "train/other/1.png", SIZE_MAX);
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_INVAL, "--test-fraction");
    put_picture("rgb.png", "val/third/1.png", SIZE_MAX);
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_IO,
                "val/third: a class that is not among the training ones");
    CHECK(rename(in_scratch("val/third"), in_scratch("val/other")) == 0);
    CHECK_OK(ct_dataset_open("folder", &options, &d));
    ct_dataset_free(&d);
    write_file("train/only/1.png", "x", 1);
    write_file("train/other/1.png", "x", 1);
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_IO, "none of its files is a picture");
    options.dir = "/nonexistent";
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_IO, "no such directory");
    options.dir = NULL;
    CHECK_FAILS(ct_dataset_open("folder", &options, &d), CT_INVAL, "--data-dir");
    scratch_close();
}

static void a_folder_without_test_part_is_split_by_class(void) {
    ct_dataset d = {0};
    ct_dataset_options options = folder_options();
    options.test_fraction = 0.34;
    scratch_open();
    for (int k = 0; k < 12; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s/%02d.png", k % 2 ? "left" : "right", k);
        put_picture("small.png", name, SIZE_MAX);
    }
    const char *name = NULL;
    CHECK_OK(ct_dataset_recognise(&options, &name));
    REQUIRE_OK(ct_dataset_open("auto", &options, &d));
    CHECK(strcmp(d.name, "folder") == 0 && d.train.n == 8 && d.test.n == 4);
    int left = 0;
    for (size_t i = 0; i < d.test.n; i++) left += d.test.labels[i] == 0;
    CHECK(left == 2);
    ct_dataset_free(&d);
    scratch_close();
}

static void fewer_samples_are_spread_over_the_classes(void) {
    ct_dataset d = {0};
    ct_dataset_options options = folder_options();
    options.n_train = 5;
    options.n_test = 2;
    scratch_open();
    make_set();
    REQUIRE_OK(ct_dataset_open("folder", &options, &d));
    REQUIRE(d.train.n == 5 && d.test.n == 2);
    static const int labels[] = {0, 0, 1, 1, 2};
    for (int i = 0; i < 5; i++) CHECK(d.train.labels[i] == labels[i]);
    ct_dataset_free(&d);
    scratch_close();
}

static uint64_t fingerprint_of(const ct_dataset_options *options) {
    ct_dataset d = {0};
    uint64_t sum = 0;
    CHECK_OK(ct_dataset_open("folder", options, &d));
    sum = ct_dataset_fingerprint(&d);
    ct_dataset_free(&d);
    return sum;
}

/* In memory, cut at random, streamed, cached, with any number of threads: the same files. */
static void a_folders_fingerprint_is_that_of_its_files(void) {
    ct_dataset_options options = folder_options();
    scratch_open();
    make_set();
    uint64_t whole = fingerprint_of(&options);
    options.n_workers = 1;
    CHECK(fingerprint_of(&options) == whole);
    options.augment = true;
    CHECK(fingerprint_of(&options) == whole);
    options.memory_bytes = 1;
    CHECK(fingerprint_of(&options) == whole);
    options.cache = in_scratch("cache");
    CHECK(fingerprint_of(&options) == whole);
    CHECK(fingerprint_of(&options) == whole);
    options.cache = NULL;
    put_picture("grey.png", "train/cat/3.png", SIZE_MAX); /* another picture of the same name */
    uint64_t changed = fingerprint_of(&options);
    CHECK(changed != whole);
    CHECK(rename(in_scratch("train/cat/3.png"), in_scratch("train/dog/d.png")) == 0);
    CHECK(fingerprint_of(&options) != changed);
    options.image_size = SIZE + 1;
    CHECK(fingerprint_of(&options) != changed);
    scratch_close();
}

static void small_sets_are_kept_in_memory_and_large_ones_are_not(void) {
    ct_dataset d = {0};
    ct_dataset_options options = folder_options();
    options.augment = true;
    scratch_open();
    make_set();
    REQUIRE_OK(ct_dataset_open("folder", &options, &d));
    CHECK(d.train.pixels == NULL && d.train_pictures != NULL && d.test.pixels != NULL);
    CHECK(ct_pictures_in_memory(d.train_pictures));
    ct_dataset_free(&d);
    options.memory_bytes = 1000;
    REQUIRE_OK(ct_dataset_open("folder", &options, &d));
    CHECK(!ct_pictures_in_memory(d.train_pictures));
    CHECK(d.test.pixels == NULL && d.test_pictures != NULL && d.test.n == 3);
    ct_dataset_free(&d);
    scratch_close();
}

static void imagenette_and_imagenet_are_told_by_their_classes(void) {
    static const char *const wnids[] = {"n01440764", "n02102040", "n02979186", "n03000684",
                                        "n03028079", "n03394916", "n03417042", "n03425413",
                                        "n03445777", "n03888257", "n01443537", "n15075141"};
    ct_dataset_options options = folder_options();
    const char *name = NULL;
    scratch_open();
    for (int k = 0; k < 12; k++) {
        char path[64];
        snprintf(path, sizeof path, "train/%s/1.JPEG", wnids[k]);
        write_file(path, "", 0);
        CHECK_OK(ct_dataset_recognise(&options, &name));
        CHECK(strcmp(name, k == 9 ? "imagenette" : k == 11 ? "imagenet" : "folder") == 0);
    }
    scratch_close();
}

int main(void) {
    if (!CT_WITH_JPEG || !CT_WITH_PNG) {
        printf("skip built without libjpeg or libpng\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    TEST(a_folder_gives_sorted_classes_and_torchvisions_pixels);
    TEST(figures_of_an_unknown_folder_are_measured_once_and_kept);
    TEST(named_sets_have_imagenets_figures);
    TEST(broken_pictures_are_left_out_or_refused_if_strict);
    TEST(folders_that_cannot_be_a_set_are_refused);
    TEST(a_folder_without_test_part_is_split_by_class);
    TEST(fewer_samples_are_spread_over_the_classes);
    TEST(a_folders_fingerprint_is_that_of_its_files);
    TEST(small_sets_are_kept_in_memory_and_large_ones_are_not);
    TEST(imagenette_and_imagenet_are_told_by_their_classes);
    return test_report();
}
