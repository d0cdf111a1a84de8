/* Many features, of which a row has few: each weight has a mean and a variance of its own, and nothing is kept of how
 * they depend on each other (assumed-density filtering). O(active features) a row.
 *
 * A feature keeps the natural parameters of what rows have said of it, the prior apart: precision l and shift h, so that
 *
 *     variance = 1 / (prior + l),   mean = h variance .
 *
 * Given eta = x.w ~ Normal(mean, V), a row's site (precision P, target t) tells feature j, the others integrated out,
 *
 *     l += x^2 P / (1 + P (V - x^2 v)),   h so that the mean moves by  x v P (t - mean) / (1 + P V) :
 *
 * the exact mean and variance of each weight given the row, had they been independent before it. Several hypotheses of
 * the prior's scale learn side by side and are weighed by how well they predict. In each the precision of a column's
 * weights follows the slope of the row's log evidence, in steps of its expected curvature (Fisher scoring). */
#ifndef POSTERITY_DIAGONAL_H
#define POSTERITY_DIAGONAL_H

#include "posterity_one_site.h"

#define PK_MEMBERS 4               /* hypotheses: precisions and shifts of a feature are a cache line */
#define PK_BELIEF (2 * PK_MEMBERS) /* doubles a feature */
#define PK_OUTPUTS (6 * PK_MEMBERS)   /* doubles of output for a row */
#define PK_LONGEST_STEP 0.5        /* of the log of a precision */
#define PK_HASTE 2.0               /* steps are this much longer than what is known says: early ones are forgotten */
#define PK_WEAKEST 1e-8            /* bounds of a precision that is learned, relative to the mean square of x */
#define PK_STRONGEST 1e8

/* beliefs (p, 2, 4); clocks (p) or NULL: log of all discounts up to the feature's last row; precision (columns, 4) of the
 * prior and what is known of it; squares (columns, 2): sum and number of x^2, where precisions are relative to their mean;
 * scores (4): sums of log densities; rates (4) and shape of the noise, or shape < 0: rows are in units of known noise. */
typedef struct {
    double *beliefs, *clocks, *precision, *information, *squares, *scores, *rates;
    double shape, faded;
    int members, learns, relative, intercept;
} pk_diagonal;

/* Active features of rows, -1 where one is not known, with their columns and values (or NULL: ones); starts (n + 1).
 * Offsets (n), or NULL for none, are added to eta. */
typedef struct {
    const long long *starts;
    const int *features, *columns;
    const double *values, *y, *weights, *discounts, *offsets;
    ptrdiff_t n;
} pk_sparse_rows;

typedef struct {
    ptrdiff_t feature, column;
    double x, fade;
    pk_quad prior, variance, mean;
} pk_active;

/* A row's site under each hypothesis, in units of the noise, of which the precision is known or learned (1 where there is
 * none); slope and bend of its log evidence over the mean and over the variance of eta. */
typedef struct {
    pk_quad precision, pull, shrink, noise, slope, bend;
} pk_message;

PK_INLINE pk_quad pk_clamp(pk_quad x, double low, double high)
{
    const pk_quad zero = {0};
    pk_flags under = x < low, over = x > high;
    pk_quad ends = (pk_quad)(((pk_flags)(zero + low) & under) | ((pk_flags)(zero + high) & over));
    return (pk_quad)((pk_flags)ends | ((pk_flags)x & ~(under | over)));
}

PK_INLINE double pk_mean_square(const pk_diagonal *d, ptrdiff_t column, double x)
{
    const double *square = d->squares + 2 * column;
    return !d->relative || !column ? 1.0 : square[1] > 0.0 ? square[0] / square[1] : x * x;
}

PK_INLINE void pk_feature_moments(const pk_diagonal *d, pk_active *a, pk_quad *mean, pk_quad *variance)
{
    pk_quad known = {0}, shift = {0};
    a->fade = 1.0;
    a->prior = *(const pk_quad *)(d->precision + PK_MEMBERS * a->column) * pk_mean_square(d, a->column, a->x);
    if (a->feature >= 0) {
        const pk_quad *belief = (const pk_quad *)(d->beliefs + PK_BELIEF * a->feature);
        if (d->clocks)
            a->fade = pk_exp_one(d->faded - d->clocks[a->feature]);
        known = a->fade * belief[0];
        shift = a->fade * belief[1];
    }
    a->variance = 1.0 / (a->prior + known);
    a->mean = (pk_quad)((pk_flags)(a->variance * shift) & (shift != 0.0)); /* 0 where nothing is known */
    *mean += a->x * a->mean;
    *variance += a->x * a->x * a->variance;
}

