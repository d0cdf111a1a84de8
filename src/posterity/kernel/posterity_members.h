/* One row for an average over members that fade towards their priors. See posterity_average.h and posterity_noise.h. */
#ifndef POSTERITY_MEMBERS_H
#define POSTERITY_MEMBERS_H

#include <math.h>
#include <string.h>

#include "posterity_forgetting.h"
#include "posterity_noise.h"

/* Degrees of freedom from which a series has all digits of the constant. */
#define PK_MANY_FREED 64.0
/* A density further out says no more than this. */
#define PK_MOST_TELLING 1e4

/* log Gamma((v + 1) / 2) - log Gamma(v / 2) - log(v pi) / 2 of v > 0 degrees of freedom. */
PK_INLINE double pk_log_t_constant(double v)
{
    const double half_log_2pi = 0.91893853320467274178, log_pi = 1.1447298858494001741;
    if (v < PK_MANY_FREED)
        return lgamma(0.5 * (v + 1.0)) - lgamma(0.5 * v) - 0.5 * (log(v) + log_pi);
    double inverse = 1.0 / v, square = inverse * inverse;
    return -inverse * (0.25 - square * (1.0 / 24.0 - square * (0.05 - square * (17.0 / 112.0)))) - half_log_2pi;
}

/* Log density of an error under a t distribution with v degrees of freedom, infinitely many being the normal's; 0 where
 * nothing is known, and within PK_MOST_TELLING. */
PK_INLINE double pk_log_t(double error, double v, double scale)
{
    if (scale == INFINITY || !(v > 0.0))
        return 0.0;
    if (scale == 0.0)
        return error == 0.0 ? PK_MOST_TELLING : -PK_MOST_TELLING;
    double residual_df = v < 1e18 ? v : 1e18, z = error / scale, log_density;
    if (fabs(z) < 1e150)
        log_density = pk_log_t_constant(residual_df) - 0.5 * (residual_df + 1.0) * log1p(z * z / residual_df) - log(scale);
    else
        log_density = -PK_MOST_TELLING;
    if (!(log_density >= -PK_MOST_TELLING))
        return -PK_MOST_TELLING;
    return log_density < PK_MOST_TELLING ? log_density : PK_MOST_TELLING;
}

/* How much is known of a row: nothing, a scale (1), a variance as well (2). */
PK_INLINE unsigned char pk_rank(double v, double scale)
{
    if (!(scale > 0.0 && scale < INFINITY))
        return 0;
    return v > 2.0 ? 2 : 1;
}

/* `after` (q, ld) becomes T with the row learned, all but the prior discounted before it; what was predicted of it goes
 * into before. buffer (q, PK_PANEL), flight (PK_FLIGHT_SIZE). 0 where that can't be used. */
static int pk_try_row(const double *T, double *after, double *buffer, double *flight, const pk_rows *row, pk_shape shape,
                      const double *prior, const pk_before *before)
{
    memcpy(after, T, (size_t)(shape.q * shape.ld) * sizeof(double));
    if (pk_learn_stabilized(after, buffer, flight, row, shape, prior, before))
        return 0;
    for (ptrdiff_t i = 0; i < shape.q * shape.ld; i++)
        if (!(fabs(after[i]) <= 1e150))
            return 0;
    return 1;
}

#endif
