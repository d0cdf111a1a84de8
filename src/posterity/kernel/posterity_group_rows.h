/* Rows of many factors of the same shape (k = 1): numbering, sorting and learning them. See posterity_kernel.h.
 *
 * A bank holds packed triangles (size, q (q + 1) / 2). Rows come in any order; sorted by group (stably, so that the
 * rows of a group keep their order) each group's rows are gathered a few at a time and learned as those of a single
 * factor are. What concerns groups first..last touches no other group: threads may share a bank.
 */
#ifndef POSTERITY_GROUP_ROWS_H
#define POSTERITY_GROUP_ROWS_H

#include "posterity_kernel.h"
#include "posterity_packed.h"

#define PK_AHEAD 24 /* rows of single groups that are asked for before their turn */
#define PK_GATHERED 128 /* rows of one group that are brought together at a time */
#define PK_LARGEST 1e150 /* squares of larger values would overflow */

/* ---- numbering and sorting ----------------------------------------------------------------------- */

PK_INLINE size_t pk_mix(unsigned long long key)
{
    key *= 0x9E3779B97F4A7C15ull;
    return (size_t)(key ^ (key >> 32));
}

/* The place of `key` in a table of numbers (mask + 1), -1 where it is empty. */
PK_INLINE size_t pk_place(const int *table, const long long *distinct, long long key, size_t mask)
{
    size_t at = pk_mix((unsigned long long)key) & mask;
    while (table[at] >= 0 && distinct[table[at]] != key)
        at = (at + 1) & mask;
    return at;
}

PK_INLINE void pk_prefetch_place(const int *table, long long key, size_t mask)
{
    __builtin_prefetch(table + (pk_mix((unsigned long long)key) & mask));
}

/* Number keys (n) by first appearance: numbers (n), and the distinct keys, of which there is room for
 * `room`, at most half of the table (mask + 1), which comes filled with -1. Returns how many there are, or
 * -1 - i when room ran out at key i, before which all is as it should be; *count are known already. */
static ptrdiff_t pk_number_keys(const long long *keys, ptrdiff_t first, ptrdiff_t n, int *numbers,
                                long long *distinct, ptrdiff_t count, ptrdiff_t room, int *table, size_t mask)
{
    for (ptrdiff_t i = first; i < n; i++) {
        size_t at = pk_place(table, distinct, keys[i], mask);
        if (table[at] < 0) {
            if (count == room)
                return -1 - i;
            table[at] = (int)count;
            distinct[count++] = keys[i];
        }
        numbers[i] = table[at];
    }
    return count;
}

static void pk_place_keys(const long long *distinct, ptrdiff_t count, int *table, size_t mask)
{
    for (ptrdiff_t k = 0; k < count; k++)
        table[pk_place(table, distinct, distinct[k], mask)] = (int)k;
}

/* The same for keys from `low` on, none of which is as high as low + range: table (range) comes filled with -1. */
static ptrdiff_t pk_number_range(const long long *keys, ptrdiff_t n, long long low, int *numbers, long long *distinct,
                                 int *table)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        int *known = table + (keys[i] - low);
        if (PK_UNLIKELY(*known < 0)) {
            distinct[count] = keys[i];
            *known = (int)count++;
        }
        numbers[i] = *known;
    }
    return count;
}

/* Counting sort, in two steps, so that parts of the rows may be counted and then placed at the same time. How
 * many of rows from..to each group has; returns 0, or 1 where a number is no group's. */
static int pk_count_rows(const int *numbers, ptrdiff_t from, ptrdiff_t to, ptrdiff_t groups, ptrdiff_t *counts)
{
    for (ptrdiff_t i = from; i < to; i++) {
        if (PK_UNLIKELY(numbers[i] < 0 || numbers[i] >= groups))
            return 1;
        counts[numbers[i]]++;
    }
    return 0;
}

/* next (groups): where the next row of each group goes in order. */
static void pk_place_rows(const int *numbers, ptrdiff_t from, ptrdiff_t to, ptrdiff_t *next, int *order)
{
    for (ptrdiff_t i = from; i < to; i++)
        order[next[numbers[i]]++] = (int)i;
}

/* ---- learning ------------------------------------------------------------------------------------ */

typedef struct {
    pk_rows all;             /* with weights or NULL, without discounts */
    const int *order;        /* rows of group 0 first, those of each group as they came */
    const ptrdiff_t *offset; /* (groups + 1) */
    const ptrdiff_t *slot;   /* (groups) of each group in the bank */
    double discount;         /* of a group's data at each of its rows */
} pk_grouped;

