"""Ratios of sums, several metrics of one experiment, and effects in segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from posterity.experiments import Experiment, Metrics, Segments
from posterity.io import TableError

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
Array = NDArray[np.float64]


def draw_users(
    rng: np.random.Generator, n: int, lift: float = 0.0, more: float = 0.0
) -> tuple[NDArray[np.intp], Array, Array]:
    """Arms, clicks and sessions of users, whose own sessions are alike."""
    arms = rng.integers(2, size=n)
    often = np.exp(rng.normal(0.0, 0.5, n))
    sessions = 1.0 + rng.poisson(6.0 * often * (1.0 + more * arms))
    clicks = rng.binomial(sessions.astype(int), 0.8 * rng.beta(0.5, 2.0, n) * (1.0 + lift * arms))
    return arms, clicks.astype(float), sessions


# ---- ratios --------------------------------------------------------------------------------------


def test_a_ratio_is_that_of_the_delta_method() -> None:
    """Estimate and variance, also where one arm has more sessions."""
    arms, clicks, sessions = draw_users(np.random.default_rng(0), 20_000, 0.1, 0.5)
    test = Experiment([0, 1]).observe_rows(arms, clicks, per=sessions)
    variances = []
    for arm in (0, 1):
        own = arms == arm
        ratio = clicks[own].sum() / sessions[own].sum()
        off = (clicks[own] - ratio * sessions[own]) / sessions[own].mean()
        variances.append(off.var() / own.sum())
        assert test.mean_[arm] == pytest.approx(ratio, abs=0.3 * variances[-1] ** 0.5)
    assert test._contrasts.variances[1, 0] == pytest.approx(sum(variances), rel=0.02)


def test_a_ratio_of_ones_is_a_mean() -> None:
    arms, clicks, _ = draw_users(np.random.default_rng(1), 3000)
    plain = Experiment([0, 1], level=0.9).observe_rows(arms, clicks)
    ratio = Experiment([0, 1], level=0.9).observe_rows(arms, clicks, per=np.ones(3000))
    assert ratio.interval_[1] == pytest.approx(plain.interval_[1], rel=1e-9)
    assert ratio.effect_[1] == pytest.approx(plain.effect_[1], rel=1e-9)


def test_the_unit_of_the_denominator_is_that_of_the_ratio() -> None:
    arms, clicks, sessions = draw_users(np.random.default_rng(2), 3000)
    one, other = (
        Experiment([0, 1]).observe_rows(arms, clicks, per=unit * sessions) for unit in (1.0, 60.0)
    )
    assert one.interval_[1] == pytest.approx(60.0 * np.array(other.interval_[1]), rel=1e-6)


def test_ratios_of_tables_and_rows_are_the_same() -> None:
    arms, clicks, sessions = draw_users(np.random.default_rng(3), 2000)
    frame = pd.DataFrame({"arm": arms, "reward": clicks, "sessions": sessions})
    rows = Experiment([0, 1]).observe_rows(arms, clicks, per=sessions)
    assert Experiment([0, 1]).observe(frame, per="sessions").interval_ == rows.interval_
    parts = Experiment([0, 1])
    for start in range(0, 2000, 500):
        parts = parts.observe(frame[start : start + 500], per="sessions")
    assert parts.interval_[1] == pytest.approx(rows.interval_[1], rel=0.05)


def test_ratios_of_users_without_sessions_and_arms_in_other_shares() -> None:
    rng = np.random.default_rng(4)
    _, clicks, sessions = draw_users(rng, 6000)
    arms = rng.choice([0, 1], size=6000, p=[0.9, 0.1])
    seen = rng.random(6000) < 0.5
    test = Experiment([0, 1], allocation={0: 0.9, 1: 0.1})
    test = test.observe_rows(arms, clicks * seen, per=sessions * seen)
    low, high = test.interval_[1]
    assert low < 0.0 < high < 0.1
    assert test.mean_[0] == pytest.approx(0.16, abs=0.02)
    nobody = Experiment([0, 1]).observe_rows(arms, np.zeros(6000), per=np.zeros(6000))
    assert nobody.decision_ is None


@pytest.mark.parametrize(
    ("per", "said"),
    [
        ([1.0, -1.0] * 20, "denominator in row 1 is -1: it must be finite, and 0 or more"),
        ([1.0, np.inf] * 20, "denominator in row 1 is inf"),
        ([1.0] * 39, "the same length, as must per and segments"),
        (None, "some rows say what their rewards are divided by"),
    ],
)
def test_what_cannot_be_divided_by_is_refused(per: Any, said: str) -> None:
    test = Experiment([0, 1]).observe_rows([0, 1] * 20, np.arange(40.0), per=np.ones(40))
    before = test.n_observations_, test.interval_
    with pytest.raises(ValueError, match=said):
        test.observe_rows([0, 1] * 20, np.arange(40.0), per=per)
    assert (test.n_observations_, test.interval_) == before


def test_nothing_is_known_of_a_ratio_before_each_arm_has_a_denominator() -> None:
    """Else an arm without sessions would have the ratio of the others, or of no sessions at all."""
    arms, clicks, sessions = draw_users(np.random.default_rng(3), 2000)
    none = arms == 0
    first = slice(0, 50)
    test = Experiment([0, 1])
    test = test.observe_rows(arms[first], (clicks * none)[first], per=(sessions * none)[first])
    assert test.decision_ is None
    assert test.undecided_reason_ == "no row of arm 1 has anything above 0 to divide its reward by"
    assert np.isnan(test.effect_[1])
    later = test.observe_rows(arms, clicks, per=sessions)
    assert np.isfinite(later.interval_[1]).all()


def test_columns_of_denominators_are_checked() -> None:
    frame = pd.DataFrame({"arm": [0, 1] * 20, "reward": 1.0, "sessions": ["two", "one"] * 20})
    with pytest.raises(TableError, match="sessions"):
        Experiment([0, 1]).observe(frame, per="sessions")
    frame["sessions"] = [1.0, None] * 20
    with pytest.raises(TableError, match="'sessions' has missing values"):
        Experiment([0, 1]).observe(frame, per="sessions", missing="level")
    with pytest.raises(TableError, match="per 'visits' is not a column"):
        Experiment([0, 1]).observe(frame, per="visits")
    with pytest.raises(TypeError, match="name one column; Metrics has several"):
        Experiment([0, 1]).observe(frame, reward=["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reward_range is of rewards"):
        Experiment([0, 1], reward_range=(0, 1)).observe_rows([0, 1], [0.0, 1.0], per=[1.0, 1.0])


@pytest.mark.slow
def test_ratios_hold_at_every_look_where_sessions_as_rows_do_not() -> None:
    """A user's sessions are alike: as rows they make a t interval too narrow, at one look."""
    held = naive = 0
    for seed in range(60):
        rng, test = np.random.default_rng(seed), Experiment([0, 1], planned_rows=2000)
        whole = [draw_users(rng, 200) for _ in range(10)]
        inside = True
        for arms, clicks, sessions in whole:
            test = test.observe_rows(arms, clicks, per=sessions)
            low, high = test.interval_[1]
            inside &= low <= 0.0 <= high
        held += inside
        arms, clicks, sessions = (np.concatenate(part) for part in zip(*whole, strict=True))
        share = [clicks[arms == k].sum() / sessions[arms == k].sum() for k in (0, 1)]
        error = [p * (1 - p) / sessions[arms == k].sum() for k, p in enumerate(share)]
        naive += abs(share[1] - share[0]) <= 1.96 * np.sqrt(sum(error))
    assert held >= 55
    assert naive < 52


