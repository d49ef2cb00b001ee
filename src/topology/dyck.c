#include "topology/topology_internal.h"

enum { N_DYCK = 32 };

/* A cycle of 32 and the chords of LCF notation [-13, 5, -5, 13]^8, as in the paper's figure.
 * Diameter 5, second eigenvalue 0.8090 with weights 1/4. */
ct_status ct_topology_make_dyck(const ct_topology_request *request, ct_edge_list *out) {
    static const int chord[4] = {-13, 5, -5, 13};
    CT_TRY(ct_request_exactly(request, N_DYCK));
    for (int i = 0; i < N_DYCK; i++) {
        ct_edge_list_add(out, i, (i + 1) % N_DYCK);
        ct_edge_list_add(out, i, (i + chord[i % 4] + N_DYCK) % N_DYCK);
    }
    return CT_OK;
}

/* Deviation: the graph the authors' code calls Dyck. Four rings of 8 (A 0-7, B 8-15, C 16-23,
 * D 24-31); even agents of A and C are joined to the agent 8 further on (in B and D), odd ones of A
 * and B to the one 16 further on (in C and D). Diameter 6, second eigenvalue 0.8536. */
ct_status ct_topology_make_dyck_wacv24(const ct_topology_request *request, ct_edge_list *out) {
    CT_TRY(ct_request_exactly(request, N_DYCK));
    for (int i = 0; i < N_DYCK; i++) {
        int ring = i / 8; /* A, B, C, D */
        ct_edge_list_add(out, i, ring * 8 + (i + 1) % 8);
        if (i % 2 == 0 && (ring == 0 || ring == 2)) ct_edge_list_add(out, i, i + 8);
        if (i % 2 == 1 && (ring == 0 || ring == 1)) ct_edge_list_add(out, i, i + 16);
    }
    return CT_OK;
}
