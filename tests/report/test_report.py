"""Reports: one page, everything in it, and nothing in it that came from the data runs."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vl_convert", reason="reports need posterity[report]")

import vl_convert

from posterity import BayesianLinearRegression, BayesianPoissonRegression
from posterity.evaluation import compare_predictions, progressive_validation
from posterity.report import About, ColumnSummaries, comparison_report, validation_report, words

EVIL = ["<script>alert(1)</script>", "a\"b'<img src=x onerror=alert(2)>", "</script><b>&amp;"]
MOST_BYTES = 3_000_000


class Reader(HTMLParser):
    """Elements, text of headings and cells, and the specifications of charts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.specs: list[dict[str, Any]] = []
        self._inside: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        kind = dict(attrs).get("type") == "application/json"
        self._inside = "json" if kind else tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "json":
            self.specs.append(json.loads(data))
        elif self._inside not in ("script", "style"):
            self.text.append(data)


def evil_stream(n: int = 2000) -> tuple[Any, np.ndarray]:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=n)
    y[n // 2 : n // 2 + 200] += 5.0
    return pd.DataFrame(X, columns=EVIL), y


@pytest.fixture(scope="module")
def page() -> str:
    X, y = evil_stream()
    model = BayesianLinearRegression()
    result = progressive_validation(
        model, X, y, levels=(0.5, 0.95), period=24, slices={EVIL[0]: 3}, follow=20
    )
    about = About(
        title=EVIL[1],
        target=EVIL[0],
        command=f"posterity evaluate x.csv --target '{EVIL[0]}'",
        problems=[f"{EVIL[2]!r} never changes"],
        settings=[("features", ", ".join(EVIL))],
    )
    return validation_report(result, about, model=model, spread=np.ones(3))


@pytest.fixture(scope="module")
def compared() -> str:
    X, y = evil_stream()
    names = {EVIL[0]: 1.0, EVIL[1]: 1e6}
    models = {
        name: BayesianLinearRegression(prior_precision=precision)
        for name, precision in names.items()
    }
    return comparison_report(compare_predictions(models, X, y), About(title=EVIL[2]))


@pytest.mark.parametrize("kind", ["page", "compared"])
def test_names_stay_text(kind: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(kind)
    reader = Reader(html)
    assert reader.tags.count("img") == 0
    assert reader.tags.count("b") == 0
    assert reader.tags.count("script") == len(reader.specs) + 2
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert EVIL[0] in "".join(reader.text)
    assert html.isprintable() or "\x00" not in html


@pytest.mark.parametrize("kind", ["page", "compared"])
def test_page_needs_nothing_else(kind: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(kind)
    reader = Reader(html)
    assert len(html.encode()) < MOST_BYTES
    attributes = dict(reader.attributes)
    assert "src" not in attributes
    assert "link" not in reader.tags
    assert attributes["lang"] == "en"
    assert "default-src 'none'" in html


@pytest.mark.parametrize("kind", ["page", "compared"])
def test_every_chart_can_be_drawn(kind: str, request: pytest.FixtureRequest) -> None:
    reader = Reader(request.getfixturevalue(kind))
    assert len(reader.specs) == {"page": 8, "compared": 3}[kind]
    for spec in reader.specs:
        assert spec["description"]
        svg = vl_convert.vegalite_to_svg({**spec, "width": 700}, vl_version="6.4")
        assert len(re.findall(r"<path|<rect", svg)) > 10
        assert '"tooltip"' in json.dumps(spec)


def test_numbers_are_there_without_charts(page: str) -> None:
    reader = Reader(page)
    assert reader.tags.count("details") == 8
    assert reader.tags.count("table") >= 9
    text = " ".join(reader.text)
    for heading in (
        "How good are the predictions?",
        "Can the intervals be trusted?",
        "Drift",
        "What has it learned?",
        "Problems found in the data",
        "How this page was made",
    ):
        assert heading in text
    assert "value one season ago" in text
    assert "Periods of larger errors" in text


def test_extremes_are_in_the_chart() -> None:
    y = np.random.default_rng(0).normal(size=40_000)
    y[12_345] = 500.0
    X = np.zeros((len(y), 1))
    model = BayesianLinearRegression(prior_precision=1.0)
    html = validation_report(progressive_validation(model, X, y), About(title="One far out"))
    charts = [spec for spec in Reader(html).specs if "Greatest" in spec["description"]]
    (chart,) = charts
    highest = max(chart["data"]["values"], key=lambda row: row["max"])
    assert highest["max"] == pytest.approx(500.0, rel=0.01)
    assert highest["start"] <= 12_345 < highest["end"]
    assert len(html.encode()) < MOST_BYTES


def test_one_row_is_enough() -> None:
    model = BayesianLinearRegression()
    result = progressive_validation(model, np.ones((1, 1)), np.ones(1))
    assert "<h1>One</h1>" in validation_report(result, About(title="One"), model=model)


def test_survey_finds_what_is_wrong() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4))
    y = X[:, 0] + rng.normal(size=5000)
    X[:, 1] = 7.0
    X[1234, 2] = 9999.0
    X[:, 3] = 2.0 * y + 1.0
    survey = ColumnSummaries([(X[:3000], y[:3000]), (X[3000:], y[3000:])])
    assert sum(len(target) for _, target in survey) == 5000
    found = survey.problems(["a", "b", "c", "d"], "fare")
    assert found[0] == "1 feature never changes, and says nothing: 'b'"
    assert found[1].startswith("row 1,234 has 'c' = 9999, 71 standard deviations from its mean")
    assert found[2].startswith("'d' is almost 'fare' itself (correlation 1.00000): is it known")
    assert len(found) == 3
    assert survey.spread == pytest.approx(X.std(axis=0))


def test_report_of_a_plain_table_finds_nothing() -> None:
    rng = np.random.default_rng(0)
    survey = ColumnSummaries([(rng.normal(size=(100, 2)), rng.normal(size=100))])
    list(survey)
    assert survey.problems(["a", "b"], "y") == []


def test_words_agree_where_tails_are_long() -> None:
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(4000, 1)), rng.normal(size=4000)
    noise[rng.integers(0, 4000, size=640)] *= 12.0
    result = progressive_validation(BayesianLinearRegression(), X, X[:, 0] + noise)
    assert result.coverage[0.95] < 0.94
    said = words.shape_in_words(result)
    assert "too narrow" in words.headline(result)
    assert "too wide in the middle and too narrow in the tails" in said


