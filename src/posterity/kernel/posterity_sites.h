/* What one observation says of its eta = x.w, as a Gaussian row, and learning such rows one after another.
 *
 * Given eta ~ Normal(mean, variance), a likelihood to the power `weight` becomes the site
 *
 *     exp(-precision (eta - target)^2 / 2)     appended as the row sqrt(precision) (x, target)
 *
 * by Laplace's method (the mode and its curvature) or by matching mean and variance of the posterior of eta.
 * See posterity_kernel.h for the algebra of rows. */
#ifndef POSTERITY_SITES_H
#define POSTERITY_SITES_H

#include "posterity_flight.h"
#include "posterity_forgetting.h"
#include "posterity_likelihoods.h"

/* Least precision of a site, of what was known before: with less its target would be too far off. */
#define PK_LEAST_SHARE 1e-8
/* Log densities this large keep too few digits for quadrature; the posterior is then as good as Gaussian. */
#define PK_SHARP 1e9
#define PK_SCALE_NODES 64 /* over the scale of a mixture of Gaussians */
#define PK_NODES 16       /* over eta */
enum { PK_SCALE_PARTS = PK_SCALE_NODES / PK_LANES, PK_NODE_PARTS = PK_NODES / PK_LANES };

typedef struct {
    double precision, target, log_normalizer;
} pk_site;

/* log Z, how far the mean moves, and the ratio of the variances. */
typedef struct {
    double log_mass, moved, ratio;
} pk_moments;

/* Nodes and logs of the weights of the Gauss-Hermite rule of the standard normal. */
static const double pk_nodes[PK_NODES] = {
    -6.630878198393129, -5.472225705949343, -4.492955302520011, -3.6008736241715487, -2.7602450476307014,
    -1.9519803457163334, -1.1638291005549648, -0.3867606045005574, 0.3867606045005574, 1.1638291005549648,
    1.9519803457163334, 2.7602450476307014, 3.6008736241715487, 4.492955302520011, 5.472225705949343,
    6.630878198393129};
static const double pk_log_node_weights[PK_NODES] = {
    -22.621843735297286, -15.848470719591083, -11.08765562744474, -7.550238002340771, -4.924420313983547,
    -3.0515673958337786, -1.8430209362213674, -1.249777604798297, -1.249777604798297, -1.8430209362213674,
    -3.0515673958337786, -4.924420313983547, -7.550238002340771, -11.08765562744474, -15.848470719591083,
    -22.621843735297286};

PK_INLINE pk_vector pk_nodes_of(int part)
{
    return ((const pk_vector *)pk_nodes)[part];
}

PK_INLINE pk_vector pk_log_weights_of(int part)
{
    return ((const pk_vector *)pk_log_node_weights)[part];
}

/* The weights of the nodes beyond 0. */
static const double pk_node_weights[PK_NODES / 2] = {
    0.286568521238012, 0.1583383727509497, 0.04728475235401406, 0.007266937601184749,
    0.0005259849265739087, 1.530003216248732e-05, 1.309473216286817e-07, 1.4978147231618412e-10};

/* ---- moments ------------------------------------------------------------------------------------------- */

#define PK_DENSITY_OF(lane) pk_log_density(l, y[lane], eta[lane])

/* pk_log_density in every lane. */
PK_INLINE pk_vector pk_log_densities(const pk_likelihood *l, pk_vector y, pk_vector eta)
{
    const pk_vector zero = {0};
    if (l->code == PK_LOGIT) {
        pk_vector z = pk_choose(eta, -eta, y > 0.5);
        return -pk_max(-z, zero) - pk_log1p_exp_down(-pk_abs(eta));
    }
    if (l->code == PK_POISSON)
        return y * eta - pk_exp_any(eta);
    if (l->code == PK_NEGATIVE_BINOMIAL) {
        pk_vector excess = eta + log(l->a), both = pk_log1p_exp_down(-pk_abs(excess));
        return -y * (pk_max(-excess, zero) + both) - (pk_max(excess, zero) + both) / l->a;
    }
    if (pk_is_family(l))
        return pk_family_densities(l, y, eta);
    return (pk_vector){PK_EACH_LANE(PK_DENSITY_OF)};
}

