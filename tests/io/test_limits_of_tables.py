"""Tables and formulas that would take all memory, or never end, are refused before."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.cli.settings_file import read
from posterity.factor import Factor
from posterity.io import TableError, open_table
from posterity.io.formulas import open_formula
from posterity.safety import machine_memory

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")


def test_a_csv_of_very_many_columns_is_refused_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{i}" for i in range(100_000)) + "\n1,2\n")
    with pytest.raises(TableError, match="about 100,000 columns, and a CSV file may have 50,000"):
        open_table(path, "c0")


def test_a_model_larger_than_the_memory_is_refused() -> None:
    p = int(np.sqrt(machine_memory() / 8.0)) + 1000
    with pytest.raises(ValueError, match=r"columns needs .* GB of memory, and this machine has"):
        Factor(p)
    model = BayesianLinearRegression(prior_precision=1.0)
    with pytest.raises(ValueError, match="GB of memory"):
        model.learn_one(np.zeros(p), 1.0)


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_arrow_file_is_an_error_and_not_a_crash(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path / "rides.arrow"
    zones = pa.array(rng.choice(["north", "south", "east"], 200)).dictionary_encode()
    table = pa.table({"km": rng.normal(size=200), "zone": zones, "fare": rng.normal(size=200)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    content = bytearray(path.read_bytes())
    for place in rng.integers(64, len(content), size=8):
        content[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    try:
        for _ in open_table(path, "fare"):
            pass
    except ValueError:
        pass  # a TableError, or one that names the value that can't be used


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ (a+b+c)**100000", "more than 100,000 terms"),
        ("y ~ a**1000000", "more than 100,000 terms"),
        ("y ~ ((a+b)**9)**9", "more than 100,000 terms"),
        ("y ~ poly(a, 1000000)", "a basis of 1,000,000 functions"),
        ("y ~ bs(a, df=1000000)", "a basis of 1,000,000 functions"),
        ("y ~ poly(a, 10**6)", "write the result instead"),
        ("y ~ I(9**9**9) * a", "write the result instead"),
        ("y ~ " + "a+" * 20_000 + "a", "use at most 20,000"),
        ("y ~ " + "a:" * 2_000 + "a", "the formula is nested too deeply"),
        ("y ~ " + "a+" * 3_000 + "a", "the formula is nested too deeply"),
    ],
)
def test_formulas_that_never_end(formula: str, message: str) -> None:
    pytest.importorskip("formulaic")
    with pytest.raises(TableError, match=message):
        open_formula(pd.DataFrame({name: [1.0, 2.0, 4.0, 8.0] for name in "yabc"}), formula)


def test_formulas_with_small_powers_and_far_bounds_are_fine() -> None:
    pytest.importorskip("formulaic")
    frame = pd.DataFrame({name: [1.0, 2.0, 4.0, 8.0, 9.0] for name in "yabc"})
    formula = "y ~ (a + b + c)**2 + I(a**3) + bs(b, 4, lower_bound=0, upper_bound=24000)"
    assert len(open_formula(frame, formula).feature_names) == 11


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_settings_from_a_pipe_do_not_hang(tmp_path: Path) -> None:
    from posterity.cli.commands import posterity

    os.mkfifo(tmp_path / "settings.toml")
    with pytest.raises(ValueError, match="is not a file"):
        read(str(tmp_path / "settings.toml"), posterity)


def test_settings_that_are_too_deep_or_too_long(tmp_path: Path) -> None:
    from posterity.cli.commands import posterity

    path = tmp_path / "settings.toml"
    path.write_text("target = " + "[" * 10_000 + "]" * 10_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        read(str(path), posterity)
    path.write_text("#" * 1_000_001)
    with pytest.raises(ValueError, match="at most 1,000,000"):
        read(str(path), posterity)
