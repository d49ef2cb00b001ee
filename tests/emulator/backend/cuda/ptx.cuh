/* The instructions of src/backend/cuda/ptx.cuh in plain C++; its comments say what each does. */
#ifndef CT_BACKEND_CUDA_PTX_CUH
#define CT_BACKEND_CUDA_PTX_CUH

#include "emulator.h"

template <typename... PARAMS, typename... ARGS>
static void start_kernel(void (*kernel)(PARAMS...), dim3 grid, dim3 threads, size_t bytes,
                         cudaStream_t stream, const ARGS &...args) {
    emulated_launch((const void *)kernel, grid, threads, bytes, stream, __PRETTY_FUNCTION__,
                    [kernel, args...] { kernel(PARAMS(args)...); });
}

/* Addresses in shared memory count from the dynamic part on. */
uint32_t shared_at(const void *p);
char *emulated_pointer(uint32_t address);

/* ---- numbers ---- */

static inline uint32_t emulated_round(uint32_t bits, int n_dropped, bool ties_to_even) {
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu; /* NaN */
    uint32_t half = 1u << (n_dropped - 1), odd = bits >> n_dropped & 1;
    return (bits + (ties_to_even ? half - 1 + odd : half)) & ~((1u << n_dropped) - 1);
}

static inline float to_tf32(float x) {
    return __uint_as_float(emulated_round(__float_as_uint(x), 13, false));
}

static inline uint32_t pack_bf16(float first, float second) {
    return emulated_round(__float_as_uint(first), 16, true) >> 16 |
           (emulated_round(__float_as_uint(second), 16, true) & 0xffff0000u);
}

static inline float emulated_bf16(uint32_t pair, int which) {
    return __uint_as_float(which == 0 ? pair << 16 : pair & 0xffff0000u);
}

/* ---- products on the tensor cores ----
 * Each lane computes its own four sums, c[0..1] of row g, c[2..3] of row g + 8, columns 2 t and
 * 2 t + 1, for lane 4 g + t, from what all lanes brought: fragments a (n_a words), then b. */

static inline void mma_tf32(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    uint32_t own[6] = {a[0], a[1], a[2], a[3], b0, b1};
    const emulated_words &all = emulated_meet(0xffffffffu, own, sizeof own);
    int lane = emulated_lane(), g = lane / 4, t = lane % 4;
    auto factor = [&](int l, int word) {
        return __uint_as_float(all.lane[l][word] & 0xffffe000u); /* the lower bits are not read */
    };
    for (int e = 0; e < 4; e++) {
        float sum = 0;
        for (int k = 0; k < 8; k++)
            sum += factor(4 * g + k % 4, k / 4 * 2 + e / 2) *
                   factor(4 * (2 * t + e % 2) + k % 4, 4 + k / 4);
        c[e] += sum;
    }
}

/* n_eights of k: words of a are row g, row g + 8 of each eight, words of b one of each. */
static inline void emulated_mma_bf16(float c[4], const uint32_t *a, const uint32_t *b,
                                     int n_eights) {
    uint32_t own[6];
    for (int i = 0; i < 2 * n_eights; i++) own[i] = a[i];
    for (int i = 0; i < n_eights; i++) own[2 * n_eights + i] = b[i];
    const emulated_words &all = emulated_meet(0xffffffffu, own, (size_t)n_eights * 12);
    int lane = emulated_lane(), g = lane / 4, t = lane % 4;
    for (int e = 0; e < 4; e++) {
        float sum = 0;
        for (int k = 0; k < 8 * n_eights; k++) {
            int eight = k / 8, from = k % 8 / 2, half = k % 2;
            sum += emulated_bf16(all.lane[4 * g + from][2 * eight + e / 2], half) *
                   emulated_bf16(all.lane[4 * (2 * t + e % 2) + from][2 * n_eights + eight], half);
        }
        c[e] += sum;
    }
}

static inline void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2]) {
    emulated_mma_bf16(c, a, b, 2);
}

static inline void mma_short(float c[4], const uint32_t a[2], uint32_t b) {
    emulated_mma_bf16(c, a, &b, 1);
}

/* ---- fragments ---- */

/* Lane l of matrix m gets the pair (l / 4, 2 (l % 4)), or of the transposed one; lane 8 m + r has
 * brought the address of row r. */
static inline void emulated_load(uint32_t *r, int n, uint32_t address, bool transposed) {
    const emulated_words &all = emulated_meet(0xffffffffu, &address, sizeof address);
    int lane = emulated_lane(), row = lane / 4, column = lane % 4 * 2;
    for (int m = 0; m < n; m++) {
        const uint32_t(*rows)[16] = all.lane + 8 * m;
        uint16_t pair[2];
        for (int e = 0; e < 2; e++) {
            int from = transposed ? column + e : row, at = transposed ? row : column + e;
            uint32_t place = rows[from][0];
            if (place % 16 != 0) emulated_fail("ldmatrix from an address that 16 does not divide");
            memcpy(&pair[e], emulated_pointer(place) + 2 * at, sizeof pair[e]);
        }
        memcpy(&r[m], pair, sizeof pair);
    }
}

static inline void load_matrices(uint32_t r[4], uint32_t address) {
    emulated_load(r, 4, address, false);
}

static inline void load_transposed(uint32_t r[4], uint32_t address) {
    emulated_load(r, 4, address, true);
}

static inline void load_two_matrices(uint32_t r[2], uint32_t address) {
    emulated_load(r, 2, address, false);
}

static inline uint32_t turn_matrix(uint32_t v) {
    const emulated_words &all = emulated_meet(0xffffffffu, &v, sizeof v);
    int lane = emulated_lane(), row = lane / 4, column = lane % 4 * 2;
    uint32_t r = 0;
    for (int e = 0; e < 2; e++) {
        uint32_t pair = all.lane[4 * (column + e) + row / 2][0];
        r |= (pair >> 16 * (row % 2) & 0xffffu) << 16 * e;
    }
    return r;
}

/* ---- copies to shared memory in the background ---- */

/* n bytes, or zeros where `from` is NULL. */
void emulated_copy(uint32_t to, const void *from, int n);
/* Closes a group of copies, if there are any since the last; waits for all but the last n groups. */
void emulated_copies_group(void);
void emulated_copies_wait(int n_but);

template <int SIZE> static inline void copy_async(uint32_t to, const void *from) {
    emulated_copy(to, from, SIZE);
}

template <int SIZE> static inline void copy_async(uint32_t to, const void *from, bool is_there) {
    emulated_copy(to, is_there ? from : NULL, SIZE);
}

static inline void copies_wait(void) {
    emulated_copies_group();
    emulated_copies_wait(0);
}

static inline void copies_group(void) {
    emulated_copies_group();
}

template <int N> static inline void copies_wait_but(void) {
    emulated_copies_wait(N);
}

#endif
