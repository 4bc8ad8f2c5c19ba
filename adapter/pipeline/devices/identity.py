"""Identify what a sample's labels name: device, assignment, host and cluster, by sample scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from adapter.pipeline.catalog.field import Spelling
from adapter.pipeline.cluster.pod import PodRef
from adapter.pipeline.devices.assignment import Assignment, assignment_to
from adapter.pipeline.devices.device import CLUSTERS, cluster, device, device_seen_by, host, part
from adapter.pipeline.devices.serveraddress import (
    INSTANCES,
    ServerAddress,
    address,
    names_another_server,
    scraped_address,
)
from adapter.pipeline.devices.state import Identity
from adapter.pipeline.exposition import podlabels
from adapter.pipeline.exposition.cutlabels import (
    CutLabelError,
    CutLabels,
    StrictLabels,
    readable_labels,
)
from adapter.pipeline.exposition.podlabels import (
    NamedPod,
    allow,
    hides_pods,
    names_another,
    possible_pods,
    server,
    target,
    workload,
)
from adapter.pipeline.exposition.samples import ScrapeResult

NO_DEVICE: Final = "no_device"
NO_POD: Final = "server_without_pod"
NOT_AN_EXPORTER: Final = "device_sample_of_a_server"
NOT_A_SERVER: Final = "server_sample_of_an_exporter"
ANOTHER_POD: Final = "server_names_another_pod"
ANOTHER_SERVER: Final = "server_names_another_server"
OF_OTHERS: Final = frozenset((ANOTHER_POD, ANOTHER_SERVER))
"""Flaws of samples that a server repeats about others, as a router does."""

PodAt = Callable[[str], PodRef | None]
"""Returns the only pod with an IP address; None if no pod has it, or several."""


def identify(
    labels: Mapping[str, str],
    spelling: Spelling,
    result: ScrapeResult,
    exporter: PodRef | None,
    pod_at: PodAt,
) -> Identity:
    """Return what a sample's labels say. Its ``device`` is None if they do not identify one.

    Args:
        spelling: of the sample's series; it states whether the sample is about a device or a
            server.
    """
    if not isinstance(labels, CutLabels):
        return _identify(labels, spelling, result, exporter, pod_at)
    strict = StrictLabels(labels)
    try:
        for name in (*spelling.field.parts, *(label for label, _ in spelling.field.where)):
            strict.get(name)
        identity = _identify(strict, spelling, result, exporter, pod_at)
    except CutLabelError as error:
        return Identity(labels, None, flaw=error.reason)
    return identity._replace(labels=labels)


def _identify(
    labels: Mapping[str, str],
    spelling: Spelling,
    result: ScrapeResult,
    exporter: PodRef | None,
    pod_at: PodAt,
) -> Identity:
    if spelling.server or spelling.field.seen:
        return _identify_server(labels, spelling, result, pod_at)
    if result.serves:
        return Identity(labels, None, flaw=NOT_AN_EXPORTER)
    its_device = device(labels, result.origin, node=result.node, exporter=exporter)
    if its_device is None:
        return Identity(labels, None, flaw=NO_DEVICE)
    if hides_pods(labels):
        node, cluster_name = host(labels, exporter), _cluster(labels, result)
        return Identity(labels, its_device, host=node, cluster=cluster_name, hides_pods=True)
    named_pod, others = workload(labels, direct=result.direct)
    scraped = None if result.direct else target(labels, named_pod)
    pods = possible_pods(labels, direct=result.direct)
    assigned = None if named_pod is None else assignment_to(named_pod, labels, exporter)
    ref = None if assigned is None else assigned.pod
    return Identity(
        labels,
        its_device,
        assigned,
        None if scraped is None else PodRef(*scraped.key),
        host(labels, exporter),
        bool(labels.get("vgpu")),
        named=tuple(ref if ref == pod else PodRef(*pod) for pod in pods),  # one object for both
        cluster=_cluster(labels, result),
        otherwise=tuple(assignment_to(other, labels, exporter) for other in others),
    )


def _identify_server(
    labels: Mapping[str, str], spelling: Spelling, result: ScrapeResult, pod_at: PodAt
) -> Identity:
    scraped = address(result.origin) if result.direct else scraped_address(labels)
    ip = _lookup_address(labels, result)
    assigned, field = (
        _server_assignment(labels, spelling, result, scraped, ip, pod_at),
        spelling.field,
    )
    if isinstance(assigned, str):
        return Identity(labels, None, flaw=assigned, address=ip)
    if not field.seen:
        aside = {*field.parts, *(label for label, _ in field.where)}
        # Nothing but the server writes labels on its own page; in a store, replicas do too.
        declared = field.part_labels if spelling.has_declared_parts(direct=result.direct) else None
        its_device = part(labels, assigned.pod, declared, aside, scraped.port)
        assigned = assigned._replace(address=scraped)
        return Identity(labels, its_device, assigned, cluster=_cluster(labels, result), address=ip)
    seen_device = device(labels, result.origin)
    if seen_device is None:
        return Identity(labels, None, flaw=NO_DEVICE)
    its_device, assigned = device_seen_by(assigned.pod, seen_device), assigned._replace(sees=True)
    return Identity(labels, its_device, assigned, cluster=_cluster(labels, result), address=ip)


def _server_assignment(
    labels: Mapping[str, str],
    spelling: Spelling,
    result: ScrapeResult,
    at: ServerAddress,
    ip: str,
    pod_at: PodAt,
) -> Assignment | str:
    """Return the pod that a server's sample is about, or the reason to leave the sample out.

    Only the pod that serves the page is accepted, and only for samples about its own server. Its
    name comes from where the page was fetched, or from the labels that a store adds to what it
    scrapes, or from the address that the store scraped.

    Args:
        at: where the page was read.
        ip: the IP address by which the pod is looked for; empty if it is named.
    """
    if result.direct and not result.serves:
        return NOT_A_SERVER
    if names_another(labels, result.pod):
        return ANOTHER_POD
    if _repeats(labels, spelling, result, at):
        return ANOTHER_SERVER
    named_pod = _serving_pod(labels, result, ip, pod_at)
    if named_pod is None:
        return NO_POD
    ref = PodRef(*named_pod.key)
    return Assignment(ref, named_pod.container, named_pod.uid, suspect=False, serves=True)


def _serving_pod(
    labels: Mapping[str, str], result: ScrapeResult, ip: str, pod_at: PodAt
) -> NamedPod | None:
    """Return the pod whose page was read; None if nothing names it."""
    if result.serves:
        return None if result.pod is None else NamedPod(*result.pod)
    pod = pod_at(ip) if ip else None
    return NamedPod(*pod) if pod is not None and allow(labels, pod) else server(labels)


def _lookup_address(labels: Mapping[str, str], result: ScrapeResult) -> str:
    """Return the address that a store scraped, if nothing else names the server's pod.

    Clusters use the same addresses, so it is not asked for if the sample names a cluster.
    """
    if result.serves or result.direct or server(labels) is not None or cluster(labels):
        return ""
    return podlabels.address(labels)


def _repeats(
    labels: Mapping[str, str], spelling: Spelling, result: ScrapeResult, at: ServerAddress
) -> bool:
    """Return whether a sample of the catalogue's names another server by its address.

    The labels of a user's own series are not known: an address may be a part of the server there,
    such as the queue of a gateway for one of its backends.
    """
    field = spelling.field
    if field.part_labels is None:
        return False
    target = () if result.direct else INSTANCES
    beside = (*target, *CLUSTERS)  # a store may name a cluster by the URL of its API server
    aside = {*field.part_labels, *field.parts, *beside, *(label for label, _ in field.where)}
    # A label beyond a limit is too long for an address.
    return names_another_server(readable_labels(labels), at, aside)


def _cluster(labels: Mapping[str, str], result: ScrapeResult) -> str:
    """Return the cluster; empty unless a store wrote the label: exporters do not know it."""
    return "" if result.direct else cluster(labels)
