"""A table to try things on, which comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["load_rides", "rides_file"]


def load_rides() -> Any:
    """Simulated taxi rides, as a pandas data frame of 4,000 rows in the order of time.

    Nobody took them: ``posterity/datasets/simulate_rides.py`` made them, and says what is in the
    fares. There are dates, categories and holes, prices that rise, and a few fares that are wrong.

    Returns
    -------
    pandas.DataFrame
        ``pickup`` (a time), ``zone`` (of six), ``distance`` (km), ``passengers``, ``rain`` (mm on
        that day), ``payment`` (card or cash) and ``fare``. Passengers, rain and payment have holes.

    Raises
    ------
    ImportError
        If pandas is not installed; :func:`rides_file` needs nothing.

    Examples
    --------
    >>> from posterity.datasets import load_rides
    >>> rides = load_rides()
    >>> rides.shape, rides["zone"].nunique(), int(rides["passengers"].isna().sum())
    ((4000, 7), 6, 198)
    """
    try:
        import pandas
    except ImportError:
        raise ImportError(
            "load_rides gives a data frame, which needs pandas: pip install pandas, or read the "
            "file that rides_file names, as with posterity.io.open_table"
        ) from None
    return pandas.read_csv(rides_file(), parse_dates=["pickup"])


def rides_file() -> Path:
    """Path of the rides: a gzipped CSV file, as :func:`posterity.io.open_table` reads it.

    Examples
    --------
    >>> from posterity.datasets import rides_file
    >>> rides_file().name
    'rides.csv.gz'
    """
    return Path(__file__).with_name("rides.csv.gz")
