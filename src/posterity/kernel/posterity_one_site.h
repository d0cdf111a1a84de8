/* One observation at a time: the compiled path's steps, between which its caller can refuse. See posterity_sites.h. */
#ifndef POSTERITY_ONE_SITE_H
#define POSTERITY_ONE_SITE_H

#include "posterity_site_rows.h"

/* The logistic distribution function as a mixture of eight normal ones (Monahan and Stefanski 1992, k = 8). */
static const double pk_logistic_shares[8] = {0.003246343272134, 0.051517477033972, 0.195077912673858,
                                             0.315569823632818, 0.274149576158423, 0.131076880695470,
                                             0.027912418727972, 0.001449567805354};
static const double pk_logistic_slopes[8] = {1.365340806296348, 1.059523971016916, 0.830791313765644,
                                             0.650732166639391, 0.508135425366489, 0.396313345166341,
                                             0.308904252267995, 0.238212616409306};

/* Variance of eta at the row [x, 0] (ld), which is left as it is, and its mean; buffer (PK_SITE_WORK_SIZE) keeps what
 * pk_learn_one_site needs. */
static double pk_eta_moments_of_one(const double *T, double *buffer, const double *row, pk_shape shape, double *mean)
{
    pk_site_work work = pk_new_site_work(buffer, shape);
    memcpy(work.row, row, (size_t)shape.ld * sizeof(double));
    if (PK_UNLIKELY(pk_is_deficient(T, shape))) {
        double variance = pk_predict_row(T, work.row, shape);
        *mean = 0.0 - work.row[shape.p];
        return variance;
    }
    return pk_substitute(T, &work, shape, mean);
}

/* Learn the site of the row that pk_eta_moments_of_one has just met. */
static void pk_learn_one_site(double *T, double *buffer, const double *row, double precision, double target,
                        double mean, double variance, pk_shape shape)
{
    pk_site_work work = pk_new_site_work(buffer, shape);
    if (PK_UNLIKELY(pk_is_deficient(T, shape) || !(precision * variance < PK_TELLING))) {
        double root = sqrt(precision);
        for (ptrdiff_t j = 0; j < shape.ld; j++)
            work.row[j] = root * row[j];
        work.row[shape.p] = root * target;
        pk_append_row(T, work.row, shape);
    } else {
        work.row[shape.p] = target;
        pk_append_substituted(T, &work, precision, target - mean, variance, shape);
    }
}

/* Expectation of 1 / (1 + exp(-eta)), eta ~ Normal(mean, variance), variance beyond 1: averaged over a Gaussian, each
 * normal distribution function stays one. In the lower tail by sigmoid(eta) = exp(eta) sigmoid(-eta). */
PK_RARE double pk_expected_wide(double mean, double variance)
{
    int tail = mean + variance < 0.0;
    double moved = tail ? -(mean + variance) : mean, lead = tail ? mean + 0.5 * variance : 0.0, total = 0.0, place = 0.0;
    for (int k = 0; k < 8; k++) {
        double slope = pk_logistic_slopes[k];
        place = moved / sqrt(1.0 / (slope * slope) + variance);
        total += pk_logistic_shares[k] * 0.5 * erfc(-place * PK_ROOT_HALF);
    }
    return exp(lead + (total > 0.0 ? log(total) : pk_log_tail(-place)));
}

/* Probabilities of 1 and of 0 where the log odds are Normal(mean, variance). */
static void pk_expected_label_one(double mean, double variance, double *yes, double *no)
{
    if (variance > 1.0) {
        *yes = pk_expected_wide(mean, variance);
        *no = pk_expected_wide(-mean, variance);
        return;
    }
    pk_vector less, more;
    pk_expected_sigmoid((pk_vector){0} + mean, (pk_vector){0} + variance, &less, &more);
    *yes = exp(mean > 0.0 ? more[0] : less[0]);
    *no = exp(mean > 0.0 ? less[0] : more[0]);
}

#endif
