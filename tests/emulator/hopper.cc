/* Hopper's own instructions for the emulated GPU: barriers that count arrivals and bytes, copies by the
 * tensor memory accelerator, products of a warp group. As PTX's manual has them. */
#include "backend/cuda/ptx_hopper.cuh"
#include "emulated.h"

namespace {

/* In the 8 bytes of a barrier. */
struct counts {
    unsigned expected : 12, missing : 12, phase : 8;
    int32_t n_bytes;
};
static_assert(sizeof(counts) == sizeof(uint64_t), "in its place");

struct transfer {
    uint64_t *barrier;
    std::function<void()> move;
};

/* In the 128 bytes of a tensor map. */
struct image {
    const char *data;
    uint64_t strides[3]; /* of columns, rows, samples */
    int sizes[4];        /* channels, columns, rows, samples */
    int lower[2], upper[2];
    int n_channels, n_pixels; /* copied at a time */
};
static_assert(sizeof(image) <= sizeof(CUtensorMap), "in its place");

thread_local std::vector<transfer> transfers; /* of the block, on their way */

counts load(const uint64_t *barrier) {
    counts c;
    memcpy(&c, barrier, sizeof c);
    return c;
}

/* A phase ends when everyone and all bytes are there. */
void store(uint64_t *barrier, counts c) {
    if (c.missing == 0 && c.n_bytes == 0) {
        c.missing = c.expected;
        c.phase ^= 1;
    }
    memcpy(barrier, &c, sizeof c);
    emulated_step();
}

void arrived(uint64_t *barrier, uint32_t n_bytes) {
    counts c = load(barrier);
    c.n_bytes -= (int32_t)n_bytes;
    store(barrier, c);
}

void arrive(uint64_t *barrier, uint32_t n_bytes) {
    counts c = load(barrier);
    if (c.missing == 0) emulated_fail("one too many arrives at a barrier");
    c.missing--;
    c.n_bytes += (int32_t)n_bytes;
    store(barrier, c);
}

void deliver(const uint64_t *barrier) {
    std::vector<transfer> others;
    std::swap(others, transfers);
    for (transfer &t : others) {
        if (t.barrier == barrier)
            t.move();
        else
            transfers.push_back(std::move(t));
    }
}

void send(uint64_t *barrier, std::function<void()> move) {
    if (emulated_early())
        move();
    else
        transfers.push_back({barrier, std::move(move)});
}

/* Sixteens of bytes of a line of 128 trade places by the number of the line. */
uint32_t swizzled(uint32_t address) {
    return address ^ (address >> 7 & 7) << 4;
}

bool is_inside(const image &m, int x, int y, int sample) {
    return x >= 0 && x < m.sizes[1] && y >= 0 && y < m.sizes[2] && sample < m.sizes[3];
}

void move_positions(uint32_t to, const image &m, int channel, int x, int y, int sample) {
    for (int k = 0; k < m.n_pixels; k++) {
        for (int c = 0; c < m.n_channels; c++) {
            uint16_t v = 0;
            const char *pixel = m.data + x * (int64_t)m.strides[0] + y * (int64_t)m.strides[1] +
                                sample * (int64_t)m.strides[2];
            if (is_inside(m, x, y, sample) && channel + c < m.sizes[0])
                memcpy(&v, pixel + 2 * (channel + c), sizeof v);
            memcpy(emulated_pointer(swizzled(to + (uint32_t)(k * m.n_channels + c) * 2)), &v,
                   sizeof v);
        }
        if (++x < m.sizes[1] + m.upper[0]) continue;
        x = m.lower[0];
        if (++y < m.sizes[2] + m.upper[1]) continue;
        y = m.lower[1];
        sample++;
    }
}

/* ---- matrices in shared memory ---- */

struct matrix {
    uint32_t from, leading, stride;
    bool is_swizzled, has_k_rows; /* k along the rows */
};

matrix matrix_of(uint64_t d, bool has_k_rows) {
    uint64_t mode = d >> 62;
    if (mode > 1) emulated_fail("a swizzle that is not emulated");
    return {(uint32_t)(d & 0x3fff) << 4, (uint32_t)(d >> 16 & 0x3fff) << 4,
            (uint32_t)(d >> 32 & 0x3fff) << 4, mode == 1, has_k_rows};
}

float value_at(const matrix &m, int i, int k) {
    int row = m.has_k_rows ? k : i, column = m.has_k_rows ? i : k;
    uint32_t at = m.from + (uint32_t)column % 8 * 2;
    if (m.is_swizzled) {
        if (column >= 64) emulated_fail("a swizzled matrix with longer rows than 128 bytes");
        at = swizzled(at + (uint32_t)row / 8 * m.stride + (uint32_t)row % 8 * 128 +
                      (uint32_t)column / 8 * 16);
    } else {
        at += (uint32_t)row % 8 * 16;
        at += (uint32_t)k / 8 * m.leading + (uint32_t)i / 8 * m.stride;
    }
    uint16_t v;
    memcpy(&v, emulated_pointer(at), sizeof v);
    return emulated_bf16(v, 0);
}

void multiply(float *sums, int n_columns, const matrix &a, const matrix &b, bool adds, int thread) {
    int row = thread / 32 % 4 * 16 + thread % 32 / 4, column = thread % 4 * 2;
    float factors[2][16];
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 16; k++) factors[half][k] = value_at(a, row + 8 * half, k);
    for (int j = 0; j < n_columns / 8; j++)
        for (int e = 0; e < 2; e++) {
            float both[2] = {0, 0};
            for (int k = 0; k < 16; k++) {
                float v = value_at(b, 8 * j + column + e, k);
                both[0] += factors[0][k] * v;
                both[1] += factors[1][k] * v;
            }
            for (int half = 0; half < 2; half++) {
                float *sum = &sums[4 * j + 2 * half + e];
                *sum = (adds ? *sum : 0) + both[half];
            }
        }
}

CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *data,
                const cuuint64_t *sizes, const cuuint64_t *strides, const int *lower,
                const int *upper, cuuint32_t n_channels, cuuint32_t n_pixels,
                const cuuint32_t *steps, CUtensorMapInterleave interleave,
                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
    image m = {(const char *)data, {}, {}, {}, {}, (int)n_channels, (int)n_pixels};
    if (type != CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 || rank != 4 || (uintptr_t)data % 16 != 0 ||
        n_channels != 64 || n_pixels > 1024 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        swizzle != CU_TENSOR_MAP_SWIZZLE_128B || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    for (int k = 0; k < 4; k++) {
        if (steps[k] != 1 || sizes[k] == 0) return CUDA_ERROR_INVALID_VALUE;
        m.sizes[k] = (int)sizes[k];
    }
    for (int k = 0; k < 3; k++) {
        if (strides[k] % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
        m.strides[k] = strides[k];
    }
    for (int k = 0; k < 2; k++) m.lower[k] = lower[k], m.upper[k] = upper[k];
    memset((void *)map, 0, sizeof *map);
    memcpy((void *)map, &m, sizeof m);
    return CUDA_SUCCESS;
}

} // namespace

void *emulated_encode(void) {
    return (void *)encode;
}

/* ---- barriers ---- */

void barrier_init(uint64_t *barrier, int count) {
    counts c = {(unsigned)count, (unsigned)count, 0, 0};
    memcpy(barrier, &c, sizeof c);
}

void barrier_arrive(uint64_t *barrier) {
    arrive(barrier, 0);
}

void barrier_expect(uint64_t *barrier, uint32_t n_bytes) {
    arrive(barrier, n_bytes);
}

void barrier_wait(uint64_t *barrier, uint32_t phase) {
    emulated_wait("a barrier in shared memory", [barrier, phase] {
        if (load(barrier).phase == phase) deliver(barrier);
        return load(barrier).phase != phase;
    });
}

/* ---- copies ---- */

void copy_bulk(uint32_t to, const void *from, uint32_t n, uint64_t *barrier) {
    if (n == 0 || n % 16 != 0 || to % 16 != 0 || (uintptr_t)from % 16 != 0)
        emulated_fail("a bulk copy of addresses or a size that 16 does not divide");
    send(barrier, [=] {
        memcpy(emulated_pointer(to), from, n);
        arrived(barrier, n);
    });
}

void copy_positions(uint32_t to, const CUtensorMap *map, int channel, int x, int y, int sample,
                    uint64_t *barrier) {
    image m;
    memcpy(&m, map, sizeof m);
    if (to % 128 != 0) emulated_fail("a copy of positions to an address that 128 does not divide");
    send(barrier, [=] {
        move_positions(to, m, channel, x, y, sample);
        arrived(barrier, (uint32_t)(m.n_pixels * m.n_channels * 2));
    });
}

/* ---- products ---- */

void emulated_product(float *sums, int n_columns, uint64_t a, uint64_t b, bool transposed,
                      bool adds) {
    matrix left = matrix_of(a, transposed), right = matrix_of(b, transposed);
    int thread = (int)threadIdx.x;
    auto run = [=] { multiply(sums, n_columns, left, right, adds, thread); };
    if (emulated_early())
        run();
    else
        emulated_own()->products.push_back({run, 0});
}

void emulated_products_group(void) {
    for (auto &p : emulated_own()->products) p.n_groups++;
}

void emulated_products_wait(int n_but) {
    auto &products = emulated_own()->products;
    size_t n_done = 0;
    while (n_done < products.size() && products[n_done].n_groups > n_but)
        products[n_done++].multiply();
    products.erase(products.begin(), products.begin() + (ptrdiff_t)n_done);
}

void emulated_end_pending(void) {
    if (!emulated_own()->products.empty()) emulated_fail("a thread ends before its products do");
}

void emulated_end_block(void) {
    if (!transfers.empty()) emulated_fail("a block ends before copies to its memory do");
}
