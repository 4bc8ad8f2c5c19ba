"""Which container a row says the device works for.

The same fact is spelt in three ways by exporters and renamed in two by a Prometheus scrape
(gpu-telemetry, section 1), and an unassigned device may seem to work for its own exporter.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from adapter.cluster.pod import Pod, PodRef

_LEGACY: Final = (
    ("pod_name", "pod_namespace", "container_name"),
    ("podname", "podnamespace", "ctrname"),
)
"""Spellings of the workload that a scrape target's own labels never take."""


class Refusal(StrEnum):
    """Why a row is not about the pod that it names."""

    SELF_ATTRIBUTION = "self_attribution"
    UNKNOWN_POD = "unknown_pod"
    POD_UID = "pod_uid_mismatch"
    WRONG_NODE = "wrong_node"
    FINISHED = "finished_pod"
    NO_GPU = "no_gpu_in_spec"
    NOT_RUNNING = "pod_not_running"
    NOT_READY = "pod_not_ready"


class Claim(NamedTuple):
    """The workload that a row names."""

    pod: PodRef
    container: str
    """Empty if the row does not say."""
    uid: str
    """Empty if the row does not say: no mismatch."""
    suspect: bool
    """It looks like the scrape target's own pod, not a workload."""


def claim(labels: Mapping[str, str], exporter: tuple[str, str] | None) -> Claim | None:
    """The workload that a row's labels name; None for an unassigned device.

    Args:
        labels: of the row.
        exporter: (namespace, name) of the exporter's own pod, where known.
    """
    name, namespace, container = _workload(labels)
    if not name or not namespace:
        return None
    ref = PodRef(namespace, name)
    suspect = ref == exporter or ("exported_pod" not in labels and _is_target(labels, name))
    return Claim(ref, container, labels.get("pod_uid", ""), suspect)


def target(labels: Mapping[str, str]) -> PodRef | None:
    """The exporter's own pod, where a row names both it and a workload beside it."""
    if not labels.get("exported_pod") and not labels.get("pod_name"):
        return None
    pod, namespace = labels.get("pod"), labels.get("namespace")
    return PodRef(namespace, pod) if pod and namespace else None


def refusal(claimed: Claim, pod: Pod | None, node: str | None) -> Refusal | None:
    """Why a row that names ``pod`` is not about it; None if it is.

    Args:
        claimed: what the row says.
        pod: the pod of that name on hand.
        node: where the device is, if that is certain.
    """
    if pod is None:
        return Refusal.SELF_ATTRIBUTION if claimed.suspect else Refusal.UNKNOWN_POD
    if claimed.uid and claimed.uid != pod.uid:
        return Refusal.POD_UID
    if not pod.holds_gpu:
        return Refusal.SELF_ATTRIBUTION if claimed.suspect else Refusal.NO_GPU
    if node and pod.node and node != pod.node:
        return Refusal.WRONG_NODE
    if pod.finished:
        return Refusal.FINISHED
    return None


def unfit(pod: Pod, *, unready: bool) -> Refusal | None:
    """Why nothing is served about a pod for now, whatever the rows say.

    Args:
        pod: the pod.
        unready: serve pods that are not Ready too: a model still loading, for instance.
    """
    if pod.finished:
        return Refusal.FINISHED
    if pod.phase != "Running":
        return Refusal.NOT_RUNNING
    if not pod.ready and not unready:
        return Refusal.NOT_READY
    return None


def _workload(labels: Mapping[str, str]) -> tuple[str, str, str]:
    exported = labels.get("exported_pod", "")
    if not exported:
        for pod, namespace, container in _LEGACY:
            if labels.get(pod) and labels.get(namespace):
                return labels[pod], labels[namespace], labels.get(container, "")
        if "pod_name" in labels and "pod_namespace" in labels:
            return "", "", ""
    return (
        exported or labels.get("pod", ""),
        labels.get("exported_namespace") or labels.get("namespace", ""),
        labels.get("exported_container") or labels.get("container", ""),
    )


def _is_target(labels: Mapping[str, str], pod: str) -> bool:
    """The row was scraped by Prometheus and ``pod`` is named after what was scraped."""
    if "instance" not in labels:
        return False
    names = (labels.get("service"), labels.get("job"), labels.get("app"))
    return any(name and pod.startswith(name + "-") for name in names)
