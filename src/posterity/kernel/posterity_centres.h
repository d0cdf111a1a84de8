/* Where the numbers among many features are centred: of a single row, and the move of the centres after it (as of many
 * rows in posteriors/_centres.py). */
#ifndef POSTERITY_CENTRES_H
#define POSTERITY_CENTRES_H

#include "posterity_diagonal.h"

#define PK_STEADY 8.0       /* centres move when a part of 1 / PK_STEADY of the rows has come */
#define PK_LEAST_SHARE 0.125 /* of the rows that have a number which is centred */

/* Features that are numbers (k), ascending; what is subtracted, sums of what is then left, and rows that have them. */
typedef struct {
    const int *features;
    double *values, *sums, *counts;
    ptrdiff_t k;
    double n_rows, weight, due;
} pk_centres;

/* A product that is rounded before it is added to anything, as Python's are: centres that should be 0 are, in both. */
PK_INLINE double pk_rounded_product(double x, double y)
{
    volatile double product = x * y;
    return product;
}

/* Active features of a row, and the place of each among the numbers, -1 of one that is none. */
typedef struct {
    int *features, *columns;
    double *values;
    ptrdiff_t *places, count;
} pk_entries;

PK_INLINE void pk_add_entry(pk_entries *to, int feature, int column, double value, ptrdiff_t place)
{
    if (value == 0.0)
        return;
    to->features[to->count] = feature;
    to->columns[to->count] = column;
    to->values[to->count] = value;
    to->places[to->count++] = place;
}

/* The row, its features ascending, with numbers less their centres; those that it has not are less than 0. */
static void pk_centre_row(const pk_centres *c, const int *owners, pk_entries *row, pk_entries *to)
{
    ptrdiff_t active = 0, own = 0, j = 0, i = 0;
    to->count = 0;
    for (j = 0; j < c->k; j++)
        active += c->values[j] != 0.0;
    for (i = j = 0; i < row->count; i++) {
        while (j < c->k && c->features[j] < row->features[i])
            j++;
        row->places[i] = j < c->k && c->features[j] == row->features[i] ? j : -1;
        own += row->places[i] >= 0 && c->values[row->places[i]] != 0.0;
    }
    for (i = 0; i < row->count; i++) {
        double centre = row->places[i] >= 0 ? c->values[row->places[i]] : 0.0;
        if (own == active || centre == 0.0)
            pk_add_entry(to, row->features[i], row->columns[i], row->values[i] - centre, row->places[i]);
    }
    for (i = j = 0; own < active && j < c->k; j++) {
        while (i < row->count && row->features[i] < c->features[j])
            i++;
        double given = i < row->count && row->features[i] == c->features[j] ? row->values[i] : 0.0;
        if (c->values[j] != 0.0)
            pk_add_entry(to, c->features[j], owners[c->features[j]], given - c->values[j], j);
    }
}

/* Count a row, and what is left of its numbers. */
static void pk_tally_row(pk_centres *c, const pk_entries *row, const pk_entries *centred, double discount)
{
    c->n_rows += 1.0;
    c->weight = pk_rounded_product(discount, c->weight) + 1.0;
    for (ptrdiff_t j = 0; discount < 1.0 && j < c->k; j++)
        c->sums[j] *= discount;
    for (ptrdiff_t i = 0; i < row->count; i++)
        if (row->places[i] >= 0)
            c->counts[row->places[i]] += 1.0;
    for (ptrdiff_t i = 0; i < centred->count; i++)
        if (centred->places[i] >= 0)
            c->sums[centred->places[i]] += centred->values[i];
}

/* Centre numbers at their means where that is due; the intercept moves, and the mean of eta stays at any row. */
static void pk_move_centres(pk_diagonal *d, pk_centres *c, const int *owners)
{
    if (c->n_rows < c->due)
        return;
    while (c->due <= c->n_rows)
        c->due += fmax(1.0, floor(c->due / PK_STEADY));
    if (!d->intercept || !c->k)
        return;
    pk_quad moved = {0}, variance = {0}, unused = {0}, *belief = (pk_quad *)d->beliefs;
    for (ptrdiff_t j = 0; j < c->k; j++) {
        int dense = c->counts[j] >= fmax(PK_LEAST_SHARE * c->n_rows, 0.5);
        double mean = dense ? c->values[j] + c->sums[j] / fmax(c->weight, 1e-300) : 0.0, by = mean - c->values[j];
        pk_active own = {c->features[j], owners[c->features[j]], 1.0, 1.0, {0}, {0}, {0}};
        if (by == 0.0)
            continue;
        pk_feature_moments(d, &own, &unused, &variance);
        moved += by * own.mean;
        c->values[j] += by;
        c->sums[j] -= pk_rounded_product(c->weight, by);
    }
    pk_active intercept = {0, 0, 1.0, 1.0, {0}, {0}, {0}};
    pk_feature_moments(d, &intercept, &unused, &variance);
    for (int g = 0; g < d->members; g++)
        belief[1][g] = intercept.fade * belief[1][g] + moved[g] / intercept.variance[g];
    belief[0] *= intercept.fade;
    if (d->clocks)
        d->clocks[0] = d->faded;
}

#endif
