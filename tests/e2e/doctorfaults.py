"""Faults that are made on purpose on a site, and the ids that ``doctor`` then prints."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tests.adapter.world import shared_page
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.certificates import Authority
from tests.e2e.cluster import DEPLOYMENTS, HPAS, PODS, Object, condition
from tests.e2e.pagestand import made, patched, stand
from tests.e2e.site import Site
from tests.e2e.stage import autoscaler, deployment

CHAT = "chat"
THIRD = "gpu-c"
IDLE_HPA = f"{HPAS.format(ns=CHAT)}/idle"
MAIN_HPA = f"{HPAS.format(ns=CHAT)}/inference"
CONFIG = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{SERVICE}"
RELEASE = f"{DEPLOYMENTS.format(ns=NAMESPACE)}/{SERVICE}"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
UNATTRIBUTED = "02_dcgm_A100_MIG_4_instances_unattributed.prom"
WHOLE = "20_dcgm_H100x8_direct_page.prom"
VLLM = "30_vllm_v1_qwen_full_page.prom"


class Fault(NamedTuple):
    """A fault, and what is found while it lasts."""

    ids: frozenset[str]
    make: Callable[[Site], AbstractContextManager[None]]
    also: frozenset[str] = frozenset()
    """What may appear too, because a controller needs a moment to see the fault."""


FAULTS: dict[str, Fault] = {}


def fault(
    *ids: str, also: tuple[str, ...] = ()
) -> Callable[[Callable[[Site], Iterator[None]]], Callable[[Site], Iterator[None]]]:
    """Register a fault by the name of its function."""

    def register(make: Callable[[Site], Iterator[None]]) -> Callable[[Site], Iterator[None]]:
        manager = contextlib.contextmanager(make)
        FAULTS[make.__name__] = Fault(frozenset(ids), manager, frozenset(also))
        return make

    return register


@contextlib.contextmanager
def third_node(
    site: Site,
    gpus: int = 8,
    resource: str = "nvidia.com/gpu",
    ready: str = "True",
    labels: dict[str, str] | None = None,
) -> Iterator[None]:
    """A node beside those of the site."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": THIRD, "labels": labels or {}}}
    with made(site, node):
        amounts = {"cpu": "24", "memory": "220Gi", "pods": "110"}
        amounts |= {resource: str(gpus)} if gpus else {}
        row = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-02T03:04:05Z"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [row]}
        site.admin.patch(f"/api/v1/nodes/{THIRD}/status", {"status": status})
        yield


def exporter(on: str = THIRD, name: str = "third", **container: Any) -> Object:
    """A dcgm-exporter's pod."""
    interval = {"name": "DCGM_EXPORTER_INTERVAL", "value": "10000"}
    row = {
        "name": "exporter",
        "image": "nvcr.io/nvidia/k8s/dcgm-exporter:4.4.2-4.7.1-ubuntu22.04",
        "ports": [{"name": "metrics", "containerPort": 9400}],
        "env": [interval, *container.pop("env", [])],
        **container,
    }
    meta = {"name": name, "namespace": "gpu-operator", "labels": {"app": "nvidia-dcgm-exporter"}}
    spec = {"nodeName": on, "containers": [row]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@contextlib.contextmanager
def third(site: Site, body: bytes | None, status: int = 200, **more: Any) -> Iterator[None]:
    """A third GPU node whose exporter answers with this."""
    with third_node(site), stand(site, exporter(), 9400, body, status, **more):
        yield


def real(name: str) -> bytes:
    """A real page, without the pods that it names."""
    return re.sub(r',(container|namespace|pod)="[^"]*"', "", shared_page(name)).encode()


def without(page: bytes, series: str) -> bytes:
    """The page without the lines of a series."""
    return b"".join(line for line in page.splitlines(True) if series.encode() not in line)


@fault("GMA101")
def a_node_without_an_exporter(site: Site) -> Iterator[None]:
    with third_node(site):
        yield


@fault("GMA012")
def a_node_without_a_device_plugin(site: Site) -> Iterator[None]:
    with third_node(site, gpus=0, labels={"nvidia.com/gpu.present": "true"}):
        yield


@fault("GMA013")
def a_node_that_is_not_ready(site: Site) -> Iterator[None]:
    with third_node(site, ready="False"), stand(site, exporter(), 9400, real(UNATTRIBUTED)):
        yield


@fault("GMA205")
def a_resource_with_an_unknown_name(site: Site) -> Iterator[None]:
    with third_node(site, resource="acme.com/gpu"):
        yield


@fault("GMA011")
def a_node_whose_clock_is_ahead(site: Site) -> Iterator[None]:
    ahead = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "gpu-a", "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": "gpu-a", "renewTime": ahead},
    }
    with made(site, lease):
        yield


