/* A triangle without the half that is empty: its rows from their diagonals on, one after the other. Banks of many
 * triangles are kept this way (k = 1); to be worked on, one is unpacked. See posterity_kernel.h. */
#ifndef POSTERITY_PACKED_H
#define POSTERITY_PACKED_H

#include "posterity_givens.h"

#define PK_PACKED_SIZE(shape) ((shape).q * ((shape).q + 1) / 2)

/* T (q, ld) comes with zeros below the diagonal and beyond column q. */
PK_INLINE void pk_unpack(double *restrict T, const double *restrict packed, pk_shape shape)
{
    for (ptrdiff_t i = 0; i < shape.q; i++)
        for (ptrdiff_t c = i; c < shape.q; c++)
            T[i * shape.ld + c] = *packed++;
}

PK_INLINE void pk_pack(double *restrict packed, const double *restrict T, pk_shape shape)
{
    for (ptrdiff_t i = 0; i < shape.q; i++)
        for (ptrdiff_t c = i; c < shape.q; c++)
            *packed++ = T[i * shape.ld + c];
}

/* Reflect column j of the rows `lower` (h, wide) into row j of `upper`, which has no rows below its p-th. */
PK_INLINE void pk_reflect_rows(double *upper, double *lower, ptrdiff_t h, ptrdiff_t j, ptrdiff_t wide)
{
    double *t = upper + j * wide, a = t[j], square = 0.0, above = 0.0;
    for (ptrdiff_t i = 0; i < h; i++)
        square += lower[i * wide + j] * lower[i * wide + j];
    if (a == 0.0)
        for (ptrdiff_t i = 0; i < j; i++)
            above += upper[i * wide + j] * upper[i * wide + j];
    if (square <= PK_TINY || sqrt(square) <= 16.0 * DBL_EPSILON * (double)(j + 1) * sqrt(above))
        return;
    double norm = sqrt(a * a + square), head = -square / (a + norm);  /* as in pk_reflect */
    double inverse = 1.0 / norm, tau = (a + norm) / (norm * square);
    pk_vector keep = pk_beyond(j), all = (pk_vector){0} + 1.0;
    for (ptrdiff_t v = j & -PK_LANES; v < wide; v += PK_LANES, keep = all) {
        pk_vector w = head * *(pk_vector *)(t + v);
        for (ptrdiff_t i = 0; i < h; i++)
            w += lower[i * wide + j] * *(pk_vector *)(lower + i * wide + v);
        w *= keep;  /* column j stays, to reflect the next vector */
        *(pk_vector *)(t + v) += inverse * w;
        w *= tau;
        for (ptrdiff_t i = 0; i < h; i++)
            *(pk_vector *)(lower + i * wide + v) -= lower[i * wide + j] * w;
    }
    t[j] = norm;
}

/* Append the rows `lower` (h, ld), which are used up, to a triangle: one reflection a column for all of them. Each can
 * open one direction: where as many are open, the rest is rounding. */
PK_INLINE void pk_append_few(double *T, double *lower, ptrdiff_t h, pk_shape shape)
{
    ptrdiff_t left = h;
    for (ptrdiff_t j = 0; j < shape.q && left > 0; j++) {
        double *diagonal = T + j * (shape.ld + 1);
        int open = *diagonal == 0.0;
        pk_reflect_rows(T, lower, h, j, shape.ld);
        left -= open && *diagonal != 0.0;
    }
}

/* A group's posterior P: the rows of its triangle T, which is used up, on its prior (all unpacked). */
PK_INLINE void pk_stack(double *P, double *T, const double *prior, pk_shape shape)
{
    ptrdiff_t height = shape.q;
    memcpy(P, prior, (size_t)(shape.q * shape.ld) * sizeof(double));
    while (height > 0 && T[(height - 1) * (shape.ld + 1)] == 0.0)
        height--;
    if (pk_is_deficient(P, shape)) {  /* row by row: no rank that is not there */
        for (ptrdiff_t i = 0; i < height; i++)
            pk_append_row(P, T + i * shape.ld, shape);
        return;
    }
    for (ptrdiff_t j = 0; j < shape.q && height > 0; j++)
        pk_reflect_rows(P, T, j + 1 < height ? j + 1 : height, j, shape.ld);
}

#endif
