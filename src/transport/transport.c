#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

#include "site/site.h"
#include "transport/transport_internal.h"
#include "util/memory.h"
#include "util/text.h"

#define DEFAULT_TIMEOUT_S 300.0

/* ---- who is here ---- */

/* The first of these variables that is a number of at least `least`; -1: none is. */
static int64_t first_number(const char *const *names, int64_t least) {
    for (int64_t n = 0; *names != NULL; names++) {
        const char *text = getenv(*names);
        if (text != NULL && ct_parse_i64(text, &n) && n >= least) return n;
    }
    return -1;
}

int64_t ct_transport_n_launched(void) {
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_STEP_NUM_TASKS", NULL};
    int64_t n = first_number(sizes, 2);
    return n < 0 ? 1 : n;
}

int ct_transport_launch_rank(void) {
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    int64_t rank = ct_transport_n_launched() > 1 ? first_number(ranks, 0) : 0;
    return rank > 0 ? (int)rank : 0;
}

static ct_status join(const char *kind, int *rank, int *n_ranks) {
    *rank = 0;
    *n_ranks = 1;
    bool is_auto = strcmp(kind, "auto") == 0, is_mpi = strcmp(kind, "mpi") == 0;
    if (!is_auto && !is_mpi && strcmp(kind, "local") != 0)
        return ct_refuse("transport", "no '%s'; known: auto, local, mpi", kind);
    int64_t n = ct_transport_n_launched();
    if (!is_mpi && !(is_auto && n > 1)) return CT_OK;
    if (ct_mpi == NULL)
        return ct_fail(CT_NOTBUILT,
                       "this crosstalk was built without MPI; install an MPI library (Debian: "
                       "libopenmpi-dev openmpi-bin) and build again, or run it with @transport "
                       "local");
    CT_TRY(ct_mpi->join(rank, n_ranks));
    if (*n_ranks > 1 || n == 1) return CT_OK;
    return ct_fail(CT_INVAL,
                   "this is one of %lld processes, but its MPI knows of no other: use that "
                   "library's mpirun, srun --mpi=pmix, or @transport local",
                   (long long)n);
}

static ct_status check_rows(const ct_transport *t) {
    if (t->n_ranks <= t->n_rows) return CT_OK;
    return ct_fail(CT_INVAL, "%d ranks for %d agents: every rank needs one; start fewer ranks",
                   t->n_ranks, t->n_rows);
}

static ct_status create_rows(ct_transport *t) {
    size_t n = (size_t)t->n_rows;
    CT_TRY(ct_make(&t->first_edge, n + 1, "the transport's edges"));
    CT_TRY(ct_make(&t->busy_s, n, "the transport's clock"));
    CT_TRY(ct_make(&t->link_s, (size_t)t->n_worlds, "the transport's clock"));
    return ct_make(&t->others, n * CT_N_TRAFFIC, "the transport's ledger");
}

ct_status ct_transport_create(const ct_transport_options *options, int n_rows, ct_transport **out) {
    int rank, n_ranks;
    CT_SCOPED_HANDLE(ct_transport) t = NULL;
    if (options->site != NULL) {
        rank = ct_site_me(options->site);
        n_ranks = n_rows;
    } else {
        CT_TRY(join(options->kind, &rank, &n_ranks));
    }
    CT_TRY(ct_make(&t, 1, "the transport"));
    *t =
        (ct_transport){.n_rows = n_rows,
                       .n_worlds = options->n_worlds > 0 ? options->n_worlds : 1,
                       .rank = rank,
                       .n_ranks = n_ranks,
                       .site = options->site,
                       .ops = options->site != NULL ? &ct_site_ops
                              : n_ranks > 1         ? &ct_mpi->ops
                                                    : NULL,
                       .timeout_s = options->timeout_s > 0 ? options->timeout_s : DEFAULT_TIMEOUT_S,
                       .latency_s = options->link_latency_s};
    if (options->link_bytes_per_s > 0) t->seconds_per_byte = 1 / options->link_bytes_per_s;
    if (options->shared != NULL) CT_TRY(ct_transport_agree(t, options->shared));
    CT_TRY(check_rows(t));
    CT_TRY(create_rows(t));
    ct_move(out, &t);
    return CT_OK;
}

