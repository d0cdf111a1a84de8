/* What the kernel says of fixed rows, a number a line: compiled for another processor and run under emulation. */
#include <stdio.h>
#include <stdlib.h>

#include "posterity_kernel.h"
#include "posterity_members.h"
#include "posterity_one_site.h"
#include "posterity_working_rows.h"

enum { ROWS = 300, MOST = 96 };

static double uniform(void)
{
    static unsigned long long state = 1;
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(state >> 11) / 9007199254740992.0 - 0.5;
}

static double *filled(size_t size)
{
    double *array = aligned_alloc(64, (size * sizeof(double) + 63) / 64 * 64);
    for (size_t i = 0; i < size; i++)
        array[i] = uniform();
    return array;
}

static void say(const char *what, const double *array, size_t size)
{
    for (size_t i = 0; i < size; i++)
        printf("%s %.17g\n", what, array[i]);
}

static double *prior(pk_shape shape)
{
    double *T = filled((size_t)(shape.q * shape.ld));
    for (ptrdiff_t i = 0; i < shape.q * shape.ld; i++)
        T[i] = 0.0;
    for (ptrdiff_t j = 0; j < shape.p; j++)
        T[j * shape.ld + j] = 1.0;
    return T;
}

/* Rows together and one by one, forgetting and leaving, and what is predicted. */
static void linear(ptrdiff_t p, const double *X, const double *y, const double *weights)
{
    pk_shape shape = {p, 1, p + 1, (p + PK_LINE) & -PK_LINE};
    pk_rows rows = {X, y, weights, NULL, NULL, ROWS, p, p, 1, 0};
    size_t size = (size_t)(shape.q * shape.ld);
    double *T = prior(shape), *empty = filled(size), *first = prior(shape), *held = filled((size_t)p + 1);
    double *buffer = filled((size_t)PK_APPEND_SIZE(shape)), *flight = filled((size_t)PK_FLIGHT_SIZE(shape));
    double error[ROWS], leverage[ROWS], residual[ROWS], discounts[ROWS];
    pk_before before = {error, leverage, residual};
    ptrdiff_t leave[ROWS + 1];
    memset(empty, 0, size * sizeof(double));
    memset(flight, 0, (size_t)PK_FLIGHT_SIZE(shape) * sizeof(double));
    memset(held, 0, ((size_t)p + 1) * sizeof(double));
    pk_append_block(empty, buffer, &rows, shape);
    say("append", empty, size);
    pk_learn_rows(T, flight, &rows, shape, &before);
    say("error", error, ROWS);
    say("leverage", leverage, ROWS);
    pk_predict_rows(T, buffer, &rows, shape, error, leverage);
    say("predicted mean", error, ROWS);
    say("predicted leverage", leverage, ROWS);
    for (ptrdiff_t i = 0; i < ROWS; i++) {
        discounts[i] = 0.99;
        leave[i] = i < 2 * MOST ? 0 : i - 2 * MOST;
    }
    leave[ROWS] = ROWS - 2 * MOST;
    rows.weights = NULL;
    memcpy(T, first, size * sizeof(double));
    memset(flight, 0, (size_t)PK_FLIGHT_SIZE(shape) * sizeof(double));
    pk_slide(T, buffer, flight, &rows, first, 0, 0, leave, shape, &before);
    say("window", error, ROWS);
    rows.discounts = discounts;
    rows.held = held;
    memcpy(T, first, size * sizeof(double));
    memset(flight, 0, (size_t)PK_FLIGHT_SIZE(shape) * sizeof(double));
    pk_learn_rows(T, flight, &rows, shape, &before);
    say("fading", error, ROWS);
}

/* Labels and counts, one by one and together. */
static void sites(ptrdiff_t p, const double *X, int code, int moments)
{
    pk_shape shape = {p, 1, p + 1, (p + PK_LINE) & -PK_LINE};
    double y[ROWS], out[5][ROWS], *T = prior(shape), *buffer = filled((size_t)PK_SITE_WORK_SIZE(shape));
    pk_rows rows = {X, y, NULL, NULL, NULL, ROWS, p, p, 1, 0};
    pk_likelihood likelihood = {code, moments, 4.0, 1.0, -1.0};
    pk_predictions_out outputs = {out[0], out[1], out[2], out[3], out[4]};
    for (ptrdiff_t i = 0; i < ROWS; i++)
        y[i] = code == PK_LOGIT ? X[i * p] > 0.0 : code == PK_POISSON ? (double)(i % 5) : X[i * p];
    memset(buffer, 0, (size_t)PK_SITE_WORK_SIZE(shape) * sizeof(double));
    pk_learn_sites(T, buffer, NULL, &likelihood, &rows, NULL, NULL, NULL, shape, &outputs);
    say("site", out[0], 5 * ROWS);
    if (code == PK_STUDENT_T)
        return;
    double squares, total = pk_working_rows(&likelihood, ROWS, y, out[0], NULL, out[3], out[4], &squares);
    say("working", out[3], 2 * ROWS);
    say("squares", &squares, 1);
    say("total", &total, 1);
}

/* Noises and members at several memories. */
static void memories(const double *errors)
{
    pk_noises noises = {5, PK_LINE, filled(16 * PK_LINE), {0}, {0}, 20.0, 0.99, 1.0, 1.0};
    double loc[5 * ROWS], scale[5 * ROWS], df[5 * ROWS], densities[5 * ROWS], weights[5 * ROWS];
    double persistence[3] = {1.0, 0.99, 0.9}, *scores = filled(3 * PK_LINE), *outer = filled(PK_MOST_RATES);
    double *work = filled(7 * PK_LINE);
    unsigned char ranks[5 * ROWS];
    pk_expert_weights standing = {3, 5, PK_LINE, persistence, 0.99, scores, outer, work};
    memset(scores, 0, 3 * PK_LINE * sizeof(double));
    memset(outer, 0, PK_MOST_RATES * sizeof(double));
    memset(noises.state, 0, 16 * PK_LINE * sizeof(double));
    for (int l = 0; l < PK_MEMORIES; l++) {
        noises.rates[l] = 1.0 - 0.5 / (1 << (l % 5));
        noises.caps[l] = 9.0;
    }
    for (int i = 0; i < 5 * ROWS; i++) {
        loc[i] = 0.1 * errors[i];
        scale[i] = 1.2 + 0.1 * (i / ROWS);
    }
    pk_score_members(&noises, 5, ROWS, errors, NULL, loc, scale, df, densities, ranks);
    say("df", df, 5 * ROWS);
    say("scale", scale, 5 * ROWS);
    say("densities", densities, 5 * ROWS);
    double evidence = pk_average(&standing, ROWS, densities, ranks, weights);
    say("weights", weights, 5 * ROWS);
    say("evidence", &evidence, 1);
}

int main(void)
{
    double *X = filled(ROWS * MOST), *y = filled(ROWS), *weights = filled(ROWS), yes[ROWS], no[ROWS];
    for (int i = 0; i < ROWS; i++)
        weights[i] += 1.0;
    linear(3, X, y, weights);
    linear(13, X, y, weights);
    linear(70, X, y, weights);
    for (int moments = 0; moments < 2; moments++) {
        sites(5, X, PK_LOGIT, moments);
        sites(12, X, PK_POISSON, moments);
    }
    sites(5, X, PK_STUDENT_T, 1);
    memories(X);
    pk_expected_labels(ROWS, y, weights, yes, no);
    say("labels", yes, ROWS);
    say("labels", no, ROWS);
    return 0;
}
