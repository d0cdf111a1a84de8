/* Weights of members by how well each has predicted, forgetting at several rates at once. */
#ifndef POSTERITY_AVERAGE_H
#define POSTERITY_AVERAGE_H

#include "posterity_lanes.h"

#define PK_MOST_RATES 64 /* a multiple of PK_LINE */

/* The members' standing: a rates of forgetting, k members in `lanes` >= k lanes, a multiple of PK_LINE.
 * Lanes beyond the members are not allowed to count, and lanes of outer beyond the rates are kept down. */
typedef struct {
    ptrdiff_t rates, members, lanes;
    const double *persistence; /* (rates) */
    double outer_persistence;
    double *scores;            /* (rates, lanes) discounted sums of log densities */
    double *outer;             /* (PK_MOST_RATES) the same of the average that each rate makes */
    double *work;              /* (rates + 4, lanes) */
} pk_expert_weights;

/* What lane l of a vector of members, or its last member, has of row i. */
#define PK_OF_MEMBER(l) ((v + (l) < s->members ? v + (l) : s->members - 1) * n + i)
#define PK_DENSITY(l) densities[PK_OF_MEMBER(l)]
#define PK_RANK(l) ranks[PK_OF_MEMBER(l)]

/* Log densities of row i: density (lanes) of each member, those that may not count as the worst of those that do,
 * and allowed (lanes), 0 or -1e300. A member may count if none has a higher rank; where all have rank 0, nobody
 * knew enough to be judged. beyond (lanes) is -1e300 beyond the members. Returns the largest density.
 * Vectors are made in registers: one that is loaded where its parts were just stored would wait for them. */
PK_INLINE double pk_load_densities(const pk_expert_weights *s, ptrdiff_t n, ptrdiff_t i, const double *densities,
                              const unsigned char *ranks, const double *beyond, double *density, double *allowed)
{
    const pk_vector never = (pk_vector){0} - 1e300;
    pk_vector worst = -never, best = never;
    unsigned char top = 0;
    for (ptrdiff_t m = 0; m < s->members; m++)
        top = ranks[m * n + i] > top ? ranks[m * n + i] : top;
    for (ptrdiff_t v = 0; v < s->lanes; v += PK_LANES) {
        pk_vector log_density = {PK_EACH_LANE(PK_DENSITY)};
        pk_integers rank = {PK_EACH_LANE(PK_RANK)};
        pk_integers counts = rank == (pk_integers){0} + top;
        log_density = top ? log_density : (pk_vector){0};
        *(pk_vector *)(density + v) = log_density;
        *(pk_vector *)(allowed + v) = pk_choose(*(const pk_vector *)(beyond + v), never, counts);
        worst = -pk_max(-worst, -pk_choose(log_density, -never, counts));
        best = pk_max(best, pk_choose(log_density, never, counts));
    }
    double least = -pk_largest(-worst);
    for (ptrdiff_t v = 0; v < s->lanes; v += PK_LANES) {
        pk_integers counts = *(const pk_vector *)(allowed + v) == 0.0;
        pk_vector *log_density = (pk_vector *)(density + v);
        *log_density = pk_choose(*log_density, (pk_vector){0} + least, counts);
    }
    return pk_largest(best);
}

/* log of sum exp(scores + density) / sum exp(scores), where the densities lie too far apart for their exponentials. */
PK_RARE double pk_log_average_far(const double *scores, double persistence, const double *allowed, const double *density,
                           ptrdiff_t lanes)
{
    double most = -INFINITY, weighted_most = -INFINITY, sum = 0.0, weighted_sum = 0.0;
    for (ptrdiff_t m = 0; m < lanes; m++) {
        double score = persistence * scores[m] + allowed[m];
        most = score > most ? score : most;
        weighted_most = score + density[m] > weighted_most ? score + density[m] : weighted_most;
    }
    for (ptrdiff_t m = 0; m < lanes; m++) {
        double score = persistence * scores[m] + allowed[m];
        sum += exp(score - most);
        weighted_sum += exp(score + density[m] - weighted_most);
    }
    return weighted_most - most + log(weighted_sum / sum);
}

/* to (lanes) = softmax of the scores of one rate over the members that are allowed; returns the sum of those weights
 * times the likelihoods (lanes). */
PK_INLINE double pk_inner_average(const pk_expert_weights *s, ptrdiff_t rate, const double *allowed,
                                  const double *likelihood, double *to)
{
    const double *scores = s->scores + rate * s->lanes;
    pk_vector most = (pk_vector){0} - 1e300, sum = {0}, weighted = {0};
    for (ptrdiff_t v = 0; v < s->lanes; v += PK_LANES) {
        pk_vector score = s->persistence[rate] * *(const pk_vector *)(scores + v) + *(const pk_vector *)(allowed + v);
        *(pk_vector *)(to + v) = score;
        most = pk_max(most, score);
    }
    double top = pk_largest(most);
    for (ptrdiff_t v = 0; v < s->lanes; v += PK_LANES) {
        pk_vector weight = pk_exp(*(const pk_vector *)(to + v) - top);
        *(pk_vector *)(to + v) = weight;
        sum += weight;
        weighted += weight * *(const pk_vector *)(likelihood + v);
    }
    double inverse = 1.0 / pk_sum(sum);
    for (ptrdiff_t v = 0; v < s->lanes; v += PK_LANES)
        *(pk_vector *)(to + v) *= inverse;
    return pk_sum(weighted) * inverse;
}

