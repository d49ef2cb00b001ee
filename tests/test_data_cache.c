/* Packed pictures and the on-disk cache: the same pictures, whatever happens to the file. */
#include "test.h"

#include "ct_config.h"
#include "data/dataset.h"
#include "data/pack.h"
#include "data/pictures.h"
#include "data_files.h"
#include "util/file.h"
#include "util/log.h"

#include <dirent.h>
#include <sys/wait.h>

enum { SIZE = 16, N_IMAGE = 3 * SIZE * SIZE };

static void make_set(void) {
    static const char *const names[] = {"rgb.png", "rgba.png", "tall.jpg", "grey.png", "large.jpg"};
    for (int k = 0; k < 10; k++) {
        char name[64];
        snprintf(name, sizeof name, "set/%s/%s/%d.png", k < 8 ? "train" : "val", k % 2 ? "b" : "a",
                 k);
        put_picture(names[k % 5], name, SIZE_MAX);
    }
    put_picture("rgb.png", "set/train/a/broken.png", 700);
}

static ct_dataset_options options_with(bool cached) {
    static char dir[192], cache[192];
    snprintf(dir, sizeof dir, "%s/set", scratch);
    snprintf(cache, sizeof cache, "%s/cache/here", scratch);
    return (ct_dataset_options){
        .dir = dir, .image_size = SIZE, .n_workers = 2, .cache = cached ? cache : NULL};
}

/* The only pack of training pictures in the cache; "" if there is none, or unfinished files. */
static const char *pack_path(void) {
    static char path[512];
    DIR *dir = opendir(in_scratch("cache/here"));
    int n = 0, n_odd = 0;
    path[0] = '\0';
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        const char *dot = strrchr(e->d_name, '.');
        if (e->d_name[0] == '.') continue;
        if (dot == NULL || strcmp(dot, ".ctpack") != 0) n_odd++;
        struct stat info;
        char found[512];
        snprintf(found, sizeof found, "%s/cache/here/%s", scratch, e->d_name);
        /* the training pack is the larger one */
        struct stat best = {0};
        if (path[0] != '\0') stat(path, &best);
        if (stat(found, &info) == 0 && info.st_size > best.st_size)
            memcpy(path, found, sizeof path);
        n++;
    }
    if (dir != NULL) closedir(dir);
    CHECK(n_odd == 0);
    return n > 0 ? path : "";
}

static void check_same(const ct_dataset *a, const ct_dataset *b) {
    REQUIRE(a->train.n == 8 && b->train.n == 8 && a->test.n == 2 && b->test.n == 2);
    CHECK(memcmp(a->train.pixels, b->train.pixels, 8 * N_IMAGE) == 0);
    CHECK(memcmp(a->test.pixels, b->test.pixels, 2 * N_IMAGE) == 0);
    CHECK(memcmp(a->train.labels, b->train.labels, 8 * sizeof(int32_t)) == 0);
}

static void a_cached_set_is_the_same_set(void) {
    ct_dataset plain = {0}, first = {0}, second = {0};
    scratch_open();
    make_set();
    ct_dataset_options options = options_with(false), cached = options_with(true);
    REQUIRE_OK(ct_dataset_open("imagenette", &options, &plain));
    REQUIRE_OK(ct_dataset_open("imagenette", &cached, &first));
    check_same(&plain, &first);
    CHECK(pack_path()[0] != '\0');
    struct stat before, after;
    CHECK(stat(pack_path(), &before) == 0);
    REQUIRE_OK(ct_dataset_open("imagenette", &cached, &second));
    check_same(&plain, &second);
    CHECK(stat(pack_path(), &after) == 0 && before.st_ino == after.st_ino); /* not made anew */
    ct_dataset_free(&second);
    ct_dataset_free(&first);
    ct_dataset_free(&plain);
    scratch_close();
}

