/* A site's life, and its letters: what can be answered at once is. */
#include "site/site.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "site/site_internal.h"
#include "util/log.h"
#include "util/memory.h"

/* Of a letter: of any model; and before the size of models is known. */
#define MAX_LETTER_BYTES  ((size_t)1 << 32)
#define MAX_CONTROL_BYTES ((size_t)16 << 20)

#define MAX_PAUSE_S 0.2 /* between two looks at the clock and at signals */

/* ---- letters ---- */

ct_status ct_kept_set(ct_kept *kept, const void *bytes, size_t n) {
    uint8_t *copy = NULL;
    CT_TRY(ct_make(&copy, n + 1, "a letter")); /* texts end with a 0 */
    memcpy(copy, bytes, n);
    ct_kept_free(kept);
    *kept = (ct_kept){copy, n};
    return CT_OK;
}

void ct_kept_free(ct_kept *kept) {
    ct_free(kept->bytes);
    *kept = (ct_kept){0};
}

int ct_site_neighbour(const ct_site *site, int agent) {
    for (int k = 0; k < site->n; k++)
        if (site->neighbours[k].agent == agent) return k;
    return -1;
}

const char *ct_site_name(const ct_site *site, int k) {
    return site->federation->sites[site->neighbours[k].agent].name;
}

static void count_sent(ct_neighbour *neighbour, const char *what, size_t n) {
    int at = 0;
    while (at < CT_MAX_SENT - 1 && neighbour->sent[at].what != NULL &&
           strcmp(neighbour->sent[at].what, what) != 0)
        at++;
    neighbour->sent[at].what = what;
    neighbour->sent[at].letters++;
    neighbour->sent[at].bytes += n;
}

ct_status ct_site_try_post(ct_site *site, int k, ct_letter_kind kind, int tag, long iteration,
                           const char *what, const void *bytes, size_t n, bool *is_sent) {
    ct_letter letter = {.kind = (uint16_t)kind,
                        .tag = (uint16_t)tag,
                        .iteration = (uint64_t)iteration,
                        .bytes = bytes,
                        .n = n};
    ct_error error;
    ct_status status = CT_CATCH(&error, ct_mesh_send(site->mesh, k, &letter));
    *is_sent = status == CT_OK;
    if (*is_sent) count_sent(&site->neighbours[k], what, n);
    if (status == CT_BUSY) ct_site_cut(site, k, "stopped reading what it is sent");
    bool is_lost = status == CT_IO || status == CT_BUSY;
    return status == CT_OK || is_lost ? CT_OK : ct_fail_again(&error);
}

/* One that has gone meanwhile gets nothing, and needs nothing: it will knock. */
ct_status ct_site_post(ct_site *site, int k, ct_letter_kind kind, int tag, long iteration,
                       const char *what, const void *bytes, size_t n) {
    bool is_sent;
    return ct_site_try_post(site, k, kind, tag, iteration, what, bytes, n, &is_sent);
}

void ct_site_cut(ct_site *site, int k, const char *format, ...) {
    char reason[200];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    ct_mesh_refuse(site->mesh, k, reason);
}

/* ---- what has happened ---- */

static ct_status come(ct_site *site, int k, uint64_t connection) {
    ct_neighbour *neighbour = &site->neighbours[k];
    ct_site_forget_edge(neighbour);
    neighbour->is_up = true;
    neighbour->connection = connection;
    site->n_meetings++;
    neighbour->since = ct_seconds();
    neighbour->note[0] = '\0';
    ct_log(CT_LOG_LINE, "%s is there", ct_site_name(site, k)); /* again and again: no note */
    return ct_site_meet(site, k);
}

static void go(ct_site *site, int k, const char *why) {
    ct_neighbour *neighbour = &site->neighbours[k];
    bool was_up = neighbour->is_up;
    ct_site_forget_edge(neighbour);
    neighbour->is_up = false;
    neighbour->since = ct_seconds();
    neighbour->n_losses += was_up;
    snprintf(neighbour->note, sizeof neighbour->note, "%.159s", why);
    if (was_up) ct_log(CT_LOG_LINE, "%s is gone: %s", ct_site_name(site, k), why);
}

