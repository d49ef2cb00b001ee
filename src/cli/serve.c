#include <signal.h>
#include <string.h>

#include "cli/cli.h"
#include "serve/site.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"

void ct_cli_serve_help(FILE *out) {
    fputs(
        "usage: crosstalk serve [DIR] [--port N] [--bind ADDRESS]\n\n"
        "Shows the reports of all runs below DIR (default: runs) in a browser, and keeps them up\n"
        "to date while they train. Reads only, and nothing outside DIR. Ends with Ctrl-C.\n\n"
        "  --port N        default 8642; 0 = any free one\n"
        "  --bind ADDRESS  default 127.0.0.1: this machine alone; 0.0.0.0 = whoever can reach it\n",
        out);
}

typedef struct options {
    const char *dir, *address;
    int port;
} options;

static ct_status parse_port(const char *text, int *out) {
    int64_t port;
    if (!ct_parse_i64(text, &port) || port < 0 || port > 65535)
        return ct_fail(CT_INVAL, "--port: a number from 0 to 65535, not %s", text);
    *out = (int)port;
    return CT_OK;
}

static ct_status parse(int n_args, char **args, options *o) {
    for (int k = 0; k < n_args; k++) {
        const char *port = NULL, *address = NULL;
        CT_TRY(ct_cli_own_option(n_args, args, &k, "port", &port));
        if (port == NULL) CT_TRY(ct_cli_own_option(n_args, args, &k, "bind", &address));
        if (port != NULL)
            CT_TRY(parse_port(port, &o->port));
        else if (address != NULL)
            o->address = address;
        else if (args[k][0] == '-')
            return ct_fail(CT_INVAL, "unknown option %s (see: crosstalk help serve)", args[k]);
        else if (o->dir != NULL)
            return ct_fail(CT_INVAL, "one directory only, not %s as well", args[k]);
        else
            o->dir = args[k];
    }
    if (o->dir == NULL) o->dir = "runs";
    return CT_OK;
}

static void wait_for_the_end(const sigset_t *signals) {
    int which;
    while (sigwait(signals, &which) != 0) continue;
}

ct_status ct_cli_serve(int n_args, char **args) {
    options o = {.address = "127.0.0.1", .port = 8642};
    CT_TRY(parse(n_args, args, &o));
    if (!ct_dir_exists(o.dir)) return ct_fail(CT_IO, "%s: no such directory", o.dir);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before the server's thread inherits the mask */
    ct_site *site = NULL;
    CT_TRY(ct_site_open(o.dir, o.address, o.port, &site));
    bool is_v6 = strchr(o.address, ':') != NULL;
    printf("%s: http://%s%s%s:%d/ (end with Ctrl-C)\n", o.dir, is_v6 ? "[" : "", o.address,
           is_v6 ? "]" : "", ct_site_port(site));
    fflush(stdout);
    wait_for_the_end(&signals);
    ct_site_close(&site);
    return CT_OK;
}
