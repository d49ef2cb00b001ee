/* Statistics of comparisons: how sure a difference is, and which of several methods are told apart.
 *
 *   bootstrap   percentiles of the means of resampled differences (Efron, Annals of Statistics 1979)
 *   Friedman    k methods on N blocks, ranks within each (best = 1, ties share):
 *               chi2_F = 12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4),   R_j mean ranks;
 *               divided by 1 - sum (t^3 - t) / (N (k^3 - k)) over ties of t values
 *   Iman and Davenport 1980   F_F = (N - 1) chi2_F / (N (k - 1) - chi2_F), an F of k - 1 and
 *               (k - 1)(N - 1) degrees of freedom
 *   Nemenyi     two methods differ where their mean ranks do by CD = q sqrt(k (k + 1) / (6 N)),
 *               q the studentized range's 0.95 quantile for k and infinite degrees of freedom / sqrt 2
 * As Demsar (JMLR 7, 2006) recommends them for methods over data sets. */
#ifndef CT_STUDY_STATISTICS_H
#define CT_STUDY_STATISTICS_H

#define CT_RESAMPLES    10000
#define CT_MOST_METHODS 512 /* that are ranked */

/* The interval of the mean of x [n] that holds this share of the resampled means; n > 0. */
void ct_bootstrap(const double *x, int n, double share, double *low, double *high);

/* Ranks of values [n], the highest 1; equal ones share, NaN are last and share. Returns
 * the sum of t^3 - t over ties. */
double ct_ranks(const double *values, int n, double *ranks);

typedef struct ct_friedman {
    double chi2, f;    /* f: infinite where all blocks rank alike */
    double p;          /* of f: that methods alike would differ so much */
    double difference; /* Nemenyi's, at 0.05 */
} ct_friedman;
/* values: [n_blocks][n_methods]; ranks: [n_methods] mean ranks. At least 2 of both, at most CT_MOST_METHODS. */
void ct_friedman_test(const double *values, int n_blocks, int n_methods, double *ranks,
                      ct_friedman *out);

/* P(F > x), P(range of k normals > q). */
double ct_f_tail(double x, double a, double b);
double ct_range_tail(double q, int k);
/* Nemenyi's q at 0.05. */
double ct_nemenyi_q(int k);

#endif
