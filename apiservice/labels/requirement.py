"""One requirement of a label selector, its validation, and its predicate."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_NAME_LENGTH = 63
_PREFIX_LENGTH = 253

_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def check_key(key: str) -> str | None:
    """Return what is wrong with a label key (``[prefix/]name``), or None if it is valid."""
    prefix, slash, name = key.rpartition("/")
    if slash and (fault := _check_prefix(prefix)) is not None:
        return fault
    if not name:
        return "name part must be non-empty"
    if len(name) > _NAME_LENGTH:
        return f"name part must be no more than {_NAME_LENGTH} bytes"
    if _NAME.fullmatch(name) is None:
        return f"name part {_RULE}"
    return None


def _check_prefix(prefix: str) -> str | None:
    if not prefix:
        return "prefix part must be non-empty"
    if len(prefix) > _PREFIX_LENGTH:
        return f"prefix part must be no more than {_PREFIX_LENGTH} bytes"
    if is_dns_subdomain(prefix):
        return None
    return "prefix part must be a lowercase RFC 1123 subdomain such as 'example.com'"


def is_dns_subdomain(text: str) -> bool:
    """Return whether a text is a lowercase RFC 1123 subdomain, such as the name of an object."""
    labels = text.split(".")
    return len(text) <= _PREFIX_LENGTH and all(map(_DNS_LABEL.fullmatch, labels))


def is_dns_label(text: str) -> bool:
    """Return whether a text is a lowercase RFC 1123 label, such as the name of a container."""
    return len(text) <= _NAME_LENGTH and _DNS_LABEL.fullmatch(text) is not None


def check_value(value: str) -> str | None:
    """Return what is wrong with a label value, or None if it is valid. Empty is valid."""
    if len(value) > _NAME_LENGTH:
        return f"must be no more than {_NAME_LENGTH} bytes"
    if value and _NAME.fullmatch(value) is None:
        return f"a valid label must be an empty string or {_RULE.removeprefix('must ')}"
    return None


Predicate = Callable[[Mapping[str, str]], bool]

EXISTS, ABSENT = "exists", "!"
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


class Requirement(NamedTuple):
    """One condition. ``op`` is one of ``= == != in notin exists ! > <``."""

    key: str
    op: str
    values: tuple[str, ...]
    """Sorted and distinct; empty for ``exists`` and ``!``."""

    def __str__(self) -> str:
        if self.op == EXISTS:
            return self.key
        if self.op == ABSENT:
            return f"!{self.key}"
        if self.op in ("in", "notin"):
            return f"{self.key} {self.op} ({','.join(self.values)})"
        return f"{self.key}{self.op}{self.values[0]}"


def integer(text: str) -> int | None:
    """Parse the text as Go's ``strconv.ParseInt(text, 10, 64)``; None if that fails."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def predicate(requirement: Requirement) -> Predicate:
    """Return a function that says whether labels satisfy the requirement."""
    key, op, values = requirement
    several = frozenset(values)
    if op in ("=", "==", "in") and len(values) == 1:
        (value,) = values
        return lambda labels: labels.get(key) == value
    if op in ("=", "==", "in"):
        return lambda labels: labels.get(key) in several
    if op in ("!=", "notin"):
        return lambda labels: labels.get(key) not in several
    if op == EXISTS:
        return lambda labels: key in labels
    if op == ABSENT:
        return lambda labels: key not in labels
    return _bound_predicate(key, op, int(values[0]))


def _bound_predicate(key: str, op: str, bound: int) -> Predicate:
    def holds(labels: Mapping[str, str]) -> bool:
        number = integer(labels.get(key, ""))
        if number is None:
            return False
        return number > bound if op == ">" else number < bound

    return holds


def conjunction(predicates: list[Predicate]) -> Predicate:
    """Return a function that says whether labels satisfy all the predicates."""
    if not predicates:
        return lambda labels: True
    if len(predicates) == 1:
        return predicates[0]

    def holds(labels: Mapping[str, str]) -> bool:
        for predicate in predicates:  # noqa: SIM110 - a generator would double the cost
            if not predicate(labels):
                return False
        return True

    return holds
