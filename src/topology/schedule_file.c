/* A schedule from a text file. A line "step" begins a step; the lines after it are its edges:
 *   a b            a and b talk both ways          a > b          a sends to b
 *   a b w          with weight w both ways         a > b w        b takes the part w of what a has
 * # begins a comment. A step either gives all weights or none. Without weights, a step of two-way
 * edges gets Metropolis-Hastings ones; in a step with one-way edges every agent gives equal parts
 * to itself and everyone it sends to. */
#include "topology/schedule_internal.h"

#include <ctype.h>
#include <string.h>

#include "util/budget.h"
#include "util/memory.h"
#include "util/text.h"

typedef struct reader {
    const char *path;
    int n_agents, line;
    ct_arrows *arrows;
    size_t first;   /* arrows of the current step begin here */
    int step;       /* the current one; -1 before the first */
    int n_weighted; /* of its lines */
    int n_unweighted;
    bool has_one_way;
    int *sends, *receives; /* [n_agents] arrows of a step from and to each; 0 between steps */
} reader;

static ct_status refuse(const reader *r, const char *what) {
    return ct_fail(CT_IO, "%s: line %d: %s", r->path, r->line, what);
}

/* Adds the step's arrows to the counts, or takes them away: no step costs more than its arrows. */
static void count(reader *r, int each) {
    for (size_t k = r->first; k < r->arrows->n; k++) {
        r->sends[r->arrows->items[k].from] += each;
        r->receives[r->arrows->items[k].to] += each;
    }
}

/* Weights for a step that gave none. */
static ct_status end_step(reader *r) {
    if (r->step < 0) return CT_OK;
    if (r->n_weighted > 0 && r->n_unweighted > 0)
        return refuse(r, "the step before gives some of its weights but not all");
    count(r, 1);
    for (size_t k = r->first; r->n_weighted == 0 && k < r->arrows->n; k++) {
        ct_arrow *a = &r->arrows->items[k];
        int sends = r->sends[a->from], receives = r->receives[a->to];
        int most = !r->has_one_way && receives > sends ? receives : sends;
        a->weight = 1.0 / (1 + most);
    }
    count(r, -1);
    r->first = r->arrows->n;
    r->n_weighted = r->n_unweighted = 0;
    r->has_one_way = false;
    return CT_OK;
}

/* "a b", "a,b", "a > b", with a weight behind it or not. */
static ct_status read_edge(reader *r, const char *text) {
    int a, b, used = 0;
    double weight = 0;
    bool one_way = strchr(text, '>') != NULL;
    /* nine digits at most, which an int holds */
    int n = sscanf(text, one_way ? "%9d > %9d%n" : "%9d%*[ ,\t]%9d%n", &a, &b, &used);
    bool is_cut = n == 2 && isdigit((unsigned char)text[used]);
    used += (int)strspn(text + used, " \t");
    if (n != 2 || is_cut)
        return refuse(r, "expected \"a b\", \"a > b\", or one of them with a weight");
    bool has_weight = text[used] != '\0';
    if (has_weight && (!ct_parse_double(text + used, &weight) || weight <= 0 || weight > 1))
        return refuse(r, "a weight is a number above 0, at most 1");
    if (a < 0 || b < 0 || a >= r->n_agents || b >= r->n_agents)
        return ct_fail(CT_IO, "%s: line %d: agent %d is not one of 0 .. %d", r->path, r->line,
                       a < 0 || a >= r->n_agents ? a : b, r->n_agents - 1);
    if (a == b) return refuse(r, "an agent is joined to itself");
    if (r->step < 0) return refuse(r, "a line \"step\" comes first");
    ct_arrows_add(r->arrows, r->step, b, a, weight);
    if (!one_way) ct_arrows_add(r->arrows, r->step, a, b, weight);
    r->has_one_way = r->has_one_way || one_way;
    r->n_weighted += has_weight;
    r->n_unweighted += !has_weight;
    return r->arrows->status;
}

static ct_status read_line(void *context, int line, char *text) {
    reader *r = context;
    r->line = line;
    if (strcmp(text, "step") != 0) return read_edge(r, text);
    CT_TRY(end_step(r));
    if ((size_t)(r->step + 2) > CT_MAX_STEP_ROWS / (size_t)r->n_agents)
        return ct_fail(CT_IO, "%s: line %d: more than the %zu steps that %d agents may have",
                       r->path, line, CT_MAX_STEP_ROWS / (size_t)r->n_agents, r->n_agents);
    r->arrows->n_steps = ++r->step + 1;
    return CT_OK;
}

ct_status ct_schedule_make_file(const ct_topology_request *request, ct_arrows *out) {
    if (request->argument == NULL || request->argument[0] == '\0')
        return ct_fail(CT_INVAL, "topology 'schedule' needs a path, as in schedule:steps.txt");
    CT_SCOPED_BLOCK(int) counts = NULL;
    CT_TRY(ct_make(&counts, 2 * (size_t)request->n, "a step of a schedule"));
    reader r = {.path = request->argument,
                .n_agents = request->n,
                .arrows = out,
                .step = -1,
                .sends = counts,
                .receives = counts + request->n};
    CT_TRY(ct_lines_read(r.path, &r, read_line));
    CT_TRY(end_step(&r));
    return r.step >= 0 ? CT_OK : ct_fail(CT_IO, "%s: no step in it", r.path);
}
