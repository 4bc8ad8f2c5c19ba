"""Checks of the cluster: version, aggregation layer, APIServices, rights, clocks, nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from cryptography import x509

from adapter.cluster.manifest import GPU_RESOURCES
from adapter.doctor.facts import Facts
from adapter.doctor.gpunodes import gpus_of, labelled
from adapter.doctor.model import CheckSection, Finding, NotApplicableError, Severity, check
from adapter.doctor.objects import ApiService, SeenCondition

OLDEST: Final = (1, 27)
"""``kubeVersion`` of the chart."""
CUSTOM: Final = "custom.metrics.k8s.io"
EXTERNAL: Final = "external.metrics.k8s.io"
NAME: Final = "gpu-metrics-adapter"
_SOON: Final = 30 * 86400.0
_CERTIFICATE: Final = re.compile(r"x509|certificate|tls:", re.IGNORECASE)
_ENDPOINTS: Final = ("MissingEndpoints", "ServiceNotFound", "ServicePortError", "EndpointsNotFound")


@check("GMA001", CheckSection.CLUSTER, "Kubernetes is 1.27 or newer")
def old_version(facts: Facts) -> Iterator[Finding]:
    """The chart supports Kubernetes 1.27 and newer. An older API server may lack `autoscaling/v2`,
    which GPU metrics need.

    Upgrade the cluster.
    """
    found = facts.version.read()
    if found < OLDEST:
        yield Finding(
            "cluster",
            f"the API server is Kubernetes {found[0]}.{found[1]}",
            "upgrade the cluster to Kubernetes 1.27 or newer",
            "kubectl version",
        )


@check("GMA002", CheckSection.CLUSTER, "the aggregation layer is on")
def aggregation_off(facts: Facts) -> Iterator[Finding]:
    """The API server forwards requests for metrics to the adapter only if it was started with
    `--requestheader-client-ca-file` and `--proxy-client-cert-file`. It publishes the CA in
    ConfigMap `kube-system/extension-apiserver-authentication`. Managed clusters have this.

    Start the API server with these flags (Kubernetes documentation, "Configure the Aggregation
    Layer").
    """
    data = facts.authentication.read()
    if not data.get("requestheader-client-ca-file"):
        yield Finding(
            "configmap kube-system/extension-apiserver-authentication",
            "has no requestheader-client-ca-file, so no metrics API can be served",
            "start the API server with --requestheader-client-ca-file",
            "kubectl -n kube-system get configmap extension-apiserver-authentication -o yaml",
        )


@check("GMA003", CheckSection.CLUSTER, "the request-header CA is valid for 30 more days")
def front_proxy_ca(facts: Facts) -> Iterator[Finding]:
    """The adapter authenticates the API server with the CA in ConfigMap
    `kube-system/extension-apiserver-authentication`. After the CA has expired, the adapter
    rejects every forwarded request with 401.

    Renew the front-proxy CA of the cluster, for example with `kubeadm certs renew`.
    """
    text = facts.authentication.read().get("requestheader-client-ca-file", "")
    try:
        certificates = x509.load_pem_x509_certificates(text.encode()) if text else []
    except ValueError:
        yield _front_proxy("is not a PEM certificate", Severity.ERROR)
        return
    if not certificates:
        return
    ends = max(each.not_valid_after_utc.timestamp() for each in certificates)
    day = datetime.fromtimestamp(ends, UTC).date()
    if ends < facts.now:
        yield _front_proxy(f"expired on {day}", Severity.ERROR)
    elif ends < facts.now + _SOON:
        yield _front_proxy(f"expires on {day}", Severity.WARNING)


def _front_proxy(text: str, severity: Severity) -> Finding:
    return Finding(
        "requestheader-client-ca-file",
        text,
        "renew the front-proxy CA of the cluster",
        "kubeadm certs check-expiration",
        severity,
    )


@check("GMA004", CheckSection.CLUSTER, "the adapter's APIServices are registered")
def unregistered(facts: Facts) -> Iterator[Finding]:
    """The API server forwards requests for `custom.metrics.k8s.io` only if an APIService for the
    version exists. The HPA controller asks for `v1beta2`, and for `v1beta1` if that is missing.

    Install the chart with `apiServices.create=true`, its default, or create the APIService.
    """
    release = facts.release.read()
    if release is None:
        raise NotApplicableError("the adapter is not installed")
    names = {each.metadata.name for each in facts.apiservices.read()}
    for version in ("v1beta2", "v1beta1"):
        name = f"{version}.{CUSTOM}"
        if name not in names:
            meta = release.workload.metadata
            chart = meta.labels.get("app.kubernetes.io/instance", meta.name)
            yield Finding(
                f"apiservice {name}",
                "does not exist, so HPAs get no custom metrics of this version",
                "install the chart with apiServices.create=true",
                f"helm -n {meta.namespace} get values {chart} --all | grep -A 2 apiServices",
                Severity.ERROR if version == "v1beta2" else Severity.WARNING,
            )


@check("GMA005", CheckSection.CLUSTER, "no other program serves the custom metrics API")
def taken(facts: Facts) -> Iterator[Finding]:
    """A cluster has one server for each version of `custom.metrics.k8s.io`. If prometheus-adapter
    or another program has it, HPAs do not get values from this adapter, and the chart refuses to
    be installed.

    Move the other program's metrics first: `docs/migrate-from-prometheus-adapter.md`.
    """
    for each in facts.apiservices.read():
        if each.spec.group != CUSTOM or each.spec.service is None or _is_ours(facts, each):
            continue
        service = each.spec.service
        yield Finding(
            f"apiservice {each.metadata.name}",
            f"belongs to Service {service.namespace}/{service.name}, so HPAs ask that program",
            "remove that program, or install the chart with apiServices.create=false",
            f"kubectl get apiservice {each.metadata.name} -o yaml",
            Severity.ERROR if facts.release.value is not None else Severity.WARNING,
        )


def _is_ours(facts: Facts, each: ApiService) -> bool:
    release, service = facts.release.value, each.spec.service
    if release is None or service is None:
        return each.metadata.labels.get("app.kubernetes.io/name") == NAME
    meta = release.workload.metadata
    return (service.namespace, service.name) == (meta.namespace, meta.name)


def _unavailable(facts: Facts) -> Iterator[tuple[ApiService, SeenCondition]]:
    for each in facts.apiservices.read():
        if each.spec.group not in (CUSTOM, EXTERNAL, f"view.{NAME}.io"):
            continue
        for condition in each.status.conditions:
            if condition.type == "Available" and condition.status == "False":
                yield each, condition


def _of_service(each: ApiService, what: str) -> str:
    service = each.spec.service
    if service is None:
        return f"kubectl get apiservice {each.metadata.name} -o yaml"
    return f"kubectl -n {service.namespace} {what.format(service.name)}"


@check("GMA006", CheckSection.CLUSTER, "the metrics APIs have endpoints")
def no_endpoints(facts: Facts) -> Iterator[Finding]:
    """An APIService names a Service without a ready pod, or one that does not exist. While it is
    unavailable, HPAs keep their replica counts, and namespaces cannot be deleted.

    See why the pods are not ready. If the program was removed, delete the APIService.
    """
    for each, condition in _unavailable(facts):
        if condition.reason in _ENDPOINTS:
            yield Finding(
                f"apiservice {each.metadata.name}",
                f"is unavailable ({condition.reason}): {condition.message}",
                "make the pods of its Service ready, or delete the APIService if it is not used",
                _of_service(each, "get service,endpointslices,pods"),
            )


@check("GMA007", CheckSection.CLUSTER, "the API server accepts the metrics APIs' certificates")
def bad_certificate(facts: Facts) -> Iterator[Finding]:
    """The API server does not accept the serving certificate of a metrics API: the `caBundle` of
    the APIService is not the CA that signed it, the certificate has expired, or it is for another
    name.

    With the chart's own certificate, run its CronJob once. Otherwise correct `caBundle`.
    """
    for each, condition in _unavailable(facts):
        if condition.reason not in _ENDPOINTS and _CERTIFICATE.search(condition.message):
            yield Finding(
                f"apiservice {each.metadata.name}",
                f"is unavailable ({condition.reason}): {condition.message}",
                "renew the certificate: run the chart's certificates CronJob, or correct caBundle",
                _of_service(each, "get cronjobs,jobs,secrets"),
            )


@check("GMA008", CheckSection.CLUSTER, "the API server reaches the metrics APIs")
def unreachable(facts: Facts) -> Iterator[Finding]:
    """The API server gets no answer from a metrics API, although its pods are ready. The usual
    cause is a firewall or NetworkPolicy between the control plane and the pods: the chart's pods
    listen on port 8443 by default.

    Admit the control plane to this port.
    """
    for each, condition in _unavailable(facts):
        certificate = _CERTIFICATE.search(condition.message)
        if condition.reason not in _ENDPOINTS and not certificate:
            yield Finding(
                f"apiservice {each.metadata.name}",
                f"is unavailable ({condition.reason}): {condition.message}",
                "admit the API server to the pods: check firewall and NetworkPolicies",
                _of_service(each, "get networkpolicies,endpointslices"),
            )


@check("GMA009", CheckSection.CLUSTER, "the HPA controller may read the metrics")
def hpa_rights(facts: Facts) -> Iterator[Finding]:
    """The HPA controller reads metrics as ServiceAccount
    `kube-system/horizontal-pod-autoscaler`. Kubernetes grants it access by default. Without it,
    HPAs report `FailedGetPodsMetric` with `forbidden`.

    Grant the right with the printed command, or set `hpaReader.create=true` in the chart.
    """
    for review in facts.hpa_rights.read():
        if not review.allowed:
            yield Finding(
                f"user {review.user}",
                f"may not {review.verb} {review.resource}, so HPAs cannot read metrics",
                "grant the right, or install the chart with hpaReader.create=true",
                review.command,
            )


@check("GMA010", CheckSection.CLUSTER, "the adapter's account has the rights that it needs")
def own_rights(facts: Facts) -> Iterator[Finding]:
    """The adapter lists and watches pods, Services and nodes, reads one ConfigMap in
    `kube-system`, and creates TokenReviews and SubjectAccessReviews. The chart grants these
    rights.

    Apply the chart again, or grant the right that is missing.
    """
    for review in facts.own_rights.read():
        if not review.allowed:
            yield Finding(
                f"user {review.user}",
                f"may not {review.verb} {review.resource}",
                "apply the chart again, or grant the right",
                review.command,
            )


_SKEW: Final = 5.0


@check("GMA011", CheckSection.CLUSTER, "clocks agree", Severity.WARNING)
def skew(facts: Facts) -> Iterator[Finding]:
    """Values have an age, so clocks must agree within seconds. The check compares this machine
    with the API server, and each node's heartbeat with the API server: a heartbeat from the future
    shows a node whose clock is ahead.

    Run a time service (chrony, systemd-timesyncd) on the machine.
    """
    clocks = facts.clocks.read()
    if abs(clocks.here) > _SKEW:
        way = "ahead of" if clocks.here > 0 else "behind"
        yield Finding(
            "this machine",
            f"its clock is {abs(clocks.here):.0f} s {way} the API server's",
            "run a time service on the machine whose clock is wrong",
            "date -u; timedatectl status",
        )
    for lease in facts.leases.read() if facts.leases.known else ():
        renewed = _epoch(lease.spec.renew_time)
        if renewed > clocks.server + _SKEW:
            name = lease.metadata.name
            yield Finding(
                f"node {name}",
                f"its heartbeat is {renewed - clocks.server:.0f} s in the future",
                "run a time service on the node",
                f"kubectl -n kube-node-lease get lease {name} -o yaml",
            )


def _epoch(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


@check("GMA012", CheckSection.CLUSTER, "nodes offer GPUs")
def no_gpus(facts: Facts) -> Iterator[Finding]:
    """No node offers a GPU resource, or a node that is labeled as a GPU node offers none. Pods
    that request a GPU stay Pending there. The vendor's device plugin registers the resource.

    Install the device plugin, or see the log of its pod on the node. If the resource has a name of
    its own, add it to `cluster.gpu_resources`.
    """
    nodes = facts.nodes.read()
    patterns = facts.settings.cluster.gpu_resources or GPU_RESOURCES
    equipped = {node.name for node in nodes if gpus_of(node, patterns)}
    marked = [node for node in nodes if labelled(node)]
    for node in marked:
        if node.name not in equipped:
            yield Finding(
                f"node {node.name}",
                "is labeled as a GPU node and offers no GPU",
                "see why the device plugin does not register the GPUs of this node",
                f"kubectl describe node {node.name}",
            )
    if not equipped and not marked:
        yield Finding(
            "cluster",
            "no node offers a GPU (nvidia.com/gpu, amd.com/gpu, …)",
            "add GPU nodes and install the vendor's device plugin",
            "kubectl get nodes -o custom-columns=NAME:.metadata.name,HAS:.status.allocatable",
            Severity.WARNING,
        )


@check("GMA013", CheckSection.CLUSTER, "GPU nodes are Ready", Severity.WARNING)
def not_ready(facts: Facts) -> Iterator[Finding]:
    """A GPU node is not Ready. Its pods keep their last values until the age limit and then have
    none, so HPAs do not scale in while the node is down.

    See the conditions of the node.
    """
    patterns = facts.settings.cluster.gpu_resources
    for node in facts.nodes.read():
        if gpus_of(node, patterns) and not node.ready:
            yield Finding(
                f"node {node.name}",
                "is not Ready",
                "see the conditions of the node",
                f"kubectl describe node {node.name}",
            )
