/* Columns that another agent sends: what is taken is printed as it was, and merges with itself and, in
 * both directions, with ours. */
#include "data/table.h"

#include "fuzz.h"
#include "util/memory.h"

static ct_status read_columns(const char *text, size_t n, ct_columns *out) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_TRY(ct_json_parse(text, n, "fuzz", &json));
    return ct_columns_parse(json, "fuzz", out);
}

static void print_again(const ct_columns *columns) {
    CT_SCOPED(ct_columns) again = {0};
    CT_SCOPED(ct_text) first = {0};
    CT_SCOPED(ct_text) second = {0};
    ct_columns_print(columns, true, &first);
    if (read_columns(first.chars, first.n, &again) != CT_OK) abort();
    ct_columns_print(&again, true, &second);
    if (strcmp(first.chars, second.chars) != 0) abort();
}

static const char own[] =
    "{\"label\": \"y\", \"columns\": [{\"name\": \"a\", \"kind\": \"number\", \"values\": 1, "
    "\"missing\": 0, \"sum\": \"3@68\", \"squares\": \"9@68\", \"categories\": [\"3\"]}, "
    "{\"name\": "
    "\"b\", \"kind\": \"category\", \"values\": 1, \"missing\": 0, \"categories\": [\"w\"]}]}";

static void merge_both_ways(const ct_columns *theirs) {
    CT_SCOPED(ct_columns) ours = {0};
    CT_SCOPED(ct_columns) mine = {0};
    CT_SCOPED(ct_columns) copy = {0};
    CT_SCOPED(ct_text) forth = {0};
    CT_SCOPED(ct_text) back = {0};
    if (read_columns(own, sizeof own - 1, &ours) != CT_OK) abort();
    if (ct_columns_copy(&ours, &mine) != CT_OK || ct_columns_copy(theirs, &copy) != CT_OK) return;
    ct_status one = ct_columns_merge(&mine, theirs), other = ct_columns_merge(&copy, &ours);
    if (one != other) abort();
    if (one != CT_OK) return;
    ct_columns_print(&mine, true, &forth);
    ct_columns_print(&copy, true, &back);
    if (strcmp(forth.chars, back.chars) != 0) abort();
    print_again(&mine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    CT_SCOPED(ct_columns) columns = {0};
    CT_SCOPED(ct_columns) more = {0};
    if (read_columns((const char *)data, n, &columns) != CT_OK) return 0;
    print_again(&columns);
    merge_both_ways(&columns);
    if (ct_columns_copy(&columns, &more) != CT_OK) return 0;
    for (int k = 0; k < 3; k++) /* sums that grow stay in their bounds */
        if (ct_columns_merge(&more, &columns) == CT_OK) print_again(&more);
    fuzz_n_accepted++;
    return 0;
}
