"""Conversion of models with heavy tails from older files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from posterity.generalized._heavy_tails import HeavyTailedPosterior
from posterity.generalized._heavy_tails_state import HeavyTailsState
from posterity.generalized._noise_tally import NoiseSums
from posterity.generalized._quantile_posterior import QuantilePosterior
from posterity.generalized._start import StoredRows, WarmStart
from posterity.generalized._working_noise import Spread
from posterity.posteriors import LinearPosterior
from posterity.posteriors._evidence_stream import NEVER

Values = Mapping[str, Any]


def drop(values: Values) -> None:
    """Return None: other parts of a model determine it now."""


def heavy_tailed_posterior(values: Values) -> HeavyTailedPosterior:
    """The posterior of reweighted rows, whose prior rests now by itself."""
    return HeavyTailedPosterior(*_restore_reweighted(values))


def quantile_posterior(values: Values) -> QuantilePosterior:
    """The same of a quantile, with the plain rows beside."""
    if not isinstance(values["design"], LinearPosterior):
        raise TypeError("a posterior of a quantile is incomplete")
    return QuantilePosterior(*_restore_reweighted(values), values["design"])  # type: ignore[call-arg]


def _restore_reweighted(values: Values) -> tuple[Any, ...]:
    kinds: dict[str, Any] = {"fresh": LinearPosterior, "inner": LinearPosterior}
    kinds |= {"tally": NoiseSums, "kept": StoredRows | None, "clock": int, "due": int}
    optional = {"spread": Spread | None, "begun": WarmStart}
    there = {**values, "spread": values.get("spread"), "begun": values.get("begun", WarmStart())}
    if not all(isinstance(there[key], kind) for key, kind in (kinds | optional).items()):
        raise TypeError("a posterior with heavy tails is incomplete")
    state = HeavyTailsState(
        inner=_fix_prior(values["inner"]),
        log_predictive=float(values["evidence"]),
        seen=float(values["_seen"]),
        **{key: there[key] for key in ("tally", "kept", "clock", "due", "spread")},
        warm_start=there["begun"],
    )
    return values["fresh"].with_one_node(), values["noise"], state


def _fix_prior(inner: LinearPosterior) -> LinearPosterior:
    """Return the posterior with a frozen node, that of the file if it has one."""
    known: Any = inner
    if not (inner.learns_prior and known.single_node):
        return inner.with_one_node()
    known.state.clock[1] = NEVER
    return replace(known, prior_is_frozen=True)
