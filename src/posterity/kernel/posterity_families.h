/* Likelihoods of amounts, lifetimes, shares and clustered counts, of one observation given eta. See
 * posterity_likelihoods.h for how they are used, and likelihoods/ for what each is. */
#ifndef POSTERITY_FAMILIES_H
#define POSTERITY_FAMILIES_H

#include "posterity_rows.h"

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

#define PK_LOG_ROOT_2PI 0.91893853320467274178
/* Beyond this the square of exp, times that of a shape, overflows. */
#define PK_LARGEST_FACTOR 300.0
/* Of the usual curvature, what that of a row is at least. */
#define PK_LEAST_BEND 0.2
/* Parameters of a beta distribution, and sizes of a negative binomial, are no smaller. */
#define PK_NEAREST 1e-150
#define PK_LEAST_SIZE 1e-100
/* From here on the series of digamma and trigamma have twelve digits. */
#define PK_FAR 7.0
/* Terms so many nats below the largest are no part of a sum; and with a smaller squared coefficient of variation an
 * expansion has more digits than the series. */
#define PK_NEGLIGIBLE 37.0
#define PK_LEAST_SPREAD 0.005

PK_INLINE double pk_log1p_exp(double x)
{
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

PK_INLINE double pk_factor(double eta)
{
    return exp(eta < PK_LARGEST_FACTOR ? eta : PK_LARGEST_FACTOR);
}

/* Of amounts whose variance is a power of their mean: where the larger power of the mean ends, so does the other, or
 * their difference would turn. */
PK_INLINE double pk_least_log_mean(const pk_likelihood *l, double eta)
{
    return fmax(eta, -PK_LARGEST_FACTOR / (l->b - 1.0));
}

PK_INLINE double pk_sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x > 0.0 ? 1.0 : e) / (1.0 + e);
}

/* Digamma and trigamma of x > 0, by recurrence up to where their series do (Abramowitz and Stegun 1972, 6.3.5, 6.3.18,
 * 6.4.6 and 6.4.12). */
PK_INLINE void pk_digamma(double x, double *digamma, double *trigamma)
{
    double first = 0.0, second = 0.0;
    for (; x < PK_FAR; x += 1.0) {
        double inverse = 1.0 / x;
        first += inverse;
        second += inverse * inverse;
    }
    double far = 1.0 / x, s = far * far;
    *digamma = log(x) - 0.5 * far - first
        - s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760))))));
    *trigamma = second + far + 0.5 * s
        + far * s * (1.0 / 6 - s * (1.0 / 30 - s * (1.0 / 42 - s * (1.0 / 30 - s * (5.0 / 66 - s * (691.0 / 2730))))));
}

/* Both parameters of a beta distribution, and the means of a share and of the rest. */
PK_INLINE void pk_split(const pk_likelihood *l, double eta, double *a, double *b, double *mean, double *rest)
{
    double e = exp(-fabs(eta)), inverse = 1.0 / (1.0 + e);
    *mean = (eta > 0.0 ? 1.0 : e) * inverse;
    *rest = (eta > 0.0 ? e : 1.0) * inverse;
    *a = fmax(l->a * *mean, PK_NEAREST);
    *b = fmax(l->a * *rest, PK_NEAREST);
}

PK_INLINE double pk_size(const pk_likelihood *l, double eta)
{
    return fmax(exp(eta < 700.0 ? eta : 700.0) / l->a, PK_LEAST_SIZE);
}

/* The cut points below and above a rating, seen from eta. */
PK_INLINE void pk_find_cuts(const pk_likelihood *l, double y, double eta, double *low, double *high)
{
    int level = (int)y;
    *low = level > 0 ? l->cuts[level - 1] - eta : -INFINITY;
    *high = level < l->a - 1.0 ? l->cuts[level] - eta : INFINITY;
}

/* Log of the sum over numbers of payments, of the power p, less the log of the amount (Dunn and Smyth 2005). */
static double pk_log_payments(double p, double dispersion, double y)
{
    double shape = (2.0 - p) / (p - 1.0), spread = dispersion * pow(y, p - 2.0), total = 0.0;
    if (!(spread > PK_LEAST_SPREAD))
        return p * (p - 3.0) / 24.0 * spread - 1.0 / (spread * (1.0 - p) * (2.0 - p))
            - PK_LOG_ROOT_2PI - 0.5 * (log(dispersion) + p * log(y));
    double rate = shape * (log(y) - log(p - 1.0)) - log(2.0 - p) - (1.0 + shape) * log(dispersion);
    double middle = fmax(floor(1.0 / (spread * (2.0 - p))), 1.0);
    double most = middle * rate - lgamma(middle + 1.0) - lgamma(middle * shape);
    for (int way = -1; way <= 1; way += 2)
        for (double number = way < 0 ? middle - 1.0 : middle; number >= 1.0; number += way) {
            double term = number * rate - lgamma(number + 1.0) - lgamma(number * shape) - most;
            if (term < -PK_NEGLIGIBLE)
                break;
            total += exp(term);
        }
    return most + log(total) - log(y);
}

