/* Many observations at given eta: what Newton's method on all of them needs, and averages. See posterity_sites.h. */
#ifndef POSTERITY_WORKING_ROWS_H
#define POSTERITY_WORKING_ROWS_H

#include "posterity_sites.h"

/* Of the gradient: a row's precision where its curvature vanishes. The mode, where gradients balance, stays. */
#define PK_LEAST_CURVATURE 1e-8
/* Of the information before, what is rounding. */
#define PK_ROUNDING_OF_BEND 1e-9

/* As many entries from i on as there are lanes, or as there are left of n; where there is no array, `otherwise`. */
PK_INLINE pk_vector pk_load_some(const double *array, ptrdiff_t i, ptrdiff_t n, double otherwise)
{
    pk_vector some = pk_all(otherwise);
    if (!array)
        return some;
    if (i + PK_LANES <= n)
        return *(const pk_vector *)(array + i);
    for (ptrdiff_t lane = 0; i + lane < n; lane++)
        some[lane] = array[i + lane];
    return some;
}

PK_INLINE void pk_store_some(double *array, ptrdiff_t i, ptrdiff_t n, pk_vector some)
{
    if (i + PK_LANES <= n)
        *(pk_vector *)(array + i) = some;
    else
        for (ptrdiff_t lane = 0; i + lane < n; lane++)
            array[i + lane] = some[lane];
}

/* The same, and 0 in lanes beyond n. */
PK_INLINE pk_vector pk_those_of(ptrdiff_t i, ptrdiff_t n, pk_vector some)
{
    const pk_vector lanes = {PK_EACH_LANE(PK_NUMBER)};
    return pk_choose(some, pk_all(0.0), lanes < (double)(n - i));
}

/* pk_derivatives in every lane. */
PK_INLINE void pk_all_derivatives(const pk_likelihood *l, pk_vector y, pk_vector eta, pk_vector *slope, pk_vector *curvature)
{
    const pk_vector one = pk_all(1.0);
    int labels = l->code == PK_LOGIT;
    if (labels || l->code == PK_NEGATIVE_BINOMIAL) {
        pk_vector excess = eta + (labels ? 0.0 : log(l->a)), e = pk_exp_down(-pk_abs(excess)), inverse = 1.0 / (1.0 + e);
        pk_vector yes = pk_choose(one, e, excess > 0.0) * inverse, no = pk_choose(e, one, excess > 0.0) * inverse;
        pk_vector size = y + 1.0 / l->a, pull = y * no - yes / l->a;
        *slope = labels ? pk_choose(no, -yes, y > 0.5) : pull;
        *curvature = labels ? yes * no : size * yes * no;
    } else if (l->code == PK_POISSON) {
        pk_vector rate = pk_exp_any(eta);
        *slope = y - rate;
        *curvature = rate;
    } else if (pk_is_family(l)) {
        pk_family_derivatives(l, y, eta, slope, curvature);
    } else {
        for (int lane = 0; lane < PK_LANES; lane++) {
            double rise, bend;
            pk_derivatives(l, y[lane], eta[lane], &rise, &bend);
            (*slope)[lane] = rise;
            (*curvature)[lane] = bend;
        }
    }
}

#define PK_CONSTANT_OF(lane) pk_log_constant(l, y[lane])

/* pk_log_constant in every lane, but for zeros with a reason of their own. */
PK_INLINE pk_vector pk_plain_constants(const pk_likelihood *l, pk_vector y, const double *falls)
{
    if (l->code == PK_POISSON)
        return -PK_LOG_GAMMA(y + 1.0);
    if (l->code == PK_NEGATIVE_BINOMIAL)
        return PK_LOG_GAMMA(y + 1.0 / l->a) - lgamma(1.0 / l->a) - PK_LOG_GAMMA(y + 1.0);
    if (pk_is_family(l))
        return pk_family_constants(l, y, falls);
    if (l->code <= PK_PROBIT)
        return pk_all(0.0);
    return (pk_vector){PK_EACH_LANE(PK_CONSTANT_OF)};
}

/* The same with these: a count of 0 adds nothing itself. */
PK_INLINE pk_vector pk_log_constants(const pk_likelihood *l, pk_vector y, const double *falls)
{
    pk_likelihood base = pk_without_zeros(l);
    if (l->code & PK_INFLATED)
        return pk_plain_constants(&base, y, falls) - pk_log1p_exp(l->c);
    return pk_plain_constants(l, y, falls);
}

PK_INLINE pk_look pk_look_at_plain(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    if (pk_is_family(l))
        return pk_look_at_family(l, y, eta);
    pk_look look = {.density = pk_log_densities(l, y, eta)};
    pk_all_derivatives(l, y, eta, &look.slope, &look.curvature);
    return look;
}

