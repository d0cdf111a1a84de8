"""What show prints: numbers whole, names folded, and what the coefficients are of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import posterity
from posterity.cli import text
from posterity.cli.commands import posterity as command

LONG = "zone=" + "Crotona Park East, and all that lies behind it " * 3


def done(*arguments: object) -> str:
    result = CliRunner().invoke(command, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def rides(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    far = rng.integers(0, 9, size=60)
    kind = np.where(far + rng.normal(size=60) > 4, "card", "cash")
    rows = [f"{x},{LONG[5:]!r},{k}" for x, k in zip(far, kind, strict=True)]
    rows[0] = rows[0].replace("Crotona", "Bronx")
    path = tmp_path / "rides.csv"
    path.write_text("km,zone,paid\n" + "\n".join(row.replace(", and", " and") for row in rows))
    return path


def test_a_pipe_has_no_width(rides: Path) -> None:
    model = rides.with_suffix(".posterity")
    done("fit", rides, "--target", "km", "--drop", "paid", "--output", model)
    shown = done("show", model)
    assert "…" not in shown
    lines = [line for line in shown.splitlines() if line.startswith("zone=")]
    name = f"zone={posterity.load(model).categories_.each[0].levels[1]}"
    (line,) = (line for line in lines if line.startswith(name))
    assert len([float(word) for word in line[len(name) :].split()]) == 4


def test_a_narrow_terminal_folds_names(capsys: pytest.CaptureFixture[str]) -> None:
    table = text.table("coefficient", "mean", "std")
    table.add_row(LONG, "-0.0531416", "0.00271828")
    console = text.console()
    console.width = 60
    console.print(table)
    shown = capsys.readouterr().out
    assert "-0.0531416" in shown
    assert "0.00271828" in shown
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 60
    assert LONG.replace(" ", "") in shown.replace("-0.0531416", "").replace(
        "0.00271828", ""
    ).replace(" ", "").replace("\n", "")


@pytest.mark.parametrize(
    ("target", "model", "predictive"),
    [
        ("km", "linear", "km"),
        ("km", "quantile:0.9", "the 0.9 quantile of km"),
        ("km", "poisson", "the log of the expected km"),
        ("paid", "logistic", "the log odds of 'cash' against 'card'"),
    ],
)
def test_what_the_coefficients_are_of(
    rides: Path, target: str, model: str, predictive: str
) -> None:
    path = rides.with_suffix(".posterity")
    done("fit", rides, "--target", target, "--model", model, "--output", path)
    assert f"coefficients of         {predictive}\n" in done("show", path)


def test_what_auto_has_learned(rides: Path) -> None:
    path = rides.with_suffix(".posterity")
    options = ("--target", "km", "--output", path, "--features", "zone,paid")
    done("fit", rides, *options)
    learned = json.loads(done("show", path, "--json"))["prior_std_learned"]
    fitted = posterity.load(path)
    expected = (fitted.prior_precision_ * fitted.noise_precision_) ** -0.5
    names = fitted.posterior_.names[1:]
    shown = [not name.endswith("=(other)") for name in names]
    np.testing.assert_allclose(learned, expected[shown])
    ends = f"{min(learned):.4g} to {max(learned):.4g}"
    assert f"auto: coefficients within about {ends} of 0 (std)\n" in done("show", path)
    done("fit", rides, *options, "--prior-precision", 2)
    assert "prior precision         2.0\n" in done("show", path)
    done("fit", rides, *options, "--prior-precision", "ard")
    assert "ard: coefficients within about" in done("show", path)
    assert "rows not forgotten" not in done("show", path)
    done("fit", rides, *options, "--forgetting", "exponential:0.9")
    assert "rows not forgotten      9.98" in done("show", path)
