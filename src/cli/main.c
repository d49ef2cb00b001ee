/* crosstalk: finds the sub-command and turns its status into an exit code and one line. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "run/signals.h"
#include "transport/transport.h"

static ct_status run(int n_args, char **args) {
    if (n_args == 0) {
        CT_TRY(ct_cli_print_help(NULL, stderr));
        return ct_fail(CT_INVAL, "name a command");
    }
    const char *name = args[0];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) name = "version";
    const ct_command *command = ct_cli_find(name, NULL);
    if (command == NULL) return ct_cli_no_command(name);
    for (int a = 1; a < n_args; a++) {
        if (strcmp(args[a], "--help") != 0 && strcmp(args[a], "-h") != 0) continue;
        return ct_cli_print_help(ct_cli_find(name, args[1]), stdout);
    }
    return command->run(n_args - 1, args + 1);
}

static void tell(void *context, int rank) {
    char text[2048], who[32] = "";
    ct_error_text(context, "--", text, sizeof text);
    if (rank >= 0) snprintf(who, sizeof who, "rank %d: ", rank);
    ct_cli_clear_line();
    ct_show(stderr, "crosstalk: %s%s\n", who, text);
    fflush(stderr);
}

void ct_cli_outlive_readers(void) {
    signal(SIGPIPE, SIG_IGN);
}

/* A file beyond ulimit -f fails like one on a full disk, with a message and nothing half-written
 * left; it does not end the process. A standard stream that is closed stays unwritable: a run's
 * file must not get its number. */
static void prepare_process(void) {
    signal(SIGXFSZ, SIG_IGN);
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
    prepare_process();
    ct_cli_hear();
    ct_error error;
    ct_status status = CT_CATCH(&error, run(argc - 1, argv + 1));
    if (status == CT_OK && ct_show_has_failed())
        status = CT_CATCH(&error, ct_no_memory("a line that was to be printed"));
    if (status == CT_OK && (fflush(stdout) != 0 || ferror(stdout) != 0))
        status = CT_CATCH(&error, ct_fail(CT_IO, "cannot write to standard output"));
    int code = ct_exit_code(status, ct_signals_seen());
    bool is_stopped = status == CT_STOPPED; /* all ranks are, together */
    if (status != CT_OK && !is_stopped) ct_transport_abort(code, tell, &error);
    if (status != CT_OK && !(is_stopped && ct_transport_launch_rank() > 0)) tell(&error, -1);
    ct_transport_end();
    ct_cli_clear_line();
    return code;
}
