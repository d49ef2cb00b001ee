/* Whether a GPU works, and whether it is one that the host plays. */
#ifndef CT_TEST_GPU_H
#define CT_TEST_GPU_H

#include <stdlib.h>

#include "backend/backend.h"
#include "test.h"
#include "util/log.h"

static inline bool has_gpu(void) {
    static int known = -1;
    if (known < 0) {
        ct_backend *backend = NULL;
        ct_backend_options options = {.n_threads = 1};
        known = ct_backend_create("cuda", &options, &backend) == CT_OK;
        if (!known) printf("    %s\n", ct_message());
        ct_clear_message();
        ct_backend_free(&backend);
    }
    return known;
}

#define NEED_GPU()                                                                                 \
    if (!has_gpu()) SKIP("no GPU works here")

/* The host plays the GPU (tests/emulator): a second of the real one takes minutes. Of many cases of a
 * kind a few are taken then, and CT_TEST_LONG takes all. */
static inline bool is_slow_gpu(void) {
    return CT_EMULATED_GPU && getenv("CT_TEST_LONG") == NULL;
}

/* From a case to the next one. */
#define STEP_OF(n) (is_slow_gpu() ? (n) : 1)
/* So many of all of them. */
#define FIRST_OF(n, all) (is_slow_gpu() ? (n) : (all))
#define NEED_FAST_GPU()                                                                            \
    NEED_GPU();                                                                                    \
    if (is_slow_gpu()) SKIP("takes minutes on an emulated GPU, CT_TEST_LONG=1 runs it")

#endif
