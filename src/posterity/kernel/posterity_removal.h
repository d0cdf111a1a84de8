/* Taking rows out by hyperbolic rotations. See posterity_kernel.h for the algebra. */
#ifndef POSTERITY_REMOVAL_H
#define POSTERITY_REMOVAL_H

#include "posterity_rows.h"

/* |a^2 - b^2| beyond this many roundings is more than noise. */
#define PK_EXHAUSTED 64.0  /* below: nothing is left of the diagonal */
#define PK_IMPOSSIBLE 65536.0 /* below minus this: the row was never in the factor */

#define PK_SQUARED_TO_NOTHING 1e-150 /* squares of smaller numbers underflow: no digits are left of them */

/* Norm of column j of the triangle. */
PK_INLINE double pk_column_norm(const double *T, ptrdiff_t j, pk_shape shape)
{
    double square = 0.0;
    for (ptrdiff_t i = 0; i <= j; i++)
        square += T[i * shape.ld + j] * T[i * shape.ld + j];
    return sqrt(square);
}

/* Row j of the triangle held nothing but this row: empty it, if the two are parallel. */
PK_RARE int pk_empty_row(double *T, double *row, ptrdiff_t j, double sine, pk_shape shape)
{
    double *t = T + j * shape.ld;
    for (ptrdiff_t c = j + 1; c < shape.q; c++)
        if (fabs(t[c] - sine * row[c]) > 1e-6 * pk_column_norm(T, c, shape))
            return 1;
    for (ptrdiff_t c = j; c < shape.q; c++)
        t[c] = row[c] = 0.0;
    return 0;
}

/* Take one row out by hyperbolic rotations in their mixed, stable form (Bojanczyk, Brent, van Dooren
 * and de Hoog 1987): with sine = b/a and cosine = sqrt(a^2 - b^2)/a,
 *     t <- (t - sine row) / cosine;   row <- cosine row - sine t.
 * Returns 1, with T spoilt, when the row was never in the factor. `least` is lowered to the smallest
 * cosine met among the coefficients: every factor of ten below 1 is a digit of a direction lost. */
PK_INLINE int pk_remove_row(double *restrict T, double *restrict row, pk_shape shape, double *least)
{
    for (ptrdiff_t j = 0; j < shape.q; j++) {
        double *restrict t = T + j * shape.ld;
        double a = t[j], b = row[j];
        if (fabs(b) < PK_SQUARED_TO_NOTHING) {
            row[j] = 0.0;
            continue;
        }
        double left = (a - b) * (a + b), rounding = DBL_EPSILON * a * pk_column_norm(T, j, shape);
        if (a == 0.0 && fabs(b) <= PK_IMPOSSIBLE * DBL_EPSILON * pk_column_norm(T, j, shape)) {
            row[j] = 0.0;
            continue;
        }
        if (!(left > PK_EXHAUSTED * rounding)) {
            if (!(left >= -PK_IMPOSSIBLE * rounding) || a == 0.0 || pk_empty_row(T, row, j, b > 0 ? 1.0 : -1.0, shape))
                return 1;
            *least = j < shape.p ? 0.0 : *least;
            continue;
        }
        double sine = b / a, cosine = sqrt(left) / a, inverse = 1.0 / cosine;
        *least = cosine < *least && j < shape.p ? cosine : *least;
        pk_vector keep = pk_beyond(j), all = (pk_vector){0} + 1.0;
        for (ptrdiff_t v = j & -PK_LANES; v < shape.ld; v += PK_LANES, keep = all) {
            pk_vector *tv = (pk_vector *)(t + v), *rv = (pk_vector *)(row + v);
            *tv = (*tv - sine * *rv) * inverse;
            *rv = (cosine * *rv - sine * *tv) * keep;
        }
    }
    return 0;
}

/* Take rows out one by one. buffer (ld). Returns the 1-based row that was never in, or 0. */
static ptrdiff_t pk_remove_rows(double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *least)
{
    *least = 1.0;
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        pk_load_row(buffer, rows, i, pk_root_weight(rows, i), shape);
        if (pk_remove_row(T, buffer, shape, least))
            return i + 1;
    }
    return 0;
}

#endif
