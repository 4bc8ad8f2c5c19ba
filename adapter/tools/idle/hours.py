"""GPU-hours over a time, from the counters of `serve` in a Prometheus.

Each replica of `serve` counts all pods, at times of its own. So their mean counts, for each
step: the largest of each state would add up to more than was held. In a step in which a
replica starts or ends, the mean is too low by what this replica did not see.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from adapter.figures import age
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.seriesreader import QueriedSeries, SeriesReader
from adapter.tools.client.errors import ClientError

METRIC: Final = "gma_gpu_seconds_total"
LABELS: Final = ("namespace", "workload", "team", "model", "instance_type", "capacity", "state")
_SHORTEST: Final = 300.0
"""Seconds of a step: two scrapes of every usual interval are in it, and Prometheus finds a sample
for so long. A shorter step has no increase at all, or the same increase as the step before."""
_MOST_STEPS: Final = 10_000
_RENAMED: Final = "exported_namespace"
_RENAMED_TEXT: Final = (
    f"Prometheus renames the label `namespace` of {METRIC}: set `honorLabels: true` "
    "(`honor_labels`) where it scrapes `serve`, see docs/costs.md"
)


class GpuHours(NamedTuple):
    """Hours of whole GPUs that pods held."""

    used: float = 0.0
    idle: float = 0.0
    unknown: float = 0.0

    @property
    def allocated(self) -> float:
        """All of them."""
        return sum(self)

    @property
    def efficiency(self) -> float | None:
        """The used part of what is known, from 0 to 1; None if nothing is known."""
        known_hours = self.used + self.idle
        return self.used / known_hours if known_hours > 0 else None

    def plus(self, other: GpuHours) -> GpuHours:
        """Return the sum."""
        return GpuHours(*[part + more for part, more in zip(self, other, strict=True)])


class HeldHours(NamedTuple):
    """The GPU-hours of one workload on one kind of node."""

    namespace: str
    workload: str
    team: str
    """The pods' label, or else the namespace."""
    model: str
    instance_type: str
    capacity: str
    hours: GpuHours


class HoursAnswer(NamedTuple):
    """What the store has about a time."""

    rows: Sequence[HeldHours]
    counted: float
    """Seconds of the time for which the store has the counters."""
    partial: str
    """Why series may be missing, by the engine; empty if the answer is complete."""


def step_of(over: float) -> float:
    """Return the seconds of a step of the query for a time in seconds."""
    return math.ceil(max(_SHORTEST, over / _MOST_STEPS))


def hours_query(over: float, step: float, matchers: str = "") -> str:
    """Return the query of the GPU-hours of each set of :data:`LABELS`.

    Args:
        over: seconds up to now.
        step: seconds; at least two scrapes by the store.
        matchers: PromQL, of the series.
    """
    series = f"{METRIC}{{{matchers}}}" if matchers else METRIC
    labels = ", ".join(("holder", *LABELS))
    mean = f"avg by ({labels}) (increase({series}[{_span(step)}]))"
    spans = f"sum_over_time(({mean})[{_span(over)}:{_span(step)}])"
    return f"sum by ({', '.join(LABELS)}) ({spans}) / 3600"


async def read_hours(
    reader: SeriesReader,
    over: float,
    *,
    matchers: str = "",
    step: float | None = None,
    at: float | None = None,
) -> HoursAnswer:
    """Return the GPU-hours of each workload over a time up to now.

    Args:
        reader: of the store.
        over: seconds.
        matchers: PromQL, of the series.
        step: seconds of a step; chosen by the time if it is None.
        at: epoch seconds of the end of the time; now if it is None.

    Raises:
        ClientError: the store does not answer, has no counters or too few samples of them, or
            renames their labels.
    """
    step = step or step_of(over)
    more = f",{matchers}" if matchers else ""
    renamed = f'count({METRIC}{{{_RENAMED}!=""{more}}})'
    present = f"count_over_time((count({METRIC}{{{matchers}}}))[{_span(over)}:{_span(step)}])"
    try:
        if (await reader.instant(renamed, at)).series:
            raise ClientError(_RENAMED_TEXT)
        answer = await reader.instant(hours_query(over, step, matchers), at)
        counted = (await reader.instant(present, at)).series
    except SourceError as error:
        raise ClientError(f"{reader.url}: {error}") from None
    if not counted:
        raise ClientError(
            f"{reader.url} has no {METRIC} of the last {age(over)}: let it scrape `serve` "
            "(docs/observability.md)"
        )
    if not answer.series:
        # The account of the rest has a counter even if no pod holds a GPU.
        why = f" ({answer.partial})" if answer.partial else ""
        raise ClientError(
            f"{reader.url} has {METRIC}, but no two samples within {age(step)} of the last "
            f"{age(over)}{why}: let it scrape `serve` every minute; if that has just begun, wait "
            f"{age(2 * step)}"
        )
    seconds = min(over, counted[0].points.values[-1] * step)
    return HoursAnswer(_by_workload(answer.series), seconds, answer.partial)


def _by_workload(all_series: Sequence[QueriedSeries]) -> Sequence[HeldHours]:
    """Return the rows of an answer, one for the three states of each set of labels."""
    rows: dict[tuple[str, ...], GpuHours] = {}
    for series in all_series:
        *of, state = (series.labels.get(name, "") for name in LABELS)
        value = series.points.values[-1] if series.points else math.nan
        if state in GpuHours._fields and math.isfinite(value):
            key = tuple(of)
            rows[key] = rows.get(key, GpuHours()).plus(GpuHours(**{state: value}))
    return [
        HeldHours(namespace, workload, team or namespace, model, kind, capacity, hours)
        for (namespace, workload, team, model, kind, capacity), hours in rows.items()
        if hours.allocated > 0
    ]


def _span(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms" if seconds % 1 else f"{round(seconds)}s"
