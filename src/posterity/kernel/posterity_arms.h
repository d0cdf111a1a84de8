/* Which of several arms to choose in a context, each of a posterior triangle of its own (k = 1): the one of the largest
 * value: a draw of what is expected of each (Thompson 1933), or a bound. See posterity_kernel.h. */
#ifndef POSTERITY_ARMS_H
#define POSTERITY_ARMS_H

#include <stdint.h>

#include "posterity_average.h"
#include "posterity_packed.h"
#include "posterity_panel.h"

/* Values of arms: a draw, or the mean and some widths: as many for all decisions, or drawn once for all arms, from half a
 * normal distribution (Vaswani and others 2020). */
enum { PK_DRAWN, PK_BOUND, PK_DRAWN_BOUND };

typedef struct {
    int values;
    double df, stretch; /* degrees of freedom of all arms, infinite: normal; values lie so many times as far from the mean */
    double floor;       /* with this probability any arm */
    uint64_t seed;
    const unsigned char *first; /* (arms) of which too little is known to compare them */
} pk_chooser;

#define PK_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* Steele, Lea and Flood (2014): the state goes on by a constant, and is mixed. */
PK_INLINE uint64_t pk_mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Between 0 and 1, neither of them: the number-th of a state's. */
PK_INLINE double pk_uniform(uint64_t state, uint64_t number)
{
    return ((double)(pk_mixed(state + (number + 1) * PK_GOLDEN) >> 11) + 0.5) * 0x1p-53;
}

/* The same of 52 bits, with a number for each lane. */
PK_INLINE pk_vector pk_uniforms(uint64_t state, pk_bits number)
{
    pk_bits z = state + (number + 1) * PK_GOLDEN;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (pk_vector)((z >> 12) | UINT64_C(0x3ff0000000000000)) - (1.0 - 0x1p-53);
}

/* sin(pi w / 2) for -1 < w < 1, by its series. */
PK_INLINE pk_vector pk_sine(pk_vector w)
{
    pk_vector x = w * 1.5707963267948966, square = x * x, sum = (pk_vector){0} + 1.0;
    for (int n = 22; n > 0; n -= 2)
        sum = 1.0 - square * sum * (1.0 / (double)(n * (n + 1)));
    return x * sum;
}

/* Student-t draws (Bailey 1994): a radius, and the sine of an angle. Numbers of a state's uniforms, from first on. */
PK_INLINE pk_vector pk_draw_t(uint64_t state, uint64_t first, double df)
{
    const pk_bits lanes = {PK_EACH_LANE(PK_NUMBER)};
    pk_vector far = -2.0 * pk_log(pk_uniforms(state, first + 2 * lanes)), x = far * (1.0 / df);
    pk_vector sine = pk_sine(2.0 * pk_uniforms(state, first + 2 * lanes + 1) - 1.0);
    /* df (exp(x) - 1): of small x by its series */
    pk_vector small = far * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0)))), less = pk_exp(-x);
    pk_vector square = df < 1e300 ? pk_choose(small, df * (1.0 - less) / less, x < 1e-3) : far;
    return pk_sqrt(square) * sine;
}

PK_INLINE int pk_comes_first(const pk_chooser *how, const double *width, ptrdiff_t k)
{
    return how->first[k] || !(width[k] < INFINITY);
}

/* The arm of decision `number`, of means and widths (arms) of the allowed ones, of which there is at least one. Those of
 * which nothing is known, of infinite width, and those that are to come first, do so, all alike, but for the floor. */
