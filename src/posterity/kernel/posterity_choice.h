/* The evidence of a prior precision, integrated over a grid and compressed to a few nodes: for few columns, where calls
 * into NumPy would take longer than the work. Its twin is posterity.evidence.integration, which has the formulas. */
#ifndef POSTERITY_CHOICE_H
#define POSTERITY_CHOICE_H

#include <math.h>
#include <stddef.h>

enum { PK_MOST_COLUMNS = 32, PK_MOST_NODES = 8 };

typedef struct {
    ptrdiff_t m, offset, ld;           /* features, 1 with an intercept, the triangle's leading dimension */
    const double *triangle, *mean;     /* rows [R z; 0 s]; the prior's mean (m) */
    double count;
    double residual, residual_df;      /* sum of squares that least squares leave, and rows less the intercept */
    double log_information;            /* on the intercept */
    double known_precision;            /* of the noise; 0 where it is learned from shape and rate */
    double shape, rate;
    ptrdiff_t points;                  /* of the grid: logs of ratio / signal, logs of the hyperprior */
    const double *grid, *log_hyperprior;
    double *ratio, *weight, *share;    /* (points), (points), (points, directions): room */
    double *average;                   /* (directions) room */
    ptrdiff_t most, of_observations;   /* nodes; whether these or coefficients measure what one node would lose */
    double tolerance;
} pk_evidence;

typedef struct {
    ptrdiff_t nodes;
    double ratios[PK_MOST_NODES], weights[PK_MOST_NODES];
    double scales[PK_MOST_COLUMNS];    /* mean squares of the features */
    double log_evidence, disagreement, n_parameters;
} pk_choice;

/* One-sided Jacobi: r columns of a (m, r), kept as rows, become U d, and z (r) is turned by V' with them. */
static inline void pk_decompose(ptrdiff_t r, ptrdiff_t m, double a[][PK_MOST_COLUMNS], double *z)
{
    for (int sweep = 0, turned = 1; turned && sweep < 40; ++sweep) {
        turned = 0;
        for (ptrdiff_t i = 0; i < r; ++i)
            for (ptrdiff_t j = i + 1; j < r; ++j) {
                double one = 0.0, other = 0.0, both = 0.0, x = z[i], y = z[j];
                for (ptrdiff_t k = 0; k < m; ++k) {
                    one += a[i][k] * a[i][k];
                    other += a[j][k] * a[j][k];
                    both += a[i][k] * a[j][k];
                }
                if (fabs(both) <= 1e-15 * sqrt(one * other))
                    continue;
                turned = 1;
                double zeta = 0.5 * (other - one) / both;
                double tangent = (zeta < 0.0 ? -1.0 : 1.0) / (fabs(zeta) + sqrt(1.0 + zeta * zeta));
                double cosine = 1.0 / sqrt(1.0 + tangent * tangent), sine = cosine * tangent;
                z[i] = cosine * x - sine * y, z[j] = sine * x + cosine * y;
                for (ptrdiff_t k = 0; k < m; ++k) {
                    x = a[i][k], y = a[j][k];
                    a[i][k] = cosine * x - sine * y, a[j][k] = sine * x + cosine * y;
                }
            }
    }
}

