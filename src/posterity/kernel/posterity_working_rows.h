/* Site rows of many observations at given eta, for Newton's method on all of them. See posterity_sites.h. */
#ifndef POSTERITY_WORKING_ROWS_H
#define POSTERITY_WORKING_ROWS_H

#include "posterity_sites.h"

/* Of the gradient: a row's precision where its curvature vanishes. The mode, where gradients balance, stays. */
#define PK_LEAST_CURVATURE 1e-8

/* Entries i.. of an array, or where there is none, `otherwise`. */
PK_INLINE pk_vector pk_load_or_default(const double *array, ptrdiff_t i, double otherwise)
{
    if (!array)
        return (pk_vector){0} + otherwise;
    return *(const pk_vector *)(array + i);
}

/* pk_derivatives in every lane; only of those whose lanes are fast. */
PK_INLINE void pk_all_derivatives(const pk_likelihood *l, pk_vector y, pk_vector eta, pk_vector *slope, pk_vector *curvature)
{
    if (l->code == PK_LOGIT) {
        pk_vector e = pk_exp_down(-pk_abs(eta)), inverse = 1.0 / (1.0 + e);
        pk_vector yes = pk_choose((pk_vector){0} + 1.0, e, eta > 0.0) * inverse;
        pk_vector no = pk_choose(e, (pk_vector){0} + 1.0, eta > 0.0) * inverse;
        *slope = pk_choose(no, -yes, y > 0.5);
        *curvature = yes * no;
    } else {
        pk_vector rate = pk_exp_any(eta);
        *slope = y - rate;
        *curvature = rate;
    }
}

/* Precision and target, less offset, of the rows of a Newton step at eta; returns the sum of
 * precision (target - eta)^2 / 2. */
static double pk_working_rows(const pk_likelihood *l, ptrdiff_t n, const double *y, const double *eta,
                              const double *offsets, const double *weights, double *precision, double *target)
{
    double squares = 0.0;
    ptrdiff_t i = 0;
    if (l->code == PK_LOGIT || l->code == PK_POISSON) {
        pk_vector all = {0};
        for (; i + PK_LANES <= n; i += PK_LANES) {
            pk_vector at = *(const pk_vector *)(eta + i), slope, curvature;
            pk_all_derivatives(l, *(const pk_vector *)(y + i), at, &slope, &curvature);
            pk_vector size = pk_max(curvature, PK_LEAST_CURVATURE * pk_abs(slope));
            pk_vector weight = pk_load_or_default(weights, i, 1.0);
            pk_vector step = slope / pk_max(size, (pk_vector){0} + 1e-300);
            *(pk_vector *)(precision + i) = weight * size;
            *(pk_vector *)(target + i) = at + step - pk_load_or_default(offsets, i, 0.0);
            all += 0.5 * weight * slope * step;
        }
        squares = pk_sum(all);
    }
    for (; i < n; i++) {
        double slope, curvature, weight = weights ? weights[i] : 1.0;
        pk_derivatives(l, y[i], eta[i], &slope, &curvature);
        double least = PK_LEAST_CURVATURE * fabs(slope), size = curvature > least ? curvature : least;
        double step = size > 0.0 ? slope / size : 0.0;
        precision[i] = weight * size;
        target[i] = eta[i] + step - (offsets ? offsets[i] : 0.0);
        squares += 0.5 * weight * slope * step;
    }
    return squares;
}

/* Sum of weight log p(y | eta), but for what depends on y alone. */
static double pk_total_density(const pk_likelihood *l, ptrdiff_t n, const double *y, const double *eta,
                               const double *weights)
{
    double total = 0.0;
    ptrdiff_t i = 0;
    if (l->code == PK_LOGIT || l->code == PK_POISSON) {
        pk_vector all = {0};
        for (; i + PK_LANES <= n; i += PK_LANES) {
            pk_vector at = *(const pk_vector *)(eta + i), label = *(const pk_vector *)(y + i), density;
            if (l->code == PK_LOGIT) {
                pk_vector z = pk_choose(at, -at, label > 0.5);
                density = -pk_max(-z, (pk_vector){0}) - pk_log1p_exp_down(-pk_abs(z));
            } else {
                density = label * at - pk_exp_any(at);
            }
            all += density * pk_load_or_default(weights, i, 1.0);
        }
        total = pk_sum(all);
    }
    for (; i < n; i++)
        total += (weights ? weights[i] : 1.0) * pk_log_density(l, y[i], eta[i]);
    return total;
}

#endif