def test_one_bad_model_does_not_flatten_the_others() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.abs(30 * X[:, 0]).round()
    models = {
        "auto": BayesianLinearRegression(),
        "firm": BayesianLinearRegression(prior_precision=1000.0),
        "sure": BayesianLinearRegression(noise_precision=1.0),
    }
    html = comparison_report(compare_predictions(models, X, y), About(title="t"))
    assert "Too far behind to be drawn: sure." in html
    assert "&lt; 0.001" in html
    chart = next(
        spec for spec in Reader(html).specs if spec["description"].startswith("Differences")
    )
    low, high = chart["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert -10.0 < low < high < 10.0
    assert "<h3>Differences of mean loss along the stream</h3>" in html


def test_coverage_is_drawn_where_it_happens() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 1))
    y = X[:, 0] + np.random.default_rng(1).normal(size=3000)
    result = progressive_validation(BayesianLinearRegression(), X, y)
    html = validation_report(result, About(title="t"))
    chart = next(
        spec for spec in Reader(html).specs if spec["description"].startswith("Coverage of int")
    )
    assert chart["layer"][0]["encoding"]["y"]["scale"]["domain"] in ([0.8, 1], [0.9, 1])
    assert "prefers-color-scheme: dark" in html


def test_survey_keeps_the_ends_of_every_column() -> None:
    X = np.random.default_rng(0).integers(0, 50, size=(300, 3)).astype(float)
    for rows in (1, 7, 300):
        survey = ColumnSummaries(
            [(X[i : i + rows], X[i : i + rows, 0]) for i in range(0, 300, rows)]
        )
        assert sum(len(y) for _, y in survey) == 300
        ordered = np.sort(X, axis=0)
        for end, (first, second), found in (
            (survey._top, (-1, -2), X.argmax(axis=0)),
            (survey._bottom, (0, 1), X.argmin(axis=0)),
        ):
            assert end.values[:3].tolist() == ordered[first].tolist()
            assert end.seconds[:3].tolist() == ordered[second].tolist()
            assert end.row[:3].tolist() == found.tolist()
        assert survey.spread == pytest.approx(X.std(axis=0))


def test_what_is_certain_or_told_is_said() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    still = progressive_validation(BayesianLinearRegression(), X, np.full(200, 3.3))
    assert (
        words.judge(still, 0.95) == "most predictions were certain, and their intervals are points"
    )
    assert ("skill over mean so far", "none", "its error: 0") in list(words.rows(still))
    Z = np.random.default_rng(0).normal(size=(2000, 2))
    told = progressive_validation(BayesianLinearRegression(), Z, Z[:, 0] + Z[:, 1])
    assert any("almost exact" in line for line in words.caveats(told))
    survey = ColumnSummaries([(X, np.full(200, 3.3))])
    list(survey)
    assert survey.possible_slips(["a", "b"], "y") == []


def test_coefficients_of_counts_are_logs() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    model = BayesianPoissonRegression()
    result = progressive_validation(model, X, rng.poisson(np.exp(X[:, 0])))
    html = validation_report(
        result, About(title="t", target="visits", log_target=True), model=model, spread=[1.0]
    )
    assert "log of visits per sd of the feature" in html
    assert "the log of the prediction" in html
