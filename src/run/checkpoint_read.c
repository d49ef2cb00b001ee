/* Finding the newest good checkpoint, and going on from it. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/file.h"
#include "record/metric.h"
#include "run/checkpoint_internal.h"
#include "run/together.h"
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

/* Whose files are looked at: those of one of so many ranks; 0: as many as agents, for it is a site. */
typedef struct part {
    int rank, n_ranks;
} part;

static ct_status fail_for_missing(const char *dir, long iteration, int row, int rank) {
    ct_path path = ct_agent_file_path(ct_checkpoint_folder(dir, iteration).text, row);
    return ct_fail(CT_IO,
                   "%s is not there, and rank %d needs it for its agent; start the ranks that the "
                   "run had before, or copy the file to this place",
                   path.text, rank);
}

/* A file that was elsewhere when the manifest was written may have been copied since. */
static ct_status check_file(const ct_checkpoint *c, const char *dir, int row, const ct_json *file,
                            int rank) {
    double bytes = number(file, "bytes");
    bool is_listed = bytes >= 0;
    ct_agent_file expected = {is_listed ? (uint64_t)bytes : 0, hex(file, "checksum")};
    if (!is_listed && !ct_file_exists(ct_agent_file_path(c->folder.text, row).text))
        return fail_for_missing(dir, c->iteration, row, rank);
    return ct_agent_file_check(c->folder.text, row, c->iteration, is_listed ? &expected : NULL);
}

static ct_status check_files(const ct_checkpoint *c, const char *dir, part whose) {
    double rows = number(c->manifest, "rows");
    const ct_json *files = rows > 0 ? array(c->manifest, "files", (size_t)rows) : NULL;
    if (files == NULL) return bad(c, "files");
    ct_span own =
        ct_rank_rows((int)rows, whose.n_ranks > 0 ? whose.n_ranks : (int)rows, whose.rank);
    int row = 0;
    for (const ct_json *f = files->child; f != NULL; f = f->next, row++)
        if (row >= own.first && row < own.first + own.n)
            CT_TRY(check_file(c, dir, row, f, whose.rank));
    return CT_OK;
}

