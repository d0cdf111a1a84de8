"""Result of a comparison of models."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from posterity.aliases import Array, DataFrame, Document
from posterity.distributions.joint_distribution import require_pandas
from posterity.evaluation._tables import count_rows, to_plain

# Kass and Raftery (1995), section 3.2, whose scale is of twice the log: in nats, rounded as theirs.
STRENGTHS = (
    (1.0, "not worth more than a bare mention"),
    (3.0, "positive"),
    (5.0, "strong"),
    (math.inf, "very strong"),
)
LABELS = {"evidence": "log evidence", "prequential": "prequential log score"}


def strength(difference: float) -> str:
    """Return the strength of a difference of two log evidences, in words.

    Parameters
    ----------
    difference : float
        In nats, at least 0.

    Returns
    -------
    str
        Kass and Raftery (1995), Bayes factors, section 3.2: below 1 nat not worth more than a
        bare mention, below 3 positive, below 5 strong, beyond that very strong.

    Examples
    --------
    >>> strength(2.0)
    'positive'
    """
    return next(words for limit, words in STRENGTHS if difference < limit or limit == math.inf)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models on the same rows, each with its score and its probability.

    Attributes
    ----------
    names : tuple of str
        The models, in the order they were given.
    score : str
        What was compared: "evidence" or "prequential".
    log_scores : (k,) array, nats
        Log evidence, or sum of the log predictive densities; larger is better.
    weights : (k,) array
        Posterior probabilities of the models: prior weight times exp(log score), to sum to 1.
    prior_weights : (k,) array
        Prior probabilities.
    n_rows : int
        Rows seen.
    n_unscored : int
        Rows in no model's score, because some model did not predict them with a density yet.
    """

    names: tuple[str, ...]
    score: str
    log_scores: Array
    weights: Array
    prior_weights: Array
    n_rows: int
    n_unscored: int = 0

    @property
    def best(self) -> str:
        """Name of the model with the highest score, whatever the prior weights."""
        return self.names[int(np.argmax(self.log_scores))]

    @property
    def differences(self) -> Array:
        """Distance of each model from the best (k,), in nats, at least 0."""
        highest = self.log_scores.max()
        # Infinite scores: those that share the highest are not behind it.
        with np.errstate(invalid="ignore"):
            return np.where(self.log_scores == highest, 0.0, highest - self.log_scores)

    @property
    def strengths(self) -> tuple[str, ...]:
        """Strength of the evidence for the best model against each, in words; "best" for itself.

        Kass and Raftery (1995), Bayes factors, J. Am. Stat. Assoc. 90, 773-795, section 3.2.
        """
        behind = self.differences.tolist()
        return tuple("best" if nats == 0.0 else strength(nats) for nats in behind)

    def to_dict(self) -> Document:
        """Plain numbers, strings, lists and None (for what is not finite): ready for JSON."""
        return {
            "score": self.score,
            "n_rows": self.n_rows,
            "n_unscored": self.n_unscored,
            "best": self.best,
            "models": to_plain(self._rows()),
        }

    def to_frame(self) -> DataFrame:
        """A pandas data frame with a row for each model, the best first.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = require_pandas("to_frame", "to_dict()")
        return pandas.DataFrame([self._rows()[k] for k in self._order()]).set_index("name")

    def __repr__(self) -> str:
        count = "1 model" if len(self.names) == 1 else f"{len(self.names)} models"
        wide = max(len("model"), *(len(name) for name in self.names))
        label = LABELS[self.score]
        lines = [
            f"Comparison of {count} on {count_rows(self.n_rows)}, in nats",
            f"  {'model':<{wide}}  {label:>21}  {'behind':>10}  {'weight':>8}  evidence against",
        ]
        lines += [
            f"  {self.names[k]:<{wide}}  {self.log_scores[k]:>21.6g}  "
            f"{self.differences[k]:>10.4g}  {self.weights[k]:>8.4f}  {self.strengths[k]}"
            for k in self._order()
        ]
        if self.n_unscored:
            unscored = count_rows(self.n_unscored)
            lines.append(f"  {unscored} not scored: not every model predicted a density yet")
        return "\n".join(lines)

    def _order(self) -> list[int]:
        """The models, best first."""
        return np.argsort(-self.log_scores, kind="stable").tolist()

    def _rows(self) -> list[Document]:
        columns = {
            "log_score": self.log_scores.tolist(),
            "difference": self.differences.tolist(),
            "weight": self.weights.tolist(),
            "prior_weight": self.prior_weights.tolist(),
            "strength": list(self.strengths),
        }
        return [
            {"name": name, **{column: values[k] for column, values in columns.items()}}
            for k, name in enumerate(self.names)
        ]
