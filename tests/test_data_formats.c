/* Archives, NumPy arrays, coarse labels, and telling from a folder what lies in it. */
#include "test.h"

#include "data/dataset.h"
#include "data/tar.h"
#include "data_files.h"
#include "util/file.h"

static archive packed;

static ct_status open_set(const char *name, ct_dataset *out) {
    ct_dataset_options options = {.dir = scratch, .test_fraction = 0.25, .seed = 3};
    return ct_dataset_open(name, &options, out);
}

static ct_status unpack(const char *name, uint64_t max_bytes) {
    return ct_tar_unpack(in_scratch(name), in_scratch("out"), max_bytes);
}

/* CIFAR: `n` records a file, label bytes counting up */

enum { RECORD = 3073, N_RECORDS = 6 };

static void cifar_records(int n_label_bytes, uint8_t *out) {
    for (int r = 0; r < N_RECORDS; r++) {
        if (n_label_bytes == 2) *out++ = (uint8_t)(r + 10);
        *out++ = (uint8_t)r;
        for (int k = 0; k < RECORD - 1; k++) *out++ = (uint8_t)(r * 31 + k);
    }
}

static void pack_cifar10(void) {
    static uint8_t bytes[N_RECORDS * RECORD];
    static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    cifar_records(1, bytes);
    packed.n = 0;
    add_member(&packed, "cifar-10-batches-bin/", '5', NULL, 0);
    add_member(&packed, "cifar-10-batches-bin/readme.html", '0', "hello", 5);
    for (int k = 0; k < 6; k++) {
        char name[64];
        snprintf(name, sizeof name, "cifar-10-batches-bin/%s", names[k]);
        add_member(&packed, name, '0', bytes, sizeof bytes);
    }
    static const char classes[] =
        "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
    add_member(&packed, "cifar-10-batches-bin/batches.meta.txt", '0', classes, sizeof classes - 1);
    end_archive(&packed);
}

static void check_cifar10(const ct_dataset *d) {
    REQUIRE(d->train.n == 5 * N_RECORDS && d->test.n == N_RECORDS);
    CHECK(d->n_classes == 10 && d->train.labels[N_RECORDS + 4] == 4);
    CHECK(d->train.pixels[3072 + 7] == (uint8_t)(31 + 7));
    CHECK(strcmp(ct_dataset_class_name(d, 0), "airplane") == 0);
    CHECK(strcmp(ct_dataset_class_name(d, 9), "truck") == 0);
    CHECK(strcmp(ct_dataset_class_name(d, 10), "") == 0);
}

static void cifar10_is_read_from_its_archive(void) {
    NEED_ARCHIVE;
    ct_dataset d = {0};
    scratch_open();
    pack_cifar10();
    write_gzip("cifar-10-binary.tar.gz", packed.bytes, packed.n);
    CHECK_OK(open_set("cifar10", &d));
    check_cifar10(&d);
    ct_dataset_free(&d);
    ct_dataset_options options = {.dir = in_scratch("cifar-10-binary.tar.gz")};
    CHECK_OK(ct_dataset_open("auto", &options, &d)); /* the archive itself */
    CHECK(strcmp(d.name, "cifar10") == 0);
    check_cifar10(&d);
    ct_dataset_free(&d);
    scratch_close();
}

static void a_cut_archive_is_refused(void) {
    NEED_ARCHIVE;
    ct_dataset d = {0};
    struct stat info;
    scratch_open();
    pack_cifar10();
    write_gzip("cifar-10-binary.tar.gz", packed.bytes, packed.n);
    REQUIRE(stat(in_scratch("cifar-10-binary.tar.gz"), &info) == 0);
    for (off_t n = info.st_size - 1; n > 0; n -= n > 40 ? info.st_size / 23 : 1) {
        REQUIRE(truncate(in_scratch("cifar-10-binary.tar.gz"), n) == 0);
        CHECK_FAILS(open_set("cifar10", &d), CT_IO, "cifar-10-binary.tar.gz");
    }
    scratch_close();
}

