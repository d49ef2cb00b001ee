/* Runs the built program and keeps what it said. Tests work in a folder of their own, in which
 * `fixtures` is a link to tests/fixtures. */
#ifndef CT_TESTS_PROGRAM_H
#define CT_TESTS_PROGRAM_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"

/* Tiny data, a tiny model: milliseconds a run. */
#define DATA  " --dataset idx --data-dir fixtures/data "
#define TRAIN "train --quiet --model mlp:8 --agents 5 --batch-size 8 --partition iid --threads 1 "
#define TINY  TRAIN DATA "--epochs 2 --lr 0.05 --out run "

enum { MAX_ARGS = 100, SAID = 1 << 16 };

static struct {
    int code; /* exit status; 128 + signal where one ended it */
    char out[SAID], err[SAID];
    char command[4096];
} said;

/* Where the program's standard output goes, the most bytes it may write to a file, and the most
 * addresses it may use (0: any). */
static const char *output_path = ".out";
static size_t file_limit, memory_limit;
static unsigned patience_s; /* then it is killed: it waits for what will never come; 0: for ever */

static char folder[] = "/tmp/crosstalk-test-XXXXXX";

static bool enter_folder(void) {
    return mkdtemp(folder) != NULL && chdir(folder) == 0 &&
           symlink(CT_SOURCE_DIR "/tests/fixtures", "fixtures") == 0;
}

static inline void slurp(const char *path, char *text) {
    FILE *f = fopen(path, "rb");
    size_t n = f != NULL ? fread(text, 1, SAID - 1, f) : 0;
    text[n] = '\0';
    if (f != NULL) fclose(f);
}

static inline void start(char **args) {
    int out = open(output_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int err = open(".err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0 || err < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(99);
    struct rlimit limit = {.rlim_cur = file_limit, .rlim_max = file_limit};
    signal(SIGXFSZ, SIG_IGN); /* writing beyond the limit fails instead */
    if (file_limit > 0 && setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(97);
    limit = (struct rlimit){.rlim_cur = memory_limit, .rlim_max = memory_limit};
    if (memory_limit > 0 && setrlimit(RLIMIT_AS, &limit) != 0) _exit(97);
    alarm(patience_s);
    execv(CT_PROGRAM, args);
    _exit(98);
}

/* The program and words separated by blanks, {} an empty one, as arguments; good until the next. */
static inline char **split_words(const char *words) {
    static char text[4096], *args[MAX_ARGS + 2] = {CT_PROGRAM};
    char *save = NULL;
    int n = 1;
    snprintf(said.command, sizeof said.command, "%s", words);
    snprintf(text, sizeof text, "%s", words);
    for (char *w = strtok_r(text, " ", &save); w != NULL && n <= MAX_ARGS;
         w = strtok_r(NULL, " ", &save))
        args[n++] = strcmp(w, "{}") == 0 ? w + 2 : w;
    args[n] = NULL;
    fflush(stdout);
    return args;
}

/* Runs the program with these words. Returns its exit code. */
static int run(const char *words) {
    char **args = split_words(words);
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) start(args);
    said.code = -1;
    if (pid > 0 && waitpid(pid, &status, 0) == pid)
        said.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    slurp(".out", said.out);
    slurp(".err", said.err);
    return said.code;
}

static inline int n_lines(const char *text) {
    int n = 0;
    for (; *text != '\0'; text++) n += *text == '\n';
    return n;
}

static inline void blame(const char *what) {
    printf("    %s: crosstalk %s\n    exit %d, it said: %s%s\n", what, said.command, said.code,
           said.err, said.out);
    test_failed = true;
}

static inline void succeeds(const char *words) {
    if (run(words) != 0) blame("should succeed");
}

/* The exit code, one line on stderr with these words in it, nothing on stdout. */
static inline void refuses_with(int code, const char *words, const char *const *wanted, size_t n) {
    run(words);
    bool ok = said.code == code && n_lines(said.err) == 1 && said.out[0] == '\0' &&
              strncmp(said.err, "crosstalk: ", 11) == 0;
    for (size_t k = 0; k < n; k++) ok = ok && strstr(said.err, wanted[k]) != NULL;
    if (!ok) {
        blame("should refuse");
        printf("    with exit %d and", code);
        for (size_t k = 0; k < n; k++) printf(" '%s'", wanted[k]);
        printf("\n");
    }
}
#define REFUSES(code, words, ...)                                                                  \
    refuses_with(code, words, (const char *const[]){__VA_ARGS__},                                  \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* ---- files ---- */

static inline bool same_files(const char *a, const char *b) {
    ct_blob x = {0}, y = {0};
    bool same = ct_file_read(a, 1 << 24, &x) == CT_OK && ct_file_read(b, 1 << 24, &y) == CT_OK &&
                x.n == y.n && memcmp(x.bytes, y.bytes, x.n) == 0;
    ct_blob_free(&x);
    ct_blob_free(&y);
    ct_clear_message();
    return same;
}

static inline int n_files(const char *dir) {
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e = NULL; d != NULL && (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d != NULL) closedir(d);
    return n;
}

/* A directory with all that is in it. */
static inline void remove_tree(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char inside[1024];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(inside, sizeof inside, "%.500s/%.255s", path, e->d_name);
        if (unlink(inside) != 0) remove_tree(inside);
    }
    if (d != NULL) closedir(d);
    rmdir(path);
}

static inline void remove_dir(const char *dir) {
    remove_tree(dir);
}

static void leave_folder(void) {
    unlink("fixtures");
    remove_dir(folder);
}

static inline void put(const char *path, const char *text) {
    CHECK_OK(ct_file_write(path, text, strlen(text)));
}

/* A JSON object in a file, or in its n-th line (from 0); NULL if there is none. */
static inline ct_json *read_json(const char *path, int line) {
    ct_blob blob = {0};
    ct_json *json = NULL;
    if (ct_file_read(path, 1 << 24, &blob) != CT_OK) return NULL;
    char *at = (char *)blob.bytes;
    for (int k = 0; k < line && at != NULL; k++) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    size_t n = at == NULL ? 0 : line >= 0 ? strcspn(at, "\n") : strlen(at);
    if (n > 0) CHECK_OK(ct_json_parse(at, n, path, &json));
    ct_blob_free(&blob);
    return json;
}

static inline double number_of(const ct_json *object, const char *key) {
    const ct_json *member = object != NULL ? ct_json_get(object, key) : NULL;
    return member != NULL && member->kind == CT_JSON_NUMBER ? member->number : NAN;
}

#endif
