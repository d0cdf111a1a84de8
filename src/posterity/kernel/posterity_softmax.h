/* One label among several: what it says of the contrasts between them, and its rows for a triangle of all contrasts.
 *
 * K classes have linear predictors eta = basis c, basis (K, R), c (R) the coordinates. Before a label these are
 * Normal(mean, covariance); it becomes the Gaussian rows root (c - target) that are nearest to it, at the mode
 * (Laplace) or by the averages of gradient and curvature over what is left open (Opper and Archambeau 2009), in turns
 * with how much that is. Averages are over standard points and their mirror images, turned by a root of the covariance.
 * twin_softmax.py says the same in NumPy. */
#ifndef POSTERITY_SOFTMAX_H
#define POSTERITY_SOFTMAX_H

#include "posterity_givens.h"
#include "posterity_panel.h"
#include "posterity_sites.h"

/* Least curvature of a site: without it the target of a label that was sure to be another is infinite. */
#define PK_LEAST_CURVATURE 1e-10
/* Of the trace: keeps the root of a covariance that rounding has made indefinite. */
#define PK_ROOT_RIDGE 1e-13
/* The width is settled when its log determinant changes by less. */
#define PK_WIDTH_SETTLED 1e-2
#define PK_WIDTH_ROUNDS 8
#define PK_CLIMB_STEPS 60

typedef struct {
    ptrdiff_t classes, contrasts, points, stride; /* K, R, S; stride: S, padded to PK_LINE */
    const double *basis;                          /* (K, R) */
    const double *units;                          /* (R, stride) standard points, 0 beyond the last */
    double *room;                                 /* (PK_LOOK_SIZE) */
} pk_softmax;

/* What a label says at a place: its log likelihood, the gradient (R), and minus the second derivative (R, R). */
typedef struct {
    double value, *slope, *curvature;
} pk_label_derivatives;

#define PK_LOOK_SIZE(K, R) ((3 * (K) + (R) + (R) * ((R) + 1) / 2) * PK_LINE + (K))
#define PK_PLACE_SIZE(R) (6 * (R) * (R) + 8 * (R))
#define PK_BELIEF_SIZE(R, shape) ((R) * ((shape).ld + (shape).p))

/* ---- small matrices, by rows ---------------------------------------------------------------------------- */

/* b (n) becomes A^-1 b; A (n, n) is used up. */
static void pk_solve(double *A, double *b, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        ptrdiff_t best = j;
        for (ptrdiff_t i = j + 1; i < n; i++)
            best = fabs(A[i * n + j]) > fabs(A[best * n + j]) ? i : best;
        double held = b[j], inverse = 1.0 / A[best * n + j];
        b[j] = b[best];
        b[best] = held;
        for (ptrdiff_t k = j; k < n && best != j; k++) {
            held = A[j * n + k];
            A[j * n + k] = A[best * n + k];
            A[best * n + k] = held;
        }
        for (ptrdiff_t i = j + 1; i < n; i++) {
            double share = A[i * n + j] * inverse;
            for (ptrdiff_t k = j + 1; k < n; k++)
                A[i * n + k] -= share * A[j * n + k];
            b[i] -= share * b[j];
        }
    }
    for (ptrdiff_t j = n - 1; j >= 0; j--) {
        b[j] /= A[j * n + j];
        for (ptrdiff_t i = 0; i < j; i++)
            b[i] -= A[i * n + j] * b[j];
    }
}

/* The lower root L (n, n) of A + ridge I = L L', whose log determinant is returned; 0 along what rounding has left less
 * than nothing of. */
static double pk_cholesky(const double *A, double *L, ptrdiff_t n, double ridge)
{
    double log_determinant = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j <= i; j++) {
            double left = A[i * n + j] + (i == j ? ridge : 0.0);
            for (ptrdiff_t k = 0; k < j; k++)
                left -= L[i * n + k] * L[j * n + k];
            if (i == j) {
                L[i * n + i] = left > 0.0 ? sqrt(left) : 0.0;
                log_determinant += log(left);
            } else {
                L[i * n + j] = L[j * n + j] > 0.0 ? left / L[j * n + j] : 0.0;
            }
        }
        for (ptrdiff_t j = i + 1; j < n; j++)
            L[i * n + j] = 0.0;
    }
    return log_determinant;
}

