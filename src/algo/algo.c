#include "algo/algo.h"

#include <string.h>

#include "util/memory.h"
#include "util/registry.h"
#include "util/text.h"

#define ALGO(id) extern const ct_algo ct_algo_##id;
#include "algo/algo_list.h"

static const ct_algo *const algos[] = {
#define ALGO(id) &ct_algo_##id,
#include "algo/algo_list.h"
};
enum { N_ALGOS = sizeof algos / sizeof *algos };

static const ct_algo_alias aliases[] = {
#define ALIAS(name, algorithm, loss, text) {name, algorithm, loss, text},
#include "algo/algo_list.h"
};
enum { N_ALIASES = sizeof aliases / sizeof *aliases };

void ct_algo_each(ct_name_visit each, void *context) {
    for (int i = 0; i < N_ALGOS; i++) each(context, algos[i]->name, algos[i]->text);
}

void ct_algo_each_name(ct_name_visit each, void *context) {
    ct_algo_each(each, context);
    for (int i = 0; i < N_ALIASES; i++) each(context, aliases[i].name, aliases[i].text);
}

const ct_algo_alias *ct_algo_alias_find(const char *name) {
    for (int i = 0; i < N_ALIASES; i++)
        if (strcmp(aliases[i].name, name) == 0) return &aliases[i];
    return NULL;
}

ct_status ct_algo_find(const char *name, const ct_algo **out) {
    const ct_algo_alias *alias = ct_algo_alias_find(name);
    const char *wanted = alias != NULL ? alias->algorithm : name;
    for (int i = 0; i < N_ALGOS; i++) {
        if (strcmp(algos[i]->name, wanted) != 0) continue;
        *out = algos[i];
        return CT_OK;
    }
    return ct_unknown_name("algorithm", name, NULL, ct_algo_each_name);
}

double ct_algo_gamma(const ct_algo *algo, const char *topology) {
    return algo->gamma_denser > 0 && ct_topology_is_denser(topology) ? algo->gamma_denser : 1;
}

bool ct_algo_has_option(const ct_algo *algo, const char *option) {
    if (strcmp(option, "variant") == 0) return algo->variants[0] != NULL;
    for (int k = 0; k < CT_MAX_OWN_OPTIONS && algo->options[k] != NULL; k++)
        if (strcmp(algo->options[k], option) == 0) return true;
    return false;
}

ct_status ct_algo_check_option(const ct_algo *algo, const char *option) {
    CT_SCOPED(ct_text) owners = {0};
    if (ct_algo_has_option(algo, option)) return CT_OK;
    for (int i = 0; i < N_ALGOS; i++)
        if (ct_algo_has_option(algos[i], option))
            ct_text_add(&owners, "%s%s", owners.n > 0 ? ", " : "", algos[i]->name);
    CT_TRY(ct_text_status(&owners));
    if (owners.n == 0) return CT_OK;
    return ct_refuse(option, "@%s does nothing with %s; it is an option of %s", option, algo->name,
                     owners.chars);
}

int ct_algo_variant(const ct_algo *algo, const char *name) {
    for (int k = 0; k < CT_MAX_VARIANTS && algo->variants[k] != NULL; k++)
        if (strcmp(algo->variants[k], name) == 0) return k + 1;
    return 0;
}

ct_status ct_algo_check_variant(const ct_algo *algo, const char *name) {
    CT_SCOPED(ct_text) known = {0};
    if (strcmp(name, "paper") == 0 || ct_algo_variant(algo, name) > 0) return CT_OK;
    ct_text_add(&known, "paper");
    for (int k = 0; k < CT_MAX_VARIANTS && algo->variants[k] != NULL; k++)
        ct_text_add(&known, ", %s", algo->variants[k]);
    CT_TRY(ct_text_status(&known));
    return ct_refuse("variant", "%s has no @variant %s; known: %s", algo->name, name, known.chars);
}

/* ---- where an algorithm is right ---- */

ct_status ct_algo_check_schedule(const ct_algo *algo, const ct_schedule *schedule) {
    if (algo->graphs == CT_GRAPHS_FIXED)
        return ct_fail(CT_INVAL, "%s needs a graph that stays; '%s' changes from step to step",
                       algo->name, schedule->name);
    if (algo->graphs == CT_GRAPHS_UNUSED || schedule->is_balanced) return CT_OK;
    const ct_algo_graphs wanted =
        schedule->drawing.is_averaging ? CT_GRAPHS_AVERAGED : CT_GRAPHS_DIRECTED;
    if (algo->graphs == wanted) return CT_OK;
    int any = 0;
    while (any < N_ALGOS - 1 && algos[any]->graphs != wanted) any++;
    if (schedule->drawing.is_averaging)
        return ct_fail(
            CT_INVAL,
            "%s needs weights whose columns sum to 1, and those of '%s' do so on average "
            "only; %s takes them, and '@topology epidemic' has none of these",
            algo->name, schedule->name, algos[any]->name);
    return ct_fail(CT_INVAL,
                   "%s needs weights whose rows and columns sum to 1, and the rows of '%s' do not; "
                   "%s takes any",
                   algo->name, schedule->name, algos[any]->name);
}

ct_status ct_algo_check_local_steps(const ct_algo *algo) {
    const char *why = algo->graphs == CT_GRAPHS_UNUSED  ? "it does not gossip"
                      : algo->graphs == CT_GRAPHS_FIXED ? "it needs a graph that stays"
                                                        : algo->why_always;
    if (why == NULL) return CT_OK;
    return ct_refuse("local-steps", "%s cannot train with @local-steps (%s)", algo->name, why);
}

static bool may_pack(const ct_algo *algo) {
    return algo->may_compress;
}

static bool may_have_own_steps(const ct_algo *algo) {
    return algo->may_compress && !algo->shares_two;
}

static ct_status check_able(const ct_algo *algo, const char *option,
                            bool (*is_able)(const ct_algo *algo)) {
    CT_SCOPED(ct_text) able = {0};
    if (is_able(algo)) return CT_OK;
    for (int i = 0; i < N_ALGOS; i++)
        if (is_able(algos[i])) ct_text_add(&able, "%s%s", able.n > 0 ? ", " : "", algos[i]->name);
    CT_TRY(ct_text_status(&able));
    return ct_refuse(option, "%s cannot train with @%s; these can: %s", algo->name, option,
                     able.chars);
}

ct_status ct_algo_check_compress(const ct_algo *algo) {
    return check_able(algo, "compress", may_pack);
}

static bool may_learn_public(const ct_algo *algo) {
    return algo->learns_public;
}

ct_status ct_algo_check_public(const ct_algo *algo) {
    return check_able(algo, "public-data", may_learn_public);
}

ct_status ct_algo_check_own_steps(const ct_algo *algo) {
    return check_able(algo, "consensus", may_have_own_steps);
}

ct_status ct_algo_check_sites(const ct_algo *algo) {
    if (algo->may_lose == CT_MAY_LOSE_AGENTS) return CT_OK;
    return ct_refuse("algorithm", "%s cannot train between sites, which may come and go (%s)",
                     algo->name, algo->why_not != NULL ? algo->why_not : "it cannot lose messages");
}

ct_status ct_algo_check_faults(const ct_algo *algo, const ct_faults *faults) {
    if (algo->may_lose == CT_MAY_LOSE_NOTHING)
        return ct_refuse("fault", "%s cannot lose messages", algo->name);
    if (algo->may_lose == CT_MAY_LOSE_MESSAGES && faults->n_kills > 0)
        return ct_refuse("fault", "%s cannot lose an agent (%s)", algo->name, algo->why_not);
    return CT_OK;
}
