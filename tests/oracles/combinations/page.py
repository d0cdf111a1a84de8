"""The page docs/combinations.md, written from the lists that the tests cross."""

# ruff: noqa: E501 - the page's lines are longer than the code's

from __future__ import annotations

import re
from collections.abc import Iterable

from combinations.axes import LIMITED, MEMORIES, MODELS, PRIORS, REFUSED

METHODS_TOLD = (
    "`predict_then_learn`",
    "`merge`",
    "`unlearn`",
    "`sample_weight`",
    "`times`",
    "evaluation",
)

INTRODUCTION = """\
# What works with what

Every kind of prior, every way to forget and every method works with every likelihood. The few exceptions
are marked "no", with a link to the reason. Tests try each cell, with all methods. Batches come to what all rows at once do,
two models merge to that of all rows, what is unlearned leaves the model of the other rows, and weight 2 is the row twice: exactly for
Gaussian rows, and else as closely as [what stands for an observation](classes.md#weights-merging-unlearning) allows. Reads, and calls that raise, change
nothing, and a saved model predicts, and goes on to learn, the same. This page is written from the lists that these tests use.

`fit`, `partial_fit`, `learn_one`, every read, `save` and `load` work in every model.
"""
PRIORS_AFTER = """\
`Maximized` is what the literature calls type-II maximum likelihood, or empirical Bayes.
"""
MEMORIES_AFTER = """\
`Changepoint` keeps a posterior for each row at which the last change may have happened. Linear regression
with a given prior has a fast implementation. All others take as long as that many separate models.

`Smoothing` keeps the weight of about one row. That is too little to learn the noise, so intervals are
infinitely wide unless you give a `noise_precision`.
"""
METHODS_AFTER = """\
Forgetting limits two of these methods:

- `unlearn` is refused, because the remaining weight of a row depends on when it was learned.
- `merge` works under `Stabilized` only, whose prior does not fade with the rows; groups, which keep their prior apart, merge under
  `Exponential`, too. Under `Adaptive` and
  `Changepoint` the posterior depends on the order of all rows. This holds for every model, however many rows came.

For labels, counts and other likelihoods, `unlearn` removes
[the approximation of the row's likelihood at the present posterior](classes.md#weights-merging-unlearning). The same
holds for [heavy-tailed noise](outliers.md#limits) and for [noise that depends on the features](noise.md).
"""
REASONS = {
    "one prior for all groups": """\
`GroupedRegression` learns the mean and covariance of one prior that all groups share
(`prior_precision="shared"`). This takes the place of "auto". If you give numbers instead, each group has that
prior, and the groups share nothing.
""",
    "columns of groups and of many features": """\
`GroupedRegression` has no `basis`, nor have the models of [many features](wide.md). Compute the columns beforehand: put the
transformer in front of the model, in a pipeline. Wide models have `interactions`.
""",
    "groups and forgetting": """\
The shared prior is learned from the triangles of the groups' rows, which must not contain a prior.
Under `Exponential` and `Stabilized` they do not: they hold the same rows with smaller weights. Under the other
strategies a triangle also contains part of a prior or of a random walk, or a group has several triangles.
""",
    "time in groups": """\
The rows of a group are discounted by one step for each new row of the group. `GroupedRegression` does not take
`times` yet.
""",
    "unlearning in quantile models": """\
After `fit`, the weight of a row in a quantile regression depends on the density of all rows' errors, and the model
does not store those. It stores the first 64 rows, or 4 for each coefficient if that is more, and more rows the
further the quantile lies from the median. As long as it has seen no other rows, `unlearn` fits the remaining rows
again, exactly. Later it raises an error.
""",
    "one prior for many features": """\
Models of [many features](wide.md) learn one prior scale for all (`"auto"`), or take a number. A scale for each feature
would be learned from the few rows that have it.
""",
    "many features and forgetting": """\
A feature that goes quiet must fall back to its prior, and not beyond: only `Stabilized` does this for each feature
by itself.
""",
    "sparse factors learn batches": """\
A sparse factor is made anew for each batch. Rows that are predicted one after another would need as many: predict a
batch, and then learn it, or take the diagonal model.
""",
    "unlearning in diagonal models": """\
What a row did to a feature depended on the other features at that time, which a diagonal model does not store. Fit
the rows that are left, or forget with `Stabilized`.
""",
    "several targets": """\
An average over memories, or over changes, weighs them by how well each predicts one target. Evaluation scores one
target, too. Fit a model for each column.
""",
    "several quantiles": """\
Each quantile has a distribution of its own, so that there is none to predict before a row. Score each quantile by a
model of its own.
""",
    "factorization machines": """\
A [factorization machine](recommend.md) multiplies unknowns with unknowns, so that no sums stand for its rows: it keeps
the rows. Its prior is learned. To merge, learn the rows of both; to unlearn, or to forget, fit the rows that are left.
""",
}


def write() -> str:
    """The page."""
    order: list[str] = []
    parts = [
        INTRODUCTION,
        "## Priors and bases\n",
        _table(PRIORS, order),
        PRIORS_AFTER,
        "## Ways to forget\n",
        _table(MEMORIES, order),
        MEMORIES_AFTER,
        "## Methods\n",
        _table(METHODS_TOLD, order),
        METHODS_AFTER,
        "## Reasons\n",
        *(f"### {_title(reason, order)}\n\n{REASONS[reason]}" for reason in order),
    ]
    return "\n".join(parts)


def _table(columns: Iterable[str], order: list[str]) -> str:
    """A table of all models; reasons that come for the first time join ``order``."""
    names = ["model", *columns]
    lines = [names] + [
        [model.name, *(_cell(model.name, column, order) for column in names[1:])]
        for model in MODELS
    ]
    first, *rest = ("| " + " | ".join(line) + " |\n" for line in lines)
    return first + "|" + "---|" * len(names) + "\n" + "".join(rest)


def _cell(model: str, column: str, order: list[str]) -> str:
    if (model, column) in REFUSED:
        reason = REFUSED[model, column].reason
        return f"no [{_letter(reason, order)}]({_anchor(reason, order)})"
    if (model, column) in LIMITED:
        said, words, reason = LIMITED[model, column]
        return said.format(f"[{words}]({_anchor(reason, order)})")
    return "yes"


def _letter(reason: str, order: list[str]) -> str:
    if reason not in order:
        order.append(reason)
    return "abcdefghijklmnopqrstuvwxyz"[order.index(reason)]


def _title(reason: str, order: list[str]) -> str:
    return f"{_letter(reason, order)}: {reason}"


def _anchor(reason: str, order: list[str]) -> str:
    return "#" + re.sub(r"[^\w-]", "", _title(reason, order).replace(" ", "-"))
