/* Many rows at once: Householder panels, and prediction by panels. See posterity_kernel.h for the algebra. */
#ifndef POSTERITY_PANEL_H
#define POSTERITY_PANEL_H

#include "posterity_blocks.h"

/* Triangles of fewer columns are reduced by panels, of more by blocks (posterity_blocks.h). */
#define PK_FEW_COLUMNS 40
/* As are triangles that are appended, of which half is nothing. */
#define PK_MANY_COLUMNS 64
#define PK_APPEND_SIZE(shape) ((shape).q <= PK_FEW_COLUMNS ? PK_PANEL * ((shape).q + 1) : PK_BLOCKS_SIZE(shape))

/* A panel holds PK_PANEL rows by columns: C (q, PK_PANEL), so that a column fills whole vectors and,
 * while it reflects the others, stays in registers. The triangle is read once a panel. */
enum { PK_SLICES = PK_PANEL / PK_LANES };

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
    double inverse = 1.0 / norm, tau = (a + norm) * inverse / square;
    if (PK_UNLIKELY(square <= PK_TINY)) {
        t[j] = j < shape.p ? a : norm;
        return;
    }
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

/* A block of PK_LANES x PK_LANES numbers, turned about its diagonal: first in squares of two, then of four, then whole. */
#define PK_TURN(distance, low, high)                                     \
    for (int i = 0; i < PK_LANES; i++)                                   \
        if (!(i & distance)) {                                           \
            pk_vector a = v[i], b = v[i + distance];                     \
            v[i] = PK_SHUFFLE(a, b, low);                                \
            v[i + distance] = PK_SHUFFLE(a, b, high);                    \
        }
#define PK_LIST(...) __VA_ARGS__
PK_INLINE void pk_transpose(pk_vector *v)
{
#if PK_LANES == 8
    PK_UNROLL
    PK_TURN(1, PK_LIST(0, 8, 2, 10, 4, 12, 6, 14), PK_LIST(1, 9, 3, 11, 5, 13, 7, 15))
    PK_UNROLL
    PK_TURN(2, PK_LIST(0, 1, 8, 9, 4, 5, 12, 13), PK_LIST(2, 3, 10, 11, 6, 7, 14, 15))
    PK_UNROLL
    PK_TURN(4, PK_LIST(0, 1, 2, 3, 8, 9, 10, 11), PK_LIST(4, 5, 6, 7, 12, 13, 14, 15))
#elif PK_LANES == 4
    PK_UNROLL
    PK_TURN(1, PK_LIST(0, 4, 2, 6), PK_LIST(1, 5, 3, 7))
    PK_UNROLL
    PK_TURN(2, PK_LIST(0, 1, 4, 5), PK_LIST(2, 3, 6, 7))
#else
    PK_UNROLL
    PK_TURN(1, PK_LIST(0, 2), PK_LIST(1, 3))
#endif
}

/* The features of rows that lie by rows, by columns: block by block, the last of which may overlap the one before. */
PK_INLINE void pk_load_by_rows(double *restrict panel, const double *x, const double *root_weight, const pk_rows *rows,
                               ptrdiff_t count)
{
    ptrdiff_t columns = rows->columns, whole = count & -PK_LANES;
    for (ptrdiff_t r = 0; r < whole; r += PK_LANES)
        for (ptrdiff_t m = 0; m < columns; m += PK_LANES) {
            ptrdiff_t from = m + PK_LANES <= columns ? m : columns - PK_LANES;
            pk_vector v[PK_LANES];
            PK_UNROLL
            for (int i = 0; i < PK_LANES; i++)
                v[i] = *(const pk_vector *)(x + (r + i) * rows->x_stride + from);
            pk_transpose(v);
            PK_UNROLL
            for (int i = 0; i < PK_LANES; i++)
                *(pk_vector *)(panel + (from + i) * PK_PANEL + r) = v[i] * *(const pk_vector *)(root_weight + r);
        }
    for (ptrdiff_t m = 0; m < columns; m++)
        for (ptrdiff_t r = whole; r < count; r++)
            panel[m * PK_PANEL + r] = root_weight[r] * x[r * rows->x_stride + m];
}

/* The features of rows first..first+count, by columns. */
PK_INLINE void pk_load_features(double *restrict panel, const double *root_weight, const pk_rows *rows, ptrdiff_t first,
                                ptrdiff_t count)
{
    const double *x = rows->x_step == PK_EACH ? NULL : rows->X + first * rows->x_stride;
    if (rows->x_step == 1 && rows->columns >= PK_LANES) {
        pk_load_by_rows(panel, x, root_weight, rows, count);
        return;
    }
    for (ptrdiff_t m = 0; m < rows->columns; m++, panel += PK_PANEL)
        if (rows->x_step == PK_EACH)
            pk_read_numbers(panel, 1, rows->each + m, first, count, root_weight);
        else
            for (ptrdiff_t r = 0; r < count; r++)
                panel[r] = root_weight[r] * x[m * rows->x_step + r * rows->x_stride];
}

