#include "util/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static atomic_uint_fast64_t n_allocs;

void *ct_alloc(size_t n, size_t size) {
    if (size != 0 && n > (SIZE_MAX - CT_ALIGNMENT) / size) return NULL;
    size_t bytes = (n * size + CT_ALIGNMENT - 1) / CT_ALIGNMENT * CT_ALIGNMENT;
    if (bytes == 0) bytes = CT_ALIGNMENT;
    atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed);
    void *block = aligned_alloc(CT_ALIGNMENT, bytes);
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
