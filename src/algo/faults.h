/* A network and agents that fail, as --fault says; every draw is keyed by (seed, sender, iteration,
 * receiver, what is sent), so that one process and many see the same failures.
 *
 * Every message has a *mailbox*, a row at its receiver's that holds the last value received: banks
 * that travel have mailbox rows behind the halo rows, and W, the gathering of class sums, jobs on
 * neighbours' models and relaying read them instead of the senders' rows. A lost message leaves its
 * mailbox as it was. Nothing is lost in the first iteration: every mailbox is filled then.
 *
 * A killed agent leaves the graph: its neighbours move its weight to their own (W stays symmetric
 * and doubly stochastic), contrast with it no more and do not gather from it; its rows stay as they
 * were until it comes back with them, as from its checkpoint. */
#ifndef CT_ALGO_FAULTS_H
#define CT_ALGO_FAULTS_H

#include "backend/backend.h"
#include "transport/transport.h"

#define CT_MAX_KILLS 64

typedef struct ct_kill {
    int agent;        /* of every seed */
    long from, until; /* gone in iterations from .. until-1 (from 0); LONG_MAX: for good */
} ct_kill;

typedef struct ct_faults {
    double drop;                          /* probability that a message is lost */
    double straggle, straggle_s, limit_s; /* an agent is late: how likely, how much, what others
                                             wait for; beyond that its messages count as lost */
    ct_kill kills[CT_MAX_KILLS];
    int n_kills;
    /* Sites: agents really come and go. Whether the agent of a row is there now; NULL: as above. What
     * one did not send counts as one's own model, and as no class sums. */
    bool (*is_there)(const void *context, int row);
    const void *context;
    const uint64_t *seeds; /* [n_seeds] */
    int n_agents;          /* of one seed */
} ct_faults;

/* What living with them takes. */
typedef struct ct_fault_room {
    float *row;     /* scratch, as wide as any row that travels */
    float *frozen;  /* rows of dead agents during a step */
    long linked_at; /* the last iteration whose dead the links know; -1: none yet */
} ct_fault_room;

struct ct_agents;

bool ct_faults_alive(const ct_faults *faults, int row, long iteration);
/* The message gets there. what: ct_faults_what() of its bank. */
bool ct_faults_delivers(const ct_faults *faults, long iteration, int from, int to, int what);
int ct_faults_what(const struct ct_agents *a, const ct_bank *bank);

/* Around an iteration's step: agents that are late delay their world; rows of dead agents stay what
 * they are; on a death or a return the links are set anew. */
ct_status ct_faults_create(struct ct_agents *a);
void ct_faults_free(struct ct_agents *a);
ct_status ct_faults_begin(struct ct_agents *a);
ct_status ct_faults_end(struct ct_agents *a);

/* What has arrived goes to the mailboxes: ct_routes.arrived. */
ct_status ct_faults_arrived(void *agents, ct_routes *routes, ct_bank *bank, int message);

#endif
