/* A small read-only web server: GET and HEAD, one handler that fills in pages. */
#ifndef CT_SERVE_HTTP_H
#define CT_SERVE_HTTP_H

#include "util/status.h"
#include "util/text.h"

#define CT_HTTP_MAX_FIELDS 512

typedef struct ct_http_request {
    const char *path; /* decoded, begins with '/' */
    int n_fields;     /* of the query, in its order; who asks with more is refused */
    struct {
        const char *name, *value;
    } fields[CT_HTTP_MAX_FIELDS];
} ct_http_request;

typedef struct ct_http_answer {
    int code;         /* 200 unless the handler says otherwise */
    const char *type; /* text/html unless the handler says otherwise */
    ct_text body;
} ct_http_answer;

/* Runs in the server's one thread. */
typedef void ct_http_handler(void *context, const ct_http_request *request, ct_http_answer *answer);

typedef struct ct_http_options {
    const char *address; /* numeric */
    int port;            /* 0 takes a free one */
    ct_http_handler *handler;
    void *context;
    const char *policy; /* the Content-Security-Policy of every answer */
    double ask_seconds; /* for a whole request, however slowly it drips in; 0: ten */
    size_t max_pending; /* bytes of answers that nobody has fetched yet; 0: 256 MiB */
} ct_http_options;

typedef struct ct_http ct_http;

/* Bound to a single address, it answers only requests that name that address or localhost as their
 * host, so that no foreign page can reach it under a name of its own.
 *
 * Nobody is shut out by others who are slow, be it from the same address: whoever does not get a
 * request out in time is cut off, and where there are too many connections, or too much that nobody
 * fetches, the one that has been waiting longest makes room for the newest. */
ct_status ct_http_open(const ct_http_options *options, ct_http **out);
/* What the server sends as ETag of this body. */
void ct_http_tag(const ct_text *body, char *out, size_t size);
int ct_http_port(const ct_http *http);
void ct_http_close(ct_http **http); /* accepts NULL inside */

#endif
