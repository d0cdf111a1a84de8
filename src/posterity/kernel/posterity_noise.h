/* The noise of one member, followed at several memories at once. */
#ifndef POSTERITY_NOISE_H
#define POSTERITY_NOISE_H

#include "posterity_average.h"

/* A noise is followed by up to PK_LANES memories: lane l multiplies what it holds by rates[l] at every row. Lanes
 * beyond the memories are copies of the first, and do not count. */
typedef struct {
    ptrdiff_t memories;
    double rates[PK_LANES];
    double caps[PK_LANES];        /* a squared error counts for at most so many variances */
    double sums[PK_LANES];        /* of squared errors */
    double counts[PK_LANES];      /* of their weights */
    double scores[PK_LANES];      /* discounted sums of log densities */
    double seen, grace;           /* sum of all weights; until it is above grace nothing is capped */
    double persistence;           /* of the scores */
    double prior_count, prior_sum;
} pk_noise;

/* log density of t under each memory, but for what all have in common; errors are so many variances (q) times the
 * degrees of freedom. log Gamma(x + 1/2) - log Gamma(x) - log(x) / 2 by three terms of its series, x >= 1. */
PK_INLINE pk_vector pk_told_of_noise(pk_vector freed, pk_vector relative, pk_vector q)
{
    pk_vector x = 0.5 * freed, inverse = 1.0 / x, square = inverse * inverse;
    pk_vector gammas = inverse * (square * (1.0 / 192.0 - square * (1.0 / 640.0)) - 0.125);
    pk_vector told = gammas - 0.5 * pk_log(relative) - (x + 0.5) * pk_log(1.0 + q);
    return pk_larger(told, (pk_vector){0} - 1e4);
}

/* One inverse-gamma distribution for the memories' mixture, as degrees of freedom and variance: by the mean and variance
 * of the logarithm, which for freed degrees of freedom are log(variance) + 1 / freed and 2 / freed, but with no fewer
 * degrees of freedom than the shortest memory. least is the smallest of the variances. */
PK_INLINE void pk_match_noise(pk_vector scores, pk_vector freed, pk_vector variances, double least, double *df,
                              double *variance)
{
    pk_vector share = pk_exp(scores - pk_largest(scores)), logs = pk_log(variances / least);
    double total = pk_lanes_sum(share), fewest = -pk_largest(-freed);
    double mean = pk_lanes_sum(share * logs) / total;
    double spread = pk_lanes_sum(share * ((logs - mean) * (logs - mean) + 2.0 / freed)) / total;
    double matched = 2.0 / spread;
    *df = matched > fewest ? matched : fewest;
    *variance = least * exp(mean + pk_lanes_sum(share / freed) / total - 1.0 / *df);
}

/* Degrees of freedom and variance (n) of the noise before each row, whose errors (n) are predicted with variances
 * spread (n) times the noise's; weights (n) or NULL. Rows of weight 0 and of infinite spread teach nothing. */
PK_DISPATCH static void pk_track_noise(pk_noise *s, ptrdiff_t n, const double *error, const double *spread,
                                       const double *weights, double *df, double *variance)
{
    pk_vector rates = *(pk_vector *)s->rates, caps = *(pk_vector *)s->caps, sums = *(pk_vector *)s->sums;
    pk_vector counts = *(pk_vector *)s->counts, scores = *(pk_vector *)s->scores, beyond = {0};
    for (ptrdiff_t l = s->memories; l < PK_LANES; l++)
        beyond[l] = -1e300;
    scores += beyond;
    for (ptrdiff_t i = 0; i < n; i++) {
        pk_vector freed = counts + s->prior_count, variances = (sums + s->prior_sum) / freed;
        double least = -pk_largest(-variances), weight = weights ? weights[i] : 1.0;
        int known = -pk_largest(-freed) > 0.0 && least > 1e-290 && pk_largest(variances) < 1e290;
        if (known) {
            pk_match_noise(scores, freed, variances, least, df + i, variance + i);
        } else {
            df[i] = freed[0];
            variance[i] = freed[0] > 0.0 ? variances[0] : INFINITY;
        }
        if (!(weight > 0.0) || !(spread[i] < INFINITY))
            continue;
        double square = error[i] * error[i], surprise = square / (1.0 + weight * (spread[i] - 1.0));
        pk_vector squares = (pk_vector){0} + surprise, kept = rates, gain = (pk_vector){0} + 1.0;
        if (known && -pk_largest(-freed) > 2.0) {
            pk_vector q = square / spread[i] / (freed * variances);
            scores = s->persistence * scores +
                     weight * pk_told_of_noise(freed, variances / least, -pk_larger(-q, (pk_vector){0} - 1e300));
            scores += beyond - pk_largest(scores + beyond);
        }
        if (known && s->seen > s->grace)
            squares = -pk_larger(-squares, -(caps * variances));
        if (weight != 1.0) { /* as many copies of the row, of the same error each */
            for (int l = 0; l < PK_LANES; l++)
                kept[l] = pow(rates[l], weight);
            gain = (1.0 - kept) / (1.0 - rates);
        }
        counts = kept * counts + gain;
        sums = kept * sums + gain * squares;
        s->seen += weight;
    }
    *(pk_vector *)s->sums = sums;
    *(pk_vector *)s->counts = counts;
    *(pk_vector *)s->scores = scores;
}

#endif
