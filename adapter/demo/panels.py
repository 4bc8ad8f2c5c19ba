"""Panels of the live picture for one service, for one node and for nodepool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from adapter.demo.autoscaler import DemoAutoscaler, Sync
from adapter.demo.fleet import Stage
from adapter.demo.hardware import DemoDevice, DemoNode
from adapter.demo.state import DemoState, clock
from adapter.demo.world import World
from adapter.figures import LEVELS, spark
from adapter.nodepool.model.reason import count_pods

_STAGE_STYLE = {
    Stage.READY: "green",
    Stage.STARTING: "yellow",
    Stage.PENDING: "red",
    Stage.TERMINATING: "magenta",
}


class Glyphs(NamedTuple):
    """The characters of bars and graphs."""

    levels: str
    full: str
    empty: str
    none: str
    """Drawn for a missing value."""
    pods: Mapping[Stage, str]
    """A pod, by its stage."""

    def spark(self, values: Sequence[float | None], top: float, width: int) -> str:
        """Draw the last ``width`` values as a graph from 0 to ``top``."""
        return spark(values[max(0, len(values) - width) :], top, self.levels, self.none)

    def bar(self, share: float, width: int) -> str:
        """Draw a share from 0 to 1 as a bar; anything above 0 is visible."""
        filled = round(width * share)
        filled = max(1, filled) if share > 0.01 else filled
        return self.full * filled + self.empty * (width - filled)


_STAGES = (Stage.READY, Stage.STARTING, Stage.PENDING)
UNICODE = Glyphs(LEVELS, "█", "░", "·", dict(zip(_STAGES, "●◐○", strict=True)))
ASCII = Glyphs("_.,-=+*#", "#", ".", " ", dict(zip(_STAGES, "#+o", strict=True)))
"""For terminals whose encoding has no block characters."""


def service_title(state: DemoState, scaler: DemoAutoscaler) -> str:
    """Return the service and its HPA in a line."""
    spec = scaler.spec
    resource = state.world.workloads[scaler.service].resource
    return (
        f"[bold]{scaler.service}[/]: HPA {spec.min_replicas} to {spec.max_replicas}, "
        f"{scaler.metric} {scaler.target:g}, on {resource}"
    )


def service_body(
    state: DemoState, scaler: DemoAutoscaler, glyphs: Glyphs, width: int
) -> RenderableType:
    """Return the lines: load, pods, the HPA's value, and the reason of its decision."""
    grid = _label_grid(5)
    grid.add_row("load", _load(state, scaler, glyphs, max(8, width - 50)))
    grid.add_row("pods", _pods(state, scaler, glyphs))
    _add_counterpart(state, scaler, glyphs, grid)
    latest = scaler.latest
    if latest is None:
        grid.add_row("HPA", Text("no sync yet", style="dim"))
        grid.add_row("why", "")
        return grid
    grid.add_row("HPA", _value(scaler, latest, glyphs, max(8, width - 40)))
    grid.add_row("why", Text(latest.why, "" if latest.active else "bold yellow", no_wrap=False))
    return grid


def node_title(state: DemoState, node: DemoNode) -> Text:
    """Return the node's name, and whether its exporter is dead."""
    title = Text(node.name, style="bold")
    if node.name in state.exporters.dead:
        title.append(" exporter dead", style="bold white on red")
    return title


