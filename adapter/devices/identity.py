"""Identify what a sample's labels name: device, assignment, host and cluster, by sample scope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.catalog.field import Spelling
from adapter.cluster.pod import PodRef
from adapter.devices.assignment import (
    Assignment,
    assignment,
    hands_on,
    named,
    names_another_pod,
    served,
    target,
)
from adapter.devices.device import cluster, device, host, part, seen_by
from adapter.devices.serveraddress import (
    INSTANCES,
    ServerAddress,
    address,
    names_another_server,
    scraped_address,
)
from adapter.devices.state import Identity
from adapter.exposition.samples import ScrapeResult

NO_DEVICE: Final = "no_device"
NO_POD: Final = "server_without_pod"
NOT_AN_EXPORTER: Final = "device_row_of_a_server"
NOT_A_SERVER: Final = "server_row_of_an_exporter"
ANOTHER_POD: Final = "server_names_another_pod"
ANOTHER_SERVER: Final = "server_names_another_server"
OF_OTHERS: Final = frozenset((ANOTHER_POD, ANOTHER_SERVER))
"""Flaws of samples that a server repeats about others, as a router does."""


def identify(
    labels: Mapping[str, str], spelling: Spelling, result: ScrapeResult, exporter: PodRef | None
) -> Identity:
    """Return what a sample's labels say. Its ``device`` is None if they do not identify one.

    Args:
        spelling: of the sample's series; it states whether the sample is about a device or a
            server.
    """
    if spelling.server or spelling.field.seen:
        return _of_server(labels, spelling, result)
    if result.serves:
        return Identity(labels, None, flaw=NOT_AN_EXPORTER)
    at = device(labels, result.origin, node=result.node, exporter=exporter)
    if at is None:
        return Identity(labels, None, flaw=NO_DEVICE)
    return Identity(
        labels,
        at,
        assignment(labels, exporter, direct=result.direct),
        None if result.direct else target(labels),
        host(labels, exporter),
        bool(labels.get("vgpu")),
        named=tuple(named(labels, direct=result.direct)),
        cluster=_cluster(labels, result),
    )


def _of_server(labels: Mapping[str, str], spelling: Spelling, result: ScrapeResult) -> Identity:
    at = address(result.origin) if result.direct else scraped_address(labels)
    assigned, field = _server(labels, spelling, result, at), spelling.field
    if isinstance(assigned, str):
        return Identity(labels, None, flaw=assigned)
    if not field.seen:
        aside = {*field.parts, *(label for label, _ in field.where)}
        own = part(labels, assigned.pod, field.part_labels, aside, at.port)
        assigned = assigned._replace(address=at)
        return Identity(labels, own, assigned, cluster=_cluster(labels, result))
    seen = device(labels, result.origin)
    if seen is None:
        return Identity(labels, None, flaw=NO_DEVICE)
    own, assigned = seen_by(assigned.pod, seen), assigned._replace(sees=True)
    return Identity(labels, own, assigned, cluster=_cluster(labels, result))


def _server(
    labels: Mapping[str, str], spelling: Spelling, result: ScrapeResult, at: ServerAddress
) -> Assignment | str:
    """Return the pod that a server's sample is about, or the reason to leave the sample out.

    Only the pod that serves the page is accepted, and only for samples about its own server. Its
    name comes from where the page was fetched, or from the labels that a store adds to what it
    scrapes.

    Args:
        at: where the page was read.
    """
    if result.serves:
        other = result.pod is not None and names_another_pod(labels, PodRef(*result.pod))
        assigned = served(labels, result.pod)
    elif result.direct:
        return NOT_A_SERVER
    else:
        other, assigned = hands_on(labels), served(labels, None)
    if other:
        return ANOTHER_POD
    if _repeats(labels, spelling, result, at):
        return ANOTHER_SERVER
    return NO_POD if assigned is None else assigned


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
    aside = {*field.part_labels, *field.parts, *target, *(label for label, _ in field.where)}
    return names_another_server(labels, at, aside)


def _cluster(labels: Mapping[str, str], result: ScrapeResult) -> str:
    """Return the cluster; empty unless a store wrote the label: exporters do not know it."""
    return "" if result.direct else cluster(labels)
