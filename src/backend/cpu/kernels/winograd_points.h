/* Winograd's method F(TILE x TILE, 3x3) in one direction: the points of interpolation and what the
 * matrices A, B and G are made of. TILE + 2 points give TILE outputs: 0, pairs +p and -p, infinity,
 * the frequencies in this order.
 *
 *   A[k][j] = p^j                                      TILE outputs
 *   B^T[k]  = coefficients of prod (x - q), q the other finite points   TILE + 2 pixels
 *   G[k][j] = p^j / prod (p - q)                       3 taps
 *
 * with infinity (0 .. 0 1) in A and G and prod (x - q) over all finite points in B^T. The rows of a
 * pair are the sum and the difference of an even and an odd part: for B^T those are x^2 P(x^2) and
 * p x P(x^2), P = prod (y - q^2) over the other pairs. All numbers of A and B^T are exact in float.
 *
 * Points of 4x4: 0, 1, -1, 2, -2, infinity. Points of 8x8 are those of the least error (the sum
 * over the points of |A_k| |B_k| |G_k|, squared) among fractions of 8 that have 1 in them, whose
 * powers need no products: sixteen times the error of 4x4. */
#ifndef CT_BACKEND_CPU_KERNELS_WINOGRAD_POINTS_H
#define CT_BACKEND_CPU_KERNELS_WINOGRAD_POINTS_H

#define POWERS_4(p)                                                                                \
    { 1.0f, (p), (p) * (p), (p) * (p) * (p) }
#define POWERS_8(p)                                                                                \
    {                                                                                              \
        1.0f, (p), (p) * (p), (p) * (p) * (p), (p) * (p) * (p) * (p), (p) * (p) * (p) * (p) * (p), \
            (p) * (p) * (p) * (p) * (p) * (p), (p) * (p) * (p) * (p) * (p) * (p) * (p)             \
    }
/* Coefficients of (y - a^2) (y - b^2) (y - c^2), and 1 / prod (p - q) of point p beside them. */
#define SQUARE(a) ((a) * (a))
#define CUBIC(a, b, c)                                                                             \
    {                                                                                              \
        -SQUARE(a) * SQUARE(b) * SQUARE(c),                                                        \
            SQUARE(a) * SQUARE(b) + SQUARE(a) * SQUARE(c) + SQUARE(b) * SQUARE(c),                 \
            -(SQUARE(a) + SQUARE(b) + SQUARE(c)), 1.0f                                             \
    }
#define SCALE(p, a, b, c)                                                                          \
    ((float)(0.5 / SQUARE((double)(p)) /                                                           \
             ((SQUARE(p) - SQUARE(a)) * (SQUARE(p) - SQUARE(b)) * (SQUARE(p) - SQUARE(c)))))

enum { N_PAIRS = TILE / 2, SIDE = TILE + 2 };

#if TILE == 4
#define P1 1.0f
#define P2 2.0f
static const float ct_power[N_PAIRS][TILE] = {POWERS_4(P1), POWERS_4(P2)};
static const float ct_other[N_PAIRS][N_PAIRS] = {{-SQUARE(P2), 1.0f}, {-SQUARE(P1), 1.0f}};
static const float ct_all[N_PAIRS + 1] = {SQUARE(P1) * SQUARE(P2), -SQUARE(P1) - SQUARE(P2), 1.0f};
static const float ct_scale[N_PAIRS] = {-1.0f / 6, 1.0f / 24};
#else
#define P1 1.0f
#define P2 0.375f
#define P3 1.25f
#define P4 2.5f
static const float ct_power[N_PAIRS][TILE] = {POWERS_8(P1), POWERS_8(P2), POWERS_8(P3),
                                              POWERS_8(P4)};
static const float ct_other[N_PAIRS][N_PAIRS] = {CUBIC(P2, P3, P4), CUBIC(P1, P3, P4),
                                                 CUBIC(P1, P2, P4), CUBIC(P1, P2, P3)};
static const float ct_all[N_PAIRS + 1] = {
    SQUARE(P1) * SQUARE(P2) * SQUARE(P3) * SQUARE(P4),
    -SQUARE(P1) * SQUARE(P2) * SQUARE(P3) -
        SQUARE(P4) * (SQUARE(P1) * SQUARE(P2) + SQUARE(P1) * SQUARE(P3) + SQUARE(P2) * SQUARE(P3)),
    SQUARE(P1) * SQUARE(P2) + SQUARE(P1) * SQUARE(P3) + SQUARE(P2) * SQUARE(P3) +
        SQUARE(P4) * (SQUARE(P1) + SQUARE(P2) + SQUARE(P3)),
    -SQUARE(P1) - SQUARE(P2) - SQUARE(P3) - SQUARE(P4), 1.0f};
static const float ct_scale[N_PAIRS] = {SCALE(P1, P2, P3, P4), SCALE(P2, P1, P3, P4),
                                        SCALE(P3, P1, P2, P4), SCALE(P4, P1, P2, P3)};
#endif

#endif
