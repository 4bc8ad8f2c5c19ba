"""What one query asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SELECTOR = re.compile(
    r"""([A-Za-z_:][\w:]*)?\s*(\{("(\\.|[^"\\])*"|'(\\.|[^'\\])*'|[^{}"'])*\})?\s*(\[\w+\])?"""
)
"""A selector alone, of a vector or a range."""


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """Series that are asked for together."""

    name: str
    series: tuple[str, ...]
    """Series names; a query override that drops the name is taken for the only one here."""
    query: str | None = None
    """PromQL in place of the selector made from ``series``."""

    @property
    def combines(self) -> bool:
        """Values may be made of several series: they are wrong if some are missing."""
        return self.query is not None and not _SELECTOR.fullmatch(self.query.strip())

    def promql(self, lookback: float, matchers: str = "") -> str:
        """The expression to ask; ``lookback`` in seconds, ``matchers`` without braces."""
        if self.query is not None:
            return self.query
        span = f"[{max(1, round(lookback * 1000))}ms]"
        if len(self.series) == 1:
            return self.series[0] + (f"{{{matchers}}}" if matchers else "") + span
        names = "|".join(self.series)
        more = f",{matchers}" if matchers else ""
        return f'{{__name__=~"{names}"{more}}}{span}'
