/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). A stream is named by (seed, use, agent, epoch, index); the same name gives
 * the same numbers on every machine, thread, rank and backend, in any order. */
#ifndef CT_UTIL_RNG_H
#define CT_UTIL_RNG_H

#include <stddef.h>
#include <stdint.h>

/* What a stream is for. Part of the key: never renumber, only append. */
typedef enum ct_rng_use {
    CT_RNG_INIT = 1,  /* index = parameter tensor */
    CT_RNG_SHUFFLE,   /* agent, epoch: an agent's visiting order */
    CT_RNG_AUGMENT,   /* agent, epoch, index = sample */
    CT_RNG_PARTITION, /* agent = group, epoch = attempt */
    CT_RNG_TOPOLOGY,  /* random graphs */
    CT_RNG_SYNTHETIC, /* index = sample of a made-up data set */
    CT_RNG_SPLIT,     /* held-out samples */
    CT_RNG_FAULT,     /* agent, epoch = iteration */
    CT_RNG_TEST,      /* the tests' own */
    CT_RNG_COMPRESS,  /* agent, epoch = iteration, index = what is sent */
    CT_RNG_SPEED,     /* agent, epoch = its step, index = of what */
    CT_RNG_PAIRS,     /* epoch = round: who meets whom along a graph's edges */
    CT_RNG_PUBLIC,    /* agent, epoch of labelling, index = pass: public samples */
    CT_RNG_BOOTSTRAP, /* resampled differences of a study */
} ct_rng_use;

typedef struct ct_rng {
    uint32_t key[2];
    uint32_t counter[4]; /* block, index, epoch, agent */
    uint32_t block[4];
    int n_left;
} ct_rng;

void ct_rng_init(ct_rng *rng, uint64_t seed, ct_rng_use use, uint32_t agent, uint32_t epoch,
                 uint32_t index);

uint32_t ct_rng_u32(ct_rng *rng);
double ct_rng_uniform(ct_rng *rng);                 /* [0, 1), 53 bits */
uint32_t ct_rng_below(ct_rng *rng, uint32_t n);     /* 0 .. n-1, without bias; n > 0 */
double ct_rng_normal(ct_rng *rng);                  /* mean 0, deviation 1 */
double ct_rng_log_gamma(ct_rng *rng, double shape); /* log of a Gamma(shape, 1) draw */
void ct_rng_shuffle(ct_rng *rng, uint32_t *items, size_t n);

/* One Philox block: out = philox(counter, key). */
void ct_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
