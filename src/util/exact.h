/* Sums of doubles without rounding: whatever the order and however they are put together, the same
 * bits. A sum is one long number in fixed point,
 *   s = sum_k limb[k] 2^(32 k - CT_EXACT_BELOW)      wide enough for doubles, their squares, and
 * squares of sums; limbs are signed and carry only now and then. After Kulisch, "Computer Arithmetic
 * and Validity" (2008). */
#ifndef CT_UTIL_EXACT_H
#define CT_UTIL_EXACT_H

#include "util/text.h"

#define CT_EXACT_BELOW 2176 /* bits behind the point: the square of 2^-1074 ends at bit 2148 */
#define CT_EXACT_LIMBS 137  /* as many bits before the point, and a limb for the sign */
#define CT_EXACT_COUNT ((uint64_t)1 << 40) /* the most numbers in a sum */

typedef struct ct_exact {
    int64_t limb[CT_EXACT_LIMBS];
    uint32_t n_loose; /* additions since limbs were last below 2^32 */
} ct_exact;           /* zeroed: 0 */

/* s += x, s += x^2; x is finite. */
void ct_exact_add(ct_exact *sum, double x);
void ct_exact_add_square(ct_exact *sum, double x);
void ct_exact_merge(ct_exact *into, const ct_exact *other);

/* The nearest double, of two the even one; infinite where it is too large. */
double ct_exact_value(const ct_exact *sum);
/* sqrt(n squares - sum^2) / n, the difference exact: the standard deviation of n >= 1 numbers. */
double ct_exact_deviation(const ct_exact *sum, const ct_exact *squares, uint64_t n);
/* So can n >= 1 doubles sum up: neither is too large, no square is missing. */
bool ct_exact_is_possible(const ct_exact *sum, const ct_exact *squares, uint64_t n);

/* "[-]<hexadecimal digits>@<limb of the last eight>", the same text for the same number. */
void ct_exact_print(const ct_exact *sum, ct_text *out);
/* false, and nothing is written: not such a text. */
bool ct_exact_parse(const char *text, ct_exact *out);

#endif
