/* Base-(k+1) graph (Takezawa, Sato, Bao, Niwa and Yamada, NeurIPS 2023): agents with at most k
 * neighbours in a step hold the exact average after a period, for every n.
 *
 * Cube (their hyper-hypercube), for m agents whose number has no prime factor above k+1: with
 * m = f_0 f_1 ..., f_l <= k+1, step l averages the agents that differ in digit l of their number.
 *
 * Simple: n = sum_l a_l (k+1)^p_l, p_0 > p_1 > ..., 0 < a_l <= k; group V_l has a_l (k+1)^p_l
 * agents.
 *   1. every group averages itself in a cube (as many steps as V_0 needs);
 *   2. for l = 0, 1, ...: every agent of the later groups takes the share
 *      s = |V_l| / (|V_l| + |V_l+1| + ...)
 *      from V_l, in equal parts from a_l agents of it, one of each of its a_l blocks of (k+1)^p_l;
 *      nobody of V_l gives twice;
 *   3. the blocks of V_l average themselves in cubes, while the later groups are still at 2.
 * Base: n = p q with p's prime factors at most k+1 and q's above: p groups of q agents run the
 * simple graph, then q cubes of p agents across them; whichever of the two is shorter is taken.
 * Deviation: the paper's extra edges among agents idle in part 2 are left out. */
#include "topology/schedule_internal.h"

#include "util/text.h"

#define MAX_GROUPS 32 /* digits of n in base k+1 */

/* Agents first, first + stride, ... */
typedef struct range {
    int first, stride, n;
} range;

/* The factor of a cube's step, and the place of its digit; false after the last step. Factors come
 * largest first. */
static bool cube_factor(int n, int base, int step, int *factor, int *place) {
    *place = 1;
    for (int f = base; f >= 2; f--) {
        while (n % f == 0) {
            n /= f;
            *factor = f;
            if (step-- == 0) return true;
            *place *= f;
        }
    }
    return false;
}

static int cube_steps(int n, int base) {
    int n_steps = 0, factor, place;
    while (cube_factor(n, base, n_steps, &factor, &place)) n_steps++;
    return n_steps;
}

/* Step `cube_step` of the cube over a range, into step `step`. */
static void add_cube_step(ct_arrows *out, int step, range r, int base, int cube_step) {
    int factor, place;
    if (!cube_factor(r.n, base, cube_step, &factor, &place)) return;
    for (int i = 0; i < r.n; i++) {
        int digit = i / place % factor;
        for (int d = digit + 1; d < factor; d++)
            ct_arrows_join(out, step, r.first + r.stride * i,
                           r.first + r.stride * (i + (d - digit) * place), 1.0 / factor);
    }
}

typedef struct groups {
    int n;
    range group[MAX_GROUPS];
    int n_blocks[MAX_GROUPS]; /* a_l */
} groups;

static groups split(range all, int base) {
    groups g = {0};
    int power = 1, first = all.first;
    while (power <= all.n / base) power *= base;
    for (int left = all.n; left > 0; power /= base) {
        int blocks = left / power;
        if (blocks == 0) continue;
        g.group[g.n] = (range){first, 1, blocks * power};
        g.n_blocks[g.n++] = blocks;
        first += blocks * power;
        left -= blocks * power;
    }
    return g;
}

static int block_of(const groups *g, int l) {
    return g->group[l].n / g->n_blocks[l];
}

/* Part 2 for group l: the agents after it take their share. */
static void add_share_step(ct_arrows *out, int step, const groups *g, int l) {
    int n_later = 0, first = g->group[l].first + g->group[l].n;
    for (int k = l + 1; k < g->n; k++) n_later += g->group[k].n;
    int blocks = g->n_blocks[l], block = block_of(g, l);
    double share = (double)g->group[l].n / (g->group[l].n + n_later);
    for (int i = 0; i < n_later; i++)
        for (int b = 0; b < blocks; b++)
            ct_arrows_join(out, step, first + i, g->group[l].first + b * block + i, share / blocks);
}

static int simple_steps(int n, int base) {
    groups g = split((range){0, 1, n}, base);
    int n_steps = cube_steps(g.group[0].n, base);
    return g.n == 1 ? n_steps : n_steps + 1 + cube_steps(block_of(&g, 0), base);
}

/* The simple graph over consecutive agents, in steps 0, 1, ... */
static void add_simple(ct_arrows *out, range all, int base) {
    groups g = split(all, base);
    int n_first = cube_steps(g.group[0].n, base);
    for (int m = 0; m < n_first; m++)
        for (int l = 0; l < g.n; l++) add_cube_step(out, m, g.group[l], base, m);
    for (int l = 0; l + 1 < g.n; l++) {
        int block = block_of(&g, l), share = n_first + l;
        add_share_step(out, share, &g, l);
        for (int m = 0; m < cube_steps(block, base); m++)
            for (int b = 0; b < g.n_blocks[l]; b++)
                add_cube_step(out, share + 1 + m, (range){g.group[l].first + b * block, 1, block},
                              base, m);
    }
}

/* The part of n whose prime factors are at most `base`. */
static int smooth_part(int n, int base) {
    int p = 1;
    for (int f = 2; f <= base; f++)
        for (; n % f == 0; n /= f) p *= f;
    return p;
}

ct_status ct_schedule_make_base(const ct_topology_request *request, ct_arrows *out) {
    int64_t base = 2;
    int n = request->n;
    if (request->argument != NULL &&
        (!ct_parse_i64(request->argument, &base) || base < 2 || base > CT_MAX_AGENTS))
        return ct_fail(CT_INVAL, "schedule '%s:%s': expected k+1, 2 or more, as in base:2",
                       request->name, request->argument);
    int b = (int)base, p = smooth_part(n, b), q = n / p, n_simple = simple_steps(q, b);
    if (q == 1) {
        for (int m = 0; m < cube_steps(n, b); m++) add_cube_step(out, m, (range){0, 1, n}, b, m);
    } else if (simple_steps(n, b) < n_simple + cube_steps(p, b)) {
        add_simple(out, (range){0, 1, n}, b);
    } else {
        for (int group = 0; group < p; group++) add_simple(out, (range){group * q, 1, q}, b);
        for (int m = 0; m < cube_steps(p, b); m++)
            for (int j = 0; j < q; j++) add_cube_step(out, n_simple + m, (range){j, q, p}, b, m);
    }
    if (out->n_steps == 0) out->n_steps = 1; /* a single agent talks to nobody */
    return CT_OK;
}
