#include "topology/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/schedule_internal.h"
#include "util/memory.h"
#include "util/registry.h"

#define TOLERANCE 1e-6

typedef struct entry {
    const char *name, *text;
    ct_status (*make)(const ct_topology_request *request, ct_arrows *out);
} entry;

static const entry entries[] = {
#define SCHEDULE(id, name, text) {name, text, ct_schedule_make_##id},
#include "topology/schedule_list.h"
#undef SCHEDULE
};
#define N_ENTRIES (sizeof entries / sizeof *entries)

void ct_schedule_each(ct_name_visit each, void *context) {
    for (size_t i = 0; i < N_ENTRIES; i++) each(context, entries[i].name, entries[i].text);
}

static const entry *find_entry(const char *spec) {
    for (size_t i = 0; i < N_ENTRIES; i++)
        if (ct_spec_is(spec, entries[i].name)) return &entries[i];
    return NULL;
}

bool ct_schedule_is_known(const char *spec) {
    return find_entry(spec) != NULL;
}

/* ---- arrows ---- */

void ct_arrows_add(ct_arrows *arrows, int step, int to, int from, double weight) {
    if (arrows->status != CT_OK) return;
    arrows->status = ct_extend(&arrows->items, arrows->n, "the steps of a schedule");
    if (arrows->status != CT_OK) return;
    arrows->items[arrows->n++] = (ct_arrow){step, to, from, weight};
    if (step >= arrows->n_steps) arrows->n_steps = step + 1;
}

void ct_arrows_join(ct_arrows *arrows, int step, int a, int b, double weight) {
    ct_arrows_add(arrows, step, a, b, weight);
    ct_arrows_add(arrows, step, b, a, weight);
}

void ct_arrows_free(ct_arrows *arrows) {
    ct_free(arrows->items);
    *arrows = (ct_arrows){0};
}

static int compare_arrows(const void *x, const void *y) {
    const ct_arrow *p = x, *q = y;
    if (p->step != q->step) return p->step < q->step ? -1 : 1;
    if (p->to != q->to) return p->to < q->to ? -1 : 1;
    return p->from < q->from ? -1 : p->from > q->from;
}

/* ---- phases ---- */

static void ct_phase_free(ct_phase *phase) {
    ct_topology_free(&phase->sources);
    ct_sparse_free(&phase->w);
}

/* Room for n rows and n_arrows arrows. */
static ct_status phase_alloc(int n, int n_arrows, ct_phase *out) {
    CT_SCOPED(ct_phase) phase = {0};
    CT_TRY(ct_topology_alloc(n, n_arrows, &phase.sources));
    CT_TRY(ct_sparse_create(n, n, n + n_arrows, &phase.w));
    ct_move(out, &phase);
    return CT_OK;
}

/* Row `row` of the phase from its arrows, which are about agent `row - shift`; weights: [n] */
static void fill_row(ct_phase *phase, int row, int shift, const ct_arrow *arrows, int n,
                     double kept, double *weights) {
    ct_topology *t = &phase->sources;
    int *sources = t->neighbour + t->begin[row];
    for (int k = 0; k < n; k++) {
        sources[k] = arrows[k].from + shift;
        weights[k] = arrows[k].weight;
    }
    t->begin[row + 1] = t->begin[row] + n;
    ct_mixing_fill_row(&phase->w, row, sources, weights, n, kept);
}

/* One step for every seed, from one seed's arrows (by receiver, then sender). */
static ct_status create_phase(const ct_arrow *arrows, size_t n_arrows, int n_agents, int n_seeds,
                              ct_phase *out) {
    int n = n_agents * n_seeds;
    size_t first = 0;
    CT_SCOPED_BLOCK(double) given = NULL;
    CT_TRY(ct_make(&given, 2 * (size_t)n_agents, "a step of a schedule"));
    CT_TRY(phase_alloc(n, (int)n_arrows * n_seeds, out));
    for (size_t k = 0; k < n_arrows; k++) given[arrows[k].from] += arrows[k].weight;
    for (int row = 0; row < n; row++) {
        int i = row % n_agents;
        size_t count = 0;
        if (i == 0) first = 0; /* every seed walks the arrows from the start */
        while (first + count < n_arrows && arrows[first + count].to == i) count++;
        fill_row(out, row, row - i, arrows + first, (int)count, 1 - given[i], given + n_agents);
        first += count;
    }
    return CT_OK;
}

ct_status ct_phase_check(const ct_phase *phase, bool *is_balanced) {
    const ct_sparse *w = &phase->w;
    CT_SCOPED_BLOCK(double) column = NULL;
    CT_TRY(ct_make(&column, (size_t)w->n_cols, "the check of a step's weights"));
    *is_balanced = true;
    for (int i = 0; i < w->n_rows; i++) {
        double sum = 0;
        for (int e = w->begin[i]; e < w->begin[i + 1]; e++) {
            sum += w->value[e];
            column[w->column[e]] += w->value[e];
            if (!(w->value[e] >= -TOLERANCE))
                return ct_fail(CT_INVAL, "agent %d gives away more than it has: w(%d,%d) = %g",
                               w->column[e], i, w->column[e], w->value[e]);
        }
        if (!(fabs(sum - 1) <= TOLERANCE)) *is_balanced = false;
    }
    for (int j = 0; j < w->n_cols; j++)
        if (!(fabs(column[j] - 1) <= TOLERANCE))
            return ct_fail(CT_INVAL, "column %d of a step's weights sums to %.9g, not 1", j,
                           column[j]);
    return CT_OK;
}

