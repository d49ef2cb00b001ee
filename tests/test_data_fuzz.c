/* Every parser of the data module on good files damaged in fixed ways: bytes changed, cut out,
 * doubled and replaced by extreme values. Nothing may crash (the sanitizers look on in the debug
 * build). The targets are those of tests/fuzz, which libFuzzer drives in tests/test_fuzz.sh. */
#include "test.h"

#include "data_files.h"
#include "util/file.h"
#include "util/log.h"
#include "util/rng.h"

#define LLVMFuzzerTestOneInput fuzz_picture
#include "fuzz/fuzz_picture.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_npy
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#include "fuzz/fuzz_npy.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_tar
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#include "fuzz/fuzz_tar.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_idx
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#include "fuzz/fuzz_idx.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_cifar
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#include "fuzz/fuzz_cifar.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_pack
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#include "fuzz/fuzz_pack.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_partition
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#include "fuzz/fuzz_partition.c"
#undef LLVMFuzzerTestOneInput

enum { N_RUNS = 1500 };

static uint8_t damaged[1 << 18];

/* Damages a copy of the seed in one to four ways; returns its length. */
static size_t damage(const uint8_t *seed, size_t n, uint32_t run) {
    static const uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xff};
    ct_rng rng;
    ct_rng_init(&rng, 4, CT_RNG_TEST, 0, 0, run);
    n = n < sizeof damaged / 2 ? n : sizeof damaged / 2;
    memcpy(damaged, seed, n);
    for (uint32_t k = 0, ways = 1 + ct_rng_below(&rng, 4); k < ways && n > 0; k++) {
        /* most formats are decided in their first bytes */
        size_t reach = ct_rng_below(&rng, 2) ? n : n < 64 ? n : 64;
        size_t at = ct_rng_below(&rng, (uint32_t)reach), length = 1 + ct_rng_below(&rng, 16);
        if (length > n - at) length = n - at;
        switch (ct_rng_below(&rng, 5)) {
        case 0: damaged[at] ^= (uint8_t)(1u << ct_rng_below(&rng, 8)); break;
        case 1: memset(damaged + at, extremes[ct_rng_below(&rng, 5)], length); break;
        case 2: n = at; break;
        case 3:
            memmove(damaged + at, damaged + at + length, n - at - length);
            n -= length;
            break;
        default: memmove(damaged + at + length, damaged + at, n - at); n += length;
        }
    }
    return n;
}

static void survive(int (*target)(const uint8_t *, size_t), const uint8_t *seed, size_t n) {
    CHECK(target(seed, n) == 0);
    CHECK(target(seed, 0) == 0);
    for (uint32_t run = 0; run < N_RUNS; run++) {
        size_t length = damage(seed, n, run);
        CHECK(target(damaged, length) == 0);
    }
}

static void survive_fixture(const char *name) {
    char path[512];
    ct_blob seed = {0};
    snprintf(path, sizeof path, "%s/tests/fixtures/images/%s", CT_SOURCE_DIR, name);
    REQUIRE_OK(ct_file_read(path, 1 << 20, &seed));
    survive(fuzz_picture, seed.bytes, seed.n);
    ct_blob_free(&seed);
}

static void damaged_jpegs_are_survived(void) {
    survive_fixture("rgb.jpg");
    survive_fixture("progressive.jpg");
    survive_fixture("cmyk.jpg");
}

static void damaged_pngs_are_survived(void) {
    survive_fixture("interlaced.png");
    survive_fixture("palette4.png");
    survive_fixture("grey16.png");
}

static void damaged_arrays_are_survived(void) {
    uint8_t file[128 + 48] = "\x93NUMPY\x01\0\x76\0{'descr': '|u1', 'fortran_order': False, "
                             "'shape': (2, 2, 3, 4), }";
    memset(file + 10 + 59, ' ', 58);
    file[127] = '\n';
    survive(fuzz_npy, file, sizeof file);
}

static void damaged_archives_are_survived(void) {
    static archive a;
    static const char pax[] = "26 path=b/a longer name.x\n";
    a.n = 0;
    add_member(&a, "a/one", '0', "first", 5);
    add_member(&a, "ignored", 'x', pax, sizeof pax - 1);
    add_member(&a, "two", '0', "second", 6);
    end_archive(&a);
    survive(fuzz_tar, a.bytes, a.n);
}

static void damaged_idx_and_cifar_files_are_survived(void) {
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 5, 6};
    static const uint8_t records[2 * 3074] = {3, 99};
    survive(fuzz_idx, images, sizeof images);
    survive(fuzz_cifar, records, sizeof records);
}

static void damaged_packs_are_survived(void) {
    static const uint8_t pixels[4 * 4 * 4];
    ct_pack_writer *writer = NULL;
    ct_blob seed = {0};
    ct_picture p = {.width = 4, .height = 4, .pixels = pixels};
    ct_pack_facts facts = {.n_classes = 1, .side = 4, .size = 4, .n_test = 0};
    const char *path = fuzz_file("seed.ctpack", pixels, 0);
    REQUIRE_OK(ct_pack_writer_open(path, &writer));
    REQUIRE_OK(ct_pack_writer_add(writer, &p, 0, 0));
    REQUIRE_OK(ct_pack_writer_commit(&writer, &facts, "only"));
    REQUIRE_OK(ct_file_read(path, 1 << 16, &seed));
    survive(fuzz_pack, seed.bytes, seed.n);
    ct_blob_free(&seed);
}

static void damaged_partition_files_are_survived(void) {
    static const char text[] = "index,agent\n0,0\n1,1\n2,2\n39,0\n17,1\n5,2\n";
    survive(fuzz_partition, (const uint8_t *)text, sizeof text - 1);
}

int main(void) {
    TEST(damaged_jpegs_are_survived);
    TEST(damaged_pngs_are_survived);
    TEST(damaged_arrays_are_survived);
    TEST(damaged_archives_are_survived);
    TEST(damaged_idx_and_cifar_files_are_survived);
    TEST(damaged_packs_are_survived);
    TEST(damaged_partition_files_are_survived);
    snprintf(scratch, sizeof scratch, "%s", fuzz_dir());
    scratch_close();
    return test_report();
}
