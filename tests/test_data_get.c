/* Downloads from a small HTTPS server of our own, which resumes, cuts connections, stalls, ignores
 * ranges, leads on elsewhere, sends too much and the wrong file; full disks; digests; what is there
 * already. */
#include "test.h"

#include "ct_config.h"
#include "data/dataset.h"
#include "data/fetch.h"
#include "data_files.h"
#include "util/file.h"
#include "util/log.h"
#include "util/sha256.h"

static void digests_are_those_of_the_standards(void) {
    static const struct {
        const char *text, *sha256;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (int k = 0; k < 3; k++) {
        char text[CT_DIGEST_TEXT];
        ct_digest d;
        ct_digest_init(&d);
        for (const char *c = cases[k].text; *c != '\0'; c++) ct_digest_add(&d, c, 1);
        ct_digest_text(&d, text);
        CHECK(strcmp(text, cases[k].sha256) == 0);
    }
    ct_digest d;
    char text[CT_DIGEST_TEXT];
    ct_digest_init(&d);
    for (int k = 0; k < 1000000; k++) ct_digest_add(&d, "a", 1);
    ct_digest_text(&d, text);
    CHECK(strcmp(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0);
}

static void every_set_has_a_size_a_digest_and_a_secure_address(void) {
    static const struct {
        const char *set, *file;
        int64_t n_bytes;
        const char *digest, *url;
    } files[] = {
#define ARCHIVE(set, file, n_bytes, digest, url, folder, contents)                                 \
    {set, file, n_bytes, digest, url},
#include "data/archive_list.h"
#undef ARCHIVE
    };
    int n_unpacked = 0;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        CHECK(files[k].n_bytes > 0 && strncmp(files[k].url, "https://", 8) == 0);
        CHECK(strlen(files[k].digest) == 64 && strspn(files[k].digest, "0123456789abcdef") == 64);
    }
    ct_published p;
    for (int k = 0; ct_published_file("cifar10", k, &p); k++)
        n_unpacked += p.kind == CT_UNPACKED && strspn(p.digest, "0123456789abcdef") == 64;
    CHECK(n_unpacked == 6);
}

#if CT_WITH_CURL && CT_WITH_MICROHTTPD

#include "https_server.h"

#include <signal.h>
#include <sys/resource.h>

static archive packed;
static uint8_t payload[300000];
static char payload_digest[CT_DIGEST_TEXT];

static void make_payload(void) {
    ct_digest d;
    server_stop(); /* it may still be reading them */
    for (size_t k = 0; k < sizeof payload; k++) payload[k] = (uint8_t)(k * 2654435761u >> 13);
    ct_digest_init(&d);
    ct_digest_add(&d, payload, sizeof payload);
    ct_digest_text(&d, payload_digest);
    serve_bytes(payload, sizeof payload);
}

static void check_file(const char *name) {
    ct_blob file = {0};
    REQUIRE_OK(ct_file_read(in_scratch(name), 1 << 20, &file));
    CHECK(file.n == sizeof payload && memcmp(file.bytes, payload, file.n) == 0);
    ct_blob_free(&file);
    CHECK(!ct_file_exists(in_scratch("x.part")));
}

static void a_file_is_downloaded_and_checked(void) {
    scratch_open();
    make_payload();
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = sizeof payload};
    CHECK_OK(ct_fetch(url(), in_scratch("x"), &options));
    check_file("x");
    CHECK(srv.n_requests == 1);
    scratch_close();
}

static void a_cut_connection_goes_on_where_it_was_cut(void) {
    scratch_open();
    make_payload();
    srv.cut_after = 100001;
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = sizeof payload};
    CHECK_OK(ct_fetch(url(), in_scratch("x"), &options));
    check_file("x");
    CHECK(srv.n_requests == 3 && srv.last_begin == 200002);
    scratch_close();
}

