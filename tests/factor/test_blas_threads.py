"""BLAS keeps to one thread where more do not pay, and has its own again afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from posterity import BayesianGeneralizedLinear
from posterity.factor.parallel import FEW_COLUMNS, limit_blas_threads
from posterity.likelihoods import Poisson

Array = NDArray[np.float64]

threadpoolctl = pytest.importorskip("threadpoolctl")


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Whatever the tests are run with."""
    with threadpoolctl.threadpool_limits(limits=2, user_api="blas"):
        yield


def threads() -> list[int]:
    return [
        pool["num_threads"]
        for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas"
    ]


def test_one_thread_inside_and_all_of_them_after() -> None:
    before = threads()
    with limit_blas_threads(200):
        assert set(threads()) <= {1}
        with limit_blas_threads(100):
            assert set(threads()) <= {1}
        assert set(threads()) <= {1}
    assert threads() == before


def test_an_error_inside_restores_them() -> None:
    before = threads()
    with pytest.raises(ZeroDivisionError), limit_blas_threads(200):
        1 / 0  # noqa: B018
    assert threads() == before


def test_large_work_has_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTERITY_NUM_THREADS", "2")
    before = threads()
    with limit_blas_threads(FEW_COLUMNS + 1):
        assert threads() == before
    monkeypatch.setenv("POSTERITY_NUM_THREADS", "1")
    with limit_blas_threads(FEW_COLUMNS + 1):
        assert set(threads()) <= {1}
    assert threads() == before


def test_several_threads_at_once_restore_them() -> None:
    before = threads()

    def work(_: int) -> None:
        with limit_blas_threads(64):
            np.linalg.svd(np.eye(64))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(100)))
    assert threads() == before


@pytest.mark.parametrize("mine", [(0.0, 0.02), (0.01, 0.0), (0.01, 0.04), (0.0, 0.05)])
def test_who_comes_first_and_who_goes_last_makes_no_difference(mine: tuple[float, float]) -> None:
    before = threads()

    def work(wait: float, stay: float) -> None:
        time.sleep(wait)
        with limit_blas_threads(200):
            time.sleep(stay)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(work, 0.005, 0.03)
        work(*mine)
        other.result()
    assert threads() == before


class Watched(Poisson):
    """Tells of how many threads BLAS has while a model learns."""

    seen: ClassVar[set[int]] = set()
    kernel_code = None

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        self.seen.update(threads())
        return super().derivatives(y, eta)


def test_a_fit_of_many_rows_has_one_thread() -> None:
    before, rng = threads(), np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.poisson(1.0, 200).astype(float)
    BayesianGeneralizedLinear(Watched()).fit(X, y)
    assert Watched.seen == {1}
    assert threads() == before
