/* One-peer exponential graph (Assran, Loizou, Ballas and Rabbat, ICML 2019): with 2^t the steps of
 * the exponential graph, agent i receives from i - 2^t in step t = 0 .. ceil(log2 n) - 1:
 *   x+_i = 1/2 x_i + 1/2 x_(i - 2^t mod n)
 * Where n is a power of 2 a period ends in the exact average. */
#include "topology/schedule_internal.h"

ct_status ct_schedule_make_one_peer(const ct_topology_request *request, ct_arrows *out) {
    CT_TRY(ct_request_no_argument(request));
    int step = 0;
    for (int hop = 1; hop < request->n; hop *= 2, step++)
        for (int i = 0; i < request->n; i++)
            ct_arrows_add(out, step, (i + hop) % request->n, i, 0.5);
    if (step == 0) out->n_steps = 1; /* a single agent talks to nobody */
    return CT_OK;
}
