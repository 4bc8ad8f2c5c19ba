"""One pod as an object of the view API, which explains each of its values, and the schema of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from adapter.answers.view.devices import Devices
from adapter.answers.view.fragments import (
    ABSENT,
    IDLE,
    PRECISION,
    VALUE,
    WHOLE_REASON,
    Json,
    Reasons,
    is_expressible,
    value_fields,
    why,
)
from adapter.answers.view.hpaparts import ASKING, MORE, metric_readers, served_metrics
from adapter.answers.view.idle import pod_idle
from adapter.answers.view.owner import Above, topmost_workload
from adapter.answers.view.podparts import DEVICES, SERVER, MetricResult, device_parts, server_parts
from adapter.answers.view.podvalues import AskedPod, principal_reading
from adapter.answers.view.schema import array, boolean, integer, mapping, struct, text
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.catalog.metric import Metric, Scope
from adapter.pipeline.catalog.promise import SLO_RATIO, Promise, describe_promise
from adapter.pipeline.cluster.gpuresources import whole_devices
from adapter.pipeline.cluster.hpas import ScalingHpas
from adapter.pipeline.cluster.pod import Pod
from apiservice.wire import instant

TOO_LARGE: Final = "too_large"


Promised = Sequence[tuple[Promise, Reading | Absence]]
"""Promises that queries about a pod state, and the pod's value for each."""


def build_object(
    asked_pod: AskedPod, devices: Devices, hpas: ScalingHpas, promised: Promised = ()
) -> Json:
    """Return the object of a pod.

    Args:
        asked_pod: the pod, at one time.
        devices: the names of the devices.
        hpas: those that scale a workload of the pod.
        promised: see there.
    """
    pod = asked_pod.pod
    ratio = asked_pod.snapshot.catalog.metrics[SLO_RATIO]
    values: list[MetricResult] = [
        (metric, asked_pod.reading(metric.name, ask=False)) for metric in asked_pod.metrics()
    ]
    values += _absent_hpa_metrics(asked_pod, values, hpas)
    main = principal_reading(asked_pod)
    of_devices = [pair for pair in values if pair[0].scope is Scope.DEVICE]
    of_server = [pair for pair in values if pair[0].scope is Scope.SERVER]
    of = list(device_parts(asked_pod, of_devices, devices))
    body: Json = {
        "metadata": _metadata(pod),
        "node": pod.node,
        "phase": pod.phase,
        "ready": pod.ready,
        "placeholder": pod.placeholder,
        "workload": workload(above) if (above := topmost_workload(pod)) is not None else {},
        "requests": dict(pod.gpus),
        "resourceClaims": pod.claims,
        "unhealthyDevices": list(pod.unhealthy),
        "measured": isinstance(main, Reading),
        "reason": why(main, asked_pod.snapshot, pod) if isinstance(main, Absence) else {},
        "metrics": [*_metrics(values), *_ratios(ratio, promised)],
        "absent": _absence_reasons(
            asked_pod, [*values, *((ratio, value) for _, value in promised)]
        ),
        "devices": of,
        "unreportedDevices": _count_unreported(asked_pod, len(of)),
        "server": list(server_parts(asked_pod, of_server)),
        "idleSince": instant.write(idle) if (idle := pod_idle(asked_pod)) is not None else "",
        "hpas": metric_readers(hpas.first, asked_pod.snapshot.catalog.metrics),
        "hpasNotShown": hpas.more,
    }
    always = ("ready", "measured")
    return {key: value for key, value in body.items() if value or key in always}


def _absent_hpa_metrics(
    asked_pod: AskedPod, results: Sequence[MetricResult], hpas: ScalingHpas
) -> Iterator[MetricResult]:
    """Yield why the pod lacks further metrics that HPAs read, such as those of its server."""
    catalog, seen_names = asked_pod.snapshot.catalog.metrics, {metric.name for metric, _ in results}
    for hpa in hpas.first:
        for shown in served_metrics(hpa, catalog):
            metric = catalog[shown.name]
            if shown.type != "Pods" or metric.name in seen_names or metric.promised:
                continue
            seen_names.add(metric.name)
            reading = asked_pod.reading(metric.name)
            if isinstance(reading, Absence):
                yield metric, reading