static void a_download_that_was_stopped_is_resumed_later(void) {
    scratch_open();
    make_payload();
    write_file("x.part", payload, 123456);
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = sizeof payload};
    CHECK_OK(ct_fetch(url(), in_scratch("x"), &options));
    check_file("x");
    CHECK(srv.last_begin == 123456);
    srv.ignores_range = true; /* the whole file comes again */
    write_file("y.part", payload, 5000);
    CHECK_OK(ct_fetch(url(), in_scratch("y"), &options));
    check_file("y");
    srv.ignores_range = false;
    write_file("z.part", payload, sizeof payload); /* complete, but not renamed */
    CHECK_OK(ct_fetch(url(), in_scratch("z"), &options));
    check_file("z");
    scratch_close();
}

static void a_connection_that_is_always_cut_fails_and_keeps_what_came(void) {
    struct stat info;
    scratch_open();
    make_payload();
    srv.cut_after = 1000;
    ct_fetch_options options = {
        .digest = payload_digest, .max_bytes = sizeof payload, .n_tries = 3};
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO, "cut 3 times");
    CHECK(!ct_file_exists(in_scratch("x")));
    CHECK(stat(in_scratch("x.part"), &info) == 0 && info.st_size == 3000);
    scratch_close();
}

static void a_wrong_checksum_leaves_nothing_behind(void) {
    scratch_open();
    make_payload();
    payload[7] ^= 1;
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = sizeof payload};
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO, "wrong checksum");
    CHECK(!ct_file_exists(in_scratch("x")) && !ct_file_exists(in_scratch("x.part")));
    scratch_close();
}

static void a_missing_file_and_a_dead_server_are_reported(void) {
    scratch_open();
    make_payload();
    srv.status = 404;
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = 1 << 20, .n_tries = 1};
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO, "HTTP 404");
    CHECK_FAILS(ct_fetch("https://127.0.0.1:1/x", in_scratch("x"), &options), CT_IO,
                "https://127.0.0.1:1/x");
    CHECK_FAILS(ct_fetch("file:///nonexistent", in_scratch("x"), &options), CT_IO,
                "file:///nonexistent");
    CHECK_FAILS(ct_fetch(url(), "/nonexistent/x", &options), CT_IO, "/nonexistent/x.part");
    scratch_close();
}

static void nothing_is_fetched_over_a_plain_connection(void) {
    static const char *const elsewhere[] = {"http://127.0.0.1/file.bin", "file:///etc/hostname"};
    scratch_open();
    make_payload();
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = sizeof payload};
    CHECK_FAILS(ct_fetch(url_of("http", "x"), in_scratch("x"), &options), CT_INVAL,
                "must begin with https://");
    CHECK_FAILS(ct_fetch("127.0.0.1/x", in_scratch("x"), &options), CT_INVAL, "must begin with");
    CHECK(srv.n_requests == 0);
    for (int k = 0; k < 2; k++) {
        srv.redirect = elsewhere[k];
        CHECK_FAILS(ct_fetch(url_of("https", "moved"), in_scratch("x"), &options), CT_IO,
                    "leads on to an address that is not https");
        CHECK(!ct_file_exists(in_scratch("x")));
    }
    srv.redirect = "/file.bin";
    CHECK_OK(ct_fetch(url_of("https", "moved"), in_scratch("x"), &options));
    check_file("x");
    scratch_close();
}

static void a_server_that_nobody_vouches_for_is_not_asked(void) {
    scratch_open();
    make_payload();
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = sizeof payload};
    unsetenv("SSL_CERT_FILE");
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO, "certificate");
    setenv("SSL_CERT_FILE", certificate, 1);
    CHECK(srv.n_requests == 0 && !ct_file_exists(in_scratch("x")));
    scratch_close();
}

static void more_than_the_size_of_a_file_is_refused(void) {
    scratch_open();
    make_payload();
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = sizeof payload - 1};
    for (int k = 0; k < 2; k++) { /* it says so beforehand, or just goes on */
        make_payload();
        srv.is_endless = k == 1;
        CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO,
                    "more than the 299999 bytes");
        CHECK(!ct_file_exists(in_scratch("x")) && !ct_file_exists(in_scratch("x.part")));
    }
    make_payload();
    options.max_bytes = sizeof payload;
    write_file("x.part", packed.bytes, sizeof payload + 1); /* no part of it */
    CHECK_OK(ct_fetch(url(), in_scratch("x"), &options));
    check_file("x");
    scratch_close();
}

