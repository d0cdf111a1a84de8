/* Members of an average, each of which fades towards its prior: one row of one of them, and what all predict of rows. See
 * posterity_average.h and posterity_noise.h. */
#ifndef POSTERITY_MEMBERS_H
#define POSTERITY_MEMBERS_H

#include <math.h>
#include <string.h>

#include "posterity_forgetting.h"
#include "posterity_noise.h"

/* Degrees of freedom from which a series has all digits of the constant; with fewer, the series is that of so many more. */
#define PK_MANY_FREED 64.0
#define PK_MORE_FREED 48
/* A density further out says no more than this. */
#define PK_MAX_LOG_DENSITY 1e4

/* log Gamma((v + 1) / 2) - log Gamma(v / 2) - log(v pi) / 2 of v > 0 degrees of freedom. */
PK_INLINE pk_vector pk_log_t_constants(pk_vector v)
{
    pk_integers few = v < PK_MANY_FREED;
    pk_vector more = pk_choose(v + (double)PK_MORE_FREED, v, few), inverse = 1.0 / more, square = inverse * inverse;
    pk_vector log_density = -inverse * (0.25 - square * (1.0 / 24.0 - square * (0.05 - square * (17.0 / 112.0))));
    if (pk_any(few)) { /* Gamma(x + 1) = x Gamma(x) */
        pk_vector w = pk_choose(v, (pk_vector){0} + 1.0, few), above = {0}, below = w + 1.0;
        above += 1.0;
        for (int i = 2; i < PK_MORE_FREED; i += 2) {
            above *= w + (double)i;
            below *= w + (double)(i + 1);
        }
        above /= below;
        log_density = pk_choose(log_density + 0.5 * pk_log(w * (w + (double)PK_MORE_FREED) * above * above), log_density, few);
    }
    return log_density - 0.91893853320467274178; /* log(2 pi) / 2 */
}

PK_INLINE pk_vector pk_log_1p(pk_vector q)
{
    pk_vector above = 1.0 + q, rounded = above - 1.0;
    return pk_choose(pk_log(above) * (q / rounded), q, rounded > 0.0);
}

/* Log density of an error under a t distribution with v degrees of freedom, infinitely many being the normal's; 0 where
 * nothing is known, and within PK_MAX_LOG_DENSITY. */
PK_INLINE pk_vector pk_log_ts(pk_vector error, pk_vector v, pk_vector scale)
{
    const pk_vector zero = {0}, most = zero + PK_MAX_LOG_DENSITY;
    pk_vector df = pk_min(v, zero + 1e18), z = error / scale;
    pk_vector log_density = pk_log_t_constants(df) - 0.5 * (df + 1.0) * pk_log_1p(z * z / df) - pk_log(scale);
    log_density = pk_min(pk_max(log_density, -most), most); /* NaN becomes -most */
    log_density = pk_choose(log_density, -most, (z < 1e150) & (z > -1e150));
    log_density = pk_choose(pk_choose(most, -most, error == zero), log_density, scale == zero);
    return pk_choose(zero, log_density, (scale == zero + INFINITY) | ~(v > zero));
}

/* The same of one. */
PK_INLINE double pk_log_t_constant(double v)
{
    return pk_log_t_constants((pk_vector){0} + v)[0];
}

PK_INLINE double pk_log_t(double error, double v, double scale)
{
    return pk_log_ts((pk_vector){0} + error, (pk_vector){0} + v, (pk_vector){0} + scale)[0];
}

/* How much is known of a row: nothing, a scale (1), a variance as well (2). */
PK_INLINE pk_integers pk_ranks(pk_vector v, pk_vector scale)
{
    return -((scale > 0.0) & (scale < INFINITY)) - ((scale > 0.0) & (scale < INFINITY) & (v > 2.0));
}

/* What lane l of a vector of members, or the last member, has of row i. */
#define PK_AT_MEMBER(l) ((v + (l) < members ? v + (l) : members - 1) * n + i)
#define PK_LOC(l) loc[PK_AT_MEMBER(l)]
#define PK_SCALE(l) scale[PK_AT_MEMBER(l)]

/* Rows y (n) of weights (n), or NULL, that members (members, n) predict by location and, as long as the noise is 1, scale:
 * scales become those with their noises, which learn from each row. Out come degrees of freedom, log densities times
 * weights, and ranks (members, n). */
static void pk_score_members(const pk_noises *s, ptrdiff_t members, ptrdiff_t n, const double *y, const double *weights,
                             const double *loc, double *scale, double *df, double *densities, unsigned char *ranks)
{
    for (ptrdiff_t v = 0; v < members; v += PK_LANES)
        for (ptrdiff_t i = 0; i < n; i++) {
            double weight = weights ? weights[i] : 1.0;
            pk_vector error = y[i] - (pk_vector){PK_EACH_LANE(PK_LOC)}, unit = {PK_EACH_LANE(PK_SCALE)};
            pk_vector freed = (pk_vector){0} + INFINITY, variance = (pk_vector){0} + 1.0;
            if (s->memories)
                pk_track_noises(s, v, error, unit * unit, weight, &freed, &variance);
            unit *= pk_sqrt(variance);
            unit = pk_choose(unit, (pk_vector){0} + INFINITY, unit == unit); /* what is not known stays so without noise */
            pk_vector density = weight * pk_log_ts(error, freed, unit);
            pk_integers rank = pk_ranks(freed, unit);
            for (ptrdiff_t l = 0; l < PK_LANES && v + l < members; l++) {
                ptrdiff_t at = (v + l) * n + i;
                scale[at] = unit[l];
                df[at] = freed[l];
                densities[at] = density[l];
                ranks[at] = (unsigned char)rank[l];
            }
        }
}

/* What a triangle has on and above its diagonal, into one that has zeros below. */
PK_INLINE void pk_copy_triangle(double *to, const double *from, pk_shape shape)
{
    for (ptrdiff_t i = 0, v = 0; i < shape.q; i++, v = i & -PK_LANES)
        memcpy(to + i * shape.ld + v, from + i * shape.ld + v, (size_t)(shape.ld - v) * sizeof(double));
}

/* `after` (q, ld), zeros below its diagonal, becomes T with the row learned, all but the prior discounted before it; what was predicted of it goes
 * into before. buffer (PK_APPEND_SIZE), flight (PK_FLIGHT_SIZE). 0 where that can't be used. */
static int pk_try_row(const double *T, double *after, double *buffer, double *flight, const pk_rows *row, pk_shape shape,
                      const double *prior, const pk_before *before)
{
    pk_copy_triangle(after, T, shape);
    if (pk_learn_stabilized(after, buffer, flight, row, shape, prior, before))
        return 0;
    int usable = 1; /* without leaving the loop, which then runs in lanes */
    for (ptrdiff_t i = 0; i < shape.q; i++)
        for (ptrdiff_t k = i; k < shape.q; k++)
            usable &= fabs(after[i * shape.ld + k]) <= 1e150;
    return usable;
}

#endif
