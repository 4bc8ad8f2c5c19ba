"""How many pods an HPA would have if only its metrics decided. Pure.

``status.desiredReplicas`` is clamped: by the rate at which the HPA may grow, by windows, by
``maxReplicas``. What its metrics ask for is known seconds to minutes earlier, by the HPA
controller's own arithmetic (:func:`adapter.hpa.replicas.propose`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from adapter.hpa import HpaSpec, Observation
from adapter.hpa.replicas import InvalidMetricError, Tolerances, propose
from adapter.hpa.spec import ControllerOptions
from adapter.nodepool.seen.autoscalers import ReadableHpa

RATE_LIMITED = "ScaleUpLimit"
"""ScalingLimited: the HPA grows as fast as it may, and wants more."""
AT_MOST = "TooManyReplicas"
"""ScalingLimited: the HPA is at ``maxReplicas``, and wants more."""


class Want(NamedTuple):
    """What an HPA asks for."""

    pods: int | None
    """Not below ``minReplicas``, not clamped at ``maxReplicas``; None if unknown."""
    parked: bool = False
    """Its target is scaled to 0, and only a person will scale it up again."""


def wanted(
    hpa: ReadableHpa, seen: Observation, status: Mapping[str, Any], *, from_zero: bool = False
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
        return Want(0, parked=True)
    asked = _proposals(spec, seen)
    if len(asked) < len(spec.metrics) or hpa.left_out:
        asked += _decided(status)
    return Want(max(*asked, spec.min_replicas) if asked else None)


def _proposals(spec: HpaSpec, seen: Observation) -> list[int]:
    """The pods that each metric asks for; a metric that cannot be read is left out."""
    asked: list[int] = []
    tolerances = _tolerances(spec)
    for metric, values in zip(spec.metrics, seen.values, strict=True):
        with suppress(InvalidMetricError):
            asked.append(propose(metric, values, seen, spec.namespace, tolerances)[0])
    return asked


def _decided(status: Mapping[str, Any]) -> list[int]:
    """The pods that the HPA wants at least, by its status; empty where that says nothing new.

    Only a scale-out is news: a desired number below the current one may be held up by a
    window, and says nothing about what the metrics ask for.
    """
    rows = {row.get("type"): row for row in status.get("conditions") or ()}
    desired = status.get("desiredReplicas")
    if desired is None or (rows.get("ScalingActive") or {}).get("status") != "True":
        return []
    limited = rows.get("ScalingLimited") or {}
    why = limited.get("reason") if limited.get("status") == "True" else None
    if why == RATE_LIMITED:
        return [desired + 1]
    grows = why == AT_MOST or desired > (status.get("currentReplicas") or 0)
    return [desired] if grows else []


def _tolerances(spec: HpaSpec) -> Tolerances:
    """Per-behavior tolerance, else the controller's default."""
    default = ControllerOptions().tolerance
    if spec.behavior is None:
        return Tolerances(default, default)
    down, up = spec.behavior.scale_down.tolerance, spec.behavior.scale_up.tolerance
    return Tolerances(default if down is None else down, default if up is None else up)