static ct_status open_one(const char *dir, long iteration, part whose, ct_checkpoint **out) {
    CT_SCOPED_HANDLE(ct_checkpoint) c = NULL;
    CT_TRY(ct_make(&c, 1, "a checkpoint"));
    c->iteration = iteration;
    c->folder = ct_checkpoint_folder(dir, iteration);
    CT_TRY(read_manifest(c));
    CT_TRY(check_files(c, dir, whose));
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

/* Those up to an iteration that have a manifest. */
static int count_whole(const char *dir, long most) {
    CT_SCOPED_BLOCK(long) found = NULL;
    int n = 0, n_whole = 0;
    (void)CT_CATCH(NULL, ct_checkpoint_list(dir, &found, &n));
    for (int k = 0; k < n; k++)
        n_whole += found[k] <= most && ct_checkpoint_is_whole(dir, found[k]);
    return n_whole;
}

/* The newest good one of those up to iteration `most`; *out stays NULL if none is whole. */
static ct_status open_newest(const char *dir, part whose, long most, ct_checkpoint **out) {
    CT_SCOPED_BLOCK(long) found = NULL;
    int n = 0;
    if (count_whole(dir, most) == 0) return CT_OK;
    CT_TRY(ct_checkpoint_list(dir, &found, &n));
    for (int at = 0; at < n; at++) {
        ct_error error;
        if (found[at] > most) continue;
        ct_status status = CT_CATCH(&error, open_one(dir, found[at], whose, out));
        if (status == CT_OK) return CT_OK;
        if (at + 1 == n || status == CT_NOMEM) return ct_fail_again(&error);
        ct_note("the checkpoint of iteration %ld is not whole (%s): looking at the one before",
                found[at], error.text);
    }
    return CT_OK;
}

ct_status ct_checkpoint_open(const char *dir, ct_checkpoint **out) {
    *out = NULL;
    CT_TRY(open_newest(dir, (part){0, 1}, LONG_MAX, out));
    return *out != NULL ? CT_OK : fail_for_none(dir);
}

ct_status ct_checkpoint_open_site(const char *dir, int agent, ct_checkpoint **out) {
    *out = NULL;
    return open_newest(dir, (part){agent, 0}, LONG_MAX, out);
}

/* ---- finding, by all ranks ---- */

/* The newest one here of those up to iteration `most`, and what the ranks then have: the oldest of
 * their newest ones (-1: some have none) and the newest. */
static ct_status look(const char *dir, ct_transport *ranks, int most, ct_checkpoint **out,
                      int *oldest, int *newest) {
    ct_error error = {CT_OK, "", ""};
    part own = {ct_transport_rank(ranks), ct_transport_n_ranks(ranks)};
    if (*out == NULL || (*out)->iteration > most) {
        ct_checkpoint_free(out);
        (void)CT_CATCH(&error, open_newest(dir, own, most, out));
    }
    CT_TRY(ct_together(ranks, &error));
    int mine = *out != NULL ? (int)(*out)->iteration : -1;
    CT_TRY(ct_together_least(ranks, mine, oldest));
    return ct_transport_vote(ranks, mine, newest);
}

/* What some ranks have and others do not was the first, cut short by a crash; unless a rank must
 * have had that of iteration `wanted`. */
static ct_status check_lost(const char *dir, bool has_begun, const ct_checkpoint *mine, int wanted,
                            ct_transport *ranks) {
    int rank = ct_transport_rank(ranks), n_whole = count_whole(dir, LONG_MAX), most_whole = 0;
    int n_rows = mine != NULL ? (int)number(mine->manifest, "rows") : 0;
    ct_error error = {CT_OK, "", ""};
    CT_TRY(ct_transport_vote(ranks, n_rows, &n_rows));
    CT_TRY(ct_transport_vote(ranks, n_whole, &most_whole));
    ct_span own = ct_rank_rows(n_rows, ct_transport_n_ranks(ranks), rank);
    if (mine == NULL && (!has_begun || n_whole > 0 || most_whole > 1))
        (void)CT_CATCH(&error, fail_for_missing(dir, wanted, own.first, rank));
    return ct_together(ranks, &error);
}

ct_status ct_checkpoint_open_common(const char *dir, bool has_begun, ct_transport *ranks,
                                    ct_checkpoint **out) {
    CT_SCOPED_HANDLE(ct_checkpoint) mine = NULL;
    int oldest, newest, first;
    CT_TRY(look(dir, ranks, INT_MAX, &mine, &oldest, &newest));
    if (newest < 0) return fail_for_none(dir);
    int wanted = first = newest;
    while (oldest >= 0 && oldest < newest) {
        wanted = oldest;
        CT_TRY(look(dir, ranks, wanted, &mine, &oldest, &newest));
    }
    if (oldest < 0) return check_lost(dir, has_begun, mine, wanted, ranks);
    if (newest < first)
        ct_note("not every rank has the checkpoint of iteration %d whole: all take that of %d",
                first, newest);
    *out = ct_take(&mine);
    return CT_OK;
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

/* A federation may have got more sites since, and other edges. */
static bool may_site_resume(const ct_json *ours, const ct_json *theirs) {
    const ct_option *o = ct_schema_find(ours->key);
    bool is_about_others =
        o != NULL && (strcmp(o->group, "agents") == 0 || o == &ct_run_options[CT_OPT_agent_names]);
    return is_about_others || ct_difference_may_resume(ours, theirs);
}

double ct_checkpoint_epochs(const ct_checkpoint *c) {
    return ct_json_number(ct_json_get(c->manifest, "options"), "epochs");
}

/* A run that may grow can be asked for more epochs than before. */
static bool may_go_on(const ct_json *ours, const ct_json *theirs) {
    bool is_epochs = ct_schema_find(ours->key) == &ct_run_options[CT_OPT_epochs];
    if (is_epochs && theirs != NULL) return ours->number > theirs->number;
    return ct_difference_may_resume(ours, theirs);
}

/* The run's options against those of the checkpoint, both with everything filled in. */
static ct_status check_options(const ct_checkpoint *c, const ct_run *run) {
    CT_SCOPED(ct_text) now = {0}, then = {0};
    char name[64];
    ct_difference_skip *skip = run->config.site != NULL ? may_site_resume
                               : run->config.may_grow   ? may_go_on
                                                        : ct_difference_may_resume;
    CT_TRY(ct_config_find_difference(&run->config, ct_json_get(c->manifest, "options"), skip, name,
                                     sizeof name, &now, &then));
    if (name[0] == '\0') return CT_OK;
    return ct_fail(CT_DIFFERS, "@%s %s contradicts the checkpoint of iteration %ld, which has %s",
                   name, now.n > 0 ? now.chars : "''", c->iteration,
                   then.n > 0 ? then.chars : "none");
}

/* The tail of more epochs begins later: what an average holds of before cannot be taken out. */
static ct_status check_average(const ct_checkpoint *c, const ct_run *run) {
    double n_then = ct_checkpoint_epochs(c) * (double)run->epoch_iterations;
    long start = ct_average_start(&run->average, n_then);
    if (c->iteration <= start || start == run->average.start) return CT_OK;
    return ct_fail(
        CT_DIFFERS,
        "@epochs %lld: with @average tail the run cannot be extended after iteration %ld, "
        "where its tail began",
        (long long)run->config.epochs, start);
}

/* What lies behind the names of files, against what the checkpoint was made of. */
static ct_status check_identity(const ct_checkpoint *c, const ct_run *run) {
    const ct_json *file = ct_json_get(c->manifest, "files")->child;
    if (run->config.site == NULL)
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
    if (run->config.site == NULL && hex(w, "partition") != run->worlds[k].partition_facts.hash)
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

static bool has_edges(const ct_checkpoint *c, const ct_run *run) {
    size_t n = (size_t)ct_ledger_n_edges(run->transport);
    return array(c->manifest, "ledger", CT_N_TRAFFIC * n) != NULL;
}

/* Halo rows that were up to date are brought back without counting them again. */
static ct_status read_fresh(const ct_checkpoint *c, ct_run *run) {
    ct_agents *a = &run->agents;
    const ct_json *list = array(c->manifest, "fresh", (size_t)a->n_buffers + 1);
    if (list == NULL) return bad(c, "fresh");
    if (ct_copies_are_used(&a->copies)) {
        a->x.fresh = list->child->number != 0;
        return ct_copies_restore(a);
    }
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
    CT_TRY(check_average(c, run));
    bool is_site = run->config.site != NULL;
    bool is_same_size = number(c->manifest, "rows") == run->agents.n_rows;
    if (!is_same_size && !is_site) return bad(c, "rows");
    if (array(c->manifest, "worlds", (size_t)run->n_worlds) == NULL) return bad(c, "worlds");
    for (int k = 0; k < run->n_worlds; k++)
        CT_TRY(read_world(c, run, k, world_at(c, k), &p->tallies[k]));
    CT_TRY(check_identity(c, run));
    for (int i = 0; i < run->agents.n; i++)
        CT_TRY(ct_agent_file_read(run, i, c->folder.text, c->iteration));
    CT_TRY(read_samples(c, &run->agents));
    /* of a graph that has changed there is nothing to add to; and what neighbours sent is not there */
    if (!is_site || (is_same_size && has_edges(c, run))) CT_TRY(read_ledger(c, run));
    if (!is_site) CT_TRY(read_fresh(c, run));
    CT_TRY(read_algorithm(c, run));
    p->iteration = run->average.done = c->iteration;
    p->seconds = number(c->manifest, "seconds");
    /* in another folder it is still to be written */
    int is_there = ct_dir_is_same(run->config.resume, run->config.out);
    CT_TRY(ct_together_least(run->transport, is_there, &is_there));
    run->resumed_at = is_there != 0 ? c->iteration : -1;
    if (c->iteration > 0) {
        run->agents.iteration = c->iteration - 1;
        run->agents.lr = ct_lr_at(&run->lr, c->iteration - 1, run->epoch_iterations);
    }
    return CT_OK;
}
