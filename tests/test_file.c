/* Files and tensors of src/util: whole or refused, never half. */
#include "test.h"

#include <errno.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "util/file.h"
#include "util/memory.h"
#include "util/safetensors.h"
#include "util/text.h"

static char folder[] = "/tmp/crosstalk-test-XXXXXX";

/* A name in the test's own folder, valid until the next call. */
static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int n_files(void) {
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    if (dir != NULL) closedir(dir);
    return n;
}

static bool file_is(const char *path, const void *bytes, size_t n) {
    ct_blob blob = {0};
    if (ct_file_read(path, 1 << 20, &blob) != CT_OK) return false;
    bool same = blob.n == n && (n == 0 || memcmp(blob.bytes, bytes, n) == 0) && blob.bytes[n] == 0;
    ct_blob_free(&blob);
    return same;
}

static void a_file_reads_back_what_was_written(void) {
    const char *path = in_folder("plain");
    REQUIRE_OK(ct_file_write(path, "hello", 5));
    CHECK(file_is(path, "hello", 5));
    REQUIRE_OK(ct_file_write(path, "bye", 3));
    CHECK(file_is(path, "bye", 3));
    REQUIRE_OK(ct_file_write(path, NULL, 0));
    CHECK(file_is(path, "", 0));
    REQUIRE_OK(ct_file_replace(path, "again", 5));
    CHECK(file_is(path, "again", 5));
    CHECK(n_files() == 1);
    remove(path);
}

static void a_file_may_be_as_large_as_allowed_and_no_larger(void) {
    const char *path = in_folder("plain");
    ct_blob blob = {0};
    REQUIRE_OK(ct_file_write(path, "12345", 5));
    CHECK_OK(ct_file_read(path, 5, &blob));
    ct_blob_free(&blob);
    CHECK_FAILS(ct_file_read(path, 4, &blob), CT_IO, "4");
    CHECK_FAILS(ct_file_read(path, 0, &blob), CT_IO, "0");
    CHECK(blob.bytes == NULL);
    remove(path);
}

static void what_is_no_plain_file_is_refused(void) {
    ct_blob blob = {0};
    CHECK_FAILS(ct_file_read(in_folder("missing"), 100, &blob), CT_IO, "No such file");
    CHECK_FAILS(ct_file_read(folder, 100, &blob), CT_IO, "not a plain file");
    CHECK_FAILS(ct_file_read("", 100, &blob), CT_IO, "");
    const char *fifo = in_folder("fifo");
    REQUIRE(mkfifo(fifo, 0600) == 0);
    CHECK_FAILS(ct_file_read(fifo, 100, &blob), CT_IO, "not a plain file");
    remove(fifo);
}

static void a_failed_write_leaves_the_old_file(void) {
    const char *path = in_folder("kept");
    REQUIRE_OK(ct_file_write(path, "old", 3));
    /* A limit on the size of files stands for a full disk. */
    struct rlimit before, limit;
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit = before;
    limit.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    char *large = ct_alloc(1 << 20, 1);
    CHECK_FAILS(ct_file_write(path, large, 1 << 20), CT_IO, "kept");
    setrlimit(RLIMIT_FSIZE, &before);
    ct_free(large);
    CHECK(file_is(path, "old", 3));
    CHECK(n_files() == 1);
    remove(path);
}

static void writing_where_one_cannot_is_refused(void) {
    CHECK_FAILS(ct_file_write(in_folder("no/such/folder"), "x", 1), CT_IO, "No such file");
    CHECK_FAILS(ct_file_write("/proc/crosstalk-test", "x", 1), CT_IO, "/proc/crosstalk-test");
    const char *dir = in_folder("dir");
    REQUIRE_OK(ct_dir_create(dir));
    CHECK_FAILS(ct_file_write(dir, "x", 1), CT_IO, "dir");
    CHECK(n_files() == 1 && ct_dir_exists(dir));
    rmdir(dir);
}

