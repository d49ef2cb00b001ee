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
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/memory.h"

#define CONNECTION_BYTES (256 * 1024) /* a request and its fields */
#define MAX_URI          (3 * CONNECTION_BYTES / 4)
#define MAX_CLIENTS      256
#define MAX_PENDING      ((size_t)256 << 20)
#define ASK_SECONDS      10.0
#define FETCH_SECONDS    300.0 /* for an answer */
#define TICK_MS          200   /* how often it looks who is late */

/* A connection: it is waited for a request, then for its answer to be fetched, and again. */
typedef struct client {
    bool is_open, is_cut, is_answered, is_too_long;
    int fd;
    double since; /* when that began */
    size_t n_bytes;
} client;

/* All but opening and closing happens in the server's own thread. */
struct ct_http {
    struct MHD_Daemon *daemon;
    ct_http_handler *handler;
    void *context;
    char *policy;
    double ask_seconds;
    char address[64];
    bool is_open_to_all; /* bound to every address: any name may be ours */
    int port;
    client clients[2 * MAX_CLIENTS]; /* one that is cut off takes a moment to go */
    int n_clients;                   /* that are not cut off */
    size_t n_pending, max_pending;
    pthread_t thread;
    int wake[2]; /* a pipe: closing it ends the thread */
};

/* ---- who is connected ---- */

static void forget(ct_http *http, client *c) {
    if (c->is_cut) return;
    c->is_cut = true;
    http->n_clients--;
    http->n_pending -= c->n_bytes;
    c->n_bytes = 0;
}

/* The library sees the end of the connection, and closes it. */
static void cut(ct_http *http, client *c) {
    if (!c->is_cut) shutdown(c->fd, SHUT_RDWR);
    forget(http, c);
}

/* False: there is none but the newest. */
static bool cut_oldest(ct_http *http, const client *newest, bool must_fetch) {
    client *oldest = NULL;
    for (client *c = http->clients; c < http->clients + 2 * MAX_CLIENTS; c++)
        if (c->is_open && !c->is_cut && c != newest && (!must_fetch || c->n_bytes > 0) &&
            (oldest == NULL || c->since < oldest->since))
            oldest = c;
    if (oldest != NULL) cut(http, oldest);
    return oldest != NULL;
}

static void make_room(ct_http *http, const client *newest) {
    if (http->n_clients > MAX_CLIENTS) cut_oldest(http, newest, false);
    while (http->n_pending > http->max_pending && cut_oldest(http, newest, true)) continue;
}

static void cut_late(ct_http *http) {
    double now = ct_seconds();
    for (client *c = http->clients; c < http->clients + 2 * MAX_CLIENTS; c++)
        if (c->is_open && now - c->since > (c->is_answered ? FETCH_SECONDS : http->ask_seconds))
            cut(http, c);
}

static client *client_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **place,
                          enum MHD_ConnectionNotificationCode code) {
    ct_http *http = context;
    client *c = code == MHD_CONNECTION_NOTIFY_STARTED ? http->clients : *place;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        forget(http, c);
        c->is_open = false;
        return;
    }
    while (c->is_open) c++; /* the library takes no more than there is room for */
    *c = (client){.is_open = true, .since = ct_seconds()};
    c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *place = c;
    http->n_clients++;
    make_room(http, c);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code) {
    ct_http *http = context;
    client *c = client_of(connection);
    (void)state, (void)code;
    if (c == NULL || c->is_cut) return;
    http->n_pending -= c->n_bytes;
    *c = (client){.is_open = true, .fd = c->fd, .since = ct_seconds()};
}

/* The library makes a list of a query's fields in the connection's memory, and falls silent where
 * that is too small. Of a query with too many we make one field, here in its buffer, before it
 * looks; what is asked is refused then. */
static void *on_uri(void *context, const char *uri, struct MHD_Connection *connection) {
    client *c = client_of(connection);
    (void)context;
    c->is_too_long = ct_count_parts(uri, '&') > CT_HTTP_MAX_FIELDS || strlen(uri) > MAX_URI;
    for (char *at = (char *)(uintptr_t)uri; *at != '\0' && c->is_too_long; at++)
        if (*at == '&') *at = '.';
    return NULL;
}

/* ---- questions ---- */

/* "name" or "name:port", of IPv6 "[name]" or "[name]:port", and not a character more. */
static bool host_is(const char *host, const char *wanted) {
    bool is_v6 = strchr(wanted, ':') != NULL;
    size_t n = strlen(wanted);
    if (is_v6 && *host++ != '[') return false;
    if (strncasecmp(host, wanted, n) != 0) return false;
    host += n;
    if (is_v6 && *host++ != ']') return false;
    if (*host == '\0') return true;
    size_t n_digits = strspn(host + 1, "0123456789");
    return *host == ':' && n_digits >= 1 && n_digits <= 5 && host[1 + n_digits] == '\0';
}

typedef struct asked_host {
    const ct_http *http;
    bool is_foreign;
} asked_host;

/* Whoever names several hosts must mean us by all of them. */
static enum MHD_Result check_host(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value) {
    asked_host *asked = context;
    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_HOST) != 0) return MHD_YES;
    if (value == NULL) value = "";
    asked->is_foreign = asked->is_foreign ||
                        !(host_is(value, asked->http->address) || host_is(value, "localhost") ||
                          host_is(value, "127.0.0.1") || host_is(value, "::1"));
    return MHD_YES;
}

static bool may_ask(const ct_http *http, struct MHD_Connection *connection) {
    asked_host asked = {.http = http};
    if (http->is_open_to_all) return true;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, check_host, &asked);
    return !asked.is_foreign;
}

