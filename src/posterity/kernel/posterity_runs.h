/* Runs: hypotheses of where the last change was, each a triangle that learns every row since. See posteriors/banked_runs.py,
 * which does the same a row at a time and says why. */
#ifndef POSTERITY_RUNS_H
#define POSTERITY_RUNS_H

#include "posterity_members.h"

/* `size` runs, oldest first, in room for `capacity`; bank (capacity + 1, q, ld) has the triangle of all rows first. */
typedef struct {
    double *bank, *probability, *residual_df, *learned;
    long long *first, *change;
    ptrdiff_t size, capacity, row;
    double seen, log_evidence;
} pk_runs;

/* What a new run starts from, and when that has to be made anew: never where count is 0. NULL: no run begins. */
typedef struct {
    const double *triangle;
    double residual_df, count, variance, stale;
} pk_start;

/* known_precision is 0 where the noise is learned. Of `most` runs those below `smallest` go, as in kept_runs. A run of at least
 * `judging` rows takes a row for an outlier, of `outlier_scale` times the noise and of log probability `log_outlier`. */
typedef struct {
    double known_precision, shape, rate, smallest, negligible, room, judging, outlier_scale, log_outlier;
    ptrdiff_t most, between_looks;
} pk_run_rules;

/* What was believed before row i of a call, and its log density: rows of `most` numbers, those from error on NULL where nobody
 * asked. */
typedef struct {
    double *hazard, *log_density, *probability, *error, *leverage, *residual_df, *residual;
    long long *size, *first, *begun, *earlier;
    ptrdiff_t most, known;
} pk_run_trace;

/* What a row of this weight adds to a run's log evidence, as added_evidence; NaN where only that can say. */
PK_INLINE double pk_added_evidence(const pk_run_rules *rules, double weight, double error, double leverage, double residual_df,
                                   double residual, int only)
{
    double spread = 1.0 + weight * leverage, gained = weight * error * error / spread;
    if (rules->known_precision > 0.0) {
        if (leverage == INFINITY)
            return only ? 0.0 : NAN;
        double precision = rules->known_precision;
        return -0.5 * (log(spread) + precision * gained - weight * (log(precision) - 1.8378770664093454836));
    }
    double shape = 0.5 * residual_df + rules->shape, twice_rate = residual + 2.0 * rules->rate;
    if (leverage == INFINITY || shape <= 0.0)
        return only ? 0.0 : NAN;
    gained /= twice_rate;
    if (weight == 1.0)
        return pk_log_t_constant(2.0 * shape) - (shape + 0.5) * log1p(gained) - 0.5 * log(twice_rate * spread / (2.0 * shape));
    return lgamma(shape + 0.5 * weight) - lgamma(shape) - (shape + 0.5 * weight) * log1p(gained)
           - 0.5 * (weight * (log(twice_rate) + 1.1447298858494001741) + log(spread));
}

/* By how much a row is more probable as an outlier, log, in a run that gives it the log density `plain`; 0 where it is not.
 * One still further off has noise of the size of its error: else a gross one would be a change. */
PK_INLINE double pk_gain_of_outlier(const pk_run_rules *rules, double plain, double weight, double error, double leverage,
                                    double residual_df, double residual)
{
    double known = rules->known_precision, count = residual_df + 2.0 * rules->shape;
    double variance = known > 0.0 ? 1.0 / known : (residual + 2.0 * rules->rate) / count;
    double size = fabs(error) / sqrt(variance * (1.0 + leverage));
    double scale = size > rules->outlier_scale ? size : rules->outlier_scale;
    double outlier = pk_added_evidence(rules, weight, error / scale, leverage, residual_df, residual, 1)
                     - weight * log(scale) + rules->log_outlier;
    return outlier > plain ? outlier - plain : 0.0;
}

