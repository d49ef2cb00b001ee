/* What agents tell each other in fewer bytes (--compress): CHOCO-SGD (Koloskova, Stich and Jaggi, ICML
 * 2019; with momentum: Koloskova et al., ICLR 2020). Every agent i has a public copy xh_i of its
 * model, which its neighbours have as well:
 *   q_i   = Q(x_i - xh_i)        all that travels
 *   xh_i <- xh_i + q_i           at agent i and at its neighbours
 * Agents mix what is public, r = W xh - xh instead of W x - x, so that the average of x stays. CCL's
 * cross-features are those of the public copies; class sums travel in 8 bits a value, rounded without
 * bias, and their counts as they are.
 * Who mixes with copies of which moment is the algorithm's: dsgdm.c.
 * Deviation: copies start as the start values, which all agents know, as in CHOCO-SGD's program for
 * convex losses; those for networks, and AdaGossip's, start from zero. Start values of a file (--init)
 * are sent once.
 * Between sites, which come and go, the first xh_i that an edge carries is sent whole: from then on both
 * ends have the same again. */
#ifndef CT_ALGO_COPIES_H
#define CT_ALGO_COPIES_H

#include "transport/transport.h"

struct ct_agents;

typedef struct ct_copies {
    /* given by the caller, who keeps them alive */
    const char *compressor; /* --compress; NULL or "none": models travel as they are */
    const uint64_t *seeds;  /* [n_seeds] of what is random in it */
    bool are_sent_first;    /* neighbours do not know the start values */

    ct_compressor models, sums; /* of rows of x, and of class sums */
    ct_bank *known;             /* xh: own rows, halo rows; a buffer. NULL: there are none */
    ct_bank *also;              /* the same of the algorithm's second bank, from zero on */
    ct_bank packed, packed_sums;
    ct_compress_key *keys;           /* by row of either */
    long iteration;                  /* of the last time models were shared */
    uint32_t n_before;               /* times in this iteration */
    ct_unpacking of_models, of_sums; /* between sites */
    float *values;                   /* [widest of both] scratch of these */
    ct_compress_key *sum_keys;       /* by row of packed_sums, while models still come */
} ct_copies;

/* Which compressors it will be: before anything that depends on how much travels. */
ct_status ct_copies_choose(struct ct_agents *a, const ct_graph *graph);
/* Takes all memory; then the copies, of a->x as it is now. */
ct_status ct_copies_create(struct ct_agents *a);
ct_status ct_copies_start(struct ct_agents *a);
void ct_copies_free(ct_copies *copies);
/* There is a second bank, whose copy is a buffer of this name. From ct_algo.create. */
ct_status ct_copies_add(struct ct_agents *a, const char *name);
/* Halo rows of the copies as their owners have them: a resumed run. Nothing is counted. */
ct_status ct_copies_restore(struct ct_agents *a);

static inline bool ct_copies_are_used(const ct_copies *c) {
    return c->models.kind != NULL;
}
/* Columns of what travels instead of a row of n values. */
static inline size_t ct_copies_width(const ct_copies *c, const ct_compressor *how, size_t n) {
    return ct_copies_are_used(c) ? ct_packed_columns(how) : n;
}

/* xh <- xh + Q(x - xh), here and at the neighbours, unless x has been shared as it is. Between sites
 * neighbours' copies are there when the exchange of a->links.models is finished. */
ct_status ct_copies_share(struct ct_agents *a);
/* The same of the second bank and its copy. */
ct_status ct_copies_share_also(struct ct_agents *a, ct_bank *bank);
/* Between sites: the class sums of a row, on their way as soon as they are there. */
ct_status ct_copies_send_sums(struct ct_agents *a, int row);
/* Class sums to their receivers, rounded. */
ct_status ct_copies_share_sums(struct ct_agents *a);

#endif
