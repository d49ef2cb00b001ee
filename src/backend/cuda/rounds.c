/* The script of an update program, rounds of orders (update.h). Most assignments need values of their
 * own row alone, which one thread keeps for itself. A round ends where a matrix takes rows that are
 * written in it, or where rows are written that a matrix has taken in it. */
#include <string.h>

#include "backend/cuda/cuda_internal.h"

/* A script on its way. */
typedef struct draft {
    cuda_program *p;
    cuda_script *out;
    int round[CUDA_MAX_ASSIGNS];
    bool is_shared[CUDA_MAX_ASSIGNS]; /* what it assigns goes to shared memory too */
    bool is_mixed[CUDA_MAX_SLOTS];    /* stands under a matrix */
    int n_orders;
    int place[CUDA_MAX_SLOTS]; /* of a slot's row, or -1 */
    bool is_taken[CUDA_MAX_PLACES];
} draft;

static bool reads(const cuda_assign *a, int slot, bool under_matrix) {
    for (int t = 0; t < a->n_terms; t++)
        if (a->terms[t].slot == slot && (a->terms[t].matrix >= 0) == under_matrix) return true;
    return false;
}

/* Who first reads what is in a slot after assignment k, under a matrix or not; -1: nobody. */
static int reader(const cuda_program *p, int k, int slot, bool under_matrix) {
    for (int next = k + 1; next < p->n_assigns; next++) {
        if (reads(&p->assigns[next], slot, under_matrix)) return next;
        if (p->assigns[next].slot == slot) return -1;
    }
    return -1;
}

/* The last assignment to a slot before number k; -1: none. */
static int writer(const cuda_program *p, int k, int slot) {
    while (--k >= 0 && p->assigns[k].slot != slot) {
    }
    return k;
}

static void find_mixed(draft *d) {
    const cuda_program *p = d->p;
    for (int k = 0; k < p->n_assigns; k++) {
        d->is_shared[k] = reader(p, k, p->assigns[k].slot, true) >= 0;
        for (int s = 0; s < p->n_slots; s++) d->is_mixed[s] |= reads(&p->assigns[k], s, true);
    }
}

/* Whether assignment k must wait for others of the round, which began with `first`. */
static bool must_wait(const draft *d, int first, int k) {
    const cuda_assign *a = d->p->assigns;
    for (int before = first; before < k; before++) {
        if (d->is_shared[before] && reads(&a[k], a[before].slot, true)) return true;
        if (d->is_shared[k] && reads(&a[before], a[k].slot, true)) return true;
    }
    return false;
}

static bool find_rounds(draft *d) {
    int n = 0, first = 0;
    for (int k = 0; k < d->p->n_assigns; k++) {
        if (must_wait(d, first, k)) {
            first = k;
            n++;
        }
        d->round[k] = n;
    }
    d->out->n = n + 1;
    return n < CUDA_MAX_ROUNDS;
}

/* Whether assignment k reads what an earlier round has left in its own row of a slot (`from`: which
 * assignment), or what was there before the first (-1). */
static bool reads_old(const draft *d, int k, int slot, int *from) {
    *from = writer(d->p, k, slot);
    return reads(&d->p->assigns[k], slot, false) && (*from < 0 || d->round[*from] < d->round[k]);
}

/* Temporaries that a later round reads have no other place than shared memory. */
static bool find_kept(draft *d) {
    const cuda_program *p = d->p;
    for (int k = 0; k < p->n_assigns; k++)
        for (int s = 0; s < p->n_slots; s++) {
            int from;
            if (p->slots[s].data != NULL || !reads_old(d, k, s, &from)) continue;
            if (from < 0 || (d->is_mixed[s] && !d->is_shared[from])) return false;
            d->is_shared[from] = true;
        }
    return true;
}

/* All rows of a bank have room, so that a graph that changes does not change the launch. */
static void place_shared(draft *d) {
    const cuda_program *p = d->p;
    bool is_wanted[CUDA_MAX_SLOTS];
    memcpy(is_wanted, d->is_mixed, sizeof is_wanted);
    for (int k = 0; k < p->n_assigns; k++) is_wanted[p->assigns[k].slot] |= d->is_shared[k];
    for (int s = 0; s < p->n_slots; s++) {
        d->out->shared[s] = is_wanted[s] ? d->out->n_shared : -1;
        if (is_wanted[s]) d->out->n_shared += p->slots[s].n_rows;
    }
}

/* ---- orders ---- */

static bool put(draft *d, cuda_order order) {
    if (d->n_orders == CUDA_MAX_ORDERS - 1) return false; /* the one behind the last is read */
    d->out->orders[d->n_orders++] = order;
    return true;
}