@fault("GMA103")
def an_exporter_that_refuses(site: Site) -> Iterator[None]:
    with third(site, None):
        yield


@fault("GMA104")
def an_exporter_behind_a_login_page(site: Site) -> Iterator[None]:
    with third(site, b"<html><body>Sign in</body></html>"):
        yield


@fault("GMA104")
def an_exporter_that_fails(site: Site) -> Iterator[None]:
    with third(site, b"no", 500):
        yield


@fault("GMA104")
def an_exporter_with_an_empty_page(site: Site) -> Iterator[None]:
    with third(site, b""):
        yield


@fault("GMA105")
def an_exporter_with_tls(site: Site) -> Iterator[None]:
    pair = site.plane.ca.issue("exporter", server=True)
    with third(site, real(UNATTRIBUTED), pair=pair):
        yield


@fault("GMA102")
def an_exporter_that_crashes(site: Site) -> Iterator[None]:
    with third(site, real(UNATTRIBUTED)):
        waiting = {
            "name": "exporter",
            "ready": False,
            "restartCount": 5,
            "image": "x",
            "imageID": "x",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        }
        path = f"{PODS.format(ns='gpu-operator')}/third/status"
        site.admin.patch(path, {"status": {"containerStatuses": [waiting]}})
        yield


@fault("GMA106", also=("GMA121",))
def two_exporters_on_a_node(site: Site) -> Iterator[None]:
    with stand(site, exporter("gpu-a", "second"), 9400, real(UNATTRIBUTED)):
        yield


@fault("GMA107")
def an_exporter_with_the_default_interval(site: Site) -> Iterator[None]:
    pod = exporter()
    pod["spec"]["containers"][0]["env"] = []
    with third_node(site), stand(site, pod, 9400, real(UNATTRIBUTED)):
        yield


