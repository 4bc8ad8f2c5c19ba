"""The facts of a cluster in which every check is silent, and the parts to break."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from adapter.answers.keda.manifest import SeenScaledObject, read_scaledobject
from adapter.pipeline.cluster.objects import ApiService, Lease, SeenNode, SeenPriorityClass, read
from adapter.pipeline.cluster.podobjects import SeenPod, read_pod
from adapter.pipeline.cluster.workloadobjects import SeenWorkload, read_workload
from adapter.tools.doctor.facts import (
    Clocks,
    Fact,
    Facts,
    Hpa,
    Review,
    SelfPage,
    StoreAnswer,
)
from adapter.tools.doctor.page import ExporterPage, reduce_page
from adapter.tools.doctor.release import Release, release
from adapter.tools.doctor.rulesfile import find_mounted_rules, seen_rules
from adapter.tools.doctor.scalers import read_hpa

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOME = "gpu-metrics"
NAME = "gpu-metrics-adapter"
CLEAN_CONFIG = "source: {kind: scrape}\n"


def certificate(days: float) -> str:
    """A CA that ends so many days after NOW, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "front-proxy-ca")])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=3650))
        .not_valid_after(NOW + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.PEM).decode()


CA = certificate(365)


def apiservice(name: str, service: str = f"{HOME}/{NAME}", **condition: str) -> ApiService:
    """An APIService; ``condition`` has reason and message if it is unavailable."""
    version, _, group = name.partition(".")
    namespace, _, short = service.partition("/")
    row = {"type": "Available", "status": "False" if condition else "True", **condition}
    return read(
        {
            "metadata": {"name": name},
            "spec": {
                "group": group,
                "version": version,
                "service": {"namespace": namespace, "name": short},
            },
            "status": {"conditions": [row]},
        },
        ApiService,
    )


def node(name: str, gpus: int = 8, *, ready: bool = True, **more: Any) -> SeenNode:
    """A node with NVIDIA GPUs."""
    resource = more.pop("resource", "nvidia.com/gpu")
    return read(
        {
            "metadata": {
                "name": name,
                "labels": {"nvidia.com/gpu.present": "true"} | more.pop("labels", {}),
            },
            "spec": more,
            "status": {
                "allocatable": {"cpu": "24", resource: str(gpus)},
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            },
        },
        SeenNode,
    )


def container(image: str = "registry/app:1", gpus: int = 0, **more: Any) -> dict[str, Any]:
    """A container, with GPUs if any."""
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"name": "main", "image": image, "resources": {"limits": limits}, **more}


def pod(
    name: str,
    namespace: str = "chat",
    on: str = "gpu-a",
    containers: list[dict[str, Any]] | None = None,
    labels: Mapping[str, str] | None = None,
    **more: Any,
) -> SeenPod:
    """A pod that runs and is ready."""
    spec: dict[str, Any] = {"nodeName": on, "containers": containers or [container(gpus=1)]}
    spec |= more.pop("spec", {})
    status = {
        "phase": "Running",
        "podIP": "10.0.0.9",
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "labels": dict(labels or {}),
    }
    meta |= {"annotations": more.pop("annotations", {}), "ownerReferences": more.pop("owners", [])}
    return read_pod({"metadata": meta, "spec": spec, "status": status | more.pop("status", {})})


def exporter(on: str, **more: Any) -> SeenPod:
    """A dcgm-exporter."""
    image = more.pop("image", "nvcr.io/nvidia/k8s/dcgm-exporter:4.4.2-4.7.1-ubuntu22.04")
    spec: Any = {"ports": [{"name": "metrics", "containerPort": 9400}]}
    spec |= {"env": [{"name": "DCGM_EXPORTER_INTERVAL", "value": "10000"}]}
    spec |= more.pop("container", {})
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "dcgm-exporter"}
    more.setdefault("owners", [owner | {"controller": True, "uid": "uid-dcgm-exporter"}])
    return pod(
        more.pop("name", f"dcgm-exporter-{on}"),
        "gpu-operator",
        on,
        [container(image, **spec)],
        {"app.kubernetes.io/name": "dcgm-exporter"},
        **more,
    )


