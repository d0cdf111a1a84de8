/* Likelihoods of one observation given eta: densities, derivatives, modes. See posterity_sites.h. */
#ifndef POSTERITY_LIKELIHOODS_H
#define POSTERITY_LIKELIHOODS_H

#include "posterity_average.h"
#include "posterity_families.h"

#define PK_ROOT_HALF 0.70710678118654752440
#define PK_LARGEST_LOG 700.0
#define PK_VAGUE_VARIANCE 100.0
#define PK_VAGUE_SCALES 1e3

/* ---- the normal distribution's tail ------------------------------------------------------------- */

/* density(z) / tail beyond z, for z > 4 by its continued fraction: terms for all digits. */
PK_INLINE double pk_far_hazard(double z)
{
    double fraction = z;
    for (int k = z > 30.0 ? 7 : z > 12.0 ? 12 : z > 8.0 ? 16 : z > 6.0 ? 22 : 38; k > 0; k--)
        fraction = z + k / fraction;
    return fraction;
}

PK_INLINE double pk_hazard(double z)
{
    if (z > 4.0)
        return pk_far_hazard(z);
    return exp(-0.5 * z * z - PK_LOG_ROOT_2PI) / (0.5 * erfc(z * PK_ROOT_HALF));
}

/* Log of the tail beyond z. */
PK_INLINE double pk_log_tail(double z)
{
    if (z > 4.0)
        return -0.5 * z * z - PK_LOG_ROOT_2PI - log(pk_far_hazard(z));
    return z < 0.0 ? log1p(-0.5 * erfc(-z * PK_ROOT_HALF)) : log(0.5 * erfc(z * PK_ROOT_HALF));
}

/* ---- densities and derivatives -------------------------------------------------------------------- */

/* Log of the normal probability between two ends, from the nearer tail. */
PK_INLINE double pk_log_between(double low, double high)
{
    double more = pk_log_tail(low > 0.0 ? low : -high), less = pk_log_tail(low > 0.0 ? high : -low);
    return more + log1p(-exp(less - more));
}

/* Of ratings; those by logistics are looked at in lanes. */
PK_RARE double pk_rating_density(const pk_likelihood *l, double y, double eta)
{
    double low, high;
    if (pk_is_family(l))
        return pk_family_densities(l, pk_all(y), pk_all(eta))[0];
    pk_find_cuts(l, y, eta, &low, &high);
    return pk_log_between(low, high);
}

PK_RARE void pk_rating_derivatives(const pk_likelihood *l, double y, double eta, double *slope, double *curvature)
{
    double low, high;
    if (pk_is_family(l)) {
        pk_look look = pk_look_at_family(l, pk_all(y), pk_all(eta));
        *slope = look.slope[0];
        *curvature = look.curvature[0];
        return;
    }
    pk_find_cuts(l, y, eta, &low, &high);
    double log = PK_LOG_ROOT_2PI + pk_log_between(low, high);
    double below = exp(-0.5 * low * low - log), above = exp(-0.5 * high * high - log);
    double bend = (above > 0.0 ? high * above : 0.0) - (below > 0.0 ? low * below : 0.0);
    *slope = below - above;
    *curvature = fmin(fmax(*slope * *slope + bend, 0.0), 1.0);
}

/* The same three of zeros with a reason of their own; see below. */
PK_RARE double pk_zeros_constant(const pk_likelihood *l, double y);
PK_RARE double pk_zeros_density(const pk_likelihood *l, double y, double eta);
PK_RARE void pk_zeros_derivatives(const pk_likelihood *l, double y, double eta, double *slope, double *curvature);

/* True if the target is eta plus noise. */
PK_INLINE int pk_is_noise(const pk_likelihood *l)
{
    return l->code >= PK_GAUSSIAN && l->code <= PK_KINKED;
}

/* The part of log p(y | eta) that depends on y alone. */
PK_INLINE double pk_log_constant(const pk_likelihood *l, double y)
{
    switch (l->code) {
    case PK_POISSON:
        return -lgamma(y + 1.0);
    case PK_NEGATIVE_BINOMIAL:
        return lgamma(y + 1.0 / l->a) - lgamma(1.0 / l->a) - lgamma(y + 1.0);
    case PK_GAUSSIAN:
        return 0.5 * log(l->a) - PK_LOG_ROOT_2PI;
    case PK_STUDENT_T:
    case PK_KINKED:
        return l->c;
    case PK_RATINGS:
        return pk_log_gap(l, y);
    case PK_LOGIT:
    case PK_PROBIT:
        return 0.0;
    default:
        return l->code > PK_BASE ? pk_zeros_constant(l, y) : pk_family_constants(l, pk_all(y), NULL)[0];
    }
}

