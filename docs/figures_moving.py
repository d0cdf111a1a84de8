"""Draw the first page's moving figure into docs/_static (`make figures`): rows that arrive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from posterity import BayesianLinearRegression

Array = NDArray[np.float64]

TARGET = Path(__file__).parent / "_static" / "stream.svg"
ROWS, CHANGE = 160, 95
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 300, 14, 34, 34
SECONDS = 9
CAPTION = "each row is predicted before it is learned: mean and 90% interval"

STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #4d4d4d; }
  .axis { stroke: #8a8a8a; stroke-width: 1; }
  .row { fill: #222; }
  .curtain { transform-origin: left; animation: open SECONDSs linear 1 both; }
  @keyframes open { 0% { transform: scaleX(0.02); } 100% { transform: scaleX(1); } }
  @media (prefers-color-scheme: dark) {
    text { fill: #c8c8c8; }
    .row { fill: #f0f0f0; }
  }
  @media (prefers-reduced-motion: reduce) { .curtain { animation: none; } }
"""


def simulate() -> tuple[Array, Array]:
    """One feature, and targets whose level changes half way."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(ROWS, 1))
    level = np.where(np.arange(ROWS) < CHANGE, 10.0, 14.0)
    return x, level + 0.3 * x[:, 0] + rng.normal(size=ROWS)


def draw() -> str:
    """The figure as text."""
    x, y = simulate()
    model = BayesianLinearRegression(forgetting="adaptive")
    predicted = model.predict_then_learn(x, y)
    low, high = predicted.interval(0.9)
    bottom, top = y.min() - 1.5, y.max() + 1.5
    across = LEFT + (WIDTH - 2 * LEFT) * (np.arange(ROWS) + 0.5) / ROWS

    def up(values: Array) -> Array:
        shares = (np.clip(values, bottom, top) - bottom) / (top - bottom)
        return np.asarray(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * shares)

    known = np.isfinite(low) & np.isfinite(high)
    forth = [f"{a:.1f},{b:.1f}" for a, b in zip(across[known], up(low)[known], strict=True)]
    back = [f"{a:.1f},{b:.1f}" for a, b in zip(across[known], up(high)[known], strict=True)]
    mean = [
        f"{a:.1f},{b:.1f}" for a, b in zip(across[known], up(predicted.mean())[known], strict=True)
    ]
    rows = [
        f'<circle class="row" cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>'
        for a, b in zip(across, up(y), strict=True)
    ]
    where = LEFT + (WIDTH - 2 * LEFT) * CHANGE / ROWS
    floor = HEIGHT - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Rows arrive one by one: each is predicted, with a 90% interval, before it is "
        "learned. The interval narrows; the level changes, and the interval follows.</title>",
        f"<style>{STYLE.replace('SECONDS', str(SECONDS))}</style>",
        f'<defs><clipPath id="seen"><rect class="curtain" x="0" y="0" width="{WIDTH}" '
        f'height="{HEIGHT}"/></clipPath></defs>',
        f'<text x="{LEFT}" y="18">{CAPTION}</text>',
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{floor}" y2="{floor}"/>',
        f'<text x="{LEFT}" y="{HEIGHT - 12}">first row</text>',
        f'<text x="{where:.0f}" y="{HEIGHT - 12}" text-anchor="middle">the level changes</text>',
        f'<text x="{WIDTH - LEFT}" y="{HEIGHT - 12}" text-anchor="end">row {ROWS}</text>',
        '<g clip-path="url(#seen)">',
        f'<polygon points="{" ".join(forth + back[::-1])}" fill="#0072B2" opacity="0.25"/>',
        f'<polyline points="{" ".join(mean)}" fill="none" stroke="#0072B2" stroke-width="2"/>',
        *rows,
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    TARGET.write_text(draw(), encoding="utf-8")
