/* A prior scale for each coefficient, of few columns, where calls into NumPy would take longer than the work. Its twin is
 * posterity.evidence.local_scales, which has the formulas. */
#ifndef POSTERITY_SCALES_H
#define POSTERITY_SCALES_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "posterity_average.h"
#include "posterity_choice.h"

enum { PK_MOST_SCALES = 64, PK_MOST_POINTS = 96, PK_PARTS = 5 };
#define PK_TINY 2.2250738585072014e-308
#define PK_LONGEST_SHARE (-4.0)
#define PK_LARGEST_SHARE 0.5

typedef double pk_square[PK_MOST_SCALES][PK_MOST_SCALES];

typedef struct {
    ptrdiff_t m, rows;             /* coefficients; rows of the standardised triangle */
    ptrdiff_t terms;               /* neighbouring coefficients form a term: the dummies of a category */
    const ptrdiff_t *ends;         /* (terms) where each ends */
    const double *matrix, *target; /* (rows, m), (rows) */
    double rest, shape, known;     /* 2 b_n without coefficients, a_n; known precision of the noise, or 0 */
    double least;                  /* smallest 2 b_n beyond rounding */
    double smallest, least_share;  /* precisions' floor, relative to a column; LEAST_TOLD */
    double above;                  /* where the lattice ends */
    ptrdiff_t longest, sweeps;
    double tolerance;
    const double *shares;          /* (PK_PARTS), of sum 1 */
    const double *hyperprior;      /* (2, longest) log prior of the scale that terms share at each point of the lattice */
    double alike, apart;           /* log probabilities that the members of a term have one scale, or each its own */
    const double *local;           /* (longest + PK_BEFORE) density of a log scale over the shared one, from -PK_BEFORE */
    double base;                   /* log of the lattice's first variance */
    /* The same density of a scale so many points above the shared one, and of a shared one so many above the scale. */
    double scales[2 * PK_MOST_POINTS], sources[2 * PK_MOST_POINTS];
} pk_scales;

typedef struct {
    double precisions[PK_MOST_SCALES], nodes[PK_PARTS][PK_MOST_SCALES];
    double energy, log_determinant, log_gain, disagreement, n_parameters;
} pk_precisions;

typedef struct {
    double information[PK_MOST_SCALES], centre[PK_MOST_SCALES];
    double energy, log_determinant, least_told;
} pk_cavities;

enum { PK_BEFORE = 5 }; /* a Cauchy's scale has no density so far below the shared one */

/* Cavities of all coefficients: by the inverse of a Cholesky factor. */
static inline void pk_find_cavities(const pk_scales *e, pk_square gram, const double *moment, const double *precision,
                                    pk_cavities *out)
{
    static const double eps = 2.220446049250313e-16;
    const ptrdiff_t m = e->m;
    double mean[PK_MOST_SCALES], half[PK_MOST_SCALES], variance[PK_MOST_SCALES] = {0.0};
    pk_square low, inverse;
    out->log_determinant = 0.0, out->energy = e->rest;
    for (ptrdiff_t i = 0; i < m; ++i) {
        memcpy(low[i], gram[i], (size_t)(i + 1) * sizeof(double));
        low[i][i] += precision[i];
    }
    for (ptrdiff_t k = 0; k < m; ++k) {
        double column[PK_MOST_SCALES];
        low[k][k] = sqrt(low[k][k]);
        for (ptrdiff_t i = k + 1; i < m; ++i) {
            column[i] = low[i][k] /= low[k][k];
            for (ptrdiff_t j = k + 1; j <= i; ++j)
                low[i][j] -= column[i] * column[j];
        }
    }
    for (ptrdiff_t i = 0; i < m; ++i) {
        for (ptrdiff_t j = 0; j < i; ++j)
            inverse[i][j] = 0.0;
        for (ptrdiff_t k = 0; k < i; ++k)
            for (ptrdiff_t j = 0; j <= k; ++j)
                inverse[i][j] -= low[i][k] * inverse[k][j];
        for (ptrdiff_t j = 0; j < i; ++j)
            inverse[i][j] /= low[i][i];
        inverse[i][i] = 1.0 / low[i][i];
        half[i] = 0.0, mean[i] = 0.0;
        for (ptrdiff_t j = 0; j <= i; ++j)
            half[i] += inverse[i][j] * moment[j], variance[j] += inverse[i][j] * inverse[i][j];
        out->log_determinant += 2.0 * log(low[i][i]) - log(precision[i]);
    }
    for (ptrdiff_t i = 0; i < m; ++i)
        for (ptrdiff_t j = 0; j <= i; ++j)
            mean[j] += inverse[i][j] * half[i];
    out->least_told = 0.0;
    for (ptrdiff_t i = 0; i < m; ++i) {
        out->information[i] = fmax(1.0 / variance[i] - precision[i], eps * gram[i][i]);
        out->centre[i] = mean[i] / (variance[i] * out->information[i]);
        out->least_told = fmax(out->least_told, e->least_share * out->information[i]);
        out->energy += precision[i] * mean[i] * mean[i];
    }
    for (ptrdiff_t k = 0; k < e->rows; ++k) {
        double left = e->target[k];
        for (ptrdiff_t j = 0; j < m; ++j)
            left -= e->matrix[k * m + j] * mean[j];
        out->energy += left * left;
    }
    out->energy = fmax(out->energy, e->least);
}

