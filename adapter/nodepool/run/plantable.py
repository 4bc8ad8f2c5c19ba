"""The plan as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from adapter.nodepool.learn.idle import IdlePod
from adapter.nodepool.model.reason import count_gpus
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.order import Order, Plan
from apiservice.wire import instant


def render(plan: Plan, method: str, idle: Iterable[IdlePod] = ()) -> list[str]:
    """Return the orders, the warnings about pools, and the idle GPUs as lines."""
    lines = [f"provisioning method: {method}"]
    if plan.orders:
        lines += _table([_HEAD, *map(_row, plan.orders)])
    else:
        lines.append("no HPA scales a workload with GPU pods, and no Job has GPU pods")
    lines += [f"pool {note.pool}: {note.reason.text}" for note in plan.notes]
    for row in idle:
        pod, cost = row.pod, "" if row.cost is None else f", cost {row.cost:.2f}"
        lines.append(
            f"idle: {pod.namespace}/{pod.name} holds {count_gpus(pod.gpus)} and has not used "
            f"them since {instant.write(row.since)}: {row.gpu_hours:.1f} GPU-hours{cost}"
        )
    return lines


_TEXTS = ("NAMESPACE", "WORKLOADS", "POOL", "POD")
_NUMBERS = ("PODS", "WAS", "HEADROOM", "READY", "NEW NODES")
_HEAD = (*_TEXTS, *_NUMBERS, "WHY")


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align texts left and numbers right. The last column is not padded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if name in _NUMBERS else cell.ljust(width)
            for name, cell, width in zip(_HEAD, row, widths, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _row(order: Order) -> Sequence[str]:
    return (
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


def described(shape: Shape) -> str:
    """Return a short description of a shape: its devices, or else its claims."""
    held = [f"{count} {name}" for name, count in sorted(shape.devices.items())]
    return ", ".join([*held, *(f"claim {name}" for name in shape.claims)]) or "no GPU"
