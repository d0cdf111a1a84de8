/* A window that slides over rows: each new row comes in as an old one leaves. See posterity_kernel.h. */
#ifndef POSTERITY_WINDOW_H
#define POSTERITY_WINDOW_H

#include "posterity_flight.h"
#include "posterity_panel.h"
#include "posterity_removal.h"

/* A removal that leaves less than this of a squared diagonal has lost digits: start from the rows. */
#define PK_WORRYING 1e-4

/* The rows of a window, old to new, and where it stands. */
typedef struct {
    const pk_rows *rows;
    const double *prior;  /* (q, ld) */
    ptrdiff_t oldest;     /* row that will leave next */
    ptrdiff_t removed;    /* since the window was last built from its rows */
} pk_window;

/* The window from its rows oldest..stop and the prior, exactly. */
PK_INLINE void pk_build_window(double *T, double *buffer, pk_window *window, ptrdiff_t stop, pk_shape shape)
{
    pk_rows rows = *window->rows;
    rows.X += window->oldest * rows.x_stride;
    rows.Y += window->oldest * shape.k;
    rows.weights = rows.weights ? rows.weights + window->oldest : NULL;
    rows.n = stop - window->oldest;
    memcpy(T, window->prior, (size_t)(shape.q * shape.ld) * sizeof(double));
    pk_append_block(T, buffer, &rows, shape);
    window->removed = 0;
}

/* Let the rows before `first` leave a window that ends at row `stop`. buffer (PK_APPEND_SIZE). */
PK_INLINE void pk_expire_rows(double *T, double *buffer, pk_window *window, ptrdiff_t first, ptrdiff_t stop, pk_shape shape)
{
    while (window->oldest < first) {
        double least = 1.0;
        pk_clear_padding(buffer, shape);
        pk_load_row(buffer, window->rows, window->oldest, pk_root_weight(window->rows, window->oldest), shape);
        int failed = pk_remove_row(T, buffer, shape, &least);
        window->oldest += 1;
        window->removed += 1;
        if (failed || least * least < PK_WORRYING || window->removed > stop - window->oldest) {
            window->oldest = first;
            pk_build_window(T, buffer, window, stop, shape);
        }
    }
}

/* The rotations of one step: the first row of each pair comes in (cosine, sine of a circle), the second
 * leaves (of a hyperbola). Returns 0 when one of them would lose digits. */
PK_INLINE int pk_make_slides(const double *T, pk_pipeline *flight, ptrdiff_t step, ptrdiff_t from, ptrdiff_t to,
                             pk_shape shape)
{
    pk_quad *cosine = (pk_quad *)(flight->cosine + step * PK_IN_FLIGHT);
    pk_quad *sine = (pk_quad *)(flight->sine + step * PK_IN_FLIGHT);
    pk_quad a = PK_GATHER(PK_DIAGONAL, 1.0), b0 = PK_GATHER(PK_FIRST, 0.0), b1 = PK_GATHER(PK_SECOND, 0.0);
    pk_quad square = a * a + b0 * b0, norm = pk_roots(square), left = (norm - b1) * (norm + b1);
    pk_flags plain = (a > 0.0) & (square > 1e-280) & (square < 1e280) & (left > PK_WORRYING * square);
    cosine[0] = a / norm;
    sine[0] = b0 / norm;
    cosine[1] = pk_roots(left) / norm;
    sine[1] = b1 / norm;
    return (int)(plain[0] & plain[1] & plain[2] & plain[3] & 1);
}

PK_INLINE void pk_apply_slide(const double *cosine, const double *sine, double *restrict t, double *restrict coming,
                              double *restrict leaving, ptrdiff_t j, pk_shape shape)
{
    double c0 = cosine[0], s0 = sine[0], c1 = cosine[PK_PAIRS], s1 = sine[PK_PAIRS], inverse = 1.0 / c1;
    pk_vector keep = pk_beyond(j), all = (pk_vector){0} + 1.0;
    for (ptrdiff_t v = j & -PK_LANES; v < shape.ld; v += PK_LANES, keep = all) {
        pk_vector tv = *(pk_vector *)(t + v), in = *(pk_vector *)(coming + v), out = *(pk_vector *)(leaving + v);
        pk_apply_rotation(c0, s0, &tv, &in);
        tv = (tv - s1 * out) * inverse;
        *(pk_vector *)(t + v) = tv;
        *(pk_vector *)(coming + v) = in * keep;
        *(pk_vector *)(leaving + v) = (c1 * out - s1 * tv) * keep;
    }
}

/* PK_PAIRS rows from `first` come in, each predicted before; as many leave, each after its partner came.
 * Returns 0, with T spoilt, when digits would be lost. */
