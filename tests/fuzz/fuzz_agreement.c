/* What another rank says of itself at the start of a job: the one message of the transport that is
 * read as more than numbers. */
#include "transport/transport_internal.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char own[] =
        "{\"commit\": \"0123456789abcdef\", \"@lr\": \"0.1\", \"@seed\": \"1\"}";
    static ct_json *ours;
    if (ours == NULL && ct_json_parse(own, sizeof own - 1, "ours", &ours) != CT_OK) return 0;
    if (ct_agreement_check(ours, 1, (const char *)data, n) == CT_OK) fuzz_n_accepted++;
    return 0;
}
