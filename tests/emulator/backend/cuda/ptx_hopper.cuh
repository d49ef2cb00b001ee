/* The instructions of src/backend/cuda/ptx_hopper.cuh in plain C++; its comments say what each
 * does. */
#ifndef CT_BACKEND_CUDA_PTX_HOPPER_CUH
#define CT_BACKEND_CUDA_PTX_HOPPER_CUH

#include <cuda.h>

#include "backend/cuda/ptx.cuh"

/* ---- barriers ---- */

void barrier_init(uint64_t *barrier, int count);
void barrier_arrive(uint64_t *barrier);
void barrier_expect(uint64_t *barrier, uint32_t n_bytes);
void barrier_wait(uint64_t *barrier, uint32_t phase);

/* ---- copies ---- */

void copy_bulk(uint32_t to, const void *from, uint32_t n, uint64_t *barrier);
void copy_positions(uint32_t to, const CUtensorMap *map, int channel, int x, int y, int sample,
                    uint64_t *barrier);

/* ---- products of a warp group ---- */

/* sums (+)= a b, 64 x n_columns of k = 16; k along the rows of both if it is transposed. */
void emulated_product(float *sums, int n_columns, uint64_t a, uint64_t b, bool transposed,
                      bool adds);
void emulated_products_group(void);
void emulated_products_wait(int n_but);

static inline void products_begin(void) {}

static inline void products_group(void) {
    emulated_products_group();
}

template <int N> static inline void products_wait_but(void) {
    emulated_products_wait(N);
}

static inline void product_256(float sums[128], uint64_t a, uint64_t b) {
    emulated_product(sums, 256, a, b, false, true);
}

template <bool K_ROWS = true>
static inline void product_64(float sums[32], uint64_t a, uint64_t b, int adds) {
    emulated_product(sums, 64, a, b, K_ROWS, adds != 0);
}

template <bool K_ROWS = true>
static inline void product_32(float sums[16], uint64_t a, uint64_t b, int adds = 1) {
    emulated_product(sums, 32, a, b, K_ROWS, adds != 0);
}

/* ---- what a program of one thread after the other does anyway ---- */

template <int N> static inline void fewer_registers(void) {}

template <int N> static inline void more_registers(void) {}

static inline void writes_to_products(void) {}

static inline void barriers_ready(void) {}

/* ---- warp groups ---- */

static inline void group_sync(int which, int n_threads) {
    emulated_barrier(which, n_threads);
}

static inline void group_arrive(int which, int n_threads) {
    emulated_arrive(which, n_threads);
}

/* ---- fragments ---- */

static inline void store_transposed(uint32_t to, uint32_t r0, uint32_t r1, uint32_t r2,
                                    uint32_t r3) {
    uint32_t own[5] = {to, r0, r1, r2, r3};
    const emulated_words &all = emulated_meet(0xffffffffu, own, sizeof own);
    int lane = emulated_lane(), row = lane % 8;
    if (to % 16 != 0) emulated_fail("stmatrix to an address that 16 does not divide");
    for (int c = 0; c < 8; c++) {
        uint32_t pair = all.lane[4 * c + row / 2][1 + lane / 8];
        uint16_t v = (uint16_t)(pair >> 16 * (row % 2));
        memcpy(emulated_pointer(to) + 2 * c, &v, sizeof v);
    }
}

#endif
