/* Options with several values, and all combinations of them: what a sweep runs and what is tuned. */
#ifndef CT_STUDY_AXES_H
#define CT_STUDY_AXES_H

#include "study/study.h"

enum { CT_MAX_AXES = CT_STUDY_HEADS, CT_AXIS_VALUES = 64 };

typedef struct ct_axis_values {
    char name[64]; /* of the option; of several that have the same value, with + between them */
    char values[CT_AXIS_VALUES][CT_STUDY_LABEL];
    int n;
} ct_axis_values;

typedef struct ct_axes {
    ct_axis_values axes[CT_MAX_AXES];
    int n;
} ct_axes;

/* One more, from a list with commas, or with | if values have commas. */
ct_status ct_axes_add(ct_axes *axes, const char *name, const char *list);
/* Several: "lr=0.1,0.01;lambda-m+lambda-d=1,0.1". `what` names the text in messages. */
ct_status ct_axes_add_grid(ct_axes *axes, const char *what, const char *grid);
/* How many combinations; more than CT_STUDY_CELLS are CT_STUDY_CELLS + 1. */
int ct_axes_count(const ct_axes *axes);
/* The value of an axis in the k-th combination; the last axis varies fastest. */
const char *ct_axes_value(const ct_axes *axes, int k, int axis);
/* The k-th name in "lambda-m+lambda-d"; "": it has no more. */
void ct_axis_option(const char *name, int k, char *out, size_t size);
/* The k-th combination as a further row of a study; and its heads. */
ct_status ct_axes_add_row(const ct_axes *axes, int k, ct_study *study);
void ct_axes_add_heads(const ct_axes *axes, ct_study *study);
/* Its values as options of a command, " --lr 0.1". */
void ct_axes_print(const ct_axes *axes, int k, ct_text *out);

#endif
