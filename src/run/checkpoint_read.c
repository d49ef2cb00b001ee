/* Finding the newest good checkpoint, and going on from it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/file.h"
#include "run/checkpoint_internal.h"
#include "util/file.h"
#include "util/json.h"
#include "util/log.h"
#include "util/memory.h"

struct ct_checkpoint {
    ct_json *manifest;
    ct_path folder;
    long iteration;
};

void ct_checkpoint_free(ct_checkpoint **checkpoint) {
    ct_checkpoint *c = *checkpoint;
    if (c == NULL) return;
    ct_json_free(&c->manifest);
    ct_free(c);
    *checkpoint = NULL;
}

long ct_checkpoint_iteration(const ct_checkpoint *c) {
    return c->iteration;
}

/* ---- the manifest's fields: what its checksum vouches for is still looked at twice ---- */

static double number(const ct_json *object, const char *key) {
    const ct_json *member = object != NULL ? ct_json_get(object, key) : NULL;
    return member != NULL && member->kind == CT_JSON_NUMBER ? member->number : -1;
}

static const ct_json *array(const ct_json *object, const char *key, size_t n) {
    const ct_json *member = object != NULL ? ct_json_get(object, key) : NULL;
    bool ok = member != NULL && member->kind == CT_JSON_ARRAY && member->n_children == n;
    return ok ? member : NULL;
}

static uint64_t hex(const ct_json *object, const char *key) {
    const ct_json *member = ct_json_get(object, key);
    bool ok = member != NULL && member->kind == CT_JSON_STRING && strlen(member->string) == 16;
    return ok ? strtoull(member->string, NULL, 16) : 0;
}

static bool take_numbers(const ct_json *list, double *out) {
    if (list == NULL) return false;
    for (const ct_json *item = list->child; item != NULL; item = item->next)
        *out++ = item->kind == CT_JSON_NUMBER ? item->number : 0;
    return true;
}

static ct_status bad(const ct_checkpoint *c, const char *what) {
    return ct_fail(CT_IO, "%s/" CT_MANIFEST ": no valid '%s'", c->folder.text, what);
}

/* ---- finding ---- */

static ct_status parse_manifest(ct_checkpoint *c, const char *path, const ct_blob *blob) {
    const size_t n_magic = sizeof CT_MANIFEST_MAGIC - 1, n_head = n_magic + 17;
    char expected[18];
    if (blob->n < n_head || memcmp(blob->bytes, CT_MANIFEST_MAGIC, n_magic) != 0)
        return ct_fail(CT_IO, "%s: not the manifest of a checkpoint", path);
    const char *body = (const char *)blob->bytes + n_head;
    size_t n = blob->n - n_head;
    snprintf(expected, sizeof expected, "%016" PRIx64 "\n", ct_checksum(CT_HASH_START, body, n));
    if (memcmp(blob->bytes + n_magic, expected, 17) != 0)
        return ct_fail(CT_IO, "%s: damaged: the checksum does not fit", path);
    CT_TRY(ct_json_parse_most(body, n, path, CT_MAX_MANIFEST_VALUES, &c->manifest));
    if (number(c->manifest, "iteration") == (double)c->iteration) return CT_OK;
    return ct_fail(CT_IO, "%s: of iteration %.0f, in the folder of %ld", path,
                   number(c->manifest, "iteration"), c->iteration);
}

static ct_status read_manifest(ct_checkpoint *c) {
    ct_blob blob = {0};
    ct_path path = ct_path_in(c->folder.text, CT_MANIFEST);
    CT_TRY(ct_file_read(path.text, CT_MAX_RECORD_BYTES, &blob));
    ct_status status = parse_manifest(c, path.text, &blob);
    ct_blob_free(&blob);
    return status;
}

static ct_status check_files(const ct_checkpoint *c) {
    double rows = number(c->manifest, "rows");
    const ct_json *files = rows > 0 ? array(c->manifest, "files", (size_t)rows) : NULL;
    if (files == NULL) return bad(c, "files");
    int row = 0;
    for (const ct_json *f = files->child; f != NULL; f = f->next, row++) {
        ct_agent_file expected = {(uint64_t)number(f, "bytes"), hex(f, "checksum")};
        CT_TRY(ct_agent_file_check(c->folder.text, row, c->iteration, &expected));
    }
    return CT_OK;
}

static ct_status open_one(const char *dir, long iteration, ct_checkpoint **out) {
    CT_SCOPED_HANDLE(ct_checkpoint) c = NULL;
    CT_TRY(ct_make(&c, 1, "a checkpoint"));
    c->iteration = iteration;
    c->folder = ct_checkpoint_folder(dir, iteration);
    CT_TRY(read_manifest(c));
    CT_TRY(check_files(c));
    *out = ct_take(&c);
    return CT_OK;
}

