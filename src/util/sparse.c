#include "util/sparse.h"

#include <stdlib.h>

#include "util/memory.h"

ct_status ct_sparse_create(int n_rows, int n_cols, int n_entries, ct_sparse *out) {
    if (n_rows < 0 || n_cols < 0 || n_entries < 0)
        return ct_fail(CT_INVAL, "a sparse matrix of %d x %d with %d entries cannot be", n_rows,
                       n_cols, n_entries);
    CT_SCOPED(ct_sparse) matrix = {.n_rows = n_rows, .n_cols = n_cols};
    CT_TRY(ct_make(&matrix.begin, (size_t)n_rows + 1, "a sparse matrix"));
    CT_TRY(ct_make(&matrix.column, (size_t)n_entries, "a sparse matrix"));
    CT_TRY(ct_make(&matrix.value, (size_t)n_entries, "a sparse matrix"));
    ct_move(out, &matrix);
    return CT_OK;
}

ct_status ct_sparse_diagonal(int n, ct_sparse *out) {
    CT_TRY(ct_sparse_create(n, n, n, out));
    for (int i = 0; i < n; i++) {
        out->column[i] = i;
        out->value[i] = 1;
        out->begin[i + 1] = i + 1;
    }
    return CT_OK;
}

ct_status ct_sparse_means(int n_groups, int size, ct_sparse *out) {
    CT_TRY(ct_sparse_create(n_groups, n_groups * size, n_groups * size, out));
    for (int k = 0; k <= n_groups; k++) out->begin[k] = k * size;
    for (int row = 0; row < n_groups * size; row++) {
        out->column[row] = row;
        out->value[row] = 1.0 / size;
    }
    return CT_OK;
}

void ct_sparse_free(ct_sparse *matrix) {
    ct_free(matrix->value);
    ct_free(matrix->column);
    ct_free(matrix->begin);
    *matrix = (ct_sparse){0};
}

int ct_sorted_find(const int *numbers, int n, int wanted) {
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (numbers[middle] == wanted) return middle;
        if (numbers[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static int by_number(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

int ct_sort_unique(int *numbers, int n) {
    int n_kept = 0;
    qsort(numbers, (size_t)n, sizeof *numbers, by_number);
    for (int k = 0; k < n; k++)
        if (k == 0 || numbers[k] != numbers[n_kept - 1]) numbers[n_kept++] = numbers[k];
    return n_kept;
}

double ct_sparse_get(const ct_sparse *matrix, int row, int column) {
    int begin = matrix->begin[row], n = matrix->begin[row + 1] - begin;
    int at = ct_sorted_find(matrix->column + begin, n, column);
    return at < 0 ? 0.0 : matrix->value[begin + at];
}

ct_status ct_sparse_join(const ct_sparse *parts, int n_parts, ct_sparse *out) {
    int n_rows = 0, n_cols = 0, n_entries = 0;
    for (int p = 0; p < n_parts; p++) {
        n_rows += parts[p].n_rows;
        n_cols += parts[p].n_cols;
        n_entries += parts[p].begin[parts[p].n_rows];
    }
    ct_sparse joined = {0};
    CT_TRY(ct_sparse_create(n_rows, n_cols, n_entries, &joined));
    int row = 0, col = 0, entry = 0;
    for (int p = 0; p < n_parts; p++) {
        const ct_sparse *part = &parts[p];
        int n = part->begin[part->n_rows];
        for (int i = 0; i < part->n_rows; i++) joined.begin[row++] = entry + part->begin[i];
        for (int e = 0; e < n; e++) {
            joined.column[entry + e] = col + part->column[e];
            joined.value[entry + e] = part->value[e];
        }
        entry += n;
        col += part->n_cols;
    }
    joined.begin[n_rows] = n_entries;
    *out = joined;
    return CT_OK;
}
