/* The noises of members side by side, as pk_track_noise follows each, and what members then tell of rows. A lane is a
 * member. See posterity_noise.h. */
#ifndef POSTERITY_NOISE_LANES_H
#define POSTERITY_NOISE_LANES_H

#include "posterity_members.h"

/* As pk_noise, of the members in lanes: what they share is in `common`, of which only settings are used. */
typedef struct {
    pk_vector sums[PK_MEMORIES], counts[PK_MEMORIES], scores[PK_MEMORIES], seen;
    pk_noise common;
} pk_noises;

PK_INLINE int pk_everywhere(pk_integers condition)
{
    long long all = condition[0];
    for (int l = 1; l < PK_LANES; l++)
        all &= condition[l];
    return all != 0;
}

PK_INLINE int pk_anywhere(pk_integers condition)
{
    long long any = condition[0];
    for (int l = 1; l < PK_LANES; l++)
        any |= condition[l];
    return any != 0;
}

/* Noises of members, at most PK_LANES, into lanes; those beyond are copies of the first. */
static void pk_open_noises(pk_noises *s, const pk_noise *each, ptrdiff_t members)
{
    s->common = each[0];
    for (ptrdiff_t m = 0; m < PK_LANES; m++) {
        const pk_noise *one = each + (m < members ? m : 0);
        for (ptrdiff_t l = 0; l < PK_MEMORIES; l++) {
            s->sums[l][m] = one->sums[l];
            s->counts[l][m] = one->counts[l];
            s->scores[l][m] = one->scores[l];
        }
        s->seen[m] = one->seen;
    }
}

static void pk_close_noises(const pk_noises *s, pk_noise *each, ptrdiff_t members)
{
    for (ptrdiff_t m = 0; m < members; m++) {
        for (ptrdiff_t l = 0; l < PK_MEMORIES; l++) {
            each[m].sums[l] = s->sums[l][m];
            each[m].counts[l] = s->counts[l][m];
            each[m].scores[l] = s->scores[l][m];
        }
        each[m].seen = s->seen[m];
    }
}

/* x = 2^k m and m - 1, m + 1 in every lane, sqrt(1/2) <= m < sqrt(2); where k is 0, m - 1 is `beyond`, x - 1. */
PK_INLINE pk_vector pk_split(pk_vector x, pk_vector beyond, pk_vector *below, pk_vector *above)
{
    const pk_integers root_half = (pk_integers){0} + 0x3fe6a09e667f3bcdLL;
    pk_integers bits = (pk_integers)x, power = (bits - root_half) >> 52;
    pk_vector m = (pk_vector)((pk_bits)bits - ((pk_bits)power << 52));
    *below = pk_choose(beyond, m - 1.0, power == 0);
    *above = m + 1.0;
    return (pk_vector)((power + 0x4338000000000000LL)) - 6755399441055744.0;
}

/* k log 2 + 2 artanh(t), as in pk_log. */
PK_INLINE pk_vector pk_join(pk_vector k, pk_vector t)
{
    pk_vector square = t * t, sum = square * (1.0 / 21.0);
    const double inverse_odds[] = {1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0,
                                   1.0 / 9.0,  1.0 / 7.0,  1.0 / 5.0,  1.0 / 3.0};
    for (int i = 0; i < 9; i++)
        sum = (sum + inverse_odds[i]) * square;
    return k * 0.69314718036912382 + (2.0 * t + (2.0 * t * sum + k * 1.9082149292705877e-10));
}

/* log(x) and log(1 + u), u >= 0, of positive normal numbers by one division. */
PK_INLINE void pk_two_logs(pk_vector x, pk_vector u, pk_vector *log_x, pk_vector *log_1_u)
{
    pk_vector below[2], above[2], k[2];
    k[0] = pk_split(x, x - 1.0, &below[0], &above[0]);
    k[1] = pk_split(1.0 + u, u, &below[1], &above[1]);
    pk_vector inverse = 1.0 / (above[0] * above[1]);
    *log_x = pk_join(k[0], below[0] * above[1] * inverse);
    *log_1_u = pk_join(k[1], below[1] * above[0] * inverse);
}

