/* One round of expectation propagation for noise of an unknown scale, over all rows: see generalized/_matching.py. */
#ifndef POSTERITY_MATCHING_H
#define POSTERITY_MATCHING_H

#include "posterity_sites.h"

/* Of what was known of a row's fit without it: a row adds no less, and at least PK_LEAST_LEFT of it is left. */
#define PK_LEAST_ADDED 1e-4
#define PK_LEAST_LEFT 1e-6
/* At least this share of the information stays when rows that take some away are spread. */
#define PK_LEAST_KEPT 0.2

enum { PK_SOME_ROWS = 256 }; /* whose working numbers stay in the cache */

/* Rows (n): targets, fits and their relative variances, weights, and the weights and targets that stand for them. */
typedef struct {
    const double *y, *fit, *leverage, *weights, *weight, *target;
    ptrdiff_t n;
    double scale;
} pk_sites_now;

/* Sums over the rows: of what each says of the log of the scale, and of its part of the evidence; the largest move of a
 * fit, in its standard deviations; and the share of the information that is kept. */
typedef struct {
    double slope, evidence, move, kept;
} pk_matched;

/* Cavities of m rows from i on: mean, error in scales, relative variance, all of a row or of one copy of it. */
PK_INLINE void pk_cavities(const pk_sites_now *s, ptrdiff_t i, ptrdiff_t m, double *mean, double *off, double *variance,
                           double *power)
{
    for (ptrdiff_t k = 0; k < m; k++) {
        ptrdiff_t j = i + k;
        double g = s->weights[j], share = g < 1.0 ? g : 1.0, own = share * s->weight[j], h = s->leverage[j];
        double left = 1.0 - h * own, wide = h / (left > PK_LEAST_LEFT ? left : PK_LEAST_LEFT);
        power[k] = share;
        variance[k] = wide > 1e-14 ? wide : 1e-14;
        mean[k] = s->fit[j] - variance[k] * own * (s->target[j] - s->fit[j]);
        off[k] = (s->y[j] - mean[k]) / s->scale;
    }
}

/* What row j adds to the evidence, given its moments. */
PK_INLINE double pk_evidence_of(const pk_sites_now *s, ptrdiff_t j, double mean, double variance, double power,
                                double log_mass, double log_scale)
{
    double own = power * s->weight[j], gain = 1.0 + own * variance, far = (s->target[j] - mean) / s->scale;
    double near = (s->target[j] - s->fit[j]) / s->scale, copies = s->weights[j] > 1.0 ? s->weights[j] : 1.0;
    double each = log_mass - power * log_scale + 0.5 * pk_log_one(gain) + 0.5 * own / gain * far * far;
    return copies * each - 0.5 * s->weights[j] * s->weight[j] * near * near;
}

/* The next weights and targets (n), `bold` of the way; step (n) is room, square (n) are the errors without
 * their own rows, relative and squared, over their variances. */
static void pk_match_rows(const pk_likelihood *l, const pk_sites_now *s, double bold, double *weight, double *target,
                          double *step, double *square, pk_matched *result)
{
    double mean[PK_SOME_ROWS], off[PK_SOME_ROWS], variance[PK_SOME_ROWS], power[PK_SOME_ROWS], zero[PK_SOME_ROWS] = {0};
    double log_mass[PK_SOME_ROWS], moved[PK_SOME_ROWS], ratio[PK_SOME_ROWS];
    double slope = 0.0, evidence = 0.0, move = 0.0, raw_sum = 0.0, sum = 0.0, log_scale = log(s->scale);
    for (ptrdiff_t i = 0; i < s->n; i += PK_SOME_ROWS) {
        ptrdiff_t m = s->n - i < PK_SOME_ROWS ? s->n - i : PK_SOME_ROWS;
        pk_cavities(s, i, m, mean, off, variance, power);
        pk_find_moments(l, m, off, zero, variance, power, log_mass, moved, ratio);
        for (ptrdiff_t k = 0; k < m; k++) {
            ptrdiff_t j = i + k;
            double h = s->leverage[j], g = s->weights[j], copies = g > 1.0 ? g : 1.0, pull = moved[k] / variance[k];
            double raw = (1.0 - ratio[k]) / ratio[k], share = raw > PK_LEAST_ADDED ? raw : PK_LEAST_ADDED;
            raw_sum += copies * raw / variance[k] * h;
            sum += copies * share / variance[k] * h;
            slope += copies * (off[k] * pull - power[k] - variance[k] * pull * pull - (ratio[k] - 1.0));
            slope -= g * s->weight[j] * h;
            evidence += pk_evidence_of(s, j, mean[k], variance[k], power[k], log_mass[k], log_scale);
            weight[j] = share / variance[k] / power[k];
            target[j] = mean[k] + s->scale * moved[k];
            step[j] = s->scale * moved[k] / share;
            square[j] = off[k] * off[k] / (1.0 + variance[k]);
            double gone = (target[j] - s->fit[j]) / s->scale, far = gone * gone / (h > 1e-300 ? h : 1e-300);
            move = far > move || far != far ? far : move;
        }
    }
    /* A row of two minds takes information away, which no row of a factor can: all others do. */
    double kept = raw_sum / sum;
    kept = kept > PK_LEAST_KEPT ? kept : PK_LEAST_KEPT;
    for (ptrdiff_t j = 0; j < s->n; j++) {
        double full = weight[j] * kept, mixed = s->weight[j] + bold * (full - s->weight[j]);
        target[j] = s->target[j] + bold * full / mixed * (target[j] + step[j] / kept - s->target[j]);
        weight[j] = mixed;
    }
    *result = (pk_matched){slope, evidence, sqrt(move), kept};
}

#endif
