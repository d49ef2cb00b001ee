/* The only place that asks the system for memory. Blocks are zeroed, aligned to 64 bytes (a cache
 * line, an AVX-512 vector) and counted, so that a test can show that a training step takes none. */
#ifndef CT_UTIL_MEMORY_H
#define CT_UTIL_MEMORY_H

#include <string.h>

#include "util/status.h"

#define CT_ALIGNMENT 64

/* n * size bytes, zeroed; NULL if that overflows or cannot be had. A size of 0 gives a block too.
 */
void *ct_alloc(size_t n, size_t size);
#define ct_new(type, n) ((type *)ct_alloc((n), sizeof(type)))

/* A copy of a C string; NULL if there is no memory. */
char *ct_strdup(const char *text);

/* The same with a status: CT_NOMEM says "no memory for <what>", and *pointer is NULL then.
 *   CT_TRY(ct_make(&list->items, n, "the items"));      n elements of what *pointer points to
 *   CT_TRY(ct_make_copy(&copy, text, n, "the items"));  a copy of n elements
 *   CT_TRY(ct_make_text(&list->name, name));            a copy of a C string */
#define ct_make(pointer, n, what) ct_make_block((pointer), (n), sizeof **(pointer), (what))
#define ct_make_copy(pointer, from, n, what)                                                       \
    ct_make_block_copy((pointer), (from), (n), sizeof **(pointer), (what))
ct_status ct_make_text(char **out, const char *text);

/* Room for one more at the end of *list, which has n; without memory it stays as it was. Lists that
 * grow by this alone need not remember their room: it doubles when n is a power of two. */
#define ct_extend(list, n, what) ct_extend_block((list), (n), sizeof **(list), (what))
/* At least n elements at *pointer, which has room for *capacity; what was there may be gone. */
#define ct_reserve(pointer, capacity, n, what)                                                     \
    ct_reserve_block((pointer), (capacity), (n), sizeof **(pointer), (what))

/* What the macros stand for; `pointer` is the address of a pointer to anything. */
ct_status ct_make_block(void *pointer, size_t n, size_t size, const char *what);
ct_status ct_make_block_copy(void *pointer, const void *from, size_t n, size_t size,
                             const char *what);
ct_status ct_extend_block(void *list, size_t n, size_t size, const char *what);
ct_status ct_reserve_block(void *pointer, size_t *capacity, size_t n, size_t size,
                           const char *what);

/* The block grown to n elements (old content kept, rest zeroed); NULL leaves the old one alone. */
void *ct_grow(void *block, size_t n_old, size_t n_new, size_t size);

void ct_free(void *block);

/* What a function owns until it returns, whichever way it does: freed at the end of the scope, in
 * reverse order. A struct must be zeroed and a pointer NULL before anything can fail; what is given
 * to the caller is taken out (ct_move, ct_take).
 *   CT_SCOPED(ct_text) text = {0};           ct_text_free(&text)
 *   CT_SCOPED_HANDLE(ct_json) json = NULL;   ct_json_free(&json)
 *   CT_SCOPED_BLOCK(float) row = NULL;       ct_free(row)
 *   CT_SCOPED_BY(ct_pack_close, ct_pack *) pack = NULL;   ct_pack_close(&pack) */
#define CT_SCOPED(type)         __attribute__((cleanup(type##_free))) type
#define CT_SCOPED_HANDLE(type)  __attribute__((cleanup(type##_free))) type *
#define CT_SCOPED_BLOCK(type)   __attribute__((cleanup(ct_free_scoped))) type *
#define CT_SCOPED_BY(end, type) __attribute__((cleanup(end))) type
void ct_free_scoped(void *pointer); /* the address of a pointer to a block */
/* The block that *pointer has, which forgets it. */
void *ct_take(void *pointer);
/* *to = *from, a struct or a pointer, which is zeroed. */
#define ct_move(to, from) (*(to) = *(from), (void)memset((from), 0, sizeof *(from)))

/* Seconds on a clock that only goes forward. */
double ct_seconds(void);

/* Calls of ct_alloc, ct_grow and ct_strdup so far, and the largest resident size of the process. */
uint64_t ct_alloc_count(void);
size_t ct_peak_bytes(void);

#endif
