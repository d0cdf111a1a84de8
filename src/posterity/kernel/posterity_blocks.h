/* Many rows of many columns at once: Householder reflectors, eight at a time, as products of matrices.
 *
 * A panel holds PK_BLOCK_ROWS rows as they came, by rows. Its next PK_BLOCK columns are reduced into as many rows of the
 * triangle by reflectors I - v v', v = [H; V] with H where the triangle's rows are and V where the panel's are; their
 * product is I - v K v' with K upper triangular (compact WY: Schreiber and Van Loan 1989), and all columns to the right
 * meet it as two products of matrices, a tile at a time, whose sums stay in registers. */
#ifndef POSTERITY_BLOCKS_H
#define POSTERITY_BLOCKS_H

#include "posterity_givens.h"

#define PK_BLOCK 8        /* reflectors of a block; divides PK_LINE */
#define PK_BLOCK_ROWS 128 /* a tile of so many rows stays in the nearest cache */
#define PK_TILE 3         /* vectors across a tile */
/* Reflectors whose sums fit into the registers together. */
#if PK_LANES == 8 || defined(__aarch64__)
#define PK_TOGETHER 8
#else
#define PK_TOGETHER 4
#endif
enum { PK_BLOCK_PARTS = PK_BLOCK / PK_LANES };

/* Room for a panel (PK_BLOCK_ROWS, ld), and V (PK_BLOCK_ROWS, PK_BLOCK). */
#define PK_BLOCKS_SIZE(shape) (PK_BLOCK_ROWS * ((shape).ld + PK_BLOCK))

/* Eight reflectors: head (PK_BLOCK, PK_BLOCK) is H', lower triangular and, unless rows changed places, diagonal. */
typedef struct {
    double *V;
    double head[PK_BLOCK][PK_BLOCK];  /* [reflector][row of the triangle] */
    double K[PK_BLOCK][PK_BLOCK];
    int dense;
} pk_block;

/* ---- tiles -------------------------------------------------------------------------------------------- */

/* sum (PK_BLOCK, width) = V' C over m rows; width is a constant. */
PK_INLINE void pk_tile_sums(const double *restrict V, const double *restrict C, ptrdiff_t ld, ptrdiff_t m, int width,
                            pk_vector (*sum)[PK_TILE])
{
    for (int first = 0; first < PK_BLOCK; first += PK_TOGETHER) {
        pk_vector part[PK_TOGETHER][PK_TILE] = {{{0}}};
        for (ptrdiff_t r = 0; r < m; r++) {
            const double *v = V + r * PK_BLOCK + first, *c = C + r * ld;
            pk_vector x[PK_TILE];
#pragma GCC unroll 8
            for (int w = 0; w < width; w++)
                x[w] = ((const pk_vector *)c)[w];
#pragma GCC unroll 8
            for (int i = 0; i < PK_TOGETHER; i++)
#pragma GCC unroll 8
                for (int w = 0; w < width; w++)
                    part[i][w] += v[i] * x[w];
        }
#pragma GCC unroll 8
        for (int i = 0; i < PK_TOGETHER; i++)
#pragma GCC unroll 8
            for (int w = 0; w < width; w++)
                sum[first + i][w] = part[i][w];
    }
}

/* C -= V sum over m rows. */
PK_INLINE void pk_tile_subtract(const double *restrict V, double *restrict C, ptrdiff_t ld, ptrdiff_t m, int width,
                                pk_vector (*sum)[PK_TILE])
{
    for (int first = 0; first < PK_BLOCK; first += PK_TOGETHER) {
        pk_vector part[PK_TOGETHER][PK_TILE];
#pragma GCC unroll 8
        for (int i = 0; i < PK_TOGETHER; i++)
#pragma GCC unroll 8
            for (int w = 0; w < width; w++)
                part[i][w] = sum[first + i][w];
        for (ptrdiff_t r = 0; r < m; r++) {
            const double *v = V + r * PK_BLOCK + first;
            pk_vector *c = (pk_vector *)(C + r * ld), x[PK_TILE];
#pragma GCC unroll 8
            for (int w = 0; w < width; w++)
                x[w] = c[w];
#pragma GCC unroll 8
            for (int i = 0; i < PK_TOGETHER; i++)
#pragma GCC unroll 8
                for (int w = 0; w < width; w++)
                    x[w] -= v[i] * part[i][w];
#pragma GCC unroll 8
            for (int w = 0; w < width; w++)
                c[w] = x[w];
        }
    }
}

/* The rows t (PK_BLOCK, ld) of the triangle and C (m, ld) of the panel meet the block, `width` vectors of each. */
PK_INLINE void pk_meet_block(const pk_block *block, double *restrict t, double *restrict C, ptrdiff_t ld, ptrdiff_t m,
                             int width)
{
    pk_vector sum[PK_BLOCK][PK_TILE], *row;
    pk_tile_sums(block->V, C, ld, m, width, sum);
    for (int i = 0; i < PK_BLOCK; i++)
        for (int j = i; j < (block->dense ? PK_BLOCK : i + 1); j++) {
            row = (pk_vector *)(t + j * ld);
            for (int w = 0; w < width; w++)
                sum[i][w] += block->head[i][j] * row[w];
        }
    for (int i = PK_BLOCK - 1; i >= 0; i--)
        for (int w = 0; w < width; w++) {
            pk_vector all = {0};
            for (int j = 0; j <= i; j++)
                all += block->K[j][i] * sum[j][w];
            sum[i][w] = all;
        }
    for (int i = 0; i < PK_BLOCK; i++)
        for (int j = i; j < (block->dense ? PK_BLOCK : i + 1); j++) {
            row = (pk_vector *)(t + j * ld);
            for (int w = 0; w < width; w++)
                row[w] -= block->head[i][j] * sum[i][w];
        }
    pk_tile_subtract(block->V, C, ld, m, width, sum);
}

