/* Square-root least squares: rotate rows into, and out of, an upper-triangular factor.
 *
 * The factor of a stack of rows (x, y), x of length p and y of length k, is the triangle
 *
 *     T = [ R  Z ]    R (p, p)   R'R = X'X
 *         [ 0  S ]    Z (p, k)   R^-1 Z = least-squares coefficients
 *                     S (k, k)   S'S = residual sums of squares and products
 *
 * stored by rows: T (q, ld), q = p + k, with ld a multiple of PK_LANES. Everything below the
 * diagonal and in columns q..ld is exactly zero, which lets every sweep start and stop at whole
 * vectors. A row in flight is a buffer of ld doubles with the same zero padding.
 *
 * Functions that can fail return 0 for success and r > 0 for trouble at the 1-based row r
 * (LAPACK's convention). None of them allocates or touches global state.
 */
#ifndef POSTERITY_KERNEL_H
#define POSTERITY_KERNEL_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#if !defined(__GNUC__)
#error "the kernel is written with GCC's vector types: build it with GCC or Clang"
#endif

/* One generic build carries AVX2 and AVX-512 versions of the exported loops; the loader picks. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define PK_DISPATCH __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define PK_DISPATCH
#endif
#define PK_INLINE static inline __attribute__((always_inline))
#define PK_RARE static __attribute__((noinline)) /* not cold: GCC would optimise the callers for size */
#define PK_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define PK_LANES 8       /* doubles in a vector: one AVX-512 register, two AVX2 ones */
#define PK_IN_FLIGHT 8   /* rows that travel through the triangle together, in pairs */
#define PK_PAIRS (PK_IN_FLIGHT / 2)
#define PK_PANEL 64      /* rows of a Householder panel, a multiple of 2 PK_LANES */

typedef double pk_vector __attribute__((vector_size(8 * PK_LANES), aligned(8), may_alias));
typedef double pk_quad __attribute__((vector_size(8 * PK_PAIRS), aligned(8), may_alias));
typedef double pk_couple __attribute__((vector_size(16), aligned(8), may_alias));
typedef long long pk_flags __attribute__((vector_size(8 * PK_PAIRS)));

/* pk_beyond[j & (PK_LANES - 1)] is 0 up to lane j and 1 beyond. Eliminated entries are zeroed in the register:
 * a scalar store into a vector that is about to be loaded again would stall the load. */
static const pk_vector pk_beyond[PK_LANES] = {
    {0, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1},
    {0, 0, 0, 0, 0, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 0},
};

/* The shape of a factor: p coefficients, k targets, q = p + k, leading dimension ld >= q. */
typedef struct {
    ptrdiff_t p, k, q, ld;
} pk_shape;

/* Where rows come from: X (n, columns) and Y (n, k) by rows, weights (n) or NULL, discounts (n) or NULL:
 * what the weight of everything before a row is multiplied by when the row arrives.
 * With an intercept the factor's first coefficient multiplies a 1 that X does not hold. */
typedef struct {
    const double *X, *Y, *weights, *discounts;
    ptrdiff_t n, columns, x_stride;
    int intercept;
} pk_rows;

/* ---- rows ------------------------------------------------------------------------------- */

/* to (n) = factor * from (n), without the set-up of a general loop: n is often small. */
PK_INLINE void pk_copy_scaled(double *restrict to, const double *restrict from, ptrdiff_t n, double factor)
{
    ptrdiff_t m = 0;
    for (; m + PK_LANES <= n; m += PK_LANES)
        *(pk_vector *)(to + m) = factor * *(const pk_vector *)(from + m);
    if (n & 4) {
        *(pk_quad *)(to + m) = factor * *(const pk_quad *)(from + m);
        m += 4;
    }
    if (n & 2) {
        *(pk_couple *)(to + m) = factor * *(const pk_couple *)(from + m);
        m += 2;
    }
    if (n & 1)
        to[m] = factor * from[m];
}

/* row (ld) = sqrt(weight) [1?, x, y]; what is beyond must be 0 already and stays so. Y may be NULL: the
 * targets are then 0. */
