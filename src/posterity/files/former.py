"""What files from before hold of many classes, and of heavy tails, made into what there is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from posterity.evidence import OddsScale
from posterity.factor import Factor
from posterity.files import checks
from posterity.forgetting import Stabilized
from posterity.generalized._heavy_tails import HeavyTailedPosterior, Known
from posterity.generalized._noise_tally import NoiseTally
from posterity.generalized._quantile_posterior import QuantilePosterior
from posterity.generalized._start import Begun, Kept
from posterity.generalized._working_noise import Spread
from posterity.posteriors import EvidencePosterior, LinearPosterior
from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors._softmax_likelihood import helmert
from posterity.posteriors._softmax_prior import ContrastPrior
from posterity.posteriors._softmax_recent import RecentRows
from posterity.posteriors.evidence import NEVER
from posterity.posteriors.softmax import SoftmaxPosterior

Values = Mapping[str, Any]


def full_contrasts(values: Values) -> Contrasts:
    """All contrasts in one factor."""
    known, data = _contrasts(values, separate=False)
    (part,) = known.parts
    if data.n_coefficients != part.n_coefficients or data.n_targets != 1:
        raise ValueError("a factor of classes is not as large as they say")
    part.factor.become(data)
    return known


def shared_contrasts(values: Values) -> Contrasts:
    """One triangle that all contrasts shared, with a target for each: each class has a copy."""
    known, data = _contrasts(values, separate=True)
    p = known.n_columns
    if data.n_coefficients != p or data.n_targets != known.n_classes - 1:
        raise ValueError("a factor of classes is not as large as they say")
    moments = data.triangle[:, p : p + data.n_targets] @ helmert(known.n_classes).T
    for part, targets in zip(known.parts, moments.T, strict=True):
        rows = np.vstack([data.root, np.zeros((len(targets) - p, p))])
        part.factor.append(rows, np.ascontiguousarray(targets[:, None]))
    return known


def softmax_posterior(values: Values) -> SoftmaxPosterior:
    """The posterior over contrasts of either kind; nothing but a rate was forgotten."""
    known, prior, rate = values["contrasts"], values["prior"], float(values["rate"])
    recent = values.get("recent")
    if not (isinstance(known, Contrasts) and isinstance(prior, ContrastPrior)):
        raise TypeError("a posterior over classes lacks its parts")
    if not 0.0 < rate <= 1.0 or (recent is not None and not isinstance(recent, RecentRows)):
        raise ValueError("a posterior over classes can't forget like that")
    effective, seen = float(values["n_effective"]), float(values["n_observations"])
    if not (0.0 <= effective < np.inf and 0.0 <= seen < np.inf):
        raise ValueError("the weights of rows must be finite")
    posterior = SoftmaxPosterior(
        _counted(known, rate, effective, seen),
        prior,
        OddsScale() if values["learns"] else None,
        due=seen + max(float(values["due"]) - effective, 0.0),
        waiting=False,
    )
    if recent is not None:
        left = max(effective - float(np.sum(recent.weights)), 0.0)
        base = _counted(recent.base, rate, left, max(seen - float(np.sum(recent.weights)), 0.0))
        posterior.recent = replace(recent, base=base)
    if rate < 1.0:
        known = posterior.contrasts
        known.told = known.log_density(prior)
    checks.check("ContrastsPosterior", posterior)
    return posterior


def _contrasts(values: Values, *, separate: bool) -> tuple[Contrasts, Factor]:
    n_classes, n_columns, data = values["n_classes"], values["n_columns"], values["data"]
    whole = type(n_classes) is int and type(n_columns) is int
    if not whole or n_classes < 2 or n_columns < 0 or not isinstance(data, Factor):
        raise ValueError(f"{n_classes!r} classes of {n_columns!r} columns are none")
    if data.n_coefficients < n_columns or data.n_coefficients + data.n_targets < n_classes:
        raise ValueError("a factor of classes is not as large as they say")
    known = Contrasts.before_data(n_classes, n_columns, separate=separate)
    known.constant = float(values["constant"])
    return known, data


def _counted(known: Contrasts, rate: float, effective: float, seen: float) -> Contrasts:
    after = Contrasts.before_data(known.n_classes, known.n_columns, separate=known.separate)
    if rate < 1.0:
        after = after.made(lambda data: Stabilized(discount=rate).begin(data))
    for part, its in zip(after.parts, known.parts, strict=True):
        part.factor.become(its.counted(effective, seen).factor)
    after.constant = known.constant
    return after


def nothing(values: Values) -> None:
    """What is told from the other parts of a model now."""


def heavy_tailed_posterior(values: Values) -> HeavyTailedPosterior:
    """The posterior of reweighted rows, whose prior rests now by itself."""
    return HeavyTailedPosterior(*_reweighted(values))


def quantile_posterior(values: Values) -> QuantilePosterior:
    """The same of a quantile, with the plain rows beside."""
    if not isinstance(values["design"], LinearPosterior):
        raise TypeError("a posterior of a quantile lacks its parts")
    return QuantilePosterior(*_reweighted(values), values["design"])  # type: ignore[call-arg]


def _reweighted(values: Values) -> tuple[Any, ...]:
    kinds: dict[str, Any] = {"fresh": LinearPosterior, "inner": LinearPosterior}
    kinds |= {"tally": NoiseTally, "kept": Kept | None, "clock": int, "due": int}
    optional = {"spread": Spread | None, "begun": Begun}
    there = {**values, "spread": values.get("spread"), "begun": values.get("begun", Begun())}
    if not all(isinstance(there[key], kind) for key, kind in (kinds | optional).items()):
        raise TypeError("a posterior under heavy tails lacks its parts")
    known = Known(
        inner=_resting(values["inner"]),
        told=float(values["evidence"]),
        seen=float(values["_seen"]),
        **{key: there[key] for key in ("tally", "kept", "clock", "due", "spread", "begun")},
    )
    return values["fresh"].at_rest(), values["noise"], known


def _resting(inner: LinearPosterior) -> LinearPosterior:
    """With the node of a prior that is learned at rest, the one that the file has if there is."""
    if not (isinstance(inner, EvidencePosterior) and inner.alone):
        return inner.at_rest()
    inner.known.clock[1] = NEVER
    return replace(inner, rests=True)


__all__ = [
    "full_contrasts",
    "heavy_tailed_posterior",
    "nothing",
    "quantile_posterior",
    "shared_contrasts",
    "softmax_posterior",
]
