#include "run/output.h"

#include "run/output_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "run/tensorboard.h"
#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"

ct_status ct_output_write(const char *dir, const char *name, const ct_text *text) {
    CT_TRY(ct_text_status(text));
    char *path = ct_path_join(dir, name);
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_write(path, text->chars, text->n);
    ct_free(path);
    return status;
}

/* The options of all seeds of a world's pair of lambdas. */
static ct_config pair_config(const ct_run *run, int world) {
    ct_config c = run->config;
    c.lambda_m = run->worlds[world].lambda_m;
    c.lambda_d = run->worlds[world].lambda_d;
    c.lambdas[0] = '\0';
    return c;
}

/* A world's own options: its seed, its lambdas and its directory. */
static ct_config world_config(const ct_run *run, int world) {
    ct_config c = pair_config(run, world);
    c.seed = (int64_t)run->worlds[world].seed;
    c.seeds[0] = '\0';
    memcpy(c.out, run->worlds[world].dir, sizeof c.out);
    return c;
}

static ct_status write_config(const ct_config *config, const char *dir) {
    ct_text text = {0};
    ct_text_add(&text, "# crosstalk train --config this-file --out elsewhere\n");
    ct_config_print(config, &text);
    ct_status status = ct_output_write(dir, "config.txt", &text);
    ct_text_free(&text);
    return status;
}

static ct_status begin_world(const ct_run *run, int world) {
    const ct_world *w = &run->worlds[world];
    ct_config config = world_config(run, world);
    CT_TRY(write_config(&config, w->dir));
    char *path = ct_path_join(w->dir, "partition.csv");
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_partition_write(&w->partition, path);
    ct_free(path);
    CT_TRY(status);
    return ct_output_setting(run, world);
}

static ct_status check_length(const char *path, size_t n, size_t n_then) {
    if (n >= n_then) return CT_OK;
    return ct_fail(CT_IO, "%s: %zu bytes, but there were %zu at the checkpoint", path, n, n_then);
}

/* What resume_metrics will need, looked at before anything is written. */
static ct_status check_metrics(const ct_run *run, const ct_checkpoint *checkpoint) {
    for (int k = 0; k < run->n_worlds; k++) {
        char dir[CT_CONFIG_TEXT];
        struct stat info;
        CT_TRY(ct_output_world_dir(run, run->config.resume, k, dir, sizeof dir));
        char *path = ct_path_join(dir, "metrics.jsonl");
        if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
        size_t size = stat(path, &info) == 0 ? (size_t)info.st_size : 0;
        ct_status status = check_length(path, size, ct_checkpoint_metrics_bytes(checkpoint, k));
        ct_free(path);
        CT_TRY(status);
    }
    return CT_OK;
}

ct_status ct_output_begin(const ct_run *run, const ct_checkpoint *checkpoint, int *lock) {
    if (!ct_run_leads(run)) return CT_OK;
    if (checkpoint != NULL) CT_TRY(check_metrics(run, checkpoint));
    CT_TRY(ct_dir_create(run->config.out));
    CT_TRY(ct_output_lock(run, lock));
    if (checkpoint == NULL || !ct_dir_is_same(run->config.resume, run->config.out))
        CT_TRY(ct_output_claim(run));
    if (run->n_worlds > 1) CT_TRY(write_config(&run->config, run->config.out));
    for (int k = 0; k < run->n_worlds; k++) CT_TRY(begin_world(run, k));
    return CT_OK;
}

/* metrics.jsonl up to the checkpoint, here and perhaps from another directory. */
static ct_status resume_metrics(const char *from, const char *to, size_t n) {
    ct_blob blob = {0};
    char *old = ct_path_join(from, "metrics.jsonl"), *path = ct_path_join(to, "metrics.jsonl");
    ct_status status =
        old != NULL && path != NULL ? CT_OK : ct_fail(CT_NOMEM, "no memory for a path");
    if (status == CT_OK && n > 0) status = ct_file_read(old, SIZE_MAX / 2, &blob);
    if (status == CT_OK) status = check_length(old, blob.n, n);
    if (status == CT_OK && n > 0) status = ct_file_write(path, blob.bytes, n);
    if (status == CT_OK && n == 0) status = ct_output_delete(path);
    ct_blob_free(&blob);
    ct_free(old);
    ct_free(path);
    return status;
}

