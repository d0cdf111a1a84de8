"""Intervals that are held to what happened: what wrapping a model costs."""

from __future__ import annotations

from typing import Any

import peers
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression
from posterity.calibration import Conformal, Recalibrated

NAME = "calibration"
TITLE = "Conformal intervals"
HOW = """\
One call of `predict_then_learn`, p = 10, compared with the same without the wrapper; the intervals
of five levels are stored for each row. "with intervals" includes reading the 95% interval of each
row. `aci` and `dtaci` have one level, from a window of the last 1,000 scores. `Recalibrated`
includes the density of each row."""

ROWS = 300_000
MODELS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "prior given": {"prior_precision": 1.0},
    "noise known": {"prior_precision": 1.0, "noise_precision": 1.0},
}


def predictive(model: Any, X: Any, y: Any) -> Any:
    return model.predict_then_learn(X, y)


def intervals(model: Any, X: Any, y: Any) -> object:
    return predictive(model, X, y).interval(0.95)


def densities(model: Any, X: Any, y: Any) -> object:
    return predictive(model, X, y).logpdf(y)


def measure(run: Run) -> list[Figure]:
    X, y = peers.problem(run.rows(ROWS), 10)
    figures = []

    def add(what: str, wrapped: Any, asked: Any = predictive, target: float | None = None) -> None:
        """Fresh models each time: a wrapper clones what it is given."""
        seconds = alternate(
            {
                "ours": lambda: asked(type(wrapped)(**wrapped.get_params(deep=False)), X, y),
                "plain": lambda: asked(type(wrapped.model)(**wrapped.model.get_params()), X, y),
            },
            run.rounds,
        )
        ours, plain = (seconds[name] / len(X) * 1e9 for name in ("ours", "plain"))
        figures.append(Figure(what, "not wrapped", ours, plain, "ns/row", "within", target))

    for name, parameters in MODELS.items():
        model = Conformal(BayesianLinearRegression(**parameters))
        add(f"pid, {name}", model, target=1.5)
        add(f"pid, {name}, with intervals", model, intervals)
    plain = BayesianLinearRegression()
    add("aci", Conformal(plain, method="aci", level=0.95))
    add("dtaci", Conformal(plain, method="dtaci", level=0.95))
    add("Recalibrated, with densities", Recalibrated(plain), densities)
    return figures