PK_INLINE void pk_load_row(double *restrict row, const pk_rows *rows, ptrdiff_t i, double root_weight,
                           pk_shape shape)
{
    if (rows->intercept)
        *row++ = root_weight;
    pk_copy_scaled(row, rows->X + i * rows->x_stride, rows->columns, root_weight);
    row += rows->columns;
    if (rows->Y)
        pk_copy_scaled(row, rows->Y + i * shape.k, shape.k, root_weight);
    else
        memset(row, 0, (size_t)shape.k * sizeof(double));
}

/* A buffer that held a panel is a row only when its padding is 0 again. */
PK_INLINE void pk_clear_padding(double *row, pk_shape shape)
{
    for (ptrdiff_t c = shape.q; c < shape.ld; c++)
        row[c] = 0.0;
}

PK_INLINE double pk_discount(const pk_rows *rows, ptrdiff_t i)
{
    return rows->discounts ? rows->discounts[i] : 1.0;
}

/* The whole triangle times root: every row in it then weighs root^2 of what it did. */
PK_INLINE void pk_scale(double *T, double root, pk_shape shape)
{
    for (ptrdiff_t j = 0; j < shape.q; j++)
        for (ptrdiff_t v = j & -PK_LANES; v < shape.ld; v += PK_LANES)
            *(pk_vector *)(T + j * shape.ld + v) *= root;
}

PK_INLINE double pk_root_weight(const pk_rows *rows, ptrdiff_t i)
{
    return rows->weights ? sqrt(rows->weights[i]) : 1.0;
}

/* ---- rank -------------------------------------------------------------------------------- */

/* What is left of column j after the earlier columns were rotated away is rounding noise when it
 * is this small beside the whole column: j then depends on the earlier columns. */
PK_RARE double pk_noise_level(const double *T, ptrdiff_t j, double left, pk_shape shape)
{
    double square = left * left;
    for (ptrdiff_t i = 0; i < j; i++)
        square += T[i * shape.ld + j] * T[i * shape.ld + j];
    return 16.0 * DBL_EPSILON * (double)(j + 1) * sqrt(square);
}

/* The same for a point of which g = R^-T x is known up to j: what cancelled in column j was at most
 * |g| times the column. */
PK_RARE double pk_point_noise(const double *T, ptrdiff_t j, double leverage, pk_shape shape)
{
    double square = 0.0;
    for (ptrdiff_t i = 0; i < j; i++)
        square += T[i * shape.ld + j] * T[i * shape.ld + j];
    return 64.0 * DBL_EPSILON * (double)(j + 1) * sqrt(leverage * square);
}

PK_RARE int pk_is_deficient(const double *T, pk_shape shape)
{
    for (ptrdiff_t j = 0; j < shape.p; j++)
        if (T[j * shape.ld + j] == 0.0)
            return 1;
    return 0;
}

/* ---- Givens rotations ---------------------------------------------------------------------- */

PK_RARE double pk_careful_norm(double a, double b)
{
    return hypot(a, b);
}

/* Norm of (a, b); the slow branch keeps tiny and huge values from under- and overflowing. */
PK_INLINE double pk_norm(double a, double b)
{
    double square = a * a + b * b;
    return PK_UNLIKELY(!(square > 1e-280 && square < 1e280)) ? pk_careful_norm(a, b) : sqrt(square);
}

/* The rotation of entry j of `row` into a diagonal that is now *a, which becomes the norm.
 * Scalars by pointer: a struct of two would be stored in halves, loaded whole, and stall. */
PK_INLINE void pk_make_rotation(const double *T, double *row, ptrdiff_t j, double *a, pk_shape shape,
                                double *cosine, double *sine)
{
    double b = row[j];
    *cosine = 1.0;
    *sine = 0.0;
    if (PK_UNLIKELY(b == 0.0))
        return;
    if (PK_UNLIKELY(*a == 0.0) && fabs(b) <= pk_noise_level(T, j, b, shape)) {
        row[j] = 0.0;
        return;
    }
    double norm = pk_norm(*a, b);
    *cosine = *a / norm;
    *sine = b / norm;
    *a = norm;
}

PK_INLINE void pk_apply_rotation(double cosine, double sine, pk_vector *restrict t, pk_vector *restrict row)
{
    pk_vector old = *t;
    *t = cosine * old + sine * *row;
    *row = cosine * *row - sine * old;
}

