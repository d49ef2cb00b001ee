/* Rows between processes, by MPI (MPI-3). Requests are persistent and set up once, or whenever the
 * graph changes: one message to and one from every rank that shares an edge with ours, rows packed
 * one after the other: in device memory if the library takes it (CROSSTALK_MPI_DEVICE=off: not even
 * then), otherwise in host memory, pinned if a device copies there. Nothing blocks without a limit:
 * every wait polls until its deadline and then names the peer that was waited for. MPI's types do
 * not leave this file. */
#include "transport/transport_internal.h"

#include "ct_config.h"

#if CT_WITH_MPI

#include <limits.h>
#include <mpi.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/memory.h"

enum { TAG_GATHER = 1, TAG_SPREAD, TAG_COLLECT, TAG_AGREE, TAG_ROUTES };
#define MAX_ROUTES 1024
#define N_SPINS    200       /* polls before a wait gives the core away */
#define MAX_PIECE  (1 << 30) /* bytes of a message */

static bool is_active;
static int my_rank, job_size, n_routes_open;

/* One peer of a channel. */
typedef struct peer {
    int rank;
    int n_rows;
    const int *rows; /* bank rows to send; receives fill `first` .. first+n_rows-1 */
    int first;
    float *values; /* [n_rows][n_columns] */
} peer;

struct ct_channel {
    peer *sends, *receives; /* [n_ranks] */
    int n_sends, n_receives;
    ct_backend *backend;
    bool on_device;        /* where the stages are */
    float *out, *in;       /* stages [most_sent][n_columns], [most_halo][n_columns] */
    int *rows;             /* [most_sent] bank rows behind `out` */
    int *scratch;          /* [messages] */
    MPI_Request *requests; /* receives, then sends */
    int *done;
    int tag;
};

static ct_status failed(const char *what, int code) {
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;
    if (MPI_Error_string(code, text, &n) != MPI_SUCCESS) n = 0;
    return ct_fail(CT_IO, "mpi: %s: %.*s", what, n, text);
}

#define MPI_TRY(call)                                                                              \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != MPI_SUCCESS) return failed(#call, code_);                                     \
    } while (0)

static ct_status join(int *rank, int *n_ranks) {
    int is_initialized = 0, level;
    MPI_TRY(MPI_Initialized(&is_initialized));
    if (!is_initialized) MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level));
    MPI_TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_TRY(MPI_Comm_rank(MPI_COMM_WORLD, &my_rank));
    MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, &job_size));
    is_active = true;
    *rank = my_rank;
    *n_ranks = job_size;
    return CT_OK;
}

static bool ask_active(void) {
    return is_active;
}

static void end(void) {
    MPI_Finalize();
    is_active = false;
}

/* A mistake that every rank makes is told by rank 0 alone: the others give it the time to. */
static void abort_job(int code, void (*tell)(void *context, int rank), void *context) {
    if (job_size == 1) {
        end();
        return;
    }
    if (my_rank > 0) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    tell(context, my_rank);
    MPI_Abort(MPI_COMM_WORLD, code);
}

/* ---- waiting ---- */

static ct_status too_late(const ct_transport *t, int rank) {
    ct_span rows = ct_transport_rows(t, rank);
    return ct_fail(CT_IO,
                   "rank %d waited %g s for rank %d (agents %d to %d) and gave up; its machine may "
                   "be gone, or @timeout too short",
                   t->rank, t->timeout_s, rank, rows.first, rows.first + rows.n - 1);
}

