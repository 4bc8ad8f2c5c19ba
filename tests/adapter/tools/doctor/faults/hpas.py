"""Faults of HPAs and their targets (GMA401 to GMA425)."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from adapter.answers.keda.manifest import SeenScaledObject
from adapter.config.process.config import settings_of
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.cluster.objects import SeenVolumeClaim, read
from adapter.pipeline.cluster.workloadobjects import SpecWriter
from adapter.tools.doctor.facts import Fact, Facts, Hpa
from adapter.tools.doctor.page import ExporterPage
from tests.adapter.tools.doctor.clean import (
    LABELS,
    container,
    external,
    hpa,
    metric,
    pod,
    scaledobject,
    trigger,
    workload,
)
from tests.adapter.tools.doctor.faults.register import fault


def let_rules_serve(facts: Facts) -> None:
    """Set up a rules file, so that somebody else's names may be served too."""
    store = {"prometheus": {"url": "http://prometheus:9090"}}
    content = {"rules": {"file": "/etc/rules.yaml"}, "source": store}
    release = facts.release.read()
    assert release is not None
    facts.release = Fact(release._replace(settings=settings_of(content, "test", {})))


def refused(name: str) -> dict[str, object]:
    """The status of an HPA for whose metric the metrics API has answered 404."""
    row = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "FailedGetPodsMetric",
        "message": "the HPA was unable to compute the replica count: unable to get metric "
        f"{name}: unable to fetch metrics from custom metrics API: the server could not find the "
        f"metric {name} for pods",
    }
    return {"conditions": [row]}


@fault("GMA401")
def misspelt(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("gpu_utilisation"))])


@fault("GMA401")
def served_by_nobody(facts: Facts) -> None:
    """Nothing in the name says GPU, so only the controller's word does."""
    let_rules_serve(facts)
    facts.hpas = Fact([hpa(metric("requests_per_second"), status=refused("requests_per_second"))])


@fault("GMA401")
def without_the_adapter(facts: Facts) -> None:
    facts.release = Fact(None)
    name = "requests_in_flight"
    facts.hpas = Fact([hpa(metric(name), status=refused(name))])


@fault("GMA401")
def misspelt_external(facts: Facts) -> None:
    name = "gpu_utilisation"
    facts.hpas = Fact([hpa(external(name), status=refused(name))])


@fault("GMA410")
def a_metric_that_nobody_serves(facts: Facts) -> None:
    without_the_adapter(facts)


@fault("GMA402")
def share_of_request(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(target={"type": "Utilization", "averageUtilization": 70}))])


@fault("GMA402")
def plain_value(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(target={"type": "Value", "value": "70"}))])


@fault("GMA403")
def above(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(average="150"))])


@fault("GMA403")
def percent_of_ratio(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "70"))])


@fault("GMA403")
def milliseconds_of_a_latency(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(f"{Latency.FIRST_TOKEN}_p90", "500"), metric())])


@fault("GMA404")
def ratio_of_percent(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(average="700m"))])


@fault("GMA404")
def bytes_without_suffix(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("gpu_memory_used_bytes", "20"))])


@fault("GMA404")
def bytes_for_mebibytes(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("DCGM_FI_DEV_FB_USED", "20Gi"))])


@fault("GMA405")
def pinned(facts: Facts) -> None:
    facts.hpas = Fact([hpa(minReplicas=3, maxReplicas=3)])


@fault("GMA406")
def no_way_in(facts: Facts) -> None:
    facts.hpas = Fact([hpa(behavior={"scaleDown": {"selectPolicy": "Disabled"}})])


@fault("GMA407")
def no_way_out(facts: Facts) -> None:
    facts.hpas = Fact([hpa(behavior={"scaleUp": {"selectPolicy": "Disabled"}})])


@fault("GMA408")
def to_zero(facts: Facts) -> None:
    facts.hpas = Fact([hpa(minReplicas=0)])


