"""Commands never write over what they read, and lose nothing when they run side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
pytest.importorskip("vl_convert", reason="needs vl-convert-python (posterity[report])")
from click.testing import CliRunner

import posterity
from posterity.cli.commands import posterity as command

COMMAND = [sys.executable, "-m", "posterity"]


def write_table(path: Path, rows: int = 40, seed: int = 0) -> Path:
    draws = np.random.default_rng(seed)
    x = draws.normal(size=rows)
    y = 1.0 + 2.0 * x + 0.1 * draws.normal(size=rows)
    lines = [f"{a},{b},{'ab'[i % 2]}" for i, (a, b) in enumerate(zip(x, y, strict=True))]
    path.write_text("\n".join(["x,y,arm", *lines]) + "\n")
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, a folder of tables, two models, and links to the table."""
    monkeypatch.chdir(tmp_path)
    write_table(Path("t.csv"))
    Path("many").mkdir()
    write_table(Path("many/1.csv"))
    write_table(Path("many/2.csv"), seed=1)
    for name in ("m", "n"):
        assert run("fit", "t.csv", "--target", "y", "--drop", "arm", "--output", name)[0] == 0
    os.symlink("t.csv", "link.csv")
    os.link("t.csv", "hard.csv")
    os.symlink("many", "linked")
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, list(words), prog_name="posterity")
    return result.exit_code, result.stderr


FIT = ["fit", "t.csv", "--target", "y", "--drop", "arm"]
FIT_MANY = ["fit", "many", "--target", "y", "--drop", "arm"]
FORECAST = ["forecast", "t.csv", "--target", "y", "--horizon", "3"]
EXPERIMENT = ["experiment", "t.csv", "--arm", "arm", "--reward", "y"]
OFF_POLICY = ["off-policy", "t.csv", "--policy", "a", "--arm", "arm", "--reward", "y"]
PREDICT = ["predict", "m", "t.csv"]


@pytest.mark.parametrize(
    "words",
    [
        *([*PREDICT, "--output", name] for name in ("t.csv", "./t.csv", "hard.csv", "link.csv")),
        [*PREDICT, "--output", "m"],
        ["predict", "m", "many", "--output", "many/1.csv"],
        ["predict", "m", "linked", "--output", "many/1.csv"],
        ["predict", "m", "many", "--output", "linked/3.csv"],
        ["predict", "m", "many", "--output", "many/3.csv"],
        ["predict", "m", "many/*.csv", "--output", "many/3.csv"],
        *([*FORECAST, "--output", name] for name in ("t.csv", "link.csv", "hard.csv")),
        [*FORECAST, "--report", "t.csv"],
        [*FORECAST, "--features", "x", "--future", "many/1.csv", "--output", "many/1.csv"],
        ["evaluate", "t.csv", "--target", "y", "--report", "t.csv"],
        ["compare", "t.csv", "--target", "y", "--models", "auto,flat", "--report", "hard.csv"],
        [*EXPERIMENT, "--report", "t.csv"],
        [*OFF_POLICY, "--report", "t.csv"],
        *([*FIT, "--output", name] for name in ("t.csv", "link.csv", "hard.csv")),
        *([*FIT_MANY, "--output", name] for name in ("many/1.csv", "many/3.csv", "linked/1.csv")),
        ["update", "m", "many", "--output", "many/2.csv"],
        ["unlearn", "m", "t.csv", "--output", "link.csv"],
        ["update", "t.csv", "t.csv"],
        ["merge", "m", "n", "--output", "m"],
        ["demo", "--output", "same.png", "--data", "same.png"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_nothing_that_is_read_is_written(words: list[str], place: Path) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    code, said = run(*words)
    assert code == 2
    assert "would replace it" in said or "would be one more file" in said or "are both" in said
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_what_is_beside_the_input_is_written(place: Path) -> None:
    assert run("predict", "m", "many", "--output", "predicted.csv")[0] == 0
    assert run(*FIT_MANY, "--output", "many/model.posterity")[0] == 0  # no ending of a table
    assert run("predict", "m", "many/1.csv", "--output", "many/_predicted.csv")[0] == 0
    assert run("predict", "m", "many/[12].csv", "--output", "many/3.csv")[0] == 0
    assert run("update", "m", "many/1.csv", "--output", "m")[0] == 0
    assert posterity.load("m").n_observations_ == 80


def test_an_output_that_is_a_link_stays_one(place: Path) -> None:
    Path("real").mkdir()
    os.symlink("real/out.csv", "out.csv")
    os.symlink("real/page.html", "page.html")
    assert run(*PREDICT, "--output", "out.csv")[0] == 0
    assert run(*EXPERIMENT, "--report", "page.html")[0] == 0
    for name in ("out.csv", "page.html"):
        assert Path(name).is_symlink()
        assert Path("real", name).stat().st_size > 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_is_written_and_not_replaced(place: Path) -> None:
    for words in ([*PREDICT, "--output", "pipe"], [*FIT, "--output", "pipe"]):
        os.mkfifo("pipe")
        got: list[bytes] = []
        reader = threading.Thread(target=lambda got=got: got.append(Path("pipe").read_bytes()))
        reader.start()
        assert run(*words)[0] == 0
        reader.join(timeout=60)
        assert got[0]
        assert not Path("pipe").is_file()
        os.unlink("pipe")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_that_is_given_as_a_table_does_not_wait(place: Path) -> None:
    os.mkfifo("pipe.csv")
    for words in (["evaluate", "pipe.csv", "--target", "y"], ["predict", "m", "pipe.csv"]):
        code, said = run(*words)
        assert code == 2
        assert "pipe.csv is no file but a pipe or a device: give - and pipe the rows in" in said


@pytest.mark.processes
@pytest.mark.parametrize("verb", ["update", "unlearn"])
def test_commands_side_by_side_lose_nothing(verb: str, place: Path) -> None:
    for i in range(6):
        write_table(Path(f"{i}.csv"), rows=10, seed=10 + i)
        if verb == "unlearn":
            assert run("update", "m", f"{i}.csv")[0] == 0
    at_once = [subprocess.Popen([*COMMAND, verb, "m", f"{i}.csv", "--quiet"]) for i in range(6)]
    assert [each.wait(timeout=240) for each in at_once] == [0] * 6
    assert posterity.load("m").n_observations_ == (100 if verb == "update" else 40)
