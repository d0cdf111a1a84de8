/* Likelihoods of amounts, lifetimes, shares and clustered counts, of one observation given eta. See
 * posterity_likelihoods.h for how they are used, and likelihoods/ for what each is. */
#ifndef POSTERITY_FAMILIES_H
#define POSTERITY_FAMILIES_H

#include "posterity_lanes.h"

enum { PK_LOGIT = 1, PK_PROBIT, PK_POISSON, PK_NEGATIVE_BINOMIAL, PK_GAUSSIAN, PK_STUDENT_T, PK_KINKED, PK_GAMMA,
       PK_POWER_OF_MEAN, PK_WEIBULL, PK_LOG_LOGISTIC, PK_LOG_NORMAL, PK_BETA, PK_BETA_BINOMIAL, PK_LINEAR_COUNTS,
       PK_DIRECTIONS, PK_RATINGS };
/* One of these beside the code of counts or amounts: zeros have a reason of their own, too, or only that. */
enum { PK_BASE = 31, PK_INFLATED = 32, PK_HURDLE = 64 };

/* code and parameters: the dispersion; the precision; df, scale, log constant; slopes below and above, log constant; the
 * shape; dispersion and power; shape; shape; scale; precision; precision and trials; excess; concentration and log
 * constant; number of levels and whether the link is probit. Of zeros the third is the log of their odds. */
enum { PK_MOST_CUTS = 15 };
typedef struct {
    int code, moments;
    double a, b, c;
    double cuts[PK_MOST_CUTS]; /* between ratings */
} pk_likelihood;

/* True of likelihoods that are looked at in all lanes here: all but ratings by the normal distribution. */
PK_INLINE int pk_is_family(const pk_likelihood *l)
{
    return l->code >= PK_GAMMA && l->code <= PK_RATINGS && (l->code < PK_RATINGS || l->b == 0.0);
}

/* Beyond this the square of exp, times that of a shape, overflows. */
#define PK_LARGEST_FACTOR 300.0
/* Of the usual curvature, what that of a row is at least. */
#define PK_LEAST_BEND 0.2
/* Parameters of a beta distribution, and sizes of a negative binomial, are no smaller. */
#define PK_NEAREST 1e-150
#define PK_LEAST_SIZE 1e-100
/* Terms so many nats below the largest are no part of a sum; and with a smaller squared coefficient of variation an
 * expansion has more digits than the series. */
#define PK_NEGLIGIBLE 37.0
#define PK_LEAST_SPREAD 0.005
#define PK_FALLS 512

PK_INLINE double pk_log1p_exp(double x)
{
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

PK_INLINE double pk_sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x > 0.0 ? 1.0 : e) / (1.0 + e);
}

PK_INLINE pk_vector pk_all(double x)
{
    return (pk_vector){0} + x;
}

PK_INLINE pk_vector pk_factor(pk_vector eta)
{
    return pk_exp_any(pk_choose(eta, pk_all(PK_LARGEST_FACTOR), eta < PK_LARGEST_FACTOR));
}

/* Log density, but for what depends on y alone, its slope in eta, and its curvature, of as many observations as there
 * are lanes. */
typedef struct {
    pk_vector density, slope, curvature;
} pk_look;

#define PK_LOG_GAMMA(x) pk_find_gammas(x).log
#define PK_FLOOR_OF(lane) floor(x[lane])
#define PK_FALL_OF(lane) falls[(ptrdiff_t)numbers[lane]]
#define PK_GAP_OF(lane) pk_log_gap(l, y[lane])

PK_INLINE pk_vector pk_floor(pk_vector x)
{
    return (pk_vector){PK_EACH_LANE(PK_FLOOR_OF)};
}

/* What takes the terms of a sum over numbers of payments down, as known up to PK_FALLS or found. */
PK_INLINE pk_vector pk_fall(const double *falls, double shape, pk_vector numbers)
{
    if (falls && pk_largest(numbers) < PK_FALLS)
        return (pk_vector){PK_EACH_LANE(PK_FALL_OF)};
    return PK_LOG_GAMMA(numbers + 1.0) + PK_LOG_GAMMA(numbers * shape);
}

