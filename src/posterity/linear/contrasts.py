"""Effects of levels: against the mean of their column's levels, or against a base level.

Rows tell how levels differ, and not how large each of them is: what all levels of a column have in
common could as well be the intercept's. So each is compared with the mean of its column's levels,
or with one of them, and what it is compared with is added to the intercept:

    intercept' = intercept + sum over columns of base,    level' = level - base .

Predictions stay the same. Intervals are those of these sums, in the joint posterior.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from posterity.aliases import Array, Indices, Mask
from posterity.distributions.combinations import Combinations
from posterity.distributions.guesses import did_you_mean
from posterity.linear.categories import Categories
from posterity.linear.levels import to_text
from posterity.linear.rounding import find_level_of_user

Base = Literal["mean", "first"] | Mapping[str, Any] | None


class Term(NamedTuple):
    """The levels of one category: its name, theirs, and those of their coefficients.

    ``columns`` (k,) are the places of the coefficients among all p; -1 of a level that was left
    out, whose coefficient is 0.
    """

    name: str
    levels: tuple[str, ...]
    labels: tuple[str, ...]
    columns: Indices

    def select(self, p: int) -> Array:
        """(k, p) the coefficients of the levels, of all p."""
        chosen = np.zeros((len(self.columns), p + 1))
        chosen[np.arange(len(self.columns)), self.columns] = 1.0
        return chosen[:, :p]  # the last, -1, is 0


class Contrasts(NamedTuple):
    """Sums of [intercept, coefficients], of which each is called by one coefficient, or a level.

    ``weights`` (k, p) and ``labels`` (k,) are those of the sums, and ``places`` (k,) of the
    coefficients that they stand for; -1 of a level that has none.
    """

    labels: list[str]
    places: Indices
    weights: Array

    def of(self, joint: Any) -> Any:
        """The joint distribution of the sums, in each block of p coefficients of ``joint``."""
        if hasattr(joint, "each"):
            return joint.map(self.of)
        p = self.weights.shape[1]
        if self.weights.shape == (p, p) and (self.weights == np.eye(p)).all():
            return joint
        blocks = joint._size() // p
        names = []
        for block in range(blocks):
            # What a name of the block has more than the coefficient's own: of which class it is.
            place = int(self.places.max())
            own = joint.names[block * p + place]
            more = own.removeprefix(self.labels[self.places.tolist().index(place)])
            names += [f"{label}{more}" for label in self.labels]
        return Combinations(joint, np.kron(np.eye(blocks), self.weights), names)


def contrast_model(model: BaseEstimator, base: Base, named: Sequence[Term] = ()) -> Contrasts:
    """What is shown of a model's coefficients: levels against a base, all others as they are.

    Columns that are known to be levels by their names are ``named``. Raises as
    :func:`contrast_levels`.
    """
    labels, intercept = list(model._coefficient_names()), model._posterior.intercept
    p = len(labels)
    terms, shown = list(named), set(range(p))
    if model._categories is not None:
        first = p - len(model._categories.names)
        terms += list_terms(model._categories, first)
        levels = {place for term in terms for place in term.columns.tolist()}
        shown = {*range(first), *levels}
    if base is None:  # those of which one is left out are differences from it already
        terms = [term for term in terms if intercept and term.columns.min() >= 0]
    for columns in model._posterior.find_sums_to_one():
        if any(np.isin(columns, term.columns).any() for term in terms):
            continue
        found = tuple(labels[column] for column in columns)
        if base is None:
            warn_of_sum(found)
        elif not isinstance(base, Mapping):
            terms.append(Term("", found, found, columns))
    hidden = sorted(set(range(p)) - shown)
    unknown = model._never_varied()
    return contrast_levels(labels, terms, base, unknown, hidden, intercept=intercept)


def list_terms(categories: Categories, first: int) -> list[Term]:
    """The categories as terms, whose columns begin at ``first``."""
    terms = []
    for one in categories.each:
        columns = first + np.arange(len(one.levels)) - one.left_out
        if one.left_out:
            columns[0] = -1
        labels = tuple(f"{one.name}={level}" for level in one.levels)
        terms.append(Term(one.name, one.levels, labels, columns))
        first += one.width
    return terms


def contrast_levels(
    labels: Sequence[str],
    terms: Sequence[Term],
    base: Base,
    unknown: Mask,
    hidden: Sequence[int] = (),
    *,
    intercept: bool,
) -> Contrasts:
    """The contrasts of all levels, beside the other coefficients (p,) as they are.

    Coefficients of which nothing is known, at ``unknown`` (p,), are in no mean, and those at the
    places ``hidden`` are not shown.

    Raises
    ------
    ValueError
        If there is no such base; the message names the nearest.
    """
    p = len(labels)
    shown = {place: [(labels[place], place, row)] for place, row in enumerate(np.eye(p))}
    for term, shares in zip(terms, choose_bases(terms, base, unknown), strict=True):
        levels = term.select(p)
        compared = shares @ levels
        if intercept:
            shown[0][0][2][:] += compared
        places = term.columns.tolist()
        for place in places:
            shown.pop(place, None)
        shown[max(places)] = list(zip(term.labels, places, levels - compared, strict=True))
    for place in hidden:
        shown.pop(place, None)
    rows = [one for place in sorted(shown) for one in shown[place]]
    stand_for = np.array([place for _, place, _ in rows], dtype=np.intp)
    weights = np.array([row for *_, row in rows])
    return Contrasts([label for label, _, _ in rows], stand_for, weights)


def warn_of_sum(names: Sequence[str]) -> None:
    """Warn of columns of zeros and ones of which each row has one 1, as the intercept has."""
    listed = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    warnings.warn(
        f"columns {listed} add up to the intercept, so that no row tells how large each of them "
        "is, and each interval is as wide as the prior leaves it: summary(base='mean') compares "
        "them with their mean, and so does a column of text, which needs no encoder",
        UserWarning,
        stacklevel=find_level_of_user() + 1,
    )


def choose_bases(terms: Sequence[Term], base: Base, unknown: Mask) -> list[Array]:
    """What each term's levels are compared with: the shares (k,) of its levels.

    Parameters and errors as in :func:`contrast_levels`.
    """
    named = base if isinstance(base, Mapping) else {}
    if base is not None and not isinstance(base, Mapping) and base not in ("mean", "first"):
        raise ValueError(
            f"base is {base!r}: it must be 'mean', 'first' or a dict of columns and levels, as in "
            f"{_example(terms)}"
        )
    names = [term.name for term in terms]
    for column in named:
        if column not in names:
            listed = (
                f"the categories are {', '.join(map(repr, names))}"
                if names
                else ("the model has learned no categories")
            )
            raise ValueError(
                f"base names {column!r}, which is no category: {listed}"
                f"{did_you_mean(column, names)}"
            )
    chosen = []
    for term in terms:
        level = to_text(named[term.name]) if term.name in named else None
        if level is not None and level not in term.levels:
            shown = ", ".join(map(repr, term.levels[:20]))
            raise ValueError(
                f"base is {level!r} for column {term.name!r}, which has no such level: its levels "
                f"are {shown}{did_you_mean(level, term.levels)}"
            )
        if level is None and base == "first":
            level = term.levels[0]
        if level is not None:
            chosen.append((np.array(term.levels) == level).astype(np.float64))
            continue
        known = ~np.append(unknown, False)[term.columns]
        chosen.append(known / max(int(known.sum()), 1))
    return chosen


def _example(terms: Sequence[Term]) -> str:
    name, level = (terms[0].name, terms[0].levels[0]) if terms else ("zone", "north")
    return f"base={{{name!r}: {level!r}}}"
