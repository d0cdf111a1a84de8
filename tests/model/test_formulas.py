"""What formulas mean, and what is said of those that can't be used."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from posterity import Model
from posterity.model.formula import name_of, read_formula

TERMS = {
    "y ~ a * b - 1": "a b a:b",
    "y ~ (a + b + c)^2 - a:b": "1 a b c a:c b:c",
    "y ~ a / b": "1 a a:b",
    "y ~ 0 + C(g) + I(x^2)": "C(g) I(x^2)",
    "y ~ x + poly(x, 2) + log(x):`a b`": "1 x poly(x, 2) log(x):a b",
    "y ~ 1": "1",
}


@pytest.mark.parametrize("formula", TERMS)
def test_terms(formula: str) -> None:
    assert " ".join(name_of(term) for term in read_formula(formula).fixed) == TERMS[formula]


def test_groups() -> None:
    found = read_formula("y ~ (1 + x || g) + (0 + x | a/b) + (1 | c:d)").groups
    assert [(one.name, one.correlated, len(one.effects)) for one in found] == [
        ("g", False, 2),
        ("a", True, 1),
        ("a:b", True, 1),
        ("c:d", True, 1),
    ]


FRAME = pd.DataFrame(
    {
        "y": [1.0, 2.0, 4.0, 3.0, 5.0, 7.0],
        "x": [1.0, 2.0, 3.0, 1.0, 2.0, 3.0],
        "g": list("aabbcc"),
        "one": ["u"] * 6,
        "by_g": [0.0, 0.0, 1.0, 1.0, 2.0, 2.0],
    }
)


@pytest.mark.parametrize(
    ("formula", "what"),
    [
        ("y ~ x +", "a term is missing before the end"),
        ("y", "no '~'"),
        ("y ~ x ! g", "'!' means nothing"),
        ("y ~ 1 | g", "in parentheses"),
        ("y ~ xx", "no column 'xx'"),
        ("y ~ sinus(x)", "no function 'sinus'"),
        ("y ~ __import__(x)", "no function"),
        ("y ~ log(g)", "'g' holds no numbers"),
        ("y ~ log(x - 1)", "-inf in row 0"),
        ("y ~ x + (1 | one)", "'one' has one level"),
        ("y ~ x + (by_g | g)", "constant within each level"),
        ("y ~ (1 + x + by_g + poly(x, 2) | g)", "at most 8"),
        ("y ~ (x | g) + (1 | g)", "stand twice"),
        ("y ~ t2(x, by_g)", "no function 't2'"),
        ("y ~ te(x)", "te over two"),
        ("y ~ s(x):g", "stands in no product"),
        ("y ~ x + (s(x) | g)", "stands in no product"),
        ("y ~ s(x, by=g:one)", "make one of this beforehand"),
        ("y ~ s(x, bs='cc')", "period=24"),
        ("y ~ s(log(by_g))", "-inf in row 0"),
        ("y ~ s(x, by_g)", "s is over one column"),
        ("y ~ s(x, k=2)", "s\\(x, k=40\\)"),
        ("y ~ te(x, by_g, period=3)", "no argument 'period'"),
        ("y ~ s(x, period=0)", "a period is a number"),
        ("y ~ s(x, by=poly(by_g, 2))", "has several columns"),
        ("y ~ poly(x, 5)", "more than 5 different values"),
        ("y / x ~ 1", "likelihood='binomial'"),
    ],
)
def test_what_can_not_be_used_is_told(formula: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Model(formula).fit(FRAME)


def test_other_mistakes() -> None:
    with pytest.raises(ValueError, match="likelihood is 'gauss'"):
        Model("y ~ x", "gauss").fit(FRAME)
    with pytest.raises(ValueError, match="y is nan in row 1"):
        Model("y ~ x").fit(FRAME.assign(y=[1.0, np.nan, 1.0, 1.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match=r"write \(1 \| C\(i\)\)"):
        Model("y ~ C(i)").fit({"y": np.zeros(20_000), "i": np.arange(20_000)})
    with pytest.raises(ValueError, match="no rows"):
        Model("y ~ x").fit(FRAME[:0])
    with pytest.raises(ValueError, match="sample_weight"):
        Model("y ~ x").fit(FRAME, sample_weight=np.zeros(6))
    model = Model("y ~ x + (1 | g)").fit(FRAME)
    with pytest.raises(ValueError, match="'x' had numbers in the first rows, and has levels now"):
        model.partial_fit(FRAME.assign(x="high"))
    with pytest.raises(ValueError, match="no group 'h'"):
        model.group_effects("h")
    before = model.predict(FRAME)
    with pytest.raises(ValueError, match="no column 'x'"):
        model.partial_fit(FRAME.drop(columns="x"))
    assert (model.predict(FRAME) == before).all()


def test_fixed_effects_are_least_squares() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": 2000.0 + rng.normal(size=80), "c": list("abcd") * 20})
    frame["d"] = np.repeat(["u", "v"], 40)
    frame["y"] = rng.normal(size=80) + frame["x"]
    found = Model("y ~ poly(x, 2) + c * d").fit(frame).summary()
    x = frame["x"] - frame["x"].mean()
    columns = [np.ones(80), x / np.linalg.norm(x)]
    square = x**2 - np.polyval(np.polyfit(x, x**2, 1), x)
    columns.append(square / np.linalg.norm(square))
    columns += [frame["c"] == level for level in "bcd"] + [frame["d"] == "v"]
    columns += [(frame["c"] == level) & (frame["d"] == "v") for level in "bcd"]
    X = np.stack(columns, axis=1).astype(float)
    expected, squares, *_ = np.linalg.lstsq(X, frame["y"], rcond=None)
    sd = np.sqrt(np.diag(np.linalg.inv(X.T @ X)) * squares[0] / 68)  # of a Student-t with 70
    assert found.index.tolist()[3:] == [
        "c[b]",
        "c[c]",
        "c[d]",
        "d[v]",
        *(f"c:d[{k}, v]" for k in "bcd"),
    ]
    assert found["mean"].to_numpy() == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert found["sd"].to_numpy() == pytest.approx(sd, rel=1e-4)


def test_offsets_and_exposures() -> None:
    rng = np.random.default_rng(2)
    hours = rng.uniform(1.0, 10.0, 200)
    frame = {"n": rng.poisson(3.0 * hours), "hours": hours, "shop": rng.integers(0, 9, 200)}
    model = Model("n ~ 1 + (1 | shop) + offset(log(hours))", "poisson").fit(frame)
    assert model.predict({"hours": [1.0, 100.0], "shop": [-1, -1]}) == pytest.approx(
        [3.0, 300.0], rel=0.1
    )


LEVELS = pd.DataFrame(
    {
        "y": np.sin(np.arange(24.0)),
        "x": np.cos(np.arange(24.0)),
        "dose": [0.25, 0.5, 0.75, 2.5] * 6,
        "kind": ["k3", "k2", "k1"] * 8,
        "size": pd.Categorical(["high", "low", "mid"] * 8, ["low", "mid", "high"], ordered=True),
        "g": list("abcd") * 6,
        "row": range(24),
        "day": pd.date_range("2020-01-01", periods=24),
        "k:x": np.sin(np.arange(24.0) ** 2),
    }
)


@pytest.mark.parametrize(
    ("right", "names"),
    [
        ("C(dose)", "C(dose)[0.5] C(dose)[0.75] C(dose)[2.5]"),
        ("kind * x", "kind[k2] kind[k3] x kind[k2]:x kind[k3]:x"),
        ("size", "size[high] size[mid]"),
        ("kind:x + `k:x`", "`k:x` kind[k1]:x kind[k2]:x kind[k3]:x"),
    ],
)
def test_names_of_fixed_effects(right: str, names: str) -> None:
    found = Model(f"y ~ {right}").fit(LEVELS).summary()
    assert " ".join(found.index[1:]) == names
    assert np.isfinite(found["sd"]).all()


def test_objects_that_are_numbers_are_numbers() -> None:
    objects = LEVELS.assign(x=LEVELS["x"].astype(object))
    decimals = LEVELS.assign(x=[Decimal(repr(float(value))) for value in LEVELS["x"]])
    one, *others = (Model("y ~ x").fit(frame).summary() for frame in (LEVELS, objects, decimals))
    for other in others:
        pd.testing.assert_frame_equal(one, other)


def test_decimal_levels_join_a_stream() -> None:
    whole, stream = Model("y ~ C(dose) * x").fit(LEVELS), Model("y ~ C(dose) * x")
    for part in (LEVELS[:8], LEVELS[8:].iloc[::2], LEVELS[8:].iloc[1::2]):
        stream.partial_fit(part)
    np.testing.assert_allclose(stream.predict(LEVELS), whole.predict(LEVELS), rtol=1e-6)


@pytest.mark.parametrize(
    ("formula", "likelihood", "what"),
    [
        ("y ~ center()", "normal", r"center\(x\)"),
        ("y ~ poly()", "normal", r"poly\(x, 2\)"),
        ("y ~ offset()", "normal", r"offset\(x\)"),
        ("y ~ offset(x, x)", "normal", r"offset\(x\)"),
        ("y ~ scale(x, 3)", "normal", r"scale\(x\)"),
        ("cbind(y, x) ~ 1", "binomial", "successes / trials"),
        ("kind ~ x", "normal", "likelihood='bernoulli'"),
        ("kind ~ x", "bernoulli", "this model supports two"),
        ("y ~ text", "normal", "each row has a level of its own of 'text'"),
        ("y ~ day", "normal", r"C\(day\)"),
        ("y ~ date", "normal", r"C\(date\)"),
        ("y ~ 1 + (1 | row)", "normal", "can't be told from the noise"),
    ],
)
def test_what_else_is_refused(formula: str, likelihood: str, what: str) -> None:
    frame = LEVELS.assign(text=LEVELS["x"].astype(str), date=LEVELS["day"].dt.date)
    with pytest.raises(ValueError, match=what):
        Model(formula, likelihood).fit(frame)


def test_columns_and_rows_are_asked_for() -> None:
    model = Model("y ~ x + (1 | g)").fit(LEVELS)
    for row in ({"x": 1.0, "g": "a"}, {"x": [1.0], "g": "a"}):
        with pytest.raises(TypeError, match="give columns, as in"):
            model.predict(row)
    empty = Model("y ~ g")
    with pytest.raises(ValueError, match="no rows"):
        empty.partial_fit(LEVELS[:0])
    assert empty.partial_fit(LEVELS).n_observations_ == 24
    assert len(model.predict_then_learn(LEVELS[:0])) == 0
    with pytest.raises(ValueError, match="this model supports only Stabilized"):
        Model("y ~ x", forgetting="window:50").fit(LEVELS)


def test_words_of_an_arrow_dictionary_have_no_order() -> None:
    """As a file of text is read: the base is the first by the alphabet, whichever came first."""
    pyarrow = pytest.importorskip("pyarrow")
    words = pyarrow.array(["b", "a", "b", "a", "c", "c"])
    table = pyarrow.table({"y": FRAME["y"].tolist(), "city": words.dictionary_encode()})
    plain = Model("y ~ city").fit({"y": FRAME["y"], "city": words.to_pylist()})
    assert Model("y ~ city").fit(table).summary().index.tolist() == plain.summary().index.tolist()


def test_formulas_may_be_long_and_not_too_deep() -> None:
    names = [f"x{j}" for j in range(1500)]
    formula = read_formula("y ~ " + " + ".join(names))
    assert len(formula.fixed) == 1501
    assert formula.predictors == names
    with pytest.raises(ValueError, match="too many signs or parentheses inside others"):
        read_formula("y ~ " + "(" * 5000 + "x" + ")" * 5000)