ct_status ct_output_resume(const ct_run *run, const ct_checkpoint *checkpoint) {
    if (!ct_run_leads(run)) return CT_OK;
    CT_TRY(ct_output_forget(run));
    for (int k = 0; k < run->n_worlds; k++) {
        char from[CT_CONFIG_TEXT];
        CT_TRY(ct_output_world_dir(run, run->config.resume, k, from, sizeof from));
        CT_TRY(
            resume_metrics(from, run->worlds[k].dir, ct_checkpoint_metrics_bytes(checkpoint, k)));
        if (run->config.tensorboard) CT_TRY(ct_tensorboard_rewrite(run->worlds[k].dir));
    }
    return CT_OK;
}

static void add_number(ct_text *text, const char *name, double value) {
    ct_text_add(text, ", \"%s\": ", name);
    ct_json_add_number(text, value);
}

static void add_evaluation(ct_text *text, const ct_epoch *e) {
    const double none = 0.0 / 0.0; /* written as null */
    bool ok = e->is_evaluated;
    add_number(text, "consensus_accuracy", ok ? e->evaluation.consensus_accuracy : none);
    add_number(text, "consensus_loss", ok ? e->evaluation.consensus_loss : none);
    add_number(text, "local_accuracy_mean", ok ? e->evaluation.local_accuracy_mean : none);
    add_number(text, "local_accuracy_min", ok ? e->evaluation.local_accuracy_min : none);
    add_number(text, "local_accuracy_max", ok ? e->evaluation.local_accuracy_max : none);
    add_number(text, "consensus_distance", ok ? e->evaluation.consensus_distance : none);
}

static void add_losses(ct_text *text, const ct_epoch *e) {
    add_number(text, "lr", e->lr);
    for (int k = 0; k < CT_N_TERMS; k++)
        add_number(text, ct_loss_terms[k].name, e->losses.terms[k]);
    add_number(text, "train_accuracy", e->losses.train_accuracy);
}

static bool has_link(const ct_run *run) {
    return run->config.link_latency > 0 || run->config.link_bandwidth > 0;
}

static ct_status append_metrics(const ct_run *run, const char *dir, const ct_text *line) {
    CT_TRY(ct_text_status(line));
    char *path = ct_path_join(dir, "metrics.jsonl");
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_append(path, line->chars, line->n);
    ct_free(path);
    if (status == CT_OK && run->config.tensorboard) status = ct_tensorboard_add(dir, line->chars);
    return status;
}

ct_status ct_output_epoch(const ct_run *run, int world, const ct_epoch *e) {
    if (!ct_run_leads(run)) return CT_OK;
    ct_text line = {0};
    ct_text_add(&line, "{\"epoch\": %ld, \"iteration\": %ld", e->epoch, e->iteration);
    add_losses(&line, e);
    add_evaluation(&line, e);
    add_number(&line, "bytes_sent_per_agent", e->bytes_sent_per_agent);
    if (has_link(run)) add_number(&line, "link_seconds", e->link_seconds);
    add_number(&line, "seconds", e->seconds);
    ct_text_add(&line, "}\n");
    ct_status status = append_metrics(run, run->worlds[world].dir, &line);
    ct_text_free(&line);
    CT_TRY(status);
    return e->is_evaluated ? ct_output_evaluation(run, world, e) : CT_OK;
}

/* Mean bytes that an agent of one world has sent. */
static double mean_sent(const ct_run *run, int world, ct_traffic kind) {
    double sum = 0;
    int n = run->agents.n_agents;
    for (int i = 0; i < n; i++)
        sum += (double)ct_transport_sent(run->transport, world * n + i, kind);
    return sum / n;
}

static void add_costs(ct_text *text, const ct_run *run, int world, const ct_epoch *last) {
    double iterations = last->iteration > 0 ? (double)last->iteration : 1;
    double parameters = mean_sent(run, world, CT_TRAFFIC_PARAMETERS) / iterations;
    double sums = mean_sent(run, world, CT_TRAFFIC_CLASS_SUMS) / iterations;
    ct_cost cost = ct_run_cost(run);
    double macs = cost.own_macs + cost.cross_macs;
    add_number(text, "compute_overhead", macs > 0 ? cost.cross_macs / macs : 0);
    add_number(text, "gmacs_per_agent_per_iteration", 1e-9 * macs);
    add_number(text, "bytes_sent_per_agent", last->bytes_sent_per_agent);
    add_number(text, "bytes_per_agent_per_iteration", parameters + sums);
    add_number(text, "parameter_bytes_per_agent_per_iteration", parameters);
    add_number(text, "class_sum_bytes_per_agent_per_iteration", sums);
    add_number(text, "mib_per_agent_per_iteration", (parameters + sums) / (1 << 20));
    if (has_link(run)) {
        add_number(text, "link_seconds", last->link_seconds);
        add_number(text, "link_seconds_per_iteration", last->link_seconds / iterations);
    }
    add_number(text, "peak_memory_bytes", (double)ct_peak_bytes());
    add_number(text, "transport_wait_share",
               last->seconds > 0 ? ct_transport_waited_s(run->transport) / last->seconds : 0);
    add_number(text, "seconds", last->seconds);
    add_number(text, "data_wait_share",
               last->seconds > 0 ? ct_run_data_wait(run) / last->seconds : 0);
}

