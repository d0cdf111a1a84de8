/* Walkers over sets of strong features, which draw them from their posterior: what a set is worth, and steps that leave
 * the posterior as it is. The formulas are in evidence/relevance_state.py, the twin in tests/oracles/twins/relevance.py.
 * The twin takes each step of all walkers at once: so a step draws the random numbers of all before the first takes it. */
#ifndef POSTERITY_RELEVANCE_H
#define POSTERITY_RELEVANCE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <numpy/random/bitgen.h>

#include "posterity_lanes.h"

#define PK_SMALLEST_RATE 1e-300

typedef struct {
    ptrdiff_t m, rank, most;             /* features, directions, largest size of a set */
    ptrdiff_t n_places[2];               /* on the grids of background and slab */
    const double *directions, *turned;   /* (rank, m) and (m, rank) */
    const double *projections;           /* (rank) */
    const double *left;                  /* (backgrounds, rank) */
    const double *log_determinants;      /* (backgrounds) */
    const double *lengths, *products;    /* (backgrounds, m) diagonal of H, and A'C_0^-1 z */
    const double *log_sizes;             /* (most + 2) */
    const double *slabs;                 /* log variances */
    const double *log_priors[2];         /* of places on both grids */
    double known, shape, full_energy, smallest_energy;
    double **rows;                       /* (backgrounds, m) those of H, NULL until they are first needed */
    /* Of the set that was solved last: root of the precision (most, most), its diagonal inverted, and (most). */
    double *low, *mean, *whitened;
    double *inner;                       /* (most, m + most) room */
    double *gains, *pulls;               /* (m) room for whole vectors */
    bitgen_t *random;
    ptrdiff_t count;                     /* walkers; of each: */
    ptrdiff_t *members, *sizes;          /* (count, most) in any order, and how many */
    ptrdiff_t *places;                   /* (count, 2) on both grids */
    double *values, *rates;              /* (count) log evidence, and (count, m) */
    ptrdiff_t *proposed;                 /* (most + 1) room */
    double *uniforms;                    /* (3, count) room */
} pk_walk;

typedef struct {
    const ptrdiff_t *members;
    ptrdiff_t size, background, slab;
    double value, energy;
} pk_set;

static pk_set pk_set_of(const pk_walk *w, ptrdiff_t walker)
{
    const ptrdiff_t *places = w->places + 2 * walker;
    return (pk_set){w->members + walker * w->most, w->sizes[walker], places[0], places[1], w->values[walker], 0.0};
}

/* A row of H; NULL where there is no memory. */
static const double *pk_row_of_set(pk_walk *w, ptrdiff_t background, ptrdiff_t feature)
{
    double **row = w->rows + background * w->m + feature;
    if (*row || !(*row = calloc((size_t)w->m, sizeof(double))))
        return *row;
    for (ptrdiff_t d = 0; d < w->rank; d++) {
        const double *direction = w->directions + d * w->m;
        double share = direction[feature] * w->left[background * w->rank + d];
        for (ptrdiff_t j = 0; j < w->m; j++)
            (*row)[j] += share * direction[j];
    }
    return *row;
}

/* The log evidence's term in the energy, which is twice the noise's rate. */
static double pk_fit_energy(const pk_walk *w, double energy)
{
    return w->known > 0.0 ? -0.5 * w->known * energy : -w->shape * log(energy);
}

/* Twice the noise's rate, where the members' coefficients are `mean`. */
static double pk_find_energy(pk_walk *w, const pk_set *set, double precision)
{
    const double *left = w->left + set->background * w->rank;
    double *off = w->gains, energy = 0.0, squares = 0.0; /* rank <= m */
    memcpy(off, w->projections, (size_t)w->rank * sizeof(double));
    for (ptrdiff_t i = 0; i < set->size; i++) {
        const double *direction = w->turned + set->members[i] * w->rank;
        for (ptrdiff_t d = 0; d < w->rank; d++)
            off[d] -= w->mean[i] * direction[d];
        squares += w->mean[i] * w->mean[i];
    }
    for (ptrdiff_t d = 0; d < w->rank; d++)
        energy += left[d] * off[d] * off[d];
    return fmax(energy + precision * squares + w->full_energy, w->smallest_energy);
}

