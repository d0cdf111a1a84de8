/* Distribution functions and densities of many mixtures of normals, each at some points. Twin: score_by_scipy of
 * forecasting/marginals.py. */
#ifndef POSTERITY_MIXTURES_H
#define POSTERITY_MIXTURES_H

#include "posterity_scores.h"

/* Normals whose sums are kept side by side, so that compilers make vectors of them. */
#define PK_SIDE_BY_SIDE 16
#define PK_FARTHEST 38.0 /* standard deviations beyond which nothing is left */

/* Mixture i of `size` normals: weight, mean and 1 / sd at i * size. */
typedef struct {
    const double *weight, *mean, *precision;
    ptrdiff_t size;
} pk_mixtures;

/* Add w Phi(z) and w phi(z) / sd, but for the factor sqrt(2 pi), of normals `first` to `stop` at y. */
PK_INLINE void pk_add_normals(const double *weight, const double *mean, const double *precision, ptrdiff_t stop,
                              double y, double *restrict below, double *restrict height)
{
    for (ptrdiff_t k = 0; k < stop; k++) {
        double z = (y - mean[k]) * precision[k], size = fabs(z);
        size = size < PK_FARTHEST ? size : PK_FARTHEST;
        double density = pk_exp_minus(0.5 * size * size), tail = 0.5 * pk_normal_tails(size, density);
        density = size < PK_FARTHEST ? density : 0.0;
        below[k] += weight[k] * (z < 0.0 ? tail : 1.0 - tail);
        height[k] += weight[k] * precision[k] * density;
    }
}

/* Distribution function and density of mixture `which` at y. */
static void pk_mixture_at(const pk_mixtures *m, ptrdiff_t which, double y, double *cdf, double *density)
{
    double below[PK_SIDE_BY_SIDE] = {0.0}, height[PK_SIDE_BY_SIDE] = {0.0};
    const double *weight = m->weight + which * m->size, *mean = m->mean + which * m->size;
    const double *precision = m->precision + which * m->size;
    ptrdiff_t k = 0;
    for (; k + PK_SIDE_BY_SIDE <= m->size; k += PK_SIDE_BY_SIDE)
        pk_add_normals(weight + k, mean + k, precision + k, PK_SIDE_BY_SIDE, y, below, height);
    pk_add_normals(weight + k, mean + k, precision + k, m->size - k, y, below, height);
    *cdf = *density = 0.0;
    for (k = 0; k < PK_SIDE_BY_SIDE; k++) {
        *cdf += below[k];
        *density += 0.5 * PK_ROOT_2_OVER_PI * height[k];
    }
}

#endif
