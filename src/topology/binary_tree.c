/* Binary trees over agents 0 .. n-1 as all-reduce libraries use them (Sanders, Speck and Traeff,
 * "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009): agent i > 0 with
 * lowest bit b has the parent (i - b) | 2b or, where that is no agent, i - b; agent 0 is the root
 * and odd agents are leaves. The second tree is the first one mirrored (n even) or moved on by one
 * (n odd), so that who relays for others in one tree is (all but one) a leaf of the other. */
#include "topology/topology_internal.h"

static int parent_of(int i, int n) {
    int bit = i & -i, up = (i ^ bit) | (bit << 1);
    return up < n ? up : i ^ bit;
}

static int moved(int i, int n) {
    return n % 2 == 0 ? n - 1 - i : (i + 1) % n;
}

static void add_tree(ct_edge_list *edges, bool is_second) {
    int n = edges->n;
    for (int i = 1; i < n; i++) {
        int j = parent_of(i, n);
        ct_edge_list_add(edges, is_second ? moved(i, n) : i, is_second ? moved(j, n) : j);
    }
}

ct_status ct_topology_binary_tree(int n, bool is_second, ct_topology *out) {
    ct_edge_list edges = {.n = n};
    add_tree(&edges, is_second);
    return ct_edge_list_finish(&edges, out);
}

ct_status ct_topology_make_binary_tree(const ct_topology_request *request, ct_edge_list *out) {
    (void)request;
    add_tree(out, false);
    return CT_OK;
}

ct_status ct_topology_make_double_binary_tree(const ct_topology_request *request,
                                              ct_edge_list *out) {
    (void)request;
    add_tree(out, false);
    add_tree(out, true);
    return CT_OK;
}
