"""The options that say what a replay reads."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from adapter.client.options import DURATION, joined

F = TypeVar("F", bound=Callable[..., Any])


class Instant(click.ParamType[float]):
    """``2026-09-21T14:00``, in UTC unless it states another offset, as epoch seconds."""

    name = "instant"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the epoch seconds."""
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r}: write a time such as 2026-09-21T14:00", param, ctx)
        seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        if seconds < 0:
            self.fail(f"{value!r} is before 1970", param, ctx)
        return seconds


INSTANT: Final = Instant()


def input_options(function: F) -> F:
    """Add the options that say what to read."""
    return _OPTIONS(function)


_OPTIONS: Final = joined(
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
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Configuration of `serve`: the login of the store, and the settings of values.",
    ),
    click.option(
        "--since",
        type=DURATION,
        metavar="TIME",
        help="How much to read from the store, up to --until [7d].",
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
        metavar="TIME",
        help="Time between two scrapes by the store, or two saved pages [15s, or as saved].",
    ),
)
