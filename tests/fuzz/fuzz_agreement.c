/* What another rank says of itself at the start of a job: the one message of the transport that is
 * read as more than numbers. */
#include "transport/transport_internal.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static char own[] = "{\"\": \"rank 0\", \"commit\": \"0123456789abcdef\", \"@lr\": \"0.1\", "
                        "\"@seed\": \"1\"}";
    static char all[] = "ranks of a job";
    ct_text mine = {.chars = own, .n = sizeof own - 1};
    if (ct_agreement_merge(all, (const char *)data, n, &mine) == CT_OK) fuzz_n_accepted++;
    return 0;
}
