/* Intervals that learn from their misses: scores of rows, and recursions for the bounds of scores.
 *
 * A score says where a target fell, in the model's own terms: Normal(0, 1) if the model is right. A bound is what
 * a score exceeds with a wanted probability, its tail. Each of L levels has two bounds, kept as those of -score
 * (side 0) and of score (side 1). Rows without a score (NaN) get bounds, and nothing is learned from them. */
#ifndef POSTERITY_CALIBRATION_H
#define POSTERITY_CALIBRATION_H

#include "posterity_rows.h"

#define PK_MOST_LEVELS 32
#define PK_MOST_EXPERTS 16

/* ---- scores ------------------------------------------------------------------------------ */

/* sqrt(log(1 + x) / x) */
PK_INLINE double pk_root_log_ratio(double x)
{
    if (PK_UNLIKELY(x > 0.02))
        return sqrt(log1p(x) / x);
    double series = 1.0 / 8.0;
    for (int k = 7; k > 0; k--)
        series = 1.0 / k - x * series;
    return sqrt(series);
}

/* What in Normal(0, 1) lies where z lies in Student-t with df degrees of freedom (Wallace 1959): within 0.06 of the
 * true value for |z| <= 6 and df >= 3, with an inverse in closed form, and z itself as df grows. */
PK_INLINE double pk_normal_score(double z, double df)
{
    return z * (8.0 * df + 1.0) / (8.0 * df + 3.0) * pk_root_log_ratio(z * z / df);
}

/* scores (n); the strides are 1, or 0 where all rows share a value; df and weights may be NULL. */
static void pk_normal_scores(ptrdiff_t n, const double *y, const double *loc, ptrdiff_t loc_stride, const double *scale,
                             ptrdiff_t scale_stride, const double *df, ptrdiff_t df_stride, const double *weights,
                             double *scores)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double spread = scale[i * scale_stride], z = (y[i] - loc[i * loc_stride]) / spread;
        int known = spread > 0.0 && spread < INFINITY && fabs(z) < 1e150;
        if (df) {
            double freedom = df[i * df_stride];
            known &= freedom > 0.0;
            if (freedom < INFINITY)
                z = pk_normal_score(z, freedom);
        }
        if (weights)
            known &= weights[i] > 0.0;
        scores[i] = known ? z : NAN;
    }
}

/* sqrt((exp(x) - 1) / x) */
PK_INLINE double pk_root_exp_ratio(double x)
{
    if (PK_UNLIKELY(x > 0.02))
        return sqrt(expm1(x) / x);
    double series = 1.0;
    for (int k = 7; k > 1; k--)
        series = 1.0 + x / k * series;
    return sqrt(series);
}

/* The inverse of pk_normal_scores: targets (n) at scores that lie `stride` apart, 0 where all rows share one. */
static void pk_targets_at(ptrdiff_t n, const double *scores, ptrdiff_t stride, const double *loc, ptrdiff_t loc_stride,
                          const double *scale, ptrdiff_t scale_stride, const double *df, ptrdiff_t df_stride,
                          double *targets)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double z = scores[i * stride];
        if (df && df[i * df_stride] < INFINITY) {
            double freedom = df[i * df_stride];
            z *= (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
            z *= pk_root_exp_ratio(fmin(z * z / freedom, 600.0));
        }
        targets[i] = loc[i * loc_stride] + scale[i * scale_stride] * z;
    }
}

/* ---- bounds to tell ---------------------------------------------------------------------- */

/* A wider level is nowhere inside a narrower one, and no interval is less than a point: bounds (2, L) from the
 * narrowest level to the widest, in place. */
PK_INLINE void pk_make_levels_nested(double *bounds, ptrdiff_t levels)
{
    double *below = bounds, *above = bounds + levels;
    if (PK_UNLIKELY(above[0] < -below[0])) {
        double middle = 0.5 * (above[0] - below[0]);
        above[0] = middle;
        below[0] = -middle;
    }
    for (ptrdiff_t l = 1; l < levels; l++) {
        below[l] = below[l] > below[l - 1] ? below[l] : below[l - 1];
        above[l] = above[l] > above[l - 1] ? above[l] : above[l - 1];
    }
}

/* ends (2, L): lower and upper ends, from bounds in units of scale. */
PK_INLINE void pk_write_bounds(double *ends, const double *bounds, double scale, ptrdiff_t levels)
{
    for (ptrdiff_t l = 0; l < levels; l++) {
        ends[l] = -scale * bounds[l];
        ends[levels + l] = scale * bounds[levels + l];
    }
}

/* ---- tracking: conformal PID ------------------------------------------------------------- */

typedef struct {
    ptrdiff_t levels;
    const double *tails, *steps; /* (L) wanted probability of a miss on a side; move of a bound for one miss */
    double gain, saturation;     /* of the integrator; no integrator where gain is 0 */
    double forgetting_rate;             /* share of the scale that each row replaces, in the long run */
    double *bounds, *integrals;  /* (2, L) in units of the scale; sums of misses less their tails */
    double *scale;               /* (3): typical size of recent scores, rows it rests on, rows learned */
} pk_tracks;

