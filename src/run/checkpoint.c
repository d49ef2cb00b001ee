/* Writing a checkpoint, and keeping the last two. */
#include "run/checkpoint.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/write.h"
#include "run/checkpoint_internal.h"
#include "run/output.h"
#include "run/together.h"
#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"

#define N_KEPT 2

static void sync_path(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

/* Everything but the newest ones up to this, of which there is a manifest. What came after the one
 * that the run was resumed from (-1: none) is damaged, or of a future that is no more. */
static void remove_old(const char *dir, long newest, long resumed_at) {
    long *found = NULL;
    int n = 0, n_kept = 0;
    (void)CT_CATCH(NULL, ct_checkpoint_list(dir, &found, &n));
    for (int k = 0; k < n; k++) {
        bool is_ours =
            found[k] == newest || (found[k] < newest && (resumed_at < 0 || found[k] <= resumed_at));
        bool keep = is_ours && n_kept < N_KEPT && ct_checkpoint_is_whole(dir, found[k]);
        if (keep)
            n_kept++;
        else
            ct_checkpoint_remove(dir, found[k]);
    }
    ct_free(found);
}

/* ---- the manifest ---- */

static void add_numbers(ct_text *text, const double *values, size_t n) {
    ct_text_add(text, "[");
    for (size_t k = 0; k < n; k++) {
        if (k > 0) ct_text_add(text, ",");
        ct_json_add_number(text, values[k]);
    }
    ct_text_add(text, "]");
}

static void add_worlds(ct_text *text, const ct_run *run, const ct_position *p) {
    ct_text_add(text, ",\n\"worlds\": [");
    for (int k = 0; k < run->n_worlds; k++) {
        const ct_tally *t = &p->tallies[k];
        ct_text_add(text, "%s\n{\"seed\": %" PRIu64 ", \"partition\": \"%016" PRIx64 "\"",
                    k == 0 ? "" : ",", run->seeds[k], run->worlds[k].partition_facts.hash);
        ct_text_add(text, ", \"metrics_bytes\": %zu, \"sums\": ",
                    ct_record_sync_metrics(run->worlds[k].dir));
        add_numbers(text, t->sums, CT_LOSS_FIELDS);
        ct_text_add(text, ", \"samples\": ");
        ct_json_add_number(text, t->samples);
        ct_text_add(text, ", \"last\": ");
        add_numbers(text, t->last, CT_LOSS_FIELDS);
        ct_text_add(text, ", \"link_seconds\": ");
        ct_json_add_number(text, ct_ledger_link_seconds(run->transport)[k]);
        ct_text_add(text, "}");
    }
    ct_text_add(text, "]");
}

/* What all processes computed, as a rank's share of the rows: each gets its own back. */
static void add_samples(ct_text *text, const ct_run *run) {
    const ct_agents *a = &run->agents;
    double share = (double)a->n / a->n_rows;
    double values[] = {a->samples.own / share, a->samples.features / share,
                       a->samples.gradients / share, (double)a->samples.n_steps};
    ct_text_add(text, ",\n\"samples\": ");
    add_numbers(text, values, 4);
}

static void add_state(ct_text *text, ct_run *run) {
    const ct_ledger_edge *edges = ct_ledger_edges(run->transport);
    ct_text_add(text, ",\n\"fresh\": [%d", run->agents.x.fresh);
    for (int b = 0; b < run->agents.n_buffers; b++)
        ct_text_add(text, ",%d", run->agents.buffers[b].bank.fresh);
    ct_text_add(text, "],\n\"ledger\": [");
    for (int e = 0; e < ct_ledger_n_edges(run->transport); e++)
        ct_text_add(text, "%s%" PRIu64 ",%" PRIu64, e == 0 ? "" : ",",
                    edges[e].bytes[CT_TRAFFIC_PARAMETERS], edges[e].bytes[CT_TRAFFIC_CLASS_SUMS]);
    ct_text_add(text, "],\n\"others\": [");
    for (int k = 0; k < run->agents.n_rows * CT_N_TRAFFIC; k++)
        ct_text_add(text, "%s%" PRIu64, k == 0 ? "" : ",", ct_ledger_others(run->transport)[k]);
    ct_text_add(text, "],\n\"algorithm\": ");
    size_t n = 0;
    double *state = NULL;
    if (run->algo->host_state != NULL) state = run->algo->host_state(run->agents.state, &n);
    add_numbers(text, state, n);
}

static void add_files(ct_text *text, const ct_run *run, const ct_agent_file *files) {
    int here = ct_transport_rank(run->transport);
    ct_text_add(text, ",\n\"files\": [");
    for (int i = 0; i < run->agents.n_rows; i++)
        if (ct_run_home(run, i) == here)
            ct_text_add(text,
                        "%s\n{\"bytes\": %" PRIu64 ", \"checksum\": \"%016" PRIx64
                        "\", \"data\": \"%016" PRIx64 "\"}",
                        i == 0 ? "" : ",", files[i].bytes, files[i].checksum, files[i].data);
        else
            ct_text_add(text, "%s\n{\"elsewhere\": true}", i == 0 ? "" : ",");
    ct_text_add(text, "]");
}

static ct_status write_manifest(ct_run *run, const ct_position *p, const ct_agent_file *files,
                                const char *folder) {
    CT_SCOPED(ct_text) body = {0}, text = {0};
    ct_text_add(&body, "{\"iteration\": %ld, \"rows\": %d, \"seconds\": ", p->iteration,
                run->agents.n_rows);
    ct_json_add_number(&body, p->seconds);
    add_worlds(&body, run, p);
    add_samples(&body, run);
    add_state(&body, run);
    add_files(&body, run, files);
    ct_text_add(&body, ",\n\"identity\": {");
    ct_identity_print(&run->identity, &body);
    ct_text_add(&body, "},\n\"options\": {");
    ct_config_print_json(&run->config, &body);
    ct_text_add(&body, "\n}}\n");
    CT_TRY(ct_text_status(&body));
    ct_text_add(&text, CT_MANIFEST_MAGIC "%016" PRIx64 "\n%s",
                ct_checksum(CT_HASH_START, body.chars, body.n), body.chars);
    CT_TRY(ct_text_status(&text));
    return ct_file_write(ct_path_in(folder, CT_MANIFEST).text, text.chars, text.n);
}

/* ---- all of it ---- */

/* A folder of that name may be there, left by a run that was killed while writing or found damaged
 * when this one was resumed: without its manifest it counts for nothing. */
static ct_status make_folder(const char *dir, const char *folder) {
    CT_TRY(ct_dir_create(folder));
    remove(ct_path_in(folder, CT_MANIFEST).text);
    sync_path(folder);
    sync_path(ct_checkpoint_folder(dir, -1).text);
    return CT_OK;
}

static ct_status write_agents(ct_run *run, const ct_position *p, const char *folder,
                              ct_agent_file *own) {
    for (int i = 0; i < run->agents.n; i++) {
        CT_TRY(ct_agent_file_write(run, i, folder, p->iteration, &own[i]));
        own[i].data = run->agent_sums[i];
    }
    return run->agents.n > CT_SETTLED_AT_ONCE ? ct_dir_settle(folder) : CT_OK;
}

/* Some manifest is about files that another rank has written. */
static bool are_told(const ct_run *run) {
    for (int r = 0; r < ct_transport_n_ranks(run->transport); r++)
        if (ct_run_home(run, ct_transport_rows(run->transport, r).first) != r) return true;
    return false;
}

/* What the manifest of this rank's folder needs to know. */
static ct_status tell_files(ct_run *run, const ct_agent_file *own, ct_agent_file *files) {
    if (are_told(run)) return ct_transport_gather(run->transport, own, sizeof *own, files);
    memcpy(files + run->agents.first, own, (size_t)run->agents.n * sizeof *own);
    return CT_OK;
}

static ct_status write_rest(ct_run *run, const ct_position *p, const char *folder,
                            const ct_agent_file *files) {
    CT_TRY(ct_output_settle(run)); /* the manifest counts on metrics.jsonl */
    return ct_run_keeps(run) ? write_manifest(run, p, files, folder) : CT_OK;
}

static ct_status write_all(ct_run *run, const ct_position *p, const char *folder,
                           ct_agent_file *own, ct_agent_file *files) {
    const char *dir = run->config.out;
    ct_error error;
    (void)CT_CATCH(&error, ct_run_keeps(run) ? make_folder(dir, folder) : CT_OK);
    CT_TRY(ct_together(run->transport, &error));
    (void)CT_CATCH(&error, write_agents(run, p, folder, own));
    CT_TRY(ct_together(run->transport, &error));
    CT_TRY(tell_files(run, own, files));
    (void)CT_CATCH(&error, write_rest(run, p, folder, files));
    CT_TRY(ct_together(run->transport, &error));
    if (ct_run_keeps(run)) remove_old(dir, p->iteration, run->resumed_at);
    run->resumed_at = -1; /* from here on the newest is our own */
    return CT_OK;
}

ct_status ct_checkpoint_write(ct_run *run, const ct_position *p) {
    size_t n = (size_t)run->agents.n_rows;
    CT_SCOPED_BLOCK(ct_agent_file) own = NULL;
    CT_SCOPED_BLOCK(ct_agent_file) files = NULL;
    ct_path folder = ct_checkpoint_folder(run->config.out, p->iteration);
    if (p->iteration == run->resumed_at) return CT_OK;
    CT_TRY(ct_make(&own, n, "a checkpoint"));
    CT_TRY(ct_make(&files, n, "a checkpoint"));
    ct_status status = write_all(run, p, folder.text, own, files);
    /* all ranks have given up: the next one needs the room */
    if (status != CT_OK && ct_run_keeps(run)) ct_checkpoint_remove(run->config.out, p->iteration);
    return status;
}
