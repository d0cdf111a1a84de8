"""Looks at labels among several classes, in C and in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.kernel import look_at_labels
from posterity.posteriors._softmax_likelihood import LabelLikelihood, helmert


@pytest.mark.parametrize("n_classes", [2, 3, 5, 9])
@pytest.mark.parametrize("n_points", [0, 1, 7, 33])
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0, 1e4])
def test_looks_are_those_of_the_twin(n_classes: int, n_points: int, size: float) -> None:
    rng = np.random.default_rng(n_points)
    labels, basis = rng.integers(0, n_classes, size=11), helmert(n_classes)
    places = size * rng.normal(size=(11, n_classes - 1))
    moved = 0.5 * size * rng.normal(size=(11, n_points, n_classes - 1)) if n_points else None
    value, slope, curvature = look_at_labels(labels, places, basis, moved)
    twin = LabelLikelihood.evaluate_at(labels, places, basis, moved)
    assert np.allclose(value, twin.value, rtol=1e-13, atol=1e-13)
    assert np.allclose(slope, twin.slope(basis), rtol=1e-12, atol=1e-14)
    assert np.allclose(
        np.diagonal(curvature, axis1=1, axis2=2), twin.sizes(basis), rtol=1e-12, atol=1e-14
    )
    turned = [twin.multiply_curvature(np.tile(one, (11, 1))) @ basis for one in basis.T]
    assert np.allclose(curvature, np.stack(turned, axis=1), rtol=1e-12, atol=1e-14)


def test_labels_that_are_no_places_are_refused() -> None:
    with pytest.raises(ValueError, match="label 3 is none of 3 classes"):
        look_at_labels(np.array([3]), np.zeros((1, 2)), helmert(3))
    with pytest.raises(ValueError, match="there are 2 labels for 1 places"):
        look_at_labels(np.array([0, 1]), np.zeros((1, 2)), helmert(3))
