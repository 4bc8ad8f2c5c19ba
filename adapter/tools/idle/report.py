"""The report of ``idle``: devices, their pods and price, as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

from adapter.config.process.output import Screen, table
from adapter.figures import age, count, memory
from adapter.tools.client.command import BLOCKED, FINE, UNSEEN
from adapter.tools.idle.cells import amount, safe_cell
from apiservice.wire import instant

Json = dict[str, Any]
_NONE: Final = "-"
_HOUR: Final = 3600.0
CSV_HEADER: Final = (
    *("gpu", "uuid", "model", "mig_profile", "node", "namespace", "pods", "workload", "team"),
    *("idle_since", "idle_hours", "memory_used_bytes", "memory_total_bytes"),
    *("price_per_hour", "cost_so_far", "currency", "hint"),
)

CSV_GROUPS: Final = (
    *("gpus", "pods", "price_per_hour", "cost_so_far", "without_price", "currency"),
)
"""The header with ``--by``, after its name."""


@dataclass(frozen=True, slots=True)
class IdleDevice:
    """A GPU or MIG instance that pods hold and that does nothing."""

    gpu: str
    """Name of its object; its UUID if it has none."""
    uuid: str
    model: str
    mig_profile: str
    node: str
    namespace: str
    pods: tuple[str, ...]
    workload: str
    """``Deployment/llm``; empty for a bare pod."""
    team: str
    since: float
    """Epoch seconds."""
    used: float | None
    total: float | None
    """Memory in bytes."""
    price: float | None
    """Per hour; None if the model has no price."""
    hint: str
    scaled: bool = False
    """All pods of its workload are idle, and the hint is to scale it to 0."""

    def cost(self, now: float) -> float | None:
        """Return what the idle time has cost so far."""
        return None if self.price is None else self.price * (now - self.since) / _HOUR


GROUPS: Final[dict[str, Callable[[IdleDevice], str]]] = {
    "team": lambda device: device.team,
    "namespace": lambda device: device.namespace,
    "node": lambda device: device.node or _NONE,
    "model": lambda device: device.model or _NONE,
}
"""What ``--by`` can group by."""


class IdleGroup(NamedTuple):
    """The idle devices of one team, namespace, node or model."""

    name: str
    gpus: int
    pods: int
    price: float | None
    """Per hour; None if no device has a price."""
    cost: float | None
    unpriced: int
    """Devices without a price, which are in neither sum."""


@dataclass(frozen=True, slots=True)
class IdleReport:
    """The result of a look; implements the port of :mod:`adapter.tools.client.command`."""

    devices: Sequence[IdleDevice]
    """The longest idle first."""
    now: float
    held: int
    """Devices that pods hold: idle, busy and not measured."""
    currency: str
    prices_note: str
    """What a reader of the sums has to know about the prices; empty if nothing."""
    by: str = ""
    minimum: float = 0.0
    """Seconds; devices that are idle for less are left out."""
    namespace: str = ""
    """The only namespace that was looked at; empty for all."""
    unmeasured: Mapping[str, int] = field(default_factory=dict)
    """Reason -> held devices of which nobody knows whether they are idle."""
    unsized: int = 0
    """Pods that hold devices that nobody reports, and it is not known how many."""

    @property
    def status(self) -> int:
        """1 if a device is idle; 2 if none is, and one could not be looked at."""
        unseen = UNSEEN if self.unmeasured or self.unsized else FINE
        return BLOCKED if self.devices else unseen

    def lines(self, screen: Screen) -> list[str]:
        """Return the table, the sum, and what is not known."""
        unknown = [part for line in self.unknown_lines() for part in screen.wrap(line)]
        if not self.devices:
            return [*self._no_idle_lines(), *unknown]
        rows = self._groups() if self.by else self._rows()
        return [*rows, "", *self._summary(screen, unknown)]

    def unknown_lines(self) -> list[str]:
        """Return how many devices could not be looked at, and why."""
        lines = []
        if total := sum(self.unmeasured.values()):
            ordered = sorted(self.unmeasured.items(), key=lambda row: (-row[1], row[0]))
            why = ", ".join(f"{number} {reason}" for reason, number in ordered)
            lines.append(
                f"{total} of the {count(self.held, 'GPU')} "
                f"{'is' if total == 1 else 'are'} not measured, so nobody knows whether "
                f"{'it is' if total == 1 else 'they are'} idle, or what that costs: {why}."
            )
        if self.unsized:
            single = self.unsized == 1
            lines.append(
                f"{count(self.unsized, 'pod')} {'holds' if single else 'hold'} GPUs that nobody "
                "reports, and it is not known how many: they are not counted."
            )
        return lines

    def _no_idle_lines(self) -> list[str]:
        """Return that no device is known to be idle."""
        pods, least = f"pods{self._place()}", age(self.minimum)
        measured = self.held - sum(self.unmeasured.values())
        if not self.held:
            if self.unsized:
                return []
            return [f"No pod{self._place()} holds a GPU that an exporter reports.{self._hint()}"]
        if not measured:
            return [f"No GPU that {pods} hold is measured.{self._hint()}"]
        none = "none" if measured == self.held else "no measured one"
        gpus = count(self.held, "GPU")
        return [
            f"Of {gpus} that {pods} hold, {none} has been idle for {least} or more.{self._hint()}"
        ]

    def _place(self) -> str:
        return f" of namespace {self.namespace}" if self.namespace else ""

    def _hint(self) -> str:
        return " -A looks at all namespaces." if self.namespace else ""

    def json(self) -> Json:
        """Return the idle devices, the sums, and what is not known."""
        return (
            self.idle_json()
            | {
                "unmeasured": sum(self.unmeasured.values()),
                "unmeasuredReasons": dict(sorted(self.unmeasured.items())),
                "unsizedPods": self.unsized,
            }
            | (self._groups_json() if self.by else {})
        )

    def _groups_json(self) -> Json:
        """Return the groups of ``--by`` for programs."""
        groups = [
            {
                "name": group.name,
                "gpus": group.gpus,
                "pods": group.pods,
                "pricePerHour": _round_amount(group.price),
                "costSoFar": _round_amount(group.cost),
                "withoutPrice": group.unpriced,
            }
            for group in self.groups()
        ]
        return {"by": self.by, "groups": groups}

    def idle_json(self) -> Json:
        """Return the idle devices, and the sums."""
        return {
            "namespace": self.namespace or None,
            "devices": [self._object(device) for device in self.devices],
            "held": self.held,
            "currency": self.currency,
            "pricePerHour": _round_amount(_sum(device.price for device in self.devices)),
            "costSoFar": _round_amount(_sum(device.cost(self.now) for device in self.devices)),
            "withoutPrice": sum(device.price is None for device in self.devices),
        }

    def csv(self) -> str:
        """Return the devices, or the groups of ``--by``, as CSV (RFC 4180), one line each."""
        text = io.StringIO()
        writer = csv.writer(text)
        if self.by:
            writer.writerow((self.by, *CSV_GROUPS))
            for group in self.groups():
                cells = (
                    *(group.name, str(group.gpus), str(group.pods), amount(group.price, "")),
                    *(amount(group.cost, ""), str(group.unpriced), self.currency),
                )
                writer.writerow(tuple(map(safe_cell, cells)))
            return text.getvalue()
        writer.writerow(CSV_HEADER)
        for d in self.devices:
            row = (
                *(d.gpu, d.uuid, d.model, d.mig_profile, d.node, d.namespace, " ".join(d.pods)),
                *(d.workload, d.team, instant.write(d.since)),
                f"{(self.now - d.since) / _HOUR:.2f}",
                *(_whole_number(d.used), _whole_number(d.total)),
                *(amount(d.price, ""), amount(d.cost(self.now), ""), self.currency, d.hint),
            )
            writer.writerow(tuple(map(safe_cell, row)))
        return text.getvalue()

    def _rows(self) -> list[str]:
        header = ("POD", "WORKLOAD", "GPU", "MODEL", "MEM HELD", "IDLE", "PRICE/H", "SO FAR")
        rows = [
            (
                f"{d.namespace}/{d.pods[0]}" + (f" +{len(d.pods) - 1}" if d.pods[1:] else ""),
                d.workload or _NONE,
                d.gpu,
                _model(d),
                _NONE if d.used is None else memory(d.used, d.total),
                age(self.now - d.since),
                amount(d.price),
                amount(d.cost(self.now)),
            )
            for d in self.devices
        ]
        return table(rows, header)

    def groups(self) -> list[IdleGroup]:
        """Return the sums of ``--by``, the most expensive first."""
        key = GROUPS[self.by]
        rows = []
        for name, some in groupby(sorted(self.devices, key=key), key):
            devices = list(some)
            price = _sum(device.price for device in devices)
            cost = _sum(device.cost(self.now) for device in devices)
            pods = {(d.namespace, pod) for d in devices for pod in d.pods}
            unpriced = sum(device.price is None for device in devices)
            rows.append(IdleGroup(name, len(devices), len(pods), price, cost, unpriced))
        return sorted(rows, key=lambda group: -(group.price or 0.0))

    def _groups(self) -> list[str]:
        header = (self.by.upper(), "GPUS", "PODS", "PRICE/H", "SO FAR")
        rows = [
            (group.name, str(group.gpus), str(group.pods), amount(group.price), amount(group.cost))
            for group in self.groups()
        ]
        return table(rows, header)

    def _summary(self, screen: Screen, unknown: Sequence[str]) -> list[str]:
        idle = len(self.devices)
        price = _sum(device.price for device in self.devices)
        cost = _sum(device.cost(self.now) for device in self.devices)
        missing = sum(device.price is None for device in self.devices)
        pods = f"pods{self._place()}"
        of = count(self.held, "GPU")
        head = f"{idle} of {of} that {pods} hold {'are' if idle > 1 else 'is'} idle"
        if price is not None and cost is not None:
            head += f": {amount(price)} {self.currency} an hour, {amount(cost)} so far"
        lines = [screen.style(head, "bold")]
        if missing:
            lines.append(f"{missing} of them have a model without a price: see --prices.")
        lines += unknown
        if self.prices_note:
            lines.append(self.prices_note)
        longest = self.devices[0]
        if longest.hint and not self.by:
            lines += screen.wrap(f"Longest idle: {longest.hint}")
        return lines

    def _object(self, device: IdleDevice) -> Json:
        fields: Json = {
            "gpu": device.gpu,
            "uuid": device.uuid,
            "model": device.model,
            "migProfile": device.mig_profile,
            "node": device.node,
            "namespace": device.namespace,
            "pods": list(device.pods),
            "workload": device.workload,
            "team": device.team,
            "idleSince": instant.write(device.since),
            "idleSeconds": int(self.now - device.since),
            "memoryUsedBytes": device.used,
            "memoryTotalBytes": device.total,
            "pricePerHour": _round_amount(device.price),
            "costSoFar": _round_amount(device.cost(self.now)),
            "hint": device.hint,
        }
        return {key: value for key, value in fields.items() if value not in ("", None)}


def _model(device: IdleDevice) -> str:
    model = device.model.removeprefix("NVIDIA ")
    return f"{model} {device.mig_profile}".strip() or _NONE


def _sum(numbers: Iterable[float | None]) -> float | None:
    """Return the sum of the known numbers; None if none is known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _round_amount(number: float | None) -> float | None:
    return None if number is None else round(number, 4)


def _whole_number(number: float | None) -> str:
    return "" if number is None else f"{number:.0f}"