/* What lane l of a vector of runs, or the last run, has. */
#define PK_RUN(l) (v + (l) < s->size ? v + (l) : s->size - 1)
#define PK_RUN_ERROR(l) error[PK_RUN(l)]
#define PK_RUN_LEVERAGE(l) leverage[PK_RUN(l)]
#define PK_RUN_PROBABILITY(l) s->probability[PK_RUN(l)]
#define PK_RUN_DF(l) s->residual_df[PK_RUN(l)]
#define PK_RUN_RESIDUAL(l) s->bank[((PK_RUN(l) + 1) * shape.q + shape.p) * shape.ld + shape.p]

/* Score (size) of each run, its log probability and pk_added_evidence, of a row of weight 1 where the noise is learned: side
 * by side. 0 where only those can say. */
static int pk_score_runs(const pk_runs *s, const pk_run_rules *rules, const double *error, const double *leverage,
                         double *score, pk_shape shape)
{
    for (ptrdiff_t v = 0; v < s->size; v += PK_LANES) {
        pk_vector e = {PK_EACH_LANE(PK_RUN_ERROR)}, spread = 1.0 + (pk_vector){PK_EACH_LANE(PK_RUN_LEVERAGE)};
        pk_vector probability = {PK_EACH_LANE(PK_RUN_PROBABILITY)}, root = {PK_EACH_LANE(PK_RUN_RESIDUAL)};
        pk_vector df = (pk_vector){PK_EACH_LANE(PK_RUN_DF)} + 2.0 * rules->shape;
        pk_vector square = e * e, rate = spread * (root * root + 2.0 * rules->rate);
        if (pk_any(~((df > 0.0) & (rate > 1e-280) & (rate < 1e280) & (square < 1e280) & (probability > 1e-300))))
            return 0;
        pk_vector log_density = pk_log(probability) + pk_log_t_constants(df) - (0.5 * df + 0.5) * pk_log_1p(square / rate)
                         - 0.5 * pk_log(rate / df);
        for (ptrdiff_t l = 0; l < PK_LANES && v + l < s->size; l++)
            score[v + l] = log_density[l];
    }
    return 1;
}

/* 1 / the mean of the noise's precision. */
PK_INLINE double pk_variance_of_runs(const pk_runs *s, const pk_run_rules *rules, pk_shape shape)
{
    double precision = 0.0;
    if (rules->known_precision > 0.0)
        return 1.0 / rules->known_precision;
    for (ptrdiff_t k = 0; k < s->size; k++) {
        double root = s->bank[((k + 1) * shape.q + shape.p) * shape.ld + shape.p], count = s->residual_df[k] + 2.0 * rules->shape;
        if (s->size == 1 && count <= 0.0)
            return INFINITY;
        precision += s->probability[k] * count / (root * root + 2.0 * rules->rate);
    }
    return precision > 0.0 ? 1.0 / precision : INFINITY;
}

PK_INLINE long long pk_median_change(const pk_runs *s)
{
    double below = 0.0;
    ptrdiff_t k = 0;
    if (s->probability[0] >= 0.5)
        return s->change[0];
    for (; k < s->size - 1; k++) {
        below += s->probability[k];
        if (below >= 0.5)
            break;
    }
    return s->change[k];
}

static void pk_begin_run(pk_runs *s, const pk_start *start, double hazard, pk_run_trace *trace, pk_shape shape)
{
    ptrdiff_t k = s->size++, size = shape.q * shape.ld;
    trace->begun[trace->known] = s->row;
    trace->earlier[trace->known] = pk_median_change(s);
    memcpy(s->bank + (k + 1) * size, start->triangle, (size_t)size * sizeof(double));
    for (ptrdiff_t i = 0; i < k; i++)
        s->probability[i] *= 1.0 - hazard;
    s->first[k] = s->row;
    s->residual_df[k] = start->residual_df;
    s->learned[k] = 0.0;
    s->probability[k] = hazard;
}