/* Over the nodes x: sums of exp(term - most), and of that times x and times x squared. */
PK_INLINE void pk_sum_nodes(const pk_vector *term, double most, double *total, double *lean, double *square)
{
    pk_vector sum = {0}, first = {0}, second = {0};
    for (int k = 0; k < PK_NODE_PARTS; k++) {
        pk_vector x = pk_nodes_of(k), part = pk_exp_down(term[k] - most);
        sum += part;
        first += part * x;
        second += part * x * x;
    }
    *total = pk_sum(sum);
    *lean = pk_sum(first);
    *square = pk_sum(second);
}

/* exp(x) - 1 - x, by its series where that would cancel. */
PK_INLINE pk_vector pk_exp_beyond_tangent(pk_vector x)
{
    pk_vector series = 1.0 + x * (1.0 / 9.0);
    for (int k = 8; k > 2; k--)
        series = 1.0 + x * series * (1.0 / (double)k);
    return pk_choose(0.5 * x * x * series, pk_exp_any(x) - 1.0 - x, pk_abs(x) < 0.1);
}

/* Adaptive Gauss-Hermite (Liu and Pierce 1994): the rule is centred at the mode, as wide as the curvature says. */
PK_INLINE pk_moments pk_quadrature(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    pk_moments found;
    double slope, curvature, pull = weight * variance, mode = pk_mode(l, y, mean, variance, weight, &slope, &curvature);
    double bend = pull * curvature < 1e300 ? pull * curvature : 1e300, shrunk = 1.0 / (1.0 + bend);
    double width = sqrt(variance * shrunk), lift = (mode - mean) / variance, constant = pk_log_constant(l, y);
    double height = weight * pk_log_density(l, y, mode) - 0.5 * (mode - mean) * lift;
    found.log_mass = weight * constant + height + 0.5 * log(shrunk);
    found.moved = mode - mean;
    found.ratio = shrunk;
    int count = l->code == PK_POISSON && width < 1.0; /* whose large terms cancel by formula */
    if (!((count || fabs(weight * (height + constant)) < PK_SHARP) && bend < 1e12))
        return found;
    pk_vector term[PK_NODE_PARTS], top = (pk_vector){0} - INFINITY;
    for (int k = 0; k < PK_NODE_PARTS; k++) {
        pk_vector x = pk_nodes_of(k), step = width * x, away = mode - mean + step;
        if (count)
            term[k] = (weight * slope - lift) * step - weight * curvature * pk_exp_beyond_tangent(step)
                - 0.5 * step * step / variance;
        else
            term[k] = weight * pk_log_densities(l, pk_all(y), mode + step) - 0.5 * away * away / variance - height;
        term[k] += 0.5 * x * x + pk_log_weights_of(k);
        top = pk_max(top, term[k]);
    }
    double most = pk_largest(top), total, lean, square;
    pk_sum_nodes(term, most, &total, &lean, &square);
    found.log_mass += most + log(total);
    found.moved += width * (lean / total);
    found.ratio *= square / total - (lean / total) * (lean / total);
    return found;
}

/* Half of the nodes, and logs of the weights, of the same rule with half as many, and with twice as many. */
static const double pk_few_nodes[PK_NODES / 4] = {0.5390798113513751, 1.636519042435108, 2.8024858612875416,
                                                  4.1445471861258945};
static const double pk_log_few_weights[PK_NODES / 4] = {-0.9861439974678837, -2.1435329507399, -4.642330131420544,
                                                        -9.091539735359168};
static const double pk_many_nodes[PK_NODES] = {
    0.27554641923027584, 0.8272849037797652, 1.3809801992721442, 1.9380049059257174,
    2.4998404151873954, 3.0681351690131216, 3.644781249880833, 4.23202110999541,
    4.832604613244489, 5.450033273623428, 6.088964309076987, 6.755930830540705,
    7.460755754121519, 8.219728765382245, 9.064399210702405, 10.077422674229465};
