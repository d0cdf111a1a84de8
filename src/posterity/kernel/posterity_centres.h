/* Rows learned as they came: their numbers are centred, and the centres move between rows where that is due (as those of
 * rows with pairs do in posteriors/_centres.py). */
#ifndef POSTERITY_CENTRES_H
#define POSTERITY_CENTRES_H

#include "posterity_diagonal.h"

#define PK_STEADY 8.0       /* centres move when a part of 1 / PK_STEADY of the rows has come */
#define PK_CENTRED_SHARE 0.125 /* of the rows that have a number which is centred */
#define PK_FULL_MATRIX 0.5  /* of the entries of a matrix that are not 0, where its features are numbers */

/* Features that are numbers (k), ascending; what is subtracted, sums of what is then left, and rows that have them.
 *
 * The places of those that are centred (n_active), and the last row that had each of them (k). Sums are so many times
 * ``faded`` as large; ``entries``: the sum of counts. */
typedef struct {
    const int *features, *owners;
    double *values, *sums, *counts;
    ptrdiff_t *active, *last, k, n_active;
    double n_rows, weight, due, faded, entries;
    int in_matrix;
} pk_centres;

/* Active features of a row, and the place of each among the numbers, -1 of one that is none. */
typedef struct {
    int *features, *columns;
    double *values;
    ptrdiff_t *places;
    long long starts[2];
} pk_entries;

/* A product that is rounded before it is added to anything, as Python's are: centres that should be 0 are, in both. */
PK_INLINE double pk_rounded_product(double x, double y)
{
    volatile double product = x * y;
    return product;
}

