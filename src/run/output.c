#include "run/output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"

static const char *const run_files[] = {
    "config.txt",   "partition.csv",         "metrics.jsonl",
    "summary.json", "consensus.safetensors", "agents.safetensors"};
enum { N_RUN_FILES = sizeof run_files / sizeof *run_files };

void ct_output_dir(const ct_config *c, char *out, size_t size) {
    if (c->out[0] != '\0') {
        snprintf(out, size, "%s", c->out);
        return;
    }
    bool is_ccl = strcmp(c->loss, "ccl") == 0;
    char skew[32] = "file";
    if (c->partition_file[0] == '\0') snprintf(skew, sizeof skew, "%.30s", c->partition);
    if (strcmp(skew, "dirichlet") == 0) snprintf(skew, sizeof skew, "a%g", c->alpha);
    snprintf(out, size, "runs/%.40s-%.40s-%.40s%s-%.60s%d-%s-s%" PRId64, c->dataset, c->model,
             c->algorithm, is_ccl ? "+ccl" : "", c->topology, (int)c->agents, skew, c->seed);
    for (char *at = out + strlen("runs/"); *at != '\0'; at++)
        if (*at == '/' || *at == ':') *at = '_';
}

/* Calls act(path) for every file a run may leave in the directory, until it fails. */
static ct_status each_run_file(const char *dir, ct_status (*act)(const char *path)) {
    for (int i = 0; i < N_RUN_FILES; i++) {
        char *path = ct_path_join(dir, run_files[i]);
        if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
        ct_status status = act(path);
        ct_free(path);
        if (status != CT_OK) return status;
    }
    return CT_OK;
}

static ct_status refuse(const char *path) {
    if (!ct_file_exists(path)) return CT_OK;
    return ct_fail(CT_IO, "%s is there already; name another --out or replace it with --force",
                   path);
}

static ct_status delete (const char *path) {
    if (remove(path) == 0 || errno == ENOENT) return CT_OK;
    return ct_fail(CT_IO, "%s: %s", path, strerror(errno));
}

static ct_status write_text(const char *dir, const char *name, const ct_text *text) {
    CT_TRY(ct_text_status(text));
    char *path = ct_path_join(dir, name);
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = ct_file_write(path, text->chars, text->n);
    ct_free(path);
    return status;
}

ct_status ct_output_begin(const ct_run *run) {
    const char *dir = run->config.out;
    CT_TRY(ct_dir_create(dir));
    CT_TRY(each_run_file(dir, run->config.force ? delete : refuse));
    ct_text text = {0};
    ct_text_add(&text, "# crosstalk train --config this-file --out elsewhere\n");
    ct_config_print(&run->config, &text);
    ct_status status = write_text(dir, "config.txt", &text);
    ct_text_free(&text);
    if (status != CT_OK) return status;
    char *path = ct_path_join(dir, "partition.csv");
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    status = ct_partition_write(&run->partition, path);
    ct_free(path);
    return status;
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
    add_number(text, "ce", e->losses.ce);
    add_number(text, "mv", e->losses.mv);
    add_number(text, "dv", e->losses.dv);
    add_number(text, "train_accuracy", e->losses.train_accuracy);
}

/* One write of a whole line: a reader never sees half of one. */
static ct_status append_line(const char *path, const ct_text *line) {
    FILE *f = fopen(path, "ab");
    if (f == NULL) return ct_fail(CT_IO, "%s: %s", path, strerror(errno));
    setvbuf(f, NULL, _IOFBF, line->n + 1);
    bool ok = fwrite(line->chars, 1, line->n, f) == line->n && fflush(f) == 0;
    int reason = errno;
    if (fclose(f) != 0) ok = false;
    return ok ? CT_OK : ct_fail(CT_IO, "%s: %s", path, strerror(reason));
}