@fault("GMA108")
def an_old_exporter_with_labels_of_pods(site: Site) -> Iterator[None]:
    on = {"name": "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "value": "true"}
    image = "nvcr.io/nvidia/k8s/dcgm-exporter:4.2.3-4.1.3-ubuntu22.04"
    pod = exporter(image=image, env=[on])
    with third_node(site), stand(site, pod, 9400, real(UNATTRIBUTED)):
        yield


def holder(name: str, on: str = THIRD, **spec: Any) -> Object:
    """A pod with a GPU."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    row = {"name": "main", "image": "none", "resources": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": CHAT},
        "spec": {"containers": [row], **({"nodeName": on} if on else {}), **spec},
    }


@fault("GMA121", "GMA706")
def a_mapping_that_is_off(site: Site) -> Iterator[None]:
    with third(site, real(WHOLE)), made(site, holder("unnamed")):
        path = f"{PODS.format(ns=CHAT)}/unnamed"
        site.admin.wait(path, lambda obj: obj["status"].get("phase") == "Running", "it runs")
        yield


@fault("GMA122")
def utilization_that_is_not_collected(site: Site) -> Iterator[None]:
    page = without(without(real(WHOLE), "GPU_UTIL"), "ENGINE_ACTIVE")
    with third(site, page):
        yield


@fault("GMA123")
def instances_without_engine_activity(site: Site) -> Iterator[None]:
    with third(site, without(real(UNATTRIBUTED), "ENGINE_ACTIVE")):
        yield


@fault("GMA124", "GMA410")
def a_field_that_no_exporter_writes(site: Site) -> Iterator[None]:
    with metric_of(site, MAIN_HPA, "gpu_sm_activity"):
        site.admin.wait(
            MAIN_HPA,
            lambda obj: condition(obj, "ScalingActive") == ("False", "FailedGetPodsMetric"),
            "the HPA has noticed",
        )
        yield
    site.admin.wait(
        MAIN_HPA, lambda obj: condition(obj, "ScalingActive")[0] == "True", "the HPA is well"
    )


@fault("GMA125")
def a_page_that_names_pods_of_elsewhere(site: Site) -> Iterator[None]:
    with third(site, shared_page(WHOLE).encode()):
        yield


@fault("GMA126")
def values_by_which_dcgm_says_that_it_has_none(site: Site) -> Iterator[None]:
    page = re.sub(rb"(GPU_UTIL\{[^}]*\}) \d+", rb"\1 9223372036854775794", real(WHOLE))
    with third(site, without(page, "ENGINE_ACTIVE")):
        yield


@fault("GMA127")
def a_device_with_an_xid_error(site: Site) -> Iterator[None]:
    labels = 'gpu="0",UUID="GPU-22dbdd79-f55a-92a8-aa39-322198e72ed6"'
    with third(site, real(WHOLE) + f"DCGM_FI_DEV_XID_ERRORS{{{labels}}} 79\n".encode()):
        yield


@fault("GMA128")
def a_page_near_the_limit(site: Site) -> Iterator[None]:
    filler = b"# " + b"x" * 8000 + b"\n"
    with third(site, real(UNATTRIBUTED) + filler * 1800):
        yield


@fault("GMA129")
def a_page_with_lines_that_are_cut(site: Site) -> Iterator[None]:
    page = real(WHOLE)
    lost = [line[: len(line) // 2] for line in page.splitlines() if line.startswith(b"DCGM")]
    with third(site, page + b"\n".join(lost) + b"\n"):
        yield


@contextlib.contextmanager
def labelled(site: Site, node: str, **labels: str) -> Iterator[None]:
    """A node with further labels."""
    path = f"/api/v1/nodes/{node}"
    names = {
        f"nvidia.com/{key.replace('_', '.', 1).replace('_', '-')}": v for key, v in labels.items()
    }
    back = {"metadata": {"labels": dict.fromkeys(names)}}
    with patched(site, path, {"metadata": {"labels": names}}, back):
        yield


@fault("GMA201")
def time_slicing_with_copied_values(site: Site) -> Iterator[None]:
    with (
        labelled(site, "gpu-a", gpu_sharing_strategy="time-slicing"),
        labelled(site, "gpu-b", gpu_sharing_strategy="time-slicing"),
    ):
        yield


@fault("GMA202")
def a_pod_that_requests_what_no_node_offers(site: Site) -> Iterator[None]:
    pod = holder("pending", "", schedulingGates=[{"name": "example.org/wait"}])
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/mig-1g.5gb": "1"}}
    with made(site, pod):
        yield


@fault("GMA203")
def a_field_that_instances_do_not_have(site: Site) -> Iterator[None]:
    both = (labelled(site, node, mig_strategy="single") for node in ("gpu-a", "gpu-b"))
    with contextlib.ExitStack() as stack:
        for each in both:
            stack.enter_context(each)
        stack.enter_context(metric_of(site, MAIN_HPA, "DCGM_FI_DEV_GPU_UTIL"))
        yield


@fault("GMA204", "GMA121", "GMA706")
def a_pod_with_a_claim_that_the_page_does_not_name(site: Site) -> Iterator[None]:
    claims = [{"name": "gpu", "resourceClaimName": "mine"}]
    pod = holder("claims", resourceClaims=claims)
    pod["spec"]["containers"][0].pop("resources")
    with third(site, real(WHOLE)), made(site, pod):
        path = f"{PODS.format(ns=CHAT)}/claims"
        site.admin.wait(path, lambda obj: obj["status"].get("phase") == "Running", "it runs")
        yield


@contextlib.contextmanager
def hpa_with(site: Site, path: str, **spec: Any) -> Iterator[None]:
    """An HPA with another spec."""
    before = site.admin.get(path)["spec"]
    back = {key: before.get(key) for key in spec}
    with patched(site, path, {"spec": spec}, {"spec": back}):
        yield


def pods_metric(name: str, target: str = "70", kind: str = "AverageValue") -> list[Object]:
    """The metrics of an HPA."""
    goal = {"type": kind, "averageValue": target}
    return [{"type": "Pods", "pods": {"metric": {"name": name}, "target": goal}}]


def metric_of(site: Site, path: str, name: str) -> AbstractContextManager[None]:
    """An HPA that asks for another metric."""
    return hpa_with(site, path, metrics=pods_metric(name))


@fault("GMA401")
def a_metric_that_does_not_exist(site: Site) -> Iterator[None]:
    with metric_of(site, IDLE_HPA, "gpu_utilisation"):
        yield


@fault("GMA402")
def a_type_of_target_that_pods_do_not_have(site: Site) -> Iterator[None]:
    metrics = pods_metric("gpu_utilization", kind="Value")
    with hpa_with(site, IDLE_HPA, metrics=metrics):
        yield


@fault("GMA403")
def a_target_above_the_maximum(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, metrics=pods_metric("gpu_utilization", "150")):
        yield


@fault("GMA404")
def a_target_in_the_wrong_unit(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, metrics=pods_metric("gpu_utilization", "700m")):
        yield


@fault("GMA405")
def no_room_to_scale(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, minReplicas=6):
        yield


@fault("GMA406")
def a_behavior_that_never_scales_in(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, behavior={"scaleDown": {"selectPolicy": "Disabled"}}):
        yield


@fault("GMA407")
def a_behavior_that_never_scales_out(site: Site) -> Iterator[None]:
    with hpa_with(site, IDLE_HPA, behavior={"scaleUp": {"selectPolicy": "Disabled"}}):
        yield


@fault("GMA411")
def an_hpa_at_its_maximum(site: Site) -> Iterator[None]:
    with hpa_with(site, MAIN_HPA, maxReplicas=2):
        site.load.set(CHAT, 200)
        site.admin.wait(
            MAIN_HPA,
            lambda obj: condition(obj, "ScalingLimited") == ("True", "TooManyReplicas"),
            "it wants more",
        )
        yield
    site.load.set(CHAT, 60)
    site.admin.wait(
        MAIN_HPA, lambda obj: condition(obj, "ScalingLimited")[0] == "False", "it wants no more"
    )


@fault("GMA421")
def a_target_that_does_not_exist(site: Site) -> Iterator[None]:
    made_up = autoscaler(CHAT, metric="gpu_utilization")
    made_up["metadata"]["name"] = "lost"
    made_up["spec"]["scaleTargetRef"]["name"] = "inferense"
    with made(site, made_up):
        yield


@fault("GMA422")
def a_selector_that_matches_nothing(site: Site) -> Iterator[None]:
    metric = {"name": "gpu_utilization", "selector": {"matchLabels": {"app": "nobody"}}}
    target = {"type": "AverageValue", "averageValue": "70"}
    rows = [{"type": "External", "external": {"metric": metric, "target": target}}]
    with hpa_with(site, IDLE_HPA, metrics=rows):
        yield


@fault("GMA423", also=("GMA410",))
def two_hpas_for_one_workload(site: Site) -> Iterator[None]:
    second = autoscaler(CHAT, metric="gpu_utilization")
    second["metadata"]["name"] = "second"
    second["spec"]["scaleTargetRef"]["name"] = "idle"
    with made(site, second):
        yield


@fault("GMA424")
def a_workload_without_gpus(site: Site) -> Iterator[None]:
    cpu = deployment(CHAT, 0)
    cpu["metadata"]["name"] = "cpu"
    cpu["spec"]["template"]["spec"]["containers"][0].pop("resources")
    second = autoscaler(CHAT, metric="gpu_utilization")
    second["metadata"]["name"] = "cpu"
    second["spec"]["scaleTargetRef"]["name"] = "cpu"
    with made(site, cpu, second):
        yield


def server(name: str = "vllm", **notes: str) -> Object:
    """A pod of an inference server, which an HPA's workload selects."""
    image = "docker.io/vllm/vllm-openai:v0.10.0"
    row = {"name": "main", "image": image, "ports": [{"name": "http", "containerPort": 8000}]}
    words = {f"gpu-metrics-adapter.io/{key}": value for key, value in notes.items()}
    meta = {"name": name, "namespace": CHAT, "labels": {"app": "idle"}, "annotations": words}
    spec = {"containers": [row], "nodeName": "gpu-a"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@fault("GMA425")
def a_server_that_scales_on_saturated_utilization(site: Site) -> Iterator[None]:
    page = shared_page(VLLM).encode()
    with (
        hpa_with(site, IDLE_HPA, metrics=pods_metric("gpu_utilization", "90")),
        stand(site, server(scrape="true"), 8000, page),
    ):
        yield


@fault("GMA501")
def a_server_that_does_not_opt_in(site: Site) -> Iterator[None]:
    with stand(site, server(), 8000, shared_page(VLLM).encode()):
        yield


@fault("GMA502")
def a_server_at_another_port(site: Site) -> Iterator[None]:
    with stand(site, server(scrape="true", port="9999"), 8000, b""):
        yield


@fault("GMA502")
def a_port_that_the_server_does_not_have(site: Site) -> Iterator[None]:
    with stand(site, server(scrape="true", port="metrics"), 8000, b""):
        yield


@fault("GMA503")
def a_server_at_another_path(site: Site) -> Iterator[None]:
    with stand(site, server(scrape="true"), 8000, b"not found", 404):
        yield


@fault("GMA504")
def a_server_without_a_queue(site: Site) -> Iterator[None]:
    page = without(shared_page(VLLM).encode(), "num_requests_waiting")
    with stand(site, server(scrape="true"), 8000, page):
        yield


@contextlib.contextmanager
def configured(site: Site, text: str) -> Iterator[None]:
    """The adapter's ConfigMap with another content; the file itself is never read meanwhile."""
    before = site.admin.get(CONFIG)["data"]
    with patched(site, CONFIG, {"data": {"config.yaml": text}}, {"data": before}):
        yield


@fault("GMA505")
def a_server_that_the_settings_leave_out(site: Site) -> Iterator[None]:
    off = "source: {scrape: {interval: 1s, inference: {enabled: false}}}\n"
    page = shared_page(VLLM).encode()
    with configured(site, off), stand(site, server(scrape="true"), 8000, page):
        yield


@fault("GMA505")
def two_servers_with_one_address(site: Site) -> Iterator[None]:
    """As with ``hostNetwork``."""
    with stand(site, server(scrape="true"), 8000, shared_page(VLLM).encode()):
        address = site.admin.get(f"{PODS.format(ns=CHAT)}/vllm")["status"]["podIP"]
        site.kubelet.reserve(CHAT, "twin", address)
        with made(site, server("twin", scrape="true")):
            path = f"{PODS.format(ns=CHAT)}/twin"
            site.admin.wait(path, lambda obj: obj["status"].get("podIP") == address, "it runs")
            yield


@fault("GMA701")
def a_key_that_does_not_exist(site: Site) -> Iterator[None]:
    with configured(site, "source: {knd: scrape}\n"):
        yield


def apiservice(service: str, ca: bytes = b"", port: int = 443) -> Object:
    """The APIService of external metrics, for a Service of the adapter's namespace."""
    spec: Object = {
        "group": "external.metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": NAMESPACE, "name": service, "port": port},
    }
    trust = {"caBundle": base64.b64encode(ca).decode()} if ca else {"insecureSkipTLSVerify": True}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
        "spec": spec | trust,
    }


