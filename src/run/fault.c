/* --fault: what is to fail, from words. */
#include "run/fault.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "util/text.h"

static ct_status bad(const ct_faults *f, const char *field) {
    if (strncmp(field, "kill=", 5) == 0)
        return ct_refuse("fault",
                         "'%s' is not kill=AGENT@FROM[-BACK] with an agent from 0 to %d, "
                         "FROM 2 or later and BACK after it",
                         field, f->n_agents - 1);
    return ct_refuse("fault", "'%s' is not drop=P, straggle=P:MS[:LIMIT] or kill=AGENT@FROM[-BACK]",
                     field);
}

static bool probability(const char *text, double *out) {
    return ct_parse_double(text, out) && *out >= 0 && *out < 1;
}

/* P:MS or P:MS:LIMIT; without a limit everyone is waited for. */
static bool take_straggle(char *text, ct_faults *f) {
    char *late = strchr(text, ':');
    if (late == NULL) return false;
    *late++ = '\0';
    char *limit = strchr(late, ':');
    if (limit != NULL) *limit++ = '\0';
    double late_ms = 0, limit_ms = 1e300;
    if (!probability(text, &f->straggle) || !ct_parse_double(late, &late_ms) || late_ms < 0)
        return false;
    if (limit != NULL && (!ct_parse_double(limit, &limit_ms) || limit_ms < 0)) return false;
    f->straggle_s = 1e-3 * late_ms;
    f->limit_s = 1e-3 * limit_ms;
    return true;
}

/* AGENT@FROM or AGENT@FROM-BACK, iterations counted from 1; all agents are there in the first. */
static bool take_kill(char *text, ct_faults *f) {
    char *from = strchr(text, '@');
    if (from == NULL || f->n_kills == CT_MAX_KILLS) return false;
    *from++ = '\0';
    char *back = strchr(from, '-');
    if (back != NULL) *back++ = '\0';
    int64_t agent = 0, first = 0, last = LONG_MAX;
    if (!ct_parse_i64(text, &agent) || agent < 0 || agent >= f->n_agents) return false;
    if (!ct_parse_i64(from, &first) || first < 2) return false;
    if (back != NULL && (!ct_parse_i64(back, &last) || last <= first)) return false;
    f->kills[f->n_kills++] =
        (ct_kill){(int)agent, (long)first - 1, back != NULL ? (long)last - 1 : LONG_MAX};
    return true;
}

static ct_status take_field(void *context, const char *field) {
    ct_faults *f = context;
    char text[128];
    snprintf(text, sizeof text, "%s", field);
    char *value = strchr(text, '=');
    if (value == NULL || strlen(field) >= sizeof text) return bad(f, field);
    *value++ = '\0';
    bool ok = strcmp(text, "drop") == 0       ? probability(value, &f->drop)
              : strcmp(text, "straggle") == 0 ? take_straggle(value, f)
              : strcmp(text, "kill") == 0     ? take_kill(value, f)
                                              : false;
    return ok ? CT_OK : bad(f, field);
}

ct_status ct_fault_parse(const ct_config *c, const uint64_t *seeds, ct_faults *out) {
    const ct_algo *algo;
    ct_faults f = {.seeds = seeds, .n_agents = (int)c->agents, .limit_s = 1e300};
    CT_TRY(ct_split(c->fault, take_field, &f));
    CT_TRY(ct_algo_find(c->algorithm, &algo));
    CT_TRY(ct_algo_check_faults(algo, &f));
    if (c->ccl_neighbours > 0) return ct_refuse("fault", "@fault does not go with @ccl-neighbours");
    *out = f;
    return CT_OK;
}
