/* What the library says, on stderr: lines, notes, and on a terminal the one passing line that the
 * next replaces. */
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "transport/transport.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/text.h"

#define CLEAR "\r\033[K" /* back to the beginning of the line, and clear it to its end */

static bool is_quiet;
static volatile sig_atomic_t has_passing; /* a passing line stands on the terminal */

void ct_cli_quiet(bool quiet) {
    is_quiet = quiet;
}

void ct_cli_clear_line(void) {
    if (has_passing) fputs(CLEAR, stderr);
    has_passing = 0;
}

/* ---- the width ---- */

int ct_cli_width(int fd) {
    struct winsize size;
    bool is_known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return is_known ? size.ws_col : 80;
}

/* No fewer than a terminal needs for the character of n bytes (0: none) once ct_show has spelled
 * it. */
static int columns_of(const char *c, size_t n) {
    if (n == 0 || (unsigned char)c[0] < 0x20 || c[0] == 0x7F) return 4; /* \x1b */
    return n == 1 ? 1 : 6;                                              /* \u202e */
}

/* Cuts the line where it no longer fits, if it can in front of a field: two blanks are between
 * them. */
static void fit(char *text, int columns) {
    char *gap = NULL;
    for (char *at = text; *at != '\0';) {
        size_t n = ct_utf8_length(at);
        if (strncmp(at, "  ", 2) == 0) gap = at;
        columns -= columns_of(at, n);
        if (columns < 0) {
            *(gap != NULL && gap > text ? gap : at) = '\0';
            return;
        }
        at += n > 0 ? n : 1;
    }
}

/* Two columns stay free for the ^C that a terminal writes behind the line, and the last one for
 * terminals that go to the next line with it. */
static void pass(char *text) {
    fit(text, ct_cli_width(STDERR_FILENO) - 3);
    ct_cli_clear_line();
    ct_show(stderr, "%s", text);
    has_passing = 1;
}

/* On a terminal, a line of fields with two blanks between them that is too wide goes on in the next
 * one, not in the middle of a word. Other lines are left alone: they may be copied. */
static void show_fields(const char *start, const char *text) {
    char shown[8192];
    int n = snprintf(shown, sizeof shown, "%s", start);
    int width = isatty(STDERR_FILENO) == 1 ? ct_cli_width(STDERR_FILENO) : INT_MAX, column = n;
    for (bool is_first = true; *text != '\0'; is_first = false) {
        const char *gap = strstr(text, "  ");
        int length = gap != NULL ? (int)(gap - text) : (int)strlen(text);
        bool is_full = !is_first && column + 2 + length > width;
        const char *before = is_first ? "" : is_full ? "\n    " : "  ";
        column = is_full ? 4 + length : column + (is_first ? 0 : 2) + length;
        n += snprintf(shown + n, sizeof shown - (size_t)n, "%s%.*s", before, length, text);
        if (n >= (int)sizeof shown) n = (int)sizeof shown - 1;
        text += length + (gap != NULL ? 2 : 0);
    }
    snprintf(shown + n, sizeof shown - (size_t)n, "\n");
    ct_show_lines(stderr, shown);
}

/* ---- hooks ---- */

/* A study's runs have much in common: what was noted once need not be noted again. */
static bool is_known(const char *note) {
    static uint64_t known[256];
    static size_t n;
    uint64_t sum = ct_hash(CT_HASH_START, note, strlen(note));
    for (size_t k = 0; k < n && k < 256; k++)
        if (known[k] == sum) return true;
    known[n++ % 256] = sum;
    return false;
}

static void hear(void *context, ct_level level, const char *text) {
    static const char *const starts[] = {"", "", "note: ", "crosstalk: "};
    char line[4096];
    (void)context;
    if (ct_transport_launch_rank() > 0) return; /* rank 0 says it for all */
    if (is_quiet && level != CT_LOG_WARNING) return;
    if (level == CT_LOG_PASSING && isatty(STDERR_FILENO) != 1) return;
    if (level == CT_LOG_NOTE && is_known(text)) return;
    ct_spell(text, "--", line, sizeof line);
    if (level == CT_LOG_PASSING) {
        pass(line);
        return;
    }
    ct_cli_clear_line();
    show_fields(starts[level], line);
}

/* Ctrl-C of a command that does not catch it: the line goes, and then the process as ever. */
static void leave(int number) {
    if (has_passing && write(STDERR_FILENO, CLEAR, strlen(CLEAR)) < 0) has_passing = 0;
    signal(number, SIG_DFL);
    raise(number);
}

void ct_cli_next(const char *format, ...) {
    char command[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    ct_log(CT_LOG_LINE, "next: crosstalk %s", command);
}

void ct_cli_hear(void) {
    static const ct_hooks hooks = {.log = hear};
    ct_hooks_use(&hooks);
    if (isatty(STDERR_FILENO) != 1) return;
    if (signal(SIGINT, leave) == SIG_IGN) signal(SIGINT, SIG_IGN);
}
