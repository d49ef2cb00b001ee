/* Convolutions (groups = 1) 3x3 and 1x1 of multiples of 64 channels in bf16 on Hopper, and data
 * gradients, which are the same with the sides exchanged: matrix products with rows = output
 * channels, columns = positions (wgmma.cuh) of a job, k = (tap, input channel). A run of positions
 * comes to shared memory once for all taps, 64 channels at a time; a tap is where in it the matrix
 * begins. Weights come tap by tap, in blocks of 64 x 64 as shared memory has them. With stride 2 a
 * convolution reads four pictures of every second pixel, and a data gradient computes four (parity
 * classes), each with the taps that meet it.
 * A block is two warp groups and one that copies. A group computes 64 channels x 256 positions, the
 * other the same channels of the next ones; it begins later, so that one multiplies while the other
 * writes. Sums are turned round in shared memory, where the positions were, and written pixel by
 * pixel: means and squared deviations are taken for the EvoNorm that follows, or, of a gradient,
 * the sums that EvoNorm's backward pass begins with.
 * Grid: as many blocks as there are multiprocessors; they take tiles (class, job, positions,
 * channels) in turns, channels first. Reads an input value once for 64 output channels and a weight
 * once for 512 positions, from L2 mostly; 2 flops a product, of which those of the zeros between
 * rows and samples are wasted (3.5 % of 56 x 56 pixels, 23 % of 7 x 7). */
#include "backend/cuda/wgmma.cuh"

enum { GROUPS = 2, COPIER = GROUPS * GROUP, THREADS = COPIER + GROUP, UNIT = 256 /* of a group */ };
enum { RING = 9, MOST_SLOTS = 4, MOST_MAPS = 4, MOST_TAPS = 9 };
enum { LINES = 4 };                /* of 16 positions that a warp has in hand */
enum { LEAST_SIDE = 4 };           /* of 2 x 2 pixels less than half of the products are used */
enum { PLAIN, MEASURE, GRADIENT }; /* what is done with the output on its way */

/* A run of positions, and the taps that are computed from it. */
typedef struct piece {
    int map, first, last;
} piece;

typedef struct tap {
    int shift;  /* from the beginning of the run, in positions */
    int weight; /* which of the weights' taps */
} tap;

typedef struct conv_call {
    CUtensorMap maps[MOST_MAPS];
    positions p;
    const cuda_job *jobs;
    int n_jobs, n_max;
    int n_chunks, n_blocks;      /* of 64 channels: of the input, of the output */
    int n_tiles;                 /* of positions of a job */
    int n_classes, n_all;        /* all tiles */
    int before, n_rows, n_slots; /* of a run: positions before the tile, all of them; buffers */
    int slot_bytes;
    piece pieces[MOST_MAPS];
    int first_piece[MOST_MAPS + 1]; /* of a class */
    tap taps[MOST_TAPS];
    const char *packed;
    size_t packed_stride;     /* bytes */
    int height, width, scale; /* of the output; pixel = position * scale + class */
    bf16 *y;
    cuda_segments segments; /* of a sample and class */
    float *measures;
    const void *norm_in;
    cuda_element norm_element;
} conv_call;

/* A tile of a block. */
typedef struct tile {
    int kind, job, first, block; /* class, job, first position behind the lead, output block */
    cuda_job of;
} tile;

/* False: there is nothing to compute. */
static __device__ __forceinline__ bool find_tile(const conv_call &c, int at, tile &t) {
    t.block = at % c.n_blocks, at /= c.n_blocks;
    t.first = at % c.n_tiles * (GROUPS * UNIT), at /= c.n_tiles;
    t.job = at % c.n_jobs, t.kind = c.n_classes - 1 - at / c.n_jobs; /* most taps first */
    t.of = c.jobs[t.job];
    return t.first < t.of.n * c.p.size - c.p.lead;
}

/* Where things lie in shared memory: slots for runs of positions, a ring for weights. */
typedef struct places {
    char *slots, *ring;
    int *pixels; /* [GROUPS][UNIT] */
    uint64_t *slot_full, *slot_empty, *ring_full, *ring_empty;
} places;