/* The cut points below and above a rating, seen from eta. */
PK_INLINE void pk_find_cuts(const pk_likelihood *l, double y, double eta, double *low, double *high)
{
    int level = (int)y;
    *low = level > 0 ? l->cuts[level - 1] - eta : -INFINITY;
    *high = level < l->a - 1.0 ? l->cuts[level] - eta : INFINITY;
}

/* What the width of a rating alone adds to its log density (McCullagh 1980). */
PK_INLINE double pk_log_gap(const pk_likelihood *l, double y)
{
    double low, high;
    pk_find_cuts(l, y, 0.0, &low, &high);
    return l->b > 0.0 ? 0.0 : log(-expm1(low - high));
}

/* The same of all numbers up to PK_FALLS, for many amounts; what widths add, for many ratings; NULL of others. */
static const double *pk_tabulate_falls(const pk_likelihood *l, double *falls)
{
    const pk_vector lanes = {PK_EACH_LANE(PK_NUMBER)};
    if (l->code == PK_RATINGS) {
        for (int level = 0; level < l->a; level++)
            falls[level] = pk_log_gap(l, level);
        return falls;
    }
    if (l->code != PK_POWER_OF_MEAN || l->b >= 2.0)
        return NULL;
    for (ptrdiff_t number = 0; number < PK_FALLS; number += PK_LANES)
        *(pk_vector *)(falls + number) =
            pk_fall(NULL, (2.0 - l->b) / (l->b - 1.0), pk_max((double)number + lanes, pk_all(1.0)));
    return falls;
}

/* Log of the sum over numbers of payments, of the power p, less the log of the amount (Dunn and Smyth 2005); 0 where
 * there are none. */
static pk_vector pk_log_payments(const pk_likelihood *l, pk_vector y, const double *falls)
{
    const pk_vector zero = {0}, one = zero + 1.0;
    double p = l->b, shape = (2.0 - p) / (p - 1.0), log_scale = log(l->a);
    double shift = log(2.0 - p) + (1.0 + shape) * log_scale;
    pk_vector log_y = pk_log(pk_choose(y, one, y > 0.0)), spread = l->a * pk_exp_any((p - 2.0) * log_y), total = zero;
    pk_vector rate = shape * (log_y - log(p - 1.0)) - shift, expected = 1.0 / (spread * (2.0 - p));
    pk_integers few = (spread > PK_LEAST_SPREAD) & (y > 0.0);
    pk_vector middle = pk_max(pk_floor(pk_choose(expected, one, few)), one);
    pk_vector most = middle * rate - pk_fall(falls, shape, middle);
    for (int way = 1; way >= -1; way -= 2) {
        double least = 0.0, last = pk_largest(middle) - (way < 0);
        pk_vector numbers = middle - (way > 0 ? 0.0 : 1.0);
        for (; last >= 1.0 && least > -PK_NEGLIGIBLE; numbers += (double)way) {
            pk_integers some = (numbers >= 1.0) & few;
            pk_vector term = numbers * rate - pk_fall(falls, shape, pk_max(numbers, one)) - most;
            term = pk_choose(term, zero - INFINITY, some);
            total += pk_exp_down(term);
            least = pk_largest(term);
            last += (double)way;
        }
    }
    pk_vector far = p * (p - 3.0) / 24.0 * spread + expected / (p - 1.0) - PK_LOG_ROOT_2PI - 0.5 * (log_scale + p * log_y);
    return pk_choose(pk_choose(most + pk_log(pk_max(total, one * 1e-300)) - log_y, far, few), zero, y > 0.0);
}

