#include "report/method.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "report/svg.h"

/* As papers call them; the place in this list is the place in the palette. An algorithm that is not
 * in it takes one of the colours behind them, by its place among all such. */
static const struct method {
    const char *algorithm, *name;
} methods[] = {
    {"ccl", "CCL"},
    {"qg-dsgdm", "QG-DSGDm-N"},
    {"dsgdm", "DSGDm-N"},
    {"dsgd", "DSGD"},
    {"relaysgd", "RelaySGD"},
    {"gt", "Gradient tracking"},
    {"mt", "Momentum tracking"},
    {"d2", "D2"},
    {"gut", "GUT"},
    {"sgp", "SGP"},
    {"cga", "CGA"},
    {"ngc", "NGC"},
    {"allreduce", "All-reduce"},
    {"local", "Local"},
    {"dfedavgm", "DFedAvgM"},
};
enum { N_METHODS = sizeof methods / sizeof *methods };

static int find_method(const char *name) {
    for (int k = 0; k < N_METHODS; k++)
        if (strcmp(methods[k].algorithm, name) == 0) return k;
    return -1;
}

/* ---- what is known of it ---- */

typedef struct search {
    const char *algorithm, *loss;
    const char *alias; /* of both together; NULL: there is none */
    int n_nameless;    /* algorithms so far that are not in the list */
    int place;         /* of the one among them; -1: it is none of them */
} search;

static void look_at_name(void *context, const char *name, const char *text) {
    search *s = context;
    const ct_algo_alias *alias = ct_algo_alias_find(name);
    (void)text;
    if (alias != NULL) {
        bool is_it = strcmp(alias->algorithm, s->algorithm) == 0 && s->loss != NULL &&
                     strcmp(alias->loss, s->loss) == 0;
        if (is_it) s->alias = alias->name;
    } else if (find_method(name) < 0) {
        if (strcmp(name, s->algorithm) == 0) s->place = s->n_nameless;
        s->n_nameless++;
    }
}

/* "ccl" is an algorithm's name too, where nothing has been resolved yet. */
static search look_up(const char *algorithm, const char *loss) {
    const ct_algo_alias *given = ct_algo_alias_find(algorithm);
    search s = {.algorithm = algorithm, .loss = loss, .place = -1};
    if (given != NULL) {
        s.algorithm = given->algorithm;
        s.loss = given->loss;
    }
    ct_algo_each_name(look_at_name, &s);
    return s;
}

static bool has_ccl(const search *s) {
    return s->alias == NULL && s->loss != NULL && strcmp(s->loss, "ccl") == 0;
}

void ct_method_name(const char *algorithm, const char *loss, char *out, size_t size) {
    search s = look_up(algorithm, loss);
    const char *own = s.alias != NULL ? s.alias : s.algorithm;
    int k = find_method(own);
    snprintf(out, size, "%s%s", k >= 0 ? methods[k].name : own, has_ccl(&s) ? " + CCL" : "");
}

int ct_method_style(const char *algorithm, const char *loss) {
    search s = look_up(algorithm, loss);
    int k = find_method(s.alias != NULL ? s.alias : s.algorithm);
    if (k < 0 && s.place >= 0) k = N_METHODS + s.place;
    int colour = k >= 0 ? CT_COLOUR_METHODS + k : CT_COLOUR_OTHER;
    return ct_style(colour < CT_N_COLOURS ? colour : CT_COLOUR_OTHER, has_ccl(&s), 0);
}

int ct_method_style_of(const ct_record *run) {
    const char *algorithm = ct_record_option_of(run, "algorithm");
    return ct_method_style(algorithm != NULL ? algorithm : "", ct_record_option_of(run, "loss"));
}

int ct_method_style_to_be(const ct_config *config) {
    return ct_method_style(ct_config_word(config, "algorithm"), ct_config_word(config, "loss"));
}
