/* Every command with too little memory. tests/starve/starve.c counts what a command allocates and
 * then lets one allocation fail, or all from one on: the command must say in one line that there is
 * no memory and leave nothing half-written, or, where it can do without, give the same results.
 * A few allocations of every command here; with scripts/test.sh --long all of them, and one of every
 * call stack where the sanitizers look on.
 *   test_starved CASE [all]    one case alone: one allocation of every call stack, or every one
 *   test_starved CASE K [on]   the K-th allocation alone, or everything from it on */
#define _GNU_SOURCE /* strcasestr */
#include "ct_config.h"
#include "program.h"

#include "data_files.h"
#include "sockets.h"
#include "starve/starve.h"
#include "util/sha256.h"

#if defined(__SANITIZE_ADDRESS__)
enum { N_FEW = 1 }; /* each takes several times as long */
#else
enum { N_FEW = 3 };
#endif
enum { LIMIT_S = 60 };
typedef enum effort { FEW, PLACES, ALL } effort;

typedef struct starved_case {
    const char *name;
    const char *words;
    const char *from;   /* what is in out/ when it begins; NULL: nothing */
    bool shows_seconds; /* on stdout and in texts: their digits are not compared */
    bool keeps_parts;   /* to be continued */
} starved_case;

#define TABLE                                                                                      \
    "train --quiet --checkpoint-strict --model mlp:4 --agents 2 --threads 1 --dataset csv "        \
    "--label grade --data-dir "                                                                    \
    "fixtures/tables/mixed.csv --test-fraction 0.2 --partition iid --epochs 1 --batch-size 4 "
