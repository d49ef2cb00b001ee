/* What a person sees while a command lasts: one line on the terminal, never longer than it, and
 * nothing of it left behind. A pseudo-terminal and the few things it must understand. */
#define _XOPEN_SOURCE 700 /* posix_openpt */
#include "program.h"

#include <sys/ioctl.h>
#include <time.h>

#include "ct_config.h"
#include "run/run.h"
#include "util/log.h"

/* Long lines: many iterations, three terms of the loss. It is always stopped in its first epoch. */
#define ENDLESS                                                                                    \
    "train --dataset noise --model mlp:64 --train-samples 40000 --test-samples 50 --batch-size 1 " \
    "--agents 8 --partition iid --algorithm ccl --lambda-m 0.1 --lambda-d 0.1 --lr 0.001 "         \
    "--threads 1 --epochs 1000000 --force --out run"

/* ---- a terminal ---- */

enum { ROWS = 400, COLUMNS = 160 };

typedef struct terminal {
    int fd, columns; /* 0: it does not know */
    pid_t pid;
    int row, column;
    char rows[ROWS][COLUMNS + 1];
    char heard[1 << 18]; /* all that came */
    size_t n;
    int n_passing, longest; /* passing lines, and the columns of the longest */
} terminal;

static void resize(const terminal *t, int columns) {
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    CHECK(ioctl(t->fd, TIOCSWINSZ, &size) == 0);
}

static bool shows_output; /* standard output is the terminal as well, not a file */

