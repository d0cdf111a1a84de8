/* Many rows of many columns at once: Householder reflectors, eight at a time, as products of matrices.
 *
 * A panel holds PK_BLOCK_ROWS rows in strips of PK_STRIP columns, each by rows: a strip stays in the nearest cache. The
 * next PK_BLOCK columns are reduced into as many rows of the triangle by reflectors I - v v', v = [H; V], H where the
 * triangle's rows are and V where the panel's are; their product is I - v K v' with K upper triangular (compact WY:
 * Schreiber and Van Loan 1989), and all columns to the right meet it as two products of matrices, a tile at a time,
 * whose sums stay in registers. */
#ifndef POSTERITY_BLOCKS_H
#define POSTERITY_BLOCKS_H

#include "posterity_givens.h"

#define PK_BLOCK 8        /* reflectors of a block; divides PK_LINE and PK_STRIP */
#define PK_BLOCK_ROWS 128 /* even */
#define PK_STRIP 24
/* Vectors across a tile (PK_TILE PK_LANES divides PK_STRIP), and reflectors whose sums fit into registers together. */
#if PK_LANES == 8 || defined(__aarch64__) /* 32 registers */
#define PK_TILE 3
#define PK_TOGETHER 8
#elif PK_LANES == 4
#define PK_TILE 3
#define PK_TOGETHER 4
#else /* 16, of which products take some: nothing multiplies and adds at once */
#define PK_TILE 2
#define PK_TOGETHER 4
#endif
enum { PK_BLOCK_PARTS = PK_BLOCK / PK_LANES };

#define PK_STRIPS(shape) (((shape).ld + PK_STRIP - 1) / PK_STRIP)
/* Room for a panel, for V (PK_BLOCK_ROWS, PK_BLOCK), and for a row. */
#define PK_BLOCKS_SIZE(shape) (PK_BLOCK_ROWS * (PK_STRIPS(shape) * PK_STRIP + PK_BLOCK) + (shape).ld)

/* Eight reflectors, or where `solving`, as many columns of R^-T x: V then meets the triangle's first `height` rows. */
typedef struct {
    double *V;
    double head[PK_BLOCK][PK_BLOCK];  /* H', upper triangular; unless rows changed places (`dense`), diagonal */
    double K[PK_BLOCK][PK_BLOCK];
    int dense, solving;
    ptrdiff_t height;
} pk_block;

/* ---- tiles -------------------------------------------------------------------------------------------- */

/* sum (PK_BLOCK, width) = V' C over m rows; width is a constant. */
PK_INLINE void pk_tile_sums(const double *restrict V, const double *restrict C, ptrdiff_t m, int width,
                            pk_vector (*sum)[PK_TILE])
{
    for (int first = 0; first < PK_BLOCK; first += PK_TOGETHER) {
        pk_vector part[PK_TOGETHER][PK_TILE] = {{{0}}};
        for (ptrdiff_t r = 0; r < m; r++) {
            const double *v = V + r * PK_BLOCK + first, *c = C + r * PK_STRIP;
            pk_vector x[PK_TILE];
            PK_UNROLL
            for (int w = 0; w < width; w++)
                x[w] = ((const pk_vector *)c)[w];
            PK_UNROLL
            for (int i = 0; i < PK_TOGETHER; i++)
                PK_UNROLL
                for (int w = 0; w < width; w++)
                    part[i][w] += v[i] * x[w];
        }
        PK_UNROLL
        for (int i = 0; i < PK_TOGETHER; i++)
            PK_UNROLL
            for (int w = 0; w < width; w++)
                sum[first + i][w] = part[i][w];
    }
}

