/* Members of an average side by side: all learn the same rows, each fading towards its prior at a rate of its own.
 * A lane of every vector is a member.
 *
 * Here a triangle is kept as R = D^1/2 U: squares d_j of its diagonal, and rows u_jk of a unit diagonal. A row (x, y) of
 * weight w, before which all that is known is multiplied by f, is rotated in without a square root (Gentleman 1973):
 *
 *     d_j' = f d_j + w x_j^2,   c = f d_j / d_j',   s = w x_j / d_j',
 *     x_k <- x_k - x_j u_jk,    u_jk <- c u_jk + s x_k (as it was),    w <- c w.
 *
 * What is left of x is that of a forward substitution, so what is left of y is the error of its prediction, and the
 * leverage is sum(w s x) / (w w'), of the weights before and after. What fades are the d_j alone. */
#ifndef POSTERITY_SIDE_BY_SIDE_H
#define POSTERITY_SIDE_BY_SIDE_H

#include "posterity_noise_lanes.h"

/* Rows that are looked at together, and done again one member after another where something can't be told here. */
#define PK_STRETCH 64
#define PK_ABREAST 4

/* The members in lanes: packed triangles as above, the last entry the residual sum of squares, and their priors'. */
typedef struct {
    pk_vector *triangle, *prior; /* (q (q + 1) / 2) */
    pk_vector *row;              /* (PK_ABREAST, q) */
    pk_vector rate, weight;      /* of the priors, which is 1 between calls */
} pk_lanes;

#define PK_LANES_SIZE(shape) (PK_LANES * (3 * PK_PACKED(shape) + PK_ABREAST * (shape).q))
#define PK_PACKED(shape) ((shape).q * ((shape).q + 1) / 2)

/* Inverses of `count` values, pairs of them by one division. */
PK_INLINE pk_integers pk_invert(const pk_vector *x, pk_vector *inverse, int count)
{
    pk_integers fine = (pk_integers){0} - 1;
    PK_UNROLL
    for (int r = 0; r + 1 < count; r += 2) {
        pk_vector product = x[r] * x[r + 1], one = 1.0 / product;
        inverse[r] = one * x[r + 1];
        inverse[r + 1] = one * x[r];
        fine &= (product > 1e-280) & (product < 1e280);
    }
    if (count % 2) {
        inverse[count - 1] = 1.0 / x[count - 1];
        fine &= (x[count - 1] > 1e-280) & (x[count - 1] < 1e280);
    }
    return fine;
}

/* Rotate `count` <= PK_ABREAST rows in, which are 0 before column `from`; before each all fades by its f. What is left of
 * the weights w comes back, the explained sums (w s x), and whether all numbers were in range. */
PK_INLINE pk_integers pk_enter(pk_lanes *s, ptrdiff_t from, int count, const pk_vector *f, pk_vector *w,
                               pk_vector *explained, pk_shape shape)
{
    pk_vector *t = s->triangle + from * shape.q - from * (from - 1) / 2, *rows = s->row;
    pk_integers fine = (pk_integers){0} - 1;
    for (ptrdiff_t j = from; j < shape.p; t += shape.q - j, j++) {
        pk_vector b[PK_ABREAST], before[PK_ABREAST], d[PK_ABREAST], c[PK_ABREAST], sine[PK_ABREAST];
        pk_vector known = t[0];
        PK_UNROLL
        for (int r = 0; r < count; r++) {
            b[r] = rows[r * shape.q + j];
            before[r] = f[r] * known;
            known = d[r] = before[r] + w[r] * b[r] * b[r];
        }
        t[0] = known;
        fine &= pk_invert(d, c, count);
        PK_UNROLL
        for (int r = 0; r < count; r++) {
            pk_vector moved = w[r] * b[r];
            sine[r] = moved * c[r];
            pk_vector share = sine[r] * b[r];
            /* Rounded so that c + s x_j is 1, what is known doesn't shrink bit by bit. */
            c[r] = pk_choose(1.0 - share, before[r] * c[r], share < 0.5);
            explained[r] += w[r] * share;
            w[r] *= c[r];
        }
        for (ptrdiff_t k = 1; k < shape.q - j; k++) {
            pk_vector u = t[k];
            PK_UNROLL
            for (int r = 0; r < count; r++) {
                pk_vector *x = rows + r * shape.q + j + k, old = *x;
                *x = old - b[r] * u;
                u = c[r] * u + sine[r] * old;
            }
            t[k] = u;
        }
    }
    PK_UNROLL
    for (int r = 0; r < count; r++) {
        pk_vector error = rows[r * shape.q + shape.p];
        *t = f[r] * *t + w[r] * error * error;
    }
    return fine;
}