def wait_unavailable(site: Site, name: str, words: str = "") -> None:
    """Wait until the API server has noticed."""

    def check(obj: Object) -> bool:
        rows = obj.get("status", {}).get("conditions") or ()
        return any(row["status"] == "False" and words in row["message"] for row in rows)

    site.admin.wait(f"{APISERVICES}/{name}", check, f"{name} is unavailable: {words}")


@fault("GMA006")
def an_apiservice_without_endpoints(site: Site) -> Iterator[None]:
    with made(site, apiservice("keda-operator-metrics-apiserver")):
        wait_unavailable(site, "v1beta1.external.metrics.k8s.io")
        yield


@fault("GMA007")
def an_apiservice_with_another_ca(site: Site) -> Iterator[None]:
    ca = Authority(site.folder, "other-ca").cert.read_bytes()
    with made(site, apiservice(SERVICE, ca)):
        wait_unavailable(site, "v1beta1.external.metrics.k8s.io", "x509")
        yield


@fault("GMA008")
def an_apiservice_behind_a_closed_port(site: Site) -> Iterator[None]:
    labels = {"app.kubernetes.io/name": SERVICE}
    ports = [{"port": 443, "targetPort": 9999}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "closed", "namespace": NAMESPACE},
        "spec": {"selector": labels, "ports": ports},
    }
    with made(site, service, apiservice("closed")):
        wait_unavailable(site, "v1beta1.external.metrics.k8s.io", "refused")
        yield


