/* Eigenvalues of a symmetric doubly stochastic W [n x n]: the largest is 1, its vector constant.
 * Both ways end in a symmetric tridiagonal matrix T whose eigenvalues are counted by Sturm's
 * sequence and found by bisection (Golub and Van Loan, Matrix Computations, 8.3 to 8.5, 10.1):
 *   dense    T = Q' W Q by Householder reflections: all of W's eigenvalues
 *   Lanczos  T = V' W V with V spanning {v, Wv, W^2 v, ...}, every vector kept orthogonal to the
 *            constant one: T's ends tend to lambda_2 and lambda_min. The other vectors are not kept
 *            orthogonal to each other; that repeats eigenvalues in T but does not move its ends. */
#include "topology/topology_internal.h"

#include <math.h>

#include "util/memory.h"
#include "util/rng.h"

/* Lanczos stops when neither end has moved by more than this while T grew by a quarter, or when
 * this many entries have been visited (seconds). Only rings and chains of more than about 10,000
 * agents reach that limit; lambda_2 is then still right to about 1e-7. */
#define LANCZOS_TOLERANCE 1e-13
#define LANCZOS_MAX_WORK  2e9

/* T: diagonal d [m], beside it e [m], where e[i] couples i and i + 1 and the last one is unused. */
typedef struct tridiagonal {
    double *d, *e;
    int m;
} tridiagonal;

static void tridiagonal_free(tridiagonal *t) {
    ct_free(t->d);
    ct_free(t->e);
}

static ct_status tridiagonal_create(int m, tridiagonal *out) {
    out->m = m;
    CT_TRY(ct_make(&out->d, (size_t)m, "a spectrum"));
    return ct_make(&out->e, (size_t)m, "a spectrum");
}

/* How many eigenvalues of T are less than x: the negative pivots of T - xI = L D L'. */
static int count_below(const tridiagonal *t, double x) {
    int n_below = 0;
    double pivot = 1.0;
    for (int i = 0; i < t->m; i++) {
        double coupling = i == 0 ? 0.0 : t->e[i - 1] * t->e[i - 1];
        pivot = t->d[i] - x - coupling / pivot;
        if (pivot == 0.0)
            pivot = 1e-300; /* x is an eigenvalue of a leading block: step beside it */
        n_below += pivot < 0.0;
    }
    return n_below;
}