/* The rest of it. */
PK_INLINE double pk_log_density(const pk_likelihood *l, double y, double eta)
{
    double off = y - eta;
    switch (l->code) {
    case PK_LOGIT:
        return -pk_log1p_exp(y > 0.5 ? -eta : eta);
    case PK_PROBIT:
        return pk_log_tail(y > 0.5 ? -eta : eta);
    case PK_POISSON:
        return y * eta - exp(eta < PK_LARGEST_LOG ? eta : PK_LARGEST_LOG);
    case PK_NEGATIVE_BINOMIAL: {
        double excess = eta + log(l->a);
        return -y * pk_log1p_exp(-excess) - pk_log1p_exp(excess) / l->a;
    }
    case PK_GAUSSIAN:
        return -0.5 * l->a * off * off;
    case PK_STUDENT_T:
        off /= l->b;
        return -0.5 * (l->a + 1.0) * log1p(off * off / l->a);
    case PK_KINKED:
        return off >= 0.0 ? -l->a * off : l->b * off;
    case PK_RATINGS:
        return pk_rating_density(l, y, eta);
    default:
        return l->code > PK_BASE ? pk_zeros_density(l, y, eta) : pk_family_densities(l, pk_all(y), pk_all(eta))[0];
    }
}

PK_INLINE void pk_derivatives(const pk_likelihood *l, double y, double eta, double *slope, double *curvature)
{
    double sign = y > 0.5 ? 1.0 : -1.0, z = sign * eta;
    switch (l->code) {
    case PK_LOGIT: {
        double e = exp(-fabs(eta)), inverse = 1.0 / (1.0 + e);
        *slope = sign * (z > 0.0 ? e : 1.0) * inverse;
        *curvature = e * inverse * inverse;
        return;
    }
    case PK_PROBIT: {
        double hazard = z < -1e4 ? -z : pk_hazard(-z), bend = hazard * (hazard + z);
        *slope = sign * hazard;
        *curvature = z < -1e4 || bend > 1.0 ? 1.0 : bend < 0.0 ? 0.0 : bend;
        return;
    }
    case PK_POISSON: {
        double rate = exp(eta < PK_LARGEST_LOG ? eta : PK_LARGEST_LOG);
        *slope = y - rate;
        *curvature = rate;
        return;
    }
    case PK_NEGATIVE_BINOMIAL: {
        double excess = eta + log(l->a), e = exp(-fabs(excess)), inverse = 1.0 / (1.0 + e);
        double share = (excess > 0.0 ? 1.0 : e) * inverse, rest = (excess > 0.0 ? e : 1.0) * inverse;
        *slope = y * rest - share / l->a;
        *curvature = (y + 1.0 / l->a) * share * rest;
        return;
    }
    case PK_GAUSSIAN:
        *slope = l->a * (y - eta);
        *curvature = l->a;
        return;
    case PK_RATINGS:
        pk_rating_derivatives(l, y, eta, slope, curvature);
        return;
    case PK_STUDENT_T:
    case PK_KINKED: {
        double off = y - eta, weight = (l->a + 1.0) / (l->a * l->b * l->b + off * off);
        *slope = weight * off;
        *curvature = weight;
        return;
    }
    default: {
        if (l->code > PK_BASE) {
            pk_zeros_derivatives(l, y, eta, slope, curvature);
            return;
        }
        pk_vector slopes, curvatures;
        pk_family_derivatives(l, pk_all(y), pk_all(eta), &slopes, &curvatures);
        *slope = slopes[0];
        *curvature = curvatures[0];
    }
    }
}

/* ---- zeros with a reason of their own ------------------------------------------------------------------- */

PK_INLINE pk_likelihood pk_without_zeros(const pk_likelihood *l)
{
    pk_likelihood base = *l;
    base.code &= PK_BASE;
    return base;
}

