/* Rows of a factorization machine learned one by one: what the level of each side learns from a row, given the means
 * and covariances of the others. Its twin is posterity.factorization._sweeps, which has the formulas. */
#ifndef POSTERITY_MACHINE_H
#define POSTERITY_MACHINE_H

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct {
    double *mean, *covariance;         /* (L, p), (L, p, p) of [w, v] */
    double *precision, *product;       /* (L, p, p), (L, p): sums of E f f' and E f e over the rows of each level */
    const double *prior_mean, *prior_precision; /* (p) */
} pk_side;

typedef struct {
    ptrdiff_t sides, p;                /* p = 1 + rank */
    const pk_side *side;
    double offset, offset_variance, noise_precision;
    int labels;                        /* whether y is 0 or 1, of log odds */
    double *room;                      /* pk_size_of_work doubles */
} pk_machine;

/* A level's mean, covariance and sums, as they were; a row's partners; and a triangle. */
static inline ptrdiff_t pk_size_of_work(ptrdiff_t sides, ptrdiff_t p)
{
    return sides * 2 * (p + 1) * p + p + p * p;
}

/* The factors of all sides but `but` (none: -1), summed, and what weights and pairs of these say of the target. */
static double pk_multiply_others_factors(const pk_machine *of, ptrdiff_t but, const ptrdiff_t *codes, const double *values, double *partners)
{
    ptrdiff_t p = of->p;
    double mean = of->offset;
    memset(partners, 0, (size_t)p * sizeof *partners);
    for (ptrdiff_t t = 0; t < of->sides; ++t) {
        if (t == but)
            continue;
        const double *weights = codes[t] < 0 ? of->side[t].prior_mean : of->side[t].mean + codes[t] * p;
        double x = values[t];
        mean += x * weights[0];
        for (ptrdiff_t j = 1; j < p; ++j) {
            mean += partners[j] * x * weights[j];
            partners[j] += x * weights[j];
        }
    }
    return mean;
}

/* Mean and, as the answer, variance of a row of known levels, the noise aside. */
static double pk_row_variance(const pk_machine *of, const ptrdiff_t *codes, const double *values, double *mean,
                              double *partners)
{
    ptrdiff_t p = of->p;
    double variance = of->offset_variance;
    *mean = pk_multiply_others_factors(of, -1, codes, values, partners);
    for (ptrdiff_t s = 0; s < of->sides; ++s) {
        const double *covariance = of->side[s].covariance + codes[s] * p * p, *own = of->side[s].mean + codes[s] * p;
        double square = values[s] * values[s];
        for (ptrdiff_t i = 0; i < p; ++i) {
            double slope = i ? partners[i] - values[s] * own[i] : 1.0;
            for (ptrdiff_t j = 0; j < p; ++j)
                variance += square * slope * covariance[i * p + j] * (j ? partners[j] - values[s] * own[j] : 1.0);
        }
        for (ptrdiff_t t = 0; t < s; ++t) {
            const double *other = of->side[t].covariance + codes[t] * p * p;
            for (ptrdiff_t i = 1; i < p; ++i)
                for (ptrdiff_t j = 1; j < p; ++j)
                    variance += square * values[t] * values[t] * covariance[i * p + j] * other[i * p + j];
        }
    }
    return variance;
}

/* Add a row of this weight to the sums of a side's level. */
static void pk_sum_row(const pk_machine *of, ptrdiff_t s, const ptrdiff_t *codes, const double *values, double y,
                       double weight, double *partners)
{
    ptrdiff_t p = of->p;
    double *precision = of->side[s].precision + codes[s] * p * p, *product = of->side[s].product + codes[s] * p;
    double x = values[s], rest = y - pk_multiply_others_factors(of, s, codes, values, partners);
    partners[0] = 1.0;
    for (ptrdiff_t i = 0; i < p; ++i) {
        product[i] += weight * x * partners[i] * rest;
        for (ptrdiff_t j = 0; j < p; ++j)
            precision[i * p + j] += weight * x * x * partners[i] * partners[j];
    }
    for (ptrdiff_t t = 0; t < of->sides; ++t) {
        if (t == s)
            continue;
        const double *covariance = of->side[t].covariance + codes[t] * p * p, *own = of->side[t].mean + codes[t] * p;
        double square = weight * values[t] * values[t];
        for (ptrdiff_t i = 1; i < p; ++i) {
            double shared = covariance[i * p];
            for (ptrdiff_t j = 1; j < p; ++j) {
                precision[i * p + j] += x * x * square * covariance[i * p + j];
                shared += covariance[i * p + j] * (partners[j] - values[t] * own[j]);
            }
            product[i] -= x * square * shared;
        }
    }
}