/* The precision that shrinks as much as the average over weights (size, and zeros that fill a register) of the lattice. */
static inline double pk_match_shrinkage(ptrdiff_t size, const double *weight, const double *v, double told, double least)
{
    const double information = fmax(told, least);
    pk_vector some_free = {0.0}, some_kept = {0.0};
    for (ptrdiff_t g = 0; g < size; g += PK_LANES) {
        const pk_vector ratio = information * *(const pk_vector *)(v + g), part = *(const pk_vector *)(weight + g) / (1.0 + ratio);
        some_free += part, some_kept += ratio * part;
    }
    const double free = pk_sum(some_free), kept = pk_sum(some_kept);
    return information * free / fmax(kept, PK_TINY);
}

/* Likelihoods (m, size) of the variances, relative to the largest of each row; returns the sum of the logs of these, over
 * those of the present precisions. */
static inline double pk_weigh_variances(const pk_scales *e, const pk_cavities *c, const double *precision, ptrdiff_t size,
                                        const double *v, double likelihood[][PK_MOST_POINTS])
{
    double gain = 0.0;
    for (ptrdiff_t j = 0; j < e->m; ++j) {
        const double inverse = 1.0 / c->information[j], squared = c->centre[j] * c->centre[j];
        const double own = inverse + 1.0 / precision[j], mine = squared / own;
        const double others = fmax(c->energy - mine, 1e-20 * c->energy), unit = 1.0 / c->energy, all = 1.0 / own;
        pk_vector top = (pk_vector){0} - INFINITY;
        for (ptrdiff_t g = 0; g < size; g += PK_LANES) {
            pk_vector spread = inverse + *(const pk_vector *)(v + g), value = -0.5 * pk_log(spread * all);
            if (e->known > 0.0)
                value -= 0.5 * e->known * (squared / spread - mine);
            else
                value -= e->shape * pk_log((others + squared / spread) * unit);
            *(pk_vector *)(likelihood[j] + g) = value;
            top = pk_max(top, value);
        }
        double most = top[0];
        for (int l = 1; l < PK_LANES; ++l)
            most = fmax(most, top[l]);
        for (ptrdiff_t g = 0; g < size; g += PK_LANES)
            *(pk_vector *)(likelihood[j] + g) = pk_exp(*(pk_vector *)(likelihood[j] + g) - most);
        gain += most;
    }
    return gain;
}

typedef struct {
    double alike[PK_MOST_POINTS], apart[PK_MOST_POINTS]; /* logs, at each scale that is shared */
} pk_shared;

/* Sums (size) over k of weight[k] table[i - k]: of scales on the lattice, what each may have come from, or led to. */
static inline void pk_smooth(ptrdiff_t size, const double *weight, const double *table, double *sums)
{
    for (ptrdiff_t i = 0; i < size; i += PK_LANES) {
        pk_vector sum = {0.0};
        for (ptrdiff_t k = 0; k < size; ++k)
            sum += weight[k] * *(const pk_vector *)(table + i - k);
        *(pk_vector *)(sums + i) = sum;
    }
}

