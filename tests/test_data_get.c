/* Downloads from a small HTTP server of our own, which resumes, cuts connections, ignores ranges
 * and sends the wrong file; full disks; digests. */
#include "test.h"

#include "ct_config.h"
#include "data/dataset.h"
#include "data/fetch.h"
#include "data_files.h"
#include "util/file.h"
#include "util/log.h"
#include "util/sha256.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

typedef struct server {
    int fd, port;
    pthread_t thread;
    const uint8_t *bytes; /* what every address gives */
    size_t n;
    size_t cut_after;   /* > 0: each answer ends after so many bytes */
    bool ignores_range; /* always sends everything */
    int status;         /* 0: 200 and 206 */
    int n_requests;
    size_t last_begin; /* of the last range asked for */
} server;

static server srv;

static size_t range_of(const char *request) {
    const char *at = strstr(request, "Range: bytes=");
    return at != NULL ? (size_t)strtoull(at + 13, NULL, 10) : 0;
}

static void send_all(int fd, const void *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, (const char *)bytes + at, n - at, MSG_NOSIGNAL);
        if (sent <= 0) return;
        at += (size_t)sent;
    }
}

static void answer(int fd) {
    char request[4096] = {0}, head[256];
    size_t n = 0;
    while (n < sizeof request - 1 && strstr(request, "\r\n\r\n") == NULL) {
        ssize_t got = recv(fd, request + n, sizeof request - 1 - n, 0);
        if (got <= 0) return;
        n += (size_t)got;
    }
    srv.n_requests++;
    size_t begin = srv.last_begin = range_of(request);
    if (srv.ignores_range) begin = 0;
    int code = srv.status != 0               ? srv.status
               : begin >= srv.n && begin > 0 ? 416
               : begin > 0                   ? 206
                                             : 200;
    size_t left = code >= 400 ? 0 : srv.n - begin;
    int n_head = snprintf(head, sizeof head,
                          "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n"
                          "Content-Range: bytes %zu-%zu/%zu\r\n\r\n",
                          code, left, begin, srv.n - 1, srv.n);
    send_all(fd, head, (size_t)n_head);
    if (srv.cut_after > 0 && left > srv.cut_after) left = srv.cut_after;
    send_all(fd, srv.bytes + begin, left);
}

static void *serve(void *unused) {
    (void)unused;
    for (;;) {
        int fd = accept(srv.fd, NULL, NULL);
        if (fd < 0) return NULL;
        answer(fd);
        shutdown(fd, SHUT_RDWR);
        close(fd);
    }
}

