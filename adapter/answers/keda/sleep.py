"""Whether a ScaledObject can wake its target from zero: some trigger must exist without pods.

KEDA scales from 0 only if a trigger is active, and its triggers ``cpu`` and ``memory`` never are
without pods. A query over the pods of the target has no series then, which KEDA counts as 0
(``ignoreNullValues`` of its prometheus scaler). The adapter's own scaler answers 0 and inactive
without pods; a ``podSelector`` may name those of a gateway.
"""

from __future__ import annotations

import re

from adapter.answers.causes import Cause, CauseCode
from adapter.answers.keda.manifest import SeenScaledObject, SeenTrigger
from adapter.pipeline.cluster.fixes import Fix

_RESOURCES = ("cpu", "memory")
_OTHERWISE = re.compile(r"\b(?:or|absent|absent_over_time|vector)\b", re.IGNORECASE)
"""A query with it has a value although its series do not exist."""

_PODS = r"\b(?:exported_)?pod(?:_name)?=~?[\"'`]\^?{}(?:-?(?:\.[*+]|[\[(\\])[^\"'`|]*|-?)[\"'`]"
"""A matcher for the pods of one workload: those of ``llm-gateway`` are not those of ``llm``."""

_LABEL = r"(?:^|,)\s*(?:app|app\.kubernetes\.io/name)\s*==?\s*{}\s*(?:,|$)"
"""A label by which a selector names the pods of one workload."""


def never_wakes(scaled: SeenScaledObject) -> Cause | None:
    """Return that no trigger is active while the target has no pod; None if one may be."""
    if scaled.low != 0 or not scaled.target:
        return None
    if all(row.type in _RESOURCES for row in scaled.triggers):
        return None  # KEDA does not scale such an object to 0
    if not all(_needs_pods(row, scaled.target) for row in scaled.triggers):
        return None
    fix = (
        "add a trigger for demand that exists without pods, such as the queue of a gateway or cron"
        ", or set spec.minReplicaCount to 1"
    )
    change = scaled.patch("spec.minReplicaCount", 1)
    if isinstance(change, Fix):
        fix, change = change.advice(fix), change.command
    return Cause(
        CauseCode.SCALED_OBJECT,
        scaled.subject,
        "never wakes from 0 replicas: each of its triggers measures the pods of the workload, "
        "which do not exist then",
        fix,
        change,
    )


def _needs_pods(trigger: SeenTrigger, target: str) -> bool:
    """Return whether a trigger has no value without pods of the target."""
    if trigger.type in _RESOURCES:
        return True
    if trigger.ours:
        selector = trigger.metadata.get("podSelector", "")
        return not selector or re.search(_LABEL.format(re.escape(target)), selector) is not None
    query = trigger.query
    if not query or _OTHERWISE.search(query):
        return False
    return re.search(_PODS.format(re.escape(target)), query) is not None
