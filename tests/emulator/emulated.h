/* What the files of the emulated GPU share. */
#ifndef CT_TESTS_EMULATED_H
#define CT_TESTS_EMULATED_H

#include <vector>

#include "backend/cuda/ptx.cuh"

/* What a thread has put off. A copy with n_groups groups of copies closed since it began. */
struct emulated_pending {
    struct copy {
        uint32_t to;
        int n;
        const void *from;
        int n_groups;
    };
    struct product {
        std::function<void()> multiply;
        int n_groups;
    };
    std::vector<copy> copies;
    std::vector<product> products;
};

struct emulated_kernel {
    dim3 grid, threads;
    size_t bytes;
    const char *name;
    std::function<void()> body;
};

/* Runs it here and now. */
void emulated_run(const emulated_kernel &k);
/* Chooses for a kernel or a graph whether what may be done late is done at once. */
void emulated_choose(void);
/* Something happened that others may wait for. */
void emulated_step(void);
emulated_pending *emulated_own(void);
/* A block has ended. */
void emulated_end_block(void);
/* cuTensorMapEncodeIm2col */
void *emulated_encode(void);
/* A thread ends: nothing may be left that somebody would miss. */
void emulated_end_pending(void);

#endif