def node_line(state: DemoState, node: DemoNode, glyphs: Glyphs, width: int) -> Text:
    """Return all devices of a node in one line: a bar and a percentage each."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if not node.ready(state.world.now):
        return Text(f"booting, {round(node.ready_at - state.world.now)} s left", style="yellow")
    device_width = max(6, min(16, width // len(node.devices)))
    for device in node.devices:
        line.append_text(_device(state, node, device, glyphs, device_width - 5))
        line.append(" ")
    return line


def nodepool_title(state: DemoState) -> str:
    """Headroom, its ready part and its reason, in one line."""
    orders = [
        f"{count_pods(order.replicas)} of headroom, {order.ready} ready: {order.reasons[0].text}"
        for order in (state.shown.nodepool.orders if state.shown.nodepool else ())
        if order.replicas
    ]
    return f"[bold]nodepool[/]: {escape('; '.join(orders) or 'no headroom')}"


def nodepool_body(state: DemoState, glyphs: Glyphs) -> RenderableType:
    """The services on growing node pools, with nodepool and without: one line each."""
    grid = _label_grid(7)
    for label, cluster in zip(("with", "without"), state.clusters, strict=True):
        for scaler in state.reactive.autoscalers:
            grid.add_row(label, _nodes(cluster.world, scaler.service, glyphs))
    return grid


def _label_grid(width: int) -> Table:
    """Return a grid of labels and lines that are cut at its edge."""
    grid = Table.grid(padding=(0, 1, 0, 0), expand=True)
    grid.add_column(width=width, style="dim")
    grid.add_column(no_wrap=True, overflow="crop", ratio=1)
    return grid


def _nodes(world: World, service: str, glyphs: Glyphs) -> Text:
    resource = world.workloads[service].resource
    nodes = [node for node in world.fleet.nodes if node.pool.resource == resource]
    booting = sum(not node.ready(world.now) for node in nodes)
    text = Text(f"{service} ").append_text(_signs(world, service, glyphs))
    up = len(nodes) - booting
    text.append(f"  {up} node{'' if up == 1 else 's'}")
    if booting:
        text.append(f", {booting} booting", style="yellow")
    style = "red" if world.stages(service)[Stage.PENDING] else ""
    waited = world.waiting_seconds(service)
    return text.append(f"; waited for a GPU: {waited:.0f} pod-seconds", style=style)


def _signs(world: World, service: str, glyphs: Glyphs) -> Text:
    """Return a sign for each of the service's pods, by stage."""
    text, stages = Text(), world.stages(service)
    for stage in (Stage.READY, Stage.STARTING, Stage.PENDING):
        text.append(glyphs.pods[stage] * stages[stage], style=_STAGE_STYLE[stage])
    return text


def _device(
    state: DemoState, node: DemoNode, device: DemoDevice, glyphs: Glyphs, width: int
) -> Text:
    pod = state.world.fleet.pods.get(device.pod) if device.pod else None
    if pod is None:
        return Text(glyphs.empty * width + "    ", style="dim")
    if pod.stage is not Stage.READY:
        sign = "load" if pod.stage is Stage.STARTING else "ends"
        return Text(glyphs.pods[Stage.STARTING] * width + sign, style=_STAGE_STYLE[pod.stage])
    dead = node.name in state.exporters.dead
    style = "dim" if dead else _heat(device.busy)
    return Text(f"{glyphs.bar(device.busy, width)}{100 * device.busy:4.0f}", style=style)


def _heat(busy: float) -> str:
    if busy > 0.85:
        return "red"
    return "yellow" if busy > 0.6 else "green"


def _load(state: DemoState, scaler: DemoAutoscaler, glyphs: Glyphs, width: int) -> Text:
    world, name = state.world, scaler.service
    queues = [float(sync.queue) for sync in scaler.syncs]
    slowest = world.services[name].latency
    text = Text(f"{world.rate(name):4.1f} req/s  queue {world.services[name].queue:4d} ")
    text.append(glyphs.spark(queues, max([1.0, *queues]), width), style="cyan")
    if slowest is not None:
        text.append(f"  95 % within {slowest:.1f} s")
    return text


def _pods(state: DemoState, scaler: DemoAutoscaler, glyphs: Glyphs) -> Text:
    world, stages = state.world, state.world.stages(scaler.service)
    text = _signs(world, scaler.service, glyphs)
    text.append(f"  {world.wanted[scaler.service]} wanted, {stages[Stage.READY]} ready")
    if stages[Stage.STARTING]:
        text.append(f", {stages[Stage.STARTING]} loading", style="yellow")
    if stages[Stage.PENDING]:
        text.append(f", {stages[Stage.PENDING]} without a GPU", style="red")
    return text


def _add_counterpart(state: DemoState, scaler: DemoAutoscaler, glyphs: Glyphs, grid: Table) -> None:
    """Add a line about the same service in each cluster whose HPA reads something else."""
    name = scaler.service
    for signal, cluster in state.signals.items():
        world = cluster.world
        if cluster is state.shown or name not in world.services:
            continue
        text = Text(f"scaled on {signal}: ").append_text(_signs(world, name, glyphs))
        text.append(f"  {world.wanted[name]} wanted, {world.services[name].waiting} wait")
        slowest = world.services[name].latency
        if slowest is not None:
            text.append(f", 95 % within {slowest:.1f} s")
        grid.add_row("same", text)


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
