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

/* What a function owns until it returns, whichever way it does: freed at the end of the scope, in
 * reverse order. A struct must be zeroed and a pointer NULL before anything can fail; what is given
 * to the caller is taken out (ct_take, or the struct copied and zeroed).
 *   CT_SCOPED(ct_text) text = {0};           ct_text_free(&text)
 *   CT_SCOPED_HANDLE(ct_json) json = NULL;   ct_json_free(&json)
 *   CT_SCOPED_BLOCK(float) row = NULL;       ct_free(row) */
#define CT_SCOPED(type)        __attribute__((cleanup(type##_free))) type
#define CT_SCOPED_HANDLE(type) __attribute__((cleanup(type##_free))) type *
#define CT_SCOPED_BLOCK(type)  __attribute__((cleanup(ct_free_scoped))) type *
void ct_free_scoped(void *pointer); /* the address of a pointer to a block */
/* The block that *pointer has, which forgets it. */
void *ct_take(void *pointer);

/* Seconds on a clock that only goes forward. */
double ct_seconds(void);

/* Calls of ct_alloc, ct_grow and ct_strdup so far, and the largest resident size of the process. */
uint64_t ct_alloc_count(void);
size_t ct_peak_bytes(void);

#endif
