"""Convert a LabelSelector of a manifest to the text for a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apiservice.labels.requirement import check_key, check_value
from apiservice.labels.selector import SelectorError

_WITH_VALUES = {"In": "in", "NotIn": "notin"}
_WITHOUT_VALUES = {"Exists": "", "DoesNotExist": "!"}


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Return the text in the format of ``metav1.FormatLabelSelector``; empty selects everything.

    Raises:
        SelectorError: ``metav1.LabelSelectorAsSelector`` refuses it; the text names the key.
    """
    if not selector:
        return ""
    return ",".join([*_equalities(selector), *_expressions(selector)])


def without_null(value: object) -> object:
    """Return a value of a map of texts: Go decodes a null in one as an empty text."""
    return "" if value is None else value


def _equalities(selector: Mapping[str, Any]) -> Iterator[str]:
    labels = selector.get("matchLabels") or {}
    if not isinstance(labels, Mapping):
        raise SelectorError("matchLabels is not a mapping")
    for key in sorted(labels, key=str):
        value = without_null(labels[key])
        _check_key(key, "matchLabels")
        _check_value(value, f"matchLabels.{key}")
        yield f"{key}={value}"


def _expressions(selector: Mapping[str, Any]) -> Iterator[str]:
    rows = selector.get("matchExpressions") or []
    if not isinstance(rows, (list, tuple)):
        raise SelectorError("matchExpressions is not a list")
    for index, row in enumerate(rows):
        at = f"matchExpressions[{index}]"
        if not isinstance(row, Mapping):
            raise SelectorError(f"{at} is not a mapping: give key, operator and values")
        key, operator, values = row.get("key"), row.get("operator"), row.get("values") or []
        _check_key(key, f"{at}.key")
        if not isinstance(values, (list, tuple)):
            raise SelectorError(f"{at}.values is not a list")
        for value in values:
            _check_value(value, f"{at}.values")
        if operator in ("In", "NotIn"):
            if not values:
                raise SelectorError(f"{at}.values is empty: {operator} needs a value")
            yield f"{key} {_WITH_VALUES[operator]} ({','.join(sorted(values))})"
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                raise SelectorError(f"{at}.values is set: {operator} takes none")
            yield f"{_WITHOUT_VALUES[operator]}{key}"
        else:
            raise SelectorError(
                f"{at}.operator is {operator!r}: use In, NotIn, Exists or DoesNotExist"
            )


def _check_key(key: object, at: str) -> None:
    fault = check_key(key) if isinstance(key, str) else "a key must be a text"
    if fault is not None:
        raise SelectorError(f"{at} has {key!r}: {fault}")


def _check_value(value: object, at: str) -> None:
    fault = check_value(value) if isinstance(value, str) else "put it in quotes"
    if fault is not None:
        raise SelectorError(f"{at} is {value!r}: {fault}")
