/* Rounds in which the sites of all rows follow what is known, and that follows the sites: how far a round moves what is
 * known, and which sites come next, as the last rounds tell (Anderson mixing; Walker and Ni 2011, "Anderson acceleration
 * for fixed-point iterations"). A site is its precision and that times its target: arrays (2, n). */
#ifndef POSTERITY_ROUNDS_H
#define POSTERITY_ROUNDS_H

#include <math.h>
#include <string.h>

#include "posterity_panel.h"

/* Rounds that are remembered, and the share of its next precision that a site keeps at least. */
enum { PK_REMEMBERED = 5 };
#define PK_LEAST_SHARE 0.1
/* Of the largest product, what keeps those of rounds that do not differ apart. */
#define PK_APART 1e-12

typedef struct {
    ptrdiff_t n, rounds;      /* rows; rounds since the start */
    const double *share;      /* (n) root of 1 / weight: a row of weight w counts as w rows that are the same */
    double *now, *ahead;      /* (2, n) sites of the last round, and how far those wanted were from them */
    double *moves, *changes;  /* (PK_REMEMBERED, 2, n) by how much both differed from round to round */
    double *turned;           /* (PK_REMEMBERED + 1, 2, n) room: changes, and the last step, standardised */
} pk_mixing;

/* Changes of sites in units of eta's standard deviation. */
PK_INLINE void pk_standardize(const pk_mixing *m, const double *change, const double *mean, const double *variance,
                              double *out)
{
    const double *grown = change, *shifted = change + m->n;
    for (ptrdiff_t i = 0; i < m->n; i++) {
        out[i] = grown[i] * variance[i] * m->share[i];
        out[m->n + i] = sqrt(variance[i]) * (shifted[i] - grown[i] * mean[i]) * m->share[i];
    }
}

PK_INLINE double pk_inner(ptrdiff_t n, const double *x, const double *y)
{
    double sum[4] = {0.0};
    ptrdiff_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int lane = 0; lane < 4; lane++)
            sum[lane] += x[i + lane] * y[i + lane];
    for (; i < n; i++)
        sum[0] += x[i] * y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Shares (k) of the changes that leave least of the last step: 0 where that can't be told. */
static void pk_regress(const pk_mixing *m, ptrdiff_t k, double *share)
{
    double low[PK_REMEMBERED][PK_REMEMBERED], largest = 0.0;
    const ptrdiff_t size = 2 * m->n;
    const double *off = m->turned + PK_REMEMBERED * size;
    for (ptrdiff_t i = 0; i < k; i++) {
        for (ptrdiff_t j = 0; j <= i; j++)
            low[i][j] = pk_inner(size, m->turned + i * size, m->turned + j * size);
        share[i] = pk_inner(size, m->turned + i * size, off);
        largest = fmax(largest, low[i][i]);
    }
    for (ptrdiff_t i = 0; i < k; i++) {
        low[i][i] += PK_APART * largest;
        for (ptrdiff_t j = 0; j <= i; j++) {
            for (ptrdiff_t l = 0; l < j; l++)
                low[i][j] -= low[i][l] * low[j][l];
            if (i > j)
                low[i][j] /= low[j][j];
        }
        if (!(low[i][i] > 0.0)) {
            memset(share, 0, (size_t)k * sizeof(double));
            return;
        }
        low[i][i] = sqrt(low[i][i]);
        for (ptrdiff_t j = 0; j < i; j++)
            share[i] -= low[i][j] * share[j];
        share[i] /= low[i][i];
    }
    for (ptrdiff_t i = k; i-- > 0;) {
        for (ptrdiff_t j = i + 1; j < k; j++)
            share[i] -= low[j][i] * share[j];
        share[i] /= low[i][i];
    }
}

/* The next sites, from those now and those wanted (2, n), under which each eta has this mean and variance (n). */
static void pk_mix_rounds(pk_mixing *m, const double *now, const double *wanted, const double *mean,
                          const double *variance, double *next)
{
    const ptrdiff_t size = 2 * m->n, place = (m->rounds + PK_REMEMBERED - 1) % PK_REMEMBERED;
    const ptrdiff_t k = m->rounds < PK_REMEMBERED ? m->rounds : PK_REMEMBERED;
    double share[PK_REMEMBERED];
    for (ptrdiff_t i = 0; i < size; i++) {
        const double ahead = wanted[i] - now[i];
        if (k) {
            m->moves[place * size + i] = now[i] - m->now[i];
            m->changes[place * size + i] = ahead - m->ahead[i];
        }
        m->now[i] = now[i], m->ahead[i] = ahead, next[i] = wanted[i];
    }
    m->rounds++;
    for (ptrdiff_t i = 0; i < k; i++)
        pk_standardize(m, m->changes + i * size, mean, variance, m->turned + i * size);
    pk_standardize(m, m->ahead, mean, variance, m->turned + PK_REMEMBERED * size);
    pk_regress(m, k, share);
    for (ptrdiff_t i = 0; i < k; i++)
        for (ptrdiff_t j = 0; j < size; j++)
            next[j] -= share[i] * (m->moves[i * size + j] + m->changes[i * size + j]);
    for (ptrdiff_t i = 0; i < m->n; i++)
        if (!(next[i] >= PK_LEAST_SHARE * wanted[i]))
            next[i] = wanted[i], next[m->n + i] = wanted[m->n + i];
}

/* How sites wanted change what is known: the length of the mean's move in standard deviations, directions that are open
 * left out, and the share of the precision's change, over all directions. pull (p) is room. */
static void pk_measure_round(const double *T, pk_shape shape, const pk_rows *rows, const double *sites,
                             const double *wanted, const double *mean, const double *variance, double *pull,
                             double *move, double *spread)
{
    const ptrdiff_t n = rows->n, first = rows->intercept;
    memset(pull, 0, (size_t)shape.p * sizeof(double));
    *move = *spread = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double grown = wanted[i] - sites[i], step = wanted[n + i] - sites[n + i] - grown * mean[i];
        const double *x = rows->X + i * rows->x_stride;
        *spread += fabs(grown) * variance[i];
        if (first)
            pull[0] += step;
        if (rows->x_step == 1)
            for (ptrdiff_t j = 0; j < rows->columns; j++)
                pull[first + j] += step * x[j];
        else
            for (ptrdiff_t j = 0; j < rows->columns; j++)
                pull[first + j] += step * x[j * rows->x_step];
    }
    for (ptrdiff_t i = 0; i < shape.p; i++) {
        const double *row = T + i * shape.ld;
        if (row[i] == 0.0)
            continue;
        const double along = pull[i] / row[i];
        *move += along * along;
        for (ptrdiff_t j = i + 1; j < shape.p; j++)
            pull[j] -= along * row[j];
    }
    *move = sqrt(*move);
}

/* Mean and variance (n) of each eta under one of several posteriors, added to what the others of them say: the mixture's
 * where all shares are added. */
PK_INLINE void pk_add_moments(ptrdiff_t n, double before, double share, const double *mean, const double *variance,
                              double *means, double *variances)
{
    const double all = before + share, apart = all > 0.0 ? before * share / all : 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double off = mean[i] - means[i];
        variances[i] += share * variance[i] + apart * off * off;
        means[i] += all > 0.0 ? share / all * off : 0.0;
    }
}

#endif
