#include "topology/topology.h"

#include <string.h>

#include "topology/schedule.h"
#include "topology/topology_internal.h"
#include "util/memory.h"
#include "util/registry.h"

typedef struct entry {
    const char *name;
    const char *text;
    unsigned traits;
    ct_status (*make)(const ct_topology_request *request, ct_edge_list *out);
} entry;

static const entry entries[] = {
#define TOPOLOGY(id, name, traits, text) {name, text, traits, ct_topology_make_##id},
#include "topology/topology_list.h"
#undef TOPOLOGY
};

#define N_ENTRIES (sizeof entries / sizeof *entries)

void ct_topology_each(ct_name_visit each, void *context) {
    for (size_t i = 0; i < N_ENTRIES; i++) each(context, entries[i].name, entries[i].text);
}

/* The entry whose name is the part of `spec` before the colon. */
static const entry *find_entry(const char *spec) {
    for (size_t i = 0; i < N_ENTRIES; i++)
        if (ct_spec_is(spec, entries[i].name)) return &entries[i];
    return NULL;
}

bool ct_topology_is_denser(const char *spec) {
    const entry *found = find_entry(spec);
    return found != NULL && (found->traits & CT_IS_DENSER) != 0;
}

/* Graphs that change are asked for in the same place. */
static void each_graph(ct_name_visit each, void *context) {
    ct_topology_each(each, context);
    ct_schedule_each(each, context);
}

ct_status ct_topology_create(const char *spec, int n, uint64_t seed, ct_topology *out) {
    const entry *found = find_entry(spec);
    if (found == NULL) return ct_unknown_name("topology", spec, NULL, each_graph);
    if (n < 1 || n > CT_MAX_AGENTS)
        return ct_fail(CT_INVAL, "topology '%.100s' of %d agents: must be 1 .. %d", spec, n,
                       CT_MAX_AGENTS);
    const char *colon = strchr(spec, ':');
    ct_topology_request request = {
        .name = found->name, .argument = colon == NULL ? NULL : colon + 1, .n = n, .seed = seed};
    CT_SCOPED(ct_topology) t = {0};
    CT_SCOPED(ct_edge_list) edges = {.n = n};
    if ((found->traits & CT_TAKES_ARGUMENT) == 0) CT_TRY(ct_request_no_argument(&request));
    CT_TRY(found->make(&request, &edges));
    const char *file = edges.file;
    CT_TRY(ct_edge_list_finish(&edges, &t));
    CT_TRY(ct_topology_connected(file != NULL ? CT_IO : CT_INVAL, file != NULL ? file : spec, &t));
    snprintf(t.name, sizeof t.name, "%.*s", (int)sizeof t.name - 1, spec);
    ct_move(out, &t);
    return CT_OK;
}

ct_status ct_topology_alloc(int n, int n_entries, ct_topology *out) {
    CT_SCOPED(ct_topology) t = {.n = n};
    CT_TRY(ct_make(&t.begin, (size_t)n + 1, "a graph's agents"));
    CT_TRY(ct_make(&t.neighbour, (size_t)n_entries, "a graph's edges"));
    ct_move(out, &t);
    return CT_OK;
}

void ct_topology_free(ct_topology *topology) {
    ct_free(topology->neighbour);
    ct_free(topology->begin);
    *topology = (ct_topology){0};
}

bool ct_topology_has_edge(const ct_topology *t, int i, int j) {
    return ct_sorted_find(t->neighbour + t->begin[i], ct_topology_degree(t, i), j) >= 0;
}