/* ---- reflectors --------------------------------------------------------------------------------------- */

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
PK_RARE void pk_exchange(double *t, double *C, pk_block *block, ptrdiff_t ld, ptrdiff_t width, ptrdiff_t m, int c)
{
    ptrdiff_t most = 0;
    for (ptrdiff_t r = 1; r < m; r++)
        if (fabs(block->V[r * PK_BLOCK + c]) > fabs(block->V[most * PK_BLOCK + c]))
            most = r;
    double *v = block->V + most * PK_BLOCK, *row = C + most * ld, sign = v[c] < 0.0 ? -1.0 : 1.0;
    for (int i = 0; i < c; i++) {
        block->head[i][c] = sign * v[i];
        v[i] = 0.0;
    }
    for (ptrdiff_t k = c; k < width; k++) {
        double *from = k < PK_BLOCK ? v + k : row + k, old = t[c * ld + k];
        t[c * ld + k] = sign * *from;
        *from = sign * old;
    }
    block->dense = 1;
}

/* Reduce V, the panel's columns j..j + PK_BLOCK, into rows t of the triangle, whose columns begin there. C is the panel
 * from column j on. The norm and what is left of a column are found as in pk_reflect. */
PK_INLINE void pk_make_block(double *T, double *restrict C, pk_block *block, ptrdiff_t j, ptrdiff_t m, pk_shape shape)
{
    double *t = T + j * shape.ld + j, *V = block->V;
    block->dense = 0;
    memset(block->head, 0, sizeof block->head);
    memset(block->K, 0, sizeof block->K);
    for (int c = 0; c < PK_BLOCK && j + c < shape.q; c++) {
        double dots[PK_BLOCK], scale[PK_BLOCK], z[PK_BLOCK] = {0}, *d = t + c * shape.ld, head = 0.0, root = 0.0;
        pk_column_dots(V, m, c, (pk_vector *)dots);
        if (PK_UNLIKELY(d[c] == 0.0) && dots[c] != 0.0) {
            if (sqrt(dots[c]) <= pk_noise_level(T, j + c, sqrt(dots[c]), shape)) {
                dots[c] = 0.0;
            } else {
                pk_exchange(t, C, block, shape.ld, shape.ld - j, m, c);
                pk_column_dots(V, m, c, (pk_vector *)dots);
            }
        }
        double a = d[c], square = dots[c];
        if (square != 0.0) {
            double norm = sqrt(a * a + square);
            root = sqrt((a + norm) / (norm * square));
            head = -square / (a + norm) * root;
            d[c] = norm;
        }
        for (int k = 0; k < PK_BLOCK; k++)
            scale[k] = 1.0;
        scale[c] = root;
        for (int k = c + 1; k < PK_BLOCK; k++) {
            double w = head * d[k] + root * dots[k];
            d[k] -= head * w;
            z[k] = root * w;
        }
        for (ptrdiff_t r = 0; r < m; r++) {
            double *v = V + r * PK_BLOCK, u = v[c];
            for (int s = 0; s < PK_BLOCK_PARTS; s++)
                ((pk_vector *)v)[s] = ((pk_vector *)v)[s] * ((pk_vector *)scale)[s] - u * ((pk_vector *)z)[s];
        }
        block->head[c][c] = head;
        block->K[c][c] = 1.0;
        for (int i = 0; i < c; i++)
            for (int l = i; l < c; l++)
                block->K[i][c] -= block->K[i][l] * (root * dots[l] + block->head[l][c] * head);
    }
}

/* Reduce a panel of m rows, even and some perhaps 0, into the triangle. */
PK_INLINE void pk_append_panel_by_blocks(double *T, double *panel, ptrdiff_t m, pk_shape shape)
{
    pk_block block;
    block.V = panel + PK_BLOCK_ROWS * shape.ld;
    for (ptrdiff_t j = 0; j < shape.q; j += PK_BLOCK) {
        double *t = T + j * shape.ld, *C = panel;
        for (ptrdiff_t r = 0; r < m; r++)
            memcpy(block.V + r * PK_BLOCK, panel + r * shape.ld + j, PK_BLOCK * sizeof(double));
        pk_make_block(T, panel + j, &block, j, m, shape);
        ptrdiff_t k = j + PK_BLOCK, left = (shape.ld - k) / PK_LANES;
        for (; left >= PK_TILE; left -= PK_TILE, k += PK_TILE * PK_LANES)
            pk_meet_block(&block, t + k, C + k, shape.ld, m, PK_TILE);
        if (left == 2)
            pk_meet_block(&block, t + k, C + k, shape.ld, m, 2);
        else if (left == 1)
            pk_meet_block(&block, t + k, C + k, shape.ld, m, 1);
    }
}

PK_INLINE void pk_append_by_blocks(double *T, double *buffer, const pk_rows *rows, pk_shape shape)
{
    for (ptrdiff_t first = 0; first < rows->n; first += PK_BLOCK_ROWS) {
        ptrdiff_t count = rows->n - first < PK_BLOCK_ROWS ? rows->n - first : PK_BLOCK_ROWS, m = (count + 1) & -2;
        for (ptrdiff_t r = 0; r < count; r++) {
            pk_clear_padding(buffer + r * shape.ld, shape);
            pk_load_row(buffer + r * shape.ld, rows, first + r, pk_root_weight(rows, first + r), shape);
        }
        if (m > count)
            memset(buffer + count * shape.ld, 0, (size_t)shape.ld * sizeof(double));
        pk_append_panel_by_blocks(T, buffer, m, shape);
    }
}

#endif