/* C -= V sum over m rows. */
PK_INLINE void pk_tile_subtract(const double *restrict V, double *restrict C, ptrdiff_t m, int width,
                                pk_vector (*sum)[PK_TILE])
{
    for (int first = 0; first < PK_BLOCK; first += PK_TOGETHER) {
        pk_vector part[PK_TOGETHER][PK_TILE];
        PK_UNROLL
        for (int i = 0; i < PK_TOGETHER; i++)
            PK_UNROLL
            for (int w = 0; w < width; w++)
                part[i][w] = sum[first + i][w];
        for (ptrdiff_t r = 0; r < m; r++) {
            const double *v = V + r * PK_BLOCK + first;
            pk_vector *c = (pk_vector *)(C + r * PK_STRIP), x[PK_TILE];
            PK_UNROLL
            for (int w = 0; w < width; w++)
                x[w] = c[w];
            PK_UNROLL
            for (int i = 0; i < PK_TOGETHER; i++)
                PK_UNROLL
                for (int w = 0; w < width; w++)
                    x[w] -= v[i] * part[i][w];
            PK_UNROLL
            for (int w = 0; w < width; w++)
                c[w] = x[w];
        }
    }
}

/* sum (PK_BLOCK, width) becomes K' v' [t; C], and the rows t (PK_BLOCK, ld) of the triangle are reflected. */
PK_INLINE void pk_reflect_rows_of(const pk_block *block, double *restrict t, const double *restrict C, ptrdiff_t ld,
                                  ptrdiff_t m, int width, pk_vector (*sum)[PK_TILE])
{
    pk_tile_sums(block->V, C, m, width, sum);
    for (int i = 0; i < PK_BLOCK; i++)
        for (int j = i; j < (block->dense ? PK_BLOCK : i + 1); j++)
            for (int w = 0; w < width; w++)
                sum[i][w] += block->head[i][j] * ((const pk_vector *)(t + j * ld))[w];
    for (int i = PK_BLOCK - 1; i >= 0; i--)
        for (int w = 0; w < width; w++) {
            pk_vector all = {0};
            for (int j = 0; j <= i; j++)
                all += block->K[j][i] * sum[j][w];
            sum[i][w] = all;
        }
    for (int i = 0; i < PK_BLOCK; i++)
        for (int j = i; j < (block->dense ? PK_BLOCK : i + 1); j++)
            for (int w = 0; w < width; w++)
                ((pk_vector *)(t + j * ld))[w] -= block->head[i][j] * sum[i][w];
}

/* Rows t (PK_BLOCK, ld) of the triangle and C (m, PK_STRIP) of the panel meet the block: `width` vectors of each. */
PK_INLINE void pk_reflect_block(const pk_block *block, double *restrict t, double *restrict C, ptrdiff_t ld, ptrdiff_t m,
                             int width)
{
    pk_vector sum[PK_BLOCK][PK_TILE] = {{{0}}};
    if (block->solving)
        for (ptrdiff_t i = 0; i < block->height; i++)
            for (int w = 0; w < width; w++)
                sum[i][w] = ((const pk_vector *)(t + i * ld))[w];
    else
        pk_reflect_rows_of(block, t, C, ld, m, width, sum);
    pk_tile_subtract(block->V, C, m, width, sum);
}

PK_INLINE double *pk_cell(double *panel, ptrdiff_t r, ptrdiff_t column)
{
    return panel + column / PK_STRIP * (PK_BLOCK_ROWS * PK_STRIP) + r * PK_STRIP + column % PK_STRIP;
}

/* All columns beyond the block's own, which begin at j, meet it: those of the triangle's rows t and of the panel. */
PK_INLINE void pk_update_trailing(const pk_block *block, double *t, double *panel, ptrdiff_t j, ptrdiff_t m, pk_shape shape)
{
    for (ptrdiff_t k = j + PK_BLOCK, stop; k < shape.ld; k = stop) {
        stop = (k / PK_STRIP + 1) * PK_STRIP;
        stop = stop < shape.ld ? stop : shape.ld;
        ptrdiff_t left = (stop - k) / PK_LANES;
        double *here = t + k, *C = pk_cell(panel, 0, k);
        for (; left >= PK_TILE; left -= PK_TILE, here += PK_TILE * PK_LANES, C += PK_TILE * PK_LANES)
            pk_reflect_block(block, here, C, shape.ld, m, PK_TILE);
        if (left == 2)
            pk_reflect_block(block, here, C, shape.ld, m, 2);
        else if (left == 1)
            pk_reflect_block(block, here, C, shape.ld, m, 1);
    }
}

