"""Members of an average that learn side by side, beside each of them alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression, kernel
from posterity.distributions import StudentT
from posterity.forgetting import Adaptive
from posterity.posteriors._noise_memories import NoiseMemories
from posterity.posteriors.averaged import AveragedPosterior

# What a prior weighs at most between two rows of a call.
MOST = 1.1 / 0.6


class Problem:
    """Rows, and members with priors of their own that may have seen some before."""

    def __init__(self, seed: int, n: int, m: int, members: int, *, weighted: bool, flat: bool):
        rng = np.random.default_rng(seed)
        self.X, self.Y = rng.normal(size=(n, m)), rng.normal(size=(n, 1))
        self.weights = rng.choice([0.0, 0.5, 1.0, 3.0], p=[0.02, 0.3, 0.5, 0.18], size=n)
        if not weighted:
            self.weights = None
        self.elapsed = rng.choice([1.0, 1.0, 1.0, 0.0, 0.5, 3.0], size=n)
        self.rates = rng.choice([0.6, 0.9, 0.99, 1.0], size=members)
        self.priors, self.triangles = [], []
        for _ in range(members):
            prior, before = kernel.empty_triangle(m + 2), rng.normal(size=(5, m))
            if not flat:
                rows = np.diag(rng.uniform(0.3, 2.0, size=m + 1))
                kernel.append_block(prior, 1, rows, rng.normal(size=(m + 1, 1)), None, False)
            triangle = prior.copy()
            kernel.append_block(triangle, 1, before, rng.normal(size=(5, 1)), None, True)
            self.priors.append(prior)
            self.triangles.append(triangle)

    def together(self) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
        triangles = [triangle.copy() for triangle in self.triangles]
        counts = np.full(len(triangles), 5.0)
        rows = self.X, self.Y, self.weights, True, self.elapsed
        predictive = kernel.learn_side_by_side(triangles, self.priors, self.rates, counts, *rows)
        return predictive[0], predictive[1], triangles, counts

    def discounts(self, i: int) -> np.ndarray:
        return np.maximum(self.rates[i] ** self.elapsed, 1e-12)

    def alone(self, i: int, firmness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Error and leverage of each row by the normal equations, the prior weighing so much."""
        p = self.X.shape[1] + 1
        prior = self.priors[i][:, : p + 1].T @ self.priors[i][:, : p + 1]
        triangle = self.triangles[i][:, : p + 1]
        data, predictive = triangle.T @ triangle - prior, []
        for j, discount in enumerate(self.discounts(i)):
            data *= discount
            row = np.concatenate([[1.0], self.X[j], self.Y[j]])
            known, x = data + firmness * prior, row[:p]
            solved = np.linalg.solve(known[:p, :p], np.column_stack([known[:p, p], x]))
            predictive.append((row[p] - x @ solved[:, 0], x @ solved[:, 1]))
            data += (1.0 if self.weights is None else self.weights[j]) * np.outer(row, row)
        error, leverage = np.array(predictive).T
        return error, leverage


SIZES = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(1, 150),
    "m": st.integers(1, 9),
    "members": st.integers(1, 18),
    "weighted": st.booleans(),
}


@given(**SIZES, flat=st.booleans())
def test_all_that_is_known_in_the_end_is_what_each_knows_alone(
    seed: int, n: int, m: int, members: int, weighted: bool, flat: bool
) -> None:
    problem = Problem(seed, n, m, members, weighted=weighted, flat=flat)
    _, _, triangles, counts = problem.together()
    for i, triangle in enumerate(triangles):
        expected, discounts = problem.triangles[i].copy(), problem.discounts(i)
        rows = problem.X, problem.Y, problem.weights, True, discounts
        kernel.learn_stabilized(expected, 1, *rows, problem.priors[i])
        assert triangle.T @ triangle == pytest.approx(expected.T @ expected, rel=1e-8, abs=1e-8)
        count = kernel.fading_counts(5.0, n, problem.weights, discounts)[-1]
        assert counts[i] == pytest.approx(count, rel=1e-12)


@given(**SIZES)
def test_rows_are_predicted_by_a_prior_that_weighs_between_one_and_its_most(
    seed: int, n: int, m: int, members: int, weighted: bool
) -> None:
    problem = Problem(seed, n, m, members, weighted=weighted, flat=False)
    _, leverage, _, _ = problem.together()
    for i in range(members):
        least, most = problem.alone(i, MOST)[1], problem.alone(i)[1]
        assert (leverage[:, i] >= least * (1.0 - 1e-7)).all()
        assert (leverage[:, i] <= most * (1.0 + 1e-7)).all()


@given(**SIZES)
def test_where_nothing_fades_each_row_is_predicted_as_alone(
    seed: int, n: int, m: int, members: int, weighted: bool
) -> None:
    problem = Problem(seed, n, m, members, weighted=weighted, flat=False)
    problem.rates[...] = 1.0
    error, leverage, _, _ = problem.together()
    for i in range(members):
        exact = problem.alone(i)
        assert error[:, i] == pytest.approx(exact[0], rel=1e-7, abs=1e-7)
        assert leverage[:, i] == pytest.approx(exact[1], rel=1e-7)


