/* Parts of data sets: what a rank holds is its own agents' samples, from whole files or from a part
 * of its own, and the run has the same bits. */
#include "ranks.h"

#include "data/part.h"
#include "data/pictures.h"
#include "data/png_write.h"
#include "run/run.h"
#include "util/memory.h"
#include "util/safetensors.h"

#define OPTIONS                                                                                    \
    " train --quiet --model mlp:8 --agents 6 --batch-size 16 --epochs 2 --lr 0.02 --threads 1 "    \
    "--save-agents --algorithm ccl "
#define SHAPES   "--dataset shapes --train-samples 600 --test-samples 50 "
#define PICTURES "--dataset pack --batch-size 4 "
#define PARTS    "--partition-file parts/partition.csv --data-dir parts/rank-%%r"

static bool same_note(const ct_tensors_note *note, const ct_tensors *b) {
    const char *other = ct_tensors_note_of(b, note->name);
    return strcmp(note->name, "data") == 0 || (other != NULL && strcmp(note->value, other) == 0);
}

/* Two model files, but for the fingerprint of all data, which a part does not know. */
static bool same_model(const char *a, const char *b, const char *name) {
    CT_SCOPED(ct_tensors) x = {0};
    CT_SCOPED(ct_tensors) y = {0};
    CHECK_OK(ct_tensors_read(ct_path_in(a, name).text, &x));
    CHECK_OK(ct_tensors_read(ct_path_in(b, name).text, &y));
    bool same = x.n > 0 && x.n == y.n && x.n_notes > 0;
    for (size_t k = 0; k < x.n_notes; k++) same = same && same_note(&x.notes[k], &y);
    for (size_t k = 0; k < x.n && same; k++)
        same = strcmp(x.items[k].name, y.items[k].name) == 0 &&
               x.items[k].count == y.items[k].count &&
               memcmp(x.items[k].values, y.items[k].values, x.items[k].count * sizeof(float)) == 0;
    if (!same) printf("    %s of %s and %s differ\n", name, a, b);
    return same;
}

static bool same_training(const char *a, const char *b) {
    return same_file(a, b, "metrics.jsonl") && same_file(a, b, "evaluation.json") &&
           same_model(a, b, "consensus.safetensors") && same_model(a, b, "agents.safetensors");
}

/* Splits for n ranks, trains on the parts and compares with `whole`. */
static void check_parts(const char *data, const char *from, const char *kind, int n) {
    char command[1024];
    snprintf(command, sizeof command,
             "%s data split --quiet --agents 6 --ranks %d --out parts %s%s", CT_PROGRAM, n, data,
             from);
    CHECK(shell("%s 2>&1%s", command, "") == 0);
    CHECK(strstr(said, "parts/rank-%r.") != NULL);
    snprintf(command, sizeof command, "mpirun -n %d %s" OPTIONS "%s", n, CT_PROGRAM, data);
    CHECK(shell("%s" PARTS ".%s --out spread 2>&1", command, kind) == 0);
    CHECK(same_training("whole", "spread"));
    remove_tree("parts");
    remove_tree("spread");
}

static void ranks_with_nothing_but_their_parts_train_the_same(void) {
    NEEDS_MPI();
    CHECK(shell("%s" OPTIONS SHAPES "--out whole 2>&1%s", CT_PROGRAM, "") == 0);
    check_parts(SHAPES, "", "ctpart", 2);
    check_parts(SHAPES, "", "ctpart", 3);
    remove_tree("whole");
}

/* 2 classes of 30 pictures each to train on, and 4 to test. */
static void make_pictures(void) {
    uint8_t pixels[20 * 16 * 3];
    for (int i = 0; i < 68; i++) {
        char path[64];
        snprintf(path, sizeof path, "pictures/%s/%d", i < 60 ? "train" : "val", i % 2);
        CHECK_OK(ct_dir_create(path));
        for (size_t k = 0; k < sizeof pixels; k++)
            pixels[k] = (uint8_t)(k * (size_t)(i + 3) + (i % 2 == 0 ? k : 0));
        snprintf(path, sizeof path, "pictures/%s/%d/%d.png", i < 60 ? "train" : "val", i % 2, i);
        CHECK_OK(ct_png_write(path, 20, 16, pixels));
    }
}