def asleep(**more: Any) -> Hpa:
    """An HPA whose target somebody scaled to 0."""
    row = {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"}
    row["lastTransitionTime"] = "2026-03-01T11:00:00Z"
    return hpa(status={"conditions": [row]}, **more)


def scaled_by(facts: Facts, manager: str) -> None:
    """The target is at 0, and who wrote that."""
    writer = SpecWriter(manager, None, replicas=True, template=False)
    facts.workloads = Fact([replace(workload(replicas=0), writers=(writer,))])
    facts.hpas = Fact([asleep()])


@fault("GMA408")
def emptied_by_a_rollout(facts: Facts) -> None:
    scaled_by(facts, "rollouts-controller")


@fault("GMA408")
def scaled_to_zero_by_a_program(facts: Facts) -> None:
    scaled_by(facts, "night-saver")


@fault("GMA408")
def a_custom_resource_at_zero(facts: Facts) -> None:
    target = {"apiVersion": "serving.acme.com/v1", "kind": "ModelServer", "name": "llm"}
    facts.hpas = Fact([asleep(scaleTargetRef=target)])


@fault("GMA409")
def rejected(facts: Facts) -> None:
    facts.offline = True
    facts.hpas = Fact([hpa(minReplicas=9, origin="hpa.yaml")])


@fault("GMA410")
def without_metric(facts: Facts) -> None:
    row = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "FailedGetPodsMetric",
        "message": "no metrics returned",
    }
    facts.hpas = Fact([hpa(status={"conditions": [row]})])


@fault("GMA411")
def maximum(facts: Facts) -> None:
    row = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}
    facts.hpas = Fact([hpa(status={"conditions": [row]})])


@fault("GMA421")
def gone(facts: Facts) -> None:
    facts.workloads = Fact([workload("llama")])


@fault("GMA422")
def selects_nothing(facts: Facts) -> None:
    facts.hpas = Fact([hpa(external("gpu_utilization", app="other"))])


@fault("GMA422")
def without_pods(facts: Facts) -> None:
    facts.pods = Fact([other for other in facts.pods.read() if other.pod.ref.namespace != "chat"])


@fault("GMA423")
def twice(facts: Facts) -> None:
    facts.hpas = Fact([hpa(), hpa(name="other")])


@fault("GMA423")
def keda_too(facts: Facts) -> None:
    facts.scaledobjects = Fact([scaledobject()])


@fault("GMA423")
def two_scaledobjects(facts: Facts) -> None:
    facts.hpas = Fact([])
    facts.scaledobjects = Fact([scaledobject(), scaledobject(name="other")])


@fault("GMA412")
def value_of_a_sum(facts: Facts) -> None:
    row = external("gpu_utilization", app="llm")
    row["external"]["target"] = {"type": "Value", "value": "70"}
    facts.hpas = Fact([hpa(row)])


@fault("GMA412")
def averagevalue_of_a_mean(facts: Facts) -> None:
    facts.hpas = Fact([hpa(external("gpu_utilization", app="llm", aggregate="mean"))])


@fault("GMA412")
def value_of_an_objects_sum(facts: Facts) -> None:
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
    of = {"describedObject": about, "metric": {"name": "inference_requests_waiting"}}
    row = {"type": "Object", "object": of | {"target": {"type": "Value", "value": "8"}}}
    facts.hpas = Fact([hpa(row)])


@fault("GMA412")
def value_of_a_triggers_sum(facts: Facts) -> None:
    row = trigger(row={"metricType": "Value"})
    facts.hpas = Fact([])
    facts.scaledobjects = Fact([scaledobject(row)])


@fault("GMA412")
def averagevalue_of_a_triggers_mean(facts: Facts) -> None:
    facts.hpas = Fact([])
    facts.scaledobjects = Fact([scaledobject(trigger(aggregate="mean"))])


@fault("GMA412")
def averagevalue_of_an_objects_latency(facts: Facts) -> None:
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
    row = {
        "metric": {"name": f"{Latency.FIRST_TOKEN}_p90"},
        "describedObject": about,
        "target": {"type": "AverageValue", "averageValue": "1"},
    }
    facts.hpas = Fact([hpa({"type": "Object", "object": row}, metric())])


@fault("GMA457")
def latencies_alone(facts: Facts) -> None:
    names = (f"{Latency.FIRST_TOKEN}_p90", f"{Latency.OUTPUT_TOKEN}_mean")
    facts.hpas = Fact([hpa(*(metric(name, "500m") for name in names))])


@fault("GMA457")
def a_latency_alone_by_keda(facts: Facts) -> None:
    facts.hpas = Fact([])
    facts.scaledobjects = Fact([scaledobject(trigger(f"{Latency.QUEUE}_p95", "1"))])


@fault("GMA456")
def devices_of_leaders(facts: Facts) -> None:
    of = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llm"}
    facts.hpas = Fact([hpa(scaleTargetRef=of)])


@fault("GMA456")
def each_pod_a_replica(facts: Facts) -> None:
    of = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueScalingGroup", "name": "llm"}
    facts.hpas = Fact([hpa(scaleTargetRef=of)])


@fault("GMA413")
def free_memory(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("DCGM_FI_DEV_FB_FREE", "2000"))])


