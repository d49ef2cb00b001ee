#include <signal.h>
#include <string.h>

#include "cli/cli.h"
#include "serve/web.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"

const ct_help ct_cli_serve_help = {
    .usage = "serve [RUN] [--port N] [--bind ADDRESS]",
    .text = "Shows the pages of crosstalk report in a browser and keeps them up to date while "
            "runs train. RUN is a run directory or a folder of runs; the default is runs. It "
            "only reads, and nothing outside RUN: symbolic links below it are not followed. "
            "Ctrl-C ends it.",
    .examples =
        CT_HELP_PAIRS({"All runs below runs, at http://127.0.0.1:8642/.", "crosstalk serve"},
                      {"From another machine: forward the port instead of opening it.",
                       "ssh -L 8642:127.0.0.1:8642 HOST crosstalk serve runs"}),
    .also = "report, show, docs/REPORTS.md"};

static void wait_for_the_end(const sigset_t *signals) {
    int which;
    while (sigwait(signals, &which) != 0) continue;
}

ct_status ct_cli_serve(int n_args, char **args) {
    ct_own own;
    CT_TRY(ct_own_take("serve", &n_args, args, &own));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    if (n_args > 1)
        return ct_fail(CT_INVAL, "one run or folder of runs only, not %s as well", args[1]);
    CT_TRY(ct_cli_default_runs(&n_args, &args));
    const char *dir = args[0], *address = ct_own_text(&own, "bind");
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
