"""nodepool in the live picture: its headroom and the reasons, and the cluster without it."""

from __future__ import annotations

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from adapter.demo import waits
from adapter.demo.glyphs import Glyphs
from adapter.demo.show import Show
from adapter.demo.side import Side


def nudge_title(show: Show) -> str:
    """Headroom, its ready part and its reason, in one line."""
    orders = [
        f"{order.replicas} pods of headroom, {order.ready} ready: {order.reasons[0].text}"
        for order in (show.nudged.nudge.orders if show.nudged.nudge else ())
        if order.replicas
    ]
    return f"[bold]nodepool[/]: {escape('; '.join(orders) or 'no headroom')}"


def nudge_body(show: Show, glyphs: Glyphs) -> RenderableType:
    """The services on growing node pools, with nodepool and without: one line each."""
    grid = Table.grid(padding=(0, 1, 0, 0), expand=True)
    grid.add_column(width=7, style="dim")
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for label, side in zip(("with", "without"), show.sides, strict=True):
        for scaler in show.reactive.autoscalers:
            grid.add_row(label, _line(side, scaler.service, glyphs))
    return grid


def _line(side: Side, service: str, glyphs: Glyphs) -> Text:
    world = side.world
    counts = world.counts(service)
    resource = world.workloads[service].resource
    nodes = [node for node in world.fleet.nodes if node.pool.resource == resource]
    booting = sum(not node.ready(world.now) for node in nodes)
    text = Text(f"{service} ")
    text.append(glyphs.ready * counts.ready, style="green")
    text.append(glyphs.starting * counts.starting, style="yellow")
    text.append(glyphs.pending * counts.pending, style="red")
    up = len(nodes) - booting
    text.append(f"  {up} node{'' if up == 1 else 's'}")
    if booting:
        text.append(f", {booting} booting", style="yellow")
    waited = waits.waited(world.created[service], world.now)
    style = "red" if counts.pending else ""
    text.append(f"; waited for a GPU: {waited:.0f} pod-seconds", style=style)
    return text
