/* Which program this is, and what it was built with. */
#include "util/version.h"

#include "cli/cli.h"
#include "ct_config.h"

const ct_help ct_cli_version_help = {
    .usage = "version",
    .text = "Prints the version, the commit that it was built from, and which optional parts "
            "this build has and lacks. crosstalk --version and crosstalk -V are the same.",
    .examples =
        CT_HELP_PAIRS({"Does this build have CUDA and MPI?", "crosstalk version"},
                      {"The version number alone.",
                       "crosstalk --version | sed -n 's/^crosstalk \\([0-9.]*\\).*/\\1/p'"}),
    .also = "help"};

static const struct {
    const char *name;
    bool is_there;
} parts[] = {
    {"CUDA (GPUs)", CT_WITH_CUDA},
    {"MPI (several processes)", CT_WITH_MPI},
    {"ZMQ (sites)", CT_WITH_ZMQ},
    {"JPEG", CT_WITH_JPEG},
    {"PNG", CT_WITH_PNG},
    {"libarchive and curl (data get)", CT_WITH_ARCHIVE &&CT_WITH_CURL},
    {"microhttpd (serve)", CT_WITH_MICROHTTPD},
    {"librsvg (figures as PNG)", CT_WITH_RSVG},
};
enum { N_PARTS = sizeof parts / sizeof *parts };

static void print_parts(const char *start, bool is_there) {
    const char *before = start;
    for (int k = 0; k < N_PARTS; k++) {
        if (parts[k].is_there != is_there) continue;
        ct_show(stdout, "%s%s", before, parts[k].name);
        before = ", ";
    }
    if (before != start) ct_show(stdout, "\n");
}

ct_status ct_cli_version(int n_args, char **args) {
    if (n_args > 0) return ct_fail(CT_INVAL, "version takes nothing, not '%s'", args[0]);
    ct_show(stdout, "crosstalk %s%s%s\n", CT_VERSION, ct_commit[0] != '\0' ? " " : "", ct_commit);
    print_parts("with     ", true);
    print_parts("without  ", false);
    return CT_OK;
}