static void pause_after(int n_polls) {
    if (n_polls < N_SPINS) return;
    if (n_polls < 10 * N_SPINS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* Until all requests are done; requests[k] is with rank ranks[k]. `done` has room for n. */
static ct_status wait_all(ct_transport *t, MPI_Request *requests, const int *ranks, int n,
                          int *done) {
    double began = ct_seconds();
    int n_left = n, n_done = 0;
    for (int k = 0; k < n; k++)
        if (requests[k] == MPI_REQUEST_NULL) n_left--;
    for (int polls = 0; n_left > 0; polls++) {
        MPI_TRY(MPI_Testsome(n, requests, &n_done, done, MPI_STATUSES_IGNORE));
        if (n_done == MPI_UNDEFINED) break;
        for (int k = 0; k < n_done; k++) done[k] = 0;
        n_left -= n_done;
        if (n_done > 0) continue;
        if (ct_seconds() - began > t->timeout_s) {
            for (int k = 0; k < n; k++) {
                int is_done = 0;
                MPI_TRY(MPI_Request_get_status(requests[k], &is_done, MPI_STATUS_IGNORE));
                if (!is_done) return too_late(t, ranks[k]);
            }
        }
        pause_after(polls);
    }
    t->waited_s += ct_seconds() - began;
    return CT_OK;
}

static ct_status wait_one(ct_transport *t, MPI_Request *request, int rank) {
    int done;
    return wait_all(t, request, &rank, 1, &done);
}

/* MPI counts in ints: what is larger goes in pieces, in order. */
static ct_status move_bytes(ct_transport *t, bool sends, int rank, int tag, void *bytes, size_t n) {
    char *at = bytes;
    do {
        MPI_Request request;
        int piece = n < MAX_PIECE ? (int)n : MAX_PIECE;
        if (sends)
            MPI_TRY(MPI_Isend(at, piece, MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request));
        else
            MPI_TRY(MPI_Irecv(at, piece, MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request));
        CT_TRY(wait_one(t, &request, rank));
        at += piece;
        n -= (size_t)piece;
    } while (n > 0);
    return CT_OK;
}

static ct_status send_to(ct_transport *t, int rank, int tag, const void *bytes, size_t n) {
    return move_bytes(t, true, rank, tag, (void *)bytes, n);
}

static ct_status receive_from(ct_transport *t, int rank, int tag, void *bytes, size_t n) {
    return move_bytes(t, false, rank, tag, bytes, n);
}

/* ---- channels ---- */

static int item_of(const ct_routes *r, int message) {
    return r->by_edge ? message : r->from[message];
}

/* Own items that `rank` needs, ascending and each once, as bank rows. */
static int rows_for(const ct_transport *t, const ct_routes *r, int rank, int *rows) {
    ct_span theirs = ct_transport_rows(t, rank);
    int n = 0;
    for (int k = 0; k < r->n; k++) {
        int row = ct_routes_row(r, item_of(r, k));
        if (row < 0 || row >= r->own.n) continue;
        if (r->to[k] < theirs.first || r->to[k] >= theirs.first + theirs.n) continue;
        rows[n++] = row;
    }
    return ct_sort_unique(rows, n);
}

static int owner_of_item(const ct_transport *t, const ct_routes *r, int item) {
    return ct_transport_owner(t, r->by_edge ? r->from[item] : item);
}

/* Who gets which of our rows, and from whom the halo rows come. */
static void list_peers(const ct_transport *t, const ct_routes *r, ct_channel *c) {
    int n_out = 0, n_in = 0;
    c->n_sends = c->n_receives = 0;
    for (int rank = 0; rank < t->n_ranks; rank++) {
        if (rank == t->rank) continue;
        int n = rows_for(t, r, rank, c->scratch), first = n_in;
        memcpy(c->rows + n_out, c->scratch, (size_t)n * sizeof *c->rows);
        if (n > 0)
            c->sends[c->n_sends++] = (peer){.rank = rank,
                                            .n_rows = n,
                                            .rows = c->rows + n_out,
                                            .values = c->out + (size_t)n_out * r->n_columns};
        n_out += n;
        /* halo rows ascend, and so do the ranks that own them */
        while (n_in < r->n_halo && owner_of_item(t, r, r->halo[n_in]) == rank) n_in++;
        if (n_in > first)
            c->receives[c->n_receives++] = (peer){.rank = rank,
                                                  .n_rows = n_in - first,
                                                  .first = r->own.n + first,
                                                  .values = c->in + (size_t)first * r->n_columns};
    }
}

static ct_status count_values(const peer *p, size_t n_columns, int *out) {
    size_t n = (size_t)p->n_rows * n_columns;
    if (n > INT_MAX)
        return ct_fail(CT_INVAL,
                       "%d rows of %zu numbers to or from rank %d are more than one "
                       "message can hold; use more ranks",
                       p->n_rows, n_columns, p->rank);
    *out = (int)n;
    return CT_OK;
}

static void free_requests(ct_channel *c) {
    for (int k = 0; k < c->n_receives + c->n_sends; k++)
        if (c->requests[k] != MPI_REQUEST_NULL) MPI_Request_free(&c->requests[k]);
}

static ct_status link_channel(ct_transport *t, ct_routes *r) {
    ct_channel *c = r->channel;
    int n = 0;
    free_requests(c);
    list_peers(t, r, c);
    for (int k = 0; k < c->n_receives + c->n_sends; k++) {
        bool receives = k < c->n_receives;
        peer *p = receives ? &c->receives[k] : &c->sends[k - c->n_receives];
        CT_TRY(count_values(p, r->n_columns, &n));
        if (receives)
            MPI_TRY(MPI_Recv_init(p->values, n, MPI_FLOAT, p->rank, c->tag, MPI_COMM_WORLD,
                                  &c->requests[k]));
        else
            MPI_TRY(MPI_Send_init(p->values, n, MPI_FLOAT, p->rank, c->tag, MPI_COMM_WORLD,
                                  &c->requests[k]));
    }
    return CT_OK;
}

/* The library sends from and receives into device memory itself. */
static bool takes_device_memory(const ct_backend *backend) {
    const char *wish = getenv("CROSSTALK_MPI_DEVICE");
    if (!ct_backend_has_device(backend) || (wish != NULL && strcmp(wish, "off") == 0)) return false;
#if defined(MPIX_CUDA_AWARE_SUPPORT) && MPIX_CUDA_AWARE_SUPPORT
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

static ct_status create_stages(const ct_routes *r, ct_channel *c) {
    size_t n_out = (size_t)r->most_sent * r->n_columns, n_in = (size_t)r->most_halo * r->n_columns;
    c->on_device = takes_device_memory(c->backend);
    CT_TRY(ct_stage_create(c->backend, n_out, c->on_device, &c->out));
    return ct_stage_create(c->backend, n_in, c->on_device, &c->in);
}

static void close_channel(ct_channel *c) {
    free_requests(c);
    ct_free(c->sends);
    ct_free(c->receives);
    ct_free(c->requests);
    ct_free(c->done);
    ct_stage_free(c->backend, c->on_device, c->out);
    ct_stage_free(c->backend, c->on_device, c->in);
    ct_free(c->rows);
    ct_free(c->scratch);
    ct_free(c);
}

static ct_status create_channel(const ct_routes *r, size_t n_ranks, ct_channel *c) {
    CT_TRY(ct_make(&c->sends, n_ranks, "the messages to other ranks"));
    CT_TRY(ct_make(&c->receives, n_ranks, "the messages from other ranks"));
    CT_TRY(ct_make(&c->requests, 2 * n_ranks, "requests"));
    CT_TRY(ct_make(&c->done, 4 * n_ranks, "requests"));
    CT_TRY(ct_make(&c->rows, (size_t)r->most_sent, "the rows for other ranks"));
    CT_TRY(ct_make(&c->scratch, (size_t)r->n_room, "the rows for other ranks"));
    for (size_t k = 0; k < 2 * n_ranks; k++) c->requests[k] = MPI_REQUEST_NULL;
    return create_stages(r, c);
}

static ct_status open_channel(ct_transport *t, ct_backend *backend, ct_routes *r) {
    CT_TRY(ct_make(&r->channel, 1, "the messages of ranks"));
    r->channel->backend = backend;
    r->channel->tag = TAG_ROUTES + n_routes_open++ % MAX_ROUTES;
    return create_channel(r, (size_t)t->n_ranks, r->channel);
}

static ct_status begin(ct_transport *t, ct_routes *r, ct_traffic kind, const ct_bank *bank) {
    (void)t;
    (void)kind;
    ct_channel *c = r->channel;
    if (c->n_receives > 0) MPI_TRY(MPI_Startall(c->n_receives, c->requests));
    for (int k = 0; k < c->n_sends; k++) {
        peer *p = &c->sends[k];
        CT_TRY(ct_bank_pack(bank, p->rows, p->n_rows, p->values));
        MPI_TRY(MPI_Start(&c->requests[c->n_receives + k]));
    }
    return CT_OK;
}

static ct_status finish(ct_transport *t, ct_routes *r) {
    ct_channel *c = r->channel;
    ct_bank *bank = r->pending;
    int n = c->n_receives + c->n_sends, *ranks = c->done + 2 * t->n_ranks;
    for (int k = 0; k < n; k++)
        ranks[k] = k < c->n_receives ? c->receives[k].rank : c->sends[k - c->n_receives].rank;
    CT_TRY(wait_all(t, c->requests, ranks, n, c->done));
    for (int k = 0; k < c->n_receives; k++) {
        const peer *p = &c->receives[k];
        CT_TRY(ct_bank_unpack(bank, p->first, p->n_rows, p->values));
    }
    return CT_OK;
}

/* ---- all ranks ---- */

static ct_status gather(ct_transport *t, const void *own, size_t size, void *all) {
    ct_span mine = ct_transport_own(t);
    char *rows = all;
    if (t->rank > 0) {
        CT_TRY(send_to(t, 0, TAG_GATHER, own, (size_t)mine.n * size));
        return receive_from(t, 0, TAG_SPREAD, all, (size_t)t->n_rows * size);
    }
    memcpy(rows, own, (size_t)mine.n * size);
    for (int rank = 1; rank < t->n_ranks; rank++) {
        ct_span theirs = ct_transport_rows(t, rank);
        CT_TRY(receive_from(t, rank, TAG_GATHER, rows + (size_t)theirs.first * size,
                            (size_t)theirs.n * size));
    }
    for (int rank = 1; rank < t->n_ranks; rank++)
        CT_TRY(send_to(t, rank, TAG_SPREAD, all, (size_t)t->n_rows * size));
    return CT_OK;
}

static ct_status vote(ct_transport *t, int mine, int *most) {
    *most = mine;
    if (t->rank > 0) {
        CT_TRY(send_to(t, 0, TAG_GATHER, &mine, sizeof mine));
        return receive_from(t, 0, TAG_SPREAD, most, sizeof *most);
    }
    for (int rank = 1; rank < t->n_ranks; rank++) {
        int theirs = 0;
        CT_TRY(receive_from(t, rank, TAG_GATHER, &theirs, sizeof theirs));
        if (theirs > *most) *most = theirs;
    }
    for (int rank = 1; rank < t->n_ranks; rank++)
        CT_TRY(send_to(t, rank, TAG_SPREAD, most, sizeof *most));
    return CT_OK;
}

/* ---- what all ranks say, as one ---- */

/* The lengths of what is sent first are the same in all versions, so that any two can tell that they
 * differ. */
#define AGREEMENT      UINT64_C(0x3165657267415443) /* "CTAgree1" */
#define MAX_AGREEMENT  ((uint64_t)1 << 26)
#define VERDICT_LENGTH 1024

static ct_status send_text(ct_transport *t, int rank, const ct_text *text) {
    CT_TRY(send_to(t, rank, TAG_AGREE, (uint64_t[]){AGREEMENT, text->n}, 2 * sizeof(uint64_t)));
    return send_to(t, rank, TAG_AGREE, text->chars, text->n);
}

static ct_status receive_text(ct_transport *t, int rank, char **text, size_t *n) {
    uint64_t head[2] = {0};
    CT_TRY(receive_from(t, rank, TAG_AGREE, head, sizeof head));
    if (head[0] != AGREEMENT || head[1] > MAX_AGREEMENT)
        return ct_fail(CT_INVAL, "rank %d runs another version of crosstalk than rank %d", rank,
                       t->rank);
    CT_TRY(ct_make(text, (size_t)head[1] + 1, "what another rank says of itself"));
    *n = (size_t)head[1];
    return receive_from(t, rank, TAG_AGREE, *text, *n);
}

static ct_status merge_rank(ct_transport *t, int rank, ct_merge *merge, void *context,
                            ct_text *text) {
    CT_SCOPED_BLOCK(char) theirs = NULL;
    size_t n = 0;
    CT_TRY(receive_text(t, rank, &theirs, &n));
    return merge(context, theirs, n, text);
}

static ct_status tell_verdict(ct_transport *t, const ct_error *error, const ct_text *text) {
    char verdict[VERDICT_LENGTH] = {0};
    snprintf(verdict, sizeof verdict, "%s", error->status != CT_OK ? error->text : "");
    for (int rank = 1; rank < t->n_ranks; rank++) {
        CT_TRY(send_to(t, rank, TAG_AGREE, verdict, sizeof verdict));
        if (error->status == CT_OK) CT_TRY(send_text(t, rank, text));
    }
    return error->status != CT_OK ? ct_fail_again(error) : CT_OK;
}

static ct_status hear_verdict(ct_transport *t, ct_text *text) {
    char verdict[VERDICT_LENGTH] = {0};
    CT_SCOPED_BLOCK(char) merged = NULL;
    size_t n = 0;
    CT_TRY(receive_from(t, 0, TAG_AGREE, verdict, sizeof verdict));
    verdict[VERDICT_LENGTH - 1] = '\0';
    if (verdict[0] != '\0') return ct_fail(CT_INVAL, "%s", verdict);
    CT_TRY(receive_text(t, 0, &merged, &n));
    ct_text_free(text);
    ct_text_add(text, "%s", merged);
    return ct_text_status(text);
}

static ct_status merge(ct_transport *t, ct_merge *merge_two, void *context, ct_text *text) {
    ct_error first = {CT_OK, "", ""}, error;
    if (t->rank > 0) {
        CT_TRY(send_text(t, 0, text));
        return hear_verdict(t, text);
    }
    for (int rank = 1; rank < t->n_ranks; rank++)
        if (CT_CATCH(&error, merge_rank(t, rank, merge_two, context, text)) != CT_OK &&
            first.status == CT_OK)
            first = error;
    return tell_verdict(t, &first, text);
}

/* One row from its owner to rank 0 and, with `to_all`, from there to everyone. */
static ct_status move_row(ct_transport *t, const ct_bank *bank, ct_bank *all, int row, bool to_all,
                          float *values) {
    int owner = ct_transport_owner(t, row);
    size_t bytes = bank->n * sizeof *values;
    if (owner == t->rank)
        CT_TRY(ct_bank_read(bank, row - ct_transport_own(t).first, 0, bank->n, values));
    if (owner != 0 && owner == t->rank) CT_TRY(send_to(t, 0, TAG_COLLECT, values, bytes));
    if (owner != 0 && t->rank == 0) CT_TRY(receive_from(t, owner, TAG_COLLECT, values, bytes));
    for (int rank = 1; rank < t->n_ranks && to_all && t->rank == 0; rank++)
        if (rank != owner) CT_TRY(send_to(t, rank, TAG_SPREAD, values, bytes));
    if (t->rank > 0 && to_all && t->rank != owner)
        CT_TRY(receive_from(t, 0, TAG_SPREAD, values, bytes));
    return to_all || t->rank == 0 ? ct_bank_write(all, row, 0, bank->n, values) : CT_OK;
}

static ct_status move_rows(ct_transport *t, const ct_bank *bank, ct_bank *all, bool to_all) {
    /* once for the widest bank: later steps take nothing */
    CT_TRY(ct_reserve(&t->scratch, &t->n_scratch, bank->n, "rows on their way"));
    for (int row = 0; row < t->n_rows; row++)
        CT_TRY(move_row(t, bank, all, row, to_all, t->scratch));
    return CT_OK;
}

static const ct_mpi_job job = {
    .join = join,
    .is_active = ask_active,
    .abort = abort_job,
    .end = end,
    .ops = {.open = open_channel,
            .link = link_channel,
            .close = close_channel,
            .begin = begin,
            .finish = finish,
            .gather = gather,
            .move_rows = move_rows,
            .vote = vote,
            .merge = merge},
};
const ct_mpi_job *const ct_mpi = &job;

#else

const ct_mpi_job *const ct_mpi = NULL;

#endif