enum { PIXEL_BYTES = GROUPS * UNIT * 4, BARRIERS = 2 * (RING + MOST_SLOTS) };
enum { REST_BYTES = RING * BLOCK_BYTES + PIXEL_BYTES + BARRIERS * 8 + 1024 };

static __device__ __forceinline__ places places_of(const conv_call &c, char *shared) {
    places at;
    at.slots = shared + (1024 - shared_at(shared) % 1024) % 1024;
    at.ring = at.slots + c.n_slots * c.slot_bytes;
    at.pixels = (int *)(at.ring + RING * BLOCK_BYTES);
    at.slot_full = (uint64_t *)((char *)at.pixels + PIXEL_BYTES);
    at.slot_empty = at.slot_full + MOST_SLOTS;
    at.ring_full = at.slot_empty + MOST_SLOTS;
    at.ring_empty = at.ring_full + RING;
    return at;
}

/* ---- copying: one thread ---- */

static __device__ __forceinline__ void copy_slot(const conv_call &c, const places &at, int map,
                                                 int channel, int from, turn &slot) {
    barrier_wait(&at.slot_empty[slot.at], slot.phase ^ 1);
    barrier_expect(&at.slot_full[slot.at], c.n_rows * LINE);
    copy_run(shared_at(at.slots + slot.at * c.slot_bytes), &c.maps[map], c.p, channel, from,
             &at.slot_full[slot.at]);
    next_turn(slot, c.n_slots);
}

/* The second group's run comes behind the first weights: it begins later. */
static __device__ __forceinline__ void copy_tile(const conv_call &c, const places &at,
                                                 const tile &t, turn &slot, turn &stage) {
    const char *packed = c.packed + t.of.model * c.packed_stride + (size_t)t.block * BLOCK_BYTES;
    int from = t.job * c.n_max * c.p.size + c.p.lead - c.before + t.first;
    for (int chunk = 0; chunk < c.n_chunks; chunk++)
        for (int k = c.first_piece[t.kind]; k < c.first_piece[t.kind + 1]; k++) {
            const piece of = c.pieces[k];
            copy_slot(c, at, of.map, chunk * CHUNK, from, slot);
            for (int e = of.first; e < of.last; e++) {
                size_t block = (size_t)(c.taps[e].weight * c.n_chunks + chunk) * c.n_blocks;
                barrier_wait(&at.ring_empty[stage.at], stage.phase ^ 1);
                barrier_expect(&at.ring_full[stage.at], BLOCK_BYTES);
                copy_bulk(shared_at(at.ring + stage.at * BLOCK_BYTES), packed + block * BLOCK_BYTES,
                          BLOCK_BYTES, &at.ring_full[stage.at]);
                next_turn(stage, RING);
                if (e == min(of.first + 1, of.last - 1))
                    copy_slot(c, at, of.map, chunk * CHUNK, from + UNIT, slot);
            }
        }
}

/* ---- multiplying: a warp group ---- */

static __device__ __forceinline__ void give_back(uint64_t *barriers, int which) {
    if (which >= 0 && (threadIdx.x & 31) == 0) barrier_arrive(&barriers[which]);
}

/* All products of a unit; `slot` is the group's next one, every second is. Stages are given back
 * when the products after them have begun. Behind the first run the second group is let go, once.
 * Returns the last slot, which is not given back, or -1: no tap meets this class. */