/* Log of the probability of 0; amounts have none. */
PK_INLINE double pk_log_none(const pk_likelihood *base, double eta)
{
    int counts = base->code == PK_POISSON || base->code == PK_NEGATIVE_BINOMIAL || base->code == PK_LINEAR_COUNTS;
    return counts ? pk_log_constant(base, 0.0) + pk_log_density(base, 0.0, eta) : -INFINITY;
}

PK_RARE double pk_zeros_constant(const pk_likelihood *l, double y)
{
    pk_likelihood base = pk_without_zeros(l);
    double other = -pk_log1p_exp(l->c);
    if (y == 0.0)
        return l->code & PK_HURDLE ? -pk_log1p_exp(-l->c) : other;
    return other + pk_log_constant(&base, y);
}

PK_RARE double pk_zeros_density(const pk_likelihood *l, double y, double eta)
{
    pk_likelihood base = pk_without_zeros(l);
    int inflated = l->code & PK_INFLATED;
    if (y == 0.0 && !inflated)
        return 0.0;
    if (y > 0.0 && inflated)
        return pk_log_density(&base, y, eta);
    double none = pk_log_none(&base, eta);
    if (inflated)
        return fmax(none, l->c) + log1p(exp(-fabs(none - l->c)));
    /* A count too rare for floats is 1, if it is not 0. */
    double some = none < 0.0 ? log(-expm1(none)) : pk_log_constant(&base, 1.0) + pk_log_density(&base, 1.0, eta);
    return pk_log_density(&base, y, eta) - some;
}

PK_RARE void pk_zeros_derivatives(const pk_likelihood *l, double y, double eta, double *slope, double *curvature)
{
    pk_likelihood base = pk_without_zeros(l);
    int inflated = l->code & PK_INFLATED;
    *slope = *curvature = 0.0;
    if (y == 0.0 && !inflated)
        return;
    pk_derivatives(&base, y, eta, slope, curvature);
    if (y > 0.0 && inflated)
        return;
    double none = pk_log_none(&base, eta), fall, bend;
    if (inflated) { /* which reason it has turns with eta, too */
        double own = pk_sigmoid(none - l->c);
        bend = own * (*curvature - (1.0 - own) * *slope * *slope);
        *slope *= own;
    } else if (none == -INFINITY) {
        return;
    } else if (none < 0.0) { /* the log of 1 - P(0) has slope -odds fall */
        double odds = 1.0 / expm1(-none);
        pk_derivatives(&base, 0.0, eta, &fall, &bend);
        *slope += odds * fall;
        bend = *curvature + odds * bend - odds * (1.0 + odds) * fall * fall;
    } else {
        *slope = y - 1.0;
        bend = 0.0;
    }
    *curvature = fmax(bend, 0.0);
}

/* ---- modes -------------------------------------------------------------------------------------------- */

/* Where to begin: where the count's own rate and the belief meet. */
PK_INLINE double pk_mode_start(const pk_likelihood *l, double y, double mean, double pull)
{
    double known = y + 0.5;
    int code = y > 0.0 ? l->code & PK_BASE : l->code;
    if (code != PK_POISSON && code != PK_NEGATIVE_BINOMIAL)
        return mean;
    if (code == PK_NEGATIVE_BINOMIAL)
        known /= 1.0 + l->a * known;
    known *= pull;
    return known < 1e-3 ? mean : (mean + known * log(y + 0.5)) / (1.0 + known);
}

/* Zero of eta - mean - pull d log p / d eta, pull = weight variance: Newton's method between the ends of a bracket.
 * For log-concave likelihoods the function rises at least as fast as eta does, so that a value tells how far off
 * the zero may be. For others it may be farther: an end where no value was found moves with the place. A step that
 * gains too little is followed by one to the middle. */
PK_INLINE double pk_bracketed_mode(const pk_likelihood *l, double y, double mean, double pull)
{
    /* Beyond these labels and counts have no slope left. */
    double far = l->code == PK_GAUSSIAN ? 1e200 : 1e4, before = INFINITY;
    double place = pk_mode_start(l, y, mean, pull), least = fmin(mean, 0.0) - far, most = fmax(mean, 0.0) + far;
    double below = -INFINITY, above = INFINITY;
    for (int step = 0; step < 400; step++) {
        double slope, curvature;
        pk_derivatives(l, y, place, &slope, &curvature);
        double value = place - mean - pull * slope, rise = 1.0 + pull * curvature;
        if (value == 0.0)
            return place;
        if (value < 0.0)
            below = place;
        else
            above = place;
        double low = below > -INFINITY ? below : fmax(place - value, least);
        double high = above < INFINITY ? above : fmin(place - value, most);
        double next = place - value / rise, size = fabs(value), moved = fabs(next - place), near = 4e-15 * fabs(next);
        /* The next step of Newton's would be the square of this one: below rounding. */
        if (moved <= near || (moved < 1e-9 && size < 1e-8))
            return next;
        if (!(next > low && next < high) || size > 0.5 * before)
            next = 0.5 * (low + high);
        if (high - low <= near)
            return next;
        before = size;
        place = next;
    }
    return place;
}

