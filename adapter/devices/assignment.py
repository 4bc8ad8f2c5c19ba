"""Read from a sample's labels which pod and container the device is assigned to.

Exporters spell this assignment in four ways, and a Prometheus scrape renames it in two. An
unassigned device may appear to be assigned to its own exporter. The page of an inference server
names no pod: the pod that serves the page is the workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from ipaddress import ip_address
from typing import Final, NamedTuple

from adapter.cluster.pod import Pod, PodRef
from adapter.devices.serveraddress import NOWHERE, ServerAddress

_LEGACY: Final = (
    ("pod_name", "pod_namespace", "container_name"),
    ("podname", "podnamespace", "ctrname"),
    ("kube_pod", "kube_namespace", "kube_container"),
    ("pod_name", "namespace_name", "container_name"),
)
"""Label names for (pod, namespace, container) that no scrape target uses for itself.

In order: dcgm-exporter with ``--use-old-namespace``, HAMi's older samples, Intel XPUM
(``prometheus_exporter.py``), Cloud Monitoring's ``k8s_container``.
"""


_DEPTH: Final = 8
"""How many ``exported_`` prefixes are looked for.

The name part of a pod's label has at most 63 characters, so more cannot come from a pod.
"""


class Mismatch(StrEnum):
    """Why the adapter does not accept the assignment that a sample states."""

    SELF_ATTRIBUTION = "self_attribution"
    UNKNOWN_POD = "unknown_pod"
    POD_UID = "pod_uid_mismatch"
    WRONG_NODE = "wrong_node"
    FINISHED = "finished_pod"
    NO_GPU = "no_gpu_in_spec"
    NOT_RUNNING = "pod_not_running"
    NOT_READY = "pod_not_ready"


class Assignment(NamedTuple):
    """The pod and container that a sample's labels name."""

    pod: PodRef
    container: str
    """Empty if the sample does not name one."""
    uid: str
    """Empty if the sample does not name one; this is not a mismatch."""
    suspect: bool
    """The name looks like the scrape target's own pod, not like a workload."""
    serves: bool = False
    """The sample is about the process that serves the page; its pod needs no GPU."""
    sees: bool = False
    """The sample is about a GPU as that process sees it."""
    address: ServerAddress = NOWHERE
    """Where the page of a server was read."""


def assignment(
    labels: Mapping[str, str], exporter: tuple[str, str] | None, *, direct: bool = False
) -> Assignment | None:
    """Return the workload that a sample's labels name, or None for an unassigned device.

    Args:
        exporter: (namespace, name) of the exporter's own pod, if known.
        direct: the adapter fetched the page from the exporter, so no scrape renamed a label.
    """
    name, namespace, container = _workload(labels, direct=direct)
    if not name or not namespace:
        return None
    ref = PodRef(namespace, name)
    renamed = not direct and labels.get("exported_pod")
    suspect = ref == exporter or (not renamed and _is_target(labels, name))
    return Assignment(ref, container, labels.get("pod_uid", ""), suspect)


def named(labels: Mapping[str, str], *, direct: bool, mixed: bool = True) -> frozenset[PodRef]:
    """Return every pod that a sample's labels could name, in any spelling.

    A Prometheus scrape prefixes ``exported_`` to a label's name until the name is unique.

    Args:
        direct: the adapter fetched the page from the exporter, so no scrape renamed a label.
        mixed: also combine ``pod`` with an exported namespace, and ``namespace`` with an exported
            pod. A scrape that adds only one of the two labels produces such samples.
    """
    found = {
        PodRef(labels[namespace], labels[pod])
        for pod, namespace, _ in _LEGACY
        if labels.get(pod) and labels.get(namespace)
    }
    depth = 1 if direct else _DEPTH
    pods, namespaces = _exported(labels, "pod", depth), _exported(labels, "namespace", depth)
    return frozenset(found).union(
        PodRef(namespace, pod)
        for i, pod in pods.items()
        for j, namespace in namespaces.items()
        if mixed or (i > 0) is (j > 0)
    )


def _exported(labels: Mapping[str, str], name: str, depth: int) -> dict[int, str]:
    """Return the number of ``exported_`` prefixes -> the label's value."""
    values = ((times, labels.get("exported_" * times + name)) for times in range(depth))
    return {times: value for times, value in values if value}