#define PK_ROOT_HALF_PI 1.2533141373155003 /* sd / mean absolute value of Normal(0, 1) */
#define PK_MOST_OF_SCALE 8.0               /* a score counts as at most so many scales: one outlier is one row */
#define PK_LEAST_SCALE 1e-4

PK_INLINE void pk_follow_scale(double *scale, double score, double forgetting_rate)
{
    double size = PK_ROOT_HALF_PI * fabs(score), most = PK_MOST_OF_SCALE * scale[0];
    double share = 1.0 / (scale[1] + 1.0);
    if (share < forgetting_rate)
        share = forgetting_rate;
    else
        scale[1] += 1.0;
    scale[0] += share * ((size < most ? size : most) - scale[0]);
    if (scale[0] < PK_LEAST_SCALE)
        scale[0] = PK_LEAST_SCALE;
}

/* Angelopoulos, Candes and Tibshirani (2023): the integrator saturates as tan does (their eq. 7). */
PK_RARE double pk_integrated(double integral, double rows, const pk_tracks *tracks)
{
    double x = integral * log(rows + 1.0) / (tracks->saturation * (rows + 1.0));
    return tracks->gain * tan(fmin(fmax(x, -1.5), 1.5));
}

/* ends (n, 2, L) or NULL: ends for each score before it was learned. */
static void pk_track(ptrdiff_t n, const double *scores, const pk_tracks *tracks, double *ends)
{
    ptrdiff_t levels = tracks->levels, both = 2 * levels;
    double now[2 * PK_MOST_LEVELS];
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t l = 0; l < both; l++)
            now[l] = tracks->bounds[l];
        if (tracks->gain != 0.0)
            for (ptrdiff_t l = 0; l < both; l++)
                now[l] += pk_integrated(tracks->integrals[l], tracks->scale[2], tracks);
        pk_make_levels_nested(now, levels);
        if (ends)
            pk_write_bounds(ends + i * both, now, tracks->scale[0], levels);
        double score = scores[i];
        if (PK_UNLIKELY(score != score))
            continue;
        double relative = score / tracks->scale[0];
        for (ptrdiff_t side = 0; side < 2; side++) {
            double x = side ? relative : -relative;
            double *bounds = tracks->bounds + side * levels, *integrals = tracks->integrals + side * levels;
            for (ptrdiff_t l = 0; l < levels; l++) {
                double excess = (x > now[side * levels + l] ? 1.0 : 0.0) - tracks->tails[l];
                bounds[l] += tracks->steps[l] * excess;
                integrals[l] += excess;
            }
        }
        pk_follow_scale(tracks->scale, score, tracks->forgetting_rate);
        tracks->scale[2] += 1.0;
    }
}

/* ---- adaptive conformal inference -------------------------------------------------------- */

typedef struct {
    ptrdiff_t levels, experts, capacity;
    const double *tails, *rates, *temperatures; /* (L), (K) in units of the tail, (L) */
    double share;                               /* of the weights that is spread evenly after each row */
    double *aims, *weights;                     /* (2, L, K) tails aimed at, and standing of the experts */
    double *sorted, *recent;                    /* (capacity) the last scores by size, and as they came */
    long long *count;                           /* (2): scores held, place of the oldest once full */
} pk_tails;

/* How many of the m values are below x. */
PK_INLINE ptrdiff_t pk_rank(const double *sorted, ptrdiff_t m, double x)
{
    const double *base = sorted;
    while (m > 1) {
        ptrdiff_t half = m / 2;
        base += base[half - 1] < x ? half : 0;
        m -= half;
    }
    return (base - sorted) + (m == 1 && *base < x);
}

/* The score of rank k = 1..m from the outside in, on a side: largest first comes rank m. */
PK_INLINE double pk_score_of_rank(const double *sorted, ptrdiff_t m, ptrdiff_t k, ptrdiff_t side)
{
    return side ? sorted[k - 1] : -sorted[m - k];
}

/* What scores exceed with probability `aim`: interpolated (Weibull 1939: rank (1 - aim)(m + 1)); beyond the largest
 * it grows from the median in proportion to how much less than `tail` is aimed at, so that it never is infinite. */
PK_INLINE double pk_tail_bound(const double *sorted, ptrdiff_t m, double aim, double tail, ptrdiff_t side)
{
    double rank = (1.0 - aim) * (double)(m + 1);
    if (PK_UNLIKELY(rank >= (double)m)) {
        double most = pk_score_of_rank(sorted, m, m, side), median = pk_score_of_rank(sorted, m, m / 2 + 1, side);
        return most + (most - median) * (rank - (double)m) / ((double)(m + 1) * tail);
    }
    ptrdiff_t k = (ptrdiff_t)rank;
    if (k < 1)
        return pk_score_of_rank(sorted, m, 1, side);
    double lower = pk_score_of_rank(sorted, m, k, side);
    return lower + (rank - (double)k) * (pk_score_of_rank(sorted, m, k + 1, side) - lower);
}