static void an_abandoned_writer_leaves_nothing(void) {
    const char *path = in_folder("kept");
    REQUIRE_OK(ct_file_write(path, "old", 3));
    ct_writer *writer = NULL;
    REQUIRE_OK(ct_writer_open(path, &writer));
    CHECK_OK(ct_writer_add(writer, "new", 3));
    CHECK(n_files() == 2 && file_is(path, "old", 3));
    ct_writer_abandon(&writer);
    CHECK(writer == NULL && n_files() == 1 && file_is(path, "old", 3));
    ct_writer_abandon(&writer);
    REQUIRE_OK(ct_writer_open(path, &writer));
    CHECK_OK(ct_writer_add(writer, "ne", 2));
    CHECK_OK(ct_writer_add(writer, "w", 1));
    CHECK_OK(ct_writer_commit(&writer));
    CHECK(writer == NULL && n_files() == 1 && file_is(path, "new", 3));
    remove(path);
}

/* Packs `n` bytes as one gzip member at `out` and returns its length. */
static size_t pack(const void *bytes, size_t n, uint8_t *out, size_t n_max) {
    z_stream z = {0};
    if (deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)n_max;
    int code = deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return code == Z_STREAM_END ? n_max - z.avail_out : 0;
}

/* 3000 bytes that do not pack to nothing. */
static void fill_noise(uint8_t *bytes, size_t n) {
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(x >> 29 | (i & 0x40));
    }
}

static void gzip_is_unpacked_on_the_way(void) {
    uint8_t plain[3000], packed[8000];
    fill_noise(plain, sizeof plain);
    size_t n = pack(plain, sizeof plain, packed, sizeof packed);
    const char *path = in_folder("file.gz");
    REQUIRE(n > 0);
    REQUIRE_OK(ct_file_write(path, packed, n));
    CHECK(file_is(path, plain, sizeof plain));
    ct_blob blob = {0};
    CHECK_OK(ct_file_read(path, 3000, &blob));
    ct_blob_free(&blob);
    CHECK_FAILS(ct_file_read(path, 2999, &blob), CT_IO, "2999");
    n = pack("", 0, packed, sizeof packed);
    REQUIRE_OK(ct_file_write(path, packed, n));
    CHECK(file_is(path, "", 0));
    CHECK_OK(ct_file_read(path, 0, &blob));
    ct_blob_free(&blob);
    remove(path);
}

static void gzip_may_have_several_members_but_nothing_else(void) {
    uint8_t packed[1000];
    size_t n_first = pack("hello ", 6, packed, 500);
    size_t n = n_first + pack("world", 5, packed + n_first, 500);
    const char *path = in_folder("file.gz");
    REQUIRE_OK(ct_file_write(path, packed, n));
    CHECK(file_is(path, "hello world", 11));
    ct_blob blob = {0};
    packed[n] = 'x';
    REQUIRE_OK(ct_file_write(path, packed, n + 1));
    CHECK_FAILS(ct_file_read(path, 1000, &blob), CT_IO, "gzip");
    REQUIRE_OK(ct_file_write(path, packed, n - 3));
    CHECK_FAILS(ct_file_read(path, 1000, &blob), CT_IO, "too early");
    remove(path);
}

static void cut_or_damaged_gzip_is_refused(void) {
    uint8_t plain[3000], packed[8000];
    fill_noise(plain, sizeof plain);
    size_t n = pack(plain, sizeof plain, packed, sizeof packed);
    const char *path = in_folder("file.gz");
    ct_blob blob = {0};
    for (size_t cut = 2; cut < n; cut += cut < 20 || cut + 20 > n ? 1 : 37) {
        REQUIRE_OK(ct_file_write(path, packed, cut));
        CHECK_FAILS(ct_file_read(path, 4000, &blob), CT_IO, "gzip");
    }
    /* Bytes 4 .. 9 are time stamp and system: nobody's business. Byte 3 (flags) may move where the
     * data begin; the checksum finds that out. */
    for (size_t at = 10; at<n; at += at + 20> n ? 1 : 41) {
        packed[at] ^= 0x10;
        REQUIRE_OK(ct_file_write(path, packed, n));
        CHECK(ct_file_read(path, 4000, &blob) == CT_IO);
        packed[at] ^= 0x10;
    }
    ct_clear_message();
    remove(path);
}