static __device__ __forceinline__ int multiply_unit(const conv_call &c, const places &at,
                                                    const tile &t, bool &lets_go, turn &slot,
                                                    turn &stage, float sums[128]) {
    int last_stage = -1, last_slot = -1; /* to be given back */
    for (int chunk = 0; chunk < c.n_chunks; chunk++)
        for (int k = c.first_piece[t.kind]; k < c.first_piece[t.kind + 1]; k++) {
            uint32_t run = shared_at(at.slots + slot.at * c.slot_bytes);
            barrier_wait(&at.slot_full[slot.at], slot.phase);
            for (int e = c.pieces[k].first; e < c.pieces[k].last; e++) {
                uint64_t a = matrix_at(shared_at(at.ring + stage.at * BLOCK_BYTES));
                uint64_t b = matrix_at(run + c.taps[e].shift * LINE);
                barrier_wait(&at.ring_full[stage.at], stage.phase);
                products_begin();
#pragma unroll
                for (int i = 0; i < CHUNK / 16; i++)
                    product_256(sums, a + 2 * i, b + 2 * i); /* 32 bytes further */
                products_group();
                products_wait_but<1>();
                give_back(at.ring_empty, last_stage);
                give_back(at.slot_empty, last_slot);
                last_stage = stage.at, last_slot = -1;
                next_turn(stage, RING);
            }
            if (lets_go) group_arrive(1 + GROUPS, COPIER);
            lets_go = false;
            last_slot = slot.at;
            next_turn(slot, c.n_slots);
            next_turn(slot, c.n_slots);
        }
    if (lets_go) group_arrive(1 + GROUPS, COPIER);
    lets_go = false;
    products_wait_but<0>();
    give_back(at.ring_empty, last_stage);
    return last_slot;
}

/* ---- what becomes of the sums ---- */

/* Where a lane's part of the sums goes: 8 channels of every 16th position. */
typedef struct ends {
    int first, channel; /* position behind the lead, of the group; channel, of the warp */
    uint4 *y;           /* of the job's first pixel */
    const void *norm_in;
    int *pixels;   /* of the group's positions */
    char *staging; /* the warp's: [position][16 channels] */
} ends;

static __device__ __forceinline__ ends ends_of(const conv_call &c, const places &at, const tile &t,
                                               int group) {
    int warp = (int)threadIdx.x / 32;
    ends to = {};
    to.first = t.first + group * UNIT;
    to.channel = t.block * CHUNK + warp % 4 * 16;
    size_t n_pixels = (size_t)t.job * c.n_max * c.height * c.width;
    size_t value = n_pixels * (c.n_blocks * CHUNK) + to.channel + threadIdx.x % 2 * 8;
    to.y = (uint4 *)(c.y + value);
    to.norm_in = (const char *)c.norm_in + value * (c.norm_element == CUDA_BF16 ? 2 : 4);
    to.pixels = at.pixels + group * UNIT;
    return to;
}

/* The output pixels of a group's positions, in units of 8 channels; -1 where there is none. */
static __device__ __forceinline__ void find_pixels(const conv_call &c, const tile &t, int first,
                                                   int *pixels) {
#pragma unroll
    for (int e = (int)threadIdx.x % GROUP; e < UNIT; e += GROUP) {
        int at = first + e + c.p.lead, sample = at / c.p.size, rest = at - sample * c.p.size;
        int y = rest / c.p.pitch, x = rest - y * c.p.pitch - c.p.border;
        y -= c.p.border;
        bool is_there = sample < t.of.n && y >= 0 && x >= 0;
        y = y * c.scale + t.kind / 2, x = x * c.scale + t.kind % 2;
        is_there = is_there && y < c.height && x < c.width;
        int pixel = (sample * c.height + y) * c.width + x;
        pixels[e] = is_there ? pixel * (c.n_blocks * CHUNK / 8) : -1;
    }
}

/* A sample's part of a unit of positions. */
typedef struct section {
    int sample, begin, end; /* positions of the unit, the end may lie behind it */
    float first[8], second[8];
} section;

