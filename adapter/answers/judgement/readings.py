"""Each metric of an HPA as the controller last read it: numbers, and the same as texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from adapter.figures import decimal, memory, number
from adapter.hpa import quantity
from adapter.pipeline.cluster.hpas import ShownHpa, ShownMetric


class MetricReading(NamedTuple):
    """One metric of an HPA."""

    name: str
    type: str
    """``Pods``, ``Object``, ``External``, ``Resource`` or ``ContainerResource``."""
    value: float | None
    """None if the status has none."""
    value_text: str
    goal: float | None
    goal_text: str

    @property
    def ratio(self) -> float | None:
        """The value against its target; None if one of them is missing."""
        return self.value / self.goal if self.value is not None and self.goal else None

    @property
    def words(self) -> str:
        """``gpu_utilization 54 of 60``."""
        return f"{self.name} {self.value_text} of {self.goal_text}"

    def json(self) -> dict[str, Any]:
        """The row of the page."""
        return {
            "name": self.name,
            "value": self.value,
            "valueText": self.value_text or None,
            "goal": self.goal,
            "goalText": self.goal_text or None,
            "type": self.type,
        }


def readings_of(hpa: ShownHpa) -> tuple[MetricReading, ...]:
    """Return the metrics of an HPA, in the order of its spec."""
    return tuple(_reading(metric) for metric in hpa.metrics)


def leading_reading(readings: Sequence[MetricReading]) -> MetricReading | None:
    """Return the metric with the highest value against its target; else the first one."""
    ratios = [(ratio, row) for row in readings if (ratio := row.ratio) is not None]
    if ratios:
        return max(ratios, key=lambda pair: pair[0])[1]
    return readings[0] if readings else None


def _reading(shown: ShownMetric) -> MetricReading:
    unit = "bytes" if shown.name == "memory" or shown.name.endswith("_bytes") else ""
    value, value_text = _amount(shown.current, unit)
    if value is not None and value >= 1 and not unit and not value_text.endswith("%"):
        value_text = decimal(value, 1)  # a mean over pods has three decimals
    goal, goal_text = _amount(shown.target, unit)
    return MetricReading(shown.name, shown.type, value, value_text, goal, goal_text)


def _amount(text: str, unit: str) -> tuple[float | None, str]:
    """Return a quantity, or a percentage, as a number and as a text."""
    share = text.endswith("%")
    try:
        milli = quantity.to_milli(quantity.parse(text.removesuffix("%")))
    except ValueError:
        return None, ""
    if share:
        return milli / 1000, text
    return milli / 1000, memory(milli / 1000) if unit == "bytes" else number(milli / 1000)