static void add_setting(ct_text *text, const ct_run *run, const ct_world *world) {
    const ct_topology_facts *t = &world->topology_facts;
    const ct_partition_facts *p = &world->partition_facts;
    ct_text_add(text, ", \"topology\": {\"edges\": %d, \"diameter\": %d", t->n_edges, t->diameter);
    add_number(text, "lambda_2", t->lambda_2);
    add_number(text, "spectral_gap", t->spectral_gap);
    ct_text_add(text, "}, \"partition\": {\"hash\": \"%016" PRIx64 "\"", p->hash);
    add_number(text, "classes_per_agent", p->classes_per_agent);
    add_number(text, "top_share", p->top_share);
    add_number(text, "total_variation", p->total_variation);
    add_number(text, "min_size", (double)p->min_size);
    add_number(text, "max_size", (double)p->max_size);
    ct_text_add(text, "}, \"data_source\": ");
    ct_json_add_string(text, run->dataset.source);
    ct_text_add(text, ", \"precision\": \"%s\", \"threads\": %d, \"ranks\": %d",
                ct_precision_name(run->backend->precision), run->backend->n_threads,
                ct_transport_n_ranks(run->transport));
}

/* The same models by the ways in which papers count: the mean model (the CCL paper), the agents'
 * own, the agents' after gossip alone, the agents' after a merge. */
static void add_conventions(ct_text *text, const ct_config *c, const ct_epoch *e) {
    const double none = 0.0 / 0.0;
    ct_text_add(text, ", \"accuracy\": {\"gossip_rounds\": %" PRId64, c->gossip_rounds);
    add_number(text, "consensus", e->evaluation.consensus_accuracy);
    add_number(text, "local_mean", e->evaluation.local_accuracy_mean);
    add_number(text, "local_worst", e->evaluation.local_accuracy_min);
    add_number(text, "local_best", e->evaluation.local_accuracy_max);
    add_number(text, "after_gossip_mean", e->finish.gossip_accuracy_mean);
    add_number(text, "after_gossip_worst", e->finish.gossip_accuracy_min);
    add_number(text, "after_gossip_best", e->finish.gossip_accuracy_max);
    add_number(text, "after_merge", c->final_merge ? e->evaluation.consensus_accuracy : none);
    ct_text_add(text, "}");
}

/* Everything of one world (of the first, with the means of all, for a run of several seeds). */
static ct_status write_summary(const ct_run *run, int world, const ct_epoch *last,
                               const ct_config *config, const ct_text *extra) {
    ct_text text = {0};
    ct_text_add(&text, "{\"epoch\": %ld, \"iteration\": %ld", last->epoch, last->iteration);
    add_losses(&text, last);
    add_evaluation(&text, last);
    add_conventions(&text, &run->config, last);
    ct_text_add(&text, ", \"parameters\": %zu, \"features\": %zu", run->graph.n_weights,
                ct_graph_n_features(&run->graph));
    add_costs(&text, run, world, last);
    add_setting(&text, run, &run->worlds[world]);
    if (extra != NULL) ct_text_add(&text, "%s", extra->chars);
    ct_text_add(&text, ", \"options\": {");
    ct_config_print_json(config, &text);
    ct_text_add(&text, "\n}}\n");
    ct_status status = ct_output_write(config->out, "summary.json", &text);
    ct_text_free(&text);
    return status;
}

static ct_status save_model(ct_run *run, int world, const char *name,
                            ct_status (*save)(ct_run *run, int world, const char *path)) {
    char *path = ct_path_join(run->worlds[world].dir, name);
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = save(run, world, path);
    ct_free(path);
    return status;
}