static void refused(ct_site *site, const ct_mesh_event *event) {
    if (event->peer >= 0)
        snprintf(site->neighbours[event->peer].note, sizeof site->neighbours[event->peer].note,
                 "%.159s", event->text);
    else
        site->n_strangers++;
    ct_log(CT_LOG_WARNING, "%s", event->text);
}

static ct_status take_events(ct_site *site) {
    ct_mesh_event event;
    while (ct_mesh_next_event(site->mesh, &event)) {
        if (event.kind == CT_MESH_UP) CT_TRY(come(site, event.peer, event.connection));
        if (event.kind == CT_MESH_DOWN) go(site, event.peer, event.text);
        if (event.kind == CT_MESH_REFUSED) refused(site, &event);
    }
    return CT_OK;
}

/* False: whoever waits for such a letter takes it himself. */
static ct_status hear(ct_site *site, int k, const ct_letter *letter, bool *is_done) {
    *is_done = true;
    switch (letter->kind) {
    case CT_LETTER_SAYS: return ct_site_hear_says(site, k, letter);
    case CT_LETTER_AGREED: return ct_site_hear_agreed(site, k, letter);
    case CT_LETTER_KNOCK: return ct_site_hear_knock(site, k, letter);
    case CT_LETTER_START: return ct_site_hear_start(site, k, letter);
    case CT_LETTER_MODEL: return ct_site_hear_model(site, k, letter);
    case CT_LETTER_SUM: return ct_site_hear_sum(site, k, letter);
    case CT_LETTER_RESULT: return ct_site_hear_result(site, k, letter);
    case CT_LETTER_ROW:
        /* control letters may be queued behind it */
        if (site->phase == CT_SITE_ENTERS) return ct_site_keep_early(site, k, letter);
        break;
    default:
        ct_site_cut(site, k, "sent a letter of an unknown kind, %d", letter->kind);
        return CT_OK;
    }
    *is_done = false;
    return CT_OK;
}

/* Rows of iterations that are over were sent before we had answered; those of a site that has left
 * are no use any more. Nobody sends any before it has said from when on. */
static bool is_stale(ct_site *site, int k, const ct_letter *letter) {
    const ct_neighbour *neighbour = &site->neighbours[k];
    if (letter->kind != CT_LETTER_ROW) return false;
    if (!neighbour->is_up || letter->iteration < (uint64_t)site->iteration) return true;
    bool is_promised = neighbour->first_start != CT_NEVER &&
                       letter->iteration >= (uint64_t)neighbour->first_start &&
                       letter->iteration < (uint64_t)site->training.n_iterations;
    if (!is_promised)
        ct_site_cut(site, k, "sent a row of iteration %llu, where there is none",
                    (unsigned long long)letter->iteration);
    return !is_promised;
}

bool ct_site_peek(ct_site *site, int k, ct_letter *letter) {
    return ct_mesh_peek(site->mesh, k, letter) &&
           letter->connection == site->neighbours[k].connection;
}

static ct_status take_letters(ct_site *site, int k) {
    ct_letter letter;
    while (ct_site_peek(site, k, &letter)) {
        bool is_done = true;
        if (!is_stale(site, k, &letter)) CT_TRY(hear(site, k, &letter, &is_done));
        if (!is_done) break;
        ct_mesh_drop(site->mesh, k);
    }
    return CT_OK;
}

ct_status ct_site_attend(ct_site *site) {
    CT_TRY(take_events(site));
    for (int k = 0; k < site->n; k++) CT_TRY(take_letters(site, k));
    return ct_site_tell_states(site);
}

ct_status ct_site_pause(ct_site *site) {
    double heartbeat_s = site->federation->heartbeat_s;
    ct_mesh_wait(site->mesh, heartbeat_s < MAX_PAUSE_S ? heartbeat_s : MAX_PAUSE_S);
    return ct_site_attend(site);
}

ct_status ct_site_wait(ct_site *site) {
    if (site->options.signal != NULL && site->options.signal() != 0)
        return ct_fail(CT_STOPPED, "stopped while waiting for other sites");
    return ct_site_pause(site);
}