/* The sum of the content is in the last eight bytes of a gzip file, in front of its length. */
static void an_archive_with_a_wrong_checksum_is_refused(void) {
    NEED_ARCHIVE;
    ct_dataset d = {0};
    struct stat info;
    uint8_t byte = 0;
    scratch_open();
    pack_cifar10();
    write_gzip("cifar-10-binary.tar.gz", packed.bytes, packed.n);
    REQUIRE(stat(in_scratch("cifar-10-binary.tar.gz"), &info) == 0);
    FILE *f = fopen(in_scratch("cifar-10-binary.tar.gz"), "r+b");
    REQUIRE(f != NULL);
    CHECK(fseek(f, info.st_size - 8, SEEK_SET) == 0 && fread(&byte, 1, 1, f) == 1);
    byte ^= 1;
    CHECK(fseek(f, info.st_size - 8, SEEK_SET) == 0 && fwrite(&byte, 1, 1, f) == 1);
    CHECK(fclose(f) == 0);
    CHECK_FAILS(open_set("cifar10", &d), CT_IO, "damaged");
    scratch_close();
}

static void an_archive_without_a_file_is_refused(void) {
    NEED_ARCHIVE;
    ct_dataset d = {0};
    scratch_open();
    packed.n = 0;
    add_member(&packed, "cifar-10-batches-bin/readme.html", '0', "hello", 5);
    end_archive(&packed);
    write_gzip("cifar-10-binary.tar.gz", packed.bytes, packed.n);
    CHECK_FAILS(open_set("cifar10", &d), CT_IO, "data_batch_1.bin is not in the archive");
    scratch_close();
}

static void coarse_labels_are_cifar100s_first_byte(void) {
    static uint8_t bytes[N_RECORDS * (RECORD + 1)];
    ct_dataset d = {0};
    scratch_open();
    cifar_records(2, bytes);
    write_file("train.bin", bytes, sizeof bytes);
    write_file("test.bin", bytes, sizeof bytes);
    ct_dataset_options options = {.dir = scratch};
    REQUIRE_OK(ct_dataset_open("cifar100", &options, &d));
    CHECK(d.n_classes == 100 && d.train.labels[4] == 4);
    ct_dataset_free(&d);
    options.coarse_labels = true;
    REQUIRE_OK(ct_dataset_open("cifar100", &options, &d));
    CHECK(d.n_classes == 20 && d.train.labels[4] == 14);
    ct_dataset_free(&d);
    bytes[0] = 20;
    write_file("train.bin", bytes, sizeof bytes);
    CHECK_FAILS(ct_dataset_open("cifar100", &options, &d), CT_IO, "label 20 of sample 0");
    scratch_close();
}

/* tar */

static void an_archive_unpacks_what_was_packed(void) {
    NEED_ARCHIVE;
    ct_blob file = {0};
    scratch_open();
    packed.n = 0;
    add_member(&packed, "./", '5', NULL, 0);
    add_member(&packed, "./a/", '5', NULL, 0);
    add_member(&packed, "./a/one.txt", '0', "first", 5);
    static const char pax[] = "26 path=b/a longer name.x\n";
    add_member(&packed, "ignored", 'x', pax, sizeof pax - 1);
    add_member(&packed, "short", '0', "second", 6);
    add_member(&packed, "ignored", 'L', "c/gnu name", 11);
    add_member(&packed, "short", '0', "", 0);
    static const char utf8[] = "18 path=d/gr\xc3\xbc\xc3\x9f"
                               "e\n";
    add_member(&packed, "ignored", 'x', utf8, sizeof utf8 - 1);
    add_member(&packed, "short", '0', "third", 5);
    end_archive(&packed);
    write_file("x.tar", packed.bytes, packed.n);
    REQUIRE_OK(unpack("x.tar", 1 << 20));
    CHECK(ct_file_exists(in_scratch("out/d/gr\xc3\xbc\xc3\x9f"
                                    "e")));
    REQUIRE_OK(ct_file_read(in_scratch("out/a/one.txt"), 100, &file));
    CHECK(file.n == 5 && memcmp(file.bytes, "first", 5) == 0);
    ct_blob_free(&file);
    REQUIRE_OK(ct_file_read(in_scratch("out/b/a longer name.x"), 100, &file));
    CHECK(file.n == 6 && memcmp(file.bytes, "second", 6) == 0);
    ct_blob_free(&file);
    CHECK(ct_file_exists(in_scratch("out/c/gnu name")));
    scratch_close();
}