/* Writes a section's measures; `channel` is the first of the warp's. */
template <int ENDS>
static __device__ __forceinline__ void measure(const conv_call &c, const tile &t, int first,
                                               int channel, const section &s) {
    int lane = threadIdx.x & 31, start = s.sample * c.p.size, unit = first / UNIT;
    int n = pixels_before(c.segments, first + min(s.end, (int)UNIT) - start) -
            pixels_before(c.segments, first + max(s.begin, 0) - start);
    float total = lanes_sum(s.first, s.second), other = __shfl_xor_sync(0xffffffffu, total, 16);
    if (s.sample >= t.of.n || n == 0) return;
    if (ENDS == MEASURE)
        total = lane & 16 ? fmaxf(fmaf(-other / (float)n, other, total), 0.0f) : total / (float)n;
    int channels = c.n_blocks * CHUNK, segment = unit - start / UNIT;
    size_t row = (size_t)(t.job * c.n_max + s.sample) * c.n_classes + t.kind;
    float *to = c.measures + ((row * c.segments.n + segment) * 2 + (lane >> 4)) * channels +
                channel + (lane & 1) * 8 + (lane >> 1 & 7);
    *to = total;
    bool is_last = (start + c.p.size - c.p.lead - 1) / UNIT == unit;
    if (is_last && segment + 1 < c.segments.n) to[2 * channels] = 0.0f;
}

/* A lane's 8 channels of a position: where they go, and what is there, asked for early: the
 * gradient so far, and what the norm before read. */
typedef struct line {
    int at;
    uint4 before, in;
} line;

template <int ENDS, bool ADDS>
static __device__ __forceinline__ void begin_lines(const conv_call &c, const ends &to, int position,
                                                   line lines[LINES]) {
#pragma unroll
    for (int k = 0; k < LINES; k++) {
        line &l = lines[k];
        l.at = to.pixels[position + 16 * k + (threadIdx.x & 31) / 2];
        if (ADDS && l.at >= 0) l.before = to.y[l.at];
        if (ENDS == GRADIENT && l.at >= 0 && c.norm_element == CUDA_BF16)
            l.in = __ldg((const uint4 *)to.norm_in + l.at);
    }
}

/* EvoNorm's numerators of what the norm before read. */
static __device__ __forceinline__ void open_norm_in(const conv_call &c, const ends &to,
                                                    const line &l, float in[8]) {
    open_eight(l.in, in);
    if (c.norm_element == CUDA_FP32) load_eight((const float *)to.norm_in + l.at * 8, (float4 *)in);
#pragma unroll
    for (int e = 0; e < 8; e++) in[e] *= __saturatef(fmaf(in[e], 1.0f / 6.0f, 0.5f));
}

/* Adds a position's 8 channels to a section's sums. */
template <int ENDS>
static __device__ __forceinline__ void add_position(const conv_call &c, const ends &to,
                                                    const line &l, const float v[8], section &s) {
    __align__(16) float in[8];
    if (ENDS == GRADIENT) open_norm_in(c, to, l, in);
#pragma unroll
    for (int e = 0; e < 8; e++) {
        s.first[e] = ENDS == MEASURE ? s.first[e] + v[e] : fmaf(v[e], in[e], s.first[e]);
        s.second[e] = ENDS == MEASURE ? fmaf(v[e], v[e], s.second[e]) : s.second[e] + v[e];
    }
}

/* 16 positions of a warp: two lanes have 16 channels of one. */
template <int ENDS, bool ADDS>
static __device__ __forceinline__ void finish_line(const conv_call &c, const tile &t,
                                                   const ends &to, int position, const line &l,
                                                   section &s) {
    int lane = threadIdx.x & 31, own = position + lane / 2;
    __align__(16) float v[8], before[8];
    uint4 sums = make_uint4(0, 0, 0, 0); /* no tap meets the class */
    if (to.staging != NULL)
        sums = *(const uint4 *)(to.staging + staged_at(lane / 2, lane % 2) + position * 32);
    if (ADDS || ENDS != PLAIN) open_eight(sums, v);
    if (l.at >= 0) {
        if (ADDS) {
            open_eight(l.before, before);
#pragma unroll
            for (int e = 0; e < 8; e++) v[e] += before[e];
            store_eight((bf16 *)(to.y + l.at), (const float4 *)v);
        } else {
            to.y[l.at] = sums;
        }
        if (ENDS != PLAIN && own < s.end) add_position<ENDS>(c, to, l, v, s);
    }
    while (ENDS != PLAIN && s.end <= position + 16) {
        measure<ENDS>(c, t, to.first, to.channel, s);
        s.sample++, s.begin = s.end, s.end += c.p.size;
#pragma unroll
        for (int e = 0; e < 8; e++) s.first[e] = s.second[e] = 0.0f;
        if (l.at >= 0 && own >= s.begin && own < s.end) add_position<ENDS>(c, to, l, v, s);
    }
}