/* Adds to both the logs of the evidence of members (count), whose likelihoods are given, and writes down the smooth ones. */
static inline void pk_add_members(const pk_scales *e, ptrdiff_t size, ptrdiff_t count, double likelihood[][PK_MOST_POINTS],
                                  double smooth[][PK_MOST_POINTS], pk_shared *s)
{
    for (ptrdiff_t j = 0; j < count; ++j) {
        pk_smooth(size, likelihood[j], e->sources + PK_MOST_POINTS, smooth[j]);
        for (ptrdiff_t h = 0; h < size; h += PK_LANES) {
            const pk_vector least = (pk_vector){0} + PK_TINY;
            pk_vector *apart = (pk_vector *)(smooth[j] + h);
            *apart = pk_max(*apart, least);
            *(pk_vector *)(s->alike + h) += pk_log(pk_max(*(pk_vector *)(likelihood[j] + h), least));
            *(pk_vector *)(s->apart + h) += pk_log(*apart);
        }
    }
}

/* From logs to numbers relative to the largest; returns that. */
static inline double pk_exponentiate(ptrdiff_t size, pk_shared *s)
{
    double top = -INFINITY;
    for (ptrdiff_t h = 0; h < size; ++h)
        top = fmax(top, fmax(s->alike[h], s->apart[h]));
    for (ptrdiff_t h = 0; h < size; ++h)
        s->alike[h] = exp(s->alike[h] - top), s->apart[h] = exp(s->apart[h] - top);
    return top;
}

/* From likelihoods to posteriors, in their place, of members whose shared scale has these weights. */
static inline void pk_share_scale(const pk_scales *e, ptrdiff_t size, ptrdiff_t count, const pk_shared *s,
                                  double smooth[][PK_MOST_POINTS], double posterior[][PK_MOST_POINTS])
{
    for (ptrdiff_t j = 0; j < count; ++j) {
        double one[PK_MOST_POINTS], message[PK_MOST_POINTS], sum = 0.0;
        for (ptrdiff_t h = 0; h < size; ++h)
            one[h] = s->apart[h] / smooth[j][h];
        pk_smooth(size, one, e->scales + PK_MOST_POINTS, message);
        for (ptrdiff_t g = 0; g < size; ++g)
            message[g] += s->alike[g] / fmax(posterior[j][g], PK_TINY);
        for (ptrdiff_t g = 0; g < size; ++g)
            sum += posterior[j][g] *= message[g];
        for (ptrdiff_t g = 0; g < size; ++g)
            posterior[j][g] /= sum;
    }
}

/* From likelihoods of coefficients to posteriors, in their place; returns the log evidence of the prior of scales. */
static inline double pk_find_posteriors(const pk_scales *e, ptrdiff_t size, double posterior[][PK_MOST_POINTS])
{
    double smooth[PK_MOST_SCALES][PK_MOST_POINTS], term[PK_MOST_SCALES][PK_MOST_POINTS];
    double smooth_term[PK_MOST_SCALES][PK_MOST_POINTS], gain = 0.0, total = 0.0;
    pk_shared shared, within[PK_MOST_SCALES / 2], *w = within; /* of each term of several */
    for (ptrdiff_t t = 0, first = 0; t < e->terms; first = e->ends[t++]) {
        if (e->ends[t] - first == 1) {
            memcpy(term[t], posterior[first], sizeof term[t]);
            continue;
        }
        for (ptrdiff_t h = 0; h < PK_MOST_POINTS; ++h)
            w->alike[h] = e->alike, w->apart[h] = e->apart;
        pk_add_members(e, size, e->ends[t] - first, posterior + first, smooth + first, w);
        gain += pk_exponentiate(size, w);
        for (ptrdiff_t h = 0; h < PK_MOST_POINTS; ++h)
            term[t][h] = h < size ? w->alike[h] + w->apart[h] : 0.0;
        ++w;
    }
    for (ptrdiff_t h = 0; h < PK_MOST_POINTS; ++h) {
        shared.alike[h] = h < size ? e->hyperprior[h] : 0.0;
        shared.apart[h] = h < size ? e->hyperprior[e->longest + h] : 0.0;
    }
    pk_add_members(e, size, e->terms, term, smooth_term, &shared);
    gain += pk_exponentiate(size, &shared);
    for (ptrdiff_t h = 0; h < size; ++h)
        total += shared.alike[h] + shared.apart[h];
    pk_share_scale(e, size, e->terms, &shared, smooth_term, term);
    w = within;
    for (ptrdiff_t t = 0, first = 0; t < e->terms; first = e->ends[t++]) {
        if (e->ends[t] - first == 1) {
            memcpy(posterior[first], term[t], sizeof term[t]);
            continue;
        }
        for (ptrdiff_t h = 0; h < size; ++h) {
            const double weight = term[t][h] / fmax(w->alike[h] + w->apart[h], PK_TINY);
            w->alike[h] *= weight, w->apart[h] *= weight;
        }
        pk_share_scale(e, size, e->ends[t] - first, w++, smooth + first, posterior + first);
    }
    return gain + log(total);
}

