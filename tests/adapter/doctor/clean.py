"""The facts of a cluster in which every check is silent, and the parts to break."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from adapter.doctor.facts import Clocks, Fact, Facts, Hpa, Release, Review
from adapter.doctor.objects import (
    ApiService,
    Lease,
    SeenNode,
    SeenPod,
    SeenPriorityClass,
    SeenWorkload,
    read,
    read_pod,
    read_workload,
)
from adapter.doctor.release import release
from adapter.doctor.scalers import read_hpa

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
    meta |= {"annotations": more.pop("annotations", {})}
    return read_pod({"metadata": meta, "spec": spec, "status": status | more.pop("status", {})})


def exporter(on: str, **more: Any) -> SeenPod:
    """A dcgm-exporter."""
    image = more.pop("image", "nvcr.io/nvidia/k8s/dcgm-exporter:4.4.2-4.7.1-ubuntu22.04")
    given = {"ports": [{"name": "metrics", "containerPort": 9400}], **more.pop("container", {})}
    return pod(
        more.pop("name", f"dcgm-exporter-{on}"),
        "gpu-operator",
        on,
        [container(image, **given)],
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
            "metadata": {"name": name, "namespace": namespace, "labels": more.pop("meta", {})},
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
            )
        ],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
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
    own = [own_pod("gma-1"), own_pod("gma-2")]
    pods = [
        pod("llm-1", on="gpu-a", labels=LABELS),
        pod("llm-2", on="gpu-b", labels=LABELS),
        exporter("gpu-a"),
        exporter("gpu-b"),
        *own,
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
    facts.quotas = Fact([])
    facts.release = Fact(own_workload(pods=own))
    facts.server_pages = Fact({})
    return facts