static void a_gzip_bomb_stops_at_the_limit(void) {
    enum { N_MIB = 64 };
    size_t n_max = 1 << 20;
    uint8_t *zeros = ct_alloc(N_MIB << 20, 1), *packed = ct_alloc(n_max, 1);
    size_t n = pack(zeros, N_MIB << 20, packed, n_max);
    ct_free(zeros);
    const char *path = in_folder("bomb.gz");
    CHECK(n > 0 && n < 100000);
    CHECK_OK(ct_file_write(path, packed, n));
    ct_blob blob = {0};
    CHECK_FAILS(ct_file_read(path, 1 << 20, &blob), CT_IO, "1048576");
    ct_free(packed);
    remove(path);
}

/* Even where the whole would be allowed; but short files of equal bytes are common. */
static void what_unpacks_to_far_more_than_data_does_is_refused(void) {
    const size_t most = CT_FREE_EXPANSION;
    uint8_t *zeros = ct_alloc(4 * most, 1), *packed = ct_alloc(1 << 20, 1);
    const char *path = in_folder("bomb.gz");
    ct_blob blob = {0};
    CHECK_OK(ct_file_write(path, packed, pack(zeros, 4 * most, packed, 1 << 20)));
    CHECK_FAILS(ct_file_read(path, SIZE_MAX / 4, &blob), CT_IO, "100 times");
    CHECK_OK(ct_file_write(path, packed, pack(zeros, most + 1, packed, 1 << 20)));
    CHECK_FAILS(ct_file_read(path, SIZE_MAX / 4, &blob), CT_IO, "bomb.gz");
    CHECK_OK(ct_file_write(path, packed, pack(zeros, most, packed, 1 << 20)));
    CHECK_OK(ct_file_read(path, SIZE_MAX / 4, &blob));
    CHECK(blob.n == most);
    ct_blob_free(&blob);
    for (size_t k = 0; k < 4 * most; k += 100) zeros[k] = (uint8_t)(k * 2654435761u >> 13);
    CHECK_OK(ct_file_write(path, packed, pack(zeros, 4 * most, packed, 1 << 20)));
    CHECK_OK(ct_file_read(path, SIZE_MAX / 4, &blob)); /* 60 times or so */
    CHECK(blob.n == 4 * most && memcmp(blob.bytes, zeros, blob.n) == 0);
    ct_blob_free(&blob);
    ct_free(packed);
    ct_free(zeros);
    remove(path);
}

static void directories_are_created_with_their_parents(void) {
    const char *path = in_folder("a/b//c/");
    CHECK_OK(ct_dir_create(path));
    CHECK(ct_dir_exists(path) && !ct_file_exists(path));
    CHECK_OK(ct_dir_create(path));
    REQUIRE_OK(ct_file_write(in_folder("a/file"), "x", 1));
    CHECK(ct_file_exists(in_folder("a/file")) && !ct_dir_exists(in_folder("a/file")));
    CHECK_FAILS(ct_dir_create(in_folder("a/file/b")), CT_IO, "a/file");
    CHECK_FAILS(ct_dir_create(in_folder("a/file")), CT_IO, "a/file");
    CHECK_FAILS(ct_dir_create(""), CT_IO, "");
    CHECK_OK(ct_dir_create("/"));
    remove(in_folder("a/file"));
    rmdir(in_folder("a/b/c"));
    rmdir(in_folder("a/b"));
    rmdir(in_folder("a"));
}

static void paths_are_joined_with_one_slash(void) {
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}};
    for (int i = 0; i < 4; i++) {
        ct_path path = ct_path_in(cases[i][0], cases[i][1]);
        CHECK(strcmp(path.text, cases[i][2]) == 0);
    }
    char name[5000];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK(!ct_file_exists(ct_path_in("", name).text) && errno == ENAMETOOLONG);
}

