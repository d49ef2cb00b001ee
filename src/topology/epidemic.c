/* Epidemic learning (de Vos, Farhadkhani, Guerraoui, Kermarrec, Pires and Sharma, NeurIPS 2023):
 * every agent sends its model to s others, drawn anew in every round, and takes the mean of its own
 * model and those that it received:
 *   x+_i = (x_i + sum_(j that sent to i) x_j) / (1 + n_i)          n_i: how many these are
 * epidemic (EL-Oracle): agents send to s and receive from s, n_i = s, and W is doubly stochastic.
 * epidemic-local (EL-Local): every agent draws its s receivers on its own. Some receive more than
 * others, and the columns of W sum to 1 on average only: the mean model wanders.
 * Drawn from (seed, round): nothing to keep. s is ceil(log2 n) unless given, the paper's 7 of 96.
 * Deviation: the graph of EL-Oracle is a random relabelling of a circulant one with random offsets,
 * whose edges are one-way; its authors' program draws an s-regular graph of two-way edges.
 * All s-regular graphs, relabelled at random, shrink disagreement by the same factor on average:
 *   E |W x - mean|^2 = (n / (s + 1) - 1) / (n - 1) |x - mean|^2 */
#include "topology/schedule_internal.h"

#include "util/rng.h"
#include "util/text.h"

enum { ORACLE = 2, LOCAL = 3 }; /* streams; matchings have 1 */

/* s different numbers below n (Floyd): out [s] */
static void draw_some(ct_rng *rng, uint32_t n, uint32_t s, uint32_t *out) {
    for (uint32_t k = 0; k < s; k++) {
        uint32_t top = n - s + k, value = ct_rng_below(rng, top + 1);
        for (uint32_t before = 0; before < k; before++)
            if (out[before] == value) value = top;
        out[k] = value;
    }
}

/* Row `row` of W: the mean of the agent itself and its n sources, ascending. */
static void end_row(ct_phase *phase, int row, int n) {
    ct_topology *t = &phase->sources;
    ct_sparse *w = &phase->w;
    const int *sources = t->neighbour + t->begin[row];
    int entry = w->begin[row], k = 0;
    t->begin[row + 1] = t->begin[row] + n;
    w->begin[row + 1] = entry + n + 1;
    for (int e = 0; e <= n; e++) {
        bool is_own = k == e && (e == n || sources[e] > row);
        w->column[entry + e] = is_own ? row : sources[k];
        w->value[entry + e] = 1.0 / (1 + n);
        k += !is_own;
    }
}

/* ---- EL-Oracle ---- */

static void sort(int *items, int n) {
    for (int k = 1; k < n; k++)
        for (int j = k; j > 0 && items[j - 1] > items[j]; j--) {
            int item = items[j];
            items[j] = items[j - 1];
            items[j - 1] = item;
        }
}

static void draw_regular(const ct_schedule *s, long round, ct_phase *out) {
    uint32_t n = (uint32_t)s->n_agents, n_peers = (uint32_t)s->drawing.n_sent;
    uint32_t *label = s->order, *place = label + n, *offset = place + n;
    for (int row = 0; row < s->n; row++) {
        int first = row - row % s->n_agents;
        if (row == first) {
            ct_rng rng;
            ct_rng_init(&rng, s->seeds[row / s->n_agents], CT_RNG_TOPOLOGY, ORACLE, (uint32_t)round,
                        0);
            for (uint32_t i = 0; i < n; i++) label[i] = i;
            ct_rng_shuffle(&rng, label, n);
            for (uint32_t i = 0; i < n; i++) place[label[i]] = i;
            draw_some(&rng, n - 1, n_peers, offset);
        }
        int *sources = out->sources.neighbour + out->sources.begin[row];
        for (uint32_t k = 0; k < n_peers; k++)
            sources[k] = first + (int)label[(place[row - first] + 1 + offset[k]) % n];
        sort(sources, (int)n_peers);
        end_row(out, row, (int)n_peers);
    }
}

/* ---- EL-Local ---- */

/* To whom an agent sends: out [n_sent] */
static void draw_receivers(const ct_schedule *s, int row, long round, uint32_t *out) {
    uint32_t n = (uint32_t)s->n_agents, n_peers = (uint32_t)s->drawing.n_sent;
    uint32_t own = (uint32_t)row % n;
    ct_rng rng;
    ct_rng_init(&rng, s->seeds[row / s->n_agents], CT_RNG_TOPOLOGY, LOCAL, (uint32_t)round, own);
    draw_some(&rng, n - 1, n_peers, out);
    for (uint32_t k = 0; k < n_peers; k++) out[k] += out[k] >= own; /* not to itself */
}

static void draw_local(const ct_schedule *s, long round, ct_phase *out) {
    uint32_t *received = s->order, *begin = received + s->n_agents, *peers = begin + s->n_agents;
    ct_topology *t = &out->sources;
    for (int first = 0; first < s->n; first += s->n_agents) {
        int end = first + s->n_agents;
        for (int i = 0; i < s->n_agents; i++) received[i] = 0;
        for (int row = first; row < end; row++) {
            draw_receivers(s, row, round, peers);
            for (int k = 0; k < s->drawing.n_sent; k++) received[peers[k]]++;
        }
        begin[0] = (uint32_t)t->begin[first];
        for (int i = 1; i < s->n_agents; i++) begin[i] = begin[i - 1] + received[i - 1];
        for (int row = first; row < end; row++) { /* senders ascend, and so do sources */
            draw_receivers(s, row, round, peers);
            for (int k = 0; k < s->drawing.n_sent; k++) t->neighbour[begin[peers[k]]++] = row;
        }
        for (int row = first; row < end; row++) end_row(out, row, (int)received[row - first]);
    }
}

/* ---- both ---- */

static ct_status read_peers(const ct_topology_request *request, int *out) {
    int64_t s = 0;
    while ((INT64_C(1) << s) < request->n) s++;
    *out = (int)s;
    if (request->argument == NULL) return CT_OK;
    if (!ct_parse_i64(request->argument, &s) || s < 1 || s >= request->n)
        return ct_fail(CT_INVAL, "topology '%s:%.40s': an agent can send to 1 .. %d others",
                       request->name, request->argument, request->n - 1);
    *out = (int)s;
    return CT_OK;
}

ct_status ct_schedule_make_epidemic(const ct_topology_request *request, ct_arrows *out) {
    int s = 0;
    CT_TRY(read_peers(request, &s));
    out->drawing = (ct_drawing){.draw = draw_regular, .n_sent = s, .most_received = s};
    return CT_OK;
}

ct_status ct_schedule_make_epidemic_local(const ct_topology_request *request, ct_arrows *out) {
    int s = 0;
    CT_TRY(read_peers(request, &s));
    out->drawing = (ct_drawing){
        .draw = draw_local, .n_sent = s, .most_received = request->n - 1, .is_averaging = true};
    return CT_OK;
}
