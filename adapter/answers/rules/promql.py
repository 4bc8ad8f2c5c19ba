"""Recognize the queries that keep the values of different objects apart.

Such a query gives the same value for an object whether it reads the series of one object or of all
objects. The grammar is a small part of PromQL: what it does not contain is refused, even if it
would be safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.answers.rules.promqltokens import NotWidenedError, PromqlToken, TokenReader

SENTINEL: Final = "gma__object__matchers"
"""Stands for the label matchers of the objects."""
_MAX_DEPTH: Final = 60
_OPERATORS: Final = frozenset(
    {*("+", "-", "*", "/", "%", "^"), *("==", "!=", ">", "<", ">=", "<=")}
    | {"and", "or", "unless", "atan2"}
)
_MATCHERS: Final = frozenset({"=", "!=", "=~", "!~"})
_AGGREGATIONS: Final = frozenset({"sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"})
_RESERVED: Final = frozenset(
    {*("by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset")}
    | {"and", "or", "unless", "atan2"}
)
_OVER_TIME: Final = (
    *("avg", "min", "max", "sum", "count", "last", "stddev", "stdvar", "present", "quantile"),
)
_KEEP_LABELS: Final = frozenset(
    {f"{name}_over_time" for name in _OVER_TIME}
    | {"rate", "irate", "increase", "delta", "idelta", "deriv", "changes", "resets"}
    | {"predict_linear", "abs", "ceil", "floor", "round", "exp", "ln", "log2", "log10", "sqrt"}
    | {"sgn", "clamp", "clamp_min", "clamp_max", "timestamp", "histogram_quantile"}
)
"""Functions of one vector whose result has the labels of each element."""
_SCALARS: Final = frozenset({"time", "pi"})


class ObjectKey(NamedTuple):
    """The labels that name an object."""

    label: str
    namespace: str | None
    """None if the objects are not in a namespace."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that there are."""
        return tuple(label for label in self if label is not None)


class Widened(NamedTuple):
    """A query in parts, between which the matchers of the objects belong."""

    parts: tuple[str, ...]

    def query(self, expressions: str) -> str:
        """Return the query with these matchers."""
        return expressions.join(self.parts)


class _Operand(NamedTuple):
    """An expression: a scalar, or a vector whose elements all have the labels of the key."""

    vector: bool
    dropped: bool = False
    """Whether the label of the namespace is there only because of the wider grouping."""


def widen_query(query: str, key: ObjectKey) -> Widened:
    """Return a query with the namespace added to its groupings.

    Args:
        query: contains :data:`SENTINEL` where the matchers of the objects belong.
        key: the labels that name an object.

    Raises:
        NotWidenedError: the query may mix objects.
    """
    return _Parser(query, key).run()


