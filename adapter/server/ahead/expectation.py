"""What the load of a workload will not exceed until a replica created now is Ready. Pure.

The load is the sum of a metric over the pods of a workload. The forecast and its checks are those
of the node-pool controller (:mod:`adapter.nodepool.learn.forecast`), with the time that a replica
takes from its creation to Ready in place of the boot time of a node. There, the load is in pods:
its noise grows as the root of what one pod carries. Here, the load is divided by what one replica
has carried (:class:`~adapter.server.ahead.replicaload.ReplicaLoad`).

The expectation only raises. It is the present load where the forecast has failed its own checks:
they held too seldom, or the present load alone would have cost less. With too few checks, only the
rises of earlier days at this time count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from adapter.nodepool.learn.checks import FEWEST_MOVING
from adapter.nodepool.learn.forecast import ForecastRequest, due_rises, load_ahead
from adapter.nodepool.model.history import MINUTE, DemandDay, DemandHistory, DemandPoint


class Expectation(NamedTuple):
    """What a load will not exceed."""

    present: float
    """The newest load, in the unit of the metric."""
    most: float
    """What it will not exceed, not below the present."""
    stated: bool
    """Whether the probability is that of a forecast that holds by its own checks. Otherwise
    ``most`` is the present load, or rests on earlier days alone."""
    text: str
    """What it is based on, for people."""


def expect(
    history: DemandHistory, per_replica: float, lead: float, probability: float, now: float
) -> Expectation | str:
    """Return what a load will not exceed within the lead time, or why that is unknown.

    Args:
        history: of the load, in the unit of the metric.
        per_replica: the load that one replica carries, in that unit, above 0.
        lead: seconds from the creation of a replica until it is Ready.
        probability: 0 to 1.
        now: epoch seconds.
    """
    scaled = _scale_history(history, 1 / per_replica)
    forecast = load_ahead(scaled, ForecastRequest(lead, probability, share=0.0), now)
    if isinstance(forecast, str):
        return forecast
    present = history.recent[-1].pods
    record, within = forecast.own, f"within {max(1, round(lead / MINUTE))} min"
    checks = f"{record.held} of {record.judged} such forecasts held"
    failed = ""
    if record.seldom:
        failed = f"only {checks}"
    elif record.takes_share and not record.unchecked:
        failed = "the present load would have cost less than forecasts"
    if failed:
        return Expectation(present, present, stated=False, text=f"the present load: {failed}")
    proven = not record.unproven and record.largest is not None
    if not proven:
        now_pods = scaled.recent[-1].pods
        forecast = forecast._replace(below=lambda _: now_pods)
    shown = _highest_load(history)
    due = due_rises(scaled, lead, now)
    pods = max(
        forecast.quantile(probability), record.situation.level + _usual_rise(due, probability)
    )
    most = max(present, min(shown, pods * per_replica))
    if not proven:
        why = f"only {record.judged} of {FEWEST_MOVING} forecasts have been checked"
        based = f"{why}; {len(forecast.rises)} earlier days" if forecast.rises else why
        return Expectation(present, most, stated=False, text=based)
    text = f"not exceeded {within} with {probability:.0%}; {checks}"
    return Expectation(present, most, stated=True, text=text)


def _usual_rise(rises: Sequence[float], probability: float) -> float:
    """Return the rise that as many of the earlier days had at this time as the probability says.

    In the mixture of the forecast, days have the weight of a part. So what each of them had is
    beyond its quantile, unless the probability is high.

    Args:
        rises: those that today has not shown, smallest first.

    Returns:
        Pods; minus infinity if too few days are known.
    """
    return rises[int((1 - probability) * len(rises))] if rises else -math.inf


def _highest_load(history: DemandHistory) -> float:
    """Return the highest load that the history has: nothing above it is expected."""
    recent = max(point.pods for point in history.recent)
    peaks = [peak for day in history.days for peak in day.peaks if peak is not None]
    return max(recent, max(peaks, default=-math.inf))


def _scale_history(history: DemandHistory, factor: float) -> DemandHistory:
    """Return the history with each load multiplied."""
    return replace(
        history,
        recent=tuple(DemandPoint(time, load * factor) for time, load in history.recent),
        days=tuple(
            DemandDay(day.number, tuple(None if p is None else p * factor for p in day.peaks))
            for day in history.days
        ),
    )
