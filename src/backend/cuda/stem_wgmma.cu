/* A picture's convolution (stem_wgmma.cuh) forward on Hopper: matrix products with rows = output
 * channels, columns = positions of a sample, k = (kernel row, 4 pairs of pixels). A block keeps a
 * model's weights in shared memory. A run of 512 positions comes there once for all kernel rows.
 * A block is two warp groups of 256 positions each, of which one multiplies while the other writes,
 * and one that copies. Sums are turned round in shared memory and written pixel by pixel; means and
 * squared deviations are taken for the EvoNorm that follows.
 * Grid: as many blocks as there are multiprocessors, each with neighbouring tiles (job, sample,
 * positions). 8 bytes read a pixel of the picture, some of them twice, and 128 written an output
 * pixel; 2 flops a product, of 224 or less instead of 147 and less. */
#include "backend/cuda/stem_wgmma.cuh"

enum { GROUPS = 2, COPIER = GROUPS * GROUP, THREADS = COPIER + GROUP, UNIT = 256 /* of a group */ };
enum { TILE = GROUPS * UNIT, MOST_SLOTS = 4, LEAST_PITCH = 16 };
enum { MEET = 1, LET_GO = 2 }; /* barriers of both groups */
enum { EIGHTS = CHUNK * PAIR /* bytes of eight k of the weights */, STAGED = UNIT * 32 };

typedef struct stem_call {
    stem_run run;
    cuda_pairs pairs;
    const cuda_job *jobs;
    int n_jobs, n_max, n_tiles, n_units; /* of a sample */
    int n_slots, slot_bytes;
    int ci, kernel, pad;
    const char *x;
    const float *weights; /* parameter rows from there on */
    size_t stride;
    bf16 *y;
    cuda_segments segments; /* units */
    float *measures;
} stem_call;

typedef struct tile {
    size_t sample;
    int at, model;
} tile;

/* False: there is nothing to compute. */
static __device__ __forceinline__ bool find_tile(const stem_call &c, int k, tile &t) {
    t.at = k % c.n_tiles, k /= c.n_tiles;
    const cuda_job job = c.jobs[k / c.n_max];
    t.sample = k, t.model = job.model;
    return k % c.n_max < job.n;
}

/* Where things lie in shared memory. */
typedef struct places {
    char *slots, *weights, *staging;
    uint64_t *full, *empty;
} places;

enum { REST_BYTES = MOST_ROWS * ACROSS * EIGHTS + GROUPS * 4 * STAGED + 2 * MOST_SLOTS * 8 + 128 };

static __device__ __forceinline__ places places_of(const stem_call &c, char *shared) {
    places at;
    at.slots = shared + (128 - shared_at(shared) % 128) % 128;
    at.weights = at.slots + c.n_slots * c.slot_bytes;
    at.staging = at.weights + MOST_ROWS * ACROSS * EIGHTS;
    at.full = (uint64_t *)(at.staging + GROUPS * 4 * STAGED);
    at.empty = at.full + MOST_SLOTS;
    return at;
}

static __device__ __forceinline__ void copy_tile(const stem_call &c, const places &at,
                                                 const tile &t, turn &slot) {
    barrier_wait(&at.empty[slot.at], slot.phase ^ 1);
    barrier_expect(&at.full[slot.at], (c.run.n[0] + c.run.n[1]) * PAIR);
    copy_pairs(shared_at(at.slots + slot.at * c.slot_bytes), c.run,
               c.x + t.sample * 2 * c.pairs.size * PAIR, c.pairs.size, t.at * TILE,
               &at.full[slot.at]);
    next_turn(slot, c.n_slots);
}

/* ---- weights: [kernel row][pair][channel][8] ---- */

static __device__ __forceinline__ void clear_weights(const places &at) {
    for (int e = (int)threadIdx.x; e < MOST_ROWS * ACROSS * CHUNK; e += THREADS)
        ((uint4 *)at.weights)[e] = make_uint4(0, 0, 0, 0);
    writes_to_products();
}

/* Both groups take a model's; those of the model before are read no more. */
static __device__ __forceinline__ void load_weights(const stem_call &c, const places &at,
                                                    int model) {
    int taps = c.kernel * c.kernel, n = c.ci * taps, warp = (int)threadIdx.x / 32;
    const float *weights = c.weights + model * c.stride + warp * n;
    group_sync(MEET, COPIER);
    for (int e = (int)threadIdx.x & 31; e < n; e += 32) {
        int i = e / taps, u = (e - i * taps) / c.kernel;
        int column = e - i * taps - u * c.kernel + (c.pad & 1); /* see column_of */
        int k = u * ACROSS + column / 2;
        bf16 *to = (bf16 *)(at.weights + k * EIGHTS + warp * PAIR) + column % 2 * 4 + i;
        float v[CHUNK / 8];
#pragma unroll
        for (int o = 0; o < CHUNK / 8; o++) v[o] = weights[o * 8 * n + e];
#pragma unroll
        for (int o = 0; o < CHUNK / 8; o++) to[o * 8 * PAIR / 2] = __float2bfloat16_rn(v[o]);
    }
    writes_to_products();
    __syncwarp();
    group_sync(MEET, COPIER);
}