#define RUNS "runs/a runs/b runs/c"
static char data_get[256]; /* has the digest of what is got */
static const starved_case cases[] = {
    {"train", TRAIN DATA "--checkpoint-strict --epochs 2 --lr 0.05 --force --out out/run", NULL,
     true},
    {"train_ccl",
     TRAIN DATA "--checkpoint-strict --epochs 2 --algorithm ccl --seeds 1,2 --tensorboard --ledger "
                "--save-agents "
                "--checkpoint-every 1 --gossip-rounds 1 --final-merge --force "
                "--out out/run",
     NULL, true},
    {"train_files",
     TRAIN DATA "--checkpoint-strict --epochs 1 --partition-file fixtures/partition.csv --topology "
                "file:graph.txt "
                "--init fixtures/init.safetensors --force --out out/run",
     NULL, true},
    {"train_schedule",
     TRAIN DATA "--checkpoint-strict --epochs 1 --algorithm sgp --topology schedule:schedule.txt "
                "--force --out out/run",
     NULL, true},
    {"train_pictures",
     "train --quiet --checkpoint-strict --model mlp:4 --agents 2 --threads 1 --dataset auto "
     "--data-dir pictures "
     "--image-size 8 "
     "--workers 1 --test-fraction 0.5 --epochs 1 --batch-size 1 --force --out out/run",
     NULL, true},
    {"train_own",
     "train --quiet --checkpoint-strict --model mlp:4 --agents 2 --threads 1 --partition own "
     "--data-dir site-%a "
     "--agent-names east,west --seeds 1,2 --dataset folder --image-size 8 --workers 1 --augment "
     "off "
     "--test-fraction 0.5 --epochs 1 --batch-size 1 --force --out out/run",
     NULL, true},
    {"train_table", TABLE "--force --out out/run", NULL, true},
    {"resume", "train --quiet --resume out --iterations 0 --checkpoint-strict", "half", true},
    {"eval", "eval runs/b --quiet", NULL, false},
    {"predict", "predict runs/b pictures --quiet --threads 1 --force --out out/p.csv", NULL, false},
    {"predict_json", "predict runs/b pictures --quiet --threads 1 --format json", NULL, false},
    {"predict_table", "predict table fixtures/tables/mixed.csv --quiet --threads 1", NULL, false},
    {"export", "export runs/b out/model.onnx --preprocess --quiet --force", NULL, false},
    {"show", "show --quiet " RUNS, NULL, false},
    {"show_json", "show runs --json", NULL, false},
    {"list_json", "list --json", NULL, false},
    {"report", "report --quiet " RUNS " --out out/page.html", NULL, false},
    {"show_bundle", "show --quiet kept.gz kept.gz/a", NULL, false},
    {"help", "help train", NULL, false},
    {"help_all", "help", NULL, false},
    {"help_markdown", "help --markdown out/pages --man out/man", NULL, false},
    {"report_of_bundle", "report --quiet kept.gz --out out/page.html", NULL, false},
    {"report_bundle", "report runs --bundle out/runs.jsonl.gz --force", NULL, false},
    {"report_figures", "report runs --figures out/figures --format svg", NULL, false},
    {"compare",
     "compare --quiet --algorithms dsgdm,ccl " DATA "--model mlp:4 --agents 4 "
     "--threads 1 --batch-size 8 --epochs 1 --out out/table",
     NULL, true},
    {"sweep",
     "sweep --quiet --algorithm ccl --lambda-m 1,0.1 --lr 0.1,0.05 " DATA
     "--model mlp:4 --agents 4 --threads 1 --batch-size 8 --epochs 1 --out out/table",
     NULL, true},
    {"reproduce", "reproduce tiny.conf --quiet --threads 1 --out out/table", NULL, true},
    {"reproduce_tuned", "reproduce tuned.conf --quiet --threads 1 --out out/table", NULL, true},
    {"leaderboard", "leaderboard verify board --study tuned.conf", NULL, false},
    {"reproduce_list", "reproduce list", NULL, false},
    {"list_models", "list models", NULL, false},
    {"topology", "topology --topology dyck --agents 32", NULL, false},
    {"topology_schedule", "topology --topology schedule:schedule.txt --agents 5", NULL, false},
    {"partition",
     "partition" DATA
     "--agents 5 --out out/split.csv --svg out/split.svg --png out/split.png --force --quiet",
     NULL, false},
    {"data_info",
     "data info pictures --workers 1 --test-fraction 0.5 --image-size 8 --sheet out/sheet.png",
     NULL, false},
    {"data_verify", "data verify pictures --workers 1 --test-fraction 0.5", NULL, false},
    {"data_verify_pack", "data verify pictures.ctpack", NULL, false},
    {"data_import",
     "data import pictures out/x.ctpack --image-size 8 --workers 1 --test-fraction 0.5", NULL,
     false},
#if CT_WITH_CURL && CT_WITH_ARCHIVE
    {"data_get", data_get, NULL, false, true},
#endif
    {"data_split", "data split --ranks 2" DATA "--agents 4 --out out/parts --force", NULL, false},
    {"bench",
     "bench --device cpu --warmup 1 --repeat 1 --threads 1" DATA "--model mlp:4 --agents 4", NULL,
     true},
#if CT_WITH_MICROHTTPD
    {"serve", "serve runs --port 0", NULL, false},
#endif
    {"verify", "verify --ranks 1 --try-threads 1 --algorithms dsgdm", NULL, true},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- files ---- */

static void copy_tree(const char *from, const char *to) {
    DIR *d = opendir(from);
    CHECK_OK(ct_dir_create(to));
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        ct_path inside = ct_path_in(from, e->d_name), copy = ct_path_in(to, e->d_name);
        ct_blob blob = {0};
        if (ct_dir_exists(inside.text)) {
            copy_tree(inside.text, copy.text);
        } else {
            CHECK_OK(ct_file_read(inside.text, 1 << 26, &blob));
            CHECK_OK(ct_file_replace(copy.text, blob.bytes, blob.n));
            ct_blob_free(&blob);
        }
    }
    if (d != NULL) closedir(d);
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Takes numbers, and the blanks that align them, out of a text. */
static size_t strip_numbers(uint8_t *text, size_t n) {
    size_t kept = 0;
    for (size_t k = 0; k < n; k++)
        if (memchr("0123456789.e+- ", text[k], 15) == NULL) text[kept++] = text[k];
    return kept;
}

/* Keeps of a page the names of its parts alone: axes of seconds have ticks where they fall. */
static size_t keep_names(uint8_t *page, size_t n) {
    static const char mark[] = " id=\"";
    size_t kept = 0;
    for (char *at = (char *)page; (at = strstr(at, mark)) != NULL;) {
        at += sizeof mark - 1;
        size_t length = strcspn(at, "\"");
        memmove(page + kept, at, length);
        kept += length;
        at += length;
    }
    return kept < n ? kept : n;
}

static bool same_content(const char *path, const char *wanted, bool without_numbers) {
    ct_blob x = {0}, y = {0};
    bool ok =
        ct_file_read(path, 1 << 26, &x) == CT_OK && ct_file_read(wanted, 1 << 26, &y) == CT_OK;
    if (ok && without_numbers) {
        size_t (*simplify)(uint8_t *, size_t) =
            ends_with(path, ".html") ? keep_names : strip_numbers;
        x.n = simplify(x.bytes, x.n);
        y.n = simplify(y.bytes, y.n);
    }
    ok = ok && x.n == y.n && memcmp(x.bytes, y.bytes, x.n) == 0;
    ct_blob_free(&x);
    ct_blob_free(&y);
    ct_clear_message();
    return ok;
}

/* Whatever is below `wanted`, so many levels down, is below `dir`, and the same. */
static bool same_trees(const char *dir, const char *wanted, bool shows_seconds, int n_levels) {
    DIR *d = opendir(wanted);
    bool ok = d != NULL;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        ct_path path = ct_path_in(dir, e->d_name), want = ct_path_in(wanted, e->d_name);
        bool is_exact = !shows_seconds || ends_with(path.text, ".safetensors");
        bool has_clock = strstr(path.text, "/checkpoint/") != NULL ||
                         strstr(path.text, "tfevents") != NULL || ends_with(path.text, ".png");
        bool same =
            ct_dir_exists(want.text)
                ? n_levels == 0 || same_trees(path.text, want.text, shows_seconds, n_levels - 1)
            : shows_seconds && has_clock ? ct_file_exists(path.text)
                                         : same_content(path.text, want.text, !is_exact);
        if (!same && !ct_dir_exists(want.text))
            printf("    %s is %s\n", path.text,
                   ct_file_exists(path.text) ? "not as it should be" : "missing");
        ok = ok && same;
    }
    if (d != NULL) closedir(d);
    return ok;
}

