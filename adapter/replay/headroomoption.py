"""The headroom of a node pool to try, as the command line names it."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import click

NONE: Final = "none"
FORECAST: Final = "forecast"
SHARE: Final = "share"
PODS: Final = "pods"
MOST: Final = 20
"""Values of one replay."""
MOST_PODS: Final = 10_000
LONGEST: Final = 86_400.0
"""Seconds that a node may take to boot, or to be removed."""
_MOST_SHARE: Final = 1000.0
_WRITTEN: Final = re.compile(
    r"(none|forecast)|forecast:(\d*\.?\d+)|(\d*\.?\d+)%|(\d{1,9})", re.ASCII
)
_FORM: Final = "write none, a share such as 20%, a number of pods, forecast or forecast:0.9"


class TriedHeadroom(NamedTuple):
    """What decides the headroom."""

    kind: str
    value: float | None = None
    """Percent of the pods, pods, or the probability of a forecast; None for its default."""

    @property
    def text(self) -> str:
        """As the command line names it."""
        if self.kind in (NONE, FORECAST) and self.value is None:
            return self.kind
        if self.kind == FORECAST:
            return f"{FORECAST}:{self.value:g}"
        return f"{self.value:g}%" if self.kind == SHARE else f"{self.value:g}"


class HeadroomType(click.ParamType[tuple[TriedHeadroom, ...]]):
    """``none,20%,2,forecast,forecast:0.9``."""

    name = "headroom"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[TriedHeadroom, ...]:
        """Return what to try, ``none`` first."""
        if isinstance(value, tuple):
            return value
        found = dict.fromkeys([TriedHeadroom(NONE)])
        for text in str(value).split(","):
            found[self._one(text.strip(), param, ctx)] = None
        if len(found) > MOST:
            self.fail(f"{len(found)} values are too many: give at most {MOST}", param, ctx)
        return tuple(found)

    def _one(
        self, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> TriedHeadroom:
        found = _WRITTEN.fullmatch(text)
        if found is None:
            self.fail(f"{text!r}: {_FORM}", param, ctx)
        word, quantile, share, pods = found.groups()
        if word:
            return TriedHeadroom(word)
        if quantile:
            if not 0 < float(quantile) < 1:
                self.fail(f"{text!r}: a probability is between 0 and 1", param, ctx)
            return TriedHeadroom(FORECAST, float(quantile))
        if share:
            if not 0 < float(share) <= _MOST_SHARE:
                self.fail(f"{text!r}: a share is above 0 and at most 1000%", param, ctx)
            return TriedHeadroom(SHARE, float(share))
        if not 0 < int(pods) <= MOST_PODS:
            self.fail(f"{text!r}: give 1 to {MOST_PODS} pods, or none", param, ctx)
        return TriedHeadroom(PODS, float(pods))
