/* Writing a checkpoint, and keeping the last two. */
#include "run/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/checkpoint_internal.h"
#include "util/file.h"
#include "util/json.h"
#include "util/memory.h"

#define N_KEPT 2

/* ---- folders ---- */

char *ct_checkpoint_folder(const char *dir, long iteration) {
    ct_text path = {0};
    ct_text_add(&path, "%s/checkpoint", dir);
    if (iteration >= 0) ct_text_add(&path, "/%ld", iteration);
    if (!path.failed) return path.chars;
    ct_text_free(&path);
    ct_fail(CT_NOMEM, "no memory for a path");
    return NULL;
}

bool ct_checkpoint_exists(const char *dir) {
    char *path = ct_checkpoint_folder(dir, -1);
    bool exists = path != NULL && ct_dir_exists(path);
    ct_free(path);
    return exists;
}

static void sync_path(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

static int newest_first(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x < y) - (x > y);
}

ct_status ct_checkpoint_list(const char *dir, long **out, int *n_out) {
    char *path = ct_checkpoint_folder(dir, -1);
    if (path == NULL) return CT_NOMEM;
    DIR *d = opendir(path);
    int n = 0, room = 0;
    long *found = NULL;
    ct_status status = CT_OK;
    for (struct dirent *e; d != NULL && status == CT_OK && (e = readdir(d)) != NULL;) {
        int64_t iteration;
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || !ct_parse_i64(e->d_name, &iteration))
            continue;
        if (n == room) {
            long *more = ct_grow(found, (size_t)room, (size_t)room + 16, sizeof *found);
            if (more == NULL) status = ct_fail(CT_NOMEM, "no memory to list %s", path);
            if (more == NULL) break;
            found = more;
            room += 16;
        }
        found[n++] = (long)iteration;
    }
    if (d != NULL) closedir(d);
    ct_free(path);
    if (n > 0) qsort(found, (size_t)n, sizeof *found, newest_first);
    *out = found;
    *n_out = n;
    return status;
}

static void remove_file(const char *folder, const char *name) {
    char *path = ct_path_join(folder, name);
    if (path != NULL) remove(path);
    ct_free(path);
}

/* Removes what checkpoints write, the manifest first, and nothing else. */
static void remove_one(const char *dir, long iteration) {
    char *folder = ct_checkpoint_folder(dir, iteration);
    if (folder == NULL) return;
    remove_file(folder, "manifest.json");
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "agent-", 6) == 0 ||
            strncmp(e->d_name, "manifest.json.part-", 19) == 0)
            remove_file(folder, e->d_name);
    if (d != NULL) closedir(d);
    rmdir(folder);
    ct_free(folder);
}

ct_status ct_checkpoint_remove_all(const char *dir) {
    long *found = NULL;
    int n = 0;
    ct_status status = ct_checkpoint_list(dir, &found, &n);
    for (int k = 0; k < n && status == CT_OK; k++) remove_one(dir, found[k]);
    ct_free(found);
    char *path = ct_checkpoint_folder(dir, -1);
    if (path != NULL) rmdir(path);
    ct_free(path);
    return status;
}