@fault("GMA413")
def temperature(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("gpu_temperature_celsius", "60"))])


@fault("GMA413")
def headroom_by_keda(facts: Facts) -> None:
    facts.scaledobjects = Fact([scaledobject(trigger("gpu_memory_headroom_bytes", "8Gi"))])


@fault("GMA414")
def label_of_the_exporter(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(selector={"matchLabels": {"modelName": "NVIDIA-A100"}}))])


@fault("GMA414")
def no_promise(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("inference_slo_ratio", "500m"))])


@fault("GMA414")
def promise_of_an_external_metric_without_a_unit(facts: Facts) -> None:
    facts.hpas = Fact([hpa(external("inference_slo_ratio", app="llm", ttft_p90="1"))])


@fault("GMA414")
def value_that_no_label_has(facts: Facts) -> None:
    facts.hpas = Fact([hpa(external("gpu_utilization", app="llm", sharing="mig"))])


@fault("GMA414")
def unknown_key_of_a_trigger(facts: Facts) -> None:
    row = trigger(metricSelector="gpu=0")
    facts.scaledobjects = Fact([scaledobject(row)])


def _other(name: str = "gpu_utilization", target: str = "70") -> SeenScaledObject:
    return scaledobject(trigger(name, target), name="other", target="other")


@fault("GMA426")
def unknown_trigger_metric(facts: Facts) -> None:
    facts.scaledobjects = Fact([_other(name="gpu_utilisation")])


@fault("GMA426")
def trigger_without_a_number(facts: Facts) -> None:
    facts.scaledobjects = Fact([_other(target="many")])


@fault("GMA424")
def on_cpu(facts: Facts) -> None:
    facts.workloads = Fact([workload(gpus=0)])


@fault("GMA425")
def saturated(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric(average="90"))])
    page = ExporterPage("chat/llm-1", "gpu-a", "inference", "8000/metrics")
    fields = frozenset({"vllm:num_requests_waiting"})
    facts.server_pages = Fact({"chat/llm-1": _with(page, fields)})
    facts.pods = Fact([*facts.pods.read(), pod("llm-3", labels=LABELS)])


def _with(page: ExporterPage, fields: frozenset[str]) -> ExporterPage:
    return ExporterPage(page.pod, page.node, page.rule, page.url, fields=fields)


@fault("GMA408")
def keda_never_wakes(facts: Facts) -> None:
    facts.scaledobjects = Fact([scaledobject(trigger(), maxReplicaCount=4)])


@fault("GMA427")
def scaledobject_not_ready(facts: Facts) -> None:
    row = {"type": "Ready", "status": "False", "reason": "ScaledObjectCheckFailed"}
    row |= {"message": "error building deployment scalers"}
    facts.scaledobjects = Fact([scaledobject(trigger(), status={"conditions": [row]})])


@fault("GMA427")
def scaledobject_paused(facts: Facts) -> None:
    notes = {"autoscaling.keda.sh/paused": "true"}
    facts.scaledobjects = Fact([scaledobject(trigger(), annotations=notes)])


@fault("GMA427")
def scaledobject_of_a_store_not_ready(facts: Facts) -> None:
    row = {"type": "Ready", "status": "False", "reason": "ScaledObjectCheckFailed"}
    metadata = {"query": "sum(DCGM_FI_DEV_GPU_UTIL)", "ignoreNullValues": "false"}
    asks = {"type": "prometheus", "metadata": metadata}
    facts.scaledobjects = Fact([scaledobject(asks, status={"conditions": [row]})])


@fault("GMA428")
def port_of_the_metrics_api(facts: Facts) -> None:
    row = trigger(scalerAddress="gpu-metrics-adapter.gpu-metrics.svc:443")
    facts.scaledobjects = Fact([scaledobject(row)])


@fault("GMA428")
def address_with_a_scheme(facts: Facts) -> None:
    row = trigger(scalerAddress="http://gpu-metrics-adapter.gpu-metrics.svc:6000")
    facts.scaledobjects = Fact([scaledobject(row)])


@fault("GMA428")
def address_without_a_port(facts: Facts) -> None:
    row = trigger(scalerAddress="gpu-metrics-adapter.gpu-metrics")
    facts.scaledobjects = Fact([scaledobject(row)])


@fault("GMA428")
def tls_that_the_adapter_does_not_speak(facts: Facts) -> None:
    facts.scaledobjects = Fact([scaledobject(trigger(enableTLS="true"))])