/* ---- a unit of positions ---- */

static __device__ __forceinline__ void multiply_unit(const stem_call &c, const char *weights,
                                                     const char *slot, float sums[128]) {
    uint64_t a = plain_matrix_at(shared_at(weights), EIGHTS, 8 * PAIR);
    uint64_t b = plain_matrix_at(shared_at(slot), PAIR, 8 * PAIR);
#pragma unroll
    for (int e = 0; e < 128; e++) sums[e] = 0.0f;
    for (int u = 0; u < c.kernel; u++) {
        products_begin();
#pragma unroll
        for (int k = 0; k < ACROSS; k += 2) /* pairs; addresses count 16 bytes */
            product_256(sums, a + (u * ACROSS + k) * (EIGHTS / 16), b + c.run.row[u] + k);
        products_group();
    }
    products_wait_but<0>();
}

/* Writes what a warp has of a unit, its 16 channels: two lanes have a position. */
template <bool MEASURES>
static __device__ __forceinline__ void finish_unit(const stem_call &c, const tile &t, int unit,
                                                   const char *staging) {
    int lane = threadIdx.x & 31, channel = (int)threadIdx.x / 32 % 4 * 16;
    int pitch = c.pairs.border + c.pairs.width, position = unit * UNIT + lane / 2;
    int y = position / pitch, x = position - y * pitch;
    const char *from = staging + staged_at(lane / 2, lane % 2);
    size_t first_pixel = t.sample * c.pairs.height * c.pairs.width;
    uint4 *to = (uint4 *)(c.y + first_pixel * CHUNK + channel + lane % 2 * 8);
    float plain[8] = {}, square[8] = {};
#pragma unroll 4
    for (int k = 0; k < UNIT; k += 16) {
        uint4 sums = *(const uint4 *)(from + k * 32);
        if (x < c.pairs.width && y < c.pairs.height) {
            __align__(16) float v[8];
            to[(y * c.pairs.width + x) * (CHUNK / 8)] = sums;
            if (MEASURES) open_eight(sums, v);
#pragma unroll
            for (int e = 0; MEASURES && e < 8; e++)
                plain[e] += v[e], square[e] = fmaf(v[e], v[e], square[e]);
        }
        x += 16; /* at most a pitch */
        if (x >= pitch) x -= pitch, y++;
    }
    if (!MEASURES) return;
    float n = (float)(pixels_before(c.segments, (unit + 1) * UNIT) -
                      pixels_before(c.segments, unit * UNIT));
    float total = lanes_sum(plain, square), other = __shfl_xor_sync(0xffffffffu, total, 16);
    total = lane & 16 ? fmaxf(fmaf(-other / n, other, total), 0.0f) : total / n;
    float *measures = c.measures + ((t.sample * c.n_units + unit) * 2 + (lane >> 4)) * CHUNK;
    measures[channel + (lane & 1) * 8 + (lane >> 1 & 7)] = total;
}

/* A group's units of tiles first .. last - 1. Behind new weights the second group begins when the
 * first one has multiplied. */
template <bool MEASURES>
static __device__ __forceinline__ void compute_tiles(const stem_call &c, const places &at,
                                                     int first, int last) {
    int group = (int)threadIdx.x / GROUP, model = -1;
    char *staging = at.staging + (int)threadIdx.x / 32 * STAGED;
    turn slot = {};
    tile t;
    for (int k = first; k < last; k++) {
        if (!find_tile(c, k, t)) continue;
        bool is_new = t.model != model;
        if (is_new) load_weights(c, at, t.model);
        if (is_new && group > 0) group_sync(LET_GO, COPIER);
        model = t.model;
        int unit = t.at * GROUPS + group;
        barrier_wait(&at.full[slot.at], slot.phase);
        float sums[128];
        if (unit < c.n_units)
            multiply_unit(c, at.weights, at.slots + slot.at * c.slot_bytes + group * UNIT * PAIR,
                          sums);
        if ((threadIdx.x & 31) == 0) barrier_arrive(&at.empty[slot.at]);
        next_turn(slot, c.n_slots);
        if (is_new && group == 0) group_arrive(LET_GO, COPIER);
        if (unit >= c.n_units) continue;
        stage_sums(sums, staging);
        __syncwarp();
        finish_unit<MEASURES>(c, t, unit, staging);
        __syncwarp(); /* the next unit is staged there */
    }
}

