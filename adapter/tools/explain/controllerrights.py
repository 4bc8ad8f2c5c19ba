"""Rights of the HPA controller, as an HPA's status shows them.

The values are read with the caller's rights. The controller's own may be fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from adapter.hpa import Decision, HpaSpec, MetricKind, Missing, Values
from adapter.tools.client.errors import MissingRight, missing_right
from adapter.tools.explain.words import one_line

if TYPE_CHECKING:
    from adapter.tools.client.access import Json
    from adapter.tools.explain.hpafacts import HpaFacts

_KINDS: Final = {
    "custom.metrics.k8s.io": (MetricKind.PODS, MetricKind.OBJECT),
    "external.metrics.k8s.io": (MetricKind.EXTERNAL,),
    "metrics.k8s.io": (MetricKind.RESOURCE, MetricKind.CONTAINER),
}


def _failure(hpa: Json) -> str:
    """Return why the controller read no metric at its last sync; empty if it read them."""
    for row in (hpa.get("status") or {}).get("conditions") or ():
        failed = row.get("type") == "ScalingActive" and row.get("status") == "False"
        if failed and str(row.get("reason") or "").startswith("FailedGet"):
            return str(row.get("message") or row["reason"])
    return ""


def denied_right(hpa: Json) -> MissingRight | None:
    """Return what the controller may not read; None if its status names no missing right."""
    right = missing_right(_failure(hpa))
    return right if right is not None and right.group in _KINDS else None


def concerns(right: MissingRight | None, kind: MetricKind) -> bool:
    """Return whether a missing right concerns metrics of a kind."""
    return right is not None and kind in _KINDS[right.group]


def values_of(facts: HpaFacts, spec: HpaSpec) -> list[Values | None]:
    """Return the values that the controller gets: none of an API that it may not read."""
    right = facts.denied
    return [
        Missing(f"{right.user} may not {right.verb} {right.full}")
        if right is not None and concerns(right, metric.kind)
        else answer.values
        for metric, answer in zip(spec.metrics, facts.values, strict=False)
    ]


def earlier_failure(facts: HpaFacts, decision: Decision) -> Iterator[str]:
    """Yield that the controller failed at its last sync, where the values can be read now."""
    failure = _failure(facts.hpa)
    if failure and facts.denied is None and decision.asked is not None:
        yield (
            "this decision needs values that the controller did not get at its last sync: "
            f"{one_line(failure)}"
        )
