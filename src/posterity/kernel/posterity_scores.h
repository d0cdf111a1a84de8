/* Scores of many predictions at once: log density, CRPS and probability of targets under Student-t distributions.
 *
 * With many degrees of freedom v the t is a normal distribution in other units: with a = v - 1/2 and
 * w^2 = a log(1 + z^2 / v), P(Z <= z) = Phi(w) and a series in 1/a^2. Tails and quantiles are those of
 * distributions/_expansions.py, which says how all are derived; infinitely many degrees of freedom
 * are 1e18. Rows that they do not serve (few degrees of freedom, far tails, no finite scale) get NaN. Loops have no
 * branches, so that compilers make vectors of them. */
#ifndef POSTERITY_SCORES_H
#define POSTERITY_SCORES_H

#include "posterity_rows.h"

#define PK_FEWEST_FREEDOM 64.0
#define PK_MANY_FREEDOM 1000.0 /* from here on half of the terms do */
#define PK_MOST_FREEDOM 1e18
#define PK_REACH 0.24       /* greatest log(1 + z^2 / v) that the series serve, */
#define PK_SHORT_REACH 0.024 /* and that half of their terms do */
#define PK_SCORED_ROWS 256
#define PK_ROOT_2_OVER_PI 0.79788456080286535588
#define PK_ROOT_1_OVER_PI 0.56418958354775628695
#define PK_HALF_LOG_2PI 0.91893853320467274178

static const double pk_tail_terms[4][8] = {{-1.0 / 16.0, -1.0 / 48.0}, {19.0 / 512.0, 19.0 / 1536.0, 7.0 / 2560.0,
    1.0 / 2560.0}, {-631.0 / 8192.0, -631.0 / 24576.0, -65.0 / 12288.0, -65.0 / 86016.0, -671.0 / 7741440.0, -61.0
    / 7741440.0}, {174317.0 / 524288.0, 174317.0 / 1572864.0, 58947.0 / 2621440.0, 8421.0 / 2621440.0, 8459.0 /
    23592960.0, 769.0 / 23592960.0, 1261.0 / 495452160.0, 1261.0 / 7431782400.0}};
static const double pk_quantile_terms[4][8] = {{-1.0 / 16.0, -1.0 / 48.0}, {21.0 / 512.0, 1.0 / 64.0, 7.0 /
    2560.0, 1.0 / 5760.0}, {-671.0 / 8192.0, -245.0 / 8192.0, -257.0 / 40960.0, -2209.0 / 2580480.0, -407.0 /
    5806080.0, -1.0 / 362880.0}, {180323.0 / 524288.0, 1483.0 / 12288.0, 33053.0 / 1310720.0, 12899.0 / 3440640.0,
    41383.0 / 99090432.0, 3529.0 / 103219200.0, 173.0 / 92897280.0, 1.0 / 19353600.0}};
static const double pk_log_constant_terms[4] = {-1.0 / 4.0, 1.0 / 24.0, -1.0 / 20.0, 17.0 / 112.0};
static const double pk_density_terms[9] = {1.0, 3.0 / 4.0, 25.0 / 32.0, 105.0 / 128.0, 1659.0 / 2048.0, 6237.0 /
    8192.0, 50765.0 / 65536.0, 242385.0 / 262144.0, 7421843.0 / 8388608.0};
static const double pk_offset_terms[9] = {1.0, 7.0 / 8.0, 129.0 / 128.0, 1149.0 / 1024.0, 37035.0 / 32768.0,
    275049.0 / 262144.0, 4498853.0 / 4194304.0, 45879893.0 / 33554432.0, 2834782707.0 / 2147483648.0};
static const double pk_artanh_terms[10] = {1.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0,
    1.0 / 15.0, 1.0 / 17.0, 1.0 / 19.0};
static const double pk_inverse_factorials[14] = {1.0, 1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0,
    1.0 / 5040.0, 1.0 / 40320.0, 1.0 / 362880.0, 1.0 / 3628800.0, 1.0 / 39916800.0, 1.0 / 479001600.0,
    1.0 / 6227020800.0};
