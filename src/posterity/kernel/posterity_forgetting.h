/* Learning row by row while what is old fades, wanders or leaves. See posterity_kernel.h. */
#ifndef POSTERITY_FORGETTING_H
#define POSTERITY_FORGETTING_H

#include "posterity_flight.h"
#include "posterity_panel.h"
#include "posterity_removal.h"

/* ---- fading towards the prior ---------------------------------------------------------------- */

/* The prior fades with the rest and is refreshed before a flight would take it below its own weight; it is
 * then raised this much more, so that it need not be for a while. */
#define PK_HEADROOM 1.1
/* Beyond this much more than its own weight a prior is taken out; what is less is rounding. */
#define PK_NO_SURPLUS 1e-14
/* Flights are cut short so that what fades meanwhile, and the prior with it, keeps this. */
#define PK_LEAST_FADE 0.6

/* Pairs of rows that may fly together from `first` on; 0 where a single row has to go by itself. */
PK_INLINE ptrdiff_t pk_count_parallel_pairs(const pk_rows *rows, ptrdiff_t first)
{
    for (ptrdiff_t pairs = PK_PAIRS; pairs > 0; pairs /= 2)
        if (rows->n - first >= 2 * pairs && !pk_is_awkward(rows, first, 2 * pairs)
            && pk_fade(rows, first, 2 * pairs) >= PK_LEAST_FADE)
            return pairs;
    return 0;
}

/* Take root times the rows of the triangle `other` out. row (ld). */
PK_INLINE int pk_remove_triangle(double *T, double *row, const double *other, double root, pk_shape shape)
{
    double least = 1.0;
    for (ptrdiff_t i = 0; i < shape.q; i++) {
        for (ptrdiff_t c = 0; c < shape.ld; c++)
            row[c] = root * other[i * shape.ld + c];
        if (other[i * shape.ld + i] != 0.0 && pk_remove_row(T, row, shape, &least))
            return 1;
    }
    return 0;
}

/* Learn rows in order, everything but the prior discounted before each: prior + discounted data
 * (Kulhavy and Zarrop 1993). On return the prior in T weighs exactly 1; NULL is one that is flat. buffer
 * (PK_APPEND_SIZE), flight (PK_FLIGHT_SIZE). Discounts are at least 1e-12. Returns 0; 1 if T was not at least its prior. */
static int pk_learn_stabilized(double *T, double *buffer, double *flight_buffer, const pk_rows *rows,
                               pk_shape shape, const double *prior, const pk_before *before)
{
    pk_pipeline flight = pk_new_pipeline(flight_buffer, shape);
    int deficient = pk_is_deficient(T, shape);
    double weight = 1.0;
    for (ptrdiff_t first = 0; first < rows->n;) {
        ptrdiff_t pairs = deficient ? 0 : pk_count_parallel_pairs(rows, first), count = pairs ? 2 * pairs : 1;
        double fade = pk_fade(rows, first, count);
        if (prior && weight * fade < 1.0) {
            double target = (first + count < rows->n ? PK_HEADROOM : 1.0) / fade;
            pk_append_triangle(T, buffer, prior, sqrt(target - weight), shape);
            weight = target;
        }
        if (pairs == 0) {
            pk_learn_row_by_rotations(T, flight_buffer, rows, first, shape, before);
            deficient = deficient && pk_is_deficient(T, shape);
        } else {
            pk_learn_together(T, &flight, rows, first, pairs, shape, before);
        }
        weight *= fade;
        first += count;
    }
    if (prior && weight - 1.0 > PK_NO_SURPLUS) {
        memset(flight_buffer, 0, (size_t)shape.ld * sizeof(double));
        return pk_remove_triangle(T, flight_buffer, prior, sqrt(weight - 1.0), shape);
    }
    return 0;
}

/* Discount all that is known before one row; a prior, where it is given, keeps its weight. held (q), buffer (PK_APPEND_SIZE). */
static void pk_fade_one(double *T, double *held, double *buffer, double discount, const double *prior, pk_shape shape)
{
    if (prior) {
        pk_fade_triangle(T, sqrt(discount), NULL, shape);
        pk_append_triangle(T, buffer, prior, sqrt(1.0 - discount), shape);
        return;
    }
    memset(held, 0, (size_t)shape.q * sizeof(double));
    pk_floor_faded(T, held, shape);
    pk_fade_triangle(T, sqrt(discount), held, shape);
}

/* ---- fading only where a row brings information ----------------------------------------------- */

