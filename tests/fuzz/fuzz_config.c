/* config.txt and other files of options: what is read can be written and read again. */
#include "schema/config.h"
#include "util/memory.h"

#include "fuzz.h"

static bool print(const ct_config *config, ct_text *out) {
    ct_config_print(config, out);
    return ct_text_status(out) == CT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static ct_config config, again;
    CT_SCOPED(ct_text) first = {0}, second = {0};
    ct_config_init(&config);
    ct_config_init(&again);
    if (ct_config_load(&config, fuzz_file("config.txt", data, n)) != CT_OK) return 0;
    if (!print(&config, &first)) return 0;
    const char *path = fuzz_file("config.txt", (const uint8_t *)first.chars, first.n);
    if (ct_config_load(&again, path) != CT_OK || !print(&again, &second)) abort();
    if (first.n != second.n || memcmp(first.chars, second.chars, first.n) != 0) abort();
    fuzz_n_accepted++;
    return 0;
}
