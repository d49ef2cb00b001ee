/* A table of words and numbers, written as text, Markdown, LaTeX or HTML. */
#ifndef CT_STUDY_GRID_H
#define CT_STUDY_GRID_H

#include "study/study.h"
#include "util/text.h"

typedef struct ct_entry {
    char text[2 * CT_CONFIG_TEXT]; /* words, or a number */
    bool is_number;
    char deviation[32]; /* of a number; "": none */
    bool is_marked;     /* a difference: ours is not what the paper says */
} ct_entry;

/* Entries are added one after the other, line by line; the first line has the headings. */
typedef struct ct_grid {
    int n_lines, n_columns, n_heads;
    ct_entry *entries; /* [n_lines][n_columns] */
    int n;             /* so many were added */
    bool has_deviation;
} ct_grid;

ct_status ct_grid_make(int n_lines, int n_columns, int n_heads, ct_grid *out);
void ct_grid_free(ct_grid *grid);
ct_entry *ct_grid_text(ct_grid *grid, const char *text);
/* `format` is of a number with so many digits; deviation NaN: none. */
ct_entry *ct_grid_number(ct_grid *grid, const char *format, double value, double deviation,
                         int digits);
/* Characters of the widest entry of a column. */
int ct_grid_width(const ct_grid *grid, int column);

typedef enum ct_form { CT_FORM_PLAIN, CT_FORM_MARKDOWN, CT_FORM_LATEX, CT_FORM_HTML } ct_form;

/* What stands around it. */
typedef struct ct_frame {
    const char *title, *label; /* label: of LaTeX, and the id of a page's table */
    const char *said;          /* behind the title in LaTeX; "": nothing */
    const char *notes;         /* a sentence a line, not in LaTeX; NULL: none */
} ct_frame;
ct_status ct_grid_write(const ct_grid *grid, ct_form form, const ct_frame *frame, ct_text *out);

#endif
