"""A bandit that learns to read digits from being told only whether it was right."""

from __future__ import annotations

import click
import numpy as np

from posterity.aliases import AnyArray, Array
from posterity.cli.demo import write_png
from posterity.cli.estimates import format_number, print_lines
from posterity.cli.outputs import check_place

# Digits that are decided before their rewards are learned.
BLOCK = 20


def run(output: str) -> None:
    """Decide, learn, judge by the log, print the table, write the figure."""
    from posterity.off_policy import Log, evaluate
    from posterity.plots.decisions import plot_decisions

    path = check_place(output)
    X, digits = load_digits_in_mixed_order()
    arms, rewards, chances = decisions(X, digits)
    log = Log.of(X, arms, rewards, propensities=chances, names=range(10))
    evaluation = evaluate(log, {"uniform": "uniform", "always 1": 1, "bandit": "logged"}, ["snips"])
    truth = {"uniform": 0.1, "always 1": float(np.mean(digits == 1)), "bandit": rewards.mean()}
    lines = []
    for estimate in evaluation.estimates:
        ends = f"{format_number(estimate.low)} to {format_number(estimate.high)}"
        value = format_number(estimate.value)
        lines.append((estimate.policy, value, ends, format_number(truth[estimate.policy])))
    remarks = [
        f"{int(rewards.sum()):,} of {len(rewards):,} digits were named right; the bandit learned "
        "only whether it was.",
        "From its log alone, what policies earn a decision:",
    ]
    header = ("policy", "estimated from the log", "interval", "truth")
    print_lines("Digits: ten arms, reward 1 for the right one", remarks, header, lines)
    figure = plot_decisions(
        rewards, chances.max(axis=1), 0.1, "A bandit learns to read from right or wrong alone"
    )
    write_png(figure, path)
    click.echo(f"\nRewards and propensities along time are drawn in {path}")


def load_digits_in_mixed_order() -> tuple[Array, AnyArray]:
    """Load scikit-learn's digits in mixed order: means of four pixels (1797, 16), and labels."""
    from sklearn.datasets import load_digits

    X, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    coarse = X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    return coarse[order], digits[order]


def decisions(X: Array, digits: AnyArray) -> tuple[AnyArray, Array, Array]:
    """Return arms (n,), rewards (n,) and propensities (n, 10) of a bandit that learns meanwhile."""
    from posterity.bandits import Bandit

    bandit, parts = Bandit(arms=list(range(10)), rng=0), []
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        made = bandit.decide(X[rows])
        rewards = (made.arms == digits[rows]).astype(float)
        bandit = bandit.learn(X[rows], made.arms, rewards)
        parts.append((made.arms, rewards, made.propensities))
    arms, earned, chances = (np.concatenate(part) for part in zip(*parts, strict=True))
    return arms, earned, chances
