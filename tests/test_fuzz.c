/* Every parser on good files (tests/fuzz/corpus) damaged in ways that follow from a seed: bytes
 * changed, cut out, doubled, joined with another file's, replaced by extreme values; checksums are
 * then repaired. Nothing may crash, hang, or take much memory (the sanitizers look on in the debug
 * build). The targets are those of tests/fuzz.
 *   test_fuzz                                    a few thousand mutations of each
 *   test_fuzz TARGET [--runs N] [--seed S] [FILE...]   of one; FILE instead of its corpus
 *   scripts/test.sh --long                       a million of each where the sanitizers look on
 * What ends the program is left in the file crash-TARGET. */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "data_files.h"
#include "fuzz/fuzz.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/rng.h"
#include "util/text.h"

#if defined(__SANITIZE_ADDRESS__)
enum { N_RUNS = 1000, N_RUNS_LONG = 1000000 };
#else
enum { N_RUNS = 3000, N_RUNS_LONG = 30000 };
#endif
enum { MAX_SEEDS = 64, MAX_BYTES = 1 << 16, LIMIT_S = 30 };

typedef struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t n);
    void (*repair)(uint8_t *data, size_t n);
} target;

#define FUZZ(name, repair) int fuzz_##name(const uint8_t *data, size_t n);
#include "fuzz/target_list.h"
#undef FUZZ
void fuzz_repair_checkpoint(uint8_t *data, size_t n);
void fuzz_repair_gzip(uint8_t *data, size_t n);
void fuzz_repair_pack(uint8_t *data, size_t n);
void fuzz_repair_part(uint8_t *data, size_t n);
void fuzz_repair_picture(uint8_t *data, size_t n);
void fuzz_repair_safetensors(uint8_t *data, size_t n);
void fuzz_repair_tar(uint8_t *data, size_t n);
void fuzz_repair_wire(uint8_t *data, size_t n);

static const target targets[] = {
#define FUZZ(name, repair) {#name, fuzz_##name, repair},
#include "fuzz/target_list.h"
#undef FUZZ
};
enum { N_TARGETS = sizeof targets / sizeof *targets };

/* ---- the files to begin with ---- */

static struct {
    char name[256];
    ct_blob blob;
} seeds[MAX_SEEDS];
static int n_seeds;

static void add_seed(const char *path) {
    if (n_seeds == MAX_SEEDS) return;
    const char *slash = strrchr(path, '/');
    snprintf(seeds[n_seeds].name, sizeof seeds->name, "%s", slash != NULL ? slash + 1 : path);
    ct_blob *blob = &seeds[n_seeds].blob;
    FILE *f = fopen(path, "rb"); /* as it is: ct_file_read unpacks */
    CHECK(f != NULL);
    if (f == NULL) return;
    blob->bytes = ct_alloc(MAX_BYTES, 1);
    CHECK(blob->bytes != NULL);
    blob->n = blob->bytes != NULL ? fread(blob->bytes, 1, MAX_BYTES / 2, f) : 0;
    fclose(f);
    n_seeds += blob->n > 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const ct_path *)a)->text, ((const ct_path *)b)->text);
}