/* The inverse: the largest aim whose bound holds x. */
PK_INLINE double pk_tail_of(const double *sorted, ptrdiff_t m, double x, double tail, ptrdiff_t side)
{
    double most = pk_score_of_rank(sorted, m, m, side), rank;
    if (x > most) {
        double spread = most - pk_score_of_rank(sorted, m, m / 2 + 1, side);
        rank = spread > 0.0 ? (double)m + (x - most) / spread * (double)(m + 1) * tail : INFINITY;
        return 1.0 - rank / (double)(m + 1);
    }
    ptrdiff_t lo = 0, hi = m; /* ranks below x: lo of them are, hi are not */
    while (hi > lo) {
        ptrdiff_t middle = (lo + hi) / 2;
        if (pk_score_of_rank(sorted, m, middle + 1, side) < x)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == 0)
        return 1.0;
    double below = pk_score_of_rank(sorted, m, lo, side), gap = pk_score_of_rank(sorted, m, lo + 1, side) - below;
    rank = (double)lo + (x - below) / gap;
    return 1.0 - rank / (double)(m + 1);
}

/* Put a score into the window, where the oldest makes room once it is full. */
PK_INLINE void pk_store_score(const pk_tails *tails, double score)
{
    double *sorted = tails->sorted;
    ptrdiff_t m = (ptrdiff_t)tails->count[0], place = m;
    if (m == tails->capacity) {
        place = (ptrdiff_t)tails->count[1];
        tails->count[1] = (place + 1) % m;
        m--;
        ptrdiff_t gone = pk_rank(sorted, m + 1, tails->recent[place]);
        gone = gone < m ? gone : m;
        memmove(sorted + gone, sorted + gone + 1, (size_t)(m - gone) * sizeof(double));
    } else {
        tails->count[0] = m + 1;
    }
    ptrdiff_t at = m ? pk_rank(sorted, m, score) : 0;
    memmove(sorted + at + 1, sorted + at, (size_t)(m - at) * sizeof(double));
    sorted[at] = score;
    tails->recent[place] = score;
}

PK_INLINE double pk_average_aim(const pk_tails *tails, ptrdiff_t at)
{
    double sum = 0.0;
    for (ptrdiff_t k = 0; k < tails->experts; k++)
        sum += tails->weights[at + k] * tails->aims[at + k];
    return sum;
}

/* Gibbs and Candes (2024), algorithm 1: `reached` is the tail whose bound the score just touches. */
PK_INLINE void pk_weight_experts(const pk_tails *tails, ptrdiff_t at, double reached, double tail, double temperature)
{
    double *weights = tails->weights + at, sum = 0.0;
    for (ptrdiff_t k = 0; k < tails->experts; k++) {
        double u = reached - tails->aims[at + k], loss = u >= 0.0 ? tail * u : (tail - 1.0) * u;
        weights[k] *= exp(-temperature * fmin(loss, 1.0));
        sum += weights[k];
    }
    for (ptrdiff_t k = 0; k < tails->experts; k++)
        weights[k] = (1.0 - tails->share) * weights[k] / sum + tails->share / (double)tails->experts;
}

/* Gibbs and Candes (2021), eq. 2, for each side: aim += gamma (tail - miss), gamma = rate tail; at most 1. */
PK_INLINE void pk_update_aims(const pk_tails *tails, double score, const double *now)
{
    ptrdiff_t m = (ptrdiff_t)tails->count[0], levels = tails->levels, experts = tails->experts;
    for (ptrdiff_t side = 0; side < 2; side++) {
        for (ptrdiff_t l = 0; l < levels; l++) {
            double tail = tails->tails[l], x = side ? score : -score, reached = 0.0;
            ptrdiff_t at = (side * levels + l) * experts;
            if (experts > 1) {
                reached = pk_tail_of(tails->sorted, m, x, tail, side);
                pk_weight_experts(tails, at, reached, tail, tails->temperatures[l]);
            }
            for (ptrdiff_t k = 0; k < experts; k++) {
                double *aim = tails->aims + at + k;
                int miss = experts > 1 ? reached < *aim : x > now[side * levels + l];
                *aim = fmin(*aim + tails->rates[k] * tail * (tail - miss), 1.0);
            }
        }
    }
}

/* ends (n, 2, L) or NULL: ends for each score before it was learned. At least two scores are held. */
static void pk_adapt(ptrdiff_t n, const double *scores, const pk_tails *tails, double *ends)
{
    ptrdiff_t levels = tails->levels;
    double now[2 * PK_MOST_LEVELS];
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t m = (ptrdiff_t)tails->count[0];
        for (ptrdiff_t side = 0; side < 2; side++)
            for (ptrdiff_t l = 0; l < levels; l++) {
                double aim = pk_average_aim(tails, (side * levels + l) * tails->experts);
                now[side * levels + l] = pk_tail_bound(tails->sorted, m, aim, tails->tails[l], side);
            }
        pk_make_levels_nested(now, levels);
        if (ends)
            pk_write_bounds(ends + i * 2 * levels, now, 1.0, levels);
        if (PK_UNLIKELY(scores[i] != scores[i]))
            continue;
        pk_update_aims(tails, scores[i], now);
        pk_store_score(tails, scores[i]);
    }
}

#endif