static const double pk_log_many_weights[PK_NODES] = {
    -1.552558790934808, -1.8544501386470675, -2.4610556602727787, -3.378169146762894,
    -4.614870916059746, -6.1840541355425955, -8.103240783162388, -10.395825038029116,
    -13.09298803667362, -16.23673384693567, -19.884928684595614, -24.12022185398508,
    -29.06731913778041, -34.931035553141605, -42.09883453852514, -51.54248627778124};

/* Up to this share of the noise's squared size, of the belief's variance times 1 + the exponent, a rule has 12 digits. */
typedef struct {
    double most;
    int half;
    const double *nodes, *logs;
} pk_narrow_rule;

enum { PK_NARROW_RULES = 3 };
#define PK_NARROW_EXPONENT 20.0
static const pk_narrow_rule pk_narrow_rules[PK_NARROW_RULES] = {
    {0.0025, PK_NODES / 4, pk_few_nodes, pk_log_few_weights},
    {0.03, PK_NODES / 2, pk_nodes + PK_NODES / 2, pk_log_node_weights + PK_NODES / 2},
    {0.1, PK_NODES, pk_many_nodes, pk_log_many_weights}};

PK_INLINE pk_vector pk_narrow_part(pk_vector a, pk_vector step, pk_vector off, pk_vector inverse, double log_weight)
{
    return pk_exp_down(log_weight - a * pk_log(1.0 + step * (step - 2.0 * off) * inverse));
}

/* Student-t where the belief is narrow beside the noise, a row a lane: by the Gauss-Hermite rule itself, of a density
 * that hardly bends. */
PK_INLINE void pk_narrow_students(const pk_likelihood *l, pk_vector off, pk_vector variance, pk_vector weight, int which,
                                  pk_vector *log_mass, pk_vector *moved, pk_vector *ratio)
{
    double squared = l->a * l->b * l->b;
    pk_vector a = 0.5 * weight * (l->a + 1.0), width = pk_sqrt(variance), wide = squared + off * off;
    pk_vector inverse = 1.0 / wide, total = {0}, lean = {0}, square = {0};
    const pk_narrow_rule *rule = pk_narrow_rules + which;
    for (int k = 0; k < rule->half; k++) {
        double node = rule->nodes[k];
        pk_vector step = width * node, up = pk_narrow_part(a, step, off, inverse, rule->logs[k]);
        pk_vector down = pk_narrow_part(a, -step, off, inverse, rule->logs[k]);
        total += up + down;
        lean += (up - down) * node;
        square += (up + down) * (node * node);
    }
    pk_vector middle = lean / total;
    *log_mass = weight * l->c - a * pk_log(wide / squared) + pk_log(total);
    *moved = width * middle;
    *ratio = square / total - middle * middle;
}

/* The rule with fewest nodes that will do; PK_NARROW_RULES where none does. */
PK_INLINE int pk_find_narrow_rule(const pk_likelihood *l, double off, double variance, double weight)
{
    double squared = l->a * l->b * l->b, a = 0.5 * weight * (l->a + 1.0), part = variance * (1.0 + a);
    int which = 0;
    if (!(a < PK_NARROW_EXPONENT && off * off < 1e300 * squared && squared < 1e300))
        return PK_NARROW_RULES;
    while (which < PK_NARROW_RULES && !(part < pk_narrow_rules[which].most * squared))
        which++;
    return which;
}

/* Student-t: (1 + x)^-a is the integral of exp(a t - e^t (1 + x)) / Gamma(a) over t, so that given t the likelihood
 * is Gaussian in eta. The trapezoidal rule over t; what lies below is e^(a t) / a. */
