#include "util/fixed.h"

#include <math.h>

#define UNIT   0x1p80 /* a sum of 1 */
#define DIGITS 24     /* bits of a float's significand */

__extension__ typedef unsigned __int128 whole;

ct_status ct_fixed_add(const float *x, size_t n, ct_fixed *sums) {
    for (size_t k = 0; k < n; k++) {
        double value = (double)x[k];
        if (!(fabs(value) < CT_FIXED_LIMIT))
            return ct_fail(CT_DIVERGED, "value %zu of a model is %g, which no mean is taken of", k,
                           value);
        sums[k] += (ct_fixed)(value * UNIT);
    }
    return CT_OK;
}

bool ct_fixed_is_sum(ct_fixed sum, int count) {
    ct_fixed most = (ct_fixed)(CT_FIXED_LIMIT * UNIT) * count;
    return sum > -most && sum < most;
}

/* Zeros before the first bit of a number that is not 0. */
static int leading_zeros(whole value) {
    uint64_t high = (uint64_t)(value >> 64);
    return high != 0 ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)value);
}

static float mean_of(ct_fixed sum, unsigned count) {
    if (sum == 0) return 0;
    whole value = sum < 0 ? -(whole)sum : (whole)sum;
    int up = leading_zeros(value); /* so that the quotient has digits to spare */
    value <<= up;
    whole quotient = value / count;
    bool is_cut = value % count != 0;
    int down = 128 - leading_zeros(quotient) - DIGITS;
    whole rest = quotient & (((whole)1 << down) - 1), half = (whole)1 << (down - 1);
    uint32_t digits = (uint32_t)(quotient >> down);
    if (rest > half || (rest == half && (is_cut || (digits & 1) != 0))) digits++;
    float mean = ldexpf((float)digits, down - up - 80);
    return sum < 0 ? -mean : mean;
}

void ct_fixed_mean(const ct_fixed *sums, size_t n, int count, float *out) {
    for (size_t k = 0; k < n; k++) out[k] = mean_of(sums[k], (unsigned)count);
}