/* V = columns j..j + PK_BLOCK of the panel. */
PK_INLINE void pk_take_columns(double *V, double *panel, ptrdiff_t j, ptrdiff_t m)
{
    for (ptrdiff_t r = 0; r < m; r++)
        memcpy(V + r * PK_BLOCK, pk_cell(panel, r, j), PK_BLOCK * sizeof(double));
}

/* ---- reflectors --------------------------------------------------------------------------------------- */

/* Column c of V, times z (PK_BLOCK), is taken from each column; itself it is multiplied by `scale`. z[c] = 0. */
PK_INLINE void pk_scale_columns(double *restrict V, ptrdiff_t m, int c, double scale, const double *z)
{
    double scales[PK_BLOCK];
    for (int k = 0; k < PK_BLOCK; k++)
        scales[k] = k == c ? scale : 1.0;
    for (ptrdiff_t r = 0; r < m; r++) {
        double *v = V + r * PK_BLOCK, u = v[c];
        for (int s = 0; s < PK_BLOCK_PARTS; s++)
            ((pk_vector *)v)[s] = ((pk_vector *)v)[s] * ((const pk_vector *)scales)[s] - u * ((const pk_vector *)z)[s];
    }
}

/* dots (PK_BLOCK): column c of V times every column. */
PK_INLINE void pk_column_dots(const double *restrict V, ptrdiff_t m, int c, pk_vector *dots)
{
    pk_vector even[PK_BLOCK_PARTS] = {{0}}, odd[PK_BLOCK_PARTS] = {{0}};
    for (ptrdiff_t r = 0; r < m; r += 2)
        for (int s = 0; s < PK_BLOCK_PARTS; s++) {
            even[s] += V[r * PK_BLOCK + c] * ((const pk_vector *)(V + r * PK_BLOCK))[s];
            odd[s] += V[(r + 1) * PK_BLOCK + c] * ((const pk_vector *)(V + (r + 1) * PK_BLOCK))[s];
        }
    for (int s = 0; s < PK_BLOCK_PARTS; s++)
        dots[s] = even[s] + odd[s];
}

/* Row j of the triangle has no diagonal: it changes places with the row of the panel that has most in that column, its
 * sign such that the diagonal is positive. That is exact: n rows never pretend to a rank beyond n. */
PK_RARE void pk_swap_row(double *t, double *panel, pk_block *block, ptrdiff_t j, ptrdiff_t m, int c, pk_shape shape)
{
    ptrdiff_t most = 0;
    for (ptrdiff_t r = 1; r < m; r++)
        if (fabs(block->V[r * PK_BLOCK + c]) > fabs(block->V[most * PK_BLOCK + c]))
            most = r;
    double *v = block->V + most * PK_BLOCK, sign = v[c] < 0.0 ? -1.0 : 1.0;
    for (int i = 0; i < c; i++) {
        block->head[i][c] = sign * v[i];
        v[i] = 0.0;
    }
    for (ptrdiff_t k = c; k < shape.ld - j; k++) {
        double *from = k < PK_BLOCK ? v + k : pk_cell(panel, most, j + k), *to = t + c * shape.ld + k, old = *to;
        *to = sign * *from;
        *from = sign * old;
    }
    block->dense = 1;
}

/* Reduce V, the panel's columns j..j + PK_BLOCK, into rows j.. of the triangle. Norms and heads are pk_reflect's, but v
 * comes scaled such that tau = 1: the entries of K are then of order 1, whatever the columns' units. Returns 0
 * where there was nothing to reflect. */