/* Keep the runs that are marked, in order. */
static void pk_keep_runs(pk_runs *s, const unsigned char *kept, pk_shape shape)
{
    ptrdiff_t left = 0, size = shape.q * shape.ld;
    double sum = 0.0;
    for (ptrdiff_t k = 0; k < s->size; k++) {
        if (!kept[k])
            continue;
        if (left < k) {
            memcpy(s->bank + (left + 1) * size, s->bank + (k + 1) * size, (size_t)size * sizeof(double));
            s->first[left] = s->first[k];
            s->change[left] = s->change[k];
            s->probability[left] = s->probability[k];
            s->residual_df[left] = s->residual_df[k];
            s->learned[left] = s->learned[k];
        }
        sum += s->probability[left++];
    }
    s->size = left;
    for (ptrdiff_t k = 0; k < left; k++)
        s->probability[k] /= sum;
}

static void pk_drop_runs(pk_runs *s, const pk_run_rules *rules, unsigned char *kept, pk_shape shape)
{
    ptrdiff_t k = s->size, many = 0;
    if (k <= rules->most && s->row % rules->between_looks)
        return;
    for (ptrdiff_t i = 0; i < k; i++)
        many += kept[i] = s->probability[i] >= rules->smallest;
    if (k <= rules->most && (double)(k - many) <= rules->negligible * (double)k)
        return;
    many += !kept[k - 1];
    kept[k - 1] = 1;
    if (many > rules->most) {
        ptrdiff_t left = rules->most - (ptrdiff_t)(rules->room * (double)rules->most);
        for (left = left > 2 ? left : 2; many > left; many--) {
            ptrdiff_t least = -1;
            for (ptrdiff_t i = 0; i < k - 1; i++)
                if (kept[i] && (least < 0 || s->probability[i] < s->probability[least]))
                    least = i;
            kept[least] = 0;
        }
    }
    pk_keep_runs(s, kept, shape);
}

/* Largest of score (k), whose exponentials relative to it become likelihood (k), and their sum total. */
PK_INLINE double pk_exponentiate(const double *score, double *likelihood, double *total, ptrdiff_t k)
{
    double best = -INFINITY;
    for (ptrdiff_t b = 0; b < k; b++)
        best = score[b] > best ? score[b] : best;
    *total = 0.0;
    for (ptrdiff_t b = 0; b < k; b++)
        *total += likelihood[b] = exp(score[b] - best);
    return best;
}

/* gain (k) of each run as pk_gain_of_outlier, given the log densities score - log probability; returns whether any is one. */
static int pk_find_outliers(const pk_runs *s, const pk_run_rules *rules, double weight, const double *error,
                            const double *leverage, double *score, double *gain, pk_shape shape)
{
    int any = 0;
    for (ptrdiff_t b = 0; b < s->size; b++) {
        double root = s->bank[((b + 1) * shape.q + shape.p) * shape.ld + shape.p];
        gain[b] = 0.0;
        if (!(s->learned[b] >= rules->judging) || !(leverage[b] < INFINITY))
            continue;
        gain[b] = pk_gain_of_outlier(rules, score[b] - log(s->probability[b]), weight, error[b], leverage[b], s->residual_df[b],
                                     root * root);
        score[b] += gain[b];
        any |= gain[b] > 0.0;
    }
    return any;
}

/* Learn row i; 0, and nothing is learned, where its densities are not plain numbers. work (5, capacity) and row (ld).
 * A run of which the row is an outlier does not learn it; what was predicted of the row knows of no outliers. */