/* c = A b; (n, n), (n). */
PK_INLINE void pk_times(const double *A, const double *b, double *c, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        c[i] = 0.0;
        for (ptrdiff_t k = 0; k < n; k++)
            c[i] += A[i * n + k] * b[k];
    }
}

/* C = A B. */
PK_INLINE void pk_product(const double *A, const double *B, double *C, ptrdiff_t n)
{
    memset(C, 0, (size_t)(n * n) * sizeof(double));
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t k = 0; k < n; k++)
            for (ptrdiff_t j = 0; j < n; j++)
                C[i * n + j] += A[i * n + k] * B[k * n + j];
}

static void pk_root_of(const double *covariance, double *root, ptrdiff_t n)
{
    double trace = 0.0;
    for (ptrdiff_t i = 0; i < n; i++)
        trace += covariance[i * n + i];
    pk_cholesky(covariance, root, n, PK_ROOT_RIDGE * trace);
}

/* moved (R, stride): the standard points turned by a root (R, R) of the covariance. */
static void pk_rotate_points(const pk_softmax *s, const double *root, double *moved)
{
    for (ptrdiff_t a = 0; a < s->contrasts; a++)
        for (ptrdiff_t g = 0; g < s->stride; g += PK_LANES) {
            pk_vector sum = {0};
            for (ptrdiff_t b = 0; b < s->contrasts; b++)
                sum += root[a * s->contrasts + b] * *(const pk_vector *)(s->units + b * s->stride + g);
            *(pk_vector *)(moved + a * s->stride + g) = sum;
        }
}

/* ---- derivatives at a point --------------------------------------------------------------------------------------------- */

/* What lanes of points from g on count for. */
PK_INLINE pk_vector pk_point_weight(const pk_softmax *s, ptrdiff_t g)
{
    pk_vector share;
    for (int lane = 0; lane < PK_LANES; lane++)
        share[lane] = g + lane < s->points ? 0.5 / (double)s->points : 0.0;
    return share;
}

/* basis' (diag(average) - second) basis and basis' (e_label - average), from sums over points. */
static void pk_finish_derivatives(const pk_softmax *s, ptrdiff_t label, const double *average, pk_label_derivatives *look)
{
    ptrdiff_t R = s->contrasts;
    for (ptrdiff_t k = 0; k < s->classes; k++) {
        const double *row = s->basis + k * R;
        double push = (double)(k == label) - average[k];
        for (ptrdiff_t a = 0; a < R; a++) {
            look->slope[a] += push * row[a];
            double lead = average[k] * row[a];
            for (ptrdiff_t b = 0; b <= a; b++)
                look->curvature[a * R + b] += lead * row[b];
        }
    }
    for (ptrdiff_t a = 0; a < R; a++)
        for (ptrdiff_t b = 0; b < a; b++)
            look->curvature[b * R + a] = look->curvature[a * R + b];
}

/* The log likelihood of a label at `place`, its gradient, and minus its second derivative. */
static void pk_evaluate_label(const pk_softmax *s, ptrdiff_t label, const double *place, pk_label_derivatives *look)
{
    ptrdiff_t K = s->classes, R = s->contrasts;
    double *shares = s->room, *means = shares + K, most = -INFINITY, total = 0.0;
    for (ptrdiff_t k = 0; k < K; k++) {
        shares[k] = 0.0;
        for (ptrdiff_t a = 0; a < R; a++)
            shares[k] += s->basis[k * R + a] * place[a];
        most = shares[k] > most ? shares[k] : most;
    }
    look->value = shares[label] - most;
    for (ptrdiff_t k = 0; k < K; k++)
        total += shares[k] = pk_exp_one(shares[k] - most);
    look->value -= pk_log_one(total);
    memset(look->slope, 0, (size_t)R * sizeof(double));
    memset(means, 0, (size_t)R * sizeof(double));
    for (ptrdiff_t k = 0; k < K; k++) {
        shares[k] /= total;
        for (ptrdiff_t a = 0; a < R; a++)
            means[a] += shares[k] * s->basis[k * R + a];
    }
    for (ptrdiff_t a = 0; a < R; a++)
        for (ptrdiff_t b = 0; b <= a; b++)
            look->curvature[a * R + b] = -means[a] * means[b];
    pk_finish_derivatives(s, label, shares, look);
}

