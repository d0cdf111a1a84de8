"""Checks across the fields of a file: lengths, shapes, order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posterity.evidence.members import use_single_node
from posterity.factor import Factor
from posterity.files.ranges import SMALLEST
from posterity.files.registry import POSTERIORS, name_of
from posterity.files.relations import RELATIONS, know_features
from posterity.files.shapes import have_shapes
from posterity.kernel import leading_dimension
from posterity.likelihoods.parameter import Parameter
from posterity.posteriors.joint_parameters import JointParameters
from posterity.posteriors.phi import KEPT, LearnedParameter
from posterity.posteriors.switching import NOISE_MEMORIES

# Triangles in one bank: far more than any use, and no way to ask for all of the memory.
MOST_RUNS = 1_000_000
# Rows that a model can have learned: a thousand years of a microsecond each.
MOST_ROWS = 2**55
# Rounding of what rows tell of a weight, relative to what the prior does.
ROUNDING = 1e-6


def check(name: str, made: object) -> None:
    """Raise ``ValueError`` when the parts of an object do not fit together.

    Lengths that go together are in :mod:`posterity.files.shapes`, and what numbers may be in
    :mod:`posterity.files.ranges`: here is the rest.
    """
    check_own = getattr(made, "_check_parameters", None)
    if check_own is not None:
        check_own()
    parts_fit = _CHECKS.get(name) or RELATIONS.get(name)
    if not have_shapes(name, made) or (parts_fit is not None and not parts_fit(made)):
        raise ValueError(f"the parts of a {name} do not have matching shapes")


def _posterior(posterior: Any) -> bool:
    prior, factor = posterior.prior, posterior.factor
    return prior.n_targets == factor.n_targets and _check_lengths(
        prior, factor, posterior.intercept
    )


def _check_lengths(prior: Factor, factor: Factor, intercept: bool) -> bool:
    return prior.n_coefficients == factor.n_coefficients >= int(intercept)


def _linear(posterior: Any) -> bool:
    tally, kept = posterior.tally, posterior.stored_rows
    well = _posterior(posterior) and posterior.memory.forgets == (tally is not None)
    return well and (tally is None or tally.shape == (1,)) and _kept_rows(posterior, kept)


def _kept_rows(posterior: Any, kept: Any) -> bool:
    n_features = posterior.n_coefficients - int(posterior.intercept)
    if kept is None:
        return posterior.memory.keep_rows(n_features) is None
    n = len(kept.weights)
    return (
        # Rows in units of their noise bring the intercept's column.
        kept.X.shape in ((n, n_features), (n, posterior.n_coefficients))
        and kept.y.shape == (n, posterior.factor.n_targets)
        and kept.weights.shape == kept.times.shape == (n,)
        and bool((np.diff(kept.times) >= 0.0).all())
    )


def _are_posteriors(*members: Any) -> bool:
    return (
        len(members) > 0
        and all((name_of(type(one)) or "") in POSTERIORS for one in members)
        and len({one.n_coefficients for one in members}) == 1
    )


def _check_window(known: Any) -> bool:
    return (
        _are_posteriors(known.fresh, known.fitted)
        and known.rows.X.shape[1] == known.fresh.n_features
        and bool((np.diff(known.rows.times) >= 0.0).all())
    )


def _check_switching(known: Any) -> bool:
    k, rates, noises = len(known.members), len(known.persistence), known.noises
    return (
        _are_posteriors(*known.members)
        and known.scores.members.shape == (rates, leading_dimension(k))
        and known.scores.rates.shape == (leading_dimension(rates),)
        and (
            noises is None
            or (
                noises.shape == (k, 4, len(NOISE_MEMORIES))
                and bool((noises[:, [0, 1, 3]] >= 0.0).all())
                and all(map(_has_single_node, known.members))
            )
        )
    )


def _has_single_node(posterior: Any) -> bool:
    strategy = getattr(posterior, "strategy", None)
    inner = getattr(strategy, "strategy", strategy)
    return inner is None or use_single_node(inner) == inner


def _check_runs(runs: Any) -> bool:
    """Return True if there is a run, and each is one of rows that have come."""
    probability = runs.probability[: runs.size]
    return (
        len(runs.changes) == runs.size > 0
        and bool((runs.first <= runs.row).all())
        and bool((probability >= 0.0).all() and probability.sum() > 0.0)
        and _are_posteriors(runs.fresh)
    )


def _check_banked_runs(runs: Any) -> bool:
    q, start = runs.fresh.n_coefficients + 1, runs.latest_start
    return (
        _check_runs(runs)
        and _posterior(runs.fresh)
        and runs.bank.n_coefficients == q - 1
        and len(runs.first) == len(runs.bank.room) - 1 == runs.strategy.max_runs + 1
        and (start is None or start.triangle.shape == (q, leading_dimension(q)))
    )


def _check_regimes(runs: Any) -> bool:
    return (
        _check_runs(runs)
        and _are_posteriors(runs.fresh, *runs.members)
        and len(runs.members) == len(runs.first) == runs.size
    )


def _evidence(posterior: Any) -> bool:
    stream, scales = posterior.state.stream, posterior.state.scales
    m = posterior.n_coefficients - int(posterior.intercept)
    members = [] if stream is None else stream.posteriors
    return (
        _linear(posterior)
        and len(posterior.mean) == m
        and posterior.state.clock[0] <= MOST_ROWS
        and all(one.n_coefficients == posterior.n_coefficients for one in members)
        and (scales is None or len(scales.mean) == m)
    )


def _nodes(nodes: Any) -> bool:
    k = len(nodes.posteriors)
    return k > 0 and nodes.choice.weights.shape == (k,)


def _check_wrapped(posterior: Any) -> bool:
    phi, prior = posterior.statistics.phi, posterior.likelihood.parameter
    for rows in (posterior.statistics.start, posterior.statistics.skewed):
        if rows is not None:
            posterior.likelihood.check_targets(rows.y)
    return (
        _posterior(posterior)
        and posterior.inner.n_coefficients == posterior.n_coefficients
        and (phi is None or _is_parameter(phi, prior) or _are_parameters(phi, posterior))
    )


def _are_parameters(phi: Any, posterior: Any) -> bool:
    if not isinstance(phi, JointParameters):
        return False
    d, p = len(posterior.likelihood.parameters), posterior.n_coefficients
    shapes = [one.shape for one in (phi.mean, phi.covariance, *phi.told)]
    return (
        shapes == [(d,), (d, d), (d, d), (p, d), (d,)]
        and min(phi.rows, phi.due) >= 0.0
        and all((np.linalg.eigvalsh(one) > 0.0).all() for one in (phi.covariance, phi.told[0]))
    )


def _is_parameter(phi: Any, prior: Parameter | None) -> bool:
    if prior is None or not isinstance(phi, LearnedParameter):
        return False
    low, high = prior.ends
    return (
        phi.recent.shape == (KEPT[0],)
        and low <= phi.mean <= high
        and min(phi.rows, phi.n_recent, phi.due) >= 0.0
    )


def _check_heteroscedastic(posterior: Any) -> bool:
    statistics, m = posterior.statistics, posterior.n_coefficients - int(posterior.intercept)
    return (
        _posterior(posterior)
        and posterior.mean.n_coefficients == posterior.n_coefficients
        and posterior.mean.intercept == posterior.intercept
        and posterior.spread.n_coefficients == statistics.rule.n_coefficients == m + 1
        and len(statistics.centre) == m
    )


def _check_quantiles(posterior: Any) -> bool:
    each = posterior.each
    return (
        _are_posteriors(*each)
        and len(each) == len(posterior.quantiles)
        and len({one.intercept for one in each}) == 1
    )


def _diagonal(posterior: Any) -> bool:
    size, (columns, members) = len(posterior.owners), posterior.precision.shape
    return (
        posterior.beliefs.shape == (2 * members * size,)
        and bool((posterior.scores < np.inf).all() and np.isfinite(posterior.scores).any())
        and (not posterior.likelihood.is_noise or bool((posterior.rates >= SMALLEST).all()))
        and size >= 1
        and columns >= 2
        and 1 <= posterior.members <= members
        and bool((posterior.owners < columns).all())
        and posterior.likelihood.kernel_code is not None
        and know_features(posterior)
        and _is_proper(posterior)
    )


def _is_proper(posterior: Any) -> bool:
    """Return True if weights have means and variances, or rows tell nothing of them.

    Rows never tell less than nothing, up to rounding.
    """
    prior = posterior.compute_prior_precisions(np.arange(len(posterior.owners)))
    known, shift = posterior.beliefs.reshape(-1, 2, prior.shape[1]).swapaxes(0, 1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        variance = 1.0 / (prior + known)
        usable = np.isfinite(variance) & np.isfinite(variance * shift)
    nothing = (known == 0.0) & (shift == 0.0)
    return bool((known >= -ROUNDING * prior).all() and (usable | nothing).all())


def _centres(centres: Any) -> bool:
    return (
        bool((centres.features >= 1).all() and (np.diff(centres.features) > 0).all())
        and min(centres.n_rows, centres.weight) >= 0.0
        and centres.due >= 1.0
    )


def _grouped(posterior: Any) -> bool:
    p, belief = posterior.bank.n_coefficients, posterior.belief
    samples = [one for one in (posterior.sample, posterior.small_sample) if one is not None]
    return (
        len(belief.mean) == p
        and (belief.precision is None or belief.precision.n_coefficients == p)
        and p >= int(posterior.intercept)
        and posterior.discount <= 1.0
        and len(samples) != 1
        and all(sample.rows.shape[1:] == (p, p + 1) for sample in samples)
        and (posterior.row_space is None or posterior.row_space.n_coefficients == p)
        and posterior.n_zero_weight <= posterior.bank.clock
        and (posterior.sites is None or _are_of_bank(posterior.sites.rows, posterior.bank))
    )


def _are_of_bank(rows: Any, bank: Any) -> bool:
    """Return True if kept rows of groups, if there are any, are of the groups in a bank."""
    if rows is None:
        return True
    slots, numbers = rows.slots, rows.numbers
    return bool(
        rows.X.shape[1] + int(rows.intercept) == bank.n_coefficients
        and np.all((slots >= 0) & (slots < bank.size))
        and np.all((numbers >= 0) & (numbers < len(slots)))
    )


def _shared_prior(prior: Any) -> bool:
    q = len(prior.mean) + 1
    return prior.priors.shape[1:] == (q, leading_dimension(q)) and len(prior.priors) > 0


def _check_key_index(index: Any) -> bool:
    known = {"numbers", "text", "dates", "other", "none"}
    return index.is_distinct and known.issuperset(index.kinds)


def _contrasts(posterior: Any) -> bool:
    k, p = posterior.n_classes, posterior.n_columns
    sizes = [p] * k if posterior.separate else [(k - 1) * p]
    return k >= 2 and p >= 0 and [part.n_coefficients for part in posterior.parts] == sizes


def _softmax(posterior: Any) -> bool:
    contrasts, prior, recent = posterior.contrasts, posterior.prior, posterior.recent
    k, p = contrasts.n_classes, contrasts.n_columns
    roots = [(p, p)] if contrasts.separate else [(p, p), (k - 1, p, p)]
    base = contrasts if recent is None else recent.base
    shape = base.separate, base.n_classes, base.n_columns
    return prior.root.shape in roots and shape == (contrasts.separate, k, p)


def _check_recent_rows(recent: Any) -> bool:
    return (
        recent.X.shape[1] == recent.base.n_columns
        and bool((recent.labels < recent.base.n_classes).all())
        and recent.fresh <= len(recent.weights)
    )


def _panel(panel: Any) -> bool:
    return (
        len(panel.ids) == len(panel.values)
        and panel.columns.shape[2] == len(panel.names)
        and not np.isinf(panel.values).any()
    )


def _check_factorization(posterior: Any) -> bool:
    n_sides, p = posterior.prior_means.shape
    sizes = np.array([len(mean) for mean in posterior.means])
    return (
        not (posterior.labels and not np.isin(posterior.y, (0.0, 1.0)).all())
        and len(posterior.means) == len(posterior.covariances) == n_sides
        and all(mean.shape == (size, p) for mean, size in zip(posterior.means, sizes, strict=True))
        and all(
            spread.shape == (size, p, p)
            and bool((np.diagonal(spread, axis1=1, axis2=2) >= 0.0).all())
            for each in (posterior.covariances, posterior.precisions)
            for spread, size in zip(each, sizes, strict=True)
        )
        and all(one.shape == (size, p) for one, size in zip(posterior.products, sizes, strict=True))
        and bool((posterior.codes < sizes).all())
        and min(posterior.noise_shape, posterior.noise_rate) > 0.0
    )


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "LinearPosterior": _linear,
    "RefittedWindow": _check_window,
    "Switching": _check_switching,
    "Strategies": _check_switching,
    "BankedRuns": _check_banked_runs,
    "Regimes": _check_regimes,
    "EvidencePosterior": _evidence,
    "Nodes": _nodes,
    "GeneralizedPosterior": _check_wrapped,
    "HeteroscedasticPosterior": _check_heteroscedastic,
    "QuantilesPosterior": _check_quantiles,
    "Panel": _panel,
    "Centres": _centres,
    "DiagonalPosterior": _diagonal,
    "FactorizationPosterior": _check_factorization,
    "GroupedPosterior": _grouped,
    "SharedPrior": _shared_prior,
    "KeyIndex": _check_key_index,
    "Contrasts": _contrasts,
    "SoftmaxPosterior": _softmax,
    "RecentRows": _check_recent_rows,
}
