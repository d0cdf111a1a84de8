"""What the page "What is guaranteed" says holds."""

from __future__ import annotations

import pytest

from guarantees import check as simulated
from guarantees import topics

CHECKS = topics.checks()


@pytest.mark.slow
@pytest.mark.parametrize(
    "check", CHECKS, ids=[f"{c.topic}: {c.setting}, {c.level}" for c in CHECKS]
)
def test_held(check: simulated.Check) -> None:
    result = simulated.run(check)
    assert result.passed, f"held {result.held:.3f} +- {result.error:.3f}"
