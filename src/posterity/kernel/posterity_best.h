/* How probable it is that an arm is the best, and what that would tell of the others, where arms are believed in
 * independently of each other: one-dimensional integrals (Jeunen 2025; Russo and Van Roy 2018), by a Gauss-Legendre rule
 * on pieces that go down from the top, until none of the arms can be below. What lies above a place, S_a(x), is summed
 * on the way, so only densities are asked for. See posterity_kernel.h. */
#ifndef POSTERITY_BEST_H
#define POSTERITY_BEST_H

#include "posterity_average.h"
#include "posterity_members.h"

enum { PK_NODES = 16, PK_NODE_SLICES = PK_NODES / PK_LANES, PK_MOST_PIECES = 4096 };
/* What is less probable than this is left out. */
#define PK_UNSEEN 1e-17
/* A piece is as long as so many scales of an arm, or this share of the way to its middle. */
#define PK_PIECE 2.0
#define PK_PIECE_SHARE 0.5
/* A scale of so small a share of the way to the highest arm makes no difference: the arm is certain. */
#define PK_CERTAIN 0x1p-44
/* From so many degrees of freedom on a t distribution is normal. */
#define PK_NORMAL_FREED 1e9

/* A rule on (0, 1), its nodes from the upper end: weights, and the integrals from 0 to each node, by columns: what the
 * value at node j is multiplied by for all nodes. */
typedef struct {
    double nodes[PK_NODES], weights[PK_NODES], above[PK_NODES * PK_NODES];
} pk_rule;

/* K arms of Student-t distributions, those of scale 0 certain. */
typedef struct {
    ptrdiff_t arms;
    const double *location, *scale, *df;
    const unsigned char *allowed;
    const pk_rule *rule;
} pk_arms;

typedef struct {
    double location, scale, half, inverse_df, constant, density, reach, above, moment;
    int normal, certain;
    pk_vector f[PK_NODE_SLICES], below[PK_NODE_SLICES], others[PK_NODE_SLICES], mean[PK_NODE_SLICES];
} pk_arm;

/* How many scales away a density is the last one that counts. */
static double pk_reach(double df, double log_constant)
{
    double low = 0.0, high = 60.0 * M_LN10; /* of log z */
    if (df >= PK_NORMAL_FREED)
        return 8.6;
    for (int i = 0; i < 60 && high - low > 1e-2; i++) {
        double middle = 0.5 * (low + high), square = exp(2.0 * middle);
        double tail = log_constant - 0.5 * (df + 1.0) * log1p(square / df) + log1p(square / df) - middle;
        *(tail < log(PK_UNSEEN) ? &high : &low) = middle;
    }
    return exp(high);
}

PK_INLINE double pk_highest(const pk_arms *of)
{
    double highest = -INFINITY;
    for (ptrdiff_t k = 0; k < of->arms; k++)
        if (of->allowed[k] && of->location[k] > highest)
            highest = of->location[k];
    return highest;
}

/* The allowed arms; how many. Their locations are those from the highest one, so that pieces near it have a length
 * however large its location is. */
static ptrdiff_t pk_collect_allowed_arms(const pk_arms *of, pk_arm *arms)
{
    ptrdiff_t count = 0;
    double highest = pk_highest(of);
    for (ptrdiff_t k = 0; k < of->arms; k++) {
        if (!of->allowed[k])
            continue;
        pk_arm *arm = arms + count;
        double df = of->df[k];
        arm->location = of->location[k] - highest;
        arm->scale = of->scale[k];
        arm->certain = !(arm->scale > PK_CERTAIN * -arm->location);
        arm->normal = !(df < PK_NORMAL_FREED);
        if (count && df == of->df[k - 1] && of->allowed[k - 1]) {
            arm->reach = arms[count - 1].reach;
            arm->constant = arms[count - 1].constant;
        } else {
            double log_constant = pk_log_t_constant(arm->normal ? 1e18 : df);
            arm->reach = pk_reach(df, log_constant);
            arm->constant = exp(log_constant);
        }
        arm->density = arm->certain ? 0.0 : arm->constant / arm->scale;
        arm->half = 0.5 * (df + 1.0);
        arm->inverse_df = 1.0 / df;
        arm->above = arm->moment = 0.0;
        count++;
    }
    return count;
}

PK_INLINE double pk_half_width(const pk_arm *arm)
{
    return arm->certain ? 0.0 : arm->reach * arm->scale;
}

/* The lower end of the piece that begins at x: no arm's density has more to it than the rule can see. */
static double pk_piece_end(const pk_arm *arms, ptrdiff_t count, double x, double least)
{
    double length = INFINITY;
    for (ptrdiff_t a = 0; a < count; a++) {
        const pk_arm *arm = arms + a;
        double gap = x - arm->location, step = PK_PIECE * arm->scale;
        if (arm->certain)
            continue;
        if (gap > 0.0) {
            step = step > PK_PIECE_SHARE * gap ? step : PK_PIECE_SHARE * gap;
            if (gap - pk_half_width(arm) > step)
                step = gap - pk_half_width(arm);
        } else if (-gap > step) {
            step = -gap;
        }
        length = step < length ? step : length;
    }
    return x - length > least ? x - length : least;
}

