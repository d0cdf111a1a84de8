/* What a policy would have done with the rows of a log, in one pass over its probabilities and the rewards expected of
 * all arms; and sums of errors under moderated weights. The twins are in tests/off_policy/test_rows.py. */
#ifndef POSTERITY_POLICIES_H
#define POSTERITY_POLICIES_H

#include "posterity_rows.h"

/* Rows of K arms. A stride of 0 repeats one row; expected and logged may be NULL. */
typedef struct {
    ptrdiff_t rows, arms;
    const double *chances;  /* of the policy */
    const double *expected; /* rewards */
    const double *logged;   /* probabilities of the policy that made the log */
    ptrdiff_t chances_stride, expected_stride, logged_stride;
    const ptrdiff_t *chosen;
} pk_decisions;

/* Of each row: the policy's probability of the chosen arm, the reward expected of that arm, and of the policy's arms.
 * Added to: the policy's probabilities of each arm, and those where the log could not have chosen it.
 * Gives the first row whose probabilities are negative or do not sum to 1, or -1. */
static ptrdiff_t pk_evaluate_policy_rows(const pk_decisions *of, double *match, double *own, double *direct, double *mass,
                               double *unsupported)
{
    ptrdiff_t arms = of->arms, bad = -1;
    for (ptrdiff_t i = 0; i < of->rows; i++) {
        const double *chances = of->chances + i * of->chances_stride;
        double total = 0.0, least = 0.0;
        for (ptrdiff_t k = 0; k < arms; k++) {
            total += chances[k];
            least = chances[k] < least ? chances[k] : least;
            mass[k] += chances[k];
        }
        if (bad < 0 && !(fabs(total - 1.0) < 1e-6 && least >= 0.0))
            bad = i;
        match[i] = chances[of->chosen[i]];
        if (of->expected) {
            const double *expected = of->expected + i * of->expected_stride;
            double sum = 0.0;
            for (ptrdiff_t k = 0; k < arms; k++)
                sum += chances[k] * expected[k];
            direct[i] = sum;
            own[i] = expected[of->chosen[i]];
        }
        if (of->logged) {
            const double *logged = of->logged + i * of->logged_stride;
            for (ptrdiff_t k = 0; k < arms; k++)
                unsupported[k] += logged[k] > 0.0 ? 0.0 : chances[k];
        }
    }
    return bad;
}

#define PK_MOST_THRESHOLDS 8

/* Sums of g e, g e d and (g e)^2 for each threshold t, where of a weight w the share g is left: 1 up to t and 0 beyond
 * (switch), or t / (w^2 + t) (shrink). e is the weighted error of a row, and d its direct part. */
static void pk_moderated_sums(ptrdiff_t rows, const double *weight, const double *error, const double *direct,
                              const double *thresholds, int shrinks, double (*sums)[PK_MOST_THRESHOLDS])
{
    for (int slice = 0; slice < PK_MOST_THRESHOLDS; slice += PK_LANES) {
        pk_vector level = *(const pk_vector *)(thresholds + slice), inverse = 1.0 / level;
        pk_vector plain = (pk_vector){0}, mixed = plain, squares = plain;
        for (ptrdiff_t i = 0; i < rows; i++) {
            double w = weight[i];
            pk_vector left = (pk_vector){0} + error[i];
            if (shrinks)
                left /= 1.0 + w * w * inverse;
            else
                left = (pk_vector)((pk_integers)left & ((pk_vector){0} + w <= level));
            plain += left;
            mixed += left * direct[i];
            squares += left * left;
        }
        *(pk_vector *)(sums[0] + slice) += plain;
        *(pk_vector *)(sums[1] + slice) += mixed;
        *(pk_vector *)(sums[2] + slice) += squares;
    }
}

#endif
