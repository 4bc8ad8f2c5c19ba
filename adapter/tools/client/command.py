"""One run of a user's tool: look, show, and end with a status; or look again and again."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, Protocol

import click

from adapter.config.process.output import Screen, say, screen_of
from adapter.tools.client.access import Api, Json, cluster
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.client.options import ClientOptions

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
    say(f"gpu-metrics-adapter: {error}", err=True)


def print_document(content: Any, output: str, *, many: bool = False) -> None:
    """Print JSON or YAML in ASCII: names of others cannot move the cursor, and any terminal shows
    it.

    Args:
        content: what ``json.dumps`` takes.
        output: ``json`` or ``yaml``.
        many: others follow: JSON is one line, and YAML begins a document.
    """
    text = json.dumps(content, indent=None if many or output == "yaml" else 2)
    if output == "yaml":
        import yaml  # noqa: PLC0415 - only this format needs it

        from apiservice.runtime.yamltypes import Dumper  # noqa: PLC0415 - as above

        text = yaml.dump(json.loads(text), Dumper=Dumper, sort_keys=False, width=math.inf)
        text = text.rstrip("\n")
        text = f"---\n{text}" if many else text
    click.echo(text)


def show(report: ToolReport, output: str) -> None:
    """Print a report once."""
    if output in ("json", "yaml"):
        print_document(report.json(), output)
        return
    screen = screen_of()
    lines = [screen.line(line) for line in report.lines(screen)]
    if lines:
        click.echo("\n".join(lines))


async def _run(options: ClientOptions, look: Look) -> int:
    async with cluster(*options.place) as api:
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
    if not options.watch:
        show(report, options.output)
        return
    if options.output != "text":
        print_document(report.json(), options.output, many=True)
        return
    screen = screen_of()
    stamp = datetime.now(UTC).strftime("%H:%M:%S UTC")
    lines = [screen.style(stamp, "dim"), *report.lines(screen), ""]
    lines = [screen.line(line) for line in lines]
    if screen.colours:
        lines[0] = _CLEAR + lines[0]
    click.echo("\n".join(lines))