static bool has_parts(const char *dir) {
    DIR *d = opendir(dir);
    bool found = false;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        ct_path path = ct_path_in(dir, e->d_name);
        bool is_part = strstr(e->d_name, ".part") != NULL;
        if (is_part) printf("    %s is left behind\n", path.text);
        found = is_part || found || (ct_dir_exists(path.text) && has_parts(path.text));
    }
    if (d != NULL) closedir(d);
    return found;
}

/* ---- serve ---- */

static const char *const pages[] = {"/", "/list", "/report", "/body?run=b"};
enum { N_PAGES = sizeof pages / sizeof *pages };
static char answers[N_PAGES][1 << 19], wanted[N_PAGES][1 << 19];

/* Starts the server and returns its port; 0: it has ended, and said.code is set. */
static int start_server(const char *words, pid_t *pid) {
    char **args = split_words(words);
    int status = 0, port = 0;
    unlink(".out");
    *pid = fork();
    if (*pid == 0) start(args);
    while (port == 0 && waitpid(*pid, &status, WNOHANG) == 0) {
        slurp(".out", said.out);
        const char *address = strstr(said.out, "http://127.0.0.1:");
        if (address != NULL && strchr(said.out, '\n') != NULL)
            port = (int)strtol(address + 17, NULL, 10);
        usleep(1000);
    }
    if (port == 0) said.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    slurp(".err", said.err);
    return port;
}

