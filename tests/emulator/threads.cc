/* A block's threads as fibers: who runs, who waits, and what warps and barriers know. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <memory>
#include <mutex>
#include <vector>

#include "emulated.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else /* which is told of every change of stacks */
#define __sanitizer_start_switch_fiber(fake, bottom, size)
#define __sanitizer_finish_switch_fiber(fake, bottom, size)
#define ASAN_POISON_MEMORY_REGION(p, n)
#define ASAN_UNPOISON_MEMORY_REGION(p, n)
#endif

#define STACK ((size_t)192 * 1024)

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;
alignas(1024) thread_local char emulated_shared[EMULATED_SHARED];
/* The names that kernels give to it: extern __shared__ TYPE name[]. */
#define NAME(name) extern thread_local char name[] __attribute__((alias("emulated_shared")))
NAME(shared);
NAME(rows);
NAME(tile);
NAME(ring);
NAME(weights);
NAME(first);
#undef NAME

namespace {

struct barrier {
    int n_there;
    unsigned generation;
};

struct warp {
    uint32_t exist, there;
    unsigned generation;
    emulated_words words[2];
};

struct fiber {
    jmp_buf place;
    ucontext_t start;
    std::unique_ptr<char[]> stack;
    uint3 index;
    bool has_begun = false, has_ended;
    const char *waits_for;
    /* until *count is no longer what it was, or until is_done; neither if it does not wait */
    const unsigned *count;
    unsigned was;
    const std::function<bool()> *is_done;
    emulated_pending pending; /* copies and products that it has put off */
    void *frames;             /* the sanitizer's */
};

struct block {
    const std::function<void()> *body;
    const char *name;
    int n_threads, n_living;
    std::vector<warp> warps;
    barrier barriers[16];
    size_t n_steps; /* anything that happened */
};

thread_local std::vector<std::unique_ptr<fiber>> fibers;
thread_local block now;
thread_local fiber *own;
thread_local int own_number;
thread_local jmp_buf home;
/* What the sanitizer wants back. */
[[maybe_unused]] thread_local const void *home_bottom;
[[maybe_unused]] thread_local size_t home_size;
[[maybe_unused]] thread_local void *home_frames;

/* Runs a thread until it waits or has ended. */
void resume(int number) {
    own = fibers[(size_t)number].get();
    own_number = number;
    threadIdx = own->index;
    if (_setjmp(home) != 0) {
        __sanitizer_finish_switch_fiber(home_frames, NULL, NULL);
        return;
    }
    __sanitizer_start_switch_fiber(&home_frames, own->stack.get(), STACK);
    if (own->has_begun) _longjmp(own->place, 1);
    own->has_begun = true;
    setcontext(&own->start);
}

void pause(void) {
    if (_setjmp(own->place) == 0) {
        __sanitizer_start_switch_fiber(&own->frames, home_bottom, home_size);
        _longjmp(home, 1);
    }
    __sanitizer_finish_switch_fiber(own->frames, &home_bottom, &home_size);
}

void complete(barrier *b) {
    b->n_there = 0;
    b->generation++;
    now.n_steps++;
}

/* Those who have ended are not waited for. */
void end_thread(void) {
    own->has_ended = true;
    now.n_living--;
    now.n_steps++;
    barrier *all = &now.barriers[0];
    if (all->n_there > 0 && all->n_there >= now.n_living) complete(all);
}

/* A fiber's life: its thread of one block after the other. */
void begin(void) {
    __sanitizer_finish_switch_fiber(NULL, &home_bottom, &home_size);
    for (;;) {
        (*now.body)();
        emulated_end_pending();
        end_thread();
        pause();
    }
}

void create_fiber(void) {
    fibers.push_back(std::make_unique<fiber>());
    fiber *f = fibers.back().get();
    f->stack.reset(new char[STACK]);
    getcontext(&f->start);
    f->start.uc_stack.ss_sp = f->stack.get();
    f->start.uc_stack.ss_size = STACK;
    makecontext(&f->start, begin, 0);
}

void prepare(int number, dim3 threads) {
    if (fibers.size() <= (size_t)number) create_fiber();
    fiber *f = fibers[(size_t)number].get();
    unsigned n = (unsigned)number;
    f->index = make_uint3(n % threads.x, n / threads.x % threads.y, n / threads.x / threads.y);
    f->has_ended = false;
    f->waits_for = "";
    f->count = NULL;
    f->is_done = NULL;
    f->pending = {};
}

bool can_run(const fiber *f) {
    if (f->count != NULL) return *f->count != f->was;
    return !f->has_ended && (f->is_done == NULL || (*f->is_done)());
}

/* A warp's threads as long as one of them gets on, then the next warp's. */
void run_warp(int w) {
    size_t before;
    do {
        before = now.n_steps;
        for (int t = 32 * w; t < 32 * w + 32 && t < now.n_threads; t++)
            if (can_run(fibers[(size_t)t].get())) resume(t);
    } while (now.n_steps != before);
}

void run_block(dim3 threads) {
    now.n_threads = now.n_living = (int)(threads.x * threads.y * threads.z);
    int n_warps = (now.n_threads + 31) / 32;
    now.warps.assign((size_t)n_warps, warp{});
    memset(now.barriers, 0, sizeof now.barriers);
    for (int t = 0; t < now.n_threads; t++) {
        prepare(t, threads);
        now.warps[(size_t)(t / 32)].exist |= 1u << t % 32;
    }
    while (now.n_living > 0) {
        size_t before = now.n_steps;
        for (int w = 0; w < n_warps; w++) run_warp(emulated_early() ? w : n_warps - 1 - w);
        if (now.n_steps == before) emulated_fail("threads wait for each other for ever");
    }
}

} // namespace

