/* IDKD (Ravikumar, Saha, Aketi and Roy: Homogenizing Non-IID Datasets via In-Distribution Knowledge
 * Distillation for Decentralized Learning, TMLR 2024; arXiv:2304.04326): agents tell each other what
 * they think of samples that all of them have (--public-data). After every epoch of --distil-epochs
 *   conf(u)  = max softmax(f(x_i; u) / T)                               of any sample u, T: a temperature
 *   tau_i    = argmax_t  share of own samples with conf >= t  -  share of public ones with conf >= t
 *              (the largest of equals; or --distil-threshold)
 *   t_i(u)   = softmax(f(x_i; u) / T)   if conf(u) >= tau_i, else nothing      what i sends to its neighbours
 *   l_i(u)   = mean of t_j(u) over those j among i and its neighbours that sent something
 * From then on an agent learns from the public samples that have a label l_i, beside its own. With n own
 * samples and m labelled ones, an iteration takes its batch of B own ones and b = B m / n others (rounded,
 * 1 to B, in shuffled passes):
 *   g = ( B g_own + b grad mean_b CE(l_i(u), f(u)) ) / (B + b)
 * so that a pass over the own samples is one over the union (where m <= n). Contrastive terms are those of
 * own samples. Labels that travel are counted: C floats and a number for every sample that is sent.
 * What was read: the paper's abstract and the program of its authors (DeepakTatachar/IDKD), whose epoch is 241
 * of 300. Deviation: batches of own and of public samples are apart, where theirs are mixed. Deviation: their
 * program's threshold is a constant (0.98), and it takes the label of that neighbour which has most samples of
 * the class that it predicts, where the paper has the mean. Deviation: every time labels are made anew, by
 * models; their program passes on its last labels, so that they travel further. Public samples are neither
 * cropped nor flipped. */
#ifndef CT_RUN_PUBLIC_H
#define CT_RUN_PUBLIC_H

#include "data/dataset.h"
#include "transport/transport.h"

struct ct_run;

#define CT_MAX_LABELLINGS 64

typedef struct ct_public {
    bool is_wished;
    ct_dataset data; /* its training part */
    ct_source *source;
    size_t n;                                /* samples */
    int epochs[CT_MAX_LABELLINGS], n_epochs; /* ascending */
    ct_routes routes;                        /* of what agents say */
    ct_bank said;                            /* [n own + halo][n * C] t, zeros: nothing */
    ct_bank labels;                          /* [n own][n * C] l, zeros: none. In checkpoints */
    bool is_listed;                          /* what follows is that of `labels` */
    float *host;                             /* [n own][n * C] likewise */
    float *row;                              /* [n * C] */
    uint32_t *chosen;                        /* [n own][n] the labelled ones, ascending */
    uint32_t *order;                         /* [n own][n] the same as this pass takes them */
    uint32_t *index;                         /* [n own][max_batch] of this iteration's batches */
    size_t *n_chosen;                        /* [n own] */
    long *pass;                              /* [n own] whose order it is; -1: none */
    float *logits;                           /* [n own][max_batch][C] */
    float *targets;                          /* [max_batch][C + 2] */
    float *confidence[2]; /* [most own samples], [n]: of own and of public samples */
    uint32_t *all;        /* [n] 0, 1, ... */
    ct_batch *batches;    /* [n own] */
    ct_job *jobs;         /* [n own] */
    uint32_t *n_said;     /* [rows] */
} ct_public;

/* The epochs after which samples are labelled. */
ct_status ct_public_parse(const char *text, int n_epochs, ct_public *out);
/* Refuses what it does not go with. After the agents. */
ct_status ct_run_create_public(struct ct_run *run);
void ct_public_free(ct_public *public);
/* Before an iteration: labels samples if it is time to, and lays out what is learnt from them. */
ct_status ct_run_use_public(struct ct_run *run, long iteration);

/* The largest t of those that part `own` (n_own values) from `others` best; sorts both. */
float ct_best_threshold(float *own, size_t n_own, float *others, size_t n_others);

#endif
