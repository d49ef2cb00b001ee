#include "util/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define HUGE_PAGE   ((size_t)2 << 20)
#define LARGE_BLOCK (2 * HUGE_PAGE)

static atomic_uint_fast64_t n_allocs;

/* A large block starts on a huge page and asks for them: kernels that walk channels, 4 KiB and more
 * apart, would miss the table of small pages all the time. */
static void *take(size_t bytes) {
#ifdef MADV_HUGEPAGE
    if (bytes >= LARGE_BLOCK) {
        void *block = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
        if (block != NULL) (void)madvise(block, bytes, MADV_HUGEPAGE); /* a hint: may be refused */
        return block;
    }
#endif
    return aligned_alloc(CT_ALIGNMENT, bytes);
}

void *ct_alloc(size_t n, size_t size) {
    if (size != 0 && n > (SIZE_MAX - HUGE_PAGE) / size) return NULL;
    size_t bytes = (n * size + CT_ALIGNMENT - 1) / CT_ALIGNMENT * CT_ALIGNMENT;
    if (bytes == 0) bytes = CT_ALIGNMENT;
    atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed);
    void *block = take(bytes);
    if (block != NULL) memset(block, 0, bytes);
    return block;
}

char *ct_strdup(const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = ct_alloc(n, 1);
    if (copy != NULL) memcpy(copy, text, n);
    return copy;
}

/* *pointer = block, whatever kind of pointer it is. */
static void set_pointer(void *pointer, void *block) {
    memcpy(pointer, &block, sizeof block);
}

static void *get_pointer(const void *pointer) {
    void *block;
    memcpy(&block, pointer, sizeof block);
    return block;
}

ct_status ct_make_block(void *pointer, size_t n, size_t size, const char *what) {
    void *block = ct_alloc(n, size);
    set_pointer(pointer, block);
    return block != NULL ? CT_OK : ct_no_memory(what);
}

ct_status ct_make_block_copy(void *pointer, const void *from, size_t n, size_t size,
                             const char *what) {
    CT_TRY(ct_make_block(pointer, n, size, what));
    if (n > 0) memcpy(get_pointer(pointer), from, n * size);
    return CT_OK;
}

ct_status ct_make_text(char **out, const char *text) {
    return ct_make_copy(out, text, strlen(text) + 1, "a text");
}

ct_status ct_extend_block(void *list, size_t n, size_t size, const char *what) {
    if ((n & (n - 1)) != 0) return CT_OK;
    void *larger = ct_grow(get_pointer(list), n, n == 0 ? 1 : 2 * n, size);
    if (larger == NULL) return ct_no_memory(what);
    set_pointer(list, larger);
    return CT_OK;
}

ct_status ct_reserve_block(void *pointer, size_t *capacity, size_t n, size_t size,
                           const char *what) {
    if (n <= *capacity) return CT_OK;
    ct_free(get_pointer(pointer));
    ct_status status = ct_make_block(pointer, n, size, what);
    *capacity = status == CT_OK ? n : 0;
    return status;
}

void *ct_grow(void *block, size_t n_old, size_t n_new, size_t size) {
    void *larger = ct_alloc(n_new, size);
    if (larger == NULL) return NULL;
    if (block != NULL) memcpy(larger, block, (n_old < n_new ? n_old : n_new) * size);
    free(block);
    return larger;
}

void ct_free(void *block) {
    free(block);
}

uint64_t ct_alloc_count(void) {
    return atomic_load(&n_allocs);
}

size_t ct_peak_bytes(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (size_t)usage.ru_maxrss * 1024; /* Linux counts in KiB */
}

double ct_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ct_free_scoped(void *pointer) {
    ct_free(get_pointer(pointer));
}

void *ct_take(void *pointer) {
    void *block = get_pointer(pointer);
    set_pointer(pointer, NULL);
    return block;
}