/* The same, averaged over points moved (R, stride) about the place and mirrored. */
static void pk_average_around(const pk_softmax *s, ptrdiff_t label, const double *place, const double *moved, pk_label_derivatives *look)
{
    ptrdiff_t K = s->classes, R = s->contrasts;
    pk_vector *average = (pk_vector *)s->room, *shift = average + K, *shares = shift + K, *means = shares + K;
    pk_vector *second = means + R, value = {0};
    double *eta = (double *)(second + R * (R + 1) / 2);
    for (ptrdiff_t k = 0; k < K; k++) {
        average[k] = (pk_vector){0};
        eta[k] = 0.0;
        for (ptrdiff_t a = 0; a < R; a++)
            eta[k] += s->basis[k * R + a] * place[a];
    }
    memset(second, 0, (size_t)(R * (R + 1) / 2) * sizeof(pk_vector));
    for (ptrdiff_t g = 0; g < s->stride; g += PK_LANES) {
        pk_vector counts = pk_point_weight(s, g);
        for (ptrdiff_t k = 0; k < K; k++) {
            shift[k] = (pk_vector){0};
            for (ptrdiff_t a = 0; a < R; a++)
                shift[k] += s->basis[k * R + a] * *(const pk_vector *)(moved + a * s->stride + g);
        }
        for (double side = 1.0; side > -2.0; side -= 2.0) {
            pk_vector most = (pk_vector){0} - INFINITY, total = {0};
            for (ptrdiff_t k = 0; k < K; k++) {
                shares[k] = eta[k] + side * shift[k];
                most = pk_max(most, shares[k]);
            }
            pk_vector log_share = shares[label] - most;
            for (ptrdiff_t k = 0; k < K; k++)
                total += shares[k] = pk_exp_down(shares[k] - most);
            value += counts * (log_share - pk_log(total));
            pk_vector inverse = 1.0 / total;
            for (ptrdiff_t a = 0; a < R; a++)
                means[a] = (pk_vector){0};
            for (ptrdiff_t k = 0; k < K; k++) {
                shares[k] *= inverse;
                average[k] += counts * shares[k];
                for (ptrdiff_t a = 0; a < R; a++)
                    means[a] += shares[k] * s->basis[k * R + a];
            }
            for (ptrdiff_t a = 0, i = 0; a < R; a++) {
                pk_vector lead = counts * means[a];
                for (ptrdiff_t b = 0; b <= a; b++, i++)
                    second[i] += lead * means[b];
            }
        }
    }
    look->value = pk_sum(value);
    memset(look->slope, 0, (size_t)R * sizeof(double));
    for (ptrdiff_t a = 0, i = 0; a < R; a++)
        for (ptrdiff_t b = 0; b <= a; b++, i++)
            look->curvature[a * R + b] = -pk_sum(second[i]);
    for (ptrdiff_t k = 0; k < K; k++)
        eta[k] = pk_sum(average[k]);
    pk_finish_derivatives(s, label, eta, look);
}

/* Looks at n labels, at places (n, R), averaged over points moved (n, S, R) about them, if there are any: values (n),
 * slopes (n, R) and curvatures (n, R, R). turned (R, stride). */
static void pk_evaluate_labels(const pk_softmax *s, ptrdiff_t n, const ptrdiff_t *labels, const double *places,
                              const double *moved, double *turned, double *values, double *slopes, double *curvatures)
{
    ptrdiff_t R = s->contrasts;
    memset(turned, 0, (size_t)(R * s->stride) * sizeof(double));
    for (ptrdiff_t i = 0; i < n; i++) {
        pk_label_derivatives look = {0.0, slopes + i * R, curvatures + i * R * R};
        if (moved) {
            for (ptrdiff_t g = 0; g < s->points; g++)
                for (ptrdiff_t a = 0; a < R; a++)
                    turned[a * s->stride + g] = moved[(i * s->points + g) * R + a];
            pk_average_around(s, labels[i], places + i * R, turned, &look);
        } else {
            pk_evaluate_label(s, labels[i], places + i * R, &look);
        }
        values[i] = look.value;
    }
}

