"""How many pods an HPA would have if only its metrics decided. Pure.

``status.desiredReplicas`` is limited by scaling policies, stabilization windows and
``maxReplicas``. The number that the metrics call for is known seconds to minutes earlier. The
calculation is the HPA controller's (:func:`adapter.hpa.replicas.propose_by`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from adapter.hpa import HpaSpec, Observation
from adapter.hpa.podreplicas import (
    MAX_INT32,
    InvalidMetricError,
    MetricRules,
    Proposed,
    Tolerances,
)
from adapter.hpa.replicas import propose_by
from adapter.hpa.spec import ControllerOptions
from adapter.nodepool.seen.autoscalers import ReadableHpa
from adapter.pipeline.catalog import built_in

_EXPECTED: Final = frozenset(built_in().expected)
_TRIGGER: Final = re.compile(r"^s\d+-")
"""What KEDA writes before the name of a metric: the number of its trigger."""
RATE_LIMITED = "ScaleUpLimit"
"""ScalingLimited: the HPA grows at its maximum rate and wants more."""
AT_MOST = "TooManyReplicas"
"""ScalingLimited: the HPA is at ``maxReplicas`` and wants more."""


class Want(NamedTuple):
    """The pods that an HPA wants."""

    pods: int | None
    """At least ``minReplicas``, not limited by ``maxReplicas``; None if unknown."""
    load: float | None
    """The same before the HPA's tolerance, ``minReplicas`` and rounding; None if unknown."""
    parked: bool = False
    """Whether its target is scaled to 0 and only a person scales it up again."""


def wanted_pods(
    hpa: ReadableHpa,
    observation: Observation,
    status: Mapping[str, Any],
    *,
    from_zero: bool = False,
) -> Want:
    """Return the largest number of pods that one of an HPA's metrics calls for.

    Args:
        observation: one entry of ``values`` for each of ``hpa.spec.metrics``.
        status: status of the HPA, for decisions by metrics that could not be read here.
        from_zero: KEDA scales the target from 0. Otherwise an HPA whose target has 0 replicas is
            switched off.
    """
    spec = hpa.spec
    if observation.replicas == 0 and spec.min_replicas > 0 and not from_zero:
        return Want(0, 0.0, parked=True)
    measured, expected = _proposals(spec, observation)
    counts = [proposal.replicas for proposal in (*measured, *expected)]
    # What serve expects orders its pods itself. A forecast of it would order the same rise twice.
    loads = [proposal.exact for proposal in measured or expected]
    if len(counts) < len(spec.metrics) or hpa.left_out:
        ahead = max((proposal.replicas for proposal in expected), default=0)
        decided = [pods for pods in _decided_pods(status) if pods > ahead]
        counts += decided
        loads += decided
    if not counts:
        return Want(None, None)
    return Want(max(*counts, spec.min_replicas), min(max(0.0, *loads), float(MAX_INT32)))


def tolerances(spec: HpaSpec) -> Tolerances:
    """Return the tolerances of an HPA."""
    return Tolerances.of(spec.behavior, ControllerOptions().tolerance)


def _proposals(spec: HpaSpec, observation: Observation) -> tuple[list[Proposed], list[Proposed]]:
    """Return what metrics call for: measured ones, and expected ones.

    Metrics that cannot be read are left out.
    """
    measured: list[Proposed] = []
    expected: list[Proposed] = []
    rules = MetricRules(tolerances(spec), ControllerOptions(), 0.0)
    for metric, values in zip(spec.metrics, observation.values, strict=True):
        into = expected if _TRIGGER.sub("", metric.name) in _EXPECTED else measured
        with suppress(InvalidMetricError):
            into.append(propose_by(metric, values, observation, spec.namespace, rules))
    return measured, expected


def _decided_pods(status: Mapping[str, Any]) -> list[int]:
    """Return the minimum pods that the HPA wants by its status; empty without a scale-out.

    Desired replicas below the current ones may be the result of a stabilization window, and do not
    show what the metrics call for.
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