@given(**SIZES)
def test_without_a_prior_each_row_is_predicted_as_alone(
    seed: int, n: int, m: int, members: int, weighted: bool
) -> None:
    problem = Problem(seed, n, m, members, weighted=weighted, flat=True)
    problem.rates = np.maximum(problem.rates, 0.9)
    error, leverage, _, _ = problem.together()
    for i, (triangle, discounts) in enumerate(
        (one, problem.discounts(i)) for i, one in enumerate(problem.triangles)
    ):
        rows = problem.X, problem.Y, problem.weights, True, discounts
        expected = kernel.learn_rows(triangle, 1, *rows)
        assert np.array_equal(np.isinf(expected[1]), np.isinf(leverage[:, i]))
        plain = expected[1] < 1e6
        assert error[plain, i] == pytest.approx(expected[0][plain, 0], rel=1e-7, abs=1e-7)
        assert leverage[plain, i] == pytest.approx(expected[1][plain], rel=1e-7)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 80),
    members=st.integers(1, 11),
    weighted=st.booleans(),
    size=st.sampled_from([1e-160, 1e-8, 1.0, 1e60]),
)
def test_noises_side_by_side_are_those_of_each(
    seed: int, n: int, members: int, weighted: bool, size: float
) -> None:
    from posterity.noise import LearnedNoise

    rng = np.random.default_rng(seed)
    lanes, noise = -(-members // 8) * 8, LearnedNoise()
    error = size * rng.standard_t(2.0, size=(n, lanes))
    leverage = rng.choice([0.01, 0.5, 40.0, np.inf], p=[0.5, 0.3, 0.15, 0.05], size=(n, lanes))
    y = size * rng.normal(size=n)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if weighted else None
    ours, theirs = ([NoiseMemories() for _ in range(members)] for _ in range(2))
    for part in (slice(0, n // 2), slice(n // 2, n)):
        some = None if weights is None else weights[part]
        paths = [one.path(noise, 3) for one in ours]
        predictive = kernel.tell_by_noises(
            paths, error[part].copy(), leverage[part].copy(), y[part], some
        )
        loc, scale, df, densities, ranks = predictive
        for i, one in enumerate(theirs):
            e, spread = error[part, i].copy(), 1.0 + leverage[part, i]
            residual_df, variance = one.follow(noise, 3, e, spread, some)
            with np.errstate(invalid="ignore"):
                root = np.sqrt(spread) * np.sqrt(variance)
            root[np.isnan(root)] = np.inf
            expected = StudentT(residual_df, y[part] - e, root)
            assert np.array_equal(loc[i], expected.loc)
            assert df[i] == pytest.approx(residual_df, rel=1e-9)
            assert scale[i] == pytest.approx(root, rel=1e-9)
            density = np.clip(np.nan_to_num(expected.logpdf(y[part]), nan=-1e4), -1e4, 1e4)
            density = density if some is None else some * density
            assert densities[i] == pytest.approx(density, rel=1e-8, abs=1e-8)
            knows = (root > 0.0) & np.isfinite(root)
            assert np.array_equal(ranks[i], knows * (1 + (residual_df > 2.0)))
    for one, other in zip(ours, theirs, strict=True):
        assert one.state == pytest.approx(other.state, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("settings", [{"prior_precision": 0.5}, {}, {"noise_precision": 2.0}])
@pytest.mark.parametrize("constant", [False, True])
def test_the_model_is_that_of_members_one_after_another(
    settings: dict[str, float], constant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    X[: 390 if constant else 0, 2] = 1.5
    y = X @ np.array([1.0, -1.0, 0.5]) + rng.normal(size=400)
    weights = rng.choice([0.0, 1.0, 2.0], size=400)
    models = []
    for in_turn in (False, True):
        if in_turn:
            monkeypatch.setattr(
                AveragedPosterior, "_learn_together", AveragedPosterior._learn_in_turn
            )
        model = BayesianLinearRegression(forgetting=Adaptive((1.0, 0.99)), **settings)
        predictive = model.predict_then_learn(X, y, sample_weight=weights)
        models.append((model, predictive))
    (ours, predictive), (theirs, expected) = models
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=2e-3)
    assert ours.n_effective_ == pytest.approx(theirs.n_effective_, rel=0.02)
    assert ours.log_evidence_ == pytest.approx(theirs.log_evidence_, rel=1e-3)
    assert predictive.mean()[50:] == pytest.approx(expected.mean()[50:], abs=0.02)
    assert predictive.std()[50:] == pytest.approx(expected.std()[50:], rel=0.02)


def test_what_does_not_fit_together_is_refused() -> None:
    problem = Problem(0, 5, 2, 3, weighted=False, flat=False)
    rows = problem.X, problem.Y, None, True, problem.elapsed
    with pytest.raises(ValueError, match="not of the same members"):
        kernel.learn_side_by_side(
            problem.triangles, problem.priors[:2], problem.rates, np.zeros(3), *rows
        )
    wrong = [np.zeros((3, 8))] * 3
    with pytest.raises(ValueError, match="a triangle has shape"):
        kernel.learn_side_by_side(wrong, problem.priors, problem.rates, np.zeros(3), *rows)
    with pytest.raises(ValueError, match="not those of so many members"):
        kernel.tell_by_noises([], np.zeros((2, 8)), np.zeros((3, 8)), np.zeros(2), None)
