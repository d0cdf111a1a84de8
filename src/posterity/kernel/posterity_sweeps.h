/* Rows that come together: their sites are found anew from what all others say of each (expectation propagation, Minka
 * 2001), all of them in one sweep. See posterity_sites.h for a site, posterity_panel.h for rows at once. */
#ifndef POSTERITY_SWEEPS_H
#define POSTERITY_SWEEPS_H

#include "posterity_panel.h"
#include "posterity_sites.h"

/* Share of the variance of an eta that its own site must leave: with less nothing is known without it. */
#define PK_OPEN_SHARE 1e-10

/* Sites: precision, and precision times target; and the mean and variance of each eta under all of them; each (n). */
typedef struct {
    double *precision, *shift, *mean, *variance;
} pk_swept;

/* The rows, what is added to eta, the factor before them (T, whose shape it has), and room for it with them. */
typedef struct {
    const pk_rows *rows;
    const double *offsets, *before;
    double *T, *buffer, *target;
    pk_shape shape;
} pk_sweep_rows;

/* Append the sites to what was known before, in T, and predict each eta. buffer (PK_APPEND_SIZE), target (n). */
PK_INLINE void pk_predict_with_sites(const pk_sweep_rows *s, const pk_swept *now)
{
    pk_rows rows = *s->rows;
    memcpy(s->T, s->before, (size_t)(s->shape.q * s->shape.ld) * sizeof(double));
    for (ptrdiff_t i = 0; i < rows.n; i++)
        s->target[i] = (now->precision[i] > 0.0 ? now->shift[i] / now->precision[i] : 0.0) - s->offsets[i];
    rows.weights = now->precision;
    rows.Y = s->target;
    pk_append_block(s->T, s->buffer, &rows, s->shape);
    rows.weights = rows.Y = NULL;
    pk_predict_rows(s->T, s->buffer, &rows, s->shape, now->mean, now->variance);
    for (ptrdiff_t i = 0; i < rows.n; i++)
        now->mean[i] += s->offsets[i];
}

/* Mean and variance of an eta without its own site. */
PK_INLINE void pk_find_cavity(const pk_swept *now, ptrdiff_t i, double *mean, double *variance)
{
    double left = 1.0 - now->precision[i] * now->variance[i];
    int open = left <= PK_OPEN_SHARE;
    *variance = open ? INFINITY : now->variance[i] / left;
    *mean = open ? now->mean[i] : (now->mean[i] - now->variance[i] * now->shift[i]) / left;
}

/* The sites of the next sweep, `step` of the way, and what is then known; `weights` are those of the observations y.
 * Returns the largest move of a mean, in standard deviations, or change of a log variance. */
static double pk_sweep_sites(const pk_likelihood *l, const pk_sweep_rows *s, const double *y, const double *weights,
                             double step, const pk_swept *now, const pk_swept *next)
{
    double largest = 0.0;
    for (ptrdiff_t i = 0; i < s->rows->n; i++) {
        double mean, variance;
        pk_find_cavity(now, i, &mean, &variance);
        pk_site site = pk_find_site(l, y[i], mean, variance, weights[i]);
        next->precision[i] = now->precision[i] + step * (site.precision - now->precision[i]);
        next->shift[i] = now->shift[i] + step * (site.precision * site.target - now->shift[i]);
    }
    pk_predict_with_sites(s, next);
    for (ptrdiff_t i = 0; i < s->rows->n; i++) {
        /* fmax passes over what is no number: an eta known exactly, before and after. */
        largest = fmax(largest, fabs(next->mean[i] - now->mean[i]) / sqrt(next->variance[i]));
        largest = fmax(largest, fabs(log(next->variance[i] / now->variance[i])));
    }
    return fmin(largest, DBL_MAX);
}

#endif
