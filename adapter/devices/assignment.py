"""Which container a sample says the device works for, or which pod a server's sample is about.

The same fact is spelt in four ways by exporters and renamed in two by a Prometheus scrape
(gpu-telemetry, section 1), and an unassigned device may seem to work for its own exporter.
An inference server's page names no pod at all: whoever serves it is the workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from ipaddress import ip_address
from typing import Final, NamedTuple

from adapter.cluster.pod import Pod, PodRef

_LEGACY: Final = (
    ("pod_name", "pod_namespace", "container_name"),
    ("podname", "podnamespace", "ctrname"),
    ("kube_pod", "kube_namespace", "kube_container"),
    ("pod_name", "namespace_name", "container_name"),
)
"""Spellings of the workload that a scrape target's own labels never take: dcgm-exporter with
``--use-old-namespace``, HAMi's older samples, Intel XPUM (``prometheus_exporter.py``),
Cloud Monitoring's ``k8s_container``."""


_DEPTH: Final = 8
"""Names with ``exported_`` in front that are looked at: the name of a pod's label has at most 63
characters."""


class Mismatch(StrEnum):
    """Why a sample is not about the pod that it names."""

    SELF_ATTRIBUTION = "self_attribution"
    UNKNOWN_POD = "unknown_pod"
    POD_UID = "pod_uid_mismatch"
    WRONG_NODE = "wrong_node"
    FINISHED = "finished_pod"
    NO_GPU = "no_gpu_in_spec"
    NOT_RUNNING = "pod_not_running"
    NOT_READY = "pod_not_ready"


class Assignment(NamedTuple):
    """The workload that a sample names."""

    pod: PodRef
    container: str
    """Empty if the sample does not say."""
    uid: str
    """Empty if the sample does not say: no mismatch."""
    suspect: bool
    """It looks like the scrape target's own pod, not a workload."""
    serves: bool = False
    """The sample is about the process that serves the page: its pod needs no GPU."""
    sees: bool = False
    """The sample is about a GPU as that process sees it."""


def assignment(
    labels: Mapping[str, str], exporter: tuple[str, str] | None, *, direct: bool = False
) -> Assignment | None:
    """The workload that a sample's labels name; None for an unassigned device.

    Args:
        labels: of the sample.
        exporter: (namespace, name) of the exporter's own pod, where known.
        direct: the page was fetched from the exporter: no scrape has renamed a label.
    """
    name, namespace, container = _workload(labels, direct=direct)
    if not name or not namespace:
        return None
    ref = PodRef(namespace, name)
    renamed = not direct and labels.get("exported_pod")
    suspect = ref == exporter or (not renamed and _is_target(labels, name))
    return Assignment(ref, container, labels.get("pod_uid", ""), suspect)


def named(labels: Mapping[str, str], *, direct: bool, mixed: bool = True) -> frozenset[PodRef]:
    """Every pod that a sample's labels can be read to name, in whichever spelling.

    A scrape puts as many ``exported_`` before a label's name as it takes to make it unique.

    Args:
        labels: of the sample.
        direct: the page was fetched from the exporter: no scrape has renamed a label.
        mixed: read ``pod`` with an exported namespace, and ``namespace`` with an exported pod,
            too. A scrape that adds only one of the two to its samples leaves them so.
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
    """Number of ``exported_`` before the name -> the label's value."""
    values = ((times, labels.get("exported_" * times + name)) for times in range(depth))
    return {times: value for times, value in values if value}


def served(labels: Mapping[str, str], serving: tuple[str, str] | None) -> Assignment | None:
    """The pod that a server's sample is about; None where nothing tells it.

    Args:
        labels: of the sample.
        serving: (namespace, name) of the pod that the page was fetched from. Where a
            Prometheus fetched it, its target labels tell: ``pod``, or Google's
            ``instance="<pod>:<port>"``. Other labels that name a pod count only where these
            are absent, as in the answer to a query of the user's.
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


def hands_on(labels: Mapping[str, str]) -> bool:
    """A page that was scraped from one pod names another one.

    A collector that hands on the series of others writes such samples, and so may any pod that
    wants to speak for another one: nothing on the sample tells the two apart.
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
    """The exporter's own pod, where a sample names both it and a workload beside it."""
    if not labels.get("exported_pod") and not any(labels.get(pod) for pod, _, _ in _LEGACY):
        return None
    pod, namespace = labels.get("pod"), labels.get("namespace")
    return PodRef(namespace, pod) if pod and namespace else None


def mismatch(assigned: Assignment, pod: Pod | None, node: str | None) -> Mismatch | None:
    """Why a sample that names ``pod`` is not about it; None if it is.

    Args:
        claimed: what the sample says.
        pod: the pod of that name on hand.
        node: where the device is, if that is certain.
    """
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
    """Why nothing is served about a pod for now, whatever the samples say.

    Args:
        pod: the pod.
        unready: serve pods that are not Ready too: a model still loading, for instance.
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
    """The sample was scraped by Prometheus and ``pod`` is named after what was scraped."""
    if "instance" not in labels:
        return False
    names = (labels.get("service"), labels.get("job"), labels.get("app"))
    return any(name and pod.startswith(name + "-") for name in names)


def _pod_of_instance(instance: str) -> str:
    """The pod in Google managed Prometheus' ``<pod>:<port>``; an address names none."""
    name, colon, _ = instance.rpartition(":")
    if not colon or "[" in name:
        return ""
    try:
        ip_address(name)
    except ValueError:
        return name
    return ""