/* pk_match_noise of every lane, given each memory's log(variance / least) and 1 / residual_df. */
PK_INLINE void pk_match_noises(const pk_noises *s, const pk_vector *inverse, const pk_vector *logs, pk_vector least,
                               pk_vector fewest, pk_vector *df, pk_vector *variance)
{
    pk_vector share[PK_MEMORIES], most = s->scores[0], total = {0}, mean = {0}, bias = {0}, spread = {0};
    ptrdiff_t memories = s->common.memories;
    for (ptrdiff_t l = 1; l < memories; l++)
        most = pk_larger(most, s->scores[l]);
    for (ptrdiff_t l = 0; l < memories; l++) {
        share[l] = pk_exp(s->scores[l] - most);
        total += share[l];
        mean += share[l] * logs[l];
        bias += share[l] * inverse[l];
    }
    pk_vector whole = 1.0 / total, centre = mean * whole;
    for (ptrdiff_t l = 0; l < memories; l++)
        spread += share[l] * ((logs[l] - centre) * (logs[l] - centre) + 2.0 * inverse[l]);
    *df = pk_larger(2.0 * total / spread, fewest);
    *variance = least * pk_exp(-pk_larger(-(centre + bias * whole - 1.0 / *df), (pk_vector){0} - 700.0));
}

/* The noise before one row, which is then learned: df and variance of each lane. */
PK_INLINE void pk_track_noises(pk_noises *s, pk_vector error, pk_vector spread, double weight, pk_vector *df,
                               pk_vector *variance)
{
    const pk_vector zero = {0};
    pk_vector inverse[PK_MEMORIES], variances[PK_MEMORIES], logs[PK_MEMORIES], told[PK_MEMORIES];
    ptrdiff_t memories = s->common.memories;
    pk_vector least = zero + INFINITY, most = -least, fewest = least, square = error * error, relative = square / spread;
    for (ptrdiff_t l = 0; l < memories; l++) {
        pk_vector residual_df = s->counts[l] + s->common.prior_count;
        inverse[l] = 1.0 / residual_df;
        variances[l] = (s->sums[l] + s->common.prior_sum) * inverse[l];
        least = -pk_larger(-least, -variances[l]);
        most = pk_larger(most, variances[l]);
        fewest = -pk_larger(-fewest, -residual_df);
    }
    pk_integers known = (fewest > 0.0) & (least > 1e-290) & (most < 1e290);
    pk_vector one_by_least = 1.0 / least;
    for (ptrdiff_t l = 0; l < memories; l++) {
        pk_vector x = 0.5 * (s->counts[l] + s->common.prior_count), half = 2.0 * inverse[l], squared = half * half;
        pk_vector q = relative / (s->sums[l] + s->common.prior_sum), surprise;
        pk_two_logs(variances[l] * one_by_least, -pk_larger(-q, zero - 1e300), &logs[l], &surprise);
        pk_vector gammas = half * (squared * (1.0 / 192.0 - squared * (1.0 / 640.0)) - 0.125);
        told[l] = pk_larger(gammas - 0.5 * logs[l] - (x + 0.5) * surprise, zero - 1e4);
    }
    pk_match_noises(s, inverse, logs, least, fewest, df, variance);
    if (pk_anywhere(~known)) {
        pk_vector residual_df = s->counts[0] + s->common.prior_count;
        *variance = pk_choose(*variance, pk_choose(variances[0], zero + INFINITY, residual_df > 0.0), known);
        *df = pk_choose(*df, residual_df, known);
    }
    pk_integers teaches = spread < INFINITY;
    if (!(weight > 0.0) || !pk_anywhere(teaches))
        return;
    pk_integers scored = teaches & known & (fewest > 2.0), capped = known & (s->seen > s->common.grace);
    pk_vector best = zero - 1e300, surprise = square / (1.0 + weight * (spread - 1.0));
    for (ptrdiff_t l = 0; l < memories; l++) {
        told[l] = s->common.persistence * s->scores[l] + weight * told[l];
        best = pk_larger(best, told[l]);
    }
    for (ptrdiff_t l = 0; l < memories; l++) {
        double rate = s->common.rates[l], kept = rate, gain = 1.0;
        if (weight != 1.0) { /* as many copies of the row, of the same error each */
            kept = pow(rate, weight);
            gain = (1.0 - kept) / (1.0 - rate);
        }
        pk_vector least_of = -pk_larger(-surprise, -(s->common.caps[l] * variances[l]));
        pk_vector squares = pk_choose(least_of, surprise, capped);
        s->scores[l] = pk_choose(told[l] - best, s->scores[l], scored);
        s->counts[l] = pk_choose(kept * s->counts[l] + gain, s->counts[l], teaches);
        s->sums[l] = pk_choose(kept * s->sums[l] + gain * squares, s->sums[l], teaches);
    }
    s->seen = pk_choose(s->seen + weight, s->seen, teaches);
}