# ---- several metrics -----------------------------------------------------------------------------


def make_visits(n: int = 12_000, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"arm": rng.choice(["A", "B"], size=n)})
    is_b = frame["arm"] == "B"
    frame["bought"] = rng.random(n) < np.where(is_b, 0.15, 0.1)
    frame["pages"] = rng.poisson(np.where(is_b, 5.5, 5.0))
    frame["seconds"] = 30.0 + 5.0 * rng.normal(size=n) + 2.0 * is_b
    frame["calls"] = rng.poisson(1.0, size=n)
    return frame


def make_metrics(*names: str, **guardrails: float) -> Metrics:
    return Metrics({name: Experiment(["A", "B"]) for name in names}, guardrails)


def test_the_first_metric_decides_and_a_guardrail_stops() -> None:
    frame = make_visits()
    plain = make_metrics("bought", "pages", "seconds", seconds=5.0).observe(frame)
    assert (
        plain.primary.decision_ == Experiment(["A", "B"]).observe(frame, reward="bought").decision_
    )
    assert plain.next_step_ == "take B"
    assert plain.guardrails_[0].is_kept
    assert plain.pairs_["pages"][0].is_decided
    assert plain.to_frame()["metric"].tolist() == ["bought", "pages", "seconds"]
    broken = make_metrics("bought", "seconds", seconds=1.0).observe(frame)
    assert broken.guardrails_[0].is_broken
    assert broken.next_step_.startswith("do not take B as it is: it changes seconds")
    assert "Guardrail seconds (may rise by 1) is broken by B" in broken.report()
    open_ = make_metrics("bought", "calls", calls=-0.001).observe(frame)
    assert not open_.guardrails_[0].is_kept
    assert not open_.guardrails_[0].is_broken
    assert open_.next_step_.startswith("go on until calls is known")