/* The part of log p(y | eta) that depends on y alone. */
static pk_vector pk_family_constants(const pk_likelihood *l, pk_vector y, const double *falls)
{
    double a = l->a;
    switch (l->code) {
    case PK_GAMMA:
        return a * pk_log(a * y) - pk_log(y) - lgamma(a);
    case PK_POWER_OF_MEAN:
        if (l->b == 3.0)
            return -PK_LOG_ROOT_2PI - 0.5 * (log(a) + 3.0 * pk_log(y) + 1.0 / (a * y));
        return pk_log_payments(l, y, falls);
    case PK_WEIBULL:
    case PK_LOG_LOGISTIC:
        return (a - 1.0) * pk_log(y) + log(a);
    case PK_LOG_NORMAL:
        return -log(a) - pk_log(y) - PK_LOG_ROOT_2PI;
    case PK_BETA:
        return lgamma(a) - pk_log(y) - pk_log(1.0 - y);
    case PK_BETA_BINOMIAL:
        return lgamma(l->b + 1.0) + lgamma(a) - lgamma(l->b + a) - PK_LOG_GAMMA(y + 1.0) - PK_LOG_GAMMA(l->b - y + 1.0);
    case PK_DIRECTIONS:
        return pk_all(-l->b);
    case PK_RATINGS: {
        pk_vector numbers = y;
        return falls ? (pk_vector){PK_EACH_LANE(PK_FALL_OF)} : (pk_vector){PK_EACH_LANE(PK_GAP_OF)};
    }
    default:
        return y * (log(a) - log1p(a)) - PK_LOG_GAMMA(y + 1.0);
    }
}

/* Shares of a whole, and numbers of successes, which have two parameters of a beta distribution. */
PK_INLINE pk_look pk_look_at_shares(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    const pk_vector one = pk_all(1.0);
    pk_vector e = pk_exp_down(-pk_abs(eta)), inverse = 1.0 / (1.0 + e), density, pull;
    pk_vector mean = pk_choose(one, e, eta > 0.0) * inverse, rest = pk_choose(e, one, eta > 0.0) * inverse;
    pk_vector a = pk_max(l->a * mean, pk_all(PK_NEAREST)), b = pk_max(l->a * rest, pk_all(PK_NEAREST));
    pk_gammas of_a = pk_find_gammas(a), of_b = pk_find_gammas(b);
    pk_vector fall = of_a.bend + of_b.bend, rise = a * rest;
    if (l->code == PK_BETA) {
        pk_vector log_y = pk_log(y), log_rest = pk_log(1.0 - y);
        density = a * log_y + b * log_rest - of_a.log - of_b.log;
        pull = log_y - log_rest - of_a.slope + of_b.slope;
    } else {
        pk_gammas yes = pk_find_gammas(y + a), no = pk_find_gammas(l->b - y + b);
        density = (yes.log - of_a.log) + (no.log - of_b.log);
        pull = (yes.slope - of_a.slope) - (no.slope - of_b.slope);
        fall = pk_max(fall - yes.bend - no.bend, pk_all(0.0));
    }
    pk_vector slope = rise * pull, usual = rise * rise * fall;
    return (pk_look){density, slope, pk_max(usual + slope * (mean - rest), PK_LEAST_BEND * usual)};
}

PK_INLINE pk_look pk_look_at_clusters(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    double each = log1p(l->a);
    pk_vector r = pk_max(pk_exp_any(eta) / l->a, pk_all(PK_LEAST_SIZE));
    pk_gammas with = pk_find_gammas(y + r), without = pk_find_gammas(r);
    pk_vector slope = r * (with.slope - without.slope - each);
    pk_vector usual = r * r * pk_max(without.bend - with.bend, pk_all(0.0));
    return (pk_look){with.log - without.log - r * each, slope, pk_max(usual - slope, PK_LEAST_BEND * usual)};
}

/* Amounts whose variance is a power of their mean. Where the larger power of the mean ends, so does the other, or their
 * difference would turn. */
