#include "report/report_internal.h"

#include <math.h>

#include "util/memory.h"

typedef struct builder {
    const ct_report *report;
    const ct_curve_spec *spec;
    double *next; /* unused rest of the values */
    int *cursor;  /* [n_runs] the next row of each run of the group at hand */
} builder;

void ct_curve_set_free(ct_curve_set *set) {
    ct_free(set->curves);
    ct_free(set->strands);
    ct_free(set->values);
    *set = (ct_curve_set){0};
}

static double *take(builder *b, int n) {
    double *values = b->next;
    b->next += n;
    return values;
}

static bool has_point(const ct_curve_spec *spec, const ct_record_row *row) {
    return isfinite(row->value[spec->x]) && isfinite(row->value[spec->y]);
}

static bool is_unknown(const ct_record *run, const ct_curve_spec *spec) {
    if (!spec->skips_zero) return false;
    for (int e = 0; e < run->n_epochs; e++)
        if (isfinite(run->epochs[e].value[spec->y]) && run->epochs[e].value[spec->y] != 0)
            return false;
    return true;
}

static ct_points points_of(builder *b, const ct_record *run) {
    ct_points p = {.x = take(b, run->n_epochs), .y = take(b, run->n_epochs)};
    for (int e = 0; e < run->n_epochs; e++) {
        if (!has_point(b->spec, &run->epochs[e])) continue;
        p.x[p.n] = run->epochs[e].value[b->spec->x];
        p.y[p.n++] = run->epochs[e].value[b->spec->y];
    }
    return p;
}

static const ct_record *run_of(const builder *b, const ct_report_group *g, int k) {
    return &b->report->runs[g->runs[k]];
}

/* The lowest epoch that some run's cursor stands at; infinity at the end. */
static double next_epoch(const builder *b, const ct_report_group *g) {
    double epoch = INFINITY;
    for (int k = 0; k < g->n_runs; k++) {
        const ct_record *run = run_of(b, g, k);
        if (b->cursor[k] < run->n_epochs)
            epoch = fmin(epoch, run->epochs[b->cursor[k]].value[CT_METRIC_EPOCH]);
    }
    return epoch;
}

/* One point of the mean, of the runs whose cursors stand at this epoch, and moves those. */
static void average_epoch(builder *b, const ct_report_group *g, double epoch, ct_curve *c) {
    double x = 0, y = 0, low = INFINITY, high = -INFINITY;
    int n = 0;
    for (int k = 0; k < g->n_runs; k++) {
        const ct_record *run = run_of(b, g, k);
        const ct_record_row *row = &run->epochs[b->cursor[k]];
        if (b->cursor[k] >= run->n_epochs || row->value[CT_METRIC_EPOCH] != epoch) continue;
        b->cursor[k]++;
        if (!has_point(b->spec, row)) continue;
        x += row->value[b->spec->x];
        y += row->value[b->spec->y];
        low = fmin(low, row->value[b->spec->y]);
        high = fmax(high, row->value[b->spec->y]);
        n++;
    }
    if (n == 0) return;
    c->mean.x[c->mean.n] = x / n;
    c->mean.y[c->mean.n] = y / n;
    c->low[c->mean.n] = low;
    c->high[c->mean.n++] = high;
}

static int count_rows(const ct_report *r, const ct_report_group *g) {
    int n = 0;
    for (int k = 0; k < g->n_runs; k++) n += r->runs[g->runs[k]].n_epochs;
    return n;
}

static void build_curve(builder *b, int group, ct_strand *strands, ct_curve *c) {
    const ct_report_group *g = &b->report->groups[group];
    int n_rows = count_rows(b->report, g);
    *c = (ct_curve){.label = g->name,
                    .group = g->key,
                    .style = g->style,
                    .strands = strands,
                    .n_strands = g->n_runs};
    c->mean = (ct_points){.x = take(b, n_rows), .y = take(b, n_rows)};
    c->low = take(b, n_rows);
    c->high = take(b, n_rows);
    for (int k = 0; k < g->n_runs; k++) {
        const ct_record *run = run_of(b, g, k);
        strands[k] = (ct_strand){.seed = run->seed, .points = points_of(b, run)};
        b->cursor[k] = is_unknown(run, b->spec) ? run->n_epochs : 0;
    }
    for (double epoch; isfinite(epoch = next_epoch(b, g));) average_epoch(b, g, epoch, c);
    if (g->n_runs < 2) c->low = c->high = NULL;
}

ct_status ct_curve_set_create(const ct_report *report, const ct_report_facet *facet,
                              const ct_curve_spec *spec, ct_curve_set *out) {
    size_t n_rows = 1, n_runs = (size_t)report->n_runs;
    for (int k = 0; k < report->n_runs; k++) n_rows += (size_t)report->runs[k].n_epochs;
    CT_SCOPED(ct_curve_set) set = {0};
    CT_SCOPED_BLOCK(int) cursor = NULL;
    CT_TRY(ct_make(&set.curves, (size_t)facet->n_groups, "the curves"));
    CT_TRY(ct_make(&set.strands, n_runs, "the curves"));
    CT_TRY(ct_make(&set.values, 6 * n_rows, "the curves"));
    CT_TRY(ct_make(&cursor, n_runs, "the curves"));
    builder b = {.report = report, .spec = spec, .next = set.values, .cursor = cursor};
    ct_strand *strands = set.strands;
    for (int k = 0; k < facet->n_groups; k++) {
        build_curve(&b, facet->groups[k], strands, &set.curves[set.n_curves]);
        strands += report->groups[facet->groups[k]].n_runs;
        if (set.curves[set.n_curves].mean.n > 0) set.n_curves++;
    }
    ct_move(out, &set);
    return CT_OK;
}
