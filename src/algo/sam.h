/* Sharpness-aware gradients (--sam RHO): SAM (Foret, Kleiner, Mobahi and Neyshabur, ICLR 2021), for any
 * algorithm. Instead of the gradient at x an agent takes the one at the worst point nearby, with the
 * same samples:                                                                     all [n x P]
 *   e = rho g(x) / |g(x)|              |.| over all parameters of an agent
 *   g = g(x + e) + weight_decay x
 * g(.) is the gradient of the whole objective, without decay. With CCL both passes contrast with the
 * same cross-features and class sums; the losses that are logged are those at x. Batchnorm's running
 * statistics follow the first pass alone.
 * Cross-gradients (cross_gradients.h) are treated alike, edge by edge: that of model x_j on batch d_i
 * is taken at x_j + rho c / |c|, where c is the one at x_j.
 * SADDLe (Choudhary, Aketi and Roy, WACV 2025) is qg-dsgdm (Q-SADDLe) or ngc (N-SADDLe) with --sam;
 * DFedSAM (Shi et al., ICML 2023) is dfedavgm with --sam and --momentum 0.
 * No program of the authors of SADDLe or DFedSAM was found, and of their papers only the abstracts were
 * read: how N-SADDLe treats cross-gradients is our reading. A public program with DFedSAM in it takes
 * SAM's own (rho 0.05, one norm over all tensors, as here) with momentum from zero in every round. */
#ifndef CT_ALGO_SAM_H
#define CT_ALGO_SAM_H

#include "backend/backend.h"

struct ct_agents;

typedef struct ct_sam {
    double radius;   /* rho, given by the caller; 0: gradients at x */
    ct_bank at;      /* [n] x + e */
    ct_bank losses;  /* [n][CT_LOSS_FIELDS] of the second pass: nobody looks */
    ct_bank running; /* [n] its batchnorm statistics: nobody looks */
    ct_sparse scale; /* [n x n] rho / |g| on the diagonal */
} ct_sam;

ct_status ct_sam_create(struct ct_agents *a);
void ct_sam_free(ct_sam *sam);

/* a->g, computed at `at` without decay, becomes the sharpness-aware one. The work and the objective
 * are those of the first pass. */
ct_status ct_sam_gradient(struct ct_agents *a, const ct_bank *at, const ct_work *work,
                          const ct_objective *objective);

/* scale = rho / |row| for the first n_rows of g, 0 for a row of zeros and for all others. */
ct_status ct_sam_scale(struct ct_agents *a, const ct_bank *g, int n_rows, ct_sparse *scale);

#endif