static void crc32_is_the_usual_one(void) {
    CHECK(ct_crc32(0, "123456789", 9) == 0xCBF43926u);
    CHECK(ct_crc32(ct_crc32(0, "1234", 4), "56789", 5) == 0xCBF43926u);
    CHECK(ct_crc32(17, NULL, 0) == 17);
}

static float sample_values[] = {1.5f, -2.0f, 0.0f, 3.25f, 1e-40f, 7.0f};
static const ct_tensor sample[] = {
    {.name = (char *)"conv1.weight",
     .n_dims = 2,
     .dims = {2, 2},
     .count = 4,
     .values = sample_values},
    {.name = (char *)"b \"\xc3\xa9\"",
     .n_dims = 1,
     .dims = {1},
     .count = 1,
     .values = sample_values + 4},
    {.name = (char *)"scalar", .n_dims = 0, .count = 1, .values = sample_values + 5},
    {.name = (char *)"empty", .n_dims = 2, .dims = {3, 0}, .count = 0, .values = sample_values},
};
enum { N_SAMPLE = sizeof sample / sizeof *sample };

static void tensors_read_back_what_was_written(void) {
    const char *path = in_folder("t.safetensors");
    REQUIRE_OK(ct_tensors_write(path, sample, N_SAMPLE));
    ct_tensors tensors = {0};
    REQUIRE_OK(ct_tensors_read(path, &tensors));
    REQUIRE(tensors.n == N_SAMPLE);
    for (int i = 0; i < N_SAMPLE; i++) {
        const ct_tensor *t = ct_tensors_find(&tensors, sample[i].name);
        REQUIRE(t == &tensors.items[i]);
        CHECK(t->n_dims == sample[i].n_dims && t->count == sample[i].count);
        CHECK(memcmp(t->dims, sample[i].dims, sizeof t->dims) == 0);
        CHECK(memcmp(t->values, sample[i].values, t->count * sizeof(float)) == 0);
    }
    CHECK(ct_tensors_find(&tensors, "nobody") == NULL);
    ct_tensors_free(&tensors);
    ct_tensors_free(&tensors);
    REQUIRE_OK(ct_tensors_write(path, NULL, 0));
    REQUIRE_OK(ct_tensors_read(path, &tensors));
    CHECK(tensors.n == 0);
    ct_tensors_free(&tensors);
    remove(path);
}

static void tensors_cut_anywhere_are_refused(void) {
    const char *path = in_folder("t.safetensors");
    ct_blob blob = {0};
    REQUIRE_OK(ct_tensors_write(path, sample, N_SAMPLE));
    REQUIRE_OK(ct_file_read(path, 1 << 20, &blob));
    ct_tensors tensors = {0};
    for (size_t cut = 0; cut < blob.n; cut++) {
        CHECK_OK(ct_file_write(path, blob.bytes, cut));
        CHECK_FAILS(ct_tensors_read(path, &tensors), CT_IO, "t.safetensors");
        CHECK(tensors.items == NULL);
    }
    CHECK_OK(
        ct_file_write(path, blob.bytes, blob.n + 1)); /* the 0 byte behind it is one too many */
    CHECK_FAILS(ct_tensors_read(path, &tensors), CT_IO, "after the last");
    ct_blob_free(&blob);
    remove(path);
}

/* Whether a changed header is accepted or refused depends on the byte; it must never crash. */
static void a_damaged_tensor_header_never_crashes(void) {
    static const uint8_t masks[] = {0x01, 0x02, 0x04, 0x10, 0x20, 0x80, 0xff};
    const char *path = in_folder("t.safetensors");
    ct_blob blob = {0};
    REQUIRE_OK(ct_tensors_write(path, sample, N_SAMPLE));
    REQUIRE_OK(ct_file_read(path, 1 << 20, &blob));
    size_t n_header = blob.n - 6 * sizeof(float);
    for (size_t at = 0; at < n_header; at++) {
        for (size_t k = 0; k < sizeof masks; k++) {
            blob.bytes[at] ^= masks[k];
            REQUIRE_OK(ct_file_write(path, blob.bytes, blob.n));
            ct_tensors tensors = {0};
            ct_status status = ct_tensors_read(path, &tensors);
            CHECK(status == CT_OK || status == CT_IO);
            ct_tensors_free(&tensors);
            blob.bytes[at] ^= masks[k];
        }
    }
    ct_clear_message();
    ct_blob_free(&blob);
    remove(path);
}

