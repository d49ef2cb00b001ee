/* Decentralized learning algorithms: one file each, one line in algo_list.h. Everything that is
 * known about an algorithm is in its ct_algo. */
#ifndef CT_ALGO_ALGO_H
#define CT_ALGO_ALGO_H

#include "algo/agents.h"
#include "util/registry.h"

/* The graphs a method is right on. */
typedef enum ct_algo_graphs {
    CT_GRAPHS_BALANCED, /* W may change from step to step, rows and columns sum to 1 */
    CT_GRAPHS_FIXED,    /* W stays */
    CT_GRAPHS_DIRECTED, /* any: columns sum to 1 */
    CT_GRAPHS_UNUSED,   /* W plays no part */
    CT_GRAPHS_AVERAGED, /* as balanced, and columns may sum to 1 on average only */
} ct_algo_graphs;

/* What may be lost (--fault). */
typedef enum ct_algo_losses {
    CT_MAY_LOSE_AGENTS, /* and messages */
    CT_MAY_LOSE_MESSAGES,
    CT_MAY_LOSE_NOTHING,
} ct_algo_losses;

#define CT_MAX_OWN_OPTIONS 4
#define CT_MAX_VARIANTS    3

typedef struct ct_algo {
    const char *name, *text;
    ct_algo_graphs graphs;
    ct_algo_losses may_lose;
    const char *why_not;                 /* it may not lose agents: "its tree would fall apart" */
    const char *why_always;              /* it needs gossip in every iteration; NULL: it does not */
    bool is_simulation;                  /* of a clock of its own: async.h */
    bool may_compress;                   /* it mixes what it shares (share, pull): @compress */
    bool learns_public;                  /* with samples beside the own ones: @public-data */
    bool shares_two;                     /* not x alone (share_also): then not @consensus */
    bool carries_gossip;                 /* momentum takes gossip up: less gamma with @compress */
    const char *repeats_gossip;          /* the form whose momentum keeps all of it: still less */
    double gamma_denser;                 /* default gamma on the paper's denser graphs; 0: 1 */
    const char *buffers[CT_MAX_BUFFERS]; /* names: one row an agent each */
    const char *options[CT_MAX_OWN_OPTIONS]; /* names: no other algorithm's */
    const char *variants[CT_MAX_VARIANTS];   /* forms beside "paper", by @variant; none: one form */
    size_t state_size;                       /* of a->state, zeroed; 0: none */
    /* Takes what is more than that; NULL: nothing. */
    ct_status (*create)(ct_agents *a);
    /* One iteration: from a->x and this iteration's batches to the next a->x. */
    ct_status (*step)(ct_agents *a);
    /* What the state holds, but not the state itself; NULL if there is nothing to free. */
    void (*free)(void *state);
    /* What the next step needs beside the agents' banks: *n numbers, the same in every process,
     * that a checkpoint keeps. NULL if there are none. */
    double *(*host_state)(void *state, size_t *n);
} ct_algo;

/* Another name for an algorithm with a loss. */
typedef struct ct_algo_alias {
    const char *name, *algorithm, *loss, *text;
} ct_algo_alias;

/* By name or alias. Unknown: CT_INVAL with the known ones. */
ct_status ct_algo_find(const char *name, const ct_algo **out);
/* NULL: the name is none. */
const ct_algo_alias *ct_algo_alias_find(const char *name);

/* Every algorithm; every name that ct_algo_find knows: algorithms, then aliases. */
void ct_algo_each(ct_name_visit each, void *context);
void ct_algo_each_name(ct_name_visit each, void *context);

/* The averaging rate on a topology, unless it is given. */
double ct_algo_gamma(const ct_algo *algo, const char *topology);
/* Whether the option is this algorithm's own (@variant: of all that have several forms). */
bool ct_algo_has_option(const ct_algo *algo, const char *option);
/* CT_INVAL: the option is other algorithms' alone; the algorithm has no such form. */
ct_status ct_algo_check_option(const ct_algo *algo, const char *option);
ct_status ct_algo_check_variant(const ct_algo *algo, const char *name);
/* 0: "paper", and whatever the algorithm does not know; k: the k-th of its variants, from 1 on. */
int ct_algo_variant(const ct_algo *algo, const char *name);

/* CT_INVAL where the algorithm is not right: on the schedule, with these faults. */
ct_status ct_algo_check_schedule(const ct_algo *algo, const ct_schedule *schedule);
ct_status ct_algo_check_local_steps(const ct_algo *algo); /* iterations without gossip */
ct_status ct_algo_check_compress(const ct_algo *algo);    /* what is sent is packed */
ct_status ct_algo_check_public(const ct_algo *algo);      /* samples that all agents have */
ct_status ct_algo_check_own_steps(const ct_algo *algo);   /* rates of their own */
ct_status ct_algo_check_sites(const ct_algo *algo);       /* between sites, which come and go */
ct_status ct_algo_check_faults(const ct_algo *algo, const ct_faults *faults);

#endif
