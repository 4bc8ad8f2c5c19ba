"""HPAs with their pods and values, and the state in which every surface has to show each.

The statuses have the forms of real ones: see the docstring of
:mod:`adapter.answers.judgement.judge`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from adapter.hpa import Missing, Values

Json = dict[str, Any]
NOW: Final = 1_767_323_045.0
NS: Final = "ml"
UTIL: Final = "gpu_utilization"


def ago(seconds: float) -> str:
    """A time before now, in RFC 3339."""
    return datetime.fromtimestamp(NOW - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def metric(
    goal: str = "70",
    name: str = UTIL,
    kind: str = "Pods",
    target: str = "",
    labels: Json | None = None,
) -> Json:
    """A metric of the spec; its target is an AverageValue unless ``target`` names another type.
    ``labels`` are those of its selector.
    """
    target = target or "AverageValue"
    key = {"Value": "value", "Utilization": "averageUtilization"}.get(target, "averageValue")
    amount: Any = int(goal) if target == "Utilization" else goal
    source: Json = {"target": {"type": target, key: amount}}
    source |= {"name": name} if kind == "Resource" else {"metric": {"name": name}}
    if labels:
        source["metric"]["selector"] = {"matchLabels": labels}
    if kind == "Object":
        source["describedObject"] = {"kind": "Service", "name": "llm", "apiVersion": "v1"}
    return {"type": kind, kind[:1].lower() + kind[1:]: source}


def current(now: str, name: str = UTIL, kind: str = "Pods", target: str = "") -> Json:
    """A metric of the status."""
    key = {"Value": "value", "Utilization": "averageUtilization"}.get(target, "averageValue")
    amount: Any = int(now) if target == "Utilization" else now
    source: Json = {"current": {key: amount}}
    source |= {"name": name} if kind == "Resource" else {"metric": {"name": name}}
    return {"type": kind, kind[:1].lower() + kind[1:]: source}


def condition(kind: str, reason: str, *, status: bool = True, message: str = "") -> Json:
    """A condition of the status, ten minutes old."""
    row = {"type": kind, "status": str(status), "reason": reason, "message": message}
    return row | {"lastTransitionTime": ago(600)}


ABLE: Final = condition("AbleToScale", "ReadyForNewScale", message="recommended size matches")
ACTIVE: Final = condition("ScalingActive", "ValidMetricFound")
WITHIN: Final = condition("ScalingLimited", "DesiredWithinRange", status=False)
FINE: Final = (ABLE, ACTIVE, WITHIN)


def limited(reason: str) -> tuple[Json, ...]:
    """Conditions of an HPA whose recommendation a limit changes."""
    return ABLE, ACTIVE, condition("ScalingLimited", reason)


def inactive(reason: str, message: str = "") -> tuple[Json, ...]:
    """Conditions of an HPA that has no value."""
    return ABLE, condition("ScalingActive", reason, status=False, message=message)


def hpa(
    size: int = 3,
    desired: int | None = None,
    *,
    spec: Sequence[Json] = (),
    status: Sequence[Json] | None = None,
    conditions: Sequence[Json] = FINE,
    low: int = 1,
    high: int = 8,
    scaled: float | None = 7200,
    behavior: Json | None = None,
    created: float = 86400,
    **meta: Any,
) -> Json:
    """An HPA; ``status`` None is one value of the first metric at its target."""
    manifest: Json = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"namespace": NS, "name": "llm", "creationTimestamp": ago(created), **meta},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
            "minReplicas": low,
            "maxReplicas": high,
            "metrics": list(spec or (metric(),)),
        },
        "status": {
            "currentReplicas": size,
            "desiredReplicas": size if desired is None else desired,
            "currentMetrics": [current("66")] if status is None else list(status) or None,
            "conditions": list(conditions),
        },
    }
    if not size:
        del manifest["status"]["currentReplicas"]  # as the API server does with a 0
    if behavior is not None:
        manifest["spec"]["behavior"] = behavior
    if scaled is not None:
        manifest["status"]["lastScaleTime"] = ago(scaled)
    return manifest


def pod(
    name: str,
    value: float | None = None,
    *,
    ready: bool = True,
    since: float = 3600,
    node: str = "n1",
    phase: str = "Running",
    deleting: bool = False,
    waits: str = "",
) -> Json:
    """A pod of the Deployment with one GPU, and its utilization in ``value``."""
    conditions = [
        {"type": "Ready", "status": str(ready), "lastTransitionTime": ago(since)},
        {"type": "PodScheduled", "status": str(bool(node)), "message": "0/3 nodes are available"},
    ]
    meta: Json = {
        "namespace": NS,
        "name": name,
        "uid": name,
        "creationTimestamp": ago(since + 60),
        "labels": {"app": "llm", "pod-template-hash": "abc"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "llm-abc", "controller": True}
        ],
    }
    if deleting:
        meta["deletionTimestamp"] = ago(5)
    state = {"waiting": {"reason": waits}} if waits else {"running": {}}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    return {
        "metadata": meta,
        "spec": {"nodeName": node, "containers": [{"name": "server", "resources": limits}]},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "startTime": ago(since + 30),
            "containerStatuses": [{"name": "server", "state": state}],
        },
        "value": value,
    }


def three(*values: float | None, **last: Any) -> list[Json]:
    """Pods with values; the last one as the arguments say."""
    rows = [pod(f"llm-abc-{number}", value) for number, value in enumerate(values)]
    return [*rows[:-1], pod(f"llm-abc-{len(values) - 1}", values[-1], **last)]


class JudgedWorld(NamedTuple):
    """An HPA and what is around it."""

    hpa: Json
    pods: Sequence[Json]
    state: str
    level: str
    says: str
    """A part of the line."""
    other: Sequence[Values] = ()
    """Values of the metrics that are not of pods, in thousandths."""
    replicas: int | None = None
    """``spec.replicas`` of the target; None for the size in the status."""
    triggers: Sequence[Json] = ()
    """Those of the ScaledObject that owns the HPA."""
    explained: bool = True
    """The values are those of one moment, so that an explanation replays the same decision."""


AT_TARGET: Final = three(66, 66, 66)
NO_METRICS: Final = "unable to get metric gpu_utilization: no metrics returned"
QUEUE: Final = metric("10", "queue", "External")
KEDA: Final = [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "llm"}]
PENDING: Any = {"ready": False, "node": "", "phase": "Pending"}
LONG: Final = "m" * 253


def _changed() -> Json:
    manifest = hpa(generation=4, managedFields=[{"time": ago(1200)}])
    manifest["status"]["observedGeneration"] = 3
    return manifest


def _inner(**more: Any) -> Json:
    """An HPA that scales the ReplicaSet of a Deployment."""
    manifest = hpa(**more)
    manifest["spec"]["scaleTargetRef"] |= {"kind": "ReplicaSet", "name": "llm-abc"}
    return manifest


def _flawed(
    spec: Json,
    now: str,
    says: str,
    state: str = "impaired",
    *,
    triggers: Sequence[Json] = (),
    **more: Any,
) -> JudgedWorld:
    """A world of an HPA whose only metric has a flaw."""
    (kind,) = (key for key in spec if key != "type")
    name, target = spec[kind]["metric"]["name"], spec[kind]["target"]["type"]
    status = [current(now, name, spec["type"], target)]
    level = "warning" if state == "impaired" else "good"
    pods = AT_TARGET
    number = int(float(now) * 1000)
    other: list[Values] = [] if (spec["type"], name) == ("Pods", UTIL) else [[number]]
    if spec["type"] == "Pods" and other:
        other = [{row["metadata"]["name"]: number for row in pods}]
    manifest = hpa(spec=[spec], status=status, **more)
    return JudgedWorld(manifest, pods, state, level, says, other=other, triggers=triggers)


TRIGGER: Final = {
    "type": "external",
    "metricType": "Value",
    "metadata": {"scalerAddress": "gpu-metrics-adapter.gpu:6000", "metric": UTIL, "target": "70"},
}
FLAWED: Final = {
    "a target that a Deployment owns": JudgedWorld(
        _inner(),
        AT_TARGET,
        "impaired",
        "warning",
        "deployment.llm owns its target, and sets the size back",
        explained=False,
    ),
    "a target that a Deployment owns, exceeded at its maximum": JudgedWorld(
        _inner(status=[current("98")], high=3, conditions=limited("TooManyReplicas")),
        three(98, 98, 98),
        "impaired",
        "warning",
        "deployment.llm owns its target",
        explained=False,
    ),
    "a Value target on a sum": _flawed(
        metric("70", UTIL, "External", "Value"), "66", "is the sum over the pods"
    ),
    "a Value target on a sum, exceeded at its maximum": _flawed(
        metric("70", UTIL, "External", "Value"),
        "560",
        "is the sum over the pods",
        high=3,
        conditions=limited("TooManyReplicas"),
    ),
    "a Value target on the sum over other pods": _flawed(
        metric("70", "vllm:num_requests_waiting", "External", "Value", {"app": "other"}),
        "66",
        "keeps 3",
        "healthy",
    ),
    "an AverageValue target on a mean": _flawed(
        metric("22", UTIL, "External", "", {"aggregate": "mean"}), "22", "is the mean over the pods"
    ),
    "a metric that falls under load": _flawed(
        metric("2Gi", "DCGM_FI_DEV_FB_FREE"), "2147483648", "falls as the load rises"
    ),
    "a metric that does not follow the load": _flawed(
        metric("70", "gpu_temperature_celsius"), "66", "does not follow the load"
    ),
    "a target in another unit": _flawed(metric("700m"), "66", "0.7 %; did you mean 70?", high=3),
    "a target that no value exceeds": _flawed(metric("150"), "66", "it never scales out"),
    "a selector that selects nothing": _flawed(
        metric("70", UTIL, "External", "", {"modelName": "H100"}), "66", "selects nothing"
    ),
    "a metric without its promise": _flawed(
        metric("500m", "inference_slo_ratio"), "0.4", "states no promise"
    ),
    "a trigger of KEDA with a Value target on a sum": _flawed(
        metric("70", f"s0-{UTIL}", "External", "Value", {"scaledobject.keda.sh/name": "llm"}),
        "66",
        "is the sum over the pods",
        triggers=[TRIGGER],
        ownerReferences=KEDA,
    ),
}
WORLDS: Final[dict[str, JudgedWorld]] = {
    "at its target": JudgedWorld(
        hpa(), AT_TARGET, "healthy", "good", "keeps 3: gpu_utilization 66"
    ),
    "above its target within the tolerance": JudgedWorld(
        hpa(status=[current("76")]), three(76, 76, 76), "healthy", "good", "keeps 3"
    ),
    "at the edge of the tolerance": JudgedWorld(
        hpa(status=[current("77")]), three(77, 77, 77), "healthy", "good", "keeps 3"
    ),
    "above its target within a tolerance of its own": JudgedWorld(
        hpa(status=[current("90")], behavior={"scaleUp": {"tolerance": "300m"}}),
        three(90, 90, 90),
        "healthy",
        "good",
        "gpu_utilization 90 of 70",
    ),
    "at its maximum and at its target": JudgedWorld(
        hpa(high=3), AT_TARGET, "healthy", "good", "keeps 3"
    ),
    "one pod": JudgedWorld(hpa(1), three(66), "healthy", "good", "keeps 1"),
    "without minReplicas in its manifest": JudgedWorld(
        hpa(1, low=1, scaled=None), three(66), "healthy", "good", "keeps 1"
    ),
    "scales out": JudgedWorld(
        hpa(3, 5, status=[current("100")], scaled=5, conditions=FINE),
        three(100, 100, 100),
        "scales out",
        "good",
        "scales out 3 → 5",
    ),
    "scales out, and the new pods start": JudgedWorld(
        hpa(4, status=[current("100")], scaled=60),
        [
            *three(100, 100, 100),
            pod("llm-abc-3", ready=False, since=55, phase="Pending"),
        ],
        "scales out",
        "good",
        "its pods start",
    ),
    "scales in": JudgedWorld(
        hpa(4, 2, status=[current("30")], scaled=5),
        three(30, 30, 30, 30),
        "scales in",
        "good",
        "scales in 4 → 2",
        replicas=4,
    ),
    "a rate limits the way up": JudgedWorld(
        hpa(
            3,
            7,
            spec=[metric("10")],
            status=[current("98")],
            scaled=5,
            high=40,
            conditions=limited("ScaleUpLimit"),
        ),
        three(98, 98, 98),
        "scales out",
        "good",
        "scales out 3 →",
    ),
    "overloaded at its maximum": JudgedWorld(
        hpa(status=[current("98")], high=3, conditions=limited("TooManyReplicas")),
        three(98, 98, 98),
        "overloaded",
        "warning",
        "held by maxReplicas 3",
    ),
    "overloaded at its maximum, stabilized": JudgedWorld(
        hpa(
            2,
            status=[current("150", "cpu", "Resource", "Utilization")],
            spec=[metric("70", "cpu", "Resource", "Utilization")],
            high=2,
            conditions=(
                condition("AbleToScale", "ScaleDownStabilized"),
                ACTIVE,
                condition("ScalingLimited", "TooManyReplicas"),
            ),
        ),
        [],
        "overloaded",
        "warning",
        "held by maxReplicas 2: cpu 150% of 70%",
        explained=False,
    ),
    "overloaded and scaling out is disabled": JudgedWorld(
        hpa(
            status=[current("98")],
            behavior={"scaleUp": {"selectPolicy": "Disabled"}},
            conditions=limited("ScaleUpLimit"),
        ),
        three(98, 98, 98),
        "overloaded",
        "warning",
        "held by behavior.scaleUp, which is Disabled",
    ),
    "overloaded in the window of scaling out": JudgedWorld(
        hpa(
            status=[current("98")],
            behavior={"scaleUp": {"stabilizationWindowSeconds": 600}},
            conditions=(condition("AbleToScale", "ScaleUpStabilized"), ACTIVE, WITHIN),
        ),
        three(98, 98, 98),
        "overloaded",
        "warning",
        "held by the stabilization window of behavior.scaleUp",
    ),
    "overloaded, and a pod has no value": JudgedWorld(
        hpa(status=[current("90")]),
        three(90, 90, None),
        "overloaded",
        "warning",
        "held by 1 pod without a value: gpu_utilization 90 of 70",
    ),
    "overloaded at its maximum, and most pods have no value": JudgedWorld(
        hpa(8, status=[current("92")]),
        three(92, 92, 92, *[None] * 5),
        "overloaded",
        "warning",
        "overloaded at 8, held by 5 pods without a value: gpu_utilization 92 of 70",
    ),
    "overloaded at its maximum, with pods without a value since it wanted more": JudgedWorld(
        hpa(
            8,
            status=[current("92")],
            conditions=(
                condition("AbleToScale", "ScaleDownStabilized"),
                ACTIVE,
                condition("ScalingLimited", "TooManyReplicas"),
            ),
        ),
        three(92, 92, 92, *[None] * 5),
        "overloaded",
        "warning",
        "held by 5 pods without a value and maxReplicas 8: gpu_utilization 92 of 70",
        explained=False,
    ),
    "overloaded at its maximum, though a pod has no value": JudgedWorld(
        hpa(8, spec=[metric("40")], status=[current("92")], conditions=limited("TooManyReplicas")),
        three(*[92] * 7, None),
        "overloaded",
        "warning",
        "held by maxReplicas 8: gpu_utilization 92 of 40",
    ),
    "overloaded, scaling out is disabled, and a pod has no value": JudgedWorld(
        hpa(status=[current("90")], behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
        three(90, 90, None),
        "overloaded",
        "warning",
        "held by 1 pod without a value: gpu_utilization 90 of 70",
    ),
    "overloaded, and pods are not ready": JudgedWorld(
        hpa(6, status=[current("100")]),
        [*three(100, 100, 100, 100), *(pod(f"new-{i}", **PENDING, since=300) for i in (0, 1))],
        "waiting",
        "warning",
        "2 pods without a node",
    ),
    "overloaded, and pods have not been ready for hours": JudgedWorld(
        hpa(6, status=[current("100")]),
        [*three(100, 100, 100, 100), *(pod(f"new-{i}", **PENDING) for i in (0, 1))],
        "behind",
        "bad",
        "6 wanted, 4 ready for 60m; 2 pods without a node; gpu_utilization 100 of 70",
    ),
    "a pod that crashes for hours": JudgedWorld(
        hpa(), three(66, 66, None, ready=False), "behind", "bad", "3 wanted, 2 ready for 60m"
    ),
    "a pod that has just become unready": JudgedWorld(
        hpa(), three(66, 66, None, ready=False, since=20), "healthy", "good", "keeps 3, 2 ready"
    ),
    "a pod that crashes since its start": JudgedWorld(
        hpa(status=[current("66")], scaled=90),
        three(66, 66, None, ready=False, since=60, waits="CrashLoopBackOff"),
        "behind",
        "bad",
        "3 wanted, 2 ready for 60s; CrashLoopBackOff",
    ),
    "a pod whose image is pulled": JudgedWorld(
        hpa(scaled=90),
        three(66, 66, None, ready=False, since=60, phase="Pending", waits="ContainerCreating"),
        "healthy",
        "good",
        "keeps 3, 2 ready",
    ),
    "replicas that a quota has forbidden for two minutes": JudgedWorld(
        hpa(5, status=[current("95")], scaled=120),
        three(95, 95, 95),
        "behind",
        "bad",
        "5 wanted, 3 ready; 2 pods are not created; gpu_utilization 95 of 70",
    ),
    "a replica that a quota forbids from the beginning": JudgedWorld(
        hpa(2, low=2, status=[current("66")], scaled=None, created=90),
        three(66),
        "behind",
        "bad",
        "2 wanted, 1 ready; 1 pod is not created",
    ),
    "replicas that do not exist yet": JudgedWorld(
        hpa(5, status=[current("95")], scaled=30),
        three(95, 95, 95),
        "scales out",
        "good",
        "scales out to 5, its pods start: gpu_utilization 95 of 70",
    ),
    "a pod that ends before its successor exists": JudgedWorld(
        hpa(), three(66, 66, 66, deleting=True), "healthy", "good", "keeps 3"
    ),
    "the surge pod of a rollout gets no GPU": JudgedWorld(
        hpa(1), [pod("llm-abc-0", 66), pod("llm-abc-1", **PENDING)], "behind", "bad", "1 wanted"
    ),
    "stuck without a value": JudgedWorld(
        hpa(status=[], conditions=inactive("FailedGetPodsMetric", NO_METRICS)),
        three(None, None, None),
        "stuck",
        "bad",
        "stuck at 3: 3 pods without a value (no exporter on node); FailedGetPodsMetric: unable",
    ),
    "stuck, and the status has old values": JudgedWorld(
        hpa(status=[current("66")], conditions=inactive("FailedGetPodsMetric", NO_METRICS)),
        three(None, None, None),
        "stuck",
        "bad",
        "FailedGetPodsMetric",
    ),
    "stuck, and one of two metrics has no value": JudgedWorld(
        hpa(
            spec=[metric(), QUEUE],
            status=[current("20")],
            conditions=inactive("FailedGetExternalMetric", "no queue"),
        ),
        three(20, 20, 20),
        "stuck",
        "bad",
        "FailedGetExternalMetric",
        other=[Missing("no queue")],
    ),
    "one of two metrics has no value": JudgedWorld(
        hpa(spec=[metric(), QUEUE], status=[current("68"), {"type": ""}]),
        three(68, 68, 68),
        "incomplete",
        "warning",
        "keeps 3: gpu_utilization 68 of 70; no value of queue",
        other=[Missing("no queue")],
    ),
    "scales out, and one of two metrics has no value": JudgedWorld(
        hpa(3, 5, spec=[QUEUE, metric()], status=[{"type": ""}, current("100")], scaled=5),
        three(100, 100, 100),
        "incomplete",
        "warning",
        "scales out 3 → 5: gpu_utilization 100 of 70; no value of queue",
        other=[Missing("no queue")],
    ),
    "a pod has no value": JudgedWorld(
        hpa(), three(66, 66, None), "incomplete", "warning", "1 pod without a value"
    ),
    "held by the window of scaling in": JudgedWorld(
        hpa(
            status=[current("10")],
            conditions=(condition("AbleToScale", "ScaleDownStabilized"), ACTIVE, WITHIN),
        ),
        three(10, 10, 10),
        "held",
        "good",
        "held at 3 by the stabilization window of scaling in",
    ),
    "held by its minimum": JudgedWorld(
        hpa(status=[current("1")], low=3, conditions=limited("TooFewReplicas")),
        three(1, 1, 1),
        "held",
        "good",
        "held at 3 by minReplicas 3",
    ),
    "held because scaling in is disabled": JudgedWorld(
        hpa(
            status=[current("10")],
            behavior={"scaleDown": {"selectPolicy": "Disabled"}},
            conditions=limited("ScaleDownLimit"),
        ),
        three(10, 10, 10),
        "held",
        "good",
        "held at 3 by behavior.scaleDown, which is Disabled",
    ),
    "paused by hand": JudgedWorld(
        hpa(0, status=[], conditions=inactive("ScalingDisabled")),
        [],
        "paused",
        "off",
        "paused at 0 replicas",
    ),
    "at zero by KEDA": JudgedWorld(
        hpa(
            0,
            status=[],
            spec=[QUEUE],
            conditions=inactive("ScalingDisabled"),
            ownerReferences=KEDA,
        ),
        [],
        "at zero",
        "off",
        "KEDA wakes it",
        other=[Missing("not read")],
    ),
    "at zero, and an External metric wakes it": JudgedWorld(
        hpa(
            0,
            low=0,
            spec=[QUEUE],
            status=[current("0", "queue", "External")],
            conditions=(*FINE, condition("ScaledToZero", "ScaledToZero")),
        ),
        [],
        "at zero",
        "off",
        "queue wakes it",
        other=[[0]],
    ),
    "minReplicas 0, and somebody else scaled it to 0": JudgedWorld(
        hpa(0, low=0, spec=[QUEUE], status=[], conditions=inactive("ScalingDisabled")),
        [],
        "paused",
        "off",
        "paused at 0 replicas",
        other=[Missing("not read")],
    ),
    "new": JudgedWorld(
        hpa(conditions=(), created=20, scaled=None, status=[]),
        three(66, 66, 66),
        "waiting",
        "warning",
        "waiting for the first sync",
    ),
    "never synced": JudgedWorld(
        hpa(conditions=(), created=3600, scaled=None, status=[]),
        three(66, 66, 66),
        "stale",
        "bad",
        "the HPA controller has not looked at it for 60m",
    ),
    "its spec has changed, and the controller has not seen it": JudgedWorld(
        _changed(), AT_TARGET, "stale", "bad", "has not looked at it for 20m"
    ),
    "minimum equals maximum": JudgedWorld(
        hpa(low=3, high=3), AT_TARGET, "impaired", "warning", "it never scales"
    ),
    "an Object metric with a Value target": JudgedWorld(
        hpa(
            spec=[metric("100", "rps", "Object", "Value")],
            status=[current("95", "rps", "Object", "Value")],
        ),
        three(1, 1, 1),
        "healthy",
        "good",
        "rps 95 of 100",
        other=[95_000],
    ),
    **FLAWED,
    "a metric of 253 characters": JudgedWorld(
        hpa(spec=[metric(name=LONG)], status=[current("66", LONG)]),
        [],
        "healthy",
        "good",
        f"{LONG} 66 of 70",
        explained=False,
    ),
}
