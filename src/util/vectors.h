/* Functions for wider vectors than every processor has. */
#ifndef CT_UTIL_VECTORS_H
#define CT_UTIL_VECTORS_H

#include <stdlib.h> /* __GLIBC__ */

/* Compiled once more for each kind of processor with wider vectors, and chosen when the program is
 * loaded: too early for ThreadSanitizer. For static functions: others would be seen outside of the
 * library. Nothing is fused or summed in another order: all give the same bits (test_packed_bits). */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) &&       \
    !defined(__SANITIZE_THREAD__) && !defined(CT_PLAIN_VECTORS)
#if __GNUC__ >= 12
#define CT_TWICE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define CT_TWICE __attribute__((target_clones("avx2", "default")))
#endif
#else
#define CT_TWICE
#endif

#endif
