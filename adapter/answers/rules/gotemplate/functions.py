"""The functions of templates: those of Go's text/template, without the ones for HTML pages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from adapter.answers.rules.gotemplate.errors import TemplateError, UnsupportedError


class NoValue:
    """A key that a mapping does not have. It is written as ``<no value>``."""


NO_VALUE: Final = NoValue()
LATER: Final = frozenset({"html", "js", "urlquery", "call"})
"""Functions of Go's that no rules file needs."""
_KINDS: Final = {"s": str, "q": str, "d": int, "t": bool}
"""What the verbs of a format take."""
_VERB: Final = re.compile(r"%(%|[^a-zA-Z%]*[a-zA-Z]|.|\Z)", re.DOTALL)


def truth(value: object) -> bool:
    """Return whether Go's templates take a value for true."""
    return value is not NO_VALUE and bool(value)


def write_value(value: object) -> str:
    """Return a value as a template writes it."""
    if value is NO_VALUE:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        whole = int(value) if math.isfinite(value) and abs(value) < 1e21 else None
        return str(whole) if whole == value else repr(value)
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{write_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{' '.join(map(write_value, value))}]"
    return "<nil>" if value is None else str(value)


def extent(value: object) -> int:
    """Return about how many characters a value takes when it is written."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(extent(key) + extent(element) for key, element in value.items())
    if isinstance(value, Sequence):
        return sum(map(extent, value))
    return 1


def index(value: object, *keys: object) -> object:
    """Return an element of a mapping or list; the empty text for a key that is missing."""
    for key in keys:
        value = _element(value, key)
    return value


def _element(value: object, key: object) -> object:
    if isinstance(value, Mapping):
        if not isinstance(key, str):
            raise TemplateError("index: the key of a mapping must be a string")
        return value.get(key, "")
    if not isinstance(value, str | Sequence) or not isinstance(key, int):
        raise TemplateError("index: the value has no elements, or the index is not a number")
    elements: Any = value.encode() if isinstance(value, str) else value
    if not 0 <= key < len(elements):
        raise TemplateError(f"index: {key} is out of range")
    return elements[key]


def cut(value: object, *bounds: object) -> object:
    """Return a part of a list or string, as Go's ``slice``."""
    if not isinstance(value, Sequence) or len(bounds) > 2:
        raise TemplateError("slice: the value is not a list or string, or has too many bounds")
    places = [bound for bound in bounds if isinstance(bound, int)]
    start = places[0] if places else 0
    end = places[1] if len(places) > 1 else len(value)
    if len(places) != len(bounds) or not 0 <= start <= end <= len(value):
        raise TemplateError("slice: a bound is out of range")
    return value[start:end]


def length(value: object) -> int:
    """Return the number of elements, or of bytes of a string."""
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping | Sequence):
        return len(value)
    raise TemplateError("len: the value has no length")


def concatenate_values(*values: object) -> str:
    """Return the values as Go's ``Sprint``: with a space between two that are not strings."""
    parts: list[str] = []
    for place, value in enumerate(values):
        if place and not isinstance(value, str) and not isinstance(values[place - 1], str):
            parts.append(" ")
        parts.append(write_value(value))
    return "".join(parts)


def line(*values: object) -> str:
    """Return the values as Go's ``Sprintln``."""
    return " ".join(map(write_value, values)) + "\n"


def format_values(form: object, *values: object) -> str:
    """Return the values in a format: the verbs ``%s %v %q %d %t %%``, without flags."""
    if not isinstance(form, str):
        raise TemplateError("printf: the format must be a string")
    unused = list(values)

    def replace_verb(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == "%":
            return "%"
        if name not in tuple("svqdt"):
            raise UnsupportedError(f"printf: %{name} is not supported; use %s, %v, %q, %d or %t")
        if not unused:
            raise UnsupportedError(f"printf: no argument for %{name}")
        value = unused.pop(0)
        if name in _KINDS and type(value) is not _KINDS[name]:
            raise UnsupportedError(f"printf: %{name} does not fit its argument")
        return json.dumps(value, ensure_ascii=False) if name == "q" else write_value(value)

    text = _VERB.sub(replace_verb, form)
    if unused:
        raise UnsupportedError("printf: more arguments than the format has verbs")
    return text


def equal(first: object, *others: object) -> bool:
    """Return whether the first value equals one of the others."""
    if not others:
        raise TemplateError("eq: missing argument for comparison")
    return any(_same(first, other) for other in others)


def _same(first: object, second: object) -> bool:
    if first is NO_VALUE or second is NO_VALUE:
        return first is second
    if type(first) is not type(second) or not isinstance(first, str | int | float | bool):
        raise TemplateError("incompatible types for comparison")
    return first == second


def less(first: Any, second: Any) -> bool:
    """Return whether the first value is below the second."""
    if type(first) is not type(second) or isinstance(first, bool):
        raise TemplateError("incompatible types for comparison")
    if not isinstance(first, str | int | float):
        raise TemplateError("incompatible types for comparison")
    smaller: bool = first < second
    return smaller


FUNCTIONS: Final[Mapping[str, Callable[..., object]]] = {
    "and": lambda *values: values[-1],  # the evaluator stops at the first that is false
    "or": lambda *values: values[-1],
    "not": lambda value: not truth(value),
    "eq": equal,
    "ne": lambda first, second: not _same(first, second),
    "lt": less,
    "le": lambda first, second: not less(second, first),
    "gt": lambda first, second: less(second, first),
    "ge": lambda first, second: not less(first, second),
    "index": index,
    "slice": cut,
    "len": length,
    "print": concatenate_values,
    "printf": format_values,
    "println": line,
}