/* Mean and variance of eta at a row, from its active features, the intercept last; how many there are. */
PK_INLINE ptrdiff_t pk_eta_moments(const pk_diagonal *d, const pk_sparse_rows *rows, ptrdiff_t i, pk_active *active,
                                pk_quad *mean, pk_quad *variance)
{
    ptrdiff_t count = 0;
    pk_quad m = {0}, v = {0};
    for (long long e = rows->starts[i]; e < rows->starts[i + 1]; e++) {
        pk_active *a = active + count++;
        a->feature = rows->features[e];
        a->column = rows->columns ? rows->columns[e] : 1;
        a->x = rows->values ? rows->values[e] : 1.0;
        pk_feature_moments(d, a, &m, &v);
    }
    if (d->intercept) {
        pk_active *a = active + count++;
        a->feature = a->column = 0;
        a->x = 1.0;
        pk_feature_moments(d, a, &m, &v);
    }
    *mean = m;
    *variance = v;
    return count;
}

/* Beliefs of the next row's features come from memory while this one is learned. */
PK_INLINE void pk_fetch_row(const pk_diagonal *d, const pk_sparse_rows *rows, ptrdiff_t i)
{
    if (i < rows->n)
        for (long long e = rows->starts[i]; e < rows->starts[i + 1]; e++)
            if (rows->features[e] >= 0)
                __builtin_prefetch(d->beliefs + PK_BELIEF * (ptrdiff_t)rows->features[e], 1);
}

/* Of noise that is learned, of which variances are in units: Student-t; a constant for all hypotheses is left out. */
PK_INLINE double pk_score_gaussian(const pk_diagonal *d, const pk_likelihood *l, int g, double error, double spread,
                                   double *noise, double *slope, double *bend)
{
    double shape = d->shape, rate = shape < 0.0 ? 1.0 : d->rates[g];
    *noise = *slope = *bend = 0.0;
    if (shape < 0.0) {
        *noise = l->a;
        *slope = l->a * error / spread;
        *bend = (*slope * error - 1.0) / spread;
        return -0.5 * (log(spread / l->a) + *slope * error) - PK_LOG_ROOT_2PI;
    }
    if (!(shape > 0.0 && rate > 0.0))
        return 0.0;
    *noise = shape / rate;
    *slope = (2.0 * shape + 1.0) * error / (2.0 * rate * spread + error * error);
    *bend = (*slope * error - 1.0) / spread;
    return -0.5 * log(rate * spread) - (shape + 0.5) * log1p(0.5 * error * error / (rate * spread));
}

#define PK_WIDE 2.0 /* variance from which on a rule of 16 nodes no longer has eight digits */

/* The site of a label of which little is known, as is usual where features are many. The logistic distribution function
 * is a mixture of eight normal ones, whose averages over a Gaussian, and the derivatives of these over its mean, are
 * formulas. In the lower tail by sigmoid(eta) = exp(eta) sigmoid(-eta). */
PK_RARE pk_site pk_wide_label_site(const pk_likelihood *l, double y, double mean, double variance)
{
    double sign = y > 0.5 ? 1.0 : -1.0, centre = sign * mean, total = 0.0, first = 0.0, second = 0.0;
    int tail = centre + variance < 0.0;
    double moved = tail ? -(centre + variance) : centre, lead = tail ? centre + 0.5 * variance : 0.0;
    for (int k = 0; k < 8; k++) {
        double slope = pk_logistic_slopes[k], inverse = 1.0 / sqrt(1.0 / (slope * slope) + variance), z = moved * inverse;
        double density = pk_logistic_shares[k] * inverse * exp(-0.5 * z * z - PK_LOG_ROOT_2PI);
        total += pk_logistic_shares[k] * 0.5 * erfc(-z * PK_ROOT_HALF);
        first += density;
        second -= density * z * inverse;
    }
    if (PK_UNLIKELY(!(total > 1e-100)))
        return pk_general_site(l, y, mean, variance, 1.0);
    first /= total;
    second = second / total - first * first;
    pk_moments found = {lead + log(total), sign * variance * (tail ? 1.0 - first : first), 1.0 + variance * second};
    return pk_site_of_moments(found, mean, variance);
}

