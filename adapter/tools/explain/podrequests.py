"""What pods request of a resource, as ``calculateRequests`` of the HPA controller adds it up."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.hpa import MetricSpec, TargetKind
from adapter.tools.client.access import Json
from adapter.tools.explain.words import to_milli


def requests_of(pods: Sequence[Json], metric: MetricSpec) -> tuple[dict[str, int], str]:
    """Return what each pod requests, or the first request that is missing.

    A request that is not a quantity counts as missing.

    Args:
        pods: manifests.
        metric: of the HPA. Only a Utilization target needs requests.
    """
    if metric.target.kind is not TargetKind.UTILIZATION:
        return {}, ""
    requests: dict[str, int] = {}
    for pod in pods:
        name, spec = str(pod["metadata"]["name"]), pod.get("spec") or {}
        parts = [(f"container {row.get('name')} of Pod", row) for row in _counted(spec, metric)]
        if not metric.container and metric.name in _requested(spec):
            parts = [("Pod", spec)]
        total = 0
        for what, owner in parts:
            amount = _requested(owner).get(metric.name)
            wanted = None if amount is None else to_milli(amount)
            if wanted is None:
                why = "" if amount is None else f": {amount!r} is not a quantity"
                return {}, f"missing request for {metric.name} in {what} {name}{why}"
            total += wanted
        requests[name] = total
    return requests, ""


def _requested(owner: Json) -> Json:
    return (owner.get("resources") or {}).get("requests") or {}


def _counted(spec: Json, metric: MetricSpec) -> list[Json]:
    """Return the containers and sidecars whose requests count."""
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    rows = [*(spec.get("containers") or ()), *sidecars]
    return [row for row in rows if not metric.container or row.get("name") == metric.container]