template <int ENDS, bool ADDS>
static __device__ __forceinline__ void finish_unit(const conv_call &c, const tile &t,
                                                   const ends &to) {
    line lines[LINES], next[LINES];
    section s = {};
    s.sample = to.first / c.p.size;
    s.begin = s.sample * c.p.size - to.first, s.end = s.begin + c.p.size;
    begin_lines<ENDS, ADDS>(c, to, 0, next);
#pragma unroll 1
    for (int at = 0; at < UNIT; at += LINES * 16) {
#pragma unroll
        for (int e = 0; e < LINES; e++) lines[e] = next[e];
        if (at + LINES * 16 < UNIT) begin_lines<ENDS, ADDS>(c, to, at + LINES * 16, next);
#pragma unroll
        for (int e = 0; e < LINES; e++) finish_line<ENDS, ADDS>(c, t, to, at + e * 16, lines[e], s);
    }
    if (ENDS != PLAIN && s.begin < UNIT) measure<ENDS>(c, t, to.first, to.channel, s);
}

/* A unit: its products, and what becomes of them. */
template <int ENDS, bool ADDS>
static __device__ __forceinline__ void compute_unit(const conv_call &c, const places &at,
                                                    const tile &t, int group, bool &lets_go,
                                                    turn &slot, turn &stage) {
    float sums[128];
    group_sync(1 + group, GROUP); /* the unit before is written */
    find_pixels(c, t, t.first + group * UNIT, at.pixels + group * UNIT);
    group_sync(1 + group, GROUP);
#pragma unroll
    for (int e = 0; e < 128; e++) sums[e] = 0.0f;
    int last = multiply_unit(c, at, t, lets_go, slot, stage, sums);
    ends to = ends_of(c, at, t, group);
    if (last >= 0) {
        to.staging = at.slots + last * c.slot_bytes + (int)threadIdx.x / 32 % 4 * (UNIT * 32);
        group_sync(1 + group, GROUP); /* nobody's products read the slot */
        stage_sums(sums, to.staging);
        __syncwarp();
    }
    finish_unit<ENDS, ADDS>(c, t, to);
    writes_to_products();
    __syncwarp();
    give_back(at.slot_empty, last);
}

template <int ENDS, bool ADDS>
static __global__ void __launch_bounds__(THREADS, 1)
    conv_kernel(const __grid_constant__ conv_call c) {
    extern __shared__ char shared[];
    places at = places_of(c, shared);
    if (threadIdx.x == 0) {
        for (int k = 0; k < c.n_slots; k++) {
            barrier_init(&at.slot_full[k], 1);
            barrier_init(&at.slot_empty[k], 4); /* warps of one group */
        }
        for (int k = 0; k < RING; k++) {
            barrier_init(&at.ring_full[k], 1);
            barrier_init(&at.ring_empty[k], GROUPS * 4);
        }
        barriers_ready();
    }
    __syncthreads();
    turn slot = {}, stage = {};
    tile t;
    if (threadIdx.x >= COPIER) {
        fewer_registers<24>();
        if (threadIdx.x == COPIER)
            for (int k = (int)blockIdx.x; k < c.n_all; k += (int)gridDim.x)
                if (find_tile(c, k, t)) copy_tile(c, at, t, slot, stage);
    } else {
        more_registers<240>();
        int group = (int)threadIdx.x / GROUP;
        bool lets_go = group == 0;
        if (group > 0) {
            next_turn(slot, c.n_slots);
            group_sync(1 + GROUPS, COPIER);
        }
        for (int k = (int)blockIdx.x; k < c.n_all; k += (int)gridDim.x)
            if (find_tile(c, k, t)) compute_unit<ENDS, ADDS>(c, at, t, group, lets_go, slot, stage);
        if (lets_go) group_arrive(1 + GROUPS, COPIER);
    }
}