LABELS = {"app": "llm"}


def workload(
    name: str = "llm", namespace: str = "chat", gpus: int = 1, **more: Any
) -> SeenWorkload:
    """A Deployment whose pods hold GPUs."""
    labels = more.pop("labels", LABELS)
    spec = {"containers": [container(gpus=gpus)], **more.pop("pod", {})}
    return read_workload(
        more.pop("kind", "Deployment"),
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": more.pop("meta", {}),
                "annotations": more.pop("annotations", {}),
            },
            "spec": {
                "replicas": more.pop("replicas", 2),
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        },
    )


def metric(name: str = "gpu_utilization", average: str = "70", **more: Any) -> dict[str, Any]:
    """A row of ``spec.metrics``."""
    target = more.pop("target", {"type": "AverageValue", "averageValue": average})
    return {"type": "Pods", "pods": {"metric": {"name": name, **more}, "target": target}}


def external(name: str, **selector: str) -> dict[str, Any]:
    """An External metric."""
    target = {"type": "AverageValue", "averageValue": "70"}
    of = {"name": name, "selector": {"matchLabels": selector}}
    return {"type": "External", "external": {"metric": of, "target": target}}


def hpa(*rows: dict[str, Any], name: str = "llm", origin: str = "", **spec: Any) -> Hpa:
    """An HPA of Deployment chat/llm."""
    status = spec.pop("status", {})
    meta = {"name": name, "namespace": "chat", "labels": spec.pop("labels", {})}
    whole = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"},
        "minReplicas": 1,
        "maxReplicas": 8,
        "metrics": list(rows) or [metric()],
        **spec,
    }
    return read_hpa({"metadata": meta, "spec": whole, "status": status}, origin)


ADDRESS = "gpu-metrics-adapter.gpu-metrics.svc:6000"


def trigger(name: str = "gpu_utilization", target: str = "70", **more: Any) -> dict[str, Any]:
    """A trigger of KEDA that asks the adapter; keys of the trigger itself are in ``row``."""
    row = more.pop("row", {})
    metadata = {"scalerAddress": ADDRESS, "metric": name, "target": target, **more}
    return {"type": "external", "metadata": metadata, **row}


def scaledobject(
    *rows: dict[str, Any], name: str = "llm", origin: str = "", **more: Any
) -> SeenScaledObject:
    """A ScaledObject of Deployment chat/llm."""
    meta = {"name": name, "namespace": "chat", "annotations": more.pop("annotations", {})}
    status = more.pop("status", {})
    spec = {"scaleTargetRef": {"name": more.pop("target", "llm")}, "triggers": list(rows), **more}
    return read_scaledobject({"metadata": meta, "spec": spec, "status": status}, origin)


def own_workload(
    config: str = CLEAN_CONFIG, pods: list[SeenPod] | None = None, **more: Any
) -> Release:
    """The adapter's release."""
    labels = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": "gma"}
    chart = {**labels, "helm.sh/chart": f"{NAME}-0.1.0", "app.kubernetes.io/version": "0.1.0"}
    spec = {
        "containers": [
            container(
                more.pop("image", f"registry/{NAME}:0.1.0"),
                resources={"limits": {"memory": "1Gi"}},
                volumeMounts=[{"name": "rules", "mountPath": "/etc/rules"}],
            )
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": NAME}},
            {"name": "rules", "configMap": {"name": "rules"}},
            *more.pop("volumes", ()),
        ],
    }
    deployment = workload(NAME, HOME, labels=labels, meta=chart, pod=spec, **more)
    return release(deployment, pods or [], {"config.yaml": config})


def own_pod(name: str, **more: Any) -> SeenPod:
    """A pod of the adapter."""
    labels = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": "gma"}
    limits: Any = {"resources": {"limits": {"memory": "1Gi"}}}
    return pod(name, HOME, "cpu-1", [container(f"registry/{NAME}:0.1.0", **limits)], labels, **more)


def lease(name: str, at: datetime = NOW) -> Lease:
    """A node's heartbeat."""
    when = at.isoformat().replace("+00:00", "Z")
    return read({"metadata": {"name": name}, "spec": {"renewTime": when}}, Lease)


