#include "report/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LOG_FROM 30.0 /* factor between the ends from which on an axis is logarithmic */

/* Values that can be subtracted, divided by units and taken apart into digits: what is larger is
 * drawn at the end, what is smaller is nothing. */
#define LARGEST  1e300
#define SMALLEST 1e-290

static double tame(double value) {
    if (!(fabs(value) >= SMALLEST)) return 0; /* NaN too */
    return fmin(fmax(value, -LARGEST), LARGEST);
}

/* 1, 2 or 5 times a power of ten, not below x. */
static double nice_above(double x) {
    double power = pow(10, floor(log10(x)));
    double part = x / power;
    return power * (part <= 1.000001 ? 1 : part <= 2.000001 ? 2 : part <= 5.000001 ? 5 : 10);
}

/* The largest unit that the value has one of. */
static const char *unit_of_bytes(double value, double *divisor) {
    static const char *const names[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int k = 0;
    for (*divisor = 1; k < 5 && value >= 1024; k++, value /= 1024) *divisor *= 1024;
    return names[k];
}

/* The letters' unit, by the far end. */
static void choose_unit(ct_axis *a) {
    double far = fmax(fabs(a->from), fabs(a->to));
    a->divisor = 1;
    a->label = "";
    if (a->unit == CT_UNIT_SHARE) {
        a->divisor = 0.01;
        a->label = "%";
    } else if (a->unit == CT_UNIT_BYTES) {
        a->label = unit_of_bytes(far, &a->divisor);
    } else if (a->unit == CT_UNIT_SECONDS) {
        a->divisor = far < 180 ? 1 : far < 10800 ? 60 : 3600;
        a->label = far < 180 ? "s" : far < 10800 ? "min" : "h";
    }
}

static void fit_linear(ct_axis *a, double lowest, double highest, int n_wanted) {
    double step = nice_above((highest - lowest) / a->divisor / n_wanted);
    if (a->unit == CT_UNIT_WHOLE && step < 1) step = 1;
    double first = floor(lowest / a->divisor / step + 1e-9);
    double last = ceil(highest / a->divisor / step - 1e-9);
    if (last <= first) last = first + 1;
    a->n_ticks = 0;
    for (double k = first; k <= last && a->n_ticks < CT_MAX_TICKS; k++)
        a->tick[a->n_ticks++] = k * step * a->divisor;
    a->from = a->tick[0];
    a->to = a->tick[a->n_ticks - 1];
    a->digits = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9);
    double far = fmax(fabs(a->from), fabs(a->to)) / a->divisor;
    bool is_number = a->unit == CT_UNIT_NUMBER;
    if (a->digits > (is_number ? 4 : 9) || far >= (is_number ? 1e5 : 1e12)) a->digits = -2;
}

static void fit_log(ct_axis *a, double lowest, double highest, int n_wanted) {
    int first = (int)floor(log10(lowest) + 1e-9), last = (int)ceil(log10(highest) - 1e-9);
    if (last == first) last++;
    int step = (last - first + n_wanted - 1) / n_wanted;
    if (step < 1) step = 1;
    last = first + (last - first + step - 1) / step * step;
    a->n_ticks = 0;
    for (int k = first; k <= last && a->n_ticks < CT_MAX_TICKS; k += step)
        a->tick[a->n_ticks++] = pow(10, k);
    a->from = a->tick[0];
    a->to = a->tick[a->n_ticks - 1];
    a->is_log = true;
    a->digits = -1;
}

/* Values that are all the same (or none at all) get some room around them. */
static void make_room(ct_unit unit, double *lowest, double *highest) {
    if (*lowest > *highest) {
        *lowest = 0;
        *highest = 1;
    }
    double least = unit == CT_UNIT_SHARE ? 0.02 : unit == CT_UNIT_WHOLE ? 1 : 0;
    double room = fmax(least, 1e-6 * fmax(fabs(*lowest), fabs(*highest)));
    if (room == 0) room = 1;
    if (*highest - *lowest >= room) return;
    double middle = (*highest + *lowest) / 2, half = fmax(room, 0.1 * fabs(middle)) / 2;
    bool is_positive = *lowest >= 0;
    *lowest = is_positive ? fmax(0, middle - half) : middle - half;
    *highest = middle + half;
    if (unit != CT_UNIT_SHARE || *highest <= 1 || middle > 1) return;
    *lowest -= *highest - 1;
    *highest = 1;
}

