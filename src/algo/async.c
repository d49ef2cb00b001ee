#include "algo/async.h"

#include <string.h>

#include "algo/algo.h"
#include "util/memory.h"

static double *next_s(const ct_async *s) {
    return s->clock;
}
static double *steps_done(const ct_agents *a, const ct_async *s) {
    return s->clock + a->n_rows;
}
static double *now_s(const ct_agents *a, const ct_async *s) {
    return s->clock + 2 * a->n_rows;
}

/* ---- creation ---- */

static ct_status create_matrices(ct_agents *a, ct_async *s) {
    ct_sparse *full[] = {&s->mix, &s->step, &s->start_mix, &s->start_step};
    ct_sparse *diagonal[] = {&s->active, &s->idle, &s->decay};
    for (size_t k = 0; k < sizeof full / sizeof *full; k++)
        CT_TRY(ct_sparse_create(a->n, a->n_rows, a->n * a->n_agents, full[k]));
    for (size_t k = 0; k < sizeof diagonal / sizeof *diagonal; k++)
        CT_TRY(ct_sparse_diagonal(a->n, diagonal[k]));
    return CT_OK;
}

static ct_status create_rows(ct_agents *a, ct_async *s) {
    s->all_x = &a->x;
    s->all_d = &a->g;
    if (ct_transport_n_ranks(a->transport) == 1) return CT_OK;
    s->all_x = &s->everyones_x;
    s->all_d = &s->everyones_d;
    CT_TRY(ct_bank_create(a->backend, a->n_rows, 0, a->x.n, &s->everyones_x));
    return ct_bank_create(a->backend, a->n_rows, 0, a->x.n, &s->everyones_d);
}

ct_status ct_async_create(ct_agents *a) {
    ct_async *s = a->state;
    size_t n = (size_t)a->n_agents, rows = (size_t)a->n_rows;
    s->n_clock = 2 * rows + (size_t)a->n_seeds;
    CT_TRY(ct_make(&s->clock, s->n_clock, "the agents' clock"));
    CT_TRY(ct_make(&s->is_active, rows, "the agents' clock"));
    CT_TRY(ct_make(&s->at.a, n * n, "the agents' events"));
    CT_TRY(ct_make(&s->at.b, n * n, "the agents' events"));
    CT_TRY(ct_make(&s->at.scratch, n, "the agents' events"));
    CT_TRY(ct_make(&s->c, n * n, "the agents' events"));
    CT_TRY(ct_make(&s->d, n * n, "the agents' events"));
    for (int row = 0; row < a->n_rows; row++) next_s(s)[row] = ct_speeds_step_s(a->speeds, row, 0);
    CT_TRY(create_matrices(a, s));
    return create_rows(a, s);
}

void ct_async_free(void *state) {
    ct_async *s = state;
    ct_sparse *all[] = {&s->mix,    &s->step, &s->start_mix, &s->start_step,
                        &s->active, &s->idle, &s->decay};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) ct_sparse_free(all[k]);
    ct_bank_free(&s->everyones_x);
    ct_bank_free(&s->everyones_d);
    ct_free(s->clock);
    ct_free(s->is_active);
    ct_free(s->at.a);
    ct_free(s->at.b);
    ct_free(s->at.scratch);
    ct_free(s->c);
    ct_free(s->d);
}

double *ct_async_host_state(void *state, size_t *n) {
    ct_async *s = state;
    *n = s->n_clock;
    return s->clock;
}

/* ---- what events do ---- */

void ct_async_average(ct_async_world *w, int i, int j) {
    double *rows[] = {w->a, w->b};
    for (int which = 0; which < 2; which++) {
        double *mine = rows[which] + (size_t)i * (size_t)w->n;
        double *theirs = rows[which] + (size_t)j * (size_t)w->n;
        for (int k = 0; k < w->n; k++) mine[k] = theirs[k] = (mine[k] + theirs[k]) / 2;
    }
}

void ct_async_combine(const ct_agents *a, ct_async_world *w, int i) {
    const ct_sparse *weights = a->links.weights;
    const double gamma = a->hyper.gamma;
    double *rows[] = {w->a, w->b};
    for (int which = 0; which < 2; which++) {
        double *row = rows[which] + (size_t)i * (size_t)w->n, *sum = w->scratch;
        for (int k = 0; k < w->n; k++) sum[k] = (1 - gamma) * row[k];
        for (int e = weights->begin[w->first + i]; e < weights->begin[w->first + i + 1]; e++) {
            const double *other =
                rows[which] + (size_t)(weights->column[e] - w->first) * (size_t)w->n;
            for (int k = 0; k < w->n; k++) sum[k] += gamma * weights->value[e] * other[k];
        }
        memcpy(row, sum, (size_t)w->n * sizeof *row);
    }
}

