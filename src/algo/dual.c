#include "algo/dual.h"

#include <math.h>

#define MAX_SWEEPS 20000
#define STOP       1e-12

/* Moves v_r to the minimum along its axis; returns by how much it moved. */
static double improve(const double *gram, const double *c, int n, double margin, double *v, int r) {
    double slope = c[r], best = margin;
    for (int s = 0; s < n; s++)
        if (s != r) slope += gram[r * n + s] * v[s];
    if (gram[r * n + r] > 0) best = fmax(margin, -slope / gram[r * n + r]);
    double moved = fabs(best - v[r]);
    v[r] = best;
    return moved;
}

void ct_dual_solve(const double *gram, const double *c, int n, double margin, double *v) {
    for (int r = 0; r < n; r++) v[r] = margin;
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        double moved = 0, largest = 1;
        for (int r = 0; r < n; r++) {
            moved = fmax(moved, improve(gram, c, n, margin, v, r));
            largest = fmax(largest, v[r]);
        }
        if (moved <= STOP * largest) return;
    }
}