/* Rotate two rows, one after the other, into row t of the triangle, from column j on. */
PK_INLINE void pk_apply_pair(double c0, double s0, double c1, double s1, double *restrict t,
                             double *restrict row0, double *restrict row1, ptrdiff_t j, pk_shape shape)
{
    ptrdiff_t v = j & -PK_LANES;
    pk_vector tv = *(pk_vector *)(t + v), v0 = *(pk_vector *)(row0 + v), v1 = *(pk_vector *)(row1 + v);
    pk_apply_rotation(c0, s0, &tv, &v0);
    pk_apply_rotation(c1, s1, &tv, &v1);
    *(pk_vector *)(t + v) = tv;
    *(pk_vector *)(row0 + v) = v0 * pk_beyond[j & (PK_LANES - 1)];
    *(pk_vector *)(row1 + v) = v1 * pk_beyond[j & (PK_LANES - 1)];
    for (v += PK_LANES; v < shape.ld; v += PK_LANES) {
        tv = *(pk_vector *)(t + v);
        v0 = *(pk_vector *)(row0 + v);
        v1 = *(pk_vector *)(row1 + v);
        pk_apply_rotation(c0, s0, &tv, &v0);
        pk_apply_rotation(c1, s1, &tv, &v1);
        *(pk_vector *)(t + v) = tv;
        *(pk_vector *)(row0 + v) = v0;
        *(pk_vector *)(row1 + v) = v1;
    }
}

/* Rotate entry j of `row` into row j of the triangle. */
PK_INLINE void pk_rotate(double *restrict T, double *restrict row, ptrdiff_t j, pk_shape shape)
{
    double *restrict t = T + j * shape.ld, a = t[j], cosine, sine;
    pk_make_rotation(T, row, j, &a, shape, &cosine, &sine);
    ptrdiff_t v = j & -PK_LANES;
    pk_vector tv = *(pk_vector *)(t + v), rv = *(pk_vector *)(row + v);
    pk_apply_rotation(cosine, sine, &tv, &rv);
    *(pk_vector *)(t + v) = tv;
    *(pk_vector *)(row + v) = rv * pk_beyond[j & (PK_LANES - 1)];
    for (v += PK_LANES; v < shape.ld; v += PK_LANES)
        pk_apply_rotation(cosine, sine, (pk_vector *)(t + v), (pk_vector *)(row + v));
}

