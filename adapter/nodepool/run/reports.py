"""Log and print the changes of a round, and keep the orders of a dry run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TextIO

import structlog

from adapter.config.process.output import screen_of
from adapter.nodepool.act.methods import capacitybuffer
from adapter.nodepool.act.methods.choice import GPU_WAIT, MethodChoice
from adapter.nodepool.learn.idle import IdlePod
from adapter.nodepool.model.capacity import Headroom, ProvisioningMethod
from adapter.nodepool.model.names import HEADROOM
from adapter.nodepool.model.reason import count_gpus
from adapter.nodepool.model.shape import Shape
from adapter.nodepool.plan.observation import PlanInput
from adapter.nodepool.plan.order import Order, Plan
from adapter.nodepool.run.state import ControllerState
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.status import NAME, NAMESPACE
from apiservice.wire import instant

log = structlog.get_logger(__name__)

_MOST = 20
"""Maximum number of ignored objects in one log: tenants can create many."""


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
        describe_shape(order.shape),
        str(order.pods),
        str(order.was),
        str(order.replicas),
        "?" if order.ready is None else str(order.ready),
        "?" if order.nodes is None else str(order.nodes),
        order.why,
    )


def describe_shape(shape: Shape) -> str:
    """Return a short description of a shape: its devices, or else its claims."""
    devices = [f"{count} {name}" for name, count in sorted(shape.devices.items())]
    return ", ".join([*devices, *(f"claim {name}" for name in shape.claims)]) or "no GPU"


class Reports:
    """Reports changes of the plan. ``table``, if not None, gets each changed plan as a table."""

    def __init__(self, table: TextIO | None = sys.stdout) -> None:
        self._table = table
        self._said: object = None
        self._noted: set[tuple[str, str]] = set()
        self._problems: dict[str, str] = {}
        self._foreign: dict[tuple[str, ...], str] = {}
        self._ordered: tuple[Headroom, ...] | None = None
        """None before the first plan."""

    def note(
        self,
        decided: Plan,
        plan_input: PlanInput,
        choice: MethodChoice,
        cluster: ClusterTables,
        state: ControllerState,
        now: float,
    ) -> None:
        """Update the state with the outcome of a round, and report changes."""
        method = choice.method.value if choice.method is not None else ""
        if (method, choice.reason) != (state.method, state.method_reason):
            say = log.warning if GPU_WAIT in choice.reason else log.info
            say("provisioning method", method=method or "none yet", reason=choice.reason)
        state.method, state.method_reason = method, choice.reason
        state.pools = plan_input.capacity.pools
        state.shortfalls = {
            (row.serves or row.namespace, row.name): text
            for row in cluster.buffers
            if row.method is ProvisioningMethod.BUFFER and (text := capacitybuffer.shortfall(row))
        }
        self.log_autoscaler_problems(cluster)
        self.log_foreign_objects(cluster)
        self.say(decided, state)
        state.plan, state.planned_at = decided, now
        state.rounds += 1

    def say(self, decided: Plan, state: ControllerState) -> None:
        """Print the plan if its numbers changed."""
        facts = (
            state.method,
            [(row.namespace, row.shape, row.replicas, row.pool) for row in decided.orders],
            [(note.pool, note.reason.code) for note in decided.notes],
            sorted(state.shortfalls.items()),
        )
        self._ordered = tuple(row.headroom for row in decided.orders if row.replicas)
        self._log_notes(decided)
        if facts == self._said:
            return
        self._said = facts
        for (namespace, name), text in state.shortfalls.items():
            log.warning("headroom falls short", namespace=namespace, name=name, reason=text)
        if self._table is not None:
            method = f"{state.method or 'none yet'} ({state.method_reason})"
            mode = "plan" if state.apply else "dry run: nothing is written"
            screen = screen_of(self._table)
            for line in (mode, *render(decided, method, state.idle), ""):
                self._table.write(f"{screen.line(line)}\n")
            self._table.flush()

    def _log_notes(self, decided: Plan) -> None:
        noted = {(note.pool, note.reason.code) for note in decided.notes}
        for note in decided.notes:
            if (note.pool, note.reason.code) not in self._noted:
                log.warning(
                    "node pool", pool=note.pool, code=note.reason.code, reason=note.reason.text
                )
        self._noted = noted

    def log_foreign_objects(self, cluster: ClusterTables) -> None:
        """Log each object with the headroom label that this controller did not write, once."""
        foreign = {
            (row.method.value, *row.key): row.problem
            for row in (*cluster.buffers, *cluster.placeholders)
            if row.problem
        }
        fresh = [place for place, problem in foreign.items() if self._foreign.get(place) != problem]
        for place in fresh[:_MOST]:
            method, namespace, name = place
            log.warning(
                "headroom object ignored",
                method=method,
                namespace=namespace,
                name=name,
                problem=foreign[place],
                hint=f"remove its label {HEADROOM}, or delete it",
            )
        if len(fresh) > _MOST:
            log.warning("more headroom objects ignored", count=len(fresh) - _MOST)
        self._foreign = foreign

    def log_autoscaler_problems(self, cluster: ClusterTables) -> None:
        """Log changes of the problems that autoscalers report about their groups and pools."""
        problems = {}
        for status in cluster.status:
            if status.problem:
                problems[f"{NAMESPACE}/{NAME}"] = status.problem
            for group in status.groups:
                if group.backing_off:
                    problems[group.name] = f"backs off: {group.backoff or 'reason unknown'}"
                elif not group.healthy:
                    problems[group.name] = "is not healthy"
        problems |= {row.name: row.problem for row in cluster.node_pools if row.problem}
        for name, problem in problems.items():
            if self._problems.get(name) != problem:
                log.warning("autoscaler", about=name, problem=problem)
        for name in self._problems.keys() - problems.keys():
            log.info("autoscaler", about=name, problem="resolved")
        self._problems = problems

    def as_if_applied(self, plan_input: PlanInput) -> PlanInput:
        """Return the input as if the last plan had been applied, for a dry run."""
        if self._ordered is None:
            return plan_input
        return plan_input._replace(capacity=replace(plan_input.capacity, headroom=self._ordered))
