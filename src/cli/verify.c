/* Proves on this machine that a run's results do not depend on how it is run: the same training in
 * one process, over several ranks, with other numbers of threads, and stopped and resumed on
 * another number of ranks must leave the same bytes. */
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "algo/algo.h"
#include "cli/cli.h"
#include "ct_config.h"
#include "record/folder.h"
#include "record/file.h"
#include "util/file.h"
#include "util/memory.h"

#define MAX_COUNTS   16
#define MAX_CASES    64
#define MAX_WORDS    256
#define EXIT_REFUSED 2 /* of a command line that is wrong */

extern char **environ;

const ct_help ct_cli_verify_help = {
    .usage = "verify [--ranks LIST] [--try-threads LIST] [--algorithms LIST] [--option value "
             "...]",
    .text = "Proves on this machine that a result does not depend on how it was computed. It "
            "trains the same thing in one process, over several ranks (mpirun), with several "
            "numbers of threads, and stopped half-way and resumed on another number of ranks. "
            "Then it compares models and metrics byte by byte. Without options of a run it "
            "trains a small network on made-up data.",
    .takes = "dataset, model, algorithm, agents, topology, epochs",
    .exits =
        CT_HELP_PAIRS({"0", "everything is the same"},
                      {"1", "something differs; the files are kept, and the last line says where"}),
    .examples = CT_HELP_PAIRS(
        {"One method, in a few seconds.", "crosstalk verify --algorithms ccl --ranks 1,2"},
        {"Every method, with both losses.", "crosstalk verify"}),
    .also = "bench, docs/RANKS.md"};

typedef struct counts {
    const char *name; /* of the option */
    int values[MAX_COUNTS], n;
} counts;

typedef struct verify {
    counts ranks, threads;
    char cases[MAX_CASES][48];
    int n_cases;
    char **options; /* of the run, as given */
    int n_options;
    char program[1024];
    char dir[64];
    bool has_mpirun;
    int n_same, n_different;
} verify;

static ct_status add_count(void *context, const char *field) {
    counts *c = context;
    int64_t value = 0;
    if (!ct_parse_i64(field, &value) || value < 1 || value > 1024 || c->n == MAX_COUNTS)
        return ct_fail(CT_INVAL, "--%s: '%s' is not one of at most %d numbers from 1 to 1024",
                       c->name, field, MAX_COUNTS);
    c->values[c->n++] = (int)value;
    return CT_OK;
}

static ct_status add_case(void *context, const char *field) {
    verify *v = context;
    char name[48];
    const ct_algo *algo;
    const ct_algo_alias *alias = ct_algo_alias_find(field); /* an algorithm with a loss */
    if (alias != NULL && v->n_cases < MAX_CASES) {
        snprintf(v->cases[v->n_cases++], sizeof v->cases[0], "%s:%s", alias->algorithm,
                 alias->loss);
        return CT_OK;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(field, ":"), field);
    const char *loss = strchr(field, ':');
    if (v->n_cases == MAX_CASES || (loss != NULL && strcmp(loss, ":ccl") != 0))
        return ct_fail(CT_INVAL, "--algorithms: '%s' is not a name or name:ccl", field);
    CT_TRY(ct_algo_find(name, &algo));
    snprintf(v->cases[v->n_cases++], sizeof v->cases[0], "%s", field);
    return CT_OK;
}

static void add_both(void *context, const char *name, const char *text) {
    verify *v = context;
    (void)text;
    if (v->n_cases + 2 > MAX_CASES) return;
    snprintf(v->cases[v->n_cases++], sizeof v->cases[0], "%.40s", name);
    snprintf(v->cases[v->n_cases++], sizeof v->cases[0], "%.40s:ccl", name);
}

/* ---- running ---- */

static bool is_in_path(const char *name) {
    const char *path = getenv("PATH");
    for (const char *at = path; at != NULL && *at != '\0';) {
        char full[1024];
        size_t n = strcspn(at, ":");
        snprintf(full, sizeof full, "%.*s/%s", (int)n, at, name);
        if (access(full, X_OK) == 0) return true;
        at += n + (at[n] == ':');
    }
    return false;
}

