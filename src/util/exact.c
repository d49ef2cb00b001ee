#include "util/exact.h"

#include <math.h>
#include <string.h>

#define LIMBS   CT_EXACT_LIMBS
#define LOW     UINT32_MAX /* the bits of a limb once it has carried */
#define MOST    (1u << 26) /* additions, each below 2^35, that fit a limb */
#define HEX     8          /* digits of a limb */
#define HALVING 34         /* below it no sum of doubles has a limb, so that its square fits */

/* ---- adding ---- */

/* All limbs but the last become 0 .. 2^32 - 1; that one has the sign. There is one such form of a
 * number. */
static void carry(ct_exact *s) {
    int64_t over = 0;
    for (int k = 0; k < LIMBS - 1; k++) {
        int64_t limb = s->limb[k] + over;
        s->limb[k] = limb & LOW;
        over = (limb - s->limb[k]) / ((int64_t)1 << 32); /* without a rest */
    }
    s->limb[LIMBS - 1] += over;
    s->n_loose = 0;
}

/* s += sign m 2^exponent, m < 2^56. */
static void add_part(ct_exact *s, int64_t sign, uint64_t m, int exponent) {
    unsigned at = (unsigned)(exponent + CT_EXACT_BELOW), shift = at % 32;
    int64_t *limb = s->limb + at / 32;
    uint64_t low = (m & LOW) << shift, high = (m >> 32) << shift; /* below 2^64, 2^56 */
    limb[0] += sign * (int64_t)(low & LOW);
    limb[1] += sign * (int64_t)((low >> 32) + (high & LOW));
    limb[2] += sign * (int64_t)(high >> 32);
}

/* |x| = m 2^e with a whole m < 2^53. */
static uint64_t take_apart(double x, int *e) {
    uint64_t bits, hidden = (uint64_t)1 << 52;
    memcpy(&bits, &x, sizeof bits);
    int field = (int)(bits >> 52 & 2047);
    *e = (field > 0 ? field : 1) - 1075; /* 0: subnormal, and no hidden bit */
    return (bits & (hidden - 1)) | (field > 0 ? hidden : 0);
}

static void count_addition(ct_exact *s) {
    if (++s->n_loose >= MOST) carry(s);
}

void ct_exact_add(ct_exact *s, double x) {
    int e;
    uint64_t m = take_apart(x, &e);
    add_part(s, x < 0 ? -1 : 1, m, e);
    count_addition(s);
}

/* m = a 2^27 + b: m^2 = a^2 2^54 + 2 a b 2^27 + b^2, each below 2^56. */
void ct_exact_add_square(ct_exact *s, double x) {
    int e;
    uint64_t m = take_apart(x, &e), a = m >> 27, b = m & ((1u << 27) - 1);
    add_part(s, 1, a * a, 2 * e + 54);
    add_part(s, 1, 2 * a * b, 2 * e + 27);
    add_part(s, 1, b * b, 2 * e);
    count_addition(s);
}

void ct_exact_merge(ct_exact *into, const ct_exact *other) {
    ct_exact more = *other;
    carry(&more);
    carry(into);
    for (int k = 0; k < LIMBS; k++) into->limb[k] += more.limb[k];
    carry(into);
}

/* ---- as doubles ---- */

/* |s|, carried; its sign. */
static int64_t magnitude(const ct_exact *from, ct_exact *s) {
    *s = *from;
    carry(s);
    if (s->limb[LIMBS - 1] >= 0) return 1;
    for (int k = 0; k < LIMBS; k++) s->limb[k] = -s->limb[k];
    carry(s);
    return -1;
}

/* The highest limb that is not 0; -1: none is. */
static int top_limb(const ct_exact *s) {
    int k = LIMBS - 1;
    while (k >= 0 && s->limb[k] == 0) k--;
    return k;
}

/* The 64 bits of |s| from its first 1 on, 2^63 .. 2^64 - 1, and whether any follow; the first one
 * counts 2^*exponent. s is carried and not 0. */
static uint64_t leading_bits(const ct_exact *s, int *exponent, bool *has_more) {
    int top = top_limb(s), shift = 0;
    uint64_t first = (uint64_t)s->limb[top], second = top > 0 ? (uint64_t)s->limb[top - 1] : 0,
             third = top > 1 ? (uint64_t)s->limb[top - 2] : 0;
    uint64_t bits = first << 32 | second;
    while ((bits << shift >> 63) == 0) shift++;
    *exponent = 32 * top - CT_EXACT_BELOW + 31 - shift;
    *has_more = shift < 32 && (third << shift & LOW) != 0;
    for (int k = 0; k < top - 2; k++) *has_more = *has_more || s->limb[k] != 0;
    return shift == 0 ? bits : bits << shift | third << shift >> 32;
}