/* pk_log_t of every lane, scale^2 = spread, where no lane is out of the ordinary: 0.5 < v < 1e12, spread and error^2
 * within 1e-100 and 1e100. log Gamma(x + 1/2) - log Gamma(x) - log(x) / 2 of x = v / 2 is a series from x = 16 on; below
 * it is that of x + 16 and a product of what lies between. */
PK_INLINE pk_vector pk_log_t_lanes(pk_vector error, pk_vector v, pk_vector spread)
{
    const pk_vector one = (pk_vector){0} + 1.0;
    pk_vector x = 0.5 * v, above = one, below = one, at = x, log_ratio, log_1_u;
    pk_integers small = x < 16.0;
    if (pk_anywhere(small)) {
        pk_vector from = pk_choose(x, one, small);
        for (int i = 0; i < 16; i++) {
            above *= from + ((double)i + 0.5);
            below *= from + (double)i;
        }
        above = pk_choose(above, one, small);
        below = pk_choose(below, one, small);
        at = pk_choose(x + 16.0, x, small);
    }
    pk_vector wide = above * above * v * spread, inverse = 1.0 / (at * wide);
    pk_vector by_at = inverse * wide, by_wide = inverse * at, square = by_at * by_at;
    pk_vector series = 1.0 / 640.0 - square * (17.0 / 14336.0 - square * (31.0 / 18432.0));
    series = -by_at * (0.125 - square * (1.0 / 192.0 - square * series));
    pk_two_logs(at * below * below * by_wide, error * error * above * above * by_wide, &log_ratio, &log_1_u);
    pk_vector told = series + 0.5 * log_ratio - 0.57236494292470008707 - (x + 0.5) * log_1_u;
    return pk_larger(told, (pk_vector){0} - PK_MOST_TELLING);
}

/* What members tell of n rows, given error and leverage (n, lanes) of each: written to row i of arrays (members, n) from
 * `first` on. y (n), weights (n) or NULL. loc, scale and df are those of a Student-t, densities log densities of the
 * targets times their weights, ranks as in pk_average. */
typedef struct {
    double *loc, *scale, *df, *densities;
    unsigned char *ranks;
} pk_predictions_out;

static void pk_tell_by_noises(pk_noises *s, ptrdiff_t members, ptrdiff_t n, const double *error, const double *leverage,
                              ptrdiff_t lanes, const double *y, const double *weights, const pk_predictions_out *told)
{
    const pk_vector zero = {0};
    for (ptrdiff_t i = 0; i < n; i++) {
        pk_vector e = *(const pk_vector *)(error + i * lanes), spread = 1.0 + *(const pk_vector *)(leverage + i * lanes);
        double weight = weights ? weights[i] : 1.0;
        pk_vector df, variance, square = e * e;
        pk_track_noises(s, e, spread, weight, &df, &variance);
        pk_vector wide = spread * variance, scale = pk_each_root(wide), density = zero;
        pk_integers plain = (wide > 1e-100) & (wide < 1e100) & (df > 2.0) & (df < 1e12) & (square < 1e100);
        if (pk_everywhere(plain)) {
            density = weight * pk_log_t_lanes(e, df, wide);
        } else {
            for (ptrdiff_t l = 0; l < PK_LANES; l++) {
                double root = sqrt(spread[l]) * sqrt(variance[l]);
                scale[l] = isnan(root) ? INFINITY : root;
                density[l] = weight * pk_log_t(e[l], df[l], scale[l]);
            }
        }
        for (ptrdiff_t l = 0; l < members && l < PK_LANES; l++) {
            ptrdiff_t at = l * n + i;
            told->loc[at] = y[i] - e[l];
            told->scale[at] = scale[l];
            told->df[at] = df[l];
            told->densities[at] = density[l];
            told->ranks[at] = pk_rank(df[l], scale[l]);
        }
    }
}

#endif
