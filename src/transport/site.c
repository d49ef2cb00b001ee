/* Rows between sites (src/site): every site has one row, and exchanges it with its neighbours. Texts
 * are merged by all sites before training; everything else is a site's own affair. */
#include "site/site.h"

#include <stdlib.h>
#include <string.h>

#include "transport/transport_internal.h"
#include "util/memory.h"

/* The message is row `row` of a bank, to or from a neighbour. */
typedef struct passage {
    int message, agent, row;
} passage;

struct ct_channel {
    passage *sends, *receives; /* [n_room] */
    int n_sends, n_receives;
    int exchange; /* number of the one that is under way */
    float *row;   /* [n_columns] */
    int held;     /* row of the bank that is there; -1: none */
    bool *is_lost, *is_taken;
    bool *is_ahead; /* [n_room] messages of the next exchange that were sent already */
};

static void close_channel(ct_channel *c) {
    ct_free(c->sends);
    ct_free(c->receives);
    ct_free(c->row);
    ct_free(c->is_lost);
    ct_free(c->is_taken);
    ct_free(c->is_ahead);
    ct_free(c);
}

static ct_status open_channel(ct_transport *t, ct_backend *backend, ct_routes *r) {
    (void)t;
    (void)backend;
    size_t n = (size_t)r->n_room;
    CT_TRY(ct_make(&r->channel, 1, "the messages of sites"));
    CT_TRY(ct_make(&r->channel->sends, n, "the messages to sites"));
    CT_TRY(ct_make(&r->channel->receives, n, "the messages from sites"));
    CT_TRY(ct_make(&r->channel->is_lost, n, "the messages from sites"));
    CT_TRY(ct_make(&r->channel->row, r->n_columns, "rows on their way"));
    CT_TRY(ct_make(&r->channel->is_taken, n, "the messages from sites"));
    CT_TRY(ct_make(&r->channel->is_ahead, n, "the messages to sites"));
    r->is_lost = r->channel->is_lost;
    r->is_taken = r->channel->is_taken;
    return CT_OK;
}

static ct_status link_channel(ct_transport *t, ct_routes *r) {
    ct_channel *c = r->channel;
    int me = t->rank;
    c->n_sends = c->n_receives = 0;
    for (int k = 0; k < r->n; k++) {
        int row = ct_routes_row(r, r->by_edge ? k : r->from[k]);
        if (r->from[k] == me && r->to[k] != me)
            c->sends[c->n_sends++] = (passage){k, r->to[k], row};
        if (r->to[k] == me && r->from[k] != me)
            c->receives[c->n_receives++] = (passage){k, r->from[k], row};
    }
    return CT_OK;
}

static const char *name_of(ct_traffic kind, bool is_packed) {
    if (kind == CT_TRAFFIC_PARAMETERS) return is_packed ? "packed parameters" : "parameters";
    return is_packed ? "packed class sums" : "class sums";
}

/* A neighbour that changes cannot be added to at yet gets the row that they add up to. */
static ct_status send(ct_transport *t, ct_routes *r, ct_traffic kind, const ct_bank *bank,
                      const passage *p) {
    ct_channel *c = r->channel;
    const ct_unpacking *u = r->unpacking;
    bool is_first = u != NULL && u->are_changes && !ct_site_takes_changes(t->site, p->agent);
    const ct_bank *from = is_first ? u->rows : bank;
    float *row = is_first ? u->values : c->row;
    ct_site_parcel parcel = {.what = name_of(kind, u != NULL && !is_first),
                             .bytes = row,
                             .n = from->n * sizeof *row,
                             .is_first = is_first};
    bool is_sent = false;
    if (is_first || c->held != p->row) CT_TRY(ct_bank_read(from, p->row, 0, from->n, row));
    if (!is_first) c->held = p->row;
    CT_TRY(ct_site_send(t->site, p->agent, c->exchange, &parcel, &is_sent));
    if (is_sent) ct_ledger_enter(t, r, p->message, kind, parcel.n);
    return CT_OK;
}

static ct_status begin(ct_transport *t, ct_routes *r, ct_traffic kind, const ct_bank *bank) {
    ct_channel *c = r->channel;
    c->exchange = t->n_exchanges++;
    c->held = -1;
    memset(c->is_taken, 0, (size_t)r->n * sizeof *c->is_taken);
    for (int k = 0; k < c->n_sends; k++) {
        const passage *p = &c->sends[k];
        bool is_gone = c->is_ahead[p->message];
        c->is_ahead[p->message] = false;
        if (!is_gone) CT_TRY(send(t, r, kind, bank, p));
    }
    return CT_OK;
}

static ct_status send_ahead(ct_transport *t, ct_routes *r, ct_traffic kind, const ct_bank *bank,
                            int message) {
    ct_channel *c = r->channel;
    c->exchange = t->n_exchanges;
    c->held = -1;
    for (int k = 0; k < c->n_sends; k++) {
        const passage *p = &c->sends[k];
        if (p->message != message) continue;
        c->is_ahead[message] = true;
        return send(t, r, kind, bank, p);
    }
    return CT_OK; /* to nobody else */
}

