/* What the ranks of a job decide together, of what each of them finds on its own disk. All of them
 * make the same calls in the same order; in one process nothing happens. */
#ifndef CT_RUN_TOGETHER_H
#define CT_RUN_TOGETHER_H

#include "transport/transport.h"

/* The ranks before there is a run, to vote and to tell: of agents it knows nothing. */
ct_status ct_together_meet(const char *transport, double timeout_s, ct_transport **out);

/* What one of the ranks says, or the least of what all say; the largest is ct_transport_vote(). */
ct_status ct_together_hear(ct_transport *transport, int rank, int mine, int *out);
ct_status ct_together_least(ct_transport *transport, int mine, int *out);

/* Nobody goes on alone: a failure anywhere is everybody's. mine: what went wrong here, CT_OK =
 * nothing. Who has not failed gets the status and the words of the first rank that has. */
ct_status ct_together(ct_transport *transport, const ct_error *mine);

#endif