/* ---- the place of one label ----------------------------------------------------------------------------- */

typedef struct {
    ptrdiff_t label;
    double weight;
    const double *mean, *covariance; /* (R), (R, R) */
    const double *moved;             /* (R, stride), or NULL */
} pk_label;

/* Look at mean + covariance push, whose log posterior is returned. step (R) is covariance push. */
static double pk_evaluate_step(const pk_softmax *s, const pk_label *l, const double *push, double *step, double *place,
                           pk_label_derivatives *look)
{
    double pull = 0.0;
    pk_times(l->covariance, push, step, s->contrasts);
    for (ptrdiff_t a = 0; a < s->contrasts; a++) {
        place[a] = l->mean[a] + step[a];
        pull += push[a] * step[a];
    }
    if (l->moved)
        pk_average_around(s, l->label, place, l->moved, look);
    else
        pk_evaluate_label(s, l->label, place, look);
    return l->weight * look->value - 0.5 * pull;
}

/* Newton's method from `push`, which moves on; `curved` (R, R) is the weighted curvature before the last step.
 * room (3 R^2 + 7 R). */
static void pk_newton_steps(const pk_softmax *s, const pk_label *l, double *push, double *curved, double *room)
{
    ptrdiff_t R = s->contrasts;
    double *matrix = room, *wanted = matrix + R * R, *trial = wanted + R, *step = trial + R, *place = step + R;
    double *looks = place + R, close = l->moved ? 1e-6 : 1e-13;
    pk_label_derivatives look = {0.0, looks, looks + R}, new_look = {0.0, looks + R + R * R, looks + 2 * R + R * R};
    double best = pk_evaluate_step(s, l, push, step, place, &look);
    for (int round = 0; round < PK_CLIMB_STEPS; round++) {
        for (ptrdiff_t i = 0; i < R * R; i++)
            curved[i] = l->weight * look.curvature[i];
        pk_times(curved, step, wanted, R);
        pk_product(curved, l->covariance, matrix, R);
        for (ptrdiff_t a = 0; a < R; a++) {
            wanted[a] += l->weight * look.slope[a];
            matrix[a * R + a] += 1.0;
        }
        pk_solve(matrix, wanted, R);
        double share = 2.0, value = -INFINITY, least = best - 1e-14 * (1.0 + fabs(best));
        while (!(value >= least) && share > 1e-9) {
            share *= 0.5;
            for (ptrdiff_t a = 0; a < R; a++)
                trial[a] = push[a] + share * (wanted[a] - push[a]);
            value = pk_evaluate_step(s, l, trial, step, place, &new_look);
        }
        memcpy(push, trial, (size_t)R * sizeof(double));
        double gained = value - best;
        best = value > best ? value : best;
        if (!(gained > close * (1.0 + fabs(best))))
            return;
        pk_label_derivatives held = look;
        look = new_look;
        new_look = held;
    }
}

/* The points turned by a root of what a site of this precision leaves of the covariance root root':
 * root (I + root' precision root)^-1/2. Returns the log of the determinant that is left of 1. room (3 R^2). */
static double pk_narrow_points(const pk_softmax *s, const double *root, const double *precision, double *moved, double *room)
{
    ptrdiff_t R = s->contrasts;
    double *bent = room, *inner = bent + R * R, *lower = inner + R * R;
    pk_product(precision, root, bent, R);
    for (ptrdiff_t a = 0; a < R; a++)
        for (ptrdiff_t b = 0; b < R; b++) {
            double sum = (double)(a == b);
            for (ptrdiff_t k = a; k < R; k++)
                sum += root[k * R + a] * bent[k * R + b];
            inner[a * R + b] = sum;
        }
    double size = pk_cholesky(inner, lower, R, 0.0);
    for (ptrdiff_t a = 0; a < R; a++) /* each row of root lower^-T is lower^-1 times that of root */
        for (ptrdiff_t b = 0; b < R; b++) {
            double left = root[a * R + b];
            for (ptrdiff_t k = 0; k < b; k++)
                left -= lower[b * R + k] * bent[a * R + k];
            bent[a * R + b] = left / lower[b * R + b];
        }
    pk_rotate_points(s, bent, moved);
    return -size;
}

