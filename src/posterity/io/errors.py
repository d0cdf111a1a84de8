"""The error of a table that cannot be read, which says what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from posterity.safety import escaped


@dataclass(frozen=True)
class Cure:
    """Something to do about an error: keyword arguments, and a sentence with {} in their place.

    ``elsewhere`` is the sentence in Python, where these are no arguments.

    Examples
    --------
    >>> str(Cure("give {} to take it as missing", {"na": ["k.A."]}))
    "give na=['k.A.'] to take it as missing"
    """

    sentence: str
    options: Mapping[str, Any]
    elsewhere: str = ""

    def __str__(self) -> str:
        written = ", ".join(f"{name}={_quote(value)}" for name, value in self.options.items())
        return self.elsewhere or self.sentence.format(written)


class TableError(ValueError):
    """A table cannot be read as a stream of numbers; the message says where and what to do.

    Parameters
    ----------
    problem : str
        What is wrong, and where.
    cures : sequence of Cure or str
        What to do about it, any one of these.
    """

    def __init__(
        self, problem: str, cures: Sequence[Cure | str] = (), *, before: str = ": "
    ) -> None:
        self.problem, self.cures, self._before = problem, tuple(cures), before
        super().__init__(escaped(self.describe(str)))

    def describe(self, write: Callable[[Cure], str | None]) -> str:
        """Return the message with each cure as it is written, and without those that are None."""
        written = [cure if isinstance(cure, str) else write(cure) for cure in self.cures]
        *others, last = [words for words in written if words] or [""]
        ways = f"{', '.join(others)}, or {last}" if others else last
        return self.problem + (self._before + ways if ways else "")

    def replace_cures(self, sentences: Mapping[str, str]) -> Self:
        """Return the same error with sentences in place of options that are not to be had."""
        cures: list[Cure | str] = []
        for cure in self.cures:
            options: Mapping[str, Any] = {} if isinstance(cure, str) else cure.options
            told = next((sentences[one] for one in options if one in sentences), cure)
            cures += [told] if told not in cures else []
        return type(self)(self.problem, cures, before=self._before)

    def rename(self, old: str, new: str) -> Self:
        """Return the same error of a table with another name."""
        return type(self)(self.problem.replace(old, new), self.cures, before=self._before)


def explain_empty(path: object) -> TableError:
    """What to raise for a table without rows."""
    return TableError(f"{path} has column names but no rows: give a table with rows")


def _quote(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
