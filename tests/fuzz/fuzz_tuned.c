/* tuned.json: what was tried and chosen; what is read can be written and read again. */
#include "study/tune.h"

#include "fuzz.h"
#include "util/json.h"
#include "util/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_SCOPED_HANDLE(ct_json) again = NULL;
    CT_SCOPED_HANDLE(ct_choice) choice = NULL;
    CT_SCOPED_HANDLE(ct_choice) same = NULL;
    CT_SCOPED(ct_text) text = {0};
    char why[256];
    if (ct_json_parse((const char *)data, n, "fuzz", &json) != CT_OK) return 0;
    if (ct_choice_take(json, "fuzz", &choice) != CT_OK) return 0;
    (void)ct_choice_holds(choice, why, sizeof why);
    ct_choice_print(choice, &text);
    if (ct_json_parse(text.chars, text.n, "again", &again) != CT_OK) abort();
    if (ct_choice_take(again, "again", &same) != CT_OK || same->chosen != choice->chosen) abort();
    fuzz_n_accepted++;
    return 0;
}
