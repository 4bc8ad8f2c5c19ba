"""The live picture: services and their HPAs' reasons, nodes and GPUs, the latest events.

Low terminals get no frames.
"""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from adapter.demo.captions import PINNED
from adapter.demo.panels import (
    ASCII,
    UNICODE,
    Glyphs,
    node_line,
    node_title,
    nodepool_body,
    nodepool_title,
    service_body,
    service_title,
)
from adapter.demo.state import DemoState, clock, usage
from adapter.demo.world import DemoEvent

_MEASURE = Console(width=80)
"""Folds lines."""
_FRAMED_ROWS = 30
_NODEPOOL_ROWS = 24
"""With fewer rows, only the summary shows the cluster without nodepool."""
_FEWEST_EVENTS = 2
"""With fewer rows left for events, it is not shown how to use the demo."""


class View:
    """A rich renderable of the demo's current state, as large as the terminal."""

    def __init__(self, state: DemoState) -> None:
        self._state = state

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw; the events take the remaining rows."""
        width, height = options.size.width, options.size.height
        glyphs = ASCII if options.ascii_only else UNICODE
        framed = height >= _FRAMED_ROWS
        parts = [_header(self._state), *_panels(self._state, glyphs, width, framed=framed)]
        if height >= _NODEPOOL_ROWS:
            body = nodepool_body(self._state, glyphs)
            parts.append(_frame_panel(nodepool_title(self._state), body, framed=framed))
        use = Text(usage(self._state, width), style="dim", overflow="fold")
        natural = options.update(height=None)
        left = height - len(console.render_lines(Group(*parts), natural))
        rows = left - len(console.render_lines(use, natural))
        if rows < _FEWEST_EVENTS:
            yield Group(*parts, _events(self._state, left, width))
            return
        yield Group(*parts, _events(self._state, rows, width), use)


def _header(state: DemoState) -> RenderableType:
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True)
    line.add_column(justify="right", no_wrap=True)
    progress = f"{clock(state.world.now)} of {clock(state.length)}"
    line.add_row(
        Text.assemble(("gpu-metrics-adapter demo", "bold"), f"  {progress}, {state.speed:.3g}x"),
        Text(f"{state.tally.requests} HPA reads, Ctrl-C ends", style="dim"),
    )
    return line


def _panels(state: DemoState, glyphs: Glyphs, width: int, *, framed: bool) -> list[RenderableType]:
    inner = width - 4 if framed else width
    parts: list[RenderableType] = []
    for scaler in state.autoscalers:
        body = service_body(state, scaler, glyphs, inner)
        parts.append(_frame_panel(service_title(state, scaler), body, framed=framed))
    nodes = Table.grid(padding=(0, 1, 0, 0))
    nodes.add_column(no_wrap=True)
    nodes.add_column(no_wrap=True, overflow="ellipsis")
    titles = [(node, node_title(state, node)) for node in state.world.fleet.nodes]
    room = inner - 2 - max(title.cell_len for _, title in titles)
    for node, title in titles:
        nodes.add_row(title, node_line(state, node, glyphs, room))
    parts.append(_frame_panel("[bold]nodes[/], GPU utilization in %", nodes, framed=framed))
    return parts


def _frame_panel(title: str, body: RenderableType, *, framed: bool) -> RenderableType:
    if framed:
        return Panel(body, title=title, title_align="left")
    line = Text.from_markup(title, overflow="ellipsis")
    line.no_wrap = True
    return Group(line, body)


def _events(state: DemoState, rows: int, width: int) -> RenderableType:
    """Return the latest events, newest last, padded to ``rows`` lines.

    The current caption follows them, as many lines long as it needs.
    """
    pinned = _caption(state)
    below = [] if pinned is None else _fold_text(_event(pinned, "bold cyan"), width, rows)
    room = rows - len(below)
    events = [event for event in state.events if event is not pinned]
    lines = [_event(event) for event in events[-room:] if room > 0]
    lines += [Text("")] * max(0, room - len(lines))
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines, *below)


def _caption(state: DemoState) -> DemoEvent | None:
    """Return the newest caption, if it is recent."""
    now = state.world.now
    captions = (event for event in reversed(state.events) if event.caption)
    newest = next(captions, None)
    return newest if newest is not None and now - newest.at < PINNED else None


def _event(event: DemoEvent, style: str = "") -> Text:
    return Text.assemble(
        (clock(event.at), "dim"), " ", (event.about, "bold"), (f" {event.text}", style)
    )


def _fold_text(text: Text, width: int, most: int) -> list[Text]:
    """Return a text as lines of at most ``width`` columns."""
    return list(text.wrap(_MEASURE, width))[: max(0, most)]