/* Finds value and energy of a set; returns 0, or -1 where there is no memory. */
static int pk_solve_set(pk_walk *w, pk_set *set)
{
    const ptrdiff_t k = set->size, *members = set->members;
    double precision = exp(-w->slabs[set->slab]), log_determinant = w->log_determinants[set->background];
    for (ptrdiff_t i = 0; i < k; i++) {
        const double *row = pk_row_of_set(w, set->background, members[i]);
        double *low = w->low + i * w->most, product = w->products[set->background * w->m + members[i]];
        if (!row)
            return -1;
        for (ptrdiff_t j = 0; j <= i; j++) {
            const double *other = w->low + j * w->most;
            double sum = row[members[j]];
            for (ptrdiff_t a = 0; a < j; a++)
                sum -= low[a] * other[a];
            /* What is left of a variance is no smaller than the prior's part, but for rounding. */
            low[j] = j < i ? sum * other[j] : 1.0 / sqrt(fmax(sum, 0.0) + precision);
        }
        for (ptrdiff_t a = 0; a < i; a++)
            product -= low[a] * w->whitened[a];
        w->whitened[i] = product * low[i];
        log_determinant -= 2.0 * log(low[i]);
    }
    for (ptrdiff_t i = k - 1; i >= 0; i--) {
        double sum = w->whitened[i];
        for (ptrdiff_t a = i + 1; a < k; a++)
            sum -= w->low[a * w->most + i] * w->mean[a];
        w->mean[i] = sum * w->low[i * w->most + i];
    }
    set->energy = pk_find_energy(w, set, precision);
    set->value = pk_fit_energy(w, set->energy) - 0.5 * (log_determinant + (double)k * w->slabs[set->slab]);
    return 0;
}

/* Copies numbers (n), followed by 0 up to the end of a vector. */
static double *pk_fill_vectors(double *to, const double *from, ptrdiff_t n)
{
    for (ptrdiff_t j = n; j % PK_LANES; j++)
        to[j] = 0.0;
    return memcpy(to, from, (size_t)n * sizeof(double));
}

/* What each feature adds to the log evidence when it is put into the set that was solved last, or taken out. */
static void pk_find_gains(pk_walk *w, const pk_set *set)
{
    const ptrdiff_t m = w->m, k = set->size, width = m + k;
    double kappa = exp(w->slabs[set->slab]), now = pk_fit_energy(w, set->energy);
    /* The rows of H, and of 1, divided by the root of the set's precision. */
    for (ptrdiff_t i = 0; i < k; i++) {
        const double *low = w->low + i * w->most;
        double *row = w->inner + i * width;
        memcpy(row, pk_row_of_set(w, set->background, set->members[i]), (size_t)m * sizeof(double));
        memset(row + m, 0, (size_t)k * sizeof(double));
        row[m + i] = 1.0;
        for (ptrdiff_t a = 0; a < i; a++)
            for (ptrdiff_t j = 0; j < width; j++)
                row[j] -= low[a] * w->inner[a * width + j];
        for (ptrdiff_t j = 0; j < width; j++)
            row[j] *= low[i];
    }
    double *lengths = pk_fill_vectors(w->gains, w->lengths + set->background * m, m);
    double *pulls = pk_fill_vectors(w->pulls, w->products + set->background * m, m);
    for (ptrdiff_t i = 0; i < k; i++) {
        const double *one = w->inner + i * width, off = w->whitened[i];
        for (ptrdiff_t j = 0; j < m; j++) {
            lengths[j] -= one[j] * one[j];
            pulls[j] -= off * one[j];
        }
    }
    for (ptrdiff_t j = 0; j < m; j += PK_LANES) {
        pk_vector *gain = (pk_vector *)(w->gains + j), q = *(pk_vector *)(pulls + j), zero = {0};
        pk_vector grown = 1.0 + kappa * pk_max(*gain, zero);
        pk_vector lower = pk_max(set->energy - q * q * kappa / grown, zero + w->smallest_energy);
        pk_vector fit = w->known > 0.0 ? -0.5 * w->known * lower : -w->shape * pk_log(lower);
        *gain = fit - now - 0.5 * pk_log(grown);
    }
    for (ptrdiff_t i = 0; i < k; i++) {
        double spread = 0.0;
        for (ptrdiff_t a = i; a < k; a++)
            spread += w->inner[a * width + m + i] * w->inner[a * width + m + i];
        w->gains[set->members[i]] = pk_fit_energy(w, set->energy + w->mean[i] * w->mean[i] / spread) - now
            + 0.5 * (w->slabs[set->slab] - log(spread));
    }
}

/* Puts o / (1 + o) of each feature in the place of gains, o the odds of the set that was solved last and then changed;
 * returns their sum. */
