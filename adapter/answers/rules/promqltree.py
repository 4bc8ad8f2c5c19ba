"""The tree of a PromQL expression: which values it combines, and how.

:mod:`adapter.answers.rules.promql` guards queries that the adapter sends, and refuses most of
PromQL. This module reads what people have written, without an engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from adapter.answers.rules.promqltokens import NotWidenedError, PromqlToken, TokenReader

_MAX_DEPTH: Final = 50
_MAX_OPERATORS: Final = 100
"""Operators of an expression: each is a level of the tree."""
_MAX_EXPONENT: Final = 30
"""The largest power of ten of a number, and the smallest."""
_LEVELS: Final = (
    ("or",),
    ("and", "unless"),
    ("==", "!=", ">", "<", ">=", "<="),
    ("+", "-"),
    ("*", "/", "%", "atan2"),
    ("^",),
)
"""The binary operators, those that bind least first (Prometheus's page "Operators")."""
_BINDS: Final = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
_MATCHING: Final = ("on", "ignoring", "group_left", "group_right")
_AGGREGATIONS: Final = frozenset(
    {*("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "quantile")}
    | {"topk", "bottomk", "limitk", "limit_ratio", "count_values"}
)


class PromqlSelector(NamedTuple):
    """Series, at an instant or over a range."""

    series: str
    """Empty without a name before the braces."""
    text: str
    """As it is in the query, without range and offset."""


class PromqlScalar(NamedTuple):
    """A number, or a text."""

    number: Decimal | None
    """None for a text, a duration, ``Inf`` and ``NaN``."""


class PromqlCall(NamedTuple):
    """A function of values."""

    name: str
    arguments: tuple[PromqlNode, ...]


class PromqlAggregation(NamedTuple):
    """One value of many series, or one a group."""

    name: str
    arguments: tuple[PromqlNode, ...]
    word: str = ""
    """``by`` or ``without``; empty without a grouping."""
    labels: tuple[str, ...] = ()


class PromqlOperation(NamedTuple):
    """A binary operator and its operands."""

    sign: str
    left: PromqlNode
    right: PromqlNode
    place: int
    """Where the operator begins in the query."""
    whether: bool = False
    """With ``bool``: the value is 0 or 1."""


PromqlNode = PromqlSelector | PromqlScalar | PromqlCall | PromqlAggregation | PromqlOperation


class _UnreadError(ValueError):
    """The text is not PromQL, or too deep."""


def read_query(query: str) -> PromqlNode | None:
    """Return the tree of an expression; None if it is not understood."""
    try:
        return _TreeReader(query).read()
    except (NotWidenedError, _UnreadError):
        return None


class _TreeReader(TokenReader):
    def __init__(self, query: str) -> None:
        super().__init__(query, comments=True)
        self._depth = 0
        self._operators = 0

    def read(self) -> PromqlNode:
        node = self._expression(0)
        if self._next.kind != "end":
            raise _UnreadError
        return node

    def _take(self, *kinds: str) -> PromqlToken:
        token = self._next
        if token.kind not in kinds:
            raise _UnreadError
        self._place += 1
        return token

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise _UnreadError

    def _expression(self, least: int) -> PromqlNode:
        """Read operands of operators that bind at least so much."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _UnreadError
        node = self._operand()
        while (level := self._level()) is not None and level >= least:
            token = self._take("sign", "name")
            self._operators += 1
            if self._operators > _MAX_OPERATORS:
                raise _UnreadError
            whether = self._accept("bool")
            while self._accept(*_MATCHING):
                if self._next.text == "(":
                    self._names()
            right = self._expression(level if token.text == "^" else level + 1)
            node = PromqlOperation(token.text.lower(), node, right, token.start, whether)
        self._depth -= 1
        return node

    def _level(self) -> int | None:
        token = self._next
        return _BINDS.get(token.text.lower()) if token.kind in ("sign", "name") else None

    def _operand(self) -> PromqlNode:
        while self._accept("+"):
            pass
        place = self._next.start
        if self._accept("-"):
            minus = PromqlScalar(Decimal(-1))
            return PromqlOperation("*", minus, self._expression(_BINDS["^"]), place)
        token = self._take("number", "string", "name", "sign")
        node: PromqlNode
        if token.text == "(":
            node = self._expression(0)
            self._expect(")")
        elif token.kind in ("number", "string") or token.text.lower() in ("inf", "nan"):
            return PromqlScalar(_number(token))
        elif token.text == "{":
            node = self._selector(token, "")
        elif token.kind == "name" and token.text.lower() not in _BINDS:
            node = self._of_name(token)
        else:
            raise _UnreadError
        self._skip_times()
        return node

    def _of_name(self, token: PromqlToken) -> PromqlNode:
        word, follows = token.text.lower(), self._next.text.lower()
        if word in _AGGREGATIONS and follows in ("(", "by", "without"):
            return self._aggregation(word)
        if self._accept("("):
            return PromqlCall(word, tuple(self._arguments()))
        if self._accept("{"):
            return self._selector(token, token.text)
        return PromqlSelector(token.text, token.text)

    def _aggregation(self, name: str) -> PromqlNode:
        word, labels = self._grouping()
        self._expect("(")
        arguments = tuple(self._arguments())
        if not word:
            word, labels = self._grouping()
        if not arguments:
            raise _UnreadError
        return PromqlAggregation(name, arguments, word, labels)

    def _grouping(self) -> tuple[str, tuple[str, ...]]:
        for word in ("by", "without"):
            if self._accept(word):
                return word, self._names()
        return "", ()

    def _names(self) -> tuple[str, ...]:
        self._expect("(")
        names: list[str] = []
        while not self._accept(")"):
            names.append(self._take("name", "string").text)
            if self._next.text != ")":
                self._expect(",")
        return tuple(names)

    def _arguments(self) -> Iterator[PromqlNode]:
        """Read arguments from after the bracket that opens."""
        while not self._accept(")"):
            yield self._expression(0)
            if self._next.text != ")":
                self._expect(",")

    def _selector(self, first: PromqlToken, series: str) -> PromqlNode:
        """Read the rest of a selector, from after its brace."""
        while not self._accept("}"):
            self._take("name", "string", "sign")
        end = self._tokens[self._place - 1].end
        return PromqlSelector(series, self._query[first.start : end])

    def _skip_times(self) -> None:
        """Pass over ranges, subqueries and offsets: they only say when."""
        while True:
            if self._accept("["):
                while not self._accept("]"):
                    self._take("name", "number")
            elif self._accept("offset"):
                self._accept("-")
                self._take("number")
            else:
                return


def bounded(number: Decimal) -> Decimal | None:
    """Return a number of a query; None if no measurement is as large, or as near to 0.

    A product of larger ones can be more than a Decimal holds, and its text a million digits.
    """
    if not number:
        return Decimal(0)  # `0e999999999` has an exponent too
    return number if abs(number.adjusted()) <= _MAX_EXPONENT else None


def _number(token: PromqlToken) -> Decimal | None:
    try:
        number = Decimal(token.text)
    except InvalidOperation:
        return None
    return bounded(number) if number.is_finite() and token.kind == "number" else None
