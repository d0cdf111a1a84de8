"""Estimates of policies' values, and diagnostics of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from posterity.aliases import DataFrame
from posterity.distributions.joint_distribution import require_pandas
from posterity.off_policy.support import Support


@dataclass(frozen=True)
class Estimate:
    """Estimate of the value of a policy, which is its mean reward, by one method.

    Attributes
    ----------
    policy, method : str
    value : float
        Nan where the log can't tell; ``note`` then says why.
    std_error : float
    low, high : float
        Interval for one look at a log of fixed length.
    anytime_low, anytime_high : float
        Interval that holds however often one looks while the log grows.
    note : str
        What is to be known about it; empty where nothing is.
    """

    policy: str
    method: str
    value: float
    std_error: float
    low: float
    high: float
    anytime_low: float
    anytime_high: float
    note: str = ""


@dataclass(frozen=True)
class Evaluation:
    """Estimates of the values of policies from a log.

    Attributes
    ----------
    estimates : tuple of Estimate
    support : dict of policy to Support
    rows : int
        Decisions of the log.
    level : float
        Of the intervals.
    """

    estimates: tuple[Estimate, ...]
    support: dict[str, Support]
    rows: int
    level: float

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        for estimate in self.estimates:
            if (estimate.policy, estimate.method) == key:
                return estimate
        raise KeyError(
            f"there is no estimate {key}: give one of "
            f"{[(e.policy, e.method) for e in self.estimates]}"
        )

    def to_frame(self) -> DataFrame:
        """A pandas data frame, one row for each policy and method.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        frame = require_pandas("to_frame", "estimates").DataFrame(
            [asdict(estimate) for estimate in self.estimates]
        )
        support = [self.support[estimate.policy] for estimate in self.estimates]
        frame.insert(8, "effective_rows", [one.effective_rows for one in support])
        frame.insert(9, "largest_weight", [one.largest_weight for one in support])
        frame.insert(10, "without_support", [one.without_support for one in support])
        return frame