static ptrdiff_t pk_choose_arm(const double *mean, const double *width, const unsigned char *allowed, ptrdiff_t arms,
                               const pk_chooser *how, uint64_t number)
{
    uint64_t state = pk_mixed(how->seed ^ pk_mixed(number + 1)), next = 2 + 2 * (uint64_t)arms;
    ptrdiff_t known = 0, unknown = 0, best = -1;
    for (ptrdiff_t k = 0; k < arms; k++)
        if (allowed[k]) {
            int flat = pk_comes_first(how, width, k);
            unknown += flat;
            known += !flat;
        }
    int floored = pk_uniform(state, 0) < how->floor;
    if (unknown || floored) {
        ptrdiff_t count = floored ? known + unknown : unknown, skipped = (ptrdiff_t)(pk_uniform(state, 1) * (double)count);
        for (ptrdiff_t k = 0; k < arms; k++)
            if (allowed[k] && (floored || pk_comes_first(how, width, k)) && skipped-- == 0)
                return k;
    }
    double highest = -INFINITY, ties = 0.0, widths = 1.0;
    if (how->values == PK_DRAWN_BOUND)
        widths = fabs(pk_draw_t(state, 2, INFINITY)[0]);
    for (ptrdiff_t first = 0; first < arms; first += PK_LANES) {
        pk_vector draws = (pk_vector){0} + widths;
        if (how->values == PK_DRAWN)
            draws = pk_draw_t(state, 2 + 2 * (uint64_t)first, how->df);
        for (ptrdiff_t k = first; k < arms && k < first + PK_LANES; k++) {
            if (!allowed[k])
                continue;
            double value = mean[k] + how->stretch * width[k] * draws[k - first];
            if (best < 0 || value > highest) {
                highest = value;
                best = k;
                ties = 1.0;
            } else if (value == highest && pk_uniform(state, next++) * ++ties < 1.0) {  /* of what is certain */
                best = k;
            }
        }
    }
    return best;
}

/* ---- triangles in lanes -------------------------------------------------------------------- */

/* Arms are kept twice: as triangles (arms, q, ld), and as many side by side as there are lanes, packed: what is expected
 * of them is then worked out together. */
#define PK_LANES_SIZE(arms, shape) (((arms) + PK_LANES - 1) / PK_LANES * PK_LANES * PK_PACKED_SIZE(shape))

/* Lay an arm's triangle into its lane. */
static void pk_pack_arm(double *lanes, const double *T, ptrdiff_t arm, pk_shape shape)
{
    double *to = lanes + arm / PK_LANES * PK_LANES * PK_PACKED_SIZE(shape) + arm % PK_LANES;
    for (ptrdiff_t i = 0; i < shape.q; i++)
        for (ptrdiff_t c = i; c < shape.q; c++, to += PK_LANES)
            *to = T[i * shape.ld + c];
}

/* Lanes of no arm, if there are any, hold triangles of ones: nothing is divided by 0 there. */
static void pk_pad_lanes(double *lanes, ptrdiff_t arms, pk_shape shape)
{
    for (ptrdiff_t i = 0; i < PK_LANES_SIZE(arms, shape); i++)
        lanes[i] = 1.0;
}

/* pk_predict_row of all lanes of a block: minus the means, and leverages. work (q, PK_LANES). */
PK_INLINE pk_vector pk_expect_block(const pk_vector *t, const double *row, pk_vector *work, pk_shape shape, pk_vector *minus)
{
    pk_vector leverage = {0};
    for (ptrdiff_t j = 0; j < shape.p; j++)
        work[j] = (pk_vector){0} + row[j];
    work[shape.p] = (pk_vector){0};
    for (ptrdiff_t j = 0; j < shape.p; j++) {
        pk_vector g = work[j] / *t++;
        leverage += g * g;
        for (ptrdiff_t k = j + 1; k < shape.q; k++)
            work[k] -= g * *t++;
    }
    *minus = work[shape.p];
    return leverage;
}

/* Mean and leverage (arms) in the context row (ld), by the arms' posteriors (arms, q, ld) and the same in lanes, or NULL.
 * Those that are `open` (arms) have directions of which nothing is known. work (q, PK_LANES), no less than ld. */
static void pk_expect_arms(const double *posteriors, const double *lanes, const unsigned char *open, ptrdiff_t arms,
                           const double *row, double *work, pk_shape shape, double *mean, double *leverage)
{
    for (ptrdiff_t first = 0; lanes && first < arms; first += PK_LANES) {
        ptrdiff_t end = first + PK_LANES < arms ? first + PK_LANES : arms;
        pk_vector minus, leverages = pk_expect_block((const pk_vector *)(lanes + first * PK_PACKED_SIZE(shape)), row,
                                                (pk_vector *)work, shape, &minus);
        for (ptrdiff_t k = first; k < end; k++) {
            mean[k] = 0.0 - minus[k - first];  /* not -0.0 */
            leverage[k] = leverages[k - first];
        }
    }
    for (ptrdiff_t k = 0; k < arms; k++) {
        if (lanes && !open[k])
            continue;
        memcpy(work, row, (size_t)shape.ld * sizeof(double));
        leverage[k] = pk_predict_row(posteriors + k * shape.q * shape.ld, work, shape);
        mean[k] = 0.0 - work[shape.p];
    }
}

#endif