@contextlib.contextmanager
def removed(site: Site, path: str) -> Iterator[None]:
    """Without an object, which is created again in the end."""
    before = site.admin.get(path)
    meta = before["metadata"]
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        meta.pop(key, None)
    before.pop("status", None)
    site.admin.delete(path)
    try:
        yield
    finally:
        site.admin.create(before)


@fault("GMA004")
def an_apiservice_that_is_missing(site: Site) -> Iterator[None]:
    with removed(site, f"{APISERVICES}/v1beta1.custom.metrics.k8s.io"):
        yield


@fault("GMA005", also=("GMA006",))
def an_apiservice_that_belongs_to_another(site: Site) -> Iterator[None]:
    path = f"{APISERVICES}/v1beta1.custom.metrics.k8s.io"
    theirs = {"namespace": "monitoring", "name": "prometheus-adapter"}
    ours = site.admin.get(path)["spec"]["service"]
    with patched(site, path, {"spec": {"service": theirs}}, {"spec": {"service": ours}}):
        yield
    site.admin.wait(path, lambda obj: condition(obj, "Available")[0] == "True", "it is available")


@fault("GMA009", also=("GMA410",))
def an_hpa_controller_without_its_rights(site: Site) -> Iterator[None]:
    with removed(site, f"{BINDINGS}/system:controller:horizontal-pod-autoscaler"):
        yield
    site.admin.wait(
        MAIN_HPA, lambda obj: condition(obj, "ScalingActive")[0] == "True", "the HPA is well"
    )