/* Asks for every page, then ends the server. */
static void serve(const starved_case *c) {
    pid_t pid;
    int status = 0, port = start_server(c->words, &pid);
    memset(answers, 0, sizeof answers);
    if (port == 0) return;
    for (int k = 0; k < N_PAGES; k++) {
        char bytes[256];
        snprintf(bytes, sizeof bytes,
                 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", pages[k]);
        int fd = send_to(port, bytes);
        drain(&fd, answers[k], sizeof answers[k]);
    }
    kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    said.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    slurp(".err", said.err);
}

/* Every page is as it should be, or refused; with the clock's header left out. */
static bool serves_pages(void) {
    for (int k = 0; k < N_PAGES; k++) {
        const char *body = strstr(answers[k], "\r\n\r\n"), *want = strstr(wanted[k], "\r\n\r\n");
        bool is_page = strncmp(answers[k], "HTTP/1.1 200 ", 13) == 0;
        bool is_refused = strncmp(answers[k], "HTTP/1.1 500 ", 13) == 0 && body != NULL &&
                          (body[4] == '\0' || strstr(body, "memory") != NULL);
        if (is_refused || (is_page && body != NULL && want != NULL && strcmp(body, want) == 0))
            continue;
        printf("    %s: %.300s\n", pages[k], answers[k]);
        return false;
    }
    return said.code == 0 && said.err[0] == '\0';
}

static bool is_server(const starved_case *c) {
    return strncmp(c->words, "serve ", 6) == 0;
}

/* ---- runs ---- */

static void begin_anew(const starved_case *c) {
    remove_tree("out");
    copy_tree(c->from != NULL ? c->from : "nothing", "out");
}

/* A process that has loaded the program, and runs it again and again (starve.h). */
static struct {
    pid_t pid;
    int in, out;
} loaded;

static void load_program(const starved_case *c) {
    char fds[32];
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0) abort();
    snprintf(fds, sizeof fds, "%d,%d", in[0], out[1]);
    setenv("LD_PRELOAD", CT_STARVE, 1);
    setenv("CT_STARVE_ORDERS", fds, 1);
    patience_s = 0;
    char **args = split_words(c->words);
    loaded.pid = fork();
    if (loaded.pid == 0) {
        close(in[1]);
        close(out[0]);
        start(args);
    }
    unsetenv("LD_PRELOAD");
    unsetenv("CT_STARVE_ORDERS");
    close(in[0]);
    close(out[1]);
    loaded.in = in[1];
    loaded.out = out[0];
}

static void unload_program(void) {
    if (loaded.pid == 0) return;
    close(loaded.in);
    close(loaded.out);
    waitpid(loaded.pid, NULL, 0);
    loaded.pid = 0;
}

static void run_loaded(int k, bool goes_on) {
    starve_order order = {.at = (unsigned long)k, .goes_on = goes_on, .limit_s = LIMIT_S};
    int status = -1;
    said.code = -1;
    if (write(loaded.in, &order, sizeof order) == (ssize_t)sizeof order &&
        read(loaded.out, &status, sizeof status) == (ssize_t)sizeof status)
        said.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    slurp(".out", said.out);
    slurp(".err", said.err);
}

static void run_starved(const starved_case *c, int k, bool goes_on) {
    char number[32];
    if (loaded.pid != 0) {
        run_loaded(k, goes_on);
        return;
    }
    snprintf(number, sizeof number, "%d", k);
    setenv("LD_PRELOAD", CT_STARVE, 1);
    setenv("CT_STARVE_AT", number, 1);
    setenv("CT_STARVE_ON", goes_on ? "1" : "0", 1);
    patience_s = LIMIT_S;
    if (is_server(c))
        serve(c);
    else
        run(c->words);
    unsetenv("LD_PRELOAD");
}

/* A study makes a finished run light once: where that failed, the run stays whole. Its tables are the
 * same. */
static bool gives_results(const starved_case *c, bool is_again) {
    bool is_light = strncmp(c->words, "reproduce", 9) == 0 || strncmp(c->words, "sweep", 5) == 0;
    return said.code == 0 && said.err[0] == '\0' &&
           same_trees("out", "want", c->shows_seconds, is_again && is_light ? 1 : 9) &&
           same_content(".out", "want.out", c->shows_seconds);
}

/* Cairo does not tell what libpng lacked when it writes a picture. */
static bool says_no_memory(void) {
    return said.code == 1 && n_lines(said.err) == 1 && strncmp(said.err, "crosstalk: ", 11) == 0 &&
           (strcasestr(said.err, "memory") != NULL || strstr(said.err, "libpng") != NULL);
}

/* ---- one allocation after the other ---- */

static void check_starved(const starved_case *c, int k, bool goes_on) {
    begin_anew(c);
    run_starved(c, k, goes_on);
    bool ok = says_no_memory() || (is_server(c) ? serves_pages() : gives_results(c, false));
    ok = (c->keeps_parts || !has_parts("out")) && ok;
    if (!ok) {
        said.out[300] = '\0';
        blame("should say that there is no memory, or do without");
    }
    if (ok && said.code != 0 && !is_server(c)) {
        run_starved(c, 0, false);
        ok = gives_results(c, true);
        if (!ok) blame("should do its work after a failure");
    }
    if (!ok) printf("    %s: allocation %d%s\n", c->name, k, goes_on ? " and all after it" : "");
}

