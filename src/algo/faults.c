#include "algo/faults.h"

#include <string.h>

#include "algo/agents_internal.h"
#include "util/memory.h"
#include "util/rng.h"

#define LATE UINT32_MAX /* index of the draw whether an agent is late */

bool ct_faults_alive(const ct_faults *f, int row, long iteration) {
    if (f->is_there != NULL) return f->is_there(f->context, row);
    for (int k = 0; k < f->n_kills; k++)
        if (row % f->n_agents == f->kills[k].agent && iteration >= f->kills[k].from &&
            iteration < f->kills[k].until)
            return false;
    return true;
}

static double draw(const ct_faults *f, int row, long iteration, uint32_t index) {
    ct_rng rng;
    ct_rng_init(&rng, f->seeds[row / f->n_agents], CT_RNG_FAULT, (uint32_t)(row % f->n_agents),
                (uint32_t)iteration, index);
    return ct_rng_uniform(&rng);
}

static bool is_late(const ct_faults *f, int row, long iteration) {
    return f->straggle > 0 && draw(f, row, iteration, LATE) < f->straggle;
}

bool ct_faults_delivers(const ct_faults *f, long iteration, int from, int to, int what) {
    if (!ct_faults_alive(f, from, iteration) || !ct_faults_alive(f, to, iteration)) return false;
    if (iteration == 0) return true;
    if (f->straggle_s > f->limit_s && is_late(f, from, iteration)) return false;
    uint32_t index = (uint32_t)(to % f->n_agents) * 16 + (uint32_t)what;
    return f->drop == 0 || draw(f, from, iteration, index) >= f->drop;
}

int ct_faults_what(const ct_agents *a, const ct_bank *bank) {
    if (bank == &a->x) return 0;
    for (int b = 0; b < a->n_buffers; b++)
        if (bank == &a->buffers[b].bank) return 2 + b;
    return 1; /* class sums */
}

/* The mailbox of what never came, for this step: one's own model, nothing to contrast with and
 * nothing to gain; or no class sums. */
static ct_status fill_in(ct_agents *a, const ct_routes *r, int message, ct_bank *bank) {
    float *row = a->fault_room.row;
    memset(row, 0, bank->n * sizeof *row);
    if (!r->by_edge) CT_TRY(ct_bank_read(bank, r->to[message] - a->first, 0, bank->n, row));
    return ct_bank_write(bank, r->mail[message], 0, bank->n, row);
}

/* Of packed rows, what they were unpacked to. */
static ct_status unpacked_arrived(ct_agents *a, ct_routes *r, int k) {
    ct_bank *bank = r->unpacking->rows;
    bool fresh = bank->fresh;
    int row = ct_routes_row(r, r->by_edge ? k : r->from[k]);
    if (r->is_lost[k]) {
        CT_TRY(fill_in(a, r, k, bank));
    } else {
        CT_TRY(ct_bank_read(bank, row, 0, bank->n, a->fault_room.row));
        CT_TRY(ct_bank_write(bank, r->mail[k], 0, bank->n, a->fault_room.row));
    }
    bank->fresh = fresh;
    return CT_OK;
}

ct_status ct_faults_arrived(void *agents, ct_routes *r, ct_bank *bank, int k) {
    ct_agents *a = agents;
    bool is_real = a->faults->is_there != NULL;
    if (r->unpacking != NULL) return unpacked_arrived(a, r, k);
    if (is_real && r->is_lost[k]) return fill_in(a, r, k, bank);
    int what = ct_faults_what(a, bank), row = ct_routes_row(r, r->by_edge ? k : r->from[k]);
    const ct_bank *from = bank;
    if (!is_real && !ct_faults_delivers(a->faults, a->iteration, r->from[k], r->to[k], what)) {
        if (r->before == NULL) return CT_OK;
        from = r->before;
        row = r->mail[k];
    }
    CT_TRY(ct_bank_read(from, row, 0, bank->n, a->fault_room.row));
    return ct_bank_write(bank, r->mail[k], 0, bank->n, a->fault_room.row);
}

/* ---- dead agents ---- */

ct_status ct_faults_create(ct_agents *a) {
    size_t n_sums = ct_links_sums(a->plan->graph), width = a->x.n > n_sums ? a->x.n : n_sums;
    size_t n_frozen = (size_t)(CT_MAX_BUFFERS + 1) * a->x.n * (size_t)a->faults->n_kills;
    CT_TRY(ct_make(&a->fault_room.row, width, "what arrives"));
    return ct_make(&a->fault_room.frozen, n_frozen * (size_t)a->n_seeds, "agents that are gone");
}

void ct_faults_free(ct_agents *a) {
    ct_free(a->fault_room.row);
    ct_free(a->fault_room.frozen);
}

/* Reads or writes the rows of own dead agents, one after the other. */
static ct_status each_frozen(ct_agents *a, bool writes) {
    float *at = a->fault_room.frozen;
    for (int i = 0; i < a->n; i++) {
        if (ct_faults_alive(a->faults, a->first + i, a->iteration)) continue;
        for (int b = -1; b < a->n_buffers; b++) {
            ct_bank *bank = b < 0 ? &a->x : &a->buffers[b].bank;
            if (b >= 0 && a->buffers[b].routes != NULL) continue;
            bool fresh = bank->fresh;
            CT_TRY(writes ? ct_bank_write(bank, i, 0, bank->n, at)
                          : ct_bank_read(bank, i, 0, bank->n, at));
            bank->fresh = fresh;
            at += bank->n;
        }
    }
    return CT_OK;
}

static bool has_event(const ct_agents *a) {
    for (int k = 0; k < a->faults->n_kills; k++)
        if (a->iteration == a->faults->kills[k].from || a->iteration == a->faults->kills[k].until)
            return true;
    return false;
}

ct_status ct_faults_begin(ct_agents *a) {
    const ct_faults *f = a->faults;
    for (int row = 0; row < a->n_rows; row++)
        if (f->straggle_s <= f->limit_s && is_late(f, row, a->iteration))
            ct_ledger_delay(a->transport, row, f->straggle_s);
    if (f->n_kills == 0) return CT_OK;
    /* a run that was resumed has seen no event yet */
    if (has_event(a) || a->fault_room.linked_at < 0)
        CT_TRY(ct_agents_connect(a, a->links.topology, a->links.weights));
    a->fault_room.linked_at = a->iteration;
    return each_frozen(a, false);
}

ct_status ct_faults_end(ct_agents *a) {
    return a->faults->n_kills > 0 ? each_frozen(a, true) : CT_OK;
}
