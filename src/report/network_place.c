/* Where agents are drawn. Distances in the picture follow distances in the graph by stress
 * majorisation (SMACOF): every round puts agent i at
 *     sum_j w_ij (x_j + d_ij (x_i - x_j) / |x_i - x_j|) / sum_j w_ij,   w_ij = d_ij^-2
 * with d_ij hops between i and j, which never makes the stress worse. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "report/charts.h"
#include "util/memory.h"

#define MAX_PLACED 512 /* agents; the table of distances is their square */
#define ROUNDS     250
#define FAR_AWAY   INT16_MAX
#define TWO_PI     6.283185307179586

static bool has_edge(const ct_network *g, int a, int b) {
    for (int e = 0; e < g->n_edges; e++)
        if ((g->edges[e][0] == a && g->edges[e][1] == b) ||
            (g->edges[e][0] == b && g->edges[e][1] == a))
            return true;
    return false;
}

/* Nine in ten agents are joined to the one after them, the last to the first. */
static bool is_circle(const ct_network *g) {
    int n = 0;
    for (int e = 0; e < g->n_edges; e++) {
        int step = g->edges[e][1] - g->edges[e][0];
        n += step == 1 || step == -1 || step == g->n_agents - 1 || step == 1 - g->n_agents;
    }
    return n >= 0.9 * g->n_agents && has_edge(g, 0, g->n_agents - 1);
}

static void place_circle(int n, double *x, double *y) {
    for (int i = 0; i < n; i++) {
        x[i] = n == 1 ? 0.5 : 0.5 + 0.5 * sin(TWO_PI * i / n);
        y[i] = n == 1 ? 0.5 : 0.5 - 0.5 * cos(TWO_PI * i / n);
    }
}

/* Agents are the places of a grid of so many columns, row by row, and all its neighbours are
 * joined. */
static bool is_grid(const ct_network *g, int columns) {
    int rows = g->n_agents / columns, n = 0;
    for (int e = 0; e < g->n_edges; e++) {
        int a = g->edges[e][0], b = g->edges[e][1], step = a < b ? b - a : a - b;
        int low = a < b ? a : b;
        n += (step == 1 && low % columns != columns - 1) || step == columns;
    }
    return n == rows * (columns - 1) + (rows - 1) * columns;
}

static int grid_columns(const ct_network *g) {
    for (int columns = g->n_agents / 2; columns >= 2; columns--)
        if (g->n_agents % columns == 0 && is_grid(g, columns)) return columns;
    return 0;
}

static void place_grid(int n, int columns, double *x, double *y) {
    int rows = n / columns, longest = (rows > columns ? rows : columns) - 1;
    for (int i = 0; i < n; i++) {
        x[i] = 0.5 + ((double)(i % columns) - (columns - 1) / 2.0) / longest;
        y[i] = 0.5 + ((double)(i / columns) - (rows - 1) / 2.0) / longest;
    }
}

/* d: [n][n] hops; queue: [n] */
static void measure_from(const ct_network *g, const int *begin, const int *next, int from,
                         int16_t *d, int *queue) {
    int n = g->n_agents, head = 0, tail = 0;
    int16_t *row = d + (size_t)from * (size_t)n;
    for (int i = 0; i < n; i++) row[i] = FAR_AWAY;
    row[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        int a = queue[head++];
        for (int e = begin[a]; e < begin[a + 1]; e++) {
            if (row[next[e]] != FAR_AWAY) continue;
            row[next[e]] = (int16_t)(row[a] + 1);
            queue[tail++] = next[e];
        }
    }
}

static ct_status measure_hops(const ct_network *g, int16_t *d) {
    int n = g->n_agents;
    CT_SCOPED_BLOCK(int) begin = NULL;
    CT_SCOPED_BLOCK(int) next = NULL;
    CT_TRY(ct_make(&begin, 2 * (size_t)n + 3, "a drawing"));
    CT_TRY(ct_make(&next, 2 * (size_t)g->n_edges + 1, "a drawing"));
    int *queue = begin + n + 2;
    for (int e = 0; e < g->n_edges; e++)
        for (int k = 0; k < 2; k++) begin[g->edges[e][k] + 2]++;
    for (int i = 1; i <= n; i++) begin[i + 1] += begin[i];
    for (int e = 0; e < g->n_edges; e++)
        for (int k = 0; k < 2; k++) next[begin[g->edges[e][k] + 1]++] = g->edges[e][1 - k];
    for (int i = 0; i < n; i++) measure_from(g, begin, next, i, d, queue);
    return CT_OK;
}

/* One agent's better place. */
static void improve(int n, int i, const int16_t *d, double *x, double *y) {
    double sum_x = 0, sum_y = 0, sum_w = 0;
    for (int j = 0; j < n; j++) {
        if (j == i) continue;
        double hops = d[(size_t)i * (size_t)n + (size_t)j], w = 1 / (hops * hops);
        double dx = x[i] - x[j], dy = y[i] - y[j], length = sqrt(dx * dx + dy * dy);
        double stretch = length > 1e-9 ? hops / length : 0;
        sum_x += w * (x[j] + stretch * dx);
        sum_y += w * (y[j] + stretch * dy);
        sum_w += w;
    }
    x[i] = sum_x / sum_w;
    y[i] = sum_y / sum_w;
}

/* Into the unit square, in the middle. */
static void fit_square(int n, double *x, double *y) {
    double low[2] = {x[0], y[0]}, high[2] = {x[0], y[0]};
    for (int i = 1; i < n; i++) {
        low[0] = fmin(low[0], x[i]), high[0] = fmax(high[0], x[i]);
        low[1] = fmin(low[1], y[i]), high[1] = fmax(high[1], y[i]);
    }
    double size = fmax(fmax(high[0] - low[0], high[1] - low[1]), 1e-9);
    for (int i = 0; i < n; i++) {
        x[i] = 0.5 + (x[i] - (low[0] + high[0]) / 2) / size;
        y[i] = 0.5 + (y[i] - (low[1] + high[1]) / 2) / size;
    }
}

static ct_status place_by_stress(const ct_network *g, double *x, double *y) {
    int n = g->n_agents;
    CT_SCOPED_BLOCK(int16_t) d = NULL;
    CT_TRY(ct_make(&d, (size_t)n * (size_t)n, "a drawing"));
    CT_TRY(measure_hops(g, d));
    /* A circle a little out of shape: nothing stays balanced on a symmetry it should leave. */
    place_circle(n, x, y);
    for (int i = 0; i < n; i++) {
        x[i] = 2 * x[i] + 1e-3 * (i % 7);
        y[i] = 2 * y[i] + 1e-3 * (i % 5);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < n; i++) improve(n, i, d, x, y);
    fit_square(n, x, y);
    return CT_OK;
}

ct_status ct_network_place(const ct_network *g, double *x, double *y) {
    int columns = 0;
    if (g->n_agents < 4 || is_circle(g)) {
        place_circle(g->n_agents, x, y);
        return CT_OK;
    }
    columns = grid_columns(g);
    if (columns > 0) {
        place_grid(g->n_agents, columns, x, y);
        return CT_OK;
    }
    if (g->n_agents <= MAX_PLACED) return place_by_stress(g, x, y);
    place_circle(g->n_agents, x, y);
    return CT_OK;
}
