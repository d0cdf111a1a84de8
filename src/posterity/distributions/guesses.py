"""Names that are not ours: what other libraries call it, and what is nearly right."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

# Arguments of other libraries, and of other models, and what there is.
OTHER_ARGUMENTS = {
    "alpha": "prior_precision and noise_precision are learned, or given; a level= is 1 - alpha",
    "beta": "noise_precision is learned, or given",
    "data": "fit(frame) takes the rows",
    "event": "give Censored(...) both ends: (time, time) of what was seen, else (time, inf)",
    "exclude": "what the user had is left out; ask for more, k=..., and leave others out of these",
    "exposure": "models of counts have one: BayesianPoissonRegression().fit(X, y, exposure=...); "
    "a formula has offset(log(exposure)); divide an amount by it, and weight the row by it",
    "family": "likelihood= takes it",
    "formula": "Model(formula).fit(frame) takes one",
    "groups": "GroupedRegression().fit(X, y, groups=groups) takes them, as does by= of a frame",
    **dict.fromkeys(("horizon", "periods", "steps"), "the number of steps is h: forecast(28)"),
    "id_col": "call the column 'unique_id'",
    "lambda_": "prior_precision is learned, or given",
    **dict.fromkeys(
        ("lift", "mde", "relative_effect"),
        "effect= is a difference in the unit of the baseline: 0.1 * baseline for 10% more",
    ),
    "smoothing": "forgetting='exponential:0.99' does this",
    "target": "call the column 'y'",
    "target_col": "call the column 'y'",
    "time": "call the column 'ds'",
    "time_col": "call the column 'ds'",
}


def tell_call(function: Callable[P, R]) -> Callable[P, R]:
    """Let calls whose arguments do not fit be told the right one.

    Examples
    --------
    >>> @tell_call
    ... def fit(X, y, *, weight=None): ...
    >>> fit([[1.0]])
    Traceback (most recent call last):
    TypeError: fit() is missing a required argument: 'y'; the call is fit(X, y, weight=...)
    """

    @wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> R:
        try:
            return function(*given, **named)
        except TypeError:
            _check_call(function, *given, **named)
            raise

    return called


class TellsCalls:
    """Classes whose calls that do not fit are told the right one."""

    other_arguments: ClassVar[Mapping[str, str]] = OTHER_ARGUMENTS

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Check the parameters; a copy, which is made without them, has them from its original."""
        if given or not named.keys() <= _read_signature(cls.__init__).parameters.keys():
            _check_call(cls.__init__, cls, *given, **named)
        return super().__new__(cls)

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        for name in ("fit", "partial_fit", "unlearn", "predict", "predict_interval", "forecast"):
            if name in vars(cls):
                setattr(cls, name, tell_call(vars(cls)[name]))


@cache
def _read_signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _check_call(function: Callable[..., Any], *given: Any, **named: Any) -> None:
    """Raise ``TypeError`` with the right call, unless this one fits."""
    own = _read_signature(function)
    try:
        own.bind(*given, **named)
        return
    except TypeError as error:
        said = str(error).replace("missing a", "is missing a")
    name, places = function.__name__, dict(own.parameters)
    wrong = "" if "positional" in said else next((one for one in named if one not in places), "")
    if wrong:  # rather than what is missing, which was given by another name
        said = f"got an unexpected keyword argument {wrong!r}"
    if places.pop("self", None):
        owner = given[0].__name__ if name == "__init__" else type(given[0]).__name__
        name = owner if name == "__init__" else f"{owner}.{name}"
    others = getattr(given[0] if given else None, "other_arguments", OTHER_ARGUMENTS)
    told = others.get(wrong, did_you_mean(wrong, places).removeprefix("; "))
    if not told:
        empty = inspect.Parameter.empty
        listed = [one if how.default is empty else f"{one}=..." for one, how in places.items()]
        told = f"the call is {name.rpartition('.')[2]}({', '.join(listed)})"
    raise TypeError(f"{name}() {said}; {told}") from None


def refuse_guess(owner: Any, name: str, here: Mapping[str, str]) -> Any:
    """Raise ``AttributeError`` for an attribute that is not there, with what there is."""
    if name in here:
        said = f"{type(owner).__name__} has no attribute {name!r}: use {here[name]}"
        raise AttributeError(said, name=name, obj=owner)
    # A property that raised says so again.
    return object.__getattribute__(owner, name)


class TellsNames:
    """Classes that say, for an attribute that is not there, what is used instead.

    Examples
    --------
    >>> class Model(TellsNames):
    ...     _our_names = {"save": "posterity.save(model, path)"}
    >>> Model().save
    Traceback (most recent call last):
    AttributeError: Model has no attribute 'save': use posterity.save(model, path)
    """

    __slots__ = ()
    _our_names: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # else every attribute would seem to be there

        def __getattr__(self, name: str) -> Any:
            """Raise ``AttributeError``, with our name for one of other libraries."""
            return refuse_guess(self, name, self._our_names)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The end of a message about an unknown name: the nearest known one, or nothing.

    Examples
    --------
    >>> did_you_mean("prcie", ["age", "price"])
    "; did you mean 'price'?"
    >>> did_you_mean("humidity", ["age", "price"])
    ''
    """
    folded = {str(one).casefold(): one for one in known}
    near = difflib.get_close_matches(str(name).casefold(), folded, n=1)
    return f"; did you mean {str(folded[near[0]])!r}?" if near else ""
