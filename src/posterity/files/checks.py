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
from posterity.files.shapes import check_shapes
from posterity.kernel import leading_dimension
from posterity.likelihoods.parameter import Parameter
from posterity.posteriors.phi import KEPT, LearnedParameter
from posterity.posteriors.switching import NOISE_MEMORIES

# Triangles in one bank: far more than any use, and no way to ask for all of the memory.
MOST_RUNS = 1_000_000
# Rows that a model can have learned: a thousand years of a microsecond each.
MOST_ROWS = 2**55
# Rounding of what rows tell of a weight, relative to what the prior does.
ROUNDING = 1e-6


def check(name: str, made: Any) -> None:
    """Raise ``ValueError`` when the parts of an object do not fit together."""
    check_shapes(name, made)
    getattr(made, "_check_parameters", _do_nothing)()
    parts_fit = _CHECKS.get(name) or RELATIONS.get(name, _accept)
    if not parts_fit(made):
        raise ValueError(f"the parts of a {name} do not have matching shapes")


def _do_nothing() -> None: ...


def _accept(made: Any) -> bool:
    return True


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
        and kept.removed >= 0
        and bool((kept.weights >= 0.0).all() and np.isfinite(kept.times).all())
        and bool((np.diff(kept.times) >= 0.0).all())
        and bool(np.isfinite(kept.X).all() and np.isfinite(kept.y).all())
    )


def _are_posteriors(*members: Any) -> bool:
    return (
        len(members) > 0
        and all((name_of(type(one)) or "") in POSTERIORS for one in members)
        and len({one.n_coefficients for one in members}) == 1
    )