static void a_damaged_cache_is_noticed_and_made_anew(void) {
    ct_dataset plain = {0}, d = {0};
    ct_blob file = {0};
    scratch_open();
    make_set();
    ct_dataset_options options = options_with(false), cached = options_with(true);
    REQUIRE_OK(ct_dataset_open("imagenette", &options, &plain));
    REQUIRE_OK(ct_dataset_open("imagenette", &cached, &d));
    ct_dataset_free(&d);
    char path[512];
    snprintf(path, sizeof path, "%s", pack_path());
    REQUIRE_OK(ct_file_read(path, 1 << 24, &file));
    for (size_t at = 0; at < file.n + 40; at += file.n / 37) {
        FILE *f = fopen(path, "wb"); /* a byte changed, or cut there */
        REQUIRE(f != NULL);
        size_t n = at < file.n ? file.n : file.n - 17;
        if (at < file.n) file.bytes[at] ^= 0x40;
        fwrite(file.bytes, 1, n, f);
        fclose(f);
        if (at < file.n) file.bytes[at] ^= 0x40;
        REQUIRE_OK(ct_dataset_open("imagenette", &cached, &d));
        check_same(&plain, &d);
        ct_dataset_free(&d);
    }
    ct_blob_free(&file);
    ct_dataset_free(&plain);
    scratch_close();
}

static void a_changed_picture_is_not_taken_from_the_cache(void) {
    ct_dataset plain = {0}, d = {0};
    scratch_open();
    make_set();
    ct_dataset_options options = options_with(false), cached = options_with(true);
    REQUIRE_OK(ct_dataset_open("imagenette", &cached, &d));
    ct_dataset_free(&d);
    put_picture("palette.png", "set/train/a/0.png", SIZE_MAX);
    REQUIRE_OK(ct_dataset_open("imagenette", &options, &plain));
    REQUIRE_OK(ct_dataset_open("imagenette", &cached, &d));
    check_same(&plain, &d);
    ct_dataset_free(&d);
    ct_dataset_free(&plain);
    scratch_close();
}