PK_INLINE int pk_make_block(double *T, double *panel, pk_block *block, ptrdiff_t j, ptrdiff_t m, pk_shape shape)
{
    double *t = T + j * shape.ld + j, *V = block->V;
    int any = 0;
    block->dense = 0;
    memset(block->head, 0, sizeof block->head);
    memset(block->K, 0, sizeof block->K);
    for (int c = 0; c < PK_BLOCK && j + c < shape.q; c++) {
        double dots[PK_BLOCK], z[PK_BLOCK] = {0}, *d = t + c * shape.ld, head = 0.0, root = 0.0;
        pk_column_dots(V, m, c, (pk_vector *)dots);
        if (PK_UNLIKELY(d[c] == 0.0) && dots[c] > PK_TINY) {
            if (sqrt(dots[c]) <= pk_noise_level(T, j + c, sqrt(dots[c]), shape)) {
                dots[c] = 0.0;
            } else {
                pk_swap_row(t, panel, block, j, m, c, shape);
                pk_column_dots(V, m, c, (pk_vector *)dots);
            }
        }
        double a = d[c], square = dots[c];
        if (PK_UNLIKELY(square <= PK_TINY)) {
            d[c] = j + c < shape.p ? a : sqrt(a * a + square);
        } else {
            double norm = sqrt(a * a + square);
            root = sqrt((a + norm) / norm / square);
            head = -square / (a + norm) * root;
            d[c] = norm;
            any = 1;
        }
        for (int k = c + 1; k < PK_BLOCK; k++) {
            double w = head * d[k] + root * dots[k];
            d[k] -= head * w;
            z[k] = root * w;
        }
        pk_scale_columns(V, m, c, root, z);
        block->head[c][c] = head;
        block->K[c][c] = 1.0;
        for (int i = 0; i < c; i++)
            for (int l = i; l < c; l++)
                block->K[i][c] -= block->K[i][l] * (root * dots[l] + block->head[l][c] * head);
    }
    return any;
}

/* Reduce a panel of m rows, an even number, into the triangle. */
PK_INLINE void pk_append_strips(double *T, double *panel, ptrdiff_t m, pk_shape shape)
{
    pk_block block;
    block.V = panel + PK_STRIPS(shape) * PK_BLOCK_ROWS * PK_STRIP;
    block.solving = 0;
    for (ptrdiff_t j = 0; j < shape.q; j += PK_BLOCK) {
        pk_take_columns(block.V, panel, j, m);
        if (pk_make_block(T, panel, &block, j, m, shape))
            pk_update_trailing(&block, T + j * shape.ld, panel, j, m, shape);
    }
}

/* The features of rows first..first + count, column by column, and what is not X's by rows. */
PK_INLINE void pk_load_columns(double *panel, const pk_rows *rows, ptrdiff_t first, ptrdiff_t count, pk_shape shape)
{
    double root_weight[PK_BLOCK_ROWS];
    for (ptrdiff_t r = 0; r < count; r++) {
        root_weight[r] = pk_root_weight(rows, first + r);
        *pk_cell(panel, r, 0) = root_weight[r]; /* where there is no intercept, X comes to stand here */
        const double *y = rows->Y ? rows->Y + (first + r) * shape.k - shape.p : NULL;
        for (ptrdiff_t k = shape.p; k < shape.ld; k++)
            *pk_cell(panel, r, k) = k < shape.q && y ? root_weight[r] * y[k] : 0.0;
    }
    for (ptrdiff_t m = 0; m < rows->columns; m++) {
        double *cell = pk_cell(panel, 0, m + rows->intercept);
        if (rows->x_step == PK_EACH) {
            pk_read_numbers(cell, PK_STRIP, rows->each + m, first, count, root_weight);
            continue;
        }
        const double *x = rows->X + first * rows->x_stride + m * rows->x_step;
        for (ptrdiff_t r = 0; r < count; r++)
            cell[r * PK_STRIP] = root_weight[r] * x[r * rows->x_stride];
    }
}

/* Lay rows first..first + count into strips, and a row of zeros where the count is odd. row (ld). */
PK_INLINE void pk_load_strips(double *panel, double *row, const pk_rows *rows, ptrdiff_t first, ptrdiff_t count,
                              pk_shape shape)
{
    if (rows->x_step != 1)
        pk_load_columns(panel, rows, first, count, shape);
    pk_clear_padding(row, shape);
    for (ptrdiff_t r = 0; r < count && rows->x_step == 1; r++) {
        pk_load_row(row, rows, first + r, pk_root_weight(rows, first + r), shape);
        for (ptrdiff_t k = 0; k < shape.ld; k += PK_LINE)
            memcpy(pk_cell(panel, r, k), row + k, PK_LINE * sizeof(double));
    }
    if (count % 2)
        for (ptrdiff_t k = 0; k < shape.ld; k += PK_LINE)
            memset(pk_cell(panel, count, k), 0, PK_LINE * sizeof(double));
}