/* Where a label is looked at: place (R), and with averages moved (R, stride) about it. room (PK_PLACE_SIZE). */
static void pk_around_label(const pk_softmax *s, pk_label label, int averaged, double *place, double *moved, double *room)
{
    ptrdiff_t R = s->contrasts, square = R * R;
    double *push = room, *curved = push + R, *precision = curved + square, *root = precision + square;
    double *rest = root + square;
    memset(push, 0, (size_t)R * sizeof(double));
    label.moved = NULL;
    pk_newton_steps(s, &label, push, curved, rest);
    if (averaged) {
        double share = 1.0, last = INFINITY;
        pk_root_of(label.covariance, root, R);
        memcpy(precision, curved, (size_t)square * sizeof(double));
        double size = pk_narrow_points(s, root, precision, moved, rest);
        label.moved = moved;
        for (int round = 0; round < PK_WIDTH_ROUNDS; round++) {
            pk_newton_steps(s, &label, push, curved, rest);
            for (ptrdiff_t i = 0; i < square; i++) /* where it went to and fro, the mean of both */
                precision[i] = share * curved[i] + (1.0 - share) * precision[i];
            double new_size = pk_narrow_points(s, root, precision, moved, rest), changed = fabs(new_size - size);
            share = changed > 0.5 * last ? 0.5 : share;
            size = new_size;
            last = changed;
            if (changed < PK_WIDTH_SETTLED)
                break;
        }
    }
    pk_times(label.covariance, push, place, R);
    for (ptrdiff_t a = 0; a < R; a++)
        place[a] += label.mean[a];
}

/* The rows that stand for the label: lower (R, R), the root of its precision, and targets (R) lower' c; returns the log
 * of their constant. room (R^2 + R). */
static double pk_label_rows(const pk_softmax *s, const pk_label *l, const double *place, double *lower, double *target,
                            double *room)
{
    ptrdiff_t R = s->contrasts;
    pk_label_derivatives look = {0.0, room, room + R};
    if (l->moved)
        pk_average_around(s, l->label, place, l->moved, &look);
    else
        pk_evaluate_label(s, l->label, place, &look);
    pk_cholesky(look.curvature, lower, R, PK_LEAST_CURVATURE);
    double quadratic = 0.0, root = sqrt(l->weight);
    for (ptrdiff_t a = 0; a < R; a++) { /* ahead = lower^-1 slope, in the place of slope */
        double left = look.slope[a];
        for (ptrdiff_t b = 0; b < a; b++)
            left -= lower[a * R + b] * look.slope[b];
        look.slope[a] = left / lower[a * R + a];
        quadratic += look.slope[a] * look.slope[a];
    }
    for (ptrdiff_t b = 0; b < R; b++) {
        target[b] = look.slope[b];
        for (ptrdiff_t a = b; a < R; a++)
            target[b] += lower[a * R + b] * place[a];
        target[b] *= root;
    }
    if (l->moved)
        for (ptrdiff_t b = 0; b < R; b++)
            for (ptrdiff_t g = 0; g < s->stride; g += PK_LANES) {
                pk_vector bent = {0};
                for (ptrdiff_t a = b; a < R; a++)
                    bent += lower[a * R + b] * *(const pk_vector *)(l->moved + a * s->stride + g);
                quadratic += pk_sum(bent * bent) / (double)s->points;
            }
    for (ptrdiff_t i = 0; i < R * R; i++)
        lower[i] *= root;
    return l->weight * (look.value + 0.5 * quadratic);
}

/* ---- triangles of all contrasts ------------------------------------------------------------------------- */

/* Mean (R) and covariance (R, R) of the contrasts at x (p), from the triangle of R p coefficients, all of which are
 * known. room (PK_BELIEF_SIZE). */
