/* A prior scale for each of few columns, from the triangle of the rows: they are standardised, and asked for their scales
 * (posterity_scales.h). Its twin is posterity.evidence.local_scales, which has the formulas, and all other cases. */
#ifndef POSTERITY_LOCAL_H
#define POSTERITY_LOCAL_H

#include "posterity_scales.h"

/* A target smaller than this about its mean is constant, relative to itself; two sums of products are equal but for this. */
#define PK_CONSTANT 1e-12
#define PK_EQUAL 1e-9
/* The lattice begins so far below the smallest variance of a cavity. */
#define PK_BELOW 7.0

/* The hyperprior of the shared scale: where signals are weak, if all are alike and if each has its own; what few rows
 * can't show, at most, and of first rows; its exponent; and log probabilities of both. As evidence/_shared_scale.py. */
typedef struct {
    double weak[2], unshown, most_unshown, first_rows, exponent;
} pk_hyperprior;

/* The triangle of rows: its leading dimension, flat columns before the features, sum of weights, and the prior's mean. */
typedef struct {
    const double *T, *mean;
    ptrdiff_t ld, offset;
    double count;
} pk_told_rows;

/* Logs (2, longest) of the hyperprior on the lattice from `base` on, of m columns the longest of which has this square. */
static void pk_lay_hyperprior(const pk_hyperprior *h, ptrdiff_t m, double told, const pk_scales *e, double *out)
{
    const double least = fmin(fmin(h->unshown / told, h->most_unshown), h->most_unshown * told / h->first_rows) / (double)(m - 1);
    for (int kind = 0; kind < 2; ++kind) {
        const double corner = log(fmin(fmax(h->weak[kind], least), 1.0 / (double)m));
        for (ptrdiff_t g = 0; g < e->longest; ++g) {
            const double above = corner - (e->base + (double)g);
            const double log_share = above < 0.0 ? above - log1p(exp(above)) : -log1p(exp(-above));
            out[kind * e->longest + g] =
                (h->exponent + 1.0) * log_share - above + (kind ? e->apart : e->alike) + log(h->exponent);
        }
    }
}

/* Standardise the rows: matrix (rows, m), target (rows), squares (m) of the features, what the noise is told by, and the
 * lattice. 0 where the case is not plain: a feature that has not varied, two that may be dummies of a category, rows that
 * tell nothing of the noise, or a target that is constant. `shape` and `rate` are the noise's before the rows. */
static int pk_standardize_rows(const pk_told_rows *t, double shape, double rate, pk_scales *e, double *matrix,
                               double *target, double *squares)
{
    const ptrdiff_t m = e->m, o = t->offset, ld = t->ld, last = o + m;
    const double *T = t->T, first = T[0] * T[0], left = T[last * ld + last] * T[last * ld + last];
    double along = 0.0, size = left, longest = 0.0;
    ptrdiff_t binary = 0;
    e->rows = t->count > (double)(o + 1) ? pk_read_rows(T, ld, o, m, t->count, t->mean, matrix, target, squares) : 0;
    if (e->rows < 1)
        return 0;
    for (ptrdiff_t j = 0; j < m && o; ++j) { /* zeros and ones are their own squares */
        const double whole = squares[j] * t->count + T[o + j] * T[o + j];
        binary += whole < first && fabs(T[0] * T[o + j] - whole) <= PK_EQUAL * whole;
    }
    for (ptrdiff_t i = 0; i < last; ++i)
        size += T[i * ld + last] * T[i * ld + last];
    for (ptrdiff_t i = 0; i < e->rows; ++i)
        along += target[i] * target[i];
    if (binary > 1 || (!(e->known > 0.0) && along + left <= PK_CONSTANT * PK_CONSTANT * size))
        return 0;
    for (ptrdiff_t j = 0; j < m; ++j) {
        double length = 0.0;
        for (ptrdiff_t i = 0; i < e->rows; ++i)
            length += matrix[i * m + j] * matrix[i * m + j];
        longest = fmax(longest, length);
    }
    e->matrix = matrix, e->target = target;
    e->rest = left + 2.0 * rate, e->shape = 0.5 * (t->count - (double)o) + shape;
    e->least *= along + left;
    e->base = -log(longest) - PK_BELOW;
    return 1;
}

/* Precisions of the features and of the nodes, as pk_find_precisions has them, and the squares (m) that they are relative
 * to; 0 as of pk_standardize_rows. e->least is relative to the target's square. Room: (m, m), (m), (2, longest). */
static int pk_choose_scales(const pk_told_rows *t, const pk_hyperprior *h, double shape, double rate, pk_scales *e,
                            double *room, double *squares, pk_precisions *out)
{
    double *target = room + e->m * e->m, *hyperprior = target + e->m;
    if (!pk_standardize_rows(t, shape, rate, e, room, target, squares))
        return 0;
    pk_lay_hyperprior(h, e->m, exp(-e->base - PK_BELOW), e, hyperprior);
    e->hyperprior = hyperprior;
    pk_find_precisions(e, out);
    return 1;
}

#endif