/* The eigenvalue with k smaller ones; W's all lie in [-1, 1]. */
static double eigenvalue(const tridiagonal *t, int k) {
    double low = -1.5, high = 1.5;
    while (high - low > 4e-16) {
        double middle = 0.5 * (low + high);
        if (middle == low || middle == high) break;
        if (count_below(t, middle) <= k)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

static double dot(const double *x, const double *y, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Clears column k of the symmetric a [n][n] below its subdiagonal by the reflection
 * H = I - v v'/h, h = v'v/2, and applies H from both sides to the block behind it:
 *   p = A v/h,  q = p - (v'p/2h) v,  A <- A - v q' - q v'.    v, q [n] are workspace. */
static double reflect_column(double *a, size_t n, size_t k, double *v, double *q) {
    int m = (int)(n - k - 1); /* size of the block, which begins at (k + 1, k + 1) */
    double *block = a + (k + 1) * n + k + 1;
    for (int i = 0; i < m; i++) v[i] = a[(k + 1 + (size_t)i) * n + k];
    double norm = sqrt(dot(v, v, m));
    if (norm == 0.0) return 0.0;
    double beside = v[0] > 0.0 ? -norm : norm;
    v[0] -= beside;
    double h = 0.5 * dot(v, v, m);
    for (int i = 0; i < m; i++) q[i] = dot(block + (size_t)i * n, v, m) / h;
    double half = dot(v, q, m) / (2.0 * h);
    for (int i = 0; i < m; i++) q[i] -= half * v[i];
    for (int i = 0; i < m; i++) {
        double *row = block + (size_t)i * n;
        for (int j = 0; j < m; j++) row[j] -= v[i] * q[j] + q[i] * v[j];
    }
    return beside;
}

ct_status ct_spectrum_dense(const ct_sparse *w, double *lambda_2, double *lambda_min) {
    size_t n = (size_t)w->n_rows;
    CT_SCOPED(tridiagonal) t = {0};
    CT_SCOPED_BLOCK(double) a = NULL; /* W as a full matrix [n][n] */
    CT_SCOPED_BLOCK(double) v = NULL;
    CT_SCOPED_BLOCK(double) q = NULL;
    CT_TRY(tridiagonal_create((int)n, &t));
    CT_TRY(ct_make(&a, n * n, "a spectrum"));
    CT_TRY(ct_make(&v, n, "a spectrum"));
    CT_TRY(ct_make(&q, n, "a spectrum"));
    for (size_t i = 0; i < n; i++)
        for (int k = w->begin[i]; k < w->begin[i + 1]; k++)
            a[i * n + (size_t)w->column[k]] = w->value[k];
    for (size_t k = 0; k < n; k++) {
        t.d[k] = a[k * n + k];
        if (k + 1 < n) t.e[k] = reflect_column(a, n, k, v, q);
    }
    *lambda_2 = eigenvalue(&t, (int)n - 2);
    *lambda_min = eigenvalue(&t, 0);
    return CT_OK;
}

/* Takes the constant part out of x and returns the length of the rest. */
static double deflate(double *x, int n) {
    double mean = 0.0;
    for (int i = 0; i < n; i++) mean += x[i];
    mean /= n;
    for (int i = 0; i < n; i++) x[i] -= mean;
    return sqrt(dot(x, x, n));
}

/* y = W x - beta * y: y holds the vector before x. */
static void multiply(const ct_sparse *w, const double *x, double beta, double *y) {
    for (int i = 0; i < w->n_rows; i++) {
        double sum = 0.0;
        for (int k = w->begin[i]; k < w->begin[i + 1]; k++) sum += w->value[k] * x[w->column[k]];
        y[i] = sum - beta * y[i];
    }
}

/* One step: from v (unit) and the one before, the next column of T and the next unit vector, which
 * takes the place of the one before. Returns false where the space is exhausted. */
static bool lanczos_step(const ct_sparse *w, double *v, double *before, tridiagonal *t) {
    int n = w->n_rows, m = t->m;
    multiply(w, v, m == 0 ? 0.0 : t->e[m - 1], before);
    double alpha = dot(v, before, n);
    for (int i = 0; i < n; i++) before[i] -= alpha * v[i];
    double beta = deflate(before, n);
    t->d[m] = alpha;
    t->e[m] = beta;
    t->m++;
    if (beta < 1e-14) return false; /* the rounding of a vector of length 1 */
    for (int i = 0; i < n; i++) before[i] /= beta;
    return true;
}

static void find_ends(const tridiagonal *t, double *lambda_2, double *lambda_min) {
    *lambda_2 = eigenvalue(t, t->m - 1);
    *lambda_min = eigenvalue(t, 0);
}

/* Grows T from the unit vector v until its ends rest. */
static void lanczos(const ct_sparse *w, int max_steps, double *v, double *before, tridiagonal *t,
                    double *lambda_2, double *lambda_min) {
    int n_next = 40; /* when to look next */
    *lambda_2 = *lambda_min = 2.0;
    t->m = 0;
    for (bool more = true; more && t->m < max_steps;) {
        more = lanczos_step(w, v, before, t);
        double *swapped = v;
        v = before;
        before = swapped;
        if (t->m < n_next || !more) continue;
        n_next = t->m + t->m / 4;
        double previous_2 = *lambda_2, previous_min = *lambda_min;
        find_ends(t, lambda_2, lambda_min);
        if (fabs(*lambda_2 - previous_2) < LANCZOS_TOLERANCE &&
            fabs(*lambda_min - previous_min) < LANCZOS_TOLERANCE)
            return;
    }
    find_ends(t, lambda_2, lambda_min);
}

ct_status ct_spectrum_lanczos(const ct_sparse *w, double *lambda_2, double *lambda_min) {
    int n = w->n_rows;
    double max_steps = fmin(4.0 * n + 100.0, LANCZOS_MAX_WORK / ((double)n + w->begin[n]) + 100.0);
    CT_SCOPED(tridiagonal) t = {0};
    CT_SCOPED_BLOCK(double) v = NULL;
    CT_SCOPED_BLOCK(double) before = NULL;
    CT_TRY(tridiagonal_create((int)max_steps, &t));
    CT_TRY(ct_make(&v, (size_t)n, "a spectrum"));
    CT_TRY(ct_make(&before, (size_t)n, "a spectrum"));
    ct_rng rng;
    ct_rng_init(&rng, 0, CT_RNG_TOPOLOGY, 1, 0, 0); /* agent 0 is the random graphs' own */
    for (int i = 0; i < n; i++) v[i] = ct_rng_normal(&rng);
    double length = deflate(v, n);
    for (int i = 0; i < n; i++) v[i] /= length;
    lanczos(w, (int)max_steps, v, before, &t, lambda_2, lambda_min);
    return CT_OK;
}