/* Precisions (PK_PARTS, m) of the parts of each posterior, in the order of the variances. */
static inline void pk_split_posteriors(const pk_scales *e, const pk_cavities *c, ptrdiff_t size, const double *v,
                                       double posterior[][PK_MOST_POINTS], pk_precisions *out)
{
    for (ptrdiff_t j = 0; j < e->m; ++j) {
        double low = 0.0;
        for (ptrdiff_t k = 0; k < PK_PARTS; ++k) {
            double part[PK_MOST_POINTS] = {0.0}, start = 0.0, high = k + 1 < PK_PARTS ? low + e->shares[k] : 2.0;
            for (ptrdiff_t g = 0; g < size; ++g) {
                double end = start + posterior[j][g];
                part[g] = fmax(fmin(end, high) - fmax(start, low), 0.0);
                start = end;
            }
            low = high;
            out->nodes[k][j] = c->information[j] < c->least_told
                                   ? out->precisions[j] /* what is not known has no parts */
                                   : pk_match_shrinkage(size, part, v, c->information[j], 0.0);
        }
    }
}

/* How far the means of the nodes are apart, and the number of parameters. */
static inline void pk_compare_nodes(const pk_scales *e, const pk_cavities *c, double unit, pk_precisions *out)
{
    double off[PK_PARTS][PK_MOST_SCALES];
    out->n_parameters = out->disagreement = 0.0;
    for (ptrdiff_t j = 0; j < e->m; ++j) {
        double share[PK_PARTS], average = 0.0;
        for (ptrdiff_t k = 0; k < PK_PARTS; ++k) {
            share[k] = c->information[j] / (c->information[j] + out->nodes[k][j]);
            average += e->shares[k] * share[k];
        }
        for (ptrdiff_t k = 0; k < PK_PARTS; ++k) {
            off[k][j] = (share[k] - average) * c->centre[j];
            out->disagreement += unit * e->shares[k] * out->precisions[j] * off[k][j] * off[k][j];
        }
        out->n_parameters += c->information[j] / (c->information[j] + out->precisions[j]);
    }
    for (ptrdiff_t k = 0; k < PK_PARTS; ++k)
        for (ptrdiff_t i = 0; i < e->rows; ++i) {
            double fit = 0.0;
            for (ptrdiff_t j = 0; j < e->m; ++j)
                fit += e->matrix[i * e->m + j] * off[k][j];
            out->disagreement += unit * e->shares[k] * fit * fit;
        }
}

static inline void pk_fill_tables(pk_scales *e)
{
    for (ptrdiff_t off = 0; off < 2 * PK_MOST_POINTS; ++off) {
        const ptrdiff_t above = off - PK_MOST_POINTS + PK_BEFORE, below = PK_MOST_POINTS - off + PK_BEFORE;
        e->scales[off] = above < 0 || above >= e->longest + PK_BEFORE ? 0.0 : e->local[above];
        e->sources[off] = below < 0 || below >= e->longest + PK_BEFORE ? 0.0 : e->local[below];
    }
}

/* The log of a precision: where it is, what it is to become, and by how much that is more; and in the turn before. */
typedef struct {
    double place, wanted, move, last_wanted, last_move;
} pk_turn;