void ct_range_add(ct_range *range, double value) {
    if (!isfinite(value)) return;
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

void ct_axis_fit(ct_range values, ct_unit unit, bool may_be_log, int n_wanted, ct_axis *out) {
    double lowest = tame(values.low), highest = tame(values.high);
    memset(out, 0, sizeof *out);
    make_room(unit, &lowest, &highest);
    *out = (ct_axis){.from = lowest, .to = highest, .unit = unit};
    choose_unit(out);
    if (may_be_log && lowest > 0 && highest / lowest > LOG_FROM)
        fit_log(out, lowest, highest, n_wanted);
    else
        fit_linear(out, lowest, highest, n_wanted);
}

void ct_axis_tighten(ct_axis *a, ct_range values) {
    ct_axis tight = *a;
    double lowest = values.low, highest = values.high;
    if (!(lowest < highest) || (a->is_log && !(lowest > 0))) return;
    double room = 0.05 * (highest - lowest), factor = pow(highest / lowest, 0.05);
    tight.from = fmax(a->from, a->is_log ? lowest / factor : lowest - room);
    tight.to = fmin(a->to, a->is_log ? highest * factor : highest + room);
    tight.n_ticks = 0;
    for (int k = 0; k < a->n_ticks; k++)
        if (a->tick[k] >= tight.from && a->tick[k] <= tight.to)
            tight.tick[tight.n_ticks++] = a->tick[k];
    if (tight.n_ticks >= 2) *a = tight;
}

double ct_axis_place(const ct_axis *a, double value) {
    value = fmin(fmax(value, a->from), a->to); /* NaN at the lower end */
    return a->is_log ? (log(value) - log(a->from)) / (log(a->to) - log(a->from))
                     : (value - a->from) / (a->to - a->from);
}

/* 10 to a whole power, the power raised. */
static void print_power(int power, char *out, size_t size) {
    static const char *const raised[] = {
        "\xE2\x81\xB0", "\xC2\xB9",     "\xC2\xB2",     "\xC2\xB3",     "\xE2\x81\xB4",
        "\xE2\x81\xB5", "\xE2\x81\xB6", "\xE2\x81\xB7", "\xE2\x81\xB8", "\xE2\x81\xB9"};
    char digits[16];
    int n = snprintf(out, size, "10%s", power < 0 ? "\xE2\x81\xBB" : "");
    snprintf(digits, sizeof digits, "%d", power < 0 ? -power : power);
    for (const char *d = digits; *d != '\0' && (size_t)n + 4 < size; d++)
        n += snprintf(out + n, size - (size_t)n, "%s", raised[*d - '0']);
}

void ct_axis_letter(const ct_axis *a, double value, char *out, size_t size) {
    double shown = value / a->divisor;
    bool has_powers = a->is_log && (a->from / a->divisor < 9e-4 || a->to / a->divisor > 2e4);
    if (has_powers && shown != 1 && fabs(shown - 10) > 1e-6)
        print_power((int)lround(log10(shown)), out, size);
    else if (a->digits < 0)
        snprintf(out, size, "%.6g", shown);
    else
        snprintf(out, size, "%.*f", a->digits, shown == 0 ? 0.0 : shown); /* no -0 */
}

static void print_bytes(double value, char *out, size_t size) {
    double divisor;
    const char *name = unit_of_bytes(value, &divisor);
    value /= divisor;
    snprintf(out, size, "%.*f %s",
             divisor == 1 || value >= 100 ? 0
             : value >= 10                ? 1
                                          : 2,
             value, name);
}

static void print_seconds(double value, char *out, size_t size) {
    long whole = lround(value);
    if (value < 60)
        snprintf(out, size, "%.*f s", value < 10 ? 2 : 1, value);
    else if (value < 3600)
        snprintf(out, size, "%ld min %02ld s", whole / 60, whole % 60);
    else
        snprintf(out, size, "%ld h %02ld min", whole / 3600, whole / 60 % 60);
}

void ct_unit_print(ct_unit unit, double value, char *out, size_t size) {
    if (!isfinite(value)) {
        snprintf(out, size, "\xE2\x80\x93"); /* an en dash */
        return;
    }
    if (fabs(value) >= 1e15) {
        snprintf(out, size, "%.4g", value); /* whatever it is, it is not what it should be */
        return;
    }
    switch (unit) {
    case CT_UNIT_SHARE: snprintf(out, size, "%.2f %%", 100 * value); break;
    case CT_UNIT_BYTES: print_bytes(value, out, size); break;
    case CT_UNIT_SECONDS: print_seconds(value, out, size); break;
    case CT_UNIT_WHOLE: snprintf(out, size, "%.0f", value); break;
    default: snprintf(out, size, "%.4g", value);
    }
}