PK_INLINE pk_look pk_look_at_amounts(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    double first = 1.0 - l->b, second = 2.0 - l->b;
    eta = pk_max(eta, pk_all(PK_LARGEST_FACTOR / first));
    pk_vector share = y * pk_factor(first * eta) / l->a, usual = pk_factor(second * eta) / l->a;
    return (pk_look){share / first - usual / second, share - usual,
                     pk_max(second * usual - first * share, PK_LEAST_BEND * usual)};
}

/* Angles around the direction 2 arctan(eta). */
PK_INLINE pk_look pk_look_at_directions(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    pk_look look;
    for (int lane = 0; lane < PK_LANES; lane++) {
        double off = y[lane] - 2.0 * atan(eta[lane]), turn = 2.0 / (1.0 + eta[lane] * eta[lane]);
        double usual = l->a * turn * turn, near = cos(off), slope = l->a * turn * sin(off);
        look.density[lane] = l->a * (near - 1.0);
        look.slope[lane] = slope;
        look.curvature[lane] = fmax(usual * near + slope * turn * eta[lane], PK_LEAST_BEND * usual);
    }
    return look;
}

/* Ratings by two logistics: of the cut points below and above. */
PK_INLINE pk_look pk_look_at_ratings(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    pk_vector low, high, zero = {0};
    for (int lane = 0; lane < PK_LANES; lane++) {
        double ends[2];
        pk_find_cuts(l, y[lane], 0.0, ends, ends + 1);
        low[lane] = ends[0];
        high[lane] = ends[1];
    }
    low -= eta;
    high -= eta;
    pk_vector below = pk_exp_down(-pk_abs(low)), above = pk_exp_down(-pk_abs(high));
    pk_vector both = (1.0 + below) * (1.0 + above), inverse = 1.0 / both;
    pk_vector more = (1.0 + above) * inverse, less = (1.0 + below) * inverse;
    return (pk_look){-pk_max(-high, zero) - pk_max(low, zero) - pk_log(both),
                     pk_choose(less, above * less, high > 0.0) - pk_choose(below * more, more, low > 0.0),
                     above * less * less + below * more * more};
}

PK_INLINE pk_look pk_look_at_family(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    double a = l->a;
    pk_vector share, off;
    switch (l->code) {
    case PK_GAMMA:
        share = y * pk_factor(-eta);
        return (pk_look){-a * (eta + share), a * (share - 1.0), a * share};
    case PK_POWER_OF_MEAN:
        return pk_look_at_amounts(l, y, eta);
    case PK_WEIBULL:
        share = pk_factor(a * (pk_log(y) - eta));
        return (pk_look){-a * eta - share, a * (share - 1.0), a * a * share};
    case PK_LOG_LOGISTIC:
        off = a * (pk_log(y) - eta);
        share = pk_exp_down(-pk_abs(off)) / (1.0 + pk_exp_down(-pk_abs(off)));
        return (pk_look){-a * eta - 2.0 * (pk_max(off, pk_all(0.0)) + pk_log1p_exp_down(-pk_abs(off))),
                         a * pk_choose(1.0 - 2.0 * share, 2.0 * share - 1.0, off > 0.0),
                         2.0 * a * a * share * (1.0 - share)};
    case PK_LOG_NORMAL:
        off = (pk_log(y) - eta) / a;
        return (pk_look){-0.5 * off * off, off / a, pk_all(1.0 / (a * a))};
    case PK_LINEAR_COUNTS:
        return pk_look_at_clusters(l, y, eta);
    case PK_DIRECTIONS:
        return pk_look_at_directions(l, y, eta);
    case PK_RATINGS:
        return pk_look_at_ratings(l, y, eta);
    default:
        return pk_look_at_shares(l, y, eta);
    }
}

static pk_vector pk_family_densities(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    return pk_look_at_family(l, y, eta).density;
}

static void pk_family_derivatives(const pk_likelihood *l, pk_vector y, pk_vector eta, pk_vector *slope, pk_vector *curvature)
{
    pk_look look = pk_look_at_family(l, y, eta);
    *slope = look.slope;
    *curvature = look.curvature;
}

#endif