static void a_server_that_stalls_is_given_up(void) {
    scratch_open();
    make_payload();
    srv.is_stalled = true;
    ct_fetch_options options = {
        .digest = payload_digest, .max_bytes = sizeof payload, .n_tries = 1, .stall_s = 1};
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO,
                "the connection was cut 1 times");
    srv.is_stalled = false;
    scratch_close();
}

static void a_part_of_another_file_is_begun_anew(void) {
    struct stat info;
    scratch_open();
    make_payload();
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = sizeof payload};
    write_file("x.part", packed.bytes, 1000);
    CHECK_OK(ct_fetch(url(), in_scratch("x"), &options));
    check_file("x");
    CHECK(srv.n_requests == 2 && srv.last_begin == 0);
    write_file("y.part", packed.bytes, sizeof payload); /* as long as all of it */
    CHECK_OK(ct_fetch(url(), in_scratch("y"), &options));
    check_file("y");
    write_file("mine", "mine", 4);
    REQUIRE(symlink("mine", in_scratch("z.part")) == 0);
    CHECK_FAILS(ct_fetch(url(), in_scratch("z"), &options), CT_IO, "z.part");
    CHECK(stat(in_scratch("mine"), &info) == 0 && info.st_size == 4);
    REQUIRE(mkfifo(in_scratch("pipe.part"), 0600) == 0);
    CHECK_FAILS(ct_fetch(url(), in_scratch("pipe"), &options), CT_IO, "pipe.part");
    scratch_close();
}

/* A limit on the size of files stands for a full disk: writing fails half-way. */
static void a_full_disk_is_reported_and_the_part_is_kept(void) {
    struct rlimit before, small;
    struct stat info;
    scratch_open();
    make_payload();
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = 65536;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    ct_fetch_options options = {.digest = payload_digest, .max_bytes = sizeof payload};
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO, "what there is of it is kept");
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(!ct_file_exists(in_scratch("x")));
    CHECK(stat(in_scratch("x.part"), &info) == 0 && info.st_size <= 65536);
    CHECK_OK(ct_fetch(url(), in_scratch("x"), &options)); /* there is room again */
    check_file("x");
    scratch_close();
}

/* ---- a whole set ---- */

static uint8_t zipped[1 << 19];

/* CIFAR-10's archive in miniature, zipped. */
static size_t zip_cifar10(const char *folder) {
    static uint8_t records[2 * 3073];
    packed.n = 0;
    for (int k = 0; k < 6; k++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%s_batch%.2s.bin", folder, k < 5 ? "data" : "test",
                 k < 5 ? (const char[]){'_', (char)('1' + k), 0} : "");
        add_member(&packed, name, '0', records, sizeof records);
    }
    end_archive(&packed);
    write_gzip("packed.tar.gz", packed.bytes, packed.n);
    ct_blob file = {0};
    if (ct_file_exists(in_scratch("packed.tar.gz"))) {
        FILE *f = fopen(in_scratch("packed.tar.gz"), "rb");
        file.n = fread(zipped, 1, sizeof zipped, f);
        fclose(f);
    }
    return file.n;
}

static ct_get_options options_of(const char *digest) {
    static char base[64];
    snprintf(base, sizeof base, "https://127.0.0.1:%d", srv.port);
    return (ct_get_options){.url = base, .digest = digest};
}

static void a_set_is_downloaded_unpacked_and_read(void) {
    NEED_ARCHIVE;
    char digest[CT_DIGEST_TEXT];
    ct_dataset d = {0};
    scratch_open();
    serve_bytes(zipped, zip_cifar10("cifar-10-batches-bin"));
    REQUIRE_OK(ct_digest_file(in_scratch("packed.tar.gz"), digest));
    ct_get_options options = options_of(digest);
    CHECK_OK(ct_get("cifar10", in_scratch("data/sets"), &options));
    CHECK(ct_file_exists(in_scratch("data/sets/cifar-10-batches-bin/test_batch.bin")));
    CHECK(!ct_file_exists(in_scratch("data/sets/cifar-10-binary.tar.gz")));
    ct_dataset_options where = {.dir = in_scratch("data/sets")};
    CHECK_OK(ct_dataset_open("auto", &where, &d));
    CHECK(d.train.n == 10 && d.test.n == 2);
    ct_dataset_free(&d);
    int n = srv.n_requests;
    CHECK_OK(ct_get("cifar10", in_scratch("data/sets"), &options)); /* is there already */
    CHECK(srv.n_requests == n);
    scratch_close();
}

