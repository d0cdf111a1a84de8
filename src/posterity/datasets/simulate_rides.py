"""Simulate ``rides.csv.gz``: 4,000 taxi rides in an imaginary town.

Run ``python -m posterity.datasets.simulate_rides FILE``. What is in the fares on purpose: a price
for each kilometre that is higher in rush hours, night and airport surcharges, prices that rise by a
tenth with the year 2025, noise that grows with the distance, and some fares that are plainly wrong.
"""

from __future__ import annotations

import gzip
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HEADER = "pickup,zone,distance,passengers,rain,payment,fare"
N_RIDES = 4000
ZONES = {
    "airport": 0.08,
    "centre": 0.34,
    "harbour": 0.15,
    "hills": 0.1,
    "station": 0.2,
    "west": 0.13,
}
# What a ride that starts there costs more than one from the centre.
SURCHARGES = {
    "airport": 6.5,
    "centre": 0.0,
    "harbour": 0.8,
    "hills": 1.9,
    "station": 0.6,
    "west": -0.4,
}
BUSY = np.array(
    [1, 1, 1, 1, 1, 2, 4, 8, 9, 6, 5, 5, 6, 6, 5, 6, 8, 10, 9, 7, 5, 4, 3, 2], dtype=float
)
START, DAYS = datetime(2024, 1, 1), 731
RISE_AT = datetime(2025, 1, 1)


def rides(seed: int = 2024) -> str:
    """The table as CSV.

    Examples
    --------
    >>> rides().splitlines()[0]
    'pickup,zone,distance,passengers,rain,payment,fare'
    """
    rng = np.random.default_rng(seed)
    days = np.sort(rng.integers(0, DAYS, N_RIDES))
    hours = rng.choice(24, size=N_RIDES, p=BUSY / BUSY.sum())
    minutes = rng.integers(0, 60, N_RIDES)
    rain_of_day = np.where(rng.random(DAYS) < 0.3, rng.gamma(1.2, 3.0, DAYS), 0.0)
    zone = rng.choice(list(ZONES), size=N_RIDES, p=list(ZONES.values()))
    far = zone == "airport"
    distance = np.where(far, rng.normal(17.0, 3.0, N_RIDES), rng.gamma(2.2, 2.1, N_RIDES))
    distance = np.maximum(distance, 0.4).round(1)
    passengers = 1 + rng.poisson(0.45, N_RIDES).clip(0, 5)
    card = rng.random(N_RIDES) < 0.6 + 0.25 * days / DAYS
    when = sorted(
        START + timedelta(days=int(day), hours=int(hour), minutes=int(minute))
        for day, hour, minute in zip(days, hours, minutes, strict=True)
    )
    rain = rain_of_day[[(one - START).days for one in when]].round(1)
    fares = _simulate_fares(when, distance, zone, rain, rng)
    lines = [HEADER]
    for row in range(N_RIDES):
        hole = rng.random(3) < (0.05, 0.03, 0.04)
        cells = (
            f"{when[row]:%Y-%m-%d %H:%M}",
            zone[row],
            f"{distance[row]:.1f}",
            "" if hole[0] else str(passengers[row]),
            "" if hole[1] else f"{rain[row]:.1f}",
            "" if hole[2] else ("card" if card[row] else "cash"),
            f"{fares[row]:.2f}",
        )
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def _simulate_fares(
    when: list[datetime],
    distance: NDArray[np.float64],
    zone: NDArray[np.str_],
    rain: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    hour = np.array([one.hour for one in when])
    weekday = np.array([one.weekday() for one in when]) < 5
    rush = weekday & (((hour >= 7) & (hour < 10)) | ((hour >= 16) & (hour < 19)))
    night = (hour >= 22) | (hour < 6)
    expected = 3.2 + distance * (1.75 + 0.35 * rush) + 2.2 * night + 0.08 * np.minimum(rain, 20.0)
    expected += np.array([SURCHARGES[name] for name in zone])
    expected *= np.where(np.array(when) >= RISE_AT, 1.1, 1.0)
    fares = expected + (0.5 + 0.07 * distance) * rng.standard_t(6.0, len(when))
    wrong = rng.random(len(when)) < 0.004
    fares[wrong] *= rng.choice([0.2, 5.0], size=int(wrong.sum()))
    return np.maximum(fares, 3.0)


def main() -> None:
    """Write the file; without a time in it, so that it is the same each time."""
    with Path(sys.argv[1]).open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(rides().encode())


if __name__ == "__main__":
    main()
