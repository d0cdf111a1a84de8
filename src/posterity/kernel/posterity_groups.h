/* Many packed factors of the same shape side by side (k = 1), each with rows of its own. See posterity_kernel.h. */
#ifndef POSTERITY_GROUPS_H
#define POSTERITY_GROUPS_H

#include "posterity_group_rows.h"

/* ---- triangles of groups -------------------------------------------------------------------------- */

/* Posteriors of the groups at slot[from..to): the rows of each on its prior. posterior (n, q (q + 1) / 2); work holds
 * two triangles. */
static void pk_stack_groups(const double *data, const ptrdiff_t *slot, double *posterior, const double *priors,
                            ptrdiff_t n_priors, double *work, ptrdiff_t from, ptrdiff_t to, pk_shape shape)
{
    double *T = work, *P = work + PK_TRIANGLE_SIZE(shape);
    for (ptrdiff_t i = from; i < to; i++) {
        ptrdiff_t s = slot[i] < n_priors ? slot[i] : n_priors - 1;
        if (i + 2 < to)
            pk_prefetch_triangle(data + slot[i + 2] * PK_PACKED_SIZE(shape), shape);
        pk_unpack(T, data + slot[i] * PK_PACKED_SIZE(shape), shape);
        pk_stack(P, T, priors + s * PK_TRIANGLE_SIZE(shape), shape);
        pk_pack(posterior + i * PK_PACKED_SIZE(shape), P, shape);
    }
}

/* Append other's triangle g to the bank's triangle slot[g]. work (q + q, ld). */
static void pk_merge_groups(double *data, const double *other, const ptrdiff_t *slot, double *work, ptrdiff_t groups,
                            pk_shape shape)
{
    double *T = work, *rows = work + PK_TRIANGLE_SIZE(shape);
    for (ptrdiff_t g = 0; g < groups; g++) {
        pk_unpack(T, data + slot[g] * PK_PACKED_SIZE(shape), shape);
        pk_unpack(rows, other + g * PK_PACKED_SIZE(shape), shape);
        for (ptrdiff_t i = 0; i < shape.q; i++)
            pk_append_row(T, rows + i * shape.ld, shape);
        pk_pack(data + slot[g] * PK_PACKED_SIZE(shape), T, shape);
    }
}

/* Mean and leverage of each row under the posterior at its place, or `newcomer` (unpacked) where that is -1. work
 * holds a triangle and a row. */
static void pk_predict_groups(const double *posterior, const double *newcomer, double *work, const pk_rows *rows,
                              const ptrdiff_t *place, ptrdiff_t from, ptrdiff_t to, pk_shape shape, double *mean,
                              double *leverage)
{
    double *P = work, *row = work + PK_TRIANGLE_SIZE(shape);
    ptrdiff_t unpacked = -1;
    for (ptrdiff_t i = from; i < to; i++) {
        if (i + 2 < to && place[i + 2] >= 0)
            pk_prefetch_triangle(posterior + place[i + 2] * PK_PACKED_SIZE(shape), shape);
        if (place[i] >= 0 && place[i] != unpacked) {
            pk_unpack(P, posterior + place[i] * PK_PACKED_SIZE(shape), shape);
            unpacked = place[i];
        }
        pk_load_row(row, rows, i, 1.0, shape);
        leverage[i] = pk_predict_row(place[i] < 0 ? newcomer : P, row, shape);
        mean[i] = -row[shape.p];
    }
}

/* Coefficients (size, p) of the packed triangles; those that are not determined are 0. work (q, ld). */
static void pk_solve_groups(const double *bank, double *T, ptrdiff_t size, pk_shape shape, double *coefficients)
{
    for (ptrdiff_t s = 0; s < size; s++) {
        double *w = coefficients + s * shape.p;
        pk_unpack(T, bank + s * PK_PACKED_SIZE(shape), shape);
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
