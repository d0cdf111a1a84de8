"""One ugly file, as a spreadsheet writes it in Germany, is read alike by every verb."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
from click.testing import CliRunner, Result

from posterity.cli.commands import posterity

DAYS, SHOPS = 40, ("Köln", "Nürnberg", "Ulm")
READING = (
    "--date-format", "%d.%m.%Y", "--date-format", "%d/%m/%y", "--decimal", ",", "--thousands", ".",
    "--na", "k.A.", "--drop-total",
)  # fmt: skip
ENCODINGS = {"utf.csv": "utf-8-sig", "latin.csv": "latin-1"}
VERBS = {
    "evaluate": "evaluate FILE --target Absatz --dates days --missing skip --json",
    "compare": "compare FILE --target Absatz --dates days --missing skip --models auto,flat --json",
    "diagonal": "evaluate FILE --target Absatz --drop Datum --missing skip --structure diagonal"
    " --json",
    "fit": "fit FILE --target Absatz --dates days --missing skip --output NEW",
    "predict": "predict MODEL FILE",
    "update": "update MODEL FILE --output NEW",
    "unlearn": "unlearn MODEL FILE --output NEW",
    "forecast": "forecast FILE --target Absatz --time Datum --series Filiale --horizon 2",
    "exogenous": "forecast FILE --target Absatz --time Datum --series Filiale --horizon 2"
    " --features Preis --future PLAN",
    "experiment": "experiment FILE --arm Filiale --reward Absatz --missing skip --json",
    "off-policy": "off-policy FILE --arm Filiale --reward Absatz --propensity Anteil --policy Ulm"
    " --features Preis --missing skip --json",
}  # fmt: skip


def write_number(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def write_ugly(path: Path, frame: pd.DataFrame, encoding: str, *, planned: bool = False) -> None:
    """Semicolons, CRLF, commas, points, two forms of dates, k.A., a total, and empty columns."""
    lines = [";".join([*frame.columns, "", ""])]
    for row in frame.itertuples(index=False):
        day = row.Datum.strftime(
            "%d.%m.%Y" if row.Datum < pd.Timestamp("2024-02-01") else "%d/%m/%y"
        )
        numbers = [write_number(x) if x == x else "k.A." for x in row[2:]]
        lines.append(";".join([day, row.Filiale, *numbers, "", ""]))
    if not planned:
        lines += [f"Summe;;;{write_number(frame['Absatz'].sum())};;;", ";;;;;;"]
    path.write_bytes("\r\n".join([*lines, ""]).encode(encoding))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as plain as can be, and its ugly twins; a plan, and a model of the plain table."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=DAYS + 2)
    frame = pd.DataFrame(
        [(day, shop) for day in days for shop in SHOPS], columns=["Datum", "Filiale"]
    )
    frame["Preis"] = rng.uniform(1.0, 2000.0, len(frame)).round(2)
    frame["Absatz"] = (900.0 + 0.1 * frame["Preis"] + rng.normal(0, 200, len(frame))).round(2)
    frame["Anteil"] = 0.33
    plan = frame[-2 * len(SHOPS) :][["Datum", "Filiale", "Preis"]]
    frame = frame[: -2 * len(SHOPS)].copy()
    frame.loc[[50, 91], "Absatz"] = np.nan
    frame.to_csv(folder / "plain.csv", index=False)
    plan.to_csv(folder / "plan-plain.csv", index=False)
    for name, encoding in ENCODINGS.items():
        write_ugly(folder / name, frame, encoding)
        write_ugly(folder / f"plan-{name}", plan, encoding, planned=True)
    made = run(folder, "fit", "plain.csv", new="m.posterity")
    assert made.exit_code == 0, made.output
    return folder


def run(folder: Path, verb: str, file: str, *options: str, new: str = "new.posterity") -> Result:
    places = {
        "FILE": folder / file, "PLAN": folder / f"plan-{file}", "MODEL": folder / "m.posterity",
        "NEW": folder / new,
    }  # fmt: skip
    words = [str(places.get(word, word)) for word in shlex.split(VERBS[verb])]
    return CliRunner().invoke(posterity, [*words, *options])


def answer(folder: Path, verb: str, result: Result) -> object:
    """What a verb says, but for the name of its file; or what the model that it writes shows."""
    assert result.exit_code == 0, result.stderr
    if "NEW" in VERBS[verb]:
        result = CliRunner().invoke(posterity, ["show", str(folder / "new.posterity"), "--json"])
    if not result.stdout.startswith("{"):
        return result.stdout
    document = json.loads(result.stdout)
    return {name: value for name, value in document.items() if name != "file"}


@pytest.mark.parametrize("file", ENCODINGS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_reads_the_ugly_file_as_the_plain_one(
    folder: Path, verb: str, file: str
) -> None:
    plain = answer(folder, verb, run(folder, verb, "plain.csv"))
    encoding = () if file == "utf.csv" else ("--encoding", ENCODINGS[file])
    result = run(folder, verb, file, *READING, *encoding)
    assert answer(folder, verb, result) == plain
    assert "line 122 was left out as a total: 'Summe;" in result.stderr
    assert "'column 6' has no name and no values: left out" in result.stderr


def advice(message: str) -> Iterator[str]:
    """The options that the first remedy of a message names, as words of a command line."""
    first = re.split(r", or |\), ", message)[0]
    for name, value in re.findall(r"(--[a-z-]+)((?: (?:'[^']*'|[^\s()]+))?)", first):
        yield name
        yield from () if name == "--drop-total" else shlex.split(value)


@pytest.mark.parametrize("file", ENCODINGS)
@pytest.mark.parametrize("verb", ["evaluate", "predict", "forecast", "experiment"])
def test_who_follows_the_messages_arrives(folder: Path, verb: str, file: str) -> None:
    options: list[str] = []
    for _ in range(6):
        result = run(folder, verb, file, *options)
        if result.exit_code == 0:
            break
        more = list(advice(result.stderr))
        assert more, result.stderr
        assert shlex.join(more) not in shlex.join(options)  # nothing is advised twice
        options += more
    assert answer(folder, verb, result) == answer(folder, verb, run(folder, verb, "plain.csv"))


def test_a_word_among_numbers_is_named_with_its_line_and_how_many(folder: Path) -> None:
    usual = READING[:8] + READING[10:]
    for verb in ("forecast", "evaluate", "experiment", "update"):
        message = run(folder, verb, "utf.csv", *usual).stderr
        assert "in 2 of 120 rows, first 'k.A.' in line 52" in message
        assert "give --na k.A. to take it as missing" in message
        assert "--decimal" not in message


def test_the_value_that_no_format_reads_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mix.csv"
    rows = [f"0{d}-03-2021,{d},{2 * d}" for d in range(1, 5)]
    path.write_text("\n".join(["d,x,y", *rows, "13/03/2021,5,9", ""]))
    words = ["evaluate", str(path), "--target", "y", "--dates", "days", "--date-format", "%d-%m-%Y"]
    message = CliRunner().invoke(posterity, words).stderr
    assert "column 'd' holds text in 1 of 5 rows, first '13/03/2021' in line 6" in message
    assert "give their format as well (--date-format %d/%m/%Y)" in message
    both = CliRunner().invoke(posterity, [*words, "--date-format", "%d/%m/%Y", "--json"])
    assert json.loads(both.stdout)["features"] == ["d", "x"]


def test_remedies_are_those_that_the_verb_has(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("arm,age,bought\nA,1,yes\nB,,no\nA,3,no\nB,4,yes\n")
    words = ["off-policy", str(path), "--policy", "A", "--method", "dm", "--reward", "bought"]
    message = CliRunner().invoke(posterity, words).stderr
    assert "--missing skip" in message
    assert "mean" not in message
    path.write_text("y,cylinders\n" + "1,4\n2,6\n3,8\n" * 5 + "4,rotary\n")
    message = CliRunner().invoke(posterity, ["evaluate", str(path), "--target", "y"]).stderr
    assert "first 'rotary' in line 17" in message
    assert "(--categories cylinders)" in message
    given = ["evaluate", str(path), "--target", "y", "--categories", "cylinders", "--json"]
    assert CliRunner().invoke(posterity, given).exit_code == 0


def test_yes_and_no_are_rewards(tmp_path: Path) -> None:
    path, numbers = tmp_path / "words.csv", tmp_path / "numbers.csv"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"arm": rng.choice(["A", "B"], 200), "reward": rng.integers(0, 2, 200)})
    frame.to_csv(numbers, index=False)
    frame.assign(reward=np.where(frame["reward"] == 1, "Yes", "no")).to_csv(path, index=False)
    for verb in (["experiment"], ["off-policy", "--policy", "A", "--method", "dm"]):
        words = [verb[0], str(path), *verb[1:], "--json"]
        said = [
            CliRunner().invoke(posterity, [str(numbers) if w == str(path) else w for w in words])
        ]
        said.append(CliRunner().invoke(posterity, words))
        first, second = (json.loads(result.stdout) | {"file": ""} for result in said)
        assert first == second
    path.write_text("arm,reward\nA,yes\nB,no\nA,maybe\n")
    message = CliRunner().invoke(posterity, ["experiment", str(path)]).stderr
    assert "the reward 'reward' holds text in 1 of 3 rows, first 'maybe' in line 4" in message


def test_an_index_is_no_feature(tmp_path: Path) -> None:
    path, model = tmp_path / "index.csv", tmp_path / "m.posterity"
    frame = pd.DataFrame({"x": np.arange(30.0) % 7, "y": np.arange(30.0)})
    frame.to_csv(path)
    fitted = CliRunner().invoke(
        posterity, ["fit", str(path), "--target", "y", "--output", str(model)]
    )
    assert "note: 'column 1' has no name and numbers the rows: left out" in fitted.stderr
    shown = CliRunner().invoke(posterity, ["show", str(model), "--json"])
    assert json.loads(shown.stdout)["columns"] == ["x"]


def test_levels_and_orders_that_are_mistaken(folder: Path) -> None:
    result = run(folder, "predict", "plain.csv", "--level", "95")
    assert "95 is not between 0 and 1: give 0.95" in result.stderr
    files = [str(folder / name) for name in ("plain.csv", "m.posterity")]
    message = CliRunner().invoke(posterity, ["predict", *files]).stderr
    assert f"they are swapped, so give {files[1]} first" in message


@pytest.mark.parametrize(
    "verb",
    [
        "evaluate",
        "compare",
        "fit",
        "update",
        "predict",
        "unlearn",
        "forecast",
        "experiment",
        "off-policy",
    ],
)
def test_the_options_of_reading_stand_under_one_heading(verb: str) -> None:
    text = CliRunner().invoke(posterity, [verb, "--help"]).stdout
    part = text.partition("Reading the file:")[2]
    for option in (
        "--date-format", "--decimal", "--thousands", "--na", "--encoding", "--separator",
        "--skip-rows", "--drop-total",
    ):  # fmt: skip
        assert f"  {option} " in part
