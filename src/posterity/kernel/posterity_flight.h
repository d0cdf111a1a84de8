/* Learning row by row, each row predicted before it is learned. See posterity_kernel.h for the algebra. */
#ifndef POSTERITY_FLIGHT_H
#define POSTERITY_FLIGHT_H

#include "posterity_givens.h"

/* Per row, before it was learned: the prediction error (n, k), leverage (n) and residual sum of
 * squares (n, k). */
typedef struct {
    double *error, *leverage, *residual;
} pk_before;

/* Diagonal of S'S. */
PK_INLINE void pk_residuals(const double *T, double *residual, pk_shape shape)
{
    for (ptrdiff_t t = 0; t < shape.k; t++) {
        residual[t] = 0.0;
        for (ptrdiff_t i = 0; i <= t; i++) {
            double s = T[(shape.p + i) * shape.ld + shape.p + t];
            residual[t] += s * s;
        }
    }
}

/* The plain way, for rows whose trace cannot tell: weight 0, an extreme weight, missing rank. */
PK_INLINE void pk_learn_row_by_rotations(double *T, double *row, const pk_rows *rows, ptrdiff_t i, pk_shape shape,
                                const pk_before *before)
{
    if (rows->discounts)
        pk_fade_triangle(T, sqrt(rows->discounts[i]), rows->held, shape);
    pk_rows without_targets = *rows;
    without_targets.Y = NULL;
    pk_load_row(row, &without_targets, i, 1.0, shape);
    double leverage = pk_predict_row(T, row, shape);
    before->leverage[i] = leverage;
    for (ptrdiff_t t = 0; t < shape.k; t++)
        before->error[i * shape.k + t] = rows->Y[i * shape.k + t] + row[shape.p + t];
    pk_residuals(T, before->residual + i * shape.k, shape);
    double root_weight = pk_root_weight(rows, i);
    pk_load_row(row, rows, i, root_weight, shape);
    pk_append_row(T, row, shape);
}

/* PK_IN_FLIGHT rows that travel through the triangle together. */
typedef struct {
    double *row;      /* (PK_IN_FLIGHT, ld) what is left of each row */
    double *cosine;   /* (steps, 2, PK_PAIRS) of the first rows of all pairs, then of the second ones */
    double *sine;     /* (steps, 2, PK_PAIRS) */
    double *left;     /* (PK_IN_FLIGHT, k) of the targets, when the row has passed the coefficients */
    double *residual; /* (k) */
    double root_weight[PK_IN_FLIGHT], root_fade[PK_IN_FLIGHT];
} pk_pipeline;

/* Steps of a flight: the last pair enters when the first is PK_PAIRS - 1 rows of the triangle ahead. */
#define PK_STEPS(shape) ((shape).q + PK_PAIRS - 1)
#define PK_FLIGHT_SIZE(shape) ((PK_IN_FLIGHT + 1) * (shape).ld + (2 * PK_STEPS(shape) + (shape).k) * PK_IN_FLIGHT)

PK_INLINE pk_pipeline pk_new_pipeline(double *buffer, pk_shape shape)
{
    pk_pipeline flight;
    flight.row = buffer;
    flight.residual = buffer + PK_IN_FLIGHT * shape.ld;
    flight.cosine = flight.residual + shape.ld;
    flight.sine = flight.cosine + PK_STEPS(shape) * PK_IN_FLIGHT;
    flight.left = flight.sine + PK_STEPS(shape) * PK_IN_FLIGHT;
    return flight;
}

/* Rows and triangle come scaled by what the rest of the flight will still discount them by. */
PK_INLINE void pk_load_batch(double *T, pk_pipeline *flight, const pk_rows *rows, ptrdiff_t first, ptrdiff_t pairs,
                        pk_shape shape)
{
    double fade = 1.0;
    for (ptrdiff_t r = 2 * pairs - 1; r >= 0; r--) {
        flight->root_weight[r] = rows->weights ? sqrt(rows->weights[first + r]) : 1.0;
        flight->root_fade[r] = rows->discounts ? sqrt(fade) : 1.0;
        fade *= pk_discount(rows, first + r);
        double scale = flight->root_weight[r] * flight->root_fade[r];
        pk_load_row(flight->row + r * shape.ld, rows, first + r, scale, shape);
    }
    if (rows->discounts)
        pk_fade_triangle(T, sqrt(fade), rows->held, shape);
    pk_residuals(T, flight->residual, shape);
}

/* What the rotations tell of each row before it was learned. With h its leverage, the product of its
 * cosines is 1/sqrt(1 + h) and what is left of its targets is product * error; 1 - product^2 = h/(1 + h)
 * is summed without cancellation. The squares of what is left add up to the residual. */
