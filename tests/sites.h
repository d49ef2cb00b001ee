/* Sites as processes on this machine: a federation's file, keys and small data sets in the test's
 * folder, and `crosstalk site run` for each site. Whoever waits longer than two minutes hangs. */
#ifndef CT_TESTS_SITES_H
#define CT_TESTS_SITES_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "ct_config.h"
#include "program.h"
#include "site/federation.h"
#include "util/rng.h"

#define NEEDS_ZMQ()                                                                                \
    if (!CT_WITH_ZMQ) SKIP("built without libzmq")

enum { MOST_SITES = 5, HANGS_S = 120 };
static const char *const site_names[] = {"north", "south", "east", "west", "middle"};
#define TRIANGLE "0-1 1-2 0-2"
#define CHAIN    "0-1 1-2 2-3"
#define RING     "0-1 1-2 2-3 0-3"

static ct_key_pair site_keys[MOST_SITES];
static int site_ports[MOST_SITES];

typedef struct federation {
    int n;             /* sites */
    const char *edges; /* "0-1 1-2" */
    int dialers;       /* bit k: site k has no address */
    double heartbeat_s;
    int epochs;
    const char *options; /* lines beside the usual */
} federation;

/* ---- data: 6x6 pictures whose brightness tells their class ---- */

static inline void put_npy(const char *path, const char *shape, const void *values, size_t n) {
    char header[128];
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }",
             shape);
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL);
    if (f == NULL) return;
    fwrite("\x93NUMPY\x01\x00v\x00", 1, 10, f);
    fprintf(f, "%-117s\n", header);
    fwrite(values, 1, n, f);
    fclose(f);
}

static inline void put_part(const char *dir, const char *part, int n, int salt) {
    enum { MOST = 4000, PIXELS = 36 };
    static uint8_t pixels[MOST * PIXELS], labels[MOST];
    char path[128], shape[64];
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_TEST, (uint32_t)salt, 0, 0);
    for (int i = 0; i < n; i++) {
        labels[i] = (uint8_t)ct_rng_below(&rng, 3);
        for (int p = 0; p < PIXELS; p++)
            pixels[i * PIXELS + p] = (uint8_t)(80u * labels[i] + ct_rng_below(&rng, 90));
    }
    snprintf(path, sizeof path, "%s/%s_images.npy", dir, part);
    snprintf(shape, sizeof shape, "(%d, 6, 6)", n);
    put_npy(path, shape, pixels, (size_t)n * PIXELS);
    snprintf(path, sizeof path, "%s/%s_labels.npy", dir, part);
    snprintf(shape, sizeof shape, "(%d,)", n);
    put_npy(path, shape, labels, (size_t)n);
}

/* ---- the federation ---- */

static inline bool is_free(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bool is = bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0;
    close(fd);
    return is;
}

/* Keys, ports below those that the system gives to others, and data of unequal sizes. */
static inline bool prepare_sites(void) {
    static const int sizes[] = {40, 90, 200, 60, 120};
    int port = 20000 + (int)(getpid() % 1000) * 12;
    for (int k = 0; k < MOST_SITES; k++) {
        char path[64];
        while (!is_free(port)) port++;
        site_ports[k] = port++;
        if (CT_WITH_ZMQ) {
            CHECK_OK(ct_keys_make(&site_keys[k]));
            snprintf(path, sizeof path, "%s.key", site_names[k]);
            CHECK_OK(ct_keys_write(&site_keys[k], path));
        }
        CHECK(mkdir(site_names[k], 0700) == 0);
        put_part(site_names[k], "train", sizes[k], 2 * k);
        put_part(site_names[k], "test", 20, 2 * k + 1);
    }
    return !test_failed;
}

static inline void add_edges(const federation *f, const char *format, ct_text *out) {
    for (const char *at = f->edges; *at != '\0'; at += strcspn(at, " "), at += *at == ' ') {
        int a = at[0] - '0', b = at[2] - '0';
        if (strchr(format, 's') != NULL)
            ct_text_add(out, "edge %s %s\n", site_names[a], site_names[b]);
        else
            ct_text_add(out, "%d %d\n", a, b);
    }
}