static void an_archive_that_is_not_what_it_should_be_leaves_nothing(void) {
    NEED_ARCHIVE;
    char digest[CT_DIGEST_TEXT];
    scratch_open();
    serve_bytes(zipped, zip_cifar10("../outside"));
    REQUIRE_OK(ct_digest_file(in_scratch("packed.tar.gz"), digest));
    ct_get_options options = options_of(digest);
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO, "leads out of the folder");
    remove(in_scratch("data/cifar-10-binary.tar.gz"));
    serve_bytes(zipped, zip_cifar10("another-folder"));
    REQUIRE_OK(ct_digest_file(in_scratch("packed.tar.gz"), digest));
    options = options_of(digest);
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO,
                "should hold cifar-10-batches-bin");
    CHECK(!ct_dir_exists(in_scratch("data/cifar-10-batches-bin")));
    CHECK(!ct_dir_exists(in_scratch("data/another-folder")));
    options = options_of(NULL); /* the published digest */
    remove(in_scratch("data/cifar-10-binary.tar.gz"));
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO, "wrong checksum");
    CHECK_FAILS(ct_get("imagenet", in_scratch("data"), &options), CT_INVAL,
                "known: cifar10, cifar100, imagenette, fashion-mnist, mnist");
    scratch_close();
}

/* The miniature of CIFAR-10 in scratch/data, from the server. */
static ct_get_options get_miniature(void) {
    static char digest[CT_DIGEST_TEXT];
    serve_bytes(zipped, zip_cifar10("cifar-10-batches-bin"));
    CHECK_OK(ct_digest_file(in_scratch("packed.tar.gz"), digest));
    ct_get_options options = options_of(digest);
    CHECK_OK(ct_get("cifar10", in_scratch("data"), &options));
    return options;
}

#define BATCH "data/cifar-10-batches-bin/data_batch_3.bin"

static void a_folder_that_is_there_is_checked_file_by_file(void) {
    NEED_ARCHIVE;
    scratch_open();
    ct_get_options options = get_miniature();
    write_file(BATCH, "damaged", 7);
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO,
                "data_batch_3.bin is not as published: its SHA-256 is");
    CHECK(srv.n_requests == 1);
    options.replace = true;
    CHECK_OK(ct_get("cifar10", in_scratch("data"), &options));
    options.replace = false;
    CHECK_OK(ct_get("cifar10", in_scratch("data"), &options));
    CHECK(srv.n_requests == 2);
    remove(in_scratch(BATCH));
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO, "data_batch_3.bin");
    remove(in_scratch("data/cifar-10-batches-bin.sha256"));
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO,
                "cannot be checked without");
    options.digest = NULL; /* CIFAR-10 itself, whose files are known */
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO,
                "data_batch_1.bin is not as published: its SHA-256 is");
    scratch_close();
}

static void an_archive_that_is_there_is_checked_and_stays(void) {
    NEED_ARCHIVE;
    scratch_open();
    ct_get_options options = get_miniature();
    remove(in_scratch(BATCH));
    write_file("data/cifar-10-binary.tar.gz", "another", 7);
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO, "data_batch_3.bin");
    REQUIRE(rename(in_scratch("data/cifar-10-batches-bin"), in_scratch("old")) == 0);
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO,
                "cifar-10-binary.tar.gz is not as published");
    CHECK(srv.n_requests == 1);
    REQUIRE(rename(in_scratch("packed.tar.gz"), in_scratch("data/cifar-10-binary.tar.gz")) == 0);
    CHECK_OK(ct_get("cifar10", in_scratch("data"), &options));
    CHECK(srv.n_requests == 1 && ct_file_exists(in_scratch(BATCH)));
    CHECK(ct_file_exists(in_scratch("data/cifar-10-binary.tar.gz")));
    scratch_close();
}