/* Let the priors weigh `target`, which is at least what they do: a few of their rows at a time. */
PK_INLINE pk_integers pk_raise_priors(pk_lanes *s, pk_vector target, pk_shape shape)
{
    pk_integers fine = (pk_integers){0} - 1;
    const pk_vector *prior = s->prior;
    for (ptrdiff_t i = 0; i < shape.q; i += PK_ABREAST) {
        pk_vector f[PK_ABREAST], w[PK_ABREAST], explained[PK_ABREAST] = {{0}};
        for (ptrdiff_t r = 0; r < PK_ABREAST; r++) {
            f[r] = (pk_vector){0} + 1.0;
            w[r] = target - s->weight;
            memset(s->row + r * shape.q + i, 0, (size_t)(shape.q - i) * sizeof(pk_vector));
            if (i + r < shape.q) {
                memcpy(s->row + r * shape.q + i + r, prior, (size_t)(shape.q - i - r) * sizeof(pk_vector));
                prior += shape.q - i - r;
            }
        }
        fine &= pk_enter(s, i, PK_ABREAST, f, w, explained, shape);
    }
    s->weight = target;
    return fine;
}

/* Rows first..first+count: error and leverage (n, lanes of all members) of each before it is learned. */
PK_INLINE pk_integers pk_enter_rows(pk_lanes *s, const pk_rows *rows, ptrdiff_t first, int count, const pk_vector *f,
                                    double *error, double *leverage, ptrdiff_t lanes, pk_shape shape)
{
    pk_vector w[PK_ABREAST], whole[PK_ABREAST], explained[PK_ABREAST];
    PK_UNROLL
    for (int r = 0; r < count; r++) {
        const double *x = rows->X + (first + r) * rows->x_stride;
        pk_vector *row = s->row + r * shape.q;
        w[r] = whole[r] = (pk_vector){0} + (rows->weights ? rows->weights[first + r] : 1.0);
        explained[r] = (pk_vector){0};
        if (rows->intercept)
            *row++ = (pk_vector){0} + 1.0;
        for (ptrdiff_t m = 0; m < rows->columns; m++)
            *row++ = (pk_vector){0} + x[m * rows->x_step];
        *row = (pk_vector){0} + rows->Y[first + r];
    }
    pk_integers fine = pk_enter(s, 0, count, f, w, explained, shape);
    PK_UNROLL
    for (int r = 0; r < count; r++) {
        *(pk_vector *)(error + (first + r) * lanes) = s->row[r * shape.q + shape.p];
        *(pk_vector *)(leverage + (first + r) * lanes) = explained[r] / (whole[r] * w[r]);
        s->weight *= f[r];
    }
    return fine;
}

/* What each member keeps in a stretch of time. */
PK_INLINE pk_vector pk_kept(pk_vector rate, double elapsed)
{
    pk_vector kept = rate;
    if (elapsed != 1.0)
        for (int l = 0; l < PK_LANES; l++)
            kept[l] = pow(rate[l], elapsed);
    return pk_larger(kept, (pk_vector){0} + 1e-12);
}

