/* The file that all sites of a federation hold. What is read is used as a site uses it. */
#include "site/federation.h"
#include "util/memory.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    CT_SCOPED(ct_federation) f = {0};
    if (ct_federation_read(fuzz_file("federation.conf", data, n), &f) != CT_OK) return 0;
    for (int i = 0; i < f.n_sites; i++) {
        CT_SCOPED_BLOCK(ct_mesh_peer) peers = NULL;
        int n_peers = 0;
        if (ct_federation_peers(&f, i, &peers, &n_peers) != CT_OK) return 0;
        if (n_peers < 1 || n_peers >= f.n_sites) abort();
        for (int k = 0; k < n_peers; k++) {
            int other = ct_federation_find(&f, peers[k].name);
            if (other < 0 || other == i || ct_federation_find_key(&f, peers[k].key) != other)
                abort();
            /* one of the two dials, and has where to */
            if (ct_federation_dials(&f, i, other) == ct_federation_dials(&f, other, i)) abort();
            if (peers[k].dials && peers[k].address[0] == '\0') abort();
        }
    }
    fuzz_n_accepted++;
    return 0;
}
