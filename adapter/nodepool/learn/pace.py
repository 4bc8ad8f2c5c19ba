"""Predict how many pods an HPA creates at its next sync.

Pods that the HPA is about to create trigger the node autoscaler within seconds. Headroom is for
the other pods, which the HPA's rate limits and stabilization window delay. The calculation is the
HPA controller's (:mod:`adapter.hpa.behavior`). The scale events are reconstructed from observed
changes of ``spec.replicas``. After a restart they are incomplete: the prediction is higher, and
less headroom is ordered.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from adapter.hpa import HpaSpec, Recommendation, ScaleEvent, Select
from adapter.hpa.behavior import Bounds, ScalingHistory, limit, limit_plain, rate_bounds, stabilize
from adapter.hpa.spec import ControllerOptions

SYNC: Final = ControllerOptions().sync_period
"""Maximum seconds until the next sync of the HPA controller."""
_LONGEST: Final = 3600.0
"""Maximum seconds of a policy period or window of an HPA."""
_MOST: Final = 256
"""Maximum entries of each kind: one sync per 15 s in an hour."""


class Pace(NamedTuple):
    """Observations of one HPA's target."""

    replicas: int | None = None
    """``spec.replicas`` in the last round; None before the first."""
    recommendations: tuple[Recommendation, ...] = ()
    ups: tuple[ScaleEvent, ...] = ()
    downs: tuple[ScaleEvent, ...] = ()


NEW: Final = Pace()


def follow(pace: Pace, replicas: int, wanted: int | None, now: float) -> Pace:
    """Record the current observation.

    Args:
        replicas: ``spec.replicas`` of the target.
        wanted: replicas that its metrics call for; None if they cannot be read.
    """
    ups, downs, recommendations = pace.ups, pace.downs, pace.recommendations
    change = 0 if pace.replicas is None else replicas - pace.replicas
    if change > 0:
        ups = (*ups, ScaleEvent(change, now))
    if change < 0:
        downs = (*downs, ScaleEvent(-change, now))
    if wanted is not None and _is_new_recommendation(recommendations, wanted, now):
        recommendations = (*recommendations, Recommendation(wanted, now))
    oldest = now - _LONGEST
    return Pace(
        replicas,
        tuple(row for row in recommendations if oldest <= row.time <= now)[-_MOST:],
        tuple(row for row in ups if oldest <= row.time <= now)[-_MOST:],
        tuple(row for row in downs if oldest <= row.time <= now)[-_MOST:],
    )


def _is_new_recommendation(
    recommendations: tuple[Recommendation, ...], wanted: int, now: float
) -> bool:
    last = recommendations[-1] if recommendations else None
    return last is None or last.replicas != wanted or now - last.time >= SYNC


def replicas_after_next_sync(
    spec: HpaSpec, pace: Pace, replicas: int, wanted: int | None, now: float
) -> int:
    """Return the maximum replicas that the HPA can set until ``now`` plus :data:`SYNC`.

    Args:
        replicas: current ``spec.replicas`` of the target.
        wanted: replicas that its metrics call for; None if they cannot be read.
    """
    if replicas == 0 or wanted is None:
        # The HPA is switched off, or cannot decide.
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
    rate = rate_bounds(past, spec.behavior, replicas, then)
    return max(replicas, limit(replicas, stable.replicas, rate, bounds).replicas)


def ceiling(spec: HpaSpec, replicas: int) -> int:
    """Return the maximum pods of the HPA: ``maxReplicas``, or the current pods if it may not
    scale up."""
    rules = spec.behavior
    if rules is not None and rules.scale_up.select is Select.DISABLED:
        return min(spec.max_replicas, max(replicas, spec.min_replicas))
    return spec.max_replicas
