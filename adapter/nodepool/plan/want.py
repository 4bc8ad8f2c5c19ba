"""How many pods an HPA would have if only its metrics decided. Pure.

``status.desiredReplicas`` is clamped: by the rate at which the HPA may grow, by windows, by
``maxReplicas``. What its metrics ask for is known seconds to minutes earlier, by the HPA
controller's own arithmetic (:func:`adapter.hpa.replicas.propose`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from adapter.hpa import HpaSpec, MetricSpec, Observation
from adapter.hpa.conditions import name_of
from adapter.hpa.replicas import InvalidMetricError, Tolerances, propose
from adapter.hpa.spec import ControllerOptions
from adapter.nodepool.model.reason import Reason, count_pods
from adapter.nodepool.seen.autoscalers import Readable

RATE_LIMITED = "ScaleUpLimit"
"""ScalingLimited: the HPA grows as fast as it may, and wants more."""
AT_MOST = "TooManyReplicas"
"""ScalingLimited: the HPA is at ``maxReplicas``, and wants more."""


class Want(NamedTuple):
    """What an HPA asks for."""

    pods: int | None
    """Not below ``minReplicas``, not clamped at ``maxReplicas``; None where nobody knows."""
    ceiling: int
    """Most pods that it may get."""
    reason: Reason
    parked: bool = False
    """Its target is scaled to 0, and only a person will scale it up again."""


def wanted(
    hpa: Readable, seen: Observation, status: Mapping[str, Any], *, from_zero: bool = False
) -> Want:
    """What an HPA's metrics ask for, the largest of them.

    Args:
        seen: one entry of ``values`` for each of ``hpa.spec.metrics``.
        status: of the HPA; says what metrics decided that could not be read here.
        from_zero: something scales the target from 0 (KEDA). Otherwise an HPA whose target
            has 0 replicas is switched off.
    """
    spec = hpa.spec
    if seen.replicas == 0 and spec.min_replicas > 0 and not from_zero:
        reason = Reason("parked", "its target is scaled to 0: the HPA is switched off")
        return Want(0, spec.max_replicas, reason, parked=True)
    asked, unread = _proposals(spec, seen)
    decided = _decided(status) if unread or hpa.left_out else None
    rows = [*asked, *([decided] if decided is not None else [])]
    if not rows:
        text = f"no metric could be read: {unread[0]}" if unread else "it has no metric"
        return Want(None, spec.max_replicas, Reason("unreadable", text))
    most = max(rows, key=lambda row: row.pods)
    pods = max(most.pods, spec.min_replicas)
    return Want(pods, spec.max_replicas, most.reason)


class _Asked(NamedTuple):
    pods: int
    reason: Reason


def _proposals(spec: HpaSpec, seen: Observation) -> tuple[list[_Asked], list[str]]:
    """What each metric asks for, and why the others do not."""
    asked: list[_Asked] = []
    unread: list[str] = []
    tolerances = _tolerances(spec)
    for metric, values in zip(spec.metrics, seen.values, strict=True):
        try:
            pods, _ = propose(metric, values, seen, spec.namespace, tolerances)
        except InvalidMetricError as error:
            unread.append(str(error))
            continue
        asked.append(_Asked(pods, Reason("metric", _told(metric, pods))))
    return asked, unread


def _decided(status: Mapping[str, Any]) -> _Asked | None:
    """What the HPA wants at least, by its status; None where that says nothing new.

    Only a scale-out is news: a desired number below the current one may be held up by a
    window, and says nothing about what the metrics ask for.
    """
    rows = {row.get("type"): row for row in status.get("conditions") or ()}
    desired = status.get("desiredReplicas")
    if desired is None or (rows.get("ScalingActive") or {}).get("status") != "True":
        return None
    limited = rows.get("ScalingLimited") or {}
    why = limited.get("reason") if limited.get("status") == "True" else None
    if why == RATE_LIMITED:
        return _Asked(
            desired + 1, Reason("rate_limited", f"it wants more than {count_pods(desired)}")
        )
    if why == AT_MOST:
        return _Asked(
            desired, Reason("at_max", f"it wants more than maxReplicas, {count_pods(desired)}")
        )
    if desired > (status.get("currentReplicas") or 0):
        return _Asked(desired, Reason("decided", f"it has decided for {count_pods(desired)}"))
    return None


def _tolerances(spec: HpaSpec) -> Tolerances:
    """Per-behavior tolerance, else the controller's default."""
    default = ControllerOptions().tolerance
    if spec.behavior is None:
        return Tolerances(default, default)
    down, up = spec.behavior.scale_down.tolerance, spec.behavior.scale_up.tolerance
    return Tolerances(default if down is None else down, default if up is None else up)


def _told(metric: MetricSpec, pods: int) -> str:
    return f"{name_of(metric)} asks for {count_pods(pods)}"
