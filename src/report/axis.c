#include "report/axis.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LOG_FROM   30.0 /* factor between the ends from which on an axis is logarithmic */
#define SQUASHED   2.5  /* what all values take of an axis in terms of what most of them take */
#define MAX_RANGES 256  /* of more, none is left out */

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

/* The largest tick of a logarithmic axis that is not above x, or the smallest that is not below it.
 * n_each: ticks of a decade (1: 10; 2: 1 and 3; 3: 1, 2 and 5). */
static double log_tick(double x, int n_each, bool is_above) {
    static const double parts[][4] = {{1, 10}, {1, 3, 10}, {1, 2, 5, 10}};
    double power = pow(10, floor(log10(x) + 1e-9));
    const double *part = parts[n_each - 1];
    int k = 0;
    if (is_above)
        while (power * part[k] < x * (1 - 1e-9)) k++;
    else
        while (k < n_each - 1 && power * part[k + 1] <= x * (1 + 1e-9)) k++;
    return power * part[k];
}

/* Decades, every second one and so on where there are many; parts of decades where there are few. */
static void fit_log(ct_axis *a, double lowest, double highest, int n_wanted) {
    int first = (int)floor(log10(lowest) + 1e-9), last = (int)ceil(log10(highest) - 1e-9);
    double decades = log10(highest / lowest);
    int n_each = decades < 2.2 ? 3 : decades < 3.2 ? 2 : 1;
    a->n_ticks = 0;
    a->is_log = true;
    a->digits = -1;
    if (n_each > 1) {
        double end = log_tick(highest, n_each, true), tick = log_tick(lowest, n_each, false);
        for (; a->n_ticks < CT_MAX_TICKS && tick <= end * (1 + 1e-9);
             tick = log_tick(tick * 1.01, n_each, true))
            a->tick[a->n_ticks++] = tick;
    } else {
        int step = (last - first + n_wanted - 1) / n_wanted;
        last = first + (last - first + step - 1) / step * step;
        for (int k = first; k <= last && a->n_ticks < CT_MAX_TICKS; k += step)
            a->tick[a->n_ticks++] = pow(10, k);
    }
    a->from = a->tick[0];
    a->to = a->tick[a->n_ticks - 1];
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

bool ct_range_is_for_log(ct_range values) {
    double low = tame(values.low), high = tame(values.high);
    return low > 0 && high / low > LOG_FROM;
}

static double span_of(ct_range r, bool is_log) {
    if (!(r.low < r.high)) return 0;
    return is_log ? log(r.high / r.low) : r.high - r.low;
}

/* Of those that are left. */
static ct_range join(const ct_range *ranges, const bool *is_off, int n) {
    ct_range all = CT_NO_RANGE;
    for (int k = 0; k < n; k++) {
        if (is_off != NULL && is_off[k]) continue;
        ct_range_add(&all, ranges[k].low);
        ct_range_add(&all, ranges[k].high);
    }
    return all;
}

/* The one whose going narrows the rest the most; -1: nothing is left. */
static int farthest(const ct_range *ranges, bool *is_off, int n, bool is_log) {
    double least = INFINITY;
    int found = -1;
    for (int k = 0; k < n; k++) {
        if (is_off[k] || ranges[k].low > ranges[k].high) continue;
        is_off[k] = true;
        double left = span_of(join(ranges, is_off, n), is_log);
        is_off[k] = false;
        if (left > 0 && left < least) {
            least = left;
            found = k;
        }
    }
    return found;
}

ct_range ct_range_core(const ct_range *ranges, int n, bool is_log, bool *is_off) {
    bool off[MAX_RANGES] = {false};
    ct_range all = join(ranges, NULL, n);
    int n_known = 0, most;
    for (int k = 0; k < n; k++) {
        n_known += ranges[k].low <= ranges[k].high;
        if (is_off != NULL) is_off[k] = false;
    }
    most = n_known < 4 || n > MAX_RANGES ? 0 : n_known < 12 ? 1 : n_known / 6;
    for (int k = 0; k < most; k++) {
        int far = farthest(ranges, off, n, is_log);
        if (far < 0) return all;
        off[far] = true;
        ct_range left = join(ranges, off, n);
        if (SQUASHED * span_of(left, is_log) > span_of(all, is_log)) continue;
        for (int i = 0; i < n && is_off != NULL; i++) is_off[i] = off[i];
        return left;
    }
    return all;
}

void ct_axis_fit(ct_range values, ct_unit unit, bool may_be_log, int n_wanted, ct_axis *out) {
    double lowest = tame(values.low), highest = tame(values.high);
    memset(out, 0, sizeof *out);
    make_room(unit, &lowest, &highest);
    *out = (ct_axis){.from = lowest, .to = highest, .unit = unit};
    choose_unit(out);
    if (may_be_log && ct_range_is_for_log((ct_range){lowest, highest}))
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

/* 10 to a whole power, the power raised, perhaps so many times (1: not said). */
static void print_power(int times, int power, char *out, size_t size) {
    static const char *const raised[] = {
        "\xE2\x81\xB0", "\xC2\xB9",     "\xC2\xB2",     "\xC2\xB3",     "\xE2\x81\xB4",
        "\xE2\x81\xB5", "\xE2\x81\xB6", "\xE2\x81\xB7", "\xE2\x81\xB8", "\xE2\x81\xB9"};
    char digits[16];
    int n = times == 1 ? 0 : snprintf(out, size, "%d\xC2\xB7", times);
    n += snprintf(out + n, size - (size_t)n, "10%s", power < 0 ? "\xE2\x81\xBB" : "");
    snprintf(digits, sizeof digits, "%d", power < 0 ? -power : power);
    for (const char *d = digits; *d != '\0' && (size_t)n + 4 < size; d++)
        n += snprintf(out + n, size - (size_t)n, "%s", raised[*d - '0']);
}

void ct_axis_letter(const ct_axis *a, double value, char *out, size_t size) {
    double shown = value / a->divisor;
    bool has_powers =
        a->is_log && a->digits == -1 && (a->from / a->divisor < 9e-4 || a->to / a->divisor > 2e4);
    int power = has_powers ? (int)floor(log10(shown) + 1e-9) : 0;
    int times = has_powers ? (int)lround(shown / pow(10, power)) : 1;
    if (power != 0 && !(times == 1 && power == 1))
        print_power(times, power, out, size);
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
