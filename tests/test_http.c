/* The web server by itself, asked over plain sockets. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "ct_config.h"
#include "serve/http.h"
#include "sockets.h"
#include "util/memory.h"

static ct_http *http;

#define LARGE ((size_t)16 << 20) /* more than a socket's buffers hold */

/* Shows what it was asked. */
static void echo(void *context, const ct_http_request *request, ct_http_answer *answer) {
    ++*(int *)context;
    if (strcmp(request->path, "/missing") == 0) answer->code = 404;
    if (strcmp(request->path, "/large") == 0) ct_text_add(&answer->body, "%*s", (int)LARGE, "");
    ct_text_add(&answer->body, "<%s>", request->path);
    for (int k = 0; k < request->n_fields; k++)
        ct_text_add(&answer->body, "[%s=%s]", request->fields[k].name, request->fields[k].value);
}

/* With little patience. */
static ct_status open_at(const char *address, int port, int *n_asked, ct_http **out) {
    ct_http_options options = {.address = address,
                               .port = port,
                               .handler = echo,
                               .context = n_asked,
                               .policy = "default-src 'none'",
                               .ask_seconds = 2,
                               .max_pending = 3 * LARGE + LARGE / 2};
    return ct_http_open(&options, out);
}

static int send_raw(const char *bytes) {
    return send_to(ct_http_port(http), bytes);
}

/* What the server says to these bytes, until it closes. */
static const char *ask_raw(const char *bytes) {
    static char said[1 << 16];
    int fd = send_raw(bytes);
    drain(&fd, said, sizeof said);
    return said;
}

static const char *ask(const char *line, const char *headers) {
    static char bytes[1 << 18];
    snprintf(bytes, sizeof bytes, "%s HTTP/1.1\r\nConnection: close\r\n%s\r\n", line, headers);
    return ask_raw(bytes);
}

#define LOCAL "Host: localhost\r\n"

static bool says(const char *answer, const char *code, const char *words) {
    char begin[32];
    snprintf(begin, sizeof begin, "HTTP/1.1 %s ", code);
    bool ok = strncmp(answer, begin, strlen(begin)) == 0 && strstr(answer, words) != NULL;
    if (!ok) printf("    wanted %s and '%s', got: %.300s\n", code, words, answer);
    return ok;
}

static void pages_come_with_their_fields_decoded(void) {
    CHECK(says(ask("GET /run?run=a%20b&run=%2e%2e%2fc&x", LOCAL), "200",
               "\r\n\r\n</run>[run=a b][run=../c][x=]"));
    CHECK(says(ask("GET /missing", LOCAL), "404", "</missing>"));
    CHECK(says(ask("GET /", LOCAL), "200", "Content-Security-Policy: default-src 'none'"));
    CHECK(strstr(ask("HEAD /", LOCAL), "\r\n\r\n<") == NULL);
}

static void nothing_can_be_written(void) {
    CHECK(says(ask("POST /", LOCAL "Content-Length: 0\r\n"), "405", "read only"));
    CHECK(says(
        ask_raw("PUT /x HTTP/1.1\r\nConnection: close\r\n" LOCAL "Content-Length: 5\r\n\r\nhello"),
        "405", "read only"));
    CHECK(says(ask("DELETE /x", LOCAL), "405", "read only"));
}

static void a_foreign_name_is_refused(void) {
    CHECK(says(ask("GET /", "Host: evil.example\r\n"), "403", "own address"));
    CHECK(says(ask("GET /", "Host: localhost.evil.example\r\n"), "403", "own address"));
    CHECK(says(ask("GET /", "Host: 127.0.0.1:80\r\n"), "200", "</>"));
    CHECK(says(ask("GET /", "Host: LocalHost:8080\r\n"), "200", "</>"));
    CHECK(says(ask("GET /", "Host: [::1]:8080\r\n"), "200", "</>"));
}

static void a_name_with_anything_around_it_is_foreign(void) {
    static const char *const foreign[] = {"[::1].evil.example",
                                          "[::1]evil.example",
                                          "[::1]:80x",
                                          "[::1",
                                          "::1",
                                          "[localhost]",
                                          "localhost:",
                                          "localhost:80:",
                                          "localhost:x",
                                          "localhost.",
                                          "localhost:123456",
                                          "127.0.0.1.evil.ex",
                                          "127.0.0.10",
                                          "localhost:80.evil.example",
                                          "localhost, evil.ex",
                                          "user@localhost",
                                          "[127.0.0.1]"};
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++) {
        char header[128];
        snprintf(header, sizeof header, "Host: %s\r\n", foreign[k]);
        CHECK(says(ask("GET /", header), "403", "own address"));
    }
    CHECK(says(ask("GET /", "Host: localhost\r\nHost: evil.example\r\n"), "403", "own address"));
    CHECK(says(ask("GET /", "Host: [::1]\r\n"), "200", "</>"));
}

static void a_page_that_is_known_is_not_sent_again(void) {
    char headers[256], tag[64] = "";
    const char *found = strstr(ask("GET /same", LOCAL), "ETag: ");
    REQUIRE(found != NULL && sscanf(found, "ETag: %63s", tag) == 1);
    snprintf(headers, sizeof headers, LOCAL "If-None-Match: %s\r\n", tag);
    CHECK(says(ask("GET /same", headers), "304", "ETag"));
    CHECK(strstr(ask("GET /same", headers), "</same>") == NULL);
    CHECK(says(ask("GET /other", headers), "200", "</other>"));
}

/* As of a page with that many boxes ticked. */
static const char *ask_with_fields(int n_fields) {
    static char many[1 << 18];
    int length = snprintf(many, sizeof many, "GET /?a=1");
    for (int k = 1; k < n_fields; k++) length += snprintf(many + length, 5, "&a=1");
    return ask(many, LOCAL);
}

