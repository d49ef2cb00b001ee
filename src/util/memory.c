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
    void *block;
    memcpy(&block, pointer, sizeof block);
    ct_free(block);
}

void *ct_take(void *pointer) {
    void *block, *none = NULL;
    memcpy(&block, pointer, sizeof block);
    memcpy(pointer, &none, sizeof none);
    return block;
}
