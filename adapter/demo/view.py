"""The live picture: services and their HPAs' reasons, nodes and GPUs, the latest events.

Narrow terminals get a line for each node; wide and high ones get a panel with a line for each
device. Low terminals get no frames.
"""

from __future__ import annotations

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from adapter.demo.glyphs import ASCII, UNICODE, Glyphs
from adapter.demo.nudgepanel import nudge_body, nudge_title
from adapter.demo.panels import node_body, node_line, node_title, service_body, service_title
from adapter.demo.show import Show, clock

_WIDE_COLUMNS, _WIDE_ROWS = 110, 38
_FRAMED_ROWS = 30
_NUDGED_ROWS = 24
"""With fewer rows, only the summary shows the cluster without nodepool."""
_FEWEST_EVENTS = 2
"""With fewer rows left for events, the curl command is not shown."""


class View:
    """A rich renderable of the show's current state, as large as the terminal."""

    def __init__(self, show: Show) -> None:
        self._show = show

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw; the events take the remaining rows."""
        width, height = options.size.width, options.size.height
        glyphs = ASCII if options.ascii_only else UNICODE
        parts = [_header(self._show)]
        if width >= _WIDE_COLUMNS and height >= _WIDE_ROWS:
            parts += _wide(self._show, glyphs, width)
        else:
            framed = height >= _FRAMED_ROWS
            parts += _narrow(self._show, glyphs, width, framed=framed)
            if height >= _NUDGED_ROWS:
                parts.append(_nudge(self._show, glyphs, framed=framed))
        curl = Text(f"the API: {self._show.curl_short}", style="dim", overflow="fold")
        natural = options.update(height=None)
        left = height - len(console.render_lines(Group(*parts), natural))
        rows = left - len(console.render_lines(curl, natural))
        if rows < _FEWEST_EVENTS:
            yield Group(*parts, _events(self._show, left))
            return
        yield Group(*parts, _events(self._show, rows), curl)


def _header(show: Show) -> RenderableType:
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True)
    line.add_column(justify="right", no_wrap=True)
    at = f"{clock(show.world.now)} of {clock(show.length)}"
    line.add_row(
        Text.assemble(("gpu-metrics-adapter demo", "bold"), f"  {at}, {show.speed:.3g}x"),
        Text(f"{show.tally.requests} HPA reads, Ctrl-C ends", style="dim"),
    )
    return line


def _narrow(show: Show, glyphs: Glyphs, width: int, *, framed: bool) -> list[RenderableType]:
    inner = width - 4 if framed else width
    parts: list[RenderableType] = []
    for scaler in show.autoscalers:
        body = service_body(show, scaler, glyphs, inner)
        parts.append(_framed(service_title(show, scaler), body, framed=framed))
    nodes = Table.grid(padding=(0, 1, 0, 0))
    nodes.add_column(no_wrap=True)
    nodes.add_column(no_wrap=True, overflow="ellipsis")
    titles = [(node, node_title(show, node)) for node in show.world.fleet.nodes]
    room = inner - 2 - max(title.cell_len for _, title in titles)
    for node, title in titles:
        nodes.add_row(title, node_line(show, node, glyphs, room))
    parts.append(_framed("[bold]nodes[/], GPU utilization in %", nodes, framed=framed))
    return parts


def _wide(show: Show, glyphs: Glyphs, width: int) -> list[RenderableType]:
    half = width // 2
    services = [
        Panel(
            service_body(show, scaler, glyphs, half - 4),
            title=service_title(show, scaler),
            title_align="left",
            width=half,
        )
        for scaler in show.autoscalers
    ]
    each = width // max(1, min(4, len(show.world.fleet.nodes)))
    nodes = [
        Panel(
            node_body(show, node, glyphs, each - 4),
            title=node_title(show, node),
            title_align="left",
            width=each,
        )
        for node in show.world.fleet.nodes
    ]
    nudge = _nudge(show, glyphs, framed=True)
    return [Columns(services, padding=0), Columns(nodes, padding=0), nudge]


def _nudge(show: Show, glyphs: Glyphs, *, framed: bool) -> RenderableType:
    return _framed(nudge_title(show), nudge_body(show, glyphs), framed=framed)


def _framed(title: str, body: RenderableType, *, framed: bool) -> RenderableType:
    if framed:
        return Panel(body, title=title, title_align="left")
    line = Text.from_markup(title, overflow="ellipsis")
    line.no_wrap = True
    return Group(line, body)


def _events(show: Show, rows: int) -> RenderableType:
    """Return the latest events, newest last, padded to ``rows`` lines."""
    lines = [
        Text.assemble((clock(event.at), "dim"), " ", (event.about, "bold"), f" {event.text}")
        for event in list(show.events)[-rows:]
        if rows > 0
    ]
    lines += [Text("")] * max(0, rows - len(lines))
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines)
