/* Shapes, vectors, rows in flight, and when a direction counts as known. See posterity_kernel.h for the algebra. */
#ifndef POSTERITY_ROWS_H
#define POSTERITY_ROWS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#if !defined(__GNUC__) && !defined(__clang__)
#error "the kernel is written with vector types: build it with GCC, Clang or clang-cl"
#endif

/* One generic build carries AVX2 and AVX-512 versions of the exported loops; the loader picks. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define PK_DISPATCH __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define PK_DISPATCH
#endif
#define PK_INLINE static inline __attribute__((always_inline))
#define PK_RARE static __attribute__((noinline)) /* not cold: GCC would optimise the callers for size */
/* Lanes of a and b, numbered through. GCC before 12 has only a spelling of its own. */
#if defined(__clang__) || __GNUC__ >= 12
#define PK_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PK_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (pk_integers){__VA_ARGS__})
#endif
#define PK_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define PK_LANES 8       /* doubles in a vector: one AVX-512 register, two AVX2 ones */
#define PK_IN_FLIGHT 8   /* rows that travel through the triangle together, in pairs */
#define PK_PAIRS (PK_IN_FLIGHT / 2)
#define PK_PANEL 64      /* rows of a Householder panel, a multiple of 2 PK_LANES */

typedef double pk_vector __attribute__((vector_size(8 * PK_LANES), aligned(8), may_alias));
typedef double pk_quad __attribute__((vector_size(8 * PK_PAIRS), aligned(8), may_alias));
typedef double pk_couple __attribute__((vector_size(16), aligned(8), may_alias));
typedef long long pk_integers __attribute__((vector_size(8 * PK_LANES), aligned(8), may_alias));
/* Shifted to the left only as these: of a negative number that is undefined. */
typedef unsigned long long pk_bits __attribute__((vector_size(8 * PK_LANES), aligned(8), may_alias));
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
    double *held; /* (p) room for what must not fade away, where something fades; see pk_hold_faded */
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

/* The whole triangle times root: every row in it then weighs root^2 of what it did. A row that is held stays
 * as it is, until it has grown. held (p), or NULL: its diagonal, or 0. */
PK_INLINE void pk_fade_triangle(double *T, double root, double *held, pk_shape shape)
{
    for (ptrdiff_t j = 0; j < shape.q; j++) {
        double *t = T + j * shape.ld;
        if (held && j < shape.p && held[j] > 0.0) {
            if (t[j] <= 2.0 * held[j])
                continue;
            held[j] = 0.0;
        }
        for (ptrdiff_t v = j & -PK_LANES; v < shape.ld; v += PK_LANES)
            *(pk_vector *)(t + v) *= root;
    }
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

#endif
