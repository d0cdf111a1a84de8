/* The noises of members, each followed at several memories at once: a lane of every vector is a member. */
#ifndef POSTERITY_NOISE_H
#define POSTERITY_NOISE_H

#include "posterity_average.h"

enum { PK_MEMORIES = 8 };

/* Memory l multiplies what it holds by rates[l] at every row. The state (3 memories + 1, lanes) has sums of squared errors
 * of each memory, then sums of their weights, then discounted sums of log densities; last, what weight was ever seen. */
typedef struct {
    ptrdiff_t memories, lanes;    /* lanes: a multiple of PK_LINE; without memories the noise is 1 */
    double *state;
    double rates[PK_MEMORIES];
    double caps[PK_MEMORIES];     /* a squared error counts for at most so many variances */
    double grace, persistence;    /* until more weight than grace was seen nothing is capped; of the scores */
    double prior_count, prior_sum;
} pk_noises;

/* What each memory of a noise tells of it before a row: an inverse-gamma distribution of its variance. */
typedef struct {
    pk_vector variance[PK_MEMORIES], inverse_df[PK_MEMORIES], inverse_sum[PK_MEMORIES], log_variance[PK_MEMORIES];
    pk_vector least, fewest;      /* variance, degrees of freedom */
    pk_integers known;            /* whether all memories tell something */
} pk_noise_now;

PK_INLINE pk_vector pk_min(pk_vector a, pk_vector b)
{
    return -pk_max(-a, -b);
}

PK_INLINE int pk_any(pk_integers condition)
{
    long long any = condition[0];
    for (int l = 1; l < PK_LANES; l++)
        any |= condition[l];
    return any != 0;
}

PK_INLINE pk_vector *pk_of_noise(const pk_noises *s, ptrdiff_t part, ptrdiff_t memory, ptrdiff_t v)
{
    return (pk_vector *)(s->state + (part * s->memories + memory) * s->lanes + v);
}

PK_INLINE void pk_read_noise(const pk_noises *s, ptrdiff_t v, pk_noise_now *now)
{
    now->known = (pk_integers){0} - 1;
    now->least = now->fewest = (pk_vector){0} + 1e300;
    for (ptrdiff_t l = 0; l < s->memories; l++) {
        pk_vector sum = *pk_of_noise(s, 0, l, v) + s->prior_sum, df = *pk_of_noise(s, 1, l, v) + s->prior_count;
        pk_vector inverse = 1.0 / (df * sum), variance = sum * (sum * inverse);
        now->inverse_df[l] = sum * inverse;
        now->inverse_sum[l] = df * inverse;
        now->variance[l] = variance;
        now->known &= (df > 0.0) & (variance > 1e-290) & (variance < 1e290);
        now->least = pk_min(now->least, variance);
        now->fewest = pk_min(now->fewest, df);
    }
}

/* One inverse-gamma distribution for the memories' mixture, as degrees of freedom and variance: by the mean and variance
 * of the logarithm, which for v degrees of freedom are log(variance) + 1 / v and 2 / v, but with no fewer degrees of
 * freedom than the shortest memory's. */
PK_INLINE void pk_match_noise(const pk_noises *s, ptrdiff_t v, const pk_noise_now *now, pk_vector *df, pk_vector *variance)
{
    pk_vector share[PK_MEMORIES], total = {0}, mean = {0}, bias = {0}, spread = {0}, most = total - 1e300;
    for (ptrdiff_t l = 0; l < s->memories; l++)
        most = pk_max(most, *pk_of_noise(s, 2, l, v));
    for (ptrdiff_t l = 0; l < s->memories; l++) {
        share[l] = pk_exp(*pk_of_noise(s, 2, l, v) - most);
        total += share[l];
        mean += share[l] * now->log_variance[l];
        bias += share[l] * now->inverse_df[l];
    }
    pk_vector inverse = 1.0 / total, centre = mean * inverse;
    for (ptrdiff_t l = 0; l < s->memories; l++) {
        pk_vector off = now->log_variance[l] - centre;
        spread += share[l] * (off * off + 2.0 * now->inverse_df[l]);
    }
    *df = pk_max(2.0 * total / spread, now->fewest);
    *variance = now->least * pk_exp(pk_min(centre + bias * inverse - 1.0 / *df, (pk_vector){0} + 700.0));
}