PK_INLINE pk_moments pk_student_moments(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    pk_moments found;
    double squared = l->a * l->b * l->b, a = 0.5 * weight * (l->a + 1.0), off = y - mean, square = off * off;
    int which = pk_find_narrow_rule(l, off, variance, weight);
    if (which < PK_NARROW_RULES) {
        pk_vector log_mass, moved, ratio, zero = {0};
        pk_narrow_students(l, zero + off, zero + variance, zero + weight, which, &log_mass, &moved, &ratio);
        found.log_mass = log_mass[0];
        found.moved = moved[0];
        found.ratio = ratio[0];
        return found;
    }
    double low = log(a) - log1p(square / squared) - 7.0 / sqrt(a + 0.1) - 23.0 / (a + 1.0);
    double high = log(a + 7.0 * sqrt(a) + 30.0), step = (high - low) / (PK_SCALE_NODES - 1), below = a * low - log(a);
    const pk_vector lanes = {PK_EACH_LANE(PK_NUMBER)};
    pk_vector term[PK_SCALE_PARTS], gain[PK_SCALE_PARTS], top = (pk_vector){0} + below;
    for (int k = 0; k < PK_SCALE_PARTS; k++) {
        pk_vector t = low + step * (lanes + (double)(k * PK_LANES)), scale = pk_exp_any(t);
        pk_vector precision = 2.0 * scale / squared, spread = 1.0 + precision * variance;
        term[k] = a * t - scale + log(step) - 0.5 * pk_log(spread) - 0.5 * precision * square / spread;
        gain[k] = precision * variance / spread;
        top = pk_max(top, term[k]);
    }
    double most = pk_largest(top);
    pk_vector sum = {0}, lean = {0}, narrow = {0}, bend = {0};
    for (int k = 0; k < PK_SCALE_PARTS; k++) {
        pk_vector share = pk_exp_down(term[k] - most);
        sum += share;
        lean += share * gain[k];
        narrow += share * (1.0 - gain[k]);
        term[k] = share;
    }
    double rest = exp(below - most), total = pk_sum(sum) + rest, pulled = pk_sum(lean) / total;
    for (int k = 0; k < PK_SCALE_PARTS; k++)
        bend += term[k] * (gain[k] - pulled) * (gain[k] - pulled);
    double wider = (pk_sum(bend) + rest * pulled * pulled) / total * square;
    found.log_mass = weight * l->c + most + log(total) - lgamma(a);
    found.moved = pulled * off;
    found.ratio = (pk_sum(narrow) + rest) / total + wider / variance;
    return found;
}

/* Mean above z, and variance, of the standard normal beyond z; log of the mass times exp((z^2 - place^2) / 2). */
PK_INLINE void pk_beyond_point(double z, double place, double *log_mass, double *mean, double *variance)
{
    double hazard = pk_hazard(z);
    if (z > -5.0)
        *log_mass = -0.5 * place * place - PK_LOG_ROOT_2PI - log(hazard);
    else
        *log_mass = 0.5 * (z - place) * (z + place) + pk_log_tail(z);
    if (z > 50.0) { /* by series: nothing cancels */
        double inverse = 1.0 / z, square = inverse * inverse;
        *mean = inverse * (1.0 - square * (2.0 - square * (10.0 - 74.0 * square)));
        *variance = square * (1.0 - square * (6.0 - square * (50.0 - 518.0 * square)));
        return;
    }
    *mean = hazard - z;
    *variance = z < -50.0 ? 1.0 : 1.0 - hazard * (hazard - z);
}

/* exp(slope below) up to the target and exp(-slope above) beyond: two truncated normals. */
PK_INLINE pk_moments pk_kinked_moments(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    pk_moments found;
    double scale = sqrt(variance), place = (mean - y) / scale, mass_low, mass_high, mean_low, mean_high, var_low, var_high;
    pk_beyond_point(place + weight * l->a * scale, place, &mass_low, &mean_low, &var_low);
    pk_beyond_point(-place + weight * l->b * scale, place, &mass_high, &mean_high, &var_high);
    double most = mass_low > mass_high ? mass_low : mass_high;
    double low = exp(mass_low - most), high = exp(mass_high - most), share = low / (low + high), rest = high / (low + high);
    found.log_mass = weight * l->c + most + log(low + high);
    found.moved = scale * (rest * mean_high - share * mean_low - place);
    found.ratio = share * var_low + rest * var_high + share * rest * (mean_low + mean_high) * (mean_low + mean_high);
    return found;
}

