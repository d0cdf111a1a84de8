/* Likelihoods of amounts, lifetimes, shares and clustered counts, of one observation given eta. See
 * posterity_likelihoods.h for how they are used, and likelihoods/ for what each is. */
#ifndef POSTERITY_FAMILIES_H
#define POSTERITY_FAMILIES_H

#include "posterity_lanes.h"

enum { PK_LOGIT = 1, PK_PROBIT, PK_POISSON, PK_NEGATIVE_BINOMIAL, PK_GAUSSIAN, PK_STUDENT_T, PK_KINKED, PK_GAMMA,
       PK_POWER_OF_MEAN, PK_WEIBULL, PK_LOG_LOGISTIC, PK_LOG_NORMAL, PK_BETA, PK_BETA_BINOMIAL, PK_LINEAR_COUNTS };

/* code and parameters: the dispersion; the precision; df, scale, log constant; slopes below and above, log constant; the
 * shape; dispersion and power; shape; shape; scale; precision; precision and trials; excess. */
typedef struct {
    int code, moments;
    double a, b, c;
} pk_likelihood;

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

PK_INLINE double pk_log1p_exp(double x)
{
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
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

/* Log of the sum over numbers of payments, of the power p, less the log of the amount (Dunn and Smyth 2005). */
static double pk_log_payments(double p, double dispersion, double y)
{
    double shape = (2.0 - p) / (p - 1.0), spread = dispersion * pow(y, p - 2.0), total = 0.0;
    if (!(spread > PK_LEAST_SPREAD))
        return p * (p - 3.0) / 24.0 * spread - 1.0 / (spread * (1.0 - p) * (2.0 - p))
            - PK_LOG_ROOT_2PI - 0.5 * (log(dispersion) + p * log(y));
    double rate = shape * (log(y) - log(p - 1.0)) - log(2.0 - p) - (1.0 + shape) * log(dispersion);
    double middle = fmax(floor(1.0 / (spread * (2.0 - p))), 1.0), most = 0.0, least = 0.0;
    const pk_vector lanes = {PK_EACH_LANE(PK_NUMBER)}, one = pk_all(1.0);
    for (int way = 1; way >= -1; way -= 2, least = 0.0)
        for (double first = way > 0 ? middle : middle - 1.0; first >= 1.0 && least > -PK_NEGLIGIBLE; first += way * PK_LANES) {
            pk_vector numbers = first + way * lanes, some = pk_max(numbers, one);
            pk_vector term = some * rate - PK_LOG_GAMMA(some + 1.0) - PK_LOG_GAMMA(some * shape);
            most = way > 0 && first == middle ? term[0] : most;
            total += pk_sum(pk_choose(pk_exp_down(term - most), pk_all(0.0), numbers >= one));
            least = term[PK_LANES - 1] - most;
        }
    return most + log(total) - log(y);
}

#define PK_PAYMENTS(lane) (y[lane] > 0.0 ? pk_log_payments(l->b, l->a, y[lane]) : 0.0)

/* The part of log p(y | eta) that depends on y alone. */
static pk_vector pk_family_constants(const pk_likelihood *l, pk_vector y)
{
    double a = l->a;
    switch (l->code) {
    case PK_GAMMA:
        return a * pk_log(a * y) - pk_log(y) - lgamma(a);
    case PK_POWER_OF_MEAN:
        if (l->b == 3.0)
            return -PK_LOG_ROOT_2PI - 0.5 * (log(a) + 3.0 * pk_log(y) + 1.0 / (a * y));
        return (pk_vector){PK_EACH_LANE(PK_PAYMENTS)};
    case PK_WEIBULL:
    case PK_LOG_LOGISTIC:
        return (a - 1.0) * pk_log(y) + log(a);
    case PK_LOG_NORMAL:
        return -log(a) - pk_log(y) - PK_LOG_ROOT_2PI;
    case PK_BETA:
        return lgamma(a) - pk_log(y) - pk_log(1.0 - y);
    case PK_BETA_BINOMIAL:
        return lgamma(l->b + 1.0) + lgamma(a) - lgamma(l->b + a) - PK_LOG_GAMMA(y + 1.0) - PK_LOG_GAMMA(l->b - y + 1.0);
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