PK_INLINE ptrdiff_t pk_find_number(const pk_centres *c, int feature)
{
    ptrdiff_t low = 0, high = c->k;
    while (low < high) {
        ptrdiff_t middle = (low + high) / 2;
        if (c->features[middle] < feature)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->k && c->features[low] == feature ? low : -1;
}

PK_INLINE void pk_add_entry(pk_entries *to, int feature, int column, double value, ptrdiff_t place)
{
    if (value == 0.0)
        return;
    to->features[to->starts[1]] = feature;
    to->columns[to->starts[1]] = column;
    to->values[to->starts[1]] = value;
    to->places[to->starts[1]++] = place;
}

/* Row i with numbers less their centres; those that it has not are less than 0, and come last. */
static void pk_centre_row(const pk_centres *c, const pk_sparse_rows *rows, ptrdiff_t i, pk_entries *to)
{
    ptrdiff_t own = 0;
    to->starts[1] = 0;
    for (long long e = rows->starts[i]; e < rows->starts[i + 1]; e++) {
        ptrdiff_t place = pk_find_number(c, rows->features[e]);
        double value = rows->values ? rows->values[e] : 1.0;
        if (place >= 0 && c->values[place] != 0.0) {
            c->last[place] = i;
            value -= c->values[place];
            own++;
        }
        pk_add_entry(to, rows->features[e], rows->columns ? rows->columns[e] : 1, value, place);
    }
    for (ptrdiff_t a = 0; own < c->n_active && a < c->n_active; a++) {
        ptrdiff_t j = c->active[a];
        if (c->last[j] != i)
            pk_add_entry(to, c->features[j], c->owners[c->features[j]], -c->values[j], j);
    }
}

PK_INLINE int pk_is_dense(const pk_centres *c, ptrdiff_t j)
{
    if (c->in_matrix && c->entries < PK_FULL_MATRIX * c->n_rows * (double)c->k)
        return 0;
    return c->counts[j] >= fmax(PK_CENTRED_SHARE * c->n_rows, 0.5);
}

static void pk_list_active(pk_centres *c)
{
    c->n_active = 0;
    for (ptrdiff_t j = 0; j < c->k; j++)
        if (c->values[j] != 0.0)
            c->active[c->n_active++] = j;
}

/* Count a row of positive weight, as it came. The first one's numbers are centred where they are. */
static void pk_count_row(pk_centres *c, const pk_sparse_rows *rows, ptrdiff_t i, int intercept)
{
    int first = c->n_rows == 0.0 && intercept;
    c->n_rows += 1.0;
    for (int pass = 0; pass <= first; pass++)
        for (long long e = rows->starts[i]; c->k && e < rows->starts[i + 1]; e++) {
            ptrdiff_t place = pk_find_number(c, rows->features[e]);
            if (place >= 0 && pass)
                c->values[place] = !pk_is_dense(c, place) ? c->values[place] : rows->values ? rows->values[e] : 1.0;
            else if (place >= 0) {
                c->counts[place] += 1.0;
                c->entries += 1.0;
            }
        }
    if (first)
        pk_list_active(c);
}

static void pk_settle_sums(pk_centres *c)
{
    for (ptrdiff_t j = 0; c->faded != 1.0 && j < c->k; j++)
        c->sums[j] *= c->faded;
    c->faded = 1.0;
}

/* Add what is left of a row's numbers. */
static void pk_tally_row(pk_centres *c, const pk_entries *centred, double weight, double discount)
{
    c->weight = pk_rounded_product(discount, c->weight) + weight;
    c->faded *= discount;
    if (c->faded < 1e-100)
        pk_settle_sums(c);
    for (ptrdiff_t e = 0; e < centred->starts[1]; e++)
        if (centred->places[e] >= 0)
            c->sums[centred->places[e]] += pk_rounded_product(weight, centred->values[e]) / c->faded;
}

/* Centre numbers at their means where that is due; the intercept moves, and the mean of eta stays at any row. */
static void pk_move_centres(pk_diagonal *d, pk_centres *c)
{
    if (c->n_rows < c->due)
        return;
    while (c->due <= c->n_rows)
        c->due += fmax(1.0, floor(c->due / PK_STEADY));
    if (!d->intercept || !c->k)
        return;
    pk_settle_sums(c);
    pk_quad moved = {0}, variance = {0}, unused = {0}, *belief = (pk_quad *)d->beliefs;
    for (ptrdiff_t j = 0; j < c->k; j++) {
        double mean = pk_is_dense(c, j) ? c->values[j] + c->sums[j] / fmax(c->weight, 1e-300) : 0.0;
        double by = mean - c->values[j];
        pk_active own = {c->features[j], c->owners[c->features[j]], 1.0, 1.0, {0}, {0}, {0}};
        if (by == 0.0)
            continue;
        pk_feature_moments(d, &own, &unused, &variance);
        moved += by * own.mean;
        c->values[j] += by;
        c->sums[j] -= pk_rounded_product(c->weight, by);
    }
    pk_list_active(c);
    pk_active intercept = {0, 0, 1.0, 1.0, {0}, {0}, {0}};
    pk_feature_moments(d, &intercept, &unused, &variance);
    for (int g = 0; g < d->members; g++)
        belief[1][g] = intercept.fade * belief[1][g] + moved[g] / intercept.variance[g];
    belief[0] *= intercept.fade;
    if (d->clocks)
        d->clocks[0] = d->faded;
}

/* One row, as it is centred. */
PK_INLINE pk_sparse_rows pk_one_row(const pk_entries *row)
{
    return (pk_sparse_rows){row->starts, row->features, row->columns, row->values, 0, 0, 0, 0, 1};
}

/* Learn rows as they came, in order; as pk_learn_sparse, with room in ``centred`` for one row. */
static void pk_learn_given(pk_diagonal *d, const pk_likelihood *l, const pk_sparse_rows *rows, pk_centres *c,
                           pk_entries *centred, pk_active *active, double *sums, double *output)
{
    pk_sparse_rows one = pk_one_row(centred);
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        double weight = rows->weights ? rows->weights[i] : 1.0, discount = rows->discounts ? rows->discounts[i] : 1.0;
        one.y = rows->y + i;
        one.weights = &weight;
        one.discounts = &discount;
        one.offsets = rows->offsets ? rows->offsets + i : NULL;
        pk_fetch_row(d, rows, i + 1);
        if (weight > 0.0)
            pk_count_row(c, rows, i, d->intercept);
        pk_centre_row(c, rows, i, centred);
        pk_learn_sparse_row(d, l, &one, 0, active, sums, output ? output + PK_OUTPUTS * i : NULL);
        pk_tally_row(c, centred, weight, fmin(discount, 1.0));
        pk_move_centres(d, c);
    }
    pk_settle_sums(c);
}

/* Mean and variance of eta (n, 2, 4) at rows as they came; features may be -1. */
static void pk_predict_given(const pk_diagonal *d, const pk_sparse_rows *rows, const pk_centres *c, pk_entries *centred,
                             pk_active *active, double *output)
{
    pk_sparse_rows one = pk_one_row(centred);
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        pk_quad *out = (pk_quad *)(output + PK_BELIEF * i);
        pk_fetch_row(d, rows, i + 1);
        pk_centre_row(c, rows, i, centred);
        pk_eta_moments(d, &one, 0, active, out, out + 1);
    }
}

#endif