static void without_libarchive_an_archive_says_how_to_get_it(void) {
    if (CT_WITH_ARCHIVE) SKIP("built with libarchive");
    CHECK_FAILS(unpack("x.tar", 1 << 20), CT_NOTBUILT, "install libarchive-dev");
}

static void refuse_member(const char *name, char type, const char *words) {
    scratch_open();
    packed.n = 0;
    add_member(&packed, name, type, "x", 1);
    end_archive(&packed);
    write_file("x.tar", packed.bytes, packed.n);
    CHECK_FAILS(unpack("x.tar", 1 << 20), CT_IO, words);
    CHECK(!ct_file_exists("/tmp/crosstalk-evil"));
    scratch_close();
}

static void names_that_lead_out_of_the_folder_are_refused(void) {
    NEED_ARCHIVE;
    refuse_member("../crosstalk-evil", '0', "leads out of the folder");
    refuse_member("a/../../crosstalk-evil", '0', "leads out of the folder");
    refuse_member("a/..", '5', "leads out of the folder");
    refuse_member("/tmp/crosstalk-evil", '0', "leads out of the folder");
    refuse_member("a\nb", '0', "leads out of the folder");
}

static void links_and_devices_are_refused(void) {
    NEED_ARCHIVE;
    refuse_member("a", '1', "neither a file nor a folder");
    refuse_member("a", '2', "neither a file nor a folder");
    refuse_member("a", '3', "neither a file nor a folder");
    refuse_member("a", '6', "neither a file nor a folder");
}

static void a_tar_bomb_is_refused(void) {
    NEED_ARCHIVE;
    static uint8_t zeros[1 << 18];
    scratch_open();
    packed.n = 0;
    add_member(&packed, "bomb", '0', zeros, sizeof zeros);
    end_archive(&packed);
    write_gzip("bomb.tar.gz", packed.bytes, packed.n);
    CHECK_FAILS(unpack("bomb.tar.gz", 1 << 16), CT_IO, "more than the 65536 bytes allowed");
    CHECK(!ct_file_exists(in_scratch("out/bomb")));
    /* A header that promises more than there is. */
    memcpy(packed.bytes + 124, "77777777777", 11);
    CHECK(packed.n > 512);
    write_file("liar.tar", packed.bytes, packed.n);
    CHECK_FAILS(unpack("liar.tar", UINT64_MAX), CT_IO, "not a tar archive, or a damaged one");
    scratch_close();
}

static void a_tar_cut_anywhere_is_refused(void) {
    NEED_ARCHIVE;
    scratch_open();
    packed.n = 0;
    add_member(&packed, "a", '0', "hello", 5);
    end_archive(&packed);
    for (size_t n = 0; n < 1536; n += 64) {
        write_file("x.tar", packed.bytes, n);
        CHECK_FAILS(unpack("x.tar", 1 << 20), CT_IO, "x.tar");
        remove(in_scratch("out/a"));
    }
    scratch_close();
}

/* npy */

