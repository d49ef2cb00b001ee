/* The web server by itself, asked over plain sockets. */
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ct_config.h"
#include "serve/http.h"

static ct_http *http;

/* Shows what it was asked. */
static void echo(void *context, const ct_http_request *request, ct_http_answer *answer) {
    ++*(int *)context;
    if (strcmp(request->path, "/missing") == 0) answer->code = 404;
    ct_text_add(&answer->body, "<%s>", request->path);
    for (int k = 0; k < request->n_fields; k++)
        ct_text_add(&answer->body, "[%s=%s]", request->fields[k].name, request->fields[k].value);
}

/* A connection over which these bytes were sent; -1 without one. */
static int send_raw(const char *bytes) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)ct_http_port(http))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t n = strlen(bytes);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
        send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n)
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* What the server says to these bytes, until it closes. */
static const char *ask_raw(const char *bytes) {
    static char said[1 << 16];
    size_t n = 0;
    int fd = send_raw(bytes);
    for (ssize_t got; fd >= 0 && (got = read(fd, said + n, sizeof said - 1 - n)) > 0;)
        n += (size_t)got;
    if (fd >= 0) close(fd);
    said[n] = '\0';
    return said;
}

static const char *ask(const char *line, const char *headers) {
    char bytes[8192];
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
    static char many[8000];
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
    CHECK_FAILS(ct_http_open("localhost", 0, echo, &n, &second), CT_INVAL, "--bind");
    CHECK_FAILS(ct_http_open("127.0.0.1", ct_http_port(http), echo, &n, &second), CT_IO,
                "cannot listen");
    CHECK_FAILS(ct_http_open("203.0.113.7", 0, echo, &n, &second), CT_IO, "203.0.113.7");
    CHECK(second == NULL);
}

static void a_build_without_the_library_says_so(void) {
    ct_http *none = NULL;
    if (CT_WITH_MICROHTTPD) SKIP("this build has the library");
    CHECK_FAILS(ct_http_open("127.0.0.1", 0, echo, NULL, &none), CT_INVAL, "libmicrohttpd");
}

int main(void) {
    int n_asked = 0;
    TEST(a_build_without_the_library_says_so);
    if (!CT_WITH_MICROHTTPD) return test_report();
    if (ct_http_open("127.0.0.1", 0, echo, &n_asked, &http) != CT_OK) return 1;
    TEST(pages_come_with_their_fields_decoded);
    TEST(nothing_can_be_written);
    TEST(a_foreign_name_is_refused);
    TEST(a_page_that_is_known_is_not_sent_again);
    TEST(a_field_too_many_is_told);
    TEST(nonsense_does_not_stop_it);
    TEST(addresses_that_cannot_be_had_are_refused);
    ct_http_close(&http);
    return n_asked > 0 ? test_report() : 1;
}