def _check_window(known: Any) -> bool:
    rows = known.rows
    n = len(rows.y)
    return (
        _are_posteriors(known.fresh, known.fitted)
        and rows.X.shape == (n, known.fresh.n_features)
        and rows.weights.shape == rows.times.shape == rows.offsets.shape == (n,)
        and bool((rows.weights >= 0.0).all() and (np.diff(rows.times) >= 0.0).all())
        and all(bool(np.isfinite(values).all()) for values in vars(rows).values())
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
                and bool(np.isfinite(noises).all() and (noises[:, [0, 1, 3]] >= 0.0).all())
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
    data, stream, scales = posterior.state.data, posterior.state.stream, posterior.state.scales
    m = posterior.n_coefficients - int(posterior.intercept)
    return (
        _posterior(posterior)
        and posterior.mean.shape == (m,)
        and (
            posterior.shapes is None
            or (posterior.shapes.ndim == 2 and posterior.shapes.shape[1] == m)
        )
        and posterior.state.clock.shape == (2,)
        and _is_clock(*posterior.state.clock)
        and data.n_coefficients == posterior.n_coefficients
        and data.intercept == posterior.intercept
        and (
            stream is None or all(n.n_coefficients == m + data.intercept for n in stream.posteriors)
        )
        and (scales is None or scales.mean.shape == scales.squares.shape == (m,))
    )


def _is_clock(rows: int, due: int) -> bool:
    return 0 <= rows <= MOST_ROWS and due >= 0


def _nodes(nodes: Any) -> bool:
    k = len(nodes.posteriors)
    choice = nodes.choice
    return (
        k > 0
        and nodes.log_weights.shape == choice.weights.shape == (k,)
        and choice.pinned.ndim == 1
    )


def _check_wrapped(posterior: Any) -> bool:
    phi, prior = posterior.statistics.phi, posterior.likelihood.parameter
    return (
        _posterior(posterior)
        and posterior.inner.n_coefficients == posterior.n_coefficients
        and (phi is None or _is_parameter(phi, prior))
    )


def _is_parameter(phi: LearnedParameter, prior: Parameter | None) -> bool:
    if prior is None:
        return False
    (low, high), values = prior.ends, [phi.value, phi.sd]
    rows = [phi.rows, phi.n_recent, phi.due]
    return (
        phi.recent.shape == (KEPT[0],)
        and low <= phi.mean <= high
        and 0.0 < min(values) <= max(values) < np.inf
        and 0.0 <= min(rows) <= max(rows) < np.inf
    )


def _check_heteroscedastic(posterior: Any) -> bool:
    statistics, m = posterior.statistics, posterior.n_coefficients - int(posterior.intercept)
    return (
        _posterior(posterior)
        and posterior.mean.n_coefficients == posterior.n_coefficients
        and posterior.mean.intercept == posterior.intercept
        and posterior.spread.n_coefficients == statistics.rule.n_coefficients == m + 1
        and statistics.centre.shape == statistics.at.shape == (m,)
        and statistics.clock.shape == (2,)
    )


def _check_quantiles(posterior: Any) -> bool:
    each = posterior.each
    return (
        0 < len(each) == len(posterior.quantiles)
        and all((name_of(type(one)) or "") in POSTERIORS for one in each)
        and len({(one.n_coefficients, one.intercept) for one in each}) == 1
    )


def _diagonal(posterior: Any) -> bool:
    size, columns, members = len(posterior.owners), len(posterior.squares), len(posterior.scores)
    clocks = posterior.clocks
    return (
        posterior.beliefs.shape == (2 * members * size,)
        and bool((posterior.scores < np.inf).all() and np.isfinite(posterior.scores).any())
        and (not posterior.likelihood.is_noise or bool((posterior.rates >= SMALLEST).all()))
        and size >= 1
        and columns >= 2
        and posterior.precision.shape == posterior.information.shape == (columns, members)
        and posterior.squares.shape == (columns, 2)
        and posterior.rates.shape == posterior.start.shape == (members,)
        and 1 <= posterior.members <= members
        and bool(((posterior.owners >= 0) & (posterior.owners < columns)).all())
        and (clocks is None or clocks.shape == (size,))
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
    return bool(
        (posterior.precision >= 0.0).all()
        and (known >= -ROUNDING * prior).all()
        and (usable | nothing).all()
    )


def _centres(centres: Any) -> bool:
    shape = centres.features.shape
    numbers = centres.values, centres.sums, centres.counts
    return (
        len(shape) == 1
        and all(part.shape == shape and bool(np.isfinite(part).all()) for part in numbers)
        and bool((centres.features >= 1).all() and (np.diff(centres.features) > 0).all())
        and centres.products.ndim == 2
        and centres.products.shape[1] == 3
        and bool((centres.products >= 0).all())
        and all(0.0 <= one < np.inf for one in (centres.n_rows, centres.weight))
        and 1.0 <= centres.due < np.inf
    )


def _grouped(posterior: Any) -> bool:
    p, belief = posterior.bank.n_coefficients, posterior.belief
    samples = [one for one in (posterior.sample, posterior.small_sample) if one is not None]
    return (
        belief.mean.shape == belief.free.shape == (p,)
        and (belief.precision is None or belief.precision.n_coefficients == p)
        and p >= int(posterior.intercept)
        and 0.0 < posterior.discount <= 1.0
        and len(samples) != 1
        and all(sample.rows.shape[1:] == (p, p + 1) for sample in samples)
        and (posterior.row_space is None or posterior.row_space.n_coefficients == p)
        and 0 <= posterior.n_zero_weight <= posterior.bank.clock
    )


def _group_sample(sample: Any) -> bool:
    return (
        sample.rows.ndim == 3
        and bool(np.isfinite(sample.rows).all())
        and 0.0 <= sample.count < np.inf
        and 0.0 <= sample.residual < np.inf
    )


def _shared_prior(prior: Any) -> bool:
    p = len(prior.mean)
    return (
        prior.mean.ndim == 1
        and prior.root.shape == (p, p)
        and prior.priors.shape[1:] == (p + 1, leading_dimension(p + 1))
        and len(prior.priors) > 0
        and bool(np.isfinite(prior.priors).all() and np.isfinite(prior.root).all())
    )


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
    bases = [] if recent is None else [recent.base]
    return prior.root.shape in roots and all(
        (base.separate, base.n_classes, base.n_columns) == (contrasts.separate, k, p)
        for base in bases
    )


def _check_recent_rows(recent: Any) -> bool:
    n, labels = len(recent.weights), recent.labels
    return (
        recent.X.shape == (n, recent.base.n_columns)
        and labels.shape == recent.weights.shape == (n,)
        and labels.dtype.kind == "i"
        and bool((labels >= 0).all() and (labels < recent.base.n_classes).all())
        and bool((recent.weights >= 0.0).all() and np.isfinite(recent.weights).all())
        and bool(np.isfinite(recent.X).all())
        and 0 <= recent.fresh <= n
    )


def _panel(panel: Any) -> bool:
    series, length = panel.values.shape
    return (
        len(panel.ids) == len(panel.ends) == series
        and panel.columns.shape == (series, length, len(panel.names))
        and not np.isinf(panel.values).any()
    )


def _check_factorization(posterior: Any) -> bool:
    n, (n_sides, p) = len(posterior.y), posterior.prior_means.shape
    sizes = np.array([len(mean) for mean in posterior.means])
    return (
        posterior.codes.shape == posterior.values.shape == (n, n_sides)
        and posterior.weights.shape == (n,)
        and bool(np.isfinite(posterior.weights).all() and (posterior.weights >= 0.0).all())
        and not (posterior.labels and not np.isin(posterior.y, (0.0, 1.0)).all())
        and len(posterior.means) == len(posterior.covariances) == n_sides
        and all(mean.shape == (size, p) for mean, size in zip(posterior.means, sizes, strict=True))
        and all(
            spread.shape == (size, p, p)
            and bool((np.diagonal(spread, axis1=1, axis2=2) >= 0.0).all())
            for each in (posterior.covariances, posterior.precisions)
            for spread, size in zip(each, sizes, strict=True)
        )
        and all(one.shape == (size, p) for one, size in zip(posterior.products, sizes, strict=True))
        and posterior.prior_precisions.shape == (n_sides, p)
        and bool((posterior.prior_precisions > 0.0).all())
        and bool((posterior.codes >= 0).all() and (posterior.codes < sizes).all())
        and bool(np.isfinite(posterior.values).all() and np.isfinite(posterior.y).all())
        and posterior.noise_shape > 0.0
        and 0.0 < posterior.noise_rate < np.inf
        and 0.0 < posterior.unit < np.inf
    )


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "LinearPosterior": _linear,
    "RefittedWindow": _check_window,
    "Switching": _check_switching,
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
    "GroupSample": _group_sample,
    "SharedPrior": _shared_prior,
    "KeyIndex": _check_key_index,
    "Contrasts": _contrasts,
    "SoftmaxPosterior": _softmax,
    "RecentRows": _check_recent_rows,
}

__all__ = ["MOST_RUNS", "check"]