/* Eigenvalues of a symmetric matrix (k, k), and the first components of its eigenvectors: Jacobi's rotations. */
static inline void pk_eigen(ptrdiff_t k, double a[][PK_MOST_NODES], double *first)
{
    for (ptrdiff_t i = 0; i < k; ++i)
        first[i] = i == 0;
    for (int sweep = 0; sweep < 40; ++sweep) {
        double off = 0.0, all = 0.0;
        for (ptrdiff_t i = 0; i < k; ++i)
            for (ptrdiff_t j = 0; j < k; ++j)
                (i == j ? (all += a[i][j] * a[i][j]) : (off += a[i][j] * a[i][j]));
        if (off <= 1e-34 * all)
            return;
        for (ptrdiff_t i = 0; i < k; ++i)
            for (ptrdiff_t j = i + 1; j < k; ++j) {
                if (a[i][j] == 0.0)
                    continue;
                double zeta = 0.5 * (a[j][j] - a[i][i]) / a[i][j];
                double tangent = (zeta < 0.0 ? -1.0 : 1.0) / (fabs(zeta) + sqrt(1.0 + zeta * zeta));
                double cosine = 1.0 / sqrt(1.0 + tangent * tangent), sine = cosine * tangent, x, y;
                for (ptrdiff_t l = 0; l < k; ++l) {
                    x = a[i][l], y = a[j][l];
                    a[i][l] = cosine * x - sine * y, a[j][l] = sine * x + cosine * y;
                }
                for (ptrdiff_t l = 0; l < k; ++l) {
                    x = a[l][i], y = a[l][j];
                    a[l][i] = cosine * x - sine * y, a[l][j] = sine * x + cosine * y;
                }
                x = first[i], y = first[j];
                first[i] = cosine * x - sine * y, first[j] = sine * x + cosine * y;
            }
    }
}

/* Gaussian quadrature of values (n) >= 0 with these weights: Stieltjes, then Golub and Welsch (1969). values is used up. */
static inline ptrdiff_t pk_gauss_nodes(ptrdiff_t n, double *values, const double *weights, ptrdiff_t most, double *nodes,
                                       double *shares)
{
    double centre = 0.0, spread = 0.0, matrix[PK_MOST_NODES][PK_MOST_NODES] = {{0.0}}, first[PK_MOST_NODES];
    double diagonal[PK_MOST_NODES] = {0.0}, subdiagonal[PK_MOST_NODES] = {0.0};
    for (ptrdiff_t g = 0; g < n; ++g)
        centre += weights[g] * values[g];
    for (ptrdiff_t g = 0; g < n; ++g)
        spread += weights[g] * (values[g] - centre) * (values[g] - centre);
    spread = sqrt(spread);
    nodes[0] = centre, shares[0] = 1.0;
    if (most == 1 || spread <= 1e-7 * centre)
        return 1;
    ptrdiff_t k = 0;
    /* The polynomials at each value by their recurrence, from the start each time: no room is needed for them. */
    for (int stop = 0; !stop; ++k) {
        double along = 0.0, size = 0.0;
        for (int pass = 0; pass < 2; ++pass)
            for (ptrdiff_t g = 0; g < n; ++g) {
                double x = (values[g] - centre) / spread, before = 0.0, here = 1.0;
                for (ptrdiff_t l = 0; l < k; ++l) {
                    double after = ((x - diagonal[l]) * here - (l ? subdiagonal[l - 1] : 0.0) * before) / subdiagonal[l];
                    before = here, here = after;
                }
                if (pass == 0) {
                    along += weights[g] * x * here * here;
                } else {
                    double after = (x - along) * here - (k ? subdiagonal[k - 1] : 0.0) * before;
                    size += weights[g] * after * after;
                }
            }
        diagonal[k] = along, subdiagonal[k] = sqrt(size);
        stop = k + 1 == most || subdiagonal[k] < 1e-7;
    }
    for (ptrdiff_t i = 0; i < k; ++i) {
        matrix[i][i] = diagonal[i];
        if (i + 1 < k)
            matrix[i][i + 1] = matrix[i + 1][i] = subdiagonal[i];
    }
    pk_eigen(k, matrix, first);
    for (ptrdiff_t i = 0; i < k; ++i) {
        ptrdiff_t place = i; /* in ascending order */
        double node = centre + spread * matrix[i][i];
        for (; place > 0 && nodes[place - 1] > node; --place)
            nodes[place] = nodes[place - 1], shares[place] = shares[place - 1];
        nodes[place] = node, shares[place] = first[i] * first[i];
    }
    return k;
}