static void write_npy(const char *name, const char *type, const char *shape, const void *values,
                      size_t n) {
    static uint8_t bytes[1 << 16];
    char header[128];
    int length = snprintf(header, sizeof header,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    int total = (10 + length + 1 + 63) / 64 * 64 - 10;
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (uint8_t)total;
    bytes[9] = (uint8_t)(total >> 8);
    memset(bytes + 10, ' ', (size_t)total);
    memcpy(bytes + 10, header, (size_t)length);
    bytes[10 + total - 1] = '\n';
    memcpy(bytes + 10 + total, values, n);
    write_file(name, bytes, 10 + (size_t)total + n);
}

enum { N = 8, N_IMAGE = 2 * 3 * 4 };

static uint8_t npy_pixels[N * N_IMAGE];
static int64_t npy_labels[N];

static void write_npy_set(void) {
    for (int k = 0; k < N * N_IMAGE; k++) npy_pixels[k] = (uint8_t)(k * 37);
    for (int k = 0; k < N; k++) npy_labels[k] = k % 3;
    write_npy("train_images.npy", "|u1", "8, 2, 3, 4", npy_pixels, sizeof npy_pixels);
    write_npy("train_labels.npy", "<i8", "8,", npy_labels, sizeof npy_labels);
    write_npy("test_images.npy", "|u1", "4, 2, 3, 4", npy_pixels, sizeof npy_pixels / 2);
    write_npy("test_labels.npy", "<i8", "4,", npy_labels, sizeof npy_labels / 2);
}

static void npy_files_read_back_what_was_written(void) {
    ct_dataset d = {0};
    scratch_open();
    write_npy_set();
    REQUIRE_OK(open_set("npy", &d));
    REQUIRE(d.train.n == N && d.test.n == 4 && d.n_classes == 3);
    CHECK(d.train.channels == 2 && d.train.height == 3 && d.train.width == 4);
    CHECK(memcmp(d.train.pixels, npy_pixels, sizeof npy_pixels) == 0);
    CHECK(d.train.labels[5] == 2 && d.test.labels[3] == 0);
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 12; k++) sum += npy_pixels[i * N_IMAGE + 12 + k] / 255.0;
    CHECK_NEAR(d.mean[1], sum / (N * 12), 1e-6); /* float32 */
    ct_dataset_free(&d);
    scratch_close();
}

static void float_pixels_round_to_the_same_bytes(void) {
    float values[N * N_IMAGE];
    ct_dataset d = {0};
    for (int scale = 0; scale < 2; scale++) {
        scratch_open();
        write_npy_set();
        for (int k = 0; k < N * N_IMAGE; k++)
            values[k] = (float)npy_pixels[k] / (scale == 0 ? 255.0f : 1.0f);
        write_npy("train_images.npy", "<f4", "8, 2, 3, 4", values, sizeof values);
        REQUIRE_OK(open_set("npy", &d));
        CHECK(memcmp(d.train.pixels, npy_pixels, sizeof npy_pixels) == 0);
        ct_dataset_free(&d);
        scratch_close();
    }
}

static void odd_npy_files_are_refused(void) {
    ct_dataset d = {0};
    float normalised[N * N_IMAGE] = {-1.5f, 2.0f};
    scratch_open();
    write_npy_set();
    write_npy("train_images.npy", "<f4", "8, 2, 3, 4", normalised, sizeof normalised);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "values from -1.5 to 2");
    normalised[3] = NAN;
    write_npy("train_images.npy", "<f4", "8, 2, 3, 4", normalised, sizeof normalised);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "value 3 is not finite");
    write_npy("train_images.npy", "<f8", "4, 2, 3, 4", normalised, sizeof normalised);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "must be uint8 or float32");
    write_npy("train_images.npy", ">f4", "8, 2, 3, 4", normalised, sizeof normalised);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "big-endian");
    write_npy("train_images.npy", "|u1", "7, 2, 3, 4", npy_pixels, sizeof npy_pixels);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "whose shape needs");
    write_npy("train_images.npy", "|u1", "99999999, 99999999, 99999999", npy_pixels, 1);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "too large");
    write_npy("train_images.npy", "|u1", "8, 24", npy_pixels, sizeof npy_pixels);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "[N][C][H][W]");
    write_npy("train_images.npy", "|u1", "1, 192, 1, 1", npy_pixels, sizeof npy_pixels);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "channels come first");
    write_npy_set();
    write_npy("train_labels.npy", "<i8", "4,", npy_labels, sizeof npy_labels / 2);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "4 labels for 8 images");
    npy_labels[2] = -1;
    write_npy("train_labels.npy", "<i8", "8,", npy_labels, sizeof npy_labels);
    CHECK_FAILS(open_set("npy", &d), CT_IO, "label -1 of sample 2");
    scratch_close();
}