/* Per slot: weights of the rows, faded and as they came, and the number of its last row. */
typedef struct {
    double *count, *seen;
    long long *last;
    long long clock; /* rows before these */
} pk_group_sums;

/* What each row was to its group before it: error, leverage, and by how much it raises the group's residual
 * and its count (which is left as it is where every row weighs 1 and nothing fades). */
typedef struct {
    double *error, *leverage, *residual_gain, *count_gain;
} pk_predictions_out;

/* Room for the rows of one group. */
typedef struct {
    double *X, *Y, *weights, *discounts, *error, *leverage, *residual, *held;
    double *T, *P, *spare; /* (q, ld) of the group at hand */
    double *panel;  /* (PK_WORK_SIZE) */
    double *flight; /* (PK_WORK_SIZE) apart from it: rows in flight must stay padded with zeros */
} pk_gathering;

#define PK_WORK_SIZE(shape) \
    (PK_PANEL * (shape).ld > PK_FLIGHT_SIZE(shape) ? PK_PANEL * (shape).ld : PK_FLIGHT_SIZE(shape))
#define PK_TRIANGLE_SIZE(shape) ((shape).q * (shape).ld)
#define PK_GATHERING_SIZE(shape) \
    (PK_GATHERED * ((shape).p + 6) + (shape).ld + 2 * PK_WORK_SIZE(shape) + 3 * PK_TRIANGLE_SIZE(shape))

PK_INLINE pk_gathering pk_new_gathering(double *buffer, pk_shape shape)
{
    pk_gathering g;
    g.T = buffer;
    g.P = g.T + PK_TRIANGLE_SIZE(shape);
    g.spare = g.P + PK_TRIANGLE_SIZE(shape);
    g.panel = g.spare + PK_TRIANGLE_SIZE(shape);
    g.flight = g.panel + PK_WORK_SIZE(shape);
    g.X = g.flight + PK_WORK_SIZE(shape);
    g.Y = g.X + PK_GATHERED * shape.p;
    g.weights = g.Y + PK_GATHERED;
    g.discounts = g.weights + PK_GATHERED;
    g.error = g.discounts + PK_GATHERED;
    g.leverage = g.error + PK_GATHERED;
    g.residual = g.leverage + PK_GATHERED;
    g.held = g.residual + PK_GATHERED;
    return g;
}

PK_INLINE void pk_prefetch(const pk_grouped *grouped, ptrdiff_t at, ptrdiff_t end)
{
    if (at >= end)
        return;
    const pk_rows *all = &grouped->all;
    ptrdiff_t i = grouped->order[at];
    const double *soon = all->X + i * all->x_stride;
    for (ptrdiff_t c = 0; c < all->columns; c += 8)
        __builtin_prefetch(soon + c, 0, 2);
    __builtin_prefetch(soon + all->columns - 1, 0, 2);
    __builtin_prefetch(all->Y + i, 0, 2);
    if (all->weights)
        __builtin_prefetch(all->weights + i);
}

PK_INLINE void pk_prefetch_triangle(const double *packed, pk_shape shape)
{
    for (ptrdiff_t c = 0; c < PK_PACKED_SIZE(shape) + PK_LINE; c += PK_LINE)
        __builtin_prefetch(packed + c, 1, 2);
}

/* The triangle of a slot; memory of one that has learned nothing is not read. */
PK_INLINE void pk_unpack_group(double *T, const double *data, const pk_group_sums *tallies, ptrdiff_t slot, pk_shape shape)
{
    if (tallies->seen[slot] == 0.0)
        memset(T, 0, (size_t)PK_TRIANGLE_SIZE(shape) * sizeof(double));
    else
        pk_unpack(T, data + slot * PK_PACKED_SIZE(shape), shape);
}

/* The rows order[first..first + count) of all, side by side. */
PK_INLINE pk_rows pk_gather(const pk_grouped *grouped, pk_gathering *g, ptrdiff_t first, ptrdiff_t count)
{
    const pk_rows *all = &grouped->all;
    pk_rows rows = *all;
    for (ptrdiff_t r = 0; r < count; r++) {
        ptrdiff_t i = grouped->order[first + r];
        pk_copy_scaled(g->X + r * all->columns, all->X + i * all->x_stride, all->columns, 1.0);
        g->Y[r] = all->Y[i];
        g->weights[r] = all->weights ? all->weights[i] : 1.0;
    }
    rows.X = g->X;
    rows.Y = g->Y;
    rows.x_stride = all->columns;
    rows.x_step = 1;
    rows.weights = all->weights ? g->weights : NULL;
    rows.discounts = NULL;
    rows.held = NULL;
    rows.n = count;
    return rows;
}

