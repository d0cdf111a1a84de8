"""Models that are too large are refused before any memory is taken."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression, BayesianLogisticRegression, safety


@pytest.mark.parametrize("prior_precision", [1.0, "auto"])
@pytest.mark.parametrize("kind", [BayesianLinearRegression, BayesianLogisticRegression])
def test_a_model_that_cannot_be_read_is_not_begun(
    kind: type, prior_precision: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safety, "machine_memory", lambda: 1e6)
    model = kind(prior_precision=prior_precision)
    y = np.arange(4) % 2
    with pytest.raises(ValueError, match=r"a model of 300 columns needs .* GB .*: use fewer"):
        model.fit(np.eye(4, 300), y)
    assert not hasattr(model, "n_features_in_")
    model.fit(np.eye(4, 30), y)


def test_one_of_twenty_thousand_columns_says_what_it_needs() -> None:
    # The triangles of all machines' models together: 45 GB, or more than any model may take.
    if safety.machine_memory() > 44e9:
        pytest.skip("this machine has the memory")
    with pytest.raises(ValueError, match="a model of 20,000 columns needs 45 GB of memory"):
        BayesianLinearRegression().fit(np.ones((3, 20_000)), [1.0, 2.0, 3.0])


def test_what_could_be_begun_can_be_read() -> None:
    model = BayesianLinearRegression(prior_precision=1.0).fit(np.eye(4, 300), np.arange(4.0))
    tracemalloc.start()
    assert model.posterior_.cov.shape == (301, 301)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(safety, "machine_memory", lambda: 2.0 * 8 * 302**2 + peak)
        with pytest.raises(ValueError, match="a model of 300 columns"):
            BayesianLinearRegression(prior_precision=1.0).fit(np.eye(4, 300), np.arange(4.0))


def test_a_limit_of_the_process_is_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    container, nothing = tmp_path / "memory.max", tmp_path / "none"
    monkeypatch.setattr(safety, "CONTAINER_LIMITS", (str(nothing), str(container)))
    safety.machine_memory.cache_clear()
    try:
        whole = safety.machine_memory()
        container.write_text("max\n")
        safety.machine_memory.cache_clear()
        assert safety.machine_memory() == whole
        container.write_text("1000000\n")
        safety.machine_memory.cache_clear()
        assert safety.machine_memory() == 1e6
        monkeypatch.setattr(safety, "_process_limit", lambda: 5e5)
        safety.machine_memory.cache_clear()
        with pytest.raises(ValueError, match="a model of 300 columns"):
            BayesianLinearRegression().fit(np.eye(4, 300), np.arange(4.0))
        assert safety.machine_memory() == 5e5
    finally:
        safety.machine_memory.cache_clear()
