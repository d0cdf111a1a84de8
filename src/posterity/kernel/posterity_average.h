/* Weights of members by how well each has predicted, forgetting at several rates at once. */
#ifndef POSTERITY_AVERAGE_H
#define POSTERITY_AVERAGE_H

#include "posterity_rows.h"

#define PK_MOST_RATES 64

typedef long long pk_integers __attribute__((vector_size(8 * PK_LANES), aligned(8), may_alias));

/* exp(x) for x <= 0 in every lane, to 2 units in the last place; 0 below -700.
 * x = k log 2 + r, |r| <= log(2)/2, and a Taylor series of degree 13 for exp(r). */
PK_INLINE pk_vector pk_exp(pk_vector x)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to whole numbers */
    pk_integers alive = x > -700.0;
    x = (pk_vector)((pk_integers)x & alive);
    pk_vector shifted = x * 1.4426950408889634 + shift, k = shifted - shift;
    pk_vector r = x - k * 0.69314718036912382 - k * 1.9082149292705877e-10, sum = r * (1.0 / 6227020800.0);
    const double inverse_factorials[] = {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                                         1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,     1.0 / 120.0,
                                         1.0 / 24.0,        1.0 / 6.0,        0.5,             1.0};
    for (int i = 0; i < 12; i++)
        sum = (sum + inverse_factorials[i]) * r;
    pk_vector power = (pk_vector)(((pk_integers)shifted + 1023) << 52);
    return (pk_vector)((pk_integers)((sum + 1.0) * power) & alive);
}

PK_INLINE double pk_lanes_sum(pk_vector v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* The members' standing: a rates of forgetting, k members in `lanes` >= k lanes, a multiple of PK_LANES.
 * Scores in lanes beyond the members are -1e300, so that they never weigh. */
typedef struct {
    ptrdiff_t rates, members, lanes;
    const double *persistence; /* (rates) */
    double outer_persistence;
    double *scores;            /* (rates, lanes) discounted sums of log densities */
    double *outer;             /* (rates) the same of the average that each rate makes */
    double *work;              /* (rates + 2, lanes) */
} pk_standing;

PK_INLINE pk_vector pk_larger(pk_vector a, pk_vector b)
{
    pk_integers left = a > b;
    return (pk_vector)(((pk_integers)a & left) | ((pk_integers)b & ~left));
}

PK_INLINE double pk_largest(pk_vector v)
{
    double a = v[0] > v[4] ? v[0] : v[4], b = v[1] > v[5] ? v[1] : v[5], c = v[2] > v[6] ? v[2] : v[6],
           d = v[3] > v[7] ? v[3] : v[7];
    a = a > b ? a : b;
    c = c > d ? c : d;
    return a > c ? a : c;
}

PK_INLINE pk_vector pk_choose(pk_vector yes, pk_vector no, pk_integers condition)
{
    return (pk_vector)(((pk_integers)yes & condition) | ((pk_integers)no & ~condition));
}

/* to (lanes) = softmax of persistence * scores over the members that are allowed (0 or 1); returns the log of
 * the sum of those weights times exp(density), in logs throughout: no density is too small to be told. */
PK_INLINE double pk_softmax(const double *scores, double persistence, const double *allowed, const double *density,
                            double *to, ptrdiff_t lanes)
{
    const pk_vector never = {-1e300, -1e300, -1e300, -1e300, -1e300, -1e300, -1e300, -1e300};
    pk_vector most_of_each = never, told_of_each = never, sum = {0}, told_sum = {0};
    for (ptrdiff_t v = 0; v < lanes; v += PK_LANES) {
        pk_vector score = persistence * *(const pk_vector *)(scores + v);
        score = pk_choose(score, never, *(const pk_vector *)(allowed + v) > 0.0);
        most_of_each = pk_larger(most_of_each, score);
        told_of_each = pk_larger(told_of_each, score + *(const pk_vector *)(density + v));
    }
    double most = pk_largest(most_of_each), told_most = pk_largest(told_of_each);
    for (ptrdiff_t v = 0; v < lanes; v += PK_LANES) {
        pk_vector score = persistence * *(const pk_vector *)(scores + v);
        score = pk_choose(score, never, *(const pk_vector *)(allowed + v) > 0.0);
        pk_vector weight = pk_exp(score - most);
        *(pk_vector *)(to + v) = weight;
        sum += weight;
        told_sum += pk_exp(score + *(const pk_vector *)(density + v) - told_most);
    }
    double total = pk_lanes_sum(sum);
    for (ptrdiff_t v = 0; v < lanes; v += PK_LANES)
        *(pk_vector *)(to + v) *= 1.0 / total;
    return told_most - most + log(pk_lanes_sum(told_sum) / total);
}

/* Weights (n, members) before each row, given its log densities (n, members) and which members may count
 * (n, members) of 0 and 1, at least one a row. Returns the sum of the log densities of the mixture. Those that
 * may not count are scored as the worst of those that do. */
PK_DISPATCH static double pk_average(pk_standing *s, ptrdiff_t n, const double *densities, const double *counts,
                                     double *weights)
{
    double evidence = 0.0, outer_weight[PK_MOST_RATES], average[PK_MOST_RATES];
    double *inner = s->work, *density = inner + s->rates * s->lanes, *allowed = density + s->lanes;
    for (ptrdiff_t i = 0; i < n; i++) {
        double worst = INFINITY, whole = 0.0, mixture = 0.0, most = -INFINITY, told_most = -INFINITY;
        for (ptrdiff_t m = 0; m < s->lanes; m++) {
            allowed[m] = m < s->members ? counts[i * s->members + m] : 0.0;
            if (allowed[m] > 0.0 && densities[i * s->members + m] < worst)
                worst = densities[i * s->members + m];
        }
        for (ptrdiff_t m = 0; m < s->lanes; m++)
            density[m] = allowed[m] > 0.0 ? densities[i * s->members + m] : worst;
        for (ptrdiff_t a = 0; a < s->rates; a++) {
            double *score = s->scores + a * s->lanes;
            average[a] = pk_softmax(score, s->persistence[a], allowed, density, inner + a * s->lanes, s->lanes);
            for (ptrdiff_t v = 0; v < s->lanes; v += PK_LANES)
                *(pk_vector *)(score + v) = s->persistence[a] * *(const pk_vector *)(score + v)
                                            + *(const pk_vector *)(density + v) - average[a];
            s->outer[a] *= s->outer_persistence;
            most = s->outer[a] > most ? s->outer[a] : most;
            told_most = s->outer[a] + average[a] > told_most ? s->outer[a] + average[a] : told_most;
        }
        for (ptrdiff_t a = 0; a < s->rates; a++) {
            whole += outer_weight[a] = exp(s->outer[a] - most);
            mixture += exp(s->outer[a] + average[a] - told_most);
            s->outer[a] += average[a] - told_most; /* only differences matter: stay near 0 */
        }
        evidence += told_most - most + log(mixture / whole);
        for (ptrdiff_t m = 0; m < s->members; m++) {
            double weight = 0.0;
            for (ptrdiff_t a = 0; a < s->rates; a++)
                weight += outer_weight[a] / whole * inner[a * s->lanes + m];
            weights[i * s->members + m] = weight;
        }
    }
    return evidence;
}

#endif
