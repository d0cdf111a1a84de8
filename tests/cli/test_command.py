"""The `posterity` command, as a user and as a script meets it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
from click.testing import CliRunner, Result

from posterity import BayesianLinearRegression
from posterity.cli.commands import posterity
from posterity.datasets.simulate_rides import rides
from posterity.evaluation import progressive_validation
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Exponential,
    Forgetting,
    RandomWalk,
    Stabilized,
    Window,
)


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(posterity, [str(argument) for argument in arguments])


def run(*arguments: object, **keywords: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "posterity", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **keywords)


def complaint(result: Result) -> str:
    """The one line on stderr of a run that failed over its input."""
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("posterity: ")
    return result.stderr


def numbers(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)).round(6)
    return X, (1.0 + X @ [1.0, -2.0] + 0.5 * rng.normal(size=n)).round(6)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X, y = numbers()
    path = tmp_path / "t.csv"
    lines = [f"{a!r},{b!r},{c!r}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(["a,b,y", *lines]) + "\n")
    return path


# ---- evaluate ----


def test_json_is_the_validation(table: Path) -> None:
    result = invoke("evaluate", table, "--target", "y", "--json", "--level", 0.5, "--level", 0.9)
    assert result.exit_code == 0
    assert result.stderr == ""
    document = json.loads(result.stdout)
    X, y = numbers()
    expected = progressive_validation(BayesianLinearRegression(), X, y, levels=(0.5, 0.9))
    assert set(document) == {
        "file", "target", "model", "features", "n_rows_read", "n_rows_skipped", "n_rows_filled",
        "n_missing",         "unseen_levels", "forgetting", *expected.to_dict(),
    }  # fmt: skip
    assert document["features"] == ["a", "b"]
    assert document["n_rows_read"] == document["n_rows"] == 400
    assert document["mae"] == pytest.approx(expected.mae, rel=1e-9)
    assert document["coverage"] == {"0.5": expected.coverage[0.5], "0.9": expected.coverage[0.9]}
    assert document["along"]["row_end"][-1] == 400


@pytest.mark.parametrize(
    ("options", "model", "keywords"),
    [
        (["--prior-precision", "7.5"], {"prior_precision": 7.5}, {}),
        (["--noise-precision", "4"], {"noise_precision": 4.0}, {}),
        (["--noise-precision", "learned"], {}, {}),
        (["--no-intercept"], {"fit_intercept": False}, {}),
        (["--delay", "5"], {}, {"delay": 5}),
        (["--batch-rows", "7"], {}, {}),
        (["--quiet"], {}, {}),
    ],
)
def test_options_reach_the_model(
    table: Path, options: list[str], model: dict[str, Any], keywords: dict[str, Any]
) -> None:
    result = invoke("evaluate", table, "--target", "y", "--json", *options)
    assert result.exit_code == 0, result.stderr
    expected = progressive_validation(BayesianLinearRegression(**model), *numbers(), **keywords)
    assert json.loads(result.stdout)["log_score"] == pytest.approx(expected.log_score, rel=1e-9)


@pytest.mark.parametrize(
    ("written", "strategy"),
    [
        ("adaptive", Adaptive()),
        ("stabilized:0.9", Stabilized(0.9)),
        ("window:50", Window(size=50)),
        ("random-walk:0.01", RandomWalk(0.01)),
        ("changepoint", Changepoint()),
        ("changepoint:0.01", Changepoint(hazard=0.01)),
        ("none", None),
    ],
)
def test_forgetting_reaches_the_model(
    table: Path, written: str, strategy: Forgetting | None
) -> None:
    result = invoke("evaluate", table, "--target", "y", "--json", "--forgetting", written)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    model = BayesianLinearRegression(forgetting=strategy)
    expected = progressive_validation(model, *numbers())
    assert document["log_score"] == pytest.approx(expected.log_score, rel=1e-9)
    assert document["forgetting"] == written


@pytest.mark.parametrize("written", ["exponential:0.99", "directional:0.99", "smoothing:0.8"])
def test_every_way_to_forget_can_be_written(table: Path, written: str) -> None:
    result = invoke("evaluate", table, "--target", "y", "--forgetting", written)
    assert result.exit_code == 0, result.stderr
    assert f"forgetting                {written}" in result.stdout
    plain = invoke("evaluate", table, "--target", "y").stdout
    assert "old rows" not in plain


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("weekly", "'weekly' is not a way to forget: give one of none, adaptive, exponential:0.99"),
        ("stabilized", "'stabilized': stabilized needs a discount, as in stabilized:0.99"),
        ("stabilized:", "stabilized needs a discount, as in stabilized:0.99"),
        ("window:many", "'many' is not a number of rows; write it as in window:500"),
        ("window:2.5", "'2.5' is not a number of rows; write it as in window:500"),
        ("exponential:1.5", "discount is 1.5: it must be above 0 and at most 1, as in 0.99"),
        ("random-walk:-1", "variance is -1.0: it must be a number"),
        ("changepoint:2", "hazard is 2.0: it must lie between 0 and 1"),
        ("changepoint:often", "'often' is not a hazard; write it as in changepoint:0.01"),
        ("adaptive:3", "adaptive takes no number; write adaptive alone"),
    ],
)
def test_a_way_to_forget_that_cannot_be_read(table: Path, written: str, words: str) -> None:
    line = complaint(invoke("evaluate", table, "--target", "y", "--forgetting", written))
    assert words in line


def test_forgetting_with_a_delay_counts_each_row_once(table: Path) -> None:
    options = ("--forgetting", "exponential:0.9", "--delay", 3, "--prior-precision", 1, "--json")
    result = invoke("evaluate", table, "--target", "y", *options)
    assert result.exit_code == 0, result.stderr
    X, y = numbers()
    errors = []
    for i in range(len(y)):
        model = BayesianLinearRegression(prior_precision=1.0, forgetting=Exponential(0.9))
        known = slice(0, max(i - 3, 0))
        mean = model.fit(X[known], y[known]).predict(X[i : i + 1])[0] if i > 3 else 0.0
        errors.append(abs(y[i] - mean))
    assert json.loads(result.stdout)["mae"] == pytest.approx(np.mean(errors), rel=1e-9)


def test_features_and_drop_choose_columns(table: Path) -> None:
    one = invoke("evaluate", table, "--target", "y", "--json", "--features", "b, a")
    assert json.loads(one.stdout)["features"] == ["b", "a"]
    other = invoke("evaluate", table, "--target", "y", "--json", "--drop", "a")
    assert json.loads(other.stdout)["features"] == ["b"]


def test_table_says_in_words_what_it_found(table: Path) -> None:
    result = invoke("evaluate", table, "--target", "y", "--prior-precision", 1)
    assert result.exit_code == 0
    assert "y, predicted from 2 features" in result.stdout
    assert "Each of 400 rows was predicted before it was learned." in result.stdout
    model = BayesianLinearRegression(prior_precision=1.0)
    mae = progressive_validation(model, *numbers()).mae
    assert f"Predictions were off by {mae:.4g} on average." in result.stdout
    assert "95% intervals held 9" in result.stdout
    assert "as promised" in result.stdout
    for name in ("mean absolute error", "mean CRPS", "mean log score", "95% interval: coverage"):
        assert name in result.stdout
    assert "know too little to have a width" in result.stdout
    assert result.stderr == ""


def test_narrow_intervals_are_called_so(table: Path) -> None:
    result = invoke("evaluate", table, "--target", "y", "--noise-precision", "400")
    assert "too few, the intervals are too narrow" in result.stdout
    result = invoke("evaluate", table, "--target", "y", "--noise-precision", "0.01")
    assert "more than promised, the intervals are too wide" in result.stdout


def test_what_was_left_out_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    first = "".join(f"{'ab'[i % 2]},{i % 7},{i % 5}\n" for i in range(300_000))
    path.write_text("kind,x,y\n" + first + "c,1,2\na,,3\na,1,\n")
    arguments = ("evaluate", path, "--target", "y", "--json", "--missing")
    result = invoke(*arguments, "mean")
    document = json.loads(result.stdout)
    assert (document["n_rows_skipped"], document["n_rows_filled"]) == (1, 1)
    assert document["unseen_levels"] == {"kind": {"c": 1}}
    assert result.stderr == (
        "note: 1 row was left out because a value was missing (column, holes: 'y' 1)\n"
        "note: 1 row had missing values filled in with the mean so far (column, holes: 'x' 1)\n"
        "note: 1 value of 'kind' was not among the levels of the first batch, and counted as none "
        "of them: 'c'\n"
    )
    assert "note: 2 rows were left out" in invoke(*arguments, "skip").stderr
    assert invoke(*arguments, "skip", "--quiet").stderr == ""


# ---- what goes wrong ----


def test_input_that_cannot_be_used_is_one_line(table: Path, tmp_path: Path) -> None:
    assert "target 'Y' is not a column of the file; did you mean 'y'?" in complaint(
        invoke("evaluate", table, "--target", "Y")
    )
    assert "no such file" in complaint(invoke("evaluate", tmp_path / "no.csv", "--target", "y"))
    table.write_text(table.read_text() + "1,,2\n")
    assert "line 402, column 'b' is missing; use --missing skip" in complaint(
        invoke("evaluate", table, "--target", "y")
    )
    table.write_text(table.read_text() + "1,2")
    assert "is cut off in the middle of a row: line 403" in complaint(
        invoke("evaluate", table, "--target", "y", "--json")
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--target'. (see posterity evaluate --help)"),
        (["--target", "y", "--level", "1.5"], "Invalid value for '--level'"),
        (["--target", "y", "--noise-precision", "-1"],
         "'-1': give a positive number, or 'learned'"),
        (["--target", "y", "--prior-precision", "-1"],
         "'-1': give a number from 0 up, 'auto' or 'ard'"),
        (["--target", "y", "--missing", "zero"], "Invalid value for '--missing'"),
        (["--target", "y", "--nonsense"], "No such option"),
    ],
)  # fmt: skip
def test_usage_is_one_line(table: Path, arguments: list[str], message: str) -> None:
    assert message in complaint(invoke("evaluate", table, *arguments))


@pytest.mark.processes
def test_in_a_process_of_its_own(table: Path, tmp_path: Path) -> None:
    done = run("evaluate", table, "--target", "y", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["n_rows"] == 400
    failed = run("evaluate", tmp_path / "no.parquet", "--target", "y")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == f"posterity: {tmp_path / 'no.parquet'}: no such file; check the path\n"


@pytest.mark.processes
def test_a_closed_pipe_is_quiet(table: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "posterity", "evaluate", str(table), "--target", "y"]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert done.stderr == ""
    assert done.returncode == 1


# ---- help ----


def test_help_teaches() -> None:
    whole = invoke("--help")
    assert whole.exit_code == 0
    for part in ("evaluate", "demo", "Examples:", "posterity evaluate rides.csv --target fare"):
        assert part in whole.stdout
    one = invoke("evaluate", "--help")
    assert "Examples:" in one.stdout
    for option in (
        "--target", "--level", "--prior-precision", "--noise-precision", "--features", "--drop",
        "--batch-rows", "--delay", "--missing", "--no-intercept", "--json", "--quiet",
    ):  # fmt: skip
        assert option in one.stdout


def test_no_command_shows_help() -> None:
    result = invoke()
    assert result.exit_code == 2
    assert "Examples:" in result.stderr


def test_version() -> None:
    from posterity import __version__

    assert invoke("--version").stdout == f"posterity {__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nsys.argv = ['posterity', 'evaluate', '--help']\n"
        "from posterity.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib', 'rich'}\n"
        "print('imported:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("imported: []\n")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("package", "arguments", "message"),
    [
        ("click", "['--help']",
         "posterity: the command needs click: pip install 'posterity[cli]'\n"),
        ("pyarrow", "['evaluate', 't.csv', '--target', 'y']",
         "posterity: this needs pyarrow: pip install 'posterity[cli]'\n"),
        ("rich", "['evaluate', 't.csv', '--target', 'y']",
         "posterity: this needs rich: pip install 'posterity[cli]'\n"),
        ("matplotlib", "['demo']",
         "posterity: this needs matplotlib: pip install 'posterity[plots]'\n"),
    ],
)  # fmt: skip
def test_missing_packages_are_named(
    tmp_path: Path, package: str, arguments: str, message: str
) -> None:
    (tmp_path / "t.csv").write_text("x,y\n1,2\n2,3\n3,5\n")
    code = (
        f"import sys\nsys.modules[{package!r}] = None\nsys.argv = ['posterity'] + {arguments}\n"
        "from posterity.cli import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode != 0
    assert done.stderr == message


# ---- demo ----


def test_demo_draws_a_figure_and_says_where(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / "figure.png"
    result = invoke("demo", "diabetes", "--output", output)
    assert result.exit_code == 0, result.stderr
    assert "442 patients in the order of the file" in result.stdout
    assert result.stdout.endswith(f"Coverage and error along time are drawn in {output}\n")
    assert output.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]


def test_demo_of_rides_holds_what_it_promises_and_writes_the_table(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    output, data = tmp_path / "figure.png", tmp_path / "rides.csv"
    result = invoke("demo", "--output", output, "--data", data)
    assert result.exit_code == 0, result.stderr
    rows = {line[:20].strip(): line.split() for line in result.stdout.splitlines()}
    assert float(rows["robust, conformal"][-2].rstrip("%")) == pytest.approx(95.0, abs=1.0)
    assert float(rows["robust"][-1]) < float(rows["robust, conformal"][-1])
    assert float(rows["robust, conformal"][-1]) < float(rows["linear"][-1])
    assert output.read_bytes().startswith(b"\x89PNG")
    assert data.read_text() == rides()
    assert invoke("demo", "drift", "--data", data).exit_code == 2


def test_the_figure_is_opened_where_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    opened: list[str] = []
    monkeypatch.setattr("click.launch", opened.append)
    invoke("demo", "drift", "--output", tmp_path / "a.png")
    invoke("demo", "drift", "--output", tmp_path / "b.png", "--open")
    assert opened == [str(tmp_path / "b.png")]


BLOCKS = ["README.md", "docs/trust.md", "docs/command.md"]


@pytest.mark.processes
@pytest.mark.parametrize("page", BLOCKS)
def test_console_blocks_with_the_rides_run_as_written(page: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("vl_convert")
    path = Path(__file__).parents[2] / page
    if not path.exists():
        pytest.skip("needs the documentation's sources")
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        if not any("rides.csv" in line for line in lines):
            continue
        for line in lines:
            if "sales.csv" in line or "visits.csv" in line:
                continue  # not shipped
            command = Path(sys.executable).parent
            done = subprocess.run(
                ["sh", "-c", f'PATH="{command}:$PATH"; {line}'],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                check=False,
            )
            assert done.returncode == 0, (line, done.stderr)


def test_demo_without_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    line = complaint(invoke("demo", "--output", tmp_path / "no" / "figure.png"))
    assert "is not a folder: create it first, or give another --output" in line


def test_drift_demo_compares_and_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / "drift.png"
    result = invoke("demo", "drift", "--output", output)
    assert result.exit_code == 0, result.stderr
    lines = {line.split("  ")[0].strip(): line for line in result.stdout.splitlines()}
    assert "0.50158" in lines["no forgetting"]
    assert "0.22810" in lines["Smoothing(0.8)"]
    assert any(", best in hindsight" in name for name in lines)
    assert "Adaptive()" in lines
    assert result.stdout.endswith(f"Errors along time are drawn in {output}\n")
    assert output.read_bytes().startswith(b"\x89PNG")


def test_bandit_demo_earns_more_than_chance_and_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / "bandit.png"
    result = invoke("demo", "bandit", "--output", output)
    assert result.exit_code == 0, result.stderr
    right = int(result.stdout.split("\n")[1].split(" of ")[0].replace(",", ""))
    assert right > 1000
    assert result.stdout.endswith(f"Rewards and propensities along time are drawn in {output}\n")
    assert output.read_bytes().startswith(b"\x89PNG")


def test_a_demo_that_there_is_not() -> None:
    line = complaint(invoke("demo", "weather"))
    assert "'weather' is not one of 'rides', 'diabetes', 'drift', 'bandit'" in line