/* A file with this header and n_data bytes 0, 1, 2, ... behind it. */
static ct_status read_tensors_of(const char *header, size_t n_data, ct_tensors *out) {
    uint8_t bytes[1024] = {0};
    size_t n = strlen(header);
    bytes[0] = (uint8_t)n;
    bytes[1] = (uint8_t)(n >> 8);
    memcpy(bytes + 8, header, n);
    for (size_t i = 0; i < n_data; i++) bytes[8 + n + i] = (uint8_t)i;
    const char *path = in_folder("t.safetensors");
    CT_TRY(ct_file_write(path, bytes, 8 + n + n_data));
    ct_status status = ct_tensors_read(path, out);
    remove(path);
    return status;
}

#define ENTRY(name, dtype, shape, offsets)                                                         \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void wrong_tensor_headers_are_refused_by_name(void) {
    static const struct {
        const char *header;
        const char *words;
    } cases[] = {
        {"[]", "not an object"},
        {"{" ENTRY("a", "I64", "[1]", "[0,8]") "}", "'a': its dtype"},
        {"{" ENTRY("a", "F32", "[2]", "[0,4]") "}", "'a': its data_offsets do not fit"},
        {"{" ENTRY("a", "F32", "[2]", "[4,0]") "}", "'a': its data lie outside"},
        {"{" ENTRY("a", "F32", "[4]", "[0,16]") "}", "'a': its data lie outside"},
        {"{" ENTRY("a", "F32", "[-1]", "[0,4]") "}", "'a': a dimension"},
        {"{" ENTRY("a", "F32", "[1.5]", "[0,6]") "}", "'a': a dimension"},
        {"{" ENTRY("a", "F32", "[4294967296,4294967296]", "[0,8]") "}", "'a': its shape is too"},
        {"{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", "'a': its shape has more"},
        {"{" ENTRY("a", "F32", "3", "[0,12]") "}", "'a': its shape is no list"},
        {"{" ENTRY("a", "F32", "[1]", "[0,4,8]") "}", "'a': its data_offsets are not"},
        {"{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("b", "F32", "[1]", "[0,4]") "}",
         "'b': overlaps"},
        {"{" ENTRY("a", "F32", "[1]", "[4,8]") "}", "'a': there is a gap"},
        {"{" ENTRY("a", "F32", "[1]", "[0,4]") "}", "4 bytes after"},
        {"{\"a\":1}", "'a': needs dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"offsets\":[0,8]}}", "'a': its data_offsets"},
        {"{\"__metadata__\":{\"x\":1}," ENTRY("a", "F32", "[2]", "[0,8]") "}", "__metadata__"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ct_tensors tensors = {0};
        CHECK_FAILS(read_tensors_of(cases[i].header, 8, &tensors), CT_IO, cases[i].words);
    }
}

static void metadata_and_any_order_of_data_are_accepted(void) {
    ct_tensors tensors = {0};
    REQUIRE_OK(read_tensors_of(
        "{\"__metadata__\":{\"format\":\"pt\"}," ENTRY("late", "F32", "[1]", "[4,8]") "," ENTRY(
            "early", "F32", "[1]", "[0,4]") "}  ",
        8, &tensors));
    REQUIRE(tensors.n == 2);
    static const uint8_t early[] = {0, 1, 2, 3};
    CHECK(memcmp(ct_tensors_find(&tensors, "early")->values, early, 4) == 0);
    ct_tensors_free(&tensors);
}

