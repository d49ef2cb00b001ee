/* What `crosstalk predict` prints: a line for each picture or row, as CSV or JSON. */
#ifndef CT_CLI_PREDICTIONS_H
#define CT_CLI_PREDICTIONS_H

#include "cli/models.h"

typedef struct ct_predictions {
    ct_model *model;  /* to be opened before */
    const char *unit; /* what a line is about: file, row */
    bool is_numbered; /* its name is a number */
    int n_top;
    bool is_json;
    ct_text out;
    int *order; /* [n_classes] */
    size_t n_labelled, n_correct;
} ct_predictions;

/* As the options of predict say. */
ct_status ct_predictions_begin(ct_predictions *p, const ct_own *own, const char *unit);
/* The line of `name`, whose class is known to be `label` (-1: it is not). */
void ct_predictions_add(ct_predictions *p, const char *name, int label, const float *row);
/* Prints or writes all of it, and tells the accuracy of those with a label, which are called `what`. */
ct_status ct_predictions_end(ct_predictions *p, const ct_own *own, const char *what);
void ct_predictions_free(ct_predictions *p);

#endif