double ct_async_send(const ct_agents *a, const ct_async_world *w, int from, int to) {
    const ct_topology *t = a->links.topology;
    const uint64_t bytes = a->x.n * sizeof(float);
    int begin = t->begin[w->first + from], n = t->begin[w->first + from + 1] - begin;
    int k = ct_sorted_find(t->neighbour + begin, n, w->first + to);
    ct_ledger_edges(a->transport)[begin + k].bytes[CT_TRAFFIC_PARAMETERS] += bytes;
    return ct_ledger_message_s(a->transport, bytes);
}

/* ---- an iteration ---- */

/* The agent whose gradient is ready first. */
static int first_ready(const ct_async *s, const ct_async_world *w) {
    const double *next = next_s(s) + w->first;
    int first = 0;
    for (int i = 1; i < w->n; i++)
        if (next[i] < next[first]) first = i;
    return first;
}

static void begin_world(ct_async_world *w) {
    size_t n = (size_t)w->n;
    memset(w->a, 0, n * n * sizeof *w->a);
    memset(w->b, 0, n * n * sizeof *w->b);
    for (size_t i = 0; i < n; i++) w->a[i * n + i] = 1;
}

static void run_world(ct_agents *a, ct_async *s, ct_async_world *w, ct_async_event event) {
    const size_t n = (size_t)w->n;
    double *now = now_s(a, s) + w->first / w->n;
    double before = *now;
    begin_world(w);
    for (int i = first_ready(s, w); !s->is_active[w->first + i]; i = first_ready(s, w)) {
        int row = w->first + i;
        double *done = &steps_done(a, s)[row], *next = &next_s(s)[row];
        size_t at = (size_t)i * n;
        double sending_s = event(a, w, i, (long)*done);
        w->b[at + (size_t)i] += 1;
        memcpy(s->c + at, w->a + at, n * sizeof *w->a);
        memcpy(s->d + at, w->b + at, n * sizeof *w->b);
        s->is_active[row] = true;
        *now = *next;
        *done += 1;
        *next += sending_s + ct_speeds_step_s(a->speeds, row, (long)*done);
    }
    ct_ledger_link_seconds(a->transport)[w->first / w->n] += *now - before;
}

/* Row `row` of a sparse matrix from n numbers. */
static void put_row(ct_sparse *out, int row, const ct_async_world *w, const double *values) {
    int entry = out->begin[row];
    for (int k = 0; k < w->n; k++) {
        if (values[k] == 0) continue;
        out->column[entry] = w->first + k;
        out->value[entry++] = values[k];
    }
    out->begin[row + 1] = entry;
}

/* Own rows of a world's matrices. */
static void put_matrices(ct_agents *a, ct_async *s, const ct_async_world *w) {
    for (int i = 0; i < w->n; i++) {
        int row = w->first + i - a->first;
        if (row < 0 || row >= a->n) continue;
        size_t at = (size_t)i * (size_t)w->n;
        bool is_active = s->is_active[w->first + i];
        put_row(&s->mix, row, w, w->a + at);
        put_row(&s->step, row, w, w->b + at);
        if (!is_active) memset(s->c + at, 0, (size_t)w->n * sizeof *s->c);
        if (!is_active) memset(s->d + at, 0, (size_t)w->n * sizeof *s->d);
        put_row(&s->start_mix, row, w, s->c + at);
        put_row(&s->start_step, row, w, s->d + at);
        s->active.value[row] = is_active;
        s->idle.value[row] = !is_active;
        s->decay.value[row] = is_active ? a->hyper.momentum : 1;
        if (!is_active) a->samples.own -= a->batches[row].n; /* computed, but nobody's */
    }
}

void ct_async_run(ct_agents *a, ct_async_event event) {
    ct_async *s = a->state;
    memset(s->is_active, 0, (size_t)a->n_rows * sizeof *s->is_active);
    for (int seed = 0; seed < a->n_seeds; seed++) {
        s->at.n = a->n_agents;
        s->at.first = seed * a->n_agents;
        run_world(a, s, &s->at, event);
        put_matrices(a, s, &s->at);
    }
}

ct_status ct_async_direct(ct_agents *a, ct_bank *m) {
    ct_async *s = a->state;
    ct_bank *d = &a->g, t = ct_temp(1);
    ct_update u = ct_agents_update(a);
    SET(&u, &t, {1, m, &s->decay}, {1, &a->g, &s->active});
    SET(&u, m, {1, &t});
    ct_agents_direction(a, &u, &a->g, m, d);
    CT_TRY(ct_agents_apply(a, &u));
    CT_TRY(ct_transport_spread(a->transport, &a->x, &s->everyones_x));
    return ct_transport_spread(a->transport, d, &s->everyones_d);
}