/* Densities, and what lies below and above, of an arm in a piece. */
PK_INLINE void pk_evaluate_arm(pk_arm *arm, double from, double length, const pk_rule *rule, int wants_mean)
{
    pk_vector above[PK_NODE_SLICES], moment[PK_NODE_SLICES];
    double mass = 0.0, first = 0.0, inverse = 1.0 / arm->scale;
    for (int s = 0; s < PK_NODE_SLICES; s++) {
        pk_vector x = from - length * ((const pk_vector *)rule->nodes)[s], z = (x - arm->location) * inverse;
        pk_vector q = z * z, log_density = -0.5 * q;
        if (!arm->normal) {
            q *= arm->inverse_df;
            pk_vector u = 1.0 + q, lost = u - 1.0; /* log1p (Higham 2002, 1.14.1) */
            lost = pk_choose(lost, (pk_vector){0} + 1.0, lost > 0.0);
            log_density = -arm->half * pk_choose(pk_log(u) * (q / lost), q, u > 1.0);
        }
        arm->f[s] = arm->density * pk_exp(log_density);
        above[s] = (pk_vector){0};
        moment[s] = (pk_vector){0};
        pk_vector weighted = ((const pk_vector *)rule->weights)[s] * arm->f[s];
        mass += pk_sum(weighted);
        first += pk_sum(weighted * x);
    }
    for (int j = 0; j < PK_NODES; j++) {
        double f = ((const double *)arm->f)[j], x = from - length * rule->nodes[j];
        const pk_vector *column = (const pk_vector *)(rule->above + j * PK_NODES);
        for (int s = 0; s < PK_NODE_SLICES; s++) {
            above[s] += f * column[s];
            if (wants_mean)
                moment[s] += f * x * column[s];
        }
    }
    for (int s = 0; s < PK_NODE_SLICES; s++) {
        pk_vector below = 1.0 - (arm->above + length * above[s]), x = from - length * ((const pk_vector *)rule->nodes)[s];
        arm->below[s] = pk_choose(below, (pk_vector){0}, below > 0.0);
        if (wants_mean) { /* of what lies below; it can't lie above */
            pk_vector some = pk_choose(below, (pk_vector){0} + 1.0, below > 1e-13);
            pk_vector mean = (arm->location - (arm->moment + length * moment[s])) / some;
            arm->mean[s] = pk_choose(mean, x, (below > 1e-13) & (mean < x));
        }
    }
    arm->above += length * mass;
    arm->moment += length * first;
}

/* The product of what lies below, over all other arms. */
PK_INLINE void pk_multiply_others(pk_arm *arms, ptrdiff_t count)
{
    for (int s = 0; s < PK_NODE_SLICES; s++) {
        pk_vector product = (pk_vector){0} + 1.0;
        for (ptrdiff_t a = 0; a < count; a++) {
            arms[a].others[s] = product;
            product *= arms[a].below[s];
        }
        product = (pk_vector){0} + 1.0;
        for (ptrdiff_t a = count - 1; a >= 0; a--) {
            arms[a].others[s] *= product;
            product *= arms[a].below[s];
        }
    }
}

/* Probabilities (count) of being the best, and with means (count, count), if not NULL, each of these times what is
 * expected of every arm a where b is the best: means[a, b]. Returns their sum, which is 1 but for rounding. */