/* out (ld) += scale * triangle' (triangle x), over the first `height` rows; returns |triangle x|^2. */
PK_INLINE double pk_add_information(const double *triangle, const double *x, double scale, double *out,
                                    ptrdiff_t height, pk_shape shape)
{
    double square = 0.0;
    for (ptrdiff_t j = 0; j < height; j++) {
        const double *t = triangle + j * shape.ld;
        pk_vector sum = {0};
        for (ptrdiff_t v = j & -PK_LANES; v < shape.ld; v += PK_LANES)
            sum += *(const pk_vector *)(t + v) * *(const pk_vector *)(x + v);
        double u = pk_sum(sum);
        square += u * u;
        for (ptrdiff_t v = j & -PK_LANES; v < shape.ld; v += PK_LANES)
            *(pk_vector *)(out + v) += scale * u * *(const pk_vector *)(t + v);
    }
    return square;
}

/* Information beyond the prior, D = R'R - R0'R0, loses (1 - discount) D x x'D / (x'D x): all that it
 * says of direction x fades by the discount, and nothing else does (Cao and Schwartz 2000; Lai and
 * Bernstein 2024 for several rows). The mean stays. x (ld) with zeros beyond p; work (3, ld). */
PK_INLINE void pk_forget_along(double *T, const double *prior, const double *x, double discount, double *work,
                               pk_shape shape)
{
    double *row = work, *of_prior = work + shape.ld, *m = work + 2 * shape.ld;
    memset(work, 0, (size_t)(2 * shape.ld) * sizeof(double));
    double whole = pk_add_information(T, x, 1.0, row, shape.p, shape);
    double least = 1.0, information = whole - pk_add_information(prior, x, 1.0, of_prior, shape.p, shape);
    if (!(information > 1e-10 * whole))
        return;
    pk_shape coefficients = shape;
    coefficients.q = shape.p;
    double root = sqrt((1.0 - discount) / information);
    for (ptrdiff_t t = shape.p; t < shape.q; t++) {
        /* Back substitution for the mean m; what the row says of the target is Dx . m. */
        for (ptrdiff_t j = shape.p - 1; j >= 0; j--) {
            const double *r = T + j * shape.ld;
            m[j] = r[t];
            for (ptrdiff_t c = j + 1; c < shape.p; c++)
                m[j] -= r[c] * m[c];
            m[j] = r[j] == 0.0 ? 0.0 : m[j] / r[j];
            row[t] -= of_prior[j] * m[j];
        }
    }
    for (ptrdiff_t c = 0; c < shape.p; c++)
        row[c] -= of_prior[c];
    for (ptrdiff_t c = 0; c < shape.q; c++)
        row[c] *= root;
    (void)pk_remove_row(T, row, coefficients, &least);
}

/* Forget before one row, along its direction only, and the noise as a whole. x (ld) is the row, work (3, ld). */
static void pk_fade_along(double *T, const double *prior, double *x, double discount, double *work, pk_shape shape)
{
    memset(x + shape.p, 0, (size_t)(shape.ld - shape.p) * sizeof(double));
    pk_forget_along(T, prior, x, discount, work, shape);
    for (ptrdiff_t c = shape.p * shape.ld; c < shape.q * shape.ld; c++)
        T[c] *= sqrt(discount);
}

/* Learn rows in order, forgetting before each along its own direction only, and the noise as a whole.
 * buffer (4, ld). */
static void pk_learn_directional(double *T, double *buffer, const pk_rows *rows, pk_shape shape,
                                 const double *prior, const pk_before *before)
{
    pk_rows undiscounted = *rows, points = *rows;
    undiscounted.discounts = NULL;
    points.Y = NULL;
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        double discount = rows->discounts[i];
        if (discount < 1.0) {
            pk_load_row(buffer, &points, i, 1.0, shape);
            pk_fade_along(T, prior, buffer, discount, buffer + shape.ld, shape);
        }
        memset(buffer, 0, (size_t)shape.ld * sizeof(double));
        pk_learn_row_by_rotations(T, buffer, &undiscounted, i, shape, before);
    }
}

/* ---- coefficients that wander -------------------------------------------------------------------- */