/* What ct_site_receive knows of the row that it unpacks. */
typedef struct unpacked {
    const ct_unpacking *how;
    int row;
} unpacked;

static bool unpack(const void *context, const void *packed, float *values) {
    const unpacked *u = context;
    return u->how->unpack(u->how->context, u->row, packed, values);
}

static ct_status take_packed(ct_transport *t, ct_routes *r, const passage *p, bool *has_arrived) {
    const ct_unpacking *u = r->unpacking;
    const unpacked context = {u, p->row};
    ct_site_row row = {.values = u->values,
                       .n = u->rows->n,
                       .n_packed = r->n_columns * sizeof(float),
                       .are_changes = u->are_changes,
                       .unpack = unpack,
                       .context = &context};
    memset(u->values, 0, row.n * sizeof *u->values);
    if (u->are_changes) CT_TRY(ct_bank_read(u->rows, p->row, 0, row.n, u->values));
    CT_TRY(ct_site_receive(t->site, p->agent, r->channel->exchange, &row, has_arrived));
    if (!*has_arrived) return CT_OK;
    bool fresh = u->rows->fresh;
    CT_TRY(ct_bank_write(u->rows, p->row, 0, row.n, u->values));
    u->rows->fresh = fresh; /* as the bank that travels */
    return CT_OK;
}

static ct_status take_plain(ct_transport *t, ct_routes *r, const passage *p, bool *has_arrived) {
    ct_site_row row = {.values = r->channel->row, .n = r->pending->n};
    CT_TRY(ct_site_receive(t->site, p->agent, r->channel->exchange, &row, has_arrived));
    return *has_arrived ? ct_bank_write(r->pending, p->row, 0, row.n, row.values) : CT_OK;
}

static ct_status take(ct_transport *t, ct_routes *r, const passage *p) {
    bool has_arrived = false;
    CT_TRY(r->unpacking != NULL ? take_packed(t, r, p, &has_arrived)
                                : take_plain(t, r, p, &has_arrived));
    r->channel->is_lost[p->message] = !has_arrived;
    return CT_OK;
}

static ct_status finish(ct_transport *t, ct_routes *r) {
    ct_channel *c = r->channel;
    double began = ct_seconds();
    for (int k = 0; k < c->n_receives; k++)
        if (!c->is_taken[c->receives[k].message]) CT_TRY(take(t, r, &c->receives[k]));
    t->waited_s += ct_seconds() - began;
    return CT_OK;
}

/* Of all that are still to come, those that need not be waited for; otherwise the first to come. */
static ct_status next(ct_transport *t, ct_routes *r, int *messages, int *n) {
    ct_channel *c = r->channel;
    double began = ct_seconds();
    int n_left;
    bool is_late = false; /* who is waited for too long is left to finish(), which cuts it off */
    do {
        n_left = 0;
        for (int k = 0; k < c->n_receives; k++) {
            const passage *p = &c->receives[k];
            if (c->is_taken[p->message]) continue;
            n_left++;
            if (!ct_site_has(t->site, p->agent)) continue;
            CT_TRY(take(t, r, p));
            messages[(*n)++] = p->message;
        }
        if (n_left > 0 && *n == 0) CT_TRY(ct_site_await(t->site));
        is_late = ct_seconds() - began > t->timeout_s;
    } while (n_left > 0 && *n == 0 && !is_late);
    t->waited_s += ct_seconds() - began;
    return CT_OK;
}

/* Of the others, nothing is known. */
static ct_status gather(ct_transport *t, const void *own, size_t size, void *all) {
    memset(all, 0, (size_t)t->n_rows * size);
    memcpy((char *)all + (size_t)t->rank * size, own, size);
    return CT_OK;
}

static ct_status move_rows(ct_transport *t, const ct_bank *bank, ct_bank *all, bool to_all) {
    (void)t;
    (void)bank;
    (void)all;
    (void)to_all;
    return ct_fail(CT_INVAL, "a site does not get other sites' models");
}

static ct_status merge(ct_transport *t, ct_merge *merge_two, void *context, ct_text *text) {
    return t->has_parted ? CT_OK : ct_site_agree(t->site, merge_two, context, text);
}

static ct_status vote(ct_transport *t, int mine, int *most) {
    (void)t;
    *most = mine;
    return CT_OK;
}

const ct_transport_ops ct_site_ops = {.open = open_channel,
                                      .link = link_channel,
                                      .close = close_channel,
                                      .begin = begin,
                                      .send_ahead = send_ahead,
                                      .finish = finish,
                                      .next = next,
                                      .gather = gather,
                                      .move_rows = move_rows,
                                      .vote = vote,
                                      .merge = merge,
                                      .enters = true};
