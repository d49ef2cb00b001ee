/* Lines of memory that are read after a loop which leaves the memory idle: the loop asks for a few of
 * them every time. */
#ifndef CT_BACKEND_CPU_KERNELS_FETCH_H
#define CT_BACKEND_CPU_KERNELS_FETCH_H

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/vector.h"

typedef struct ct_ahead {
    const float *row; /* the first one left, of n_rows rows `step` floats apart */
    size_t step;
    int n_rows, n_lines; /* of 16 floats in a row */
    int line;            /* the next one of the row */
    int at_a_time;
} ct_ahead;

/* All of them are fetched after n_calls calls. */
INLINE ct_ahead ahead_of(const float *row, size_t step, int n_rows, int n_lines, int n_calls) {
    return (ct_ahead){.row = row,
                      .step = step,
                      .n_rows = n_lines > 0 ? n_rows : 0,
                      .n_lines = n_lines,
                      .at_a_time = n_rows * n_lines / (n_calls > 0 ? n_calls : 1) + 1};
}

/* To the first-level cache if they are read at once, else to the second-level one. */
INLINE void fetch_ahead(ct_ahead *a, const bool at_once) {
    for (int k = 0; k < a->at_a_time && a->n_rows > 0; k++) {
        if (at_once)
            __builtin_prefetch(a->row + a->line * CT_LANES);
        else
            __builtin_prefetch(a->row + a->line * CT_LANES, 0, 2);
        if (++a->line < a->n_lines) continue;
        a->line = 0;
        a->row += a->step;
        a->n_rows--;
    }
}

#endif