/* Starts the program on a terminal of its own. */
static void open_terminal(terminal *t, int columns, const char *words) {
    char **args = split_words(words);
    *t = (terminal){.columns = columns > 0 ? columns : 80};
    t->fd = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(t->fd >= 0 && grantpt(t->fd) == 0 && unlockpt(t->fd) == 0);
    if (columns > 0) resize(t, columns);
    const char *name = ptsname(t->fd);
    t->pid = fork();
    if (t->pid != 0) return;
    setsid();
    int slave = open(name, O_RDWR), out = open(".out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (shows_output) out = slave;
    if (slave < 0 || out < 0 || dup2(slave, 0) < 0 || dup2(slave, 2) < 0 || dup2(out, 1) < 0)
        _exit(99);
    alarm(300);
    execv(CT_PROGRAM, args);
    _exit(98);
}

/* Where a line is full, the next character begins another. */
static void type(terminal *t, char c) {
    if (c == '\r') t->column = 0;
    if (c == '\n') t->row++;
    if ((unsigned char)c < 0x20 || ((unsigned char)c & 0xC0) == 0x80) return;
    if (t->column == t->columns) {
        t->column = 0;
        t->row++;
    }
    if (t->row < ROWS && t->column < COLUMNS) t->rows[t->row][t->column] = c;
    t->column++;
}

/* One that begins at the left and is not ended. */
static void measure(terminal *t, const char *line) {
    size_t n = strcspn(line, "\r\n\033^");
    if (strstr(line, "it/s") == NULL || strstr(line, "it/s") > line + n || line[n] == '\n') return;
    t->n_passing++;
    if ((int)n > t->longest) t->longest = (int)n;
}

/* Waits for more; false: the program has ended. */
static bool hear_more(terminal *t) {
    ssize_t n = read(t->fd, t->heard + t->n, sizeof t->heard - 1 - t->n);
    if (n <= 0) return false;
    t->n += (size_t)n;
    t->n_passing = t->longest = 0;
    for (const char *at = t->heard; (at = strstr(at, "\033[K")) != NULL; at++) measure(t, at + 3);
    return true;
}

/* What the screen shows after all of it. */
static void draw(terminal *t) {
    for (size_t k = 0; k < t->n; k++) {
        if (strncmp(t->heard + k, "\033[K", 3) != 0) {
            type(t, t->heard[k]);
            continue;
        }
        if (t->row < ROWS) memset(t->rows[t->row] + t->column, 0, (size_t)(COLUMNS - t->column));
        k += 2;
    }
}

static bool shows(const terminal *t, const char *text) {
    for (int r = 0; r < ROWS; r++)
        if (strstr(t->rows[r], text) != NULL) return true;
    return false;
}

static bool has_line(const terminal *t, const char *start) {
    for (int r = 0; r < ROWS; r++)
        if (strncmp(t->rows[r], start, strlen(start)) == 0) return true;
    return false;
}

/* Ctrl-C, and the end. */
static int interrupt(terminal *t) {
    int status = 0;
    CHECK(write(t->fd, "\003", 1) == 1);
    while (hear_more(t)) continue;
    CHECK(waitpid(t->pid, &status, 0) == t->pid);
    close(t->fd);
    draw(t);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- what is promised ---- */

static terminal screen;

static void watch_and_stop(int columns, int n_passing) {
    open_terminal(&screen, columns, ENDLESS);
    while (screen.n_passing < n_passing && hear_more(&screen)) continue;
    CHECK(interrupt(&screen) == 130);
    CHECK(screen.n_passing >= n_passing);
    remove_tree("run");
}

static void the_passing_line_fits_80_columns(void) {
    watch_and_stop(80, 3);
    CHECK(screen.longest < 78);
}

static void it_uses_all_of_120_columns(void) {
    watch_and_stop(120, 3);
    CHECK(screen.longest > 80 && screen.longest < 118);
    CHECK(strstr(screen.heard, "  dv ") != NULL);
}

static void it_is_cut_in_front_of_a_field(void) {
    watch_and_stop(64, 2);
    CHECK(screen.longest < 62 && strstr(screen.heard, "it/s") != NULL);
    CHECK(strstr(screen.heard, "  ce\r") == NULL && strstr(screen.heard, " lef\r") == NULL);
}

static void a_terminal_that_does_not_know_its_width_has_80_columns(void) {
    watch_and_stop(0, 2);
    CHECK(screen.longest > 40 && screen.longest < 78);
}

static void ctrl_c_leaves_nothing_of_it(void) {
    for (int columns = 80; columns <= 120; columns += 40) {
        watch_and_stop(columns, 2);
        CHECK(!shows(&screen, "it/s") && !shows(&screen, "^C"));
        CHECK(has_line(&screen, "crosstalk: stopped after iteration"));
    }
}

static void a_new_width_counts_from_the_next_line_on(void) {
    open_terminal(&screen, 120, ENDLESS);
    while (screen.n_passing < 1 && hear_more(&screen)) continue;
    CHECK(screen.longest > 77);
    resize(&screen, 60);
    screen.n = 0;
    memset(screen.heard, 0, sizeof screen.heard);
    while (screen.n_passing < 3 && hear_more(&screen)) continue;
    size_t last = 0;
    for (const char *at = screen.heard; (at = strstr(at, "\033[K")) != NULL; at++)
        last = strcspn(at + 3, "\r\n\033");
    CHECK(last > 0 && last < 58);
    CHECK(interrupt(&screen) == 130);
    remove_tree("run");
}

/* ---- evaluations ---- */

static int n_evaluating;

/* Long enough that the next passing line is due. */
static void listen(void *context, ct_level level, const char *text) {
    struct timespec moment = {0, 300000000};
    (void)context;
    if (level != CT_LOG_PASSING) return;
    if (strstr(text, "evaluating 7 models on 50 samples") != NULL) n_evaluating++;
    nanosleep(&moment, NULL);
}

static void an_evaluation_is_a_passing_line_too(void) {
    static ct_config config;
    ct_hooks hooks = {.log = listen};
    ct_config_init(&config);
    static const char *const words[][2] = {
        {"dataset", "shapes"},  {"model", "mlp:4"}, {"train-samples", "600"},
        {"test-samples", "50"}, {"agents", "6"},    {"epochs", "2"},
        {"threads", "1"},       {"out", "run"},     {"eval-agents", "1"}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        CHECK_OK(ct_config_put(&config, words[k][0], words[k][1]));
    const ct_hooks *before = ct_hooks_now();
    ct_hooks_use(&hooks);
    CHECK_OK(ct_train(&config));
    ct_hooks_use(before);
    CHECK(n_evaluating >= 2);
    remove_tree("run");
}

static void run_to_the_end(int columns, const char *words) {
    int status = 0;
    open_terminal(&screen, columns, words);
    while (hear_more(&screen)) continue;
    CHECK(waitpid(screen.pid, &status, 0) == screen.pid && status == 0);
    close(screen.fd);
    draw(&screen);
}

static void a_line_of_an_epoch_is_broken_between_its_fields(void) {
    run_to_the_end(60, "train --dataset idx --data-dir fixtures/data --model mlp:8 --agents 5 "
                       "--batch-size 8 --partition iid --threads 1 --epochs 1 --out run");
    CHECK(has_line(&screen, "epoch 1/1  iteration"));
    CHECK(has_line(&screen, "    consensus ") || has_line(&screen, "    local "));
    CHECK(has_line(&screen, "next: crosstalk report run"));
}

/* After the one above. */
static void a_result_does_not_begin_behind_a_passing_line(void) {
    shows_output = true;
    run_to_the_end(100, "eval run");
    CHECK(strstr(screen.heard, "evaluating  20 of 20 samples") != NULL);
    CHECK(has_line(&screen, "run/consensus.safetensors: accuracy ") &&
          !shows(&screen, "evaluating"));
    if (!CT_WITH_PNG) return;
    run_to_the_end(100, "predict run fixtures/images/grey.png");
    CHECK(strstr(screen.heard, "1 of 1 pictures") != NULL);
    CHECK(has_line(&screen, "file,class,probability") && !shows(&screen, "of 1 pictures"));
    shows_output = false;
}

/* After the one above. */
static void show_and_help_fit_the_terminal(void) {
    shows_output = true;
    run_to_the_end(50, "show run");
    CHECK(has_line(&screen, "run") && shows(&screen, "consensus%") && !shows(&screen, "method"));
    CHECK(shows(&screen, "columns are left out"));
    run_to_the_end(150, "show run");
    CHECK(shows(&screen, "method") && shows(&screen, "seconds"));
    CHECK(!shows(&screen, "columns are left out"));
    run_to_the_end(60, "help show");
    for (int r = 0; r < ROWS; r++) CHECK(strlen(screen.rows[r]) <= 60);
    CHECK(has_line(&screen, "usage: crosstalk show"));
    shows_output = false;
    remove_tree("run");
}

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    TEST(the_passing_line_fits_80_columns);
    TEST(it_uses_all_of_120_columns);
    TEST(it_is_cut_in_front_of_a_field);
    TEST(a_terminal_that_does_not_know_its_width_has_80_columns);
    TEST(ctrl_c_leaves_nothing_of_it);
    TEST(a_new_width_counts_from_the_next_line_on);
    TEST(an_evaluation_is_a_passing_line_too);
    TEST(a_line_of_an_epoch_is_broken_between_its_fields);
    TEST(a_result_does_not_begin_behind_a_passing_line);
    TEST(show_and_help_fit_the_terminal);
    leave_folder();
    return test_report();
}
