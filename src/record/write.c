#include "record/write.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/record_internal.h"
#include "util/memory.h"

static void add_number(ct_text *text, const char *name, double value) {
    ct_text_add(text, ", \"%s\": ", name);
    ct_json_add_number(text, value);
}

static void add_options(ct_text *text, const ct_config *config) {
    ct_text_add(text, ", \"options\": {");
    ct_config_print_json(config, text);
    ct_text_add(text, "\n}}\n");
}

ct_status ct_record_write_options(const char *dir, const ct_config *config) {
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "# crosstalk train --config this-file --out elsewhere\n");
    ct_config_print(config, &text);
    return ct_record_write(dir, CT_FILE_CONFIG, &text);
}

ct_status ct_record_write_partition(const char *dir, const ct_partition *partition) {
    return ct_partition_write(partition, ct_record_path(dir, CT_FILE_PARTITION).text);
}

/* ---- an epoch ---- */

typedef enum part { RATE, LOSS, SCORE, AVERAGE, VALIDATION, BOTH, FINISH } part;

/* The numbers of an epoch, in the order of the files. */
static const struct {
    const char *name;
    size_t offset;
    part part;
} fields[] = {
    {"lr", offsetof(ct_epoch, lr), RATE},
#define TERM(id, name, axis, digits) {name, offsetof(ct_epoch, losses.terms[CT_LOSS_##id]), LOSS},
#include "loss/term_list.h"
#undef TERM
    {"train_accuracy", offsetof(ct_epoch, losses.train_accuracy), LOSS},
    {"consensus_accuracy", offsetof(ct_epoch, evaluation.consensus_accuracy), SCORE},
    {"consensus_loss", offsetof(ct_epoch, evaluation.consensus_loss), SCORE},
    {"local_accuracy_mean", offsetof(ct_epoch, evaluation.local_accuracy_mean), SCORE},
    {"local_accuracy_min", offsetof(ct_epoch, evaluation.local_accuracy_min), SCORE},
    {"local_accuracy_max", offsetof(ct_epoch, evaluation.local_accuracy_max), SCORE},
    {"consensus_distance", offsetof(ct_epoch, evaluation.consensus_distance), SCORE},
    {"averaged_accuracy", offsetof(ct_epoch, evaluation.averaged_accuracy), AVERAGE},
    {"averaged_loss", offsetof(ct_epoch, evaluation.averaged_loss), AVERAGE},
    {"validation_accuracy", offsetof(ct_epoch, evaluation.validation_accuracy), VALIDATION},
    {"validation_loss", offsetof(ct_epoch, evaluation.validation_loss), VALIDATION},
    {"averaged_validation_accuracy", offsetof(ct_epoch, evaluation.averaged_validation_accuracy),
     BOTH},
    {"gossip_accuracy_mean", offsetof(ct_epoch, finish.gossip_accuracy_mean), FINISH},
    {"gossip_accuracy_min", offsetof(ct_epoch, finish.gossip_accuracy_min), FINISH},
    {"gossip_accuracy_max", offsetof(ct_epoch, finish.gossip_accuracy_max), FINISH},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static double *field(const ct_epoch *e, int k) {
    return (double *)(void *)((char *)e + fields[k].offset);
}

/* Averages over time and held-out samples are told of where there are any. */
static bool is_told(const ct_epoch *e, int k) {
    part p = fields[k].part;
    if ((p == AVERAGE || p == BOTH) && !e->evaluation.is_averaged) return false;
    return (p != VALIDATION && p != BOTH) || e->evaluation.is_validated;
}

/* Known only where the models were tested. */
static bool is_score(int k) {
    return fields[k].part >= SCORE && fields[k].part < FINISH;
}

/* A test that did not take place is null. */
static void add_epoch(ct_text *text, const ct_epoch *e) {
    ct_text_add(text, "{\"epoch\": %ld, \"iteration\": %ld", e->epoch, e->iteration);
    for (int k = 0; k < N_FIELDS && fields[k].part != FINISH; k++) {
        if (is_told(e, k))
            add_number(text, fields[k].name, is_score(k) && !e->is_evaluated ? NAN : *field(e, k));
    }
}

double ct_epoch_number(const ct_epoch *e, const char *key) {
    const struct {
        const char *name;
        double value;
    } others[] = {{"epoch", (double)e->epoch},
                  {"iteration", (double)e->iteration},
                  {"bytes_sent_per_agent", e->bytes_sent_per_agent},
                  {"link_seconds", e->link_seconds},
                  {"seconds", e->seconds}};
    for (int k = 0; k < N_FIELDS; k++) {
        bool is_known = is_told(e, k) && (is_score(k) ? e->is_evaluated : e->epoch > 0);
        if (strcmp(fields[k].name, key) == 0) return is_known ? *field(e, k) : NAN;
    }
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (strcmp(others[k].name, key) == 0) return e->epoch > 0 ? others[k].value : NAN;
    return NAN;
}

static bool has_link(const ct_config *config) {
    return config->link_latency > 0 || config->link_bandwidth > 0 || config->speed[0] != '\0';
}

void ct_record_add_epoch(ct_text *lines, const ct_config *config, const ct_epoch *e) {
    add_epoch(lines, e);
    add_number(lines, "bytes_sent_per_agent", e->bytes_sent_per_agent);
    if (has_link(config)) add_number(lines, "link_seconds", e->link_seconds);
    add_number(lines, "seconds", e->seconds);
    ct_text_add(lines, "}\n");
}

static size_t metrics_bytes(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

/* To both files or to none. */
static ct_status write_line(const char *dir, const ct_config *config, const char *line, size_t n) {
    ct_path path = ct_record_path(dir, CT_FILE_METRICS);
    size_t n_before = metrics_bytes(path.text);
    CT_TRY(ct_file_append(path.text, line, n));
    if (!config->tensorboard) return CT_OK;
    ct_status status = ct_tensorboard_add(dir, line, n);
    if (status != CT_OK && truncate(path.text, (off_t)n_before) != 0)
        return ct_file_failed(path.text);
    return status;
}

ct_status ct_record_write_epochs(const char *dir, const ct_config *config, ct_text *lines) {
    CT_TRY(ct_text_status(lines));
    while (lines->n > 0) {
        size_t n = strcspn(lines->chars, "\n") + 1;
        CT_TRY(write_line(dir, config, lines->chars, n));
        lines->n -= n;
        memmove(lines->chars, lines->chars + n, lines->n + 1);
    }
    return CT_OK;
}

/* ---- metrics.jsonl of a run that goes on ---- */

size_t ct_record_sync_metrics(const char *dir) {
    ct_path path = ct_record_path(dir, CT_FILE_METRICS);
    int fd = open(path.text, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    fsync(fd);
    close(fd);
    return metrics_bytes(path.text);
}

static ct_status check_length(const char *path, size_t n, size_t n_then) {
    if (n >= n_then) return CT_OK;
    return ct_fail(CT_IO, "%s: %zu bytes, but there were %zu at the checkpoint", path, n, n_then);
}

ct_status ct_record_check_metrics(const char *dir, size_t n) {
    ct_path path = ct_record_path(dir, CT_FILE_METRICS);
    return check_length(path.text, metrics_bytes(path.text), n);
}

ct_status ct_record_resume_metrics(const char *from, const char *to, size_t n,
                                   const ct_config *config) {
    CT_SCOPED(ct_blob) blob = {0};
    ct_path old = ct_record_path(from, CT_FILE_METRICS), path = ct_record_path(to, CT_FILE_METRICS);
    if (n > 0) CT_TRY(ct_file_read(old.text, CT_MAX_RECORD_BYTES, &blob));
    CT_TRY(check_length(old.text, blob.n, n));
    CT_TRY(n > 0 ? ct_file_write(path.text, blob.bytes, n) : ct_record_remove(to, CT_FILE_METRICS));
    return config->tensorboard ? ct_tensorboard_rewrite(to) : CT_OK;
}

/* ---- setting.json, evaluation.json ---- */

#define MAX_ENTRIES (1 << 20) /* of a table or of the edges; longer ones are left out */

static void add_names(ct_text *text, const ct_dataset *d) {
    ct_text_add(text, ", \"class_names\": %s", d->class_names == NULL ? "null" : "[");
    if (d->class_names == NULL) return;
    const char *name = d->class_names;
    for (int c = 0; c < d->n_classes; c++, name += strlen(name) + 1) {
        if (c > 0) ct_text_add(text, ", ");
        ct_json_add_string(text, name);
    }
    ct_text_add(text, "]");
}

/* "name": [[...], ...], one line a row */
static void add_table(ct_text *text, const char *name, const uint32_t *table, int n_rows,
                      int n_columns) {
    ct_text_add(text, ",\n\"%s\": %s", name, table == NULL ? "null" : "[");
    if (table == NULL) return;
    for (int i = 0; i < n_rows; i++) {
        if (i > 0) ct_text_add(text, ",\n");
        for (int k = 0; k < n_columns; k++)
            ct_text_add(text, "%s%u", k == 0 ? "[" : ",", table[(size_t)i * (size_t)n_columns + k]);
        ct_text_add(text, "]");
    }
    ct_text_add(text, "]");
}

static void add_edges(ct_text *text, const ct_topology *t) {
    bool is_first = true, is_long = t->begin[t->n] / 2 > MAX_ENTRIES;
    ct_text_add(text, ",\n\"edges\": %s", is_long ? "null" : "[");
    for (int i = 0; i < t->n && !is_long; i++)
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++) {
            if (t->neighbour[e] < i) continue;
            ct_text_add(text, "%s[%d,%d]", is_first ? "" : ",", i, t->neighbour[e]);
            is_first = false;
        }
    if (!is_long) ct_text_add(text, "]");
}

typedef struct list {
    ct_text *text;
    int n;
} list;

static ct_status add_name(void *context, const char *name) {
    list *l = context;
    ct_text_add(l->text, l->n++ == 0 ? "" : ",");
    ct_json_add_string(l->text, name);
    return CT_OK;
}

/* Of agents that have names, as --agent-names lists them. */
static ct_status add_agent_names(ct_text *text, const char *names) {
    list l = {text, 0};
    if (names[0] == '\0') return CT_OK;
    ct_text_add(text, ",\n\"agent_names\": [");
    CT_TRY(ct_split(names, add_name, &l));
    ct_text_add(text, "]");
    return CT_OK;
}

ct_status ct_record_write_setting(const char *dir, const ct_identity *identity, const ct_dataset *d,
                                  const ct_topology *graph, const char *agent_names,
                                  const uint32_t *class_counts) {
    CT_SCOPED(ct_text) text = {0};
    bool is_long = (size_t)graph->n * (size_t)d->n_classes > MAX_ENTRIES;
    ct_text_add(&text, "{\"identity\": {");
    ct_identity_print(identity, &text);
    ct_text_add(&text, "},\n\"agents\": %d, \"classes\": %d", graph->n, d->n_classes);
    add_names(&text, d);
    CT_TRY(add_agent_names(&text, agent_names));
    add_edges(&text, graph);
    add_table(&text, "class_counts", is_long ? NULL : class_counts, graph->n, d->n_classes);
    ct_text_add(&text, "}\n");
    return ct_record_write(dir, CT_FILE_SETTING, &text);
}

ct_status ct_record_write_evaluation(const char *dir, const ct_epoch *e, size_t n_tested,
                                     int n_classes, const double *local_accuracy, int n_agents,
                                     const uint32_t *confusion) {
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "{\"epoch\": %ld, \"iteration\": %ld, \"test_samples\": %zu", e->epoch,
                e->iteration, n_tested);
    add_number(&text, "consensus_accuracy", e->evaluation.consensus_accuracy);
    if (e->evaluation.is_averaged)
        add_number(&text, "averaged_accuracy", e->evaluation.averaged_accuracy);
    ct_text_add(&text, ",\n\"local_accuracy\": [");
    for (int i = 0; i < n_agents; i++) {
        if (i > 0) ct_text_add(&text, ",");
        ct_json_add_number(&text, local_accuracy[i]);
    }
    ct_text_add(&text, "]");
    add_table(&text, "confusion", confusion, n_classes, n_classes);
    ct_text_add(&text, "}\n");
    CT_TRY(ct_text_status(&text));
    return ct_file_replace(ct_record_path(dir, CT_FILE_EVALUATION).text, text.chars, text.n);
}

/* ---- summary.json ---- */

static void add_costs(ct_text *text, const ct_summary *s, const ct_epoch *last) {
    const ct_costs *c = &s->costs;
    double iterations = last->iteration > 0 ? (double)last->iteration : 1;
    double bytes = c->parameter_bytes + c->class_sum_bytes, macs = c->own_macs + c->cross_macs;
    double seconds = last->seconds;
    add_number(text, "compute_overhead", macs > 0 ? c->cross_macs / macs : 0);
    add_number(text, "gmacs_per_agent_per_iteration", 1e-9 * macs);
    add_number(text, "bytes_sent_per_agent", last->bytes_sent_per_agent);
    add_number(text, "bytes_per_agent_per_iteration", bytes);
    add_number(text, "parameter_bytes_per_agent_per_iteration", c->parameter_bytes);
    add_number(text, "class_sum_bytes_per_agent_per_iteration", c->class_sum_bytes);
    add_number(text, "mib_per_agent_per_iteration", bytes / (1 << 20));
    if (has_link(s->config)) {
        add_number(text, "link_seconds", last->link_seconds);
        add_number(text, "link_seconds_per_iteration", last->link_seconds / iterations);
    }
    add_number(text, "peak_memory_bytes", (double)c->peak_memory_bytes);
    add_number(text, "transport_wait_share", seconds > 0 ? c->waited_s / seconds : 0);
    add_number(text, "seconds", seconds);
    add_number(text, "data_wait_share", seconds > 0 ? c->data_wait_s / seconds : 0);
}

static void add_setting(ct_text *text, const ct_summary *s) {
    const ct_topology_facts *t = s->topology;
    const ct_partition_facts *p = s->partition;
    ct_text_add(text, ", \"topology\": {\"edges\": %d, \"diameter\": %d", t->n_edges, t->diameter);
    add_number(text, "lambda_2", t->lambda_2);
    add_number(text, "spectral_gap", t->spectral_gap);
    ct_text_add(text, "}, \"partition\": {\"hash\": \"%016" PRIx64 "\"", p->hash);
    add_number(text, "classes_per_agent", p->classes_per_agent);
    add_number(text, "top_share", p->top_share);
    add_number(text, "total_variation", p->total_variation);
    add_number(text, "min_size", (double)p->min_size);
    add_number(text, "max_size", (double)p->max_size);
    ct_text_add(text, "}");
    ct_text_add(text, ", \"identity\": {");
    ct_identity_print(s->identity, text);
    ct_text_add(text, "}, \"data_source\": ");
    ct_json_add_string(text, s->data_source);
    ct_text_add(text, ", \"precision\": \"%s\", \"threads\": %d, \"ranks\": %d",
                s->identity->value[CT_ID_precision], s->n_threads, s->n_ranks);
}

/* The same models by the ways in which papers count: the mean model (the CCL paper), the agents'
 * own, the agents' after gossip alone, the agents' after a merge. */
static void add_conventions(ct_text *text, const ct_config *c, const ct_epoch *e) {
    ct_text_add(text, ", \"accuracy\": {\"gossip_rounds\": %" PRId64, c->gossip_rounds);
    add_number(text, "consensus", e->evaluation.consensus_accuracy);
    add_number(text, "local_mean", e->evaluation.local_accuracy_mean);
    add_number(text, "local_worst", e->evaluation.local_accuracy_min);
    add_number(text, "local_best", e->evaluation.local_accuracy_max);
    add_number(text, "after_gossip_mean", e->finish.gossip_accuracy_mean);
    add_number(text, "after_gossip_worst", e->finish.gossip_accuracy_min);
    add_number(text, "after_gossip_best", e->finish.gossip_accuracy_max);
    add_number(text, "after_merge", c->final_merge ? e->evaluation.consensus_accuracy : NAN);
    ct_text_add(text, "}");
}

static double mean_of(const ct_summary *s, int k) {
    double sum = 0;
    for (int i = 0; i < s->n_seeds; i++) sum += *field(&s->last[i], k);
    return sum / s->n_seeds;
}

/* "seeds": [...], and "<name>_std" (sample deviation) of what differs from seed to seed. */
static void add_deviations(ct_text *text, const ct_summary *s) {
    for (int i = 0; i < s->n_seeds; i++)
        ct_text_add(text, "%s%" PRIu64, i == 0 ? ", \"seeds\": [" : ", ", s->seeds[i]);
    ct_text_add(text, "]");
    for (int k = 0; k < N_FIELDS; k++) {
        double mean = mean_of(s, k), squares = 0;
        char name[64];
        if (fields[k].part == RATE || !is_told(s->last, k)) continue;
        for (int i = 0; i < s->n_seeds; i++) {
            double d = *field(&s->last[i], k) - mean;
            squares += d * d;
        }
        snprintf(name, sizeof name, "%s_std", fields[k].name);
        add_number(text, name, sqrt(squares / (s->n_seeds - 1)));
    }
}

ct_status ct_record_write_summary(const ct_summary *s) {
    CT_SCOPED(ct_text) text = {0};
    ct_epoch last = s->last[0];
    for (int k = 0; k < N_FIELDS && s->n_seeds > 1; k++)
        if (fields[k].part != RATE) *field(&last, k) = mean_of(s, k);
    add_epoch(&text, &last);
    add_conventions(&text, s->config, &last);
    ct_text_add(&text, ", \"parameters\": %zu, \"features\": %zu", s->n_parameters, s->n_features);
    add_costs(&text, s, &last);
    add_setting(&text, s);
    if (s->n_seeds > 1) add_deviations(&text, s);
    add_options(&text, s->config);
    return ct_record_write(s->config->out, CT_FILE_SUMMARY, &text);
}

/* ---- the rest ---- */

void ct_record_add_edge(ct_text *lines, int from, int to, uint64_t parameter_bytes,
                        uint64_t class_sum_bytes) {
    ct_text_add(lines, "%d,%d,%" PRIu64 ",%" PRIu64 "\n", from, to, parameter_bytes,
                class_sum_bytes);
}

ct_status ct_record_write_ledger(const char *dir, const ct_text *lines) {
    CT_SCOPED(ct_text) text = {.failed = lines->failed};
    ct_text_add(&text, "from,to,parameter_bytes,class_sum_bytes\n%s",
                lines->chars != NULL ? lines->chars : "");
    return ct_record_write(dir, CT_FILE_LEDGER, &text);
}

ct_status ct_record_fail(const char *dir, const ct_record_end *end, const ct_config *config) {
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "{\"message\": ");
    ct_json_add_string(&text, end->reason);
    ct_text_add(&text, ", \"iteration\": %ld, \"agent\": ", end->iteration);
    ct_json_add_number(&text, end->agent >= 0 ? end->agent : NAN);
    add_options(&text, config);
    return ct_record_write(
        dir, end->state == CT_RECORD_DIVERGED ? CT_FILE_DIVERGED : CT_FILE_FAILED, &text);
}
