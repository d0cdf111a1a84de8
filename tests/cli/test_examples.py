"""Every example in the help of every verb runs, one after the other, in a folder."""

from __future__ import annotations

import gzip
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

pytest.importorskip("matplotlib", reason="the demos draw")
pytest.importorskip("vl_convert", reason="reports need posterity[report]")

from posterity.bandits import Bandit
from posterity.cli.clicks import simulate_clicks
from posterity.cli.commands import posterity
from posterity.cli.group import PURPOSES
from posterity.files import save


def examples(verb: str) -> list[str]:
    """Command lines of the epilog of a verb, "" being the command itself."""
    epilog = (posterity.commands[verb] if verb else posterity).epilog or ""
    return re.findall(
        r"^ +((?:zcat .*\| )?posterity .*)$", epilog.replace("\\\n", " "), re.MULTILINE
    )


def run(line: str) -> None:
    """Run a line as a shell does: input and output in files, and what comes before a pipe."""
    before, line = re.fullmatch(r"(zcat .* \| )?posterity (.*)", line).groups()  # type: ignore[union-attr]
    line = line.partition(" | ")[0]
    line, _, output = line.partition(" > ")
    line, _, source = line.partition(" < ")
    given: bytes | None = Path(source).read_bytes() if source else None
    if before:
        parts = [gzip.decompress(path.read_bytes()) for path in sorted(Path().glob("rides-*.gz"))]
        given = b"".join(parts)
    result = CliRunner().invoke(posterity, shlex.split(line), input=given)
    assert result.exit_code == 0, f"{line}\n{result.stderr}"
    if output:
        Path(output.strip()).write_text(result.stdout)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tables that the examples speak of; rides.csv is that of the demo."""
    monkeypatch.chdir(tmp_path)
    run("posterity demo --data rides.csv")
    rides = Path("rides.csv").read_text().splitlines(keepends=True)
    Path("tomorrow.csv").write_text("".join([rides[0], *rides[-200:]]))
    Path("rides-1.csv.gz").write_bytes(gzip.compress(Path("rides.csv").read_bytes()))
    rng, n = np.random.default_rng(0), 400
    hours = pd.date_range("2024-01-01", periods=n, freq="h")
    load = 100.0 + 20.0 * np.sin(hours.hour / 24 * 2 * np.pi) + rng.normal(size=n)
    pd.DataFrame({"hour": hours, "load": load}).to_csv("load.csv", index=False)
    _write_sales(rng)
    _write_decisions(rng, n)
    columns, clicked, _ = simulate_clicks(1000)
    pd.DataFrame({**columns, "clicked": clicked}).to_csv("clicks.csv", index=False)
    return tmp_path


def _write_sales(rng: np.random.Generator) -> None:
    days = pd.date_range("2024-01-01", periods=114)
    parts = [
        pd.DataFrame({
            "day": days, "shop": shop, "price": rng.uniform(1, 2, len(days)).round(2),
            "holiday": 0, "sold": rng.normal(1500.0, 30.0, len(days)).round(2),
        })
        for shop in ("a", "b")
    ]  # fmt: skip
    pd.concat([part[:-14] for part in parts]).to_csv("sales.csv", index=False)
    pd.concat([part[-14:].drop(columns="sold") for part in parts]).to_csv("plan.csv", index=False)
    lines = ["Datum;Filiale;Umsatz"]
    for day, shop, sold in pd.concat(parts)[["day", "shop", "sold"]].itertuples(index=False):
        number = f"{sold:,.2f}".translate(str.maketrans(",.", ".,"))
        lines.append(f"{day:%d.%m.%Y};{shop};{number if rng.random() > 0.02 else 'k.A.'}")
    Path("umsatz.csv").write_text("\r\n".join([*lines, "Summe;;342.000,00", ""]))


def _write_decisions(rng: np.random.Generator, n: int) -> None:
    variant = rng.choice(["A", "B"], n)
    bought = rng.random(n) < 0.2 + 0.1 * (variant == "B")
    visits = pd.DataFrame({"variant": variant, "age": rng.integers(18, 80, n), "bought": bought})
    visits["device"] = rng.choice(["phone", "desk"], n)
    visits["spent"] = np.where(bought, rng.gamma(2.0, 20.0, n), 0.0)
    visits.assign(bought=np.where(bought, "yes", "no")).to_csv("visits.csv", index=False)
    visits.to_parquet("visits.parquet", index=False)
    arm, age = rng.choice(["red", "blue"], n), rng.normal(size=n)
    chosen = pd.DataFrame({"arm": arm, "reward": rng.random(n) < 0.3, "age": age})
    chosen.assign(p=0.5).to_csv("decisions.csv", index=False)
    every = chosen.assign(p_blue=0.5, p_red=0.5)
    every.rename(columns={"reward": "bought"}).to_csv("chosen.csv", index=False)
    every.to_parquet("decisions.parquet", index=False)
    bandit = Bandit(arms=["blue", "red"], rng=0).learn(age[:, None], arm, chosen["reward"] * 1.0)
    save(bandit, "new.posterity")


@pytest.mark.usefixtures("folder")
def test_the_first_example_reads_the_table_of_the_demo() -> None:
    first, second = examples("")[:2]
    assert (first, second.split()[1:3]) == (
        "posterity demo --data rides.csv",
        ["evaluate", "rides.csv"],
    )
    run(second)


def test_the_help_lists_every_verb_once_under_what_it_is_for() -> None:
    listed = [verb for verbs in PURPOSES.values() for verb in verbs]
    assert sorted(listed) == sorted(posterity.commands)
    text = CliRunner().invoke(posterity, ["--help"]).output
    assert all(f"\n  {verb} " in text for verb in listed)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_every_example_runs() -> None:
    lines = [line for verb in ("", *posterity.commands) for line in examples(verb)]
    lines = [line for line in lines if "personalizer" not in line]  # a log of another service
    assert len(lines) > 40
    parts = "posterity fit tomorrow.csv --target fare --drop pickup,zone,payment --missing skip"
    for model in ("north", "south"):
        run(f"{parts} --output {model}.posterity")
    run(examples("")[5])
    for line in lines:
        run(line)