/* Lay rows first..first+count by columns into the panel, the rest of it zero. */
PK_INLINE void pk_load_panel(double *restrict panel, const pk_rows *rows, ptrdiff_t first, ptrdiff_t count, pk_shape shape)
{
    if (count < PK_PANEL)
        memset(panel, 0, (size_t)(shape.q * PK_PANEL) * sizeof(double));
    double root_weight[PK_PANEL];
    for (ptrdiff_t r = 0; r < count; r++)
        root_weight[r] = pk_root_weight(rows, first + r);
    if (rows->intercept) {
        memcpy(panel, root_weight, (size_t)count * sizeof(double));
        panel += PK_PANEL;
    }
    pk_load_features(panel, root_weight, rows, first, count);
    panel += rows->columns * PK_PANEL;
    for (ptrdiff_t t = 0; t < shape.k; t++, panel += PK_PANEL)
        for (ptrdiff_t r = 0; r < count; r++)
            panel[r] = rows->Y ? root_weight[r] * rows->Y[(first + r) * shape.k + t] : 0.0;
}

/* Ask for part j, of `parts`, of the rows from `first` on, while others are worked on: for a share of them where they lie
 * by rows, else for column j, if its numbers are no further apart than cache lines. */
PK_INLINE void pk_prefetch_rows(const pk_rows *rows, ptrdiff_t first, ptrdiff_t j, ptrdiff_t parts)
{
    ptrdiff_t count = rows->n - first < PK_PANEL ? rows->n - first : PK_PANEL, step, from = 0, to = count;
    const char *at;
    if (count <= 0)
        return;
    if (rows->x_step == 1) {
        from = j * count / parts, to = (j + 1) * count / parts;
        step = rows->x_stride * (ptrdiff_t)sizeof(double);
        at = (const char *)(rows->X + first * rows->x_stride);
    } else if (j >= rows->columns) {
        return;
    } else if (rows->x_step == PK_EACH) {
        step = rows->each[j].step;
        at = rows->each[j].at + first * step;
    } else {
        step = rows->x_stride * (ptrdiff_t)sizeof(double);
        at = (const char *)(rows->X + first * rows->x_stride + j * rows->x_step);
    }
    if (rows->x_step != 1 && step > PK_LINE * (ptrdiff_t)sizeof(double))
        return;
    for (ptrdiff_t byte = from * step; byte < to * step; byte += PK_LINE * (ptrdiff_t)sizeof(double))
        __builtin_prefetch(at + byte);
}

PK_INLINE void pk_append_singly(double *T, double *row, const pk_rows *rows, ptrdiff_t i, pk_shape shape)
{
    pk_clear_padding(row, shape);
    pk_load_row(row, rows, i, pk_root_weight(rows, i), shape);
    pk_append_row(T, row, shape);
}

/* Append all rows by panels; a last few one by one, and the first ones while rank is missing: a
 * rotation into an empty triangle row is an exact exchange, so n rows never pretend to a rank beyond n.
 * Columns that depend on others may miss rank for ever, hence a limit. buffer (PK_APPEND_SIZE). */
static void pk_append_block(double *T, double *buffer, const pk_rows *rows, pk_shape shape)
{
    ptrdiff_t first = 0;
    if (shape.q > PK_FEW_COLUMNS && rows->n >= PK_BLOCK) {
        pk_append_by_blocks(T, buffer, rows, shape);
        return;
    }
    ptrdiff_t limit = shape.q + PK_PANEL < rows->n ? shape.q + PK_PANEL : rows->n;
    for (; first < limit && pk_is_deficient(T, shape); first++)
        pk_append_singly(T, buffer, rows, first, shape);
    for (; rows->n - first >= PK_LANES; first += PK_PANEL) {
        ptrdiff_t count = rows->n - first < PK_PANEL ? rows->n - first : PK_PANEL;
        pk_load_panel(buffer, rows, first, count, shape);
        for (ptrdiff_t j = 0; j < shape.q; j++) {
            pk_prefetch_rows(rows, first + PK_PANEL, j, shape.q);
            pk_reflect(T, buffer, j, shape);
        }
    }
    for (; first < rows->n; first++)
        pk_append_singly(T, buffer, rows, first, shape);
}