static double pk_find_rates(pk_walk *w, const pk_set *set)
{
    const double *prior = w->log_sizes + set->size;
    const pk_vector none = {0};
    double *gains = w->gains, total = 0.0;
    pk_find_gains(w, set);
    for (ptrdiff_t j = 0; j < w->m; j++)
        w->pulls[j] = prior[1] - prior[0];
    for (ptrdiff_t i = 0; i < set->size; i++)
        w->pulls[set->members[i]] = prior[-1] - prior[0];
    for (ptrdiff_t j = 0; j < w->m; j += PK_LANES) {
        pk_vector *rate = (pk_vector *)(gains + j), log_odds = *rate + *(pk_vector *)(w->pulls + j);
        *rate = pk_max(1.0 / (1.0 + pk_exp_any(-log_odds)), none + PK_SMALLEST_RATE);
        *rate = pk_choose(none, *rate, log_odds == -INFINITY);
    }
    for (ptrdiff_t j = 0; j < w->m; j++)
        total += gains[j];
    return total;
}

/* A place, with probabilities in proportion to shares (n). */
static ptrdiff_t pk_draw_place(const double *shares, ptrdiff_t n, double uniform)
{
    double total = 0.0, sum = 0.0;
    ptrdiff_t place = 0;
    for (ptrdiff_t j = 0; j < n; j++)
        total += shares[j];
    for (; place < n - 1; place++)
        if ((sum += shares[place]) > uniform * total)
            break;
    return place;
}

/* A feature that is not in the set that was solved last, with probabilities in proportion to the posterior with it. */
static ptrdiff_t pk_draw_feature(pk_walk *w, const pk_set *set, double uniform)
{
    double *gains = w->gains, largest = -INFINITY;
    pk_find_gains(w, set);
    for (ptrdiff_t i = 0; i < set->size; i++)
        gains[set->members[i]] = -INFINITY;
    for (ptrdiff_t j = 0; j < w->m; j++)
        largest = fmax(largest, gains[j]);
    for (ptrdiff_t j = 0; j < w->m; j += PK_LANES)
        *(pk_vector *)(gains + j) = pk_exp_down(*(pk_vector *)(gains + j) - largest);
    return pk_draw_place(gains, w->m, uniform);
}

/* Writes the set with a feature more, the last, or with one less, into the room for proposals. */
static void pk_flip_feature(pk_walk *w, pk_set *set, ptrdiff_t feature)
{
    ptrdiff_t size = 0;
    for (ptrdiff_t i = 0; i < set->size; i++)
        if (set->members[i] != feature)
            w->proposed[size++] = set->members[i];
    if (size == set->size)
        w->proposed[size++] = feature;
    set->members = w->proposed;
    set->size = size;
}

static void pk_keep_set(pk_walk *w, ptrdiff_t walker, const pk_set *set)
{
    ptrdiff_t *members = w->members + walker * w->most;
    if (set->members != members)
        memcpy(members, set->members, (size_t)set->size * sizeof(ptrdiff_t));
    w->sizes[walker] = set->size;
    w->places[2 * walker] = set->background;
    w->places[2 * walker + 1] = set->slab;
    w->values[walker] = set->value;
}

static const double *pk_draw_uniforms(pk_walk *w, ptrdiff_t times)
{
    for (ptrdiff_t i = 0; i < times * w->count; i++)
        w->uniforms[i] = w->random->next_double(w->random->state);
    return w->uniforms;
}

/* Of all walkers a feature in, or out, by how much that raises the posterior (Zanella 2020). */
static int pk_flip_all(pk_walk *w)
{
    const double *uniforms = pk_draw_uniforms(w, 2);
    for (ptrdiff_t i = 0; i < w->count; i++) {
        double *rates = w->rates + i * w->m, now = 0.0;
        pk_set set = pk_set_of(w, i);
        pk_flip_feature(w, &set, pk_draw_place(rates, w->m, uniforms[i]));
        if (set.size > w->most) /* its rate is 0, but for rounding */
            continue;
        if (pk_solve_set(w, &set))
            return -1;
        double then = pk_find_rates(w, &set);
        for (ptrdiff_t j = 0; j < w->m; j++)
            now += rates[j];
        if (uniforms[w->count + i] * then < now) {
            memcpy(rates, w->gains, (size_t)w->m * sizeof(double));
            pk_keep_set(w, i, &set);
        }
    }
    return 0;
}

