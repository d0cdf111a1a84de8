/* Learning observations one after another, each through its site. See posterity_sites.h. */
#ifndef POSTERITY_SITE_ROWS_H
#define POSTERITY_SITE_ROWS_H

#include "posterity_sites.h"

/* A row that knows this much more of its direction than the triangle is rotated in plainly. */
#define PK_TELLING 1e6

/* Per row: mean and variance of eta before it, and its site. */
typedef struct {
    double *mean, *variance, *log_normalizer, *precision, *target;
} pk_predictions_out;

/* Work space: the row, and per column g = R^-T x, the variance of eta that the columns up to it explain, and what is
 * kept of the triangle's row and added to it; each (ld + PK_LINE). */
typedef struct {
    double *row, *g, *variance, *keep, *add;
} pk_site_work;

#define PK_SITE_WORK_SIZE(shape) (5 * ((shape).ld + PK_LINE))

PK_INLINE pk_site_work pk_new_site_work(double *buffer, pk_shape shape)
{
    ptrdiff_t size = shape.ld + PK_LINE;
    pk_site_work work = {buffer, buffer + size, buffer + 2 * size, buffer + 3 * size, buffer + 4 * size};
    return work;
}

/* Sums of the entries up to each lane. */
PK_INLINE pk_vector pk_running_sum(pk_vector x)
{
    const pk_vector zero = {0};
#if PK_LANES == 8
    x += PK_SHUFFLE(zero, x, 0, 8, 9, 10, 11, 12, 13, 14);
    x += PK_SHUFFLE(zero, x, 0, 1, 8, 9, 10, 11, 12, 13);
    return x + PK_SHUFFLE(zero, x, 0, 1, 2, 3, 8, 9, 10, 11);
#elif PK_LANES == 4
    x += PK_SHUFFLE(zero, x, 0, 4, 5, 6);
    return x + PK_SHUFFLE(zero, x, 0, 1, 4, 5);
#else
    return x + PK_SHUFFLE(zero, x, 0, 2);
#endif
}

/* b behind the last lane of a, all moved up by one. */
PK_INLINE pk_vector pk_shift_lanes(pk_vector a, pk_vector b)
{
#if PK_LANES == 8
    return PK_SHUFFLE(a, b, 7, 8, 9, 10, 11, 12, 13, 14);
#elif PK_LANES == 4
    return PK_SHUFFLE(a, b, 3, 4, 5, 6);
#else
    return PK_SHUFFLE(a, b, 1, 2);
#endif
}

/* g = R^-T x of the row [x, 0]: mean = g.Z and variance |g|^2. A block of columns stays in a register. */
PK_INLINE double pk_substitute(const double *restrict T, pk_site_work *work, pk_shape shape, double *mean)
{
    double variance = 0.0;
    for (ptrdiff_t v = 0; v < shape.ld; v += PK_LANES) {
        pk_vector here = *(pk_vector *)(work->row + v), g = {0};
        for (ptrdiff_t j = 0; j < v; j++)
            here -= work->g[j] * *(const pk_vector *)(T + j * shape.ld + v);
        PK_UNROLL
        for (int lane = 0; lane < PK_LANES; lane++)
            if (v + lane < shape.p) {
                const double *t = T + (v + lane) * shape.ld + v;
                double one = here[lane] * (1.0 / t[lane]);
                g[lane] = one;
                here -= one * *(const pk_vector *)t;
            }
        *(pk_vector *)(work->g + v) = g;
        pk_vector sum = pk_running_sum(g * g) + variance;
        *(pk_vector *)(work->variance + v) = sum;
        variance = sum[PK_LANES - 1];
        if (v == (shape.p & -PK_LANES))
            *mean = 0.0 - here[shape.p & (PK_LANES - 1)];
    }
    return variance;
}

/* All bits from this lane on: what rounding leaves of eliminated entries stays out of the triangle. */
PK_INLINE pk_integers pk_mask_from(int lane)
{
    const pk_integers lanes = {PK_EACH_LANE(PK_NUMBER)};
    return lanes >= lane;
}

/* Rotate sqrt(precision) times the row [x, target] in, given g. With h_j = precision times the variance explained up
 * to column j, the cosines of the rotations are sqrt((1 + h_(j-1)) / (1 + h_j)), and what the rotations leave of the
 * row before column j is what substitution leaves of it, divided by sqrt(1 + h_(j-1)): no rotation waits for another
 * (Gill, Golub, Murray and Saunders 1974, method C1). */