def review(user: str, resource: str, *, allowed: bool = True) -> Review:
    """A right."""
    return Review(user, "list", resource, allowed, "kubectl create clusterrole x")


def clean() -> Facts:
    """Facts in which no check finds anything."""
    own_pods = [own_pod("gma-1"), own_pod("gma-2")]
    pods = [
        pod("llm-1", on="gpu-a", labels=LABELS),
        pod("llm-2", on="gpu-b", labels=LABELS),
        exporter("gpu-a"),
        exporter("gpu-b"),
        *own_pods,
    ]
    facts = Facts(offline=False, now=NOW.timestamp())
    facts.version = Fact((1, 33))
    facts.groups = Fact({"autoscaling": frozenset({"v2"})})
    facts.clocks = Fact(Clocks(0.2, NOW.timestamp()))
    facts.authentication = Fact({"requestheader-client-ca-file": CA})
    facts.apiservices = Fact(
        [apiservice(f"{version}.custom.metrics.k8s.io") for version in ("v1beta1", "v1beta2")]
    )
    account = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
    facts.hpa_rights = Fact([review(account, "pods.custom.metrics.k8s.io")])
    facts.own_rights = Fact([review("system:serviceaccount:gpu-metrics:gma", "pods")])
    facts.nodes = Fact([node("gpu-a"), node("gpu-b")])
    facts.leases = Fact([lease("gpu-a"), lease("gpu-b")])
    facts.pods = Fact(pods)
    facts.workloads = Fact([workload(), own_workload().workload])
    facts.replicasets = Fact([])
    facts.events = Fact([])
    facts.slices = Fact([])
    facts.node_events = Fact([])
    facts.node_claims = Fact([])
    facts.budgets = Fact([])
    facts.controller_seen = Fact(NOW.timestamp() - 2)
    facts.hpas = Fact([hpa()])
    facts.scaledobjects = Fact([])
    facts.priorityclasses = Fact(
        [
            read(
                {"metadata": {"name": "gpu-metrics-adapter-headroom"}, "value": -10},
                SeenPriorityClass,
            )
        ]
    )
    facts.daemonsets = Fact([])
    facts.quotas = Fact([])
    facts.volume_claims = Fact([])
    facts.release = Fact(own_workload(pods=own_pods))
    facts.nodepool = Fact(nodepool())
    facts.autoscaler = Fact("cluster-autoscaler")
    facts.pages = Fact({f"gpu-operator/dcgm-exporter-{n}": page(n, p) for n, p in HOLDERS.items()})
    facts.server_pages = Fact({})
    facts.self_pages = Fact([self_page("gma-1"), self_page("gma-2")])
    facts.measured = Fact({"chat": frozenset({"llm-1", "llm-2"})})
    facts.without_value = Fact(())
    return facts


HOLDERS = {"gpu-a": "llm-1", "gpu-b": "llm-2"}


def page(on: str, holder: str = "", text: str = "") -> ExporterPage:
    """The page of the exporter on a node, with one device that a pod of chat holds."""
    labels = f'gpu="0",UUID="GPU-{on}",Hostname="{on}",modelName="A100"'
    if holder:
        labels += f',namespace="chat",pod="{holder}",container="main"'
    rows = {"DCGM_FI_DEV_GPU_UTIL": "87", "DCGM_FI_DEV_FB_USED": "1024", "DCGM_FI_DEV_FB_FREE": "9"}
    body = text or "".join(f"{name}{{{labels}}} {value}\n" for name, value in rows.items())
    blank = ExporterPage(f"gpu-operator/dcgm-exporter-{on}", on, "dcgm-exporter", ":9400/metrics")
    return reduce_page(body.encode(), blank, now=NOW.timestamp())


