"""Settings as the support file shows them: numbers, switches and known words."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

from adapter.tools.doctor import servedmetrics

_WORDS: Final = frozenset(
    (
        *("scrape", "prometheus", "azure_logs", "copy", "equal", "memory", "exact", "off"),
        *("profile", "auto", "buffer", "placeholder", "none", "aws", "azure", "google", "ratio"),
        *("percent", "debug", "info", "warning", "error", "console", "json", "GET", "POST"),
        *("http", "https", "mean", "last", "rate", "max", "min", "sum", "device", "server"),
        *servedmetrics.CATALOG.metrics,
    )
)
"""Texts in settings that are written."""


def shown_settings(value: Any) -> Any:
    """Return the settings with numbers, switches and known words; other texts become a mark."""
    if isinstance(value, BaseModel):
        return {name: shown_settings(getattr(value, name)) for name in type(value).model_fields}
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, tuple | list):
        return [shown_settings(each) for each in value]
    if isinstance(value, str) and (not value or str(value) in _WORDS):
        return str(value)
    return "[set]" if value else None