static void files_that_are_there_are_checked(void) {
    scratch_open();
    make_payload();
    ct_get_options options = options_of(payload_digest); /* of all four, here */
    CHECK_OK(ct_get("mnist", in_scratch("data"), &options));
    CHECK(srv.n_requests == 4);
    CHECK_OK(ct_get("mnist", in_scratch("data"), &options));
    write_file("data/t10k-labels-idx1-ubyte.gz", "mine", 4);
    CHECK_FAILS(ct_get("mnist", in_scratch("data"), &options), CT_IO,
                "t10k-labels-idx1-ubyte.gz is not as published");
    CHECK(srv.n_requests == 4);
    options.replace = true;
    CHECK_OK(ct_get("mnist", in_scratch("data"), &options));
    check_file("data/t10k-labels-idx1-ubyte.gz");
    CHECK(srv.n_requests == 5);
    scratch_close();
}

static void a_folder_of_this_machine_serves_as_well(void) {
    char base[160];
    scratch_open();
    make_payload();
    snprintf(base, sizeof base, "file://%s/mirror", scratch);
    ct_get_options options = {.url = base, .digest = payload_digest};
    write_file("mirror/train-images-idx3-ubyte.gz", payload, sizeof payload);
    CHECK_FAILS(ct_get("mnist", in_scratch("data"), &options), CT_IO, "train-labels-idx1-ubyte.gz");
    check_file("data/train-images-idx3-ubyte.gz");
    options.url = "http://mirror.example";
    CHECK_FAILS(ct_get("mnist", in_scratch("data"), &options), CT_INVAL,
                "must begin with https://");
    CHECK(srv.n_requests == 0);
    scratch_close();
}

static void two_processes_do_not_get_a_set_at_once(void) {
    int lock;
    scratch_open();
    make_payload();
    write_file("data/other", "x", 1);
    REQUIRE(ct_dir_lock(in_scratch("data"), &lock));
    ct_get_options options = options_of(payload_digest);
    CHECK_FAILS(ct_get("mnist", in_scratch("data"), &options), CT_BUSY, "another process");
    ct_dir_unlock(&lock);
    CHECK(srv.n_requests == 0);
    scratch_close();
}

static void downloads_end_right_or_leave_nothing(void) {
    if (!make_certificate() || !serve_bytes(payload, sizeof payload))
        SKIP("no local sockets, no openssl, or a libmicrohttpd without TLS");
    unsetenv("https_proxy");
    TEST(a_file_is_downloaded_and_checked);
    TEST(a_cut_connection_goes_on_where_it_was_cut);
    TEST(a_download_that_was_stopped_is_resumed_later);
    TEST(a_connection_that_is_always_cut_fails_and_keeps_what_came);
    TEST(a_wrong_checksum_leaves_nothing_behind);
    TEST(a_missing_file_and_a_dead_server_are_reported);
    TEST(nothing_is_fetched_over_a_plain_connection);
    TEST(a_server_that_nobody_vouches_for_is_not_asked);
    TEST(more_than_the_size_of_a_file_is_refused);
    TEST(a_server_that_stalls_is_given_up);
    TEST(a_part_of_another_file_is_begun_anew);
    TEST(a_full_disk_is_reported_and_the_part_is_kept);
    TEST(a_set_is_downloaded_unpacked_and_read);
    TEST(an_archive_that_is_not_what_it_should_be_leaves_nothing);
    TEST(a_folder_that_is_there_is_checked_file_by_file);
    TEST(an_archive_that_is_there_is_checked_and_stays);
    TEST(files_that_are_there_are_checked);
    TEST(a_folder_of_this_machine_serves_as_well);
    TEST(two_processes_do_not_get_a_set_at_once);
    server_stop();
    remove_certificate();
}

#else

static void downloads_end_right_or_leave_nothing(void) {
    SKIP("no downloads: built without libcurl or without libmicrohttpd");
}

#endif

int main(void) {
    TEST(digests_are_those_of_the_standards);
    TEST(every_set_has_a_size_a_digest_and_a_secure_address);
    TEST(downloads_end_right_or_leave_nothing);
    return test_report();
}
