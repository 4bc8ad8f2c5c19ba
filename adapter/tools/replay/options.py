"""The options of a replay: what it reads, and the settings, failure and headroom that it tries."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from adapter.tools.client.options import DURATION, FILE, join_options

F = TypeVar("F", bound=Callable[..., Any])
ADAPTER: Final = "adapter"
EXPORTER: Final = "exporter"
SERVER: Final = "server"
_KINDS: Final = (EXPORTER, SERVER, ADAPTER)
_FAILURE: Final = re.compile(r"([a-z]+):([^@]+)(?:@(.+))?")
_FAILURE_FORM: Final = "write exporter, server or adapter, and a time, such as exporter:10m"
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
_HEADROOM: Final = re.compile(
    r"(none|forecast)|forecast:(\d*\.?\d+)|(\d*\.?\d+)%|(\d{1,9})", re.ASCII
)
_HEADROOM_FORM: Final = (
    "write none, a share such as 20%, a number of pods, forecast or forecast:0.9"
)


class Numbers(click.ParamType[tuple[float, ...]]):
    """``50,60,70``."""

    name = "numbers"

    def __init__(self, *, whole: bool, least: float, most: float) -> None:
        self._whole = whole
        self._least = least
        self._most = most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Return the numbers."""
        if isinstance(value, tuple):
            return value
        numbers = []
        for text in str(value).split(","):
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            if not self._least <= number <= self._most or (self._whole and number != int(number)):
                kind = "whole numbers" if self._whole else "numbers"
                self.fail(
                    f"{text.strip()!r}: give {kind} from {self._least:g} to {self._most:.10g}, "
                    "separated by commas",
                    param,
                    ctx,
                )
            numbers.append(number)
        return tuple(numbers)


class Instant(click.ParamType[float]):
    """``2026-09-21T14:00``, in UTC unless it states another offset, as epoch seconds."""

    name = "instant"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the epoch seconds."""
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r}: write a time such as 2026-09-21T14:00", param, ctx)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        if seconds < 0:
            self.fail(f"{value!r} is before 1970", param, ctx)
        return seconds


INSTANT: Final = Instant()


def input_options(function: F) -> F:
    """Add the options that say what to read."""
    return _OPTIONS(function)


_OPTIONS: Final = join_options(
    click.option(
        "--from",
        "source",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Recording, as `serve --record` writes it, or a folder of saved pages.",
    ),
    click.option(
        "--from-prometheus",
        "store",
        metavar="URL",
        help="Store with the Prometheus query API, to read instead.",
    ),
    click.option(
        "--config",
        type=FILE,
        help="Configuration of `serve`: the login of the store, and the settings of values.",
    ),
    click.option(
        "--since", type=DURATION, help="How much to read from the store, up to --until [7d]."
    ),
    click.option(
        "--until",
        type=INSTANT,
        metavar="INSTANT",
        help="End of what is read from the store, such as 2026-09-21T14:00, in UTC [now].",
    ),
    click.option(
        "--scrape-interval",
        type=DURATION,
        help="Time between two scrapes by the store, or two saved pages [15s, or as saved].",
    ),
)


class Failure(NamedTuple):
    """What fails, and for how long."""

    kind: str
    seconds: float
    start: float | None = None
    """Epoch seconds; None for the time at which the demand rises most."""


class FailureType(click.ParamType[Failure]):
    """``exporter:10m``, ``adapter:1h@2026-09-21T14:00Z``."""

    name = "failure"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Failure:
        """Return the failure."""
        match = _FAILURE.fullmatch(str(value))
        if match is None or match[1] not in _KINDS:
            self.fail(f"{value!r}: {_FAILURE_FORM}", param, ctx)
        seconds = DURATION.convert(match[2], param, ctx)
        if not seconds:
            self.fail(f"{value!r} takes no time: {_FAILURE_FORM}", param, ctx)
        start = None if match[3] is None else INSTANT.convert(match[3], param, ctx)
        return Failure(match[1], seconds, start)


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
        headrooms = dict.fromkeys([TriedHeadroom(NONE)])
        for text in str(value).split(","):
            headrooms[self._one(text.strip(), param, ctx)] = None
        if len(headrooms) > MOST:
            self.fail(f"{len(headrooms)} values are too many: give at most {MOST}", param, ctx)
        return tuple(headrooms)

    def _one(
        self, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> TriedHeadroom:
        match = _HEADROOM.fullmatch(text)
        if match is None:
            self.fail(f"{text!r}: {_HEADROOM_FORM}", param, ctx)
        word, quantile, share, pods = match.groups()
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
