"""What a ``seriesQuery`` and a rendered query say by their text alone, before any store is asked.

Only what no engine can read is a mistake: MetricsQL allows more than PromQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from adapter.answers.rules.pattern import Pattern, PatternError
from adapter.answers.rules.promqltokens import NotWidenedError, PromqlToken, tokens

_SIGNS: Final = frozenset({"=", "!=", "=~", "!~"})
_PIECE: Final = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)|[#][^\n]*|(?P<sign>["'`(){}\[\]])""",
    re.VERBOSE | re.DOTALL,
)
_CLOSES: Final = {")": "(", "]": "[", "}": "{"}


class Matcher(NamedTuple):
    """One matcher of a selector."""

    label: str
    sign: str
    value: str


def find_stray_sign(query: str) -> str:
    """Return the sign of a query that opens or closes nothing; empty if there is none.

    A quote stands for a text that does not end. No engine reads such a query.
    """
    opened: list[str] = []
    for piece in _PIECE.finditer(query):
        sign = piece["sign"]
        if sign is None:
            continue
        if sign in "\"'`":
            return sign
        if sign not in _CLOSES:
            opened.append(sign)
        elif not opened or opened.pop() != _CLOSES[sign]:
            return sign
    return opened[-1] if opened else ""


def find_unquoted_sign(query: str, signs: str) -> str:
    """Return the first of these signs that is outside of a query's texts; empty without one."""
    pieces = (piece["sign"] for piece in _PIECE.finditer(query))
    return next((sign for sign in pieces if sign is not None and sign in signs), "")


def matchers_of(selector: str) -> Sequence[Matcher] | None:
    """Return the matchers of a selector, with its name as one; None if it is not understood."""
    try:
        row = iter(tokens(selector))
        return tuple(_matchers(row))
    except (NotWidenedError, StopIteration, RuntimeError):
        return None


def fits_all(matchers: Iterable[Matcher]) -> Callable[[str], bool]:
    """Return what says whether matchers of one label accept a value.

    An expression that RE2 does not accept is taken to accept everything.
    """
    tests = [_test(matcher) for matcher in matchers]
    return lambda value: all(test(value) for test in tests)


def _test(matcher: Matcher) -> Callable[[str], bool]:
    wanted, positive = matcher.value, matcher.sign in ("=", "=~")
    if matcher.sign in ("=", "!="):
        return lambda value: (value == wanted) == positive
    try:
        pattern = Pattern(f"^(?s:{wanted})$")
    except PatternError:
        return lambda _: True
    return lambda value: pattern.matches(value) == positive


def _matchers(row: Iterator[PromqlToken]) -> Iterator[Matcher]:
    token = next(row)
    if token.kind == "name":
        yield Matcher("__name__", "=", token.text)
        token = next(row)
    if token.kind == "end":
        return
    _need(token.text == "{")
    token = next(row)
    while token.text != "}":
        sign, value = next(row), next(row)
        _need(token.kind == "name" and sign.text in _SIGNS and value.kind == "string")
        _need("\\" not in value.text or value.text[0] == "`")
        yield Matcher(token.text, sign.text, value.text[1:-1])
        token = next(row)
        if token.text == ",":
            token = next(row)
        else:
            _need(token.text == "}")
    _need(next(row).kind == "end")


def _need(met: bool) -> None:
    if not met:
        raise NotWidenedError("not a plain selector")


def words_of(query: str) -> frozenset[str]:
    """Return the words of a query in lower case; none if it is not understood."""
    try:
        return frozenset(token.text.lower() for token in tokens(query) if token.kind == "name")
    except NotWidenedError:
        return frozenset()
