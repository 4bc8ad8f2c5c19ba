"""A query group: the series that one query fetches, and its PromQL."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, replace

from adapter.pipeline.sources.prometheus.nativehistograms import native_name

_SELECTOR = re.compile(
    r"""([A-Za-z_:][\w:]*)?\s*(\{("(\\.|[^"\\])*"|'(\\.|[^'\\])*'|[^{}"'])*\})?\s*(\[\w+\])?"""
)
"""Matches an expression that is only an instant or range selector."""


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Series that one query fetches together."""

    name: str
    series: tuple[str, ...]
    """Series names. A ``query`` setting that drops the name must be about the only one here."""
    query: str | None = None
    """PromQL that replaces the selector made from ``series``."""

    def narrow_to(self, wanted: Container[str]) -> QueryGroup:
        """Return the group with those of its series that are wanted; a user's query stays."""
        if self.query is not None:
            return self
        series = tuple(name for name in self.series if name in wanted)
        return self if len(series) == len(self.series) else replace(self, series=series)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that the answer may have: also those of native histograms."""
        if self.query is not None:
            return self.series
        native = filter(None, map(native_name, self.series))
        return tuple(dict.fromkeys((*self.series, *native)))

    @property
    def combines(self) -> bool:
        """Whether the query aggregates series, so that a partial answer has wrong values."""
        return self.query is not None and not _SELECTOR.fullmatch(self.query.strip())

    def promql(self, lookback: float, matchers: str = "") -> str:
        """Return the PromQL; ``lookback`` in seconds, ``matchers`` without braces."""
        if self.query is not None:
            return self.query
        span = f"[{max(1, round(lookback * 1000))}ms]"
        if len(self.names) == 1:
            return self.names[0] + (f"{{{matchers}}}" if matchers else "") + span
        names = "|".join(self.names)
        more = f",{matchers}" if matchers else ""
        return f'{{__name__=~"{names}"{more}}}{span}'