void emulated_fail(const char *what) {
    const char *types = strstr(now.name, "[with"); /* whose arguments tell which kernel it is */
    fprintf(stderr, "emulated GPU: a kernel %s: %s; block %u %u %u of %u %u %u\n",
            types != NULL ? types : now.name, what, blockIdx.x, blockIdx.y, blockIdx.z, gridDim.x,
            gridDim.y, gridDim.z);
    for (int t = 0; t < now.n_threads; t++)
        if (!fibers[(size_t)t]->has_ended && (t % 32 == 0 || fibers[(size_t)t].get() == own))
            fprintf(stderr, "  thread %d: %s%s\n", t, fibers[(size_t)t]->waits_for,
                    fibers[(size_t)t].get() == own ? " (this one)" : "");
    abort();
}

void emulated_wait(const char *what, const std::function<bool()> &is_done) {
    if (is_done()) return;
    own->waits_for = what;
    own->is_done = &is_done;
    pause();
    own->is_done = NULL;
    now.n_steps++;
}

static void wait_for_change(const char *what, const unsigned *count) {
    own->waits_for = what;
    own->count = count;
    own->was = *count;
    pause();
    own->count = NULL;
    now.n_steps++;
}

void emulated_step(void) {
    now.n_steps++;
}

emulated_pending *emulated_own(void) {
    return &own->pending;
}

void emulated_arrive(int which, int n_threads) {
    barrier *b = &now.barriers[which];
    int n_wanted = n_threads > 0 ? n_threads : now.n_living;
    now.n_steps++;
    if (++b->n_there >= n_wanted) complete(b);
}

void emulated_barrier(int which, int n_threads) {
    const barrier *b = &now.barriers[which];
    unsigned generation = b->generation;
    emulated_arrive(which, n_threads);
    if (b->generation == generation) wait_for_change("a barrier", &b->generation);
}

const emulated_words &emulated_meet(uint32_t mask, const void *words, size_t n_bytes) {
    warp *w = &now.warps[(size_t)(own_number / 32)];
    int lane = own_number % 32;
    emulated_words *mine = &w->words[w->generation % 2];
    memcpy(mine->lane[lane], words, n_bytes);
    w->there |= 1u << lane;
    uint32_t wanted = mask & w->exist;
    if ((w->there & wanted) == wanted) {
        w->there = 0;
        w->generation++;
        now.n_steps++;
    } else {
        wait_for_change("the others of its warp", &w->generation);
    }
    return *mine;
}

static thread_local bool is_early;

bool emulated_early(void) {
    return is_early;
}

void emulated_choose(void) {
    static const char *const order = getenv("CT_EMULATED_ORDER");
    static thread_local uint32_t n;
    is_early = order != NULL ? strcmp(order, "early") == 0 : ++n * 2654435761u >> 31;
}

void emulated_run(const emulated_kernel &k) {
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    emulated_choose();
    now.body = &k.body;
    now.name = k.name;
    gridDim = k.grid;
    blockDim = k.threads;
    for (unsigned z = 0; z < k.grid.z; z++)
        for (unsigned y = 0; y < k.grid.y; y++)
            for (unsigned x = 0; x < k.grid.x; x++) {
                blockIdx = make_uint3(x, y, z);
                ASAN_UNPOISON_MEMORY_REGION(emulated_shared, EMULATED_SHARED);
                memset(emulated_shared, 0xff, k.bytes);
                ASAN_POISON_MEMORY_REGION(emulated_shared + k.bytes, EMULATED_SHARED - k.bytes);
                run_block(k.threads);
                emulated_end_block();
            }
}

/* ---- shared memory ---- */

uint32_t shared_at(const void *p) {
    return (uint32_t)((const char *)p - emulated_shared);
}

char *emulated_pointer(uint32_t address) {
    return emulated_shared + (int32_t)address;
}

/* ---- copies in the background ---- */

static void copy_now(const emulated_pending::copy &c) {
    if (c.from == NULL)
        memset(emulated_pointer(c.to), 0, (size_t)c.n);
    else
        memcpy(emulated_pointer(c.to), c.from, (size_t)c.n);
}

void emulated_copy(uint32_t to, const void *from, int n) {
    if (to % (uint32_t)n != 0 || (uintptr_t)from % (uintptr_t)n != 0)
        emulated_fail("cp.async of an address that its size does not divide");
    emulated_pending::copy c = {to, n, from, 0};
    if (emulated_early()) {
        copy_now(c);
        return;
    }
    own->pending.copies.push_back(c);
}

void emulated_copies_group(void) {
    for (auto &c : own->pending.copies) c.n_groups++;
}

void emulated_copies_wait(int n_but) {
    auto &copies = own->pending.copies;
    size_t n_done = 0;
    while (n_done < copies.size() && copies[n_done].n_groups > n_but) copy_now(copies[n_done++]);
    copies.erase(copies.begin(), copies.begin() + (ptrdiff_t)n_done);
}
