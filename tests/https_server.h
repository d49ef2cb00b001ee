/* A small HTTPS server that behaves badly when told so, with a certificate made for the occasion. */
#ifndef CT_TEST_HTTPS_SERVER_H
#define CT_TEST_HTTPS_SERVER_H

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/file.h"

typedef struct server {
    struct MHD_Daemon *daemon;
    int port;
    const uint8_t *bytes; /* what every address gives */
    size_t n;
    size_t cut_after;       /* > 0: each answer ends after so many bytes */
    bool ignores_range;     /* always sends everything */
    bool is_endless;        /* says no length, and never stops */
    int status;             /* 0: 200 and 206 */
    const char *redirect;   /* every other address than /file.bin leads there */
    atomic_bool is_stalled; /* sends nothing while this is set */
    int n_requests;
    size_t last_begin; /* of the last range asked for */
} server;

static server srv;
static char tls[] = "/tmp/crosstalk-tls-XXXXXX", certificate[64], key[64];

static ssize_t send_some(void *context, uint64_t at, char *bytes, size_t max) {
    size_t begin = (size_t)(uintptr_t)context, left = srv.n - begin;
    while (srv.is_stalled) usleep(1000);
    if (srv.cut_after > 0 && left > srv.cut_after) left = srv.cut_after;
    if (srv.is_endless) left = (size_t)at + srv.n;
    if (at >= left) return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = left - (size_t)at < max ? left - (size_t)at : max;
    if (n > srv.n) n = srv.n;
    memcpy(bytes, srv.bytes + (srv.is_endless ? 0 : begin + (size_t)at), n);
    return (ssize_t)n;
}

static struct MHD_Response *make_answer(int code, size_t begin) {
    char range[96];
    if (code >= 400) return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    uint64_t size = srv.is_endless ? MHD_SIZE_UNKNOWN : srv.n - begin;
    struct MHD_Response *r =
        MHD_create_response_from_callback(size, 32768, send_some, (void *)(uintptr_t)begin, NULL);
    snprintf(range, sizeof range, "bytes %zu-%zu/%zu", begin, srv.n - 1, srv.n);
    if (code == 206) MHD_add_response_header(r, "Content-Range", range);
    if (code == 302) MHD_add_response_header(r, "Location", srv.redirect);
    return r;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *c, const char *path,
                              const char *method, const char *version, const char *bytes,
                              size_t *n_bytes, void **state) {
    (void)context, (void)method, (void)version, (void)bytes, (void)n_bytes, (void)state;
    const char *range = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Range");
    size_t begin = range != NULL ? (size_t)strtoull(range + strlen("bytes="), NULL, 10) : 0;
    srv.n_requests++;
    srv.last_begin = begin;
    if (srv.ignores_range) begin = 0;
    bool leads_on = srv.redirect != NULL && strcmp(path, "/file.bin") != 0;
    int code = srv.status != 0               ? srv.status
               : leads_on                    ? 302
               : begin >= srv.n && begin > 0 ? 416
               : begin > 0                   ? 206
                                             : 200;
    struct MHD_Response *r = make_answer(code, begin);
    enum MHD_Result result = MHD_queue_response(c, (unsigned)code, r);
    MHD_destroy_response(r);
    return result;
}

/* A key and a certificate of our own for 127.0.0.1, which nobody else would trust. */
static bool make_certificate(void) {
    char command[512];
    if (mkdtemp(tls) == NULL) return false;
    snprintf(certificate, sizeof certificate, "%s/cert.pem", tls);
    snprintf(key, sizeof key, "%s/key.pem", tls);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
             "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s "
             ">/dev/null 2>&1",
             key, certificate);
    return system(command) == 0 && setenv("SSL_CERT_FILE", certificate, 1) == 0;
}

/* Ends its thread, and with it what is left of connections that were given up. */
static void server_stop(void) {
    if (srv.daemon != NULL) MHD_stop_daemon(srv.daemon);
    srv.daemon = NULL;
}

/* Serves these bytes from now on, plainly. */
static bool serve_bytes(const uint8_t *bytes, size_t n) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ct_blob pem[2] = {{0}};
    server_stop();
    srv = (server){.bytes = bytes, .n = n};
    if (ct_file_read(key, 1 << 16, &pem[0]) == CT_OK &&
        ct_file_read(certificate, 1 << 16, &pem[1]) == CT_OK)
        srv.daemon = MHD_start_daemon(
            MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_TLS, 0, NULL, NULL, answer, NULL,
            MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, MHD_OPTION_HTTPS_MEM_KEY,
            pem[0].bytes, MHD_OPTION_HTTPS_MEM_CERT, pem[1].bytes, MHD_OPTION_END);
    ct_blob_free(&pem[0]);
    ct_blob_free(&pem[1]);
    if (srv.daemon == NULL) return false;
    srv.port = MHD_get_daemon_info(srv.daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    return true;
}

static void remove_certificate(void) {
    remove(certificate);
    remove(key);
    rmdir(tls);
}

static const char *url_of(const char *scheme, const char *file) {
    static char text[96];
    snprintf(text, sizeof text, "%s://127.0.0.1:%d/%s", scheme, srv.port, file);
    return text;
}

static const char *url(void) {
    return url_of("https", "file.bin");
}

#endif