/* The call stacks of the undisturbed run's allocations; its results are want/ and want.out. */
static int list_allocations(const starved_case *c, uint64_t **stacks) {
    ct_blob blob = {0};
    char *line;
    int n = 0;
    *stacks = NULL;
    setenv("CT_STARVE_LIST", "list", 1);
    begin_anew(c);
    run_starved(c, 0, false);
    unsetenv("CT_STARVE_LIST");
    if (said.code != 0 || said.err[0] != '\0') blame("should succeed");
    remove_tree("want");
    rename("out", "want");
    rename(".out", "want.out");
    memcpy(wanted, answers, sizeof wanted);
    CHECK_OK(ct_file_read("list", 1 << 24, &blob));
    ct_lines lines = ct_blob_lines(&blob);
    while ((line = ct_lines_next(&lines)) != NULL) {
        CHECK_OK(ct_extend(stacks, (size_t)n, "stacks"));
        (*stacks)[n++] = strtoull(line, NULL, 16);
    }
    ct_blob_free(&blob);
    CHECK(n > 0);
    return n;
}

static bool is_first(const uint64_t *stacks, int k) {
    for (int i = 0; i < k; i++)
        if (stacks[i] == stacks[k]) return false;
    return true;
}

/* Fails a few allocations, one of every call stack, or all. */
static void starve(const starved_case *c, effort how, bool goes_on) {
    uint64_t *stacks;
    int n = list_allocations(c, &stacks), n_tried = 0;
    int *tried = ct_new(int, (size_t)n);
    for (int k = 0; k < n; k++)
        if (how == ALL || is_first(stacks, k)) tried[n_tried++] = k + 1;
    int step = how == FEW && n_tried > N_FEW ? (n_tried + N_FEW - 1) / N_FEW : 1;
    if (!is_server(c)) load_program(c);
    for (int i = step / 2; i < n_tried; i += step) check_starved(c, tried[i], goes_on);
    unload_program();
    if (how != FEW) printf("    %s: %d of %d allocations failed\n", c->name, n_tried, n);
    ct_free(stacks);
    ct_free(tried);
}

static void starve_all(bool goes_on) {
    effort how = getenv("CT_TEST_LONG") == NULL ? FEW : N_FEW == 1 ? PLACES : ALL;
    for (int k = 0; k < N_CASES; k++) starve(&cases[k], how, goes_on);
}

static void one_allocation_that_fails_is_told_or_done_without(void) {
    starve_all(false);
}

static void no_memory_from_some_point_on_is_told(void) {
    starve_all(true);
}

/* ---- what the cases work on ---- */

static void make_pictures(void) {
    static const char *const names[] = {"rgb.png", "rgb.jpg", "palette.png", "grey.jpg"};
    for (int k = 0; k < 8; k++) {
        char path[64], from[64];
        ct_blob blob = {0};
        snprintf(path, sizeof path, "pictures/%s", k < 4 ? "one" : "two");
        CHECK_OK(ct_dir_create(path));
        snprintf(from, sizeof from, "fixtures/images/%s", names[k % 4]);
        CHECK_OK(ct_file_read(from, 1 << 20, &blob));
        snprintf(path, sizeof path, "pictures/%s/%d%s", k < 4 ? "one" : "two", k,
                 strrchr(names[k % 4], '.'));
        CHECK_OK(ct_file_replace(path, blob.bytes, blob.n));
        ct_blob_free(&blob);
    }
    CHECK(symlink("pictures", "site-east") == 0 && symlink("pictures", "site-west") == 0);
    succeeds("data import pictures pictures.ctpack --image-size 8 --workers 1 --test-fraction 0.5");
}