/* Nodes of the ratio, by squared singular values (r) and the target along their directions; 0 where noise is none. */
static int pk_integrate_ratios(const pk_evidence *e, ptrdiff_t r, const double *squares, const double *q, pk_choice *out)
{
    double total = 0.0;
    for (ptrdiff_t i = 0; i < r; ++i)
        total += squares[i];
    /* The evidence on the grid. */
    const double signal = total > 0.0 ? total / e->count : 1.0, log_2pi = 1.8378770664093454836;
    const double shape = e->shape + 0.5 * e->residual_df, constant = e->known_precision > 0.0
        ? 0.5 * e->residual_df * (log(e->known_precision) - log_2pi) : lgamma(shape > 0.0 ? shape : 1.0) - 0.5 * e->residual_df * log_2pi
          + (e->shape > 0.0 && e->rate > 0.0 ? e->shape * log(e->rate) - lgamma(e->shape) : 0.0);
    double top = -INFINITY;
    for (ptrdiff_t g = 0; g < e->points; ++g) {
        double ratio = exp(e->grid[g]) * signal, sum = e->residual, product = 1.0, log_determinant = -e->log_information, value;
        for (ptrdiff_t i = 0; i < r; ++i) {
            double share = ratio / (ratio + squares[i]);
            e->share[g * r + i] = share;
            sum += share * q[i] * q[i];
            product *= share;
            if (i % 8 == 7 || i + 1 == r)
                log_determinant += log(product), product = 1.0;
        }
        if (e->known_precision > 0.0)
            value = constant + 0.5 * (log_determinant - e->known_precision * sum);
        else if (shape <= 0.0)
            value = 0.0;
        else
            value = constant + 0.5 * log_determinant - shape * log(e->rate + 0.5 * sum);
        if (!isfinite(value))
            return 0;
        e->ratio[g] = ratio;
        e->weight[g] = value + e->log_hyperprior[g];
        top = fmax(top, e->weight[g]);
    }
    double all = 0.0;
    ptrdiff_t from = e->points, to = 0;
    for (ptrdiff_t g = 0; g < e->points; ++g) {
        e->weight[g] = exp(e->weight[g] - top);
        all += e->weight[g];
        if (e->weight[g] > 1e-12)
            from = g < from ? g : from, to = g + 1;
    }
    /* How far the mean moves over the grid, against what is not known anyway. */
    double variance = 0.0, moved = 0.0;
    for (ptrdiff_t g = from; g < to; ++g) {
        double sum = e->residual;
        e->weight[g] /= all;
        for (ptrdiff_t i = 0; i < r; ++i)
            sum += e->share[g * r + i] * q[i] * q[i];
        variance += e->weight[g]
            * (e->known_precision > 0.0 ? 1.0 / e->known_precision : (e->rate + 0.5 * sum) / shape);
    }
    out->n_parameters = 0.0;
    for (ptrdiff_t i = 0; i < r; ++i) {
        double mean = 0.0, spread = 0.0;
        for (ptrdiff_t g = from; g < to; ++g)
            mean += e->weight[g] * (1.0 - e->share[g * r + i]);
        for (ptrdiff_t g = from; g < to; ++g)
            spread += e->weight[g] * (1.0 - e->share[g * r + i] - mean) * (1.0 - e->share[g * r + i] - mean);
        spread *= q[i] * q[i];
        e->average[i] = mean, out->n_parameters += mean;
        if (spread > 0.0)
            moved += e->of_observations ? spread / e->count : spread / mean;
    }
    out->log_evidence = top + log(all);
    out->disagreement = e->known_precision <= 0.0 && shape <= 0.0 ? INFINITY : moved > 0.0 ? moved / variance : 0.0;
    /* Nodes: of the smaller of the share and what is left of it to 1, which has all its digits. */
    double middle = 0.0, directions = 0.0, of_data = 0.0;
    for (ptrdiff_t i = 0; i < r; ++i)
        if (e->average[i] > 1e-3)
            middle += log(squares[i]), directions += 1.0;
    for (ptrdiff_t g = from; g < to && directions == 0.0; ++g)
        middle += e->weight[g] * log(e->ratio[g]);
    middle = exp(directions > 0.0 ? middle / directions : middle);
    for (ptrdiff_t g = from; g < to; ++g)
        of_data += e->weight[g] * middle / (middle + e->ratio[g]);
    for (ptrdiff_t g = from; g < to; ++g)
        e->ratio[g] = (of_data < 0.5 ? middle : e->ratio[g]) / (middle + e->ratio[g]);
    const ptrdiff_t most = out->disagreement < e->tolerance ? 1 : e->most;
    out->nodes = pk_gauss_nodes(to - from, e->ratio + from, e->weight + from, most, out->ratios, out->weights);
    for (ptrdiff_t k = 0; k < out->nodes; ++k) {
        double place = out->ratios[k];
        out->ratios[k] = of_data < 0.5 ? middle * (1.0 / place - 1.0) : middle * place / (1.0 - place);
    }
    return 1;
}