static ct_status fail_for_none(const char *dir) {
    if (!ct_dir_exists(dir)) return ct_fail(CT_IO, "%s: no such directory", dir);
    if (ct_record_has(dir, CT_FILE_SUMMARY))
        return ct_fail(CT_IO,
                       "%s: this run is finished and kept no checkpoint to go on from; "
                       "@checkpoint-every end would have",
                       dir);
    return ct_fail(CT_IO, "%s: no checkpoint to resume from", dir);
}

ct_status ct_checkpoint_open(const char *dir, ct_checkpoint **out) {
    long *found = NULL;
    int n = 0, at = 0;
    CT_TRY(ct_checkpoint_list(dir, &found, &n));
    ct_status status = CT_IO;
    for (; at < n && status != CT_OK; at++) {
        ct_error error;
        status = CT_CATCH(&error, open_one(dir, found[at], out));
        if (status == CT_OK) break;
        if (at + 1 == n || status == CT_NOMEM) {
            ct_fail_again(&error);
            break;
        }
        ct_note("the checkpoint of iteration %ld is not whole (%s): looking at the one before",
                found[at], error.text);
    }
    ct_free(found);
    return n > 0 ? status : fail_for_none(dir);
}

/* ---- options ---- */

ct_status ct_checkpoint_options(const ct_checkpoint *c, ct_config *config) {
    const ct_json *options = ct_json_get(c->manifest, "options");
    if (options == NULL || options->kind != CT_JSON_OBJECT) return bad(c, "options");
    for (const ct_json *o = options->child; o != NULL; o = o->next) {
        if (strcmp(o->key, "out") == 0 || ct_config_is_given(config, o->key)) continue;
        CT_SCOPED(ct_text) text = {0};
        ct_option_text(o, &text);
        CT_TRY(ct_text_status(&text));
        CT_TRY(ct_config_put(config, o->key, text.n > 0 ? text.chars : ""));
    }
    const ct_json *identity = ct_json_get(c->manifest, "identity");
    const ct_json *isa = identity != NULL ? ct_json_get(identity, "instructions") : NULL;
    if (isa != NULL && isa->kind == CT_JSON_STRING)
        snprintf(config->instructions, sizeof config->instructions, "%s", isa->string);
    return CT_OK;
}

/* The run's options against those of the checkpoint, both with everything filled in. */
static ct_status check_options(const ct_checkpoint *c, const ct_run *run) {
    CT_SCOPED(ct_text) now = {0}, then = {0};
    char name[64];
    CT_TRY(ct_config_find_difference(&run->config, ct_json_get(c->manifest, "options"),
                                     ct_difference_may_resume, name, sizeof name, &now, &then));
    if (name[0] == '\0') return CT_OK;
    return ct_fail(CT_DIFFERS, "@%s %s contradicts the checkpoint of iteration %ld, which has %s",
                   name, now.n > 0 ? now.chars : "''", c->iteration,
                   then.n > 0 ? then.chars : "none");
}

/* What lies behind the names of files, against what the checkpoint was made of. */
static ct_status check_identity(const ct_checkpoint *c, const ct_run *run) {
    const ct_json *file = ct_json_get(c->manifest, "files")->child;
    CT_TRY(ct_identity_check(&run->identity, ct_json_get(c->manifest, "identity")));
    for (int row = 0; row < run->agents.n_rows && file != NULL; row++, file = file->next) {
        uint64_t then = hex(file, "data");
        int own_row = row - run->agents.first;
        if (own_row < 0 || own_row >= run->agents.n || then == 0) continue;
        if (run->agent_sums[own_row] == then) continue;
        return ct_fail(CT_DIFFERS,
                       "agent %d has other samples than at the checkpoint of iteration %ld: pixels "
                       "or labels have changed",
                       row % run->agents.n_agents, c->iteration);
    }
    return CT_OK;
}

/* ---- the state ---- */

static ct_status read_world(const ct_checkpoint *c, const ct_run *run, int k, const ct_json *w,
                            ct_tally *tally) {
    if (hex(w, "partition") != run->worlds[k].partition_facts.hash)
        return ct_fail(CT_INVAL,
                       "the data is split otherwise than at the checkpoint of iteration %ld: it is "
                       "other data, or another @partition-file",
                       c->iteration);
    if (!take_numbers(array(w, "sums", CT_LOSS_FIELDS), tally->sums)) return bad(c, "sums");
    if (!take_numbers(array(w, "last", CT_LOSS_FIELDS), tally->last)) return bad(c, "last");
    tally->samples = number(w, "samples");
    ct_ledger_link_seconds(run->transport)[k] = number(w, "link_seconds");
    return CT_OK;
}

