"""One run of a user's tool: look, show, and end with a status; or look again and again."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, Protocol

import click

from adapter.client.access import Api, Json, cluster
from adapter.client.errors import ClientError, odd_answers
from adapter.client.options import ClientOptions
from adapter.client.output import Screen, screen_of

FINE: Final = 0
BLOCKED: Final = 1
"""Something blocks, or a check found something."""
UNSEEN: Final = 2
"""The tool could not look."""
_CLEAR: Final = "\x1b[H\x1b[2J\x1b[3J"


class ToolReport(Protocol):
    """The result of a look."""

    @property
    def status(self) -> int:
        """The exit status."""

    def lines(self, screen: Screen) -> list[str]:
        """The result as text."""

    def json(self) -> Json:
        """The result for programs."""


Look = Callable[[Api], Awaitable[ToolReport]]


def run(options: ClientOptions, look: Look) -> NoReturn:
    """Connect, look, print and exit: 0 fine, 1 something blocks, 2 the tool could not look."""
    try:
        status = asyncio.run(_run(options, look))
    except ClientError as error:
        complain(error)
        sys.exit(UNSEEN)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(status)


def complain(error: ClientError) -> None:
    """Print a failure as one line."""
    line = screen_of(sys.stderr).line(f"gpu-metrics-adapter: {error}")
    click.echo(line, err=True)


def print_json(content: Any, *, indent: int | None = 2) -> None:
    """Print JSON in ASCII: names of others cannot move the cursor, and any terminal shows it."""
    click.echo(json.dumps(content, indent=indent))


async def _run(options: ClientOptions, look: Look) -> int:
    async with cluster(options.kubeconfig, options.context, options.namespace) as api:
        with odd_answers():
            report = await look(api)
            _show(report, options)
        while options.watch:
            await asyncio.sleep(options.interval)
            try:
                with odd_answers():
                    report = await look(api)
                    _show(report, options)
            except ClientError as error:
                complain(error)
        return report.status


def _show(report: ToolReport, options: ClientOptions) -> None:
    if options.output == "json":
        # With --watch, one document a line.
        print_json(report.json(), indent=None if options.watch else 2)
        return
    screen = screen_of()
    lines = [screen.line(line) for line in report.lines(screen)]
    if options.watch:
        at = datetime.now(UTC).strftime("%H:%M:%S UTC")
        lines = [screen.style(at, "dim"), *lines, ""]
        if screen.colours:
            lines[0] = _CLEAR + lines[0]
    if lines:
        click.echo("\n".join(lines))
