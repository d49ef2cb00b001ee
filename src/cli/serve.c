#include <signal.h>
#include <string.h>

#include "cli/cli.h"
#include "serve/web.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"

void ct_cli_serve_help(FILE *out) {
    fputs(
        "usage: crosstalk serve [DIR] [--port N] [--bind ADDRESS]\n\n"
        "Shows the reports of all runs below DIR (default: runs) in a browser, and keeps them up\n"
        "to date while they train. Reads only, and nothing outside DIR: symbolic links below it\n"
        "are not followed. Ends with Ctrl-C.\n\n",
        out);
    ct_own_help("serve", out);
}

static void wait_for_the_end(const sigset_t *signals) {
    int which;
    while (sigwait(signals, &which) != 0) continue;
}

ct_status ct_cli_serve(int n_args, char **args) {
    ct_own own;
    CT_TRY(ct_own_take("serve", &n_args, args, &own));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    if (n_args > 1) return ct_fail(CT_INVAL, "one directory only, not %s as well", args[1]);
    const char *dir = n_args > 0 ? args[0] : "runs", *address = ct_own_text(&own, "bind");
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before the server's thread inherits the mask */
    ct_web *site = NULL;
    CT_TRY(ct_web_open(dir, address, (int)ct_own_whole(&own, "port"), &site));
    bool is_v6 = strchr(address, ':') != NULL;
    ct_show(stdout, "%s: http://%s%s%s:%d/ (end with Ctrl-C)\n", dir, is_v6 ? "[" : "", address,
            is_v6 ? "]" : "", ct_web_port(site));
    fflush(stdout);
    wait_for_the_end(&signals);
    ct_web_close(&site);
    return CT_OK;
}