@fault("GMA010")
def an_adapter_without_its_rights(site: Site) -> Iterator[None]:
    with removed(site, f"{BINDINGS}/{SERVICE}"):
        yield


@fault("GMA702")
def a_replica_that_does_not_start(site: Site) -> Iterator[None]:
    pods = site.admin.get(PODS.format(ns=NAMESPACE))["items"]
    labels = next(
        row["metadata"]["labels"]
        for row in pods
        if row["metadata"]["labels"].get("app.kubernetes.io/name") == SERVICE
    )
    kept = {key: value for key, value in labels.items() if key.startswith("app.")}
    pod = holder("stuck", "", schedulingGates=[{"name": "example.org/wait"}])
    pod["metadata"] = {"name": "stuck", "namespace": NAMESPACE, "labels": kept}
    pod["spec"]["containers"][0].pop("resources")
    with made(site, pod):
        yield


@fault("GMA704")
def an_image_of_another_version(site: Site) -> Iterator[None]:
    label = "app.kubernetes.io/version"
    before = site.admin.get(RELEASE)["metadata"]["labels"][label]
    change = {"metadata": {"labels": {label: "9.9.9"}}}
    with patched(site, RELEASE, change, {"metadata": {"labels": {label: before}}}):
        yield


def nodepool(site: Site, config: str = "") -> list[Object]:
    """The Deployment of nodepool without pods, its ConfigMap and its PriorityClass."""
    labels = {"app.kubernetes.io/name": f"{SERVICE}-nodepool"}
    found = deployment(NAMESPACE, 0)
    found["metadata"] |= {"name": "nodepool", "labels": labels}
    volume = {"name": "config", "configMap": {"name": "nodepool"}}
    found["spec"]["template"]["spec"]["volumes"] = [volume]
    del site
    return [
        found,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "nodepool", "namespace": NAMESPACE},
            "data": {"config.yaml": config},
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "gpu-metrics-adapter-headroom"},
            "value": -10,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
            "data": {"status": "autoscalerStatus: Running\n"},
        },
    ]


