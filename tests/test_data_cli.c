/* crosstalk data and crosstalk partition as they are used: what they print, draw and refuse. */
#include "test.h"

#include "ct_config.h"
#include "data/dataset.h"
#include "data/decode.h"
#include "data/sheet.h"
#include "data_files.h"
#include "util/file.h"

#include <sys/wait.h>

static char said[1 << 16];

/* Runs crosstalk with these words; returns its exit code, and its words in `said`. */
static int crosstalk(const char *const *words) {
    int pipe_fd[2], status = 0;
    size_t n = 0;
    if (pipe(pipe_fd) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        const char *argv[24] = {CT_PROGRAM};
        for (int k = 0; words[k] != NULL && k < 22; k++) argv[k + 1] = words[k];
        dup2(pipe_fd[1], STDOUT_FILENO);
        dup2(pipe_fd[1], STDERR_FILENO);
        close(pipe_fd[0]);
        execv(CT_PROGRAM, (char **)argv);
        _exit(127);
    }
    close(pipe_fd[1]);
    for (ssize_t got = 1; got > 0 && n < sizeof said - 1; n += (size_t)(got > 0 ? got : 0))
        got = read(pipe_fd[0], said + n, sizeof said - 1 - n);
    said[n] = '\0';
    close(pipe_fd[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define CROSSTALK(...) crosstalk((const char *const[]){__VA_ARGS__, NULL})
#define SAID(words)                                                                                \
    do {                                                                                           \
        if (strstr(said, words) == NULL) printf("    it said: %s\n", said);                        \
        CHECK(strstr(said, words) != NULL);                                                        \
    } while (0)

static void make_set(void) {
    put_picture("rgb.png", "train/cat/1.png", SIZE_MAX);
    put_picture("rgba.png", "train/cat/2.png", SIZE_MAX);
    put_picture("small.png", "train/dog/1.png", SIZE_MAX);
    put_picture("grey.png", "train/dog/2.png", SIZE_MAX);
    put_picture("rgb.png", "val/cat/1.png", SIZE_MAX);
    put_picture("rgb.png", "val/dog/1.png", SIZE_MAX);
}

static void info_counts_and_draws_a_contact_sheet(void) {
    ct_decoder *decoder = NULL;
    ct_picture p;
    scratch_open();
    make_set();
    CHECK(CROSSTALK("data", "info", scratch, "--sheet", in_scratch("sheet.png")) == 0);
    SAID("4 training and 2 test samples, 2 classes, 3x32x32");
    SAID("    1        2        1  dog");
    SAID("mean 0.");
    REQUIRE_OK(ct_decoder_create(&decoder));
    REQUIRE_OK(ct_decode_file(decoder, in_scratch("sheet.png"), 0, false, &p));
    CHECK(p.width == 2 + 10 * 34 && p.height == 2 + 2 * 34);
    CHECK(p.pixels[0] == 255 && p.pixels[(2 * 342 + 2 + 34 * 5) * 4] == 255); /* no sixth cat */
    ct_decoder_free(&decoder);
    CHECK(CROSSTALK("data", "info", scratch, "--sheet", in_scratch("sheet.png")) == 1);
    SAID("sheet.png is there already");
    CHECK(CROSSTALK("data", "info", scratch, "--force", "--sheet", in_scratch("sheet.png")) == 0);
    scratch_close();
}

static void verify_lists_every_broken_picture_and_fails(void) {
    scratch_open();
    make_set();
    CHECK(CROSSTALK("data", "verify", scratch) == 0);
    SAID("nothing wrong");
    put_picture("rgb.png", "train/cat/cut.png", 500);
    put_picture("rgb.jpg", "val/dog/cut.jpg", 500);
    write_file("train/dog/text.png", "hello", 5);
    CHECK(CROSSTALK("data", "verify", scratch) == 1);
    SAID("cat/cut.png: ");
    SAID("dog/cut.jpg: ");
    SAID("dog/text.png: neither JPEG nor PNG");
    SAID("3 pictures cannot be read");
    scratch_close();
}

static void an_imported_folder_reads_as_the_folder_did(void) {
    ct_dataset folder = {0}, pack = {0};
    scratch_open();
    make_set();
    put_picture("rgb.png", "train/cat/cut.png", 500);
    CHECK(CROSSTALK("data", "import", scratch, in_scratch("x.ctpack"), "--image-size", "20") == 0);
    SAID("4 pictures to train on and 2 to test, 20 pixels");
    CHECK(CROSSTALK("data", "import", scratch, in_scratch("x.ctpack")) == 1);
    SAID("is there already");
    CHECK(CROSSTALK("data", "info", in_scratch("x.ctpack")) == 0);
    SAID("4 training and 2 test samples, 2 classes, 3x20x20");
    SAID("    1        2        1  dog");
    ct_dataset_options options = {.dir = scratch, .image_size = 20};
    REQUIRE_OK(ct_dataset_open("folder", &options, &folder));
    options.dir = in_scratch("x.ctpack");
    REQUIRE_OK(ct_dataset_open("auto", &options, &pack));
    REQUIRE(pack.train.n == 4 && pack.test.n == 2 && pack.n_classes == 2);
    CHECK(memcmp(pack.train.pixels, folder.train.pixels, (size_t)4 * 3 * 20 * 20) == 0);
    CHECK(memcmp(pack.test.pixels, folder.test.pixels, (size_t)2 * 3 * 20 * 20) == 0);
    CHECK(memcmp(pack.train.labels, folder.train.labels, 4 * sizeof(int32_t)) == 0);
    CHECK(memcmp(pack.mean, folder.mean, 12) == 0 && memcmp(pack.std, folder.std, 12) == 0);
    ct_dataset_free(&pack);
    ct_dataset_free(&folder);
    CHECK(CROSSTALK("train", "--dataset", "pack", "--data-dir", in_scratch("x.ctpack"), "--agents",
                    "1", "--topology", "full", "--batch-size", "2", "--model", "mlp", "--partition",
                    "iid", "--iterations", "2", "--out", in_scratch("run")) == 0);
    options.image_size = 30;
    CHECK_FAILS(ct_dataset_open("pack", &options, &pack), CT_INVAL, "--image-size");
    CHECK(CROSSTALK("data", "import", "/usr/share/datasets/fashion-mnist", in_scratch("y")) != 0);
    scratch_close();
}

/* Who has pictures need not know what a data set is called, nor have a test part to look at them. */
static void own_pictures_need_no_more_than_their_folder(void) {
    scratch_open();
    put_picture("rgb.png", "cat/1.png", SIZE_MAX);
    put_picture("rgba.png", "cat/2.png", SIZE_MAX);
    put_picture("small.png", "dog/1.png", SIZE_MAX);
    put_picture("grey.png", "dog/2.png", SIZE_MAX);
    CHECK(CROSSTALK("data", "info", scratch) == 0);
    SAID("4 training and 0 test samples, 2 classes");
    SAID("no test part; train with --test-fraction");
    CHECK(CROSSTALK("train", "--data-dir", scratch, "--agents", "1", "--topology", "full",
                    "--batch-size", "1", "--model", "mlp:4", "--partition", "iid", "--iterations",
                    "1", "--test-fraction", "0.5", "--out", in_scratch("run")) == 0);
    SAID("taken for --dataset folder");
    SAID("dsgdm on folder: ");
    scratch_close();
}

static void odd_words_after_data_are_refused(void) {
    CHECK(CROSSTALK("data") == 2);
    SAID("get, info, verify, import or split");
    CHECK(CROSSTALK("data", "frobnicate") == 2);
    SAID("no 'data frobnicate'");
    CHECK(CROSSTALK("data", "info") == 2);
    CHECK(CROSSTALK("data", "get") == 2);
    CHECK(CROSSTALK("data", "get", "imagenet") == 2);
    CHECK(CROSSTALK("data", "get", "cifar10", "--checksum", "12") == 2);
    SAID("is not a SHA-256 sum");
    CHECK(CROSSTALK("data", "info", "/nonexistent") == 1);
    CHECK(CROSSTALK("help", "data") == 0);
    SAID("verify");
}

static void partition_draws_its_bubbles(void) {
    ct_blob svg = {0};
    scratch_open();
    CHECK(CROSSTALK("partition", "--dataset", "shapes", "--train-samples", "1000", "--agents", "4",
                    "--alpha", "0.1", "--svg", in_scratch("p.svg"), "--out",
                    in_scratch("p.csv")) == 0);
    SAID("classes an agent");
    SAID("hash ");
    REQUIRE_OK(ct_file_read(in_scratch("p.svg"), 1 << 20, &svg));
    CHECK(strncmp((char *)svg.bytes, "<svg ", 5) == 0);
    CHECK(strstr((char *)svg.bytes, "shapes, dirichlet 0.1") != NULL);
    /* Every count is in the picture: the numbers of all titles add up to the samples. */
    long sum = 0;
    for (const char *at = strstr((char *)svg.bytes, "<title>agent"); at != NULL;
         at = strstr(at + 1, "<title>agent"))
        sum += strtol(strchr(at, ':') + 1, NULL, 10);
    CHECK(sum == 1000);
    ct_blob_free(&svg);
    CHECK(ct_file_exists(in_scratch("p.csv")));
    CHECK(CROSSTALK("partition", "--dataset", "shapes", "--train-samples", "1000", "--png",
                    in_scratch("p.png")) == (CT_WITH_RSVG ? 0 : 2));
    CHECK(ct_file_exists(in_scratch("p.png")) == CT_WITH_RSVG);
    /* nothing is replaced, and nothing written where something else may not be */
    CHECK(CROSSTALK("partition", "--dataset", "shapes", "--svg", in_scratch("p.svg")) == 1);
    SAID("p.svg is there already");
    CHECK(CROSSTALK("partition", "--dataset", "shapes", "--svg", in_scratch("new.svg"), "--out",
                    in_scratch("p.csv")) == 1);
    CHECK(!ct_file_exists(in_scratch("new.svg")));
    scratch_close();
}

/* One record a file, packed anew: readable, but not what is published. */
static void an_archive_is_compared_with_what_is_published(void) {
    NEED_ARCHIVE;
    static archive packed;
    static const uint8_t record[3073];
    scratch_open();
    for (int k = 0; k < 6; k++) {
        char name[64];
        snprintf(name, sizeof name, "cifar-10-batches-bin/data_batch_%d.bin", k + 1);
        if (k == 5) snprintf(name, sizeof name, "cifar-10-batches-bin/test_batch.bin");
        add_member(&packed, name, '0', record, sizeof record);
    }
    end_archive(&packed);
    write_gzip("cifar-10-binary.tar.gz", packed.bytes, packed.n);
    CHECK(CROSSTALK("data", "verify", scratch) == 1);
    SAID("cifar-10-binary.tar.gz: not as published");
    CHECK(CROSSTALK("data", "verify", in_scratch("cifar-10-binary.tar.gz")) == 1);
    SAID("cifar-10-binary.tar.gz: not as published");
    scratch_close();
}

/* Files of the right names, in a folder as the archive would make it. */
static void unpacked_files_are_compared_with_what_is_published(void) {
    static const uint8_t record[3073];
    scratch_open();
    for (int k = 1; k < 6; k++) {
        char name[64];
        snprintf(name, sizeof name, "cifar-10-batches-bin/data_batch_%d.bin", k);
        write_file(name, record, sizeof record);
    }
    write_file("cifar-10-batches-bin/test_batch.bin", record, sizeof record);
    CHECK(CROSSTALK("data", "verify", scratch) == 1);
    SAID("data_batch_5.bin: not as published");
    SAID("6 files are not as published");
    CHECK(CROSSTALK("data", "get", "cifar10", "--data-dir", scratch) == 1);
    SAID("data_batch_1.bin is not as published: its SHA-256 is ");
    SAID("not cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5; get it anew with "
         "--force");
    scratch_close();
}

static void what_is_there_is_not_trusted_by_its_name(void) {
    static const char *const files[] = {"train-images-idx3", "train-labels-idx1",
                                        "t10k-images-idx3", "t10k-labels-idx1"};
    scratch_open();
    for (int k = 0; k < 4; k++) {
        char name[64];
        snprintf(name, sizeof name, "%s-ubyte.gz", files[k]);
        write_file(name, "mine", 4);
    }
    CHECK(CROSSTALK("data", "get", "mnist", "--data-dir", scratch) == 1);
    SAID("train-images-idx3-ubyte.gz is not as published");
    CHECK(CROSSTALK("data", "get", "mnist", "--data-dir", in_scratch("new"), "--url",
                    "http://127.0.0.1:1") == 2);
    SAID("http://127.0.0.1:1/train-images-idx3-ubyte.gz: must begin with https://");
    CHECK(CROSSTALK("data", "get", "mnist", "--checksum", "900150983cd24fb0d6963f7d28e17f72") == 2);
    SAID("is not a SHA-256 sum");
    scratch_close();
}

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !CT_WITH_PNG || !CT_WITH_JPEG) {
        printf("skip no program, or built without libjpeg or libpng\n");
        test_n_skipped++;
        return test_report();
    }
    TEST(info_counts_and_draws_a_contact_sheet);
    TEST(verify_lists_every_broken_picture_and_fails);
    TEST(an_imported_folder_reads_as_the_folder_did);
    TEST(own_pictures_need_no_more_than_their_folder);
    TEST(odd_words_after_data_are_refused);
    TEST(partition_draws_its_bubbles);
    TEST(an_archive_is_compared_with_what_is_published);
    TEST(unpacked_files_are_compared_with_what_is_published);
    TEST(what_is_there_is_not_trusted_by_its_name);
    return test_report();
}