static const double pk_erfcx_terms[25] = {1.2329951186255526, -0.13962111684056228, 0.015379652102619974,
    0.06809705425466839, -0.10103906603631811, 0.09373283499911264, -0.06633036581186058, 0.037167515526338006,
    -0.01619773406293477, 0.005031970069102256, -0.0007577732435942576, -0.0001992571524726518,
    0.00015062142608651945, -2.4397731143023292e-05, -1.1221135665965907e-05, 5.70657829924074e-06,
    2.9173425573089733e-07, -8.210647933297337e-07, 7.771943241086912e-08, 1.0631817593818149e-07,
    -2.0725802488181963e-08, -1.2338731403798444e-08, 3.2323973445082033e-09, 9.297625263709659e-10,
    -2.764120233734578e-10};

/* Value of a polynomial of n <= 25 coefficients, the constant first. Written out, for GCC unrolls a loop only after it
 * has looked for vectors in the one around it. */
#define PK_STEP(k) \
    if (n > k) value = n == k + 1 ? c[k] : value * x + c[k];
PK_INLINE double pk_polynomial(const double *c, int n, double x)
{
    double value = 0.0;
    PK_STEP(24) PK_STEP(23) PK_STEP(22) PK_STEP(21) PK_STEP(20) PK_STEP(19) PK_STEP(18)
    PK_STEP(17) PK_STEP(16) PK_STEP(15) PK_STEP(14) PK_STEP(13) PK_STEP(12) PK_STEP(11)
    PK_STEP(10) PK_STEP(9) PK_STEP(8) PK_STEP(7) PK_STEP(6) PK_STEP(5) PK_STEP(4)
    PK_STEP(3) PK_STEP(2) PK_STEP(1) PK_STEP(0)
    return value;
}
#undef PK_STEP

/* exp(-x), x >= 0: 2^-k exp(r) with |r| <= log(2) / 2. */
PK_INLINE double pk_exp_minus(double x)
{
    x = x < 700.0 ? x : 700.0;
    /* Adding 1.5 2^52 rounds to a whole number, and leaves it in the lowest bits. */
    double shifted = x * -1.44269504088896340736 + 0x1.8p52, k = shifted - 0x1.8p52;
    double r = -x - k * 0x1.62e42fefa3800p-1 - k * 0x1.ef35793c76730p-45;
    unsigned long long bits;
    memcpy(&bits, &shifted, 8);
    bits = (bits + 1023) << 52;
    double power;
    memcpy(&power, &bits, 8);
    return pk_polynomial(pk_inverse_factorials, 14, r) * power;
}

/* log(1 + x), 0 <= x <= 0.3: 2 artanh(s), s = x / (2 + x) <= 0.13. */
PK_INLINE double pk_log_one_plus(double x)
{
    double s = x / (2.0 + x);
    return 2.0 * s * pk_polynomial(pk_artanh_terms, 10, s * s);
}

/* 1 - erf(w / sqrt 2), given exp(-w^2 / 2): erfc(x) exp(x^2) (1 + 2x) is nearly a polynomial in (x - 4) / (x + 4)
 * (Shepherd and Laframboise 1981, Math. Comp. 36, 249-253); to 3e-16 of it. */
PK_INLINE double pk_normal_tails(double size, double density)
{
    double x = size * 0.70710678118654752440;
    double both = 1.0 / ((x + 4.0) * (1.0 + 2.0 * x));
    double q = (x - 4.0) * (1.0 + 2.0 * x) * both;
    return density * pk_polynomial(pk_erfcx_terms, 25, q) * (x + 4.0) * both;
}

/* erf(w / sqrt 2), given exp(-w^2 / 2). */
PK_INLINE double pk_central_normal(double size, double density)
{
    return 1.0 - pk_normal_tails(size, density);
}

