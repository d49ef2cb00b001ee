/* The only place that asks the system for memory. Blocks are zeroed, aligned to 64 bytes (a cache
 * line, an AVX-512 vector) and counted, so that a test can show that a training step takes none. */
#ifndef CT_UTIL_MEMORY_H
#define CT_UTIL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define CT_ALIGNMENT 64

/* n * size bytes, zeroed; NULL if that overflows or cannot be had. A size of 0 gives a block too.
 */
void *ct_alloc(size_t n, size_t size);
#define ct_new(type, n) ((type *)ct_alloc((n), sizeof(type)))

/* A copy of a C string; NULL if there is no memory. */
char *ct_strdup(const char *text);

/* The block grown to n elements (old content kept, rest zeroed); NULL leaves the old one alone. */
void *ct_grow(void *block, size_t n_old, size_t n_new, size_t size);

void ct_free(void *block);

/* Seconds on a clock that only goes forward. */
double ct_seconds(void);

/* Calls of ct_alloc, ct_grow and ct_strdup so far, and the largest resident size of the process. */
uint64_t ct_alloc_count(void);
size_t ct_peak_bytes(void);

#endif