/* Ask for the rows that come after these, and for the places where the predictions of these will go. */
PK_INLINE void pk_prefetch_group_rows(const pk_grouped *grouped, ptrdiff_t first, ptrdiff_t count, ptrdiff_t end,
                             const pk_predictions_out *out)
{
    for (ptrdiff_t r = 0; r < count; r++) {
        ptrdiff_t i = grouped->order[first + r];
        __builtin_prefetch(out->error + i, 1, 2);
        __builtin_prefetch(out->leverage + i, 1, 2);
        __builtin_prefetch(out->residual_gain + i, 1, 2);
        pk_prefetch(grouped, first + count + r, end);
    }
}

/* pk_load_panel, of the rows order[first..first + count). */
PK_INLINE void pk_load_panel_of(double *restrict panel, const pk_grouped *grouped, ptrdiff_t first, ptrdiff_t count,
                                pk_shape shape)
{
    const pk_rows *all = &grouped->all;
    if (count < PK_PANEL)
        memset(panel, 0, (size_t)(shape.q * PK_PANEL) * sizeof(double));
    for (ptrdiff_t r = 0; r < count; r++) {
        ptrdiff_t i = grouped->order[first + r];
        const double *x = all->X + i * all->x_stride;
        double root_weight = pk_root_weight(all, i), *cell = panel + r;
        if (all->intercept) {
            *cell = root_weight;
            cell += PK_PANEL;
        }
        for (ptrdiff_t m = 0; m < all->columns; m++, cell += PK_PANEL)
            *cell = root_weight * x[m];
        *cell = root_weight * all->Y[i];
    }
}

/* Append a group's rows by panels no longer than they need. Between two columns of a panel some of the rows
 * of the next are asked for, whichever group they are of: they arrive while this one is worked on. Rows
 * before *asked are on their way. */
PK_INLINE void pk_append_panels(double *T, double *work, const pk_grouped *grouped, ptrdiff_t first, ptrdiff_t stop,
                                ptrdiff_t end, pk_shape shape, ptrdiff_t *asked)
{
    for (; first < stop; first += PK_PANEL) {
        ptrdiff_t count = stop - first < PK_PANEL ? stop - first : PK_PANEL;
        ptrdiff_t slices = (count + PK_LANES - 1) / PK_LANES;
        pk_load_panel_of(work, grouped, first, count, shape);
        ptrdiff_t next = first + count, enough = next + PK_PANEL < end ? next + PK_PANEL : end;
        *asked = *asked > next ? *asked : next;
        ptrdiff_t some = (enough - *asked + shape.q - 1) / shape.q;
        for (ptrdiff_t j = 0; j < shape.q; j++) {
            for (ptrdiff_t k = 0; k < some && *asked < enough; k++)
                pk_prefetch(grouped, (*asked)++, end);
            if (slices == PK_SLICES)
                pk_reflect(T, work, j, shape);
            else
                pk_reflect_part(T, work, j, slices, shape);
        }
    }
}

/* Fewer rows than this go without being laid by columns first. */
PK_INLINE int pk_uses_panels(ptrdiff_t count, pk_shape shape)
{
    return count >= 2 * shape.q && count >= PK_LANES;
}

/* Append a few of a group's rows at once, asking for as many of those that come after. */
PK_INLINE void pk_append_rows_at_once(double *T, double *work, const pk_grouped *grouped, ptrdiff_t first, ptrdiff_t stop,
                              ptrdiff_t end, pk_shape shape)
{
    for (; first < stop; first += PK_PANEL) {
        ptrdiff_t count = stop - first < PK_PANEL ? stop - first : PK_PANEL;
        for (ptrdiff_t r = 0; r < count; r++) {
            ptrdiff_t i = grouped->order[first + r];
            double *row = work + r * shape.ld;
            pk_clear_padding(row, shape);
            pk_load_row(row, &grouped->all, i, pk_root_weight(&grouped->all, i), shape);
            pk_prefetch(grouped, first + r + PK_AHEAD, end);
        }
        pk_append_few(T, work, count, shape);
    }
}

/* The same rows, before each of which the data fade; nothing fades before a group's first row, and a row of
 * weight 0 takes no time. */