/* ---- launching ---- */

static positions positions_for(const cuda_conv *v) {
    return positions_of(v->ho, v->wo, v->kh / 2);
}

static int run_rows(const cuda_conv *v) {
    return UNIT + (v->stride == 1 ? 2 : 1) * positions_for(v).lead; /* one or both sides */
}

static int slot_bytes(int n_rows) {
    return (n_rows * LINE + 1023) / 1024 * 1024;
}

static bool fits(const cuda_problem *problem, cuda_direction direction) {
    const cuda_conv *v = &problem->conv;
    if (!problem->is_hopper || problem->element != CUDA_BF16) return false;
    if (problem->has_bias || ct_cuda_is_pointwise(v) || v->groups != 1 || v->kh != v->kw ||
        v->pad != v->kh / 2 || (v->kh != 3 && v->kh != 1) || v->stride > 2 || v->ci % CHUNK != 0 ||
        v->co % CHUNK != 0 || v->ho < LEAST_SIDE || v->wo < LEAST_SIDE)
        return false;
    if (direction == CUDA_WGRAD) return ct_cuda_wgmma_wgrad_fits(v, problem->shared_limit);
    return run_rows(v) <= 1024 &&
           3 * (size_t)slot_bytes(run_rows(v)) + REST_BYTES <= problem->shared_limit;
}

/* Appends a tap (u, v) whose position is (dy, dx) from the output's. */
static void add_tap(conv_call *c, int *n, int u, int v, int kernel, int dy, int dx) {
    c->taps[*n] = {c->before + dy * c->p.pitch + dx, u * kernel + v};
    ++*n;
}

/* Forward: with stride 2, tap u reads rows 2 i + u - 1 = every second one from (u + 1) % 2 on. */
static void plan_forward(const cuda_conv *v, conv_call *c) {
    int n = 0, k = 0;
    for (int plane = v->stride * v->stride - 1; plane >= 0; plane--) {
        int a = plane / 2, b = plane % 2, begin = n, border = c->p.border;
        for (int u = 0; u < v->kh; u++)
            for (int q = 0; q < v->kw; q++) {
                int y = u - border, x = q - border; /* stride 1: the distance */
                if (v->stride == 1)
                    add_tap(c, &n, u, q, v->kw, y, x);
                else if ((y & 1) == a && (x & 1) == b)
                    add_tap(c, &n, u, q, v->kw, (y - a) / 2, (x - b) / 2);
            }
        if (n > begin) c->pieces[k++] = {plane, begin, n};
    }
    c->n_classes = 1, c->first_piece[1] = k;
}

/* Data gradient: input row y = stride i + a meets output row (y + pad - u) / stride. */
static void plan_dgrad(const cuda_conv *v, conv_call *c) {
    int n = 0, k = 0, s = v->stride;
    c->n_classes = s * s;
    for (int plane = 0; plane < c->n_classes; plane++) {
        int a = plane / 2, b = plane % 2, begin = n;
        for (int u = 0; u < v->kh; u++)
            for (int q = 0; q < v->kw; q++) {
                int y = a + v->pad - u, x = b + v->pad - q;
                if (y % s == 0 && x % s == 0) add_tap(c, &n, u, q, v->kw, y / s, x / s);
            }
        c->first_piece[plane] = k;
        if (n > begin) c->pieces[k++] = {0, begin, n};
    }
    c->first_piece[c->n_classes] = k;
}

/* Units of positions that a sample may lie in. */
static cuda_segments segments(const cuda_conv *v) {
    positions p = positions_for(v);
    return {(p.size - p.lead + UNIT - 2) / UNIT + 1, UNIT, p.size, p.pitch, p.width, p.lead};
}