/* Rotate row i + 1 into row i, from column i on, so that column c of the first has the norm of both; nothing is left below. */
PK_INLINE void pk_rotate_up(double *T, ptrdiff_t i, ptrdiff_t c, pk_shape shape)
{
    double *restrict above = T + i * shape.ld, *restrict below = above + shape.ld;
    double a = above[c], b = below[c], norm = sqrt(a * a + b * b);
    if (b == 0.0 || !(norm > 0.0))
        return;
    double cosine = a / norm, sine = b / norm;
    for (ptrdiff_t v = i & -PK_LANES; v < shape.ld; v += PK_LANES) {
        pk_vector *first = (pk_vector *)(above + v), *second = (pk_vector *)(below + v), old = *first;
        *first = cosine * old + sine * *second;
        *second = cosine * *second - sine * old;
    }
    above[c] = norm;
    below[c] = 0.0;
}

/* Coefficient c alone moves by a step ~ Normal(0, variance), and what the rows before `first` say stays. Rotations take all
 * that is known of c, R's column, to row `first`, which then knows less, 1 / R_fc^2 + variance; others make R a triangle
 * again. 0, and nothing happens, where a direction up to c is open. */
PK_INLINE int pk_walk_one(double *T, ptrdiff_t c, ptrdiff_t first, double variance, pk_shape shape)
{
    for (ptrdiff_t i = first; i <= c; i++)
        if (T[i * shape.ld + i] == 0.0)
            return 0;
    for (ptrdiff_t i = c - 1; i >= first; i--)
        pk_rotate_up(T, i, c, shape);
    double *row = T + first * shape.ld, left = 1.0 / sqrt(1.0 + variance * row[c] * row[c]);
    for (ptrdiff_t k = first; k < shape.q; k++)
        row[k] *= left;
    for (ptrdiff_t i = first; i < c; i++)
        pk_rotate_up(T, i, i, shape);
    double *last = T + c * shape.ld, sign = last[c] < 0.0 ? -1.0 : 1.0;
    for (ptrdiff_t k = c; k < shape.q; k++)
        last[k] *= sign;
    return 1;
}

#define PK_WALK_SIZE(shape) (((shape).q + (shape).p) * ((shape).q + (shape).p + PK_LINE + PK_PANEL))

/* Coefficients move by a step ~ Normal(0, variance) (p), in units of the noise's variance.
 *
 * Rows of the step (those with a variance) and of the coefficients after it, w = v + step:
 *     [ variance^-1/2   0   0 ]        what is known of the step
 *     [     -R          R   Z ]        what is known of v = w - step
 * The triangle of this stack, below the rows of the step, is what is known of w (Bierman 1977).
 * Where one moves alone pk_walk_one does the same sooner. work (PK_WALK_SIZE). */
PK_INLINE void pk_random_walk_step(double *T, const double *variance, double *work, pk_shape shape)
{
    ptrdiff_t steps = 0, one = 0;
    for (ptrdiff_t c = 0; c < shape.p; c++)
        if (variance[c] > 0.0) {
            steps++;
            one = c;
        }
    if (steps == 0 || (steps == 1 && pk_walk_one(T, one, 0, variance[one], shape)))
        return;
    pk_shape both = {shape.p + steps, shape.k, shape.q + steps, 0};
    both.ld = (both.q + PK_LINE - 1) & -PK_LINE;
    double *panel = work, *wide = work + PK_PANEL * both.q;
    memset(wide, 0, (size_t)(both.q * both.ld) * sizeof(double));
    for (ptrdiff_t c = 0, s = 0; c < shape.p; c++)
        if (variance[c] > 0.0) {
            wide[s * both.ld + s] = 1.0 / sqrt(variance[c]);
            s++;
        }
    for (ptrdiff_t t = 0; t < shape.k; t++)
        memcpy(wide + (both.p + t) * both.ld + both.p, T + (shape.p + t) * shape.ld + shape.p,
               (size_t)shape.k * sizeof(double));
    for (ptrdiff_t first = 0; first < shape.p; first += PK_PANEL) {
        ptrdiff_t stop = first + PK_PANEL < shape.p ? first + PK_PANEL : shape.p;
        ptrdiff_t slices = (stop - first + PK_LANES - 1) / PK_LANES;
        for (ptrdiff_t c = 0; c < both.q; c++)
            memset(panel + c * PK_PANEL, 0, (size_t)(slices * PK_LANES) * sizeof(double));
        for (ptrdiff_t i = first; i < stop; i++) {
            for (ptrdiff_t c = 0, s = 0; c < shape.p; c++)
                if (variance[c] > 0.0)
                    panel[s++ * PK_PANEL + i - first] = -T[i * shape.ld + c];
            for (ptrdiff_t c = 0; c < shape.q; c++)
                panel[(steps + c) * PK_PANEL + i - first] = T[i * shape.ld + c];
        }
        for (ptrdiff_t j = 0; j < both.q; j++)
            pk_reflect_part(wide, panel, j, slices, both);
    }
    for (ptrdiff_t j = 0; j < shape.q; j++)
        memcpy(T + j * shape.ld, wide + (steps + j) * both.ld + steps, (size_t)shape.q * sizeof(double));
}

