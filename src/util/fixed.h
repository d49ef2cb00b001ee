/* Sums and means of floats that do not depend on the order of their terms: 128-bit fixed point. Whoever
 * adds whom first, one process over all rows or neighbours along a tree, gets the same bits.
 *
 *   sum  = sum_i trunc(x_i * 2^80)       exact: no term is rounded by another
 *   mean = round(sum / count) * 2^-80    once, to the nearest float, ties to even
 *
 * Values below 2^-56 lose their last bits, the same ones everywhere. A model with a value of 2^31 has
 * diverged; with that limit 2^16 terms (CT_MAX_AGENTS) cannot overflow, in any order. */
#ifndef CT_UTIL_FIXED_H
#define CT_UTIL_FIXED_H

#include "util/status.h"

__extension__ typedef __int128 ct_fixed;

#define CT_FIXED_LIMIT     0x1p31 /* values must be smaller than this */
#define CT_FIXED_MAX_TERMS 65536

/* sums[k] += x[k]. CT_DIVERGED: a value is not finite, or too large; then sums are not to be used. */
ct_status ct_fixed_add(const float *x, size_t n, ct_fixed *sums);

/* Could be one of so many terms: adding as many as there may be cannot overflow. */
bool ct_fixed_is_sum(ct_fixed sum, int count);

/* out[k] = sums[k] / count, correctly rounded; count is 1 .. CT_FIXED_MAX_TERMS. */
void ct_fixed_mean(const ct_fixed *sums, size_t n, int count, float *out);

#endif
