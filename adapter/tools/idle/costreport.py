"""The report of ``costs``: GPU-hours and their cost by group, as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from adapter.config.process.output import Screen, table
from adapter.figures import age
from adapter.tools.client.command import FINE
from adapter.tools.idle.cells import amount, safe_cell
from adapter.tools.idle.hours import GpuHours, HeldHours, HoursAnswer
from adapter.tools.idle.prices import PriceList
from apiservice.selfmetrics.families import OTHER

Json = dict[str, Any]
_NONE: Final = "-"
_WHOLE: Final = 0.98
"""The counters cover a time if they cover this part of it: a query sees no part of a step."""
GROUPS: Final[dict[str, Callable[[HeldHours], str]]] = {
    "namespace": lambda row: row.namespace,
    "team": lambda row: row.team,
    "workload": lambda row: f"{row.namespace}/{row.workload}",
    "model": lambda row: row.model or _NONE,
    "instance": lambda row: row.instance_type or _NONE,
}
"""What ``--by`` can group by."""


class Cost(NamedTuple):
    """What GPU-hours cost."""

    allocated: float = 0.0
    used: float = 0.0
    idle: float = 0.0
    unknown: float = 0.0
    unpriced: float = 0.0
    """GPU-hours without a price, which are in none of the sums."""

    def plus(self, other: Cost) -> Cost:
        """Return the sum."""
        return Cost(*[part + more for part, more in zip(self, other, strict=True)])


class CostGroup(NamedTuple):
    """One line."""

    name: str
    hours: GpuHours
    cost: Cost

    @property
    def priced(self) -> bool:
        """Whether a part of its hours has a price."""
        return self.hours.allocated > self.cost.unpriced


@dataclass(frozen=True, slots=True)
class CostReport:
    """The result of a look; implements the port of :mod:`adapter.tools.client.command`."""

    answer: HoursAnswer
    over: float
    """Seconds."""
    by: str
    prices: PriceList
    namespace: str = ""
    """The only namespace that is counted; empty for all."""

    @property
    def status(self) -> int:
        """0: it shows and does not judge."""
        return FINE

    @property
    def rows(self) -> Sequence[HeldHours]:
        """What is counted. The account of the rest is of no namespace: see its label."""
        if not self.namespace:
            return self.answer.rows
        return [
            row
            for row in self.answer.rows
            if row.namespace == self.namespace and row.workload != OTHER
        ]

    @property
    def rest(self) -> float:
        """GPU-hours of the smallest workloads of all namespaces, which count as one account."""
        return sum(row.hours.allocated for row in self.answer.rows if row.workload == OTHER)

    def groups(self) -> list[CostGroup]:
        """Return the groups, what costs most without being used first."""
        key = GROUPS[self.by]
        groups: dict[str, CostGroup] = {}
        for row in self.rows:
            name = key(row)
            before = groups.get(name, CostGroup(name, GpuHours(), Cost()))
            groups[name] = CostGroup(
                name, before.hours.plus(row.hours), before.cost.plus(cost_of(row, self.prices))
            )
        return sorted(
            groups.values(), key=lambda group: (-group.cost.idle, -group.hours.idle, group.name)
        )

    def lines(self, screen: Screen) -> list[str]:
        """Return the table, the sum and what is missing in it."""
        groups = self.groups()
        if not groups:
            return [self._no_hours_line(), *self._missing_lines(screen)]
        header = (self.by.upper(), "ALLOCATED", "USED", "IDLE", "UNKNOWN", "EFFICIENCY")
        money = ("COST", "IDLE COST")
        rows = [
            (
                group.name,
                *(f"{number:.1f}h" for number in (group.hours.allocated, *group.hours)),
                _percent(group.hours.efficiency),
                *(amount(number if group.priced else None) for number in group.cost[:3:2]),
            )
            for group in groups
        ]
        return [*table(rows, (*header, *money)), "", *self._summary(groups, screen)]

    def _summary(self, groups: Sequence[CostGroup], screen: Screen) -> list[str]:
        hours, cost = _total(groups)
        priced = any(group.priced for group in groups)
        text = (
            f"{hours.allocated:.1f} GPU-hours in the last {age(self.over)}: {hours.used:.1f} used, "
            f"{hours.idle:.1f} idle, {hours.unknown:.1f} unknown; "
            f"efficiency {_percent(hours.efficiency)}"
        )
        lines = [screen.style(line, "bold") for line in screen.wrap(text)]
        if priced:
            lines.append(
                f"{amount(cost.allocated)} {self.prices.currency}, of which "
                f"{amount(cost.idle)} idle and {amount(cost.unknown)} unknown"
            )
        lines += self._missing_lines(screen)
        if cost.unpriced > 0:
            lines += screen.wrap(
                f"{cost.unpriced:.1f} GPU-hours have no price and are in no cost: "
                f"{', '.join(self._unpriced_gpus())}."
            )
        return [*lines, self.prices.note] if self.prices.note else lines

    def _no_hours_line(self) -> str:
        """Return what is known if no hours are counted."""
        if self.namespace and self.rest:
            return (
                f"No workload of namespace {self.namespace} was counted one by one in the last "
                f"{age(self.over)}."
            )
        place = f" of namespace {self.namespace}" if self.namespace else ""
        return f"No pod{place} held a GPU in the last {age(self.over)}."

    def _missing_lines(self, screen: Screen) -> list[str]:
        """Return what the hours may lack."""
        lines: list[str] = []
        if self.answer.counted < _WHOLE * self.over:
            lines += screen.wrap(
                f"`serve` counted for {age(self.answer.counted)} of the {age(self.over)}; nothing "
                "is known about the rest."
            )
        if self.answer.partial:
            lines += screen.wrap(f"Series may be missing: {self.answer.partial}")
        if self.rest:
            limits = "accounting.accounts limits how many are counted one by one."
            if self.namespace:
                lines += screen.wrap(
                    f"{self.rest:.1f} GPU-hours of the smallest workloads of all namespaces are "
                    f"not in this, and some may be of {self.namespace}: {limits}"
                )
            else:
                lines += screen.wrap(f"`{OTHER}` are the smallest workloads: {limits}")
        return lines

    def _unpriced_gpus(self) -> list[str]:
        """Return the kinds of GPUs without a price, those with most hours first."""
        hours: dict[str, float] = {}
        for row in self.rows:
            if unpriced := cost_of(row, self.prices).unpriced:
                words = (row.model or "unknown model", row.instance_type, row.capacity)
                name = " ".join(word for word in words if word)
                hours[name] = hours.get(name, 0.0) + unpriced
        return sorted(hours, key=lambda name: (-hours[name], name))[:5]

    def json(self) -> Json:
        """Return the groups and the sums."""
        groups = self.groups()
        hours, cost = _total(groups)
        return {
            "over": self.over,
            "counted": round(self.answer.counted),
            "by": self.by,
            "namespace": self.namespace or None,
            "currency": self.prices.currency,
            "pricesOf": self.prices.newest.isoformat() if self.prices.newest else None,
            "groups": [
                {"name": group.name, **_object(group.hours, group.cost)} for group in groups
            ],
            **_object(hours, cost),
            "otherGpuHours": round(self.rest, 4),
        }

    def csv(self) -> str:
        """Return a line for each group (RFC 4180)."""
        text = io.StringIO()
        writer = csv.writer(text)
        names = list(_object(GpuHours(), Cost()))
        writer.writerow((self.by, *names, "currency"))
        for group in self.groups():
            cells = _object(group.hours, group.cost).values()
            numbers = ("" if cell is None else str(cell) for cell in cells)
            writer.writerow((safe_cell(group.name), *numbers, self.prices.currency))
        return text.getvalue()


def cost_of(row: HeldHours, prices: PriceList) -> Cost:
    """Return what the hours of a row cost; without a price they are unpriced."""
    price = prices.of(row.model, "", row.instance_type, row.capacity)
    if price is None:
        return Cost(unpriced=row.hours.allocated)
    return Cost(row.hours.allocated * price, *[hours * price for hours in row.hours])


def _total(groups: Iterable[CostGroup]) -> tuple[GpuHours, Cost]:
    hours, cost = GpuHours(), Cost()
    for group in groups:
        hours, cost = hours.plus(group.hours), cost.plus(group.cost)
    return hours, cost


def _object(hours: GpuHours, cost: Cost) -> Json:
    priced = hours.allocated > cost.unpriced
    efficiency = hours.efficiency
    return {
        "allocatedGpuHours": round(hours.allocated, 4),
        **{f"{state}GpuHours": round(number, 4) for state, number in hours._asdict().items()},
        "efficiency": None if efficiency is None else round(efficiency, 4),
        **{
            f"{word}Cost": round(getattr(cost, word), 4) if priced else None
            for word in ("allocated", *GpuHours._fields)
        },
        "withoutPriceGpuHours": round(cost.unpriced, 4),
    }


def _percent(part: float | None) -> str:
    return _NONE if part is None else f"{100 * part:.0f}%"