PK_INLINE int pk_slide_together(double *T, pk_pipeline *flight, const pk_window *window, ptrdiff_t first, pk_shape shape,
                                const pk_before *before)
{
    for (ptrdiff_t g = 0; g < PK_PAIRS; g++)
        for (ptrdiff_t leaves = 0; leaves < 2; leaves++) {
            ptrdiff_t r = 2 * g + leaves, i = leaves ? window->oldest + g : first + g;
            flight->root_weight[r] = pk_root_weight(window->rows, i);
            pk_load_row(flight->row + r * shape.ld, window->rows, i, flight->root_weight[r], shape);
        }
    for (ptrdiff_t step = 0; step < PK_STEPS(shape); step++) {
        ptrdiff_t from = step < shape.q ? 0 : step - shape.q + 1, to = step < PK_PAIRS ? step + 1 : PK_PAIRS;
        ptrdiff_t done = step - shape.p;
        if (done >= from && done < to) {
            /* Pairs before this one have left the triangle's target rows as well: this is the residual now. */
            pk_residuals(T, before->residual + (first + done) * shape.k, shape);
            memcpy(flight->left + done * shape.k, flight->row + 2 * done * shape.ld + shape.p,
                   (size_t)shape.k * sizeof(double));
        }
        if (!pk_make_slides(T, flight, step, from, to, shape))
            return 0;
        for (ptrdiff_t g = from; g < to; g++) {
            ptrdiff_t j = step - g, at = step * PK_IN_FLIGHT + g;
            double *row = flight->row + 2 * g * shape.ld;
            pk_apply_slide(flight->cosine + at, flight->sine + at, T + j * shape.ld, row, row + shape.ld, j, shape);
        }
    }
    for (ptrdiff_t g = 0; g < PK_PAIRS; g++) {
        double product = 1.0, explained = 0.0;
        for (ptrdiff_t j = 0; j < shape.p; j++) {
            double part = product * flight->sine[(j + g) * PK_IN_FLIGHT + g];
            explained += part * part;
            product *= flight->cosine[(j + g) * PK_IN_FLIGHT + g];
        }
        double scale = flight->root_weight[2 * g] * product;
        before->leverage[first + g] = explained / (scale * scale);
        for (ptrdiff_t t = 0; t < shape.k; t++)
            before->error[(first + g) * shape.k + t] = flight->left[g * shape.k + t] / scale;
    }
    return 1;
}

/* Whether the next PK_PAIRS rows, from i on, come in as one leaves for each, in a window that is full; leave is row i's. */
PK_INLINE int pk_is_steady(const pk_window *window, const ptrdiff_t *leave, ptrdiff_t i, pk_shape shape)
{
    const pk_rows *rows = window->rows;
    if (shape.k > 1 || i + PK_PAIRS > rows->n || window->removed + PK_PAIRS > i - window->oldest || i - window->oldest < 2 * shape.p)
        return 0;
    for (ptrdiff_t r = 0; r <= PK_PAIRS; r++)
        if (leave[r] != window->oldest + r)
            return 0;
    return !pk_is_awkward(rows, i, PK_PAIRS) && !pk_is_awkward(rows, window->oldest, PK_PAIRS);
}

/* Learn rows start..n in order: rows before leave[i - start] are out when row i is predicted, and rows before
 * leave[n - start] at the end; leave (n - start + 1) does not decrease. T holds rows oldest..start on entry. before is
 * indexed by row. buffer (PK_APPEND_SIZE), flight_buffer (PK_FLIGHT_SIZE). */
static void pk_slide(double *T, double *buffer, double *flight_buffer, const pk_rows *rows,
                     const double *prior, ptrdiff_t oldest, ptrdiff_t start, const ptrdiff_t *leave,
                     pk_shape shape, const pk_before *before)
{
    pk_pipeline flight = pk_new_pipeline(flight_buffer, shape);
    pk_window window = {rows, prior, oldest, 0};
    int deficient = pk_is_deficient(T, shape);
    for (ptrdiff_t i = start; i < rows->n;) {
        pk_expire_rows(T, buffer, &window, leave[i - start], i, shape);
        if (!deficient && pk_is_steady(&window, leave + (i - start), i, shape)) {
            if (pk_slide_together(T, &flight, &window, i, shape, before)) {
                window.oldest += PK_PAIRS;
                window.removed += PK_PAIRS;
                i += PK_PAIRS;
                continue;
            }
            pk_build_window(T, buffer, &window, i, shape);
        }
        ptrdiff_t stop = i + PK_PAIRS < rows->n ? i + PK_PAIRS : rows->n;
        for (; i < stop; i++) {
            pk_expire_rows(T, buffer, &window, leave[i - start], i, shape);
            pk_learn_row_by_rotations(T, flight_buffer, rows, i, shape, before);
        }
        deficient = pk_is_deficient(T, shape);
    }
    pk_expire_rows(T, buffer, &window, leave[rows->n - start], rows->n, shape);
}

/* The last of rows, which the caller has loaded as `row`, comes into a window after those before `before` have left;
 * then those before `after` leave. buffer (PK_APPEND_SIZE). */
static void pk_slide_one(double *T, double *buffer, double *row, pk_window *window, ptrdiff_t before, ptrdiff_t after,
                         pk_shape shape)
{
    pk_expire_rows(T, buffer, window, before, window->rows->n - 1, shape);
    pk_append_row(T, row, shape);
    pk_expire_rows(T, buffer, window, after, window->rows->n, shape);
}

#endif