/* ---- schedules ---- */

void ct_schedule_free(ct_schedule *s) {
    int n = s->period > 0 ? s->period : 1;
    for (int k = 0; s->phases != NULL && k < n; k++) ct_phase_free(&s->phases[k]);
    ct_phase_free(&s->quiet);
    ct_free(s->phases);
    ct_free(s->seeds);
    ct_free(s->order);
    *s = (ct_schedule){0};
}

const ct_phase *ct_schedule_round(ct_schedule *s, long round) {
    if (s->period > 0) return &s->phases[round % s->period];
    s->drawing.draw(s, round, &s->phases[0]);
    return &s->phases[0];
}

const ct_phase *ct_schedule_at(ct_schedule *s, long iteration) {
    if (ct_local_steps_is_local(&s->local, iteration)) return &s->quiet;
    return ct_schedule_round(s, ct_local_steps_rounds(&s->local, iteration));
}

const ct_phase *ct_schedule_widest(ct_schedule *s) {
    const ct_phase *widest = ct_schedule_round(s, 0);
    for (int k = 1; k < s->period; k++)
        if (s->phases[k].sources.begin[s->n] > widest->sources.begin[s->n]) widest = &s->phases[k];
    return widest;
}

static ct_status create_phases(ct_schedule *s, ct_arrows *arrows) {
    CT_TRY(arrows->status);
    s->is_balanced = true;
    if (arrows->n > 0) qsort(arrows->items, arrows->n, sizeof *arrows->items, compare_arrows);
    for (size_t k = 1; k < arrows->n; k++)
        if (compare_arrows(&arrows->items[k - 1], &arrows->items[k]) == 0)
            return ct_fail(CT_INVAL, "step %d has the edge from %d to %d twice",
                           arrows->items[k].step + 1, arrows->items[k].from, arrows->items[k].to);
    size_t first = 0;
    for (int step = 0; step < s->period; step++) {
        size_t count = 0;
        while (first + count < arrows->n && arrows->items[first + count].step == step) count++;
        CT_TRY(create_phase(arrows->items + first, count, s->n_agents, s->n / s->n_agents,
                            &s->phases[step]));
        bool is_balanced = false;
        CT_TRY(ct_phase_check(&s->phases[step], &is_balanced));
        s->is_balanced = s->is_balanced && is_balanced;
        first += count;
    }
    return CT_OK;
}

static ct_status build(ct_schedule *s, const entry *found, const char *argument,
                       const uint64_t *seeds, ct_arrows *arrows) {
    ct_topology_request request = {found->name, argument, s->n_agents, 0};
    size_t n_seeds = (size_t)(s->n / s->n_agents);
    CT_TRY(found->make(&request, arrows));
    s->period = arrows->n_steps;
    CT_TRY(ct_make_copy(&s->seeds, seeds, n_seeds, "a schedule"));
    CT_TRY(ct_make(&s->order, 3 * (size_t)s->n_agents, "a schedule"));
    CT_TRY(ct_make(&s->phases, (size_t)(s->period > 0 ? s->period : 1), "a schedule's steps"));
    if (s->period == 0) {
        s->drawing = arrows->drawing;
        s->is_balanced = !s->drawing.is_averaging;
        CT_TRY(phase_alloc(s->n, s->n * s->drawing.n_sent, &s->phases[0]));
    } else {
        CT_TRY(create_phases(s, arrows));
    }
    return ct_schedule_check_reach(s);
}

ct_status ct_schedule_create(const char *spec, int n_agents, const uint64_t *seeds, int n_seeds,
                             ct_schedule *out) {
    const entry *found = find_entry(spec);
    if (found == NULL) return ct_fail(CT_INVAL, "no schedule '%.100s'", spec);
    if (n_agents < 1 || n_agents > CT_MAX_AGENTS)
        return ct_fail(CT_INVAL, "schedule '%.100s' of %d agents: must be 1 .. %d", spec, n_agents,
                       CT_MAX_AGENTS);
    const char *colon = strchr(spec, ':');
    CT_SCOPED(ct_schedule) s = {.n = n_agents * n_seeds, .n_agents = n_agents};
    CT_SCOPED(ct_arrows) arrows = {0};
    snprintf(s.name, sizeof s.name, "%.*s", (int)sizeof s.name - 1, spec);
    CT_TRY(build(&s, found, colon == NULL ? NULL : colon + 1, seeds, &arrows));
    ct_move(out, &s);
    return CT_OK;
}

ct_status ct_schedule_of_graph(const ct_topology *graph, const ct_sparse *w, int n_agents,
                               ct_schedule *out) {
    CT_SCOPED(ct_schedule)
    s = {.n = graph->n, .n_agents = n_agents, .period = 1, .is_balanced = true};
    memcpy(s.name, graph->name, sizeof s.name);
    CT_TRY(ct_make(&s.phases, 1, "a schedule's steps"));
    CT_TRY(ct_topology_join(graph, 1, &s.phases[0].sources));
    CT_TRY(ct_sparse_join(w, 1, &s.phases[0].w));
    ct_move(out, &s);
    return CT_OK;
}

ct_status ct_schedule_set_local_steps(ct_schedule *s, const ct_local_steps *steps) {
    s->local = *steps;
    return create_phase(NULL, 0, s->n, 1, &s->quiet);
}
