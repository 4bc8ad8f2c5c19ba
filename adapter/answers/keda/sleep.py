"""Whether a ScaledObject can wake its target from zero: some trigger must exist without pods.

KEDA scales from 0 only if a trigger is active, and its triggers ``cpu`` and ``memory`` never are
without pods. A query over the pods of the target has no series then, which KEDA counts as 0
(``ignoreNullValues`` of its prometheus scaler). The adapter's own scaler answers 0 and inactive
without pods; a ``podSelector`` may name those of a gateway.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapter.answers.causes import Cause, CauseCode
from adapter.answers.keda.manifest import SeenScaledObject, SeenTrigger
from adapter.answers.keda.triggerquery import has_value_without
from adapter.pipeline.attribution.describedpods import selector_is_own
from adapter.pipeline.cluster.fixes import Fix

_RESOURCES = ("cpu", "memory")
_PODS = r"\b(?:exported_)?pod(?:_name)?=~?[\"'`]\^?{}(?:-?(?:\.[*+]|[\[(\\])[^\"'`|]*|-?)[\"'`]"
"""A matcher for the pods of one workload: those of ``llm-gateway`` are not those of ``llm``."""

_LABEL = r"(?:^|,)\s*(?:app|app\.kubernetes\.io/name)\s*==?\s*{}\s*(?:,|$)"
"""A label by which a selector names the pods of one workload."""


def never_wakes(scaled: SeenScaledObject, labels: Mapping[str, str] | None = None) -> Cause | None:
    """Return that no trigger is active while the target has no pod; None if one may be.

    Args:
        scaled: a ScaledObject.
        labels: of the pods of its target; None if they are not known.
    """
    if scaled.low != 0 or not scaled.target:
        return None
    if all(row.type in _RESOURCES for row in scaled.triggers):
        return None  # KEDA does not scale such an object to 0
    if not all(needs_pods(scaled, row, labels) for row in scaled.triggers):
        return None
    fix = (
        "add a trigger for demand that exists without pods, such as the queue of a gateway or cron"
        ", or set spec.minReplicaCount to 1"
    )
    change = scaled.patch("spec.minReplicaCount", 1)
    if isinstance(change, Fix):
        fix, change = change.advice(fix), change.command
    return Cause(
        CauseCode.NEVER_WAKES,
        scaled.subject,
        "never wakes from 0 replicas: each of its triggers measures the pods of the workload, "
        "which do not exist then",
        fix,
        change,
    )


def needs_pods(
    scaled: SeenScaledObject, trigger: SeenTrigger, labels: Mapping[str, str] | None = None
) -> bool:
    """Return whether a trigger has no value without pods of the target."""
    if trigger.type in _RESOURCES:
        return True
    if trigger.ours:
        return _selects_own(scaled, trigger, labels)
    own_pods = re.compile(_PODS.format(re.escape(scaled.target)))
    return has_value_without(trigger.query, lambda row: bool(own_pods.search(row.text))) is False


def _selects_own(
    scaled: SeenScaledObject, trigger: SeenTrigger, labels: Mapping[str, str] | None
) -> bool:
    text = trigger.metadata.get("podSelector", "")
    if not text:
        return True
    if labels is None:
        return re.search(_LABEL.format(re.escape(scaled.target)), text) is not None
    metric, target = trigger.metadata.get("metric", ""), (scaled.kind, scaled.target)
    return selector_is_own(metric, trigger.pods, target, labels) is True