/* ---- life ---- */

static ct_status create_neighbours(ct_site *site) {
    const ct_topology *graph = &site->federation->graph;
    CT_TRY(ct_make(&site->neighbours, (size_t)site->n, "the neighbours"));
    CT_TRY(ct_make(&site->is_child, (size_t)site->n, "the neighbours"));
    CT_TRY(ct_make(&site->records, (size_t)site->federation->n_sites, "the sites"));
    for (int k = 0; k < site->n; k++) {
        site->neighbours[k].agent = graph->neighbour[graph->begin[site->options.me] + k];
        site->neighbours[k].since = ct_seconds();
        ct_site_forget_edge(&site->neighbours[k]);
    }
    return ct_site_init_tree(site);
}

/* On all interfaces, at the port where the others reach us. */
static void name_listen(const ct_site_options *o, char *out, size_t size) {
    const char *address = o->federation->sites[o->me].address;
    const char *port = strrchr(address, ':');
    snprintf(out, size, "%s", o->listen != NULL ? o->listen : "");
    if (o->listen == NULL && port != NULL) snprintf(out, size, "*%s", port);
}

static ct_status open_mesh(ct_site *site) {
    const ct_site_options *o = &site->options;
    CT_SCOPED_BLOCK(ct_mesh_peer) peers = NULL;
    char listen[CT_MESH_ADDRESS];
    CT_TRY(ct_federation_peers(site->federation, o->me, &peers, &site->n));
    CT_TRY(create_neighbours(site));
    name_listen(o, listen, sizeof listen);
    ct_mesh_options options = {.name = site->federation->sites[o->me].name,
                               .key = o->key,
                               .listen = listen,
                               .peers = peers,
                               .n_peers = site->n,
                               .program = o->program,
                               .heartbeat_s = site->federation->heartbeat_s,
                               .max_letter_bytes = MAX_LETTER_BYTES};
    memcpy(options.federation, site->federation->hash, sizeof options.federation);
    CT_TRY(ct_mesh_open(&options, &site->mesh));
    ct_mesh_limit(site->mesh, MAX_CONTROL_BYTES);
    return CT_OK;
}

ct_status ct_site_open(const ct_site_options *options, ct_site **out) {
    CT_SCOPED_BY(ct_site_close, ct_site *) site = NULL;
    const ct_federation *f = options->federation;
    if (!ct_keys_equal(options->key->public_key, f->sites[options->me].key))
        return ct_fail(CT_INVAL,
                       "this is not the key of %s: the federation's file has another public key",
                       f->sites[options->me].name);
    CT_TRY(ct_make(&site, 1, "the site"));
    site->options = *options;
    site->federation = f;
    CT_TRY(open_mesh(site));
    ct_move(out, &site);
    return CT_OK;
}

void ct_site_close(ct_site **out) {
    ct_site *site = *out;
    if (site == NULL) return;
    ct_mesh_close(&site->mesh);
    for (int k = 0; site->neighbours != NULL && k < site->n; k++) {
        ct_kept_free(&site->neighbours[k].model);
        ct_kept_free(&site->neighbours[k].sum);
        ct_kept_free(&site->neighbours[k].early.row);
        for (int r = 0; r < CT_MAX_ROUNDS; r++) ct_kept_free(&site->neighbours[k].says[r]);
    }
    for (int r = 0; r < CT_MAX_ROUNDS; r++) {
        ct_kept_free(&site->mine[r]);
        ct_kept_free(&site->agreed[r]);
    }
    for (int i = 0; site->records != NULL && i < site->federation->n_sites; i++)
        ct_free(site->records[i].links);
    ct_kept_free(&site->result);
    ct_free(site->neighbours);
    ct_free(site->records);
    ct_free(site->is_child);
    ct_free(site);
    *out = NULL;
}

const ct_federation *ct_site_federation(const ct_site *site) {
    return site->federation;
}

int ct_site_me(const ct_site *site) {
    return site->options.me;
}

const char *ct_site_own_name(const ct_site *site) {
    return site->federation->sites[site->options.me].name;
}