/* The rows of a triangle but for flat columns and rows that are empty, of features in units of the roots of their mean
 * squares (m): matrix (rows, m), and target (rows) about the prior's mean. Returns their number; -1 where a feature has not
 * varied. */
static ptrdiff_t pk_read_rows(const double *t, ptrdiff_t ld, ptrdiff_t o, ptrdiff_t m, double count, const double *mean,
                              double *matrix, double *target, double *squares)
{
    ptrdiff_t rows = 0;
    for (ptrdiff_t j = 0; j < m; ++j) {
        double sum = 0.0, whole = o ? t[o + j] * t[o + j] : 0.0;
        for (ptrdiff_t i = 0; i <= j; ++i)
            sum += t[(o + i) * ld + o + j] * t[(o + i) * ld + o + j];
        if (sum <= 1e-24 * (sum + whole) || !(sum >= 1e-300))
            return -1;
        squares[j] = sum / count;
    }
    for (ptrdiff_t i = 0; i < m; ++i) {
        const double *row = t + (o + i) * ld;
        double *to = matrix + rows * m, off = row[o + m];
        int filled = 0;
        for (ptrdiff_t j = 0; j < m; ++j) {
            const double value = j < i ? 0.0 : row[o + j];
            to[j] = value / sqrt(squares[j]);
            off -= value * mean[j];
            filled |= value != 0.0;
        }
        if (filled || off != 0.0) /* few rows: most of the triangle is empty */
            target[rows++] = off;
    }
    return rows;
}

/* 0 where the case is not plain: a feature that has not varied, too few rows, noise that is found to be none. */
static int pk_choose_ratios(pk_evidence *e, pk_choice *out)
{
    const ptrdiff_t m = e->m, o = e->offset, ld = e->ld, last = o + m;
    const double *t = e->triangle;
    double a[PK_MOST_COLUMNS][PK_MOST_COLUMNS], matrix[PK_MOST_COLUMNS * PK_MOST_COLUMNS], target[PK_MOST_COLUMNS];
    double squares[PK_MOST_COLUMNS], q[PK_MOST_COLUMNS];
    if (!(e->count > 0.0) || (o && t[0] == 0.0))
        return 0;
    const ptrdiff_t r = pk_read_rows(t, ld, o, m, e->count, e->mean, matrix, target, out->scales);
    /* Of few rows the rows are turned, of many the columns. */
    for (ptrdiff_t i = 0; i < r; ++i) {
        q[i] = target[i];
        for (ptrdiff_t j = 0; j < m; ++j)
            *(r < m ? &a[i][j] : &a[j][i]) = matrix[i * m + j];
    }
    if (r > 0)
        pk_decompose(r, m, a, q);
    for (ptrdiff_t i = 0; i < r; ++i) {
        double along = 0.0;
        squares[i] = 0.0;
        for (ptrdiff_t k = 0; k < m; ++k)
            squares[i] += a[i][k] * a[i][k], along += r < m ? 0.0 : a[i][k] * target[k];
        if (!(squares[i] > 0.0))
            return 0;
        if (r == m)
            q[i] = along / sqrt(squares[i]);
    }
    const double s = t[last * ld + last];
    e->residual = s * s, e->residual_df = e->count - o, e->log_information = o ? 2.0 * log(fabs(t[0])) : 0.0;
    return r > 0 && pk_integrate_ratios(e, r, squares, q, out);
}

#endif