PK_INLINE pk_rows pk_fading(const pk_grouped *grouped, pk_gathering *g, pk_rows rows, int begins)
{
    for (ptrdiff_t r = 0; r < rows.n; r++)
        g->discounts[r] = (begins && r == 0) || g->weights[r] == 0.0 ? 1.0 : grouped->discount;
    rows.discounts = g->discounts;
    return rows;
}

PK_INLINE void pk_add_to_group_sums(const pk_grouped *grouped, pk_group_sums *tallies, ptrdiff_t slot, ptrdiff_t first, ptrdiff_t count,
                        double *count_gain)
{
    const double *weights = grouped->all.weights;
    int newest = grouped->order[first + count - 1];
    if (!weights && grouped->discount == 1.0) {
        tallies->count[slot] += (double)count;
        tallies->seen[slot] += (double)count;
        count = 0;
    }
    for (ptrdiff_t r = 0; r < count; r++) {
        double before = tallies->count[slot], weight = weights ? weights[grouped->order[first + r]] : 1.0;
        tallies->count[slot] = weight == 0.0 ? before : before * grouped->discount + weight;
        tallies->seen[slot] += weight;
        if (count_gain)
            count_gain[grouped->order[first + r]] = tallies->count[slot] - before;
    }
    tallies->last[slot] = tallies->clock + newest + 1;
}

/* Whether all that is in a triangle is finite, and can be squared. */
PK_INLINE int pk_is_usable(const double *T, pk_shape shape)
{
    pk_vector sum = {0};
    for (ptrdiff_t v = 0; v < shape.q * shape.ld; v += PK_LANES) {
        pk_vector part = *(const pk_vector *)(T + v) * (1.0 / PK_LARGEST);
        sum += part * part;
    }
    return pk_sum(sum) <= 1.0;
}

/* Learn the rows of groups from..to in the bank of data triangles. buffer (PK_GATHERING_SIZE). Returns 0, or 1
 * where rows were not usable: the bank is then spoilt. */
static int pk_learn_groups(double *data, double *buffer, const pk_grouped *grouped, ptrdiff_t from,
                           ptrdiff_t to, pk_shape shape, pk_group_sums *tallies)
{
    pk_gathering g = pk_new_gathering(buffer, shape);
    pk_before before = {g.error, g.leverage, g.residual};
    ptrdiff_t end = grouped->offset[to], asked = 0;
    int usable = 1;
    for (ptrdiff_t group = from; group < to; group++) {
        ptrdiff_t slot = grouped->slot[group], begin = grouped->offset[group], stop = grouped->offset[group + 1];
        double *T = g.T, *packed = data + slot * PK_PACKED_SIZE(shape);
        if (begin == stop)
            continue;
        if (group + 1 < to)
            pk_prefetch_triangle(data + grouped->slot[group + 1] * PK_PACKED_SIZE(shape), shape);
        pk_unpack_group(T, data, tallies, slot, shape);
        if (grouped->discount == 1.0) {
            if (pk_uses_panels(stop - begin, shape))
                pk_append_panels(T, g.panel, grouped, begin, stop, end, shape, &asked);
            else
                pk_append_rows_at_once(T, g.panel, grouped, begin, stop, end, shape);
            usable &= pk_is_usable(T, shape);
            pk_pack(packed, T, shape);
            pk_add_to_group_sums(grouped, tallies, slot, begin, stop - begin, NULL);
            continue;
        }
        for (ptrdiff_t first = begin; first < stop; first += PK_GATHERED) {
            ptrdiff_t count = stop - first < PK_GATHERED ? stop - first : PK_GATHERED;
            int begins = tallies->count[slot] == 0.0;
            pk_rows rows = pk_gather(grouped, &g, first, count);
            rows = pk_fading(grouped, &g, rows, begins);
            rows.held = g.held;
            pk_learn_rows(T, g.flight, &rows, shape, &before);
            pk_add_to_group_sums(grouped, tallies, slot, first, count, NULL);
        }
        usable &= pk_is_usable(T, shape);
        pk_pack(packed, T, shape);
    }
    return !usable;
}

PK_INLINE void pk_write_group_rows(const pk_grouped *grouped, const pk_gathering *g, const pk_rows *rows, const double *T,
                          ptrdiff_t first, pk_shape shape, const pk_predictions_out *out)
{
    ptrdiff_t count = rows->n;
    double root = T[shape.p * shape.ld + shape.p];
    for (ptrdiff_t r = 0; r < count; r++) {
        ptrdiff_t i = grouped->order[first + r];
        double after = r + 1 < count ? g->residual[r + 1] : root * root;
        out->error[i] = g->error[r];
        out->leverage[i] = g->leverage[r];
        out->residual_gain[i] = after - g->residual[r];
    }
}