def served(labels: Mapping[str, str], serving: tuple[str, str] | None) -> Assignment | None:
    """Return the pod that a server's sample is about, or None if the labels do not name one.

    Args:
        serving: (namespace, name) of the pod that the adapter fetched the page from. If None,
            a Prometheus fetched the page, and its target labels name the pod: ``pod``, or
            Google's ``instance="<pod>:<port>"``. Other labels that name a pod are used only if
            these are absent, as in the answer to a user's own query.
    """
    if serving is not None:
        return Assignment(PodRef(*serving), "", "", suspect=False, serves=True)
    name = labels.get("pod") or _pod_of_instance(labels.get("instance", ""))
    namespace, container = labels.get("namespace", ""), labels.get("container", "")
    if not name:
        name, namespace, container = _workload(labels)
    if not name or not namespace:
        return None
    uid = labels.get("pod_uid", "")
    return Assignment(PodRef(namespace, name), container, uid, suspect=False, serves=True)


def names_another_pod(labels: Mapping[str, str], serving: PodRef) -> bool:
    """Return whether a sample of a page that the adapter fetched names another pod than its own.

    Gateways repeat the samples of their servers so: aibrix' gateway plugin writes
    ``num_requests_waiting{namespace,pod}`` (``pkg/metrics/custom_metrics.go``).
    """
    refs = named(labels, direct=True)
    if refs:
        return serving not in refs
    return labels.get("pod", serving.name) not in ("", serving.name)


def hands_on(labels: Mapping[str, str]) -> bool:
    """Return whether a page that was scraped from one pod names another pod.

    A collector that forwards the series of others writes such samples. A pod that forges
    samples about another pod writes them too. The labels do not distinguish the two.
    """
    return any(
        said and scraped and said != scraped
        for said, scraped in (
            (labels.get("exported_pod"), labels.get("pod")),
            (labels.get("pod"), labels.get("kubernetes_pod_name")),
            (labels.get("namespace"), labels.get("kubernetes_namespace")),
        )
    )


def target(labels: Mapping[str, str]) -> PodRef | None:
    """Return the exporter's own pod if a sample names both it and a workload."""
    if not labels.get("exported_pod") and not any(labels.get(pod) for pod, _, _ in _LEGACY):
        return None
    pod, namespace = labels.get("pod"), labels.get("namespace")
    return PodRef(namespace, pod) if pod and namespace else None


def mismatch(assigned: Assignment, pod: Pod | None, node: str | None) -> Mismatch | None:
    """Return why the adapter does not accept an assignment to ``pod``, or None if it does."""
    if pod is None:
        return Mismatch.SELF_ATTRIBUTION if assigned.suspect else Mismatch.UNKNOWN_POD
    if assigned.uid and assigned.uid != pod.uid:
        return Mismatch.POD_UID
    if not assigned.serves:
        if not pod.holds_gpu:
            return Mismatch.SELF_ATTRIBUTION if assigned.suspect else Mismatch.NO_GPU
        if node and pod.node and node != pod.node:
            return Mismatch.WRONG_NODE
    return Mismatch.FINISHED if pod.finished else None


def unfit(pod: Pod, *, unready: bool) -> Mismatch | None:
    """Return why no value is served for a pod at present, regardless of its samples.

    Args:
        unready: also serve pods that are not Ready, for example while a model loads.
    """
    if pod.finished:
        return Mismatch.FINISHED
    if pod.phase != "Running":
        return Mismatch.NOT_RUNNING
    if not pod.ready and not unready:
        return Mismatch.NOT_READY
    return None


def _workload(labels: Mapping[str, str], *, direct: bool = False) -> tuple[str, str, str]:
    exported = "" if direct else labels.get("exported_pod", "")
    if not exported:
        for pod, namespace, container in _LEGACY:
            if labels.get(pod) and labels.get(namespace):
                return labels[pod], labels[namespace], labels.get(container, "")
        if any(pod in labels and namespace in labels for pod, namespace, _ in _LEGACY):
            return "", "", ""
    if direct:
        return labels.get("pod", ""), labels.get("namespace", ""), labels.get("container", "")
    return (
        exported or labels.get("pod", ""),
        labels.get("exported_namespace") or labels.get("namespace", ""),
        labels.get("exported_container") or labels.get("container", ""),
    )


def _is_target(labels: Mapping[str, str], pod: str) -> bool:
    """Return whether Prometheus scraped the sample and ``pod`` is named after the target."""
    if "instance" not in labels:
        return False
    names = (labels.get("service"), labels.get("job"), labels.get("app"))
    return any(name and pod.startswith(name + "-") for name in names)


def _pod_of_instance(instance: str) -> str:
    """Return the pod in Google managed Prometheus' ``<pod>:<port>``; empty for an address."""
    name, colon, _ = instance.rpartition(":")
    if not colon or "[" in name:
        return ""
    try:
        ip_address(name)
    except ValueError:
        return name
    return ""
