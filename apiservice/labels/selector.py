"""Label selectors: the complete grammar of ``k8s.io/apimachinery/pkg/labels``, compiled.

::

    selector    = [ requirement { "," requirement } ]
    requirement = [ "!" ] KEY | KEY ( "=" | "==" | "!=" | ">" | "<" ) [ VALUE ]
                | KEY ( "in" | "notin" ) "(" [ VALUE ] { "," [ VALUE ] } ")"

``!=`` and ``notin`` match objects without the key. An empty value is a value. ``>`` and ``<``
compare 64-bit integers and never match anything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from apiservice.labels.requirement import (
    ABSENT,
    EXISTS,
    Predicate,
    Requirement,
    check_key,
    check_value,
    conjunction,
    integer,
    predicate,
)
from apiservice.runtime.bytecache import ByteCache, weight

_BINARY = ("in", "notin", "=", "==", "!=", ">", "<")
_LABEL_SELECTOR_OPERATORS = {
    "in": "In",
    "notin": "NotIn",
    "!=": "NotIn",
    EXISTS: "Exists",
    ABSENT: "DoesNotExist",
}
_LONGEST = 16 << 10
_MOST_REQUIREMENTS = 64
_MOST_VALUES = 512
"""Bounds of one selector: characters, distinct requirements, and the values of all requirements.
The selectors of workloads have a few; a request's whole URL may have 16 KiB."""
_CACHED_TEXT = 1024
_CACHE_BYTES = 4 << 20
_PREDICATE = 300
"""Bytes of a compiled requirement beside its texts (290 by tracemalloc on CPython 3.11)."""
_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|\Z)")


class SelectorError(ValueError):
    """The text is not a selector; the message names the token and its position."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled selector. All requirements must hold; without any, everything matches."""

    requirements: tuple[Requirement, ...]
    """Sorted by key."""
    matches: Predicate = field(compare=False, repr=False)
    """Return whether an object with these labels is selected."""

    @property
    def bytes(self) -> int:
        """Bytes of the selector in memory."""
        return sum(weight(requirement) + _PREDICATE for requirement in self.requirements)

    @property
    def empty(self) -> bool:
        """Whether everything matches."""
        return not self.requirements

    def match_labels(self) -> dict[str, Any] | None:
        """Return the selector as a ``metav1.LabelSelector``, or None if it has no such form.

        The empty selector has none (the API writes ``null``), nor do ``>`` and ``<``, which a
        LabelSelector cannot express.
        """
        labels: dict[str, str] = {}
        expressions: list[dict[str, Any]] = []
        for key, op, values in self.requirements:
            if op in (">", "<"):
                return None
            if op in ("=", "==") and key not in labels:
                labels[key] = values[0]
                continue
            operator = _LABEL_SELECTOR_OPERATORS.get(op, "In")
            expression: dict[str, Any] = {"key": key, "operator": operator}
            if values:
                expression["values"] = list(values)
            expressions.append(expression)
        form: dict[str, Any] = {"matchLabels": labels} if labels else {}
        if expressions:
            form["matchExpressions"] = expressions
        return form or None

    def __str__(self) -> str:
        """Return the canonical text, which parses to an equal selector."""
        return ",".join(map(str, self.requirements))


def parse(text: str) -> Selector:
    """Compile a selector. Equal texts of moderate length give the same object.

    Raises:
        SelectorError: the text does not follow the grammar, a key or value is not a valid
            label key or value, or it has more requirements or values than are allowed.
    """
    if len(text) > _CACHED_TEXT:
        return _compile(text)
    try:
        return _cache[text]
    except KeyError:
        selector = _compile(text)
        _cache.put(text, selector, weight(text) + selector.bytes)
        return selector


def _compile(text: str) -> Selector:
    if len(text) > _LONGEST:
        raise SelectorError(f"{len(text)} characters: at most {_LONGEST} are allowed")
    requirements = sorted(_Parser(text).requirements(), key=lambda requirement: requirement.key)
    return Selector(tuple(requirements), conjunction([predicate(r) for r in requirements]))


_cache: ByteCache[str, Selector] = ByteCache(_CACHE_BYTES)


class _Parser:
    """Recursive descent over (token, offset) pairs; the last pair is the empty token."""

    def __init__(self, text: str) -> None:
        self._tokens = [(match[1], match.start(1)) for match in _TOKEN.finditer(text)]
        self._next = 0

    def requirements(self) -> dict[Requirement, None]:
        """Return the distinct requirements in the order of the text."""
        requirements: dict[Requirement, None] = {}
        values = 0
        while self._peek() != "":
            requirement = self._requirement()
            if requirement not in requirements:
                requirements[requirement] = None
                values += len(requirement.values)
                _check_size(len(requirements), values)
            if self._peek() == "":
                return requirements
            self._expect((",",), "',' or 'end of string'")
            if not _identifier(self._peek()) and self._peek() != "!":
                raise self._unexpected_token("identifier after ','")
        return requirements

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._take()
        if not _identifier(self._peek()):
            raise self._unexpected_token(
                "identifier" if absent else "!, identifier, or 'end of string'"
            )
        key = self._take_checked(check_key)
        if absent:
            return Requirement(key, ABSENT, ())
        if self._peek() in ("", ","):
            return Requirement(key, EXISTS, ())
        op = self._expect(_BINARY, ", ".join(_BINARY))
        if op in ("in", "notin"):
            return Requirement(key, op, tuple(sorted(set(self._values()))))
        value = "" if self._peek() in ("", ",") else self._value()
        if op in (">", "<") and integer(value) is None:
            where = self._tokens[self._next - 1][1]
            raise SelectorError(
                f"'{value}' at character {where}: the value of '>' and '<' must be an integer"
            )
        return Requirement(key, op, (value,))

    def _values(self) -> Iterator[str]:
        self._expect(("(",), "'('")
        while True:
            yield "" if self._peek() in (",", ")") else self._value()
            if self._expect((",", ")"), "',' or ')'") == ")":
                return

    def _value(self) -> str:
        if not _identifier(self._peek()):
            raise self._unexpected_token("identifier")
        return self._take_checked(check_value)

    def _peek(self) -> str:
        return self._tokens[self._next][0]

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][0]

    def _expect(self, tokens: tuple[str, ...], words: str) -> str:
        if self._peek() not in tokens:
            raise self._unexpected_token(words)
        return self._take()

    def _take_checked(self, check: Callable[[str], str | None]) -> str:
        token, offset = self._tokens[self._next]
        if (fault := check(token)) is not None:
            raise SelectorError(f"{_quote_token(token)} at character {offset}: {fault}")
        return self._take()

    def _unexpected_token(self, expected: str) -> SelectorError:
        token, offset = self._tokens[self._next]
        return SelectorError(
            f"found {_quote_token(token)} at character {offset}, expected: {expected}"
        )


def _check_size(requirements: int, values: int) -> None:
    if requirements > _MOST_REQUIREMENTS:
        raise SelectorError(f"more than {_MOST_REQUIREMENTS} requirements")
    if values > _MOST_VALUES:
        raise SelectorError(f"more than {_MOST_VALUES} values")


def _identifier(token: str) -> bool:
    return token != "" and token[0] not in "=!(),<>"


def _quote_token(token: str) -> str:
    return f"'{token}'" if len(token) <= 80 else f"'{token[:80]}…'"


EVERYTHING = parse("")