/* pk_reflect, of a panel whose rows beyond PK_LANES * slices are 0. */
PK_INLINE void pk_reflect_part(double *restrict T, double *restrict panel, ptrdiff_t j, ptrdiff_t slices, pk_shape shape)
{
    double *restrict t = T + j * shape.ld;
    const pk_vector *u = (const pk_vector *)(panel + j * PK_PANEL);
    pk_vector sum = {0};
    for (ptrdiff_t s = 0; s < slices; s++)
        sum += u[s] * u[s];
    double a = t[j], square = pk_sum(sum);
    if (square == 0.0 || (a == 0.0 && sqrt(square) <= pk_noise_level(T, j, sqrt(square), shape)))
        return;
    double norm = sqrt(a * a + square), head = -square / (a + norm);
    double inverse = 1.0 / norm, tau = (a + norm) * inverse / square;
    if (square <= PK_TINY) {
        t[j] = j < shape.p ? a : norm;
        return;
    }
    t[j] = norm;
    for (ptrdiff_t k = j + 1; k < shape.q; k++) {
        pk_vector *column = (pk_vector *)(panel + k * PK_PANEL), dot = {0};
        for (ptrdiff_t s = 0; s < slices; s++)
            dot += u[s] * column[s];
        double w = head * t[k] + pk_sum(dot);
        t[k] += inverse * w;
        for (ptrdiff_t s = 0; s < slices; s++)
            column[s] -= tau * w * u[s];
    }
}

/* Append root times the rows of the triangle `other`: at a block of columns only the rows above its end are there yet.
 * buffer (PK_BLOCKS_SIZE). */
PK_INLINE void pk_append_triangle_by_blocks(double *T, double *buffer, const double *other, double root, pk_shape shape)
{
    pk_block block;
    block.V = buffer + PK_STRIPS(shape) * PK_BLOCK_ROWS * PK_STRIP;
    block.solving = 0;
    for (ptrdiff_t first = 0; first < shape.q; first += PK_BLOCK_ROWS) {
        ptrdiff_t left = (shape.q - first + 1) & -2, all = left < PK_BLOCK_ROWS ? left : PK_BLOCK_ROWS;
        for (ptrdiff_t r = 0; r < all; r++)
            for (ptrdiff_t k = first; k < shape.ld; k += PK_LANES) {
                pk_vector some = {0};
                if (first + r < shape.q && k + PK_LANES > first + r)
                    some = root * *(const pk_vector *)(other + (first + r) * shape.ld + k);
                *(pk_vector *)pk_cell(buffer, r, k) = some;
            }
        for (ptrdiff_t j = first; j < shape.q; j += PK_BLOCK) {
            ptrdiff_t begun = j + PK_BLOCK - first, m = begun < all ? begun : all;
            pk_take_columns(block.V, buffer, j, m);
            if (pk_make_block(T, buffer, &block, j, m, shape))
                pk_update_trailing(&block, T + j * shape.ld, buffer, j, m, shape);
        }
    }
}

/* Append root times the rows of the triangle `other`: at column j only its first j + 1 rows are there yet.
 * buffer (PK_APPEND_SIZE). */
PK_INLINE void pk_append_triangle(double *T, double *buffer, const double *other, double root, pk_shape shape)
{
    if (shape.q > PK_MANY_COLUMNS) {
        pk_append_triangle_by_blocks(T, buffer, other, root, shape);
        return;
    }
    for (ptrdiff_t first = 0; first < shape.q; first += PK_PANEL) {
        ptrdiff_t stop = first + PK_PANEL < shape.q ? first + PK_PANEL : shape.q;
        ptrdiff_t all = (stop - first + PK_LANES - 1) / PK_LANES, filled = 0;
        for (ptrdiff_t c = first; c < shape.q; c++)
            memset(buffer + c * PK_PANEL, 0, (size_t)(all * PK_LANES) * sizeof(double));
        for (ptrdiff_t i = first; i < stop; i++)
            for (ptrdiff_t c = i; c < shape.q; c++) {
                buffer[c * PK_PANEL + i - first] = root * other[i * shape.ld + c];
                filled += other[i * shape.ld + c] != 0.0;
            }
        if (filled == 0) /* where the prior is flat */
            continue;
        for (ptrdiff_t j = first; j < shape.q; j++) {
            ptrdiff_t begun = (j - first) / PK_LANES + 1;
            pk_reflect_part(T, buffer, j, begun < all ? begun : all, shape);
        }
    }
}

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

/* Mean (n, k) and leverage (n) of rows. buffer (PK_APPEND_SIZE). */
static void pk_predict_rows(const double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *mean,
                            double *leverage)
{
    if (shape.q > PK_FEW_COLUMNS && rows->n >= PK_BLOCK) {
        pk_predict_by_blocks(T, buffer, rows, shape, mean, leverage);
        return;
    }
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

#endif