static inline double pk_note_turn(pk_turn *one, double wanted)
{
    one->last_wanted = one->wanted, one->last_move = one->move;
    one->wanted = wanted, one->move = wanted - one->place;
    return one->move;
}

/* The share of the way back to the last turn that would leave least of the moves: less than 0 where all go on. */
static inline double pk_find_share(const pk_turn *turn, ptrdiff_t m)
{
    double both = 0.0, square = 0.0;
    for (ptrdiff_t j = 0; j < m; ++j) {
        const double off = turn[j].move - turn[j].last_move;
        both += turn[j].move * off, square += off * off;
    }
    return square > 0.0 ? fmin(fmax(both / square, PK_LONGEST_SHARE), PK_LARGEST_SHARE) : 0.0;
}

/* Precisions and cavities in turns. */
static void pk_find_precisions(pk_scales *e, pk_precisions *out)
{
    const ptrdiff_t m = e->m;
    double moment[PK_MOST_SCALES] = {0.0}, v[PK_MOST_POINTS], posterior[PK_MOST_SCALES][PK_MOST_POINTS], unit = 0.0;
    pk_square gram = {{0.0}};
    pk_cavities cavities;
    double reach = 0.0, last_change = 0.0;
    pk_turn turn[PK_MOST_SCALES] = {{0.0}};
    ptrdiff_t size = 1;
    pk_fill_tables(e);
    for (ptrdiff_t k = 0; k < e->rows; ++k)
        for (ptrdiff_t i = 0; i < m; ++i) {
            moment[i] += e->matrix[k * m + i] * e->target[k];
            for (ptrdiff_t j = 0; j < m; ++j)
                gram[i][j] += e->matrix[k * m + i] * e->matrix[k * m + j];
        }
    for (ptrdiff_t g = 0; g < PK_MOST_POINTS; ++g)
        v[g] = exp(e->base + (double)g);
    for (ptrdiff_t j = 0; j < m; ++j)
        out->precisions[j] = fmax((double)m, e->smallest * gram[j][j]), turn[j].place = log(out->precisions[j]);
    for (ptrdiff_t sweep = 0; sweep < e->sweeps; ++sweep) {
        double largest = 0.0, change = 0.0, share;
        pk_find_cavities(e, gram, moment, out->precisions, &cavities);
        unit = e->known > 0.0 ? e->known : 2.0 * e->shape / cavities.energy;
        for (ptrdiff_t j = 0; j < m; ++j)
            largest = fmax(largest, cavities.centre[j] * cavities.centre[j] * unit + 1.0 / cavities.information[j]);
        reach = fmax(reach, fmin(log(largest) - e->base + e->above, (double)e->longest - 1.0));
        size = (ptrdiff_t)reach + 1;
        out->log_gain = pk_weigh_variances(e, &cavities, out->precisions, size, v, posterior);
        for (ptrdiff_t j = 0; j < m; ++j) { /* the last point counts in part, what fills its register not at all */
            posterior[j][size - 1] *= reach - (double)(size - 1);
            for (ptrdiff_t g = size; g < PK_MOST_POINTS; ++g)
                posterior[j][g] = 0.0;
        }
        out->log_gain += pk_find_posteriors(e, size, posterior);
        for (ptrdiff_t j = 0; j < m; ++j) {
            double matched =
                pk_match_shrinkage(size, posterior[j], v, cavities.information[j], cavities.least_told);
            out->precisions[j] = fmax(matched, e->smallest * gram[j][j]);
            change = fmax(change, fabs(pk_note_turn(turn + j, log(out->precisions[j]))));
        }
        if (change < e->tolerance || sweep + 1 == e->sweeps)
            break;
        share = sweep && change < last_change ? pk_find_share(turn, m) : 0.0, last_change = change;
        for (ptrdiff_t j = 0; j < m; ++j) {
            turn[j].place = turn[j].wanted - share * (turn[j].wanted - turn[j].last_wanted);
            out->precisions[j] = fmax(exp(turn[j].place), e->smallest * gram[j][j]);
        }
    }
    out->energy = cavities.energy, out->log_determinant = cavities.log_determinant;
    pk_split_posteriors(e, &cavities, size, v, posterior, out);
    pk_compare_nodes(e, &cavities, unit, out);
}

#endif