static bool server_start(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    srv.fd = socket(AF_INET, SOCK_STREAM, 0);
    if (srv.fd < 0 || bind(srv.fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(srv.fd, 8) != 0 || getsockname(srv.fd, (struct sockaddr *)&address, &n) != 0)
        return false;
    srv.port = ntohs(address.sin_port);
    return pthread_create(&srv.thread, NULL, serve, NULL) == 0;
}

static void server_stop(void) {
    shutdown(srv.fd, SHUT_RDWR);
    close(srv.fd);
    pthread_join(srv.thread, NULL);
}

/* Puts the server back to plain service of these bytes. */
static void serve_bytes(const uint8_t *bytes, size_t n) {
    int fd = srv.fd, port = srv.port;
    pthread_t thread = srv.thread;
    srv = (server){.fd = fd, .port = port, .thread = thread, .bytes = bytes, .n = n};
}

static const char *url(void) {
    static char text[64];
    snprintf(text, sizeof text, "http://127.0.0.1:%d/file.bin", srv.port);
    return text;
}

static uint8_t payload[300000];
static char payload_digest[CT_DIGEST_TEXT];

static void make_payload(void) {
    ct_digest d;
    for (size_t k = 0; k < sizeof payload; k++) payload[k] = (uint8_t)(k * 2654435761u >> 13);
    ct_digest_init(&d, CT_SHA256);
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

static void digests_are_those_of_the_standards(void) {
    static const struct {
        const char *text, *md5, *sha256;
    } cases[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e",
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "8215ef0796a20bcaaae116d3876c664a",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (int k = 0; k < 3; k++) {
        char text[CT_DIGEST_TEXT];
        ct_digest d;
        ct_digest_init(&d, CT_MD5);
        ct_digest_add(&d, cases[k].text, strlen(cases[k].text));
        ct_digest_text(&d, text);
        CHECK(strcmp(text, cases[k].md5) == 0);
        ct_digest_init(&d, CT_SHA256);
        for (const char *c = cases[k].text; *c != '\0'; c++) ct_digest_add(&d, c, 1);
        ct_digest_text(&d, text);
        CHECK(strcmp(text, cases[k].sha256) == 0);
    }
    ct_digest d;
    char text[CT_DIGEST_TEXT];
    ct_digest_init(&d, CT_SHA256);
    for (int k = 0; k < 1000000; k++) ct_digest_add(&d, "a", 1);
    ct_digest_text(&d, text);
    CHECK(strcmp(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0);
}

static void a_file_is_downloaded_and_checked(void) {
    scratch_open();
    make_payload();
    ct_fetch_options options = {.digest = payload_digest};
    CHECK_OK(ct_fetch(url(), in_scratch("x"), &options));
    check_file("x");
    CHECK(srv.n_requests == 1);
    scratch_close();
}

static void a_cut_connection_goes_on_where_it_was_cut(void) {
    scratch_open();
    make_payload();
    srv.cut_after = 100001;
    ct_fetch_options options = {.digest = payload_digest};
    CHECK_OK(ct_fetch(url(), in_scratch("x"), &options));
    check_file("x");
    CHECK(srv.n_requests == 3 && srv.last_begin == 200002);
    scratch_close();
}

static void a_download_that_was_stopped_is_resumed_later(void) {
    scratch_open();
    make_payload();
    write_file("x.part", payload, 123456);
    ct_fetch_options options = {.digest = payload_digest};
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
    ct_fetch_options options = {.digest = payload_digest, .n_tries = 3};
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO, "cut 3 times");
    CHECK(!ct_file_exists(in_scratch("x")));
    CHECK(stat(in_scratch("x.part"), &info) == 0 && info.st_size == 3000);
    scratch_close();
}

static void a_wrong_checksum_leaves_nothing_behind(void) {
    scratch_open();
    make_payload();
    payload[7] ^= 1;
    ct_fetch_options options = {.digest = payload_digest};
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO, "wrong checksum");
    CHECK(!ct_file_exists(in_scratch("x")) && !ct_file_exists(in_scratch("x.part")));
    payload[7] ^= 1;
    options.digest = "900150983cd24fb0d6963f7d28e17f72"; /* an MD5 sum */
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO,
                "not 900150983cd24fb0d6963f7d28e17f72");
    scratch_close();
}

static void a_missing_file_and_a_dead_server_are_reported(void) {
    scratch_open();
    make_payload();
    srv.status = 404;
    ct_fetch_options options = {.n_tries = 1};
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO, "HTTP 404");
    CHECK_FAILS(ct_fetch("http://127.0.0.1:1/x", in_scratch("x"), &options), CT_IO,
                "http://127.0.0.1:1/x");
    CHECK_FAILS(ct_fetch("file:///etc/passwd", in_scratch("x"), &options), CT_IO, "file://");
    CHECK_FAILS(ct_fetch(url(), "/nonexistent/x", &options), CT_IO, "/nonexistent/x.part");
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
    ct_fetch_options options = {.digest = payload_digest};
    CHECK_FAILS(ct_fetch(url(), in_scratch("x"), &options), CT_IO, "what there is of it is kept");
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(!ct_file_exists(in_scratch("x")));
    CHECK(stat(in_scratch("x.part"), &info) == 0 && info.st_size <= 65536);
    CHECK_OK(ct_fetch(url(), in_scratch("x"), &options)); /* there is room again */
    check_file("x");
    scratch_close();
}

/* ---- a whole set ---- */

static archive packed;
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
    snprintf(base, sizeof base, "http://127.0.0.1:%d", srv.port);
    return (ct_get_options){.url = base, .digest = digest};
}

static void a_set_is_downloaded_unpacked_and_read(void) {
    NEED_ARCHIVE;
    char digest[CT_DIGEST_TEXT];
    ct_dataset d = {0};
    scratch_open();
    serve_bytes(zipped, zip_cifar10("cifar-10-batches-bin"));
    REQUIRE_OK(ct_digest_file(in_scratch("packed.tar.gz"), CT_SHA256, digest));
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
    REQUIRE_OK(ct_digest_file(in_scratch("packed.tar.gz"), CT_SHA256, digest));
    ct_get_options options = options_of(digest);
    CHECK_FAILS(ct_get("cifar10", in_scratch("data"), &options), CT_IO, "leads out of the folder");
    serve_bytes(zipped, zip_cifar10("another-folder"));
    remove(in_scratch("data/cifar-10-binary.tar.gz"));
    REQUIRE_OK(ct_digest_file(in_scratch("packed.tar.gz"), CT_SHA256, digest));
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

int main(void) {
    TEST(digests_are_those_of_the_standards);
    if (!CT_WITH_CURL || !server_start()) {
        printf("skip no downloads: built without libcurl, or no local sockets\n");
        test_n_skipped++;
        return test_report();
    }
    unsetenv("http_proxy");
    TEST(a_file_is_downloaded_and_checked);
    TEST(a_cut_connection_goes_on_where_it_was_cut);
    TEST(a_download_that_was_stopped_is_resumed_later);
    TEST(a_connection_that_is_always_cut_fails_and_keeps_what_came);
    TEST(a_wrong_checksum_leaves_nothing_behind);
    TEST(a_missing_file_and_a_dead_server_are_reported);
    TEST(a_full_disk_is_reported_and_the_part_is_kept);
    TEST(a_set_is_downloaded_unpacked_and_read);
    TEST(an_archive_that_is_not_what_it_should_be_leaves_nothing);
    server_stop();
    return test_report();
}