/* The part of log p(y | eta) that depends on y alone. */
static double pk_family_constant(const pk_likelihood *l, double y)
{
    double a = l->a;
    switch (l->code) {
    case PK_GAMMA:
        return a * log(a * y) - log(y) - lgamma(a);
    case PK_POWER_OF_MEAN:
        if (l->b == 3.0)
            return -PK_LOG_ROOT_2PI - 0.5 * (log(a) + 3.0 * log(y) + 1.0 / (a * y));
        return y > 0.0 ? pk_log_payments(l->b, a, y) : 0.0;
    case PK_WEIBULL:
    case PK_LOG_LOGISTIC:
        return (a - 1.0) * log(y) + log(a);
    case PK_LOG_NORMAL:
        return -log(a) - log(y) - PK_LOG_ROOT_2PI;
    case PK_BETA:
        return lgamma(a) - log(y) - log1p(-y);
    case PK_BETA_BINOMIAL:
        return lgamma(l->b + 1.0) - lgamma(y + 1.0) - lgamma(l->b - y + 1.0) + lgamma(a) - lgamma(l->b + a);
    case PK_DIRECTIONS:
        return -l->b;
    default:
        return y * (log(a) - log1p(a)) - lgamma(y + 1.0);
    }
}

/* The rest of it. */
static double pk_family_density(const pk_likelihood *l, double y, double eta)
{
    double a = l->a, first, second, mean, rest;
    switch (l->code) {
    case PK_GAMMA:
        return -a * (eta + y * pk_factor(-eta));
    case PK_POWER_OF_MEAN:
        eta = pk_least_log_mean(l, eta);
        first = y > 0.0 ? y * pk_factor((1.0 - l->b) * eta) / (1.0 - l->b) : 0.0;
        return (first - pk_factor((2.0 - l->b) * eta) / (2.0 - l->b)) / a;
    case PK_WEIBULL:
        return -a * eta - pk_factor(a * (log(y) - eta));
    case PK_LOG_LOGISTIC:
        return -a * eta - 2.0 * pk_log1p_exp(a * (log(y) - eta));
    case PK_LOG_NORMAL:
        first = (log(y) - eta) / a;
        return -0.5 * first * first;
    case PK_BETA:
        pk_split(l, eta, &first, &second, &mean, &rest);
        return first * log(y) + second * log1p(-y) - lgamma(first) - lgamma(second);
    case PK_BETA_BINOMIAL:
        pk_split(l, eta, &first, &second, &mean, &rest);
        return lgamma(y + first) - lgamma(first) + lgamma(l->b - y + second) - lgamma(second);
    case PK_DIRECTIONS:
        return a * (cos(y - 2.0 * atan(eta)) - 1.0);
    default:
        first = pk_size(l, eta);
        return lgamma(y + first) - lgamma(first) - first * log1p(a);
    }
}

static void pk_clustered_derivatives(const pk_likelihood *l, double y, double eta, double *slope, double *curvature)
{
    double r = pk_size(l, eta), with, of_with, without, of_without;
    pk_digamma(y + r, &with, &of_with);
    pk_digamma(r, &without, &of_without);
    double usual = r * r * fmax(of_without - of_with, 0.0);
    *slope = r * (with - without - log1p(l->a));
    *curvature = fmax(usual - *slope, PK_LEAST_BEND * usual);
}

static void pk_share_derivatives(const pk_likelihood *l, double y, double eta, double *slope, double *curvature)
{
    double a, b, mean, rest, of_a, of_b, fall_a, fall_b;
    pk_split(l, eta, &a, &b, &mean, &rest);
    pk_digamma(a, &of_a, &fall_a);
    pk_digamma(b, &of_b, &fall_b);
    double pull = of_b - of_a, fall = fall_a + fall_b, rise = a * rest;
    if (l->code == PK_BETA) {
        pull += log(y) - log1p(-y);
    } else {
        double of_yes, of_no, fall_yes, fall_no;
        pk_digamma(y + a, &of_yes, &fall_yes);
        pk_digamma(l->b - y + b, &of_no, &fall_no);
        pull += of_yes - of_no;
        fall = fmax(fall - fall_yes - fall_no, 0.0);
    }
    double usual = rise * rise * fall;
    *slope = rise * pull;
    *curvature = fmax(usual + *slope * (mean - rest), PK_LEAST_BEND * usual);
}

static void pk_family_derivatives(const pk_likelihood *l, double y, double eta, double *slope, double *curvature)
{
    double a = l->a, share, usual;
    switch (l->code) {
    case PK_GAMMA:
        share = y * pk_factor(-eta);
        *slope = a * (share - 1.0);
        *curvature = a * share;
        return;
    case PK_POWER_OF_MEAN:
        eta = pk_least_log_mean(l, eta);
        share = y > 0.0 ? y * pk_factor((1.0 - l->b) * eta) / a : 0.0;
        usual = pk_factor((2.0 - l->b) * eta) / a;
        *slope = share - usual;
        *curvature = fmax((l->b - 1.0) * share + (2.0 - l->b) * usual, PK_LEAST_BEND * usual);
        return;
    case PK_WEIBULL:
        share = pk_factor(a * (log(y) - eta));
        *slope = a * (share - 1.0);
        *curvature = a * a * share;
        return;
    case PK_LOG_LOGISTIC:
        share = pk_sigmoid(a * (log(y) - eta));
        *slope = a * (2.0 * share - 1.0);
        *curvature = 2.0 * a * a * share * (1.0 - share);
        return;
    case PK_LOG_NORMAL:
        *slope = (log(y) - eta) / (a * a);
        *curvature = 1.0 / (a * a);
        return;
    case PK_LINEAR_COUNTS:
        pk_clustered_derivatives(l, y, eta, slope, curvature);
        return;
    case PK_DIRECTIONS: {
        double off = y - 2.0 * atan(eta), turn = 2.0 / (1.0 + eta * eta);
        usual = a * turn * turn;
        *slope = a * turn * sin(off);
        *curvature = fmax(usual * cos(off) + *slope * turn * eta, PK_LEAST_BEND * usual);
        return;
    }
    default:
        pk_share_derivatives(l, y, eta, slope, curvature);
    }
}

#endif