def _query(promql: str, **more: str) -> SeenScaledObject:
    metadata = {"serverAddress": "http://prometheus:9090", "query": promql, **more}
    return scaledobject({"type": "prometheus", "metadata": metadata | {"threshold": "70"}})


@fault("GMA429")
def no_answer_is_zero(facts: Facts) -> None:
    promql = 'sum(DCGM_FI_DEV_GPU_UTIL{pod=~"llm-.*"}) / 2'
    facts.scaledobjects = Fact([_query(promql)])


@fault("GMA429")
def a_query_that_is_never_empty(facts: Facts) -> None:
    promql = 'sum(DCGM_FI_DEV_GPU_UTIL{pod=~"llm-.*"}) or vector(0)'
    facts.scaledobjects = Fact([_query(promql, ignoreNullValues="false")])


@fault("GMA412")
def averagevalue_of_a_mean_in_promql(facts: Facts) -> None:
    promql = 'avg(DCGM_FI_DEV_GPU_UTIL{pod=~"llm-.*"})'
    facts.scaledobjects = Fact([_query(promql, ignoreNullValues="false")])


@fault("GMA412")
def averagevalue_of_a_mean_times_a_number(facts: Facts) -> None:
    promql = 'round(100 * avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE{pod=~"llm-.*"}))  # percent'
    facts.scaledobjects = Fact([_query(promql, ignoreNullValues="false")])


@fault("GMA403")
def a_target_above_a_quotient(facts: Facts) -> None:
    promql = 'sum(DCGM_FI_DEV_GPU_UTIL{pod=~"llm-.*"}) / 100'
    facts.scaledobjects = Fact([_query(promql, ignoreNullValues="false")])


@fault("GMA408")
def keda_never_wakes_by_a_store(facts: Facts) -> None:
    metadata = {"serverAddress": "http://prometheus:9090", "threshold": "70"}
    metadata |= {"query": 'sum(DCGM_FI_DEV_GPU_UTIL{pod=~"llm-.*"})', "ignoreNullValues": "false"}
    asks = {"type": "prometheus", "metadata": metadata}
    facts.scaledobjects = Fact([scaledobject(asks, minReplicaCount=0)])


@fault("GMA408")
def keda_never_wakes_by_cpu(facts: Facts) -> None:
    cpu = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "80"}}
    facts.scaledobjects = Fact([scaledobject(trigger(), cpu, minReplicaCount=0)])


@fault("GMA451")
def replicas_in_the_manifest(facts: Facts) -> None:
    manifest = {"metadata": {"name": "llm", "namespace": "chat"}, "spec": {"replicas": 1}}
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(manifest)}
    facts.workloads = Fact([workload(annotations=note)])


def _with_claim(facts: Facts, *modes: str) -> None:
    volume = {"name": "model", "persistentVolumeClaim": {"claimName": "model"}}
    facts.workloads = Fact([workload(pod={"volumes": [volume]})])
    meta = {"name": "model", "namespace": "chat"}
    manifest = {"metadata": meta, "spec": {"accessModes": list(modes)}}
    facts.volume_claims = Fact([read(manifest, SeenVolumeClaim)])


@fault("GMA452")
def volume_of_one_node(facts: Facts) -> None:
    _with_claim(facts, "ReadWriteOnce")


@fault("GMA452")
def volume_of_one_pod(facts: Facts) -> None:
    _with_claim(facts, "ReadWriteOncePod")


@fault("GMA453")
def server_without_a_probe(facts: Facts) -> None:
    facts.workloads = Fact([workload(pod={"containers": [container("vllm/vllm-openai:v1")]})])


@fault("GMA454")
def gpu_as_a_resource(facts: Facts) -> None:
    target = {"type": "Utilization", "averageUtilization": 80}
    row = {"type": "Resource", "resource": {"name": "nvidia.com/gpu", "target": target}}
    facts.hpas = Fact([hpa(row)])


@fault("GMA455")
def ambiguous(facts: Facts) -> None:
    row = {"type": "ScalingActive", "status": "False", "reason": "AmbiguousSelector"}
    text = "pods by selector app=llm are controlled by more than one HPA (e.g. [chat/a chat/b])"
    row |= {"message": text}
    facts.hpas = Fact([hpa(status={"conditions": [row]})])


@fault("GMA455")
def no_scale(facts: Facts) -> None:
    row = {"type": "AbleToScale", "status": "False", "reason": "FailedGetScale"}
    row |= {"message": "the HPA controller was unable to get the target's current scale"}
    facts.hpas = Fact([hpa(status={"conditions": [row]})])