PK_INLINE void pk_write_bounds(const double *T, const pk_pipeline *flight, ptrdiff_t first, ptrdiff_t pairs, pk_shape shape,
                       const pk_before *before)
{
    double product[PK_IN_FLIGHT], explained[PK_IN_FLIGHT];
    for (ptrdiff_t step = shape.p; step < shape.p + PK_PAIRS - 1; step++)
        for (ptrdiff_t g = 0; g <= step - shape.p; g++) {  /* these pairs are beyond the coefficients */
            double *cosine = flight->cosine + step * PK_IN_FLIGHT + g, *sine = flight->sine + step * PK_IN_FLIGHT + g;
            cosine[0] = cosine[PK_PAIRS] = 1.0;
            sine[0] = sine[PK_PAIRS] = 0.0;
        }
    for (ptrdiff_t v = 0; v < PK_IN_FLIGHT; v += PK_LANES) {
        pk_vector all = (pk_vector){0} + 1.0, sum = {0};
        for (ptrdiff_t step = 0; step < shape.p + PK_PAIRS - 1; step++) {
            pk_vector part = all * *(const pk_vector *)(flight->sine + step * PK_IN_FLIGHT + v);
            sum += part * part;
            all *= *(const pk_vector *)(flight->cosine + step * PK_IN_FLIGHT + v);
        }
        *(pk_vector *)(product + v) = all;
        *(pk_vector *)(explained + v) = sum;
    }
    for (ptrdiff_t r = 0; r < 2 * pairs; r++) {
        ptrdiff_t i = first + r, at = r / 2 + r % 2 * PK_PAIRS;
        double scale = flight->root_weight[r] * product[at], fade = flight->root_fade[r];
        before->leverage[i] = explained[at] / (scale * scale);
        for (ptrdiff_t t = 0; t < shape.k; t++) {
            double left = flight->left[r * shape.k + t];
            before->error[i * shape.k + t] = left / (scale * fade);
            before->residual[i * shape.k + t] = flight->residual[t] / (fade * fade);
            /* Rounding is no residual: the triangle drops it as well. */
            if (flight->residual[t] != 0.0 || fabs(left) > pk_noise_level(T, shape.p + t, left, shape))
                flight->residual[t] += left * left;
        }
    }
}

PK_INLINE pk_quad pk_roots(pk_quad x)
{
    return (pk_quad){sqrt(x[0]), sqrt(x[1]), sqrt(x[2]), sqrt(x[3])};
}

/* Entry j = step - g of pair g, or `other` for a pair that is not in the triangle yet, or no longer. */
#define PK_GATHER(entry, other) \
    {from <= 0 && 0 < to ? entry(0) : other, from <= 1 && 1 < to ? entry(1) : other, \
     from <= 2 && 2 < to ? entry(2) : other, from <= 3 && 3 < to ? entry(3) : other}
#define PK_DIAGONAL(g) T[(step - g) * (shape.ld + 1)]
#define PK_FIRST(g) flight->row[2 * g * shape.ld + step - g]
#define PK_SECOND(g) flight->row[(2 * g + 1) * shape.ld + step - g]

/* The rotations of one step: of the first rows of all pairs, whose diagonals are T_jj, then of the second
 * rows, whose diagonals are the norms of the first. Four square roots cost what one does. */
PK_INLINE void pk_make_rotations(const double *T, pk_pipeline *flight, ptrdiff_t step, ptrdiff_t from, ptrdiff_t to,
                                 pk_shape shape)
{
    pk_quad *cosine = (pk_quad *)(flight->cosine + step * PK_IN_FLIGHT);
    pk_quad *sine = (pk_quad *)(flight->sine + step * PK_IN_FLIGHT);
    pk_quad a = PK_GATHER(PK_DIAGONAL, 1.0), b0 = PK_GATHER(PK_FIRST, 0.0), b1 = PK_GATHER(PK_SECOND, 0.0);
    pk_quad square = a * a + b0 * b0, whole = square + b1 * b1;
    pk_quad norm0 = pk_roots(square), norm1 = pk_roots(whole);
    pk_flags plain = (a > 0.0) & (square > 1e-280) & (whole < 1e280);
    cosine[0] = a / norm0;
    sine[0] = b0 / norm0;
    cosine[1] = norm0 / norm1;
    sine[1] = b1 / norm1;
    if (PK_UNLIKELY(!(plain[0] & plain[1] & plain[2] & plain[3])))
        for (ptrdiff_t g = from; g < to; g++) {
            ptrdiff_t j = step - g, at = step * PK_IN_FLIGHT + g;
            double *row = flight->row + 2 * g * shape.ld, diagonal = T[j * shape.ld + j];
            pk_make_rotation(T, row, j, &diagonal, shape, flight->cosine + at, flight->sine + at);
            at += PK_PAIRS;
            pk_make_rotation(T, row + shape.ld, j, &diagonal, shape, flight->cosine + at, flight->sine + at);
        }
}