PK_INLINE pk_moments pk_gaussian_moments(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    double part = weight * l->a * variance, off = y - mean;
    pk_moments found = {weight * pk_log_constant(l, y) - 0.5 * (log1p(part) + weight * l->a * off * off / (1.0 + part)),
                        part / (1.0 + part) * off, 1.0 / (1.0 + part)};
    return found;
}

/* ---- probabilities ------------------------------------------------------------------------------------------ */

/* log of the expectation of sigmoid(-|mean| + ...) and of the other side, eta ~ Normal(mean, variance), in every lane. With
 * a = exp(-|mean|) and E = exp(-scale x) at a node, sigmoid(-(|mean| + scale x)) = a E / (1 + a E). */
PK_INLINE void pk_expected_sigmoid(pk_vector mean, pk_vector variance, pk_vector *log_less, pk_vector *log_more)
{
    pk_vector size = pk_abs(mean), a = pk_exp_down(-size), sum = {0};
    pk_vector scale = pk_sqrt(variance);
    for (int k = 0; k < PK_NODES / 2; k++) {
        pk_vector e = pk_exp_down(-scale * pk_nodes[PK_NODES / 2 + k]), inverse = 1.0 / e;
        sum += pk_node_weights[k] * (e / (1.0 + a * e) + inverse / (1.0 + a * inverse));
    }
    *log_less = pk_log(sum) - size;
    *log_more = pk_log(1.0 - a * sum);
}

/* Log probabilities of 1 and 0; the variance is at most 1. */
static void pk_expected_labels(ptrdiff_t n, const double *mean, const double *variance, double *log_yes,
                               double *log_no)
{
    for (ptrdiff_t i = 0; i < n; i += PK_LANES) {
        pk_vector m = {0}, v = {0}, less, more;
        ptrdiff_t some = n - i < PK_LANES ? n - i : PK_LANES;
        if (some == PK_LANES) {
            m = *(const pk_vector *)(mean + i);
            v = *(const pk_vector *)(variance + i);
        } else {
            memcpy(&m, mean + i, (size_t)some * sizeof(double));
            memcpy(&v, variance + i, (size_t)some * sizeof(double));
        }
        pk_expected_sigmoid(m, v, &less, &more);
        pk_vector yes = pk_choose(more, less, m > 0.0), no = pk_choose(less, more, m > 0.0);
        if (some == PK_LANES) {
            *(pk_vector *)(log_yes + i) = yes;
            *(pk_vector *)(log_no + i) = no;
        } else {
            memcpy(log_yes + i, &yes, (size_t)some * sizeof(double));
            memcpy(log_no + i, &no, (size_t)some * sizeof(double));
        }
    }
}

/* ---- sites ------------------------------------------------------------------------------------------------ */

/* The site that brings this share of what was known before, and moves the mean. */
PK_INLINE pk_site pk_site_of(double log_mass, double moved, double share, double mean, double variance)
{
    share = share > PK_LEAST_SHARE ? share < 1e300 ? share : 1e300 : PK_LEAST_SHARE;
    double precision = share / variance;
    pk_site site = {precision < 1e300 ? precision : 1e300, mean + moved * ((1.0 + share) / share), log_mass};
    return site;
}

PK_INLINE pk_site pk_site_of_moments(pk_moments found, double mean, double variance)
{
    return pk_site_of(found.log_mass, found.moved, (1.0 - found.ratio) / found.ratio, mean, variance);
}

PK_INLINE pk_site pk_laplace(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    double slope, curvature, mode = pk_mode(l, y, mean, variance, weight, &slope, &curvature);
    double pull = (mode - mean) / variance, bend = weight * curvature, least = PK_LEAST_SHARE / variance;
    bend = bend < 1e300 ? bend : 1e300;
    double precision = bend > least ? bend : least < 1e300 ? least : 1e300;
    pk_site site = {precision, mode + pull / precision,
                    weight * (pk_log_constant(l, y) + pk_log_density(l, y, mode))
                        - 0.5 * ((mode - mean) * pull + log1p(bend * variance))};
    return site;
}