static void several_processes_can_make_one_cache(void) {
    scratch_open();
    make_set();
    pid_t children[4];
    for (int k = 0; k < 4; k++) {
        children[k] = fork();
        if (children[k] != 0) continue;
        ct_dataset d = {0};
        ct_dataset_options cached = options_with(true);
        bool ok = ct_dataset_open("imagenette", &cached, &d) == CT_OK && d.train.n == 8;
        ct_dataset_free(&d);
        _exit(ok ? 0 : 1);
    }
    for (int k = 0; k < 4; k++) {
        int status = 1;
        waitpid(children[k], &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ct_dataset d = {0};
    ct_dataset_options cached = options_with(true);
    CHECK(pack_path()[0] != '\0');
    CHECK_OK(ct_dataset_open("imagenette", &cached, &d));
    ct_dataset_free(&d);
    scratch_close();
}

static void a_cache_that_cannot_be_written_is_reported(void) {
    ct_dataset d = {0};
    scratch_open();
    make_set();
    ct_dataset_options cached = options_with(true);
    write_file("cache", "a file in the way", 17);
    CHECK_FAILS(ct_dataset_open("imagenette", &cached, &d), CT_IO, "cache");
    scratch_close();
}

/* Each byte of a small pack changed, and the file cut everywhere: refused or read as it was. */
static void a_damaged_pack_never_gives_other_pixels(void) {
    uint8_t pixels[6 * 5 * 4];
    ct_pack_writer *writer = NULL;
    ct_decoder *decoder = NULL;
    ct_blob file = {0};
    ct_picture p = {.width = 6, .height = 5, .pixels = pixels}, got;
    ct_pack_facts facts = {.name = "x", .n_classes = 2, .side = 5, .size = 5, .n_test = 1};
    scratch_open();
    for (size_t k = 0; k < sizeof pixels; k++) pixels[k] = (uint8_t)(k * 7);
    REQUIRE_OK(ct_decoder_create(&decoder));
    REQUIRE_OK(ct_pack_writer_open(in_scratch("x.ctpack"), &writer));
    REQUIRE_OK(ct_pack_writer_add(writer, &p, 0, 0));
    REQUIRE_OK(ct_pack_writer_add(writer, &p, 4, 1));
    REQUIRE_OK(ct_pack_writer_commit(&writer, &facts, "one\0two"));
    REQUIRE_OK(ct_file_read(in_scratch("x.ctpack"), 1 << 16, &file));
    for (size_t at = 0; at < 2 * file.n; at++) {
        ct_pack *pack = NULL;
        if (at < file.n) file.bytes[at] ^= 0x11;
        write_file("y.ctpack", file.bytes, at < file.n ? file.n : at - file.n);
        if (at < file.n) file.bytes[at] ^= 0x11;
        if (ct_pack_open(in_scratch("y.ctpack"), &pack) != CT_OK) {
            CHECK(strstr(ct_message(), "y.ctpack") != NULL);
            ct_clear_message();
            continue;
        }
        CHECK(at < file.n); /* a cut one is never opened */
        for (size_t i = 0; i < 2; i++)
            if (ct_pack_read(pack, i, decoder, &got) == CT_OK)
                for (int k = 0; k < 30 * 4; k++) CHECK(k % 4 == 3 || got.pixels[k] == pixels[k]);
        ct_pack_close(&pack);
    }
    ct_blob_free(&file);
    ct_decoder_free(&decoder);
    scratch_close();
}

/* A pack whose sums are right and whose facts are not. */
static void check_facts(const ct_pack_facts *facts, const char *words) {
    uint8_t pixels[6 * 5 * 4] = {0};
    ct_pack_writer *writer = NULL;
    ct_pack *pack = NULL;
    ct_picture p = {.width = 6, .height = 5, .pixels = pixels};
    REQUIRE_OK(ct_pack_writer_open(in_scratch("x.ctpack"), &writer));
    REQUIRE_OK(ct_pack_writer_add(writer, &p, 0, 0));
    REQUIRE_OK(ct_pack_writer_add(writer, &p, 4, 1));
    REQUIRE_OK(ct_pack_writer_commit(&writer, facts, NULL));
    CHECK_FAILS(ct_pack_open(in_scratch("x.ctpack"), &pack), words == NULL ? CT_OK : CT_IO,
                words == NULL ? "" : words);
    ct_pack_close(&pack);
}

static void every_fact_of_a_pack_has_a_range(void) {
    static const ct_pack_facts good = {
        .n_classes = 2, .side = 5, .size = 5, .n_test = 1, .std = {1, 1, 1}};
    ct_pack_facts bad;
    scratch_open();
    check_facts(&good, NULL);
#define CHECK_FACT(field, value, words)                                                            \
    bad = good;                                                                                    \
    bad.field = (value);                                                                           \
    check_facts(&bad, "x.ctpack: its header says that " words)
    CHECK_FACT(size, INT32_MAX, "the size is 2147483647; it must be 1 to 5");
    CHECK_FACT(size, 0, "the size is 0");
    CHECK_FACT(size, 6, "the size is 6");
    CHECK_FACT(side, 0, "the shorter side is 0; it must be 1 to 8192");
    CHECK_FACT(side, UINT32_MAX, "the shorter side is 4294967295");
    CHECK_FACT(n_test, 3, "the number of test pictures is 3; it must be 0 to 2");
    CHECK_FACT(n_test, UINT64_MAX, "the number of test pictures is");
    CHECK_FACT(n_classes, 0, "the number of classes is 0");
    CHECK_FACT(n_classes, 65537, "the number of classes is 65537");
    CHECK_FACT(mean[0], NAN, "a mean is ");
    CHECK_FACT(mean[2], 2, "a mean is 2");
    CHECK_FACT(std[1], -1, "a deviation is -1");
    CHECK_FACT(std[2], INFINITY, "a deviation is inf");
#undef CHECK_FACT
    scratch_close();
}

int main(void) {
    TEST(a_damaged_pack_never_gives_other_pixels);
    TEST(every_fact_of_a_pack_has_a_range);
    if (!CT_WITH_JPEG || !CT_WITH_PNG) {
        printf("skip built without libjpeg or libpng\n");
        test_n_skipped++;
        return test_report();
    }
    TEST(a_cached_set_is_the_same_set);
    TEST(a_damaged_cache_is_noticed_and_made_anew);
    TEST(a_changed_picture_is_not_taken_from_the_cache);
    TEST(several_processes_can_make_one_cache);
    TEST(a_cache_that_cannot_be_written_is_reported);
    return test_report();
}
