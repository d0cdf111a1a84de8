/* Many factors of the same shape side by side (k = 1), each with rows of its own. See posterity_kernel.h. */
#ifndef POSTERITY_GROUPS_H
#define POSTERITY_GROUPS_H

#include "posterity_group_rows.h"

/* ---- triangles of groups -------------------------------------------------------------------------- */

/* Posterior triangles of slots from..to: each group's data stacked on its prior. buffer (q, PK_PANEL). */
static void pk_stack_groups(const double *data, double *posterior, const double *priors, ptrdiff_t n_priors,
                            double *buffer, ptrdiff_t from, ptrdiff_t to, pk_shape shape)
{
    ptrdiff_t size = shape.q * shape.ld;
    for (ptrdiff_t slot = from; slot < to; slot++) {
        double *P = posterior + slot * size;
        const double *T = data + slot * size, *prior = priors + (slot < n_priors ? slot : n_priors - 1) * size;
        memcpy(P, prior, (size_t)size * sizeof(double));
        if (!pk_is_deficient(P, shape)) {
            pk_append_triangle(P, buffer, T, 1.0, shape);
            continue;
        }
        for (ptrdiff_t i = 0; i < shape.q; i++) {  /* row by row: no rank that is not there */
            memcpy(buffer, T + i * shape.ld, (size_t)shape.ld * sizeof(double));
            pk_append_row(P, buffer, shape);
        }
    }
}

/* Append other's triangle g to the bank's triangle slot[g]. buffer (ld). */
static void pk_merge_groups(double *data, const double *other, const ptrdiff_t *slot, double *buffer,
                            ptrdiff_t groups, pk_shape shape)
{
    for (ptrdiff_t g = 0; g < groups; g++)
        for (ptrdiff_t i = 0; i < shape.q; i++) {
            memcpy(buffer, other + (g * shape.q + i) * shape.ld, (size_t)shape.ld * sizeof(double));
            pk_append_row(data + slot[g] * shape.q * shape.ld, buffer, shape);
        }
}

/* Mean and leverage of each row in the triangle of its slot, or in `newcomer` where the slot is -1. buffer (ld). */
static void pk_predict_groups(const double *posterior, const double *newcomer, double *buffer,
                              const pk_rows *rows, const ptrdiff_t *slot, ptrdiff_t from, ptrdiff_t to,
                              pk_shape shape, double *mean, double *leverage)
{
    ptrdiff_t size = shape.q * shape.ld;
    for (ptrdiff_t i = from; i < to; i++) {
        if (i + 2 < to && slot[i + 2] >= 0)
            for (ptrdiff_t c = 0; c < size; c += 8)
                __builtin_prefetch(posterior + slot[i + 2] * size + c);
        const double *P = slot[i] < 0 ? newcomer : posterior + slot[i] * size;
        pk_load_row(buffer, rows, i, 1.0, shape);
        leverage[i] = pk_predict_row(P, buffer, shape);
        mean[i] = -buffer[shape.p];
    }
}

/* Coefficients (size, p) of the triangles; those that are not determined are 0. */
static void pk_solve_groups(const double *bank, ptrdiff_t size, pk_shape shape, double *coefficients)
{
    for (ptrdiff_t s = 0; s < size; s++) {
        const double *T = bank + s * shape.q * shape.ld;
        double *w = coefficients + s * shape.p;
        for (ptrdiff_t j = shape.p - 1; j >= 0; j--) {
            const double *t = T + j * shape.ld;
            double left = t[shape.p];
            for (ptrdiff_t c = j + 1; c < shape.p; c++)
                left -= t[c] * w[c];
            w[j] = t[j] == 0.0 ? 0.0 : left / t[j];
        }
    }
}

/* ---- what groups say of the prior they share ----------------------------------------------------- */

/* Reflect column j of the rows `lower` (h, wide) into row j of `upper`, which has no rows below its p-th. */
PK_INLINE void pk_reflect_rows(double *upper, double *lower, ptrdiff_t h, ptrdiff_t j, ptrdiff_t wide)
{
    double *t = upper + j * wide, a = t[j], square = 0.0, above = 0.0;
    for (ptrdiff_t i = 0; i < h; i++)
        square += lower[i * wide + j] * lower[i * wide + j];
    if (a == 0.0)
        for (ptrdiff_t i = 0; i < j; i++)
            above += upper[i * wide + j] * upper[i * wide + j];
    if (sqrt(square) <= 16.0 * DBL_EPSILON * (double)(j + 1) * sqrt(above))  /* also where there is nothing */
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

/* Integrate each group's coefficients w = m + (prior with the root P, its diagonal >= 0): of
 *
 *     [ P  -P  0 ]   (p)                                                    [ Q  .  . ]
 *     [ H   0  z ]   (h)     the first p columns are eliminated, leaving    [ 0  W  o ]     o = W m + noise
 *
 * rows (groups, h, p + 1) are [H, z]; white (groups, h, p + 1) becomes [W, o], and log_determinants (groups)
 * log |Q'Q| over the rows of Q that hold anything. work (p + h, wide), wide >= 2 p + 1 a multiple of PK_LINE. */
static void pk_whiten_groups(const double *root, const double *rows, ptrdiff_t h, double *work, ptrdiff_t wide,
                             ptrdiff_t from, ptrdiff_t to, ptrdiff_t p, double *white, double *log_determinants)
{
    double *lower = work + p * wide;
    for (ptrdiff_t g = from; g < to; g++) {
        memset(work, 0, (size_t)((p + h) * wide) * sizeof(double));
        for (ptrdiff_t i = 0; i < p; i++)
            for (ptrdiff_t c = i; c < p; c++) {
                work[i * wide + c] = root[i * p + c];
                work[i * wide + p + c] = -root[i * p + c];
            }
        for (ptrdiff_t i = 0; i < h; i++) {
            const double *row = rows + (g * h + i) * (p + 1);
            memcpy(lower + i * wide, row, (size_t)p * sizeof(double));
            lower[i * wide + 2 * p] = row[p];
        }
        double product = 1.0, logs = 0.0;  /* few logarithms */
        for (ptrdiff_t j = 0; j < p; j++) {
            pk_reflect_rows(work, lower, h, j, wide);
            double diagonal = work[j * wide + j];
            product *= diagonal == 0.0 ? 1.0 : diagonal;
            if (!(product < 1e100 && product > 1e-100)) {
                logs += log(product);
                product = 1.0;
            }
        }
        log_determinants[g] = 2.0 * (logs + log(product));
        for (ptrdiff_t i = 0; i < h; i++)
            memcpy(white + (g * h + i) * (p + 1), lower + i * wide + p, (size_t)(p + 1) * sizeof(double));
    }
}

#endif