/* Learn rows first..stop, of weights that are neither 0 nor extreme: 0 where not all numbers were in range. kept
 * (PK_STRETCH) has what is left before each row. The priors weigh up to 1 / PK_LEAST_FADE in between, and 1 at the end. */
PK_INLINE int pk_learn_stretch(pk_lanes *s, const pk_rows *rows, ptrdiff_t first, ptrdiff_t stop, const pk_vector *kept,
                               double *error, double *leverage, ptrdiff_t lanes, pk_shape shape)
{
    const pk_vector one = (pk_vector){0} + 1.0, least = (pk_vector){0} + PK_LEAST_FADE;
    pk_integers fine = (pk_integers){0} - 1;
    for (ptrdiff_t i = first; i < stop;) {
        pk_vector fade = kept[i - first];
        ptrdiff_t to = i + 1;
        while (to < stop && pk_everywhere(fade * kept[to - first] >= least))
            fade *= kept[to++ - first];
        if (to < stop && to - i > PK_ABREAST)
            for (; (to - i) % PK_ABREAST; to--)
                fade /= kept[to - 1 - first];
        if (!pk_everywhere(fade == one))
            fine &= pk_raise_priors(s, pk_larger(1.0 / fade, s->weight), shape);
        for (; i + PK_ABREAST <= to; i += PK_ABREAST)
            fine &= pk_enter_rows(s, rows, i, PK_ABREAST, kept + i - first, error, leverage, lanes, shape);
        for (; i + 2 <= to; i += 2)
            fine &= pk_enter_rows(s, rows, i, 2, kept + i - first, error, leverage, lanes, shape);
        for (; i < to; i++)
            fine &= pk_enter_rows(s, rows, i, 1, kept + i - first, error, leverage, lanes, shape);
    }
    return pk_everywhere(fine);
}

/* ---- in and out of lanes ---------------------------------------------------------------------- */

/* The triangles (q, ld) at T into lanes, those beyond `members` copies of the first; 0 where a diagonal is 0. */
static int pk_to_lanes(pk_lanes *s, double *const *T, ptrdiff_t members, pk_shape shape)
{
    int whole = 1;
    for (int l = 0; l < PK_LANES; l++) {
        const double *from = T[l < members ? l : 0];
        pk_vector *to = s->triangle;
        for (ptrdiff_t j = 0; j < shape.q; j++) {
            double a = from[j * (shape.ld + 1)];
            whole &= a > 0.0;
            (*to++)[l] = a * a;
            for (ptrdiff_t k = j + 1; k < shape.q; k++)
                (*to++)[l] = from[j * shape.ld + k] / a;
        }
    }
    return whole;
}

static void pk_from_lanes(const pk_lanes *s, double *const *T, ptrdiff_t members, pk_shape shape)
{
    for (int l = 0; l < members && l < PK_LANES; l++) {
        const pk_vector *from = s->triangle;
        for (ptrdiff_t j = 0; j < shape.q; j++) {
            double a = sqrt((*from++)[l]);
            T[l][j * (shape.ld + 1)] = a;
            for (ptrdiff_t k = j + 1; k < shape.q; k++)
                T[l][j * shape.ld + k] = a * (*from++)[l];
        }
    }
}

/* One member after another, as each would alone. discounts (PK_STRETCH) and told (3, PK_STRETCH) are room. */
static int pk_learn_in_turn(double *const *T, const double *const *prior, ptrdiff_t members, const pk_rows *rows,
                            ptrdiff_t first, ptrdiff_t stop, const pk_vector *kept, double *room, double *error,
                            double *leverage, ptrdiff_t lanes, pk_shape shape)
{
    double discounts[PK_STRETCH], told[3 * PK_STRETCH], *flight = room + PK_PANEL * shape.q;
    pk_before before = {told, told + PK_STRETCH, told + 2 * PK_STRETCH};
    pk_rows part = *rows;
    part.X = rows->X + first * rows->x_stride;
    part.Y = rows->Y + first;
    part.weights = rows->weights ? rows->weights + first : NULL;
    part.discounts = discounts;
    part.n = stop - first;
    for (int l = 0; l < members && l < PK_LANES; l++) {
        for (ptrdiff_t i = 0; i < part.n; i++)
            discounts[i] = kept[i][l];
        memset(flight, 0, (size_t)PK_FLIGHT_SIZE(shape) * sizeof(double));
        if (pk_learn_stabilized(T[l], room, flight, &part, shape, prior[l], &before))
            return 0;
        for (ptrdiff_t i = 0; i < part.n; i++) {
            error[(first + i) * lanes + l] = told[i];
            leverage[(first + i) * lanes + l] = told[PK_STRETCH + i];
        }
    }
    return 1;
}

