#include "topology/topology.h"

#include <string.h>

#include "topology/schedule.h"
#include "topology/topology_internal.h"
#include "util/memory.h"
#include "util/registry.h"

typedef struct entry {
    const char *name;
    const char *text;
    bool is_denser;
    ct_status (*make)(const ct_topology_request *request, ct_topology *out);
} entry;

static const entry entries[] = {
#define TOPOLOGY(id, name, is_denser, text) {name, text, is_denser, ct_topology_make_##id},
#include "topology/topology_list.h"
#undef TOPOLOGY
};

#define N_ENTRIES (sizeof entries / sizeof *entries)

void ct_topology_each(void (*each)(void *context, const char *name, const char *text),
                      void *context) {
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
    return found != NULL && found->is_denser;
}

/* Graphs that change are asked for in the same place. */
static void each_graph(void (*each)(void *context, const char *name, const char *text),
                       void *context) {
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
    ct_topology t = {0};
    CT_TRY(found->make(&request, &t));
    int unreached = -1;
    ct_status status = ct_topology_walk(&t, NULL, &unreached);
    if (status == CT_OK && unreached >= 0)
        status = ct_fail(CT_INVAL, "topology '%.100s' of %d agents: agent %d cannot reach agent 0",
                         spec, n, unreached);
    if (status != CT_OK) {
        ct_topology_free(&t);
        return status;
    }
    snprintf(t.name, sizeof t.name, "%.*s", (int)sizeof t.name - 1, spec);
    *out = t;
    return CT_OK;
}

void ct_topology_free(ct_topology *topology) {
    ct_free(topology->neighbour);
    ct_free(topology->begin);
    *topology = (ct_topology){0};
}

bool ct_topology_has_edge(const ct_topology *t, int i, int j) {
    int low = t->begin[i], high = t->begin[i + 1];
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (t->neighbour[middle] == j) return true;
        if (t->neighbour[middle] < j) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}