PK_INLINE pk_look pk_look_at(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    if (!(l->code & PK_INFLATED))
        return pk_look_at_plain(l, y, eta);
    /* Which reason a zero has turns with eta, too: pk_zeros_derivatives. */
    pk_likelihood base = pk_without_zeros(l);
    pk_look look = pk_look_at_plain(&base, y, eta);
    pk_integers zeros = y == 0.0;
    pk_vector off = look.density - l->c, e = pk_exp_down(-pk_abs(off)), inverse = 1.0 / (1.0 + e);
    pk_vector own = pk_choose(inverse, e * inverse, off > 0.0), rest = pk_choose(e, pk_all(1.0), off > 0.0) * inverse;
    pk_vector bend = pk_max(own * (look.curvature - rest * look.slope * look.slope), pk_all(0.0));
    pk_vector either = pk_max(look.density, pk_all(l->c)) + pk_log(1.0 + e);
    return (pk_look){pk_choose(either, look.density, zeros), pk_choose(own * look.slope, look.slope, zeros),
                     pk_choose(bend, look.curvature, zeros)};
}

/* Precision of the rows of a Newton step at eta, and that times how far their targets are from it; and the sum of
 * precision (target - eta)^2 / 2. Returns the sum of weight log p(y | eta), but for what depends on y alone. */
static double pk_working_rows(const pk_likelihood *l, ptrdiff_t n, const double *y, const double *eta,
                              const double *weights, double *precision, double *pull, double *squares)
{
    pk_vector total = {0}, all = {0};
    for (ptrdiff_t i = 0; i < n; i += PK_LANES) {
        pk_vector at = pk_load_some(eta, i, n, 0.0), weight = pk_load_some(weights, i, n, 1.0);
        pk_look look = pk_look_at(l, pk_load_some(y, i, n, 0.5), at);
        pk_vector size = pk_max(look.curvature, PK_LEAST_CURVATURE * pk_abs(look.slope));
        pk_vector push = weight * look.slope;
        pk_store_some(precision, i, n, weight * size);
        pk_store_some(pull, i, n, push);
        all += pk_those_of(i, n, 0.5 * push * look.slope / pk_max(size, pk_all(1e-300)));
        total += pk_those_of(i, n, weight * look.density);
    }
    *squares = pk_sum(all);
    return pk_sum(total);
}

/* Sum of weight log p(y | eta). */
static double pk_total_density(const pk_likelihood *l, ptrdiff_t n, const double *y, const double *eta,
                               const double *weights)
{
    pk_vector total = {0};
    double room[PK_FALLS];
    const double *falls = pk_tabulate_falls(l, room);
    for (ptrdiff_t i = 0; i < n; i += PK_LANES) {
        pk_vector at = pk_load_some(y, i, n, 0.5);
        pk_vector density = pk_log_constants(l, at, falls) + pk_look_at(l, at, pk_load_some(eta, i, n, 0.0)).density;
        total += pk_those_of(i, n, density * pk_load_some(weights, i, n, 1.0));
    }
    return pk_sum(total);
}

/* Sums over k nodes, each times its share, of log densities (n), slopes and curvatures, at eta = mean + sd node. By parts
 * a curvature may be negative: not where eta is as good as open, nor where that is rounding. */
static void pk_average_looks(const pk_likelihood *l, ptrdiff_t n, const double *y, const double *mean, const double *sd,
                             ptrdiff_t k, const double *nodes, const double *shares, double vague, double *density,
                             double *slope, double *curvature)
{
    double room[PK_FALLS];
    const double *falls = pk_tabulate_falls(l, room);
    for (ptrdiff_t i = 0; i < n; i += PK_LANES) {
        pk_vector at = pk_load_some(y, i, n, 0.5), middle = pk_load_some(mean, i, n, 0.0);
        pk_vector reach = pk_load_some(sd, i, n, 0.0), leaning = {0};
        pk_look sum = {.density = pk_log_constants(l, at, falls)};
        for (ptrdiff_t node = 0; node < k; node++) {
            pk_look look = pk_look_at(l, at, middle + nodes[node] * reach);
            sum.density += shares[node] * look.density;
            sum.slope += shares[node] * look.slope;
            sum.curvature += shares[node] * look.curvature;
            leaning += shares[node] * nodes[node] * look.slope;
        }
        pk_store_some(density, i, n, sum.density);
        pk_store_some(slope, i, n, sum.slope);
        pk_vector variance = reach * reach, bend = -leaning / pk_max(reach, pk_all(1e-300));
        pk_integers sure = ((sum.curvature - bend) * variance > PK_ROUNDING_OF_BEND) & (variance < vague);
        pk_store_some(curvature, i, n, pk_choose(bend, sum.curvature, sure));
    }
}

/* Digamma and trigamma of n positive numbers. */
static void pk_find_digammas(ptrdiff_t n, const double *x, double *digamma, double *trigamma)
{
    for (ptrdiff_t i = 0; i < n; i += PK_LANES) {
        pk_gammas found = pk_find_gammas(pk_load_some(x, i, n, 1.0));
        pk_store_some(digamma, i, n, found.slope);
        pk_store_some(trigamma, i, n, found.bend);
    }
}

#endif
