"""What must fit together in what a file holds: lengths, shapes, order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posterity.factor import Factor
from posterity.files.registry import POSTERIORS, name_of
from posterity.kernel import leading_dimension
from posterity.posteriors._dispersion import N_POINTS
from posterity.posteriors._noise_memories import MEMORIES

# Triangles in one bank: far more than any use, and no way to ask for all of the memory.
MOST_RUNS = 1_000_000


def check(name: str, made: Any) -> None:
    """Raise ``ValueError`` when the parts of an object do not fit together."""
    parts_fit = _CHECKS.get(name, _nothing_to_check)
    if not parts_fit(made):
        raise ValueError(f"the parts of a {name} do not fit together")


def _nothing_to_check(made: Any) -> bool:
    return True


def _posterior(known: Any) -> bool:
    prior, factor = known.prior, known.factor
    return prior.n_targets == factor.n_targets and _as_long(prior, factor, known.intercept)


def _as_long(prior: Factor, factor: Factor, intercept: bool) -> bool:
    return prior.n_coefficients == factor.n_coefficients >= int(intercept)


def _fading(known: Any) -> bool:
    return _posterior(known) and known.tally.shape == (1,)


def _window(known: Any) -> bool:
    kept, n_features = known.kept, known.n_coefficients - int(known.intercept)
    n = len(kept.weights)
    return (
        _posterior(known)
        # Rows in units of their noise bring the intercept's column.
        and kept.X.shape in ((n, n_features), (n, known.n_coefficients))
        and kept.y.shape == (n, known.factor.n_targets)
        and kept.weights.shape == kept.times.shape == (n,)
        and kept.removed >= 0
        and bool((kept.weights >= 0.0).all() and np.isfinite(kept.times).all())
        and bool((np.diff(kept.times) >= 0.0).all())
        and bool(np.isfinite(kept.X).all() and np.isfinite(kept.y).all())
    )


def _averaged(known: Any) -> bool:
    standing, rates = known.standing, len(known.persistence)
    return (
        len(known.runs) > 0
        and all((name_of(type(run)) or "") in POSTERIORS for run in known.runs)
        and all(run.n_coefficients == known.n_coefficients for run in known.runs)
        and standing.members.shape == (rates, leading_dimension(len(known.runs)))
        and standing.rates.shape == (leading_dimension(rates),)
    )


def _adaptive(known: Any) -> bool:
    return _averaged(known) and len(known.noises) == len(known.runs)


def _noise_memories(known: Any) -> bool:
    state = known.state
    return (
        state.shape == (4, len(MEMORIES))
        and bool(np.isfinite(state).all())
        and bool((state[[0, 1, 3]] >= 0.0).all())
    )


def _runs(runs: Any) -> bool:
    capacity = len(runs.bank._triangles) - 1
    arrays = (runs.first, runs.probability, runs.freed, runs.learned)
    return (
        runs.bank.size >= 2
        and all(array.shape == (capacity,) for array in arrays)
        and len(runs.changes) == runs.size <= capacity
        and (runs.latest_start is None or runs.latest_start.triangle.ndim == 2)
    )


def _changepoint(known: Any) -> bool:
    runs, q = known.learned.runs, len(known.prior.triangle)
    start = runs.latest_start
    return (
        _posterior(known)
        and runs.bank.n_coefficients == known.n_coefficients
        and len(runs.first) == known.strategy.max_runs + 1
        and (start is None or start.triangle.shape == (q, leading_dimension(q)))
    )


def _regimes(known: Any) -> bool:
    state, k = known.state, len(known.state.members)
    members = (known.fresh, *state.members)
    return (
        k > 0
        and all((name_of(type(one)) or "") in POSTERIORS for one in members)
        and len({one.n_coefficients for one in members}) == 1
        and state.first.shape == state.probability.shape == state.learned.shape == (k,)
        and len(state.changes) == k
    )


def _evidence(known: Any) -> bool:
    data, stream, scales = known.known.data, known.known.stream, known.known.scales
    m = known.n_coefficients - int(known.intercept)
    return (
        _posterior(known)
        and known.mean.shape == (m,)
        and (known.shapes is None or (known.shapes.ndim == 2 and known.shapes.shape[1] == m))
        and known.known.clock.shape == (2,)
        and data.n_coefficients == known.n_coefficients
        and data.intercept == known.intercept
        and (
            stream is None or all(n.n_coefficients == m + data.intercept for n in stream.posteriors)
        )
        and (scales is None or scales.mean.shape == scales.squares.shape == (m,))
    )


def _nodes(nodes: Any) -> bool:
    k = len(nodes.posteriors)
    choice = nodes.choice
    return (
        k > 0
        and nodes.log_weights.shape == choice.weights.shape == (k,)
        and choice.pinned.ndim == 1
    )


def _wrapped(known: Any) -> bool:
    return _posterior(known) and known.inner.n_coefficients == known.n_coefficients


def _heteroscedastic(known: Any) -> bool:
    account, m = known.account, known.n_coefficients - int(known.intercept)
    return (
        _posterior(known)
        and known.mean.n_coefficients == known.n_coefficients
        and known.mean.intercept == known.intercept
        and known.spread.n_coefficients == account.rule.n_coefficients == m + 1
        and account.centre.shape == account.at.shape == (m,)
        and account.clock.shape == (2,)
    )


def _dispersed(known: Any) -> bool:
    spread = known.spread
    return (
        known.counts.n_coefficients == known.n_coefficients
        and spread.log_likelihood.shape == (N_POINTS,)
        and bool(np.isfinite(spread.log_likelihood).all())
        and 0.0 < spread.value < np.inf
        and 0.0 <= spread.rows < np.inf
    )


def _diagonal(known: Any) -> bool:
    size, columns, members = len(known.owners), len(known.squares), len(known.scores)
    clocks = known.clocks
    return (
        known.beliefs.shape == (2 * members * size,)
        and size >= 1
        and columns >= 2
        and known.precision.shape == known.information.shape == (columns, members)
        and known.squares.shape == (columns, 2)
        and known.rates.shape == known.start.shape == (members,)
        and 1 <= known.members <= members
        and bool(((known.owners >= 0) & (known.owners < columns)).all())
        and (clocks is None or clocks.shape == (size,))
        and known.likelihood.kernel_code is not None
    )


def _feature_levels(levels: Any) -> bool:
    return len(levels.features) == len(levels.index.labels)


def _grouped(known: Any) -> bool:
    p, belief = known.bank.n_coefficients, known.belief
    turns = [turn for turn in (known.turn, known.brief) if turn is not None]
    return (
        belief.mean.shape == belief.free.shape == (p,)
        and (belief.precision is None or belief.precision.n_coefficients == p)
        and p >= int(known.intercept)
        and 0.0 < known.discount <= 1.0
        and len(turns) != 1
        and all(turn.rows.shape[1:] == (p, p + 1) for turn in turns)
        and (known.span is None or known.span.n_coefficients == p)
        and 0 <= known.idle <= known.bank.clock
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


def _key_index(index: Any) -> bool:
    known = {"numbers", "text", "dates", "other", "none"}
    return index.is_distinct and known.issuperset(index.kinds)


def _contrasts(known: Any) -> bool:
    k, p = known.n_classes, known.n_columns
    sizes = [p] * k if known.separate else [(k - 1) * p]
    return k >= 2 and p >= 0 and [part.n_coefficients for part in known.parts] == sizes


def _softmax(known: Any) -> bool:
    contrasts, prior, recent = known.contrasts, known.prior, known.recent
    k, p = contrasts.n_classes, contrasts.n_columns
    roots = [(p, p)] if contrasts.separate else [(p, p), (k - 1, p, p)]
    bases = [] if recent is None else [recent.base]
    return prior.root.shape in roots and all(
        (base.separate, base.n_classes, base.n_columns) == (contrasts.separate, k, p)
        for base in bases
    )


def _recent_rows(recent: Any) -> bool:
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


def _panel(known: Any) -> bool:
    series, length = known.values.shape
    return (
        len(known.ids) == len(known.ends) == series
        and known.columns.shape == (series, length, len(known.names))
        and not np.isinf(known.values).any()
    )


def _factorization(known: Any) -> bool:
    n, (n_sides, p) = len(known.y), known.prior_means.shape
    sizes = np.array([len(mean) for mean in known.means])
    return (
        known.codes.shape == known.values.shape == (n, n_sides)
        and len(known.means) == len(known.covariances) == n_sides
        and all(mean.shape == (size, p) for mean, size in zip(known.means, sizes, strict=True))
        and all(
            spread.shape == (size, p, p)
            for spread, size in zip(known.covariances, sizes, strict=True)
        )
        and known.prior_precisions.shape == (n_sides, p)
        and bool((known.prior_precisions > 0.0).all())
        and bool((known.codes >= 0).all() and (known.codes < sizes).all())
        and bool(np.isfinite(known.values).all() and np.isfinite(known.y).all())
        and known.noise_shape > 0.0
        and 0.0 <= known.noise_rate < np.inf
        and 0.0 < known.unit < np.inf
    )


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "LinearPosterior": _posterior,
    "FadingPosterior": _fading,
    "WindowPosterior": _window,
    "AveragedPosterior": _averaged,
    "GeneralizedAverage": _averaged,
    "AdaptivePosterior": _adaptive,
    "NoiseMemories": _noise_memories,
    "Runs": _runs,
    "ChangepointPosterior": _changepoint,
    "RegimesPosterior": _regimes,
    "EvidencePosterior": _evidence,
    "Nodes": _nodes,
    "GeneralizedPosterior": _wrapped,
    "HeteroscedasticPosterior": _heteroscedastic,
    "DispersedPosterior": _dispersed,
    "SeriesPanel": _panel,
    "DiagonalPosterior": _diagonal,
    "FeatureLevels": _feature_levels,
    "FactorizationPosterior": _factorization,
    "GroupedPosterior": _grouped,
    "GroupSample": _group_sample,
    "SharedPrior": _shared_prior,
    "KeyIndex": _key_index,
    "Contrasts": _contrasts,
    "ContrastsPosterior": _softmax,
    "RecentRows": _recent_rows,
}

__all__ = ["MOST_RUNS", "check"]
