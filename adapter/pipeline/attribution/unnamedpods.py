"""Determine why no sample names a pod: its exporter is missing, silent, or names other pods.

The question is asked only about pods without a sample, so the usual request does not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.catalog.neuron import NAMES_NO_POD_OF
from adapter.pipeline.cluster.gpuresources import vendor_of
from adapter.pipeline.cluster.optin import has_opted_in
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.devices.readpages import PageState, ReadPages
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.devices.state import ExporterState

NOT_NAMED: Final = "pod_not_named"
NO_EXPORTER: Final = "no_exporter_on_node"
EXPORTER_DOWN: Final = "exporter_down"
EXPORTER_REFUSES: Final = "exporter_refuses"
NO_DEVICES: Final = "exporter_without_devices"
SAMPLES_REJECTED: Final = "samples_rejected"
NAMES_NO_POD: Final = "exporter_names_no_pod"
PODS_HIDDEN: Final = "pods_of_device_not_named"
OTHER_POD: Final = "device_named_for_other_pod"
CLAIM_NOT_NAMED: Final = "claim_not_named"
GROUP_NOT_NAMED: Final = "reservation_pod_not_named"
IN_VM: Final = "passed_to_virtual_machine"
NO_POD_NAMES: Final = "vendor_names_no_pod"
SERVER_NOT_SCRAPED: Final = "server_not_scraped"
SERVER_NOT_STORED: Final = "server_not_in_store"
SERVER_UNSCRAPABLE: Final = "server_unscrapable"
SERVER_DOWN: Final = "server_down"
SERVER_REFUSES: Final = "server_refuses"
SERVER_UNKNOWN: Final = "server_page_unknown"
OF_OTHERS: Final = "server_page_of_others"

UNNAMED: Final = frozenset(
    {
        NOT_NAMED,
        NO_EXPORTER,
        EXPORTER_DOWN,
        EXPORTER_REFUSES,
        NO_DEVICES,
        SAMPLES_REJECTED,
        NAMES_NO_POD,
        PODS_HIDDEN,
        OTHER_POD,
        CLAIM_NOT_NAMED,
        GROUP_NOT_NAMED,
        IN_VM,
        NO_POD_NAMES,
        SERVER_NOT_SCRAPED,
        SERVER_NOT_STORED,
        SERVER_UNSCRAPABLE,
        SERVER_DOWN,
        SERVER_REFUSES,
        SERVER_UNKNOWN,
        OF_OTHERS,
    }
)
"""Reasons of pods that no sample names for a device. A pod that has just started may have one."""
_MINUTES: Final = 120.0
"""Seconds from which a duration is given in minutes."""
_LISTED: Final = 3
"""Devices that a detail lists; it only counts the others."""


def unnamed_on_node(
    pod: Pod,
    exporters: Sequence[ExporterState],
    pages: ReadPages,
    *,
    now: float,
    oldest: float,
) -> Absence:
    """Return why no sample names a pod of a node for a device.

    Args:
        pod: the pod. A detail names other pods only if they are of its namespace.
        exporters: those that report devices of the node.
        pages: the pages that the source reads.
        now: epoch seconds.
        oldest: the age limit in seconds.
    """
    if not pod.node:
        return Absence(NOT_NAMED)
    read = pages.on_node(pod.node)
    if not exporters:
        return unreported_node(pod.node, read, now)
    newest = max(exporters, key=lambda exporter: exporter.received)
    if now - newest.received >= oldest:
        page = next((page for page in read if page.error and _is_of(page, newest)), None)
        silence = _silence(newest.origin, now - newest.received, page.error if page else "")
        reason = EXPORTER_REFUSES if page and page.refused else EXPORTER_DOWN
        return Absence(reason, silence, exporter=newest.pod)
    all_series = [s for e in exporters for s in e.all_series.values() if not s.serves]
    return _unnamed_beside_others(pod, all_series, newest)


def _unnamed_beside_others(
    pod: Pod, all_series: Sequence[DeviceSeries], newest: ExporterState
) -> Absence:
    """Return why the exporters that answer name other pods, or none."""
    hidden = {s.device.id for s in all_series if s.shared and s.assignment is None}
    if hidden:
        return Absence(PODS_HIDDEN, ", ".join(sorted(hidden)[:_LISTED]), exporter=newest.pod)
    if all(series.assignment is None for series in all_series):
        return Absence(NAMES_NO_POD, newest.origin, exporter=newest.pod)
    others = _holders(all_series)
    if pod.gpu_groups and not pod.gpus:
        return Absence(GROUP_NOT_NAMED, ", ".join(pod.gpu_groups), exporter=newest.pod)
    if others and all(others.values()):
        return Absence(OTHER_POD, _list_holders(others, pod.ref.namespace), exporter=newest.pod)
    return Absence(NOT_NAMED, newest.origin, exporter=newest.pod)


def unnameable_pod(pod: Pod) -> Absence | None:
    """Return why no exporter of the node can name the pod; None if one should."""
    if _in_virtual_machine(pod):
        return Absence(IN_VM)
    programs = {NAMES_NO_POD_OF.get(vendor_of(name), "") for name in pod.gpus}
    if programs and "" not in programs:
        return Absence(NO_POD_NAMES, ", ".join(sorted(programs)))
    return None


def _in_virtual_machine(pod: Pod) -> bool:
    """Return whether the pod runs a virtual machine of KubeVirt, which gets its devices.

    KubeVirt sets the label and the owner (``pkg/virt-controller/services/template.go``), and calls
    the pod ``virt-launcher-…`` and its container ``compute``.
    """
    owned = pod.owner is not None and pod.owner.kind == "VirtualMachineInstance"
    launcher = pod.ref.name.startswith("virt-launcher-") and "compute" in pod.containers
    return owned or launcher or pod.labels.get("kubevirt.io") == "virt-launcher"


def unnamed_server(
    pod: Pod, pages: ReadPages, now: float, of_others: Callable[[str], bool]
) -> Absence:
    """Return why there is no sample from the server that a pod runs.

    Args:
        pod: the pod.
        pages: the pages that the source reads.
        now: epoch seconds.
        of_others: whether the samples of a page, by its URL, are about other pods or servers.
    """
    if pages.of_store:
        return Absence(SERVER_NOT_STORED)
    read = pages.of_pod(pod.ref)
    if not read:
        return Absence(SERVER_UNSCRAPABLE if has_opted_in(pod) else SERVER_NOT_SCRAPED)
    worst = next((page for page in read if page.error), read[0])
    if worst.unknown:
        return Absence(SERVER_UNKNOWN, f"{worst.url} answers: {worst.error}")
    if worst.error or not worst.last_success:
        return Absence(SERVER_REFUSES if worst.refused else SERVER_DOWN, _page_failure(worst, now))
    if any(of_others(page.url) for page in read):
        return Absence(OF_OTHERS, f"{worst.url} repeats the samples of other pods or servers")
    return Absence(NOT_NAMED, f"{worst.url} has no samples of an inference server")


def failing_page(pages: Sequence[PageState], now: float, oldest: float) -> Absence | None:
    """Return why one of a pod's servers has no value; None if the page of each one is current.

    Args:
        pages: of a pod with several servers.
        now: epoch seconds.
        oldest: the age limit in seconds.
    """
    failing = next((page for page in pages if now - page.last_success >= oldest), None)
    if failing is None:
        return None
    if failing.unknown:
        return Absence(SERVER_UNKNOWN, f"{failing.url} answers: {failing.error}")
    return Absence(SERVER_REFUSES if failing.refused else SERVER_DOWN, _page_failure(failing, now))


def failing_exporter(
    stale: Absence, exporters: Mapping[str, ExporterState], read: Sequence[PageState], now: float
) -> Absence | None:
    """Return why devices have no newer value; None if no page of theirs fails now.

    Args:
        stale: the absence because of age, with the devices that were left out.
        exporters: origin -> state.
        read: the pages of the node's exporters.
        now: epoch seconds.
    """
    for origin in {part.detail: None for part in stale.left_out if part.reason == stale.reason}:
        exporter = exporters.get(origin)
        if exporter is None:
            continue
        page = next((page for page in read if page.error and _is_of(page, exporter)), None)
        if page is not None:
            reason = EXPORTER_REFUSES if page.refused else EXPORTER_DOWN
            silence = _silence(exporter.origin, now - exporter.received, page.error)
            return replace(stale, reason=reason, detail=silence, exporter=exporter.pod or page.pod)
    return None


def failing_server(stale: Absence, read: Sequence[PageState], now: float) -> Absence | None:
    """Return why a pod's server has no newer value; None if no page of it fails now."""
    failing = next((page for page in read if page.error and not page.unknown), None)
    if failing is None:
        return None
    reason = SERVER_REFUSES if failing.refused else SERVER_DOWN
    return replace(stale, reason=reason, detail=_page_failure(failing, now))