/* What differs from seed to seed, as offsets into ct_epoch. */
static const struct {
    const char *name;
    size_t offset;
} spread[] = {
#define TERM(id, name, axis, digits) {name, offsetof(ct_epoch, losses.terms[CT_LOSS_##id])},
#include "loss/term_list.h"
#undef TERM
    {"train_accuracy", offsetof(ct_epoch, losses.train_accuracy)},
    {"consensus_accuracy", offsetof(ct_epoch, evaluation.consensus_accuracy)},
    {"consensus_loss", offsetof(ct_epoch, evaluation.consensus_loss)},
    {"local_accuracy_mean", offsetof(ct_epoch, evaluation.local_accuracy_mean)},
    {"local_accuracy_min", offsetof(ct_epoch, evaluation.local_accuracy_min)},
    {"local_accuracy_max", offsetof(ct_epoch, evaluation.local_accuracy_max)},
    {"consensus_distance", offsetof(ct_epoch, evaluation.consensus_distance)},
    {"gossip_accuracy_mean", offsetof(ct_epoch, finish.gossip_accuracy_mean)},
    {"gossip_accuracy_min", offsetof(ct_epoch, finish.gossip_accuracy_min)},
    {"gossip_accuracy_max", offsetof(ct_epoch, finish.gossip_accuracy_max)},
};

static double *field(ct_epoch *e, size_t offset) {
    return (double *)(void *)((char *)e + offset);
}

/* The mean epoch of all seeds, and ", \"seeds\": [...], \"<name>_std\": ..." (sample deviation).
 */
static ct_epoch mean_epoch(const ct_run *run, const ct_epoch *last, ct_text *deviations) {
    ct_epoch mean = last[0];
    int n = run->n_seeds;
    ct_text_add(deviations, ", \"seeds\": [");
    for (int k = 0; k < n; k++)
        ct_text_add(deviations, "%s%" PRIu64, k == 0 ? "" : ", ", run->seeds[k]);
    ct_text_add(deviations, "]");
    for (size_t f = 0; f < sizeof spread / sizeof *spread; f++) {
        double sum = 0, squares = 0;
        for (int k = 0; k < n; k++) sum += *field((ct_epoch *)&last[k], spread[f].offset);
        *field(&mean, spread[f].offset) = sum / n;
        for (int k = 0; k < n; k++) {
            double d = *field((ct_epoch *)&last[k], spread[f].offset) - sum / n;
            squares += d * d;
        }
        char name[64];
        snprintf(name, sizeof name, "%s_std", spread[f].name);
        add_number(deviations, name, sqrt(squares / (n - 1)));
    }
    return mean;
}

/* Of the seeds from world `first` on, which have the same lambdas. */
static ct_status write_means(const ct_run *run, int first, const ct_epoch *last) {
    ct_text deviations = {0};
    ct_epoch mean = mean_epoch(run, last + first, &deviations);
    ct_config config = pair_config(run, first);
    CT_TRY(ct_output_pair_dir(run, run->config.out, first, config.out, sizeof config.out));
    ct_status status = run->lambdas != NULL ? write_config(&config, config.out) : CT_OK;
    if (status == CT_OK) status = ct_text_status(&deviations);
    if (status == CT_OK) status = write_summary(run, first, &mean, &config, &deviations);
    ct_text_free(&deviations);
    return status;
}

/* What every edge carried, of one world: agents numbered from 0. */
static ct_status write_ledger(const ct_run *run, int world) {
    ct_text text = {0};
    const ct_ledger_edge *edges = ct_ledger_edges(run->transport);
    int n = run->agents.n_agents;
    ct_text_add(&text, "from,to,parameter_bytes,class_sum_bytes\n");
    for (int e = 0; e < ct_ledger_n_edges(run->transport); e++)
        if (edges[e].from / n == world)
            ct_text_add(&text, "%d,%d,%" PRIu64 ",%" PRIu64 "\n", edges[e].from % n,
                        edges[e].to % n, edges[e].bytes[CT_TRAFFIC_PARAMETERS],
                        edges[e].bytes[CT_TRAFFIC_CLASS_SUMS]);
    ct_status status = ct_output_write(run->worlds[world].dir, "ledger.csv", &text);
    ct_text_free(&text);
    return status;
}

ct_status ct_output_end(ct_run *run, const ct_epoch *last) {
    if (!ct_run_leads(run)) return CT_OK;
    for (int k = 0; k < run->n_worlds; k++) {
        ct_config config = world_config(run, k);
        CT_TRY(save_model(run, k, "consensus.safetensors", ct_run_save_consensus));
        if (run->config.save_agents)
            CT_TRY(save_model(run, k, "agents.safetensors", ct_run_save_agents));
        if (run->config.ledger) CT_TRY(write_ledger(run, k));
        CT_TRY(write_summary(run, k, &last[k], &config, NULL));
    }
    for (int k = 0; k < run->n_worlds && run->n_seeds > 1; k += run->n_seeds)
        CT_TRY(write_means(run, k, last));
    return CT_OK;
}