@fault("GMA601")
def no_node_autoscaler(site: Site) -> Iterator[None]:
    with made(site, *nodepool(site)[:-1]):
        yield


@fault("GMA602")
def no_capacity_buffers(site: Site) -> Iterator[None]:
    with made(site, *nodepool(site, "nodepool: {way: buffer}\n")):
        yield


@fault("GMA603")
def no_priority_class(site: Site) -> Iterator[None]:
    deployed, config, _, status = nodepool(site)
    with made(site, deployed, config, status):
        yield


@fault("GMA604")
def a_quota_that_is_used_up(site: Site) -> Iterator[None]:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": NAMESPACE},
        "spec": {"hard": {"pods": "9"}},
    }
    with made(site, *nodepool(site), quota):
        path = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/small/status"
        full = {"hard": {"pods": "9"}, "used": {"pods": "9"}}
        site.admin.patch(path, {"status": full})
        yield


@fault("GMA605")
def caps_that_forbid_headroom(site: Site) -> Iterator[None]:
    with made(site, *nodepool(site, "nodepool: {limits: {max_pods: 0}}\n")):
        yield


@fault("GMA605", "GMA606")
def pods_that_no_node_holds(site: Site) -> Iterator[None]:
    wide = deployment(CHAT, 0)
    wide["metadata"]["name"] = "wide"
    limits = {"limits": {"nvidia.com/gpu": "16"}}
    wide["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    scaler = autoscaler(CHAT, metric="gpu_utilization")
    scaler["metadata"]["name"] = "wide"
    scaler["spec"]["scaleTargetRef"]["name"] = "wide"
    with made(site, *nodepool(site), wide, scaler):
        yield


@fault("GMA703")
def a_container_that_restarts(site: Site) -> Iterator[None]:
    pods = site.admin.get(PODS.format(ns=NAMESPACE))["items"]
    serving = [
        row for row in pods if row["metadata"]["labels"].get("app.kubernetes.io/name") == SERVICE
    ]
    path = f"{PODS.format(ns=NAMESPACE)}/{serving[0]['metadata']['name']}/status"
    rows = serving[0]["status"]["containerStatuses"]
    often = [rows[0] | {"restartCount": 7}]
    back = {"status": {"containerStatuses": rows}}
    with patched(site, path, {"status": {"containerStatuses": often}}, back):
        yield


@fault("GMA705")
def one_replica(site: Site) -> Iterator[None]:
    with patched(site, RELEASE, {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}):
        site.admin.wait(RELEASE, lambda obj: obj["status"].get("replicas") == 1, "it has one")
        yield
    site.admin.wait(RELEASE, lambda obj: obj["status"].get("readyReplicas") == 2, "it has two")
