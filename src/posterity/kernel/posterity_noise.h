/* The noise of one member, followed at several memories at once. */
#ifndef POSTERITY_NOISE_H
#define POSTERITY_NOISE_H

#include "posterity_average.h"

/* A noise is followed by up to PK_MEMORIES memories: memory l multiplies what it holds by rates[l] at every row. Those
 * beyond the memories are copies of the first, and do not count. */
enum { PK_MEMORIES = 8, PK_PARTS = PK_MEMORIES / PK_LANES };

typedef struct {
    ptrdiff_t memories;
    double rates[PK_MEMORIES];
    double caps[PK_MEMORIES];     /* a squared error counts for at most so many variances */
    double sums[PK_MEMORIES];     /* of squared errors */
    double counts[PK_MEMORIES];   /* of their weights */
    double scores[PK_MEMORIES];   /* discounted sums of log densities */
    double seen, grace;           /* sum of all weights; until it is above grace nothing is capped */
    double persistence;           /* of the scores */
    double prior_count, prior_sum;
} pk_noise;

PK_INLINE double pk_largest_of(const pk_vector *x)
{
    pk_vector most = x[0];
    for (int v = 1; v < PK_PARTS; v++)
        most = pk_max(most, x[v]);
    return pk_largest(most);
}

PK_INLINE double pk_least_of(const pk_vector *x)
{
    pk_vector most = -x[0];
    for (int v = 1; v < PK_PARTS; v++)
        most = pk_max(most, -x[v]);
    return -pk_largest(most);
}

/* log density of t under each memory, but for what all have in common; errors are so many variances (q) times the
 * degrees of freedom. log Gamma(x + 1/2) - log Gamma(x) - log(x) / 2 by three terms of its series, x >= 1. */
PK_INLINE pk_vector pk_noise_summary(pk_vector residual_df, pk_vector relative, pk_vector q)
{
    pk_vector x = 0.5 * residual_df, inverse = 1.0 / x, square = inverse * inverse;
    pk_vector gammas = inverse * (square * (1.0 / 192.0 - square * (1.0 / 640.0)) - 0.125);
    pk_vector log_density = gammas - 0.5 * pk_log(relative) - (x + 0.5) * pk_log(1.0 + q);
    return pk_max(log_density, (pk_vector){0} - 1e4);
}

/* One inverse-gamma distribution for the memories' mixture, as degrees of freedom and variance: by the mean and variance
 * of the logarithm, which for residual_df degrees of freedom are log(variance) + 1 / residual_df and 2 / residual_df, but with no fewer
 * degrees of freedom than the shortest memory, `fewest`. least is the smallest of the variances. */
PK_INLINE void pk_match_noise(const pk_vector *scores, const pk_vector *residual_df, const pk_vector *variances, double least,
                              double fewest, double *df, double *variance)
{
    pk_vector share[PK_PARTS], logs[PK_PARTS], total = {0}, mean = {0}, spread = {0}, bias = {0};
    double most = pk_largest_of(scores);
    for (int v = 0; v < PK_PARTS; v++) {
        share[v] = pk_exp(scores[v] - most);
        logs[v] = pk_log(variances[v] / least);
        total += share[v];
        mean += share[v] * logs[v];
        bias += share[v] / residual_df[v];
    }
    double whole = pk_sum(total), centre = pk_sum(mean) / whole;
    for (int v = 0; v < PK_PARTS; v++)
        spread += share[v] * ((logs[v] - centre) * (logs[v] - centre) + 2.0 / residual_df[v]);
    double matched = 2.0 * whole / pk_sum(spread);
    *df = matched > fewest ? matched : fewest;
    *variance = least * exp(centre + pk_sum(bias) / whole - 1.0 / *df);
}

/* Scores after an error that is so many variances large (q, for each memory), in proportion to their largest. */
PK_INLINE void pk_score_noise(const pk_noise *s, const pk_vector *residual_df, const pk_vector *variances, double least,
                              double error, double weight, const pk_vector *beyond, pk_vector *scores)
{
    for (int v = 0; v < PK_PARTS; v++) {
        pk_vector q = error / (residual_df[v] * variances[v]);
        pk_vector summary = pk_noise_summary(residual_df[v], variances[v] / least, -pk_max(-q, (pk_vector){0} - 1e300));
        scores[v] = s->persistence * scores[v] + weight * summary + beyond[v];
    }
    double most = pk_largest_of(scores);
    for (int v = 0; v < PK_PARTS; v++)
        scores[v] += beyond[v] - most;
}

/* A squared error of this weight is learned by every memory, capped or not. */
PK_INLINE void pk_learn_noise(const pk_noise *s, const pk_vector *variances, double square, double weight, int capped,
                              pk_vector *counts, pk_vector *sums)
{
    for (int v = 0; v < PK_PARTS; v++) {
        pk_vector rates = ((const pk_vector *)s->rates)[v], kept = rates, gain = (pk_vector){0} + 1.0;
        pk_vector squares = (pk_vector){0} + square;
        if (capped)
            squares = -pk_max(-squares, -(((const pk_vector *)s->caps)[v] * variances[v]));
        if (weight != 1.0) { /* as many copies of the row, of the same error each */
            for (int l = 0; l < PK_LANES; l++)
                kept[l] = pow(rates[l], weight);
            gain = (1.0 - kept) / (1.0 - rates);
        }
        counts[v] = kept * counts[v] + gain;
        sums[v] = kept * sums[v] + gain * squares;
    }
}

/* Degrees of freedom and variance (n) of the noise before each row, whose errors (n) are predicted with variances
 * spread (n) times the noise's; weights (n) or NULL. Rows of weight 0 and of infinite spread teach nothing. */
static void pk_track_noise(pk_noise *s, ptrdiff_t n, const double *error, const double *spread, const double *weights,
                           double *df, double *variance)
{
    pk_vector *sums = (pk_vector *)s->sums, *counts = (pk_vector *)s->counts, *scores = (pk_vector *)s->scores;
    pk_vector beyond[PK_PARTS], residual_df[PK_PARTS], variances[PK_PARTS];
    for (ptrdiff_t l = 0; l < PK_MEMORIES; l++)
        beyond[l / PK_LANES][l % PK_LANES] = l < s->memories ? 0.0 : -1e300;
    for (int v = 0; v < PK_PARTS; v++)
        scores[v] += beyond[v];
    for (ptrdiff_t i = 0; i < n; i++) {
        for (int v = 0; v < PK_PARTS; v++) {
            residual_df[v] = counts[v] + s->prior_count;
            variances[v] = (sums[v] + s->prior_sum) / residual_df[v];
        }
        double least = pk_least_of(variances), fewest = pk_least_of(residual_df), weight = weights ? weights[i] : 1.0;
        int known = fewest > 0.0 && least > 1e-290 && pk_largest_of(variances) < 1e290;
        if (known) {
            pk_match_noise(scores, residual_df, variances, least, fewest, df + i, variance + i);
        } else {
            df[i] = residual_df[0][0];
            variance[i] = df[i] > 0.0 ? variances[0][0] : INFINITY;
        }
        if (!(weight > 0.0) || !(spread[i] < INFINITY))
            continue;
        double square = error[i] * error[i], surprise = square / (1.0 + weight * (spread[i] - 1.0));
        if (known && fewest > 2.0)
            pk_score_noise(s, residual_df, variances, least, square / spread[i], weight, beyond, scores);
        pk_learn_noise(s, variances, surprise, weight, known && s->seen > s->grace, counts, sums);
        s->seen += weight;
    }
}

#endif
