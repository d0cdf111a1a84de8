/* Which of several arms to choose in a context, each of a posterior triangle of its own (k = 1): by one draw of what is
 * expected of each (Thompson 1933). See posterity_kernel.h. */
#ifndef POSTERITY_ARMS_H
#define POSTERITY_ARMS_H

#include <stdint.h>

#include "posterity_panel.h"

typedef struct {
    double df, stretch; /* degrees of freedom of all arms, infinite: normal; draws lie so many times as far from the mean */
    double floor;       /* with this probability any arm */
    uint64_t seed;
} pk_thompson;

/* Steele, Lea and Flood (2014): the state goes on by a constant, and is mixed. */
PK_INLINE uint64_t pk_mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Between 0 and 1, neither of them. */
PK_INLINE double pk_uniform(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return ((double)(pk_mixed(*state) >> 11) + 0.5) * 0x1p-53;
}

/* A Student-t draw, by the polar method of Bailey (1994). */
PK_INLINE double pk_draw_t(uint64_t *state, double df)
{
    double a, b, w;
    do {
        a = 2.0 * pk_uniform(state) - 1.0;
        b = 2.0 * pk_uniform(state) - 1.0;
        w = a * a + b * b;
    } while (w >= 1.0 || w == 0.0);
    double square = df < INFINITY ? df * expm1(-2.0 / df * log(w)) : -2.0 * log(w);
    return a * sqrt(square / w);
}

/* The arm of decision `number`, of means and widths (step apart) of the allowed ones, of which there is at least one.
 * Those of which nothing is known, of infinite width, come first, all alike. */
static ptrdiff_t pk_choose_arm(const double *mean, const double *width, ptrdiff_t step, const unsigned char *allowed,
                               ptrdiff_t arms, const pk_thompson *how, uint64_t number)
{
    uint64_t state = pk_mixed(how->seed ^ pk_mixed(number + 1));
    ptrdiff_t known = 0, unknown = 0, best = -1;
    for (ptrdiff_t k = 0; k < arms; k++)
        if (allowed[k]) {
            int flat = !(width[k * step] < INFINITY);
            unknown += flat;
            known += !flat;
        }
    double u = pk_uniform(&state);
    if (unknown || u < how->floor) {
        ptrdiff_t count = unknown ? unknown : known, skipped = (ptrdiff_t)(pk_uniform(&state) * (double)count);
        for (ptrdiff_t k = 0; k < arms; k++)
            if (allowed[k] && (!unknown || !(width[k * step] < INFINITY)) && skipped-- == 0)
                return k;
    }
    double highest = -INFINITY, ties = 0.0;
    for (ptrdiff_t k = 0; k < arms; k++) {
        if (!allowed[k])
            continue;
        double draw = mean[k * step] + how->stretch * width[k * step] * pk_draw_t(&state, how->df);
        if (best < 0 || draw > highest) {
            highest = draw;
            best = k;
            ties = 1.0;
        } else if (draw == highest && pk_uniform(&state) * ++ties < 1.0) {  /* of what is certain */
            best = k;
        }
    }
    return best;
}

/* Mean and leverage (arms) in the context row (ld), by the arms' posteriors (arms, q, ld). work (ld). */
static void pk_expect_arms(const double *posteriors, ptrdiff_t arms, const double *row, double *work, pk_shape shape,
                           double *mean, double *leverage)
{
    for (ptrdiff_t k = 0; k < arms; k++) {
        memcpy(work, row, (size_t)shape.ld * sizeof(double));
        leverage[k] = pk_predict_row(posteriors + k * shape.q * shape.ld, work, shape);
        mean[k] = 0.0 - work[shape.p];  /* not -0.0 */
    }
}

#endif