template <int ENDS, bool ADDS> static ct_status launch(const cuda_run *run, conv_call *c) {
    int device = 0, n_blocks = 0;
    CT_CUDA_TRY(cudaGetDevice(&device));
    CT_CUDA_TRY(cudaDeviceGetAttribute(&n_blocks, cudaDevAttrMultiProcessorCount, device));
    c->n_slots = (int)((run->shared_limit - REST_BYTES) / (size_t)c->slot_bytes);
    if (c->n_slots > MOST_SLOTS) c->n_slots = MOST_SLOTS;
    if (c->n_all < n_blocks) n_blocks = c->n_all;
    return launch_kernel(run, conv_kernel<ENDS, ADDS>, dim3((unsigned)n_blocks), THREADS,
                         (size_t)(c->n_slots * c->slot_bytes) + REST_BYTES, *c);
}

/* What both directions share: `direction` reads x and writes y. */
static ct_status convolve(const cuda_run *run, const cuda_conv_call *call, cuda_direction direction,
                          conv_call *c) {
    const cuda_conv *v = call->conv;
    bool is_forward = direction == CUDA_FORWARD;
    cuda_tile_conv of = ct_cuda_tile_of(v, direction);
    c->p = positions_for(v);
    c->before = is_forward || v->stride == 1 ? c->p.lead : 0;
    c->n_rows = run_rows(v), c->slot_bytes = slot_bytes(c->n_rows);
    if (is_forward)
        plan_forward(v, c);
    else
        plan_dgrad(v, c);
    int step = is_forward ? v->stride : 1, n_samples = run->n_jobs * run->n_max;
    for (int k = 0; k < step * step; k++) {
        picture x = {
            is_forward ? call->x : call->d, n_samples, of.hi, of.wi, of.ci, step, k / 2, k % 2};
        CT_TRY(map_positions(&x, &c->p, c->n_rows, &c->maps[k]));
    }
    int unit = GROUPS * UNIT;
    c->jobs = run->jobs_dev, c->n_jobs = run->n_jobs, c->n_max = run->n_max;
    c->n_chunks = of.ci / CHUNK, c->n_blocks = of.co / CHUNK;
    c->n_tiles = (run->n_max * c->p.size - c->p.lead + unit - 1) / unit;
    c->n_all = c->n_blocks * c->n_tiles * c->n_jobs * c->n_classes;
    c->packed = (const char *)(run->packed_dev + call->packed);
    c->packed_stride = run->packed_stride * sizeof(float);
    c->height = of.ho, c->width = of.wo, c->scale = is_forward ? 1 : v->stride;
    c->measures = call->measures, c->segments = segments(v);
    bool measures = c->measures != NULL;
    if (call->accumulate)
        return measures ? launch<GRADIENT, true>(run, c) : launch<PLAIN, true>(run, c);
    if (!measures) return launch<PLAIN, false>(run, c);
    return is_forward ? launch<MEASURE, false>(run, c) : launch<GRADIENT, false>(run, c);
}

static ct_status forward(const cuda_run *run, const cuda_conv_call *call) {
    conv_call c = {};
    c.y = (bf16 *)call->y;
    return convolve(run, call, CUDA_FORWARD, &c);
}

static ct_status dgrad(const cuda_run *run, const cuda_conv_call *call) {
    conv_call c = {};
    c.y = (bf16 *)call->dx;
    c.norm_in = call->norm_in, c.norm_element = call->norm_element;
    return convolve(run, call, CUDA_DGRAD, &c);
}

static int parts(const cuda_conv *v, bool, bool) {
    return segments(v).n * v->stride * v->stride;
}

const cuda_family ct_cuda_wgmma = {.name = "wgmma",
                                   .fits = fits,
                                   .packing = {CUDA_PACK_BLOCKS, CUDA_PACK_BLOCKS},
                                   .launch = {forward, dgrad, ct_cuda_wgmma_wgrad},
                                   .partial = ct_cuda_wgmma_partial,
                                   .has_bf16 = true,
                                   .segments = segments,
                                   .parts = parts};