/* A set to be had from a folder of this machine: CIFAR-10 with a few pictures. */
static void make_mirror(void) {
    static archive packed;
    char digest[CT_DIGEST_TEXT] = "";
    const uint8_t pictures[2 * 3073] = {0};
    for (int k = 0; k < 6; k++) {
        char name[64];
        snprintf(name, sizeof name, "cifar-10-batches-bin/data_batch_%d.bin", k + 1);
        add_member(&packed, k < 5 ? name : "cifar-10-batches-bin/test_batch.bin", '0', pictures,
                   sizeof pictures);
    }
    end_archive(&packed);
    CHECK_OK(ct_dir_create("mirror"));
    CHECK_OK(ct_file_write("mirror/cifar-10-binary.tar.gz", packed.bytes, packed.n));
    CHECK_OK(ct_digest_file("mirror/cifar-10-binary.tar.gz", digest));
    snprintf(data_get, sizeof data_get,
             "data get cifar10 --data-dir out/set --url file:///proc/self/cwd/mirror --checksum %s",
             digest);
}

static void make_runs(void) {
    succeeds(TRAIN DATA "--epochs 2 --seeds 1,2 --out runs/a");
    succeeds(TRAIN DATA "--epochs 2 --algorithm ccl --topology chain --out runs/b");
    run(TRAIN DATA "--epochs 2 --lr 1e6 --out runs/c");
    CHECK(said.code == 1);
    succeeds("report runs --bundle kept.gz");
    succeeds(TABLE "--out table");
    succeeds(TRAIN DATA "--epochs 4 --iterations 8 --checkpoint-every 1 --out half");
}

static bool prepare(void) {
    test_failed = false;
    CHECK_OK(ct_dir_create("nothing"));
    put("graph.txt", "0 1\n1 2\n2 3\n3 4\n4 0\n");
    put("schedule.txt", "step\n0 1\n2 3\nstep\n1 2\n3 4\nstep\n4 > 0\n");
    put("tiny.conf", "title = tiny\nfigure = dots\ncurves = ce\n[options]\ndataset = idx\n"
                     "data-dir = fixtures/data\nmodel = mlp:4\nagents = 4\nepochs = 1\n"
                     "batch-size = 8\nseeds = 1,2\n[column iid]\npartition = iid\n"
                     "[row plain]\nalgorithm = dsgdm\npaper = 50.00 +- 1\n"
                     "[row ccl]\nalgorithm = ccl\n");
    put("tuned.conf", "title = tuned\nfigure = none\nbaseline = plain\nfree = algorithm,lr\n"
                      "[tune]\nrungs = 1\n[options]\ndataset = idx\ndata-dir = fixtures/data\n"
                      "model = mlp:4\nagents = 2\nepochs = 1\nbatch-size = 8\n"
                      "partition = iid\ntune = lr=0.1,0.01\n[row plain]\nalgorithm = dsgdm\n");
    make_pictures();
    make_mirror();
    make_runs();
    succeeds("reproduce tuned.conf --quiet --threads 1 --out board");
    return !test_failed;
}

static void try_one(const starved_case *c, int n_args, char **args) {
    uint64_t *stacks;
    bool all = n_args > 0 && strcmp(args[0], "all") == 0;
    if (n_args == 0 || all) {
        starve(c, all ? ALL : PLACES, false);
        starve(c, all ? ALL : PLACES, true);
        return;
    }
    list_allocations(c, &stacks);
    check_starved(c, (int)strtol(args[0], NULL, 10), n_args > 1);
    printf("exit %d: %s", said.code, said.err);
    ct_free(stacks);
}

int main(int argc, char **argv) {
    if (access("/dev/shm", W_OK) == 0) /* runs sync what they write */
        snprintf(folder, sizeof folder, "/dev/shm/starved-XXXXXX");
    if (!enter_folder() || !prepare()) return 1;
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    setenv("LSAN_OPTIONS", "print_suppressions=0", 1);
    if (argc == 1) {
        TEST(one_allocation_that_fails_is_told_or_done_without);
        TEST(no_memory_from_some_point_on_is_told);
    }
    const starved_case *alone = NULL;
    for (int k = 0; argc > 1 && k < N_CASES; k++)
        if (strcmp(argv[1], cases[k].name) == 0) alone = &cases[k];
    if (alone != NULL) try_one(alone, argc - 2, argv + 2);
    remove_tree(folder);
    leave_folder();
    if (argc > 1) return alone == NULL ? 2 : test_failed;
    return test_report();
}