static inline void put_federation(const federation *f, const char *path) {
    CT_SCOPED(ct_text) text = {0};
    char key[CT_KEY_TEXT];
    ct_text_add(&text, "federation lungs\n");
    for (int k = 0; k < f->n; k++) {
        ct_key_print(site_keys[k].public_key, key);
        ct_text_add(&text, "site %s %s", site_names[k], key);
        if ((f->dialers >> k & 1) == 0) ct_text_add(&text, " 127.0.0.1:%d", site_ports[k]);
        ct_text_add(&text, "\n");
    }
    add_edges(f, "s", &text);
    ct_text_add(&text,
                "option dataset npy\noption model mlp:8\noption algorithm ccl\n"
                "option batch-size 8\noption lr 0.01\noption epochs %d\nheartbeat %g\n%s",
                f->epochs, f->heartbeat_s, f->options != NULL ? f->options : "");
    CHECK_OK(ct_text_status(&text));
    put(path, text.chars);
}

/* ---- the processes ---- */

typedef struct process {
    pid_t pid; /* 0: none */
    int code;  /* exit status of the last one; 128 + signal */
} process;

static process sites[MOST_SITES];

static inline void exec_program(const char *program, char **args, const char *log) {
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) _exit(97);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGHUP, SIG_DFL); /* nohup ignores it, and what it starts as well */
    alarm(HANGS_S);
    execv(program, args);
    _exit(98);
}

/* Site k with the federation in `file`, from now on; its words go to <out>/<name>.log. */
static inline void start_site_with(int k, const char *file, const char *out, const char *more) {
    char words[1024], log[128];
    const char *name = site_names[k];
    mkdir(out, 0700);
    snprintf(log, sizeof log, "%s/%s.log", out, name);
    snprintf(words, sizeof words,
             "site run %s --key %s.key --data-dir %s --out %s/%s --threads 1 %s", file, name, name,
             out, name, more);
    char **args = split_words(words);
    pid_t pid = fork();
    if (pid == 0) exec_program(CT_PROGRAM, args, log);
    CHECK(pid > 0);
    sites[k] = (process){.pid = pid, .code = -1};
}

static inline void start_site(int k, const char *file, const char *out) {
    start_site_with(k, file, out, "--patience 60 --checkpoint-every 1");
}

static inline void start_sites(int n, const char *file, const char *out) {
    for (int k = 0; k < n; k++) start_site(k, file, out);
}

/* Its exit status; one that hangs ends with 128 + SIGALRM. */
static inline int await_site(int k) {
    int status = 0;
    if (sites[k].pid == 0) return sites[k].code;
    if (waitpid(sites[k].pid, &status, 0) == sites[k].pid)
        sites[k].code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    sites[k].pid = 0;
    return sites[k].code;
}

static inline bool is_running(int k) {
    int status = 0;
    if (sites[k].pid == 0) return false;
    if (waitpid(sites[k].pid, &status, WNOHANG) != sites[k].pid) return true;
    sites[k].code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    sites[k].pid = 0;
    return false;
}

static inline void signal_site(int k, int number) {
    if (sites[k].pid > 0) kill(sites[k].pid, number);
}

static inline void kill_site(int k) {
    signal_site(k, SIGKILL);
    await_site(k);
}

static inline void show_log(const char *out, int k) {
    static char text[SAID];
    char path[128];
    snprintf(path, sizeof path, "%s/%s.log", out, site_names[k]);
    slurp(path, text);
    size_t n = strlen(text);
    printf("    %s ended with %d and said:\n%s\n", site_names[k], sites[k].code,
           n > 3000 ? text + n - 3000 : text);
}

/* All of them end, and well. */
static inline bool all_end(int n, const char *out) {
    bool all = true;
    for (int k = 0; k < n; k++) {
        bool ends = await_site(k) == 0;
        if (!ends) show_log(out, k);
        all = all && ends;
    }
    return all;
}

