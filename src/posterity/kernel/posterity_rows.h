/* Shapes, vectors, rows in flight, and when a direction counts as known. See posterity_kernel.h for the algebra. */
#ifndef POSTERITY_ROWS_H
#define POSTERITY_ROWS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) && !defined(__clang__)
#error "the kernel is written with vector types: build it with GCC, Clang or clang-cl"
#endif

#define PK_INLINE static inline __attribute__((always_inline))
#define PK_RARE static __attribute__((noinline)) /* not cold: GCC would optimise the callers for size */
/* Lanes of a and b, numbered through. GCC before 12 has only a spelling of its own. */
#if defined(__clang__) || __GNUC__ >= 12
#define PK_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PK_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (pk_integers){__VA_ARGS__})
#endif
/* A short loop becomes as many statements: what it runs over can then stay in registers. */
#if defined(__clang__)
#define PK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PK_UNROLL _Pragma("GCC unroll 8")
#endif
#define PK_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* The kernel is compiled for each instruction set (see meson.build). PK_LANES doubles fill one of its registers: wider
 * vectors would live in memory. */
#if defined(__AVX512F__)
#define PK_LANES 8
#define PK_EACH_LANE(of) of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)
#elif defined(__AVX__)
#define PK_LANES 4
#define PK_EACH_LANE(of) of(0), of(1), of(2), of(3)
#else
#define PK_LANES 2
#define PK_EACH_LANE(of) of(0), of(1)
#endif

#define PK_LINE 8        /* doubles in a cache line: what rows of a triangle are padded to, on every processor */
#define PK_IN_FLIGHT 8   /* rows that travel through the triangle together, in pairs */
#define PK_PAIRS (PK_IN_FLIGHT / 2)
#define PK_PANEL (8 * PK_LANES) /* rows of a Householder panel: eight registers */

typedef double pk_vector __attribute__((vector_size(8 * PK_LANES), aligned(8), may_alias));
typedef double pk_quad __attribute__((vector_size(8 * PK_PAIRS), aligned(8), may_alias));
typedef double pk_couple __attribute__((vector_size(16), aligned(8), may_alias));
typedef long long pk_integers __attribute__((vector_size(8 * PK_LANES), aligned(8), may_alias));
/* Shifted to the left only as these: of a negative number that is undefined. */
typedef unsigned long long pk_bits __attribute__((vector_size(8 * PK_LANES), aligned(8), may_alias));
typedef long long pk_flags __attribute__((vector_size(8 * PK_PAIRS)));

/* 0 up to the lane of column j, and 1 beyond. Eliminated entries are zeroed in the register: a scalar store into a
 * vector that is about to be loaded again would stall the load. */