void ct_transport_free(ct_transport **transport) {
    if (*transport == NULL) return;
    ct_free((*transport)->edges);
    ct_free((*transport)->first_edge);
    ct_free((*transport)->busy_s);
    ct_free((*transport)->link_s);
    ct_free((*transport)->others);
    ct_free((*transport)->scratch);
    ct_free(*transport);
    *transport = NULL;
}

int ct_transport_rank(const ct_transport *t) {
    return t->rank;
}

int ct_transport_n_ranks(const ct_transport *t) {
    return t->n_ranks;
}

ct_span ct_rank_rows(int n_rows, int n_ranks, int rank) {
    int first = (int)((int64_t)n_rows * rank / n_ranks);
    int end = (int)((int64_t)n_rows * (rank + 1) / n_ranks);
    return (ct_span){first, end - first};
}

ct_span ct_transport_rows(const ct_transport *t, int rank) {
    return ct_rank_rows(t->n_rows, t->n_ranks, rank);
}

ct_span ct_transport_own(const ct_transport *t) {
    return ct_transport_rows(t, t->rank);
}

int ct_transport_owner(const ct_transport *t, int row) {
    int rank = (int)((int64_t)row * t->n_ranks / t->n_rows);
    while (row >= ct_transport_rows(t, rank).first + ct_transport_rows(t, rank).n) rank++;
    while (row < ct_transport_rows(t, rank).first) rank--;
    return rank;
}

double ct_transport_waited_s(const ct_transport *t) {
    return t->waited_s;
}

void ct_transport_reset_wait(ct_transport *t) {
    t->waited_s = 0;
}

bool ct_transport_is_apart(const ct_transport *t) {
    return t->site != NULL;
}

void ct_transport_part(ct_transport *t) {
    t->has_parted = true;
}

struct ct_site *ct_transport_site(const ct_transport *t) {
    return t->site;
}

void ct_transport_set_iteration(ct_transport *t, long iteration) {
    (void)iteration;
    t->n_exchanges = 0;
}

/* ---- routes ---- */

ct_status ct_routes_create(int n, ct_routes *out) {
    CT_SCOPED(ct_routes) routes = {.n = n, .n_room = n};
    int **const lists[] = {&routes.from, &routes.to, &routes.edge, &routes.halo, &routes.mail};
    for (int k = 0; k < 5; k++) CT_TRY(ct_make(lists[k], (size_t)n, "routes"));
    ct_move(out, &routes);
    return CT_OK;
}

void ct_routes_free(ct_routes *routes) {
    if (routes->channel != NULL) routes->close(routes->channel);
    ct_free(routes->from);
    ct_free(routes->to);
    ct_free(routes->edge);
    ct_free(routes->halo);
    ct_free(routes->mail);
    *routes = (ct_routes){0};
}

static bool is_in(ct_span span, int row) {
    return row >= span.first && row < span.first + span.n;
}

static void place_rows(const ct_transport *t, ct_routes *r) {
    ct_span rows = ct_transport_own(t);
    r->own = r->by_edge ? (ct_span){0, 0} : rows;
    r->n_halo = 0;
    for (int k = 0; k < r->n; k++) {
        if (r->by_edge && is_in(rows, r->from[k])) {
            if (r->own.n++ == 0) r->own.first = k;
        }
        if (is_in(rows, r->to[k]) && !is_in(rows, r->from[k]))
            r->halo[r->n_halo++] = r->by_edge ? k : r->from[k];
    }
    /* an agent may have several neighbours here: its row comes once */
    r->n_halo = ct_sort_unique(r->halo, r->n_halo);
}

static int find_edge(const ct_transport *t, int from, int to) {
    for (int e = t->first_edge[from]; e < t->first_edge[from + 1]; e++)
        if (t->edges[e].to == to) return e;
    return -1;
}