/* `pairs` <= PK_PAIRS pairs of rows from `first` on travel together, each pair one step behind the one before
 * it: at step s, pair g meets triangle row s - g. The result is that of one row after another, but the
 * long chains of square root and division overlap and the triangle stays in the nearest cache. */
PK_INLINE void pk_learn_together(double *T, pk_pipeline *flight, const pk_rows *rows, ptrdiff_t first, ptrdiff_t pairs,
                                 pk_shape shape, const pk_before *before)
{
    pk_load_batch(T, flight, rows, first, pairs, shape);
    for (ptrdiff_t step = 0; step < shape.q + pairs - 1; step++) {
        ptrdiff_t from = step < shape.q ? 0 : step - shape.q + 1, to = step < pairs ? step + 1 : pairs;
        ptrdiff_t done = step - shape.p;  /* the pair that has just passed the coefficients */
        if (done >= from && done < to) {
            const double *row = flight->row + 2 * done * shape.ld + shape.p;
            for (ptrdiff_t t = 0; t < shape.k; t++) {
                flight->left[2 * done * shape.k + t] = row[t];
                flight->left[(2 * done + 1) * shape.k + t] = row[shape.ld + t];
            }
        }
        if (to - from == PK_PAIRS)
            pk_make_rotations(T, flight, step, 0, PK_PAIRS, shape);  /* constants: nothing to ask of each pair */
        else
            pk_make_rotations(T, flight, step, from, to, shape);
        for (ptrdiff_t g = from; g < to; g++) {
            ptrdiff_t j = step - g, at = step * PK_IN_FLIGHT + g;
            double *row = flight->row + 2 * g * shape.ld;
            pk_apply_pair(flight->cosine[at], flight->sine[at], flight->cosine[at + PK_PAIRS],
                          flight->sine[at + PK_PAIRS], T + j * shape.ld, row, row + shape.ld, j, shape);
        }
    }
    pk_write_bounds(T, flight, first, pairs, shape, before);
}

/* Product of the discounts of rows first..first+count. */
PK_INLINE double pk_fade(const pk_rows *rows, ptrdiff_t first, ptrdiff_t count)
{
    double fade = 1.0;
    for (ptrdiff_t i = first; rows->discounts && i < first + count; i++)
        fade *= rows->discounts[i];
    return fade;
}

PK_INLINE int pk_is_awkward(const pk_rows *rows, ptrdiff_t first, ptrdiff_t count)
{
    for (ptrdiff_t i = first; rows->weights && i < first + count; i++)
        if (!(rows->weights[i] > 0.0 && rows->weights[i] < 1e6))
            return 1;
    return pk_fade(rows, first, count) < 1e-12;
}

/* A diagonal may fade until it is this small beside its column, or by itself: then it is held. What is
 * known of that direction is as good as nothing; less would be rounding, and pass for knowledge. */
#define PK_FADED 1e-7
#define PK_SMALLEST 1e-120

PK_RARE void pk_floor_faded(const double *T, double *held, pk_shape shape)
{
    for (ptrdiff_t j = 0; j < shape.p; j++) {
        double left = T[j * shape.ld + j], square = 0.0;
        for (ptrdiff_t i = 0; i <= j; i++)
            square += T[i * shape.ld + j] * T[i * shape.ld + j];
        int faded = left > 0.0 && (left < PK_FADED * sqrt(square) || left < PK_SMALLEST);
        held[j] = faded ? (held[j] > 0.0 ? held[j] : left) : 0.0;
    }
}

/* Learn all rows in order. buffer (PK_FLIGHT_SIZE). */
static void pk_learn_rows(double *T, double *buffer, const pk_rows *rows, pk_shape shape, const pk_before *before)
{
    pk_pipeline flight = pk_new_pipeline(buffer, shape);
    int deficient = pk_is_deficient(T, shape);
    double fade = 0.0; /* since the last look at what has faded */
    for (ptrdiff_t first = 0; first < rows->n;) {
        if (rows->held && fade < 0.01) {
            pk_floor_faded(T, rows->held, shape);
            fade = 1.0;
        }
        if (deficient || rows->n - first < PK_IN_FLIGHT || pk_is_awkward(rows, first, PK_IN_FLIGHT)) {
            fade *= pk_discount(rows, first);
            pk_learn_row_by_rotations(T, buffer, rows, first, shape, before);
            deficient = deficient && pk_is_deficient(T, shape);
            first += 1;
        } else {
            fade *= pk_fade(rows, first, PK_IN_FLIGHT);
            pk_learn_together(T, &flight, rows, first, PK_PAIRS, shape, before);
            first += PK_IN_FLIGHT;
        }
    }
}

/* One row that the caller has checked and loaded. */
static void pk_append_one(double *T, double *row, pk_shape shape)
{
    pk_append_row(T, row, shape);
}

static double pk_predict_one(const double *T, double *row, pk_shape shape)
{
    return pk_predict_row(T, row, shape);
}

#endif