static bool take_place(draft *d, int slot) {
    for (int k = 0; k < CUDA_MAX_PLACES && d->place[slot] < 0; k++)
        if (!d->is_taken[k]) d->place[slot] = k;
    if (d->place[slot] < 0) return false;
    d->is_taken[d->place[slot]] = true;
    if (d->place[slot] >= d->out->n_places) d->out->n_places = d->place[slot] + 1;
    return true;
}

static void leave_place(draft *d, int slot) {
    if (d->place[slot] >= 0) d->is_taken[d->place[slot]] = false;
    d->place[slot] = -1;
}

/* Whether shared memory has what assignment k finds in its row of a slot. */
static bool is_in_shared(const draft *d, int k, int slot) {
    int from = writer(d->p, k, slot);
    if (from >= 0) return d->is_shared[from];
    return d->out->shared[slot] >= 0 && d->p->slots[slot].n_load >= d->p->n_rows;
}

/* What the round, which begins with assignment k, reads from the device's memory. */
static bool put_loads(draft *d, int k) {
    const cuda_program *p = d->p;
    const int round = d->round[k];
    for (int s = 0; s < p->n_slots; s++) leave_place(d, s);
    for (; k < p->n_assigns && d->round[k] == round; k++)
        for (int s = 0; s < p->n_slots; s++) {
            int from;
            if (d->place[s] >= 0 || !reads_old(d, k, s, &from) || is_in_shared(d, k, s)) continue;
            if (!take_place(d, s)) return false;
            if (!put(d, (cuda_order){.kind = CUDA_LOAD, .at = d->place[s], .slot = s}))
                return false;
        }
    d->out->loaded[round] = d->n_orders;
    return true;
}

static bool put_terms(draft *d, int k) {
    const cuda_assign *a = &d->p->assigns[k];
    for (int t = 0; t < a->n_terms; t++) {
        const cuda_term *term = &a->terms[t];
        const int row = d->out->shared[term->slot], place = d->place[term->slot];
        cuda_order order = {.kind = CUDA_ADD, .at = place, .coef = term->coef};
        if (term->matrix >= 0)
            order = (cuda_order){CUDA_MIX, row, {term->matrix}, {term->coef}};
        else if (is_in_shared(d, k, term->slot))
            order = (cuda_order){CUDA_ADD_SHARED, row, {-1}, {term->coef}};
        if (!put(d, order)) return false;
    }
    return true;
}

/* Whether a later assignment of the round looks into the place of a slot. */
static bool is_needed(const draft *d, int k, int slot) {
    int next = reader(d->p, k, slot, false);
    return next >= 0 && d->round[next] == d->round[k] && !is_in_shared(d, next, slot);
}

/* Whether the slot is assigned to again before anyone could look for it in device memory. */
static bool is_passing(const draft *d, int k, int slot) {
    for (int next = k + 1; next < d->p->n_assigns && d->round[next] == d->round[k]; next++)
        if (d->p->assigns[next].slot == slot) return true;
    return false;
}

static bool put_target(draft *d, int k) {
    const cuda_program *p = d->p;
    int slot = p->assigns[k].slot;
    for (int s = 0; s < p->n_slots; s++)
        if (s == slot || !is_needed(d, k, s)) leave_place(d, s);
    if (is_needed(d, k, slot) && !take_place(d, slot)) return false;
    bool is_stored = p->slots[slot].data != NULL && !is_passing(d, k, slot);
    return put(d, (cuda_order){.kind = CUDA_SET,
                               .at = d->place[slot],
                               .slot = is_stored ? slot : -1,
                               .shared = d->is_shared[k] ? d->out->shared[slot] : -1});
}

static bool put_orders(draft *d) {
    const cuda_program *p = d->p;
    for (int k = 0; k < p->n_assigns; k++) {
        bool begins = k == 0 || d->round[k] != d->round[k - 1];
        if (begins && !put_loads(d, k)) return false;
        if (!put_terms(d, k) || !put_target(d, k)) return false;
        d->out->end[d->round[k]] = d->n_orders;
    }
    return true;
}

static bool have_same_rows(const cuda_program *p) {
    for (int k = 0; k < p->n_assigns; k++)
        if (p->assigns[k].n_rows != p->n_rows) return false;
    return true;
}

void ct_cuda_find_rounds(cuda_program *p) {
    draft d = {.p = p, .out = &p->script};
    for (int s = 0; s < CUDA_MAX_SLOTS; s++) d.place[s] = -1;
    memset(d.out, 0, sizeof *d.out);
    find_mixed(&d);
    bool fits = have_same_rows(p) && find_rounds(&d) && find_kept(&d);
    if (fits) place_shared(&d);
    if (!fits || !put_orders(&d)) d.out->n = 0;
}