/* Mailboxes of one agent lie one after the other. */
static void place_mail(const ct_transport *t, ct_routes *r) {
    ct_span rows = ct_transport_own(t);
    r->n_mail = 0;
    for (int k = 0; k < r->n; k++) r->mail[k] = -1;
    for (int i = rows.first; i < rows.first + rows.n; i++)
        for (int k = 0; k < r->n; k++)
            if (r->to[k] == i) r->mail[k] = r->own.n + r->n_halo + r->n_mail++;
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

/* Rows that leave: an agent's once for every rank that needs it, a message's once. */
static ct_status count_sent(const ct_transport *t, const ct_routes *r, int *out) {
    ct_span rows = ct_transport_own(t);
    size_t n_ranks = (size_t)t->n_ranks;
    CT_SCOPED_BLOCK(bool) is_counted = NULL;
    CT_TRY(ct_make(&is_counted, (size_t)rows.n * n_ranks, "the routes between ranks"));
    *out = 0;
    for (int k = 0; k < r->n; k++) {
        if (!is_in(rows, r->from[k]) || is_in(rows, r->to[k])) continue;
        size_t place = (size_t)(r->from[k] - rows.first) * n_ranks;
        bool *counted = &is_counted[place + (size_t)ct_transport_owner(t, r->to[k])];
        *out += r->by_edge || !*counted;
        *counted = true;
    }
    return CT_OK;
}

ct_status ct_routes_reserve(const ct_transport *t, bool by_edge, ct_routes *r) {
    int n_sent = 0;
    r->by_edge = by_edge;
    place_rows(t, r);
    if (t->n_ranks > 1) CT_TRY(count_sent(t, r, &n_sent));
    r->most_own = larger(r->most_own, r->own.n);
    r->most_halo = larger(r->most_halo, r->n_halo);
    r->most_sent = larger(r->most_sent, n_sent);
    return CT_OK;
}

void ct_routes_reserve_any(const ct_transport *t, bool by_edge, int n_sent, int n_received,
                           ct_routes *r) {
    int n = ct_transport_own(t).n, n_others = t->n_rows - n;
    if (!by_edge && n_received > n_others) n_received = n_others; /* of each a row at most */
    r->most_own = larger(r->most_own, by_edge ? n_sent : n);
    r->most_halo = larger(r->most_halo, t->n_ranks == 1 ? 0 : n_received);
    r->most_sent = larger(r->most_sent, t->n_ranks == 1 ? 0 : n_sent);
}

ct_status ct_routes_link(ct_transport *t, ct_routes *r) {
    CT_TRY(ct_transport_finish(t, r));
    place_rows(t, r);
    for (int k = 0; k < r->n; k++) r->edge[k] = find_edge(t, r->from[k], r->to[k]);
    if (r->arrived != NULL) place_mail(t, r);
    return t->ops != NULL ? t->ops->link(t, r) : CT_OK;
}

ct_status ct_routes_open(ct_transport *t, ct_backend *backend, bool by_edge, size_t n_columns,
                         ct_routes *r) {
    CT_TRY(ct_routes_reserve(t, by_edge, r));
    r->n_columns = n_columns;
    if (t->ops != NULL) {
        r->close = t->ops->close;
        CT_TRY(t->ops->open(t, backend, r));
    }
    return ct_routes_link(t, r);
}

int ct_routes_row(const ct_routes *r, int item) {
    if (is_in(r->own, item)) return item - r->own.first;
    int at = ct_sorted_find(r->halo, r->n_halo, item);
    return at < 0 ? -1 : r->own.n + at;
}

/* ---- exchanges ---- */

static void enter(ct_transport *t, const ct_routes *r, ct_traffic kind) {
    bool enters = t->ops != NULL && t->ops->enters;
    for (int k = 0; k < r->n && !enters; k++)
        ct_ledger_enter(t, r, k, kind, r->n_columns * sizeof(float));
}

/* What travels are the values of now: from here on the halo rows count as fresh. */
static ct_status begin(ct_transport *t, ct_routes *r, ct_traffic kind, ct_bank *bank) {
    CT_TRY(ct_transport_finish(t, r));
    if (t->ops != NULL) CT_TRY(t->ops->begin(t, r, kind, bank));
    r->pending = bank;
    bank->fresh = true;
    return CT_OK;
}

ct_status ct_transport_begin(ct_transport *t, ct_routes *r, ct_traffic kind, ct_bank *bank) {
    if (bank->fresh) return CT_OK;
    enter(t, r, kind);
    return begin(t, r, kind, bank);
}

ct_status ct_transport_send_ahead(ct_transport *t, ct_routes *r, ct_traffic kind,
                                  const ct_bank *bank, int message) {
    bool can = t->ops != NULL && t->ops->send_ahead != NULL;
    return can ? t->ops->send_ahead(t, r, kind, bank, message) : CT_OK;
}

/* Into the mailbox, if there are any, unless it is there already. */
static ct_status deliver(ct_routes *r, int message) {
    bool fresh = r->pending->fresh;
    bool is_there = r->is_taken != NULL && r->is_taken[message];
    if (r->is_taken != NULL) r->is_taken[message] = true;
    if (r->arrived == NULL || r->mail[message] < 0 || is_there) return CT_OK;
    CT_TRY(r->arrived(r->context, r, r->pending, message));
    r->pending->fresh = fresh;
    return CT_OK;
}

ct_status ct_transport_finish(ct_transport *t, ct_routes *r) {
    if (r->pending == NULL) return CT_OK;
    bool fresh = r->pending->fresh;
    if (t->ops != NULL) CT_TRY(t->ops->finish(t, r));
    for (int k = 0; k < r->n; k++) CT_TRY(deliver(r, k));
    r->pending->fresh = fresh;
    r->pending = NULL;
    return CT_OK;
}

ct_status ct_transport_next(ct_transport *t, ct_routes *r, int *messages, int *n) {
    *n = 0;
    bool is_open = r->pending != NULL && t->ops != NULL && t->ops->next != NULL;
    if (is_open) CT_TRY(t->ops->next(t, r, messages, n));
    if (*n == 0) return ct_transport_finish(t, r);
    for (int k = 0; k < *n; k++) CT_TRY(deliver(r, messages[k]));
    return CT_OK;
}

ct_status ct_transport_exchange(ct_transport *t, ct_routes *r, ct_traffic kind, ct_bank *bank) {
    CT_TRY(ct_transport_begin(t, r, kind, bank));
    return ct_transport_finish(t, r);
}

ct_status ct_transport_refresh(ct_transport *t, ct_routes *r, ct_bank *bank) {
    ct_status (*arrived)(void *, ct_routes *, ct_bank *, int) = r->arrived;
    CT_TRY(begin(t, r, CT_TRAFFIC_PARAMETERS, bank));
    r->arrived = NULL; /* mailboxes come back from where halo rows do not: the checkpoint */
    ct_status status = ct_transport_finish(t, r);
    r->arrived = arrived;
    return status;
}

ct_status ct_transport_gather(ct_transport *t, const void *own, size_t size, void *all) {
    if (t->ops != NULL) return t->ops->gather(t, own, size, all);
    memcpy(all, own, size * (size_t)t->n_rows);
    return CT_OK;
}

ct_status ct_transport_spread(ct_transport *t, const ct_bank *bank, ct_bank *all) {
    return t->ops != NULL ? t->ops->move_rows(t, bank, all, true) : CT_OK;
}

ct_status ct_transport_collect(ct_transport *t, const ct_bank *bank, ct_bank *all) {
    return t->ops != NULL ? t->ops->move_rows(t, bank, all, false) : CT_OK;
}

ct_status ct_transport_merge(ct_transport *t, ct_merge *merge, void *context, ct_text *text) {
    return t->ops != NULL ? t->ops->merge(t, merge, context, text) : CT_OK;
}

ct_status ct_transport_vote(ct_transport *t, int mine, int *most) {
    *most = mine;
    return t->ops != NULL ? t->ops->vote(t, mine, most) : CT_OK;
}

void ct_transport_abort(int code, void (*tell)(void *context, int rank), void *context) {
    if (ct_mpi != NULL && ct_mpi->is_active()) ct_mpi->abort(code, tell, context);
}

void ct_transport_end(void) {
    if (ct_mpi != NULL && ct_mpi->is_active()) ct_mpi->end();
}
