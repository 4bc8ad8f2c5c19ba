"""Panels of the live picture for one service and for one node."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from adapter.demo.autoscaler import DemoAutoscaler, Sync
from adapter.demo.fleet import DemoPod, Stage
from adapter.demo.glyphs import Glyphs
from adapter.demo.hardware import DemoDevice, DemoNode
from adapter.demo.show import Show, clock

_STAGE_STYLE = {
    Stage.READY: "green",
    Stage.STARTING: "yellow",
    Stage.PENDING: "red",
    Stage.TERMINATING: "magenta",
}
_LABEL_COLUMNS = 5


def service_title(show: Show, scaler: DemoAutoscaler) -> str:
    """Return the service and its HPA in a line."""
    spec = scaler.spec
    resource = show.world.workloads[scaler.service].resource
    return (
        f"[bold]{scaler.service}[/]: HPA {spec.min_replicas} to {spec.max_replicas}, "
        f"{scaler.metric} {scaler.target:g}, on {resource}"
    )


def service_body(show: Show, scaler: DemoAutoscaler, glyphs: Glyphs, width: int) -> RenderableType:
    """Return four lines: load, pods, the HPA's value, and the reason of its decision."""
    grid = Table.grid(padding=(0, 1, 0, 0), expand=True)
    grid.add_column(width=_LABEL_COLUMNS, style="dim")
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    grid.add_row("load", _load(show, scaler, glyphs, max(8, width - 50)))
    grid.add_row("pods", _pods(show, scaler, glyphs))
    latest = scaler.latest
    if latest is None:
        grid.add_row("HPA", Text("no sync yet", style="dim"))
        grid.add_row("why", "")
        return grid
    grid.add_row("HPA", _value(scaler, latest, glyphs, max(8, width - 40)))
    grid.add_row("why", Text(latest.why, "" if latest.active else "bold yellow", no_wrap=False))
    return grid


def node_title(show: Show, node: DemoNode) -> Text:
    """Return the node's name, and whether its exporter is dead."""
    title = Text(node.name, style="bold")
    if node.name in show.exporters.dead:
        title.append(" exporter dead", style="bold white on red")
    return title


def node_line(show: Show, node: DemoNode, glyphs: Glyphs, width: int) -> Text:
    """Return all devices of a node in one line: a bar and a percentage each."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if not node.ready(show.world.now):
        return _boots(show, node)
    each = max(6, min(16, width // len(node.devices)))
    for device in node.devices:
        line.append_text(_device(show, node, device, glyphs, each - 5))
        line.append(" ")
    return line


def node_body(show: Show, node: DemoNode, glyphs: Glyphs, width: int) -> RenderableType:
    """Return a line for each device, with its pod."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, justify="right")
    for _ in range(2):
        grid.add_column(no_wrap=True, overflow="ellipsis")
    if not node.ready(show.world.now):
        return _boots(show, node)
    for device in node.devices:
        name = str(device.gpu if device.instance is None else device.instance)
        pod = _pod(show, device)
        label = Text(pod.name, style=_STAGE_STYLE[pod.stage]) if pod else Text("free", style="dim")
        grid.add_row(name, _device(show, node, device, glyphs, max(4, width - 20)), label)
    return grid


def _boots(show: Show, node: DemoNode) -> Text:
    return Text(f"booting, {round(node.ready_at - show.world.now)} s left", style="yellow")


def _pod(show: Show, device: DemoDevice) -> DemoPod | None:
    return show.world.fleet.pods.get(device.pod) if device.pod else None


def _device(show: Show, node: DemoNode, device: DemoDevice, glyphs: Glyphs, width: int) -> Text:
    pod = _pod(show, device)
    if pod is None:
        return Text(glyphs.empty * width + "    ", style="dim")
    if pod.stage is not Stage.READY:
        sign = "load" if pod.stage is Stage.STARTING else "ends"
        return Text(glyphs.starting * width + sign, style=_STAGE_STYLE[pod.stage])
    dead = node.name in show.exporters.dead
    style = "dim" if dead else _heat(device.busy)
    return Text(f"{glyphs.bar(device.busy, width)}{100 * device.busy:4.0f}", style=style)


def _heat(busy: float) -> str:
    if busy > 0.85:
        return "red"
    return "yellow" if busy > 0.6 else "green"


def _load(show: Show, scaler: DemoAutoscaler, glyphs: Glyphs, width: int) -> Text:
    world, name = show.world, scaler.service
    queues = [float(sync.queue) for sync in scaler.syncs]
    slowest = world.latency(name)
    text = Text(f"{world.rate(name):4.1f} req/s  queue {world.queue(name):4d} ")
    text.append(glyphs.spark(queues, max([1.0, *queues]), width), style="cyan")
    if slowest is not None:
        text.append(f"  95 % within {slowest:.1f} s")
    return text


def _pods(show: Show, scaler: DemoAutoscaler, glyphs: Glyphs) -> Text:
    counts = show.world.counts(scaler.service)
    text = Text()
    text.append(glyphs.ready * counts.ready, style="green")
    text.append(glyphs.starting * counts.starting, style="yellow")
    text.append(glyphs.pending * counts.pending, style="red")
    text.append(f"  {show.world.wanted(scaler.service)} wanted, {counts.ready} ready")
    if counts.starting:
        text.append(f", {counts.starting} loading", style="yellow")
    if counts.pending:
        text.append(f", {counts.pending} without a GPU", style="red")
    return text


def _value(scaler: DemoAutoscaler, latest: Sync, glyphs: Glyphs, width: int) -> Text:
    values = [sync.value for sync in scaler.syncs]
    text = Text("  none " if latest.value is None else f"{latest.value:6.1f} ", style="bold")
    text.append(glyphs.spark(values, 100.0, width), style="cyan not bold")
    decision = latest.decision
    text.append(f"  at {clock(latest.at)}: ", style="not bold")
    if decision.rescale:
        text.append(f"{decision.current} -> {decision.desired}", style="bold")
    else:
        text.append(f"stays at {decision.current}", style="not bold")
    return text
