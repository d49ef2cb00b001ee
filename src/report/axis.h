/* Axes: which range, which ticks, how they are lettered. */
#ifndef CT_REPORT_AXIS_H
#define CT_REPORT_AXIS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define CT_MAX_TICKS 16

/* What the values are. */
typedef enum ct_unit {
    CT_UNIT_NUMBER,
    CT_UNIT_WHOLE, /* epochs: no ticks between whole numbers */
    CT_UNIT_SHARE, /* 0 .. 1, lettered as percent */
    CT_UNIT_BYTES, /* KiB, MiB, ... */
    CT_UNIT_SECONDS,
} ct_unit;

typedef struct ct_axis {
    double from, to; /* values at the two ends, from < to */
    bool is_log;
    double tick[CT_MAX_TICKS]; /* ascending, within [from, to] */
    int n_ticks;
    ct_unit unit;
    double divisor;    /* lettering shows value / divisor */
    int digits;        /* behind the point; -1: as short as can be */
    const char *label; /* unit of the lettering: "%", "MiB", "min", or "" */
} ct_axis;

/* Of values: where none was added, low > high. */
typedef struct ct_range {
    double low, high;
} ct_range;
#define CT_NO_RANGE ((ct_range){INFINITY, -INFINITY})
/* NaN and infinite ones do not count. */
void ct_range_add(ct_range *range, double value);

/* What the larger part of n ranges spans: without the few that lie so far off that the rest would be
 * squashed (of 4 ranges or more at most one in six, at least one; what is left is at most two fifths
 * of all). is_log: distances are factors. is_off [n], where it is not NULL, gets which were left out. */
ct_range ct_range_core(const ct_range *ranges, int n, bool is_log, bool *is_off);
/* The values would be put on a logarithmic axis. */
bool ct_range_is_for_log(ct_range values);

/* An axis for values of a range, which may be empty. It ends at ticks; about n_wanted of them. may_be_log: values
 * that are positive and span more than a factor of 30 are put on a logarithmic axis. */
void ct_axis_fit(ct_range values, ct_unit unit, bool may_be_log, int n_wanted, ct_axis *out);

/* Lets it end a little beyond the values instead of at ticks, if two ticks are left then: marks get
 * the room. */
void ct_axis_tighten(ct_axis *axis, ct_range values);

/* 0 at the lower end, 1 at the upper one; values beyond are held back to the end. */
double ct_axis_place(const ct_axis *axis, double value);

/* The lettering of a tick, without the unit. */
void ct_axis_letter(const ct_axis *axis, double value, char *out, size_t size);

/* A single value with its unit, for people: "78.12 %", "1.4 MiB", "3 min 20 s". */
void ct_unit_print(ct_unit unit, double value, char *out, size_t size);

#endif