/* What the predictions are: strides are 1, or 0 where all rows share a value. */
typedef struct {
    const double *y, *loc, *scale, *df;
    ptrdiff_t loc_stride, scale_stride, df_stride;
} pk_predictions;

/* Rows side by side: z, scale, degrees of freedom, and where the series serve. */
typedef struct {
    double z[PK_SCORED_ROWS], scale[PK_SCORED_ROWS], df[PK_SCORED_ROWS];
} pk_scored;

/* Take rows from `first` on; 1 if half of the terms serve them all. Rows without a scale get NaN for z. */
PK_INLINE int pk_take_scored(pk_scored *rows, ptrdiff_t n, ptrdiff_t first, const pk_predictions *p)
{
    double least = INFINITY, furthest = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        rows->scale[i] = p->scale[(first + i) * p->scale_stride];
        rows->df[i] = p->df[(first + i) * p->df_stride];
        rows->z[i] = p->loc[(first + i) * p->loc_stride];
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        double scale = rows->scale[i], df = rows->df[i] < PK_MOST_FREEDOM ? rows->df[i] : PK_MOST_FREEDOM;
        double z = (p->y[first + i] - rows->z[i]) / scale;
        z = ((scale > 0.0) & (scale < INFINITY)) ? z : NAN;
        rows->z[i] = z;
        rows->df[i] = df;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        least = rows->df[i] < least ? rows->df[i] : least;
        double far = rows->z[i] * rows->z[i];
        furthest = far > furthest ? far : furthest;
    }
    /* log(1 + x) <= x */
    return least >= PK_MANY_FREEDOM && furthest <= PK_SHORT_REACH * least;
}

/* Log density (in units of the scale), CRPS, and 2 P(Z <= z) - 1 of n rows, with so many terms of the series. */
PK_INLINE void pk_score_block(ptrdiff_t n, const pk_scored *rows, int terms, int constants,
                              double *restrict log_density, double *restrict crps, double *restrict central)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double df = rows->df[i], z = rows->z[i], scale = rows->scale[i];
        double inverse = 1.0 / df, a = df - 0.5, step = 1.0 / (a * a);
        double spread = pk_log_one_plus(z * z * inverse), w2 = a * spread, size = sqrt(w2);
        double density = pk_exp_minus(0.5 * w2);
        double series = 0.0;
        if (terms > 2) {
            series = step * pk_polynomial(pk_tail_terms[3], 8, w2);
            series = step * (series + pk_polynomial(pk_tail_terms[2], 6, w2));
        }
        series = step * (series + pk_polynomial(pk_tail_terms[1], 4, w2));
        series = step * (series + pk_polynomial(pk_tail_terms[0], 2, w2));
        double inside = pk_central_normal(size, density) - PK_ROOT_2_OVER_PI * density * size * series;
        /* f (df + z^2) = constant df exp(-(df - 1) / 2 spread), and (df - 1) / 2 = a / 2 - 1 / 4. */
        double quarter = 1.0 + 0.25 * spread * pk_polynomial(pk_inverse_factorials + 1, 9, 0.25 * spread);
        double height = PK_ROOT_2_OVER_PI * pk_polynomial(pk_density_terms, constants, inverse) * density * quarter;
        double offset = PK_ROOT_1_OVER_PI * pk_polynomial(pk_offset_terms, constants, inverse);
        double constant = inverse * pk_polynomial(pk_log_constant_terms, 4, inverse * inverse) - PK_HALF_LOG_2PI;
        /* NaN where it must not serve: 0 times infinity; else 0. */
        double served = ((df >= PK_FEWEST_FREEDOM) & (spread <= PK_REACH)) ? 0.0 : NAN;
        log_density[i] = constant - 0.5 * (df + 1.0) * spread + served;
        crps[i] = scale * (fabs(z) * inside + height - offset) + served;
        central[i] = copysign(inside, z) + served;
    }
}

/* log_density (n), without the log of the scale; crps (n) in units of y; central (n): twice the probability of less
 * than y, less 1. NaN in all three where the series do not serve. */