def self_page(name: str, **values: float) -> SelfPage:
    """The own metrics of a replica."""
    usual = {
        "gma_snapshot_devices": 2,
        "gma_snapshot_series": 2,
        "gma_exporters": 2,
        "gma_pods": 6,
        "gma_gpu_pods_measured": 2,
        "gma_scrapes_total": 1000,
        "gma_scrape_targets": 2,
        "process_resident_memory_bytes": 200 << 20,
    }
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {
        (key, ()): float(value) for key, value in (usual | values).items()
    }
    samples["gma_rejects_total", (("reason", "no_row"),)] = 3.0
    serving = ("gma_certificate_expiry_timestamp_seconds", (("certificate", "serving"),))
    return SelfPage(name, samples | {serving: NOW.timestamp() + 90 * 86400})


def nodepool(config: str = "nodepool: {provisioning_method: auto}\n", **more: Any) -> Release:
    """The release of nodepool."""
    labels = {"app.kubernetes.io/name": f"{NAME}-nodepool"}
    spec = {
        "containers": [container(f"registry/{NAME}:0.1.0")],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
    }
    deployment = workload(f"{NAME}-nodepool", HOME, labels=labels, meta=labels, pod=spec, **more)
    return release(deployment, [], {"config.yaml": config})


FROM_STORE = """
source: {kind: prometheus, prometheus: {url: 'http://prometheus.monitoring:9090'}}
rules: {file: /etc/rules/config.yaml}
external: {enabled: true}
delegation:
  service_account: gpu-metrics/gma-delegation
  delegates:
  - {name: old, service: {namespace: monitoring, name: prometheus-adapter}}
"""
RULES = """
rules:
- seriesQuery: requests{namespace!="",pod!=""}
  resources: {template: <<.Resource>>}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"""


def row(on: str, holder: str = "", **more: str) -> dict[str, str]:
    """The labels of a device's series in Prometheus, with ``honorLabels: false``."""
    name = "DCGM_FI_DEV_GPU_UTIL"
    labels = {"__name__": name, "instance": f"{on}:9400", "UUID": f"GPU-{on}", "gpu": "0"}
    labels |= {"namespace": "gpu-operator", "pod": f"dcgm-exporter-{on}"}
    if holder:
        labels |= {"exported_namespace": "chat", "exported_pod": holder}
    return labels | more


def stored(series: list[dict[str, str]] | None = None, **more: Any) -> StoreAnswer:
    """What a Prometheus answers about the clean cluster."""
    rows = [row(on, pod) for on, pod in HOLDERS.items()] if series is None else series
    usual = {
        "problem": "",
        "series": rows,
        "names": frozenset(labels["__name__"] for labels in rows),
        "intervals": {labels["instance"]: 15.0 for labels in rows},
    }
    return StoreAnswer("http://prometheus.monitoring:9090", **(usual | more))


def clean_store() -> Facts:
    """Facts of a clean cluster whose adapter reads Prometheus."""
    facts = clean()
    own_pods = [seen_pod for seen_pod in facts.pods.read() if seen_pod.pod.ref.namespace == HOME]
    facts.release = Fact(own_workload(FROM_STORE, own_pods))
    facts.store = Fact(stored())
    external = apiservice("v1beta1.external.metrics.k8s.io")
    facts.apiservices = Fact([*facts.apiservices.read(), external])
    given_rules(facts, RULES)
    facts.self_pages = Fact([rules_page()])
    account = "system:serviceaccount:gpu-metrics:gma-delegation"
    facts.delegate_rights = Fact([review(account, "*.custom.metrics.k8s.io")])
    return facts


def given_rules(facts: Facts, text: str) -> None:
    """Set what the ConfigMap with the rules contains."""
    own_release = facts.release.read()
    place = find_mounted_rules(own_release) if own_release else None
    assert own_release
    assert place
    facts.rules = Fact(seen_rules(place, {place.key: text}, own_release))


def rules_page(**values: float) -> SelfPage:
    """The own metrics of a replica that serves rules."""
    usual: dict[str, float] = {
        "gma_rules_file_ok": 1,
        "gma_rules_broken": 0,
        "gma_rule_discovery_failures_total": 2,
        "gma_rule_discovery_last_success_timestamp_seconds": NOW.timestamp() - 60,
        "gma_rule_queries_total": 400,
    }
    return self_page("gma-1", **(usual | values))
