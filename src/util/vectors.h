/* Functions for wider vectors than every processor has. */
#ifndef CT_UTIL_VECTORS_H
#define CT_UTIL_VECTORS_H

#include <stdlib.h> /* __GLIBC__ */

/* Compiled twice where the processor may have wider vectors, and chosen when the program is loaded:
 * too early for ThreadSanitizer. For static functions: others would be seen outside of the library. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) &&       \
    !defined(__SANITIZE_THREAD__)
#define CT_TWICE __attribute__((target_clones("avx2", "default")))
#else
#define CT_TWICE
#endif

#endif
