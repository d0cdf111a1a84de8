/* Givens rotations of single rows, and prediction of single rows. See posterity_kernel.h for the algebra. */
#ifndef POSTERITY_GIVENS_H
#define POSTERITY_GIVENS_H

#include "posterity_rows.h"

/* A sum of squares that nothing may be divided by; features whose squares vanish are refused by the caller. */
#define PK_TINY 1e-300

PK_RARE double pk_careful_norm(double a, double b)
{
    return hypot(a, b);
}

/* Norm of (a, b); the slow branch keeps tiny and huge values from under- and overflowing. */
PK_INLINE double pk_norm(double a, double b)
{
    double square = a * a + b * b;
    return PK_UNLIKELY(!(square > 1e-280 && square < 1e280)) ? pk_careful_norm(a, b) : sqrt(square);
}

/* The rotation of entry j of `row` into a diagonal that is now *a, which becomes the norm.
 * Scalars by pointer: a struct of two would be stored in halves, loaded whole, and stall. */
PK_INLINE void pk_make_rotation(const double *T, double *row, ptrdiff_t j, double *a, pk_shape shape,
                                double *cosine, double *sine)
{
    double b = row[j];
    *cosine = 1.0;
    *sine = 0.0;
    if (PK_UNLIKELY(b == 0.0))
        return;
    if (PK_UNLIKELY(*a == 0.0) && fabs(b) <= pk_noise_level(T, j, b, shape)) {
        row[j] = 0.0;
        return;
    }
    double norm = pk_norm(*a, b);
    *cosine = *a / norm;
    *sine = b / norm;
    *a = norm;
}

PK_INLINE void pk_apply_rotation(double cosine, double sine, pk_vector *restrict t, pk_vector *restrict row)
{
    pk_vector old = *t;
    *t = cosine * old + sine * *row;
    *row = cosine * *row - sine * old;
}

/* Rotate two rows, one after the other, into row t of the triangle, from column j on. */
PK_INLINE void pk_apply_pair(double c0, double s0, double c1, double s1, double *restrict t,
                             double *restrict row0, double *restrict row1, ptrdiff_t j, pk_shape shape)
{
    ptrdiff_t v = j & -PK_LANES;
    pk_vector tv = *(pk_vector *)(t + v), v0 = *(pk_vector *)(row0 + v), v1 = *(pk_vector *)(row1 + v);
    pk_apply_rotation(c0, s0, &tv, &v0);
    pk_apply_rotation(c1, s1, &tv, &v1);
    *(pk_vector *)(t + v) = tv;
    *(pk_vector *)(row0 + v) = v0 * pk_beyond(j);
    *(pk_vector *)(row1 + v) = v1 * pk_beyond(j);
    for (v += PK_LANES; v < shape.ld; v += PK_LANES) {
        tv = *(pk_vector *)(t + v);
        v0 = *(pk_vector *)(row0 + v);
        v1 = *(pk_vector *)(row1 + v);
        pk_apply_rotation(c0, s0, &tv, &v0);
        pk_apply_rotation(c1, s1, &tv, &v1);
        *(pk_vector *)(t + v) = tv;
        *(pk_vector *)(row0 + v) = v0;
        *(pk_vector *)(row1 + v) = v1;
    }
}

/* Rotate entry j of `row` into row j of the triangle. */
PK_INLINE void pk_rotate(double *restrict T, double *restrict row, ptrdiff_t j, pk_shape shape)
{
    double *restrict t = T + j * shape.ld, a = t[j], cosine, sine;
    pk_make_rotation(T, row, j, &a, shape, &cosine, &sine);
    ptrdiff_t v = j & -PK_LANES;
    pk_vector tv = *(pk_vector *)(t + v), rv = *(pk_vector *)(row + v);
    pk_apply_rotation(cosine, sine, &tv, &rv);
    *(pk_vector *)(t + v) = tv;
    *(pk_vector *)(row + v) = rv * pk_beyond(j);
    for (v += PK_LANES; v < shape.ld; v += PK_LANES)
        pk_apply_rotation(cosine, sine, (pk_vector *)(t + v), (pk_vector *)(row + v));
}

/* Rotate one whole row in; `row` is used up. */
PK_INLINE void pk_append_row(double *T, double *row, pk_shape shape)
{
    for (ptrdiff_t j = 0; j < shape.q; j++)
        pk_rotate(T, row, j, shape);
}

/* Forward substitution g = R^-T x: mean (k) = g'Z and leverage = |g|^2 for the x in row[0..p).
 * `row` is used up; its targets part must come in as 0 and leaves as -mean. A direction that the
 * factor knows nothing about makes the leverage infinite and adds nothing to the mean. */
PK_INLINE double pk_predict_row(const double *restrict T, double *restrict row, pk_shape shape)
{
    double leverage = 0.0;
    for (ptrdiff_t j = 0; j < shape.p; j++) {
        const double *t = T + j * shape.ld;
        double left = row[j];
        if (left == 0.0)
            continue;
        if (t[j] == 0.0) {
            if (leverage < INFINITY && fabs(left) > pk_point_noise(T, j, leverage, shape))
                leverage = INFINITY;
            row[j] = 0.0;
            continue;
        }
        double g = left / t[j];
        leverage += g * g;
        ptrdiff_t v = j & -PK_LANES;
        pk_vector first = *(pk_vector *)(row + v) - g * *(const pk_vector *)(t + v);
        *(pk_vector *)(row + v) = first * pk_beyond(j);
        for (v += PK_LANES; v < shape.ld; v += PK_LANES)
            *(pk_vector *)(row + v) -= g * *(const pk_vector *)(t + v);
    }
    return leverage;
}

#endif
