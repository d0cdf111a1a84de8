"""Columns of text in the command are the categories of the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import posterity
from posterity.cli.commands import posterity as command
from posterity.io import learn_stream

rng = np.random.default_rng(5)
N = 120
FRAME = pd.DataFrame(
    {
        "km": rng.normal(size=N).round(4),
        "zone": rng.choice(list("cab"), size=N),
        "wet": rng.random(N) < 0.4,
        "hits": rng.poisson(2.0, size=N),
    }
)
FRAME["y"] = (FRAME.km + 2.0 * (FRAME.zone == "b") + rng.normal(size=N)).round(4)
LATER = FRAME[:40].assign(zone=np.where(np.arange(40) % 5 == 0, "new", FRAME.zone[:40]))


def done(*arguments: object) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    return result


def shown(path: Path, *options: str) -> pd.DataFrame:
    document = json.loads(done("show", path, "--json", *options).stdout)
    return pd.DataFrame(document["coefficients"]).set_index("name").astype(float)


def write(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("model", "kind", "target"),
    [
        ("linear", posterity.BayesianLinearRegression, "y"),
        ("linear+flat", posterity.BayesianLinearRegression, "y"),
        ("linear+spline:5", posterity.BayesianLinearRegression, "y"),
        ("robust", posterity.BayesianRobustRegression, "y"),
        ("quantile:0.5", posterity.BayesianQuantileRegression, "y"),
        ("poisson", posterity.BayesianPoissonRegression, "hits"),
        ("negative-binomial", posterity.BayesianNegativeBinomialRegression, "hits"),
        ("logistic", posterity.BayesianLogisticRegression, "wet"),
        ("linear+changepoint", posterity.BayesianLinearRegression, "y"),
    ],
)
def test_the_command_says_what_python_says(
    tmp_path: Path, model: str, kind: Any, target: str
) -> None:
    features = ["km", "zone"] if model.startswith("linear+spline") else ["zone", "wet", "km"]
    features = [name for name in features if name != target]
    first, path = write(FRAME, tmp_path / "first.csv"), tmp_path / "m.posterity"
    done("fit", first, "--target", target, "--features", ",".join(features), "--model", model,
         "--output", path)  # fmt: skip
    found = posterity.load(path)
    expected = kind(**found.get_params(deep=False)).partial_fit(FRAME[features], FRAME[target])
    table = expected.summary()
    np.testing.assert_allclose(shown(path)["mean"], table["mean"].astype(float), rtol=1e-8)
    assert shown(path).index.tolist() == table.index.tolist()
    np.testing.assert_allclose(shown(path)["upper"], table["high"].astype(float), rtol=1e-8)


def test_levels_against_a_base_and_levels_that_come_later(tmp_path: Path) -> None:
    path, features = tmp_path / "m.posterity", ["km", "zone", "wet"]
    done(
        "fit", write(FRAME, tmp_path / "a.csv"), "--target", "y", "--drop", "hits", "--output", path
    )
    fitted = posterity.BayesianLinearRegression().fit(FRAME[features], FRAME.y)
    for options, base in (
        ([], None),
        (["--base", "first"], "first"),
        (["--base", "zone=b"], {"zone": "b"}),
    ):
        table = fitted.summary(base=base)
        assert shown(path, *options).index.tolist() == table.index.tolist()
        np.testing.assert_allclose(
            shown(path, *options)["lower"], table["low"].astype(float), rtol=1e-8
        )
    result = done("update", path, write(LATER, tmp_path / "b.csv"))
    assert result.stderr == f"40 rows learned into {path}\n"
    fitted.partial_fit(LATER[features], LATER.y)
    assert shown(path).index.tolist()[3:7] == ["zone=a", "zone=b", "zone=c", "zone=new"]
    np.testing.assert_allclose(
        shown(path)["mean"], fitted.summary()["mean"].astype(float), rtol=1e-8
    )
    unknown = write(LATER.assign(zone="elsewhere"), tmp_path / "c.csv")
    result = done("predict", path, unknown, "--output", tmp_path / "p.csv")
    assert "40 values of 'zone' were not among the levels of the model" in result.stderr
    expected = fitted.predict(LATER[features].assign(zone="elsewhere"))
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")["mean"], expected)


def test_levels_join_where_files_are_merged(tmp_path: Path) -> None:
    paths = [tmp_path / "0.posterity", tmp_path / "1.posterity"]
    for path, table in zip(paths, (FRAME, LATER), strict=True):
        done("fit", write(table, path.with_suffix(".csv")), "--target", "y",
             "--features", "km,zone", "--output", path)  # fmt: skip
    done("merge", *paths, "--output", tmp_path / "all")
    whole = pd.concat([FRAME, LATER])
    fitted = posterity.BayesianLinearRegression().fit(whole[["km", "zone"]], whole.y)
    np.testing.assert_allclose(shown(tmp_path / "all")["mean"], fitted.summary()["mean"])


def test_a_level_in_a_later_batch_joins(tmp_path: Path) -> None:
    path = tmp_path / "m.posterity"
    table = pd.concat([FRAME] * 100 + [LATER])
    done("fit", write(table, tmp_path / "a.csv"), "--target", "y", "--features", "km,zone",
         "--batch-rows", 1000, "--output", path)  # fmt: skip
    fitted = posterity.BayesianLinearRegression().fit(table[["km", "zone"]], table.y)
    np.testing.assert_allclose(
        shown(path)["mean"], fitted.summary()["mean"].astype(float), rtol=1e-6
    )


def test_what_is_missing_is_a_level_or_refused(tmp_path: Path) -> None:
    holes = FRAME.assign(zone=FRAME.zone.where(FRAME.index % 4 > 0))
    path, table = tmp_path / "m.posterity", write(holes, tmp_path / "a.csv")
    fit = ("fit", table, "--target", "y", "--features", "km,zone", "--output", path)
    result = CliRunner().invoke(command, [*map(str, fit)])
    assert "line 2, column 'zone' is missing" in result.stderr
    done(*fit, "--missing", "level")
    model = posterity.BayesianLinearRegression(missing="level")
    model.fit(holes[["km", "zone"]], holes.y)
    assert shown(path).index.tolist()[-1] == "zone=missing"
    np.testing.assert_allclose(
        shown(path)["mean"], model.summary()["mean"].astype(float), rtol=1e-8
    )
    done(*fit, "--missing", "skip")
    assert posterity.load(path).n_observations_ == (FRAME.index % 4 > 0).sum()
    done(*fit, "--missing", "mean")  # shares of the levels, of columns of zeros and ones
    assert posterity.load(path).feature_names_in_.tolist() == ["km", "zone=b", "zone=c"]
    # Rows of a level that is missing for the first time in a file that is learned later.
    done("fit", write(FRAME, tmp_path / "b.csv"), *fit[2:], "--missing", "level")
    done("update", path, table)
    assert shown(path).index.tolist()[-1] == "zone=missing"


def test_parts_of_dates_and_codes_are_categories(tmp_path: Path) -> None:
    when = pd.date_range("2024-01-01", periods=N, freq="7h").to_series(index=FRAME.index)
    table = FRAME.assign(when=when.sample(frac=1.0, random_state=1).to_numpy(), code=FRAME.hits)
    path = tmp_path / "m.posterity"
    done("fit", write(table, tmp_path / "a.csv"), "--target", "y", "--features", "when,code",
         "--dates", "calendar", "--categories", "code", "--output", path)  # fmt: skip
    model = posterity.load(path)
    assert model.feature_names_in_.tolist() == ["when.hour", "when.weekday", "when.month", "code"]
    done("update", path, tmp_path / "a.csv")
    model = posterity.load(path)
    day = shown(path, "--base", "when.weekday=Sun")
    assert day.loc["when.weekday=Sun", "upper"] == 0.0
    assert day.index[-1] == f"code={FRAME.hits.max()}"
    done("predict", path, tmp_path / "a.csv", "--output", tmp_path / "p.csv")
    frame = pd.DataFrame(
        {
            "when.hour": table.when.dt.hour.astype(str),
            "when.weekday": table.when.dt.strftime("%a"),
            "when.month": table.when.dt.strftime("%b"),
            "code": table.code,
        }
    )
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv")["mean"], model.predict(frame))


def test_old_files_keep_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "m.posterity"
    names = ["km", "zone"]
    model = learn_stream(posterity.BayesianLinearRegression(), FRAME[[*names, "y"]], "y")
    notes = {"target": "y", "missing": "error", "columns": names, "left_out": ["zone=a"]}
    posterity.save(model, path, notes=notes)
    assert shown(path).index.tolist() == ["intercept", "km", "zone=b", "zone=c"]
    assert shown(path, "--base", "mean").index.tolist()[2:] == ["zone=a", "zone=b", "zone=c"]
    result = done("update", path, write(LATER, tmp_path / "later.csv"))
    assert "8 values of 'zone' were not among the levels of the model" in result.stderr
    learn_stream(model, LATER, "y")
    np.testing.assert_allclose(posterity.load(path).coef_, model.coef_)


def test_one_level_and_as_many_as_rows(tmp_path: Path) -> None:
    path = tmp_path / "m.posterity"
    fit = ("--target", "y", "--features", "km,zone", "--output", path)
    done("fit", write(FRAME.assign(zone="a"), tmp_path / "a.csv"), *fit)
    assert shown(path).index.tolist() == ["intercept", "km", "zone=a"]
    each = FRAME.assign(zone=[f"z{i}" for i in range(N)])
    arguments = ["fit", write(each, tmp_path / "b.csv"), *fit]
    result = CliRunner().invoke(command, [*map(str, arguments)])
    assert "column 'zone' has 120 different values in the first 120 rows" in result.stderr


def test_a_base_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "m.posterity"
    done("fit", write(FRAME, tmp_path / "a.csv"), "--target", "y", "--features", "km,zone",
         "--output", path)  # fmt: skip
    for base, message in (("zone=q", "base is 'q' for column 'zone', which has no such level"),
                          ("zome=a", "did you mean 'zone'")):  # fmt: skip
        result = CliRunner().invoke(command, ["show", str(path), "--base", base])
        assert result.exit_code == 2
        assert message in result.stderr