class _Parser(TokenReader):
    def __init__(self, query: str, key: ObjectKey) -> None:
        super().__init__(query)
        self._key = key
        self._depth = 0
        self._holes: list[PromqlToken] = []
        self._inserts: list[tuple[int, str]] = []

    def run(self) -> Widened:
        operand = self._expression()
        if self._next.kind != "end":
            raise self._refusal(self._next)
        if not operand.vector:
            raise NotWidenedError("the query does not give a vector")
        return Widened(self._parts())

    def _parts(self) -> tuple[str, ...]:
        """Cut the query at the sentinels, with the inserted texts in place."""
        cuts = [(hole.start, hole.end, "") for hole in self._holes]
        cuts += [(place, place, text) for place, text in self._inserts]
        parts, place = [""], 0
        for start, end, text in sorted(cuts):
            parts[-1] += self._query[place:start] + text
            if not text:
                parts.append("")
            place = end
        parts[-1] += self._query[place:]
        return tuple(parts)

    def _take(self) -> PromqlToken:
        """Return the next token, and pass over it unless it is the end."""
        token = self._next
        self._place += token.kind != "end"
        return token

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._refusal(self._next)

    @staticmethod
    def _refusal(token: PromqlToken) -> NotWidenedError:
        return NotWidenedError(
            f"{token.text[:40]!r} is not in the part of PromQL that is understood"
            if token.text
            else "the query ends too early"
        )

    def _expression(self) -> _Operand:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotWidenedError("the query has too many levels")
        operands = [self._operand()]
        while self._accept(*_OPERATORS):
            self._accept("bool")
            operands.append(self._operand())
        self._depth -= 1
        return _combine_operands(operands)

    def _operand(self) -> _Operand:
        while self._accept("-", "+"):
            pass
        token = self._take()
        if token.kind == "number":
            return _Operand(vector=False)
        if token.text == "(":
            operand = self._expression()
            self._expect(")")
            return operand
        if token.text == "{":
            return self._selector()
        if token.kind != "name" or token.text.lower() in _RESERVED:
            raise self._refusal(token)
        return self._named_operand(token)

    def _named_operand(self, token: PromqlToken) -> _Operand:
        word, follows = token.text.lower(), self._next.text.lower()
        if word in _AGGREGATIONS and follows in ("(", "by", "without"):
            return self._aggregation(word)
        if follows == "(":
            return self._call(token.text)
        if self._accept("{"):
            return self._selector()
        if word in ("inf", "nan"):
            return _Operand(vector=False)
        raise NotWidenedError(f"{token.text[:80]} is not limited to objects")

    def _call(self, name: str) -> _Operand:
        if name not in _KEEP_LABELS | _SCALARS:
            raise NotWidenedError(f"{name[:80]} may mix objects")
        if name == "histogram_quantile" and "le" in self._key:
            raise NotWidenedError("histogram_quantile removes the label le")
        self._expect("(")
        arguments: list[_Operand] = []
        while not self._accept(")"):
            arguments.append(self._expression())
            if self._next.text != ")":
                self._expect(",")
        call = _combine_operands(arguments or [_Operand(vector=False)])
        if call.vector == (name in _SCALARS) or sum(argument.vector for argument in arguments) > 1:
            raise NotWidenedError(f"the arguments of {name} are not understood")
        return call

    def _selector(self) -> _Operand:
        """Read the rest of a selector, from after its brace."""
        before = len(self._holes)
        while not self._accept("}"):
            label = self._take()
            if label.kind != "name":
                raise self._refusal(label)
            if label.text == SENTINEL:
                self._holes.append(label)
            else:
                sign, value = self._take(), self._take()
                if sign.text not in _MATCHERS or value.kind != "string":
                    raise self._refusal(sign)
            if self._next.text != "}":
                self._expect(",")
        if len(self._holes) == before:
            raise NotWidenedError("a selector is not limited to objects")
        if self._accept("["):
            self._number()
            self._expect("]")
        if self._accept("offset"):
            self._accept("-")
            self._number()
        return _Operand(vector=True)

    def _number(self) -> None:
        if self._next.kind != "number":
            raise self._refusal(self._next)
        self._place += 1

    def _aggregation(self, name: str) -> _Operand:
        before = self._grouping()
        self._expect("(")
        inner = self._expression()
        self._expect(")")
        grouping = before or self._grouping()
        if not inner.vector:
            raise NotWidenedError(f"{name} of a number is not understood")
        label, namespace = self._key
        if grouping is None or (grouping.word == "by" and label not in grouping.labels):
            raise NotWidenedError(f"{name} does not keep the label {label}")
        if grouping.word == "without":
            if set(self._key.labels) & set(grouping.labels):
                raise NotWidenedError(f"{name} removes a label that names the object")
            return inner
        if namespace is None or namespace in grouping.labels:
            return inner
        self._inserts.append((grouping.at, grouping.between + namespace))
        return _Operand(vector=True, dropped=True)

    def _grouping(self) -> _Grouping | None:
        for word in ("by", "without"):
            if self._accept(word):
                break
        else:
            return None
        self._expect("(")
        labels: list[str] = []
        between = ""
        while not self._accept(")"):
            if self._next.kind != "name":
                raise self._refusal(self._next)
            labels.append(self._take().text)
            between = ","
            if self._next.text != ")":
                self._expect(",")
                between = ""
        return _Grouping(word, tuple(labels), self._tokens[self._place - 1].start, between)


class _Grouping(NamedTuple):
    word: str
    labels: Sequence[str]
    at: int
    """Where one more label belongs."""
    between: str
    """What separates it from the labels before it."""


def _combine_operands(operands: Sequence[_Operand]) -> _Operand:
    """Return what operators make of operands, in any order.

    Two vectors are matched by all their labels. So both must have the label of the namespace in
    the query as it is, or neither.
    """
    vectors = [operand for operand in operands if operand.vector]
    if len({operand.dropped for operand in vectors}) > 1:
        raise NotWidenedError("an operator matches elements with and without the namespace")
    return vectors[0] if vectors else _Operand(vector=False)
