"""Noises of groups under a given prior: what is found once is what is found anew."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posterity.evidence._group_deviance import MeansRegression
from posterity.evidence._group_frame import Frame
from posterity.evidence.group_noises import GivenPrior, _find_modes
from posterity.evidence.group_variances import DEGREES, Spread
from posterity.evidence.groups import GroupSample
from posterity.factor.grouped import GroupBank
from posterity.factor.grouped_rows import GroupedRows


def make_given(free: tuple[bool, ...], groups: int = 5, rows: int = 60) -> GivenPrior:
    rng = np.random.default_rng(2)
    p = len(free)
    X, numbers = rng.normal(size=(rows, p)), rng.integers(groups, size=rows).astype(np.int32)
    y = X[:, 0] + rng.normal(size=rows) * (1.0 + numbers)
    bank = GroupBank(p)
    bank.grow(groups)
    bank.learn(GroupedRows(X, y, None, False, numbers, np.arange(groups)))
    sample = GroupSample(bank.rows(), bank.count.copy(), bank.residuals())
    root = np.triu(rng.normal(size=(p, p))) + 2.0 * np.eye(p)
    return GivenPrior(sample, root, rng.normal(size=p), np.array(free))


@pytest.mark.parametrize("free", [(True, False, False), (True, True, True), (False, False)])
def test_means_are_those_of_groups_in_their_own_units(free: tuple[bool, ...]) -> None:
    given = make_given(free)
    noise = np.array([0.3, 1.0, 2.0, 4.0, 0.9])
    found = given.regress(noise)
    scaled = given.sample.scale(noise, noise)
    frame = Frame.identity(scaled, None)
    anew = MeansRegression(frame, given.mean, given.free, given.root)
    assert_allclose(found.mean, anew.mean, rtol=1e-10)
    assert_allclose(found.residual, anew.residual, rtol=1e-10)
    assert_allclose(found.log_determinants, anew.log_determinants, rtol=1e-10)
    assert_allclose(found.factor.root, anew.factor.root, atol=1e-10)


def test_modes_are_where_the_density_is_level() -> None:
    count, residual = np.array([3.0, 10.0, 40.0, 0.0]), np.array([9.0, 4.0, 55.0, 0.0])
    modes = _find_modes(count, residual)
    none = np.zeros((4, 0))
    slope, curvature = Spread(none, none, none, count, residual).evaluate(modes.logs)
    slope += 0.5 * DEGREES[:, None] * (np.exp(modes.log_scale[:, None] - modes.logs) - 1.0)
    assert_allclose(slope / (curvature + 0.5 * DEGREES[:, None]), 0.0, atol=1e-9)
    assert_allclose(modes.curvature, curvature + 0.5 * DEGREES[:, None])