/* Scores after an error of which `surprise` has log(1 + square / (degrees of freedom variance)) under each memory, whose log
 * density is, but for what all have in common, that of t; log Gamma(x + 1/2) - log Gamma(x) - log(x) / 2 is three terms of
 * its series, x >= 1. */
PK_INLINE void pk_score_noise(const pk_noises *s, ptrdiff_t v, const pk_noise_now *now, const pk_vector *surprise,
                              double weight, pk_integers judges)
{
    pk_vector score[PK_MEMORIES], most = (pk_vector){0} - 1e300;
    for (ptrdiff_t l = 0; l < s->memories; l++) {
        pk_vector inverse = 2.0 * now->inverse_df[l], square = inverse * inverse;
        pk_vector gammas = inverse * (square * (1.0 / 192.0 - square * (1.0 / 640.0)) - 0.125);
        pk_vector df = *pk_of_noise(s, 1, l, v) + s->prior_count;
        pk_vector log_density = gammas - 0.5 * now->log_variance[l] - (0.5 * df + 0.5) * surprise[l];
        score[l] = s->persistence * *pk_of_noise(s, 2, l, v) + weight * pk_max(log_density, (pk_vector){0} - 1e4);
        most = pk_max(most, score[l]);
    }
    for (ptrdiff_t l = 0; l < s->memories; l++)
        *pk_of_noise(s, 2, l, v) = pk_choose(score[l] - most, *pk_of_noise(s, 2, l, v), judges);
}

/* A squared error of this weight is learned by every memory, capped or not. */
PK_INLINE void pk_learn_noise(const pk_noises *s, ptrdiff_t v, const pk_noise_now *now, pk_vector square, double weight,
                              pk_integers learns)
{
    pk_vector *seen = pk_of_noise(s, 3, 0, v);
    pk_integers capped = now->known & (*seen > s->grace);
    for (ptrdiff_t l = 0; l < s->memories; l++) {
        pk_vector *sum = pk_of_noise(s, 0, l, v), *count = pk_of_noise(s, 1, l, v);
        pk_vector squares = pk_choose(pk_min(square, s->caps[l] * now->variance[l]), square, capped);
        double kept = s->rates[l], gain = 1.0;
        if (weight != 1.0) { /* as many copies of the row, of the same error each */
            kept = pow(s->rates[l], weight);
            gain = (1.0 - kept) / (1.0 - s->rates[l]);
        }
        *sum = pk_choose(kept * *sum + gain * squares, *sum, learns);
        *count = pk_choose(kept * *count + gain, *count, learns);
    }
    *seen = pk_choose(*seen + weight, *seen, learns);
}

/* Degrees of freedom and variance of the noises of members v, v + 1, ... before a row of this weight, whose errors are
 * predicted with variances spread times the noise's. Rows of weight 0 and of infinite spread teach nothing. */
PK_INLINE void pk_track_noises(const pk_noises *s, ptrdiff_t v, pk_vector error, pk_vector spread, double weight,
                               pk_vector *df, pk_vector *variance)
{
    pk_noise_now now;
    pk_vector surprise[PK_MEMORIES], square = error * error, relative = square / spread;
    pk_read_noise(s, v, &now);
    for (ptrdiff_t l = 0; l < s->memories; l++) {
        now.log_variance[l] = pk_log(now.variance[l] / now.least);
        surprise[l] = pk_log(1.0 + pk_min(relative * now.inverse_sum[l], (pk_vector){0} + 1e300));
    }
    pk_match_noise(s, v, &now, df, variance);
    if (pk_any(~now.known)) {
        pk_vector first = *pk_of_noise(s, 1, 0, v) + s->prior_count, sum = *pk_of_noise(s, 0, 0, v) + s->prior_sum;
        *df = pk_choose(*df, first, now.known);
        *variance = pk_choose(*variance, pk_choose(sum / first, (pk_vector){0} + INFINITY, first > 0.0), now.known);
    }
    pk_integers learns = spread < INFINITY;
    if (!(weight > 0.0))
        return;
    pk_score_noise(s, v, &now, surprise, weight, learns & now.known & (now.fewest > 2.0));
    pk_learn_noise(s, v, &now, square / (1.0 + weight * (spread - 1.0)), weight, learns);
}

#endif