#define PK_ROOM_IN_TURN(shape) (PK_PANEL * (shape).q + PK_FLIGHT_SIZE(shape))

/* Learn rows in the triangles T (members of them, at most PK_LANES), before each of which all but their priors is
 * multiplied by rate^elapsed, as are the counts (members). error and leverage (n, lanes). work (PK_LANES_SIZE), room (PK_ROOM_IN_TURN). Returns 0 where a triangle
 * was not at least its prior. */
static int pk_learn_side_by_side(double *const *T, const double *const *prior, const double *rates, ptrdiff_t members,
                                 double *counts, const pk_rows *rows, const double *elapsed, double *work, double *room,
                                 double *error, double *leverage, ptrdiff_t lanes, pk_shape shape)
{
    pk_lanes s = {(pk_vector *)work, (pk_vector *)work + PK_PACKED(shape), (pk_vector *)work + 3 * PK_PACKED(shape)};
    pk_vector *saved = (pk_vector *)work + 2 * PK_PACKED(shape), kept[PK_STRETCH];
    size_t size = (size_t)PK_PACKED(shape) * sizeof(pk_vector);
    int inside = 0;
    s.weight = (pk_vector){0} + 1.0;
    for (int l = 0; l < PK_LANES; l++) {
        const double *from = prior[l < members ? l : 0];
        pk_vector *to = s.prior;
        s.rate[l] = rates[l < members ? l : 0];
        for (ptrdiff_t j = 0; j < shape.q; j++)
            for (ptrdiff_t k = j; k < shape.q; k++)
                (*to++)[l] = from[j * shape.ld + k];
    }
    for (ptrdiff_t first = 0; first < rows->n; first += PK_STRETCH) {
        ptrdiff_t stop = first + PK_STRETCH < rows->n ? first + PK_STRETCH : rows->n;
        pk_rows undiscounted = *rows;
        undiscounted.discounts = NULL;
        for (ptrdiff_t i = first; i < stop; i++)
            kept[i - first] = i > first && elapsed[i] == elapsed[i - 1] ? kept[i - first - 1] : pk_kept(s.rate, elapsed[i]);
        for (ptrdiff_t i = first; i < stop; i++)
            for (int l = 0; l < members && l < PK_LANES; l++)
                counts[l] = kept[i - first][l] * counts[l] + (rows->weights ? rows->weights[i] : 1.0);
        if (!pk_is_awkward(&undiscounted, first, stop - first)) {
            if (!inside)
                inside = pk_to_lanes(&s, T, members, shape);
            if (inside) {
                memcpy(saved, s.triangle, size);
                if (pk_learn_stretch(&s, rows, first, stop, kept, error, leverage, lanes, shape))
                    continue;
                memcpy(s.triangle, saved, size);
                s.weight = (pk_vector){0} + 1.0;
            }
        }
        if (inside)
            pk_from_lanes(&s, T, members, shape);
        inside = 0;
        if (!pk_learn_in_turn(T, prior, members, rows, first, stop, kept, room, error, leverage, lanes, shape))
            return 0;
    }
    if (inside)
        pk_from_lanes(&s, T, members, shape);
    return 1;
}

#endif