/* What row i says under hypothesis g; returns its log density there. */
PK_INLINE double pk_compute_message(const pk_diagonal *d, const pk_likelihood *l, int g, double y, double mean,
                                 double variance, double weight, pk_message *message)
{
    double precision = weight, error = y - mean, log_density, noise = 1.0, slope = 0.0, bend = 0.0;
    if (l->code == PK_GAUSSIAN) {
        log_density = pk_score_gaussian(d, l, g, error, variance + 1.0 / weight, &noise, &slope, &bend);
    } else {
        int wide = l->code == PK_LOGIT && weight == 1.0 && variance > PK_WIDE && variance < 1e4;
        pk_site site = wide ? pk_wide_label_site(l, y, mean, variance) : pk_find_site(l, y, mean, variance, weight);
        precision = site.precision;
        error = site.target - mean;
        log_density = site.log_normalizer;
    }
    double shrink = precision / (1.0 + precision * variance), pull = shrink * error;
    message->precision[g] = precision;
    message->shrink[g] = shrink;
    message->pull[g] = pull;
    message->noise[g] = noise;
    message->slope[g] = l->code == PK_GAUSSIAN ? slope : pull;
    message->bend[g] = l->code == PK_GAUSSIAN ? bend : pull * pull - shrink;
    return log_density;
}

/* Slope of the log evidence over minus the log of the prior's precision, and its expected curvature. */
PK_INLINE void pk_differentiate_prior(const pk_message *message, const pk_active *a, pk_quad *slope, pk_quad *curvature)
{
    pk_quad moved = a->x * a->mean * a->variance * a->prior, wider = a->x * a->x * a->variance * a->variance * a->prior;
    pk_quad share = wider * message->shrink;
    *slope = message->slope * moved + 0.5 * message->bend * wider;
    *curvature = 0.5 * share * share + moved * moved * message->shrink * message->noise;
}

PK_INLINE void pk_step_precision(pk_diagonal *d, ptrdiff_t column, pk_quad *slope, pk_quad *curvature)
{
    pk_quad *precision = (pk_quad *)(d->precision + PK_MEMBERS * column);
    pk_quad *information = (pk_quad *)(d->information + PK_MEMBERS * column);
    *information += *curvature;
    pk_quad step = pk_clamp(PK_HASTE * *slope / (1.0 + *information), -PK_LONGEST_STEP, PK_LONGEST_STEP);
    *precision = pk_clamp(*precision * (2.0 - step) / (2.0 + step), PK_WEAKEST, PK_STRONGEST);
    *slope = *curvature = (pk_quad){0};
}

/* Each column once a row; sums (columns, 2, 4) of slopes and curvatures are 0 before and after. */
PK_INLINE void pk_learn_precisions(pk_diagonal *d, const pk_message *message, const pk_active *active, ptrdiff_t count,
                                   double *sums)
{
    for (ptrdiff_t k = 0; k < count; k++) {
        pk_quad *sum = (pk_quad *)(sums + PK_BELIEF * active[k].column), slope, curvature;
        pk_differentiate_prior(message, active + k, &slope, &curvature);
        sum[0] += slope;
        sum[1] += curvature;
    }
    for (ptrdiff_t k = 0; k < count; k++) {
        pk_quad *sum = (pk_quad *)(sums + PK_BELIEF * active[k].column);
        if (active[k].column && sum[1][0] > 0.0)
            pk_step_precision(d, active[k].column, sum, sum + 1);
        else
            sum[0] = sum[1] = (pk_quad){0};
    }
}

PK_INLINE void pk_learn_features(pk_diagonal *d, const pk_message *message, const pk_active *active, ptrdiff_t count,
                                 pk_quad variance)
{
    for (ptrdiff_t k = 0; k < count; k++) {
        const pk_active *a = active + k;
        pk_quad *belief = (pk_quad *)(d->beliefs + PK_BELIEF * a->feature);
        pk_quad rest = pk_clamp(variance - a->x * a->x * a->variance, 0.0, INFINITY);
        pk_quad added = a->x * a->x * message->precision / (1.0 + message->precision * rest);
        belief[0] = a->fade * belief[0] + added;
        belief[1] = a->fade * belief[1] + added * a->mean + a->x * message->pull * (1.0 + a->variance * added);
        if (d->clocks)
            d->clocks[a->feature] = d->faded;
        d->squares[2 * a->column] += a->x * a->x;
        d->squares[2 * a->column + 1] += 1.0;
    }
}