static void an_npy_file_cut_anywhere_is_refused(void) {
    ct_dataset d = {0};
    ct_blob file = {0};
    scratch_open();
    write_npy_set();
    REQUIRE_OK(ct_file_read(in_scratch("train_images.npy"), 1 << 20, &file));
    for (size_t n = 0; n < file.n; n++) {
        write_file("train_images.npy", file.bytes, n);
        CHECK_FAILS(open_set("npy", &d), CT_IO, "train_images.npy");
    }
    ct_blob_free(&file);
    scratch_close();
}

static void a_set_without_test_part_is_split_by_class(void) {
    ct_dataset d = {0};
    scratch_open();
    write_npy_set();
    write_npy("images.npy", "|u1", "8, 2, 3, 4", npy_pixels, sizeof npy_pixels);
    write_npy("labels.npy", "<i8", "8,", npy_labels, sizeof npy_labels);
    remove(in_scratch("train_images.npy"));
    REQUIRE_OK(open_set("npy", &d));
    CHECK(d.train.n == 5 && d.test.n == 3);
    int held[3] = {0};
    for (size_t i = 0; i < d.test.n; i++) held[d.test.labels[i]]++;
    CHECK(held[0] == 1 && held[1] == 1 && held[2] == 1);
    ct_dataset_free(&d);
    ct_dataset_options options = {.dir = scratch};
    CHECK_FAILS(ct_dataset_open("npy", &options, &d), CT_INVAL, "--test-fraction");
    scratch_close();
}

/* auto */

static void recognise(const char *expected) {
    ct_dataset_options options = {.dir = scratch};
    const char *name = "";
    CHECK_OK(ct_dataset_recognise(&options, &name));
    if (strcmp(name, expected) != 0) printf("    recognised %s, not %s\n", name, expected);
    CHECK(strcmp(name, expected) == 0);
    scratch_close();
    scratch_open();
}

static void a_folder_tells_what_lies_in_it(void) {
    scratch_open();
    write_npy_set();
    recognise("npy");
    write_file("x_train.npy", "", 0);
    recognise("npy");
    write_file("train-images-idx3-ubyte.gz", "", 0);
    write_file("train-labels-idx1-ubyte.gz", "", 0);
    recognise("idx");
    write_file("cifar-10-batches-bin/data_batch_1.bin", "", 0);
    write_file("cifar-10-batches-bin/test_batch.bin", "", 0);
    recognise("cifar10");
    write_file("train.bin", "", 0);
    write_file("test.bin", "", 0);
    recognise("cifar100");
    write_file("miniimagenet-32/train.bin", "", 0);
    write_file("miniimagenet-32/test.bin", "", 0);
    recognise("miniimagenet");
    write_file("cifar-100-binary.tar.gz", "", 0);
    recognise("cifar100");
    ct_dataset d = {0};
    CHECK_FAILS(open_set("auto", &d), CT_IO, "no data that is known here");
    ct_dataset_options nowhere = {0};
    CHECK_FAILS(ct_dataset_open("auto", &nowhere, &d), CT_INVAL, "--data-dir");
    scratch_close();
}

int main(void) {
    TEST(cifar10_is_read_from_its_archive);
    TEST(a_cut_archive_is_refused);
    TEST(an_archive_with_a_wrong_checksum_is_refused);
    TEST(an_archive_without_a_file_is_refused);
    TEST(coarse_labels_are_cifar100s_first_byte);
    TEST(an_archive_unpacks_what_was_packed);
    TEST(names_that_lead_out_of_the_folder_are_refused);
    TEST(links_and_devices_are_refused);
    TEST(a_tar_bomb_is_refused);
    TEST(a_tar_cut_anywhere_is_refused);
    TEST(without_libarchive_an_archive_says_how_to_get_it);
    TEST(npy_files_read_back_what_was_written);
    TEST(float_pixels_round_to_the_same_bytes);
    TEST(odd_npy_files_are_refused);
    TEST(an_npy_file_cut_anywhere_is_refused);
    TEST(a_set_without_test_part_is_split_by_class);
    TEST(a_folder_tells_what_lies_in_it);
    return test_report();
}
