"""Models by formula: intervals of effects, variances and correlations, over designs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from guarantees.check import Check
from posterity import Model

Array = NDArray[np.float64]

# Of each design the formula, and the sizes of its groups: a, and b beside it or within it.
DESIGNS = {
    "intercepts of 20 groups of 5": ("y ~ x + (1 | a)", 20, 1, 5),
    "intercepts of 5 groups of 20": ("y ~ x + (1 | a)", 5, 1, 20),
    "intercepts and slopes of 20 groups of 10": ("y ~ x + (1 + x | a)", 20, 1, 10),
    "15 x 10 crossed groups": ("y ~ x + (1 | a) + (1 | b)", 15, 10, 1),
    "12 groups of 4 nested groups of 4": ("y ~ x + (1 | a/b)", 12, 4, 4),
}
LIKELIHOODS = {"numbers": "normal", "labels": "bernoulli", "counts": "poisson"}


def draw_table(
    rng: np.random.Generator, design: str, kind: str
) -> tuple[pd.DataFrame, dict[str, float], Array]:
    """A table, the true values of what the model's tables name, and the first group's effects."""
    formula, n_a, n_b, rows = DESIGNS[design]
    a, b = (one.ravel() for one in np.meshgrid(np.arange(n_a), np.arange(n_b), indexing="ij"))
    a, b = np.repeat(a, rows), np.repeat(b, rows)
    x, spread = rng.normal(size=len(a)), 0.5 if kind == "counts" else 1.0
    sds = spread * np.exp(rng.normal(0.0, 0.4, 3))
    truth = {"intercept": rng.normal(), "x": spread * rng.normal(), "sd(1 | a)": sds[0]}
    effects = sds[0] * rng.normal(size=n_a)
    eta = truth["intercept"] + truth["x"] * x + effects[a]
    if "1 + x" in formula:
        truth["sd(x | a)"], truth["cor(1, x | a)"] = sds[1], rng.uniform(-1.0, 1.0)
        own = truth["cor(1, x | a)"] * effects / sds[0]
        own += np.sqrt(1.0 - truth["cor(1, x | a)"] ** 2) * rng.normal(size=n_a)
        eta += sds[1] * own[a] * x
    elif n_b > 1:
        nested = "a/b" in formula
        truth["sd(1 | a:b)" if nested else "sd(1 | b)"] = sds[1]
        inner = a * n_b + b if nested else b
        eta += sds[1] * rng.normal(size=inner.max() + 1)[inner]
    if kind == "numbers":
        truth["sd(residual)"] = sds[2]
        y = eta + sds[2] * rng.normal(size=len(a))
    elif kind == "labels":
        y = (rng.random(len(a)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    else:
        y = rng.poisson(np.exp(eta)).astype(float)
    return pd.DataFrame({"y": y, "x": x, "a": a, "b": b}), truth, effects


def held(rng: np.random.Generator, *, design: str, kind: str, level: float) -> tuple[int, int]:
    """Intervals of fixed effects, standard deviations, correlations and effects of groups."""
    frame, truth, effects = draw_table(rng, design, kind)
    frame = frame.astype({"y": int}) if kind == "labels" else frame
    model = Model(DESIGNS[design][0], LIKELIHOODS[kind]).fit(frame)
    tables = pd.concat([model.summary(level), model.variance_components(level)])
    inside = [
        tables.loc[name, "low"] < value < tables.loc[name, "high"] for name, value in truth.items()
    ]
    table = model.group_effects("a", level)
    own = table[table["effect"] == "1"].sort_values("level")
    inside += list((own["low"] < effects) & (effects < own["high"]))[:2]
    return int(sum(inside)), len(inside)


def checks() -> list[Check]:
    """Each design under each likelihood."""
    return [
        Check(
            "Models by formula",
            f"{kind}, {design}",
            level,
            partial(held, design=design, kind=kind, level=level),
            replicates=20 if "slopes" in design else 40,  # three scales take a lattice
            lowest=lowest,
            highest=highest,
        )
        for kind in LIKELIHOODS
        for design in DESIGNS
        if kind == "numbers" or "slopes" not in design  # a table takes seconds
        for level, lowest, highest in ((0.5, 0.46, 0.56), (0.95, 0.93, 0.985))
    ]