def test_a_pair_that_is_told_apart_leaves_its_errors_to_the_others() -> None:
    """Holm's rule: two of three others differ, so the third has the interval of its own level."""
    metrics = make_metrics("bought", "pages", "seconds", "calls").observe(make_visits())
    alone = metrics.experiments["calls"].at_level(0.95).pairs_[0]
    assert metrics.pairs_["calls"][0] == alone
    assert [pair[0].is_decided for pair in metrics.pairs_.values()] == [True, True, True, False]
    assert alone.low == pytest.approx(metrics.experiments["calls"].pairs_[0].low)


def test_a_level_is_read_also_of_what_was_known_at_the_planned_end() -> None:
    frame = make_visits()
    one, other = (Experiment(["A", "B"], level=level, planned_rows=6000) for level in (0.95, 0.99))
    for test in (one, other):
        test.observe(frame, reward="calls")
    assert one.at_level(0.99).interval_ == other.interval_
    assert one.level == 0.95


def test_metrics_are_refused_as_a_whole() -> None:
    frame = make_visits(200)
    metrics = make_metrics("bought", "pages").observe(frame)
    with pytest.raises(TableError, match="pages"):
        metrics.observe(frame.assign(pages=np.nan))
    assert metrics.primary.n_observations_ == 200
    with pytest.raises(ValueError, match="the table can be read only once"):
        metrics.observe(iter([frame]), arm="arm")
    for wrong, said in (
        (lambda: Metrics({}), "give one for each metric"),
        (lambda: Metrics(["a", "b"]), "give one for each metric"),  # type: ignore[arg-type]
        (lambda: metrics.observe(frame, per={"page": "calls"}), "its keys are metrics"),
        (lambda: Metrics({"a": Experiment(["AB"]), "b": Experiment([1, 2])}), "at least"),
        (lambda: Metrics({"a": Experiment([1, 3]), "b": Experiment([1, 2])}), "has arms"),
        (lambda: make_metrics("a", "b", a=1.0), "guardrail 'a' is 1.0: name one of"),
        (lambda: make_metrics("a", "b", b=0.0), "a change that is allowed, not 0"),
    ):
        with pytest.raises(ValueError, match=said):
            wrong()


@pytest.mark.parametrize("allowed", [0.0, np.nan, np.inf, "0.5", None])
def test_a_guardrail_is_a_number(allowed: Any) -> None:
    arms = ["A", "B"]
    with pytest.raises(ValueError, match="a change that is allowed, not 0"):
        Metrics({"y": Experiment(arms), "z": Experiment(arms)}, guardrails={"z": allowed})


