"""Fields of a manifest, each read with a check of its type and range.

Messages name the path of the field and the fix.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, TypeVar

from adapter.hpa import quantity

E = TypeVar("E", bound=StrEnum)

MAX_INT32: Final = 2**31 - 1
RENDER: Final = "render the template, and check its output"
_TEMPLATE_MARKS: Final = ("{{", "${")
"""Begins of what Helm, a shell or envsubst replace."""
_LONGEST_VALUE: Final = 80


class ManifestError(ValueError):
    """The manifest is not an HPA that this package can decide for; the text names the key."""


def is_template(value: Any) -> bool:
    """Return whether a value is a text in which something is to be replaced."""
    return isinstance(value, str) and any(mark in value for mark in _TEMPLATE_MARKS)


def show_value(value: Any) -> str:
    """Return a value for a message, bounded."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def wrong_value(path: str, value: Any, advice: str) -> ManifestError:
    """Return the error of a value that its field cannot have."""
    advice = RENDER if is_template(value) else advice
    return ManifestError(f"{path} is {show_value(value)}: {advice}")


def read_mapping(parent: Mapping[str, Any], key: str, at: str) -> Mapping[str, Any]:
    """Return a field that has to be a mapping; raises ManifestError.

    Args:
        parent: the mapping that has the field.
        key: of the field.
        at: the path of the parent; empty for the manifest.
    """
    path = f"{at}.{key}".lstrip(".")
    value = parent.get(key)
    if value is None:
        raise ManifestError(f"{path} is missing: add it")
    if not isinstance(value, Mapping):
        raise ManifestError(f"{path} is not a mapping: see the autoscaling/v2 reference")
    return value


def read_integer(
    parent: Mapping[str, Any],
    key: str,
    at: str,
    *,
    low: int,
    high: int = MAX_INT32,
    default: int | None = None,
) -> int:
    """Return a field that has to be a whole number in a range; raises ManifestError."""
    value = parent.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise ManifestError(f"{at}.{key} is missing: give a whole number of {low} or more")
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise wrong_value(f"{at}.{key}", value, f"give a whole number from {low} to {high}")
    return value


def read_choice(kind: type[E], value: Any, at: str) -> E:
    """Return the member of an enumeration that a value names; raises ManifestError."""
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(kind)
        raise wrong_value(at, value, f"use one of {allowed}") from None


def read_quantity(value: Any, at: str) -> Decimal:
    """Return the number of a quantity; raises ManifestError."""
    try:
        return quantity.parse(value)
    except ValueError:
        raise wrong_value(at, value, "give a quantity such as 70, 500m or 2Gi") from None


def read_positive_milli(value: Any, at: str) -> int:
    """Return the thousandths of a quantity above 0; raises ManifestError."""
    milli = quantity.to_milli(read_quantity(value, at))
    if milli <= 0:
        raise ManifestError(f"{at} is {value}: give a quantity above 0")
    return milli


def read_name(parent: Mapping[str, Any], key: str, at: str, advice: str) -> str:
    """Return a field that has to be a text; raises ManifestError.

    Args:
        parent: the mapping that has the field.
        key: of the field.
        at: the path of the parent.
        advice: what to do if there is none, as an order.
    """
    value = parent.get(key)
    if not value or not isinstance(value, str):
        raise ManifestError(f"{at}.{key} is missing: {advice}")
    return value


def read_path_segment(
    parent: Mapping[str, Any], key: str, at: str, advice: str, hint: str = ""
) -> str:
    """Return a text that becomes a part of a URL's path; raises ManifestError.

    What cannot be one is in apimachinery, ``pkg/api/validate/content/path.go``.

    Args:
        parent: the mapping that has the field.
        key: of the field.
        at: the path of the parent.
        advice: what to do if there is none, as an order.
        hint: where a slash may come from, as the end of the message.
    """
    value = read_name(parent, key, at, advice)
    sign = value if value in (".", "..") else next((sign for sign in "/%" if sign in value), "")
    if sign:
        end = hint if sign == "/" else ""
        raise wrong_value(f"{at}.{key}", value, f"the API server allows no {sign!r} in it{end}")
    return value