static inline bool log_has(const char *out, int k, const char *words) {
    static char text[SAID];
    char path[128];
    snprintf(path, sizeof path, "%s/%s.log", out, site_names[k]);
    slurp(path, text);
    return strstr(text, words) != NULL;
}

static inline void nap(double seconds) {
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
    nanosleep(&t, NULL);
}

/* As soon as its log has the words; false: it ended, or hangs, without. */
static inline bool says(const char *out, int k, const char *words) {
    double until = ct_seconds() + HANGS_S;
    while (!log_has(out, k, words)) {
        if (!is_running(k) && !log_has(out, k, words)) return false;
        if (ct_seconds() > until) return false;
        nap(0.01);
    }
    return true;
}

/* ---- what they leave ---- */

/* The numbers of a safetensors file, behind its header. */
static inline bool same_tensors(const char *a, const char *b) {
    CT_SCOPED(ct_blob) x = {0};
    CT_SCOPED(ct_blob) y = {0};
    uint64_t head_x = 0, head_y = 0;
    if (ct_file_read(a, 1 << 28, &x) != CT_OK || ct_file_read(b, 1 << 28, &y) != CT_OK || x.n < 8 ||
        y.n < 8) {
        printf("    %s or %s is not there\n", a, b);
        ct_clear_message();
        return false;
    }
    memcpy(&head_x, x.bytes, 8);
    memcpy(&head_y, y.bytes, 8);
    bool same = x.n - head_x == y.n - head_y &&
                memcmp(x.bytes + 8 + head_x, y.bytes + 8 + head_y, x.n - 8 - head_x) == 0;
    if (!same) printf("    %s and %s differ\n", a, b);
    return same;
}

static inline bool same_consensus(int n, const char *out) {
    bool same = true;
    for (int k = 1; k < n; k++) {
        char a[128], b[128];
        snprintf(a, sizeof a, "%s/%s/consensus.safetensors", out, site_names[0]);
        snprintf(b, sizeof b, "%s/%s/consensus.safetensors", out, site_names[k]);
        same = same_tensors(a, b) && same;
    }
    return same;
}

/* The same federation in one process, in `out`. */
static inline void simulate(const federation *f, const char *out, const char *more) {
    CT_SCOPED(ct_text) edges = {0}, words = {0};
    add_edges(f, "d", &edges);
    put("edges", edges.chars);
    ct_text_add(
        &words,
        "train --quiet --dataset npy --data-dir %%a --partition own --model mlp:8 --algorithm "
        "ccl --batch-size 8 --lr 0.01 --epochs %d --min-class-count 2 --topology file:edges "
        "--threads 1 --checkpoint-every 1 --agents %d --agent-names ",
        f->epochs, f->n);
    for (int k = 0; k < f->n; k++) ct_text_add(&words, "%s%s", k > 0 ? "," : "", site_names[k]);
    ct_text_add(&words, " --out %s %s", out, more);
    succeeds(words.chars);
}

/* The last checkpoints and the consensus are those of the simulation, to the bit. */
static inline bool as_simulated(int n, const char *out, const char *simulated) {
    bool same = true;
    char a[256], b[256], name[128];
    for (int k = 0; k < n; k++) {
        snprintf(a, sizeof a, "%s/consensus.safetensors", simulated);
        snprintf(b, sizeof b, "%s/%s/consensus.safetensors", out, site_names[k]);
        same = same_tensors(a, b) && same;
        snprintf(a, sizeof a, "%s/summary.json", simulated);
        CT_SCOPED_HANDLE(ct_json) summary = read_json(a, -1);
        snprintf(name, sizeof name, "checkpoint/%.0f/agent-%d.ckpt",
                 number_of(summary, "iteration"), k);
        snprintf(a, sizeof a, "%s/%s", simulated, name);
        snprintf(b, sizeof b, "%s/%s/%s", out, site_names[k], name);
        bool is = same_files(a, b);
        if (!is) printf("    %s and %s differ\n", a, b);
        same = same && is;
    }
    return same;
}

#endif
