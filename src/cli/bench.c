/* Times training iterations: warm-up, then single iterations whose median is reported, against the
 * arithmetic they need and what the machine can do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "run/run.h"
#include "util/json.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/text.h"

const ct_help ct_cli_bench_help = {
    .usage = "bench [--warmup N] [--repeat N] [--json] [--option value ...]",
    .text = "Times training iterations; nothing is written. It prints milliseconds per "
            "iteration (median), samples per second, GFLOP/s, the share of this machine's "
            "measured peak, and the share of the time that CCL's cross-features take. Over "
            "several ranks (mpirun) also processor time and the share of the time spent "
            "waiting for messages.\n\n"
            "Data sets that need no files: shapes (1x28x28) and noise (3x32x32). The default "
            "split is iid.",
    .takes = "dataset, model, algorithm, agents, topology, batch-size, device, precision, "
             "threads",
    .examples =
        CT_HELP_PAIRS({"LeNet-5, 16 agents.", "crosstalk bench --dataset shapes"},
                      {"What CCL costs.", "crosstalk bench --dataset shapes --algorithm ccl"},
                      {"ResNet-20 on a GPU, for a script.",
                       "crosstalk bench --dataset noise --model resnet20 --device cuda --json"}),
    .also = "train, verify, docs/PERFORMANCE.md"};

typedef struct bench {
    int64_t n_warmup, n_repeat;
    double *ms; /* [n_repeat] lent */
    /* of the timed iterations, this rank's */
    double wall_ms, cpu_ms, waited_ms;
} bench;

typedef struct result {
    double ms, ms_min, samples_per_s, gflops, peak_gflops, overhead, overhead_counted;
    /* of the rank that has most of it: processor time an iteration, share of the time waited */
    double cpu_ms, wait_share;
} result;

