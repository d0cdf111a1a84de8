"""Conversion of classifiers of many classes from older files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from posterity.evidence import OddsScale
from posterity.factor import Factor
from posterity.files import checks
from posterity.forgetting import Stabilized
from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors._softmax_likelihood import helmert
from posterity.posteriors._softmax_prior import ContrastPrior
from posterity.posteriors._softmax_recent import RecentRows
from posterity.posteriors.softmax import SoftmaxPosterior

Values = Mapping[str, Any]


def full_contrasts(values: Values) -> Contrasts:
    """Return contrasts that share one factor."""
    contrasts, data = _contrasts(values, separate=False)
    (part,) = contrasts.parts
    if data.n_coefficients != part.n_coefficients or data.n_targets != 1:
        raise ValueError("a factor does not have the size of its classes")
    part.factor.copy_from(data)
    return contrasts


def copy_shared_triangle(values: Values) -> Contrasts:
    """Give each class a copy of the one triangle that all contrasts shared in older files."""
    contrasts, data = _contrasts(values, separate=True)
    p = contrasts.n_columns
    if data.n_coefficients != p or data.n_targets != contrasts.n_classes - 1:
        raise ValueError("a factor does not have the size of its classes")
    moments = data.triangle[:, p : p + data.n_targets] @ helmert(contrasts.n_classes).T
    for part, targets in zip(contrasts.parts, moments.T, strict=True):
        rows = np.vstack([data.root, np.zeros((len(targets) - p, p))])
        part.factor.append(rows, np.ascontiguousarray(targets[:, None]))
    return contrasts


def softmax_posterior(values: Values) -> SoftmaxPosterior:
    """The posterior over contrasts of either kind; nothing but a rate was forgotten."""
    known, prior, rate = values["contrasts"], values["prior"], float(values["rate"])
    recent = values.get("recent")
    if not (isinstance(known, Contrasts) and isinstance(prior, ContrastPrior)):
        raise TypeError("a posterior over classes is incomplete")
    if not 0.0 < rate <= 1.0 or (recent is not None and not isinstance(recent, RecentRows)):
        raise ValueError("a posterior over classes can't forget like that")
    effective, seen = float(values["n_effective"]), float(values["n_observations"])
    if not (0.0 <= effective < np.inf and 0.0 <= seen < np.inf):
        raise ValueError("the weights of rows must be finite")
    posterior = SoftmaxPosterior(
        _count_contrasts(known, rate, effective, seen),
        prior,
        OddsScale() if values["learns"] else None,
        next_prior_update=seen + max(float(values["due"]) - effective, 0.0),
        awaits_first_prior=False,
    )
    if recent is not None:
        left = max(effective - float(np.sum(recent.weights)), 0.0)
        base = _count_contrasts(
            recent.base, rate, left, max(seen - float(np.sum(recent.weights)), 0.0)
        )
        posterior.recent = replace(recent, base=base)
    if rate < 1.0:
        known = posterior.contrasts
        known.log_predictive = known.log_density(prior)
    checks.check("ContrastsPosterior", posterior)
    return posterior


def _contrasts(values: Values, *, separate: bool) -> tuple[Contrasts, Factor]:
    n_classes, n_columns, data = values["n_classes"], values["n_columns"], values["data"]
    whole = type(n_classes) is int and type(n_columns) is int
    if not whole or n_classes < 2 or n_columns < 0 or not isinstance(data, Factor):
        raise ValueError(f"{n_classes!r} classes of {n_columns!r} columns are impossible")
    if data.n_coefficients < n_columns or data.n_coefficients + data.n_targets < n_classes:
        raise ValueError("a factor does not have the size of its classes")
    contrasts = Contrasts.before_data(n_classes, n_columns, separate=separate)
    contrasts.constant = float(values["constant"])
    return contrasts, data


def _count_contrasts(contrasts: Contrasts, rate: float, effective: float, seen: float) -> Contrasts:
    after = Contrasts.before_data(
        contrasts.n_classes, contrasts.n_columns, separate=contrasts.separate
    )
    if rate < 1.0:
        after = after.with_change(lambda data: Stabilized(discount=rate).begin(data))
    for part, its in zip(after.parts, contrasts.parts, strict=True):
        part.factor.copy_from(its.with_counts(effective, seen).factor)
    after.constant = contrasts.constant
    return after


__all__ = ["copy_shared_triangle", "full_contrasts", "softmax_posterior"]