def test_first_guesses_of_metrics_are_told_the_call() -> None:
    arms = ["A", "B"]
    metrics = Metrics({"y": Experiment(arms), "z": Experiment(arms)}, guardrails={"z": 0.1})
    assert str(metrics.guardrails_[0]).endswith("is not known yet by B: too few rows yet.")
    with pytest.raises(AttributeError, match=r"use primary\.decision_"):
        _ = metrics.decision_  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"metrics are columns, \['y', 'z'\]"):
        metrics.observe(pd.DataFrame({"arm": arms}), reward="y")
    with pytest.raises(ValueError, match="give one for each metric"):
        Metrics({"y": 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="give the change that each allows"):
        Metrics({"y": Experiment(arms)}, guardrails=["z"])  # type: ignore[arg-type]


# ---- segments ------------------------------------------------------------------------------------


def test_effects_that_differ_are_found_and_drawn_towards_their_mean() -> None:
    rng = np.random.default_rng(0)
    n = 30_000
    arms, places = rng.integers(2, size=n), rng.choice(4, size=n, p=[0.5, 0.3, 0.15, 0.05])
    effects = np.array([0.0, 0.3, 0.0, 0.0])
    test = Experiment([0, 1])
    test.observe_rows(arms, effects[places] * arms + rng.normal(size=n), segments=places)
    (found,) = test.segments_
    assert found.differ
    assert found.names == ("0", "1", "2", "3")
    assert np.all(np.abs(found.means - effects) < found.half_widths)
    alike = [0, 2, 3]  # these are drawn together, and the one that stands out hardly to them
    assert np.ptp(found.means[alike]) < 0.9 * np.ptp(found.estimates[alike])
    assert found.means[alike].max() < found.means[1] < found.estimates[1]
    assert "The effect of 1 differs between segments: from " in test.report()
    assert found.rows.sum() == test._contrasts.rows


@pytest.mark.parametrize(("count", "far"), [(8, 5.0), (12, 10.0)])
def test_a_segment_that_stands_out_is_left_where_it_is(count: int, far: float) -> None:
    rng = np.random.default_rng(count)
    errors = rng.uniform(0.5, 1.5, size=count)
    held = np.zeros(2)
    for _ in range(12):
        effects = np.append(np.zeros(count - 1), far * errors[-1])
        given = effects + errors * rng.normal(size=count), np.square(errors)
        total = 1e4 / np.sum(1.0 / given[1])
        one = Segments("B", tuple(range(count)), np.full(count, 1e3), *given, total, 0.95, False)
        off = np.abs(one.means - effects) <= one.half_widths
        held += [off[-1], off[:-1].all()]
    assert np.all(held >= 10)


def test_effects_that_are_alike_show_no_sign() -> None:
    rng = np.random.default_rng(1)
    arms, places = rng.integers(2, size=9000), rng.choice(["x", "y", "z"], size=9000)
    test = Experiment([0, 1])
    test.observe_rows(arms, 0.2 * arms + rng.normal(size=9000), segments=places)
    (found,) = test.segments_
    assert str(found) == "No sign that the effect of 1 differs between segments."
    alone = 1.96 * np.sqrt(found.variances)
    assert np.all(found.half_widths < alone * 1.25)
    assert np.ptp(found.means) < np.ptp(found.estimates)


def test_segments_of_a_column_and_of_rows_are_the_same() -> None:
    frame = make_visits(4000)
    frame["device"] = np.resize(["phone", "desk", "phone"], 4000)
    frame["shop"] = np.resize([7, 8], 4000)
    how: dict[str, Any] = {"reward": "bought"}
    by_text = Experiment(["A", "B"]).observe(frame, segment="device", **how).segments_[0]
    assert by_text.names == ("desk", "phone")
    assert by_text.to_frame()["segment"].tolist() == ["desk", "phone"]
    codes = np.column_stack([frame["device"] == "phone", frame["device"] == "desk"])
    rows = Experiment(["A", "B"]).observe_rows(
        frame["arm"], frame["bought"], 1.0 * codes, segments=frame["device"]
    )
    assert rows.segments_[0].estimates == pytest.approx(by_text.estimates)
    by_number = Experiment(["A", "B"]).observe(frame, segment="shop", covariates="device", **how)
    assert by_number.segments_[0].names == ("7", "8")
    frame["device"] = np.resize(["phone", "desk", "watch"], 4000)
    later = Experiment(["A", "B"]).observe(
        make_visits(99).assign(device="phone"), segment="device", **how
    )
    assert later.observe(frame, segment="device", **how).segments_[0].names == ("others", "phone")


def test_few_rows_and_many_segments() -> None:
    few = Experiment([0, 1]).observe_rows([0, 1] * 20, np.arange(40.0), segments=["a", "b"] * 20)
    assert "too few rows yet" in few.report()
    assert np.isnan(few.segments_[0].means).all()
    assert Experiment([0, 1]).segments_ == ()
    with pytest.raises(ValueError, match="more than 100 segments"):
        Experiment([0, 1]).observe_rows([0, 1] * 200, np.arange(400.0), segments=range(400))


def test_a_segment_without_estimate_has_the_mean_of_the_others() -> None:
    ends = np.array([0.1, 0.3, np.nan]), np.array([0.001, 0.001, np.inf])
    three = Segments("B", ("x", "y", "z"), np.array([900, 900, 3]), *ends, 1.0, 0.95, False)
    assert three.means[2] == pytest.approx(0.2, abs=0.01)
    assert three.half_widths[2] > three.half_widths[0]


def test_segments_of_a_ratio_have_the_effects_on_their_own_ratios() -> None:
    """Beside the ratio of all, one of many sessions would seem to lose where others gain."""
    rng = np.random.default_rng(0)
    arms, names = rng.integers(2, size=40_000), rng.choice(["many", "few"], size=40_000)
    sessions = 1.0 + rng.poisson(np.where(names == "few", 1.0, 5.0))
    clicks = rng.binomial(sessions.astype(int), 0.3 + 0.1 * arms * (names == "few"))
    test = Experiment([0, 1]).observe_rows(arms, clicks, per=sessions, segments=names)
    few, many = test.segments_[0].means
    for name, found, effect in (("few", few, 0.1), ("many", many, 0.0)):
        own = [(arms == arm) & (names == name) for arm in (0, 1)]
        ratios = [clicks[rows].sum() / sessions[rows].sum() for rows in own]
        assert found == pytest.approx(ratios[1] - ratios[0], abs=1e-3)
        assert found == pytest.approx(effect, abs=0.01)
    assert test.segments_[0].differ


def test_a_segment_of_a_ratio_waits_for_denominators_of_each_arm() -> None:
    arms, clicks, sessions = draw_users(np.random.default_rng(1), 4000)
    names = np.where(np.arange(4000) % 3 > 0, "x", "y")
    sessions = np.where((names == "y") & (arms == 1), 0.0, sessions)
    test = Experiment([0, 1]).observe_rows(
        arms, clicks * (sessions > 0.0), per=sessions, segments=names
    )
    assert np.isfinite(test.segments_[0].variances).tolist() == [True, False]


def test_numbers_of_a_segment_are_names() -> None:
    """A missing one was the mean of those before, and each of these means a segment."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"arm": rng.integers(2, size=3000), "y": rng.normal(size=3000)})
    frame["code"] = np.where(rng.random(3000) < 0.05, np.nan, rng.integers(1, 4, size=3000))
    test = Experiment([0, 1]).observe(frame, reward="y", segment="code", missing="level")
    assert test.segments_[0].names == ("1", "2", "3", "missing")


def test_what_rises_too_much_does_not_beat() -> None:
    """More seconds are no victory, and arms alone are no experiment."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"arm": rng.choice(["old", "new"], 4000)})
    frame["sold"] = frame["seconds"] = rng.normal(size=4000) + (frame["arm"] == "new")
    arms = ["old", "new"]
    both = {"sold": Experiment(arms), "seconds": Experiment(arms)}
    report = Metrics(both, guardrails={"seconds": 0.3}).observe(frame).report()
    assert "sold: new beats old: +" in report
    assert "seconds: new is above old: +" in report
    with pytest.raises(ValueError, match="give one for each metric"):
        Metrics({"sold": arms})  # type: ignore[dict-item]