/* In the order of their names, so that a seed means the same everywhere. */
static void read_corpus(const char *name) {
    static ct_path paths[MAX_SEEDS];
    ct_path dir = ct_path_in(CT_SOURCE_DIR "/tests/fuzz/corpus", name);
    DIR *d = opendir(dir.text);
    int n = 0;
    CHECK(d != NULL);
    for (struct dirent *e; d != NULL && n < MAX_SEEDS && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') paths[n++] = ct_path_in(dir.text, e->d_name);
    if (d != NULL) closedir(d);
    qsort(paths, (size_t)n, sizeof *paths, by_name);
    for (int k = 0; k < n; k++) add_seed(paths[k].text);
    CHECK(n_seeds > 0);
}

static void forget_corpus(void) {
    for (int k = 0; k < n_seeds; k++) ct_blob_free(&seeds[k].blob);
    n_seeds = 0;
}

/* ---- one input ---- */

static struct {
    const target *target;
    uint64_t seed, run;
    size_t n;
    uint8_t bytes[MAX_BYTES];
} input;

static void put_bytes(size_t at, size_t n_old, const void *bytes, size_t n_new) {
    if (n_old > input.n - at) n_old = input.n - at;
    if (input.n - n_old + n_new > MAX_BYTES) return;
    memmove(input.bytes + at + n_new, input.bytes + at + n_old, input.n - at - n_old);
    memcpy(input.bytes + at, bytes, n_new);
    input.n += n_new - n_old;
}

/* What parsers trip over: a word takes the place of nothing, or of the number that stands there. */
static void put_word(ct_rng *rng, size_t at) {
    static const char *const words[] = {
        "0",          "-1",      "1e308",    "-1.8e308",
        "1e-320",     "nan",     "inf",      "4294967296",
        "null",       "\"",      "{",        "[",
        "]",          "}",       ",",        "\\u0000",
        "=",          "#",       "../",      "2147483647",
        "2147483648", "\n",      "65536",    "18446744073709551616",
        ":",          "%n",      " ",        "\t",
        "\\",         "true",    "=== ",     "9007199254740993",
        "|",          "\xff",    "\xc0\x80", "-0",
        "1.5",        "1000000", "\r\n",     "-9223372036854775808"};
    const char *word = words[ct_rng_below(rng, sizeof words / sizeof *words)];
    size_t n_digits = 0;
    while (at > 0 && input.bytes[at] >= '0' && input.bytes[at] <= '9' &&
           input.bytes[at - 1] >= '0' && input.bytes[at - 1] <= '9')
        at--;
    while (at + n_digits < input.n && input.bytes[at + n_digits] >= '0' &&
           input.bytes[at + n_digits] <= '9')
        n_digits++;
    put_bytes(at, ct_rng_below(rng, 4) == 0 ? 0 : n_digits, word, strlen(word));
}

/* A number of 1, 2, 4 or 8 bytes at an edge of its range, or a little more or less than it was. */
static void put_number(ct_rng *rng, size_t at) {
    static const int64_t edges[] = {0, 1, -1, INT8_MAX, INT16_MAX, INT32_MAX, INT64_MAX, 1 << 16};
    size_t width = (size_t)1 << ct_rng_below(rng, 4);
    uint64_t number = 0;
    if (width > input.n - at) return;
    memcpy(&number, input.bytes + at, width);
    if (ct_rng_below(rng, 2) == 0)
        number += (uint64_t)((int64_t)ct_rng_below(rng, 33) - 16);
    else
        number =
            (uint64_t)edges[ct_rng_below(rng, sizeof edges / sizeof *edges)] + ct_rng_below(rng, 2);
    memcpy(input.bytes + at, &number, width);
}

static void mutate_once(ct_rng *rng) {
    static const uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xff};
    uint8_t filled[16];
    /* many formats are decided in their first and last bytes */
    size_t reach = input.n < 160 ? input.n : 160, length = 1 + ct_rng_below(rng, 16);
    uint32_t where = ct_rng_below(rng, 4);
    size_t at = ct_rng_below(rng, (uint32_t)(where < 2 ? input.n : reach));
    if (where == 3) at = input.n - 1 - at;
    switch (ct_rng_below(rng, 9)) {
    case 0:
    case 1: input.bytes[at] ^= (uint8_t)(1u << ct_rng_below(rng, 8)); break;
    case 2:
        memset(filled, extremes[ct_rng_below(rng, 5)], sizeof filled);
        put_bytes(at, length, filled, length);
        break;
    case 3: put_bytes(at, length, filled, 0); break;
    case 4: /* twice, or that of another place */
        if (length > input.n - at) length = input.n - at;
        memcpy(filled, input.bytes + at, length);
        put_bytes(ct_rng_below(rng, (uint32_t)input.n), 0, filled, length);
        break;
    case 5:
    case 6: put_word(rng, at); break;
    case 7: put_number(rng, at); break;
    default:
        if (ct_rng_below(rng, 8) == 0) input.n = at;
    }
}

/* The beginning of one file and the end of another. */
static void join(ct_rng *rng) {
    const ct_blob *other = &seeds[ct_rng_below(rng, (uint32_t)n_seeds)].blob;
    size_t from = ct_rng_below(rng, (uint32_t)other->n);
    input.n = ct_rng_below(rng, (uint32_t)input.n);
    put_bytes(input.n, 0, other->bytes + from, other->n - from);
}

static void make_input(uint64_t run) {
    ct_rng rng;
    ct_rng_init(&rng, input.seed, CT_RNG_TEST, 0, (uint32_t)(run >> 32), (uint32_t)run);
    const ct_blob *seed = &seeds[ct_rng_below(&rng, (uint32_t)n_seeds)].blob;
    input.run = run;
    input.n = seed->n;
    memcpy(input.bytes, seed->bytes, seed->n);
    if (ct_rng_below(&rng, 16) == 0) join(&rng);
    for (uint32_t k = 1 + ct_rng_below(&rng, 5); k > 0 && input.n > 0; k--) mutate_once(&rng);
    if (input.target->repair != NULL && ct_rng_below(&rng, 8) != 0)
        input.target->repair(input.bytes, input.n);
}