/* pk_learn_rows without discounts, for few rows: what is left of a flight flies, too. */
PK_INLINE void pk_learn_few(double *T, double *buffer, const pk_rows *rows, pk_shape shape, const pk_before *before)
{
    pk_pipeline flight = pk_new_pipeline(buffer, shape);
    int deficient = pk_is_deficient(T, shape);
    for (ptrdiff_t first = 0; first < rows->n;) {
        ptrdiff_t pairs = (rows->n - first) / 2 < PK_PAIRS ? (rows->n - first) / 2 : PK_PAIRS;
        if (deficient || pairs == 0 || pk_is_awkward(rows, first, 2 * pairs)) {
            pk_learn_row_by_rotations(T, buffer, rows, first, shape, before);
            deficient = deficient && pk_is_deficient(T, shape);
            first += 1;
        } else {
            pk_learn_together(T, &flight, rows, first, pairs, shape, before);
            first += 2 * pairs;
        }
    }
}

/* The same, and in a posterior triangle as well, on the group's prior, which tells of each row before it. priors
 * (n_priors, q, ld): that of slot s is s, or the last one. */
static void pk_predict_then_learn_groups(double *data, const double *priors, ptrdiff_t n_priors, double *buffer,
                                const pk_grouped *grouped, ptrdiff_t from, ptrdiff_t to, pk_shape shape,
                                pk_group_sums *tallies, const pk_predictions_out *out)
{
    pk_gathering g = pk_new_gathering(buffer, shape);
    pk_before before = {g.error, g.leverage, g.residual};
    ptrdiff_t end = grouped->offset[to], asked = 0;
    for (ptrdiff_t group = from; group < to; group++) {
        ptrdiff_t slot = grouped->slot[group], begin = grouped->offset[group], stop = grouped->offset[group + 1];
        double *T = g.T, *P = g.P;
        const double *prior = priors + (slot < n_priors ? slot : n_priors - 1) * PK_TRIANGLE_SIZE(shape);
        if (begin == stop)
            continue;
        if (group + 1 < to)
            pk_prefetch_triangle(data + grouped->slot[group + 1] * PK_PACKED_SIZE(shape), shape);
        pk_unpack_group(T, data, tallies, slot, shape);
        memcpy(g.spare, T, (size_t)PK_TRIANGLE_SIZE(shape) * sizeof(double));
        pk_stack(P, g.spare, prior, shape);
        ptrdiff_t most = grouped->discount < 1.0 ? 1 : PK_GATHERED;
        for (ptrdiff_t first = begin; first < stop; first += most) {
            ptrdiff_t count = stop - first < most ? stop - first : most;
            pk_rows rows = pk_gather(grouped, &g, first, count);
            pk_prefetch_group_rows(grouped, first, count, end, out);
            if (grouped->discount < 1.0) {
                /* The posterior of the row is that of its group's data, which have faded, and of the prior, which has not. */
                double known = P[shape.p * shape.ld + shape.p];
                pk_fade_one(T, g.held, g.panel, *pk_fading(grouped, &g, rows, tallies->count[slot] == 0.0).discounts, NULL, shape);
                memcpy(g.spare, T, (size_t)PK_TRIANGLE_SIZE(shape) * sizeof(double));
                pk_stack(P, g.spare, prior, shape);
                pk_learn_row_by_rotations(P, g.flight, &rows, 0, shape, &before);
                g.residual[0] = known * known;
                pk_write_group_rows(grouped, &g, &rows, P, first, shape, out);
                pk_learn_row_by_rotations(T, g.flight, &rows, 0, shape, &before);
            } else {
                pk_learn_few(P, g.flight, &rows, shape, &before);
                pk_write_group_rows(grouped, &g, &rows, P, first, shape, out);
                if (pk_uses_panels(count, shape))
                    pk_append_panels(T, g.panel, grouped, first, first + count, end, shape, &asked);
                else
                    pk_append_rows_at_once(T, g.panel, grouped, first, first + count, end, shape);
            }
            pk_add_to_group_sums(grouped, tallies, slot, first, count, out->count_gain);
        }
        pk_pack(data + slot * PK_PACKED_SIZE(shape), T, shape);
    }
}

#endif
