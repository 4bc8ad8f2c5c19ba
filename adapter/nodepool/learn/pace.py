"""How many pods an HPA creates at its next sync, from what was seen of it.

Pods that the HPA is about to create drive the node autoscaler within seconds. Headroom is for
the others: those that the HPA's rate limits and stabilization window hold back. The arithmetic
is the HPA controller's own (:mod:`adapter.hpa.behavior`); its memory of scale events is rebuilt
from the changes of ``spec.replicas`` that were seen. Where that memory is incomplete, after a
restart, more is expected of the HPA and less headroom is ordered.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from adapter.hpa import HpaSpec, Recommendation, ScaleEvent, Select
from adapter.hpa.behavior import Bounds, ScalingHistory, fastest, limit, limit_plain, stabilize
from adapter.hpa.spec import ControllerOptions

SYNC: Final = ControllerOptions().sync_period
"""Seconds within which the HPA controller looks again."""
_LONGEST: Final = 3600.0
"""Seconds that the longest policy period or window of an HPA takes."""
_MOST: Final = 256
"""Entries remembered of each kind; the API allows one sync in 15 s over an hour."""


class Pace(NamedTuple):
    """What was seen of one HPA's target."""

    replicas: int | None = None
    """``spec.replicas`` at the last look; None before the first."""
    recommendations: tuple[Recommendation, ...] = ()
    ups: tuple[ScaleEvent, ...] = ()
    downs: tuple[ScaleEvent, ...] = ()


NEW: Final = Pace()


def follow(pace: Pace, replicas: int, wanted: int | None, now: float) -> Pace:
    """Remember what is seen now.

    Args:
        replicas: ``spec.replicas`` of the target.
        wanted: what its metrics ask for; None where they cannot be read.
    """
    ups, downs, asked = pace.ups, pace.downs, pace.recommendations
    change = 0 if pace.replicas is None else replicas - pace.replicas
    if change > 0:
        ups = (*ups, ScaleEvent(change, now))
    if change < 0:
        downs = (*downs, ScaleEvent(-change, now))
    if wanted is not None and _new(asked, wanted, now):
        asked = (*asked, Recommendation(wanted, now))
    oldest = now - _LONGEST
    return Pace(
        replicas,
        tuple(row for row in asked if oldest <= row.time <= now)[-_MOST:],
        tuple(row for row in ups if oldest <= row.time <= now)[-_MOST:],
        tuple(row for row in downs if oldest <= row.time <= now)[-_MOST:],
    )


def _new(asked: tuple[Recommendation, ...], wanted: int, now: float) -> bool:
    last = asked[-1] if asked else None
    return last is None or last.replicas != wanted or now - last.time >= SYNC


def after_next_sync(
    spec: HpaSpec, pace: Pace, replicas: int, wanted: int | None, now: float
) -> int:
    """The replicas that the HPA will have set by ``now`` plus :data:`SYNC`, at most.

    Args:
        replicas: ``spec.replicas`` of the target now.
        wanted: what its metrics ask for; None where they cannot be read.
    """
    if replicas == 0 or wanted is None:
        # The HPA is off, or decides nothing.
        return replicas
    if replicas < spec.min_replicas:
        return spec.min_replicas
    if wanted <= replicas:
        return replicas
    bounds = Bounds(spec.min_replicas, spec.max_replicas)
    if spec.behavior is None:
        return max(replicas, limit_plain(replicas, wanted, bounds).replicas)
    then = now + SYNC
    window = spec.behavior.scale_up.window or 0.0
    stable, _ = stabilize(pace.recommendations, replicas, wanted, (window, 0.0), then)
    past = ScalingHistory((), pace.ups, pace.downs)
    rate = fastest(past, spec.behavior, replicas, then)
    return max(replicas, limit(replicas, stable.replicas, rate, bounds).replicas)


def ceiling(spec: HpaSpec, replicas: int) -> int:
    """Most pods that the HPA may ever ask for: ``maxReplicas``, or where it may not scale up,
    the pods that there are."""
    rules = spec.behavior
    if rules is not None and rules.scale_up.select is Select.DISABLED:
        return min(spec.max_replicas, max(replicas, spec.min_replicas))
    return spec.max_replicas
