"""The spellings of a pod's name and namespace in labels: the one list of these labels."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

EXPORTED: Final = "exported_"
"""What a Prometheus scrape puts before a label of a page if its target has a label of that name."""


class LabelWriter(Enum):
    """Who writes a pair of labels."""

    EXPORTER = "exporter"
    """Exporters only, about the workload of a device."""
    ANYBODY = "anybody"
    """Exporters about the workload, and scrapes about their target."""
    SCRAPE = "scrape"
    """Scrape jobs and collectors about their target. Few pipelines move the workload there."""


class PodSpelling(NamedTuple):
    """One way to spell a pod with labels."""

    pod: str
    namespaces: tuple[str, ...]
    """The labels of the namespace that go with it, the best first."""
    containers: tuple[str, ...]
    uid: str
    writer: LabelWriter


POD: Final = PodSpelling("pod", ("namespace",), ("container",), "pod_uid", LabelWriter.ANYBODY)
SPELLINGS: Final = (
    PodSpelling(
        "pod_name",
        ("pod_namespace", "namespace_name"),
        ("container_name",),
        "pod_uid",
        LabelWriter.EXPORTER,
    ),
    PodSpelling(
        "podname",
        ("podnamespace", "namespacename"),
        ("ctrname", "containername"),
        "pod_uid",
        LabelWriter.EXPORTER,
    ),
    PodSpelling(
        "kube_pod", ("kube_namespace",), ("kube_container",), "pod_uid", LabelWriter.EXPORTER
    ),
    PodSpelling("PodName", ("NamespaceName",), ("ContainerName",), "pod_uid", LabelWriter.EXPORTER),
    POD,
    PodSpelling(
        "k8s_pod_name",
        ("k8s_namespace_name", "k8s_namespace"),
        ("k8s_container_name",),
        "k8s_pod_uid",
        LabelWriter.SCRAPE,
    ),
    PodSpelling(
        "k8s.pod.name",
        ("k8s.namespace.name",),
        ("k8s.container.name",),
        "k8s.pod.uid",
        LabelWriter.SCRAPE,
    ),
    PodSpelling(
        "kubernetes_pod_name",
        ("kubernetes_namespace",),
        ("kubernetes_container_name",),
        "kubernetes_pod_uid",
        LabelWriter.SCRAPE,
    ),
    PodSpelling(
        "kubernetes_pod",
        ("kubernetes_namespace",),
        ("kubernetes_container",),
        "kubernetes_pod_uid",
        LabelWriter.SCRAPE,
    ),
    PodSpelling(
        "k8s_pod", ("k8s_namespace",), ("k8s_container",), "k8s_pod_uid", LabelWriter.SCRAPE
    ),
    PodSpelling(
        "kube_pod_name",
        ("kube_namespace_name",),
        ("kube_container_name",),
        "kube_pod_uid",
        LabelWriter.SCRAPE,
    ),
)
"""Every spelling, those first that can only be about a workload.

``pod_name``: dcgm-exporter with ``--use-old-namespace``, and Cloud Monitoring's ``k8s_container``
(``namespace_name``). ``podname``: HAMi's older samples, and the next but one in a store that writes
labels in lower case (NVIDIA/dcgm-exporter#577). ``kube_pod``: Intel XPUM
(``prometheus_exporter.py``). ``PodName``: the exporter of Alibaba Cloud's ACK. ``k8s_pod_name`` and
``k8s.pod.name``: OpenTelemetry's resource attributes, as Prometheus promotes them with and without
translation of names; jobs that write the former often write ``k8s_namespace`` beside it.
``kubernetes_pod_name``: Prometheus' example configuration before 2022. ``kube_pod_name``: Sysdig.

The namespace is also in ``namespace``, if the sample has no ``pod`` that it goes with: Ascend's
npu-exporter and Istio's scrape jobs write ``pod_name`` and ``namespace``.
"""
_OF_PAGES: Final = frozenset(
    label
    for spelling in SPELLINGS
    if spelling.writer is not LabelWriter.SCRAPE
    for label in (spelling.pod, *spelling.namespaces, *spelling.containers, spelling.uid)
)
WORKLOAD_LABELS: Final = _OF_PAGES | {
    EXPORTED + label for label in (POD.pod, *POD.namespaces, *POD.containers)
}
"""Labels with which exporters name a workload, also after a scrape has renamed them."""
MANY_PODS: Final = "not_displayed_for_multi_pod"
"""What Ascend's npu-exporter writes, since August 2026, instead of the pods of a chip that several
have (``npu-exporter/collector/metrics/common_utils.go``)."""
TARGET_LABELS: Final = WORKLOAD_LABELS | {
    label
    for spelling in SPELLINGS
    for label in (spelling.pod, *spelling.namespaces, *spelling.containers, spelling.uid)
}
"""Every label that names a pod, a container of it or its namespace."""
