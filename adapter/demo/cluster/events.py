"""The events of the simulated cluster, as scheduler, controllers and kubelets would write them.

Equal events of one object are one event with a count, as client-go's recorder sends them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from adapter.demo.autoscaler import DemoAutoscaler, Sync
from adapter.demo.fleet import DemoPod
from adapter.demo.hardware import DemoNode
from adapter.demo.manifests import EXPORTER_NAMESPACE, identity, no_room, pod_uid, replicaset
from adapter.demo.state import DemoCluster, DemoState
from adapter.demo.world import Change

Json = dict[str, Any]
_HPA: Final = "HorizontalPodAutoscaler"
_CLUSTER_NAMESPACE: Final = "default"
"""Namespace of events about objects without one."""


class _Event(NamedTuple):
    """What one component said about one object."""

    at: float
    """Seconds of the simulation."""
    source: str
    version: str
    kind: str
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    type: str = "Normal"

    @property
    def said(self) -> tuple[str, ...]:
        """What equal events have in common."""
        return self[1:]


def events(state: DemoState) -> Iterator[Json]:
    """Yield the events of all clusters, the oldest first."""
    all_events = [
        event for cluster in state.everything for event in _cluster_events(state, cluster)
    ]
    all_events.sort(key=lambda event: event.at)
    yield from _join_events(state, all_events)


def _cluster_events(state: DemoState, cluster: DemoCluster) -> Iterator[_Event]:
    for change in cluster.world.changes:
        yield from _change_events(cluster, change)
    for scaler in cluster.autoscalers:
        for sync in scaler.syncs:
            yield from _sync_events(scaler, sync)
    if cluster is state.shown:
        yield from _outage_events(state)


def _sync_events(scaler: DemoAutoscaler, sync: Sync) -> Iterator[_Event]:
    name, namespace, decision = scaler.spec.name, scaler.spec.namespace, sync.decision
    involved = (_HPA, namespace, name, identity("hpa", name, namespace))
    source = ("horizontal-pod-autoscaler", "autoscaling/v2")
    if decision.rescale:
        text = f"New size: {decision.desired}; reason: {decision.reason}"
        yield _Event(sync.at, *source, *involved, "SuccessfulRescale", text)
        word = "up" if decision.desired > decision.current else "down"
        text = (
            f"Scaled {word} replica set {replicaset(scaler.service)} from {decision.current} "
            f"to {decision.desired}"
        )
        target = ("Deployment", namespace, scaler.service)
        uid = identity("deployment", scaler.service, namespace)
        controller = ("deployment-controller", "apps/v1")
        yield _Event(sync.at, *controller, *target, uid, "ScalingReplicaSet", text)
    failed = next((p.error for p in decision.proposals if p.replicas is None), None)
    if failed is not None:
        yield _Event(sync.at, *source, *involved, "FailedGetPodsMetric", failed, "Warning")
        if not sync.active:
            reason = "FailedComputeMetricsReplicas"
            yield _Event(sync.at, *source, *involved, reason, decision.error, "Warning")


def _change_events(cluster: DemoCluster, change: Change) -> Iterator[_Event]:
    if isinstance(change.what, DemoNode):
        yield from _node_events(change.at, change.word, change.what)
    else:
        yield from _pod_events(cluster, change, change.what)


def _pod_events(cluster: DemoCluster, change: Change, pod: DemoPod) -> Iterator[_Event]:
    at, word = change.at, change.word
    involved = ("Pod", cluster.namespace, pod.name, pod_uid(pod, cluster.namespace))
    if word == "waits":
        text = no_room(pod.resource)
        yield _Event(at, "default-scheduler", "v1", *involved, "FailedScheduling", text, "Warning")
    elif word == "bound" and pod.node is not None:
        text = f"Successfully assigned {cluster.namespace}/{pod.name} to {pod.node.name}"
        yield _Event(at, "default-scheduler", "v1", *involved, "Scheduled", text)
    elif word == "triggers" and change.node is not None:
        node = change.node
        text = f"pod triggered scale-up: node {node.name} of node pool {node.pool.name}"
        yield _Event(at, "cluster-autoscaler", "v1", *involved, "TriggeredScaleUp", text)
    elif word == "ready":
        yield _Event(at, "kubelet", "v1", *involved, "Started", "Container server started")


def _node_events(at: float, word: str, node: DemoNode) -> Iterator[_Event]:
    involved = ("Node", "", node.name, node.name)
    if word == "booted":
        text = f"Node {node.name} status is now: NodeReady"
        yield _Event(at, "kubelet", "v1", *involved, "NodeReady", text)
    elif word == "removed":
        text = f"Removing Node {node.name} from Controller"
        yield _Event(at, "node-controller", "v1", *involved, "RemovingNode", text)


def _outage_events(state: DemoState) -> Iterator[_Event]:
    """Yield what the kubelet's probe of a dead exporter says."""
    for outage in state.outages:
        name = f"dcgm-exporter-{outage.node}"
        involved = ("Pod", EXPORTER_NAMESPACE, name, name)
        text = "Readiness probe failed: the exporter resets every connection"
        yield _Event(outage.start, "kubelet", "v1", *involved, "Unhealthy", text, "Warning")


def _join_events(state: DemoState, all_events: Iterable[_Event]) -> Iterator[Json]:
    """Join equal events."""
    equal: dict[tuple[str, ...], list[_Event]] = {}
    for event in all_events:
        equal.setdefault(event.said, []).append(event)
    for run in sorted(equal.values(), key=lambda run: run[-1].at):
        yield _manifest(state, run)


def _manifest(state: DemoState, run: list[_Event]) -> Json:
    first, newest = run[0], run[-1]
    namespace = first.namespace or _CLUSTER_NAMESPACE
    key = uuid.uuid5(uuid.NAMESPACE_DNS, f"{first.said}{first.at}")
    about = {
        "kind": first.kind,
        "apiVersion": first.version,
        "namespace": first.namespace,
        "name": first.name,
        "uid": first.uid,
    }
    began, ended = state.times.text(first.at), state.times.text(newest.at)
    return {
        "metadata": {
            "name": f"{first.name}.{key.hex[:8]}",
            "namespace": namespace,
            "uid": str(key),
            "creationTimestamp": began,
        },
        "involvedObject": {name: text for name, text in about.items() if text},
        "reason": first.reason,
        "message": first.message,
        "type": first.type,
        "source": {"component": first.source},
        "reportingComponent": first.source,
        "reportingInstance": "",
        "firstTimestamp": began,
        "lastTimestamp": ended,
        "eventTime": None,
        "count": len(run),
    }