def _count_unreported(asked_pod: AskedPod, shown: int) -> int:
    """Return the devices that the pod has of its own by its spec, and of which no sample shows that
    it has them. Of a node that shares its devices, nobody knows how many these are."""
    pod = asked_pod.pod
    if not (pod.node and asked_pod.holds_gpu) or asked_pod.snapshot.cluster.facts(pod.node).shared:
        return 0
    return max(0, whole_devices(pod.gpus) - shown)


def _metadata(pod: Pod) -> Json:
    metadata: Json = {
        "namespace": pod.ref.namespace,
        "name": pod.ref.name,
        "uid": pod.uid,
        "labels": dict(pod.labels),
    }
    if pod.born:
        metadata["creationTimestamp"] = instant.write(pod.born)
    return metadata


def workload(above: Above) -> Json:
    """Return a reference to a workload."""
    return {"apiVersion": above.api_version, "kind": above.kind, "name": above.name}


def _metrics(results: Sequence[MetricResult]) -> Iterator[Json]:
    for metric, reading in results:
        if isinstance(reading, Reading) and is_expressible(reading.value):
            yield value_fields(metric, reading)


def _ratios(metric: Metric, promised: Promised) -> Iterator[Json]:
    for promise, value in promised:
        if isinstance(value, Reading):
            yield value_fields(metric, value) | {"promise": describe_promise(promise)}


def _absence_reasons(asked_pod: AskedPod, results: Sequence[MetricResult]) -> list[Json]:
    """Return the reasons for which metrics have no value, each with its metrics."""
    reasons = Reasons(asked_pod.snapshot, asked_pod.pod)
    for metric, reading in results:
        if isinstance(reading, Absence):
            reasons.add(reading, metric)
        elif not is_expressible(reading.value):
            reasons.add(Absence(TOO_LARGE), metric)
    return reasons.list_reasons()


WORKLOAD: Final = {
    "apiVersion": text("API version of the workload."),
    "kind": text("Kind of the workload, such as Deployment."),
    "name": text("Name of the workload."),
}
PROMISE: Final = text(
    "Of inference_slo_ratio: the promise that a query stated lately, such as ttft_p90 1s. There is "
    "a value for each promise."
)
SCHEMA: Final = struct(
    "A pod that holds a GPU, or an inference server that is scraped, with the explanation of each "
    "of its values. Absent fields are not known; a missing value is never 0.",
    node=text("Node of the pod."),
    phase=text("Phase of the pod. Only a running pod has values."),
    ready=boolean("Whether the pod is ready."),
    placeholder=boolean(
        "True if the pod has no work and holds room for others. Its GPUs are free: never idle."
    ),
    workload=struct(
        "The topmost workload that the pod is known to belong to. Absent for a bare pod.",
        **WORKLOAD,
    ),
    requests=mapping(
        "GPU resources that the pod requests, such as nvidia.com/gpu.",
        integer("Number of devices, or another amount of the resource."),
    ),
    unhealthyDevices=array(
        "Devices of the pod that the kubelet reports unhealthy.",
        text("The device as its device plugin or DRA driver names it, and the resource."),
    ),
    resourceClaims=boolean("True if the pod has DRA resource claims, which may hold a GPU."),
    measured=boolean(
        "Whether gpu_utilization has a value or, for a server without a GPU, a metric of it."
    ),
    reason=struct("Why the pod is not measured.", **WHOLE_REASON),
    metrics=array(
        "Every metric that has a value.",
        struct("A metric of the pod.", **VALUE, precision=PRECISION, promise=PROMISE),
    ),
    absent=array("Every other metric that applies to the pod, by reason.", ABSENT),
    devices=DEVICES,
    unreportedDevices=integer(
        "Devices that the pod has of its own by its spec, beside those of this list: no exporter "
        "reports that it has them. Absent if the pod may share them."
    ),
    server=SERVER,
    idleSince=IDLE,
    hpas=ASKING,
    hpasNotShown=MORE,
)