/* Rotate one whole row in; `row` is used up. */
PK_INLINE void pk_append_row(double *T, double *row, pk_shape shape)
{
    for (ptrdiff_t j = 0; j < shape.q; j++)
        pk_rotate(T, row, j, shape);
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* Forward substitution g = R^-T x: mean (k) = g'Z and leverage = |g|^2 for the x in row[0..p).
 * `row` is used up; its targets part must come in as 0 and leaves as -mean. A direction that the
 * factor knows nothing about makes the leverage infinite and adds nothing to the mean. */
PK_INLINE double pk_predict_row(const double *restrict T, double *restrict row, pk_shape shape)
{
    double leverage = 0.0;
    for (ptrdiff_t j = 0; j < shape.p; j++) {
        const double *t = T + j * shape.ld;
        double left = row[j];
        if (left == 0.0)
            continue;
        if (t[j] == 0.0) {
            if (leverage < INFINITY && fabs(left) > pk_point_noise(T, j, leverage, shape))
                leverage = INFINITY;
            row[j] = 0.0;
            continue;
        }
        double g = left / t[j];
        leverage += g * g;
        ptrdiff_t v = j & -PK_LANES;
        pk_vector first = *(pk_vector *)(row + v) - g * *(const pk_vector *)(t + v);
        *(pk_vector *)(row + v) = first * pk_beyond[j & (PK_LANES - 1)];
        for (v += PK_LANES; v < shape.ld; v += PK_LANES)
            *(pk_vector *)(row + v) -= g * *(const pk_vector *)(t + v);
    }
    return leverage;
}

/* ---- learning row by row, with the prediction made before each row --------------------------- */

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
PK_INLINE void pk_learn_plainly(double *T, double *row, const pk_rows *rows, ptrdiff_t i, pk_shape shape,
                                const pk_before *before)
{
    if (rows->discounts)
        pk_scale(T, sqrt(rows->discounts[i]), shape);
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
} pk_flight;

/* Steps of a flight: the last pair enters when the first is PK_PAIRS - 1 rows of the triangle ahead. */
#define PK_STEPS(shape) ((shape).q + PK_PAIRS - 1)
#define PK_FLIGHT_SIZE(shape) ((PK_IN_FLIGHT + 1) * (shape).ld + (2 * PK_STEPS(shape) + (shape).k) * PK_IN_FLIGHT)

PK_INLINE pk_flight pk_new_flight(double *buffer, pk_shape shape)
{
    pk_flight flight;
    flight.row = buffer;
    flight.residual = buffer + PK_IN_FLIGHT * shape.ld;
    flight.cosine = flight.residual + shape.ld;
    flight.sine = flight.cosine + PK_STEPS(shape) * PK_IN_FLIGHT;
    flight.left = flight.sine + PK_STEPS(shape) * PK_IN_FLIGHT;
    return flight;
}

/* Rows and triangle come scaled by what the rest of the flight will still discount them by. */
PK_INLINE void pk_board(double *T, pk_flight *flight, const pk_rows *rows, ptrdiff_t first, pk_shape shape)
{
    double fade = 1.0;
    for (ptrdiff_t r = PK_IN_FLIGHT - 1; r >= 0; r--) {
        flight->root_weight[r] = rows->weights ? sqrt(rows->weights[first + r]) : 1.0;
        flight->root_fade[r] = rows->discounts ? sqrt(fade) : 1.0;
        fade *= pk_discount(rows, first + r);
        double scale = flight->root_weight[r] * flight->root_fade[r];
        pk_load_row(flight->row + r * shape.ld, rows, first + r, scale, shape);
    }
    if (rows->discounts)
        pk_scale(T, sqrt(fade), shape);
    pk_residuals(T, flight->residual, shape);
}

/* What the rotations tell of each row before it was learned. With h its leverage, the product of its
 * cosines is 1/sqrt(1 + h) and what is left of its targets is product * error; 1 - product^2 = h/(1 + h)
 * is summed without cancellation. The squares of what is left add up to the residual. */
PK_INLINE void pk_tell(const pk_flight *flight, ptrdiff_t first, pk_shape shape, const pk_before *before)
{
    pk_vector product = {1, 1, 1, 1, 1, 1, 1, 1}, explained = {0};
    for (ptrdiff_t step = 0; step < shape.p + PK_PAIRS - 1; step++) {
        pk_vector cosine = ((const pk_vector *)flight->cosine)[step], sine = ((const pk_vector *)flight->sine)[step];
        for (ptrdiff_t g = 0; g <= step - shape.p; g++) {  /* these pairs are beyond the coefficients */
            cosine[g] = cosine[g + PK_PAIRS] = 1.0;
            sine[g] = sine[g + PK_PAIRS] = 0.0;
        }
        pk_vector part = product * sine;
        explained += part * part;
        product *= cosine;
    }
    for (int r = 0; r < PK_IN_FLIGHT; r++) {
        ptrdiff_t i = first + r, at = r / 2 + r % 2 * PK_PAIRS;
        double scale = flight->root_weight[r] * product[at], fade = flight->root_fade[r];
        before->leverage[i] = explained[at] / (scale * scale);
        for (ptrdiff_t t = 0; t < shape.k; t++) {
            double left = flight->left[r * shape.k + t];
            before->error[i * shape.k + t] = left / (scale * fade);
            before->residual[i * shape.k + t] = flight->residual[t] / (fade * fade);
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
PK_INLINE void pk_make_rotations(const double *T, pk_flight *flight, ptrdiff_t step, ptrdiff_t from, ptrdiff_t to,
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

/* PK_IN_FLIGHT rows from `first` on travel together in pairs, each pair one step behind the one before
 * it: at step s, pair g meets triangle row s - g. The result is that of one row after another, but the
 * long chains of square root and division overlap and the triangle stays in the nearest cache. */
PK_INLINE void pk_learn_together(double *T, pk_flight *flight, const pk_rows *rows, ptrdiff_t first, pk_shape shape,
                                 const pk_before *before)
{
    pk_board(T, flight, rows, first, shape);
    for (ptrdiff_t step = 0; step < PK_STEPS(shape); step++) {
        ptrdiff_t from = step < shape.q ? 0 : step - shape.q + 1, to = step < PK_PAIRS ? step + 1 : PK_PAIRS;
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
    pk_tell(flight, first, shape, before);
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

/* Learn all rows in order. buffer (PK_FLIGHT_SIZE). */
PK_DISPATCH static void pk_learn_rows(double *T, double *buffer, const pk_rows *rows, pk_shape shape, const pk_before *before)
{
    pk_flight flight = pk_new_flight(buffer, shape);
    int deficient = pk_is_deficient(T, shape);
    for (ptrdiff_t first = 0; first < rows->n;) {
        if (deficient || rows->n - first < PK_IN_FLIGHT || pk_is_awkward(rows, first, PK_IN_FLIGHT)) {
            pk_learn_plainly(T, buffer, rows, first, shape, before);
            deficient = deficient && pk_is_deficient(T, shape);
            first += 1;
        } else {
            pk_learn_together(T, &flight, rows, first, shape, before);
            first += PK_IN_FLIGHT;
        }
    }
}

/* One row that the caller has checked and loaded. */
PK_DISPATCH static void pk_append_one(double *T, double *row, pk_shape shape)
{
    pk_append_row(T, row, shape);
}

PK_DISPATCH static double pk_predict_one(const double *T, double *row, pk_shape shape)
{
    return pk_predict_row(T, row, shape);
}

/* ---- Householder panels ------------------------------------------------------------------------ */

/* A panel holds PK_PANEL rows by columns: C (q, PK_PANEL), so that a column fills whole vectors and,
 * while it reflects the others, stays in registers. The triangle is read once a panel. */
enum { PK_SLICES = PK_PANEL / PK_LANES };

PK_INLINE double pk_sum(pk_vector v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

PK_INLINE double pk_dot(const pk_vector *restrict u, const pk_vector *restrict v)
{
    pk_vector even = u[0] * v[0], odd = u[1] * v[1];
    for (int s = 2; s < PK_SLICES; s += 2) {
        even += u[s] * v[s];
        odd += u[s + 1] * v[s + 1];
    }
    return pk_sum(even + odd);
}

/* Reflect column j of the panel into row j of the triangle.
 *
 * With a = T_jj, u the column and norm = sqrt(a^2 + |u|^2), the reflector I - tau v v' with
 * v = [a - norm; u] makes the diagonal +norm. a - norm = -|u|^2 / (a + norm) cancels nothing, and
 * |v|^2 = 2 norm (norm - a) gives tau = (a + norm) / (norm |u|^2), tau v_0 = -1/norm. */
PK_INLINE void pk_reflect(double *restrict T, double *restrict panel, ptrdiff_t j, pk_shape shape)
{
    double *restrict t = T + j * shape.ld;
    pk_vector u[PK_SLICES];
    for (int s = 0; s < PK_SLICES; s++)
        u[s] = ((const pk_vector *)(panel + j * PK_PANEL))[s];
    double a = t[j], square = pk_dot(u, u);
    if (PK_UNLIKELY(square == 0.0))
        return;
    if (PK_UNLIKELY(a == 0.0) && sqrt(square) <= pk_noise_level(T, j, sqrt(square), shape))
        return;
    double norm = sqrt(a * a + square), head = -square / (a + norm);
    double inverse = 1.0 / norm, tau = (a + norm) / (norm * square);
    t[j] = norm;
    for (ptrdiff_t k = j + 1; k < shape.q; k++) {
        pk_vector *column = (pk_vector *)(panel + k * PK_PANEL), x[PK_SLICES];
        for (int s = 0; s < PK_SLICES; s++)  /* not memcpy: GCC would keep the copy in memory */
            x[s] = column[s];
        double w = head * t[k] + pk_dot(u, x);
        t[k] += inverse * w;
        w *= tau;
        for (int s = 0; s < PK_SLICES; s++)
            column[s] = x[s] - w * u[s];
    }
}

/* Lay rows first..first+count by columns into the panel, the rest of it zero. */
PK_INLINE void pk_load_panel(double *restrict panel, const pk_rows *rows, ptrdiff_t first, ptrdiff_t count, pk_shape shape)
{
    if (count < PK_PANEL)
        memset(panel, 0, (size_t)(shape.q * PK_PANEL) * sizeof(double));
    for (ptrdiff_t r = 0; r < count; r++) {
        ptrdiff_t i = first + r;
        const double *x = rows->X + i * rows->x_stride;
        double root_weight = pk_root_weight(rows, i), *cell = panel + r;
        if (rows->intercept) {
            *cell = root_weight;
            cell += PK_PANEL;
        }
        for (ptrdiff_t m = 0; m < rows->columns; m++, cell += PK_PANEL)
            *cell = root_weight * x[m];
        for (ptrdiff_t t = 0; t < shape.k; t++, cell += PK_PANEL)
            *cell = rows->Y ? root_weight * rows->Y[i * shape.k + t] : 0.0;
    }
}

PK_INLINE void pk_append_singly(double *T, double *row, const pk_rows *rows, ptrdiff_t i, pk_shape shape)
{
    pk_clear_padding(row, shape);
    pk_load_row(row, rows, i, pk_root_weight(rows, i), shape);
    pk_append_row(T, row, shape);
}

/* Append all rows by panels; a last few one by one, and the first ones while rank is missing: a
 * rotation into an empty triangle row is an exact exchange, so n rows never pretend to a rank beyond n.
 * Columns that depend on others may miss rank for ever, hence a limit. buffer (q, PK_PANEL). */
PK_DISPATCH static void pk_append_block(double *T, double *buffer, const pk_rows *rows, pk_shape shape)
{
    ptrdiff_t first = 0, limit = shape.q + PK_PANEL < rows->n ? shape.q + PK_PANEL : rows->n;
    for (; first < limit && pk_is_deficient(T, shape); first++)
        pk_append_singly(T, buffer, rows, first, shape);
    for (; rows->n - first >= PK_LANES; first += PK_PANEL) {
        ptrdiff_t count = rows->n - first < PK_PANEL ? rows->n - first : PK_PANEL;
        pk_load_panel(buffer, rows, first, count, shape);
        for (ptrdiff_t j = 0; j < shape.q; j++)
            pk_reflect(T, buffer, j, shape);
    }
    for (; first < rows->n; first++)
        pk_append_singly(T, buffer, rows, first, shape);
}

/* ---- prediction of many rows ----------------------------------------------------------------- */

/* Nothing is known of direction j: infinite leverage for the rows of the panel that point there. */
PK_RARE void pk_mark_open(const double *T, double *column, ptrdiff_t j, double *leverage, pk_shape shape)
{
    for (ptrdiff_t r = 0; r < PK_PANEL; r++) {
        if (leverage[r] < INFINITY && fabs(column[r]) > pk_point_noise(T, j, leverage[r], shape))
            leverage[r] = INFINITY;
        column[r] = 0.0;
    }
}

/* pk_predict_row on a panel by columns. Leaves minus the means in the columns of the targets. */
PK_INLINE void pk_predict_panel(const double *restrict T, double *restrict panel, double *restrict leverage, pk_shape shape)
{
    for (ptrdiff_t r = 0; r < PK_PANEL; r++)
        leverage[r] = 0.0;
    for (ptrdiff_t j = 0; j < shape.p; j++) {
        const double *t = T + j * shape.ld;
        if (PK_UNLIKELY(t[j] == 0.0)) {
            pk_mark_open(T, panel + j * PK_PANEL, j, leverage, shape);
            continue;
        }
        pk_vector g[PK_SLICES];
        for (int s = 0; s < PK_SLICES; s++) {
            g[s] = ((const pk_vector *)(panel + j * PK_PANEL))[s] / t[j];
            ((pk_vector *)leverage)[s] += g[s] * g[s];
        }
        for (ptrdiff_t k = j + 1; k < shape.q; k++) {
            pk_vector *column = (pk_vector *)(panel + k * PK_PANEL);
            for (int s = 0; s < PK_SLICES; s++)
                column[s] -= t[k] * g[s];
        }
    }
}

/* Mean (n, k) and leverage (n) of rows. buffer (q + 1, PK_PANEL). */
PK_DISPATCH static void pk_predict_rows(const double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *mean,
                                        double *leverage)
{
    double *panel_leverage = buffer + shape.q * PK_PANEL;
    for (ptrdiff_t first = 0; first < rows->n; first += PK_PANEL) {
        ptrdiff_t count = rows->n - first < PK_PANEL ? rows->n - first : PK_PANEL;
        if (count < PK_LANES) {
            for (ptrdiff_t i = first; i < rows->n; i++) {
                pk_clear_padding(buffer, shape);
                pk_load_row(buffer, rows, i, 1.0, shape);
                leverage[i] = pk_predict_row(T, buffer, shape);
                for (ptrdiff_t t = 0; t < shape.k; t++)
                    mean[i * shape.k + t] = -buffer[shape.p + t];
            }
            return;
        }
        pk_load_panel(buffer, rows, first, count, shape);
        pk_predict_panel(T, buffer, panel_leverage, shape);
        memcpy(leverage + first, panel_leverage, (size_t)count * sizeof(double));
        for (ptrdiff_t r = 0; r < count; r++)
            for (ptrdiff_t t = 0; t < shape.k; t++)
                mean[(first + r) * shape.k + t] = -buffer[(shape.p + t) * PK_PANEL + r];
    }
}

/* ---- removal ------------------------------------------------------------------------------------- */

/* |a^2 - b^2| beyond this many roundings is more than noise. */
#define PK_EXHAUSTED 64.0  /* below: nothing is left of the diagonal */
#define PK_IMPOSSIBLE 65536.0 /* below minus this: the row was never in the factor */

/* Norm of column j of the triangle. */
PK_INLINE double pk_column_norm(const double *T, ptrdiff_t j, pk_shape shape)
{
    double square = 0.0;
    for (ptrdiff_t i = 0; i <= j; i++)
        square += T[i * shape.ld + j] * T[i * shape.ld + j];
    return sqrt(square);
}

/* Row j of the triangle held nothing but this row: empty it, if the two are parallel. */
PK_RARE int pk_empty_row(double *T, double *row, ptrdiff_t j, double sine, pk_shape shape)
{
    double *t = T + j * shape.ld;
    for (ptrdiff_t c = j + 1; c < shape.q; c++)
        if (fabs(t[c] - sine * row[c]) > 1e-6 * pk_column_norm(T, c, shape))
            return 1;
    for (ptrdiff_t c = j; c < shape.q; c++)
        t[c] = row[c] = 0.0;
    return 0;
}

/* Take one row out by hyperbolic rotations in their mixed, stable form (Bojanczyk, Brent, van Dooren
 * and de Hoog 1987): with sine = b/a and cosine = sqrt(a^2 - b^2)/a,
 *     t <- (t - sine row) / cosine;   row <- cosine row - sine t.
 * Returns 1, with T spoilt, when the row was never in the factor. `least` is lowered to the smallest
 * cosine met among the coefficients: every factor of ten below 1 is a digit of a direction lost. */
PK_INLINE int pk_remove_row(double *restrict T, double *restrict row, pk_shape shape, double *least)
{
    for (ptrdiff_t j = 0; j < shape.q; j++) {
        double *restrict t = T + j * shape.ld;
        double a = t[j], b = row[j];
        if (b == 0.0)
            continue;
        double left = (a - b) * (a + b), rounding = DBL_EPSILON * a * pk_column_norm(T, j, shape);
        if (a == 0.0 && fabs(b) <= PK_IMPOSSIBLE * DBL_EPSILON * pk_column_norm(T, j, shape)) {
            row[j] = 0.0;
            continue;
        }
        if (!(left > PK_EXHAUSTED * rounding)) {
            if (!(left >= -PK_IMPOSSIBLE * rounding) || a == 0.0 || pk_empty_row(T, row, j, b > 0 ? 1.0 : -1.0, shape))
                return 1;
            *least = j < shape.p ? 0.0 : *least;
            continue;
        }
        double sine = b / a, cosine = sqrt(left) / a, inverse = 1.0 / cosine;
        *least = cosine < *least && j < shape.p ? cosine : *least;
        pk_vector keep = pk_beyond[j & (PK_LANES - 1)], all = {1, 1, 1, 1, 1, 1, 1, 1};
        for (ptrdiff_t v = j & -PK_LANES; v < shape.ld; v += PK_LANES, keep = all) {
            pk_vector *tv = (pk_vector *)(t + v), *rv = (pk_vector *)(row + v);
            *tv = (*tv - sine * *rv) * inverse;
            *rv = (cosine * *rv - sine * *tv) * keep;
        }
    }
    return 0;
}

/* Take rows out one by one. buffer (ld). Returns the 1-based row that was never in, or 0. */
PK_DISPATCH static ptrdiff_t pk_remove_rows(double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *least)
{
    *least = 1.0;
    for (ptrdiff_t i = 0; i < rows->n; i++) {
        pk_load_row(buffer, rows, i, pk_root_weight(rows, i), shape);
        if (pk_remove_row(T, buffer, shape, least))
            return i + 1;
    }
    return 0;
}

#endif
