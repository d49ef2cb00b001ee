/* Tables: the cells of a CSV file as text, what its columns hold, and rows as inputs of a network.
 *
 *   ct_table      the file, cell by cell, until it is encoded
 *   ct_columns    what is known of the columns: names, kinds, categories, counts, exact sums. Those of
 *                 several agents' tables merge, in any order and grouping, to the same bits.
 *   encoding      a number is (x - mean) / deviation, a text one input for each category, 0 or 1; a
 *                 column that lacks a value in any training row has one input more, 1 where it does. */
#ifndef CT_DATA_TABLE_H
#define CT_DATA_TABLE_H

#include "data/dataset.h"
#include "util/exact.h"
#include "util/file.h"
#include "util/json.h"

/* ---- the file ---- */

typedef struct ct_table {
    char *path;   /* for messages */
    ct_blob text; /* cells without quotes and blanks around them, each with its 0 */
    size_t n_rows, n_columns;
    uint32_t *names; /* [n_columns] places in the text */
    uint32_t *order; /* [n_columns] columns sorted by name */
    uint32_t *cells; /* [n_rows][n_columns] places in the text */
    uint32_t *lines; /* [n_rows] where a row begins in the file, from 1 on */
} ct_table;

/* Reads a file: a header, then rows. The sign between cells (, ; or tab) is the header's most
 * frequent one; quotes as in RFC 4180, CRLF or LF, UTF-8 with or without a mark. CT_IO: file, line,
 * and what is wrong there. */
ct_status ct_table_read(const char *path, ct_table *out);
/* The same of its content, which is taken. */
ct_status ct_table_parse(const char *path, ct_blob *taken, ct_table *out);
void ct_table_free(ct_table *table);
/* Leaves only the rows with keep[i]. */
void ct_table_keep(ct_table *table, const bool *keep);

#define CT_NO_COLUMN SIZE_MAX
/* The column of this name, or CT_NO_COLUMN. */
size_t ct_table_find(const ct_table *table, const char *name);
static inline const char *ct_table_name(const ct_table *table, size_t column) {
    return (const char *)table->text.bytes + table->names[column];
}
static inline const char *ct_table_cell(const ct_table *table, size_t row, size_t column) {
    return (const char *)table->text.bytes + table->cells[row * table->n_columns + column];
}

/* Empty, NA, NaN, null or ?, in upper or lower case. */
bool ct_cell_is_missing(const char *cell);
/* As ct_parse_double, and ten times as fast for numbers of up to 15 digits. */
bool ct_cell_number(const char *cell, double *out);

/* Different texts, sorted by their bytes; zeroed: none. */
typedef struct ct_words {
    char **words;
    size_t n;
} ct_words;
/* Its place, or where it would go. */
size_t ct_words_place(const ct_words *words, const char *word, bool *is_there);
ct_status ct_words_add(ct_words *words, const char *word);
void ct_words_free(ct_words *words);

/* ---- what its columns hold ---- */

typedef struct ct_column {
    char *name;
    bool is_number;        /* every value is one; else they are categories */
    bool has_many;         /* of numbers: too many different ones to be categories */
    uint64_t n, n_missing; /* training rows with a value, and without */
    ct_exact *sums;        /* [2] of the numbers and of their squares; NULL: not known any more */
    double mean, deviation;
    ct_words categories; /* of numbers: the different ones, unless they are many */
} ct_column;

typedef struct ct_columns {
    char *label;        /* the column that is learnt; no input */
    ct_column *columns; /* [n] sorted by name */
    size_t n;
} ct_columns;

/* Some rows of a table: those whose flag is `wanted`. Flags NULL: all. */
typedef struct ct_rows {
    const bool *flags;
    bool wanted;
} ct_rows;

/* Of a table without its label, the columns `ignored` (a list with commas) and those without a name.
 * Kinds follow from all rows, what is counted from `train` alone. CT_INVAL: no such column to ignore,
 * nothing left, or more texts than categories may be. */
ct_status ct_columns_of(const ct_table *table, size_t label, const char *ignored, ct_rows train,
                        ct_columns *out);
void ct_columns_free(ct_columns *columns);
ct_status ct_columns_copy(const ct_columns *from, ct_columns *out);

/* Adds another table's. CT_DIFFERS: another label, a column that only one has, or numbers here that
 * are texts there, too many to be categories; *into is undefined then. */
ct_status ct_columns_merge(ct_columns *into, const ct_columns *other);

/* As a JSON object: with_sums, to be merged; else means and deviations alone, to be used. */
void ct_columns_print(const ct_columns *columns, bool with_sums, ct_text *out);
/* CT_IO: what cannot be. `what` names the source. */
ct_status ct_columns_parse(const ct_json *json, const char *what, ct_columns *out);

/* Mean and deviation of what its sums are now; a column that never changes is divided by 1. */
void ct_column_measure(ct_column *column);

/* The column of this name; NULL: there is none. */
const ct_column *ct_columns_find(const ct_columns *columns, const char *name);
/* Inputs of a row. */
size_t ct_columns_inputs(const ct_columns *columns);

/* ---- rows as inputs ---- */

/* The rows as values, 1 x 1 x inputs, with zeroed labels. Columns go by name; others are left alone.
 * A text that is no category is 0 everywhere, a number in a column that never lacked one likewise;
 * both are counted in a note. CT_DIFFERS: a column is missing, or has a text where numbers were. */
ct_status ct_table_encode(const ct_table *table, const ct_columns *columns, ct_rows rows,
                          ct_images *out);

#endif
