"""Situations of an HPA, and their exit status; the texts lie in ``texts/``."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tests.adapter.clientapi import forbidden, status_of
from tests.adapter.tools.explain.cluster import (
    CUSTOM,
    EVENTS,
    FIX,
    GPUPODS,
    NO_PODS_NAMED,
    NS,
    RESOURCES,
    SCALE,
    WELL,
    World,
    at,
    condition,
    container_metric,
    cpu_metric,
    external_metric,
    gpu_metric,
)

BY_KEDA: Final = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "name": "llm",
    "controller": True,
}
NOT_SERVED: Final = status_of(404, "the server could not find the requested resource", "NotFound")


APISERVICE: Final = (
    "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.view.gpu-metrics-adapter.io"
)
WHY: Final = (
    "Deployment/llm has 3 pods of 5: load for at most 4.6 pods is expected within 5 min with 80% "
    "(level 4.1)"
)


_OWN_TRIGGER: Final = {
    "type": "external",
    "metadata": {
        "scalerAddress": "gpu-metrics-adapter.gpu-metrics.svc:6000",
        "metric": "gpu_utilization",
        "target": "70",
    },
}


def _asleep(*triggers: Any) -> World:
    """KEDA has scaled the target to 0. Without triggers, the ScaledObject may not be read."""
    world = World(0).hpa(external_metric(), conditions=DISABLED, ownerReferences=[BY_KEDA])
    if not triggers:
        return world
    ports = [{"port": 6000}]
    service = {"metadata": {"name": "gpu-metrics-adapter"}, "spec": {"ports": ports}}
    world.answer("/api/v1/namespaces/gpu-metrics/services/gpu-metrics-adapter", service)
    return world.answer(
        f"/apis/keda.sh/v1alpha1/namespaces/{NS}/scaledobjects/llm",
        {
            "metadata": {"name": "llm", "namespace": NS},
            "spec": {"scaleTargetRef": {"name": "llm"}, "triggers": list(triggers)},
        },
    )


def headroom(
    namespace: str = "gpu-metrics",
    workloads: str = "Deployment/llm, Deployment/embed",
    why: str = WHY,
) -> dict[str, Any]:
    """A headroom object, as nodepool writes it."""
    annotations = {
        "gpu-metrics-adapter.io/pool": "gpu-h100",
        "gpu-metrics-adapter.io/why": why,
        "gpu-metrics-adapter.io/workloads": workloads,
    }
    name = "gpu-headroom-0a1b2c3d4e"
    labels = {
        "gpu-metrics-adapter.io/headroom": "0a1b2c3d4e",
        "gpu-metrics-adapter.io/workload-namespace": NS,
    }
    meta = {"name": name, "namespace": namespace, "annotations": annotations, "labels": labels}
    return {"metadata": meta, "spec": {"replicas": 2}}


def _external(
    name: str, target: dict[str, str], *values: str, by_keda: bool = False, **labels: str
) -> World:
    """Three pods and an HPA with an External metric at its maximum of 4."""
    metric = {"name": name, "selector": {"matchLabels": labels}}
    row = {"type": "External", "external": {"metric": metric, "target": target}}
    owned: Any = {"ownerReferences": [{"kind": "ScaledObject", "name": "llm"}]} if by_keda else {}
    world = World(4).hpa(row, high=4, **owned)
    for pod in ("llm-7f9", "llm-a11", "llm-x2k", "llm-b2c"):
        world.pod(pod, gpu=False)
    items = [{"metricName": name, "value": value} for value in values]
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{NS}/{name}"
    return world.answer(path, {"items": items})


def _held() -> World:
    world = three(("66", "70", "64")).hpa(gpu_metric())
    world.answer(APISERVICE, {"spec": {"service": {"namespace": "gpu-metrics"}}})
    buffers = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/gpu-metrics/capacitybuffers"
    return world.answer(buffers, [headroom()])


class Situation(NamedTuple):
    """A cluster, and the exit status of ``explain hpa llm``."""

    world: World
    status: int = 0


def three(values: tuple[str, str, str], **rest: Any) -> World:
    """Three pods with values."""
    world = World(**rest)
    for name, value in zip(("llm-7f9", "llm-a11", "llm-x2k"), values, strict=True):
        world.pod(name, value)
    return world


def _missing() -> World:
    world = World().hpa(gpu_metric())
    world.pod("llm-7f9", "92").pod("llm-a11", "88", node="n2")
    world.pod("llm-x2k", node="n3", why=NO_PODS_NAMED)
    message = "New size: 3; reason: pods metric gpu_utilization above target"
    return world.event("SuccessfulRescale", message, 130)


def _other_container() -> World:
    metric = container_metric()
    metric["containerResource"]["container"] = "server"
    return World(1).hpa(metric).pod("llm-7f9", cpu="100m", gpu=False)


def _pending() -> World:
    text = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    unscheduled = {"type": "PodScheduled", "status": "False", "message": text}
    world = World(2).hpa(gpu_metric()).pod("llm-7f9", "95")
    return world.pod("llm-a11", node="", phase="Pending", conditions=(unscheduled,))


STABILIZED: Final = (
    condition("AbleToScale", True, "ScaleDownStabilized"),
    condition("ScalingActive", True, "ValidMetricFound"),
    condition("ScalingLimited", False, "DesiredWithinRange"),
)
DISABLED: Final = (
    condition("AbleToScale", True, "SucceededGetScale"),
    condition("ScalingActive", False, "ScalingDisabled", "scaling is disabled"),
)
FAILED: Final = (
    condition("AbleToScale", True, "SucceededGetScale"),
    condition("ScalingActive", False, "FailedGetPodsMetric", "no metrics returned"),
)
DENIED: Final = (
    condition("AbleToScale", True, "SucceededGetScale"),
    condition(
        "ScalingActive",
        False,
        "FailedGetPodsMetric",
        "the HPA was unable to compute the replica count: unable to get metric gpu_utilization: "
        "unable to fetch metrics from custom metrics API: pods.custom.metrics.k8s.io is forbidden: "
        'User "system:serviceaccount:kube-system:horizontal-pod-autoscaler" cannot get resource '
        '"pods/gpu_utilization" in API group "custom.metrics.k8s.io" in the namespace "chat"',
    ),
)
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NS}/deployments"
WAITING: Final = "inference_requests_waiting"
NOT_SCRAPED: Final = {
    "reason": "server_not_scraped",
    "message": "the pod does not opt in to have its server page scraped",
    "hint": "kubectl -n chat patch deployment/llm --type=merge -p "
    """'{"spec":{"template":{"metadata":{"annotations":{"gpu-metrics-adapter.io/scrape":"true"}}}}}'""",
    "docs": "docs/reasons.md#server_not_scraped",
}
TTFT: Final = "inference_time_to_first_token_seconds_p90"
TOO_FEW: Final = {
    "reason": "too_few_requests",
    "message": "The server had fewer requests in the window than a latency needs: 3 in 60 s; "
    "values.min_requests is 10",
    "hint": "Ask for the latency of all pods with an Object or External metric, or lower "
    "values.min_requests.",
    "docs": "docs/reasons.md#too_few_requests",
}
POLICY: Final = {"type": "Pods", "value": 1, "periodSeconds": 600}

DOWN: Final = {
    "reason": "exporter_down",
    "message": "no samples from http://10.0.0.7:9400/metrics for 25 min: connection refused",
    "hint": "kubectl -n gpu-operator logs dcgm-x2k --tail=20",
    "then": "kubectl -n gpu-operator delete pod dcgm-x2k",
    "docs": "docs/reasons.md#exporter_down",
}


def latencies() -> World:
    """Servers with a latency each, and one with too few requests for one."""
    world = World(3).hpa(gpu_metric("1", TTFT))
    for name, value, precision in (
        ("llm-7f9", "0.9", "between 0.5 s and 1 s; 240 in 60 s"),
        ("llm-b", "2.5", "above 2.5 s, the last bound; 180 in 60 s"),
    ):
        world.pod(name, value, metric=TTFT)
        (row,) = world.gpupods[-1]["metrics"]
        row.update(unit="s", windowSeconds=60, precision=precision)
    return world.pod("llm-x2k", metric=TTFT, why=TOO_FEW)


def promised() -> World:
    """Servers on a promise, of which each has two values: an older HPA had another promise."""
    metric = gpu_metric("500m", "inference_slo_ratio")
    metric["pods"]["metric"]["selector"] = {"matchLabels": {"ttft_p90": "1s"}}
    world = World(2).hpa(metric)
    for name, value, load in (("llm-7f9", "0.62", 15), ("llm-b", "0.58", 14)):
        world.pod(name, value, metric="inference_slo_ratio")
        rows = world.gpupods[-1]["metrics"]
        precision = (
            f"load {load} of capacity 24.2 at ttft_p90 1s, seen to break (1240 requests); measured "
            "latency 0.7 of the promise; decided by load"
        )
        rows[0].update(unit="ratio", windowSeconds=60, precision=precision, promise="ttft_p90 1s")
        other = rows[0] | {"value": "100m", "precision": "of itl", "promise": "itl_p90 50ms"}
        rows.insert(0, other)
    return world


def _recovered() -> World:
    """A controller that was denied before it became well, and has failed since another way."""
    long = "unable to get metric gpu_utilization: pods is forbidden: User cannot get resource " * 3
    world = three(("72", "70", "74")).hpa(gpu_metric())
    world.event("FailedGetPodsMetric", long, 1500, kind="Warning")
    world.event("SuccessfulRescale", "New size: 3; reason: above target", 1400)
    return world.event("FailedUpdateScale", "the object has been modified", 60, kind="Warning")


def _failing() -> World:
    """A pod without a value, whose controller reports each failure twice, at length."""
    world = World(1).hpa(gpu_metric(), conditions=FAILED)
    world.pod("llm-7f9", node="n3", why=NO_PODS_NAMED)
    text = "unable to get metric gpu_utilization: no metrics returned from custom metrics API " * 2
    world.event("FailedComputeMetricsReplicas", f"first error is: {text}", 16, kind="Warning")
    return world.event("FailedGetPodsMetric", text, 15, kind="Warning")


def _denied() -> World:
    """A controller without the right, and a pod without a value: the right alone does not help."""
    world = World(2).hpa(gpu_metric(), conditions=DENIED).pod("llm-7f9", "92")
    return world.pod("llm-x2k", node="n3", why=NO_PODS_NAMED)


APISERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
FROZEN: Final = {
    "metadata": {"name": "v1beta1.metrics.k8s.io"},
    "spec": {"service": {"namespace": "kube-system", "name": "metrics-server"}},
    "status": {
        "conditions": [
            {
                "type": "Available",
                "status": "False",
                "reason": "FailedDiscoveryCheck",
                "message": "failing or missing response: context deadline exceeded",
            }
        ]
    },
}


def _crashing() -> World:
    """A pod whose container ends as soon as it starts."""
    world = World(1).hpa(gpu_metric()).pod("llm-7f9", why={"reason": "pod_not_ready"})
    world.pods[0]["status"]["containerStatuses"] = [
        {
            "name": "main",
            "restartCount": 9,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": at(90)}},
        }
    ]
    return world


SITUATIONS: Final[dict[str, Situation]] = {
    "headroom": Situation(_held()),
    "headroom-denied": Situation(
        three(("66", "70", "64"))
        .hpa(gpu_metric())
        .answer(APISERVICE, forbidden("ada", "get", "apiservices", "apiregistration.k8s.io", ""))
    ),
    "scales-out": Situation(three(("92", "88", "97")).hpa(gpu_metric())),
    "within-tolerance": Situation(three(("72", "70", "74")).hpa(gpu_metric())),
    "scale-in-waits-for-the-window": Situation(
        three(("10", "12", "9")).hpa(gpu_metric(), conditions=STABILIZED)
    ),
    "a-latency": Situation(latencies(), 1),
    "a-promise": Situation(promised()),
    "a-pod-without-a-value": Situation(_missing(), 1),
    "at-the-maximum": Situation(three(("99", "99", "98")).hpa(gpu_metric(), high=3), 1),
    "cpu-of-a-container-that-no-pod-has": Situation(_other_container(), 1),
    "a-window-of-an-hour": Situation(
        three(("10", "12", "9")).hpa(
            gpu_metric(),
            conditions=STABILIZED,
            spec={"behavior": {"scaleDown": {"stabilizationWindowSeconds": 3600}}},
        )
    ),
    "scale-in-is-switched-off": Situation(
        three(("10", "12", "9")).hpa(
            gpu_metric(), spec={"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}
        )
    ),
    "a-policy-that-is-slow": Situation(
        three(("99", "99", "98")).hpa(
            gpu_metric("20"),
            spec={"behavior": {"scaleUp": {"policies": [{**POLICY, "periodSeconds": 1800}]}}},
        )
    ),
    "a-tolerance-of-its-own": Situation(
        three(("95", "95", "95")).hpa(
            gpu_metric(), spec={"behavior": {"scaleUp": {"tolerance": "0.5"}}}
        )
    ),
    "a-policy-limits-the-rate": Situation(
        three(("99", "99", "98")).hpa(
            gpu_metric("20"), spec={"behavior": {"scaleUp": {"policies": [POLICY]}}}
        )
    ),
    "scale-out-disabled": Situation(
        three(("99", "99", "98")).hpa(
            gpu_metric(), spec={"behavior": {"scaleUp": {"selectPolicy": "Disabled"}}}
        ),
        1,
    ),
    "minimum-equals-maximum": Situation(
        three(("99", "99", "98")).hpa(gpu_metric(), low=3, high=3), 1
    ),
    "a-pod-without-a-node": Situation(_pending(), 1),
    "no-value-at-all": Situation(
        World(1).hpa(gpu_metric()).pod("llm-7f9", node="n3", why=NO_PODS_NAMED),
        1,
    ),
    "an-unknown-metric": Situation(
        three(("92", "88", "97"))
        .hpa(gpu_metric(name="gpu_utilisation"))
        .answer(
            f"{CUSTOM}/gpu_utilisation",
            (404, status_of(404, 'the metric "gpu_utilisation" does not exist', "NotFound")),
        ),
        1,
    ),
    "cpu-only": Situation(
        World(2)
        .hpa(cpu_metric())
        .pod("web-1", cpu="450m", gpu=False)
        .pod("web-2", cpu="400m", gpu=False)
    ),
    "cpu-without-a-request": Situation(
        World(1).hpa(cpu_metric()).pod("web-1", cpu="450m", gpu=False, request=""), 1
    ),
    "cpu-without-time-and-window": Situation(
        World(2)
        .hpa(cpu_metric())
        .pod("web-1", cpu="450m", gpu=False)
        .pod("web-2", cpu="400m", gpu=False)
        .measured("web-1", timestamp=None)
        .measured("web-2", window=None)
    ),
    "cpu-with-a-malformed-window": Situation(
        World(2)
        .hpa(cpu_metric())
        .pod("web-1", cpu="450m", gpu=False)
        .pod("web-2", cpu="400m", gpu=False)
        .measured("web-2", window="soon"),
        1,
    ),
    "cpu-with-a-malformed-time": Situation(
        World(1)
        .hpa(cpu_metric())
        .pod("web-1", cpu="450m", gpu=False)
        .measured("web-1", timestamp="today"),
        1,
    ),
    "cpu-with-a-malformed-usage": Situation(
        World(1).hpa(cpu_metric()).pod("web-1", cpu="much", gpu=False), 1
    ),
    "cpu-with-a-malformed-request": Situation(
        World(1).hpa(cpu_metric()).pod("web-1", cpu="450m", gpu=False, request="half"), 1
    ),
    "cpu-of-a-container-without-metrics-server": Situation(
        World(1)
        .hpa(container_metric())
        .pod("llm-x2k", node="n3", why=DOWN)
        .answer(RESOURCES, (404, NOT_SERVED))
        .answer(APISERVICES, [{"metadata": {"name": "v1.apps"}}]),
        1,
    ),
    "a-metrics-server-that-is-frozen": Situation(
        World(1)
        .hpa(cpu_metric())
        .pod("llm-x2k", "70")
        .answer(RESOURCES, (503, b"service unavailable"))
        .answer(APISERVICES, [FROZEN]),
        1,
    ),
    "a-target-in-another-namespace": Situation(
        World()
        .hpa(gpu_metric())
        .answer(SCALE, (404, status_of(404, 'deployments.apps "llm" not found', "NotFound")))
        .answer(DEPLOYMENTS, [])
        .answer(
            "/apis/apps/v1/deployments",
            [{"metadata": {"name": "llm", "namespace": "prod"}, "spec": {}}],
        ),
        1,
    ),
    "a-pod-that-crashes": Situation(_crashing(), 1),
    "cpu-without-metrics-server": Situation(
        World(1).hpa(cpu_metric()).pod("web-1", gpu=False).answer(RESOURCES, (404, NOT_SERVED)),
        1,
    ),
    "cpu-beside-gpu": Situation(
        World(2)
        .hpa(gpu_metric(), cpu_metric())
        .pod("llm-7f9", "60", cpu="100m")
        .pod("llm-a11", "61", cpu="450m")
    ),
    "cpu-that-may-not-be-read": Situation(
        World(1)
        .hpa(cpu_metric())
        .pod("web-1", gpu=False)
        .answer(RESOURCES, forbidden("jane", "list", "pods", "metrics.k8s.io", NS)),
        2,
    ),
    "metrics-that-may-not-be-read": Situation(
        three(("92", "88", "97"))
        .hpa(gpu_metric())
        .answer(
            f"{CUSTOM}/gpu_utilization",
            forbidden("jane", "get", "pods/gpu_utilization", "custom.metrics.k8s.io", NS),
        )
    ),
    "without-the-view-api": Situation(
        three(("92", "88", "97")).hpa(gpu_metric()).answer(GPUPODS, (404, NOT_SERVED))
    ),
    "paused": Situation(World(0).hpa(gpu_metric(), conditions=DISABLED), 1),
    "stopped-at-zero-where-an-hpa-may-be": Situation(
        World(0).hpa(external_metric(), low=0, conditions=DISABLED), 1
    ),
    "at-zero-by-keda": Situation(_asleep({"type": "cron", "metadata": {}})),
    "at-zero-for-ever": Situation(_asleep({"type": "cpu"}, _OWN_TRIGGER), 1),
    "at-zero-behind-a-missing-right": Situation(_asleep()),
    "of-keda-at-its-maximum": Situation(
        World(1)
        .hpa(
            external_metric(),
            high=1,
            low=1,
            ownerReferences=[BY_KEDA],
        )
        .pod("llm-7f9", gpu=False)
        .answer(
            f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{NS}/queue",
            {"items": [{"metricName": "queue", "value": "25"}]},
        ),
        1,
    ),
    "external-not-found": Situation(World(1).hpa(external_metric()).pod("llm-7f9", gpu=False), 1),
    "no-such-target": Situation(
        World(1)
        .hpa(gpu_metric())
        .answer(SCALE, (404, status_of(404, 'deployments.apps "llm" not found', "NotFound"))),
        1,
    ),
    "no-such-target-beside-another": Situation(
        World(1)
        .hpa(gpu_metric())
        .answer(SCALE, (404, status_of(404, 'deployments.apps "llm" not found', "NotFound")))
        .answer(DEPLOYMENTS, [{"metadata": {"name": "inference", "namespace": NS}}]),
        1,
    ),
    "a-controller-without-the-right": Situation(
        three(("92", "88", "97")).hpa(gpu_metric(), conditions=DENIED), 1
    ),
    "a-controller-without-the-right-and-a-pod-without-a-value": Situation(_denied(), 1),
    "a-controller-without-the-right-to-an-api-that-is-down": Situation(
        World(1)
        .hpa(gpu_metric(), conditions=DENIED)
        .pod("llm-7f9", "92")
        .answer(
            f"{CUSTOM}/gpu_utilization",
            (503, status_of(503, "service unavailable", "ServiceUnavailable")),
        ),
        1,
    ),
    "a-controller-without-the-right-to-an-unknown-metric": Situation(
        World(1)
        .hpa(gpu_metric(name="gpu_utilisation"), conditions=DENIED)
        .pod("llm-7f9", "92")
        .answer(
            f"{CUSTOM}/gpu_utilisation",
            (404, status_of(404, 'the metric "gpu_utilisation" does not exist', "NotFound")),
        ),
        1,
    ),
    "a-target-in-another-unit-behind-a-missing-right": Situation(
        World(1).hpa(gpu_metric("700m"), conditions=DENIED).pod("llm-7f9", "92"), 1
    ),
    "an-unknown-metric-of-an-api-that-is-down": Situation(
        World(1)
        .hpa(gpu_metric(name="gpu_utilisation"), conditions=FAILED)
        .pod("llm-7f9", "92")
        .answer(
            f"{CUSTOM}/gpu_utilisation",
            (503, status_of(503, "service unavailable", "ServiceUnavailable")),
        )
        .answer(
            "/apis/custom.metrics.k8s.io/v1beta2",
            (503, status_of(503, "service unavailable", "ServiceUnavailable")),
        ),
        1,
    ),
    "events-before-the-hpa-was-well": Situation(_recovered()),
    "events-of-a-failure": Situation(_failing(), 1),
    "a-hint-with-a-second-command": Situation(
        World(1).hpa(gpu_metric()).pod("llm-7f9", node="n3", why=DOWN), 1
    ),
    "a-controller-that-failed-before": Situation(
        three(("92", "88", "97")).hpa(gpu_metric(), conditions=FAILED)
    ),
    "a-target-in-another-unit": Situation(
        three(("60", "62", "58")).hpa(gpu_metric("700m"), high=4), 1
    ),
    "value-of-a-sum": Situation(
        _external("gpu_utilization", {"type": "Value", "value": "70"}, "90", app="llm"), 1
    ),
    "averagevalue-of-a-mean": Situation(
        _external(
            "gpu_utilization",
            {"type": "AverageValue", "averageValue": "70"},
            "90",
            app="llm",
            aggregate="mean",
        ),
        1,
    ),
    "a-metric-of-whole-devices-on-mig": Situation(
        World(1)
        .hpa(gpu_metric("70", "DCGM_FI_DEV_GPU_UTIL"), high=4)
        .pod("llm-7f9", metric="DCGM_FI_DEV_GPU_UTIL", limits={"nvidia.com/mig-1g.10gb": "1"}),
        1,
    ),
    "a-metric-that-falls-under-load": Situation(
        World(1)
        .hpa(gpu_metric("8Gi", "gpu_memory_headroom_bytes"), high=4)
        .pod("llm-7f9", "64424509440", metric="gpu_memory_headroom_bytes"),
        1,
    ),
    "value-of-a-sum-by-keda": Situation(
        _external(
            "s0-gpu_utilization", {"type": "Value", "value": "70"}, "270", by_keda=True
        ).answer(
            f"/apis/keda.sh/v1alpha1/namespaces/{NS}/scaledobjects/llm",
            {
                "metadata": {"name": "llm", "namespace": NS},
                "spec": {
                    "scaleTargetRef": {"name": "llm"},
                    "minReplicaCount": 1,
                    "triggers": [
                        {
                            "type": "external",
                            "metricType": "Value",
                            "metadata": {
                                "scalerAddress": "gpu-metrics-adapter.gpu-metrics.svc:6000",
                                "metric": "gpu_utilization",
                                "target": "70",
                            },
                        }
                    ],
                },
            },
        ),
        1,
    ),
    "a-selector-with-a-key-of-the-exporter": Situation(
        _external(
            "gpu_utilization",
            {"type": "AverageValue", "averageValue": "70"},
            app="llm",
            modelName="NVIDIA-A100",
        ),
        1,
    ),
    "a-server-that-is-not-scraped": Situation(
        World(1)
        .hpa(gpu_metric("4", WAITING))
        .pod("llm-7f9", metric=WAITING, why=NOT_SCRAPED)
        .answer(
            f"{CUSTOM}/{WAITING}",
            (404, status_of(404, f"no value of {WAITING}", "NotFound")),
        ),
        1,
    ),
    "a-metrics-api-that-is-down": Situation(
        three(("92", "88", "97"))
        .hpa(gpu_metric())
        .answer(
            f"{CUSTOM}/gpu_utilization",
            (503, status_of(503, "service unavailable", "ServiceUnavailable")),
        ),
        1,
    ),
    "two-hpas-on-one-target": Situation(
        three(("92", "88", "97")).hpa(gpu_metric()).hpa(gpu_metric(), name="llm-old"), 1
    ),
    "two-hpas-with-different-metrics": Situation(
        three(("92", "88", "97"))
        .hpa(gpu_metric())
        .hpa(gpu_metric("1", "gpu_memory_used_bytes"), name="a"),
        1,
    ),
    "scale-in-disabled": Situation(
        three(("72", "70", "74")).hpa(
            gpu_metric(), spec={"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}
        )
    ),
    "a-new-hpa": Situation(three(("92", "88", "97")).hpa(gpu_metric(), conditions=())),
    # A sync that cannot decide leaves desiredReplicas at 0: nothing may claim that it is wanted.
    "a-new-hpa-that-could-not-decide": Situation(
        three(("72", "70", "74")).hpa(gpu_metric(), conditions=FAILED, desired=0)
    ),
    "neither-decided-nor-readable": Situation(
        World(1)
        .hpa(cpu_metric(), conditions=FAILED, desired=0)
        .pod("web-1", gpu=False)
        .answer(RESOURCES, forbidden("jane", "list", "pods", "metrics.k8s.io", NS)),
        1,
    ),
    "several-metrics": Situation(
        World(2)
        .hpa(gpu_metric(), gpu_metric("24", "inference_requests_running"))
        .pod("llm-7f9", "60")
        .pod("llm-a11", "61")
        .answer(
            f"{CUSTOM}/inference_requests_running",
            {
                "items": [
                    {"describedObject": {"name": "llm-7f9"}, "value": "31"},
                    {"describedObject": {"name": "llm-a11"}, "value": "33"},
                ]
            },
        )
    ),
    "events-that-may-not-be-read": Situation(
        three(("72", "70", "74"))
        .hpa(gpu_metric())
        .answer(EVENTS, forbidden("jane", "list", "events", "", NS))
    ),
    "many-pods": Situation(
        World(14).hpa(gpu_metric(), high=20),
    ),
    "pods-that-end": Situation(
        World(2)
        .hpa(gpu_metric())
        .pod("llm-7f9", "90")
        .pod("llm-a11", "10", deleting=True)
        .pod("llm-b22", phase="Failed")
    ),
}
for _number in range(14):
    SITUATIONS["many-pods"].world.pod(f"llm-{_number:02}", str(60 + _number))

__all__ = ["FIX", "SITUATIONS", "WELL"]