static bool has_manifest(const char *dir, long iteration) {
    char *folder = ct_checkpoint_folder(dir, iteration);
    char *path = folder != NULL ? ct_path_join(folder, "manifest.json") : NULL;
    bool has = path != NULL && ct_file_exists(path);
    ct_free(path);
    ct_free(folder);
    return has;
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
        bool keep = is_ours && n_kept < N_KEPT && has_manifest(dir, found[k]);
        if (keep)
            n_kept++;
        else
            remove_one(dir, found[k]);
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

static uint64_t size_of_metrics(const ct_run *run, int world) {
    struct stat info;
    char *path = ct_path_join(run->worlds[world].dir, "metrics.jsonl");
    if (path != NULL) sync_path(path);
    uint64_t size = path != NULL && stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
    ct_free(path);
    return size;
}

static void add_worlds(ct_text *text, const ct_run *run, const ct_position *p) {
    ct_text_add(text, ",\n\"worlds\": [");
    for (int k = 0; k < run->n_worlds; k++) {
        const ct_tally *t = &p->tallies[k];
        ct_text_add(text, "%s\n{\"seed\": %" PRIu64 ", \"partition\": \"%016" PRIx64 "\"",
                    k == 0 ? "" : ",", run->seeds[k], run->worlds[k].partition_facts.hash);
        ct_text_add(text, ", \"metrics_bytes\": %" PRIu64 ", \"sums\": ", size_of_metrics(run, k));
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

static ct_status write_manifest(ct_run *run, const ct_position *p, const ct_agent_file *files,
                                const char *folder) {
    ct_text body = {0}, text = {0};
    ct_text_add(&body, "{\"iteration\": %ld, \"rows\": %d, \"seconds\": ", p->iteration,
                run->agents.n_rows);
    ct_json_add_number(&body, p->seconds);
    add_worlds(&body, run, p);
    add_samples(&body, run);
    add_state(&body, run);
    ct_text_add(&body, ",\n\"files\": [");
    for (int i = 0; i < run->agents.n_rows; i++)
        ct_text_add(&body, "%s\n{\"bytes\": %" PRIu64 ", \"checksum\": \"%016" PRIx64 "\"}",
                    i == 0 ? "" : ",", files[i].bytes, files[i].checksum);
    ct_text_add(&body, "],\n\"options\": {");
    ct_config_print_json(&run->config, &body);
    ct_text_add(&body, "\n}}\n");
    ct_status status = ct_text_status(&body);
    if (status == CT_OK) {
        ct_text_add(&text, CT_MANIFEST_MAGIC "%016" PRIx64 "\n%s",
                    ct_checksum(CT_HASH_START, body.chars, body.n), body.chars);
        status = ct_text_status(&text);
    }
    char *path = ct_path_join(folder, "manifest.json");
    if (path == NULL && status == CT_OK) status = ct_fail(CT_NOMEM, "no memory for a path");
    if (status == CT_OK) status = ct_file_write(path, text.chars, text.n);
    ct_free(path);
    ct_text_free(&text);
    ct_text_free(&body);
    return status;
}

/* ---- all of it ---- */

/* A folder of that name may be there, left by a run that was killed while writing or found damaged
 * when this one was resumed: without its manifest it counts for nothing. */
static ct_status make_folder(const char *dir, const char *folder) {
    CT_TRY(ct_dir_create(folder));
    remove_file(folder, "manifest.json");
    sync_path(folder);
    char *parent = ct_checkpoint_folder(dir, -1);
    if (parent == NULL) return CT_NOMEM;
    sync_path(parent);
    ct_free(parent);
    return CT_OK;
}

/* Nobody goes on alone: a failure anywhere is everybody's. */
static ct_status agree(ct_run *run, ct_status mine) {
    int worst = 0;
    CT_TRY(ct_transport_vote(run->transport, mine != CT_OK, &worst));
    if (mine == CT_OK && worst != 0)
        return ct_fail(CT_IO, "another rank could not write its part of the checkpoint");
    return mine;
}

static ct_status write_all(ct_run *run, const ct_position *p, const char *folder,
                           ct_agent_file *own, ct_agent_file *files) {
    const char *dir = run->config.out;
    ct_status status = ct_run_leads(run) ? make_folder(dir, folder) : CT_OK;
    CT_TRY(agree(run, status));
    for (int i = 0; i < run->agents.n && status == CT_OK; i++)
        status = ct_agent_file_write(run, i, folder, p->iteration, &own[i]);
    CT_TRY(agree(run, status));
    CT_TRY(ct_transport_gather(run->transport, own, sizeof *own, files));
    if (ct_run_leads(run)) status = write_manifest(run, p, files, folder);
    CT_TRY(agree(run, status));
    if (ct_run_leads(run)) remove_old(dir, p->iteration, run->resumed_at);
    run->resumed_at = -1; /* from here on the newest is our own */
    return CT_OK;
}

ct_status ct_checkpoint_write(ct_run *run, const ct_position *p) {
    size_t n = (size_t)run->agents.n_rows;
    ct_agent_file *own = ct_new(ct_agent_file, n), *files = ct_new(ct_agent_file, n);
    char *folder = ct_checkpoint_folder(run->config.out, p->iteration);
    ct_status status = own != NULL && files != NULL && folder != NULL
                           ? CT_OK
                           : ct_fail(CT_NOMEM, "no memory to write a checkpoint");
    if (status == CT_OK && p->iteration != run->resumed_at) {
        status = write_all(run, p, folder, own, files);
        /* all ranks have given up: the next one needs the room */
        if (status != CT_OK && ct_run_leads(run)) remove_one(run->config.out, p->iteration);
    }
    ct_free(own);
    ct_free(files);
    ct_free(folder);
    return status;
}