/* The first row under a flat intercept, which is all that it tells of; its features are those met, the intercept last. */
PK_RARE void pk_learn_flat(pk_diagonal *d, const pk_active *active, ptrdiff_t count, double y, double weight)
{
    pk_quad mean = {0}, variance = {0}, *belief = (pk_quad *)d->beliefs;
    for (ptrdiff_t k = 0; k + 1 < count; k++) {
        mean += active[k].x * active[k].mean;
        variance += active[k].x * active[k].x * active[k].variance;
        d->squares[2 * active[k].column] += active[k].x * active[k].x;
        d->squares[2 * active[k].column + 1] += 1.0;
    }
    belief[0] = weight / (1.0 + weight * variance);
    belief[1] = belief[0] * (y - mean);
    if (d->clocks)
        d->clocks[0] = d->faded;
}

PK_INLINE void pk_fade_all(pk_diagonal *d, double discount)
{
    pk_quad *scores = (pk_quad *)d->scores, *rates = (pk_quad *)d->rates;
    d->faded += log(discount);
    *scores *= discount;
    if (d->shape > 0.0) {
        d->shape *= discount;
        *rates *= discount;
    }
}

/* Learn row i, its belief before it, scores, rates and shape of
 * the noise, and the log density under each hypothesis, written to output (6, 4) or NULL. */
PK_INLINE void pk_learn_sparse_row(pk_diagonal *d, const pk_likelihood *l, const pk_sparse_rows *rows, ptrdiff_t i,
                                   pk_active *active, double *sums, double *output)
{
    pk_quad mean, variance, log_density = {0}, *scores = (pk_quad *)d->scores, *rates = (pk_quad *)d->rates;
    double y = rows->y[i], weight = rows->weights ? rows->weights[i] : 1.0, offset = rows->offsets ? rows->offsets[i] : 0.0;
    if (rows->discounts && rows->discounts[i] < 1.0)
        pk_fade_all(d, rows->discounts[i]);
    ptrdiff_t count = pk_eta_moments(d, rows, i, active, &mean, &variance);
    mean += offset;
    if (output) {
        pk_quad *out = (pk_quad *)output;
        out[0] = mean;
        out[1] = variance;
        out[2] = *scores;
        out[3] = *rates;
        out[4] = (pk_quad){0} + d->shape;
        out[5] = (pk_quad){0};
    }
    if (!(weight > 0.0))
        return;
    if (PK_UNLIKELY(variance[0] == INFINITY)) {
        pk_learn_flat(d, active, count, y - offset, weight);
        return;
    }
    pk_message message = {{0}, {0}, {0}, {0}, {0}, {0}};
    for (int g = 0; g < d->members; g++)
        log_density[g] = pk_compute_message(d, l, g, y, mean[g], variance[g], weight, &message);
    if (output)
        ((pk_quad *)output)[5] = log_density;
    if (d->learns)
        pk_learn_precisions(d, &message, active, count, sums);
    pk_learn_features(d, &message, active, count, variance);
    *scores += log_density;
    if (d->shape >= 0.0) {
        *rates += 0.5 * (y - mean) * (y - mean) / (variance + 1.0 / weight);
        d->shape += 0.5 * weight;
    }
}

/* Learn rows in order; output (n, 6, 4) or NULL; active has room for the longest row and the intercept. */
static void pk_learn_sparse(pk_diagonal *d, const pk_likelihood *l, const pk_sparse_rows *rows, pk_active *active,
                            double *sums, double *output)
{
    pk_fetch_row(d, rows, 0);
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        pk_fetch_row(d, rows, i + 1);
        pk_learn_sparse_row(d, l, rows, i, active, sums, output ? output + PK_OUTPUTS * i : NULL);
    }
}

/* Probabilities of 0 and of 1 (n, 2) where the log odds are Normal, averaged over k hypotheses with these shares. */
static void pk_mix_labels(ptrdiff_t n, ptrdiff_t k, const double *mean, const double *variance, const double *shares,
                          double *probabilities)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double yes = 0.0, no = 0.0, one, other;
        for (ptrdiff_t g = i * k; g < (i + 1) * k; g++)
            if (shares[g] > 0.0) {
                pk_expected_label_one(mean[g], variance[g], &one, &other);
                yes += shares[g] * one;
                no += shares[g] * other;
            }
        probabilities[2 * i] = no;
        probabilities[2 * i + 1] = yes;
    }
}

/* Mean and variance of eta (n, 2, 4) at rows. */
static void pk_predict_sparse(const pk_diagonal *d, const pk_sparse_rows *rows, pk_active *active, double *output)
{
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        pk_quad *out = (pk_quad *)(output + PK_BELIEF * i);
        pk_fetch_row(d, rows, i + 1);
        pk_eta_moments(d, rows, i, active, out, out + 1);
    }
}

#endif