static void pk_score(ptrdiff_t n, const pk_predictions *p, double *log_density, double *crps, double *central)
{
    pk_scored rows;
    for (ptrdiff_t first = 0; first < n; first += PK_SCORED_ROWS) {
        ptrdiff_t size = n - first < PK_SCORED_ROWS ? n - first : PK_SCORED_ROWS;
        if (pk_take_scored(&rows, size, first, p))
            pk_score_block(size, &rows, 2, 6, log_density + first, crps + first, central + first);
        else
            pk_score_block(size, &rows, 4, 9, log_density + first, crps + first, central + first);
    }
}

/* halves (n): half the width of intervals whose normal quantile is u, in units of y; NaN where the series do not
 * serve, as in _expansions.py: w = u (1 + sum_k r_k(u^2) / a^(2k)), t^2 = v (exp(w^2 / a) - 1). */
static void pk_half_widths(ptrdiff_t n, const pk_predictions *p, double u, double *halves)
{
    double r[4], scales[PK_SCORED_ROWS], dfs[PK_SCORED_ROWS];
    for (int k = 0; k < 4; k++)
        r[k] = pk_polynomial(pk_quantile_terms[k], 2 * k + 2, u * u);
    for (ptrdiff_t first = 0; first < n; first += PK_SCORED_ROWS) {
        ptrdiff_t size = n - first < PK_SCORED_ROWS ? n - first : PK_SCORED_ROWS;
        for (ptrdiff_t i = 0; i < size; i++) {
            double scale = p->scale[(first + i) * p->scale_stride];
            scales[i] = scale > 0.0 && scale < INFINITY ? scale : NAN;
            dfs[i] = p->df[(first + i) * p->df_stride];
        }
        double *restrict out = halves + first;
        for (ptrdiff_t i = 0; i < size; i++) {
            double scale = scales[i], df = dfs[i] < PK_MOST_FREEDOM ? dfs[i] : PK_MOST_FREEDOM;
            double inverse = 1.0 / (df - 0.5), step = inverse * inverse;
            double w = u * (1.0 + step * (r[0] + step * (r[1] + step * (r[2] + step * r[3]))));
            double x = w * w * inverse;
            double served = ((df >= PK_FEWEST_FREEDOM) & (u * u * inverse <= PK_REACH)) ? 0.0 : NAN;
            out[i] = scale * sqrt(df * x * pk_polynomial(pk_inverse_factorials + 1, 13, x)) + served;
        }
    }
}

/* ---- predictions without features ----------------------------------------------------------- */

/* Student-t predictions of row i from news 0 to i and those before: `known` is their count, mean and sum of squared
 * deviations from it (Welford 1962). df, loc, scale (n): n - 1 degrees of freedom, scale s sqrt(1 + 1/n); those of a
 * flat prior of mean and log variance. */
static void pk_running_mean(ptrdiff_t n, const double *news, double *known, double *df, double *loc, double *scale)
{
    double count = known[0], mean = known[1], squares = known[2];
    for (ptrdiff_t i = 0; i < n; i++) {
        count += 1.0;
        double inverse = 1.0 / count, ahead = news[i] - mean;
        mean += ahead * inverse;
        squares += ahead * (news[i] - mean);
        df[i] = count - 1.0;
        loc[i] = mean;
        scale[i] = count > 1.0 ? sqrt(squares / (count - 1.0) * (1.0 + inverse)) : INFINITY;
    }
    known[0] = count, known[1] = mean, known[2] = squares;
}

/* The same of steps around zero: `known` is their count and their sum of squares. */
static void pk_running_steps(ptrdiff_t n, const double *news, double *known, double *df, double *scale)
{
    double count = known[0], squares = known[1];
    for (ptrdiff_t i = 0; i < n; i++) {
        count += 1.0;
        squares += news[i] * news[i];
        df[i] = count;
        scale[i] = sqrt(squares / count);
    }
    known[0] = count, known[1] = squares;
}

#endif