template <bool MEASURES>
static __global__ void __launch_bounds__(THREADS, 1)
    stem_kernel(const __grid_constant__ stem_call c) {
    extern __shared__ char shared[];
    places at = places_of(c, shared);
    if (threadIdx.x == 0) {
        for (int k = 0; k < c.n_slots; k++) {
            barrier_init(&at.full[k], 1);
            barrier_init(&at.empty[k], COPIER / 32);
        }
        barriers_ready();
    }
    clear_weights(at);
    __syncthreads();
    long long n_all = (long long)c.n_jobs * c.n_max * c.n_tiles;
    int first = (int)(n_all * blockIdx.x / gridDim.x);
    int last = (int)(n_all * (blockIdx.x + 1) / gridDim.x);
    if (threadIdx.x >= COPIER) {
        fewer_registers<24>();
        turn slot = {};
        tile t;
        if (threadIdx.x == COPIER)
            for (int k = first; k < last; k++)
                if (find_tile(c, k, t)) copy_tile(c, at, t, slot);
    } else {
        more_registers<240>();
        compute_tiles<MEASURES>(c, at, first, last);
    }
}

/* ---- launching ---- */

static int slot_bytes(const stem_run *run) {
    return (stem_run_bytes(run) + 127) / 128 * 128;
}

static bool fits(const cuda_problem *problem, cuda_direction direction) {
    const cuda_conv *v = &problem->conv;
    if (!problem->is_hopper || problem->element != CUDA_BF16 || !problem->is_first ||
        problem->has_bias || direction == CUDA_DGRAD || !stem_shape_fits(v) ||
        stem_pitch(v) < LEAST_PITCH)
        return false;
    stem_run run = stem_run_of(v, TILE);
    return 2 * (size_t)slot_bytes(&run) + REST_BYTES <= problem->shared_limit &&
           ct_cuda_stem_wgrad_fits(v, problem->shared_limit);
}

static int n_units(const cuda_conv *v) {
    return (stem_positions(v) + UNIT - 1) / UNIT;
}

static cuda_segments segments(const cuda_conv *v) {
    int n = n_units(v), positions = n * UNIT;
    return {n, UNIT, positions, stem_pitch(v), v->wo, positions - stem_positions(v)};
}

static ct_status forward(const cuda_run *run, const cuda_conv_call *call) {
    const cuda_conv *v = call->conv;
    int device = 0, n_blocks = 0;
    CT_CUDA_TRY(cudaGetDevice(&device));
    CT_CUDA_TRY(cudaDeviceGetAttribute(&n_blocks, cudaDevAttrMultiProcessorCount, device));
    stem_call c = {};
    c.run = stem_run_of(v, TILE), c.pairs = stem_pairs(v);
    c.jobs = run->jobs_dev, c.n_jobs = run->n_jobs, c.n_max = run->n_max;
    c.n_units = n_units(v), c.n_tiles = (c.n_units + GROUPS - 1) / GROUPS;
    c.slot_bytes = slot_bytes(&c.run);
    c.n_slots = (int)((run->shared_limit - REST_BYTES) / (size_t)c.slot_bytes);
    if (c.n_slots > MOST_SLOTS) c.n_slots = MOST_SLOTS;
    c.ci = v->ci, c.kernel = v->kh, c.pad = v->pad;
    c.x = (const char *)call->x, c.y = (bf16 *)call->y;
    c.weights = run->params_dev + call->weight, c.stride = run->params_stride;
    c.segments = segments(v), c.measures = call->measures;
    if (n_blocks > c.n_jobs * c.n_max * c.n_tiles) n_blocks = c.n_jobs * c.n_max * c.n_tiles;
    return launch_kernel(run, c.measures != NULL ? stem_kernel<true> : stem_kernel<false>,
                         dim3((unsigned)n_blocks), THREADS,
                         (size_t)(c.n_slots * c.slot_bytes) + REST_BYTES, c);
}

const cuda_family ct_cuda_stem_wgmma = {.name = "stem_wgmma",
                                        .fits = fits,
                                        .launch = {forward, NULL, ct_cuda_stem_wgrad},
                                        .partial = ct_cuda_stem_partial,
                                        .ends_bf16 = true,
                                        .pairs = stem_pairs,
                                        .segments = segments};
