/* log(1 + exp(eta)) and its derivatives, averaged over eta ~ Normal(mean, variance): of these all likelihoods with log
 * odds are made. See posterity_sites.h. */
#ifndef POSTERITY_SOFTPLUS_H
#define POSTERITY_SOFTPLUS_H

#include "posterity_sites.h"

/* Up to these variances a series has ten digits, and the rules of half of PK_NODES, and of all, have seven; beyond the
 * last a logistic is a step, to four. */
#define PK_TINY_VARIANCE 0.002
#define PK_NARROW_VARIANCE 0.05
#define PK_SMOOTH_VARIANCE 1.0
#define PK_STEP_VARIANCE 1e4

/* Sums over nodes, each times its weight: of log(1 + exp(eta)), and its first and second derivative. */
typedef struct {
    pk_vector value, slope, bend;
} pk_softplus_sums;

PK_INLINE void pk_add_softplus(pk_softplus_sums *sums, pk_vector at, pk_vector weight)
{
    pk_vector e = pk_exp_down(-pk_abs(at)), inverse = 1.0 / (1.0 + e), no = e * inverse;
    sums->value += weight * (pk_max(at, (pk_vector){0}) + pk_log(1.0 + e));
    sums->slope += weight * pk_choose(inverse, no, at > 0.0);
    sums->bend += weight * inverse * no;
}

/* Wide beside the logistic: by the trapezoidal rule, whose steps are short beside the distance of its poles. */
PK_RARE void pk_wide_softplus(double mean, double root, double *value, double *slope, double *bend)
{
    const pk_vector lanes = {PK_EACH_LANE(PK_NUMBER)};
    pk_softplus_sums sums = {0};
    pk_vector total = {0};
    double gap = 0.5;
    ptrdiff_t half = (ptrdiff_t)ceil(8.6 * root / gap), parts = (2 * half + PK_LANES) / PK_LANES;
    for (ptrdiff_t k = 0; k < parts; k++) {
        pk_vector step = gap * (lanes + (double)(k * PK_LANES - half)), x = step / root;
        pk_vector weight = pk_exp_down(-0.5 * x * x);
        total += weight;
        pk_add_softplus(&sums, mean + step, weight);
    }
    double inverse = 1.0 / pk_sum(total);
    *value = pk_sum(sums.value) * inverse;
    *slope = pk_sum(sums.slope) * inverse;
    *bend = pk_sum(sums.bend) * inverse;
}

/* Of as many rows as there are lanes, each of which is narrow beside the logistic. */
PK_INLINE void pk_narrow_softplus(pk_vector mean, pk_vector root, pk_softplus_sums *sums)
{
    for (int k = 0; k < PK_NODES / 4; k++) {
        pk_vector step = root * pk_few_nodes[k], weight = (pk_vector){0} + exp(pk_log_few_weights[k]);
        pk_add_softplus(sums, mean + step, weight);
        pk_add_softplus(sums, mean - step, weight);
    }
}

/* The same, hardly wider than a point: by Taylor's series, whose terms are moments times derivatives of the logistic. */
PK_INLINE void pk_expand_softplus(pk_vector mean, pk_vector variance, pk_softplus_sums *sums)
{
    pk_vector half = 0.5 * variance, eighth = 0.5 * half * half;
    pk_add_softplus(sums, mean, (pk_vector){0} + 1.0);
    pk_vector q = sums->bend, lean = q * (1.0 - 2.0 * sums->slope), bend = q * (1.0 - 6.0 * q);
    sums->value += half * q + eighth * bend;
    sums->slope += lean * (half + eighth * (1.0 - 12.0 * q));
    sums->bend += half * bend + eighth * q * (1.0 - q * (30.0 - 120.0 * q));
}

PK_INLINE int pk_all_within(const double *variance, double most)
{
    int narrow = 1;
    for (int lane = 0; lane < PK_LANES; lane++)
        narrow = narrow && variance[lane] <= most;
    return narrow;
}

/* Averages (n) of log(1 + exp(eta)), and of its first and second derivative, the logistic and its slope. */
static void pk_average_softplus(ptrdiff_t n, const double *mean, const double *variance, double *value, double *slope,
                                double *bend)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double root = sqrt(variance[i]);
        if (i + PK_LANES <= n && pk_all_within(variance + i, PK_NARROW_VARIANCE)) {
            pk_softplus_sums sums = {0};
            pk_vector middle = *(const pk_vector *)(mean + i), wide = *(const pk_vector *)(variance + i);
            if (pk_all_within(variance + i, PK_TINY_VARIANCE))
                pk_expand_softplus(middle, wide, &sums);
            else
                pk_narrow_softplus(middle, pk_sqrt(wide), &sums);
            *(pk_vector *)(value + i) = sums.value;
            *(pk_vector *)(slope + i) = sums.slope;
            *(pk_vector *)(bend + i) = sums.bend;
            i += PK_LANES - 1;
        } else if (variance[i] <= PK_SMOOTH_VARIANCE) {
            pk_softplus_sums sums = {0};
            for (int k = 0; k < PK_NODE_PARTS; k++)
                pk_add_softplus(&sums, mean[i] + root * pk_nodes_of(k), pk_exp_down(pk_log_weights_of(k)));
            value[i] = pk_sum(sums.value);
            slope[i] = pk_sum(sums.slope);
            bend[i] = pk_sum(sums.bend);
        } else if (variance[i] <= PK_STEP_VARIANCE) {
            pk_wide_softplus(mean[i], root, value + i, slope + i, bend + i);
        } else {
            double z = mean[i] / root, density = exp(-0.5 * z * z - PK_LOG_ROOT_2PI);
            slope[i] = 0.5 * erfc(-z * 0.7071067811865476);
            value[i] = mean[i] * slope[i] + (root + 1.6449340668482264 / root) * density; /* pi^2 / 6 */
            bend[i] = density / root;
        }
    }
}

#endif