double ct_exact_value(const ct_exact *sum) {
    ct_exact s;
    int64_t sign = magnitude(sum, &s);
    int exponent;
    bool has_more;
    if (top_limb(&s) < 0) return 0;
    uint64_t bits = leading_bits(&s, &exponent, &has_more);
    int n_kept = exponent + 1075 < 53 ? exponent + 1075 : 53; /* fewer where it is subnormal */
    if (n_kept < 0) return (double)sign * 0.0;
    uint64_t kept = n_kept > 0 ? bits >> (64 - n_kept) : 0;
    uint64_t rest = n_kept > 0 ? bits << n_kept : bits, half = (uint64_t)1 << 63;
    kept += rest > half || (rest == half && (has_more || kept % 2 == 1));
    return (double)sign * ldexp((double)kept, exponent + 1 - n_kept);
}

/* n squares - sum^2; the latter fits, because a sum of doubles has no limb below HALVING. */
static void spread(const ct_exact *sum, const ct_exact *squares, uint64_t n, ct_exact *out) {
    ct_exact a, b;
    magnitude(sum, &a);
    magnitude(squares, &b);
    *out = (ct_exact){.n_loose = 0};
    const uint64_t factor[2] = {n & LOW, n >> 32};
    for (int k = 0; k < LIMBS - 2; k++)
        for (int f = 0; f < 2; f++) {
            uint64_t product = (uint64_t)b.limb[k] * factor[f];
            out->limb[k + f] += (int64_t)(product & LOW);
            out->limb[k + f + 1] += (int64_t)(product >> 32);
        }
    int top = top_limb(&a);
    for (int j = HALVING; j <= top; j++)
        for (int k = HALVING; k <= top; k++) {
            uint64_t product = (uint64_t)a.limb[j] * (uint64_t)a.limb[k];
            int at = j + k - CT_EXACT_BELOW / 32;
            out->limb[at] -= (int64_t)(product & LOW);
            out->limb[at + 1] -= (int64_t)(product >> 32);
        }
    carry(out);
}

double ct_exact_deviation(const ct_exact *sum, const ct_exact *squares, uint64_t n) {
    ct_exact s;
    int exponent;
    bool has_more;
    spread(sum, squares, n, &s);
    if (top_limb(&s) < 0) return 0;
    double bits = (double)leading_bits(&s, &exponent, &has_more);
    exponent -= 63;
    if (exponent % 2 != 0) {
        bits *= 2;
        exponent--;
    }
    return ldexp(sqrt(bits) / (double)n, exponent / 2);
}

/* |s| has no bit from 2^exponent on, nor below the limb `lowest`. */
static bool is_within(const ct_exact *from, int lowest, int exponent) {
    ct_exact s;
    magnitude(from, &s);
    for (int k = 0; k < lowest; k++)
        if (s.limb[k] != 0) return false;
    return top_limb(&s) < (exponent + CT_EXACT_BELOW) / 32;
}

bool ct_exact_is_possible(const ct_exact *sum, const ct_exact *squares, uint64_t n) {
    ct_exact rest;
    if (n < 1 || n > CT_EXACT_COUNT) return false;
    if (!is_within(sum, HALVING, 1024 + 64) || !is_within(squares, 0, 2048 + 64)) return false;
    if (magnitude(squares, &rest) < 0) return false;
    spread(sum, squares, n, &rest);
    return rest.limb[LIMBS - 1] >= 0;
}

/* ---- as text ---- */

void ct_exact_print(const ct_exact *sum, ct_text *out) {
    ct_exact s;
    int64_t sign = magnitude(sum, &s);
    int top = top_limb(&s), lowest = 0;
    if (top < 0) {
        ct_text_add(out, "0@0");
        return;
    }
    while (s.limb[lowest] == 0) lowest++;
    ct_text_add(out, "%s%llx", sign < 0 ? "-" : "", (unsigned long long)s.limb[top]);
    for (int k = top - 1; k >= lowest; k--)
        ct_text_add(out, "%08llx", (unsigned long long)s.limb[k]);
    ct_text_add(out, "@%d", lowest);
}

static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ct_exact_parse(const char *text, ct_exact *out) {
    ct_exact s = {.n_loose = 0};
    int64_t lowest, sign = *text == '-' ? -1 : 1;
    if (*text == '-') text++;
    size_t n = strcspn(text, "@");
    if (n == 0 || n > (size_t)LIMBS * HEX || text[n] != '@' || !ct_parse_i64(text + n + 1, &lowest))
        return false;
    size_t n_limbs = (n + HEX - 1) / HEX;
    if (lowest < 0 || lowest >= LIMBS || n_limbs >= (size_t)(LIMBS - lowest)) return false;
    for (size_t k = 0; k < n; k++) {
        int digit = digit_of(text[n - 1 - k]);
        if (digit < 0) return false;
        s.limb[(size_t)lowest + k / HEX] += sign * ((int64_t)digit << (4 * (k % HEX)));
    }
    carry(&s);
    *out = s;
    return true;
}