static double pk_find_best(const pk_arms *of, pk_arm *arms, ptrdiff_t count, double *best, double *means)
{
    double x = -INFINITY, least = -INFINITY, left = 1.0, sum = 0.0;
    memset(best, 0, (size_t)count * sizeof(double));
    if (means)
        memset(means, 0, (size_t)(count * count) * sizeof(double));
    for (ptrdiff_t a = 0; a < count; a++) {
        double far = pk_half_width(arms + a), top = arms[a].location + far, bottom = arms[a].location - far;
        x = top > x ? top : x;
        least = bottom > least ? bottom : least;  /* of what is certain, where it is */
    }
    for (int piece = 0; piece < PK_MOST_PIECES && x > least && left > PK_UNSEEN; piece++) {
        double end = pk_piece_end(arms, count, x, least), length = x - end;
        if (!(length > 0.0))
            break;
        left = 1.0;
        for (ptrdiff_t a = 0; a < count; a++) {
            pk_arm *arm = arms + a;
            if (arm->certain || end >= arm->location + pk_half_width(arm)) {
                for (int s = 0; s < PK_NODE_SLICES; s++) {
                    arm->f[s] = (pk_vector){0};
                    arm->below[s] = (pk_vector){0} + 1.0;
                    arm->mean[s] = (pk_vector){0} + arm->location;
                }
                continue;
            }
            pk_evaluate_arm(arm, x, length, of->rule, means != NULL);
            left *= arm->above < 1.0 ? 1.0 - arm->above : 0.0;
        }
        pk_multiply_others(arms, count);
        for (ptrdiff_t b = 0; b < count; b++) {
            pk_vector total = (pk_vector){0};
            pk_arm *arm = arms + b;
            for (int s = 0; s < PK_NODE_SLICES; s++) {
                arm->f[s] *= length * ((const pk_vector *)of->rule->weights)[s] * arm->others[s];
                total += arm->f[s];
            }
            best[b] += pk_sum(total);
            for (ptrdiff_t a = 0; means && a < count; a++) {
                pk_vector mean = (pk_vector){0};
                for (int s = 0; s < PK_NODE_SLICES; s++) {
                    pk_vector place = x - length * ((const pk_vector *)of->rule->nodes)[s];
                    if (a != b)
                        place = arms[a].mean[s];
                    mean += arm->f[s] * place;
                }
                means[a * count + b] += pk_sum(mean);
            }
        }
        x = end;
    }
    double ties = 0.0; /* of the best of those that are certain, where all others are below */
    for (ptrdiff_t b = 0; b < count; b++)
        ties += arms[b].location == least && arms[b].certain;
    for (ptrdiff_t b = 0; b < count && left > 0.0; b++) {
        if (!(arms[b].location == least && arms[b].certain))
            continue;
        best[b] += left / ties;
        for (ptrdiff_t a = 0; means && a < count; a++) {
            double below = 1.0 - arms[a].above, mean = (arms[a].location - arms[a].moment) / below;
            means[a * count + b] += left / ties * (below > 1e-13 && mean < least ? mean : least);
        }
    }
    for (ptrdiff_t b = 0; b < count; b++)
        sum += best[b];
    return sum;
}

/* Into shares (arms) how often each has the largest mean + z width, where z is `stretch` times half a normal
 * distribution: the upper envelope of lines. Arms of one line share what it has; those not allowed have 0. */
static void pk_share_envelope(const double *mean, const double *width, const unsigned char *allowed, ptrdiff_t arms,
                              double stretch, double *shares)
{
    ptrdiff_t now = -1, next;
    double before = 0.0, after;
    for (ptrdiff_t k = 0; k < arms; k++) {
        shares[k] = 0.0;
        if (allowed[k] && (now < 0 || mean[k] > mean[now] || (mean[k] == mean[now] && width[k] > width[now])))
            now = k;
    }
    for (; now >= 0; now = next, before = after) {
        double first = INFINITY, ties = 0.0;
        next = -1;
        for (ptrdiff_t k = 0; k < arms; k++) {
            if (!allowed[k])
                continue;
            ties += mean[k] == mean[now] && width[k] == width[now];
            double crossing = (mean[now] - mean[k]) / (width[k] - width[now]);
            if (width[k] > width[now] && (crossing < first || (crossing == first && width[k] > width[next]))) {
                first = crossing;
                next = k;
            }
        }
        after = next < 0 ? 1.0 : erf(first / stretch * M_SQRT1_2);
        after = after > before ? after : before;
        for (ptrdiff_t k = 0; k < arms; k++)
            if (allowed[k] && mean[k] == mean[now] && width[k] == width[now])
                shares[k] += (after - before) / ties;
    }
}

/* Of two arms the mixture of the least squared regret for what it tells: the share of the first, and that ratio. */
PK_INLINE double pk_cheapest_share(double regret, double information, double other_regret, double other_information, double *ratio)
{
    double cost = regret - other_regret, gain = information - other_information, shares[3] = {1.0, 0.0, 0.0}, best = 1.0;
    /* Where the derivative of (r + q cost)^2 / (t + q gain) is 0, r and t being the other's. */
    double q = other_regret / cost - 2.0 * other_information / gain;
    if (q > 0.0 && q < 1.0)
        shares[2] = q;
    *ratio = INFINITY;
    for (int i = 0; i < 3; i++) {
        double lost = other_regret + shares[i] * cost, won = other_information + shares[i] * gain;
        double here = lost > 0.0 ? lost * lost / won : 0.0;
        if (here < *ratio) {
            *ratio = here;
            best = shares[i];
        }
    }
    return best;
}

/* Into shares (count) the mixture of two arms of the least ratio; all alike where no arm gives information. */
static void pk_cheapest_pair(const double *regret, const double *information, ptrdiff_t count, double *shares)
{
    double least = INFINITY, best = 0.0;
    ptrdiff_t one = -1, two = -1;
    for (ptrdiff_t a = 0; a < count; a++)
        for (ptrdiff_t b = 0; b <= a; b++) {
            double ratio, share = pk_cheapest_share(regret[a], information[a], regret[b], information[b], &ratio);
            if (ratio < least) {
                least = ratio;
                best = share;
                one = a;
                two = b;
            }
        }
    for (ptrdiff_t a = 0; a < count; a++)
        shares[a] = one < 0 ? 1.0 / (double)count : 0.0;
    if (one >= 0) {
        shares[one] += best;
        shares[two] += 1.0 - best;
    }
}

#endif
