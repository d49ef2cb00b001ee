/* A sparse matrix by rows: what mixes rows of a bank (agents), or gathers them along edges. */
#ifndef CT_UTIL_SPARSE_H
#define CT_UTIL_SPARSE_H

#include "util/status.h"

typedef struct ct_sparse {
    int n_rows, n_cols;
    int *begin;    /* [n_rows + 1]: row i owns entries begin[i] .. begin[i+1]-1 */
    int *column;   /* [begin[n_rows]] within a row in the order in which sums run */
    double *value; /* [begin[n_rows]] */
} ct_sparse;

/* Room for n_entries entries; the caller fills begin, column and value. */
ct_status ct_sparse_create(int n_rows, int n_cols, int n_entries, ct_sparse *out);
/* 1 on the diagonal, [n x n]; its values may be set. */
ct_status ct_sparse_diagonal(int n, ct_sparse *out);
/* [n_groups x n_groups * size] 1 / size: the mean of every group of so many rows. */
ct_status ct_sparse_means(int n_groups, int size, ct_sparse *out);
void ct_sparse_free(ct_sparse *matrix);
/* The parts along the diagonal of one matrix, zero elsewhere. */
ct_status ct_sparse_join(const ct_sparse *parts, int n_parts, ct_sparse *out);
/* Where a number stands among n that ascend; -1: nowhere. */
int ct_sorted_find(const int *numbers, int n, int wanted);
/* Sorts numbers, keeps each once; returns how many are left. */
int ct_sort_unique(int *numbers, int n);
/* The entry at (row, column); 0 where none is stored. Only where columns ascend. */
double ct_sparse_get(const ct_sparse *matrix, int row, int column);

#endif
