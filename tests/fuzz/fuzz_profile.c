/* What another process says of its agents' data: what is taken prints as it was read, and merges with
 * what we say in both directions to the same text, or is refused in both. */
#include "data/profile.h"

#include "fuzz.h"
#include "util/memory.h"

static const char own[] =
    "{\"agents\": 1, \"first\": [1, \"south\"], \"shape\": [3, 4, 4], \"values\": 0, \"cut\": [4, "
    "0, "
    "0], \"classes\": [\"cat\", \"dog\"], \"mean\": null, \"std\": null, \"pixels\": [[\"32\", "
    "\"100\", \"900\"], [\"32\", \"100\", \"900\"], [\"32\", \"100\", \"900\"]], \"most\": [2, 1, "
    "\"south\"], \"least\": [2, 1, \"south\"], \"test\": 3}";

static void check_again(const ct_text *text) {
    CT_SCOPED(ct_profile) again = {0};
    CT_SCOPED(ct_text) printed = {0};
    if (ct_profile_parse(text->chars, text->n, &again) != CT_OK) abort();
    ct_profile_print(&again, &printed);
    if (printed.n != text->n || memcmp(printed.chars, text->chars, text->n) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    CT_SCOPED(ct_profile) theirs = {0};
    CT_SCOPED(ct_text) text = {0};
    CT_SCOPED(ct_text) forth = {0};
    CT_SCOPED(ct_text) back = {0};
    if (ct_profile_parse((const char *)data, n, &theirs) != CT_OK) return 0;
    fuzz_n_accepted++;
    ct_profile_print(&theirs, &text);
    check_again(&text);
    ct_text_add(&forth, "%s", own);
    ct_text_add(&back, "%s", text.chars);
    ct_status one = ct_profile_merge_text(NULL, text.chars, text.n, &forth);
    ct_status other = ct_profile_merge_text(NULL, own, sizeof own - 1, &back);
    if ((one == CT_OK) != (other == CT_OK)) abort();
    bool is_same_agent =
        theirs.first.agent == 1 || theirs.most.who.agent == 1 || theirs.least.who.agent == 1;
    if (one == CT_OK && !is_same_agent && strcmp(forth.chars, back.chars) != 0) abort();
    return 0;
}