PK_INLINE void pk_append_substituted(double *restrict T, pk_site_work *work, double precision, double error,
                                     double variance, pk_shape shape)
{
    pk_vector last = (pk_vector){0} + 1.0;
    for (ptrdiff_t v = 0; v < shape.p; v += PK_LANES) {
        pk_vector after = 1.0 + precision * *(pk_vector *)(work->variance + v), before = pk_shift_lanes(last, after);
        last = after;
        pk_vector keep = 1.0 / pk_sqrt(after / before);
        *(pk_vector *)(work->keep + v) = keep;
        *(pk_vector *)(work->add + v) = precision * *(pk_vector *)(work->g + v) / before * keep;
    }
    for (ptrdiff_t v = 0; v < shape.ld; v += PK_LANES) {
        pk_vector here = *(pk_vector *)(work->row + v);
        for (ptrdiff_t j = 0; j < v && j < shape.p; j++) {
            double *restrict t = T + j * shape.ld + v;
            pk_vector old = *(pk_vector *)t;
            *(pk_vector *)t = work->keep[j] * old + work->add[j] * here;
            here -= work->g[j] * old;
        }
        PK_UNROLL
        for (int lane = 0; lane < PK_LANES; lane++)
            if (v + lane < shape.p) {
                double *restrict t = T + (v + lane) * shape.ld + v;
                pk_vector old = *(pk_vector *)t, left = (pk_vector)((pk_integers)here & pk_mask_from(lane));
                *(pk_vector *)t = work->keep[v + lane] * old + work->add[v + lane] * left;
                here -= work->g[v + lane] * old;
            }
    }
    double *residual = T + shape.p * shape.ld + shape.p, rest = sqrt(precision / (1.0 + precision * variance)) * error;
    if (*residual != 0.0 || fabs(rest) > pk_noise_level(T, shape.p, rest, shape))
        *residual = pk_norm(*residual, rest);
}

/* Learn one observation; whole: no diagonal of the triangle is 0. */
PK_INLINE void pk_learn_site(double *T, pk_site_work *work, const pk_likelihood *l, const pk_rows *points,
                             const double *targets, double offset, ptrdiff_t i, int whole, pk_shape shape,
                             const pk_predictions_out *out)
{
    double *row = work->row, mean, variance, weight = points->weights ? points->weights[i] : 1.0;
    pk_load_row(row, points, i, 1.0, shape);
    if (PK_UNLIKELY(!whole)) {
        variance = pk_predict_row(T, row, shape);
        mean = 0.0 - row[shape.p];
    } else {
        variance = pk_substitute(T, work, shape, &mean);
    }
    pk_site site = pk_find_site(l, targets[i], mean + offset, variance, weight);
    double target = site.target - offset;
    out->mean[i] = mean + offset;
    out->variance[i] = variance;
    out->log_normalizer[i] = site.log_normalizer;
    out->precision[i] = site.precision;
    out->target[i] = site.target;
    if (site.precision == 0.0)
        return;
    if (PK_UNLIKELY(!whole || !(site.precision * variance < PK_TELLING))) {
        double root = sqrt(site.precision);
        pk_load_row(row, points, i, root, shape);
        row[shape.p] = root * target;
        pk_append_row(T, row, shape);
    } else {
        row[shape.p] = target; /* substitution leaves the row as it was */
        pk_append_substituted(T, work, site.precision, target - mean, variance, shape);
    }
}

/* Learn all rows in order; rows->Y (n) are the targets and rows->weights the powers of the likelihood. Before row i
 * everything is discounted; with a prior (q, ld), or NULL, everything but the prior, which is in T and weighs between
 * 1 and PK_HEADROOM / PK_LEAST_FADE times its own meanwhile, and exactly 1 at the end and where there is a single row.
 * Coefficients may wander as well: walk, or NULL. offsets (n) or NULL are added to eta. buffer (PK_SITE_WORK_SIZE), panel (PK_APPEND_SIZE). Returns 0; 1 if T was not at least its prior. */
static int pk_learn_sites(double *T, double *buffer, double *panel, const pk_likelihood *l,
                          const pk_rows *rows, const double *offsets, const double *prior, const pk_walk *walk,
                          pk_shape shape, const pk_predictions_out *out)
{
    pk_site_work work = pk_new_site_work(buffer, shape);
    pk_rows points = *rows;
    points.Y = NULL;
    int whole = !pk_is_deficient(T, shape);
    double fade = 0.0, weight = 1.0; /* fade since the last look; weight of the prior */
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        double discount = pk_discount(rows, i);
        if (prior && weight * discount < 1.0) {
            double wanted = (rows->n > 1 ? PK_HEADROOM : 1.0) / discount;
            pk_append_triangle(T, panel, prior, sqrt(wanted - weight), shape);
            weight = wanted;
        }
        if (rows->discounts) {
            if (!prior && fade < 0.01) {
                pk_floor_faded(T, rows->held, shape);
                fade = 1.0;
            }
            pk_fade_triangle(T, sqrt(discount), prior ? NULL : rows->held, shape);
            fade *= discount;
            weight = rows->n > 1 ? weight * discount : 1.0;
        }
        if (walk)
            pk_wander(T, walk, rows, i, shape);
        pk_learn_site(T, &work, l, &points, rows->Y, offsets ? offsets[i] : 0.0, i, whole, shape, out);
        whole = whole || !pk_is_deficient(T, shape);
    }
    if (prior && weight > 1.0) {
        memset(buffer, 0, (size_t)shape.ld * sizeof(double));
        return pk_remove_triangle(T, buffer, prior, sqrt(weight - 1.0), shape);
    }
    return 0;
}

#endif
