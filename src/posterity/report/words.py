"""A validation in words: what its numbers mean, and what they leave out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from posterity.distributions.pit import skewness_in_words
from posterity.evaluation import Slices, ValidationResult
from posterity.evaluation._tables import count_rows

# A row leads the squared error of so many rows when it has such a share of it.
FEWEST_ROWS, DOMINANT_SHARE = 50, 0.2
# So little error is left only where the features tell the target.
NEARLY_DETERMINED = 0.99


def headline(result: ValidationResult) -> str:
    """Describe the scores in words.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1))
    >>> y = X[:, 0] + rng.normal(size=5000)
    >>> print(headline(progressive_validation(BayesianLinearRegression(), X, y)))
    Each of 5,000 rows was predicted before it was learned.
    Predictions were off by 0.79... on average.
    95% intervals held 9...% of the targets: as promised.
    """
    lines = [
        f"Each of {result.n_rows:,} rows was predicted before it was learned.",
        f"Predictions were off by {result.mae:.4g} on average.",
    ]
    n_scored = result.n_rows - result.n_unscored
    for level, share in result.coverage.items():
        if n_scored:
            lines.append(
                f"{100 * level:g}% intervals held {100 * share:.1f}% of the targets: "
                f"{judge(result, level)}."
            )
    return "\n".join(lines)


def judge(result: ValidationResult, level: float) -> str:
    """Say whether the coverage at a level is as promised, where intervals have a width."""
    n_scored = result.n_rows - result.n_unscored
    if 2 * result.n_certain > n_scored:
        return "most predictions were certain, and their intervals are points"
    return judge_coverage(level, result.coverage[level], n_scored)


def judge_coverage(level: float, share: float, n_scored: int) -> str:
    """Say whether coverage is as promised: to one point, or within chance.

    Examples
    --------
    >>> judge_coverage(0.95, 0.952, 1000)
    'as promised'
    >>> judge_coverage(0.95, 0.80, 1000)
    'too few, the intervals are too narrow'
    """
    spread = max(0.01, 2.0 * (level * (1.0 - level) / n_scored) ** 0.5)
    if share < level - spread:
        return "too few, the intervals are too narrow"
    if share > level + spread:
        return "more than promised, the intervals are too wide"
    return "as promised"


def rows(result: ValidationResult) -> Iterator[tuple[str, str, str]]:
    """Name, value and meaning of each score."""
    yield "mean absolute error", f"{result.mae:.5g}", "distance of prediction and target"
    yield "root mean squared error", f"{result.rmse:.5g}", "the same, large errors weigh more"
    yield "mean CRPS", f"{result.crps:.5g}", "error of the distribution; less is better"
    yield "mean log score", f"{result.log_score:.5g}", "log density of the target; more is better"
    for level, share in result.coverage.items():
        name = f"{100 * level:g}% interval"
        yield f"{name}: coverage", f"{100 * share:.2f}%", "targets inside it"
        yield f"{name}: width", f"{result.width[level]:.5g}", "mean width; narrower is sharper"
    if result.pit is not None and result.pit.n_rows:
        off = f"{100 * result.pit.error:.2f} points"
        yield "calibration error", off, "mean distance of coverage and level, over all levels"
    for name, baseline in result.baselines.items():
        remark = f"its error: {baseline.mae:.5g}"
        if baseline.n_scored:
            crps, gain = percent(baseline.skill_crps), baseline.log_score_gain
            remark += f"; CRPS {crps}, {gain:+.2f} nats"
        yield f"skill over {name}", percent(baseline.skill), remark


def percent(value: float) -> str:
    """A share in percent; "none" where there is nothing to divide by."""
    return "none" if np.isnan(value) else f"{100 * value:.1f}%"


def slices(found: Slices) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings after that of the slice, and a row for each slice, its name first."""
    header = ["rows", "mean error", "CRPS"]
    for level in found.coverage:
        header += [f"inside {100 * level:g}%", "mean width"]
    rows = []
    for k, name in enumerate(found.names):
        row = [name, f"{found.n_rows[k]:,}"]
        row += [_number(found.mae[k]), _number(found.crps[k])]
        for level, share in found.coverage.items():
            row.append("none" if np.isnan(share[k]) else f"{100 * share[k]:.1f}%")
            row.append(_number(found.width[level][k]))
        rows.append(tuple(row))
    return tuple(header), rows


def _number(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.5g}"


def caveats(result: ValidationResult) -> Iterator[str]:
    """Name the rows that some scores leave out, one that leads them, and noise that is skewed."""
    total = result.rmse**2 * result.n_rows
    if result.worst and result.n_rows >= FEWEST_ROWS and total > 0.0:
        worst = result.worst[0]
        share = worst.error**2 / total
        if share > DOMINANT_SHARE:
            yield (
                f"Row {worst.row:,} alone makes {100 * share:.0f}% of the squared error: its "
                f"target is {worst.y:.6g}, the prediction was off by {worst.error:.6g}."
            )
    mean = result.baselines.get("mean so far")
    if mean is not None and result.n_rows >= FEWEST_ROWS and mean.skill > NEARLY_DETERMINED:
        yield (
            "Predictions are almost exact: does a feature hold the target, or do several add up to "
            "it? If so, leave them out."
        )
    yield from skewness_in_words(result.pit)
    if result.n_unscored:
        yield (
            "The first predictions know too little to have a width: "
            f"{count_rows(result.n_unscored)} counted in the errors only."
        )
    if result.n_certain:
        yield f"{count_rows(result.n_certain)} predicted with certainty: not in the log score."


def skill_in_words(name: str, skill: float) -> str:
    """Describe a skill in words.

    Examples
    --------
    >>> skill_in_words("last value", 0.25)
    '25% less error than the last value'
    >>> skill_in_words("mean so far", -0.5)
    '50% more error than the mean so far: not better than no model'
    """
    if skill != skill:
        return f"nothing to compare with the {name}"
    if skill > 0.0:
        return f"{100 * skill:.0f}% less error than the {name}"
    return f"{-100 * skill:.0f}% more error than the {name}: not better than no model"


def shape_in_words(result: ValidationResult) -> str:
    """Describe the shape of the PIT: too narrow, too wide, too low, too high, or about right."""
    pit = result.pit
    if pit is None or not pit.n_rows:
        return "Predictions of counts or points are judged by their intervals alone."
    noise = max(0.01, 2.0 * (0.25 / pit.n_rows) ** 0.5)
    half, most = pit.coverage([0.5, 0.94]) - (0.5, 0.94)
    wide_level = max(result.coverage, default=0.0)
    n_scored = max(result.n_rows - result.n_unscored, 1)
    narrow = wide_level >= 0.9 and "narrow" in judge_coverage(
        wide_level, result.coverage[wide_level], n_scored
    )
    tails = most < -noise or narrow
    below = float(pit.counts[:50].sum()) / pit.n_rows - 0.5
    found = []
    if half > noise and tails:
        found.append(
            "too wide in the middle and too narrow in the tails: a few targets lie far out, and a "
            "robust model may do better"
        )
    elif half < -noise or tails:
        where = "throughout" if half < -noise and tails else "in part"
        where = "in the tails" if half >= -noise else where
        found.append(f"too narrow {where}: targets lie farther out than predicted")
    elif half > noise or most > noise:
        found.append("too wide: targets lie closer than predicted")
    if abs(below) > noise:
        found.append(f"too {'high' if below > 0.0 else 'low'} more often than not")
    what = " and ".join(found) if found else "about right"
    return f"Predictive distributions were {what}."
