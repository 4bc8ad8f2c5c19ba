"""The plan as a table for people."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from adapter.nodepool.learn.idle import Idle
from adapter.nodepool.model.reason import count_gpus
from adapter.nodepool.model.shape import Shape, device_resource
from adapter.nodepool.plan.order import Order, Plan
from adapter.nodepool.seen import instant


def render(plan: Plan, way: str, idle: Iterable[Idle] = (), width: int = 160) -> str:
    """The orders, what is to be known of pools, and idle GPUs, as text of this width."""
    text = io.StringIO()
    console = Console(file=text, width=width, highlight=False)
    console.print(f"way: {way}", soft_wrap=True)
    if plan.orders:
        console.print(_orders(plan.orders))
    else:
        console.print("no workload of GPU pods is scaled by an HPA or a queue of Jobs")
    for note in plan.notes:
        console.print(f"pool {note.pool}: {note.reason.text}", soft_wrap=True)
    for row in idle:
        pod, cost = row.pod, "" if row.cost is None else f", cost {row.cost:.2f}"
        console.print(
            f"idle: {pod.namespace}/{pod.name} holds {count_gpus(pod.gpus)} and has not used "
            f"them since {instant.write(row.since)}: {row.gpu_hours:.1f} GPU-hours{cost}",
            soft_wrap=True,
        )
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _orders(orders: Iterable[Order]) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name in ("NAMESPACE", "WORKLOADS", "POOL", "POD"):
        table.add_column(name, overflow="fold")
    for name in ("PODS", "WAS", "HEADROOM", "READY", "NEW NODES"):
        table.add_column(name, justify="right")
    table.add_column("WHY", overflow="fold")
    for order in orders:
        table.add_row(
            order.namespace,
            ", ".join(order.about) or "-",
            order.pool or "-",
            described(order.shape),
            str(order.pods),
            str(order.was),
            str(order.replicas),
            "?" if order.ready is None else str(order.ready),
            "?" if order.nodes is None else str(order.nodes),
            order.why,
        )
    return table


def described(shape: Shape) -> str:
    """A shape in a few words: its devices, else its claims."""
    held = [f"{-(-n // 1000)} {name}" for name, n in shape.requests if device_resource(name)]
    return ", ".join([*held, *(f"claim {name}" for name in shape.claims)]) or "no GPU"