ct_status ct_output_epoch(const ct_run *run, const ct_epoch *e) {
    ct_text line = {0};
    ct_text_add(&line, "{\"epoch\": %ld, \"iteration\": %ld", e->epoch, e->iteration);
    add_losses(&line, e);
    add_evaluation(&line, e);
    add_number(&line, "bytes_sent_per_agent", e->bytes_sent_per_agent);
    add_number(&line, "seconds", e->seconds);
    ct_text_add(&line, "}\n");
    char *path = ct_path_join(run->config.out, "metrics.jsonl");
    ct_status status = ct_text_status(&line);
    if (path == NULL) status = ct_fail(CT_NOMEM, "no memory for a path");
    if (status == CT_OK) status = append_line(path, &line);
    ct_free(path);
    ct_text_free(&line);
    return status;
}

/* Cross-feature multiply-adds as a part of all: p forward passes to the features, against a forward
 * pass and a backward one of twice its cost. */
static double compute_overhead(const ct_run *run) {
    if (!run->agents.loss.ccl) return 0;
    double p = (double)run->agents.neighbours.n / run->agents.n;
    double cross = p * ct_graph_macs(&run->graph, run->graph.features);
    return cross / (cross + 3 * ct_graph_macs(&run->graph, run->graph.logits));
}

static double mean_sent(const ct_run *run, ct_traffic kind) {
    double sum = 0;
    for (int i = 0; i < run->agents.n; i++)
        sum += (double)ct_transport_sent(run->transport, i, kind);
    return sum / run->agents.n;
}

static void add_costs(ct_text *text, const ct_run *run, const ct_epoch *last) {
    double iterations = last->iteration > 0 ? (double)last->iteration : 1;
    double parameters = mean_sent(run, CT_TRAFFIC_PARAMETERS) / iterations;
    double sums = mean_sent(run, CT_TRAFFIC_CLASS_SUMS) / iterations;
    add_number(text, "compute_overhead", compute_overhead(run));
    add_number(text, "bytes_sent_per_agent", last->bytes_sent_per_agent);
    add_number(text, "bytes_per_agent_per_iteration", parameters + sums);
    add_number(text, "parameter_bytes_per_agent_per_iteration", parameters);
    add_number(text, "class_sum_bytes_per_agent_per_iteration", sums);
    add_number(text, "mib_per_agent_per_iteration", (parameters + sums) / (1 << 20));
    add_number(text, "peak_memory_bytes", (double)ct_peak_bytes());
    add_number(text, "seconds", last->seconds);
}

static void add_setting(ct_text *text, const ct_run *run) {
    const ct_topology_facts *t = &run->topology_facts;
    const ct_partition_facts *p = &run->partition_facts;
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
    ct_text_add(text, ", \"threads\": %d", run->backend->n_threads);
}

static ct_status write_summary(const ct_run *run, const ct_epoch *last) {
    ct_text text = {0};
    ct_text_add(&text, "{\"epoch\": %ld, \"iteration\": %ld", last->epoch, last->iteration);
    add_losses(&text, last);
    add_evaluation(&text, last);
    ct_text_add(&text, ", \"parameters\": %zu, \"features\": %zu", run->graph.n_weights,
                ct_graph_n_features(&run->graph));
    add_costs(&text, run, last);
    add_setting(&text, run);
    ct_text_add(&text, ", \"options\": {");
    ct_config_print_json(&run->config, &text);
    ct_text_add(&text, "\n}}\n");
    ct_status status = write_text(run->config.out, "summary.json", &text);
    ct_text_free(&text);
    return status;
}

static ct_status save_model(ct_run *run, const char *name,
                            ct_status (*save)(ct_run *run, const char *path)) {
    char *path = ct_path_join(run->config.out, name);
    if (path == NULL) return ct_fail(CT_NOMEM, "no memory for a path");
    ct_status status = save(run, path);
    ct_free(path);
    return status;
}

ct_status ct_output_end(ct_run *run, const ct_epoch *last) {
    CT_TRY(save_model(run, "consensus.safetensors", ct_run_save_consensus));
    if (run->config.save_agents) CT_TRY(save_model(run, "agents.safetensors", ct_run_save_agents));
    return write_summary(run, last);
}