static void a_field_too_many_is_told(void) {
    const char *answer = ask_with_fields(CT_HTTP_MAX_FIELDS);
    int n = 0;
    for (const char *at = answer; (at = strstr(at, "[a=1]")) != NULL; at++) n++;
    CHECK(n == CT_HTTP_MAX_FIELDS && says(answer, "200", "[a=1]"));
    CHECK(says(ask_with_fields(CT_HTTP_MAX_FIELDS + 1), "414", "too many runs"));
    CHECK(says(ask_with_fields(1900), "414", "too many runs"));
    CHECK(says(ask_with_fields(5000), "414", "too many runs"));
    CHECK(says(ask_with_fields(60000), "414", "too many runs"));
}

/* As many fields as are allowed, but long ones. */
static void a_query_that_is_too_long_is_told(void) {
    static char query[1 << 18];
    int length = snprintf(query, sizeof query, "GET /?a");
    for (int k = 0; k < 450; k++) length += snprintf(query + length, 512, "&%0500d", k);
    CHECK(says(ask(query, LOCAL), "414", "too many runs"));
}

#define N_SLOW 500

static void slow_ones_shut_nobody_out(void) {
    static int slow[N_SLOW];
    int n = 0;
    while (n < N_SLOW && (slow[n] = send_raw("GET / HTTP/1.1\r\nHost: loc")) >= 0) n++;
    CHECK(n == N_SLOW);
    for (int k = 0; k < 20; k++) CHECK(says(ask("GET /honest", LOCAL), "200", "</honest>"));
    while (n > 0) close(slow[--n]);
}

/* A byte now and then for as long as the server listens: it does so for two seconds, not for a
 * minute. */
static void a_request_that_drips_in_is_cut_off(void) {
    static const char *const begins[] = {"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
                                         "POST / HTTP/1.1\r\n" LOCAL
                                         "Content-Length: 9999\r\n\r\n"};
    for (size_t k = 0; k < sizeof begins / sizeof *begins; k++) {
        int fd = send_raw(begins[k]), n_sent = 0;
        char byte;
        REQUIRE(fd >= 0);
        while (n_sent < 600 && recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN &&
               send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
            n_sent++;
            usleep(100000);
        }
        CHECK(n_sent > 0 && n_sent < 600);
        close(fd);
    }
}

/* There is room for three of these: the first four make room for those who come later. */
static void answers_that_nobody_fetches_are_dropped(void) {
    enum { N = 6 };
    int fd[N];
    char *text = ct_alloc(LARGE + 4096, 1);
    REQUIRE(text != NULL);
    for (int k = 0; k < N; k++) {
        char first;
        fd[k] = send_raw("GET /large HTTP/1.1\r\nConnection: close\r\n" LOCAL "\r\n");
        CHECK(recv(fd[k], &first, 1, MSG_PEEK) == 1); /* it is being sent */
    }
    CHECK(drain(&fd[0], text, LARGE + 4096) < LARGE);
    CHECK(drain(&fd[N - 1], text, LARGE + 4096) > LARGE && strstr(text, "</large>") != NULL);
    for (int k = 1; k < N - 1; k++) close(fd[k]);
    ct_free(text);
    CHECK(says(ask("GET /honest", LOCAL), "200", "</honest>"));
}

static void nonsense_does_not_stop_it(void) {
    static const char *const nonsense[] = {"\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                                           "\x16\x03\x01", "GET / HTTP/1.1\r\nHost"};
    for (size_t k = 0; k < sizeof nonsense / sizeof *nonsense; k++) {
        int fd = send_raw(nonsense[k]);
        if (fd >= 0) close(fd);
    }
    CHECK(says(ask("GET /alive", LOCAL), "200", "</alive>"));
}

static void addresses_that_cannot_be_had_are_refused(void) {
    ct_http *second = NULL;
    int n = 0;
    CHECK_FAILS(open_at("localhost", 0, &n, &second), CT_INVAL, "--bind");
    CHECK_FAILS(open_at("127.0.0.1", ct_http_port(http), &n, &second), CT_IO, "cannot listen");
    CHECK_FAILS(open_at("203.0.113.7", 0, &n, &second), CT_IO, "203.0.113.7");
    CHECK(second == NULL);
}

static void a_build_without_the_library_says_so(void) {
    ct_http *none = NULL;
    if (CT_WITH_MICROHTTPD) SKIP("this build has the library");
    CHECK_FAILS(open_at("127.0.0.1", 0, NULL, &none), CT_INVAL, "libmicrohttpd");
}

int main(void) {
    int n_asked = 0;
    TEST(a_build_without_the_library_says_so);
    if (!CT_WITH_MICROHTTPD) return test_report();
    if (open_at("127.0.0.1", 0, &n_asked, &http) != CT_OK) return 1;
    TEST(pages_come_with_their_fields_decoded);
    TEST(nothing_can_be_written);
    TEST(a_foreign_name_is_refused);
    TEST(a_name_with_anything_around_it_is_foreign);
    TEST(a_page_that_is_known_is_not_sent_again);
    TEST(a_field_too_many_is_told);
    TEST(a_query_that_is_too_long_is_told);
    TEST(slow_ones_shut_nobody_out);
    TEST(a_request_that_drips_in_is_cut_off);
    TEST(answers_that_nobody_fetches_are_dropped);
    TEST(nonsense_does_not_stop_it);
    TEST(addresses_that_cannot_be_had_are_refused);
    ct_http_close(&http);
    return n_asked > 0 ? test_report() : 1;
}
