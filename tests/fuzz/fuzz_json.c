/* JSON: whatever is read can be walked through. */
#include "util/json.h"

#include "fuzz.h"

/* How many values there are in it; those of an object are found by their keys. */
static size_t count(const ct_json *json) {
    size_t n = 1, n_children = 0;
    for (const ct_json *c = json->child; c != NULL; c = c->next, n_children++) {
        if (json->kind == CT_JSON_OBJECT && ct_json_get(json, c->key) != c) abort();
        if (c->kind == CT_JSON_STRING && strlen(c->string) > (size_t)1 << 24) abort();
        n += count(c);
    }
    if (n_children != json->n_children) abort();
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    ct_json *json = NULL;
    if (ct_json_parse((const char *)data, n, "fuzz", &json) != CT_OK) return 0;
    if (count(json) > n) abort();
    ct_json_free(&json);
    fuzz_n_accepted++;
    return 0;
}