def unreported_node(node: str, read: Sequence[PageState], now: float) -> Absence:
    """Return why no exporter reports devices of a node."""
    if not read:
        return Absence(NO_EXPORTER, node)
    failing = next((page for page in read if page.error or not page.last_success), None)
    if failing is not None:
        reason = EXPORTER_REFUSES if failing.refused else EXPORTER_DOWN
        return Absence(reason, _page_failure(failing, now), exporter=failing.pod)
    return Absence(NO_DEVICES, read[0].url, exporter=read[0].pod)


def _is_of(page: PageState, exporter: ExporterState) -> bool:
    """Return whether a page is the exporter's: a node may have several."""
    same_pod = exporter.pod is not None and page.pod == exporter.pod
    return same_pod or page.url == exporter.origin


def _page_failure(page: PageState, now: float) -> str:
    if not page.error:
        return f"{page.url} has not been read yet"
    if not page.last_success:
        never = "has never answered with its page" if page.refused else "has never answered"
        return f"{page.url} {never}: {page.error}"
    return _silence(page.url, now - page.last_success, page.error)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _MINUTES else f"{seconds / 60:.0f} min"


def _silence(origin: str, seconds: float, error: str) -> str:
    silence = f"no samples from {origin} for {_duration(seconds)}"
    return f"{silence}: {error}" if error else silence


def _holders(all_series: Iterable[DeviceSeries]) -> Mapping[str, set[PodRef]]:
    """Return device -> the pods that samples name for it."""
    holders: dict[str, set[PodRef]] = {}
    for series in all_series:
        if not series.superseded and not series.cut:
            pods = holders.setdefault(series.device.id, set())
            if series.assignment is not None:
                pods.add(series.assignment.pod)
    return holders


def _list_holders(holders: Mapping[str, set[PodRef]], namespace: str) -> str:
    """Return the devices with their pods; pods of other namespaces are not named."""

    def named() -> Iterator[str]:
        for device, pods in sorted(holders.items())[:_LISTED]:
            first = min(pods, key=lambda ref: (ref.namespace != namespace, ref))
            name = "a pod of another namespace"
            if first.namespace == namespace:
                name = f"{first.namespace}/{first.name}"
            more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
            yield f"{device} for {name}{more}"

    rest = f", and {len(holders) - _LISTED} more devices" if len(holders) > _LISTED else ""
    return f"samples name {', '.join(named())}{rest}"
