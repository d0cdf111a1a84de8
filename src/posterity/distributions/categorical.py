"""Categorical distributions: probabilities of several classes, one row each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions._rows import FloatArray, as_floats


class Categorical:
    """Categorical distributions over labels, one per row: predictions of a classifier.

    Parameters
    ----------
    classes : (K,) array
        The labels, sorted.
    log_probabilities : (n, K) array
        Natural logarithms; each row sums to one after ``exp``.

    Examples
    --------
    >>> predictive = Categorical(["no", "yes"], np.log([[0.9, 0.1], [0.4, 0.6]]))
    >>> predictive.mode()
    array(['no', 'yes'], dtype='<U3')
    >>> predictive.pmf(["yes", "yes"])
    array([0.1, 0.6])
    >>> predictive.entropy().round(3)
    array([0.325, 0.673])
    >>> len(predictive), predictive[1].probabilities.round(3)
    (2, array([[0.4, 0.6]]))
    """

    __slots__ = ("classes", "log_probabilities")

    def __init__(self, classes: ArrayLike, log_probabilities: ArrayLike) -> None:
        self.classes = np.asarray(classes)
        self.log_probabilities = np.atleast_2d(as_floats(log_probabilities))
        if self.log_probabilities.shape[1:] != self.classes.shape:
            raise ValueError(
                f"log_probabilities has shape {self.log_probabilities.shape}, but there are "
                f"{len(self.classes)} classes: give a column for each"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (n,) of the rows."""
        return self.log_probabilities.shape[:1]

    def __len__(self) -> int:
        return len(self.log_probabilities)

    def __getitem__(self, index: Any) -> Categorical:
        return Categorical(self.classes, self.log_probabilities[index])

    def __repr__(self) -> str:
        return f"Categorical(classes={self.classes.tolist()}, rows={len(self)})"

    @property
    def probabilities(self) -> FloatArray:
        """(n, K) probability of each class."""
        return np.exp(self.log_probabilities)

    def mode(self) -> NDArray[Any]:
        """(n,) the most probable label; of equals the first."""
        return self.classes[np.argmax(self.log_probabilities, axis=1)]

    def logpmf(self, y: ArrayLike) -> FloatArray:
        """(n,) log probability of the label y, one a row or one for all.

        A label that is none of the classes has probability 0.
        """
        y = np.broadcast_to(np.asarray(y), (len(self),))
        place, known = positions(self.classes, y)
        values = np.take_along_axis(self.log_probabilities, place[:, None], axis=1)[:, 0]
        return np.where(known, values, -np.inf)

    def is_flat(self) -> NDArray[np.bool_]:
        """(n,) False: probabilities of classes are always proper."""
        return np.zeros(len(self), dtype=bool)

    def pmf(self, y: ArrayLike) -> FloatArray:
        """(n,) probability of the label y, one a row or one for all."""
        return np.exp(self.logpmf(y))

    # Code that scores by the log density works for labels, too.
    logpdf = logpmf
    pdf = pmf

    def entropy(self) -> FloatArray:
        """(n,) entropy in nats: 0 where the label is certain."""
        probabilities = self.probabilities
        with np.errstate(invalid="ignore"):
            terms = np.where(probabilities > 0.0, probabilities * self.log_probabilities, 0.0)
        return np.maximum(-terms.sum(axis=1), 0.0)

    def rvs(
        self,
        size: int | None = None,
        random_state: int | np.random.Generator | None = None,
        *,
        rng: int | np.random.Generator | None = None,
    ) -> NDArray[Any]:
        """Draw labels: (n,), or (size, n) with ``size`` draws of each row."""
        rng = np.random.default_rng(random_state if rng is None else rng)
        shape = (len(self),) if size is None else (size, len(self))
        steps = np.cumsum(self.probabilities, axis=1)
        drawn = (rng.random(shape)[..., None] * steps[:, -1:] >= steps).sum(axis=-1)
        return self.classes[np.minimum(drawn, len(self.classes) - 1)]


def positions(classes: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Place (n,) of each label among the sorted ``classes``, and whether it is there.

    Examples
    --------
    >>> positions(np.array([1, 3]), np.array([3, 2]))
    (array([1, 1]), array([ True, False]))
    """
    place = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return place, np.asarray(classes[place] == y)