static enum MHD_Result add_field(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value) {
    ct_http_request *request = context;
    (void)kind;
    if (request->n_fields == CT_HTTP_MAX_FIELDS) return MHD_NO; /* on_uri lets no more come */
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
        if (client_of(connection)->is_too_long)
            refuse(answer, MHD_HTTP_URI_TOO_LONG, "too many runs at once; name fewer");
        else
            http->handler(http->context, &request, answer);
    }
    if (ct_text_status(&answer->body) == CT_OK) return;
    ct_text_free(&answer->body);
    refuse(answer, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory for the page");
}

static void add_headers(struct MHD_Response *response, const char *policy, const char *type,
                        const char *tag) {
    const char *const headers[][2] = {
        {"Cache-Control", "no-cache"},        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},   {"Content-Security-Policy", policy},
        {MHD_HTTP_HEADER_CONTENT_TYPE, type}, {MHD_HTTP_HEADER_ETAG, tag}};
    for (size_t k = 0; k < sizeof headers / sizeof *headers; k++)
        MHD_add_response_header(response, headers[k][0], headers[k][1]);
}

/* A page that the browser has already is not sent again: it asks every few seconds. */
static enum MHD_Result send_answer(ct_http *http, struct MHD_Connection *connection,
                                   ct_http_answer *answer) {
    char tag[32];
    ct_http_tag(&answer->body, tag, sizeof tag);
    const char *known =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    bool is_known = answer->code == MHD_HTTP_OK && known != NULL && strcmp(known, tag) == 0;
    size_t n_bytes = is_known ? 0 : answer->body.n;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(n_bytes, answer->body.chars, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) return MHD_NO;
    add_headers(response, http->policy, answer->type, tag);
    enum MHD_Result result = MHD_queue_response(
        connection, is_known ? MHD_HTTP_NOT_MODIFIED : (unsigned)answer->code, response);
    MHD_destroy_response(response);
    client *c = client_of(connection);
    c->is_answered = true;
    c->since = ct_seconds();
    if (!c->is_cut) http->n_pending += c->n_bytes = n_bytes;
    make_room(http, c);
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
    enum MHD_Result result = send_answer(context, connection, &answer);
    ct_text_free(&answer.body);
    return result;
}

static ct_status listen_at(const struct addrinfo *at, const char *address, int port, int *out) {
    int fd = socket(at->ai_family, SOCK_STREAM, 0), yes = 1;
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
              bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
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

/* ---- the server ---- */

static void *serve(void *context) {
    ct_http *http = context;
    int queue = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct pollfd from[] = {{.fd = queue, .events = POLLIN},
                            {.fd = http->wake[0], .events = POLLIN}};
    while (from[1].revents == 0) {
        MHD_UNSIGNED_LONG_LONG wanted;
        bool is_hurried = MHD_get_timeout(http->daemon, &wanted) == MHD_YES && wanted < TICK_MS;
        poll(from, 2, is_hurried ? (int)wanted : http->n_clients > 0 ? TICK_MS : -1);
        MHD_run(http->daemon); /* first: what has arrived is not late, whatever we were busy with */
        cut_late(http);
    }
    return NULL;
}

static struct MHD_Daemon *start(ct_http *http, int fd) {
    return MHD_start_daemon(MHD_USE_EPOLL, (uint16_t)http->port, NULL, NULL, on_request, http,
                            MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                            2u * MAX_CLIENTS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
                            http, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
                            MHD_OPTION_URI_LOG_CALLBACK, on_uri, http, MHD_OPTION_END);
}

static void ct_http_free(ct_http **http) {
    if (*http == NULL) return;
    if ((*http)->daemon != NULL) MHD_stop_daemon((*http)->daemon);
    ct_fd_close(&(*http)->wake[0]);
    ct_fd_close(&(*http)->wake[1]);
    ct_free((*http)->policy);
    ct_free(*http);
    *http = NULL;
}

ct_status ct_http_open(const ct_http_options *o, ct_http **out) {
    CT_SCOPED_HANDLE(ct_http) http = NULL;
    CT_TRY(ct_make(&http, 1, "the server"));
    *http = (ct_http){.handler = o->handler,
                      .context = o->context,
                      .ask_seconds = o->ask_seconds > 0 ? o->ask_seconds : ASK_SECONDS,
                      .max_pending = o->max_pending > 0 ? o->max_pending : MAX_PENDING,
                      .wake = {-1, -1}};
    CT_TRY(ct_make_text(&http->policy, o->policy));
    snprintf(http->address, sizeof http->address, "%s", o->address);
    http->is_open_to_all = strcmp(o->address, "0.0.0.0") == 0 || strcmp(o->address, "::") == 0;
    CT_SCOPED_BY(ct_fd_close, int) fd = -1;
    CT_TRY(open_socket(o->address, o->port, &fd));
    http->port = port_of(fd);
    http->daemon = pipe(http->wake) == 0 ? start(http, fd) : NULL;
    if (http->daemon != NULL) fd = -1; /* it is the library's now */
    if (http->daemon == NULL || pthread_create(&http->thread, NULL, serve, http) != 0)
        return ct_fail(CT_IO, "the web server does not start at %s port %d", o->address, o->port);
    ct_move(out, &http);
    return CT_OK;
}

int ct_http_port(const ct_http *http) {
    return http->port;
}

void ct_http_close(ct_http **http) {
    if (*http == NULL) return;
    ct_fd_close(&(*http)->wake[1]); /* the other end sees that */
    pthread_join((*http)->thread, NULL);
    ct_http_free(http);
}

#else

ct_status ct_http_open(const ct_http_options *options, ct_http **out) {
    (void)options, (void)out;
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