PK_INLINE pk_vector pk_beyond(ptrdiff_t j)
{
    static const double steps[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    return *(const pk_vector *)(steps + 7 - (j & (PK_LANES - 1)));
}

#define PK_NUMBER(lane) lane
#define PK_ROOT_OF(lane) sqrt(x[lane])
PK_INLINE pk_vector pk_sqrt(pk_vector x)
{
    return (pk_vector){PK_EACH_LANE(PK_ROOT_OF)};
}

PK_INLINE double pk_sum(pk_vector v)
{
#if PK_LANES == 8
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
#elif PK_LANES == 4
    return (v[0] + v[2]) + (v[1] + v[3]);
#else
    return v[0] + v[1];
#endif
}

PK_INLINE double pk_max_one(double a, double b)
{
    return a > b ? a : b;
}

PK_INLINE double pk_largest(pk_vector v)
{
#if PK_LANES == 8
    double low = pk_max_one(pk_max_one(v[0], v[4]), pk_max_one(v[2], v[6]));
    double high = pk_max_one(pk_max_one(v[1], v[5]), pk_max_one(v[3], v[7]));
    return pk_max_one(low, high);
#elif PK_LANES == 4
    return pk_max_one(pk_max_one(v[0], v[2]), pk_max_one(v[1], v[3]));
#else
    return pk_max_one(v[0], v[1]);
#endif
}

/* The shape of a factor: p coefficients, k targets, q = p + k, leading dimension ld >= q. */
typedef struct {
    ptrdiff_t p, k, q, ld;
} pk_shape;

/* A column of numbers of any kind, wherever it lies: the first of them, and how many bytes apart they are. */
typedef enum {
    PK_DOUBLE, PK_SINGLE, PK_INT8, PK_INT16, PK_INT32, PK_INT64, PK_UINT8, PK_UINT16, PK_UINT32, PK_UINT64
} pk_kind;
typedef struct {
    const char *at;
    ptrdiff_t step;
    pk_kind kind;
} pk_column;

/* Where rows come from: X (n, columns), its rows x_stride and its columns x_step apart, Y (n, k) by rows, weights (n) or
 * NULL, discounts (n) or NULL: what the weight of everything before a row is multiplied by when the row arrives.
 * With an intercept the factor's first coefficient multiplies a 1 that X does not hold. Where x_step is PK_EACH, there
 * is no X: each column is by itself. */
#define PK_EACH PTRDIFF_MIN
typedef struct {
    const double *X, *Y, *weights, *discounts;
    double *held; /* (p) room for what must not fade away, where something fades; see pk_floor_faded */
    ptrdiff_t n, columns, x_stride, x_step;
    int intercept;
    const pk_column *each; /* (columns), looked at only where x_step is PK_EACH */
} pk_rows;

/* ---- rows ------------------------------------------------------------------------------- */

/* to (n) = factor * from (n), without the set-up of a general loop: n is often small. */
PK_INLINE void pk_copy_scaled(double *restrict to, const double *restrict from, ptrdiff_t n, double factor)
{
    ptrdiff_t m = 0;
    for (; m + PK_LANES <= n; m += PK_LANES)
        *(pk_vector *)(to + m) = factor * *(const pk_vector *)(from + m);
    if (PK_LANES > 4 && n & 4) {
        *(pk_quad *)(to + m) = factor * *(const pk_quad *)(from + m);
        m += 4;
    }
    if (PK_LANES > 2 && n & 2) {
        *(pk_couple *)(to + m) = factor * *(const pk_couple *)(from + m);
        m += 2;
    }
    if (n & 1)
        to[m] = factor * from[m];
}

/* to (count), `apart` doubles from each other, = factor (count) times the numbers of a column from the first on. The loop
 * over numbers that lie side by side is one of its own: it is done by vectors. */
#define PK_READ_AS(type)                                                                     \
    for (ptrdiff_t r = 0; column->step == sizeof(type) && r < count; r++)                    \
        to[r * apart] = factor[r] * (double)((const type *)at)[r];                           \
    for (ptrdiff_t r = 0; column->step != sizeof(type) && r < count; r++)                    \
        to[r * apart] = factor[r] * (double)*(const type *)(at + r * column->step);          \
    break;
PK_INLINE void pk_read_numbers(double *restrict to, ptrdiff_t apart, const pk_column *column, ptrdiff_t first,
                               ptrdiff_t count, const double *restrict factor)
{
    const char *at = column->at + first * column->step;
    switch (column->kind) {
    case PK_DOUBLE: PK_READ_AS(double)
    case PK_SINGLE: PK_READ_AS(float)
    case PK_INT8: PK_READ_AS(int8_t)
    case PK_INT16: PK_READ_AS(int16_t)
    case PK_INT32: PK_READ_AS(int32_t)
    case PK_INT64: PK_READ_AS(int64_t)
    case PK_UINT8: PK_READ_AS(uint8_t)
    case PK_UINT16: PK_READ_AS(uint16_t)
    case PK_UINT32: PK_READ_AS(uint32_t)
    case PK_UINT64: PK_READ_AS(uint64_t)
    }
}

/* The features of one row, of columns that are each by themselves. */
PK_RARE void pk_read_row(double *row, const pk_rows *rows, ptrdiff_t i, double root_weight)
{
    for (ptrdiff_t m = 0; m < rows->columns; m++)
        pk_read_numbers(row + m, 1, rows->each + m, i, 1, &root_weight);
}

/* row (ld) = sqrt(weight) [1?, x, y]; what is beyond must be 0 already and stays so. Y may be NULL: the
 * targets are then 0. */
PK_INLINE void pk_load_row(double *restrict row, const pk_rows *rows, ptrdiff_t i, double root_weight,
                           pk_shape shape)
{
    if (rows->intercept)
        *row++ = root_weight;
    if (rows->x_step == 1)
        pk_copy_scaled(row, rows->X + i * rows->x_stride, rows->columns, root_weight);
    else if (rows->x_step == PK_EACH)
        pk_read_row(row, rows, i, root_weight);
    else
        for (ptrdiff_t m = 0; m < rows->columns; m++)
            row[m] = root_weight * rows->X[i * rows->x_stride + m * rows->x_step];
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
