/* Functions of as many numbers at once as a register has lanes. */
#ifndef POSTERITY_LANES_H
#define POSTERITY_LANES_H

#include "posterity_rows.h"

#define PK_LOG_ROOT_2PI 0.91893853320467274178

PK_INLINE pk_vector pk_max(pk_vector a, pk_vector b)
{
    pk_integers left = a > b;
    return (pk_vector)(((pk_integers)a & left) | ((pk_integers)b & ~left));
}

PK_INLINE pk_vector pk_choose(pk_vector yes, pk_vector no, pk_integers condition)
{
    return (pk_vector)(((pk_integers)yes & condition) | ((pk_integers)no & ~condition));
}

/* exp(x) for x <= 0 in every lane, to 2 units in the last place; 0 below -700.
 * x = k log 2 + r, |r| <= log(2)/2, and a Taylor series of degree 13 for exp(r). */
PK_INLINE pk_vector pk_exp(pk_vector x)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to whole numbers */
    pk_integers alive = x > -700.0;
    x = (pk_vector)((pk_integers)x & alive);
    pk_vector shifted = x * 1.4426950408889634 + shift, k = shifted - shift;
    pk_vector r = x - k * 0.69314718036912382 - k * 1.9082149292705877e-10, sum = r * (1.0 / 6227020800.0);
    const double inverse_factorials[] = {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                                         1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,     1.0 / 120.0,
                                         1.0 / 24.0,        1.0 / 6.0,        0.5,             1.0};
    for (int i = 0; i < 12; i++)
        sum = (sum + inverse_factorials[i]) * r;
    pk_vector power = (pk_vector)(((pk_bits)shifted + 1023) << 52);
    return (pk_vector)((pk_integers)((sum + 1.0) * power) & alive);
}

/* log(x) of positive normal numbers in every lane, to 2 units in the last place.
 * x = 2^k m, sqrt(1/2) <= m < sqrt(2), and log m = 2 artanh((m - 1) / (m + 1)) as a series of 11 terms. */
PK_INLINE pk_vector pk_log(pk_vector x)
{
    const pk_integers root_half = (pk_integers){0} + 0x3fe6a09e667f3bcdLL;
    pk_integers bits = (pk_integers)x, power = (bits - root_half) >> 52;
    pk_vector m = (pk_vector)((pk_bits)bits - ((pk_bits)power << 52));
    pk_vector k = (pk_vector)((power + 0x4338000000000000LL)) - 6755399441055744.0;
    pk_vector t = (m - 1.0) / (m + 1.0), square = t * t, sum = square * (1.0 / 21.0);
    const double inverse_odds[] = {1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0,
                                   1.0 / 9.0,  1.0 / 7.0,  1.0 / 5.0,  1.0 / 3.0};
    for (int i = 0; i < 9; i++)
        sum = (sum + inverse_odds[i]) * square;
    return k * 0.69314718036912382 + (2.0 * t + (2.0 * t * sum + k * 1.9082149292705877e-10));
}

/* exp(x), x <= 0, whatever is -inf or NaN being 0. */
PK_INLINE pk_vector pk_exp_down(pk_vector x)
{
    return pk_exp(pk_choose(x, (pk_vector){0} - 1000.0, x > -800.0));
}

PK_INLINE pk_vector pk_log1p_exp_down(pk_vector x)
{
    return pk_log(1.0 + pk_exp_down(x));
}

PK_INLINE pk_vector pk_abs(pk_vector x)
{
    return pk_max(x, -x);
}

/* exp of anything up to 699. */
PK_INLINE pk_vector pk_exp_any(pk_vector x)
{
    pk_integers above = x > 0.0;
    pk_vector down = pk_exp_down(-pk_abs(pk_choose((pk_vector){0} + 699.0, x, x > 699.0)));
    return pk_choose(1.0 / down, down, above);
}

typedef struct {
    pk_vector log, slope, bend;
} pk_gammas;

/* Log gamma, digamma and trigamma of x > 0, to twelve digits: of x + 8 by their series (Abramowitz and Stegun 1972, 6.1.41,
 * 6.3.18 and 6.4.12), below 8 less what x (x + 1) ... (x + 7) = u (u + 6) (u + 10) (u + 12), u = x (x + 7), adds. */
PK_INLINE pk_gammas pk_find_gammas(pk_vector x)
{
    const pk_vector zero = {0}, one = zero + 1.0;
    pk_integers far = x >= 8.0;
    pk_vector near = pk_choose(one, x, far), u = near * (near + 7.0), turn = 2.0 * near + 7.0;
    pk_vector product = u * (720.0 + u * (252.0 + u * (28.0 + u)));
    pk_vector rise = 720.0 + u * (504.0 + u * (84.0 + 4.0 * u)), inverse = 1.0 / product;
    pk_vector first = rise * turn * inverse;
    pk_vector second = first * first - ((504.0 + u * (168.0 + 12.0 * u)) * turn * turn + 2.0 * rise) * inverse;
    pk_vector z = pk_choose(x, x + 8.0, far), far_off = 1.0 / z, s = far_off * far_off, log_z = pk_log(z);
    pk_gammas found;
    found.log = (z - 0.5) * log_z - z + PK_LOG_ROOT_2PI - pk_choose(zero, pk_log(product), far)
        + far_off * (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * (691.0 / 360360))))));
    found.slope = log_z - 0.5 * far_off - pk_choose(zero, first, far)
        - s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760))))));
    found.bend = far_off + 0.5 * s + pk_choose(zero, second, far)
        + far_off * s * (1.0 / 6 - s * (1.0 / 30 - s * (1.0 / 42 - s * (1.0 / 30 - s * (5.0 / 66 - s * (691.0 / 2730))))));
    return found;
}

#endif
