#include "study/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/rng.h"

/* ---- bootstrap ---- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void ct_bootstrap(const double *x, int n, double share, double *low, double *high) {
    static _Thread_local double means[CT_RESAMPLES];
    ct_rng rng;
    ct_rng_init(&rng, 0, CT_RNG_BOOTSTRAP, 0, 0, 0); /* of all comparisons alike: repeatable */
    for (int b = 0; b < CT_RESAMPLES; b++) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += x[ct_rng_below(&rng, (uint32_t)n)];
        means[b] = sum / n;
    }
    qsort(means, CT_RESAMPLES, sizeof *means, by_value);
    double tail = (1 - share) / 2;
    *low = means[(int)floor(tail * CT_RESAMPLES)];
    *high = means[CT_RESAMPLES - 1 - (int)floor(tail * CT_RESAMPLES)];
}

/* ---- ranks ---- */

double ct_ranks(const double *values, int n, double *ranks) {
    double ties = 0;
    for (int k = 0; k < n; k++) {
        int n_ahead = 0, n_alike = 0, is_first = 1;
        for (int j = 0; j < n; j++) {
            bool both = isnan(values[j]) && isnan(values[k]);
            bool is_alike = values[j] == values[k] || both;
            n_ahead += values[j] > values[k] || (isnan(values[k]) && !isnan(values[j]));
            n_alike += is_alike;
            if (is_alike && j < k) is_first = 0;
        }
        ranks[k] = n_ahead + (n_alike + 1) / 2.0;
        if (is_first) ties += (double)n_alike * n_alike * n_alike - n_alike;
    }
    return ties;
}

/* ---- distributions ---- */

/* The continued fraction of the incomplete beta function (Lentz's way). */
static double beta_fraction(double x, double a, double b) {
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
    double value = d;
    for (int m = 1; m < 10000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double terms[] = {even, odd};
        double factor = 1;
        for (int k = 0; k < 2; k++) {
            d = 1 + terms[k] * d;
            c = 1 + terms[k] / c;
            d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
            if (fabs(c) < 1e-300) c = 1e-300;
            factor = c * d;
            value *= factor;
        }
        if (fabs(factor - 1) < 1e-15) break;
    }
    return value;
}

/* I_x(a, b) */
static double incomplete_beta(double x, double a, double b) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
    return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double ct_f_tail(double x, double a, double b) {
    if (isinf(x)) return 0;
    return x <= 0 ? 1 : incomplete_beta(b / (b + a * x), b / 2, a / 2);
}

/* Phi(z + q) - Phi(z), from the side on which nothing cancels. */
static double normal_between(double z, double q) {
    if (z > 0) return 0.5 * (erfc(z / M_SQRT2) - erfc((z + q) / M_SQRT2));
    return 0.5 * (erfc(-(z + q) / M_SQRT2) - erfc(-z / M_SQRT2));
}

/* 1 - k int phi(z) (Phi(z + q) - Phi(z))^(k - 1) dz, z the smallest of the k; the trapezoid rule,
 * which is exact to rounding for what falls off as this does. */
double ct_range_tail(double q, int k) {
    const double step = 1.0 / 64;
    double sum = 0;
    for (int i = -1024; i <= 1024; i++) {
        double z = i * step;
        sum += exp(-z * z / 2) * pow(normal_between(z, q), k - 1);
    }
    return 1 - k * sum * step / sqrt(2 * M_PI);
}

double ct_nemenyi_q(int k) {
    double low = 0, high = 20;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (ct_range_tail(middle, k) > 0.05)
            low = middle;
        else
            high = middle;
    }
    return low / M_SQRT2;
}

/* ---- Friedman ---- */

void ct_friedman_test(const double *values, int n_blocks, int n_methods, double *ranks,
                      ct_friedman *out) {
    double n = n_blocks, k = n_methods, ties = 0, squares = 0;
    double own[CT_MOST_METHODS];
    for (int j = 0; j < n_methods; j++) ranks[j] = 0;
    for (int b = 0; b < n_blocks; b++) {
        ties += ct_ranks(values + (size_t)b * (size_t)n_methods, n_methods, own);
        for (int j = 0; j < n_methods; j++) ranks[j] += own[j] / n;
    }
    for (int j = 0; j < n_methods; j++) squares += ranks[j] * ranks[j];
    double untied = 1 - ties / (n * (k * k * k - k));
    out->chi2 = untied > 0 ? 12 * n / (k * (k + 1)) * (squares - k * (k + 1) * (k + 1) / 4) / untied
                           : 0; /* all alike in all blocks */
    double left = n * (k - 1) - out->chi2;
    out->f = left > 1e-9 ? (n - 1) * out->chi2 / left : INFINITY;
    out->p = ct_f_tail(out->f, k - 1, (k - 1) * (n - 1));
    out->difference = ct_nemenyi_q(n_methods) * sqrt(k * (k + 1) / (6 * n));
}
