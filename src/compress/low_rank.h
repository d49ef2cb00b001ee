/* What low-rank makes of a row: matrices, one after the other. */
#ifndef CT_COMPRESS_LOW_RANK_H
#define CT_COMPRESS_LOW_RANK_H

#include "compress/compress.h"

typedef struct ct_matrix {
    size_t first, a, b; /* in the row; [a x b] */
    bool is_whole;      /* sent as it is, not as factors of rank c->k */
} ct_matrix;

extern const ct_compressor_kind ct_compressor_low_rank;
int ct_low_rank_count(const ct_compressor *c);
ct_matrix ct_low_rank_matrix(const ct_compressor *c, int t);
/* Floats that are sent of one. */
size_t ct_low_rank_floats(const ct_compressor *c, const ct_matrix *m);

#endif
