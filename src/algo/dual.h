/* The small quadratic program of a projection onto half-spaces, in its dual form. */
#ifndef CT_ALGO_DUAL_H
#define CT_ALGO_DUAL_H

/*   v = argmin 1/2 v^T K v + c^T v   s.t.  v >= margin                  v, c [n], K [n x n]
 * where K = M M^T and c = M g for the vector g to be projected. By coordinate descent in a fixed
 * order: each v_r in turn goes to its best value, until none moves by more than 1e-12 of the
 * largest. Where K is singular v is one of several, M^T v the same for all. */
void ct_dual_solve(const double *gram, const double *c, int n, double margin, double *v);

#endif