/* Cut out at random, so that the samples' numbers matter; in memory, and streamed. */
static void packed_pictures_are_cut_into_packs(void) {
    NEEDS_MPI();
    make_pictures();
    CHECK(shell("%s data import --quiet pictures all.ctpack --image-size 16 2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(shell("%s" OPTIONS PICTURES "--data-dir all.ctpack --out whole 2>&1%s", CT_PROGRAM, "") ==
          0);
    check_parts(PICTURES, "--data-dir all.ctpack", "ctpack", 2);
    check_parts(PICTURES, "--data-dir all.ctpack", "ctpack", 3);
    CHECK(shell("mpirun -n 3 %s" OPTIONS PICTURES "--data-dir all.ctpack --out spread 2>&1%s",
                CT_PROGRAM, "") == 0);
    CHECK(same_training("whole", "spread"));
    CHECK(shell("%s data split --ranks 2 --out parts --dataset folder --data-dir pictures "
                "--agents 6 2>&1%s",
                CT_PROGRAM, "") == 2);
    CHECK(strstr(said, "crosstalk data import") != NULL);
    remove_tree("whole");
    remove_tree("spread");
    remove_tree("pictures");
    remove("all.ctpack");
}

static void a_sample_that_is_not_there_is_named(void) {
    CHECK(shell("%s data split --ranks 3 --out parts --agents 6 " SHAPES "2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK_FAILS(train("dataset=shapes agents=6 data-dir=parts/rank-1.ctpart quiet=on out=x "
                      "partition-file=parts/partition.csv"),
                CT_IO, "rank-1.ctpart has not all samples of agent 0: 100 of 100 are missing");
    CHECK_FAILS(train("dataset=shapes agents=6 data-dir=parts/rank-1.ctpart quiet=on out=x"),
                CT_INVAL, "--partition-file");
    CHECK_FAILS(train("dataset=mnist agents=6 data-dir=parts/rank-1.ctpart quiet=on out=x"),
                CT_INVAL, "a part of shapes, not of mnist");
    CHECK_FAILS(train("dataset=auto agents=6 data-dir=parts/rank-%r.ctpart quiet=on out=x"),
                CT_INVAL, "--dataset");
    CHECK(shell("%s data split --ranks 3 --out parts --agents 6 " SHAPES "2>&1%s", CT_PROGRAM,
                "") == 1);
    CHECK(shell("%s data split --ranks 7 --out more --agents 6 " SHAPES "2>&1%s", CT_PROGRAM, "") ==
          2);
    CHECK(!ct_dir_exists("x") && !ct_dir_exists("more"));
    CHECK(shell("%s data split --ranks 2 --force --out parts --agents 6 " SHAPES "2>&1%s",
                CT_PROGRAM, "") == 0);
    CHECK(ct_file_exists("parts/rank-1.ctpart") && !ct_file_exists("parts/rank-2.ctpart"));
    remove_tree("parts");
}

/* Every pair of lambdas has the split's agents again, side by side. */
static void parts_are_cut_for_several_lambdas(void) {
    NEEDS_MPI();
#define PAIRS "--lambdas 0.1:0.1,0.01:0 "
    CHECK(shell("%s" OPTIONS SHAPES PAIRS "--out whole 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(shell("%s data split --ranks 2 --out parts --agents 6 " SHAPES PAIRS "2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(shell("mpirun -n 2 %s" OPTIONS SHAPES PAIRS PARTS ".ctpart --out spread 2>&1%s",
                CT_PROGRAM, "") == 0);
    CHECK(same_training("whole/m0.01-d0", "spread/m0.01-d0"));
    CHECK(same_training("whole/m0.1-d0.1", "spread/m0.1-d0.1"));
    remove_tree("whole");
    remove_tree("spread");
    remove_tree("parts");
}

/* The only agent has all of a part; so has a model that is tested. */
static void a_part_is_enough_for_one_agent(void) {
    CHECK(shell("%s data split --ranks 3 --out parts --agents 6 " SHAPES "2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(shell("%s" OPTIONS SHAPES "--agents 1 --data-dir parts/rank-1.ctpart --out run 2>&1%s",
                CT_PROGRAM, "") == 0);
    CHECK(shell("%s eval run 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(strstr(said, "50 test samples") != NULL);
    remove_tree("run");
    remove_tree("parts");
}

/* A run that began with all of the data goes on with parts of it. */
static void a_run_goes_on_where_only_parts_are(void) {
    NEEDS_MPI();
    CHECK(shell("%s" OPTIONS SHAPES "--out whole 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(shell("%s" OPTIONS SHAPES "--out moved --iterations 5 --checkpoint-every end 2>&1%s",
                CT_PROGRAM, "") == 0);
    CHECK(shell("%s data split --ranks 2 --out parts --agents 6 " SHAPES "2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(shell("mpirun -n 2 %s train --quiet --resume moved --iterations 0 " PARTS
                ".ctpart 2>&1%s",
                CT_PROGRAM, "") == 0);
    CHECK(same_training("whole", "moved"));
    remove_tree("whole");
    remove_tree("moved");
    remove_tree("parts");
}

static ct_status open_shapes(size_t n, ct_dataset *out) {
    ct_dataset_options options = {.seed = 1, .n_train = n, .n_test = 2};
    return ct_dataset_open("shapes", &options, out);
}

static void what_is_kept_is_what_was_there(void) {
    ct_dataset whole = {0}, part = {0};
    bool keep[8] = {false, true, true, false, false, true, false, true};
    bool again[4] = {true, false, true, true};
    static const uint32_t expected[] = {1, 5, 7};
    REQUIRE_OK(open_shapes(8, &whole));
    REQUIRE_OK(open_shapes(8, &part));
    CHECK_OK(ct_dataset_keep(&part, keep));
    CHECK_OK(ct_dataset_keep(&part, again));
    REQUIRE(part.train.n == 3 && part.test.n == 2 && ct_dataset_n_whole(&part) == 8);
    for (size_t i = 0; i < 3; i++) {
        CHECK(part.train_numbers[i] == expected[i]);
        CHECK(part.train.labels[i] == whole.train.labels[expected[i]]);
        CHECK(memcmp(part.train.pixels + i * 784, whole.train.pixels + expected[i] * 784, 784) ==
              0);
    }
    ct_dataset_free(&whole);
    ct_dataset_free(&part);
}

/* Opens `file`; whatever is in it, nothing but CT_OK and CT_IO comes out. */
static ct_status opens(const char *path, const uint8_t *bytes, size_t n) {
    ct_dataset d = {0};
    ct_dataset_options options = {.dir = path};
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL && fwrite(bytes, 1, n, f) == n);
    if (f != NULL) fclose(f);
    ct_clear_message();
    ct_status status = ct_part_open(path, "shapes", &options, &d);
    ct_dataset_free(&d);
    return status;
}

static void a_damaged_part_is_refused_at_every_byte(void) {
    ct_dataset d = {0};
    ct_dataset_options options = {0};
    ct_blob blob = {0};
    bool keep[4] = {true, false, true, false};
    int n_missed = 0;
    REQUIRE_OK(open_shapes(4, &d));
    REQUIRE_OK(ct_part_write(&d, &options, keep, "x.ctpart"));
    REQUIRE_OK(ct_file_read("x.ctpart", 1 << 20, &blob));
    CHECK(opens("x.ctpart", blob.bytes, blob.n) == CT_OK);
    for (size_t at = 0; at < blob.n; at++) {
        blob.bytes[at] ^= (uint8_t)(1u << at % 8);
        n_missed += opens("x.ctpart", blob.bytes, blob.n) != CT_IO;
        blob.bytes[at] ^= (uint8_t)(1u << at % 8);
        n_missed += opens("x.ctpart", blob.bytes, at) != CT_IO;
    }
    CHECK(blob.n > 3000 && n_missed == 0);
    ct_blob_free(&blob);
    ct_dataset_free(&d);
    remove("x.ctpart");
}

/* Where the header of a part has its fields; its checksum is the last one. */
enum { AT_WHOLE = 72, AT_TRAIN = 80, AT_TEST = 88, AT_CLASSES = 104, AT_CHANNELS = 108 };
enum { AT_HEIGHT = 112, AT_WIDTH = 116, AT_PADDING = 120, AT_FLIP = 124, AT_COARSE = 128 };
enum { AT_MEAN = 136, AT_DEVIATION = 200, AT_RESERVED = 264, AT_CRC = 268 };

/* The file with one field changed and its checksum right again. */
static void check_field(const ct_blob *file, size_t at, uint32_t value, const char *words) {
    uint32_t before;
    memcpy(&before, file->bytes + at, sizeof before);
    memcpy(file->bytes + at, &value, sizeof value);
    uint32_t crc = ct_crc32(0, file->bytes, AT_CRC);
    memcpy(file->bytes + AT_CRC, &crc, sizeof crc);
    bool ok = opens("x.ctpart", file->bytes, file->n) == CT_IO &&
              strstr(ct_message(), "x.ctpart: its header says that ") != NULL &&
              strstr(ct_message(), words) != NULL;
    if (!ok) printf("    field %zu = %u: %s\n", at, (unsigned)value, ct_message());
    CHECK(ok);
    memcpy(file->bytes + at, &before, sizeof before);
}

static void every_field_of_a_part_has_a_range(void) {
    static const uint32_t nan_bits = 0x7FC00000, two_bits = 0x40000000;
    ct_dataset d = {0};
    ct_dataset_options options = {0};
    ct_blob blob = {0};
    bool keep[4] = {true, false, true, false};
    REQUIRE_OK(open_shapes(4, &d));
    REQUIRE_OK(ct_part_write(&d, &options, keep, "x.ctpart"));
    REQUIRE_OK(ct_file_read("x.ctpart", 1 << 20, &blob));
    check_field(&blob, AT_WHOLE, 1, "the whole is 1; it must be 2 to");
    check_field(&blob, AT_TRAIN, 0, "the number of training samples is 0");
    check_field(&blob, AT_TEST, 0, "the number of test samples is 0");
    check_field(&blob, AT_CLASSES, 0, "the number of classes is 0");
    check_field(&blob, AT_CLASSES, 65537, "the number of classes is 65537");
    check_field(&blob, AT_CHANNELS, 17, "the number of channels is 17");
    check_field(&blob, AT_HEIGHT, 65536, "the height is 65536");
    check_field(&blob, AT_WIDTH, 0, "the width is 0");
    check_field(&blob, AT_PADDING, INT32_MAX, "the crop's padding is 2147483647; it must be 0 to");
    check_field(&blob, AT_PADDING, UINT32_MAX, "the crop's padding is");
    check_field(&blob, AT_FLIP, 2, "the flip is 2");
    check_field(&blob, AT_COARSE, 2, "the kind of labels is 2");
    check_field(&blob, AT_MEAN, nan_bits, "a mean is");
    check_field(&blob, AT_MEAN, two_bits, "a mean is 2");
    check_field(&blob, AT_DEVIATION, 0, "a deviation is 0");
    check_field(&blob, AT_RESERVED, 1, "a reserved field is 1");
    CHECK(shell(CT_PROGRAM " data verify x.ctpart 2>&1", "", "") == 1);
    CHECK(strstr(said, "a reserved field is 1") != NULL);
    ct_blob_free(&blob);
    ct_dataset_free(&d);
    remove("x.ctpart");
}

int main(void) {
    prepare_ranks();
    if (!enter_folder()) return 1;
    TEST(ranks_with_nothing_but_their_parts_train_the_same);
    TEST(packed_pictures_are_cut_into_packs);
    TEST(a_sample_that_is_not_there_is_named);
    TEST(parts_are_cut_for_several_lambdas);
    TEST(a_part_is_enough_for_one_agent);
    TEST(a_run_goes_on_where_only_parts_are);
    TEST(what_is_kept_is_what_was_there);
    TEST(a_damaged_part_is_refused_at_every_byte);
    TEST(every_field_of_a_part_has_a_range);
    remove_tree(folder);
    return test_report();
}
