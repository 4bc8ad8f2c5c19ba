"""Identify the device, with its MIG profile, or the part of a server that a sample is about.

For dcgm-exporter the identity is (UUID, GPU_I_ID). If a page lacks one of them, other labels
replace it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.exposition.podspellings import TARGET_LABELS


def _either_case(*names: str) -> tuple[str, ...]:
    """Return label names, and their lower-case forms after them.

    Some stores write every name in lower case (NVIDIA/dcgm-exporter#577).
    """
    return tuple(dict.fromkeys((*names, *(name.lower() for name in names))))


UUIDS: Final = (
    *("UUID", "uuid", "gpu_uuid", "device_uuid", "deviceuuid"),
    *("hw_id", "accelerator_id", "vdie_id"),
)
"""Labels with the identity of a device, in the spelling of each exporter.

``hw_id`` is from XPU Manager 2 (``xpumd/receiver/intelxpu``), ``accelerator_id`` from GKE,
``vdie_id`` from Ascend's npu-exporter.
"""
_INDEX: Final = ("gpu", "gpu_id", "minor_number", "deviceidx")
_FILE: Final = "dev_file"
"""Intel XPUM's ``card1``."""
_BUS: Final = ("pci_bdf", "pci_bus_id")
_MODEL: Final = _either_case("modelName", "card_series", "dev_name", "model", "model_name")
_MIG_INSTANCE: Final = _either_case("GPU_I_ID", "dra_mig_device_uuid")
_MIG_PROFILE: Final = _either_case("GPU_I_PROFILE", "dra_mig_profile")
_COMPUTE_INSTANCE: Final = _either_case("GPU_CI_ID")
_PARTITION: Final = "gpu_partition_id"
_PARTITION_TYPE: Final = "gpu_compute_partition_type"
_SERIAL: Final = "serial_number"
"""Of the board: from device-metrics-exporter 1.4 on, each partition has a UUID of its own."""
_UNKNOWN: Final = frozenset(("", "NA", "N/A"))
"""What AMD's exporter writes instead of a partition or a serial number."""
_NODE: Final = (
    *("node", "kubernetes_node", "k8s_node_name", "k8s.node.name"),
    *_either_case("node_name", "NodeName"),
)
"""Node labels that a scrape's relabelling or a collector, HAMi, Intel XPUM or the exporter of
Alibaba Cloud set from the API server's data."""
_HOST: Final = _either_case("Hostname")
CLUSTERS: Final = (
    "cluster",
    "cluster_name",
    "k8s_cluster_name",
    "kubernetes_cluster",
    "cluster_id",
)
"""Labels with the name of a cluster, as stores with several clusters write it."""
IDENTIFYING: Final = frozenset(
    (
        *(*UUIDS, *CLUSTERS, *_MIG_INSTANCE, *_MIG_PROFILE, *_COMPUTE_INSTANCE, *_NODE, *_HOST),
        *(_PARTITION, _PARTITION_TYPE, "vgpu"),
    )
)
"""Labels that identify a device, its node or its cluster, and that not every exporter writes."""
_MODEL_NAME: Final = "model_name"
_MODEL_OF_TRITON: Final = "model"
"""Triton names the model so on the series of its vLLM backend, which have no ``model_name``."""
_NULL: Final = "<<<NULL>>>"
"""What DCGM writes for a string that it does not have."""
_LOCAL: Final = "localhost"
_WHOLE: Final = frozenset(("", "none", "spx"))
"""AMD compute partition types of an unpartitioned device (ROCm/device-metrics-exporter)."""

_ABOUT_THE_TARGET: Final = TARGET_LABELS | frozenset(
    (
        *("instance", "job", "endpoint", "service", "cluster", "location", "project_id"),
        *("node", "pod_ip", "host_ip", "exported_node"),
        *("exported_instance", "exported_job", "exported_service", "exported_endpoint"),
        *("prometheus", "prometheus_replica", "replica", "receive_replica"),
        *("app", "pod_template_hash"),
        *("top_level_controller_name", "top_level_controller_type", "metrics_path", "scheme"),
    )
)
"""Labels that a scrape or a store adds: they distinguish pages, not the parts of one page.

The list cannot be complete, so it is used only for samples whose own labels are not known.
"""
_RANKS: Final = frozenset(("tp_rank", "pp_rank", "moe_ep_rank"))
"""Labels of the workers of one SGLang scheduler, all of which report the scheduler's queue.

They do so with ``--enable-metrics-for-all-schedulers``. ``dp_rank`` distinguishes schedulers, so
it is not in the set.
"""


class Device(NamedTuple):
    """A whole device, an instance or partition of one, or a part of an inference server."""

    id: str
    """UUID, UUID/GPU_I_ID, or node/index if the page has no UUID."""
    board: str
    """The identity of the whole device; equal to ``id`` unless this is an instance of one."""
    model: str
    """Empty if the page does not name it."""
    mig_profile: str
    """Such as ``1g.5gb``, or AMD's ``cpx``; empty for a whole device, or if not on the page."""
    number: str = ""
    """The board's number on its node, or ``card1``; empty if not on the page. For people only:
    a reboot may change it."""

    @property
    def mig(self) -> bool:
        """Whether it is a MIG instance, or a partition of an AMD device."""
        return self.id != self.board


def device(
    labels: Mapping[str, str],
    origin: str,
    *,
    node: str | None = None,
    exporter: PodRef | None = None,
) -> Device | None:
    """Return the device that a sample's labels name, or None if they name none.

    Args:
        origin: distinguishes this exporter's device 0 from another's if nothing else does.
        node: the exporter's node, if its source knows it. It takes precedence over the sample's
            labels: ``hostname`` may be a container's, and a tenant may add a pod label named
            ``node``.
        exporter: the exporter's own pod, if known; its name is not accepted as a host name.
    """
    uuid = _first(labels, UUIDS)
    place = node or _first(labels, _NODE) or host(labels, exporter) or origin
    board = uuid if uuid.strip("0-") else _local_id(labels, place)
    if board is None:
        return None
    model = _first(labels, _MODEL)
    number = _first(labels, _INDEX) or labels.get(_FILE, "")
    cut = labels.get(_PARTITION_TYPE, "").lower()
    partition = labels.get(_PARTITION, "")
    if partition not in _UNKNOWN and cut not in _WHOLE:
        return Device(f"{board}/{partition}", _board(labels, board), model, cut, number)
    profile = _first(labels, _MIG_PROFILE)
    instance = _first(labels, _MIG_INSTANCE)
    compute = _first(labels, _COMPUTE_INSTANCE)
    parts = [part for part in (board, instance, compute if instance else "") if part]
    return Device("/".join(parts), board, model, profile if instance else "", number)


def device_seen_by(pod: PodRef, at: Device) -> Device:
    """Return a device as the server in a pod sees it, separate from all other devices.

    The id contains the pod, so the page of a server cannot name a device of another pod.
    """
    mine = f"{pod.namespace}/{pod.name}/"
    return at._replace(id=mine + at.id, board=mine + at.board)


def part(
    labels: Mapping[str, str],
    pod: PodRef,
    part_labels: Collection[str] | None = None,
    aside: Collection[str] = (),
    port: str = "",
) -> Device:
    """Return the part of a pod's server that a sample is about: an engine, a model or its version.

    Two scrapes of one page, by two jobs or two Prometheus servers, give the same part, so it
    counts once. Pages of two ports are of two servers.

    Args:
        part_labels: labels that distinguish parts. None uses every label that a scrape is not known
            to add.
        aside: labels that distinguish values, not parts, such as a state or a kind of memory.
        port: of the page; empty if it is not known.
    """
    if part_labels is None:
        own_labels = {n: v for n, v in labels.items() if v and n not in aside and _may_identify(n)}
    else:
        # If a target label has the same name, the scrape renames the page's own label.
        values = {n: labels.get(f"exported_{n}") or labels.get(n) for n in part_labels}
        if not values.get(_MODEL_NAME, _MODEL_NAME):
            values[_MODEL_NAME] = labels.get(_MODEL_OF_TRITON)
        own_labels = {name: value for name, value in values.items() if value}
    parts = sorted(f"{name}={value}" for name, value in own_labels.items())
    if port:
        parts.append(f"port={port}")
    identity = "/".join((pod.namespace, pod.name, ",".join(parts)))
    return Device(identity, identity, _first(labels, ("model_name", "model")), "")


def _may_identify(name: str) -> bool:
    """Return whether a label of a user's own sample may distinguish parts."""
    return name not in _ABOUT_THE_TARGET and name not in _RANKS and not name.startswith("__")


def host(labels: Mapping[str, str], exporter: PodRef | None = None) -> str:
    """Return the node that the sample names; empty for ``localhost`` and for a pod's name
    (#572)."""
    name = _first(labels, _NODE) or _first(labels, _HOST)
    pods = (exporter.name if exporter else "", labels.get("pod"))
    local = name == _LOCAL or name.startswith(_LOCAL + ".")
    return "" if local or name in pods else name


def cluster(labels: Mapping[str, str]) -> str:
    """Return the cluster that a store's label names; empty if there is no such label."""
    return _first(labels, CLUSTERS)


def _local_id(labels: Mapping[str, str], place: str) -> str | None:
    """Return the id of a device that is unique only on its node."""
    index = _first(labels, _INDEX)
    if not index:
        bus = _first(labels, _BUS)
        return f"{place}/{bus}" if bus else None
    partition = labels.get(_PARTITION, "")
    if labels.get(_PARTITION_TYPE) or partition in _UNKNOWN:
        return f"{place}/{index}"
    return f"{place}/{index}.{partition}"


def _board(labels: Mapping[str, str], identity: str) -> str:
    """Return the board of a partition; its own identity if the page does not name the board."""
    serial = labels.get(_SERIAL, "")
    return serial if serial not in _UNKNOWN and serial.strip("0-") else identity


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        value = labels.get(name)
        if value and value != _NULL:
            return value
    return ""
