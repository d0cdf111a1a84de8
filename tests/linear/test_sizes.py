"""Models that are too large are refused before any memory is taken."""

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
