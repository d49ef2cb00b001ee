#include "algo/algo.h"

#include <string.h>

#include "util/text.h"

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
    ct_text known = {0};
    for (int i = 0; i < N_ALGOS; i++) {
        if (strcmp(algos[i]->name, name) == 0) {
            *out = algos[i];
            ct_text_free(&known);
            return CT_OK;
        }
        ct_text_add(&known, "%s, ", algos[i]->name);
    }
    ct_status status = ct_fail(CT_INVAL, "no algorithm '%s'; known: %sccl", name, known.chars);
    ct_text_free(&known);
    return status;
}