static int pk_learn_in_runs(pk_runs *s, const pk_rows *rows, ptrdiff_t i, const pk_run_rules *rules, pk_run_trace *trace,
                            double *work, double *row, pk_shape shape)
{
    double *error = work, *leverage = error + s->capacity, *score = leverage + s->capacity;
    double *likelihood = score + s->capacity, *gain = likelihood + s->capacity, best, total;
    double weight = rows->weights ? rows->weights[i] : 1.0, root = sqrt(weight);
    ptrdiff_t k = s->size, size = shape.q * shape.ld;
    pk_rows without_target = *rows;
    without_target.Y = NULL;
    for (ptrdiff_t b = 0; b < k; b++) {
        pk_load_row(row, &without_target, i, 1.0, shape);
        leverage[b] = pk_predict_row(s->bank + (b + 1) * size, row, shape);
        error[b] = rows->Y[i] + row[shape.p];
    }
    int scored = weight == 1.0 && rules->known_precision == 0.0 && pk_score_runs(s, rules, error, leverage, score, shape);
    for (ptrdiff_t b = 0; b < k; b++) {
        double residual = s->bank[((b + 1) * shape.q + shape.p) * shape.ld + shape.p];
        if (!scored)
            score[b] = log(s->probability[b])
                       + pk_added_evidence(rules, weight, error[b], leverage[b], s->residual_df[b], residual * residual, k == 1);
        if (isnan(score[b]))
            return 0;
    }
    best = pk_exponentiate(score, likelihood, &total, k);
    if (!isfinite(best))
        return 0;
    trace->log_density[i] = best + log(total);
    s->log_evidence += trace->log_density[i];
    if (pk_find_outliers(s, rules, weight, error, leverage, score, gain, shape))
        pk_exponentiate(score, likelihood, &total, k);
    for (ptrdiff_t b = 0; b < k; b++) {
        double *T = s->bank + (b + 1) * size, residual = T[shape.p * (shape.ld + 1)];
        ptrdiff_t at = i * trace->most + b;
        if (trace->error) {
            trace->error[at] = error[b];
            trace->leverage[at] = leverage[b];
            trace->residual_df[at] = s->residual_df[b];
            trace->residual[at] = residual * residual;
        }
        s->probability[b] = likelihood[b] / total;
        if (gain[b] > 0.0)
            continue;
        s->residual_df[b] += weight;
        s->learned[b] += weight;
        pk_load_row(row, rows, i, root, shape);
        pk_append_row(T, row, shape);
    }
    pk_load_row(row, rows, i, root, shape);
    pk_append_row(s->bank, row, shape);
    s->seen += weight;
    s->row++;
    return 1;
}

/* Whether a new run still starts so. */
static int pk_is_still_valid(const pk_runs *s, const pk_start *start, const pk_run_rules *rules, pk_shape shape)
{
    return start->count == 0.0
           || (s->seen <= (1.0 + start->stale) * start->count
               && fabs(pk_variance_of_runs(s, rules, shape) - start->variance) <= start->stale * start->variance);
}

/* Learn rows from `from` on for as long as `start` serves, the first whether it does or not; returns the row at which it
 * ended. change of new runs is known + their number, of which trace says when they began and after which change. */
static ptrdiff_t pk_learn_runs(pk_runs *s, const pk_rows *rows, ptrdiff_t from, const double *hazards, const pk_start *start,
                               const pk_run_rules *rules, pk_run_trace *trace, double *work, double *row,
                               unsigned char *kept, long long known, pk_shape shape)
{
    ptrdiff_t i = from;
    for (; i < rows->n; i++) {
        double hazard = s->seen > 0.0 ? hazards[i] : 0.0;
        if (hazard > 0.0 && i > from && !(start->triangle && pk_is_still_valid(s, start, rules, shape)))
            break;
        if (!start->triangle)
            hazard = 0.0;
        trace->hazard[i] = hazard;
        trace->size[i] = s->size;
        memcpy(trace->first + i * trace->most, s->first, (size_t)s->size * sizeof(long long));
        memcpy(trace->probability + i * trace->most, s->probability, (size_t)s->size * sizeof(double));
        if (hazard > 0.0) {
            pk_begin_run(s, start, hazard, trace, shape);
            s->change[s->size - 1] = known + trace->known++;
        }
        if (!pk_learn_in_runs(s, rows, i, rules, trace, work, row, shape)) {
            if (hazard > 0.0) { /* as it was */
                s->size--;
                trace->known--;
                memcpy(s->probability, trace->probability + i * trace->most, (size_t)s->size * sizeof(double));
            }
            break;
        }
        pk_drop_runs(s, rules, kept, shape);
    }
    return i;
}

#endif
