r"""Field selectors: the grammar of ``k8s.io/apimachinery/pkg/fields``.

::

    selector    = [ requirement { "," requirement } ]
    requirement = FIELD ( "=" | "==" | "!=" ) VALUE

In a value, ``,``, ``=`` and ``\`` are escaped with ``\``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from apiservice.labels.selector import SelectorError

_LONGEST: Final = 16 << 10
_MOST: Final = 64
"""Bounds of one selector: characters and requirements."""
_TERM = re.compile(r"((?:[^,\\]|\\.)*)(?:,|\Z)", re.DOTALL)
_OPERATOR = re.compile(r"!=|==?")
_VALUE = re.compile(r"(?:[^\\,=]|\\[\\,=])*", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class FieldRequirement(NamedTuple):
    """One condition: a field has a value, or does not have it."""

    field: str
    value: str
    equal: bool


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A parsed selector. All requirements must hold; without any, everything matches."""

    requirements: tuple[FieldRequirement, ...]

    def exact(self, field: str) -> str | None:
        """Return the value that the field must have, or None if the selector does not say."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.equal:
                return requirement.value
        return None

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Return whether an object with these fields is selected. An absent field is empty."""
        return all(
            (fields.get(field, "") == value) == equal for field, value, equal in self.requirements
        )


EVERY_FIELD = FieldSelector(())


def parse_fields(text: str) -> FieldSelector:
    """Parse a selector.

    Raises:
        SelectorError: the text does not follow the grammar, or is larger than allowed.
    """
    if not text:
        return EVERY_FIELD
    if len(text) > _LONGEST:
        raise SelectorError(f"{len(text)} characters: at most {_LONGEST} are allowed")
    requirements = tuple(map(_requirement, _terms(text)))
    if len(requirements) > _MOST:
        raise SelectorError(f"more than {_MOST} requirements")
    return FieldSelector(requirements)


def _terms(text: str) -> Iterator[str]:
    end = 0
    while end < len(text):
        term = _TERM.match(text, end)
        if term is None:
            raise SelectorError(f"'{text[end : end + 80]}' ends with an incomplete escape")
        end = term.end()
        if term[1]:
            yield term[1]


def _requirement(term: str) -> FieldRequirement:
    operator = _OPERATOR.search(term)
    if operator is None:
        raise SelectorError(f"'{term[:80]}' is not a requirement: use FIELD=VALUE or FIELD!=VALUE")
    value = term[operator.end() :]
    if _VALUE.fullmatch(value) is None:
        raise SelectorError(
            f"'{value[:80]}' has an unescaped '=' or an unknown escape: "
            f"write \\, for a comma, \\= for an equals sign and \\\\ for a backslash"
        )
    return FieldRequirement(
        term[: operator.start()], _ESCAPED.sub(r"\1", value), operator[0] != "!="
    )
