"""What the HPA controller remembers of earlier syncs, as far as its status and events show it.

The controller keeps recommendations and scale events in memory only. What is not shown is left to
the defaults of a new HPA, and each guess is a remark of the explanation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from adapter.hpa import (
    Behavior,
    Condition,
    ControllerOptions,
    HpaSpec,
    HpaState,
    Recommendation,
    ScaleEvent,
)
from adapter.hpa.behavior import ScalingHistory, rate_bounds
from adapter.tools.client.access import Json
from apiservice.wire import instant

_SIZE: Final = re.compile(r"New size: (\d+);")
_DAY: Final = 86400.0


class Inferred(NamedTuple):
    """The controller's memory, and what of it is a guess."""

    state: HpaState
    remarks: tuple[str, ...]
    synced: bool
    """The controller has synced this HPA at least once."""


def infer(
    hpa: Json,
    spec: HpaSpec,
    replicas: int,
    events: Sequence[Json],
    now: float,
    controller: ControllerOptions,
) -> Inferred:
    """Return what the controller remembers.

    Args:
        hpa: the manifest, with its status.
        spec: the same, parsed.
        replicas: current size of the scale target.
        events: of the HPA.
        now: epoch seconds.
        controller: the controller's flags.
    """
    status = hpa.get("status") or {}
    conditions = tuple(conditions_of(status))
    by_type = {row.type: row for row in conditions}
    if not conditions:
        return Inferred(HpaState(), ("the HPA controller has not synced this HPA yet",), False)
    desired = int(status.get("desiredReplicas") or 0)
    recommendations = _recommendations(by_type, desired, replicas, spec, now, controller)
    ups, downs = _changes(spec, events, now)
    remarks: list[str] = []
    if spec.behavior is not None:
        bound = _limiting_changes(by_type, spec.behavior, status, replicas, now)
        ups, downs = bound or (ups, downs)
    stable = by_type.get("AbleToScale")
    if stable is not None and stable.reason.endswith("Stabilized"):
        remarks.append(
            "how long the stabilization window still holds is not visible from outside; at most "
            f"{_window(spec, controller, up='Up' in stable.reason):g} s"
        )
    return Inferred(HpaState(recommendations, ups, downs, conditions), tuple(remarks), True)


def conditions_of(status: Json) -> list[Condition]:
    """Return the conditions of an HPA's status."""
    return [
        Condition(
            str(row.get("type")),
            row.get("status") == "True",
            str(row.get("reason") or ""),
            str(row.get("message") or ""),
            instant.read(row.get("lastTransitionTime")) or 0.0,
        )
        for row in status.get("conditions") or ()
    ]


def _window(spec: HpaSpec, controller: ControllerOptions, *, up: bool) -> float:
    if spec.behavior is None:
        return 0.0 if up else controller.downscale_stabilization
    if up:
        return spec.behavior.scale_up.window or 0.0
    window = spec.behavior.scale_down.window
    return controller.downscale_stabilization if window is None else window


def _recommendations(
    by_type: dict[str, Condition],
    desired: int,
    replicas: int,
    spec: HpaSpec,
    now: float,
    controller: ControllerOptions,
) -> tuple[Recommendation, ...]:
    """The extreme recommendation of the window is what the controller asked for last."""
    active, able = by_type.get("ScalingActive"), by_type.get("AbleToScale")
    if active is not None and not active.status:
        # Failed syncs recommend nothing: what was recommended before them expires.
        return (Recommendation(replicas, min(active.since, now)),)
    desired += _step_beyond_limit(by_type.get("ScalingLimited"))
    if able is not None and able.reason.endswith("Stabilized"):
        window = _window(spec, controller, up="Up" in able.reason)
        return (Recommendation(desired, now - min(controller.sync_period, window / 2)),)
    return (Recommendation(desired, now - controller.sync_period),)


def _step_beyond_limit(limited: Condition | None) -> int:
    """A limit that held the last sync shows that the recommendation was beyond it."""
    if limited is None or not limited.status:
        return 0
    return 1 if limited.reason in ("TooManyReplicas", "ScaleUpLimit") else -1


def decided_size(status: Json) -> int | None:
    """Return the size that the last sync decided on; None if it did not decide.

    A sync that cannot decide leaves ``desiredReplicas`` as it was, which is 0 in a new HPA.
    """
    rows = {row.get("type"): row.get("status") for row in status.get("conditions") or ()}
    desired = status.get("desiredReplicas")
    if rows.get("AbleToScale") != "True" or rows.get("ScalingActive", "True") != "True":
        return None
    return desired if isinstance(desired, int) else None


def _changes(
    spec: HpaSpec, events: Sequence[Json], now: float
) -> tuple[tuple[ScaleEvent, ...], tuple[ScaleEvent, ...]]:
    """The changes between the sizes that events name. The size before the oldest is not known."""
    if spec.behavior is None:
        return (), ()
    sizes = sorted(
        (moment, int(size[1]))
        for row in events
        if row.get("reason") == "SuccessfulRescale"
        and (size := _SIZE.search(str(row.get("message") or "")))
        and (moment := event_time(row)) is not None
        and moment > now - _DAY
    )
    ups: list[ScaleEvent] = []
    downs: list[ScaleEvent] = []
    for (_, before), (moment, after) in pairwise(sizes):
        if after != before:
            (ups if after > before else downs).append(ScaleEvent(abs(after - before), moment))
    return tuple(ups), tuple(downs)


def _limiting_changes(
    by_type: dict[str, Condition], behavior: Behavior, status: Json, replicas: int, now: float
) -> tuple[tuple[ScaleEvent, ...], tuple[ScaleEvent, ...]] | None:
    """Return the smallest change that explains why a rate limit held the last sync."""
    limited, able = by_type.get("ScalingLimited"), by_type.get("AbleToScale")
    last_scale = instant.read(status.get("lastScaleTime"))
    if limited is None or able is None or last_scale is None or able.reason == "SucceededRescale":
        return None
    if not limited.status or limited.reason not in ("ScaleUpLimit", "ScaleDownLimit"):
        return None
    for change in range(replicas + 1000):
        event = (ScaleEvent(change, last_scale),)
        ups, downs = (event, ()) if limited.reason == "ScaleUpLimit" else ((), event)
        bounds = rate_bounds(ScalingHistory((), ups, downs), behavior, replicas, now)
        if status["desiredReplicas"] == (bounds.high if ups else bounds.low):
            return ups, downs
    return None


def event_time(row: Json) -> float | None:
    """Return when an event last happened."""
    series = row.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        row.get("lastTimestamp"),
        row.get("eventTime"),
        (row.get("metadata") or {}).get("creationTimestamp"),
    )
    return next((moment for moment in map(instant.read, times) if moment is not None), None)