/* How far beyond the target a site of noise may lie, in errors. */
#define PK_FURTHEST 10.0

/* By a formula where there is one. */
PK_INLINE pk_moments pk_general_moments(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    if (l->code == PK_KINKED)
        return pk_kinked_moments(l, y, mean, variance, weight);
    if (l->code == PK_STUDENT_T)
        return pk_student_moments(l, y, mean, variance, weight);
    if (l->code == PK_GAUSSIAN)
        return pk_gaussian_moments(l, y, mean, variance, weight);
    return pk_quadrature(l, y, mean, variance, weight);
}

PK_RARE pk_site pk_general_site(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    if (!l->moments && l->code != PK_KINKED)
        return pk_laplace(l, y, mean, variance, weight);
    pk_moments found = pk_general_moments(l, y, mean, variance, weight);
    pk_site site = pk_site_of_moments(found, mean, variance);
    /* Of noise whose row makes the variance grow: it may not say next to nothing of a place far beyond its target, for
     * under another prior it would be believed there. The mean is matched all the same. */
    double off = y - mean, gain = l->code == PK_STUDENT_T && found.ratio >= 1.0 ? found.moved / off : 0.0;
    if (gain > 0.0 && gain < 1.0 && fabs(site.target - mean) > PK_FURTHEST * fabs(off)) {
        site.precision = gain / (PK_FURTHEST - gain) / variance;
        site.target = mean + PK_FURTHEST * off;
    }
    return site;
}

/* A vector of rows from i on, if all of them are narrow; returns whether they were. */
PK_INLINE int pk_find_narrow_moments(const pk_likelihood *l, ptrdiff_t i, const double *y, const double *mean,
                                     const double *variance, const double *weights, double *log_mass, double *moved,
                                     double *ratio)
{
    int which = 0;
    for (ptrdiff_t k = i; k < i + PK_LANES && which < PK_NARROW_RULES; k++) {
        int one = pk_find_narrow_rule(l, y[k] - mean[k], variance[k], weights[k]);
        which = one > which ? one : which;
    }
    if (which == PK_NARROW_RULES)
        return 0;
    pk_vector off = *(const pk_vector *)(y + i) - *(const pk_vector *)(mean + i);
    pk_narrow_students(l, off, *(const pk_vector *)(variance + i), *(const pk_vector *)(weights + i), which,
                       (pk_vector *)(log_mass + i), (pk_vector *)(moved + i), (pk_vector *)(ratio + i));
    return 1;
}

/* Log of the mass, the mean's move and the ratio of the variances, of n rows. */
static void pk_find_moments(const pk_likelihood *l, ptrdiff_t n, const double *y, const double *mean,
                            const double *variance, const double *weights, double *log_mass, double *moved, double *ratio)
{
    ptrdiff_t i = 0;
    while (i < n) {
        ptrdiff_t stop = i + PK_LANES < n ? i + PK_LANES : n;
        if (l->code == PK_STUDENT_T && stop == i + PK_LANES
            && pk_find_narrow_moments(l, i, y, mean, variance, weights, log_mass, moved, ratio)) {
            i = stop;
            continue;
        }
        for (; i < stop; i++) {
            pk_moments found = pk_general_moments(l, y[i], mean[i], variance[i], weights[i]);
            log_mass[i] = found.log_mass;
            moved[i] = found.moved;
            ratio[i] = found.ratio;
        }
    }
}

/* Up to this variance the rule of PK_NODES has 10 digits for a label; and up to this one another is worth its nodes. */
#define PK_LABEL_VARIANCE 0.5
#define PK_MOST_LABEL_VARIANCE 1e5