static ct_status run_words(char **words) {
    pid_t pid;
    int status = 0;
    if (posix_spawnp(&pid, words[0], NULL, NULL, words, environ) != 0)
        return ct_fail(CT_IO, "cannot start %s", words[0]);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bool is_refused = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REFUSED;
        return ct_fail(is_refused ? CT_INVAL : CT_IO, "%s train failed; what it said is above",
                       words[0]);
    }
    return CT_OK;
}

/* One training of a case into <dir>/<name>. extra: more options, NULL at the end; or NULL. */
static ct_status train(const verify *v, const char *algorithm, int n_ranks, int n_threads,
                       const char *name, const char *const *extra) {
    char count[16], threads[16], out[128], method[48];
    char *words[MAX_WORDS] = {NULL};
    int n = 0;
    snprintf(count, sizeof count, "%d", n_ranks);
    snprintf(threads, sizeof threads, "%d", n_threads);
    snprintf(out, sizeof out, "%s/%s", v->dir, name);
    snprintf(method, sizeof method, "%.*s", (int)strcspn(algorithm, ":"), algorithm);
    const char *const fixed[] = {v->program,  "train",  "--quiet",
                                 "--out",     out,      "--save-agents",
                                 "--threads", threads,  "--algorithm",
                                 method,      "--loss", strchr(algorithm, ':') ? "ccl" : "ce"};
    const char *const launch[] = {"mpirun", "-n", count};
    for (int k = 0; k < 3 && n_ranks > 1; k++) words[n++] = (char *)launch[k];
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++) words[n++] = (char *)fixed[k];
    for (int k = 0; k < v->n_options && n < MAX_WORDS - 8; k++) words[n++] = v->options[k];
    for (; extra != NULL && *extra != NULL && n < MAX_WORDS - 1; extra++)
        words[n++] = (char *)*extra;
    return run_words(words);
}

static void clean(const verify *v, const char *name) {
    (void)CT_CATCH(NULL, ct_record_remove_all(ct_path_in(v->dir, name).text));
}

/* ---- comparing ---- */

/* Blanks what a clock has written. */
static void forget_seconds(ct_blob *blob) {
    static const char key[] = "\"seconds\": ";
    for (char *at = (char *)blob->bytes; (at = strstr(at, key)) != NULL;) {
        at += sizeof key - 1;
        size_t n = strcspn(at, ",}");
        size_t left = blob->n - (size_t)(at + n - (char *)blob->bytes);
        memmove(at, at + n, left + 1);
        blob->n -= n;
    }
}

static ct_status same_file(const verify *v, ct_record_file file, bool *same) {
    ct_path one = ct_path_in(v->dir, "one"), other = ct_path_in(v->dir, "other");
    CT_SCOPED(ct_blob) x = {0};
    CT_SCOPED(ct_blob) y = {0};
    CT_TRY(ct_file_read(ct_record_path(one.text, file).text, CT_MAX_MODEL_BYTES, &x));
    CT_TRY(ct_file_read(ct_record_path(other.text, file).text, CT_MAX_MODEL_BYTES, &y));
    if (file == CT_FILE_METRICS) {
        forget_seconds(&x);
        forget_seconds(&y);
    }
    *same = x.n == y.n && memcmp(x.bytes, y.bytes, x.n) == 0;
    return CT_OK;
}

/* The run in "other", which then goes, with the one in "one". */
static ct_status compare(verify *v, const char *algorithm, const char *how) {
    static const ct_record_file files[] = {CT_FILE_CONSENSUS, CT_FILE_AGENTS, CT_FILE_METRICS,
                                           CT_FILE_EVALUATION, CT_FILE_SETTING};
    bool same = true;
    for (size_t k = 0; k < sizeof files / sizeof *files && same; k++) {
        CT_TRY(same_file(v, files[k], &same));
        if (!same)
            ct_show(stdout, "%-20s %s: %s differs\n", algorithm, how, ct_record_name(files[k]));
    }
    v->n_same += same;
    v->n_different += !same;
    clean(v, "other");
    return CT_OK;
}

static ct_status try_spread(verify *v, const char *algorithm, int n_ranks, int n_threads) {
    char how[64];
    snprintf(how, sizeof how, "%d ranks, %d threads", n_ranks, n_threads);
    CT_TRY(train(v, algorithm, n_ranks, n_threads, "other", NULL));
    return compare(v, algorithm, how);
}