static double clock_ms(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double now_ms(void) {
    return 1e3 * ct_seconds();
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Waits until everything asked for is done: a bank can only be read then. */
static ct_status settle(const ct_run *run) {
    float value;
    return ct_bank_read(&run->agents.x, 0, 0, 1, &value);
}

/* Iterations with a short batch, at the end of a pass over the data, are run but do not count. */
static ct_status time_steps(ct_run *run, bench *b, double *median, double *fastest) {
    long iteration = 0;
    while (iteration < b->n_warmup) CT_TRY(ct_run_iterate(run, iteration++));
    CT_TRY(settle(run));
    double began = now_ms(), cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    double waited_s = ct_transport_waited_s(run->transport);
    long first = iteration;
    for (int64_t n = 0; n < b->n_repeat;) {
        double start = now_ms();
        CT_TRY(ct_run_iterate(run, iteration++));
        CT_TRY(settle(run));
        b->ms[n] = now_ms() - start;
        n += run->batches[0].n == run->config.batch_size;
    }
    b->wall_ms = now_ms() - began;
    b->cpu_ms = (clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)(iteration - first);
    b->waited_ms = 1e3 * (ct_transport_waited_s(run->transport) - waited_s);
    qsort(b->ms, (size_t)b->n_repeat, sizeof *b->ms, by_value);
    *median = b->ms[b->n_repeat / 2];
    *fastest = b->ms[0];
    return CT_OK;
}

/* Multiply-adds of an iteration's own jobs and of its cross-features. The first layer needs no
 * gradient at its input. */
static void count_macs(const ct_run *run, double *own, double *cross) {
    const ct_graph *g = &run->graph;
    int first = 0;
    while (g->nodes[first].op != CT_OP_CONV && g->nodes[first].op != CT_OP_LINEAR) first++;
    double samples = (double)run->agents.n_rows * (double)run->config.batch_size;
    *own = samples * (3 * ct_graph_macs(g, g->logits) - ct_graph_macs(g, first));
    *cross = run->agents.loss.ccl
                 ? (double)run->agents.links.neighbours.n * (double)run->config.batch_size *
                       ct_graph_macs(g, g->features)
                 : 0;
}

/* The same run without the contrastive terms, to see what they cost. */
static ct_status time_without_ccl(const ct_config *config, bench *b, double *ms) {
    CT_SCOPED_BY(ct_run_clear, ct_run) run = {0};
    ct_config plain = *config;
    double fastest;
    CT_TRY(ct_config_choose(&plain));
    memset(plain.named, 0, sizeof plain.named); /* what CCL was told does not matter */
    CT_TRY(ct_config_put(&plain, "loss", "ce"));
    CT_TRY(ct_config_put(&plain, "lambda-m", "0"));
    CT_TRY(ct_config_put(&plain, "lambda-d", "0"));
    CT_TRY(ct_run_build(&plain, &run));
    return time_steps(&run, b, ms, &fastest);
}

/* The largest value of any rank, and the sum of all ranks'. */
static ct_status over_ranks(ct_run *run, double mine, double *most, double *sum) {
    int n = run->agents.n, n_rows = run->agents.n_rows;
    CT_SCOPED_BLOCK(double) all = NULL; /* [n] own rows', then [n_rows] all rows' */
    CT_TRY(ct_make(&all, (size_t)(n + n_rows), "the ranks' values"));
    for (int i = 0; i < n; i++) all[i] = mine;
    CT_TRY(ct_transport_gather(run->transport, all, sizeof *all, all + n));
    *most = mine;
    for (int row = 0; row < n_rows; row++) *most = fmax(*most, all[n + row]);
    for (int i = 0; i < n; i++) all[i] = mine / n;
    CT_TRY(ct_transport_gather(run->transport, all, sizeof *all, all + n));
    *sum = 0;
    for (int row = 0; row < n_rows; row++) *sum += all[n + row];
    return CT_OK;
}

static ct_status measure(const ct_config *config, bench *b, ct_run *run, result *r) {
    double own, cross, plain_ms = 0, unused;
    count_macs(run, &own, &cross);
    CT_TRY(time_steps(run, b, &r->ms, &r->ms_min));
    CT_TRY(over_ranks(run, b->cpu_ms, &r->cpu_ms, &unused));
    CT_TRY(over_ranks(run, b->waited_ms / b->wall_ms, &r->wait_share, &unused));
    r->samples_per_s = 1e3 * run->agents.n_rows * (double)run->config.batch_size / r->ms;
    r->gflops = 2e-6 * (own + cross) / r->ms;
    CT_TRY(over_ranks(run, ct_peak_gflops(run->backend), &unused, &r->peak_gflops));
    r->overhead_counted = cross / (own + cross);
    if (!run->agents.loss.ccl) return CT_OK;
    CT_TRY(time_without_ccl(config, b, &plain_ms));
    r->overhead = 1 - plain_ms / r->ms;
    return CT_OK;
}

static void print(const ct_run *run, const result *r) {
    const ct_config *c = &run->config;
    ct_show(stdout, "%s, %s%s, %d agents on %s, batch %lld, %s in %s with %d threads\n", c->model,
            c->algorithm, run->agents.loss.ccl ? " + ccl" : "", run->agents.n_rows,
            run->topology.name, (long long)c->batch_size, c->device,
            ct_precision_name(run->backend->precision), run->backend->n_threads);
    ct_show(stdout, "%10.3f ms per iteration (median; fastest %.3f)\n%10.0f samples/s\n", r->ms,
            r->ms_min, r->samples_per_s);
    ct_show(stdout, "%10.1f GFLOP/s", r->gflops);
    if (r->peak_gflops > 0)
        ct_show(stdout, ", %.0f %% of the measured peak of %.0f", 100 * r->gflops / r->peak_gflops,
                r->peak_gflops);
    ct_show(stdout, "\n");
    if (ct_transport_n_ranks(run->transport) > 1)
        ct_show(
            stdout,
            "%10.3f ms of processor time on the busiest of %d ranks, at most %.1f %% of the time "
            "waiting\n",
            r->cpu_ms, ct_transport_n_ranks(run->transport), 100 * r->wait_share);
    if (run->agents.loss.ccl)
        ct_show(stdout,
                "%10.1f %% of the time goes to cross-features (%.1f %% of the arithmetic)\n",
                100 * r->overhead, 100 * r->overhead_counted);
}

static ct_status print_json(const ct_run *run, const result *r) {
    const struct {
        const char *name;
        double value;
    } fields[] = {{"ms_per_iteration", r->ms},
                  {"ms_fastest", r->ms_min},
                  {"samples_per_second", r->samples_per_s},
                  {"gflops", r->gflops},
                  {"peak_gflops", r->peak_gflops},
                  {"peak_share", r->gflops / r->peak_gflops},
                  {"compute_overhead", r->overhead},
                  {"compute_overhead_counted", r->overhead_counted},
                  {"agents", run->agents.n_rows},
                  {"parameters", (double)run->graph.n_weights},
                  {"threads", run->backend->n_threads},
                  {"ranks", ct_transport_n_ranks(run->transport)},
                  {"cpu_ms_per_iteration", r->cpu_ms},
                  {"wait_share", r->wait_share},
                  {"peak_memory_bytes", (double)ct_peak_bytes()}};
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "{\"model\": ");
    ct_json_add_string(&text, run->config.model);
    ct_text_add(&text, ", \"device\": ");
    ct_json_add_string(&text, run->config.device);
    ct_text_add(&text, ", \"precision\": ");
    ct_json_add_string(&text, ct_precision_name(run->backend->precision));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        ct_text_add(&text, ", \"%s\": ", fields[i].name);
        ct_json_add_number(&text, fields[i].value);
    }
    CT_TRY(ct_text_status(&text));
    ct_show(stdout, "%s}\n", text.chars);
    return CT_OK;
}

ct_status ct_cli_bench(int n_args, char **args) {
    CT_SCOPED_BY(ct_run_clear, ct_run) run = {0};
    CT_SCOPED_BLOCK(double) ms = NULL;
    ct_own own;
    ct_config config;
    result r = {0};
    ct_config_init(&config);
    ct_config_put(&config, "partition", "iid");
    CT_TRY(ct_own_take("bench", &n_args, args, &own));
    CT_TRY(ct_cli_options(n_args, args, &config, NULL, 0));
    bench b = {.n_warmup = ct_own_whole(&own, "warmup"), .n_repeat = ct_own_whole(&own, "repeat")};
    bool as_json = ct_own_is_given(&own, "json");
    ct_cli_quiet(config.quiet || as_json);
    CT_TRY(ct_make(&ms, (size_t)b.n_repeat, "the times"));
    b.ms = ms;
    CT_TRY(ct_run_build(&config, &run));
    CT_TRY(measure(&config, &b, &run, &r));
    if (!ct_run_leads(&run)) return CT_OK;
    if (as_json) return print_json(&run, &r);
    print(&run, &r);
    return CT_OK;
}