/* A level's covariance and mean from its sums and its side's prior; 0 unless they overflow. */
static int pk_update_level(const pk_machine *of, ptrdiff_t s, ptrdiff_t level, double *triangle)
{
    ptrdiff_t p = of->p;
    const pk_side *side = of->side + s;
    const double *precision = side->precision + level * p * p, *product = side->product + level * p;
    double *covariance = side->covariance + level * p * p, *mean = side->mean + level * p, total = 0.0;
    for (ptrdiff_t i = 0; i < p; ++i) /* L L' = the posterior's precision */
        for (ptrdiff_t j = 0; j <= i; ++j) {
            double sum = of->noise_precision * precision[i * p + j] + (i == j ? side->prior_precision[i] : 0.0);
            for (ptrdiff_t k = 0; k < j; ++k)
                sum -= triangle[i * p + k] * triangle[j * p + k];
            triangle[i * p + j] = i == j ? sqrt(sum) : sum / triangle[j * p + j];
        }
    for (ptrdiff_t i = 0; i < p; ++i) { /* L^-1 in its place */
        triangle[i * p + i] = 1.0 / triangle[i * p + i];
        for (ptrdiff_t j = 0; j < i; ++j) {
            double sum = 0.0;
            for (ptrdiff_t k = j; k < i; ++k)
                sum -= triangle[i * p + k] * triangle[k * p + j];
            triangle[i * p + j] = sum * triangle[i * p + i];
        }
    }
    for (ptrdiff_t i = 0; i < p; ++i)
        for (ptrdiff_t j = 0; j <= i; ++j) {
            double sum = 0.0;
            for (ptrdiff_t k = i; k < p; ++k)
                sum += triangle[k * p + i] * triangle[k * p + j];
            covariance[i * p + j] = covariance[j * p + i] = sum;
        }
    for (ptrdiff_t i = 0; i < p; ++i) {
        double sum = 0.0;
        for (ptrdiff_t j = 0; j < p; ++j)
            sum += covariance[i * p + j]
                   * (of->noise_precision * product[j] + side->prior_precision[j] * side->prior_mean[j]);
        mean[i] = sum;
        total += fabs(sum) + covariance[i * p + i];
    }
    return !(total < 1e150); /* squares of errors are summed, too */
}

/* Copy the touched levels of all sides into the room, or back. */
static void pk_keep_levels(const pk_machine *of, const ptrdiff_t *codes, int back)
{
    ptrdiff_t p = of->p;
    double *room = of->room;
    for (ptrdiff_t s = 0; s < of->sides; ++s) {
        double *of_level[] = {of->side[s].mean + codes[s] * p, of->side[s].product + codes[s] * p,
                              of->side[s].covariance + codes[s] * p * p, of->side[s].precision + codes[s] * p * p};
        for (int which = 0; which < 4; ++which) {
            size_t size = (size_t)(which < 2 ? p : p * p);
            memcpy(back ? of_level[which] : room, back ? room : of_level[which], size * sizeof(double));
            room += size;
        }
    }
}

/* Learn a row: side after side, each level from this row too. Not 0 if that would overflow: then nothing has changed. */
static int pk_learn_machine_row(const pk_machine *of, const ptrdiff_t *codes, const double *values, double y,
                                double weight)
{
    double *partners = of->room + of->sides * 2 * (of->p + 1) * of->p;
    int overflow = 0;
    if (of->labels) { /* Jaakkola and Jordan's bound, where the row is expected */
        double mean, variance = pk_row_variance(of, codes, values, &mean, partners);
        double size = sqrt(mean * mean + variance), curvature = size > 1e-4 ? 0.5 * tanh(0.5 * size) / size : 0.25;
        y = (y - 0.5) / curvature;
        weight *= curvature;
    }
    pk_keep_levels(of, codes, 0);
    for (ptrdiff_t s = 0; s < of->sides && !overflow; ++s) {
        pk_sum_row(of, s, codes, values, y, weight, partners);
        overflow = pk_update_level(of, s, codes[s], partners + of->p);
    }
    if (overflow)
        pk_keep_levels(of, codes, 1);
    return overflow;
}

#endif
