"""Identify what a sample's labels name: device, assignment, host and cluster, by sample scope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.catalog.field import Spelling
from adapter.cluster.pod import PodRef
from adapter.devices.assignment import Assignment, assignment, hands_on, named, served, target
from adapter.devices.device import cluster, device, host, part, seen_by
from adapter.devices.state import Identity
from adapter.exposition.cutlabels import CutLabelError, CutLabels, StrictLabels
from adapter.exposition.samples import ScrapeResult

NO_DEVICE: Final = "no_device"
NO_POD: Final = "server_without_pod"
NOT_AN_EXPORTER: Final = "device_row_of_a_server"
NOT_A_SERVER: Final = "server_row_of_an_exporter"
ANOTHER_POD: Final = "server_names_another_pod"


def identify(
    labels: Mapping[str, str], spelling: Spelling, result: ScrapeResult, exporter: PodRef | None
) -> Identity:
    """Return what a sample's labels say. Its ``device`` is None if they do not identify one.

    Args:
        spelling: of the sample's series; it states whether the sample is about a device or a
            server.
    """
    if not isinstance(labels, CutLabels):
        return _identify(labels, spelling, result, exporter)
    strict = StrictLabels(labels)
    try:
        for name in (*spelling.field.parts, *(label for label, _ in spelling.field.where)):
            strict.get(name)
        found = _identify(strict, spelling, result, exporter)
    except CutLabelError as error:
        return Identity(labels, None, flaw=error.reason)
    return found._replace(labels=labels)


def _identify(
    labels: Mapping[str, str], spelling: Spelling, result: ScrapeResult, exporter: PodRef | None
) -> Identity:
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
    assigned, field = _server(labels, result), spelling.field
    if isinstance(assigned, str):
        return Identity(labels, None, flaw=assigned)
    if not field.seen:
        aside = {*field.parts, *(label for label, _ in field.where)}
        own = part(labels, assigned.pod, field.part_labels, aside)
        return Identity(labels, own, assigned, cluster=_cluster(labels, result))
    at = device(labels, result.origin)
    if at is None:
        return Identity(labels, None, flaw=NO_DEVICE)
    own, assigned = seen_by(assigned.pod, at), assigned._replace(sees=True)
    return Identity(labels, own, assigned, cluster=_cluster(labels, result))


def _server(labels: Mapping[str, str], result: ScrapeResult) -> Assignment | str:
    """Return the pod that a server's sample is about, or the reason to leave the sample out.

    Only the pod that serves the page is accepted. Its name comes from where the page was
    fetched, or from the labels that a store adds to what it scrapes.
    """
    if result.serves:
        assigned = served(labels, result.pod)
    elif result.direct:
        return NOT_A_SERVER
    elif hands_on(labels):
        return ANOTHER_POD
    else:
        assigned = served(labels, None)
    return NO_POD if assigned is None else assigned


def _cluster(labels: Mapping[str, str], result: ScrapeResult) -> str:
    """Return the cluster; empty unless a store wrote the label: exporters do not know it."""
    return "" if result.direct else cluster(labels)