/* The site of a label of which little is known: by the trapezoidal rule about the mode z. Its steps are short beside the
 * distance of log sigmoid's poles, so that it has all digits (Trefethen and Weideman 2014); what lies beyond 8.6 standard
 * deviations is rounding. The mean moves by variance E[slope], and the share of the variance that is lost is variance
 * (E[curvature] - Var[slope]): nothing cancels where that is little. */
PK_RARE pk_site pk_vague_label_site(double sign, double mean, double variance, double z)
{
    double centre = sign * mean, off = z - centre, root = sqrt(variance), gap = 0.5 * (root < 1.0 ? root : 1.0);
    const pk_vector lanes = {PK_EACH_LANE(PK_NUMBER)};
    pk_vector sum = {0}, slopes = {0}, bends = {0}, first = {0}, second = {0};
    ptrdiff_t half = (ptrdiff_t)ceil(8.6 * root / gap), parts = (2 * half + PK_LANES) / PK_LANES;
    double lift = z > 0.0 ? 0.0 : z;
    for (ptrdiff_t k = 0; k < parts; k++) {
        pk_vector step = gap * (lanes + (double)(k * PK_LANES - half)), at = z + step;
        pk_vector e = pk_exp(-pk_abs(at)), inverse = 1.0 / (1.0 + e);
        pk_vector yes = pk_choose(inverse, e * inverse, at > 0.0), no = pk_choose(e * inverse, inverse, at > 0.0);
        /* All of it in one exponent, so that no factor is beyond what a number holds. */
        pk_vector down = pk_choose((pk_vector){0}, at, at > 0.0) - lift;
        pk_vector part = inverse * pk_exp(down - (off * step + 0.5 * step * step) / variance);
        pk_vector small = z > 0.0 ? no : yes;
        sum += part;
        slopes += part * no;
        bends += part * (no * yes - small * small);
        first += part * step;
        second += part * (step * step);
    }
    double inverse = 1.0 / pk_sum(sum), middle = pk_sum(first) * inverse, slope = pk_sum(slopes) * inverse;
    double less = z > 0.0 ? slope : 1.0 - slope, lost = 1.0 - (pk_sum(second) * inverse - middle * middle) / variance;
    if (lost < 0.5)
        lost = variance * (pk_sum(bends) * inverse + less * less);
    double log_mass = lift - log(inverse * root / gap) - PK_LOG_ROOT_2PI - 0.5 * off * off / variance;
    return pk_site_of(log_mass, sign * variance * slope, lost / (1.0 - lost), mean, variance);
}

/* The site of a label of log odds: z is eta, or -eta for a 0. Written out, for it is the commonest, with no call that
 * would spill the registers. With x the nodes, the posterior's Gaussian part is exp(-lean x - shrunk x^2 / 2), lean the
 * slope of log sigmoid at the mode in units of the width, against the rule's own exp(-x^2 / 2). */
