"""The components of a mixture and their weights, and draws among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.location_scale import LocationScale
from posterity.distributions.normal import Normal
from posterity.distributions.student_t import StudentT


def check_weights(weights: ArrayLike, count: int) -> FloatArray:
    """Weights of ``count`` components, (count,) or (n, count), as floats.

    Raises
    ------
    ValueError
        If their number does not fit, or one is negative or NaN, or they do not sum to 1; names the
        row.
    """
    array = as_floats(weights)
    if array.ndim not in (1, 2) or array.shape[-1] != count:
        raise ValueError(
            f"weights have shape {array.shape}, but there are {count} components; "
            f"give ({count},) or (n, {count})"
        )
    good = (np.abs(array @ np.ones(count) - 1.0) <= 1e-8) if array.size else np.ones(0, dtype=bool)
    if array.size and not (array.min() >= 0.0 and good.all()):
        negative = ~(array >= 0.0).all(axis=-1)
        bad = np.flatnonzero(np.atleast_1d(negative | ~good))[0]
        where = f"the weights of row {bad}" if array.ndim == 2 else "the weights"
        values = np.atleast_2d(array)[bad]
        raise ValueError(
            f"{where} must be at least 0 and sum to 1, but they are {values.tolist()}; "
            "divide them by their sum"
        )
    return array


def check_components(components: Sequence[LocationScale], weights: FloatArray) -> None:
    """Refuse what is not a sequence of Normal and StudentT of the same rows; see Mixture."""
    if not components:
        raise ValueError("there are no components; give at least one Normal or StudentT")
    shapes = {"the weights": weights.shape[:-1]}
    for k, component in enumerate(components):
        if not isinstance(component, Normal | StudentT):
            raise TypeError(
                f"component {k} is a {type(component).__name__}; give Normal or StudentT"
            )
        shapes[f"component {k}"] = component.shape
    with_rows = [(name, shape) for name, shape in shapes.items() if shape]
    for name, shape in with_rows[1:]:
        first, expected = with_rows[0]
        if shape != expected:
            raise ValueError(
                f"{name} has shape {shape}, but {first} {expected}; "
                "give all components the same rows, or a single distribution"
            )


def draw_components(rng: np.random.Generator, weights: FloatArray, size: tuple[int, ...]) -> Any:
    """The component of each draw, by inversion; one of weight 0 is never drawn."""
    # Rounding may leave a draw beyond the sum of the weights: it goes to the heaviest component.
    chosen = np.broadcast_to(np.argmax(weights, axis=-1), size)
    left = rng.random(size)
    undecided = np.ones(size, dtype=bool)
    for k in range(weights.shape[-1]):
        here = undecided & (left < weights[..., k])
        chosen = np.where(here, k, chosen)
        undecided = undecided & ~here
        left = left - weights[..., k]
    return chosen
