/* What the schedules of this folder share: steps are gathered as arrows, then turned into phases.
 */
#ifndef CT_TOPOLOGY_SCHEDULE_INTERNAL_H
#define CT_TOPOLOGY_SCHEDULE_INTERNAL_H

#include "topology/schedule.h"
#include "topology/topology_internal.h"

/* Agent `to` receives from agent `from` with a weight. What an agent keeps for itself is what it
 * does not give away: 1 - the sum of its arrows. */
typedef struct ct_arrow {
    int step;
    int to, from;
    double weight;
} ct_arrow;

typedef struct ct_arrows {
    ct_arrow *items;
    size_t n;
    int n_steps;
    ct_status status;   /* the first failure; ct_arrows_finish hands it on */
    ct_drawing drawing; /* of steps that are drawn, if there are no others */
} ct_arrows;

/* In step `step` (from 0; n_steps grows with it). */
void ct_arrows_add(ct_arrows *arrows, int step, int to, int from, double weight);
/* Both ways. */
void ct_arrows_join(ct_arrows *arrows, int step, int a, int b, double weight);
void ct_arrows_free(ct_arrows *arrows);

/* Each schedule of schedule_list.h is one such function: the arrows of a period for one seed's
 * agents. A schedule without steps is drawn: `drawing` says how. */
#define SCHEDULE(id, name, text)                                                                   \
    ct_status ct_schedule_make_##id(const ct_topology_request *request, ct_arrows *out);
#include "topology/schedule_list.h"
#undef SCHEDULE

/* CT_INVAL unless, over a period, everyone's rows reach everyone (of the first seed). */
ct_status ct_schedule_check_reach(ct_schedule *schedule);

#endif