PK_INLINE pk_site pk_label_site(const pk_likelihood *l, double y, double mean, double variance)
{
    /* A rule's centre need not be the mode to all digits. */
    double near = l->moments ? 0.1 : 1e-4;
    double no, sign = y > 0.5 ? 1.0 : -1.0, centre = sign * mean, z = pk_logit_mode(centre, variance, near, &no);
    if (PK_UNLIKELY(!(no > 1e-100 && z > -500.0 && variance < 1e4))) {
        if (l->moments && variance > PK_LABEL_VARIANCE && variance <= PK_MOST_LABEL_VARIANCE)
            return pk_vague_label_site(sign, mean, variance, sign * pk_bracketed_mode(l, y, mean, variance));
        return pk_general_site(l, y, mean, variance, 1.0);
    }
    double curvature = no * (1.0 - no), shrunk = 1.0 / (1.0 + variance * curvature), off = z - centre;
    if (!l->moments) {
        double least = PK_LEAST_SHARE / variance, precision = curvature > least ? curvature : least;
        double root = sqrt(shrunk), lift = z > 0.0 ? 0.0 : z, log_part = pk_log_one((z > 0.0 ? 1.0 - no : no) * root);
        pk_site site = {precision, sign * (z + no / precision), lift + log_part - 0.5 * off * no};
        return site;
    }
    if (PK_UNLIKELY(variance > PK_LABEL_VARIANCE))
        return pk_vague_label_site(sign, mean, variance, z);
    double width = sqrt(variance * shrunk), lean = off / variance * width, height = 7.0 * lean;
    pk_vector sum = {0}, slopes = {0}, bends = {0};
    for (int k = 0; k < PK_NODE_PARTS; k++) {
        pk_vector x = pk_nodes_of(k), at = z + width * x, e = pk_exp(-pk_abs(at)), inverse = 1.0 / (1.0 + e);
        pk_vector yes = pk_choose(inverse, e * inverse, at > 0.0), down = pk_choose(e * inverse, inverse, at > 0.0);
        /* height keeps this below 0. */
        pk_vector part = yes * pk_exp(pk_log_weights_of(k) + 0.5 * (1.0 - shrunk) * x * x - lean * x - height);
        pk_vector small = z > 0.0 ? down : yes;
        sum += part;
        slopes += part * down;
        bends += part * (down * yes - small * small);
    }
    double total = pk_sum(sum), inverse = 1.0 / total, slope = pk_sum(slopes) * inverse, less = z > 0.0 ? slope : 1.0 - slope;
    double lost = variance * (pk_sum(bends) * inverse + less * less);
    double log_mass = pk_log_one(total * sqrt(shrunk)) + height - 0.5 * off * off / variance;
    return pk_site_of(log_mass, sign * variance * slope, lost / (1.0 - lost), mean, variance);
}
PK_INLINE pk_site pk_proper_site(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    if (l->code == PK_LOGIT && weight == 1.0)
        return pk_label_site(l, y, mean, variance);
    return pk_general_site(l, y, mean, variance, weight);
}

/* Where nothing is known of eta, it is believed to lie vaguely around the mean, and the site tells of that as well;
 * or, where a target tells by itself, around the target, and its log density counts as 0. */
PK_RARE pk_site pk_first_site(const pk_likelihood *l, double y, double mean, double weight)
{
    if (pk_is_noise(l)) {
        double scale = l->code == PK_GAUSSIAN ? 1.0 / sqrt(l->a) : l->code == PK_STUDENT_T ? l->b : 1.0 / (l->a + l->b);
        pk_site site = pk_proper_site(l, y, y, PK_VAGUE_SCALES * PK_VAGUE_SCALES * scale * scale, weight);
        site.log_normalizer = 0.0;
        return site;
    }
    pk_site site = pk_proper_site(l, y, mean, PK_VAGUE_VARIANCE, weight);
    double added = 1.0 / PK_VAGUE_VARIANCE, total = site.precision + added;
    site.target = (site.precision * site.target + added * mean) / total;
    site.precision = total;
    return site;
}

PK_INLINE pk_site pk_find_site(const pk_likelihood *l, double y, double mean, double variance, double weight)
{
    pk_site nothing = {0.0, mean, 0.0};
    if (PK_UNLIKELY(!(weight > 0.0)))
        return nothing;
    if (PK_UNLIKELY(variance == INFINITY))
        return pk_first_site(l, y, mean, weight);
    if (PK_UNLIKELY(!(variance > 1e-300))) {
        nothing.log_normalizer = weight * (pk_log_constant(l, y) + pk_log_density(l, y, mean));
        return nothing;
    }
    return pk_proper_site(l, y, mean, variance, weight);
}

/* Sites of n observations, each on its own. */
static void pk_find_sites(const pk_likelihood *l, ptrdiff_t n, const double *y, const double *mean,
                          const double *variance, const double *weights, double *precision, double *target,
                          double *log_normalizer)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        pk_site site = pk_find_site(l, y[i], mean[i], variance[i], weights ? weights[i] : 1.0);
        precision[i] = site.precision;
        target[i] = site.target;
        log_normalizer[i] = site.log_normalizer;
    }
}

#endif