/* Of what a row tells of a slope, relative to what is known, the most that the slope may have moved before it. */
#define PK_MOVES_A_VISIT 10.0

/* Slope c moves alone, and what is expected at the mean of its feature stays. Its variance P grows by `growth` of it at
 * most, and only so far as the row tells of c, a square (x - mean)^2 P: what no row visits is not forgotten. work (p). */
PK_INLINE void pk_slope_step(double *T, ptrdiff_t c, double x, double growth, int intercept, double *work, pk_shape shape)
{
    double away = x - (intercept && T[0] != 0.0 ? T[c] / T[0] : 0.0), known = 0.0;
    for (ptrdiff_t k = c; k < shape.p; k++) { /* R^-T e_c */
        double left = k == c;
        for (ptrdiff_t i = c; i < k; i++)
            left -= T[i * shape.ld + k] * work[i];
        work[k] = left / T[k * shape.ld + k];
        known += work[k] * work[k];
    }
    if (!(known < 1e300)) /* NaN where a direction is open */
        return;
    double visit = PK_MOVES_A_VISIT * away * away * known;
    (void)pk_walk_one(T, c, intercept, known * (visit < growth ? visit : growth), shape);
}

/* Coefficients that wander before row i for elapsed[i] >= 0 units of time; step (p), work (PK_WALK_SIZE). A slope, where
 * it is not negative, wanders alone, and its variance is the growth of pk_slope_step. */
typedef struct {
    const double *variance, *elapsed;
    ptrdiff_t slope;
    double *step, *work;
} pk_walk;

PK_INLINE void pk_wander(double *T, const pk_walk *walk, const pk_rows *rows, ptrdiff_t i, pk_shape shape)
{
    double elapsed = walk->elapsed[i];
    ptrdiff_t c = walk->slope;
    if (!(elapsed > 0.0))
        return;
    if (c >= 0) { /* a row without weight is time that passes */
        double x = rows->X[i * rows->x_stride + (c - rows->intercept) * rows->x_step];
        int tells = !rows->weights || rows->weights[i] > 0.0;
        pk_slope_step(T, c, tells ? x : INFINITY, walk->variance[c] * elapsed, rows->intercept, walk->work, shape);
        return;
    }
    for (c = 0; c < shape.p; c++)
        walk->step[c] = walk->variance[c] * elapsed;
    pk_random_walk_step(T, walk->step, walk->work, shape);
}

/* Learn rows in order; before each the coefficients wander. buffer (ld). */
static void pk_learn_random_walk(double *T, double *buffer, const pk_rows *rows, pk_shape shape, const pk_walk *walk,
                                 const pk_before *before)
{
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        pk_wander(T, walk, rows, i, shape);
        pk_learn_row_by_rotations(T, buffer, rows, i, shape, before);
    }
}

/* ---- one row --------------------------------------------------------------------------------------- */

/* The prediction of a row that the caller has loaded, times the root of its weight, before it is learned: its error, how
 * much more it varies than the noise, and the residual sum of squares. row (ld) is used up. */
static double pk_predict_before(const double *T, double *row, double root, double y, pk_shape shape, double *error,
                          double *residual)
{
    row[shape.p] = 0.0;
    double leverage = pk_predict_row(T, row, shape) / (root * root);
    *error = y + row[shape.p] / root;
    pk_residuals(T, residual, shape);
    return 1.0 + leverage;
}

/* ---- many triangles --------------------------------------------------------------------------------- */

/* Learn row i of rows in each of `count` triangles (count, q, ld); before is per triangle. buffer (ld). */
static void pk_learn_bank(double *bank, ptrdiff_t count, double *buffer, const pk_rows *rows,
                          pk_shape shape, const pk_before *before)
{
    for (ptrdiff_t b = 0; b < count; b++) {
        pk_before of_one = {before->error + b * shape.k, before->leverage + b, before->residual + b * shape.k};
        pk_learn_row_by_rotations(bank + b * shape.q * shape.ld, buffer, rows, 0, shape, &of_one);
    }
}

#endif
