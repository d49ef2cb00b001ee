/* Files of packed pictures. */
#include "data/pack.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static ct_decoder *decoder;
    ct_pack *pack = NULL;
    if (decoder == NULL && ct_decoder_create(&decoder) != CT_OK) return 0;
    if (ct_pack_open(fuzz_file("x.ctpack", data, n), &pack) == CT_OK) {
        ct_picture p;
        uint64_t n_read = ct_pack_facts_of(pack)->n < 100 ? ct_pack_facts_of(pack)->n : 100;
        for (uint64_t i = 0; i < n_read; i++) ct_pack_read(pack, (size_t)i, decoder, &p);
        ct_pack_close(&pack);
    }
    return 0;
}
