"""One fault or more for each check: what is changed in the facts of a clean cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from adapter.doctor.facts import Clocks, Fact, Facts, SeenScaledObject, SelfPage
from adapter.doctor.objects import ResourceQuota, SeenPriorityClass, read
from adapter.doctor.page import ExporterPage, Trouble
from adapter.doctor.withoutvalue import WithoutValue
from adapter.doctor.workloads import SeenPod
from tests.adapter.doctor.clean import (
    LABELS,
    NOW,
    apiservice,
    certificate,
    clean_store,
    container,
    exporter,
    external,
    hpa,
    lease,
    metric,
    node,
    nodepool,
    own_pod,
    own_workload,
    page,
    pod,
    review,
    row,
    self_page,
    stored,
    workload,
)

HTTP = "inference"
Fault = Callable[[Facts], None]
FAULTS: dict[str, list[Fault]] = {}


def fault(identity: str) -> Callable[[Fault], Fault]:
    """Register a fault of a check."""

    def register(change: Fault) -> Fault:
        FAULTS.setdefault(identity, []).append(change)
        return change

    return register


@fault("GMA001")
def old(facts: Facts) -> None:
    facts.version = Fact((1, 26))


@fault("GMA002")
def no_configmap(facts: Facts) -> None:
    facts.authentication = Fact({})


@fault("GMA003")
def ca_ends(facts: Facts) -> None:
    facts.authentication = Fact({"requestheader-client-ca-file": certificate(10)})


@fault("GMA003")
def ca_ended(facts: Facts) -> None:
    facts.authentication = Fact({"requestheader-client-ca-file": certificate(-1)})


@fault("GMA003")
def ca_garbled(facts: Facts) -> None:
    facts.authentication = Fact({"requestheader-client-ca-file": "-----BEGIN CERTIFICATE-----"})


@fault("GMA004")
def unregistered(facts: Facts) -> None:
    facts.apiservices = Fact([apiservice("v1beta1.custom.metrics.k8s.io")])


@fault("GMA005")
def anothers(facts: Facts) -> None:
    names = [f"{version}.custom.metrics.k8s.io" for version in ("v1beta1", "v1beta2")]
    facts.apiservices = Fact([apiservice(name, "monitoring/prometheus-adapter") for name in names])


def unavailable(facts: Facts, reason: str, message: str) -> None:
    facts.apiservices = Fact(
        [
            apiservice("v1beta1.custom.metrics.k8s.io"),
            apiservice("v1beta2.custom.metrics.k8s.io", reason=reason, message=message),
        ]
    )


@fault("GMA006")
def endpoints(facts: Facts) -> None:
    unavailable(facts, "MissingEndpoints", "endpoints for service/gma have no addresses")


@fault("GMA007")
def certificates(facts: Facts) -> None:
    text = "Get https://10.0.0.1:8443: x509: certificate signed by unknown authority"
    unavailable(facts, "FailedDiscoveryCheck", text)


@fault("GMA008")
def network(facts: Facts) -> None:
    unavailable(facts, "FailedDiscoveryCheck", "context deadline exceeded")


@fault("GMA009")
def hpa_may_not(facts: Facts) -> None:
    facts.hpa_rights = Fact([review("hpa", "pods.custom.metrics.k8s.io", allowed=False)])


@fault("GMA010")
def adapter_may_not(facts: Facts) -> None:
    facts.own_rights = Fact([review("gma", "nodes", allowed=False)])


@fault("GMA011")
def ahead(facts: Facts) -> None:
    facts.clocks = Fact(Clocks(-90.0, NOW.timestamp()))


@fault("GMA011")
def node_ahead(facts: Facts) -> None:
    facts.leases = Fact([lease("gpu-a", NOW + timedelta(seconds=60))])


@fault("GMA012")
def no_device_plugin(facts: Facts) -> None:
    facts.nodes = Fact([node("gpu-a"), node("gpu-b", gpus=0)])


@fault("GMA013")
def down(facts: Facts) -> None:
    facts.nodes = Fact([node("gpu-a"), node("gpu-b", ready=False)])


@fault("GMA401")
def misspelt(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("gpu_utilisation"))])


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
    facts.pods = Fact([each for each in facts.pods.read() if each.pod.ref.namespace != "chat"])


@fault("GMA423")
def twice(facts: Facts) -> None:
    facts.hpas = Fact([hpa(), hpa(name="other")])


@fault("GMA423")
def keda_too(facts: Facts) -> None:
    facts.scaledobjects = Fact([SeenScaledObject("chat", "llm", "Deployment", "llm")])


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


def only_on_a(facts: Facts) -> None:
    facts.pods = Fact([each for each in facts.pods.read() if each.pod.ref.name != EXPORTER_B])


EXPORTER_B = "dcgm-exporter-gpu-b"
KEY_B = f"gpu-operator/{EXPORTER_B}"


fault("GMA101")(only_on_a)


def replace_b(facts: Facts, **more: Any) -> None:
    only_on_a(facts)
    facts.pods = Fact([*facts.pods.read(), exporter("gpu-b", **more)])


@fault("GMA102")
def crashing(facts: Facts) -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    replace_b(facts, status={"containerStatuses": [waiting]})


@fault("GMA102")
def pending(facts: Facts) -> None:
    replace_b(facts, status={"phase": "Pending"})


def trouble(facts: Facts, kind: Trouble, detail: str) -> None:
    pages = dict(facts.pages.read())
    pages[KEY_B] = replace(pages[KEY_B], trouble=kind, detail=detail, devices=(), samples=0)
    facts.pages = Fact(pages)


@fault("GMA103")
def refusing(facts: Facts) -> None:
    trouble(facts, Trouble.REFUSED, "connection refused")


@fault("GMA103")
def hanging(facts: Facts) -> None:
    trouble(facts, Trouble.TIMEOUT, "no answer in time")


@fault("GMA104")
def html(facts: Facts) -> None:
    pages = dict(facts.pages.read())
    facts.pages = Fact(pages | {KEY_B: page("gpu-b", text="<!DOCTYPE html><p>Sign in</p>")})


@fault("GMA104")
def empty(facts: Facts) -> None:
    pages = dict(facts.pages.read())
    facts.pages = Fact(pages | {KEY_B: page("gpu-b", text="\n")})


@fault("GMA104")
def broken(facts: Facts) -> None:
    trouble(facts, Trouble.STATUS, "HTTP status 500")


@fault("GMA105")
def tls(facts: Facts) -> None:
    trouble(facts, Trouble.HTTPS, "it expects TLS")


OPERATORS = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "name": "nvidia-dcgm-exporter",
    "controller": True,
    "uid": "uid-nvidia-dcgm-exporter",
}


@fault("GMA106")
def second(facts: Facts) -> None:
    facts.pods = Fact(
        [*facts.pods.read(), exporter("gpu-b", name="operators-exporter", owners=[OPERATORS])]
    )


@fault("GMA107")
def default_interval(facts: Facts) -> None:
    replace_b(facts, container={"env": []})


@fault("GMA107")
def slow_by_flag(facts: Facts) -> None:
    replace_b(facts, container={"args": ["-f", "a.csv", "--collect-interval=60000"]})


@fault("GMA108")
def old_with_labels(facts: Facts) -> None:
    on = {"name": "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "value": "true"}
    image = "nvcr.io/nvidia/k8s/dcgm-exporter:4.2.3-4.1.3-ubuntu22.04"
    env = [{"name": "DCGM_EXPORTER_INTERVAL", "value": "10000"}, on]
    replace_b(facts, image=image, container={"env": env})


@fault("GMA108")
def old_with_virtual_gpus(facts: Facts) -> None:
    on = {"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}
    replace_b(facts, container={"env": [on]})


@fault("GMA109")
def without_mount(facts: Facts) -> None:
    mount = {"name": "resources", "hostPath": {"path": "/var/lib/kubelet/pod-resources"}}
    replace_b(facts, spec={"volumes": [mount]})


@fault("GMA121")
def mapping_off(facts: Facts) -> None:
    facts.pages = Fact(dict(facts.pages.read()) | {KEY_B: page("gpu-b")})


def on_b(facts: Facts, text: str) -> None:
    facts.pages = Fact(dict(facts.pages.read()) | {KEY_B: page("gpu-b", text=text)})


LABELS_B = 'gpu="0",UUID="GPU-b",namespace="chat",pod="llm-2"'


@fault("GMA122")
def utilization_off(facts: Facts) -> None:
    on_b(facts, f"DCGM_FI_DEV_FB_USED{{{LABELS_B}}} 5\n")


@fault("GMA123")
def instances_without_engine(facts: Facts) -> None:
    mig = LABELS_B + ',GPU_I_PROFILE="1g.5gb",GPU_I_ID="3"'
    on_b(facts, f"DCGM_FI_DEV_FB_USED{{{mig}}} 5\n")


@fault("GMA124")
def profiling_off(facts: Facts) -> None:
    facts.hpas = Fact([hpa(metric("gpu_sm_activity"))])


@fault("GMA125")
def lingering(facts: Facts) -> None:
    gone_labels = LABELS_B.replace("llm-2", "llm-0")
    rows = [f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 5\n" for labels in (LABELS_B, gone_labels)]
    on_b(facts, "".join(rows))


@fault("GMA126")
def sentinels(facts: Facts) -> None:
    on_b(facts, f"DCGM_FI_DEV_GPU_UTIL{{{LABELS_B}}} 9223372036854775794\n")


@fault("GMA127")
def xid(facts: Facts) -> None:
    good = f"DCGM_FI_DEV_GPU_UTIL{{{LABELS_B}}} 5\n"
    on_b(facts, good + f"DCGM_FI_DEV_XID_ERRORS{{{LABELS_B}}} 79\n")


@fault("GMA128")
def near_the_limit(facts: Facts) -> None:
    pages = dict(facts.pages.read())
    pages[KEY_B] = replace(pages[KEY_B], size=15 << 20)
    facts.pages = Fact(pages)


@fault("GMA128")
def many_samples(facts: Facts) -> None:
    pages = dict(facts.pages.read())
    pages[KEY_B] = replace(pages[KEY_B], samples=60_000)
    facts.pages = Fact(pages)


@fault("GMA129")
def malformed(facts: Facts) -> None:
    good = f"DCGM_FI_DEV_GPU_UTIL{{{LABELS_B}}} 5\n"
    on_b(facts, good + f"DCGM_FI_DEV_FB_USED{{{LABELS_B} 5\n")


@fault("GMA201")
def sliced(facts: Facts) -> None:
    labels = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    facts.nodes = Fact([node("gpu-a"), node("gpu-b", labels=labels)])


@fault("GMA202")
def renamed(facts: Facts) -> None:
    limits = {"limits": {"nvidia.com/mig-1g.5gb": "1"}}
    waiting = pod("mig-1", on="", containers=[{"name": "a", "resources": limits}])
    waiting = replace_pod(waiting, phase="Pending")
    facts.pods = Fact([*facts.pods.read(), waiting])


def replace_pod(each: SeenPod, **more: Any) -> SeenPod:
    return SeenPod(replace(each.pod, **more), each.spec, each.status)


@fault("GMA203")
def whole_on_mig(facts: Facts) -> None:
    facts.nodes = Fact([node("gpu-a"), node("gpu-b", labels={"nvidia.com/mig.strategy": "single"})])
    facts.hpas = Fact([hpa(metric("DCGM_FI_DEV_GPU_UTIL"))])


@fault("GMA204")
def claimed(facts: Facts) -> None:
    spec = {"resourceClaims": [{"name": "gpu"}], "containers": [{"name": "a"}]}
    facts.pods = Fact([*facts.pods.read(), pod("dra-1", on="gpu-b", spec=spec)])


@fault("GMA205")
def foreign_name(facts: Facts) -> None:
    facts.nodes = Fact([*facts.nodes.read(), node("gpu-c", resource="acme.com/gpu")])


def from_store(facts: Facts, **more: Any) -> None:
    whole = clean_store()
    facts.release, facts.store = whole.release, Fact(stored(**more))


@fault("GMA301")
def no_store(facts: Facts) -> None:
    from_store(facts, problem="does not answer: connection refused")


@fault("GMA302")
def no_series(facts: Facts) -> None:
    from_store(facts, series=[])


@fault("GMA303")
def one_target(facts: Facts) -> None:
    from_store(facts, series=[row("gpu-a", "llm-1")])


@fault("GMA304")
def seldom(facts: Facts) -> None:
    from_store(facts, intervals={"gpu-a:9400": 60.0})


@fault("GMA305")
def labels_dropped(facts: Facts) -> None:
    from_store(facts, series=[row("gpu-a"), row("gpu-b")])


@fault("GMA306")
def honored(facts: Facts) -> None:
    mine = row("gpu-a", namespace="chat", pod="llm-1")
    from_store(facts, series=[mine, row("gpu-b")])


def server_pod(image: str, **notes: str) -> SeenPod:
    ports = [{"name": "http", "containerPort": 8000}]
    words = {f"gpu-metrics-adapter.io/{key}": value for key, value in notes.items()}
    return pod("vllm-1", containers=[container(image, ports=ports)], annotations=words)


VLLM = "docker.io/vllm/vllm-openai:v0.10.0"


@fault("GMA501")
def silent_server(facts: Facts) -> None:
    facts.pods = Fact([*facts.pods.read(), server_pod(VLLM)])


@fault("GMA502")
def unknown_port(facts: Facts) -> None:
    facts.pods = Fact([*facts.pods.read(), server_pod(VLLM, scrape="true", port="metrics")])


def server_trouble(facts: Facts, trouble: Trouble | None, detail: str) -> None:
    facts.pods = Fact([*facts.pods.read(), server_pod(VLLM, scrape="true")])
    found = ExporterPage("chat/vllm-1", "gpu-a", HTTP, ":8000/metrics", trouble, detail)
    facts.server_pages = Fact({"chat/vllm-1": found})


@fault("GMA502")
def nobody_listens(facts: Facts) -> None:
    server_trouble(facts, Trouble.REFUSED, "connection refused")


@fault("GMA503")
def not_found(facts: Facts) -> None:
    server_trouble(facts, Trouble.STATUS, "HTTP status 404")


@fault("GMA504")
def no_queue(facts: Facts) -> None:
    server_trouble(facts, Trouble.EMPTY, "no line of a metrics page that the adapter knows")


@fault("GMA505")
def turned_off(facts: Facts) -> None:
    facts.pods = Fact([*facts.pods.read(), server_pod(VLLM, scrape="true")])
    config = "source: {scrape: {inference: {enabled: false}}}\n"
    facts.release = Fact(own_workload(config))


@fault("GMA505")
def one_address(facts: Facts) -> None:
    one = server_pod(VLLM, scrape="true")
    twin = pod(
        "vllm-2",
        containers=[container(VLLM, ports=[{"name": "http", "containerPort": 8000}])],
        annotations={"gpu-metrics-adapter.io/scrape": "true"},
        status={"podIP": one.pod.ip, "podIPs": [{"ip": one.pod.ip}]},
    )
    facts.pods = Fact([*facts.pods.read(), one, twin])


@fault("GMA601")
def no_autoscaler(facts: Facts) -> None:
    facts.autoscaler = Fact("")


@fault("GMA602")
def no_buffers(facts: Facts) -> None:
    facts.nodepool = Fact(nodepool("nodepool: {way: buffer}\n"))


@fault("GMA603")
def no_class(facts: Facts) -> None:
    facts.priorityclasses = Fact([])


@fault("GMA603")
def high_class(facts: Facts) -> None:
    given = {"metadata": {"name": "gpu-metrics-adapter-headroom"}, "value": 1000}
    facts.priorityclasses = Fact([read(given, SeenPriorityClass)])


@fault("GMA604")
def full_quota(facts: Facts) -> None:
    given = {
        "metadata": {"name": "small", "namespace": "gpu-metrics"},
        "status": {"hard": {"pods": "4"}, "used": {"pods": "4"}},
    }
    facts.quotas = Fact([read(given, ResourceQuota)])


@fault("GMA605")
def tight_cap(facts: Facts) -> None:
    facts.nodepool = Fact(nodepool("nodepool: {limits: {max_pods: 0}}\n"))


@fault("GMA605")
def wide_pods(facts: Facts) -> None:
    facts.workloads = Fact([workload(gpus=16)])


@fault("GMA606")
def too_wide(facts: Facts) -> None:
    facts.workloads = Fact([workload(gpus=16)])


@fault("GMA701")
def bad_settings(facts: Facts) -> None:
    facts.release = Fact(own_workload("source: {knd: scrape}\n"))


@fault("GMA701")
def not_yaml(facts: Facts) -> None:
    facts.release = Fact(own_workload("source: {\n"))


def one_own(facts: Facts, **status: Any) -> None:
    each = own_pod("gma-1", status=status)
    facts.release = Fact(own_workload(pods=[each]))


@fault("GMA702")
def unready(facts: Facts) -> None:
    given = {"type": "Ready", "status": "False", "message": "containers with unready status"}
    one_own(facts, conditions=[given])


@fault("GMA702")
def no_pod(facts: Facts) -> None:
    facts.release = Fact(own_workload(pods=[]))


@fault("GMA703")
def killed(facts: Facts) -> None:
    ended = {"terminated": {"reason": "OOMKilled"}}
    one_own(facts, containerStatuses=[{"name": "serve", "restartCount": 1, "lastState": ended}])


@fault("GMA703")
def restarting(facts: Facts) -> None:
    one_own(facts, containerStatuses=[{"name": "serve", "restartCount": 9}])


@fault("GMA704")
def other_image(facts: Facts) -> None:
    facts.release = Fact(own_workload(image="registry/gpu-metrics-adapter:0.9.0"))


@fault("GMA705")
def one_replica(facts: Facts) -> None:
    facts.release = Fact(own_workload(replicas=1))


@fault("GMA706")
def no_value(facts: Facts) -> None:
    facts.measured = Fact({"chat": frozenset({"llm-1"})})


@fault("GMA706")
def no_value_in_the_view(facts: Facts) -> None:
    hint = "kubectl -n gpu-operator describe pod dcgm-exporter-gpu-b"
    why = ("exporter_down", "the exporter of the node does not answer", hint)
    facts.release, facts.measured = Fact(None), Fact({})
    facts.without_value = Fact([WithoutValue("chat/llm-2", *why)])


@fault("GMA711")
def apart(facts: Facts) -> None:
    facts.self_pages = Fact([self_page("gma-1"), self_page("gma-2", gma_exporters=1)])


@fault("GMA712")
def much_memory(facts: Facts) -> None:
    facts.self_pages = Fact([self_page("gma-1", process_resident_memory_bytes=1000 << 20)])


@fault("GMA713")
def certificate_ends(facts: Facts) -> None:
    name = "gma_serving_certificate_expiry_timestamp_seconds"
    facts.self_pages = Fact([self_page("gma-1", **{name: NOW.timestamp() + 86400})])


@fault("GMA714")
def many_rejects(facts: Facts) -> None:
    one = self_page("gma-1")
    key = ("gma_rejects_total", (("reason", "no_gpu_in_spec"),))
    facts.self_pages = Fact([SelfPage("gma-1", {**one.samples, key: 900.0})])