static const ct_json *world_at(const ct_checkpoint *c, int k) {
    const ct_json *worlds = ct_json_get(c->manifest, "worlds");
    const ct_json *w = worlds != NULL ? worlds->child : NULL;
    while (w != NULL && k-- > 0) w = w->next;
    return w;
}

size_t ct_checkpoint_metrics_bytes(const ct_checkpoint *c, int world) {
    double n = number(world_at(c, world), "metrics_bytes");
    return n > 0 ? (size_t)n : 0;
}

static ct_status read_ledger(const ct_checkpoint *c, ct_run *run) {
    size_t n = (size_t)ct_ledger_n_edges(run->transport);
    const ct_json *list = array(c->manifest, "ledger", CT_N_TRAFFIC * n);
    ct_ledger_edge *edges = ct_ledger_edges(run->transport);
    if (list == NULL) return bad(c, "ledger");
    size_t at = 0;
    for (const ct_json *item = list->child; item != NULL; item = item->next, at++)
        edges[at / CT_N_TRAFFIC].bytes[at % CT_N_TRAFFIC] = (uint64_t)item->number;
    uint64_t *others = ct_ledger_others(run->transport);
    list = array(c->manifest, "others", CT_N_TRAFFIC * (size_t)run->agents.n_rows);
    if (list == NULL) return bad(c, "others");
    for (const ct_json *item = list->child; item != NULL; item = item->next)
        *others++ = (uint64_t)item->number;
    return CT_OK;
}

/* Halo rows that were up to date are brought back without counting them again. */
static ct_status read_fresh(const ct_checkpoint *c, ct_run *run) {
    ct_agents *a = &run->agents;
    const ct_json *list = array(c->manifest, "fresh", (size_t)a->n_buffers + 1);
    if (list == NULL) return bad(c, "fresh");
    int b = -1;
    for (const ct_json *item = list->child; item != NULL; item = item->next, b++) {
        ct_bank *bank = b < 0 ? &a->x : &a->buffers[b].bank;
        ct_routes *routes =
            b >= 0 && a->buffers[b].routes != NULL ? a->buffers[b].routes : &a->links.models;
        if (item->number != 0) CT_TRY(ct_transport_refresh(run->transport, routes, bank));
    }
    return CT_OK;
}

static ct_status read_algorithm(const ct_checkpoint *c, ct_run *run) {
    size_t n = 0;
    double *state = NULL;
    if (run->algo->host_state != NULL) state = run->algo->host_state(run->agents.state, &n);
    return take_numbers(array(c->manifest, "algorithm", n), state) ? CT_OK : bad(c, "algorithm");
}

static ct_status read_samples(const ct_checkpoint *c, ct_agents *a) {
    double values[4], share = (double)a->n / a->n_rows;
    if (!take_numbers(array(c->manifest, "samples", 4), values)) return bad(c, "samples");
    a->samples.own = values[0] * share;
    a->samples.features = values[1] * share;
    a->samples.gradients = values[2] * share;
    a->samples.n_steps = (long)values[3];
    return CT_OK;
}

ct_status ct_checkpoint_read(const ct_checkpoint *c, ct_run *run, ct_position *p) {
    CT_TRY(check_options(c, run));
    if (number(c->manifest, "rows") != run->agents.n_rows) return bad(c, "rows");
    if (array(c->manifest, "worlds", (size_t)run->n_worlds) == NULL) return bad(c, "worlds");
    for (int k = 0; k < run->n_worlds; k++)
        CT_TRY(read_world(c, run, k, world_at(c, k), &p->tallies[k]));
    CT_TRY(check_identity(c, run));
    for (int i = 0; i < run->agents.n; i++)
        CT_TRY(ct_agent_file_read(run, i, c->folder.text, c->iteration));
    CT_TRY(read_samples(c, &run->agents));
    CT_TRY(read_ledger(c, run));
    CT_TRY(read_fresh(c, run));
    CT_TRY(read_algorithm(c, run));
    p->iteration = c->iteration;
    p->seconds = number(c->manifest, "seconds");
    /* in another folder it is still to be written */
    bool is_there = ct_dir_is_same(run->config.resume, run->config.out);
    run->resumed_at = is_there ? c->iteration : -1;
    if (c->iteration > 0) {
        run->agents.iteration = c->iteration - 1;
        run->agents.lr = ct_lr_at(&run->lr, c->iteration - 1, run->epoch_iterations);
    }
    return CT_OK;
}
