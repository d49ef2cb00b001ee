/* Which iterations gossip. With h from `first` on, doubled as often as it takes to reach `last`, the
 * run is cut into as many equal stages; stage j has h_j = min(first 2^j, last). Counted from the
 * beginning of its stage, every h_j-th iteration gossips. */
#include "topology/schedule.h"

#include <string.h>

#include "util/text.h"

#define MAX_LOCAL_STEPS 1000000

static bool parse_count(const char *text, int *out) {
    int64_t value;
    if (!ct_parse_i64(text, &value) || value < 1 || value > MAX_LOCAL_STEPS) return false;
    *out = (int)value;
    return true;
}

ct_status ct_local_steps_parse(const char *text, ct_local_steps *out) {
    char first[32];
    const char *colon = strchr(text, ':'), *last = colon != NULL ? colon + 1 : text;
    size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);
    ct_local_steps s = {0};
    snprintf(first, sizeof first, "%.*s", (int)n, text);
    if (n >= sizeof first || !parse_count(first, &s.first) || !parse_count(last, &s.last))
        return ct_refuse("local-steps",
                         "@local-steps %.40s: must be a number from 1 to %d, or two such as 1:8",
                         text, MAX_LOCAL_STEPS);
    if (s.first > s.last)
        return ct_refuse("local-steps", "@local-steps %s: shrinks; it may stay or grow", text);
    *out = s;
    return CT_OK;
}

static int n_stages(const ct_local_steps *s) {
    int n = 1;
    for (long h = s->first; h < s->last; h *= 2) n++;
    return n;
}

static long steps_of(const ct_local_steps *s, int stage) {
    long h = s->first;
    while (stage-- > 0) h *= 2;
    return h < s->last ? h : s->last;
}

/* The stage of an iteration, its first iteration, and the rounds before it. */
typedef struct stage {
    long begin, steps, rounds;
} stage;

static stage find_stage(const ct_local_steps *s, long iteration) {
    int n = n_stages(s), k = 0;
    stage found = {0, s->first, 0};
    for (;; k++) {
        long end = k + 1 < n ? (k + 1) * s->n_iterations / n : iteration + 1;
        found.steps = steps_of(s, k);
        if (iteration < end) return found;
        found.rounds += (end - found.begin) / found.steps;
        found.begin = end;
    }
}

bool ct_local_steps_is_local(const ct_local_steps *s, long iteration) {
    if (s->last <= 1) return false;
    stage at = find_stage(s, iteration);
    return (iteration - at.begin + 1) % at.steps != 0;
}

long ct_local_steps_rounds(const ct_local_steps *s, long iteration) {
    if (s->last <= 1) return iteration;
    stage at = find_stage(s, iteration);
    return at.rounds + (iteration - at.begin) / at.steps;
}
