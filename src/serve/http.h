/* A small read-only web server: GET and HEAD, one handler that fills in pages. */
#ifndef CT_SERVE_HTTP_H
#define CT_SERVE_HTTP_H

#include "util/status.h"
#include "util/text.h"

#define CT_HTTP_MAX_FIELDS 512

typedef struct ct_http_request {
    const char *path; /* decoded, begins with '/' */
    int n_fields;     /* of the query, in its order; who asks with more is refused */
    bool has_more;
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

typedef struct ct_http ct_http;

/* Listens on a numeric address; port 0 takes a free one. Bound to a single address, it answers only
 * requests that name that address or localhost as their host, so that no foreign page can reach it
 * under a name of its own. */
ct_status ct_http_open(const char *address, int port, ct_http_handler *handler, void *context,
                       ct_http **out);
/* What the server sends as ETag of this body. */
void ct_http_tag(const ct_text *body, char *out, size_t size);
int ct_http_port(const ct_http *http);
void ct_http_close(ct_http **http); /* accepts NULL inside */

#endif