static void pk_contrast_moments(const double *T, const double *x, ptrdiff_t R, pk_shape shape, double *mean,
                                 double *covariance, double *room)
{
    ptrdiff_t p = shape.p / R;
    double *rows = room, *halves = room + R * shape.ld;
    memset(rows, 0, (size_t)(R * shape.ld) * sizeof(double));
    for (ptrdiff_t a = 0; a < R; a++)
        memcpy(rows + a * shape.ld + a * p, x, (size_t)p * sizeof(double));
    for (ptrdiff_t j = 0; j < shape.p; j++) {
        const double *t = T + j * shape.ld;
        double inverse = 1.0 / t[j];
        ptrdiff_t begun = j / p + 1;
        for (ptrdiff_t a = 0; a < begun; a++) {
            double *row = rows + a * shape.ld, half = row[j] * inverse;
            halves[a * shape.p + j] = half;
            for (ptrdiff_t v = (j + 1) & -PK_LANES; v < shape.ld; v += PK_LANES)
                *(pk_vector *)(row + v) -= half * *(const pk_vector *)(t + v);
        }
    }
    for (ptrdiff_t a = 0; a < R; a++) {
        mean[a] = -rows[a * shape.ld + shape.p];
        for (ptrdiff_t b = 0; b <= a; b++) {
            double sum = 0.0;
            for (ptrdiff_t j = a * p; j < shape.p; j++)
                sum += halves[a * shape.p + j] * halves[b * shape.p + j];
            covariance[a * R + b] = covariance[b * R + a] = sum;
        }
    }
}

/* Append the R rows of a label at x (p) to a triangle without open directions. panel (q, PK_PANEL). */
static void pk_append_label(double *T, double *panel, const double *x, const double *lower, const double *target,
                            ptrdiff_t R, pk_shape shape)
{
    ptrdiff_t p = shape.p / R;
    for (ptrdiff_t first = 0; first < R; first += PK_PANEL) {
        ptrdiff_t count = R - first < PK_PANEL ? R - first : PK_PANEL, slices = (count + PK_LANES - 1) / PK_LANES;
        for (ptrdiff_t c = first * p; c < shape.q; c++)
            memset(panel + c * PK_PANEL, 0, (size_t)(slices * PK_LANES) * sizeof(double));
        for (ptrdiff_t b = first; b < first + count; b++) {
            for (ptrdiff_t a = b; a < R; a++)
                for (ptrdiff_t c = 0; c < p; c++)
                    panel[(a * p + c) * PK_PANEL + b - first] = lower[a * R + b] * x[c];
            panel[shape.p * PK_PANEL + b - first] = target[b];
        }
        for (ptrdiff_t j = first * p; j < shape.q; j++)
            pk_reflect_part(T, panel, j, slices, shape);
    }
}

/* Probabilities (K), averaged over Normal(mean, root root'). moved (R, stride). */
static void pk_expected_shares(const pk_softmax *s, const double *mean, const double *root, double *moved, double *expected)
{
    ptrdiff_t K = s->classes, R = s->contrasts;
    pk_rotate_points(s, root, moved);
    pk_vector *average = (pk_vector *)s->room, *shift = average + K, *shares = shift + K;
    double sum = 0.0, *eta = (double *)(shares + K);
    for (ptrdiff_t k = 0; k < K; k++) {
        average[k] = (pk_vector){0};
        eta[k] = 0.0;
        for (ptrdiff_t a = 0; a < R; a++)
            eta[k] += s->basis[k * R + a] * mean[a];
    }
    for (ptrdiff_t g = 0; g < s->stride; g += PK_LANES) {
        pk_vector counts = pk_point_weight(s, g);
        for (ptrdiff_t k = 0; k < K; k++) {
            shift[k] = (pk_vector){0};
            for (ptrdiff_t a = 0; a < R; a++)
                shift[k] += s->basis[k * R + a] * *(const pk_vector *)(moved + a * s->stride + g);
        }
        for (double side = 1.0; side > -2.0; side -= 2.0) {
            pk_vector most = (pk_vector){0} - INFINITY, total = {0};
            for (ptrdiff_t k = 0; k < K; k++) {
                shares[k] = eta[k] + side * shift[k];
                most = pk_max(most, shares[k]);
            }
            for (ptrdiff_t k = 0; k < K; k++)
                total += shares[k] = pk_exp_down(shares[k] - most);
            pk_vector lead = counts / total;
            for (ptrdiff_t k = 0; k < K; k++)
                average[k] += lead * shares[k];
        }
    }
    for (ptrdiff_t k = 0; k < K; k++)
        sum += expected[k] = pk_sum(average[k]);
    for (ptrdiff_t k = 0; k < K; k++)
        expected[k] /= sum;
}

#endif
