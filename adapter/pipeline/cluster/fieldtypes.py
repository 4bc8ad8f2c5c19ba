"""Fields of a manifest with another type than Kubernetes gives them, in words that name the field.

The API server refuses such a manifest: it takes no string for a number, and no number for a string
(``cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from adapter.hpa.manifestfields import RENDER, is_template
from adapter.pipeline.cluster.objects import without_nulls

_ERROR: Final = re.compile(
    r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>\w+)`(?: - at `\$(?P<path>[^`]*)`)?"
)
"""The text of msgspec, which names a type as JSON Schema does, and no key of a mapping."""
_STEP: Final = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|(?P<any>\[\.\.\.\])")
_PLAIN: Final = re.compile(r"\w+")
_WORDS: Final = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
}
_NAMES: Final = {
    str: "str",
    bool: "bool",
    int: "int",
    float: "float",
    dict: "object",
    list: "array",
}
"""Type of a value -> its name in an error."""
_SCALARS: Final = frozenset(("int", "float", "bool"))
_MOST: Final = 20
"""Faults of one object that are looked for."""


class TypeFault(NamedTuple):
    """A field with a wrong type."""

    path: str
    """``spec.replicas``; a key that is not a plain word is in brackets, as in errors of the API
    server. Empty for the object itself."""
    why: str
    """``is a string, and must be a whole number``: without the value, which may be a password."""
    fix: str
    """What to do."""

    def __str__(self) -> str:
        return f"{self.path or 'the object'} {self.why}: {self.fix}"


class _Place(NamedTuple):
    path: str
    value: Any
    parent: Any = None
    key: Any = None


def type_faults(content: Any, kind: type[Any]) -> list[TypeFault]:
    """Return the fields of an object that have a wrong type, in the order of the kind's fields.

    Args:
        content: JSON of the object; a null stands for a field that is missing.
        kind: a Struct with the fields that are read.
    """
    content = without_nulls(content)
    faults: list[TypeFault] = []
    while len(faults) < _MOST:
        try:
            msgspec.convert(content, kind)
        except msgspec.ValidationError as error:
            fault, place = _fault(content, str(error))
            faults.append(fault)
            if not isinstance(place.parent, dict):
                break  # the places of a list would move
            del place.parent[place.key]
        else:
            break
    return faults


def _fault(content: Any, text: str) -> tuple[TypeFault, _Place]:
    match = _ERROR.fullmatch(text)
    if match is None:
        return TypeFault("", f"has another form: {text}", "correct it"), _Place("", content)
    wanted, got = match["wanted"], match["got"]
    places = _places(_Place("", content), match["path"] or "")
    fitting = (place for place in places if _NAMES.get(type(place.value)) == got)
    place = next(fitting, _Place("", content))
    path = place.path.removeprefix(".")
    why = f"is {_words(got)}, and must be {_words(wanted)}"
    fix = RENDER if is_template(place.value) else _correction(wanted, got)
    return TypeFault(path, why, fix), place


def _places(start: _Place, path: str) -> Iterator[_Place]:
    """Yield the values at a path, in which ``[...]`` stands for each value of a mapping or list."""
    match = _STEP.match(path)
    if match is None:
        yield start
        return
    for part in _parts(start, match):
        yield from _places(part, path[match.end() :])


def _parts(place: _Place, step: re.Match[str]) -> Iterator[_Place]:
    value = place.value
    if isinstance(value, dict):
        for key in list(value) if step["any"] else [step["key"]]:
            if key in value:
                name = f".{key}" if _PLAIN.fullmatch(str(key)) else f"[{key}]"
                yield _Place(place.path + name, value[key], value, key)
    elif isinstance(value, list):
        for index in range(len(value)) if step["any"] else [int(step["index"] or 0)]:
            if index < len(value):
                yield _Place(f"{place.path}[{index}]", value[index], value, index)


def _words(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null"]
    return " or ".join(_WORDS.get(name, name) for name in names)


def _correction(wanted: str, got: str) -> str:
    types = set(wanted.split(" | "))
    if "str" in types and got in _SCALARS:
        return "write it in quotes"
    if got == "str" and types & _SCALARS:
        return "write it without quotes"
    return "correct it"