static void other_float_types_become_float(void) {
    static const char header[] = "{" ENTRY("d", "F64", "[2]", "[0,16]") "," ENTRY(
        "h", "F16", "[6]", "[16,28]") "," ENTRY("b", "BF16", "[2]", "[28,32]") "}";
    static const double doubles[] = {0.1, -3.0};
    /* 1, -2, smallest subnormal, largest, -0, infinity */
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x7c00};
    static const uint16_t brains[] = {0x3f80, 0xc040};
    uint8_t bytes[512] = {(uint8_t)(sizeof header - 1)};
    uint8_t *data = bytes + 8 + sizeof header - 1;
    memcpy(bytes + 8, header, sizeof header - 1);
    memcpy(data, doubles, 16);
    memcpy(data + 16, halves, 12);
    memcpy(data + 28, brains, 4);
    const char *path = in_folder("t.safetensors");
    REQUIRE_OK(ct_file_write(path, bytes, 8 + sizeof header - 1 + 32));
    ct_tensors t = {0};
    REQUIRE_OK(ct_tensors_read(path, &t));
    const float *d = ct_tensors_find(&t, "d")->values, *h = ct_tensors_find(&t, "h")->values;
    const float *b = ct_tensors_find(&t, "b")->values;
    CHECK(d[0] == 0.1f && d[1] == -3.0f);
    CHECK(h[0] == 1.0f && h[1] == -2.0f && h[2] == 0x1p-24f && h[3] == 65504.0f);
    CHECK(h[4] == 0.0f && signbit(h[4]) && isinf(h[5]));
    CHECK(b[0] == 1.0f && b[1] == -3.0f);
    ct_tensors_free(&t);
    remove(path);
}

static void tensors_nobody_could_read_are_not_written(void) {
    const char *path = in_folder("t.safetensors");
    ct_tensor twins[2] = {sample[0], sample[0]};
    CHECK_FAILS(ct_tensors_write(path, twins, 2), CT_IO, "twice");
    twins[0].count = 5;
    CHECK_FAILS(ct_tensors_write(path, twins, 1), CT_INVAL, "conv1.weight");
    twins[0].n_dims = CT_TENSOR_MAX_DIMS + 1;
    CHECK_FAILS(ct_tensors_write(path, twins, 1), CT_INVAL, "conv1.weight");
    CHECK(!ct_file_exists(path));
}

/* The last one: every test above removed what it wrote. */
static void no_unfinished_file_is_left(void) {
    CHECK(n_files() == 0);
}

int main(void) {
    if (mkdtemp(folder) == NULL) {
        printf("%s: no folder to work in\n", folder);
        return 1;
    }
    TEST(a_file_reads_back_what_was_written);
    TEST(a_file_may_be_as_large_as_allowed_and_no_larger);
    TEST(what_is_no_plain_file_is_refused);
    TEST(a_failed_write_leaves_the_old_file);
    TEST(writing_where_one_cannot_is_refused);
    TEST(an_abandoned_writer_leaves_nothing);
    TEST(gzip_is_unpacked_on_the_way);
    TEST(gzip_may_have_several_members_but_nothing_else);
    TEST(cut_or_damaged_gzip_is_refused);
    TEST(a_gzip_bomb_stops_at_the_limit);
    TEST(what_unpacks_to_far_more_than_data_does_is_refused);
    TEST(directories_are_created_with_their_parents);
    TEST(paths_are_joined_with_one_slash);
    TEST(crc32_is_the_usual_one);
    TEST(tensors_read_back_what_was_written);
    TEST(tensors_cut_anywhere_are_refused);
    TEST(a_damaged_tensor_header_never_crashes);
    TEST(wrong_tensor_headers_are_refused_by_name);
    TEST(metadata_and_any_order_of_data_are_accepted);
    TEST(other_float_types_become_float);
    TEST(tensors_nobody_could_read_are_not_written);
    TEST(no_unfinished_file_is_left);
    rmdir(folder);
    return test_report();
}
