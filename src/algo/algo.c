#include "algo/algo.h"

#include <string.h>

#include "util/registry.h"

static const ct_algo *const algos[] = {
#define ALGO(id) &ct_algo_##id,
#include "algo/algo_list.h"
#undef ALGO
};
enum { N_ALGOS = sizeof algos / sizeof *algos };

void ct_algo_each(void (*each)(void *context, const char *name, const char *text), void *context) {
    for (int i = 0; i < N_ALGOS; i++) each(context, algos[i]->name, algos[i]->text);
}

ct_status ct_algo_find(const char *name, const ct_algo **out) {
    for (int i = 0; i < N_ALGOS; i++) {
        if (strcmp(algos[i]->name, name) != 0) continue;
        *out = algos[i];
        return CT_OK;
    }
    return ct_unknown_name("algorithm", name, "ccl", ct_algo_each);
}