/* Stopped after some iterations on some ranks, resumed on others. */
static ct_status try_resume(verify *v, const char *algorithm, int first, int second) {
    static const char *const stop[] = {"--iterations", "5", "--checkpoint-every", "end", NULL};
    static const char *const go_on[] = {"--resume", "--iterations", "0", NULL};
    char how[64];
    snprintf(how, sizeof how, "stopped on %d ranks, resumed on %d", first, second);
    CT_TRY(train(v, algorithm, first, 1, "other", stop));
    CT_TRY(train(v, algorithm, second, 1, "other", go_on));
    return compare(v, algorithm, how);
}

static ct_status verify_case(verify *v, const char *algorithm) {
    int n_before = v->n_different, most = 1;
    CT_TRY(train(v, algorithm, 1, 1, "one", NULL));
    for (int r = 0; r < v->ranks.n; r++) {
        int n_ranks = v->ranks.values[r];
        if (n_ranks > 1 && !v->has_mpirun) continue;
        if (n_ranks > most) most = n_ranks;
        for (int t = 0; t < v->threads.n; t++)
            if (n_ranks > 1 || v->threads.values[t] > 1)
                CT_TRY(try_spread(v, algorithm, n_ranks, v->threads.values[t]));
    }
    CT_TRY(try_resume(v, algorithm, most, 1));
    if (most > 1) CT_TRY(try_resume(v, algorithm, 1, most));
    clean(v, "one");
    ct_show(stdout, "%-20s %s\n", algorithm,
            v->n_different == n_before ? "same bits" : "DIFFERENT");
    fflush(stdout);
    return CT_OK;
}

/* ---- options ---- */

static ct_status take_options(verify *v, int n_args, char **args) {
    ct_own own;
    CT_TRY(ct_own_take("verify", &n_args, args, &own));
    CT_TRY(ct_split(ct_own_text(&own, v->ranks.name), add_count, &v->ranks));
    CT_TRY(ct_split(ct_own_text(&own, v->threads.name), add_count, &v->threads));
    if (ct_own_is_given(&own, "algorithms"))
        CT_TRY(ct_split(ct_own_text(&own, "algorithms"), add_case, v));
    else
        ct_algo_each(add_both, v);
    v->options = args;
    v->n_options = n_args;
    return CT_OK;
}

/* What the launcher needs to start more ranks than there are cores, as any user. */
static ct_status prepare(verify *v) {
    static char *small[] = {
        "--dataset=shapes",    "--model=mlp:16",     "--agents=6", "--batch-size=16",
        "--train-samples=600", "--test-samples=100", "--epochs=2", "--lr=0.02"};
    ssize_t n = readlink("/proc/self/exe", v->program, sizeof v->program - 1);
    if (n <= 0) return ct_fail(CT_IO, "cannot find the name of this program");
    v->program[n] = '\0';
    if (v->n_options == 0) {
        v->options = small;
        v->n_options = sizeof small / sizeof *small;
    }
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
    v->has_mpirun = CT_WITH_MPI && is_in_path("mpirun");
    const char *scratch = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    int length = snprintf(v->dir, sizeof v->dir, "%s/crosstalk-verify-XXXXXX", scratch);
    if (length < 0 || (size_t)length >= sizeof v->dir || mkdtemp(v->dir) == NULL)
        return ct_fail(CT_IO, "cannot make a directory in %s (TMPDIR)", scratch);
    return CT_OK;
}

ct_status ct_cli_verify(int n_args, char **args) {
    static verify v = {.ranks.name = "ranks", .threads.name = "try-threads"};
    CT_TRY(take_options(&v, n_args, args));
    CT_TRY(prepare(&v));
    if (!v.has_mpirun)
        ct_show(stdout, "one process only: %s\n",
                CT_WITH_MPI ? "there is no mpirun here" : "this crosstalk was built without MPI");
    ct_status status = CT_OK;
    for (int k = 0; k < v.n_cases && status == CT_OK; k++) status = verify_case(&v, v.cases[k]);
    if (v.n_different == 0) remove(v.dir);
    CT_TRY(status);
    ct_show(stdout, "%d the same, %d different\n", v.n_same, v.n_different);
    if (v.n_different == 0) return CT_OK;
    return ct_fail(CT_IO, "results depend on how the run is run; files are in %s", v.dir);
}