/* ---- the end of the program ---- */

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void tell_input(void) {
    char path[64], line[160];
    const char *name = input.target != NULL ? input.target->name : "nothing";
    snprintf(path, sizeof path, "crash-%s", name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0 && write(fd, input.bytes, input.n) == (ssize_t)input.n) close(fd);
    int n = snprintf(line, sizeof line, "fuzz: %s --seed %llu, run %llu; the input is in %s\n",
                     name, (unsigned long long)input.seed, (unsigned long long)input.run, path);
    if (write(STDOUT_FILENO, line, (size_t)n) != n) return;
}

static void on_signal(int number) {
    tell_input();
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_for_the_end(void) {
    signal(SIGABRT, on_signal);
    signal(SIGPROF, on_signal);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(tell_input);
    else
        signal(SIGSEGV, on_signal);
}

/* ---- all of them ---- */

/* Of processor time: a machine that is busy, or was stopped, is no hang. */
static void set_limit(int seconds) {
    struct itimerval limit = {.it_value = {.tv_sec = seconds}};
    CHECK(setitimer(ITIMER_PROF, &limit, NULL) == 0);
}

/* Exactly as long as it is, so that what lies behind it is not ours. */
static void run_input(void) {
    uint8_t *exact = malloc(input.n > 0 ? input.n : 1);
    CHECK(exact != NULL);
    if (exact == NULL) return;
    memcpy(exact, input.bytes, input.n);
    set_limit(LIMIT_S);
    CHECK(input.target->run(exact, input.n) == 0);
    set_limit(0);
    free(exact);
}

/* The corpus as it is: what is named good-* is accepted. */
static void run_seeds(void) {
    for (int k = 0; k < n_seeds; k++) {
        unsigned long before = fuzz_n_accepted;
        input.n = seeds[k].blob.n;
        memcpy(input.bytes, seeds[k].blob.bytes, input.n);
        run_input();
        bool is_good = strncmp(seeds[k].name, "good-", 5) == 0;
        if (!is_good || fuzz_n_accepted == before + 1) continue;
        printf("    %s: the corpus' %s is not accepted\n", input.target->name, seeds[k].name);
        test_failed = true;
    }
    input.n = 0;
    run_input();
}

static void fuzz(const target *t, uint64_t n_runs, uint64_t seed) {
    double began = ct_seconds();
    input.target = t;
    input.seed = seed;
    run_seeds();
    unsigned long n_before = fuzz_n_accepted;
    for (uint64_t run = 0; run < n_runs && n_seeds > 0; run++) {
        make_input(run);
        run_input();
    }
    printf("    %-12s %llu mutations of %d files, %lu accepted, %.0f s\n", t->name,
           (unsigned long long)n_runs, n_seeds, fuzz_n_accepted - n_before, ct_seconds() - began);
    fflush(stdout);
    CHECK(ct_peak_bytes() < (size_t)3 << 30);
    forget_corpus();
}

static void damaged_files_are_survived(void) {
    for (int k = 0; k < N_TARGETS; k++) {
        read_corpus(targets[k].name);
        fuzz(&targets[k], getenv("CT_TEST_LONG") != NULL ? N_RUNS_LONG : N_RUNS, 1);
    }
}

/* TARGET [--runs N] [--seed S] [FILE...] */
static int fuzz_one(int n_args, char **args) {
    const target *t = NULL;
    int64_t n_runs = N_RUNS, seed = 1;
    for (int k = 0; k < N_TARGETS; k++)
        if (strcmp(args[0], targets[k].name) == 0) t = &targets[k];
    for (int k = 1; k < n_args; k++) {
        int64_t *number = strcmp(args[k], "--runs") == 0   ? &n_runs
                          : strcmp(args[k], "--seed") == 0 ? &seed
                                                           : NULL;
        if (number == NULL)
            add_seed(args[k]);
        else if (++k == n_args || !ct_parse_i64(args[k], number) || *number < 0)
            t = NULL;
    }
    if (t == NULL) {
        fprintf(stderr, "usage: test_fuzz [TARGET [--runs N] [--seed S] [FILE...]]\n");
        return 2;
    }
    if (n_seeds == 0) read_corpus(t->name);
    fuzz(t, (uint64_t)n_runs, (uint64_t)seed);
    return test_failed;
}

static void say_nothing(void *context, ct_level level, const char *text) {
    (void)context, (void)level, (void)text;
}

int main(int argc, char **argv) {
    static const ct_hooks silent = {.log = say_nothing};
    int code = 0;
    ct_hooks_use(&silent);
    watch_for_the_end();
    if (argc > 1) code = fuzz_one(argc - 1, argv + 1);
    if (argc == 1) TEST(damaged_files_are_survived);
    snprintf(scratch, sizeof scratch, "%s", fuzz_dir());
    scratch_close();
    return argc > 1 ? code : test_report();
}
