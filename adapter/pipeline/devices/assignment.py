"""The pod and container that a sample's labels name, and whether the assignment is accepted.

:mod:`adapter.pipeline.exposition.podlabels` reads the labels. An unassigned device may appear to
be assigned to its own exporter. The page of an inference server names no pod: the pod that serves
the page is the workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.options import TelemetryOptions
from adapter.pipeline.devices.serveraddress import NOWHERE, ServerAddress
from adapter.pipeline.exposition.podlabels import NamedPod, workload
from adapter.pipeline.exposition.podspellings import LabelWriter


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
    UNHEALTHY = "device_unhealthy"


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
    named_pod, _ = workload(labels, direct=direct)
    return None if named_pod is None else assignment_to(named_pod, labels, exporter)


def assignment_to(
    pod: NamedPod, labels: Mapping[str, str], exporter: tuple[str, str] | None
) -> Assignment:
    """Return the assignment of a device to a pod that a sample's labels name.

    Args:
        exporter: (namespace, name) of the exporter's own pod, if known.
    """
    target = pod.writer is not LabelWriter.EXPORTER and _is_target(labels, pod.name)
    suspect = pod.key == exporter or target
    return Assignment(PodRef(*pod.key), pod.container, pod.uid, suspect)


def mismatch(assigned: Assignment, pod: Pod | None, node: str | None) -> Mismatch | None:
    """Return why the adapter does not accept an assignment to ``pod``, or None if it does."""
    if pod is None:
        return Mismatch.SELF_ATTRIBUTION if assigned.suspect else Mismatch.UNKNOWN_POD
    if assigned.uid and assigned.uid != pod.uid:
        return Mismatch.POD_UID
    if not assigned.serves:
        if not pod.may_hold_gpu:
            return Mismatch.SELF_ATTRIBUTION if assigned.suspect else Mismatch.NO_GPU
        if node and pod.node and node != pod.node:
            return Mismatch.WRONG_NODE
    return Mismatch.FINISHED if pod.finished else None


def unfit_reason(pod: Pod, options: TelemetryOptions) -> Mismatch | None:
    """Return why no value is served for a pod at present, regardless of its samples."""
    if pod.finished:
        return Mismatch.FINISHED
    if pod.phase != "Running":
        return Mismatch.NOT_RUNNING
    if not pod.ready and not options.unready:
        return Mismatch.NOT_READY
    if pod.unhealthy and not options.unhealthy:
        return Mismatch.UNHEALTHY
    return None


def _is_target(labels: Mapping[str, str], pod: str) -> bool:
    """Return whether Prometheus scraped the sample and ``pod`` is named after the target."""
    if "instance" not in labels:
        return False
    names = (labels.get("service"), labels.get("job"), labels.get("app"))
    return any(name and pod.startswith(name + "-") for name in names)