/* exp(x), x <= 0, in a register: a call of libm's would spill all vectors. */
PK_INLINE double pk_exp_one(double x)
{
    if (!(x > -700.0))
        return 0.0;
    const double shift = 6755399441055744.0;
    double shifted = x * 1.4426950408889634 + shift, k = shifted - shift;
    double r = x - k * 0.69314718036912382 - k * 1.9082149292705877e-10, r2 = r * r, r4 = r2 * r2;
    /* Taylor's series of degree 13, in pairs: half as long a chain as Horner's. */
    double low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0));
    double mid = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
    double top = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0));
    double last = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0);
    union {
        double number;
        unsigned long long bits;
    } power = {shifted};
    power.bits = (power.bits + 1023) << 52;
    return (low + r4 * (mid + r4 * (top + r4 * last))) * power.number;
}

/* log(x) of a positive normal number, in a register. */
PK_INLINE double pk_log_one(double x)
{
    return pk_log((pk_vector){0} + x)[0];
}

/* Mode of sigmoid(z)^weight Normal(z; mean, variance): the zero of z - mean - pull sigmoid(-z), which lies between
 * mean and mean + pull. Halley's method: two steps where pull is small, as it is once anything is known. Newton's
 * and bisection where it is not (pk_bracketed_mode). */
PK_INLINE double pk_logit_mode(double mean, double pull, double near, double *sigmoid)
{
    double z = mean;
    for (int step = 0; step < 6; step++) {
        double e = pk_exp_one(-fabs(z)), inverse = 1.0 / (1.0 + e), no = (z > 0.0 ? e : 1.0) * inverse;
        double yes = (z > 0.0 ? 1.0 : e) * inverse, value = z - mean - pull * no;
        double rise = 1.0 + pull * no * yes, bend = -pull * no * yes * (yes - no);
        double move = -value * rise / (rise * rise - 0.5 * value * bend);
        z += move;
        if (fabs(move) < near) {
            /* With 1e-4 the next move would be below 1e-13: so is what the series of sigmoid(-z) leaves out. */
            double slope = no * yes;
            *sigmoid = no - move * slope * (1.0 - 0.5 * move * ((yes - no) - move / 3.0 * (1.0 - 6.0 * slope)));
            return z;
        }
        if (!(z >= mean && z <= mean + pull))
            break;
    }
    *sigmoid = -1.0;
    return z;
}

/* Fixed point of the scale mixture's weight, from both ends between which all modes lie; the higher one. */
PK_INLINE double pk_student_mode(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    double off = y - mean, squared = l->a * l->b * l->b, pull = weight * variance * (l->a + 1.0), best = -INFINITY, mode = y;
    for (int end = 0; end < 2; end++) {
        double left = end ? off : 0.0;
        for (int step = 0; step < 100; step++) {
            double next = off / (1.0 + pull / (squared + left * left)), moved = fabs(next - left);
            left = next;
            if (moved <= 1e-15 * fabs(next))
                break;
        }
        double away = off == left ? 0.0 : (off - left) * (off - left) / variance;
        double height = -0.5 * (l->a + 1.0) * weight * log1p(left * left / squared) - 0.5 * away;
        if (height > best) {
            best = height;
            mode = y - left;
        }
    }
    return mode;
}

/* The mode of likelihood^weight times Normal(mean, variance), and the derivatives there. */
PK_INLINE double pk_mode(const pk_likelihood *l, double y, double mean, double variance, double weight, double *slope,
                         double *curvature)
{
    double mode;
    if (l->code == PK_STUDENT_T)
        mode = pk_student_mode(l, y, mean, variance, weight);
    else
        mode = pk_bracketed_mode(l, y, mean, weight * variance);
    pk_derivatives(l, y, mode, slope, curvature);
    return mode;
}

#endif
