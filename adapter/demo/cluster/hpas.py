"""The HPAs of the simulation as manifests: the status is what the latest sync decided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.manifests import identity
from adapter.demo.state import DemoCluster, DemoState
from adapter.demo.wallclock import WallClock
from adapter.hpa import Condition

Json = dict[str, Any]


def hpas(state: DemoState) -> Iterator[Json]:
    """Yield the HPAs of all clusters, as autoscaling/v2."""
    for cluster in state.everything:
        for scaler in cluster.autoscalers:
            yield _hpa(state.times, cluster, scaler)


def _hpa(times: WallClock, cluster: DemoCluster, scaler: DemoAutoscaler) -> Json:
    manifest = dict(scaler.manifest)
    name, namespace = scaler.spec.name, scaler.spec.namespace
    return {
        **manifest,
        "metadata": {
            **manifest["metadata"],
            "uid": identity("hpa", name, namespace),
            "creationTimestamp": times.text(cluster.world.start),
        },
        "status": _status(times, cluster, scaler),
    }


def _status(times: WallClock, cluster: DemoCluster, scaler: DemoAutoscaler) -> Json:
    latest = scaler.latest
    if latest is None:
        return {"currentReplicas": cluster.world.wanted[scaler.service], "desiredReplicas": 0}
    decision = latest.decision
    status: Json = {
        "currentReplicas": decision.current,
        "desiredReplicas": decision.desired,
        "conditions": [_condition(times, row) for row in decision.conditions],
    }
    current = [
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": metric.name},
                "current": {"averageValue": _quantity(proposal.usage)},
            },
        }
        for metric, proposal in zip(scaler.spec.metrics, decision.proposals, strict=False)
        if proposal.usage is not None
    ]
    if current:
        status["currentMetrics"] = current
    scaled = next((sync for sync in reversed(scaler.syncs) if sync.decision.rescale), None)
    if scaled is not None:
        status["lastScaleTime"] = times.text(scaled.at)
    return status


def _quantity(milli: int) -> str:
    """Return thousandths as kube-apiserver writes a quantity."""
    whole, rest = divmod(milli, 1000)
    return f"{milli}m" if rest else str(whole)


def _condition(times: WallClock, row: Condition) -> Json:
    return {
        "type": row.type,
        "status": str(row.status),
        "reason": row.reason,
        "message": row.message,
        "lastTransitionTime": times.text(row.since),
    }