/* Of all walkers a feature out, any of the set, and one in, by the posterior of what comes out. */
static int pk_swap_all(pk_walk *w)
{
    ptrdiff_t members = 0;
    for (ptrdiff_t i = 0; i < w->count; i++)
        members += w->sizes[i];
    const double *uniforms = pk_draw_uniforms(w, members ? 2 : 1);
    for (ptrdiff_t i = 0; i < w->count; i++) {
        pk_set set = pk_set_of(w, i);
        if (!set.size)
            continue;
        ptrdiff_t place = (ptrdiff_t)(uniforms[i] * (double)set.size);
        pk_flip_feature(w, &set, set.members[place < set.size ? place : set.size - 1]);
        if (pk_solve_set(w, &set))
            return -1;
        w->proposed[set.size] = pk_draw_feature(w, &set, uniforms[w->count + i]);
        set.size += 1;
        if (pk_solve_set(w, &set))
            return -1;
        pk_keep_set(w, i, &set);
    }
    return 0;
}

/* Of all walkers a step along one of the grids, 0 for the background and 1 for the slab. */
static int pk_shift_all(pk_walk *w, int grid)
{
    static const ptrdiff_t strides[] = {1, 1, 2, 3, 5, 8};
    const double *uniforms = pk_draw_uniforms(w, 3), *log_prior = w->log_priors[grid];
    for (ptrdiff_t i = 0; i < w->count; i++) {
        ptrdiff_t stride = strides[(ptrdiff_t)(uniforms[i] * 6.0)], now = w->places[2 * i + grid];
        ptrdiff_t where = uniforms[w->count + i] < 0.5 ? now + stride : now - stride;
        if (where < 0 || where >= w->n_places[grid])
            continue;
        pk_set set = pk_set_of(w, i);
        *(grid ? &set.slab : &set.background) = where;
        if (pk_solve_set(w, &set))
            return -1;
        double gain = set.value - w->values[i] + log_prior[where] - log_prior[now];
        if (log(uniforms[2 * w->count + i]) < gain)
            pk_keep_set(w, i, &set);
    }
    return 0;
}

/* Half of the walkers start on a strong background, the others on none with a set that is grown. */
static int pk_start_walk(pk_walk *w, ptrdiff_t longest)
{
    for (int grid = 0; grid < 2; grid++) {
        const double *uniforms = pk_draw_uniforms(w, 1), *logs = w->log_priors[grid];
        for (ptrdiff_t i = 0; i < w->count; i++) {
            double sum = 0.0;
            ptrdiff_t place = 0, n = w->n_places[grid];
            while (place < n - 1 && (sum += exp(logs[place])) <= uniforms[i]) /* of all it is 1 */
                place++;
            w->places[2 * i + grid] = !grid && i % 2 == 0 ? 0 : place;
        }
    }
    for (ptrdiff_t round = 0; round <= longest; round++) {
        const double *uniforms = round ? pk_draw_uniforms(w, 1) : w->uniforms;
        for (ptrdiff_t i = 0; i < w->count; i += round ? 2 : 1) {
            pk_set set = pk_set_of(w, i);
            if (pk_solve_set(w, &set))
                return -1;
            if (round) {
                pk_flip_feature(w, &set, pk_draw_feature(w, &set, uniforms[i]));
                if (pk_solve_set(w, &set))
                    return -1;
            }
            pk_keep_set(w, i, &set);
        }
        if (round && (pk_shift_all(w, 0) || pk_shift_all(w, 1)))
            return -1;
    }
    return 0;
}

/* One round of steps of all walkers; returns 0, or -1 where there is no memory. */
static int pk_move_walkers(pk_walk *w)
{
    ptrdiff_t members = 0, flips = w->m < 3 ? w->m : 3;
    for (ptrdiff_t i = 0; i < w->count; i++) {
        pk_set set = pk_set_of(w, i);
        members += set.size;
        if (pk_solve_set(w, &set))
            return -1;
        pk_find_rates(w, &set);
        memcpy(w->rates + i * w->m, w->gains, (size_t)w->m * sizeof(double));
    }
    flips += members / w->count / 4;
    for (ptrdiff_t flip = 0; flip < flips; flip++)
        if (pk_flip_all(w))
            return -1;
    return (w->m > 1 && pk_swap_all(w)) || pk_shift_all(w, 0) || pk_shift_all(w, 1) ? -1 : 0;
}

static uint64_t pk_scatter(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Of each walker a number for where it is, the same for equal sets, and the log posterior there. */
static void pk_name_walkers(const pk_walk *w, uint64_t *states, double *heights)
{
    for (ptrdiff_t i = 0; i < w->count; i++) {
        pk_set set = pk_set_of(w, i);
        states[i] = pk_scatter((uint64_t)(set.background * w->n_places[1] + set.slab) << 32);
        for (ptrdiff_t j = 0; j < set.size; j++)
            states[i] += pk_scatter((uint64_t)set.members[j]);
        heights[i] = set.value + w->log_priors[0][set.background] + w->log_priors[1][set.slab] + w->log_sizes[set.size];
    }
}

#endif
