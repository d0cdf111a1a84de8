"""The posterior of many groups: the triangle of each, and the prior that they share.

The rows of each group are kept as a triangle of their own, under a flat prior; the prior stands
apart and can be learned anew at any time, from the triangles alone. A group's posterior is the
prior's rows stacked on its triangle, which is done where it is asked for.

What is predicted, of a row right before it is learned or of any other, rests on a prior that is
learned anew at certain numbers of rows, the updates, whoever learned them and how
(:mod:`posterity.posteriors._group_turns`). An update stores a sample of the groups, from which the
prior can be learned later. Reading changes nothing. Results about all groups use a prior learned
from all rows so far.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.distributions.expected import expect
from posterity.evidence.group_noises import GivenPrior
from posterity.evidence.group_variances import count_flat
from posterity.evidence.groups import EtaScale, GroupSample, SharedPrior
from posterity.factor import Factor
from posterity.factor.grouped import (
    GroupBank,
    NotInGroupError,
    predict_rows,
    solve_groups,
)
from posterity.factor.grouped_rows import GroupedRows
from posterity.factor.packed import unpacked
from posterity.factor.usable import LARGEST
from posterity.kernel import ArmsPath, GroupPath
from posterity.likelihoods import Likelihood
from posterity.noise import Noise
from posterity.posteriors._group_belief import GroupBelief, PriorAndNoise
from posterity.posteriors._group_noise import (
    compute_own_noise,
    cumulate,
    cumulate_by_group,
    find_t_quantile,
    find_t_quantiles,
    floor_faded,
    lack_rewards,
    predict_new_groups,
    sum_residuals,
    take_groups,
)
from posterity.posteriors._group_samples import LateBank, LateSample, sample_groups
from posterity.posteriors._group_sites import GroupSites
from posterity.posteriors._group_turns import (
    compute_row_space,
    find_last_new_direction,
    find_outside_rows,
    find_stretch,
    find_updates_around,
)
from posterity.transaction import run_steps

Slots = Indices

# The shared prior is learned from at most this many groups, drawn evenly; and its tolerance.
MOST_GROUPS, TOLERANCE = 2048, 1e-4
# The prior of a stream is learned often, from fewer groups and less exactly.
STREAM_GROUPS, STREAM_TOLERANCE = 512, 0.1
# Where normal distributions stand for others, these have the same quantile.
ONE_SD = 0.841


@dataclass
class GroupedPosterior:
    """Posterior of groups: a bank of triangles, and the statistics that the prior is learned from.

    ``sample`` has the groups as they were at the last update of the prior, and ``small_sample``
    has fewer of them. Both are None where the groups as they are now serve instead: after all was
    learned at once, rows were unlearned or groups were merged. The number of rows is the bank's
    clock less ``n_zero_weight``, the rows of weight 0; the prior is updated again at
    ``next_update`` rows. ``row_space`` is a factor of the directions of all rows, or None if they
    span all directions. ``changed_since_update`` says whether rows were learned since the update.
    Three fields are caches: ``prior``, the stream's, is learned from ``small_sample``, ``read``
    from ``sample``, and ``newest_reading`` from all rows. ``noise_residual`` and ``noise_count``
    are the residual and the count of the noise under the stream's prior, None until needed: of
    the groups in the sample and, where these are all groups, of all rows since. ``sites`` are None
    where targets are normal.
    """

    belief: GroupBelief
    noise: Noise
    intercept: bool
    discount: float
    bank: GroupBank
    sites: GroupSites | None = None
    sample: GroupSample | LateSample | None = None
    small_sample: GroupSample | LateSample | None = None
    n_zero_weight: int = 0
    next_update: int = 0
    row_space: Factor | None = None
    changed_since_update: bool = False
    noise_residual: float | None = None
    noise_count: float = 0.0
    prior: SharedPrior | None = None
    read: PriorAndNoise | None = None
    newest_reading: PriorAndNoise | None = None

    improper: ClassVar[None] = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"newest_reading": None}

    def copy(self) -> GroupedPosterior:
        """An independent copy."""
        twin = copy.copy(self)
        if self.sample is not None:
            self.sample.read()  # which follows the changes of one bank alone
        twin.bank = self.bank.copy()
        twin.row_space = None if self.row_space is None else self.row_space.copy()
        return twin

    def has_same_prior(self, other: GroupedPosterior) -> bool:
        """Return True if both have the same parameters, so that they can be merged."""
        return (
            self.noise == other.noise
            and self.intercept == other.intercept
            and self.discount == other.discount
            and self.belief.is_same(other.belief)
            and self.likelihood == other.likelihood
        )

    @property
    def likelihood(self) -> Likelihood | None:
        """The likelihood of targets; None where they are normal."""
        return None if self.sites is None else self.sites.likelihood

    def with_groups(self, which: Mask) -> GroupedPosterior:
        """A posterior with the same prior, for some of the groups."""
        bank, sites = self.bank.select(which), self.sites
        if sites is not None:
            sites = sites.of_groups(which, np.cumsum(which) - 1)
        return GroupedPosterior(self.belief, self.noise, self.intercept, self.discount, bank, sites)

    # ---- learning ------------------------------------------------------------------------------

    def fit(self, rows: GroupedRows) -> None:
        """Learn rows all at once: they all are what the stream goes on from.

        As :meth:`learn` takes them.
        """
        self._append(rows, settles=True)
        if self.sites is not None:  # the next row finds its site under it
            self._get_stream_prior()

    def learn(self, rows: GroupedRows) -> None:
        """Learn rows, which are usable (:func:`posterity.factor.grouped_rows.check_together`).

        If they are not, ``FloatingPointError`` is raised, and this is of no use any more.
        """
        self._start_stream()
        n, total = len(rows), self.rows + len(rows)
        opening, self.row_space = find_last_new_direction(
            rows.X, self.row_space, intercept=self.intercept
        )
        last, due = find_updates_around(total, self._n_directions)
        cut = max(last - self.rows, opening, 0)
        if cut:
            self._append(rows.part(0, cut), settles=True)
            self._update_stream_prior()
        if cut < n:
            self._append(rows.part(cut, n), settles=False)
        self.next_update = due

    def forget_reading(self) -> None:
        """Drop what was read from all rows: one more was learned."""
        self.newest_reading = None

    def learn_row(
        self, path: GroupPath, slot: int, x: Any, y: float, weight: float, offset: float = 0.0
    ) -> bool:
        """Learn a row of a group in the bank by the compiled path.

        False, and nothing happens, where it must be learned in another way: the row weighs
        nothing, or something else than 1 where data fade, or the prior is updated after it.
        """
        if self.sample is None or self.rows + 1 >= self.next_update:
            return False
        if not weight > 0.0 or (self.discount < 1.0 and not (weight == 1.0 and abs(y) < LARGEST)):
            return False
        span = self.row_space
        if span is not None and path.predict_in(self.bank, -1, x, span.triangle)[1] == np.inf:
            return False
        if self.noise_residual is not None or not self.changed_since_update:
            return False  # the first row after an update: more than one thing changes
        if slot in self.sample.left:
            self.sample.keep((slot,))
        self.newest_reading = None
        if self.sites is not None:
            return self._learn_site(self.sites, path, slot, x, (y, weight, offset))
        if self.discount == 1.0:
            path.learn_in(self.bank, slot, x, y, weight)
            return True
        path.values(x)  # which refuses them before anything fades
        run_steps([*self._fade(slot), partial(path.learn_in, self.bank, slot, x, y, weight)])
        return True

    def _fade(self, slot: int) -> Sequence[Callable[[], object]]:
        """Steps by which what a group learned fades; nothing does before its first row."""
        halves, count = self.bank.packed[slot], self.bank.count
        left = self.discount if count[slot] > 0.0 else 1.0
        fade = partial(np.multiply, halves, np.sqrt(left), halves)
        return fade, partial(count.__setitem__, slot, left * count[slot])

    def _learn_site(
        self, sites: GroupSites, path: GroupPath, slot: int, x: Any, given: tuple[float, ...]
    ) -> bool:
        """The same under a likelihood; ``given`` are target, weight and offset."""
        bank, prior, q = self.bank, self._get_stream_prior().of_group(slot), np.array(given)
        if not isfinite(given[0]):
            return False
        place = np.zeros(1, dtype=np.int32), np.array([slot])
        one = GroupedRows(path.values(x), q[:1], q[1:2], self.intercept, *place, q[2:])
        found = sites.find_site(one, path.predict_in(bank, slot, x, prior))
        if found is None:
            return False
        target, precision, known = found
        sums = bank.count, bank.seen  # a row counts by its weight, not by its site's
        tallies = [partial(each.__setitem__, slot, each[slot] + given[1]) for each in sums]
        learn = partial(path.learn_in, bank, slot, x, target, precision)
        run_steps([learn, *tallies, partial(setattr, self, "sites", known)])
        return True

    def next_update_at(self) -> int:
        """The bank's clock at the next update; until then rows change only their triangles.

        Those in the row space, that is. 0 where they change more: see :meth:`learn_row`.
        """
        if self.sample is None or self.discount < 1.0 or self.sites is not None:
            return 0
        if self.noise_residual is not None or not self.changed_since_update:
            return 0
        self.sample.read()
        return self.next_update + self.n_zero_weight

    def predict_then_learn(self, rows: GroupedRows) -> Any:
        """Learn row after row; returns the distribution of each target before its row."""
        n = len(rows)
        predictions, noise, first = np.empty((4, n)), np.empty((2, n)), 0
        residual, residual_df = noise
        self._start_stream()
        self.bank.reserve(int(rows.slots.max(initial=-1)) + 1)
        while first < n:
            left = max(self.next_update - self.rows, 1)
            stop, opens, self.row_space = find_stretch(rows, first, left, self.row_space)
            part, some = rows.part(first, stop), slice(first, stop)
            self._predict_then_learn_part(part, predictions[:, some], noise[:, some])
            if opens and self.belief.learns_covariance:  # of a new direction nothing was known
                predictions[1, stop - 1] = np.inf
            self.n_zero_weight += (
                0 if part.weights is None else int(np.count_nonzero(part.weights == 0.0))
            )
            if opens or self.rows >= self.next_update:
                self.next_update = find_updates_around(self.rows, self._n_directions)[1]
                self._settle_kept_rows()
                self._update_stream_prior()
            first = stop
        mean = np.subtract(rows.y, predictions[0], out=predictions[0])
        if self.sites is not None:
            return self.sites.predictive(mean, predictions[1], of_mean=False)
        return self.noise.predictive(
            mean, predictions[1], residual_df, np.maximum(residual, 0.0, out=residual)
        )

    def remove(self, rows: GroupedRows) -> None:
        """Unlearn rows; raises ``ValueError`` when their groups can't have learned them."""
        if self.discount < 1.0:
            raise ValueError(
                "can't unlearn rows under forgetting: the weight of a row depends on its age; "
                "fit the remaining rows again"
            )
        if self.sites is not None:
            self.sites = self.sites.without(rows)
            self._settle_kept_rows()
            self._use_all_groups()
            return
        try:
            self.bank.remove(rows)
        except NotInGroupError as error:
            raise ValueError(
                f"row {error.row}, or another row of its group, was never learned, or was "
                "unlearned already: unlearn each learned row once (nothing was changed)"
            ) from error
        self._use_all_groups()

    def merge(self, other: GroupedPosterior, slots: Slots) -> None:
        """Learn all that ``other`` learned of groups that are at ``slots`` here."""
        self._use_all_groups()
        size = self.bank.size
        self.bank.grow(int(slots.max(initial=-1)) + 1)
        self.bank.merge(other.bank, slots)
        if self.sites is not None and other.sites is not None:
            self.sites = self.sites.merge(other.sites, slots, begins=size == 0)
            self._settle_kept_rows()

    def keep(self, which: Mask) -> None:
        """Drop the groups for which ``which`` is False; the prior is then learned from the rest."""
        self._use_all_groups()
        self.bank.keep(which)
        if self.sites is not None:
            self.sites = self.sites.of_groups(which, np.cumsum(which) - 1)

    # ---- reading -------------------------------------------------------------------------------

    def predictive(
        self, X: Array, slots: Slots, *, of_mean: bool = False, offsets: Array | float = 0.0
    ) -> Any:
        """Distribution of new observations in the groups at ``slots``, -1 for unknown ones.

        With ``of_mean`` of their means: as without their own noise, the 1. ``offsets`` are those
        of linear predictors, under a likelihood.
        """
        reading = self.reading()
        mean, leverage = self.compute_means_and_leverages(X, slots)
        if self.sites is not None:
            return self.sites.predictive(mean + offsets, leverage, of_mean=of_mean)
        noise = self._read_noise(reading, slots, leverage, of_mean=of_mean)
        leverage = leverage - float(of_mean)
        return self.noise.predictive(mean, leverage, *noise)

    def arms_path(self, slots: Slots, names: Any) -> ArmsPath:
        """Return the compiled path that chooses among groups at ``slots``, -1 for unknown ones."""
        reading, q = self.reading(), self.bank.n_coefficients + 1
        triangles = np.empty((len(slots), *reading.prior.new_group_prior.shape))
        triangles[:] = reading.prior.new_group_prior
        some = slots >= 0
        triangles[some] = unpacked(self.bank.posteriors(reading.prior.priors, slots[some]), q)
        first = np.append(lack_rewards(self.bank), True)[slots]
        noise = self._read_scales(reading, slots, triangles[:, q - 1, q - 1])
        path = ArmsPath(triangles, self.intercept, names, *noise, slots, first)
        path.use_prior_precision(self)
        return path

    def predict_row(self, path: GroupPath, slot: int, x: Any) -> float:
        """Mean at one row by the compiled path; slot -1 is that of an unknown group."""
        prior = self.reading().prior.of_group(slot)
        mean, leverage = path.predict_in(self.bank, slot, x, prior)
        if self.sites is None:
            return mean
        moments = np.array([mean]), np.array([leverage])
        return float(expect(self.sites.predictive(*moments, of_mean=False))[0])

    def reading(self) -> PriorAndNoise:
        """The prior and noise that predictions use: those of the last update, or of all rows."""
        if self.read is None:
            self.read = self._make_reading(self._read_sample())
        return self.read

    def learn_exact_prior(self) -> PriorAndNoise:
        """The prior learned from all rows so far, and the noise with it."""
        if self.newest_reading is None:
            reading = self.reading()
            if self.sample is not None:
                reading = self._make_reading(sample_groups(self.bank, MOST_GROUPS))
            if self.bank.size > MOST_GROUPS:
                residual_df = float(self.bank.count.sum()) - self._count_flat_directions(
                    self.bank.size, reading.prior
                )
                residual = sum_residuals(self.bank.posteriors(reading.prior.priors))
                reading = PriorAndNoise(reading.prior, residual_df, residual)
            self.newest_reading = reading
        return self.newest_reading

    def compare_groups(self, slots: Slots) -> tuple[Array, Array]:
        """By how much groups at ``slots`` differ: (g,) ratios of the prior, variances of noise.

        The ratios are :class:`SharedPrior`'s, variances relative to the noise of all groups; both
        are 1 where groups are alike.
        """
        exact = self.learn_exact_prior()
        ratio, noise = np.ones((2, len(slots)))
        if exact.prior.ratio is not None:
            ratio = take_groups(exact.prior.ratio, slots)
        if exact.prior.own_noise is not None:
            count, residual = compute_own_noise(self.bank, exact.prior, slots)
            noise = residual / count * self.noise.precision(exact.residual_df, exact.residual)
        return ratio, noise

    def coefficients(self) -> Array:
        """(groups, p) posterior means, the intercept first."""
        bank = self.bank
        return solve_groups(
            bank.posteriors(self.learn_exact_prior().prior.priors), bank.n_coefficients
        )

    @property
    def log_evidence(self) -> float:
        """log p(y) under the prior in use; flat directions have density 1."""
        exact = self.learn_exact_prior()
        prior, bank = exact.prior, self.bank
        if bank.size > MOST_GROUPS:
            known = sample_groups(bank, bank.size), prior.root, prior.mean
            prior = GivenPrior(*known, self.belief.free, self._scale).share()
        value = self.noise.log_evidence(exact.residual_df, prior.residual, prior.log_determinants)
        return value if self.sites is None else value + self.sites.log_scale

    # ---- inner ---------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Number of rows of positive weight."""
        return self.bank.clock - self.n_zero_weight

    def _count_flat_directions(self, groups: Any, prior: SharedPrior | None = None) -> Any:
        """Count flat directions given so many ``groups``: of learned means and a given prior."""
        precision = self.belief.precision
        each = 0 if precision is None else precision.n_coefficients - precision.rank
        return (prior or self._get_stream_prior()).n_means + each * groups

    def _append(self, rows: GroupedRows, *, settles: bool) -> None:
        """Learn rows together, under a likelihood at best again with all others."""
        self.newest_reading, self.noise_residual, self.changed_since_update = None, None, True
        bank, begins = self.bank, self.bank.size == 0
        if self.sample is not None:
            self.sample.keep(rows.slots.tolist())
        bank.grow(int(rows.slots.max(initial=-1)) + 1)
        if self.sites is None:
            bank.learn(rows, self.discount)
            return
        kept = self.sites.join(rows, begins=begins)
        if settles and kept is not None:
            bank.date(rows, bank.clock)
            self._settle(kept, bank)
        else:
            priors = self._get_stream_prior().priors
            self.sites = self.sites.learn_together(bank, rows, priors)
        self.sites = self.sites.with_rows(kept)

    def _settle_kept_rows(self) -> None:
        """Find the sites of kept rows, if there are any, and the prior again."""
        if self.sites is not None and self.sites.rows is not None:
            self._settle(self.sites.rows, self.bank)

    def _settle(self, rows: GroupedRows, bank: GroupBank) -> None:
        """Find the sites of rows, those of all groups, and the prior that they choose."""
        assert self.sites is not None
        near = self._get_stream_prior() if self.sample is not None else None
        self.bank, self.sites = self.sites.settle(rows, bank, self._choose_prior, near)

    def _choose_prior(
        self, bank: GroupBank, tolerance: float, near: SharedPrior | None, scale: EtaScale | None
    ) -> SharedPrior:
        return self._learn_prior(sample_groups(bank, MOST_GROUPS), tolerance, near, scale)

    def _predict_then_learn_part(self, rows: GroupedRows, out: Array, noise: Array) -> None:
        """Learn rows, say what each was before it, and account for the noise they bring.

        ``noise`` (2, n) is that before each row: its residual, and its count less flat directions.
        """
        bank, prior, before = self.bank, self._get_stream_prior(), self._get_stream_noise()
        priors, self.newest_reading, begins = prior.priors, None, bank.size == 0
        own = None if prior.own_noise is None else compute_own_noise(bank, prior, rows.slots)[::-1]
        groups, known = self._count_groups_by_row(rows, bank.size), bank.size
        bank.grow(int(rows.slots.max(initial=-1)) + 1)
        if self.sites is not None:
            kept = self.sites.join(rows, begins=begins)
            self.sites = self.sites.learn_in_order(bank, rows, priors, out[:2]).with_rows(kept)
            out[0], noise[...] = rows.y - out[0], 0.0
            return
        bank.predict_then_learn_rows(rows, priors, self.discount, out)
        if rows.weights is None and self.discount == 1.0:
            out[3] = 1.0  # which the bank leaves out
        if own is not None:
            cumulate_by_group(rows.numbers, own, out[2:], noise)
            floor_faded(self.discount, prior, noise[::-1])
            which, firsts = np.unique(rows.numbers, return_index=True)
            common = self._with_noise(self._read_small_sample(), prior)
            precision = self.noise.precision(common.residual_df, common.residual)
            new = firsts[rows.slots[which] >= known]
            predict_new_groups(prior, precision, new, out[1], noise[::-1])
            return
        if not self._uses_all_groups:
            out[2:] = 0.0  # until the next update the noise is that of some groups
        assert self.noise_residual is not None
        self.noise_residual += float(out[2].sum())
        self.noise_count += float(out[3].sum())
        for start, gains, sums in zip(before, out[2:], noise, strict=True):
            cumulate(start, gains, sums)
        noise[1] -= self._count_flat_directions(groups)

    def _count_groups_by_row(self, rows: GroupedRows, known: int) -> Array | int:
        """Count the groups that the noise is of by each row, those that begin here included."""
        if not self._uses_all_groups:
            return STREAM_GROUPS
        return np.maximum(np.maximum.accumulate(rows.slots[rows.numbers]) + 1, known)

    def _learn_prior(
        self,
        sample: GroupSample,
        tolerance: float,
        near: SharedPrior | None = None,
        scale: EtaScale | None = None,
    ) -> SharedPrior:
        return self.belief.prior(
            sample,
            self.noise,
            intercept=self.intercept,
            tolerance=tolerance,
            near=near,
            scale=scale or self._scale,
        )

    @property
    def _scale(self) -> EtaScale | None:
        """What is known beforehand of eta; None where targets are normal."""
        return None if self.sites is None else self.sites.scale(self.intercept)

    # ---- the stream ----------------------------------------------------------------------------

    def _use_all_groups(self) -> None:
        """Let what is read and the stream rest on the groups as they are."""
        self.sample = self.small_sample = self.row_space = self.noise_residual = None
        self.prior = self.read = self.newest_reading = None

    def _start_stream(self) -> None:
        """Start the stream from the groups as they are, unless it has started."""
        if self.sample is None:
            prior, read = self.prior, self.read
            self._update_stream_prior()
            self.prior, self.read = prior, read  # from the same groups
            self.row_space = compute_row_space(self.bank)
            self.n_zero_weight = 0
            self.next_update = find_updates_around(self.rows, self._n_directions)[1]

    @property
    def _n_directions(self) -> int:
        """Number of directions of all rows."""
        return self.bank.n_coefficients if self.row_space is None else self.row_space.rank

    def _update_stream_prior(self) -> None:
        """The stream's prior is learned from the groups as they are now, once it is needed."""
        late = LateBank(self.bank, MOST_GROUPS)
        self.sample = self.small_sample = LateSample(late, MOST_GROUPS)
        if self.bank.size > STREAM_GROUPS:
            self.small_sample = LateSample(late, STREAM_GROUPS)
        self.prior = self.read = self.noise_residual = None
        self.changed_since_update = False

    def _read_sample(self) -> GroupSample:
        """The groups as they were at the last update; as they are before the stream."""
        return sample_groups(self.bank, MOST_GROUPS) if self.sample is None else self.sample.read()

    def _read_small_sample(self) -> GroupSample:
        """Fewer of them."""
        small = self.small_sample
        return sample_groups(self.bank, STREAM_GROUPS) if small is None else small.read()

    @property
    def _uses_all_groups(self) -> bool:
        """True if the sample at the last update has all groups."""
        return self._read_small_sample().is_whole

    def _get_stream_prior(self) -> SharedPrior:
        """The stream's prior, learned at the last update."""
        if self.prior is None:
            self.prior = self._learn_prior(self._read_small_sample(), STREAM_TOLERANCE)
        return self.prior

    def _get_stream_noise(self) -> tuple[float, float]:
        """Residual and count of the stream's noise.

        That of all groups together differs from the sum of theirs by what the means of the prior
        took at the update.
        """
        if self.noise_residual is None:
            sample, prior, bank = self._read_small_sample(), self._get_stream_prior(), self.bank
            residual, count = prior.residual, sample.count
            if self._uses_all_groups and self.changed_since_update:
                then = GroupBank.of(sample.rows).posteriors(prior.priors)
                now = sum_residuals(bank.posteriors(prior.priors))
                residual += now - sum_residuals(then) - sample.residual
                count = float(bank.count.sum())
            self.noise_residual, self.noise_count = residual, count
        return self.noise_residual, self.noise_count

    def _make_reading(self, sample: GroupSample) -> PriorAndNoise:
        return self._with_noise(sample, self._learn_prior(sample, TOLERANCE))

    def _with_noise(self, sample: GroupSample, prior: SharedPrior) -> PriorAndNoise:
        residual_df = sample.count - self._count_flat_directions(len(sample.rows), prior)
        return PriorAndNoise(prior, residual_df, prior.residual)

    def compute_means_and_leverages(self, X: Array, slots: Slots) -> tuple[Array, Array]:
        """Means (n,) and leverages (n,) of rows of the groups at ``slots``, -1 for unknown ones."""
        prior, bank, places = self.reading().prior, self.bank, slots
        some = None
        if len(slots) < bank.size:
            distinct, places = np.unique(slots, return_inverse=True)
            strangers = int(np.searchsorted(distinct, 0))
            some, places = distinct[strangers:], places.reshape(-1) - strangers
        posteriors = bank.posteriors(prior.priors, some)
        mean, leverage = predict_rows(
            posteriors, prior.new_group_prior, X, places, intercept=self.intercept
        )
        if self.belief.learns_covariance and not prior.root.any(axis=0).all():
            span = self.row_space if self.sample is not None else compute_row_space(bank)
            if span is not None:
                leverage[find_outside_rows(X, span, intercept=self.intercept)] = np.inf
        return mean, leverage

    def _read_noise(
        self, reading: PriorAndNoise, slots: Slots, leverage: Array, *, of_mean: bool
    ) -> tuple[Any, Any]:
        """Count and residual of the noise: of all groups, or of each row's at ``slots``.

        The leverages of new groups become relative to these.
        """
        prior = reading.prior
        if prior.own_noise is None:
            return reading.residual_df, reading.residual
        which, places = np.unique(slots, return_inverse=True)
        noise, new = compute_own_noise(self.bank, prior, which)[:, places.reshape(-1)], slots < 0
        floor_faded(self.discount, prior, noise)
        if of_mean and prior.ratio is not None:
            noise[:, new] = np.array([[reading.residual_df], [reading.residual]])
        else:
            common = self.noise.precision(reading.residual_df, reading.residual)
            predict_new_groups(prior, common, np.flatnonzero(new), leverage, noise)
        return noise[0], noise[1]

    def _read_scales(
        self, reading: PriorAndNoise, slots: Slots, roots: Array
    ) -> tuple[float, Array, Array]:
        """Degrees of freedom of expected targets, and the scale (g,) of each group at ``slots``.

        Also, where each has noise of its own, what it has beside the residual of its posterior, of
        which ``roots`` (g,) are the roots. Then expected targets are normal, of the same quantile
        one standard deviation above the mean.
        """
        own = reading.prior.own_noise
        if own is None:
            zeros: Any = np.zeros((2, 1))
            one = self.noise.predictive(zeros[0], zeros[1], reading.residual_df, reading.residual)
            df = float(getattr(one, "df", np.inf))
            return df, np.repeat(one.scale, len(slots)), np.zeros((0, 2))
        of_new = own[-1, 0] + count_flat(reading.prior)
        own = take_groups(own, slots)
        # Degrees of freedom as at the last update: the same holds until the next one.
        then = self.bank.count if self.sample is None else self.sample.counts
        degrees = own[:, 0] + take_groups(np.append(then, 0.0), slots)
        degrees = np.where(degrees > 0.0, degrees, of_new)
        stretch = find_t_quantiles(ONE_SD, degrees) / find_t_quantile(ONE_SD, np.inf)
        own[:, 0] += np.append(self.bank.count, 0.0)[slots]
        # Of groups with fewer rows than directions that the prior leaves open nothing is known.
        unknown = np.full(len(own), np.inf)
        variance = np.divide(own[:, 1] + roots**2, own[:, 0], out=unknown, where=own[:, 0] > 0.0)
        return np.inf, stretch * np.sqrt(variance), own


__all__ = ["GroupBelief", "GroupedPosterior", "PriorAndNoise"]