/* inner (rates, lanes) = weights of the members at each rate; average (rates) = log of the sum of those weights times
 * exp(density). likelihood (lanes) = exp(density - best). */
PK_INLINE void pk_inner_averages(const pk_expert_weights *s, const double *density, const double *allowed,
                                 const double *likelihood, double best, double *inner, double *average)
{
    for (ptrdiff_t first = 0; first < s->rates; first += PK_LANES) {
        pk_vector averages = (pk_vector){0} + 1.0;
        int far = 0;
        PK_UNROLL
        for (int lane = 0; lane < PK_LANES; lane++)
            if (first + lane < s->rates) {
                double of_rate = pk_inner_average(s, first + lane, allowed, likelihood, inner + (first + lane) * s->lanes);
                averages[lane] = of_rate;
                far |= !(of_rate > 1e-280);
            }
        *(pk_vector *)(average + first) = best + pk_log(averages);
        if (PK_UNLIKELY(far))
            for (ptrdiff_t a = first; a < s->rates && a < first + PK_LANES; a++)
                average[a] = pk_log_average_far(s->scores + a * s->lanes, s->persistence[a], allowed, density, s->lanes);
    }
}

/* share (rates) = softmax of outer, which then learns the averages; returns the log density of the whole.
 * beyond (rates) is -1e300 in the lanes beyond the rates and 0 before. */
PK_INLINE double pk_outer_average(pk_expert_weights *s, const double *average, const double *beyond, double *share)
{
    pk_vector most = (pk_vector){0} - 1e300, weighted_most = most, sum = {0}, weighted_sum = {0};
    for (ptrdiff_t a = 0; a < s->rates; a += PK_LANES) {
        pk_vector *outer = (pk_vector *)(s->outer + a);
        *outer = s->outer_persistence * *outer + *(const pk_vector *)(beyond + a);
        most = pk_max(most, *outer);
        weighted_most = pk_max(weighted_most, *outer + *(const pk_vector *)(average + a));
    }
    double top = pk_largest(most), weighted_top = pk_largest(weighted_most);
    for (ptrdiff_t a = 0; a < s->rates; a += PK_LANES) {
        pk_vector *outer = (pk_vector *)(s->outer + a), weight = pk_exp(*outer - top);
        *outer += *(const pk_vector *)(average + a) - weighted_top; /* only differences matter: stay near 0 */
        sum += weight;
        weighted_sum += pk_exp(*outer);
        *(pk_vector *)(share + a) = weight;
    }
    double total = pk_sum(sum);
    for (ptrdiff_t a = 0; a < s->rates; a += PK_LANES)
        *(pk_vector *)(share + a) *= 1.0 / total;
    return weighted_top - top + log(pk_sum(weighted_sum) / total);
}

/* Keep scores near 0. */
PK_INLINE void pk_center_scores(const pk_expert_weights *s)
{
    for (ptrdiff_t a = 0; a < s->rates; a++) {
        double *score = s->scores + a * s->lanes, most = score[0];
        for (ptrdiff_t m = 1; m < s->members; m++)
            most = score[m] > most ? score[m] : most;
        for (ptrdiff_t m = 0; m < s->lanes; m++)
            score[m] = m < s->members ? score[m] - most : 0.0;
    }
}

/* Weights (n, members) before each row, given its log densities (members, n) and the ranks (members, n) of what the
 * members knew: see pk_load_densities. Returns the sum of the log densities of the mixture. */
static double pk_average(pk_expert_weights *s, ptrdiff_t n, const double *densities, const unsigned char *ranks,
                         double *weights)
{
    double evidence = 0.0, share[PK_MOST_RATES], average[PK_MOST_RATES], beyond[PK_MOST_RATES];
    double *inner = s->work, *density = inner + s->rates * s->lanes, *allowed = density + s->lanes;
    double *likelihood = allowed + s->lanes, *no_member = likelihood + s->lanes;
    for (ptrdiff_t m = 0; m < s->lanes; m++)
        no_member[m] = m < s->members ? 0.0 : -1e300;
    for (ptrdiff_t a = 0; a < PK_MOST_RATES; a++)
        beyond[a] = a < s->rates ? 0.0 : -1e300;
    for (ptrdiff_t i = 0; i < n; i++) {
        double best = pk_load_densities(s, n, i, densities, ranks, no_member, density, allowed);
        for (ptrdiff_t v = 0; v < s->lanes; v += PK_LANES)
            *(pk_vector *)(likelihood + v) = pk_exp(*(const pk_vector *)(density + v) - best);
        pk_inner_averages(s, density, allowed, likelihood, best, inner, average);
        /* Only differences matter: less the best, known without the averages, rows can overlap in the processor. */
        for (ptrdiff_t a = 0; a < s->rates; a++)
            for (ptrdiff_t v = 0; v < s->lanes; v += PK_LANES) {
                pk_vector *score = (pk_vector *)(s->scores + a * s->lanes + v);
                *score = s->persistence[a] * *score + (*(const pk_vector *)(density + v) - best);
            }
        if (i % PK_PANEL == 0)
            pk_center_scores(s);
        evidence += pk_outer_average(s, average, beyond, share);
        for (ptrdiff_t v = 0; v < s->lanes; v += PK_LANES) {
            pk_vector weight = {0};
            for (ptrdiff_t a = 0; a < s->rates; a++)
                weight += share[a] * *(const pk_vector *)(inner + a * s->lanes + v);
            *(pk_vector *)(density + v) = weight;
        }
        memcpy(weights + i * s->members, density, (size_t)s->members * sizeof(double));
    }
    return evidence;
}

#endif