/* Append all rows. buffer (PK_BLOCKS_SIZE). */
PK_INLINE void pk_append_by_blocks(double *T, double *buffer, const pk_rows *rows, pk_shape shape)
{
    double *row = buffer + PK_BLOCKS_SIZE(shape) - shape.ld;
    for (ptrdiff_t first = 0; first < rows->n; first += PK_BLOCK_ROWS) {
        ptrdiff_t count = rows->n - first < PK_BLOCK_ROWS ? rows->n - first : PK_BLOCK_ROWS;
        pk_load_strips(buffer, row, rows, first, count, shape);
        pk_append_strips(T, buffer, (count + 1) & -2, shape);
    }
}

/* ---- predictions ---------------------------------------------------------------------------------------- */

/* Direction j, column c of V, is unknown: infinite leverage for the rows that point there. */
PK_RARE void pk_mark_unknown(const double *T, double *V, double *leverage, ptrdiff_t j, ptrdiff_t m, int c,
                             pk_shape shape)
{
    for (ptrdiff_t r = 0; r < m; r++) {
        double *v = V + r * PK_BLOCK, known = leverage[r];
        for (int i = 0; i < c; i++)
            known += v[i] * v[i];
        if (known < INFINITY && fabs(v[c]) > pk_point_noise(T, j, known, shape))
            leverage[r] = INFINITY;
        v[c] = 0.0;
    }
}

/* pk_predict_row on the columns j..j + PK_BLOCK of m rows, which V holds. */
PK_INLINE void pk_substitute_block(const double *T, const pk_block *block, double *leverage, ptrdiff_t j,
                                   ptrdiff_t m, pk_shape shape)
{
    for (int c = 0; c < block->height; c++) {
        const double *t = T + (j + c) * shape.ld + j;
        double z[PK_BLOCK] = {0};
        if (PK_UNLIKELY(t[c] == 0.0)) {
            pk_mark_unknown(T, block->V, leverage, j + c, m, c, shape);
            continue;
        }
        for (int k = c + 1; k < PK_BLOCK; k++)
            z[k] = t[k] / t[c];
        pk_scale_columns(block->V, m, c, 1.0 / t[c], z);
    }
    for (ptrdiff_t r = 0; r < m; r++)
        for (ptrdiff_t c = 0; c < block->height; c++)
            leverage[r] += block->V[r * PK_BLOCK + c] * block->V[r * PK_BLOCK + c];
}

/* Mean (n, k) and leverage (n) of rows. buffer (PK_BLOCKS_SIZE). */
PK_INLINE void pk_predict_by_blocks(const double *T, double *buffer, const pk_rows *rows, pk_shape shape, double *mean,
                                    double *leverage)
{
    pk_block block;
    double *row = buffer + PK_BLOCKS_SIZE(shape) - shape.ld;
    block.V = row - PK_BLOCK_ROWS * PK_BLOCK;
    block.solving = 1;
    for (ptrdiff_t first = 0; first < rows->n; first += PK_BLOCK_ROWS) {
        ptrdiff_t count = rows->n - first < PK_BLOCK_ROWS ? rows->n - first : PK_BLOCK_ROWS;
        memset(leverage + first, 0, (size_t)count * sizeof(double));
        pk_load_strips(buffer, row, rows, first, count, shape);
        for (ptrdiff_t j = 0; j < shape.q; j += PK_BLOCK) {
            ptrdiff_t height = shape.p - j < PK_BLOCK ? shape.p - j : PK_BLOCK;
            block.height = height > 0 ? height : 0;
            pk_take_columns(block.V, buffer, j, count);
            pk_substitute_block(T, &block, leverage + first, j, count, shape);
            for (ptrdiff_t c = j + block.height; c < j + PK_BLOCK && c < shape.q; c++)
                for (ptrdiff_t r = 0; r < count; r++)
                    mean[(first + r) * shape.k + c - shape.p] = -block.V[r * PK_BLOCK + c - j];
            if (height > 0)
                pk_update_trailing(&block, (double *)T + j * shape.ld, buffer, j, count, shape);
        }
    }
}

#endif
