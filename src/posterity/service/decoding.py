"""Read bodies: what is wrong with one is said in plain words, with the field and what to give."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from posterity.service.errors import RefusedError
from posterity.service.inputs import list_names

_TYPES = {
    "float": "a number",
    "int": "an integer",
    "str": "text",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_JSON = {"str": str, "bool": bool, "array": list, "object": dict, "null": type(None)}
_COUNTED = {"str": "characters", "array": "elements", "object": "fields"}


class Decoder:
    """Reads bodies of one kind.

    Parameters
    ----------
    kind : type
        What a body must be.

    Examples
    --------
    >>> from posterity.service.messages import NewToken
    >>> Decoder(NewToken).decode(b'{"name": "shop", "role": "boss"}')
    Traceback (most recent call last):
    posterity.service.errors.RefusedError: unknown value 'boss': give 'admin', 'decide' or 'read'
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    def decode(self, body: bytes) -> Any:
        """Decode a body; raises ``RefusedError`` with what to send instead.

        Raises
        ------
        RefusedError
            400 where it is no JSON; 422 where it says something else than is asked for.
        """
        try:
            return self._decode(body)
        except msgspec.ValidationError as error:
            raise self._explain(str(error), body) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedError(400, _explain_syntax(body, str(error))) from error

    def _explain(self, message: str, body: bytes) -> RefusedError:
        refused = explain_invalid(self._kind, message)
        if refused.field.endswith("[...]"):
            place = refused.field.removesuffix("[...]").split(".")
            refused.field = _find_bad_feature(body, place, re.findall(r"got `(\w+)`", message))
        return refused


def explain_invalid(kind: Any, message: str) -> RefusedError:
    """The refusal of what msgspec could not make a request of some kind of."""
    what, _, at = message.partition(" - at `$")
    place = at.removesuffix("`").removeprefix(".")
    wanted = _find_type(inspect.type_info(kind), place)
    named = re.search(r"(unknown|required) field `([^`]*)`", what)
    if named is None:
        return RefusedError(422, explain_value(what, wanted), place)
    name, field = named[2], ".".join(filter(None, [place, named[2]]))
    if named[1] == "required":
        return RefusedError(422, f"{name!r} is missing: send it", field)
    known = list_names(one.encode_name for one in getattr(wanted, "fields", ()))
    return RefusedError(422, f"unknown field {name!r}: give {known}", field)


def _explain_syntax(body: bytes, error: str) -> str:
    if not body.strip():
        return "the body is empty: send JSON"
    if re.search(rb"\b(NaN|Infinity)\b", body):
        error += "; JSON has no NaN and no Infinity: leave such rows out, or send another number"
    elif re.search(rb"\\u[dD][89a-fA-F]", body):
        error += "; a surrogate pair may be incomplete: send the character itself in UTF-8"
    elif "truncated" in error:
        error = "it ends before it is complete: close all brackets and quotes"
    else:
        error += "; send UTF-8 without a byte order mark, and quote names and texts"
    return f"the body is not valid JSON: {error}"


def explain_value(what: str, wanted: Any = None) -> str:
    """Explain a message of msgspec about one value, and say what to give."""
    if found := re.fullmatch(r"Invalid enum value (.*)", what):
        *others, last = [repr(value) for value in sorted(wanted.values)] or ["another value"]
        given = f"{', '.join(others)} or {last}" if others else last
        return f"unknown value {found[1]}: give {given}"
    if found := re.fullmatch(r"Expected `([^`]*)`, got `(\w+)`", what):
        kinds = [_TYPES.get(one.strip(), one.strip()) for one in found[1].split("|")]
        return f"this is {_TYPES.get(found[2], found[2])}: give {' or '.join(kinds)}"
    if found := re.fullmatch(r"Expected `(\w+)` of length (>=|<=)?\s?(\d+)", what):
        bound = {">=": "at least ", "<=": "at most "}.get(found[2] or "", "")
        return f"the wrong length: give {bound}{found[3]} {_COUNTED[found[1]]}"
    if found := re.fullmatch(r"Expected `(?:float|int)` (>=|<=|>|<) (.*)", what):
        bound = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}[found[1]]
        return f"out of range: give {bound} {found[2]}"
    if "matching regex" in what:  # names and ids are the only texts that have one
        return "this contains a NUL character: leave it out"
    if what == "Number out of range":
        return "the number is out of range: give one between -1e308 and 1e308"
    return what


def _find_type(kind: Any, place: str) -> Any:
    """The type of what stands at a place in a body, as msgspec describes types."""
    for part in re.findall(r"\[|[^.\[\]]+(?![^\[]*\])", place):
        kind = _skip_null(kind)
        if part == "[":
            kind = getattr(kind, "item_type", kind)
        else:
            fields = {one.encode_name: one.type for one in getattr(kind, "fields", ())}
            kind = fields.get(part, kind)
    return _skip_null(kind)


def _skip_null(kind: Any) -> Any:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        return next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind


def _find_bad_feature(body: bytes, path: Iterable[str], got: Sequence[str]) -> str:
    """Return the path to the first value of the type that was got, in an object of features."""
    parts = [part for part in path if part]
    try:
        values = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ".".join(parts)  # what comes after the value is no JSON
    for part in parts:
        name, *places = re.findall(r"[^\[\]]+", part)
        values = values.get(name) if isinstance(values, dict) else None
        for place in map(int, places):
            values = values[place] if isinstance(values, list) and place < len(values) else None
    kinds = {_JSON.get(one) for one in got}
    named = values.items() if isinstance(values, dict) else ()
    wrong = [name for name, value in named if type(value) in kinds]
    return ".".join([*parts, *wrong[:1]])
