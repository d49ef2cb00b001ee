#include "serve/http.h"

#include <inttypes.h>
#include <stdio.h>

#include "ct_config.h"
#include "util/file.h"

void ct_http_tag(const ct_text *body, char *out, size_t size) {
    snprintf(out, size, "\"%08" PRIx32 "-%zx\"",
             ct_crc32(0, body->chars != NULL ? body->chars : "", body->n), body->n);
}

#if CT_WITH_MICROHTTPD
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/memory.h"

#define CONNECTION_BYTES (256 * 1024) /* a request and its fields */

struct ct_http {
    struct MHD_Daemon *daemon;
    ct_http_handler *handler;
    void *context;
    char address[64];
    bool is_open_to_all; /* bound to every address: any name may be ours */
    int port;
};

/* The name in "name", "name:port" or "[name]:port" is `wanted`. */
static bool host_is(const char *host, const char *wanted) {
    size_t n = strlen(wanted);
    if (host[0] == '[') return strncmp(host + 1, wanted, n) == 0 && host[1 + n] == ']';
    return strncasecmp(host, wanted, n) == 0 && (host[n] == '\0' || host[n] == ':');
}

static bool may_ask(const ct_http *http, struct MHD_Connection *connection) {
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    if (http->is_open_to_all || host == NULL) return true;
    return host_is(host, http->address) || host_is(host, "localhost") ||
           host_is(host, "127.0.0.1") || host_is(host, "::1");
}

static enum MHD_Result add_field(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value) {
    ct_http_request *request = context;
    (void)kind;
    if (request->n_fields == CT_HTTP_MAX_FIELDS) {
        request->has_more = true;
        return MHD_NO;
    }
    request->fields[request->n_fields].name = name;
    request->fields[request->n_fields++].value = value != NULL ? value : "";
    return MHD_YES;
}

static void refuse(ct_http_answer *answer, int code, const char *words) {
    answer->code = code;
    answer->type = "text/plain; charset=utf-8";
    ct_text_add(&answer->body, "%s\n", words);
}

static void fill_answer(const ct_http *http, struct MHD_Connection *connection, const char *path,
                        const char *method, ct_http_answer *answer) {
    bool is_read =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    if (!may_ask(http, connection)) {
        refuse(answer, MHD_HTTP_FORBIDDEN, "this server answers under its own address only");
    } else if (!is_read) {
        refuse(answer, MHD_HTTP_METHOD_NOT_ALLOWED, "this server is read only");
    } else {
        ct_http_request request = {.path = path};
        MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_field, &request);
        if (request.has_more)
            refuse(answer, MHD_HTTP_URI_TOO_LONG, "too many runs at once; name fewer");
        else
            http->handler(http->context, &request, answer);
    }
    if (ct_text_status(&answer->body) == CT_OK) return;
    ct_text_free(&answer->body);
    refuse(answer, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory for the page");
}

static void add_headers(struct MHD_Response *response, const char *type, const char *tag) {
    static const char *const always[][2] = {
        {"Cache-Control", "no-cache"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Content-Security-Policy",
         "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
         "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'"}};
    for (size_t k = 0; k < sizeof always / sizeof *always; k++)
        MHD_add_response_header(response, always[k][0], always[k][1]);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, tag);
}

/* A page that the browser has already is not sent again: it asks every few seconds. */
static enum MHD_Result send_answer(struct MHD_Connection *connection, ct_http_answer *answer) {
    char tag[32];
    ct_http_tag(&answer->body, tag, sizeof tag);
    const char *known =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    bool is_known = answer->code == MHD_HTTP_OK && known != NULL && strcmp(known, tag) == 0;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        is_known ? 0 : answer->body.n, answer->body.chars, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) return MHD_NO;
    add_headers(response, answer->type, tag);
    enum MHD_Result result = MHD_queue_response(
        connection, is_known ? MHD_HTTP_NOT_MODIFIED : (unsigned)answer->code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *upload, size_t *n_upload, void **state) {
    (void)version, (void)upload;
    if (*state == NULL) { /* headers only: what a client uploads is read and dropped */
        *state = context;
        return MHD_YES;
    }
    if (*n_upload > 0) {
        *n_upload = 0;
        return MHD_YES;
    }
    ct_http_answer answer = {.code = MHD_HTTP_OK, .type = "text/html; charset=utf-8"};
    fill_answer(context, connection, path, method, &answer);
    enum MHD_Result result = send_answer(connection, &answer);
    ct_text_free(&answer.body);
    return result;
}

static ct_status listen_at(const struct addrinfo *at, const char *address, int port, int *out) {
    int fd = socket(at->ai_family, SOCK_STREAM, 0), yes = 1;
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
              bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 32) == 0;
    if (ok) {
        *out = fd;
        return CT_OK;
    }
    int reason = errno;
    if (fd >= 0) close(fd);
    return ct_fail(CT_IO, "cannot listen at %s port %d: %s", address, port, strerror(reason));
}

static ct_status open_socket(const char *address, int port, int *out) {
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char digits[16];
    snprintf(digits, sizeof digits, "%d", port);
    if (getaddrinfo(address, digits, &hints, &found) != 0)
        return ct_refuse("bind", "not an address: %s (like 127.0.0.1, ::1 or 0.0.0.0)", address);
    ct_status status = listen_at(found, address, port, out);
    freeaddrinfo(found);
    return status;
}

static int port_of(int fd) {
    struct sockaddr_storage at = {0};
    socklen_t n = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &n) != 0) return 0;
    return at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)(void *)&at)->sin6_port)
                                    : ntohs(((struct sockaddr_in *)(void *)&at)->sin_port);
}

ct_status ct_http_open(const char *address, int port, ct_http_handler *handler, void *context,
                       ct_http **out) {
    int fd = -1;
    CT_TRY(open_socket(address, port, &fd));
    ct_http *http = ct_new(ct_http, 1);
    if (http == NULL) {
        close(fd);
        return ct_fail(CT_NOMEM, "no memory for the server");
    }
    *http = (ct_http){.handler = handler, .context = context, .port = port_of(fd)};
    snprintf(http->address, sizeof http->address, "%s", address);
    http->is_open_to_all = strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;
    /* Single thread: reports are made one after the other. Idle connections end after a minute. */
    http->daemon =
        MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD, (uint16_t)http->port, NULL, NULL, on_request,
                         http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_TIMEOUT, 60u,
                         MHD_OPTION_CONNECTION_LIMIT, 100u, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    if (http->daemon == NULL) {
        close(fd);
        ct_free(http);
        return ct_fail(CT_IO, "the web server does not start at %s port %d", address, port);
    }
    *out = http;
    return CT_OK;
}

int ct_http_port(const ct_http *http) {
    return http->port;
}

void ct_http_close(ct_http **http) {
    if (*http == NULL) return;
    MHD_stop_daemon((*http)->daemon);
    ct_free(*http);
    *http = NULL;
}

#else

ct_status ct_http_open(const char *address, int port, ct_http_handler *handler, void *context,
                       ct_http **out) {
    (void)address, (void)port, (void)handler, (void)context, (void)out;
    return ct_fail(CT_INVAL, "this build has no web server: install libmicrohttpd and build again "
                             "with -DCT_WITH_MICROHTTPD=ON");
}

int ct_http_port(const ct_http *http) {
    (void)http;
    return 0;
}

void ct_http_close(ct_http **http) {
    (void)http;
}
#endif
